/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering: which engine CPU's backlog a received packet goes to. (The kernel's RPS and RFS, under
 * its names.)
 *
 *   rps_cpus       of a queue: engine CPUs, among which the flow hash chooses; the queue's own CPU
 *                  is one of them only if it is named, and goes through its backlog too
 *   rps_flow_cnt   of a queue: entries of its flow table; 0: no RFS
 *   rps_sock_flow_entries   of the engine: where flows were read last, by flow_record()
 *
 * A flow that was recorded goes to the CPU where it was read; any other by rps_cpus, or without
 * those stays where it was received. With a flow table an entry's flows move to another CPU only
 * when what was put for them on the old one has left its handler, whyever they should move: so
 * their packets keep their order.
 *
 * A queue's struct steer is its NAPI holder's. Control changes it while the NAPI is disabled and
 * all that the queue has put into backlogs has left its handler (I4).
 */
#ifndef CORE_STEER_H
#define CORE_STEER_H

#include <napier/engine.h>

#include <core/backlog.h>
#include <core/flow.h>

#define STEER_LOCAL 0xff /* where it was received: through no backlog */

_Static_assert(BACKLOGS_MAX <= STEER_LOCAL, "a target is a byte");

struct steer_flow {
	uint64_t position; /* of its last packet in `cpu`'s backlog; UINT64_MAX: being put */
	uint8_t cpu;	   /* engine CPU by index, or STEER_LOCAL */
};

struct steer {
	struct engine *engine;
	uint32_t cpus; /* 0: RFS alone */
	uint8_t cpu[BACKLOGS_MAX];
	uint32_t flow_mask;
	struct steer_flow *flow; /* NULL: no RFS */
};

/*
 * Where flows were read last: one word each, the CPU in its low bits, the rest of the hash above
 * it. There is room for the largest table from the first use on, so that changing its size frees
 * nothing that a reader or an application could still look at.
 */
#define SOCK_FLOW_CPU (BACKLOGS_MAX - 1)
#define SOCK_FLOW_NONE UINT32_MAX

struct sock_flows {
	_Atomic uint32_t entries; /* a power of two; 0: off */
	_Atomic uint32_t *_Atomic entry;
	_Atomic uint64_t cpus; /* those that may be steered to, a bit per index */
};

/* Control context, engine lock held. */
int sock_flows_set(struct sock_flows *flows, uint32_t entries);
void sock_flows_free(struct sock_flows *flows);

/* Control context. cpus: engine CPUs. -ENOMEM. Both empty: *out is NULL. */
int steer_create(struct engine *engine, const struct cpuset *cpus, uint32_t flows,
		 struct steer **out);
void steer_destroy(struct steer *steer);

/*
 * Packet path; the holder of the queue's token. Owns v, up to PACKET_VECTOR_MAX packets, but for
 * those that stay here: their number is returned, they are the first of v, in order.
 */
uint32_t steer_vector(struct steer *steer, struct context *context, struct packet **v, uint32_t n);

#endif
