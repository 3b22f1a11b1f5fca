/* SPDX-License-Identifier: BSD-2-Clause */
/* Super-packets of whole frames: from GRO, taken apart, and with one header and taken apart. */
#include "pool_context.h"

#include <arpa/inet.h>
#include <linux/virtio_net.h>
#include <time.h>

#include <napier/port.h>

#include <core/checksum.h>
#include <core/frames.h>
#include <core/gro.h>
#include <core/headers.h>
#include <core/segment.h>
#include <handler/vlan.h>

#define GSO_UDP_L4 5
#define FRAMES 512

static struct gro *gro;

static int begin(void **state)
{
	(void)state;
	pool_context_begin(FRAMES);
	assert_int_equal(gro_create(&gro), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	gro_destroy(gro);
	pool_context_end();
	return 0;
}

/* A train of packets of one flow. */
struct train {
	bool ipv4, tcp, tagged;
	uint32_t options, network, transport, payload;
	uint32_t n, size, last; /* payload of each, and of the last */
	uint8_t flags;		/* TCP: of the last */
	uint8_t copy[GRO_FRAMES_MAX][2048];
	uint32_t len[GRO_FRAMES_MAX];
};

static void be16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Packet i of the train; `more` is PACKET_CSUM_PARTIAL or 0. */
static struct packet *packet_make(const struct train *t, uint32_t i, uint16_t more)
{
	uint32_t size = i + 1 < t->n ? t->size : t->last;
	uint32_t sequence = htonl(0xfffff000 + i * t->size);
	uint32_t sum;
	uint8_t *ip, *l4;
	struct packet *p;

	assert_int_equal(packet_alloc(&context.cache, &p, 1), 1);
	memset(p->data, 0, t->payload);
	memcpy(p->data, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x81\0\x60\x07", 16);
	ip = p->data + t->network;
	l4 = p->data + t->transport;
	p->len = p->total = t->payload + size;
	be16(ip - 2, t->ipv4 ? 0x0800 : 0x86dd);
	if (t->ipv4) {
		uint16_t check;

		memcpy(ip, "\x45\0\0\0\0\0\x40\0\x40\0\0\0\x0a\0\0\1\x0a\0\0\2", 20);
		ip[9] = t->tcp ? 6 : 17;
		be16(ip + 2, p->len - t->network);
		be16(ip + 4, 0xfffe + i);
		check = checksum_finish(checksum_add(0, ip, 20));
		memcpy(ip + 10, &check, 2);
	} else {
		memcpy(ip, "\x60\x01\x23\x45\0\0\0\x40\xfd", 9);
		ip[6] = t->tcp ? 6 : 17;
		ip[23] = 1;
		ip[24] = 0xfd;
		ip[39] = 2;
		be16(ip + 4, p->len - t->transport);
	}
	memcpy(l4, "\x12\x34\0\x50", 4);
	if (t->tcp) {
		memcpy(l4 + 4, &sequence, 4);
		memset(l4 + 8, 7, 4);
		l4[12] = (uint8_t)((20 + t->options) / 4 << 4);
		l4[13] = i + 1 < t->n ? TCP_ACK : t->flags;
		memset(l4 + 20, 1, t->options);
	} else {
		be16(l4 + 4, p->len - t->transport);
	}
	for (uint32_t k = 0; k < size; k++)
		p->data[t->payload + k] = (uint8_t)random();
	sum = htons(ip[t->ipv4 ? 9 : 6]) + htons((uint16_t)(p->len - t->transport));
	sum = checksum_add(sum, t->ipv4 ? ip + 12 : ip + 8, t->ipv4 ? 8 : 32);
	be16(l4 + (t->tcp ? 16 : 6), ntohs(checksum_fold(sum)));
	p->flags = PACKET_CSUM_PARTIAL;
	p->csum_start = (uint16_t)t->transport;
	p->csum_offset = t->tcp ? 16 : 6;
	if (!more)
		assert_true(checksum_complete(p));
	p->flags = more;
	return p;
}

static void train_random(struct train *t)
{
	*t = (struct train){
		.ipv4 = random() % 2,
		.tcp = random() % 2,
		.tagged = random() % 2,
		.options = (uint32_t)random() % 4 * 4,
		.n = 2 + (uint32_t)random() % (GRO_FRAMES_MAX - 1),
		.size = 1 + (uint32_t)random() % 1400,
		.flags = TCP_ACK | (random() % 2 ? TCP_PSH : 0) | (random() % 2 ? TCP_FIN : 0),
	};
	t->last = 1 + (uint32_t)random() % t->size;
	t->network = t->tagged ? 18 : 14;
	t->transport = t->network + (t->ipv4 ? 20 : 40);
	t->payload = t->transport + (t->tcp ? 20 + t->options : 8);
}

/* What GRO makes of it: one super-packet. */
static struct packet *train_merged(struct train *t, uint16_t more)
{
	struct packet *v[GRO_FRAMES_MAX], *out[GRO_FRAMES_MAX + GRO_HELD_MAX];
	uint32_t n;

	for (uint32_t i = 0; i < t->n; i++) {
		v[i] = packet_make(t, i, more);
		t->len[i] = v[i]->len;
		memcpy(t->copy[i], v[i]->data, v[i]->len);
	}
	n = gro_receive(gro, &context, GRO_TCP | GRO_UDP, v, t->n, out);
	n += gro_flush(gro, INT64_MAX, out + n, GRO_HELD_MAX);
	assert_int_equal(n, 1);
	assert_int_equal(out[0]->flags & (PACKET_GSO | PACKET_FRAMES), PACKET_GSO | PACKET_FRAMES);
	return out[0];
}

static void frame_check(const struct train *t, struct packet *p, uint32_t i, uint16_t flags)
{
	assert_int_equal(p->len, t->len[i]);
	assert_int_equal(p->total, t->len[i]);
	assert_null(p->next);
	assert_int_equal(p->flags, flags);
	assert_memory_equal(p->data, t->copy[i], p->len);
	packet_free(&context.cache, &p, 1);
}

/* Owns p. Takes it apart in steps, and looks at each packet. */
static void apart_check(const struct train *t, struct packet *p, uint16_t flags)
{
	uint32_t room = 1 + (uint32_t)random() % PACKET_VECTOR_MAX, done = 0;
	uint64_t cloned = counter_read(&context.own.cloned);

	do {
		struct packet *out[PACKET_VECTOR_MAX];
		uint32_t n;

		if (p->flags & PACKET_FRAMES)
			assert_int_equal(p->gso_size, t->size);
		n = segment_packet(&context, &p, out, room);
		assert_in_range(n, 1, room);
		for (uint32_t i = 0; i < n; i++)
			frame_check(t, out[i], done++, flags);
	} while (p);
	assert_int_equal(done, t->n);
	assert_int_equal(counter_read(&context.own.cloned), cloned + t->n - 1);
}

/* The chain for ports that take super-packets, and what a device makes of it. */
static void joined_check(const struct train *t, struct packet *p)
{
	uint32_t frames = 0, total = 0;

	assert_true(frames_join(p));
	assert_int_equal(p->flags, PACKET_GSO | PACKET_CSUM_PARTIAL);
	assert_int_equal(p->gso_size, t->size);
	assert_int_equal(p->gso_type, !t->tcp	? GSO_UDP_L4
				      : t->ipv4 ? VIRTIO_NET_HDR_GSO_TCPV4
						: VIRTIO_NET_HDR_GSO_TCPV6);
	assert_int_equal(p->csum_start, t->transport);
	assert_int_equal(p->csum_offset, t->tcp ? 16 : 6);
	for (const struct packet *frame = p; frame; frame = frame->next, frames++)
		total += frame->len;
	assert_int_equal(frames, t->n);
	assert_int_equal(p->total, total);
	assert_int_equal(total, t->payload + (t->n - 1) * t->size + t->last);
	if (t->ipv4)
		assert_int_equal(checksum_fold(checksum_add(0, p->data + t->network, 20)), 0xffff);
	apart_check(t, p, PACKET_CSUM_VALID);
}

static void give_back_what_came(void **state)
{
	unsigned seed = (unsigned)time(NULL);
	struct train *t = malloc(sizeof(*t));

	(void)state;
	printf("seed %u\n", seed);
	srandom(seed);
	for (int i = 0; i < 300; i++) {
		struct packet *p, *copy;

		train_random(t);
		p = train_merged(t, 0);
		copy = packet_clone(&context.cache, p);
		assert_non_null(copy);
		apart_check(t, p, 0);
		joined_check(t, copy);
		train_random(t);
		apart_check(t, train_merged(t, PACKET_CSUM_PARTIAL), PACKET_CSUM_PARTIAL);
	}
	free(t);
}

/* Too many frames, or bytes; datagrams without a checksum; headers that are others: left alone. */
static void joins_no_others(void **state)
{
	struct train *t = malloc(sizeof(*t));
	struct packet *p, *last;

	(void)state;
	do
		train_random(t);
	while (t->tcp || !t->ipv4 || t->n < 3);
	p = train_merged(t, 0);
	memset(p->data + t->transport + 6, 0, 2);
	assert_false(frames_join(p));
	assert_true(p->flags & PACKET_FRAMES);
	memcpy(p->data, t->copy[0], t->len[0]);
	apart_check(t, p, 0);

	do
		train_random(t);
	while (!t->tcp);
	p = train_merged(t, 0);
	p->data[t->network] = 0x44;
	assert_false(frames_join(p));
	p->data[t->network] = t->copy[0][t->network];
	last = p->next;
	last->len = t->payload - 1;
	assert_false(frames_join(p));
	last->len = t->len[1];

	while (last->next)
		last = last->next;
	for (uint32_t i = t->n; i < GRO_FRAMES_MAX; i++) {
		assert_int_equal(packet_alloc(&context.cache, &last->next, 1), 1);
		last = last->next;
		last->len = last->total = t->payload;
	}
	assert_int_equal(packet_alloc(&context.cache, &last->next, 1), 1);
	last->next->len = t->payload;
	assert_false(frames_join(p));
	packet_free(&context.cache, &last->next, 1);
	last->next = NULL;
	for (struct packet *frame = p->next; frame; frame = frame->next)
		frame->len = 1792;
	assert_false(frames_join(p)); /* 45 * 1700 bytes */
	packet_free(&context.cache, &p, 1);
	free(t);
}

/* Each frame gets the tag, or loses it. */
static void tags_of_all(void **state)
{
	struct vlans *vlans = vlans_create();
	struct train *t = malloc(sizeof(*t));
	struct packet *p;
	uint32_t total;

	(void)state;
	vlans_add(vlans, 1, 7, false, false);
	vlans_add(vlans, 2, 7, false, true);
	do
		train_random(t);
	while (t->tagged);
	p = train_merged(t, 0);
	total = p->total;
	assert_true(vlan_egress(vlans, 1, 7, pool, p));
	assert_int_equal(p->total, total + 4 * t->n);
	assert_int_equal(p->csum_start, t->transport + 4);
	for (struct packet *frame = p; frame; frame = frame->next) {
		assert_memory_equal(frame->data + 12, "\x81\0\0\x07", 4);
		if (frame != p)
			assert_int_equal(frame->total, frame->len);
	}
	assert_true(vlan_egress(vlans, 2, 7, pool, p));
	assert_int_equal(p->total, total);
	apart_check(t, p, 0);
	free(vlans);
	free(t);
}

/* One that has grown into its headroom and fills its frame: the copy does not reach the next. */
static void clones_stay_in_their_frame(void **state)
{
	struct packet *p, *copy;

	(void)state;
	assert_int_equal(packet_alloc(&context.cache, &p, 1), 1);
	p->data -= 4;
	p->len = p->total = pool_room(pool) + 4;
	memset(p->data, 0x5a, p->len);
	copy = packet_clone(&context.cache, p);
	assert_memory_equal(copy->data, p->data, p->len);
	assert_true(packet_offset(pool, copy) % 2048 + copy->len <= 2048);
	packet_free(&context.cache, &p, 1);
	packet_free(&context.cache, &copy, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(give_back_what_came, begin, end),
		cmocka_unit_test_setup_teardown(joins_no_others, begin, end),
		cmocka_unit_test_setup_teardown(tags_of_all, begin, end),
		cmocka_unit_test_setup_teardown(clones_stay_in_their_frame, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
