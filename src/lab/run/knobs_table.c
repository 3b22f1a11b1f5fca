/* SPDX-License-Identifier: BSD-2-Clause */
/* The knobs there are, and the values they take. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <napier/machine.h>

#include "lab/run/knob.h"

#define COALESCE(name) .ops = &knob_coalesce_ops, .field = offsetof(struct ethtool_coalesce, name)

static const struct knob table[] = {
	{.key = "threaded",
	 .ops = &knob_napi_ops,
	 .type = KNOB_THREADED,
	 .file = "threaded",
	 .get = NAPI_THREADED,
	 .since = "5.12"},
	{.key = "napi_defer_hard_irqs",
	 .ops = &knob_napi_ops,
	 .max = INT_MAX,
	 .file = "napi_defer_hard_irqs",
	 .get = NAPI_DEFER_HARD_IRQS,
	 .since = "5.8"},
	{.key = "gro_flush_timeout",
	 .ops = &knob_napi_ops,
	 .max = LONG_MAX,
	 .file = "gro_flush_timeout",
	 .get = NAPI_GRO_FLUSH_TIMEOUT,
	 .since = "3.19"},
	{.key = "irq_suspend_timeout",
	 .ops = &knob_napi_ops,
	 .max = LONG_MAX,
	 .get = NAPI_IRQ_SUSPEND_TIMEOUT,
	 .since = "6.13"},
	{.key = "rps_cpus",
	 .ops = &knob_queue_ops,
	 .type = KNOB_CPUS,
	 .file = "rps_cpus",
	 .since = "2.6.35"},
	{.key = "rps_flow_cnt",
	 .ops = &knob_queue_ops,
	 .max = 1 << 29,
	 .file = "rps_flow_cnt",
	 .since = "2.6.35"},
	{.key = "irq_cpus", .ops = &knob_irq_ops, .type = KNOB_CPUS, .min = 1},
	{.key = "gro",
	 .ops = &knob_ethtool_ops,
	 .type = KNOB_SWITCH,
	 .get = ETHTOOL_GGRO,
	 .set = ETHTOOL_SGRO},
	{.key = "gso",
	 .ops = &knob_ethtool_ops,
	 .type = KNOB_SWITCH,
	 .get = ETHTOOL_GGSO,
	 .set = ETHTOOL_SGSO},
	{.key = "tso",
	 .ops = &knob_ethtool_ops,
	 .type = KNOB_SWITCH,
	 .get = ETHTOOL_GTSO,
	 .set = ETHTOOL_STSO},
	{.key = "tx_csum",
	 .ops = &knob_ethtool_ops,
	 .type = KNOB_SWITCH,
	 .get = ETHTOOL_GTXCSUM,
	 .set = ETHTOOL_STXCSUM},
	{.key = "rx_csum",
	 .ops = &knob_ethtool_ops,
	 .type = KNOB_SWITCH,
	 .get = ETHTOOL_GRXCSUM,
	 .set = ETHTOOL_SRXCSUM},
	{.key = "rx_usecs", COALESCE(rx_coalesce_usecs), .max = UINT_MAX},
	{.key = "rx_frames", COALESCE(rx_max_coalesced_frames), .max = UINT_MAX},
	{.key = "tx_usecs", COALESCE(tx_coalesce_usecs), .max = UINT_MAX},
	{.key = "adaptive_rx", COALESCE(use_adaptive_rx_coalesce), .type = KNOB_SWITCH},
	{.key = "busy_poll",
	 .ops = &knob_system_ops,
	 .max = INT_MAX,
	 .file = "busy_poll",
	 .since = "3.11"},
	{.key = "busy_read",
	 .ops = &knob_system_ops,
	 .max = INT_MAX,
	 .file = "busy_read",
	 .since = "3.11"},
	{.key = "rps_sock_flow_entries",
	 .ops = &knob_system_ops,
	 .max = 1 << 29,
	 .file = "rps_sock_flow_entries",
	 .since = "2.6.35"},
	{.key = "netdev_budget",
	 .ops = &knob_system_ops,
	 .min = 1,
	 .max = INT_MAX,
	 .file = "netdev_budget"},
	{.key = "netdev_budget_usecs",
	 .ops = &knob_system_ops,
	 .min = 1,
	 .max = INT_MAX,
	 .file = "netdev_budget_usecs",
	 .since = "4.12"},
	{.key = "dev_weight",
	 .ops = &knob_system_ops,
	 .min = 1,
	 .max = INT_MAX,
	 .file = "dev_weight"},
	{.key = "netdev_max_backlog",
	 .ops = &knob_system_ops,
	 .min = 1,
	 .max = INT_MAX,
	 .file = "netdev_max_backlog"},
};

enum { KNOBS = sizeof(table) / sizeof(*table) };

static const char *const switches[] = {"off", "on", "busy-poll"};

const char *knob_switch_name(unsigned long long value)
{
	return value < sizeof(switches) / sizeof(*switches) ? switches[value] : "?";
}

const struct knob *knob_find(const char *key)
{
	for (unsigned i = 0; i < KNOBS; i++)
		if (!strcmp(table[i].key, key))
			return &table[i];
	return NULL;
}

static int parse_number(const struct knob *knob, const char *value, char *out, struct error *err)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || number < knob->min ||
	    number > knob->max)
		return error_set(err, -EINVAL, "%s: '%s' is not a number of %llu to %llu",
				 knob->key, value, knob->min, knob->max);
	snprintf(out, KNOB_VALUE_MAX, "%llu", number);
	return 0;
}

static int parse_switch(const struct knob *knob, const char *value, char *out, struct error *err)
{
	static const char *const names[][3] = {
		{"off", "0", "false"}, {"on", "1", "true"}, {"busy-poll", "2", "busy-poll"}};
	int known = knob->type == KNOB_THREADED ? 3 : 2;

	for (int i = 0; i < known; i++) {
		for (int k = 0; k < 3; k++) {
			if (strcmp(value, names[i][k]) != 0)
				continue;
			strcpy(out, switches[i]);
			return 0;
		}
	}
	return error_set(err, -EINVAL, "%s: '%s' is not one of: off, on%s", knob->key, value,
			 known == 3 ? ", busy-poll" : "");
}

/* Hexadecimal, highest CPU first; the kernel puts a comma between words. */
static int parse_mask(const char *text, struct cpuset *out)
{
	unsigned bit = 0;

	*out = (struct cpuset){0};
	for (size_t i = strlen(text); i-- > 0;) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = strchr(digits, text[i] | ('A' ^ 'a'));

		if (text[i] == ',')
			continue;
		if (!digit || !*digit)
			return -EINVAL;
		for (unsigned k = 0; k < 4; k++, bit++) {
			if (!((digit - digits) >> k & 1))
				continue;
			if (bit >= CPU_MAX)
				return -ERANGE;
			cpuset_add(out, bit);
		}
	}
	return 0;
}

static int parse_cpus(const struct knob *knob, const char *value, char *out, struct error *err)
{
	bool mask = !strncmp(value, "0x", 2) || !strncmp(value, "0X", 2);
	struct cpuset cpus = {0};
	int rc = 0;

	if (mask)
		rc = value[2] ? parse_mask(value + 2, &cpus) : -EINVAL;
	else if (strcmp(value, "none") != 0)
		rc = cpuset_parse(value, &cpus);
	if (rc || (cpuset_empty(&cpus) && knob->min))
		return error_set(err, -EINVAL,
				 "%s: '%s' is not a list of CPUs (0-3,8), a mask (0xf)%s",
				 knob->key, value, knob->min ? "" : ", or none");
	if (cpuset_empty(&cpus))
		strcpy(out, "none");
	else if (cpuset_format(&cpus, out, KNOB_VALUE_MAX) >= KNOB_VALUE_MAX)
		return error_set(err, -E2BIG, "%s: that many ranges of CPUs are too many",
				 knob->key);
	return 0;
}

int knob_parse(const struct knob *knob, const char *value, char out[KNOB_VALUE_MAX],
	       struct error *err)
{
	switch (knob->type) {
	case KNOB_SWITCH:
	case KNOB_THREADED:
		return parse_switch(knob, value, out, err);
	case KNOB_CPUS:
		return parse_cpus(knob, value, out, err);
	default:
		return parse_number(knob, value, out, err);
	}
}

static int unknown(const char *key, struct error *err)
{
	char list[ERROR_TEXT_MAX] = "";
	size_t n = 0;

	for (unsigned i = 0; i < KNOBS && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				      table[i].key);
	return error_set(err, -EINVAL, "there is no knob '%s'; there are: %s", key, list);
}

int knob_check(const char *key, const char *value, bool *of_interface, struct error *err)
{
	const struct knob *knob = knob_find(key);
	char canonical[KNOB_VALUE_MAX];

	if (!knob)
		return unknown(key, err);
	*of_interface = knob->ops->of_interface;
	return knob_parse(knob, value, canonical, err);
}

int knob_state_part(struct knob_state *state, const struct knob *knob, unsigned id,
		    const char *value, struct error *err)
{
	if (!strcmp(value, state->base))
		return 0;
	if (state->parts == KNOB_PARTS_MAX)
		return error_set(err, -E2BIG,
				 "%s: more than %d of the interface differ from the others: set "
				 "them alike",
				 knob->key, KNOB_PARTS_MAX);
	state->part[state->parts].id = id;
	snprintf(state->part[state->parts++].value, KNOB_VALUE_MAX, "%s", value);
	return 0;
}

const char *knob_state_of(const struct knob_state *state, unsigned id)
{
	for (unsigned i = 0; i < state->parts; i++)
		if (state->part[i].id == id)
			return state->part[i].value;
	return state->base;
}

const char *knob_state_value(const struct knob_state *state)
{
	if (!state->parts)
		return state->base;
	for (unsigned i = 1; i < state->parts; i++)
		if (strcmp(state->part[i].value, state->part[0].value) != 0)
			return NULL;
	return state->parts == state->all ? state->part[0].value : NULL;
}

int knob_state_format(const struct knob_state *state, char *text, size_t size)
{
	int n = snprintf(text, size, "%s", state->base);

	for (unsigned i = 0; i < state->parts; i++) {
		size_t used = (size_t)n < size ? (size_t)n : size;

		n += snprintf(text + used, size - used, " %u=%s", state->part[i].id,
			      state->part[i].value);
	}
	return n;
}

int knob_state_parse(const struct knob *knob, const char *text, struct knob_state *out)
{
	char word[KNOB_VALUE_MAX + 16];
	int rc, used;

	memset(out, 0, sizeof(*out));
	if (sscanf(text, "%255s%n", word, &used) != 1)
		return -EINVAL;
	rc = knob_parse(knob, word, out->base, NULL);
	for (text += used; !rc && sscanf(text, "%271s%n", word, &used) == 1; text += used) {
		char *value = strchr(word, '='), canonical[KNOB_VALUE_MAX];

		if (!value)
			return -EINVAL;
		rc = knob_parse(knob, value + 1, canonical, NULL);
		if (!rc)
			rc = knob_state_part(out, knob, (unsigned)strtoul(word, NULL, 10),
					     canonical, NULL);
	}
	return rc;
}
