/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the benchmark `core` share. */
#ifndef CORE_BENCH_H
#define CORE_BENCH_H

#include <stdint.h>

#define REPEATS 5

/* Of this thread, ns: others that run meanwhile do not count. */
int64_t cpu_time(void);
/* Sorts and prints them as the median (least to most). */
void figures_print(const char *what, double ns[REPEATS], const char *unit);

/* What GRO costs a packet. */
void gro_measure(void);
/* What a datagram costs to an application. */
void udp_measure(void);

#endif
