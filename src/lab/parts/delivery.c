/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>

#include "lab/parts/delivery.h"

const struct bench_part *const delivery_parts[] = {
	&delivery_stream,
	&delivery_rr,
	&delivery_rate,
	NULL,
};
