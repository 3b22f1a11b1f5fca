/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/parts/core.h"

#include "lab/clock.h"
#include "lab/parts/pollers.h"

const struct bench_part *const core_parts[] = {
	&pollers_cost, &core_event, &pollers_wake, &core_packet,
	&core_hash,    &core_gro,   &core_udp,	   NULL,
};

int64_t core_time(void)
{
	return clock_read(CLOCK_THREAD_CPUTIME_ID);
}
