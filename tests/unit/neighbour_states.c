/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of neighbours: its states and their times, its limit, and what waits. */
#include "test.h"

#include <handler/neighbour.h>

#define PORT 3

static const uint64_t seed[2] = {0x243f6a8885a308d3, 0x13198a2e03707344};
#define PACKETS 4096
static struct packet packets[PACKETS];
static uint8_t bytes[PACKETS][64];
static uint32_t used; /* packets from 64 on: one waits at one place only */

static struct ip address(uint32_t i)
{
	uint8_t at[4] = {10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};

	return ip_load4(at);
}

static struct neighbours *table(uint32_t limit)
{
	struct neighbours *t;

	assert_int_equal(neighbours_create(limit, seed, &t), 0);
	used = 64;
	for (int i = 0; i < PACKETS; i++)
		packets[i].data = bytes[i];
	return t;
}

static enum neighbour_answer find(struct neighbours *t, uint32_t i, uint32_t now)
{
	uint64_t mac;

	return neighbour_find(t, PORT, address(i), now, &mac);
}

/* Makes it known. */
static bool ask(struct neighbours *t, uint32_t i, uint32_t now)
{
	struct packet *p = &packets[used++];
	uint64_t mac;
	bool due;

	neighbour_wait(t, PORT, address(i), now, &p, &mac, &due);
	return due;
}

static void tell(struct neighbours *t, uint32_t i, uint64_t mac, unsigned news, uint32_t now)
{
	neighbour_confirm(t, PORT, address(i), mac, news, now);
}

static const unsigned answer = NEIGHBOUR_ANSWER | NEIGHBOUR_OVERRIDE;

/* How many are asked at this second, and whether one of them alone. */
static uint32_t tick(struct neighbours *t, uint32_t now, bool *unicast)
{
	struct neighbour_question question;
	struct packet *dropped;
	uint32_t asked = 0;

	for (uint32_t i = 0; i < neighbours_places(t); i++) {
		if (!neighbour_step(t, i, now, &question, &dropped))
			continue;
		asked++;
		assert_int_equal(question.port, PORT);
		if (unicast)
			*unicast = question.mac;
	}
	return asked;
}

static void is_found_once_it_has_answered(void **state)
{
	struct neighbours *t = table(16);
	uint64_t mac = 0;

	(void)state;
	assert_int_equal(find(t, 1, 0), NEIGHBOUR_ASK);
	/* Nobody has asked: whatever is told makes no entry. */
	tell(t, 1, 0x11, answer, 0);
	assert_int_equal(find(t, 1, 0), NEIGHBOUR_ASK);
	assert_int_equal(t->entries, 0);
	assert_true(ask(t, 1, 0));
	assert_false(ask(t, 1, 0));
	assert_int_equal(find(t, 1, 0), NEIGHBOUR_ASK);
	tell(t, 1, 0x112233445566, answer, 0);
	assert_int_equal(neighbour_find(t, PORT, address(1), 0, &mac), NEIGHBOUR_KNOWN);
	assert_int_equal(mac, 0x112233445566);
	/* Another port's is another. */
	assert_int_equal(neighbour_find(t, PORT + 1, address(1), 0, &mac), NEIGHBOUR_ASK);
	neighbours_destroy(t);
}

/* Asked three times, then gone for a second; asked for again it begins anew. */
static void does_not_answer(void **state)
{
	struct neighbours *t = table(16);
	bool unicast = true;

	(void)state;
	assert_true(ask(t, 1, 100));
	assert_int_equal(tick(t, 101, &unicast), 1);
	assert_false(unicast);
	assert_int_equal(tick(t, 102, NULL), 1);
	assert_int_equal(find(t, 1, 102), NEIGHBOUR_ASK);
	assert_int_equal(tick(t, 103, NULL), 0);
	assert_int_equal(find(t, 1, 103), NEIGHBOUR_GONE);
	assert_int_equal(t->unresolved, 1);
	assert_true(ask(t, 1, 103));
	assert_int_equal(find(t, 1, 103), NEIGHBOUR_ASK);
	for (uint32_t now = 104; now < 107; now++)
		tick(t, now, NULL);
	assert_int_equal(find(t, 1, 107), NEIGHBOUR_GONE);
	tick(t, 108, NULL);
	assert_int_equal(find(t, 1, 108), NEIGHBOUR_ASK);
	assert_int_equal(t->entries, 0);
	neighbours_destroy(t);
}

/* Used: asked after thirty seconds, it alone, and usable meanwhile. Unused: forgotten. */
static void grows_stale(void **state)
{
	struct neighbours *t = table(16);
	bool unicast = false;

	(void)state;
	ask(t, 1, 0);
	ask(t, 2, 0);
	tell(t, 1, 0x11, answer, 0);
	tell(t, 2, 0x22, answer, 0);
	for (uint32_t now = 1; now <= 30; now++) {
		assert_int_equal(find(t, 1, now), NEIGHBOUR_KNOWN);
		assert_int_equal(tick(t, now, NULL), 0);
	}
	assert_int_equal(find(t, 1, 31), NEIGHBOUR_KNOWN);
	assert_int_equal(tick(t, 31, &unicast), 1);
	assert_true(unicast);
	assert_int_equal(find(t, 1, 31), NEIGHBOUR_KNOWN);
	tell(t, 1, 0x11, answer, 32);
	for (uint32_t now = 32; now < 62; now++)
		assert_int_equal(tick(t, now, NULL), 0);
	/* It does not answer any more. */
	for (uint32_t now = 62; now < 67; now++) {
		assert_int_equal(find(t, 1, now), NEIGHBOUR_KNOWN);
		tick(t, now, NULL);
	}
	assert_int_equal(find(t, 1, 67), NEIGHBOUR_GONE);
	for (uint32_t now = 67; now < 700; now++)
		tick(t, now, NULL);
	assert_int_equal(t->entries, 0);
	neighbours_destroy(t);
}

static uint64_t mac_of(struct neighbours *t, uint32_t i, uint32_t now)
{
	uint64_t mac = 0;

	assert_int_equal(neighbour_find(t, PORT, address(i), now, &mac), NEIGHBOUR_KNOWN);
	return mac;
}

/* RFC 4861, 7.2.5. */
static void another_mac_address(void **state)
{
	struct neighbours *t = table(16);

	(void)state;
	ask(t, 1, 0);
	tell(t, 1, 0x11, answer, 0);
	/* Without override it stays, but is doubted: asked for at the next use. */
	tell(t, 1, 0x22, NEIGHBOUR_ANSWER, 1);
	assert_int_equal(mac_of(t, 1, 2), 0x11);
	assert_int_equal(tick(t, 2, NULL), 1);
	tell(t, 1, 0x11, answer, 2);
	assert_int_equal(tick(t, 3, NULL), 0);
	/* With it it changes, at once. */
	tell(t, 1, 0x33, NEIGHBOUR_OVERRIDE, 3);
	assert_int_equal(mac_of(t, 1, 4), 0x33);
	assert_int_equal(tick(t, 4, NULL), 1);
	/* The same again, unasked: nothing new. */
	tell(t, 1, 0x33, answer, 4);
	tell(t, 1, 0x33, NEIGHBOUR_OVERRIDE, 5);
	mac_of(t, 1, 6);
	assert_int_equal(tick(t, 6, NULL), 0);
	neighbours_destroy(t);
}

static void packets_wait(void **state)
{
	struct neighbours *t = table(16);
	struct neighbour_question question;
	struct packet *p, *dropped = NULL;
	uint64_t mac;
	bool due;
	int n = 0;

	(void)state;
	for (int i = 0; i < NEIGHBOUR_WAITING + 2; i++) {
		p = &packets[i];
		assert_int_equal(neighbour_wait(t, PORT, address(1), 0, &p, &mac, &due),
				 NEIGHBOUR_ASK);
		assert_int_equal(due, i == 0);
		assert_int_equal(!p, i < NEIGHBOUR_WAITING);
	}
	for (p = neighbour_confirm(t, PORT, address(1), 0x665544332211, answer, 0); p; p = p->next)
		assert_ptr_equal(p, &packets[n++]);
	assert_int_equal(n, NEIGHBOUR_WAITING);
	assert_memory_equal(packets[5].data, "\x11\x22\x33\x44\x55\x66", 6);
	p = &packets[20];
	assert_int_equal(neighbour_wait(t, PORT, address(1), 0, &p, &mac, &due), NEIGHBOUR_KNOWN);
	assert_ptr_equal(p, &packets[20]);
	assert_int_equal(mac, 0x665544332211);
	/* In vain, and taken away with their port. */
	for (int i = 0; i < 4; i++) {
		p = &packets[30 + i];
		neighbour_wait(t, i & 1 ? PORT : PORT + 1, address(2), 0, &p, &mac, &due);
	}
	p = neighbours_purge(t, PORT + 1);
	assert_ptr_equal(p, &packets[30]);
	assert_ptr_equal(p->next, &packets[32]);
	assert_null(p->next->next);
	for (uint32_t now = 1; now < 4; now++)
		for (uint32_t i = 0; i < neighbours_places(t); i++) {
			struct packet *some;

			neighbour_step(t, i, now, &question, &some);
			if (some)
				dropped = some;
		}
	assert_ptr_equal(dropped, &packets[31]);
	assert_ptr_equal(dropped->next, &packets[33]);
	assert_null(dropped->next->next);
	neighbours_purge(t, PORT);
	assert_int_equal(t->entries, 0);
	neighbours_destroy(t);
}

/* At the limit: those that are asked for stay; of the others the longest unused gives way. */
static void limit(void **state)
{
	struct neighbours *t = table(64);
	uint32_t made = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		made += ask(t, i, 0);
	/* A bucket may be full before the table is. */
	assert_in_range(made, 56, 64);
	assert_int_equal(t->entries, made);
	assert_int_equal(t->full, 1000 - made);
	for (uint32_t i = 0; i < 1000; i++)
		tell(t, i, i + 1, NEIGHBOUR_OVERRIDE, 1); /* stale */
	for (uint32_t i = 0; i < 1000; i++)
		if (find(t, i, 2) == NEIGHBOUR_KNOWN && i % 2)
			find(t, i, 3);
	for (uint32_t i = 1000; i < 1020; i++)
		assert_true(ask(t, i, 4));
	assert_true(t->entries <= 64);
	/* The unused ones went first, as far as buckets allow. */
	made = 0;
	for (uint32_t i = 1; i < 1000; i += 2)
		made += find(t, i, 4) == NEIGHBOUR_KNOWN;
	for (uint32_t i = 0; i < 1000; i += 2)
		made -= find(t, i, 4) == NEIGHBOUR_KNOWN;
	assert_true((int32_t)made > 8);
	neighbours_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_found_once_it_has_answered),
		cmocka_unit_test(does_not_answer),
		cmocka_unit_test(grows_stale),
		cmocka_unit_test(another_mac_address),
		cmocka_unit_test(packets_wait),
		cmocka_unit_test(limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
