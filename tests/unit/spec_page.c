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
static char *keys_list(const char *format, const char *what)
{
	static struct error err;
	struct cpuset cpus = cpus_make("0-3");
	char text[512], *keys;
	struct spec *spec;

	snprintf(text, sizeof(text), format, "nosuchkey = 1;");
	assert_true(spec_parse("x.conf", text, &cpus, NULL, 0, &spec, &err) < 0);
	keys = strstr(err.text, "the keys are ");
	if (!keys)
		fail_msg("%s: %s", what, err.text);
	return keys + strlen("the keys are ");
}

static void all_keys(const char *format, const char *what)
{
	char *key, *rest;
	unsigned n = 0;

	for (key = strtok_r(keys_list(format, what), ", ", &rest); key;
	     key = strtok_r(NULL, ", ", &rest), n++)
		if (!page_names(key))
			fail_msg("napier-spec(5) does not name %s, a key of %s", key, what);
	assert_true(n);
}

#define WORKLOAD SYSTEMS "workloads = { a = { kind = \"rr\"; %s }; };"

/* What results call the parameters of a workload, but for the unit of a time. */
static void parameters_are_keys(void **state)
{
	const struct load_config config = {0};
	char *list = keys_list(WORKLOAD, "a workload");
	json_t *parameters = load_config_json(&config), *value;
	const char *key;
	char name[64];

	(void)state;
	assert_true(json_object_size(parameters) > 20);
	json_object_foreach(parameters, key, value)
	{
		size_t n = strlen(key);
		const char *at;

		n -= n > 3 && !strcmp(key + n - 3, "_ns") ? 3 : 0;
		snprintf(name, sizeof(name), "%.*s", (int)n, key);
		for (at = strstr(list, name); at; at = strstr(at + 1, name))
			if ((at == list || at[-1] == ' ') && (at[n] == ',' || !at[n]))
				break;
		if (!at)
			fail_msg("a result's parameter %s is no key of a workload: %s", key, list);
	}
	json_decref(parameters);
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
	all_keys(WORKLOAD, "a workload");
	all_keys(SYSTEMS "workloads = { a = { kind = \"rr\"; original = { %s }; }; };", "original");
	all_keys(WORKLOADS SYSTEMS "antagonists = { h = { kind = \"hog\"; %s }; };", "a hog");
	all_keys(WORKLOADS SYSTEMS "antagonists = { a = { kind = \"awake\"; %s }; };",
		 "what keeps awake");
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
		cmocka_unit_test(parameters_are_keys),
		cmocka_unit_test(names_all_keys),
		cmocka_unit_test(example_is_right),
	};

	return cmocka_run_group_tests(tests, page_read, NULL);
}
