/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of the virtual machine: each kind, that it is counted, and that none of it leaks into a
 * run without. */
#include "worker.h"

#include <errno.h>

#define ALWAYS VIRTUAL_CHANCE_ONE
#define LATE (50 * USEC)

struct source {
	struct irq irq;
	struct machine *machine;
	int calls;
	int64_t called;
};

static void source_called(struct irq *irq)
{
	struct source *source = (struct source *)irq;

	source->calls++;
	source->called = machine_now(source->machine);
}

static void hardware_raises(void *arg)
{
	irq_raise(arg);
}

static void step_raises(struct worker *w)
{
	irq_raise(w->arg);
}

struct rig {
	struct machine *machine;
	struct worker worker;
	struct source source;
};

static void rig_begin(struct rig *rig)
{
	*rig = (struct rig){.machine = machine_of(1)};
	rig->worker.says = STEP(STEP_WAIT);
	rig->source = (struct source){.irq = IRQ_INIT(-1, source_called), .machine = rig->machine};
	worker_start(&rig->worker, rig->machine, "w", fair(0));
	irq_attach(&rig->source.irq, rig->worker.runner);
	machine_virtual_run(rig->machine, 100 * USEC);
}

static void rig_end(struct rig *rig)
{
	irq_detach(&rig->source.irq);
	runner_stop(rig->worker.runner);
	machine_destroy(rig->machine);
}

static void set(struct rig *rig, enum virtual_fault fault, uint32_t chance)
{
	struct virtual_faults faults = {.late_ns = LATE, .seed = 1};

	faults.chance[fault] = chance;
	machine_virtual_faults_set(rig->machine, &faults);
}

static uint64_t fired(struct rig *rig, enum virtual_fault fault)
{
	struct virtual_stats stats;

	machine_virtual_stats(rig->machine, &stats);
	return stats.faults[fault];
}

static void raise_at(struct rig *rig, int64_t when)
{
	assert_int_equal(
		machine_virtual_call_at(rig->machine, when, hardware_raises, &rig->source.irq), 0);
}

static void lost_and_the_next_comes(void **state)
{
	struct rig rig;

	(void)state;
	rig_begin(&rig);
	set(&rig, VIRTUAL_IRQ_LOST, ALWAYS);
	raise_at(&rig, 200 * USEC);
	machine_virtual_run(rig.machine, 1 * MSEC);
	assert_int_equal(rig.source.calls, 0);
	assert_int_equal(fired(&rig, VIRTUAL_IRQ_LOST), 1);
	machine_virtual_faults_set(rig.machine, NULL);
	raise_at(&rig, 1 * MSEC + 1);
	machine_virtual_run(rig.machine, 2 * MSEC);
	assert_int_equal(rig.source.calls, 1);
	assert_int_equal(fired(&rig, VIRTUAL_IRQ_LOST), 1);
	rig_end(&rig);
}

/* One CPU tells another: that is no line that can be noisy. */
static void steps_are_heard(void **state)
{
	struct rig rig;
	struct worker other = {.says = STEP(STEP_WAIT), .act = step_raises};

	(void)state;
	rig_begin(&rig);
	set(&rig, VIRTUAL_IRQ_LOST, ALWAYS);
	other.arg = &rig.source.irq;
	worker_start(&other, rig.machine, "other", fair(0));
	irq_raise(&rig.source.irq); /* nor is control's */
	machine_virtual_run(rig.machine, 1 * MSEC);
	assert_int_equal(rig.source.calls, 2);
	assert_int_equal(fired(&rig, VIRTUAL_IRQ_LOST), 0);
	runner_stop(other.runner);
	rig_end(&rig);
}

static void late_within_its_bound(void **state)
{
	struct rig rig;
	int64_t first = -1;
	bool differ = false;

	(void)state;
	rig_begin(&rig);
	set(&rig, VIRTUAL_IRQ_LATE, ALWAYS);
	for (int i = 1; i <= 20; i++) {
		int64_t when = i * MSEC, late;

		raise_at(&rig, when);
		machine_virtual_run(rig.machine, when + MSEC / 2);
		assert_int_equal(rig.source.calls, i);
		late = rig.source.called - when;
		/* The switch to it comes on top. */
		assert_in_range(late, 1, LATE + USEC);
		differ |= first >= 0 && late != first;
		first = late;
	}
	assert_true(differ);
	assert_int_equal(fired(&rig, VIRTUAL_IRQ_LATE), 20);
	rig_end(&rig);
}

static void twice(void **state)
{
	struct rig rig;

	(void)state;
	rig_begin(&rig);
	set(&rig, VIRTUAL_IRQ_TWICE, ALWAYS);
	raise_at(&rig, 1 * MSEC);
	machine_virtual_run(rig.machine, 1 * MSEC + 2 * USEC);
	assert_int_equal(rig.source.calls, 1);
	machine_virtual_run(rig.machine, 2 * MSEC);
	assert_int_equal(rig.source.calls, 2);
	/* Detached before the second comes: it does not. */
	raise_at(&rig, 3 * MSEC);
	machine_virtual_run(rig.machine, 3 * MSEC + 2 * USEC);
	irq_detach(&rig.source.irq);
	machine_virtual_run(rig.machine, 4 * MSEC);
	assert_int_equal(rig.source.calls, 3);
	rig_end(&rig);
}

static void timers_are_late(void **state)
{
	struct rig rig;
	int steps;

	(void)state;
	rig_begin(&rig);
	set(&rig, VIRTUAL_TIMER_LATE, ALWAYS);
	irq_arm(&rig.source.irq, 1 * MSEC);
	rig.worker.says = STEP_UNTIL(2 * MSEC);
	machine_virtual_run(rig.machine, 2 * MSEC - 1);
	assert_int_equal(rig.source.calls, 1);
	assert_in_range(rig.source.called, 1 * MSEC + 1, 1 * MSEC + LATE + USEC);
	steps = rig.worker.steps;
	rig.worker.says = STEP(STEP_WAIT);
	machine_virtual_run(rig.machine, 2 * MSEC + LATE + 2 * USEC);
	assert_int_equal(rig.worker.steps, steps + 1);
	assert_in_range(rig.worker.began, 2 * MSEC + 1, 2 * MSEC + LATE + USEC);
	assert_int_equal(fired(&rig, VIRTUAL_TIMER_LATE), 2);
	rig_end(&rig);
}

static void the_second_start_fails(void **state)
{
	struct virtual_faults faults = {.start_fails = 2};
	struct runner_config config = {.name = "r", .step = worker_step};
	struct rig rig;
	struct worker w[2] = {{.says = STEP(STEP_WAIT)}, {.says = STEP(STEP_WAIT)}};
	struct error err = {0};
	struct runner *runner;

	(void)state;
	rig_begin(&rig);
	machine_virtual_faults_set(rig.machine, &faults);
	worker_start(&w[0], rig.machine, "first", fair(0));
	assert_int_equal(runner_start(rig.machine, &config, &runner, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "r: "));
	worker_start(&w[1], rig.machine, "third", fair(0));
	assert_int_equal(fired(&rig, VIRTUAL_START_FAILS), 1);
	runner_stop(w[0].runner);
	runner_stop(w[1].runner);
	rig_end(&rig);
}

static uint64_t hash_with(const struct virtual_faults *faults)
{
	struct virtual_stats stats;
	struct rig rig;

	rig_begin(&rig);
	machine_virtual_faults_set(rig.machine, faults);
	for (int i = 1; i <= 100; i++)
		raise_at(&rig, i * MSEC);
	machine_virtual_run(rig.machine, 200 * MSEC);
	machine_virtual_stats(rig.machine, &stats);
	rig_end(&rig);
	return stats.trace_hash;
}

/* Their seed decides; one that is set and never strikes changes nothing. */
static void faults_have_their_own_seed(void **state)
{
	struct virtual_faults faults = {.late_ns = LATE, .seed = 7};
	uint64_t without = hash_with(NULL), with;

	(void)state;
	assert_int_equal(hash_with(&faults), without);
	faults.chance[VIRTUAL_IRQ_LATE] = ALWAYS / 2;
	with = hash_with(&faults);
	assert_int_not_equal(with, without);
	assert_int_equal(hash_with(&faults), with);
	faults.seed = 8;
	assert_int_not_equal(hash_with(&faults), with);
}

struct watched {
	struct machine *machine;
	uint64_t calls;
};

static void watch(void *arg)
{
	struct watched *watched = arg;

	assert_null(runner_current());
	watched->calls++;
}

static void watched_after_every_event(void **state)
{
	struct watched watched = {0};
	struct virtual_config config = {.cpus = 1, .watch = watch, .watch_arg = &watched};
	struct worker w = {.says = STEP(STEP_AGAIN), .charge = 9500};
	struct virtual_stats watched_stats, stats;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct machine *m = machine_make(config);

		worker_start(&w, m, "w", fair(0));
		machine_virtual_run(m, 1 * MSEC);
		machine_virtual_stats(m, i ? &stats : &watched_stats);
		runner_stop(w.runner);
		machine_destroy(m);
		config.watch = NULL;
	}
	assert_in_range(watched.calls, 100, 110);
	assert_memory_equal(&stats, &watched_stats, sizeof(stats));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_and_the_next_comes),
		cmocka_unit_test(steps_are_heard),
		cmocka_unit_test(late_within_its_bound),
		cmocka_unit_test(twice),
		cmocka_unit_test(timers_are_late),
		cmocka_unit_test(the_second_start_fails),
		cmocka_unit_test(faults_have_their_own_seed),
		cmocka_unit_test(watched_after_every_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
