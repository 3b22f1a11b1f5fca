/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "lab/spec/reading.h"

/* At the key, or where it is missing at the system. */
static config_setting_t *at(config_setting_t *system, const char *key)
{
	config_setting_t *s = config_setting_get_member(system, key);

	return s ? s : system;
}

static int handler_check(struct reader *r, config_setting_t *s, const struct spec_system *system)
{
	bool ends = system->handler == SPEC_SOCKET || system->handler == SPEC_HOST;
	bool wanted = reading_of(r)->spec->topology == SPEC_ENDS;
	config_setting_t *handler = at(s, "handler");

	if (system->dut == SPEC_COMMAND)
		return 0;
	if (ends != wanted)
		return reader_wrong(r, handler, -EINVAL,
				    "%s: this handler needs topology = \"%s\" (with \"%s\" it is "
				    "%s)",
				    system->key, ends ? "ends" : "middle",
				    wanted ? "ends" : "middle",
				    wanted ? "socket or host" : "bridge or router");
	if (system->dut == SPEC_KERNEL && system->handler == SPEC_HOST)
		return reader_wrong(r, handler, -EINVAL,
				    "%s: handler host is napier's; the kernel's is socket",
				    system->key);
	if (system->dut == SPEC_NAPIER && system->handler == SPEC_ROUTER)
		return reader_wrong(r, handler, -EINVAL,
				    "%s: napier has no router yet; it has a bridge", system->key);
	return 0;
}

static int napier_check(struct reader *r, config_setting_t *s, const struct spec_system *system)
{
	static const char *const own[] = {"engine", "ports", "port", "port_options"};

	/* From the defaults they are for those that are napier. */
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		config_setting_t *key = config_setting_get_member(s, own[i]);

		if (key && system->dut != SPEC_NAPIER && !tree_inherited(key))
			return reader_wrong(r, key, -EINVAL, "%s: %s goes with dut = \"napier\"",
					    system->key, own[i]);
	}
	if (system->dut != SPEC_NAPIER)
		return 0;
	if (strcmp(system->port, "xdp") && strcmp(system->port, "packet"))
		return reader_wrong(r, at(s, "port"), -EINVAL,
				    "%s: unknown port \"%s\": it is xdp or packet", system->key,
				    system->port);
	if (system->handler == SPEC_SOCKET && system->port_settings[0] &&
	    !tree_inherited(at(s, "ports")))
		return reader_wrong(r, at(s, "ports"), -EINVAL,
				    "%s: ports goes with handler host or bridge: napier's sockets "
				    "have no configuration of ports",
				    system->key);
	if (system->handler == SPEC_HOST && strcmp(system->port, "xdp"))
		return reader_wrong(r, at(s, "port"), -EINVAL, "%s: handler host takes port xdp",
				    system->key);
	if (system->poller == POLLER_APP && system->handler != SPEC_SOCKET)
		return reader_wrong(r, at(s, "poller"), -EINVAL,
				    "%s: poller app is an application's with napier's sockets: "
				    "handler = \"socket\"",
				    system->key);
	return settings_check(r, s, system);
}

/* On a veth, which has no interrupts, place.interrupt is RPS: it would be set twice. */
static int interrupt_check(struct reader *r, config_setting_t *s, const struct spec_system *system)
{
	bool placed = false, steered = false;

	for (unsigned i = 0; i < system->places; i++)
		placed |= !strcmp(system->place[i].who, "interrupt") &&
			  !cpuset_empty(&system->place[i].cpus);
	for (unsigned i = 0; i < system->knobs; i++)
		steered |= !strcmp(system->knob[i].key, "rps_cpus");
	if (!placed || !steered || reading_of(r)->spec->given)
		return 0;
	return reader_wrong(r, at(s, "knobs"), -EINVAL,
			    "%s: rps_cpus and place.interrupt are one setting of a veth: leave one "
			    "of them out (interrupt = \"any\")",
			    system->key);
}

static int kernel_check(struct reader *r, config_setting_t *s, const struct spec_system *system)
{
	int rc = interrupt_check(r, s, system);

	if (rc)
		return rc;
	if (system->dut != SPEC_KERNEL || system->kernel_poller != SPEC_KERNEL_SOCKET_BUSY_POLL)
		return 0;
	if (system->handler != SPEC_SOCKET)
		return reader_wrong(r, at(s, "poller"), -EINVAL,
				    "%s: poller socket-busy-poll is for a server's sockets: "
				    "handler = \"socket\"",
				    system->key);
	if (!system->busy_poll_usecs)
		return reader_wrong(r, at(s, "poller"), -EINVAL,
				    "%s: poller socket-busy-poll says how long it polls: "
				    "busy_poll_usecs = 50;",
				    system->key);
	return 0;
}

static int command_check(struct reader *r, config_setting_t *s, const struct spec_system *system)
{
	if ((system->dut == SPEC_COMMAND) == (system->command[0] != 0))
		return 0;
	if (system->dut == SPEC_COMMAND)
		return reader_wrong(r, s, -EINVAL, "%s: which command? command = \"…\";",
				    system->key);
	return reader_wrong(r, at(s, "command"), -EINVAL, "%s: command goes with dut = \"command\"",
			    system->key);
}

/* napier's sockets are UDP sockets, and only request and response knows how to use them. */
static int load_check(struct reader *r, config_setting_t *s, const struct spec_system *system)
{
	const struct spec *spec = reading_of(r)->spec;

	if (system->dut != SPEC_NAPIER || system->handler != SPEC_SOCKET)
		return 0;
	for (unsigned i = 0; i < spec->workloads; i++) {
		const struct spec_workload *w = &spec->workload[i];

		if (system->only && !(system->only & 1u << i))
			continue;
		if (w->load.kind != LOAD_RR || w->load.protocol != LOAD_UDP || w->load.connect)
			return reader_wrong(
				r, at(s, "only"), -EINVAL,
				"%s: napier's sockets cannot run the workload %s, only "
				"those of kind rr over UDP: name them in only = [ … ], or "
				"use handler = \"host\"",
				system->key, w->key);
	}
	return 0;
}

int system_check(struct reader *r, config_setting_t *s, const struct spec_system *system)
{
	int rc = handler_check(r, s, system);

	if (!rc)
		rc = napier_check(r, s, system);
	if (!rc)
		rc = kernel_check(r, s, system);
	if (!rc)
		rc = command_check(r, s, system);
	return rc ? rc : load_check(r, s, system);
}

static int bases_check(struct reader *r, config_setting_t *systems)
{
	const struct spec *spec = reading_of(r)->spec;

	for (unsigned i = 0; i < spec->systems; i++) {
		for (unsigned k = 0; k < i; k++) {
			const struct spec_system *a = &spec->system[k], *b = &spec->system[i];

			if (a->base && b->base && !strcmp(a->scenario, b->scenario))
				return reader_wrong(r,
						    at(config_setting_get_elem(systems, i), "base"),
						    -EINVAL, "%s: %s is the base of \"%s\" already",
						    b->key, a->key, b->scenario);
		}
	}
	return 0;
}

/* A workload that nobody runs was meant for somebody. */
static int workloads_check(struct reader *r, config_setting_t *workloads)
{
	const struct spec *spec = reading_of(r)->spec;

	for (unsigned i = 0; i < spec->workloads; i++) {
		bool run = false;

		for (unsigned k = 0; k < spec->systems; k++)
			run |= !spec->system[k].only || spec->system[k].only & 1u << i;
		if (!run)
			return reader_wrong(r, config_setting_get_elem(workloads, i), -EINVAL,
					    "no system runs the workload %s: every one has others "
					    "in its only = [ … ]",
					    spec->workload[i].key);
	}
	return 0;
}

/* The server's end may be another host's (-H), so it need not be there. */
static int given_check(struct reader *r, config_setting_t *s)
{
	const struct spec *spec = reading_of(r)->spec;
	bool middle = spec->middle[0].interface[0];

	if (!spec->client.interface[0])
		return reader_wrong(r, s, -EINVAL,
				    "the client's is missing: client = { interface "
				    "= \"eth1\"; address = \"10.0.0.1/24\"; };");
	if (middle != (spec->topology == SPEC_MIDDLE))
		return reader_wrong(r, s, -EINVAL,
				    middle ? "middle goes with topology = \"middle\""
					   : "topology = \"middle\" needs the two interfaces "
					     "between: middle = ( { … }, { … } );");
	if (spec->server.interface[0] && !strcmp(spec->server.netns, spec->client.netns))
		return reader_wrong(r, s, -EINVAL,
				    "client and server are in one network namespace, where nothing "
				    "would leave it: netns = \"NAME\" for one of them");
	return 0;
}

int spec_check(struct reader *r, config_setting_t *root)
{
	config_setting_t *given = config_setting_get_member(root, "given");
	int rc = given ? given_check(r, given) : 0;

	if (!rc)
		rc = bases_check(r, config_setting_get_member(root, "systems"));
	return rc ? rc : workloads_check(r, config_setting_get_member(root, "workloads"));
}
