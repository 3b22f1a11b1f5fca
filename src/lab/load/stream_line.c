/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <napier/machine.h>

#include "lab/clock.h"
#include "lab/load/stream_line.h"

#define SEND_PATIENCE (5 * NSEC_PER_SEC)

enum { ROOM_FIRST = 4096 };

void stream_line_open(struct stream_line *line, int fd)
{
	*line = (struct stream_line){.fd = fd};
}

void stream_line_close(struct stream_line *line)
{
	if (line->fd >= 0)
		close(line->fd);
	free(line->text);
	stream_line_open(line, -1);
}

/* 0: it is so; -ETIMEDOUT. */
static int await(int fd, short events, int64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = events};
	int64_t left;
	int n;

	do {
		left = deadline - clock_now();
		n = poll(&p, 1, left > 0 ? (int)(left / NSEC_PER_MSEC + 1) : 0);
	} while ((n < 0 && errno == EINTR) || (n == 0 && left > 0));
	return n < 0 ? -errno : n ? 0 : -ETIMEDOUT;
}

static int text_send(struct stream_line *line, const char *text, size_t length)
{
	int64_t deadline = clock_now() + SEND_PATIENCE;
	int ret;

	while (length) {
		ssize_t n = send(line->fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			text += n;
			length -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return errno == EPIPE ? -ECONNRESET : -errno;
		ret = await(line->fd, POLLOUT, deadline);
		if (ret)
			return ret;
	}
	return 0;
}

int stream_line_send(struct stream_line *line, json_t *o)
{
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	int ret = -ENOMEM;

	json_decref(o);
	if (line->fd < 0) {
		free(text);
		return -ECONNRESET;
	}
	if (text) {
		size_t length = strlen(text);

		text[length] = '\n'; /* in the place of the terminating zero */
		ret = text_send(line, text, length + 1);
	}
	free(text);
	return ret;
}

/* The first line of what has come, if it is whole. */
static int line_take(struct stream_line *line, json_t **out)
{
	char *end = memchr(line->text, '\n', line->length);
	size_t length;

	if (!end)
		return line->length < STREAM_LINE_MAX ? -EAGAIN : -EPROTO;
	length = (size_t)(end + 1 - line->text);
	*out = json_loadb(line->text, length, 0, NULL);
	memmove(line->text, end + 1, line->length - length);
	line->length -= length;
	if (json_is_object(*out))
		return 0;
	json_decref(*out);
	return -EPROTO;
}

static int room_make(struct stream_line *line)
{
	size_t room = line->room ? 2 * line->room : ROOM_FIRST;
	char *text;

	if (line->length < line->room)
		return 0;
	text = realloc(line->text, room);
	if (!text)
		return -ENOMEM;
	line->text = text;
	line->room = room;
	return 0;
}

int stream_line_receive(struct stream_line *line, int64_t timeout, json_t **out)
{
	int64_t deadline = clock_now() + timeout;
	int ret = line->length ? line_take(line, out) : -EAGAIN;

	if (line->fd < 0)
		return -ECONNRESET;
	while (ret == -EAGAIN) {
		ssize_t n;

		ret = room_make(line);
		if (ret)
			break;
		n = recv(line->fd, line->text + line->length, line->room - line->length,
			 MSG_DONTWAIT);
		if (n > 0) {
			line->length += (size_t)n;
			ret = line_take(line, out);
			continue;
		}
		if (n == 0)
			return -ECONNRESET;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		ret = await(line->fd, POLLIN, deadline);
		if (!ret)
			ret = -EAGAIN;
	}
	return ret;
}
