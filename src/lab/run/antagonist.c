/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/run/antagonist.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lab/clock.h"
#include "lab/cputime.h"
#include "lab/hog.h"
#include "lab/run/place.h"

enum {
	HOGS_MAX = LOAD_TIDS_MAX,
	/* Loads take up to eight ports above their first. */
	PORT_STEP = 16,
	PORT_TURNS = 32,
};

struct antagonist {
	enum spec_antagonist_kind kind;
	int64_t begin;
	/* SPEC_HOG, SPEC_AWAKE */
	unsigned hogs;
	struct hog *hog[HOGS_MAX];
	int64_t hog_began[HOGS_MAX]; /* CPU time of the thread */
	/* SPEC_BACKGROUND */
	const struct load_ops *ops;
	void *server, *client;
	uint16_t port;
};

/* The i-th of the CPUs, modulo; -1: any. */
static int cpu_of(const struct cpuset *cpus, unsigned i)
{
	unsigned n = cpuset_count(cpus), cpu = CPU_MAX;

	if (!n)
		return -1;
	for (unsigned k = 0; k <= i % n; k++)
		cpu = cpuset_next(cpus, k ? cpu + 1 : 0);
	return (int)cpu;
}

/* Its CPUs are those it was started on: only how nice it is. */
static int threads_nice(const struct antagonist *a, int nice, struct error *err)
{
	struct spec_placement placement = {.nice = nice, .placed = true};
	pid_t tids[LOAD_TIDS_MAX];
	unsigned n = antagonist_threads(a, tids);
	int rc = 0;

	for (unsigned i = 0; nice && i < n && !rc; i++)
		rc = place_thread(tids[i], &placement, err);
	return rc;
}

static int hogs_start(struct antagonist *a, const struct spec_antagonist *spec, struct error *err)
{
	unsigned threads = spec->threads ? spec->threads : 1;

	if (threads > HOGS_MAX)
		return error_set(err, -EINVAL, "antagonist %s: %u threads, at most %d", spec->key,
				 threads, HOGS_MAX);
	for (unsigned i = 0; i < threads; i++) {
		int rc = hog_start(cpu_of(&spec->cpus, i), &a->hog[i], err);

		if (rc)
			return rc;
		a->hogs = i + 1;
	}
	for (unsigned i = 0; i < a->hogs; i++)
		a->hog_began[i] = cputime_thread(hog_thread(a->hog[i]));
	return 0;
}

/* One on each CPU; without cpus, on each that we may use. */
static int awake_start(struct antagonist *a, const struct spec_antagonist *spec, struct error *err)
{
	struct spec_antagonist each = *spec;
	cpu_set_t usable;

	if (cpuset_empty(&each.cpus) && !sched_getaffinity(0, sizeof(usable), &usable))
		for (unsigned cpu = 0; cpu < CPU_MAX; cpu++)
			if (CPU_ISSET(cpu, &usable))
				cpuset_add(&each.cpus, cpu);
	each.threads = cpuset_count(&each.cpus);
	if (each.threads > HOGS_MAX)
		each.threads = HOGS_MAX;
	for (unsigned i = 0; i < each.threads; i++) {
		struct error why;
		int rc = hog_idle_start(cpu_of(&each.cpus, i), &a->hog[i], &why);

		if (rc)
			return error_set(err, rc, "antagonist %s: %s", spec->key, why.text);
		a->hogs = i + 1;
		a->hog_began[i] = cputime_thread(hog_thread(a->hog[i]));
	}
	return 0;
}

static int background_start(struct antagonist *a, const struct spec_antagonist *spec,
			    const struct load_place *server, const struct load_place *client,
			    struct error *err)
{
	/* Several may run at once, in the same namespaces. */
	static unsigned turn;
	struct load_place near = *server, far = *client;
	struct load_config config = spec->load;
	unsigned port = server->port + PORT_STEP * (1 + turn++ % PORT_TURNS);
	int rc;

	/* Downwards where there is no room above. */
	if (port > UINT16_MAX - PORT_STEP)
		port = server->port - (port - server->port);
	near.port = far.port = (uint16_t)port;
	near.engine.used = far.engine.used = false;
	if (!cpuset_empty(&spec->cpus))
		near.cpus = far.cpus = spec->cpus;
	a->ops = load_ops(config.kind);
	a->port = near.port;
	if (!a->ops)
		return error_set(err, -EOPNOTSUPP, "antagonist %s: there is no such load",
				 spec->key);
	rc = a->ops->check(&config, err);
	if (!rc)
		rc = a->ops->server_start(&config, &near, &a->server, err);
	if (!rc)
		rc = a->ops->client_start(&config, &far, &a->client, err);
	return rc;
}

int antagonist_start(const struct spec_antagonist *spec, const struct load_place *server,
		     const struct load_place *client, struct antagonist **out, struct error *err)
{
	struct antagonist *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return error_set(err, -ENOMEM, "no memory for an antagonist");
	a->kind = spec->kind;
	a->begin = clock_now();
	switch (spec->kind) {
	case SPEC_HOG:
		rc = hogs_start(a, spec, err);
		break;
	case SPEC_AWAKE:
		rc = awake_start(a, spec, err);
		break;
	default:
		rc = background_start(a, spec, server, client, err);
	}
	if (!rc)
		rc = threads_nice(a, spec->nice, err);
	if (rc) {
		antagonist_stop(a, NULL);
		return rc;
	}
	*out = a;
	return 0;
}

unsigned antagonist_threads(const struct antagonist *a, pid_t tids[LOAD_TIDS_MAX])
{
	unsigned n = 0, of_server = 0;
	pid_t more[LOAD_TIDS_MAX];

	for (; n < a->hogs; n++)
		tids[n] = hog_thread(a->hog[n]);
	if (a->client)
		n = a->ops->client_threads(a->client, tids);
	if (a->server)
		of_server = a->ops->server_threads(a->server, more);
	for (unsigned i = 0; i < of_server && n < LOAD_TIDS_MAX; i++)
		tids[n++] = more[i];
	return n;
}

static json_t *hogs_stop(struct antagonist *a)
{
	double used = 0;

	for (unsigned i = 0; i < a->hogs; i++) {
		used += (double)(cputime_thread(hog_thread(a->hog[i])) - a->hog_began[i]);
		hog_stop(a->hog[i]);
	}
	return json_pack("{s:s, s:i, s:f}", "kind", spec_antagonist_kind_name(a->kind), "threads",
			 (int)a->hogs, "cpu_s", used / 1e9);
}

/* The server's counts: the client's are of what client_measure has begun, which is nothing. */
static json_t *background_stop(struct antagonist *a)
{
	json_t *counts = NULL, *all;

	if (a->client)
		a->ops->client_stop(a->client, NULL, NULL);
	if (a->server)
		a->ops->server_stop(a->server, &counts);
	all = json_pack("{s:s, s:s, s:i}", "kind", "background", "load", a->ops ? a->ops->name : "",
			"port", (int)a->port);
	if (all && counts)
		json_object_update(all, counts);
	json_decref(counts);
	return all;
}

void antagonist_stop(struct antagonist *a, json_t **result)
{
	double duration = (double)(clock_now() - a->begin) / 1e9;
	json_t *all = a->kind == SPEC_BACKGROUND ? background_stop(a) : hogs_stop(a);

	if (all)
		json_object_set_new(all, "duration_s", json_real(duration));
	if (result)
		*result = all;
	else
		json_decref(all);
	free(a);
}
