/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host: the way into this host's own network stack, as a handler.
 *
 * Its ports come in pairs: a wire and the TAP that stands for it. What either receives the other
 * sends, by the transmit queue of its receive queue's number, so that with as many queues at the
 * TAP as at the wire a connection stays on one of them both ways. Super-packets enter the kernel
 * whole, and leave by the wire in segments, where it cannot take them (port_transmit).
 *
 * Addresses and routes are nothing to the handler; `napier run --host` moves them.
 */
#ifndef NAPIER_HOST_H
#define NAPIER_HOST_H

#include <napier/handler.h>

#pragma GCC visibility push(default)

/* -ENOMEM, -ENOSPC. One is enough for an engine. */
int host_create(struct engine *engine, struct handler **out);
/*
 * Control context. The two are each other's other end from now on, until one of them is taken from
 * the handler. Both have been given to it by engine_handler_set; before they are a pair, and after,
 * what they receive is dropped (DROP_TX_DOWN). -EINVAL: not two ports of this handler; -EBUSY: one
 * has another end.
 */
int host_pair(struct handler *host, struct port *wire, struct port *tap, struct error *err);

#pragma GCC visibility pop

#endif
