/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_track: which datagrams of one flow and step have come, by their sequence numbers.
 *
 * A datagram is reordered when one that was sent after it came before it (RFC 4737), and a
 * duplicate when it has come before. What is STREAM_WINDOW or more behind the highest is reordered:
 * whether it came before is not known any more. One writer.
 */
#ifndef LAB_LOAD_STREAM_TRACK_H
#define LAB_LOAD_STREAM_TRACK_H

#include <stdint.h>

enum { STREAM_WINDOW = 4096 };

enum stream_arrival { STREAM_IN_ORDER, STREAM_REORDERED, STREAM_DUPLICATE };

/* All zero: nothing has come. */
struct stream_track {
	uint64_t next; /* one above the highest that has come */
	uint64_t
		seen[STREAM_WINDOW / 64]; /* by the number's remainder; of the last STREAM_WINDOW */
};

enum stream_arrival stream_track_add(struct stream_track *t, uint64_t sequence);

#endif
