/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/machine.h>

bool cpuset_empty(const struct cpuset *s)
{
	return cpuset_next(s, 0) == CPU_MAX;
}

bool cpuset_has(const struct cpuset *s, unsigned cpu)
{
	return cpu < CPU_MAX && (s->bits[cpu / 64] >> (cpu % 64) & 1);
}

void cpuset_add(struct cpuset *s, unsigned cpu)
{
	s->bits[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

unsigned cpuset_count(const struct cpuset *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < CPU_MAX / 64; i++)
		n += (unsigned)__builtin_popcountll(s->bits[i]);
	return n;
}

unsigned cpuset_next(const struct cpuset *s, unsigned cpu)
{
	while (cpu < CPU_MAX) {
		uint64_t rest = s->bits[cpu / 64] >> (cpu % 64);

		if (rest)
			return cpu + (unsigned)__builtin_ctzll(rest);
		cpu = (cpu / 64 + 1) * 64;
	}
	return CPU_MAX;
}

/* A decimal number at *text, which is moved behind it. */
static int number_parse(const char **text, unsigned *out)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	value = strtoul(*text, &end, 10);
	*text = end;
	if (value >= CPU_MAX)
		return -ERANGE;
	*out = (unsigned)value;
	return 0;
}

int cpuset_parse(const char *text, struct cpuset *s)
{
	struct cpuset result = {0};

	if (!*text)
		return -EINVAL;
	for (;;) {
		unsigned first, last;
		int rc = number_parse(&text, &first);

		if (rc)
			return rc;
		last = first;
		if (*text == '-') {
			text++;
			rc = number_parse(&text, &last);
			if (rc)
				return rc;
			if (last < first)
				return -EINVAL;
		}
		for (unsigned cpu = first; cpu <= last; cpu++)
			cpuset_add(&result, cpu);
		if (!*text)
			break;
		if (*text++ != ',')
			return -EINVAL;
	}
	*s = result;
	return 0;
}

int cpuset_format(const struct cpuset *s, char *text, size_t size)
{
	size_t used = 0;

	if (size)
		*text = '\0';
	for (unsigned first = cpuset_next(s, 0); first < CPU_MAX;) {
		unsigned last = first;
		size_t room = used < size ? size - used : 0;
		char *at = room ? text + used : NULL;
		const char *comma = used ? "," : "";

		while (cpuset_has(s, last + 1))
			last++;
		if (last > first)
			used += (size_t)snprintf(at, room, "%s%u-%u", comma, first, last);
		else
			used += (size_t)snprintf(at, room, "%s%u", comma, first);
		first = cpuset_next(s, last + 1);
	}
	return (int)used;
}
