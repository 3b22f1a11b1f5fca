/* SPDX-License-Identifier: BSD-2-Clause */
/* Specifications: what they say, how they are made to fit, and what is said of a wrong one. */
#include "test.h"

#include <unistd.h>

#include "lab/spec/spec.h"

#define WORKLOADS "workloads = { a = { kind = \"rr\"; }; };\n"
#define SYSTEMS "systems = { k = { }; };\n"

static struct cpuset cpus_make(const char *text)
{
	struct cpuset set = {0};

	assert_int_equal(cpuset_parse(text, &set), 0);
	return set;
}

static struct spec *parse(const char *text, const char *usable)
{
	struct cpuset cpus = cpus_make(usable);
	struct error err = {0};
	struct spec *spec;

	if (spec_parse("x.conf", text, &cpus, NULL, 0, &spec, &err))
		fail_msg("%s", err.text);
	return spec;
}

static struct spec *parse_set(const char *text, const char *key, const char *value)
{
	const struct spec_setting set = {key, value};
	struct cpuset cpus = cpus_make("0-3");
	struct error err = {0};
	struct spec *spec;

	if (spec_parse("x.conf", text, &cpus, &set, 1, &spec, &err))
		fail_msg("%s", err.text);
	return spec;
}

static void wrong(const char *text, const char *begins, const char *has)
{
	struct cpuset cpus = cpus_make("0-3");
	struct error err = {0};
	struct spec *spec;
	int rc = spec_parse("x.conf", text, &cpus, NULL, 0, &spec, &err);

	if (!rc)
		spec_free(spec);
	if (rc >= 0 || strncmp(err.text, begins, strlen(begins)) || !strstr(err.text, has) ||
	    strchr(err.text, '\n'))
		fail_msg("%d: \"%s\" is not \"%s…%s\", for:\n%s", rc, err.text, begins, has, text);
}

static void wrong_set(const char *text, const char *key, const char *value, const char *has)
{
	const struct spec_setting set[] = {{"title", "a title"}, {key, value}};
	struct cpuset cpus = cpus_make("0-3");
	struct error err = {0};
	char begins[160];
	struct spec *spec;
	int rc = spec_parse("x.conf", text, &cpus, set, 2, &spec, &err);

	if (!rc)
		spec_free(spec);
	snprintf(begins, sizeof(begins), "--set %s=%s: ", key, value);
	if (rc >= 0 || strncmp(err.text, begins, strlen(begins)) || !strstr(err.text, has))
		fail_msg("%d: \"%s\" is not \"%s…%s\"", rc, err.text, begins, has);
}

static void the_least(void **state)
{
	struct spec *spec = parse(WORKLOADS SYSTEMS, "0-3");

	(void)state;
	assert_string_equal(spec->name, "x");
	assert_string_equal(spec->path, "x.conf");
	assert_string_equal(spec->text, WORKLOADS SYSTEMS);
	assert_int_equal(spec->topology, SPEC_ENDS);
	assert_int_equal(spec->systems, 1);
	assert_string_equal(spec->system[0].key, "k");
	assert_string_equal(spec->system[0].name, "k");
	assert_int_equal(spec->system[0].line, 2);
	assert_int_equal(spec->system[0].dut, SPEC_KERNEL);
	assert_int_equal(spec->system[0].handler, SPEC_SOCKET);
	assert_int_equal(spec->system[0].kernel_poller, SPEC_KERNEL_SOFTIRQ);
	assert_int_equal(spec->workloads, 1);
	assert_int_equal(spec->workload[0].load.kind, LOAD_RR);
	assert_int_equal(spec->workload[0].load.protocol, LOAD_TCP);
	assert_int_equal(spec->workload[0].load.flows, 1);
	assert_int_equal(spec->workload[0].load.request_size, 1);
	assert_true(spec->quick.duration > 0 && spec->quick.repeats > 0);
	assert_true(spec->full.duration > spec->quick.duration);
	assert_int_equal(spec->scaled, 0);
	spec_free(spec);
	spec_free(NULL);
}

static void errors(void **state)
{
	(void)state;
	wrong("", "x.conf: ", "it has no workloads");
	wrong(WORKLOADS, "x.conf: ", "it has no systems");
	wrong(WORKLOADS SYSTEMS "sytems = 1;\n", "x.conf:3: unknown key \"sytems\"", "title");
	wrong("a = ;", "x.conf:1: syntax error", "';' ends a key");
}

static void settings(void **state)
{
	struct spec *spec = parse_set(WORKLOADS SYSTEMS, "quick.duration", "250ms");

	(void)state;
	assert_int_equal(spec->quick.duration, 250000000);
	spec_free(spec);
	wrong_set(WORKLOADS SYSTEMS, "systems.z.queues", "2", "there is no \"z\" in systems: k");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least),
		cmocka_unit_test(errors),
		cmocka_unit_test(settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
