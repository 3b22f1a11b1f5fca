/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports: where packets come from and go to.
 *
 * A port has one or more queues; each queue has a receive side, polled by its NAPI, and a transmit
 * side, used by anyone under the queue's lock. A kind of port is a struct port_ops: open, receive,
 * transmit, close, and kick where sending needs a system call.
 */
#ifndef NAPIER_PORT_H
#define NAPIER_PORT_H

#include <napier/machine.h>
#include <napier/napi.h>
#include <napier/packet.h>

#pragma GCC visibility push(default)

#define PORT_QUEUES_MAX 64

struct port;
struct port_ops;
struct handler;
struct queue_settings;

/* Text as given by a person: "KIND:TARGET[,key=value…]" (port_config_parse), or filled in. */
struct port_config {
	const struct port_ops *ops; /* a kind of one's own; NULL: found by `kind` */
	char kind[16];
	char target[256];	  /* interface, TAP name, file; its meaning is the kind's */
	char name[PORT_NAME_MAX]; /* how `set` and `show` call it; empty: from the target */
	char netns[64];		  /* name under /run/netns, or a path; empty: the caller's */
	uint32_t queues;	  /* 0: as many as the device has */
	uint32_t ring;		  /* descriptors per ring, a power of two; 0: the kind's default */
	bool disabled;	 /* its NAPIs stay so until napi_enable: not polled before all is set */
	bool tx_napi;	 /* sending has NAPIs of its own: see engine_port_add */
	bool poller_set; /* asks for a poller, in place of what its kind asks for */
	enum poller poller;
	char options[256]; /* what is left of the text: keys that only the kind knows */
};

/* -EINVAL with the text and what is wrong with it. */
int port_config_parse(const char *text, struct port_config *out, struct error *err);
/*
 * Takes `key` out of config->options into value. 1: found, 0: not there. A kind reads its own keys
 * at open and then calls port_options_end, which fails with the names of the keys that are left.
 */
int port_option(struct port_config *config, const char *key, char *value, size_t size);
int port_options_end(const struct port_config *config, const char *known, struct error *err);

enum port_feature {
	PORT_TX_CSUM = 1 << 0, /* transmit takes PACKET_CSUM_PARTIAL */
	PORT_TX_GSO = 1 << 1,  /* transmit takes PACKET_GSO, chains included */
	PORT_FINITE = 1 << 2,  /* its input ends by itself (a file) */
	PORT_SINK = 1 << 3,    /* it has no input at all */
	PORT_INSIDE = 1 << 4,  /* its other end is a program's that embeds the engine */
	PORT_TX_USO = 1 << 5,  /* with PORT_TX_GSO: UDP, too (VIRTIO_NET_HDR_GSO_UDP_L4) */
};

enum port_state {
	PORT_DOWN, /* the device is down, or has no carrier: not sent to */
	PORT_UP,
	PORT_GONE,  /* the device is away; opened again when it comes back */
	PORT_ENDED, /* PORT_FINITE: all input has been received */
};

const char *port_state_name(enum port_state state);

struct port_queue {
	struct port *port;
	uint32_t index;
	struct irq irq;	   /* the kind sets fd in open; the engine sets the handler and attaches */
	void *private;	   /* the kind's */
	struct napi *napi; /* set by the engine before the first receive */
	struct transmit_counters *transmit; /* likewise; written under `lock` */
	struct lock *lock;		    /* of the transmit side; the engine's */
	struct kernel_record *kernel;	    /* written by the kind, in control context */
	struct napi *_Atomic tx; /* whose poll kicks; NULL: who sends does. The engine's */
};

/*
 * Contexts: open and close in control context, with no NAPI of the port running. receive by the
 * holder of the queue's NAPI, one at a time. transmit and kick under the queue's lock.
 */
struct port_ops {
	const char *kind;
	const char *help; /* one line: target and options */

	/*
	 * The poller that suits it, for one whose polls are long, or have another reason. What a
	 * person sets for the port comes first, then what its port_config asks for, then this; the
	 * engine's default is for kinds that do not mind.
	 */
	bool poller_set;
	enum poller poller;

	/*
	 * A bit (1 << POLLER_…) for each poller that can poll it; 0: all can. One that can do
	 * without interrupts only, say, has busy-poll alone. Asking for another one fails, and a
	 * default that is not among them gives way to its own wish, or to the first of them.
	 */
	uint32_t pollers;

	/*
	 * Opens the device, sets port->queues, features, mode and private data, and each queue's
	 * irq.fd (or leaves -1 for irq_raise and irq_arm). Nothing stays open when it fails.
	 * config->netns has been entered by the caller for the time of the call.
	 */
	int (*open)(struct port *port, struct port_config *config, struct error *err);

	/*
	 * Fills v with up to n received packets, which the caller then owns. Fewer than n means
	 * that the queue was empty: packets that come later fire the queue's irq. A kind that
	 * returns fewer for another reason (no frames left) arms the irq. Sets data, len, total,
	 * flags and next of each packet; the caller sets port, queue and stamp (PACKET_STAMPED: the
	 * kind has set the stamp).
	 */
	uint32_t (*receive)(struct port_queue *queue, struct context *context, struct packet **v,
			    uint32_t n);

	/*
	 * In place of receive, for a kind whose NAPIs do other work than take packets from a
	 * device (those that the engine opens itself): all of a NAPI's poll, up to budget units of
	 * work. Less than budget means: complete me. NULL: receive, then the port's handler.
	 */
	uint32_t (*poll)(struct napi *napi, struct context *context, uint32_t budget);

	/*
	 * Takes the first k of n packets, owning those, and returns k; the caller tries once more
	 * after a kick and drops the rest as DROP_TX_FULL. A packet that can never be sent is taken
	 * and dropped with packet_drop; what was sent it counts with port_sent, once per call.
	 */
	uint32_t (*transmit)(struct port_queue *queue, struct context *context, struct packet **v,
			     uint32_t n);

	/*
	 * Makes what was taken go out; called once per poll of who sent it, or by the queue's TX
	 * NAPI. NULL when transmit does that.
	 */
	void (*kick)(struct port_queue *queue, struct context *context);

	/*
	 * Control context, port open, at its first poller and after each change: `poller` polls
	 * the queue from now on, with these settings. For a kind that has the kernel's share of the
	 * work done there too. What settings ask of the kernel and cannot be had is an error, and
	 * fills err; the port works on without. NULL: it does not matter to this kind.
	 */
	int (*poller_changed)(struct port_queue *queue, enum poller poller,
			      const struct queue_settings *settings, struct error *err);

	/* Control context, once a second of the machine's time, port open. May be NULL. */
	void (*tick)(struct port *port, int64_t now);

	/* Frees everything; packets that the device held are given back to the pool. */
	void (*close)(struct port *port, struct context *context);
};

struct port {
	const struct port_ops *ops;
	struct engine *engine;
	struct pool *pool;
	struct machine *machine;
	char name[PORT_NAME_MAX];
	char spec[PORT_SPEC_MAX]; /* set by open when it differs from what was asked (fallback) */
	char mode[32];		  /* set by open: how, in a few words */
	uint16_t index;
	uint16_t mtu; /* bytes without the Ethernet header; 0: unknown */
	uint32_t features;
	uint8_t address[6];	  /* MAC, zero: none */
	int ifindex;		  /* in its namespace, 0: none */
	_Atomic int state;	  /* enum port_state */
	_Atomic uint32_t telling; /* port_state_set's own */
	uint32_t queues;
	struct port_queue *queue;	 /* `queues` of them, allocated by port_queues_alloc */
	struct handler *_Atomic handler; /* where received packets go */
	void *private;			 /* the kind's */
};

/* Any context. What is sent on it can arrive: a port whose input has ended still sends. */
static inline bool port_sendable(const struct port *port)
{
	int state = atomic_load_explicit((_Atomic int *)&port->state, memory_order_relaxed);

	return state == PORT_UP || state == PORT_ENDED;
}

/* In open: -EINVAL, -ENOMEM. Freed by the engine after close (or after a failed open). */
int port_queues_alloc(struct port *port, uint32_t queues);
/* In open or later: a change that people should hear of, as one line. */
__attribute__((format(printf, 2, 3))) void port_warn(struct port *port, const char *format, ...);
/* Any context; wakes those who wait for a port to end. */
void port_state_set(struct port *port, enum port_state state);

/*
 * Packet path, from a handler. Owns v: sends on the port, or drops and counts. The kick comes at
 * the end of the poll. n <= PACKET_VECTOR_MAX.
 */
void port_transmit(struct context *context, struct port *port, struct packet **v, uint32_t n);

/* Packet path, from transmit: this many packets and bytes have been sent or will be at the kick. */
static inline void port_sent(struct port_queue *queue, struct context *context, uint32_t packets,
			     uint64_t bytes)
{
	counter_add(&context->counters->transmitted, packets);
	counter_add(&queue->transmit->packets, packets);
	counter_add(&queue->transmit->bytes, bytes);
}

/* Packet path. Owns v: counts under the reason and frees. */
void packet_drop(struct context *context, struct packet **v, uint32_t n, enum drop_reason reason);
/* Packet path. v was given to a host or an application, which took a copy: counts and frees. */
void packet_deliver(struct context *context, struct packet **v, uint32_t n);

/*
 * Registers a kind of port so that "KIND:TARGET" finds it; the built-in ones are there already.
 * Before engines are made. -EEXIST, -ENOSPC.
 */
int port_kind_register(const struct port_ops *ops);
const struct port_ops *port_kind_find(const char *kind);
/* The i-th, NULL after the last. */
const struct port_ops *port_kind_at(unsigned i);

/*
 * mem: ports inside the process. What the engine transmits on one is received by its peer: another
 * mem port of the same engine, or the application through these two calls. One that names its peer
 * (peer=PORT) is down until that is there, and one whose peer goes is down until it has another.
 */
/*
 * Control context: each receives what the other transmits. -EINVAL: not both mem ports of one
 * engine. -EBUSY: one has a peer.
 */
int mem_port_wire(struct port *a, struct port *b);
/* Application context, one caller at a time per direction and queue 0. v is owned up to the
 * returned count. */
uint32_t mem_port_send(struct port *port, struct packet **v, uint32_t n);
uint32_t mem_port_receive(struct port *port, struct packet **v, uint32_t n);

#pragma GCC visibility pop

#endif
