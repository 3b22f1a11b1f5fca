/* SPDX-License-Identifier: BSD-2-Clause */
/* Poller auto: it finds a good poller for each workload, does not flap, costs nothing when idle. */
#include "scene.h"

#include <errno.h>

#include <core/engine.h>
#include <core/napi.h>
#include <poller/softirq.h>

#define PORTS 6
#define PACKET_NS 2000 /* so that a saturated second is some thousand polls */

/* A port whose packets circle: so many of them. */
static struct port *circle(struct scene *s, const char *name, uint32_t circling)
{
	struct port *port = scene_port(s, name, NULL);

	scene_circle(s, port, circling);
	return port;
}

static struct step hog_step(void *arg)
{
	machine_charge(arg, 50 * NSEC_PER_USEC);
	return STEP(STEP_YIELD);
}

/* Requests one at a time: what comes out at b is sent into a again, after some thought. */
struct client {
	struct scene *scene;
	struct context *context;
	struct runner *runner;
};

static struct step client_step(void *arg)
{
	struct client *client = arg;
	struct machine *machine = client->scene->machine;
	struct packet *p;

	machine_charge(machine, NSEC_PER_USEC);
	if (!mem_port_receive(client->scene->b, &p, 1))
		return STEP_UNTIL(machine_now(machine) + 3 * NSEC_PER_USEC);
	assert_int_equal(mem_port_send(client->scene->a, &p, 1), 1);
	return STEP(STEP_YIELD);
}

static void client_start(struct client *client, struct scene *scene)
{
	struct runner_config config = {.name = "client", .step = client_step, .arg = client};
	struct packet *p;

	client->scene = scene;
	assert_int_equal(engine_context_open(scene->engine, &client->context), 0);
	assert_int_equal(packet_alloc(&client->context->cache, &p, 1), 1);
	memset(p->data, 2, 60);
	p->len = 60;
	assert_int_equal(mem_port_send(scene->a, &p, 1), 1);
	assert_int_equal(runner_start(scene->machine, &config, &client->runner, NULL), 0);
}

static void client_stop(struct client *client)
{
	struct packet *p;

	runner_stop(client->runner);
	scene_run(client->scene, NSEC_PER_SEC);
	while (mem_port_receive(client->scene->b, &p, 1))
		packet_free(&client->context->cache, &p, 1);
	engine_context_close(client->context);
}

/* What runs beside what: the ports' engine CPUs, saturated or not, and programs. */
struct workload {
	const char *name;
	unsigned cpus, ports;
	bool one_cpu;  /* all NAPIs belong to engine CPU 0 */
	bool requests; /* one packet at a time, through port a, instead of saturation */
	unsigned hogs; /* ordinary programs, on CPU 0 upwards */
};

static const struct workload workloads[] = {
	{"one saturated", 4, 1, true, false, 0},
	{"four saturated on one engine CPU of four", 4, 4, true, false, 0},
	{"five saturated on two CPUs", 2, 5, false, false, 0},
	{"two saturated beside programs", 2, 2, false, false, 2},
	{"one saturated, a program on its CPU", 4, 1, true, false, 1},
	{"one packet at a time", 4, 1, true, true, 0},
	{"one packet at a time beside programs", 2, 1, true, true, 2},
};

#define WORKLOADS (sizeof(workloads) / sizeof(*workloads))

struct run {
	struct scene scene;
	struct port *port[PORTS];
	struct runner *hog[PORTS];
	struct client client;
	const struct workload *load;
};

static void run_begin(struct run *run, const struct workload *load, enum poller poller,
		      uint64_t seed)
{
	struct engine_config config = {.poller = poller, .packet_ns = PACKET_NS};

	memset(run, 0, sizeof(*run));
	run->load = load;
	scene_begin_cpus(&run->scene, true, seed, load->cpus, config);
	for (unsigned i = 0; i < load->hogs; i++) {
		struct runner_config hog = {.name = "hog", .step = hog_step};

		hog.arg = run->scene.machine;
		cpuset_add(&hog.placement.cpus, i);
		assert_int_equal(runner_start(run->scene.machine, &hog, &run->hog[i], NULL), 0);
	}
	for (unsigned i = 0; i < load->ports; i++) {
		struct queue_settings first = {.cpu_set = true};
		char name[8];

		snprintf(name, sizeof(name), load->requests ? "a" : "c%u", i);
		if (load->one_cpu)
			assert_int_equal(
				engine_queue_set(run->scene.engine, name, -1, &first, NULL, NULL),
				0);
		run->port[i] = load->requests ? run->scene.a : circle(&run->scene, name, 256);
	}
	if (load->requests)
		client_start(&run->client, &run->scene);
}

static uint64_t run_sum(struct run *run, size_t counter)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < run->load->ports; i++)
		sum += port_sum(run->port[i], offsetof(struct napi_counters, received) + counter);
	return sum;
}

#define RUN_SUM(run, field)                                                                        \
	run_sum(run,                                                                               \
		offsetof(struct napi_counters, field) - offsetof(struct napi_counters, received))

static void run_end(struct run *run)
{
	if (run->load->requests)
		client_stop(&run->client);
	for (unsigned i = 0; i < run->load->ports; i++)
		scene_calm(&run->scene, run->port[i]);
	for (unsigned i = 0; i < run->load->hogs; i++)
		runner_stop(run->hog[i]);
	scene_end(&run->scene);
}

/* Packets in two seconds, when it has had time to choose. */
static uint64_t packets(const struct workload *load, enum poller poller, uint64_t seed,
			const char **chosen)
{
	struct run run;
	uint64_t before;

	run_begin(&run, load, poller, seed);
	scene_run(&run.scene, (poller == POLLER_AUTO ? 12 : 1) * NSEC_PER_SEC);
	before = RUN_SUM(&run, received);
	scene_run(&run.scene, 2 * NSEC_PER_SEC);
	before = RUN_SUM(&run, received) - before;
	*chosen = poller_name(napi_poller(run.port[0]->queue[0].napi));
	run_end(&run);
	return before;
}

/* Never more than a tenth worse than the best fixed one; in virtual time, so this is exact. */
static void finds_the_best(void **state)
{
	(void)state;
	for (size_t i = 0; i < WORKLOADS; i++) {
		uint64_t best = 0, own;
		const char *chosen, *name = "";

		for (unsigned poller = 0; poller < POLLER_MAX; poller++) {
			uint64_t n = packets(&workloads[i], (enum poller)poller, i, &chosen);

			print_message("  %s: %s %lu\n", workloads[i].name, chosen,
				      (unsigned long)n);
			if (n > best) {
				best = n;
				name = poller_name((enum poller)poller);
			}
		}
		own = packets(&workloads[i], POLLER_AUTO, i, &chosen);
		print_message("  %s: auto %lu (%s), %.3f of %s\n", workloads[i].name,
			      (unsigned long)own, chosen, (double)own / (double)best, name);
		assert_true(own * 10 >= best * 9);
	}
}

static enum poller asked(const struct port *port)
{
	const struct counters_file *file = engine_counters(port->engine);

	for (uint32_t i = 0; i < file->queues; i++) {
		const struct queue_record *r = counters_queue_at(file, i);

		if (r->in_use && !strcmp(r->port_name, port->name))
			return (enum poller)r->poller_asked;
	}
	return POLLER_MAX;
}

/* Asked for in every way, kept, shown; ended by another poller that is set. */
static void is_asked_for(void **state)
{
	struct queue_settings automatic = {.poller_set = true, .poller = POLLER_AUTO};
	struct queue_settings thread = {.poller_set = true, .poller = POLLER_THREAD};
	struct queue_settings cpu = {.cpu_set = true, .cpu = 1};
	enum poller parsed;
	struct port *c;
	struct scene s;

	(void)state;
	scene_virtual_only();
	assert_int_equal(poller_parse("auto", &parsed), 0);
	assert_int_equal(parsed, POLLER_AUTO);
	assert_string_equal(poller_name(POLLER_AUTO), "auto");

	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(engine_queue_set(s.engine, "a", 0, &thread, NULL, NULL), 0);
	assert_int_equal(engine_queue_set(s.engine, "a", 0, &automatic, NULL, NULL), 0);
	assert_int_equal(asked(s.a), POLLER_AUTO);
	assert_int_equal(napi_poller(s.a->queue[0].napi), POLLER_THREAD); /* for now */
	assert_int_equal(engine_queue_set(s.engine, "a", 0, &cpu, NULL, NULL), 0);
	assert_int_equal(asked(s.a), POLLER_AUTO);
	scene_run(&s, NSEC_PER_SEC);
	assert_int_equal(engine_queue_set(s.engine, "a", 0, &thread, NULL, NULL), 0);
	assert_int_equal(asked(s.a), POLLER_THREAD);
	assert_int_equal(napi_poller_set(s.b->queue[0].napi, POLLER_AUTO, NSEC_PER_SEC, NULL, NULL),
			 0);
	assert_int_equal(asked(s.b), POLLER_AUTO);
	assert_int_equal(
		napi_poller_set(s.b->queue[0].napi, POLLER_WORKQUEUE, NSEC_PER_SEC, NULL, NULL), 0);
	assert_int_equal(asked(s.b), POLLER_WORKQUEUE);

	/* For one that comes later, and comes again; and as the default. */
	assert_int_equal(engine_queue_set(s.engine, "c", -1, &automatic, NULL, NULL), 0);
	c = scene_port(&s, "c", NULL);
	assert_int_equal(asked(c), POLLER_AUTO);
	assert_int_equal(engine_port_remove(s.engine, c, NULL), 0);
	c = scene_port(&s, "c", NULL);
	assert_int_equal(asked(c), POLLER_AUTO);
	assert_int_equal(engine_poller_default_set(s.engine, POLLER_AUTO), 0);
	assert_int_equal(asked(scene_port(&s, "d", NULL)), POLLER_AUTO);
	scene_end(&s); /* the machine refuses to end with runners left */
}

/* Without traffic, at any poller it may have chosen: a look a second. */
static void idles(void **state)
{
	struct virtual_stats before, after;
	struct scene s;

	(void)state;
	scene_virtual_only();
	for (unsigned poller = 0; poller < POLLER_MAX; poller++) {
		struct queue_settings automatic = {.poller_set = true, .poller = POLLER_AUTO};

		scene_begin(&s, true, poller, (enum poller)poller);
		assert_int_equal(engine_queue_set(s.engine, "a", -1, &automatic, NULL, NULL), 0);
		assert_int_equal(engine_queue_set(s.engine, "b", -1, &automatic, NULL, NULL), 0);
		scene_run(&s, 5 * NSEC_PER_SEC);
		machine_virtual_stats(s.machine, &before);
		scene_run(&s, 10 * NSEC_PER_SEC);
		machine_virtual_stats(s.machine, &after);
		/* The tick's, and its own. */
		assert_in_range(after.steps - before.steps, 10, 40);
		scene_end(&s);
	}
}

/*
 * Loads that come and go, with programs beside them, from seeds: it moves now and then, always
 * less, and no packet is lost uncounted or out of order.
 */
static void does_not_flap(void **state)
{
	(void)state;
	scene_virtual_only();
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct engine_config config = {.poller = POLLER_AUTO, .packet_ns = PACKET_NS};
		struct sink sink = {0};
		struct scene s;
		uint64_t sent = 0, full;

		scene_begin_with(&s, true, seed, config);
		sink.scene = &s;
		sink.port = s.b;
		sink_start(&sink);
		for (int burst = 0; burst < 30; burst++) {
			struct source source = {.scene = &s, .port = s.a};
			struct runner_config hog = {.name = "hog", .step = hog_step};
			struct runner *runner = NULL;

			source.burst = 1 + (uint32_t)machine_virtual_draw(s.machine, 64);
			source.interval = (int64_t)(50 + machine_virtual_draw(s.machine, 1000)) *
					  NSEC_PER_USEC;
			source.flow = (uint32_t)burst % 8;
			sink.next[burst % 8] = 0;
			hog.arg = s.machine;
			if (machine_virtual_draw(s.machine, 2))
				assert_int_equal(runner_start(s.machine, &hog, &runner, NULL), 0);
			source_start(&source);
			scene_run(&s, (int64_t)machine_virtual_draw(s.machine, 3 * NSEC_PER_SEC));
			source_stop(&source);
			sent += source.sent;
			if (runner)
				runner_stop(runner);
			scene_run(&s, (int64_t)machine_virtual_draw(s.machine, NSEC_PER_SEC));
		}
		scene_drain(&s, s.a, sent);
		sink_stop(&sink);
		if (PORT_SUM(s.a, switches) > 20)
			fail_msg("seed %lu: %lu switches in a minute", (unsigned long)seed,
				 (unsigned long)PORT_SUM(s.a, switches));
		/* The sink waits for its turn beside hogs and busy/N. */
		full = PORT_SUM(s.a, dropped[DROP_TX_FULL]);
		assert_int_equal(sink.received + full, sent);
		assert_int_equal(sink.disorder, 0);
		assert_true(sink.missing <= full && full <= sent / 100);
		scene_end(&s);
	}
}

/* Disabled, set, moved and removed while it tries: nothing is left over, nothing is lost. */
static void is_disturbed(void **state)
{
	struct queue_settings thread = {.poller_set = true, .poller = POLLER_THREAD};
	struct queue_settings automatic = {.poller_set = true, .poller = POLLER_AUTO};
	static const struct workload load = {"four", 4, 4, true, false, 0};

	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct run run;

		run_begin(&run, &load, POLLER_AUTO, seed);
		for (int i = 0; i < 60; i++) {
			struct port *port = run.port[machine_virtual_draw(run.scene.machine, 4)];
			struct napi *napi = port->queue[0].napi;
			struct queue_settings cpu = {.cpu_set = true};

			scene_run(&run.scene, (int64_t)machine_virtual_draw(run.scene.machine,
									    NSEC_PER_SEC / 2));
			cpu.cpu = (unsigned)machine_virtual_draw(run.scene.machine, 4);
			switch (machine_virtual_draw(run.scene.machine, 4)) {
			case 0:
				assert_int_equal(napi_disable(napi, NSEC_PER_SEC), 0);
				scene_run(&run.scene, NSEC_PER_SEC / 4);
				assert_int_equal(napi_enable(napi), 0);
				break;
			case 1:
				assert_int_equal(engine_queue_set(run.scene.engine, port->name, -1,
								  &thread, NULL, NULL),
						 0);
				assert_int_equal(napi_poller(napi), POLLER_THREAD);
				break;
			case 2:
				assert_int_equal(engine_queue_set(run.scene.engine, port->name, -1,
								  &cpu, NULL, NULL),
						 0);
				break;
			}
			assert_int_equal(engine_queue_set(run.scene.engine, port->name, -1,
							  &automatic, NULL, NULL),
					 0);
		}
		run_end(&run);
	}
}

/*
 * A NAPI in a step of 300 ms, as the costs here are, to which a switch has been begun the way that
 * poller auto does.
 */
static struct napi *switching(struct scene *s, enum poller wish)
{
	struct engine_config config = {.packet_ns = NSEC_PER_MSEC, .budget_usecs = 1000000};
	struct queue_settings first = {.cpu_set = true};
	struct napi *napi;

	scene_begin_with(s, true, 1, config);
	assert_int_equal(engine_queue_set(s->engine, "c", -1, &first, NULL, NULL), 0);
	napi = circle(s, "c", 256)->queue[0].napi;
	scene_run(s, 10 * NSEC_PER_MSEC);
	engine_lock(s->engine);
	assert_int_equal(napi_switch_begin(napi, wish, &s->engine->softnet[1], NULL), 0);
	engine_unlock(s->engine);
	assert_true(napi_state_load(napi) & NAPI_SWITCH);
	return napi;
}

static void switching_end(struct scene *s)
{
	scene_calm(s, engine_port_find(s->engine, "c"));
	scene_end(s);
}

/* Control waits for such a switch too, and that is of the time which it was given. */
static void control_keeps_its_time(void **state)
{
	struct napi *napi;
	struct scene s;
	int64_t start;

	(void)state;
	scene_virtual_only();
	napi = switching(&s, POLLER_THREAD);
	start = machine_now(s.machine);
	assert_int_equal(napi_disable(napi, NSEC_PER_MSEC), -ETIMEDOUT);
	assert_int_equal(machine_now(s.machine) - start, NSEC_PER_MSEC);
	switching_end(&s);

	napi = switching(&s, POLLER_THREAD);
	start = machine_now(s.machine);
	assert_int_equal(napi_poller_set(napi, POLLER_WORKQUEUE, NSEC_PER_MSEC, NULL, NULL),
			 -ETIMEDOUT);
	assert_int_equal(machine_now(s.machine) - start, NSEC_PER_MSEC);
	assert_int_equal(napi_poller(napi), POLLER_SOFTIRQ);
	switching_end(&s);
}

/* What is asked for is what it is about to have: it has that, where it was about to have it. */
static void is_set_to_what_it_begins(void **state)
{
	struct napi *napi;
	struct scene s;

	(void)state;
	scene_virtual_only();
	napi = switching(&s, POLLER_BUSY_POLL);
	assert_int_equal(napi_poller_set(napi, POLLER_BUSY_POLL, NSEC_PER_SEC, NULL, NULL), 0);
	assert_int_equal(counter_read(&napi_counters(napi)->switches), 1);
	assert_int_equal(softnet_cpu(napi->softnet), 1);
	switching_end(&s);
}

/* With real threads: it looks and switches while control does, and while packets circle. */
static void on_the_host(void **state)
{
	struct queue_settings automatic = {.poller_set = true, .poller = POLLER_AUTO};
	struct port *port[2];
	struct scene s;

	(void)state;
	scene_begin(&s, false, 1, POLLER_AUTO);
	port[0] = circle(&s, "c0", 256);
	port[1] = circle(&s, "c1", 1);
	for (int i = 0; i < 40; i++) {
		struct queue_settings set = {.poller_set = i % 3 == 0, .weight_set = true};
		struct port *one = port[i % 2];

		set.poller = (enum poller)(i / 3 % POLLER_MAX);
		set.weight = 1 + (uint32_t)i;
		scene_run(&s, 37 * NSEC_PER_MSEC);
		scene_set(&s, one->name, -1, set);
		if (i % 5 == 0) {
			scene_disable(one->queue[0].napi);
			assert_int_equal(napi_enable(one->queue[0].napi), 0);
		}
		scene_set(&s, one->name, -1, automatic);
	}
	scene_run(&s, 3 * NSEC_PER_SEC);
	for (int i = 0; i < 2; i++)
		scene_calm(&s, port[i]);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_asked_for),
		cmocka_unit_test(idles),
		cmocka_unit_test(finds_the_best),
		cmocka_unit_test(does_not_flap),
		cmocka_unit_test(is_disturbed),
		cmocka_unit_test(control_keeps_its_time),
		cmocka_unit_test(is_set_to_what_it_begins),
		cmocka_unit_test(on_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
