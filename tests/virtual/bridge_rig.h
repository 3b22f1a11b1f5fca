/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bridge among mem ports p0, p1, … on the virtual machine: frames that the test describes go in
 * at one, and each that comes out is looked at.
 */
#ifndef BRIDGE_RIG_H
#define BRIDGE_RIG_H

#include "scene.h"

#define PORTS_MAX 8
#define FRAME_MAX 64

struct rig {
	struct machine *machine;
	struct engine *engine;
	struct handler *bridge;
	struct context *context;
	uint32_t ports;
	struct port *port[PORTS_MAX];
};

/* A frame as the tests speak of it: hosts are the last byte of their addresses. */
struct frame {
	uint8_t to, from;
	bool tagged;
	uint16_t type; /* of the tag: 0x8100 or 0x88a8 */
	uint16_t tci;
	uint32_t number;
};

#define TO_ALL 0xff	 /* ff:ff:ff:ff:ff:ff */
#define TO_GROUP 0xfe	 /* 01:00:5e:00:00:fe */
#define TO_RESERVED 0xf0 /* to 0xfd: 01:80:c2:00:00:00 to :0d */
#define FROM_GROUP 0xff
#define FROM_ZERO 0

void rig_begin(struct rig *r, uint32_t ports, const struct bridge_config *config);
/* With so many frames in the engine's pool. */
void rig_begin_frames(struct rig *r, uint32_t ports, const struct bridge_config *config,
		      uint32_t frames);
/* Nothing is left. */
void rig_end(struct rig *r);
/* Port i, which is not there. */
struct port *rig_port(struct rig *r, uint32_t i);
void rig_run(struct rig *r, int64_t ns);
uint32_t frame_write(const struct frame *f, uint8_t *out);
/* All in one vector. */
void rig_send(struct rig *r, uint32_t port, const struct frame *f, uint32_t n);
void rig_send_bytes(struct rig *r, uint32_t port, const void *bytes, uint32_t len);
/* The next frame out of the port is this one. */
void rig_expect(struct rig *r, uint32_t port, const struct frame *f);
void rig_expect_no_more(struct rig *r);
uint64_t rig_dropped(struct rig *r, uint32_t port, enum drop_reason reason);

#define SEND(r, port, ...)                                                                         \
	rig_send(r, port, (struct frame[]){__VA_ARGS__},                                           \
		 sizeof((struct frame[]){__VA_ARGS__}) / sizeof(struct frame))
#define EXPECT(r, port, ...) rig_expect(r, port, &(struct frame){__VA_ARGS__})

#endif
