/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <linux/capability.h>
#include <sys/prctl.h>

#include <cmd/cmd.h>
#include <cmd/demo_print.h>

#define RUNDIR "/run/napier"

static void progress_print(void *arg, const char *what, unsigned done, unsigned total)
{
	(void)arg;
	fprintf(stderr, "\r\033[K%u/%u  %s", done + 1, total, what);
	fflush(stderr);
}

static int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static bool privileged(void)
{
	return geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 1 &&
	       prctl(PR_CAPBSET_READ, CAP_NET_ADMIN) == 1;
}

/*
 * Root of a user namespace, with network namespaces and a /run of its own: all that AF_PACKET
 * needs. All of it ends with the process.
 */
static int user_namespace_enter(struct error *err)
{
	char uids[32], gids[32];
	int ret;

	snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET))
		return error_set(err, -errno,
				 "making a user namespace: %s: run the demo as root, or allow "
				 "them: sysctl user.max_user_namespaces, and "
				 "kernel.unprivileged_userns_clone=1 where that exists",
				 strerror(errno));
	file_write("/proc/self/setgroups", "deny");
	ret = file_write("/proc/self/uid_map", uids);
	if (!ret)
		ret = file_write("/proc/self/gid_map", gids);
	if (ret)
		return error_set(err, ret, "mapping user %s: %s", uids + 2, strerror(-ret));
	if (mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"))
		return error_set(err, -errno, "mounting a /run of its own: %s", strerror(errno));
	return 0;
}

static void note(struct demo *demo, const char *text)
{
	if (demo->notes_n < DEMO_NOTES_MAX)
		demo->notes[demo->notes_n++] = text;
}

static int demo_go(struct demo *demo, bool json)
{
	struct compare_result *result;
	char self[4096] = "";
	struct error err;
	int rc;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return complain("/proc/self/exe: %s", strerror(errno));
	if (!privileged()) {
		if (user_namespace_enter(&err))
			return complain("%s", err.text);
		demo->plan.port = "packet";
		note(demo, "Without root: a user namespace, AF_PACKET instead of AF_XDP, and no "
			   "real-time class for interrupts");
	}
	demo->plan.napier = self;
	demo->plan.rundir = RUNDIR;
	rc = compare_run(&demo->plan, &result, &err);
	if (demo->plan.progress)
		fprintf(stderr, "\r\033[K");
	if (rc)
		return complain("%s", err.text);
	demo->result = result;
	if (!json)
		demo_print(demo, stdout);
	else if (demo_print_json(demo, stdout))
		rc = complain("no memory for the JSON");
	/* What the demo is there to show. */
	if (!rc && (result->switching.lost || result->switching.dropped))
		rc = complain("switching lost transactions or packets");
	free(result);
	return rc;
}

static int demo_run(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct demo demo = {
		.plan =
			{
				.port = "xdp",
				.request_size = 200,
				.response_size = 400,
				.flows = {1, 50},
				.rounds = 4,
				.warm = 150 * NSEC_PER_MSEC,
				.measure = 700 * NSEC_PER_MSEC,
				.switches = 1000,
				.gap = 2 * NSEC_PER_MSEC,
			},
	};
	struct which which;
	bool json = false;
	int option, rc;

	while ((option = getopt_long(argc, argv, ":jh", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			json = true;
			break;
		case 'q':
			demo.quick = true;
			demo.plan.rounds = 2;
			demo.plan.warm = 20 * NSEC_PER_MSEC;
			demo.plan.measure = 60 * NSEC_PER_MSEC;
			demo.plan.switches = 200;
			break;
		default:
			rc = which_option(&command_demo, &which, option, argv);
			if (rc >= 0)
				return rc;
		}
	}
	if (optind < argc)
		return misused("demo: \"%s\": it takes no arguments", argv[optind]);
	if (isatty(STDERR_FILENO))
		demo.plan.progress = progress_print;
	return demo_go(&demo, json);
}

const struct command command_demo = {
	.name = "demo",
	.summary = "bridge two namespaces, move the polling under load, tell what that did",
	.usage = "Usage: napier demo [OPTION…]\n"
		 "Makes two network namespaces, bridges them through the kernel and through "
		 "napier, each\nwith its pollers, under TCP request/response traffic; then moves "
		 "the polling 1000 times\nwhile traffic flows. Takes less than a minute and leaves "
		 "nothing behind. Without root it\ndoes the same in a user namespace.\n\n"
		 "  -j, --json           figures as JSON\n"
		 "      --quick          a few seconds: shows that it works, not how well\n"
		 "  -h, --help           this text\n",
	.run = demo_run,
};
