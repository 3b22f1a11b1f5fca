/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bridge in 40 lines: `bridge xdp:eth0 packet:eth1 …` runs until Ctrl-C or, when it replays
 * captures (`bridge pcap:in.pcap pcap:,out.pcap`), until they have all ended.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <napier/napier.h>

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	interrupted = number;
}

static bool finished(void *arg)
{
	bool finite = false, ended = true;
	struct port *port;

	for (uint32_t i = 0; (port = engine_port_at(arg, i)); i++) {
		finite |= port->features & PORT_FINITE;
		ended &= !(port->features & PORT_FINITE) || port->state == PORT_ENDED;
	}
	return interrupted || (finite && ended);
}

int main(int argc, char **argv)
{
	struct engine_config config = {.poller = POLLER_THREAD};
	struct bridge_config table = {0};
	struct port_config pc;
	struct handler *bridge;
	struct engine *engine;
	struct port *port;
	struct error e;

	if (argc < 2 || argv[1][0] == '-') {
		printf("usage: bridge PORT...\nPorts are as in napier(1): xdp:eth0, "
		       "pcap:in.pcap\n");
		return argc < 2 || strcmp(argv[1], "--help");
	}
	signal(SIGINT, interrupt);
	signal(SIGTERM, interrupt);
	if (machine_host_create(&config.machine, &e) || engine_create(&config, &engine, &e) ||
	    bridge_create(engine, &table, &bridge, &e))
		errx(1, "%s", e.text);
	for (int i = 1; i < argc; i++) {
		if (port_config_parse(argv[i], &pc, &e))
			errx(1, "%s", e.text);
		pc.disabled = true; /* nothing is polled before all ports are there */
		if (engine_port_add(engine, &pc, &port, &e) ||
		    engine_handler_set(engine, port, bridge, &e))
			errx(1, "%s", e.text);
	}
	for (uint32_t i = 0; (port = engine_port_at(engine, i)); i++)
		for (uint32_t queue = 0; queue < port->queues; queue++)
			napi_enable(port->queue[queue].napi);

	machine_wait(config.machine, finished, engine, TIME_NEVER);
	for (uint32_t i = 0; (port = engine_port_at(engine, i)); i++) {
		napi_disable(port->queue[0].napi, NSEC_PER_SEC); /* its last poll has ended */
		printf("%s: received %ju\n", port->name,
		       (uintmax_t)counter_read(&napi_counters(port->queue[0].napi)->received));
	}
	engine_destroy(engine);
	machine_destroy(config.machine);
}
