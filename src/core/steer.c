/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <napier/handler.h>

#include <core/engine.h>
#include <core/steer.h>
#include <poller/softirq.h>

int steer_create(struct engine *engine, const struct cpuset *cpus, uint32_t flows,
		 struct steer **out)
{
	struct steer *steer;

	*out = NULL;
	if (cpuset_empty(cpus) && !flows)
		return 0;
	steer = calloc(1, sizeof(*steer));
	if (!steer)
		return -ENOMEM;
	steer->engine = engine;
	for (uint32_t i = 0; i < engine->cpus; i++)
		if (!engine->softnet[i].away && cpuset_has(cpus, softnet_cpu(&engine->softnet[i])))
			steer->cpu[steer->cpus++] = (uint8_t)i;
	if (flows) {
		steer->flow_mask = flows - 1;
		steer->flow = calloc(flows, sizeof(*steer->flow));
		if (!steer->flow) {
			free(steer);
			return -ENOMEM;
		}
		for (uint32_t i = 0; i < flows; i++)
			steer->flow[i].cpu = STEER_LOCAL;
	}
	*out = steer;
	return 0;
}

void steer_destroy(struct steer *steer)
{
	if (!steer)
		return;
	free(steer->flow);
	free(steer);
}

int sock_flows_set(struct sock_flows *flows, uint32_t entries)
{
	if (entries && !flows->entry) {
		void *map = mmap(NULL, ENGINE_SOCK_FLOWS_MAX * sizeof(*flows->entry),
				 PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (map == MAP_FAILED)
			return -ENOMEM;
		atomic_store_explicit(&flows->entry, map, memory_order_release);
	}
	for (uint32_t i = 0; i < entries; i++)
		atomic_store_explicit(&flows->entry[i], SOCK_FLOW_NONE, memory_order_relaxed);
	atomic_store_explicit(&flows->entries, entries, memory_order_release);
	return 0;
}

void sock_flows_free(struct sock_flows *flows)
{
	if (flows->entry)
		munmap((void *)flows->entry, ENGINE_SOCK_FLOWS_MAX * sizeof(*flows->entry));
}

void flow_record(struct engine *engine, uint32_t hash, unsigned cpu)
{
	struct sock_flows *flows = &engine->sock_flows;
	uint32_t entries = atomic_load_explicit(&flows->entries, memory_order_acquire);
	_Atomic uint32_t *entry;
	uint32_t value;

	if (!entries || !hash || cpu >= CPU_MAX || engine->cpu_index[cpu] == STEER_LOCAL)
		return;
	entry = atomic_load_explicit(&flows->entry, memory_order_relaxed) + (hash & (entries - 1));
	value = (hash & ~(uint32_t)SOCK_FLOW_CPU) | engine->cpu_index[cpu];
	/* Mostly it is there already: then its line stays shared. */
	if (atomic_load_explicit(entry, memory_order_relaxed) != value)
		atomic_store_explicit(entry, value, memory_order_relaxed);
}

uint32_t packet_flow_hash(const struct context *context, struct packet *p)
{
	return packet_flow(&context->engine->hasher, p);
}

/* Where a flow was read last, or STEER_LOCAL. */
static uint8_t recorded_cpu(struct sock_flows *flows, uint32_t hash)
{
	uint32_t entries = atomic_load_explicit(&flows->entries, memory_order_acquire);
	uint32_t value;

	if (!entries)
		return STEER_LOCAL;
	value = atomic_load_explicit(&flows->entry[hash & (entries - 1)], memory_order_relaxed);
	if (value == SOCK_FLOW_NONE || (value ^ hash) & ~(uint32_t)SOCK_FLOW_CPU)
		return STEER_LOCAL;
	/* One that has gone since is as none. */
	if (!(atomic_load_explicit(&flows->cpus, memory_order_relaxed) >> (value & SOCK_FLOW_CPU) &
	      1))
		return STEER_LOCAL;
	return value & SOCK_FLOW_CPU;
}

/*
 * The kernel's choice, but of a mixed hash. Toeplitz is linear: where flows differ in a few bits
 * only, such as neighbouring ports, its upper bits may be the same for all of them, and all would
 * go to one CPU. In the product each bit of the hash counts for the upper ones.
 */
static uint8_t map_cpu(const struct steer *steer, uint32_t hash)
{
	uint32_t mixed = hash * UINT32_C(0x9e3779b1);

	if (!steer->cpus)
		return STEER_LOCAL;
	return steer->cpu[((uint64_t)mixed * steer->cpus) >> 32];
}

/* The entry's flows may go elsewhere: nothing of theirs is on its way any more. */
static bool flow_drained(const struct steer *steer, const struct steer_flow *flow)
{
	if (flow->position == UINT64_MAX)
		return false;
	return flow->cpu == STEER_LOCAL ||
	       backlog_passed(&steer->engine->backlogs->backlog[flow->cpu], flow->position);
}

/* With a flow table. The entry stays as it is until steer_vector has put what goes there. */
static uint8_t flow_cpu(struct steer *steer, uint32_t hash)
{
	struct steer_flow *flow = &steer->flow[hash & steer->flow_mask];
	uint8_t cpu = recorded_cpu(&steer->engine->sock_flows, hash);

	if (cpu == STEER_LOCAL)
		cpu = map_cpu(steer, hash);
	if (cpu != flow->cpu && flow_drained(steer, flow))
		flow->cpu = cpu;
	flow->position = UINT64_MAX;
	return flow->cpu;
}

/* A vector sorted by target: what goes to one stands together, in the order it came. */
struct sorting {
	uint64_t targets; /* a bit each */
	uint8_t to[PACKET_VECTOR_MAX];
	uint8_t count[BACKLOGS_MAX];
	uint8_t end[BACKLOGS_MAX]; /* behind the last of the target's in `packet` */
	struct packet *packet[PACKET_VECTOR_MAX];
	uint32_t hash[PACKET_VECTOR_MAX]; /* theirs: once put, a packet is another's */
};

static void targets_choose(struct steer *steer, struct packet **v, uint32_t n, struct sorting *s)
{
	const struct flow_hasher *hasher = &steer->engine->hasher;

	s->targets = 0;
	memset(s->count, 0, sizeof(s->count));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t hash = packet_flow(hasher, v[i]);
		uint8_t cpu = steer->flow ? flow_cpu(steer, hash) : map_cpu(steer, hash);

		s->to[i] = cpu;
		if (cpu == STEER_LOCAL)
			continue;
		s->targets |= UINT64_C(1) << cpu;
		s->count[cpu]++;
	}
}

/* What stays is moved to the front of v; returns how many. */
static uint32_t targets_sort(struct packet **v, uint32_t n, struct sorting *s)
{
	uint32_t end = 0, local = 0;

	for (uint64_t left = s->targets; left; left &= left - 1) {
		uint32_t cpu = (uint32_t)__builtin_ctzll(left);

		s->end[cpu] = (uint8_t)end;
		end += s->count[cpu];
	}
	for (uint32_t i = 0; i < n; i++) {
		if (s->to[i] == STEER_LOCAL) {
			v[local++] = v[i];
			continue;
		}
		s->hash[s->end[s->to[i]]] = v[i]->hash;
		s->packet[s->end[s->to[i]]++] = v[i];
	}
	return local;
}

uint32_t steer_vector(struct steer *steer, struct context *context, struct packet **v, uint32_t n)
{
	struct backlogs *backlogs = steer->engine->backlogs;
	struct sorting s;
	uint32_t local;

	targets_choose(steer, v, n, &s);
	local = targets_sort(v, n, &s);
	for (uint64_t left = s.targets; left; left &= left - 1) {
		uint32_t cpu = (uint32_t)__builtin_ctzll(left);
		uint32_t first = s.end[cpu] - s.count[cpu];
		uint64_t position = backlog_put(&backlogs->backlog[cpu], context, s.packet + first,
						s.count[cpu]);

		for (uint32_t i = first; steer->flow && i < s.end[cpu]; i++)
			steer->flow[s.hash[i] & steer->flow_mask].position = position;
	}
	for (uint32_t i = 0; steer->flow && i < local; i++)
		steer->flow[v[i]->hash & steer->flow_mask].position = 0;
	return local;
}
