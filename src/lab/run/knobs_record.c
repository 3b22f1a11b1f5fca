/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of what was changed, written before it is, and read by the next start when its owner
 * was killed. A line a change, fields by tabs:
 *
 *	INODE NETNS IFINDEX INTERFACE KEY OURS BEFORE
 *
 * INODE is the network namespace's, NETNS its name below /run/netns, or "-": one that is not there.
 * INTERFACE is "-" for the system.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/record_file.h"
#include "lab/run/knob.h"

#define NETNS_DIR "/run/netns"
#define PREFIX "knobs."
#define OWN_NETNS "/proc/thread-self/ns/net"

enum { LINE_MAX_BYTES = 32768 };

int knobs_record_open(const char *rundir, char path[KNOB_PATH_MAX], struct error *err)
{
	static _Atomic unsigned opened;
	char name[48];

	snprintf(name, sizeof(name), PREFIX "%d.%u", getpid(), opened++);
	return record_file_open(rundir, name, path, KNOB_PATH_MAX, err);
}

static const char *lock_path(const char *rundir, char path[KNOB_PATH_MAX])
{
	snprintf(path, KNOB_PATH_MAX, "%s/.knobs", rundir);
	return path;
}

/* False: who had it before took the name away with it. */
static bool lock_is(const char *path, int lock)
{
	struct stat named, locked;

	return !stat(path, &named) && !fstat(lock, &locked) && named.st_ino == locked.st_ino;
}

int knobs_records_lock(const char *rundir, struct error *err)
{
	char path[KNOB_PATH_MAX];

	lock_path(rundir, path);
	for (;;) {
		int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), failed;

		do
			failed = lock < 0 || flock(lock, LOCK_EX) ? errno : 0;
		while (failed == EINTR);
		if (!failed && lock_is(path, lock))
			return lock;
		if (lock >= 0)
			close(lock);
		if (failed)
			return error_set(err, -failed, "%s: %s", path, strerror(failed));
	}
}

void knobs_records_unlock(const char *rundir, int lock)
{
	char path[KNOB_PATH_MAX];

	unlink(lock_path(rundir, path));
	close(lock);
}

static ino_t netns_inode(const char *path)
{
	struct stat s;

	return stat(path, &s) ? 0 : s.st_ino;
}

/* "-": it has none. */
static void netns_name(ino_t inode, char name[64])
{
	DIR *dir = opendir(NETNS_DIR);
	struct dirent *entry;

	strcpy(name, "-");
	while (dir && (entry = readdir(dir))) {
		char path[300];

		snprintf(path, sizeof(path), NETNS_DIR "/%s", entry->d_name);
		if (strlen(entry->d_name) < 64 && netns_inode(path) == inode) {
			snprintf(name, 64, "%.63s", entry->d_name);
			break;
		}
	}
	if (dir)
		closedir(dir);
}

static ino_t site_inode(int netns)
{
	char path[64] = OWN_NETNS;

	if (netns >= 0)
		snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", netns);
	return netns_inode(path);
}

int knobs_record_add(int fd, const struct knob_change *change)
{
	ino_t inode = site_inode(change->netns);
	char name[64];

	netns_name(inode, name);
	if (dprintf(fd, "%ju\t%s\t%u\t%s\t%s\t%s\t%s\n", (uintmax_t)inode, name, change->ifindex,
		    change->interface[0] ? change->interface : "-", change->knob->key, change->ours,
		    change->before) < 0)
		return -errno;
	/* Not to the disk: what it is for does not outlast the kernel either. */
	return 0;
}

/* The line is about what `change` is about. */
static bool line_same(char *line, const struct knob_change *change, ino_t inode)
{
	char *field[5], *at = line;

	for (int i = 0; i < 5; i++) {
		field[i] = strsep(&at, "\t");
		if (!field[i])
			return false;
	}
	return !strcmp(field[4], change->knob->key) &&
	       (!change->knob->ops->of_interface ||
		(strtoumax(field[0], NULL, 10) == inode &&
		 strtoul(field[2], NULL, 10) == change->ifindex));
}

static bool record_has(FILE *record, const struct knob_change *change, ino_t inode)
{
	char *line = NULL;
	size_t size = 0;
	bool has = false;

	while (!has && getline(&line, &size, record) > 0)
		has = line_same(line, change, inode);
	free(line);
	return has;
}

pid_t knobs_record_owner(const char *rundir, const struct knob_change *change)
{
	ino_t inode = site_inode(change->netns);
	DIR *dir = opendir(rundir);
	struct dirent *entry;
	pid_t owner = 0;

	while (dir && !owner && (entry = readdir(dir))) {
		FILE *record;
		pid_t pid;
		int fd;

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		pid = atoi(entry->d_name + strlen(PREFIX));
		if (pid == getpid())
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		record = fd < 0 ? NULL : fdopen(fd, "r");
		if (!record) {
			if (fd >= 0)
				close(fd);
			continue;
		}
		/* Locked: it lives. What dead ones left is for knobs_recover. */
		if (flock(fd, LOCK_SH | LOCK_NB) && record_has(record, change, inode))
			owner = pid;
		fclose(record);
	}
	if (dir)
		closedir(dir);
	return owner;
}

/* A descriptor, -1: the caller's, -ENOENT: it is not there any more. */
static int netns_find(ino_t inode, const char *name)
{
	char path[128];

	if (netns_inode(OWN_NETNS) == inode)
		return -1;
	if (!strcmp(name, "-"))
		snprintf(path, sizeof(path), "/proc/1/ns/net");
	else
		snprintf(path, sizeof(path), NETNS_DIR "/%s", name);
	if (strchr(name, '/') || netns_inode(path) != inode)
		return -ENOENT;
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Only values of knobs, whatever the line says. True: something was put back. */
static bool line_undo(char *line)
{
	struct knob_change change = {.netns = -1};
	char *field[7], *at = line;

	for (int i = 0; i < 7; i++) {
		field[i] = strsep(&at, "\t");
		if (!field[i])
			return false;
	}
	change.knob = knob_find(field[4]);
	if (!change.knob || strlen(field[3]) >= IFNAMSIZ || strlen(field[5]) >= KNOB_VALUE_MAX)
		return false;
	if (change.knob->ops->of_interface) {
		int netns = netns_find((ino_t)strtoumax(field[0], NULL, 10), field[1]);

		if (netns < -1)
			return false;
		change.netns = netns;
		strcpy(change.interface, field[3]);
		change.ifindex = (unsigned)strtoul(field[2], NULL, 10);
	}
	strcpy(change.ours, field[5]);
	change.before = field[6];
	bool undone = knob_change_undo(&change, true, NULL) > 0;

	if (change.netns >= 0)
		close(change.netns);
	return undone;
}

/* Last first. */
static int record_undo(void *arg, FILE *record, const char *owner)
{
	char **lines = NULL, *line = NULL;
	size_t n = 0, size = 0;
	ssize_t length;
	int undone = 0;

	(void)arg;
	(void)owner;
	while ((length = getline(&line, &size, record)) > 0 && length < LINE_MAX_BYTES) {
		char **more = realloc(lines, (n + 1) * sizeof(*lines));

		/* Without an end it was not written out, so nothing was changed after it. */
		if (!more || line[length - 1] != '\n') {
			lines = more ? more : lines;
			break;
		}
		lines = more;
		line[length - 1] = '\0';
		lines[n++] = line;
		line = NULL;
		size = 0;
	}
	free(line);
	while (n-- > 0) {
		undone += line_undo(lines[n]);
		free(lines[n]);
	}
	free(lines);
	return undone;
}

int knobs_records_undo(const char *rundir)
{
	return record_files_undo(rundir, PREFIX, record_undo, NULL);
}

int knobs_recover(const char *rundir)
{
	int lock, undone;

	/* Nothing to recover, nor to lock. */
	if (access(rundir, F_OK))
		return 0;
	lock = knobs_records_lock(rundir, NULL);
	undone = knobs_records_undo(rundir);
	if (lock >= 0)
		knobs_records_unlock(rundir, lock);
	return undone;
}
