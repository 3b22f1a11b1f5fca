/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering: flows over the backlogs of several CPUs, whichever poller works on those. */
#include "scene.h"

#include <core/engine.h>
#include <core/napi.h>
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
	int rc = -ETIMEDOUT;

	/* On a busy host a poller may get no CPU for a second: then all is as before, and asked again. */
	for (int i = 0; rc == -ETIMEDOUT && i < (machine_tid(s->machine) ? 30 : 1); i++)
		rc = engine_queue_set(s->engine, port, queue, &settings, NULL, &err);
	if (rc)
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
	return counters_cpu_at(engine_counters(s->engine), i);
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

/*
 * A handler in front of the scene's: learns the flows' hashes, and looks whether somebody comes for
 * every backlog before one is worked on.
 */
struct watcher {
	struct handler handler;
	struct scene *scene;
	_Atomic uint32_t hash[SCENE_FLOWS]; /* by flow */
	uint32_t forgotten;
};

static void watcher_input(struct handler *handler, struct context *context, struct port *in,
			  struct packet **v, uint32_t n)
{
	struct watcher *watcher = (struct watcher *)handler;
	struct scene *s = watcher->scene;
	unsigned n_backlogs = engine_counters(s->engine)->cpus;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t flow;

		memcpy(&flow, v[i]->data + 42, sizeof(flow));
		atomic_store(&watcher->hash[flow % SCENE_FLOWS], packet_flow_hash(context, v[i]));
	}
	if (strcmp(context->napi->queue->port->name, "backlog"))
		n_backlogs = 0;
	for (unsigned i = 0; i < n_backlogs; i++)
		if (counter_read(&cpu_record(s, i)->backlog.length) &&
		    !(napi_state_load(backlog_port(s)->queue[i].napi) & NAPI_SCHED))
			watcher->forgotten++;
	s->cross->ops->input(s->cross, context, in, v, n);
}

static const struct handler_ops watcher_ops = {.name = "watcher", .input = watcher_input};

static void watch(struct watcher *watcher, struct scene *s)
{
	*watcher = (struct watcher){.handler.ops = &watcher_ops, .scene = s};
	assert_int_equal(engine_handler_set(s->engine, s->a, &watcher->handler, NULL), 0);
	/* Which has taken the port from the scene's handler. */
	scene_partner(s, s->a, s->b);
}

static void set_engine(struct scene *s, struct engine_settings settings)
{
	struct error err = {0};

	if (engine_set(s->engine, &settings, &err))
		fail_msg("%s", err.text);
}

/* Turned on and off, and other masks, while packets flow: none is lost, no flow changes order. */
static void disturb(struct scene *s, struct watcher *watcher, struct random *random)
{
	struct engine_settings settings = {0};

	switch (random_below(random, 6)) {
	case 0:
		settings.sock_flow_entries_set = true;
		settings.sock_flow_entries = 1u << random_below(random, 8);
		break;
	case 1:
		settings.symmetric_hash_set = true;
		settings.symmetric_hash = random_below(random, 2);
		break;
	case 2:
		settings.max_backlog_set = true;
		settings.max_backlog = 800 + (uint32_t)random_below(random, 5000);
		break;
	default:
		for (uint64_t n = random_below(random, 20); n; n--)
			flow_record(s->engine,
				    atomic_load(&watcher->hash[random_below(random, FLOWS)]),
				    (unsigned)random_below(random, CPUS + 1));
		return;
	}
	set_engine(s, settings);
}

/* Returns how many packets GRO has merged meanwhile. */
static uint64_t case_20_seed(enum poller poller, bool virtual, uint64_t seed)
{
	static const char *const masks[] = {"none", "0", "1", "0-1", "0-3", "2", "1,3"};
	struct random random = {seed};
	struct watcher watcher;
	struct scene s;
	struct load load;
	uint64_t polls, merged;

	begin(&s, virtual, seed, poller);
	watch(&watcher, &s);
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
		settings.gro_set = !random_below(&random, 3);
		settings.gro = random_below(&random, 3) ? GRO_ON : GRO_OFF;
		set(&s, "a", -1, settings);
		disturb(&s, &watcher, &random);
		polls = PORT_SUM(s.a, polls);
		scene_run(&s, (int64_t)random_below(&random, 400000));
		if (!random_below(&random, 4))
			scene_polled(&s, s.a, polls);
	}
	load_end(&load, &s);
	merged = PORT_SUM(s.a, merged);
	scene_end(&s);
	return merged;
}

static void case_20_virtual(enum poller poller)
{
	uint64_t merged = 0;

	for (uint64_t seed = 0; seed < 40; seed++)
		merged += case_20_seed(poller, true, seed);
	assert_true(merged > 0);
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

/* What did get in is kicked, also when the rest of its vector was dropped. */
static void kicked_though_dropped(enum poller poller)
{
	struct engine_config config = {.poller = poller, .max_backlog = 10};
	struct source source;
	struct sink sink;
	struct scene s;

	scene_begin_cpus(&s, true, 5, CPUS, config);
	set(&s, "a", -1, rps("2"));
	sink = (struct sink){.scene = &s, .port = s.b};
	sink_start(&sink);
	source = by_hand(&s, 0, FLOWS);
	for (int i = 1; i <= 5; i++) {
		send(&s, &source, 64);
		assert_int_equal(backlogs_held(&s), 0);
		assert_true(PORT_SUM(s.a, steered) >= 10 * (uint64_t)i);
	}
	assert_true(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]) > 0);
	sink_stop(&sink);
	assert_int_equal(sink.received, PORT_SUM(s.a, steered));
	scene_end(&s);
}

static void what_got_in_is_kicked(void **state)
{
	(void)state;
	over_pollers(kicked_though_dropped);
}

/* Half full: a flow that has more than half of the last 128 packets loses its next ones. */
static void case_19_limit(enum poller poller)
{
	struct engine_config config = {.poller = poller, .max_backlog = 200, .flow_limit = 4096};
	struct source large, small;
	struct scene s;

	scene_begin_cpus(&s, true, 5, CPUS, config);
	set(&s, "a", -1, rps("2"));
	disable(&s, 2);
	large = by_hand(&s, 1, 1);
	small = by_hand(&s, 2, 1);
	send(&s, &large, 100);
	send(&s, &large, 64);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_FLOW_LIMIT]), 0);
	send(&s, &large, 6);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_FLOW_LIMIT]), 6);
	send(&s, &small, 30);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_FLOW_LIMIT]), 6);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 0);
	assert_int_equal(cpu_record(&s, 2)->backlog.flow_limit, 6);
	assert_int_equal(cpu_record(&s, 2)->backlog.dropped, 0);
	assert_int_equal(backlogs_held(&s), 194);
	assert_int_equal(port_held(s.a), 0);
	/* Off, live: then only what there is room for counts. */
	set_engine(&s, (struct engine_settings){.flow_limit_set = true});
	send(&s, &large, 10);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_FLOW_LIMIT]), 6);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 4);
	enable(&s, 2);
	scene_run(&s, SETTLE);
	scene_end(&s);
}

static void case_19_flow_limit(void **state)
{
	(void)state;
	over_pollers(case_19_limit);
}

/* netdev_max_backlog while packets stand there: what is there stays, and what comes counts. */
static void max_backlog_is_live(enum poller poller)
{
	struct source source;
	struct sink sink;
	struct scene s;

	begin(&s, true, 6, poller);
	set(&s, "a", -1, rps("2"));
	disable(&s, 2);
	source = by_hand(&s, 0, FLOWS);
	send(&s, &source, 500);
	set_engine(&s, (struct engine_settings){.max_backlog_set = true, .max_backlog = 10});
	send(&s, &source, 5);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 5);
	assert_int_equal(backlogs_held(&s), 500);
	set_engine(&s, (struct engine_settings){.max_backlog_set = true, .max_backlog = 2000});
	send(&s, &source, 700);
	assert_int_equal(backlogs_held(&s), 1200);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 5);
	sink = (struct sink){.scene = &s, .port = s.b};
	sink_start(&sink);
	enable(&s, 2);
	scene_run(&s, SETTLE);
	sink_stop(&sink);
	/* Its port has room for 1024. */
	assert_int_equal(sink.received + PORT_SUM(backlog_port(&s), dropped[DROP_TX_FULL]), 1200);
	assert_int_equal(sink.disorder, 0);
	scene_end(&s);
}

static void max_backlog_changes(void **state)
{
	(void)state;
	over_pollers(max_backlog_is_live);
}

/* A flow goes to where it was read, and moves when the CPU before has drained what it held. */
static void rfs_follows(enum poller poller)
{
	struct engine_config config = {.poller = poller, .sock_flow_entries = 1024};
	struct queue_settings table = {.rps_flow_set = true, .rps_flow_cnt = 64};
	struct watcher watcher;
	struct source source;
	struct scene s;
	struct sink sink = {.scene = &s};
	uint32_t hash;

	scene_begin_cpus(&s, true, 7, CPUS, config);
	watch(&watcher, &s);
	sink.port = s.b;
	sink_start(&sink);
	set(&s, "a", -1, table);
	source = by_hand(&s, 3, 1);
	send(&s, &source, 100);
	assert_int_equal(PORT_SUM(s.a, steered), 0);
	hash = watcher.hash[3];
	assert_int_not_equal(hash, 0);
	flow_record(s.engine, hash, 77); /* no such CPU */
	send(&s, &source, 10);
	assert_int_equal(PORT_SUM(s.a, steered), 0);
	flow_record(s.engine, hash, 2);
	send(&s, &source, 100);
	assert_int_equal(counter_read(&backlog(&s, 2)->received), 100);
	disable(&s, 2);
	send(&s, &source, 50);
	flow_record(s.engine, hash, 3);
	send(&s, &source, 50);
	assert_int_equal(cpu_record(&s, 2)->backlog.length, 100);
	assert_int_equal(counter_read(&backlog(&s, 3)->received), 0);
	enable(&s, 2);
	scene_run(&s, SETTLE);
	send(&s, &source, 50);
	assert_int_equal(counter_read(&backlog(&s, 2)->received), 200);
	assert_int_equal(counter_read(&backlog(&s, 3)->received), 50);
	set_engine(&s, (struct engine_settings){.sock_flow_entries_set = true});
	send(&s, &source, 30);
	assert_int_equal(PORT_SUM(s.a, steered), 250);
	sink_stop(&sink);
	assert_int_equal(sink.received, source.sent);
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(sink.missing, 0);
	scene_end(&s);
}

static void rfs_follows_when_drained(void **state)
{
	(void)state;
	over_pollers(rfs_follows);
}

/* A flow that was read on a CPU that has been taken away is as one that was read nowhere. */
static void rfs_forgets_away(enum poller poller)
{
	struct engine_config config = {.poller = poller, .sock_flow_entries = 1024};
	struct queue_settings table = {.rps_flow_set = true, .rps_flow_cnt = 64};
	struct engine_settings cpus = {.on_cpus_set = true};
	struct watcher watcher;
	struct source source;
	struct scene s;

	scene_begin_cpus(&s, true, 14, CPUS, config);
	watch(&watcher, &s);
	set(&s, "a", -1, table);
	source = by_hand(&s, 3, 1);
	send(&s, &source, 1);
	flow_record(s.engine, watcher.hash[3], 2);
	send(&s, &source, 10);
	assert_int_equal(PORT_SUM(s.a, steered), 10);
	assert_int_equal(cpuset_parse("0-1,3", &cpus.on_cpus), 0);
	set_engine(&s, cpus);
	send(&s, &source, 10);
	assert_int_equal(PORT_SUM(s.a, steered), 10);
	cpus.on_cpus = (struct cpuset){0};
	set_engine(&s, cpus);
	send(&s, &source, 10);
	assert_int_equal(PORT_SUM(s.a, steered), 20);
	scene_end(&s);
}

static void rfs_forgets_who_is_away(void **state)
{
	(void)state;
	over_pollers(rfs_forgets_away);
}

/* Neighbouring ports differ in a few bits: with no key do they all go to the same CPUs. */
static void neighbours_spread(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct source source;
		struct scene s;

		begin(&s, true, seed, POLLER_SOFTIRQ);
		set(&s, "a", -1, rps("0-3"));
		source = by_hand(&s, 0, FLOWS);
		send(&s, &source, FLOWS);
		for (unsigned i = 0; i < CPUS; i++)
			assert_true(counter_read(&backlog(&s, i)->received) > 0);
		scene_end(&s);
	}
}

/* Both directions of one UDP flow have the same hash. */
static bool directions_agree(struct scene *s)
{
	uint8_t there[42] = {
		[12] = 8, [14] = 0x45, [23] = 17, [29] = 9, [33] = 2, [35] = 7, [37] = 5};
	uint8_t back[42] = {
		[12] = 8, [14] = 0x45, [23] = 17, [29] = 2, [33] = 9, [35] = 5, [37] = 7};

	return flow_hash(&s->engine->hasher, there, sizeof(there)) ==
	       flow_hash(&s->engine->hasher, back, sizeof(back));
}

/* The hash changes while the engine runs, but not while packets that it placed are on their way. */
static void symmetric_set_live(enum poller poller)
{
	struct engine_settings on = {.symmetric_hash_set = true, .symmetric_hash = true};
	struct engine_settings off = {.symmetric_hash_set = true};
	struct source source;
	struct error err = {0};
	struct scene s;

	begin(&s, true, 13, poller);
	assert_false(directions_agree(&s));
	set(&s, "a", -1, rps("1"));
	set_engine(&s, on);
	assert_true(directions_agree(&s));
	disable(&s, 1);
	source = by_hand(&s, 0, FLOWS);
	send(&s, &source, 20);
	assert_int_equal(engine_set(s.engine, &off, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "symmetric_hash stays as it was"));
	assert_true(directions_agree(&s));
	assert_false(napi_disabled(s.a->queue[0].napi));
	enable(&s, 1);
	scene_run(&s, SETTLE);
	set_engine(&s, off);
	assert_false(directions_agree(&s));
	scene_end(&s);
}

static void symmetric_hash_is_live(void **state)
{
	(void)state;
	over_pollers(symmetric_set_live);
}

#define WAKES 64
struct wakes {
	char name[WAKES][16];
	uint32_t n;
};

static void wake_note(void *arg, const char *line)
{
	struct wakes *wakes = arg;
	const char *at = strstr(line, "napi/backlog-");

	if (at && strstr(line, " wake ") && wakes->n < WAKES)
		snprintf(wakes->name[wakes->n++], sizeof(wakes->name[0]), "%.15s", at);
}

/* All that one poll has put into backlogs is kicked once each after it, the own CPU's last. */
static void case_17_own_last(void **state)
{
	struct queue_settings thread = {.poller_set = true, .poller = POLLER_THREAD};
	struct wakes wakes = {.n = 0};
	struct source source;
	struct scene s;

	(void)state;
	for (unsigned own = 0; own < CPUS; own++) {
		char last[16];

		scene_trace(wake_note, &wakes);
		begin(&s, true, 11, POLLER_SOFTIRQ);
		set(&s, "backlog", -1, thread);
		set(&s, "a", 0, (struct queue_settings){.cpu_set = true, .cpu = own});
		set(&s, "a", -1, rps("0-3"));
		scene_run(&s, SETTLE);
		wakes.n = 0;
		source = by_hand(&s, 0, FLOWS);
		send(&s, &source, 64);
		assert_int_equal(wakes.n, CPUS);
		snprintf(last, sizeof(last), "napi/backlog-%u", own);
		assert_int_equal(strncmp(wakes.name[CPUS - 1], last, strlen(last)), 0);
		for (unsigned i = 0; i < CPUS; i++)
			assert_int_equal(cpu_record(&s, i)->backlog.received_rps, i != own);
		scene_end(&s);
	}
}

/* No backlog is worked on while another, with packets in it, has been left to nobody. */
static void case_17_seed(enum poller poller)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct watcher watcher;
		struct scene s;
		struct load load;

		begin(&s, true, seed, poller);
		watch(&watcher, &s);
		set(&s, "a", -1, rps("0-3"));
		load_start(&load, &s, (struct source){.count = 3000, .burst = 40});
		load_end(&load, &s);
		assert_int_equal(watcher.forgotten, 0);
		scene_end(&s);
	}
}

static void case_17_remote_first(void **state)
{
	(void)state;
	over_pollers(case_17_seed);
}

/* Two ports share a backlog: each one's packets go its way, by the transmit queue they had before.
 */
static void ports_share(enum poller poller)
{
	struct source first, second;
	struct sink sink, wide;
	struct scene s;
	struct port *c, *d;

	begin(&s, true, 12, poller);
	d = scene_port(&s, "d,queues=4", NULL);
	c = scene_port(&s, "c", d);
	set(&s, "a", -1, rps("3"));
	set(&s, "c", -1, rps("3"));
	disable(&s, 3);
	first = by_hand(&s, 0, FLOWS);
	second = by_hand(&s, 0, FLOWS);
	second.port = c;
	for (int i = 0; i < 5; i++) {
		send(&s, &first, 11);
		send(&s, &second, 13);
	}
	sink = (struct sink){.scene = &s, .port = s.b};
	wide = (struct sink){.scene = &s, .port = d}; /* takes from its queue 0 */
	sink_start(&sink);
	sink_start(&wide);
	enable(&s, 3);
	scene_run(&s, SETTLE);
	sink_stop(&sink);
	sink_stop(&wide);
	assert_int_equal(sink.received, 55);
	assert_int_equal(wide.received, 65);
	assert_int_equal(sink.disorder + wide.disorder, 0);
	scene_end(&s);
}

static void ports_share_a_backlog(void **state)
{
	(void)state;
	over_pollers(ports_share);
}

/* A port that is removed leaves nothing in the backlogs; what others put there stays. */
static void purged(enum poller poller)
{
	struct source gone, stays;
	struct sink sink;
	struct scene s;
	struct port *c, *d;

	begin(&s, true, 8, poller);
	d = scene_port(&s, "d", NULL);
	c = scene_port(&s, "c", d);
	set(&s, "a", -1, rps("1"));
	set(&s, "c", -1, rps("1,2"));
	disable(&s, 1);
	disable(&s, 2);
	gone = by_hand(&s, 0, FLOWS);
	stays = by_hand(&s, 0, FLOWS);
	stays.port = c;
	for (int i = 0; i < 4; i++) {
		send(&s, &stays, 30);
		send(&s, &gone, 25);
	}
	assert_int_equal(backlogs_held(&s), 220);
	assert_int_equal(engine_port_remove(s.engine, s.a, NULL), 0);
	assert_int_equal(counter_read(&backlog(&s, 1)->dropped[DROP_PORT_REMOVED]), 100);
	assert_int_equal(port_held(backlog_port(&s)), 0);
	assert_true(napi_disabled(backlog_port(&s)->queue[1].napi));
	sink = (struct sink){.scene = &s, .port = d};
	sink_start(&sink);
	enable(&s, 1);
	enable(&s, 2);
	scene_run(&s, SETTLE);
	sink_stop(&sink);
	assert_int_equal(backlogs_held(&s), 0);
	assert_int_equal(sink.received, 120);
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(sink.missing, 0);
	/* What was set for it holds again when it comes back. */
	s.a = scene_port(&s, "a", s.b);
	gone.port = s.a;
	send(&s, &gone, 10);
	assert_int_equal(counter_read(&backlog(&s, 1)->received) +
				 counter_read(&backlog(&s, 2)->received),
			 230);
	scene_end(&s);
}

static void removal_purges(void **state)
{
	(void)state;
	over_pollers(purged);
}

/* Removed while everybody works: nothing is lost track of. */
static void removed_at_work(enum poller poller)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct load load;
		struct scene s;
		uint64_t out = 0;

		begin(&s, true, seed, poller);
		set(&s, "a", -1, rps("0-3"));
		load_start(&load, &s, (struct source){.count = 2000, .burst = 1 + seed % 60});
		source_stop(&load.source);
		assert_int_equal(engine_port_remove(s.engine, s.a, NULL), 0);
		scene_run(&s, SETTLE);
		sink_stop(&load.sink);
		assert_int_equal(load.sink.disorder, 0);
		assert_int_equal(backlogs_held(&s), 0);
		for (unsigned i = 0; i < CPUS; i++)
			out += counter_read(&backlog(&s, i)->dropped[DROP_PORT_REMOVED]);
		assert_true(load.sink.received + out <= load.source.sent);
		scene_end(&s);
	}
}

static void removal_at_work(void **state)
{
	(void)state;
	over_pollers(removed_at_work);
}

/* A backlog that does not pass: the change fails in its time, and all is as it was. */
static void timed_out(enum poller poller)
{
	struct queue_settings both = rps("2");
	struct source source;
	struct sink sink;
	struct scene s;
	int64_t start;

	begin(&s, true, 9, poller);
	set(&s, "a", -1, rps("1"));
	disable(&s, 1);
	source = by_hand(&s, 0, FLOWS);
	send(&s, &source, 20);
	start = machine_now(s.machine);
	refused(&s, "a", rps("2"), -ETIMEDOUT, "a/0: steering stays as it was");
	assert_true(machine_now(s.machine) - start < 3 * NSEC_PER_SEC);
	/* Also what had been done for this queue before that failed. */
	both.poller_set = true;
	both.poller = poller == POLLER_THREAD ? POLLER_SOFTIRQ : POLLER_THREAD;
	refused(&s, "a", both, -ETIMEDOUT, "a/0: steering stays as it was");
	assert_int_equal(napi_poller(s.a->queue[0].napi), poller);
	assert_false(napi_disabled(s.a->queue[0].napi));
	send(&s, &source, 20);
	assert_int_equal(cpu_record(&s, 1)->backlog.length, 40);
	sink = (struct sink){.scene = &s, .port = s.b};
	sink_start(&sink);
	enable(&s, 1);
	set(&s, "a", -1, rps("2"));
	send(&s, &source, 20);
	sink_stop(&sink);
	assert_int_equal(counter_read(&backlog(&s, 1)->received), 40);
	assert_int_equal(counter_read(&backlog(&s, 2)->received), 20);
	assert_int_equal(sink.received, 60);
	assert_int_equal(sink.disorder, 0);
	scene_end(&s);
}

static void change_times_out(void **state)
{
	(void)state;
	over_pollers(timed_out);
}

static void refused_engine(struct scene *s, struct engine_settings settings, int code,
			   const char *text)
{
	struct error err = {0};

	assert_int_equal(engine_set(s->engine, &settings, &err), code);
	if (!strstr(err.text, text))
		fail_msg("\"%s\" does not say \"%s\"", err.text, text);
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
	refused_engine(&s, (struct engine_settings){.max_backlog_set = true}, -ERANGE,
		       "netdev_max_backlog 0: must be 1 to 1048576");
	refused_engine(&s, (struct engine_settings){.flow_limit_set = true, .flow_limit = 1},
		       -EINVAL, "flow_limit 1: must be a power of two, 2 to 65536");
	refused_engine(
		&s, (struct engine_settings){.sock_flow_entries_set = true, .sock_flow_entries = 3},
		-EINVAL, "rps_sock_flow_entries 3: must be a power of two");
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
		cmocka_unit_test(case_17_own_last),
		cmocka_unit_test(case_17_remote_first),
		cmocka_unit_test(case_19_drops_are_counted),
		cmocka_unit_test(what_got_in_is_kicked),
		cmocka_unit_test(case_19_flow_limit),
		cmocka_unit_test(max_backlog_changes),
		cmocka_unit_test(rfs_follows_when_drained),
		cmocka_unit_test(rfs_forgets_who_is_away),
		cmocka_unit_test(neighbours_spread),
		cmocka_unit_test(symmetric_hash_is_live),
		cmocka_unit_test(ports_share_a_backlog),
		cmocka_unit_test(removal_purges),
		cmocka_unit_test(removal_at_work),
		cmocka_unit_test(change_times_out),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
