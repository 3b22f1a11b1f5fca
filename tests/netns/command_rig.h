/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of the command as people run it: the real program, on real links, in another process.
 *
 * Every engine runs under a run directory of its test's own, and tells by NOTIFY_SOCKET when it is
 * ready, as it tells a service manager. What does not work fails the test.
 */
#ifndef COMMAND_RIG_H
#define COMMAND_RIG_H

#include "test.h"

#include "netns.h"

#include <jansson.h>

#define TEXT_MAX 65536
#define READY_MS 120000 /* only against hanging */

struct command_rig {
	struct netns_links links;
	char base[32];	   /* --run-dir */
	char spec[2][256]; /* "packet:in0,netns=…,name=p0" */
	int notify;
	pid_t engine; /* 0: none runs */
};

/* One run of the program. */
struct process {
	pid_t pid;
	char out_path[64], err_path[64];
	char out[TEXT_MAX], err[TEXT_MAX];
	int status; /* exit status; -1: killed by a signal, or too slow */
};

/* Every test in a rig of its own, which is *state, and which leaves nothing. */
int command_rig_open(void **state);
int command_rig_close(void **state);
#define command_test(test)                                                                         \
	cmocka_unit_test_setup_teardown(test, command_rig_open, command_rig_close)

/* A new file in the run directory, which the test has to unlink: open, or with these bytes. */
int file_new(const struct command_rig *rig, const char *kind, char path[64]);
void file_make(const struct command_rig *rig, const char *kind, const char *bytes, size_t n,
	       char path[64]);

/* Starts "napier ARGUMENTS", which are split at blanks. */
void process_start(struct command_rig *rig, struct process *p, const char *arguments);
void process_end(struct process *p);
/*
 * Runs it to its end; returns its status. A change that a busy machine does not get done in its
 * second, or seconds, fails with everything as it was, and is asked for again.
 */
__attribute__((format(printf, 3, 4))) int napier(struct command_rig *rig, struct process *p,
						 const char *format, ...);
/* Runs a line by a shell, for what a shell does to its files; returns its status. */
__attribute__((format(printf, 1, 2))) int shell(const char *format, ...);

/* "napier ARGUMENTS", which has to become a running engine. */
__attribute__((format(printf, 3, 4))) void engine_start(struct command_rig *rig, struct process *p,
							const char *format, ...);
/* One that runs as a setup file with this text says. */
void engine_start_file(struct command_rig *rig, struct process *p, const char *conf);
/* None of its threads runs any more, until SIGCONT: a signal alone may have to wait for a CPU. */
void engine_freeze(const struct process *p);
/* Sends it this, and waits for its end. */
void engine_signal(struct command_rig *rig, struct process *p, int number);
/* SIGTERM, at which it has to end well. */
void engine_stop(struct command_rig *rig, struct process *p);
/* Engines have told this, or do within so many ms; what they told before it is forgotten. */
bool notified(const struct command_rig *rig, const char *state, int ms);

/* What napier show -j says, with more arguments, each after a blank; to be given back. */
json_t *show_json(struct command_rig *rig, const char *arguments);
/* The object in an array of the view whose member has this text; borrowed. NULL: none. */
json_t *find(const json_t *view, const char *array, const char *member, const char *text);
/* A member that has to be there. */
long long number(const json_t *o, const char *member);
const char *text(const json_t *o, const char *member);
/*
 * Waits, bounded, until a port has counted exactly so many ("rx_packets", …): what has come out at
 * the far end may not be counted yet.
 */
void packets_wait(struct command_rig *rig, const char *arguments, const char *port,
		  const char *member, long long n);
/* Waits, bounded, until a port is in this state. */
void state_wait(struct command_rig *rig, const char *port, const char *wanted);

#endif
