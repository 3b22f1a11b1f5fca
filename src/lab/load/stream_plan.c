/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "lab/load/stream_plan.h"

const struct stream_class stream_classes[STREAM_CLASSES] = {
	{"be", 0x00}, {"bk", 0x20}, {"cs5", 0xa0}, {"ef", 0xb8}};

int stream_plan_check(struct load_config *config, struct error *err)
{
	unsigned flows = config->kind == LOAD_RRUL ? config->tcp_flows : config->flows;

	if (!config->threads)
		config->threads = 1;
	if (!config->server_threads)
		config->server_threads = config->threads;
	if (!config->timeout)
		config->timeout = NSEC_PER_SEC;
	if (!config->interval)
		config->interval = 100 * NSEC_PER_MSEC;
	if (config->threads > LOAD_THREADS_MAX || config->server_threads > LOAD_THREADS_MAX)
		return error_set(err, -EINVAL, "threads: %u and %u: at most %d are possible",
				 config->threads, config->server_threads, LOAD_THREADS_MAX);
	if (config->timeout < NSEC_PER_MSEC || config->interval < NSEC_PER_MSEC)
		return error_set(err, -EINVAL, "%s: at least 1 ms",
				 config->timeout < NSEC_PER_MSEC ? "timeout" : "interval");
	/* More would have nothing to do. */
	if (config->threads > flows)
		config->threads = flows;
	if (config->server_threads > flows)
		config->server_threads = flows;
	return 0;
}

void stream_plan_make(const struct load_config *config, struct stream_plan *out)
{
	*out = (struct stream_plan){
		.config = config,
		.protocol = config->protocol,
		.flows = config->flows,
		.groups = 1,
		.threads = {config->threads, config->server_threads},
		.up = config->direction != LOAD_DOWN,
		.down = config->direction != LOAD_UP,
		.steps = config->sizes,
		.interval = config->interval,
		.timeout = config->timeout,
	};
	memcpy(out->size, config->size, sizeof(out->size));
	if (config->kind != LOAD_RRUL)
		return;
	out->protocol = LOAD_TCP;
	out->flows = out->groups = 2 * config->tcp_flows;
	out->up = out->down = true;
	out->steps = 2;
	out->size[0] = 0;
	out->size[1] = config->size[0];
}

bool stream_plan_sends(const struct stream_plan *plan, unsigned flow, bool server)
{
	if (plan->config->kind == LOAD_RRUL)
		return server == (flow >= plan->config->tcp_flows);
	return server ? plan->down : plan->up;
}

unsigned stream_plan_group(const struct stream_plan *plan, unsigned flow)
{
	return plan->config->kind == LOAD_RRUL ? flow : 0;
}

uint8_t stream_plan_tos(const struct stream_plan *plan, unsigned flow)
{
	if (plan->config->kind != LOAD_RRUL)
		return 0;
	return stream_classes[flow % plan->config->tcp_flows % STREAM_CLASSES].tos;
}

void stream_plan_ends(const struct stream_plan *plan, int64_t duration, int64_t end[])
{
	int64_t idle = plan->config->idle;

	for (unsigned i = 0; i < plan->steps; i++)
		end[i] = (int64_t)((__int128)duration * (i + 1) / plan->steps);
	if (plan->config->kind == LOAD_RRUL)
		end[0] = !idle ? duration / 4 : idle < duration ? idle : duration;
}
