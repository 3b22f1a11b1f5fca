/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bulk: one TCP connection from one namespace to another, as fast as it goes: a thread that sends,
 * a thread that receives, of ordinary programs' kind. Controlled by one thread.
 */
#ifndef LAB_PARTS_BULK_H
#define LAB_PARTS_BULK_H

#include <stdint.h>
#include <sys/types.h>

#include <napier/error.h>

struct bulk_end {
	int netns; /* descriptor of the namespace */
	int cpu;   /* its thread is pinned here */
};

struct bulk_config {
	struct bulk_end from, to;
	char address[64]; /* IPv4, of the receiver */
	uint16_t port;
};

struct bulk_counts {
	uint64_t bytes;	  /* received by the program */
	uint64_t packets; /* received by the receiver's TCP: merged ones count once */
	uint64_t sent;	  /* segments, by the sender's TCP */
	uint64_t again;	  /* of those, sent again */
	uint32_t segment; /* payload bytes of a full one */
};

struct bulk;

/* Data flows when it returns. -ETIMEDOUT: there is no connection, or nothing came, within 10 s. */
int bulk_start(const struct bulk_config *config, struct bulk **out, struct error *err);
/* So far; TCP's counts are those of the two namespaces, where nothing else should be. */
void bulk_read(const struct bulk *bulk, struct bulk_counts *out);
/* Their threads. */
pid_t bulk_sender(const struct bulk *bulk);
pid_t bulk_receiver(const struct bulk *bulk);
void bulk_stop(struct bulk *bulk);

#endif
