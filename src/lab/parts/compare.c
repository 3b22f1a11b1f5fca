/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <control/client.h>

#include "lab/clock.h"
#include "lab/parts/compare.h"
#include "lab/load/load.h"
#include "lab/measure/latency.h"

#define BRIDGED "10.77.0.2"
#define CABLED "10.77.1.2"
/* Of what TCP sends again: no more is lost than what never comes, however busy the machine is. */
#define TIMEOUT (20 * NSEC_PER_SEC)
#define SWITCHING_MAX (3600 * NSEC_PER_SEC)

enum { PORT = 7000, SWITCH_TRIES = 20 };

struct compare {
	const struct compare_plan *plan;
	struct compare_result *result;
	struct netlab *lab;
	unsigned client, server; /* namespaces */
	struct forwarder_site site;
	struct histogram *latency; /* of the run of the moment */
	unsigned done, total;
};

static void progress(struct compare *c, const char *what)
{
	if (c->plan->progress)
		c->plan->progress(c->plan->arg, what, c->done, c->total);
	c->done++;
}

/* An end of the site or of the cable: up, with its address. */
static int end_set(struct compare *c, unsigned ns, const char *interface, const char *address,
		   struct error *err)
{
	int ret = netlab_address_add(c->lab, ns, interface, address, 24, err);

	/*
	 * With segmentation offload, a veth hands what a TCP sender gives it past the other end's
	 * NAPI, threaded or not. Requests this short have nothing to segment, so nobody loses.
	 */
	if (!ret)
		ret = netlab_offload_set(c->lab, ns, interface, NETLAB_TSO, false, err);
	return ret ? ret : netlab_link_up(c->lab, ns, interface, true, err);
}

static int site_make(struct compare *c, struct error *err)
{
	struct netlab *lab = c->lab;
	int client = netlab_namespace_add(lab, "client", err);
	int at = client < 0 ? client : netlab_namespace_add(lab, "switch", err);
	int server = at < 0 ? at : netlab_namespace_add(lab, "server", err);
	int ret = server < 0 ? server : 0;

	if (ret)
		return ret;
	c->client = (unsigned)client;
	c->server = (unsigned)server;
	c->site = (struct forwarder_site){
		.lab = lab,
		.ns = (unsigned)at,
		.napier = c->plan->napier,
		.port = c->plan->port,
		.rundir = c->plan->rundir,
	};
	netlab_name(lab, "a", c->site.interface[0]);
	netlab_name(lab, "b", c->site.interface[1]);
	ret = netlab_veth_add(lab, c->client, "eth0", c->site.ns, c->site.interface[0], err);
	if (!ret)
		ret = netlab_veth_add(lab, c->server, "eth0", c->site.ns, c->site.interface[1],
				      err);
	if (!ret)
		ret = netlab_veth_add(lab, c->client, "cable0", c->server, "cable0", err);
	for (int i = 0; i < 2 && !ret; i++)
		ret = netlab_link_up(lab, c->site.ns, c->site.interface[i], true, err);
	if (!ret)
		ret = end_set(c, c->client, "eth0", "10.77.0.1", err);
	if (!ret)
		ret = end_set(c, c->server, "eth0", BRIDGED, err);
	if (!ret)
		ret = end_set(c, c->client, "cable0", "10.77.1.1", err);
	return ret ? ret : end_set(c, c->server, "cable0", CABLED, err);
}

/* Request and response through a forwarder: both sides, and what came of it. */
struct traffic {
	void *server, *client;
	uint64_t transactions, lost, retransmits;
	double duration; /* s */
};

static struct load_place place_of(const struct compare *c, unsigned ns, const char *address)
{
	struct load_place place = {.netns = c->lab->namespace[ns].fd, .port = PORT};

	snprintf(place.address, sizeof(place.address), "%s", address);
	return place;
}

/* Connects and warms up. */
static int traffic_start(struct compare *c, enum forwarder_kind kind, unsigned load,
			 struct traffic *out, struct error *err)
{
	const struct load_config config = {
		.kind = LOAD_RR,
		.protocol = LOAD_TCP,
		.flows = c->plan->flows[load],
		.request_size = c->plan->request_size,
		.response_size = c->plan->response_size,
		.timeout = TIMEOUT,
	};
	struct load_place server = place_of(c, c->server, "0.0.0.0");
	struct load_place client =
		place_of(c, c->client, kind == FORWARDER_NONE ? CABLED : BRIDGED);
	int ret = load_rr.server_start(&config, &server, &out->server, err);

	if (ret)
		return ret;
	ret = load_rr.client_start(&config, &client, &out->client, err);
	if (ret)
		load_rr.server_stop(out->server, NULL);
	else
		clock_sleep(c->plan->warm);
	return ret;
}

static uint64_t count_of(const json_t *result, const char *name)
{
	json_t *counts = json_object_get(result, "counts");

	return (uint64_t)json_integer_value(json_object_get(counts, name));
}

/* Its latencies are in c->latency then. Whatever it returns, both sides have ended. */
static int traffic_stop(struct compare *c, struct traffic *t, struct error *err)
{
	json_t *result = NULL, *served = NULL;
	int ret = load_rr.client_stop(t->client, &result, err);

	load_rr.server_stop(t->server, &served);
	t->transactions = count_of(result, "transactions");
	t->lost = count_of(result, "lost");
	t->retransmits = count_of(result, "retransmits") + count_of(served, "retransmits");
	t->duration = json_number_value(json_object_get(result, "duration_s"));
	if (!ret && latency_read(json_object_get(json_object_get(result, "latency"), "service"),
				 c->latency))
		ret = error_set(err, -EIO, "no latencies were measured");
	json_decref(result);
	json_decref(served);
	return ret;
}

static int cell_run(struct compare *c, const struct forwarder *f, unsigned load, struct error *err)
{
	struct compare_cell *cell = &c->result->cell[f->kind][load];
	pid_t ours[] = {getpid(), forwarder_pid(f)};
	struct cputime_span span;
	struct cputime begin;
	struct traffic t;
	int64_t own;
	double count;
	int cpu, ret = traffic_start(c, f->kind, load, &t, err);

	if (ret)
		return ret;
	cpu = cputime_begin(&begin, ours, 2);
	own = forwarder_cpu(f);
	load_rr.client_measure(t.client, c->plan->measure);
	clock_sleep(c->plan->measure);
	if (!cpu)
		cpu = cputime_end(&begin, ours, 2, &span);
	own = forwarder_cpu(f) - own;
	ret = traffic_stop(c, &t, err);
	if (!ret && cpu)
		ret = error_set(err, cpu, "reading /proc/stat: %s", strerror(-cpu));
	if (ret)
		return ret;
	count = (double)t.transactions;
	if (t.transactions) {
		series_add(&cell->rate, count / t.duration);
		/* What is left when others used most of the machine is no measurement. */
		if (span.others < span.busy / 2)
			series_add(&cell->cpu, (double)span.cost / 1e3 / count);
		series_add(&cell->own, (double)own / 1e3 / count);
	}
	histogram_merge(&cell->latency, c->latency);
	cell->lost += t.lost;
	cell->retransmits += t.retransmits;
	if ((double)span.others / (double)span.duration > cell->others)
		cell->others = (double)span.others / (double)span.duration;
	return 0;
}

/* All loads through one forwarder. What cannot be done here is skipped, and the reason kept. */
static int row_run(struct compare *c, enum forwarder_kind kind, struct error *err)
{
	struct error inner;
	struct forwarder f;
	char what[128];
	int ret;

	if (c->result->skipped[kind][0]) {
		c->done += COMPARE_LOADS;
		return 0;
	}
	ret = forwarder_start(&c->site, kind, &f, err);
	if (ret == -EOPNOTSUPP) {
		snprintf(c->result->skipped[kind], sizeof(c->result->skipped[kind]), "%s",
			 err->text);
		c->done += COMPARE_LOADS;
		return 0;
	}
	if (ret)
		return ret;
	for (unsigned load = 0; load < COMPARE_LOADS && !ret; load++) {
		unsigned flows = c->plan->flows[load];

		snprintf(what, sizeof(what), "%s, %u flow%s", forwarder_name(kind), flows,
			 flows == 1 ? "" : "s");
		progress(c, what);
		ret = cell_run(c, &f, load, err);
	}
	if (!ret)
		return forwarder_stop(&f, err);
	forwarder_stop(&f, NULL);
	inner = *err;
	return error_set(err, ret, "%s: %.300s", forwarder_name(kind), inner.text);
}

static int switch_ask(int control, const char *port, enum poller poller, json_t **answer,
		      struct error *err)
{
	return client_ask(control,
			  json_pack("{s:s, s:s, s:{s:s}}", "request", "set", "port", port, "keys",
				    "poller", poller_name(poller)),
			  answer, err);
}

/*
 * One switch of one port. *took: ns, as the engine observed it. Where others keep the machine so
 * busy that it is not done within its bound, everything is as it was, and it is asked for again.
 */
static int switch_once(int control, const char *port, enum poller poller, int64_t *took,
		       struct error *err)
{
	const json_t *queue;
	json_t *answer;
	const char *observed;
	int ret = switch_ask(control, port, poller, &answer, err);

	for (int i = 1; i < SWITCH_TRIES && ret == -ETIMEDOUT; i++)
		ret = switch_ask(control, port, poller, &answer, err);

	if (ret)
		return ret;
	queue = json_array_get(json_object_get(answer, "queues"), 0);
	observed = json_string_value(json_object_get(queue, "poller"));
	if (!observed || strcmp(observed, poller_name(poller)))
		ret = error_set(err, -EPROTO, "asked for poller %s on %s, observed %s",
				poller_name(poller), port, observed ? observed : "none");
	*took = json_integer_value(json_object_get(answer, "took_ns"));
	json_decref(answer);
	return ret;
}

/* Back and forth, each port in turn: softirq is where both begin. */
static int switch_all(struct compare *c, int control, struct error *err)
{
	struct compare_switching *s = &c->result->switching;
	int64_t sum = 0, took;

	while (s->done < c->plan->switches) {
		enum poller poller = s->done / 2 % 2 ? POLLER_SOFTIRQ : POLLER_THREAD;
		int ret = switch_once(control, c->site.interface[s->done % 2], poller, &took, err);

		if (ret)
			return ret;
		sum += took;
		if (took > s->longest)
			s->longest = took;
		s->done++;
		clock_sleep(c->plan->gap);
	}
	s->mean = s->done ? sum / s->done : 0;
	return 0;
}

/* What the engine itself counted. */
static int counters_take(const struct forwarder *f, struct compare_switching *s, struct error *err)
{
	const struct counters_file *file;
	int ret = counters_map(&f->engine.dir, &file, err);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < file->queues; i++) {
		const struct queue_record *r = counters_queue_at(file, i);

		if (!r->in_use)
			continue;
		snprintf(s->port, sizeof(s->port), "%.*s", (int)strcspn(r->port_spec, ":"),
			 r->port_spec);
		s->counted += counter_read(&r->napi.switches);
		s->missed += counter_read(&r->napi.lost);
		for (unsigned d = 0; d < DROP_MAX; d++)
			s->dropped += counter_read(&r->napi.dropped[d]);
	}
	counters_unmap(file);
	return 0;
}

static int switching_measure(struct compare *c, const struct forwarder *f, int control,
			     struct error *err)
{
	struct compare_switching *s = &c->result->switching;
	struct error ignored;
	struct traffic t;
	int ret = traffic_start(c, f->kind, COMPARE_LOADS - 1, &t, err), stopped;

	if (ret)
		return ret;
	/* As long as the switches take. */
	load_rr.client_measure(t.client, SWITCHING_MAX);
	ret = switch_all(c, control, err);
	stopped = traffic_stop(c, &t, ret ? &ignored : err);
	if (ret || stopped)
		return ret ? ret : stopped;
	s->transactions = t.transactions;
	s->lost = t.lost;
	s->retransmits = t.retransmits;
	s->duration = (int64_t)(t.duration * 1e9);
	histogram_merge(&s->latency, c->latency);
	return counters_take(f, s, err);
}

static int switching_run(struct compare *c, struct error *err)
{
	struct forwarder f;
	char what[64];
	int control, ret = forwarder_start(&c->site, FORWARDER_NAPIER_SOFTIRQ, &f, err);

	if (ret)
		return ret;
	snprintf(what, sizeof(what), "%u switches of the poller", c->plan->switches);
	progress(c, what);
	control = client_connect(&f.engine.dir, err);
	ret = control < 0 ? control : switching_measure(c, &f, control, err);
	if (control >= 0)
		close(control);
	if (ret)
		forwarder_stop(&f, NULL);
	else
		ret = forwarder_stop(&f, err);
	return ret;
}

static int rounds_run(struct compare *c, struct error *err)
{
	int ret = 0;

	c->total = c->plan->rounds * COMPARE_KINDS * COMPARE_LOADS + 1;
	for (unsigned round = 0; round < c->plan->rounds && !ret; round++) {
		for (unsigned i = 0; i < COMPARE_KINDS && !ret; i++)
			ret = row_run(c, round % 2 ? COMPARE_KINDS - 1 - i : i, err);
	}
	return ret ? ret : switching_run(c, err);
}

static struct compare_result *result_create(void)
{
	struct compare_result *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	for (unsigned k = 0; k < COMPARE_KINDS; k++) {
		for (unsigned l = 0; l < COMPARE_LOADS; l++)
			histogram_reset(&r->cell[k][l].latency);
	}
	histogram_reset(&r->switching.latency);
	return r;
}

int compare_run(const struct compare_plan *plan, struct compare_result **out, struct error *err)
{
	struct compare c = {.plan = plan};
	int64_t start = clock_now();
	int ret;

	c.result = result_create();
	c.latency = malloc(sizeof(*c.latency));
	if (!c.result || !c.latency) {
		free(c.result);
		free(c.latency);
		return error_set(err, -ENOMEM, "no memory for the results");
	}
	ret = netlab_open(plan->rundir, &c.lab, err);
	if (!ret) {
		ret = site_make(&c, err);
		if (!ret)
			ret = rounds_run(&c, err);
		netlab_close(c.lab);
	}
	c.result->duration = clock_now() - start;
	free(c.latency);
	if (ret)
		free(c.result);
	else
		*out = c.result;
	return ret;
}
