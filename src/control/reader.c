/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <control/reader.h>

int reader_wrong(struct reader *r, const config_setting_t *s, int code, const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return error_set(r->err, code, "%.120s:%u: %.490s", r->path, config_setting_source_line(s),
			 text);
}

int reader_wrong_there(struct reader *r, const config_setting_t *s, int code)
{
	struct error inner = *r->err;

	return reader_wrong(r, s, code, "%s", inner.text);
}

int reader_wrong_type(struct reader *r, const config_setting_t *s, const char *example)
{
	return reader_wrong(r, s, -EINVAL, "%s has the wrong type; it is written %s",
			    config_setting_name(s) ? config_setting_name(s) : "this", example);
}

/* Which of them this is; n: none, and err lists them. */
static size_t key_find(struct reader *r, config_setting_t *s, const struct key *keys, size_t n)
{
	const char *name = config_setting_name(s);
	char list[ERROR_TEXT_MAX - 160] = "";
	size_t k, used = 0;

	for (k = 0; k < n && strcmp(keys[k].name, name); k++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
					 keys[k].name);
	if (k == n)
		reader_wrong(r, s, -EINVAL, "unknown key \"%.40s\": the keys are %s", name, list);
	return k;
}

int reader_missing(struct reader *r, config_setting_t *group, const struct key *keys, size_t n,
		   const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list arguments;

	for (int i = 0; i < config_setting_length(group); i++)
		if (key_find(r, config_setting_get_elem(group, (unsigned)i), keys, n) == n)
			return -EINVAL;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return reader_wrong(r, group, -EINVAL, "%s", text);
}

int reader_group(struct reader *r, config_setting_t *group, const struct key *keys, size_t n,
		 void *object)
{
	if (config_setting_type(group) != CONFIG_TYPE_GROUP)
		return reader_wrong_type(r, group, "{ key = value; … }");
	for (int i = 0; i < config_setting_length(group); i++) {
		config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		size_t k = key_find(r, s, keys, n);
		int rc = k == n ? -EINVAL : keys[k].take(r, s, object, &keys[k]);

		if (rc)
			return rc;
	}
	return 0;
}

int reader_integer(struct reader *r, config_setting_t *s, const struct key *key, long long *out)
{
	int type = config_setting_type(s);

	if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
		return reader_wrong(r, s, -EINVAL,
				    "%s has the wrong type; it is a number %lld..%lld", key->name,
				    key->min, key->max);
	*out = type == CONFIG_TYPE_INT ? config_setting_get_int(s) : config_setting_get_int64(s);
	if (*out < key->min || *out > key->max)
		return reader_wrong(r, s, -ERANGE, "%s = %lld: out of range %lld..%lld", key->name,
				    *out, key->min, key->max);
	return 0;
}

int reader_number(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	long long n;
	int rc = reader_integer(r, s, key, &n);

	if (!rc)
		*(uint32_t *)((char *)object + key->offset) = (uint32_t)n;
	return rc;
}

int reader_bool(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	if (config_setting_type(s) != CONFIG_TYPE_BOOL)
		return reader_wrong_type(r, s, "true or false");
	*(bool *)((char *)object + key->offset) = config_setting_get_bool(s);
	return 0;
}

int reader_text(struct reader *r, config_setting_t *s, const char **out)
{
	*out = config_setting_get_string(s);
	if (!*out)
		return reader_wrong_type(r, s, "\"text\"");
	return 0;
}

int reader_scalar(struct reader *r, config_setting_t *s, char *text, size_t size)
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
			return reader_wrong(r, s, -EINVAL, "%s is too long",
					    config_setting_name(s));
		snprintf(text, size, "%s", config_setting_get_string(s));
		return 0;
	default:
		return reader_wrong_type(r, s, "as a number or a text");
	}
}

int reader_list(struct reader *r, config_setting_t *s, void *object,
		int (*take)(struct reader *r, config_setting_t *s, void *object))
{
	int type = config_setting_type(s);

	if (type != CONFIG_TYPE_LIST)
		return reader_wrong_type(r, s, "( { … }, { … } )");
	for (int i = 0; i < config_setting_length(s); i++) {
		config_setting_t *element = config_setting_get_elem(s, (unsigned)i);
		int rc = config_setting_type(element) == CONFIG_TYPE_GROUP
				 ? take(r, element, object)
				 : reader_wrong_type(r, s, "( { … }, { … } )");

		if (rc)
			return rc;
	}
	return 0;
}
