/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/restore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <napier/engine.h>

#include "port/netdev.h"

#define RESTORE_LINE 256

static bool entry_read(FILE *file, struct restore_entry *e)
{
	char line[RESTORE_LINE];

	while (file && fgets(line, sizeof(line), file)) {
		*e = (struct restore_entry){0};
		if (sscanf(line,
			   "%d %15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %63[^\n]",
			   &e->ifindex, e->name, &e->before[0], &e->ours[0], &e->last[0],
			   &e->before[1], &e->ours[1], &e->last[1], e->netns) >= 8)
			return true;
	}
	return false;
}

static void entry_write(FILE *file, const struct restore_entry *e)
{
	fprintf(file,
		"%d %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %s\n",
		e->ifindex, e->name, e->before[0], e->ours[0], e->last[0], e->before[1], e->ours[1],
		e->last[1], e->netns);
}

static bool same_interface(const struct restore_entry *a, const struct restore_entry *b)
{
	return a->ifindex == b->ifindex && !strcmp(a->netns, b->netns);
}

/* All lines but this interface's, and `more` if there is one. Renamed into place: always whole. */
static int file_rewrite(const char *path, const struct restore_entry *which,
			const struct restore_entry *more)
{
	FILE *from = fopen(path, "re"), *to;
	struct restore_entry e;
	bool any = more;
	char next[280];
	int code = 0;

	snprintf(next, sizeof(next), "%s.new", path);
	to = fopen(next, "we");
	if (!to)
		code = -errno;
	while (to && entry_read(from, &e)) {
		if (same_interface(&e, which))
			continue;
		entry_write(to, &e);
		any = true;
	}
	if (from)
		fclose(from);
	if (!to)
		return code;
	if (more)
		entry_write(to, more);
	if (fclose(to) || (any ? rename(next, path) : unlink(path) && errno != ENOENT))
		code = -errno;
	if (code || !any)
		unlink(next);
	return code;
}

int restore_note(const char *path, const struct restore_entry *entry)
{
	return file_rewrite(path, entry, entry);
}

void restore_forget(const char *path, const struct restore_entry *entry)
{
	if (!*path)
		return;
	file_rewrite(path, entry, NULL);
}

struct restore_log {
	void (*line)(void *arg, enum log_level level, const char *line);
	void *arg;
};

__attribute__((format(printf, 3, 4))) static void say(const struct restore_log *log,
						      enum log_level level, const char *format, ...)
{
	char line[256];
	va_list arguments;

	if (!log->line)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	log->line(log->arg, level, line);
}

static void value_put_back(const struct irq_defer *d, const struct restore_entry *e, int i,
			   uint64_t there, const struct restore_log *log)
{
	int code;

	if (there == e->before[i] || (e->ours[i] == e->before[i] && e->last[i] == e->before[i]))
		return;
	if (there != e->ours[i] && there != e->last[i]) {
		say(log, LEVEL_WARNING,
		    "%s: %s is %" PRIu64 ", which a killed engine had not set: it stays (it was "
		    "%" PRIu64 " before)",
		    e->name, irq_defer_names[i], there, e->before[i]);
		return;
	}
	code = irq_defer_write(d, i, e->before[i]);
	if (code)
		say(log, LEVEL_WARNING, "%s: %s cannot be put back to %" PRIu64 ": %s", e->name,
		    irq_defer_names[i], e->before[i], strerror(-code));
	else
		say(log, LEVEL_INFO, "%s: %s put back to %" PRIu64 " after a killed engine",
		    e->name, irq_defer_names[i], e->before[i]);
}

/* An interface of that name but with another index is another one. */
static void entry_put_back(const struct restore_entry *e, const struct restore_log *log)
{
	uint64_t there[IRQ_DEFER_VALUES];
	struct irq_defer d;
	int back;

	if (netns_enter(e->netns, &back, NULL))
		return; /* and its interfaces with it */
	if ((int)if_nametoindex(e->name) == e->ifindex &&
	    !irq_defer_open(&d, e->name, !e->netns[0])) {
		if (!irq_defer_read(&d, there))
			for (int i = 0; i < IRQ_DEFER_VALUES; i++)
				value_put_back(&d, e, i, there[i], log);
		irq_defer_close(&d);
	}
	netns_leave(back);
}

void engine_restore(const char *path,
		    void (*log)(void *arg, enum log_level level, const char *line), void *arg)
{
	const struct restore_log to = {.line = log, .arg = arg};
	FILE *file = fopen(path, "re");
	struct restore_entry e;

	if (!file)
		return;
	while (entry_read(file, &e))
		entry_put_back(&e, &to);
	fclose(file);
	unlink(path);
}
