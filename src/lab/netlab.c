/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/netlink.h>

#include <control/rundir.h>

#include "lab/netlab.h"
#include "lab/record_file.h"

#define NETNS_DIR "/run/netns"
#define RECORD_PREFIX "lab."

/* The one lab that exit and signals find. */
static struct netlab *open_lab;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof(signals) / sizeof(*signals) };
static struct sigaction before[SIGNALS];

/* Only system calls, so that a signal handler may call it. */
static void namespace_remove(const char *path)
{
	umount2(path, MNT_DETACH);
	unlink(path);
}

static void teardown(struct netlab *lab)
{
	/* A child after fork() inherits the handlers, not the duty. */
	if (!lab || lab->pid != getpid())
		return;
	for (unsigned i = 0; i < lab->namespaces; i++)
		namespace_remove(lab->namespace[i].path);
	unlink(lab->record);
}

static void on_exit_teardown(void)
{
	teardown(open_lab);
}

static void on_signal(int number)
{
	teardown(open_lab);
	for (unsigned i = 0; i < SIGNALS; i++) {
		if (signals[i] == number)
			sigaction(number, &before[i], NULL);
	}
	raise(number);
}

static void signals_set(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	for (unsigned i = 0; i < SIGNALS; i++) {
		sigaction(signals[i], NULL, &before[i]);
		/* nohup and background jobs of a shell ignore it: so do we. */
		if (before[i].sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

static void signals_restore(void)
{
	for (unsigned i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &before[i], NULL);
}

/*
 * One name per line. Only names that we could have made are removed: a record is a file in a
 * directory that others may be able to write to.
 */
static int record_clean(FILE *record)
{
	char line[NETLAB_NAME_MAX + 2], path[NETLAB_PATH_MAX];
	int removed = 0;

	while (fgets(line, sizeof(line), record)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "np", 2) || strchr(line, '/'))
			continue;
		snprintf(path, sizeof(path), NETNS_DIR "/%s", line);
		if (access(path, F_OK))
			continue;
		namespace_remove(path);
		removed++;
	}
	return removed;
}

/* The run directory of that lab's engine, unless that lives yet. */
static void engine_clean(const char *rundir, pid_t lab)
{
	struct rundir dir;
	char name[32];
	char path[RUNDIR_PATH_MAX + 10];

	netlab_engine_name(lab, name);
	if (rundir_find(&dir, rundir, name, NULL) || access(dir.path, F_OK) ||
	    rundir_lock(&dir, NULL))
		return;
	/* What it would have put back was of interfaces that are gone with their namespace. */
	rundir_file(&dir, "restore", path);
	unlink(path);
	rundir_close(&dir);
}

void netlab_engine_name(pid_t lab, char name[32])
{
	snprintf(name, 32, "lab%d", lab);
}

static int record_undo(void *rundir, FILE *record, const char *owner)
{
	int removed = record_clean(record);

	engine_clean(rundir, atoi(owner));
	return removed;
}

int netlab_clean(const char *rundir)
{
	return record_files_undo(rundir, RECORD_PREFIX, record_undo, (void *)rundir);
}

pid_t netlab_other(const char *rundir)
{
	return record_files_other(rundir, RECORD_PREFIX);
}

/* What helps against it. */
static const char *fix(int code)
{
	return code == EACCES || code == EPERM ? ": making namespaces needs root" : "";
}

static int record_open(struct netlab *lab, const char *rundir, struct error *err)
{
	struct error why;
	char name[32];

	snprintf(name, sizeof(name), RECORD_PREFIX "%d", lab->pid);
	lab->record_fd = record_file_open(rundir, name, lab->record, sizeof(lab->record), &why);
	return lab->record_fd < 0
		       ? error_set(err, lab->record_fd, "%s%s", why.text, fix(-lab->record_fd))
		       : 0;
}

int netlab_open(const char *rundir, struct netlab **out, struct error *err)
{
	static bool at_exit;
	struct netlab *lab;
	int ret;

	if (open_lab)
		return error_set(err, -EBUSY, "a lab is open in this process already");
	netlab_clean(rundir);
	lab = calloc(1, sizeof(*lab));
	if (!lab)
		return error_set(err, -ENOMEM, "no memory for a lab");
	lab->pid = getpid();
	ret = record_open(lab, rundir, err);
	if (ret) {
		free(lab);
		return ret;
	}
	open_lab = lab;
	if (!at_exit)
		atexit(on_exit_teardown);
	at_exit = true;
	signals_set();
	*out = lab;
	return 0;
}

void netlab_close(struct netlab *lab)
{
	teardown(lab);
	open_lab = NULL;
	signals_restore();
	for (unsigned i = 0; i < lab->namespaces; i++) {
		struct netlab_namespace *ns = &lab->namespace[i];

		if (ns->fd >= 0)
			close(ns->fd);
		if (ns->route >= 0)
			close(ns->route);
		if (ns->ioctl >= 0)
			close(ns->ioctl);
	}
	close(lab->record_fd);
	free(lab);
}

static void sysctl_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* Without it a run has a few more frames (router solicitations), no more. */
	if (write(fd, text, strlen(text)) < 0)
		(void)!errno;
	close(fd);
}

struct maker {
	struct netlab_namespace *ns;
	int ret;
	const char *what;
};

/* A thread of its own, so that the caller's namespace never changes. */
static void *namespace_make(void *arg)
{
	struct maker *m = arg;
	struct netlab_namespace *ns = m->ns;
	char self[64];

	m->what = "making a network namespace (needs CAP_SYS_ADMIN)";
	if (unshare(CLONE_NEWNET)) {
		m->ret = -errno;
		return NULL;
	}
	m->what = "binding the namespace to its name (needs CAP_SYS_ADMIN)";
	snprintf(self, sizeof(self), "/proc/self/task/%ld/ns/net", syscall(SYS_gettid));
	if (mount(self, ns->path, NULL, MS_BIND, NULL)) {
		m->ret = -errno;
		return NULL;
	}
	m->what = "opening sockets in the namespace";
	ns->fd = open(ns->path, O_RDONLY | O_CLOEXEC);
	ns->route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ns->ioctl = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	m->ret = ns->fd < 0 || ns->route < 0 || ns->ioctl < 0 ? -errno : 0;
	sysctl_write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	sysctl_write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	return NULL;
}

int netlab_namespace_add(struct netlab *lab, const char *role, struct error *err)
{
	struct netlab_namespace *ns = &lab->namespace[lab->namespaces];
	struct maker maker = {.ns = ns};
	pthread_t thread;
	int fd, ret;

	if (lab->namespaces == NETLAB_NAMESPACES)
		return error_set(err, -ENOSPC, "a lab has at most %d namespaces",
				 NETLAB_NAMESPACES);
	*ns = (struct netlab_namespace){.fd = -1, .route = -1, .ioctl = -1};
	snprintf(ns->path, sizeof(ns->path), NETNS_DIR "/np%d%s", lab->pid, role);
	snprintf(ns->name, sizeof(ns->name), "np%d%s", lab->pid, role);
	/* The record first: what it names may not exist, what exists is named. */
	if (dprintf(lab->record_fd, "%s\n", ns->name) < 0)
		return error_set(err, -errno, "%s: %s", lab->record, strerror(errno));
	lab->namespaces++;
	if (mkdir(NETNS_DIR, 0755) && errno != EEXIST)
		return error_set(err, -errno, NETNS_DIR ": %s", strerror(errno));
	fd = open(ns->path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "%s: %s", ns->path, strerror(errno));
	close(fd);
	ret = -pthread_create(&thread, NULL, namespace_make, &maker);
	if (ret)
		return error_set(err, ret, "starting a thread: %s", strerror(-ret));
	pthread_join(thread, NULL);
	if (maker.ret)
		return error_set(err, maker.ret, "%s: %s", maker.what, strerror(-maker.ret));
	ret = netlab_link_up(lab, lab->namespaces - 1, "lo", true, err);
	return ret ? ret : (int)lab->namespaces - 1;
}

int netlab_enter(const struct netlab *lab, unsigned ns, struct error *err)
{
	if (setns(lab->namespace[ns].fd, CLONE_NEWNET))
		return error_set(err, -errno, "%s: entering the namespace: %s",
				 lab->namespace[ns].name, strerror(errno));
	return 0;
}

void netlab_name(const struct netlab *lab, const char *suffix, char name[16])
{
	snprintf(name, 16, "np%d%s", lab->pid, suffix);
}
