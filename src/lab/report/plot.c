/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lab/report/plot.h"

enum { SAID_MAX = 200, CHUNK = 65536 };

const char *plot_program = "gnuplot";
unsigned plot_limit_s = 20;

int plots_open(struct plots *plots)
{
	*plots = (struct plots){0};
	plots->script = open_memstream(&plots->text, &plots->size);
	if (!plots->script)
		return -ENOMEM;
	fputs("set encoding utf8\nset key off\n", plots->script);
	return 0;
}

unsigned plot_begin(struct plots *plots, unsigned width, unsigned height)
{
	fprintf(plots->script,
		"set terminal svg size %u,%u dynamic font 'inherit,13' linewidth 1 name 'p%u'\n",
		width, height, plots->n);
	return plots->n++;
}

struct drawer {
	pid_t pid;
	int out, said; /* our ends */
	FILE *svg;
	char *text;
	size_t size;
	char words[SAID_MAX + 1]; /* what it complained of, the beginning */
	size_t words_n;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A file of no name, since gnuplot reads a pipe byte by byte. */
static int script_open(const char *script, size_t size)
{
	int fd = memfd_create("plots", MFD_CLOEXEC);

	while (fd >= 0 && size) {
		ssize_t n = write(fd, script, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int code = errno;

			close(fd);
			errno = code;
			return -1;
		}
		script += n;
		size -= (size_t)n;
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

/* Without the user's own settings of it, and with points in decimals. */
static int drawer_spawn(struct drawer *drawer, int theirs[3])
{
	static char *const argv[] = {"gnuplot", "-d", "/dev/stdin", NULL};
	static char path[4096];
	char *environment[] = {path, "LC_ALL=C.UTF-8", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	const char *search = getenv("PATH");
	sigset_t none;
	int rc;

	snprintf(path, sizeof(path), "PATH=%.4000s", search ? search : "/usr/bin:/bin");
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	/* A group of its own: Ctrl-C is for us, who end it. */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&actions, theirs[i], i);
	rc = posix_spawnp(&drawer->pid, plot_program, &actions, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

static int drawer_start(struct drawer *drawer, const char *script, size_t size)
{
	int out[2], said[2], rc = 0;
	int in = script_open(script, size);

	*drawer = (struct drawer){0};
	if (in < 0)
		return -errno;
	if (pipe2(out, O_CLOEXEC | O_NONBLOCK)) {
		rc = -errno;
		close(in);
		return rc;
	}
	if (pipe2(said, O_CLOEXEC | O_NONBLOCK)) {
		rc = -errno;
		close(in);
		close(out[0]);
		close(out[1]);
		return rc;
	}
	/* Only our ends do not block. */
	fcntl(out[1], F_SETFL, 0);
	fcntl(said[1], F_SETFL, 0);
	drawer->svg = open_memstream(&drawer->text, &drawer->size);
	rc = drawer->svg ? drawer_spawn(drawer, (int[3]){in, out[1], said[1]}) : -ENOMEM;
	close(in);
	close(out[1]);
	close(said[1]);
	drawer->out = out[0];
	drawer->said = said[0];
	if (rc) {
		close(out[0]);
		close(said[0]);
		if (drawer->svg)
			fclose(drawer->svg);
		free(drawer->text);
	}
	return rc;
}

/* Returns how many bytes came; 0: it has closed that end. */
static ssize_t drawn_read(struct drawer *drawer)
{
	char chunk[CHUNK];
	ssize_t n = read(drawer->out, chunk, sizeof(chunk));

	if (n > 0)
		fwrite(chunk, 1, (size_t)n, drawer->svg);
	return n < 0 && errno == EAGAIN ? 1 : n;
}

static void words_read(struct drawer *drawer)
{
	char chunk[CHUNK];
	ssize_t n = read(drawer->said, chunk, sizeof(chunk));

	for (ssize_t i = 0; i < n && drawer->words_n < SAID_MAX; i++) {
		/* One line, without what gnuplot repeats of the script. */
		char c = chunk[i] == '\n' || chunk[i] == '\t' ? ' ' : chunk[i];

		if (c != ' ' || (drawer->words_n && drawer->words[drawer->words_n - 1] != ' '))
			drawer->words[drawer->words_n++] = c;
	}
}

static int drawer_hear(struct drawer *drawer)
{
	int64_t end = now_ms() + (int64_t)plot_limit_s * 1000;
	int said = drawer->said;

	for (;;) {
		struct pollfd fds[] = {{drawer->out, POLLIN, 0}, {said, POLLIN, 0}};
		int64_t left = end - now_ms();

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(fds, 2, (int)left) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (fds[1].revents & POLLIN)
			words_read(drawer);
		else if (fds[1].revents)
			said = -1; /* it has closed that end */
		if (fds[0].revents && drawn_read(drawer) <= 0)
			break;
	}
	words_read(drawer);
	return 0;
}

/* However it went; returns its status. */
static int drawer_end(struct drawer *drawer, bool kill_it)
{
	int status = 0;

	if (kill_it)
		kill(-drawer->pid, SIGKILL);
	while (waitpid(drawer->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(drawer->out);
	close(drawer->said);
	if (drawer->svg)
		fclose(drawer->svg);
	return status;
}

/* Each begins with a declaration, and ends the same way. */
static unsigned svgs_split(char *text, char **svg, unsigned n)
{
	static const char begin[] = "<svg", end[] = "</svg>";
	unsigned found = 0;

	while (found < n) {
		char *from = strstr(text, begin), *to = from ? strstr(from, end) : NULL;

		if (!to)
			break;
		to += sizeof(end) - 1;
		svg[found] = strndup(from, (size_t)(to - from));
		if (!svg[found])
			break;
		found++;
		text = to;
	}
	return found;
}

int plots_draw(struct plots *plots, struct error *err)
{
	struct drawer drawer;
	unsigned drawn = 0;
	int rc, status;

	rc = fclose(plots->script);
	plots->script = NULL;
	if (!plots->n)
		return 0;
	plots->svg = calloc(plots->n, sizeof(*plots->svg));
	if (rc || !plots->svg || !plots->text)
		return error_set(err, -ENOMEM, "no memory for plots");
	rc = drawer_start(&drawer, plots->text, plots->size);
	if (rc == -ENOENT)
		return error_set(err, rc, "gnuplot is not installed");
	if (rc)
		return error_set(err, rc, "gnuplot: %s", strerror(-rc));
	rc = drawer_hear(&drawer);
	status = drawer_end(&drawer, rc != 0);
	if (!rc && drawer.text)
		drawn = svgs_split(drawer.text, plots->svg, plots->n);
	free(drawer.text);
	if (rc == -ETIMEDOUT)
		return error_set(err, rc, "gnuplot did not end within %u s", plot_limit_s);
	if (rc)
		return error_set(err, rc, "gnuplot: %s", strerror(-rc));
	if (drawn < plots->n || !WIFEXITED(status) || WEXITSTATUS(status))
		return error_set(err, -EIO, "gnuplot drew %u of %u plots: %s", drawn, plots->n,
				 drawer.words_n ? drawer.words : "and did not say why");
	return 0;
}

void plots_close(struct plots *plots)
{
	if (plots->script)
		fclose(plots->script);
	for (unsigned i = 0; plots->svg && i < plots->n; i++)
		free(plots->svg[i]);
	free(plots->svg);
	free(plots->text);
	*plots = (struct plots){0};
}
