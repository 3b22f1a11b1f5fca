/* SPDX-License-Identifier: BSD-2-Clause */
/* What both machines share of a runner. */
#include <napier/machine.h>

#include "machine/current.h"

/*
 * Initial-exec: one load from the thread pointer instead of a call to the TLS resolver. In a shared
 * library opened late it takes 8 bytes of the loader's static TLS reserve.
 */
static _Thread_local struct runner *current __attribute__((tls_model("initial-exec")));

struct runner *runner_current(void)
{
	return current;
}

void runner_current_set(struct runner *r)
{
	current = r;
}
