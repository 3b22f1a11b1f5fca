/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "lab/load/rrul_echo.h"
#include "lab/load/rrul_probe.h"
#include "lab/load/rrul_result.h"
#include "lab/load/stream_client.h"
#include "lab/load/stream_server.h"

enum { TCP_FLOWS = STREAM_CLASSES, PROBE_RATE = 5, PROBE_RATE_MAX = 10000, SIZE = 16384 };

static int rrul_check(struct load_config *config, struct error *err)
{
	int ret;

	if (!config->tcp_flows)
		config->tcp_flows = TCP_FLOWS;
	if (config->tcp_flows > STREAM_TCP_FLOWS_MAX)
		return error_set(err, -EINVAL, "tcp_flows: %u: at most %d are possible",
				 config->tcp_flows, STREAM_TCP_FLOWS_MAX);
	ret = stream_plan_check(config, err);
	if (ret)
		return ret;
	if (config->probe_rate == 0)
		config->probe_rate = PROBE_RATE;
	if (!(config->probe_rate > 0 && config->probe_rate <= PROBE_RATE_MAX))
		return error_set(err, -EINVAL,
				 "probe_rate: %g: above 0, and at most %d, are possible",
				 config->probe_rate, PROBE_RATE_MAX);
	if (config->idle < 0)
		return error_set(err, -EINVAL, "idle: not negative");
	if (!config->sizes) {
		config->sizes = 1;
		config->size[0] = SIZE;
	}
	if (config->sizes > 1 || !config->size[0] || config->size[0] > LOAD_SIZE_MAX)
		return error_set(err, -EINVAL, "sizes: one, of 1 to %d B, of TCP's messages",
				 LOAD_SIZE_MAX);
	return 0;
}

/* ---- server ---- */

struct server {
	struct stream_server *stream;
	struct rrul_echo *echo;
};

static json_t *server_read(const void *server)
{
	const struct server *s = server;
	json_t *o = stream_server_read(s->stream);

	json_object_set_new(json_object_get(o, "counts"), "probes",
			    json_integer((json_int_t)rrul_echo_probes(s->echo)));
	return o;
}

static void server_stop(void *server, json_t **result)
{
	struct server *s = server;

	if (result)
		*result = server_read(s);
	if (s->stream)
		stream_server_stop(s->stream);
	if (s->echo)
		rrul_echo_stop(s->echo);
	free(s);
}

static int server_start(const struct load_config *config, const struct load_place *place,
			void **server, struct error *err)
{
	struct server *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return error_set(err, -ENOMEM, "no memory for a server");
	ret = stream_server_start(config, place, &s->stream, err);
	if (!ret)
		ret = rrul_echo_start(config, place, &s->echo, err);
	if (ret)
		server_stop(s, NULL);
	else
		*server = s;
	return ret;
}

static unsigned server_threads(const void *server, pid_t tids[LOAD_TIDS_MAX])
{
	const struct server *s = server;
	unsigned n = stream_server_threads(s->stream, tids);

	if (n < LOAD_TIDS_MAX)
		tids[n++] = rrul_echo_thread(s->echo);
	return n;
}

/* ---- client ---- */

struct client {
	struct stream_client *stream;
	struct rrul_probe *probe;
};

static void client_free(struct client *c)
{
	if (c->probe)
		rrul_probe_free(c->probe);
	if (c->stream)
		stream_client_free(c->stream);
	free(c);
}

static int client_start(const struct load_config *config, const struct load_place *place,
			void **client, struct error *err)
{
	struct client *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return error_set(err, -ENOMEM, "no memory for a client");
	ret = stream_client_start(config, place, &c->stream, err);
	if (!ret)
		ret = rrul_probe_start(config, place, &c->probe, err);
	if (ret)
		client_free(c);
	else
		*client = c;
	return ret;
}

static unsigned client_threads(const void *client, pid_t tids[LOAD_TIDS_MAX])
{
	const struct client *c = client;
	unsigned n = stream_client_threads(c->stream, tids);

	if (n < LOAD_TIDS_MAX)
		tids[n++] = rrul_probe_thread(c->probe);
	return n;
}

static void client_measure(void *client, int64_t duration)
{
	struct client *c = client;
	int64_t end[LOAD_SIZES_MAX], start;

	stream_plan_ends(stream_client_plan(c->stream), duration, end);
	rrul_probe_starting(c->probe);
	start = stream_client_measure(c->stream, duration);
	rrul_probe_measure(c->probe, start, end);
}

static void client_progress(const void *client, struct load_progress *out)
{
	const struct client *c = client;

	*out = (struct load_progress){.unit = "probes"};
	rrul_probe_progress(c->probe, &out->done, &out->lost);
}

static json_t *result_make(void *client, const json_t *ours, const json_t *theirs, const char *died)
{
	struct client *c = client;

	rrul_probe_join(c->probe);
	return rrul_result(stream_client_plan(c->stream), c->probe, ours, theirs, died);
}

static int client_stop(void *client, json_t **result, struct error *err)
{
	struct client *c = client;
	int ret = 0;

	if (result) {
		stream_client_await(c->stream);
		rrul_probe_end(c->probe);
		ret = stream_client_stop(c->stream, result_make, c, result, err);
	}
	client_free(c);
	return ret;
}

const struct load_ops load_rrul = {
	.name = "rrul",
	.check = rrul_check,
	.server_start = server_start,
	.server_threads = server_threads,
	.server_read = server_read,
	.server_stop = server_stop,
	.client_start = client_start,
	.client_threads = client_threads,
	.client_measure = client_measure,
	.client_progress = client_progress,
	.client_stop = client_stop,
};
