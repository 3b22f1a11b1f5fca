/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Knobs of NAPIs. The interface's own value, by sysfs, is that of NAPIs to come, and to write it
 * writes all there are; each NAPI's, by netlink, may differ. Both are read, set and restored: a
 * veth's NAPIs come and go with GRO, XDP programs and up and down.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <port/sysfs.h>

#include "lab/run/knob.h"

static void value_name(const struct knob *knob, uint64_t value, char *out)
{
	if (knob->type == KNOB_THREADED)
		snprintf(out, KNOB_VALUE_MAX, "%s", knob_switch_name(value));
	else
		snprintf(out, KNOB_VALUE_MAX, "%llu", (unsigned long long)value);
}

static uint64_t value_number(const struct knob *knob, const char *value)
{
	if (knob->type != KNOB_THREADED)
		return strtoull(value, NULL, 10);
	return !strcmp(value, "off")  ? NAPI_THREADED_OFF
	       : !strcmp(value, "on") ? NAPI_THREADED_ON
				      : NAPI_THREADED_BUSY_POLL;
}

/* Those that have the attribute; none also where the kernel has no such family. */
static int napis_read(const struct knob_site *site, const struct knob *knob,
		      struct napi_seen napi[NAPI_SEEN_MAX], struct error *err)
{
	int n = site->netlink.fd < 0
			? 0
			: napi_netlink_list(&site->netlink, site->ifindex, napi, NAPI_SEEN_MAX);
	int kept = 0;

	if (n == -EOPNOTSUPP)
		return 0;
	if (n < 0)
		return error_set(err, n, "%s of %s: asking for its NAPIs: %s", knob->key,
				 site->interface, strerror(-n));
	if (n > NAPI_SEEN_MAX)
		return error_set(err, -E2BIG, "%s of %s: it has %d NAPIs, at most %d can be set",
				 knob->key, site->interface, n, NAPI_SEEN_MAX);
	for (int i = 0; i < n; i++)
		if (napi[i].has[NAPI_ID] && napi[i].has[knob->get])
			napi[kept++] = napi[i];
	return kept;
}

static int none(const struct knob_site *site, const struct knob *knob, struct error *err)
{
	if (site->netlink.fd < 0 ||
	    napi_netlink_settable(&site->netlink, knob->get, 0) == -EOPNOTSUPP)
		return error_set(err, -EOPNOTSUPP,
				 "%s of %s: this kernel has it not; it is there from Linux %s on",
				 knob->key, site->interface, knob->since);
	return error_set(err, -EOPNOTSUPP,
			 "%s of %s: it has no NAPI now (it has to be up; a veth has NAPIs with GRO "
			 "on or an XDP program)",
			 knob->key, site->interface);
}

static int read_all(const struct knob_site *site, const struct knob *knob, struct knob_state *out,
		    struct error *err)
{
	char value[KNOB_VALUE_MAX];
	struct napi_seen napi[NAPI_SEEN_MAX];
	int n = napis_read(site, knob, napi, err), rc = 0;

	memset(out, 0, sizeof(*out));
	if (n < 0)
		return n;
	out->all = (unsigned)n;
	if (knob->file && !sysfs_read(site->dir, knob->file, value, sizeof(value)))
		value_name(knob, strtoull(value, NULL, 10), out->base);
	else if (n)
		value_name(knob, napi[0].value[knob->get], out->base);
	else
		return none(site, knob, err);
	for (int i = 0; i < n && !rc; i++) {
		value_name(knob, napi[i].value[knob->get], value);
		rc = knob_state_part(out, knob, (unsigned)napi[i].value[NAPI_ID], value, err);
	}
	return rc;
}

static int busy_poll_check(const struct knob_site *site, const struct knob *knob, struct error *err)
{
	int rc = site->netlink.fd < 0 ? -EOPNOTSUPP
				      : napi_netlink_settable(&site->netlink, NAPI_THREADED,
							      NAPI_THREADED_BUSY_POLL);

	if (rc == -EOPNOTSUPP)
		return error_set(err, rc,
				 "%s=busy-poll of %s: this kernel has it not; it is there from "
				 "Linux 6.19 on",
				 knob->key, site->interface);
	if (rc)
		return error_set(err, rc, "%s=busy-poll of %s: %s", knob->key, site->interface,
				 strerror(-rc));
	return 0;
}

/* *busy: sysfs has no word for what is asked, so NAPIs alone are set, and there has to be one. */
static int write_base(const struct knob_site *site, const struct knob *knob, const char *value,
		      bool *busy, struct error *err)
{
	uint64_t number = value_number(knob, value);
	char text[32];
	int rc;

	*busy = knob->type == KNOB_THREADED && number == NAPI_THREADED_BUSY_POLL;
	if (*busy)
		return busy_poll_check(site, knob, err);
	if (!knob->file)
		return 0;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	rc = sysfs_write(site->dir, knob->file, text);
	if (rc == -EOPNOTSUPP)
		return none(site, knob, err);
	if (rc == -ENOENT && site->netlink.fd >= 0)
		return 0;
	if (rc)
		return error_set(err, rc, "%s of %s: writing %s: %s", knob->key, site->interface,
				 value, strerror(-rc));
	return 0;
}

static int write_all(const struct knob_site *site, const struct knob *knob,
		     const struct knob_state *state, struct error *err)
{
	struct napi_seen napi[NAPI_SEEN_MAX];
	bool busy;
	int rc = write_base(site, knob, state->base, &busy, err);
	int n = rc ? rc : napis_read(site, knob, napi, err);

	if (n < 0)
		return n;
	if (!n && (busy || !knob->file))
		return none(site, knob, err);
	for (int i = 0; i < n; i++) {
		unsigned id = (unsigned)napi[i].value[NAPI_ID];
		uint64_t value = value_number(knob, knob_state_of(state, id));

		if (napi[i].value[knob->get] == value)
			continue;
		rc = napi_netlink_set(&site->netlink, id, knob->get, value);
		if (rc == -EOPNOTSUPP || rc == -EINVAL || rc == -ERANGE)
			return none(site, knob, err);
		if (rc && rc != -ENOENT) /* it is gone meanwhile */
			return error_set(err, rc, "%s of %s: NAPI %u: %s", knob->key,
					 site->interface, id, strerror(-rc));
	}
	return 0;
}

const struct knob_ops knob_napi_ops = {
	.of_interface = true,
	.read = read_all,
	.write = write_all,
};
