/* SPDX-License-Identifier: BSD-2-Clause */
/* environment: what a reader has to know about the machine, to believe a figure or get it again. */
#ifndef LAB_MEASURE_ENVIRONMENT_H
#define LAB_MEASURE_ENVIRONMENT_H

#include <jansson.h>

/*
 * Kernel, boot parameters, CPU (model, threads per core, caches, NUMA, governor, idle states),
 * mitigations, hypervisor, clock source, memory, sysctls of packet polling, isolated CPUs,
 * interrupt routing, RPS maps, load and busiest other processes, versions (napier, libraries,
 * compiler). What cannot be read is null. For json_decref. Takes some ms.
 */
json_t *environment_read(void);

#endif
