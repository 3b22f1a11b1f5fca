/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Canaries: bugs that are known, each planted where somebody could write it by mistake, to see that
 * the random scenarios catch it. Only a build with -Dcanaries=true has them; in any other CANARY()
 * is the constant false, and no code or data is left of it.
 */
#ifndef CORE_CANARY_H
#define CORE_CANARY_H

#include <stdbool.h>

#ifdef NAPIER_CANARIES

#define CANARIES(X)                                                                                \
	X(LOST_WAKEUP, "lost-wakeup", "ksoftirqd is not woken for what is left to it")             \
	X(TWO_POLLERS, "two-pollers", "a NAPI is dispatched that somebody has already")            \
	X(MISSED_FLUSH, "missed-flush", "no kick is sent after a poll that was not full")          \
	X(KICK_LEFT, "kick-left-behind", "of several backlogs to be scheduled one is forgotten")   \
	X(OFF_BY_ONE, "off-by-one", "the window of the policy looped is a tick longer")            \
	X(BUDGET_OFF_BY_ONE, "budget-off-by-one", "a round goes on with its budget just used up")  \
	X(DOUBLE_FREE, "double-free", "the last packet of a vector is dropped twice")              \
	X(REORDER, "reorder-in-switch", "the transmit queue follows from who polls")               \
	X(OVERRUN, "budget-overrun", "a softirq round knows no budget while others wait")          \
	X(UNFAIR, "unfair-busy-loop", "busy-poll stays with a NAPI while that has packets")        \
	X(TIMER_FORGOTTEN, "timer-forgotten", "an interrupt is deferred, and no timer armed")      \
	X(HELD_LOST, "held-packet-lost", "what GRO holds is forgotten when a NAPI is disabled")    \
	X(LEAK, "leak-in-disable", "a frame is forgotten when a NAPI is disabled")

enum canary {
	CANARY_NONE,
#define X(constant, name, text) CANARY_##constant,
	CANARIES(X)
#undef X
		CANARY_MAX
};

extern enum canary canary_planted;

/* 1..CANARY_MAX - 1; NULL beyond. */
const char *canary_name(unsigned i);
const char *canary_text(unsigned i);
/* From now on; NULL: none. False: there is none of this name. */
bool canary_plant(const char *name);

#define CANARY(constant) (canary_planted == CANARY_##constant)

#else

#define CANARY(constant) false

#endif

#endif
