/* SPDX-License-Identifier: BSD-2-Clause */
#include "machine_host_rig.h"

#include <unistd.h>

struct machine *machine;

int machine_open(void **state)
{
	struct error err;

	(void)state;
	return machine_host_create(&machine, &err);
}

int machine_close(void **state)
{
	(void)state;
	machine_destroy(machine);
	return 0;
}

struct runner *start(const char *name, struct step (*step)(void *arg), void *arg)
{
	struct runner_config config = {.step = step, .arg = arg};
	struct runner *r;
	struct error err = {0};

	snprintf(config.name, sizeof(config.name), "%s", name);
	if (runner_start(machine, &config, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

int64_t limit(void)
{
	return machine_now(machine) + 120 * NSEC_PER_SEC;
}

bool is_set(void *arg)
{
	return atomic_load((_Atomic int *)arg);
}

void await(_Atomic int *flag)
{
	assert_int_equal(machine_wait(machine, is_set, flag, limit()), 0);
}

bool seen_waiting(void *arg)
{
	struct runner_observation seen;

	runner_observe(arg, &seen);
	return seen.waiting;
}

void await_seen(bool (*seen)(void *arg), struct runner *r)
{
	int64_t end = limit();

	while (machine_wait(machine, seen, r, machine_now(machine) + NSEC_PER_MSEC))
		assert_true(machine_now(machine) < end);
}

struct step step_state(void *arg)
{
	struct state *s = arg;

	if (!atomic_exchange(&s->stepped, 1))
		machine_notify(machine);
	return s->verdict;
}

struct step idle_step(void *arg)
{
	_Atomic int *steps = arg;

	if (steps)
		atomic_fetch_add(steps, 1);
	return STEP(STEP_WAIT);
}

struct step busy_step(void *arg)
{
	(void)arg;
	return STEP(STEP_YIELD);
}

void count(struct irq *irq)
{
	struct source *s = (struct source *)irq;

	if (atomic_fetch_add(&s->inside, 1))
		atomic_fetch_add(&s->overlaps, 1);
	atomic_store(&s->at, runner_current());
	atomic_fetch_add(&s->fired, 1);
	atomic_fetch_sub(&s->inside, 1);
	machine_notify(machine);
}

struct source source_of(int fd)
{
	return (struct source){.irq = IRQ_INIT(fd, count)};
}

static bool has_fired(void *arg)
{
	struct source *s = arg;

	return atomic_load(&s->fired) >= s->expected;
}

void await_fired(struct source *s, int expected)
{
	s->expected = expected;
	assert_int_equal(machine_wait(machine, has_fired, s, limit()), 0);
}

void settle(struct runner *r)
{
	struct source probe = source_of(-1);

	assert_int_equal(irq_attach(&probe.irq, r), 0);
	for (int i = 1; i <= 2; i++) {
		irq_raise(&probe.irq);
		await_fired(&probe, i);
	}
	irq_detach(&probe.irq);
	await_seen(seen_waiting, r);
}

void event_write(int fd)
{
	static const uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}
