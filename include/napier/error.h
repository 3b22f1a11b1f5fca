/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors that a person has to act on.
 *
 * Functions return 0 or a negative errno. Those that can fail because of something outside the
 * program (an interface, a file, a privilege) also fill a struct error: one line that names the
 * thing and the fix. The line has no newline and no program name.
 */
#ifndef NAPIER_ERROR_H
#define NAPIER_ERROR_H

#pragma GCC visibility push(default)

#define ERROR_TEXT_MAX 640

struct error {
	int code; /* negative errno, 0 while nothing failed */
	char text[ERROR_TEXT_MAX];
};

/* Fills *err (which may be NULL) and returns code, so that `return error_set(...)` reads well. */
__attribute__((format(printf, 3, 4))) int error_set(struct error *err, int code, const char *format,
						    ...);

#pragma GCC visibility pop

#endif
