/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file in which an engine notes the interfaces' values that it changes, before it does, so that
 * the next one can put them back when it was killed. One line an interface:
 *
 *	IFINDEX NAME BEFORE OURS LAST BEFORE OURS LAST NETNS
 *
 * with three for each value of irq_defer.h, equal where it was not changed. LAST is what was ours
 * until now: the value is OURS only some time after the note, and either is ours. NETNS is as in
 * the port's text, and may be empty. The file is there while it has lines.
 *
 * Control context.
 */
#ifndef PORT_RESTORE_H
#define PORT_RESTORE_H

#include <net/if.h>

#include <port/irq_defer.h>

struct restore_entry {
	int ifindex;
	char name[IFNAMSIZ];
	char netns[64];
	uint64_t before[IRQ_DEFER_VALUES], ours[IRQ_DEFER_VALUES], last[IRQ_DEFER_VALUES];
};

/* In place of the one for the same interface. A negative errno; then nothing is noted. */
int restore_note(const char *path, const struct restore_entry *entry);
/* What was noted for this interface has been put back. An empty path: nothing was noted. */
void restore_forget(const char *path, const struct restore_entry *entry);

#endif
