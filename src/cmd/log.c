/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include <cmd/log.h>
#include <cmd/table.h>

static _Atomic bool to_syslog;

static const struct {
	const char *word;
	const char *colour;
	int syslog;
} levels[] = {
	[LEVEL_ERROR] = {"error: ", "\033[31m", LOG_ERR},
	[LEVEL_WARNING] = {"warning: ", "\033[33m", LOG_WARNING},
	[LEVEL_INFO] = {"", "", LOG_INFO},
};

void log_to_syslog(void)
{
	openlog("napier", LOG_PID, LOG_DAEMON);
	atomic_store(&to_syslog, true);
}

void log_line(void *arg, enum log_level level, const char *line)
{
	bool coloured = colour_wanted(stderr);

	(void)arg;
	if (atomic_load(&to_syslog))
		syslog(levels[level].syslog, "%s", line);
	else if (getenv("JOURNAL_STREAM") && !coloured)
		fprintf(stderr, "<%d>%s\n", levels[level].syslog, line);
	else
		fprintf(stderr, "napier: %s%s%s%s\n", coloured ? levels[level].colour : "",
			levels[level].word, line, coloured ? "\033[0m" : "");
}
