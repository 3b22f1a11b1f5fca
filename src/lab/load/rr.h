/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rr: request and response over TCP and UDP. What its two sides share: how they meet.
 *
 * What the two do, and what is measured of it:
 *
 * - Closed loop (rate 0): each flow has one request outstanding, and sends the next when it has the
 *   whole response. Open loop: each client thread has a schedule of its own, `rate` divided by the
 *   threads, and sends each request when it is due, by its flows in turn, whatever is outstanding.
 * - `service` is from just before the request's first byte is sent (with `connect`: before the
 *   connection is asked for) until its last byte has been received; `response` from when it was
 * due.
 * - A request that is due while it cannot be sent (`outstanding` are; or every flow's send buffer
 *   is full; or every flow is without its connection; where only one fits into a flow, because of
 *   `connect` or UDP messages of less than 4 bytes, all are taken) keeps its time, and is sent when
 *   it can. `bounded` counts those that were held for longer than RR_LATE.
 * - A request that could be sent, and still left more than RR_LATE after it was due, was late by
 *   the generator's own fault: `late_sends`. A run in which those are more than one in
 *   RR_LATE_SHARE (and at least 10: fewer make no percentile) is invalid: its p99 would tell of the
 *   generator. What was held for some time may take as long again before it is late.
 * - To a run belong the requests that are sent (open loop: due) in its time. At its end those under
 *   way are awaited, and those due but held are still sent, up to the time-out. What has no
 *   response by then is lost: started = completed + lost. Lost ones are in both distributions at
 *   the time-out (response: at their age, if that is more). A request is lost when it is not
 *   answered within the time-out, or when its connection breaks; `timeouts` are the former.
 * - `transactions`, and its rate, count those that ended in its time, whenever they began.
 *
 * TCP: what the server gets is answered in order; a flow whose request has timed out, or that is
 * answered with another request's tag, connects anew (`reconnects`). With `connect` a connection is
 * reset by the client when it has its response, so that none waits in TIME-WAIT.
 * UDP: a message carries a tag, so each response is matched, late ones are passed over, and one
 * that is lost does not hold the flow.
 *
 * Meeting: the client sends a hello with all its parameters, on each TCP connection but those of
 * `connect` (which go to the next port), over UDP on one socket; the server answers with its own,
 * and refuses when any of them differs.
 */
#ifndef LAB_LOAD_RR_H
#define LAB_LOAD_RR_H

#include "lab/load/load.h"

#define RR_LATE INT64_C(100000) /* ns */

enum {
	RR_LATE_SHARE = 100,
	RR_VERSION = 1,
	RR_UDP_SIZE_MAX = 65507,
	RR_TAG_MAX = sizeof(uint32_t),
	RR_PARAMETERS = 21,
};

#define RR_MAGIC UINT32_C(0x6e707272) /* "nprr" */

enum rr_status { RR_ASKS, RR_ACCEPTS, RR_REFUSES, RR_OTHER_VERSION };

/* In network order. The first eight bytes are the same in every version. */
struct rr_hello_head {
	uint32_t magic;
	uint16_t version;
	uint16_t status;
};

struct rr_hello {
	struct rr_hello_head head;
	uint64_t value[RR_PARAMETERS];
};

void rr_hello_make(const struct load_config *config, enum rr_status status, struct rr_hello *out);
/* The server's answer. Of another version only the head is looked at, and to be sent. */
enum rr_status rr_hello_answer(const struct load_config *config, const struct rr_hello *asked,
			       struct rr_hello *out);
/* The client's look at it, of which `n` bytes came. 0 or -EPROTO. */
int rr_hello_check(const struct load_config *config, const struct load_place *place,
		   const struct rr_hello *answer, size_t n, struct error *err);

int rr_check(struct load_config *config, struct error *err);

/* The response repeats so many first bytes of the request. */
static inline uint32_t rr_tag_size(const struct load_config *config)
{
	uint32_t least = config->request_size < config->response_size ? config->request_size
								      : config->response_size;

	return least < RR_TAG_MAX ? least : RR_TAG_MAX;
}

int rr_server_start(const struct load_config *config, const struct load_place *place, void **server,
		    struct error *err);
unsigned rr_server_threads(const void *server, pid_t tids[LOAD_TIDS_MAX]);
json_t *rr_server_read(const void *server);
void rr_server_stop(void *server, json_t **result);

int rr_client_start(const struct load_config *config, const struct load_place *place, void **client,
		    struct error *err);
unsigned rr_client_threads(const void *client, pid_t tids[LOAD_TIDS_MAX]);
void rr_client_measure(void *client, int64_t duration);
void rr_client_progress(const void *client, struct load_progress *out);
int rr_client_stop(void *client, json_t **result, struct error *err);

#endif
