/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control's side of the state word: init, switch, disable, enable, end. The engine's lock is held,
 * so there is one asker at a time; it stores its wish, sets a bit, and waits for the holder of the
 * token, or acts as the holder when nobody is.
 */
#include <errno.h>
#include <string.h>

#include <napier/port.h>

#include <core/automatic.h>
#include <core/engine_queue.h>
#include <core/wake_source.h>
#include <poller/softirq.h>

int napi_init(struct napi *napi, enum poller poller, struct error *err)
{
	int rc = poller_ops(poller)->prepare(napi, napi->softnet, err);

	if (rc)
		return rc;
	atomic_store(&napi->state, NAPI_DISABLED | (uint32_t)poller << NAPI_POLLER_SHIFT);
	rc = wake_source_init(napi);
	if (!rc) {
		rc = napi_attach(napi, poller);
		if (rc)
			wake_source_destroy(napi);
	}
	if (rc) {
		poller_ops(poller)->retire(napi, napi->softnet);
		return error_set(err, rc, "%s/%u: its descriptor cannot be waited for: %s",
				 napi->queue->port->name, napi->queue->index, strerror(-rc));
	}
	irq_mask(&napi->queue->irq);
	napi->irq_masked = true;
	return 0;
}

void napi_end(struct napi *napi)
{
	irq_detach(&napi->timer);
	irq_detach(&napi->queue->irq);
	wake_source_destroy(napi);
	poller_ops(napi_poller(napi))->retire(napi, napi->softnet);
}

static bool bits_clear(struct napi *napi, uint32_t bits)
{
	return !(napi_state_load(napi) & bits);
}

static bool switch_over(void *arg)
{
	return bits_clear(arg, NAPI_SWITCH | NAPI_MOVING);
}

static bool disable_over(void *arg)
{
	return bits_clear(arg, NAPI_DISABLING);
}

/*
 * Sets the request's bits, and takes the token when nobody has it: then the caller is the holder,
 * and does what it asks for itself. That is one atomic operation, so no holder can come between.
 */
static void napi_request(struct napi *napi, uint32_t request)
{
	uint32_t state = napi_state_load(napi);

	while (!atomic_compare_exchange_weak(&napi->state, &state, state | request | NAPI_SCHED))
		;
	if (state & NAPI_SCHED)
		return;
	wake_source_taken(napi);
	if (!napi_release(napi, napi->engine->context))
		napi_pass(napi); /* it failed: the token goes on */
}

/* Takes a request back. False: too late, it has been served, or the holder has claimed it. */
static bool napi_withdraw(struct napi *napi, uint32_t bit, uint32_t request)
{
	uint32_t state = napi_state_load(napi);

	do {
		if (!(state & bit))
			return false;
	} while (!atomic_compare_exchange_weak(&napi->state, &state, state & ~request));
	return true;
}

/* Nobody polls and nobody will: the word is control's. */
static int switch_disabled(struct napi *napi, enum poller poller, struct softnet *softnet)
{
	struct softnet *before = napi->softnet;
	int rc;

	napi->softnet = softnet;
	rc = napi_attach(napi, poller);
	if (rc) {
		napi->softnet = before;
		return rc;
	}
	counter_add(&napi->record->napi.switches, 1);
	atomic_store(&napi->state, NAPI_DISABLED | (uint32_t)poller << NAPI_POLLER_SHIFT);
	return 0;
}

static void record_switch(struct napi *napi, int64_t took)
{
	struct queue_record *record = napi->record;

	atomic_store(&record->poller_observed, (uint32_t)napi_poller(napi));
	atomic_store(&record->cpu, softnet_cpu(napi->softnet));
	atomic_store(&record->switch_ns, took);
	if (took > atomic_load(&record->switch_max_ns))
		atomic_store(&record->switch_max_ns, took);
}

/* It has been decided: takes down what is not needed now. */
static int switch_finish(struct napi *napi, int rc, int64_t *took, struct error *err)
{
	struct napi_change *change = &napi->change;
	const struct port_queue *queue = napi->queue;
	int64_t ns = machine_now(napi->engine->machine) - change->start;

	change->pending = false;
	if (rc) {
		if (change->prepared)
			poller_ops(change->wish)->retire(napi, change->to);
		return error_set(err, rc, "%s/%u: poller stays %s: %s", queue->port->name,
				 queue->index, poller_name(change->before),
				 rc == -ETIMEDOUT ? "its poll did not end in time" : strerror(-rc));
	}
	if (took)
		*took = ns;
	record_switch(napi, ns);
	if (change->prepared)
		poller_ops(change->before)->retire(napi, change->from);
	if (change->wish != change->before)
		queue_told(napi);
	return 0;
}

int napi_switch_begin(struct napi *napi, enum poller poller, struct softnet *softnet,
		      struct error *err)
{
	uint32_t cpu = (uint32_t)(softnet - napi->engine->softnet);
	enum poller before = napi_poller(napi);
	bool prepare = poller != before || poller_ops(poller)->per_cpu;
	int rc;

	if (poller == before && softnet == napi->softnet)
		return 0;
	rc = port_poller_check(napi->queue->port, poller, err);
	if (rc)
		return rc;
	if (prepare) {
		rc = poller_ops(poller)->prepare(napi, softnet, err);
		if (rc)
			return rc;
	}
	napi->change = (struct napi_change){
		.pending = true,
		.prepared = prepare,
		.before = before,
		.wish = poller,
		.from = napi->softnet,
		.to = softnet,
		.start = machine_now(napi->engine->machine),
	};
	if (napi_disabled(napi))
		return switch_finish(napi, switch_disabled(napi, poller, softnet), NULL, err);
	napi->switch_error = 0;
	napi_request(napi, NAPI_SWITCH | (uint32_t)poller << NAPI_WISH_SHIFT |
				   cpu << NAPI_WISH_CPU_SHIFT);
	return 0;
}

int napi_switch_end(struct napi *napi, bool withdraw, struct error *err)
{
	if (!napi->change.pending)
		return 0;
	if (switch_over(napi))
		return switch_finish(napi, napi->switch_error, NULL, err);
	if (withdraw && napi_withdraw(napi, NAPI_SWITCH, NAPI_REQUEST_SWITCH))
		return switch_finish(napi, -ETIMEDOUT, NULL, err);
	return -EAGAIN;
}

/* Waits for the end of what was begun. */
static int switch_wait(struct napi *napi, int64_t deadline, int64_t *took, struct error *err)
{
	struct machine *machine = napi->engine->machine;

	if (!napi->change.pending)
		return 0;
	if (machine_wait(machine, switch_over, napi, deadline)) {
		if (napi_withdraw(napi, NAPI_SWITCH, NAPI_REQUEST_SWITCH))
			return switch_finish(napi, -ETIMEDOUT, NULL, err);
		/* Claimed: the holder is past its poll and has only the interrupts to move. */
		machine_wait(machine, switch_over, napi, TIME_NEVER);
	}
	return switch_finish(napi, napi->switch_error, took, err);
}

static int64_t deadline_in(const struct napi *napi, int64_t timeout)
{
	return machine_now(napi->engine->machine) + timeout;
}

void napi_settle(struct napi *napi)
{
	switch_wait(napi, deadline_in(napi, SWITCH_TIMEOUT), NULL, NULL);
}

int napi_switch(struct napi *napi, enum poller poller, struct softnet *softnet, int64_t timeout,
		int64_t *took, struct error *err)
{
	int64_t deadline = deadline_in(napi, timeout);
	int64_t ignored;
	int rc;

	if (!took)
		took = &ignored;
	*took = 0;
	/* One that poller auto began: until it is over its holder says where the NAPI is. */
	switch_wait(napi, deadline, NULL, NULL);
	if (!softnet)
		softnet = napi->softnet;
	rc = napi_switch_begin(napi, poller, softnet, err);
	return rc ? rc : switch_wait(napi, deadline, took, err);
}

int napi_disable_locked(struct napi *napi, int64_t timeout)
{
	int64_t deadline = deadline_in(napi, timeout);

	if (napi_disabled(napi))
		return 0;
	switch_wait(napi, deadline, NULL, NULL);
	napi_request(napi, NAPI_DISABLING);
	if (machine_wait(napi->engine->machine, disable_over, napi, deadline) &&
	    napi_withdraw(napi, NAPI_DISABLING, NAPI_DISABLING))
		return -ETIMEDOUT;
	atomic_store(&napi->record->disabled, 1);
	return 0;
}

void napi_enable_locked(struct napi *napi)
{
	if (!napi_disabled(napi))
		return;
	atomic_store(&napi->record->disabled, 0);
	/* Nobody else touches the mask while DISABLED is set. */
	if (napi->irq_masked) {
		napi->irq_masked = false;
		irq_unmask(&napi->queue->irq);
	}
	atomic_fetch_and(&napi->state, ~(uint32_t)NAPI_DISABLED);
	napi_schedule(napi); /* what arrived meanwhile had no interrupt */
}

int napi_poller_set(struct napi *napi, enum poller poller, int64_t timeout, int64_t *took,
		    struct error *err)
{
	int rc;

	if (!poller_valid(poller))
		return error_set(err, -EINVAL, "no such poller; there are: %s", poller_list());
	engine_lock(napi->engine);
	if (took)
		*took = 0;
	if (poller == POLLER_AUTO)
		rc = automatic_begin(napi, err);
	else
		rc = napi_switch(napi, poller, NULL, timeout, took, err);
	if (!rc && poller != POLLER_AUTO)
		automatic_end(napi);
	if (!rc)
		atomic_store(&napi->record->poller_asked, (uint32_t)poller);
	engine_unlock(napi->engine);
	return rc;
}

int napi_disable(struct napi *napi, int64_t timeout)
{
	int rc;

	engine_lock(napi->engine);
	rc = napi_disable_locked(napi, timeout);
	engine_unlock(napi->engine);
	return rc;
}

int napi_enable(struct napi *napi)
{
	engine_lock(napi->engine);
	napi_enable_locked(napi);
	engine_unlock(napi->engine);
	return 0;
}
