/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "lab/load/stream_worker.h"
#include "lab/measure/latency.h"

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static void counts_add(struct stream_counts *to, const struct stream_counts *from)
{
	to->messages += from->messages;
	to->bytes += from->bytes;
	to->late += from->late;
	to->late_bytes += from->late_bytes;
	to->reordered += from->reordered;
	to->duplicated += from->duplicated;
	to->late_sends += from->late_sends;
	to->errors += from->errors;
}

static json_t *counts_json(const struct stream_counts *c)
{
	return json_pack("{so so so so so so so so}", "messages", number(c->messages), "bytes",
			 number(c->bytes), "late", number(c->late), "late_bytes",
			 number(c->late_bytes), "reordered", number(c->reordered), "duplicated",
			 number(c->duplicated), "late_sends", number(c->late_sends), "errors",
			 number(c->errors));
}

/* Of the n that are every so many-th from the first one on. */
static json_t *tallies_json(const struct stream_plan *plan, const struct stream_tally *tally,
			    unsigned n)
{
	struct stream_series *bytes = malloc(2 * sizeof(*bytes));
	json_t *steps = json_array(), *group = NULL;

	if (!bytes) {
		json_decref(steps);
		return NULL;
	}
	stream_series_reset(&bytes[0], plan->interval);
	stream_series_reset(&bytes[1], plan->interval);
	for (unsigned s = 0; s < plan->steps; s++) {
		struct stream_counts sum = {0};

		for (unsigned i = 0; i < n; i++)
			counts_add(&sum, &tally[i].step[s]);
		json_array_append_new(steps, counts_json(&sum));
	}
	for (unsigned i = 0; i < n; i++) {
		stream_series_merge(&bytes[0], &tally[i].bytes);
		stream_series_merge(&bytes[1], &tally[i].messages);
	}
	group = json_pack("{so so so}", "steps", steps, "bytes", stream_series_json(&bytes[0]),
			  "messages", stream_series_json(&bytes[1]));
	free(bytes);
	return group;
}

static json_t *groups_json(const struct stream_end *end, bool sends)
{
	const struct stream_plan *plan = end->plan;
	const struct stream_tally *tally = end->tally;
	json_t *groups = json_array();
	unsigned n = 0;

	if (plan->groups > 1) {
		for (unsigned g = 0; g < plan->groups; g++)
			json_array_append_new(
				groups,
				tallies_json(plan, &tally[sends ? g : plan->groups + g], 1));
		return groups;
	}
	/* Those who send come first. */
	while (n < end->workers && end->worker[n].sends)
		n++;
	json_array_append_new(groups, tallies_json(plan, sends ? tally : tally + n,
						   sends ? n : end->workers - n));
	return groups;
}

static json_t *rtt_json(const struct stream_end *end)
{
	struct histogram *all = malloc(sizeof(*all));
	json_t *o = NULL;

	if (!all)
		return NULL;
	histogram_reset(all);
	for (unsigned i = 0; i < end->workers; i++) {
		if (end->worker[i].rtt)
			histogram_merge(all, end->worker[i].rtt);
	}
	if (all->n)
		o = latency_json(all, 0);
	free(all);
	return o;
}

static json_t *direction_json(const struct stream_end *end, bool sends)
{
	uint64_t total = 0, total_bytes = 0, measured = 0, foreign = 0, again = 0, broken = 0;
	int failed = 0;

	for (unsigned i = 0; i < end->workers; i++) {
		const struct stream_worker *w = &end->worker[i];

		if (w->sends != sends)
			continue;
		total += counter_read(&w->total);
		total_bytes += counter_read(&w->total_bytes);
		measured += counter_read(&w->measured);
		foreign += w->foreign;
		failed = w->failed ? w->failed : failed;
		for (unsigned k = 0; k < w->flows && sends; k++) {
			again += w->out[k]->retransmits;
			broken += w->out[k]->broken;
		}
	}
	return json_pack("{so so so so so so si so}", "groups", groups_json(end, sends), "total",
			 number(total), "total_bytes", number(total_bytes), "measured",
			 number(measured), "foreign", number(foreign), "retransmits", number(again),
			 "failed", failed, "broken", number(broken));
}

json_t *stream_end_report(struct stream_end *end)
{
	json_t *rtt = rtt_json(end);

	return json_pack("{sI sI sI so so so}", "from_ns", (json_int_t)end->learned, "until_ns",
			 (json_int_t)end->stopped, "duration_ns", (json_int_t)end->duration, "rtt",
			 rtt ? rtt : json_null(), "tx", direction_json(end, true), "rx",
			 direction_json(end, false));
}
