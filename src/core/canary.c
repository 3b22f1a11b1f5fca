/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include <core/canary.h>

enum canary canary_planted;

static const struct {
	const char *name, *text;
} canaries[CANARY_MAX] = {
#define X(constant, name, text) [CANARY_##constant] = {name, text},
	CANARIES(X)
#undef X
};

const char *canary_name(unsigned i)
{
	return i < CANARY_MAX ? canaries[i].name : NULL;
}

const char *canary_text(unsigned i)
{
	return i < CANARY_MAX ? canaries[i].text : NULL;
}

bool canary_plant(const char *name)
{
	canary_planted = CANARY_NONE;
	for (unsigned i = 1; name && i < CANARY_MAX; i++)
		if (!strcmp(name, canaries[i].name))
			canary_planted = (enum canary)i;
	return !name || canary_planted != CANARY_NONE;
}
