/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xdp_loop: a bare AF_XDP forwarder, as one writes it first; a peer to measure napier against.
 *
 * Two sockets with a UMEM each. It waits in poll(), takes what arrived, copies each frame into the
 * other socket's UMEM and calls sendto() once for the batch. Every refinement is an option, so
 * that a benchmark can say what each is worth:
 *
 *   --spin          never wait in poll()
 *   --need-wakeup   bind with XDP_USE_NEED_WAKEUP and call the kernel only when it asks
 *   --no-copy       both UMEMs are the same memory: a frame moves by its address
 *   --busy-poll N   SO_PREFER_BUSY_POLL, SO_BUSY_POLL, SO_BUSY_POLL_BUDGET of N; a recvfrom()
 *                   on an empty ring makes the kernel poll the device in this thread
 *   --tx-budget N   XDP_MAX_TX_SKB_BUDGET: frames that one sendto() sends (the kernel's: 32)
 *   --kick N        sendto() as soon as N frames wait, not once per batch
 *   --until-sent    repeat sendto() until the TX ring is empty
 *   --batch N       frames taken at a time (64)
 *   --ring N        descriptors in each ring (2048)
 *   --epoll         the sockets are in an epoll set, though nobody waits there
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_xdp.h>
#include <xdp/xsk.h>

#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#endif
#ifndef SO_BUSY_POLL_BUDGET
#define SO_BUSY_POLL_BUDGET 70
#endif

enum { FRAME_SIZE = 2048, FRAMES = 8192, BATCH_MAX = 512 };

struct options {
	bool spin, need_wakeup, no_copy, until_sent, epoll;
	int busy_poll, tx_budget, kick;
	uint32_t batch, ring;
};

struct side {
	const char *name;
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;
	uint8_t *area;
	uint64_t free[2 * FRAMES]; /* addresses for sending, and for receiving with --no-copy */
	uint32_t frees;
	uint32_t unsent; /* in the TX ring, not yet completed */
	uint32_t unkicked;
	uint64_t received, sent, dropped, kicks, polls;
	uint64_t receive_calls;
};

static struct options options = {.batch = 64, .ring = 2048};
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void die(const char *what, int error)
{
	fprintf(stderr, "xdp_loop: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

static void fill_some(struct side *s, uint64_t *addresses, uint32_t n)
{
	uint32_t at;

	if (xsk_ring_prod__reserve(&s->fill, n, &at) != n)
		die("the fill ring is full", EOVERFLOW);
	for (uint32_t i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&s->fill, at + i) = addresses[i];
	xsk_ring_prod__submit(&s->fill, n);
}

static void socket_option(struct side *s, int level, int name, int value, const char *text)
{
	if (setsockopt(xsk_socket__fd(s->socket), level, name, &value, sizeof(value)))
		die(text, errno);
}

/* Frames [first, first + n) of the area are this side's own. */
static void side_open(struct side *s, uint8_t *area, size_t size, uint64_t first, uint32_t n)
{
	struct xsk_umem_config umem = {
		.fill_size = options.ring,
		.comp_size = options.ring,
		.frame_size = FRAME_SIZE,
	};
	struct xsk_socket_config config = {
		.rx_size = options.ring,
		.tx_size = options.ring,
		.bind_flags = XDP_COPY | (options.need_wakeup ? XDP_USE_NEED_WAKEUP : 0),
	};
	int error;

	s->area = area;
	error = xsk_umem__create(&s->umem, area, size, &s->fill, &s->completion, &umem);
	if (error)
		die("xsk_umem__create", error);
	error = xsk_socket__create(&s->socket, s->name, 0, s->umem, &s->rx, &s->tx, &config);
	if (error)
		die(s->name, error);
	if (options.busy_poll) {
		socket_option(s, SOL_SOCKET, SO_PREFER_BUSY_POLL, 1, "SO_PREFER_BUSY_POLL");
		socket_option(s, SOL_SOCKET, SO_BUSY_POLL, 20, "SO_BUSY_POLL");
		socket_option(s, SOL_SOCKET, SO_BUSY_POLL_BUDGET, options.busy_poll,
			      "SO_BUSY_POLL_BUDGET");
	}
	if (options.tx_budget)
		socket_option(s, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, options.tx_budget,
			      "XDP_MAX_TX_SKB_BUDGET");
	for (uint32_t i = 0; i < n; i++)
		s->free[s->frees++] = (first + i) * FRAME_SIZE;
	s->frees -= options.ring;
	fill_some(s, s->free + s->frees, options.ring);
}

static void both_open(struct side *a, struct side *b)
{
	size_t size = (size_t)FRAMES * FRAME_SIZE * (options.no_copy ? 2 : 1);
	uint8_t *area[2];

	for (int i = 0; i < 2; i++) {
		area[i] = options.no_copy && i
				  ? area[0]
				  : mmap(NULL, size, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (area[i] == MAP_FAILED)
			die("mmap", errno);
	}
	side_open(a, area[0], size, 0, FRAMES);
	side_open(b, area[1], size, options.no_copy ? FRAMES : 0, FRAMES);
}

static void kick(struct side *s)
{
	s->unkicked = 0;
	if (options.need_wakeup && !xsk_ring_prod__needs_wakeup(&s->tx))
		return;
	do {
		s->kicks++;
		if (sendto(xsk_socket__fd(s->socket), NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 &&
		    errno != EAGAIN && errno != EBUSY && errno != ENOBUFS && errno != ENETDOWN)
			die("sendto", errno);
	} while (options.until_sent && !stop && *s->tx.consumer != *s->tx.producer);
}

static void complete(struct side *s)
{
	uint32_t at, n = xsk_ring_cons__peek(&s->completion, options.ring, &at);

	for (uint32_t i = 0; i < n; i++)
		s->free[s->frees++] = *xsk_ring_cons__comp_addr(&s->completion, at + i);
	if (n)
		xsk_ring_cons__release(&s->completion, n);
	s->unsent -= n;
}

/* Queues up to n received frames on `out`; what does not fit is dropped. */
static void pass_on(struct side *in, struct side *out, uint32_t rx_at, uint32_t n)
{
	uint64_t back[BATCH_MAX];
	uint32_t tx_at = 0, sends = n, backs = 0;

	if (!options.no_copy && sends > out->frees)
		sends = out->frees;
	if (sends && xsk_ring_prod__reserve(&out->tx, sends, &tx_at) != sends)
		sends = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc *rx = xsk_ring_cons__rx_desc(&in->rx, rx_at + i);
		struct xdp_desc *tx;

		if (i >= sends) {
			back[backs++] = rx->addr;
			continue;
		}
		tx = xsk_ring_prod__tx_desc(&out->tx, tx_at + i);
		if (options.no_copy) {
			*tx = *rx;
			/* What `out` has sent before comes back to be filled again. */
			continue;
		}
		tx->addr = out->free[--out->frees];
		tx->len = rx->len;
		tx->options = 0;
		memcpy(out->area + tx->addr, in->area + rx->addr, rx->len);
		back[backs++] = rx->addr;
	}
	if (sends)
		xsk_ring_prod__submit(&out->tx, sends);
	out->unsent += sends;
	out->unkicked += sends;
	out->sent += sends;
	in->dropped += n - sends;
	if (options.no_copy) { /* refill() may have taken all room in the fill ring */
		memcpy(out->free + out->frees, back, backs * sizeof(*back));
		out->frees += backs;
		return;
	}
	fill_some(in, back, backs);
}

/* With --no-copy frames wander from one side to the other: completed ones fill where it lacks. */
static void refill(struct side *in, struct side *out)
{
	uint32_t n = xsk_prod_nb_free(&in->fill, options.ring);

	if (n > out->frees)
		n = out->frees;
	if (n) {
		out->frees -= n;
		fill_some(in, out->free + out->frees, n);
	}
}

static bool forward(struct side *in, struct side *out)
{
	uint32_t at, n;

	if (out->unsent)
		complete(out);
	if (options.no_copy)
		refill(in, out);
	n = xsk_ring_cons__peek(&in->rx, options.batch, &at);
	if (!n) {
		if (options.busy_poll ||
		    (options.need_wakeup && xsk_ring_prod__needs_wakeup(&in->fill))) {
			in->receive_calls++;
			recvfrom(xsk_socket__fd(in->socket), NULL, 0, MSG_DONTWAIT, NULL, NULL);
		}
		/* Frames beyond the kernel's limit per call are still in the ring. */
		if (out->unsent)
			kick(out);
		return false;
	}
	in->received += n;
	if (options.kick) {
		for (uint32_t done = 0; done < n;) {
			uint32_t part = n - done < (uint32_t)options.kick ? n - done
									  : (uint32_t)options.kick;

			pass_on(in, out, at + done, part);
			done += part;
			kick(out);
		}
	} else {
		pass_on(in, out, at, n);
		kick(out);
	}
	xsk_ring_cons__release(&in->rx, n);
	return true;
}

/* As an event loop has them: the kernel now tells the set of every frame that it has sent. */
static void epoll_add(struct side *a, struct side *b)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, xsk_socket__fd(a->socket), &event) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, xsk_socket__fd(b->socket), &event))
		die("epoll", errno);
}

static void run(struct side *a, struct side *b)
{
	struct pollfd fds[2] = {
		{.fd = xsk_socket__fd(a->socket), .events = POLLIN},
		{.fd = xsk_socket__fd(b->socket), .events = POLLIN},
	};

	while (!stop) {
		bool any = forward(a, b);

		any |= forward(b, a);
		if (!any && !options.spin) {
			a->polls++;
			poll(fds, 2, 100);
		}
	}
}

static void report(const struct side *s)
{
	fprintf(stderr, "%s: received %lu sent %lu dropped %lu sendto %lu recvfrom %lu poll %lu\n",
		s->name, s->received, s->sent, s->dropped, s->kicks, s->receive_calls, s->polls);
}

static int number(const char *text, int max)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || end == text || n < 1 || n > max) {
		fprintf(stderr, "xdp_loop: %s: a number from 1 to %d is needed\n", text, max);
		exit(2);
	}
	return (int)n;
}

static void netns_enter(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(path, errno);
	close(fd);
}

static void options_parse(int argc, char **argv)
{
	static const struct option known[] = {
		{"netns", required_argument, 0, 'n'},	  {"spin", no_argument, 0, 's'},
		{"need-wakeup", no_argument, 0, 'w'},	  {"no-copy", no_argument, 0, 'z'},
		{"busy-poll", required_argument, 0, 'b'}, {"tx-budget", required_argument, 0, 't'},
		{"kick", required_argument, 0, 'k'},	  {"until-sent", no_argument, 0, 'u'},
		{"batch", required_argument, 0, 'B'},	  {"ring", required_argument, 0, 'r'},
		{"epoll", no_argument, 0, 'e'},		  {0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 'n':
			netns_enter(optarg);
			break;
		case 's':
			options.spin = true;
			break;
		case 'w':
			options.need_wakeup = true;
			break;
		case 'z':
			options.no_copy = true;
			break;
		case 'u':
			options.until_sent = true;
			break;
		case 'e':
			options.epoll = true;
			break;
		case 'b':
			options.busy_poll = number(optarg, 1024);
			break;
		case 't':
			options.tx_budget = number(optarg, 4096);
			break;
		case 'k':
			options.kick = number(optarg, BATCH_MAX);
			break;
		case 'B':
			options.batch = (uint32_t)number(optarg, BATCH_MAX);
			break;
		case 'r':
			options.ring = (uint32_t)number(optarg, FRAMES / 2);
			break;
		default:
			exit(2);
		}
	}
	if (argc - optind != 2) {
		fprintf(stderr, "usage: xdp_loop [--netns PATH] [option…] INTERFACE INTERFACE\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct side a, b;
	struct sigaction action = {.sa_handler = on_signal};
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	options_parse(argc, argv);
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	a.name = argv[optind];
	b.name = argv[optind + 1];
	both_open(&a, &b);
	if (options.epoll)
		epoll_add(&a, &b);
	printf("ready\n");
	fflush(stdout);
	run(&a, &b);
	report(&a);
	report(&b);
	xsk_socket__delete(a.socket);
	xsk_socket__delete(b.socket);
	xsk_umem__delete(a.umem);
	xsk_umem__delete(b.umem);
	return 0;
}
