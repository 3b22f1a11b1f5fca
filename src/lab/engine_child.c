/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <control/client.h>
#include <napier/counters.h>

#include "lab/clock.h"
#include "lab/engine_child.h"
#include "lab/netlab.h"

#define START_TIMEOUT (60 * NSEC_PER_SEC)

enum { ARGUMENTS = 24 };

/* It takes connections before its ports are open, and answers after that. */
static bool engine_answers(const struct rundir *dir)
{
	struct error ignored;
	int fd = client_connect(dir, &ignored);
	json_t *answer;
	int ret;

	if (fd < 0)
		return false;
	ret = client_ask(fd, json_pack("{s:s}", "request", "ping"), &answer, &ignored);
	close(fd);
	if (!ret)
		json_decref(answer);
	return !ret;
}

/* Until it works, or has failed. */
static int engine_wait(struct engine_child *engine, struct error *err)
{
	int64_t deadline = clock_now() + START_TIMEOUT;

	while (!engine_answers(&engine->dir)) {
		if (child_ended(&engine->child, err))
			return -ECHILD;
		if (clock_now() > deadline)
			return error_set(err, -ETIMEDOUT, "napier does not answer after %d s",
					 (int)(START_TIMEOUT / NSEC_PER_SEC));
		clock_sleep(NSEC_PER_MSEC);
	}
	return 0;
}

int engine_child_start(const struct engine_child_config *config, struct engine_child *out,
		       struct error *err)
{
	char name[32];
	const char *argv[ARGUMENTS] = {config->napier, "run",	 "--run-dir",
				       config->rundir, "--name", name};
	int ret, n = 6;

	*out = ENGINE_CHILD_NONE;
	netlab_engine_name(getpid(), name);
	for (const char *const *a = config->arguments; *a && n < ARGUMENTS - 1; a++)
		argv[n++] = *a;
	ret = rundir_find(&out->dir, config->rundir, name, err);
	if (!ret)
		ret = child_start(&out->child, argv, &config->cpus, config->netns, err);
	if (!ret)
		ret = engine_wait(out, err);
	if (ret)
		child_stop(&out->child, NULL);
	return ret;
}

int engine_child_stop(struct engine_child *engine, struct error *err)
{
	return child_stop(&engine->child, err);
}

int engine_child_set(const struct engine_child *engine, const char *port, const char *key,
		     const char *value, struct error *err)
{
	int fd = client_connect(&engine->dir, err);
	json_t *answer;
	int ret;

	if (fd < 0)
		return fd;
	ret = client_ask(fd,
			 json_pack("{s:s, s:s, s:{s:s}}", "request", "set", "port", port, "keys",
				   key, value),
			 &answer, err);
	close(fd);
	if (!ret)
		json_decref(answer);
	return ret;
}

int engine_child_counts(const struct engine_child *engine, const char *port,
			struct engine_child_counts *out)
{
	const struct counters_file *file;
	struct error err;
	int ret = counters_map(&engine->dir, &file, &err);

	*out = (struct engine_child_counts){0};
	if (ret)
		return ret;
	for (uint32_t i = 0; i < file->queues; i++) {
		const struct queue_record *r = counters_queue_at(file, i);

		if (!r->in_use || (port && strcmp(r->port_name, port)))
			continue;
		out->received += counter_read(&r->napi.received);
		out->polls += counter_read(&r->napi.polls) - counter_read(&r->napi.empty_polls);
		out->merged += counter_read(&r->napi.merged);
	}
	counters_unmap(file);
	return 0;
}
