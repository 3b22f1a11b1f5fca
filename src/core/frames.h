/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Super-packets of whole frames, as GRO leaves them (PACKET_FRAMES), on their way out: taken apart
 * into what was received, or made into the kind that devices take, with one header.
 */
#ifndef CORE_FRAMES_H
#define CORE_FRAMES_H

#include <napier/packet.h>

/*
 * Packet path. Owns *p, with PACKET_FRAMES. Takes up to `room` frames off its front into out, which
 * are what was received, and returns how many; *p is NULL when that was all, else what is left.
 */
uint32_t frames_take(struct packet **p, struct packet **out, uint32_t room);

/*
 * Packet path. Makes it one whose first frame has the headers of the whole, with its checksum left
 * to be completed, and whose other frames are payload. False, and it is unchanged: longer than
 * GRO_FRAMES_MAX frames or an IP packet can be, UDP without checksums (it would get some), or
 * frames that are not as GRO has them.
 */
bool frames_join(struct packet *p);

#endif
