/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt sources on the host machine. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <napier/machine.h>

/* Only against hanging. */
#define LIMIT (20 * NSEC_PER_SEC)

static struct machine *machine;

static int machine_open(void **state)
{
	struct error err;

	(void)state;
	return machine_host_create(&machine, &err);
}

static int machine_close(void **state)
{
	(void)state;
	machine_destroy(machine);
	return 0;
}

static struct runner *start(const char *name, struct step (*step)(void *arg), void *arg)
{
	struct runner_config config = {.step = step, .arg = arg};
	struct runner *r;
	struct error err = {0};

	snprintf(config.name, sizeof(config.name), "%s", name);
	if (runner_start(machine, &config, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

/* A runner that only takes interrupts. */
static struct step idle_step(void *arg)
{
	_Atomic int *steps = arg;

	if (steps)
		atomic_fetch_add(steps, 1);
	return STEP(STEP_WAIT);
}

static struct step busy_step(void *arg)
{
	(void)arg;
	return STEP(STEP_YIELD);
}

static bool seen_waiting(void *arg)
{
	struct runner_observation seen;

	runner_observe(arg, &seen);
	return seen.waiting;
}

/* What nobody notifies of is looked at again every millisecond. */
static void await_waiting(struct runner *r)
{
	int64_t end = machine_now(machine) + LIMIT;

	while (machine_wait(machine, seen_waiting, r, machine_now(machine) + NSEC_PER_MSEC))
		assert_true(machine_now(machine) < end);
}

/* A source that counts. */
struct source {
	struct irq irq; /* first: the handler finds the rest */
	_Atomic int fired;
	int expected;
	struct runner *_Atomic at; /* who called the handler last */
	_Atomic int inside, overlaps;
};

static void count(struct irq *irq)
{
	struct source *s = (struct source *)irq;

	if (atomic_fetch_add(&s->inside, 1))
		atomic_fetch_add(&s->overlaps, 1);
	atomic_store(&s->at, runner_current());
	atomic_fetch_add(&s->fired, 1);
	atomic_fetch_sub(&s->inside, 1);
	machine_notify(machine);
}

static struct source source_of(int fd)
{
	return (struct source){.irq = IRQ_INIT(fd, count)};
}

static bool has_fired(void *arg)
{
	struct source *s = arg;

	return atomic_load(&s->fired) >= s->expected;
}

static void await_fired(struct source *s, int expected)
{
	s->expected = expected;
	assert_int_equal(machine_wait(machine, has_fired, s, machine_now(machine) + LIMIT), 0);
}

/*
 * The runner has taken what had come before. Twice: the first raise may be seen just after a look
 * at epoll, the second cannot come before the next.
 */
static void settle(struct runner *r)
{
	struct source probe = source_of(-1);

	assert_int_equal(irq_attach(&probe.irq, r), 0);
	for (int i = 1; i <= 2; i++) {
		irq_raise(&probe.irq);
		await_fired(&probe, i);
	}
	irq_detach(&probe.irq);
	await_waiting(r);
}

static void event_write(int fd)
{
	static const uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

static void fires_on_edges(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	struct source s = source_of(fd);
	struct runner *r = start("edges", idle_step, NULL);

	(void)state;
	assert_int_equal(irq_attach(&s.irq, r), 0);
	settle(r);
	assert_int_equal(s.fired, 0);
	event_write(fd);
	await_fired(&s, 1);
	assert_ptr_equal(s.at, r);
	/* Nobody reads it: it stays readable, and that alone is no edge. */
	settle(r);
	assert_int_equal(s.fired, 1);
	event_write(fd);
	await_fired(&s, 2);
	settle(r);
	assert_int_equal(s.fired, 2);
	irq_detach(&s.irq);
	event_write(fd);
	settle(r);
	assert_int_equal(s.fired, 2);
	/* What is there at attach counts as an edge. */
	assert_int_equal(irq_attach(&s.irq, r), 0);
	await_fired(&s, 3);
	runner_stop(r);
	assert_null(s.irq.runner);
	close(fd);
}

/* A runner that never waits takes them when it yields. */
static void fires_between_yields(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	struct source s = source_of(fd), raised = source_of(-1);
	struct runner *r = start("busy", busy_step, NULL);

	(void)state;
	assert_int_equal(irq_attach(&s.irq, r), 0);
	assert_int_equal(irq_attach(&raised.irq, r), 0);
	for (int i = 1; i <= 100; i++) {
		event_write(fd);
		await_fired(&s, i);
		irq_raise(&raised.irq);
		await_fired(&raised, i);
		irq_arm(&raised.irq, 0);
		await_fired(&raised, i + 1);
		raised.fired--;
	}
	runner_stop(r);
	close(fd);
}

/* A runner that is woken all the time looks at its descriptors all the same. */
static struct step restless_step(void *arg)
{
	(void)arg;
	runner_wake(runner_current());
	return STEP(STEP_WAIT);
}

static void wakes_do_not_hide_descriptors(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	struct source s = source_of(fd);
	struct runner *r = start("restless", restless_step, NULL);

	(void)state;
	assert_int_equal(irq_attach(&s.irq, r), 0);
	for (int i = 1; i <= 100; i++) {
		event_write(fd);
		await_fired(&s, i);
	}
	runner_stop(r);
	close(fd);
}

static void fires_on_hang_up(void **state)
{
	int ends[2];
	struct source s;
	struct runner *r = start("hang-up", idle_step, NULL);

	(void)state;
	assert_int_equal(pipe(ends), 0);
	s = source_of(ends[0]);
	assert_int_equal(irq_attach(&s.irq, r), 0);
	close(ends[1]);
	await_fired(&s, 1);
	settle(r);
	assert_int_equal(s.fired, 1);
	runner_stop(r);
	close(ends[0]);
}

static void mask_remembers(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	struct source s = source_of(fd), soft = source_of(-1);
	_Atomic int steps = 0;
	struct runner *r = start("mask", idle_step, &steps);
	int before;

	(void)state;
	assert_int_equal(irq_attach(&s.irq, r), 0);
	assert_int_equal(irq_attach(&soft.irq, r), 0);
	settle(r);
	before = steps;
	irq_mask(&s.irq);
	irq_mask(&soft.irq);
	event_write(fd);
	irq_raise(&soft.irq);
	irq_raise(&soft.irq);
	await_waiting(r);
	assert_int_equal(steps, before);
	settle(r);
	assert_int_equal(s.fired, 0);
	assert_int_equal(soft.fired, 0);
	irq_unmask(&s.irq);
	irq_unmask(&soft.irq);
	await_fired(&s, 1);
	await_fired(&soft, 1);
	settle(r);
	assert_int_equal(s.fired, 1);
	assert_int_equal(soft.fired, 1);

	/* One raise or timer, of many, on the one with the descriptor too. */
	irq_mask(&s.irq);
	irq_arm(&s.irq, machine_now(machine));
	settle(r);
	irq_raise(&s.irq);
	assert_int_equal(s.fired, 1);
	assert_int_equal(read(fd, &(uint64_t){0}, 8), 8);
	irq_unmask(&s.irq);
	await_fired(&s, 2);
	settle(r);
	assert_int_equal(s.fired, 2);

	/* Nothing happened: nothing fires. */
	irq_mask(&s.irq);
	irq_unmask(&s.irq);
	settle(r);
	assert_int_equal(s.fired, 2);

	/* Unread data is an edge at unmask; a move keeps the mask. */
	event_write(fd);
	await_fired(&s, 3);
	irq_mask(&s.irq);
	assert_int_equal(irq_attach(&s.irq, r), 0);
	settle(r);
	assert_int_equal(s.fired, 3);
	irq_unmask(&s.irq);
	await_fired(&s, 4);
	runner_stop(r);
	close(fd);
}

static void mask_holds_over_a_move(void **state)
{
	int fd = eventfd(1, EFD_NONBLOCK);
	struct source s = source_of(fd);
	struct runner *a = start("a", idle_step, NULL);
	struct runner *b = start("b", idle_step, NULL);

	(void)state;
	assert_int_equal(irq_attach(&s.irq, a), 0);
	await_fired(&s, 1);
	irq_mask(&s.irq);
	irq_arm(&s.irq, machine_now(machine) + NSEC_PER_MSEC);
	assert_int_equal(irq_attach(&s.irq, b), 0);
	assert_ptr_equal(s.irq.runner, b);
	event_write(fd);
	usleep(3000);
	settle(b);
	assert_int_equal(s.fired, 1);
	assert_int_equal(irq_attach(&s.irq, a), 0);
	irq_unmask(&s.irq);
	await_fired(&s, 2);
	assert_ptr_equal(s.at, a);
	runner_stop(b);
	runner_stop(a);
	close(fd);
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
	irq_arm(&s.irq, machine_now(machine) + 2 * NSEC_PER_MSEC);
	irq_arm(&s.irq, TIME_NEVER);
	usleep(4000);
	settle(r);
	assert_int_equal(s.fired, 22);
	irq_arm(&s.irq, machine_now(machine) + 2 * NSEC_PER_MSEC);
	irq_arm(&s.irq, machine_now(machine) + 3600 * NSEC_PER_SEC);
	settle(r);
	before = steps;
	usleep(4000);
	await_waiting(r);
	assert_int_equal(steps, before); /* nothing was due, so no step either */
	settle(r);
	assert_int_equal(s.fired, 22);
	irq_arm(&s.irq, machine_now(machine) + NSEC_PER_MSEC);
	await_fired(&s, 23);
	assert_int_equal(other.fired, 0);

	/* A timer does not outlive its attachment. */
	irq_arm(&s.irq, machine_now(machine) + NSEC_PER_MSEC);
	irq_detach(&s.irq);
	usleep(3000);
	assert_int_equal(irq_attach(&s.irq, r), 0);
	settle(r);
	assert_int_equal(s.fired, 23);
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

/* More sources than a runner takes in one round. */
enum { CROWD = 300 };

static void crowd(void **state)
{
	struct source *s = calloc(CROWD, sizeof(*s));
	struct runner *r = start("crowd", idle_step, NULL);

	(void)state;
	assert_non_null(s);
	for (int i = 0; i < CROWD; i++) {
		s[i] = source_of(i % 3 ? -1 : eventfd(0, EFD_NONBLOCK));
		assert_int_equal(irq_attach(&s[i].irq, r), 0);
	}
	for (int round = 1; round <= 10; round++) {
		for (int i = 0; i < CROWD; i++) {
			if (i % 3 == 0)
				event_write(s[i].irq.fd);
			else if (i % 3 == 1)
				irq_raise(&s[i].irq);
			else
				irq_arm(&s[i].irq, machine_now(machine));
		}
		for (int i = 0; i < CROWD; i++)
			await_fired(&s[i], round);
	}
	settle(r);
	/* Taken away in an order that leaves holes, and some put back into them. */
	for (int i = 0; i < CROWD; i += 2)
		irq_detach(&s[i].irq);
	for (int i = 0; i < CROWD; i += 4)
		assert_int_equal(irq_attach(&s[i].irq, r), 0);
	settle(r);
	for (int i = 0; i < CROWD; i++) {
		int before = s[i].fired;

		irq_raise(&s[i].irq);
		if (i % 4 != 2)
			await_fired(&s[i], before + 1);
		else
			assert_null(s[i].irq.runner);
	}
	runner_stop(r);
	for (int i = 0; i < CROWD; i++) {
		assert_null(s[i].irq.runner);
		if (s[i].irq.fd >= 0)
			close(s[i].irq.fd);
	}
	free(s);
}

/* More than a round takes, all of them raised again each time: the others get their turn. */
static void raise_again(struct irq *irq)
{
	atomic_fetch_add(&((struct source *)irq)->fired, 1);
	irq_raise(irq);
}

static void crowd_starves_nobody(void **state)
{
	struct source *s = calloc(CROWD, sizeof(*s));
	struct source last = source_of(-1);
	struct runner *r = start("crowd", idle_step, NULL);

	(void)state;
	assert_non_null(s);
	for (int i = 0; i < CROWD; i++) {
		s[i].irq = IRQ_INIT(-1, raise_again);
		assert_int_equal(irq_attach(&s[i].irq, r), 0);
		irq_raise(&s[i].irq);
	}
	assert_int_equal(irq_attach(&last.irq, r), 0);
	for (int i = 1; i <= 10; i++) {
		irq_raise(&last.irq);
		await_fired(&last, i);
	}
	runner_stop(r);
	for (int i = 0; i < CROWD; i++)
		assert_true(s[i].fired > 0);
	free(s);
}

/*
 * More sources than there are bits to tell them by: who is raised fires once, nobody else does;
 * from outside and from the runner itself.
 */
enum { MANY = 5000 };

static void raise_next(struct irq *irq)
{
	struct source *s = (struct source *)irq;

	atomic_fetch_add(&s->fired, 1);
	irq_raise(&s[1].irq);
}

static void raises_one_of_many(void **state)
{
	struct source *s = calloc(MANY, sizeof(*s));
	struct runner *r = start("many", idle_step, NULL);

	(void)state;
	assert_non_null(s);
	for (int i = 0; i < MANY; i++) {
		s[i] = source_of(-1);
		if (i % 7 == 3)
			s[i].irq.handler = raise_next;
		assert_int_equal(irq_attach(&s[i].irq, r), 0);
	}
	for (int round = 1; round <= 3; round++) {
		for (int i = MANY - 1; i >= 0; i--) {
			if (i % 7 == 1 || i % 7 == 3)
				irq_raise(&s[i].irq);
		}
		for (int i = 0; i < MANY; i++) {
			if (i % 7 == 1 || i % 7 == 3 || (i % 7 == 4 && i))
				await_fired(&s[i], round);
		}
		settle(r);
	}
	for (int i = 0; i < MANY; i++)
		assert_int_equal(s[i].fired, i % 7 == 1 || i % 7 == 3 || i % 7 == 4 ? 3 : 0);
	runner_stop(r);
	free(s);
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
	assert_int_equal(
		machine_wait(machine, timers_done, &expected, machine_now(machine) + LIMIT), 0);
	runner_stop(r);
	for (int i = 0; i < TIMERS; i++)
		assert_int_equal(t[i].fired, i % 5 && i % 11);
	free(t);
}

static void refuses(void **state)
{
	FILE *file = tmpfile();
	struct source s = source_of(fileno(file)), closed = source_of(1000000);
	struct runner *r = start("refuses", idle_step, NULL);

	(void)state;
	assert_int_equal(irq_attach(&s.irq, r), -EPERM);
	assert_null(s.irq.runner);
	assert_int_equal(irq_attach(&closed.irq, r), -EBADF);
	/* All of these are for attached ones. */
	irq_raise(&s.irq);
	irq_arm(&s.irq, 0);
	irq_mask(&s.irq);
	irq_unmask(&s.irq);
	irq_detach(&s.irq);
	/* And leave nothing behind. */
	s.irq.fd = -1;
	assert_int_equal(irq_attach(&s.irq, r), 0);
	settle(r);
	assert_int_equal(s.fired, 0);
	runner_stop(r);
	fclose(file);
}

/*
 * After every detach the handler is not running and not called again; the memory is freed at once,
 * so that ASan or TSan would tell.
 */
static void *raise_for_ever(void *arg)
{
	int *fds = arg;

	while (!atomic_load((_Atomic int *)&fds[1]))
		event_write(fds[0]);
	return NULL;
}

static void detach_waits_for_the_handler(void **state)
{
	int fds[2] = {eventfd(0, EFD_NONBLOCK), 0};
	struct runner *a = start("a", idle_step, NULL);
	struct runner *b = start("b", busy_step, NULL);
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, raise_for_ever, fds), 0);
	for (int i = 0; i < 2000; i++) {
		struct source *s = malloc(sizeof(*s));

		assert_non_null(s);
		*s = source_of(fds[0]);
		assert_int_equal(irq_attach(&s->irq, i % 2 ? a : b), 0);
		irq_arm(&s->irq, 0);
		irq_raise(&s->irq);
		if (i % 3 == 0)
			assert_int_equal(irq_attach(&s->irq, i % 2 ? b : a), 0);
		if (i % 5 == 0)
			await_fired(s, 1);
		irq_detach(&s->irq);
		assert_int_equal(s->inside, 0);
		assert_int_equal(s->overlaps, 0);
		memset(s, 0xff, sizeof(*s));
		free(s);
	}
	atomic_store((_Atomic int *)&fds[1], 1);
	pthread_join(thread, NULL);
	runner_stop(a);
	runner_stop(b);
	close(fds[0]);
}

/* A handler may detach and free its own source, and others of its runner that are due with it. */
struct pair {
	struct source trigger;
	struct irq *irqs[2];
};

static struct pair *pair;

static void detach_both(struct irq *irq)
{
	(void)irq;
	for (int i = 0; i < 2; i++) {
		irq_detach(pair->irqs[i]);
		memset(pair->irqs[i], 0xff, sizeof(*pair->irqs[i]));
		free(pair->irqs[i]);
	}
	count(&pair->trigger.irq);
}

/* In the runner, so that both are due in its next round. */
static void raise_both(struct irq *irq)
{
	struct pair *p = (struct pair *)irq;

	irq_raise(p->irqs[0]);
	irq_raise(p->irqs[1]);
}

static void handler_detaches(void **state)
{
	struct pair p = {.trigger.irq = IRQ_INIT(-1, raise_both)};
	struct runner *r = start("handler", idle_step, NULL);

	(void)state;
	pair = &p;
	assert_int_equal(irq_attach(&p.trigger.irq, r), 0);
	for (int i = 1; i <= 200; i++) {
		for (int j = 0; j < 2; j++) {
			p.irqs[j] = malloc(sizeof(*p.irqs[j]));
			assert_non_null(p.irqs[j]);
			*p.irqs[j] = IRQ_INIT(-1, detach_both);
			assert_int_equal(irq_attach(p.irqs[j], r), 0);
		}
		irq_raise(&p.trigger.irq);
		await_fired(&p.trigger, i);
	}
	runner_stop(r);
	assert_int_equal(p.trigger.fired, 200);
}

/* A handler moves its own source away: the other runner has it then. */
static struct runner *next_stop[2];

static void move_on(struct irq *irq)
{
	struct source *s = (struct source *)irq;
	struct runner *here = runner_current();

	count(irq);
	if (s->fired >= 200)
		return;
	assert_int_equal(irq_attach(irq, next_stop[here == next_stop[0]]), 0);
	irq_raise(irq);
}

static void handler_moves(void **state)
{
	struct source s = {.irq = IRQ_INIT(-1, move_on)};

	(void)state;
	next_stop[0] = start("a", idle_step, NULL);
	next_stop[1] = start("b", idle_step, NULL);
	assert_int_equal(irq_attach(&s.irq, next_stop[0]), 0);
	irq_raise(&s.irq);
	await_fired(&s, 200);
	runner_stop(next_stop[0]);
	runner_stop(next_stop[1]);
}

/*
 * Raised by many, all the time: after the last raise the handler runs once more, having seen what
 * its raiser wrote before.
 */
enum { RAISERS = 3, RAISES = 20000 };

struct raised {
	struct source source;
	_Atomic uint64_t written;
	uint64_t seen;
};

static void look(struct irq *irq)
{
	struct raised *r = (struct raised *)irq;

	r->seen = atomic_load(&r->written);
	count(irq);
}

static void *raise_many(void *arg)
{
	struct raised *r = arg;

	for (int i = 0; i < RAISES; i++) {
		atomic_fetch_add(&r->written, 1);
		irq_raise(&r->source.irq);
	}
	return NULL;
}

static void raised_by_many(void **state)
{
	struct raised r = {.source.irq = IRQ_INIT(-1, look)};
	struct runner *runner = start("raised", idle_step, NULL);
	pthread_t threads[RAISERS];

	(void)state;
	assert_int_equal(irq_attach(&r.source.irq, runner), 0);
	for (int i = 0; i < RAISERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, raise_many, &r), 0);
	for (int i = 0; i < RAISERS; i++)
		pthread_join(threads[i], NULL);
	settle(runner);
	assert_int_equal(r.seen, RAISERS * RAISES);
	assert_true(r.source.fired <= RAISERS * RAISES);
	runner_stop(runner);
}

/* What is pending where its runner has not come to it yet fires at the next one. */
struct gate {
	_Atomic int inside, open;
};

static struct step gate_step(void *arg)
{
	struct gate *g = arg;

	atomic_store(&g->inside, 1);
	machine_notify(machine);
	while (!atomic_load(&g->open))
		usleep(100);
	return STEP(STEP_WAIT);
}

static bool is_inside(void *arg)
{
	return atomic_load(&((struct gate *)arg)->inside);
}

static void moves_what_is_pending(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	struct source raised = source_of(-1), armed = source_of(-1), written = source_of(fd);
	struct gate g = {0};
	struct runner *a = start("a", gate_step, &g);
	struct runner *b = start("b", idle_step, NULL);

	(void)state;
	assert_int_equal(machine_wait(machine, is_inside, &g, machine_now(machine) + LIMIT), 0);
	assert_int_equal(irq_attach(&raised.irq, a), 0);
	assert_int_equal(irq_attach(&armed.irq, a), 0);
	assert_int_equal(irq_attach(&written.irq, a), 0);
	irq_raise(&raised.irq);
	irq_arm(&armed.irq, 0);
	event_write(fd);
	assert_int_equal(irq_attach(&raised.irq, b), 0);
	assert_int_equal(irq_attach(&armed.irq, b), 0);
	assert_int_equal(irq_attach(&written.irq, b), 0);
	await_fired(&raised, 1);
	await_fired(&armed, 1);
	await_fired(&written, 1);
	assert_ptr_equal(raised.at, b);
	assert_ptr_equal(armed.at, b);
	assert_ptr_equal(written.at, b);
	atomic_store(&g.open, 1);
	settle(a);
	settle(b);
	assert_int_equal(raised.fired + armed.fired + written.fired, 3);
	runner_stop(a);
	runner_stop(b);
	close(fd);
}

/* An event that came for a source which is gone is not taken for the one in its place. */
static void tells_old_events_from_new_sources(void **state)
{
	int fds[2] = {eventfd(0, EFD_NONBLOCK), 0};
	struct source old = source_of(fds[0]), new = source_of(-1);
	struct runner *r = start("busy", busy_step, NULL);
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, raise_for_ever, fds), 0);
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(irq_attach(&old.irq, r), 0);
		irq_detach(&old.irq);
		assert_int_equal(irq_attach(&new.irq, r), 0);
		irq_detach(&new.irq);
	}
	atomic_store((_Atomic int *)&fds[1], 1);
	pthread_join(thread, NULL);
	runner_stop(r);
	assert_int_equal(new.fired, 0);
	close(fds[0]);
}

/*
 * A source moves to and fro, also to runners that come and go, is masked and unmasked, while
 * others raise and write. In every round the last raise (or write, or timer) is answered after it.
 */
enum { MOVES = 10000 };

struct traffic {
	struct source source;
	_Atomic int sent, seen, stop;
	int kind, fd;
};

static void answer(struct irq *irq)
{
	struct traffic *t = (struct traffic *)irq;

	/* Now and then long enough for a move to come in between. */
	if (atomic_fetch_add(&t->source.inside, 1))
		atomic_fetch_add(&t->source.overlaps, 1);
	if (t->source.fired % 16 == 0)
		sched_yield();
	atomic_fetch_sub(&t->source.inside, 1);
	count(irq);
	if (t->kind)
		(void)!read(t->fd, &(uint64_t){0}, sizeof(uint64_t));
	atomic_store(&t->seen, atomic_load(&t->sent));
	machine_notify(machine);
}

static bool answered(void *arg)
{
	struct traffic *t = arg;

	return atomic_load(&t->seen) == atomic_load(&t->sent) || atomic_load(&t->stop);
}

static void *produce(void *arg)
{
	struct traffic *t = arg;
	intptr_t lost = 0;

	while (!atomic_load(&t->stop)) {
		atomic_fetch_add(&t->sent, 1);
		if (t->kind)
			event_write(t->fd);
		else
			irq_raise(&t->source.irq);
		/* One by one, so that a lost one stands still for ever; or in a burst. */
		if (atomic_load(&t->sent) % 4 &&
		    machine_wait(machine, answered, t, machine_now(machine) + LIMIT)) {
			lost = 1;
			break;
		}
	}
	return (void *)lost;
}

static void moves_under_load(int kind)
{
	struct traffic t = {.kind = kind, .fd = eventfd(0, EFD_NONBLOCK)};
	struct runner *runners[3] = {
		start("a", idle_step, NULL),
		start("b", busy_step, NULL),
		start("c", idle_step, NULL),
	};
	pthread_t thread;
	void *lost;
	int before;

	t.source.irq = IRQ_INIT(kind ? t.fd : -1, answer);
	assert_int_equal(irq_attach(&t.source.irq, runners[0]), 0);
	assert_int_equal(pthread_create(&thread, NULL, produce, &t), 0);
	for (int i = 1; i <= MOVES; i++) {
		int to = i % 3;

		/* Not attached there now: the source is at runners[(i - 1) % 3]. */
		if (i % 100 == 0) {
			runner_stop(runners[to]);
			runners[to] = start("new", idle_step, NULL);
		}
		if (i % 7 == 0)
			irq_mask(&t.source.irq);
		assert_int_equal(irq_attach(&t.source.irq, runners[to]), 0);
		if (i % 7 == 0)
			irq_unmask(&t.source.irq);
		if (i % 50 == 0)
			sched_yield();
	}
	before = atomic_load(&t.source.fired);
	await_fired(&t.source, before + 10);
	atomic_store(&t.stop, 1);
	machine_notify(machine);
	pthread_join(thread, &lost);
	assert_null(lost);
	assert_int_equal(t.source.overlaps, 0);
	for (int i = 0; i < 3; i++)
		runner_stop(runners[i]);
	assert_null(t.source.irq.runner);
	close(t.fd);
}

static void moves_while_raised(void **state)
{
	(void)state;
	moves_under_load(0);
}

static void moves_while_written(void **state)
{
	(void)state;
	moves_under_load(1);
}

/* Raises that race with detach and attach do no harm; those after the last attach count. */
static void detached_while_raised(void **state)
{
	struct raised r = {.source.irq = IRQ_INIT(-1, look)};
	struct runner *a = start("a", idle_step, NULL);
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, raise_many, &r), 0);
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(irq_attach(&r.source.irq, a), 0);
		irq_detach(&r.source.irq);
		assert_int_equal(r.source.inside, 0);
	}
	assert_int_equal(irq_attach(&r.source.irq, a), 0);
	pthread_join(thread, NULL);
	irq_raise(&r.source.irq);
	settle(a);
	assert_int_equal(r.seen, RAISES);
	runner_stop(a);
}

/* Raising a source of one's own runner from its step. */
static struct step raise_step(void *arg)
{
	struct source *s = arg;

	if (s->irq.runner && s->fired < 100)
		irq_raise(&s->irq);
	return STEP(STEP_WAIT);
}

static void raises_its_own(void **state)
{
	struct source s = source_of(-1);
	struct runner *r = start("own", raise_step, &s);

	(void)state;
	assert_int_equal(irq_attach(&s.irq, r), 0);
	runner_wake(r);
	await_fired(&s, 100);
	runner_stop(r);
	assert_int_equal(s.fired, 100);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, machine_open, machine_close)
	const struct CMUnitTest tests[] = {
		TEST(fires_on_edges),
		TEST(fires_between_yields),
		TEST(wakes_do_not_hide_descriptors),
		TEST(fires_on_hang_up),
		TEST(mask_remembers),
		TEST(mask_holds_over_a_move),
		TEST(timers),
		TEST(rearms_itself),
		TEST(crowd),
		TEST(crowd_starves_nobody),
		TEST(raises_one_of_many),
		TEST(deadlines_in_order),
		TEST(refuses),
		TEST(detach_waits_for_the_handler),
		TEST(handler_detaches),
		TEST(handler_moves),
		TEST(raised_by_many),
		TEST(moves_what_is_pending),
		TEST(tells_old_events_from_new_sources),
		TEST(moves_while_raised),
		TEST(moves_while_written),
		TEST(detached_while_raised),
		TEST(raises_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
