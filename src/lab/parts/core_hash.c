/* SPDX-License-Identifier: BSD-2-Clause */
/* What the hash of a packet's flow costs, which steering takes of each. */
#include <string.h>

#include <core/flow.h>

#include "lab/parts/core.h"

static const struct figures_form form = {
	.key = "hash",
	.title = "The hash of a packet's flow, by which it is steered; each time of another flow.",
	.label = {{"packet", "packet"}},
	.column = {{"ns_per_packet", "ns/packet", 1}},
};

static const struct sample {
	const char *name;
	uint32_t len;
	uint8_t frame[64];
} samples[] = {
	{"IPv4 TCP", 38, {[12] = 0x08, [14] = 0x45, [23] = 6, [26] = 10, [30] = 11}},
	{"IPv6 TCP",
	 58,
	 {[12] = 0x86, [13] = 0xdd, [14] = 0x60, [20] = 6, [22] = 0xfe, [38] = 0xfe}},
};

enum { SAMPLES = sizeof(samples) / sizeof(*samples) };

/* So that the compiler cannot leave the work out. */
static volatile uint32_t sink;

static void sample_measure(const struct flow_hasher *hasher, const struct sample *sample,
			   uint32_t count, struct figures *f)
{
	int64_t begin = core_time();
	uint8_t frame[64];
	uint32_t sum = 0;

	memcpy(frame, sample->frame, sizeof(frame));
	for (uint32_t k = 0; k < count; k++) {
		frame[sample->len - 1] = (uint8_t)k; /* a port's lower half */
		sum ^= flow_hash(hasher, frame, sample->len);
	}
	sink = sum;
	figures_add(f, figures_row(f, sample->name, "", ""), "ns_per_packet",
		    (double)(core_time() - begin) / count);
}

static int hash_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	static const uint8_t key[FLOW_KEY_SIZE] = {0x6d, 0x5a, 0x56, 0xda, 1, 2, 3, 4, 5, 6, 7};
	static struct flow_hasher hasher;

	(void)err;
	flow_hasher_init(&hasher, key, false);
	for (unsigned i = 0; i < plan->rounds * SAMPLES; i++) {
		const struct sample *sample =
			&samples[bench_turn(i / SAMPLES, i % SAMPLES, SAMPLES)];

		bench_progress(plan, i, plan->rounds * SAMPLES, "hash: %s", sample->name);
		sample_measure(&hasher, sample, plan->quick ? 100000 : 4000000, f);
	}
	return 0;
}

const struct bench_part core_hash = {
	.key = "hash",
	.summary = "the hash of a packet's flow",
	.form = &form,
	.run = hash_run,
};
