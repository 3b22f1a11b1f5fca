/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/record_file.h"

/* A new file there, and the directory if need be, which an engine that ends may remove meanwhile.
 */
static int file_make(const char *rundir, const char *path, struct error *err)
{
	int fd = -1;

	errno = ENOENT;
	for (int tries = 0; fd < 0 && errno == ENOENT && tries < 100; tries++) {
		if (mkdir(rundir, 0755) && errno != EEXIST)
			return error_set(err, -errno, "%s: making the run directory: %s", rundir,
					 strerror(errno));
		unlink(path);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	return fd < 0 ? error_set(err, -errno, "%s: %s", path, strerror(errno)) : fd;
}

int record_file_open(const char *rundir, const char *name, char *path, size_t size,
		     struct error *err)
{
	char unlocked[PATH_MAX];
	int fd;

	/* It has its name only when it is locked, or who starts now took it for a dead one's. */
	snprintf(path, size, "%s/%s", rundir, name);
	snprintf(unlocked, sizeof(unlocked), "%s/.%s", rundir, name);
	fd = file_make(rundir, unlocked, err);
	if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) || rename(unlocked, path))) {
		int code = -errno;

		unlink(unlocked);
		close(fd);
		return error_set(err, code, "%s: %s", path, strerror(-code));
	}
	return fd;
}

static int file_undo(int dir, const char *name, size_t prefix,
		     int (*undo)(void *arg, FILE *record, const char *rest), void *arg)
{
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), undone = 0;
	FILE *record = fd < 0 ? NULL : fdopen(fd, "r");
	struct stat s;

	if (!record) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	if (!fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_uid == geteuid() &&
	    !flock(fd, LOCK_EX | LOCK_NB)) {
		undone = undo(arg, record, name + prefix);
		unlinkat(dir, name, 0);
	}
	fclose(record);
	return undone;
}

int record_files_undo(const char *rundir, const char *prefix,
		      int (*undo)(void *arg, FILE *record, const char *rest), void *arg)
{
	DIR *dir = opendir(rundir);
	const struct dirent *entry;
	size_t length = strlen(prefix);
	int undone = 0;

	while (dir && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, prefix, length))
			undone += file_undo(dirfd(dir), entry->d_name, length, undo, arg);
	if (dir)
		closedir(dir);
	return undone;
}

static bool file_lives(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool lives = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return lives;
}

pid_t record_files_other(const char *rundir, const char *prefix)
{
	DIR *dir = opendir(rundir);
	const struct dirent *entry;
	size_t length = strlen(prefix);
	pid_t other = 0;

	while (dir && !other && (entry = readdir(dir))) {
		pid_t owner =
			strncmp(entry->d_name, prefix, length) ? 0 : atoi(entry->d_name + length);

		if (owner > 0 && owner != getpid() && file_lives(dirfd(dir), entry->d_name))
			other = owner;
	}
	if (dir)
		closedir(dir);
	return other;
}
