/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Full busy: a server whose one thread polls its queue, works on what it found, and polls again; no
 * interrupt and no other thread comes between while requests do. Application and packet processing
 * alternate on one core. Without requests it sleeps, and interrupts are on.
 *
 *	full_busy --cpu=1 --service=5 xdp:eth0 10.0.0.2/24           answers requests
 *	full_busy --client=10.0.0.2:7 xdp:eth0 10.0.0.3/24           sends them, and tells how long
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <napier/napier.h>

static const char usage[] =
	"usage: full_busy [option]... PORT ADDRESS/PREFIX...\n"
	"Answers UDP requests on ADDRESSes of PORT (xdp:eth0, packet:eth0, tap:vm0): each comes "
	"back\n"
	"as it is, after the time that the service takes.\n"
	"  -p, --port=NUMBER     UDP port; 7\n"
	"  -S, --service=USEC    work for each request; 0\n"
	"  -c, --cpu=N           the one CPU for all of it; any\n"
	"  -P, --poller=POLLER   app, or to compare: softirq, thread, workqueue, busy-poll; app\n"
	"  -b, --busy=USEC       looks so long for packets before it sleeps; 200\n"
	"  -n, --no-prefer       interrupts are on while it works (prefer_busy_poll is off)\n"
	"  -g, --gateway=ADDRESS where other networks are\n"
	"  -C, --client=ADDRESS:PORT\n"
	"                        sends requests there instead, one after the other, and prints "
	"the\n"
	"                        time from each to its answer\n"
	"  -N, --count=NUMBER    requests of the client, 1 to 10000000; 10000\n"
	"  -h, --help\n"
	"The server prints requests a second, and who polled; it ends at Ctrl-C.\n";

enum { REQUEST_SIZE = 64, ANSWER_TIMEOUT_MS = 1000, BURST = 8 };

struct wish {
	struct napi_udp_address local, server; /* server.port 0: this is the server */
	struct napi_udp_config socket;
	enum poller poller;
	const char *gateway, *port;
	char **address;
	int64_t service; /* ns */
	int cpu;	 /* -1: any */
	uint32_t count;
};

struct full_busy {
	const struct wish *wish;
	struct machine *machine;
	struct engine *engine;
	struct port *port;
	struct napi_udp *socket;
	struct context *context;
	int epoll;
	uint64_t sleeps;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	interrupted = number;
}

static void log_line(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	if (level <= LEVEL_WARNING)
		fprintf(stderr, "full_busy: %s\n", line);
}

static long number(const char *name, const char *text, long low, long high)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (!*text || *end || value < low || value > high)
		errx(2, "--%s=%s: a number from %ld to %ld", name, text, low, high);
	return value;
}

static void option_take(struct wish *wish, int c)
{
	switch (c) {
	case 'p':
		wish->local.port = (uint16_t)number("port", optarg, 1, 65535);
		break;
	case 'S':
		wish->service = number("service", optarg, 0, 1000000) * NSEC_PER_USEC;
		break;
	case 'c':
		wish->cpu = (int)number("cpu", optarg, 0, CPU_MAX - 1);
		break;
	case 'P':
		if (poller_parse(optarg, &wish->poller))
			errx(2, "--poller=%s: one of %s", optarg, poller_list());
		break;
	case 'b':
		wish->socket.busy_read = (uint32_t)number("busy", optarg, 0, 1000000);
		break;
	case 'n':
		wish->socket.prefer = false;
		break;
	case 'g':
		wish->gateway = optarg;
		break;
	case 'C':
		if (napi_udp_address_parse(optarg, &wish->server) || !wish->server.port)
			errx(2, "--client=%s: an address and a port, 10.0.0.2:7 or [fd00::2]:7",
			     optarg);
		break;
	case 'N':
		wish->count = (uint32_t)number("count", optarg, 1, 10000000);
		break;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

static void wish_read(struct wish *wish, int argc, char **argv)
{
	static const struct option options[] = {
		{"port", required_argument, NULL, 'p'},
		{"service", required_argument, NULL, 'S'},
		{"cpu", required_argument, NULL, 'c'},
		{"poller", required_argument, NULL, 'P'},
		{"busy", required_argument, NULL, 'b'},
		{"no-prefer", no_argument, NULL, 'n'},
		{"gateway", required_argument, NULL, 'g'},
		{"client", required_argument, NULL, 'C'},
		{"count", required_argument, NULL, 'N'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "p:S:c:P:b:ng:C:N:h", options, NULL)) != -1)
		option_take(wish, c);
	if (argc - optind < 2) {
		fputs(usage, stderr);
		exit(2);
	}
	wish->port = argv[optind];
	wish->address = argv + optind + 1;
}

/* Before there are any threads: all of them inherit it. */
static void cpu_take(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		errx(1, "--cpu=%d: this process may not run there (see: nproc)", cpu);
}

/*
 * Interrupts stay off for so long after a look that found requests: the work on them may take its
 * time. After one that did not they are on again. (napi_defer_hard_irqs and gro_flush_timeout would
 * wait for a few looks more, and be the interface's as well: that is for drivers that let the
 * socket poll the kernel's NAPI.)
 */
static void suspend_set(struct full_busy *f)
{
	struct queue_settings settings = {.irq_suspend_timeout_set = true,
					  .irq_suspend_timeout = 20000000};
	struct error e;

	if (engine_queue_set(f->engine, f->port->name, -1, &settings, NULL, &e))
		warnx("%s", e.text);
}

static void port_open(struct full_busy *f)
{
	const struct wish *wish = f->wish;
	struct port_config config;
	struct handler *udp;
	struct error e;
	int rc;

	if (port_config_parse(wish->port, &config, &e) ||
	    engine_port_add(f->engine, &config, &f->port, &e) ||
	    udp_handler_create(f->engine, NULL, &udp, &e) ||
	    engine_handler_set(f->engine, f->port, udp, &e))
		errx(1, "%s", e.text);
	for (char **address = wish->address; *address; address++)
		if (udp_address_add(udp, f->port, *address, &e))
			errx(1, "%s", e.text);
	if (wish->gateway && udp_gateway_set(udp, f->port, wish->gateway, &e))
		errx(1, "%s", e.text);
	if (wish->poller == POLLER_APP && wish->socket.prefer)
		suspend_set(f);
	if (napi_udp_open(udp, &wish->socket, &f->socket, &e))
		errx(1, "%s", e.text);
	rc = wish->server.port ? napi_udp_connect(f->socket, &wish->server)
			       : napi_udp_bind(f->socket, &wish->local);
	if (rc)
		errx(1, "%s: %s", wish->server.port ? "--client" : "--port", strerror(-rc));
}

/* Nothing is there to be received, and there was nothing after a look. */
static void sleep_ms(struct full_busy *f, int ms)
{
	struct epoll_event event;

	if (napi_udp_arm(f->socket, f->context))
		return;
	f->sleeps++;
	epoll_wait(f->epoll, &event, 1, ms);
}

static void work(struct full_busy *f)
{
	int64_t until = machine_now(f->machine) + f->wish->service;

	while (f->wish->service && machine_now(f->machine) < until)
		;
}

/* One by one: each answer leaves when its work is done. */
static void answer(struct full_busy *f, struct napi_udp_message *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		work(f);
		if (napi_udp_send(f->socket, f->context, &v[i], 1) != 1)
			napi_udp_release(f->socket, f->context, &v[i], 1);
	}
}

static void rate_print(struct full_busy *f, int64_t ns)
{
	static uint64_t sent, dropped;
	struct napi_udp_stats stats;

	napi_udp_stats_read(f->socket, &stats);
	printf("%.0f/s answered, %.0f/s dropped; poller %s, %llu sleeps\n",
	       (double)(stats.sent - sent) * 1e9 / (double)ns,
	       (double)(stats.dropped - dropped) * 1e9 / (double)ns,
	       poller_name(napi_poller(f->port->queue[0].napi)), (unsigned long long)f->sleeps);
	fflush(stdout);
	sent = stats.sent;
	dropped = stats.dropped;
	f->sleeps = 0;
}

static int serve(struct full_busy *f)
{
	struct napi_udp_message v[BURST];
	int64_t now, printed = machine_now(f->machine);

	while (!interrupted) {
		int n = napi_udp_recv(f->socket, f->context, v, BURST);

		if (n > 0)
			answer(f, v, (uint32_t)n);
		now = machine_now(f->machine);
		if (now - printed >= NSEC_PER_SEC) {
			rate_print(f, now - printed);
			printed = now;
		}
		if (n == -EAGAIN)
			sleep_ms(f, (int)((printed + NSEC_PER_SEC - now) / NSEC_PER_MSEC) + 1);
	}
	return 0;
}

/* False: it did not come in time. */
static bool answer_await(struct full_busy *f, uint32_t wanted)
{
	int64_t until = machine_now(f->machine) + ANSWER_TIMEOUT_MS * NSEC_PER_MSEC;
	bool come = false;

	while (!come && !interrupted && machine_now(f->machine) < until) {
		struct napi_udp_message v;
		uint32_t got = 0;
		int n = napi_udp_recv(f->socket, f->context, &v, 1);

		if (n == 1) {
			if (v.len == REQUEST_SIZE)
				memcpy(&got, v.data, sizeof(got));
			come = v.len == REQUEST_SIZE && got == wanted;
			napi_udp_release(f->socket, f->context, &v, 1);
		} else if (n == -EAGAIN) {
			sleep_ms(f, ANSWER_TIMEOUT_MS / 10);
		}
	}
	return come;
}

static int order(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static double usecs(const int64_t *sorted, uint32_t n, double share)
{
	return (double)sorted[(uint32_t)((n - 1) * share)] / 1000;
}

static int ask(struct full_busy *f)
{
	int64_t *took = malloc(f->wish->count * sizeof(*took));
	uint32_t answered = 0, lost = 0, number = 0;

	if (!took)
		errx(1, "no memory for %u times", f->wish->count);
	while (!interrupted && answered + lost < f->wish->count) {
		uint8_t request[REQUEST_SIZE] = {0};
		int64_t sent = machine_now(f->machine);

		number++;
		memcpy(request, &number, sizeof(number));
		napi_udp_send_copy(f->socket, f->context, request, sizeof(request), NULL);
		if (answer_await(f, number))
			took[answered++] = machine_now(f->machine) - sent;
		else if (++lost > 10 && !answered)
			break;
	}
	if (!answered) {
		warnx("no answer");
		free(took);
		return 1;
	}
	qsort(took, answered, sizeof(*took), order);
	printf("%u requests, %u lost; p50 %.1f us", answered + lost, lost,
	       usecs(took, answered, 0.5));
	if (answered >= 1000) /* ten of them are above it */
		printf(", p99 %.1f us", usecs(took, answered, 0.99));
	printf("; poller %s\n", poller_name(napi_poller(f->port->queue[0].napi)));
	free(took);
	return 0;
}

int main(int argc, char **argv)
{
	struct wish wish = {
		.poller = POLLER_APP,
		.local = {.port = 7},
		.socket = {.busy_read_set = true, .busy_read = 200, .prefer = true},
		.cpu = -1,
		.count = 10000,
	};
	struct engine_config config = {.log = log_line};
	struct sigaction action = {.sa_handler = interrupt};
	struct epoll_event event = {.events = EPOLLIN};
	struct full_busy f = {.wish = &wish};
	struct error e;
	int rc;

	wish_read(&wish, argc, argv);
	cpu_take(wish.cpu);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	config.poller = wish.poller;
	if (machine_host_create(&config.machine, &e) || engine_create(&config, &f.engine, &e))
		errx(1, "%s", e.text);
	f.machine = config.machine;
	port_open(&f);
	f.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (f.epoll < 0 || epoll_ctl(f.epoll, EPOLL_CTL_ADD, napi_udp_fd(f.socket), &event))
		err(1, "epoll");
	if (engine_context_open(f.engine, &f.context))
		errx(1, "no memory");
	rc = wish.server.port ? ask(&f) : serve(&f);
	close(f.epoll);
	engine_context_close(f.context);
	napi_udp_close(f.socket);
	engine_destroy(f.engine);
	machine_destroy(f.machine);
	return rc;
}
