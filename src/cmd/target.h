/* SPDX-License-Identifier: BSD-2-Clause */
/* PORT or PORT/QUEUE as people write it. */
#ifndef CMD_TARGET_H
#define CMD_TARGET_H

#include <napier/port.h>

struct target {
	char port[PORT_NAME_MAX];
	int queue; /* < 0: all of the port */
};

/* -EINVAL. A name may hold '/': what follows the last one is a queue only if it is a number. */
int target_parse(const char *text, struct target *out, struct error *err);

#endif
