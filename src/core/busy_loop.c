/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An application's look for packets: takes the token, polls, and gives it back with what is to wake
 * the NAPI if the application does not return.
 */
#include <errno.h>

#include <napier/port.h>

#include <core/busy_loop.h>
#include <core/engine.h>
#include <core/napi.h>
#include <core/receive.h>
#include <core/wake_source.h>

static int64_t usecs_ns(const struct busy_poll *how)
{
	uint32_t usecs = how->usecs < BUSY_POLL_USECS_MAX ? how->usecs : BUSY_POLL_USECS_MAX;

	return usecs * NSEC_PER_USEC;
}

/* For as long as it holds the token the context is like that of a runner that keeps what it has. */
static void context_lend(struct busy_loop *loop)
{
	struct context *context = loop->context;

	loop->keeps = context->keeps;
	loop->foreign = context->foreign;
	context->keeps = true;
	context->foreign = false;
	context->budget = loop->how.budget ? loop->how.budget : BUSY_POLL_BUDGET;
}

static void context_return(struct busy_loop *loop)
{
	loop->context->keeps = loop->keeps;
	loop->context->foreign = loop->foreign;
	loop->context->budget = 0;
}

void busy_loop_begin(struct busy_loop *loop, struct napi *napi, struct context *context,
		     const struct busy_poll *how, bool (*loop_end)(void *arg), void *arg)
{
	int64_t budget_ns = engine_budget_ns(napi->engine);

	context_enter(context);
	context->now = machine_now(napi->engine->machine);
	*loop = (struct busy_loop){
		.napi = napi,
		.context = context,
		.how = *how,
		.loop_end = loop_end,
		.arg = arg,
		.end = context->now + usecs_ns(how),
	};
	loop->patience =
		loop->end - context->now < budget_ns ? loop->end : context->now + budget_ns;
}

/* The state word has said no. Whether to try again. */
static bool turn_wait(struct busy_loop *loop)
{
	struct engine *engine = loop->context->engine;

	if (loop->rc != -EAGAIN)
		return false;
	machine_charge(engine->machine, engine->poll_ns);
	loop->context->now = machine_now(engine->machine);
	if (loop->loop_end && loop->loop_end(loop->arg))
		return false;
	return loop->context->now < loop->patience;
}

static bool turn_take(struct busy_loop *loop)
{
	struct napi *napi = loop->napi;
	pid_t tid;

	loop->rc = napi_take(napi, loop->how.prefer);
	if (loop->rc)
		return false;
	loop->holds = true;
	context_lend(loop);
	tid = machine_tid(napi->engine->machine);
	atomic_store_explicit(&napi->record->app_tid, tid ? tid : -1, memory_order_relaxed);
	return true;
}

bool busy_loop_turn(struct busy_loop *loop)
{
	struct napi *napi = loop->napi;
	struct context *context = loop->context;

	if (!loop->holds && !turn_take(loop))
		return turn_wait(loop);
	/* It polls on, or will be back: an interrupt would only disturb. */
	if (loop->polls++ || loop->how.prefer)
		napi_mask(napi);
	loop->holds = napi_poll(napi, context, &loop->work);
	loop->polled += loop->work;
	if (!loop->holds) {
		context_return(loop);
		return false;
	}
	/* With the token, which keeps all there. Without it the engine may go once we are outside.
	 */
	machine_pass(napi->engine->machine);
	if (context->now >= loop->end)
		return false;
	return !loop->loop_end || !loop->loop_end(loop->arg);
}

/*
 * When the timer has to bring a poll should the application not come back in time; TIME_NEVER: by
 * the ordinary rules.
 */
static int64_t suspended_until(struct busy_loop *loop)
{
	struct napi *napi = loop->napi;
	int64_t suspend = atomic_load_explicit(&napi->irq_suspend_timeout, memory_order_relaxed);
	int64_t flush = atomic_load_explicit(&napi->gro_flush_timeout, memory_order_relaxed);
	uint32_t defer = atomic_load_explicit(&napi->defer_hard_irqs, memory_order_relaxed);

	if (!loop->how.prefer)
		return TIME_NEVER;
	if (loop->polled)
		napi->deferrals = defer;
	/* Who has found nothing of its own sleeps now: its first packet is not to wait so long. */
	if (loop->polled && suspend && (!loop->loop_end || loop->loop_end(loop->arg)))
		return loop->context->now + suspend;
	/* Packets may be left, which an ordinary completion is not for. */
	if (napi->full && flush && napi->deferrals) {
		napi->deferrals--;
		return loop->context->now + flush;
	}
	return TIME_NEVER;
}

/* What nobody is to wait for is left to the softirq. */
static void token_give(struct busy_loop *loop)
{
	int64_t when = suspended_until(loop);
	struct napi *napi = loop->napi;
	bool gone;

	do {
		if (when != TIME_NEVER)
			gone = napi_suspend(napi, when);
		else
			gone = !napi->full && napi_complete(napi, loop->polled);
		if (gone || napi_release(napi, loop->context))
			return;
		/* Again, where what control asked for was withdrawn. */
	} while (when != TIME_NEVER && machine_now(napi->engine->machine) < when);
	napi_pass(napi);
}

int busy_loop_end(struct busy_loop *loop)
{
	if (loop->holds) {
		/* What the application came for is not to wait in GRO. */
		queue_flush(loop->napi, loop->context);
		context_return(loop);
		token_give(loop);
	}
	context_leave(loop->context);
	if (loop->polls)
		return (int)loop->polled;
	return loop->rc == -EBUSY ? -EAGAIN : loop->rc;
}

int napi_busy_loop(struct napi *napi, struct context *context, const struct busy_poll *how,
		   bool (*loop_end)(void *arg), void *arg)
{
	struct busy_loop loop;

	busy_loop_begin(&loop, napi, context, how, loop_end, arg);
	while (busy_loop_turn(&loop))
		;
	return busy_loop_end(&loop);
}
