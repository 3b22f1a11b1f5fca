/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lab/clock.h"
#include "lab/load/peer_line.h"

enum { LINE_FIRST = 4096 };

void peer_line_init(struct peer_line *line, int fd, size_t max)
{
	*line = (struct peer_line){.fd = fd, .max = max};
}

void peer_line_free(struct peer_line *line)
{
	free(line->text);
	line->text = NULL;
	line->have = line->size = 0;
}

static int room_make(struct peer_line *line)
{
	size_t size = line->size ? 2 * line->size : LINE_FIRST;
	char *text;

	if (line->have < line->size)
		return 0;
	if (line->have >= line->max)
		return -EMSGSIZE;
	text = realloc(line->text, size);
	if (!text)
		return -ENOMEM;
	line->text = text;
	line->size = size;
	return 0;
}

int peer_line_fill(struct peer_line *line)
{
	int ret = room_make(line);
	ssize_t n;

	if (ret)
		return ret;
	n = recv(line->fd, line->text + line->have, line->size - line->have, MSG_DONTWAIT);
	if (n == 0)
		return -ECONNRESET;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n < 0)
		return -ECONNRESET;
	line->have += (size_t)n;
	return 0;
}

/* The beginning of what is no object, fit for a terminal. */
static int line_refuse(const char *text, size_t length, struct error *err)
{
	char shown[48];
	size_t n = length < sizeof(shown) - 1 ? length : sizeof(shown) - 1;

	for (size_t i = 0; i < n; i++)
		shown[i] = isprint((unsigned char)text[i]) ? text[i] : '.';
	shown[n] = '\0';
	return error_set(err, -EINVAL, "\"%s%s\" is no line of the protocol", shown,
			 n < length ? "…" : "");
}

int peer_line_take(struct peer_line *line, json_t **out, struct error *err)
{
	char *end = line->have ? memchr(line->text, '\n', line->have) : NULL;
	size_t length = end ? (size_t)(end - line->text) : 0;
	int ret = 1;

	if (!end)
		return 0;
	*out = json_loadb(line->text, length, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(*out)) {
		json_decref(*out);
		*out = NULL;
		ret = line_refuse(line->text, length, err);
	}
	line->have -= length + 1;
	memmove(line->text, end + 1, line->have);
	return ret;
}

static int milliseconds_left(int64_t deadline)
{
	int64_t left = deadline - clock_now();

	return left <= 0 ? 0 : (int)((left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

/* 0: it is ready, or a signal came: look again. */
static int ready_wait(int fd, short events, int64_t deadline)
{
	struct pollfd wait = {.fd = fd, .events = events};

	if (poll(&wait, 1, milliseconds_left(deadline)) == 0)
		return -ETIMEDOUT;
	return 0;
}

int peer_line_send(int fd, const json_t *o, int64_t deadline)
{
	char *text = json_dumps(o, JSON_COMPACT);
	size_t length = text ? strlen(text) : 0, sent = 0;
	int ret = text ? 0 : -ENOMEM;

	if (text)
		text[length++] = '\n'; /* in the place of the NUL */
	while (!ret && sent < length) {
		ssize_t n = send(fd, text + sent, length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0)
			sent += (size_t)n;
		else if (errno == EAGAIN)
			ret = ready_wait(fd, POLLOUT, deadline);
		else if (errno != EINTR)
			ret = -ECONNRESET;
	}
	free(text);
	return ret;
}

int peer_line_wait(struct peer_line *line, int64_t deadline, json_t **out, struct error *err)
{
	for (;;) {
		int ret = peer_line_take(line, out, err);

		if (ret)
			return ret < 0 ? ret : 0;
		ret = peer_line_fill(line);
		if (ret == -EAGAIN)
			ret = ready_wait(line->fd, POLLIN, deadline);
		if (ret == -EMSGSIZE)
			error_set(err, ret, "a line of more than %zu bytes", line->max);
		else if (ret)
			error_set(err, ret, "%s", strerror(-ret));
		if (ret)
			return ret;
	}
}

/* What a caller may tell apart. */
static const struct {
	const char *name;
	int code;
} codes[] = {
	{"EPROTO", EPROTO},	    {"EPROTONOSUPPORT", EPROTONOSUPPORT},
	{"EBUSY", EBUSY},	    {"EINVAL", EINVAL},
	{"ERANGE", ERANGE},	    {"ENOENT", ENOENT},
	{"EPERM", EPERM},	    {"EACCES", EACCES},
	{"EADDRINUSE", EADDRINUSE}, {"EADDRNOTAVAIL", EADDRNOTAVAIL},
	{"EOPNOTSUPP", EOPNOTSUPP}, {"ENODEV", ENODEV},
	{"EMFILE", EMFILE},	    {"ENOMEM", ENOMEM},
	{"ETIMEDOUT", ETIMEDOUT},   {"ECONNRESET", ECONNRESET},
};

enum { CODES = sizeof(codes) / sizeof(*codes) };

const char *peer_code_name(int code)
{
	for (unsigned i = 0; i < CODES; i++) {
		if (codes[i].code == -code)
			return codes[i].name;
	}
	return "EIO";
}

int peer_code_parse(const char *name)
{
	for (unsigned i = 0; name && i < CODES; i++) {
		if (!strcmp(codes[i].name, name))
			return -codes[i].code;
	}
	return -EIO;
}
