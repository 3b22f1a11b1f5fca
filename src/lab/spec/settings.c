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

/* What napier says of it, at the place of s. */
static int setup_try(struct reader *r, config_setting_t *s, const char *text)
{
	struct error said = {0};
	struct setup setup;
	const char *what;
	int rc;

	setup_init(&setup);
	rc = setup_text_read(&setup, "", text, &said);
	setup_free(&setup);
	if (!rc)
		return 0;
	/* Its lines are of the text that was made here. */
	what = strstr(said.text, ": ");
	return reader_wrong(r, s, rc, "%s: %s", config_setting_name(s),
			    what ? what + 2 : said.text);
}

int settings_check(struct reader *r, config_setting_t *group, const struct spec_system *system)
{
	config_setting_t *engine = config_setting_get_member(group, "engine");
	config_setting_t *ports = config_setting_get_member(group, "ports");
	config_setting_t *options = config_setting_get_member(group, "port_options");
	char text[2 * SPEC_TEXT_MAX];
	int rc = 0;

	if (engine) {
		snprintf(text, sizeof(text), "engine = { %s };", system->settings);
		rc = setup_try(r, engine, text);
	}
	if (!rc && options) {
		snprintf(text, sizeof(text), "ports = ( { port = \"%s:x,%s\"; } );", system->port,
			 system->port_options);
		rc = setup_try(r, options, text);
	}
	if (!rc && ports) {
		snprintf(text, sizeof(text), "ports = ( { port = \"%s:x%s%s\"; %s } );",
			 system->port, options ? "," : "", system->port_options,
			 system->port_settings);
		rc = setup_try(r, ports, text);
	}
	return rc;
}

int settings_take(struct reader *r, config_setting_t *group, bool port, char *out, size_t size)
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
	return rc ? reader_wrong(r, group, rc, "%s is too long: %zu bytes at most",
				 config_setting_name(group), size - 1)
		  : 0;
}

/* One option "key=value"; only opening the port would say that there is none of that name. */
static int option_check(struct reader *r, config_setting_t *s, const char *option)
{
	static const char *const known[] = {"ring",	"tx_napi",  "mode",
					    "zerocopy", "checksum", "qdisc_bypass"};
	char list[128] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		size_t n = strlen(known[i]);

		if (!strncmp(option, known[i], n) && option[n] == '=')
			return 0;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 known[i]);
	}
	return reader_wrong(r, s, -EINVAL,
			    "port_options: no option \"%.*s\" here: it is KEY=VALUE of %s",
			    (int)strcspn(option, ",="), option, list);
}

int port_options_take(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	char *text = (char *)object + key->offset;
	int rc = value_text(r, s, text, (size_t)key->max);

	/* It stands in a text in quotes. */
	if (!rc && strpbrk(text, "\"\\\n"))
		return reader_wrong(r, s, -EINVAL, "%s: no quotes here", key->name);
	for (const char *at = text; !rc && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : "")
		rc = option_check(r, s, at);
	return rc;
}
