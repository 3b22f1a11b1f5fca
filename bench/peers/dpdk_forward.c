/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dpdk_forward: a DPDK forwarder on two net_af_xdp devices; a peer to measure napier against.
 *
 * One lcore, bursts of 32, what came in by one port goes out by the other, what does not fit is
 * freed: the loop of every DPDK example. Everything else is the driver's own choice, which is to
 * prefer busy polling with a budget of 64; --busy-budget 0 turns that off.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

enum { BURST = 32, RING = 2048, MBUFS = 16384, CACHE = 256 };

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void die(const char *what, int error)
{
	fprintf(stderr, "dpdk_forward: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

static void port_start(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf config = {0};
	int ret = rte_eth_dev_configure(port, 1, 1, &config);

	if (!ret)
		ret = rte_eth_rx_queue_setup(port, 0, RING, SOCKET_ID_ANY, NULL, pool);
	if (!ret)
		ret = rte_eth_tx_queue_setup(port, 0, RING, SOCKET_ID_ANY, NULL);
	if (!ret)
		ret = rte_eth_dev_start(port);
	if (ret)
		die("starting a port", ret);
	rte_eth_promiscuous_enable(port);
}

static void forward(uint16_t in, uint16_t out)
{
	struct rte_mbuf *burst[BURST];
	uint16_t n = rte_eth_rx_burst(in, 0, burst, BURST);
	uint16_t sent = n ? rte_eth_tx_burst(out, 0, burst, n) : 0;

	if (sent < n)
		rte_pktmbuf_free_bulk(burst + sent, n - sent);
}

static void report(uint16_t port)
{
	struct rte_eth_stats s;

	if (!rte_eth_stats_get(port, &s))
		fprintf(stderr, "port %u: received %lu sent %lu missed %lu errors %lu\n", port,
			s.ipackets, s.opackets, s.imissed, s.oerrors);
}

/* No huge pages: a benchmark should not take memory from the machine for good. */
static void eal_start(const char *const interface[2], const char *cpu, const char *budget)
{
	char device[2][128];
	char *arguments[] = {"dpdk_forward", "--no-huge", "-m",		  "128",    "--no-shconf",
			     "--no-pci",     "-l",	  (char *)cpu,	  "--vdev", device[0],
			     "--vdev",	     device[1],	  "--log-level=4"};
	int ret;

	for (int i = 0; i < 2; i++)
		snprintf(device[i], sizeof(device[i]), "net_af_xdp%d,iface=%s,force_copy=1%s%s", i,
			 interface[i], budget ? ",busy_budget=" : "", budget ? budget : "");
	ret = rte_eal_init(sizeof(arguments) / sizeof(*arguments), arguments);
	if (ret < 0)
		die("rte_eal_init", rte_errno);
	if (rte_eth_dev_count_avail() != 2)
		die("the net_af_xdp driver is not installed", ENODEV);
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{"netns", required_argument, 0, 'n'},
		{"cpu", required_argument, 0, 'c'},
		{"busy-budget", required_argument, 0, 'b'},
		{0},
	};
	struct sigaction action = {.sa_handler = on_signal};
	const char *budget = NULL, *cpu = "0";
	struct rte_mempool *pool;
	int c, fd;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 'n':
			fd = open(optarg, O_RDONLY | O_CLOEXEC);
			if (fd < 0 || setns(fd, CLONE_NEWNET))
				die(optarg, errno);
			close(fd);
			break;
		case 'c':
			cpu = optarg;
			break;
		case 'b':
			budget = optarg;
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2) {
		fprintf(stderr, "usage: dpdk_forward [--netns PATH] [--cpu N] [--busy-budget N] "
				"INTERFACE INTERFACE\n");
		return 2;
	}
	eal_start((const char *const *)argv + optind, cpu, budget);
	pool = rte_pktmbuf_pool_create("frames", MBUFS, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	if (!pool)
		die("the pool of mbufs", rte_errno);
	port_start(0, pool);
	port_start(1, pool);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	printf("ready\n");
	fflush(stdout);
	while (!stop) {
		forward(0, 1);
		forward(1, 0);
	}
	report(0);
	report(1);
	rte_eth_dev_stop(0);
	rte_eth_dev_stop(1);
	rte_eth_dev_close(0);
	rte_eth_dev_close(1);
	rte_eal_cleanup();
	return 0;
}
