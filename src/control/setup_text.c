/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <control/setup_text.h>

/* Behind a text in quotes. */
static const char *quotes_pass(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && at[1])
			at++;
	return *at ? at + 1 : at;
}

/* Behind a comment; `at` itself where there is none. */
static const char *comment_pass(const char *at)
{
	const char *end;

	if (*at == '#' || !strncmp(at, "//", 2))
		return at + strcspn(at, "\n");
	if (strncmp(at, "/*", 2))
		return at;
	end = strstr(at + 2, "*/");
	return end ? end + 2 : at + strlen(at);
}

static bool integer_fits(const char *at, size_t n)
{
	bool hexadecimal = n > 2 && (at[1] == 'x' || at[1] == 'X');
	bool decimal = strspn(at + (*at == '-'), "0123456789") == n - (*at == '-');
	long long value;

	if (!hexadecimal && !decimal) /* a name, a fraction, or it ends in L */
		return true;
	errno = 0;
	value = strtoll(at, NULL, hexadecimal ? 16 : 10);
	return !errno && value >= INT_MIN && value <= (hexadecimal ? UINT_MAX : INT_MAX);
}

/* A name or a number, from `at` on. */
static size_t word_length(const char *at)
{
	size_t n = *at == '-';

	while (isalnum((unsigned char)at[n]) || (at[n] && strchr("_.*+", at[n])))
		n++;
	return n;
}

int setup_text_check(struct reader *r, const char *text)
{
	const char *at = text, *counted = text;
	unsigned line = 1;

	while (*at) {
		const char *next = *at == '"' ? quotes_pass(at) : comment_pass(at);
		size_t n;

		if (next != at) {
			at = next;
			continue;
		}
		n = word_length(at);
		for (; counted < at; counted++)
			line += *counted == '\n';
		if (!strncmp(at, "@include", 8))
			return error_set(r->err, -EINVAL,
					 "%.120s:%u: @include is not supported: write it here",
					 r->path, line);
		if (n && !integer_fits(at, n))
			return error_set(r->err, -ERANGE,
					 "%.120s:%u: %.*s: out of range; a number this long is "
					 "written with an L behind it",
					 r->path, line, n > 40 ? 40 : (int)n, at);
		at += n ? n : 1;
	}
	return 0;
}
