/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a running engine's log lines go. */
#ifndef CMD_LOG_H
#define CMD_LOG_H

#include <napier/engine.h>

/* engine_config.log: any thread. To standard error, with the journal's levels if it is one. */
void log_line(void *arg, enum log_level level, const char *line);

/* From now on to syslog. */
void log_to_syslog(void);

#endif
