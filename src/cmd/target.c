/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmd/target.h>

/* "cpu/N"; text is what follows "cpu". */
static int cpu_take(const char *text, struct target *out, struct error *err)
{
	bool number = *text == '/' && text[1] && !text[1 + strspn(text + 1, "0123456789")];

	if (!number || strlen(text + 1) > 4 || atoi(text + 1) >= CPU_MAX)
		return error_set(err, -EINVAL,
				 "\"cpu%.40s\": an engine CPU is written cpu/N, N being 0..%d, and "
				 "all of them engine",
				 text, CPU_MAX - 1);
	out->kind = TARGET_CPU;
	out->cpu = (unsigned)atoi(text + 1);
	return 0;
}

/* "irq/N", "ksoftirqd/N", "busy/N", "kworker". 1: it is none of them. */
static int runner_take(const char *text, struct target *out, struct error *err)
{
	const char *slash = strchr(text, '/');
	char name[16];

	if (snprintf(name, sizeof(name), "%.*s", slash ? (int)(slash - text) : 16, text) > 15 ||
	    runner_role_parse(name, &out->role))
		return 1;
	out->kind = TARGET_RUNNER;
	if (!slash && out->role == ROLE_KWORKER)
		return 0;
	if (out->role == ROLE_KWORKER || !slash || !slash[1] || strlen(slash) > 5 ||
	    slash[1 + strspn(slash + 1, "0123456789")] || atoi(slash + 1) >= CPU_MAX)
		return error_set(err, -EINVAL,
				 "\"%.60s\": the engine's threads are irq/N, ksoftirqd/N and "
				 "busy/N, N being the CPU, and kworker, all of them",
				 text);
	out->cpu = (unsigned)atoi(slash + 1);
	return 0;
}

int target_parse(const char *text, struct target *out, struct error *err)
{
	const char *slash = strrchr(text, '/');
	bool queue = slash && slash[1] && slash[1 + strspn(slash + 1, "0123456789")] == '\0';
	size_t n = queue ? (size_t)(slash - text) : strlen(text);
	int rc;

	*out = (struct target){.queue = -1};
	if (!strcmp(text, "engine") || !strcmp(text, "default")) {
		out->kind = *text == 'e' ? TARGET_ENGINE : TARGET_DEFAULT;
		return 0;
	}
	rc = runner_take(text, out, err);
	if (rc != 1)
		return rc;
	if (!strncmp(text, "cpu", 3) && (!text[3] || text[3] == '/'))
		return cpu_take(text + 3, out, err);
	if (n == 0 || n >= sizeof(out->port))
		return error_set(err, -EINVAL, "\"%.60s\" is no port: a name of 1 to %zu bytes",
				 text, sizeof(out->port) - 1);
	memcpy(out->port, text, n);
	if (strchr(out->port, '/'))
		return error_set(err, -EINVAL,
				 "\"%.60s\" is no port: a queue is written PORT/N, N being 0..%d",
				 text, PORT_QUEUES_MAX - 1);
	if (!queue)
		return 0;
	if (strlen(slash + 1) > 4 || atoi(slash + 1) >= PORT_QUEUES_MAX)
		return error_set(err, -EINVAL, "%.60s: queues are 0..%d", text,
				 PORT_QUEUES_MAX - 1);
	out->queue = atoi(slash + 1);
	return 0;
}
