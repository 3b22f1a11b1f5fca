/* SPDX-License-Identifier: BSD-2-Clause */
/* What always holds of softirq: its rounds' budget and time, and when it leaves work to ksoftirqd.
 */
#include <inttypes.h>

#include <poller/softirq.h>

#include <sim/sim.h>

/* I5: a round ends when its packets or its time are used up, so no further poll begins then. */
void sim_check_softirq_poll(struct sim *sim, const struct napi *napi, const struct context *context)
{
	const struct softnet *softnet = napi->softnet;
	uint32_t budget = sim->engine->budget;
	int64_t limit = engine_budget_ns(sim->engine);
	struct sim_round *round = &sim->round[softnet - sim->engine->softnet];
	uint64_t rounds = counter_read(&softnet->record->counters.rounds);

	round->polls++;
	if (rounds != round->rounds) {
		round->rounds = rounds;
		round->packets = 0;
		round->began = context->now;
		return;
	}
	if (round->packets >= budget)
		sim_fail(sim,
			 "I5: a poll in a softirq round that has had %u packets, of a budget of %u",
			 round->packets, budget);
	if (context->now - round->began >= limit)
		sim_fail(sim,
			 "I5: a poll in a softirq round that has had %" PRId64 " us, of %" PRId64,
			 (context->now - round->began) / 1000, limit / 1000);
}

void sim_check_softirq_polled(struct sim *sim, const struct napi *napi, uint32_t n)
{
	sim->round[napi->softnet - sim->engine->softnet].packets += n;
}

/*
 * Policy looped: within so many ticks of the last restart irq/N leaves all to ksoftirqd at once,
 * and later it does not.
 */
static void looped_check(struct sim *sim, const struct softnet *softnet,
			 const struct sim_round *before)
{
	uint32_t word = atomic_load(&softnet->deferral);
	int64_t tick = NSEC_PER_SEC / sim->engine->config.hz;
	int64_t ticks = machine_now(sim->machine) / tick - before->looped_at / tick;
	bool within = before->looped_at >= 0 && ticks < DEFERRAL_TICKS(word);
	bool left = counter_read(&softnet->record->counters.punted[PUNT_LOOPED]) != before->left;

	if (DEFERRAL_POLICY(word) != DEFERRAL_LOOPED)
		return;
	if (within && before->polls)
		sim_fail(sim, "irq/%u polls %" PRId64 " ticks after it looped, the window is %u",
			 softnet->cpu, ticks, DEFERRAL_TICKS(word));
	if (!within && left)
		sim_fail(sim,
			 "irq/%u leaves its work %" PRId64
			 " ticks after it looped, the window is %u",
			 softnet->cpu, ticks, DEFERRAL_TICKS(word));
}

void sim_check_softirq(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->engine->cpus; i++) {
		const struct softnet *softnet = engine_softnet_at(sim->engine, i);
		const struct cpu_counters *c = &softnet->record->counters;
		struct sim_round *round = &sim->round[i];
		uint64_t interrupts = counter_read(&c->interrupts);

		if (interrupts != round->interrupts)
			looped_check(sim, softnet, round);
		round->interrupts = interrupts;
		round->left = counter_read(&c->punted[PUNT_LOOPED]);
		round->looped_at = softnet->looped_at;
		round->polls = 0;
	}
}
