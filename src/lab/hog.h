/* SPDX-License-Identifier: BSD-2-Clause */
/* hog: a thread of ordinary priority that never sleeps. */
#ifndef LAB_HOG_H
#define LAB_HOG_H

#include <napier/error.h>

struct hog;

int hog_start(int cpu, struct hog **out, struct error *err);
void hog_stop(struct hog *hog);

#endif
