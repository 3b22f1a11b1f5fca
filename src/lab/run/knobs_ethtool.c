/* SPDX-License-Identifier: BSD-2-Clause */
/* Knobs of drivers: offloads and coalescing, by ethtool's requests. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "lab/run/knob.h"

static int request(const struct knob_site *site, const struct knob *knob, void *data,
		   struct error *err)
{
	struct ifreq ifr = {.ifr_data = data};

	memcpy(ifr.ifr_name, site->interface, IFNAMSIZ);
	if (!ioctl(site->socket, SIOCETHTOOL, &ifr))
		return 0;
	if (errno == EOPNOTSUPP || errno == EINVAL)
		return error_set(err, -EOPNOTSUPP, "%s of %s: its driver has it not", knob->key,
				 site->interface);
	return error_set(err, -errno, "%s of %s: %s", knob->key, site->interface, strerror(errno));
}

static uint32_t value_number(const struct knob *knob, const char *value)
{
	if (knob->type == KNOB_SWITCH)
		return !strcmp(value, "on");
	return (uint32_t)strtoul(value, NULL, 10);
}

static int state_fill(const struct knob *knob, uint32_t value, struct knob_state *out)
{
	memset(out, 0, sizeof(*out));
	if (knob->type == KNOB_SWITCH)
		snprintf(out->base, sizeof(out->base), "%s", knob_switch_name(value ? 1 : 0));
	else
		snprintf(out->base, sizeof(out->base), "%u", value);
	return 0;
}

static int offload_read(const struct knob_site *site, const struct knob *knob,
			struct knob_state *out, struct error *err)
{
	struct ethtool_value value = {.cmd = knob->get};
	int rc = request(site, knob, &value, err);

	return rc ? rc : state_fill(knob, value.data, out);
}

static int offload_write(const struct knob_site *site, const struct knob *knob,
			 const struct knob_state *state, struct error *err)
{
	struct ethtool_value value = {.cmd = knob->set, .data = value_number(knob, state->base)};

	return request(site, knob, &value, err);
}

const struct knob_ops knob_ethtool_ops = {
	.of_interface = true,
	.read = offload_read,
	.write = offload_write,
};

static uint32_t *coalesce_field(struct ethtool_coalesce *c, const struct knob *knob)
{
	return (uint32_t *)(void *)((char *)c + knob->field);
}

static int coalesce_read(const struct knob_site *site, const struct knob *knob,
			 struct knob_state *out, struct error *err)
{
	struct ethtool_coalesce c = {.cmd = ETHTOOL_GCOALESCE};
	int rc = request(site, knob, &c, err);

	return rc ? rc : state_fill(knob, *coalesce_field(&c, knob), out);
}

static int coalesce_write(const struct knob_site *site, const struct knob *knob,
			  const struct knob_state *state, struct error *err)
{
	struct ethtool_coalesce c = {.cmd = ETHTOOL_GCOALESCE};
	int rc = request(site, knob, &c, err);

	if (rc)
		return rc;
	c.cmd = ETHTOOL_SCOALESCE;
	*coalesce_field(&c, knob) = value_number(knob, state->base);
	return request(site, knob, &c, err);
}

const struct knob_ops knob_coalesce_ops = {
	.of_interface = true,
	.read = coalesce_read,
	.write = coalesce_write,
};
