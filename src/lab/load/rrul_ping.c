/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include <linux/icmp.h>

#include "core/checksum.h"
#include "lab/load/rrul_ping.h"
#include "lab/load/rrul_probe.h"

/* Both families' header of an echo: type, code, checksum, id, sequence. */
struct echo {
	uint8_t type, code;
	uint16_t checksum;
	uint16_t id, sequence;
};

enum { IP_HEADER_MAX = 60 };

/* The kernel passes echo replies only: on the loopback a raw socket sees its own requests, too. */
static int replies_only(const struct rrul_ping *ping)
{
	struct icmp_filter filter = {.data = ~(1u << ICMP_ECHOREPLY)};
	struct icmp6_filter filter6;

	if (ping->family == AF_INET)
		return setsockopt(ping->fd, SOL_RAW, ICMP_FILTER, &filter, sizeof(filter)) ? -errno
											   : 0;
	ICMP6_FILTER_SETBLOCKALL(&filter6);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter6);
	return setsockopt(ping->fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter6, sizeof(filter6))
		       ? -errno
		       : 0;
}

int rrul_ping_open(const struct load_place *place, const struct stream_address *to,
		   struct rrul_ping *out)
{
	int family = to->at.ss_family, ret = 0;
	int protocol = family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	struct stream_address host = *to;

	*out = (struct rrul_ping){.family = family, .id = (uint16_t)getpid()};
	out->fd = stream_socket(place, family, SOCK_DGRAM | SOCK_NONBLOCK, protocol);
	if (out->fd < 0) {
		out->raw = true;
		out->fd = stream_socket(place, family, SOCK_RAW | SOCK_NONBLOCK, protocol);
	}
	if (out->fd < 0)
		return -EACCES;
	/* ICMP has no ports. */
	if (family == AF_INET)
		((struct sockaddr_in *)&host.at)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&host.at)->sin6_port = 0;
	if (connect(out->fd, (void *)&host.at, host.length))
		ret = -errno;
	if (!ret && out->raw)
		ret = replies_only(out);
	if (ret) {
		close(out->fd);
		out->fd = -1;
	}
	return ret;
}

int rrul_ping_send(const struct rrul_ping *ping, uint16_t sequence, const void *payload)
{
	uint8_t packet[sizeof(struct echo) + RRUL_PROBE_SIZE];
	struct echo head = {
		.type = ping->family == AF_INET ? ICMP_ECHO : ICMP6_ECHO_REQUEST,
		.id = htons(ping->id),
		.sequence = htons(sequence),
	};

	memcpy(packet, &head, sizeof(head));
	memcpy(packet + sizeof(head), payload, RRUL_PROBE_SIZE);
	/* A ping socket's id and checksum, and ICMPv6's checksum, are filled in by the kernel. */
	head.checksum = checksum_finish(checksum_add(0, packet, sizeof(packet)));
	memcpy(packet, &head, sizeof(head));
	return send(ping->fd, packet, sizeof(packet), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

bool rrul_ping_receive(const struct rrul_ping *ping, void *payload, size_t size, bool *more)
{
	uint8_t packet[IP_HEADER_MAX + sizeof(struct echo) + RRUL_PROBE_SIZE];
	ssize_t n = recv(ping->fd, packet, sizeof(packet), MSG_DONTWAIT);
	/* IPv4's raw sockets give the IP header, too, whose length is in words. */
	size_t skip = ping->raw && ping->family == AF_INET && n > 0 ? (packet[0] & 15u) * 4 : 0;
	struct echo head;

	*more = n >= 0 || (errno != EAGAIN && errno != EINTR);
	if (n < 0 || (size_t)n < skip + sizeof(head) + size)
		return false;
	memcpy(&head, packet + skip, sizeof(head));
	if (head.type != (ping->family == AF_INET ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY) ||
	    (ping->raw && ntohs(head.id) != ping->id))
		return false;
	memcpy(payload, packet + skip + sizeof(head), size);
	return true;
}
