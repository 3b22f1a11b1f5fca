/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <control/setup_text.h>

#include "lab/spec/reading.h"

static void scalar_copy(config_setting_t *to, const config_setting_t *from)
{
	switch (config_setting_type(from)) {
	case CONFIG_TYPE_INT:
		config_setting_set_int(to, config_setting_get_int(from));
		break;
	case CONFIG_TYPE_INT64:
		config_setting_set_int64(to, config_setting_get_int64(from));
		break;
	case CONFIG_TYPE_FLOAT:
		config_setting_set_float(to, config_setting_get_float(from));
		break;
	case CONFIG_TYPE_BOOL:
		config_setting_set_bool(to, config_setting_get_bool(from));
		break;
	case CONFIG_TYPE_STRING:
		config_setting_set_string(to, config_setting_get_string(from));
		break;
	}
}

static config_setting_t *tree_copy(config_setting_t *parent, const char *name,
				   const config_setting_t *from)
{
	config_setting_t *to = config_setting_add(parent, name, config_setting_type(from));

	if (!to)
		return NULL;
	/* Errors about the copy name the line of what was copied. */
	to->line = config_setting_source_line(from);
	if (!config_setting_is_aggregate(from)) {
		scalar_copy(to, from);
		return to;
	}
	for (int i = 0; i < config_setting_length(from); i++) {
		const config_setting_t *element = config_setting_get_elem(from, (unsigned)i);

		if (!tree_copy(to, config_setting_name(element), element))
			return NULL;
	}
	return to;
}

int tree_inherit(config_setting_t *into, const config_setting_t *member)
{
	const char *name = config_setting_name(member);
	config_setting_t *there = config_setting_get_member(into, name), *copy;

	if (there)
		return tree_merge(there, member);
	copy = tree_copy(into, name, member);
	if (!copy)
		return -ENOMEM;
	config_setting_set_hook(copy, copy);
	return 0;
}

int tree_merge(config_setting_t *into, const config_setting_t *from)
{
	int rc = 0;

	if (!config_setting_is_group(into) || !config_setting_is_group(from))
		return 0;
	for (int i = 0; i < config_setting_length(from) && !rc; i++)
		rc = tree_inherit(into, config_setting_get_elem(from, (unsigned)i));
	return rc;
}

int tree_text(config_setting_t *group, char *out, size_t size)
{
	char *text = NULL;
	size_t length = 0;
	config_t copy;
	FILE *file = open_memstream(&text, &length);
	int rc;

	if (!file)
		return -ENOMEM;
	config_init(&copy);
	rc = tree_merge(config_root_setting(&copy), group);
	if (!rc)
		config_write(&copy, file);
	config_destroy(&copy);
	if (fclose(file) && !rc)
		rc = -ENOMEM;
	if (!rc && length >= size)
		rc = -ENOSPC;
	if (!rc)
		snprintf(out, size, "%s", text);
	free(text);
	return rc;
}

/* The members' names, for an error. */
static const char *members_list(config_setting_t *group, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < config_setting_length(group) && used < size; i++) {
		const char *name = config_setting_name(config_setting_get_elem(group, (unsigned)i));

		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
					 name ? name : "");
	}
	return text;
}

/* Whose members are not made by setting something in them: a typing error would make a new one. */
static bool members_fixed(const config_setting_t *group)
{
	const char *name = config_setting_name(group);

	return name && config_setting_is_root(config_setting_parent(group)) &&
	       (!strcmp(name, "systems") || !strcmp(name, "workloads") ||
		!strcmp(name, "antagonists"));
}

/* One part of the path; last: it may be missing, then *out is NULL. */
static int path_step(config_setting_t *at, const char *part, bool last, config_setting_t **out,
		     struct error *err)
{
	char list[320];

	if (*part == '[') {
		char *end;
		unsigned long i = strtoul(part + 1, &end, 10);

		if (end == part + 1 || strcmp(end, "]"))
			return error_set(err, -EINVAL, "\"%.40s\" is no element: [0] is the first",
					 part);
		*out = config_setting_is_aggregate(at) && i < INT32_MAX
			       ? config_setting_get_elem(at, (unsigned)i)
			       : NULL;
		return *out ? 0
			    : error_set(err, -ENOENT, "there is no %.40s in %.60s", part,
					config_setting_name(at) ? config_setting_name(at)
								: "the file");
	}
	if (!config_setting_is_group(at))
		return error_set(err, -ENOENT, "%.60s has no members",
				 config_setting_name(at) ? config_setting_name(at) : "this");
	*out = config_setting_get_member(at, part);
	if (*out || last)
		return 0;
	if (members_fixed(at))
		return error_set(err, -ENOENT, "there is no \"%.60s\" in %s: %s", part,
				 config_setting_name(at), members_list(at, list, sizeof(list)));
	*out = config_setting_add(at, part, CONFIG_TYPE_GROUP);
	return *out ? 0 : error_set(err, -EINVAL, "\"%.60s\" is no name of a key", part);
}

/* What is on a command line is on no line of the file. */
static void lines_clear(config_setting_t *s)
{
	s->line = 0;
	for (int i = 0; config_setting_is_aggregate(s) && i < config_setting_length(s); i++)
		lines_clear(config_setting_get_elem(s, (unsigned)i));
}

/* A value as a file would have it, or else a text; wrapped in a tree of its own. */
static config_setting_t *value_parse(config_t *holder, const char *value)
{
	struct error ignored;
	struct reader r = {.path = "", .err = &ignored};
	config_setting_t *root, *s;
	char *text = NULL;

	config_init(holder);
	if (!setup_text_check(&r, value) && asprintf(&text, "v = %s;", value) >= 0 &&
	    config_read_string(holder, text)) {
		free(text);
		root = config_root_setting(holder);
		/* "1; x = 2" is more than a value. */
		if (config_setting_length(root) == 1) {
			lines_clear(root);
			return config_setting_get_elem(root, 0);
		}
	} else {
		free(text);
	}
	config_destroy(holder);
	config_init(holder);
	s = config_setting_add(config_root_setting(holder), "v", CONFIG_TYPE_STRING);
	config_setting_set_string(s, value);
	return s;
}

/* name is in the path, or nothing for an element of a list. */
static int value_put(config_setting_t *parent, const char *name, config_setting_t *there,
		     const config_setting_t *value, struct error *err)
{
	int type = config_setting_type(value);
	char own[256];

	if (there && config_setting_type(there) == type && !config_setting_is_aggregate(value)) {
		scalar_copy(there, value);
		there->line = 0;
		return 0;
	}
	if (there && !config_setting_name(there))
		return error_set(err, -EINVAL, "an element of another type: set the whole list");
	/* The name may have been given by number, and is gone with what it names. */
	snprintf(own, sizeof(own), "%s", there ? config_setting_name(there) : name);
	if (there)
		config_setting_remove(parent, own);
	return tree_copy(parent, own, value)
		       ? 0
		       : error_set(err, -EINVAL, "\"%.60s\" is no name of a key", name);
}

int tree_set(config_t *config, const struct spec_setting *set, struct error *err)
{
	config_setting_t *at = config_root_setting(config), *next = NULL;
	char path[256], *part = path;
	config_t holder;
	int rc = 0;

	if (!*set->key || strlen(set->key) >= sizeof(path))
		return error_set(err, -EINVAL, "a key is a path in the file: quick.duration");
	snprintf(path, sizeof(path), "%s", set->key);
	for (;;) {
		char *dot = strchr(part, '.');

		if (dot)
			*dot = '\0';
		rc = path_step(at, part, !dot, &next, err);
		if (rc || !dot)
			break;
		at = next;
		part = dot + 1;
	}
	if (rc)
		return rc;
	rc = value_put(at, part, next, value_parse(&holder, set->value), err);
	config_destroy(&holder);
	return rc;
}
