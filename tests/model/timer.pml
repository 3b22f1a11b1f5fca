/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timer of a NAPI whose interrupt is deferred: src/core/wake_source.c and napi_suspend() of
 * src/core/napi.c as a model, with their names.
 *
 * An application takes the token, polls, and gives it back suspended: masked, with the timer armed.
 * It may be late for the very time that it armed. The timer is a source of the softirq's runner,
 * which polls what the timer schedules, and unmasks. Packets arrive at any time.
 *
 * Held at every step: one poller at a time. Held when nothing moves any more and all times are
 * over: no packet waits, and the token is back.
 */

#ifndef PACKETS
#define PACKETS 2
#endif
#ifndef CALLS /* of the application */
#define CALLS 2
#endif
#define TIMES (CALLS + 2)
#define NEVER 255

#ifdef BUG_SUSPEND_FORGETS_THE_TIMER /* that has fired into MISSED */
#define SPENT false
#else
#define SPENT (missed && armed > when)
#endif

byte now = 0;
bool sched = false, missed = false;
byte at = NEVER;       /* timer_at */
byte armed = NEVER;    /* timer_armed */
byte deadline = NEVER; /* of the source */
bool lock = false;
bool masked = false, edge = false;
byte queued = 0;
bool given = false; /* to the softirq */
byte polling = 0;

inline acquire() { atomic { !lock -> lock = true } }
inline release() { lock = false }

inline napi_schedule()
{
	atomic {
		taken = !sched;
		missed = missed | sched;
		sched = true
	}
	if
	:: taken -> at = NEVER; given = true
	:: !taken
	fi;
	taken = false
}

inline poll()
{
	atomic { assert(polling == 0); polling++; queued = 0 }
	polling--
}

inline napi_timer_arm()
{
#ifdef BUG_LOOKS_BEFORE_STORING
	late = when >= armed;
	at = when;
#else
	at = when;
	late = when >= armed;
#endif
	if
	:: late
	:: !late ->
		acquire();
		atomic { armed = when; deadline = when };
		release()
	fi
}

active proctype wire()
{
	byte packets = PACKETS;

end:
	do
	:: atomic { packets > 0 && queued < 2 -> packets--; queued++; edge = true }
	od
}

active proctype clock()
{
end:
	do
	:: now < TIMES -> now++
	od
}

active proctype application()
{
	byte when = 0, calls = CALLS;
	bool late = false, holding = false;

	do
	:: calls == 0 -> break
	:: calls > 0 ->
		calls--;
		atomic { holding = !sched; sched = true };
		if
		:: !holding
		:: holding ->
			at = NEVER;
			masked = true;
			poll();
			when = (now < TIMES -> now + 1 : TIMES);
			napi_timer_arm();
			atomic {
				if
				:: SPENT
				:: !SPENT -> sched = false; missed = false; holding = false
				fi
			}
			if
			:: holding -> /* the time is over: token_give() passes it on */
				at = NEVER;
				holding = false;
				given = true
			:: !holding
			fi
		fi
	od
}

active proctype softirq()
{
	byte when = 0;
	bool taken = false, holding = false;

end:
	do
	:: atomic { edge && !masked -> edge = false }
	   napi_schedule()
	:: atomic { deadline <= now -> deadline = NEVER }
	   acquire();
	   armed = NEVER;
	   when = at;
	   if
	   :: when > now && when != NEVER -> atomic { armed = when; deadline = when }
	   :: when == NEVER
	   :: when <= now
	   fi;
	   release();
	   if
	   :: when <= now -> napi_schedule()
	   :: when > now
	   fi
	:: atomic { given -> given = false; holding = true }
	   do
	   :: holding ->
		poll();
		masked = false;
		atomic {
			holding = missed;
			sched = missed;
			missed = false
		}
		if
		:: holding -> at = NEVER
		:: !holding
		fi
	   :: !holding -> break
	   od
	od
}

init
{
	/* When nothing else can move. */
	timeout;
	assert(now == TIMES);
	assert(queued == 0);
	assert(!sched && !missed)
}
