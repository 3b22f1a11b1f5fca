/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * app: an application polls, in napi_busy_loop (core/busy_loop.c), which takes the token by itself.
 * Whatever is scheduled by others, an interrupt or the timer, is the softirq's, so that the NAPI is
 * polled also while no application comes.
 */
#include <core/napi.h>
#include <poller/softirq.h>

static void app_dispatch(struct napi *napi)
{
	if (atomic_load_explicit(&napi->record->app_tid, memory_order_relaxed))
		atomic_store_explicit(&napi->record->app_tid, 0, memory_order_relaxed);
	softirq_poller.dispatch(napi);
}

static int app_prepare(struct napi *napi, struct softnet *softnet, struct error *err)
{
	(void)napi;
	(void)softnet;
	(void)err;
	return 0;
}

static struct runner *app_runner(struct napi *napi)
{
	return napi->softnet->irq;
}

static void app_retire(struct napi *napi, struct softnet *softnet)
{
	(void)softnet;
	atomic_store_explicit(&napi->record->app_tid, 0, memory_order_relaxed);
}

const struct poller_ops app_poller = {
	.name = "app",
	.prepare = app_prepare,
	.runner = app_runner,
	.dispatch = app_dispatch,
	.retire = app_retire,
};
