/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peers: 64-byte frames in one direction through napier's pollers and what they are measured
 * against: the kernel's bridge, a bare AF_XDP loop, DPDK (bench/peers).
 */
#ifndef LAB_PARTS_PEERS_H
#define LAB_PARTS_PEERS_H

#include <stdbool.h>

#include "lab/parts/bench.h"

/* NULL after the last. */
extern const struct bench_part *const peers_parts[];

enum { PEERS_PATH_MAX = 512 };

/*
 * Where a peer's program is: beside the built napier, or as installed. False: it is in neither
 * place, and path is where it would be installed.
 */
bool peers_find(const char *napier, const char *program, char path[PEERS_PATH_MAX]);

#endif
