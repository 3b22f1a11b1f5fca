/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading capture files, by libpcap. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <napier/machine.h>

#include <port/capture.h>

/* A read from the file for some hundred packets, not for each few of them. */
#define READ_BUFFER (256 * 1024)

struct replay {
	int fd; /* stays open over all passes: the same file, whatever happens to its name */
	pcap_t *file;
	char *buffer;
	bool endless;
	uint64_t passes;       /* this one included */
	uint64_t packets;      /* of this pass, before the next one */
	int64_t first, latest; /* times of this pass, as in the file */
	int64_t shift;	       /* from the file's time to what is given out */
	bool ended, have;
	struct replay_packet next;
	char path[PATH_MAX];
};

/* Times in a file may be anything; these stay within int64_t. */
static int64_t later(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t stamp_of(const struct pcap_pkthdr *header)
{
	/* libpcap takes the file's 32 bits for signed; they end in 2106, not in 2038. */
	int64_t seconds = header->ts.tv_sec < 0 ? (uint32_t)header->ts.tv_sec : header->ts.tv_sec;
	/* The file was opened for nanoseconds: tv_usec holds those. */
	int64_t ns = header->ts.tv_usec < 0 ? 0 : header->ts.tv_usec;

	return seconds >= INT64_MAX / NSEC_PER_SEC ? INT64_MAX : later(seconds * NSEC_PER_SEC, ns);
}

/* From the start of the file on. */
static int pass_open(struct replay *r, struct error *err)
{
	char text[PCAP_ERRBUF_SIZE];
	int fd = dup(r->fd);
	FILE *stream;

	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || !(stream = fdopen(fd, "r"))) {
		int rc = -errno;

		if (fd >= 0)
			close(fd);
		return error_set(err, rc, "%s: %s", r->path, strerror(-rc));
	}
	setvbuf(stream, r->buffer, _IOFBF, READ_BUFFER);
	r->file =
		pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, text);
	if (!r->file) {
		fclose(stream);
		return error_set(err, -EINVAL,
				 "%s: not a capture that can be read (pcap or pcapng): %s", r->path,
				 text);
	}
	if (pcap_datalink(r->file) != DLT_EN10MB) {
		int type = pcap_datalink(r->file);
		const char *name = pcap_datalink_val_to_name(type);

		return error_set(err, -EINVAL,
				 "%s: captured on link type %s (%d); only Ethernet (EN10MB) can be "
				 "replayed",
				 r->path, name ? name : "unknown", type);
	}
	r->packets = 0;
	return 0;
}

static void pass_close(struct replay *r)
{
	if (r->file)
		pcap_close(r->file);
	r->file = NULL;
}

static int file_open(struct replay *r, struct error *err)
{
	struct stat st;

	/* Not to wait for a pipe's other end, which would be found out about below. */
	r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0 || fstat(r->fd, &st)) {
		int rc = -errno;

		return error_set(err, rc, "cannot read %s: %s", r->path, strerror(-rc));
	}
	if (!S_ISREG(st.st_mode))
		return error_set(
			err, -EINVAL,
			"%s: not a regular file, which a replay has to be: reading it could "
			"block",
			r->path);
	if (!st.st_size)
		return error_set(err, -EINVAL,
				 "%s: the file is empty, not even a capture without "
				 "packets",
				 r->path);
	return pass_open(r, err);
}

int replay_open(const char *path, uint64_t passes, struct replay **out, struct error *err)
{
	struct replay *r = calloc(1, sizeof(*r));
	int rc;

	if (!r || !(r->buffer = malloc(READ_BUFFER))) {
		free(r);
		return error_set(err, -ENOMEM, "%s: no memory to read it", path);
	}
	r->fd = -1;
	r->endless = !passes;
	r->passes = passes;
	snprintf(r->path, sizeof(r->path), "%s", path);
	rc = file_open(r, err);
	if (rc) {
		replay_close(r);
		return rc;
	}
	*out = r;
	return 0;
}

void replay_close(struct replay *r)
{
	pass_close(r);
	if (r->fd >= 0)
		close(r->fd);
	free(r->buffer);
	free(r);
}

int replay_fd(const struct replay *r)
{
	return r->fd;
}

/* At the end of a pass: on to the next one, if there is to be one. */
static int pass_next(struct replay *r, struct error *err)
{
	int64_t span = r->latest - r->first;

	if (!r->packets || (!r->endless && --r->passes == 0)) {
		r->ended = true;
		return 0;
	}
	r->shift = later(r->shift, span);
	if (r->packets > 1)
		r->shift = later(r->shift, span / (int64_t)(r->packets - 1));
	pass_close(r);
	if (pass_open(r, err)) {
		r->ended = true;
		return -EIO;
	}
	return 1;
}

static void next_set(struct replay *r, const struct pcap_pkthdr *header, const uint8_t *data)
{
	int64_t stamp = stamp_of(header);

	if (!r->packets)
		r->first = r->latest = stamp;
	if (stamp > r->latest)
		r->latest = stamp;
	r->have = true;
	r->next = (struct replay_packet){
		.data = data,
		.len = header->caplen,
		.wire_len = header->len,
		.stamp = later(stamp, r->shift),
	};
}

int replay_next(struct replay *r, struct replay_packet *out, struct error *err)
{
	struct pcap_pkthdr *header;
	const u_char *data;

	while (!r->have && !r->ended) {
		int rc = pcap_next_ex(r->file, &header, &data);

		if (rc == PCAP_ERROR_BREAK) {
			if (pass_next(r, err) < 0)
				return -EIO;
			continue;
		}
		if (rc != 1) {
			r->ended = true;
			return error_set(err, -EIO, "%s: cannot be read after packet %llu: %s",
					 r->path, (unsigned long long)r->packets,
					 pcap_geterr(r->file));
		}
		next_set(r, header, data);
	}
	if (!r->have)
		return 0;
	*out = r->next;
	return 1;
}

void replay_advance(struct replay *r)
{
	r->have = false;
	r->packets++;
}
