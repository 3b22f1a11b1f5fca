/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of neighbours: how its entries age, and at its limit. */
#include "test.h"

#include <handler/neighbour.h>

#define LIMIT 1024
#define NOW 100

static struct ip address(uint32_t number)
{
	const uint8_t bytes[4] = {10, (uint8_t)(number >> 16), (uint8_t)(number >> 8),
				  (uint8_t)number};

	return ip_load4(bytes);
}

/* Something is to be sent there. Whether the question is asked, and so the entry is there. */
static bool wanted(struct neighbours *t, struct ip ip)
{
	uint8_t frame[14];
	struct packet packet = {.data = frame}, *p = &packet;
	uint64_t mac;
	bool ask;

	assert_int_equal(neighbour_wait(t, 0, ip, NOW, &p, &mac, &ask), NEIGHBOUR_ASK);
	if (!p) { /* it waits: not for longer than this call */
		p = neighbour_confirm(t, 0, ip, 0x020000000002, NEIGHBOUR_ANSWER, NOW);
		assert_ptr_equal(p, &packet);
	}
	return ask;
}

/*
 * Entries that are in use are not given up, and one that is not is found, though not by each who
 * looks: a flood of new addresses must not have the whole table looked through for each.
 */
static void gives_up_the_unused(void **state)
{
	const uint64_t seed[2] = {0x243f6a8885a308d3, 0x13198a2e03707344};
	uint32_t n = 0, tries, held = 0;
	uint8_t frame[14] = {0};
	struct neighbours *t;

	(void)state;
	assert_int_equal(neighbours_create(LIMIT, seed, &t), 0);
	while (n < 4 * LIMIT && atomic_load(&t->entries) < LIMIT) {
		struct packet packet = {.data = frame}, *p = &packet;
		uint64_t mac;
		bool ask;

		assert_int_equal(neighbour_wait(t, 0, address(n), NOW, &p, &mac, &ask),
				 NEIGHBOUR_ASK);
		held += !p;
		if (!p)
			assert_ptr_equal(
				neighbour_confirm(t, 0, address(n), 2, NEIGHBOUR_ANSWER, NOW),
				&packet);
		n++;
	}
	assert_int_equal(held, LIMIT);
	for (tries = 0; tries < 200; tries++)
		assert_false(wanted(t, address(n + tries)));
	assert_true(atomic_load(&t->full) >= 200);
	/* One that tells of another MAC address, without being asked, is believed for now only. */
	neighbour_confirm(t, 0, address(0), 3, NEIGHBOUR_OVERRIDE, NOW);
	for (tries = 0; tries < 64 && !wanted(t, address(100000 + tries)); tries++)
		;
	assert_true(tries > 0 && tries < 64);
	assert_int_equal(atomic_load(&t->entries), LIMIT);
	neighbours_purge(t, 0);
	neighbours_destroy(t);
}

/* A second of its life. Whether a question is to be sent, and to which MAC address. */
static bool second(struct neighbours *t, uint32_t now, uint64_t *mac)
{
	bool asks = false;

	for (uint32_t i = 0; i < neighbours_places(t); i++) {
		struct neighbour_question question;
		struct packet *dropped;

		if (neighbour_step(t, i, now, &question, &dropped)) {
			assert_true(ip_equal(question.ip, address(1)));
			asks = true;
			*mac = question.mac;
		}
		assert_null(dropped);
	}
	return asks;
}

/* Known for 30 s; then, if it is still used, asked by itself; and given up when it is silent. */
static void ages(void **state)
{
	const uint64_t seed[2] = {0x243f6a8885a308d3, 0x13198a2e03707344};
	struct neighbours *t;
	uint32_t now = NOW;
	uint64_t mac;

	(void)state;
	assert_int_equal(neighbours_create(LIMIT, seed, &t), 0);
	assert_true(wanted(t, address(1)));
	for (int used = 0; used < 2; used++) {
		for (int i = 1; i < NEIGHBOUR_REACHABLE_S; i++)
			assert_false(second(t, ++now, &mac));
		assert_false(second(t, ++now, &mac)); /* stale now, which asks nobody */
		for (int i = 0; i < 5; i++)
			assert_false(second(t, ++now, &mac));
		assert_int_equal(neighbour_find(t, 0, address(1), now, &mac), NEIGHBOUR_KNOWN);
		mac = 0;
		assert_true(second(t, ++now, &mac));
		assert_int_equal(mac, 0x020000000002);
		/* It answers the first time, and the second time not. */
		if (!used)
			neighbour_confirm(t, 0, address(1), mac, NEIGHBOUR_ANSWER, now);
	}
	for (int i = 1; i < NEIGHBOUR_PROBES; i++) {
		assert_int_equal(neighbour_find(t, 0, address(1), now, &mac), NEIGHBOUR_KNOWN);
		assert_true(second(t, ++now, &mac));
	}
	assert_false(second(t, ++now, &mac));
	assert_int_equal(neighbour_find(t, 0, address(1), now, &mac), NEIGHBOUR_GONE);
	assert_int_equal(atomic_load(&t->unresolved), 1);
	assert_false(second(t, ++now, &mac));
	assert_int_equal(neighbour_find(t, 0, address(1), now, &mac), NEIGHBOUR_ASK);
	assert_int_equal(atomic_load(&t->entries), 0);
	neighbours_destroy(t);
}

/* RFC 4861, 7.2.5: what does not override is no news but that what is known is doubtful. */
static void overrides(void **state)
{
	const uint64_t seed[2] = {0x243f6a8885a308d3, 0x13198a2e03707344};
	struct neighbours *t;
	uint64_t mac;

	(void)state;
	assert_int_equal(neighbours_create(LIMIT, seed, &t), 0);
	assert_true(wanted(t, address(1)));
	assert_null(neighbour_confirm(t, 0, address(1), 7, NEIGHBOUR_ANSWER, NOW));
	assert_int_equal(neighbour_find(t, 0, address(1), NOW, &mac), NEIGHBOUR_KNOWN);
	assert_int_equal(mac, 0x020000000002);
	/* Stale and used after that: it is asked. */
	assert_int_equal(neighbour_find(t, 0, address(1), NOW + 1, &mac), NEIGHBOUR_KNOWN);
	assert_true(second(t, NOW + 1, &mac));
	assert_null(neighbour_confirm(t, 0, address(1), 7, NEIGHBOUR_OVERRIDE, NOW + 1));
	assert_int_equal(neighbour_find(t, 0, address(1), NOW + 1, &mac), NEIGHBOUR_KNOWN);
	assert_int_equal(mac, 7);
	neighbours_purge(t, 0);
	neighbours_destroy(t);
}

/* Without use it is forgotten, and nobody is asked. */
static void is_forgotten(void **state)
{
	const uint64_t seed[2] = {0x243f6a8885a308d3, 0x13198a2e03707344};
	struct neighbours *t;
	uint64_t mac;

	(void)state;
	assert_int_equal(neighbours_create(LIMIT, seed, &t), 0);
	assert_true(wanted(t, address(1)));
	for (uint32_t i = 1; i < NEIGHBOUR_REACHABLE_S + NEIGHBOUR_STALE_S; i++)
		assert_false(second(t, NOW + i, &mac));
	assert_int_equal(atomic_load(&t->entries), 1);
	assert_false(second(t, NOW + NEIGHBOUR_REACHABLE_S + NEIGHBOUR_STALE_S, &mac));
	assert_int_equal(atomic_load(&t->entries), 0);
	neighbours_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_up_the_unused),
		cmocka_unit_test(ages),
		cmocka_unit_test(is_forgotten),
		cmocka_unit_test(overrides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
