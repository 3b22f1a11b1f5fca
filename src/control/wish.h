/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a person asks of a queue, as `key=value` texts: the same on the command line, in the
 * configuration and in a request.
 */
#ifndef CONTROL_WISH_H
#define CONTROL_WISH_H

#include <napier/engine.h>

#define WISH_KEYS                                                                                  \
	"poller, weight, idle_suspend, cpu, cpus, class, nice, priority, napi_defer_hard_irqs, "   \
	"gro, gro_flush_timeout, irq_suspend_timeout, rps_cpus, rps_flow_cnt"

struct wish {
	bool poller_set, weight_set, idle_suspend_set, cpu_set, cpus_set, class_set, level_set;
	bool napi_defer_hard_irqs_set, gro_flush_timeout_set, irq_suspend_timeout_set;
	bool rps_cpus_set, rps_flow_set, gro_set;
	enum poller poller;
	uint32_t weight;
	uint32_t idle_suspend_usecs; /* 0: never */
	unsigned cpu;
	struct cpuset cpus; /* of the thread; empty: any */
	enum runner_class class;
	int level;
	uint32_t napi_defer_hard_irqs;
	uint32_t gro_flush_timeout;   /* ns */
	uint32_t irq_suspend_timeout; /* ns */
	struct cpuset rps_cpus;	      /* empty: none */
	uint32_t rps_flow_cnt;
	enum gro_setting gro;
};

/* -ENOENT: nobody took this key; err says where it belongs, or what the keys are. */
int wish_unknown(const char *key, const char *keys, struct error *err);

bool wish_empty(const struct wish *wish);

/*
 * Takes one key. -ENOENT: no such key, and err lists the keys. -EINVAL, -ERANGE: the value, or that
 * it contradicts a key taken before.
 */
int wish_key(struct wish *wish, const char *key, const char *value, struct error *err);

/* For the engine. -EINVAL: class=fifo without its priority; class=fair alone means nice=0. */
int wish_settings(const struct wish *wish, struct queue_settings *out, struct error *err);

/* "0-3,8", or "any", which gives the empty set; or an error that names the key. */
int cpus_parse(const char *key, const char *text, struct cpuset *out, struct error *err);

/* Of the engine's own threads: cpus, class, nice and priority of the above. -ENOENT as above. */
#define RUNNER_WISH_KEYS "cpus, class, nice, priority"
int runner_wish_key(struct wish *wish, const char *key, const char *value, struct error *err);
/* -EINVAL: nothing to set, or as wish_settings. */
int runner_wish_settings(const struct wish *wish, struct runner_settings *out, struct error *err);

/* A decimal number that is all of the text and in min..max, or an error that names the key. */
int number_parse(const char *key, const char *text, long long min, long long max, long long *out,
		 struct error *err);
/* The same of a table's size: a power of two in min..max, or 0 for none. */
int table_parse(const char *key, const char *text, long long min, long long max, uint32_t *out,
		struct error *err);

#endif
