/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <control/service.h>

#include <cmd/cmd.h>
#include <cmd/daemon.h>
#include <cmd/log.h>
#include <cmd/view.h>

struct run {
	struct setup setup;
	const char *config;
	const char *run_dir;
	bool daemon;
	const char *hosts[SETUP_PORTS_MAX]; /* --host */
	uint32_t hosts_n;
};

/*
 * First of all, so that one that comes during the start ends it in order too. All threads inherit
 * it: signals come to the main thread's descriptor only. Under nohup SIGHUP stays ignored.
 */
static void signals_block(sigset_t *set)
{
	struct sigaction hangup;

	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	if (sigaction(SIGHUP, NULL, &hangup) || hangup.sa_handler != SIG_IGN)
		sigaddset(set, SIGHUP);
	sigprocmask(SIG_BLOCK, set, NULL);
}

/* Every queue and thread takes a few, and nothing here depends on their numbers being small. */
static void files_allow(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Until a signal, a request to stop, or the end of all input. */
static int end_wait(const struct service *service, int signals)
{
	struct pollfd wait[] = {
		{.fd = signals, .events = POLLIN},
		{.fd = service_done_fd(service), .events = POLLIN},
	};
	struct signalfd_siginfo taken;

	while (poll(wait, 2, -1) < 0) {
		if (errno != EINTR)
			return complain("poll: %s", strerror(errno));
	}
	/* Left pending, it would end the process as soon as signals are no longer blocked. */
	while (read(signals, &taken, sizeof(taken)) > 0)
		;
	return DONE;
}

/* That nothing is missing can be read from it: the sums are of one moment, as nothing polls. */
static void summary_print(const struct service *service)
{
	json_t *view = view_create(engine_counters(service->engine), NULL, NULL, -1);
	const json_t *napis = json_object_get(view, "napis");
	long long received = 0, cloned = 0, transmitted = 0, delivered = 0, dropped = 0;
	long long steered = 0, merged = 0;

	for (size_t i = 0; i < json_array_size(napis); i++) {
		const json_t *napi = json_array_get(napis, i);

		received += view_number(napi, "received");
		cloned += view_number(napi, "cloned");
		transmitted += view_number(napi, "transmitted");
		delivered += view_number(napi, "delivered");
		steered += view_number(napi, "steered");
		merged += view_number(napi, "merged");
		dropped += view_dropped(napi);
	}
	view_ports_print(view, stdout);
	printf("received %lld + cloned %lld = transmitted %lld + delivered %lld + steered %lld + "
	       "merged %lld + dropped %lld\n",
	       received, cloned, transmitted, delivered, steered, merged, dropped);
	fflush(stdout);
	json_decref(view);
}

/* From open to close, with `signals` blocked and readable. */
static int service_run(struct run *run, int signals, int ready)
{
	struct service *service;
	sigset_t again;
	struct error err;
	int rc;

	if (service_open(&run->setup, run->run_dir, log_line, NULL, &service, &err))
		return complain("%s", err.text);
	if (run->daemon) {
		log_to_syslog();
		daemon_ready(ready);
	}
	notify("READY=1");
	rc = end_wait(service, signals);
	notify("STOPPING=1");
	/*
	 * A second Ctrl-C ends it the hard way, which leaves nothing that a start does not clear.
	 * Other signals may well come on top of a first, from a parent that got it too.
	 */
	sigemptyset(&again);
	sigaddset(&again, SIGINT);
	sigprocmask(SIG_UNBLOCK, &again, NULL);
	service_stop(service);
	if (!run->daemon)
		summary_print(service);
	if (service_close(service, &err)) {
		log_line(NULL, LEVEL_ERROR, err.text);
		rc = FAILED;
	}
	return rc;
}

static int run_go(struct run *run, const sigset_t *set)
{
	int ready = -1, signals, rc;

	if (run->daemon) {
		ready = daemon_begin();
		if (ready < 0)
			return complain("fork: %s", strerror(-ready));
	}
	signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return complain("signalfd: %s", strerror(errno));
	rc = service_run(run, signals, ready);
	close(signals);
	return rc;
}

enum {
	OPTION_HANDLER = 256,
	OPTION_HOST,
	OPTION_POLLER,
	OPTION_CPUS,
	OPTION_FRAMES,
	OPTION_NO_REALTIME
};

static const struct option options[] = {
	{"config", required_argument, NULL, 'c'},
	{"handler", required_argument, NULL, OPTION_HANDLER},
	{"host", required_argument, NULL, OPTION_HOST},
	{"poller", required_argument, NULL, OPTION_POLLER},
	{"cpus", required_argument, NULL, OPTION_CPUS},
	{"frames", required_argument, NULL, OPTION_FRAMES},
	{"daemon", no_argument, NULL, 'd'},
	{"no-realtime", no_argument, NULL, OPTION_NO_REALTIME},
	WHICH_LONG,
	{0},
};

/* One of run's own, over what the file said. 1: it is none. */
static int option_take(struct run *run, int option, struct error *err)
{
	struct setup *setup = &run->setup;
	struct wish wish = {0};
	long long n;
	int rc = 0;

	switch (option) {
	case 'c':
		break; /* has been read first */
	case 'd':
		run->daemon = true;
		break;
	case OPTION_HANDLER:
		return setup_handler_parse(optarg, &setup->handler, err);
	case OPTION_HOST:
		if (run->hosts_n == SETUP_PORTS_MAX)
			return error_set(err, -ENOSPC, "--host %.80s: more than %d ports", optarg,
					 SETUP_PORTS_MAX);
		run->hosts[run->hosts_n++] = optarg;
		break;
	case OPTION_POLLER:
		rc = wish_key(&wish, "poller", optarg, err);
		setup->engine.poller = wish.poller;
		return rc;
	case OPTION_CPUS:
		rc = wish_key(&wish, "cpus", optarg, err);
		setup->engine.cpus = wish.cpus;
		return rc;
	case OPTION_FRAMES:
		rc = number_parse("frames", optarg, PACKET_VECTOR_MAX, POOL_FRAMES_MAX, &n, err);
		if (!rc)
			setup->engine.frames = (uint32_t)n;
		return rc;
	case OPTION_NO_REALTIME:
		setup->realtime = false;
		break;
	default:
		return 1;
	}
	return 0;
}

/* -1: go on; else exit so. */
static int options_take(struct run *run, int argc, char **argv)
{
	struct which which = {0};
	struct error err;
	int option, rc;

	optind = 0;
	while ((option = getopt_long(argc, argv, ":c:dh", options, NULL)) != -1) {
		rc = option_take(run, option, &err);
		if (rc < 0)
			return misused("%s", err.text);
		if (rc == 0)
			continue;
		rc = which_option(&command_run, &which, option, argv);
		if (rc >= 0)
			return rc;
	}
	if (which.name && setup_name(&run->setup, which.name, &err))
		return misused("%s", err.text);
	run->run_dir = which.run_dir;
	return -1;
}

/* The file comes first, whatever the order on the command line, which has the last word. */
static int config_read(struct run *run, int argc, char **argv)
{
	struct error err;
	int option;

	while ((option = getopt_long(argc, argv, ":c:dh", options, NULL)) != -1) {
		if (option == 'c' && run->config)
			return misused("run: one configuration at a time");
		if (option == 'c')
			run->config = optarg;
		if (option == 'h' || option == '?' || option == ':')
			return -1; /* the second reading deals with it */
	}
	if (run->config && setup_file_read(&run->setup, run->config, &err))
		return complain("%s", err.text);
	return -1;
}

static int ports_take(struct run *run, char **specs)
{
	struct setup_port *port;
	struct error err;

	if (run->config && (*specs || run->hosts_n))
		return misused("run: name the ports in %s or on the command line, "
			       "not both",
			       run->config);
	for (uint32_t i = 0; i < run->hosts_n; i++) {
		if (setup_port_add(&run->setup, run->hosts[i], &port, &err) ||
		    setup_port_host(port, &err))
			return misused("%s", err.text);
	}
	for (; *specs; specs++) {
		if (setup_port_add(&run->setup, *specs, &port, &err))
			return misused("%s", err.text);
	}
	if (setup_check(&run->setup, &err))
		return run->config ? complain("%s", err.text) : misused("%s", err.text);
	return -1;
}

static int run_run(int argc, char **argv)
{
	struct run run = {0};
	sigset_t set;
	int rc;

	signals_block(&set);
	files_allow();
	/* Nobody may be there any more to read the summary; the rest of the end is still to come.
	 */
	signal(SIGPIPE, SIG_IGN);
	setup_init(&run.setup);
	rc = config_read(&run, argc, argv);
	if (rc < 0)
		rc = options_take(&run, argc, argv);
	if (rc < 0)
		rc = ports_take(&run, argv + optind);
	if (rc < 0)
		rc = run_go(&run, &set);
	setup_free(&run.setup);
	return rc;
}

const struct command command_run = {
	.name = "run",
	.summary = "run an engine: open ports, and bridge what they receive",
	.usage = "Usage: napier run [OPTION…] PORT…\n"
		 "       napier run [OPTION…] --host PORT\n"
		 "       napier run [OPTION…] -c FILE\n"
		 "Runs an engine until Ctrl-C, napier stop, or the end of all its input (files "
		 "only).\nA port is KIND:TARGET[,OPTION=VALUE…], such as xdp:eth0,queues=2; "
		 "man napier has the kinds.\n\n"
		 "  -c, --config FILE    read ports and settings from FILE\n"
		 "      --handler H      bridge (default) or drop\n"
		 "      --host PORT      an xdp port by which this host gets its traffic; may be "
		 "given again\n"
		 "      --poller P       softirq (default), thread, workqueue, busy-poll, app\n"
		 "                       or auto\n"
		 "      --cpus LIST      engine CPUs, such as 0-3,8 (all)\n"
		 "      --frames N       packets in the pool (16384)\n"
		 "      --no-realtime    take interrupts at ordinary priority\n"
		 "  -d, --daemon         go into the background once all is open\n" WHICH_USAGE,
	.run = run_run,
};
