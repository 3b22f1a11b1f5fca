/* SPDX-License-Identifier: BSD-2-Clause */
/* hog: a thread that never sleeps. */
#ifndef LAB_HOG_H
#define LAB_HOG_H

#include <sys/types.h>

#include <napier/error.h>

struct hog;

/* Of ordinary priority. cpu -1: anywhere. */
int hog_start(int cpu, struct hog **out, struct error *err);
/*
 * Of class idle: it keeps the CPU from halting, and lets others go first. It yields every few us:
 * of one that only spins, ordinary threads on its CPU had tails of up to a tick (4 ms with 250 Hz)
 * on Linux 6.18, as if their wake-ups had been put off until then (docs/architecture.md, The lab).
 */
int hog_idle_start(int cpu, struct hog **out, struct error *err);
pid_t hog_thread(const struct hog *hog);
void hog_stop(struct hog *hog);

#endif
