/* SPDX-License-Identifier: BSD-2-Clause */
/* stream_plan: what a configuration means for its flows and steps; the same on both sides. */
#ifndef LAB_LOAD_STREAM_PLAN_H
#define LAB_LOAD_STREAM_PLAN_H

#include "lab/load/load.h"

enum { STREAM_TCP_FLOWS_MAX = 64, STREAM_CLASSES = 4 };

/* Of rrul's TCP flows, in this order, again and again. */
struct stream_class {
	const char *name; /* "be" */
	uint8_t tos;
};
extern const struct stream_class stream_classes[STREAM_CLASSES];

struct stream_plan {
	const struct load_config *config;
	enum load_protocol protocol;
	unsigned flows, groups;	       /* groups of flows are counted apart */
	unsigned threads[2];	       /* of each direction, by side: client, server */
	bool up, down;		       /* is anything sent there */
	unsigned steps;		       /* one after another */
	uint32_t size[LOAD_SIZES_MAX]; /* of messages in each; 0: nothing is sent */
	int64_t interval, timeout;
};

/* What streams and rrul have in common: defaults are filled in, -EINVAL names the key. */
int stream_plan_check(struct load_config *config, struct error *err);
/* config stays where it is, and has been checked. */
void stream_plan_make(const struct load_config *config, struct stream_plan *out);
/* Does that side send on this flow? */
bool stream_plan_sends(const struct stream_plan *plan, unsigned flow, bool server);
unsigned stream_plan_group(const struct stream_plan *plan, unsigned flow);
uint8_t stream_plan_tos(const struct stream_plan *plan, unsigned flow);
/* When each step ends, ns since the beginning; the last one at duration. */
void stream_plan_ends(const struct stream_plan *plan, int64_t duration, int64_t end[]);

#endif
