/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include <core/engine_cpus.h>
#include <core/engine_steer.h>
#include <core/steer.h>
#include <poller/softirq.h>

int steer_check(struct engine *engine, const char *port, const struct queue_settings *s,
		struct error *err)
{
	const struct port *opened = engine_port_find(engine, port);
	char there[128];

	if (!strcmp(port, BACKLOG_PORT) && (s->cpu_set || s->rps_cpus_set || s->rps_flow_set))
		return error_set(err, -EINVAL,
				 "backlog: queue N is the backlog of engine CPU N, and is neither "
				 "moved nor steered: set %s for a port",
				 s->cpu_set ? "rps_cpus" : "that");
	if (opened && opened->ops->poll && (s->rps_cpus_set || s->rps_flow_set))
		return error_set(err, -EINVAL,
				 "%s: nothing is received there that could be steered: set %s for "
				 "the ports that receive",
				 port, s->rps_cpus_set ? "rps_cpus" : "rps_flow_cnt");
	if (s->rps_flow_set && s->rps_flow_cnt &&
	    (s->rps_flow_cnt & (s->rps_flow_cnt - 1) || s->rps_flow_cnt > RPS_FLOW_CNT_MAX))
		return error_set(err, -EINVAL,
				 "rps_flow_cnt %u: must be a power of two, up to %u, or 0 for none",
				 s->rps_flow_cnt, RPS_FLOW_CNT_MAX);
	if (!s->rps_cpus_set)
		return 0;
	engine_cpus_text(engine, there, sizeof(there));
	for (unsigned cpu = cpuset_next(&s->rps_cpus, 0); cpu < CPU_MAX;
	     cpu = cpuset_next(&s->rps_cpus, cpu + 1))
		if (!engine_softnet(engine, cpu))
			return error_set(err, -EINVAL,
					 "rps_cpus: CPU %u is not an engine CPU; those are %s", cpu,
					 there);
	return 0;
}

static bool same_cpus(const struct cpuset *a, const struct cpuset *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static void steer_record(struct napi *napi)
{
	struct queue_record *record = napi->record;

	cpuset_format(&napi->rps_cpus, record->rps_cpus, sizeof(record->rps_cpus));
	atomic_store(&record->rps_flow_cnt, napi->rps_flow_cnt);
}

/* No poll of the queue runs while its steering changes, and none of its packets is in a backlog. */
static int steer_change(struct napi *napi, struct steer **steer, int64_t timeout)
{
	struct machine *machine = napi->engine->machine;
	int64_t deadline = machine_now(machine) + timeout;
	struct steer *before = napi->steer;
	bool was_disabled = napi_disabled(napi);
	int rc = napi_disable_locked(napi, timeout);

	if (rc)
		return rc;
	if (before)
		rc = backlogs_wait(napi->engine->backlogs, deadline);
	if (!rc) {
		napi->steer = *steer;
		*steer = before;
	}
	if (!was_disabled)
		napi_enable_locked(napi);
	return rc;
}

/* Whatever it steers by now. */
static int steer_renew(struct napi *napi, const struct cpuset *cpus, uint32_t flows,
		       int64_t timeout, struct error *err)
{
	const struct port_queue *queue = napi->queue;
	struct steer *steer;
	int rc = steer_create(napi->engine, cpus, flows, &steer);

	if (rc)
		return error_set(err, rc, "%s/%u: no memory for steering", queue->port->name,
				 queue->index);
	if (steer)
		rc = backlogs_open(napi->engine, err);
	if (!rc) {
		rc = steer_change(napi, &steer, timeout);
		if (rc)
			error_set(err, rc,
				  "%s/%u: steering stays as it was: its packets did not leave the "
				  "backlogs in time",
				  queue->port->name, queue->index);
	}
	steer_destroy(steer);
	if (rc)
		return rc;
	if (cpus != &napi->rps_cpus)
		napi->rps_cpus = *cpus;
	napi->rps_flow_cnt = flows;
	steer_record(napi);
	return 0;
}

int steer_apply(struct napi *napi, const struct queue_settings *s, int64_t timeout,
		struct error *err)
{
	const struct cpuset *cpus = s->rps_cpus_set ? &s->rps_cpus : &napi->rps_cpus;
	uint32_t flows = s->rps_flow_set ? s->rps_flow_cnt : napi->rps_flow_cnt;

	if (same_cpus(cpus, &napi->rps_cpus) && flows == napi->rps_flow_cnt)
		return 0;
	return steer_renew(napi, cpus, flows, timeout, err);
}

int steer_again(struct napi *napi, int64_t timeout, struct error *err)
{
	return steer_renew(napi, &napi->rps_cpus, napi->rps_flow_cnt, timeout, err);
}

void steer_cpu_mark(struct engine *engine, uint32_t i, bool there)
{
	_Atomic uint64_t *cpus = &engine->sock_flows.cpus;

	if (i >= BACKLOGS_MAX)
		return;
	if (there)
		atomic_fetch_or(cpus, UINT64_C(1) << i);
	else
		atomic_fetch_and(cpus, ~(UINT64_C(1) << i));
}

int steer_port_end(struct port *port, int64_t timeout)
{
	for (uint32_t i = 0; i < port->queues; i++)
		if (port->queue[i].napi->steer)
			return backlogs_purge(port->engine->backlogs, port, timeout);
	return 0;
}
