/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The poll list of an engine CPU between irq/N and ksoftirqd/N: src/poller/softirq.c as a model,
 * with its names.
 *
 * Anyone puts NAPIs into the inbox. Whoever has set `active` takes the inbox to the list and polls
 * it; the interrupt runner stops at its limit with work left, which ksoftirqd then goes on with.
 *
 * Held at every step: one runner works on the list. Held when nothing moves any more: inbox and
 * list are empty, and nobody is active.
 */

#ifndef NAPIS
#define NAPIS 3
#endif
#ifndef LIMITS /* how many times a runner may stop with work left */
#define LIMITS 2
#endif
#define IRQ 0
#define KSOFTIRQD 1

bool owned = false; /* `active` there, which is a keyword here */
byte inbox = 0;
byte list = 0;
byte working = 0; /* runners on the list */
bool woken[2] = false;
byte napis = NAPIS; /* to be scheduled */
byte limits = LIMITS;

/* softirq_dispatch(): two at once. */
active [2] proctype dispatcher()
{
	bool busy = false;

end:
	do
	:: atomic { napis > 0 -> napis-- }
#ifdef BUG_LOOKS_BEFORE_PUTTING
	   busy = owned;
	   inbox++;
#else
	   inbox++;
	   busy = owned;
#endif
	   if
	   :: !busy -> woken[IRQ] = true
	   :: busy -> busy = false
	   fi
	od
}

inline active_enter()
{
	entered = !owned;
	if
	:: entered -> atomic { entered = !owned; owned = true }
	:: !entered
	fi
}

/* `done`: the inbox is empty, or somebody else has entered and will look. */
inline active_leave()
{
	owned = false;
	done = (inbox == 0);
#ifdef BUG_LEAVES_WITHOUT_LOOKING
	done = true;
#endif
	if
	:: !done -> done = owned
	:: done
	fi
}

inline softirq_run()
{
	atomic { working++; assert(working == 1) }
	atomic { list = list + inbox; inbox = 0 }
	left = false;
	do
	:: atomic { list > 0 -> list-- }
	:: list == 0 -> break
	:: atomic { list > 0 && limits > 0 -> limits--; left = true; break }
	od;
	working--
}

/* softirq_irq_step() */
active proctype irq()
{
	bool entered = false, left = false, done = false;

end:
	do
	:: atomic { woken[IRQ] -> woken[IRQ] = false }
	   do
	   :: active_enter();
	      if
	      :: entered ->
		softirq_run();
#ifdef BUG_WAKES_BEFORE_LEAVING
		woken[KSOFTIRQD] = woken[KSOFTIRQD] || left;
		active_leave();
#elif defined(BUG_LEAVES_WORK)
		active_leave();
#else
		active_leave();
		woken[KSOFTIRQD] = woken[KSOFTIRQD] || left;
#endif
		if
		:: done || left -> break
		:: !done && !left
		fi
	      :: !entered -> break
	      fi
	   od;
	   atomic { entered = false; left = false; done = false }
	od
}

/* softirq_ksoftirqd_step() */
active proctype ksoftirqd()
{
	bool entered = false, left = false, done = false;

end:
	do
	:: atomic { woken[KSOFTIRQD] -> woken[KSOFTIRQD] = false }
	   do
	   :: active_enter();
	      left = false;
	      if
	      :: entered ->
		if
		:: list > 0 || inbox > 0 -> softirq_run()
		:: list == 0 && inbox == 0
		fi;
		active_leave();
#ifndef BUG_KSOFTIRQD_IGNORES_THE_INBOX
		left = left || !done
#endif
	      :: !entered
	      fi;
	      if
	      :: left /* STEP_YIELD */
	      :: !left -> break
	      fi
	   od;
	   atomic { entered = false; done = false }
	od
}

init
{
	/* When nothing else can move. */
	timeout;
	assert(inbox == 0 && list == 0 && !owned)
}
