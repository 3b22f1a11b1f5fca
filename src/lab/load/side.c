/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "lab/load/side.h"

/* As in linux/eventpoll.h since 6.9, for the headers before that. */
struct side_epoll_params {
	uint32_t busy_poll_usecs;
	uint16_t busy_poll_budget;
	uint8_t prefer_busy_poll;
	uint8_t pad;
};
#define SIDE_EPIOCSPARAMS _IOW(0x8A, 0x01, struct side_epoll_params)

enum { FILES_ELSE = 256 };   /* descriptors for all other purposes */
enum { BUDGET_DEFAULT = 8 }; /* the kernel's own */

int side_address(const struct load_place *place, unsigned above, struct sockaddr_storage *out,
		 socklen_t *length, struct error *err)
{
	const char *address = place->address[0] ? place->address : "0.0.0.0";
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	uint16_t port = htons((uint16_t)(place->port + above));

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = port;
		*length = sizeof(*in);
		return 0;
	}
	if (inet_pton(AF_INET6, address, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = port;
		*length = sizeof(*in6);
		return 0;
	}
	return error_set(err, -EINVAL, "%s: not an IPv4 or IPv6 address", address);
}

static unsigned cpu_of(const struct cpuset *cpus, unsigned i)
{
	unsigned cpu = cpuset_next(cpus, 0);

	for (i %= cpuset_count(cpus); i; i--)
		cpu = cpuset_next(cpus, cpu + 1);
	return cpu;
}

int side_thread_start(const struct load_place *place, unsigned i, const char *name,
		      pthread_t *thread, void *(*run)(void *), void *arg, struct error *err)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int ret;

	pthread_attr_init(&attr);
	if (!cpuset_empty(&place->cpus)) {
		CPU_ZERO(&cpus);
		CPU_SET(cpu_of(&place->cpus, i), &cpus);
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	ret = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	if (ret == EINVAL && !cpuset_empty(&place->cpus))
		return error_set(err, -ret, "the thread %s cannot run on CPU %u: it is not there",
				 name, cpu_of(&place->cpus, i));
	if (ret)
		return error_set(err, -ret, "starting the thread %s: %s", name, strerror(ret));
	pthread_setname_np(*thread, name);
	return 0;
}

int side_thread_enter(const struct load_place *place)
{
	if (place->netns >= 0 && setns(place->netns, CLONE_NEWNET))
		return -errno;
	return 0;
}

static int option_set(int fd, int option, int value)
{
	return setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value)) ? -errno : 0;
}

int side_socket_busy_poll(int fd, const struct load_config *config)
{
	int ret = 0;

	if (config->prefer_busy_poll)
		ret = option_set(fd, SO_PREFER_BUSY_POLL, 1);
	if (!ret && config->busy_poll_usecs)
		ret = option_set(fd, SO_BUSY_POLL, (int)config->busy_poll_usecs);
	if (!ret && config->busy_poll_budget)
		ret = option_set(fd, SO_BUSY_POLL_BUDGET, (int)config->busy_poll_budget);
	return ret;
}

int side_epoll_busy_poll(int epoll, const struct load_config *config)
{
	struct side_epoll_params params = {
		.busy_poll_usecs = config->busy_poll_usecs,
		.busy_poll_budget = (uint16_t)(config->busy_poll_budget ? config->busy_poll_budget
									: BUDGET_DEFAULT),
		.prefer_busy_poll = config->prefer_busy_poll,
	};

	if (!config->busy_poll_usecs && !config->prefer_busy_poll)
		return 0;
	if (!ioctl(epoll, SIDE_EPIOCSPARAMS, &params) || errno == ENOTTY || errno == EINVAL)
		return 0;
	return -errno;
}

int side_files_want(unsigned n, struct error *err)
{
	struct rlimit limit;
	rlim_t want;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return error_set(err, -errno, "the limit of open files: %s", strerror(errno));
	/* Both sides may be in one process. */
	want = 2 * (rlim_t)n + FILES_ELSE;
	if (limit.rlim_cur >= want)
		return 0;
	limit.rlim_cur = want;
	if (limit.rlim_max < want || setrlimit(RLIMIT_NOFILE, &limit))
		return error_set(
			err, -EMFILE,
			"%u flows need %ju open files, and this process may have %ju: ulimit "
			"-Hn %ju, or fewer flows",
			n, (uintmax_t)want, (uintmax_t)limit.rlim_max, (uintmax_t)want);
	return 0;
}

uint32_t side_retransmits(int fd)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return 0;
	return info.tcpi_total_retrans;
}
