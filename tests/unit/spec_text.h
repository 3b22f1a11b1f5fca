/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of specifications, for what reads right ones and wrong ones. */
#ifndef SPEC_TEXT_H
#define SPEC_TEXT_H

#include "lab/spec/spec.h"

#define WORKLOADS "workloads = { a = { kind = \"rr\"; }; };\n"
#define SYSTEMS "systems = { k = { }; };\n"

static inline struct cpuset cpus_make(const char *text)
{
	struct cpuset set = {0};

	assert_int_equal(cpuset_parse(text, &set), 0);
	return set;
}

/* Every key, once, with another value than its default. */
#define EVERYTHING                                                                                 \
	"title = \"T\"; source = \"S\"; question = \"Q\"; topology = \"ends\";\n"                  \
	"given = { client = { interface = \"c0\"; netns = \"a\"; address = \"10.0.0.1/24\"; };\n"  \
	"  server = { interface = \"s0\"; address = \"10.0.0.2/24\"; }; };\n"                      \
	"original = { cpus = 56; };\n"                                                             \
	"quick = { warm = \"10ms\"; duration = \"1.5s\"; repeats = 3; };\n"                        \
	"full = { warm = 0; duration = \"2s\"; repeats = 16; };\n"                                 \
	"systems = { n = { name = \"N\"; scenario = \"s\"; base = true; dut = \"napier\";\n"       \
	"    handler = \"host\"; poller = \"busy-poll\"; port = \"xdp\";\n"                        \
	"    port_options = \"tx_napi=yes,checksum=complete\"; queues = 2;\n"                      \
	"    engine = { netdev_budget = 100; backlog = { poller = \"thread\"; cpus = \"1\"; }; "   \
	"};\n"                                                                                     \
	"    ports = { cpu = 1; rps_cpus = \"0-1\"; };\n"                                          \
	"    server_spins = true; client_spins = true; prefer_busy_poll = true;\n"                 \
	"    busy_poll_usecs = 64; busy_poll_budget = 8;\n"                                        \
	"    knobs = { gro_flush_timeout = 20000; threaded = \"on\"; rps_cpus = \"1,3\"; };\n"     \
	"    place = { client = 0; server = \"1-2\"; interrupt = { cpus = \"all\"; };\n"           \
	"      poller = { cpus = \"3\"; class = \"fifo\"; priority = 10; };\n"                     \
	"      worker = { nice = -5; }; antagonist = \"last\"; };\n"                               \
	"    only = [ \"r\", \"u\" ]; };\n"                                                        \
	"  k = { like = \"n\"; dut = \"kernel\"; handler = \"socket\"; scenario = \"t\";\n"        \
	"    poller = \"socket-busy-poll\"; only = \"s\"; };\n"                                    \
	"  c = { dut = \"command\"; command = \"true\"; }; };\n"                                   \
	"workloads = {\n"                                                                          \
	"  r = { name = \"R\"; kind = \"rr\"; protocol = \"udp\"; flows = \"10*cpus\"; threads = " \
	"2;\n"                                                                                     \
	"    server_threads = \"cpus/2\"; timeout = \"2s\"; interval = \"50ms\"; seed = 7;\n"      \
	"    request_size = 200; response_size = 400; rate = 1234.5; arrivals = \"poisson\";\n"    \
	"    outstanding = 99; work = \"20us\"; stall = \"200ms\";\n"                              \
	"    stall_every = \"1s\"; server_spins = true; client_spins = true;\n"                    \
	"    busy_poll_usecs = 5; prefer_busy_poll = true; busy_poll_budget = 6;\n"                \
	"    original = { flows = 1000; threads = 2; rate = 5000; }; };\n"                         \
	"  s = { kind = \"stream\"; protocol = \"udp\"; direction = \"both\"; flows = 4;\n"        \
	"    sizes = [ 18, 1472 ]; rate = 5000; batch = 8; };\n"                                   \
	"  u = { kind = \"rrul\"; tcp_flows = 2; probe_rate = 50; idle = \"100ms\"; }; };\n"       \
	"antagonists = { h = { kind = \"hog\"; threads = \"cpus\"; cpus = \"1\"; nice = 5; };\n"   \
	"  b = { kind = \"background\"; cpus = 2; load = { kind = \"stream\"; flows = 20; }; }; "  \
	"};\n"

#endif
