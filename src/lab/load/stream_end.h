/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_end: one side's flows: threads that send messages on them and threads that receive them,
 * and what these count, by step. Client and server have one each; the same code sends up and down.
 *
 * A datagram says its flow, step, number within both, and when it was sent since the beginning, so
 * its receiver counts it where it belongs however long it was under way. In the bytes of a TCP
 * connection nothing is marked: they are counted by when they were taken from the socket.
 *
 *      create ... (flow_add ... run ... measure ... send_stop ... receive_stop, report ... reset)
 * ... destroy
 *
 * What is in brackets is one client's, and may be repeated. One thread controls an end. Functions
 * return 0 or a negative errno and fill err.
 */
#ifndef LAB_LOAD_STREAM_END_H
#define LAB_LOAD_STREAM_END_H

#include "lab/load/stream_plan.h"

enum { STREAM_DATAGRAM_MIN = 16, STREAM_DATAGRAM_MAX = 65507 };

struct stream_end;

/* Its threads are there from now on, and sleep. plan stays where it is. name: of its threads. */
int stream_end_create(const struct stream_plan *plan, bool server, const char *name,
		      const struct load_place *place, struct stream_end **out, struct error *err);
unsigned stream_end_threads(const struct stream_end *end, pid_t tids[LOAD_TIDS_MAX]);
void stream_end_destroy(struct stream_end *end);

/* Takes the descriptor, which is connected. A flow that has one already: -EEXIST, fd is closed. */
int stream_end_flow_add(struct stream_end *end, unsigned flow, int fd);
/* Have all flows a descriptor? */
bool stream_end_complete(const struct stream_end *end);
/* All flows are there: sends, uncounted, and receives. */
void stream_end_run(struct stream_end *end);
/* Steps begin at `start` (CLOCK_MONOTONIC, ns). */
void stream_end_measure(struct stream_end *end, int64_t start, int64_t duration);
/*
 * Nobody sends any more when it returns. Returns what was sent in steps: messages, of TCP bytes,
 * since the connections began.
 */
uint64_t stream_end_send_stop(struct stream_end *end);
/*
 * Receives until `expected` have come, nothing came for a quarter of the time-out, or that has
 * passed; then nobody receives any more. `gone` (may be NULL) is asked now and then, and ends it.
 */
void stream_end_receive_stop(struct stream_end *end, uint64_t expected, bool (*gone)(void *arg),
			     void *arg);
/* Of both directions, see stream_result.h; for json_decref. Nobody sends or receives. */
json_t *stream_end_report(struct stream_end *end);
/* Ends what still runs, closes all flows. */
void stream_end_reset(struct stream_end *end);

/* So far, the unmeasured ones too: messages (datagrams), bytes. */
struct stream_totals {
	uint64_t sent, bytes_sent, received, bytes_received;
};
void stream_end_totals(const struct stream_end *end, struct stream_totals *out);

#endif
