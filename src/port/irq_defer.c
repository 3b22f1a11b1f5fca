/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/irq_defer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "port/sysfs.h"

const char *const irq_defer_names[IRQ_DEFER_VALUES] = {
	[IRQ_DEFER_COUNT] = "napi_defer_hard_irqs",
	[IRQ_DEFER_TIMEOUT] = "gro_flush_timeout",
};

int irq_defer_open(struct irq_defer *d, const char *interface, bool own)
{
	int dir = sysfs_interface_open(interface, own);

	*d = IRQ_DEFER_CLOSED;
	if (dir < 0)
		return dir;
	d->dir = dir;
	return 0;
}

void irq_defer_close(struct irq_defer *d)
{
	if (d->dir >= 0)
		close(d->dir);
	*d = IRQ_DEFER_CLOSED;
}

int irq_defer_read(const struct irq_defer *d, uint64_t values[IRQ_DEFER_VALUES])
{
	for (int i = 0; i < IRQ_DEFER_VALUES; i++) {
		char text[32];
		int code = sysfs_read(d->dir, irq_defer_names[i], text, sizeof(text));

		if (code)
			return code;
		values[i] = strtoull(text, NULL, 10);
	}
	return 0;
}

int irq_defer_write(const struct irq_defer *d, int which, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return sysfs_write(d->dir, irq_defer_names[which], text);
}

bool irq_defer_ours(const struct irq_defer *d)
{
	return d->ours[IRQ_DEFER_COUNT].asked || d->ours[IRQ_DEFER_TIMEOUT].asked;
}
