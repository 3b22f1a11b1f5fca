/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <control/client.h>
#include <control/hosted.h>

#define ANSWER_MAX (256u << 20) /* a whole table of addresses as text, with room */

/* The lock is the first that an engine takes, and the last that it gives back. */
static int nobody(const struct rundir *dir, struct error *err)
{
	pid_t pid = rundir_owner(dir);
	char others[128];

	if (pid > 0)
		return error_set(err, -EAGAIN,
				 "the engine named %s (pid %d) is just starting or ending: try "
				 "again",
				 rundir_name(dir), (int)pid);
	if (hosted_left(dir))
		return error_set(err, -ENOENT,
				 "no engine named %s is running (run directory %s): it was killed; "
				 "napier stop puts back the addresses and routes that it has moved",
				 rundir_name(dir), dir->path);
	rundir_running(dir, others, sizeof(others));
	return error_set(err, -ENOENT, "no engine named %s is running (run directory %s)%s%s",
			 rundir_name(dir), dir->path,
			 *others ? "; --name says which of these: " : "", others);
}

int client_connect(const struct rundir *dir, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval timeout = {.tv_sec = CLIENT_TIMEOUT_MS / 1000};
	char path[RUNDIR_PATH_MAX + 10];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return error_set(err, -errno, "socket: %s", strerror(errno));
	rundir_file(dir, "control", path);
	strcpy(address.sun_path, path);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	rc = -errno;
	close(fd);
	if (rc == -ENOENT || rc == -ECONNREFUSED || rc == -ENOTDIR)
		return nobody(dir, err);
	if (rc == -EAGAIN)
		return error_set(err, -ETIMEDOUT, "%s: the engine takes no connections (pid %d)",
				 path, (int)rundir_owner(dir));
	return error_set(err, rc, "%s: %s%s", path, strerror(-rc),
			 rc == -EACCES ? " (it is for root and the engine's user)" : "");
}

static int line_send(int fd, json_t *request, struct error *err)
{
	char *line = json_dumps(request, JSON_COMPACT);
	size_t n, at = 0;
	int rc = 0;

	json_decref(request);
	if (!line)
		return error_set(err, -ENOMEM, "no memory for a request");
	n = strlen(line);
	line[n++] = '\n';
	while (!rc && at < n) {
		ssize_t sent = send(fd, line + at, n - at, MSG_NOSIGNAL);

		if (sent > 0)
			at += (size_t)sent;
		else if (errno != EINTR)
			rc = error_set(err, -errno, "the engine takes no request: %s",
				       strerror(errno));
	}
	free(line);
	return rc;
}

/* Up to the newline, which is cut off. *out is the caller's to free, also after an error. */
static int line_receive(int fd, char **out, struct error *err)
{
	size_t room = 0, n = 0;

	*out = NULL;
	while (!n || (*out)[n - 1] != '\n') {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		ssize_t got;

		if (n + 1 >= room) {
			char *more =
				room < ANSWER_MAX ? realloc(*out, room + room / 2 + 65536) : NULL;

			if (!more)
				return error_set(err, -ENOMEM, "no memory for an answer");
			room += room / 2 + 65536;
			*out = more;
		}
		if (poll(&wait, 1, CLIENT_TIMEOUT_MS) == 0)
			return error_set(err, -ETIME, "the engine does not answer within %d s",
					 CLIENT_TIMEOUT_MS / 1000);
		got = recv(fd, *out + n, room - 1 - n, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return error_set(err, -ECONNRESET,
					 "the engine closed the connection without an answer");
		n += (size_t)got;
	}
	(*out)[n - 1] = '\0';
	return 0;
}

/* By its name, from the few that requests fail with. */
static int code_parse(const char *name)
{
	for (int code = 1; name && code < 134; code++) {
		const char *known = strerrorname_np(code);

		if (known && !strcmp(known, name))
			return -code;
	}
	return -EIO;
}

int client_ask(int fd, json_t *request, json_t **answer, struct error *err)
{
	const char *text;
	char *line;
	int rc = line_send(fd, request, err);

	*answer = NULL;
	if (rc)
		return rc;
	rc = line_receive(fd, &line, err);
	if (!rc) {
		*answer = json_loads(line, 0, NULL);
		if (!json_is_object(*answer))
			rc = error_set(err, -EPROTO, "the engine's answer is not JSON");
	}
	free(line);
	if (!rc && !json_is_true(json_object_get(*answer, "ok"))) {
		text = json_string_value(json_object_get(*answer, "error"));
		rc = error_set(err, code_parse(json_string_value(json_object_get(*answer, "code"))),
			       "%s", text ? text : "the engine refused, and does not say why");
	}
	if (rc) {
		json_decref(*answer);
		*answer = NULL;
	}
	return rc;
}

/* Everything that a reader relies on, since the file may be any other program's by mistake. */
static bool counters_sound(const struct counters_file *file, size_t size)
{
	uint64_t queues = (uint64_t)file->queues * file->queue_size + file->queue_offset;
	uint64_t cpus = (uint64_t)file->cpus * file->cpu_size + file->cpu_offset;

	return file->magic == COUNTERS_MAGIC && file->version == COUNTERS_VERSION &&
	       file->size <= size && file->queue_size == sizeof(struct queue_record) &&
	       file->cpu_size == sizeof(struct cpu_record) && queues <= size && cpus <= size &&
	       file->queue_offset % 64 == 0 && file->cpu_offset % 64 == 0;
}

int counters_map(const struct rundir *dir, const struct counters_file **out, struct error *err)
{
	char path[RUNDIR_PATH_MAX + 10];
	const struct counters_file *file;
	struct stat st;
	int fd;

	if (rundir_owner(dir) == 0)
		return nobody(dir, err);
	rundir_file(dir, "counters", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? nobody(dir, err)
				       : error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(*file)) {
		close(fd);
		return nobody(dir, err); /* it is just starting */
	}
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!counters_sound(file, (size_t)st.st_size)) {
		munmap((void *)file, (size_t)st.st_size);
		return error_set(err, -EPROTO, "%s: not the counters of napier %s", path,
				 NAPIER_VERSION);
	}
	*out = file;
	return 0;
}

void counters_unmap(const struct counters_file *file)
{
	if (file)
		munmap((void *)file, file->size);
}
