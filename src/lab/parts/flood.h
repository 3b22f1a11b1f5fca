/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flood: UDP through a forwarder to a consumer on the same CPU, at the rate that both together can
 * take and at twice that.
 */
#ifndef LAB_PARTS_FLOOD_H
#define LAB_PARTS_FLOOD_H

#include "lab/parts/pollers.h"
#include "lab/parts/site.h"

struct flood {
	const struct bench_plan *plan;
	struct site site;
	int64_t window; /* ns, of a measurement */
};

struct flood_result {
	double capacity;	/* the most that was consumed at any rate, datagrams a second */
	double sent, consumed;	/* at twice that, a second */
	struct histogram *ages; /* at half of it, see consumer.h; NULL: not measured */
};

/* -EOPNOTSUPP: see site_start. -ENODATA: nothing was consumed at any rate. */
int flood_measure(struct flood *flood, const struct contestant *who, struct flood_result *out,
		  struct error *err);

#endif
