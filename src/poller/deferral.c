/* SPDX-License-Identifier: BSD-2-Clause */
/* Deferral policies and causes of hand-overs as texts. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/counters.h>
#include <napier/engine.h>

static const char *const deferral_names[] = {
	[DEFERRAL_RESTART_LIMIT] = "restart-limit",
	[DEFERRAL_NEVER] = "never",
	[DEFERRAL_LOOPED] = "looped",
	[DEFERRAL_KSOFTIRQD_RUNNING] = "ksoftirqd-running",
};

static const char *const punt_names[] = {
	[PUNT_RESTARTS] = "restarts",
	[PUNT_TIME] = "time",
	[PUNT_LOOPED] = "looped",
	[PUNT_RUNNING] = "running",
};

const char *deferral_name(enum deferral deferral)
{
	return (unsigned)deferral < DEFERRAL_MAX ? deferral_names[deferral] : "unknown";
}

const char *punt_name(enum punt cause)
{
	return (unsigned)cause < PUNT_MAX ? punt_names[cause] : "unknown";
}

const char *deferral_list(void)
{
	return "never, restart-limit, looped:TICKS, ksoftirqd-running";
}

int deferral_format(enum deferral deferral, uint32_t ticks, char *text, size_t size)
{
	if (deferral == DEFERRAL_LOOPED)
		return snprintf(text, size, "%s:%u", deferral_name(deferral), ticks);
	return snprintf(text, size, "%s", deferral_name(deferral));
}

int deferral_parse(const char *text, enum deferral *deferral, uint32_t *ticks)
{
	size_t n = strlen(deferral_names[DEFERRAL_LOOPED]);
	unsigned long window;
	char *end;

	*ticks = LOOPED_TICKS_DEFAULT;
	for (unsigned i = 0; i < DEFERRAL_MAX; i++) {
		if (!strcmp(text, deferral_names[i])) {
			*deferral = (enum deferral)i;
			return 0;
		}
	}
	if (strncmp(text, deferral_names[DEFERRAL_LOOPED], n) || text[n] != ':')
		return -EINVAL;
	text += n + 1;
	errno = 0;
	window = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end)
		return -EINVAL;
	if (errno || !window || window > LOOPED_TICKS_MAX)
		return -ERANGE;
	*deferral = DEFERRAL_LOOPED;
	*ticks = (uint32_t)window;
	return 0;
}
