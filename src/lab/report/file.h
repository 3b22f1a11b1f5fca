/* SPDX-License-Identifier: BSD-2-Clause */
/* file: a whole file or none: written beside, with what it is about to be called renamed at last.
 */
#ifndef LAB_REPORT_FILE_H
#define LAB_REPORT_FILE_H

#include <stddef.h>

#include <napier/error.h>

/*
 * What was there before is there until the new one is whole, and stays if that fails: -ENOSPC,
 * -EACCES and the like name the file. Nothing is left beside, and what one that was killed has left
 * there (".NAME.new") the next one of that name takes.
 */
int file_write(const char *path, const void *data, size_t size, struct error *err);

#endif
