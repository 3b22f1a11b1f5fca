/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/stream_line.h"

#define SEND_PATIENCE (5 * NSEC_PER_SEC)

void stream_line_open(struct stream_line *line, int fd)
{
	peer_line_init(&line->peer, fd, STREAM_LINE_MAX);
}

void stream_line_close(struct stream_line *line)
{
	if (line->peer.fd >= 0)
		close(line->peer.fd);
	peer_line_free(&line->peer);
	line->peer.fd = -1;
}

bool stream_line_is_open(const struct stream_line *line)
{
	return line->peer.fd >= 0;
}

bool stream_line_is_dead(const struct stream_line *line)
{
	char byte;
	ssize_t n = recv(line->peer.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

int stream_line_send(struct stream_line *line, json_t *o)
{
	int ret = -ENOMEM;

	if (!stream_line_is_open(line))
		ret = -ECONNRESET;
	else if (o)
		ret = peer_line_send(line->peer.fd, o, clock_now() + SEND_PATIENCE);
	json_decref(o);
	return ret;
}

int stream_line_receive(struct stream_line *line, int64_t timeout, json_t **out)
{
	int ret;

	if (!stream_line_is_open(line))
		return -ECONNRESET;
	ret = peer_line_wait(&line->peer, clock_now() + timeout, out, NULL);
	return ret == -EINVAL || ret == -EMSGSIZE ? -EPROTO : ret;
}
