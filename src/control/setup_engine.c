/* SPDX-License-Identifier: BSD-2-Clause */
/* The group `engine` of a configuration. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include <control/setup_keys.h>

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

/* class, nice and priority of the engine's own runners */
static int take_placement(struct reader *r, config_setting_t *s, void *object,
			  const struct key *key)
{
	static const struct key keys[] = {
		{"class", setup_take_wish},
		{"nice", setup_take_wish},
		{"priority", setup_take_wish},
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
	int rc = setup_take_wish(r, s, &wish, key);

	if (!rc)
		((struct engine_config *)object)->cpus = wish.cpus;
	return rc;
}

static int take_poller(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct wish wish = {0};
	int rc = setup_take_wish(r, s, &wish, key);

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

static int take_cpu(struct reader *r, config_setting_t *s, void *object)
{
	static const struct key keys[] = {{"cpu", setup_take_nothing}, {"deferral", take_cpu_key}};
	static const struct key number = {"cpu", NULL, 0, 0, CPU_MAX - 1};
	struct setup *setup = setup_of(r);
	uint32_t before = setup->cpus_n;
	struct setup_cpu *added;
	long long cpu;
	int rc =
		setup_number(r, s, &number, "engine CPU", keys, sizeof(keys) / sizeof(*keys), &cpu);

	(void)object;
	if (rc)
		return rc;
	added = setup_cpu(setup, (unsigned)cpu);
	if (!added)
		return error_set(r->err, -ENOMEM, "no memory");
	if (setup->cpus_n == before)
		return setup_twice(r, s, &number, cpu);
	setup_where(r, s, added->where);
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
		{"poller", setup_take_wish},	   {"weight", setup_take_wish},
		{"cpus", setup_take_wish},	   {"class", setup_take_wish},
		{"nice", setup_take_wish},	   {"priority", setup_take_wish},
		{"idle_suspend", setup_take_wish},
	};

	(void)object;
	(void)key;
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &setup_of(r)->backlog);
}

int setup_take_engine(struct reader *r, config_setting_t *s, void *object, const struct key *key)
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
