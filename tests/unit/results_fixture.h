/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results as an experiment would leave them, made from a seed: scenarios, repeats, skipped systems,
 * invalid and failed runs, percentiles without samples, a system with one repeat, runs in which
 * nothing came.
 */
#ifndef TESTS_RESULTS_FIXTURE_H
#define TESTS_RESULTS_FIXTURE_H

#include <stdbool.h>

#include <jansson.h>

struct fixture {
	unsigned systems, workloads, repeats; /* workloads: up to 4 */
	unsigned samples;		      /* of latency in a run */
	double faster; /* divides latencies: for a second set of results; 1 */
	unsigned seed;
	bool faults;  /* some of everything that goes wrong */
	bool hostile; /* names that would do something in a page that does not escape them */
};

/* For json_decref. Without "summary" and "comparisons", which are made of it. */
json_t *results_fixture(const struct fixture *fixture);

/* In every name, reason and text of hostile ones. */
#define FIXTURE_HOSTILE "<script>alert('x')</script><b id=\"x\">&amp;"

#endif
