/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole of the command: a bridge whose polling moves, and rebalance, port and stop. */
#include "command_rig.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* "a/0 poller thread (was softirq), 41 us\n", whatever the time. */
static void assert_switched(const char *line, const char *before)
{
	char *end;

	assert_memory_equal(line, before, strlen(before));
	strtod(line + strlen(before), &end);
	assert_true(end > line + strlen(before));
	assert_true(!strcmp(end, " us\n") || !strcmp(end, " ms\n") || !strcmp(end, " ns\n"));
}

/* Bridges two links, moves its polling while it does, and ends by Ctrl-C. */
static void bridge_moves(struct command_rig *rig, const char *kind)
{
	struct process engine, p;
	json_t *view, *o;

	for (int i = 0; i < 2; i++)
		netns_spec(&rig->links, i, kind, "", rig->spec[i]);
	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	assert_int_equal(netns_cross(&rig->links, 0, 2000, 60), 2000);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 poller=thread", rig->base), 0);
	assert_switched(p.out, "p0/0 poller thread (was softirq), ");
	assert_int_equal(netns_cross(&rig->links, 0, 2000, 60), 2000);
	assert_int_equal(netns_cross(&rig->links, 1, 500, 1514), 500);
	assert_int_equal(napier(rig, &p, "show --fdb --run-dir %s", rig->base), 0);
	assert_memory_equal(p.out, "ADDRESS            VLAN  PORT  AGE\n", 35);
	assert_non_null(strstr(p.out, "02:00:00:00:00:0a     -  p0    "));
	assert_non_null(strstr(p.out, "02:00:00:00:00:0b     -  p1    "));
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0/0 poller=thread", rig->base), 0);
	assert_string_equal(p.out, "p0/0 poller thread\n");

	packets_wait(rig, "", "p0", "rx_packets", 4000);
	packets_wait(rig, "", "p0", "tx_packets", 500);
	view = show_json(rig, "");
	assert_string_equal(text(json_object_get(view, "engine"), "name"), "default");
	assert_int_equal(number(json_object_get(view, "engine"), "pid"), engine.pid);
	o = find(view, "ports", "name", "p0");
	assert_string_equal(text(o, "state"), "up");
	o = find(view, "napis", "port", "p0");
	assert_string_equal(text(o, "poller"), "thread");
	assert_string_equal(text(json_object_get(o, "thread"), "name"), "napi/p0-0");
	json_decref(view);

	engine_signal(rig, &engine, SIGINT);
	assert_int_equal(engine.status, 0);
	assert_non_null(strstr(engine.out, "received 4500 + cloned "));
	assert_null(strstr(engine.err, "error"));
}

static void bridge_moves_packet(void **state)
{
	bridge_moves(*state, "packet");
}

static void bridge_moves_xdp(void **state)
{
	bridge_moves(*state, "xdp");
}

static void tells_about_itself(void **state)
{
	static const char *const commands[] = {"run", "show", "set", "rebalance", "port", "stop"};
	struct command_rig *rig = *state;
	struct process p;

	assert_int_equal(napier(rig, &p, "--version"), 0);
	assert_string_equal(p.out, "napier " VERSION "\n");
	assert_int_equal(napier(rig, &p, "--help"), 0);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		char begin[64];

		assert_non_null(strstr(p.out, commands[i]));
		snprintf(begin, sizeof(begin), "Usage: napier %s ", commands[i]);
		assert_int_equal(napier(rig, &p, "%s --help", commands[i]), 0);
		assert_memory_equal(p.out, begin, strlen(begin));
		assert_null(strchr(p.out, '\033')); /* no colour into a file */
		assert_int_equal(napier(rig, &p, "--help"), 0);
	}
}

/* Traffic both ways, from a process of its own, until that is killed. */
static pid_t traffic_start(struct command_rig *rig)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		netns_cross(&rig->links, 0, 1000, 60);
		netns_cross(&rig->links, 1, 1000, 60);
	}
}

/* What a person put on one CPU stays there, and goes elsewhere with --force, when it is loaded. */
static void rebalances(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;
	size_t moved = 0;
	pid_t child;

	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	assert_int_equal(napier(rig, &p, "rebalance --dry-run -i 0.1 --run-dir %s", rig->base), 0);
	assert_non_null(strstr(p.out, "nothing to gain"));
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 cpu=0", rig->base), 0);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p1 cpu=0", rig->base), 0);
	child = traffic_start(rig);
	assert_int_equal(napier(rig, &p, "rebalance -i 0.2 --run-dir %s", rig->base), 0);
	assert_non_null(strstr(p.out, "nothing to gain"));
	for (int i = 0; i < 200 && !moved && sysconf(_SC_NPROCESSORS_ONLN) > 1; i++) {
		json_t *o, *view;

		assert_int_equal(
			napier(rig, &p, "rebalance -j --force -i 0.2 --run-dir %s", rig->base), 0);
		o = json_loads(p.out, 0, NULL);
		assert_non_null(o);
		view = show_json(rig, "");
		moved = (number(find(view, "napis", "port", "p0"), "cpu") != 0) +
			(number(find(view, "napis", "port", "p1"), "cpu") != 0);
		assert_int_equal(json_array_size(json_object_get(o, "moves")), moved);
		assert_int_equal(json_is_true(json_object_get(o, "made")), moved != 0);
		json_decref(view);
		json_decref(o);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(moved || sysconf(_SC_NPROCESSORS_ONLN) == 1);
	assert_int_equal(napier(rig, &p, "rebalance x --run-dir %s", rig->base), 2);
	assert_string_equal(p.err, "napier: rebalance: too many arguments\n");
	engine_stop(rig, &engine);
}

static void assert_state(struct command_rig *rig, const char *port, const char *state)
{
	json_t *view = show_json(rig, "");

	assert_string_equal(text(find(view, "ports", "name", port), "state"), state);
	json_decref(view);
}

/* No program is at their other end, so they are up in pairs only, and the others say so. */
static void pairs_inner_ports(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;

	engine_start(rig, &engine, "run --run-dir %s --handler drop mem:a mem:b,peer=a mem:c",
		     rig->base);
	assert_state(rig, "a", "up");
	assert_state(rig, "b", "up");
	assert_state(rig, "c", "down");
	assert_int_equal(napier(rig, &p, "port --run-dir %s remove b", rig->base), 0);
	assert_state(rig, "a", "down");
	assert_int_equal(napier(rig, &p, "port --run-dir %s add mem:d,peer=c", rig->base), 0);
	assert_state(rig, "c", "up");
	assert_int_equal(napier(rig, &p, "port --run-dir %s add mem:e,peer=c", rig->base), 1);
	assert_string_equal(p.err, "napier: mem port e: peer=c: that has a peer already\n");
	engine_stop(rig, &engine);
	assert_null(strstr(engine.err, "port a: nobody"));
	assert_non_null(strstr(engine.err, "port c: nobody is at its other end"));
}

/* Connections to the control socket, not yet accepted ones too, and the socket itself. */
static int connections(const struct command_rig *rig)
{
	char line[512], path[64];
	FILE *file = fopen("/proc/net/unix", "re");
	int n = 0;

	assert_non_null(file);
	snprintf(path, sizeof(path), "%s/default/control", rig->base);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, path) != NULL;
	fclose(file);
	return n;
}

/* Two that stop the same engine both see it end: the second is there before the first is heard. */
static void stops_once_for_all(void **state)
{
	struct timespec pause = {.tv_nsec = 5000000};
	struct process engine, p[2];
	struct command_rig *rig = *state;

	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	engine_freeze(&engine);
	for (int i = 0; i < 2; i++) {
		char arguments[64];

		snprintf(arguments, sizeof(arguments), "stop --run-dir %s", rig->base);
		process_start(rig, &p[i], arguments);
	}
	for (int i = 0; i < NETNS_SECONDS * 200 && connections(rig) < 3; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(connections(rig), 3);
	kill(engine.pid, SIGCONT);
	for (int i = 0; i < 2; i++) {
		process_end(&p[i]);
		assert_string_equal(p[i].err, "");
		assert_int_equal(p[i].status, 0);
	}
	rig->engine = 0;
	process_end(&engine);
	assert_int_equal(engine.status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		command_test(tells_about_itself), command_test(bridge_moves_packet),
		command_test(bridge_moves_xdp),	  command_test(rebalances),
		command_test(pairs_inner_ports),  command_test(stops_once_for_all),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
