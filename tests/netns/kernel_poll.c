/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preferred busy polling of xdp's sockets, and the interrupt deferral that goes with it: set, seen,
 * and put back, however the engine ends.
 */
#include "test.h"

#include "netns.h"

#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <port/xdp.h>

static struct netns_links links;
static struct netns_engine e;

static int teardown(void **state)
{
	(void)state;
	netns_log_show(&e);
	netns_engine_close(&e);
	netns_links_close(&links);
	return 0;
}

static void begin(enum poller poller, const char *kind, const char *options)
{
	struct error err = {0};

	netns_links_open(&links, false);
	netns_engine_open(&e, poller);
	if (netns_engine_ports(&e, &links, kind, options, &err))
		fail_msg("%s", err.text);
}

static const struct kernel_record *kernel(void)
{
	return e.port[0]->queue[0].kernel;
}

static int set(int queue, const struct queue_settings *settings, struct error *err)
{
	return engine_queue_set(e.engine, "p0", queue, settings, NULL, err);
}

static void set_well(const struct queue_settings *settings)
{
	struct error err = {0};

	if (ASK_PATIENTLY(set(-1, settings, &err)))
		fail_msg("%s", err.text);
}

static void poller_set(enum poller poller)
{
	set_well(&(struct queue_settings){.poller_set = true, .poller = poller});
}

static void deferral_set(uint32_t defer, uint32_t flush)
{
	set_well(&(struct queue_settings){.napi_defer_hard_irqs_set = true,
					  .napi_defer_hard_irqs = defer,
					  .gro_flush_timeout_set = true,
					  .gro_flush_timeout = flush});
}

/* With the sysfs of that namespace, which /sys is not. */
static int sysfs_run(unsigned ns, const char *command)
{
	return netns_run(&links, ns, "unshare -m sh -c 'mount -t sysfs none /sys && %s'", command);
}

/* What the interface's own namespace says it has. */
static bool has(unsigned defer, unsigned flush)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "cd /sys/class/net/in0 && test $(cat napi_defer_hard_irqs) = %u && "
		 "test $(cat gro_flush_timeout) = %u",
		 defer, flush);
	return !sysfs_run(links.inner[0], command);
}

static void interface_set(const char *name, unsigned value)
{
	char command[128];

	snprintf(command, sizeof(command), "echo %u >/sys/class/net/in0/%s", value, name);
	assert_int_equal(sysfs_run(links.inner[0], command), 0);
}

static int option(int fd, int name)
{
	socklen_t size = sizeof(int);
	int value = -1;

	assert_int_equal(getsockopt(fd, SOL_SOCKET, name, &value, &size), 0);
	return value;
}

static void sockets_prefer(bool on)
{
	const struct xdp_queue *q = e.port[0]->queue[0].private;
	int fds[] = {q->fd, q->tx_fd};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(option(fds[i], SO_PREFER_BUSY_POLL), on);
		assert_int_equal(option(fds[i], SO_BUSY_POLL) != 0, on);
	}
}

/* With busy-poll and app, and only then, in every poller that it can come from and go to. */
static void sockets_follow_the_poller(void **state)
{
	(void)state;
	begin(POLLER_SOFTIRQ, "xdp", "");
	for (int poller = 0; poller < POLLER_MAX; poller++) {
		bool prefer = poller == POLLER_BUSY_POLL || poller == POLLER_APP;

		poller_set((enum poller)poller);
		sockets_prefer(prefer);
		/* Once a second a look is taken whether that does anything, which it may not. */
		assert_int_equal(kernel()->poll != KERNEL_POLL_NONE, prefer);
		poller_set(POLLER_BUSY_POLL);
		sockets_prefer(true);
		assert_int_equal(netns_cross(&links, 0, 1000, 60), 1000);
		assert_int_equal(netns_cross(&links, 1, 1000, 60), 1000);
	}
	poller_set(POLLER_THREAD);
	sockets_prefer(false);
	assert_int_equal(netns_cross(&links, 0, 1000, 60), 1000);
	netns_assert_conserved(e.port[0]);
}

static void port_opened_with_busy_poll_prefers(void **state)
{
	(void)state;
	begin(POLLER_BUSY_POLL, "xdp", "mode=generic");
	sockets_prefer(true);
	assert_int_equal(netns_cross(&links, 0, 1000, 60), 1000);
}

/* Asked is observed; kept for busy-poll, in force with it, and put back without. */
static void deferral_follows_the_poller(void **state)
{
	(void)state;
	begin(POLLER_SOFTIRQ, "xdp", "");
	interface_set("gro_flush_timeout", 7000);
	deferral_set(2, 200000);
	assert_true(has(0, 7000));
	assert_int_equal(kernel()->defer_hard_irqs_asked, 2);
	assert_int_equal(kernel()->defer_hard_irqs, 0);
	assert_int_equal(kernel()->gro_flush_timeout, 7000);
	poller_set(POLLER_BUSY_POLL);
	assert_true(has(2, 200000));
	assert_int_equal(kernel()->defer_hard_irqs, 2);
	assert_int_equal(kernel()->gro_flush_timeout, 200000);
	assert_false(netns_logged(&e, "without interrupt deferral"));
	deferral_set(3, 300000);
	assert_true(has(3, 300000));
	assert_int_equal(netns_cross(&links, 0, 1000, 60), 1000);
	poller_set(POLLER_THREAD);
	assert_true(has(0, 7000));
	poller_set(POLLER_BUSY_POLL);
	assert_true(has(3, 300000));
	netns_engine_ports_remove(&e);
	assert_true(has(0, 7000));
}

/* In an interface's own namespace, not in the one that /sys shows. */
static void deferral_is_of_the_namespace(void **state)
{
	struct error err = {0};

	(void)state;
	netns_links_open(&links, true);
	netns_engine_open(&e, POLLER_BUSY_POLL);
	set_well(&(struct queue_settings){.napi_defer_hard_irqs_set = true,
					  .napi_defer_hard_irqs = 5});
	if (netns_engine_ports(&e, &links, "xdp", "", &err))
		fail_msg("%s", err.text);
	assert_true(has(5, 0));
	assert_int_equal(sysfs_run(links.inner[1],
				   "test $(cat /sys/class/net/in0/napi_defer_hard_irqs) = 0"),
			 0);
	/* One of the two alone defers nothing. */
	assert_true(netns_logged(&e, "p0: busy polling without interrupt deferral"));
	assert_true(netns_logged(&e, "napier set p0 napi_defer_hard_irqs=2 "
				     "gro_flush_timeout=200000\n"));
	assert_true(netns_logged(&e, "p1: busy polling without interrupt deferral"));
}

static void changes_of_others_are_left_alone(void **state)
{
	(void)state;
	begin(POLLER_BUSY_POLL, "xdp", "");
	deferral_set(2, 200000);
	interface_set("napi_defer_hard_irqs", 9);
	poller_set(POLLER_SOFTIRQ);
	assert_true(has(9, 0));
	assert_true(netns_logged(&e, "p0: napi_defer_hard_irqs of in0 was changed to 9 by another: "
				     "it stays so (it was 0 before)"));
}

/* All or nothing, and what is wrong is named. */
static void refuses(void **state)
{
	struct queue_settings s = {.napi_defer_hard_irqs_set = true, .napi_defer_hard_irqs = 1};
	struct error err = {0};

	(void)state;
	begin(POLLER_BUSY_POLL, "xdp", "");
	assert_int_equal(set(0, &s, &err), -EINVAL);
	assert_string_equal(err.text, "p0/0: napi_defer_hard_irqs and gro_flush_timeout are of the "
				      "whole interface: napier set p0 …");
	s.napi_defer_hard_irqs = NAPI_DEFER_HARD_IRQS_MAX + 1;
	assert_int_equal(set(-1, &s, &err), -ERANGE);
	deferral_set(2, 200000);
	s = (struct queue_settings){.gro_flush_timeout_set = true,
				    .gro_flush_timeout = 5,
				    .cpu_set = true,
				    .cpu = CPU_MAX - 1};
	assert_int_equal(set(-1, &s, &err), -EINVAL);
	assert_true(has(2, 200000));
	netns_engine_ports_remove(&e);
	netns_engine_close(&e);
	netns_links_close(&links);

	begin(POLLER_BUSY_POLL, "packet", "");
	s = (struct queue_settings){.gro_flush_timeout_set = true, .gro_flush_timeout = 5};
	set_well(&s); /* the engine's own NAPI has it */
	assert_int_equal(kernel()->poll, KERNEL_POLL_NONE);
	assert_int_equal(netns_cross(&links, 0, 1000, 60), 1000);
}

/* It knows the NAPI, or has said that there is none. */
static bool watch_has_looked(void)
{
	return kernel()->napi_id || netns_logged(&e, "stays in its softirq");
}

/*
 * What the kernel does with it depends on driver and kernel: either the sockets have a NAPI, and
 * calls have polled it, or that is said.
 */
static void kernel_polls_or_says_why_not(void **state)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	(void)state;
	begin(POLLER_BUSY_POLL, "xdp", "");
	deferral_set(2, 200000);
	assert_int_equal(netns_cross(&links, 0, 20000, 60), 20000);
	assert_true(counter_read(&napi_counters(e.port[0]->queue[0].napi)->kernel_polls) > 0);
	/* The watch looks once a second. */
	for (int i = 0; i < 3000 && !watch_has_looked(); i++)
		nanosleep(&pause, NULL);
	printf("kernel's NAPI: %u\n", kernel()->napi_id);
	if (kernel()->napi_id) {
		assert_int_equal(kernel()->poll, KERNEL_POLL_PREFERRED);
		assert_false(netns_logged(&e, "stays in its softirq"));
	} else {
		assert_int_equal(kernel()->poll, KERNEL_POLL_REFUSED);
		assert_int_equal(netns_logged(&e, "p0: the kernel's share stays in its softirq"),
				 1);
	}
	assert_int_equal(netns_cross(&links, 0, 20000, 60), 20000);
	netns_assert_conserved(e.port[0]);
}

static char restore[96];

/* What engines that are killed have set, one after the other. */
static const struct queue_settings deferrals[] = {
	{.napi_defer_hard_irqs_set = true,
	 .napi_defer_hard_irqs = 2,
	 .gro_flush_timeout_set = true,
	 .gro_flush_timeout = 200000},
	{.napi_defer_hard_irqs_set = true,
	 .napi_defer_hard_irqs = 3,
	 .gro_flush_timeout_set = true,
	 .gro_flush_timeout = 300000},
};
static unsigned deferrals_n = 1; /* of them */

/* Polls busily with deferral, and is killed while it does. */
static int run_engine(void *arg, int up)
{
	struct engine_config config = {.poller = POLLER_BUSY_POLL, .restore_path = restore};
	struct port_config port;
	struct engine *engine;
	struct error err = {0};
	struct port *out;
	char spec[256];
	bool fails;

	(void)arg;
	netns_spec(&links, 0, "xdp", "", spec);
	fails = machine_host_create(&config.machine, &err) ||
		engine_create(&config, &engine, &err) || port_config_parse(spec, &port, &err) ||
		engine_port_add(engine, &port, &out, &err);
	for (unsigned i = 0; !fails && i < deferrals_n; i++)
		fails = ASK_PATIENTLY(
			engine_queue_set(engine, out->name, -1, &deferrals[i], NULL, &err));
	if (fails) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (netns_up(up))
		pause();
	return 1;
}

static void engine_kill(void)
{
	pid_t pid = netns_fork_up(&links, links.inner[0], run_engine, NULL);

	assert_true(has(deferrals[deferrals_n - 1].napi_defer_hard_irqs,
			deferrals[deferrals_n - 1].gro_flush_timeout));
	kill(pid, SIGKILL);
	assert_int_equal(netns_wait(pid, NETNS_SECONDS), -1);
}

static char said[1024];

static void keep(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	(void)level;
	strncat(said, line, sizeof(said) - strlen(said) - 2);
	strcat(said, "\n");
}

static void killed_engine_is_put_back_at_the_next_start(void **state)
{
	(void)state;
	netns_links_open(&links, false);
	snprintf(restore, sizeof(restore), "%s/restore", links.rundir);
	interface_set("gro_flush_timeout", 7000);
	engine_kill();
	assert_true(has(2, 200000));
	assert_int_equal(access(restore, F_OK), 0);
	engine_restore(restore, keep, NULL);
	assert_true(has(0, 7000));
	assert_non_null(strstr(said, "in0: gro_flush_timeout put back to 7000 after a killed"));
	assert_int_not_equal(access(restore, F_OK), 0);

	/* What somebody has changed since stays; an interface that is another one by now, too. */
	engine_kill();
	interface_set("napi_defer_hard_irqs", 4);
	engine_restore(restore, keep, NULL);
	assert_true(has(4, 7000));
	assert_non_null(strstr(said, "in0: napi_defer_hard_irqs is 4, which a killed engine"));
	interface_set("napi_defer_hard_irqs", 0);
	engine_kill();
	assert_int_equal(
		netns_run(&links, links.inner[0], "ip link del in0 && ip link add in0 type ifb"),
		0);
	interface_set("napi_defer_hard_irqs", 2);
	engine_restore(restore, keep, NULL);
	assert_true(has(2, 0));
	engine_restore(restore, keep, NULL);
}

/* It notes a value before it writes it: killed between, it leaves the one that it had set before.
 */
static void killed_between_note_and_write_is_put_back(void **state)
{
	(void)state;
	netns_links_open(&links, false);
	snprintf(restore, sizeof(restore), "%s/restore", links.rundir);
	interface_set("gro_flush_timeout", 7000);
	deferrals_n = 2;
	engine_kill();
	deferrals_n = 1;
	interface_set("napi_defer_hard_irqs", 2);
	interface_set("gro_flush_timeout", 200000);
	engine_restore(restore, keep, NULL);
	assert_true(has(0, 7000));
}

/* The command does so, with its run directory, and tells. */
static void command_puts_back_what_a_killed_one_left(void **state)
{
	static const char *const start =
		"%s run --run-dir %s/run xdp:in0 >>%s/log 2>&1 & "
		"for i in $(seq 400); do %s set --run-dir %s/run in0 weight=64 >/dev/null 2>&1 && "
		"exit 0; sleep 0.1; done; cat %s/log; exit 1";
	const char *dir = links.rundir;

	(void)state;
	netns_links_open(&links, false);
	assert_int_equal(
		netns_run(&links, links.inner[0], start, NAPIER, dir, dir, NAPIER, dir, dir), 0);
	assert_int_equal(netns_run(&links, links.inner[0],
				   "%s set --run-dir %s/run in0 poller=busy-poll "
				   "napi_defer_hard_irqs=2 gro_flush_timeout=200000 | "
				   "grep -q 'napi_defer_hard_irqs 2, gro_flush_timeout 200000 ns'",
				   NAPIER, dir),
			 0);
	assert_true(has(2, 200000));
	assert_int_equal(netns_run(&links, links.inner[0],
				   "pid=$(cat %s/run/default/pid); kill -9 $pid; "
				   "while kill -0 $pid 2>/dev/null; do sleep 0.1; done; "
				   "test -s %s/run/default/restore",
				   dir, dir),
			 0);
	assert_int_equal(
		netns_run(&links, links.inner[0], start, NAPIER, dir, dir, NAPIER, dir, dir), 0);
	assert_true(has(0, 0));
	assert_int_equal(netns_run(&links, links.inner[0],
				   "%s stop --run-dir %s/run && "
				   "grep -q 'in0: gro_flush_timeout put back to 0' %s/log; "
				   "rc=$?; rm -rf %s/run %s/log; exit $rc",
				   NAPIER, dir, dir, dir, dir),
			 0);
}

#define KERNEL_TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(sockets_follow_the_poller),
		KERNEL_TEST(port_opened_with_busy_poll_prefers),
		KERNEL_TEST(deferral_follows_the_poller),
		KERNEL_TEST(deferral_is_of_the_namespace),
		KERNEL_TEST(changes_of_others_are_left_alone),
		KERNEL_TEST(refuses),
		KERNEL_TEST(kernel_polls_or_says_why_not),
		KERNEL_TEST(killed_engine_is_put_back_at_the_next_start),
		KERNEL_TEST(killed_between_note_and_write_is_put_back),
		KERNEL_TEST(command_puts_back_what_a_killed_one_left),
	};

	netns_require();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]); /* by hand: one of them */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
