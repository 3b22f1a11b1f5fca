/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The runner that the calling thread is executing: what runner_current() answers.
 *
 * The host machine sets it once, at the start of a runner's thread. The virtual machine sets it
 * around every step and handler, and back to NULL.
 */
#ifndef MACHINE_CURRENT_H
#define MACHINE_CURRENT_H

#include <napier/machine.h>

void runner_current_set(struct runner *r);

#endif
