/* SPDX-License-Identifier: BSD-2-Clause */
/* The bridge against a model of it: random frames and VLANs, and out come the same frames. */
#include "bridge_rig.h"

/*
 * The same bridge, as plain as it can be: a packet at a time, in tables that are searched from the
 * start. VLANs are 1..VIDS, hosts 1..HOSTS.
 */
#define VIDS 4
#define HOSTS 20
#define MODEL_PORTS 5
#define TAKEN_MAX 4096

struct model {
	bool filtering;
	uint16_t pvid[MODEL_PORTS];
	bool member[MODEL_PORTS][VIDS + 1], untagged[MODEL_PORTS][VIDS + 1];
	int where[HOSTS + 1][VIDS + 1]; /* -1: unknown */
	uint64_t dropped[DROP_MAX], flooded;
	struct frame out[MODEL_PORTS][TAKEN_MAX];
	uint32_t outs[MODEL_PORTS];
};

static uint16_t model_vid(const struct model *m, uint32_t in, const struct frame *f)
{
	uint16_t vid = f->tagged && f->type == 0x8100 ? f->tci & 0xfff : 0;

	if (!vid)
		return m->pvid[in];
	return vid <= VIDS && m->member[in][vid] ? vid : 0;
}

/* The harness cannot speak of a frame with two tags, which a pushed one may become. */
static void model_send(struct model *m, uint32_t out, struct frame f, uint16_t vid)
{
	bool tag = f.tagged && f.type == 0x8100;

	if (m->filtering && m->untagged[out][vid] && tag) {
		f.tagged = false;
	} else if (m->filtering && !m->untagged[out][vid]) {
		f.tci = (uint16_t)((tag ? f.tci & 0xf000 : 0) | vid);
		f.type = 0x8100;
		f.tagged = true;
	}
	assert_true(m->outs[out] < TAKEN_MAX);
	m->out[out][m->outs[out]++] = f;
}

static void model_input(struct model *m, uint32_t in, const struct frame *f)
{
	bool reserved = f->to >= TO_RESERVED && f->to < TO_GROUP;
	uint16_t vid = m->filtering ? model_vid(m, in, f) : 0;
	bool sent = false;

	if (f->from == FROM_GROUP || f->from == FROM_ZERO) {
		m->dropped[DROP_BRIDGE_SOURCE]++;
		return;
	}
	if (!m->filtering || vid)
		m->where[f->from][vid] = (int)in;
	if (reserved) {
		m->dropped[DROP_BRIDGE_RESERVED]++;
		return;
	}
	if (m->filtering && !vid) {
		m->dropped[DROP_BRIDGE_VLAN]++;
		return;
	}
	if (f->to <= HOSTS && m->where[f->to][vid] >= 0) {
		uint32_t out = (uint32_t)m->where[f->to][vid];

		if (out == in)
			m->dropped[DROP_BRIDGE_SAME_PORT]++;
		else if (m->filtering && !m->member[out][vid])
			m->dropped[DROP_BRIDGE_VLAN]++;
		else
			model_send(m, out, *f, vid);
		return;
	}
	for (uint32_t out = 0; out < MODEL_PORTS; out++) {
		if (out == in || (m->filtering && !m->member[out][vid]))
			continue;
		model_send(m, out, *f, vid);
		sent = true;
	}
	if (sent)
		m->flooded++;
	else
		m->dropped[DROP_BRIDGE_NO_PORT]++;
}

static uint32_t draw(struct rig *r, uint32_t below)
{
	return (uint32_t)machine_virtual_draw(r->machine, below);
}

static void model_vlans(struct model *m, struct rig *r)
{
	for (uint32_t port = 0; port < MODEL_PORTS; port++) {
		/* What the bridge gives a port by itself. */
		m->pvid[port] = 1;
		m->member[port][1] = m->untagged[port][1] = true;
		for (uint16_t vid = 1; vid <= VIDS; vid++) {
			struct bridge_vlan vlan = {
				.vid = vid, .pvid = !draw(r, 4), .untagged = draw(r, 2)};

			if (!draw(r, 3)) {
				bridge_vlan_remove(r->bridge, r->port[port], vid);
				m->member[port][vid] = m->untagged[port][vid] = false;
				if (m->pvid[port] == vid)
					m->pvid[port] = 0;
				continue;
			}
			assert_int_equal(bridge_vlan_add(r->bridge, r->port[port], &vlan, NULL), 0);
			m->member[port][vid] = true;
			m->untagged[port][vid] = vlan.untagged;
			if (vlan.pvid)
				m->pvid[port] = vid;
			else if (m->pvid[port] == vid)
				m->pvid[port] = 0;
		}
	}
}

/* Mostly trains of the same two addresses, some of everything else. */
static struct frame random_frame(struct rig *r, const struct frame *last, bool filtering)
{
	static const uint8_t special[] = {TO_ALL, TO_GROUP, TO_RESERVED, TO_RESERVED + 9, 77};
	struct frame f = *last;

	f.number++;
	if (draw(r, 3))
		return f;
	f.to = (uint8_t)(1 + draw(r, HOSTS));
	f.from = (uint8_t)(1 + draw(r, HOSTS));
	if (!draw(r, 5))
		f.to = special[draw(r, sizeof(special))];
	if (!draw(r, 20))
		f.from = draw(r, 2) ? FROM_GROUP : FROM_ZERO;
	f.tagged = draw(r, 2);
	/* A tag of another type in a frame that may get one more is left to vlan.c's test. */
	f.type = filtering || draw(r, 2) ? 0x8100 : 0x88a8;
	f.tci = (uint16_t)(draw(r, 8) << 13 | draw(r, VIDS + 2));
	if (!draw(r, 20))
		f.tci |= 0xfff;
	return f;
}

static void model_compare(struct model *m, struct rig *r)
{
	struct bridge_stats stats;

	for (uint32_t port = 0; port < MODEL_PORTS; port++) {
		for (uint32_t i = 0; i < m->outs[port]; i++)
			rig_expect(r, port, &m->out[port][i]);
		m->outs[port] = 0;
	}
	rig_expect_no_more(r);
	for (int reason = 0; reason < DROP_MAX; reason++) {
		uint64_t dropped = 0;

		for (uint32_t port = 0; port < MODEL_PORTS; port++)
			dropped += rig_dropped(r, port, (enum drop_reason)reason);
		assert_int_equal(dropped, m->dropped[reason]);
	}
	bridge_stats_read(r->bridge, &stats);
	assert_int_equal(stats.flooded, m->flooded);
}

static void against_the_model(bool filtering)
{
	struct bridge_config config = {.vlan_filtering = filtering};
	struct model *m = calloc(1, sizeof(*m));
	struct frame last = {.to = 1, .from = 2}, f[PACKET_VECTOR_MAX];
	struct rig r;

	m->filtering = filtering;
	memset(m->where, 0xff, sizeof(m->where));
	rig_begin(&r, MODEL_PORTS, &config);
	for (uint32_t round = 0; round < 600; round++) {
		uint32_t n = 1 + draw(&r, PACKET_VECTOR_MAX), port = draw(&r, MODEL_PORTS);

		if (filtering && round % 100 == 0) {
			bridge_flush(r.bridge);
			memset(m->where, 0xff, sizeof(m->where));
			memset(m->member, 0, sizeof(m->member));
			memset(m->untagged, 0, sizeof(m->untagged));
			for (uint32_t i = 0; i < MODEL_PORTS; i++) {
				struct bridge_vlan one = {.vid = 1, .pvid = true, .untagged = true};

				for (uint16_t vid = 1; vid <= VIDS; vid++)
					bridge_vlan_remove(r.bridge, r.port[i], vid);
				bridge_vlan_add(r.bridge, r.port[i], &one, NULL);
			}
			model_vlans(m, &r);
		}
		for (uint32_t i = 0; i < n; i++) {
			f[i] = last = random_frame(&r, &last, filtering);
			model_input(m, port, &f[i]);
		}
		rig_send(&r, port, f, n);
		model_compare(m, &r);
	}
	assert_true(m->dropped[DROP_BRIDGE_SAME_PORT] && m->dropped[DROP_BRIDGE_RESERVED]);
	assert_true(!filtering ||
		    (m->dropped[DROP_BRIDGE_VLAN] && m->dropped[DROP_BRIDGE_NO_PORT]));
	rig_end(&r);
	free(m);
}

static void agrees_with_a_model(void **state)
{
	(void)state;
	against_the_model(false);
}

static void agrees_with_a_model_of_vlans(void **state)
{
	(void)state;
	against_the_model(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_model),
		cmocka_unit_test(agrees_with_a_model_of_vlans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
