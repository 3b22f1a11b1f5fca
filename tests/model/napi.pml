/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state word of a NAPI: the table in include/napier/napi.h as a model.
 *
 * Packets arrive and raise interrupts; a softirq runner (poller 0), a thread (1) and with POLLERS=3
 * one that busy-polls (2) poll; control switches, disables and enables in every order, and may give
 * up. The names are those of src/core/napi.c and napi_control.c. A compare and exchange of the word is one step, whatever is
 * between two steps of a process can be interleaved with all others.
 *
 * Held at every step: one poller at a time (I1); SCHED and DISABLED never together; MISSED, SWITCH,
 * MOVING and DISABLING only beside SCHED; nothing is given to a poller that has it already, or
 * that is not there. Held when nothing moves any more: no packet waits on a NAPI that is enabled
 * (I2), the token is back, and no call hangs.
 *
 * -DENDLESS=1: packets and control's calls never end, none of them fails, and each has to return.
 * -DBUG_…: one mistake each, gathered below; spin must find it.
 */

#ifndef PACKETS
#define PACKETS 2
#endif
#ifndef CALLS
#define CALLS 3 /* of control */
#endif
#ifndef POLLERS
#define POLLERS 2
#endif
#ifndef ENDLESS
#define ENDLESS 0
#endif
#define SOFTIRQ 0
#define BUSY 2 /* keeps the token without packets, interrupts masked, and may rest */

#define SCHED 1
#define MISSED 2
#define SWITCH 4
#define MOVING 8
#define DISABLING 16
#define DISABLED 32
#define POLLER 64 /* times the poller, 0..3 */

#define there(p) ((p) == SOFTIRQ || thread[p])
#define without(w, bits) ((w) & ~(bits))
#define poller_of(w) (((w) / POLLER) & 3)
#define with_poller(w, p) (without(w, 3 * POLLER) | (p) * POLLER)

/* The mistakes. */
#if defined(BUG_NO_MISSED) /* scheduling what is scheduled leaves no trace */
#define MARKS 0
#elif defined(BUG_NO_MISSED_WHILE_DISABLING) /* … while a disable waits, that may be withdrawn */
#define MARKS !(word & DISABLING)
#else
#define MARKS 1
#endif
#ifdef BUG_COMPLETE_FORGETS_MISSED
#define KEEPS 0
#else
#define KEEPS (word & MISSED)
#endif
#ifdef BUG_FULL_POLLS_DO_NOT_LOOK /* at what control wants */
#define LOOKS !full_poll
#else
#define LOOKS 1
#endif
#ifdef BUG_ONE_BIT /* disabled means that control keeps SCHED */
#define OFF SCHED
#else
#define OFF DISABLED
#endif
#ifdef BUG_RETIRES_WITHOUT_QUIESCE
#define QUIESCED 1
#else
#define QUIESCED dispatching == 0
#endif
#ifdef BUG_NOT_CLAIMED /* the holder moves interrupts under a wish that may be withdrawn */
#define CLAIMED SWITCH
#else
#define CLAIMED MOVING
#endif

short word = 0;
byte wish = 0;		     /* of control, for who sees SWITCH */
bool thread[POLLERS] = false; /* made for this poller; the softirq's runners are always there */
bool given[POLLERS] = false; /* the poller has the token to pick up */
bool stepping[POLLERS] = false;
byte dispatching = 0;
byte polling = 0;   /* runners inside a poll */
byte queued = 0;    /* in the port, not received */
bool edge = false;  /* an interrupt that has not fired */
bool masked = false;
bool wanted = true; /* enabled, as control was last told */
bool waiting = false;
byte packets = PACKETS; /* to come */
byte calls = CALLS;	/* to come, of control */

inline check()
{
	assert(!((word & SCHED) && (word & DISABLED)));
	assert((word & SCHED) || !(word & (MISSED | SWITCH | MOVING | DISABLING)))
}

/* The token is there before the wake-up, so whoever gets it may be done before the wake-up. */
inline dispatch(p)
{
	if
	:: p == BUSY -> masked = true
	:: p != BUSY
	fi;
	atomic { assert(there(p) && !given[p]); given[p] = true; dispatching++ }
	atomic { assert(there(p)); dispatching-- }
}

inline napi_schedule()
{
	atomic {
		taken = !(word & (SCHED | DISABLED));
		if
		:: taken -> word = word | SCHED
		:: !taken && (word & SCHED) && MARKS -> word = word | MISSED
		:: else
		fi;
		to = poller_of(word);
		check()
	}
	if
	:: taken -> dispatch(to); taken = false
	:: !taken
	fi;
	to = 0
}

/* After a poll that found less than its weight. `holding`: still the holder. */
inline napi_complete()
{
#ifndef BUG_COMPLETE_LEAVES_THE_MASK
	masked = false;
#endif
	atomic {
		if
		:: word & (SWITCH | DISABLING)
		:: !(word & (SWITCH | DISABLING)) && KEEPS -> word = without(word, MISSED)
		:: else -> word = without(word, SCHED | MISSED); holding = false
		fi;
		check()
	}
}

inline release_disabled()
{
	masked = true;
	atomic {
		if
		:: word & DISABLING ->
			word = without(word, SCHED | MISSED | DISABLING) | OFF;
			holding = false
		:: !(word & DISABLING) /* withdrawn */
		fi;
		check()
	}
}

inline release_switched()
{
	atomic {
		claimed = (word & SWITCH) != 0;
		if
		:: claimed -> word = without(word, SWITCH) | CLAIMED
		:: !claimed /* withdrawn */
		fi
	}
	if
	:: claimed ->
		to = wish;
		assert(there(to)); /* its runner gets the interrupts */
		claimed = false;
		if
		:: masked = false;
		   atomic {
			if
			:: word & CLAIMED ->
				word = with_poller(without(word, CLAIMED | MISSED), to);
				holding = false
			:: !(word & CLAIMED)
			fi;
			check()
		   }
		:: atomic { !ENDLESS -> word = without(word, CLAIMED); check() } /* not possible */
		fi;
		if
		:: !holding -> dispatch(to)
		:: holding
		fi;
		to = 0
	:: !claimed
	fi
}

/* The holder does what control wants. */
inline napi_release()
{
	do
	:: holding && (word & DISABLING) -> release_disabled()
	:: holding && !(word & DISABLING) && (word & SWITCH) -> release_switched()
	:: !holding || !(word & (DISABLING | SWITCH)) -> break
	od
}

/* The weight is one packet. */
inline napi_poll(keeps)
{
	atomic {
		assert(polling == 0);
		polling++;
		full_poll = queued > 0;
		queued = queued - full_poll
	}
	polling--;
	if
	:: !full_poll && !(keeps) -> napi_complete()
	:: full_poll || (keeps)
	fi;
	if
	:: holding && LOOKS -> napi_release()
	:: !(holding && LOOKS)
	fi
}

active proctype wire()
{
end:
	do
	:: atomic { packets > 0 && queued < 2 -> packets = packets - !ENDLESS; queued++; edge = true }
	od
}

/* Two, since a handler may still run in one runner when another has got the interrupts. */
active [2 - ENDLESS] proctype interrupt()
{
	byte to = 0;
	bool taken = false;

end:
	do
	:: atomic { edge && !masked -> edge = false }
	   napi_schedule()
	od
}

proctype poller(byte me)
{
	byte to = 0;
	bool full_poll = false, holding = false, claimed = false;
	bool idle = false; /* the last poll of one that busy-polls was empty */

end:
	do
	:: atomic { given[me] -> given[me] = false; holding = true; stepping[me] = true }
	   do
	   :: holding && (me != BUSY || !idle || queued > 0 || (word & (SWITCH | DISABLING))) ->
		assert(there(me));
		napi_poll(me == BUSY);
		idle = (me == BUSY && !full_poll)
	   :: holding && me == SOFTIRQ && full_poll -> /* ksoftirqd goes on */
		masked = true;
		full_poll = false
	   :: holding && idle -> /* busy_rest() */
		idle = false;
		napi_complete();
		if
		:: holding -> masked = true
		:: !holding
		fi
	   :: !holding -> full_poll = false; idle = false; break
	   od;
	   stepping[me] = false
	od
}

/* Ends the poller's thread: once nobody is inside a dispatch to it (quiesce), after its step. */
inline retire(p)
{
	if
	:: p == SOFTIRQ
	:: p != SOFTIRQ && QUIESCED ->
		atomic { !stepping[p] -> assert(!given[p]); thread[p] = false }
	fi
}

/* Asks the holder; when there is none, is it. */
inline napi_request(asked)
{
	atomic {
		holding = !(word & SCHED);
		word = word | SCHED | asked;
		waiting = true;
		check()
	}
	napi_release();
#ifdef BUG_KEEPS_THE_TOKEN
	holding = false
#else
	if
	:: holding -> holding = false; dispatch(poller_of(word)) /* it could not */
	:: !holding
	fi
#endif
}

inline napi_switch(p)
{
	before = poller_of(word);
	if
	:: before == p
	:: before != p ->
		thread[p] = (p != SOFTIRQ);
		wish = p;
		if
		:: word & DISABLED -> word = with_poller(word, p)
		:: !(word & DISABLED) ->
#ifdef BUG_SWITCHES_BESIDE_THE_TOKEN
			atomic { word = with_poller(word, p); waiting = true }
#else
			napi_request(SWITCH);
#endif
			if
			:: !(word & (SWITCH | CLAIMED))
			:: atomic { !ENDLESS && (word & SWITCH) ->
				word = without(word, SWITCH); check() }
			fi;
			waiting = false
		fi;
		if
		:: poller_of(word) == p -> retire(before)
		:: poller_of(word) != p -> assert(poller_of(word) == before); retire(p)
		fi
	fi;
	before = 0
}

inline napi_disable()
{
#ifdef BUG_DISABLES_OVER_SCHED
	atomic { word = word | DISABLED; check() }
#else
	napi_request(DISABLING);
#endif
	wanted = false;
	if
	:: !(word & DISABLING) -> assert(word & OFF)
	:: atomic { !ENDLESS && (word & DISABLING) ->
		word = without(word, DISABLING); wanted = true; check() }
	fi;
	waiting = false
}

inline napi_enable()
{
	masked = false;
	atomic { word = without(word, OFF | MISSED); wanted = true; check() }
#ifndef BUG_ENABLES_WITHOUT_SCHEDULING
	napi_schedule()
#endif
}

active proctype control()
{
	byte to = 0, before = 0, p;
	bool taken = false, holding = false, claimed = false;

end:
	do
	:: calls > 0 ->
		calls = calls - !ENDLESS;
		if
		:: wanted -> napi_disable()
		:: !wanted -> napi_enable()
		:: atomic { true -> select(p : 0 .. POLLERS - 1) }
		   napi_switch(p)
		fi
	od
}

init
{
	byte p = 0;

	atomic {
		do
		:: p < POLLERS -> run poller(p); p++
		:: p == POLLERS -> break
		od
	}
	/* When nothing else can move. */
	timeout;
	assert(calls == 0 && !waiting);
	assert(queued == 0 || !wanted);
	assert(without(word, 3 * POLLER) == (wanted -> 0 : OFF) ||
	       (wanted && (word & SCHED) && poller_of(word) == BUSY))
}

#if ENDLESS
ltl answers { [] (waiting -> <> !waiting) }
ltl polls { [] ((queued > 0 && wanted) -> <> (queued == 0 || !wanted || polling > 0)) }
#endif
