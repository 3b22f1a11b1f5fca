/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "lab/cputime.h"
#include "lab/ends.h"

enum { THREADS = 64 };

const uint8_t ends_far_mac[6] = {2, 0, 0, 0, 0, 1}, ends_near_mac[6] = {2, 0, 0, 0, 0, 2};

static int end_set(struct ends *ends, unsigned ns, const char *interface, const char *address,
		   const uint8_t mac[6], struct error *err)
{
	struct netlab *lab = ends->lab;
	int ret = netlab_mac_set(lab, ns, interface, mac, err);

	if (!ret)
		ret = netlab_address_add(lab, ns, interface, address, ENDS_PREFIX, err);
	if (!ret)
		ret = netlab_link_up(lab, ns, interface, true, err);
	/* When it is up: turned on before, the other end is not told that there is a NAPI. */
	if (!ret)
		ret = netlab_offload_set(lab, ns, interface, NETLAB_GRO, true, err);
	/* An end that takes super-packets has its packets go past the other end's NAPI. */
	return ret ? ret : netlab_offload_set(lab, ns, interface, NETLAB_TSO, false, err);
}

int ends_open(const char *rundir, struct ends *ends, struct error *err)
{
	int ret = netlab_open(rundir, &ends->lab, err), far, near;

	if (ret)
		return ret;
	far = netlab_namespace_add(ends->lab, "far", err);
	near = far < 0 ? far : netlab_namespace_add(ends->lab, "near", err);
	ret = near < 0 ? near : 0;
	if (!ret) {
		ends->far_ns = (unsigned)far;
		ends->near_ns = (unsigned)near;
		netlab_name(ends->lab, "f", ends->far);
		netlab_name(ends->lab, "n", ends->near);
		ret = netlab_veth_add(ends->lab, ends->far_ns, ends->far, ends->near_ns, ends->near,
				      err);
	}
	if (!ret)
		ret = end_set(ends, ends->far_ns, ends->far, ENDS_FAR, ends_far_mac, err);
	if (!ret)
		ret = end_set(ends, ends->near_ns, ends->near, ENDS_NEAR, ends_near_mac, err);
	if (ret)
		netlab_close(ends->lab);
	return ret;
}

void ends_close(struct ends *ends)
{
	netlab_close(ends->lab);
}

int ends_threads_place(const struct ends *ends, int cpu, struct error *err)
{
	pid_t pids[THREADS];
	char prefix[32];
	cpu_set_t set;
	unsigned n;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	snprintf(prefix, sizeof(prefix), "napi/%.15s-", ends->near);
	n = cputime_threads_find(prefix, pids, THREADS);
	if (!n)
		return error_set(err, -EOPNOTSUPP, "the kernel started no NAPI threads for %s",
				 ends->near);
	for (unsigned i = 0; i < n; i++)
		sched_setaffinity(pids[i], sizeof(set), &set);
	return 0;
}
