/* SPDX-License-Identifier: BSD-2-Clause */
/* What the xdp port refuses, with which words, and that nothing is left behind when it does. */
#include "test.h"

#include "netns.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xdp/xsk.h>

static struct netns_links links;
static struct netns_engine e;

static int setup(void **state)
{
	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_SOFTIRQ);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	netns_engine_close(&e);
	netns_links_close(&links);
	return 0;
}

static int port_add(const char *text, struct error *err)
{
	struct port_config config;
	int rc = port_config_parse(text, &config, err);

	return rc ? rc : engine_port_add(e.engine, &config, &e.port[0], err);
}

static unsigned descriptors(void)
{
	DIR *files = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(files))
		n++;
	closedir(files);
	return n;
}

/* The error has this code and all of these words; nothing has changed, here or at the interface. */
static void refused(const char *options, int code, const char *text, const char *fix)
{
	unsigned before = descriptors();
	struct error err = {0};
	char spec[256];
	int rc;

	netns_spec(&links, 0, "xdp", options, spec);
	rc = port_add(spec, &err);
	if (rc != code || !strstr(err.text, text) || !strstr(err.text, fix))
		fail_msg("%s: %d %s", options, rc, err.text);
	assert_null(strchr(err.text, '\n'));
	assert_int_equal(descriptors(), before);
	assert_int_equal(engine_check(e.engine, &err), 0);
	assert_int_equal(netns_run(&links, links.inner[0],
				   "! ip -d link show in0 | grep -e 'promiscuity [1-9]' -e napier"),
			 0);
}

/* 0, or an error; then it is closed again. */
static int opens(struct error *err)
{
	char spec[256];
	int rc;

	netns_spec(&links, 0, "xdp", "", spec);
	rc = port_add(spec, err);
	if (!rc)
		netns_engine_ports_remove(&e);
	return rc;
}

/*
 * Nothing is in its way any more, but that the kernel gives back a queue some time after its socket
 * was closed, which on a busy machine may be longer than the port waits.
 */
static void opens_now(void)
{
	struct error err = {0};
	int rc = -EBUSY;

	for (int i = 0; i < 30 && rc == -EBUSY; i++)
		rc = opens(&err);
	if (rc)
		fail_msg("%s", err.text);
}

static void options(void **state)
{
	(void)state;
	refused("ring=100", -EINVAL, "xdp:in0: ring=100: must be a power of two", "64 to 16384");
	refused("ring=32", -EINVAL, "ring=32", "64 to 16384");
	refused("ring=32768", -EINVAL, "ring=32768", "64 to 16384");
	refused("mode=fast", -EINVAL, "mode=fast", "auto, native, generic");
	refused("zerocopy=maybe", -EINVAL, "zerocopy=maybe", "auto, on, off");
	refused("checksum=1", -EINVAL, "checksum=1", "auto, complete, off");
	refused("colour=red", -EINVAL, "unknown option 'colour=red'",
		"ring, mode, zerocopy, checksum");
	refused("queues=65", -EINVAL, "queues=65", "1 to 64");
	refused("queues=3", -EINVAL, "queues=3, but the interface has 1 receive queue: ",
		"ethtool -L in0 rx 3 tx 3, or queues=1");
	refused("zerocopy=on", -EOPNOTSUPP, "driver veth has no zero copy", "zerocopy=auto or off");
	refused("zerocopy=on,mode=generic", -EINVAL, "zerocopy=on needs mode=native", "generic");
}

static void interfaces(void **state)
{
	struct error err = {0};
	char text[128];

	(void)state;
	assert_int_equal(port_add("xdp:np-nowhere", &err), -ENODEV);
	assert_non_null(strstr(err.text, "interface 'np-nowhere' is not there (see: ip link"));
	assert_int_equal(port_add("xdp:np-nowhere,netns=np-nowhere", &err), -ENOENT);
	assert_non_null(strstr(err.text, "network namespace 'np-nowhere'"));
	assert_int_equal(port_add("xdp:a-name-that-is-too-long", &err), -EINVAL);
	assert_non_null(strstr(err.text, "1 to 15 characters"));
	assert_int_equal(netns_run(&links, links.inner[0], "ip tuntap add t0 mode tun"), 0);
	snprintf(text, sizeof(text), "xdp:t0,netns=%s", links.lab->namespace[links.inner[0]].name);
	assert_int_equal(port_add(text, &err), -EINVAL);
	assert_string_equal(err.text, "xdp:t0: not an Ethernet interface");
}

static void mtu(void **state)
{
	char fix[128];

	(void)state;
	assert_int_equal(netns_run(&links, links.inner[0], "ip link set in0 mtu 3000"), 0);
	snprintf(fix, sizeof(fix),
		 "ip netns exec %s ip link set in0 mtu 1774, or frame_size = 4096 in the "
		 "configuration",
		 links.lab->namespace[links.inner[0]].name);
	refused("", -EMSGSIZE, "its MTU of 3000 does not fit into frames of 2048 bytes", fix);
	assert_int_equal(netns_run(&links, links.inner[0], "ip link set in0 mtu 1774"), 0);
	opens_now();
}

static void queues_without_transmit(void **state)
{
	(void)state;
	assert_int_equal(netns_run(&links, links.inner[0], "ethtool -L in0 rx 2 tx 1"), 0);
	refused("", -EINVAL, "2 receive queues need as many transmit queues, and there is 1",
		"ethtool -L in0 rx 2 tx 2, or queues=1");
	assert_int_equal(netns_run(&links, links.inner[0], "ethtool -L in0 rx 2 tx 2"), 0);
	opens_now();
}

/* As other programs attach: without a link, until somebody takes it off. */
static int attach_other(void *arg)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int program = bpf_prog_load(BPF_PROG_TYPE_XDP, "pass_all", "GPL", code, 2, NULL);

	return bpf_xdp_attach((int)if_nametoindex("in0"), program, *(uint32_t *)arg, NULL) != 0;
}

/* The fix that is told has to work. */
static void another_program(void **state)
{
	static const struct {
		uint32_t mode;
		const char *off;
	} ways[] = {{XDP_FLAGS_DRV_MODE, "xdp"}, {XDP_FLAGS_SKB_MODE, "xdpgeneric"}};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		uint32_t mode = ways[i].mode;
		char fix[128];
		int rc;

		rc = netns_wait(netns_fork(&links, links.inner[0], attach_other, &mode),
				NETNS_SECONDS);
		assert_int_equal(rc, 0);
		snprintf(fix, sizeof(fix), "ip netns exec %s ip link set dev in0 %s off",
			 links.lab->namespace[links.inner[0]].name, ways[i].off);
		refused("", -EBUSY, "xdp:in0: the interface has an XDP program already: id ", fix);
		refused("mode=generic", -EBUSY, " 'pass_all'; take it off: ", fix);
		assert_int_equal(netns_run(&links, links.inner[0], "%s", fix), 0);
		opens_now();
	}
}

struct other_socket {
	struct xsk_umem *umem;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;
	struct xsk_socket *socket;
};

/*
 * An AF_XDP socket of another program on the queue, which has no XDP program (yet), for so many ms;
 * 0: until it is killed.
 * It waits, bounded, for the queue, which the kernel gives back some time after a socket is closed.
 */
static int hold_queue(void *milliseconds, int up)
{
	const struct xsk_socket_config config = {
		.rx_size = 64,
		.tx_size = 64,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = XDP_COPY,
	};
	struct other_socket s;
	void *area =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc = -EBUSY;

	for (int i = 0; rc == -EBUSY && i < 1000; i++) {
		if (i)
			usleep(10000);
		if (xsk_umem__create(&s.umem, area, 1 << 20, &s.fill, &s.completion, NULL))
			return 1;
		rc = xsk_socket__create(&s.socket, "in0", 0, s.umem, &s.rx, &s.tx, &config);
		if (rc)
			xsk_umem__delete(s.umem);
	}
	if (rc || !netns_up(up))
		return 1;
	if (!*(const useconds_t *)milliseconds)
		pause();
	usleep(*(const useconds_t *)milliseconds * 1000);
	return 0;
}

static pid_t holding_start(useconds_t milliseconds)
{
	return netns_fork_up(&links, links.inner[0], hold_queue, &milliseconds);
}

static void another_socket(void **state)
{
	pid_t pid = holding_start(0);
	struct error err = {0};
	int rc = -EBUSY;

	(void)state;
	refused("", -EBUSY, "xdp:in0: queue 0 has an AF_XDP socket of another program",
		"end that program (see: ss --xdp -p)");
	kill(pid, SIGKILL);
	netns_wait(pid, NETNS_SECONDS);
	opens_now();

	/*
	 * One that is there a little longer is waited for: a second, in which on a busy machine the
	 * other program may not come to its end. One of five times it does.
	 */
	for (int i = 0; i < 5 && rc == -EBUSY; i++) {
		pid = holding_start(200);
		rc = opens(&err);
		assert_int_equal(netns_wait(pid, NETNS_SECONDS), 0);
	}
	if (rc)
		fail_msg("%s", err.text);
}

static void small_pool(void **state)
{
	struct engine_config config = {.machine = e.machine, .frames = 64};
	struct engine *engine, *whole = e.engine;
	struct error err = {0};

	(void)state;
	assert_int_equal(engine_create(&config, &engine, &err), 0);
	e.engine = engine;
	refused("", -ENOSPC, "xdp:in0: the pool has 64 frames left, 1 queue needs 128",
		"--frames more, or queues= fewer");
	e.engine = whole;
	engine_destroy(engine);
}

/* veth takes no native program when the peer has more transmit queues than we receive queues. */
static void native_refused(void **state)
{
	struct error err = {0};
	char spec[256];

	(void)state;
	assert_int_equal(netns_run(&links, links.outer[0], "ethtool -L out tx 2"), 0);
	refused("mode=native", -ENOSPC, "xdp:in0: no native XDP with driver veth",
		"the peer has more transmit queues than this end has receive queues");
	netns_spec(&links, 0, "xdp", "", spec);
	assert_int_equal(port_add(spec, &err), 0);
	assert_string_equal(e.port[0]->mode, "generic, copy");
	assert_true(netns_logged(&e, "p0: xdp:in0: no native XDP with driver veth"));
	assert_true(netns_logged(&e, "using generic XDP, which is slower"));
	netns_engine_ports_remove(&e);
}

static void capabilities_drop(int first, int second)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	assert_int_equal(syscall(SYS_capget, &head, data), 0);
	data[first / 32].effective &= ~(1u << first % 32);
	data[second / 32].effective &= ~(1u << second % 32);
	assert_int_equal(syscall(SYS_capset, &head, data), 0);
}

/* 0, or the number of the step that went wrong. */
static int without_bpf(void *arg)
{
	struct error err = {0};

	(void)arg;
	capabilities_drop(CAP_BPF, CAP_SYS_ADMIN);
	netns_engine_open(&e, POLLER_SOFTIRQ);
	if (port_add("xdp:in0,mode=native", &err) != -EPERM ||
	    strcmp(err.text, "xdp:in0: lacks CAP_BPF (run it as root, or see setcap(8))"))
		return 1;
	if (port_add("xdp:in0", &err))
		return 2;
	if (strcmp(e.port[0]->spec, "packet:in0") || strcmp(e.port[0]->ops->kind, "packet"))
		return 3;
	if (!netns_logged(&e, "lacks CAP_BPF") || !netns_logged(&e, "using packet sockets instead"))
		return 4;
	netns_engine_close(&e);
	return 0;
}

static int without_locked_memory(void *arg)
{
	const struct rlimit limit = {.rlim_cur = 65536, .rlim_max = 65536};
	struct error err = {0};

	(void)arg;
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return 1;
	capabilities_drop(CAP_IPC_LOCK, CAP_IPC_LOCK);
	netns_engine_open(&e, POLLER_SOFTIRQ);
	if (port_add("xdp:in0", &err) != -ENOBUFS)
		return 2;
	if (!strstr(err.text, "xdp:in0: 1 queue locks 32768 KB of memory, the limit is 64 KB: "
			      "ulimit -l 32768, LimitMEMLOCK= in a systemd unit, or CAP_IPC_LOCK"))
		return 3;
	netns_engine_close(&e);
	return 0;
}

static int no_setup(void **state)
{
	(void)state;
	netns_links_open(&links, false);
	return 0;
}

static int no_teardown(void **state)
{
	(void)state;
	netns_links_close(&links);
	return 0;
}

static void capabilities(void **state)
{
	(void)state;
	assert_int_equal(netns_wait(netns_fork(&links, links.inner[0], without_bpf, NULL), 60), 0);
	assert_int_equal(
		netns_wait(netns_fork(&links, links.inner[0], without_locked_memory, NULL), 60), 0);
}

#define REFUSAL(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		REFUSAL(options),
		REFUSAL(interfaces),
		REFUSAL(mtu),
		REFUSAL(queues_without_transmit),
		REFUSAL(another_program),
		REFUSAL(another_socket),
		REFUSAL(small_pool),
		REFUSAL(native_refused),
		cmocka_unit_test_setup_teardown(capabilities, no_setup, no_teardown),
	};

	netns_require();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]); /* by hand: one of them */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
