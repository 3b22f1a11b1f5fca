/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a runner of the host machine learns that there is something to do: src/machine/host_runner.c
 * and host_irq.c as a model, with their names.
 *
 * Two runners sleep whenever they may, in epoll, or on the word itself while no source of theirs has
 * a descriptor. Others wake them, raise an interrupt source, make its
 * descriptor readable; control masks, unmasks, moves and at last detaches the source. epoll is
 * edge-triggered: an edge is taken by the wait that returns it, changing what is listened for makes
 * an edge of data that is there.
 *
 * Held at every step: the handler runs in one runner at a time, and not after detach has returned.
 * Held when nothing moves any more (all runners sleep): each wake-up was followed by a step, and
 * what was raised or became readable was handled, unless masked or detached.
 */

#ifndef WAKES
#define WAKES 0
#endif
#ifndef RAISES
#define RAISES 0
#endif
#ifndef ARRIVALS /* at the descriptor */
#define ARRIVALS 0
#endif
#ifndef CALLS /* of control */
#define CALLS 0
#endif
#define NOBODY 2

/* host_signal */
#define WOKEN 1
#define RAISED 2
#define SLEEPING 4
#define TIMER 8
#define DOZING 16
/* host_irq_state */
#define PENDING 1
#define MASKED 2

#define without(w, bits) ((w) & ~(bits))

byte signal[2] = 0;
bool event[2] = false; /* the edge of the eventfd */
bool edge[2] = false;  /* that of the source's descriptor */
bool handlers[2] = false; /* the lock */
byte descriptors[2] = 0;
bool work[2] = false;	  /* that a wake-up announced */

byte state = 0; /* of the source */
byte runner = 0;
byte listening = 0; /* which runner's epoll */
bool readable = false;
bool raised = false; /* and not handled */
byte inside = 0;
bool detached = false;

byte wakes = WAKES, raises = RAISES, arrivals = ARRIVALS, calls = CALLS;

/* host_runner_signal() */
inline signal_to(r, bits)
{
#ifdef BUG_LOOKS_BEFORE_SETTING
	before = signal[r];
	atomic { signal[r] = signal[r] | bits }
#else
	atomic { before = signal[r]; signal[r] = before | bits }
#endif
	if
	:: before == SLEEPING || before == DOZING -> event[r] = true
	:: before != SLEEPING && before != DOZING
	fi;
	before = 0
}

active proctype waker()
{
	byte before = 0;

end:
	do
	:: wakes > 0 ->
		wakes--;
		work[0] = true;
		signal_to(0, WOKEN)
	od
}

/* host_irq_raise(): two at once. */
active [2] proctype raiser()
{
	byte before = 0, to = NOBODY, was = 0;

end:
	do
	:: atomic { raises > 0 -> raises--; raised = true }
	   atomic { was = state; state = state | PENDING }
	   to = runner;
	   if
	   :: to != NOBODY && !(was & MASKED) -> signal_to(to, RAISED)
	   :: to == NOBODY || (was & MASKED)
	   fi;
	   atomic { to = NOBODY; was = 0 }
	od
}

/* The kernel. */
active proctype wire()
{
end:
	do
	:: atomic {
		arrivals > 0 ->
		arrivals--;
		readable = true;
		if
		:: listening != NOBODY -> edge[listening] = true
		:: listening == NOBODY
		fi
	   }
	od
}

/* source_listen() */
inline listen(r)
{
	atomic {
		if
		:: listening != NOBODY -> edge[listening] = false
		:: listening == NOBODY
		fi;
		listening = r;
		if
		:: r != NOBODY -> edge[r] = readable
		:: r == NOBODY
		fi
	}
}

inline mask()
{
	atomic {
		if
		:: runner != NOBODY -> state = state | MASKED; listen(NOBODY)
		:: runner == NOBODY
		fi
	}
}

inline unmask()
{
	atomic {
		was = state;
		state = without(state, MASKED);
		if
		:: (was & MASKED) && runner != NOBODY -> listen(runner)
		:: else
		fi
	}
#ifndef BUG_UNMASK_DOES_NOT_LOOK
	if
	:: (was & PENDING) && runner != NOBODY -> signal_to(runner, RAISED)
	:: else
	fi;
#endif
	was = 0
}

/* host_irq_attach(), from the runner that has it to the other. */
inline move()
{
	from = runner;
	if
	:: from != NOBODY ->
#ifndef BUG_MOVES_UNDER_HANDLERS
		atomic { !handlers[from] -> handlers[from] = true }
#endif
		descriptors[1 - from]++; /* source_add() */
#ifndef BUG_DESCRIPTOR_WITHOUT_SIGNAL
		signal_to(1 - from, TIMER);
#endif
		listen(NOBODY);
		descriptors[from]--;
		runner = 1 - from;
		if
		:: !(state & MASKED) -> listen(1 - from)
		:: state & MASKED
		fi;
#ifndef BUG_MOVES_UNDER_HANDLERS
		handlers[from] = false;
#endif
#ifndef BUG_MOVE_DOES_NOT_LOOK
		if
		:: (state & (PENDING | MASKED)) == PENDING -> signal_to(runner, RAISED)
		:: else
		fi
#endif
	:: from == NOBODY
	fi;
	from = NOBODY
}

inline detach()
{
	from = runner;
	if
	:: from != NOBODY ->
#ifndef BUG_DETACHES_UNDER_HANDLERS
		atomic { !handlers[from] -> handlers[from] = true }
#endif
		runner = NOBODY;
		listen(NOBODY);
		descriptors[from]--;
		atomic { state = state & MASKED };
#ifndef BUG_DETACHES_UNDER_HANDLERS
		handlers[from] = false;
#endif
		detached = true
	:: from == NOBODY
	fi;
	from = NOBODY
}

active proctype control()
{
	byte before = 0, was = 0, from = NOBODY;

end:
	do
	:: calls > 0 ->
		calls--;
		if
		:: mask()
		:: unmask()
		:: move()
		:: detach()
		fi
	od
}

/* host_irq_dispatch() */
inline dispatch()
{
	if
	:: found || (signals & RAISED) ->
		atomic { !handlers[me] -> handlers[me] = true }
		atomic { /* under the runner's lock */
			if
			:: found && runner == me -> state = state | PENDING; due = true
			:: !found && runner == me && (state & (PENDING | MASKED)) == PENDING ->
				due = true
			:: else
			fi
		}
		atomic { /* pending_take() */
			if
			:: due && (state & (PENDING | MASKED)) == PENDING ->
				state = without(state, PENDING);
				handled = true
			:: else
			fi;
			due = false
		}
		if
		:: handled ->
			atomic { inside++; assert(inside == 1 && !detached) }
			atomic { raised = false; readable = false }
			atomic { inside--; assert(!detached) }
		:: !handled
		fi;
		handlers[me] = false
	:: !found && !(signals & RAISED)
	fi
}

/* runner_loop(), runner_wait(), runner_look() and runner_sleep() */
proctype loop(byte me)
{
	byte signals = 0;
	bool sleeps = false, found = false, due = false, handled = false;
	byte how = 0;

	do
	:: work[me] = false; /* the step */
	   do
	   :: how = (descriptors[me] -> SLEEPING : DOZING);
	      atomic {
#ifdef BUG_SLEEPS_WITHOUT_LOOKING
		signal[me] = signal[me] | how;
		sleeps = true
#else
		sleeps = (signal[me] == 0);
		signal[me] = (sleeps -> how : signal[me])
#endif
	      }
end:
	      atomic {
		/* Who dozes is woken, but does not look at epoll. */
		event[me] || (edge[me] && how == SLEEPING) || !sleeps ->
		event[me] = (sleeps -> false : event[me]);
		found = edge[me] && !(sleeps && how == DOZING);
		edge[me] = edge[me] && !found;
		sleeps = false;
		how = 0
	      }
#ifdef BUG_CLEARS_LATE
	      signals = without(signal[me], SLEEPING | DOZING);
	      dispatch();
	      signal[me] = 0;
#else
	      atomic { signals = without(signal[me], SLEEPING | DOZING); signal[me] = 0 }
	      dispatch();
#endif
	      if
	      :: handled || (signals & WOKEN) -> break
	      :: !handled && !(signals & WOKEN)
	      fi
	   od;
	   atomic { signals = 0; found = false; handled = false }
	od
}

init
{
	atomic { descriptors[0] = 1; run loop(0); run loop(1) }
	/* When nothing else can move. */
	timeout;
	assert(!work[0]);
	assert(runner == NOBODY || (state & MASKED) || (!raised && !readable && !(state & PENDING)))
}
