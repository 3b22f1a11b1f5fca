/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <napier/napier.h>

#include <lab/clock.h>
#include <lab/ends.h>
#include <lab/load/peer.h>
#include <lab/measure/environment.h>
#include <lab/measure/usage.h>

#include <cmd/bench.h>
#include <cmd/bench_load.h>

enum { LOOK_MS = 200 };

/* The traffic's; what clients ask by is the one before. */
enum { PORT_OFFSET = 1 };

static volatile sig_atomic_t stop; /* the signal */

struct run {
	const struct load_asked *asked;
	struct ends ends;
	bool ends_open;
	struct peer *peer;
	struct load_place client_place, server_place;
	struct peer_started started;
	void *client;
	struct usage *usage;
	json_t *result, *server, *cpu;
};

static void on_signal(int number)
{
	stop = number;
}

/*
 * The lab's own handlers come first, and then these. A second signal ends the program at once; one
 * that is ignored (nohup) stays so.
 */
static void signals_take(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, was;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (!sigaction(numbers[i], NULL, &was) && was.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

/* Two namespaces with a cable; the server in the near one. */
static int here_open(struct run *run, struct error *err)
{
	char napier[4096];
	ssize_t n = readlink("/proc/self/exe", napier, sizeof(napier) - 1);
	struct error why;
	int ret = n < 0 ? error_set(err, -errno, "/proc/self/exe: %s", strerror(errno))
			: ends_open(BENCH_RUNDIR, &run->ends, &why);

	if (n < 0)
		return ret;
	if (ret && geteuid())
		return error_set(err, ret, "%s; or give -H HOST, where napier bench server runs",
				 why.text);
	if (ret)
		return error_set(err, ret, "%s", why.text);
	napier[n] = '\0';
	run->ends_open = true;
	run->client_place.netns = ends_far_fd(&run->ends);
	snprintf(run->client_place.address, sizeof(run->client_place.address), ENDS_NEAR);
	return peer_open_child(napier, ends_near_fd(&run->ends), &run->asked->server_cpus,
			       &run->peer, err);
}

static int there_open(struct run *run, struct error *err)
{
	int ret = peer_open_host(run->asked->host, run->asked->port, &run->peer, err);

	if (!ret)
		snprintf(run->client_place.address, sizeof(run->client_place.address), "%s",
			 peer_address(run->peer));
	return ret;
}

/* Of what the client ran into the server's end says more, if that is why. */
static int server_told(struct run *run, int ret, struct error *err)
{
	struct error why;
	int ended = ret ? peer_check(run->peer, &why) : 0;

	if (!ended)
		return ret;
	*err = why;
	return ended;
}

static int sides_start(struct run *run, struct error *err)
{
	int ret = run->asked->host ? there_open(run, err) : here_open(run, err);

	if (ret)
		return ret;
	run->client_place.port = (uint16_t)(run->asked->port + PORT_OFFSET);
	run->server_place = run->client_place;
	run->client_place.cpus = run->asked->client_cpus;
	run->server_place.cpus = run->asked->server_cpus;
	ret = peer_start(run->peer, &run->asked->config, &run->server_place,
			 run->asked->warm + run->asked->length, &run->started, err);
	if (!ret)
		ret = server_told(run,
				  run->asked->ops->client_start(&run->asked->config,
								&run->client_place, &run->client,
								err),
				  err);
	return ret;
}

static void party_fill(struct usage_party *party, const char *name, const pid_t *tids, unsigned n)
{
	snprintf(party->name, sizeof(party->name), "%s", name);
	party->tids = n < USAGE_TIDS_MAX ? n : USAGE_TIDS_MAX;
	for (unsigned i = 0; i < party->tids; i++)
		party->tid[i] = tids[i];
}

static int usage_start(struct run *run, struct error *err)
{
	static struct usage_config config; /* large, and one at a time */
	pid_t tids[LOAD_TIDS_MAX];

	config = (struct usage_config){.parties = 1};
	party_fill(&config.party[0], "client", tids,
		   run->asked->ops->client_threads(run->client, tids));
	if (!run->asked->host) {
		party_fill(&config.party[config.parties++], "server", NULL, 0);
		config.party[1].pid = peer_pid(run->peer);
		snprintf(config.interface[0], sizeof(config.interface[0]), "%s", run->ends.near);
		snprintf(config.interface[1], sizeof(config.interface[1]), "%s", run->ends.far);
		config.interfaces = 2;
	}
	return usage_open(&config, &run->usage, err);
}

static void progress_show(struct run *run, const char *phase, int64_t left,
			  const struct load_progress *last, const struct load_progress *now,
			  int64_t span)
{
	double rate = span > 0 ? (double)(now->done - last->done) * 1e9 / (double)span : 0;

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s: %.0f %s/s, %ju lost, %.1f s left", phase, rate,
		now->unit ? now->unit : run->asked->ops->name, (uintmax_t)now->lost,
		left > 0 ? (double)left / 1e9 : 0.0);
	fflush(stderr);
}

/* Until then, or a signal, or the server's end. */
static int await(struct run *run, const char *phase, int64_t deadline, struct error *err)
{
	struct load_progress last = {0}, now = {0};
	int64_t at = clock_now(), then;
	int ret = 0;

	run->asked->ops->client_progress(run->client, &last);
	while (!ret && !stop && (then = clock_now()) < deadline) {
		int64_t left = deadline - then;

		usleep((useconds_t)(left < LOOK_MS * NSEC_PER_MSEC ? left / 1000 + 1
								   : LOOK_MS * 1000));
		run->asked->ops->client_progress(run->client, &now);
		then = clock_now();
		/* Counts begin anew with the measured part. */
		if (now.done >= last.done)
			progress_show(run, phase, deadline - then, &last, &now, then - at);
		last = now;
		at = then;
		ret = peer_check(run->peer, err);
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return ret;
}

/* On another host it begins with a reading, which is thrown away. */
static int peer_usage_begin(struct run *run, struct error *err)
{
	json_t *before = NULL;
	int ret = run->asked->host ? peer_read(run->peer, &before, err) : 0;

	json_decref(before);
	return ret;
}

static int measure(struct run *run, struct error *err)
{
	int ret = await(run, "warm-up", clock_now() + run->asked->warm, err);

	if (!ret)
		ret = usage_start(run, err);
	if (!ret)
		ret = peer_usage_begin(run, err);
	if (ret)
		return ret;
	usage_begin(run->usage);
	run->asked->ops->client_measure(run->client, run->asked->length);
	ret = await(run, "measures", clock_now() + run->asked->length, err);
	usage_stop(run->usage);
	return ret;
}

/* What turned out first is what is told. */
static void run_end(struct run *run, int *ret, struct error *err)
{
	struct error why;
	int more = 0;

	if (run->client)
		more = run->asked->ops->client_stop(run->client, &run->result, &why);
	if (!*ret && more) {
		*ret = server_told(run, more, &why);
		*err = why;
	}
	if (run->usage) {
		run->cpu = usage_end(run->usage, 0);
		usage_close(run->usage);
	}
	if (run->started.threads && (!*ret || run->result))
		more = peer_stop(run->peer, &run->server, *ret ? &why : err);
	*ret = *ret ? *ret : more;
}

static void run_close(struct run *run)
{
	if (run->peer)
		peer_close(run->peer);
	if (run->ends_open)
		ends_close(&run->ends);
	json_decref(run->result);
	json_decref(run->server);
	json_decref(run->cpu);
}

/* Moves the server's figures into the run. */
static void result_complete(struct run *run, const char *error)
{
	json_t *cpu = json_object_get(run->server, "cpu");
	double operations =
		load_operations(&run->asked->config, json_object_get(run->result, "counts"));

	if (error) {
		json_object_set_new(run->result, "valid", json_false());
		json_object_set_new(run->result, "invalid", json_string(error));
	}
	usage_operations(run->cpu, operations);
	json_object_set(run->result, "cpu", run->cpu ? run->cpu : json_null());
	if (cpu) {
		usage_operations(cpu, operations);
		json_object_set(run->result, "peer_cpu", cpu);
		json_object_del(run->server, "cpu");
	}
	json_object_set(run->result, "server", run->server ? run->server : json_null());
	json_object_set_new(run->result, "partial", json_boolean(stop));
}

static int json_show(struct run *run)
{
	json_t *o = json_pack("{s:s, s:s, s:o, s:o, s:O?, s:O}", "napier", napier_version(), "kind",
			      run->asked->ops->name, "parameters",
			      load_config_json(&run->asked->config), "environment",
			      environment_read(), "peer_environment",
			      run->peer ? peer_environment(run->peer) : NULL, "run", run->result);
	int rc = json_put(o, JSON_INDENT(2));

	json_decref(o);
	return rc;
}

static int result_show(struct run *run)
{
	const char *invalid = json_string_value(json_object_get(run->result, "invalid"));
	int rc = DONE;

	if (run->asked->format == LOAD_JSON)
		rc = json_show(run);
	else if (run->asked->format == LOAD_KEYS)
		load_keys(run->result, &run->asked->config, &run->asked->percentiles, stdout);
	else
		load_table(run->result, &run->asked->config, &run->asked->percentiles, stdout);
	fflush(stdout);
	if (stop)
		return STOPPED + stop;
	if (rc == DONE && !json_is_true(json_object_get(run->result, "valid")))
		rc = complain("bench %s: the run is not valid: %s", run->asked->command,
			      invalid ? invalid : "it says not why");
	return rc;
}

int load_go(const struct load_asked *asked)
{
	static struct run run_made; /* large */
	struct run *run = &run_made;
	struct error err = {0};
	int ret, rc;

	*run = (struct run){.asked = asked, .client_place.netns = -1};
	signals_take();
	ret = sides_start(run, &err);
	if (!ret)
		ret = measure(run, &err);
	run_end(run, &ret, &err);
	if (run->result) {
		result_complete(run, ret ? err.text : NULL);
		rc = result_show(run);
	} else {
		rc = stop ? STOPPED + stop
			  : complain("bench %s: %s", run->asked->command, err.text);
	}
	run_close(run);
	return rc;
}
