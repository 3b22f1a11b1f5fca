/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <napier/machine.h>

#include <core/counters.h>

static const char *const drop_names[] = {
#define X(constant, name, text) [DROP_##constant] = name,
	DROP_REASONS(X)
#undef X
};

static const char *const drop_texts[] = {
#define X(constant, name, text) [DROP_##constant] = text,
	DROP_REASONS(X)
#undef X
};

_Static_assert(DROP_MAX <= DROP_COUNTERS, "every drop reason has a counter");

const char *drop_name(enum drop_reason reason)
{
	return (unsigned)reason < DROP_MAX ? drop_names[reason] : "unknown";
}

const char *drop_text(enum drop_reason reason)
{
	return (unsigned)reason < DROP_MAX ? drop_texts[reason] : "unknown";
}

const char *kernel_poll_name(enum kernel_poll poll)
{
	static const char *const names[] = {
		[KERNEL_POLL_NONE] = "none",
		[KERNEL_POLL_PREFERRED] = "preferred",
		[KERNEL_POLL_REFUSED] = "refused",
	};

	return (unsigned)poll <= KERNEL_POLL_REFUSED ? names[poll] : "unknown";
}

int64_t wake_percentile(const uint64_t buckets[WAKE_BUCKETS], unsigned percent)
{
	uint64_t all = 0, up_to = 0;

	for (int i = 0; i < WAKE_BUCKETS; i++)
		all += buckets[i];
	for (int i = 0; all && i < WAKE_BUCKETS - 1; i++) {
		up_to += buckets[i];
		if (up_to * 100 >= all * percent)
			return INT64_C(256) << i;
	}
	return all ? INT64_MAX : 0;
}

static void *file_map(const char *path, size_t size, struct error *err)
{
	void *map;
	int fd, rc;

	if (!path)
		return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* A reader of an older engine's file keeps that one. */
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0) {
		error_set(err, -errno, "%s: cannot be created: %s", path, strerror(errno));
		return MAP_FAILED;
	}
	/* With its space, since later a full file system would be a SIGBUS. */
	rc = posix_fallocate(fd, 0, (off_t)size);
	if (rc) {
		error_set(err, -rc, "%s: %s", path, strerror(rc));
		close(fd);
		unlink(path);
		return MAP_FAILED;
	}
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	return map;
}

int counters_create(const char *path, uint32_t cpus, uint32_t queues, struct counters_file **out,
		    struct error *err)
{
	size_t cpu_offset = sizeof(struct counters_file);
	size_t queue_offset = cpu_offset + cpus * sizeof(struct cpu_record);
	size_t size = queue_offset + queues * sizeof(struct queue_record);
	struct counters_file *file;
	struct timespec started;

	if (err)
		err->code = 0;
	file = file_map(path, size, err);
	if (file == MAP_FAILED) {
		if (err && err->code)
			return err->code;
		return error_set(err, -ENOMEM, "no memory for the counters of %u queues", queues);
	}
	file->version = COUNTERS_VERSION;
	file->size = (uint32_t)size;
	file->pid = getpid();
	/* The calendar's time, for people; no machine's. */
	clock_gettime(CLOCK_REALTIME, &started);
	file->started = started.tv_sec * NSEC_PER_SEC + started.tv_nsec;
	file->cpus = cpus;
	file->queues = queues;
	file->cpu_offset = (uint32_t)cpu_offset;
	file->queue_offset = (uint32_t)queue_offset;
	file->cpu_size = sizeof(struct cpu_record);
	file->queue_size = sizeof(struct queue_record);
	*out = file;
	return 0;
}

void counters_publish(struct counters_file *file)
{
	/* Readers check it last-written: the rest of the header is there when it is. */
	__atomic_store_n(&file->magic, COUNTERS_MAGIC, __ATOMIC_RELEASE);
}

void counters_destroy(struct counters_file *file, const char *path)
{
	if (path)
		unlink(path);
	munmap(file, file->size);
}

struct cpu_record *counters_cpu(struct counters_file *file, uint32_t i)
{
	return (struct cpu_record *)((char *)file + file->cpu_offset) + i;
}

struct queue_record *counters_queue(struct counters_file *file, uint32_t i)
{
	return (struct queue_record *)((char *)file + file->queue_offset) + i;
}
