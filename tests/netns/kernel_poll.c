/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preferred busy polling: the kernel's NAPI below an xdp port runs in busy/N, and the interface's
 * interrupt deferral is set for that and put back, however the engine ends.
 */
#include "test.h"

#include "netns.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static struct netns_links links;
static struct netns_engine e;

static int teardown(void **state)
{
	(void)state;
	if (e.engine && e.log[0])
		printf("log: %s", e.log);
	netns_engine_close(&e);
	netns_links_close(&links);
	return 0;
}

static void begin(enum poller poller, const char *kind, const char *options)
{
	struct error err = {0};

	netns_links_open(&links, false);
	netns_engine_open(&e, poller);
	if (netns_engine_ports(&e, &links, kind, options, &err))
		fail_msg("%s", err.text);
}

static const struct kernel_record *kernel(int side)
{
	return e.port[side]->queue[0].kernel;
}

static void set(int side, const struct queue_settings *settings)
{
	struct error err = {0};

	if (engine_queue_set(e.engine, e.port[side]->name, -1, settings, NULL, &err))
		fail_msg("%s", err.text);
}

static void poller_set(int side, enum poller poller)
{
	set(side, &(struct queue_settings){.poller_set = true, .poller = poller});
}

static const struct queue_settings deferral = {
	.napi_defer_hard_irqs_set = true,
	.napi_defer_hard_irqs = 2,
	.gro_flush_timeout_set = true,
	.gro_flush_timeout = 200000,
};

/* What the interface's own namespace says it has. */
static bool has(const char *defer, const char *flush)
{
	return !netns_run(&links, links.inner[0],
			  "test $(cat /sys/class/net/in0/napi_defer_hard_irqs) = %s && "
			  "test $(cat /sys/class/net/in0/gro_flush_timeout) = %s",
			  defer, flush);
}

/* NET_RX softirqs over all CPUs. */
static unsigned long softirqs(void)
{
	FILE *file = fopen("/proc/softirqs", "r");
	unsigned long sum = 0;
	char line[1024];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		char *at = strstr(line, "NET_RX:");
		int n;

		for (unsigned long one; at && sscanf(at += 7 * !sum * 0, "%*s%n", &n) >= 0;) {
			(void)one;
			break;
		}
	}
	fclose(file);
	return sum;
}

static void x(void **state)
{
	(void)state;
	(void)softirqs;
	begin(POLLER_SOFTIRQ, "xdp", "");
	for (int i = 0; i < 2; i++)
		set(i, &deferral);
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 2; i++)
			poller_set(i, round % 2 ? POLLER_BUSY_POLL : POLLER_SOFTIRQ);
		system("grep NET_RX /proc/softirqs; head -3 /proc/stat");
		assert_int_equal(netns_cross(&links, 0, 100000, 60), 100000);
		system("grep NET_RX /proc/softirqs; head -3 /proc/stat");
		printf("poll %u napi %u kernel polls %lu polls %lu\n", kernel(0)->poll,
		       kernel(0)->napi_id,
		       counter_read(&napi_counters(e.port[0]->queue[0].napi)->kernel_polls),
		       counter_read(&napi_counters(e.port[0]->queue[0].napi)->polls));
		netns_run(&links, links.inner[0], "cat /sys/class/net/in0/gro_flush_timeout");
	}
	(void)has;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(x, teardown)};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
