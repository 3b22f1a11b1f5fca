/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <port/netdev.h>
#include <port/sysfs.h>

#include "lab/run/knob.h"

struct knobs {
	char rundir[KNOB_PATH_MAX]; /* with a record */
	char record[KNOB_PATH_MAX]; /* "": none */
	int record_fd;
	unsigned changes, room;
	struct knob_change *change;
};

static int site_enter(int netns, int *back, struct error *err)
{
	char path[64];

	if (netns < 0)
		path[0] = '\0';
	else
		snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", netns);
	return netns_enter(path, back, err);
}

/* What is of the system is to be seen in the first network namespace only. */
static int system_site_open(struct knob_site *site, struct error *err)
{
	int back;

	site->dir = open("/proc/sys/net/core", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (site->dir >= 0 && !faccessat(site->dir, "netdev_budget", F_OK, 0))
		return 0;
	if (site->dir >= 0)
		close(site->dir);
	if (netns_enter("/proc/1/ns/net", &back, err))
		return err ? err->code : -EPERM;
	site->dir = open("/proc/sys/net/core", O_PATH | O_DIRECTORY | O_CLOEXEC);
	netns_leave(back);
	if (site->dir < 0)
		return error_set(err, -errno, "/proc/sys/net/core: %s", strerror(errno));
	return 0;
}

/* In the interface's namespace. */
static int interface_site_open(struct knob_site *site, bool own, struct error *err)
{
	int rc;

	site->ifindex = if_nametoindex(site->interface);
	if (!site->ifindex)
		return error_set(err, -ENODEV, "interface '%s' is not there (see: ip link)",
				 site->interface);
	site->dir = sysfs_interface_open(site->interface, own);
	if (site->dir < 0)
		return error_set(err, site->dir, "%s: sysfs: %s", site->interface,
				 strerror(-site->dir));
	site->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (site->socket < 0)
		return error_set(err, -errno, "%s: a socket: %s", site->interface, strerror(errno));
	rc = napi_netlink_open(&site->netlink);
	if (rc && rc != -EOPNOTSUPP)
		return error_set(err, rc, "%s: netlink: %s", site->interface, strerror(-rc));
	return 0;
}

int knob_site_open(int netns, const char *interface, struct knob_site *out, struct error *err)
{
	int back, rc;

	*out = (struct knob_site){.dir = -1, .socket = -1, .netlink = NAPI_NETLINK_CLOSED};
	if (interface)
		snprintf(out->interface, sizeof(out->interface), "%s", interface);
	rc = site_enter(netns, &back, err);
	if (rc)
		return rc;
	rc = interface ? interface_site_open(out, netns < 0, err) : system_site_open(out, err);
	netns_leave(back);
	if (rc)
		knob_site_close(out);
	return rc;
}

void knob_site_close(struct knob_site *site)
{
	if (site->dir >= 0)
		close(site->dir);
	if (site->socket >= 0)
		close(site->socket);
	napi_netlink_close(&site->netlink);
	site->dir = site->socket = -1;
}

int knobs_open(const char *rundir, struct knobs **out, struct error *err)
{
	struct knobs *knobs = calloc(1, sizeof(*knobs));

	if (!knobs)
		return error_set(err, -ENOMEM, "no memory for knobs");
	knobs->record_fd = -1;
	if (rundir) {
		snprintf(knobs->rundir, sizeof(knobs->rundir), "%s", rundir);
		knobs_recover(rundir);
		knobs->record_fd = knobs_record_open(rundir, knobs->record, err);
		if (knobs->record_fd < 0) {
			int rc = knobs->record_fd;

			free(knobs);
			return rc;
		}
	}
	*out = knobs;
	return 0;
}

int knob_change_undo(const struct knob_change *change, bool crashed, struct error *err)
{
	const struct knob *knob = change->knob;
	struct knob_state now, before;
	struct knob_site site;
	const char *value;
	int rc = knob_site_open(change->netns, change->interface[0] ? change->interface : NULL,
				&site, err);

	if (rc)
		return rc == -ENODEV ? 0 : rc;
	rc = knob_state_parse(knob, change->before, &before);
	/* An interface of that name but with another index is another one. */
	if (rc || site.ifindex != change->ifindex)
		goto out;
	rc = knob->ops->read(&site, knob, &now, err);
	if (rc)
		goto out;
	if (!now.parts && !before.parts && !strcmp(now.base, before.base))
		goto out;
	value = knob_state_value(&now);
	/* Who killed us may have set it since. Several values: it was not all of it done. */
	if (crashed && value && strcmp(value, change->ours) != 0)
		goto out;
	rc = knob->ops->write(&site, knob, &before, err);
	if (!rc)
		rc = knob->ops->read(&site, knob, &now, err);
	if (!rc && strcmp(now.base, before.base) != 0)
		rc = error_set(err, -EIO, "%s%s%s: %s was written back, %s is read", knob->key,
			       site.interface[0] ? " of " : "", site.interface, before.base,
			       now.base);
	if (!rc)
		rc = 1;
out:
	knob_site_close(&site);
	return rc;
}

int knobs_close(struct knobs *knobs, struct error *err)
{
	int failed = 0;

	for (unsigned i = knobs->changes; i-- > 0;) {
		struct knob_change *change = &knobs->change[i];
		int rc = knob_change_undo(change, false, failed ? NULL : err);

		if (rc < 0 && !failed)
			failed = rc;
		if (change->netns >= 0)
			close(change->netns);
		free(change->before);
	}
	/* With one that could not be restored it stays, and the next start tries again. */
	if (knobs->record[0] && !failed)
		unlink(knobs->record);
	if (knobs->record_fd >= 0)
		close(knobs->record_fd);
	free(knobs->change);
	free(knobs);
	return failed;
}

/* NULL and err: no memory. */
static struct knob_change *change_begin(struct knobs *knobs, int netns, const struct knob *knob,
					const struct knob_site *site,
					const struct knob_state *before, const char *ours,
					struct error *err)
{
	size_t size = (size_t)knob_state_format(before, NULL, 0) + 1;
	struct knob_change *change;

	if (knobs->changes == knobs->room) {
		unsigned room = knobs->room ? 2 * knobs->room : 16;

		change = realloc(knobs->change, room * sizeof(*change));
		if (!change)
			goto none;
		knobs->change = change;
		knobs->room = room;
	}
	change = &knobs->change[knobs->changes];
	*change = (struct knob_change){.knob = knob, .netns = -1, .ifindex = site->ifindex};
	memcpy(change->interface, site->interface, sizeof(change->interface));
	snprintf(change->ours, sizeof(change->ours), "%s", ours);
	change->before = malloc(size);
	if (!change->before)
		goto none;
	knob_state_format(before, change->before, size);
	if (netns >= 0) {
		change->netns = fcntl(netns, F_DUPFD_CLOEXEC, 0);
		if (change->netns < 0) {
			free(change->before);
			error_set(err, -errno, "network namespace: %s", strerror(errno));
			return NULL;
		}
	}
	return change;
none:
	error_set(err, -ENOMEM, "no memory for knobs");
	return NULL;
}

static void change_forget(struct knob_change *change)
{
	if (change->netns >= 0)
		close(change->netns);
	free(change->before);
}

/* 0: it is there as asked. */
static int set_and_read(const struct knob_site *site, const struct knob *knob, const char *value,
			char *observed, struct error *err)
{
	static const struct knob_state none;
	struct knob_state state = none;
	int rc;

	snprintf(state.base, sizeof(state.base), "%s", value);
	rc = knob->ops->write(site, knob, &state, err);
	if (!rc)
		rc = knob->ops->read(site, knob, &state, err);
	if (rc)
		return rc;
	if (knob_state_value(&state))
		snprintf(observed, KNOB_VALUE_MAX, "%s", knob_state_value(&state));
	else
		knob_state_format(&state, observed, KNOB_VALUE_MAX);
	if (strcmp(observed, value) != 0)
		return error_set(err, -EIO, "%s%s%s: %s was set, %s is read back", knob->key,
				 site->interface[0] ? " of " : "", site->interface, value,
				 observed);
	return 0;
}

/*
 * Two that set the same would measure each other's value, and the later one would put back the
 * earlier one's for good.
 */
static int site_free(const struct knobs *knobs, int netns, const struct knob_site *site,
		     const struct knob *knob, struct error *err)
{
	const struct knob_change wish = {.knob = knob, .netns = netns, .ifindex = site->ifindex};
	pid_t owner = knobs->record_fd >= 0 ? knobs_record_owner(knobs->rundir, &wish) : 0;

	if (!owner)
		return 0;
	return error_set(err, -EBUSY,
			 "%s%s%s: process %d has set it for a run of its own: wait "
			 "for its end",
			 knob->key, site->interface[0] ? " of " : "", site->interface, (int)owner);
}

/* *change is the last one of knobs, and counts only when it is finished. */
static int change_record(struct knobs *knobs, int netns, const struct knob_site *site,
			 const struct knob *knob, const char *value, struct knob_state *before,
			 struct knob_change **change, struct error *err)
{
	int rc = site_free(knobs, netns, site, knob, err);

	if (!rc)
		rc = knob->ops->read(site, knob, before, err);
	if (rc)
		return rc;
	*change = change_begin(knobs, netns, knob, site, before, value, err);
	if (!*change)
		return err ? err->code : -ENOMEM;
	rc = knobs->record_fd >= 0 ? knobs_record_add(knobs->record_fd, *change) : 0;
	if (!rc)
		return 0;
	change_forget(*change);
	return error_set(err, rc, "%s: %s", knobs->record, strerror(-rc));
}

/*
 * From here on it is ours, also when it has that value already. What somebody was killed over since
 * we looked is put back first: it is not what was before us.
 */
static int site_claim(struct knobs *knobs, int netns, const struct knob_site *site,
		      const struct knob *knob, const char *value, struct knob_state *before,
		      struct knob_change **change, struct error *err)
{
	int lock, rc;

	if (knobs->record_fd < 0)
		return change_record(knobs, netns, site, knob, value, before, change, err);
	lock = knobs_records_lock(knobs->rundir, err);
	if (lock < 0)
		return lock;
	knobs_records_undo(knobs->rundir);
	rc = change_record(knobs, netns, site, knob, value, before, change, err);
	knobs_records_unlock(knobs->rundir, lock);
	return rc;
}

static int site_set(struct knobs *knobs, int netns, const struct knob_site *site,
		    const struct knob *knob, const char *value, char *observed, struct error *err)
{
	struct knob_state before, now;
	struct knob_change *change;
	int rc = site_claim(knobs, netns, site, knob, value, &before, &change, err);

	if (rc)
		return rc;
	if (!before.parts && !strcmp(before.base, value)) {
		strcpy(observed, value);
		knobs->changes++;
		return 0;
	}
	rc = set_and_read(site, knob, value, observed, err);
	if (!rc) {
		knobs->changes++;
		return 0;
	}
	/* As before, then: a part of it may be done. */
	if (knob->ops->read(site, knob, &now, NULL) || memcmp(&now, &before, sizeof(now)) != 0)
		knob->ops->write(site, knob, &before, NULL);
	change_forget(change);
	return rc;
}

int knob_set(struct knobs *knobs, int netns, const char *interface, const char *key,
	     const char *value, char *observed, struct error *err)
{
	char canonical[KNOB_VALUE_MAX], seen[KNOB_VALUE_MAX] = "";
	const struct knob *knob;
	struct knob_site site;
	bool of_interface;
	int rc = knob_check(key, value, &of_interface, err);

	if (observed)
		observed[0] = '\0';
	if (rc)
		return rc;
	knob = knob_find(key);
	knob_parse(knob, value, canonical, NULL);
	if (of_interface != !!interface)
		return error_set(err, -EINVAL, "%s is %s", key,
				 of_interface ? "of an interface, and none is named"
					      : "of the system, not of an interface");
	rc = knob_site_open(netns, interface, &site, err);
	if (rc)
		return rc;
	rc = site_set(knobs, netns, &site, knob, canonical, seen, err);
	knob_site_close(&site);
	if (observed)
		snprintf(observed, KNOB_TEXT_MAX, "%.*s", KNOB_TEXT_MAX - 1, seen);
	return rc;
}
