/* SPDX-License-Identifier: BSD-2-Clause */
/* What a seed decides, and what repeats: trace hash, trace text, draws. */
#include "worker.h"

struct outcome {
	struct virtual_stats stats;
	char cpus[8]; /* where each of the runners began */
	int64_t began;
};

/* Four runners on eight idle CPUs, and two hogs on one of them. */
static struct outcome run(struct virtual_config config)
{
	struct machine *m;
	struct worker w[6];
	struct outcome out = {0};

	config.cpus = 8;
	m = machine_make(config);
	for (int i = 0; i < 6; i++) {
		struct placement p = i < 4 ? fair(0) : on(7, fair(0));

		w[i] = (struct worker){
			.says = i < 4 ? STEP(STEP_WAIT) : STEP(STEP_AGAIN),
			.charge = 100 * i,
		};
		worker_start(&w[i], m, "worker", p);
	}
	machine_virtual_run(m, 20 * MSEC);
	for (int i = 0; i < 4; i++)
		out.cpus[i] = (char)('0' + worker_observe(&w[i]).cpu);
	out.began = w[4].began;
	machine_virtual_stats(m, &out.stats);
	for (int i = 0; i < 6; i++)
		runner_stop(w[i].runner);
	machine_destroy(m);
	return out;
}

static void same_seed_same_hash(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct virtual_config config = {.seed = seed, .jitter_percent = 20};
		struct outcome a = run(config), b = run(config);

		assert_memory_equal(&a, &b, sizeof(a));
		assert_true(a.stats.events > 1000);
	}
}

static void other_seed_other_hash(void **state)
{
	uint64_t hashes[50];
	unsigned others = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct outcome out = run((struct virtual_config){.seed = seed});

		hashes[seed] = out.stats.trace_hash;
		for (uint64_t i = 0; i < seed; i++)
			assert_int_not_equal(hashes[i], hashes[seed]);
		others += strcmp(out.cpus, run((struct virtual_config){0}).cpus) != 0;
	}
	/* Placement differs, and not only the ticks. */
	assert_in_range(others, 45, 49);
}

static void count_up(struct worker *w)
{
	int *turn = w->arg;

	if (w->steps == 1)
		w->charge = ++*turn;
}

/* Two equals that come at one time: which is first is the seed's. */
static void order_of_equals(void **state)
{
	unsigned second = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct machine *m = machine_make((struct virtual_config){.cpus = 1, .seed = seed});
		int turn = 0;
		struct worker a = {.says = STEP(STEP_WAIT), .act = count_up, .arg = &turn}, b = a;

		worker_start(&a, m, "a", fair(0));
		worker_start(&b, m, "b", fair(0));
		machine_virtual_run(m, TIME_NEVER);
		assert_int_equal(a.charge + b.charge, 1 + 2);
		second += b.charge == 1;
		runner_stop(a.runner);
		runner_stop(b.runner);
		machine_destroy(m);
	}
	assert_in_range(second, 30, 70);
}

static void jitter(void **state)
{
	struct virtual_config config = {.seed = 5, .jitter_percent = 10};

	(void)state;
	/* Half of the time 900 ns a step, half 1000; with jitter 5% more on average. */
	for (config.seed = 0; config.seed < 20; config.seed++)
		assert_in_range(run(config).stats.steps, 19700, 20500);
	config.jitter_percent = 0;
	assert_in_range(run(config).stats.steps, 20700, 21500);
}

static void draws(void **state)
{
	struct machine *m = machine_make((struct virtual_config){.seed = 3});
	unsigned counts[6] = {0};

	(void)state;
	for (int i = 0; i < 60000; i++) {
		uint64_t n = machine_virtual_draw(m, 6);

		assert_in_range(n, 0, 5);
		counts[n]++;
	}
	for (int i = 0; i < 6; i++)
		assert_in_range(counts[i], 9600, 10400);
	assert_int_equal(machine_virtual_draw(m, 1), 0);
	machine_destroy(m);
}

struct lines {
	char text[2000];
};

static void line_add(void *arg, const char *line)
{
	struct lines *lines = arg;

	assert_null(strchr(line, '\n'));
	strcat(lines->text, line);
	strcat(lines->text, "\n");
}

static void nothing(struct irq *irq)
{
	(void)irq;
}

static void nothing_called(void *arg)
{
	(void)arg;
}

static void trace_text(void **state)
{
	static struct lines lines;
	struct virtual_stats traced, untraced;

	(void)state;
	for (int trace = 1; trace >= 0; trace--) {
		struct machine *m = machine_make((struct virtual_config){
			.cpus = 1, .trace = trace ? line_add : NULL, .trace_arg = &lines});
		struct worker w = {.says = STEP_UNTIL(12345), .charge = 700};
		struct worker hog = {.says = STEP(STEP_AGAIN), .charge = 99500};
		struct irq irq = IRQ_INIT(-1, nothing);
		struct placement p = fifo(3);

		worker_start(&w, m, "napi/a-0", fifo(2));
		irq_attach(&irq, w.runner);
		machine_virtual_run(m, 5000);
		w.says = STEP(STEP_EXIT);
		worker_start(&hog, m, "hog", fair(0));
		machine_virtual_run(m, 10000);
		irq_mask(&irq);
		irq_raise(&irq);
		irq_unmask(&irq);
		runner_place(w.runner, &p);
		machine_virtual_call_at(m, 10100, nothing_called, NULL);
		machine_virtual_run(m, 20000);
		runner_stop(hog.runner);
		runner_stop(w.runner);
		machine_virtual_stats(m, trace ? &traced : &untraced);
		machine_destroy(m);
	}
	assert_string_equal(lines.text,
			    "        0.000us -    start    napi/a-0\n"
			    "        0.000us cpu0 switch   napi/a-0\n"
			    "        1.000us cpu0 step     napi/a-0         wait +1.200us\n"
			    "        2.200us cpu0 wait     napi/a-0         until 12.345us\n"
			    "        2.200us cpu0 idle\n"
			    "        5.000us -    start    hog\n"
			    "        5.000us cpu0 switch   hog\n"
			    "        6.000us cpu0 step     hog              again +100.000us\n"
			    "       10.000us -    raise    napi/a-0         #1 masked\n"
			    "       10.000us -    place    napi/a-0         fifo 3\n"
			    "       10.000us cpu0 preempt  hog              96.000us left\n"
			    "       10.000us cpu0 switch   napi/a-0\n"
			    "       10.100us -    call\n"
			    "       11.000us cpu0 irq      napi/a-0         #1 +1.000us\n"
			    "       12.000us cpu0 step     napi/a-0         exit +1.200us\n"
			    "       13.200us cpu0 exit     napi/a-0\n"
			    "       13.200us cpu0 switch   hog\n"
			    "       20.000us -    stop     hog\n"
			    "       20.000us -    stop     napi/a-0\n");
	/* The text is on the side: the same run, the same hash. */
	assert_memory_equal(&traced, &untraced, sizeof(traced));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_seed_same_hash),
		cmocka_unit_test(other_seed_other_hash),
		cmocka_unit_test(order_of_equals),
		cmocka_unit_test(jitter),
		cmocka_unit_test(draws),
		cmocka_unit_test(trace_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
