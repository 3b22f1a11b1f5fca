/* SPDX-License-Identifier: BSD-2-Clause */
#include "pool_context.h"

#include <arpa/inet.h>
#include <linux/virtio_net.h>
#include <time.h>

#include <napier/port.h>

#include <core/segment.h>

#define GSO_UDP_L4 5
#define FRAMES 256

static int begin(void **state)
{
	(void)state;
	pool_context_begin(FRAMES);
	return 0;
}

static int end(void **state)
{
	(void)state;
	pool_context_end();
	return 0;
}

static uint64_t dropped(enum drop_reason reason)
{
	return counter_read(&context.own.dropped[reason]);
}

static uint32_t hex_read(const char *text, uint8_t *out)
{
	uint32_t n = 0;

	for (; sscanf(text, " %2hhx", &out[n]) == 1; n++) {
		text += strspn(text, " ");
		text += 2;
	}
	return n;
}

/* A chain of frames with at most `first` bytes in the first and `rest` in each other. */
static struct packet *chain(const uint8_t *bytes, uint32_t size, uint32_t first, uint32_t rest)
{
	uint32_t total = size, part = first;
	struct packet *head = NULL;
	struct packet **at = &head;

	for (; size; part = rest) {
		struct packet *p;

		if (part > size)
			part = size;
		assert_int_equal(packet_alloc(&context.cache, &p, 1), 1);
		memcpy(p->data, bytes, part);
		p->len = part;
		*at = p;
		at = &p->next;
		bytes += part;
		size -= part;
	}
	head->total = total;
	head->flags = PACKET_GSO | PACKET_CSUM_PARTIAL;
	return head;
}

static struct packet *chain_hex(const char *text, uint8_t gso_type, uint16_t gso_size)
{
	uint8_t bytes[256];
	uint32_t size = hex_read(text, bytes);
	struct packet *p = chain(bytes, size, size, 0);

	p->gso_type = gso_type;
	p->gso_size = gso_size;
	return p;
}

static void check_hex(struct packet *p, const char *text)
{
	uint8_t bytes[256];
	uint32_t size = hex_read(text, bytes);

	assert_int_equal(p->len, size);
	assert_int_equal(p->total, size);
	assert_null(p->next);
	assert_int_equal(p->flags, PACKET_CSUM_VALID);
	assert_memory_equal(p->data, bytes, size);
	packet_free(&context.cache, &p, 1);
}

/* Five bytes in twos, VLAN 10; id and sequence number wrap; CWR, ACK, PSH and FIN are set. */
static const char tcp4_super[] =
	"020000000002 020000000001 8100000a 0800 4500002dffff4000400626c90a0000010a000002"
	"12340050fffffffe01020304509920001422 0000 6162636465";
static const char tcp4_first[] =
	"020000000002 020000000001 8100000a 0800 4500002affff4000400626cc0a0000010a000002"
	"12340050fffffffe01020304509020000365 0000 6162";
static const char tcp4_second[] =
	"020000000002 020000000001 8100000a 0800 4500002a00004000400626cc0a0000010a000002"
	"1234005000000000010203045010200001e2 0000 6364";
static const char tcp4_third[] =
	"020000000002 020000000001 8100000a 0800 4500002900014000400626cc0a0000010a000002"
	"12340050000000020102030450192000003c 0000 65";

static void tcp_exact(void **state)
{
	struct packet *p = chain_hex(tcp4_super, VIRTIO_NET_HDR_GSO_TCPV4, 2);
	struct packet *out[PACKET_VECTOR_MAX];

	(void)state;
	assert_int_equal(segment_packet(&context, &p, out, PACKET_VECTOR_MAX), 3);
	assert_null(p);
	check_hex(out[0], tcp4_first);
	check_hex(out[1], tcp4_second);
	check_hex(out[2], tcp4_third);
	assert_int_equal(counter_read(&context.own.cloned), 2);
}

/* The same one at a time: what is left is a super-packet again. */
static void tcp_in_pieces(void **state)
{
	static const char *const expected[] = {tcp4_first, tcp4_second, tcp4_third};
	struct packet *p = chain_hex(tcp4_super, VIRTIO_NET_HDR_GSO_TCPV4, 2);

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct packet *out;

		assert_non_null(p);
		assert_int_equal(segment_packet(&context, &p, &out, 1), 1);
		check_hex(out, expected[i]);
	}
	assert_null(p);
	assert_int_equal(counter_read(&context.own.cloned), 2);
}

/* Five bytes in threes, behind an extension header. */
static const char udp6_super[] = "020000000002 020000000001 86dd 6001234500153c40"
				 "fd000000000000000000000000000001fd000000000000000000000000000002"
				 "1100010400000000 12340035000dfa22 6162636465";
static const char udp6_first[] = "020000000002 020000000001 86dd 6001234500133c40"
				 "fd000000000000000000000000000001fd000000000000000000000000000002"
				 "1100010400000000 12340035000b2f08 616263";
static const char udp6_second[] = "020000000002 020000000001 86dd 6001234500123c40"
				  "fd000000000000000000000000000001fd000000000000000000000000000002"
				  "1100010400000000 12340035000a8f07 6465";

static void udp_exact(void **state)
{
	struct packet *p = chain_hex(udp6_super, GSO_UDP_L4, 3);
	struct packet *out[PACKET_VECTOR_MAX];

	(void)state;
	assert_int_equal(segment_packet(&context, &p, out, PACKET_VECTOR_MAX), 2);
	assert_null(p);
	check_hex(out[0], udp6_first);
	check_hex(out[1], udp6_second);
}

/* All of what is summed, the field included, adds up to all ones when it is right. */
static uint16_t ones_sum(const uint8_t *bytes, uint32_t size, uint32_t sum)
{
	for (uint32_t i = 0; i < size; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

struct shape {
	bool ipv4, tcp;
	uint32_t tags, options;
	uint32_t network, transport, payload; /* places of the headers */
	uint16_t id;
	uint32_t sequence;
	uint8_t flags;
};

static struct shape shape_random(void)
{
	struct shape s = {
		.ipv4 = random() % 2,
		.tcp = random() % 2,
		.tags = (uint32_t)random() % 3,
		.options = (uint32_t)random() % 11 * 4,
		.id = (uint16_t)random(),
		.sequence = (uint32_t)random() * 2 + 1,
		.flags = (uint8_t)random(),
	};

	s.network = 14 + 4 * s.tags;
	s.transport = s.network + (s.ipv4 ? 20 : 40);
	s.payload = s.transport + (s.tcp ? 20 + s.options : 8);
	return s;
}

/* Lengths and checksums are left at what must not survive. */
static void headers_write(const struct shape *s, uint8_t *bytes)
{
	uint8_t *ip = bytes + s->network;
	uint8_t *l4 = bytes + s->transport;

	for (uint32_t i = 0; i < s->payload; i++)
		bytes[i] = (uint8_t)random();
	for (uint32_t i = 0; i < s->tags; i++)
		memcpy(bytes + 12 + 4 * i, i + 1 < s->tags ? "\x88\xa8" : "\x81\x00", 2);
	memcpy(ip - 2, s->ipv4 ? "\x08\x00" : "\x86\xdd", 2);
	ip[0] = s->ipv4 ? 0x45 : 0x60;
	ip[s->ipv4 ? 9 : 6] = s->tcp ? 6 : 17;
	if (s->ipv4)
		memcpy(ip + 4, (uint8_t[]){(uint8_t)(s->id >> 8), (uint8_t)s->id, 0, 0}, 4);
	if (s->tcp) {
		uint32_t sequence = htonl(s->sequence);

		memcpy(l4 + 4, &sequence, 4);
		l4[12] = (uint8_t)((20 + s->options) / 4 << 4);
		l4[13] = s->flags;
	}
}

static void check_ipv4(const struct shape *s, const struct packet *p, uint32_t i)
{
	const uint8_t *ip = p->data + s->network;

	assert_int_equal(ip[2] << 8 | ip[3], p->len - s->network);
	assert_int_equal(ip[4] << 8 | ip[5], (uint16_t)(s->id + i));
	assert_int_equal(ones_sum(ip, 20, 0), 0xffff);
}

static void check_segment(const struct shape *s, const struct packet *p, uint32_t i, bool last,
			  uint16_t gso_size)
{
	const uint8_t *ip = p->data + s->network;
	const uint8_t *l4 = p->data + s->transport;
	uint32_t size = p->len - s->transport;
	uint32_t pseudo = size + (s->tcp ? 6 : 17);

	if (s->ipv4)
		check_ipv4(s, p, i);
	else
		assert_int_equal(ip[4] << 8 | ip[5], size);
	pseudo = ones_sum(s->ipv4 ? ip + 12 : ip + 8, s->ipv4 ? 8 : 32, pseudo);
	assert_int_equal(ones_sum(l4, size, pseudo), 0xffff);
	if (s->tcp) {
		uint8_t flags = s->flags;
		uint32_t sequence;

		memcpy(&sequence, l4 + 4, 4);
		assert_int_equal(ntohl(sequence), s->sequence + i * gso_size);
		if (i)
			flags &= 0x7f;
		if (!last)
			flags &= 0xf6;
		assert_int_equal(l4[13], flags);
	} else {
		assert_int_equal(l4[4] << 8 | l4[5], size);
	}
}

static uint8_t type_of(const struct shape *s)
{
	uint8_t ecn = random() % 2 ? VIRTIO_NET_HDR_GSO_ECN : 0;

	if (!s->tcp)
		return GSO_UDP_L4;
	return (s->ipv4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6) | ecn;
}

static void random_one(uint8_t *bytes)
{
	struct shape s = shape_random();
	uint16_t gso_size = (uint16_t)(1 + random() % 1400);
	/* Up to 150 segments: more than a vector. */
	uint32_t size = (uint32_t)random() % (gso_size < 426 ? gso_size * 150u : 64000);
	uint32_t room = 1 + (uint32_t)random() % PACKET_VECTOR_MAX;
	uint32_t segments = size ? (size + gso_size - 1) / gso_size : 1;
	uint32_t done = 0, at = s.payload;
	struct packet *p;

	headers_write(&s, bytes);
	for (uint32_t i = 0; i < size; i++)
		bytes[s.payload + i] = (uint8_t)random();
	p = chain(bytes, s.payload + size, s.payload + (uint32_t)random() % 1600,
		  1000 + (uint32_t)random() % 792);
	p->gso_type = type_of(&s);
	p->gso_size = gso_size;
	p->port = 7;
	do {
		struct packet *out[PACKET_VECTOR_MAX];
		uint32_t n = segment_packet(&context, &p, out, room);

		assert_in_range(n, 1, room);
		for (uint32_t i = 0; i < n; i++, done++) {
			uint32_t part = out[i]->len - s.payload;

			check_segment(&s, out[i], done, done + 1 == segments, gso_size);
			assert_int_equal(out[i]->port, 7);
			assert_memory_equal(out[i]->data, bytes, 12);
			assert_memory_equal(out[i]->data + s.payload, bytes + at, part);
			assert_true(done + 1 == segments || part == gso_size);
			at += part;
		}
		packet_free(&context.cache, out, n);
	} while (p);
	assert_int_equal(done, segments);
	assert_int_equal(at, s.payload + size);
}

static void random_payloads(void **state)
{
	uint8_t *bytes = malloc(66000);
	unsigned seed = (unsigned)time(NULL);

	(void)state;
	printf("seed %u\n", seed);
	srandom(seed);
	for (int i = 0; i < 400; i++)
		random_one(bytes);
	free(bytes);
	for (int i = 0; i < DROP_MAX; i++)
		assert_int_equal(dropped((enum drop_reason)i), 0);
}

static void refuses(void **state)
{
	struct packet *out[PACKET_VECTOR_MAX];
	struct packet *p;

	(void)state;
	p = chain_hex(tcp4_super, VIRTIO_NET_HDR_GSO_TCPV6, 2);
	assert_int_equal(segment_packet(&context, &p, out, 64), 0);
	assert_null(p);
	p = chain_hex(udp6_super, VIRTIO_NET_HDR_GSO_TCPV6, 2);
	assert_int_equal(segment_packet(&context, &p, out, 64), 0);
	p = chain_hex(tcp4_super, VIRTIO_NET_HDR_GSO_TCPV4, 0);
	assert_int_equal(segment_packet(&context, &p, out, 64), 0);
	assert_int_equal(dropped(DROP_GSO), 3);

	p = chain_hex(tcp4_super, VIRTIO_NET_HDR_GSO_TCPV4, 2000);
	assert_int_equal(segment_packet(&context, &p, out, 64), 1); /* its payload is short */
	packet_free(&context.cache, out, 1);
	p = chain_hex(tcp4_super, VIRTIO_NET_HDR_GSO_TCPV4, 2000);
	p->next = chain_hex(udp6_super, 0, 0);
	p->next->len = 1780;
	p->total = p->len + 1780;
	assert_int_equal(segment_packet(&context, &p, out, 64), 0);
	assert_null(p);
	assert_int_equal(dropped(DROP_TOO_LONG), 1);
}

/* Every length of the first frame that cuts the headers. */
static void refuses_cut_headers(void **state)
{
	uint8_t bytes[256];
	struct packet *out[PACKET_VECTOR_MAX];
	uint32_t headers = 14 + 4 + 20 + 20;

	(void)state;
	hex_read(tcp4_super, bytes);
	for (uint32_t size = 0; size < headers; size++) {
		struct packet *p = chain(bytes, size ? size : 1, 256, 0);

		p->len = p->total = size;
		p->gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
		p->gso_size = 2;
		assert_int_equal(segment_packet(&context, &p, out, 64), 0);
		assert_null(p);
	}
	assert_int_equal(dropped(DROP_GSO), headers);
}

/* Whatever the headers say: nothing is read or written out of bounds, and all is accounted for. */
static void survives_any_headers(void **state)
{
	static const char *const texts[] = {tcp4_super, udp6_super};
	unsigned seed = (unsigned)time(NULL);
	uint64_t segments = 0, drops = 0;
	const int rounds = 20000;

	(void)state;
	printf("seed %u\n", seed);
	srandom(seed);
	for (int i = 0; i < rounds; i++) {
		uint8_t bytes[512] = {0};
		uint32_t size = hex_read(texts[random() % 2], bytes);
		struct packet *p;

		for (long flips = random() % 4; flips >= 0; flips--)
			bytes[12 + random() % (long)(size - 12)] = (uint8_t)random();
		size = 1 + (uint32_t)random() % sizeof(bytes);
		p = chain(bytes, size, 1 + (uint32_t)random() % size, 8 + (uint32_t)random() % 64);
		p->gso_type = (uint8_t)(random() % 2 ? random() % 6 : random());
		p->gso_size = (uint16_t)(random() % 2 ? random() % 64 : random());
		do {
			struct packet *out[PACKET_VECTOR_MAX];
			uint32_t n = segment_packet(&context, &p, out, PACKET_VECTOR_MAX);

			for (uint32_t k = 0; k < n; k++)
				assert_in_range(out[k]->len, 1, 1792);
			packet_free(&context.cache, out, n);
			segments += n;
		} while (p);
	}
	for (int i = 0; i < DROP_MAX; i++)
		drops += dropped((enum drop_reason)i);
	assert_int_equal(rounds + counter_read(&context.own.cloned), segments + drops);
	assert_true(drops && segments);
}

static void pool_runs_empty(void **state)
{
	struct packet *held[FRAMES], *out[PACKET_VECTOR_MAX];
	struct packet *p = chain_hex(tcp4_super, VIRTIO_NET_HDR_GSO_TCPV4, 2);
	uint32_t n = 0;

	(void)state;
	while (n < FRAMES - 3)
		n += packet_alloc(&context.cache, held + n, 1);
	assert_int_equal(segment_packet(&context, &p, out, 64), 2);
	assert_null(p);
	check_hex(out[0], tcp4_first);
	check_hex(out[1], tcp4_second);
	assert_int_equal(dropped(DROP_POOL_EMPTY), 1);
	/* One came in; two went out and one was dropped. */
	assert_int_equal(counter_read(&context.own.cloned), 2);
	packet_free(&context.cache, held, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tcp_exact, begin, end),
		cmocka_unit_test_setup_teardown(tcp_in_pieces, begin, end),
		cmocka_unit_test_setup_teardown(udp_exact, begin, end),
		cmocka_unit_test_setup_teardown(random_payloads, begin, end),
		cmocka_unit_test_setup_teardown(refuses, begin, end),
		cmocka_unit_test_setup_teardown(refuses_cut_headers, begin, end),
		cmocka_unit_test_setup_teardown(survives_any_headers, begin, end),
		cmocka_unit_test_setup_teardown(pool_runs_empty, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
