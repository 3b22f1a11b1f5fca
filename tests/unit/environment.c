/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <stdbool.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lab/measure/environment.h>
#include <lab/measure/environment_parts.h>
#include <lab/measure/sysfile.h>

static json_t *environment;

static int setup(void **state)
{
	(void)state;
	environment = environment_read();
	return environment ? 0 : -1;
}

static int cleanup(void **state)
{
	(void)state;
	json_decref(environment);
	return 0;
}

static const json_t *get(const char *one, const char *two)
{
	const json_t *value = json_object_get(environment, one);

	return two ? json_object_get(value, two) : value;
}

static const char *text(const char *one, const char *two)
{
	const char *value = json_string_value(get(one, two));

	assert_non_null(value);
	return value;
}

/* Null, or of this type. */
static void assert_may_be(const json_t *value, json_type type)
{
	assert_non_null(value);
	if (!json_is_null(value))
		assert_int_equal(json_typeof(value), type);
}

static void every_key_is_there(void **state)
{
	static const struct {
		const char *key;
		json_type type;
	} keys[] = {
		{"kernel", JSON_OBJECT},
		{"boot", JSON_STRING},
		{"os", JSON_STRING},
		{"cpu", JSON_OBJECT},
		{"numa", JSON_OBJECT},
		{"isolated", JSON_OBJECT},
		{"allowed", JSON_STRING},
		{"quota", JSON_STRING},
		{"mitigations", JSON_OBJECT},
		{"clock", JSON_OBJECT},
		{"hypervisor", JSON_STRING},
		{"memory", JSON_OBJECT},
		{"sysctl", JSON_OBJECT},
		{"interrupts", JSON_ARRAY},
		{"interrupts_n", JSON_INTEGER},
		{"load", JSON_ARRAY},
		{"interfaces", JSON_ARRAY},
		{"interfaces_n", JSON_INTEGER},
		{"processes", JSON_ARRAY},
		{"versions", JSON_OBJECT},
		{"time", JSON_STRING},
		{"uptime_s", JSON_REAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		assert_may_be(get(keys[i].key, NULL), keys[i].type);
	assert_int_equal(json_object_size(environment), sizeof(keys) / sizeof(*keys));
}

static void it_is_this_machine(void **state)
{
	struct utsname name;

	(void)state;
	uname(&name);
	assert_string_equal(text("kernel", "release"), name.release);
	assert_int_equal(json_integer_value(get("cpu", "online_n")), sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(json_integer_value(get("memory", "total_bytes")) > 1 << 20);
	assert_true(json_integer_value(get("memory", "available_bytes")) <=
		    json_integer_value(get("memory", "total_bytes")));
	assert_true(json_real_value(get("uptime_s", NULL)) > 0);
	assert_string_equal(text("versions", "napier"), NAPIER_VERSION);
	assert_string_equal(text("versions", "build"), "unknown"); /* this is not the program */
	assert_string_equal(text("versions", "jansson"), jansson_version_str());
	assert_true(strlen(text("time", NULL)) == strlen("2026-01-01T00:00:00Z"));
	/* The kernel has these since it has NAPI. */
	assert_true(atoi(text("sysctl", "net.core.netdev_budget")) > 0);
	assert_true(atoi(text("sysctl", "net.core.dev_weight")) > 0);
}

static void threads_per_core_are_few(void **state)
{
	const json_t *n = get("cpu", "threads_per_core");

	(void)state;
	assert_may_be(n, JSON_INTEGER);
	if (json_is_integer(n))
		assert_true(json_integer_value(n) >= 1 && json_integer_value(n) <= 8);
}

static void interfaces_have_their_maps(void **state)
{
	const json_t *interfaces = get("interfaces", NULL), *one;
	bool loopback = false;
	size_t i;

	(void)state;
	assert_true(json_array_size(interfaces) <= ENVIRONMENT_LIST_MAX);
	assert_true((json_int_t)json_array_size(interfaces) <=
		    json_integer_value(get("interfaces_n", NULL)));
	json_array_foreach(interfaces, i, one)
	{
		if (strcmp(json_string_value(json_object_get(one, "name")), "lo"))
			continue;
		loopback = true;
		assert_true(json_integer_value(json_object_get(one, "mtu")) > 0);
		assert_int_equal(json_array_size(json_object_get(one, "rps")), 1);
	}
	if (access("/sys/class/net/lo", F_OK) == 0 && json_array_size(interfaces) < 64)
		assert_true(loopback);
}

/* Nobody's environment or arguments; and it is not long. */
static void nothing_private_is_in_it(void **state)
{
	char *dump;

	(void)state;
	setenv("NAPIER_TEST_SECRET", "do-not-tell-4711", 1);
	json_decref(environment);
	environment = environment_read();
	dump = json_dumps(environment, JSON_COMPACT);
	assert_non_null(dump);
	assert_null(strstr(dump, "do-not-tell-4711"));
	/* What the first program was called with is behind that in the kernel's parameters. */
	if (json_is_string(get("boot", NULL)))
		assert_null(strstr(text("boot", NULL), " -- "));
	assert_true(strlen(dump) < 256 * 1024);
	free(dump);
}

/* Sees who works beside it. */
static void busy_ones_are_named(void **state)
{
	pid_t child = fork();
	const json_t *one;
	bool found = false;
	json_t *all;

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "a busy one");
		for (;;)
			;
	}
	/* On a busy machine it may have to wait for a CPU, and others may be busier for a while. */
	for (unsigned tries = 0; tries < 600 && !found; tries++) {
		size_t i;

		all = environment_processes();
		json_array_foreach(all, i, one)
		{
			const char *name = json_string_value(json_object_get(one, "name"));
			double cpus = json_real_value(json_object_get(one, "cpus"));

			assert_true(cpus > 0 && cpus <= (double)sysconf(_SC_NPROCESSORS_ONLN) + 1);
			found |= name && !strcmp(name, "a busy one");
		}
		json_decref(all);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(found);
}

static void small_files(void **state)
{
	char path[] = "/tmp/napier-sysfile-XXXXXX", name[2][SYSFILE_NAME_MAX], value[SYSFILE_MAX];
	int fd = mkstemp(path);
	json_t *o;

	(void)state;
	assert_true(fd >= 0);
	assert_true(write(fd, "one two\nName : \"a b\"\n-17\n", 25) == 25);
	assert_true(sysfile_read(value, "%s", path));
	assert_string_equal(value, "one two\nName : \"a b\"\n-17");
	assert_true(sysfile_field(path, "Name", value, sizeof(value)));
	assert_string_equal(value, "a b");
	assert_false(sysfile_field(path, "name", value, sizeof(value)));
	o = sysfile_number("%s", path);
	assert_true(json_is_null(o));
	assert_int_equal(ftruncate(fd, 0), 0);
	lseek(fd, 0, SEEK_SET);
	o = sysfile_text("%s", path);
	assert_string_equal(json_string_value(o), "");
	json_decref(o);
	assert_true(write(fd, "-17\xff\n", 5) == 5);
	o = sysfile_number("%s", path);
	assert_int_equal(json_integer_value(o), -17);
	json_decref(o);
	o = sysfile_text("%s", path);
	assert_string_equal(json_string_value(o), "-17");
	json_decref(o);
	close(fd);
	unlink(path);

	o = sysfile_text("/nowhere/%d", 1);
	assert_true(json_is_null(o));
	assert_int_equal(sysfile_names("/nowhere", "", name, 2), 0);
	assert_true(sysfile_names("/proc/self", "", name, 2) > 2);
	assert_true(strcmp(name[0], name[1]) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_there),
		cmocka_unit_test(it_is_this_machine),
		cmocka_unit_test(threads_per_core_are_few),
		cmocka_unit_test(interfaces_have_their_maps),
		cmocka_unit_test(nothing_private_is_in_it),
		cmocka_unit_test(busy_ones_are_named),
		cmocka_unit_test(small_files),
	};

	return cmocka_run_group_tests(tests, setup, cleanup);
}
