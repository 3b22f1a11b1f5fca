/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lab/run/topology.h"

static json_t *end_json(const struct topology_end *end)
{
	json_t *o = json_pack("{s:s, s:s, s:s}", "interface", end->interface, "netns",
			      end->netns_name, "address", end->address);

	if (end->prefix)
		json_object_set_new(o, "prefix", json_integer(end->prefix));
	return o;
}

__attribute__((format(printf, 2, 3))) static void say(json_t *commands, const char *format, ...)
{
	char line[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	json_array_append_new(commands, json_string(line));
}

static void end_say(json_t *commands, const struct topology_end *end)
{
	const char *netns = end->netns_name, *interface = end->interface;

	if (*end->address)
		say(commands, "ip -n %s address add %s/%u dev %s", netns, end->address, end->prefix,
		    interface);
	say(commands, "ip -n %s link set %s up", netns, interface);
	say(commands, "ip netns exec %s ethtool -K %s tso off gro on", netns, interface);
}

static void cable_say(json_t *commands, const struct topology_end *a, const struct topology_end *b)
{
	say(commands, "ip -n %s link add %s type veth peer name %s netns %s", a->netns_name,
	    a->interface, b->interface, b->netns_name);
	end_say(commands, a);
	end_say(commands, b);
}

static json_t *commands_json(const struct topology *t)
{
	const struct topology_end *ends[] = {&t->client, &t->server, &t->dut[0]};
	json_t *commands = json_array();
	unsigned n = t->spec->topology == SPEC_MIDDLE ? 3 : 2;

	if (!t->lab)
		return commands;
	for (unsigned i = 0; i < n; i++)
		say(commands, "ip netns add %s", ends[i]->netns_name);
	if (t->spec->topology == SPEC_ENDS) {
		cable_say(commands, &t->client, &t->server);
		return commands;
	}
	cable_say(commands, &t->client, &t->dut[0]);
	cable_say(commands, &t->dut[1], &t->server);
	return commands;
}

json_t *topology_json(const struct topology *t)
{
	bool middle = t->spec->topology == SPEC_MIDDLE;
	json_t *duts = json_array();
	char text[256];

	if (middle && t->duts == 2)
		snprintf(text, sizeof(text), "client %s %s --- %s [under test] %s --- %s %s server",
			 t->client.address, t->client.interface, t->dut[0].interface,
			 t->dut[1].interface, t->server.interface, t->server.address);
	else
		snprintf(text, sizeof(text), "client %s %s --- %s%s%s %sserver", t->client.address,
			 t->client.interface, t->server.interface, *t->server.interface ? " " : "",
			 t->server.address, middle ? "" : "[under test] ");
	for (unsigned i = 0; i < t->duts; i++)
		json_array_append_new(duts, end_json(&t->dut[i]));
	return json_pack("{s:s, s:b, s:b, s:s, s:o, s:o, s:o, s:o}", "kind",
			 middle ? "middle" : "ends", "made", t->lab != NULL, "remote", t->remote,
			 "text", text, "client", end_json(&t->client), "server",
			 end_json(&t->server), "dut", duts, "commands", commands_json(t));
}
