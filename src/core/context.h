/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts, as the core makes and uses them. */
#ifndef CORE_CONTEXT_H
#define CORE_CONTEXT_H

#include <napier/engine.h>

/* Control context. -ENOMEM. */
int context_create(struct engine *engine, struct context **out);
/* Its runner has ended. */
void context_destroy(struct context *context);
/* Control context, at the end: what applications have still open is only to be freed. */
void contexts_orphan(struct engine *engine);

#endif
