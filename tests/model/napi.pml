/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state word of a NAPI: the table in include/napier/napi.h as a model.
 *
 * Packets arrive and raise interrupts; a softirq runner (poller 0), a thread (1) and with POLLERS=3
 * one that busy-polls (2) poll. With LOOKS_OF_APP an application polls what has poller 3: it takes
 * the token from idle, and asks a holder for it (PREFER); whatever is dispatched there is the
 * softirq's, and the timer wakes it while interrupts are off. (How the timer itself works is in
 * timer.pml: here it may fire at any time.) Control switches, disables and enables in every order, and may give
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
#ifndef LOOKS_OF_APP
#define LOOKS_OF_APP 0
#endif
#if ENDLESS || LOOKS_OF_APP
#define INTERRUPTS 1
#else
#define INTERRUPTS 2
#endif
#define SOFTIRQ 0
#define APP 3
#define BUSY 2 /* keeps the token without packets, interrupts masked, and may rest */

#define SCHED 1
#define MISSED 2
#define SWITCH 4
#define MOVING 8
#define DISABLING 16
#define DISABLED 32
#define POLLER 64 /* times the poller, 0..3 */
#define PREFER 256

#define own_runner(p) ((p) != SOFTIRQ && (p) != APP)
#define there(p) (!own_runner(p) || thread[p])
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
#ifdef BUG_TIMER_FORGOTTEN /* the interrupt stays off, and nothing comes instead */
#define TIMED false
#else
#define TIMED true
#endif
#ifdef BUG_TAKES_WITHOUT_LOOKING /* an application, whoever has the token */
#define FREE (!(word & DISABLED))
#else
#define FREE (!(word & (SCHED | DISABLED | DISABLING)))
#endif
#ifdef BUG_PREFER_STAYS /* the application's wish, when the token is given back */
#define WISHES MISSED
#else
#define WISHES (MISSED | PREFER)
#endif
#ifdef BUG_SUSPENDS_OVER_A_WISH /* of control's */
#define ASKED false
#else
#define ASKED (word & (SWITCH | DISABLING))
#endif
#ifdef BUG_NOT_CLAIMED /* the holder moves interrupts under a wish that may be withdrawn */
#define CLAIMED SWITCH
#else
#define CLAIMED MOVING
#endif

short word = 0;
byte wish = 0;		     /* of control, for who sees SWITCH */
bool thread[4] = false; /* made for this poller; the softirq's runners are always there */
bool given[4] = false;	/* the poller has the token to pick up */
bool stepping[4] = false;
byte dispatching = 0;
byte polling = 0;   /* runners inside a poll */
byte queued = 0;    /* in the port, not received */
bool edge = false;  /* an interrupt that has not fired */
bool masked = false;
bool timer = false; /* wanted and armed */
#if LOOKS_OF_APP
bool firing = false; /* it has fired, and schedules */
#endif
bool wanted = true; /* enabled, as control was last told */
bool waiting = false;
byte packets = PACKETS; /* to come */
byte calls = CALLS;	/* to come, of control */

inline check()
{
	assert(!((word & SCHED) && (word & DISABLED)));
	assert((word & SCHED) || !(word & (MISSED | SWITCH | MOVING | DISABLING | PREFER)))
}

/* The token is there before the wake-up, so whoever gets it may be done before the wake-up. */
inline dispatch(p)
{
	if
	:: p == BUSY -> masked = true
	:: p == APP -> p = SOFTIRQ
	:: p != BUSY && p != APP
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
	:: taken -> timer = false; dispatch(to); taken = false
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
		:: else -> word = without(word, SCHED | WISHES); holding = false
		fi;
		check()
	}
}

#if LOOKS_OF_APP
/* The interrupt stays off; what was missed may be, unless it was the timer. */
inline napi_suspend()
{
	masked = true;
	timer = TIMED;
	atomic {
		if
		:: ASKED
		:: !ASKED && (word & MISSED) && TIMED && !timer
		:: else ->
			word = without(word, SCHED | WISHES);
			holding = false;
			assert(timer || firing || !TIMED)
		fi;
		check()
	}
	if
	:: holding -> timer = false
	:: !holding
	fi
}
#endif

inline release_disabled()
{
	masked = true;
	atomic {
		if
		:: word & DISABLING ->
			word = without(word, SCHED | MISSED | DISABLING | PREFER) | OFF;
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
				word = with_poller(without(word, CLAIMED | MISSED | PREFER), to);
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
	fi;
#if LOOKS_OF_APP
	if
	:: holding && !(keeps) && (word & PREFER) -> napi_suspend() /* preferred_give() */
	:: !(holding && !(keeps) && (word & PREFER))
	fi
#endif
}

active proctype wire()
{
end:
	do
	:: atomic { packets > 0 && queued < 2 -> packets = packets - !ENDLESS; queued++; edge = true }
	od
}

/* Two, since a handler may still run in one runner when another has got the interrupts. */
active [INTERRUPTS] proctype interrupt()
{
	byte to = 0;
	bool taken = false;

end:
	do
	:: atomic { edge && !masked -> edge = false }
	   napi_schedule()
#if LOOKS_OF_APP
	:: atomic { timer && !firing -> timer = false; firing = true }
	   napi_schedule();
	   firing = false
#endif
	od
}

#if LOOKS_OF_APP
/* A look of napi_busy_loop(): one poll, then the token goes back, one way or the other. */
active proctype application()
{
	byte to = 0, looks = LOOKS_OF_APP;
	bool full_poll = false, holding = false, claimed = false;

end:
	do
	:: looks > 0 && poller_of(word) == APP ->
		looks--;
		atomic {
			if
			:: poller_of(word) == APP && FREE -> word = word | SCHED; holding = true
			:: poller_of(word) == APP && !FREE && (word & SCHED) ->
				word = word | PREFER /* or it does not prefer: then it has asked in vain */
			:: else
			fi;
			check()
		}
		if
		:: holding ->
			timer = false;
			masked = true;
			napi_poll(true);
			if
			:: holding -> napi_suspend()
			:: holding && !full_poll -> napi_complete()
			:: holding && full_poll
			:: !holding
			fi;
			if
			:: holding -> napi_release()
			:: !holding
			fi;
			if
			:: holding -> to = poller_of(word); holding = false; dispatch(to); to = 0
			:: !holding
			fi;
			full_poll = false
		:: !holding
		fi
	od
}
#endif

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
	:: !own_runner(p)
	:: own_runner(p) && QUIESCED ->
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
	:: holding -> holding = false; to = poller_of(word); dispatch(to); to = 0 /* it could not */
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
		thread[p] = own_runner(p);
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
#if LOOKS_OF_APP
		   p = (p == POLLERS - 1 -> APP : p);
#endif
		   napi_switch(p)
		fi
	od
}

init
{
	byte p = 0;

	atomic {
		do
		:: p < POLLERS - (LOOKS_OF_APP > 0) -> run poller(p); p++
		:: p == POLLERS - (LOOKS_OF_APP > 0) -> break
		od
	}
	/* When nothing else can move. */
	timeout;
	assert(calls == 0 && !waiting);
	assert(queued == 0 || !wanted);
	assert(!timer && (!masked || !wanted || (word & SCHED)));
	assert(without(word, 3 * POLLER) == (wanted -> 0 : OFF) ||
	       (wanted && (word & SCHED) && poller_of(word) == BUSY))
}

#if ENDLESS
ltl answers { [] (waiting -> <> !waiting) }
ltl polls { [] ((queued > 0 && wanted) -> <> (queued == 0 || !wanted || polling > 0)) }
#endif
