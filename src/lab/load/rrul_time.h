/* SPDX-License-Identifier: BSD-2-Clause */
/* rrul_time: the class of the threads that send and reflect probes. */
#ifndef LAB_LOAD_RRUL_TIME_H
#define LAB_LOAD_RRUL_TIME_H

#include <stdbool.h>

/* The calling thread goes into real time, at the lowest priority. False: it may not. */
bool rrul_real_time(void);

#endif
