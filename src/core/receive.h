/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CORE_RECEIVE_H
#define CORE_RECEIVE_H

#include <napier/port.h>

/* The napi->poll of a port's queue. */
uint32_t queue_poll(struct napi *napi, struct context *context, uint32_t budget);
/*
 * The holder, in a context that nobody else is in. Lets go what GRO holds: before somebody else has
 * the NAPI, or nobody.
 */
void queue_flush(struct napi *napi, struct context *context);
/* The irq handler of a port's queue. */
void queue_interrupt(struct irq *irq);

#endif
