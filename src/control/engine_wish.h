/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a person asks of the engine as a whole or of one of its CPUs, as `key=value` texts: as
 * wish.h has it for queues.
 */
#ifndef CONTROL_ENGINE_WISH_H
#define CONTROL_ENGINE_WISH_H

#include <napier/engine.h>

#define CPU_WISH_KEYS "deferral"
#define ENGINE_WISH_KEYS                                                                           \
	"cpus, dev_weight, netdev_budget, netdev_budget_usecs, busy_poll, busy_read, "             \
	"gro_normal_batch, "                                                                       \
	"netdev_max_backlog, flow_limit, "                                                         \
	"rps_sock_flow_entries, symmetric_hash, " CPU_WISH_KEYS

/* Each takes one key. -ENOENT: no such key, and err lists the keys. -EINVAL, -ERANGE: the value. */
int cpu_wish_key(struct cpu_settings *settings, const char *key, const char *value,
		 struct error *err);
/* Those of CPUs too: then of all of them. */
int engine_wish_key(struct engine_settings *settings, const char *key, const char *value,
		    struct error *err);

#endif
