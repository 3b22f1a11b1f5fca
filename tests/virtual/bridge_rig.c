/* SPDX-License-Identifier: BSD-2-Clause */
#include "bridge_rig.h"

struct port *rig_port(struct rig *r, uint32_t i)
{
	struct port_config config;
	char text[32];

	snprintf(text, sizeof(text), "mem:p%u", i);
	assert_int_equal(port_config_parse(text, &config, NULL), 0);
	assert_int_equal(engine_port_add(r->engine, &config, &r->port[i], NULL), 0);
	assert_int_equal(engine_handler_set(r->engine, r->port[i], r->bridge, NULL), 0);
	return r->port[i];
}

void rig_begin_frames(struct rig *r, uint32_t ports, const struct bridge_config *config,
		      uint32_t frames)
{
	struct virtual_config machine = {.cpus = 2, .seed = 5};
	struct engine_config engine = {.frames = frames};
	struct error err = {0};

	memset(r, 0, sizeof(*r));
	assert_int_equal(machine_virtual_create(&machine, &r->machine), 0);
	engine.machine = r->machine;
	if (engine_create(&engine, &r->engine, &err) ||
	    bridge_create(r->engine, config, &r->bridge, &err))
		fail_msg("%s", err.text);
	assert_int_equal(engine_context_open(r->engine, &r->context), 0);
	r->ports = ports;
	for (uint32_t i = 0; i < ports; i++)
		rig_port(r, i);
}

void rig_begin(struct rig *r, uint32_t ports, const struct bridge_config *config)
{
	rig_begin_frames(r, ports, config, 4096);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

void rig_run(struct rig *r, int64_t ns)
{
	machine_wait(r->machine, never, NULL, machine_now(r->machine) + ns);
}

void rig_end(struct rig *r)
{
	struct error err = {0};

	for (uint32_t i = 0; i < r->ports; i++) {
		if (!r->port[i])
			continue;
		assert_int_equal(port_held(r->port[i]), 0);
		assert_int_equal(engine_port_remove(r->engine, r->port[i], NULL), 0);
	}
	engine_context_close(r->context);
	if (engine_check(r->engine, &err))
		fail_msg("%s", err.text);
	engine_destroy(r->engine);
	machine_destroy(r->machine);
}

static void address_write(uint8_t *at, uint8_t host, bool source)
{
	static const uint8_t reserved[6] = {0x01, 0x80, 0xc2, 0, 0, 0};
	static const uint8_t group[6] = {0x01, 0x00, 0x5e, 0, 0, TO_GROUP};

	memset(at, 0, 6);
	if (source && host == FROM_ZERO)
		return;
	if (host == TO_ALL) {
		memset(at, 0xff, 6);
	} else if (host == TO_GROUP) {
		memcpy(at, group, 6);
	} else if (host >= TO_RESERVED) {
		memcpy(at, reserved, 6);
		at[5] = host & 0x0f;
	} else {
		at[0] = 2;
		at[5] = host;
	}
}

uint32_t frame_write(const struct frame *f, uint8_t *out)
{
	uint8_t *at = out + 12;

	memset(out, 0, FRAME_MAX);
	address_write(out, f->to, false);
	address_write(out + 6, f->from, true);
	if (f->tagged) {
		*at++ = (uint8_t)(f->type >> 8);
		*at++ = (uint8_t)f->type;
		*at++ = (uint8_t)(f->tci >> 8);
		*at++ = (uint8_t)f->tci;
	}
	*at++ = 0x88;
	*at++ = 0xb5;
	memcpy(at, &f->number, 4);
	return f->tagged ? FRAME_MAX : FRAME_MAX - 4;
}

void rig_send(struct rig *r, uint32_t port, const struct frame *f, uint32_t n)
{
	struct packet *v[PACKET_VECTOR_MAX];

	assert_int_equal(packet_alloc(&r->context->cache, v, n), n);
	for (uint32_t i = 0; i < n; i++)
		v[i]->len = frame_write(&f[i], v[i]->data);
	assert_int_equal(mem_port_send(r->port[port], v, n), n);
	rig_run(r, NSEC_PER_MSEC);
}

void rig_send_bytes(struct rig *r, uint32_t port, const void *bytes, uint32_t len)
{
	struct packet *p;

	assert_int_equal(packet_alloc(&r->context->cache, &p, 1), 1);
	memcpy(p->data, bytes, len);
	p->len = len;
	assert_int_equal(mem_port_send(r->port[port], &p, 1), 1);
	rig_run(r, NSEC_PER_MSEC);
}

void rig_expect(struct rig *r, uint32_t port, const struct frame *f)
{
	uint8_t bytes[FRAME_MAX];
	uint32_t len = frame_write(f, bytes);
	struct packet *p;

	if (mem_port_receive(r->port[port], &p, 1) != 1)
		fail_msg("port %u: frame %u has not come out", port, f->number);
	assert_int_equal(p->len, len);
	assert_int_equal(p->total, len);
	assert_memory_equal(p->data, bytes, len);
	packet_free(&r->context->cache, &p, 1);
}

void rig_expect_no_more(struct rig *r)
{
	struct packet *p;

	for (uint32_t i = 0; i < r->ports; i++) {
		if (!r->port[i] || !mem_port_receive(r->port[i], &p, 1))
			continue;
		fail_msg("port %u: a frame that nobody expects, %u bytes", i, p->len);
	}
}

uint64_t rig_dropped(struct rig *r, uint32_t port, enum drop_reason reason)
{
	return port_sum(r->port[port],
			offsetof(struct napi_counters, dropped) + reason * sizeof(counter));
}
