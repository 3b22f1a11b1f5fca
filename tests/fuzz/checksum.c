/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any frame: finding a partial checksum stays inside of it, and completing one makes it right. The
 * input is taken as a frame, and as a recipe for one, of which is known what has to be found.
 */
#include <string.h>

#include <core/checksum.h>

#include "frame.h"
#include "fuzz.h"

#define LEN_MAX 4096
#define EXTENSIONS_SEEN 4

/* Whether a partial checksum was found; the frame is then as it is after completing that. */
static bool any_frame(const uint8_t *data, uint32_t size, struct packet *p)
{
	uint8_t *frame = malloc(size ? size : 1);
	bool found;

	ALWAYS(frame);
	memcpy(frame, data, size);
	*p = (struct packet){.data = frame, .len = size, .total = size};
	found = checksum_partial_detect(p);
	if (found) {
		uint32_t start = p->csum_start, offset = p->csum_offset;
		bool right = checksum_partial_right(p);

		ALWAYS(p->flags == PACKET_CSUM_PARTIAL);
		ALWAYS(start + offset + 2 <= size);
		ALWAYS(checksum_complete(p));
		ALWAYS(p->flags == PACKET_CSUM_VALID);
		/* Nothing else has changed, and that only if it was not right. */
		for (uint32_t i = 0; i < size; i++)
			ALWAYS(frame[i] == data[i] || (i - start - offset < 2 && !right));
	} else {
		ALWAYS(!p->flags);
		ALWAYS(!memcmp(frame, data, size));
	}
	return found;
}

static bool right(const struct packet *p, const struct frame_facts *facts)
{
	const uint8_t *ip = p->data + facts->network;
	uint32_t size = p->len - facts->transport;
	uint32_t sum = frame_sum(facts->protocol + size, p->data + facts->transport, size);

	sum = frame_sum(sum, facts->version == 4 ? ip + 12 : ip + 8, facts->version == 4 ? 8 : 32);
	return frame_sum_fold(sum) == 0xffff;
}

static void made_frame(struct input *in)
{
	struct frame_flows flows = {0};
	uint8_t frame[FRAME_ROOM];
	struct frame_facts facts;
	uint32_t len = frame_make(in, &flows, frame, &facts);
	struct packet p;
	bool found = any_frame(frame, len, &p);

	if (facts.honest && facts.checksum == FRAME_PARTIAL && !facts.fragment && !facts.hidden &&
	    !facts.padded && !facts.tunnel && (facts.protocol == 6 || facts.protocol == 17) &&
	    facts.tags <= 2 && facts.extensions <= EXTENSIONS_SEEN) {
		ALWAYS(found);
		ALWAYS(p.csum_start == facts.transport);
		ALWAYS(right(&p, &facts));
	}
	free(p.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	struct packet p;

	if (size > LEN_MAX)
		return 0;
	any_frame(data, (uint32_t)size, &p);
	free(p.data);
	made_frame(&in);
	return 0;
}
