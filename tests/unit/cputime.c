/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <lab/cputime.h>

/* What a child burns by its own clock, ns. Well above the resolution of 10 ms. */
enum { BURN = 200000000 };

static void burn(void)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec == 0 && t.tv_nsec < BURN);
}

/* Burns, or has a child of its own that does and ends; says so, and waits to be let go. */
static pid_t child_start(int done, int finish, bool grandchild)
{
	pid_t pid = fork();
	char byte = 'x';

	if (pid)
		return pid;
	if (!grandchild) {
		burn();
	} else if (fork() == 0) {
		burn();
		_exit(0);
	} else {
		wait(NULL);
	}
	if (write(done, &byte, 1) != 1 || read(finish, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

static void span_of(bool ours, bool grandchild, struct cputime_span *out)
{
	int done[2], finish[2], status;
	pid_t processes[2] = {getpid(), 0};
	struct cputime begin;
	char byte;

	assert_int_equal(pipe(done), 0);
	assert_int_equal(pipe(finish), 0);
	assert_int_equal(cputime_begin(&begin, processes, 1), 0);
	processes[1] = child_start(done[1], finish[0], grandchild);
	assert_int_equal(read(done[0], &byte, 1), 1);
	assert_int_equal(cputime_end(&begin, processes, ours ? 2 : 1, out), 0);
	assert_int_equal(write(finish[1], &byte, 1), 1);
	waitpid(processes[1], &status, 0);
	for (int i = 0; i < 2; i++) {
		close(done[i]);
		close(finish[i]);
	}
}

static void our_work_is_cost(void **state)
{
	struct cputime_span span;

	(void)state;
	span_of(true, false, &span);
	assert_true(span.duration >= BURN);
	assert_true(span.busy >= BURN / 2);
	assert_int_equal(span.cost, span.busy > span.others ? span.busy - span.others : 0);
}

/* Also the work of those that began and ended in between. */
static void others_work_is_known(void **state)
{
	struct cputime_span span;

	(void)state;
	span_of(false, false, &span);
	assert_true(span.others >= BURN - 20000000);
	span_of(false, true, &span);
	assert_true(span.others >= BURN - 20000000);
}

static void a_process_by_its_id(void **state)
{
	int64_t before = cputime_process(getpid()), used;

	(void)state;
	burn();
	used = cputime_process(getpid());
	assert_true(used >= BURN);
	assert_true(used >= before);
	assert_int_equal(cputime_process(999999999), 0);
}

static void threads_by_name(void **state)
{
	pid_t pids[64];
	bool found = false;
	unsigned n;

	(void)state;
	assert_int_equal(cputime_threads_find("no such thread", pids, 64), 0);
	n = cputime_threads_find("unit-cpu", pids, 64);
	for (unsigned i = 0; i < n; i++)
		found |= pids[i] == getpid();
	assert_true(found);
	assert_int_equal(cputime_threads_find("", pids, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_work_is_cost),
		cmocka_unit_test(others_work_is_known),
		cmocka_unit_test(a_process_by_its_id),
		cmocka_unit_test(threads_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
