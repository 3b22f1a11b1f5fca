/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing capture files, by libpcap, whole vectors at a time. */
#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <napier/machine.h>

#include <port/capture.h>

#define SNAPLEN 65535 /* more than any frame of the pool */
#define FILE_HEADER 24

struct recording {
	pcap_t *kind; /* what libpcap knows the file's format by */
	pcap_dumper_t *dumper;
	char *buffer; /* holds any vector: nothing of it reaches the file before it is complete */
	int fd;	      /* the dumper's */
	off_t size;   /* of the file, all whole packets */
	bool failed;
};

/* What stdio says of a failed write, which must not be taken for success. */
static int write_error(void)
{
	return errno ? -errno : -EIO;
}

static bool same_file(int a, const struct stat *b)
{
	struct stat st;

	return a >= 0 && !fstat(a, &st) && st.st_dev == b->st_dev && st.st_ino == b->st_ino;
}

/* An open file that may be overwritten, emptied. */
static int file_open(const char *path, int not_this, struct error *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st))
		rc = error_set(err, -errno, "cannot write %s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		rc = error_set(
			err, -EINVAL,
			"cannot write %s: it is not a regular file, and writing it could block",
			path);
	else if (same_file(not_this, &st))
		rc = error_set(err, -EINVAL, "cannot write %s: it is the file that is replayed",
			       path);
	else if (S_ISREG(st.st_mode) && flock(fd, LOCK_EX | LOCK_NB))
		rc = error_set(err, -EBUSY, "cannot write %s: another port is writing it", path);
	else if (S_ISREG(st.st_mode) && ftruncate(fd, 0))
		rc = error_set(err, -errno, "cannot write %s: %s", path, strerror(errno));
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* The dumper gets the descriptor, and its buffer before anything is in it. */
static int dumper_open(struct recording *r, const char *path, size_t buffer, struct error *err)
{
	FILE *stream = fdopen(r->fd, "w");

	if (!stream) {
		close(r->fd);
		return error_set(err, -ENOMEM, "cannot write %s: no memory", path);
	}
	setvbuf(stream, r->buffer, _IOFBF, buffer);
	r->dumper = pcap_dump_fopen(r->kind, stream);
	if (!r->dumper) /* libpcap has closed the stream */
		return error_set(err, write_error(), "cannot write %s: %s", path,
				 pcap_geterr(r->kind));
	if (pcap_dump_flush(r->dumper)) {
		int rc = write_error();

		return error_set(err, rc, "cannot write %s: %s", path, strerror(-rc));
	}
	r->size = FILE_HEADER;
	return 0;
}

int recording_open(const char *path, int not_this, size_t vector_bytes, struct recording **out,
		   struct error *err)
{
	size_t buffer = vector_bytes + FILE_HEADER;
	struct recording *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return error_set(err, -ENOMEM, "cannot write %s: no memory", path);
	r->fd = file_open(path, not_this, err);
	if (r->fd < 0) {
		rc = r->fd;
		free(r);
		return rc;
	}
	r->buffer = malloc(buffer);
	r->kind = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, SNAPLEN,
						       PCAP_TSTAMP_PRECISION_NANO);
	if (r->buffer && r->kind) {
		rc = dumper_open(r, path, buffer, err);
	} else {
		rc = error_set(err, -ENOMEM, "cannot write %s: no memory", path);
		close(r->fd);
	}
	if (rc) {
		recording_close(r);
		return rc;
	}
	*out = r;
	return 0;
}

void recording_close(struct recording *r)
{
	if (r->dumper)
		pcap_dump_close(r->dumper);
	if (r->kind)
		pcap_close(r->kind);
	free(r->buffer);
	free(r);
}

int recording_write(struct recording *r, struct packet *const *v, uint32_t n, int64_t epoch)
{
	off_t size = r->size;
	int rc;

	if (r->failed)
		return -EIO;
	for (uint32_t i = 0; i < n; i++) {
		const struct packet *p = v[i];
		int64_t stamp = p->flags & PACKET_STAMPED ? p->stamp : p->stamp + epoch;
		struct pcap_pkthdr header = {
			.ts = {.tv_sec = stamp / NSEC_PER_SEC, .tv_usec = stamp % NSEC_PER_SEC},
			.caplen = p->len,
			.len = p->len,
		};

		pcap_dump((u_char *)r->dumper, &header, p->data);
		size += CAPTURE_OVERHEAD + p->len;
	}
	if (!pcap_dump_flush(r->dumper)) {
		r->size = size;
		return 0;
	}
	rc = write_error();
	r->failed = true;
	/* Part of the vector may have got there; what stays in the buffer must not follow. */
	__fpurge(pcap_dump_file(r->dumper));
	(void)!ftruncate(r->fd, r->size);
	return rc;
}
