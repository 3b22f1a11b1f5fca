/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The groups of a configuration, and what they have in common. A function that takes one is as in
 * reader.h; the reader's arg is the setup.
 */
#ifndef CONTROL_SETUP_KEYS_H
#define CONTROL_SETUP_KEYS_H

#include <control/reader.h>
#include <control/setup.h>

static inline struct setup *setup_of(struct reader *r)
{
	return r->arg;
}

/* setup_engine.c: engine = { … }; setup_ports.c: ports = ( … ) */
int setup_take_engine(struct reader *r, config_setting_t *s, void *object, const struct key *key);
int setup_take_ports(struct reader *r, config_setting_t *s, void *object, const struct key *key);

/* A key of wish.h; object is the wish. */
int setup_take_wish(struct reader *r, config_setting_t *s, void *object, const struct key *key);
/* One that was found before the others of its group are taken. */
int setup_take_nothing(struct reader *r, config_setting_t *s, void *object, const struct key *key);

/* The number, in key's range, of a group that has one, and has n keys: { queue = 0; … }. what:
 * "queue". */
int setup_number(struct reader *r, config_setting_t *group, const struct key *key, const char *what,
		 const struct key *keys, size_t n, long long *out);
/* The error that another group has this number. */
int setup_twice(struct reader *r, config_setting_t *group, const struct key *key, long long number);
/* For errors about it that come later. */
void setup_where(const struct reader *r, const config_setting_t *s, char where[SETUP_WHERE]);

#endif
