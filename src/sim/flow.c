/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows: packets with consecutive numbers. Each packet can be told from every other, and carries a
 * sum over what it should be, so whatever comes out is known to be what went in, once, in order.
 */
#include <arpa/inet.h>
#include <string.h>

#include <core/checksum.h>

#include <sim/sim.h>

#define ETHERNET 14
#define HEADERS (ETHERNET + 28) /* IPv4 and UDP: so that the flow hash tells flows apart */
#define PROBE_LENGTH 64

struct payload {
	uint16_t flow;
	uint16_t length;
	uint32_t number;
	uint64_t sum;
} __attribute__((packed));

static uint64_t payload_sum(const struct sim *sim, const struct payload *p)
{
	return random_mix(sim->plan.seed ^ (uint64_t)p->flow << 48 ^ (uint64_t)p->length << 32 ^
			  p->number);
}

static void address_write(uint8_t *to, unsigned port)
{
	static const uint8_t address[6] = {2, 0, 0, 0, 1, 0};

	memcpy(to, address, sizeof(address));
	to[5] = (uint8_t)port;
}

static void be16_write(uint8_t *to, uint16_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

/* All but the checksum over the payload. */
static void headers_write(uint8_t *ip, uint16_t flow, uint32_t number, uint16_t length)
{
	uint16_t check;

	be16_write(ip - 2, 0x0800);
	memset(ip, 0, HEADERS - ETHERNET);
	ip[0] = 0x45;
	be16_write(ip + 2, length);
	be16_write(ip + 4, (uint16_t)number);
	ip[8] = 64;
	ip[9] = 17;
	ip[12] = ip[16] = 10;
	check = checksum_finish(checksum_add(0, ip, 20));
	memcpy(ip + 10, &check, sizeof(check));
	be16_write(ip + 20, (uint16_t)(1000 + flow));
	be16_write(ip + 22, 53);
	be16_write(ip + 24, (uint16_t)(length - 20));
}

static void checksum_write(uint8_t *ip, uint32_t length)
{
	uint32_t sum = htons(17) + htons((uint16_t)(length - 20));
	uint16_t check;

	sum = checksum_add(checksum_add(sum, ip + 12, 8), ip + 20, length - 20);
	check = checksum_finish(sum);
	if (!check)
		check = 0xffff; /* 0 would say that there is none */
	memcpy(ip + 26, &check, sizeof(check));
}

void sim_flow_write(struct sim *sim, const struct sim_arrival *a, struct packet *p)
{
	const struct sim_flow_plan *plan = &sim->flow[a->flow].plan;
	struct payload payload = {
		.flow = a->flow, .length = (uint16_t)plan->length, .number = a->number};

	payload.sum = payload_sum(sim, &payload);
	p->len = p->total = plan->length;
	memset(p->data, (int)(uint8_t)a->number, plan->length);
	address_write(p->data, plan->to);
	address_write(p->data + 6, plan->port);
	headers_write(p->data + ETHERNET, a->flow, a->number, (uint16_t)(plan->length - ETHERNET));
	memcpy(p->data + HEADERS, &payload, sizeof(payload));
	checksum_write(p->data + ETHERNET, plan->length - ETHERNET);
}

/* One that came in, or what it was in a super-packet: from its payload on, size bytes. */
static void payload_out(struct sim *sim, unsigned port, const uint8_t *at, uint32_t size)
{
	struct payload payload;
	struct sim_flow *flow;

	if (size < sizeof(payload))
		sim_fail(sim, "I10: a packet with %u bytes of payload goes out by %s", size,
			 sim->port[port].name);
	memcpy(&payload, at, sizeof(payload));
	if (payload.flow >= SIM_NUMBERED || payload.sum != payload_sum(sim, &payload) ||
	    payload.length != HEADERS + size || at[size - 1] != (uint8_t)payload.number)
		sim_fail(sim, "I10: what goes out by %s is no packet that came in",
			 sim->port[port].name);
	flow = &sim->flow[payload.flow];
	sim_mix(sim, (uint64_t)payload.flow << 40 | (uint64_t)port << 32 | payload.number);
	if (payload.number < flow->next[port])
		sim_fail(sim, "I4: flow %u: packet %u goes out by %s after packet %u", payload.flow,
			 payload.number, sim->port[port].name, flow->next[port] - 1);
	flow->next[port] = payload.number + 1;
	flow->out++;
	sim->result->out++;
}

void sim_flow_out(struct sim *sim, unsigned port, const struct packet *p)
{
	bool super = p->flags & PACKET_GSO;
	uint32_t total = p->len;

	if (p->len < HEADERS || (p->next && !super) || p->flags & PACKET_FRAMES)
		sim_fail(sim, "I10: %s sends what is neither a packet nor a super-packet",
			 sim->port[port].name);
	payload_out(sim, port, p->data + HEADERS, p->len - HEADERS);
	for (const struct packet *frame = p->next; frame; frame = frame->next) {
		payload_out(sim, port, frame->data, frame->len);
		total += frame->len;
	}
	if (p->total != total || (super && p->gso_size != p->len - HEADERS))
		sim_fail(sim, "I10: a super-packet that goes out by %s does not add up",
			 sim->port[port].name);
}

/* Until the next time: with the pattern's draw. */
static int64_t gap(struct sim_flow *flow)
{
	const struct sim_flow_plan *plan = &flow->plan;
	int64_t mean = plan->interval_ns, ns = 0;

	switch (plan->pattern) {
	case PATTERN_BURSTS:
		return mean * plan->burst;
	case PATTERN_POISSON:
		/* Geometric in sixteenths of the mean: exponential, without floating point. */
		while (ns < 16 * mean && random_below(&flow->random, 16))
			ns += mean / 16 + 1;
		return ns + (int64_t)random_below(&flow->random, (uint64_t)mean / 16 + 1);
	default:
		return mean;
	}
}

static void flow_step(void *arg)
{
	struct sim_flow *flow = arg;
	struct sim *sim = flow->sim;
	struct sim_queue *q = &sim->port[flow->plan.port].queue[flow->plan.queue];
	uint32_t n = flow->plan.pattern == PATTERN_BURSTS ? flow->plan.burst : 1;

	if (!sim->traffic)
		return;
	if (sim->plan.fifo && machine_now(sim->machine) > sim->patience)
		n = 0;
	sim_guard_enter();
	while (n--)
		sim_port_arrive(q, flow->id, flow->number++);
	if (machine_virtual_call_at(sim->machine, machine_now(sim->machine) + gap(flow), flow_step,
				    flow))
		sim_fail(sim, "no memory for the scenario itself");
	sim_guard_leave();
}

void sim_flow_begin(struct sim_flow *flow)
{
	struct sim *sim = flow->sim;

	if (machine_virtual_call_at(sim->machine, machine_now(sim->machine) + gap(flow), flow_step,
				    flow))
		sim_fail(sim, "no memory for the scenario itself");
}

static void probe_step(void *arg)
{
	struct sim_flow *flow = arg;

	sim_guard_enter();
	sim_port_arrive(&flow->sim->port[flow->plan.port].queue[flow->plan.queue], flow->id,
			flow->number++);
	sim_guard_leave();
}

void sim_flow_probe(struct sim *sim, struct sim_queue *q)
{
	struct sim_flow *flow = &sim->flow[SIM_FLOWS + q->port->index * SIM_QUEUES + q->index];

	if (machine_virtual_call_at(sim->machine, machine_now(sim->machine), probe_step, flow))
		sim_fail(sim, "no memory for the scenario itself");
}

void sim_flow_init(struct sim *sim, unsigned index)
{
	struct sim_flow *flow = &sim->flow[index];
	unsigned probe = index - SIM_FLOWS;

	*flow = (struct sim_flow){
		.sim = sim,
		.id = (uint16_t)index,
		.random = sim_stream(sim->plan.seed, STREAM_FLOW + index),
	};
	if (index < SIM_FLOWS)
		flow->plan = sim->plan.flow[index];
	else if (index == SIM_APP)
		flow->plan = (struct sim_flow_plan){.length = PROBE_LENGTH};
	else
		flow->plan = (struct sim_flow_plan){.port = probe / SIM_QUEUES,
						    .queue = probe % SIM_QUEUES,
						    .to = (probe / SIM_QUEUES) ^ 1,
						    .length = PROBE_LENGTH};
}
