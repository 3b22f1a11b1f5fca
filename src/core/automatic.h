/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Poller auto: a runner, napier/auto, that is there while a NAPI has that poller. It looks at
 * them (meter.h) ten times a second, once a second when nothing comes, lets choice.h decide, and
 * switches, all outside the packet path. It holds the engine's lock in its steps only, and leaves a
 * look out when control has it; a switch is begun in one step and ended in a later one.
 */
#ifndef CORE_AUTOMATIC_H
#define CORE_AUTOMATIC_H

#include <core/choice.h>
#include <core/meter.h>
#include <core/napi.h>

/* Of a NAPI whose poller is chosen. */
struct automatic_napi {
	struct choice choice;
	struct softnet *home; /* busy-poll may take it elsewhere */
	struct meter_napi meter;
	bool switches; /* a switch has been begun */
	enum poller wanted;
	int64_t deadline; /* for that */
};

/*
 * Control context, engine lock held. From now on the NAPI's poller is chosen; the one of the moment
 * stays until then. No effect if that was so already. -ENOMEM, and what runner_start says.
 */
int automatic_begin(struct napi *napi, struct error *err);
/* The poller of the moment stays. No effect when it is not chosen. */
void automatic_end(struct napi *napi);
/* Where its softirq is now is where it belongs. */
void automatic_home(struct napi *napi);

#endif
