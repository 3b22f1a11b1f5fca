/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rr: how fast the lab's load generator is, beside others on the same path, as ratios of one run.
 *
 * Over the loopback, one thread a side, the client on the first CPU and the server on the last (of
 * one CPU: both there). Contestants take turns, forth and back (ABBA). A ratio is of one round, so
 * that what else the machine does falls on both; printed are the median and the ends of these, and
 * medians of the rest. The others: a bare loop (peers/rr_loop.c), sockperf and iperf3, where they
 * are installed.
 *
 *	rr [-s SECONDS] [-r ROUNDS] [-m MATCH] [RR_LOOP]	ROUNDS: 16 at most
 */
#include <err.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include <lab/clock.h>
#include <lab/histogram.h>
#include <lab/load/load.h>
#include <lab/series.h>

#define SETTLE (300 * NSEC_PER_MSEC)

enum who { NAPIER, LOOP, SOCKPERF, IPERF, CONTESTANTS };

static const char *const who_name[] = {"napier", "bare loop", "sockperf", "iperf3"};

struct match {
	const char *name, *unit;
	struct load_config config;
	bool others[CONTESTANTS];
	double scale; /* of a transaction, to the unit */
};

static const struct match matches[] = {
	{"TCP, 1 flow, 14 B",
	 "transactions/s",
	 {.protocol = LOAD_TCP, .flows = 1, .request_size = 14, .response_size = 14},
	 {[LOOP] = true, [SOCKPERF] = true},
	 1},
	{"TCP, 50 flows, 1 B",
	 "transactions/s",
	 {.protocol = LOAD_TCP, .flows = 50},
	 {[LOOP] = true},
	 1},
	{"TCP, 1000 flows, 1 B",
	 "transactions/s",
	 {.protocol = LOAD_TCP, .flows = 1000},
	 {[LOOP] = true},
	 1},
	{"UDP, 1 flow, 14 B",
	 "transactions/s",
	 {.protocol = LOAD_UDP, .flows = 1, .request_size = 14, .response_size = 14},
	 {[SOCKPERF] = true},
	 1},
	{"TCP, 1 flow, 1 MiB to the client, each asked for (iperf3: one stream)",
	 "Gbit/s",
	 {.protocol = LOAD_TCP, .flows = 1, .response_size = LOAD_SIZE_MAX},
	 {[IPERF] = true},
	 8e-9 * LOAD_SIZE_MAX},
	{"TCP, 50 flows, 1 MiB to the client",
	 "Gbit/s",
	 {.protocol = LOAD_TCP, .flows = 50, .response_size = LOAD_SIZE_MAX},
	 {[IPERF] = true},
	 8e-9 * LOAD_SIZE_MAX},
};

enum { MATCHES = sizeof(matches) / sizeof(*matches) };

static struct series figure[MATCHES][CONTESTANTS];
static struct series ratio[MATCHES][CONTESTANTS]; /* napier's figure by theirs, of one round */
static struct series cost[MATCHES][CONTESTANTS];  /* us of CPU a transaction or MByte, both sides */
static double seconds = 1;
static const char *loop_path;
static int first_cpu, last_cpu, only = -1;
static uint16_t port = 9000;

static double napier(const struct match *m)
{
	struct load_place server_at = {.netns = -1, .address = "127.0.0.1", .port = port};
	struct load_place client_at = server_at;
	const struct load_ops *rr = load_ops(LOAD_RR);
	struct load_config config = m->config;
	void *server, *client;
	struct error e;
	json_t *result;
	double rate;

	cpuset_add(&client_at.cpus, (unsigned)first_cpu);
	cpuset_add(&server_at.cpus, (unsigned)last_cpu);
	if (rr->check(&config, &e) || rr->server_start(&config, &server_at, &server, &e) ||
	    rr->client_start(&config, &client_at, &client, &e))
		errx(1, "%s", e.text);
	clock_sleep(200 * NSEC_PER_MSEC);
	rr->client_measure(client, (int64_t)(seconds * 1e9));
	clock_sleep((int64_t)(seconds * 1e9));
	if (rr->client_stop(client, &result, &e))
		errx(1, "%s", e.text);
	rr->server_stop(server, NULL);
	rate = json_number_value(json_object_get(json_object_get(result, "rates"), "transactions"));
	json_decref(result);
	return rate * m->scale;
}

/* Runs it on the CPU; its output's last line with the text, from there on; NULL: it has none. */
static const char *output_of(const char *command, const char *text)
{
	static char found[512];
	char line[512], *at;
	FILE *f = popen(command, "r");

	found[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if ((at = strstr(line, text)))
			memcpy(found, at, strlen(at) + 1);
	}
	if (f)
		pclose(f);
	return found[0] ? found : NULL;
}

static pid_t server_spawn(char *const argv[])
{
	cpu_set_t cpus;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		CPU_ZERO(&cpus);
		CPU_SET((size_t)last_cpu, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		execvp(argv[0], argv);
		_exit(127);
	}
	clock_sleep(SETTLE);
	return pid;
}

static void server_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* 0: it is not installed, or has said nothing. */
static double other(enum who who, const struct match *m)
{
	char number[16], command[512], *argv[16] = {0};
	const char *said, *text = "";
	bool udp = m->config.protocol == LOAD_UDP;
	double value = 0;
	pid_t server;
	int n = 0;

	snprintf(number, sizeof(number), "%u", port);
	if (who == LOOP) {
		argv[n++] = (char *)loop_path;
		argv[n++] = "server";
		argv[n++] = number;
		snprintf(command, sizeof(command), "taskset -c %d %s client %u %u %g", first_cpu,
			 loop_path, port, m->config.flows, seconds);
	} else if (who == SOCKPERF) {
		argv[n++] = "sockperf";
		argv[n++] = "server";
		argv[n++] = "-i";
		argv[n++] = "127.0.0.1";
		argv[n++] = "-p";
		argv[n++] = number;
		if (!udp)
			argv[n++] = "--tcp";
		snprintf(command, sizeof(command),
			 "taskset -c %d sockperf ping-pong -i 127.0.0.1 -p %u -m %u -t %d %s 2>&1",
			 first_cpu, port, m->config.request_size, (int)seconds, udp ? "" : "--tcp");
		text = "Valid Duration";
	} else {
		argv[n++] = "iperf3";
		argv[n++] = "-s";
		argv[n++] = "-p";
		argv[n++] = number;
		snprintf(command, sizeof(command),
			 "taskset -c %d iperf3 -c 127.0.0.1 -p %u -R -P %u -t %g -l 1M -f g 2>&1 | "
			 "grep receiver | tail -1",
			 first_cpu, port, m->config.flows, seconds);
		text = "Bytes"; /* "1.10 GBytes  9.41 Gbits/sec" */
	}
	server = server_spawn(argv);
	said = output_of(command, text);
	server_end(server);
	if (said && who == LOOP)
		value = atof(said);
	else if (said && who == SOCKPERF && (said = strstr(said, "RunTime=")))
		value = atof(said + strlen("RunTime="));
	else if (said && who == IPERF)
		value = atof(said + strlen("Bytes"));
	/* RunTime=1.000 sec; SentMessages=…; ReceivedMessages=N */
	if (value > 0 && who == SOCKPERF && (said = strstr(said, "ReceivedMessages=")))
		value = atof(said + strlen("ReceivedMessages=")) / value;
	return value;
}

static double cpu_used(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void round_run(bool back)
{
	for (unsigned i = 0; i < MATCHES; i++) {
		double got[CONTESTANTS] = {0};

		for (unsigned k = 0; k < CONTESTANTS; k++) {
			enum who who = back ? CONTESTANTS - 1 - k : k;
			int whose = who == NAPIER ? RUSAGE_SELF : RUSAGE_CHILDREN;
			double value = 0, cpu = cpu_used(whose);

			if (only >= 0 && i != (unsigned)only)
				continue;
			port++;
			if (who == NAPIER)
				value = napier(&matches[i]);
			else if (matches[i].others[who])
				value = other(who, &matches[i]);
			if (!(value > 0))
				continue;
			got[who] = value;
			series_add(&figure[i][who], value);
			/* Starting and warming up are in it, of all. */
			series_add(&cost[i][who],
				   (cpu_used(whose) - cpu) / (value / matches[i].scale * seconds));
		}
		for (unsigned k = LOOP; k < CONTESTANTS; k++) {
			if (got[NAPIER] > 0 && got[k] > 0)
				series_add(&ratio[i][k], got[NAPIER] / got[k]);
		}
	}
}

static void print(void)
{
	for (unsigned i = 0; i < MATCHES; i++) {
		if (!figure[i][NAPIER].n)
			continue;
		printf("%s: napier %.*f %s, CPU %.2f us\n", matches[i].name,
		       matches[i].scale == 1 ? 0 : 2, series_median(&figure[i][NAPIER]),
		       matches[i].unit, series_median(&cost[i][NAPIER]));
		for (unsigned k = LOOP; k < CONTESTANTS; k++) {
			const struct series *s = &figure[i][k], *r = &ratio[i][k];

			if (s->n)
				printf("    %-10s %.*f, CPU %.2f us: napier is %.3f times as "
				       "fast (%.3f to %.3f)\n",
				       who_name[k], matches[i].scale == 1 ? 0 : 2, series_median(s),
				       series_median(&cost[i][k]), series_median(r), series_min(r),
				       series_max(r));
			else if (matches[i].others[k])
				printf("    %-10s not installed, or failed\n", who_name[k]);
		}
	}
}

/* Values of one octave after another, as latencies are, more or less. */
static void histogram_measure(void)
{
	static struct histogram h;
	enum { N = 20000000 };
	uint64_t random = 1;
	int64_t start, bare;

	histogram_reset(&h);
	start = clock_now();
	for (int i = 0; i < N; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		__asm__ volatile("" ::"r"(random));
	}
	bare = clock_now() - start;
	start = clock_now();
	for (int i = 0; i < N; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		histogram_record(&h, 10000 + (random >> 46));
	}
	printf("histogram_record: %.1f ns (%ju values)\n", (double)(clock_now() - start - bare) / N,
	       (uintmax_t)h.n);
}

int main(int argc, char **argv)
{
	unsigned rounds = 2;
	cpu_set_t cpus;
	int option;

	while ((option = getopt(argc, argv, "s:r:m:")) > 0) {
		if (option == 's')
			seconds = atof(optarg);
		else if (option == 'r')
			rounds = (unsigned)atoi(optarg);
		else if (option == 'm')
			only = atoi(optarg);
		else
			return 1;
	}
	loop_path = optind < argc ? argv[optind] : "rr_loop";
	sched_getaffinity(0, sizeof(cpus), &cpus);
	first_cpu = -1;
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &cpus))
			continue;
		if (first_cpu < 0)
			first_cpu = i;
		last_cpu = i;
	}
	histogram_measure();
	for (unsigned i = 0; i < rounds; i++)
		round_run(i % 2);
	print();
}
