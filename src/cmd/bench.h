/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench: `napier bench NAME …`, one file of src/cmd for each name. To add one: a file that defines
 * its struct bench_command, that name below, and in the table of bench.c.
 */
#ifndef CMD_BENCH_H
#define CMD_BENCH_H

#include <cmd/cmd.h>

struct bench_command {
	const char *name;
	const char *summary; /* one line, for `napier bench --help` */
	const char *usage;   /* what `napier bench NAME --help` prints */
	/* argv[0] is the name, and also options that came before it follow. DONE, FAILED… */
	int (*run)(const struct bench_command *command, int argc, char **argv);
	/* Of those that print a table for each of their parts; the last is NULL. */
	const struct bench_part *const *parts;
};

extern const struct bench_command bench_compare, bench_core, bench_delivery, bench_peers,
	bench_pollers, bench_report, bench_rr, bench_rrul, bench_server, bench_spec, bench_stream;

/* What a command makes lies here. */
#define BENCH_RUNDIR "/run/napier"

/* For what getopt_long gives and is none of the command's own ('h', ':', '?'): exit so. */
int bench_option(const struct bench_command *command, int option, char **argv);

#endif
