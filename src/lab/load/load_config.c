/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/load/load.h"

enum type { CHOICE, COUNT, TIME, REAL, SEED, FLAG, SIZES };

/* One key, its field, and what fits into that. */
struct field {
	const char *key;
	enum type type;
	size_t offset;
	int64_t min, max;
	const char *const *names; /* CHOICE; max is the last one */
};

static const char *const kinds[] = {"rr", "stream", "rrul"};
static const char *const protocols[] = {"tcp", "udp"};
static const char *const arrivals[] = {"constant", "poisson"};
static const char *const directions[] = {"up", "down", "both"};

#define AT(field) offsetof(struct load_config, field)

enum {
	BUSY_POLL_USECS_MAX = 1000000,
	BUSY_POLL_BUDGET_MAX = 65535,
	TCP_FLOWS_MAX = 64,
	BATCH_MAX = 64
};
static const int64_t hour = 3600 * NSEC_PER_SEC;

/* clang-format off */
static const struct field fields[] = {
	{"kind", CHOICE, AT(kind), 0, LOAD_RRUL, kinds},
	{"protocol", CHOICE, AT(protocol), 0, LOAD_UDP, protocols},
	{"flows", COUNT, AT(flows), 0, LOAD_FLOWS_MAX, NULL},
	{"threads", COUNT, AT(threads), 0, LOAD_THREADS_MAX, NULL},
	{"server_threads", COUNT, AT(server_threads), 0, LOAD_THREADS_MAX, NULL},
	{"timeout_ns", TIME, AT(timeout), 0, hour, NULL},
	{"interval_ns", TIME, AT(interval), 0, hour, NULL},
	{"seed", SEED, AT(seed), INT64_MIN, INT64_MAX, NULL},
	{"request_size", COUNT, AT(request_size), 0, LOAD_SIZE_MAX, NULL},
	{"response_size", COUNT, AT(response_size), 0, LOAD_SIZE_MAX, NULL},
	{"rate", REAL, AT(rate), 0, 1000000000, NULL},
	{"arrivals", CHOICE, AT(arrivals), 0, LOAD_POISSON, arrivals},
	{"outstanding", COUNT, AT(outstanding), 0, LOAD_OUTSTANDING_MAX, NULL},
	{"connect", FLAG, AT(connect), 0, 1, NULL},
	{"work_ns", TIME, AT(work), 0, NSEC_PER_SEC, NULL},
	{"stall_ns", TIME, AT(stall), 0, 10 * NSEC_PER_SEC, NULL},
	{"stall_every_ns", TIME, AT(stall_every), 0, hour, NULL},
	{"direction", CHOICE, AT(direction), 0, LOAD_BOTH, directions},
	{"sizes", SIZES, AT(sizes), 1, LOAD_SIZE_MAX, NULL},
	{"batch", COUNT, AT(batch), 0, BATCH_MAX, NULL},
	{"tcp_flows", COUNT, AT(tcp_flows), 0, TCP_FLOWS_MAX, NULL},
	{"probe_rate", REAL, AT(probe_rate), 0, 10000, NULL},
	{"idle_ns", TIME, AT(idle), 0, hour, NULL},
	{"server_spins", FLAG, AT(server_spins), 0, 1, NULL},
	{"client_spins", FLAG, AT(client_spins), 0, 1, NULL},
	{"busy_poll_usecs", COUNT, AT(busy_poll_usecs), 0, BUSY_POLL_USECS_MAX, NULL},
	{"prefer_busy_poll", FLAG, AT(prefer_busy_poll), 0, 1, NULL},
	{"busy_poll_budget", COUNT, AT(busy_poll_budget), 0, BUSY_POLL_BUDGET_MAX, NULL},
};
/* clang-format on */

enum { FIELDS = sizeof(fields) / sizeof(*fields) };

/* The choices are enums, which are as large. */
_Static_assert(sizeof(enum load_kind) == sizeof(unsigned), "enums are read as unsigned");

/* Where a field is read or written. */
#define FIELD(config, field, type) ((type *)((char *)(config) + (field)->offset))
#define FIELD_OF(config, field, type) ((const type *)((const char *)(config) + (field)->offset))

static json_t *sizes_json(const struct load_config *config)
{
	json_t *all = json_array();

	for (unsigned i = 0; all && i < config->sizes && i < LOAD_SIZES_MAX; i++)
		json_array_append_new(all, json_integer(config->size[i]));
	return all;
}

static json_t *field_json(const struct load_config *config, const struct field *field)
{
	switch (field->type) {
	case CHOICE:
		return json_string(field->names[*FIELD_OF(config, field, unsigned)]);
	case COUNT:
		return json_integer(*FIELD_OF(config, field, unsigned));
	case TIME:
		return json_integer(*FIELD_OF(config, field, int64_t));
	case SEED: /* JSON's whole numbers are signed here: the same 64 bits */
		return json_integer((json_int_t)*FIELD_OF(config, field, uint64_t));
	case REAL:
		return json_real(*FIELD_OF(config, field, double));
	case FLAG:
		return json_boolean(*FIELD_OF(config, field, bool));
	case SIZES:
		return sizes_json(config);
	}
	return NULL;
}

json_t *load_config_json(const struct load_config *config)
{
	json_t *o = json_object();
	bool whole = o != NULL;

	for (unsigned i = 0; i < FIELDS && whole; i++)
		whole = !json_object_set_new(o, fields[i].key, field_json(config, &fields[i]));
	if (whole)
		return o;
	json_decref(o);
	return NULL;
}

static int choice_read(const struct field *field, const json_t *value, unsigned *out,
		       struct error *err)
{
	const char *text = json_string_value(value);
	char list[64];
	size_t length = 0;

	for (unsigned i = 0; i <= (unsigned)field->max; i++) {
		if (text && !strcmp(text, field->names[i])) {
			*out = i;
			return 0;
		}
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s",
					   i ? ", " : "", field->names[i]);
	}
	return error_set(err, -EINVAL, "%s: it is one of %s", field->key, list);
}

static int whole_read(const struct field *field, const json_t *value, int64_t *out,
		      struct error *err)
{
	if (!json_is_integer(value))
		return error_set(err, -EINVAL, "%s: it is a whole number%s", field->key,
				 field->type == SIZES ? " or several" : "");
	*out = json_integer_value(value);
	if (*out < field->min || *out > field->max)
		return error_set(err, -EINVAL, "%s: %lld is not %lld..%lld", field->key,
				 (long long)*out, (long long)field->min, (long long)field->max);
	return 0;
}

static int real_read(const struct field *field, const json_t *value, double *out, struct error *err)
{
	if (!json_is_number(value))
		return error_set(err, -EINVAL, "%s: it is a number", field->key);
	*out = json_number_value(value);
	if (!(*out >= (double)field->min && *out <= (double)field->max))
		return error_set(err, -EINVAL, "%s: %g is not %lld..%lld", field->key, *out,
				 (long long)field->min, (long long)field->max);
	return 0;
}

static int sizes_read(const struct field *field, const json_t *value, struct load_config *out,
		      struct error *err)
{
	size_t n = json_array_size(value);
	int64_t number = 0;

	if (!json_is_array(value) || n > LOAD_SIZES_MAX)
		return error_set(err, -EINVAL, "%s: it is an array of at most %d whole numbers",
				 field->key, LOAD_SIZES_MAX);
	memset(out->size, 0, sizeof(out->size));
	out->sizes = (unsigned)n;
	for (unsigned i = 0; i < n; i++) {
		int ret = whole_read(field, json_array_get(value, i), &number, err);

		if (ret)
			return ret;
		out->size[i] = (uint32_t)number;
	}
	return 0;
}

static int field_read(const struct field *field, const json_t *value, struct load_config *out,
		      struct error *err)
{
	int64_t number = 0;
	int ret;

	switch (field->type) {
	case CHOICE:
		return choice_read(field, value, FIELD(out, field, unsigned), err);
	case REAL:
		return real_read(field, value, FIELD(out, field, double), err);
	case SIZES:
		return sizes_read(field, value, out, err);
	case FLAG:
		if (!json_is_boolean(value))
			return error_set(err, -EINVAL, "%s: it is true or false", field->key);
		*FIELD(out, field, bool) = json_is_true(value);
		return 0;
	default:
		break;
	}
	ret = whole_read(field, value, &number, err);
	if (ret)
		return ret;
	if (field->type == COUNT)
		*FIELD(out, field, unsigned) = (unsigned)number;
	else if (field->type == TIME)
		*FIELD(out, field, int64_t) = number;
	else
		*FIELD(out, field, uint64_t) = (uint64_t)number;
	return 0;
}

static const struct field *field_find(const char *key)
{
	for (unsigned i = 0; i < FIELDS; i++) {
		if (!strcmp(fields[i].key, key))
			return &fields[i];
	}
	return NULL;
}

int load_config_read(const json_t *o, struct load_config *out, struct error *err)
{
	const char *key;
	json_t *value;

	*out = (struct load_config){0};
	if (!json_is_object(o))
		return error_set(err, -EINVAL, "parameters: they are an object");
	if (!json_object_get(o, "kind"))
		return error_set(err, -EINVAL, "kind: it is missing");
	json_object_foreach((json_t *)o, key, value)
	{
		const struct field *field = field_find(key);
		int ret = field ? field_read(field, value, out, err)
				: error_set(err, -EINVAL, "%.40s: there is no such parameter", key);

		if (ret)
			return ret;
	}
	return 0;
}

/* As one would write it. */
static void value_print(const json_t *value, char *text, size_t size)
{
	char *dump;

	if (json_is_string(value)) {
		snprintf(text, size, "%s", json_string_value(value));
	} else if (json_is_real(value)) {
		snprintf(text, size, "%g", json_real_value(value));
	} else {
		dump = json_dumps(value, JSON_ENCODE_ANY);
		snprintf(text, size, "%s", dump ? dump : "?");
		free(dump);
	}
}

int load_config_match(const json_t *wanted, const struct load_config *config, const char *here,
		      const char *there, struct error *err)
{
	json_t *all = load_config_json(config);
	int ret = all ? 0 : error_set(err, -ENOMEM, "no memory for the parameters");

	for (unsigned i = 0; i < FIELDS && !ret; i++) {
		json_t *ours = json_object_get(wanted, fields[i].key);
		json_t *theirs = json_object_get(all, fields[i].key);
		char a[96], b[96];

		if (!ours || json_equal(ours, theirs))
			continue;
		value_print(ours, a, sizeof(a));
		value_print(theirs, b, sizeof(b));
		ret = error_set(err, -EPROTO, "%s is %s %s, and %s %s", fields[i].key, a, here, b,
				there);
	}
	json_decref(all);
	return ret;
}

int load_config_compare(const struct load_config *ours, const struct load_config *theirs,
			struct error *err)
{
	json_t *wanted = load_config_json(ours);
	int ret = wanted ? load_config_match(wanted, theirs, "here", "there", err)
			 : error_set(err, -ENOMEM, "no memory for the parameters");

	json_decref(wanted);
	return ret;
}
