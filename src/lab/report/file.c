/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

/* Synced before it is renamed: else a crash could leave the name with nothing behind it. */
static int beside_fill(int fd, const void *data, size_t size)
{
	return all_write(fd, data, size) || fsync(fd) ? -1 : 0;
}

bool file_lock(int fd, const char *path)
{
	struct stat own, there;

	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	return !fstat(fd, &own) && !stat(path, &there) && own.st_ino == there.st_ino;
}

/*
 * The file beside, locked; -1 with errno. Its name is always the same one, so what was left by one
 * that was killed is overwritten.
 */
static int beside_open(const char *beside)
{
	int fd, code;

	while ((fd = open(beside, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) >= 0 &&
	       !file_lock(fd, beside))
		close(fd);
	if (fd < 0 || !ftruncate(fd, 0))
		return fd;
	code = errno;
	close(fd);
	errno = code;
	return -1;
}

int file_write(const char *path, const void *data, size_t size, struct error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char beside[PATH_MAX];
	int fd, rc;

	if ((size_t)snprintf(beside, sizeof(beside), "%.*s.%s.new", (int)(name - path), path,
			     name) >= sizeof(beside))
		return error_set(err, -ENAMETOOLONG, "%s: too long a path", path);
	fd = beside_open(beside);
	if (fd < 0)
		return failed(path, err);
	if (!beside_fill(fd, data, size) && !rename(beside, path)) {
		close(fd);
		return 0;
	}
	rc = failed(path, err);
	unlink(beside);
	close(fd);
	return rc;
}
