/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TX NAPIs: the kick of a port's queues as the poll of NAPIs of their own.
 *
 * They belong to a port of the kind `tx` that comes with the port they send for. A queue names its
 * TX NAPI in queue->tx; who has sent there schedules it at the end of the poll instead of kicking.
 * A ring that fills up before that is kicked by the sender, as without: he needs the room.
 *
 * Taking them away while others send: queue->tx is cleared and quiesced, so nobody schedules them
 * any more; they are disabled; then each queue is kicked once, for what was scheduled and not
 * polled.
 */
#ifndef CORE_TX_NAPI_H
#define CORE_TX_NAPI_H

#include <napier/port.h>

extern const struct port_ops tx_port_ops;

/* Control context, engine lock held: for opening the TX port of `port`. -EINVAL: no name for it. */
int tx_port_config(struct port *port, struct port_config *out, struct error *err);

/* The port that a TX port sends for. */
struct port *tx_port_of(struct port *tx);

/* Control context, engine lock held. Scheduled, or no longer. Quiesces to take them away. */
void tx_port_begin(struct port *tx);
void tx_port_end(struct port *tx);
/* What nobody has kicked goes out. */
void tx_port_flush(struct port *tx, struct context *context);

#endif
