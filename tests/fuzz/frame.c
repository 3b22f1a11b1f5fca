/* SPDX-License-Identifier: BSD-2-Clause */
#include "frame.h"

#include <string.h>

#include "fuzz.h"

enum {
	ETHERNET = 14,
	PAYLOAD_UNIT = 4,
	EXTENSIONS_MAX = 15,
	EXTENSION_FRAGMENT = 44,
	EXTENSION_AUTHENTICATION = 51,
	DEPTH_MAX = 3, /* of tunnels */
	OURS = FRAME_OURS,

	PROTOCOL_ICMP = 1,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_ESP = 50,
	PROTOCOL_ICMP6 = 58,
	PROTOCOL_NONE = 59,
	PROTOCOL_SCTP = 132,

	ND_SOLICITATION = 135,
	ND_ADVERTISEMENT = 136,

	VXLAN = 4789,
	GENEVE = 6081,
};

struct maker {
	struct input *in;
	struct frame_flows *flows;
	struct frame_facts *facts;
	uint8_t *frame;
	uint32_t at;
	uint8_t lies[2]; /* which field, and how; see told() */
	uint8_t fields;	 /* that have been asked for so far */
	uint8_t flow;
	uint8_t depth;
	uint32_t next_at; /* where the protocol of what comes next has to stand */
};

static void put(struct maker *m, uint32_t byte)
{
	ALWAYS(m->at < FRAME_ROOM);
	m->frame[m->at++] = (uint8_t)byte;
}

static void put16(struct maker *m, uint32_t value)
{
	put(m, value >> 8);
	put(m, value);
}

static void put32(struct maker *m, uint32_t value)
{
	put16(m, value >> 16);
	put16(m, value);
}

static void put_many(struct maker *m, uint32_t byte, uint32_t n)
{
	ALWAYS(m->at + n <= FRAME_ROOM);
	memset(m->frame + m->at, (int)byte, n);
	m->at += n;
}

static void write16(struct maker *m, uint32_t at, uint32_t value)
{
	ALWAYS(at + 2 <= FRAME_ROOM);
	m->frame[at] = (uint8_t)(value >> 8);
	m->frame[at + 1] = (uint8_t)value;
}

static uint32_t lie(uint32_t right, uint32_t most, uint32_t which)
{
	const uint32_t lies[] = {0, right - 1, right + 1, most, right / 2, 1, most / 2, ~right};

	return lies[which];
}

/* What a field says: what is right, unless it is one of the two that lie. */
static uint32_t told(struct maker *m, uint32_t right, uint32_t most)
{
	m->fields++;
	for (int i = 0; i < 2; i++) {
		if ((m->lies[i] & 0x1f) != m->fields)
			continue;
		m->facts->honest = false;
		return lie(right, most, m->lies[i] >> 5) & most;
	}
	return right;
}

uint32_t frame_sum(uint32_t sum, const uint8_t *bytes, uint32_t size)
{
	for (; size >= 2; size -= 2, bytes += 2)
		sum += (uint32_t)bytes[0] << 8 | bytes[1];
	return size ? sum + ((uint32_t)bytes[0] << 8) : sum;
}

uint16_t frame_sum_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void mac_put(struct maker *m)
{
	put_many(m, 2, 5);
	put(m, 0x10 + m->flow);
}

static void ethernet_put(struct maker *m, uint32_t tags)
{
	put_many(m, 2, 5);
	put(m, 1);
	mac_put(m);
	for (uint32_t i = 0; i < tags; i++) {
		put16(m, i + 1 < tags ? 0x88a8 : 0x8100);
		put16(m, 10 + i);
	}
}

static void payload_put(struct maker *m)
{
	static uint8_t counting[256 + 256 * PAYLOAD_UNIT];
	uint32_t size = input_byte(m->in) * PAYLOAD_UNIT;
	uint32_t fill = input_byte(m->in);

	/* 0x80: of any size, not only in units. */
	if (fill & 0x80)
		size += fill & 3;
	/* Copied: counting each payload takes a tenth of all time. */
	if (!counting[1])
		for (uint32_t i = 0; i < sizeof(counting); i++)
			counting[i] = (uint8_t)i;
	ALWAYS(m->at + size <= FRAME_ROOM);
	memcpy(m->frame + m->at, counting + fill, size);
	m->at += size;
}

/*
 * The checksum over what is from `start` to the end, and the pseudo-header of the IP header at
 * `network`, as the recipe wants it.
 */
static void checksum_put(struct maker *m, uint32_t network, uint32_t start, uint32_t offset,
			 uint32_t protocol)
{
	enum frame_checksum wish = input_byte(m->in) % 4;
	const uint8_t *ip = m->frame + network;
	uint32_t sum = 0;
	uint16_t value;

	if (protocol != PROTOCOL_ICMP)
		sum = frame_sum(protocol + m->at - start, ip + (ip[0] >> 4 == 4 ? 12 : 8),
				ip[0] >> 4 == 4 ? 8 : 32);
	write16(m, start + offset, 0);
	if (wish != FRAME_PARTIAL)
		sum = frame_sum(sum, m->frame + start, m->at - start);
	value = frame_sum_fold(sum);
	if (wish == FRAME_RIGHT)
		value = (uint16_t)~value;
	if (wish == FRAME_RIGHT && !value && protocol == PROTOCOL_UDP)
		value = 0xffff;
	if (wish == FRAME_NONE)
		value = 0;
	write16(m, start + offset, value);
	m->facts->checksum = wish;
}

static void tcp_put(struct maker *m, uint32_t network)
{
	uint32_t start = m->at, choice = input_byte(m->in), flags = input_byte(m->in);
	uint32_t options = choice & 0xf, words, *sequence = &m->flows->sequence[m->flow];

	if (options > 10)
		options = 0;
	words = told(m, 5 + options, 0xf);
	put16(m, 1000u + m->flow);
	put16(m, 80);
	put32(m, told(m, *sequence, UINT32_MAX));
	put32(m, 77 + (choice >> 6));
	put(m, words << 4);
	put(m, choice & 0x10 ? flags : 0x10 /* ACK */);
	put16(m, 512);
	put32(m, choice & 0x20 ? flags : 0);
	for (uint32_t i = 0; i < options; i++)
		put32(m, options == 3 ? (uint32_t[]){0x0101080a, 1, flags}[i] : 0x01010101);
	m->facts->payload = m->at;
	payload_put(m);
	m->facts->size = m->at - m->facts->payload;
	*sequence += m->facts->size;
	checksum_put(m, network, start, 16, PROTOCOL_TCP);
}

static void packet_put(struct maker *m, uint32_t network_kind);

/* A frame in a frame; VXLAN's header and Geneve's are 8 bytes, Geneve's with options behind. */
static void tunnel_put(struct maker *m, uint32_t port)
{
	uint32_t choice = input_byte(m->in), words = choice >> 4;

	put(m, port == GENEVE ? told(m, words, 0x3f) : 8);
	put(m, 0);
	put16(m, port == GENEVE ? 0x6558 : 0);
	put32(m, 100 << 8);
	if (port == GENEVE)
		put_many(m, 0, 4 * words);
	ethernet_put(m, choice & 1);
	m->facts->tunnel = true;
	m->depth++;
	packet_put(m, choice >> 1 & 3);
}

static void udp_put(struct maker *m, uint32_t network, uint32_t port)
{
	uint32_t start = m->at, payload = start + 8;

	put16(m, 2000u + m->flow);
	put16(m, port);
	put32(m, 0);
	if (port != 53 && m->depth < DEPTH_MAX)
		tunnel_put(m, port);
	else
		payload_put(m);
	m->facts->payload = payload;
	m->facts->size = m->at - payload;
	write16(m, start + 4, told(m, m->at - start, 0xffff));
	checksum_put(m, network, start, 6, PROTOCOL_UDP);
}

static void address6_put(struct maker *m, uint32_t host)
{
	put16(m, 0xfd00);
	put_many(m, 0, 12);
	put16(m, host);
}

/* Flags are there; a target, theirs or ours, and an option with an address. */
static void nd_put(struct maker *m, uint32_t type, uint32_t choice)
{
	address6_put(m, choice & 0x80 ? 1u + m->flow : OURS);
	if (choice & 0x10)
		return;
	put(m, type - ND_SOLICITATION + 1);
	put(m, told(m, 1, 0xff));
	mac_put(m);
}

/* The begin of a packet of ours, about which something is told. */
static void quote_put(struct maker *m, bool six)
{
	if (six) {
		put32(m, 0x60000000);
		put32(m, 8 << 16 | PROTOCOL_UDP << 8 | 64);
		address6_put(m, OURS);
		address6_put(m, 1u + m->flow);
	} else {
		put32(m, told(m, 0x45, 0xff) << 24 | 28);
		put32(m, 0);
		put32(m, 64 << 24 | PROTOCOL_UDP << 16);
		put32(m, 0x0a000000 + OURS);
		put32(m, 0x0a000001u + m->flow);
	}
	put16(m, 53);
	put16(m, 2000u + m->flow);
	put16(m, 8);
	put16(m, 0);
}

/* Questions, answers, and news about packets of ours, of either version. */
static void icmp_put(struct maker *m, uint32_t network, bool six)
{
	static const uint8_t types[2][8] = {
		{8, 0, 3, 11, 3, 5, 13, 8},
		{128, 129, 1, 2, ND_SOLICITATION, ND_ADVERTISEMENT, 133, 137}};
	uint32_t start = m->at, choice = input_byte(m->in);
	uint8_t type = types[six][choice & 7];

	put(m, type);
	put(m, told(m, choice >> 3 & (type >= ND_SOLICITATION ? 0 : 3), 0xff));
	put16(m, 0);
	put32(m, choice >> 5 << 29);
	m->facts->payload = m->at;
	if (type == ND_SOLICITATION || type == ND_ADVERTISEMENT)
		nd_put(m, type, choice);
	else if (type < 8 && type)
		quote_put(m, six);
	payload_put(m);
	m->facts->size = m->at - m->facts->payload;
	checksum_put(m, network, start, 2, six ? PROTOCOL_ICMP6 : PROTOCOL_ICMP);
}

static void transport_put(struct maker *m, uint32_t network)
{
	static const uint8_t protocols[8] = {PROTOCOL_TCP,  PROTOCOL_UDP,   PROTOCOL_TCP,
					     PROTOCOL_ICMP, PROTOCOL_ICMP6, PROTOCOL_SCTP,
					     PROTOCOL_UDP,  PROTOCOL_UDP};
	static const uint16_t ports[8] = {0, 53, 0, 0, 0, 0, VXLAN, GENEVE};
	uint32_t choice = input_byte(m->in) % 8;
	uint8_t protocol = protocols[choice];

	m->frame[m->next_at] = protocol;
	if (!m->depth) {
		m->facts->transport = m->at;
		m->facts->protocol = protocol;
	}
	if (protocol == PROTOCOL_TCP) {
		tcp_put(m, network);
	} else if (protocol == PROTOCOL_UDP) {
		udp_put(m, network, ports[choice]);
	} else if (protocol != PROTOCOL_SCTP) {
		icmp_put(m, network, protocol == PROTOCOL_ICMP6);
	} else {
		put32(m, 0x08000000);
		m->facts->payload = m->at;
		payload_put(m);
		m->facts->size = m->at - m->facts->payload;
	}
}

static void ipv4_put(struct maker *m)
{
	uint32_t start = m->at, choice = input_byte(m->in), options = choice & 0xf;
	uint16_t *id = &m->flows->id[m->flow];
	uint32_t fragment = choice & 0x40 ? 0x4000 : 0; /* do not fragment */

	if (options > 10)
		options = 0;
	if (choice & 0x80) {
		uint32_t where = input_byte(m->in);

		/* Offset in units of 8, more to come. */
		fragment = (where & 1) << 13 | where >> 1;
		m->facts->fragment |= fragment != 0;
	}
	put(m, told(m, 4, 0xf) << 4 | told(m, 5 + options, 0xf));
	put(m, choice & 0x20 ? 3 : 0); /* congestion experienced */
	put16(m, 0);
	put16(m, told(m, *id, 0xffff));
	*id += choice & 0x10 ? 0 : 1;
	put16(m, fragment);
	put(m, 64);
	m->next_at = m->at;
	put(m, 0);
	put16(m, 0);
	put32(m, 0x0a000001u + m->flow);
	put32(m, 0x0a000000 + OURS);
	put_many(m, 1, 4 * options);
	transport_put(m, start);
	write16(m, start + 2, told(m, m->at - start, 0xffff));
	write16(m, start + 10,
		told(m, (uint16_t)~frame_sum_fold(frame_sum(0, m->frame + start, 20 + 4 * options)),
		     0xffff));
}

/* False: what follows cannot be seen. */
static bool extension_put(struct maker *m)
{
	static const uint8_t types[16] = {0,  60, 43,  44,  51,	 60, 0,	 135,
					  60, 43, 139, 140, 253, 50, 59, 44};
	uint32_t choice = input_byte(m->in), units = choice >> 4 & 3;
	uint8_t type = types[choice & 0xf];

	m->frame[m->next_at] = type;
	m->facts->extensions++;
	m->facts->hidden |= type != 0 && type != 60;
	if (type == PROTOCOL_NONE || type == PROTOCOL_ESP) {
		payload_put(m);
		return false;
	}
	m->next_at = m->at;
	put(m, 0);
	if (type == EXTENSION_FRAGMENT) {
		uint32_t where = input_byte(m->in);

		put(m, told(m, 0, 0xff));
		put16(m, where >> 1 << 3 | (where & 1));
		put32(m, 7);
		m->facts->fragment = true;
		return true;
	}
	/* Authentication counts in words, without the first two. */
	put(m, told(m, type == EXTENSION_AUTHENTICATION ? 2 * units : units, 0xff));
	put_many(m, choice, 6 + 8 * units);
	return true;
}

static void ipv6_put(struct maker *m)
{
	uint32_t start = m->at, choice = input_byte(m->in);
	uint32_t extensions = choice & EXTENSIONS_MAX;
	bool seen = true, group = choice & 0x80;

	if (!m->depth && group) {
		m->facts->flow += FRAME_FLOWS;
		m->facts->group = true;
	}
	put32(m, told(m, 6, 0xf) << 28 | (choice >> 4 & 3) << 20);
	put16(m, 0);
	m->next_at = m->at;
	put(m, 0);
	put(m, choice & 0x40 ? 255 : 64);
	if (group && m->flow == FRAME_FLOWS - 1)
		put_many(m, 0, 16); /* nobody, who looks whether an address is taken */
	else
		address6_put(m, 1u + m->flow);
	if (group) {
		put16(m, 0xff02); /* those whose address ends so */
		put_many(m, 0, 9);
		put(m, 1);
		put32(m, 0xff000000 + OURS);
	} else {
		address6_put(m, OURS);
	}
	while (seen && extensions--)
		seen = extension_put(m);
	if (seen)
		transport_put(m, start);
	write16(m, start + 4, told(m, m->at - start - 40, 0xffff));
}

static void arp_put(struct maker *m)
{
	uint32_t choice = input_byte(m->in);

	put16(m, told(m, 1, 0xffff));
	put16(m, told(m, 0x0800, 0xffff));
	put(m, told(m, 6, 0xff));
	put(m, told(m, 4, 0xff));
	put16(m, 1 + (choice & 1));
	mac_put(m);
	put32(m, 0x0a000000 + (choice & 2 ? OURS : choice & 4 ? 0 : 1u + m->flow));
	put_many(m, 0, 6);
	put32(m, 0x0a000000 + (choice & 8 ? 2u + m->flow : OURS));
}

static void packet_put(struct maker *m, uint32_t kind)
{
	uint32_t type_at = m->at;

	put16(m, 0);
	if (!m->depth) {
		m->facts->network = m->at;
		m->facts->version = kind >= 2 ? 0 : kind == 1 ? 6 : 4;
	}
	switch (kind) {
	case 1:
		ipv6_put(m);
		write16(m, type_at, told(m, 0x86dd, 0xffff));
		break;
	case 2:
		payload_put(m);
		write16(m, type_at, input_u16(m->in));
		break;
	case 3:
		arp_put(m);
		write16(m, type_at, told(m, 0x0806, 0xffff));
		break;
	default:
		ipv4_put(m);
		write16(m, type_at, told(m, 0x0800, 0xffff));
	}
}

uint32_t frame_make(struct input *in, struct frame_flows *flows, uint8_t *frame,
		    struct frame_facts *facts)
{
	struct frame_facts nobody;
	struct maker m = {.in = in, .flows = flows, .frame = frame, .facts = facts};
	uint32_t shape = input_byte(in), end;

	if (!facts)
		m.facts = &nobody;
	*m.facts = (struct frame_facts){.honest = true};
	m.lies[0] = input_byte(in);
	m.lies[1] = shape & 0x80 ? input_byte(in) : 0;
	m.flow = m.facts->flow = shape >> 4 & 3;
	m.facts->tags = shape & 3;
	ethernet_put(&m, shape & 3);
	packet_put(&m, shape >> 2 & 3);
	end = shape & 0x40 ? input_byte(in) : 0;
	if (end & 0x80) {
		end &= 0x7f;
		m.at -= end < m.at ? end : m.at;
		m.facts->honest &= !end;
	} else {
		put_many(&m, 0, end); /* as to the least length of a frame */
		m.facts->padded = end;
	}
	return m.at;
}
