/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "lab/load/stream_track.h"

static uint64_t *word_of(struct stream_track *t, uint64_t sequence)
{
	return &t->seen[sequence % STREAM_WINDOW / 64];
}

static uint64_t bit_of(uint64_t sequence)
{
	return UINT64_C(1) << (sequence % 64);
}

enum stream_arrival stream_track_add(struct stream_track *t, uint64_t sequence)
{
	uint64_t bit = bit_of(sequence), *word = word_of(t, sequence);

	if (sequence >= t->next) {
		/* Those that were passed over have not come, whatever used their bits before. */
		if (sequence - t->next >= STREAM_WINDOW)
			memset(t->seen, 0, sizeof(t->seen));
		else
			for (uint64_t i = t->next; i < sequence; i++)
				*word_of(t, i) &= ~bit_of(i);
		*word |= bit;
		t->next = sequence + 1;
		return STREAM_IN_ORDER;
	}
	if (t->next - sequence > STREAM_WINDOW)
		return STREAM_REORDERED;
	if (*word & bit)
		return STREAM_DUPLICATE;
	*word |= bit;
	return STREAM_REORDERED;
}
