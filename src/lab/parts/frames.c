/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include <port/bpf_code.h>
#include <port/netdev.h>

#include "lab/clock.h"
#include "lab/parts/bench.h"
#include "lab/parts/frames.h"

/* The kernel's pool for live frames; it polls what it has redirected once per batch. */
enum { BATCH = 64, BURST = 1024 };

struct frames_generator {
	struct frames_config config;
	uint8_t frame[FRAMES_MAX];
	int netns, program, link;
	pid_t tid; /* set before the first frame */
	pthread_t thread;
	_Atomic uint64_t sent;
	_Atomic bool stop;
	_Atomic int failed; /* negative errno of the first run that failed */
};

struct frames_sink {
	int program, map, link;
	unsigned cpus;
	uint64_t each[]; /* the counts of the CPUs, when last read */
};

void frames_plain(uint8_t *frame, const uint8_t destination[6], const uint8_t source[6],
		  uint32_t length)
{
	memset(frame, 0, length);
	memcpy(frame, destination, 6);
	memcpy(frame + 6, source, 6);
	frame[12] = 0x88;
	frame[13] = 0xb5;
}

static void put(uint8_t *at, uint32_t value, unsigned bytes)
{
	while (bytes--)
		*at++ = (uint8_t)(value >> 8 * bytes);
}

void frames_udp(uint8_t *frame, const uint8_t destination[6], const uint8_t source[6], uint32_t to,
		uint32_t from, uint16_t port, uint32_t length)
{
	uint8_t *ip = frame + 14, *udp = ip + 20;
	uint32_t sum = 0;

	frames_plain(frame, destination, source, length);
	put(frame + 12, 0x0800, 2);
	put(ip, 0x4500, 2);
	put(ip + 2, length - 14, 2);
	ip[8] = 64;
	ip[9] = 17;
	put(ip + 12, from, 4);
	put(ip + 16, to, 4);
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	put(ip + 10, ~((sum & 0xffff) + (sum >> 16)) & 0xffff, 2);
	put(udp, port, 2);
	put(udp + 2, port, 2);
	put(udp + 4, length - 34, 2);
}

static int interface_find(const char *netns, const char *interface, struct error *err)
{
	int back, index, ret = netns_enter(netns, &back, err);

	if (ret)
		return ret;
	index = (int)if_nametoindex(interface);
	netns_leave(back);
	if (!index)
		return error_set(err, -ENODEV, "%s: no such interface in %s", interface, netns);
	return index;
}

static int64_t run_once(struct frames_generator *g, uint32_t frames)
{
	struct xdp_md context = {.data_end = g->config.length};
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = g->frame, .data_size_in = g->config.length,
		    .ctx_in = &context, .ctx_size_in = sizeof(context), .repeat = (int)frames,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);
	int ret = bpf_prog_test_run_opts(g->program, &run);

	return ret < 0 ? ret : (int64_t)frames;
}

/* At a rate, a burst is what is due, so a late thread catches up, but by no more than BURST. */
static void *generate(void *arg)
{
	struct frames_generator *g = arg;
	int64_t start = clock_now();
	uint64_t skipped = 0;

	g->tid = (pid_t)syscall(SYS_gettid);
	if (setns(g->netns, CLONE_NEWNET)) {
		g->failed = -errno;
		return NULL;
	}
	while (!g->stop) {
		uint64_t due = BURST;
		int64_t ret;

		if (g->config.rate) {
			uint64_t behind = (uint64_t)((double)(clock_now() - start) * 1e-9 *
						     (double)g->config.rate) -
					  g->sent - skipped;

			due = behind > BURST ? BURST : behind;
			skipped += behind - due;
			if (due < BATCH) {
				clock_sleep(20000);
				continue;
			}
		}
		ret = run_once(g, (uint32_t)due);
		if (ret < 0 && ret != -EINTR) {
			g->failed = (int)ret;
			break;
		}
		if (ret > 0)
			g->sent += (uint64_t)ret;
	}
	return NULL;
}

static int thread_start(struct frames_generator *g)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int ret;

	pthread_attr_init(&attr);
	if (g->config.cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(g->config.cpu, &cpus);
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	ret = pthread_create(&g->thread, &attr, generate, g);
	pthread_attr_destroy(&attr);
	return -ret;
}

/*
 * A program that is attached somewhere is in the kernel's XDP dispatcher already. Otherwise each
 * test run adds and removes it, and waits for an RCU grace period of some 20 ms each time. Nothing
 * is received on the loopback device of the generator's namespace, so it does no harm there.
 */
static int dispatcher_hold(struct frames_generator *g, struct error *err)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_SKB_MODE);
	int back, ret = netns_enter(g->config.netns, &back, err);

	if (ret)
		return ret;
	g->link = bpf_link_create(g->program, (int)if_nametoindex("lo"), BPF_XDP, &opts);
	netns_leave(back);
	if (g->link < 0)
		return error_set(err, g->link, "attaching the generator's program to lo: %s",
				 strerror(-g->link));
	return 0;
}

static void generator_free(struct frames_generator *g)
{
	if (g->link >= 0)
		close(g->link);
	if (g->program >= 0)
		close(g->program);
	if (g->netns >= 0)
		close(g->netns);
	free(g);
}

int frames_generator_start(const struct frames_config *config, struct frames_generator **out,
			   struct error *err)
{
	int index = interface_find(config->netns, config->interface, err);
	struct frames_generator *g;
	int64_t limit;
	int ret;

	if (index < 0)
		return index;
	g = calloc(1, sizeof(*g));
	if (!g)
		return error_set(err, -ENOMEM, "no memory");
	struct bpf_insn redirect[] = {
		SET(BPF_REG_1, index),
		SET(BPF_REG_2, 0),
		HELPER(BPF_FUNC_redirect),
		EXIT,
	};
	g->config = *config;
	memcpy(g->frame, config->frame, config->length);
	g->program = g->link = -1;
	g->netns = open(config->netns, O_RDONLY | O_CLOEXEC);
	g->program = bpf_prog_load(BPF_PROG_TYPE_XDP, "frames_out", "BSD-2-Clause", redirect,
				   sizeof(redirect) / sizeof(*redirect), NULL);
	if (g->program < 0) {
		ret = error_set(err, g->program, "loading the generator's XDP program: %s",
				strerror(-g->program));
		generator_free(g);
		return ret;
	}
	ret = dispatcher_hold(g, err);
	if (ret) {
		generator_free(g);
		return ret;
	}
	ret = thread_start(g);
	if (ret) {
		error_set(err, ret, "starting the generator: %s", strerror(-ret));
		generator_free(g);
		return ret;
	}
	limit = clock_now() + BENCH_PATIENCE;
	while (!g->sent && !g->failed && clock_now() < limit)
		clock_sleep(NSEC_PER_MSEC);
	if (g->failed || !g->sent) {
		ret = g->failed ? g->failed : -ETIMEDOUT;
		error_set(err, ret, "%s: live frames: %s", config->interface, strerror(-ret));
		frames_generator_stop(g);
		return ret;
	}
	*out = g;
	return 0;
}

uint64_t frames_generator_sent(const struct frames_generator *g)
{
	return g->sent;
}

int64_t frames_generator_cpu(const struct frames_generator *g)
{
	clockid_t clock;

	return pthread_getcpuclockid(g->thread, &clock) ? 0 : clock_read(clock);
}

pid_t frames_generator_thread(const struct frames_generator *g)
{
	return g->tid;
}

void frames_generator_stop(struct frames_generator *g)
{
	g->stop = true;
	pthread_join(g->thread, NULL);
	generator_free(g);
}

static int sink_load(struct frames_sink *sink, struct error *err)
{
	sink->map = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "frames", 4, 8, 1, NULL);
	if (sink->map < 0)
		return error_set(err, -errno, "creating the sink's map: %s", strerror(errno));
	struct bpf_insn count[] = {
		STORE_VALUE(BPF_W, BPF_REG_10, -4, 0),
		COPY(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -4),
		MAP(BPF_REG_1, sink->map),
		HELPER(BPF_FUNC_map_lookup_elem),
		INSTRUCTION(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 3, 0),
		LOAD(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		ADD(BPF_REG_1, 1),
		STORE(BPF_DW, BPF_REG_0, 0, BPF_REG_1),
		SET(BPF_REG_0, XDP_DROP),
		EXIT,
	};
	sink->program = bpf_prog_load(BPF_PROG_TYPE_XDP, "frames_in", "BSD-2-Clause", count,
				      sizeof(count) / sizeof(*count), NULL);
	if (sink->program < 0)
		return error_set(err, -errno, "loading the sink's XDP program: %s",
				 strerror(errno));
	return 0;
}

int frames_sink_open(const char *netns, const char *interface, struct frames_sink **out,
		     struct error *err)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);
	int index = interface_find(netns, interface, err);
	struct frames_sink *sink;
	int ret, back, cpus;

	if (index < 0)
		return index;
	cpus = libbpf_num_possible_cpus();
	sink = cpus > 0 ? malloc(sizeof(*sink) + (size_t)cpus * sizeof(sink->each[0])) : NULL;
	if (!sink)
		return error_set(err, -ENOMEM, "no memory");
	*sink = (struct frames_sink){.program = -1, .map = -1, .link = -1};
	sink->cpus = (unsigned)cpus;
	ret = sink_load(sink, err);
	if (!ret)
		ret = netns_enter(netns, &back, err);
	if (!ret) {
		sink->link = bpf_link_create(sink->program, index, BPF_XDP, &opts);
		if (sink->link < 0)
			ret = error_set(err, sink->link, "%s: attaching the sink: %s", interface,
					strerror(-sink->link));
		netns_leave(back);
	}
	if (ret) {
		frames_sink_close(sink);
		return ret;
	}
	*out = sink;
	return 0;
}

uint64_t frames_sink_count(struct frames_sink *sink)
{
	uint64_t sum = 0;
	uint32_t key = 0;

	if (bpf_map_lookup_elem(sink->map, &key, sink->each))
		return 0;
	for (unsigned i = 0; i < sink->cpus; i++)
		sum += sink->each[i];
	return sum;
}

static uint64_t frames(void *sink)
{
	return frames_sink_count(sink);
}

void frames_sink_await(struct frames_sink *sink, uint64_t more_than)
{
	bench_await(frames, sink, more_than);
}

void frames_sink_close(struct frames_sink *sink)
{
	if (sink->link >= 0)
		close(sink->link);
	if (sink->program >= 0)
		close(sink->program);
	if (sink->map >= 0)
		close(sink->map);
	free(sink);
}
