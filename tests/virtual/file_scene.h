/* SPDX-License-Identifier: BSD-2-Clause */
/* Capture files through a bridge, on either machine. */
#ifndef FILE_SCENE_H
#define FILE_SCENE_H

#include "../unit/captures.h"
#include "scene.h"

struct file_scene {
	struct machine *machine;
	struct engine *engine;
	struct handler *bridge;
	bool started;
	uint32_t lines;
	char log[SCENE_LOG][512]; /* warnings, the last ones */
};

/* frames 0: 4096. */
void file_scene_begin(struct file_scene *s, bool virtual, uint64_t seed, enum poller poller,
		      const struct bridge_config *bridge, uint32_t frames);
/*
 * A port of the bridge, from its text. Polling begins with the first file_scene_run or _finish,
 * when all ports are there.
 */
struct port *file_scene_port(struct file_scene *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void file_scene_run(struct file_scene *s, int64_t ns);
/* Until the inputs of all ports with PORT_FINITE have ended, and nothing is held. */
void file_scene_finish(struct file_scene *s);
/* How many warnings have this in them. */
uint32_t file_scene_logged(struct file_scene *s, const char *text);
/* The files are closed then. All packets must be free, or the test fails. */
void file_scene_end(struct file_scene *s);

/* An Ethernet frame between two hosts: 02:00:00:00:00:<host>, then the number, then a pattern. */
void frame_fill(uint8_t *frame, uint32_t len, uint8_t to, uint8_t from, uint32_t number);

#endif
