/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Case 22: CPU time is charged to who worked. Softirq on the back of a generator that sends to a
 * veth is the kernel's share of what is received there, not the generator's; a NAPI thread's time
 * is too; and what neither sends nor receives is charged nothing but its own.
 */
#include "netns.h"
#include "test.h"

#include <unistd.h>

#include <lab/parts/charge.h>
#include <lab/clock.h>
#include <lab/cputime.h>
#include <lab/ends.h>
#include <lab/parts/frames.h>

enum { FRAME = 60, ENOUGH = 20000 };

#define PATIENCE (60 * INT64_C(1000000000)) /* only against hanging */
#define BACK_NS INT64_C(1000000)

static char rundir[] = "/tmp/napier-charge-XXXXXX";
static struct ends ends;
static struct napi_watch *watch;
static struct frames_generator *generator;

static int setup(void **state)
{
	const char *watched[] = {ends.near, ends.far, ""};
	struct error err = {0};

	(void)state;
	if (!mkdtemp(rundir))
		return -1;
	assert_int_equal(ends_open(rundir, &ends, &err), 0);
	assert_int_equal(napi_watch_open(watched, 3, &watch, &err), 0);
	assert_string_equal(err.text, "");
	return 0;
}

static int cleanup(void **state)
{
	(void)state;
	napi_watch_close(watch);
	ends_close(&ends);
	return rmdir(rundir);
}

static void generator_start(void)
{
	uint8_t frame[FRAME];
	struct frames_config config = {
		.netns = ends.lab->namespace[ends.far_ns].path,
		.interface = ends.far,
		.frame = frame,
		.length = FRAME,
		.cpu = -1,
	};
	struct error err = {0};

	frames_plain(frame, ends_near_mac, ends_far_mac, FRAME);
	assert_int_equal(frames_generator_start(&config, &generator, &err), 0);
}

static void generator_stop(void)
{
	if (generator)
		frames_generator_stop(generator);
	generator = NULL;
}

/* Also of a test that has failed. */
static int teardown(void **state)
{
	struct error err = {0};

	(void)state;
	generator_stop();
	return netlab_threaded_set(ends.lab, ends.near_ns, ends.near, false, &err);
}

static struct napi_watched near_read(void)
{
	struct napi_watched near;

	napi_watch_read(watch, ends.near, &near);
	return near;
}

/* What is waited for is not there yet: fails the test when it has not come by then. */
static void look_again(int64_t limit)
{
	assert_true(clock_now() < limit);
	clock_sleep(1000000);
}

/* Until so many packets more have been polled at the near interface. */
static void packets_await(uint64_t packets)
{
	uint64_t begin = near_read().packets;
	int64_t limit = clock_now() + PATIENCE;

	while (near_read().packets - begin < packets)
		look_again(limit);
}

static struct charge_config generator_charge(void)
{
	return (struct charge_config){
		.watch = watch,
		.sender = frames_generator_thread(generator),
		.interface = {ends.near},
	};
}

/* Of a thread: softirq on its back, and its clock, that in it. */
struct moment {
	int64_t back, gross;
};

static struct moment moment_read(pid_t thread)
{
	return (struct moment){
		.back = napi_watch_back(watch, thread),
		.gross = cputime_thread(thread),
	};
}

/*
 * Its own, and that on its back, which is in its clock: each once. Clocks are read one after the
 * other, and anything may happen in between; but each of them only grows, so what is charged lies
 * between what those say that were read before and afterwards.
 */
static void sender_check(const struct charge_config *config, int64_t charged[CHARGE_PARTIES])
{
	struct moment early = moment_read(config->sender), late;

	charge_read(config, charged);
	late = moment_read(config->sender);
	assert_true(early.back >= BACK_NS); /* or the next two would say nothing */
	assert_true(charged[CHARGE_SENDER] >= early.gross - late.back);
	assert_true(charged[CHARGE_SENDER] <= late.gross - early.back);
}

static void softirq_is_not_the_senders(void **state)
{
	int64_t before[CHARGE_PARTIES], after[CHARGE_PARTIES], theirs[CHARGE_PARTIES];
	int64_t limit = clock_now() + PATIENCE, back;
	struct charge_config config;
	struct napi_watched near;

	(void)state;
	generator_start();
	config = generator_charge();
	while (napi_watch_back(watch, config.sender) < BACK_NS)
		look_again(limit);
	/*
	 * A softirq that runs while clocks are read is in its thread's clock only: that a window is
	 * long enough to see over it is waited for. A new one each time, since softirq is counted
	 * by the clock on the wall, and a CPU that a neighbour takes away meanwhile counts, too.
	 */
	do {
		look_again(limit);
		sender_check(&config, before);
		packets_await(ENOUGH);
		sender_check(&config, after);
	} while (after[CHARGE_SENDER] <= before[CHARGE_SENDER] ||
		 after[CHARGE_KERNEL] <= before[CHARGE_KERNEL]);
	assert_int_equal(after[CHARGE_RECEIVER], 0);
	assert_int_equal(after[CHARGE_ENGINE], 0);
	/* All of softirq is at least what worked on one back. */
	back = napi_watch_back(watch, config.sender);
	assert_true(napi_watch_softirq(watch) >= back);

	/* Of the near interface only: exactly what the watch says of it, once nothing comes. */
	generator_stop();
	config.sender = 0;
	config.theirs = true;
	do {
		look_again(limit);
		near = near_read();
		charge_read(&config, theirs);
	} while (near_read().softirq != near.softirq);
	assert_int_equal(theirs[CHARGE_KERNEL], near.softirq);
	assert_true(near.softirq > 0);
	assert_true(near.packets >= near.polls && near.polls > 0);
	/* A poll is counted when it ends, all of softirq when that does. */
	while (napi_watch_softirq(watch) < theirs[CHARGE_KERNEL])
		look_again(limit);
}

/* Its polls are not in softirq, but they are the kernel's, and charged. */
static void napi_threads_are_the_kernels(void **state)
{
	int64_t before[CHARGE_PARTIES], after[CHARGE_PARTIES], softirq;
	int64_t limit = clock_now() + PATIENCE;
	struct charge_config config;
	struct error err = {0};

	(void)state;
	assert_int_equal(netlab_threaded_set(ends.lab, ends.near_ns, ends.near, true, &err), 0);
	generator_start();
	config = generator_charge();
	config.theirs = config.threaded = true;
	/* Softirq goes on with a NAPI that it had; once others have polled, it has it no more. */
	do {
		look_again(limit);
		softirq = near_read().softirq;
		packets_await(ENOUGH);
	} while (near_read().softirq != softirq);
	charge_read(&config, before);
	do {
		look_again(limit);
		packets_await(ENOUGH);
		charge_read(&config, after);
	} while (after[CHARGE_KERNEL] <= before[CHARGE_KERNEL]);
	assert_int_equal(near_read().softirq, softirq);
}

/*
 * This process as the engine: the threads that are named are not it, nor is the caller. Between two
 * clocks that are read one after the other the generator works, and the reader may have to wait:
 * how much that is, is no more in a window that is longer, while what is asked about grows. A new
 * one each time, as above.
 */
static void engine_is_the_rest(void **state)
{
	int64_t before[2][CHARGE_PARTIES], after[2][CHARGE_PARTIES], engine[2], sender;
	int64_t limit = clock_now() + PATIENCE;
	struct charge_config config[2];
	uint64_t packets = ENOUGH;

	(void)state;
	generator_start();
	config[0] = config[1] = generator_charge();
	config[0].engine = config[1].engine = getpid();
	config[1].sender = 0; /* so the generator's thread is the engine's, too */
	do {
		look_again(limit);
		for (int i = 1; i >= 0; i--)
			charge_read(&config[i], before[i]);
		packets_await(packets);
		for (int i = 0; i < 2; i++) {
			charge_read(&config[i], after[i]);
			engine[i] = after[i][CHARGE_ENGINE] - before[i][CHARGE_ENGINE];
		}
		sender = after[0][CHARGE_SENDER] - before[0][CHARGE_SENDER];
		packets += packets / 2;
	} while (sender <= 0 || engine[0] >= sender / 2 || engine[1] <= sender / 2);
}

#define CHARGE_TEST(test) cmocka_unit_test_teardown(test, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CHARGE_TEST(softirq_is_not_the_senders),
		CHARGE_TEST(napi_threads_are_the_kernels),
		CHARGE_TEST(engine_is_the_rest),
	};

	netns_require();
	return cmocka_run_group_tests(tests, setup, cleanup);
}
