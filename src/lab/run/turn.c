/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/clock.h"
#include "lab/cputime.h"
#include "lab/measure/usage.h"
#include "lab/run/antagonist.h"
#include "lab/run/place.h"
#include "lab/run/turn.h"

#define LOOK (20 * NSEC_PER_MSEC)

enum { THREADS = USAGE_TIDS_MAX };

struct turn {
	const struct turn_plan *plan;
	const struct spec_system *spec;
	struct system system;
	struct load_config load;
	const struct load_ops *ops;
	struct load_place server, client;
	struct peer *peer;
	struct peer_started started;
	void *generator; /* the client's side */
	unsigned antagonists;
	struct antagonist *antagonist[SPEC_ANTAGONISTS_MAX];
	struct usage *usage;
	json_t *threads, *cpu, *peer_cpu, *did; /* what the antagonists did */
};

static void places_fill(struct turn *t)
{
	const struct topology *topology = t->plan->topology;
	const struct spec_placement *server = system_place(t->spec, "server");
	const struct spec_placement *client = system_place(t->spec, "client");

	t->server = (struct load_place){.netns = topology->server.netns, .port = TURN_PORT};
	snprintf(t->server.address, sizeof(t->server.address), "%s", topology->server.address);
	t->client = t->server;
	t->client.netns = topology->client.netns;
	if (server)
		t->server.cpus = server->cpus;
	if (client)
		t->client.cpus = client->cpus;
}

/* Class and priority; CPUs are given to each side when it starts. */
static int threads_place(const struct spec_placement *place, const pid_t *tids, unsigned n,
			 struct error *err)
{
	struct spec_placement only;
	int ret = 0;

	if (!place || !place->placed)
		return 0;
	only = *place;
	only.cpus = (struct cpuset){0};
	for (unsigned i = 0; i < n && !ret; i++)
		ret = place_thread(tids[i], &only, err);
	return ret;
}

/* Of its whole process: with sockets of napier's an engine's threads are there, too. */
static struct cpuset server_cpus(const struct turn *t)
{
	struct cpuset all = t->server.cpus;
	const struct load_engine *engine = &t->server.engine;

	if (!engine->used || cpuset_empty(&all))
		return all;
	if (cpuset_empty(&engine->cpus))
		return engine->cpus;
	for (size_t i = 0; i < sizeof(all.bits) / sizeof(*all.bits); i++)
		all.bits[i] |= engine->cpus.bits[i];
	return all;
}

static int server_start(struct turn *t, struct error *err)
{
	const struct experiment_plan *e = t->plan->experiment;
	const struct spec_placement *place = system_place(t->spec, "server");
	const struct cpuset cpus = server_cpus(t);
	int64_t lasts = t->plan->length->warm + t->plan->length->duration;
	int ret;

	if (e->host)
		ret = peer_open_host(e->host, e->host_port, &t->peer, err);
	else
		ret = peer_open_child(e->napier, t->server.netns, &cpus, &t->peer, err);
	if (!ret)
		ret = peer_start(t->peer, &t->load, &t->server, lasts, &t->started, err);
	if (ret || e->host)
		return ret;
	if (place)
		system_placed(&t->system, place, "affinity");
	return threads_place(place, t->started.tid, t->started.threads, err);
}

static int client_start(struct turn *t, struct error *err)
{
	const struct spec_placement *place = system_place(t->spec, "client");
	pid_t tids[LOAD_TIDS_MAX];
	int ret = t->ops->client_start(&t->load, &t->client, &t->generator, err);

	if (ret)
		return ret;
	if (place)
		system_placed(&t->system, place, "affinity");
	return threads_place(place, tids, t->ops->client_threads(t->generator, tids), err);
}

static int antagonists_start(struct turn *t, struct error *err)
{
	const struct spec *spec = t->plan->spec;
	const struct spec_placement *place = system_place(t->spec, "antagonist");
	struct load_place server = t->server, client = t->client;

	server.engine.used = false;
	server.port = client.port = TURN_PORT + TURN_PORTS;
	server.cpus = client.cpus = (struct cpuset){0};
	for (unsigned i = 0; i < spec->antagonists; i++) {
		struct spec_antagonist one = spec->antagonist[i];
		int ret;

		if (one.kind == SPEC_BACKGROUND &&
		    (t->server.engine.used || t->plan->topology->remote))
			return error_set(
				err, -EOPNOTSUPP,
				"antagonist %s: a background load needs the kernel's sockets "
				"at the server, on this host",
				one.key);
		if (one.kind != SPEC_AWAKE && place && !cpuset_empty(&place->cpus))
			one.cpus = place->cpus;
		if (one.kind != SPEC_AWAKE && place && place->placed)
			one.nice = place->nice;
		ret = antagonist_start(&one, &server, &client, &t->antagonist[i], err);
		if (ret)
			return ret;
		t->antagonists++;
		server.port = client.port = (uint16_t)(server.port + TURN_PORTS);
	}
	return 0;
}

static unsigned tasks_of(pid_t pid, pid_t *tids, unsigned max)
{
	struct dirent *entry;
	char path[64];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && n < max && (entry = readdir(dir)))
		if (atoi(entry->d_name) > 0)
			tids[n++] = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return n;
}

static struct usage_party *party_add(struct usage_config *config, const char *name)
{
	struct usage_party *party = &config->party[config->parties++];

	snprintf(party->name, sizeof(party->name), "%s", name);
	return party;
}

static void party_tids(struct usage_config *config, const char *name, const pid_t *tids, unsigned n)
{
	struct usage_party *party;

	if (!n)
		return;
	party = party_add(config, name);
	party->tids = n < USAGE_TIDS_MAX ? n : USAGE_TIDS_MAX;
	memcpy(party->tid, tids, party->tids * sizeof(*tids));
}

/* Who works for the traffic; the kernel's own are added by usage. */
static void parties_fill(const struct turn *t, struct usage_config *config)
{
	pid_t tids[LOAD_TIDS_MAX + THREADS], peer = t->peer ? peer_pid(t->peer) : 0;
	unsigned n = 0;

	*config = (struct usage_config){0};
	party_tids(config, "client", tids, t->ops->client_threads(t->generator, tids));
	if (peer && t->server.engine.used) {
		party_tids(config, "server", t->started.tid, t->started.threads);
		party_add(config, "napier")->pid = peer;
	} else if (peer) {
		party_add(config, "server")->pid = peer;
	}
	if (t->system.engine.child.pid)
		party_add(config, "napier")->pid = t->system.engine.child.pid;
	party_tids(config, "command", tids, system_command_threads(&t->system, tids, THREADS));
	for (unsigned i = 0; i < t->antagonists && n < THREADS; i++)
		n += antagonist_threads(t->antagonist[i], tids + n);
	party_tids(config, "antagonist", tids, n);
	for (unsigned i = 0; i < t->plan->topology->duts; i++)
		snprintf(config->interface[config->interfaces++], sizeof(config->interface[0]),
			 "%s", t->plan->topology->dut[i].interface);
}

static void observe(json_t *threads, const char *party, const pid_t *tids, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		json_t *o = place_observe(tids[i]);

		if (!o)
			continue;
		json_object_set_new(o, "party", json_string(party));
		json_array_append_new(threads, o);
	}
}

static bool among(pid_t tid, const pid_t *tids, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (tids[i] == tid)
			return true;
	return false;
}

/* Those of a process that no other party has. */
static void observe_process(const struct turn *t, json_t *threads, const char *party, pid_t pid)
{
	pid_t tids[THREADS];
	unsigned n = tasks_of(pid, tids, THREADS), left = 0;

	for (unsigned i = 0; i < n; i++)
		if (!among(tids[i], t->started.tid, t->started.threads))
			tids[left++] = tids[i];
	observe(threads, party, tids, left);
}

/* Where everybody runs, in the middle of it. */
static void threads_observe(struct turn *t)
{
	const struct topology *topology = t->plan->topology;
	pid_t tids[LOAD_TIDS_MAX + THREADS];

	t->threads = json_array();
	observe(t->threads, "client", tids, t->ops->client_threads(t->generator, tids));
	if (peer_pid(t->peer))
		observe(t->threads, "server", t->started.tid, t->started.threads);
	if (t->server.engine.used && peer_pid(t->peer))
		observe_process(t, t->threads, "napier", peer_pid(t->peer));
	if (t->system.engine.child.pid)
		observe_process(t, t->threads, "napier", t->system.engine.child.pid);
	observe(t->threads, "command", tids, system_command_threads(&t->system, tids, THREADS));
	for (unsigned i = 0; i < t->antagonists; i++)
		observe(t->threads, "antagonist", tids, antagonist_threads(t->antagonist[i], tids));
	for (unsigned i = 0; i < topology->duts; i++) {
		char prefix[32];

		snprintf(prefix, sizeof(prefix), "napi/%.15s-", topology->dut[i].interface);
		observe(t->threads, "kernel threads", tids,
			cputime_threads_find(prefix, tids, THREADS));
	}
}

static int until(struct turn *t, int64_t deadline, const char *phase, struct error *err)
{
	while (clock_now() < deadline) {
		int64_t left = deadline - clock_now();
		struct load_progress progress;
		int ret;

		clock_sleep(left < 0 ? 0 : left < LOOK ? left : LOOK);
		t->ops->client_progress(t->generator, &progress);
		ret = t->plan->look(t->plan->arg, phase, &progress);
		if (ret)
			return error_set(err, ret, "interrupted");
		ret = system_tend(&t->system, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* The polls of napier's own queues; in the server's process they are its to tell. */
static bool engine_read(struct turn *t, struct engine_child_counts *out)
{
	struct error err;
	json_t *said = NULL, *counts;

	*out = (struct engine_child_counts){0};
	if (t->system.engine.child.pid)
		return !engine_child_counts(&t->system.engine, NULL, out);
	if (!t->server.engine.used || peer_read(t->peer, &said, &err))
		return false;
	counts = json_object_get(said, "counts");
	counts = json_object_get(counts, "polls") ? counts : said;
	out->polls = (uint64_t)json_integer_value(json_object_get(counts, "polls"));
	out->received = (uint64_t)json_integer_value(json_object_get(counts, "packets"));
	json_decref(said);
	return out->received;
}

/* Another host counts from one reading to the next. */
static void peer_cpu_read(struct turn *t)
{
	struct error ignored;
	json_t *said;

	if (!t->plan->topology->remote || peer_read(t->peer, &said, &ignored))
		return;
	json_decref(t->peer_cpu);
	t->peer_cpu = json_incref(json_object_get(said, "cpu"));
	json_decref(said);
}

/* The window that is measured, of fixed length; CPU time is of the same. */
static int window(struct turn *t, struct error *err)
{
	int64_t duration = t->plan->length->duration, begin;
	struct engine_child_counts from, to;
	bool has_engine = engine_read(t, &from);
	int ret;

	peer_cpu_read(t);
	usage_begin(t->usage);
	begin = clock_now();
	t->ops->client_measure(t->generator, duration);
	ret = until(t, begin + duration / 2, "measures", err);
	if (!ret)
		threads_observe(t);
	if (!ret)
		ret = until(t, begin + duration, "measures", err);
	/* What it is divided by is known when the client has ended. */
	usage_stop(t->usage);
	peer_cpu_read(t);
	has_engine = has_engine && engine_read(t, &to);
	t->cpu = usage_end(t->usage, 0);
	if (t->cpu && has_engine)
		usage_engine_add(t->cpu, &from, &to);
	if (t->cpu && has_engine && t->server.engine.used) /* it does not say what it merged */
		json_object_set_new(json_object_get(t->cpu, "napier"), "gro_ratio", json_null());
	return ret;
}

static int measure(struct turn *t, struct error *err)
{
	int64_t warm = clock_now() + t->plan->length->warm;
	struct usage_config *config = malloc(sizeof(*config));
	int ret;

	if (!config)
		return error_set(err, -ENOMEM, "no memory");
	parties_fill(t, config);
	ret = usage_open(config, &t->usage, err);
	free(config);
	if (!ret)
		ret = until(t, warm, "warm-up", err);
	return ret ? ret : window(t, err);
}

static int start(struct turn *t, struct error *err)
{
	const struct system_site site = {
		.topology = t->plan->topology,
		.napier = t->plan->experiment->napier,
		.rundir = t->plan->experiment->rundir,
	};
	int ret = system_start(&site, t->spec, &t->system, &t->load, &t->server, err);

	/* Behind a router it is another one. */
	snprintf(t->server.address, sizeof(t->server.address), "%s",
		 t->plan->topology->server.address);
	snprintf(t->client.address, sizeof(t->client.address), "%s",
		 t->plan->topology->server.address);
	if (!ret)
		ret = server_start(t, err);
	if (!ret)
		ret = client_start(t, err);
	return ret ? ret : antagonists_start(t, err);
}

/* All that was started; the first error of what failed by itself. */
static int end(struct turn *t, json_t **run, json_t **server, struct error *err)
{
	struct error next;
	int ret = 0, more;

	if (t->generator)
		ret = t->ops->client_stop(t->generator, run, err);
	if (t->usage)
		usage_close(t->usage);
	if (t->antagonists)
		t->did = json_array();
	while (t->antagonists) {
		json_t *did = NULL;

		antagonist_stop(t->antagonist[--t->antagonists], &did);
		json_array_insert_new(t->did, 0, did ? did : json_null());
	}
	if (t->peer && t->started.threads) {
		more = peer_stop(t->peer, server, ret ? &next : err);
		ret = ret ? ret : more;
	}
	if (t->peer)
		peer_close(t->peer);
	more = system_stop(&t->system, ret ? &next : err);
	return ret ? ret : more;
}

static void error_put(json_t *run, const struct error *err)
{
	json_object_set_new(run, "error", json_string(err->text));
	json_object_set_new(run, "valid", json_false());
}

static void result_fill(struct turn *t, json_t *run, json_t *server, struct turn_result *out)
{
	double operations;

	out->run = run ? run : json_object();
	operations = load_operations(&t->load, json_object_get(out->run, "counts"));
	if (t->cpu)
		usage_operations(t->cpu, operations);
	if (t->peer_cpu)
		usage_operations(t->peer_cpu, operations);
	if (server)
		json_object_del(server, "cpu");
	json_object_set_new(out->run, "peer_cpu", t->peer_cpu ? t->peer_cpu : json_null());
	json_object_set_new(out->run, "server", server ? server : json_null());
	json_object_set_new(out->run, "cpu", t->cpu ? t->cpu : json_null());
	json_object_set_new(out->run, "threads", t->threads ? t->threads : json_array());
	json_object_set_new(out->run, "antagonists", t->did ? t->did : json_array());
	out->system = json_pack("{s:O, s:O, s:O}", "settings", t->system.settings, "commands",
				t->system.commands, "placement", t->system.placement);
}

int turn_run(const struct turn_plan *plan, const struct spec_system *system,
	     const struct spec_workload *workload, struct turn_result *out, struct error *err)
{
	struct turn *t = calloc(1, sizeof(*t));
	json_t *run = NULL, *server = NULL;
	struct error ended;
	int ret, more;

	*out = (struct turn_result){0};
	if (!t)
		return error_set(err, -ENOMEM, "no memory");
	t->plan = plan;
	t->spec = system;
	t->load = workload->load;
	t->ops = load_ops(workload->load.kind);
	places_fill(t);
	if (!t->ops) {
		free(t);
		return error_set(err, -EOPNOTSUPP, "this napier has no such workload");
	}
	plan->look(plan->arg, "starts", NULL);
	ret = start(t, err);
	if (!ret)
		ret = measure(t, err);
	if (t->peer && peer_environment(t->peer))
		out->peer_environment = json_deep_copy(peer_environment(t->peer));
	more = end(t, &run, &server, &ended);
	result_fill(t, run, server, out);
	if (!ret && more) {
		*err = ended;
		ret = more;
	}
	system_forget(&t->system);
	free(t);
	if (ret && ret != -EOPNOTSUPP && ret != -ECANCELED) {
		error_put(out->run, err);
		return 0;
	}
	return ret;
}

void turn_free(struct turn_result *result)
{
	json_decref(result->run);
	json_decref(result->system);
	json_decref(result->peer_environment);
	*result = (struct turn_result){0};
}
