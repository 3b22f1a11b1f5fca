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
 * Of class idle: it keeps the CPU from halting, and lets others go first. Its class alone does not
 * do that: who wakes while it runs, and has had a little more than its share before, is put off
 * until the next tick (4 ms with 250 Hz). So it yields every few us.
 */
int hog_idle_start(int cpu, struct hog **out, struct error *err);
pid_t hog_thread(const struct hog *hog);
void hog_stop(struct hog *hog);

#endif
