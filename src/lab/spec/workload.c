/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab/spec/reading.h"

#define HOUR (3600 * NSEC_PER_SEC)
#define LOAD(field) offsetof(struct load_config, field)

enum {
	RR = 1 << LOAD_RR,
	STREAM = 1 << LOAD_STREAM,
	RRUL = 1 << LOAD_RRUL,
	ALL = RR | STREAM | RRUL
};

static const char *const kinds[] = {"rr", "stream", "rrul"};
static const char *const protocols[] = {"tcp", "udp"};
static const char *const arrivals[] = {"constant", "poisson"};
static const char *const directions[] = {"up", "down", "both"};

#define NAMES(list) list, sizeof(list) / sizeof(*list)

static int take_protocol(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	unsigned n;
	int rc = value_name(r, s, NAMES(protocols), &n);

	(void)key;
	if (!rc)
		((struct load_config *)object)->protocol = (enum load_protocol)n;
	return rc;
}

static int take_arrivals(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	unsigned n;
	int rc = value_name(r, s, NAMES(arrivals), &n);

	(void)key;
	if (!rc)
		((struct load_config *)object)->arrivals = (enum load_arrivals)n;
	return rc;
}

static int take_direction(struct reader *r, config_setting_t *s, void *object,
			  const struct key *key)
{
	unsigned n;
	int rc = value_name(r, s, NAMES(directions), &n);

	(void)key;
	if (!rc)
		((struct load_config *)object)->direction = (enum load_direction)n;
	return rc;
}

/* A number, with a fraction or without. */
static int take_rate(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	double *out = (double *)((char *)object + key->offset);

	switch (config_setting_type(s)) {
	case CONFIG_TYPE_INT:
		*out = config_setting_get_int(s);
		break;
	case CONFIG_TYPE_INT64:
		*out = (double)config_setting_get_int64(s);
		break;
	case CONFIG_TYPE_FLOAT:
		*out = config_setting_get_float(s);
		break;
	default:
		return reader_wrong_type(r, s, "as a number: 10000");
	}
	/* Also what is not a number at all. */
	if (!(*out >= (double)key->min && *out <= (double)key->max))
		return reader_wrong(r, s, -ERANGE, "%s = %g: out of range %lld..%lld", key->name,
				    *out, key->min, key->max);
	return 0;
}

static int take_seed(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	long long n;
	int rc = reader_integer(r, s, key, &n);

	if (!rc)
		((struct load_config *)object)->seed = (uint64_t)n;
	return rc;
}

static int take_sizes(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	struct load_config *load = object;
	int n = config_setting_length(s);

	if (!config_setting_is_array(s) && !config_setting_is_list(s))
		return reader_wrong_type(r, s, "[ 18, 82, 1472 ]");
	if (n < 1 || n > LOAD_SIZES_MAX)
		return reader_wrong(r, s, -ERANGE, "%s: 1 to %d of them", key->name,
				    LOAD_SIZES_MAX);
	load->sizes = (unsigned)n;
	for (int i = 0; i < n; i++) {
		long long size;
		int rc = reader_integer(r, config_setting_get_elem(s, (unsigned)i), key, &size);

		if (rc)
			return rc;
		load->size[i] = (uint32_t)size;
	}
	return 0;
}

/* What the discussion had, where it is other than here. */
static int take_original(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	static const struct key keys[] = {
		{"flows", take_unsigned, LOAD(flows), 1, 1 << 30},
		{"threads", take_unsigned, LOAD(threads), 1, 1 << 30},
		{"server_threads", take_unsigned, LOAD(server_threads), 1, 1 << 30},
		{"tcp_flows", take_unsigned, LOAD(tcp_flows), 1, 1 << 30},
		{"rate", take_rate, LOAD(rate), 0, 1000000000},
	};
	struct load_config original;

	(void)object;
	(void)key;
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &original);
}

/* As a result's parameters have them, but for the unit behind a time's. */
static const struct load_key {
	struct key key;
	unsigned kinds; /* that have it */
} load_keys[] = {
	{{"name", take_nothing}, ALL},
	{{"kind", take_nothing}, ALL},
	{{"original", take_original}, ALL},
	{{"protocol", take_protocol}, RR | STREAM},
	{{"flows", take_count, LOAD(flows), 1, LOAD_FLOWS_MAX}, RR | STREAM},
	{{"threads", take_count, LOAD(threads), 1, LOAD_THREADS_MAX}, ALL},
	{{"server_threads", take_count, LOAD(server_threads), 1, LOAD_THREADS_MAX}, ALL},
	{{"timeout", take_time, LOAD(timeout), NSEC_PER_MSEC, HOUR}, ALL},
	{{"interval", take_time, LOAD(interval), NSEC_PER_MSEC, HOUR}, ALL},
	{{"seed", take_seed, 0, 0, INT64_MAX}, RR | STREAM},
	{{"request_size", reader_number, LOAD(request_size), 1, LOAD_SIZE_MAX}, RR},
	{{"response_size", reader_number, LOAD(response_size), 1, LOAD_SIZE_MAX}, RR},
	{{"rate", take_rate, LOAD(rate), 0, 1000000000}, RR | STREAM},
	{{"arrivals", take_arrivals}, RR},
	{{"outstanding", take_unsigned, LOAD(outstanding), 1, LOAD_OUTSTANDING_MAX}, RR},
	{{"connect", reader_bool, LOAD(connect)}, RR},
	{{"work", take_time, LOAD(work), 0, NSEC_PER_SEC}, RR},
	{{"stall", take_time, LOAD(stall), 0, 10 * NSEC_PER_SEC}, RR},
	{{"stall_every", take_time, LOAD(stall_every), NSEC_PER_MSEC, HOUR}, RR},
	{{"direction", take_direction}, STREAM},
	{{"sizes", take_sizes, 0, 1, LOAD_SIZE_MAX}, STREAM},
	{{"batch", take_unsigned, LOAD(batch), 0, 1024}, STREAM},
	{{"tcp_flows", take_count, LOAD(tcp_flows), 1, 64}, RRUL},
	{{"probe_rate", take_rate, LOAD(probe_rate), 1, 10000}, RRUL},
	{{"idle", take_time, LOAD(idle), NSEC_PER_MSEC, HOUR}, RRUL},
	{{"server_spins", reader_bool, LOAD(server_spins)}, ALL},
	{{"client_spins", reader_bool, LOAD(client_spins)}, ALL},
	{{"busy_poll_usecs", take_unsigned, LOAD(busy_poll_usecs), 0, 1000000}, ALL},
	{{"prefer_busy_poll", reader_bool, LOAD(prefer_busy_poll)}, ALL},
	{{"busy_poll_budget", take_unsigned, LOAD(busy_poll_budget), 0, 65535}, ALL},
};

enum { LOAD_KEYS = sizeof(load_keys) / sizeof(*load_keys) };

static void keys_fill(struct key keys[LOAD_KEYS])
{
	for (unsigned i = 0; i < LOAD_KEYS; i++)
		keys[i] = load_keys[i].key;
}

static int group_take(struct reader *r, config_setting_t *group, struct load_config *out)
{
	struct key keys[LOAD_KEYS];

	keys_fill(keys);
	return reader_group(r, group, keys, LOAD_KEYS, out);
}

/*
 * A key of another kind would be without effect, and somebody meant something by it; but what came
 * from the defaults is for those that have it.
 */
static int kinds_check(struct reader *r, config_setting_t *group, enum load_kind kind)
{
	for (unsigned i = 0; i < LOAD_KEYS; i++) {
		const struct load_key *k = &load_keys[i];
		config_setting_t *s = config_setting_get_member(group, k->key.name);

		if (!s || k->kinds & 1u << kind)
			continue;
		if (!tree_inherited(s))
			return reader_wrong(r, s, -EINVAL, "a workload of kind %s has no %s",
					    kinds[kind], k->key.name);
		config_setting_remove(group, k->key.name);
	}
	return 0;
}

static int kind_take(struct reader *r, config_setting_t *group, enum load_kind *out)
{
	config_setting_t *s = config_setting_get_member(group, "kind");
	unsigned n;
	int rc;

	if (!s) {
		struct key keys[LOAD_KEYS];

		keys_fill(keys);
		return reader_missing(r, group, keys, LOAD_KEYS,
				      "this workload has no kind: kind = \"rr\", \"stream\" or "
				      "\"rrul\";");
	}
	rc = value_name(r, s, NAMES(kinds), &n);
	if (!rc)
		*out = (enum load_kind)n;
	return rc;
}

/* The same of several workloads is one sentence. */
static void original_note(struct spec *spec, const char *who, const char *differs)
{
	const size_t size = sizeof(spec->note[0]);

	for (unsigned i = 0; i < spec->scaled; i++) {
		char *at = strstr(spec->note[i], differs), rest[sizeof(spec->note[0])];
		size_t room;

		if (!at || at == spec->note[i] || strcmp(at, differs))
			continue;
		room = size - (size_t)(at - spec->note[i]);
		snprintf(rest, sizeof(rest), "%s", at);
		if (strlen(who) + strlen(rest) + 3 < room)
			snprintf(at, room, ", %s%s", who, rest);
		return;
	}
	spec_note(spec, "%s%s", who, differs);
}

static void original_compare(struct reader *r, config_setting_t *group, const char *who,
			     const struct load_config *load)
{
	const struct reading *reading = reading_of(r);
	config_setting_t *original = config_setting_get_member(group, "original");
	const struct {
		const char *key;
		double here;
	} counts[] = {
		{"flows", load->flows},
		{"threads", load->threads},
		{"server_threads", load->server_threads ? load->server_threads : load->threads},
		{"tcp_flows", load->tcp_flows ? load->tcp_flows : 4},
		{"rate", load->rate},
	};
	char text[sizeof(reading->spec->note[0]) - SPEC_NAME_MAX] = ": ";
	size_t used = 2;

	for (unsigned i = 0; original && i < sizeof(counts) / sizeof(*counts); i++) {
		config_setting_t *s = config_setting_get_member(original, counts[i].key);
		double there = !s ? counts[i].here
			       : config_setting_type(s) == CONFIG_TYPE_FLOAT
				       ? config_setting_get_float(s)
				       : (double)config_setting_get_int64(s);

		if (there != counts[i].here && used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "%s%s %g (there %g)", used > 2 ? ", " : "",
						 counts[i].key, counts[i].here, there);
	}
	if (used == 2)
		return;
	if (used < sizeof(text))
		used += (size_t)snprintf(text + used, sizeof(text) - used, ": CPUs %u",
					 reading->cpus);
	if (used < sizeof(text) && reading->original_cpus)
		snprintf(text + used, sizeof(text) - used, " (there %u)", reading->original_cpus);
	original_note(reading->spec, who, text);
}

/* What the load itself says; its errors begin with the key that is meant. */
static int ops_check(struct reader *r, config_setting_t *group, struct load_config *load)
{
	const struct load_ops *ops = load_ops(load->kind);
	config_setting_t *s;
	char key[32];
	int rc = ops ? ops->check(load, r->err) : 0;

	if (!rc)
		return 0;
	snprintf(key, sizeof(key), "%.*s", (int)strspn(r->err->text, "abcdefghijklmnopqrstuvwxyz_"),
		 r->err->text);
	s = config_setting_get_member(group, key);
	return reader_wrong_there(r, s ? s : group, rc);
}

int load_take(struct reader *r, config_setting_t *group, const char *who, struct load_config *out)
{
	enum load_kind kind = LOAD_RR;
	int rc;

	*out = (struct load_config){
		.flows = 1, .threads = 1, .request_size = 1, .response_size = 1};
	if (!config_setting_is_group(group))
		return reader_wrong_type(r, group, "{ kind = \"rr\"; … }");
	rc = kind_take(r, group, &kind);
	if (!rc)
		rc = kinds_check(r, group, kind);
	if (!rc)
		rc = group_take(r, group, out);
	if (rc)
		return rc;
	out->kind = kind;
	if (out->flows < out->threads && kind != LOAD_RRUL)
		out->threads = out->flows;
	original_compare(r, group, who, out);
	return ops_check(r, group, out);
}

int load_take_defaults(struct reader *r, config_setting_t *group)
{
	struct load_config scratch;

	return group_take(r, group, &scratch);
}

static int workload_take(struct reader *r, config_setting_t *group)
{
	struct spec *spec = reading_of(r)->spec;
	struct spec_workload *w = &spec->workload[spec->workloads];
	const char *key = config_setting_name(group);
	config_setting_t *name;

	if (spec->workloads == SPEC_WORKLOADS_MAX)
		return reader_wrong(r, group, -EINVAL, "more than %d workloads",
				    SPEC_WORKLOADS_MAX);
	if (strlen(key) >= SPEC_NAME_MAX)
		return reader_wrong(r, group, -EINVAL, "the name %.40s… is too long", key);
	snprintf(w->key, sizeof(w->key), "%s", key);
	snprintf(w->name, sizeof(w->name), "%s", key);
	w->line = (int)config_setting_source_line(group);
	spec->workloads++;
	name = config_setting_is_group(group) ? config_setting_get_member(group, "name") : NULL;
	if (name) {
		int rc = value_text(r, name, w->name, sizeof(w->name));

		if (rc)
			return rc;
	}
	return load_take(r, group, w->key, &w->load);
}

int workloads_take(struct reader *r, config_setting_t *group)
{
	if (!config_setting_is_group(group) || !config_setting_length(group))
		return reader_wrong_type(r, group,
					 "{ NAME = { kind = \"rr\"; … }; … }, one at least");
	for (int i = 0; i < config_setting_length(group); i++) {
		int rc = workload_take(r, config_setting_get_elem(group, (unsigned)i));

		if (rc)
			return rc;
	}
	return 0;
}
