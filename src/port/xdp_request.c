/* SPDX-License-Identifier: BSD-2-Clause */
/* xdp: what is asked for, and whether process, interface and pool can give it. */
#include "port/xdp.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KNOWN_OPTIONS "ring, mode, zerocopy, checksum"

/* An option with a fixed set of values; the first is the default. */
static int choice_option(struct port_config *config, const char *key, const char *const *values,
			 unsigned *out, struct error *err)
{
	char text[32], list[96] = "";
	size_t used = 0;

	*out = 0;
	if (!port_option(config, key, text, sizeof(text)))
		return 0;
	for (unsigned i = 0; values[i]; i++) {
		if (!strcmp(values[i], text)) {
			*out = i;
			return 0;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 values[i]);
	}
	return error_set(err, -EINVAL, "xdp:%s: %s=%s: must be one of %s", config->target, key,
			 text, list);
}

int xdp_request_read(struct port_config *config, struct xdp_request *request, struct error *err)
{
	static const char *const modes[] = {"auto", "native", "generic", NULL};
	static const char *const zerocopies[] = {"auto", "on", "off", NULL};
	static const char *const checksums[] = {"auto", "complete", "off", NULL};
	uint32_t ring = config->ring ? config->ring : XDP_RING_DEFAULT;
	int rc = choice_option(config, "mode", modes, &request->mode, err);

	if (!rc)
		rc = choice_option(config, "zerocopy", zerocopies, &request->zerocopy, err);
	if (!rc)
		rc = choice_option(config, "checksum", checksums, &request->checksum, err);
	if (!rc)
		rc = port_options_end(config, KNOWN_OPTIONS, err);
	if (rc)
		return rc;
	if (ring & (ring - 1) || ring < XDP_RING_MIN || ring > XDP_RING_MAX)
		return error_set(err, -EINVAL, "xdp:%s: ring=%u: must be a power of two, %d to %d",
				 config->target, ring, XDP_RING_MIN, XDP_RING_MAX);
	if (config->queues > PORT_QUEUES_MAX)
		return error_set(err, -EINVAL, "xdp:%s: queues=%u: must be 1 to %d", config->target,
				 config->queues, PORT_QUEUES_MAX);
	if (request->mode == XDP_ATTACH_GENERIC && request->zerocopy == XDP_ZEROCOPY_ON)
		return error_set(err, -EINVAL,
				 "xdp:%s: zerocopy=on needs mode=native: generic mode copies",
				 config->target);
	request->ring = ring;
	return 0;
}

static bool capability_has(int capability)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &head, data))
		return false;
	return data[capability / 32].effective >> (capability % 32) & 1;
}

/* CAP_SYS_ADMIN stands for CAP_BPF, as in the kernel. */
int xdp_capabilities_check(char *text, size_t size)
{
	static const struct {
		const char *name;
		int capability, instead;
	} needed[] = {
		{"CAP_NET_RAW", CAP_NET_RAW, CAP_NET_RAW},
		{"CAP_NET_ADMIN", CAP_NET_ADMIN, CAP_NET_ADMIN},
		{"CAP_BPF", CAP_BPF, CAP_SYS_ADMIN},
	};
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (!capability_has(needed[i].capability) && !capability_has(needed[i].instead))
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 needed[i].name);
	return used ? -EPERM : 0;
}

static int memory_check(const struct xdp_port *xp, const struct xdp_request *request,
			struct error *err)
{
	uint64_t need = (uint64_t)pool_area_size(xp->port->pool) * request->queues;
	struct rlimit limit;

	if (capability_has(CAP_IPC_LOCK) || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur >= need)
		return 0;
	return error_set(err, -ENOBUFS,
			 "xdp:%s: %u queue%s %llu KB of memory, the limit is %llu KB: ulimit -l "
			 "%llu, LimitMEMLOCK= in a systemd unit, or CAP_IPC_LOCK",
			 xp->dev.name, request->queues, request->queues == 1 ? " locks" : "s lock",
			 (unsigned long long)need >> 10, (unsigned long long)limit.rlim_cur >> 10,
			 (unsigned long long)need >> 10);
}

static int mtu_check(const struct xdp_port *xp, const struct xdp_request *request,
		     struct error *err)
{
	uint32_t room = pool_room(xp->port->pool);
	uint32_t frame = 1u << xp->port->pool->frame_shift;
	uint32_t wanted = request->link.mtu + XDP_ETHERNET_AND_TAG;

	if (wanted <= room)
		return 0;
	return error_set(err, -EMSGSIZE,
			 "xdp:%s: its MTU of %u does not fit into frames of %u bytes: %sip link "
			 "set %s mtu %u%s",
			 xp->dev.name, request->link.mtu, frame, xp->fix_prefix, xp->dev.name,
			 room - XDP_ETHERNET_AND_TAG,
			 frame < 4096 && wanted <= 4096 - PACKET_HEADROOM
				 ? ", or frame_size = 4096 in the configuration"
				 : "");
}

int xdp_attached_error(struct xdp_port *xp, const struct netdev_link *link, struct error *err)
{
	/* "xdp off" takes off what is in the driver, and only that. */
	static const char *const off[] = {
		[NETDEV_XDP_NATIVE] = "xdp",
		[NETDEV_XDP_GENERIC] = "xdpgeneric",
		[NETDEV_XDP_HARDWARE] = "xdpoffload",
		[NETDEV_XDP_SEVERAL] = "xdp",
	};
	const char *name = xp->dev.name;
	char text[128];
	bool held;

	xdp_program_describe(link->xdp_program, text, sizeof(text), &held);
	if (held)
		return error_set(err, -EBUSY,
				 "xdp:%s: the interface has an XDP program already: %s; end that "
				 "process",
				 name, text);
	return error_set(err, -EBUSY,
			 "xdp:%s: the interface has an XDP program already: %s; take it off: %sip "
			 "link set dev %s %s off (or xdp-loader unload %s --all)",
			 name, text, xp->fix_prefix, name, off[link->xdp], name);
}

/* How many queues: all there are, or as many as was asked, if they are there. */
static int queues_check(struct xdp_port *xp, const struct port_config *config,
			struct xdp_request *request, struct error *err)
{
	uint32_t there = netdev_rx_queues(&xp->dev, &request->link);
	uint32_t tx = netdev_tx_queues(&xp->dev, &request->link);
	uint32_t wanted = config->queues ? config->queues : there;
	char fix[96];

	if (wanted > PORT_QUEUES_MAX)
		wanted = PORT_QUEUES_MAX;
	xdp_queues_fix(xp, wanted, fix, sizeof(fix));
	if (!there)
		return error_set(
			err, -ENXIO,
			"xdp:%s: no receive queue is in use: the program at the other side "
			"(of a %s device) has to open it first",
			xp->dev.name, xp->driver);
	if (wanted > there)
		return error_set(err, -EINVAL,
				 "xdp:%s: queues=%u, but the interface has %u receive queue%s: "
				 "%s, or queues=%u",
				 xp->dev.name, wanted, there, there == 1 ? "" : "s", fix, there);
	if (wanted > tx)
		return error_set(
			err, -EINVAL,
			"xdp:%s: %u receive queues need as many transmit queues, and there "
			"%s %u: %s, or queues=%u",
			xp->dev.name, wanted, tx == 1 ? "is" : "are", tx, fix, tx);
	request->queues = wanted;
	return 0;
}

int xdp_request_check(struct xdp_port *xp, const struct port_config *config,
		      struct xdp_request *request, struct error *err)
{
	int rc = netdev_link(&xp->dev, &request->link);

	if (rc)
		return error_set(err, rc, "xdp:%s: %s", xp->dev.name, strerror(-rc));
	netdev_driver(&xp->dev, xp->driver, sizeof(xp->driver));
	if (!request->link.ethernet)
		return error_set(err, -EINVAL, "xdp:%s: not an Ethernet interface", xp->dev.name);
	if (request->link.xdp_program)
		return xdp_attached_error(xp, &request->link, err);
	rc = mtu_check(xp, request, err);
	if (!rc)
		rc = queues_check(xp, config, request, err);
	if (!rc)
		rc = memory_check(xp, request, err);
	return rc;
}
