/* SPDX-License-Identifier: BSD-2-Clause */
/* Some systems of a specification: with what they are compared, and what else goes. */
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lab/spec/spec.h"

__attribute__((format(printf, 2, 3))) static void choice_note(struct spec *spec, const char *format,
							      ...)
{
	va_list arguments;

	if (spec->choices == SPEC_CHOICES_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(spec->choice[spec->choices++], sizeof(spec->choice[0]), format, arguments);
	va_end(arguments);
}

const struct spec_system *spec_base(const struct spec *spec, const char *scenario)
{
	const struct spec_system *first = NULL;

	for (unsigned i = 0; i < spec->systems; i++) {
		const struct spec_system *system = &spec->system[i];

		if (strcmp(system->scenario, scenario))
			continue;
		if (system->base)
			return system;
		if (!first)
			first = system;
	}
	return first;
}

static int system_missing(const struct spec *spec, const char *pattern, struct error *err)
{
	char list[ERROR_TEXT_MAX] = "";
	size_t used = 0;

	for (unsigned i = 0; i < spec->systems && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 spec->system[i].key);
	return error_set(err, -ENOENT, "no system is called \"%.40s\": they are %.560s", pattern,
			 list);
}

static int systems_choose(const struct spec *spec, const char *const *patterns, unsigned n,
			  bool chosen[SPEC_SYSTEMS_MAX], struct error *err)
{
	for (unsigned p = 0; p < n; p++) {
		bool found = false;

		for (unsigned i = 0; i < spec->systems; i++) {
			if (fnmatch(patterns[p], spec->system[i].key, 0))
				continue;
			chosen[i] = found = true;
		}
		if (!found)
			return system_missing(spec, patterns[p], err);
	}
	return 0;
}

/* A ratio to another base is another figure, so it is said. */
static void bases_note(struct spec *spec, const bool chosen[SPEC_SYSTEMS_MAX])
{
	for (unsigned i = 0; i < spec->systems; i++) {
		const struct spec_system *system = &spec->system[i];
		const struct spec_system *base = spec_base(spec, system->scenario);
		bool first = chosen[i];

		for (unsigned k = 0; k < i; k++)
			first &= !chosen[k] || strcmp(spec->system[k].scenario, system->scenario);
		if (first && !chosen[base - spec->system])
			choice_note(spec,
				    "The base %.60s%s%.60s%s was left out (--only): systems are "
				    "compared with %.60s instead.",
				    base->name, *system->scenario ? " of \"" : "", system->scenario,
				    *system->scenario ? "\"" : "", system->name);
	}
}

static void systems_keep(struct spec *spec, const bool chosen[SPEC_SYSTEMS_MAX])
{
	unsigned kept = 0;

	for (unsigned i = 0; i < spec->systems; i++)
		if (chosen[i])
			spec->system[kept++] = spec->system[i];
	if (kept < spec->systems)
		choice_note(spec, "Only %u of the specification's %u systems were asked for.", kept,
			    spec->systems);
	spec->systems = kept;
}

/* Those that nobody who is left runs go; the others' bits move down. */
static void workloads_keep(struct spec *spec)
{
	unsigned run = 0, kept = 0;

	for (unsigned s = 0; s < spec->systems; s++)
		run |= spec->system[s].only ? spec->system[s].only : ~0u;
	for (unsigned w = 0; w < spec->workloads; w++) {
		if (!(run & 1u << w))
			continue;
		for (unsigned s = 0; s < spec->systems; s++) {
			unsigned *only = &spec->system[s].only;
			unsigned bit = *only >> w & 1;

			*only = (*only & ~(1u << w)) | bit << kept;
		}
		spec->workload[kept++] = spec->workload[w];
	}
	spec->workloads = kept;
}

int spec_only(struct spec *spec, const char *const *patterns, unsigned n, struct error *err)
{
	bool chosen[SPEC_SYSTEMS_MAX] = {false};
	int rc = systems_choose(spec, patterns, n, chosen, err);

	if (rc)
		return rc;
	bases_note(spec, chosen);
	systems_keep(spec, chosen);
	workloads_keep(spec);
	return 0;
}
