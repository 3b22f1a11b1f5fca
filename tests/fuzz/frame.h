/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames out of recipes: a few bytes of input say which headers there are, and up to two fields
 * that lie. So what is random gets past the first look of any parser, and each of them meets, one
 * at a time: lengths of 0, off by one and far beyond the end, header lengths that overlap what
 * follows, chains of IPv6 extension headers, first and later fragments, tunnels in tunnels, frames
 * cut anywhere and padded.
 *
 * Flows are few, and their packets follow on each other (TCP sequence numbers, IPv4 ids) unless the
 * recipe says otherwise.
 */
#ifndef FUZZ_FRAME_H
#define FUZZ_FRAME_H

#include "input.h"

#define FRAME_FLOWS 4
/* Frames go to 10.0.1.1, fd00::101 and 02:02:02:02:02:01, from 10.0.0.1, fd00::1 and onwards. */
#define FRAME_OURS 0x101
#define FRAME_ROOM 4096 /* enough for any recipe */

/* What the next packet of each flow goes on with. All zero at first. */
struct frame_flows {
	uint32_t sequence[FRAME_FLOWS];
	uint16_t id[FRAME_FLOWS];
};

enum frame_checksum { FRAME_RIGHT, FRAME_PARTIAL, FRAME_NONE, FRAME_WRONG };

/* Of a frame: places from its start, of the outermost IP header and what is in that. */
struct frame_facts {
	bool honest; /* nothing lies, nothing is cut off */
	bool fragment;
	bool tunnel;
	bool padded;		  /* there is more behind the packet */
	uint8_t tags, extensions; /* how many */
	bool hidden;		  /* behind IPv6 extension headers other than options */
	uint8_t version;	  /* of IP; 0: something else */
	uint8_t protocol;	  /* of IP, behind the extension headers */
	bool group;		  /* to ff02::1:ff00:101, from such with a flow of its own */
	uint8_t flow;		  /* equal: the same addresses */
	uint32_t network, transport, payload;
	uint32_t size; /* of the payload */
	enum frame_checksum checksum;
};

/* Makes a frame and returns its length, up to FRAME_ROOM. `facts` may be NULL. */
uint32_t frame_make(struct input *in, struct frame_flows *flows, uint8_t *frame,
		    struct frame_facts *facts);

/* Adds up as the internet checksum does, in numbers; and what a field should hold then. */
uint32_t frame_sum(uint32_t sum, const uint8_t *bytes, uint32_t size);
uint16_t frame_sum_fold(uint32_t sum);

#endif
