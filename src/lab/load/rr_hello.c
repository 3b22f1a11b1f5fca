/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lab/load/rr.h"

enum kind { NUMBER, REAL, YES_NO, PROTOCOL, ARRIVALS };

static const struct {
	const char *name;
	enum kind kind;
} parameter[RR_PARAMETERS] = {
	{"protocol", PROTOCOL},
	{"request_size", NUMBER},
	{"response_size", NUMBER},
	{"flows", NUMBER},
	{"threads", NUMBER},
	{"server_threads", NUMBER},
	{"rate", REAL},
	{"arrivals", ARRIVALS},
	{"outstanding", NUMBER},
	{"connect", YES_NO},
	{"work_ns", NUMBER},
	{"stall_ns", NUMBER},
	{"stall_every_ns", NUMBER},
	{"timeout_ns", NUMBER},
	{"interval_ns", NUMBER},
	{"seed", NUMBER},
	{"server_spins", YES_NO},
	{"client_spins", YES_NO},
	{"busy_poll_usecs", NUMBER},
	{"prefer_busy_poll", YES_NO},
	{"busy_poll_budget", NUMBER},
};

/* In the order of the table. */
static void values_of(const struct load_config *c, uint64_t value[RR_PARAMETERS])
{
	uint64_t rate;

	memcpy(&rate, &c->rate, sizeof(rate));
	memcpy(value,
	       (uint64_t[RR_PARAMETERS]){
		       c->protocol,
		       c->request_size,
		       c->response_size,
		       c->flows,
		       c->threads,
		       c->server_threads,
		       rate,
		       c->arrivals,
		       c->outstanding,
		       c->connect,
		       (uint64_t)c->work,
		       (uint64_t)c->stall,
		       (uint64_t)c->stall_every,
		       (uint64_t)c->timeout,
		       (uint64_t)c->interval,
		       c->seed,
		       c->server_spins,
		       c->client_spins,
		       c->busy_poll_usecs,
		       c->prefer_busy_poll,
		       c->busy_poll_budget,
	       },
	       sizeof(uint64_t[RR_PARAMETERS]));
}

static void value_say(enum kind kind, uint64_t value, char text[32])
{
	double real;

	memcpy(&real, &value, sizeof(real));
	if (kind == REAL)
		snprintf(text, 32, "%.10g", real);
	else if (kind == YES_NO)
		snprintf(text, 32, "%s", value ? "true" : "false");
	else if (kind == PROTOCOL)
		snprintf(text, 32, "%s", value == LOAD_TCP ? "tcp" : "udp");
	else if (kind == ARRIVALS)
		snprintf(text, 32, "%s", value == LOAD_CONSTANT ? "constant" : "poisson");
	else
		snprintf(text, 32, "%" PRIu64, value);
}

void rr_hello_make(const struct load_config *config, enum rr_status status, struct rr_hello *out)
{
	out->head =
		(struct rr_hello_head){htonl(RR_MAGIC), htons(RR_VERSION), htons((uint16_t)status)};
	values_of(config, out->value);
	for (unsigned i = 0; i < RR_PARAMETERS; i++)
		out->value[i] = htobe64(out->value[i]);
}

enum rr_status rr_hello_answer(const struct load_config *config, const struct rr_hello *asked,
			       struct rr_hello *out)
{
	enum rr_status status = RR_ACCEPTS;

	rr_hello_make(config, RR_ASKS, out);
	if (asked->head.version != out->head.version || asked->head.magic != out->head.magic)
		status = RR_OTHER_VERSION;
	else if (memcmp(asked->value, out->value, sizeof(out->value)))
		status = RR_REFUSES;
	out->head.status = htons((uint16_t)status);
	return status;
}

int rr_hello_check(const struct load_config *config, const struct load_place *place,
		   const struct rr_hello *answer, size_t n, struct error *err)
{
	uint64_t ours[RR_PARAMETERS];
	char a[32], b[32];

	if (n < sizeof(answer->head) || ntohl(answer->head.magic) != RR_MAGIC)
		return error_set(err, -EPROTO, "%s port %u is not a server of rr", place->address,
				 place->port);
	if (ntohs(answer->head.version) != RR_VERSION)
		return error_set(
			err, -EPROTO,
			"the server at %s port %u speaks version %u of rr, this is version "
			"%d: start the same napier on both sides",
			place->address, place->port, ntohs(answer->head.version), RR_VERSION);
	if (n == sizeof(*answer) && ntohs(answer->head.status) == RR_ACCEPTS)
		return 0;
	values_of(config, ours);
	for (unsigned i = 0; n == sizeof(*answer) && i < RR_PARAMETERS; i++) {
		uint64_t theirs = be64toh(answer->value[i]);

		if (theirs == ours[i])
			continue;
		value_say(parameter[i].kind, theirs, a);
		value_say(parameter[i].kind, ours[i], b);
		return error_set(
			err, -EPROTO,
			"the server at %s port %u has %s = %s, not %s: give both sides the "
			"same",
			place->address, place->port, parameter[i].name, a, b);
	}
	return error_set(err, -EPROTO, "the server at %s port %u has refused", place->address,
			 place->port);
}
