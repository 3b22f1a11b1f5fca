/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <core/automatic.h>
#include <core/engine_queue.h>

#define LOOK_IDLE (10 * CHOICE_INTERVAL) /* nothing comes, and nobody spins */
#define LOOK_SOON NSEC_PER_MSEC		 /* a switch is not over yet, or control has the lock */

struct automatic {
	struct engine *engine;
	struct runner *runner;
	uint32_t users;
	uint64_t looks;
	int64_t next;
	struct meter meter;
};

static void why_tell(struct napi *napi)
{
	struct queue_record *record = napi->record;

	snprintf(record->why, sizeof(record->why), "%s",
		 napi->automatic ? napi->automatic->choice.why : "");
}

__attribute__((format(printf, 2, 3))) static void decision_log(struct napi *napi,
							       const char *format, ...)
{
	const struct port_queue *queue = napi->queue;
	char text[96];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	engine_log(napi->engine, LEVEL_INFO, "%s/%u: auto: %s: %s", queue->port->name, queue->index,
		   text, napi->automatic->choice.why);
	why_tell(napi);
}

/* It ended, whoever saw to that. */
static void switch_ended(struct napi *napi)
{
	struct automatic_napi *a = napi->automatic;

	a->switches = false;
	a->meter.fresh = false;
	if (napi_poller(napi) == a->wanted) {
		choice_made(&a->choice, a->wanted);
		return;
	}
	choice_failed(&a->choice, a->wanted);
	a->choice.poller = napi_poller(napi);
	decision_log(napi, "%s cannot be had", poller_name(a->wanted));
}

/* True: it is not over yet. */
static bool switch_goes_on(struct automatic *automatic, struct napi *napi)
{
	struct automatic_napi *a = napi->automatic;
	int64_t now = machine_now(automatic->engine->machine);

	if (!a->switches)
		return false;
	if (napi_switch_end(napi, now >= a->deadline, NULL) == -EAGAIN)
		return true;
	switch_ended(napi);
	return false;
}

static void switch_start(struct automatic *automatic, struct napi *napi, enum poller wanted)
{
	static const char *const moves[] = {
		[CHOICE_TRY] = "tries",
		[CHOICE_BACK] = "goes back to",
		[CHOICE_LEAVE] = "rests with",
	};
	struct automatic_napi *a = napi->automatic;
	struct softnet *softnet =
		wanted == POLLER_BUSY_POLL ? meter_spin_softnet(&automatic->meter, napi) : a->home;
	struct error err;

	decision_log(napi, "%s %s after %s", moves[a->choice.move], poller_name(wanted),
		     poller_name(a->choice.poller));
	a->wanted = wanted;
	a->switches = true;
	a->deadline = machine_now(automatic->engine->machine) + SWITCH_TIMEOUT;
	if (napi_switch_begin(napi, wanted, softnet, &err)) {
		snprintf(a->choice.why, sizeof(a->choice.why), "%.*s",
			 (int)sizeof(a->choice.why) - 1, err.text);
		switch_ended(napi);
	}
}

static void napi_look(struct automatic *automatic, struct napi *napi, struct choice_sample *s)
{
	struct choice *choice = &napi->automatic->choice;
	bool tried = choice->tries;
	enum poller wanted;

	/* Another may have been set and auto asked for again. */
	if (choice->poller != napi_poller(napi)) {
		choice_init(choice, napi_poller(napi), choice->can);
		napi->automatic->meter.fresh = false;
	}
	wanted = choice_step(choice, s);
	if (wanted != choice->poller)
		switch_start(automatic, napi, wanted);
	else if (tried && !choice->tries)
		decision_log(napi, "stays with %s", poller_name(wanted));
}

/* All of them, the one first that was second before: so that each gets its turn to try. */
static void napis_look(struct automatic *automatic, bool may_try)
{
	uint64_t first = automatic->looks++ % automatic->users;

	for (int turn = 0; turn < 2; turn++) {
		struct napi_walk walk = {0};
		struct napi *napi;
		uint64_t i = 0;

		while ((napi = napi_walk_next(automatic->engine, &walk))) {
			struct choice_sample s;

			if (!napi->automatic || (i++ < first) == !turn || napi_disabled(napi))
				continue;
			meter_sample(&automatic->meter, napi, &s);
			s.may_try = may_try;
			napi_look(automatic, napi, &s);
			may_try = may_try && !napi->automatic->switches;
		}
	}
}

/* One look at everything. Returns when the next one is due. */
static int64_t look(struct automatic *automatic, int64_t now)
{
	bool tries = false, measures = false;
	struct napi_walk walk = {0};
	struct napi *napi;

	while ((napi = napi_walk_next(automatic->engine, &walk))) {
		if (!napi->automatic)
			continue;
		tries |= napi->automatic->choice.tries;
		measures |= choice_measures(&napi->automatic->choice);
	}
	meter_look(&automatic->meter, now, measures);
	napis_look(automatic, !tries);
	return now + (automatic->meter.active || tries ? CHOICE_INTERVAL : LOOK_IDLE);
}

static struct step automatic_step(void *arg)
{
	struct automatic *automatic = arg;
	struct engine *engine = automatic->engine;
	int64_t now = machine_now(engine->machine);
	struct napi_walk walk = {0};
	struct napi *napi;
	bool waits = false;

	if (now < automatic->next)
		return STEP_UNTIL(automatic->next);
	automatic->next = now + LOOK_SOON;
	if (!lock_try(&engine->control))
		return STEP_UNTIL(automatic->next);
	while ((napi = napi_walk_next(engine, &walk)))
		waits |= napi->automatic && switch_goes_on(automatic, napi);
	if (!waits && now - automatic->meter.last >= CHOICE_INTERVAL)
		automatic->next = look(automatic, now);
	else if (!waits)
		automatic->next = automatic->meter.last + CHOICE_INTERVAL;
	walk = (struct napi_walk){0};
	while ((napi = napi_walk_next(engine, &walk))) {
		if (napi->automatic && napi->automatic->switches)
			automatic->next = now + LOOK_SOON;
	}
	engine_unlock(engine);
	return STEP_UNTIL(automatic->next);
}

static void automatic_free(struct automatic *automatic)
{
	meter_end(&automatic->meter);
	free(automatic);
}

static int automatic_start(struct engine *engine, struct error *err)
{
	struct runner_config config = {.name = "napier/auto", .step = automatic_step};
	struct automatic *automatic = calloc(1, sizeof(*automatic));
	int rc;

	if (!automatic || meter_begin(&automatic->meter, engine)) {
		free(automatic);
		return error_set(err, -ENOMEM, "no memory for poller auto");
	}
	automatic->engine = engine;
	automatic->next = automatic->meter.last + CHOICE_INTERVAL;
	config.arg = automatic;
	rc = runner_start(engine->machine, &config, &automatic->runner, err);
	if (rc) {
		automatic_free(automatic);
		return rc;
	}
	engine->automatic = automatic;
	return 0;
}

int automatic_begin(struct napi *napi, struct error *err)
{
	struct engine *engine = napi->engine;
	struct automatic_napi *a;
	int rc = 0;

	if (napi->automatic)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return error_set(err, -ENOMEM, "no memory for poller auto");
	if (!engine->automatic)
		rc = automatic_start(engine, err);
	if (rc) {
		free(a);
		return rc;
	}
	engine->automatic->users++;
	choice_init(&a->choice, napi_poller(napi), napi->queue->port->ops->pollers);
	meter_napi_begin(&a->meter, napi);
	a->home = napi->softnet;
	napi->automatic = a;
	why_tell(napi);
	return 0;
}

void automatic_end(struct napi *napi)
{
	struct automatic *automatic = napi->engine->automatic;

	if (!napi->automatic)
		return;
	napi_settle(napi);
	free(napi->automatic);
	napi->automatic = NULL;
	why_tell(napi);
	if (--automatic->users)
		return;
	napi->engine->automatic = NULL;
	runner_stop(automatic->runner);
	automatic_free(automatic);
}

void automatic_home(struct napi *napi)
{
	if (napi->automatic)
		napi->automatic->home = napi->softnet;
}
