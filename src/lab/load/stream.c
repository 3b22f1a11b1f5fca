/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "lab/load/stream_client.h"
#include "lab/load/stream_result.h"
#include "lab/load/stream_server.h"
#include "lab/load/stream_socket.h"

enum { SIZE_TCP = 16384, SIZE_UDP = 1472 };

static int sizes_check(struct load_config *config, struct error *err)
{
	bool udp = config->protocol == LOAD_UDP;

	if (!config->sizes) {
		config->sizes = 1;
		config->size[0] = udp ? SIZE_UDP : SIZE_TCP;
	}
	if (config->sizes > LOAD_SIZES_MAX)
		return error_set(err, -EINVAL, "sizes: %u of them: %d at most", config->sizes,
				 LOAD_SIZES_MAX);
	for (unsigned i = 0; i < config->sizes; i++) {
		uint32_t size = config->size[i];

		if (udp && (size < STREAM_DATAGRAM_MIN || size > STREAM_DATAGRAM_MAX))
			return error_set(err, -EINVAL,
					 "sizes: datagrams of %u B: %d to %d are possible", size,
					 STREAM_DATAGRAM_MIN, STREAM_DATAGRAM_MAX);
		if (!size || size > LOAD_SIZE_MAX)
			return error_set(err, -EINVAL,
					 "sizes: messages of %u B: 1 to %d are possible", size,
					 LOAD_SIZE_MAX);
		for (unsigned k = 0; k < i; k++) {
			if (config->size[k] == size)
				return error_set(err, -EINVAL, "sizes: %u is there twice", size);
		}
	}
	return 0;
}

static int stream_check(struct load_config *config, struct error *err)
{
	int ret;

	if (!config->flows)
		config->flows = 1;
	ret = stream_plan_check(config, err);
	if (!ret)
		ret = sizes_check(config, err);
	if (ret)
		return ret;
	if (config->flows > LOAD_FLOWS_MAX)
		return error_set(err, -EINVAL, "flows: %u: at most %d are possible", config->flows,
				 LOAD_FLOWS_MAX);
	if (config->rate < 0)
		return error_set(err, -EINVAL, "rate: %g: not negative", config->rate);
	if (config->protocol == LOAD_TCP && config->rate > 0)
		return error_set(err, -EINVAL,
				 "rate: TCP goes as fast as it can: leave it out, or set protocol "
				 "to udp");
	if (config->rate > 0 && config->arrivals != LOAD_CONSTANT)
		return error_set(err, -EINVAL,
				 "arrivals: a stream's datagrams are sent at constant distances");
	if (config->batch > 1 && config->protocol == LOAD_TCP)
		return error_set(err, -EINVAL, "batch: it is of datagrams: leave it out for TCP");
	if (config->batch > STREAM_BATCH_MAX)
		return error_set(err, -EINVAL, "batch: %u: at most %d are possible", config->batch,
				 STREAM_BATCH_MAX);
	return 0;
}

static int server_start(const struct load_config *config, const struct load_place *place,
			void **server, struct error *err)
{
	return stream_server_start(config, place, (struct stream_server **)server, err);
}

static unsigned server_threads(const void *server, pid_t tids[LOAD_TIDS_MAX])
{
	return stream_server_threads(server, tids);
}

static json_t *server_read(const void *server)
{
	return stream_server_read(server);
}

static void server_stop(void *server, json_t **result)
{
	/* Its counts are final when its threads have ended, which is so when its client has gone.
	 */
	if (result)
		*result = stream_server_read(server);
	stream_server_stop(server);
}

static int client_start(const struct load_config *config, const struct load_place *place,
			void **client, struct error *err)
{
	return stream_client_start(config, place, (struct stream_client **)client, err);
}

static unsigned client_threads(const void *client, pid_t tids[LOAD_TIDS_MAX])
{
	return stream_client_threads(client, tids);
}

static void client_measure(void *client, int64_t duration)
{
	stream_client_measure(client, duration);
}

/* What is received is known here of `down` alone. */
static void client_progress(const void *client, struct load_progress *out)
{
	const struct stream_plan *plan = stream_client_plan(client);
	struct stream_totals t;

	stream_client_totals(client, &t);
	*out = (struct load_progress){0};
	if (plan->protocol == LOAD_UDP) {
		out->done = plan->down ? t.received : t.sent;
		out->unit = plan->down ? "datagrams received" : "datagrams sent";
	} else {
		out->done = (plan->down ? t.bytes_received : t.bytes_sent) / 1000000;
		out->unit = plan->down ? "MB received" : "MB sent";
	}
}

static json_t *result_make(void *client, const json_t *ours, const json_t *theirs, const char *died)
{
	return stream_result(stream_client_plan(client), ours, theirs, died);
}

static int client_stop(void *client, json_t **result, struct error *err)
{
	int ret = result ? stream_client_stop(client, result_make, client, result, err) : 0;

	stream_client_free(client);
	return ret;
}

const struct load_ops load_stream = {
	.name = "stream",
	.check = stream_check,
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
