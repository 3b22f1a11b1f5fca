/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the peers' programs are found: beside what was built, and as installed. */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lab/parts/peers.h>

static char top[] = "/tmp/napier-peers-XXXXXX";

static const char *const dirs[] = {"src", "src/cmd", "bench", "bin", "libexec", "libexec/napier"};
enum { DIRS = sizeof(dirs) / sizeof(*dirs) };

static const char *at(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	for (int i = 0; i < DIRS; i++)
		if (mkdir(at(dirs[i]), 0700))
			return -1;
	return 0;
}

static int cleanup(void **state)
{
	(void)state;
	for (int i = DIRS; i-- > 0;)
		rmdir(at(dirs[i]));
	return rmdir(top);
}

static void program_make(const char *name, mode_t mode)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	close(fd);
}

static bool found(const char *napier, const char *program)
{
	char path[PEERS_PATH_MAX], self[128];
	bool there;

	snprintf(self, sizeof(self), "%s", at(napier));
	there = peers_find(self, program, path);
	assert_int_equal(there, !access(path, X_OK));
	assert_non_null(strstr(path, program));
	return there;
}

static void built_and_installed_are_found(void **state)
{
	(void)state;
	assert_false(found("src/cmd/napier", "no_such_peer"));
	program_make("bench/no_such_peer", 0700);
	assert_true(found("src/cmd/napier", "no_such_peer"));
	assert_false(found("bin/napier", "no_such_peer"));
	program_make("libexec/napier/no_such_peer", 0700);
	assert_true(found("bin/napier", "no_such_peer"));
	unlink(at("libexec/napier/no_such_peer"));
	unlink(at("bench/no_such_peer"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(built_and_installed_are_found),
	};

	return cmocka_run_group_tests(tests, setup, cleanup);
}
