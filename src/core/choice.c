/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include <core/choice.h>

void choice_init(struct choice *choice, enum poller poller, uint32_t can)
{
	memset(choice, 0, sizeof(*choice));
	choice->since = CHOICE_REST; /* nothing was tried before */
	choice->can = can ? can : UINT32_MAX;
	choice->poller = choice->wish = poller;
	snprintf(choice->why, sizeof(choice->why), "nothing measured yet");
}

/* What was long ago counts less: about the last five intervals. */
static void sum_add(struct choice_sum *sum, const struct choice_sample *s, double keep)
{
	sum->n = sum->n * keep + 1;
	sum->ns = sum->ns * keep + (double)s->ns;
	sum->all_packets = sum->all_packets * keep + (double)s->all_packets;
	sum->wait_ns = sum->wait_ns * keep + s->wait_ns;
	sum->crowded = sum->crowded * keep + s->crowded;
	if (s->all_cpu_ns) {
		sum->cpu_ns = sum->cpu_ns * keep + (double)s->all_cpu_ns;
		sum->cpu_packets = sum->cpu_packets * keep + (double)s->all_packets;
	}
}

static double sum_rate(const struct choice_sum *sum)
{
	return sum->ns > 0 ? sum->all_packets * NSEC_PER_SEC / sum->ns : 0;
}

static double sum_cost(const struct choice_sum *sum)
{
	return sum->cpu_packets > 0 ? sum->cpu_ns / sum->cpu_packets : 0;
}

static double sample_rate(const struct choice_sample *s)
{
	return (double)s->packets * NSEC_PER_SEC / (double)s->ns;
}

static bool saturated(const struct choice_sample *s)
{
	return s->load >= CHOICE_SATURATED || 2 * s->full_polls > s->polls;
}

static bool crowded(const struct choice_sample *s)
{
	return s->crowded >= CHOICE_CROWDED || s->wait_ns >= CHOICE_WAIT;
}

/* A CPU that idles anyway, and enough to do that not being woken for it is worth that CPU. */
static bool spin_worth(const struct choice_sample *s)
{
	double wakes = (double)s->wakes * NSEC_PER_SEC / (double)s->ns;

	return s->may_spin && s->idle_spin >= CHOICE_FREE &&
	       (wakes >= CHOICE_RATE_BUSY || saturated(s));
}

/* In the order in which they are tried; ends with POLLER_MAX. */
static void candidates(const struct choice *choice, const struct choice_sample *s,
		       enum poller out[POLLER_MAX + 1])
{
	bool trouble = crowded(s) || (saturated(s) && choice->poller != POLLER_BUSY_POLL);
	unsigned n = 0;

	if (trouble && choice->poller == POLLER_BUSY_POLL) {
		out[n++] = POLLER_SOFTIRQ;
		out[n++] = POLLER_THREAD;
	} else if (trouble && s->idle_most >= CHOICE_FREE) {
		out[n++] = POLLER_THREAD;
		if (spin_worth(s))
			out[n++] = POLLER_BUSY_POLL;
		out[n++] = POLLER_WORKQUEUE;
		out[n++] = POLLER_SOFTIRQ;
	} else if (trouble) {
		out[n++] = POLLER_SOFTIRQ;
		out[n++] = POLLER_THREAD;
		out[n++] = POLLER_WORKQUEUE;
	} else if (spin_worth(s)) {
		out[n++] = POLLER_BUSY_POLL;
	}
	out[n] = POLLER_MAX;
}

static enum poller candidate(const struct choice *choice, const struct choice_sample *s)
{
	enum poller list[POLLER_MAX + 1];

	candidates(choice, s, list);
	for (unsigned i = 0; list[i] != POLLER_MAX; i++) {
		if (list[i] != choice->poller && !choice->hold[list[i]] &&
		    choice->can >> list[i] & 1)
			return list[i];
	}
	return choice->poller;
}

static void hold_begin(struct choice *choice, enum poller poller)
{
	uint32_t next = choice->held[poller] ? 2 * choice->held[poller] : CHOICE_HOLD_FIRST;

	if (next > CHOICE_HOLD_LAST)
		next = CHOICE_HOLD_LAST;
	choice->hold[poller] = choice->held[poller] = next;
}

/* 1: the trial is better, -1: worse, 0: no difference that one can see. */
static int compare(double trial, double before, double margin)
{
	if (trial > before * (1 + margin))
		return 1;
	return trial < before * (1 - margin) ? -1 : 0;
}

/* Packets a second first; then the wait for the poll; then what it costs. */
static bool trial_good(const struct choice *choice)
{
	const struct choice_sum *base = &choice->base, *trial = &choice->trial;
	double wait = trial->wait_ns / trial->n, wait_before = base->wait_ns / base->n;
	double crowd = trial->crowded / trial->n, crowd_before = base->crowded / base->n;
	int faster = compare(sum_rate(trial), sum_rate(base), CHOICE_MARGIN);
	double cost = sum_cost(trial), cost_before = sum_cost(base);

	if (faster)
		return faster > 0;
	/* Its latency cannot be seen from here: a port has no time of arrival. */
	if (choice->poller == POLLER_BUSY_POLL)
		return crowd < CHOICE_CROWDED;
	if (crowd_before >= CHOICE_CROWDED && crowd < crowd_before / 2)
		return true;
	if (crowd >= CHOICE_CROWDED && crowd > crowd_before * 2)
		return false;
	if (wait_before >= CHOICE_WAIT && wait < wait_before * 0.7)
		return true;
	if (wait >= CHOICE_WAIT && wait > wait_before * 1.3)
		return false;
	if (choice->before == POLLER_BUSY_POLL)
		return true; /* as good, without a CPU of its own */
	return cost && cost_before && compare(cost, cost_before, 3 * CHOICE_MARGIN) < 0;
}

static enum poller say(struct choice *choice, enum choice_move move, enum poller poller)
{
	choice->move = move;
	choice->wish = poller;
	return poller;
}

/* The one that is given up has to be named: what it is read beside is the one that stays. */
static void figures(const struct choice *choice, bool good, char *text, size_t size)
{
	snprintf(text, size, "%s%s%.0f packets/s and %.0f ns CPU each, %s before %.0f and %.0f",
		 good ? "" : poller_name(choice->poller),
		 good ? "" : " was not better: ", sum_rate(&choice->trial),
		 sum_cost(&choice->trial), poller_name(choice->before), sum_rate(&choice->base),
		 sum_cost(&choice->base));
}

static enum poller trial_step(struct choice *choice, const struct choice_sample *s)
{
	bool lost, good;

	if (choice->since <= CHOICE_SETTLE)
		return choice->poller;
	sum_add(&choice->trial, s, 1);
	lost = sum_rate(&choice->trial) < sum_rate(&choice->base) * (1 - CHOICE_GIVE_UP);
	if (!lost && choice->trial.n < CHOICE_TRIAL)
		return choice->poller;
	good = !lost && trial_good(choice);
	figures(choice, good, choice->why, sizeof(choice->why));
	if (!good) {
		hold_begin(choice, choice->poller);
		return say(choice, CHOICE_BACK, choice->before);
	}
	hold_begin(choice, choice->before);
	choice->tries = false;
	choice->base = choice->trial;
	choice->since = 0;
	return choice->poller;
}

/* Nothing to gain, so nothing to try; and nobody spins for nothing. */
static enum poller quiet_step(struct choice *choice)
{
	if (choice->quiet < CHOICE_QUIET)
		return choice->poller;
	choice->wished = 0;
	if (choice->quiet == CHOICE_FORGET) {
		memset(choice->hold, 0, sizeof(choice->hold));
		memset(choice->held, 0, sizeof(choice->held));
	}
	if (choice->tries) {
		snprintf(choice->why, sizeof(choice->why), "traffic ended while it was tried");
		return say(choice, CHOICE_BACK, choice->before);
	}
	if (choice->poller != POLLER_BUSY_POLL || !(choice->can >> POLLER_SOFTIRQ & 1))
		return choice->poller;
	snprintf(choice->why, sizeof(choice->why), "under %d packets/s", CHOICE_RATE_QUIET);
	return say(choice, CHOICE_LEAVE, POLLER_SOFTIRQ);
}

static void reasons(struct choice *choice, const struct choice_sample *s)
{
	snprintf(choice->why, sizeof(choice->why),
		 "load %.0f%%, %.1f packets/poll, waits %.0f us and %.0f%% of the time, idlest CPU "
		 "%.0f%%",
		 s->load * 100, s->polls ? (double)s->packets / (double)s->polls : 0.0,
		 s->wait_ns / 1000, s->crowded * 100, s->idle_most * 100);
}

static void wish_count(struct choice *choice, enum poller poller)
{
	if (poller == choice->poller)
		choice->wished = 0;
	else if (poller == choice->wish)
		choice->wished++;
	else
		choice->wished = 1;
	choice->wish = poller;
}

enum poller choice_step(struct choice *choice, const struct choice_sample *s)
{
	choice->since++;
	for (unsigned i = 0; i < POLLER_MAX; i++)
		choice->hold[i] -= choice->hold[i] > 0;
	choice->quiet = sample_rate(s) < CHOICE_RATE_QUIET ? choice->quiet + 1 : 0;
	if (choice->quiet)
		return quiet_step(choice);
	if (choice->tries)
		return trial_step(choice, s);
	sum_add(&choice->base, s, 0.8);
	wish_count(choice, s->may_try ? candidate(choice, s) : choice->poller);
	if (choice->wished < CHOICE_CONFIRM || choice->since < CHOICE_REST)
		return choice->poller;
	reasons(choice, s);
	return say(choice, CHOICE_TRY, choice->wish);
}

bool choice_measures(const struct choice *choice)
{
	return choice->tries || choice->wished;
}

void choice_made(struct choice *choice, enum poller poller)
{
	enum poller before = choice->poller;

	choice->poller = choice->wish = poller;
	choice->tries = choice->move == CHOICE_TRY;
	choice->before = before;
	choice->trial = (struct choice_sum){0};
	if (!choice->tries)
		choice->base = (struct choice_sum){0};
	choice->wished = 0;
	choice->since = 0;
}

void choice_failed(struct choice *choice, enum poller poller)
{
	hold_begin(choice, poller);
	choice->wish = choice->poller;
	choice->wished = 0;
	choice->since = 0;
	choice->tries = false;
}
