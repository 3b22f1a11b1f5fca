/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An echo server on a UDP socket inside the engine: what comes in goes back in the same frame,
 * nothing is copied. Sleeps in epoll while there is nothing.
 *
 *	udp_echo xdp:eth0 10.0.0.2/24 fd00::2/64
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <napier/napier.h>

static const char usage[] =
	"usage: udp_echo [option]... PORT ADDRESS/PREFIX...\n"
	"Answers UDP on ADDRESSes of PORT (xdp:eth0, packet:eth0, tap:vm0), and ARP, ND and "
	"pings.\n"
	"  -p, --port=NUMBER     UDP port; 7\n"
	"  -P, --poller=POLLER   softirq, thread, workqueue, busy-poll, app; thread\n"
	"  -g, --gateway=ADDRESS where other networks are\n"
	"  -b, --busy=USEC       looks so long for packets before it sleeps, and with "
	"--poller=app\n"
	"                        polls meanwhile; 0\n"
	"  -h, --help\n"
	"Prints packets a second, and ends at Ctrl-C.\n";

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	interrupted = number;
}

static void log_line(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	if (level <= LEVEL_WARNING)
		fprintf(stderr, "udp_echo: %s\n", line);
}

struct wish {
	struct napi_udp_address local;
	enum poller poller;
	const char *gateway, *port;
	char **address;
	struct napi_udp_config socket;
};

static uint32_t number_read(const char *option, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long number = strtoul(optarg, &end, 10);

	if (*optarg < '0' || *optarg > '9' || *end || number < least || number > most)
		errx(2, "--%s=%s: a number from %u to %u", option, optarg, least, most);
	return (uint32_t)number;
}

static void wish_read(struct wish *wish, int argc, char **argv)
{
	static const struct option options[] = {
		{"port", required_argument, NULL, 'p'},	   {"poller", required_argument, NULL, 'P'},
		{"gateway", required_argument, NULL, 'g'}, {"busy", required_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},	   {0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "p:P:g:b:h", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			wish->local.port = (uint16_t)number_read("port", 1, 65535);
			break;
		case 'P':
			if (poller_parse(optarg, &wish->poller))
				errx(2, "--poller=%s: one of %s", optarg, poller_list());
			break;
		case 'g':
			wish->gateway = optarg;
			break;
		case 'b':
			wish->socket.busy_poll_set = true;
			wish->socket.busy_poll = number_read("busy", 0, 1000000);
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (argc - optind < 2) {
		fputs(usage, stderr);
		exit(2);
	}
	wish->port = argv[optind];
	wish->address = argv + optind + 1;
}

/* The port with its addresses, and a socket on it. */
static struct napi_udp *socket_open(struct engine *engine, const struct wish *wish)
{
	struct port_config config;
	struct napi_udp *socket;
	struct handler *udp;
	struct port *port;
	struct error e;
	int rc;

	if (port_config_parse(wish->port, &config, &e) ||
	    engine_port_add(engine, &config, &port, &e) ||
	    udp_handler_create(engine, NULL, &udp, &e) || engine_handler_set(engine, port, udp, &e))
		errx(1, "%s", e.text);
	for (char **address = wish->address; *address; address++)
		if (udp_address_add(udp, port, *address, &e))
			errx(1, "%s", e.text);
	if (wish->gateway && udp_gateway_set(udp, port, wish->gateway, &e))
		errx(1, "%s", e.text);
	if (napi_udp_open(udp, &wish->socket, &socket, &e))
		errx(1, "%s", e.text);
	rc = napi_udp_bind(socket, &wish->local);
	if (rc)
		errx(1, "UDP port %u: %s", wish->local.port, strerror(-rc));
	return socket;
}

static void rate_print(const struct napi_udp *socket, int64_t ns)
{
	static uint64_t sent, dropped;
	struct napi_udp_stats stats;

	napi_udp_stats_read(socket, &stats);
	printf("%.0f/s echoed, %.0f/s dropped\n", (double)(stats.sent - sent) * 1e9 / (double)ns,
	       (double)(stats.dropped - dropped) * 1e9 / (double)ns);
	fflush(stdout);
	sent = stats.sent;
	dropped = stats.dropped;
}

static void send_back(struct napi_udp *socket, struct context *context, struct napi_udp_message *v,
		      uint32_t n)
{
	while (n) {
		int sent = napi_udp_send(socket, context, v, n);

		/* There is no way back to this one's sender. */
		if (sent <= 0) {
			napi_udp_release(socket, context, v, 1);
			sent = 1;
		}
		v += sent;
		n -= (uint32_t)sent;
	}
}

static void echo(struct napi_udp *socket, struct context *context, struct machine *machine)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX];
	int64_t now, printed = machine_now(machine);
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, napi_udp_fd(socket), &event))
		err(1, "epoll");
	while (!interrupted) {
		int n = napi_udp_recv(socket, context, v, NAPI_UDP_VECTOR_MAX);

		if (n > 0)
			send_back(socket, context, v, (uint32_t)n);
		now = machine_now(machine);
		if (now - printed >= NSEC_PER_SEC) {
			rate_print(socket, now - printed);
			printed = now;
		}
		if (n == -EAGAIN && !napi_udp_arm(socket, context))
			epoll_wait(epoll, &event, 1,
				   (int)((printed + NSEC_PER_SEC - now) / NSEC_PER_MSEC) + 1);
	}
	close(epoll);
}

int main(int argc, char **argv)
{
	struct wish wish = {.poller = POLLER_THREAD, .local = {.port = 7}};
	struct engine_config config = {.log = log_line};
	struct sigaction action = {.sa_handler = interrupt};
	struct context *context;
	struct napi_udp *socket;
	struct engine *engine;
	struct error e;

	wish_read(&wish, argc, argv);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	config.poller = wish.poller;
	if (machine_host_create(&config.machine, &e) || engine_create(&config, &engine, &e))
		errx(1, "%s", e.text);
	socket = socket_open(engine, &wish);
	if (engine_context_open(engine, &context))
		errx(1, "no memory");
	echo(socket, context, config.machine);
	napi_udp_close(socket);
	engine_context_close(context);
	engine_destroy(engine);
	machine_destroy(config.machine);
}
