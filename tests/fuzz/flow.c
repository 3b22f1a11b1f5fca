/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any frame has a flow, whatever is in it: found inside of it, never 0, and the same each time. The
 * input is taken as a frame, and as recipes for two frames: packets of one flow have one hash,
 * whatever else differs between them, and with `symmetric` so have answers.
 */
#include <string.h>

#include <core/flow.h>
#include <core/headers.h>

#include "frame.h"
#include "fuzz.h"

#define LEN_MAX 4096

static struct flow_hasher plain, symmetric;

static void start(void)
{
	uint8_t key[FLOW_KEY_SIZE];

	for (int i = 0; i < FLOW_KEY_SIZE; i++)
		key[i] = (uint8_t)(i * 37 + 11);
	flow_hasher_init(&plain, key, false);
	flow_hasher_init(&symmetric, key, true);
}

static uint32_t hash(const struct flow_hasher *hasher, const uint8_t *data, uint32_t len)
{
	uint8_t *frame = malloc(len ? len : 1); /* so that a look beyond its end is found */
	uint32_t value;

	ALWAYS(frame);
	memcpy(frame, data, len);
	value = flow_hash(hasher, frame, len);
	ALWAYS(value);
	ALWAYS(!memcmp(frame, data, len));
	free(frame);
	return value;
}

static void any_frame(const uint8_t *data, uint32_t len)
{
	ALWAYS(hash(&plain, data, len) == flow_hash(&plain, data, len));
	ALWAYS(hash(&symmetric, data, len) == flow_hash(&symmetric, data, len));
}

/* A packet with ports that every reader has to find. */
static bool plain_packet(const struct frame_facts *facts)
{
	return facts->honest && !facts->fragment && !facts->hidden && !facts->tunnel &&
	       (facts->protocol == 6 || facts->protocol == 17) && facts->tags <= 2 &&
	       facts->extensions <= IPV6_EXTENSIONS_MAX;
}

static void swap(uint8_t *a, uint8_t *b, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		uint8_t kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

static void answer_make(uint8_t *frame, const struct frame_facts *facts)
{
	uint32_t size = facts->version == 4 ? 4 : 16;
	uint8_t *addresses = frame + facts->network + (facts->version == 4 ? 12 : 8);

	swap(frame, frame + 6, 6);
	swap(addresses, addresses + size, size);
	swap(frame + facts->transport, frame + facts->transport + 2, 2);
}

static void made_frames(struct input *in)
{
	struct frame_flows flows = {0};
	uint8_t frame[FRAME_ROOM], other[FRAME_ROOM];
	struct frame_facts facts, others;
	uint32_t len = frame_make(in, &flows, frame, &facts);
	uint32_t other_len = frame_make(in, &flows, other, &others);

	any_frame(frame, len);
	if (!plain_packet(&facts))
		return;
	if (plain_packet(&others) && others.version == facts.version &&
	    others.protocol == facts.protocol && others.flow == facts.flow)
		ALWAYS(hash(&plain, frame, len) == hash(&plain, other, other_len));
	memcpy(other, frame, len);
	answer_make(other, &facts);
	ALWAYS(hash(&symmetric, frame, len) == hash(&symmetric, other, len));
	ALWAYS(hash(&plain, frame, len) != hash(&plain, other, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};

	if (size > LEN_MAX)
		return 0;
	if (!plain.table[0][1])
		start();
	any_frame(data, (uint32_t)size);
	made_frames(&in);
	return 0;
}
