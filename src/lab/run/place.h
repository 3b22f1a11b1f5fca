/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * place: where threads and interrupts run: set, and read back as observed. Functions return 0 or a
 * negative errno and fill err.
 */
#ifndef LAB_RUN_PLACE_H
#define LAB_RUN_PLACE_H

#include <sys/types.h>

#include <jansson.h>

#include "lab/run/knobs.h"
#include "lab/spec/spec.h"

/* cpus empty: CPUs unchanged; class, nice and priority only when `placed`. */
int place_thread(pid_t tid, const struct spec_placement *placement, struct error *err);
/* All of the kernel's threads of an interface's NAPIs. -ENOENT: there are none. */
int place_kernel_napi(const char *interface, const struct spec_placement *placement,
		      struct error *err);
/*
 * Interrupts of a given interface, as the knob irq_cpus, so that `knobs` restores them; on a veth,
 * which has none, the knob rps_cpus does it, and *by_rps says so.
 */
int place_interrupts(struct knobs *knobs, int netns, const char *interface,
		     const struct cpuset *cpus, bool *by_rps, struct error *err);
/* The kernel's threads that are there yet run as they did before place_kernel_napi. */
int place_restore(struct error *err);

/* {"name", "tid", "cpus", "class", "nice", "priority", "cpu" (where it is now)}; NULL: gone. */
json_t *place_observe(pid_t tid);

#endif
