/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capture files: one being replayed, one being written. No engine is needed for either.
 *
 * Read: pcap and pcapng, with times in microseconds or nanoseconds, of Ethernet. Written: pcap
 * with times in nanoseconds.
 */
#ifndef PORT_CAPTURE_H
#define PORT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include <napier/packet.h>

struct replay;

struct replay_packet {
	const uint8_t *data; /* good until the next call */
	uint32_t len;	     /* bytes that the capture kept */
	uint32_t wire_len;   /* bytes that it had; more, if it was cut */
	int64_t stamp;	     /* ns since 1970 */
};

/*
 * passes: how often the file is read, from 1; 0: without end. The times of a pass go on where those
 * of the one before ended, one mean gap later. -EINVAL and what open() says, with the file and the
 * reason in err.
 */
int replay_open(const char *path, uint64_t passes, struct replay **out, struct error *err);
void replay_close(struct replay *r);
/*
 * The next packet, which stays the next one until replay_advance. 1: there is one, 0: all has been
 * read, -EIO: the file breaks off or goes wrong here (then nothing more can be read), with the
 * reason in err.
 */
int replay_next(struct replay *r, struct replay_packet *out, struct error *err);
void replay_advance(struct replay *r);
/* The open file, to compare with others. */
int replay_fd(const struct replay *r);

struct recording;

/*
 * An existing file is overwritten, if nobody else is writing it and it is not the open file
 * not_this (-1: any file will do). vector_bytes: the most that one recording_write is given, with
 * CAPTURE_OVERHEAD a packet.
 */
int recording_open(const char *path, int not_this, size_t vector_bytes, struct recording **out,
		   struct error *err);
#define CAPTURE_OVERHEAD 16
/*
 * Writes whole packets: all of them, or none. A packet's stamp is written as it is with
 * PACKET_STAMPED; of another's, `epoch` ns later. A negative errno when it cannot be written; the
 * file then ends with what was written before, and takes no more.
 */
int recording_write(struct recording *r, struct packet *const *v, uint32_t n, int64_t epoch);
void recording_close(struct recording *r);

#endif
