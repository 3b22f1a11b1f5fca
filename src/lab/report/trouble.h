/* SPDX-License-Identifier: BSD-2-Clause */
/* trouble: runs that count for nothing, in a sentence for each workload and kind of reason. */
#ifndef LAB_REPORT_TROUBLE_H
#define LAB_REPORT_TROUBLE_H

#include "lab/report/cell.h"

/*
 * The cells of one workload. "4 of 6 runs of A and B under W are invalid: why"; of several systems
 * with the same kind of reason (what it says before the first colon) the first one's is told.
 */
void trouble_notes(const struct cell *const *cell, size_t n, json_t *notes);

#endif
