/* SPDX-License-Identifier: BSD-2-Clause */
#include "gro_rig.h"

#include "pool_context.h"

struct context *const gro_context = &context;
struct gro *gro;

int gro_begin(void **state)
{
	(void)state;
	pool_context_begin(FRAMES);
	assert_int_equal(gro_create(&gro), 0);
	return 0;
}

int gro_end(void **state)
{
	(void)state;
	assert_int_equal(gro_oldest(gro), INT64_MAX);
	gro_destroy(gro);
	pool_context_end();
	return 0;
}

uint64_t gro_merged(void)
{
	return counter_read(&context.own.merged);
}

struct packet *packet_new(void)
{
	struct packet *p;

	assert_int_equal(packet_alloc(&context.cache, &p, 1), 1);
	p->hash = 0;
	p->gso_size = p->gso_type = 0;
	p->csum_start = p->csum_offset = 0;
	return p;
}

struct packet *packet_of(const struct frame_spec *s)
{
	struct packet *p = packet_new();

	p->len = p->total = frame_write(s, p->data);
	return p;
}

struct frame_spec spec_tcp(uint8_t version, uint32_t at, uint16_t size)
{
	return (struct frame_spec){
		.version = version,
		.protocol = 6,
		.source = 80,
		.target = 4000,
		.sequence = 0xfffffff0u + at,
		.ack = 77,
		.flags = ACK,
		.options = 12,
		.size = size,
		.fill = (uint8_t)at,
		.df = true,
	};
}

struct frame_spec spec_udp(uint8_t version, uint16_t id, uint16_t size)
{
	return (struct frame_spec){
		.version = version,
		.protocol = 17,
		.source = 53,
		.target = 4000,
		.size = size,
		.id = id,
		.fill = (uint8_t)id,
	};
}

uint32_t receive(unsigned types, struct packet **v, uint32_t n, struct packet **out)
{
	return gro_receive(gro, &context, types, v, n, out);
}

void discard(struct packet **v, uint32_t n)
{
	packet_free(&context.cache, v, n);
}

void check_alone(const struct packet *p, uint16_t flags)
{
	assert_null(p->next);
	assert_int_equal(p->total, p->len);
	assert_int_equal(p->flags, flags);
	assert_int_equal(p->gso_size, 0);
}

uint32_t frames_in(const struct packet *p)
{
	uint32_t n = 0;

	for (; p; p = p->next)
		n++;
	return n;
}
