/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random scenarios: a fixed set of seeds, and fresh ones, which are printed. A seed that fails is
 * shown by `napier sim --seed N --trace`.
 */
#include "../unit/test.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <sim/crew.h>

#define SEEDS 2000
#define FRESH 50

/* A sanitizer makes ten of one. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWER 10
#else
#define SLOWER 1
#endif

static void run(uint64_t first, uint64_t count, struct crew_result *result)
{
	struct crew_config config = {.first = first, .count = count};
	struct error err = {0};

	if (crew_run(&config, result, &err))
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < result->failures; i++)
		print_message("seed %" PRIu64 ": %s\n  napier sim --seed %" PRIu64 " --trace\n",
			      result->failure[i].seed, result->failure[i].text,
			      result->failure[i].seed);
	assert_int_equal(result->failures, 0);
	assert_int_equal(result->totals.seeds, count);
}

static void fixed_seeds(void **state)
{
	static struct crew_result result;

	(void)state;
	run(1, SEEDS / SLOWER, &result);
	assert_int_equal(result.totals.twice, SEEDS / SLOWER / CREW_TWICE);
	/* They are about something, and every kind of fault has happened. */
	assert_true(result.totals.out > 50 * result.totals.seeds);
	assert_true(result.totals.operations > 10 * result.totals.seeds);
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		if (!result.totals.faults[i])
			fail_msg("no %s in %d seeds", sim_fault_name(i), SEEDS / SLOWER);
}

static void fresh_seeds(void **state)
{
	static struct crew_result result;
	uint64_t first = 0;

	(void)state;
	assert_int_equal(getrandom(&first, sizeof(first), 0), sizeof(first));
	first &= UINT32_MAX;
	print_message("fresh seeds: %" PRIu64 "..%" PRIu64 "\n", first, first + FRESH - 1);
	run(first, FRESH, &result);
}

static void count_line(void *arg, const char *line)
{
	unsigned *lines = arg;

	assert_null(strchr(line, '\n'));
	(*lines)++;
}

/* The text is on the side: the same run, the same hash; and another without faults. */
static void trace_changes_nothing(void **state)
{
	unsigned lines = 0;
	struct sim_options traced = {.trace = count_line, .trace_arg = &lines}, untraced = {0},
			   without = {.no_faults = true};
	struct sim_result a, b, c;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		lines = 0;
		assert_true(sim_run(seed, &traced, &a));
		assert_true(sim_run(seed, &untraced, &b));
		assert_true(sim_run(seed, &without, &c));
		assert_int_equal(a.hash, b.hash);
		assert_memory_equal(&a, &b, sizeof(a));
		assert_int_not_equal(a.hash, c.hash);
		assert_true(lines > a.events);
	}
}

static void exits(void *arg, const char *line)
{
	(void)arg;
	(void)line;
	_exit(3);
}

static void aborts(void *arg, const char *line)
{
	(void)arg;
	(void)line;
	kill(getpid(), SIGKILL);
}

/* A process that ends in the middle of a seed, whichever way: the seed has failed, and is named. */
static void processes_that_end_are_failures(void **state)
{
	static struct crew_result result;
	struct crew_config config = {.first = 7, .count = 1, .jobs = 1, .sim.trace = exits};
	struct error err;

	(void)state;
	assert_int_equal(crew_run(&config, &result, &err), 0);
	assert_int_equal(result.failures, 1);
	assert_int_equal(result.failure[0].seed, 7);
	assert_string_equal(result.failure[0].text, "ends its process: exit status 3");
	config.sim.trace = aborts;
	assert_int_equal(crew_run(&config, &result, &err), 0);
	assert_int_equal(result.failures, 1);
	assert_string_equal(result.failure[0].text, "crashes: Killed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_that_end_are_failures),
		cmocka_unit_test(trace_changes_nothing),
		cmocka_unit_test(fixed_seeds),
		cmocka_unit_test(fresh_seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
