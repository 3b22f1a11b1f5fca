/* SPDX-License-Identifier: BSD-2-Clause */
/* A specification's file: its groups, and in which order they are read. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <control/setup_text.h>

#include "lab/spec/reading.h"

#define SPEC(field) offsetof(struct spec, field)
#define SIZE(field) sizeof(((struct spec *)0)->field)
#define KEYS(list) list, sizeof(list) / sizeof(*list)

void spec_note(struct spec *spec, const char *format, ...)
{
	char text[sizeof(spec->note[0])];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (unsigned i = 0; i < spec->scaled; i++) {
		if (!strcmp(spec->note[i], text))
			return;
	}
	if (spec->scaled < SPEC_NOTES_MAX)
		memcpy(spec->note[spec->scaled++], text, sizeof(text));
}

static int take_topology(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	static const char *const names[] = {"ends", "middle"};
	unsigned n;
	int rc = value_name(r, s, KEYS(names), &n);

	(void)key;
	if (!rc)
		((struct spec *)object)->topology = (enum spec_topology)n;
	return rc;
}

static int take_length(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
#define LENGTH(field) offsetof(struct spec_length, field)
	static const struct key keys[] = {
		{"warm", take_time, LENGTH(warm), 0, 600 * NSEC_PER_SEC},
		{"duration", take_time, LENGTH(duration), 10 * NSEC_PER_MSEC, 3600 * NSEC_PER_SEC},
		{"repeats", take_unsigned, LENGTH(repeats), 1, SPEC_REPEATS_MAX},
	};
#undef LENGTH

	return reader_group(r, s, KEYS(keys), (char *)object + key->offset);
}

static int take_original(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	static const struct key keys[] = {
		{"cpus", take_unsigned, offsetof(struct reading, original_cpus), 1, 1 << 20},
	};

	(void)object;
	(void)key;
	return reader_group(r, s, KEYS(keys), reading_of(r));
}

/* Read by themselves too, so that an error in them is said at its own line. */
static int take_load_defaults(struct reader *r, config_setting_t *s, void *object,
			      const struct key *key)
{
	(void)object;
	(void)key;
	return load_take_defaults(r, s);
}

static int take_defaults(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	static const struct key keys[] = {
		{"system", take_nothing}, /* by systems_take: it may name workloads */
		{"workload", take_load_defaults},
	};

	(void)key;
	return reader_group(r, s, KEYS(keys), object);
}

static int workloads_merge(struct reader *r, config_setting_t *root, config_setting_t *workloads)
{
	config_setting_t *defaults = config_setting_get_member(root, "defaults");

	defaults = defaults ? config_setting_get_member(defaults, "workload") : NULL;
	for (int i = 0; defaults && i < config_setting_length(workloads); i++) {
		if (tree_merge(config_setting_get_elem(workloads, (unsigned)i), defaults))
			return error_set(r->err, -ENOMEM, "no memory");
	}
	return 0;
}

/* Systems name workloads, and need to know the topology, wherever these stand in the file. */
static int groups_read(struct reader *r, config_setting_t *root)
{
	config_setting_t *workloads = config_setting_get_member(root, "workloads");
	config_setting_t *systems = config_setting_get_member(root, "systems");
	int rc;

	if (!workloads || !systems)
		return error_set(r->err, -EINVAL,
				 "%.120s: it has no %s; napier-spec(5) has an example", r->path,
				 workloads ? "systems" : "workloads");
	rc = workloads_merge(r, root, workloads);
	if (!rc)
		rc = workloads_take(r, workloads);
	if (!rc)
		rc = systems_take(r, systems);
	return rc ? rc : spec_check(r, root);
}

static int root_read(struct reader *r, config_setting_t *root)
{
	static const struct key keys[] = {
		{"title", take_text, SPEC(title), 0, SIZE(title)},
		{"source", take_text, SPEC(source), 0, SIZE(source)},
		{"question", take_text, SPEC(question), 0, SIZE(question)},
		{"topology", take_topology},
		{"given", given_take},
		{"original", take_original},
		{"quick", take_length, SPEC(quick)},
		{"full", take_length, SPEC(full)},
		{"defaults", take_nothing},
		{"systems", take_nothing},
		{"workloads", take_nothing},
		{"antagonists", take_nothing},
	};
	static const struct key later[] = {
		{"defaults", take_defaults},
		{"antagonists", antagonists_take},
	};
	int rc = reader_group(r, root, KEYS(keys), reading_of(r)->spec);

	/* These are scaled, for which the numbers of `original` have to be known. */
	for (size_t i = 0; i < 2 && !rc; i++) {
		config_setting_t *s = config_setting_get_member(root, later[i].name);

		if (s)
			rc = later[i].take(r, s, reading_of(r)->spec, &later[i]);
	}
	return rc ? rc : groups_read(r, root);
}

static void wrapped_note(const struct reading *reading)
{
	const struct cpuset *wrapped = &reading->wrapped;
	char text[160] = "";
	size_t used = 0;

	for (unsigned cpu = cpuset_next(wrapped, 0); cpu < CPU_MAX;
	     cpu = cpuset_next(wrapped, cpu + 1)) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u is %u",
					 used ? ", " : "", cpu, value_cpu(reading, cpu));
		if (used > sizeof(text) - 40) {
			snprintf(text + used, sizeof(text) - used, ", and so on");
			break;
		}
	}
	if (used)
		spec_note(reading->spec, "CPUs: number %s here, counted round: this machine has %u",
			  text, reading->cpus);
}

/* Results hold the text and its parts as JSON does, which is UTF-8. */
static int encoding_check(const struct reader *r, const char *text)
{
	json_t *whole = json_string(text);
	unsigned line = 0;

	if (whole) {
		json_decref(whole);
		return 0;
	}
	/* A character of several bytes has no newline in it. */
	for (const char *at = text; !whole && *at; line++) {
		size_t n = strcspn(at, "\n");

		whole = json_stringn(at, n);
		if (!whole)
			break;
		json_decref(whole);
		whole = NULL;
		at += n + (at[n] == '\n');
	}
	return error_set(r->err, -EILSEQ, "%.120s:%u: not UTF-8: iconv makes it so", r->path,
			 line + 1);
}

/* The first `sets` settings of --set are made. */
static int text_read(struct spec *spec, const struct cpuset *usable, const struct spec_setting *set,
		     unsigned sets, struct error *err)
{
	struct reading reading = {.spec = spec, .usable = usable, .cpus = cpuset_count(usable)};
	struct reader r = {.arg = &reading, .path = spec->path, .err = err};
	config_t config;
	int rc = encoding_check(&r, spec->text);

	if (!rc)
		rc = setup_text_check(&r, spec->text);
	if (rc)
		return rc;
	config_init(&config);
	if (!config_read_string(&config, spec->text))
		rc = error_set(err, -EINVAL, "%.120s:%d: %s%s", spec->path,
			       config_error_line(&config), config_error_text(&config),
			       strcmp(config_error_text(&config), "syntax error")
				       ? ""
				       : " (texts are in quotes, and ';' ends a key)");
	for (unsigned i = 0; i < sets && !rc; i++)
		rc = encoding_check(&r, set[i].value);
	for (unsigned i = 0; i < sets && !rc; i++)
		rc = tree_set(&config, &set[i], err);
	if (!rc)
		rc = root_read(&r, config_root_setting(&config));
	if (!rc)
		wrapped_note(&reading);
	config_destroy(&config);
	return rc;
}

/* "/a/b.conf" is called b. */
static void name_take(struct spec *spec, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(name);

	if (n > 5 && !strcmp(name + n - 5, ".conf"))
		n -= 5;
	snprintf(spec->name, sizeof(spec->name), "%.*s", n > 70 ? 70 : (int)n, name);
}

static int try(const char *path, const char *text, const struct cpuset *usable,
	       const struct spec_setting *set, unsigned sets, struct spec **out, struct error *err)
{
	struct spec *spec = calloc(1, sizeof(*spec));
	int rc;

	if (!spec || !(spec->text = strdup(text))) {
		free(spec);
		return error_set(err, -ENOMEM, "no memory");
	}
	snprintf(spec->path, sizeof(spec->path), "%s", path);
	name_take(spec, path);
	spec->quick = (struct spec_length){100 * NSEC_PER_MSEC, 500 * NSEC_PER_MSEC, 2};
	spec->full = (struct spec_length){NSEC_PER_SEC, 5 * NSEC_PER_SEC, 5};
	rc = text_read(spec, usable, set, sets, err);
	if (rc)
		spec_free(spec);
	else
		*out = spec;
	return rc;
}

/* What was set has no line; what it made wrong may have one. */
static int set_wrong(const struct spec_setting *set, const char *path, int rc, struct error *err)
{
	struct error inner = *err;
	char nowhere[160];
	size_t n = (size_t)snprintf(nowhere, sizeof(nowhere), "%.120s:0: ", path);
	const char *text = strncmp(inner.text, nowhere, n) ? inner.text : inner.text + n;

	return error_set(err, rc, "--set %.80s=%.60s: %.400s", set->key, set->value, text);
}

static int parse(const char *path, const char *text, const struct cpuset *usable,
		 const struct spec_setting *set, unsigned sets, struct spec **out,
		 struct error *err)
{
	struct spec *ignored;
	unsigned n = 0;
	int rc;

	rc = try(path, text, usable, set, sets, out, err);
	if (!rc || !sets)
		return rc;
	/* Which of them is it? */
	while (n < sets && !(rc = try(path, text, usable, set, n, &ignored, err))) {
		spec_free(ignored);
		n++;
	}
	if (n == sets)
		rc = try(path, text, usable, set, sets, &ignored, err);
	return n ? set_wrong(&set[n - 1], path, rc, err) : rc;
}

int spec_parse(const char *path, const char *text, const struct cpuset *usable,
	       const struct spec_setting *set, unsigned sets, struct spec **out, struct error *err)
{
	struct error own;
	int rc;

	err = err ? err : &own;
	rc = parse(path, text, usable, set, sets, out, err);
	/* It may quote what is wrong, and is one line all the same. */
	for (char *at = rc ? err->text : ""; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = '?';
	return rc;
}

void spec_free(struct spec *spec)
{
	if (spec)
		free(spec->text);
	free(spec);
}
