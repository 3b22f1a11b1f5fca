/* SPDX-License-Identifier: BSD-2-Clause */
#include "command_rig.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void file_read(const char *path, char *text)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, TEXT_MAX - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
}

int file_new(const struct command_rig *rig, const char *kind, char path[64])
{
	static unsigned count;

	snprintf(path, 64, "%s/%s-%u", rig->base, kind, count++);
	return open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
}

void file_make(const struct command_rig *rig, const char *kind, const char *bytes, size_t n,
	       char path[64])
{
	int fd = file_new(rig, kind, path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

void process_start(struct command_rig *rig, struct process *p, const char *arguments)
{
	char copy[2048], *argv[64] = {NAPIER}, *rest = copy;
	int argc = 1, out, err;

	snprintf(copy, sizeof(copy), "%s", arguments);
	while ((argv[argc] = strsep(&rest, " ")))
		argc++;
	out = file_new(rig, "out", p->out_path);
	err = file_new(rig, "err", p->err_path);
	assert_true(out >= 0 && err >= 0);
	fflush(NULL);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (!p->pid) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		execv(NAPIER, argv);
		_exit(126);
	}
	close(out);
	close(err);
}

void process_end(struct process *p)
{
	p->status = netns_wait(p->pid, READY_MS / 1000);
	file_read(p->out_path, p->out);
	file_read(p->err_path, p->err);
	unlink(p->out_path);
	unlink(p->err_path);
}

/* What was asked was not done within its bound, and all is as it was. */
static bool too_busy(const char *err)
{
	return strstr(err, " in time") || strstr(err, "does not end; the port stays");
}

int napier(struct command_rig *rig, struct process *p, const char *format, ...)
{
	char arguments[2048];
	va_list list;

	va_start(list, format);
	vsnprintf(arguments, sizeof(arguments), format, list);
	va_end(list);
	for (int i = 0; i < 30; i++) {
		process_start(rig, p, arguments);
		process_end(p);
		if (!p->status || !too_busy(p->err))
			break;
	}
	return p->status;
}

bool notified(const struct command_rig *rig, const char *state, int ms)
{
	struct pollfd wait = {.fd = rig->notify, .events = POLLIN};
	char text[64];

	while (poll(&wait, 1, ms) == 1) {
		ssize_t n = recv(rig->notify, text, sizeof(text) - 1, 0);

		text[n > 0 ? n : 0] = '\0';
		if (!strcmp(text, state))
			return true;
	}
	return false;
}

/* It is still there to be waited for. */
static bool has_ended(const struct process *p)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

void engine_start(struct command_rig *rig, struct process *p, const char *format, ...)
{
	char arguments[2048];
	bool ended = false;
	va_list list;

	va_start(list, format);
	vsnprintf(arguments, sizeof(arguments), format, list);
	va_end(list);
	process_start(rig, p, arguments);
	rig->engine = p->pid;
	for (int ms = 0; ms < READY_MS && !ended; ms += 100) {
		ended = has_ended(p);
		if (notified(rig, "READY=1", 100))
			return;
	}
	rig->engine = 0;
	kill(p->pid, SIGKILL);
	process_end(p);
	fail_msg("napier %s: %s, status %d: %s", arguments, ended ? "ended" : "not ready",
		 p->status, p->err);
}

void engine_start_file(struct command_rig *rig, struct process *p, const char *conf)
{
	char path[64];

	file_make(rig, "conf", conf, strlen(conf), path);
	engine_start(rig, p, "run --run-dir %s -c %s", rig->base, path);
	unlink(path);
}

void engine_freeze(const struct process *p)
{
	int status;

	assert_int_equal(kill(p->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(p->pid, &status, WUNTRACED), p->pid);
	assert_true(WIFSTOPPED(status));
}

void engine_signal(struct command_rig *rig, struct process *p, int number)
{
	kill(p->pid, number);
	process_end(p);
	rig->engine = 0;
	if (number != SIGKILL)
		assert_true(notified(rig, "STOPPING=1", 0));
}

void engine_stop(struct command_rig *rig, struct process *p)
{
	engine_signal(rig, p, SIGTERM);
	assert_int_equal(p->status, 0);
}

int command_rig_open(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct command_rig *rig = calloc(1, sizeof(*rig));

	netns_links_open(&rig->links, false);
	strcpy(rig->base, "/tmp/napier-command-XXXXXX");
	assert_non_null(mkdtemp(rig->base));
	for (int i = 0; i < 2; i++)
		netns_spec(&rig->links, i, "packet", "", rig->spec[i]);
	rig->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", rig->base);
	assert_int_equal(bind(rig->notify, (struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	*state = rig;
	return 0;
}

int command_rig_close(void **state)
{
	struct command_rig *rig = *state;
	char path[64], clear[64];
	bool left;

	if (rig->engine) { /* the test failed while it ran */
		kill(rig->engine, SIGKILL);
		netns_wait(rig->engine, NETNS_SECONDS);
	}
	snprintf(path, sizeof(path), "%s/notify", rig->base);
	unlink(path);
	close(rig->notify);
	/* Nothing but that may be in it. */
	left = rmdir(rig->base) && !rig->engine;
	snprintf(clear, sizeof(clear), "rm -rf %s", rig->base);
	assert_int_equal(netns_run(&rig->links, rig->links.inner[0], "%s", clear), 0);
	netns_links_close(&rig->links);
	free(rig);
	assert_false(left);
	return 0;
}

json_t *show_json(struct command_rig *rig, const char *arguments)
{
	struct process p;
	json_t *view;

	if (napier(rig, &p, "show -j --run-dir %s%s", rig->base, arguments))
		fail_msg("napier show ended with %d: %s", p.status, p.err);
	view = json_loads(p.out, 0, NULL);
	assert_non_null(view);
	return view;
}

json_t *find(const json_t *view, const char *array, const char *member, const char *text)
{
	size_t i;
	json_t *o;

	json_array_foreach(json_object_get(view, array), i, o)
	{
		const char *value = json_string_value(json_object_get(o, member));

		if (value && !strcmp(value, text))
			return o;
	}
	return NULL;
}

long long number(const json_t *o, const char *member)
{
	assert_true(json_is_integer(json_object_get(o, member)));
	return json_integer_value(json_object_get(o, member));
}

const char *text(const json_t *o, const char *member)
{
	assert_true(json_is_string(json_object_get(o, member)));
	return json_string_value(json_object_get(o, member));
}

void packets_wait(struct command_rig *rig, const char *arguments, const char *port,
		  const char *member, long long n)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	long long now = -1;

	for (int i = 0; i < NETNS_SECONDS * 20 && now != n; i++) {
		json_t *view = show_json(rig, arguments);

		now = number(find(view, "ports", "name", port), member);
		json_decref(view);
		if (now != n)
			nanosleep(&pause, NULL);
	}
	if (now != n)
		fail_msg("port %s: %s is %lld, not %lld", port, member, now, n);
}

void state_wait(struct command_rig *rig, const char *port, const char *wanted)
{
	const struct timespec pause = {.tv_nsec = 50000000};

	for (int i = 0; i < NETNS_SECONDS * 20; i++) {
		json_t *view = show_json(rig, "");
		json_t *o = find(view, "ports", "name", port);
		bool there = o && !strcmp(text(o, "state"), wanted);

		json_decref(view);
		if (there)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("port %s does not become %s", port, wanted);
}

int shell(const char *format, ...)
{
	char line[2048];
	va_list list;
	int status;

	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	status = system(line);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
