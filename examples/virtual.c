/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same engine on the virtual machine: a bridge between two mem ports on four virtual CPUs, fed
 * at times and in bursts that the seed decides, its poller switched on the way. One seed always
 * gives the same run: `virtual [SEED]` runs it twice and compares the hash over all that happened.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/napier.h>

#define BURSTS 200

struct run {
	struct machine *machine;
	struct engine *engine;
	struct context *context;
	struct port *in, *out;
	int bursts;
};

static void check(int rc, const struct error *e)
{
	if (rc)
		errx(1, "%s", e->text);
}

static void run_begin(struct run *run, uint64_t seed)
{
	struct virtual_config machine = {.cpus = 4, .seed = seed, .jitter_percent = 10};
	struct engine_config config = {.poller = POLLER_SOFTIRQ};
	struct bridge_config table = {0};
	struct port_config pc;
	struct handler *bridge;
	struct error e;

	if (machine_virtual_create(&machine, &run->machine))
		errx(1, "no memory");
	config.machine = run->machine;
	check(engine_create(&config, &run->engine, &e), &e);
	check(bridge_create(run->engine, &table, &bridge, &e), &e);
	check(port_config_parse("mem:in", &pc, &e), &e);
	check(engine_port_add(run->engine, &pc, &run->in, &e), &e);
	check(engine_handler_set(run->engine, run->in, bridge, &e), &e);
	check(port_config_parse("mem:out", &pc, &e), &e);
	check(engine_port_add(run->engine, &pc, &run->out, &e), &e);
	check(engine_handler_set(run->engine, run->out, bridge, &e), &e);
	if (engine_context_open(run->engine, &run->context))
		errx(1, "no memory");
}

/* Called by the machine at a virtual time: a burst, and the next call. */
static void burst(void *arg)
{
	struct run *run = arg;
	uint32_t n = 1 + (uint32_t)machine_virtual_draw(run->machine, PACKET_VECTOR_MAX);
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t sent;

	n = packet_alloc(&run->context->cache, v, n);
	for (uint32_t i = 0; i < n; i++) {
		memset(v[i]->data, 0xff, 6);
		memset(v[i]->data + 6, 2, 6);
		memset(v[i]->data + 12, 0, 48);
		v[i]->len = 60;
	}
	sent = mem_port_send(run->in, v, n);
	packet_free(&run->context->cache, v + sent, n - sent);
	while ((n = mem_port_receive(run->out, v, PACKET_VECTOR_MAX)))
		packet_free(&run->context->cache, v, n);
	if (++run->bursts < BURSTS)
		machine_virtual_call_at(
			run->machine,
			machine_now(run->machine) +
				(int64_t)machine_virtual_draw(run->machine, 100 * NSEC_PER_USEC),
			burst, run);
}

static uint64_t run_once(uint64_t seed)
{
	struct queue_settings thread = {.poller_set = true, .poller = POLLER_THREAD};
	struct virtual_stats stats;
	struct run run = {0};
	int64_t took;
	struct error e;

	run_begin(&run, seed);
	burst(&run);
	machine_virtual_run(run.machine, 2 * NSEC_PER_MSEC);
	check(engine_queue_set(run.engine, "in", -1, &thread, &took, &e), &e);
	machine_virtual_run(run.machine, 20 * NSEC_PER_MSEC);
	machine_virtual_stats(run.machine, &stats);
	printf("received %ju, sent %ju, polled by %s, switched in %ld ns, hash %016jx\n",
	       (uintmax_t)counter_read(&napi_counters(run.in->queue[0].napi)->received),
	       (uintmax_t)counter_read(&run.out->queue[0].transmit->packets),
	       poller_name(napi_poller(run.in->queue[0].napi)), (long)took,
	       (uintmax_t)stats.trace_hash);
	engine_context_close(run.context);
	engine_destroy(run.engine);
	machine_destroy(run.machine);
	return stats.trace_hash;
}

int main(int argc, char **argv)
{
	char *end = "";
	uint64_t seed = argc > 1 ? strtoull(argv[1], &end, 10) : 1;
	bool same;

	if (argc > 2 || *end) {
		printf("usage: virtual [SEED]\nRuns a bridge twice on a virtual machine.\n");
		return strcmp(argv[1], "--help") != 0;
	}
	same = run_once(seed) == run_once(seed);
	printf("%s\n", same ? "the same run twice" : "the runs differ");
	return !same;
}
