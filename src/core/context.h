/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts, as the core makes and uses them. */
#ifndef CORE_CONTEXT_H
#define CORE_CONTEXT_H

#include <napier/napi.h>

/* Control context. -ENOMEM. */
int context_create(struct engine *engine, struct context **out);
/* Its runner has ended. */
void context_destroy(struct context *context);

/* Packet path, end of a poll: sends the kicks that transmits have left. */
void context_kick(struct context *context);

#endif
