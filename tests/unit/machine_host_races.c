/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt sources on the host machine that are raised while they move, are taken away, or end. */
#include "machine_host_rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
	assert_int_equal(machine_wait(machine, is_inside, &g, limit()), 0);
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
		if (atomic_load(&t->sent) % 4 && machine_wait(machine, answered, t, limit())) {
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, machine_open, machine_close)
	const struct CMUnitTest tests[] = {
		TEST(detach_waits_for_the_handler),
		TEST(handler_detaches),
		TEST(handler_moves),
		TEST(raised_by_many),
		TEST(moves_what_is_pending),
		TEST(tells_old_events_from_new_sources),
		TEST(moves_while_raised),
		TEST(moves_while_written),
		TEST(detached_while_raised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
