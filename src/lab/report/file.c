/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/report/file.h"

static int failed(const char *path, struct error *err)
{
	int code = errno;

	switch (code) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return error_set(err, -code, "%s: %s: make room, or choose another directory (-o)",
				 path, strerror(code));
	case ENOENT:
		return error_set(err, -code, "%s: its directory is not there", path);
	case EISDIR:
		return error_set(err, -code, "%s: a directory has that name", path);
	default:
		return error_set(err, -code, "%s: %s", path, strerror(code));
	}
}

static int all_write(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* As a file that is made by open(2) would have; mkstemp's is of its owner alone. */
static mode_t mode_wanted(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* Synced before it is renamed: else a crash could leave the name with nothing behind it. */
static int beside_fill(int fd, const void *data, size_t size)
{
	if (all_write(fd, data, size) || fchmod(fd, mode_wanted()) || fsync(fd)) {
		int code = errno;

		close(fd);
		errno = code;
		return -1;
	}
	return close(fd);
}

int file_write(const char *path, const void *data, size_t size, struct error *err)
{
	char beside[PATH_MAX];
	int fd, rc;

	if ((size_t)snprintf(beside, sizeof(beside), "%s.XXXXXX", path) >= sizeof(beside))
		return error_set(err, -ENAMETOOLONG, "%s: too long a path", path);
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0)
		return failed(path, err);
	if (!beside_fill(fd, data, size) && !rename(beside, path))
		return 0;
	rc = failed(path, err);
	unlink(beside);
	return rc;
}
