/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration file: its groups and keys. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <control/engine_wish.h>
#include <control/reader.h>
#include <control/setup.h>
#include <control/setup_text.h>

static struct setup *setup_of(struct reader *r)
{
	return r->arg;
}

static int take_name(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	const char *text;
	int rc = reader_text(r, s, &text);

	(void)object;
	(void)key;
	if (rc)
		return rc;
	rc = setup_name(setup_of(r), text, r->err);
	return rc ? reader_wrong_there(r, s, rc) : 0;
}

static int take_wish_key(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	char text[256];
	int rc = reader_scalar(r, s, text, sizeof(text));

	if (rc)
		return rc;
	rc = wish_key(object, key->name, text, r->err);
	return rc ? reader_wrong_there(r, s, rc) : 0;
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
	int rc = reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &wish);

	if (rc)
		return rc;
	rc = wish_settings(&wish, &settings, r->err);
	if (rc)
		return reader_wrong_there(r, s, rc);
	*placement = settings.placement;
	if (key->offset == offsetof(struct engine_config, interrupt))
		setup_of(r)->interrupt_set = true;
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

static int take_deferral(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct cpu_settings cpu = {0};
	const char *text;
	int rc = reader_text(r, s, &text);

	if (rc)
		return rc;
	rc = cpu_wish_key(&cpu, key->name, text, r->err);
	if (rc)
		return reader_wrong_there(r, s, rc);
	((struct engine_config *)object)->deferral = cpu.deferral;
	((struct engine_config *)object)->looped_ticks = cpu.looped_ticks;
	return 0;
}

static int take_cpu_key(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	char text[256];
	int rc = reader_scalar(r, s, text, sizeof(text));

	if (rc)
		return rc;
	rc = cpu_wish_key(object, key->name, text, r->err);
	return rc ? reader_wrong_there(r, s, rc) : 0;
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

static int take_cpu(struct reader *r, config_setting_t *s, void *object)
{
	static const struct key keys[] = {{"cpu", take_nothing}, {"deferral", take_cpu_key}};
	static const struct key number = {"cpu", NULL, 0, 0, CPU_MAX - 1};
	config_setting_t *which = config_setting_get_member(s, "cpu");
	struct setup *setup = setup_of(r);
	uint32_t before = setup->cpus_n;
	struct setup_cpu *added;
	long long cpu;
	int rc;

	(void)object;
	if (!which)
		return reader_wrong(r, s, -EINVAL, "this engine CPU has no number: cpu = 0;");
	rc = reader_integer(r, which, &number, &cpu);
	if (rc)
		return rc;
	added = setup_cpu(setup, (unsigned)cpu);
	if (!added)
		return error_set(r->err, -ENOMEM, "no memory");
	if (setup->cpus_n == before)
		return reader_wrong(r, which, -EINVAL, "cpu = %lld is there twice", cpu);
	snprintf(added->where, sizeof(added->where), "%.100s:%u: ", r->path,
		 config_setting_source_line(s));
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &added->settings);
}

static int take_cpu_list(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)key;
	return reader_list(r, s, object, take_cpu);
}

static int take_frame_size(struct reader *r, config_setting_t *s, void *object,
			   const struct key *key)
{
	struct engine_config *engine = object;
	int rc = reader_number(r, s, object, key);

	if (!rc && engine->frame_size != 2048 && engine->frame_size != 4096)
		return reader_wrong(r, s, -EINVAL, "frame_size = %u: it is 2048 or 4096",
				    engine->frame_size);
	return rc;
}

/* The size of a table: a power of two, or 0 for none. */
static int take_table(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	const struct key any = {key->name, NULL, key->offset, 0, key->max};
	uint32_t *value = (uint32_t *)((char *)object + key->offset);
	int rc = reader_number(r, s, object, &any);

	if (!rc && *value && (*value & (*value - 1) || *value < key->min))
		return reader_wrong(r, s, -EINVAL,
				    "%s = %u: must be a power of two, %lld to %lld, or 0 for none",
				    key->name, *value, key->min, key->max);
	return rc;
}

/* As the kernel writes it: bytes in hexadecimal with colons between. */
static int take_rss_key(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct engine_config *engine = object;
	const char *text;
	uint32_t n = 0;
	int rc = reader_text(r, s, &text);

	if (rc)
		return rc;
	while (n < RSS_KEY_SIZE && isxdigit((unsigned char)text[0]) &&
	       isxdigit((unsigned char)text[1]) && text[2] == (n + 1 < RSS_KEY_SIZE ? ':' : '\0')) {
		engine->rss_key[n++] = (uint8_t)strtoul(text, NULL, 16);
		text += n < RSS_KEY_SIZE ? 3 : 0;
	}
	if (n < RSS_KEY_SIZE)
		return reader_wrong(r, s, -EINVAL,
				    "%s: byte %u is wrong: it is %d bytes in hexadecimal, 6d:5a:…",
				    key->name, n, RSS_KEY_SIZE);
	engine->rss_key_set = true;
	return 0;
}

/* The backlogs' NAPIs: as those of a port, but for what steering itself needs. */
static int take_backlog(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	static const struct key keys[] = {
		{"poller", take_wish_key},	 {"weight", take_wish_key},
		{"cpus", take_wish_key},	 {"class", take_wish_key},
		{"nice", take_wish_key},	 {"priority", take_wish_key},
		{"idle_suspend", take_wish_key},
	};

	(void)object;
	(void)key;
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &setup_of(r)->backlog);
}

static int take_engine(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
#define ENGINE(field) offsetof(struct engine_config, field)
	static const struct key keys[] = {
		{"name", take_name},
		{"cpus", take_cpus},
		{"poller", take_poller},
		{"frames", reader_number, ENGINE(frames), PACKET_VECTOR_MAX, POOL_FRAMES_MAX},
		{"frame_size", take_frame_size, ENGINE(frame_size), 2048, 4096},
		{"ports_max", reader_number, ENGINE(ports_max), 1, SETUP_PORTS_MAX},
		{"queues_max", reader_number, ENGINE(queues_max), 1, 4096},
		{"dev_weight", reader_number, ENGINE(weight), 1, NAPI_WEIGHT_MAX},
		{"netdev_budget", reader_number, ENGINE(budget), 1, ENGINE_BUDGET_MAX},
		{"netdev_budget_usecs", reader_number, ENGINE(budget_usecs), 1,
		 ENGINE_BUDGET_USECS_MAX},
		{"busy_poll", reader_number, ENGINE(busy_poll), 0, ENGINE_BUSY_POLL_MAX},
		{"busy_read", reader_number, ENGINE(busy_read), 0, ENGINE_BUSY_POLL_MAX},
		{"gro_normal_batch", reader_number, ENGINE(gro_normal_batch), 1, PACKET_VECTOR_MAX},
		{"netdev_max_backlog", reader_number, ENGINE(max_backlog), 1, ENGINE_BACKLOG_MAX},
		{"flow_limit", take_table, ENGINE(flow_limit), 2, ENGINE_FLOW_LIMIT_MAX},
		{"rps_sock_flow_entries", take_table, ENGINE(sock_flow_entries), 1,
		 ENGINE_SOCK_FLOWS_MAX},
		{"symmetric_hash", reader_bool, ENGINE(symmetric_hash)},
		{"netdev_rss_key", take_rss_key},
		{"backlog", take_backlog},
		{"deferral", take_deferral},
		{"cpu", take_cpu_list},
		{"hz", reader_number, ENGINE(hz), 1, HZ_MAX},
		{"restarts", reader_number, ENGINE(restarts), 1, 1000000},
		{"restart_usecs", reader_number, ENGINE(restart_usecs), 1, 1000000},
		{"idle_suspend", reader_number, ENGINE(idle_suspend_usecs), 0, 3600000000},
		{"workers", reader_number, ENGINE(workers), 1, 64},
		{"interrupt", take_placement, ENGINE(interrupt)},
		{"ksoftirqd", take_placement, ENGINE(ksoftirqd)},
		{"worker", take_placement, ENGINE(worker)},
	};
#undef ENGINE

	(void)object;
	(void)key;
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &setup_of(r)->engine);
}

static int take_kind(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	const char *text;
	int rc = reader_text(r, s, &text);

	(void)object;
	(void)key;
	if (rc)
		return rc;
	rc = setup_handler_parse(text, &setup_of(r)->handler, r->err);
	return rc ? reader_wrong_there(r, s, rc) : 0;
}

static int take_entries(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct bridge_config *bridge = object;
	int rc = reader_number(r, s, object, key);

	if (!rc && (bridge->entries & (bridge->entries - 1)))
		return reader_wrong(r, s, -EINVAL, "entries = %u: it is a power of two",
				    bridge->entries);
	return rc;
}

static int take_handler(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
#define BRIDGE(field) offsetof(struct bridge_config, field)
	static const struct key keys[] = {
		{"kind", take_kind},
		{"entries", take_entries, BRIDGE(entries), 2, 1 << 20},
		{"ageing", reader_number, BRIDGE(ageing_seconds), 1, 1000000},
		{"vlan_filtering", reader_bool, BRIDGE(vlan_filtering)},
	};
#undef BRIDGE

	(void)object;
	(void)key;
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &setup_of(r)->bridge);
}

static int take_port_key(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	char text[256];
	int rc = reader_scalar(r, s, text, sizeof(text));

	if (rc)
		return rc;
	rc = setup_port_key(object, key->name, text, r->err);
	return rc ? reader_wrong_there(r, s, rc) : 0;
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
				 : reader_wrong_type(r, s, "[ 10, 20 ] or \"10,20-29\"");

		if (rc)
			return rc;
	}
	return 0;
}

static int take_queue(struct reader *r, config_setting_t *s, void *object)
{
	static const struct key keys[] = {
		{"queue", take_nothing},	 {"poller", take_wish_key},
		{"weight", take_wish_key},	 {"cpu", take_wish_key},
		{"cpus", take_wish_key},	 {"class", take_wish_key},
		{"nice", take_wish_key},	 {"priority", take_wish_key},
		{"idle_suspend", take_wish_key}, {"rps_cpus", take_wish_key},
		{"rps_flow_cnt", take_wish_key}, {"irq_suspend_timeout", take_wish_key},
		{"gro", take_wish_key},
	};
	static const struct key number = {"queue", NULL, 0, 0, PORT_QUEUES_MAX - 1};
	config_setting_t *which = config_setting_get_member(s, "queue");
	struct setup_port *port = object;
	uint32_t before = port->queues_n;
	struct wish *wish;
	long long queue;
	int rc;

	if (!which)
		return reader_wrong(r, s, -EINVAL, "this queue has no number: queue = 0;");
	rc = reader_integer(r, which, &number, &queue);
	if (rc)
		return rc;
	wish = setup_port_wish(port, (int)queue);
	if (!wish)
		return error_set(r->err, -ENOMEM, "no memory");
	if (port->queues_n == before)
		return reader_wrong(r, which, -EINVAL, "queue = %lld is there twice", queue);
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), wish);
}

static int take_queues(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)key;
	return reader_list(r, s, object, take_queue);
}

static int take_tx(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	static const struct key keys[] = {
		{"poller", take_wish_key},   {"weight", take_wish_key},
		{"cpu", take_wish_key},	     {"cpus", take_wish_key},
		{"class", take_wish_key},    {"nice", take_wish_key},
		{"priority", take_wish_key}, {"idle_suspend", take_wish_key},
	};
	struct setup_port *port = object;

	(void)key;
	if (!port->config.tx_napi)
		return reader_wrong(r, s, -EINVAL, "tx goes with tx_napi=yes in the port's text");
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &port->tx);
}

/* The NAPIs of the TAP by which the host has it. */
static int take_host(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	static const struct key keys[] = {
		{"poller", take_wish_key},   {"weight", take_wish_key},
		{"cpu", take_wish_key},	     {"cpus", take_wish_key},
		{"class", take_wish_key},    {"nice", take_wish_key},
		{"priority", take_wish_key}, {"idle_suspend", take_wish_key},
		{"rps_cpus", take_wish_key}, {"rps_flow_cnt", take_wish_key},
		{"gro", take_wish_key},
	};
	struct setup_port *port = object;

	(void)key;
	if (!port->host[0])
		return reader_wrong(r, s, -EINVAL, "host goes with host=yes in the port's text");
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &port->host_wish);
}

static int take_port(struct reader *r, config_setting_t *s, void *object)
{
	static const struct key keys[] = {
		{"port", take_nothing},
		{"poller", take_port_key},
		{"weight", take_port_key},
		{"cpu", take_port_key},
		{"cpus", take_port_key},
		{"class", take_port_key},
		{"nice", take_port_key},
		{"priority", take_port_key},
		{"idle_suspend", take_port_key},
		{"napi_defer_hard_irqs", take_port_key},
		{"gro", take_port_key},
		{"gro_flush_timeout", take_port_key},
		{"irq_suspend_timeout", take_port_key},
		{"rps_cpus", take_port_key},
		{"rps_flow_cnt", take_port_key},
		{"pvid", take_port_key},
		{"tagged", take_vlans},
		{"untagged", take_vlans},
		{"queues", take_queues},
		{"tx", take_tx},
		{"host", take_host},
	};
	config_setting_t *which = config_setting_get_member(s, "port");
	struct setup_port *port;
	const char *spec;
	int rc;

	(void)object;
	if (!which)
		return reader_wrong(r, s, -EINVAL, "this port has no device: port = \"xdp:eth0\";");
	rc = reader_text(r, which, &spec);
	if (rc)
		return rc;
	rc = setup_port_add(setup_of(r), spec, &port, r->err);
	if (rc)
		return reader_wrong_there(r, which, rc);
	snprintf(port->where, sizeof(port->where), "%.100s:%u: ", r->path,
		 config_setting_source_line(s));
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), port);
}

static int take_ports(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)key;
	return reader_list(r, s, object, take_port);
}

static int root_read(struct reader *r, config_t *config)
{
	static const struct key keys[] = {
		{"engine", take_engine},
		{"handler", take_handler},
		{"ports", take_ports},
	};

	return reader_group(r, config_root_setting(config), keys, sizeof(keys) / sizeof(*keys),
			    NULL);
}

int setup_text_read(struct setup *setup, const char *path, const char *text, struct error *err)
{
	struct error own;
	struct reader r = {.arg = setup, .path = path, .err = err ? err : &own};
	config_t config;
	int rc = setup_text_check(&r, text);

	if (rc)
		return rc;
	config_init(&config);
	if (config_read_string(&config, text))
		rc = root_read(&r, &config);
	else
		rc = error_set(r.err, -EINVAL, "%.120s:%d: %s%s", path, config_error_line(&config),
			       config_error_text(&config),
			       strcmp(config_error_text(&config), "syntax error")
				       ? ""
				       : " (texts are in quotes, and ';' ends a key)");
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
