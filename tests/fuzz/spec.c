/* SPDX-License-Identifier: BSD-2-Clause */
/* A specification; lines "#set KEY=VALUE" at its beginning are --set's. */
#include <stdlib.h>
#include <string.h>

#include <lab/spec/spec.h>

#include "fuzz.h"

enum { SETS = 4 };

/*
 * libconfig 1.5 does not free the string that it was putting together when the text turns out to be
 * wrong. Nobody outside it has a pointer to that, so it is none of our leaks.
 */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:strbuf_append\n";
}

/* The lines' copies are in `lines`, cut into keys and values. */
static unsigned sets_take(char *lines, struct spec_setting set[SETS])
{
	unsigned n = 0;
	char *end, *value;

	while (n < SETS && !strncmp(lines, "#set ", 5) && (end = strchr(lines, '\n'))) {
		*end = '\0';
		value = strchr(lines, '=');
		if (value) {
			*value = '\0';
			set[n++] = (struct spec_setting){lines + 5, value + 1};
		}
		lines = end + 1;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *lines;
	struct spec_setting set[SETS];
	struct cpuset usable = {0};
	struct error err = {0};
	struct spec *spec;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	lines = strdup(text);
	for (unsigned i = 0; i < 3; i++)
		cpuset_add(&usable, 1 + 2 * i);
	if (lines) {
		unsigned sets = sets_take(lines, set);

		if (!spec_parse("fuzz", text, &usable, set, sets, &spec, &err)) {
			ALWAYS(spec->systems && spec->workloads);
			for (unsigned i = 0; i < spec->systems; i++)
				ALWAYS(!(spec->system[i].only >> spec->workloads));
			spec_free(spec);
		} else {
			ALWAYS(err.text[0] && !strchr(err.text, '\n'));
		}
	}
	free(lines);
	free(text);
	return 0;
}
