/* SPDX-License-Identifier: BSD-2-Clause */
/* PORT, PORT/QUEUE, cpu/N, irq/N and the like, kworker, engine or default, as people write it. */
#ifndef CMD_TARGET_H
#define CMD_TARGET_H

#include <napier/engine.h>
#include <napier/port.h>

enum target_kind { TARGET_PORT, TARGET_CPU, TARGET_RUNNER, TARGET_ENGINE, TARGET_DEFAULT };

struct target {
	enum target_kind kind;
	char port[PORT_NAME_MAX];
	int queue;    /* < 0: all of the port */
	unsigned cpu; /* TARGET_CPU, TARGET_RUNNER */
	enum runner_role role;
};

/* -EINVAL. A name may hold '/': what follows the last one is a queue only if it is a number. */
int target_parse(const char *text, struct target *out, struct error *err);

#endif
