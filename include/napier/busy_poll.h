/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * app: the application's own thread polls the NAPI, from its receive call.
 *
 * Where the application does not come, or not in time, the softirq of the NAPI's engine CPU polls:
 * by the queue's interrupt, or, while that is deferred, by the NAPI's timer.
 *
 *	for (;;) {
 *		context_enter(context);
 *		napi = …;                       // looked up: it is there until context_leave
 *		napi_busy_loop(napi, context, &how, received, me);
 *		context_leave(context);
 *		…                               // work on what the handler was given
 *	}
 */
#ifndef NAPIER_BUSY_POLL_H
#define NAPIER_BUSY_POLL_H

#include <napier/engine.h>

#pragma GCC visibility push(default)

#define BUSY_POLL_BUDGET 8	     /* packets a poll */
#define BUSY_POLL_USECS_MAX 10000000 /* us; longer looks are cut to this */

struct busy_poll {
	uint32_t usecs;	 /* looks so long for packets; 0: polls once */
	uint32_t budget; /* packets a poll; 0: BUSY_POLL_BUDGET */
	/*
	 * prefer_busy_poll: the caller will be back soon, so interrupts stay off until then: after
	 * a call that found packets, and with them its loop_end, for irq_suspend_timeout; after
	 * one that did not napi_defer_hard_irqs times gro_flush_timeout. And who polls it now hands
	 * it over after a poll, however much there is.
	 */
	bool prefer;
};

/*
 * A thread with a context of its own, or a runner with its; not inside a handler. Polls the NAPI
 * until loop_end(arg) is true (asked after each poll; NULL: never), `usecs` are over, or the NAPI
 * is another's. Returns how many packets were polled; what became of them is the handler's. Or
 *   -EAGAIN      another polls it just now, or it is disabled: nothing was polled. Also where usecs
 *                are not over: the other is not waited for longer than a round (budget_usecs)
 *   -EOPNOTSUPP  its poller is not app
 * The caller counts as between two steps (machine_quiesce) at each poll: of what it looked up
 * before, all but the NAPI may be gone after the call, and after it the NAPI too.
 */
int napi_busy_loop(struct napi *napi, struct context *context, const struct busy_poll *how,
		   bool (*loop_end)(void *arg), void *arg);

/*
 * A thread with a context of its own, which no other uses meanwhile. From enter to leave nothing
 * goes away that it can look up in the engine: ports and their NAPIs, handlers. Control waits for
 * it, so the two are close together and nothing between them sleeps. They nest.
 */
void context_enter(struct context *context);
void context_leave(struct context *context);

#pragma GCC visibility pop

#endif
