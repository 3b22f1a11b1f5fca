/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of the commands that make a lab of their own, napier demo and napier bench: their
 * answer, and that nothing is left when they are interrupted.
 */
#ifndef LAB_RUN_H
#define LAB_RUN_H

#include "test.h"

#include <stdbool.h>
#include <sys/types.h>

#include <jansson.h>

extern const char *lab_run_napier; /* the program */

/*
 * At the beginning of main: takes the program from the arguments, goes into a network namespace,
 * or ends with 77 where it cannot, and becomes the parent of what the program leaves running.
 */
void lab_run_begin(int argc, char **argv);

enum { NOBODY = 65534 };

/* "napier ARGUMENTS", NULL at their end, in a process group of its own; its output in a pipe. */
pid_t lab_run_start(const char *const *arguments, bool as_nobody, int *out);
/* Its output, when it has ended well; to be given back. */
json_t *lab_run_answer(pid_t pid, int out);
/*
 * Ctrl-C after so many ms: what it ran ends in order, and everything that bore its process id is
 * gone. Returns its status, as of waitpid.
 */
int lab_run_interrupt(pid_t pid, int out, int after_ms);

/* Namespaces and run directories whose names have this process id. */
unsigned lab_run_traces(pid_t pid);
/* Waits until it has made its first namespace; fails the test when it does not. */
void lab_run_await_namespaces(pid_t pid);

#endif
