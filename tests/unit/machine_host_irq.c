/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt sources on the host machine: what makes them fire, and masks. */
#include "machine_host_rig.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
	await_seen(seen_waiting, r);
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
		TEST(crowd),
		TEST(crowd_starves_nobody),
		TEST(raises_one_of_many),
		TEST(refuses),
		TEST(raises_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
