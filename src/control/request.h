/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line of the control protocol as data. docs/control.md describes the protocol.
 */
#ifndef CONTROL_REQUEST_H
#define CONTROL_REQUEST_H

#include <jansson.h>

#include <control/engine_wish.h>
#include <control/setup.h>

enum request_kind {
	REQUEST_PING,
	REQUEST_SET,
	REQUEST_DEFAULT,
	REQUEST_ENGINE,
	REQUEST_CPU,
	REQUEST_RUNNER,
	REQUEST_ADD,
	REQUEST_REMOVE,
	REQUEST_MOVE,
	REQUEST_FDB,
	REQUEST_STOP,
};

struct request {
	enum request_kind kind;
	json_t *id;		  /* to be repeated in the answer; NULL: none. Owned */
	char port[PORT_NAME_MAX]; /* set, move, remove */
	int queue;		  /* set, move; < 0: all */
	struct wish wish;	  /* set, default */
	struct engine_settings engine;
	unsigned cpu; /* cpu, move, runner */
	enum runner_role role;
	struct cpu_settings cpu_settings;
	struct setup_port *add; /* add. Owned */
};

/* -EINVAL, -ERANGE, -ENOENT (an unknown key); the request needs request_free also then. */
int request_parse(const char *line, size_t n, struct request *out, struct error *err);
void request_free(struct request *request);

#endif
