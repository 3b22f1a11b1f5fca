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

#define PATIENCE (20 * INT64_C(1000000000))

/*
 * One softirq that runs while clocks are read is in the thread's, but on its back only when it
 * ends: after netdev_budget_usecs (two ticks) and a poll at most.
 */
#define RUNNING_NS INT64_C(25000000)

static char rundir[] = "/tmp/napier-charge-XXXXXX";
static struct ends ends;
static struct napi_watch *watch;

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

static struct frames_generator *generator_start(void)
{
	struct frames_generator *g = NULL;
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
	assert_int_equal(frames_generator_start(&config, &g, &err), 0);
	return g;
}

static struct napi_watched near_read(void)
{
	struct napi_watched near;

	napi_watch_read(watch, ends.near, &near);
	return near;
}

/* Until so many packets more have been polled at the near interface. */
static void packets_await(uint64_t packets)
{
	uint64_t begin = near_read().packets;
	int64_t limit = clock_now() + PATIENCE;

	while (near_read().packets - begin < packets) {
		assert_true(clock_now() < limit);
		clock_sleep(1000000);
	}
}

static struct charge_config generator_charge(const struct frames_generator *g)
{
	return (struct charge_config){
		.watch = watch,
		.sender = frames_generator_thread(g),
		.interface = {ends.near},
	};
}

/* The sums are the same for each moment: what a thread used is its own, or on its back. */
static void softirq_is_not_the_senders(void **state)
{
	int64_t before[CHARGE_PARTIES], after[CHARGE_PARTIES], theirs[CHARGE_PARTIES];
	struct frames_generator *g = generator_start();
	struct charge_config config = generator_charge(g);
	struct napi_watched near;
	int64_t back, gross;

	(void)state;
	charge_read(&config, before);
	packets_await(20 * ENOUGH);
	charge_read(&config, after);
	back = napi_watch_back(watch, config.sender);
	near = near_read();
	gross = cputime_thread(config.sender);

	assert_true(near.packets >= near.polls && near.polls > 0);
	assert_true(back > 0);
	/* Its own, and that on its back, which is in its clock: each once. */
	assert_true(after[CHARGE_SENDER] > before[CHARGE_SENDER]);
	assert_true(after[CHARGE_SENDER] + back <= gross + RUNNING_NS);
	assert_true(back > 2 * RUNNING_NS); /* or that would have said nothing */
	/* All of softirq is at least what worked for one interface, or on one back. */
	assert_true(napi_watch_softirq(watch) >= back);
	assert_true(after[CHARGE_KERNEL] - before[CHARGE_KERNEL] > 0);
	assert_int_equal(after[CHARGE_RECEIVER], 0);
	assert_int_equal(after[CHARGE_ENGINE], 0);

	/* Of the near interface only: exactly what the watch says of it, once nothing comes. */
	frames_generator_stop(g);
	clock_sleep(50000000);
	config.sender = 0;
	config.theirs = true;
	charge_read(&config, theirs);
	assert_int_equal(theirs[CHARGE_KERNEL], near_read().softirq);
	assert_true(theirs[CHARGE_KERNEL] > 0);
	assert_true(theirs[CHARGE_KERNEL] <= napi_watch_softirq(watch));
}

/* Its polls are not in softirq, but they are the kernel's, and charged. */
static void napi_threads_are_the_kernels(void **state)
{
	int64_t before[CHARGE_PARTIES], after[CHARGE_PARTIES], softirq;
	struct frames_generator *g;
	struct charge_config config;
	struct error err = {0};

	(void)state;
	assert_int_equal(netlab_threaded_set(ends.lab, ends.near_ns, ends.near, true, &err), 0);
	g = generator_start();
	packets_await(ENOUGH); /* one that softirq had begun has ended */
	config = generator_charge(g);
	config.theirs = config.threaded = true;
	softirq = near_read().softirq;
	charge_read(&config, before);
	packets_await(ENOUGH);
	charge_read(&config, after);
	frames_generator_stop(g);
	assert_int_equal(near_read().softirq, softirq);
	assert_true(after[CHARGE_KERNEL] > before[CHARGE_KERNEL]);
	assert_int_equal(netlab_threaded_set(ends.lab, ends.near_ns, ends.near, false, &err), 0);
}

/* This process as the engine: the threads that are named are not it, nor is the caller. */
static void engine_is_the_rest(void **state)
{
	int64_t before[2][CHARGE_PARTIES], after[2][CHARGE_PARTIES], engine[2], sender;
	struct frames_generator *g = generator_start();
	struct charge_config config[2] = {generator_charge(g), generator_charge(g)};

	(void)state;
	config[0].engine = config[1].engine = getpid();
	config[1].sender = 0; /* so the generator's thread is the engine's, too */
	/* Many: between two clocks that are read one after the other some of them pass. */
	for (int i = 1; i >= 0; i--)
		charge_read(&config[i], before[i]);
	packets_await(10 * ENOUGH);
	for (int i = 0; i < 2; i++) {
		charge_read(&config[i], after[i]);
		engine[i] = after[i][CHARGE_ENGINE] - before[i][CHARGE_ENGINE];
	}
	frames_generator_stop(g);
	sender = after[0][CHARGE_SENDER] - before[0][CHARGE_SENDER];
	assert_true(sender > 0);
	assert_true(engine[0] < sender / 2);
	assert_true(engine[1] > sender / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(softirq_is_not_the_senders),
		cmocka_unit_test(napi_threads_are_the_kernels),
		cmocka_unit_test(engine_is_the_rest),
	};

	netns_require();
	return cmocka_run_group_tests(tests, setup, cleanup);
}
