/* SPDX-License-Identifier: BSD-2-Clause */
/* The other end of the control socket, and the counters of an engine in another process. */
#ifndef CONTROL_CLIENT_H
#define CONTROL_CLIENT_H

#include <jansson.h>

#include <napier/counters.h>

#include <control/rundir.h>

/* Longer than any request may take: a set is bounded by 5 s, and as long to undo it; a removal by 5
 * s. */
#define CLIENT_TIMEOUT_MS 30000

/*
 * Connects to the engine of this run directory. -ENOENT: none runs. -EAGAIN: one just starts or
 * ends. -EACCES. Returns a descriptor.
 */
int client_connect(const struct rundir *dir, struct error *err);

/*
 * Sends the request (and lets go of it) and waits for the answer. 0: *answer is the caller's and
 * its "ok" is true. What the engine refused is a negative errno with the engine's text. -ETIME,
 * -ECONNRESET: it did not answer, and the connection is of no more use.
 */
int client_ask(int fd, json_t *request, json_t **answer, struct error *err);

/*
 * Maps the counters of a running engine, to be read only. -ENOENT, -EAGAIN: as above. -EPROTO: made
 * by another version, or not what it should be.
 */
int counters_map(const struct rundir *dir, const struct counters_file **out, struct error *err);
void counters_unmap(const struct counters_file *file);

#endif
