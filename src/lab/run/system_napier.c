/* SPDX-License-Identifier: BSD-2-Clause */
/* napier: an engine of its own process, or, for its sockets, one in the server's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <napier/engine.h>

#include <control/client.h>
#include <control/hosted.h>

#include "lab/clock.h"
#include "lab/inside.h"
#include "lab/run/place.h"
#include "lab/run/system.h"

#define PATIENCE (10 * NSEC_PER_SEC)
#define AGAIN (20 * NSEC_PER_MSEC)

enum { TEXT = 8192 };

/* The lab's interfaces are in namespaces that have names; given ones need not be. */
static void port_text(const struct system *system, const struct topology_end *end, char *text,
		      size_t size)
{
	const struct topology *t = system->topology;
	bool host = system->spec->handler == SPEC_HOST;
	const char *options = system->spec->port_options;
	const char *netns = t->lab && !host ? t->lab->namespace[end->ns].path : "";

	if (!t->lab && !host)
		netns = end->netns_name;
	snprintf(text, size, "%s:%s%s%s%s%s%s", system->spec->port, end->interface,
		 *netns ? ",netns=" : "", netns, *options ? "," : "", options,
		 host ? ",host=yes" : "");
}

/* A file that the child inherits; it is gone with the last who has it open. */
static int configuration_make(struct system *system, struct error *err)
{
	const struct spec_system *spec = system->spec;
	char port[2][192], *text = NULL;
	int fd = memfd_create("napier.conf", 0), n, code;

	for (unsigned i = 0; i < 2; i++)
		port_text(system, &system->topology->dut[i], port[i], sizeof(port[i]));
	if (system->topology->duts == 2)
		n = asprintf(&text,
			     "engine = { %s };\nports = (\n  { port = \"%s\"; %s },\n"
			     "  { port = \"%s\"; %s }\n);\n",
			     spec->settings, port[0], spec->port_settings, port[1],
			     spec->port_settings);
	else
		n = asprintf(&text, "engine = { %s };\nports = ( { port = \"%s\"; %s } );\n",
			     spec->settings, port[0], spec->port_settings);
	if (fd < 0 || n < 0 || write(fd, text, (size_t)n) != n) {
		code = -errno;
		if (fd >= 0)
			close(fd);
		free(n < 0 ? NULL : text);
		return error_set(err, code, "a file for the engine's configuration: %s",
				 strerror(-code));
	}
	lseek(fd, 0, SEEK_SET);
	system_say(system, "cat > napier.conf << END\n%sEND", text);
	free(text);
	return fd;
}

/*
 * The kernel lets go of the AF_XDP sockets of a process some time after its end: until then the
 * interface is busy.
 */
static int engine_start(struct system *system, const struct spec_placement *poller,
			struct error *err)
{
	char file[32], cpus[256];
	const char *arguments[] = {"--config", file, "--poller", poller_name(system->spec->poller),
				   NULL,       NULL, NULL};
	struct engine_child_config config = {
		.napier = system->napier,
		.rundir = system->rundir,
		.netns = system->spec->handler == SPEC_HOST ? system->topology->dut[0].netns : -1,
		.arguments = arguments,
	};
	int64_t deadline = clock_now() + PATIENCE;
	int fd = configuration_make(system, err), ret;

	if (fd < 0)
		return fd;
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	if (poller && !cpuset_empty(&poller->cpus)) {
		config.cpus = poller->cpus;
		cpuset_format(&poller->cpus, cpus, sizeof(cpus));
		arguments[4] = "--cpus";
		arguments[5] = cpus;
	}
	while ((ret = engine_child_start(&config, &system->engine, err)) == -ECHILD &&
	       strstr(err->text, strerror(EBUSY)) && clock_now() < deadline) {
		clock_sleep(AGAIN);
		lseek(fd, 0, SEEK_SET);
	}
	close(fd);
	system_say(system, "%s%s%snapier run --config napier.conf --poller %s%s%s",
		   config.netns >= 0 ? "ip netns exec " : "",
		   config.netns >= 0 ? system->topology->dut[0].netns_name : "",
		   config.netns >= 0 ? " " : "", poller_name(system->spec->poller),
		   arguments[4] ? " --cpus " : "", arguments[4] ? cpus : "");
	return ret;
}

/* What the engine's NAPIs have, as a text: "thread", or all that they have. */
static void poller_observe(struct system *system)
{
	const struct counters_file *file;
	struct error ignored;
	char all[64] = "";

	if (counters_map(&system->engine.dir, &file, &ignored))
		return;
	for (uint32_t i = 0; i < file->queues; i++) {
		const struct queue_record *r = counters_queue_at(file, i);
		const char *name = poller_name((enum poller)r->poller_observed);
		size_t length = strlen(all);

		if (!r->in_use || strstr(all, name))
			continue;
		snprintf(all + length, sizeof(all) - length, "%s%s", length ? ", " : "", name);
	}
	counters_unmap(file);
	system_set(system, "poller", poller_name(system->spec->poller), all);
}

static int thread_set(struct system *system, const char *thread, const struct spec_placement *place,
		      struct error *err)
{
	bool fifo = place->scheduling == RUNNER_FIFO;
	const char *key = fifo ? "priority" : "nice";
	char value[16];
	int ret;

	snprintf(value, sizeof(value), "%d", fifo ? place->priority : place->nice);
	ret = engine_child_set(&system->engine, thread, key, value, err);
	if (!ret)
		system_say(system, "napier set %s %s=%s", thread, key, value);
	return ret;
}

static int each_cpu(struct system *system, const char *name, const struct spec_placement *place,
		    struct error *err)
{
	const struct counters_file *file;
	int ret = counters_map(&system->engine.dir, &file, err);

	for (uint32_t i = 0; !ret && i < file->cpus; i++) {
		char thread[32];

		snprintf(thread, sizeof(thread), "%s/%u", name, counters_cpu_at(file, i)->cpu);
		ret = thread_set(system, thread, place, err);
	}
	if (file)
		counters_unmap(file);
	return ret;
}

static int class_set(struct system *system, const struct spec_placement *place, struct error *err)
{
	int ret = 0;

	switch (system->spec->poller) {
	case POLLER_THREAD:
		for (unsigned i = 0; i < system->topology->duts && !ret; i++)
			ret = thread_set(system, system->topology->dut[i].interface, place, err);
		return ret;
	case POLLER_WORKQUEUE:
		return thread_set(system, "kworker", place, err);
	case POLLER_BUSY_POLL:
		return each_cpu(system, "busy", place, err);
	case POLLER_SOFTIRQ:
		return each_cpu(system, "irq", place, err);
	default:
		return error_set(err, -EOPNOTSUPP,
				 "poller %s has no thread of its own whose class could be set",
				 poller_name(system->spec->poller));
	}
}

static int workers_place(struct system *system, const struct spec_placement *place,
			 struct error *err)
{
	char cpus[256];
	int ret = 0;

	if (!cpuset_empty(&place->cpus)) {
		cpuset_format(&place->cpus, cpus, sizeof(cpus));
		ret = engine_child_set(&system->engine, "kworker", "cpus", cpus, err);
		system_say(system, "napier set kworker cpus=%s", cpus);
	}
	if (!ret && place->placed)
		ret = thread_set(system, "kworker", place, err);
	if (!ret)
		system_placed(system, place, "napier set");
	return ret;
}

/*
 * The kernel's part below an AF_XDP socket. A veth has no interrupts, and RPS comes after XDP: its
 * softirq runs where the sender sent.
 */
static int interrupt_place(struct system *system, const struct spec_placement *place,
			   struct error *err)
{
	struct topology *t = system->topology;
	bool by_rps = false;
	int ret = 0;

	for (unsigned i = 0; i < t->duts && !t->lab && !ret; i++)
		ret = place_interrupts(system->knobs, t->dut[i].netns, t->dut[i].interface,
				       &place->cpus, &by_rps, err);
	if (!ret)
		system_placed(system, place,
			      t->lab || by_rps ? "none: a veth is polled where its sender sends"
					       : "irq");
	return ret;
}

/* In the server's process, on whose side its threads are. */
static int sockets_fill(struct system *system, const struct spec_placement *poller,
			struct load_place *server, struct error *err)
{
	const struct topology_end *end = &system->topology->server;
	const char *options = system->spec->port_options;
	struct load_engine *engine = &server->engine;
	char cpus[256] = "";
	int n;

	engine->used = true;
	engine->poller = system->spec->poller;
	if (poller) {
		engine->cpus = poller->cpus;
		cpuset_format(&poller->cpus, cpus, sizeof(cpus));
		system_placed(system, poller, "affinity");
	}
	n = snprintf(engine->port, sizeof(engine->port), "%s:%s%s%s", system->spec->port,
		     end->interface, *options ? "," : "", options);
	if (n >= (int)sizeof(engine->port))
		return error_set(err, -E2BIG, "port_options: too long");
	snprintf(engine->address, sizeof(engine->address), "%.40s/%u", end->address,
		 end->prefix ? end->prefix : 24);
	n = snprintf(engine->settings, sizeof(engine->settings), "%s", system->spec->settings);
	if (n >= (int)sizeof(engine->settings))
		return error_set(err, -E2BIG, "engine: more than %zu bytes of settings",
				 sizeof(engine->settings) - 1);
	system_say(system, "# napier's sockets in the server's process: %s, poller %s%s%s",
		   engine->port, poller_name(engine->poller), *cpus ? ", CPUs " : "", cpus);
	system_set(system, "poller", poller_name(engine->poller), poller_name(engine->poller));
	return 0;
}

int system_napier_start(struct system *system, struct load_place *server, struct error *err)
{
	const struct spec_placement *poller = system_place(system->spec, "poller");
	const struct spec_placement *worker = system_place(system->spec, "worker");
	const struct spec_placement *interrupt = system_place(system->spec, "interrupt");
	int ret;

	if (*system->spec->settings)
		system_set(system, "engine", system->spec->settings, system->spec->settings);
	if (*system->spec->port_settings)
		system_set(system, "ports", system->spec->port_settings,
			   system->spec->port_settings);
	if (system->spec->handler == SPEC_SOCKET) {
		ret = sockets_fill(system, poller, server, err);
	} else {
		ret = engine_start(system, poller, err);
		if (!ret && poller)
			system_placed(system, poller, "napier run --cpus");
		if (!ret && poller && poller->placed)
			ret = class_set(system, poller, err);
		if (!ret && worker)
			ret = workers_place(system, worker, err);
		if (!ret)
			poller_observe(system);
	}
	return !ret && interrupt ? interrupt_place(system, interrupt, err) : ret;
}

static void say_nothing(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

/* In the engine's namespace. */
static int put_back(void *arg)
{
	struct system *system = arg;
	struct rundir *dir = &system->engine.dir;
	char restore[RUNDIR_PATH_MAX + 10];

	if (rundir_lock(dir, NULL))
		return 0;
	rundir_file(dir, "restore", restore);
	engine_restore(restore, say_nothing, NULL);
	hosted_restore(dir, clock_now(), say_nothing, NULL);
	rundir_close(dir);
	return 0;
}

int system_napier_stop(struct system *system, struct error *err)
{
	bool ran = *system->engine.dir.path;
	int ret = engine_child_stop(&system->engine, err);
	struct error ignored;

	/* One that was killed has the host's addresses yet, and they are needed again. */
	if (ran && hosted_left(&system->engine.dir))
		inside_run(system->topology->dut[0].netns, put_back, system, &ignored);
	return ret;
}
