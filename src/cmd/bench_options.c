/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmd/bench_options.h>

enum type { COUNT, WHOLE, REAL, TIME, FLAG, WORD, SIZES };

enum { RR = 1 << LOAD_RR, STREAM = 1 << LOAD_STREAM, RRUL = 1 << LOAD_RRUL, ALL = BENCH_ALL - 1 };

/* Of getopt_long, for those without a letter: below the letters there are too few. */
enum { CODE = 1024 };

static const struct parameter {
	const char *name;
	char letter;
	const char *key;
	enum type type;
	unsigned kinds;
	const char *word; /* of a FLAG that stands for a word */
} parameters[] = {
	{"flows", 'F', "flows", COUNT, RR | STREAM, NULL},
	{"threads", 'T', "threads", COUNT, ALL, NULL},
	{"server-threads", 0, "server_threads", COUNT, ALL, NULL},
	{"request-size", 'Q', "request_size", COUNT, RR, NULL},
	{"response-size", 'R', "response_size", COUNT, RR, NULL},
	{"udp", 0, "protocol", FLAG, RR | STREAM, "udp"},
	{"rate", 0, "rate", REAL, RR | STREAM, NULL},
	{"poisson", 0, "arrivals", FLAG, RR, "poisson"},
	{"seed", 0, "seed", WHOLE, RR, NULL},
	{"outstanding", 0, "outstanding", COUNT, RR, NULL},
	{"connect", 0, "connect", FLAG, RR, NULL},
	{"work", 0, "work_ns", TIME, RR, NULL},
	{"stall", 0, "stall_ns", TIME, RR, NULL},
	{"stall-every", 0, "stall_every_ns", TIME, RR, NULL},
	{"sizes", 0, "sizes", SIZES, STREAM, NULL},
	{"direction", 0, "direction", WORD, STREAM, NULL},
	{"tcp-flows", 0, "tcp_flows", COUNT, RRUL, NULL},
	{"probe-rate", 0, "probe_rate", REAL, RRUL, NULL},
	{"idle", 0, "idle_ns", TIME, RRUL, NULL},
	{"timeout", 0, "timeout_ns", TIME, ALL, NULL},
	{"interval", 0, "interval_ns", TIME, ALL, NULL},
	{"server-spins", 0, "server_spins", FLAG, ALL, NULL},
	{"client-spins", 0, "client_spins", FLAG, ALL, NULL},
	{"busy-poll", 0, "busy_poll_usecs", WHOLE, ALL, NULL},
	{"prefer-busy-poll", 0, "prefer_busy_poll", FLAG, ALL, NULL},
	{"busy-poll-budget", 0, "busy_poll_budget", WHOLE, ALL, NULL},
};

enum { PARAMETERS = sizeof(parameters) / sizeof(*parameters) };

static void letter_add(struct bench_options *out, const struct parameter *p)
{
	size_t used = strlen(out->letters);

	if (p->letter)
		snprintf(out->letters + used, sizeof(out->letters) - used, "%c%s", p->letter,
			 p->type == FLAG ? "" : ":");
}

struct bench_options *bench_options_make(const struct option *own, const char *letters,
					 unsigned kind, struct bench_options *out)
{
	unsigned kinds = kind == BENCH_ALL ? ALL : 1U << kind;

	*out = (struct bench_options){0};
	/* ':' first: what lacks a value is told from what is unknown. */
	snprintf(out->letters, sizeof(out->letters), ":h%s", letters);
	for (; own->name; own++)
		out->option[out->n++] = *own;
	for (unsigned i = 0; i < PARAMETERS; i++) {
		const struct parameter *p = &parameters[i];

		if (!(p->kinds & kinds))
			continue;
		letter_add(out, p);
		out->option[out->n++] =
			(struct option){p->name, p->type == FLAG ? no_argument : required_argument,
					NULL, p->letter ? p->letter : CODE + (int)i};
	}
	out->option[out->n++] = (struct option){"help", no_argument, NULL, 'h'};
	return out;
}

/* The whole text is a number. */
static bool whole_parse(const char *text, json_int_t *out)
{
	char *end;

	*out = strtoll(text, &end, 10);
	return end != text && !*end;
}

static json_t *whole_json(const char *text, json_int_t least)
{
	json_int_t n;

	return whole_parse(text, &n) && n >= least ? json_integer(n) : NULL;
}

static json_t *real_json(const char *text)
{
	char *end;
	double n = strtod(text, &end);

	return end == text || *end || !isfinite(n) ? NULL : json_real(n);
}

/* NaN: none. */
static double seconds_parse(const char *text)
{
	static const struct {
		const char *name;
		double s;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
	char *end;
	double n = strtod(text, &end);

	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(*units); i++) {
		if (!strcmp(end, units[i].name))
			return n * units[i].s;
	}
	return NAN;
}

static json_t *time_json(const char *text)
{
	double seconds = seconds_parse(text);

	return fabs(seconds) < 1e9 ? json_integer(llround(seconds * 1e9)) : NULL;
}

static json_t *sizes_json(const char *text)
{
	json_t *all = json_array();
	char *end;

	do {
		long long n = strtoll(text, &end, 10);

		if (end == text || (*end && *end != ',')) {
			json_decref(all);
			return NULL;
		}
		json_array_append_new(all, json_integer(n));
		text = end + 1;
	} while (*end);
	return all;
}

static json_t *value_json(const struct parameter *p, const char *text)
{
	switch (p->type) {
	case COUNT: /* 0 would mean what is meant without it */
		return whole_json(text, 1);
	case WHOLE:
		return whole_json(text, 0);
	case REAL:
		return real_json(text);
	case TIME:
		return time_json(text);
	case WORD:
		return json_string(text);
	case SIZES:
		return sizes_json(text);
	case FLAG:
		return p->word ? json_string(p->word) : json_true();
	}
	return NULL;
}

static const char *const meant[] = {
	[COUNT] = "a whole number, 1 at least",
	[WHOLE] = "a whole number",
	[REAL] = "a number",
	[TIME] = "a time, as 200ms, 50us or 3 (s)",
	[WORD] = "a word",
	[SIZES] = "whole numbers with commas between them",
};

/* Whether its value can be is asked of who will read it. */
static int value_judge(const struct bench_command *command, const struct parameter *p,
		       const char *text, const json_t *value)
{
	json_t *alone = json_pack("{s:s, s:O}", "kind", "rr", p->key, value);
	struct load_config config;
	struct error err;
	int ret = load_config_read(alone, &config, &err);
	const char *why = strchr(err.text, ':');

	json_decref(alone);
	if (!ret)
		return 0;
	return misused("bench %s: --%s %s: %s", command->name, p->name, text,
		       why ? why + 2 : err.text);
}

int bench_option_take(const struct bench_command *command, int option, const char *value,
		      json_t *given)
{
	const struct parameter *p = NULL;
	json_t *json;
	int rc;

	for (unsigned i = 0; i < PARAMETERS && !p; i++) {
		if (option == CODE + (int)i || (option == parameters[i].letter && option))
			p = &parameters[i];
	}
	if (!p)
		return -1;
	json = value_json(p, value);
	if (!json)
		return misused("bench %s: --%s %s: it is %s", command->name, p->name, value,
			       meant[p->type]);
	rc = value_judge(command, p, value ? value : "", json);
	json_object_set_new(given, p->key, json);
	return rc;
}

int bench_time(const struct bench_command *command, const char *option, const char *value,
	       double min_s, double max_s, int64_t *out)
{
	double seconds = seconds_parse(value);

	if (!(seconds >= min_s && seconds <= max_s))
		return misused("bench %s: %s %s: a time, %g to %g s: 3, 200ms", command->name,
			       option, value, min_s, max_s);
	*out = llround(seconds * 1e9);
	return 0;
}

int bench_cpuset(const struct bench_command *command, const char *option, const char *value,
		 struct cpuset *out)
{
	if (cpuset_parse(value, out) || cpuset_empty(out))
		return misused("bench %s: %s %s: CPUs are \"0-2,5\" (below %d)", command->name,
			       option, value, CPU_MAX);
	return 0;
}

int bench_port(const struct bench_command *command, const char *option, const char *value,
	       uint16_t *out)
{
	json_int_t n;

	if (!whole_parse(value, &n) || n < 1 || n > UINT16_MAX)
		return misused("bench %s: %s %s: a port, 1 to %d", command->name, option, value,
			       UINT16_MAX);
	*out = (uint16_t)n;
	return 0;
}
