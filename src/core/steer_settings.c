/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering of the engine as a whole: the hash, the backlogs' bounds, where flows were read. */
#include <errno.h>
#include <string.h>

#include <core/engine_queue.h>
#include <core/engine_steer.h>
#include <core/steer.h>
#include <poller/softirq.h>

_Static_assert(RSS_KEY_SIZE == FLOW_KEY_SIZE, "the key is the flow hash's");

static int table_check(const char *key, uint32_t n, uint32_t min, uint32_t max, struct error *err)
{
	if (!n || (!(n & (n - 1)) && n >= min && n <= max))
		return 0;
	return error_set(err, -EINVAL, "%s %u: must be a power of two, %u to %u, or 0 for none",
			 key, n, min, max);
}

int engine_steer_check(const struct engine_settings *s, struct error *err)
{
	int rc = 0;

	if (s->max_backlog_set && (!s->max_backlog || s->max_backlog > ENGINE_BACKLOG_MAX))
		rc = error_set(err, -ERANGE, "netdev_max_backlog %u: must be 1 to %u",
			       s->max_backlog, ENGINE_BACKLOG_MAX);
	if (!rc && s->flow_limit_set)
		rc = table_check("flow_limit", s->flow_limit, 2, ENGINE_FLOW_LIMIT_MAX, err);
	if (!rc && s->sock_flow_entries_set)
		rc = table_check("rps_sock_flow_entries", s->sock_flow_entries, 1,
				 ENGINE_SOCK_FLOWS_MAX, err);
	return rc;
}

static void steer_record_engine(struct engine *engine)
{
	const struct engine_config *config = &engine->config;

	atomic_store(&engine->counters->max_backlog, config->max_backlog);
	atomic_store(&engine->counters->flow_limit, config->flow_limit);
	atomic_store(&engine->counters->sock_flow_entries, config->sock_flow_entries);
	atomic_store(&engine->counters->symmetric_hash, config->symmetric_hash);
}

int engine_steer_begin(struct engine *engine, struct error *err)
{
	struct engine_config *config = &engine->config;
	struct sock_flows *flows = &engine->sock_flows;
	const struct engine_settings asked = {
		.max_backlog_set = true,
		.flow_limit_set = true,
		.sock_flow_entries_set = true,
		.max_backlog = config->max_backlog,
		.flow_limit = config->flow_limit,
		.sock_flow_entries = config->sock_flow_entries,
	};
	int rc = engine_steer_check(&asked, err);

	if (rc)
		return rc;
	if (!config->rss_key_set)
		machine_entropy(engine->machine, config->rss_key, RSS_KEY_SIZE);
	flow_hasher_init(&engine->hasher, config->rss_key, config->symmetric_hash);
	memset(engine->cpu_index, STEER_LOCAL, sizeof(engine->cpu_index));
	for (uint32_t i = 0; i < engine->cpus && i < BACKLOGS_MAX; i++) {
		engine->cpu_index[softnet_cpu(&engine->softnet[i])] = (uint8_t)i;
		atomic_fetch_or(&flows->cpus, UINT64_C(1) << i);
	}
	rc = sock_flows_set(flows, config->sock_flow_entries);
	if (rc)
		return error_set(err, rc, "no memory for %u rps_sock_flow_entries",
				 config->sock_flow_entries);
	steer_record_engine(engine);
	return 0;
}

void engine_steer_end(struct engine *engine)
{
	sock_flows_free(&engine->sock_flows);
}

/* Calls it for every NAPI that steers, until one fails. */
static int steering_each(struct engine *engine, int (*call)(struct napi *napi, int64_t deadline),
			 int64_t deadline)
{
	struct napi_walk walk = {0};
	struct napi *napi;
	int rc = 0;

	while (!rc && (napi = napi_walk_next(engine, &walk)))
		if (napi->steer)
			rc = call(napi, deadline);
	return rc;
}

static int steering_pause(struct napi *napi, int64_t deadline)
{
	int64_t left = deadline - machine_now(napi->engine->machine);
	int rc;

	if (napi_disabled(napi))
		return 0;
	rc = napi_disable_locked(napi, left > 0 ? left : 0);
	if (!rc)
		napi->paused = true;
	return rc;
}

static int steering_resume(struct napi *napi, int64_t deadline)
{
	(void)deadline;
	if (napi->paused)
		napi_enable_locked(napi);
	napi->paused = false;
	return 0;
}

/* Flows go to other CPUs by another hash: only when nothing of theirs is on its way any more. */
static int symmetric_set(struct engine *engine, bool symmetric)
{
	int64_t deadline = machine_now(engine->machine) + SWITCH_TIMEOUT;
	int rc;

	if (symmetric == engine->config.symmetric_hash)
		return 0;
	rc = steering_each(engine, steering_pause, deadline);
	if (!rc && engine->backlogs)
		rc = backlogs_wait(engine->backlogs, deadline);
	if (!rc) {
		atomic_store(&engine->hasher.symmetric, symmetric);
		engine->config.symmetric_hash = symmetric;
	}
	steering_each(engine, steering_resume, deadline);
	return rc;
}

static int bounds_set(struct engine *engine, uint32_t max_backlog, uint32_t flow_limit,
		      uint32_t sock_flow_entries)
{
	struct engine_config *config = &engine->config;
	int rc = 0;

	if (engine->backlogs && max_backlog != config->max_backlog)
		rc = backlogs_max_set(engine->backlogs, max_backlog);
	if (rc)
		return rc;
	config->max_backlog = max_backlog;
	if (engine->backlogs && flow_limit != config->flow_limit)
		rc = backlogs_limit_set(engine->backlogs, flow_limit);
	if (rc)
		return rc;
	config->flow_limit = flow_limit;
	if (sock_flow_entries != config->sock_flow_entries)
		rc = sock_flows_set(&engine->sock_flows, sock_flow_entries);
	if (!rc)
		config->sock_flow_entries = sock_flow_entries;
	return rc;
}

int engine_steer_set(struct engine *engine, const struct engine_settings *s, struct error *err)
{
	const struct engine_config before = engine->config;
	int rc = 0;

	if (s->symmetric_hash_set)
		rc = symmetric_set(engine, s->symmetric_hash);
	if (rc)
		return error_set(err, rc,
				 "symmetric_hash stays as it was: the backlogs did not become "
				 "empty in time");
	rc = bounds_set(engine, s->max_backlog_set ? s->max_backlog : before.max_backlog,
			s->flow_limit_set ? s->flow_limit : before.flow_limit,
			s->sock_flow_entries_set ? s->sock_flow_entries : before.sock_flow_entries);
	if (rc &&
	    (bounds_set(engine, before.max_backlog, before.flow_limit, before.sock_flow_entries) ||
	     symmetric_set(engine, before.symmetric_hash)))
		engine_log(engine, LEVEL_WARNING,
			   "a set of the engine that failed could not be undone as a whole");
	steer_record_engine(engine);
	return rc ? error_set(err, rc, "no memory for backlogs of this size") : 0;
}
