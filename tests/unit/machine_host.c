/* SPDX-License-Identifier: BSD-2-Clause */
/* Runners on the host machine: steps, wake-ups, ends, quiesce and control's waiting. */
#include "machine_host_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Two runners that wake each other in turn: one lost wake-up and it stands still. */
enum { PING_PONGS = 100000 };

struct table {
	struct player {
		struct table *table;
		struct runner *_Atomic other;
		int mine;
	} players[2];
	_Atomic int turn, rounds, over;
};

static struct step play(void *arg)
{
	struct player *p = arg;
	struct table *t = p->table;
	struct runner *other = atomic_load(&p->other);

	if (!other || atomic_load(&t->turn) != p->mine || t->over)
		return STEP(STEP_WAIT);
	if (atomic_fetch_add(&t->rounds, 1) == PING_PONGS) {
		atomic_store(&t->over, 1);
		machine_notify(machine);
		return STEP(STEP_WAIT);
	}
	atomic_store(&t->turn, !p->mine);
	runner_wake(other);
	return STEP(STEP_WAIT);
}

/* However long all of them take: on a busy machine each waits for its turn to run. */
static void await_rounds(struct table *t)
{
	int before;

	do {
		before = t->rounds;
		if (!machine_wait(machine, is_set, &t->over, limit()))
			return;
	} while (t->rounds > before);
	fail_msg("stands still in round %d of %d", before, PING_PONGS);
}

static void wakes_are_not_lost(void **state)
{
	struct table t = {.players = {{&t, NULL, 0}, {&t, NULL, 1}}};
	struct runner *a, *b;

	(void)state;
	a = start("ping", play, &t.players[0]);
	b = start("pong", play, &t.players[1]);
	atomic_store(&t.players[0].other, b);
	atomic_store(&t.players[1].other, a);
	runner_wake(a);
	await_rounds(&t);
	runner_stop(a);
	runner_stop(b);
}

/* What was written before a wake-up is seen by a step after it. */
struct mailbox {
	int letter; /* plain on purpose */
	_Atomic int read;
};

static struct step read_letter(void *arg)
{
	struct mailbox *box = arg;

	if (box->letter > box->read) {
		atomic_store(&box->read, box->letter);
		machine_notify(machine);
	}
	return STEP(STEP_WAIT);
}

static bool is_read(void *arg)
{
	struct mailbox *box = arg;

	return atomic_load(&box->read) == box->letter;
}

static void a_step_follows_every_wake(void **state)
{
	struct mailbox box = {.letter = 0};
	struct runner *r = start("reader", read_letter, &box);

	(void)state;
	for (int i = 1; i <= 1000; i++) {
		/* Not while a step may be reading it: the test is of the wake-up alone. */
		await_seen(seen_waiting, r);
		box.letter = i;
		runner_wake(r);
		assert_int_equal(machine_wait(machine, is_read, &box, limit()), 0);
	}
	runner_stop(r);
}

/* A wake-up by oneself within a step means one more step. */
struct self {
	int steps;
	_Atomic int done;
};

static struct step wake_self(void *arg)
{
	struct self *s = arg;

	assert_non_null(runner_current());
	if (++s->steps < 1000) {
		runner_wake(runner_current());
		return STEP(STEP_WAIT);
	}
	atomic_store(&s->done, 1);
	machine_notify(machine);
	return STEP(STEP_WAIT);
}

static void wakes_itself(void **state)
{
	struct self s = {.steps = 0};
	struct runner *r = start("self", wake_self, &s);

	(void)state;
	await(&s.done);
	runner_stop(r);
	assert_int_equal(s.steps, 1000);
	assert_null(runner_current());
}

/* A runner with a deadline steps again when it has come, not before. */
struct sleeper {
	int64_t until;
	int early, steps;
	_Atomic int done;
};

static struct step sleep_step(void *arg)
{
	struct sleeper *s = arg;
	int64_t now = machine_now(machine);

	if (now < s->until)
		s->early++;
	if (++s->steps > 20) {
		atomic_store(&s->done, 1);
		machine_notify(machine);
		return STEP(STEP_WAIT);
	}
	/* Now and then one that has passed already. */
	s->until = now + (s->steps % 4 ? NSEC_PER_MSEC : -NSEC_PER_MSEC);
	return STEP_UNTIL(s->until);
}

static void deadlines(void **state)
{
	struct sleeper s = {.until = 0};
	struct runner *r = start("sleeper", sleep_step, &s);

	(void)state;
	await(&s.done);
	runner_stop(r);
	assert_int_equal(s.early, 0);
}

static bool seen_ended(void *arg)
{
	struct runner_observation seen;

	runner_observe(arg, &seen);
	return !seen.tid;
}

/* Stopped in each state that a runner can be in. */
static void stops_in_each_state(void **state)
{
	static const struct step verdicts[] = {
		{STEP_AGAIN, TIME_NEVER},   {STEP_YIELD, TIME_NEVER}, {STEP_WAIT, TIME_NEVER},
		{STEP_WAIT, INT64_MAX / 2}, {STEP_EXIT, TIME_NEVER},
	};

	(void)state;
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < sizeof(verdicts) / sizeof(*verdicts); i++) {
			struct state s = {.verdict = verdicts[i]};
			struct runner *r = start("state", step_state, &s);

			/* Sometimes in that state for certain, sometimes on the way there. */
			if (round % 2) {
				await(&s.stepped);
				if (s.verdict.verdict == STEP_EXIT)
					await_seen(seen_ended, r);
				else if (s.verdict.verdict == STEP_WAIT)
					await_seen(seen_waiting, r);
			}
			runner_stop(r);
		}
	}
}

static void wakes_an_ended_one(void **state)
{
	struct state s = {.verdict = STEP(STEP_EXIT)};
	struct placement placement = {.level = 3};
	struct runner_observation seen;
	struct runner *r = start("ended", step_state, &s);

	(void)state;
	await_seen(seen_ended, r);
	runner_wake(r);
	assert_int_equal(runner_place(r, &placement), -ESRCH);
	runner_observe(r, &seen);
	assert_true(seen.waiting);
	assert_true(seen.cpu_time > 0);
	runner_stop(r);
}

/* Control's quiesce returns only when a step that was going on has ended. */
struct slow {
	_Atomic int inside, leave;
	_Atomic int left;
};

static struct step slow_step(void *arg)
{
	struct slow *s = arg;

	if (s->left)
		return STEP(STEP_WAIT);
	atomic_store(&s->inside, 1);
	machine_notify(machine);
	while (!atomic_load(&s->leave))
		usleep(100);
	usleep(5000);
	atomic_store(&s->left, 1);
	return STEP(STEP_WAIT);
}

static void quiesce_waits_for_a_step(void **state)
{
	struct slow s = {0};
	struct runner *r = start("slow", slow_step, &s);

	(void)state;
	await(&s.inside);
	atomic_store(&s.leave, 1);
	machine_quiesce(machine);
	assert_int_equal(s.left, 1);
	runner_stop(r);
}

/*
 * A runner that never waits reads a pointer whose target control frees after quiesce; another
 * runner, control's own, quiesces too, and a third waits for ever.
 */
struct shared {
	int *_Atomic pointer;
	_Atomic int done;
	int rounds;
};

static struct step read_step(void *arg)
{
	struct shared *s = arg;

	assert_int_equal(*atomic_load(&s->pointer), 7);
	return STEP(STEP_AGAIN);
}

static int *seven(void)
{
	int *p = malloc(sizeof(*p));

	assert_non_null(p);
	*p = 7;
	return p;
}

static struct step replace_step(void *arg)
{
	struct shared *s = arg;
	int *old;

	if (s->rounds == 200) {
		atomic_store(&s->done, 1);
		machine_notify(machine);
		return STEP(STEP_WAIT);
	}
	s->rounds++;
	old = atomic_exchange(&s->pointer, seven());
	machine_quiesce(machine);
	*old = 0;
	free(old);
	return STEP(STEP_AGAIN);
}

static void quiesce_lets_free(void **state)
{
	struct state idle = {.verdict = STEP(STEP_WAIT)};
	struct shared s = {.pointer = seven()};
	struct runner *waiting = start("waiting", step_state, &idle);
	struct runner *reader = start("reader", read_step, &s);
	struct runner *replacer = start("replacer", replace_step, &s);

	(void)state;
	for (int i = 0; i < 200; i++) {
		int *old = atomic_exchange(&s.pointer, seven());

		machine_quiesce(machine);
		*old = 0;
		free(old);
	}
	await(&s.done);
	runner_stop(reader);
	runner_stop(replacer);
	runner_stop(waiting);
	free(s.pointer);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

/* A runner inside machine_wait does not keep others from quiescing, and both kinds time out. */
struct control {
	_Atomic int waiting, go, done;
	int rc;
};

static struct step control_step(void *arg)
{
	struct control *c = arg;

	if (c->done)
		return STEP(STEP_WAIT);
	atomic_store(&c->waiting, 1);
	machine_notify(machine);
	c->rc = machine_wait(machine, is_set, &c->go, TIME_NEVER);
	atomic_store(&c->done, 1);
	machine_notify(machine);
	return STEP(STEP_WAIT);
}

static void waits(void **state)
{
	struct control c = {.rc = 1};
	struct runner *r = start("control", control_step, &c);
	int64_t until = machine_now(machine) + 3 * NSEC_PER_MSEC;

	(void)state;
	await(&c.waiting);
	machine_quiesce(machine);
	assert_int_equal(machine_wait(machine, never, NULL, until), -ETIMEDOUT);
	assert_true(machine_now(machine) >= until);
	assert_int_equal(machine_wait(machine, never, NULL, 0), -ETIMEDOUT);
	atomic_store(&c.go, 1);
	/* Done wins over a deadline that has passed. */
	assert_int_equal(machine_wait(machine, is_set, &c.go, 0), 0);
	machine_notify(machine);
	await(&c.done);
	assert_int_equal(c.rc, 0);
	runner_stop(r);
}

/* What nobody notifies of is found too; but who waits long does not look all the time. */
static bool third_look(void *arg)
{
	return ++*(int *)arg == 3;
}

static bool count_looks(void *arg)
{
	++*(int *)arg;
	return false;
}

static void looks_unasked(void **state)
{
	int looks = 0;

	(void)state;
	assert_int_equal(machine_wait(machine, third_look, &looks, TIME_NEVER), 0);
	looks = 0;
	assert_int_equal(machine_wait(machine, count_looks, &looks,
				      machine_now(machine) + 300 * NSEC_PER_MSEC),
			 -ETIMEDOUT);
	/* Ten when each comes in its time; one late comer is the last, and may be the first too. */
	assert_in_range(looks, 1, 15);
}

/* Starting and stopping leaves no thread, memory or descriptor behind. */
static void starts_many(void **state)
{
	struct state s = {.verdict = STEP(STEP_WAIT)};
	int before = dup(0), after;

	(void)state;
	close(before);
	for (int i = 0; i < 500; i++) {
		struct runner *r = start("many", step_state, &s);

		if (!i) {
			close(before = dup(0));
		}
		runner_stop(r);
	}
	close(after = dup(0));
	assert_int_equal(before, after);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, machine_open, machine_close)
	const struct CMUnitTest tests[] = {
		TEST(wakes_are_not_lost),
		TEST(a_step_follows_every_wake),
		TEST(wakes_itself),
		TEST(deadlines),
		TEST(stops_in_each_state),
		TEST(wakes_an_ended_one),
		TEST(quiesce_waits_for_a_step),
		TEST(quiesce_lets_free),
		TEST(waits),
		TEST(looks_unasked),
		TEST(starts_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
