/* SPDX-License-Identifier: BSD-2-Clause */
/* Control's side of GRO: what is merged where, by setting and handler. */
#include <errno.h>
#include <string.h>

#include <core/engine_queue.h>
#include <core/napi.h>

static const char *const names[] = {[GRO_AUTO] = "auto", [GRO_OFF] = "off", [GRO_ON] = "on"};

const char *gro_setting_name(enum gro_setting setting)
{
	return (unsigned)setting < GRO_SETTING_MAX ? names[setting] : "unknown";
}

int gro_setting_parse(const char *name, enum gro_setting *out)
{
	for (unsigned i = 0; i < GRO_SETTING_MAX; i++) {
		if (strcmp(name, names[i]))
			continue;
		*out = (enum gro_setting)i;
		return 0;
	}
	return -EINVAL;
}

const char *gro_types_name(unsigned types)
{
	static const char *const texts[] = {"none", "tcp", "udp", "tcp,udp"};

	return texts[types & (GRO_TCP | GRO_UDP)];
}

static unsigned types_wanted(struct port *port, enum gro_setting setting)
{
	struct handler *handler = port->handler;

	if (setting != GRO_AUTO)
		return setting == GRO_ON ? GRO_TCP | GRO_UDP : 0;
	return handler && handler->ops->merges ? handler->ops->merges(handler, port) : 0;
}

void queue_gro(struct napi *napi)
{
	struct port_queue *queue = napi->queue;
	struct queue_settings settings;
	unsigned types;

	if (!napi->gro)
		return;
	settings_find(&napi->engine->settings, queue->port->name, (int)queue->index, &settings);
	types = types_wanted(queue->port, settings.gro);
	if (!types && atomic_load_explicit(&napi->gro_types, memory_order_relaxed))
		napi->merged = true;
	atomic_store_explicit(&napi->gro_types, types, memory_order_relaxed);
	atomic_store(&napi->record->gro_asked, (uint32_t)settings.gro);
	atomic_store(&napi->record->gro, types);
}

void queues_gro(struct engine *engine)
{
	struct napi_walk walk = {0};
	struct napi *napi;

	while ((napi = napi_walk_next(engine, &walk)))
		queue_gro(napi);
}
