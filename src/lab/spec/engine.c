/* SPDX-License-Identifier: BSD-2-Clause */
/* A system's engine and port groups: napier's own configuration, checked by who reads that. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <control/setup.h>

#include "lab/spec/reading.h"

/* What the system itself says. */
static int taken_check(struct reader *r, config_setting_t *group, bool port)
{
	static const struct {
		const char *key, *instead;
		bool port;
	} taken[] = {
		{"name", "the lab names its engines", false},
		{"poller", "poller is a key of the system", false},
		{"cpus", "place = { poller = … } says where it runs", false},
		{"port", "port is a key of the system", true},
		{"poller", "poller is a key of the system", true},
	};

	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
		config_setting_t *s = config_setting_get_member(group, taken[i].key);

		if (s && taken[i].port == port)
			return reader_wrong(r, s, -EINVAL, "%s: not here: %s", taken[i].key,
					    taken[i].instead);
	}
	return 0;
}

static int cpus_text(struct reader *r, config_setting_t *s)
{
	struct cpuset cpus = {0};
	config_setting_t *parent = config_setting_parent(s);
	const char *text = config_setting_get_string(s);
	char out[256], name[16];
	unsigned line = config_setting_source_line(s);
	int rc;

	if (text && (!strcmp(text, "any") || !strcmp(text, "none")))
		return 0;
	rc = value_cpus(r, s, &cpus);
	if (rc)
		return rc;
	cpuset_format(&cpus, out, sizeof(out));
	snprintf(name, sizeof(name), "%s", config_setting_name(s));
	config_setting_remove(parent, name);
	s = config_setting_add(parent, name, CONFIG_TYPE_STRING);
	config_setting_set_string(s, out);
	s->line = line;
	return 0;
}

/* Keys that hold numbers of CPUs, at every depth, into the machine's numbers. */
static int cpus_map(struct reader *r, config_setting_t *group)
{
	static const char *const keys[] = {"cpus", "rps_cpus"};
	int rc = 0;

	for (size_t k = 0; k < 2 && !rc && config_setting_is_group(group); k++) {
		config_setting_t *s = config_setting_get_member(group, keys[k]);

		if (s)
			rc = cpus_text(r, s);
	}
	for (int i = 0; i < config_setting_length(group) && !rc; i++) {
		config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const char *name = config_setting_name(s);

		if (config_setting_is_aggregate(s)) {
			rc = cpus_map(r, s);
		} else if (name && !strcmp(name, "cpu")) {
			struct cpuset one = {0};

			rc = config_setting_type(s) == CONFIG_TYPE_INT
				     ? value_cpus(r, s, &one)
				     : reader_wrong_type(r, s, "as a number");
			if (!rc)
				config_setting_set_int(s, (int)cpuset_next(&one, 0));
		}
	}
	return rc;
}

/* What napier says of it, at the place of the group. */
static int setup_try(struct reader *r, config_setting_t *group, bool port, const char *text)
{
	struct error said = {0};
	struct setup setup;
	char *whole;
	int rc;

	if (asprintf(&whole, port ? "ports = ( { port = \"mem:a\"; %s } );" : "engine = { %s };",
		     text) < 0)
		return error_set(r->err, -ENOMEM, "no memory");
	setup_init(&setup);
	rc = setup_text_read(&setup, "", whole, &said);
	setup_free(&setup);
	free(whole);
	if (rc) {
		/* Its lines are of the text that was made here. */
		const char *what = strstr(said.text, ": ");

		rc = reader_wrong(r, group, rc, "%s: %s", config_setting_name(group),
				  what ? what + 2 : said.text);
	}
	return rc;
}

int engine_take(struct reader *r, config_setting_t *group, bool port, char *out, size_t size)
{
	int rc;

	if (!config_setting_is_group(group))
		return reader_wrong_type(r, group, "{ key = value; … }");
	rc = taken_check(r, group, port);
	if (!rc)
		rc = cpus_map(r, group);
	if (rc)
		return rc;
	rc = tree_text(group, out, size);
	if (rc)
		return reader_wrong(r, group, rc, "%s is too long: %zu bytes at most",
				    config_setting_name(group), size - 1);
	return setup_try(r, group, port, out);
}
