/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/cputime.h"
#include "lab/parts/forwarder.h"

#define BRIDGE "br0"

enum { THREADS = 64 };

static const struct {
	const char *name, *key;
} kinds[FORWARDER_KINDS] = {
	[FORWARDER_NONE] = {"cable, no bridge", "cable"},
	[FORWARDER_KERNEL] = {"kernel bridge", "kernel"},
	[FORWARDER_KERNEL_THREADED] = {"kernel bridge, threaded NAPI", "kernel-threaded"},
	[FORWARDER_NAPIER_SOFTIRQ] = {"napier, poller softirq", "napier-softirq"},
	[FORWARDER_NAPIER_THREAD] = {"napier, poller thread", "napier-thread"},
	[FORWARDER_NAPIER_WORKQUEUE] = {"napier, poller workqueue", "napier-workqueue"},
	[FORWARDER_NAPIER_BUSY_POLL] = {"napier, poller busy-poll", "napier-busy-poll"},
	[FORWARDER_NAPIER_AUTO] = {"napier, poller auto", "napier-auto"},
	[FORWARDER_NAPIER_TX] = {"napier, poller thread, TX NAPIs", "napier-tx"},
};

const char *forwarder_name(enum forwarder_kind kind)
{
	return kinds[kind].name;
}

const char *forwarder_key(enum forwarder_kind kind)
{
	return kinds[kind].key;
}

/* The kernel names the threads of an interface's NAPIs after it. */
static unsigned threads_find(const struct forwarder_site *site, pid_t pids[THREADS])
{
	unsigned n = 0;

	for (int i = 0; i < 2; i++) {
		char prefix[32];

		snprintf(prefix, sizeof(prefix), "napi/%s-", site->interface[i]);
		n += cputime_threads_find(prefix, pids + n, THREADS - n);
	}
	return n;
}

static void threads_place(const struct cpuset *cpus, const pid_t *pids, unsigned n)
{
	cpu_set_t set;

	if (cpuset_empty(cpus))
		return;
	CPU_ZERO(&set);
	for (unsigned cpu = cpuset_next(cpus, 0); cpu < CPU_MAX; cpu = cpuset_next(cpus, cpu + 1))
		CPU_SET(cpu, &set);
	for (unsigned i = 0; i < n; i++)
		sched_setaffinity(pids[i], sizeof(set), &set);
}

static int bridge_start(const struct forwarder_site *site, struct error *err)
{
	struct netlab *lab = site->lab;
	int ret = netlab_bridge_add(lab, site->ns, BRIDGE, err);

	for (int i = 0; i < 2 && !ret; i++)
		ret = netlab_bridge_port(lab, site->ns, site->interface[i], BRIDGE, err);
	return ret ? ret : netlab_link_up(lab, site->ns, BRIDGE, true, err);
}

static int threaded_start(struct forwarder *f, struct error *err)
{
	const struct forwarder_site *site = f->site;
	pid_t pids[THREADS];
	unsigned n;
	int ret = 0;

	/* A veth has a NAPI at all only with GRO (or an XDP program). */
	for (int i = 0; i < 2 && !ret; i++)
		ret = netlab_offload_set(site->lab, site->ns, site->interface[i], NETLAB_GRO, true,
					 err);
	for (int i = 0; i < 2 && !ret; i++)
		ret = netlab_threaded_set(site->lab, site->ns, site->interface[i], true, err);
	if (ret)
		return error_set(err, -EOPNOTSUPP, "the kernel's NAPI cannot be threaded here (%s)",
				 strerror(-ret));
	n = threads_find(site, pids);
	if (!n)
		return error_set(err, -EOPNOTSUPP, "the kernel started no NAPI threads for %s",
				 site->interface[0]);
	threads_place(&site->cpus, pids, n);
	return 0;
}

static enum poller poller_of(enum forwarder_kind kind)
{
	switch (kind) {
	case FORWARDER_NAPIER_THREAD:
	case FORWARDER_NAPIER_TX:
		return POLLER_THREAD;
	case FORWARDER_NAPIER_WORKQUEUE:
		return POLLER_WORKQUEUE;
	case FORWARDER_NAPIER_BUSY_POLL:
		return POLLER_BUSY_POLL;
	case FORWARDER_NAPIER_AUTO:
		return POLLER_AUTO;
	default:
		return POLLER_SOFTIRQ;
	}
}

/*
 * A file that the child inherits; it is gone with the last who has it open. One that has a file
 * names its ports there.
 */
static int settings_file(const char *settings, char port[2][128], struct error *err)
{
	int fd = memfd_create("settings", 0), code;

	if (fd < 0 ||
	    dprintf(fd, "engine = { %s };\nports = ({ port = \"%s\"; }, { port = \"%s\"; });\n",
		    settings, port[0], port[1]) < 0) {
		code = -errno;
		if (fd >= 0)
			close(fd);
		return error_set(err, code, "a file for settings: %s", strerror(-code));
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static int cpus_ask(struct forwarder *f, const char *interface, const char *suffix,
		    const struct cpuset *cpus, struct error *err)
{
	char port[32], list[128];

	snprintf(port, sizeof(port), "%s%s", interface, suffix);
	cpuset_format(cpus, list, sizeof(list));
	return engine_child_set(&f->engine, port, "cpus", list, err);
}

/* Each kind of thread on CPUs of its own. */
static int tx_place(struct forwarder *f, struct error *err)
{
	const struct forwarder_site *site = f->site;
	int ret = 0;

	for (int i = 0; i < 2 && !ret && !cpuset_empty(&site->tx_cpus); i++) {
		ret = cpus_ask(f, site->interface[i], "", &site->cpus, err);
		if (!ret)
			ret = cpus_ask(f, site->interface[i], "-tx", &site->tx_cpus, err);
	}
	return ret;
}

static int napier_start(struct forwarder *f, struct error *err)
{
	const struct forwarder_site *site = f->site;
	const char *netns = site->lab->namespace[site->ns].path;
	bool tx = f->kind == FORWARDER_NAPIER_TX;
	char port[2][128], cpus[128], file[32];
	struct engine_child_config config = {
		.napier = site->napier,
		.rundir = site->rundir,
		.cpus = site->cpus,
		.netns = -1,
	};
	const char *arguments[] = {
		"--poller", poller_name(poller_of(f->kind)), port[0], port[1], NULL, NULL, NULL};
	int ret, fd = -1;

	config.arguments = arguments;
	for (size_t i = 0; i < sizeof(config.cpus.bits) / sizeof(*config.cpus.bits) && tx; i++)
		config.cpus.bits[i] |= site->tx_cpus.bits[i];
	for (int i = 0; i < 2; i++)
		snprintf(port[i], sizeof(port[i]), "%s:%s,netns=%s%s", site->port,
			 site->interface[i], netns, tx ? ",tx_napi=yes" : "");
	if (!cpuset_empty(&site->cpus)) {
		cpuset_format(&config.cpus, cpus, sizeof(cpus));
		arguments[4] = "--cpus";
		arguments[5] = cpus;
	}
	if (site->settings) {
		fd = settings_file(site->settings, port, err);
		if (fd < 0)
			return fd;
		snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
		arguments[2] = "--config";
		arguments[3] = file;
	}
	ret = engine_child_start(&config, &f->engine, err);
	if (fd >= 0)
		close(fd);
	return ret || !tx ? ret : tx_place(f, err);
}

int forwarder_start(const struct forwarder_site *site, enum forwarder_kind kind,
		    struct forwarder *out, struct error *err)
{
	int ret = 0;

	*out = (struct forwarder){.site = site, .kind = kind, .engine = ENGINE_CHILD_NONE};
	switch (kind) {
	case FORWARDER_KERNEL_THREADED:
		ret = bridge_start(site, err);
		if (!ret)
			ret = threaded_start(out, err);
		break;
	case FORWARDER_KERNEL:
		ret = bridge_start(site, err);
		if (!ret && site->steered)
			ret = netlab_rps_set(site->lab, site->ns, site->interface[0],
					     (int)cpuset_next(&site->cpus, 0), err);
		break;
	case FORWARDER_NONE:
	case FORWARDER_KINDS:
		break;
	default:
		ret = napier_start(out, err);
		break;
	}
	if (ret)
		forwarder_stop(out, NULL);
	return ret;
}

int64_t forwarder_cpu(const struct forwarder *f)
{
	pid_t pids[THREADS];
	int64_t sum = 0;
	unsigned n;

	if (f->engine.child.pid)
		return cputime_process(f->engine.child.pid);
	if (f->kind != FORWARDER_KERNEL_THREADED)
		return 0;
	n = threads_find(f->site, pids);
	for (unsigned i = 0; i < n; i++)
		sum += cputime_process(pids[i]);
	return sum;
}

pid_t forwarder_pid(const struct forwarder *f)
{
	return f->engine.child.pid;
}

int forwarder_polls(const struct forwarder *f, uint64_t *packets, uint64_t *polls)
{
	struct engine_child_counts counts;
	int ret;

	if (!forwarder_pid(f))
		return -EOPNOTSUPP;
	ret = engine_child_counts(&f->engine, NULL, &counts);
	*packets = counts.received;
	*polls = counts.polls;
	return ret;
}

int forwarder_stop(struct forwarder *f, struct error *err)
{
	const struct forwarder_site *site = f->site;
	struct error ignored;

	if (f->kind == FORWARDER_KERNEL_THREADED) {
		for (int i = 0; i < 2; i++) {
			netlab_threaded_set(site->lab, site->ns, site->interface[i], false,
					    &ignored);
			netlab_offload_set(site->lab, site->ns, site->interface[i], NETLAB_GRO,
					   false, &ignored);
		}
	}
	if (f->kind == FORWARDER_KERNEL && site->steered)
		netlab_rps_set(site->lab, site->ns, site->interface[0], -1, &ignored);
	if (f->kind == FORWARDER_KERNEL || f->kind == FORWARDER_KERNEL_THREADED)
		netlab_link_delete(site->lab, site->ns, BRIDGE, &ignored);
	return engine_child_stop(&f->engine, err);
}
