/* SPDX-License-Identifier: BSD-2-Clause */
/* The subcommands of napier, and what they share. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <getopt.h>
#include <stdbool.h>

#include <jansson.h>

#include <napier/error.h>

#include <control/rundir.h>

/*
 * What the process ends with. MISUSED: no host, however it is set up, would do what is on the
 * command line; what a file says, or that one is missing, has FAILED.
 */
enum { DONE = 0, FAILED = 1, MISUSED = 2, STOPPED = 128 /* and the signal */ };

struct command {
	const char *name;
	const char *summary; /* one line, for `napier --help` */
	const char *usage;   /* what `napier NAME --help` prints */
	int (*run)(int argc, char **argv);
};

extern const struct command command_bench, command_demo, command_port, command_rebalance,
	command_run, command_set, command_show, command_sim, command_stop;

/* "napier: …" on standard error; returns FAILED. */
__attribute__((format(printf, 1, 2))) int complain(const char *format, ...);
/* The same for what was typed wrong; returns MISUSED. */
__attribute__((format(printf, 1, 2))) int misused(const char *format, ...);
/*
 * JSON on standard output, and a line end. DONE also when that does not take it, which is said in
 * the end, as of any output; FAILED after a complaint of no memory, of which NULL is a sign.
 */
int json_put(const json_t *json, size_t flags);

/* Options that all commands which speak to an engine have. */
struct which {
	const char *name;
	const char *run_dir;
};

#define WHICH_LONG                                                                                 \
	{"name", required_argument, NULL, 'n'}, {"run-dir", required_argument, NULL, 'R'},         \
	{                                                                                          \
		"help", no_argument, NULL, 'h'                                                     \
	}
#define WHICH_USAGE                                                                                \
	"      --name ENGINE    the engine of this name (default)\n"                               \
	"      --run-dir DIR    run directories are in DIR (of root: /run/napier)\n"               \
	"  -h, --help           this text\n"

/* Takes an option of getopt_long that is none of the command's own. -1: go on; else exit so. */
int which_option(const struct command *command, struct which *which, int option, char **argv);
/* The run directory it says. 0, or MISUSED or FAILED after a complaint. */
int which_dir(const struct which *which, struct rundir *dir);

/* A time in seconds, 0.01 to 3600, from an option's value. 0, or MISUSED after a complaint. */
int seconds_option(const char *option, const char *value, double *out);
void seconds_sleep(double seconds);

/* notify.c: tells the service manager, if one asked by NOTIFY_SOCKET ("READY=1", "STOPPING=1"). */
void notify(const char *state);

#endif
