/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The XDP program of a port: it redirects each packet to the AF_XDP socket of its receive queue,
 * and passes it on to the kernel's stack where there is none.
 *
 * It is a few instructions, made here and attached by a bpf_link, so neither a compiler nor an
 * object file is needed, and the kernel takes it off when the process ends, however that ends.
 *
 * Where the driver tells (veth does, and NICs that strip VLAN tags), the program puts the tag back
 * into the frame: AF_XDP has no other way to learn of it.
 */
#ifndef PORT_XDP_PROGRAM_H
#define PORT_XDP_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xdp_program {
	int program, map, link; /* descriptors, -1: none */
	uint32_t id;
	bool native; /* in the driver, not behind the kernel's socket buffers */
	bool tags;   /* puts VLAN tags back */
};

#define XDP_PROGRAM_CLOSED ((struct xdp_program){.program = -1, .map = -1, .link = -1})

/*
 * Control context, in the interface's namespace. Loads the program and attaches it in the mode that
 * is wished; no queue is redirected yet. Negative errno, and nothing is left: -EBUSY or -EEXIST
 * when the interface has one already, -EPERM without CAP_BPF (or CAP_SYS_ADMIN) and CAP_NET_ADMIN,
 * otherwise what the driver says.
 */
int xdp_program_open(struct xdp_program *p, int ifindex, bool native);
/* Takes it off. A closed one: no effect. */
void xdp_program_close(struct xdp_program *p);

/* From now on what arrives at this queue goes to the socket. */
int xdp_program_redirect(struct xdp_program *p, uint32_t queue, int socket);

/*
 * What there is to know of a program by its id, as one phrase: "id 12 'xdp_pass', held by process
 * 345 (xdp-loader)"; *held tells that it is attached by a link, which only its holder can take off.
 */
void xdp_program_describe(uint32_t id, char *text, size_t size, bool *held);

#endif
