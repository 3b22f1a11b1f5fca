/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * napier run --host: the kernel's stack of the inner namespace gets its traffic through napier,
 *
 *	10.9.8.1 fd09::1 out -- in0  napier  in0h 10.9.8.2 fd09::2
 *
 * and the program is unmodified: ordinary sockets, and what the kernel itself answers.
 */
#include "host_rig.h"

#include "traffic.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool note_there(const struct command_rig *rig)
{
	struct stat st;
	char path[96];

	snprintf(path, sizeof(path), "%s/default/hosted-p0", rig->base);
	return !stat(path, &st);
}

static void reaches(struct command_rig *rig)
{
	assert_true(echoes(&rig->links, peer_ns(rig), HOST, 56));
	assert_true(echoes(&rig->links, host_ns(rig), PEER, 56));
	assert_true(echoes(&rig->links, peer_ns(rig), HOST6, 56));
	assert_true(echoes(&rig->links, host_ns(rig), PEER6, 56));
}

/* All is at the TAP, and nothing at the wire; and all is back as it was, however it ends. */
static void moves_and_returns(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;
	char *before, *during, *after;

	configure(rig);
	before = dump(rig, "in0");
	for (int way = 0; way < 4; way++) {
		host_start(rig, &engine, "");
		during = dump(rig, "in0h");
		assert_same(before, during);
		free(during);
		host_run(rig, "[ -z \"$(ip addr show dev in0 | grep inet)\" ]");
		host_run(rig, "[ -z \"$(ip neigh show dev in0 nud permanent)\" ]");
		host_run(rig, "[ $(cat /proc/sys/net/ipv4/conf/in0h/proxy_arp) = 1 ] && "
			      "[ $(cat /proc/sys/net/ipv4/neigh/in0h/gc_stale_time) = 55 ] && "
			      "ip link show in0h | grep -q 'mtu 1450 '");
		assert_true(note_there(rig));
		reaches(rig);
		if (way == 0)
			engine_signal(rig, &engine, SIGINT);
		else if (way == 1)
			assert_int_equal(napier(rig, &p, "stop --run-dir %s", rig->base), 0);
		else
			engine_signal(rig, &engine, SIGKILL);
		if (way == 1) {
			rig->engine = 0;
			process_end(&engine);
		}
		if (way < 2) {
			assert_int_equal(engine.status, 0);
			assert_false(note_there(rig));
			assert_non_null(strstr(engine.err, " of in0h are at in0 now"));
			assert_null(strstr(engine.err, "cannot be moved"));
			after = dump(rig, "in0");
			assert_same(before, after);
			free(after);
		} else {
			assert_true(note_there(rig));
		}
	}
	/* What was killed is put back by napier stop, */
	assert_int_equal(napier(rig, &p, "stop --run-dir %s", rig->base), 0);
	assert_non_null(strstr(p.err, "put back after a killed engine"));
	assert_false(note_there(rig));
	after = dump(rig, "in0");
	assert_same(before, after);
	free(after);
	assert_int_equal(napier(rig, &p, "stop --run-dir %s", rig->base), 1);
	/* and by the start of one of another name, which hosts nothing. */
	host_start(rig, &engine, "");
	engine_signal(rig, &engine, SIGKILL);
	engine_start(rig, &engine, "run --run-dir %s --name other mem:a", rig->base);
	after = dump(rig, "in0");
	assert_same(before, after);
	free(after);
	assert_false(note_there(rig));
	engine_stop(rig, &engine);
	assert_non_null(strstr(engine.err, "put back after a killed engine"));
	free(before);
}

/* The kernel answers for the host, and asks for it, by ARP and by neighbour discovery. */
static void neighbours_are_found(void **state)
{
	struct command_rig *rig = *state;
	struct process engine;

	configure(rig);
	host_start(rig, &engine, "");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(netns_run(&rig->links, peer_ns(rig), "ip neigh flush all"), 0);
		host_run(rig, "ip neigh flush all");
		assert_true(
			echoes(&rig->links, i ? peer_ns(rig) : host_ns(rig), i ? HOST : PEER, 1));
		assert_int_equal(netns_run(&rig->links, peer_ns(rig), "ip neigh flush all"), 0);
		host_run(rig, "ip neigh flush all");
		assert_true(
			echoes(&rig->links, i ? peer_ns(rig) : host_ns(rig), i ? HOST6 : PEER6, 1));
	}
	/* The address by which the kernel answers a broadcast, and all nodes. */
	assert_true(echoes(&rig->links, peer_ns(rig), HOST_LABELLED, 1000));
	engine_stop(rig, &engine);
}

static void carries(void **state)
{
	static const uint32_t sizes[] = {1,	2,     17,    100,   1000,  1394, 1395, 1421,
					 1422,	1423,  1472,  1473,  2000,  2844, 4000, 9000,
					 16000, 32000, 33333, 60000, 64999, 65000};
	const uint32_t n = sizeof(sizes) / sizeof(*sizes);
	struct command_rig *rig = *state;
	struct process engine;
	const uint64_t bytes = 64 << 20;

	configure(rig);
	host_start(rig, &engine, "");
	stream_run(&rig->links, peer_ns(rig), host_ns(rig), HOST, bytes);
	stream_run(&rig->links, host_ns(rig), peer_ns(rig), PEER, bytes);
	stream_run(&rig->links, peer_ns(rig), host_ns(rig), HOST6, bytes);
	stream_run(&rig->links, host_ns(rig), peer_ns(rig), PEER6, bytes);
	datagrams_run(&rig->links, peer_ns(rig), host_ns(rig), HOST, sizes, n);
	datagrams_run(&rig->links, host_ns(rig), peer_ns(rig), PEER, sizes, n);
	datagrams_run(&rig->links, peer_ns(rig), host_ns(rig), HOST6, sizes, n);
	datagrams_run(&rig->links, host_ns(rig), peer_ns(rig), PEER6, sizes, n);
	for (uint32_t size = 1400; size < 1460; size += 7)
		assert_true(echoes(&rig->links, peer_ns(rig), HOST, size));
	engine_stop(rig, &engine);
}

/* Connections that were there before, while the host is moved there and back, and killed. */
static void connections_live_on(void **state)
{
	struct command_rig *rig = *state;
	struct stream in, in6, out;
	struct process engine;

	configure(rig);
	stream_begin(&rig->links, peer_ns(rig), host_ns(rig), HOST, 0, &in);
	stream_begin(&rig->links, peer_ns(rig), host_ns(rig), HOST6, 0, &in6);
	stream_begin(&rig->links, host_ns(rig), peer_ns(rig), PEER, 0, &out);
	for (int i = 0; i < 3; i++) {
		host_start(rig, &engine, "");
		usleep(300000);
		if (i == 1)
			engine_signal(rig, &engine, SIGKILL);
		else
			engine_stop(rig, &engine);
		usleep(100000);
	}
	stream_end(&in);
	stream_end(&in6);
	stream_end(&out);
}

/* Waits, bounded, until a port has sent more than so many. */
static void sent_wait(struct command_rig *rig, const char *port, long long n)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	long long sent = 0;

	for (int i = 0; i < NETNS_SECONDS * 20 && sent <= n; i++) {
		json_t *view = show_json(rig, "");

		sent = number(find(view, "ports", "name", port), "tx_packets");
		json_decref(view);
		if (sent <= n)
			nanosleep(&pause, NULL);
	}
	assert_true(sent > n);
}

/* Both ports, through all pollers, under load in both directions. */
static void pollers_switch(void **state)
{
	static const char *const pollers[] = {"thread", "workqueue", "busy-poll", "softirq"};
	struct command_rig *rig = *state;
	struct stream in, out;
	struct process engine, p;
	json_t *view;

	configure(rig);
	host_start(rig, &engine, "");
	stream_begin(&rig->links, peer_ns(rig), host_ns(rig), HOST, 0, &in);
	stream_begin(&rig->links, host_ns(rig), peer_ns(rig), PEER6, 0, &out);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(
			napier(rig, &p, "set --run-dir %s p0 poller=%s", rig->base, pollers[i % 4]),
			0);
		usleep(50000);
		assert_int_equal(napier(rig, &p, "set --run-dir %s in0h poller=%s", rig->base,
					pollers[i % 4]),
				 0);
		usleep(50000);
	}
	sent_wait(rig, "in0h", 100);
	stream_end(&in);
	stream_end(&out);
	view = show_json(rig, "");
	assert_string_equal(text(find(view, "napis", "port", "in0h"), "poller"), "softirq");
	json_decref(view);
	engine_stop(rig, &engine);
}

static void queues_are_as_many(void **state)
{
	struct command_rig *rig = *state;
	struct process engine;
	json_t *view;

	host_run(rig,
		 "ip link del in0 && ip link add in0 numrxqueues 3 numtxqueues 3 type veth "
		 "peer name out numrxqueues 3 numtxqueues 3 netns %s && ip link set in0 up",
		 rig->links.lab->namespace[peer_ns(rig)].name);
	assert_int_equal(netns_run(&rig->links, peer_ns(rig), "ip link set out up"), 0);
	configure(rig);
	host_start(rig, &engine, ",host=lan");
	view = show_json(rig, "");
	assert_int_equal(number(find(view, "ports", "name", "lan"), "queues"), 3);
	assert_int_equal(number(find(view, "ports", "name", "p0"), "queues"), 3);
	json_decref(view);
	for (int i = 0; i < 8; i++)
		stream_run(&rig->links, i % 2 ? host_ns(rig) : peer_ns(rig),
			   i % 2 ? peer_ns(rig) : host_ns(rig), i % 2 ? PEER : HOST, 1 << 20);
	host_run(rig, "ip addr show dev lan | grep -q " HOST);
	engine_stop(rig, &engine);
}

static void follows_the_wire(void **state)
{
	struct command_rig *rig = *state;
	struct process engine;
	char *before, *during, line[100];

	configure(rig);
	before = dump(rig, "in0");
	host_start(rig, &engine, "");
	host_run(rig, "ip link set in0 mtu 1300");
	host_eventually(rig, "ip link show in0h | grep -q 'mtu 1300 '");
	host_run(rig, "ip link set in0 mtu 1450");
	host_eventually(rig, "ip link show in0h | grep -q 'mtu 1450 '");
	/* Another MAC, and the one it had, as the kernel makes an address of each. */
	host_run(rig,
		 "ip link show in0 | sed -n 's/.*ether \\([^ ]*\\).*/\\1/p' > %s/mac && "
		 "ip link set in0 address 02:00:00:00:0a:0b",
		 rig->base);
	host_eventually(rig, "ip link show in0h | grep -q 02:00:00:00:0a:0b");
	reaches(rig);
	host_run(rig, "ip link set in0 address $(cat %s/mac)", rig->base);
	snprintf(line, sizeof(line), "ip link show in0h | grep -qf %s/mac", rig->base);
	host_eventually(rig, line);
	assert_int_equal(shell("rm %s/mac", rig->base), 0);
	/* Down by either end, and up again. */
	assert_int_equal(netns_run(&rig->links, peer_ns(rig), "ip link set out down"), 0);
	host_eventually(rig, "ip link show in0h | grep -q NO-CARRIER");
	assert_int_equal(netns_run(&rig->links, peer_ns(rig),
				   "ip link set out up && ip addr replace " PEER6 "/64 dev out "
				   "nodad"),
			 0);
	host_eventually(rig, "ip link show in0h | grep -q LOWER_UP");
	host_run(rig, "ip link set in0 down");
	host_eventually(rig, "ip link show in0h | grep -q NO-CARRIER");
	host_run(rig, "ip link set in0 up");
	host_eventually(rig, "ip link show in0h | grep -q LOWER_UP");
	state_wait(rig, "in0h", "up");
	reaches(rig);
	host_run(rig, "[ -z \"$(ip addr show dev in0 | grep inet)\" ]");
	during = dump(rig, "in0h");
	assert_same(before, during);
	free(during);
	engine_stop(rig, &engine);
	during = dump(rig, "in0");
	assert_same(before, during);
	free(during);
	free(before);
}

/* The wire goes and is another interface when it comes back: the host's addresses wait for it. */
static void wire_goes_and_returns(void **state)
{
	struct command_rig *rig = *state;
	struct process engine;
	char *before, *now;

	configure(rig);
	before = dump(rig, "in0");
	host_start(rig, &engine, "");
	host_run(rig, "ip link del in0");
	state_wait(rig, "p0", "gone");
	host_eventually(rig, "ip link show in0h | grep -q NO-CARRIER");
	now = dump(rig, "in0h");
	assert_non_null(strstr(now, HOST));
	assert_non_null(strstr(now, HOST6));
	free(now);
	host_run(rig,
		 "ip link add in0 mtu 1450 type veth peer name out netns %s && "
		 "ip link set in0 up",
		 rig->links.lab->namespace[peer_ns(rig)].name);
	assert_int_equal(netns_run(&rig->links, peer_ns(rig),
				   "ip link set out mtu 1450 up; ip addr add " PEER "/24 dev out; "
				   "ip addr add " PEER6 "/64 dev out nodad"),
			 0);
	state_wait(rig, "p0", "up");
	host_eventually(rig, "ip link show in0h | grep -q LOWER_UP");
	state_wait(rig, "in0h", "up");
	reaches(rig);
	engine_stop(rig, &engine);
	host_run(rig, "ip addr show dev in0 | grep -q " HOST "/24 && "
		      "ip route show default | grep -q 'via " PEER " dev in0' && "
		      "ip -6 route show default | grep -q 'via " PEER6 " dev in0'");
	free(before);
}

static void tap_is_made_again(void **state)
{
	struct command_rig *rig = *state;
	struct process engine;
	char *before, *now;

	configure(rig);
	before = dump(rig, "in0");
	host_start(rig, &engine, "");
	host_run(rig, "ip link del in0h");
	host_eventually(rig, "ip addr show dev in0h 2> /dev/null | grep -q " HOST);
	state_wait(rig, "in0h", "up");
	reaches(rig);
	engine_stop(rig, &engine);
	now = dump(rig, "in0");
	assert_same(before, now);
	free(now);
	free(before);
}

/* Added to an engine that runs, and removed while it goes on. */
static void comes_and_goes_live(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;
	char *before, *now, spec[256];
	struct stream stream;

	configure(rig);
	before = dump(rig, "in0");
	stream_begin(&rig->links, peer_ns(rig), host_ns(rig), HOST, 0, &stream);
	engine_start(rig, &engine, "run --run-dir %s mem:a", rig->base);
	netns_spec(&rig->links, 0, "xdp", ",host=yes", spec);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			napier(rig, &p, "port --run-dir %s add %s poller=thread", rig->base, spec),
			0);
		assert_non_null(strstr(p.out, ", this host by in0h\n"));
		reaches(rig);
		/* What is added meanwhile goes along. */
		if (i == 2)
			host_run(rig, "ip addr add 10.9.6.1/24 dev in0h");
		assert_int_equal(napier(rig, &p, "port --run-dir %s remove in0h", rig->base), 1);
		assert_string_equal(p.err,
				    "napier: in0h goes with its wire: napier port remove p0\n");
		assert_int_equal(napier(rig, &p, "port --run-dir %s remove p0", rig->base), 0);
		if (i == 2)
			host_run(rig, "ip addr del 10.9.6.1/24 dev in0");
		now = dump(rig, "in0");
		assert_same(before, now);
		free(now);
	}
	engine_stop(rig, &engine);
	stream_end(&stream);
	free(before);
}

static void refused(struct command_rig *rig, const char *options, const char *says)
{
	char spec[256];
	struct process p;

	netns_spec(&rig->links, 0, "xdp", options, spec);
	assert_int_equal(
		napier(rig, &p, "run --run-dir %s --name second --host %s", rig->base, spec), 1);
	if (!strstr(p.err, says))
		fail_msg("\"%s\" is not in \"%s\"", says, p.err);
}

static void refuses(void **state)
{
	struct command_rig *rig = *state;
	struct process engine;
	char *before, *now;

	configure(rig);
	host_run(rig, "ip link add name br0 type bridge && ip link set in0 master br0");
	refused(rig, "", "in0 belongs to br0");
	host_run(rig, "ip link del br0 && ip link add link in0 name above type macvlan");
	refused(rig, "", "above stands on in0");
	host_run(rig, "ip link del above");
	before = dump(rig, "in0");
	refused(rig, ",host=in1", "there is an interface in1 already");
	refused(rig, ",mode=native,queues=9", "queues=9");
	host_start(rig, &engine, "");
	refused(rig, ",host=other", "has an XDP program already");
	reaches(rig);
	engine_stop(rig, &engine);
	now = dump(rig, "in0");
	assert_same(before, now);
	free(now);
	free(before);
}

/* The wire is open and the TAP made when there is no room for the TAP's queue. */
static void a_late_failure_leaves_nothing(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;
	char *before, *now, spec[256];

	configure(rig);
	before = dump(rig, "in0");
	netns_spec(&rig->links, 0, "xdp", ",host=yes", spec);
	engine_start(rig, &engine,
		     "run --run-dir %s mem:a,queues=64 mem:b,queues=64 mem:c,queues=64 "
		     "mem:d,queues=63",
		     rig->base);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(napier(rig, &p, "port add --run-dir %s %s", rig->base, spec), 1);
		assert_non_null(strstr(p.err, "no room for another queue"));
		host_run(rig, "! ip link show in0h 2>/dev/null");
		assert_false(note_there(rig));
		now = dump(rig, "in0");
		assert_same(before, now);
		free(now);
	}
	assert_int_equal(napier(rig, &p, "port remove --run-dir %s a", rig->base), 0);
	assert_int_equal(napier(rig, &p, "port add --run-dir %s %s", rig->base, spec), 0);
	reaches(rig);
	engine_stop(rig, &engine);
	host_run(rig, "! ip link show in0h 2>/dev/null");
	now = dump(rig, "in0");
	assert_same(before, now);
	free(now);
	free(before);
}

/* An interface without addresses is hosted, and given some at its TAP. */
static void without_addresses(void **state)
{
	struct command_rig *rig = *state;
	struct process engine;

	assert_int_equal(netns_run(&rig->links, peer_ns(rig), "ip addr add " PEER "/24 dev out"),
			 0);
	host_start(rig, &engine, "");
	host_run(rig, "ip addr add " HOST "/24 dev in0h");
	assert_true(echoes(&rig->links, peer_ns(rig), HOST, 56));
	engine_stop(rig, &engine);
	assert_non_null(strstr(engine.err, "has no addresses to move"));
	host_run(rig, "ip addr show dev in0 | grep -q " HOST "/24");
	assert_true(echoes(&rig->links, peer_ns(rig), HOST, 56));
}

/* All that it had is taken from the TAP: that does not come back with the wire. */
static void what_is_taken_stays_away(void **state)
{
	struct command_rig *rig = *state;
	struct process engine;

	host_run(rig, "ip addr add " HOST "/24 dev in0");
	host_start(rig, &engine, "");
	host_run(rig, "ip addr flush dev in0h");
	engine_stop(rig, &engine);
	host_run(rig, "[ -z \"$(ip addr show dev in0 | grep inet)\" ]");
}

#define WEB_BYTES 40000000

/* A web server and a client as they are, a file of some size. */
static void web_server(void **state)
{
	struct command_rig *rig = *state;
	struct process engine;
	char path[64], sum[200];

	if (shell("command -v python3 curl sha256sum > /dev/null")) {
		printf("  skipped: needs python3 and curl\n");
		skip();
	}
	configure(rig);
	snprintf(path, sizeof(path), "%s/www", rig->base);
	assert_int_equal(shell("mkdir %s && head -c %d /dev/urandom > %s/file && "
			       "sha256sum < %s/file > %s/sum",
			       path, WEB_BYTES, path, path, path),
			 0);
	host_start(rig, &engine, "");
	snprintf(sum, sizeof(sum), "%s/sum", path);
	assert_int_equal(netns_run(&rig->links, host_ns(rig),
				   "python3 -m http.server -d %s --bind " HOST
				   " 8000 > /dev/null 2>&1 & "
				   "echo $! > %s/pid",
				   path, path),
			 0);
	assert_int_equal(netns_run(&rig->links, peer_ns(rig),
				   "curl -s -S --retry 50 --retry-connrefused --retry-delay 1 "
				   "--noproxy '*' --max-time 100 http://" HOST
				   ":8000/file | sha256sum | cmp - %s",
				   sum),
			 0);
	shell("kill $(cat %s/pid); rm -r %s", path, path);
	engine_stop(rig, &engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		command_test(moves_and_returns), command_test(neighbours_are_found),
		command_test(carries),		 command_test(connections_live_on),
		command_test(pollers_switch),	 command_test(queues_are_as_many),
		command_test(follows_the_wire),	 command_test(wire_goes_and_returns),
		command_test(tap_is_made_again), command_test(comes_and_goes_live),
		command_test(refuses),		 command_test(a_late_failure_leaves_nothing),
		command_test(without_addresses), command_test(what_is_taken_stays_away),
		command_test(web_server),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
