/* SPDX-License-Identifier: BSD-2-Clause */
/* Capture files read and written, without an engine. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <napier/machine.h>
#include <port/capture.h>

#include "captures.h"

#define T0 (INT64_C(1700000000) * NSEC_PER_SEC)

static struct captures dir;

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

static struct replay *opened(const char *path, uint64_t passes)
{
	struct error err = {0};
	struct replay *r;

	if (replay_open(path, passes, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static void next_is(struct replay *r, int64_t stamp, const void *bytes, uint32_t len,
		    uint32_t wire_len)
{
	struct replay_packet next;
	struct error err = {0};

	/* It stays until it is taken. */
	for (int i = 0; i < 2; i++) {
		if (replay_next(r, &next, &err) != 1)
			fail_msg("no packet: %s", err.text);
		assert_int_equal(next.stamp, stamp);
		assert_int_equal(next.len, len);
		assert_int_equal(next.wire_len, wire_len);
		assert_memory_equal(next.data, bytes, len);
	}
	replay_advance(r);
}

static void ended(struct replay *r)
{
	struct replay_packet next;

	for (int i = 0; i < 2; i++)
		assert_int_equal(replay_next(r, &next, NULL), 0);
	replay_close(r);
}

static void reads_both_precisions(void **state)
{
	const char *path = captures_path(&dir, "a.pcap");

	(void)state;
	for (int nano = 0; nano < 2; nano++) {
		struct capture_writer w;
		struct replay *r;

		writer_open(&w, path, DLT_EN10MB, nano);
		writer_put(&w, T0 + 1234567, "first", 5, 5);
		writer_put(&w, T0 + 5, "", 0, 0);
		writer_put(&w, T0 + NSEC_PER_SEC, "cut", 3, 1500);
		writer_close(&w);
		r = opened(path, 1);
		next_is(r, T0 + (nano ? 1234567 : 1234000), "first", 5, 5);
		next_is(r, T0 + (nano ? 5 : 0), "", 0, 0);
		next_is(r, T0 + NSEC_PER_SEC, "cut", 3, 1500);
		ended(r);
	}
}

/* The other byte order, and a time after January 2038. */
static void reads_swapped_pcap(void **state)
{
	static const uint8_t bytes[] = {
		0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0,	 4,
		0,    0,    0,	  0,	0, 1, /* header: big-endian, nanoseconds */
		0xf0, 0,    0,	  0,	0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 2, 'h', 'i'};
	const char *path = captures_path(&dir, "swapped.pcap");
	struct replay *r;

	(void)state;
	file_write(path, bytes, sizeof(bytes));
	r = opened(path, 1);
	next_is(r, INT64_C(0xf0000000) * NSEC_PER_SEC + 7, "hi", 2, 2);
	ended(r);
}

/* Little-endian words of a pcapng file. */
static const uint32_t section[] = {0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff, 28};
/* Ethernet, no limit; the second with if_tsresol 9: nanoseconds. */
static const uint32_t interface_micro[] = {1, 20, 1, 0, 20};
static const uint32_t interface_nano[] = {1, 32, 1, 0, 0x00010009, 9, 0, 32};

static size_t packet_words(uint32_t *out, uint32_t interface, uint64_t stamp, const char *text4)
{
	const uint32_t block[] = {6, 36, interface, (uint32_t)(stamp >> 32), (uint32_t)stamp, 4, 4};

	memcpy(out, block, sizeof(block));
	memcpy(out + 7, text4, 4);
	out[8] = 36;
	return 9;
}

static size_t put(uint32_t *out, const uint32_t *words, size_t size)
{
	memcpy(out, words, size);
	return size / 4;
}

static void reads_pcapng(void **state)
{
	const char *path = captures_path(&dir, "a.pcapng");
	uint32_t words[256];
	struct replay *r;
	size_t n = 0;

	(void)state;
	n += put(words + n, section, sizeof(section));
	n += put(words + n, interface_micro, sizeof(interface_micro));
	n += put(words + n, interface_nano, sizeof(interface_nano));
	n += packet_words(words + n, 0, (uint64_t)T0 / 1000 + 3, "abcd");
	n += packet_words(words + n, 1, (uint64_t)T0 + 42, "efgh");
	/* Another section, in which interface 0 is another one. */
	n += put(words + n, section, sizeof(section));
	n += put(words + n, interface_nano, sizeof(interface_nano));
	n += packet_words(words + n, 0, (uint64_t)T0 + 43, "ijkl");
	file_write(path, words, n * 4);
	r = opened(path, 1);
	next_is(r, T0 + 3000, "abcd", 4, 4);
	next_is(r, T0 + 42, "efgh", 4, 4);
	next_is(r, T0 + 43, "ijkl", 4, 4);
	ended(r);
}

static void loops_in_time(void **state)
{
	const char *path = captures_path(&dir, "loop.pcap");
	struct capture_writer w;
	struct replay *r;

	(void)state;
	writer_open(&w, path, DLT_EN10MB, true);
	writer_put(&w, T0, "a", 1, 1);
	writer_put(&w, T0 + 300, "b", 1, 1);
	writer_put(&w, T0 + 200, "c", 1, 1);
	writer_close(&w);
	r = opened(path, 3);
	/* The file may go: what was opened is replayed. */
	unlink(path);
	for (int64_t pass = 0; pass < 3; pass++) {
		next_is(r, T0 + pass * 450, "a", 1, 1);
		next_is(r, T0 + pass * 450 + 300, "b", 1, 1);
		next_is(r, T0 + pass * 450 + 200, "c", 1, 1);
	}
	ended(r);

	writer_open(&w, path, DLT_EN10MB, true);
	writer_put(&w, T0, "a", 1, 1);
	writer_close(&w);
	r = opened(path, 0);
	for (int pass = 0; pass < 1000; pass++)
		next_is(r, T0, "a", 1, 1);
	replay_close(r);

	/* Nothing in it: ends, even without an end. */
	writer_open(&w, path, DLT_EN10MB, true);
	writer_close(&w);
	ended(opened(path, 0));
}

static void odd_times(void **state)
{
	static const uint32_t stamps[][2] = {{0xffffffff, 0xffffffff}, {0x7fffffff, 0xfffffff0}};
	const char *path = captures_path(&dir, "odd.pcapng");
	struct replay_packet next;
	uint32_t words[256];
	struct replay *r;
	size_t n = 0;

	(void)state;
	n += put(words + n, section, sizeof(section));
	n += put(words + n, interface_micro, sizeof(interface_micro));
	for (size_t i = 0; i < 2; i++)
		n += packet_words(words + n, 0, (uint64_t)stamps[i][0] << 32 | stamps[i][1],
				  "abcd");
	file_write(path, words, n * 4);
	r = opened(path, 5);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(replay_next(r, &next, NULL), 1);
		assert_true(next.stamp >= 0);
		replay_advance(r);
	}
	ended(r);
}

static void breaks_off(void **state)
{
	const char *path = captures_path(&dir, "cut.pcap");
	struct capture_writer w;
	struct replay_packet next;

	(void)state;
	/* In the second packet's header, and in its bytes. */
	for (int size = 24 + 20 + 3; size < 24 + 20 + 20; size += 14) {
		struct error err = {0};
		struct replay *r;

		writer_open(&w, path, DLT_EN10MB, true);
		writer_put(&w, T0, "abcd", 4, 4);
		writer_put(&w, T0, "efgh", 4, 4);
		writer_close(&w);
		assert_int_equal(truncate(path, size), 0);
		r = opened(path, 2);
		next_is(r, T0, "abcd", 4, 4);
		assert_int_equal(replay_next(r, &next, &err), -EIO);
		assert_non_null(strstr(err.text, path));
		assert_non_null(strstr(err.text, "after packet 1"));
		ended(r);
	}
}

static void refused(const char *path, int code, const char *says)
{
	struct error err = {0};
	struct replay *r;

	assert_int_equal(replay_open(path, 1, &r, &err), code);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.text, path));
	if (!strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
}

static void refuses_to_read(void **state)
{
	const char *path = captures_path(&dir, "wrong");
	struct capture_writer w;

	(void)state;
	refused(captures_path(&dir, "absent"), -ENOENT, "No such file");
	refused(dir.directory, -EINVAL, "not a regular file");
	file_write(path, "", 0);
	refused(path, -EINVAL, "is empty");
	file_write(path, "#!/bin/sh\nexit 0\n# long enough for a header\n", 44);
	refused(path, -EINVAL, "not a capture");
	file_write(path, "\xd4\xc3\xb2\xa1\x02", 5);
	refused(path, -EINVAL, "not a capture");
	writer_open(&w, path, DLT_LINUX_SLL, true);
	writer_close(&w);
	refused(path, -EINVAL, "LINUX_SLL (113)");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(path, -EINVAL, "not a regular file");
	unlink(path);

	file_write(path, "secret", 6);
	chmod(path, 0);
	if (!geteuid())
		assert_int_equal(seteuid(65534), 0);
	refused(path, -EACCES, "ermission denied");
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
}

static struct packet packet_of(const char *text, int64_t stamp, bool stamped)
{
	return (struct packet){.data = (uint8_t *)text,
			       .len = (uint32_t)strlen(text),
			       .stamp = stamp,
			       .flags = stamped ? PACKET_STAMPED : 0};
}

static void writes_exactly(void **state)
{
	static const uint8_t expected[] = {
		0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0,	 0,   0,   0,	0,   0,	  0,  0,
		0xff, 0xff, 0,	  0,	1, 0, 0, 0, 3,	 0,   0,   0,	4,   0,	  0,  0,
		2,    0,    0,	  0,	2, 0, 0, 0, 'h', 'i', 101, 0,	0,   0,	  5,  0,
		0,    0,    5,	  0,	0, 0, 5, 0, 0,	 0,   'o', 't', 'h', 'e', 'r'};
	const char *path = captures_path(&dir, "out.pcap");
	struct packet a = packet_of("hi", 3 * NSEC_PER_SEC + 4, true);
	struct packet b = packet_of("other", 1 * NSEC_PER_SEC + 2, false);
	struct packet *v[] = {&a, &b};
	struct recording *r;
	uint8_t *bytes;
	size_t size;

	(void)state;
	file_write(path, "what was there before and is longer than what will be there then......",
		   70);
	assert_int_equal(recording_open(path, -1, 100, &r, NULL), 0);
	/* A reader sees what was written up to now. */
	free(file_read(path, &size));
	assert_int_equal(size, 24);
	assert_int_equal(recording_write(r, v, 2, 100 * NSEC_PER_SEC + 3), 0);
	bytes = file_read(path, &size);
	assert_int_equal(size, sizeof(expected));
	assert_memory_equal(bytes, expected, size);
	free(bytes);
	recording_close(r);
}

static void write_refused(const char *path, int not_this, int code, const char *says)
{
	struct error err = {0};
	struct recording *r;

	assert_int_equal(recording_open(path, not_this, 100, &r, &err), code);
	assert_non_null(strstr(err.text, path));
	if (!strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
}

static void refuses_to_write(void **state)
{
	const char *path = captures_path(&dir, "out.pcap");
	struct recording *r;
	size_t size;
	int fd;

	(void)state;
	write_refused(captures_path(&dir, "no/such"), -1, -ENOENT, "No such file");
	write_refused(dir.directory, -1, -EISDIR, "directory");
	write_refused("/dev/full", -1, -ENOSPC, "No space");
	/* The file that is being replayed, by another name. */
	file_write(path, "precious", 8);
	assert_int_equal(link(path, captures_path(&dir, "same")), 0);
	fd = open(path, O_RDONLY);
	write_refused(captures_path(&dir, "same"), fd, -EINVAL, "is replayed");
	close(fd);
	free(file_read(path, &size));
	assert_int_equal(size, 8);

	assert_int_equal(recording_open(path, -1, 100, &r, NULL), 0);
	write_refused(path, -1, -EBUSY, "another port");
	recording_close(r);
	assert_int_equal(recording_open(path, -1, 100, &r, NULL), 0);
	recording_close(r);
}

/* The file ends with the last vector that fitted, whole. */
static void survives_a_full_disk(void **state)
{
	const char *path = captures_path(&dir, "full.pcap");
	struct rlimit before, limit;
	struct packet p = packet_of("0123456789abcdef", T0, true);
	struct packet *v[] = {&p, &p, &p};
	struct replay *replay;
	struct recording *r;
	size_t size;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(recording_open(path, -1, 3 * 32, &r, NULL), 0);
	limit = (struct rlimit){.rlim_cur = 24 + 5 * 32, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(recording_write(r, v, 3, 0), 0);
	assert_int_equal(recording_write(r, v, 3, 0), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	/* Nor does it go on when there is room again, or at the end. */
	assert_int_equal(recording_write(r, v, 1, 0), -EIO);
	recording_close(r);
	free(file_read(path, &size));
	assert_int_equal(size, 24 + 3 * 32);
	replay = opened(path, 1);
	for (int i = 0; i < 3; i++)
		next_is(replay, T0, "0123456789abcdef", 16, 16);
	ended(replay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_both_precisions),
		cmocka_unit_test(reads_swapped_pcap),
		cmocka_unit_test(reads_pcapng),
		cmocka_unit_test(loops_in_time),
		cmocka_unit_test(odd_times),
		cmocka_unit_test(breaks_off),
		cmocka_unit_test(refuses_to_read),
		cmocka_unit_test(writes_exactly),
		cmocka_unit_test(refuses_to_write),
		cmocka_unit_test(survives_a_full_disk),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
