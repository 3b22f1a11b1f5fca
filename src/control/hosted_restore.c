/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Back to the wire for an engine that was killed, by its note. That is written by hosted_move.c:
 *
 *	interface IFINDEX NAME		to which it goes back
 *	netns NAME			where that is, "-": where the engine was started
 *	time NS				of the machine's clock, when it was read
 *	addr_gen_mode VALUE		of the interface, before
 *	messages IFINDEX NAME		the interface that the messages are about
 *	message HEX			each, as rtnetlink told it
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <control/hosted.h>
#include <control/rundir.h>

#define NOTE_LINE 65536

struct note {
	int ifindex;
	char name[IFNAMSIZ];
	char netns[64];
	char addr_gen_mode[IFSYSCTL_VALUE];
	int64_t time;
	struct netconf conf;
	void (*log)(void *arg, enum log_level level, const char *line);
	void *log_arg;
};

__attribute__((format(printf, 3, 4))) static void say(const struct note *note, enum log_level level,
						      const char *format, ...)
{
	char line[512];
	va_list arguments;

	if (!note->log)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	note->log(note->log_arg, level, line);
}

static void put_back_say(void *arg, const char *line)
{
	say(arg, LEVEL_WARNING, "%s", line);
}

static bool note_line(struct note *note, const char *line)
{
	if (!strncmp(line, "message ", 8))
		return !netconf_scan(&note->conf, line + 8);
	return sscanf(line, "interface %d %15s", &note->ifindex, note->name) == 2 ||
	       sscanf(line, "netns %63[^\n]", note->netns) == 1 ||
	       sscanf(line, "time %" SCNd64, &note->time) == 1 ||
	       sscanf(line, "addr_gen_mode %127s", note->addr_gen_mode) == 1 ||
	       sscanf(line, "messages %d %15s", &note->conf.ifindex, note->conf.name) == 2;
}

static int note_read(struct note *note, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = malloc(NOTE_LINE);
	bool good = line;

	while (file && good && fgets(line, NOTE_LINE, file))
		good = note_line(note, line);
	free(line);
	if (!file)
		return -errno;
	fclose(file);
	return good && note->name[0] && note->conf.name[0] ? 0 : -EINVAL;
}

/* An interface of that name but with another index is another one. */
static void note_put_back(struct note *note, const struct netdev *dev, int64_t now)
{
	const struct netconf_target to = {
		.fd = dev->fd,
		.ifindex = dev->ifindex,
		.name = dev->name,
		.say = put_back_say,
		.say_arg = note,
	};
	uint32_t age = now > note->time ? (uint32_t)((now - note->time) / NSEC_PER_SEC) : 0;
	uint32_t failed;

	if (dev->ifindex != note->ifindex) {
		say(note, LEVEL_WARNING,
		    "%s is another interface than a killed engine had: the addresses that were its "
		    "host's are not put back",
		    note->name);
		return;
	}
	failed = netconf_add(&note->conf, &to, age);
	if (strcmp(note->addr_gen_mode, "-"))
		ifsysctl_write("ipv6/conf", dev->name, "addr_gen_mode", note->addr_gen_mode);
	say(note, LEVEL_INFO,
	    "%s: %u of %u addresses, routes and neighbours put back after a "
	    "killed engine",
	    note->name, note->conf.n - failed, note->conf.n);
}

static void note_restore(const char *path, int64_t now, const struct note *like)
{
	struct note note = *like;
	struct netdev dev;
	int back, rc = note_read(&note, path);

	if (rc == -EINVAL)
		say(&note, LEVEL_WARNING, "%s: not understood, and left there", path);
	if (!rc) {
		if (!strcmp(note.netns, "-"))
			note.netns[0] = '\0';
		/* A namespace or an interface that is gone takes its addresses along. */
		if (!netns_enter(note.netns, &back, NULL)) {
			if (!netdev_open(&dev, note.name, NULL)) {
				note_put_back(&note, &dev, now);
				netdev_close(&dev);
			}
			netns_leave(back);
		}
		unlink(path);
	}
	netconf_free(&note.conf);
}

static bool is_note(const char *name)
{
	size_t size = strlen(name);

	return !strncmp(name, HOSTED_NOTE, strlen(HOSTED_NOTE)) &&
	       (size < 4 || strcmp(name + size - 4, ".new"));
}

/* Returns how many there are. like: where it logs; NULL: they are only counted. */
static unsigned directory_restore(const char *path, int64_t now, const struct note *like)
{
	char file[RUNDIR_PATH_MAX + 300];
	struct dirent *entry;
	DIR *dir = opendir(path);
	unsigned n = 0;

	while (dir && (entry = readdir(dir))) {
		if (!is_note(entry->d_name))
			continue;
		n++;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		if (like)
			note_restore(file, now, like);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* An engine of another name, which may never be started again; its lock keeps one that is out. */
static void sibling_restore(const struct rundir *dir, const char *name, int64_t now,
			    const struct note *like)
{
	struct rundir other;

	if (rundir_find(&other, dir->base, name, NULL) || !strcmp(other.path, dir->path) ||
	    !directory_restore(other.path, now, NULL) || rundir_owner(&other) ||
	    rundir_lock(&other, NULL))
		return;
	directory_restore(other.path, now, like);
	rundir_close(&other);
}

void hosted_restore(const struct rundir *dir, int64_t now,
		    void (*log)(void *arg, enum log_level level, const char *line), void *arg)
{
	const struct note like = {.log = log, .log_arg = arg};
	struct dirent *entry;
	DIR *base;

	directory_restore(dir->path, now, &like);
	base = opendir(dir->base);
	while (base && (entry = readdir(base))) {
		if (entry->d_name[0] != '.')
			sibling_restore(dir, entry->d_name, now, &like);
	}
	if (base)
		closedir(base);
}

bool hosted_left(const struct rundir *dir)
{
	return directory_restore(dir->path, 0, NULL) > 0;
}
