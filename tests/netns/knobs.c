/* SPDX-License-Identifier: BSD-2-Clause */
/* Knobs: set, read back, and as before afterwards, also after kill -9. */
#include "netns.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lab/run/knob.h>
#include <lab/run/place.h>
#include <port/netdev.h>
#include <port/sysfs.h>

enum { VETH_QUEUES = 1 };

static char rundir[] = "/tmp/napier-knobs-XXXXXX";
static struct netlab *lab;
static char near[16], far[16];

/* Settings of the whole system: what the tests start from, whatever the machine has; it gets that
 * back. */
static struct {
	const char *path, *start;
	char before[32];
} sysctls[] = {
	{"/proc/sys/net/core/busy_poll", "0", ""},
	{"/proc/sys/net/core/busy_read", "0", ""},
	{"/proc/sys/net/core/netdev_budget", "300", ""},
	{"/proc/sys/net/core/netdev_budget_usecs", "8000", ""},
	{"/proc/sys/net/core/dev_weight", "64", ""},
	{"/proc/sys/net/core/netdev_max_backlog", "1000", ""},
	{"/proc/sys/net/core/rps_sock_flow_entries", "0", ""},
};

/* By another way than the knobs, as a broken one must not leave anything either. */
static void sysctl_swap(const char *path, const char *text, char *before, size_t size)
{
	FILE *f = fopen(path, "r+");

	if (!f)
		return; /* not in this kernel: has() says so */
	if (before && fgets(before, (int)size, f))
		before[strcspn(before, "\n")] = 0;
	rewind(f);
	fputs(text, f);
	fclose(f);
}

static void must(int rc, const struct error *err)
{
	if (rc < 0)
		fail_msg("%s (%d)", err->text, rc);
}

static int setup(void **state)
{
	struct error err = {0};

	(void)state;
	if (!mkdtemp(rundir))
		return -1;
	for (size_t i = 0; i < sizeof(sysctls) / sizeof(*sysctls); i++)
		sysctl_swap(sysctls[i].path, sysctls[i].start, sysctls[i].before,
			    sizeof(sysctls[i].before));
	must(netlab_open(rundir, &lab, &err), &err);
	must(netlab_namespace_add(lab, "a", &err), &err);
	netlab_name(lab, "n", near);
	netlab_name(lab, "f", far);
	must(netlab_veth_add(lab, 0, near, 0, far, &err), &err);
	must(netlab_link_up(lab, 0, near, true, &err), &err);
	must(netlab_link_up(lab, 0, far, true, &err), &err);
	must(netlab_offload_set(lab, 0, near, NETLAB_GRO, true, &err), &err);
	return 0;
}

/* Fails when a record is left. */
static int cleanup(void **state)
{
	(void)state;
	netlab_close(lab);
	for (size_t i = 0; i < sizeof(sysctls) / sizeof(*sysctls); i++)
		if (*sysctls[i].before)
			sysctl_swap(sysctls[i].path, sysctls[i].before, NULL, 0);
	return rmdir(rundir);
}

static int ns(void)
{
	return lab->namespace[0].fd;
}

static struct knobs *opened(void)
{
	struct error err = {0};
	struct knobs *knobs = NULL;

	must(knobs_open(rundir, &knobs, &err), &err);
	return knobs;
}

static void closed(struct knobs *knobs)
{
	struct error err = {0};

	must(knobs_close(knobs, &err), &err);
}

static void site_of(bool of_interface, struct knob_site *site)
{
	struct error err = {0};

	must(knob_site_open(of_interface ? ns() : -1, of_interface ? near : NULL, site, &err),
	     &err);
}

/* What is there now, as text. */
static void value_of(const char *key, char *text, size_t size)
{
	const struct knob *knob = knob_find(key);
	struct knob_state state;
	struct knob_site site;
	struct error err = {0};

	assert_non_null(knob);
	site_of(knob->ops->of_interface, &site);
	must(knob->ops->read(&site, knob, &state, &err), &err);
	knob_site_close(&site);
	knob_state_format(&state, text, size);
}

static void assert_value(const char *key, const char *expected)
{
	char text[1024];

	value_of(key, text, sizeof(text));
	assert_string_equal(text, expected);
}

/* By another way than the knobs: what the kernel's file says. */
static void assert_file(const char *file, const char *expected)
{
	struct error err = {0};
	char text[256];
	int back, dir;

	must(netns_enter(lab->namespace[0].name, &back, &err), &err);
	dir = sysfs_interface_open(near, false);
	netns_leave(back);
	assert_true(dir >= 0);
	assert_int_equal(sysfs_read(dir, file, text, sizeof(text)), 0);
	close(dir);
	assert_string_equal(text, expected);
}

static void set(struct knobs *knobs, const char *key, const char *value, const char *expected)
{
	struct error err = {0};
	char observed[KNOB_TEXT_MAX];
	bool of_interface;

	must(knob_check(key, value, &of_interface, &err), &err);
	must(knob_set(knobs, of_interface ? ns() : -1, of_interface ? near : NULL, key, value,
		      observed, &err),
	     &err);
	assert_string_equal(observed, expected);
	assert_value(key, expected);
}

/* Whether this kernel, or what it was built with, has it. */
static bool has(const char *key)
{
	const struct knob *knob = knob_find(key);
	struct knob_state state;
	struct knob_site site;
	struct error err = {0};
	int rc;

	site_of(knob->ops->of_interface, &site);
	rc = knob->ops->read(&site, knob, &state, &err);
	knob_site_close(&site);
	if (rc == -EOPNOTSUPP)
		printf("not looked at: %s\n", err.text);
	else
		must(rc, &err);
	return !rc;
}

static void each_is_set_and_restored(void **state)
{
	static const struct {
		const char *key, *value, *expected;
	} cases[] = {
		{"threaded", "on", "on"},
		{"napi_defer_hard_irqs", "7", "7"},
		{"gro_flush_timeout", "12345", "12345"},
		{"irq_suspend_timeout", "5000000000", "5000000000"},
		{"rps_cpus", "0x1", "0"},
		{"rps_flow_cnt", "256", "256"},
		{"gro", "off", "off"},
		{"gso", "off", "off"},
		{"tso", "off", "off"},
		{"tx_csum", "off", "off"},
		{"busy_poll", "3", "3"},
		{"busy_read", "4", "4"},
		{"netdev_budget", "299", "299"},
		{"netdev_budget_usecs", "9000", "9000"},
		{"dev_weight", "63", "63"},
		{"netdev_max_backlog", "999", "999"},
		{"rps_sock_flow_entries", "1024", "1024"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char before[1024];
		struct knobs *knobs;

		if (!has(cases[i].key))
			continue;
		value_of(cases[i].key, before, sizeof(before));
		assert_string_not_equal(before, cases[i].expected);
		knobs = opened();
		set(knobs, cases[i].key, cases[i].value, cases[i].expected);
		closed(knobs);
		assert_value(cases[i].key, before);
	}
}

static void files_say_the_same(void **state)
{
	struct knobs *knobs = opened();

	(void)state;
	set(knobs, "gro_flush_timeout", "20000", "20000");
	assert_file("gro_flush_timeout", "20000");
	set(knobs, "threaded", "1", "on");
	assert_file("threaded", "1");
	set(knobs, "threaded", "off", "off");
	assert_file("threaded", "0");
	closed(knobs);
	assert_file("gro_flush_timeout", "0");
	assert_file("threaded", "0");
}

/* Turning checksums off takes TSO along; on again in the order back it is as before. */
static void the_last_is_restored_first(void **state)
{
	struct knobs *knobs = opened();

	(void)state;
	assert_value("tso", "on");
	set(knobs, "busy_poll", "5", "5");
	set(knobs, "busy_poll", "6", "6");
	set(knobs, "tx_csum", "off", "off");
	assert_value("tso", "off");
	closed(knobs);
	assert_value("busy_poll", "0");
	assert_value("tx_csum", "on");
	assert_value("tso", "on");
}

/* One NAPI of its own value has it again, and not the interface's. */
static void parts_are_restored(void **state)
{
	struct napi_seen napi[NAPI_SEEN_MAX];
	struct knobs *knobs = opened();
	struct knob_site site;
	char text[64];
	uint32_t id;

	(void)state;
	site_of(true, &site);
	if (site.netlink.fd < 0 ||
	    napi_netlink_settable(&site.netlink, NAPI_GRO_FLUSH_TIMEOUT, 0) != 0) {
		knob_site_close(&site);
		closed(knobs);
		skip();
	}
	assert_int_equal(napi_netlink_list(&site.netlink, site.ifindex, napi, NAPI_SEEN_MAX),
			 VETH_QUEUES);
	id = (uint32_t)napi[0].value[NAPI_ID];
	assert_int_equal(napi_netlink_set(&site.netlink, id, NAPI_GRO_FLUSH_TIMEOUT, 777), 0);
	snprintf(text, sizeof(text), "0 %u=777", id);
	assert_value("gro_flush_timeout", text);
	set(knobs, "gro_flush_timeout", "888", "888");
	closed(knobs);
	assert_value("gro_flush_timeout", text);
	assert_int_equal(napi_netlink_set(&site.netlink, id, NAPI_GRO_FLUSH_TIMEOUT, 0), 0);
	assert_int_equal(napi_netlink_settable(&site.netlink, NAPI_ATTRIBUTES + 20, 0),
			 -EOPNOTSUPP);
	assert_int_equal(napi_netlink_set(&site.netlink, 1, NAPI_GRO_FLUSH_TIMEOUT, 0), -ENOENT);
	knob_site_close(&site);
}

static void what_reads_back_otherwise_is_an_error(void **state)
{
	struct knobs *knobs = opened();
	char observed[KNOB_TEXT_MAX];
	struct error err = {0};

	(void)state;
	/* The kernel makes it a power of two. */
	assert_int_equal(knob_set(knobs, -1, NULL, "rps_sock_flow_entries", "1000", observed, &err),
			 -EIO);
	assert_string_equal(observed, "1024");
	assert_non_null(strstr(err.text, "1000 was set, 1024 is read back"));
	assert_value("rps_sock_flow_entries", "0");
	/* No segmentation without checksums. */
	set(knobs, "tx_csum", "off", "off");
	assert_int_equal(knob_set(knobs, ns(), near, "tso", "on", observed, &err), -EIO);
	assert_string_equal(observed, "off");
	closed(knobs);
	assert_value("tso", "on");
}

static void busy_poll_threads_need_a_kernel_that_has_them(void **state)
{
	struct knobs *knobs = opened();
	struct error err = {0};
	struct knob_site site;
	bool there;

	(void)state;
	site_of(true, &site);
	there = site.netlink.fd >= 0 &&
		!napi_netlink_settable(&site.netlink, NAPI_THREADED, NAPI_THREADED_BUSY_POLL);
	knob_site_close(&site);
	if (there) {
		set(knobs, "threaded", "busy-poll", "busy-poll");
	} else {
		assert_int_equal(knob_set(knobs, ns(), near, "threaded", "busy-poll", NULL, &err),
				 -EOPNOTSUPP);
		assert_non_null(strstr(err.text, "6.19"));
		assert_non_null(strstr(err.text, near));
	}
	closed(knobs);
	assert_value("threaded", "off");
}

static void errors_name_the_thing(void **state)
{
	struct knobs *knobs = opened();
	struct error err = {0};

	(void)state;
	assert_int_equal(knob_set(knobs, ns(), "none0", "gro", "on", NULL, &err), -ENODEV);
	assert_non_null(strstr(err.text, "none0"));
	assert_int_equal(knob_set(knobs, ns(), near, "busy_poll", "1", NULL, &err), -EINVAL);
	assert_int_equal(knob_set(knobs, -1, NULL, "gro", "on", NULL, &err), -EINVAL);
	/* A veth without GRO has no NAPI to be threaded. */
	assert_int_equal(knob_set(knobs, ns(), far, "threaded", "on", NULL, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "NAPI"));
	assert_int_equal(knob_set(knobs, ns(), near, "irq_cpus", "0", NULL, &err), -EOPNOTSUPP);
	assert_int_equal(knob_set(knobs, ns(), near, "rx_usecs", "10", NULL, &err), -EOPNOTSUPP);
	closed(knobs);
}

static void interface_that_is_gone_is_no_error(void **state)
{
	struct knobs *knobs = opened();
	struct error err = {0};

	(void)state;
	must(netlab_veth_add(lab, 0, "gone0", 0, "gone1", &err), &err);
	must(knob_set(knobs, ns(), "gone0", "gso", "off", NULL, &err), &err);
	set(knobs, "gso", "off", "off");
	must(netlab_link_delete(lab, 0, "gone0", &err), &err);
	closed(knobs);
	assert_value("gso", "on");
}

/* In a child that is killed in between. */
static void leave_behind(void)
{
	int pipes[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		struct error err = {0};
		struct knobs *knobs;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (knobs_open(rundir, &knobs, &err) ||
		    knob_set(knobs, -1, NULL, "busy_read", "8", NULL, &err) ||
		    knob_set(knobs, ns(), near, "napi_defer_hard_irqs", "3", NULL, &err) ||
		    knob_set(knobs, -1, NULL, "busy_read", "9", NULL, &err) ||
		    knob_set(knobs, ns(), near, "gso", "off", NULL, &err) ||
		    write(pipes[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(1);
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	/* It lives: hands off. */
	assert_int_equal(knobs_recover(rundir), 0);
	assert_value("busy_read", "9");
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static unsigned records(void)
{
	struct dirent *entry;
	unsigned n = 0;
	DIR *dir = opendir(rundir);

	while ((entry = readdir(dir)))
		n += !strncmp(entry->d_name, "knobs.", 6);
	closedir(dir);
	return n;
}

static void the_next_start_restores_after_kill(void **state)
{
	struct knobs *knobs;

	(void)state;
	leave_behind();
	assert_value("busy_read", "9");
	assert_value("gso", "off");
	assert_int_equal(records(), 1);
	assert_int_equal(knobs_recover(rundir), 4);
	assert_int_equal(records(), 0);
	assert_value("busy_read", "0");
	assert_value("napi_defer_hard_irqs", "0");
	assert_value("gso", "on");
	assert_int_equal(knobs_recover(rundir), 0);

	/* What somebody has set since stays. */
	leave_behind();
	knobs = opened(); /* restores */
	assert_value("gso", "on");
	closed(knobs);
	leave_behind();
	knobs = NULL;
	must(knobs_open(NULL, &knobs, NULL), NULL);
	set(knobs, "gso", "on", "on");
	set(knobs, "napi_defer_hard_irqs", "5", "5");
	assert_int_equal(knobs_recover(rundir), 2);
	assert_value("napi_defer_hard_irqs", "5");
	assert_value("busy_read", "0");
	closed(knobs); /* to what the killed one had set */
	assert_value("napi_defer_hard_irqs", "3");
	knobs = opened();
	set(knobs, "napi_defer_hard_irqs", "0", "0");
	assert_int_equal(records(), 1);
	assert_int_equal(netlab_defer_set(lab, 0, near, 0, 0, &(struct error){0}), 0);
	closed(knobs);
}

static void one_at_a_time(void **state)
{
	int ready[2], status;
	struct error err = {0};
	struct knobs *knobs;
	char c;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (knobs_open(rundir, &knobs, &err) ||
		    knob_set(knobs, ns(), near, "gro_flush_timeout", "11000", NULL, &err) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	must(knobs_open(rundir, &knobs, &err), &err);
	assert_int_equal(knob_set(knobs, ns(), near, "gro_flush_timeout", "12000", NULL, &err),
			 -EBUSY);
	assert_non_null(strstr(err.text, "gro_flush_timeout of "));
	/* Another knob, and the same of another interface, are free. */
	must(knob_set(knobs, ns(), near, "napi_defer_hard_irqs", "3", NULL, &err), &err);
	must(knob_set(knobs, ns(), far, "gro_flush_timeout", "13000", NULL, &err), &err);
	closed(knobs);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_int_equal(knobs_recover(rundir), 1);
}

enum { RACES = 200, RACERS = 2 };

/* 'y': it is ours; 'n': another's. Waits for the start, and, having told, for the end. */
static void race(int start, int tell, int end)
{
	struct error err = {0};
	struct knobs *knobs;
	char c, is;
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (knobs_open(rundir, &knobs, &err) || read(start, &c, 1) != 0)
		_exit(1);
	rc = knob_set(knobs, -1, NULL, "busy_poll", "7", NULL, &err);
	is = !rc ? 'y' : rc == -EBUSY ? 'n' : '?';
	if (write(tell, &is, 1) != 1 || read(end, &c, 1) != 0)
		_exit(1);
	_exit(knobs_close(knobs, &err) ? 1 : 0);
}

/* Of two that ask for one knob at the same moment one has it. */
static void one_of_two_at_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RACES; i++) {
		int start[2], tell[2], end[2], status;
		unsigned ours = 0, others = 0;
		char said[RACERS];

		assert_int_equal(pipe2(start, O_CLOEXEC) | pipe2(tell, O_CLOEXEC) |
					 pipe2(end, O_CLOEXEC),
				 0);
		fflush(NULL);
		for (unsigned k = 0; k < RACERS; k++) {
			if (fork())
				continue;
			close(start[1]);
			close(end[1]);
			race(start[0], tell[1], end[0]);
		}
		close(start[0]);
		close(tell[1]);
		close(end[0]);
		close(start[1]); /* go */
		for (unsigned k = 0; k < RACERS; k++) {
			assert_int_equal(read(tell[0], &said[k], 1), 1);
			ours += said[k] == 'y';
			others += said[k] == 'n';
		}
		close(end[1]);
		for (unsigned k = 0; k < RACERS; k++)
			assert_true(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status));
		close(tell[0]);
		assert_int_equal(ours, 1);
		assert_int_equal(others, RACERS - 1);
		assert_value("busy_poll", "0");
	}
}

/* One that is as it is wanted already is not another's to change meanwhile. */
static void what_is_so_already_is_ours_too(void **state)
{
	struct knobs *knobs = opened();
	struct error err = {0};
	int status;
	pid_t pid;

	(void)state;
	set(knobs, "busy_poll", "0", "0");
	fflush(NULL);
	pid = fork();
	if (!pid) {
		struct knobs *other;

		if (knobs_open(rundir, &other, &err))
			_exit(1);
		_exit(knob_set(other, -1, NULL, "busy_poll", "9", NULL, &err) == -EBUSY &&
				      !knobs_close(other, &err)
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	closed(knobs);
	assert_value("busy_poll", "0");
}

/* Lines that nobody of us wrote, and one that was not written to its end. */
static void a_record_sets_only_knobs(void **state)
{
	char path[64];
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/knobs.1.0", rundir);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "x\n\t\t\t\t\t\t\n0\t-\t0\t-\tno_knob\t1\t0\n0\t-\t0\t-\tbusy_poll\t0\tx\n"
		   "0\t../../proc/1/ns/net\t1\tlo\tgso\ton\toff\n0\t-\t0\t-\tbusy_poll\t0\t9");
	fclose(f);
	assert_int_equal(knobs_recover(rundir), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_value("busy_poll", "0");
	assert_int_equal(knobs_recover("/nonexistent"), 0);
}

static pid_t napi_thread(void)
{
	struct napi_seen napi[NAPI_SEEN_MAX];
	struct knob_site site;
	pid_t pid = 0;

	site_of(true, &site);
	if (site.netlink.fd >= 0 &&
	    napi_netlink_list(&site.netlink, site.ifindex, napi, NAPI_SEEN_MAX) == VETH_QUEUES)
		pid = (pid_t)napi[0].value[NAPI_PID];
	knob_site_close(&site);
	return pid;
}

static void assert_observed(pid_t tid, const char *cpus, const char *class, int nice, int priority)
{
	json_t *o = place_observe(tid);

	assert_non_null(o);
	assert_string_equal(json_string_value(json_object_get(o, "cpus")), cpus);
	assert_string_equal(json_string_value(json_object_get(o, "class")), class);
	assert_int_equal(json_integer_value(json_object_get(o, "nice")), nice);
	assert_int_equal(json_integer_value(json_object_get(o, "priority")), priority);
	json_decref(o);
}

static void kernel_threads_are_placed(void **state)
{
	struct spec_placement placement = {
		.scheduling = RUNNER_FIFO, .priority = 3, .placed = true};
	struct knobs *knobs = opened();
	char cpus[256], name[16];
	struct error err = {0};
	json_t *before;
	pid_t pid;

	(void)state;
	cpuset_add(&placement.cpus, 0);
	assert_int_equal(place_kernel_napi(near, &placement, &err), -ENOENT);
	assert_non_null(strstr(err.text, near));
	set(knobs, "threaded", "on", "on");
	pid = napi_thread();
	if (!pid) /* a kernel without netlink for NAPIs */
		pid = getpid();
	before = place_observe(pid);
	snprintf(cpus, sizeof(cpus), "%s", json_string_value(json_object_get(before, "cpus")));
	json_decref(before);
	must(place_kernel_napi(near, &placement, &err), &err);
	assert_observed(pid, "0", "fifo", 0, 3);
	placement = (struct spec_placement){.nice = 5, .placed = true};
	must(place_kernel_napi(near, &placement, &err), &err);
	assert_observed(pid, "0", "fair", 5, 0);
	must(place_restore(&err), &err);
	assert_observed(pid, cpus, "fair", 0, 0);
	snprintf(name, sizeof(name), "%s", near);
	/* A thread that has ended has nothing to be put back. */
	must(place_kernel_napi(name, &placement, &err), &err);
	closed(knobs);
	must(place_restore(&err), &err);
	assert_true(netns_thread_goes(pid));
}

static void a_veths_interrupts_are_rps(void **state)
{
	struct knobs *knobs = opened();
	struct error err = {0};
	struct cpuset cpus = {0};
	bool by_rps = false;

	(void)state;
	cpuset_add(&cpus, 0);
	must(place_interrupts(knobs, ns(), near, &cpus, &by_rps, &err), &err);
	assert_true(by_rps);
	assert_value("rps_cpus", "0");
	assert_file("queues/rx-0/rps_cpus", "1");
	closed(knobs);
	assert_value("rps_cpus", "none");
}

/* Of the machine's own interfaces: only read, as they are not ours. */
static void interrupts_of_devices_are_found(void **state)
{
	const struct knob *knob = knob_find("irq_cpus");
	struct if_nameindex *all = if_nameindex();

	(void)state;
	assert_non_null(all);
	for (const struct if_nameindex *i = all; i->if_index; i++) {
		struct knob_state seen;
		struct knob_site site;
		struct error err = {0};
		char path[64], text[1024];
		int rc;

		must(knob_site_open(-1, i->if_name, &site, &err), &err);
		rc = knob->ops->read(&site, knob, &seen, &err);
		knob_site_close(&site);
		snprintf(path, sizeof(path), "/sys/class/net/%s/device", i->if_name);
		if (rc == -EOPNOTSUPP) {
			assert_non_null(strstr(err.text, i->if_name));
			continue;
		}
		must(rc, &err);
		assert_int_equal(access(path, F_OK), 0);
		assert_true(seen.all > 0);
		knob_state_format(&seen, text, sizeof(text));
		printf("%s: %u interrupts, on CPUs %s\n", i->if_name, seen.all, text);
	}
	if_freenameindex(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_set_and_restored),
		cmocka_unit_test(files_say_the_same),
		cmocka_unit_test(the_last_is_restored_first),
		cmocka_unit_test(parts_are_restored),
		cmocka_unit_test(what_reads_back_otherwise_is_an_error),
		cmocka_unit_test(busy_poll_threads_need_a_kernel_that_has_them),
		cmocka_unit_test(errors_name_the_thing),
		cmocka_unit_test(interface_that_is_gone_is_no_error),
		cmocka_unit_test(the_next_start_restores_after_kill),
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(one_of_two_at_once),
		cmocka_unit_test(what_is_so_already_is_ours_too),
		cmocka_unit_test(a_record_sets_only_knobs),
		cmocka_unit_test(kernel_threads_are_placed),
		cmocka_unit_test(a_veths_interrupts_are_rps),
		cmocka_unit_test(interrupts_of_devices_are_found),
	};

	netns_require();
	return cmocka_run_group_tests(tests, setup, cleanup);
}
