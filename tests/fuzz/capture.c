/* SPDX-License-Identifier: BSD-2-Clause */
/* Any file as a capture to replay; what can be read of it is written, and read again. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <napier/machine.h>
#include <port/capture.h>

#include "fuzz.h"

#define PASSES 3
#define PACKETS_MAX 1000
#define LEN_MAX 2048

struct file {
	int fd;
	char path[32];
};

static void file_make(struct file *file)
{
	file->fd = memfd_create("capture", MFD_CLOEXEC);
	ALWAYS(file->fd >= 0);
	snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
}

static void packet_write(struct recording *recording, const struct replay_packet *next)
{
	struct packet p = {
		.data = (uint8_t *)next->data,
		.len = next->len < LEN_MAX ? next->len : LEN_MAX,
		.stamp = next->stamp,
		.flags = PACKET_STAMPED,
	};
	struct packet *v = &p;

	ALWAYS(!recording_write(recording, &v, 1, 0));
}

/* The file's time has 32 bits for the seconds. */
static bool stamp_kept(int64_t stamp, int64_t again)
{
	return again ==
	       (int64_t)(uint32_t)(stamp / NSEC_PER_SEC) * NSEC_PER_SEC + stamp % NSEC_PER_SEC;
}

static void compare(const char *path, const char *copy)
{
	struct replay_packet a, b;
	struct replay *r, *again;
	uint32_t packets = 0;

	ALWAYS(!replay_open(path, PASSES, &r, NULL));
	ALWAYS(!replay_open(copy, 1, &again, NULL));
	while (packets++ < PACKETS_MAX && replay_next(r, &a, NULL) == 1) {
		ALWAYS(replay_next(again, &b, NULL) == 1);
		ALWAYS(b.len == (a.len < LEN_MAX ? a.len : LEN_MAX));
		ALWAYS(!memcmp(a.data, b.data, b.len));
		ALWAYS(stamp_kept(a.stamp, b.stamp));
		replay_advance(r);
		replay_advance(again);
	}
	ALWAYS(replay_next(again, &b, NULL) == 0);
	replay_close(r);
	replay_close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct file in = {.fd = -1}, out;
	struct recording *recording;
	struct replay_packet next;
	uint32_t packets = 0;
	struct replay *r;
	struct error err;

	if (in.fd < 0) {
		file_make(&in);
		file_make(&out);
	}
	ALWAYS(!ftruncate(in.fd, 0));
	ALWAYS(pwrite(in.fd, data, size, 0) == (ssize_t)size);
	if (replay_open(in.path, PASSES, &r, &err))
		return 0;
	ALWAYS(!recording_open(out.path, replay_fd(r), LEN_MAX + CAPTURE_OVERHEAD, &recording,
			       NULL));
	while (packets++ < PACKETS_MAX && replay_next(r, &next, &err) == 1) {
		ALWAYS(next.stamp >= 0);
		packet_write(recording, &next);
		replay_advance(r);
	}
	recording_close(recording);
	replay_close(r);
	compare(in.path, out.path);
	return 0;
}
