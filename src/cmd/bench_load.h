/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_load: one run of one workload, and how its figures are shown. */
#ifndef CMD_BENCH_LOAD_H
#define CMD_BENCH_LOAD_H

#include <stdio.h>

#include <jansson.h>

#include <lab/load/load.h>

enum { LOAD_PERCENTILES_MAX = 16 };

enum load_format { LOAD_TABLE, LOAD_KEYS, LOAD_JSON };

struct load_percentiles {
	unsigned n;
	struct {
		uint32_t millionths;
		char name[16]; /* "99.9" */
	} at[LOAD_PERCENTILES_MAX];
};

/* "50,90,99.9": above 0, below 100. False: it is none. */
bool load_percentiles_parse(const char *text, struct load_percentiles *out);

/* What the command line asks for. */
struct load_asked {
	const char *command;	   /* "rr", for complaints */
	struct load_config config; /* checked */
	const struct load_ops *ops;
	const char *host; /* NULL: two namespaces here */
	uint16_t port;
	int64_t length, warm; /* ns */
	struct load_percentiles percentiles;
	enum load_format format;
	struct cpuset client_cpus, server_cpus;
};

/* bench_load_run.c: does it, shows it, and returns the exit status. By the main thread. */
int load_go(const struct load_asked *asked);

/* A run (docs/results.md): a short table, or lines key=value (napier-bench(1)). */
void load_table(const json_t *run, const struct load_config *config,
		const struct load_percentiles *percentiles, FILE *out);
void load_keys(const json_t *run, const struct load_config *config,
	       const struct load_percentiles *percentiles, FILE *out);

/* "rr: UDP, 4 flows, 1 thread, 1 B requests, 1 B responses, closed loop" */
void load_words(const struct load_config *config, char *text, size_t size);

#endif
