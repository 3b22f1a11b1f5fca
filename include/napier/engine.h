/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: ports, handlers, CPUs and pollers on one machine.
 *
 * All calls here are control context: from any thread that is not a runner, serialised inside.
 */
#ifndef NAPIER_ENGINE_H
#define NAPIER_ENGINE_H

#include <napier/handler.h>
#include <napier/machine.h>
#include <napier/napi.h>
#include <napier/port.h>

#pragma GCC visibility push(default)

#define RSS_KEY_SIZE 40 /* bytes: of the flow hash's key */

enum log_level { LEVEL_ERROR, LEVEL_WARNING, LEVEL_INFO };

/*
 * When softirq work of an engine CPU is left to its ksoftirqd, an ordinary runner there, which the
 * scheduler weighs against others.
 *   restart-limit       after `restarts` rounds in a row or restart_usecs, as the kernel does
 *   never               not at all: irq/N lets its equals run after that, and goes on itself
 *   looped              as restart-limit; and at once, when work is raised less than so many ticks
 *                       after a round was last restarted on this CPU: 1 is the same tick
 *   ksoftirqd-running   as restart-limit; and at once, while ksoftirqd has been woken and has not
 *                       gone to sleep (Linux from 4.9 until 2023)
 */
enum deferral {
	DEFERRAL_RESTART_LIMIT,
	DEFERRAL_NEVER,
	DEFERRAL_LOOPED,
	DEFERRAL_KSOFTIRQD_RUNNING,
	DEFERRAL_MAX
};

#define LOOPED_TICKS_DEFAULT 2
#define GRO_NORMAL_BATCH 64
#define LOOPED_TICKS_MAX 1000000
#define HZ_MAX 10000

const char *deferral_name(enum deferral deferral);
/* "never", "looped:2"; ticks is the window of looped. Returns what snprintf would. */
int deferral_format(enum deferral deferral, uint32_t ticks, char *text, size_t size);
/* And back; "looped" alone is "looped:2". -EINVAL; -ERANGE: the window. */
int deferral_parse(const char *text, enum deferral *deferral, uint32_t *ticks);
/* All of them for an error text. */
const char *deferral_list(void);

/* The kernel's names and defaults; 0 in any field means its default. */
struct engine_config {
	const char *name;	     /* "default" */
	struct machine *machine;     /* outlives the engine */
	struct cpuset cpus;	     /* engine CPUs; empty: those the process may run on */
	uint32_t frames;	     /* of the pool; 0: 16384 */
	uint32_t frame_size;	     /* 2048 */
	uint32_t ports_max;	     /* 64 */
	uint32_t queues_max;	     /* 256 over all ports */
	enum poller poller;	     /* of NAPIs to come */
	uint32_t weight;	     /* dev_weight: packets a poll, 64 */
	uint32_t budget;	     /* netdev_budget: packets a softirq round, 300 */
	uint32_t budget_usecs;	     /* netdev_budget_usecs: 2000 us a round */
	uint32_t idle_suspend_usecs; /* of NAPIs to come: busy-poll rests after so long; 0: never */
	/* Of sockets to come, us: how long an application looks for packets before it sleeps. */
	uint32_t busy_poll;	    /* in poll and epoll; 0: not at all */
	uint32_t busy_read;	    /* in a receive call; 0: not at all */
	uint32_t restarts;	    /* rounds in a row before ksoftirqd takes over, 10 */
	uint32_t restart_usecs;	    /* or this long, 2000 us */
	enum deferral deferral;	    /* of every engine CPU */
	uint32_t looped_ticks;	    /* the window of looped, 2 */
	uint32_t hz;		    /* ticks a second, of that window; 250 */
	struct placement interrupt; /* class and level of irq/N; cpus is ignored */
	uint32_t workers;	    /* of the workqueue; 0: one per engine CPU, two at least */
	struct placement worker;    /* of kworker/N; no CPUs: the engine's */
	uint32_t max_backlog;	    /* netdev_max_backlog: packets in a CPU's backlog, 1000 */
	uint32_t flow_limit;	    /* buckets of a backlog's flow limit; 0: none */
	uint32_t sock_flow_entries; /* rps_sock_flow_entries: a power of two; 0: no RFS */
	uint32_t gro_normal_batch;  /* packets that go on from GRO together, GRO_NORMAL_BATCH */
	bool symmetric_hash;	    /* both directions of a connection have one flow hash */
	bool rss_key_set;	    /* else the flow hash's key is drawn */
	uint8_t rss_key[RSS_KEY_SIZE];
	struct placement ksoftirqd; /* class and level of ksoftirqd/N; cpus is ignored */
	int64_t poll_ns;   /* virtual machine only: what a poll costs by itself; 0: 200 ns */
	int64_t packet_ns; /* virtual machine only: what a polled packet costs; 0: 100 ns */
	const char *counters_path; /* file for struct counters_file; NULL: memory of its own */
	/*
	 * File in which the engine notes what it changes outside of its process and has to put
	 * back, so that engine_restore can do it for one that was killed. NULL: not noted.
	 */
	const char *restore_path;
	void (*log)(void *arg, enum log_level level, const char *line); /* NULL: nowhere */
	void *log_arg;
};

/* -EINVAL, -ERANGE, -ENAMETOOLONG (a path of more than 255 bytes), -ENOMEM, and what files say. */
int engine_create(const struct engine_config *config, struct engine **out, struct error *err);
/*
 * Closes all ports; returns when every runner has ended, and every application's thread is outside
 * of napi_busy_loop. Handlers made for it are destroyed. A context that is still open is good for
 * engine_context_close only, and that not beside this call.
 */
void engine_destroy(struct engine *engine);

/*
 * Puts back what an engine that was killed has noted in this file, and removes it; what somebody
 * has changed since is left alone. No file: nothing. One line a value to log, which may be NULL.
 */
void engine_restore(const char *path, void (*log)(void *arg, enum log_level, const char *line),
		    void *arg);

struct machine *engine_machine(struct engine *engine);
struct pool *engine_pool(struct engine *engine);
const struct counters_file *engine_counters(struct engine *engine);

/*
 * Opens a port and (unless config->disabled) enables its NAPIs, each with the poller that is set
 * for it (engine_queue_set, also before), or that config asks for, or its kind, or else the
 * default. Its packets are dropped (DROP_NO_HANDLER) until it has a handler. -EEXIST: the name is
 * taken. -EOPNOTSUPP: a poller is set or asked for that cannot poll it.
 *
 * With config->tx_napi a second port NAME-tx comes with it, of the kind `tx` and with as many
 * queues, whose NAPIs make what was sent on the first go out: after a poll that has sent, the TX
 * NAPI is scheduled instead of the kick, so that any poller on any CPU does that part. -EINVAL: the
 * kind has no kick. Removing that port gives the kick back to who sends.
 */
int engine_port_add(struct engine *engine, const struct port_config *config, struct port **out,
		    struct error *err);
/*
 * Likewise, and asks for the poller workqueue whatever config says: for ports whose polls are long,
 * so that they are spread over the workers and nobody else on their CPU waits for them. What is set
 * for the port comes first here as well.
 */
int engine_port_add_threaded(struct engine *engine, const struct port_config *config,
			     struct port **out, struct error *err);
/*
 * Disables its NAPIs, takes it from its handler, closes it, frees it. -ETIMEDOUT: a poll did not
 * end within the bound (5 s for all of its queues); then nothing has been freed and the port stays,
 * its queues before that one disabled.
 */
int engine_port_remove(struct engine *engine, struct port *port, struct error *err);
/*
 * By name; or the i-th by index, i < ports_max. NULL: there is none. Alone of all calls these are
 * not serialised: not beside adding or removing ports, which could free what they return.
 */
struct port *engine_port_find(struct engine *engine, const char *name);
struct port *engine_port_at(struct engine *engine, uint32_t i);

/* As it was added; for adding it again. */
const struct port_config *engine_port_config(const struct port *port);

/* In a handler's create, ops and engine set: the engine ticks and destroys it from now on. -ENOSPC.
 */
int engine_handler_register(struct engine *engine, struct handler *handler);
/*
 * NULL takes the handler away. Returns when no runner is inside the old one with this port, which
 * has had what GRO held, unless nobody came to poll for a second. -EINVAL: nothing is received
 * there (a kind with a poll of its own; as for rps_* and gro of its queues).
 */
int engine_handler_set(struct engine *engine, struct port *port, struct handler *handler,
		       struct error *err);

/* Whether received packets are merged: as the handler wants it, not at all, or all that can be. */
enum gro_setting { GRO_AUTO, GRO_OFF, GRO_ON, GRO_SETTING_MAX };

/* "auto", "off", "on"; and back: -EINVAL. */
const char *gro_setting_name(enum gro_setting setting);
int gro_setting_parse(const char *name, enum gro_setting *out);
/* Of a sum of enum gro_type: "none", "tcp", "udp", "tcp,udp". */
const char *gro_types_name(unsigned types);

/*
 * What is set for a queue is kept by port name and queue number: it holds for a queue that does
 * not exist yet, and again when a port is taken away and comes back. queue < 0 means all queues of
 * the port, and those to come.
 */
struct queue_settings {
	bool poller_set, weight_set, cpu_set;
	bool idle_suspend_set;
	bool rps_cpus_set, rps_flow_set;
	bool cpus_set, class_set; /* what of placement: cpus; class and level */
	bool irq_suspend_timeout_set;
	bool gro_set;
	/* Of the whole port: queue < 0 only. */
	bool napi_defer_hard_irqs_set, gro_flush_timeout_set;
	enum poller poller;
	uint32_t weight;
	uint32_t idle_suspend_usecs; /* busy-poll goes back to interrupts; 0: never */
	unsigned cpu;		     /* engine CPU of its softirq */
	struct cpuset rps_cpus;	     /* engine CPUs that its packets are steered to; empty: none */
	uint32_t rps_flow_cnt;	     /* entries of its flow table, a power of two; 0: no RFS */
	struct placement placement;  /* of its thread */
	/*
	 * After a poll the interrupt stays off, and gro_flush_timeout later there is another one,
	 * so many times in a row without a packet. 0 either: at once on again. The same values are
	 * the kernel's, of the interface below, while the port has a queue that is busy-polled or
	 * polled by an application.
	 */
	uint32_t napi_defer_hard_irqs;
	uint32_t gro_flush_timeout; /* ns */
	enum gro_setting gro;
	/* Poller app: so long with an application that prefers to poll and has found packets. */
	uint32_t irq_suspend_timeout; /* ns; 0: as when it has found none */
};

/* The most that can be asked: longer waits would only hide that nobody polls. */
#define NAPI_DEFER_HARD_IRQS_MAX 1000000
#define GRO_FLUSH_TIMEOUT_MAX 1000000000   /* ns */
#define IRQ_SUSPEND_TIMEOUT_MAX 1000000000 /* ns */

/*
 * 1024 of them are kept; then one more takes the place of the oldest whose port is not there, which
 * is logged. -ENOSPC: all ports are there. All or nothing. -ETIMEDOUT: a poll did not end within 1
 * s, or those of all queues within 5 s. *took (may be NULL): the longest switch, ns.
 */
int engine_queue_set(struct engine *engine, const char *port, int queue,
		     const struct queue_settings *settings, int64_t *took, struct error *err);
/*
 * Moves the NAPI of one queue to another engine CPU, with the poller that it has. Not a setting: it
 * is not kept for when the port comes back, and a CPU that was set is no longer where it is.
 * -ENOENT: no such queue. -EINVAL: not an engine CPU, or a NAPI that belongs where it is.
 */
int engine_queue_move(struct engine *engine, const char *port, uint32_t queue, unsigned cpu,
		      int64_t *took, struct error *err);
/* The default for NAPIs to come. */
int engine_poller_default_set(struct engine *engine, enum poller poller);

/* Any context. The defaults of sockets, us. */
uint32_t engine_busy_poll(const struct engine *engine);
uint32_t engine_busy_read(const struct engine *engine);

/* Of one engine CPU; what is not set stays. */
struct cpu_settings {
	bool deferral_set;
	enum deferral deferral;
	uint32_t looped_ticks; /* with looped: 1..LOOPED_TICKS_MAX */
};

#define ENGINE_BUDGET_MAX 1000000
#define ENGINE_BUDGET_USECS_MAX 1000000
#define ENGINE_BUSY_POLL_MAX 1000000

#define RPS_FLOW_CNT_MAX (1u << 20)
#define ENGINE_BACKLOG_MAX (1u << 20)
#define ENGINE_FLOW_LIMIT_MAX (1u << 16)
#define ENGINE_SOCK_FLOWS_MAX (1u << 22)

/* Of the engine as a whole, with the kernel's names; what is not set stays. */
struct engine_settings {
	bool weight_set, budget_set, budget_usecs_set;
	uint32_t weight;       /* dev_weight: of NAPIs for which none is set, there or to come */
	uint32_t budget;       /* netdev_budget: 1..ENGINE_BUDGET_MAX */
	uint32_t budget_usecs; /* netdev_budget_usecs: 1..ENGINE_BUDGET_USECS_MAX */
	bool busy_poll_set, busy_read_set;
	uint32_t busy_poll, busy_read; /* us: 0..ENGINE_BUSY_POLL_MAX; of sockets to come */
	bool gro_normal_batch_set;
	uint32_t gro_normal_batch; /* 1..PACKET_VECTOR_MAX */
	bool max_backlog_set, flow_limit_set, sock_flow_entries_set, symmetric_hash_set;
	uint32_t max_backlog;	    /* netdev_max_backlog: 1..ENGINE_BACKLOG_MAX */
	uint32_t flow_limit;	    /* a power of two up to ENGINE_FLOW_LIMIT_MAX; 0: none */
	uint32_t sock_flow_entries; /* rps_sock_flow_entries: likewise, ENGINE_SOCK_FLOWS_MAX */
	bool symmetric_hash;	    /* queues that steer pause until the backlogs are empty */
	struct cpu_settings cpus;   /* of every engine CPU, also one that is away */
	/*
	 * The CPUs it works on, of those it was created with; empty: all. The NAPIs, steered flows
	 * and threads of one that is left out go to the others, with what they hold, in order;
	 * what is set for it is kept, and holds again when it is back. NAPIs for which no CPU is
	 * set are spread anew, also those that engine_queue_move had moved. Bounded by 5 s.
	 */
	bool on_cpus_set;
	struct cpuset on_cpus;
};

/*
 * In force at the next round, without a pause in polling but for symmetric_hash. All or nothing.
 * -ERANGE, -EINVAL, -ENOMEM; for a CPU that is not the engine's -ENODEV; -ETIMEDOUT: a poll did not
 * end, or a backlog did not become empty, within a second.
 */
int engine_set(struct engine *engine, const struct engine_settings *settings, struct error *err);
int engine_cpu_set(struct engine *engine, unsigned cpu, const struct cpu_settings *settings,
		   struct error *err);

/* The engine's own threads: one of each per engine CPU, but for the workers, which are all alike.
 */
enum runner_role { ROLE_IRQ, ROLE_KSOFTIRQD, ROLE_BUSY, ROLE_KWORKER, ROLE_MAX };

/* "irq", "ksoftirqd", "busy", "kworker"; and back: -EINVAL. */
const char *runner_role_name(enum runner_role role);
int runner_role_parse(const char *name, enum runner_role *out);

struct runner_settings {
	bool class_set, cpus_set; /* cpus: of workers only; empty means the engine's */
	struct placement placement;
};

/*
 * Places irq/CPU, ksoftirqd/CPU, busy/CPU, or all workers (cpu is ignored), now and when they come
 * again. What is not set stays. -ENODEV: not an engine CPU; -EINVAL; -ERANGE; -EPERM: all is as it
 * was.
 */
int engine_runner_set(struct engine *engine, enum runner_role role, unsigned cpu,
		      const struct runner_settings *settings, struct error *err);

/*
 * A context for a thread of the application's own that allocates, sends or frees packets. It polls
 * nothing, so what it has sent with port_transmit goes out at its context_kick(), at the latest
 * when it is closed. Ports that it sends on are not removed meanwhile.
 */
int engine_context_open(struct engine *engine, struct context **out);
void context_kick(struct context *context);
void engine_context_close(struct context *context);

/* Every packet is free again, or is named in err: for tests and at stop, nothing running. */
int engine_check(struct engine *engine, struct error *err);

#pragma GCC visibility pop

#endif
