/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of two systems under rrul, streams and requests, of which flent's files are made. */
#ifndef FLENT_FIXTURE_H
#define FLENT_FIXTURE_H

#include <jansson.h>

enum { FLENT_POINTS = 9 };

/* first, first + 1, …; every third is null. */
static inline json_t *flent_values(double first, int nulls)
{
	json_t *array = json_array();

	for (int i = 0; i < FLENT_POINTS; i++)
		json_array_append_new(array,
				      nulls && i % 3 == 2 ? json_null() : json_real(first + i));
	return array;
}

static inline json_t *flent_rrul_series(double interval)
{
	return json_pack("{s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "interval_s", interval, "up_be_mbit", flent_values(10, 0), "up_bk_mbit",
			 flent_values(20, 0), "up_cs5_mbit", flent_values(30, 0), "up_ef_mbit",
			 flent_values(40, 0), "down_be_mbit", flent_values(50, 0), "down_bk_mbit",
			 flent_values(60, 0), "down_cs5_mbit", flent_values(70, 0), "down_ef_mbit",
			 flent_values(80, 0), "udp_be_ns", flent_values(1e6, 1), "udp_bk_ns",
			 flent_values(2e6, 1), "udp_ef_ns", flent_values(3e6, 1), "icmp_ns",
			 flent_values(4e6, 0));
}

static inline json_t *flent_run(const char *system, const char *workload, int repeat, int valid,
				json_t *series)
{
	return json_pack("{s:s, s:s, s:i, s:f, s:b, s:n, s:o}", "system", system, "workload",
			 workload, "repeat", repeat, "started_s", 1.25 + repeat, "valid", valid,
			 "error", "series", series);
}

static inline json_t *flent_workload(const char *key, const char *kind, const char *protocol,
				     const char *direction)
{
	return json_pack("{s:s, s:s, s:s, s:{s:s, s:s}}", "key", key, "name", key, "kind", kind,
			 "parameters", "protocol", protocol, "direction", direction);
}

/* For json_decref. */
static inline json_t *flent_fixture(void)
{
	json_t *runs = json_array();

	json_array_append_new(runs, flent_run("k", "rrul", 0, 1, flent_rrul_series(0.2)));
	json_array_append_new(runs, flent_run("k", "rrul", 1, 0, flent_rrul_series(0.2)));
	json_array_append_new(runs, flent_run("k", "rrul", 2, 1, flent_rrul_series(0.02)));
	json_array_append_new(runs, flent_run("k", "up", 0, 1,
					      json_pack("{s:f, s:o}", "interval_s", 0.1,
							"received_mbit", flent_values(5, 0))));
	json_array_append_new(runs, flent_run("k", "both", 0, 1,
					      json_pack("{s:f, s:o, s:o}", "interval_s", 0.1,
							"up_received_mbit", flent_values(5, 0),
							"down_received_mbit", flent_values(6, 0))));
	json_array_append_new(runs, flent_run("k", "udp", 0, 1,
					      json_pack("{s:f, s:o}", "interval_s", 0.1,
							"received_mbit", flent_values(7, 0))));
	json_array_append_new(runs, flent_run("*/n", "rr", 2, 1,
					      json_pack("{s:f, s:o}", "interval_s", 0.1, "p50_ns",
							flent_values(50000, 1))));
	json_array_append_new(runs, flent_run("k", "tcp-rr", 0, 1,
					      json_pack("{s:f, s:o}", "interval_s", 0.1, "p50_ns",
							flent_values(60000, 1))));
	/* Of which flent has no test, and one in which nothing came. */
	json_array_append_new(runs, flent_run("k", "udp-down", 0, 1,
					      json_pack("{s:f, s:o}", "interval_s", 0.1,
							"received_mbit", flent_values(7, 0))));
	json_array_append_new(runs,
			      flent_run("k", "rr", 0, 1,
					json_pack("{s:f, s:[n, n]}", "interval_s", 0.1, "p50_ns")));
	return json_pack("{s:s, s:i, s:s, s:s, s:s, s:{s:{s:s}}, s:[{s:s, s:s}, {s:s, s:s}], "
			 "s:[o, o, o, o, o, o, o], s:o}",
			 "schema", "napier-results", "version", 1, "napier", "0.1", "name", "x",
			 "started", "2026-11-30T18:00:00Z", "environment", "kernel", "release",
			 "6.18.0", "systems", "key", "k", "name", "the kernel", "key", "*/n",
			 "name", "n", "workloads", flent_workload("rrul", "rrul", "tcp", "up"),
			 flent_workload("up", "stream", "tcp", "up"),
			 flent_workload("both", "stream", "tcp", "both"),
			 flent_workload("udp", "stream", "udp", "up"),
			 flent_workload("udp-down", "stream", "udp", "down"),
			 flent_workload("rr", "rr", "udp", "up"),
			 flent_workload("tcp-rr", "rr", "tcp", "up"), "runs", runs);
}

#endif
