/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * delivery: the benchmark of where packets end, part by part: in the host's own stack, or in a
 * socket, the kernel's or the engine's.
 */
#ifndef LAB_PARTS_DELIVERY_H
#define LAB_PARTS_DELIVERY_H

#include "lab/parts/bench.h"

/* In order; NULL after the last. */
extern const struct bench_part *const delivery_parts[];
extern const struct bench_part delivery_rate, delivery_rr, delivery_stream;

#endif
