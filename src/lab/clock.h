/* SPDX-License-Identifier: BSD-2-Clause */
/* The lab's clock: it measures from outside what a machine does, so it does not use one. */
#ifndef LAB_CLOCK_H
#define LAB_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline void clock_sleep(int64_t ns)
{
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	while (nanosleep(&t, &t))
		;
}

#endif
