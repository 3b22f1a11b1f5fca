/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lossy: stands between the two sides of a load on the loopback. TCP connections are passed
 * through; of datagrams the test says what becomes of each.
 */
#ifndef LOSSY_H
#define LOSSY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lossy_fate {
	LOSSY_PASS,
	LOSSY_DROP,
	LOSSY_TWICE,
	LOSSY_LATER, /* behind the next one of its flow and direction, or alone after 100 ms */
};

/*
 * Called in the thread between; flow: which client socket, in the order of their first datagram.
 * data NULL: the one that was held back goes alone.
 */
typedef enum lossy_fate lossy_judge(void *arg, unsigned flow, bool up, const uint8_t *data,
				    size_t size);

struct lossy;

/* Listens on `port`, the server is at `server`; 127.0.0.1. NULL: the port is in use. */
struct lossy *lossy_start(uint16_t port, uint16_t server, lossy_judge *judge, void *arg);
void lossy_stop(struct lossy *lossy);

#endif
