/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_socket: an engine in this process, with one port and on it a UDP socket of the engine's:
 * the near end of what the lab sends by UDP. Controlled by one thread.
 */
#ifndef LAB_ENGINE_SOCKET_H
#define LAB_ENGINE_SOCKET_H

#include <napier/napier.h>

struct engine_socket_config {
	struct engine_config engine; /* its machine is made here */
	const char *port;	     /* "xdp:eth0,netns=/run/netns/near" */
	const char *address;	     /* the port's: "10.78.0.2/24", of IPv4 or IPv6 */
	uint16_t udp_port;	     /* bound at any address of that family */
	/* Of no effect but with the poller app, for which interrupts are suspended, too. */
	struct napi_udp_config how;
};

struct engine_socket {
	struct machine *machine;
	struct engine *engine;
	struct port *port;
	struct napi_udp *socket;
};

/*
 * 0, or a negative errno, and nothing is left. For an interface that another engine has just left
 * it waits for up to 10 s.
 */
int engine_socket_open(const struct engine_socket_config *config, struct engine_socket *out,
		       struct error *err);
/* Ends all of it. An error is of the engine's end: packets that it lost. */
int engine_socket_close(struct engine_socket *s, struct error *err);
/* Of the port: polls that found something, and packets that they found. */
void engine_socket_counts(const struct engine_socket *s, uint64_t *polls, uint64_t *packets);

#endif
