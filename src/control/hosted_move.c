/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses and routes of a hosted interface: to the TAP, back to the wire, and back to the wire
 *for an engine that was killed.
 *
 * At every moment one of the two has all: they are added at the one before they are taken from the
 * other. An address that both have is the host's without a break, so connections from and to it
 * live on. The kernel uses what was there first until that is gone.
 *
 * The note is a text:
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
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <control/service.h>

#define NOTE_PREFIX "hosted-"
#define NOTE_LINE 65536

static const char *port_name(const struct hosted *h)
{
	return h->setup->config.name;
}

static void failure_say(void *arg, const char *line)
{
	const struct hosted *h = arg;

	service_log(h->service, LEVEL_WARNING, "port %s: %s", port_name(h), line);
}

/* In the namespace of both; false: it cannot be entered, which has been said. */
static bool enter(const struct hosted *h, int *back)
{
	struct error err;

	if (!netns_enter(h->setup->config.netns, back, &err))
		return true;
	failure_say((void *)h, err.text);
	return false;
}

/* --- the note ------------------------------------------------------------------------------ */

static int note_print(const struct hosted *h, const char *path)
{
	FILE *file = fopen(path, "we");
	const char *netns = h->setup->config.netns;

	if (!file)
		return -errno;
	fprintf(file,
		"interface %d %s\nnetns %s\ntime %" PRId64 "\naddr_gen_mode %s\n"
		"messages %d %s\n",
		h->wire.ifindex, h->wire.name, netns[0] ? netns : "-",
		machine_now(h->service->machine), h->addr_gen_mode[0] ? h->addr_gen_mode : "-",
		h->before.ifindex, h->before.name);
	netconf_write(&h->before, file);
	return fclose(file) ? -errno : 0;
}

/* Renamed into place: always whole. */
static int note_write(struct hosted *h)
{
	char next[sizeof(h->note) + 4];
	int rc;

	snprintf(h->note, sizeof(h->note), "%s/" NOTE_PREFIX "%s", h->service->rundir.path,
		 port_name(h));
	snprintf(next, sizeof(next), "%s.new", h->note);
	rc = note_print(h, next);
	if (!rc && rename(next, h->note))
		rc = -errno;
	if (rc) {
		unlink(next);
		h->note[0] = '\0';
	}
	return rc;
}

static void note_forget(struct hosted *h)
{
	if (h->note[0])
		unlink(h->note);
	h->note[0] = '\0';
}

/* --- there and back ------------------------------------------------------------------------ */

static void moved_say(const struct hosted *h, const struct netconf *conf, const char *to)
{
	uint32_t addresses = netconf_count(conf, RTM_NEWADDR);
	uint32_t routes = netconf_count(conf, RTM_NEWROUTE);

	if (!addresses && !routes)
		service_log(h->service, LEVEL_INFO,
			    "port %s: %s has no addresses to move: give %s its own (ip addr add "
			    "… dev %s)",
			    port_name(h), conf->name, to, to);
	else
		service_log(h->service, LEVEL_INFO,
			    "port %s: %u address%s and %u route%s of %s are at %s now",
			    port_name(h), addresses, addresses == 1 ? "" : "es", routes,
			    routes == 1 ? "" : "s", conf->name, to);
}

/* What cannot be noted is not moved: it could not be put back. */
static int before_read(struct hosted *h)
{
	int rc;

	netconf_free(&h->before);
	if (ifsysctl_read("ipv6/conf", h->wire.name, "addr_gen_mode", h->addr_gen_mode))
		h->addr_gen_mode[0] = '\0';
	/* After the wire was away it is the TAP's that have to go back to it. */
	if (h->moved)
		rc = netconf_read(h->tap_dev.fd, h->tap_dev.ifindex, h->tap_dev.name, &h->before);
	else
		rc = netconf_read(h->wire.fd, h->wire.ifindex, h->wire.name, &h->before);
	if (!rc)
		rc = note_write(h);
	return rc;
}

static void settings_move(struct hosted *h)
{
	/* So that the wire makes no new one when its link comes up again. */
	ifsysctl_write("ipv6/conf", h->wire.name, "addr_gen_mode", "1");
}

static void conf_move(struct hosted *h, struct netconf *conf)
{
	const struct netconf_target to = {
		.fd = h->tap_dev.fd,
		.ifindex = h->tap_dev.ifindex,
		.name = h->tap_dev.name,
		.say = failure_say,
		.say_arg = h,
	};

	netconf_add(conf, &to, 0);
	netconf_remove(conf, h->wire.fd);
	if (h->addr_gen_mode[0])
		ifsysctl_write("ipv6/conf", h->tap_dev.name, "addr_gen_mode", h->addr_gen_mode);
	moved_say(h, conf, h->tap_dev.name);
}

void hosted_move(struct hosted *h)
{
	struct netconf now;
	int back, rc;

	if (!enter(h, &back))
		return;
	rc = before_read(h);
	if (rc) {
		service_log(h->service, LEVEL_WARNING,
			    "port %s: the addresses of %s stay there, as they cannot be noted: %s",
			    port_name(h), h->wire.name, strerror(-rc));
	} else if (!h->moved) {
		settings_move(h);
		conf_move(h, &h->before);
		h->moved = true;
	} else if (!netconf_read(h->wire.fd, h->wire.ifindex, h->wire.name, &now)) {
		/* Those that it has come back with. */
		settings_move(h);
		conf_move(h, &now);
		netconf_free(&now);
	}
	netns_leave(back);
}

/* Those that could not be moved have lost what they relied on, when the others were. */
static void left_add(struct hosted *h, const struct netconf_target *to)
{
	struct netconf left = {.ifindex = h->before.ifindex, .n = 0};

	if (h->before.ifindex != h->wire.ifindex)
		return;
	snprintf(left.name, sizeof(left.name), "%s", h->before.name);
	left.item = calloc(h->before.n + 1, sizeof(*left.item));
	for (uint32_t i = 0; left.item && i < h->before.n; i++)
		if (!h->before.item[i].moved)
			left.item[left.n++] = h->before.item[i];
	netconf_add(&left, to, 0);
	free(left.item); /* the messages are `before`'s */
}

static bool tap_there(struct hosted *h)
{
	struct netdev_link link;

	return !netdev_link(&h->tap_dev, &link);
}

/* What was added at the TAP meanwhile goes along, and what was taken from it is gone. */
void hosted_return(struct hosted *h)
{
	const struct netconf_target to = {
		.fd = h->wire.fd,
		.ifindex = h->wire.ifindex,
		.name = h->wire.name,
		.say = failure_say,
		.say_arg = h,
	};
	struct netconf now;
	int back;

	if (!h->moved || !enter(h, &back))
		return;
	if (h->wire.fd < 0) {
		service_log(h->service, LEVEL_WARNING,
			    "port %s: %s is not there: its addresses and routes go with %s",
			    port_name(h), h->setup->config.target, h->tap_dev.name);
	} else if (tap_there(h) &&
		   !netconf_read(h->tap_dev.fd, h->tap_dev.ifindex, h->tap_dev.name, &now)) {
		/* What still comes by the TAP has its way back by the wire. */
		ifsysctl_write("ipv4/conf", h->tap_dev.name, "rp_filter", "0");
		netconf_add(&now, &to, 0);
		left_add(h, &to);
		netconf_remove(&now, h->tap_dev.fd);
		moved_say(h, &now, h->wire.name);
		netconf_free(&now);
	} else {
		/* The TAP is gone, and all that it had. */
		netconf_add(&h->before, &to, 0);
		moved_say(h, &h->before, h->wire.name);
	}
	if (h->wire.fd >= 0 && h->addr_gen_mode[0])
		ifsysctl_write("ipv6/conf", h->wire.name, "addr_gen_mode", h->addr_gen_mode);
	note_forget(h);
	h->moved = false;
	netns_leave(back);
}

/* --- after a killed engine ----------------------------------------------------------------- */

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

	return !strncmp(name, NOTE_PREFIX, strlen(NOTE_PREFIX)) &&
	       (size < 4 || strcmp(name + size - 4, ".new"));
}

/* Returns how many there are. */
static unsigned directory_restore(const char *path, int64_t now, const struct note *like,
				  bool do_it)
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
		if (do_it)
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
	    !directory_restore(other.path, now, like, false) || rundir_owner(&other) ||
	    rundir_lock(&other, NULL))
		return;
	directory_restore(other.path, now, like, true);
	rundir_close(&other);
}

void hosted_restore(const struct rundir *dir, int64_t now,
		    void (*log)(void *arg, enum log_level level, const char *line), void *arg)
{
	const struct note like = {.log = log, .log_arg = arg};
	struct dirent *entry;
	DIR *base;

	directory_restore(dir->path, now, &like, true);
	base = opendir(dir->base);
	while (base && (entry = readdir(base))) {
		if (entry->d_name[0] != '.')
			sibling_restore(dir, entry->d_name, now, &like);
	}
	if (base)
		closedir(base);
}
