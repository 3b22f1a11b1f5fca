/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "lab/parts/udp_path.h"

/*
 * An application that prefers busy polling keeps interrupts off by coming back: this is how long
 * the kernel waits for it, and how often.
 */
enum { DEFER = 100, FLUSH_NS = 20000 };

static int interface_set(const struct udp_path_run *run, bool on, struct error *err)
{
	const struct ends *ends = run->config.ends;
	int cpu = run->config.cpu, ret = 0;

	if (run->path->kind == UDP_KERNEL_PREFER)
		ret = netlab_defer_set(ends->lab, ends->near_ns, ends->near, on ? DEFER : 0,
				       on ? FLUSH_NS : 0, err);
	if (!ret && run->path->softirq == UDP_SOFTIRQ_STEERED)
		ret = netlab_rps_set(ends->lab, ends->near_ns, ends->near, on ? cpu : -1, err);
	if (ret || run->path->softirq != UDP_SOFTIRQ_THREADED)
		return ret;
	ret = netlab_threaded_set(ends->lab, ends->near_ns, ends->near, on, err);
	return ret || !on ? ret : ends_threads_place(ends, cpu, err);
}

int udp_path_start(const struct udp_path *path, const struct udp_server_config *config,
		   struct udp_path_run *out, struct error *err)
{
	int ret;

	*out = (struct udp_path_run){.path = path, .config = *config};
	out->config.kind = path->kind;
	out->config.poller = path->poller;
	ret = interface_set(out, true, err);
	if (!ret)
		ret = udp_server_start(&out->config, &out->server, err);
	if (ret)
		udp_path_stop(out, NULL);
	return ret;
}

int udp_path_stop(struct udp_path_run *run, struct error *err)
{
	const struct ends *ends = run->config.ends;
	struct error ignored;
	int ret = 0;

	if (run->server)
		ret = udp_server_stop(run->server, err);
	run->server = NULL;
	interface_set(run, false, &ignored);
	/* An engine's end turns GRO off, and with it the kernel's NAPI of a veth. */
	netlab_offload_set(ends->lab, ends->near_ns, ends->near, NETLAB_GRO, true, &ignored);
	return ret;
}
