/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of spec_parse. Each take function is of control/reader.h: 0, or a negative errno with
 * "FILE:LINE: …" in the reader's error, whose arg is the struct reading.
 */
#ifndef LAB_SPEC_READING_H
#define LAB_SPEC_READING_H

#include <control/reader.h>

#include "lab/spec/spec.h"

struct reading {
	struct spec *spec;
	const struct cpuset *usable;
	unsigned cpus;		/* of them */
	unsigned original_cpus; /* of the machine that the question was asked on; 0: not said */
	struct cpuset wrapped;	/* numbers in the file that this machine does not have */
};

static inline struct reading *reading_of(const struct reader *r)
{
	return r->arg;
}

/* A sentence for `scaled`; one that is there already is not said twice. */
__attribute__((format(printf, 2, 3))) void spec_note(struct spec *spec, const char *format, ...);

/* value.c: what stands behind a key. */

/* "500ms" into ns. */
int value_time(struct reader *r, config_setting_t *s, int64_t min, int64_t max, int64_t *out);
/* A number, or how many CPUs there are: "cpus", "cpus/2", "18*cpus". */
int value_count(struct reader *r, config_setting_t *s, unsigned min, unsigned max, unsigned *out);
/* "0-2,5", a number, "all", "lower", "upper", "last": into the machine's own. */
int value_cpus(struct reader *r, config_setting_t *s, struct cpuset *out);
/* The machine's number of the file's. */
unsigned value_cpu(const struct reading *reading, unsigned number);
/* At most size - 1 bytes. */
int value_text(struct reader *r, config_setting_t *s, char *out, size_t size);
/* Which of n names; err lists them. */
int value_name(struct reader *r, config_setting_t *s, const char *const *names, unsigned n,
	       unsigned *out);

/* A struct key's take, into the field at its offset. */
int take_time(struct reader *r, config_setting_t *s, void *object, const struct key *key);
int take_unsigned(struct reader *r, config_setting_t *s, void *object, const struct key *key);
int take_count(struct reader *r, config_setting_t *s, void *object, const struct key *key);
int take_cpus(struct reader *r, config_setting_t *s, void *object, const struct key *key);
int take_text(struct reader *r, config_setting_t *s, void *object, const struct key *key); /* max */
/* Taken by who needs it before or after the others. */
int take_nothing(struct reader *r, config_setting_t *s, void *object, const struct key *key);

/* given.c, antagonist.c: of struct key, into the spec. */
int given_take(struct reader *r, config_setting_t *s, void *object, const struct key *key);
int antagonists_take(struct reader *r, config_setting_t *s, void *object, const struct key *key);

/* workload.c */
int workloads_take(struct reader *r, config_setting_t *group);
/* Into a load_config that load_defaults made. */
int load_take(struct reader *r, config_setting_t *group, const char *who, struct load_config *out);
/* Only looks whether each key is right. */
int load_take_defaults(struct reader *r, config_setting_t *group);

/* system.c */
int systems_take(struct reader *r, config_setting_t *group);

/* settings.c: napier's own settings, as a text for its configuration; checked once all are there.
 */
int settings_take(struct reader *r, config_setting_t *group, bool port, char *out, size_t size);
int port_options_take(struct reader *r, config_setting_t *s, void *object, const struct key *key);
int settings_check(struct reader *r, config_setting_t *group, const struct spec_system *system);

/* check.c: what no single key can see. s: the system's group. */
int system_check(struct reader *r, config_setting_t *s, const struct spec_system *system);
int spec_check(struct reader *r, config_setting_t *root);

/* tree.c: libconfig's trees. */

/*
 * A member that `into` has not is copied, and its hook set; groups in both are merged. The same of
 * all members of a group. -ENOMEM.
 */
int tree_inherit(config_setting_t *into, const config_setting_t *member);
int tree_merge(config_setting_t *into, const config_setting_t *from);
static inline bool tree_inherited(const config_setting_t *s)
{
	return config_setting_get_hook(s);
}
/* As --set. -EINVAL, -ENOENT: err says what is wrong with the path. */
int tree_set(config_t *config, const struct spec_setting *set, struct error *err);
/* A copy of the group's members as a text that libconfig reads; -ENOSPC. */
int tree_text(config_setting_t *group, char *out, size_t size);
#endif
