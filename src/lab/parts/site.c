/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/parts/site.h"

#define AGAIN (100 * NSEC_PER_MSEC)
#define PATIENCE (10 * NSEC_PER_SEC)

enum { LESSON = 60 };

const uint8_t site_source[6] = {2, 0, 0, 0, 0, 1}, site_sink[6] = {2, 0, 0, 0, 0, 2};

static int veth_make(struct site *site, unsigned ns_a, const char *a, unsigned ns_b, const char *b,
		     struct error *err)
{
	int ret = netlab_veth_add(site->lab, ns_a, a, ns_b, b, err);

	if (!ret)
		ret = netlab_link_up(site->lab, ns_a, a, true, err);
	if (!ret)
		ret = netlab_link_up(site->lab, ns_b, b, true, err);
	/*
	 * Live frames need a NAPI at the other end: GRO, where there is no XDP program. Turned on
	 * before the interface is up it makes the NAPI, but the sender's end is not told of it.
	 */
	return ret ? ret : netlab_offload_set(site->lab, ns_b, b, NETLAB_GRO, true, err);
}

static int links_make(struct site *site, struct error *err)
{
	struct netlab *lab = site->lab;
	const char *a = site->at.interface[0], *b = site->at.interface[1];
	int ret = veth_make(site, site->generator, "out", site->at.ns, a, err);

	if (!ret)
		ret = veth_make(site, site->at.ns, b, site->sink, "in", err);
	if (!ret)
		ret = veth_make(site, site->generator, "cable", site->sink, "cable", err);
	if (!ret)
		ret = netlab_mac_set(lab, site->sink, "in", site_sink, err);
	return ret ? ret : netlab_address_add(lab, site->sink, "in", "10.78.0.2", 24, err);
}

int site_open(const char *napier, const char *rundir, struct site *site, struct error *err)
{
	int ret = netlab_open(rundir, &site->lab, err), at, sink;

	if (ret)
		return ret;
	ret = netlab_namespace_add(site->lab, "gen", err);
	at = ret < 0 ? ret : netlab_namespace_add(site->lab, "switch", err);
	sink = at < 0 ? at : netlab_namespace_add(site->lab, "sink", err);
	if (sink >= 0) {
		site->generator = (unsigned)ret;
		site->sink = (unsigned)sink;
		site->at = (struct forwarder_site){
			.lab = site->lab,
			.ns = (unsigned)at,
			.napier = napier,
			.port = "xdp",
			.rundir = rundir,
		};
		netlab_name(site->lab, "a", site->at.interface[0]);
		netlab_name(site->lab, "b", site->at.interface[1]);
	}
	ret = sink < 0 ? sink : links_make(site, err);
	if (ret)
		netlab_close(site->lab);
	return ret;
}

void site_close(struct site *site)
{
	netlab_close(site->lab);
}

static void *lesson_send(void *arg)
{
	static const uint8_t everybody[6] = {255, 255, 255, 255, 255, 255};
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = 6};
	struct site *site = arg;
	uint8_t frame[LESSON];
	struct error err;
	int fd;

	if (netlab_enter(site->lab, site->sink, &err))
		return NULL;
	frames_plain(frame, everybody, site_sink, sizeof(frame));
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	to.sll_ifindex = (int)if_nametoindex("in");
	/* Where it does not arrive the bridge floods, which with two ports is the same. */
	if (fd >= 0) {
		(void)!sendto(fd, frame, sizeof(frame), 0, (void *)&to, sizeof(to));
		close(fd);
	}
	return NULL;
}

void site_teach(struct site *site)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, lesson_send, site))
		pthread_join(thread, NULL);
}

int site_start(struct site *site, const struct contestant *who, const struct cpuset *cpus,
	       struct forwarder *f, struct error *err)
{
	int64_t deadline = clock_now() + PATIENCE;
	int ret;

	site->at.cpus = *cpus;
	site->at.settings = who->settings;
	site->at.steered = who->steered;
	/* The kernel lets go of the AF_XDP sockets of a process some time after its end. */
	while ((ret = forwarder_start(&site->at, who->kind, f, err)) == -ECHILD &&
	       clock_now() < deadline)
		clock_sleep(AGAIN);
	if (!ret && who->kind != FORWARDER_NONE)
		site_teach(site);
	return ret;
}

int site_stop(struct site *site, struct forwarder *f, struct error *err)
{
	int ret = forwarder_stop(f, err);

	/* Its stop turned GRO off, which live frames need at a bridge's end. */
	for (int i = 0; i < 2 && !ret; i++)
		ret = netlab_offload_set(site->lab, site->at.ns, site->at.interface[i], NETLAB_GRO,
					 true, err);
	return ret;
}
