/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_options: the parameters of workloads as options, with neper's letters where it has one.
 * What is given becomes an object of the keys of a load_config (load.h).
 */
#ifndef CMD_BENCH_OPTIONS_H
#define CMD_BENCH_OPTIONS_H

#include <getopt.h>

#include <jansson.h>

#include <lab/load/load.h>

#include <cmd/bench.h>

enum { BENCH_OPTIONS_MAX = 64, BENCH_LETTERS_MAX = 64, BENCH_ALL = 1 << LOAD_KINDS };

/* For getopt_long. */
struct bench_options {
	unsigned n;
	struct option option[BENCH_OPTIONS_MAX];
	char letters[BENCH_LETTERS_MAX];
};

/*
 * The command's own options and letters ("p:kj"), then those of the workload, or of all
 * (BENCH_ALL). Returns out.
 */
struct bench_options *bench_options_make(const struct option *own, const char *letters,
					 unsigned kind, struct bench_options *out);
/* 0: taken into `given`; -1: none of these; MISUSED after a complaint. */
int bench_option_take(const struct bench_command *command, int option, const char *value,
		      json_t *given);

/* "200ms", "1.5s", "3": s. 0, or MISUSED after a complaint. */
int bench_time(const struct bench_command *command, const char *option, const char *value,
	       double min_s, double max_s, int64_t *out);
int bench_cpuset(const struct bench_command *command, const char *option, const char *value,
		 struct cpuset *out);
/* 1 to 65535. */
int bench_port(const struct bench_command *command, const char *option, const char *value,
	       uint16_t *out);

/* Their help. */
#define BENCH_USAGE_BOTH                                                                           \
	"  -T, --threads N           the client's threads (1)\n"                                   \
	"      --server-threads N    the server's (as many)\n"                                     \
	"      --timeout TIME        of a transaction: then it is lost (1s)\n"                     \
	"      --interval TIME       of time series (100ms)\n"                                     \
	"      --server-spins        the server asks again and again instead of sleeping\n"        \
	"      --client-spins        so does the client\n"                                         \
	"      --busy-poll USECS     SO_BUSY_POLL of the server's sockets\n"                       \
	"      --prefer-busy-poll    SO_PREFER_BUSY_POLL of them\n"                                \
	"      --busy-poll-budget N  SO_BUSY_POLL_BUDGET of them\n"
#define BENCH_USAGE_FLOWS                                                                          \
	"  -F, --flows N             connections, or sockets (1)\n"                                \
	"      --udp                 UDP instead of TCP\n"
#define BENCH_USAGE_RR                                                                             \
	"  -Q, --request-size N      bytes (1)\n"                                                  \
	"  -R, --response-size N     bytes (1)\n"                                                  \
	"      --rate N              open loop: so many requests/s of all flows together\n"        \
	"      --poisson             at random, instead of at equal distances\n"                   \
	"      --seed N              of that\n"                                                    \
	"      --outstanding N       at most so many requests under way in open loop\n"            \
	"      --connect             a connection for each request\n"                              \
	"      --work TIME           CPU time that the server spends on each request\n"            \
	"      --stall TIME          the server does nothing for so long,\n"                       \
	"      --stall-every TIME    so often\n"
#define BENCH_USAGE_STREAM                                                                         \
	"      --sizes N,N…          bytes of a message, each for its share of the time\n"       \
	"      --direction WAY       up (to the server), down or both\n"                           \
	"      --rate N              UDP: so many datagrams/s of all flows (as fast as it goes)\n"
#define BENCH_USAGE_RRUL                                                                           \
	"      --tcp-flows N         each way (4: one each of BE, BK, CS5, EF)\n"                  \
	"      --probe-rate N        probes/s of each class (5)\n"                                 \
	"      --idle TIME           probes alone before the load (a quarter of the time)\n"

#endif
