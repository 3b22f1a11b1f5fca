/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * napi_busy_loop in its parts, for a runner that is an application: between two turns it may return
 * from its step, token in hand.
 *
 *	busy_loop_begin(&loop, …);
 *	while (busy_loop_turn(&loop))
 *		;
 *	rc = busy_loop_end(&loop);
 */
#ifndef CORE_BUSY_LOOP_H
#define CORE_BUSY_LOOP_H

#include <napier/busy_poll.h>

struct busy_loop {
	struct napi *napi;
	struct context *context;
	struct busy_poll how;
	bool (*loop_end)(void *arg);
	void *arg;
	bool holds; /* the token */
	bool keeps; /* what the context's was before; likewise: */
	bool foreign;
	int rc;		  /* why it does not hold it */
	int64_t end;	  /* of the look for packets */
	int64_t patience; /* with who has the token */
	uint32_t polls;
	uint32_t work;	 /* of the last poll */
	uint32_t polled; /* packets in all */
};

void busy_loop_begin(struct busy_loop *loop, struct napi *napi, struct context *context,
		     const struct busy_poll *how, bool (*loop_end)(void *arg), void *arg);
/* One poll, or a try for the token. False: it is over. */
bool busy_loop_turn(struct busy_loop *loop);
/* Gives the token back. As napi_busy_loop. */
int busy_loop_end(struct busy_loop *loop);

#endif
