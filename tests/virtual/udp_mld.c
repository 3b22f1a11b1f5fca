/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast listener discovery: switches that pass a group on only where somebody listens hear of
 * the groups of neighbour discovery, of each when its address comes, and of all when they ask.
 */
#include "udp_scene.h"

#include <arpa/inet.h>

enum { IP = 14, HOP = IP + 40, MLD = HOP + 8, QUERY_1 = 24, QUERY_2 = 28 };

/* The same without the header that routers look at: right as it stands, if that was. */
static unsigned sums_wrong(const struct frame *f)
{
	struct frame plain = *f;

	memmove(plain.bytes + HOP, plain.bytes + MLD, f->len - MLD);
	plain.bytes[IP + 5] -= 8;
	plain.bytes[IP + 6] = 58;
	return frame_sums_wrong(&plain);
}

/* One for whoever `to` is: alerting, not to be forwarded, from `from`. */
static void is_message(const struct frame *f, const char *from, const char *to, unsigned type)
{
	static const uint8_t alert[8] = {58, 0, 5, 2, 0, 0, 1, 0};
	uint8_t address[16];

	assert_true(frame_is_mld(f));
	assert_int_equal(inet_pton(AF_INET6, to, address), 1);
	assert_memory_equal(f->bytes + IP + 24, address, 16);
	assert_int_equal(f->bytes[0], 0x33);
	assert_int_equal(f->bytes[1], 0x33);
	assert_memory_equal(f->bytes + 2, address + 12, 4);
	assert_int_equal(inet_pton(AF_INET6, from, address), 1);
	assert_memory_equal(f->bytes + IP + 8, address, 16);
	assert_int_equal(f->bytes[IP + 7], 1);
	assert_memory_equal(f->bytes + HOP, alert, sizeof(alert));
	assert_int_equal(f->bytes[MLD], type);
	assert_int_equal(sums_wrong(f), 0);
}

static void is_record(const struct frame *f, unsigned i, unsigned type, const char *group)
{
	const uint8_t *record = f->bytes + MLD + 8 + 20 * i;
	uint8_t address[16];

	assert_int_equal(record[0], type);
	assert_int_equal(record[1] | record[2] | record[3], 0);
	assert_int_equal(inet_pton(AF_INET6, group, address), 1);
	assert_memory_equal(record + 4, address, 16);
}

static void is_report(const struct frame *f, const char *from, unsigned records)
{
	is_message(f, from, "ff02::16", 143);
	assert_int_equal(f->bytes[MLD + 7], records);
	assert_int_equal(f->len, MLD + 8 + 20 * records);
}

/* What the handler makes of its MAC address. */
static const char *link_local(const struct udp_scene *u, char text[INET6_ADDRSTRLEN])
{
	snprintf(text, INET6_ADDRSTRLEN, "fe80::%02x%02x:%02xff:fe%02x:%02x%02x", u->mac[0] ^ 2,
		 u->mac[1], u->mac[2], u->mac[3], u->mac[4], u->mac[5]);
	return text;
}

static const char *link_local_group(const struct udp_scene *u, char text[INET6_ADDRSTRLEN])
{
	snprintf(text, INET6_ADDRSTRLEN, "ff02::1:ff%02x:%02x%02x", u->mac[3], u->mac[4],
		 u->mac[5]);
	return text;
}

/* Before it is asked whether the address is taken, and once more when that is known. */
static void an_address_comes(void **state)
{
	struct udp_scene u;
	struct frame f;
	char text[INET6_ADDRSTRLEN];

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	scene_run(&u.s, 3 * NSEC_PER_SEC);
	while (udp_take(&u, &f))
		;
	assert_int_equal(udp_address_add(u.udp, u.s.a, "fd00::12:3456/64", NULL), 0);
	assert_true(udp_take(&u, &f));
	is_report(&f, link_local(&u, text), 1);
	is_record(&f, 0, 4, "ff02::1:ff12:3456");
	assert_true(udp_take(&u, &f));
	assert_int_equal(f.bytes[IP + 6], 58);
	udp_take_none(&u);
	scene_run(&u.s, 3 * NSEC_PER_SEC);
	assert_true(udp_take(&u, &f));
	is_report(&f, link_local(&u, text), 1);
	is_record(&f, 0, 4, "ff02::1:ff12:3456");
	assert_true(udp_take(&u, &f));
	udp_take_none(&u);
	udp_scene_end(&u);
}

/* The first ones come before there is an address to speak from. */
static void from_nobody(void **state)
{
	struct error err = {0};
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(engine_handler_set(u.s.engine, u.s.a, NULL, &err), 0);
	assert_int_equal(engine_handler_set(u.s.engine, u.s.a, u.udp, &err), 0);
	assert_int_equal(udp_address_add(u.udp, u.s.a, "fd00::2/64", &err), 0);
	assert_true(udp_take(&u, &f));
	is_report(&f, "::", 1);
	is_record(&f, 0, 4, "ff02::1:ff00:2");
	udp_scene_end(&u);
}

static void query(const struct udp_scene *u, struct frame *f, uint32_t size)
{
	uint8_t *ip = f->bytes + IP;

	memset(f, 0, sizeof(*f));
	/* A ping of that length, made into one. */
	frame_ping(u, f, "fe80::99", "ff02::1", size - 8);
	memcpy(f->bytes, "\x33\x33\0\0\0\1", 6);
	memset(f->bytes + HOP, 0, size);
	f->bytes[HOP] = 130;
	frame_sums(f);
	memmove(f->bytes + MLD, f->bytes + HOP, size);
	memcpy(f->bytes + HOP, "\x3a\0\5\2\0\0\1\0", 8);
	ip[5] += 8;
	ip[6] = 0;
	ip[7] = 1;
	f->len += 8;
}

/* However often: all groups, once a tick, in the words of who has asked. */
static void queries_are_answered(void **state)
{
	struct udp_scene u;
	struct frame f;
	char text[INET6_ADDRSTRLEN], group[INET6_ADDRSTRLEN];

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	scene_run(&u.s, 3 * NSEC_PER_SEC);
	while (udp_take(&u, &f))
		;
	query(&u, &f, QUERY_2);
	for (int i = 0; i < 5; i++)
		udp_inject(&u, &f);
	scene_run(&u.s, NSEC_PER_SEC);
	assert_true(udp_take(&u, &f));
	is_report(&f, link_local(&u, text), 2);
	is_record(&f, 0, 2, "ff02::1:ff00:2");
	is_record(&f, 1, 2, link_local_group(&u, group));
	udp_take_none(&u);

	query(&u, &f, QUERY_1);
	udp_inject(&u, &f);
	scene_run(&u.s, NSEC_PER_SEC);
	assert_true(udp_take(&u, &f));
	is_message(&f, link_local(&u, text), "ff02::1:ff00:2", 131);
	assert_memory_equal(f.bytes + MLD + 8, f.bytes + IP + 24, 16);
	assert_true(udp_take(&u, &f));
	is_message(&f, link_local(&u, text), link_local_group(&u, group), 131);
	udp_take_none(&u);
	udp_dropped_only(&u, DROP_MAX, 0);
	udp_scene_end(&u);
}

/* From further away than this link, or not for those that listen. */
static void wrong_queries(void **state)
{
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	scene_run(&u.s, 3 * NSEC_PER_SEC);
	while (udp_take(&u, &f))
		;
	query(&u, &f, QUERY_2);
	f.bytes[IP + 7] = 2;
	udp_inject(&u, &f);
	udp_dropped_only(&u, DROP_UDP_MALFORMED, 1);
	/* fd80::99, and its sum. */
	query(&u, &f, QUERY_2);
	f.bytes[IP + 8] = 0xfd;
	f.bytes[MLD + 2] += 1;
	udp_inject(&u, &f);
	udp_dropped_only(&u, DROP_UDP_MALFORMED, 2);
	query(&u, &f, QUERY_2);
	memmove(f.bytes + HOP, f.bytes + MLD, QUERY_2);
	f.bytes[IP + 5] -= 8;
	f.bytes[IP + 6] = 58;
	f.len -= 8;
	udp_inject(&u, &f);
	udp_dropped_only(&u, DROP_UDP_MALFORMED, 3);
	query(&u, &f, QUERY_1 - 1);
	udp_inject(&u, &f);
	udp_dropped_only(&u, DROP_UDP_MALFORMED, 4);
	scene_run(&u.s, 2 * NSEC_PER_SEC);
	udp_take_none(&u);
	udp_scene_end(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_comes),
		cmocka_unit_test(from_nobody),
		cmocka_unit_test(queries_are_answered),
		cmocka_unit_test(wrong_queries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
