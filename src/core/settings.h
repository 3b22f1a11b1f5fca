/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was set, by port name and queue number: kept for queues that are not there (yet, or now).
 */
#ifndef CORE_SETTINGS_H
#define CORE_SETTINGS_H

#include <napier/engine.h>

#define SETTINGS_MAX 1024

struct setting {
	char port[PORT_NAME_MAX];
	int queue; /* -1: all of the port */
	struct queue_settings value;
};

struct settings {
	uint32_t n;
	struct setting entry[SETTINGS_MAX];
};

/* Merges value into what is kept. A setting for all queues replaces the same keys of single ones.
 * -ENOSPC. */
int settings_keep(struct settings *settings, const char *port, int queue,
		  const struct queue_settings *value);
/* Room for one more: forgets the oldest one whose port is not `there`. False: there is none. */
bool settings_evict(struct settings *settings, bool (*there)(void *arg, const char *port),
		    void *arg, char forgotten[PORT_NAME_MAX]);
/* What holds for this queue: its own keys before those for all. */
void settings_find(const struct settings *settings, const char *port, int queue,
		   struct queue_settings *out);

#endif
