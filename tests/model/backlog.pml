/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering to backlogs: src/core/backlog.c and src/core/engine_steer.c as a model, with their names.
 *
 * A receiver puts the numbered packets of one flow into the backlog that its map names, and another
 * puts packets of its own into the first one. Who puts into an empty backlog notes it, and schedules
 * it at the end of his poll. A backlog's poll takes up to BUDGET packets, and completes when it got
 * fewer. Control changes the map while the receiver is not polled, when the backlog has passed what
 * stands in it.
 *
 * Held: the flow's packets are handled in order, through every change; when nothing moves any more
 * all have been handled, and both backlogs are empty.
 */

#ifndef PACKETS
#define PACKETS 4
#endif
#ifndef OTHERS
#define OTHERS 2
#endif
#ifndef CHANGES
#define CHANGES 2
#endif
#define BUDGET 2
#define SLOTS 8 /* more than ever are put */

typedef ring { byte slot[SLOTS]; byte put; byte taken; byte passed };

ring backlog[2];
bool sched[2], missed[2], dispatched[2];
bool polled = false; /* somebody has the receiver's token */
byte map = 0, sent = 0, handled = 0;

/* napi_schedule() of a backlog's NAPI: one atomic step, then the dispatch. */
inline napi_schedule(b)
{
	atomic {
#ifndef BUG_KICK_WITHOUT_MISSED
		if
		:: sched[b] -> missed[b] = true
		:: else -> sched[b] = true; dispatched[b] = true
		fi
#else
		if
		:: sched[b]
		:: else -> sched[b] = true; dispatched[b] = true
		fi
#endif
	}
}

/* backlog_put() of one packet; `number` 0 is the other's. */
inline backlog_put(b, number)
{
#ifdef BUG_LOOKS_OUTSIDE_THE_LOCK
	was_empty = backlog[b].put == backlog[b].taken;
	atomic {
#else
	atomic {
		was_empty = backlog[b].put == backlog[b].taken;
#endif
		backlog[b].slot[backlog[b].put] = number;
		backlog[b].put++;
		noted[b] = noted[b] || was_empty;
		was_empty = false
	}
}

/* context_kick() */
inline backlogs_kick()
{
	if
	:: noted[1] -> noted[1] = false; napi_schedule(1)
	:: else
	fi;
	if
	:: noted[0] -> noted[0] = false; napi_schedule(0)
	:: else
	fi
}

active proctype receiver()
{
	bool noted[2], was_empty;
	byte b;

end:
	do
	:: atomic { sent < PACKETS && !polled -> polled = true }
	   b = map;
	   do
	   :: sent < PACKETS -> sent++; backlog_put(b, sent)
#ifdef BUG_ENDS_WITHOUT_KICKING
	   :: noted[0] = false; noted[1] = false; break
#else
	   :: backlogs_kick(); break
#endif
	   od;
	   polled = false
	od
}

active proctype other()
{
	bool noted[2], was_empty;
	byte left = OTHERS;

end:
	do
	:: left > 0 -> left--; backlog_put(0, 0); backlogs_kick()
	od
}

/* Whoever polls backlog b. */
proctype poller(byte b)
{
	byte n, at, number;

end:
	do
	:: atomic { dispatched[b] -> dispatched[b] = false }
	   do
	   :: atomic { /* backlog_take() */
		at = backlog[b].taken;
		n = (backlog[b].put - at > BUDGET -> BUDGET : backlog[b].put - at);
		backlog[b].taken = at + n
	      }
#ifdef BUG_PASSED_WHEN_TAKEN
	      backlog[b].passed = at + n;
#endif
	      do
	      :: at < backlog[b].taken ->
		number = backlog[b].slot[at];
		at++;
		if
		:: number -> assert(number == handled + 1); handled = number
		:: else
		fi
	      :: else -> break
	      od;
	      number = 0;
	      backlog[b].passed = at;
#ifdef BUG_FULL_POLL_COMPLETES
	      if
	      :: true ->
#else
	      if
	      :: n == BUDGET
	      :: n < BUDGET ->
#endif
		atomic { /* napi_complete() */
			if
			:: missed[b] -> missed[b] = false
			:: else -> sched[b] = false; at = 0; n = 0; break
			fi
		}
	      fi
	   od
	od
}

/* steer_apply(): the receiver's NAPI is disabled meanwhile. */
active proctype control()
{
	byte left = CHANGES, position;

end:
	do
	:: left > 0 ->
	   atomic { !polled -> polled = true }
	   left--;
	   position = backlog[map].put;
#ifndef BUG_CHANGES_AT_ONCE
	   backlog[map].passed >= position;
#endif
	   map = 1 - map;
	   polled = false
	od
}

init
{
	atomic { run poller(0); run poller(1) }
	/* When nothing else can move. */
	timeout;
	assert(handled == PACKETS);
	assert(backlog[0].put == backlog[0].passed && backlog[1].put == backlog[1].passed)
}
