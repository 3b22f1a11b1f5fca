/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/gro_rules.h>

enum {
	/* Of bytes 12 and 13: what is not defined, and all flags but two. */
	FLAGS_EQUAL = 0x0fff & ~(TCP_PSH | TCP_FIN),
};

bool tcp_fits(struct segment *segment)
{
	const struct packet *p = segment->packet;
	const uint8_t *tcp = p->data + segment->at.transport;
	uint32_t payload;
	uint16_t flags;

	if (segment->at.transport + (uint32_t)TCP_HEADER_MIN > p->len)
		return false;
	flags = load16(tcp + TCP_HEADER_WORDS);
	payload = segment->at.transport + (flags >> 12) * 4u;
	if (flags >> 12 < TCP_HEADER_MIN / 4 || payload >= p->len)
		return false;
	if ((flags & FLAGS_EQUAL) != TCP_ACK)
		return false;
	segment->payload = (uint16_t)payload;
	segment->size = (uint16_t)(p->len - payload);
	segment->ends = flags & (TCP_PSH | TCP_FIN);
	return true;
}

bool tcp_joins(const struct held *held, const struct segment *segment)
{
	const uint8_t *a = held->head->data + held->transport;
	const uint8_t *b = segment->packet->data + segment->at.transport;
	uint32_t end = held->payload - held->transport;
	uint32_t differ;

	if (load32(b + TCP_SEQUENCE) != held->sequence || segment->size > held->gso_size)
		return false;
	differ = word32(a + TCP_ACK_NUMBER) ^ word32(b + TCP_ACK_NUMBER);
	differ |= (uint32_t)(word16(a + TCP_URGENT) ^ word16(b + TCP_URGENT));
	/* Length, flags and window; the flags that may differ are the last packet's. */
	differ |= (word32(a + TCP_HEADER_WORDS) ^ word32(b + TCP_HEADER_WORDS)) &
		  ~htonl((TCP_PSH | TCP_FIN) << 16);
	if (differ)
		return false;
	for (uint32_t i = TCP_HEADER_MIN; i < end; i += 4)
		differ |= word32(a + i) ^ word32(b + i);
	return !differ;
}
