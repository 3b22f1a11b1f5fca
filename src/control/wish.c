/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <control/engine_wish.h>
#include <control/wish.h>

int number_parse(const char *key, const char *text, long long min, long long max, long long *out,
		 struct error *err)
{
	const char *digits = *text == '-' ? text + 1 : text;
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (!isdigit((unsigned char)*digits) || *end)
		return error_set(err, -EINVAL, "%s=%.40s: not a number; it is %lld..%lld", key,
				 text, min, max);
	if (errno == ERANGE || value < min || value > max)
		return error_set(err, -ERANGE, "%s=%.40s: out of range %lld..%lld", key, text, min,
				 max);
	*out = value;
	return 0;
}

int cpus_parse(const char *key, const char *text, struct cpuset *out, struct error *err)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = strcmp(text, "any") ? cpuset_parse(text, out) : 0;
	if (rc == -ERANGE)
		return error_set(err, rc, "%s=%.40s: out of range 0..%d", key, text, CPU_MAX - 1);
	if (rc)
		return error_set(err, rc, "%s=%.40s: not a list of CPUs such as 0-3,8, or any", key,
				 text);
	return 0;
}

int table_parse(const char *key, const char *text, long long min, long long max, uint32_t *out,
		struct error *err)
{
	long long n;
	int rc = number_parse(key, text, 0, max, &n, err);

	if (rc)
		return rc;
	if (n && (n & (n - 1) || n < min))
		return error_set(err, -EINVAL,
				 "%s=%.40s: must be a power of two, %lld to %lld, or 0 for none",
				 key, text, min, max);
	*out = (uint32_t)n;
	return 0;
}

bool wish_empty(const struct wish *wish)
{
	return !(wish->poller_set || wish->weight_set || wish->idle_suspend_set || wish->cpu_set ||
		 wish->cpus_set || wish->class_set || wish->level_set ||
		 wish->napi_defer_hard_irqs_set || wish->gro_flush_timeout_set ||
		 wish->irq_suspend_timeout_set || wish->rps_cpus_set || wish->rps_flow_set ||
		 wish->gro_set);
}

static int poller_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	(void)key;
	if (poller_parse(value, &wish->poller))
		return error_set(err, -EINVAL, "unknown poller \"%.40s\": the pollers are %s",
				 value, poller_list());
	wish->poller_set = true;
	return 0;
}

static int weight_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	long long n;
	int rc = number_parse(key, value, 1, NAPI_WEIGHT_MAX, &n, err);

	if (rc)
		return rc;
	wish->weight = (uint32_t)n;
	wish->weight_set = true;
	return 0;
}

/* Who writes 10ms is told what is counted. */
static int time_parse(const char *key, const char *text, const char *unit, long long max,
		      long long *out, struct error *err)
{
	int rc = number_parse(key, text, 0, max, out, err);

	if (rc == -EINVAL)
		error_set(err, rc, "%s=%.40s: not a number of %s; it is 0..%lld", key, text, unit,
			  max);
	return rc;
}

/* An hour at most: it is there to save CPU time, not to be forgotten. */
static int idle_suspend_key(struct wish *wish, const char *key, const char *value,
			    struct error *err)
{
	long long n;
	int rc = time_parse(key, value, "us", 3600000000, &n, err);

	if (rc)
		return rc;
	wish->idle_suspend_usecs = (uint32_t)n;
	wish->idle_suspend_set = true;
	return 0;
}

static int napi_defer_hard_irqs_key(struct wish *wish, const char *key, const char *value,
				    struct error *err)
{
	long long n;
	int rc = number_parse(key, value, 0, NAPI_DEFER_HARD_IRQS_MAX, &n, err);

	if (rc)
		return rc;
	wish->napi_defer_hard_irqs = (uint32_t)n;
	wish->napi_defer_hard_irqs_set = true;
	return 0;
}

static int gro_flush_timeout_key(struct wish *wish, const char *key, const char *value,
				 struct error *err)
{
	long long n;
	int rc = time_parse(key, value, "ns", GRO_FLUSH_TIMEOUT_MAX, &n, err);

	if (rc)
		return rc;
	wish->gro_flush_timeout = (uint32_t)n;
	wish->gro_flush_timeout_set = true;
	return 0;
}

static int irq_suspend_timeout_key(struct wish *wish, const char *key, const char *value,
				   struct error *err)
{
	long long n;
	int rc = time_parse(key, value, "ns", IRQ_SUSPEND_TIMEOUT_MAX, &n, err);

	if (rc)
		return rc;
	wish->irq_suspend_timeout = (uint32_t)n;
	wish->irq_suspend_timeout_set = true;
	return 0;
}

static int cpu_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	long long n;
	int rc = number_parse(key, value, 0, CPU_MAX - 1, &n, err);

	if (rc)
		return rc;
	wish->cpu = (unsigned)n;
	wish->cpu_set = true;
	return 0;
}

static int cpus_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	int rc = cpus_parse(key, value, &wish->cpus, err);

	if (!rc)
		wish->cpus_set = true;
	return rc;
}

static int rps_cpus_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	bool none = !strcmp(value, "none");
	int rc;

	memset(&wish->rps_cpus, 0, sizeof(wish->rps_cpus));
	rc = none ? 0 : cpuset_parse(value, &wish->rps_cpus);
	if (rc == -ERANGE)
		return error_set(err, rc, "%s=%.40s: out of range 0..%d", key, value, CPU_MAX - 1);
	if (rc || (!none && cpuset_empty(&wish->rps_cpus)))
		return error_set(err, -EINVAL,
				 "%s=%.40s: not a list of CPUs such as 0-3,8, or none", key, value);
	wish->rps_cpus_set = true;
	return 0;
}

static int rps_flow_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	int rc = table_parse(key, value, 1, RPS_FLOW_CNT_MAX, &wish->rps_flow_cnt, err);

	wish->rps_flow_set |= !rc;
	return rc;
}

static int gro_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	if (gro_setting_parse(value, &wish->gro))
		return error_set(err, -EINVAL, "%s=%.40s: must be auto, on or off", key, value);
	wish->gro_set = true;
	return 0;
}

/* nice says class=fair and priority says class=fifo; a class said before must agree. */
static int class_take(struct wish *wish, enum runner_class class, struct error *err)
{
	if (wish->class_set && wish->class != class)
		return error_set(err, -EINVAL,
				 "class=fair goes with nice, class=fifo with "
				 "priority: they cannot be asked together");
	wish->class = class;
	wish->class_set = true;
	return 0;
}

static int class_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	(void)key;
	if (!strcmp(value, "fair"))
		return class_take(wish, RUNNER_FAIR, err);
	if (!strcmp(value, "fifo"))
		return class_take(wish, RUNNER_FIFO, err);
	return error_set(err, -EINVAL, "unknown class \"%.40s\": the classes are fair, fifo",
			 value);
}

static int level_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	bool nice = !strcmp(key, "nice");
	long long n;
	int rc = number_parse(key, value, nice ? -20 : 1, nice ? 19 : 99, &n, err);

	if (!rc)
		rc = class_take(wish, nice ? RUNNER_FAIR : RUNNER_FIFO, err);
	if (rc)
		return rc;
	wish->level = (int)n;
	wish->level_set = true;
	return 0;
}

int wish_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	static const struct {
		const char *name;
		int (*take)(struct wish *wish, const char *key, const char *value,
			    struct error *err);
	} keys[] = {
		{"poller", poller_key},
		{"weight", weight_key},
		{"idle_suspend", idle_suspend_key},
		{"cpu", cpu_key},
		{"cpus", cpus_key},
		{"class", class_key},
		{"nice", level_key},
		{"priority", level_key},
		{"napi_defer_hard_irqs", napi_defer_hard_irqs_key},
		{"gro", gro_key},
		{"gro_flush_timeout", gro_flush_timeout_key},
		{"irq_suspend_timeout", irq_suspend_timeout_key},
		{"rps_cpus", rps_cpus_key},
		{"rps_flow_cnt", rps_flow_key},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (!strcmp(keys[i].name, key))
			return keys[i].take(wish, key, value, err);
	}
	return wish_unknown(key, WISH_KEYS, err);
}

/* In a list "a, b, c". */
static bool listed(const char *keys, const char *key)
{
	size_t length = strlen(key);

	for (; *keys; keys += strcspn(keys, " "), keys += *keys == ' ')
		if (!strncmp(keys, key, length) && (!keys[length] || keys[length] == ','))
			return true;
	return false;
}

int wish_unknown(const char *key, const char *keys, struct error *err)
{
	if (!strcmp(key, "tx_napi"))
		return error_set(err, -ENOENT,
				 "tx_napi is an option in a port's text: add xdp:eth0,tx_napi=yes");
	if (!strcmp(key, "host"))
		return error_set(err, -ENOENT,
				 "host is an option in a port's text: add xdp:eth0,host=yes");
	if (listed(ENGINE_WISH_KEYS, key))
		return error_set(err, -ENOENT, "%s is a key of engine, not of a port or queue",
				 key);
	return error_set(err, -ENOENT, "unknown key \"%.40s\": the keys are %s", key, keys);
}

int wish_settings(const struct wish *wish, struct queue_settings *out, struct error *err)
{
	if (wish->class_set && wish->class == RUNNER_FIFO && !wish->level_set)
		return error_set(err, -EINVAL, "class=fifo needs priority=1..99");
	*out = (struct queue_settings){
		.poller_set = wish->poller_set,
		.weight_set = wish->weight_set,
		.idle_suspend_set = wish->idle_suspend_set,
		.idle_suspend_usecs = wish->idle_suspend_usecs,
		.cpu_set = wish->cpu_set,
		.cpus_set = wish->cpus_set,
		.class_set = wish->class_set,
		.poller = wish->poller,
		.weight = wish->weight,
		.cpu = wish->cpu,
		.placement.cpus = wish->cpus,
		.placement.class = wish->class,
		.placement.level = wish->level,
		.napi_defer_hard_irqs_set = wish->napi_defer_hard_irqs_set,
		.napi_defer_hard_irqs = wish->napi_defer_hard_irqs,
		.gro_flush_timeout_set = wish->gro_flush_timeout_set,
		.gro_flush_timeout = wish->gro_flush_timeout,
		.irq_suspend_timeout_set = wish->irq_suspend_timeout_set,
		.irq_suspend_timeout = wish->irq_suspend_timeout,
		.rps_cpus_set = wish->rps_cpus_set,
		.rps_cpus = wish->rps_cpus,
		.rps_flow_set = wish->rps_flow_set,
		.rps_flow_cnt = wish->rps_flow_cnt,
		.gro_set = wish->gro_set,
		.gro = wish->gro,
	};
	return 0;
}

int runner_wish_key(struct wish *wish, const char *key, const char *value, struct error *err)
{
	static const char *const keys[] = {"cpus", "class", "nice", "priority"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (!strcmp(keys[i], key))
			return wish_key(wish, key, value, err);
	}
	return error_set(err, -ENOENT,
			 "unknown key \"%.40s\": the keys of a thread are " RUNNER_WISH_KEYS, key);
}

int runner_wish_settings(const struct wish *wish, struct runner_settings *out, struct error *err)
{
	struct queue_settings settings;
	int rc = wish_settings(wish, &settings, err);

	if (rc)
		return rc;
	if (!settings.class_set && !settings.cpus_set)
		return error_set(err, -EINVAL, "nothing to set: the keys are " RUNNER_WISH_KEYS);
	*out = (struct runner_settings){
		.class_set = settings.class_set,
		.cpus_set = settings.cpus_set,
		.placement = settings.placement,
	};
	return 0;
}
