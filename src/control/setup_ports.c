/* SPDX-License-Identifier: BSD-2-Clause */
/* The list `ports` of a configuration. */
#include <errno.h>

#include <control/setup_keys.h>

static int take_port_key(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	char text[256];
	int rc = reader_scalar(r, s, text, sizeof(text));

	if (rc)
		return rc;
	rc = setup_port_key(object, key->name, text, r->err);
	return rc ? reader_wrong_there(r, s, rc) : 0;
}

/* A text such as "10,20-29", a number, or an array of numbers. */
static int take_vlans(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	int type = config_setting_type(s);

	if (type != CONFIG_TYPE_ARRAY && type != CONFIG_TYPE_LIST)
		return take_port_key(r, s, object, key);
	for (int i = 0; i < config_setting_length(s); i++) {
		config_setting_t *element = config_setting_get_elem(s, (unsigned)i);
		int rc = config_setting_type(element) == CONFIG_TYPE_INT
				 ? take_port_key(r, element, object, key)
				 : reader_wrong_type(r, s, "[ 10, 20 ] or \"10,20-29\"");

		if (rc)
			return rc;
	}
	return 0;
}

static int take_queue(struct reader *r, config_setting_t *s, void *object)
{
	static const struct key keys[] = {
		{"queue", setup_take_nothing},	   {"poller", setup_take_wish},
		{"weight", setup_take_wish},	   {"cpu", setup_take_wish},
		{"cpus", setup_take_wish},	   {"class", setup_take_wish},
		{"nice", setup_take_wish},	   {"priority", setup_take_wish},
		{"idle_suspend", setup_take_wish}, {"rps_cpus", setup_take_wish},
		{"rps_flow_cnt", setup_take_wish}, {"irq_suspend_timeout", setup_take_wish},
		{"gro", setup_take_wish},
	};
	static const struct key number = {"queue", NULL, 0, 0, PORT_QUEUES_MAX - 1};
	struct setup_port *port = object;
	uint32_t before = port->queues_n;
	struct wish *wish;
	long long queue;
	int rc = setup_number(r, s, &number, "queue", keys, sizeof(keys) / sizeof(*keys), &queue);

	if (rc)
		return rc;
	wish = setup_port_wish(port, (int)queue);
	if (!wish)
		return error_set(r->err, -ENOMEM, "no memory");
	if (port->queues_n == before)
		return setup_twice(r, s, &number, queue);
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), wish);
}

static int take_queues(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)key;
	return reader_list(r, s, object, take_queue);
}

static int take_tx(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	static const struct key keys[] = {
		{"poller", setup_take_wish},   {"weight", setup_take_wish},
		{"cpu", setup_take_wish},      {"cpus", setup_take_wish},
		{"class", setup_take_wish},    {"nice", setup_take_wish},
		{"priority", setup_take_wish}, {"idle_suspend", setup_take_wish},
	};
	struct setup_port *port = object;

	(void)key;
	if (!port->config.tx_napi)
		return reader_wrong(r, s, -EINVAL, "tx goes with tx_napi=yes in the port's text");
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &port->tx);
}

/* The NAPIs of the TAP by which the host has it. */
static int take_host(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	static const struct key keys[] = {
		{"poller", setup_take_wish},   {"weight", setup_take_wish},
		{"cpu", setup_take_wish},      {"cpus", setup_take_wish},
		{"class", setup_take_wish},    {"nice", setup_take_wish},
		{"priority", setup_take_wish}, {"idle_suspend", setup_take_wish},
		{"rps_cpus", setup_take_wish}, {"rps_flow_cnt", setup_take_wish},
		{"gro", setup_take_wish},
	};
	struct setup_port *port = object;

	(void)key;
	if (!port->host[0])
		return reader_wrong(r, s, -EINVAL, "host goes with host=yes in the port's text");
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), &port->host_wish);
}

static int take_port(struct reader *r, config_setting_t *s, void *object)
{
	static const struct key keys[] = {
		{"port", setup_take_nothing},
		{"poller", take_port_key},
		{"weight", take_port_key},
		{"cpu", take_port_key},
		{"cpus", take_port_key},
		{"class", take_port_key},
		{"nice", take_port_key},
		{"priority", take_port_key},
		{"idle_suspend", take_port_key},
		{"napi_defer_hard_irqs", take_port_key},
		{"gro", take_port_key},
		{"gro_flush_timeout", take_port_key},
		{"irq_suspend_timeout", take_port_key},
		{"rps_cpus", take_port_key},
		{"rps_flow_cnt", take_port_key},
		{"pvid", take_port_key},
		{"tagged", take_vlans},
		{"untagged", take_vlans},
		{"queues", take_queues},
		{"tx", take_tx},
		{"host", take_host},
	};
	config_setting_t *which = config_setting_get_member(s, "port");
	struct setup_port *port;
	const char *spec;
	int rc;

	(void)object;
	if (!which)
		return reader_missing(r, s, keys, sizeof(keys) / sizeof(*keys),
				      "this port has no device: port = \"xdp:eth0\";");
	rc = reader_text(r, which, &spec);
	if (rc)
		return rc;
	rc = setup_port_add(setup_of(r), spec, &port, r->err);
	if (rc)
		return reader_wrong_there(r, which, rc);
	setup_where(r, s, port->where);
	return reader_group(r, s, keys, sizeof(keys) / sizeof(*keys), port);
}

int setup_take_ports(struct reader *r, config_setting_t *s, void *object, const struct key *key)
{
	(void)key;
	return reader_list(r, s, object, take_port);
}
