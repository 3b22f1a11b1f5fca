/* SPDX-License-Identifier: BSD-2-Clause */
/* pcap ports: exact replay, pace, ends, and everything that can be wrong with a file. */
#include "file_scene.h"

#include <signal.h>
#include <sys/resource.h>

#define T0 (INT64_C(1700000000) * NSEC_PER_SEC)

static struct captures dir;
static const struct bridge_config plain;

static int begin(void **state)
{
	(void)state;
	captures_begin(&dir);
	return 0;
}

static int end(void **state)
{
	(void)state;
	captures_end(&dir);
	return 0;
}

/* n packets, 1 us apart and of growing sizes, from host 1 to 2. */
static const char *capture(const char *name, uint32_t n)
{
	const char *path = captures_path(&dir, name);
	struct capture_writer w;
	uint8_t frame[2000];

	writer_open(&w, path, DLT_EN10MB, true);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = 60 + i % 1455;

		frame_fill(frame, len, 2, 1, i);
		writer_put(&w, T0 + i * NSEC_PER_USEC, frame, len, len);
	}
	writer_close(&w);
	return path;
}

static void same_out(enum poller poller)
{
	const char *in = capture("in.pcap", 3000), *out = captures_path(&dir, "out.pcap");
	struct port *from, *to;
	struct file_scene s;

	file_scene_begin(&s, true, 1, poller, &plain, 0);
	to = file_scene_port(&s, "pcap:,%s", out);
	from = file_scene_port(&s, "pcap:%s", in);
	assert_string_equal(to->name, "pcap");
	assert_string_equal(from->name, "in.pcap");
	assert_string_equal(to->mode, "record");
	assert_non_null(strstr(to->spec, "pcap:,/tmp/"));
	assert_string_equal(from->mode, "replay max");
	assert_true(from->features & PORT_FINITE);
	assert_false(to->features & PORT_FINITE);
	file_scene_finish(&s);
	assert_int_equal(PORT_SUM(from, received), 3000);
	assert_int_equal(PORT_SUM(from, transmitted), 3000);
	assert_int_equal(counter_read(&to->queue[0].transmit->packets), 3000);
	assert_int_equal(counter_read(&to->queue[0].transmit->bytes),
			 PORT_SUM(from, received_bytes));
	assert_int_equal(to->state, PORT_UP);
	/* Nothing waits to be written. */
	files_equal(in, out);
	file_scene_end(&s);
	files_equal(in, out);
	assert_int_equal(s.lines, 0);
}

static void replays_exactly(void **state)
{
	(void)state;
	over_pollers(same_out);
}

/* Both ways at once, by one port each; the inputs end long before the outputs do. */
static void both_ways(void **state)
{
	const char *a = captures_path(&dir, "a.pcap"), *b = captures_path(&dir, "b.pcap");
	const char *a_out = captures_path(&dir, "a.out"), *b_out = captures_path(&dir, "b.out");
	struct capture_writer w;
	struct file_scene s;
	uint8_t frame[60];

	(void)state;
	for (int side = 0; side < 2; side++) {
		writer_open(&w, side ? b : a, DLT_EN10MB, true);
		for (uint32_t i = 0; i < (side ? 100 : 5000); i++) {
			frame_fill(frame, sizeof(frame), side ? 1 : 2, side ? 2 : 1, i);
			writer_put(&w, T0 + i, frame, sizeof(frame), sizeof(frame));
		}
		writer_close(&w);
	}
	file_scene_begin(&s, true, 2, POLLER_SOFTIRQ, &plain, 0);
	file_scene_port(&s, "pcap:%s,%s,speed=real", b, b_out);
	file_scene_port(&s, "pcap:%s,out=%s,speed=0.5", a, a_out);
	file_scene_finish(&s);
	file_scene_end(&s);
	files_equal(a, b_out);
	files_equal(b, a_out);
}

static void keeps_time(void **state)
{
	const char *in = captures_path(&dir, "timed.pcap");
	static const int64_t at[] = {0, 10, 10, 1000, 900, 2000}; /* ms */
	struct capture_writer w;
	uint8_t frame[60];

	(void)state;
	writer_open(&w, in, DLT_EN10MB, true);
	for (uint32_t i = 0; i < 6; i++) {
		frame_fill(frame, sizeof(frame), 2, 1, i);
		writer_put(&w, T0 + at[i] * NSEC_PER_MSEC, frame, sizeof(frame), sizeof(frame));
	}
	writer_close(&w);
	for (int speed = 1; speed <= 10; speed *= 10) {
		struct port *port;
		struct file_scene s;

		file_scene_begin(&s, true, 3, POLLER_THREAD, &plain, 0);
		port = file_scene_port(&s, speed == 1 ? "pcap:%s,speed=real" : "pcap:%s,speed=10",
				       in);
		assert_string_equal(port->mode, speed == 1 ? "replay x1" : "replay x10");
		file_scene_run(&s, 9 * NSEC_PER_MSEC / speed);
		assert_int_equal(PORT_SUM(port, received), 1);
		file_scene_run(&s, 2 * NSEC_PER_MSEC / speed);
		assert_int_equal(PORT_SUM(port, received), 3);
		file_scene_run(&s, 987 * NSEC_PER_MSEC / speed);
		assert_int_equal(PORT_SUM(port, received), 3);
		file_scene_run(&s, 3 * NSEC_PER_MSEC / speed);
		assert_int_equal(PORT_SUM(port, received), 5);
		assert_int_equal(port->state, PORT_UP);
		file_scene_run(&s, 1000 * NSEC_PER_MSEC / speed);
		assert_int_equal(PORT_SUM(port, received), 6);
		assert_int_equal(port->state, PORT_ENDED);
		/* It waits by its timer: no polling in between. */
		assert_true(PORT_SUM(port, polls) < 20);
		file_scene_end(&s);
	}
}

static void loops(void **state)
{
	const char *in = captures_path(&dir, "once.pcap"), *out = captures_path(&dir, "looped.out");
	const char *expected = captures_path(&dir, "expected.pcap");
	struct capture_writer once, looped;
	struct file_scene s;
	uint8_t frame[60];

	(void)state;
	writer_open(&once, in, DLT_EN10MB, true);
	writer_open(&looped, expected, DLT_EN10MB, true);
	for (uint32_t i = 0; i < 30; i++) {
		frame_fill(frame, sizeof(frame), 2, 1, i % 10);
		writer_put(&looped, T0 + i * 100, frame, sizeof(frame), sizeof(frame));
		if (i < 10)
			writer_put(&once, T0 + i * 100, frame, sizeof(frame), sizeof(frame));
	}
	writer_close(&once);
	writer_close(&looped);
	file_scene_begin(&s, true, 4, POLLER_SOFTIRQ, &plain, 0);
	file_scene_port(&s, "pcap:,%s", out);
	file_scene_port(&s, "pcap:%s,loop=3", in);
	file_scene_finish(&s);
	file_scene_end(&s);
	files_equal(out, expected);
}

static void loops_without_end(void **state)
{
	const char *in = capture("endless.pcap", 100);
	struct file_scene s;
	struct port *port;

	(void)state;
	file_scene_begin(&s, true, 5, POLLER_SOFTIRQ, &plain, 0);
	port = file_scene_port(&s, "pcap:%s,loop=0", in);
	assert_false(port->features & PORT_FINITE);
	file_scene_run(&s, 10 * NSEC_PER_MSEC);
	assert_true(PORT_SUM(port, received) > 1000);
	assert_int_equal(port->state, PORT_UP);
	assert_int_equal(PORT_SUM(port, dropped[DROP_BRIDGE_NO_PORT]), PORT_SUM(port, received));
	file_scene_end(&s);
}

/* What does not fit into a frame, and what the capture cut. */
static void odd_sizes(void **state)
{
	const char *in = captures_path(&dir, "sizes.pcap"), *out = captures_path(&dir, "sizes.out");
	const char *expected = captures_path(&dir, "expected.pcap");
	struct capture_writer w, x;
	struct port *port;
	struct file_scene s;
	uint8_t frame[3000];
	uint32_t room;

	(void)state;
	file_scene_begin(&s, true, 6, POLLER_THREAD, &plain, 0);
	room = pool_room(engine_pool(s.engine));
	writer_open(&w, in, DLT_EN10MB, true);
	writer_open(&x, expected, DLT_EN10MB, true);
	for (uint32_t i = 0; i < 400; i++) {
		uint32_t len = i % 4 == 0 ? room + 1 + i : i % 4 == 1 ? room : 60;
		uint32_t wire = i % 4 == 2 ? 1514 : len;

		frame_fill(frame, len, 2, 1, i);
		writer_put(&w, T0 + i, frame, len, wire);
		if (i % 4)
			writer_put(&x, T0 + i, frame, len, len);
	}
	writer_close(&w);
	writer_close(&x);
	file_scene_port(&s, "pcap:,%s", out);
	port = file_scene_port(&s, "pcap:%s", in);
	file_scene_finish(&s);
	assert_int_equal(PORT_SUM(port, received), 400);
	assert_int_equal(PORT_SUM(port, dropped[DROP_TOO_LONG]), 100);
	assert_int_equal(PORT_SUM(port, transmitted), 300);
	assert_int_equal(file_scene_logged(&s, "100 of 400 packets were cut short"), 1);
	assert_int_equal(s.lines, 1);
	file_scene_end(&s);
	files_equal(out, expected);
}

static void broken_in_the_middle(void **state)
{
	const char *in = capture("broken.pcap", 200), *out = captures_path(&dir, "broken.out");
	struct file_scene s;
	struct port *port;
	uint8_t *a, *b;
	size_t a_size, b_size;

	(void)state;
	a = file_read(in, &a_size);
	assert_int_equal(truncate(in, (off_t)a_size - 10), 0);
	file_scene_begin(&s, true, 7, POLLER_SOFTIRQ, &plain, 0);
	file_scene_port(&s, "pcap:,%s", out);
	port = file_scene_port(&s, "pcap:%s,loop=2", in);
	file_scene_finish(&s);
	assert_int_equal(PORT_SUM(port, received), 199);
	assert_int_equal(file_scene_logged(&s, "after packet 199: truncated"), 1);
	file_scene_end(&s);
	b = file_read(out, &b_size);
	assert_int_equal(b_size, a_size - 16 - (60 + 199));
	assert_memory_equal(a, b, b_size);
	free(a);
	free(b);
}

/* Somebody else has all the frames: it waits for some, and loses nothing. */
static void waits_for_frames(enum poller poller)
{
	const char *in = capture("many.pcap", 2000), *out = captures_path(&dir, "many.out");
	struct packet *held[256];
	struct context *context;
	struct file_scene s;
	struct port *port;
	uint32_t n = 0;

	file_scene_begin(&s, true, 8, poller, &plain, 256);
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	while (n < 256 && packet_alloc(&context->cache, &held[n], 1))
		n++;
	file_scene_port(&s, "pcap:,%s", out);
	port = file_scene_port(&s, "pcap:%s", in);
	file_scene_run(&s, 50 * NSEC_PER_MSEC);
	assert_int_equal(PORT_SUM(port, received), 256 - n);
	packet_free(&context->cache, held, n);
	pool_cache_drain(&context->cache);
	file_scene_finish(&s);
	assert_int_equal(PORT_SUM(port, transmitted), 2000);
	engine_context_close(context);
	file_scene_end(&s);
	files_equal(in, out);
}

static void loses_nothing_for_want_of_frames(void **state)
{
	(void)state;
	over_pollers(waits_for_frames);
}

/* What is accounted as transmitted is in the file, the rest is dropped; one warning. */
static void full_disk(bool with_input)
{
	const char *in = capture("in.pcap", 1000), *out = captures_path(&dir, "full.out");
	const char *other = capture("other.pcap", 1);
	struct rlimit before, limit;
	struct port *from, *to;
	struct file_scene s;
	size_t size;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	file_scene_begin(&s, true, 9, POLLER_SOFTIRQ, &plain, 0);
	to = file_scene_port(&s, "pcap:%s,out=%s", with_input ? other : "", out);
	limit = (struct rlimit){.rlim_cur = 100000, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	from = file_scene_port(&s, "pcap:%s", in);
	file_scene_finish(&s);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(PORT_SUM(from, received), 1000);
	assert_true(PORT_SUM(from, transmitted) > 0);
	assert_true(PORT_SUM(from, dropped[DROP_TX_ERROR]) > 0);
	/* With nothing else to do it is down: not sent to, nor flooded to any more. */
	if (with_input) {
		assert_int_equal(to->state, PORT_ENDED);
		assert_int_equal(PORT_SUM(from, dropped[DROP_TX_ERROR]),
				 1000 - PORT_SUM(from, transmitted));
	} else {
		assert_int_equal(to->state, PORT_DOWN);
		assert_int_equal(PORT_SUM(from, dropped[DROP_TX_ERROR]), PACKET_VECTOR_MAX);
	}
	assert_int_equal(file_scene_logged(&s, "File too large"), 1);
	assert_int_equal(s.lines, 1);
	free(file_read(out, &size));
	assert_int_equal(size, 24 + counter_read(&to->queue[0].transmit->bytes) +
				       16 * counter_read(&to->queue[0].transmit->packets));
	file_scene_end(&s);
}

static void survives_a_full_disk(void **state)
{
	(void)state;
	full_disk(false);
	full_disk(true);
}

/* What did not come from a capture has the machine's time, which begins in 1970 here. */
static void stamps_of_its_own(void **state)
{
	const char *out = captures_path(&dir, "mem.out");
	struct context *context;
	struct file_scene s;
	struct port *mem;
	struct packet *p;
	uint8_t *bytes;
	size_t size;
	uint32_t stamp[2];

	(void)state;
	file_scene_begin(&s, true, 10, POLLER_THREAD, &plain, 0);
	file_scene_port(&s, "pcap:,%s", out);
	mem = file_scene_port(&s, "mem:m");
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	file_scene_run(&s, 5 * NSEC_PER_SEC);
	assert_int_equal(packet_alloc(&context->cache, &p, 1), 1);
	frame_fill(p->data, 60, 2, 1, 7);
	p->len = 60;
	assert_int_equal(mem_port_send(mem, &p, 1), 1);
	file_scene_run(&s, NSEC_PER_MSEC);
	bytes = file_read(out, &size);
	assert_int_equal(size, 24 + 16 + 60);
	memcpy(stamp, bytes + 24, sizeof(stamp));
	assert_int_equal(stamp[0], 5);
	assert_true(stamp[1] < NSEC_PER_MSEC);
	free(bytes);
	engine_context_close(context);
	file_scene_end(&s);
}

static void refuses(void **state)
{
	const char *in = capture("in.pcap", 1);
	const struct {
		const char *text, *says;
	} wrong[] = {
		{"pcap:", "no file"},
		{"pcap:,speed=max", "no file"},
		{"pcap:/no/such/file", "/no/such/file: No such file"},
		{"pcap:IN,speed=fast", "speed=fast: must be max, real, or a factor"},
		{"pcap:IN,speed=0", "speed=0"},
		{"pcap:IN,speed=-1", "speed=-1"},
		{"pcap:IN,speed=nan", "speed=nan"},
		{"pcap:IN,speed=2x", "speed=2x"},
		{"pcap:IN,speed=", "speed="},
		{"pcap:IN,loop=-1", "loop=-1: must be how often"},
		{"pcap:IN,loop=99999999999999999999", "loop=9999"},
		{"pcap:IN,loop=", "loop="},
		{"pcap:IN,x.pcap,y.pcap", "'x.pcap' and 'y.pcap'"},
		{"pcap:IN,x.pcap,out=y.pcap", "more than one file to write"},
		{"pcap:IN,out=IN", "it is the file that is replayed"},
		{"pcap:IN,color=red", "unknown option 'color=red'"},
		{"pcap:IN,queues=2", "one queue"},
		{"pcap:IN,ring=512", "no rings"},
		{"pcap:IN,/no/such/dir/out", "cannot write /no/such/dir/out: No such file"},
	};
	struct file_scene s;

	(void)state;
	file_scene_begin(&s, true, 1, POLLER_SOFTIRQ, &plain, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *text = wrong[i].text, *mark;
		char full[512] = "";
		struct port_config config;
		struct error err = {0};
		struct port *port;

		while ((mark = strstr(text, "IN"))) {
			snprintf(full + strlen(full), sizeof(full) - strlen(full), "%.*s%s",
				 (int)(mark - text), text, in);
			text = mark + 2;
		}
		snprintf(full + strlen(full), sizeof(full) - strlen(full), "%s", text);
		assert_int_equal(port_config_parse(full, &config, &err), 0);
		assert_true(engine_port_add(s.engine, &config, &port, &err) < 0);
		if (!strstr(err.text, wrong[i].says))
			fail_msg("%s: '%s' does not say '%s'", full, err.text, wrong[i].says);
	}
	file_scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replays_exactly),
		cmocka_unit_test(both_ways),
		cmocka_unit_test(keeps_time),
		cmocka_unit_test(loops),
		cmocka_unit_test(loops_without_end),
		cmocka_unit_test(odd_sizes),
		cmocka_unit_test(broken_in_the_middle),
		cmocka_unit_test(loses_nothing_for_want_of_frames),
		cmocka_unit_test(survives_a_full_disk),
		cmocka_unit_test(stamps_of_its_own),
		cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
