/* SPDX-License-Identifier: BSD-2-Clause */
/* VLAN membership, and what a frame looks like on its way out, byte for byte. */
#include "test.h"

#include <handler/vlan.h>

#define FRAME_SHIFT 11
#define UNTAGGED 0x08004500u
#define TAG(tci) (0x81000000u | (tci))

static uint8_t area[2 << FRAME_SHIFT];
static const struct pool pool = {.area = area, .frames = 2, .frame_shift = FRAME_SHIFT};

static void ingress(void **state)
{
	struct vlans *vlans = vlans_create();

	(void)state;
	/* No member of anything. */
	assert_int_equal(vlan_ingress(vlans, 5, UNTAGGED), 0);
	assert_int_equal(vlan_ingress(vlans, 5, TAG(10)), 0);

	vlans_add(vlans, 5, 10, true, true);
	vlans_add(vlans, 5, 20, false, false);
	assert_int_equal(vlan_ingress(vlans, 5, UNTAGGED), 10);
	assert_int_equal(vlan_ingress(vlans, 5, TAG(0)), 10);	   /* a priority tag */
	assert_int_equal(vlan_ingress(vlans, 5, TAG(0xe000)), 10); /* with a priority */
	assert_int_equal(vlan_ingress(vlans, 5, TAG(10)), 10);
	assert_int_equal(vlan_ingress(vlans, 5, TAG(0xf000 | 20)), 20);
	assert_int_equal(vlan_ingress(vlans, 5, TAG(30)), 0);
	assert_int_equal(vlan_ingress(vlans, 5, TAG(4095)), 0);
	/* A service tag is no tag here. */
	assert_int_equal(vlan_ingress(vlans, 5, 0x88a80000u | 30), 10);
	/* Other ports are not concerned. */
	assert_int_equal(vlan_ingress(vlans, 4, TAG(10)), 0);
	assert_int_equal(vlan_ingress(vlans, 4, UNTAGGED), 0);
	assert_int_equal(vlans_members(vlans, 10), 1 << 5);
	free(vlans);
}

static void one_pvid(void **state)
{
	struct vlans *vlans = vlans_create();

	(void)state;
	vlans_add(vlans, 63, 1, true, true);
	/* The last one is it; the one before stays a member. */
	vlans_add(vlans, 63, 4094, true, false);
	assert_int_equal(vlan_ingress(vlans, 63, UNTAGGED), 4094);
	assert_int_equal(vlan_ingress(vlans, 63, TAG(1)), 1);
	/* Added again without the flag, it is no pvid any more. */
	vlans_add(vlans, 63, 4094, false, false);
	assert_int_equal(vlan_ingress(vlans, 63, UNTAGGED), 0);
	assert_int_equal(vlan_ingress(vlans, 63, TAG(4094)), 4094);
	/* Removing another VLAN leaves the pvid alone, removing its own takes it away. */
	vlans_add(vlans, 63, 1, true, true);
	assert_true(vlans_remove(vlans, 63, 4094));
	assert_false(vlans_remove(vlans, 63, 4094));
	assert_int_equal(vlan_ingress(vlans, 63, UNTAGGED), 1);
	assert_true(vlans_remove(vlans, 63, 1));
	assert_int_equal(vlan_ingress(vlans, 63, UNTAGGED), 0);
	vlans_add(vlans, 63, 7, true, true);
	vlans_add(vlans, 62, 7, true, true);
	vlans_clear(vlans, 63);
	assert_int_equal(vlans_members(vlans, 7), UINT64_C(1) << 62);
	assert_int_equal(vlan_ingress(vlans, 63, UNTAGGED), 0);
	free(vlans);
}

static void frame_set(struct packet *p, uint32_t headroom, const char *bytes, uint32_t len)
{
	memset(area, 0xee, sizeof(area));
	*p = (struct packet){.data = area + (1 << FRAME_SHIFT) + headroom,
			     .len = len,
			     .total = len + 1000,
			     .csum_start = 34};
	memcpy(p->data, bytes, len);
}

static void frame_is(const struct packet *p, const char *bytes, uint32_t len)
{
	assert_int_equal(p->len, len);
	assert_int_equal(p->total, len + 1000);
	assert_memory_equal(p->data, bytes, len);
}

#define ADDRESSES "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02"
#define REST "\x08\x00payload"
#define BYTES(text) text, sizeof(text) - 1

static void egress(void **state)
{
	struct vlans *vlans = vlans_create();
	struct packet p;

	(void)state;
	vlans_add(vlans, 1, 0x123, false, false);
	vlans_add(vlans, 2, 0x123, false, true);

	/* Untagged stays, or gets a tag without priority. */
	frame_set(&p, 256, BYTES(ADDRESSES REST));
	assert_true(vlan_egress(vlans, 2, 0x123, &pool, &p));
	frame_is(&p, BYTES(ADDRESSES REST));
	assert_int_equal(p.csum_start, 34);
	assert_true(vlan_egress(vlans, 1, 0x123, &pool, &p));
	frame_is(&p, BYTES(ADDRESSES "\x81\x00\x01\x23" REST));
	assert_int_equal(p.csum_start, 38);
	assert_ptr_equal(p.data, area + (1 << FRAME_SHIFT) + 252);

	/* Tagged stays with its priority, or loses the tag. */
	frame_set(&p, 256, BYTES(ADDRESSES "\x81\x00\xb1\x23" REST));
	assert_true(vlan_egress(vlans, 1, 0x123, &pool, &p));
	frame_is(&p, BYTES(ADDRESSES "\x81\x00\xb1\x23" REST));
	assert_true(vlan_egress(vlans, 2, 0x123, &pool, &p));
	frame_is(&p, BYTES(ADDRESSES REST));
	assert_int_equal(p.csum_start, 30);

	/* A priority tag gets the VLAN and keeps the priority, or goes. */
	frame_set(&p, 256, BYTES(ADDRESSES "\x81\x00\xf0\x00" REST));
	assert_true(vlan_egress(vlans, 1, 0x123, &pool, &p));
	frame_is(&p, BYTES(ADDRESSES "\x81\x00\xf1\x23" REST));
	frame_set(&p, 256, BYTES(ADDRESSES "\x81\x00\xf0\x00" REST));
	assert_true(vlan_egress(vlans, 2, 0x123, &pool, &p));
	frame_is(&p, BYTES(ADDRESSES REST));

	/* Only the outermost tag is looked at. */
	frame_set(&p, 256, BYTES(ADDRESSES "\x81\x00\x01\x23\x81\x00\x00\x09" REST));
	assert_true(vlan_egress(vlans, 2, 0x123, &pool, &p));
	frame_is(&p, BYTES(ADDRESSES "\x81\x00\x00\x09" REST));
	frame_set(&p, 256, BYTES(ADDRESSES "\x88\xa8\x00\x09" REST));
	assert_true(vlan_egress(vlans, 1, 0x123, &pool, &p));
	frame_is(&p, BYTES(ADDRESSES "\x81\x00\x01\x23\x88\xa8\x00\x09" REST));
	free(vlans);
}

static void needs_headroom(void **state)
{
	struct vlans *vlans = vlans_create();
	struct packet p;

	(void)state;
	vlans_add(vlans, 0, 5, false, false);
	frame_set(&p, 4, BYTES(ADDRESSES REST));
	assert_true(vlan_egress(vlans, 0, 5, &pool, &p));
	assert_int_equal(packet_offset(&pool, &p), 1 << FRAME_SHIFT);
	frame_set(&p, 3, BYTES(ADDRESSES REST));
	assert_false(vlan_egress(vlans, 0, 5, &pool, &p));
	frame_is(&p, BYTES(ADDRESSES REST));
	free(vlans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ingress),
		cmocka_unit_test(one_pvid),
		cmocka_unit_test(egress),
		cmocka_unit_test(needs_headroom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
