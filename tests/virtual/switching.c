/* SPDX-License-Identifier: BSD-2-Clause */
/* Switching, disabling, removing: cases 1 to 8. One body over pollers and machines. */
#include "scene.h"

#include <dirent.h>
#include <unistd.h>

/* Both directions at more than the engine takes, or less. */
struct load {
	struct source there, back;
	struct sink sink, sink_back;
};

static void load_start(struct load *load, struct scene *s, uint32_t burst, int64_t interval)
{
	memset(load, 0, sizeof(*load));
	load->there =
		(struct source){.scene = s, .port = s->a, .burst = burst, .interval = interval};
	load->back = (struct source){
		.scene = s, .port = s->b, .burst = burst, .interval = interval, .flow = 1};
	load->sink = (struct sink){.scene = s, .port = s->b};
	load->sink_back = (struct sink){.scene = s, .port = s->a};
	sink_start(&load->sink);
	sink_start(&load->sink_back);
	source_start(&load->there);
	source_start(&load->back);
}

/* Nothing lost between source and sink but what was counted, and nothing out of order. */
static void load_stop(struct load *load, struct scene *s)
{
	source_stop(&load->there);
	source_stop(&load->back);
	scene_drain(s, s->a, load->there.sent);
	scene_drain(s, s->b, load->back.sent);
	sink_stop(&load->sink);
	sink_stop(&load->sink_back);
	assert_int_equal(PORT_SUM(s->a, received), load->there.sent);
	assert_int_equal(PORT_SUM(s->b, received), load->back.sent);
	assert_int_equal(load->sink.disorder + load->sink_back.disorder, 0);
	assert_int_equal(load->sink.received, PORT_SUM(s->a, transmitted));
	assert_int_equal(load->sink_back.received, PORT_SUM(s->b, transmitted));
	assert_int_equal(load->sink.received + PORT_SUM(s->a, dropped[DROP_TX_FULL]),
			 load->there.sent);
	assert_int_equal(load->sink_back.received + PORT_SUM(s->b, dropped[DROP_TX_FULL]),
			 load->back.sent);
}

/* Threads of this process whose name starts so. */
static int threads_named(const char *prefix)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[300], name[64] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && !strncmp(name, prefix, strlen(prefix)))
			n++;
		fclose(file);
	}
	closedir(dir);
	return n;
}

/* A thread that has been joined may be listed longer, until it has run to its very end. */
static void assert_threads(const char *prefix, int n)
{
	for (int i = 0; i < SCENE_PATIENCE * 1000 && threads_named(prefix) != n; i++)
		usleep(1000);
	assert_int_equal(threads_named(prefix), n);
}

static void assert_no_threads(void)
{
	static const char *const ours[] = {"napi", "irq/", "ksoftirqd/", "source", "sink"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		assert_threads(ours[i], 0);
}

/* With the port that sends for it, when it has one. */
static void set(struct scene *s, const char *port, enum poller poller)
{
	struct queue_settings settings = {.poller_set = true, .poller = poller};
	char tx[64];

	scene_set(s, port, -1, settings);
	snprintf(tx, sizeof(tx), "%s-tx", port);
	if (scene_tx() && !strstr(port, "-tx"))
		set(s, tx, poller);
}

/* Case 1. */
static void same_poller_succeeds(enum poller poller)
{
	struct scene s;
	int64_t took = -1;

	scene_begin(&s, true, 1, poller);
	assert_int_equal(napi_poller_set(s.a->queue[0].napi, poller, NSEC_PER_SEC, &took, NULL), 0);
	assert_int_equal(took, 0);
	assert_int_equal(PORT_SUM(s.a, switches), 0);
	assert_int_equal(s.lines, 0);
	scene_end(&s);
}

static void case_1_same_poller(void **state)
{
	(void)state;
	over_pollers(same_poller_succeeds);
}

/* Case 2. */
static void case_2_before_it_exists(void **state)
{
	struct scene s;
	struct port *c;

	(void)state;
	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	set(&s, "c", POLLER_THREAD);
	c = scene_port(&s, "c", NULL);
	assert_int_equal(napi_poller(c->queue[0].napi), POLLER_THREAD);
	assert_int_equal(engine_port_remove(s.engine, c, NULL), 0);
	c = scene_port(&s, "c", NULL);
	assert_int_equal(napi_poller(c->queue[0].napi), POLLER_THREAD);
	/* A setting for one queue is stronger than one for all that came before it. */
	assert_int_equal(engine_queue_set(s.engine, "d", 0,
					  &(struct queue_settings){.weight_set = true, .weight = 7},
					  NULL, NULL),
			 0);
	c = scene_port(&s, "d", NULL);
	assert_int_equal(napi_weight(c->queue[0].napi), 7);
	assert_int_equal(napi_poller(c->queue[0].napi), POLLER_SOFTIRQ);
	scene_end(&s);
}

/* Case 3. */
static void pairs(bool virtual)
{
	for (unsigned from = 0; from < POLLER_MAX; from++) {
		for (unsigned to = 0; to < POLLER_MAX; to++) {
			struct scene s;
			struct load load;
			uint64_t before;

			if (from == to)
				continue;
			scene_begin(&s, virtual, from * 16 + to, (enum poller)from);
			load_start(&load, &s, 8, 10 * NSEC_PER_USEC);
			scene_run(&s, 5 * NSEC_PER_MSEC);
			set(&s, "a", (enum poller)to);
			set(&s, "b", (enum poller)to);
			assert_int_equal(napi_poller(s.a->queue[0].napi), to);
			before = PORT_SUM(s.a, polls);
			scene_polled(&s, s.a, before + 10);
			if (!virtual)
				assert_threads("napi/", to == POLLER_THREAD ? 2 << scene_tx() : 0);
			load_stop(&load, &s);
			scene_end(&s);
		}
	}
	assert_no_threads();
}

static void case_3_all_pairs(void **state)
{
	(void)state;
	pairs(true);
	pairs(false);
}

/* Case 4. A sanitizer keeps freed memory for a while, and takes its time. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_IS_OURS 0
#define SWITCHES 1000
#else
#define MEMORY_IS_OURS 1
#define SWITCHES 10000
#endif

/* Resident, KiB. */
static long memory_now(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size = 0, resident = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void switches(bool virtual, int count)
{
	struct scene s;
	struct load load;
	long memory = 0;
	unsigned random = 4;
	int64_t limit;

	scene_begin(&s, virtual, 4, POLLER_SOFTIRQ);
	load_start(&load, &s, 64, NSEC_PER_USEC); /* more than it can take */
	limit = machine_now(s.machine) + 60 * NSEC_PER_SEC;
	/* On the host the source may not have had its CPU by then. */
	for (int i = 0; i < count || (!virtual && !PORT_SUM(s.a, full_polls)); i++) {
		random = random * 1103515245 + 12345;
		set(&s, random >> 16 & 1 ? "a" : "b", (enum poller)((random >> 17) % POLLER_MAX));
		if (i == count / 10)
			memory = memory_now();
		/* A host that others keep busy need not do all of them. */
		if (!virtual && i > count / 5 && machine_now(s.machine) > limit)
			break;
	}
	assert_true(PORT_SUM(s.a, full_polls) > 0);
	if (MEMORY_IS_OURS) /* constant, but for what the C library keeps of ended threads */
		assert_true(memory_now() < memory + 4096);
	load_stop(&load, &s);
	scene_end(&s);
	assert_no_threads();
}

static void case_4_random_switches(void **state)
{
	(void)state;
	switches(true, SWITCHES);
	switches(false, scene_tx() ? SWITCHES / 10 : SWITCHES);
}

/* Case 5. */
static void disabled_at_saturation(bool virtual, enum poller poller)
{
	struct scene s;
	struct load load;
	struct napi *napi;
	uint64_t before;

	scene_begin(&s, virtual, 5, poller);
	napi = s.a->queue[0].napi;
	load_start(&load, &s, 64, NSEC_PER_USEC);
	for (int i = 0; i < 20; i++) {
		scene_run(&s, NSEC_PER_MSEC);
		scene_disable(napi);
		assert_true(napi_disabled(napi));
		before = PORT_SUM(s.a, polls);
		scene_run(&s, NSEC_PER_MSEC);
		assert_int_equal(PORT_SUM(s.a, polls), before);
		assert_int_equal(napi_enable(napi), 0);
		scene_polled(&s, s.a, before);
	}
	load_stop(&load, &s);
	scene_end(&s);
}

static void disabled_virtual(enum poller poller)
{
	disabled_at_saturation(true, poller);
}

static void disabled_host(enum poller poller)
{
	disabled_at_saturation(false, poller);
}

static void case_5_disable(void **state)
{
	(void)state;
	over_pollers(disabled_virtual);
	over_pollers(disabled_host);
}

/* Case 6: every schedule around an enable is served; nothing stays behind. */
static void enable_races(bool virtual, enum poller poller)
{
	struct scene s;
	struct load load;

	scene_begin(&s, virtual, 6, poller);
	load_start(&load, &s, 1, 700);
	for (int i = 0; i < 1000; i++) {
		scene_disable(s.a->queue[0].napi);
		assert_int_equal(napi_enable(s.a->queue[0].napi), 0);
		scene_run(&s, i % 7 * NSEC_PER_USEC);
	}
	load_stop(&load, &s); /* drains with interrupts alone, or fails */
	scene_end(&s);
}

static void enable_virtual(enum poller poller)
{
	enable_races(true, poller);
}

static void enable_host(enum poller poller)
{
	enable_races(false, poller);
}

static void case_6_enable_races_schedule(void **state)
{
	(void)state;
	over_pollers(enable_virtual);
	over_pollers(enable_host);
}

/* Case 7. */
static void switch_while_disabled(enum poller poller)
{
	enum poller other = (enum poller)((poller + 1) % POLLER_MAX);
	struct scene s;
	struct source source = {.scene = &s, .burst = 4, .interval = NSEC_PER_USEC, .count = 100};
	int64_t before;

	scene_begin(&s, true, 7, poller);
	source.port = s.a;
	assert_int_equal(napi_disable(s.a->queue[0].napi, NSEC_PER_SEC), 0);
	source_start(&source);
	scene_run(&s, NSEC_PER_MSEC);
	before = machine_now(s.machine);
	assert_int_equal(napi_poller_set(s.a->queue[0].napi, other, NSEC_PER_SEC, NULL, NULL), 0);
	assert_int_equal(machine_now(s.machine), before); /* no virtual time at all */
	assert_int_equal(napi_poller(s.a->queue[0].napi), other);
	assert_true(napi_disabled(s.a->queue[0].napi));
	assert_int_equal(PORT_SUM(s.a, received), 0);
	assert_int_equal(napi_enable(s.a->queue[0].napi), 0);
	source_stop(&source);
	scene_drain(&s, s.a, 100);
	scene_end(&s);
}

static void case_7_switch_disabled(void **state)
{
	(void)state;
	over_pollers(switch_while_disabled);
}

/* Case 8. */
static void removed_while_polled(bool virtual, enum poller poller)
{
	for (int i = 0; i < 20; i++) {
		struct scene s;
		struct load load;
		uint64_t gone;

		scene_begin(&s, virtual, 80 + (uint64_t)i, poller);
		load_start(&load, &s, 32, 2 * NSEC_PER_USEC);
		scene_run(&s, 300 * NSEC_PER_USEC);
		assert_int_equal(engine_handler_set(s.engine, s.a, NULL, NULL), 0);
		gone = PORT_SUM(s.a, transmitted);
		scene_run(&s, 300 * NSEC_PER_USEC);
		assert_int_equal(PORT_SUM(s.a, transmitted), gone);
		/* b sends to a all the time: what is under way when a goes is accounted for. */
		runner_stop(load.there.runner);
		engine_context_close(load.there.context);
		runner_stop(load.sink_back.runner);
		engine_context_close(load.sink_back.context);
		scene_port_remove(s.a);
		/* It goes on sending, however late its runner may be. */
		scene_dropped(&s, s.b, DROP_HANDLER, PORT_SUM(s.b, dropped[DROP_HANDLER]) + 1);
		source_stop(&load.back);
		scene_drain(&s, s.b, load.back.sent);
		assert_int_equal(port_held(s.b), 0);
		sink_stop(&load.sink);
		scene_end(&s);
	}
}

static void removed_virtual(enum poller poller)
{
	removed_while_polled(true, poller);
}

static void removed_host(enum poller poller)
{
	removed_while_polled(false, poller);
}

static void case_8_removed_while_polled(void **state)
{
	(void)state;
	over_pollers(removed_virtual);
	over_pollers(removed_host);
}

/* All or nothing: one wrong key of two, and neither is in force or kept. */
static void a_wrong_key_changes_nothing(void **state)
{
	struct queue_settings settings = {
		.poller_set = true, .poller = POLLER_THREAD, .cpu_set = true, .cpu = 77};
	struct error err = {0};
	struct scene s;
	struct port *c;

	(void)state;
	scene_begin(&s, true, 9, POLLER_SOFTIRQ);
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &settings, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cpu 77"));
	assert_int_equal(napi_poller(s.a->queue[0].napi), POLLER_SOFTIRQ);
	assert_int_equal(engine_queue_set(s.engine, "c", -1, &settings, NULL, &err), -EINVAL);
	c = scene_port(&s, "c", NULL);
	assert_int_equal(napi_poller(c->queue[0].napi), POLLER_SOFTIRQ);
	scene_end(&s);
}

/* The softirq of a NAPI moves from one engine CPU to another under load. */
static void moves_to_another_cpu(void **state)
{
	struct queue_settings settings = {.cpu_set = true};
	struct scene s;
	struct load load;

	(void)state;
	scene_begin(&s, true, 10, POLLER_SOFTIRQ);
	load_start(&load, &s, 64, NSEC_PER_USEC);
	for (unsigned i = 0; i < 200; i++) {
		settings.cpu = i % 2;
		assert_int_equal(engine_queue_set(s.engine, "a", -1, &settings, NULL, NULL), 0);
		scene_run(&s, 100 * NSEC_PER_USEC);
	}
	load_stop(&load, &s);
	scene_end(&s);
}

/* Names come and go for ever: the oldest of those that are away gives way, a present one never. */
static void settings_have_a_limit(void **state)
{
	struct queue_settings settings = {.weight_set = true, .weight = 3};
	struct port *port;
	struct scene s;
	char name[16];

	(void)state;
	if (scene_tx())
		skip(); /* the scene has settings of its own then */
	scene_begin(&s, true, 9, POLLER_SOFTIRQ);
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &settings, NULL, NULL), 0);
	for (int i = 0; i < 1023; i++) {
		snprintf(name, sizeof(name), "gone%d", i);
		assert_int_equal(engine_queue_set(s.engine, name, -1, &settings, NULL, NULL), 0);
	}
	assert_null(scene_logged(&s, "is forgotten"));
	assert_int_equal(engine_queue_set(s.engine, "b", -1, &settings, NULL, NULL), 0);
	assert_non_null(scene_logged(&s, "one for gone0, which is not there, is forgotten"));
	assert_int_equal(napi_weight(s.b->queue[0].napi), 3);
	port = scene_port(&s, "gone0", NULL);
	assert_int_equal(napi_weight(port->queue[0].napi), NAPI_WEIGHT_DEFAULT);
	port = scene_port(&s, "gone1", NULL);
	assert_int_equal(napi_weight(port->queue[0].napi), 3);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_1_same_poller),
		cmocka_unit_test(case_2_before_it_exists),
		cmocka_unit_test(case_3_all_pairs),
		cmocka_unit_test(case_4_random_switches),
		cmocka_unit_test(case_5_disable),
		cmocka_unit_test(case_6_enable_races_schedule),
		cmocka_unit_test(case_7_switch_disabled),
		cmocka_unit_test(case_8_removed_while_polled),
		cmocka_unit_test(a_wrong_key_changes_nothing),
		cmocka_unit_test(moves_to_another_cpu),
		cmocka_unit_test(settings_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
