/* SPDX-License-Identifier: BSD-2-Clause */
/* Capture files for tests: a directory of their own, written by libpcap or byte by byte. */
#ifndef CAPTURES_H
#define CAPTURES_H

#include "test.h"

#include <dirent.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <unistd.h>

struct captures {
	char directory[64];
};

static inline void captures_begin(struct captures *c)
{
	snprintf(c->directory, sizeof(c->directory), "/tmp/napier-captures-XXXXXX");
	assert_non_null(mkdtemp(c->directory));
}

static inline void captures_end(struct captures *c)
{
	DIR *directory = opendir(c->directory);
	struct dirent *entry;
	char path[512];

	while (directory && (entry = readdir(directory))) {
		snprintf(path, sizeof(path), "%s/%s", c->directory, entry->d_name);
		unlink(path);
	}
	closedir(directory);
	assert_int_equal(rmdir(c->directory), 0);
}

/* The path of a file there, in one of a few buffers that are used in turn. */
static inline const char *captures_path(const struct captures *c, const char *name)
{
	static char path[8][128];
	static unsigned next;
	char *p = path[next++ % 8];

	snprintf(p, sizeof(path[0]), "%s/%s", c->directory, name);
	return p;
}

static inline void file_write(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* To be freed. */
static inline uint8_t *file_read(const char *path, size_t *size)
{
	FILE *file = fopen(path, "r");
	uint8_t *bytes;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*size = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*size + 1);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	fclose(file);
	return bytes;
}

static inline void files_equal(const char *a, const char *b)
{
	size_t a_size, b_size;
	uint8_t *a_bytes = file_read(a, &a_size), *b_bytes = file_read(b, &b_size);

	assert_int_equal(a_size, b_size);
	assert_memory_equal(a_bytes, b_bytes, a_size);
	free(a_bytes);
	free(b_bytes);
}

struct capture_writer {
	pcap_t *kind;
	pcap_dumper_t *dumper;
	bool nano;
};

static inline void writer_open(struct capture_writer *w, const char *path, int link_type, bool nano)
{
	w->nano = nano;
	w->kind = pcap_open_dead_with_tstamp_precision(
		link_type, 65535, nano ? PCAP_TSTAMP_PRECISION_NANO : PCAP_TSTAMP_PRECISION_MICRO);
	w->dumper = pcap_dump_open(w->kind, path);
	assert_non_null(w->dumper);
}

static inline void writer_put(struct capture_writer *w, int64_t stamp, const void *bytes,
			      uint32_t len, uint32_t wire_len)
{
	struct pcap_pkthdr header = {.caplen = len, .len = wire_len};

	header.ts.tv_sec = stamp / 1000000000;
	header.ts.tv_usec = stamp % 1000000000 / (w->nano ? 1 : 1000);
	pcap_dump((u_char *)w->dumper, &header, bytes);
}

static inline void writer_close(struct capture_writer *w)
{
	pcap_dump_close(w->dumper);
	pcap_close(w->kind);
}

#endif
