/* SPDX-License-Identifier: BSD-2-Clause */
/* stream_client: the client side of streams, and of rrul's TCP flows. See load.h. */
#ifndef LAB_LOAD_STREAM_CLIENT_H
#define LAB_LOAD_STREAM_CLIENT_H

#include "lab/load/stream_end.h"

struct stream_client;

int stream_client_start(const struct load_config *config, const struct load_place *place,
			struct stream_client **out, struct error *err);
unsigned stream_client_threads(const struct stream_client *client, pid_t tids[LOAD_TIDS_MAX]);
const struct stream_plan *stream_client_plan(const struct stream_client *client);
void stream_client_totals(const struct stream_client *client, struct stream_totals *out);
/*
 * Returns when it begins (CLOCK_MONOTONIC, ns): some ms from now, so that the server has heard of
 * it by then.
 */
int64_t stream_client_measure(struct stream_client *client, int64_t duration);
/* Waits for the end, if that is so near that its caller meant it. */
void stream_client_await(const struct stream_client *client);
/*
 * Makes a run's result of both ends' reports (stream_result.h), which are not its own. theirs is
 * NULL and died says why when the server went away.
 */
typedef json_t *stream_maker(void *arg, const json_t *ours, const json_t *theirs, const char *died);
/*
 * After such a wait, too: stops, and *result is what `make` makes. -ECONNRESET and the like: the
 * server died; the result is there all the same.
 */
int stream_client_stop(struct stream_client *client, stream_maker *make, void *arg, json_t **result,
		       struct error *err);
void stream_client_free(struct stream_client *client);

#endif
