/* SPDX-License-Identifier: BSD-2-Clause */
/* sysfile: small files of /proc and /sys as JSON; null for what cannot be read. */
#ifndef LAB_MEASURE_SYSFILE_H
#define LAB_MEASURE_SYSFILE_H

#include <stdbool.h>

#include <jansson.h>

enum { SYSFILE_MAX = 4096 };

/* Its text without the newline at the end. False, and "": it cannot be read. */
__attribute__((format(printf, 2, 3))) bool sysfile_read(char text[SYSFILE_MAX], const char *path,
							...);
__attribute__((format(printf, 1, 2))) json_t *sysfile_text(const char *path, ...);
/* Of its first number. */
__attribute__((format(printf, 1, 2))) json_t *sysfile_number(const char *path, ...);
/* What is not UTF-8 in it is left out. */
json_t *sysfile_string(const char *text);
/* After "name<spaces>:" at the begin of a line; false: there is no such line. */
bool sysfile_field(const char *path, const char *name, char *value, size_t size);

/* The names in a directory that start so, sorted; the return value is how many there are. */
enum { SYSFILE_NAME_MAX = 64 };
unsigned sysfile_names(const char *directory, const char *prefix, char (*name)[SYSFILE_NAME_MAX],
		       unsigned max);

#endif
