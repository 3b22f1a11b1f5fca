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

enum { FEATURE_WORDS = 8 };

/* What was wished for, which comes into force when something else no longer forbids it. */
struct wishes {
	struct ethtool_gfeatures head;
	struct ethtool_get_features_block word[FEATURE_WORDS];
};

static int wishes_read(const struct knob_site *site, const struct knob *knob, struct wishes *out,
		       struct error *err)
{
	memset(out, 0, sizeof(*out));
	out->head.cmd = ETHTOOL_GFEATURES;
	out->head.size = FEATURE_WORDS;
	return request(site, knob, out, err);
}

static void wishes_write(const struct knob_site *site, const struct knob *knob,
			 const struct wishes *wishes)
{
	struct {
		struct ethtool_sfeatures head;
		struct ethtool_set_features_block word[FEATURE_WORDS];
	} features = {.head = {.cmd = ETHTOOL_SFEATURES, .size = wishes->head.size}};

	for (unsigned i = 0; i < wishes->head.size && i < FEATURE_WORDS; i++) {
		features.word[i].valid = wishes->word[i].available;
		features.word[i].requested = wishes->word[i].requested;
	}
	request(site, knob, &features, NULL);
}

/* One that another offload forbids stays a wish, unless it is taken back. */
static int offload_write(const struct knob_site *site, const struct knob *knob,
			 const struct knob_state *state, struct error *err)
{
	struct ethtool_value value = {.cmd = knob->set, .data = value_number(knob, state->base)};
	struct wishes before;
	struct knob_state now;
	int rc = wishes_read(site, knob, &before, err);

	if (!rc)
		rc = request(site, knob, &value, err);
	if (!rc)
		rc = offload_read(site, knob, &now, err);
	if (!rc && strcmp(now.base, state->base) != 0)
		wishes_write(site, knob, &before);
	return rc;
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
