/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netlab: network namespaces and links made for one run, and gone after it, however it ends.
 *
 * Everything made here lives in namespaces made here: removing those removes all. Their names are
 * under /run/netns, so that `ip netns exec` and napier's `netns=` find them, and are unique:
 * np<pid><role>. A record in the run directory, locked while its owner lives, names them before
 * they exist; a start that finds an unlocked record (after kill -9) removes what it names.
 *
 * One thread uses a lab; at most one lab is open in a process, since exit and signals have to find
 * it. Functions return 0 or a negative errno and fill err.
 */
#ifndef LAB_NETLAB_H
#define LAB_NETLAB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <napier/error.h>

enum { NETLAB_NAMESPACES = 8, NETLAB_NAME_MAX = 32, NETLAB_PATH_MAX = 64 };

struct netlab_namespace {
	char name[NETLAB_NAME_MAX];
	char path[NETLAB_PATH_MAX]; /* for setns and for `netns=` */
	int fd;			    /* of the namespace */
	int route;		    /* rtnetlink, in it */
	int ioctl;		    /* a socket for ioctl, in it */
};

struct netlab {
	int pid;
	unsigned namespaces;
	struct netlab_namespace namespace[NETLAB_NAMESPACES];
	char record[256];
	int record_fd;
};

/*
 * Removes what killed owners left, then opens an empty lab. rundir is made when it is missing. From
 * here on exit(), SIGINT, SIGTERM and SIGHUP tear down first; a handler that the program has set
 * for those before is called after that. -EBUSY: another lab is open in this process. -EPERM names
 * the capability.
 */
int netlab_open(const char *rundir, struct netlab **out, struct error *err);
void netlab_close(struct netlab *lab);

/*
 * Only what killed owners left, their engines' run directories too; returns how many namespaces
 * that were.
 */
int netlab_clean(const char *rundir);
/* A process that has a lab open just now, and is not this one; 0: there is none. */
pid_t netlab_other(const char *rundir);

/* How an engine that this process runs in its lab is called. */
void netlab_engine_name(pid_t lab, char name[32]);

/* A new namespace, its loopback up, IPv6 off. Returns its index. */
int netlab_namespace_add(struct netlab *lab, const char *role, struct error *err);

/* The calling thread goes into the namespace. */
int netlab_enter(const struct netlab *lab, unsigned ns, struct error *err);

/*
 * A unique interface name: np<pid><suffix>. Interfaces whose names others see (threads named after
 * them) need one.
 */
void netlab_name(const struct netlab *lab, const char *suffix, char name[16]);

/* Both ends are down at first. */
int netlab_veth_add(struct netlab *lab, unsigned ns_a, const char *a, unsigned ns_b, const char *b,
		    struct error *err);
/* With so many queues each way at both ends, all in use; netlab_channels_set takes some away. */
int netlab_veth_queues_add(struct netlab *lab, unsigned ns_a, const char *a, unsigned ns_b,
			   const char *b, unsigned queues, struct error *err);
/* Queues each way that are in use, at most as many as it was made with. As many: no effect. */
int netlab_channels_set(struct netlab *lab, unsigned ns, const char *interface, unsigned queues,
			struct error *err);
int netlab_address_add(struct netlab *lab, unsigned ns, const char *interface, const char *address,
		       unsigned prefix, struct error *err);
int netlab_address_delete(struct netlab *lab, unsigned ns, const char *interface,
			  const char *address, unsigned prefix, struct error *err);
/* IPv4; one that is there already is no error. */
int netlab_route_add(struct netlab *lab, unsigned ns, const char *network, unsigned prefix,
		     const char *gateway, struct error *err);
/* The namespace passes on packets between its interfaces (IPv4). */
int netlab_forwarding_set(struct netlab *lab, unsigned ns, bool on, struct error *err);
int netlab_link_up(struct netlab *lab, unsigned ns, const char *interface, bool up,
		   struct error *err);
int netlab_mac_set(struct netlab *lab, unsigned ns, const char *interface, const uint8_t mac[6],
		   struct error *err);
int netlab_link_delete(struct netlab *lab, unsigned ns, const char *interface, struct error *err);
int netlab_bridge_add(struct netlab *lab, unsigned ns, const char *bridge, struct error *err);
/* bridge NULL: out of its bridge. */
int netlab_bridge_port(struct netlab *lab, unsigned ns, const char *interface, const char *bridge,
		       struct error *err);

enum netlab_offload { NETLAB_TX_CSUM, NETLAB_TSO, NETLAB_GSO, NETLAB_GRO };

/* By ethtool's ioctl. TX_CSUM off takes TSO along. */
int netlab_offload_set(struct netlab *lab, unsigned ns, const char *interface,
		       enum netlab_offload offload, bool on, struct error *err);

/*
 * The kernel's threaded NAPI, by sysfs. On a veth there is a NAPI only with GRO on or an XDP
 * program, so with those off this succeeds and nothing is threaded: the kernel threads
 * napi/<interface>-* tell.
 */
int netlab_threaded_set(struct netlab *lab, unsigned ns, const char *interface, bool on,
			struct error *err);

/* Deferred interrupts: napi_defer_hard_irqs, and gro_flush_timeout in ns. */
int netlab_defer_set(struct netlab *lab, unsigned ns, const char *interface, unsigned defer,
		     unsigned flush, struct error *err);

/* The interface's packets are worked on by this CPU's softirq (RPS); -1: where they arrive. */
int netlab_rps_set(struct netlab *lab, unsigned ns, const char *interface, int cpu,
		   struct error *err);

#endif
