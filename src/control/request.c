/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <control/request.h>

/* A member that has to be a text. */
static int text_take(const char *member, json_t *value, char *out, size_t size, struct error *err)
{
	const char *text = json_string_value(value);

	if (!text || !*text)
		return error_set(err, -EINVAL, "\"%s\" is missing or not a text", member);
	if (strlen(text) >= size)
		return error_set(err, -EINVAL, "\"%s\" is longer than %zu bytes", member, size - 1);
	snprintf(out, size, "%s", text);
	return 0;
}

/* Numbers are taken as texts too, so that one parser judges both. */
static int value_text(const char *key, json_t *value, char *out, size_t size, struct error *err)
{
	if (json_is_integer(value)) {
		snprintf(out, size, "%lld", (long long)json_integer_value(value));
		return 0;
	}
	if (!json_is_string(value) || json_string_length(value) >= size)
		return error_set(err, -EINVAL, "%.40s: its value is a number or a short text", key);
	snprintf(out, size, "%s", json_string_value(value));
	return 0;
}

static int key_take(struct request *request, const char *key, const char *value, struct error *err)
{
	switch (request->kind) {
	case REQUEST_ADD:
		return setup_port_key(request->add, key, value, err);
	case REQUEST_ENGINE:
		return engine_wish_key(&request->engine, key, value, err);
	case REQUEST_CPU:
		return cpu_wish_key(&request->cpu_settings, key, value, err);
	case REQUEST_RUNNER:
		return runner_wish_key(&request->wish, key, value, err);
	default:
		return wish_key(&request->wish, key, value, err);
	}
}

/* "keys": of whatever the request is about. */
static int keys_take(struct request *request, json_t *keys, struct error *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(keys))
		return error_set(err, -EINVAL, "\"keys\" is missing or not an object");
	json_object_foreach(keys, key, value)
	{
		char text[256];
		int rc = value_text(key, value, text, sizeof(text), err);

		if (rc)
			return rc;
		rc = key_take(request, key, text, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Of a port that is there or may come, or of the backlogs. */
static int port_take(struct request *request, json_t *root, struct error *err)
{
	int rc = text_take("port", json_object_get(root, "port"), request->port,
			   sizeof(request->port), err);
	const char *means = rc ? NULL : setup_reserved(request->port);

	if (rc)
		return rc;
	if (means && strcmp(request->port, "backlog"))
		return error_set(err, -EINVAL, "\"port\" is a name; \"%s\" means %s", request->port,
				 means);
	if (strchr(request->port, '/'))
		return error_set(err, -EINVAL, "\"port\" is a name; its queue is in \"queue\"");
	if (!setup_sayable(request->port))
		return error_set(err, -EINVAL, "\"port\" is a name, without control characters");
	return 0;
}

static int set_take(struct request *request, json_t *root, struct error *err)
{
	json_t *queue = json_object_get(root, "queue");
	int rc = port_take(request, root, err);

	if (rc)
		return rc;
	request->queue = -1;
	if (queue && (!json_is_integer(queue) || json_integer_value(queue) < 0 ||
		      json_integer_value(queue) >= PORT_QUEUES_MAX))
		return error_set(err, -ERANGE, "\"queue\" is a number 0..%d", PORT_QUEUES_MAX - 1);
	if (queue)
		request->queue = (int)json_integer_value(queue);
	rc = keys_take(request, json_object_get(root, "keys"), err);
	if (!rc && wish_empty(&request->wish))
		return error_set(err, -EINVAL, "nothing to set: the keys are " WISH_KEYS);
	return rc;
}

static int runner_take(struct request *request, json_t *root, struct error *err)
{
	json_t *cpu = json_object_get(root, "cpu");
	struct runner_settings settings;
	char name[16];
	int rc = text_take("runner", json_object_get(root, "runner"), name, sizeof(name), err);

	if (rc)
		return rc;
	if (runner_role_parse(name, &request->role))
		return error_set(err, -EINVAL,
				 "\"runner\" is irq, ksoftirqd, busy or kworker, not %s", name);
	if (request->role != ROLE_KWORKER &&
	    (!json_is_integer(cpu) || json_integer_value(cpu) < 0 ||
	     json_integer_value(cpu) >= CPU_MAX))
		return error_set(err, -ERANGE, "\"cpu\" is a number 0..%d", CPU_MAX - 1);
	request->cpu = (unsigned)json_integer_value(cpu);
	rc = keys_take(request, json_object_get(root, "keys"), err);
	return rc ? rc : runner_wish_settings(&request->wish, &settings, err);
}

static int move_take(struct request *request, json_t *root, struct error *err)
{
	json_t *queue = json_object_get(root, "queue"), *cpu = json_object_get(root, "cpu");
	int rc = text_take("port", json_object_get(root, "port"), request->port,
			   sizeof(request->port), err);

	if (rc)
		return rc;
	if (!json_is_integer(queue) || json_integer_value(queue) < 0 ||
	    json_integer_value(queue) >= PORT_QUEUES_MAX)
		return error_set(err, -ERANGE, "\"queue\" is a number 0..%d", PORT_QUEUES_MAX - 1);
	if (!json_is_integer(cpu) || json_integer_value(cpu) < 0 ||
	    json_integer_value(cpu) >= CPU_MAX)
		return error_set(err, -ERANGE, "\"cpu\" is a number 0..%d", CPU_MAX - 1);
	request->queue = (int)json_integer_value(queue);
	request->cpu = (unsigned)json_integer_value(cpu);
	return 0;
}

static int default_take(struct request *request, json_t *root, struct error *err)
{
	struct wish rest;
	int rc = keys_take(request, json_object_get(root, "keys"), err);

	if (rc)
		return rc;
	rest = request->wish;
	rest.poller_set = false;
	if (!request->wish.poller_set || !wish_empty(&rest))
		return error_set(err, -EINVAL, "the default has one key: poller");
	return 0;
}

static int engine_take(struct request *request, json_t *root, struct error *err)
{
	json_t *keys = json_object_get(root, "keys");
	int rc = keys_take(request, keys, err);

	if (!rc && !json_object_size(keys))
		return error_set(err, -EINVAL, "nothing to set: the keys are " ENGINE_WISH_KEYS);
	return rc;
}

static int cpu_take(struct request *request, json_t *root, struct error *err)
{
	json_t *cpu = json_object_get(root, "cpu");
	json_t *keys = json_object_get(root, "keys");
	int rc;

	if (!json_is_integer(cpu) || json_integer_value(cpu) < 0 ||
	    json_integer_value(cpu) >= CPU_MAX)
		return error_set(err, -ERANGE, "\"cpu\" is a number 0..%d", CPU_MAX - 1);
	request->cpu = (unsigned)json_integer_value(cpu);
	rc = keys_take(request, keys, err);
	if (!rc && !json_object_size(keys))
		return error_set(err, -EINVAL, "nothing to set: the keys are " CPU_WISH_KEYS);
	return rc;
}

static int add_take(struct request *request, json_t *root, struct error *err)
{
	json_t *keys = json_object_get(root, "keys");
	char spec[512];
	int rc = text_take("spec", json_object_get(root, "spec"), spec, sizeof(spec), err);

	if (!rc)
		rc = setup_port_create(spec, &request->add, err);
	if (!rc && keys)
		rc = keys_take(request, keys, err);
	return rc;
}

static int remove_take(struct request *request, json_t *root, struct error *err)
{
	return text_take("port", json_object_get(root, "port"), request->port,
			 sizeof(request->port), err);
}

static const struct {
	const char *name;
	int (*take)(struct request *request, json_t *root, struct error *err);
	const char *members[6];
} kinds[] = {
	[REQUEST_PING] = {"ping", NULL, {"request", "id"}},
	[REQUEST_SET] = {"set", set_take, {"request", "id", "port", "queue", "keys"}},
	[REQUEST_DEFAULT] = {"default", default_take, {"request", "id", "keys"}},
	[REQUEST_ENGINE] = {"engine", engine_take, {"request", "id", "keys"}},
	[REQUEST_CPU] = {"cpu", cpu_take, {"request", "id", "cpu", "keys"}},
	[REQUEST_RUNNER] = {"runner", runner_take, {"request", "id", "runner", "cpu", "keys"}},
	[REQUEST_ADD] = {"add", add_take, {"request", "id", "spec", "keys"}},
	[REQUEST_MOVE] = {"move", move_take, {"request", "id", "port", "queue", "cpu"}},
	[REQUEST_REMOVE] = {"remove", remove_take, {"request", "id", "port"}},
	[REQUEST_FDB] = {"fdb", NULL, {"request", "id"}},
	[REQUEST_STOP] = {"stop", NULL, {"request", "id"}},
};

static int members_check(enum request_kind kind, json_t *root, struct error *err)
{
	const char *member;
	json_t *value;

	json_object_foreach(root, member, value)
	{
		const char *const *known = kinds[kind].members;
		char list[80] = "";
		size_t used = 0;

		for (; *known && strcmp(*known, member); known++)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 used ? ", " : "", *known);
		if (!*known)
			return error_set(err, -ENOENT, "unknown member \"%.40s\": %s has %s",
					 member, kinds[kind].name, list);
	}
	return 0;
}

static int root_take(struct request *request, json_t *root, struct error *err)
{
	const char *name = json_string_value(json_object_get(root, "request"));
	size_t kind = 0;
	int rc;

	if (!json_is_object(root))
		return error_set(err, -EINVAL, "a request is a JSON object");
	request->id = json_incref(json_object_get(root, "id"));
	while (name && kind < sizeof(kinds) / sizeof(*kinds) && strcmp(kinds[kind].name, name))
		kind++;
	if (!name || kind == sizeof(kinds) / sizeof(*kinds))
		return error_set(err, -EINVAL,
				 "unknown request \"%.40s\": the requests are ping, set, default, "
				 "engine, cpu, runner, add, move, remove, fdb, stop",
				 name ? name : "");
	request->kind = (enum request_kind)kind;
	rc = members_check(request->kind, root, err);
	if (!rc && kinds[kind].take)
		rc = kinds[kind].take(request, root, err);
	return rc;
}

int request_parse(const char *line, size_t n, struct request *out, struct error *err)
{
	json_error_t json;
	json_t *root = json_loadb(line, n, JSON_REJECT_DUPLICATES, &json);
	int rc;

	*out = (struct request){.queue = -1};
	if (!root)
		return error_set(err, -EINVAL, "not JSON: column %d: %.200s", json.column,
				 json.text);
	rc = root_take(out, root, err);
	json_decref(root);
	return rc;
}

void request_free(struct request *request)
{
	json_decref(request->id);
	setup_port_free(request->add);
	*request = (struct request){.queue = -1};
}
