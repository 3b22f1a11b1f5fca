/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * napi_netlink: the kernel's NAPIs, one by one, by its generic netlink family "netdev" (napi-get
 * from Linux 6.8 on, napi-set from 6.13 on). Control context; functions return 0 or a negative
 * errno, -EOPNOTSUPP where this kernel has it not.
 */
#ifndef LAB_RUN_NAPI_NETLINK_H
#define LAB_RUN_NAPI_NETLINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Attributes of a NAPI by their numbers in the kernel's include/uapi/linux/netdev.h (6.18), which
 * is younger than the headers of many a distribution.
 */
enum napi_attribute {
	NAPI_IFINDEX = 1,
	NAPI_ID,
	NAPI_IRQ,
	NAPI_PID,
	NAPI_DEFER_HARD_IRQS,
	NAPI_GRO_FLUSH_TIMEOUT,
	NAPI_IRQ_SUSPEND_TIMEOUT,
	NAPI_THREADED,
	NAPI_ATTRIBUTES,
};

/* Values of NAPI_THREADED; the last one from 6.19 on. */
enum { NAPI_THREADED_OFF, NAPI_THREADED_ON, NAPI_THREADED_BUSY_POLL };

enum { NAPI_SEEN_MAX = 64 };

struct napi_seen {
	uint64_t value[NAPI_ATTRIBUTES];
	bool has[NAPI_ATTRIBUTES];
};

struct napi_netlink {
	int fd; /* -1: closed */
	uint16_t family;
};

#define NAPI_NETLINK_CLOSED ((struct napi_netlink){.fd = -1})

/* In the network namespace of the calling thread, and of that for good. */
int napi_netlink_open(struct napi_netlink *n);
/* A closed one: no effect. */
void napi_netlink_close(struct napi_netlink *n);

/* How many there are, the first `max` of them in `out`; none while the interface is down. */
int napi_netlink_list(const struct napi_netlink *n, unsigned ifindex, struct napi_seen *out,
		      unsigned max);
int napi_netlink_set(const struct napi_netlink *n, uint32_t id, enum napi_attribute attribute,
		     uint64_t value);
/* Whether a NAPI may be set so; changes nothing. */
int napi_netlink_settable(const struct napi_netlink *n, enum napi_attribute attribute,
			  uint64_t value);

#endif
