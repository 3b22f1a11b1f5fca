/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rrul_probe: latency, by small messages that come back: UDP in three classes, which the server's
 * rrul_echo reflects, and ICMP echo, which its kernel answers.
 *
 * Each kind is sent at the configured rate whatever comes back (open loop), the kinds a quarter of
 * a period apart. Response is from when a probe was due, so one that leaves late or queues is not
 * hidden. One that does not come back within the time-out is lost, and is in the distribution at
 * the time-out. A probe belongs to the step in which it was due.
 *
 * The thread runs in real time where the process may have that, so that what is measured is the
 * path and not the wait for a CPU beside the streams' own threads (also with a nice value for all
 * of them); `late_sends` counts what left more than RRUL_LATE after it was due all the same.
 */
#ifndef LAB_LOAD_RRUL_PROBE_H
#define LAB_LOAD_RRUL_PROBE_H

#include "lab/histogram.h"
#include "lab/load/load.h"
#include "lab/load/stream_series.h"

#define RRUL_LATE NSEC_PER_MSEC
#define RRUL_MAGIC UINT32_C(0x6e707270) /* "nprp" */

enum { RRUL_UDP_BE, RRUL_UDP_BK, RRUL_UDP_EF, RRUL_ICMP, RRUL_PROBES };
enum { RRUL_IDLE, RRUL_LOAD, RRUL_STEPS };
enum { RRUL_PROBE_SIZE = 64 };

/* What a probe's payload begins with; it comes back as it went. In network order. */
struct rrul_message {
	uint32_t magic;
	uint32_t run; /* replies to somebody else's are not ours */
	uint32_t kind;
	uint32_t number;
};

struct rrul_tally {
	uint64_t sent, received, lost; /* in the end sent = received + lost */
	uint64_t late_sends, errors;   /* errors: refused by the system; those are lost */
	struct histogram latency;      /* ns; n = sent in the end */
};

struct rrul_probe;

extern const char *const rrul_probe_names[RRUL_PROBES]; /* "udp_be" … "icmp" */

/* Sends, uncounted, when it returns. */
int rrul_probe_start(const struct load_config *config, const struct load_place *place,
		     struct rrul_probe **out, struct error *err);
pid_t rrul_probe_thread(const struct rrul_probe *probe);
/* The start is about to be chosen: no probe is taken for one before it until it is told. */
void rrul_probe_starting(struct rrul_probe *probe);
/* Steps begin at `start`, and end at these times after it. */
void rrul_probe_measure(struct rrul_probe *probe, int64_t start, const int64_t end[RRUL_STEPS]);
/* Probes that came back, and did not, so far. */
void rrul_probe_progress(const struct rrul_probe *probe, uint64_t *received, uint64_t *lost);
/* What is due from now on is not sent any more. */
void rrul_probe_end(struct rrul_probe *probe);
/* Awaits what is under way, up to the time-out; what follows may be read then. */
void rrul_probe_join(struct rrul_probe *probe);

/* Is there that kind? */
bool rrul_probe_measures(const struct rrul_probe *probe, unsigned kind);
const struct rrul_tally *rrul_probe_tally(const struct rrul_probe *probe, unsigned kind,
					  unsigned step);
/* Sum of response and number of those that came back, by when they were due. */
const struct stream_series *rrul_probe_series(const struct rrul_probe *probe, unsigned kind,
					      bool number);
/* NULL, or why a kind is not there, or its thread not in real time; i from 0. */
const char *rrul_probe_note(const struct rrul_probe *probe, unsigned i);
void rrul_probe_free(struct rrul_probe *probe);

#endif
