/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "lab/inside.h"
#include "lab/run/topology.h"

#define CLIENT "10.78.0.1"
#define SERVER "10.78.0.2"
#define SERVER_ROUTED "10.78.1.2"
#define NETWORK "10.78.0.0"
#define NETWORK_ROUTED "10.78.1.0"
#define GATEWAY "10.78.0.254"
#define GATEWAY_ROUTED "10.78.1.254"

enum { PREFIX = 24 };

static const uint8_t client_mac[6] = {2, 0, 0, 0, 0, 1}, server_mac[6] = {2, 0, 0, 0, 0, 2};

int topology_ethtool(const struct topology_end *end, uint32_t command, uint32_t *value)
{
	struct ethtool_value data = {.cmd = command, .data = *value};
	struct ifreq ifr = {.ifr_data = (void *)&data};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", end->interface);
	if (ioctl(end->ioctl, SIOCETHTOOL, &ifr))
		return -errno;
	*value = data.data;
	return 0;
}

static unsigned queues_max(const struct spec *spec)
{
	unsigned max = 1;

	for (unsigned i = 0; i < spec->systems; i++)
		if (spec->system[i].queues > max)
			max = spec->system[i].queues;
	return max;
}

static int end_namespace(struct topology *t, struct topology_end *end, const char *role,
			 struct error *err)
{
	int ns = netlab_namespace_add(t->lab, role, err);

	if (ns < 0)
		return ns;
	end->ns = (unsigned)ns;
	end->netns = t->lab->namespace[ns].fd;
	end->ioctl = t->lab->namespace[ns].ioctl;
	snprintf(end->netns_name, sizeof(end->netns_name), "%s", t->lab->namespace[ns].name);
	return 0;
}

static void end_beside(struct topology_end *end, const struct topology_end *other)
{
	*end = *other;
	end->interface[0] = end->address[0] = '\0';
	end->prefix = 0;
}

static int end_address(struct topology *t, struct topology_end *end, const char *address,
		       struct error *err)
{
	snprintf(end->address, sizeof(end->address), "%s", address);
	end->prefix = PREFIX;
	return netlab_address_add(t->lab, end->ns, end->interface, address, PREFIX, err);
}

/*
 * As on a wire: frames of an MTU's size, each received by a NAPI. A veth has one with GRO only, and
 * a sender that gives super-packets has them go past it. When it is up: GRO that was turned on
 * before makes a NAPI of which the sender's end is not told.
 */
static int offloads_set(struct topology *t, const struct topology_end *end, struct error *err)
{
	int ret = netlab_offload_set(t->lab, end->ns, end->interface, NETLAB_TX_CSUM, true, err);

	if (!ret)
		ret = netlab_offload_set(t->lab, end->ns, end->interface, NETLAB_TSO, false, err);
	return ret ? ret
		   : netlab_offload_set(t->lab, end->ns, end->interface, NETLAB_GRO, true, err);
}

static int cable_make(struct topology *t, const struct topology_end *a,
		      const struct topology_end *b, struct error *err)
{
	int ret = netlab_veth_queues_add(t->lab, a->ns, a->interface, b->ns, b->interface,
					 queues_max(t->spec), err);

	if (!ret)
		ret = netlab_link_up(t->lab, a->ns, a->interface, true, err);
	if (!ret)
		ret = netlab_link_up(t->lab, b->ns, b->interface, true, err);
	if (!ret)
		ret = offloads_set(t, a, err);
	return ret ? ret : offloads_set(t, b, err);
}

static int ends_make(struct topology *t, struct error *err)
{
	int ret = cable_make(t, &t->client, &t->server, err);

	if (!ret)
		ret = end_address(t, &t->server, SERVER, err);
	t->duts = 1;
	t->dut[0] = t->server;
	return ret;
}

/* Addresses of a router, which do no harm where there is a bridge. */
static int middle_make(struct topology *t, struct error *err)
{
	struct topology_end *a = &t->dut[0], *b = &t->dut[1];
	int ret = end_namespace(t, a, "middle", err);

	if (ret)
		return ret;
	end_beside(b, a);
	netlab_name(t->lab, "a", a->interface);
	netlab_name(t->lab, "b", b->interface);
	t->duts = 2;
	ret = cable_make(t, &t->client, a, err);
	if (!ret)
		ret = cable_make(t, b, &t->server, err);
	if (!ret)
		ret = end_address(t, a, GATEWAY, err);
	if (!ret)
		ret = end_address(t, b, GATEWAY_ROUTED, err);
	if (!ret)
		ret = end_address(t, &t->server, SERVER, err);
	t->arranged = SPEC_BRIDGE;
	return ret;
}

static int made(struct topology *t, const char *rundir, struct error *err)
{
	int ret = netlab_open(rundir, &t->lab, err);

	if (!ret)
		ret = end_namespace(t, &t->client, "client", err);
	if (!ret)
		ret = end_namespace(t, &t->server, "server", err);
	if (ret)
		return ret;
	netlab_name(t->lab, "c", t->client.interface);
	netlab_name(t->lab, "s", t->server.interface);
	ret = t->spec->topology == SPEC_MIDDLE ? middle_make(t, err) : ends_make(t, err);
	if (!ret)
		ret = netlab_mac_set(t->lab, t->client.ns, t->client.interface, client_mac, err);
	if (!ret)
		ret = netlab_mac_set(t->lab, t->server.ns, t->server.interface, server_mac, err);
	if (!ret)
		ret = end_address(t, &t->client, CLIENT, err);
	if (ret || t->spec->topology == SPEC_ENDS)
		return ret;
	return netlab_route_add(t->lab, t->client.ns, NETWORK_ROUTED, PREFIX, GATEWAY, err);
}

int topology_open(const struct spec *spec, const char *host, const char *rundir,
		  struct topology *out, struct error *err)
{
	const struct topology_end none = {.netns = -1, .ioctl = -1};
	int ret;

	*out = (struct topology){
		.spec = spec,
		.remote = host,
		.client = none,
		.server = none,
		.dut = {none, none},
	};
	if (host || spec->given)
		ret = topology_given(out, host, err);
	else
		ret = made(out, rundir, err);
	if (ret)
		topology_close(out);
	return ret;
}

static void end_close(struct topology_end *end)
{
	uint32_t gro = end->gro;

	if (end->ioctl >= 0) {
		topology_ethtool(end, ETHTOOL_SGRO, &gro);
		close(end->ioctl);
	}
	if (end->netns >= 0)
		close(end->netns);
	end->ioctl = end->netns = -1;
}

void topology_close(struct topology *t)
{
	if (t->lab) {
		netlab_close(t->lab);
	} else {
		end_close(&t->client);
		/* Of the topology `ends` that is the interface under test, too. */
		end_close(&t->server);
		for (unsigned i = 0; i < t->duts && t->spec->topology == SPEC_MIDDLE; i++)
			end_close(&t->dut[i]);
	}
	*t = (struct topology){.client = {.netns = -1}, .server = {.netns = -1}};
}

/* The server has another address behind a router, and its own network no longer is the client's. */
static int route(struct topology *t, enum spec_handler handler, struct error *err)
{
	struct topology_end *server = &t->server;
	bool routed = handler == SPEC_ROUTER;
	int ret = netlab_address_delete(t->lab, server->ns, server->interface, server->address,
					PREFIX, err);

	if (!ret)
		ret = end_address(t, server, routed ? SERVER_ROUTED : SERVER, err);
	if (!ret && routed)
		ret = netlab_route_add(t->lab, server->ns, NETWORK, PREFIX, GATEWAY_ROUTED, err);
	if (!ret)
		ret = netlab_forwarding_set(t->lab, t->dut[0].ns, routed, err);
	if (!ret)
		t->arranged = handler;
	return ret;
}

static int end_arrange(struct topology *t, const struct topology_end *end, unsigned queues,
		       struct error *err)
{
	int ret = netlab_channels_set(t->lab, end->ns, end->interface, queues, err);

	return ret ? ret : offloads_set(t, end, err);
}

static int given_arrange(const struct topology_end *end, unsigned queues, struct error *err)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq ifr = {.ifr_data = (void *)&channels};
	uint32_t gro = end->gro;
	unsigned has = 1;

	topology_ethtool(end, ETHTOOL_SGRO, &gro);
	if (!queues)
		return 0;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", end->interface);
	if (!ioctl(end->ioctl, SIOCETHTOOL, &ifr))
		has = channels.rx_count + channels.combined_count;
	if (has == queues)
		return 0;
	return error_set(err, -EOPNOTSUPP,
			 "%s has %u queue%s, and %u are asked for: ethtool -L %s combined %u",
			 end->interface, has, has == 1 ? "" : "s", queues, end->interface, queues);
}

int topology_arrange(struct topology *t, enum spec_handler handler, unsigned queues,
		     struct error *err)
{
	int ret = 0;

	if (!t->lab) {
		for (unsigned i = 0; i < t->duts && !ret; i++)
			ret = given_arrange(&t->dut[i], queues, err);
		return ret;
	}
	if (!queues)
		queues = 1;
	for (unsigned i = 0; i < t->duts && !ret; i++)
		ret = end_arrange(t, &t->dut[i], queues, err);
	if (!ret)
		ret = end_arrange(t, &t->client, queues, err);
	if (ret || t->spec->topology == SPEC_ENDS)
		return ret;
	ret = end_arrange(t, &t->server, queues, err);
	if (!ret && (handler == SPEC_ROUTER) != (t->arranged == SPEC_ROUTER))
		ret = route(t, handler, err);
	return ret;
}
