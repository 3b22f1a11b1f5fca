/* SPDX-License-Identifier: BSD-2-Clause */
/* What is written down before something is made: in a directory that comes and goes. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <lab/record_file.h>

/* So often is it removed while a file is made: it is tried 100 times. */
enum { TIMES = 2000, REMOVALS = 80 };

static char directory[] = "/tmp/record_file.XXXXXX";
static _Atomic bool over;
static _Atomic int removals;

/* As engines do that end. One that is in step with who makes it would come in between each time. */
static void *removes(void *arg)
{
	(void)arg;
	while (!atomic_load(&over))
		if (atomic_load(&removals) <= 0 || rmdir(directory))
			usleep(20);
		else
			atomic_fetch_sub(&removals, 1);
	return NULL;
}

static void opened(void)
{
	struct error err = {0};
	char path[64];
	int fd;

	atomic_store(&removals, REMOVALS);
	fd = record_file_open(directory, "a-1", path, sizeof(path), &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(unlink(path), 0);
	close(fd);
}

static void the_directory_goes(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, removes, NULL), 0);
	for (int i = 0; i < TIMES; i++)
		opened();
	atomic_store(&over, true);
	pthread_join(thread, NULL);
}

static void the_directory_cannot_be(void **state)
{
	struct error err = {0};
	char path[64];

	(void)state;
	assert_int_equal(record_file_open("/proc/none", "a-1", path, sizeof(path), &err), -ENOENT);
	assert_non_null(strstr(err.text, "/proc/none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_directory_goes),
		cmocka_unit_test(the_directory_cannot_be),
	};

	if (!mkdtemp(directory))
		return 77;
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	rmdir(directory);
	return rc;
}
