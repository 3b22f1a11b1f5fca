/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces that are there: looked at, and left as they are. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/ethtool.h>

#include "lab/inside.h"
#include "lab/run/topology.h"

struct look {
	const struct spec_end *spec;
	struct topology_end *end;
	const char *towards; /* NULL, or the address whose way tells the interface */
	bool addressed;	     /* it has to have one */
	struct error *err;
};

static unsigned prefix_of(const struct sockaddr *mask)
{
	const uint8_t *bytes;
	unsigned n = 0, length;

	if (!mask)
		return 0;
	if (mask->sa_family == AF_INET6) {
		bytes = ((const struct sockaddr_in6 *)mask)->sin6_addr.s6_addr;
		length = 16;
	} else {
		bytes = (const void *)&((const struct sockaddr_in *)mask)->sin_addr;
		length = 4;
	}
	for (unsigned i = 0; i < length; i++)
		n += (unsigned)__builtin_popcount(bytes[i]);
	return n;
}

/* False: not of IP. */
static bool text_of(const struct sockaddr *a, char *text, size_t size)
{
	socklen_t length;

	if (!a || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
		return false;
	length = a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	return !getnameinfo(a, length, text, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
}

static bool same_address(const char *a, const char *b)
{
	uint8_t bytes[2][16];
	int family = strchr(a, ':') ? AF_INET6 : AF_INET;

	return inet_pton(family, a, bytes[0]) == 1 && inet_pton(family, b, bytes[1]) == 1 &&
	       !memcmp(bytes[0], bytes[1], family == AF_INET ? 4 : 16);
}

/* The local address by which packets go there; its interface follows from it. */
static int way_look(const char *towards, char local[LOAD_ADDRESS_MAX], struct error *err)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM}, *to;
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);
	int fd, ret = 0;

	if (getaddrinfo(towards, "9", &hints, &to))
		return error_set(err, -EINVAL, "%s: not an address", towards);
	fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) ||
	    getsockname(fd, (void *)&own, &length))
		ret = error_set(err, -errno, "%s: there is no way to it: %s", towards,
				strerror(errno));
	else if (!text_of((void *)&own, local, LOAD_ADDRESS_MAX))
		ret = error_set(err, -EAFNOSUPPORT, "%s: not an address of IP", towards);
	if (fd >= 0)
		close(fd);
	freeaddrinfo(to);
	return ret;
}

/* The address it is to have, or the first that it has; IPv4's come before those of IPv6. */
static bool address_look(struct topology_end *end, const char *wanted)
{
	struct ifaddrs *all, *a;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (a = all; a && !found; a = a->ifa_next) {
		char text[LOAD_ADDRESS_MAX];

		if ((*end->interface && strcmp(a->ifa_name, end->interface)) ||
		    !text_of(a->ifa_addr, text, sizeof(text)) ||
		    (*wanted && !same_address(text, wanted)))
			continue;
		found = true;
		snprintf(end->interface, sizeof(end->interface), "%.15s", a->ifa_name);
		snprintf(end->address, sizeof(end->address), "%s", text);
		end->prefix = prefix_of(a->ifa_netmask);
	}
	freeifaddrs(all);
	return found;
}

static int flags_look(struct topology_end *end, struct error *err)
{
	struct ifreq ifr = {0};
	uint32_t gro = 0;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", end->interface);
	if (ioctl(end->ioctl, SIOCGIFFLAGS, &ifr))
		return error_set(err, -errno, "%s: no such interface%s%s", end->interface,
				 *end->netns_name ? " in " : "", end->netns_name);
	if (!(ifr.ifr_flags & IFF_UP))
		return error_set(err, -ENETDOWN, "%s is down: ip link set %s up", end->interface,
				 end->interface);
	topology_ethtool(end, ETHTOOL_GGRO, &gro);
	end->gro = gro;
	return 0;
}

/* In the end's namespace. */
static int end_look(void *arg)
{
	struct look *l = arg;
	struct topology_end *end = l->end;
	char wanted[LOAD_ADDRESS_MAX];
	int ret = 0;

	end->ioctl = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (end->ioctl < 0)
		return error_set(l->err, -errno, "a socket: %s", strerror(errno));
	snprintf(end->interface, sizeof(end->interface), "%s", l->spec->interface);
	snprintf(wanted, sizeof(wanted), "%.*s", (int)strcspn(l->spec->address, "/"),
		 l->spec->address);
	if (*end->interface)
		ret = flags_look(end, l->err);
	else if (l->towards && !*wanted)
		ret = way_look(l->towards, wanted, l->err);
	if (ret)
		return ret;
	if (!address_look(end, wanted) && l->addressed)
		return error_set(l->err, -EADDRNOTAVAIL,
				 "%s has no address%s%s: ip address add ADDRESS/PREFIX dev %s",
				 *end->interface ? end->interface : "this host", *wanted ? " " : "",
				 wanted, *end->interface ? end->interface : "INTERFACE");
	return *l->spec->interface ? 0 : flags_look(end, l->err);
}

static int end_open(const struct spec_end *spec, const char *towards, bool addressed,
		    struct topology_end *end, struct error *err)
{
	struct look look = {
		.spec = spec,
		.end = end,
		.towards = towards,
		.addressed = addressed,
		.err = err,
	};
	int ret;

	if (!*spec->interface && !towards)
		return error_set(err, -EINVAL,
				 "the specification gives some interfaces, and not all: client, "
				 "server and, for topology middle, both of the middle");
	snprintf(end->netns_name, sizeof(end->netns_name), "%s", spec->netns);
	ret = inside_open(spec->netns, &end->netns, err);
	return ret ? ret : inside_run(end->netns, end_look, &look, err);
}

static int host_find(const char *host, char address[LOAD_ADDRESS_MAX], struct error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	int ret = getaddrinfo(host, NULL, &hints, &found);

	if (ret)
		return error_set(err, -EHOSTUNREACH, "%s: %s", host, gai_strerror(ret));
	if (!text_of(found->ai_addr, address, LOAD_ADDRESS_MAX))
		ret = error_set(err, -EAFNOSUPPORT, "%s: not an address of IP", host);
	freeaddrinfo(found);
	return ret;
}

/* Between two addresses of one namespace packets pass no interface. */
static int apart_check(const struct topology *t, struct error *err)
{
	struct stat a, b;
	const char *own = "/proc/self/ns/net";

	if ((t->client.netns < 0 ? stat(own, &a) : fstat(t->client.netns, &a)) ||
	    (t->server.netns < 0 ? stat(own, &b) : fstat(t->server.netns, &b)))
		return error_set(err, -errno, "%s: %s", own, strerror(errno));
	if (a.st_ino != b.st_ino || a.st_dev != b.st_dev)
		return 0;
	return error_set(err, -EINVAL,
			 "%s and %s are in one network namespace, so packets between them pass no "
			 "interface: move one with ip link set %s netns NAME, or use another host "
			 "(-H)",
			 t->client.interface, t->server.interface, t->client.interface);
}

static int server_find(struct topology *t, const char *host, struct error *err)
{
	const struct spec_end *spec = &t->spec->server;

	/* Where packets go may be another address than where it is controlled. */
	snprintf(t->server.interface, sizeof(t->server.interface), "%s", spec->interface);
	if (!*spec->address)
		return host_find(host, t->server.address, err);
	snprintf(t->server.address, sizeof(t->server.address), "%.*s",
		 (int)strcspn(spec->address, "/"), spec->address);
	if (strchr(spec->address, '/'))
		t->server.prefix = (unsigned)atoi(strchr(spec->address, '/') + 1);
	return 0;
}

int topology_given(struct topology *t, const char *host, struct error *err)
{
	const struct spec *spec = t->spec;
	bool middle = spec->topology == SPEC_MIDDLE;
	int ret = host ? server_find(t, host, err)
		       : end_open(&spec->server, NULL, true, &t->server, err);

	if (!ret)
		ret = end_open(&spec->client, host ? t->server.address : NULL, true, &t->client,
			       err);
	if (!ret && !host)
		ret = apart_check(t, err);
	for (unsigned i = 0; i < 2 && middle && spec->given && !ret; i++) {
		t->duts = i + 1;
		ret = end_open(&spec->middle[i], NULL, false, &t->dut[i], err);
	}
	if (!ret && !middle && !host) {
		t->duts = 1;
		t->dut[0] = t->server;
	}
	return ret;
}
