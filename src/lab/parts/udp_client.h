/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_client: request and response over UDP, closed loop, one outstanding: a kernel socket on the
 * far host. The time from before the send to after the receive is the latency, never halved.
 * Controlled by one thread.
 */
#ifndef LAB_PARTS_UDP_CLIENT_H
#define LAB_PARTS_UDP_CLIENT_H

#include "lab/ends.h"
#include "lab/histogram.h"

struct udp_client_config {
	const struct ends *ends;
	uint16_t port;	/* of the near host */
	int cpu;	/* of its thread */
	uint32_t bytes; /* of a request and of its response; 8..1472 */
	bool spins; /* asks the socket again and again, so that its own wake-up is not measured */
};

struct udp_client;

/* Responses come when it returns. -ETIMEDOUT: none came within 5 s. */
int udp_client_start(const struct udp_client_config *config, struct udp_client **out,
		     struct error *err);
/* From now on, or no longer, latencies are recorded. */
void udp_client_record(struct udp_client *client, bool on);
/* Responses so far, and requests that had none within 100 ms. */
void udp_client_read(const struct udp_client *client, uint64_t *answered, uint64_t *lost);
pid_t udp_client_thread(const struct udp_client *client);
/* Latencies, ns, are added to `into`; NULL: not. */
void udp_client_stop(struct udp_client *client, struct histogram *into);

#endif
