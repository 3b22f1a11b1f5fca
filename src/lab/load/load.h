/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load: traffic between a client and a server side, and what is measured of it. A workload is one
 * struct load_ops; who runs it (a specification, or `napier bench rr`) and where its two sides are
 * (two namespaces, two hosts) it does not know.
 *
 *      server_start ............................ server_read ... server_stop
 *             client_start (connected; warm-up) ... client_measure ... client_stop
 *
 * Both sides make threads of their own. Each side is controlled by one thread. Functions return 0
 * or a negative errno and fill err.
 */
#ifndef LAB_LOAD_LOAD_H
#define LAB_LOAD_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <napier/error.h>
#include <napier/machine.h>
#include <napier/napi.h>

enum load_kind { LOAD_RR, LOAD_STREAM, LOAD_RRUL, LOAD_KINDS };
enum load_protocol { LOAD_TCP, LOAD_UDP };
enum load_arrivals { LOAD_CONSTANT, LOAD_POISSON };
enum load_direction { LOAD_UP, LOAD_DOWN, LOAD_BOTH }; /* up: from the client to the server */

enum {
	LOAD_SIZES_MAX = 16,
	LOAD_THREADS_MAX = 64,
	LOAD_FLOWS_MAX = 4096,
	LOAD_OUTSTANDING_MAX = 65536,
	LOAD_SIZE_MAX = 1 << 20,
	LOAD_ADDRESS_MAX = 64,
};

/* Both sides have the same; a server refuses what is not its own. Times in ns. */
struct load_config {
	enum load_kind kind;
	enum load_protocol protocol; /* rr, stream */
	unsigned flows;		     /* neper's -F */
	unsigned threads;	     /* of the client, -T */
	unsigned server_threads;     /* 0: as many as the client's */
	int64_t timeout;	     /* of a transaction; 0: 1 s */
	int64_t interval;	     /* of time series; 0: 100 ms */
	uint64_t seed;		     /* of arrivals */

	/* rr */
	uint32_t request_size, response_size; /* -Q, -R */
	double rate; /* of all flows together, requests/s; 0: closed loop. stream: see below */
	enum load_arrivals arrivals;
	unsigned outstanding; /* at most, of all flows; 0: LOAD_OUTSTANDING_MAX. Open loop only */
	bool connect;	      /* a connection for each request */
	int64_t work;	      /* CPU time that the server spends on each request */
	int64_t stall, stall_every; /* the server does nothing for so long, so often; 0: never */

	/* stream; also of rate: datagrams/s of all flows each way, 0: as fast as it goes (UDP) */
	enum load_direction direction;
	unsigned sizes;		       /* message sizes, one after another, each for */
	uint32_t size[LOAD_SIZES_MAX]; /* its share of the duration */
	unsigned batch; /* datagrams sent by one call; 0: 1, or with a rate what is due, up to 64 */

	/* rrul */
	unsigned tcp_flows; /* each way; 0: 4, one each of BE, BK, CS5, EF */
	double probe_rate;  /* UDP and ICMP probes/s of each class; 0: 5 */
	int64_t idle;	    /* probes alone before the load; 0: a quarter of the duration */

	/* Socket options, of the server's sockets, and of the client's with spin. */
	bool server_spins; /* asks again and again instead of sleeping */
	bool client_spins;
	unsigned busy_poll_usecs;  /* SO_BUSY_POLL; with epoll EPIOCSPARAMS where it exists */
	bool prefer_busy_poll;	   /* SO_PREFER_BUSY_POLL */
	unsigned busy_poll_budget; /* SO_BUSY_POLL_BUDGET; 0: unset */
};

/* napier's own UDP sockets in the server's process, in the place of the kernel's (rr over UDP). */
struct load_engine {
	bool used;
	char port[64];	    /* "xdp:eth0" */
	char address[64];   /* "10.78.0.2/24" */
	enum poller poller; /* app: the server's thread polls */
	struct cpuset cpus; /* the engine's */
	char settings[512]; /* as in a configuration file; "" */
};

/* Where one side is. */
struct load_place {
	int netns;			/* descriptor of the namespace; -1: the caller's */
	char address[LOAD_ADDRESS_MAX]; /* the server's, IPv4 or IPv6 */
	uint16_t port;	    /* the server's first; those above it up to 8 may be used too */
	struct cpuset cpus; /* thread i runs on the i-th of them (modulo); empty: anywhere */
	struct load_engine engine;
};

struct load_progress {
	uint64_t done; /* transactions, or datagrams or MBytes received */
	uint64_t lost;
	const char *unit; /* "transactions" */
};

enum { LOAD_TIDS_MAX = 2 * LOAD_THREADS_MAX };

struct load_ops {
	const char *name; /* "rr" */
	/* Fills defaults; refuses what it cannot do, naming the key. */
	int (*check)(struct load_config *config, struct error *err);

	/* Answers when it returns. */
	int (*server_start)(const struct load_config *config, const struct load_place *place,
			    void **server, struct error *err);
	unsigned (*server_threads)(const void *server, pid_t tids[LOAD_TIDS_MAX]);
	/* For json_decref: {"counts": {…}} so far; with engine sockets "polls", "packets" too. */
	json_t *(*server_read)(const void *server);
	/* The same in the end; result may be NULL. */
	void (*server_stop)(void *server, json_t **result);

	/* Runs, unmeasured, when it returns. -EPROTO: the server's parameters are others.
	   -ETIMEDOUT: it does not answer (5 s). */
	int (*client_start)(const struct load_config *config, const struct load_place *place,
			    void **client, struct error *err);
	unsigned (*client_threads)(const void *client, pid_t tids[LOAD_TIDS_MAX]);
	/*
	 * From now on, for so long (ns): fixed wall time, divided into intervals and sizes from
	 * here. Returns at once.
	 */
	void (*client_measure)(void *client, int64_t duration);
	void (*client_progress)(const void *client, struct load_progress *out);
	/*
	 * Ends what client_measure began, also early; awaits what is under way up to the time-out;
	 * *result is a run's "valid", "invalid", "late", "duration_s", "counts", "rates",
	 * "latency", "series", "steps" as docs/results.md has them. Frees the client, whatever it
	 * returns. result NULL: throw it away. -ECONNRESET and the like: the server died; the
	 * result is there all the same, invalid.
	 */
	int (*client_stop)(void *client, json_t **result, struct error *err);
};

extern const struct load_ops load_rr, load_stream, load_rrul;

const struct load_ops *load_ops(enum load_kind kind);

/*
 * What CPU time is divided by, of a run's "counts": transactions that ended in its time; datagrams
 * received; of a stream of bytes, which has no messages, and of rrul kilobytes received. 0: none,
 * or not known.
 */
double load_operations(const struct load_config *config, const json_t *counts);

/*
 * As JSON a configuration has all fields under their names, with the unit where there is one:
 * "timeout_ns", "work_ns"; "size" and its number are one array, "sizes"; choices are words ("rr",
 * "tcp", "poisson", "up"); a time and the sizes are whole numbers, a rate is any.
 *
 * Every key; for json_decref. NULL: no memory.
 */
json_t *load_config_json(const struct load_config *config);
/*
 * What is missing is 0, but for "kind", which has to be there. -EINVAL names the key that is
 * unknown, of another type or out of range. Whether they go together says load_ops' check.
 */
int load_config_read(const json_t *o, struct load_config *out, struct error *err);
/* 0, or -EPROTO and err names the first key in which they differ, with both values. */
int load_config_compare(const struct load_config *ours, const struct load_config *theirs,
			struct error *err);
/*
 * The same of some keys only: "flows is 4 HERE, and 8 THERE". A key of `wanted` that is none of a
 * configuration's matches all.
 */
int load_config_match(const json_t *wanted, const struct load_config *config, const char *here,
		      const char *there, struct error *err);

#endif
