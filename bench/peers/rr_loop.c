/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rr_loop: request and response over TCP as one writes it first, for bench/rr.c to measure itself
 * against: one thread a side, level-triggered epoll, one read and one write an event, one byte each
 * way. It measures no latency, loses no count to time-outs, and checks nothing.
 *
 *	rr_loop server PORT
 *	rr_loop client PORT FLOWS SECONDS	prints transactions a second
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 128 };

static void watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll");
}

static void serve(const struct sockaddr_in *at)
{
	int one = 1, epoll = epoll_create1(0), listener = socket(AF_INET, SOCK_STREAM, 0);
	struct epoll_event events[EVENTS];
	char byte;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (const void *)at, sizeof(*at)) || listen(listener, 4096))
		err(1, "listening");
	watch(epoll, listener);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == listener)
				watch(epoll, accept(listener, NULL, NULL));
			else if (read(fd, &byte, 1) != 1 || write(fd, &byte, 1) != 1)
				close(fd);
		}
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void load(const struct sockaddr_in *at, int flows, double seconds)
{
	struct epoll_event events[EVENTS];
	int epoll = epoll_create1(0), *fd = calloc((size_t)flows, sizeof(*fd));
	double start, warm, end;
	unsigned long count = 0, from = 0;
	char byte = 0;

	for (int i = 0; i < flows; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (fd[i] < 0 || connect(fd[i], (const void *)at, sizeof(*at)))
			err(1, "connecting");
		watch(epoll, fd[i]);
	}
	for (int i = 0; i < flows; i++) {
		if (write(fd[i], &byte, 1) != 1)
			err(1, "writing");
	}
	warm = now() + 0.2;
	start = 0;
	end = warm + seconds;
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);
		double t = now();

		for (int i = 0; i < n; i++) {
			if (read(events[i].data.fd, &byte, 1) != 1 ||
			    write(events[i].data.fd, &byte, 1) != 1)
				err(1, "the server");
			count++;
		}
		if (!start && t >= warm) {
			start = t;
			from = count;
		}
		if (t >= end)
			break;
	}
	printf("%.0f\n", (double)(count - from) / (now() - start));
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rlimit files;

	if (argc < 3)
		errx(1, "usage: rr_loop server PORT | rr_loop client PORT FLOWS SECONDS");
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	at.sin_port = htons((uint16_t)atoi(argv[2]));
	if (!strcmp(argv[1], "server"))
		serve(&at);
	else if (argc == 5)
		load(&at, atoi(argv[3]), atof(argv[4]));
}
