/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <control/wish.h>

#include "lab/run/knobs.h"
#include "lab/spec/reading.h"

#define SYSTEM(field) offsetof(struct spec_system, field)
#define SIZE(field) sizeof(((struct spec_system *)0)->field)
#define NAMES(list) list, sizeof(list) / sizeof(*list)

static const char *const duts[] = {"kernel", "napier", "command"};
static const char *const handlers[] = {"socket", "host", "bridge", "router"};
static const char *const kernel_pollers[] = {"softirq", "threaded", "threaded-busy-poll",
					     "socket-busy-poll"};
static const char *const parties[] = {"client",	   "server", "poller",
				      "interrupt", "worker", "antagonist"};

static int take_dut(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	unsigned n;
	int rc = value_name(r, s, NAMES(duts), &n);

	(void)key;
	if (!rc)
		((struct spec_system *)object)->dut = (enum spec_dut)n;
	return rc;
}

static int take_handler(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	unsigned n;
	int rc = value_name(r, s, NAMES(handlers), &n);

	(void)key;
	if (!rc)
		((struct spec_system *)object)->handler = (enum spec_handler)n;
	return rc;
}

/* Whose, the kernel's or napier's, is known once all keys of the system are. */
static int poller_take(struct reader *r, config_setting_t *s, struct spec_system *system)
{
	const char *text;
	unsigned n;
	int rc = reader_text(r, s, &text);

	if (rc)
		return rc;
	if (system->dut == SPEC_COMMAND)
		return reader_wrong(r, s, -EINVAL, "poller: a command polls as it likes");
	if (system->dut == SPEC_NAPIER) {
		if (poller_parse(text, &system->poller))
			return reader_wrong(r, s, -EINVAL,
					    "unknown poller \"%.40s\": napier's are %s", text,
					    poller_list());
		return 0;
	}
	rc = value_name(r, s, NAMES(kernel_pollers), &n);
	if (!rc)
		system->kernel_poller = (enum spec_kernel_poller)n;
	return rc;
}

/* CPUs as everywhere in a specification, or none. */
static int knob_cpus(struct reader *r, config_setting_t *s, struct spec_knob *knob)
{
	const char *text = config_setting_get_string(s);
	struct cpuset cpus = {0};
	int rc = text && !strcmp(text, "none") ? 0 : value_cpus(r, s, &cpus);

	if (rc)
		return rc;
	if (cpuset_empty(&cpus))
		snprintf(knob->value, sizeof(knob->value), "none");
	else if (cpuset_format(&cpus, knob->value, sizeof(knob->value)) >= (int)sizeof(knob->value))
		return reader_wrong(r, s, -EINVAL, "%s: that many ranges of CPUs are too many",
				    knob->key);
	return 0;
}

static int take_knob(struct reader *r, config_setting_t *s, struct spec_system *system)
{
	const char *name = config_setting_name(s);
	struct spec_knob *knob = &system->knob[system->knobs];
	bool of_interface;
	int rc;

	if (system->knobs == SPEC_KNOBS_MAX)
		return reader_wrong(r, s, -EINVAL, "more than %d knobs", SPEC_KNOBS_MAX);
	*knob = (struct spec_knob){.line = (int)config_setting_source_line(s)};
	snprintf(knob->key, sizeof(knob->key), "%s", name);
	if (!strcmp(name, "rps_cpus") || !strcmp(name, "irq_cpus"))
		rc = knob_cpus(r, s, knob);
	else
		rc = reader_scalar(r, s, knob->value, sizeof(knob->value));
	if (rc)
		return rc;
	rc = knob_check(name, knob->value, &of_interface, r->err);
	if (rc)
		return reader_wrong_there(r, s, rc);
	system->knobs++;
	return 0;
}

static int take_knobs(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)key;
	if (!config_setting_is_group(s))
		return reader_wrong_type(r, s, "{ napi_defer_hard_irqs = 2; … }");
	for (int i = 0; i < config_setting_length(s); i++) {
		int rc = take_knob(r, config_setting_get_elem(s, (unsigned)i), object);

		if (rc)
			return rc;
	}
	return 0;
}

static int take_wish(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	char text[64];
	int rc = reader_scalar(r, s, text, sizeof(text));

	if (rc)
		return rc;
	rc = wish_key(object, key->name, text, r->err);
	return rc ? reader_wrong_there(r, s, rc) : 0;
}

/* "any" takes back what the defaults say. */
static int place_cpus(struct reader *r, config_setting_t *s, struct cpuset *out)
{
	const char *text = config_setting_get_string(s);

	*out = (struct cpuset){0};
	return text && !strcmp(text, "any") ? 0 : value_cpus(r, s, out);
}

static int take_wish_cpus(struct reader *r, config_setting_t *s, void *object,
			  const struct key *key)
{
	struct wish *wish = object;

	(void)key;
	return place_cpus(r, s, &wish->cpus);
}

/* CPUs alone, or a group. */
static int place_read(struct reader *r, config_setting_t *s, struct spec_placement *place)
{
	static const struct key keys[] = {
		{"cpus", take_wish_cpus},
		{"class", take_wish},
		{"nice", take_wish},
		{"priority", take_wish},
	};
	struct queue_settings settings;
	struct wish wish = {0};
	int rc;

	if (!config_setting_is_group(s)) {
		if (config_setting_is_aggregate(s))
			return reader_wrong_type(r, s, "\"0-1\" or { cpus = \"0-1\"; nice = 5; }");
		return place_cpus(r, s, &place->cpus);
	}
	rc = reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &wish);
	if (rc)
		return rc;
	rc = wish_settings(&wish, &settings, r->err);
	if (rc)
		return reader_wrong_there(r, s, rc);
	place->cpus = wish.cpus;
	place->placed = wish.class_set || wish.level_set;
	place->scheduling = settings.placement.class;
	*(settings.placement.class == RUNNER_FIFO ? &place->priority : &place->nice) =
		settings.placement.level;
	return 0;
}

static int take_place(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct spec_system *system = object;
	struct spec_placement *place = &system->place[system->places];

	/* The keys are the parties, each once, so there is room. */
	*place = (struct spec_placement){.line = (int)config_setting_source_line(s)};
	snprintf(place->who, sizeof(place->who), "%s", key->name);
	system->places++;
	return place_read(r, s, place);
}

_Static_assert(sizeof(parties) / sizeof(*parties) <= SPEC_PLACES_MAX, "room for each");

static int take_places(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct key keys[sizeof(parties) / sizeof(*parties)];
	const unsigned n = sizeof(parties) / sizeof(*parties);

	(void)key;
	for (unsigned i = 0; i < n; i++)
		keys[i] = (struct key){parties[i], take_place};
	return reader_group(r, s, keys, n, object);
}

static int only_bit(struct reader *r, config_setting_t *s, struct spec_system *system)
{
	const struct spec *spec = reading_of(r)->spec;
	const char *text;
	char list[400] = "";
	size_t used = 0;
	int rc = reader_text(r, s, &text);

	if (rc)
		return rc;
	for (unsigned i = 0; i < spec->workloads; i++) {
		if (!strcmp(text, spec->workload[i].key)) {
			system->only |= 1u << i;
			return 0;
		}
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 i ? ", " : "", spec->workload[i].key);
	}
	return reader_wrong(r, s, -EINVAL, "only: there is no workload \"%.40s\": they are %s",
			    text, list);
}

static int take_only(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct spec_system *system = object;
	bool list = config_setting_is_array(s) || config_setting_is_list(s);
	int rc = 0;

	(void)key;
	if (config_setting_type(s) == CONFIG_TYPE_STRING)
		return only_bit(r, s, system);
	if (!list || !config_setting_length(s))
		return reader_wrong_type(r, s, "[ \"WORKLOAD\", … ]");
	for (int i = 0; i < config_setting_length(s) && !rc; i++)
		rc = only_bit(r, config_setting_get_elem(s, (unsigned)i), system);
	return rc;
}

static int take_settings(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	bool port = !strcmp(key->name, "ports");

	return settings_take(r, s, port, (char *)object + key->offset, (size_t)key->max);
}

static int group_take(struct reader *r, config_setting_t *s, struct spec_system *system)
{
	static const struct key keys[] = {
		{"name", take_text, SYSTEM(name), 0, SIZE(name)},
		{"scenario", take_text, SYSTEM(scenario), 0, SIZE(scenario)},
		{"like", take_nothing},
		{"base", reader_bool, SYSTEM(base)},
		{"dut", take_dut},
		{"handler", take_handler},
		{"poller", take_nothing},
		{"port", take_text, SYSTEM(port), 0, SIZE(port)},
		{"port_options", port_options_take, SYSTEM(port_options), 0, SIZE(port_options)},
		{"engine", take_settings, SYSTEM(settings), 0, SIZE(settings)},
		{"ports", take_settings, SYSTEM(port_settings), 0, SIZE(port_settings)},
		{"command", take_text, SYSTEM(command), 0, SIZE(command)},
		{"queues", take_count, SYSTEM(queues), 1, 64},
		{"server_spins", reader_bool, SYSTEM(server_spins)},
		{"client_spins", reader_bool, SYSTEM(client_spins)},
		{"prefer_busy_poll", reader_bool, SYSTEM(prefer_busy_poll)},
		{"busy_poll_usecs", take_unsigned, SYSTEM(busy_poll_usecs), 0, 1000000},
		{"busy_poll_budget", take_unsigned, SYSTEM(busy_poll_budget), 0, 65535},
		{"knobs", take_knobs},
		{"place", take_places},
		{"only", take_only},
	};

	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), system);
}

static int defaults_take(struct reader *r, config_setting_t *group)
{
	static const char *const own[] = {"name", "base", "like"};
	struct spec_system scratch = {0};

	for (size_t k = 0; config_setting_is_group(group) && k < sizeof(own) / sizeof(*own); k++) {
		config_setting_t *s = config_setting_get_member(group, own[k]);

		if (s)
			return reader_wrong(r, s, -EINVAL, "%s is each system's own", own[k]);
	}
	return group_take(r, group, &scratch);
}

static int system_take(struct reader *r, config_setting_t *group)
{
	struct spec *spec = reading_of(r)->spec;
	struct spec_system *system = &spec->system[spec->systems];
	const char *key = config_setting_name(group);
	config_setting_t *poller;
	int rc;

	if (spec->systems == SPEC_SYSTEMS_MAX)
		return reader_wrong(r, group, -EINVAL, "more than %d systems", SPEC_SYSTEMS_MAX);
	if (strlen(key) >= SPEC_NAME_MAX)
		return reader_wrong(r, group, -EINVAL, "the name %.40s… is too long", key);
	*system = (struct spec_system){
		.handler = spec->topology == SPEC_ENDS ? SPEC_SOCKET : SPEC_BRIDGE,
		.port = "xdp",
		.line = (int)config_setting_source_line(group),
	};
	snprintf(system->key, sizeof(system->key), "%s", key);
	snprintf(system->name, sizeof(system->name), "%s", key);
	spec->systems++;
	rc = group_take(r, group, system);
	if (rc)
		return rc;
	poller = config_setting_get_member(group, "poller");
	rc = poller ? poller_take(r, poller, system) : 0;
	if (!rc)
		rc = system_check(r, group, system);
	/* It may have them from the defaults. */
	if (system->dut != SPEC_NAPIER)
		system->settings[0] = system->port_settings[0] = system->port_options[0] = '\0';
	return rc;
}

/* Members of the one that it is like, but for what is that one's own. */
static int like_merge(struct reader *r, config_setting_t *systems, config_setting_t *group)
{
	config_setting_t *like = config_setting_get_member(group, "like"), *other;
	const char *text;
	int rc;

	if (!like)
		return 0;
	rc = reader_text(r, like, &text);
	if (rc)
		return rc;
	other = config_setting_get_member(systems, text);
	if (!other || config_setting_index(other) >= config_setting_index(group))
		return reader_wrong(r, like, -EINVAL, "like: there is no system \"%.40s\" above it",
				    text);
	if (!config_setting_is_group(other))
		return 0;
	for (int i = 0; i < config_setting_length(other); i++) {
		config_setting_t *s = config_setting_get_elem(other, (unsigned)i);
		const char *name = config_setting_name(s);

		if (!strcmp(name, "name") || !strcmp(name, "base") || !strcmp(name, "like"))
			continue;
		rc = tree_inherit(group, s);
		if (rc)
			return error_set(r->err, rc, "no memory");
	}
	return 0;
}

int systems_take(struct reader *r, config_setting_t *group)
{
	config_setting_t *root = config_setting_parent(group);
	config_setting_t *defaults = config_setting_get_member(root, "defaults");
	int rc = 0;

	if (!config_setting_is_group(group) || !config_setting_length(group))
		return reader_wrong_type(r, group,
					 "{ NAME = { dut = \"kernel\"; … }; … }, one at least");
	defaults = defaults ? config_setting_get_member(defaults, "system") : NULL;
	if (defaults)
		rc = defaults_take(r, defaults);
	for (int i = 0; i < config_setting_length(group) && !rc; i++) {
		config_setting_t *s = config_setting_get_elem(group, (unsigned)i);

		if (!config_setting_is_group(s))
			rc = reader_wrong_type(r, s, "{ dut = \"kernel\"; … }");
		if (!rc)
			rc = like_merge(r, group, s);
		if (!rc && defaults && tree_merge(s, defaults))
			rc = error_set(r->err, -ENOMEM, "no memory");
	}
	for (int i = 0; i < config_setting_length(group) && !rc; i++)
		rc = system_take(r, config_setting_get_elem(group, (unsigned)i));
	return rc;
}
