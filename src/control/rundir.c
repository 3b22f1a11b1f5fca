/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <control/rundir.h>

static const char *const files[] = {"control", "counters", "absent"};

int rundir_find(struct rundir *dir, const char *base, const char *name, struct error *err)
{
	const char *user = getenv("XDG_RUNTIME_DIR");
	int n;

	*dir = (struct rundir){.lock = -1};
	if (base)
		n = snprintf(dir->base, sizeof(dir->base), "%s", base);
	else if (geteuid() == 0)
		n = snprintf(dir->base, sizeof(dir->base), "/run/napier");
	else if (user && *user)
		n = snprintf(dir->base, sizeof(dir->base), "%s/napier", user);
	else
		return error_set(err, -ENOENT,
				 "XDG_RUNTIME_DIR is not set: give --run-dir DIR (engines of root: "
				 "/run/napier)");
	if (n < (int)sizeof(dir->base))
		n = snprintf(dir->path, sizeof(dir->path), "%s/%s", dir->base, name);
	if (n >= (int)sizeof(dir->path))
		return error_set(err, -ENAMETOOLONG,
				 "run directory %.60s…: longer than %d bytes, which a socket's "
				 "address cannot hold: give a shorter --run-dir",
				 dir->base, RUNDIR_PATH_MAX - 1);
	return 0;
}

const char *rundir_name(const struct rundir *dir)
{
	return strrchr(dir->path, '/') + 1;
}

void rundir_file(const struct rundir *dir, const char *file, char out[RUNDIR_PATH_MAX + 10])
{
	snprintf(out, RUNDIR_PATH_MAX + 10, "%s/%s", dir->path, file);
}

static int directory_make(const char *path, bool *made, struct error *err)
{
	struct stat st;

	if (!mkdir(path, 0755))
		*made = true;
	else if (errno != EEXIST)
		return error_set(err, -errno, "run directory %s: %s: give --run-dir DIR", path,
				 strerror(errno));
	if (lstat(path, &st))
		return error_set(err, -errno, "run directory %s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return error_set(err, -ENOTDIR, "run directory %s: not a directory", path);
	return 0;
}

/* In somebody else's directory our files could be swapped. */
static int directory_ours(const char *path, struct error *err)
{
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	if (st.st_uid != geteuid())
		return error_set(err, -EACCES,
				 "run directory %s: belongs to user %u: give --run-dir DIR", path,
				 (unsigned)st.st_uid);
	return 0;
}

static pid_t pid_read(int fd)
{
	char text[16];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return (pid_t)atoi(text);
}

/* 1: locked, 0: the file was removed by an engine that ended meanwhile. */
static int lock_take(struct rundir *dir, struct error *err)
{
	char path[RUNDIR_PATH_MAX + 10];
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat ours, there;
	int fd;

	rundir_file(dir, "pid", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return errno == ENOENT ? 0
				       : error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (fcntl(fd, F_OFD_SETLK, &whole)) {
		int rc = -errno;
		pid_t pid = pid_read(fd);

		close(fd);
		if (rc != -EAGAIN && rc != -EACCES)
			return error_set(err, rc, "%s: lock: %s", path, strerror(-rc));
		return error_set(err, -EADDRINUSE,
				 "an engine named %s is running (pid %d): stop it (napier stop "
				 "--name %s), or give this one another --name",
				 rundir_name(dir), (int)pid, rundir_name(dir));
	}
	if (fstat(fd, &ours) || stat(path, &there) || ours.st_ino != there.st_ino ||
	    ours.st_dev != there.st_dev) {
		close(fd);
		return 0;
	}
	dir->lock = fd;
	return 1;
}

int rundir_lock(struct rundir *dir, struct error *err)
{
	char path[RUNDIR_PATH_MAX + 10];
	char text[16];
	bool made;
	int rc = 0;

	/* An engine that ends removes its directories: each try meets one such end at most. */
	for (int tries = 0; !rc && tries < 100; tries++) {
		rc = directory_make(dir->base, &dir->base_made, err);
		if (!rc)
			rc = directory_make(dir->path, &made, err);
		if (!rc)
			rc = directory_ours(dir->path, err);
		if (!rc)
			rc = lock_take(dir, err);
		else if (rc == -ENOENT && !access(dir->base, F_OK))
			rc = 0;
	}
	if (rc < 0)
		return rc;
	if (!rc)
		return error_set(err, -EBUSY, "run directory %s: it does not stay", dir->path);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		rundir_file(dir, files[i], path);
		unlink(path);
	}
	rc = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(dir->lock, 0) || pwrite(dir->lock, text, (size_t)rc, 0) != rc) {
		rc = error_set(err, -errno, "run directory %s: %s", dir->path, strerror(errno));
		rundir_close(dir);
		return rc;
	}
	return 0;
}

void rundir_close(struct rundir *dir)
{
	char path[RUNDIR_PATH_MAX + 10];

	if (dir->lock < 0)
		return;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		rundir_file(dir, files[i], path);
		unlink(path);
	}
	rundir_file(dir, "pid", path);
	unlink(path);
	rmdir(dir->path);
	if (dir->base_made)
		rmdir(dir->base);
	close(dir->lock);
	dir->lock = -1;
}

int rundir_watch(const struct rundir *dir)
{
	char path[RUNDIR_PATH_MAX + 10];
	int fd;

	rundir_file(dir, "pid", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Asks without locking, so an engine that starts at this moment is not refused. */
bool rundir_ended(int watch)
{
	struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(watch, F_OFD_GETLK, &whole) || whole.l_type == F_UNLCK;
}

pid_t rundir_owner(const struct rundir *dir)
{
	int fd = rundir_watch(dir);
	pid_t pid = 0;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (!rundir_ended(fd)) {
		pid = pid_read(fd);
		if (pid <= 0)
			pid = -EAGAIN; /* locked a moment ago, not yet written */
	}
	close(fd);
	return pid;
}

void rundir_running(const struct rundir *dir, char *text, size_t size)
{
	struct dirent **entry;
	struct rundir one;
	size_t at = 0;
	int n = scandir(dir->base, &entry, NULL, alphasort);

	*text = '\0';
	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;

		if (*name != '.' && !rundir_find(&one, dir->base, name, NULL) &&
		    rundir_owner(&one) > 0 && at + strlen(name) + 3 < size)
			at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", name);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}
