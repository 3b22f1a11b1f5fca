/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol between the two ends of a workload (peer.h): objects, one a line.
 *
 *   server  {"napier": VERSION, "protocol": N}, or "error"; a client waits for it
 *   client  {"do": "hello", "napier": VERSION, "protocol": N}
 *   server  {"ok": true}
 *   client  {"do": "environment"}                    (of another host)
 *   server  {"ok": true, "environment": {…}}
 *   client  {"do": "start", "config": {…}, "place": {…}, "lasts_ns": N}
 *   server  {"ok": true, "threads": [TID, …]}
 *   client  {"do": "read"} or {"do": "stop"}
 *   server  {"ok": true, "result": {…}}
 *
 * An answer may be {"error": TEXT, "code": "EPROTO"} instead. The first two lines are the same in
 * every version of it.
 */
#ifndef LAB_LOAD_PEER_LINE_H
#define LAB_LOAD_PEER_LINE_H

#include "lab/load/load.h"

enum {
	PEER_REQUEST_MAX = 1 << 16, /* bytes of a line to a server */
	PEER_ANSWER_MAX = 1 << 22,  /* and from one */
};

/* Lines from a descriptor, which it does not own. */
struct peer_line {
	int fd;
	char *text;
	size_t have, size, max;
};

void peer_line_init(struct peer_line *line, int fd, size_t max);
void peer_line_free(struct peer_line *line);
/* Reads what is there, without waiting. 0; -EAGAIN: nothing; -ECONNRESET: the end; -EMSGSIZE. */
int peer_line_fill(struct peer_line *line);
/*
 * The next whole line, if it is there: 1 and *out, which is an object; 0: not yet; -EINVAL: it is
 * none, which err tells with the beginning of it.
 */
int peer_line_take(struct peer_line *line, json_t **out, struct error *err);
/* Waits until `deadline` of clock_now for the other end to take it. Steals nothing. */
int peer_line_send(int fd, const json_t *o, int64_t deadline);
/* The next line; waits. -ETIMEDOUT, and what the two above say, with err. */
int peer_line_wait(struct peer_line *line, int64_t deadline, json_t **out, struct error *err);

/* "EPROTO"; a code without a name is "EIO". Both ways a negative errno. */
const char *peer_code_name(int code);
int peer_code_parse(const char *name);

/* netns stays here. */
json_t *load_place_json(const struct load_place *place);
int load_place_read(const json_t *o, struct load_place *out, struct error *err);

#endif
