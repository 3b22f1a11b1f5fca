/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading libconfig's settings by tables of keys, so that an unknown key, a wrong type and a value
 * out of range give the same kind of error everywhere: where, what, and what would be right.
 *
 * All return 0, or a negative errno with "FILE:LINE: …" in the reader's error.
 */
#ifndef CONTROL_READER_H
#define CONTROL_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <libconfig.h>

#include <napier/error.h>

struct reader {
	const char *path;  /* for errors */
	struct error *err; /* never NULL */
	void *arg;	   /* the caller's */
};

struct key {
	const char *name;
	int (*take)(struct reader *r, config_setting_t *s, void *object, const struct key *key);
	size_t offset; /* of the field in the object, for reader_number and reader_bool */
	long long min, max;
};

__attribute__((format(printf, 4, 5))) int reader_wrong(struct reader *r, const config_setting_t *s,
						       int code, const char *format, ...);
/* Puts the place in front of what another function said. */
int reader_wrong_there(struct reader *r, const config_setting_t *s, int code);
int reader_wrong_type(struct reader *r, const config_setting_t *s, const char *example);

/*
 * A member that has to be there is not: the text says so, unless another member has none of the n
 * keys, which is then said; it may be that one under a wrong name. Returns -EINVAL.
 */
__attribute__((format(printf, 5, 6))) int reader_missing(struct reader *r, config_setting_t *group,
							 const struct key *keys, size_t n,
							 const char *format, ...);
/* Each member of the group is taken by its key, of which there are n. */
int reader_group(struct reader *r, config_setting_t *group, const struct key *keys, size_t n,
		 void *object);
/* A list of groups, one call each. */
int reader_list(struct reader *r, config_setting_t *s, void *object,
		int (*take)(struct reader *r, config_setting_t *s, void *object));

/* struct key's take: into a uint32_t, into a bool. */
int reader_number(struct reader *r, config_setting_t *s, void *object, const struct key *key);
int reader_bool(struct reader *r, config_setting_t *s, void *object, const struct key *key);

/* Within the key's bounds. */
int reader_integer(struct reader *r, config_setting_t *s, const struct key *key, long long *out);
/* *out lives as long as the setting. */
int reader_text(struct reader *r, config_setting_t *s, const char **out);
/* A number or a text, as text. */
int reader_scalar(struct reader *r, config_setting_t *s, char *text, size_t size);

#endif
