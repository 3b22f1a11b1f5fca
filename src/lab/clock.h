/* SPDX-License-Identifier: BSD-2-Clause */
/* The lab's clock: it measures from outside what a machine does, so it does not use one. */
#ifndef LAB_CLOCK_H
#define LAB_CLOCK_H

#include <stdint.h>
#include <time.h>

/* 0: there is no such clock, as that of a thread that has ended. */
static inline int64_t clock_read(clockid_t clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline int64_t clock_now(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

static inline void clock_sleep(int64_t ns)
{
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	while (nanosleep(&t, &t))
		;
}

#endif
