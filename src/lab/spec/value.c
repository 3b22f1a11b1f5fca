/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/spec/reading.h"

int value_time(struct reader *r, config_setting_t *s, int64_t min, int64_t max, int64_t *out)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	const char *text = config_setting_get_string(s), *name = config_setting_name(s);
	double n;
	char *end;

	/* No number but 0: whoever reads it would have to know what unit is meant. */
	if (!text && config_setting_type(s) == CONFIG_TYPE_INT && !config_setting_get_int(s))
		text = "0s";
	if (!text)
		return reader_wrong_type(r, s, "with its unit: \"500ms\", \"2s\", \"30us\"");
	n = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (end == text || strcmp(end, units[i].name) || !isfinite(n))
			continue;
		n *= units[i].ns;
		if (n < (double)min || n > (double)max)
			return reader_wrong(r, s, -ERANGE, "%s = \"%.40s\": out of range %gs..%gs",
					    name, text, (double)min / 1e9, (double)max / 1e9);
		*out = llround(n);
		return 0;
	}
	return reader_wrong(r, s, -EINVAL,
			    "%s = \"%.40s\": a time is a number with its unit, ns, us, ms or s: "
			    "\"500ms\"",
			    name, text);
}

/* "cpus", "cpus/N", "N*cpus"; the result may be out of every range. */
static bool count_parse(const char *text, unsigned cpus, long long *out)
{
	char *end;
	long long n;

	if (!strcmp(text, "cpus")) {
		*out = cpus;
		return true;
	}
	if (!strncmp(text, "cpus/", 5)) {
		n = strtoll(text + 5, &end, 10);
		if (end == text + 5 || *end || n < 1)
			return false;
		*out = cpus / n ? cpus / n : 1;
		return true;
	}
	n = strtoll(text, &end, 10);
	if (end == text || strcmp(end, "*cpus") || n < 1)
		return false;
	*out = n > INT32_MAX ? INT32_MAX : n * cpus;
	return true;
}

int value_count(struct reader *r, config_setting_t *s, unsigned min, unsigned max, unsigned *out)
{
	const struct key bounds = {config_setting_name(s), NULL, 0, min, max};
	const char *text = config_setting_get_string(s);
	long long n;
	int rc;

	if (!text) {
		rc = reader_integer(r, s, &bounds, &n);
		if (rc)
			return rc;
	} else if (!count_parse(text, reading_of(r)->cpus, &n)) {
		return reader_wrong(r, s, -EINVAL,
				    "%s = \"%.40s\": it is a number, or \"cpus\", \"cpus/2\", "
				    "\"10*cpus\"",
				    bounds.name, text);
	}
	/* What was scaled fits what there is room for. */
	*out = n > max ? max : n < min ? min : (unsigned)n;
	return 0;
}

/* The i-th of a set with more than i members. */
static unsigned cpu_nth(const struct cpuset *set, unsigned i)
{
	unsigned cpu = cpuset_next(set, 0);

	while (i--)
		cpu = cpuset_next(set, cpu + 1);
	return cpu;
}

unsigned value_cpu(const struct reading *reading, unsigned number)
{
	return cpu_nth(reading->usable, number % reading->cpus);
}

static void cpus_range(const struct reading *reading, unsigned from, unsigned to,
		       struct cpuset *out)
{
	for (unsigned i = from; i < to; i++)
		cpuset_add(out, cpu_nth(reading->usable, i));
}

/* With a single CPU both halves are that one. */
static bool cpus_by_name(const struct reading *reading, const char *text, struct cpuset *out)
{
	unsigned half = reading->cpus > 1 ? reading->cpus / 2 : 1;

	*out = (struct cpuset){0};
	if (!strcmp(text, "all"))
		cpus_range(reading, 0, reading->cpus, out);
	else if (!strcmp(text, "lower"))
		cpus_range(reading, 0, half, out);
	else if (!strcmp(text, "upper"))
		cpus_range(reading, reading->cpus > 1 ? half : 0, reading->cpus, out);
	else if (!strcmp(text, "last"))
		cpus_range(reading, reading->cpus - 1, reading->cpus, out);
	else
		return false;
	return true;
}

int value_cpus(struct reader *r, config_setting_t *s, struct cpuset *out)
{
	struct reading *reading = reading_of(r);
	struct cpuset asked;
	char text[128];
	int rc = reader_scalar(r, s, text, sizeof(text));

	if (rc || cpus_by_name(reading, text, out))
		return rc;
	rc = cpuset_parse(text, &asked);
	if (rc || cpuset_empty(&asked))
		return reader_wrong(r, s, rc ? rc : -EINVAL,
				    "%s = \"%.40s\": CPUs are \"0-2,5\" (below %d), \"all\", "
				    "\"lower\" or \"upper\" (the halves), \"last\"",
				    config_setting_name(s), text, CPU_MAX);
	for (unsigned cpu = cpuset_next(&asked, 0); cpu < CPU_MAX;
	     cpu = cpuset_next(&asked, cpu + 1)) {
		cpuset_add(out, value_cpu(reading, cpu));
		if (cpu >= reading->cpus)
			cpuset_add(&reading->wrapped, cpu);
	}
	return 0;
}

int value_text(struct reader *r, config_setting_t *s, char *out, size_t size)
{
	const char *text;
	int rc = reader_text(r, s, &text);

	if (rc)
		return rc;
	if (strlen(text) >= size)
		return reader_wrong(r, s, -EINVAL, "%s is too long: %zu bytes at most",
				    config_setting_name(s), size - 1);
	/* It stands in tables and in one line of a report. */
	for (const char *at = text; *at; at++)
		if (iscntrl((unsigned char)*at))
			return reader_wrong(r, s, -EINVAL,
					    "%s: no control characters (a long text is written "
					    "\"so \" \"and so\")",
					    config_setting_name(s));
	snprintf(out, size, "%s", text);
	return 0;
}

int value_name(struct reader *r, config_setting_t *s, const char *const *names, unsigned n,
	       unsigned *out)
{
	char list[256] = "";
	size_t used = 0;
	const char *text;
	int rc = reader_text(r, s, &text);

	if (rc)
		return rc;
	for (unsigned i = 0; i < n; i++) {
		if (!strcmp(text, names[i])) {
			*out = i;
			return 0;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 names[i]);
	}
	return reader_wrong(r, s, -EINVAL, "unknown %s \"%.40s\": it is one of %s",
			    config_setting_name(s), text, list);
}

int take_time(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	return value_time(r, s, key->min, key->max, (int64_t *)((char *)object + key->offset));
}

int take_unsigned(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	long long n;
	int rc = reader_integer(r, s, key, &n);

	if (!rc)
		*(unsigned *)((char *)object + key->offset) = (unsigned)n;
	return rc;
}

int take_count(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	return value_count(r, s, (unsigned)key->min, (unsigned)key->max,
			   (unsigned *)((char *)object + key->offset));
}

int take_cpus(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct cpuset *out = (struct cpuset *)((char *)object + key->offset);

	*out = (struct cpuset){0};
	return value_cpus(r, s, out);
}

int take_text(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	return value_text(r, s, (char *)object + key->offset, (size_t)key->max);
}

int take_nothing(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)r;
	(void)s;
	(void)object;
	(void)key;
	return 0;
}
