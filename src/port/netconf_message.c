/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/netconf_message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a program may ask of an address; the rest is the kernel's state of it. */
#define ADDRESS_FLAGS                                                                              \
	(IFA_F_NODAD | IFA_F_HOMEADDRESS | IFA_F_MANAGETEMPADDR | IFA_F_NOPREFIXROUTE |            \
	 IFA_F_MCAUTOJOIN)
#define ROUTE_FLAGS (RTNH_F_ONLINK | RTNH_F_PERVASIVE)
#define LEARNT (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE)

static size_t header_size(const struct nlmsghdr *message)
{
	switch (message->nlmsg_type) {
	case RTM_NEWADDR:
	case RTM_GETADDR:
		return sizeof(struct ifaddrmsg);
	case RTM_NEWROUTE:
	case RTM_GETROUTE:
		return sizeof(struct rtmsg);
	case RTM_NEWNEIGH:
	case RTM_GETNEIGH:
		return sizeof(struct ndmsg);
	case RTM_NEWNEXTHOP:
	case RTM_GETNEXTHOP:
		return sizeof(struct nhmsg);
	}
	return 0;
}

void netconf_message_ask(struct nlmsghdr *request, uint8_t flags)
{
	void *header = mnl_nlmsg_put_extra_header(request, header_size(request));

	if (request->nlmsg_type == RTM_GETNEIGH)
		((struct ndmsg *)header)->ndm_flags = flags;
}

static const struct nlattr *attribute(const struct nlmsghdr *message, uint16_t type)
{
	const struct nlattr *a;

	mnl_attr_for_each(a, message, header_size(message))
	{
		if (mnl_attr_get_type(a) == type)
			return a;
	}
	return NULL;
}

static uint32_t attribute_u32(const struct nlmsghdr *message, uint16_t type, uint32_t none)
{
	const struct nlattr *a = attribute(message, type);

	return a && mnl_attr_get_payload_len(a) >= sizeof(uint32_t) ? mnl_attr_get_u32(a) : none;
}

static uint8_t family(const struct nlmsghdr *message)
{
	return *(const uint8_t *)mnl_nlmsg_get_payload(message); /* first in each header */
}

bool netconf_message_ipv6(const struct nlmsghdr *message)
{
	return family(message) == AF_INET6;
}

static bool legs_have(const struct nlmsghdr *route, int ifindex)
{
	const struct nlattr *legs = attribute(route, RTA_MULTIPATH);
	const struct rtnexthop *leg = legs ? mnl_attr_get_payload(legs) : NULL;
	int left = legs ? mnl_attr_get_payload_len(legs) : 0;

	for (; left >= (int)sizeof(*leg) && RTNH_OK(leg, left);
	     left -= RTNH_ALIGN(leg->rtnh_len), leg = RTNH_NEXT(leg))
		if (leg->rtnh_ifindex == ifindex)
			return true;
	return false;
}

static bool route_moves(const struct nlmsghdr *route, int ifindex)
{
	const struct rtmsg *header = mnl_nlmsg_get_payload(route);

	if (header->rtm_flags & RTM_F_CLONED)
		return false;
	if (header->rtm_protocol == RTPROT_KERNEL && header->rtm_type != RTN_UNICAST)
		return false;
	return (int)attribute_u32(route, RTA_OIF, 0) == ifindex || legs_have(route, ifindex);
}

static bool neighbour_moves(const struct nlmsghdr *message, int ifindex)
{
	const struct ndmsg *header = mnl_nlmsg_get_payload(message);

	return header->ndm_ifindex == ifindex && attribute(message, NDA_DST) &&
	       (header->ndm_flags & NTF_PROXY || header->ndm_state & (NUD_PERMANENT | LEARNT));
}

bool netconf_message_moves(const struct nlmsghdr *message, int ifindex)
{
	size_t size = header_size(message);

	if (!size || mnl_nlmsg_get_payload_len(message) < size ||
	    message->nlmsg_len > NETCONF_REQUEST - 128 ||
	    (family(message) != AF_INET && family(message) != AF_INET6))
		return false;
	switch (message->nlmsg_type) {
	case RTM_NEWADDR:
		return (int)((const struct ifaddrmsg *)mnl_nlmsg_get_payload(message))->ifa_index ==
			       ifindex &&
		       !(attribute_u32(message, IFA_FLAGS, 0) & IFA_F_DADFAILED);
	case RTM_NEWROUTE:
		return route_moves(message, ifindex);
	case RTM_NEWNEIGH:
		return neighbour_moves(message, ifindex);
	case RTM_NEWNEXTHOP:
		return (int)attribute_u32(message, NHA_OIF, 0) == ifindex &&
		       !attribute(message, NHA_FDB);
	}
	return false;
}

bool netconf_message_by_kernel(const struct nlmsghdr *message)
{
	return message->nlmsg_type == RTM_NEWROUTE &&
	       ((const struct rtmsg *)mnl_nlmsg_get_payload(message))->rtm_protocol ==
		       RTPROT_KERNEL;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	return !memcmp(a, b, bits / 8) &&
	       (bits % 8 == 0 || !((a[bits / 8] ^ b[bits / 8]) >> (8 - bits % 8)));
}

bool netconf_message_made_for(const struct nlmsghdr *route, const struct nlmsghdr *address)
{
	const struct rtmsg *r = mnl_nlmsg_get_payload(route);
	const struct ifaddrmsg *a = mnl_nlmsg_get_payload(address);
	const struct nlattr *to = attribute(route, RTA_DST), *from;
	size_t size = family(route) == AF_INET6 ? 16 : 4;

	if (address->nlmsg_type != RTM_NEWADDR || !netconf_message_by_kernel(route) ||
	    family(route) != family(address) || r->rtm_dst_len != a->ifa_prefixlen)
		return false;
	from = attribute(address, IFA_ADDRESS);
	return to && from && mnl_attr_get_payload_len(to) >= size &&
	       mnl_attr_get_payload_len(from) >= size &&
	       same_bits(mnl_attr_get_payload(to), mnl_attr_get_payload(from), r->rtm_dst_len);
}

static bool same_attribute(const struct nlmsghdr *a, const struct nlmsghdr *b, uint16_t type)
{
	const struct nlattr *x = attribute(a, type), *y = attribute(b, type);

	if (!x || !y)
		return x == y;
	return x->nla_len == y->nla_len && !memcmp(mnl_attr_get_payload(x), mnl_attr_get_payload(y),
						   mnl_attr_get_payload_len(x));
}

bool netconf_message_same_route(const struct nlmsghdr *a, const struct nlmsghdr *b)
{
	const struct rtmsg *x = mnl_nlmsg_get_payload(a), *y = mnl_nlmsg_get_payload(b);

	return a->nlmsg_type == RTM_NEWROUTE && b->nlmsg_type == RTM_NEWROUTE &&
	       x->rtm_family == y->rtm_family && x->rtm_dst_len == y->rtm_dst_len &&
	       x->rtm_tos == y->rtm_tos && x->rtm_protocol == y->rtm_protocol &&
	       same_attribute(a, b, RTA_DST) && same_attribute(a, b, RTA_PRIORITY) &&
	       same_attribute(a, b, RTA_TABLE);
}

/* --- text ---------------------------------------------------------------------------------- */

static const char *host_text(const struct nlmsghdr *message, const struct nlattr *a, char *text)
{
	size_t size = family(message) == AF_INET6 ? 16 : 4;

	if (!a || mnl_attr_get_payload_len(a) < size ||
	    !inet_ntop(family(message), mnl_attr_get_payload(a), text, INET6_ADDRSTRLEN))
		strcpy(text, "?");
	return text;
}

static void route_text(const struct nlmsghdr *message, char *text)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(message);
	const struct nlattr *to = attribute(message, RTA_DST);
	const struct nlattr *gateway = attribute(message, RTA_GATEWAY);
	uint32_t table = attribute_u32(message, RTA_TABLE, route->rtm_table);
	char address[INET6_ADDRSTRLEN];
	int n = to ? snprintf(text, NETCONF_TEXT, "route %s/%u", host_text(message, to, address),
			      route->rtm_dst_len)
		   : snprintf(text, NETCONF_TEXT, "the %sdefault route",
			      route->rtm_family == AF_INET6 ? "IPv6 " : "");

	if (gateway)
		n += snprintf(text + n, NETCONF_TEXT - n, " via %s",
			      host_text(message, gateway, address));
	if (attribute(message, RTA_MULTIPATH))
		n += snprintf(text + n, NETCONF_TEXT - n, " of several legs");
	if (table != RT_TABLE_MAIN)
		snprintf(text + n, NETCONF_TEXT - n, " of table %u", table);
}

void netconf_message_text(const struct nlmsghdr *message, char text[NETCONF_TEXT])
{
	const struct nlattr *local = attribute(message, IFA_LOCAL);
	char address[INET6_ADDRSTRLEN];

	switch (message->nlmsg_type) {
	case RTM_NEWADDR:
		local = local ? local : attribute(message, IFA_ADDRESS);
		snprintf(text, NETCONF_TEXT, "address %s/%u", host_text(message, local, address),
			 ((const struct ifaddrmsg *)mnl_nlmsg_get_payload(message))->ifa_prefixlen);
		break;
	case RTM_NEWNEIGH:
		snprintf(text, NETCONF_TEXT, "neighbour %s",
			 host_text(message, attribute(message, NDA_DST), address));
		break;
	case RTM_NEWNEXTHOP:
		snprintf(text, NETCONF_TEXT, "nexthop id %u", attribute_u32(message, NHA_ID, 0));
		break;
	default:
		route_text(message, text);
	}
}

/* --- requests ------------------------------------------------------------------------------ */

/* An empty request with the message's own header, which is the caller's to change. */
static void *request_begin(const struct nlmsghdr *message, struct nlmsghdr *request, uint16_t type,
			   uint16_t flags)
{
	size_t size = header_size(message);
	void *header;

	request->nlmsg_type = type;
	request->nlmsg_flags = flags;
	header = mnl_nlmsg_put_extra_header(request, size);
	memcpy(header, mnl_nlmsg_get_payload(message), size);
	return header;
}

static void attribute_copy(struct nlmsghdr *request, const struct nlattr *a)
{
	/* With its flag of nesting. */
	mnl_attr_put(request, a->nla_type, mnl_attr_get_payload_len(a), mnl_attr_get_payload(a));
}

/* Of what had `life` seconds left: those that it has now, 0: none. */
static uint32_t life_left(uint32_t life, uint32_t age)
{
	if (life == UINT32_MAX)
		return life;
	return life > age ? life - age : 0;
}

static int address_turn(const struct nlmsghdr *message, const struct netconf_turn *turn,
			struct nlmsghdr *request)
{
	struct ifaddrmsg *header =
		request_begin(message, request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
	uint32_t flags = attribute_u32(message, IFA_FLAGS, header->ifa_flags) & ADDRESS_FLAGS;
	struct ifa_cacheinfo cache;
	const struct nlattr *a;

	header->ifa_index = (uint32_t)turn->to->ifindex;
	header->ifa_flags = 0;
	if (header->ifa_family == AF_INET6)
		flags |= IFA_F_NODAD;
	mnl_attr_put_u32(request, IFA_FLAGS, flags);
	mnl_attr_for_each(a, message, sizeof(*header))
	{
		switch (mnl_attr_get_type(a)) {
		case IFA_FLAGS:
			break;
		case IFA_LABEL:
			/* One that was not asked for is the interface's name. */
			if (strncmp(mnl_attr_get_str(a), turn->conf->name,
				    mnl_attr_get_payload_len(a)))
				attribute_copy(request, a);
			break;
		case IFA_CACHEINFO:
			if (mnl_attr_get_payload_len(a) < sizeof(cache))
				break;
			memcpy(&cache, mnl_attr_get_payload(a), sizeof(cache));
			cache.ifa_valid = life_left(cache.ifa_valid, turn->age);
			cache.ifa_prefered = life_left(cache.ifa_prefered, turn->age);
			if (!cache.ifa_valid)
				return 1;
			mnl_attr_put(request, IFA_CACHEINFO, sizeof(cache), &cache);
			break;
		default:
			attribute_copy(request, a);
		}
	}
	return 0;
}

static void legs_turn(const struct nlattr *legs, const struct netconf_turn *turn,
		      struct nlmsghdr *request)
{
	_Alignas(struct rtnexthop) char copy[NETCONF_REQUEST];
	struct rtnexthop *leg = (struct rtnexthop *)copy;
	uint16_t size = mnl_attr_get_payload_len(legs);
	int left = size;

	memcpy(copy, mnl_attr_get_payload(legs), size);
	for (; left >= (int)sizeof(*leg) && RTNH_OK(leg, left);
	     left -= RTNH_ALIGN(leg->rtnh_len), leg = RTNH_NEXT(leg)) {
		leg->rtnh_flags &= ROUTE_FLAGS;
		if (leg->rtnh_ifindex == turn->conf->ifindex)
			leg->rtnh_ifindex = turn->to->ifindex;
	}
	mnl_attr_put(request, RTA_MULTIPATH, size, copy);
}

/* False: it has run out. */
static bool expiry_turn(const struct nlattr *a, const struct netconf_turn *turn,
			struct nlmsghdr *request)
{
	struct rta_cacheinfo cache;
	uint32_t seconds;

	if (mnl_attr_get_payload_len(a) < sizeof(cache))
		return true;
	memcpy(&cache, mnl_attr_get_payload(a), sizeof(cache));
	if (!cache.rta_expires)
		return true;
	if (cache.rta_expires < 0)
		return false;
	seconds = life_left((uint32_t)cache.rta_expires / (uint32_t)sysconf(_SC_CLK_TCK) + 1,
			    turn->age);
	if (seconds)
		mnl_attr_put_u32(request, RTA_EXPIRES, seconds);
	return seconds;
}

static int route_turn(const struct nlmsghdr *message, const struct netconf_turn *turn,
		      struct nlmsghdr *request)
{
	/* The legs that are not ours are there already: as a whole it takes the old one's place. */
	bool legs = attribute(message, RTA_MULTIPATH), object = attribute(message, RTA_NH_ID);
	struct rtmsg *header = request_begin(message, request, RTM_NEWROUTE,
					     NLM_F_CREATE | (legs ? NLM_F_REPLACE : NLM_F_APPEND));
	const struct nlattr *a;

	header->rtm_flags &= ROUTE_FLAGS;
	mnl_attr_for_each(a, message, sizeof(*header))
	{
		switch (mnl_attr_get_type(a)) {
		case RTA_OIF:
			if (!object)
				mnl_attr_put_u32(request, RTA_OIF, (uint32_t)turn->to->ifindex);
			break;
		case RTA_MULTIPATH:
			if (!object)
				legs_turn(a, turn, request);
			break;
		case RTA_GATEWAY:
		case RTA_VIA:
		case RTA_ENCAP:
		case RTA_ENCAP_TYPE:
			/* Those of a nexthop object are the object's. */
			if (!object)
				attribute_copy(request, a);
			break;
		case RTA_CACHEINFO:
			if (!expiry_turn(a, turn, request))
				return 1;
			break;
		default:
			attribute_copy(request, a);
		}
	}
	if (object)
		header->rtm_flags = 0;
	return 0;
}

static int neighbour_turn(const struct nlmsghdr *message, const struct netconf_turn *turn,
			  struct nlmsghdr *request)
{
	struct ndmsg *header = request_begin(message, request, RTM_NEWNEIGH, NLM_F_CREATE);
	const struct nlattr *a;

	header->ndm_ifindex = turn->to->ifindex;
	/* What was learnt saves asking, and is made sure of at first use. */
	if (header->ndm_state & LEARNT)
		header->ndm_state = NUD_STALE;
	request->nlmsg_flags |= header->ndm_state == NUD_STALE ? NLM_F_EXCL : NLM_F_REPLACE;
	mnl_attr_for_each(a, message, sizeof(*header))
	{
		switch (mnl_attr_get_type(a)) {
		case NDA_CACHEINFO:
		case NDA_PROBES:
			break;
		default:
			attribute_copy(request, a);
		}
	}
	return 0;
}

static int nexthop_turn(const struct nlmsghdr *message, const struct netconf_turn *turn,
			struct nlmsghdr *request)
{
	struct nhmsg *header =
		request_begin(message, request, RTM_NEWNEXTHOP, NLM_F_CREATE | NLM_F_REPLACE);
	const struct nlattr *a;

	header->nh_scope = 0; /* the kernel's answer, refused in a request */
	header->nh_flags &= ROUTE_FLAGS;
	mnl_attr_for_each(a, message, sizeof(*header))
	{
		if (mnl_attr_get_type(a) == NHA_OIF)
			mnl_attr_put_u32(request, NHA_OIF, (uint32_t)turn->to->ifindex);
		else
			attribute_copy(request, a);
	}
	return 0;
}

int netconf_message_turn(const struct nlmsghdr *message, const struct netconf_turn *turn,
			 struct nlmsghdr *request)
{
	switch (message->nlmsg_type) {
	case RTM_NEWADDR:
		return address_turn(message, turn, request);
	case RTM_NEWROUTE:
		return route_turn(message, turn, request);
	case RTM_NEWNEIGH:
		return neighbour_turn(message, turn, request);
	default:
		return nexthop_turn(message, turn, request);
	}
}

bool netconf_message_settle(const struct nlmsghdr *message, struct nlmsghdr *request)
{
	uint32_t flags = attribute_u32(message, IFA_FLAGS, 0);
	struct nlattr *a;

	if (message->nlmsg_type != RTM_NEWADDR || family(message) != AF_INET6 ||
	    flags & IFA_F_NODAD)
		return false;
	request->nlmsg_flags = NLM_F_REPLACE;
	mnl_attr_for_each(a, request, sizeof(struct ifaddrmsg))
	{
		if (mnl_attr_get_type(a) == IFA_FLAGS)
			*(uint32_t *)mnl_attr_get_payload(a) = flags & ADDRESS_FLAGS;
	}
	return true;
}

int netconf_message_remove(const struct nlmsghdr *message, struct nlmsghdr *request)
{
	const struct nlattr *a;
	uint16_t type;

	switch (message->nlmsg_type) {
	case RTM_NEWADDR:
		type = RTM_DELADDR;
		break;
	case RTM_NEWROUTE:
		if (attribute(message, RTA_MULTIPATH) || attribute(message, RTA_NH_ID))
			return 1;
		type = RTM_DELROUTE;
		break;
	case RTM_NEWNEIGH:
		type = RTM_DELNEIGH;
		break;
	default:
		return 1;
	}
	request_begin(message, request, type, 0);
	mnl_attr_for_each(a, message, header_size(message))
	{
		if (type != RTM_DELROUTE || mnl_attr_get_type(a) != RTA_CACHEINFO)
			attribute_copy(request, a);
	}
	return 0;
}
