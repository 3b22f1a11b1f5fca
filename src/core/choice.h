/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which poller a NAPI should have: decided from what was measured, nothing else. No clock, no
 * engine: one call an interval, so it is the same on every machine and in a test.
 *
 * Figures make a poller a candidate, and only for so many intervals in a row; then it is tried,
 * and measured against what was before. It stays if it is better, or as good where a better
 * latency cannot be seen; otherwise the one before comes back, and the candidate is left alone for
 * a time that doubles.
 */
#ifndef CORE_CHOICE_H
#define CORE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <napier/napi.h>

#define CHOICE_WHY_MAX 112
#define CHOICE_INTERVAL (100 * NSEC_PER_MSEC)

/* Hysteresis: in intervals, and as shares. */
enum {
	CHOICE_CONFIRM = 3, /* a candidate is one for so long before it is tried */
	CHOICE_SETTLE = 1,  /* after a switch, not measured */
	CHOICE_TRIAL = 4,   /* measured before a trial is judged */
	CHOICE_QUIET = 5,   /* with little to do for so long: nothing to try, and no busy polling */
	CHOICE_FORGET = 100,	 /* what failed before then is as good as another */
	CHOICE_REST = 20,	 /* between two trials */
	CHOICE_HOLD_FIRST = 50,	 /* a candidate that failed is left alone for so long, and then */
	CHOICE_HOLD_LAST = 3000, /* twice as long each time, up to this */
};

#define CHOICE_MARGIN 0.05    /* less than that is no difference in packets a second */
#define CHOICE_GIVE_UP 0.30   /* a trial that loses so many is over at once */
#define CHOICE_SATURATED 0.60 /* of one CPU, in polls that found something */
#define CHOICE_CROWDED 0.10   /* of the time its runner waited for the CPU */
#define CHOICE_FREE 0.40      /* of a CPU idle: enough to move there */
#define CHOICE_RATE_QUIET 200 /* packets a second: under that there is nothing to gain */
#define CHOICE_RATE_BUSY 3000 /* wake-ups a second: that many are worth a CPU that idles anyway */
#define CHOICE_WAIT 50000     /* ns from a wake-up to its poll that are too many */

/* What was in one interval, in shares of it where nothing else is said. */
struct choice_sample {
	int64_t ns;			     /* its length */
	uint64_t packets, polls, full_polls; /* of the NAPI; polls that found something */
	uint64_t wakes;
	double load;	  /* in polls that found something */
	double crowded;	  /* its runner could have run, but waited for a CPU */
	double wait_ns;	  /* mean from a wake-up to its poll, with the wait for a CPU */
	double idle_spin; /* of the CPU that busy-poll would take, without its own polling there */
	double idle_most; /* of the most idle engine CPU */
	bool may_spin;	  /* a CPU would be left for others if this NAPI took one */
	bool may_try;	  /* no other NAPI is being tried */
	/* Of the whole engine, since moving one NAPI can harm another. */
	uint64_t all_packets;
	int64_t all_cpu_ns; /* CPU time of its runners; 0: not measured, see choice_measures */
};

struct choice_sum {
	double n, ns, all_packets, wait_ns, crowded;
	double cpu_ns, cpu_packets; /* of the intervals where it was measured */
};

enum choice_move { CHOICE_TRY, CHOICE_BACK, CHOICE_LEAVE };

struct choice {
	uint32_t can;	    /* a bit for each poller that there may be; 0: all */
	enum poller poller; /* in force */
	enum poller wish;   /* candidate, for so many intervals */
	uint32_t wished;
	uint32_t quiet;	       /* intervals with little to do, in a row */
	uint32_t since;	       /* intervals since the last switch, or the end of the last trial */
	bool tries;	       /* a trial is under way, against `before` */
	enum choice_move move; /* what the last step said */
	enum poller before;
	struct choice_sum base, trial;
	uint32_t hold[POLLER_MAX]; /* intervals for which it is left alone */
	uint32_t held[POLLER_MAX]; /* how long that was at its beginning; 0: never */
	char why[CHOICE_WHY_MAX];  /* the last decision, with its figures */
};

void choice_init(struct choice *choice, enum poller poller, uint32_t can);

/* The poller that it should have now; when that is not choice->poller, `why` is new. */
enum poller choice_step(struct choice *choice, const struct choice_sample *sample);

/* CPU time is of use in the next sample. */
bool choice_measures(const struct choice *choice);

/* What was said is in force; or it could not be, and is left alone for a while. */
void choice_made(struct choice *choice, enum poller poller);
void choice_failed(struct choice *choice, enum poller poller);

#endif
