/* SPDX-License-Identifier: BSD-2-Clause */
/* napier-spec(5) names every key that there is, and its example is a specification. */
#include "test.h"

#include "spec_text.h"

enum { PAGE_MAX = 64 << 10 };

static char page[PAGE_MAX];

static int page_read(void **state)
{
	FILE *file = fopen(SPEC_5, "r");
	size_t n;

	(void)state;
	assert_non_null(file);
	n = fread(page, 1, sizeof(page) - 1, file);
	fclose(file);
	assert_true(n && n < sizeof(page) - 1);
	return 0;
}

/* As a word of its own behind a macro that marks keys. */
static bool page_names(const char *key)
{
	size_t n = strlen(key);

	for (const char *at = page; (at = strstr(at, key)); at += n) {
		const char *line = at;

		while (line > page && line[-1] != '\n')
			line--;
		if (*line == '.' && strstr(line, "Cm ") && strstr(line, "Cm ") < at &&
		    at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n'))
			return true;
	}
	return false;
}

/* A key that there is not has an error that lists those that there are. */
static void all_keys(const char *format, const char *what)
{
	struct cpuset cpus = cpus_make("0-3");
	struct error err = {0};
	char text[512], *key, *rest;
	struct spec *spec;
	unsigned n = 0;

	snprintf(text, sizeof(text), format, "nosuchkey = 1;");
	assert_true(spec_parse("x.conf", text, &cpus, NULL, 0, &spec, &err) < 0);
	key = strstr(err.text, "the keys are ");
	if (!key)
		fail_msg("%s: %s", what, err.text);
	for (key = strtok_r(key + strlen("the keys are "), ", ", &rest); key;
	     key = strtok_r(NULL, ", ", &rest), n++)
		if (!page_names(key))
			fail_msg("napier-spec(5) does not name %s, a key of %s", key, what);
	assert_true(n);
}

static void names_all_keys(void **state)
{
	(void)state;
	all_keys(WORKLOADS SYSTEMS "%s", "the file");
	all_keys(WORKLOADS SYSTEMS "quick = { %s };", "a length");
	all_keys(WORKLOADS SYSTEMS "given = { %s };", "given");
	all_keys(WORKLOADS SYSTEMS "given = { client = { %s }; };", "an end");
	all_keys(WORKLOADS SYSTEMS "original = { %s };", "original");
	all_keys(WORKLOADS SYSTEMS "defaults = { %s };", "defaults");
	all_keys(WORKLOADS "systems = { k = { %s }; };", "a system");
	all_keys(WORKLOADS "systems = { k = { place = { %s }; }; };", "place");
	all_keys(WORKLOADS "systems = { k = { place = { client = { %s }; }; }; };", "a place");
	all_keys(SYSTEMS "workloads = { a = { kind = \"rr\"; %s }; };", "a workload");
	all_keys(SYSTEMS "workloads = { a = { kind = \"rr\"; original = { %s }; }; };", "original");
	all_keys(WORKLOADS SYSTEMS "antagonists = { h = { kind = \"hog\"; %s }; };", "a hog");
	all_keys(WORKLOADS SYSTEMS "antagonists = { b = { kind = \"background\"; %s\n"
				   "load = { kind = \"rr\"; }; }; };",
		 "background traffic");
}

static void example_is_right(void **state)
{
	char *begin = strstr(page, ".Sh EXAMPLES"), *end;
	struct cpuset cpus = cpus_make("0-7");
	struct error err = {0};
	struct spec *spec;

	(void)state;
	assert_non_null(begin);
	begin = strstr(begin, ".Bd -literal");
	assert_non_null(begin);
	begin = strchr(begin, '\n') + 1;
	end = strstr(begin, ".Ed");
	assert_non_null(end);
	*end = '\0';
	if (spec_parse("example.conf", begin, &cpus, NULL, 0, &spec, &err))
		fail_msg("%s", err.text);
	assert_int_equal(spec->systems, 4);
	assert_int_equal(spec->workloads, 2);
	assert_int_equal(spec->antagonists, 1);
	assert_int_equal(spec->scaled, 0);
	spec_free(spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_all_keys),
		cmocka_unit_test(example_is_right),
	};

	return cmocka_run_group_tests(tests, page_read, NULL);
}
