/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/run/place.h"
#include "lab/run/system.h"

const struct spec_placement *system_place(const struct spec_system *spec, const char *who)
{
	for (unsigned i = 0; i < spec->places; i++)
		if (!strcmp(spec->place[i].who, who))
			return &spec->place[i];
	return NULL;
}

void system_set(struct system *system, const char *key, const char *asked, const char *observed)
{
	json_object_set_new(system->settings, key,
			    json_pack("{s:s?, s:s?}", "asked", asked, "observed", observed));
}

void system_say(struct system *system, const char *format, ...)
{
	char *line;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vasprintf(&line, format, arguments);
	va_end(arguments);
	if (n < 0)
		return;
	json_array_append_new(system->commands, json_string(line));
	free(line);
}

void system_placed(struct system *system, const struct spec_placement *place, const char *by)
{
	char cpus[256];
	json_t *o;

	cpuset_format(&place->cpus, cpus, sizeof(cpus));
	o = json_pack("{s:s, s:s?, s:s}", "who", place->who, "asked", *cpus ? cpus : NULL, "by",
		      by);
	if (place->placed) {
		bool fifo = place->scheduling == RUNNER_FIFO;

		json_object_set_new(o, "class", json_string(fifo ? "fifo" : "fair"));
		json_object_set_new(o, fifo ? "priority" : "nice",
				    json_integer(fifo ? place->priority : place->nice));
	}
	json_array_append_new(system->placement, o);
}

/* What several interfaces say is one text where it is the same. */
static void observed_add(char *all, size_t size, const char *one)
{
	size_t length = strlen(all);

	if (!length)
		snprintf(all, size, "%s", one);
	else if (strcmp(all, one))
		snprintf(all + length, size - length, ", %s", one);
}

int system_knob(struct system *system, const char *key, const char *value, struct error *err)
{
	struct topology *t = system->topology;
	char observed[KNOB_TEXT_MAX], all[3 * KNOB_TEXT_MAX] = "";
	bool of_interface;
	int ret = knob_check(key, value, &of_interface, err);

	if (ret)
		return ret;
	if (of_interface && !t->duts)
		return error_set(
			err, -EOPNOTSUPP,
			"%s=%s is of the interface under test, which another host has: set "
			"it there",
			key, value);
	for (unsigned i = 0; i < (of_interface ? t->duts : 1) && !ret; i++) {
		struct topology_end *end = of_interface ? &t->dut[i] : NULL;

		ret = knob_set(system->knobs, end ? end->netns : -1, end ? end->interface : NULL,
			       key, value, observed, err);
		if (ret)
			break;
		observed_add(all, sizeof(all), observed);
		system_say_knob(system, end, key, value);
	}
	system_set(system, key, value, ret ? NULL : all);
	return ret;
}

static int knobs_apply(struct system *system, struct error *err)
{
	int ret = 0;

	for (unsigned i = 0; i < system->spec->knobs && !ret; i++)
		ret = system_knob(system, system->spec->knob[i].key, system->spec->knob[i].value,
				  err);
	return ret;
}

/* What cannot be, whatever the machine. */
static int possible(const struct system *system, const struct load_config *load, struct error *err)
{
	const struct spec_system *spec = system->spec;
	const struct topology *t = system->topology;
	bool sockets = spec->dut == SPEC_NAPIER && spec->handler == SPEC_SOCKET;

	if (spec->dut == SPEC_NAPIER && spec->handler == SPEC_ROUTER)
		return error_set(err, -EOPNOTSUPP, "napier has no router yet");
	if (sockets && (load->kind != LOAD_RR || load->protocol != LOAD_UDP))
		return error_set(err, -EOPNOTSUPP,
				 "napier's own sockets are UDP's: only rr over udp runs on them");
	if (sockets && t->remote && !*t->server.interface)
		return error_set(err, -EOPNOTSUPP,
				 "napier's own sockets need an interface: name the other host's as "
				 "server = { interface = …; } in the specification");
	if (t->duts || sockets)
		return 0;
	if (spec->dut != SPEC_KERNEL)
		return error_set(err, -EOPNOTSUPP,
				 "what is under test is on the server's host, which is another: "
				 "start it there, and measure it as the kernel's sockets");
	if (spec->kernel_poller == SPEC_KERNEL_THREADED ||
	    spec->kernel_poller == SPEC_KERNEL_THREADED_BUSY_POLL)
		return error_set(err, -EOPNOTSUPP,
				 "the NAPIs are the server's, which is another host: make them "
				 "threaded there, and measure it with poller softirq");
	return 0;
}

static void load_fill(const struct spec_system *spec, struct load_config *load)
{
	load->server_spins |= spec->server_spins;
	load->client_spins |= spec->client_spins;
	load->prefer_busy_poll |= spec->prefer_busy_poll;
	if (spec->busy_poll_usecs)
		load->busy_poll_usecs = spec->busy_poll_usecs;
	if (spec->busy_poll_budget)
		load->busy_poll_budget = spec->busy_poll_budget;
}

/* In the order in which each finds what it needs. */
static int start(struct system *system, struct load_place *server, struct error *err)
{
	const struct spec_system *spec = system->spec;
	int ret = topology_arrange(system->topology, spec->handler, spec->queues, err);

	if (!ret)
		ret = knobs_open(system->rundir, &system->knobs, err);
	if (!ret)
		ret = knobs_apply(system, err);
	if (ret)
		return ret;
	switch (spec->dut) {
	case SPEC_KERNEL:
		return system_kernel_start(system, err);
	case SPEC_NAPIER:
		return system_napier_start(system, server, err);
	case SPEC_COMMAND:
		return system_command_start(system, err);
	}
	return 0;
}

int system_start(const struct system_site *site, const struct spec_system *spec, struct system *out,
		 struct load_config *load, struct load_place *server, struct error *err)
{
	struct error ignored;
	int ret;

	*out = (struct system){
		.spec = spec,
		.topology = site->topology,
		.napier = site->napier,
		.rundir = site->rundir,
		.engine = ENGINE_CHILD_NONE,
		.command = CHILD_NONE,
		.settings = json_object(),
		.commands = json_array(),
		.placement = json_array(),
	};
	load_fill(spec, load);
	if (load->prefer_busy_poll || load->busy_poll_usecs) {
		char text[32];

		snprintf(text, sizeof(text), "%u us%s", load->busy_poll_usecs,
			 load->prefer_busy_poll ? ", preferred" : "");
		system_set(out, "socket_busy_poll", text, text);
	}
	ret = possible(out, load, err);
	if (!ret)
		ret = start(out, server, err);
	if (!ret)
		system_say_load(out, load);
	if (ret)
		system_stop(out, &ignored);
	return ret;
}

int system_tend(struct system *system, struct error *err)
{
	char text[4096];

	if (system->engine.child.pid && child_ended(&system->engine.child, err))
		return -ECHILD;
	if (!system->command.pid)
		return 0;
	while (read(system->command.out, text, sizeof(text)) > 0)
		;
	return child_ended(&system->command, err) ? -ECHILD : 0;
}

/* The first error is told; what follows is done all the same. */
int system_stop(struct system *system, struct error *err)
{
	struct error next;
	int ret = system_command_stop(system, err), more;

	more = system_napier_stop(system, ret ? &next : err);
	ret = ret ? ret : more;
	more = place_restore(ret ? &next : err);
	ret = ret ? ret : more;
	if (system->knobs) {
		more = knobs_close(system->knobs, ret ? &next : err);
		ret = ret ? ret : more;
		system->knobs = NULL;
	}
	system_kernel_stop(system);
	return ret;
}

void system_forget(struct system *system)
{
	json_decref(system->settings);
	json_decref(system->commands);
	json_decref(system->placement);
	system->settings = system->commands = system->placement = NULL;
}
