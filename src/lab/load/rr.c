/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "lab/load/rr.h"

#include <napier/machine.h>

static int size_check(const struct load_config *config, const char *key, uint32_t *size,
		      struct error *err)
{
	uint32_t most = config->protocol == LOAD_UDP ? RR_UDP_SIZE_MAX : LOAD_SIZE_MAX;

	if (!*size)
		*size = 1;
	if (*size > most)
		return error_set(err, -EINVAL, "%s of %u B: at most %u are possible over %s", key,
				 *size, most, config->protocol == LOAD_UDP ? "UDP" : "TCP");
	return 0;
}

static int number_check(const char *key, unsigned *number, unsigned most, struct error *err)
{
	if (!*number)
		*number = 1;
	if (*number > most)
		return error_set(err, -EINVAL, "%s = %u: at most %u are possible", key, *number,
				 most);
	return 0;
}

static int time_check(const char *key, int64_t time, struct error *err)
{
	return time < 0 ? error_set(err, -EINVAL, "%s is negative", key) : 0;
}

static int open_loop_check(struct load_config *config, struct error *err)
{
	if (!(config->rate >= 0) || config->rate > 1e9)
		return error_set(err, -EINVAL, "rate = %g: 0 (closed loop) to 1e9 requests/s",
				 config->rate);
	if (config->rate == 0 && config->outstanding)
		return error_set(err, -EINVAL,
				 "outstanding is of the open loop: give a rate, or leave it out");
	if (config->rate == 0 && config->arrivals == LOAD_POISSON)
		return error_set(err, -EINVAL,
				 "poisson arrivals are of the open loop: give a rate, or leave "
				 "them out");
	if (config->outstanding > LOAD_OUTSTANDING_MAX)
		return error_set(err, -EINVAL, "outstanding = %u: at most %d are possible",
				 config->outstanding, LOAD_OUTSTANDING_MAX);
	if (config->rate > 0 && !config->outstanding)
		config->outstanding = LOAD_OUTSTANDING_MAX;
	if (config->rate > 0 && config->outstanding < config->threads)
		return error_set(err, -EINVAL,
				 "outstanding = %u is less than one for each of %u "
				 "threads",
				 config->outstanding, config->threads);
	return 0;
}

static int server_check(const struct load_config *config, struct error *err)
{
	int ret = time_check("work", config->work, err);

	if (!ret)
		ret = time_check("stall", config->stall, err);
	if (!ret)
		ret = time_check("stall_every", config->stall_every, err);
	if (!ret && config->stall && config->stall >= config->stall_every)
		ret = error_set(err, -EINVAL, "stall has to be less than stall_every");
	if (!ret && config->work >= NSEC_PER_SEC)
		ret = error_set(err, -EINVAL, "work of a second or more for a request");
	return ret;
}

int rr_check(struct load_config *config, struct error *err)
{
	int ret = size_check(config, "request_size", &config->request_size, err);

	if (!ret)
		ret = size_check(config, "response_size", &config->response_size, err);
	if (!ret)
		ret = number_check("flows", &config->flows, LOAD_FLOWS_MAX, err);
	if (!ret)
		ret = number_check("threads", &config->threads, LOAD_THREADS_MAX, err);
	if (!ret && config->flows < config->threads)
		ret = error_set(err, -EINVAL, "threads = %u for flows = %u: each thread needs one",
				config->threads, config->flows);
	if (!ret && !config->server_threads)
		config->server_threads = config->threads;
	if (!ret)
		ret = number_check("server_threads", &config->server_threads, LOAD_THREADS_MAX,
				   err);
	if (!ret)
		ret = time_check("timeout", config->timeout, err);
	if (!ret)
		ret = time_check("interval", config->interval, err);
	if (!config->timeout)
		config->timeout = NSEC_PER_SEC;
	if (!config->interval)
		config->interval = 100 * NSEC_PER_MSEC;
	if (!ret && config->connect && config->protocol != LOAD_TCP)
		ret = error_set(err, -EINVAL, "connect is of TCP: UDP has no connections");
	if (!ret)
		ret = open_loop_check(config, err);
	return ret ? ret : server_check(config, err);
}

const struct load_ops load_rr = {
	.name = "rr",
	.check = rr_check,
	.server_start = rr_server_start,
	.server_threads = rr_server_threads,
	.server_read = rr_server_read,
	.server_stop = rr_server_stop,
	.client_start = rr_client_start,
	.client_threads = rr_client_threads,
	.client_measure = rr_client_measure,
	.client_progress = rr_client_progress,
	.client_stop = rr_client_stop,
};
