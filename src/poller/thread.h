/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef POLLER_THREAD_H
#define POLLER_THREAD_H

#include <core/napi.h>

/*
 * Control context. Places the NAPI's thread if it has one; an empty CPU set means the engine's.
 * What runner_place says.
 */
int poller_thread_place(struct napi *napi, const struct placement *placement);

#endif
