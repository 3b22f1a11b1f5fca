/* SPDX-License-Identifier: BSD-2-Clause */
/* stack: what a namespace's IP has received, as it left the wire and as GRO handed it on. */
#ifndef LAB_MEASURE_STACK_H
#define LAB_MEASURE_STACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stack_counts {
	uint64_t wire;	/* packets, those in a super-packet each */
	uint64_t taken; /* a super-packet is one */
};

/* Of the namespace that a thread is in. False: not to be had. */
bool stack_read(pid_t process, pid_t thread, struct stack_counts *out);

#endif
