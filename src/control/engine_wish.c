/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <control/engine_wish.h>
#include <control/wish.h>

static int deferral_key(struct cpu_settings *settings, const char *value, struct error *err)
{
	int rc = deferral_parse(value, &settings->deferral, &settings->looped_ticks);

	if (rc == -ERANGE)
		return error_set(err, rc, "deferral=%.40s: the window is 1..%d ticks", value,
				 LOOPED_TICKS_MAX);
	if (rc)
		return error_set(err, rc, "unknown deferral \"%.40s\": the policies are %s", value,
				 deferral_list());
	settings->deferral_set = true;
	return 0;
}

/* -ENOENT leaves err alone. */
static int cpu_key_take(struct cpu_settings *settings, const char *key, const char *value,
			struct error *err)
{
	return strcmp(key, "deferral") ? -ENOENT : deferral_key(settings, value, err);
}

int cpu_wish_key(struct cpu_settings *settings, const char *key, const char *value,
		 struct error *err)
{
	int rc = cpu_key_take(settings, key, value, err);

	if (rc == -ENOENT)
		error_set(err, rc,
			  "unknown key \"%.40s\": the key of an engine CPU is " CPU_WISH_KEYS, key);
	return rc;
}

static int cpus_key(struct engine_settings *settings, const char *key, const char *value,
		    struct error *err)
{
	int rc = *value ? cpus_parse(key, value, &settings->on_cpus, err)
			: error_set(err, -EINVAL, "cpus=: the engine needs one CPU at least");

	settings->on_cpus_set = !rc;
	return rc;
}

static int symmetric_key(struct engine_settings *settings, const char *value, struct error *err)
{
	bool on = !strcmp(value, "on");

	if (!on && strcmp(value, "off"))
		return error_set(err, -EINVAL, "symmetric_hash=%.40s: it is on or off", value);
	settings->symmetric_hash = on;
	settings->symmetric_hash_set = true;
	return 0;
}

/* -ENOENT leaves err alone. */
static int steer_key_take(struct engine_settings *settings, const char *key, const char *value,
			  struct error *err)
{
	int rc = -ENOENT;

	if (!strcmp(key, "symmetric_hash"))
		return symmetric_key(settings, value, err);
	if (!strcmp(key, "flow_limit")) {
		rc = table_parse(key, value, 2, ENGINE_FLOW_LIMIT_MAX, &settings->flow_limit, err);
		settings->flow_limit_set |= !rc;
	} else if (!strcmp(key, "rps_sock_flow_entries")) {
		rc = table_parse(key, value, 1, ENGINE_SOCK_FLOWS_MAX, &settings->sock_flow_entries,
				 err);
		settings->sock_flow_entries_set |= !rc;
	}
	return rc;
}

int engine_wish_key(struct engine_settings *settings, const char *key, const char *value,
		    struct error *err)
{
#define FIELD(field)                                                                               \
	offsetof(struct engine_settings, field), offsetof(struct engine_settings, field##_set)
	static const struct {
		const char *name;
		size_t value, set;
		uint32_t min, max;
	} numbers[] = {
		{"dev_weight", FIELD(weight), 1, NAPI_WEIGHT_MAX},
		{"netdev_budget", FIELD(budget), 1, ENGINE_BUDGET_MAX},
		{"netdev_budget_usecs", FIELD(budget_usecs), 1, ENGINE_BUDGET_USECS_MAX},
		{"busy_poll", FIELD(busy_poll), 0, ENGINE_BUSY_POLL_MAX},
		{"busy_read", FIELD(busy_read), 0, ENGINE_BUSY_POLL_MAX},
		{"gro_normal_batch", FIELD(gro_normal_batch), 1, PACKET_VECTOR_MAX},
		{"netdev_max_backlog", FIELD(max_backlog), 1, ENGINE_BACKLOG_MAX},
	};
#undef FIELD
	int rc;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		long long n;

		if (strcmp(key, numbers[i].name))
			continue;
		rc = number_parse(key, value, numbers[i].min, numbers[i].max, &n, err);
		if (rc)
			return rc;
		*(uint32_t *)((char *)settings + numbers[i].value) = (uint32_t)n;
		*(bool *)((char *)settings + numbers[i].set) = true;
		return 0;
	}
	if (!strcmp(key, "cpus"))
		return cpus_key(settings, key, value, err);
	rc = steer_key_take(settings, key, value, err);
	if (rc == -ENOENT)
		rc = cpu_key_take(&settings->cpus, key, value, err);
	if (rc == -ENOENT)
		error_set(err, rc,
			  "unknown key \"%.40s\": the keys of the engine are " ENGINE_WISH_KEYS,
			  key);
	return rc;
}
