/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <string.h>

#include "lab/clock.h"
#include "lab/rr_common.h"

int rr_config_check(const struct rr_config *config, struct error *err)
{
	if (config->request_size < 1 || config->request_size > RR_SIZE_MAX ||
	    config->response_size < 1 || config->response_size > RR_SIZE_MAX)
		return error_set(err, -EINVAL, "sizes of %u B and %u B: 1 to %d are possible",
				 config->request_size, config->response_size, RR_SIZE_MAX);
	if (config->threads < 1 || config->threads > RR_THREADS_MAX)
		return error_set(err, -EINVAL, "%u threads: 1 to %d are possible", config->threads,
				 RR_THREADS_MAX);
	if (config->flows > RR_FLOWS_MAX)
		return error_set(err, -EINVAL, "%u flows: at most %d are possible", config->flows,
				 RR_FLOWS_MAX);
	return 0;
}

int rr_address(const struct rr_config *config, struct sockaddr_storage *out, socklen_t *length,
	       struct error *err)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, config->address, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(config->port);
		*length = sizeof(*in);
		return 0;
	}
	if (inet_pton(AF_INET6, config->address, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(config->port);
		*length = sizeof(*in6);
		return 0;
	}
	return error_set(err, -EINVAL, "%s: not an IPv4 or IPv6 address", config->address);
}

struct rr_hello rr_hello(const struct rr_config *config, enum rr_status status)
{
	return (struct rr_hello){
		.magic = htonl(RR_MAGIC),
		.version = htons(RR_VERSION),
		.status = htons((uint16_t)status),
		.request_size = htonl(config->request_size),
		.response_size = htonl(config->response_size),
	};
}

int rr_thread_start(const struct rr_config *config, const char *name, pthread_t *thread,
		    void *(*run)(void *), void *arg, struct error *err)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int ret;

	pthread_attr_init(&attr);
	if (!cpuset_empty(&config->cpus)) {
		CPU_ZERO(&cpus);
		for (unsigned cpu = cpuset_next(&config->cpus, 0); cpu < CPU_MAX;
		     cpu = cpuset_next(&config->cpus, cpu + 1))
			CPU_SET(cpu, &cpus);
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	ret = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	if (ret)
		return error_set(err, -ret, "starting the thread %s: %s", name, strerror(ret));
	pthread_setname_np(*thread, name);
	return 0;
}

int rr_thread_enter(const struct rr_config *config)
{
	if (config->netns >= 0 && setns(config->netns, CLONE_NEWNET))
		return -errno;
	return 0;
}

int64_t rr_thread_cpu(pthread_t thread)
{
	clockid_t clock;

	return pthread_getcpuclockid(thread, &clock) ? 0 : clock_read(clock);
}

uint32_t rr_retransmits(int fd)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return 0;
	return info.tcpi_total_retrans;
}
