/* SPDX-License-Identifier: BSD-2-Clause */
/* A pool and a GRO of its own for each test; when it ends, nothing is held and no frame is missing.
 */
#ifndef GRO_RIG_H
#define GRO_RIG_H

#include "test.h"

#include <linux/virtio_net.h>

#include <napier/port.h>

#include <core/gro.h>

#include "frames.h"

#define GSO_UDP_L4 5
#define FRAMES 256
#define ALL (GRO_TCP | GRO_UDP)
#define GRO_TEST(name) cmocka_unit_test_setup_teardown(name, gro_begin, gro_end)

enum { FIN = 0x01, SYN = 0x02, RST = 0x04, PSH = 0x08, ACK = 0x10, URG = 0x20, ECE = 0x40 };

extern struct context *const gro_context;
extern struct gro *gro;

int gro_begin(void **state);
int gro_end(void **state);
/* So many are in chains behind their heads. */
uint64_t gro_merged(void);
struct packet *packet_new(void);
struct packet *packet_of(const struct frame_spec *s);
/* Of one flow: the segment at this place of its stream. */
struct frame_spec spec_tcp(uint8_t version, uint32_t at, uint16_t size);
struct frame_spec spec_udp(uint8_t version, uint16_t id, uint16_t size);
uint32_t receive(unsigned types, struct packet **v, uint32_t n, struct packet **out);
void discard(struct packet **v, uint32_t n);
/* It went through as it came. */
void check_alone(const struct packet *p, uint16_t flags);
/* In its chain. */
uint32_t frames_in(const struct packet *p);

#endif
