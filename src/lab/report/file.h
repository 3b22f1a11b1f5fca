/* SPDX-License-Identifier: BSD-2-Clause */
/* file: a whole file or none: written beside, with what it is about to be called renamed at last.
 */
#ifndef LAB_REPORT_FILE_H
#define LAB_REPORT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <napier/error.h>

/*
 * What was there before is there until the new one is whole, and stays if that fails: -ENOSPC,
 * -EACCES and the like name the file. Nothing is left beside, and what one that was killed has left
 * there (".NAME.new") the next one of that name takes.
 */
int file_write(const char *path, const void *data, size_t size, struct error *err);

/*
 * Waits for the lock of what was opened there, a file or a directory that one writer after another
 * makes under the same name. False: who had it before has renamed or removed it meanwhile, so that
 * it has to be made anew.
 */
bool file_lock(int fd, const char *path);

#endif
