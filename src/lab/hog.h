/* SPDX-License-Identifier: BSD-2-Clause */
/* hog: a thread of ordinary priority that never sleeps. */
#ifndef LAB_HOG_H
#define LAB_HOG_H

#include <sys/types.h>

#include <napier/error.h>

struct hog;

/* cpu -1: anywhere. */
int hog_start(int cpu, struct hog **out, struct error *err);
pid_t hog_thread(const struct hog *hog);
void hog_stop(struct hog *hog);

#endif
