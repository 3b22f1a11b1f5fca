/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt sources on the virtual machine. No jitter: exact values. */
#include "worker.h"

struct source {
	struct irq irq;
	struct machine *machine;
	struct runner *ran_on; /* in the last call */
	int calls;
	int64_t called;
	int64_t charge;
	void (*act)(struct source *s);
	void *arg;
};

static void source_handler(struct irq *irq)
{
	struct source *s = (struct source *)irq; /* its first member */

	s->calls++;
	s->called = machine_now(s->machine);
	s->ran_on = runner_current();
	machine_charge(s->machine, s->charge);
	if (s->act)
		s->act(s);
}

static struct source source_of(struct machine *m)
{
	return (struct source){.irq = IRQ_INIT(-1, source_handler), .machine = m};
}

static void source_raise(void *arg)
{
	struct source *s = arg;

	irq_raise(&s->irq);
}

static void wakes_a_waiting_runner(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_WAIT)};
	struct source s = source_of(m);
	struct virtual_stats stats;

	(void)state;
	s.charge = 250;
	irq_raise(&s.irq); /* not attached: no effect */
	worker_start(&w, m, "w", fair(0));
	assert_int_equal(irq_attach(&s.irq, w.runner), 0);
	machine_virtual_call_at(m, 10 * USEC, source_raise, &s);
	machine_virtual_run(m, 20 * USEC);
	assert_int_equal(s.calls, 1);
	assert_int_equal(s.called, 11 * USEC); /* after the switch */
	assert_ptr_equal(s.ran_on, w.runner);
	assert_int_equal(w.steps, 2);
	assert_int_equal(w.began, 12 * USEC + 250); /* after the handler's cost */
	machine_virtual_stats(m, &stats);
	assert_int_equal(stats.interrupts, 1);
	irq_detach(&s.irq);
	assert_null(s.irq.runner);
	irq_raise(&s.irq);
	machine_virtual_run(m, 30 * USEC);
	assert_int_equal(s.calls, 1);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void between_steps(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_YIELD), .charge = 9500};
	struct source s = source_of(m);

	(void)state;
	worker_start(&w, m, "w", fair(0)); /* steps at 1, 11 us */
	irq_attach(&s.irq, w.runner);
	machine_virtual_call_at(m, 3 * USEC, source_raise, &s);
	machine_virtual_call_at(m, 4 * USEC, source_raise, &s);
	machine_virtual_run(m, 12 * USEC);
	assert_int_equal(s.calls, 1);
	assert_int_equal(s.called, 11 * USEC);
	assert_int_equal(w.began, 12 * USEC);
	/* Not while it says AGAIN. */
	w.says = STEP(STEP_AGAIN); /* from 22 us */
	machine_virtual_run(m, 23 * USEC);
	irq_raise(&s.irq);
	machine_virtual_run(m, 1 * MSEC);
	assert_int_equal(s.calls, 1);
	w.says = STEP(STEP_WAIT);
	machine_virtual_run(m, 2 * MSEC);
	assert_int_equal(s.calls, 2);
	runner_stop(w.runner);
	assert_null(s.irq.runner); /* by runner_stop */
	machine_destroy(m);
}

static void masks(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_WAIT)};
	struct source s = source_of(m);

	(void)state;
	irq_mask(&s.irq); /* not attached: no effect */
	worker_start(&w, m, "w", fair(0));
	irq_attach(&s.irq, w.runner);
	machine_virtual_run(m, 10 * USEC);
	irq_mask(&s.irq);
	irq_mask(&s.irq);
	irq_raise(&s.irq);
	irq_raise(&s.irq);
	machine_virtual_run(m, 20 * USEC);
	assert_int_equal(s.calls, 0);
	assert_int_equal(w.steps, 1);
	irq_unmask(&s.irq);
	irq_unmask(&s.irq);
	machine_virtual_run(m, 30 * USEC);
	assert_int_equal(s.calls, 1); /* one is remembered */
	assert_int_equal(s.called, 21 * USEC);

	/* Raised, but masked before it was called: kept, too. */
	irq_raise(&s.irq);
	irq_mask(&s.irq);
	machine_virtual_run(m, 40 * USEC);
	assert_int_equal(s.calls, 1);
	irq_unmask(&s.irq);
	machine_virtual_run(m, 50 * USEC);
	assert_int_equal(s.calls, 2);

	/* A timer that comes while it is masked. */
	irq_mask(&s.irq);
	irq_arm(&s.irq, 55 * USEC);
	machine_virtual_run(m, 60 * USEC);
	assert_int_equal(s.calls, 2);
	irq_unmask(&s.irq);
	machine_virtual_run(m, 70 * USEC);
	assert_int_equal(s.calls, 3);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void timers(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_WAIT)};
	struct source s = source_of(m);

	(void)state;
	worker_start(&w, m, "w", fair(0));
	irq_attach(&s.irq, w.runner);
	irq_arm(&s.irq, 40 * USEC);
	irq_arm(&s.irq, 20 * USEC); /* instead */
	machine_virtual_run(m, 50 * USEC);
	assert_int_equal(s.calls, 1);
	assert_int_equal(s.called, 21 * USEC);
	assert_true(s.irq.deadline == TIME_NEVER);
	irq_arm(&s.irq, 60 * USEC);
	irq_arm(&s.irq, TIME_NEVER); /* disarmed */
	machine_virtual_run(m, 70 * USEC);
	assert_int_equal(s.calls, 1);
	irq_arm(&s.irq, 10 * USEC); /* has passed: at once */
	machine_virtual_run(m, 80 * USEC);
	assert_int_equal(s.calls, 2);
	assert_int_equal(s.called, 71 * USEC);
	irq_arm(&s.irq, 90 * USEC);
	irq_detach(&s.irq);
	machine_virtual_run(m, 100 * USEC);
	assert_int_equal(s.calls, 2);
	irq_attach(&s.irq, w.runner);
	machine_virtual_run(m, TIME_NEVER);
	assert_int_equal(s.calls, 2);
	runner_stop(w.runner);
	machine_destroy(m);
}

static struct source *fired[8];
static size_t fired_count;

static void note(struct source *s)
{
	fired[fired_count++] = s;
}

static void timers_in_order(void **state)
{
	static const int64_t times[] = {30, 10, 20, 10, 30};
	static const size_t order[] = {1, 3, 2, 0, 4};
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_WAIT)};
	struct source s[5];

	(void)state;
	fired_count = 0;
	worker_start(&w, m, "w", fair(0));
	for (size_t i = 0; i < 5; i++) {
		s[i] = source_of(m);
		s[i].act = note;
		irq_attach(&s[i].irq, w.runner);
		irq_arm(&s[i].irq, times[i] * USEC);
	}
	machine_virtual_run(m, TIME_NEVER);
	assert_int_equal(fired_count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_ptr_equal(fired[i], &s[order[i]]);
	/* Two of one time are called before one step. */
	assert_int_equal(w.steps, 1 + 3);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void moves(void **state)
{
	struct machine *m = machine_of(2);
	struct worker a = {.says = STEP(STEP_WAIT)}, b = a;
	struct source s = source_of(m);

	(void)state;
	worker_start(&a, m, "a", fair(0));
	worker_start(&b, m, "b", fair(0));
	irq_attach(&s.irq, a.runner);
	machine_virtual_run(m, 10 * USEC);
	/* What was raised, the mask and the timer move along. */
	irq_raise(&s.irq);
	irq_mask(&s.irq);
	irq_arm(&s.irq, 50 * USEC);
	assert_int_equal(irq_attach(&s.irq, b.runner), 0);
	machine_virtual_run(m, 20 * USEC);
	assert_int_equal(s.calls, 0);
	irq_unmask(&s.irq);
	machine_virtual_run(m, 30 * USEC);
	assert_int_equal(s.calls, 1);
	assert_ptr_equal(s.ran_on, b.runner);
	machine_virtual_run(m, 60 * USEC);
	assert_int_equal(s.calls, 2);
	/* Raised and not masked: the new one is woken. */
	irq_raise(&s.irq);
	irq_attach(&s.irq, a.runner);
	machine_virtual_run(m, 70 * USEC);
	assert_int_equal(s.calls, 3);
	assert_ptr_equal(s.ran_on, a.runner);
	/* To where it is: nothing changes. */
	assert_int_equal(irq_attach(&s.irq, a.runner), 0);
	assert_ptr_equal(s.irq.runner, a.runner);
	runner_stop(b.runner);
	assert_ptr_equal(s.irq.runner, a.runner);
	runner_stop(a.runner);
	machine_destroy(m);
}

static void raise_again(struct source *s)
{
	irq_raise(&s->irq);
}

/* Detaching forgets what was raised, but not the mask; afterwards it is as good as new. */
static void detach_forgets(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_WAIT)};
	struct source s = source_of(m);

	(void)state;
	worker_start(&w, m, "w", fair(0));
	for (int masked = 0; masked <= 1; masked++) {
		irq_attach(&s.irq, w.runner);
		if (masked)
			irq_mask(&s.irq);
		irq_raise(&s.irq);
		irq_detach(&s.irq);
		irq_attach(&s.irq, w.runner);
		machine_virtual_run(m, machine_now(m) + 1 * MSEC);
		assert_int_equal(s.calls, masked);
		irq_raise(&s.irq);
		machine_virtual_run(m, machine_now(m) + 1 * MSEC);
		assert_int_equal(s.calls, 1);
		irq_unmask(&s.irq);
		machine_virtual_run(m, machine_now(m) + 1 * MSEC);
		assert_int_equal(s.calls, 1 + masked);
		irq_detach(&s.irq);
	}
	runner_stop(w.runner);
	machine_destroy(m);
}

/* A handler that raises itself does not keep the steps away. */
static void handlers_do_not_starve_steps(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_YIELD)};
	struct source s = source_of(m);

	(void)state;
	s.act = raise_again;
	worker_start(&w, m, "w", fair(0));
	irq_attach(&s.irq, w.runner);
	irq_raise(&s.irq);
	machine_virtual_run(m, 1 * MSEC);
	assert_in_range(w.steps, 660, 670);
	assert_in_range(s.calls, 660, 670);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void detach_other(struct source *s)
{
	struct source *other = s->arg;

	irq_detach(&s->irq);
	irq_detach(&other->irq);
	memset(&s->irq, 0x55, sizeof(s->irq)); /* as if it had been freed */
	memset(&other->irq, 0x55, sizeof(other->irq));
}

static void mask_other(struct source *s)
{
	struct source *other = s->arg;

	irq_mask(&other->irq);
}

static void handlers_change_others(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_WAIT)};
	struct source a = source_of(m), b = source_of(m), c = source_of(m);

	(void)state;
	worker_start(&w, m, "w", fair(0));
	irq_attach(&a.irq, w.runner);
	irq_attach(&b.irq, w.runner);
	irq_attach(&c.irq, w.runner);
	a.act = mask_other;
	a.arg = &b;
	irq_raise(&a.irq);
	irq_raise(&b.irq);
	irq_raise(&c.irq);
	machine_virtual_run(m, 1 * MSEC);
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 0);
	assert_int_equal(c.calls, 1);
	irq_unmask(&b.irq);
	machine_virtual_run(m, 2 * MSEC);
	assert_int_equal(b.calls, 1);

	a.act = detach_other;
	irq_raise(&a.irq);
	irq_raise(&b.irq);
	irq_raise(&c.irq);
	machine_virtual_run(m, 3 * MSEC);
	assert_int_equal(a.calls, 2);
	assert_int_equal(b.calls, 1);
	assert_int_equal(c.calls, 2);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void handler_wakes(struct source *s)
{
	runner_wake(s->arg);
}

/* From the handler of one runner another one is woken, and preempts it in its cost. */
static void handler_is_preempted(void **state)
{
	struct machine *m = machine_of(1);
	struct worker low = {.says = STEP(STEP_WAIT)}, high = low;
	struct source s = source_of(m);

	(void)state;
	worker_start(&low, m, "low", fair(0));
	worker_start(&high, m, "high", fifo(1));
	irq_attach(&s.irq, low.runner);
	machine_virtual_run(m, 10 * USEC);
	s.act = handler_wakes;
	s.arg = high.runner;
	s.charge = 5 * USEC;
	irq_raise(&s.irq);
	machine_virtual_run(m, 30 * USEC);
	assert_int_equal(s.called, 11 * USEC);
	assert_int_equal(high.began, 12 * USEC);
	assert_int_equal(low.began, 12 * USEC + 500 + 1000 + 6000);
	runner_stop(low.runner);
	runner_stop(high.runner);
	machine_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wakes_a_waiting_runner),
		cmocka_unit_test(between_steps),
		cmocka_unit_test(masks),
		cmocka_unit_test(timers),
		cmocka_unit_test(timers_in_order),
		cmocka_unit_test(moves),
		cmocka_unit_test(detach_forgets),
		cmocka_unit_test(handlers_do_not_starve_steps),
		cmocka_unit_test(handlers_change_others),
		cmocka_unit_test(handler_is_preempted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
