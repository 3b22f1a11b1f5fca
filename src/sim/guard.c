/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands before the allocator of whatever is linked with the scenarios (--wrap, see meson.build):
 * sees an allocation in a runner's step (I7), and makes one fail when asked to.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <sim/sim.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

/* Of the thread that runs a scenario; other threads of a program are none of its business. */
static _Thread_local struct {
	bool armed;
	uint32_t inside; /* the scenario's own allocations */
	uint32_t fail;	 /* the so-many-th fails */
	uint32_t failed;
	char caught[RUNNER_NAME_MAX];
} guard;

void sim_guard_begin(bool begin)
{
	memset(&guard, 0, sizeof(guard));
	guard.armed = begin;
}

void sim_guard_enter(void)
{
	guard.inside++;
}

void sim_guard_leave(void)
{
	guard.inside--;
}

const char *sim_guard_caught(void)
{
	return guard.caught[0] ? guard.caught : NULL;
}

uint32_t sim_guard_fail(uint32_t n)
{
	uint32_t failed = guard.failed;

	guard.fail = n;
	guard.failed = 0;
	return failed;
}

/* True: this one is to fail. */
static bool allocating(void)
{
	const struct runner *runner;

	if (!guard.armed || guard.inside)
		return false;
	runner = runner_current();
	/* napier/tick, napier/auto: control's work, not packets'. */
	if (runner && !guard.caught[0] && strncmp(runner->name, "napier/", 7))
		memcpy(guard.caught, runner->name, sizeof(guard.caught));
	if (!guard.fail || --guard.fail)
		return false;
	guard.failed++;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return allocating() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return allocating() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return allocating() ? NULL : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return allocating() ? NULL : __real_aligned_alloc(alignment, size);
}
