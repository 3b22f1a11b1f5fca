/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <control/server.h>

struct client {
	struct irq irq; /* fd < 0: a free place */
	struct server *server;
	bool readable; /* there may be input that was not read */
	bool ended;    /* it will send no more */
	bool refused;  /* closed once it has its answer */
	char *in;      /* SERVER_LINE_MAX + 1 bytes and a NUL */
	size_t in_n;
	size_t seen; /* of in_n, without a newline */
	char *out;   /* NULL: none owed */
	size_t out_n, out_at;
	int64_t active; /* when it last sent or took something */
};

struct server {
	struct irq irq;
	struct runner *runner;
	server_answer answer;
	void *arg;
	bool acceptable; /* there may be clients that were not accepted */
	unsigned turn;	 /* whose it is next */
	struct client clients[SERVER_CLIENTS_MAX];
};

static void listen_irq(struct irq *irq)
{
	((struct server *)((char *)irq - offsetof(struct server, irq)))->acceptable = true;
}

static void client_irq(struct irq *irq)
{
	((struct client *)((char *)irq - offsetof(struct client, irq)))->readable = true;
}

static void client_close(struct client *client)
{
	irq_detach(&client->irq);
	close(client->irq.fd);
	client->irq.fd = -1;
	free(client->in);
	free(client->out);
	client->in = client->out = NULL;
}

/* Owes the client this line; takes it over. */
static void client_owe(struct client *client, char *line)
{
	size_t n = strlen(line);

	/* The NUL becomes the newline. */
	line[n] = '\n';
	client->out = line;
	client->out_n = n + 1;
	client->out_at = 0;
}

static void client_refuse(struct client *client, const char *line)
{
	char *copy = strdup(line);

	client->refused = true;
	if (copy)
		client_owe(client, copy);
}

/* False when it is gone. */
static bool client_flush(struct client *client, int64_t now)
{
	while (client->out) {
		ssize_t n = send(client->irq.fd, client->out + client->out_at,
				 client->out_n - client->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return now - client->active < SERVER_STALL;
		if (n < 0)
			return false;
		client->active = now;
		client->out_at += (size_t)n;
		if (client->out_at < client->out_n)
			continue;
		free(client->out);
		client->out = NULL;
	}
	return !client->refused;
}

/* Fills the buffer as far as it goes. False when the client is gone. */
static bool client_read(struct client *client, int64_t now)
{
	ssize_t n;

	if (!client->readable || client->ended || client->in_n > SERVER_LINE_MAX)
		return true;
	n = recv(client->irq.fd, client->in + client->in_n, SERVER_LINE_MAX + 1 - client->in_n,
		 MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN)
		return false;
	if (n <= 0) {
		client->readable = false;
		client->ended = n == 0;
		return true;
	}
	client->active = now;
	client->in_n += (size_t)n;
	return true;
}

/* Answers the first line of the buffer; false when there is no whole one. */
static bool client_answer(struct client *client)
{
	char *newline = memchr(client->in + client->seen, '\n', client->in_n - client->seen);
	size_t n, used;
	char *answer;

	client->seen = client->in_n;
	if (newline) {
		n = (size_t)(newline - client->in);
		used = n + 1;
	} else if (client->ended && client->in_n) {
		n = used = client->in_n; /* a last line without its newline is a line */
	} else {
		if (client->in_n > SERVER_LINE_MAX)
			client_refuse(client, "{\"ok\":false,\"error\":\"a request is one line of "
					      "at most 65536 bytes\",\"code\":\"EMSGSIZE\"}");
		return false;
	}
	client->in[n] = '\0';
	answer = client->server->answer(client->server->arg, client->in, n);
	memmove(client->in, client->in + used, client->in_n - used);
	client->in_n -= used;
	client->seen = 0;
	if (answer)
		client_owe(client, answer);
	else
		client->refused = true;
	return true;
}

/* Returns when to come again, as server_work. *answered: a line was. */
static int64_t client_work(struct client *client, int64_t now, bool *answered)
{
	if (!client_flush(client, now) || !client_read(client, now)) {
		client_close(client);
		return TIME_NEVER;
	}
	if (client->out)
		return now + SERVER_RETRY;
	*answered = client_answer(client);
	/* In this step: the answer to "stop" has no other. */
	if (*answered && !client_flush(client, now)) {
		client_close(client);
		return TIME_NEVER;
	}
	if (*answered || client->refused || client->readable)
		return now;
	if (client->ended)
		client_close(client);
	return TIME_NEVER;
}

/* A free place, or that of the client that has been silent the longest and is owed nothing. */
static struct client *client_place(struct server *server)
{
	struct client *oldest = NULL;

	for (unsigned i = 0; i < SERVER_CLIENTS_MAX; i++) {
		struct client *client = &server->clients[i];

		if (client->irq.fd < 0)
			return client;
		if (!client->out && (!oldest || client->active < oldest->active))
			oldest = client;
	}
	if (oldest)
		client_close(oldest);
	return oldest;
}

/* Root, or whoever the engine runs as. */
static bool peer_allowed(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void client_accept(struct server *server, int fd, int64_t now)
{
	struct client *client = peer_allowed(fd) ? client_place(server) : NULL;
	char *in = client ? malloc(SERVER_LINE_MAX + 2) : NULL;

	if (!in) {
		close(fd);
		return;
	}
	*client = (struct client){
		.irq = IRQ_INIT(fd, client_irq),
		.server = server,
		.readable = true,
		.in = in,
		.active = now,
	};
	if (irq_attach(&client->irq, server->runner))
		client_close(client);
}

int64_t server_work(struct server *server, int64_t now)
{
	int64_t again = TIME_NEVER;

	if (server->acceptable) {
		int fd = accept4(server->irq.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			client_accept(server, fd, now);
		else if (errno != EINTR && errno != ECONNABORTED)
			server->acceptable = false;
		again = now;
	}
	for (unsigned i = 0; i < SERVER_CLIENTS_MAX; i++) {
		struct client *client = &server->clients[server->turn];
		bool answered = false;
		int64_t when;

		server->turn = (server->turn + 1) % SERVER_CLIENTS_MAX;
		if (client->irq.fd < 0)
			continue;
		when = client_work(client, now, &answered);
		if (when < again)
			again = when;
		if (answered)
			return now;
	}
	return again;
}

static int socket_listen(const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(err, -ENAMETOOLONG, "%s: too long for a socket", path);
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, -errno, "%s: socket: %s", path, strerror(errno));
	/* Nobody can connect before listen(), so there is no moment with another mode. */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || chmod(path, 0600) ||
	    listen(fd, SERVER_CLIENTS_MAX)) {
		rc = error_set(err, -errno, "%s: %s%s", path, strerror(errno),
			       errno == EADDRINUSE ? ": something else is there: remove it" : "");
		close(fd);
		return rc;
	}
	return fd;
}

int server_open(const char *path, struct runner *runner, server_answer answer, void *arg,
		struct server **out, struct error *err)
{
	struct server *server = calloc(1, sizeof(*server));
	int fd = -1, rc;

	if (!server)
		return error_set(err, -ENOMEM, "%s: no memory", path);
	for (unsigned i = 0; i < SERVER_CLIENTS_MAX; i++)
		server->clients[i].irq.fd = -1;
	server->runner = runner;
	server->answer = answer;
	server->arg = arg;
	server->acceptable = true;
	fd = socket_listen(path, err);
	server->irq = IRQ_INIT(fd, listen_irq);
	if (fd < 0) {
		free(server);
		return fd;
	}
	rc = irq_attach(&server->irq, runner);
	if (rc) {
		error_set(err, rc, "%s: cannot be waited for: %s", path, strerror(-rc));
		server_close(server);
		return rc;
	}
	*out = server;
	return 0;
}

void server_close(struct server *server)
{
	for (unsigned i = 0; i < SERVER_CLIENTS_MAX; i++) {
		if (server->clients[i].irq.fd >= 0)
			client_close(&server->clients[i]);
	}
	irq_detach(&server->irq);
	close(server->irq.fd);
	free(server);
}
