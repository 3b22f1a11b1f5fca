/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration file. Each group is a table of keys, so that an unknown key, a wrong type and a
 * value out of range give the same kind of error everywhere: where, what, and what would be right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libconfig.h>

#include <control/setup.h>

struct reader {
	struct setup *setup;
	const char *path;
	struct error *err;
};

struct key {
	const char *name;
	int (*take)(struct reader *r, config_setting_t *s, void *object, const struct key *key);
	size_t offset; /* of the field in the object, for take_number and take_bool */
	long long min, max;
};

__attribute__((format(printf, 4, 5))) static int wrong(struct reader *r, const config_setting_t *s,
						       int code, const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return error_set(r->err, code, "%.120s:%u: %.250s", r->path, config_setting_source_line(s),
			 text);
}

/* Puts the place in front of what another function said. */
static int wrong_there(struct reader *r, const config_setting_t *s, int code)
{
	struct error inner = *r->err;

	return wrong(r, s, code, "%s", inner.text);
}

static int wrong_type(struct reader *r, const config_setting_t *s, const char *example)
{
	return wrong(r, s, -EINVAL, "%s has the wrong type; it is written %s",
		     config_setting_name(s) ? config_setting_name(s) : "this", example);
}

static int take_group(struct reader *r, config_setting_t *group, const struct key *keys, size_t n,
		      void *object)
{
	if (config_setting_type(group) != CONFIG_TYPE_GROUP)
		return wrong_type(r, group, "{ key = value; … }");
	for (int i = 0; i < config_setting_length(group); i++) {
		config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const char *name = config_setting_name(s);
		char list[ERROR_TEXT_MAX / 2] = "";
		size_t k, used = 0;
		int rc;

		for (k = 0; k < n && strcmp(keys[k].name, name); k++)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 used ? ", " : "", keys[k].name);
		if (k == n)
			return wrong(r, s, -EINVAL, "unknown key \"%.40s\": the keys are %s", name,
				     list);
		rc = keys[k].take(r, s, object, &keys[k]);
		if (rc)
			return rc;
	}
	return 0;
}

static int integer(struct reader *r, config_setting_t *s, const struct key *key, long long *out)
{
	int type = config_setting_type(s);

	if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
		return wrong(r, s, -EINVAL, "%s has the wrong type; it is a number %lld..%lld",
			     key->name, key->min, key->max);
	*out = type == CONFIG_TYPE_INT ? config_setting_get_int(s) : config_setting_get_int64(s);
	if (*out < key->min || *out > key->max)
		return wrong(r, s, -ERANGE, "%s = %lld: out of range %lld..%lld", key->name, *out,
			     key->min, key->max);
	return 0;
}

/* Into a uint32_t. */
static int take_number(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	long long n;
	int rc = integer(r, s, key, &n);

	if (!rc)
		*(uint32_t *)((char *)object + key->offset) = (uint32_t)n;
	return rc;
}

static int take_bool(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	if (config_setting_type(s) != CONFIG_TYPE_BOOL)
		return wrong_type(r, s, "true or false");
	*(bool *)((char *)object + key->offset) = config_setting_get_bool(s);
	return 0;
}

static int take_text(struct reader *r, config_setting_t *s, const char **out)
{
	*out = config_setting_get_string(s);
	if (!*out)
		return wrong_type(r, s, "\"text\"");
	return 0;
}

static int take_name(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	const char *text;
	int rc = take_text(r, s, &text);

	(void)object;
	(void)key;
	if (rc)
		return rc;
	rc = setup_name(r->setup, text, r->err);
	return rc ? wrong_there(r, s, rc) : 0;
}

/* A scalar as the text that wish_key() and setup_port_key() take. */
static int scalar(struct reader *r, config_setting_t *s, char *text, size_t size)
{
	switch (config_setting_type(s)) {
	case CONFIG_TYPE_INT:
		snprintf(text, size, "%d", config_setting_get_int(s));
		return 0;
	case CONFIG_TYPE_INT64:
		snprintf(text, size, "%lld", config_setting_get_int64(s));
		return 0;
	case CONFIG_TYPE_STRING:
		if (strlen(config_setting_get_string(s)) >= size)
			return wrong(r, s, -EINVAL, "%s is too long", config_setting_name(s));
		snprintf(text, size, "%s", config_setting_get_string(s));
		return 0;
	default:
		return wrong_type(r, s, "as a number or a text");
	}
}

static int take_wish_key(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	char text[256];
	int rc = scalar(r, s, text, sizeof(text));

	if (rc)
		return rc;
	rc = wish_key(object, key->name, text, r->err);
	return rc ? wrong_there(r, s, rc) : 0;
}

/* class, nice and priority of the engine's own runners */
static int take_placement(struct reader *r, config_setting_t *s, void *object,
			  const struct key *key)
{
	static const struct key keys[] = {
		{"class", take_wish_key},
		{"nice", take_wish_key},
		{"priority", take_wish_key},
	};
	struct placement *placement = (struct placement *)((char *)object + key->offset);
	struct queue_settings settings;
	struct wish wish = {0};
	int rc = take_group(r, s, keys, sizeof(keys) / sizeof(*keys), &wish);

	if (rc)
		return rc;
	rc = wish_settings(&wish, &settings, r->err);
	if (rc)
		return wrong_there(r, s, rc);
	*placement = settings.placement;
	if (key->offset == offsetof(struct engine_config, interrupt))
		r->setup->interrupt_set = true;
	return 0;
}

static int take_cpus(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct wish wish = {0};
	int rc = take_wish_key(r, s, &wish, key);

	if (!rc)
		((struct engine_config *)object)->cpus = wish.cpus;
	return rc;
}

static int take_poller(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct wish wish = {0};
	int rc = take_wish_key(r, s, &wish, key);

	if (!rc)
		((struct engine_config *)object)->poller = wish.poller;
	return rc;
}

static int take_frame_size(struct reader *r, config_setting_t *s, void *object,
			   const struct key *key)
{
	struct engine_config *engine = object;
	int rc = take_number(r, s, object, key);

	if (!rc && engine->frame_size != 2048 && engine->frame_size != 4096)
		return wrong(r, s, -EINVAL, "frame_size = %u: it is 2048 or 4096",
			     engine->frame_size);
	return rc;
}

static int take_engine(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
#define ENGINE(field) offsetof(struct engine_config, field)
	static const struct key keys[] = {
		{"name", take_name},
		{"cpus", take_cpus},
		{"poller", take_poller},
		{"frames", take_number, ENGINE(frames), PACKET_VECTOR_MAX, POOL_FRAMES_MAX},
		{"frame_size", take_frame_size, ENGINE(frame_size), 2048, 4096},
		{"ports_max", take_number, ENGINE(ports_max), 1, SETUP_PORTS_MAX},
		{"queues_max", take_number, ENGINE(queues_max), 1, 4096},
		{"dev_weight", take_number, ENGINE(weight), 1, NAPI_WEIGHT_MAX},
		{"netdev_budget", take_number, ENGINE(budget), 1, 1000000},
		{"netdev_budget_usecs", take_number, ENGINE(budget_usecs), 1, 1000000},
		{"restarts", take_number, ENGINE(restarts), 1, 1000000},
		{"restart_usecs", take_number, ENGINE(restart_usecs), 1, 1000000},
		{"interrupt", take_placement, ENGINE(interrupt)},
		{"ksoftirqd", take_placement, ENGINE(ksoftirqd)},
	};
#undef ENGINE

	(void)object;
	(void)key;
	return take_group(r, s, keys, sizeof(keys) / sizeof(*keys), &r->setup->engine);
}

static int take_kind(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	const char *text;
	int rc = take_text(r, s, &text);

	(void)object;
	(void)key;
	if (rc)
		return rc;
	rc = setup_handler_parse(text, &r->setup->handler, r->err);
	return rc ? wrong_there(r, s, rc) : 0;
}

static int take_entries(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct bridge_config *bridge = object;
	int rc = take_number(r, s, object, key);

	if (!rc && (bridge->entries & (bridge->entries - 1)))
		return wrong(r, s, -EINVAL, "entries = %u: it is a power of two", bridge->entries);
	return rc;
}

static int take_handler(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
#define BRIDGE(field) offsetof(struct bridge_config, field)
	static const struct key keys[] = {
		{"kind", take_kind},
		{"entries", take_entries, BRIDGE(entries), 2, 1 << 20},
		{"ageing", take_number, BRIDGE(ageing_seconds), 1, 1000000},
		{"vlan_filtering", take_bool, BRIDGE(vlan_filtering)},
	};
#undef BRIDGE

	(void)object;
	(void)key;
	return take_group(r, s, keys, sizeof(keys) / sizeof(*keys), &r->setup->bridge);
}

static int take_port_key(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	char text[256];
	int rc = scalar(r, s, text, sizeof(text));

	if (rc)
		return rc;
	rc = setup_port_key(object, key->name, text, r->err);
	return rc ? wrong_there(r, s, rc) : 0;
}

/* A text such as "10,20-29", a number, or an array of numbers. */
static int take_vlans(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	int type = config_setting_type(s);

	if (type != CONFIG_TYPE_ARRAY && type != CONFIG_TYPE_LIST)
		return take_port_key(r, s, object, key);
	for (int i = 0; i < config_setting_length(s); i++) {
		config_setting_t *element = config_setting_get_elem(s, (unsigned)i);
		int rc = config_setting_type(element) == CONFIG_TYPE_INT
				 ? take_port_key(r, element, object, key)
				 : wrong_type(r, s, "[ 10, 20 ] or \"10,20-29\"");

		if (rc)
			return rc;
	}
	return 0;
}

/* Found before the other keys of its group are taken. */
static int take_nothing(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)r;
	(void)s;
	(void)object;
	(void)key;
	return 0;
}

/* A list of groups, one call each. */
static int take_list(struct reader *r, config_setting_t *s, void *object,
		     int (*take)(struct reader *r, config_setting_t *s, void *object))
{
	int type = config_setting_type(s);

	if (type != CONFIG_TYPE_LIST)
		return wrong_type(r, s, "( { … }, { … } )");
	for (int i = 0; i < config_setting_length(s); i++) {
		config_setting_t *element = config_setting_get_elem(s, (unsigned)i);
		int rc = config_setting_type(element) == CONFIG_TYPE_GROUP
				 ? take(r, element, object)
				 : wrong_type(r, s, "( { … }, { … } )");

		if (rc)
			return rc;
	}
	return 0;
}

static int take_queue(struct reader *r, config_setting_t *s, void *object)
{
	static const struct key keys[] = {
		{"queue", take_nothing}, {"poller", take_wish_key},   {"weight", take_wish_key},
		{"cpu", take_wish_key},	 {"cpus", take_wish_key},     {"class", take_wish_key},
		{"nice", take_wish_key}, {"priority", take_wish_key},
	};
	static const struct key number = {"queue", NULL, 0, 0, PORT_QUEUES_MAX - 1};
	config_setting_t *which = config_setting_get_member(s, "queue");
	struct wish *wish;
	long long queue;
	int rc;

	if (!which)
		return wrong(r, s, -EINVAL, "this queue has no number: queue = 0;");
	rc = integer(r, which, &number, &queue);
	if (rc)
		return rc;
	wish = setup_port_wish(object, (int)queue);
	if (!wish)
		return error_set(r->err, -ENOMEM, "no memory");
	return take_group(r, s, keys, sizeof(keys) / sizeof(*keys), wish);
}

static int take_queues(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)key;
	return take_list(r, s, object, take_queue);
}

static int take_port(struct reader *r, config_setting_t *s, void *object)
{
	static const struct key keys[] = {
		{"port", take_nothing},	 {"poller", take_port_key},   {"weight", take_port_key},
		{"cpu", take_port_key},	 {"cpus", take_port_key},     {"class", take_port_key},
		{"nice", take_port_key}, {"priority", take_port_key}, {"pvid", take_port_key},
		{"tagged", take_vlans},	 {"untagged", take_vlans},    {"queues", take_queues},
	};
	config_setting_t *which = config_setting_get_member(s, "port");
	struct setup_port *port;
	const char *spec;
	int rc;

	(void)object;
	if (!which)
		return wrong(r, s, -EINVAL, "this port has no device: port = \"xdp:eth0\";");
	rc = take_text(r, which, &spec);
	if (rc)
		return rc;
	rc = setup_port_add(r->setup, spec, &port, r->err);
	if (rc)
		return wrong_there(r, which, rc);
	snprintf(port->where, sizeof(port->where), "%.100s:%u: ", r->path,
		 config_setting_source_line(s));
	return take_group(r, s, keys, sizeof(keys) / sizeof(*keys), port);
}

static int take_ports(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)key;
	return take_list(r, s, object, take_port);
}

static int root_read(struct reader *r, config_t *config)
{
	static const struct key keys[] = {
		{"engine", take_engine},
		{"handler", take_handler},
		{"ports", take_ports},
	};

	return take_group(r, config_root_setting(config), keys, sizeof(keys) / sizeof(*keys), NULL);
}

/*
 * libconfig's scanner ends the whole program when an included file cannot be read (a directory,
 * say), so there is no including.
 */
static int include_refuse(struct reader *r, const char *text)
{
	unsigned line = 1;

	for (const char *at = text; at; at = strchr(at, '\n')) {
		if (*at == '\n') {
			at++;
			line++;
		}
		at += strspn(at, " \t");
		if (!strncmp(at, "@include", 8))
			return error_set(r->err, -EINVAL,
					 "%.120s:%u: @include is not supported: write it here",
					 r->path, line);
	}
	return 0;
}

int setup_text_read(struct setup *setup, const char *path, const char *text, struct error *err)
{
	struct error own;
	struct reader r = {.setup = setup, .path = path, .err = err ? err : &own};
	config_t config;
	int rc = include_refuse(&r, text);

	if (rc)
		return rc;
	config_init(&config);
	if (config_read_string(&config, text))
		rc = root_read(&r, &config);
	else
		rc = error_set(r.err, -EINVAL, "%.120s:%d: %s", path, config_error_line(&config),
			       config_error_text(&config));
	config_destroy(&config);
	return rc;
}

/* *text is the caller's to free. */
static int file_load(const char *path, char **text, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n = 0;
	int rc = 0;

	if (fd < 0)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		rc = error_set(err, -EINVAL, "%s: not a file", path);
	} else if (st.st_size > SETUP_FILE_MAX) {
		rc = error_set(err, -EFBIG, "%s: longer than %u bytes, so no configuration", path,
			       SETUP_FILE_MAX);
	} else if (!(*text = malloc(SETUP_FILE_MAX + 1))) {
		rc = error_set(err, -ENOMEM, "%s: no memory", path);
	} else {
		n = read(fd, *text, SETUP_FILE_MAX);
		if (n < 0)
			rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
	}
	close(fd);
	if (rc || n < 0)
		return rc;
	(*text)[n] = '\0';
	if (strlen(*text) != (size_t)n)
		return error_set(err, -EINVAL, "%s: not a text file", path);
	return 0;
}

int setup_file_read(struct setup *setup, const char *path, struct error *err)
{
	char *text = NULL;
	int rc = file_load(path, &text, err);

	if (!rc)
		rc = setup_text_read(setup, path, text, err);
	free(text);
	return rc;
}
