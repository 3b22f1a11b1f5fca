/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's side of the counters file: made at start, records by position. */
#ifndef CORE_COUNTERS_H
#define CORE_COUNTERS_H

#include <napier/counters.h>
#include <napier/error.h>

/* Control context. path NULL: memory of its own. The file replaces what was there. */
int counters_create(const char *path, uint32_t cpus, uint32_t queues, struct counters_file **out,
		    struct error *err);
/* From now on readers accept the file. */
void counters_publish(struct counters_file *file);
void counters_destroy(struct counters_file *file, const char *path);

struct cpu_record *counters_cpu(struct counters_file *file, uint32_t i);
struct queue_record *counters_queue(struct counters_file *file, uint32_t i);

#endif
