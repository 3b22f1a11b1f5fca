/* SPDX-License-Identifier: BSD-2-Clause */
#include "file_scene.h"

static void log_line(void *arg, enum log_level level, const char *line)
{
	struct file_scene *s = arg;

	if (level <= LEVEL_WARNING)
		snprintf(s->log[s->lines++ % SCENE_LOG], sizeof(s->log[0]), "%s", line);
}

uint32_t file_scene_logged(struct file_scene *s, const char *text)
{
	uint32_t n = 0;

	for (int i = 0; i < SCENE_LOG; i++)
		n += strstr(s->log[i], text) != NULL;
	return n;
}

void file_scene_begin(struct file_scene *s, bool virtual, uint64_t seed, enum poller poller,
		      const struct bridge_config *bridge, uint32_t frames)
{
	struct virtual_config machine = {.cpus = 2, .seed = seed, .jitter_percent = 20};
	struct engine_config config = {.poller = poller, .log = log_line, .log_arg = s};
	struct error err = {0};

	memset(s, 0, sizeof(*s));
	if (virtual)
		assert_int_equal(machine_virtual_create(&machine, &s->machine), 0);
	else
		assert_int_equal(machine_host_create(&s->machine, &err), 0);
	scene_failures_abort(!virtual);
	config.machine = s->machine;
	config.frames = frames ? frames : 4096;
	if (engine_create(&config, &s->engine, &err) ||
	    bridge_create(s->engine, bridge, &s->bridge, &err))
		fail_msg("%s", err.text);
}

struct port *file_scene_port(struct file_scene *s, const char *format, ...)
{
	struct port_config config;
	struct error err = {0};
	struct port *port;
	va_list arguments;
	char text[512];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (port_config_parse(text, &config, &err))
		fail_msg("%s: %s", text, err.text);
	config.disabled = true;
	if (engine_port_add(s->engine, &config, &port, &err) ||
	    engine_handler_set(s->engine, port, s->bridge, &err))
		fail_msg("%s: %s", text, err.text);
	return port;
}

static void start(struct file_scene *s)
{
	for (uint32_t i = 0; i < 64 && !s->started; i++) {
		struct port *port = engine_port_at(s->engine, i);

		for (uint32_t k = 0; port && k < port->queues; k++)
			assert_int_equal(napi_enable(port->queue[k].napi), 0);
	}
	s->started = true;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

void file_scene_run(struct file_scene *s, int64_t ns)
{
	start(s);
	machine_wait(s->machine, never, NULL, machine_now(s->machine) + ns);
}

static bool finished(void *arg)
{
	struct file_scene *s = arg;

	for (uint32_t i = 0; i < 64; i++) {
		struct port *port = engine_port_at(s->engine, i);

		if (!port)
			continue;
		if (port->features & PORT_FINITE && atomic_load(&port->state) != PORT_ENDED)
			return false;
		if (port_held(port))
			return false;
	}
	return true;
}

void file_scene_finish(struct file_scene *s)
{
	start(s);
	if (scene_wait(s->machine, finished, s))
		fail_msg("the input does not end");
}

void file_scene_end(struct file_scene *s)
{
	struct error err = {0};

	for (uint32_t i = 0; i < 64; i++) {
		struct port *port = engine_port_at(s->engine, i);

		if (!port)
			continue;
		assert_int_equal(port_held(port), 0);
		scene_port_remove(port);
	}
	if (engine_check(s->engine, &err))
		fail_msg("%s", err.text);
	engine_destroy(s->engine);
	machine_destroy(s->machine);
	scene_failures_abort(false);
}

void frame_fill(uint8_t *frame, uint32_t len, uint8_t to, uint8_t from, uint32_t number)
{
	const uint8_t head[14] = {2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5};

	for (uint32_t i = 0; i < len; i++)
		frame[i] = (uint8_t)(number * 31 + i);
	memcpy(frame, head, sizeof(head));
	memcpy(frame + sizeof(head), &number, sizeof(number));
}
