/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef POLLER_THREAD_H
#define POLLER_THREAD_H

#include <core/napi.h>

/*
 * Control context. Places the NAPI's thread if it has one: what is set in `settings`, an empty CPU
 * set meaning the engine's; the rest stays as it is, also if it was changed from outside. What
 * runner_place says.
 */
int poller_thread_place(struct napi *napi, const struct queue_settings *settings);

#endif
