/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * I10: same packets in, same packets out, whichever poller and whichever machine. Captures go
 * through the bridge in every combination, and while the poller is switched all the time; what
 * comes out is compared byte by byte with files that no engine has had a hand in.
 */
#include "file_scene.h"

#define T0 (INT64_C(1700000000) * NSEC_PER_SEC)
#define PACKETS 4000
#define SWITCHES 200

static struct captures dir;
static uint64_t random_state = 1;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % below;
}

static const char *path(const char *name)
{
	return captures_path(&dir, name);
}

struct files {
	struct capture_writer a, b, a_out, b_out;
};

/*
 * Hosts 1 to 9 are behind port a, 11 to 19 behind b, in each file flows of many sizes; some frames
 * stay on their side. Those go nowhere, so first each host says where it is.
 */
static void frames_write(struct capture_writer *in, struct capture_writer *out, uint8_t here,
			 uint8_t there)
{
	uint8_t frame[1514];
	int64_t stamp = T0;

	for (uint32_t i = 0; i < PACKETS; i++) {
		bool hello = i < 9, stays = !hello && draw(10) == 0;
		uint8_t from = (uint8_t)(here + (hello ? i : draw(9)));
		uint8_t to = (uint8_t)((stays ? here : there) + draw(9));
		uint32_t len = draw(3) ? 60 + draw(20) : 60 + draw(1455);

		frame_fill(frame, len, to, from, i);
		if (hello || draw(50) == 0)
			memset(frame, 0xff, 6);
		else if (stays && draw(20) == 0)
			memcpy(frame, "\x01\x80\xc2\x00\x00\x0e", 6);
		stamp += draw(10000);
		writer_put(in, stamp, frame, len, len);
		if (!stays || frame[0] == 0xff)
			writer_put(out, stamp, frame, len, len);
	}
}

static int begin(void **state)
{
	struct files f;

	(void)state;
	captures_begin(&dir);
	writer_open(&f.a, path("a"), DLT_EN10MB, true);
	writer_open(&f.b, path("b"), DLT_EN10MB, true);
	writer_open(&f.a_out, path("a.expected"), DLT_EN10MB, true);
	writer_open(&f.b_out, path("b.expected"), DLT_EN10MB, true);
	frames_write(&f.a, &f.b_out, 1, 11);
	frames_write(&f.b, &f.a_out, 11, 1);
	writer_close(&f.a);
	writer_close(&f.b);
	writer_close(&f.a_out);
	writer_close(&f.b_out);
	return 0;
}

static int end(void **state)
{
	(void)state;
	captures_end(&dir);
	return 0;
}

static void switch_pollers(struct file_scene *s, struct port *a, struct port *b)
{
	for (uint32_t i = 0; i < SWITCHES; i++) {
		struct napi *napi = (i % 2 ? a : b)->queue[0].napi;
		enum poller poller = (enum poller)((napi_poller(napi) + 1) % POLLER_MAX);

		/* A busy host may not run the holder for longer than control would wait. */
		assert_int_equal(
			napi_poller_set(napi, poller, SCENE_PATIENCE * NSEC_PER_SEC, NULL, NULL),
			0);
		file_scene_run(s, 5 * NSEC_PER_USEC);
	}
}

static void replayed(bool virtual, uint64_t seed, enum poller poller, uint32_t weight,
		     bool switching)
{
	static const struct bridge_config plain;
	struct file_scene s;
	struct port *a, *b;

	file_scene_begin(&s, virtual, seed, poller, &plain, 1024);
	a = file_scene_port(&s, "pcap:%s,%s,name=a", path("a"), path("a.out"));
	b = file_scene_port(&s, "pcap:%s,%s,name=b", path("b"), path("b.out"));
	assert_int_equal(napi_weight_set(a->queue[0].napi, weight), 0);
	if (switching)
		switch_pollers(&s, a, b);
	file_scene_finish(&s);
	assert_int_equal(PORT_SUM(a, received), PACKETS);
	assert_int_equal(PORT_SUM(b, received), PACKETS);
	assert_true(PORT_SUM(a, dropped[DROP_BRIDGE_SAME_PORT]) > 0);
	assert_true(PORT_SUM(a, dropped[DROP_BRIDGE_RESERVED]) > 0);
	file_scene_end(&s);
	files_equal(path("a.out"), path("a.expected"));
	files_equal(path("b.out"), path("b.expected"));
}

static void virtual_machine(enum poller poller)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		replayed(true, seed, poller, 64, false);
	replayed(true, 6, poller, 1, false);
	replayed(true, 7, poller, 13, false);
	replayed(true, 8, poller, 13, true);
}

static void host_machine(enum poller poller)
{
	replayed(false, 0, poller, 64, false);
	replayed(false, 0, poller, 1, false);
	replayed(false, 0, poller, 13, true);
}

static void on_the_virtual_machine(void **state)
{
	(void)state;
	over_pollers(virtual_machine);
}

static void on_the_host(void **state)
{
	(void)state;
	over_pollers(host_machine);
}

/* One capture flooded to two files, tagged in one and untagged in the other. */
static void tagged(bool virtual, enum poller poller)
{
	const struct bridge_config config = {.vlan_filtering = true};
	const struct bridge_vlan untagged = {.vid = 100, .pvid = true, .untagged = true};
	const struct bridge_vlan trunk = {.vid = 100};
	struct port *in, *plain, *tagged;
	struct file_scene s;

	file_scene_begin(&s, virtual, 9, poller, &config, 1024);
	in = file_scene_port(&s, "pcap:%s", path("v"));
	plain = file_scene_port(&s, "pcap:,%s,name=plain", path("plain.out"));
	tagged = file_scene_port(&s, "pcap:,%s,name=tagged", path("tagged.out"));
	assert_int_equal(bridge_vlan_add(s.bridge, in, &untagged, NULL), 0);
	assert_int_equal(bridge_vlan_add(s.bridge, plain, &untagged, NULL), 0);
	assert_int_equal(bridge_vlan_add(s.bridge, tagged, &trunk, NULL), 0);
	file_scene_finish(&s);
	file_scene_end(&s);
	files_equal(path("plain.out"), path("v"));
	files_equal(path("tagged.out"), path("v.tagged"));
}

static void tagged_virtual(enum poller poller)
{
	tagged(true, poller);
}

static void tagged_host(enum poller poller)
{
	tagged(false, poller);
}

static void with_tags(void **state)
{
	struct capture_writer v, t;
	uint8_t frame[1518];

	(void)state;
	writer_open(&v, path("v"), DLT_EN10MB, true);
	writer_open(&t, path("v.tagged"), DLT_EN10MB, true);
	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t len = 60 + draw(1455);

		frame_fill(frame, len, 99, (uint8_t)(1 + draw(50)), i);
		writer_put(&v, T0 + i, frame, len, len);
		memmove(frame + 16, frame + 12, len - 12);
		memcpy(frame + 12, "\x81\x00\x00\x64", 4);
		writer_put(&t, T0 + i, frame, len + 4, len + 4);
	}
	writer_close(&v);
	writer_close(&t);
	over_pollers(tagged_virtual);
	over_pollers(tagged_host);
}

#define FLOWS 6

/* Runs of datagrams of a few flows, now and then one with a wrong checksum. */
static void trains_write(const char *name)
{
	uint32_t number[FLOWS] = {0};
	struct capture_writer out;
	uint8_t frame[SCENE_FRAME];

	writer_open(&out, path(name), DLT_EN10MB, true);
	for (uint32_t i = 0; i < PACKETS;) {
		uint32_t flow = draw(FLOWS);

		for (uint32_t n = 1 + draw(12); n && i < PACKETS; n--, i++) {
			struct packet p = {.data = frame};

			scene_datagram(&p, flow, number[flow]++);
			if (!draw(20))
				frame[SCENE_FRAME - 1] ^= 1;
			writer_put(&out, T0 + i, frame, sizeof(frame), sizeof(frame));
		}
	}
	writer_close(&out);
}

/* One flow's packets, one behind the other. */
struct stream {
	uint8_t *bytes;
	size_t size;
};

static void streams_read(const char *name, struct stream stream[FLOWS])
{
	char text[PCAP_ERRBUF_SIZE];
	pcap_t *in = pcap_open_offline_with_tstamp_precision(path(name), PCAP_TSTAMP_PRECISION_NANO,
							     text);
	struct pcap_pkthdr *header;
	const uint8_t *data;
	uint32_t n = 0;

	assert_non_null(in);
	memset(stream, 0, FLOWS * sizeof(*stream));
	for (; pcap_next_ex(in, &header, &data) == 1; n++) {
		struct stream *to = &stream[data[42] % FLOWS];
		size_t size = sizeof(header->ts) + header->caplen;

		to->bytes = realloc(to->bytes, to->size + size);
		memcpy(to->bytes + to->size, &header->ts, sizeof(header->ts));
		memcpy(to->bytes + to->size + sizeof(header->ts), data, header->caplen);
		to->size += size;
	}
	assert_int_equal(n, PACKETS);
	pcap_close(in);
}

static void streams_equal(const char *a, const char *b)
{
	struct stream of_a[FLOWS], of_b[FLOWS];

	streams_read(a, of_a);
	streams_read(b, of_b);
	for (int i = 0; i < FLOWS; i++) {
		assert_int_equal(of_a[i].size, of_b[i].size);
		assert_memory_equal(of_a[i].bytes, of_b[i].bytes, of_a[i].size);
		free(of_a[i].bytes);
		free(of_b[i].bytes);
	}
}

/* Merged, and apart again: each flow is what it was, stamps too. Between flows there is no order.
 */
static void merged(bool virtual, uint64_t seed, enum poller poller, uint32_t weight,
		   uint32_t timeout_ns, bool switching)
{
	const struct queue_settings settings = {
		.gro_set = true,
		.gro = GRO_ON,
		.gro_flush_timeout_set = true,
		.gro_flush_timeout = timeout_ns,
	};
	static const struct bridge_config plain;
	struct file_scene s;
	struct port *a, *b;

	file_scene_begin(&s, virtual, seed, poller, &plain, 1024);
	a = file_scene_port(&s, "pcap:%s,name=a", path("t"));
	b = file_scene_port(&s, "pcap:,%s,name=b", path("t.out"));
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &settings, NULL, NULL), 0);
	assert_int_equal(napi_weight_set(a->queue[0].napi, weight), 0);
	if (switching)
		switch_pollers(&s, a, b);
	file_scene_finish(&s);
	assert_int_equal(PORT_SUM(a, received), PACKETS);
	assert_true(PORT_SUM(a, merged) > PACKETS / 4);
	assert_int_equal(PORT_SUM(a, cloned), PORT_SUM(a, merged));
	file_scene_end(&s);
	streams_equal("t.out", "t");
}

static void merged_virtual(enum poller poller)
{
	merged(true, 11, poller, 64, 0, false);
	merged(true, 12, poller, 7, 100 * NSEC_PER_USEC, false);
	merged(true, 13, poller, 13, 20 * NSEC_PER_USEC, true);
}

static void merged_host(enum poller poller)
{
	merged(false, 0, poller, 64, 0, false);
	merged(false, 0, poller, 13, 20 * NSEC_PER_USEC, true);
}

static void with_gro(void **state)
{
	(void)state;
	trains_write("t");
	over_pollers(merged_virtual);
	over_pollers(merged_host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_the_virtual_machine),
		cmocka_unit_test(on_the_host),
		cmocka_unit_test(with_tags),
		cmocka_unit_test(with_gro),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
