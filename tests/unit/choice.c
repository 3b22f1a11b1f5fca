/* SPDX-License-Identifier: BSD-2-Clause */
/* Which poller is chosen, from samples made up: what is a candidate, trials, hysteresis. */
#include "test.h"

#include <core/choice.h>

/* Quiet but for what a test sets; a packet a wake, a poll a packet. */
static struct choice_sample sample(uint64_t per_second)
{
	struct choice_sample s = {
		.ns = CHOICE_INTERVAL,
		.packets = per_second / 10,
		.polls = per_second / 10,
		.wakes = per_second / 10,
		.all_packets = per_second / 10,
		.may_try = true,
	};

	return s;
}

/* A saturated one: full polls, no wakes. */
static struct choice_sample full(uint64_t per_second)
{
	struct choice_sample s = sample(per_second);

	s.polls = s.full_polls = per_second / 640;
	s.wakes = 0;
	s.load = 0.95;
	return s;
}

/* Up to n intervals of the same; stops, and returns true, when another poller is wanted. */
static bool asks(struct choice *c, const struct choice_sample *s, unsigned n, enum poller *out)
{
	for (unsigned i = 0; i < n; i++) {
		*out = choice_step(c, s);
		if (*out != c->poller)
			return true;
	}
	return false;
}

static void leaves_alone_what_is_fine(void **state)
{
	struct choice_sample s = sample(1000);
	enum poller out;
	struct choice c;

	(void)state;
	for (unsigned poller = 0; poller < POLLER_MAX; poller++) {
		choice_init(&c, (enum poller)poller, 0);
		s.idle_most = s.idle_spin = 0.9;
		s.may_spin = true;
		assert_false(asks(&c, &s, 1000, &out));
	}
}

/* A port that not every poller can poll. */
static void keeps_to_what_can_be(void **state)
{
	struct choice_sample s = full(1000000), worse = full(900000);
	struct choice c;

	(void)state;
	choice_init(&c, POLLER_SOFTIRQ, 1 << POLLER_SOFTIRQ | 1 << POLLER_WORKQUEUE);
	s.idle_most = 0.9;
	for (int i = 0; i < 1000; i++) {
		enum poller out = choice_step(&c, c.poller == POLLER_SOFTIRQ ? &s : &worse);

		if (out != c.poller)
			choice_made(&c, out);
		assert_true(out == POLLER_SOFTIRQ || out == POLLER_WORKQUEUE);
	}
}

/* Many wake-ups and a CPU that idles anyway. */
static void spins_where_a_cpu_idles(void **state)
{
	struct choice_sample s = sample(20000);
	enum poller out;
	struct choice c;

	(void)state;
	choice_init(&c, POLLER_SOFTIRQ, 0);
	s.idle_most = s.idle_spin = 0.9;
	assert_false(asks(&c, &s, 1000, &out)); /* no CPU would be left */
	s.may_spin = true;
	s.idle_spin = 0.2;
	assert_false(asks(&c, &s, 1000, &out)); /* others use it */
	s.idle_spin = 0.9;
	assert_true(asks(&c, &s, CHOICE_REST, &out));
	assert_int_equal(out, POLLER_BUSY_POLL);
	choice_made(&c, out);
	assert_true(c.tries);
	s.wakes = 0;
	assert_false(asks(&c, &s, 1000, &out)); /* as many packets: it stays */
	assert_false(c.tries);

	/* Nobody spins for nothing. */
	s = sample(100);
	assert_true(asks(&c, &s, CHOICE_QUIET, &out));
	assert_int_equal(out, POLLER_SOFTIRQ);
	choice_made(&c, out);
	assert_false(c.tries);
}

/* It is not taken for one interval's figures. */
static void waits_for_confirmation(void **state)
{
	struct choice_sample s = full(1000000), fine = sample(1000);
	enum poller out;
	struct choice c;

	(void)state;
	choice_init(&c, POLLER_SOFTIRQ, 0);
	s.idle_most = 0.9;
	for (int i = 0; i < 1000; i++) {
		const struct choice_sample *now = i % CHOICE_CONFIRM ? &s : &fine;

		assert_int_equal(choice_step(&c, now), POLLER_SOFTIRQ);
	}
	assert_true(asks(&c, &s, CHOICE_CONFIRM, &out));
	assert_int_equal(out, POLLER_THREAD);
}

/* Worse, or no better: back, and left alone for twice as long each time. */
static void goes_back(void **state)
{
	struct choice_sample s = full(1000000), worse = full(900000);
	unsigned tries = 0, of_thread = 0;
	enum poller out;
	struct choice c;

	(void)state;
	choice_init(&c, POLLER_SOFTIRQ, 0);
	s.idle_most = 0.9;
	for (int i = 0; i < 36000; i++) { /* an hour */
		out = choice_step(&c, c.poller == POLLER_SOFTIRQ ? &s : &worse);
		if (out == c.poller)
			continue;
		tries += c.poller == POLLER_SOFTIRQ;
		of_thread += out == POLLER_THREAD;
		choice_made(&c, out);
	}
	assert_int_equal(c.poller, POLLER_SOFTIRQ);
	/* 5, 10, 20 … 300 s: 18 times in an hour, each of them. */
	assert_in_range(of_thread, 8, 20);
	assert_in_range(tries, 16, 40);
}

static void gives_up_early(void **state)
{
	struct choice_sample s = full(1000000), worse = full(100000);
	enum poller out;
	struct choice c;
	unsigned n = 0;

	(void)state;
	choice_init(&c, POLLER_SOFTIRQ, 0);
	s.idle_most = 0.9;
	assert_true(asks(&c, &s, 100, &out));
	choice_made(&c, out);
	do {
		out = choice_step(&c, &worse);
	} while (out == c.poller && ++n < 100);
	assert_int_equal(n, CHOICE_SETTLE);
	assert_int_equal(out, POLLER_SOFTIRQ);
	assert_int_equal(c.move, CHOICE_BACK);
}

static void keeps_what_is_better(void **state)
{
	struct choice_sample s = full(1000000), better = full(1300000);
	unsigned moves = 0;
	struct choice c;

	(void)state;
	choice_init(&c, POLLER_SOFTIRQ, 0);
	s.idle_most = better.idle_most = 0.9;
	for (int i = 0; i < 36000; i++) {
		enum poller out = choice_step(&c, c.poller == POLLER_WORKQUEUE ? &better : &s);

		if (out == c.poller)
			continue;
		moves++;
		choice_made(&c, out);
	}
	assert_int_equal(c.poller, POLLER_WORKQUEUE);
	assert_in_range(moves, 3, 90);
}

/* Of two trials the second begins CHOICE_REST after the first, however clear its case. */
static void rests_between_trials(void **state)
{
	struct choice_sample s = full(1000000), worse = full(900000);
	unsigned since = 0, trials = 0;
	enum poller out;
	struct choice c;

	(void)state;
	choice_init(&c, POLLER_SOFTIRQ, 0);
	s.idle_most = 0.9;
	for (int i = 0; i < 1000; i++, since++) {
		out = choice_step(&c, c.poller == POLLER_SOFTIRQ ? &s : &worse);
		if (out == c.poller)
			continue;
		if (c.move == CHOICE_TRY && trials++)
			assert_true(since >= CHOICE_REST);
		choice_made(&c, out);
		since = 0;
	}
	assert_true(trials > 3);
}

/* A little more is no more: what it costs decides, and that is the same. */
static void a_margin_is_no_gain(void **state)
{
	struct choice_sample s = full(1000000), hardly = full(1040000), clearly = full(1060000);
	enum poller out;
	struct choice c;

	(void)state;
	for (int better = 0; better < 2; better++) {
		choice_init(&c, POLLER_SOFTIRQ, 0);
		s.idle_most = 0.9;
		assert_true(asks(&c, &s, 100, &out));
		choice_made(&c, out);
		assert_int_equal(asks(&c, better ? &clearly : &hardly, 10, &out), !better);
		assert_int_equal(out, better ? POLLER_THREAD : POLLER_SOFTIRQ);
	}
}

/* What failed is held back; after a long quiet it is as good as another. */
static void forgets_in_the_quiet(void **state)
{
	struct choice_sample s = full(1000000), worse = full(900000), none = sample(0);
	enum poller out;
	struct choice c;

	(void)state;
	s.idle_most = 0.9;
	for (int quiet = CHOICE_FORGET - 1; quiet <= CHOICE_FORGET; quiet++) {
		choice_init(&c, POLLER_SOFTIRQ, 0);
		for (int i = 0; i < 3000; i++) {
			out = choice_step(&c, c.poller == POLLER_SOFTIRQ ? &s : &worse);
			if (out != c.poller)
				choice_made(&c, out);
		}
		while (c.poller != POLLER_SOFTIRQ)
			choice_made(&c, choice_step(&c, &worse));
		assert_true(c.held[POLLER_THREAD] > CHOICE_HOLD_FIRST);
		assert_false(asks(&c, &none, (unsigned)quiet, &out));
		assert_int_equal(!c.held[POLLER_THREAD], quiet == CHOICE_FORGET);
		assert_int_equal(!c.hold[POLLER_THREAD], quiet == CHOICE_FORGET);
	}
}

/* A program on the same CPU: softirq, which goes before it, has its packets in time. */
static void flees_from_a_crowd(void **state)
{
	struct choice_sample s = sample(2000);
	enum poller out;
	struct choice c;

	(void)state;
	choice_init(&c, POLLER_THREAD, 0);
	s.crowded = 0.5;
	s.wait_ns = 400000;
	assert_true(asks(&c, &s, 100, &out));
	assert_int_equal(out, POLLER_SOFTIRQ);
	choice_made(&c, out);
	s.crowded = 0;
	s.wait_ns = 2000;
	assert_false(asks(&c, &s, 1000, &out));
	assert_false(c.tries);

	/* And out of busy polling, when another wants its CPU. */
	choice_init(&c, POLLER_BUSY_POLL, 0);
	s.crowded = 0.5;
	assert_true(asks(&c, &s, 100, &out));
	assert_int_equal(out, POLLER_SOFTIRQ);
}

/* Traffic that ends says nothing about a trial; nor does one that has failed to begin. */
static void ends_trials(void **state)
{
	struct choice_sample s = full(1000000), none = sample(0);
	enum poller out;
	struct choice c;

	(void)state;
	choice_init(&c, POLLER_SOFTIRQ, 0);
	s.idle_most = 0.9;
	assert_true(asks(&c, &s, 100, &out));
	choice_made(&c, out);
	assert_true(asks(&c, &none, CHOICE_QUIET, &out));
	assert_int_equal(out, POLLER_SOFTIRQ);
	choice_made(&c, out);
	assert_int_equal(c.held[POLLER_THREAD], 0);

	assert_true(asks(&c, &s, 100, &out));
	assert_int_equal(out, POLLER_THREAD);
	choice_failed(&c, out);
	assert_true(asks(&c, &s, 100, &out));
	assert_int_equal(out, POLLER_WORKQUEUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_alone_what_is_fine),
		cmocka_unit_test(keeps_to_what_can_be),
		cmocka_unit_test(spins_where_a_cpu_idles),
		cmocka_unit_test(waits_for_confirmation),
		cmocka_unit_test(goes_back),
		cmocka_unit_test(gives_up_early),
		cmocka_unit_test(keeps_what_is_better),
		cmocka_unit_test(flees_from_a_crowd),
		cmocka_unit_test(ends_trials),
		cmocka_unit_test(rests_between_trials),
		cmocka_unit_test(a_margin_is_no_gain),
		cmocka_unit_test(forgets_in_the_quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
