/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines of interrupt sources on the host machine. */
#include "machine_host_rig.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Arms it for soon, and before that time comes says something else, by `then`; nothing fires. Who
 * was late with that may not say so: it tries again, with more time.
 */
static void takes_back(struct source *s, struct runner *r, void (*then)(struct irq *irq))
{
	for (int64_t soon = 2 * NSEC_PER_MSEC; soon < 240 * NSEC_PER_SEC; soon *= 2) {
		int64_t when = machine_now(machine) + soon;
		int before = s->fired;
		bool late;

		irq_arm(&s->irq, when);
		then(&s->irq);
		late = machine_now(machine) >= when;
		while (machine_now(machine) < when)
			usleep(1000);
		if (!s->irq.runner)
			assert_int_equal(irq_attach(&s->irq, r), 0);
		settle(r);
		if (!late) {
			assert_int_equal(s->fired, before);
			return;
		}
		irq_arm(&s->irq, TIME_NEVER);
	}
	fail_msg("always late");
}

static void disarm(struct irq *irq)
{
	irq_arm(irq, TIME_NEVER);
}

static void put_off(struct irq *irq)
{
	irq_arm(irq, machine_now(machine) + 3600 * NSEC_PER_SEC);
}

static void timers(void **state)
{
	struct source s = source_of(-1), other = source_of(-1);
	_Atomic int steps = 0;
	struct runner *r = start("timers", idle_step, &steps);
	int64_t when;
	int before;

	(void)state;
	assert_int_equal(irq_attach(&s.irq, r), 0);
	assert_int_equal(irq_attach(&other.irq, r), 0);
	for (int i = 1; i <= 20; i++) {
		when = machine_now(machine) + NSEC_PER_MSEC;
		irq_arm(&s.irq, when);
		await_fired(&s, i);
		assert_true(machine_now(machine) >= when);
		settle(r);
		assert_int_equal(s.fired, i); /* once */
	}
	/* Passed, and long passed. */
	irq_arm(&s.irq, machine_now(machine) - 1);
	await_fired(&s, 21);
	irq_arm(&s.irq, INT64_MIN);
	await_fired(&s, 22);

	/* Disarmed, put off, brought forward; the other one's time is its own. */
	irq_arm(&other.irq, machine_now(machine) + 3600 * NSEC_PER_SEC);
	takes_back(&s, r, disarm);
	takes_back(&s, r, put_off);
	before = steps;
	usleep(4000);
	await_seen(seen_waiting, r);
	assert_int_equal(steps, before); /* nothing was due, so no step either */
	irq_arm(&s.irq, machine_now(machine) + NSEC_PER_MSEC);
	await_fired(&s, s.fired + 1);
	assert_int_equal(other.fired, 0);

	/* A timer does not outlive its attachment. */
	takes_back(&s, r, irq_detach);
	runner_stop(r);
}

/* A timer that is armed from the runner's own steps and handlers. */
static void rearm(struct irq *irq)
{
	count(irq);
	if (((struct source *)irq)->fired < 20)
		irq_arm(irq, machine_now(machine) + 100 * NSEC_PER_USEC);
}

static void rearms_itself(void **state)
{
	struct source s = {.irq = IRQ_INIT(-1, rearm)};
	struct runner *a = start("a", idle_step, NULL);
	struct runner *b = start("b", idle_step, NULL);

	(void)state;
	assert_int_equal(irq_attach(&s.irq, a), 0);
	irq_arm(&s.irq, machine_now(machine));
	await_fired(&s, 10);
	/* It goes along with a move. */
	assert_int_equal(irq_attach(&s.irq, b), 0);
	await_fired(&s, 20);
	runner_stop(a);
	runner_stop(b);
	assert_int_equal(s.fired, 20);
}

/* Armed, armed anew, disarmed and detached in no order; fired in the order of their deadlines. */
enum { TIMERS = 500 };

struct timer {
	struct irq irq;
	int64_t when;
	int fired;
};

static struct timer *last_fired;
static _Atomic int timers_fired;

static void timer_fire(struct irq *irq)
{
	struct timer *t = (struct timer *)irq;

	assert_true(machine_now(machine) >= t->when);
	assert_true(!last_fired || last_fired->when <= t->when);
	last_fired = t;
	t->fired++;
	atomic_fetch_add(&timers_fired, 1);
}

/* Handlers come between steps: none before this one ends. */
static struct step held_step(void *arg)
{
	while (!atomic_load((_Atomic bool *)arg))
		sched_yield();
	return STEP(STEP_WAIT);
}

static bool timers_done(void *arg)
{
	return atomic_load(&timers_fired) == *(int *)arg;
}

static void deadlines_in_order(void **state)
{
	struct timer *t = calloc(TIMERS, sizeof(*t));
	_Atomic bool armed = false;
	struct runner *r = start("timers", held_step, &armed);
	int64_t first = machine_now(machine);
	int expected = 0;

	(void)state;
	assert_non_null(t);
	last_fired = NULL;
	atomic_store(&timers_fired, 0);
	for (int i = 0; i < TIMERS; i++) {
		t[i].irq = IRQ_INIT(-1, timer_fire);
		t[i].when = first + i * 7919 % TIMERS * 10 * NSEC_PER_USEC;
		assert_int_equal(irq_attach(&t[i].irq, r), 0);
		irq_arm(&t[i].irq, i % 3 ? t[i].when : first + 3600 * NSEC_PER_SEC);
	}
	for (int i = 0; i < TIMERS; i++) {
		if (i % 3 == 0)
			irq_arm(&t[i].irq, t[i].when);
		if (i % 5 == 0)
			irq_arm(&t[i].irq, TIME_NEVER);
		else if (i % 11 == 0)
			irq_detach(&t[i].irq);
		else
			expected++;
	}
	atomic_store(&armed, true);
	assert_int_equal(machine_wait(machine, timers_done, &expected, limit()), 0);
	runner_stop(r);
	for (int i = 0; i < TIMERS; i++)
		assert_int_equal(t[i].fired, i % 5 && i % 11);
	free(t);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, machine_open, machine_close)
	const struct CMUnitTest tests[] = {
		TEST(timers),
		TEST(rearms_itself),
		TEST(deadlines_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
