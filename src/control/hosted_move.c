/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses and routes of a hosted interface: to the TAP, and back to the wire.
 *
 * At every moment one of the two has all: they are added at the one before they are taken from the
 * other. An address that both have is the host's without a break, so connections from and to it
 * live on. The kernel uses what was there first until that is gone.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <control/service.h>

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

	snprintf(h->note, sizeof(h->note), "%s/" HOSTED_NOTE "%s", h->service->rundir.path,
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

/* Routes that could not be moved have lost what they relied on, when the others were. */
static void left_add(struct hosted *h, const struct netconf_target *to)
{
	struct netconf left = {.ifindex = h->before.ifindex, .n = 0};

	if (h->before.ifindex != h->wire.ifindex)
		return;
	snprintf(left.name, sizeof(left.name), "%s", h->before.name);
	left.item = calloc(h->before.n + 1, sizeof(*left.item));
	for (uint32_t i = 0; left.item && i < h->before.n; i++) {
		const struct netconf_item *item = &h->before.item[i];

		if (!item->moved && item->message->nlmsg_type != RTM_NEWADDR)
			left.item[left.n++] = *item;
	}
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
