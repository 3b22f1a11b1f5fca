/* SPDX-License-Identifier: BSD-2-Clause */
/* What every kind of port has in common off the packet path: kinds, texts, queues, state. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/port.h>

#include <core/engine.h>
#include <core/napi.h>
#include <port/kinds.h>

#define KINDS_MAX 32

static const struct port_ops *kinds[KINDS_MAX] = {PORT_KINDS};

const struct port_ops *port_kind_at(unsigned i)
{
	return i < KINDS_MAX ? kinds[i] : NULL;
}

const struct port_ops *port_kind_find(const char *kind)
{
	for (unsigned i = 0; i < KINDS_MAX && kinds[i]; i++)
		if (!strcmp(kinds[i]->kind, kind))
			return kinds[i];
	return NULL;
}

int port_kind_register(const struct port_ops *ops)
{
	unsigned i = 0;

	if (port_kind_find(ops->kind))
		return -EEXIST;
	while (i < KINDS_MAX && kinds[i])
		i++;
	if (i == KINDS_MAX)
		return -ENOSPC;
	kinds[i] = ops;
	return 0;
}

static void kinds_list(char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < KINDS_MAX && kinds[i] && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
					 kinds[i]->kind);
}

static int number_option(struct port_config *config, const char *key, uint32_t *out,
			 struct error *err)
{
	char text[32], *end;
	unsigned long value;

	if (!port_option(config, key, text, sizeof(text)))
		return 0;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || !*text || *end || *text == '-' || !value || value > UINT32_MAX)
		return error_set(err, -EINVAL, "%s:%s: %s=%s: must be a number from 1",
				 config->kind, config->target, key, text);
	*out = (uint32_t)value;
	return 0;
}

static int bool_option(struct port_config *config, const char *key, bool *out, struct error *err)
{
	char text[32];

	if (!port_option(config, key, text, sizeof(text)))
		return 0;
	*out = !strcmp(text, "yes");
	if (!*out && strcmp(text, "no"))
		return error_set(err, -EINVAL, "%s:%s: %s=%s: must be yes or no", config->kind,
				 config->target, key, text);
	return 0;
}

/* A text that has to fit: cut short it would be another one. */
static int text_option(struct port_config *config, const char *key, char *out, size_t size,
		       struct error *err)
{
	char text[sizeof(config->options)];

	if (!port_option(config, key, text, sizeof(text)))
		return 0;
	if (strlen(text) >= size)
		return error_set(err, -EINVAL, "%s:%s: %s=%.40s: longer than %zu bytes",
				 config->kind, config->target, key, text, size - 1);
	strcpy(out, text);
	return 0;
}

int port_config_parse(const char *text, struct port_config *out, struct error *err)
{
	const char *colon = strchr(text, ':');
	const char *comma;
	size_t kind_size, target_size;
	char known[128];
	int rc;

	memset(out, 0, sizeof(*out));
	kinds_list(known, sizeof(known));
	if (!colon)
		return error_set(err, -EINVAL,
				 "port '%s': must be KIND:TARGET, such as xdp:eth0; kinds are %s",
				 text, known);
	kind_size = (size_t)(colon - text);
	comma = strchrnul(colon, ',');
	target_size = (size_t)(comma - colon) - 1;
	if (kind_size >= sizeof(out->kind) || target_size >= sizeof(out->target) ||
	    strlen(comma) >= sizeof(out->options))
		return error_set(err, -EINVAL, "port '%.64s…': too long", text);
	memcpy(out->kind, text, kind_size);
	memcpy(out->target, colon + 1, target_size);
	if (*comma)
		snprintf(out->options, sizeof(out->options), "%s", comma + 1);
	out->ops = port_kind_find(out->kind);
	if (!out->ops)
		return error_set(err, -EINVAL, "port '%s': no kind '%s'; kinds are %s", text,
				 out->kind, known);
	rc = text_option(out, "netns", out->netns, sizeof(out->netns), err);
	if (!rc)
		rc = text_option(out, "name", out->name, sizeof(out->name), err);
	if (!rc)
		rc = number_option(out, "queues", &out->queues, err);
	if (!rc)
		rc = number_option(out, "ring", &out->ring, err);
	if (!rc)
		rc = bool_option(out, "tx_napi", &out->tx_napi, err);
	return rc;
}

int port_option(struct port_config *config, const char *key, char *value, size_t size)
{
	size_t key_size = strlen(key);
	char *at = config->options;

	while (*at) {
		char *end = strchrnul(at, ',');

		if (!strncmp(at, key, key_size) && at[key_size] == '=') {
			int length = (int)(end - at) - (int)key_size - 1;

			snprintf(value, size, "%.*s", length, at + key_size + 1);
			memmove(at, *end ? end + 1 : end, strlen(*end ? end + 1 : end) + 1);
			if (!*at && at > config->options) /* it was the last: its comma goes too */
				at[-1] = '\0';
			return 1;
		}
		at = *end ? end + 1 : end;
	}
	return 0;
}

int port_options_end(const struct port_config *config, const char *known, struct error *err)
{
	if (!config->options[0])
		return 0;
	return error_set(err, -EINVAL,
			 "%s:%s: unknown option '%s'; options are netns, name, queues, tx_napi%s%s",
			 config->kind, config->target, config->options, *known ? ", " : "", known);
}

static const char *const state_names[] = {
	[PORT_DOWN] = "down",
	[PORT_UP] = "up",
	[PORT_GONE] = "gone",
	[PORT_ENDED] = "ended",
};

const char *port_state_name(enum port_state state)
{
	return (unsigned)state <= PORT_ENDED ? state_names[state] : "unknown";
}

int port_queues_alloc(struct port *port, uint32_t queues)
{
	if (!queues || queues > PORT_QUEUES_MAX)
		return -EINVAL;
	port->queue = calloc(queues, sizeof(*port->queue));
	if (!port->queue)
		return -ENOMEM;
	port->queues = queues;
	for (uint32_t i = 0; i < queues; i++) {
		port->queue[i].port = port;
		port->queue[i].index = i;
		port->queue[i].irq = IRQ_INIT(-1, NULL);
	}
	return 0;
}

void port_warn(struct port *port, const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	engine_log(port->engine, LEVEL_WARNING, "%s: %s", port->name, text);
}

static void state_record(struct port *port)
{
	enum port_state state = (enum port_state)atomic_load(&port->state);

	for (uint32_t i = 0; i < port->queues; i++) {
		struct napi *napi = port->queue[i].napi;

		if (napi)
			snprintf(napi->record->state, sizeof(napi->record->state), "%s",
				 port_state_name(state));
	}
}

/*
 * Runners and control may both be here, and the text has one writer at a time: who comes while
 * another writes leaves it to that one, which writes again, and so the last state stands.
 */
void port_state_set(struct port *port, enum port_state state)
{
	uint32_t telling = 1;

	atomic_store(&port->state, state);
	if (!atomic_fetch_add(&port->telling, 1)) {
		do
			state_record(port);
		while (!atomic_compare_exchange_strong(&port->telling, &telling, 0));
	}
	machine_notify(port->machine);
}

int port_poller_check(const struct port *port, enum poller poller, struct error *err)
{
	uint32_t can = port->ops->pollers;
	char list[64] = "";

	if (!poller_valid(poller))
		return error_set(err, -EINVAL, "no such poller; there are: %s", poller_list());
	if (!can || poller == POLLER_AUTO || can >> poller & 1)
		return 0;
	for (unsigned i = 0; i < POLLER_MAX; i++) {
		size_t used = strlen(list);

		if (can >> i & 1)
			snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
				 poller_name((enum poller)i));
	}
	return error_set(err, -EOPNOTSUPP, "port %s: poller %s cannot poll %s ports: poller=%s",
			 port->name, poller_name(poller), port->ops->kind, list);
}
