/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters, and the file in which others read them.
 *
 * Every counter has one writer at a time, so an increment is a plain add; readers in any thread or
 * process see whole values. An engine with a run directory keeps them in a mapped file there
 * (`counters`), laid out as struct counters_file: reading never disturbs the data path. Record
 * positions are fixed for the life of a port; a record is valid while `in_use` is not 0. A queue
 * that comes back under its port's name goes on counting where it ended, as long as the engine
 * lives and has had no more queues than it has records.
 */
#ifndef NAPIER_COUNTERS_H
#define NAPIER_COUNTERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

typedef _Atomic uint64_t counter;

/* The one writer's increment: no lock prefix. */
static inline void counter_add(counter *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline uint64_t counter_read(const counter *c)
{
	return atomic_load_explicit((counter *)c, memory_order_relaxed);
}

/*
 * Why a packet ended inside the engine: constant, name (in `show` and in JSON), text.
 * A new reason is added at the end and gets its counter and its name from here.
 */
#define DROP_REASONS(X)                                                                            \
	X(POOL_EMPTY, "pool_empty", "no free frame to receive or copy into")                       \
	X(TOO_LONG, "too_long", "longer than the port or a frame can take")                        \
	X(TOO_SHORT, "too_short", "shorter than an Ethernet header")                               \
	X(NO_HANDLER, "no_handler", "the port it came in by has no handler")                       \
	X(TX_FULL, "tx_full", "the transmit ring of the port was full")                            \
	X(TX_DOWN, "tx_down", "the port to send on was down or closed")                            \
	X(TX_ERROR, "tx_error", "the kernel refused to send it")                                   \
	X(GSO, "gso", "a super-packet for a port that takes no super-packets")                     \
	X(BRIDGE_SAME_PORT, "bridge_same_port", "the destination is behind the port it came from") \
	X(BRIDGE_NO_PORT, "bridge_no_port", "the bridge has no other port to flood to")            \
	X(BRIDGE_VLAN, "bridge_vlan", "the VLAN is not allowed on the port")                       \
	X(BRIDGE_SOURCE, "bridge_source", "the source address is a group address or zero")         \
	X(BRIDGE_RESERVED, "bridge_reserved", "a link-local group address, never forwarded")       \
	X(HANDLER, "handler", "dropped by a handler on purpose")                                   \
	X(CHECKSUM, "checksum", "a checksum left to be completed, at a place outside of it")       \
	X(BACKLOG_FULL, "backlog_full", "the backlog of the CPU it was steered to was full")       \
	X(FLOW_LIMIT, "flow_limit", "its flow had filled most of a backlog that was filling up")   \
	X(PORT_REMOVED, "port_removed", "the port was removed while it stood in a backlog")        \
	X(UDP_NOT_OURS, "udp_not_ours", "neither for an address of the udp handler nor UDP")       \
	X(UDP_MALFORMED, "udp_malformed", "its headers contradict each other, or its length")      \
	X(UDP_CHECKSUM, "udp_checksum", "a wrong IP, UDP or ICMP checksum")                        \
	X(UDP_FRAGMENT, "udp_fragment", "a fragment, which the udp handler does not put together") \
	X(UDP_NO_SOCKET, "udp_no_socket", "no socket has the UDP port it was sent to")             \
	X(UDP_QUEUE_FULL, "udp_queue_full", "the receive queue of its socket was full")            \
	X(UDP_NEIGHBOUR, "udp_neighbour", "the neighbour to send it to was not found")             \
	X(UDP_ECHO_LIMIT, "udp_echo_limit", "more pings than are answered in a second")

enum drop_reason {
#define X(constant, name, text) DROP_##constant,
	DROP_REASONS(X)
#undef X
		DROP_MAX
};

const char *drop_name(enum drop_reason reason);
const char *drop_text(enum drop_reason reason);

/* Room for reasons to come, so that the layout of the file keeps. */
#define DROP_COUNTERS 48

/* Why a softirq round ended with work left. */
enum squeeze { SQUEEZE_BUDGET, SQUEEZE_TIME, SQUEEZE_MAX };

/* Wake latencies by powers of two: under 256 ns, under 512 ns, …; the last: above a second. */
#define WAKE_BUCKETS 24

static inline unsigned wake_bucket(int64_t ns)
{
	unsigned bucket = ns < 256 ? 0 : 56 - (unsigned)__builtin_clzll((uint64_t)ns);

	return bucket < WAKE_BUCKETS ? bucket : WAKE_BUCKETS - 1;
}

/*
 * So many percent of the wakes in these buckets took at most this long, ns: the upper end of a
 * bucket, so up to twice what it was. 0: there are none; INT64_MAX: in the last bucket.
 */
int64_t wake_percentile(const uint64_t buckets[WAKE_BUCKETS], unsigned percent);

/*
 * One per NAPI; the poller of the moment writes it. At rest, and exactly (I3):
 *     received + cloned = transmitted + delivered + steered + merged + sum of dropped
 * While running the difference is what is held (in the vector being worked, by GRO, or in
 * handlers).
 */
struct napi_counters {
	counter received; /* packets */
	counter received_bytes;
	counter cloned;	     /* copies made here, for flooding */
	counter transmitted; /* accepted by a port */
	counter delivered;   /* given to a host or an application */
	counter dropped[DROP_COUNTERS];
	counter polls;
	counter full_polls; /* polls that used the whole weight */
	counter empty_polls;
	counter completes;
	counter missed;		       /* scheduled again while it was scheduled */
	counter squeezed[SQUEEZE_MAX]; /* still on the list when its softirq round was squeezed */
	counter switches;	       /* of the poller */
	counter poll_ns;	       /* spent in polls */
	counter lost;	      /* by the device or the kernel, for want of room, before `received` */
	counter kernel_polls; /* system calls that polled the kernel's NAPI below */
	counter empty_ns;     /* of that, in polls that found nothing */
	/* From being scheduled to the poll that follows, of those that nobody held before. */
	counter wakes;
	counter wake_ns;
	counter wake_max_ns;
	counter wake[WAKE_BUCKETS]; /* how many of them took how long: wake_bucket() */
	counter steered;	    /* put into a backlog, whose NAPI then receives them */
	counter merged;		    /* put by GRO into a super-packet, behind its head */
} __attribute__((aligned(64)));

/* One per queue; written under the lock of the transmit queue. */
struct transmit_counters {
	counter packets;
	counter bytes;
	counter kicks; /* system calls to make the kernel send */
	counter full;  /* vectors that did not fit whole */
} __attribute__((aligned(64)));

/* Whether the kernel's own NAPI below a queue is polled by who polls the queue. */
enum kernel_poll {
	KERNEL_POLL_NONE,      /* it is the kernel's, in its softirq */
	KERNEL_POLL_PREFERRED, /* the socket prefers to be busy-polled */
	KERNEL_POLL_REFUSED,   /* that was asked of the kernel in vain */
};

const char *kernel_poll_name(enum kernel_poll poll);

#define KERNEL_UNKNOWN UINT64_MAX /* not asked, or cannot be read */

/* One per queue, of the kernel below it; control writes it. */
struct kernel_record {
	_Atomic uint32_t poll;	  /* enum kernel_poll */
	_Atomic uint32_t napi_id; /* of the kernel's NAPI; 0: not known (yet) */
	/* Of the interface, so the same for all queues of a port. */
	_Atomic uint64_t defer_hard_irqs_asked, defer_hard_irqs;
	_Atomic uint64_t gro_flush_timeout_asked, gro_flush_timeout; /* ns */
};

/*
 * Why work was left to ksoftirqd: the limit on restarts, the one on their time, and the policies
 * looped and ksoftirqd-running.
 */
enum punt { PUNT_RESTARTS, PUNT_TIME, PUNT_LOOPED, PUNT_RUNNING, PUNT_MAX };

/* "restarts", "time", … */
const char *punt_name(enum punt cause);

/* One per engine CPU; written by whoever runs that CPU's softirq. */
struct cpu_counters {
	counter interrupts;
	counter rounds; /* of the poll list */
	counter time_squeeze[SQUEEZE_MAX];
	counter restarts;	  /* rounds that followed on another at once */
	counter punted[PUNT_MAX]; /* hand-overs to ksoftirqd */
	counter ksoftirqd_rounds;
} __attribute__((aligned(64)));

/* One per engine CPU; written under the lock of its backlog. */
struct backlog_counters {
	counter dropped;      /* by whoever found it full */
	counter flow_limit;   /* dropped by the flow limit */
	counter received_rps; /* times that another CPU's poll scheduled it */
	counter length;	      /* packets that stand in it: no counter, but the last value */
} __attribute__((aligned(64)));

#define COUNTERS_MAGIC UINT64_C(0x7265697061e6e61) /* "napier" and a byte that is no text */
#define COUNTERS_VERSION 3

#define PORT_NAME_MAX 32
#define PORT_SPEC_MAX 96
#define COUNTERS_WORKERS 64

/* The first part of a record changes rarely and is written by the control side. */
struct queue_record {
	_Atomic uint32_t in_use;
	uint32_t port; /* index */
	uint32_t queue;
	char port_name[PORT_NAME_MAX];
	char port_spec[PORT_SPEC_MAX]; /* "xdp:eth0" as opened, after any fallback */
	char mode[32];		       /* "native, copy", "vnet header", … */
	char state[32];		       /* "up", "down", "gone" and the like */
	_Atomic uint32_t poller_asked; /* enum poller, POLLER_AUTO too */
	_Atomic uint32_t poller_observed;
	_Atomic uint32_t disabled;
	_Atomic int32_t tid;	     /* of the runner that polls, 0 when there is none of its own */
	_Atomic uint32_t cpu;	     /* engine CPU of its softirq */
	_Atomic uint32_t cpu_pinned; /* that was asked for; else the engine chose it */
	char why[112];		     /* poller auto: its last decision, with figures; or empty */
	_Atomic uint32_t weight;
	_Atomic uint32_t idle_suspend; /* us, busy-poll; 0: never */
	_Atomic int64_t switch_ns;     /* the last switch took that long */
	_Atomic int64_t switch_max_ns;
	counter stuck;		     /* times that the watchdog found it scheduled but not polled */
	_Atomic int32_t class_asked; /* enum runner_class, of its thread */
	_Atomic int32_t level_asked;
	char cpus_asked[64]; /* of its thread, as cpuset_format writes; empty: the engine's */
	char rps_cpus[64];   /* likewise; empty: not steered by it */
	_Atomic uint32_t rps_flow_cnt;
	/* poller app: the thread that polled last, -1 where it has no number; 0: softirq did */
	_Atomic int32_t app_tid;
	_Atomic uint32_t irq_suspend_timeout; /* ns */
	/* What holds for this NAPI; the kernel's are in `kernel`. */
	_Atomic uint32_t defer_hard_irqs;
	_Atomic uint32_t gro_flush_timeout; /* ns */
	_Atomic uint32_t gro_asked;	    /* enum gro_setting */
	_Atomic uint32_t gro;		    /* what is merged now, enum gro_type */
	struct napi_counters napi;
	struct transmit_counters transmit;
	struct kernel_record kernel;
} __attribute__((aligned(64)));

struct cpu_record {
	_Atomic uint32_t in_use;
	uint32_t cpu;
	_Atomic int32_t irq_tid;
	_Atomic int32_t ksoftirqd_tid;
	_Atomic uint32_t deferral; /* enum deferral */
	_Atomic int32_t busy_tid;  /* 0: there is none now */
	/* What was asked for them: enum runner_class and its level. */
	_Atomic int32_t irq_class, irq_level;
	_Atomic int32_t ksoftirqd_class, ksoftirqd_level;
	_Atomic int32_t busy_class, busy_level;
	_Atomic uint32_t looped_ticks;
	_Atomic uint32_t away; /* the engine works without it for now */
	char reserved[8];
	struct cpu_counters counters;
	struct backlog_counters backlog;
} __attribute__((aligned(64)));

struct counters_file {
	uint64_t magic;
	uint32_t version;
	uint32_t size; /* of the whole file, bytes */
	int32_t pid;
	uint32_t cpus;	 /* records at cpu_offset */
	uint32_t queues; /* records at queue_offset */
	uint32_t cpu_offset, queue_offset;
	uint32_t cpu_size, queue_size;	 /* of one record */
	int64_t started;		 /* CLOCK_REALTIME, ns */
	_Atomic uint32_t poller_default; /* enum poller, of NAPIs to come */
	_Atomic uint32_t weight;	 /* dev_weight */
	_Atomic uint32_t budget;	 /* netdev_budget */
	_Atomic uint32_t budget_usecs;	 /* netdev_budget_usecs */
	_Atomic uint32_t max_backlog;	 /* netdev_max_backlog */
	_Atomic uint32_t flow_limit;
	_Atomic uint32_t sock_flow_entries; /* rps_sock_flow_entries */
	_Atomic uint32_t symmetric_hash;
	_Atomic uint32_t busy_poll, busy_read; /* us, of sockets to come */
	_Atomic uint32_t gro_normal_batch;
	char engine[32];
	char version_text[32];
	/* Of the workqueue's kworker/N, in this order; 0 where there is none now. */
	_Atomic int32_t worker_tid[COUNTERS_WORKERS];
	_Atomic int32_t worker_class, worker_level; /* asked */
	char worker_cpus[64];			    /* asked; empty: the engine's */
} __attribute__((aligned(64)));

/* i < file->queues, file->cpus. */
static inline const struct queue_record *counters_queue_at(const struct counters_file *file,
							   uint32_t i)
{
	return (const struct queue_record *)((const char *)file + file->queue_offset +
					     (size_t)i * file->queue_size);
}

static inline const struct cpu_record *counters_cpu_at(const struct counters_file *file, uint32_t i)
{
	return (const struct cpu_record *)((const char *)file + file->cpu_offset +
					   (size_t)i * file->cpu_size);
}

#pragma GCC visibility pop

#endif
