/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab/clock.h"
#include "lab/parts/host_path.h"

#define PATIENCE (10 * NSEC_PER_SEC)
#define AGAIN (100 * NSEC_PER_MSEC)

void host_path_name(const struct host_path_config *config, char *name, size_t size)
{
	const char *gro = config->gro ? ", GRO" : "";

	if (config->kind == HOST_PATH_NAPIER)
		snprintf(name, size, "%s%s", poller_name(config->poller), gro);
	else
		snprintf(name, size, "kernel, %s%s%s",
			 config->threaded ? "threaded NAPI" : "softirq", gro,
			 config->uncut ? ", uncut" : "");
}

/* What the kernel sends is cut at the cable, as it would be for a wire, unless it is not to be. */
static int offloads_set(const struct host_path_site *site, bool cut, bool gro, struct error *err)
{
	struct ends *ends = site->ends;
	int ret = netlab_offload_set(ends->lab, ends->far_ns, ends->far, NETLAB_TSO, !cut, err);

	if (!ret)
		ret = netlab_offload_set(ends->lab, ends->near_ns, ends->near, NETLAB_TSO, !cut,
					 err);
	return ret ? ret
		   : netlab_offload_set(ends->lab, ends->near_ns, ends->near, NETLAB_GRO, gro, err);
}

static int kernel_start(struct host_path *path, struct error *err)
{
	const struct host_path_site *site = path->site;
	struct ends *ends = site->ends;
	int ret = offloads_set(site, !path->config.uncut, path->config.gro, err);

	if (ret || !path->config.threaded)
		return ret;
	ret = netlab_threaded_set(ends->lab, ends->near_ns, ends->near, true, err);
	if (ret)
		return error_set(err, -EOPNOTSUPP, "the kernel's NAPI cannot be threaded here (%s)",
				 strerror(-ret));
	return ends_threads_place(ends, site->cpu, err);
}

static int napier_start(struct host_path *path, struct error *err)
{
	const struct host_path_site *site = path->site;
	char port[64], cpus[16];
	const char *arguments[] = {
		"--poller", poller_name(path->config.poller), "--cpus", cpus, "--host", port, NULL};
	struct engine_child_config config = {
		.napier = site->napier,
		.rundir = site->rundir,
		.netns = ends_near_fd(site->ends),
		.arguments = arguments,
	};
	int64_t deadline = clock_now() + PATIENCE;
	int ret = offloads_set(site, true, true, err);

	snprintf(port, sizeof(port), "xdp:%s", site->ends->near);
	snprintf(cpus, sizeof(cpus), "%d", site->cpu);
	cpuset_add(&config.cpus, (unsigned)site->cpu);
	/* The kernel lets go of the AF_XDP sockets of a process some time after its end. */
	while (!ret && (ret = engine_child_start(&config, &path->engine, err)) == -ECHILD &&
	       clock_now() < deadline) {
		clock_sleep(AGAIN);
		ret = 0;
	}
	return ret ? ret
		   : engine_child_set(&path->engine, site->ends->near, "gro",
				      path->config.gro ? "on" : "off", err);
}

int host_path_start(const struct host_path_site *site, const struct host_path_config *config,
		    struct host_path *out, struct error *err)
{
	int ret;

	*out = (struct host_path){.site = site, .config = *config, .engine = ENGINE_CHILD_NONE};
	ret = config->kind == HOST_PATH_NAPIER ? napier_start(out, err) : kernel_start(out, err);
	if (ret)
		host_path_stop(out, NULL);
	return ret;
}

int host_path_stop(struct host_path *path, struct error *err)
{
	struct ends *ends = path->site->ends;
	struct error ignored;
	int ret;

	if (path->config.threaded)
		netlab_threaded_set(ends->lab, ends->near_ns, ends->near, false, &ignored);
	ret = engine_child_stop(&path->engine, err);
	if (!ret)
		ret = offloads_set(path->site, true, true, err);
	return ret;
}
