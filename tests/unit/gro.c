/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in a chain of GRO's, how long it may become, and when it goes on. */
#include "gro_rig.h"

/* Sends packets made of these; returns how many went on, at once and at the flush, into out. */
static uint32_t run(const struct frame_spec *s, uint32_t n, struct packet **out, uint32_t *at_once)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t got;

	for (uint32_t i = 0; i < n; i++)
		v[i] = packet_of(&s[i]);
	got = receive(ALL, v, n, out);
	if (at_once)
		*at_once = got;
	return got + gro_flush(gro, INT64_MAX, out + got, GRO_HELD_MAX);
}

/* Three packets with these IPv4 ids: into chains of how many. */
static void check_ids(bool df, uint16_t a, uint16_t b, uint16_t c, uint32_t first, uint32_t second)
{
	struct frame_spec s[3];
	struct packet *out[3 + GRO_HELD_MAX];
	const uint16_t id[3] = {a, b, c};
	uint32_t n;

	for (uint32_t i = 0; i < 3; i++) {
		s[i] = spec_tcp(4, 100 * i, 100);
		s[i].id = id[i];
		s[i].df = df;
	}
	n = run(s, 3, out, NULL);
	assert_int_equal(frames_in(out[0]), first);
	assert_int_equal(n > 1 ? frames_in(out[1]) : 0, second);
	discard(out, n);
}

static void ipv4_ids(void **state)
{
	(void)state;
	check_ids(false, 5, 6, 7, 3, 0);
	check_ids(false, 0xffff, 0, 1, 3, 0);
	check_ids(false, 5, 5, 5, 1, 1);
	check_ids(false, 5, 6, 6, 2, 1);
	check_ids(false, 5, 7, 8, 1, 2);
	check_ids(false, 6, 5, 6, 1, 2);
	check_ids(false, 5, 6, 8, 2, 1);
	check_ids(true, 5, 6, 7, 3, 0);
	check_ids(true, 5, 5, 5, 3, 0);
	check_ids(true, 0, 0, 0, 3, 0);
	/* The second decides. */
	check_ids(true, 5, 5, 6, 2, 1);
	check_ids(true, 5, 6, 6, 2, 1);
	check_ids(true, 5, 7, 7, 1, 2);
	check_ids(true, 5, 5, 7, 2, 1);
}

static void sizes(void **state)
{
	struct packet *out[4 + GRO_HELD_MAX];
	struct frame_spec s[4];
	uint32_t at_once;

	(void)state;
	for (int udp_too = 0; udp_too < 2; udp_too++) {
		for (uint16_t i = 0; i < 4; i++)
			s[i] = udp_too ? spec_udp(6, i, 100) : spec_tcp(6, 100u * i, 100);
		/* A shorter one is the last, and goes at once; what follows begins again. */
		s[1].size = 99;
		s[2].sequence = s[3].sequence = s[1].sequence + 99;
		s[3].sequence += 100;
		assert_int_equal(run(s, 4, out, &at_once), 2);
		assert_int_equal(at_once, 1);
		assert_int_equal(frames_in(out[0]), 2);
		assert_int_equal(out[0]->gso_size, 100);
		assert_int_equal(frames_in(out[1]), 2);
		discard(out, 2);
		/* A longer one begins again. */
		s[1].size = 101;
		assert_int_equal(run(s, 2, out, &at_once), 2);
		assert_int_equal(at_once, 1);
		check_alone(out[0], 0);
		check_alone(out[1], 0);
		discard(out, 2);
		/* Without payload it is passed on, behind what was held. */
		s[1].size = 0;
		assert_int_equal(run(s, 2, out, &at_once), 2);
		assert_int_equal(at_once, 2);
		assert_int_equal(out[0]->len, out[1]->len + 100);
		discard(out, 2);
		/* Of one byte each. */
		s[0].size = s[1].size = 1;
		s[1].sequence = s[0].sequence + 1;
		assert_int_equal(run(s, 2, out, NULL), 1);
		assert_int_equal(frames_in(out[0]), 2);
		discard(out, 1);
	}
}

/* What ends a chain goes on at once; a packet that could only end one does, too. */
static void push_goes_at_once(void **state)
{
	struct packet *out[3 + GRO_HELD_MAX];
	struct frame_spec s[3] = {spec_tcp(4, 0, 100), spec_tcp(4, 100, 100),
				  spec_tcp(4, 200, 100)};
	uint32_t at_once;

	(void)state;
	s[1].flags |= PSH;
	assert_int_equal(run(s, 3, out, &at_once), 2);
	assert_int_equal(at_once, 1);
	assert_int_equal(frames_in(out[0]), 2);
	discard(out, 2);
	s[0].flags |= PSH;
	assert_int_equal(run(s, 1, out, &at_once), 1);
	assert_int_equal(at_once, 1);
	discard(out, 1);
}

static void bounded(void **state)
{
	struct packet *out[PACKET_VECTOR_MAX + GRO_HELD_MAX];
	struct frame_spec s[PACKET_VECTOR_MAX];
	uint32_t at_once, n, bytes;

	(void)state;
	for (uint32_t i = 0; i < PACKET_VECTOR_MAX; i++)
		s[i] = spec_tcp(4, 1448 * i, 1448);
	n = run(s, PACKET_VECTOR_MAX, out, &at_once);
	assert_int_equal(n, 2);
	assert_int_equal(at_once, 1); /* a full one does not wait */
	assert_int_equal(frames_in(out[0]), 45);
	bytes = 20 + 32 + 45 * 1448;
	assert_in_range(bytes, 65535 - 1447, 65535);
	assert_int_equal(frames_in(out[1]), 64 - 45);
	discard(out, n);

	/* 65535 bytes bind first. */
	for (uint32_t i = 0; i < PACKET_VECTOR_MAX; i++)
		s[i] = spec_udp(4, (uint16_t)i, 1700);
	n = run(s, PACKET_VECTOR_MAX, out, &at_once);
	assert_int_equal(n, 2);
	assert_int_equal(frames_in(out[0]), (65535 - 28) / 1700);
	discard(out, n);

	/* The number of frames does. */
	for (uint32_t i = 0; i < PACKET_VECTOR_MAX; i++)
		s[i] = spec_udp(6, 0, 10);
	n = run(s, PACKET_VECTOR_MAX, out, &at_once);
	assert_int_equal(n, 2);
	assert_int_equal(frames_in(out[0]), GRO_FRAMES_MAX);
	discard(out, n);
}

static void types(void **state)
{
	struct packet *v[4], *out[4 + GRO_HELD_MAX];
	static const struct {
		unsigned types;
		uint32_t at_once, held;
	} expected[] = {{0, 4, 0}, {GRO_TCP, 2, 1}, {GRO_UDP, 2, 1}, {ALL, 0, 2}};

	(void)state;
	for (int i = 0; i < 4; i++) {
		for (uint32_t k = 0; k < 4; k++) {
			struct frame_spec s =
				k < 2 ? spec_tcp(4, k * 100, 100) : spec_udp(4, (uint16_t)k, 100);

			v[k] = packet_of(&s);
		}
		assert_int_equal(receive(expected[i].types, v, 4, out), expected[i].at_once);
		discard(out, expected[i].at_once);
		assert_int_equal(gro_flush(gro, INT64_MAX, out, 4), expected[i].held);
		discard(out, expected[i].held);
	}
}

/* What is held stays in front of its flow also when its type is no longer merged. */
static void types_change(void **state)
{
	struct packet *v[2], *out[2 + GRO_HELD_MAX];

	(void)state;
	for (uint8_t i = 0; i < 2; i++) {
		struct frame_spec s[2] = {spec_tcp(4, 0, 100), spec_tcp(4, 100, 100)};

		if (i)
			s[0] = spec_udp(6, 0, 100), s[1] = spec_udp(6, 0, 100);
		v[0] = packet_of(&s[0]);
		v[1] = packet_of(&s[1]);
		assert_int_equal(receive(ALL, v, 1, out), 0);
		assert_int_equal(receive(i ? GRO_TCP : 0, v + 1, 1, out), 2);
		assert_ptr_equal(out[0], v[0]);
		assert_ptr_equal(out[1], v[1]);
		discard(out, 2);
	}
}

/* More flows than places: the oldest of a bucket goes, and none is lost. */
static void buckets_are_bounded(void **state)
{
	static struct packet *in[FRAMES], *out[FRAMES + GRO_HELD_MAX];
	uint32_t n = 0, held;

	(void)state;
	for (uint16_t i = 0; i < FRAMES; i++) {
		struct frame_spec s = spec_tcp(4, 0, 10);

		s.target = i;
		in[i] = packet_of(&s);
		gro_context->now = i;
		n += receive(ALL, in + i, 1, out + n);
		assert_in_range(i + 1u - n, 0, GRO_HELD_MAX);
	}
	held = FRAMES - n;
	assert_int_equal(held, GRO_HELD_MAX); /* 256 flows fill 8 buckets of 8 */
	assert_int_equal(gro_flush(gro, INT64_MAX, out + n, GRO_HELD_MAX), held);
	/* Each once; those that were held oldest first. */
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint32_t k = 0;

		while (k < FRAMES && out[k] != in[i])
			k++;
		assert_in_range(k, 0, FRAMES - 1);
	}
	for (uint32_t i = n + 1; i < FRAMES; i++)
		assert_true(out[i - 1]->data[37 + 0] < out[i]->data[37]);
	discard(out, FRAMES);
}

static void ages(void **state)
{
	struct packet *v[4], *out[4 + GRO_HELD_MAX];

	(void)state;
	assert_int_equal(gro_oldest(gro), INT64_MAX);
	for (uint32_t i = 0; i < 4; i++) {
		struct frame_spec s = spec_tcp(4, i / 2 * 100, 100);

		s.flow = i & 1;
		v[i] = packet_of(&s);
		gro_context->now = 10 * (i + 1);
		assert_int_equal(receive(ALL, v + i, 1, out), 0);
		assert_int_equal(gro_oldest(gro), 10); /* a packet more does not make it younger */
	}
	assert_int_equal(gro_flush(gro, 9, out, 4), 0);
	assert_int_equal(gro_flush(gro, 10, out, 4), 1);
	assert_ptr_equal(out[0], v[0]);
	assert_int_equal(gro_oldest(gro), 20);
	assert_int_equal(gro_flush(gro, 20, out + 1, 0), 0);
	assert_int_equal(gro_flush(gro, 20, out + 1, 4), 1);
	assert_ptr_equal(out[1], v[1]);
	discard(out, 2);
}

static void flush_room(void **state)
{
	struct packet *v[4], *out[4 + GRO_HELD_MAX];

	(void)state;
	for (uint8_t i = 0; i < 4; i++) {
		struct frame_spec s = spec_tcp(4, 0, 100);

		s.flow = i;
		v[i] = packet_of(&s);
	}
	assert_int_equal(receive(ALL, v, 4, out), 0);
	assert_int_equal(gro_flush(gro, INT64_MAX, out, 3), 3);
	assert_int_equal(gro_flush(gro, INT64_MAX, out + 3, 3), 1);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(out[i], v[i]);
	discard(out, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		GRO_TEST(ipv4_ids),
		GRO_TEST(sizes),
		GRO_TEST(push_goes_at_once),
		GRO_TEST(bounded),
		GRO_TEST(types),
		GRO_TEST(types_change),
		GRO_TEST(buckets_are_bounded),
		GRO_TEST(ages),
		GRO_TEST(flush_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
