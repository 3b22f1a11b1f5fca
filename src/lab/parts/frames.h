/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frames: copies of one frame into one veth, and a count of those that come out of another.
 *
 * The generator is an XDP program run with live frames (BPF_PROG_TEST_RUN), which redirects them
 * into the veth: no socket, no skb, some 50 ns a frame. The other end of that veth has to run a
 * NAPI, that is have GRO on or an XDP program, or the kernel refuses the frames. That NAPI is then
 * polled on the generator's CPU, in its own time, unless it is threaded. The sink is an XDP
 * program that counts and drops.
 *
 * Both enter the network namespace given as a path, for the time of the call or in their thread.
 */
#ifndef LAB_PARTS_FRAMES_H
#define LAB_PARTS_FRAMES_H

#include <stdint.h>
#include <sys/types.h>

#include <napier/error.h>

struct frames_config {
	const char *netns;
	const char *interface;
	const uint8_t *frame; /* copied */
	uint32_t length; /* bytes without the checksum at the end; at least 60 for 64 on a wire */
	uint64_t rate;	 /* frames a second, 0: as fast as it goes */
	int cpu;	 /* its thread is pinned here; -1: nowhere */
};

enum { FRAMES_MAX = 1514 };

/* Ethernet of a type for local experiments, zeros in it. */
void frames_plain(uint8_t *frame, const uint8_t destination[6], const uint8_t source[6],
		  uint32_t length);
/* UDP over IPv4 (addresses and ports in host order), without a UDP checksum. */
void frames_udp(uint8_t *frame, const uint8_t destination[6], const uint8_t source[6], uint32_t to,
		uint32_t from, uint16_t port, uint32_t length);

struct frames_generator;
struct frames_sink;

/* Sends from when it returns until it is stopped. */
int frames_generator_start(const struct frames_config *config, struct frames_generator **out,
			   struct error *err);
/* Frames given to the veth so far, those that it had no room for included. */
uint64_t frames_generator_sent(const struct frames_generator *g);
/* CPU time of its thread, ns: with all softirq work that ran on its back. */
int64_t frames_generator_cpu(const struct frames_generator *g);
/* Its thread. */
pid_t frames_generator_thread(const struct frames_generator *g);
void frames_generator_stop(struct frames_generator *g);

int frames_sink_open(const char *netns, const char *interface, struct frames_sink **out,
		     struct error *err);
uint64_t frames_sink_count(struct frames_sink *sink);
/* As bench_await. */
void frames_sink_await(struct frames_sink *sink, uint64_t more_than);
void frames_sink_close(struct frames_sink *sink);

#endif
