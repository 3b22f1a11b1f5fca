/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of rtnetlink turned into requests about another interface; and as lines of a file. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <port/netconf_message.h>

#define FROM 7
#define TO 12

union message {
	struct nlmsghdr header;
	char bytes[NETCONF_REQUEST];
};

static struct nlmsghdr *message_begin(union message *m, uint16_t type)
{
	memset(m, 0, sizeof(*m));
	mnl_nlmsg_put_header(m->bytes)->nlmsg_type = type;
	return &m->header;
}

static void address_make(union message *m, uint8_t family, uint32_t flags, uint32_t valid)
{
	struct nlmsghdr *header = message_begin(m, RTM_NEWADDR);
	struct ifaddrmsg *address = mnl_nlmsg_put_extra_header(header, sizeof(*address));
	struct ifa_cacheinfo cache = {.ifa_valid = valid, .ifa_prefered = valid / 2};

	*address = (struct ifaddrmsg){.ifa_family = family, .ifa_prefixlen = 24, .ifa_index = FROM};
	mnl_attr_put_u32(header, IFA_LOCAL, htonl(0x0a000001));
	mnl_attr_put_u32(header, IFA_FLAGS, flags);
	mnl_attr_put(header, IFA_CACHEINFO, sizeof(cache), &cache);
}

static const struct nlattr *attribute(const union message *m, size_t size, uint16_t type)
{
	const struct nlattr *a, *found = NULL;

	mnl_attr_for_each(a, &m->header, size)
	{
		if (mnl_attr_get_type(a) == type) {
			assert_null(found);
			found = a;
		}
	}
	return found;
}

static int turn(const union message *m, uint32_t age, union message *request)
{
	static const struct netconf conf = {.ifindex = FROM, .name = "eth0"};
	static const struct netconf_target to = {.ifindex = TO, .name = "eth0h"};
	struct netconf_turn how = {.conf = &conf, .to = &to, .age = age};

	memset(request, 0, sizeof(*request));
	return netconf_message_turn(&m->header, &how, mnl_nlmsg_put_header(request->bytes));
}

static uint32_t address_u32(const union message *m, uint16_t type)
{
	return mnl_attr_get_u32(attribute(m, sizeof(struct ifaddrmsg), type));
}

static void addresses(void **state)
{
	const size_t size = sizeof(struct ifaddrmsg);
	static union message m, request;
	const struct ifaddrmsg *header = mnl_nlmsg_get_payload(&request.header);
	const struct ifa_cacheinfo *cache;

	(void)state;
	address_make(&m, AF_INET, IFA_F_PERMANENT | IFA_F_SECONDARY | IFA_F_NOPREFIXROUTE,
		     UINT32_MAX);
	mnl_attr_put_strz(&m.header, IFA_LABEL, "eth0:1");
	assert_true(netconf_message_moves(&m.header, FROM));
	assert_false(netconf_message_moves(&m.header, TO));
	assert_int_equal(turn(&m, 1000, &request), 0);
	assert_int_equal(header->ifa_index, TO);
	assert_int_equal(address_u32(&request, IFA_FLAGS), IFA_F_NOPREFIXROUTE);
	assert_string_equal(mnl_attr_get_str(attribute(&request, size, IFA_LABEL)), "eth0:1");
	cache = mnl_attr_get_payload(attribute(&request, size, IFA_CACHEINFO));
	assert_int_equal(cache->ifa_valid, UINT32_MAX);
	assert_false(netconf_message_settle(&m.header, &request.header));

	/* The interface's own name is no label. */
	address_make(&m, AF_INET, 0, 600);
	mnl_attr_put_strz(&m.header, IFA_LABEL, "eth0");
	assert_int_equal(turn(&m, 100, &request), 0);
	assert_null(attribute(&request, size, IFA_LABEL));
	cache = mnl_attr_get_payload(attribute(&request, size, IFA_CACHEINFO));
	assert_int_equal(cache->ifa_valid, 500);
	assert_int_equal(cache->ifa_prefered, 200);
	assert_int_equal(turn(&m, 300, &request), 0);
	cache = mnl_attr_get_payload(attribute(&request, size, IFA_CACHEINFO));
	assert_int_equal(cache->ifa_prefered, 0);
	assert_int_equal(turn(&m, 600, &request), 1);
}

/* In use until now: not looked for at others, and yet not written at the address. */
static void ipv6_addresses(void **state)
{
	union message m, request;

	(void)state;
	address_make(&m, AF_INET6, IFA_F_TENTATIVE | IFA_F_MANAGETEMPADDR, 600);
	assert_int_equal(turn(&m, 0, &request), 0);
	assert_int_equal(address_u32(&request, IFA_FLAGS), IFA_F_MANAGETEMPADDR | IFA_F_NODAD);
	assert_true(netconf_message_settle(&m.header, &request.header));
	assert_int_equal(address_u32(&request, IFA_FLAGS), IFA_F_MANAGETEMPADDR);
	assert_int_equal(request.header.nlmsg_flags, NLM_F_REPLACE);

	address_make(&m, AF_INET6, IFA_F_NODAD, 600);
	assert_int_equal(turn(&m, 0, &request), 0);
	assert_false(netconf_message_settle(&m.header, &request.header));
	address_make(&m, AF_INET6, IFA_F_DADFAILED, 600);
	assert_false(netconf_message_moves(&m.header, FROM));
}

static struct rtmsg *route_make(union message *m, uint8_t family)
{
	struct nlmsghdr *header = message_begin(m, RTM_NEWROUTE);
	struct rtmsg *route = mnl_nlmsg_put_extra_header(header, sizeof(*route));

	*route = (struct rtmsg){.rtm_family = family,
				.rtm_table = RT_TABLE_MAIN,
				.rtm_type = RTN_UNICAST,
				.rtm_protocol = RTPROT_STATIC,
				.rtm_flags = RTNH_F_ONLINK | RTNH_F_LINKDOWN};
	return route;
}

static void routes(void **state)
{
	const size_t size = sizeof(struct rtmsg);
	static union message m, request;
	const struct rtmsg *header = mnl_nlmsg_get_payload(&request.header);
	struct rta_cacheinfo cache = {.rta_expires = 1000 * (int32_t)sysconf(_SC_CLK_TCK)};
	char text[NETCONF_TEXT];
	struct rtmsg *route;

	(void)state;
	route_make(&m, AF_INET);
	mnl_attr_put_u32(&m.header, RTA_OIF, FROM);
	mnl_attr_put_u32(&m.header, RTA_GATEWAY, htonl(0x0a000002));
	mnl_attr_put_u32(&m.header, RTA_PRIORITY, 100);
	assert_true(netconf_message_moves(&m.header, FROM));
	assert_int_equal(turn(&m, 0, &request), 0);
	assert_int_equal(mnl_attr_get_u32(attribute(&request, size, RTA_OIF)), TO);
	assert_int_equal(mnl_attr_get_u32(attribute(&request, size, RTA_PRIORITY)), 100);
	assert_int_equal(header->rtm_flags, RTNH_F_ONLINK);
	assert_int_equal(request.header.nlmsg_flags, NLM_F_CREATE | NLM_F_APPEND);
	netconf_message_text(&m.header, text);
	assert_string_equal(text, "the default route via 10.0.0.2");

	/* What the kernel makes for an address is its own business, but for the prefix's route. */
	route = route_make(&m, AF_INET);
	mnl_attr_put_u32(&m.header, RTA_OIF, FROM);
	route->rtm_protocol = RTPROT_KERNEL;
	assert_true(netconf_message_moves(&m.header, FROM));
	assert_true(netconf_message_by_kernel(&m.header));
	route->rtm_type = RTN_LOCAL;
	assert_false(netconf_message_moves(&m.header, FROM));

	route_make(&m, AF_INET6);
	mnl_attr_put_u32(&m.header, RTA_OIF, FROM);
	mnl_attr_put(&m.header, RTA_CACHEINFO, sizeof(cache), &cache);
	assert_int_equal(turn(&m, 400, &request), 0);
	assert_null(attribute(&request, size, RTA_CACHEINFO));
	assert_int_equal(mnl_attr_get_u32(attribute(&request, size, RTA_EXPIRES)), 601);
	assert_int_equal(turn(&m, 2000, &request), 1);

	/* By a nexthop object: what the object says is not said again. */
	route_make(&m, AF_INET);
	mnl_attr_put_u32(&m.header, RTA_NH_ID, 9);
	mnl_attr_put_u32(&m.header, RTA_OIF, FROM);
	mnl_attr_put_u32(&m.header, RTA_GATEWAY, htonl(0x0a000002));
	assert_int_equal(turn(&m, 0, &request), 0);
	assert_int_equal(mnl_attr_get_u32(attribute(&request, size, RTA_NH_ID)), 9);
	assert_null(attribute(&request, size, RTA_OIF));
	assert_null(attribute(&request, size, RTA_GATEWAY));
	assert_int_equal(netconf_message_remove(&m.header, &request.header), 1);
}

/* The kernel's route to an address's prefix, and no other. */
static void prefixes(void **state)
{
	static union message address, m;
	struct rtmsg *route = route_make(&m, AF_INET);

	(void)state;
	address_make(&address, AF_INET, 0, 600);
	mnl_attr_put_u32(&address.header, IFA_ADDRESS, htonl(0x0a000101));
	route->rtm_protocol = RTPROT_KERNEL;
	route->rtm_dst_len = 24;
	mnl_attr_put_u32(&m.header, RTA_DST, htonl(0x0a000100));
	assert_true(netconf_message_made_for(&m.header, &address.header));
	route->rtm_dst_len = 23;
	assert_false(netconf_message_made_for(&m.header, &address.header));
	((struct ifaddrmsg *)mnl_nlmsg_get_payload(&address.header))->ifa_prefixlen = 23;
	assert_true(netconf_message_made_for(&m.header, &address.header));
	route->rtm_protocol = RTPROT_STATIC;
	assert_false(netconf_message_made_for(&m.header, &address.header));

	route = route_make(&m, AF_INET);
	route->rtm_protocol = RTPROT_KERNEL;
	route->rtm_dst_len = 23;
	mnl_attr_put_u32(&m.header, RTA_DST, htonl(0x0a000200));
	assert_false(netconf_message_made_for(&m.header, &address.header));
}

/* Of several legs those that are ours. */
static void legs(void **state)
{
	struct rtnexthop legs[3] = {
		{.rtnh_len = sizeof(legs[0]), .rtnh_ifindex = 3, .rtnh_flags = RTNH_F_DEAD},
		{.rtnh_len = sizeof(legs[0]), .rtnh_ifindex = FROM, .rtnh_hops = 4},
		{.rtnh_len = sizeof(legs[0]), .rtnh_ifindex = 5},
	};
	const struct rtnexthop *turned;
	union message m, request;

	(void)state;
	route_make(&m, AF_INET);
	mnl_attr_put(&m.header, RTA_MULTIPATH, sizeof(legs), legs);
	assert_true(netconf_message_moves(&m.header, FROM));
	assert_true(netconf_message_moves(&m.header, 5));
	assert_false(netconf_message_moves(&m.header, TO));
	assert_int_equal(turn(&m, 0, &request), 0);
	assert_int_equal(request.header.nlmsg_flags, NLM_F_CREATE | NLM_F_REPLACE);
	turned = mnl_attr_get_payload(attribute(&request, sizeof(struct rtmsg), RTA_MULTIPATH));
	assert_int_equal(turned[0].rtnh_ifindex, 3);
	assert_int_equal(turned[0].rtnh_flags, 0);
	assert_int_equal(turned[1].rtnh_ifindex, TO);
	assert_int_equal(turned[1].rtnh_hops, 4);
	assert_int_equal(turned[2].rtnh_ifindex, 5);
	/* A leg that says it is longer than there is. */
	legs[1].rtnh_len = 100;
	route_make(&m, AF_INET);
	mnl_attr_put(&m.header, RTA_MULTIPATH, sizeof(legs), legs);
	assert_false(netconf_message_moves(&m.header, FROM));
}

static void neighbours(void **state)
{
	union message m, request;
	struct nlmsghdr *header = message_begin(&m, RTM_NEWNEIGH);
	struct ndmsg *neighbour = mnl_nlmsg_put_extra_header(header, sizeof(*neighbour));
	const struct ndmsg *turned = mnl_nlmsg_get_payload(&request.header);

	(void)state;
	*neighbour = (struct ndmsg){
		.ndm_family = AF_INET, .ndm_ifindex = FROM, .ndm_state = NUD_REACHABLE};
	mnl_attr_put_u32(header, NDA_DST, htonl(0x0a000002));
	assert_true(netconf_message_moves(header, FROM));
	assert_int_equal(turn(&m, 0, &request), 0);
	assert_int_equal(turned->ndm_ifindex, TO);
	assert_int_equal(turned->ndm_state, NUD_STALE);
	assert_int_equal(request.header.nlmsg_flags, NLM_F_CREATE | NLM_F_EXCL);
	neighbour->ndm_state = NUD_PERMANENT;
	assert_int_equal(turn(&m, 0, &request), 0);
	assert_int_equal(turned->ndm_state, NUD_PERMANENT);
	assert_int_equal(request.header.nlmsg_flags, NLM_F_CREATE | NLM_F_REPLACE);
	neighbour->ndm_state = NUD_FAILED;
	assert_false(netconf_message_moves(header, FROM));
}

static void lines(void **state)
{
	struct netconf conf = {.ifindex = FROM, .name = "eth0"}, again = conf;
	struct netconf_item item = {0};
	char line[2048] = "";
	union message m;
	FILE *file;

	(void)state;
	address_make(&m, AF_INET, 0, 600);
	item.message = &m.header;
	conf.item = &item;
	conf.n = 1;
	file = fmemopen(line, sizeof(line), "w");
	netconf_write(&conf, file);
	fclose(file);
	assert_memory_equal(line, "message ", 8);
	assert_int_equal(netconf_scan(&again, line + 8), 0);
	assert_int_equal(again.n, 1);
	assert_memory_equal(again.item[0].message, &m, m.header.nlmsg_len);
	assert_int_equal(netconf_count(&again, RTM_NEWADDR), 1);
	/* Cut short, of another interface, of another kind, or nothing at all. */
	line[strlen(line) - 3] = '\0';
	assert_int_equal(netconf_scan(&again, line + 8), -EINVAL);
	assert_int_equal(netconf_scan(&again, ""), -EINVAL);
	assert_int_equal(netconf_scan(&again, "zz"), -EINVAL);
	assert_int_equal(netconf_scan(&again, "1000000014000000000000000000000000"), -EINVAL);
	netconf_leave_out(&again, RTM_NEWADDR);
	assert_int_equal(again.n, 0);
	netconf_free(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses), cmocka_unit_test(ipv6_addresses),
		cmocka_unit_test(routes),    cmocka_unit_test(prefixes),
		cmocka_unit_test(legs),	     cmocka_unit_test(neighbours),
		cmocka_unit_test(lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
