/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of neighbours at its limit. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_up_the_unused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
