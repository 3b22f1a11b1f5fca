/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engine sockets against the kernel's over veth:
 *
 *	kernel (10.9.8.1, fd98::1) out -- in0 port of the engine (10.9.8.9, fd98::9), udp handler
 *
 * The test is the application on both sides. It looks for what the engine has got, and waits for
 * what the kernel has got.
 */
#include "test.h"

#include "rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <port/netdev.h>

#define PORT 700

struct lan {
	struct rig *rig;
	struct handler *udp;
	struct port *port;
	struct context *context;
};

static const char *const kinds[] = {"xdp", "packet"};
static const char *const here[] = {"10.9.8.9", "fd98::9"}, *const there[] = {"10.9.8.1", "fd98::1"};

static struct lan lan_open(const char *kind, enum poller poller)
{
	struct lan l = {.rig = rig_begin(poller)};
	struct engine *engine = l.rig->engine.engine;
	struct error err = {0};
	char text[64];

	assert_int_equal(netns_run(&l.rig->links, l.rig->left,
				   "echo 0 >/proc/sys/net/ipv6/conf/out/disable_ipv6 && ip -6 addr "
				   "add fd98::1/64 dev out nodad"),
			 0);
	snprintf(text, sizeof(text), "%s:%s", kind, l.rig->links.name[0]);
	l.port = rig_port(l.rig, l.rig->inner, text);
	if (udp_handler_create(engine, NULL, &l.udp, &err) ||
	    engine_handler_set(engine, l.port, l.udp, &err) ||
	    udp_address_add(l.udp, l.port, "10.9.8.9/24", &err) ||
	    udp_address_add(l.udp, l.port, "fd98::9/64", &err))
		fail_msg("%s", err.text);
	assert_int_equal(engine_context_open(engine, &l.context), 0);
	return l;
}

static void lan_close(struct lan *l)
{
	engine_context_close(l->context);
	rig_end(l->rig);
}

static struct napi_udp_address address(const char *ip, unsigned port)
{
	struct napi_udp_address a;
	char text[64];

	snprintf(text, sizeof(text), strchr(ip, ':') ? "[%s]:%u" : "%s:%u", ip, port);
	assert_int_equal(napi_udp_address_parse(text, &a), 0);
	return a;
}

static struct napi_udp *engine_socket(struct lan *l, const char *ip, unsigned port)
{
	struct napi_udp_address a = address(ip, port);
	struct napi_udp *s;
	struct error err = {0};

	if (napi_udp_open(l->udp, NULL, &s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(napi_udp_bind(s, &a), 0);
	return s;
}

static socklen_t sockaddr(struct sockaddr_storage *out, const char *ip, unsigned port)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
	struct sockaddr_in *four = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	if (strchr(ip, ':')) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)port);
		assert_int_equal(inet_pton(AF_INET6, ip, &six->sin6_addr), 1);
		return sizeof(*six);
	}
	four->sin_family = AF_INET;
	four->sin_port = htons((uint16_t)port);
	assert_int_equal(inet_pton(AF_INET, ip, &four->sin_addr), 1);
	return sizeof(*four);
}

/* Of the namespace at the other end; waits RIG_SECONDS at most. */
static int kernel_open(struct lan *l, int family, int type, int protocol)
{
	struct timeval patience = {.tv_sec = RIG_SECONDS};
	struct error err = {0};
	int back, fd;

	assert_int_equal(netns_enter(l->rig->links.lab->namespace[l->rig->left].name, &back, &err),
			 0);
	fd = socket(family, type | SOCK_CLOEXEC, protocol);
	netns_leave(back);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static int kernel_bound(struct lan *l, const char *ip, unsigned port)
{
	struct sockaddr_storage a;
	socklen_t size = sockaddr(&a, ip, port);
	int fd = kernel_open(l, a.ss_family, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, size), 0);
	return fd;
}

static void kernel_send(int fd, const void *data, size_t len, const char *ip, unsigned port)
{
	struct sockaddr_storage a;
	socklen_t size = sockaddr(&a, ip, port);

	assert_int_equal(sendto(fd, data, len, 0, (struct sockaddr *)&a, size), len);
}

/* Looks until there is something, or an error other than that. */
static int engine_receive(struct lan *l, struct napi_udp *s, struct napi_udp_message *m)
{
	struct timespec pause = {.tv_nsec = 100000};
	int n = -EAGAIN;

	for (int i = 0; n == -EAGAIN && i < RIG_SECONDS * 10000; i++) {
		n = napi_udp_recv(s, l->context, m, 1);
		if (n == -EAGAIN)
			nanosleep(&pause, NULL);
	}
	return n;
}

static void data_fill(uint8_t *data, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 31 + seed);
}

/* The kernel asks, the engine sends the same frame back. */
static void echoes(struct lan *l, struct napi_udp *s)
{
	static const uint32_t sizes[] = {0, 1, 17, 18, 19, 500, 1451, 1452, 1472};
	uint8_t data[1500], back[1500];

	for (int six = 0; six < 2; six++) {
		int fd = kernel_bound(l, there[six], 1000);

		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) - (size_t)six; i++) {
			struct napi_udp_address peer = address(there[six], 1000);
			struct napi_udp_address local = address(here[six], PORT);
			struct napi_udp_message m;

			data_fill(data, sizes[i], (unsigned)i);
			kernel_send(fd, data, sizes[i], here[six], PORT);
			assert_int_equal(engine_receive(l, s, &m), 1);
			assert_int_equal(m.len, sizes[i]);
			assert_memory_equal(m.data, data, sizes[i]);
			assert_memory_equal(&m.peer, &peer, sizeof(peer));
			assert_memory_equal(&m.local, &local, sizeof(local));
			assert_int_equal(napi_udp_send(s, l->context, &m, 1), 1);
			assert_int_equal(recv(fd, back, sizeof(back), 0), sizes[i]);
			assert_memory_equal(back, data, sizes[i]);
		}
		close(fd);
	}
}

static void kernel_asks_with(const char *kind)
{
	static const char *const offload[] = {"on", "off"};
	struct lan l = lan_open(kind, POLLER_THREAD);
	struct napi_udp *s = engine_socket(&l, "::", PORT);

	for (int i = 0; i < 2; i++) {
		netns_run(&l.rig->links, l.rig->left, "ethtool -K out tx %s >/dev/null",
			  offload[i]);
		netns_run(&l.rig->links, l.rig->inner, "ethtool -K %s tx %s >/dev/null",
			  l.rig->links.name[0], offload[i]);
		echoes(&l, s);
	}
	assert_int_equal(RIG_DROPPED(l.port, DROP_UDP_CHECKSUM), 0);
	assert_int_equal(RIG_DROPPED(l.port, DROP_UDP_MALFORMED), 0);
	/* The kernel has found out where we are. */
	assert_int_equal(netns_run(&l.rig->links, l.rig->left,
				   "ip neigh show dev out | grep -q '^10.9.8.9 lladdr'"),
			 0);
	assert_int_equal(netns_run(&l.rig->links, l.rig->left,
				   "ip neigh show dev out | grep -q '^fd98::9 lladdr'"),
			 0);
	napi_udp_close(s);
	lan_close(&l);
}

static void kernel_asks(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		kernel_asks_with(kinds[i]);
}

enum { BURST = 5 };

/*
 * The engine has to find the neighbour first, and then the packets that have waited go. What is
 * sent just then may overtake them: each tells by its length which it is.
 */
static void engine_asks(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct lan l = lan_open(kinds[i / 2], POLLER_SOFTIRQ);
		struct napi_udp *s = engine_socket(&l, "::", PORT);
		struct napi_udp_address to = address(there[i & 1], 1000);
		int fd = kernel_bound(&l, there[i & 1], 1000);
		struct udp_stats stats;
		uint8_t data[1452], back[1500];
		unsigned came = 0;

		for (unsigned k = 0; k < BURST; k++) {
			data_fill(data, sizeof(data), k);
			assert_int_equal(
				napi_udp_send_copy(s, l.context, data, sizeof(data) - k, &to),
				sizeof(data) - k);
		}
		for (unsigned n = 0; n < BURST; n++) {
			struct sockaddr_storage from, wanted;
			socklen_t size = sizeof(from);
			ssize_t len = recvfrom(fd, back, sizeof(back), 0, (struct sockaddr *)&from,
					       &size);

			assert_in_range(len, sizeof(data) - (BURST - 1), sizeof(data));
			data_fill(data, sizeof(data), (unsigned)(sizeof(data) - (size_t)len));
			assert_memory_equal(back, data, (size_t)len);
			assert_int_equal(size, sockaddr(&wanted, here[i & 1], PORT));
			assert_memory_equal(&from, &wanted, size);
			came |= 1u << (sizeof(data) - (size_t)len);
		}
		assert_int_equal(came, (1u << BURST) - 1);
		udp_stats_read(l.udp, &stats);
		assert_int_equal(stats.neighbours, 1);
		assert_int_equal(stats.resolved, 1);
		close(fd);
		napi_udp_close(s);
		lan_close(&l);
	}
}

/* Refused, both ways. */
static void nobody_is_there(void **state)
{
	char c;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct lan l = lan_open(kinds[i / 2], POLLER_THREAD);
		struct napi_udp *s = engine_socket(&l, "::", PORT);
		struct napi_udp_address to = address(there[i & 1], 9);
		struct napi_udp_message m;
		struct sockaddr_storage a;
		socklen_t size = sockaddr(&a, here[i & 1], 9);
		int fd = kernel_open(&l, a.ss_family, SOCK_DGRAM, 0);

		assert_int_equal(connect(fd, (struct sockaddr *)&a, size), 0);
		assert_int_equal(send(fd, "?", 1, 0), 1);
		assert_int_equal(recv(fd, &c, 1, 0), -1);
		assert_int_equal(errno, ECONNREFUSED);
		RIG_SUM_IS(l.port, dropped[DROP_UDP_NO_SOCKET], 1);
		close(fd);
		assert_int_equal(napi_udp_connect(s, &to), 0);
		assert_int_equal(napi_udp_send_copy(s, l.context, "?", 1, NULL), 1);
		assert_int_equal(engine_receive(&l, s, &m), -ECONNREFUSED);
		napi_udp_close(s);
		lan_close(&l);
	}
}

static uint16_t sum_of(const uint8_t *data, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)data[i] << 8 | data[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* An echo request of the kernel's, with its own answer to be told from other traffic. */
static void pings(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct lan l = lan_open(kinds[i / 2], POLLER_THREAD);
		bool six = i & 1;
		int fd = kernel_open(&l, six ? AF_INET6 : AF_INET, SOCK_RAW,
				     six ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
		struct sockaddr_storage a;
		socklen_t size = sockaddr(&a, here[six], 0);
		uint8_t request[1000] = {six ? 128 : 8, 0, 0, 0, 'n', 'p', 0, 1}, answer[1500];
		uint8_t *at = answer + (six ? 0 : 20);
		uint16_t sum;

		data_fill(request + 8, sizeof(request) - 8, 3);
		sum = sum_of(request, sizeof(request));
		request[2] = (uint8_t)(sum >> 8);
		request[3] = (uint8_t)sum;
		assert_int_equal(
			sendto(fd, request, sizeof(request), 0, (struct sockaddr *)&a, size),
			sizeof(request));
		do
			assert_true(recv(fd, answer, sizeof(answer), 0) > 0);
		while (at[0] != (six ? 129 : 0) || at[4] != 'n' || at[5] != 'p');
		assert_memory_equal(at + 4, request + 4, sizeof(request) - 4);
		close(fd);
		lan_close(&l);
	}
}

/* What does not fit is refused to who sends it, and not put together from fragments. */
static void mtu(void **state)
{
	struct lan l;
	struct napi_udp *s;
	struct napi_udp_address to = address(there[0], 1000), to6 = address(there[1], 1000);
	static uint8_t data[4000];
	int fd;

	(void)state;
	l = lan_open("xdp", POLLER_THREAD);
	s = engine_socket(&l, "::", PORT);
	assert_int_equal(napi_udp_send_copy(s, l.context, data, 1473, &to), -EMSGSIZE);
	assert_int_equal(napi_udp_send_copy(s, l.context, data, 1453, &to6), -EMSGSIZE);
	assert_int_equal(napi_udp_send_copy(s, l.context, data, 4000, &to), -EMSGSIZE);
	fd = kernel_bound(&l, there[0], 1000);
	kernel_send(fd, data, 4000, here[0], PORT);
	RIG_SUM_IS(l.port, dropped[DROP_UDP_FRAGMENT], 3);
	assert_int_equal(napi_udp_send_copy(s, l.context, data, 1472, &to), 1472);
	assert_int_equal(recv(fd, data, sizeof(data), 0), 1472);
	close(fd);
	napi_udp_close(s);
	lan_close(&l);
}

/* An address that the kernel has: it says so, and ours is given up. */
static bool given_up(void *arg)
{
	return netns_logged(arg, "address fd98::1 is another's on this link: given up");
}

static bool is_decided(void *arg)
{
	return given_up(arg) || netns_logged(arg, "another on this link has the address fd98::1");
}

/*
 * It is given up when the answer comes while it is still asked for, which is a second: on a busy
 * machine our poller may be late for that. Then it is ours, and is asked for anew; one of five
 * times it is not.
 */
static void duplicate_address(void **state)
{
	struct napi_udp_address a = address("fd98::1", PORT);
	struct napi_udp *s;
	struct error err = {0};
	struct lan l;

	(void)state;
	l = lan_open("packet", POLLER_THREAD);
	for (int i = 0; i < 5 && !given_up(&l.rig->engine); i++) {
		netns_log_clear(&l.rig->engine);
		udp_address_remove(l.udp, l.port, "fd98::1/64", &err);
		assert_int_equal(udp_address_add(l.udp, l.port, "fd98::1/64", &err), 0);
		rig_eventually(is_decided, &l.rig->engine);
	}
	assert_true(given_up(&l.rig->engine));
	assert_int_equal(napi_udp_open(l.udp, NULL, &s, &err), 0);
	assert_int_equal(napi_udp_bind(s, &a), -EADDRNOTAVAIL);
	napi_udp_close(s);
	lan_close(&l);
}

struct sleeper {
	struct lan *lan;
	struct napi_udp *socket;
	uint32_t rounds, timeouts;
	_Atomic bool armed; /* has been */
};

/* An application that sleeps each time, for as long as it takes. */
static void *sleeper_main(void *arg)
{
	struct sleeper *sleeper = arg;
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct napi_udp_message v[8];

	epoll_ctl(epoll, EPOLL_CTL_ADD, napi_udp_fd(sleeper->socket), &event);
	for (uint32_t done = 0; done < sleeper->rounds && !sleeper->timeouts;) {
		int n = napi_udp_recv(sleeper->socket, sleeper->lan->context, v, 8);

		if (n > 0) {
			done += (uint32_t)n;
			napi_udp_send(sleeper->socket, sleeper->lan->context, v, (uint32_t)n);
		} else if (!napi_udp_arm(sleeper->socket, sleeper->lan->context)) {
			sleeper->armed = true;
			sleeper->timeouts += epoll_wait(epoll, &event, 1, RIG_SECONDS * 1000) != 1;
		}
	}
	close(epoll);
	return NULL;
}

static bool is_armed(void *sleeper)
{
	return ((struct sleeper *)sleeper)->armed;
}

/*
 * Every wake-up comes: the first finds it armed, and of the others each answer waits for one,
 * unless it is so late that it finds the question there.
 */
static void sleeps_and_wakes(void **state)
{
	(void)state;
	for (unsigned poller = 0; poller < POLLER_MAX; poller++) {
		struct lan l = lan_open("xdp", (enum poller)poller);
		struct sleeper sleeper = {.lan = &l, .rounds = 3000};
		int fd = kernel_bound(&l, there[0], 1000);
		struct napi_udp_stats stats;
		pthread_t thread;
		char c;

		sleeper.socket = engine_socket(&l, "0.0.0.0", PORT);
		assert_int_equal(pthread_create(&thread, NULL, sleeper_main, &sleeper), 0);
		assert_true(rig_eventually(is_armed, &sleeper));
		for (uint32_t i = 0; i < sleeper.rounds; i++) {
			kernel_send(fd, "x", 1, here[0], PORT);
			assert_int_equal(recv(fd, &c, 1, 0), 1);
		}
		pthread_join(thread, NULL);
		assert_int_equal(sleeper.timeouts, 0);
		napi_udp_stats_read(sleeper.socket, &stats);
		assert_true(stats.wakes > 0);
		close(fd);
		napi_udp_close(sleeper.socket);
		lan_close(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_asks),
		cmocka_unit_test(engine_asks),
		cmocka_unit_test(nobody_is_there),
		cmocka_unit_test(pings),
		cmocka_unit_test(mtu),
		cmocka_unit_test(duplicate_address),
		cmocka_unit_test(sleeps_and_wakes),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
