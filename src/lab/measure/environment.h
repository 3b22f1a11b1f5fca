/* SPDX-License-Identifier: BSD-2-Clause */
/* environment: what a reader has to know about the machine, to believe a figure or get it again. */
#ifndef LAB_MEASURE_ENVIRONMENT_H
#define LAB_MEASURE_ENVIRONMENT_H

#include <jansson.h>

/*
 * "kernel", "boot" (its parameters), "os", "cpu" (model, threads per core, caches, governor, idle
 * states), "numa", "isolated", "allowed" (CPUs), "quota", "mitigations", "hypervisor", "clock",
 * "memory", "sysctl" (of packet polling), "interrupts" (routing), "interfaces" (of the caller's
 * namespace, with RPS's maps), "load", "processes" (the busiest others: names only), "versions",
 * "time", "uptime_s". What cannot be read is null; lists are cut at some
 * length, and their whole number is in "interrupts_n", "interfaces_n".
 *
 * For json_decref. Takes a tenth of a second, in which other processes are watched.
 */
enum { ENVIRONMENT_LIST_MAX = 64, ENVIRONMENT_INTERRUPTS_MAX = 512 };
json_t *environment_read(void);

/* "build" of "versions": the commit of the program, which says it at its begin; until then unknown.
 */
extern const char *environment_build;

#endif
