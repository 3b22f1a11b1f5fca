/* SPDX-License-Identifier: BSD-2-Clause */
#include "steer_scene.h"

#include <core/engine.h>
#include <core/napi.h>

const struct queue_settings rps_none = {.rps_cpus_set = true};

struct queue_settings rps(const char *cpus)
{
	struct queue_settings s = {.rps_cpus_set = true};

	assert_int_equal(cpuset_parse(cpus, &s.rps_cpus), 0);
	return s;
}

void steer_refused(struct scene *s, const char *port, struct queue_settings settings, int code,
		   const char *text)
{
	struct error err = {0};

	assert_int_equal(engine_queue_set(s->engine, port, -1, &settings, NULL, &err), code);
	if (!strstr(err.text, text))
		fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

void steer_refused_engine(struct scene *s, struct engine_settings settings, int code,
			  const char *text)
{
	struct error err = {0};

	assert_int_equal(engine_set(s->engine, &settings, &err), code);
	if (!strstr(err.text, text))
		fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

void steer_begin(struct scene *s, bool virtual, uint64_t seed, enum poller poller)
{
	scene_begin_cpus(s, virtual, seed, CPUS, (struct engine_config){.poller = poller});
}

struct port *backlog_port(struct scene *s)
{
	struct port *port = engine_port_find(s->engine, "backlog");

	assert_non_null(port);
	return port;
}

const struct napi_counters *backlog_counters(struct scene *s, unsigned cpu)
{
	return napi_counters(backlog_port(s)->queue[cpu].napi);
}

void backlog_disable(struct scene *s, unsigned cpu)
{
	assert_int_equal(napi_disable(backlog_port(s)->queue[cpu].napi, NSEC_PER_SEC), 0);
}

void backlog_enable(struct scene *s, unsigned cpu)
{
	assert_int_equal(napi_enable(backlog_port(s)->queue[cpu].napi), 0);
}

const struct cpu_record *cpu_record(struct scene *s, unsigned i)
{
	return counters_cpu_at(engine_counters(s->engine), i);
}

void load_start(struct load *load, struct scene *s, struct source source)
{
	*load = (struct load){.source = source, .sink = {.scene = s, .port = s->b}};
	load->source.scene = s;
	load->source.port = s->a;
	/* Room for all of them everywhere: what is lost then was lost by steering. */
	load->source.paced_by = &load->sink;
	load->source.window = 800;
	if (!load->source.burst)
		load->source.burst = 16;
	if (!load->source.flows)
		load->source.flows = FLOWS;
	if (!load->source.interval)
		load->source.interval = 5 * NSEC_PER_USEC;
	sink_start(&load->sink);
	source_start(&load->source);
}

/* All that was sent has come out, in order within each flow. */
void load_end(struct load *load, struct scene *s)
{
	source_stop(&load->source);
	scene_drain(s, s->a, load->source.sent);
	scene_run(s, NSEC_PER_MSEC);
	sink_stop(&load->sink);
	assert_int_equal(load->sink.received, load->source.sent);
	assert_int_equal(load->sink.disorder, 0);
	assert_int_equal(load->sink.missing, 0);
}

static void watcher_input(struct handler *handler, struct context *context, struct port *in,
			  struct packet **v, uint32_t n)
{
	struct watcher *watcher = (struct watcher *)handler;
	struct scene *s = watcher->scene;
	unsigned n_backlogs = engine_counters(s->engine)->cpus;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t flow;

		memcpy(&flow, v[i]->data + 42, sizeof(flow));
		atomic_store(&watcher->hash[flow % SCENE_FLOWS], packet_flow_hash(context, v[i]));
	}
	if (strcmp(context->napi->queue->port->name, "backlog"))
		n_backlogs = 0;
	for (unsigned i = 0; i < n_backlogs; i++)
		if (counter_read(&cpu_record(s, i)->backlog.length) &&
		    !(napi_state_load(backlog_port(s)->queue[i].napi) & NAPI_SCHED))
			watcher->forgotten++;
	s->cross->ops->input(s->cross, context, in, v, n);
}

static const struct handler_ops watcher_ops = {.name = "watcher", .input = watcher_input};

void watch(struct watcher *watcher, struct scene *s)
{
	*watcher = (struct watcher){.handler.ops = &watcher_ops, .scene = s};
	assert_int_equal(engine_handler_set(s->engine, s->a, &watcher->handler, NULL), 0);
	/* Which has taken the port from the scene's handler. */
	scene_partner(s, s->a, s->b);
}

/* Sends so many packets of these flows at once, and lets the port's NAPI take them. */
void source_send(struct scene *s, struct source *source, uint32_t n)
{
	source->count = source->sent + n;
	source_start(source);
	source_stop(source);
	scene_run(s, SETTLE);
}

struct source source_by_hand(struct scene *s, uint32_t flow, uint32_t flows)
{
	return (struct source){.scene = s,
			       .port = s->a,
			       .flow = flow,
			       .flows = flows,
			       .burst = 64,
			       .interval = 20 * NSEC_PER_USEC};
}
