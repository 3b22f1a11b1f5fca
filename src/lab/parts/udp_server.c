/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/parts/udp_serve.h"

#define PATIENCE (10 * NSEC_PER_SEC)

static void *serve(void *arg)
{
	struct udp_server *server = arg;
	int ret;

	server->tid = (pid_t)syscall(SYS_gettid);
	ret = server->engine ? udp_engine_serve(server) : udp_kernel_serve(server);
	if (ret)
		server->state = ret;
	return NULL;
}

static int thread_start(struct udp_server *server, struct error *err)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int ret;

	CPU_ZERO(&cpus);
	CPU_SET(server->config.cpu, &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	ret = pthread_create(&server->thread, &attr, serve, server);
	pthread_attr_destroy(&attr);
	if (ret)
		return error_set(err, -ret, "starting a thread: %s", strerror(ret));
	server->started = true;
	pthread_setname_np(server->thread, "udp-server");
	return 0;
}

static int ready_await(struct udp_server *server, struct error *err)
{
	int64_t deadline = clock_now() + PATIENCE;

	while (!server->state && clock_now() < deadline)
		clock_sleep(NSEC_PER_MSEC);
	if (server->state > 0)
		return 0;
	if (!server->state)
		return error_set(err, -ETIMEDOUT, "a UDP server has not started after %d s",
				 (int)(PATIENCE / NSEC_PER_SEC));
	*err = server->err;
	return server->state;
}

int udp_server_start(const struct udp_server_config *config, struct udp_server **out,
		     struct error *err)
{
	struct udp_server *server = calloc(1, sizeof(*server));
	int ret = 0;

	if (!server)
		return error_set(err, -ENOMEM, "no memory");
	server->config = *config;
	if (config->kind == UDP_ENGINE)
		ret = udp_engine_open(server, err);
	if (!ret)
		ret = thread_start(server, err);
	if (!ret)
		ret = ready_await(server, err);
	if (ret)
		udp_server_stop(server, NULL);
	else
		*out = server;
	return ret;
}

void udp_server_read(const struct udp_server *server, struct udp_server_counts *out)
{
	*out = (struct udp_server_counts){.datagrams = server->count};
	if (server->engine)
		udp_engine_counts(server, out);
}

pid_t udp_server_thread(const struct udp_server *server)
{
	return server->tid;
}

int udp_server_stop(struct udp_server *server, struct error *err)
{
	int ret = 0;

	server->stop = true;
	if (server->started)
		pthread_join(server->thread, NULL);
	if (server->engine)
		ret = udp_engine_close(server, err);
	free(server);
	return ret;
}
