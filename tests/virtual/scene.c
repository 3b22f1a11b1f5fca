/* SPDX-License-Identifier: BSD-2-Clause */
#include "scene.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>

#include <core/checksum.h>

struct cross {
	struct handler handler;
	struct port *_Atomic partner[64]; /* by port index */
	struct port *_Atomic port[64];	  /* those that it handles */
};

static void cross_input(struct handler *handler, struct context *context, struct port *in,
			struct packet **v, uint32_t n)
{
	struct cross *cross = (struct cross *)handler;
	struct port *out = atomic_load(&cross->partner[in->index]);

	if (out)
		port_transmit(context, out, v, n);
	else
		packet_drop(context, v, n, DROP_HANDLER);
}

static int cross_add(struct handler *handler, struct port *port, struct error *err)
{
	struct cross *cross = (struct cross *)handler;

	(void)err;
	atomic_store(&cross->port[port->index], port);
	return 0;
}

static void cross_remove(struct handler *handler, struct port *port)
{
	struct cross *cross = (struct cross *)handler;

	atomic_store(&cross->port[port->index], NULL);
	for (int i = 0; i < 64; i++)
		if (i == port->index || atomic_load(&cross->partner[i]) == port)
			atomic_store(&cross->partner[i], NULL);
}

static const struct handler_ops cross_ops = {
	.name = "cross",
	.input = cross_input,
	.port_add = cross_add,
	.port_remove = cross_remove,
};

static void scene_log(void *arg, enum log_level level, const char *line)
{
	struct scene *scene = arg;

	if (level <= LEVEL_WARNING)
		snprintf(scene->log[scene->lines++ % SCENE_LOG], sizeof(scene->log[0]), "%s", line);
}

const char *scene_logged(struct scene *scene, const char *text)
{
	for (int i = 0; i < SCENE_LOG; i++)
		if (strstr(scene->log[i], text))
			return scene->log[i];
	return NULL;
}

void scene_begin(struct scene *scene, bool virtual, uint64_t seed, enum poller poller)
{
	scene_begin_with(scene, virtual, seed, (struct engine_config){.poller = poller});
}

struct scene_app {
	struct scene *scene;
	struct runner *runner;
	struct context *context;
};

/* One look at one queue; what was looked up before it is not touched after it. */
static int app_look(struct scene_app *app, unsigned i, uint32_t queue)
{
	struct cross *cross = (struct cross *)app->scene->cross;
	struct port *port = atomic_load(&cross->port[i]);
	struct busy_poll how = {.budget = NAPI_WEIGHT_MAX, .prefer = queue % 2};

	if (!port || queue >= port->queues)
		return -ENOENT;
	return napi_busy_loop(port->queue[queue].napi, app->context, &how, NULL, NULL);
}

/* An application that polls whatever has the poller app, and always comes back. */
static struct step app_step(void *arg)
{
	struct scene_app *app = arg;
	bool found = false;

	for (unsigned i = 0; i < 64; i++) {
		int rc = 0;

		for (uint32_t queue = 0; rc != -ENOENT; queue++) {
			rc = app_look(app, i, queue);
			found |= rc > 0;
		}
	}
	if (found)
		return STEP(STEP_YIELD);
	return STEP_UNTIL(machine_now(app->scene->machine) + 20 * NSEC_PER_USEC);
}

bool scene_app(void)
{
	return getenv("SCENE_APP");
}

static void app_start(struct scene *scene)
{
	struct runner_config config = {.name = "application", .step = app_step};
	struct scene_app *app;

	if (!scene_app())
		return;
	app = scene->app = config.arg = calloc(1, sizeof(*app));
	app->scene = scene;
	assert_int_equal(engine_context_open(scene->engine, &app->context), 0);
	assert_int_equal(runner_start(scene->machine, &config, &app->runner, NULL), 0);
}

static void app_stop(struct scene *scene)
{
	if (!scene->app)
		return;
	runner_stop(scene->app->runner);
	engine_context_close(scene->app->context);
	free(scene->app);
	scene->app = NULL;
}

/* What scenes use that set no policy: over_pollers_and_deferrals(). */
static struct engine_config deferring;

void scene_failures_abort(bool abort)
{
	if (abort)
		setenv("CMOCKA_TEST_ABORT", "1", 1);
	else
		unsetenv("CMOCKA_TEST_ABORT");
}

/* machine NULL: the host. */
static void scene_make(struct scene *scene, const struct virtual_config *machine,
		       struct engine_config config)
{
	struct cross *cross = calloc(1, sizeof(*cross));
	struct error err = {0};

	memset(scene, 0, sizeof(*scene));
	cross->handler.ops = &cross_ops;
	scene->cross = &cross->handler;
	if (machine)
		assert_int_equal(machine_virtual_create(machine, &scene->machine), 0);
	else
		assert_int_equal(machine_host_create(&scene->machine, &err), 0);
	scene_failures_abort(!machine);
	if (!config.deferral) {
		config.deferral = deferring.deferral;
		config.looped_ticks = deferring.looped_ticks;
	}
	config.machine = scene->machine;
	config.log = scene_log;
	config.log_arg = scene;
	config.frames = 4096;
	/* On the host an ordinary one will do: tests must not take the CPUs from each other. */
	if (machine)
		config.interrupt = (struct placement){.class = RUNNER_FIFO, .level = 50};
	if (engine_create(&config, &scene->engine, &err))
		fail_msg("%s", err.text);
	scene->a = scene_port(scene, "a", NULL);
	scene->b = scene_port(scene, "b", scene->a);
	app_start(scene);
}

void scene_virtual_only(void)
{
	if (getenv("SCENE_HOST_ONLY"))
		skip();
}

static void (*next_trace)(void *arg, const char *line);
static void *next_trace_arg;

void scene_trace(void (*trace)(void *arg, const char *line), void *arg)
{
	next_trace = trace;
	next_trace_arg = arg;
}

static void scene_begin_on(struct scene *scene, bool virtual, uint64_t seed, unsigned cpus,
			   struct engine_config config)
{
	struct virtual_config machine = {.cpus = cpus,
					 .seed = seed,
					 .jitter_percent = 20,
					 .trace = next_trace,
					 .trace_arg = next_trace_arg};

	next_trace = NULL;
	scene_make(scene, virtual ? &machine : NULL, config);
}

void scene_begin_with(struct scene *scene, bool virtual, uint64_t seed, struct engine_config config)
{
	scene_begin_on(scene, virtual, seed, 2, config);
}

void scene_begin_cpus(struct scene *scene, bool virtual, uint64_t seed, unsigned cpus,
		      struct engine_config config)
{
	if (virtual)
		scene_virtual_only();
	scene_begin_on(scene, virtual, seed, cpus, config);
}

void scene_begin_exact(struct scene *scene, struct engine_config config)
{
	scene_make(scene, &(struct virtual_config){.cpus = 2, .seed = 1}, config);
}

bool scene_tx(void)
{
	return getenv("SCENE_TX_NAPI");
}

/* The first port has CPU 0, as it has without TX NAPIs. */
static void tx_place(struct scene *scene, const char *name)
{
	struct queue_settings settings = {.cpu_set = true, .cpu = strcmp(name, "a") != 0};
	char tx[64];

	assert_int_equal(engine_queue_set(scene->engine, name, -1, &settings, NULL, NULL), 0);
	snprintf(tx, sizeof(tx), "%s-tx", name);
	settings.cpu = 1;
	assert_int_equal(engine_queue_set(scene->engine, tx, -1, &settings, NULL, NULL), 0);
}

void scene_partner(struct scene *scene, struct port *port, struct port *partner)
{
	struct cross *cross = (struct cross *)scene->cross;

	atomic_store(&cross->partner[port->index], partner);
	if (partner)
		atomic_store(&cross->partner[partner->index], port);
}

struct port *scene_port(struct scene *scene, const char *name, struct port *partner)
{
	struct port_config config;
	struct error err = {0};
	struct port *port;
	char text[64];

	if (scene_tx())
		tx_place(scene, name);
	snprintf(text, sizeof(text), "mem:%s%s", name, scene_tx() ? ",tx_napi=yes" : "");
	assert_int_equal(port_config_parse(text, &config, &err), 0);
	if (engine_port_add(scene->engine, &config, &port, &err))
		fail_msg("%s", err.text);
	assert_int_equal(engine_handler_set(scene->engine, port, scene->cross, &err), 0);
	scene_partner(scene, port, partner);
	return port;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

int scene_wait(struct machine *machine, bool (*done)(void *arg), void *arg)
{
	int rc = -ETIMEDOUT;

	for (int i = 0; i < SCENE_PATIENCE && rc == -ETIMEDOUT; i++)
		rc = machine_wait(machine, done, arg, machine_now(machine) + NSEC_PER_SEC);
	return rc;
}

void scene_run(struct scene *scene, int64_t ns)
{
	machine_wait(scene->machine, never, NULL, machine_now(scene->machine) + ns);
}

uint64_t backlogs_held(struct scene *scene)
{
	const struct counters_file *file = engine_counters(scene->engine);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < file->cpus; i++) {
		sum += counter_read(&counters_cpu_at(file, i)->backlog.length);
	}
	atomic_thread_fence(memory_order_acquire);
	return sum;
}

static bool held_none(void *arg)
{
	struct scene *scene = arg;

	if (backlogs_held(scene))
		return false;
	for (uint32_t i = 0; i < 64; i++) {
		struct port *port = engine_port_at(scene->engine, i);

		if (port && port_held(port))
			return false;
	}
	return true;
}

struct drain {
	struct scene *scene;
	struct port *port;
	uint64_t received;
};

static bool drained(void *arg)
{
	struct drain *drain = arg;

	return PORT_SUM(drain->port, received) >= drain->received && held_none(drain->scene);
}

void scene_drain(struct scene *scene, struct port *port, uint64_t received)
{
	struct drain drain = {scene, port, received};

	if (scene_wait(scene->machine, drained, &drain))
		fail_msg("port %s: %lu of %lu packets received", port->name,
			 (unsigned long)PORT_SUM(port, received), (unsigned long)received);
}

static bool polled(void *arg)
{
	struct drain *drain = arg;

	return PORT_SUM(drain->port, polls) > drain->received;
}

void scene_polled(struct scene *scene, struct port *port, uint64_t before)
{
	struct drain drain = {scene, port, before};

	if (scene_wait(scene->machine, polled, &drain))
		fail_msg("port %s is not polled", port->name);
}

struct dropping {
	struct port *port;
	size_t counter;
	uint64_t n;
};

static bool has_dropped(void *arg)
{
	const struct dropping *d = arg;

	return port_sum(d->port, d->counter) >= d->n;
}

void scene_dropped(struct scene *scene, struct port *port, enum drop_reason reason, uint64_t n)
{
	struct dropping d = {
		.port = port,
		.counter = offsetof(struct napi_counters, dropped) + sizeof(counter) * reason,
		.n = n,
	};

	if (scene_wait(scene->machine, has_dropped, &d))
		fail_msg("port %s: %lu packets dropped for %s, not %lu", port->name,
			 (unsigned long)port_sum(port, d.counter), drop_name(reason),
			 (unsigned long)n);
}

/* It was refused so, at the try of this number; whether to ask again. */
static bool set_again(struct machine *machine, int rc, int try)
{
	return rc == -ETIMEDOUT && machine_tid(machine) && try < SCENE_PATIENCE;
}

void scene_set(struct scene *scene, const char *port, int queue, struct queue_settings settings)
{
	struct error err = {0};
	int rc, tries = 0;

	do
		rc = engine_queue_set(scene->engine, port, queue, &settings, NULL, &err);
	while (set_again(scene->machine, rc, ++tries));
	if (rc)
		fail_msg("%s", err.text);
}

void scene_set_engine(struct scene *scene, struct engine_settings settings)
{
	struct error err = {0};
	int rc, tries = 0;

	do
		rc = engine_set(scene->engine, &settings, &err);
	while (set_again(scene->machine, rc, ++tries));
	if (rc)
		fail_msg("%s", err.text);
}

void scene_port_remove(struct port *port)
{
	struct machine *machine = port->machine;
	struct error err = {0};
	int rc, tries = 0;

	do
		rc = engine_port_remove(port->engine, port, &err);
	while (set_again(machine, rc, ++tries));
	if (rc)
		fail_msg("%s", err.text);
}

void scene_disable(struct napi *napi)
{
	assert_int_equal(napi_disable(napi, SCENE_PATIENCE * NSEC_PER_SEC), 0);
}

void scene_end(struct scene *scene)
{
	struct error err = {0};

	app_stop(scene);
	scene_wait(scene->machine, held_none, scene);
	for (uint32_t i = 0; i < 64; i++) {
		struct port *port = engine_port_at(scene->engine, i);

		if (port) {
			assert_int_equal(port_held(port), 0);
			scene_port_remove(port);
		}
	}
	if (engine_check(scene->engine, &err))
		fail_msg("%s", err.text);
	engine_destroy(scene->engine);
	machine_destroy(scene->machine);
	free(scene->cross);
	scene_failures_abort(false);
}

/* Destination, source, local experimental type, flow, number. */
static void packet_number(struct packet *p, uint32_t flow, uint32_t number)
{
	static const uint8_t head[14] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};

	p->len = p->total = SCENE_FRAME;
	memset(p->data, 0, SCENE_FRAME);
	memcpy(p->data, head, sizeof(head));
	memcpy(p->data + 16, &flow, sizeof(flow));
	memcpy(p->data + 20, &number, sizeof(number));
}

void scene_datagram(struct packet *p, uint32_t flow, uint32_t number)
{
	static const uint8_t head[42] = {
		2, 0, 0,  0, 0, 2,  2, 0, 0, 0,	 0, 1, 0x08, 0x00, 0x45, 0, 0, 46, 0,  0, 0,
		0, 9, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,    0,	   0,	 7, 7, 0,  26, 0, 0,
	};
	uint16_t check;
	uint32_t sum;

	p->len = p->total = SCENE_FRAME;
	memset(p->data, 0, SCENE_FRAME);
	memcpy(p->data, head, sizeof(head));
	p->data[18] = (uint8_t)(number >> 8);
	p->data[19] = (uint8_t)number;
	check = checksum_finish(checksum_add(0, p->data + 14, 20));
	memcpy(p->data + 24, &check, sizeof(check));
	p->data[34] = (uint8_t)(4 + flow / 256);
	p->data[35] = (uint8_t)flow;
	memcpy(p->data + 42, &flow, sizeof(flow));
	memcpy(p->data + 46, &number, sizeof(number));
	sum = checksum_add(htons(17) + htons(26), p->data + 26, 8);
	check = checksum_finish(checksum_add(sum, p->data + 34, 26));
	memcpy(p->data + 40, &check, sizeof(check));
}

static void packet_next(struct source *source, struct packet *p, uint32_t i)
{
	uint32_t k;

	if (!source->flows) {
		packet_number(p, source->flow, source->sent + i);
		return;
	}
	k = (source->sent + i) % source->flows;
	scene_datagram(p, source->flow + k, (source->sent + i) / source->flows);
}

static uint32_t source_send(struct source *source, uint32_t n)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t sent;

	n = packet_alloc(&source->context->cache, v, n);
	for (uint32_t i = 0; i < n; i++)
		packet_next(source, v[i], i);
	sent = mem_port_send(source->port, v, n);
	packet_free(&source->context->cache, v + sent, n - sent);
	source->sent += sent;
	return sent;
}

static struct step source_step(void *arg)
{
	struct source *source = arg;
	int64_t now = machine_now(source->scene->machine);
	uint32_t n = source->burst < PACKET_VECTOR_MAX ? source->burst : PACKET_VECTOR_MAX;

	if (source->paced_by) {
		uint32_t away = source->sent - atomic_load(&source->paced_by->received);
		uint32_t room = away < source->window ? source->window - away : 0;

		if (n > room)
			n = room;
		if (!n)
			return STEP_UNTIL(now + 5 * NSEC_PER_USEC);
	}
	if (source->count && source->sent + n > source->count)
		n = source->count - source->sent;
	if (!n)
		return STEP(STEP_WAIT);
	if (now < source->next)
		return STEP_UNTIL(source->next);
	if (source_send(source, n) < n)
		source->full++;
	source->next = now + source->interval;
	return STEP_UNTIL(source->next);
}

void source_start(struct source *source)
{
	struct runner_config config = {.name = "source", .step = source_step, .arg = source};

	source->next = 0;
	assert_int_equal(engine_context_open(source->scene->engine, &source->context), 0);
	assert_int_equal(runner_start(source->scene->machine, &config, &source->runner, NULL), 0);
}

static bool source_done(void *arg)
{
	const struct source *source = arg;

	return source->sent >= source->count;
}

void source_stop(struct source *source)
{
	if (source->count)
		assert_int_equal(scene_wait(source->scene->machine, source_done, source), 0);
	runner_stop(source->runner);
	engine_context_close(source->context);
}

static uint32_t sink_take(struct sink *sink)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n = mem_port_receive(sink->port, v, PACKET_VECTOR_MAX);

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *at = v[i]->data + (v[i]->data[12] == 0x08 ? 42 : 16);
		uint32_t flow, number, *next;

		memcpy(&flow, at, sizeof(flow));
		memcpy(&number, at + 4, sizeof(number));
		next = &sink->next[flow % SCENE_FLOWS];
		if (number < *next)
			sink->disorder++;
		else
			sink->missing += number - *next;
		*next = number + 1;
	}
	sink->received += n;
	packet_free(&sink->context->cache, v, n);
	return n;
}

static struct step sink_step(void *arg)
{
	struct sink *sink = arg;

	if (sink_take(sink) == PACKET_VECTOR_MAX)
		return STEP(STEP_YIELD);
	return STEP_UNTIL(machine_now(sink->scene->machine) + 20 * NSEC_PER_USEC);
}

void sink_start(struct sink *sink)
{
	struct runner_config config = {.name = "sink", .step = sink_step, .arg = sink};

	assert_int_equal(engine_context_open(sink->scene->engine, &sink->context), 0);
	assert_int_equal(runner_start(sink->scene->machine, &config, &sink->runner, NULL), 0);
}

void sink_stop(struct sink *sink)
{
	runner_stop(sink->runner);
	while (sink_take(sink))
		;
	engine_context_close(sink->context);
}

void scene_pass(struct scene *scene, struct source *source, struct sink *sink)
{
	source->scene = sink->scene = scene;
	source->port = scene->a;
	sink->port = scene->b;
	sink_start(sink);
	source_start(source);
	source_stop(source);
	scene_drain(scene, scene->a, source->count);
	sink_stop(sink);
}

void packets_return(struct context *context, struct port *in, struct packet **v, uint32_t n)
{
	uint32_t back = mem_port_send(in, v, n);

	counter_add(&context->counters->transmitted, back);
	packet_drop(context, v + back, n - back, DROP_TX_FULL);
}

static void again_input(struct handler *handler, struct context *context, struct port *in,
			struct packet **v, uint32_t n)
{
	(void)handler;
	packets_return(context, in, v, n);
}

static const struct handler_ops again_ops = {.name = "again", .input = again_input};
struct handler scene_again = {.ops = &again_ops};

void scene_fill(struct scene *scene, struct port *port, uint32_t n)
{
	struct source source = {.scene = scene, .port = port, .burst = 64, .interval = 1};
	struct napi *napi = port->queue[0].napi;
	bool polled = !napi_disabled(napi);

	source.count = n;
	if (polled)
		scene_disable(napi);
	source_start(&source);
	source_stop(&source);
	if (polled)
		assert_int_equal(napi_enable(napi), 0);
}

void scene_circle(struct scene *scene, struct port *port, uint32_t n)
{
	assert_int_equal(engine_handler_set(scene->engine, port, &scene_again, NULL), 0);
	scene_fill(scene, port, n);
}

void scene_calm(struct scene *scene, struct port *port)
{
	assert_int_equal(engine_handler_set(scene->engine, port, scene->cross, NULL), 0);
}

void stamped_send(struct port *port, struct context *context, uint32_t n)
{
	int64_t now = machine_now(port->machine);
	struct packet *v[PACKET_VECTOR_MAX];

	assert_int_equal(packet_alloc(&context->cache, v, n), n);
	for (uint32_t i = 0; i < n; i++) {
		memset(v[i]->data, 0, SCENE_FRAME);
		memcpy(v[i]->data + 14, &now, sizeof(now));
		v[i]->len = v[i]->total = SCENE_FRAME;
	}
	assert_int_equal(mem_port_send(port, v, n), n);
}

int64_t stamped_at(const struct packet *p)
{
	int64_t sent;

	memcpy(&sent, p->data + 14, sizeof(sent));
	return sent;
}

uint64_t port_sum(const struct port *port, size_t counter_offset)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < port->queues; i++) {
		const char *counters = (const char *)napi_counters(port->queue[i].napi);

		sum += counter_read((const counter *)(counters + counter_offset));
	}
	return sum;
}

int64_t port_held(const struct port *port)
{
	uint64_t out = PORT_SUM(port, transmitted) + PORT_SUM(port, delivered) +
		       PORT_SUM(port, steered) + PORT_SUM(port, merged);

	for (int reason = 0; reason < DROP_MAX; reason++)
		out += PORT_SUM(port, dropped[reason]);
	return (int64_t)(PORT_SUM(port, received) + PORT_SUM(port, cloned) - out);
}

void over_pollers(scene_body body)
{
	for (unsigned poller = 0; poller < POLLER_MAX; poller++) {
		print_message("  with poller %s\n", poller_name((enum poller)poller));
		body((enum poller)poller);
	}
}

void over_pollers_and_deferrals(scene_body body)
{
	over_pollers(body);
	for (unsigned policy = 1; policy < DEFERRAL_MAX; policy++) {
		deferring.deferral = (enum deferral)policy;
		for (uint32_t ticks = 1; ticks <= (policy == DEFERRAL_LOOPED ? 3 : 1); ticks++) {
			deferring.looped_ticks = ticks;
			print_message("  with poller softirq, deferral %s, %u\n",
				      deferral_name(deferring.deferral), ticks);
			body(POLLER_SOFTIRQ);
		}
	}
	deferring = (struct engine_config){0};
}
