/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/gro_rules.h>

bool udp_fits(struct segment *segment)
{
	const struct packet *p = segment->packet;
	const uint8_t *udp = p->data + segment->at.transport;
	uint32_t payload = segment->at.transport + (uint32_t)UDP_HEADER;

	if (payload >= p->len || load16(udp + UDP_LENGTH) != p->len - segment->at.transport)
		return false;
	/* IPv6 has no datagrams without a checksum (but for tunnels that say so). */
	if (segment->at.version == 6 && !word16(udp + UDP_CHECKSUM))
		return false;
	segment->payload = (uint16_t)payload;
	segment->size = (uint16_t)(p->len - payload);
	segment->ends = false;
	return true;
}

bool udp_joins(const struct held *held, const struct segment *segment)
{
	const uint8_t *a = held->head->data + held->transport;
	const uint8_t *b = segment->packet->data + segment->at.transport;

	return segment->size <= held->gso_size &&
	       !word16(a + UDP_CHECKSUM) == !word16(b + UDP_CHECKSUM);
}
