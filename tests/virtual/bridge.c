/* SPDX-License-Identifier: BSD-2-Clause */
/* The bridge on the virtual machine: exact frames out of each port, exact counters. */
#include "bridge_rig.h"

#include <core/engine.h>

static void learns_and_forwards(void **state)
{
	struct bridge_config config = {0};
	struct bridge_entry entries[4];
	struct bridge_stats stats;
	struct rig r;

	(void)state;
	rig_begin(&r, 3, &config);
	/* Unknown: to all others, and the source is known from then on. */
	SEND(&r, 0, {.to = 2, .from = 1, .number = 1});
	EXPECT(&r, 1, .to = 2, .from = 1, .number = 1);
	EXPECT(&r, 2, .to = 2, .from = 1, .number = 1);
	rig_expect_no_more(&r);
	SEND(&r, 1, {.to = 1, .from = 2, .number = 2});
	EXPECT(&r, 0, .to = 1, .from = 2, .number = 2);
	rig_expect_no_more(&r);
	SEND(&r, 0, {.to = 2, .from = 1, .number = 3});
	EXPECT(&r, 1, .to = 2, .from = 1, .number = 3);
	rig_expect_no_more(&r);
	/* Groups: to all others, always. */
	SEND(&r, 2, {.to = TO_ALL, .from = 3, .number = 4}, {.to = TO_GROUP, .from = 3});
	EXPECT(&r, 0, .to = TO_ALL, .from = 3, .number = 4);
	EXPECT(&r, 0, .to = TO_GROUP, .from = 3);
	EXPECT(&r, 1, .to = TO_ALL, .from = 3, .number = 4);
	EXPECT(&r, 1, .to = TO_GROUP, .from = 3);
	rig_expect_no_more(&r);

	bridge_stats_read(r.bridge, &stats);
	assert_int_equal(stats.learned, 3);
	assert_int_equal(stats.moved + stats.aged + stats.table_full, 0);
	assert_int_equal(stats.flooded, 3);
	assert_int_equal(stats.entries, 3);
	assert_int_equal(PORT_SUM(r.port[0], cloned), 1);
	assert_int_equal(PORT_SUM(r.port[0], transmitted), 3);
	assert_int_equal(PORT_SUM(r.port[1], cloned), 0);
	assert_int_equal(PORT_SUM(r.port[2], cloned), 2);
	assert_int_equal(PORT_SUM(r.port[2], transmitted), 4);

	assert_int_equal(bridge_entries(r.bridge, entries, 4), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(entries[i].address[0], 2);
		assert_int_equal(entries[i].port, r.port[entries[i].address[5] - 1]->index);
		assert_int_equal(entries[i].vid, 0);
		assert_int_equal(entries[i].age_seconds, 0);
	}
	assert_int_equal(bridge_entries(r.bridge, entries, 1), 3);
	bridge_flush(r.bridge);
	assert_int_equal(bridge_entries(r.bridge, NULL, 0), 0);
	rig_end(&r);
}

static void moves(void **state)
{
	struct bridge_config config = {0};
	struct bridge_stats stats;
	struct rig r;

	(void)state;
	rig_begin(&r, 3, &config);
	SEND(&r, 0, {.to = TO_ALL, .from = 1}, {.to = TO_ALL, .from = 1});
	SEND(&r, 2, {.to = TO_ALL, .from = 1});
	for (int i = 0; i < 2; i++) {
		EXPECT(&r, 1, .to = TO_ALL, .from = 1);
		EXPECT(&r, 2, .to = TO_ALL, .from = 1);
	}
	EXPECT(&r, 0, .to = TO_ALL, .from = 1);
	EXPECT(&r, 1, .to = TO_ALL, .from = 1);
	SEND(&r, 1, {.to = 1, .from = 2, .number = 9});
	EXPECT(&r, 2, .to = 1, .from = 2, .number = 9);
	rig_expect_no_more(&r);
	bridge_stats_read(r.bridge, &stats);
	assert_int_equal(stats.learned, 2);
	assert_int_equal(stats.moved, 1);
	rig_end(&r);
}

static void ages(void **state)
{
	struct bridge_config config = {.ageing_seconds = 10};
	struct bridge_entry entry;
	struct bridge_stats stats;
	struct rig r;

	(void)state;
	rig_begin(&r, 2, &config);
	SEND(&r, 0, {.to = TO_ALL, .from = 1}, {.to = TO_ALL, .from = 2});
	rig_run(&r, 5 * NSEC_PER_SEC);
	SEND(&r, 0, {.to = TO_ALL, .from = 2});
	rig_run(&r, 5 * NSEC_PER_SEC);
	/* Not before more than the ageing time has passed. */
	assert_int_equal(bridge_entries(r.bridge, NULL, 0), 2);
	rig_run(&r, 2 * NSEC_PER_SEC);
	assert_int_equal(bridge_entries(r.bridge, &entry, 1), 1);
	assert_int_equal(entry.address[5], 2);
	assert_int_equal(entry.age_seconds, 7);
	rig_run(&r, 5 * NSEC_PER_SEC);
	bridge_stats_read(r.bridge, &stats);
	assert_int_equal(stats.aged, 2);
	assert_int_equal(stats.entries, 0);
	for (int i = 0; i < 3; i++) {
		struct packet *p;

		assert_int_equal(mem_port_receive(r.port[1], &p, 1), 1);
		packet_free(&r.context->cache, &p, 1);
	}
	/* What has been forgotten is flooded to. */
	SEND(&r, 1, {.to = 1, .from = 3});
	bridge_stats_read(r.bridge, &stats);
	assert_int_equal(stats.flooded, 4);
	EXPECT(&r, 0, .to = 1, .from = 3);
	rig_end(&r);
}

static void stays_within_its_limit(void **state)
{
	struct bridge_config config = {.entries = 4};
	struct bridge_stats stats;
	struct rig r;

	(void)state;
	rig_begin(&r, 3, &config);
	for (uint8_t i = 1; i <= 6; i++) {
		SEND(&r, 0, {.to = TO_ALL, .from = i});
		EXPECT(&r, 1, .to = TO_ALL, .from = i);
		EXPECT(&r, 2, .to = TO_ALL, .from = i);
	}
	bridge_stats_read(r.bridge, &stats);
	assert_int_equal(stats.entries, 4);
	assert_int_equal(stats.table_full, 2);
	SEND(&r, 1, {.to = 4, .from = 7}, {.to = 5, .from = 7});
	EXPECT(&r, 0, .to = 4, .from = 7);
	EXPECT(&r, 0, .to = 5, .from = 7);
	EXPECT(&r, 2, .to = 5, .from = 7);
	rig_expect_no_more(&r);
	rig_end(&r);
}

static void drops_with_a_reason(void **state)
{
	static const uint8_t short_frame[13] = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8};
	static const uint8_t least[14] = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0};
	struct bridge_config config = {0};
	struct bridge_stats stats;
	struct packet *p;
	struct rig r;

	(void)state;
	rig_begin(&r, 2, &config);
	SEND(&r, 0, {.to = 2, .from = FROM_GROUP}, {.to = 2, .from = FROM_ZERO},
	     {.to = TO_RESERVED, .from = 1}, {.to = TO_RESERVED + 0xd, .from = 1},
	     {.to = TO_ALL, .from = 1, .number = 7});
	EXPECT(&r, 1, .to = TO_ALL, .from = 1, .number = 7);
	SEND(&r, 0, {.to = 1, .from = 2}, {.to = 1, .from = 2});
	rig_send_bytes(&r, 0, short_frame, sizeof(short_frame));
	rig_expect_no_more(&r);
	assert_int_equal(rig_dropped(&r, 0, DROP_BRIDGE_SOURCE), 2);
	assert_int_equal(rig_dropped(&r, 0, DROP_BRIDGE_RESERVED), 2);
	assert_int_equal(rig_dropped(&r, 0, DROP_BRIDGE_SAME_PORT), 2);
	assert_int_equal(rig_dropped(&r, 0, DROP_TOO_SHORT), 1);
	/* An Ethernet header is enough; and the source of a bad frame has not been learnt. */
	rig_send_bytes(&r, 0, least, sizeof(least));
	assert_int_equal(mem_port_receive(r.port[1], &p, 1), 1);
	assert_int_equal(p->len, sizeof(least));
	assert_memory_equal(p->data, least, sizeof(least));
	packet_free(&r.context->cache, &p, 1);
	bridge_stats_read(r.bridge, &stats);
	assert_int_equal(stats.entries, 3);
	rig_end(&r);
}

static void ports_come_and_go(void **state)
{
	struct bridge_config config = {0};
	struct rig r;

	(void)state;
	rig_begin(&r, 3, &config);
	SEND(&r, 2, {.to = TO_ALL, .from = 3});
	EXPECT(&r, 0, .to = TO_ALL, .from = 3);
	EXPECT(&r, 1, .to = TO_ALL, .from = 3);
	/* Down: not flooded to, and what was known to be there is looked for elsewhere. */
	port_state_set(r.port[2], PORT_DOWN);
	SEND(&r, 0, {.to = 3, .from = 1});
	assert_int_equal(rig_dropped(&r, 0, DROP_TX_DOWN), 1);
	SEND(&r, 0, {.to = 9, .from = 1});
	EXPECT(&r, 1, .to = 9, .from = 1);
	rig_run(&r, NSEC_PER_SEC);
	SEND(&r, 0, {.to = 3, .from = 1});
	EXPECT(&r, 1, .to = 3, .from = 1);
	rig_expect_no_more(&r);
	/* A port whose input has ended is still sent to. */
	port_state_set(r.port[2], PORT_ENDED);
	SEND(&r, 0, {.to = 9, .from = 1});
	EXPECT(&r, 1, .to = 9, .from = 1);
	EXPECT(&r, 2, .to = 9, .from = 1);

	/* Removed: its addresses go, those of others stay. */
	SEND(&r, 1, {.to = TO_ALL, .from = 2});
	EXPECT(&r, 0, .to = TO_ALL, .from = 2);
	EXPECT(&r, 2, .to = TO_ALL, .from = 2);
	assert_int_equal(engine_port_remove(r.engine, r.port[1], NULL), 0);
	r.port[1] = NULL;
	assert_int_equal(bridge_entries(r.bridge, NULL, 0), 1);
	SEND(&r, 0, {.to = 2, .from = 1});
	EXPECT(&r, 2, .to = 2, .from = 1);
	rig_expect_no_more(&r);
	/* The last other one, too. */
	assert_int_equal(engine_handler_set(r.engine, r.port[2], NULL, NULL), 0);
	SEND(&r, 0, {.to = 2, .from = 1}, {.to = TO_ALL, .from = 1});
	assert_int_equal(rig_dropped(&r, 0, DROP_BRIDGE_NO_PORT), 2);
	/* And back. */
	rig_port(&r, 1);
	SEND(&r, 0, {.to = 2, .from = 1});
	EXPECT(&r, 1, .to = 2, .from = 1);
	rig_expect_no_more(&r);
	rig_end(&r);
}

/* No frames left for copies: one port gets the frame, the other a drop in the books. */
static void floods_without_frames(void **state)
{
	struct bridge_config config = {0};
	struct packet *held[64];
	uint32_t n = 0;
	struct rig r;

	(void)state;
	rig_begin_frames(&r, 3, &config, 64);
	while (packet_alloc(&r.context->cache, &held[n], 1))
		n++;
	assert_true(n > 0);
	packet_free(&r.context->cache, &held[--n], 1);
	SEND(&r, 0, {.to = TO_ALL, .from = 1});
	EXPECT(&r, 2, .to = TO_ALL, .from = 1);
	rig_expect_no_more(&r);
	assert_int_equal(rig_dropped(&r, 0, DROP_POOL_EMPTY), 1);
	assert_int_equal(PORT_SUM(r.port[0], cloned), 1);
	assert_int_equal(PORT_SUM(r.port[0], transmitted), 1);
	packet_free(&r.context->cache, held, n);
	rig_end(&r);
}

static void refuses(void **state)
{
	struct bridge_vlan vlan = {.vid = 5};
	struct bridge_config plain = {0}, wrong = {.entries = 100};
	struct handler *handler;
	struct error err = {0};
	struct rig r;

	(void)state;
	rig_begin(&r, 1, &plain);
	assert_int_equal(bridge_create(r.engine, &wrong, &handler, &err), -EINVAL);
	assert_non_null(strstr(err.text, "entries=100"));
	wrong = (struct bridge_config){.ageing_seconds = 2000000};
	assert_int_equal(bridge_create(r.engine, &wrong, &handler, &err), -EINVAL);
	assert_non_null(strstr(err.text, "ageing=2000000"));
	assert_int_equal(bridge_vlan_add(r.bridge, r.port[0], &vlan, &err), -EINVAL);
	assert_non_null(strstr(err.text, "vlan_filtering"));
	assert_int_equal(bridge_vlan_remove(r.bridge, r.port[0], 5), -ENOENT);
	plain.vlan_filtering = true;
	assert_int_equal(bridge_create(r.engine, &plain, &handler, &err), 0);
	assert_int_equal(bridge_vlan_add(handler, r.port[0], &vlan, &err), -ENOENT);
	vlan.vid = 4095;
	assert_int_equal(bridge_vlan_add(handler, r.port[0], &vlan, &err), -EINVAL);
	assert_non_null(strstr(err.text, "VLAN 4095"));
	assert_int_equal(bridge_vlan_remove(handler, r.port[0], 0), -EINVAL);
	rig_end(&r);
}

static void truncated_tags(void **state)
{
	static const uint8_t cut[17] = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x81, 0x00, 0, 1, 8};
	struct frame whole = {.to = 9, .from = 8, .tagged = true, .type = 0x8100, .tci = 1};
	struct bridge_config config = {.vlan_filtering = true};
	struct packet *v[2];
	struct rig r;

	(void)state;
	rig_begin(&r, 2, &config);
	for (uint32_t len = 14; len <= sizeof(cut); len++)
		rig_send_bytes(&r, 0, cut, len);
	assert_int_equal(rig_dropped(&r, 0, DROP_TOO_SHORT), 4);
	rig_expect_no_more(&r);
	/* What was decided on one says nothing about a whole frame that looks the same. */
	assert_int_equal(packet_alloc(&r.context->cache, v, 2), 2);
	for (int i = 0; i < 2; i++)
		v[i]->len = frame_write(&whole, v[i]->data);
	v[0]->len = 16;
	assert_int_equal(mem_port_send(r.port[0], v, 2), 2);
	rig_run(&r, NSEC_PER_MSEC);
	assert_int_equal(rig_dropped(&r, 0, DROP_TOO_SHORT), 5);
	whole.tagged = false;
	rig_expect(&r, 1, &whole);
	rig_expect_no_more(&r);
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(learns_and_forwards),
		cmocka_unit_test(moves),
		cmocka_unit_test(ages),
		cmocka_unit_test(stays_within_its_limit),
		cmocka_unit_test(drops_with_a_reason),
		cmocka_unit_test(ports_come_and_go),
		cmocka_unit_test(floods_without_frames),
		cmocka_unit_test(refuses),
		cmocka_unit_test(truncated_tags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
