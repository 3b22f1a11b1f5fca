/* SPDX-License-Identifier: BSD-2-Clause */
/* Any frame: finding a partial checksum stays inside of it, and completing one makes it right. */
#include <string.h>

#include <core/checksum.h>

#include "fuzz.h"

#define LEN_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *frame;
	struct packet p = {0};

	if (size > LEN_MAX)
		return 0;
	frame = malloc(size ? size : 1);
	ALWAYS(frame);
	memcpy(frame, data, size);
	p.data = frame;
	p.len = p.total = (uint32_t)size;
	if (checksum_partial_detect(&p)) {
		uint16_t start = p.csum_start, offset = p.csum_offset;
		bool right = checksum_partial_right(&p);

		ALWAYS(p.flags == PACKET_CSUM_PARTIAL);
		ALWAYS((size_t)start + offset + 2 <= size);
		ALWAYS(checksum_complete(&p));
		ALWAYS(p.flags == PACKET_CSUM_VALID);
		/* Nothing else has changed, and that only if it was not right. */
		for (size_t i = 0; i < size; i++)
			ALWAYS(frame[i] == data[i] || (i - start - offset < 2 && !right));
	}
	free(frame);
	return 0;
}
