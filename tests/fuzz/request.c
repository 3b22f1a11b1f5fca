/* SPDX-License-Identifier: BSD-2-Clause */
/* A line from the control socket. */
#include <stdlib.h>
#include <string.h>

#include <control/request.h>

#include "fuzz.h"

static bool power_of_two(uint32_t n)
{
	return !(n & (n - 1));
}

/* What is taken from a person is in range, whatever the engine may yet say to it. */
static void queue_settings_check(const struct queue_settings *s)
{
	ALWAYS(!s->poller_set || poller_valid(s->poller));
	ALWAYS(!s->weight_set || (s->weight && s->weight <= NAPI_WEIGHT_MAX));
	ALWAYS(!s->cpu_set || s->cpu < CPU_MAX);
	ALWAYS(!s->napi_defer_hard_irqs_set || s->napi_defer_hard_irqs <= NAPI_DEFER_HARD_IRQS_MAX);
	ALWAYS(!s->gro_flush_timeout_set || s->gro_flush_timeout <= GRO_FLUSH_TIMEOUT_MAX);
	ALWAYS(!s->rps_cpus_set || cpuset_count(&s->rps_cpus) <= CPU_MAX);
	ALWAYS(!s->rps_flow_set || power_of_two(s->rps_flow_cnt));
	if (!s->class_set)
		return;
	if (s->placement.class == RUNNER_FIFO)
		ALWAYS(s->placement.level >= 1 && s->placement.level <= 99);
	else
		ALWAYS(s->placement.level >= -20 && s->placement.level <= 19);
}

static void cpu_settings_check(const struct cpu_settings *s)
{
	ALWAYS(!s->deferral_set || (unsigned)s->deferral < DEFERRAL_MAX);
	if (s->deferral_set && s->deferral == DEFERRAL_LOOPED)
		ALWAYS(s->looped_ticks >= 1 && s->looped_ticks <= LOOPED_TICKS_MAX);
}

static void engine_settings_check(const struct engine_settings *s)
{
	ALWAYS(!s->weight_set || (s->weight && s->weight <= NAPI_WEIGHT_MAX));
	ALWAYS(!s->budget_set || (s->budget && s->budget <= ENGINE_BUDGET_MAX));
	ALWAYS(!s->budget_usecs_set ||
	       (s->budget_usecs && s->budget_usecs <= ENGINE_BUDGET_USECS_MAX));
	ALWAYS(!s->max_backlog_set || (s->max_backlog && s->max_backlog <= ENGINE_BACKLOG_MAX));
	ALWAYS(!s->flow_limit_set ||
	       (power_of_two(s->flow_limit) && s->flow_limit <= ENGINE_FLOW_LIMIT_MAX));
	ALWAYS(!s->sock_flow_entries_set || (power_of_two(s->sock_flow_entries) &&
					     s->sock_flow_entries <= ENGINE_SOCK_FLOWS_MAX));
	cpu_settings_check(&s->cpus);
}

static void request_check(const struct request *request)
{
	struct queue_settings settings;
	struct error err = {0};

	switch (request->kind) {
	case REQUEST_SET:
		ALWAYS(request->port[0] && !strchr(request->port, '/'));
		ALWAYS(request->queue >= -1 && request->queue < PORT_QUEUES_MAX);
		/* The one thing that is judged later: whether a class has its priority. */
		if (wish_settings(&request->wish, &settings, &err))
			ALWAYS(err.text[0]);
		else
			queue_settings_check(&settings);
		break;
	case REQUEST_ENGINE:
		engine_settings_check(&request->engine);
		break;
	case REQUEST_CPU:
		ALWAYS(request->cpu < CPU_MAX);
		cpu_settings_check(&request->cpu_settings);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);
	struct request request;
	struct error err = {0};

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (request_parse(line, size, &request, &err))
		ALWAYS(err.text[0]);
	else
		request_check(&request);
	request_free(&request);
	free(line);
	return 0;
}
