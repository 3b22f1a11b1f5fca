/* SPDX-License-Identifier: BSD-2-Clause */
/* rrul over the loopback: TCP both ways and probes beside it, idle and under load. */
#include "test.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/load/load.h>
#include <lab/load/rrul_echo.h>
#include <lab/load/rrul_ping.h>
#include <lab/load/rrul_probe.h>
#include <lab/load/side.h>

#include "loopback.h"
#include "lossy.h"

#define MS NSEC_PER_MSEC

static struct load_place place = {.netns = -1};
static void *server, *client;
static struct lossy *lossy;
static json_t *result;

static struct load_config config_of(void)
{
	return (struct load_config){
		.kind = LOAD_RRUL,
		.tcp_flows = 4,
		.threads = 2,
		.server_threads = 1,
		.timeout = 200 * MS,
		.interval = 20 * MS,
		.probe_rate = 200,
	};
}

static int run_stop(void **state)
{
	(void)state;
	if (client)
		load_rrul.client_stop(client, NULL, NULL);
	if (lossy)
		lossy_stop(lossy);
	if (server)
		load_rrul.server_stop(server, NULL);
	client = server = lossy = NULL;
	json_decref(result);
	result = NULL;
	return 0;
}

static void server_start(struct load_config *config)
{
	struct error err = {0};
	int ret;

	assert_int_equal(load_rrul.check(config, &err), 0);
	while ((ret = load_rrul.server_start(config, &place, &server, &err)) == -EADDRINUSE)
		place.port += 8;
	if (ret)
		fail_msg("%s", err.text);
}

static void client_start(struct load_config *config, const struct load_place *to)
{
	struct error err = {0};

	if (load_rrul.client_start(config, to, &client, &err))
		fail_msg("%s", err.text);
}

static int client_stop(struct error *err)
{
	int ret = load_rrul.client_stop(client, &result, err);

	client = NULL;
	assert_non_null(result);
	return ret;
}

static void measure(int64_t duration)
{
	struct error err = {0};

	load_rrul.client_measure(client, duration);
	clock_sleep(duration);
	if (client_stop(&err))
		fail_msg("%s", err.text);
}

static const json_t *at(const json_t *o, const char *key)
{
	const json_t *value = json_object_get(o, key);

	if (!value)
		fail_msg("no key %s", key);
	return value;
}

static uint64_t whole(const json_t *o, const char *key)
{
	assert_true(json_is_integer(at(o, key)));
	return (uint64_t)json_integer_value(at(o, key));
}

static double number(const json_t *o, const char *key)
{
	assert_true(json_is_number(at(o, key)) && isfinite(json_number_value(at(o, key))));
	return json_number_value(at(o, key));
}

static const json_t *step(unsigned i)
{
	return json_array_get(at(result, "steps"), i);
}

/* TCP has come through both ways, in each class, and of the probes some. */
static bool is_known(void)
{
	static const char *const classes[] = {"be", "bk", "cs5", "ef"};
	const json_t *rates = at(step(1), "rates"), *probe = at(at(result, "latency"), "udp_be");
	char name[32];

	for (unsigned i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "%s_%s_mbit", i % 2 ? "up" : "down", classes[i / 2]);
		if (!(json_number_value(json_object_get(rates, name)) > 0))
			return false;
	}
	return whole(probe, "lost") < whole(probe, "n");
}

/*
 * On a busy machine a thread may not run in so short a time, or hear of it too late, which says
 * nothing: then again, for twice as long. How many times as long it was.
 */
static unsigned measure_known(struct load_config *config, const struct load_place *to,
			      int64_t duration)
{
	for (unsigned longer = 1; longer <= 32; longer *= 2) {
		json_decref(result);
		result = NULL;
		client_start(config, to);
		measure(longer * duration);
		if (is_known())
			return longer;
	}
	fail_msg("nothing was measured, though it had seconds");
	return 0;
}

/* Probes of all kinds that there are, by their distributions. */
static uint64_t latencies_sum(const json_t *latency, const char *prefix, const char *key)
{
	uint64_t sum = 0;

	for (unsigned k = 0; k < RRUL_PROBES; k++) {
		char name[32];

		snprintf(name, sizeof(name), "%s%s", prefix, rrul_probe_names[k]);
		if (json_object_get(latency, name))
			sum += whole(at(latency, name), key);
	}
	return sum;
}

static void assert_valid(void)
{
	/* A busy machine makes the sender late; that is all that may be wrong. */
	if (!json_is_true(at(result, "valid")) &&
	    !strstr(json_string_value(at(result, "invalid")), "r was late"))
		fail_msg("%s", json_string_value(at(result, "invalid")));
}

static void idle_and_load_are_apart(void **state)
{
	struct load_config config = config_of();
	const json_t *counts, *load;
	double up = 0, down = 0;
	static const char *const classes[] = {"be", "bk", "cs5", "ef"};
	unsigned longer;

	(void)state;
	config.timeout = 40 * NSEC_PER_SEC; /* a quarter of it may be silent */
	server_start(&config);
	longer = measure_known(&config, &place, 400 * MS);
	assert_valid();
	counts = at(result, "counts");
	assert_int_equal(whole(counts, "sent"), whole(counts, "received") + whole(counts, "lost"));
	assert_int_equal(whole(counts, "bytes_lost"), 0);
	assert_string_equal(json_string_value(at(step(0), "name")), "idle");
	assert_string_equal(json_string_value(at(step(1), "name")), "load");
	assert_true(fabs(number(step(0), "duration_s") - 0.1 * longer) < 1e-9);
	assert_true(fabs(number(step(1), "duration_s") - 0.3 * longer) < 1e-9);
	/* Each probe is in the distribution of its step. */
	for (unsigned i = 0; i < 2; i++) {
		const json_t *own = at(step(i), "counts");
		uint64_t sent = whole(own, "sent"), due = (i ? 60 : 20) * longer;

		assert_int_equal(latencies_sum(at(step(i), "latency"), "", "n"), sent);
		assert_int_equal(latencies_sum(at(step(i), "latency"), "", "lost"),
				 whole(own, "lost"));
		assert_int_equal(latencies_sum(at(result, "latency"), i ? "" : "idle_", "n"), sent);
		/* 20 and 60 of each kind, or times as many, and one more where the time begins with
		 * it. */
		assert_in_range(sent, 3 * (due - 1), 4 * (due + 1));
	}
	/* TCP is silent while it is idle. */
	assert_int_equal(whole(at(step(0), "counts"), "bytes_sent"), 0);
	assert_true(whole(at(step(1), "counts"), "bytes_received") > 0);
	load = at(step(1), "rates");
	for (unsigned c = 0; c < 4; c++) {
		char name[32];

		snprintf(name, sizeof(name), "up_%s_mbit", classes[c]);
		up += number(load, name);
		assert_int_equal(json_array_size(at(at(result, "series"), name)), 20 * longer);
		snprintf(name, sizeof(name), "down_%s_mbit", classes[c]);
		down += number(load, name);
	}
	assert_true(up > 0 && fabs(up - number(load, "up_mbit")) < 1e-3 * up);
	assert_true(down > 0 && fabs(down - number(load, "down_mbit")) < 1e-3 * down);
	assert_non_null(at(at(step(1), "increase"), "udp_ef"));
	assert_int_equal(json_array_size(at(at(result, "series"), "udp_be_ns")), 20 * longer);
}

/* What never comes back is in the distribution, at the time-out. */
static enum lossy_fate drop_background(void *arg, unsigned flow, bool up, const uint8_t *data,
				       size_t size)
{
	struct rrul_message m;

	(void)arg;
	(void)flow;
	if (size != RRUL_PROBE_SIZE)
		return LOSSY_PASS;
	memcpy(&m, data, sizeof(m));
	return !up && ntohl(m.magic) == RRUL_MAGIC && ntohl(m.kind) == RRUL_UDP_BK ? LOSSY_DROP
										   : LOSSY_PASS;
}

static void a_probe_that_is_lost_is_not_forgotten(void **state)
{
	struct load_config config = config_of();
	const json_t *lost, *kept;
	uint64_t timeout = (uint64_t)config.timeout;
	struct load_place through;
	unsigned longer;

	(void)state;
	server_start(&config);
	through = place;
	do
		through.port++;
	while (!(lossy = lossy_start(through.port, place.port, drop_background, NULL)));
	longer = measure_known(&config, &through, 400 * MS);
	assert_valid();
	lost = at(at(result, "latency"), "udp_bk");
	assert_true(whole(lost, "n") >= 60 * longer - 1);
	assert_int_equal(whole(lost, "lost"), whole(lost, "n"));
	assert_int_equal(whole(lost, "min"), timeout);
	assert_int_equal(whole(lost, "max"), timeout);
	assert_int_equal(whole(lost, "p50"), timeout);
	kept = at(at(result, "latency"), "udp_be");
	assert_true(whole(kept, "lost") < whole(kept, "n"));
	assert_true(whole(kept, "min") < timeout);
	assert_int_equal(whole(at(result, "counts"), "lost"),
			 latencies_sum(at(result, "latency"), "", "lost") +
				 latencies_sum(at(result, "latency"), "idle_", "lost"));
	/* Both medians are the time-out, so the load has not raised it. */
	assert_int_equal(whole(at(step(1), "increase"), "udp_bk"), 0);
}

static void flows_beyond_four_are_shown_apart(void **state)
{
	struct load_config config = config_of();

	(void)state;
	config.tcp_flows = 6;
	config.idle = 20 * MS;
	server_start(&config);
	measure_known(&config, &place, 200 * MS);
	assert_valid();
	assert_true(fabs(number(step(0), "duration_s") - 0.02) < 1e-9);
	assert_non_null(at(at(result, "series"), "up_5_bk_mbit"));
	assert_non_null(at(at(result, "series"), "down_0_be_mbit"));
	assert_true(number(at(result, "rates"), "up_bk_mbit") > 0);
}

static void nothing_measured_is_null(void **state)
{
	struct load_config config = config_of();
	struct error err = {0};

	(void)state;
	server_start(&config);
	client_start(&config, &place);
	assert_int_equal(client_stop(&err), 0);
	assert_true(json_is_false(at(result, "valid")));
	assert_string_equal(json_string_value(at(result, "invalid")), "nothing was measured");
	assert_true(json_is_null(at(at(result, "rates"), "up_mbit")));
	assert_int_equal(whole(at(at(result, "latency"), "udp_be"), "n"), 0);
	assert_true(json_is_null(at(at(step(1), "increase"), "udp_be")));
}

static void an_early_stop_keeps_what_there_is(void **state)
{
	struct load_config config = config_of();
	struct load_progress progress = {0};
	struct error err = {0};

	(void)state;
	server_start(&config);
	client_start(&config, &place);
	load_rrul.client_measure(client, 3600 * NSEC_PER_SEC);
	/* These are of the steps. */
	for (int i = 0; i < 6000 && !progress.done; i++) {
		clock_sleep(10 * MS);
		load_rrul.client_progress(client, &progress);
	}
	assert_int_equal(client_stop(&err), 0);
	assert_true(json_is_false(at(result, "valid")));
	assert_non_null(strstr(json_string_value(at(result, "invalid")), "stopped after"));
	assert_true(whole(at(result, "counts"), "sent") > 0);
	assert_int_equal(whole(at(result, "counts"), "sent"),
			 whole(at(result, "counts"), "received") +
				 whole(at(result, "counts"), "lost"));
	assert_true(json_is_null(at(at(step(1), "rates"), "up_mbit")));
}

static void a_killed_server_ends_the_run(void **state)
{
	struct load_config config = config_of();
	struct load_progress progress = {0};
	struct error err = {0};
	int up[2];
	pid_t pid;

	(void)state;
	config.idle = 10 * MS;
	assert_int_equal(load_rrul.check(&config, &err), 0);
	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (!pid) {
		server_start(&config);
		if (write(up[1], &place.port, sizeof(place.port)) == sizeof(place.port))
			pause();
		_exit(1);
	}
	assert_int_equal(read(up[0], &place.port, sizeof(place.port)), sizeof(place.port));
	close(up[0]);
	close(up[1]);
	client_start(&config, &place);
	load_rrul.client_measure(client, 3600 * NSEC_PER_SEC);
	clock_sleep(50 * MS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* Nobody reflects UDP probes any more. */
	for (int i = 0; i < 6000 && !progress.lost; i++) {
		clock_sleep(10 * MS);
		load_rrul.client_progress(client, &progress);
	}
	assert_int_equal(client_stop(&err), -ECONNRESET);
	assert_true(json_is_false(at(result, "valid")));
	assert_non_null(strstr(json_string_value(at(result, "invalid")), "server"));
	assert_true(json_is_null(at(at(result, "rates"), "up_mbit")));
	/* UDP probes after it are lost, each of them. */
	assert_int_equal(whole(at(result, "counts"), "sent"),
			 whole(at(result, "counts"), "received") +
				 whole(at(result, "counts"), "lost"));
	assert_true(whole(at(result, "counts"), "lost") > 0);
}

static void other_parameters_are_refused(void **state)
{
	struct load_config config = config_of();
	struct error err = {0};

	(void)state;
	server_start(&config);
	config.tcp_flows = 8;
	assert_int_equal(load_rrul.client_start(&config, &place, &client, &err), -EPROTO);
	client = NULL;
	assert_non_null(strstr(err.text, "tcp_flows"));
}

static void threads_are_told(void **state)
{
	struct load_config config = config_of();
	pid_t tids[LOAD_TIDS_MAX];
	struct load_progress progress = {0};
	json_t *read;

	(void)state;
	server_start(&config);
	client_start(&config, &place);
	/* Two that send, two that receive, and the one with the probes. */
	assert_int_equal(load_rrul.client_threads(client, tids), 5);
	assert_int_equal(load_rrul.server_threads(server, tids), 3);
	load_rrul.client_measure(client, 3600 * NSEC_PER_SEC);
	for (int i = 0; i < 6000 && !progress.done; i++) {
		clock_sleep(10 * MS);
		load_rrul.client_progress(client, &progress);
	}
	assert_true(progress.done > 0);
	assert_string_equal(progress.unit, "probes");
	read = load_rrul.server_read(server);
	assert_true(whole(at(read, "counts"), "probes") > 0);
	json_decref(read);
}

static void what_cannot_be_is_named(void **state)
{
	struct load_config config = config_of();
	struct error err = {0};

	(void)state;
	config.tcp_flows = 65;
	assert_int_equal(load_rrul.check(&config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "tcp_flows"));
	config = config_of();
	config.probe_rate = 10001;
	assert_int_equal(load_rrul.check(&config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "probe_rate"));
	config.probe_rate = NAN;
	assert_int_equal(load_rrul.check(&config, &err), -EINVAL);
	config = (struct load_config){.kind = LOAD_RRUL};
	assert_int_equal(load_rrul.check(&config, &err), 0);
	assert_int_equal(config.tcp_flows, 4);
	assert_true(config.probe_rate == 5);
	assert_int_equal(config.sizes, 1);
}

/* ---- parts ---- */

static int class_received(int fd, uint8_t data[RRUL_PROBE_SIZE])
{
	_Alignas(struct cmsghdr) char options[64];
	struct iovec iov = {data, RRUL_PROBE_SIZE};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = options,
				 .msg_controllen = sizeof(options)};
	struct cmsghdr *option;

	assert_int_equal(recvmsg(fd, &message, 0), RRUL_PROBE_SIZE);
	option = CMSG_FIRSTHDR(&message);
	assert_non_null(option);
	assert_int_equal(option->cmsg_type, IP_TOS);
	return *CMSG_DATA(option);
}

static void probes_come_back_in_their_class(void **state)
{
	static const int classes[] = {0, 0x20, 0xb8};
	struct load_config config = config_of();
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct rrul_message m = {.magic = htonl(RRUL_MAGIC)};
	uint8_t data[RRUL_PROBE_SIZE] = {0}, back[RRUL_PROBE_SIZE];
	struct rrul_echo *echo;
	struct error err = {0};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), one = 1, ret;

	(void)state;
	while ((ret = rrul_echo_start(&config, &place, &echo, &err)) == -EADDRINUSE)
		place.port += 8;
	assert_int_equal(ret, 0);
	inet_pton(AF_INET, place.address, &to.sin_addr);
	to.sin_port = htons(place.port);
	assert_int_equal(connect(fd, (void *)&to, sizeof(to)), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one)), 0);
	/* What is no probe is not answered. */
	assert_int_equal(send(fd, data, sizeof(data), 0), sizeof(data));
	for (unsigned i = 0; i < 3; i++) {
		m.number = htonl(i);
		memcpy(data, &m, sizeof(m));
		assert_int_equal(
			setsockopt(fd, IPPROTO_IP, IP_TOS, &classes[i], sizeof(classes[i])), 0);
		assert_int_equal(send(fd, data, sizeof(data), 0), sizeof(data));
		assert_int_equal(class_received(fd, back), classes[i]);
		assert_memory_equal(back, data, sizeof(data));
	}
	assert_int_equal(rrul_echo_probes(echo), 3);
	assert_true(rrul_echo_thread(echo) > 0);
	rrul_echo_stop(echo);
	close(fd);
}

/* Control is off its CPU while it chooses the start: what is due meanwhile is of the step. */
static void what_is_due_while_it_starts_counts(void **state)
{
	struct load_config config = config_of();
	int64_t start, end[RRUL_STEPS];
	struct rrul_probe *probe;
	struct rrul_echo *echo;
	struct error err = {0};
	int ret;

	(void)state;
	config.timeout = 60 * NSEC_PER_SEC;
	while ((ret = rrul_echo_start(&config, &place, &echo, &err)) == -EADDRINUSE)
		place.port += 8;
	assert_int_equal(ret, 0);
	assert_int_equal(rrul_probe_start(&config, &place, &probe, &err), 0);
	rrul_probe_starting(probe);
	start = clock_now();
	clock_sleep(200 * MS);
	end[RRUL_IDLE] = 0;
	end[RRUL_LOAD] = 100 * MS;
	rrul_probe_measure(probe, start, end);
	rrul_probe_end(probe);
	rrul_probe_join(probe);
	/* 20 in 100 ms, and one more where the time begins with it. */
	for (unsigned i = 0; i < RRUL_ICMP; i++)
		assert_in_range(rrul_probe_tally(probe, i, RRUL_LOAD)->sent, 19, 21);
	rrul_probe_free(probe);
	rrul_echo_stop(echo);
}

static void pings_are_answered(void **state)
{
	struct stream_address to;
	struct rrul_ping ping;
	struct error err = {0};
	uint8_t data[RRUL_PROBE_SIZE], back[RRUL_PROBE_SIZE];
	bool more, come = false;
	int ret;

	(void)state;
	assert_int_equal(side_address(&place, 0, &to.at, &to.length, &err), 0);
	ret = rrul_ping_open(&place, &to, &ping);
	if (ret == -EACCES || ret == -EPERM) {
		printf("skipped: ICMP takes CAP_NET_RAW or a group in ping_group_range\n");
		skip();
	}
	assert_int_equal(ret, 0);
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + getpid());
	assert_int_equal(rrul_ping_send(&ping, 7, data), 0);
	for (int i = 0; i < 6000 && !come; i++) {
		struct pollfd p = {.fd = ping.fd, .events = POLLIN};

		poll(&p, 1, 10);
		do
			come = rrul_ping_receive(&ping, back, sizeof(back), &more) &&
			       !memcmp(back, data, sizeof(data));
		while (more && !come);
	}
	assert_true(come);
	close(ping.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_killed_server_ends_the_run, run_stop),
		cmocka_unit_test_teardown(idle_and_load_are_apart, run_stop),
		cmocka_unit_test_teardown(a_probe_that_is_lost_is_not_forgotten, run_stop),
		cmocka_unit_test_teardown(flows_beyond_four_are_shown_apart, run_stop),
		cmocka_unit_test_teardown(nothing_measured_is_null, run_stop),
		cmocka_unit_test_teardown(an_early_stop_keeps_what_there_is, run_stop),
		cmocka_unit_test_teardown(other_parameters_are_refused, run_stop),
		cmocka_unit_test_teardown(threads_are_told, run_stop),
		cmocka_unit_test_teardown(what_cannot_be_is_named, run_stop),
		cmocka_unit_test(probes_come_back_in_their_class),
		cmocka_unit_test(what_is_due_while_it_starts_counts),
		cmocka_unit_test(pings_are_answered),
	};

	loopback_address(place.address, sizeof(place.address));
	place.port = (uint16_t)(20000 + getpid() % 10000);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
