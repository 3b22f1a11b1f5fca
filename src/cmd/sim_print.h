/* SPDX-License-Identifier: BSD-2-Clause */
/* What `napier sim` tells of seeds. */
#ifndef CMD_SIM_PRINT_H
#define CMD_SIM_PRINT_H

#include <stdio.h>

#include <sim/crew.h>

void sim_print_one(FILE *out, const struct sim_options *options, const struct sim_result *result);
/* first to first + count - 1 were asked for. */
void sim_print_many(FILE *out, const struct crew_config *config, const struct crew_result *result);

#endif
