/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_line: what the two sides of a stream tell each other, one JSON object a line, over a TCP
 * connection of its own. One thread uses one end. Functions return 0 or a negative errno.
 */
#ifndef LAB_LOAD_STREAM_LINE_H
#define LAB_LOAD_STREAM_LINE_H

#include "lab/load/peer_line.h"

enum { STREAM_LINE_MAX = 16 << 20 };

struct stream_line {
	struct peer_line peer; /* fd -1: none */
};

/* Takes the descriptor. */
void stream_line_open(struct stream_line *line, int fd);
void stream_line_close(struct stream_line *line);
bool stream_line_is_open(const struct stream_line *line);
/* Has the other side closed it? */
bool stream_line_is_dead(const struct stream_line *line);

/* Takes o. Waits at most 5 s. -ECONNRESET: the other side is gone; -ETIMEDOUT: it reads nothing. */
int stream_line_send(struct stream_line *line, json_t *o);
/*
 * The next one, for json_decref, within so many ns. -ETIMEDOUT, -ECONNRESET, -EPROTO: that was no
 * such line.
 */
int stream_line_receive(struct stream_line *line, int64_t timeout, json_t **out);

#endif
