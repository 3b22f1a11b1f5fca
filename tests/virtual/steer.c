/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering: flows over the backlogs of several CPUs, whichever poller works on those. */
#include "scene.h"

#include <machine/random.h>

#define CPUS 4
#define FLOWS 32
#define SETTLE (10 * NSEC_PER_MSEC) /* some steps of every poller: busy-poll's take 2 ms */

static const struct queue_settings none = {.rps_cpus_set = true};

static struct queue_settings rps(const char *cpus)
{
	struct queue_settings s = {.rps_cpus_set = true};

	assert_int_equal(cpuset_parse(cpus, &s.rps_cpus), 0);
	return s;
}

static void set(struct scene *s, const char *port, int queue, struct queue_settings settings)
{
	struct error err = {0};

	if (engine_queue_set(s->engine, port, queue, &settings, NULL, &err))
		fail_msg("%s", err.text);
}

static void refused(struct scene *s, const char *port, struct queue_settings settings, int code,
		    const char *text)
{
	struct error err = {0};

	assert_int_equal(engine_queue_set(s->engine, port, -1, &settings, NULL, &err), code);
	if (!strstr(err.text, text))
		fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

static void begin(struct scene *s, bool virtual, uint64_t seed, enum poller poller)
{
	scene_begin_cpus(s, virtual, seed, CPUS, (struct engine_config){.poller = poller});
}

static struct port *backlog_port(struct scene *s)
{
	struct port *port = engine_port_find(s->engine, "backlog");

	assert_non_null(port);
	return port;
}

static const struct napi_counters *backlog(struct scene *s, unsigned cpu)
{
	return napi_counters(backlog_port(s)->queue[cpu].napi);
}

static const struct cpu_record *cpu_record(struct scene *s, unsigned i)
{
	const struct counters_file *file = engine_counters(s->engine);

	return (const void *)((const char *)file + file->cpu_offset + i * file->cpu_size);
}

struct load {
	struct source source;
	struct sink sink;
};

static void load_start(struct load *load, struct scene *s, struct source source)
{
	*load = (struct load){.source = source, .sink = {.scene = s, .port = s->b}};
	load->source.scene = s;
	load->source.port = s->a;
	/* Room for all of them everywhere: what is lost then was lost by steering. */
	load->source.paced_by = &load->sink;
	load->source.window = 800;
	if (!load->source.burst)
		load->source.burst = 16;
	if (!load->source.flows)
		load->source.flows = FLOWS;
	if (!load->source.interval)
		load->source.interval = 5 * NSEC_PER_USEC;
	sink_start(&load->sink);
	source_start(&load->source);
}

/* All that was sent has come out, in order within each flow. */
static void load_end(struct load *load, struct scene *s)
{
	source_stop(&load->source);
	scene_drain(s, s->a, load->source.sent);
	scene_run(s, NSEC_PER_MSEC);
	sink_stop(&load->sink);
	assert_int_equal(load->sink.received, load->source.sent);
	assert_int_equal(load->sink.disorder, 0);
	assert_int_equal(load->sink.missing, 0);
}

static void flows_spread_with(enum poller poller, bool virtual)
{
	uint32_t count = virtual ? 20000 : 50000;
	uint64_t steered, received = 0;
	struct scene s;
	struct load load;
	unsigned cpus;

	begin(&s, virtual, 1, poller);
	cpus = engine_counters(s.engine)->cpus;
	set(&s, "a", -1, rps(virtual ? "0-3" : "0-1"));
	load_start(&load, &s, (struct source){.count = count});
	load_end(&load, &s);
	steered = PORT_SUM(s.a, steered);
	assert_int_equal(steered, PORT_SUM(s.a, received));
	for (unsigned i = 0; i < cpus; i++) {
		uint64_t n = counter_read(&backlog(&s, i)->received);

		received += n;
		if (i < (virtual ? 4 : 2))
			assert_true(n > 0);
	}
	assert_int_equal(received, steered);
	assert_int_equal(PORT_SUM(backlog_port(&s), transmitted), steered);
	scene_end(&s);
}

static void flows_spread(enum poller poller)
{
	flows_spread_with(poller, true);
}

static void flows_spread_over_backlogs(void **state)
{
	(void)state;
	over_pollers(flows_spread);
}

static void flows_spread_on_host(void **state)
{
	(void)state;
	for (unsigned poller = 0; poller < POLLER_MAX; poller++)
		flows_spread_with((enum poller)poller, false);
}

/* Each pair: who polls the port, who polls the backlogs. */
static void any_poller_on_a_backlog(void **state)
{
	(void)state;
	for (unsigned port = 0; port < POLLER_MAX; port++) {
		for (unsigned on = 0; on < POLLER_MAX; on++) {
			struct queue_settings poller = {.poller_set = true,
							.poller = (enum poller)on};
			struct scene s;
			struct load load;

			begin(&s, true, port * POLLER_MAX + on, (enum poller)port);
			/* Kept for when they are opened. */
			set(&s, "backlog", -1, poller);
			set(&s, "a", -1, rps("1,3"));
			for (unsigned i = 0; i < CPUS; i++)
				assert_int_equal(napi_poller(backlog_port(&s)->queue[i].napi), on);
			load_start(&load, &s, (struct source){.count = 4000});
			load_end(&load, &s);
			assert_int_equal(counter_read(&backlog(&s, 0)->received), 0);
			assert_int_equal(counter_read(&backlog(&s, 1)->received) +
						 counter_read(&backlog(&s, 3)->received),
					 4000);
			scene_end(&s);
		}
	}
}

/* Turned on and off, and other masks, while packets flow: none is lost, no flow changes order. */
static void case_20_seed(enum poller poller, bool virtual, uint64_t seed)
{
	static const char *const masks[] = {"none", "0", "1", "0-1", "0-3", "2", "1,3"};
	struct random random = {seed};
	struct scene s;
	struct load load;
	uint64_t polls;

	begin(&s, virtual, seed, poller);
	load_start(&load, &s,
		   (struct source){.burst = 1 + (uint32_t)random_below(&random, 40),
				   .flows = 1 + (uint32_t)random_below(&random, FLOWS),
				   .interval = 10 * NSEC_PER_USEC +
					       (int64_t)random_below(&random, 20000)});
	for (int i = 0; i < 12; i++) {
		const char *mask = masks[random_below(&random, virtual ? 7 : 4)];
		struct queue_settings settings = strcmp(mask, "none") ? rps(mask) : none;

		if (!random_below(&random, 3)) {
			settings.rps_flow_set = true;
			settings.rps_flow_cnt = 1u << random_below(&random, 6);
		}
		set(&s, "a", -1, settings);
		polls = PORT_SUM(s.a, polls);
		scene_run(&s, (int64_t)random_below(&random, 400000));
		if (!random_below(&random, 4))
			scene_polled(&s, s.a, polls);
	}
	load_end(&load, &s);
	scene_end(&s);
}

static void case_20_virtual(enum poller poller)
{
	for (uint64_t seed = 0; seed < 40; seed++)
		case_20_seed(poller, true, seed);
}

static void case_20_changes_under_load(void **state)
{
	(void)state;
	over_pollers(case_20_virtual);
}

static void case_20_on_host(void **state)
{
	(void)state;
	for (unsigned poller = 0; poller < POLLER_MAX; poller++)
		case_20_seed((enum poller)poller, false, 100 + poller);
}

/* Sends so many packets of these flows at once, and lets the port's NAPI take them. */
static void send(struct scene *s, struct source *source, uint32_t n)
{
	source->count = source->sent + n;
	source_start(source);
	source_stop(source);
	scene_run(s, SETTLE);
}

static struct source by_hand(struct scene *s, uint32_t flow, uint32_t flows)
{
	return (struct source){.scene = s,
			       .port = s->a,
			       .flow = flow,
			       .flows = flows,
			       .burst = 64,
			       .interval = 20 * NSEC_PER_USEC};
}

static void disable(struct scene *s, unsigned cpu)
{
	assert_int_equal(napi_disable(backlog_port(s)->queue[cpu].napi, NSEC_PER_SEC), 0);
}

static void enable(struct scene *s, unsigned cpu)
{
	assert_int_equal(napi_enable(backlog_port(s)->queue[cpu].napi), 0);
}

/* A full backlog: exactly what fits is in it, the rest is counted twice, where and by whom. */
static void case_19_full(enum poller poller)
{
	struct engine_config config = {.poller = poller, .max_backlog = 100};
	struct source source;
	struct scene s;

	scene_begin_cpus(&s, true, 5, CPUS, config);
	set(&s, "a", -1, rps("2"));
	disable(&s, 2);
	source = by_hand(&s, 0, FLOWS);
	send(&s, &source, 99);
	assert_int_equal(backlogs_held(&s), 99);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 0);
	send(&s, &source, 1);
	assert_int_equal(backlogs_held(&s), 100);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 0);
	send(&s, &source, 150);
	assert_int_equal(backlogs_held(&s), 100);
	assert_int_equal(PORT_SUM(s.a, steered), 100);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 150);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_FLOW_LIMIT]), 0);
	assert_int_equal(port_held(s.a), 0);
	for (unsigned i = 0; i < CPUS; i++) {
		assert_int_equal(cpu_record(&s, i)->backlog.dropped, i == 2 ? 150 : 0);
		assert_int_equal(cpu_record(&s, i)->backlog.flow_limit, 0);
		assert_int_equal(cpu_record(&s, i)->backlog.length, i == 2 ? 100 : 0);
	}
	enable(&s, 2);
	scene_run(&s, SETTLE);
	assert_int_equal(backlogs_held(&s), 0);
	assert_int_equal(PORT_SUM(backlog_port(&s), transmitted), 100);
	scene_end(&s);
}

static void case_19_drops_are_counted(void **state)
{
	(void)state;
	over_pollers(case_19_full);
}

/* Errors name what is wrong and what is right; nothing has changed then. */
static void refusals(void **state)
{
	struct queue_settings s7 = {.rps_flow_set = true, .rps_flow_cnt = 7};
	struct queue_settings cpu = {.cpu_set = true, .cpu = 1};
	struct port_config config;
	struct error err = {0};
	struct port *port;
	struct scene s;

	(void)state;
	begin(&s, true, 1, POLLER_SOFTIRQ);
	refused(&s, "a", rps("1,4"), -EINVAL, "CPU 4 is not an engine CPU; those are 0-3");
	refused(&s, "a", s7, -EINVAL, "rps_flow_cnt 7: must be a power of two");
	refused(&s, "backlog", rps("1"), -EINVAL, "backlog of engine CPU N");
	refused(&s, "backlog", cpu, -EINVAL, "rps_cpus");
	assert_null(engine_port_find(s.engine, "backlog"));
	assert_int_equal(port_config_parse("mem:backlog", &config, &err), 0);
	assert_int_equal(engine_port_add(s.engine, &config, &port, &err), -EINVAL);
	assert_non_null(strstr(err.text, "the engine's own"));
	set(&s, "a", -1, rps("1"));
	assert_int_equal(engine_handler_set(s.engine, backlog_port(&s), s.cross, &err), -EINVAL);
	assert_int_equal(engine_port_remove(s.engine, backlog_port(&s), &err), -EBUSY);
	assert_non_null(strstr(err.text, "rps_cpus=none"));
	set(&s, "a", -1, none);
	assert_int_equal(engine_port_remove(s.engine, backlog_port(&s), &err), 0);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_spread_over_backlogs),
		cmocka_unit_test(flows_spread_on_host),
		cmocka_unit_test(any_poller_on_a_backlog),
		cmocka_unit_test(case_20_changes_under_load),
		cmocka_unit_test(case_20_on_host),
		cmocka_unit_test(case_19_drops_are_counted),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
