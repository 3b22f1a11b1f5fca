/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "lab/measure/usage_json.h"

/* A process of a thousand threads: those that used most are listed. */
enum { LISTED = 128 };

static json_t *seconds(bool known, int64_t ns)
{
	return known && ns >= 0 ? json_real((double)ns / 1e9) : json_null();
}

static json_t *count(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

static json_t *ratio(bool known, double value, double by)
{
	return known && by > 0 ? json_real(value / by) : json_null();
}

/* Without the watch it is not known what of a clock's time was softirq. */
static json_t *used_json(const struct usage_view *v, const struct account_used *used)
{
	bool known = used->known && v->site->watch;
	int64_t user, system;
	bool split = known && account_split(used, &user, &system);

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "total_s",
			 seconds(known, used->net), "user_s", seconds(split, split ? user : 0),
			 "system_s", seconds(split, split ? system : 0), "gross_s",
			 seconds(used->gross >= 0, used->gross), "voluntary",
			 count(used->voluntary), "involuntary", count(used->involuntary), "wakeups",
			 count(used->wakeups), "migrations", count(used->migrations));
}

static json_t *event_json(const struct usage_view *v, unsigned party, enum usage_event event)
{
	double value;

	return v->counters && counters_sum(v->counters, party, event, &value) ? json_real(value)
									      : json_null();
}

static bool is_listed(const struct usage_view *v, unsigned party)
{
	return party == PARTY_KERNEL || party < v->site->config->parties;
}

static json_t *parties_json(const struct usage_view *v)
{
	json_t *all = json_object();

	for (unsigned i = 0; i < PARTIES; i++) {
		json_t *party;

		if (!is_listed(v, i))
			continue;
		party = used_json(v, &v->account->party[i]);
		json_object_set_new(party, "cycles", event_json(v, i, USAGE_CYCLES));
		json_object_set_new(party, "instructions", event_json(v, i, USAGE_INSTRUCTIONS));
		json_object_set_new(all, account_party(v->site->config, i), party);
	}
	json_object_set_new(all, "softirq",
			    json_pack("{s:o}", "total_s", seconds(true, v->account->softirq)));
	return all;
}

static json_t *thread_json(const struct usage_view *v, const struct account_thread *t)
{
	json_t *o = used_json(v, &t->used);

	/* A name may have bytes that are no text. */
	json_object_set_new(o, "name", json_string(t->name) ?: json_string("?"));
	json_object_set_new(o, "tid", t->thread ? json_integer(t->thread) : json_null());
	json_object_set_new(o, "party", json_string(account_party(v->site->config, t->party)));
	json_object_set_new(o, "cpu", count(t->cpu));
	return o;
}

/* Those that did not run are no news, unless they are a party's own. */
static bool is_worth_it(const struct usage_view *v, const struct account_thread *t)
{
	return is_listed(v, t->party) && (t->party != PARTY_KERNEL || t->used.gross > 0);
}

static json_t *threads_json(const struct usage_view *v)
{
	json_t *all = json_array();
	const struct account *a = v->account;
	unsigned left = 0;

	for (unsigned i = 0; i < a->threads; i++) {
		unsigned more = 0;

		if (!is_worth_it(v, &a->thread[i]))
			continue;
		for (unsigned k = 0; k < a->threads && a->threads > LISTED; k++)
			more += is_worth_it(v, &a->thread[k]) &&
				(a->thread[k].used.gross > a->thread[i].used.gross ||
				 (a->thread[k].used.gross == a->thread[i].used.gross && k < i));
		if (more < LISTED)
			json_array_append_new(all, thread_json(v, &a->thread[i]));
		else
			left++;
	}
	if (left)
		json_array_append_new(
			v->notes, json_sprintf("%u threads that used less are not listed.", left));
	return all;
}

/* Of all that work for the traffic. -1: of one of them it is not known. */
static int64_t total(const struct usage_view *v)
{
	const struct account *a = v->account;
	int64_t sum = a->softirq;

	if (!v->site->watch) {
		/* The machine's, less what others used: it needs no backs, but has hundredths. */
		sum = a->busy < 0 || a->others < 0 ? -1 : a->busy - a->others;
		for (unsigned i = 0; i < v->site->config->parties && sum > 0; i++)
			sum -= account_is_antagonist(v->site->config, i) ? a->party[i].gross : 0;
		return sum < 0 && a->busy >= 0 && a->others >= 0 ? 0 : sum;
	}
	for (unsigned i = 0; i < PARTIES && sum >= 0; i++) {
		if (!is_listed(v, i) || account_is_antagonist(v->site->config, i))
			continue;
		sum = a->party[i].known ? sum + a->party[i].net : -1;
	}
	return sum;
}

static json_t *polls_json(uint64_t polls, uint64_t packets)
{
	return json_pack("{s:I, s:I, s:o}", "polls", (json_int_t)polls, "packets",
			 (json_int_t)packets, "packets_per_poll",
			 ratio(true, (double)packets, (double)polls));
}

/* Of the party whose stack received most: requests at the server, a download at the client. */
static json_t *gro_json(const struct usage_view *v)
{
	uint64_t most = 0, taken = 0;

	for (unsigned i = 0; i < v->site->config->parties; i++) {
		const struct stack_counts *from = &v->begin->stack[i], *to = &v->end->stack[i];

		if (!from->wire || to->wire < from->wire || to->taken < from->taken ||
		    to->wire - from->wire <= most)
			continue;
		most = to->wire - from->wire;
		taken = to->taken - from->taken;
	}
	/* The two are not read at once. */
	return ratio(true, (double)(most > taken ? most : taken), (double)taken);
}

static json_t *kernel_json(const struct usage_view *v)
{
	unsigned n = v->site->config->interfaces;
	uint64_t polls[2] = {0}, packets[2] = {0}; /* of the interfaces; of backlogs */
	json_t *o;

	if (!v->site->watch)
		return json_null();
	for (unsigned i = 0; i <= n; i++) {
		polls[i == n] += v->end->watched[i].polls - v->begin->watched[i].polls;
		packets[i == n] += v->end->watched[i].packets - v->begin->watched[i].packets;
	}
	if (!polls[0] && polls[1] && n)
		json_array_append_new(v->notes,
				      json_string("The interfaces under test have no NAPI of their "
						  "own in use: their packets are in the CPUs' "
						  "backlogs, with those of all others."));
	o = polls_json(polls[0], packets[0]);
	json_object_set_new(o, "backlog", polls_json(polls[1], packets[1]));
	json_object_set_new(o, "gro_ratio", gro_json(v));
	return o;
}

static json_t *events_json(const struct usage_view *v, enum usage_event event)
{
	double value, sum = 0;

	for (unsigned i = 0; i < PARTIES; i++) {
		if (!is_listed(v, i) || account_is_antagonist(v->site->config, i))
			continue;
		if (!v->counters || !counters_sum(v->counters, i, event, &value))
			return json_null();
		sum += value;
	}
	return json_real(sum);
}

json_t *usage_json(const struct usage_view *v)
{
	const struct account *a = v->account;
	int64_t all = total(v);
	json_t *o = json_pack(
		"{s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:n}", "wall_s",
		(double)a->wall / 1e9, "parties", parties_json(v), "threads", threads_json(v),
		"total_s", seconds(true, all), "cores_used",
		ratio(all >= 0, (double)all, (double)a->wall), "cores_busy", count(a->cores_busy),
		"others_s", seconds(true, a->others), "idle_s", seconds(true, a->idle), "cycles",
		events_json(v, USAGE_CYCLES), "instructions", events_json(v, USAGE_INSTRUCTIONS),
		"kernel", kernel_json(v), "napier");

	if (!o) {
		json_decref(v->notes);
		return NULL;
	}
	json_object_set_new(o, "notes", v->notes);
	usage_operations(o, v->operations);
	return o;
}

static json_t *each_took(const json_t *used, double operations)
{
	const json_t *total = json_object_get(used, "total_s");

	return ratio(json_is_number(total), json_number_value(total) * 1e9, operations);
}

void usage_operations(json_t *cpu, double operations)
{
	json_t *parties = json_object_get(cpu, "parties"), *party, *each;
	const char *name;

	if (!(operations > 0)) {
		json_object_set_new(cpu, "operations", json_null());
		json_object_set_new(cpu, "ns_per_operation", json_null());
		return;
	}
	each = json_object();
	json_object_foreach(parties, name, party)
		json_object_set_new(each, name, each_took(party, operations));
	json_object_set_new(each, "total", each_took(cpu, operations));
	json_object_set_new(cpu, "operations", json_real(operations));
	json_object_set_new(cpu, "ns_per_operation", each);
}
