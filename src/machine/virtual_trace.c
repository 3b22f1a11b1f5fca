/* SPDX-License-Identifier: BSD-2-Clause */
/* Every event, as a hash and on wish as a line of text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "machine/virtual.h"

/* Names are hashed once a runner, so that an event costs a few multiplications. */
uint64_t virtual_trace_name(const char *name)
{
	uint64_t hash = 0;

	for (; *name; name++)
		hash = random_mix(hash + (unsigned char)*name);
	return hash;
}

static void text_irq(char *text, size_t size, int64_t cost, int64_t number)
{
	snprintf(text, size, "#%" PRId64 " +%.3fus", number, (double)cost / 1e3);
}

static void text_step(char *text, size_t size, int64_t cost, int64_t verdict)
{
	static const char *const names[] = {
		[STEP_AGAIN] = "again",
		[STEP_YIELD] = "yield",
		[STEP_WAIT] = "wait",
		[STEP_EXIT] = "exit",
	};

	snprintf(text, size, "%s +%.3fus", names[verdict], (double)cost / 1e3);
}

static void text_place(char *text, size_t size, int64_t class, int64_t level)
{
	snprintf(text, size, "%s %" PRId64, class == RUNNER_FIFO ? "fifo" : "nice", level);
}

static void text_wake(char *text, size_t size, int64_t waiting, int64_t unused)
{
	(void)unused;
	snprintf(text, size, "%s", waiting ? "" : "awake");
}

static void text_raise(char *text, size_t size, int64_t number, int64_t masked)
{
	snprintf(text, size, "#%" PRId64 "%s", number, masked ? " masked" : "");
}

static void text_wait(char *text, size_t size, int64_t deadline, int64_t unused)
{
	(void)unused;
	if (deadline != TIME_NEVER)
		snprintf(text, size, "until %.3fus", (double)deadline / 1e3);
}

static void text_preempt(char *text, size_t size, int64_t left, int64_t unused)
{
	(void)unused;
	snprintf(text, size, "%.3fus left", (double)left / 1e3);
}

static void text_move(char *text, size_t size, int64_t from, int64_t unused)
{
	(void)unused;
	snprintf(text, size, "from cpu%" PRId64, from);
}

static void text_fault(char *text, size_t size, int64_t fault, int64_t unused)
{
	(void)unused;
	snprintf(text, size, "%s", machine_virtual_fault_name((enum virtual_fault)fault));
}

static const struct {
	const char *name;
	void (*text)(char *text, size_t size, int64_t a, int64_t b); /* NULL: no arguments */
} kinds[TRACE_KINDS] = {
	[TRACE_START] = {"start", NULL},       [TRACE_STOP] = {"stop", NULL},
	[TRACE_PLACE] = {"place", text_place}, [TRACE_WAKE] = {"wake", text_wake},
	[TRACE_TIMEOUT] = {"timeout", NULL},   [TRACE_RAISE] = {"raise", text_raise},
	[TRACE_IRQ] = {"irq", text_irq},       [TRACE_STEP] = {"step", text_step},
	[TRACE_WAIT] = {"wait", text_wait},    [TRACE_END] = {"exit", NULL},
	[TRACE_SWITCH] = {"switch", NULL},     [TRACE_PREEMPT] = {"preempt", text_preempt},
	[TRACE_MOVE] = {"move", text_move},    [TRACE_IDLE] = {"idle", NULL},
	[TRACE_TICK] = {"tick", NULL},	       [TRACE_CALL] = {"call", NULL},
	[TRACE_FAULT] = {"fault", text_fault},
};

/* "     12.345us cpu0 step     napi/a-0         again +1.200us" */
static void line_write(struct virtual *v, enum virtual_trace_kind kind, const struct virtual_cpu *c,
		       const struct virtual_runner *r, int64_t a, int64_t b)
{
	char cpu[16] = "-", text[64] = "", line[160];
	size_t used;

	if (c)
		snprintf(cpu, sizeof(cpu), "cpu%u", c->index);
	if (kinds[kind].text)
		kinds[kind].text(text, sizeof(text), a, b);
	snprintf(line, sizeof(line), "%9" PRId64 ".%03dus %-4s %-8s %-*s %s", v->now / 1000,
		 (int)(v->now % 1000), cpu, kinds[kind].name, RUNNER_NAME_MAX,
		 r ? r->base.name : "", text);
	for (used = strlen(line); used && line[used - 1] == ' '; used--)
		line[used - 1] = '\0';
	v->config.trace(v->config.trace_arg, line);
}

void virtual_trace(struct virtual *v, enum virtual_trace_kind kind, const struct virtual_cpu *c,
		   const struct virtual_runner *r, int64_t a, int64_t b)
{
	uint64_t hash = v->stats.trace_hash;

	hash = random_mix(hash ^ (uint64_t)v->now);
	hash += (uint64_t)kind | (uint64_t)(c ? c->index + 1 : 0) << 8;
	hash = random_mix(hash ^ (r ? r->name_hash : 0));
	hash = random_mix(hash + (uint64_t)a * 31 + (uint64_t)b);
	v->stats.trace_hash = hash;
	v->stats.events++;
	if (v->config.trace)
		line_write(v, kind, c, r, a, b);
}
