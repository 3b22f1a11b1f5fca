/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer_session: what a server does for the client that it has: the answer to each line, and the
 * server side of a workload that the client started.
 */
#ifndef LAB_LOAD_PEER_SESSION_H
#define LAB_LOAD_PEER_SESSION_H

#include "lab/load/peer.h"
#include "lab/load/peer_line.h"

struct session {
	const struct peer_server_config *config;
	int fd;
	bool remote;		     /* over TCP */
	char who[64];		     /* for people: its address */
	char here[LOAD_ADDRESS_MAX]; /* remote: the address that it came to */
	struct peer_line in;
	int64_t heard;		    /* the last whole line, by clock_now */
	int64_t patience;	    /* in a run: how long it may be silent */
	bool greeted;		    /* it has said what it is */
	const struct load_ops *ops; /* of what runs; NULL: nothing does */
	void *load;
	struct usage *usage; /* of another host's run; NULL: none, or it cannot be had */
};

/* The first line to a client. */
json_t *session_greeting(void);
/*
 * The answer to a line of the client, which may be an error; NULL: no memory. *last: the client is
 * to be closed behind it.
 */
json_t *session_answer(struct session *session, const json_t *request, bool *last);
/* An answer that says what is wrong. */
json_t *session_error(int code, const char *text);
/* Ends what runs. */
void session_end(struct session *session);

__attribute__((format(printf, 2, 3))) void session_say(const struct peer_server_config *config,
						       const char *format, ...);

#endif
