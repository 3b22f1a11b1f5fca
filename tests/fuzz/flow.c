/* SPDX-License-Identifier: BSD-2-Clause */
/* Any frame has a flow, whatever is in it: found inside of it, never 0, and the same each time. */
#include <string.h>

#include <core/flow.h>

#include "fuzz.h"

#define LEN_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct flow_hasher plain, symmetric;
	static bool made;
	uint32_t len = (uint32_t)size;
	uint8_t *frame;

	if (size > LEN_MAX)
		return 0;
	if (!made) {
		uint8_t key[FLOW_KEY_SIZE];

		for (int i = 0; i < FLOW_KEY_SIZE; i++)
			key[i] = (uint8_t)(i * 37 + 11);
		flow_hasher_init(&plain, key, false);
		flow_hasher_init(&symmetric, key, true);
		made = true;
	}
	frame = malloc(size ? size : 1); /* so that a look beyond its end is found */
	ALWAYS(frame);
	memcpy(frame, data, size);
	ALWAYS(flow_hash(&plain, frame, len));
	ALWAYS(flow_hash(&plain, frame, len) == flow_hash(&plain, data, len));
	ALWAYS(flow_hash(&symmetric, frame, len) == flow_hash(&symmetric, data, len));
	ALWAYS(!memcmp(frame, data, size));
	free(frame);
	return 0;
}
