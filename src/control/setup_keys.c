/* SPDX-License-Identifier: BSD-2-Clause */
/* What groups of a configuration have in common. */
#include <errno.h>
#include <stdio.h>

#include <control/setup_keys.h>

int setup_take_wish(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	char text[256];
	int rc = reader_scalar(r, s, text, sizeof(text));

	if (rc)
		return rc;
	rc = wish_key(object, key->name, text, r->err);
	return rc ? reader_wrong_there(r, s, rc) : 0;
}

int setup_take_nothing(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)r;
	(void)s;
	(void)object;
	(void)key;
	return 0;
}

int setup_number(struct reader *r, config_setting_t *group, const struct key *key, const char *what,
		 const struct key *keys, size_t n, long long *out)
{
	config_setting_t *which = config_setting_get_member(group, key->name);

	if (!which)
		return reader_missing(r, group, keys, n, "this %s has no number: %s = 0;", what,
				      key->name);
	return reader_integer(r, which, key, out);
}

int setup_twice(struct reader *r, config_setting_t *group, const struct key *key, long long number)
{
	return reader_wrong(r, config_setting_get_member(group, key->name), -EINVAL,
			    "%s = %lld is there twice", key->name, number);
}

void setup_where(const struct reader *r, const config_setting_t *s, char where[SETUP_WHERE])
{
	snprintf(where, SETUP_WHERE, "%.100s:%u: ", r->path, config_setting_source_line(s));
}
