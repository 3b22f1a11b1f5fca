/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferral of an interface's hard interrupts: napi_defer_hard_irqs and gro_flush_timeout, which
 * the kernel has in sysfs, for all NAPIs of the interface and those to come.
 *
 * What is changed here is put back, unless somebody else has changed it since: by the owner, or,
 * when that was killed, from the file in which it was noted before (port/restore.h).
 *
 * Control context. Functions return 0 or a negative errno.
 */
#ifndef PORT_DEFERRAL_H
#define PORT_DEFERRAL_H

#include <stdbool.h>
#include <stdint.h>

#include <napier/error.h>

enum { DEFER_HARD_IRQS, GRO_FLUSH_TIMEOUT, DEFERRAL_VALUES };

extern const char *const deferral_names[DEFERRAL_VALUES];

struct deferral_value {
	bool asked;
	uint64_t value;
};

struct deferral {
	int dir; /* of the interface in sysfs, -1: none */
	/* What was there before, and what we wrote; asked: we did. */
	struct deferral_value before[DEFERRAL_VALUES], ours[DEFERRAL_VALUES];
};

#define DEFERRAL_CLOSED ((struct deferral){.dir = -1})

/*
 * In the interface's network namespace. Mounts sysfs for itself, as /sys shows the namespace in
 * which it was mounted; without the right to (CAP_SYS_ADMIN) it takes /sys if `own`: the caller
 * has entered no other one.
 */
int deferral_open(struct deferral *d, const char *interface, bool own);
/* Does not put back. A closed one: no effect. */
void deferral_close(struct deferral *d);

int deferral_read(const struct deferral *d, uint64_t values[DEFERRAL_VALUES]);
int deferral_write(const struct deferral *d, int which, uint64_t value);

/* Something of ours is in force, or was until somebody changed it. */
bool deferral_ours(const struct deferral *d);

#endif
