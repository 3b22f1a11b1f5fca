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
#ifndef PORT_IRQ_DEFER_H
#define PORT_IRQ_DEFER_H

#include <stdbool.h>
#include <stdint.h>

#include <napier/error.h>

enum { IRQ_DEFER_COUNT, IRQ_DEFER_TIMEOUT, IRQ_DEFER_VALUES };

extern const char *const irq_defer_names[IRQ_DEFER_VALUES];

struct irq_defer_value {
	bool asked;
	uint64_t value;
};

struct irq_defer {
	int dir; /* of the interface in sysfs, -1: none */
	/* What was there before, and what we wrote; asked: we did. */
	struct irq_defer_value before[IRQ_DEFER_VALUES], ours[IRQ_DEFER_VALUES];
};

#define IRQ_DEFER_CLOSED ((struct irq_defer){.dir = -1})

/* In the interface's network namespace; `own` as sysfs_interface_open has it. */
int irq_defer_open(struct irq_defer *d, const char *interface, bool own);
/* Does not put back. A closed one: no effect. */
void irq_defer_close(struct irq_defer *d);

int irq_defer_read(const struct irq_defer *d, uint64_t values[IRQ_DEFER_VALUES]);
int irq_defer_write(const struct irq_defer *d, int which, uint64_t value);

/* Something of ours is in force, or was until somebody changed it. */
bool irq_defer_ours(const struct irq_defer *d);

#endif
