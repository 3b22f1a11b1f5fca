/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_server: the server side of streams, and of rrul's TCP flows. One client at a time; the
 * next one may come when it has gone. See load.h.
 */
#ifndef LAB_LOAD_STREAM_SERVER_H
#define LAB_LOAD_STREAM_SERVER_H

#include "lab/load/load.h"

struct stream_server;

int stream_server_start(const struct load_config *config, const struct load_place *place,
			struct stream_server **out, struct error *err);
unsigned stream_server_threads(const struct stream_server *server, pid_t tids[LOAD_TIDS_MAX]);
/* {"counts"}: of the client that is there, or was the last one; the unmeasured ones too. */
json_t *stream_server_read(const struct stream_server *server);
void stream_server_stop(struct stream_server *server);

#endif
