/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab/spec/reading.h"

#define KEYS(list) list, sizeof(list) / sizeof(*list)

static const char *const kinds[] = {"hog", "background", "awake"};

const char *spec_antagonist_kind_name(enum spec_antagonist_kind kind)
{
	return kinds[kind];
}

static int antagonist_kind(struct reader *r, config_setting_t *s, struct spec_antagonist *a)
{
	static const struct key any[] = {{"kind"}, {"threads"}, {"cpus"}, {"nice"}, {"load"}};
	config_setting_t *kind = config_setting_get_member(s, "kind");
	unsigned n;
	int rc;

	if (!kind)
		return reader_missing(r, s, KEYS(any),
				      "this antagonist has no kind: kind = \"hog\", "
				      "\"background\" or \"awake\";");
	rc = value_name(r, kind, KEYS(kinds), &n);
	if (!rc)
		a->kind = (enum spec_antagonist_kind)n;
	return rc;
}

static int take_load(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct spec_antagonist *a = object;

	(void)key;
	return load_take(r, s, a->key, &a->load);
}

static int take_nice(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	long long n;
	int rc = reader_integer(r, s, key, &n);

	if (!rc)
		((struct spec_antagonist *)object)->nice = (int)n;
	return rc;
}

static int antagonist_take(struct reader *r, config_setting_t *s, struct spec_antagonist *a)
{
#define ANTAGONIST(field) offsetof(struct spec_antagonist, field)
	static const struct key hog[] = {
		{"kind", take_nothing},
		{"threads", take_count, ANTAGONIST(threads), 1, LOAD_THREADS_MAX},
		{"cpus", take_cpus, ANTAGONIST(cpus)},
		{"nice", take_nice, 0, -20, 19},
	};
	static const struct key awake[] = {
		{"kind", take_nothing},
		{"cpus", take_cpus, ANTAGONIST(cpus)},
	};
	static const struct key background[] = {
		{"kind", take_nothing},
		{"cpus", take_cpus, ANTAGONIST(cpus)},
		{"load", take_load},
	};
#undef ANTAGONIST
	int rc;

	if (!config_setting_is_group(s))
		return reader_wrong_type(r, s, "{ kind = \"hog\"; … }");
	snprintf(a->key, sizeof(a->key), "%s", config_setting_name(s));
	a->line = (int)config_setting_source_line(s);
	a->threads = 1;
	rc = antagonist_kind(r, s, a);
	if (rc)
		return rc;
	if (a->kind == SPEC_HOG)
		return reader_group(r, s, KEYS(hog), a);
	if (a->kind == SPEC_AWAKE)
		return reader_group(r, s, KEYS(awake), a);
	rc = reader_group(r, s, KEYS(background), a);
	if (!rc && !config_setting_get_member(s, "load"))
		rc = reader_wrong(r, s, -EINVAL,
				  "what does it send? load = { kind = \"stream\"; … };");
	return rc;
}

int antagonists_take(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct spec *spec = object;
	int rc = 0;

	(void)key;
	if (!config_setting_is_group(s))
		return reader_wrong_type(r, s, "{ NAME = { kind = \"hog\"; … }; … }");
	for (int i = 0; i < config_setting_length(s) && !rc; i++) {
		config_setting_t *element = config_setting_get_elem(s, (unsigned)i);

		if (spec->antagonists == SPEC_ANTAGONISTS_MAX)
			return reader_wrong(r, element, -EINVAL, "more than %d antagonists",
					    SPEC_ANTAGONISTS_MAX);
		if (strlen(config_setting_name(element)) >= SPEC_NAME_MAX)
			return reader_wrong(r, element, -EINVAL, "this name is too long");
		rc = antagonist_take(r, element, &spec->antagonist[spec->antagonists++]);
	}
	return rc;
}
