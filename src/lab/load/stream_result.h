/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_result: a run's result from what the two sides have counted.
 *
 * A report (stream_end_report) is {"from_ns", "until_ns", "duration_ns", "rtt", "tx", "rx"}: from
 * when to when that side has counted, since the beginning; tx and rx each {"groups": [{"steps":
 * [counts], "bytes": series, "messages": series}], "total", "total_bytes", "measured", "foreign",
 * "retransmits", "failed", "broken"}. A side that is missing (NULL: it died) makes null of what it
 * alone knows.
 */
#ifndef LAB_LOAD_STREAM_RESULT_H
#define LAB_LOAD_STREAM_RESULT_H

#include "lab/load/stream_plan.h"
#include "lab/load/stream_series.h"
#include "lab/load/stream_worker.h"

/* One direction: who sent and who received. */
struct stream_way {
	const json_t *sender, *receiver; /* reports; NULL: it has none */
};

/* What was sent and what of it was received, of a group in a step, or several of them. */
struct stream_both {
	bool sent_known, received_known;
	struct stream_counts sent, received;
	double sent_s, received_s; /* how long that was counted */
};

void stream_both_add(const struct stream_plan *plan, const struct stream_way *way, unsigned group,
		     unsigned step, struct stream_both *to);
/* Adds that group's series ("bytes" or "messages") of the sender or receiver; false: not known. */
bool stream_series_gather(const struct stream_way *way, bool sender, unsigned group,
			  const char *key, struct stream_series *to);
/*
 * Array of rates, a second, in the intervals up to `until` ns, whose last one may be a short one:
 * it is null where less than a tenth of it is left. of: how much one of the sums is.
 */
json_t *stream_series_rates(const struct stream_series *s, int64_t until, double of);
/* null when it is no number. */
json_t *stream_rate(double value, double seconds);

/* One direction's counts, e.g. "retransmits"; 0 when there is no report. */
uint64_t stream_way_sum(const struct stream_way *way, bool sender, const char *key);
/* Why a run with these sides is invalid, or NULL: stopped before its end, out of memory … */
const char *stream_invalid(const json_t *client, const json_t *server, char *text, size_t size);

/* For json_decref. */
json_t *stream_result(const struct stream_plan *plan, const json_t *client, const json_t *server,
		      const char *died);

#endif
