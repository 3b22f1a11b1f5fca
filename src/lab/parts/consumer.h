/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * consumer: a thread of ordinary priority that receives UDP datagrams, one a call, and counts. How
 * old they are when it has them, since the kernel's network stack took them, tells how long it
 * waited for the CPU.
 */
#ifndef LAB_PARTS_CONSUMER_H
#define LAB_PARTS_CONSUMER_H

#include <stdint.h>

#include "lab/histogram.h"
#include "lab/netlab.h"

struct consumer;

/* Listens on all addresses of the namespace when it returns. cpu -1: anywhere. */
int consumer_start(struct netlab *lab, unsigned ns, uint16_t port, int cpu, struct consumer **out,
		   struct error *err);
/* Datagrams so far. */
uint64_t consumer_count(const struct consumer *consumer);
/* Ages (ns) are recorded there from now on; NULL: no more once this returns. */
void consumer_ages(struct consumer *consumer, struct histogram *ages);
void consumer_stop(struct consumer *consumer);

#endif
