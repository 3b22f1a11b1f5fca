/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A view: what the counters and the kernel say of an engine at one moment, as the JSON that
 * `napier show -j` prints and the tables are made from.
 */
#ifndef CMD_VIEW_H
#define CMD_VIEW_H

#include <jansson.h>

#include <napier/counters.h>

#include <control/load.h>
#include <control/rundir.h>

/*
 * dir: where the absent ports are listed; NULL: they are not looked for. port NULL: all of them;
 * queue < 0: all of the port. New reference, or NULL without memory.
 */
json_t *view_create(const struct counters_file *file, const struct rundir *dir, const char *port,
		    int queue);

/* A thread as the kernel has it, whoever placed it; null when it is not there (any more). */
json_t *view_thread(int pid, int tid);

/* The record is of this port (NULL: any) and queue (< 0: any). */
bool view_wanted(const struct queue_record *record, const char *port, int queue);
/*
 * Every thread that polls or takes interrupts, with what was asked for it; of one port only its
 * own. view_load.c
 */
json_t *view_runners(const struct counters_file *file, const char *port, int queue);
/* Adds what was worked: to the view, its CPUs and its NAPIs. view_load.c */
void view_load_add(json_t *view, const struct load *load);

/* Sets class, and nice or priority. Returns the object. */
json_t *view_class_set(json_t *object, bool fifo, int level);
/* What an empty set of CPUs means: the engine's. */
void view_engine_cpus(const struct counters_file *file, char *text, size_t size);

/* "fair nice 0", "fifo priority 50", from an object with class, nice or priority. */
const char *view_class(const json_t *object, char text[32]);

const char *view_text(const json_t *object, const char *member);
long long view_number(const json_t *object, const char *member);

/* The sum over all reasons, of a port or a NAPI. */
long long view_dropped(const json_t *object);

/* Tables of it. What there is nothing of is left out. */
void view_engine_print(const json_t *view, FILE *out);
void view_softnet_print(const json_t *view, FILE *out);
void view_cpus_print(const json_t *view, FILE *out);
void view_runners_print(const json_t *view, FILE *out);
void view_load_print(const json_t *view, FILE *out);
void view_napis_print(const json_t *view, FILE *out);
void view_ports_print(const json_t *view, FILE *out);

#endif
