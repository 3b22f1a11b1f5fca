/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "lab/inside.h"
#include "lab/record_file.h"
#include "lab/run/record.h"

#define PREFIX "run."

enum { LINES = 8, LINE = 160, ENVIRON = 1 << 17 };

/* Of this process. */
static struct {
	pid_t pid; /* one that was forked has none yet */
	int fd;
	char path[256];
	char line[LINES][LINE];
} own = {.fd = -1};

static int own_open(const char *rundir, struct error *err)
{
	char name[32];

	if (own.fd >= 0 && own.pid == getpid())
		return 0;
	memset(&own, 0, sizeof(own));
	own.pid = getpid();
	snprintf(name, sizeof(name), PREFIX "%d", own.pid);
	own.fd = record_file_open(rundir, name, own.path, sizeof(own.path), err);
	return own.fd < 0 ? own.fd : 0;
}

static int own_write(void)
{
	if (ftruncate(own.fd, 0) || lseek(own.fd, 0, SEEK_SET))
		return -errno;
	for (unsigned i = 0; i < LINES; i++)
		if (*own.line[i] && dprintf(own.fd, "%s\n", own.line[i]) < 0)
			return -errno;
	return 0;
}

int record_add(const char *rundir, const char *line, struct error *err)
{
	int ret = own_open(rundir, err);

	if (ret)
		return ret;
	for (unsigned i = 0; i < LINES; i++) {
		if (*own.line[i])
			continue;
		snprintf(own.line[i], LINE, "%s", line);
		ret = own_write();
		return ret ? error_set(err, ret, "%s: %s", own.path, strerror(-ret)) : 0;
	}
	return error_set(err, -ENOSPC, "more than %d things to remember", LINES);
}

void record_remove(const char *line)
{
	bool left = false;

	for (unsigned i = 0; i < LINES; i++) {
		if (!strcmp(own.line[i], line))
			*own.line[i] = '\0';
		left |= *own.line[i] != '\0';
	}
	if (own.fd < 0 || own.pid != getpid())
		return;
	own_write();
	if (left)
		return;
	unlink(own.path);
	close(own.fd);
	own.fd = -1;
}

/* Its environment says that it is of a command that this owner had started. */
static bool marked(const char *pid, pid_t owner, char *environment)
{
	char path[300], mark[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, environment, ENVIRON - 1);
	close(fd);
	snprintf(mark, sizeof(mark), RECORD_MARK "=%d", owner);
	for (char *e = environment; n > 0 && e < environment + n; e += strlen(e) + 1) {
		environment[n] = '\0';
		if (!strcmp(e, mark))
			return true;
	}
	return false;
}

static int processes_end(pid_t owner)
{
	char *environment = malloc(ENVIRON);
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int ended = 0;

	while (environment && dir && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);

		if (pid <= 1 || pid == getpid() || !marked(entry->d_name, owner, environment))
			continue;
		ended += !kill(pid, SIGKILL);
	}
	if (dir)
		closedir(dir);
	free(environment);
	return ended;
}

static int bridge_delete(void *arg)
{
	const char *bridge = arg;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;
	struct ifreq ifr = {0};
	char name[IFNAMSIZ];

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", bridge);
	snprintf(name, sizeof(name), "%s", bridge);
	ioctl(fd, SIOCSIFFLAGS, &ifr);
	ret = ioctl(fd, SIOCBRDELBR, name) ? -errno : 0;
	close(fd);
	return ret;
}

/* Only a name that we could have given: others may be able to write to the directory. */
static int line_recover(const char *line, pid_t owner)
{
	char netns[64], bridge[IFNAMSIZ], expected[IFNAMSIZ];
	struct error ignored;
	int fd = -1, ret;

	if (!strcmp(line, "command"))
		return processes_end(owner);
	if (sscanf(line, "bridge %63s %15s", netns, bridge) != 2)
		return 0;
	snprintf(expected, sizeof(expected), "np%dbr", owner);
	if (strcmp(bridge, expected) || inside_open(strcmp(netns, "-") ? netns : "", &fd, &ignored))
		return 0;
	ret = inside_run(fd, bridge_delete, bridge, &ignored);
	if (fd >= 0)
		close(fd);
	return !ret;
}

static int file_undo(void *arg, FILE *record, const char *owner)
{
	char line[LINE];
	int done = 0;

	(void)arg;
	while (atoi(owner) > 0 && fgets(line, sizeof(line), record)) {
		line[strcspn(line, "\n")] = '\0';
		done += line_recover(line, atoi(owner));
	}
	return done;
}

int record_recover(const char *rundir)
{
	return record_files_undo(rundir, PREFIX, file_undo, NULL);
}
