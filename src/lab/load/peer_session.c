/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <napier/napier.h>

#include "lab/clock.h"
#include "lab/load/peer_session.h"
#include "lab/measure/environment.h"
#include "lab/measure/usage.h"

/* A month. */
#define LASTS_MAX (31 * 24 * 3600 * NSEC_PER_SEC)

void session_say(const struct peer_server_config *config, const char *format, ...)
{
	char line[512];
	va_list arguments;

	if (!config->say)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	/* Parts of it are a stranger's, and it may be for a terminal. */
	for (char *c = line; *c; c++) {
		if (iscntrl((unsigned char)*c))
			*c = '.';
	}
	config->say(config->arg, line);
}

json_t *session_greeting(void)
{
	return json_pack("{s:s, s:i}", "napier", napier_version(), "protocol", PEER_VERSION);
}

json_t *session_error(int code, const char *text)
{
	return json_pack("{s:s, s:s}", "error", text, "code", peer_code_name(code));
}

static json_t *hello_answer(struct session *session, const json_t *request, bool *last)
{
	const json_t *protocol = json_object_get(request, "protocol");
	const char *version = json_string_value(json_object_get(request, "napier"));
	struct error err;

	if (!json_is_integer(protocol) || json_integer_value(protocol) != PEER_VERSION) {
		*last = true;
		error_set(&err, 0,
			  "the client speaks version %lld of the protocol (napier %.20s), the "
			  "server version %d (napier %s)",
			  (long long)json_integer_value(protocol), version ? version : "?",
			  PEER_VERSION, napier_version());
		return session_error(-EPROTONOSUPPORT, err.text);
	}
	session->greeted = true;
	return json_pack("{s:b}", "ok", 1);
}

static const char *load_words(const struct load_config *config, char *text, size_t size)
{
	const char *protocol = config->protocol == LOAD_UDP ? "UDP" : "TCP";

	if (config->kind == LOAD_RRUL)
		snprintf(text, size, "rrul");
	else
		snprintf(text, size, "%s, %s, %u flow%s", config->kind == LOAD_RR ? "rr" : "stream",
			 protocol, config->flows, config->flows == 1 ? "" : "s");
	return text;
}

/* Parameters and place of a start, as this end will have them. */
static int start_read(struct session *session, const json_t *request, struct load_config *load,
		      struct load_place *place, const struct load_ops **ops, struct error *err)
{
	const struct peer_server_config *config = session->config;
	int ret = load_config_read(json_object_get(request, "config"), load, err);

	if (!ret)
		ret = load_place_read(json_object_get(request, "place"), place, err);
	if (ret)
		return ret;
	*ops = config->ops(load->kind);
	ret = *ops ? (*ops)->check(load, err)
		   : error_set(err, -EOPNOTSUPP, "kind: there is no such workload here");
	if (!ret && config->fixed)
		ret = load_config_match(config->fixed, load, "on the server", "on the client", err);
	if (!ret && session->remote && place->engine.used && !config->engine)
		ret = error_set(err, -EPERM,
				"engine sockets need napier bench server --engine there");
	/* What the client calls this host may be another name for it. */
	if (!ret && session->remote)
		memcpy(place->address, session->here, sizeof(place->address));
	return ret;
}

/* How long a client that started this may be silent. */
static int patience_read(const struct session *session, const json_t *request,
			 const struct load_config *load, int64_t *out, struct error *err)
{
	const json_t *lasts = json_object_get(request, "lasts_ns");
	int64_t slack = session->config->slack ? session->config->slack : PEER_SLACK;

	if (!json_is_integer(lasts) || json_integer_value(lasts) < 0 ||
	    json_integer_value(lasts) > LASTS_MAX)
		return error_set(err, -EINVAL, "lasts_ns is a whole number, 0 to %lld",
				 (long long)LASTS_MAX);
	*out = json_integer_value(lasts) + load->timeout + slack * NSEC_PER_SEC;
	return 0;
}

/* Of a whole host that only serves: its threads, and all that its kernel does for them. */
static void usage_start(struct session *session, const pid_t *tids, unsigned n)
{
	static struct usage_config usage; /* large, and one at a time */
	struct error err;

	usage = (struct usage_config){.parties = 1, .party[0] = {.name = "server"}};
	for (unsigned i = 0; i < n && i < USAGE_TIDS_MAX; i++)
		usage.party[0].tid[usage.party[0].tids++] = tids[i];
	if (usage_open(&usage, &session->usage, &err)) {
		session->usage = NULL;
		session_say(session->config, "the CPU time of this side is not measured: %s",
			    err.text);
		return;
	}
	usage_begin(session->usage);
}

static json_t *start_answer(struct session *session, const json_t *request)
{
	pid_t tids[LOAD_TIDS_MAX];
	struct load_config load;
	struct load_place place;
	struct error err = {0};
	const struct load_ops *ops = NULL;
	json_t *threads;
	char words[64];
	unsigned n;
	int ret;

	if (session->ops)
		return session_error(-EBUSY, "a run has been started already");
	ret = start_read(session, request, &load, &place, &ops, &err);
	if (!ret)
		ret = patience_read(session, request, &load, &session->patience, &err);
	if (!ret)
		ret = ops->server_start(&load, &place, &session->load, &err);
	if (ret)
		return session_error(ret, err.text);
	session->ops = ops;
	n = ops->server_threads(session->load, tids);
	if (session->remote)
		usage_start(session, tids, n);
	session_say(session->config, "%s: %s", session->who,
		    load_words(&load, words, sizeof(words)));
	threads = json_array();
	for (unsigned i = 0; threads && i < n; i++)
		json_array_append_new(threads, json_integer(tids[i]));
	return json_pack("{s:b, s:o}", "ok", 1, "threads", threads);
}

static void usage_add(struct session *session, json_t *result)
{
	if (session->usage && result)
		json_object_set_new(result, "cpu", usage_end(session->usage, 0));
}

static json_t *result_answer(json_t *result)
{
	return json_pack("{s:b, s:o}", "ok", 1, "result", result);
}

static json_t *read_answer(struct session *session)
{
	json_t *result = session->ops->server_read(session->load);

	usage_add(session, result);
	if (session->usage)
		usage_begin(session->usage);
	return result_answer(result);
}

static json_t *stop_answer(struct session *session)
{
	json_t *result = NULL;

	session->ops->server_stop(session->load, &result);
	usage_add(session, result);
	session->ops = NULL;
	session_end(session);
	return result_answer(result);
}

void session_end(struct session *session)
{
	if (session->ops)
		session->ops->server_stop(session->load, NULL);
	session->ops = NULL;
	session->load = NULL;
	if (session->usage)
		usage_close(session->usage);
	session->usage = NULL;
}

json_t *session_answer(struct session *session, const json_t *request, bool *last)
{
	const char *what = json_string_value(json_object_get(request, "do"));
	char text[112];

	session->heard = clock_now();
	if (!what)
		return session_error(-EINVAL, "\"do\" is missing: it says what to do");
	if (!strcmp(what, "hello"))
		return hello_answer(session, request, last);
	if (!session->greeted)
		return session_error(-EINVAL, "hello comes first");
	/* Takes a while, so only who is greeted has it. */
	if (!strcmp(what, "environment"))
		return json_pack("{s:b, s:o?}", "ok", 1, "environment", environment_read());
	if (!strcmp(what, "start"))
		return start_answer(session, request);
	if (strcmp(what, "read") && strcmp(what, "stop")) {
		snprintf(text, sizeof(text),
			 "\"%.40s\": it is hello, environment, start, read or stop", what);
		return session_error(-EINVAL, text);
	}
	if (!session->ops)
		return session_error(-EINVAL, "nothing has been started");
	return *what == 'r' ? read_answer(session) : stop_answer(session);
}
