/* SPDX-License-Identifier: BSD-2-Clause */
/* What both sides of rr share: the first message of a connection, sockets, threads. */
#ifndef LAB_RR_COMMON_H
#define LAB_RR_COMMON_H

#include <pthread.h>
#include <sys/socket.h>

#include "lab/rr.h"

#define RR_MAGIC 0x6e707272u /* "nprr" */
#define RR_VERSION 1

enum rr_status { RR_ACCEPTED, RR_OTHER_SIZES, RR_OTHER_VERSION };

/* In network order. The client sends its own; the server answers with its own and a status. */
struct rr_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t status;
	uint32_t request_size;
	uint32_t response_size;
};

/* Requests carry a tag that the response repeats, where both have room for it. */
enum { RR_TAG = sizeof(uint64_t) };

int rr_config_check(const struct rr_config *config, struct error *err);
int rr_address(const struct rr_config *config, struct sockaddr_storage *out, socklen_t *length,
	       struct error *err);
struct rr_hello rr_hello(const struct rr_config *config, enum rr_status status);

/* A thread in the configured namespace, on the configured CPUs. */
int rr_thread_start(const struct rr_config *config, const char *name, pthread_t *thread,
		    void *(*run)(void *), void *arg, struct error *err);
int64_t rr_thread_cpu(pthread_t thread);
/* Called by such a thread first: 0 or a negative errno. */
int rr_thread_enter(const struct rr_config *config);

uint32_t rr_retransmits(int fd);

#endif
