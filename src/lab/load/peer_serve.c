/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/peer_session.h"

/* How often *stop is looked at, should its signal have come just before the wait. */
enum { LOOK_MS = 250, BACKLOG = 16 };

#define ANSWER_TIMEOUT (10 * NSEC_PER_SEC)

struct service {
	const struct peer_server_config *config;
	int listener; /* -1: a child's */
	struct session session;
	bool busy; /* the session has a client */
	/* Of lines that anybody can cause: */
	int64_t lines_since;
	unsigned lines, left_out;
};

/* A handler of a signal sets it, or another thread. */
static bool stopped(const struct service *service)
{
	return __atomic_load_n(service->config->stop, __ATOMIC_RELAXED);
}

static void address_text(const struct sockaddr_storage *address, socklen_t length, char *text,
			 size_t size)
{
	static const struct in6_addr mapped = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

	/* A socket of IPv6 has clients of IPv4, too. */
	if (address->ss_family == AF_INET6 && !memcmp(&six->sin6_addr, &mapped, 12)) {
		inet_ntop(AF_INET, six->sin6_addr.s6_addr + 12, text, (socklen_t)size);
		return;
	}
	if (getnameinfo((const struct sockaddr *)address, length, text, (socklen_t)size, NULL, 0,
			NI_NUMERICHOST))
		snprintf(text, size, "?");
}

/* Notices a host that went away without a word within half a minute. */
static void keepalive_set(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{SOL_SOCKET, SO_KEEPALIVE, 1},		{IPPROTO_TCP, TCP_KEEPIDLE, 10},
		{IPPROTO_TCP, TCP_KEEPINTVL, 5},	{IPPROTO_TCP, TCP_KEEPCNT, 4},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, 30000}, {IPPROTO_TCP, TCP_NODELAY, 1},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			   sizeof(options[i].value));
}

static void left_out_say(struct service *service)
{
	if (service->left_out)
		session_say(service->config, "%u more such lines were left out", service->left_out);
	service->lines = service->left_out = 0;
}

/* A few lines at a time: who sends nonsense without end is not to fill somebody's disk. */
static void complain(struct service *service, const char *who, const char *text)
{
	int64_t now = clock_now();

	if (now - service->lines_since > PEER_LINES_SECONDS * NSEC_PER_SEC) {
		left_out_say(service);
		service->lines_since = now;
	}
	if (service->lines == PEER_LINES) {
		service->left_out++;
		return;
	}
	service->lines++;
	session_say(service->config, "%s: %s", who, text);
}

static void refused_say(struct service *service, const json_t *answer)
{
	const char *why = json_string_value(json_object_get(answer, "error"));
	char text[320];

	if (!why)
		return;
	snprintf(text, sizeof(text), "refused: %s", why);
	complain(service, service->session.who, text);
}

/* False: it could not be told. */
static bool tell(int fd, json_t *o)
{
	int ret = o ? peer_line_send(fd, o, clock_now() + ANSWER_TIMEOUT) : -ENOMEM;

	json_decref(o);
	return !ret;
}

static void session_close(struct service *service)
{
	struct session *session = &service->session;

	if (session->ops)
		session_say(service->config, "%s: is gone in mid-run, which has ended",
			    session->who);
	session_end(session);
	peer_line_free(&session->in);
	close(session->fd);
	service->busy = false;
}

/* Takes fd. */
static void session_open(struct service *service, int fd, bool remote, const char *who)
{
	struct session *session = &service->session;

	*session = (struct session){
		.config = service->config, .fd = fd, .remote = remote, .heard = clock_now()};
	snprintf(session->who, sizeof(session->who), "%s", who);
	peer_line_init(&session->in, fd, PEER_REQUEST_MAX);
	service->busy = true;
	if (remote) {
		struct sockaddr_storage own;
		socklen_t length = sizeof(own);

		keepalive_set(fd);
		if (!getsockname(fd, (struct sockaddr *)&own, &length))
			address_text(&own, length, session->here, sizeof(session->here));
	}
	if (!tell(fd, session_greeting()))
		session_close(service);
}

static void client_accept(struct service *service)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);
	int fd = accept4(service->listener, (struct sockaddr *)&from, &length, SOCK_CLOEXEC);
	char who[64], text[128];
	json_t *busy;

	if (fd < 0)
		return;
	address_text(&from, length, who, sizeof(who));
	if (!service->busy) {
		session_open(service, fd, true, who);
		return;
	}
	snprintf(text, sizeof(text), "the server is busy with another client, %s",
		 service->session.who);
	complain(service, who, "told that this server is busy");
	busy = session_error(-EBUSY, text);
	/* It fits into the socket's buffer: nobody waits for this client. */
	if (busy)
		peer_line_send(fd, busy, 0);
	json_decref(busy);
	close(fd);
}

/* Lines that are there are answered; false: the client is to be closed. */
static bool lines_answer(struct service *service)
{
	struct session *session = &service->session;
	struct error err;
	json_t *request;
	bool last = false;
	int ret;

	while (!last && !stopped(service) && (ret = peer_line_take(&session->in, &request, &err))) {
		json_t *answer = ret > 0 ? session_answer(session, request, &last)
					 : session_error(ret, err.text);

		if (ret > 0)
			json_decref(request);
		refused_say(service, answer);
		/* Who speaks something else will go on so. */
		if (!tell(session->fd, answer) || ret < 0)
			return false;
	}
	return !last;
}

/* Reads, and answers; false: the client is to be closed. */
static bool client_serve(struct service *service)
{
	struct session *session = &service->session;
	int ret = peer_line_fill(&session->in);
	json_t *answer;
	char text[64];

	if (ret == -EMSGSIZE) {
		snprintf(text, sizeof(text), "a line of more than %d bytes", PEER_REQUEST_MAX);
		answer = session_error(-EINVAL, text);
		refused_say(service, answer);
		tell(session->fd, answer);
	}
	if (ret && ret != -EAGAIN)
		return false;
	return lines_answer(service);
}

static void silence_look(struct service *service)
{
	const struct session *session = &service->session;
	int64_t bound = (session->greeted ? PEER_IDLE : PEER_HELLO) * NSEC_PER_SEC;
	int64_t silent = clock_now() - session->heard;

	bound = session->ops ? session->patience : bound;
	if (!session->remote || silent <= bound)
		return;
	session_say(service->config, "%s: has been silent for %lld s%s, and is closed",
		    session->who, (long long)(silent / NSEC_PER_SEC),
		    session->ops ? ", longer than its run was to last" : "");
	session_close(service);
}

static void serve_step(struct service *service)
{
	struct pollfd wait[2] = {
		{.fd = service->listener, .events = POLLIN},
		{.fd = service->busy ? service->session.fd : -1, .events = POLLIN}};

	if (poll(wait, 2, LOOK_MS) < 0)
		return;
	if (service->busy && wait[1].revents && !client_serve(service))
		session_close(service);
	if (service->busy)
		silence_look(service);
	if (wait[0].revents)
		client_accept(service);
}

static int listener_bind(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, none = 0, code;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &none, sizeof(none));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, BACKLOG))
		return fd;
	code = -errno;
	close(fd);
	return code;
}

static int listener_open(const struct peer_server_config *config, struct error *err)
{
	const char *name = *config->address ? config->address : NULL;
	struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
				 .ai_family = name ? AF_UNSPEC : AF_INET6,
				 .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	char port[8];
	int fd, ret;

	snprintf(port, sizeof(port), "%u", config->port);
	ret = getaddrinfo(name, port, &hints, &found);
	if (ret)
		return error_set(err, -EADDRNOTAVAIL, "%s: %s", config->address, gai_strerror(ret));
	fd = listener_bind(found);
	freeaddrinfo(found);
	/* A kernel without IPv6. */
	if (!name && fd == -EAFNOSUPPORT) {
		struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(config->port)};
		struct addrinfo four = {.ai_family = AF_INET,
					.ai_addr = (struct sockaddr *)&any,
					.ai_addrlen = sizeof(any)};

		fd = listener_bind(&four);
	}
	if (fd == -EADDRINUSE)
		return error_set(err, fd, "port %s is in use: another server? Choose one with -p",
				 port);
	if (fd == -EADDRNOTAVAIL)
		return error_set(err, fd, "%s is no address of this host", config->address);
	if (fd < 0)
		return error_set(err, fd, "listening on %s port %s: %s",
				 name ? name : "any address", port, strerror(-fd));
	return fd;
}

static void listening_say(const struct service *service)
{
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);

	if (!getsockname(service->listener, (struct sockaddr *)&own, &length))
		session_say(service->config, "listening on %s port %u",
			    *service->config->address ? service->config->address : "any address",
			    ntohs(((struct sockaddr_in *)&own)->sin_port)); /* where IPv6 has it */
}

int peer_serve(const struct peer_server_config *config, struct error *err)
{
	struct service service = {.config = config, .listener = -1};

	if (config->fd >= 0) {
		session_open(&service, config->fd, false, "");
	} else {
		service.listener = listener_open(config, err);
		if (service.listener < 0)
			return service.listener;
		listening_say(&service);
	}
	while (!stopped(&service) && (service.busy || service.listener >= 0))
		serve_step(&service);
	if (service.busy)
		session_close(&service);
	left_out_say(&service);
	if (service.listener >= 0)
		close(service.listener);
	return 0;
}
