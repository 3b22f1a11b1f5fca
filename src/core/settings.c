/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <core/settings.h>

/* Keys that are set in `from` replace those in `to`. */
static void settings_merge(struct queue_settings *to, const struct queue_settings *from)
{
	if (from->poller_set) {
		to->poller_set = true;
		to->poller = from->poller;
	}
	if (from->weight_set) {
		to->weight_set = true;
		to->weight = from->weight;
	}
	if (from->cpu_set) {
		to->cpu_set = true;
		to->cpu = from->cpu;
	}
	if (from->idle_suspend_set) {
		to->idle_suspend_set = true;
		to->idle_suspend_usecs = from->idle_suspend_usecs;
	}
	if (from->napi_defer_hard_irqs_set) {
		to->napi_defer_hard_irqs_set = true;
		to->napi_defer_hard_irqs = from->napi_defer_hard_irqs;
	}
	if (from->gro_flush_timeout_set) {
		to->gro_flush_timeout_set = true;
		to->gro_flush_timeout = from->gro_flush_timeout;
	}
	if (from->irq_suspend_timeout_set) {
		to->irq_suspend_timeout_set = true;
		to->irq_suspend_timeout = from->irq_suspend_timeout;
	}
	if (from->gro_set) {
		to->gro_set = true;
		to->gro = from->gro;
	}
	if (from->rps_cpus_set) {
		to->rps_cpus_set = true;
		to->rps_cpus = from->rps_cpus;
	}
	if (from->rps_flow_set) {
		to->rps_flow_set = true;
		to->rps_flow_cnt = from->rps_flow_cnt;
	}
	if (from->cpus_set) {
		to->cpus_set = true;
		to->placement.cpus = from->placement.cpus;
	}
	if (from->class_set) {
		to->class_set = true;
		to->placement.class = from->placement.class;
		to->placement.level = from->placement.level;
	}
}

/* Keys that are set in `mask` are no longer set in `to`. */
static void settings_clear(struct queue_settings *to, const struct queue_settings *mask)
{
	to->poller_set &= !mask->poller_set;
	to->weight_set &= !mask->weight_set;
	to->cpu_set &= !mask->cpu_set;
	to->idle_suspend_set &= !mask->idle_suspend_set;
	to->irq_suspend_timeout_set &= !mask->irq_suspend_timeout_set;
	to->gro_set &= !mask->gro_set;
	to->rps_cpus_set &= !mask->rps_cpus_set;
	to->rps_flow_set &= !mask->rps_flow_set;
	to->cpus_set &= !mask->cpus_set;
	to->class_set &= !mask->class_set;
}

int settings_keep(struct settings *settings, const char *port, int queue,
		  const struct queue_settings *value)
{
	struct setting *found = NULL;

	for (uint32_t i = 0; i < settings->n; i++) {
		struct setting *s = &settings->entry[i];

		if (strcmp(s->port, port))
			continue;
		if (s->queue == queue)
			found = s;
		else if (queue < 0)
			settings_clear(&s->value, value);
	}
	if (!found) {
		if (settings->n == SETTINGS_MAX)
			return -ENOSPC;
		found = &settings->entry[settings->n++];
		memset(found, 0, sizeof(*found));
		snprintf(found->port, sizeof(found->port), "%s", port);
		found->queue = queue;
	}
	settings_merge(&found->value, value);
	return 0;
}

bool settings_evict(struct settings *settings, bool (*there)(void *arg, const char *port),
		    void *arg, char forgotten[PORT_NAME_MAX])
{
	for (uint32_t i = 0; i < settings->n; i++) {
		struct setting *s = &settings->entry[i];

		if (there(arg, s->port))
			continue;
		memcpy(forgotten, s->port, PORT_NAME_MAX);
		settings->n--;
		memmove(s, s + 1, (settings->n - i) * sizeof(*s));
		return true;
	}
	return false;
}

void settings_find(const struct settings *settings, const char *port, int queue,
		   struct queue_settings *out)
{
	memset(out, 0, sizeof(*out));
	for (int own = 0; own <= 1; own++) {
		for (uint32_t i = 0; i < settings->n; i++) {
			const struct setting *s = &settings->entry[i];

			if (!strcmp(s->port, port) && s->queue == (own ? queue : -1))
				settings_merge(out, &s->value);
		}
	}
}
