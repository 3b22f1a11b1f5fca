/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rrul_echo: sends each UDP probe back to where it came from, as it came and in the class in which
 * it came. What is no probe is left unanswered.
 */
#ifndef LAB_LOAD_RRUL_ECHO_H
#define LAB_LOAD_RRUL_ECHO_H

#include "lab/load/load.h"

struct rrul_echo;

int rrul_echo_start(const struct load_config *config, const struct load_place *place,
		    struct rrul_echo **out, struct error *err);
pid_t rrul_echo_thread(const struct rrul_echo *echo);
/* So far. */
uint64_t rrul_echo_probes(const struct rrul_echo *echo);
void rrul_echo_stop(struct rrul_echo *echo);

#endif
