/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a side of a workload is, as the protocol has it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/load/peer_line.h"

enum { CPUS_TEXT = 4 * CPU_MAX };

static json_t *cpus_json(const struct cpuset *cpus)
{
	char text[CPUS_TEXT];

	if (cpuset_empty(cpus))
		return json_string("");
	return cpuset_format(cpus, text, sizeof(text)) < 0 ? NULL : json_string(text);
}

json_t *load_place_json(const struct load_place *place)
{
	const struct load_engine *engine = &place->engine;
	json_t *o = json_pack("{s:s, s:i, s:o}", "address", place->address, "port",
			      (int)place->port, "cpus", cpus_json(&place->cpus));

	if (!o || !engine->used)
		return o;
	if (!json_object_set_new(o, "engine",
				 json_pack("{s:s, s:s, s:s, s:o, s:s}", "port", engine->port,
					   "address", engine->address, "poller",
					   poller_name(engine->poller), "cpus",
					   cpus_json(&engine->cpus), "settings", engine->settings)))
		return o;
	json_decref(o);
	return NULL;
}

static int text_read(const json_t *o, const char *key, char *out, size_t size, struct error *err)
{
	const char *text = json_string_value(json_object_get(o, key));

	if (!text || strlen(text) >= size)
		return error_set(err, -EINVAL, "place: %s is a text of at most %zu bytes", key,
				 size - 1);
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

static int cpus_read(const json_t *o, struct cpuset *out, struct error *err)
{
	const char *text = json_string_value(json_object_get(o, "cpus"));

	*out = (struct cpuset){0};
	if (!text || (*text && cpuset_parse(text, out)))
		return error_set(err, -EINVAL, "place: cpus is a text: \"0-3,8\", or \"\"");
	return 0;
}

static int engine_read(const json_t *o, struct load_engine *out, struct error *err)
{
	const char *poller = json_string_value(json_object_get(o, "poller"));
	int ret = text_read(o, "port", out->port, sizeof(out->port), err);

	out->used = true;
	if (!ret)
		ret = text_read(o, "address", out->address, sizeof(out->address), err);
	if (!ret)
		ret = text_read(o, "settings", out->settings, sizeof(out->settings), err);
	if (!ret)
		ret = cpus_read(o, &out->cpus, err);
	if (!ret && (!poller || poller_parse(poller, &out->poller)))
		ret = error_set(err, -EINVAL, "place: there is no such poller");
	return ret;
}

int load_place_read(const json_t *o, struct load_place *out, struct error *err)
{
	const json_t *port = json_object_get(o, "port");
	const json_t *engine = json_object_get(o, "engine");
	int ret;

	*out = (struct load_place){.netns = -1};
	ret = text_read(o, "address", out->address, sizeof(out->address), err);
	if (!ret && (!json_is_integer(port) || json_integer_value(port) < 0 ||
		     json_integer_value(port) > UINT16_MAX))
		ret = error_set(err, -EINVAL, "place: port is 0..%d", UINT16_MAX);
	if (ret)
		return ret;
	out->port = (uint16_t)json_integer_value(port);
	ret = cpus_read(o, &out->cpus, err);
	return !ret && engine ? engine_read(engine, &out->engine, err) : ret;
}
