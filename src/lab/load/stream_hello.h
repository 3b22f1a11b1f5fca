/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_hello: how the two sides of a stream meet.
 *
 * The client's first connection is for lines (stream_line.h). On it, C for client, S for server:
 *
 *      C {"napier": "stream", "version", "config"}    its parameters, all of them
 *      S {"version", "config", "session", "refused"}  its own; refused: null, or why; then it
 * closes C {"clock": 0} S {"clock"}                     some times: how far the clocks are apart S
 * {"ready"}                                    every flow has come to it C {"measure": start,
 * "duration"}               ns; the start by the server's clock C {"stop": 0}  S {"stopped"} it
 * sends no more; so much it has sent C {"drain"}    S {"report"}                    so much the
 * client has sent; what it counted
 *
 * Each flow is a connection, or a pair of UDP sockets, of its own, and begins with a struct
 * stream_hello from the client, which over UDP is sent until the server is ready.
 */
#ifndef LAB_LOAD_STREAM_HELLO_H
#define LAB_LOAD_STREAM_HELLO_H

#include <stdint.h>

enum { STREAM_VERSION = 1 };

#define STREAM_HELLO UINT32_C(0x6e707374) /* "npst" */

/* In network order. */
struct stream_hello {
	uint32_t magic;
	uint32_t session;
	uint32_t flow;
};

#endif
