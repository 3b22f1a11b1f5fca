/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <control/setup.h>

void setup_init(struct setup *setup)
{
	*setup = (struct setup){.name = "default", .realtime = true};
	setup->engine.name = setup->name;
}

void setup_free(struct setup *setup)
{
	for (uint32_t i = 0; i < setup->ports_n; i++)
		setup_port_free(setup->ports[i]);
	setup->ports_n = 0;
	free(setup->cpus);
	setup->cpus = NULL;
	setup->cpus_n = 0;
}

int setup_name(struct setup *setup, const char *name, struct error *err)
{
	bool good = *name && *name != '.' && strlen(name) < sizeof(setup->name);

	for (const char *c = name; good && *c; c++)
		good = isalnum((unsigned char)*c) || strchr("_-.", *c);
	if (!good)
		return error_set(err, -EINVAL,
				 "name \"%.40s\": 1 to %d letters, digits, '_', '-' or '.'", name,
				 SETUP_NAME_MAX - 1);
	/* engine.name points here, also while this copy is being made from itself. */
	memmove(setup->name, name, strlen(name) + 1);
	return 0;
}

int setup_handler_parse(const char *name, enum setup_handler *out, struct error *err)
{
	if (!strcmp(name, "bridge"))
		*out = SETUP_BRIDGE;
	else if (!strcmp(name, "drop"))
		*out = SETUP_DROP;
	else
		return error_set(err, -EINVAL,
				 "unknown handler \"%.40s\": the handlers are bridge, drop", name);
	return 0;
}

/* A port is called by its device, and a file without its directories. */
static void name_default(struct port_config *config)
{
	const char *slash = strrchr(config->target, '/');
	const char *name = slash ? slash + 1 : config->target;

	if (!config->name[0] && strlen(name) < sizeof(config->name))
		strcpy(config->name, name);
}

const char *setup_reserved(const char *name)
{
	static const struct {
		const char *name, *means;
	} reserved[] = {
		{"backlog", "an engine CPU's backlog"},
		{"busy", "a thread of the engine's"},
		{"cpu", "an engine CPU"},
		{"default", "NAPIs to come"},
		{"engine", "the engine itself"},
		{"irq", "a thread of the engine's"},
		{"ksoftirqd", "a thread of the engine's"},
		{"kworker", "a thread of the engine's"},
	};

	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++)
		if (!strcmp(name, reserved[i].name))
			return reserved[i].means;
	return NULL;
}

bool setup_sayable(const char *name)
{
	for (; *name; name++)
		if (*name == '/' || iscntrl((unsigned char)*name))
			return false;
	return true;
}

static int name_check(const struct port_config *config, struct error *err)
{
	const char *name = config->name;
	const char *means = setup_reserved(name);

	if (!config->target[0] && !config->options[0])
		return error_set(err, -EINVAL,
				 "port %s:: the target is missing, such as eth0 in xdp:eth0",
				 config->kind);
	if (!*name)
		return error_set(err, -EINVAL,
				 "port %s:%s: give the port a name of 1 to %zu bytes with name=",
				 config->kind, config->target, sizeof(config->name) - 1);
	if (means)
		return error_set(err, -EINVAL,
				 "port %s:%s: \"%s\" means %s: give the port another name with "
				 "name=",
				 config->kind, config->target, name, means);
	if (!setup_sayable(name))
		return error_set(err, -EINVAL,
				 "port %s:…: a name has no '/' and no control characters: give the "
				 "port another one with name=",
				 config->kind);
	return 0;
}

/* wait= is ours; the rest of the options is the kind's. */
static int wait_take(struct setup_port *port, struct error *err)
{
	char value[8];

	if (!port_option(&port->config, "wait", value, sizeof(value)))
		return 0;
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return error_set(err, -EINVAL, "%s: wait=%s: it is yes or no", port->config.name,
				 value);
	port->wait = !strcmp(value, "yes");
	return 0;
}

/* The interface's name with an h behind, as far as there is room. */
static void host_default(struct setup_port *port)
{
	snprintf(port->host, sizeof(port->host), "%.*sh", IFNAMSIZ - 2, port->config.target);
}

/* host= is ours, too: yes, no, or the name of the TAP. */
static int host_take(struct setup_port *port, struct error *err)
{
	char value[32];

	if (!port_option(&port->config, "host", value, sizeof(value)) || !strcmp(value, "no"))
		return 0;
	if (!strcmp(value, "yes"))
		return setup_port_host(port, err);
	if (!value[0] || strlen(value) >= sizeof(port->host) || !setup_sayable(value))
		return error_set(err, -EINVAL,
				 "%s: host=%s: it is yes, no, or a name for the TAP, of 1 to %d "
				 "characters",
				 port->config.name, value, IFNAMSIZ - 1);
	if (setup_reserved(value))
		return error_set(err, -EINVAL,
				 "%s: host=%s: \"%s\" means %s: give the TAP another name",
				 port->config.name, value, value, setup_reserved(value));
	strcpy(port->host, value);
	return setup_port_host(port, err);
}

int setup_port_host(struct setup_port *port, struct error *err)
{
	const struct port_config *config = &port->config;

	if (!strcmp(config->kind, "packet"))
		return error_set(err, -EOPNOTSUPP,
				 "packet:%s: host: a packet port leaves all frames to the kernel's "
				 "stack on %s as well, which would get each twice: use xdp:%s",
				 config->target, config->target, config->target);
	if (strcmp(config->kind, "xdp"))
		return error_set(
			err, -EOPNOTSUPP,
			"%s:%s: host: this host's stack is behind an interface of its own: "
			"xdp:INTERFACE",
			config->kind, config->target);
	if (!port->host[0])
		host_default(port);
	return 0;
}

int setup_port_create(const char *spec, struct setup_port **out, struct error *err)
{
	struct setup_port *port = calloc(1, sizeof(*port));
	int rc;

	if (!port)
		return error_set(err, -ENOMEM, "no memory for port %s", spec);
	rc = port_config_parse(spec, &port->config, err);
	if (!rc) {
		name_default(&port->config);
		rc = name_check(&port->config, err);
		if (!rc)
			rc = wait_take(port, err);
		if (!rc)
			rc = host_take(port, err);
	}
	if (rc) {
		setup_port_free(port);
		return rc;
	}
	*out = port;
	return 0;
}

void setup_port_free(struct setup_port *port)
{
	if (port)
		free(port->queues);
	free(port);
}

int setup_port_add(struct setup *setup, const char *spec, struct setup_port **out,
		   struct error *err)
{
	int rc;

	if (setup->ports_n == SETUP_PORTS_MAX)
		return error_set(err, -ENOSPC, "port %.80s: more than %d ports", spec,
				 SETUP_PORTS_MAX);
	rc = setup_port_create(spec, out, err);
	if (!rc)
		setup->ports[setup->ports_n++] = *out;
	return rc;
}

struct setup_cpu *setup_cpu(struct setup *setup, unsigned cpu)
{
	struct setup_cpu *more;

	for (uint32_t i = 0; i < setup->cpus_n; i++) {
		if (setup->cpus[i].cpu == cpu)
			return &setup->cpus[i];
	}
	more = realloc(setup->cpus, (setup->cpus_n + 1) * sizeof(*more));
	if (!more)
		return NULL;
	setup->cpus = more;
	more += setup->cpus_n++;
	*more = (struct setup_cpu){.cpu = cpu};
	return more;
}

struct wish *setup_port_wish(struct setup_port *port, int queue)
{
	struct setup_queue *more;

	for (uint32_t i = 0; i < port->queues_n; i++) {
		if (port->queues[i].queue == queue)
			return &port->queues[i].wish;
	}
	more = realloc(port->queues, (port->queues_n + 1) * sizeof(*more));
	if (!more)
		return NULL;
	port->queues = more;
	more += port->queues_n++;
	*more = (struct setup_queue){.queue = queue};
	return &more->wish;
}

/* "10,20-29" */
static int vlans_parse(const char *key, const char *value, uint64_t *bits, struct error *err)
{
	const char *at = value;

	for (;;) {
		unsigned long first, last;
		char *end;

		if (!isdigit((unsigned char)*at))
			break;
		first = last = strtoul(at, &end, 10);
		at = end;
		if (*at == '-' && isdigit((unsigned char)at[1])) {
			last = strtoul(at + 1, &end, 10);
			at = end;
		}
		if (first < 1 || last > VLAN_MAX || first > last)
			return error_set(err, -ERANGE, "%s=%.40s: VLANs are 1..%d", key, value,
					 VLAN_MAX);
		for (; first <= last; first++)
			bits[first / 64] |= UINT64_C(1) << (first % 64);
		if (!*at)
			return 0;
		if (*at++ != ',')
			break;
	}
	return error_set(err, -EINVAL, "%s=%.40s: not a list of VLANs such as 10,20-29", key,
			 value);
}

int setup_port_key(struct setup_port *port, const char *key, const char *value, struct error *err)
{
	struct wish *wish;
	long long pvid;
	int rc;

	if (!strcmp(key, "tagged"))
		return vlans_parse(key, value, port->tagged, err);
	if (!strcmp(key, "untagged"))
		return vlans_parse(key, value, port->untagged, err);
	if (!strcmp(key, "pvid")) {
		rc = number_parse(key, value, 1, VLAN_MAX, &pvid, err);
		if (!rc)
			port->pvid = (uint16_t)pvid;
		return rc;
	}
	wish = setup_port_wish(port, -1);
	if (!wish)
		return error_set(err, -ENOMEM, "no memory");
	rc = wish_key(wish, key, value, err);
	if (rc == -ENOENT)
		wish_unknown(key, SETUP_PORT_KEYS, err);
	return rc;
}

bool setup_port_vlans(const struct setup_port *port)
{
	uint64_t any = port->pvid;

	for (size_t i = 0; i < VLAN_MAX / 64 + 1; i++)
		any |= port->tagged[i] | port->untagged[i];
	return any;
}

int setup_port_check(const struct setup *setup, const struct setup_port *port, struct error *err)
{
	struct queue_settings ignored;
	struct error inner;

	for (size_t i = 0; i < VLAN_MAX / 64 + 1; i++) {
		uint64_t both = port->tagged[i] & port->untagged[i];

		if (both)
			return error_set(err, -EINVAL,
					 "%sport %s: VLAN %d is both tagged and untagged",
					 port->where, port->config.name,
					 (int)i * 64 + __builtin_ctzll(both));
	}
	for (uint32_t i = 0; i < port->queues_n; i++) {
		int rc = wish_settings(&port->queues[i].wish, &ignored, &inner);

		if (rc)
			return error_set(err, rc, "%sport %s: %.200s", port->where,
					 port->config.name, inner.text);
	}
	if (wish_settings(&port->tx, &ignored, &inner))
		return error_set(err, -EINVAL, "%sport %s: tx: %.200s", port->where,
				 port->config.name, inner.text);
	if (wish_settings(&port->host_wish, &ignored, &inner))
		return error_set(err, -EINVAL, "%sport %s: host: %.200s", port->where,
				 port->config.name, inner.text);
	if (!setup_port_vlans(port))
		return 0;
	if (port->host[0])
		return error_set(err, -EINVAL,
				 "%sport %s: VLANs go with the handler bridge, and this one is the "
				 "host's",
				 port->where, port->config.name);
	if (setup->handler != SETUP_BRIDGE)
		return error_set(err, -EINVAL, "%sport %s: VLANs go with the handler bridge only",
				 port->where, port->config.name);
	if (!setup->bridge.vlan_filtering)
		return error_set(err, -EINVAL,
				 "%sport %s: VLANs need vlan_filtering = true in handler",
				 port->where, port->config.name);
	return 0;
}

int setup_check(const struct setup *setup, struct error *err)
{
	if (!setup->ports_n)
		return error_set(err, -EINVAL, "no ports: name at least one, such as xdp:eth0");
	for (uint32_t i = 0; i < setup->ports_n; i++) {
		int rc = setup_port_check(setup, setup->ports[i], err);

		if (rc)
			return rc;
		for (uint32_t j = 0; j < i; j++) {
			if (strcmp(setup->ports[i]->config.name, setup->ports[j]->config.name))
				continue;
			return error_set(err, -EEXIST,
					 "%sport %s is there twice: give one of them name=…",
					 setup->ports[i]->where, setup->ports[i]->config.name);
		}
	}
	return 0;
}
