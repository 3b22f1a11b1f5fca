/* SPDX-License-Identifier: BSD-2-Clause */
/* environment_parts: what environment_read puts together; each is for json_decref. */
#ifndef LAB_MEASURE_ENVIRONMENT_PARTS_H
#define LAB_MEASURE_ENVIRONMENT_PARTS_H

#include <jansson.h>

json_t *environment_cpu(void);
json_t *environment_numa(void);
json_t *environment_mitigations(void);
json_t *environment_hypervisor(void);

json_t *environment_sysctl(void);
json_t *environment_interrupts(unsigned *n);
json_t *environment_interfaces(unsigned *n);

/* Sleeps for 100 ms. */
json_t *environment_processes(void);
json_t *environment_versions(void);

#endif
