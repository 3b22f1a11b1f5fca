/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The poll list of an engine CPU between irq/N and ksoftirqd/N: src/poller/softirq.c as a model,
 * with its names.
 *
 * Anyone puts NAPIs into the inbox. Whoever has set `active` takes the inbox to the list and polls
 * it; the interrupt runner stops at its limit with work left, which ksoftirqd then goes on with. The
 * deferral policy, which control changes at any time, says when: NEVER goes on by itself, LOOPED may
 * leave all to ksoftirqd at any time (ticks are not in the model), RUNNING does while ksoftirqd has
 * been woken and has not gone to sleep.
 *
 * Held at every step: one runner works on the list; what ksoftirqd holds and is about to go on with
 * is not taken for a ksoftirqd that sleeps; it does not go on with what the interrupt runner, woken
 * for NEVER, found it working on. Held when nothing moves any more: inbox and
 * list are empty, and nobody is active.
 */

#ifndef NAPIS
#define NAPIS 3
#endif
#ifndef LIMITS /* how many times a runner may stop with work left */
#define LIMITS 2
#endif
#ifndef CHANGES /* of the policy */
#define CHANGES 2
#endif
#define LIMIT 0
#define NEVER 1
#define LOOPED 2
#define RUNNING 3
#define IRQ 0
#define KSOFTIRQD 1

bool owned = false; /* `active` there, which is a keyword here */
byte inbox = 0;
byte list = 0;
byte working = 0; /* runners on the list */
bool woken[2] = false;
byte napis = NAPIS; /* to be scheduled */
byte limits = LIMITS;
byte policy = LIMIT;
byte changes = CHANGES;
byte wakes = 0;
byte rested = 0;
bool holds = false; /* ksoftirqd has work and goes on */
bool refused = false; /* the interrupt runner came under the policy NEVER of now, and was not let in */

/* softnet_deferral_set() */
active proctype control()
{
	byte to;

end:
	do
	:: atomic { changes > 0 -> changes--; select(to : LIMIT .. RUNNING); policy = to;
		refused = false }
	   if
	   :: to == NEVER -> woken[IRQ] = true
	   :: else
	   fi
	od
}

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

/* softirq_defers() */
inline softirq_defers()
{
	defers = false;
	if
	:: chosen == LOOPED -> defers = true
	:: chosen == RUNNING ->
	   defers = (wakes != rested);
	   assert(defers || !holds)
	:: true /* outside of the window; or another policy */
	fi;
	if
	:: defers ->
	   atomic { list = list + inbox; inbox = 0 }
	   defers = (list > 0)
	:: !defers
	fi
}

/* softirq_irq_step() */
active proctype irq()
{
	bool entered = false, left = false, done = false, defers = false, again = false;
	byte chosen = LIMIT;

end:
	do
	:: atomic { woken[IRQ] -> woken[IRQ] = false }
	   do
	   :: chosen = policy; /* only to be remembered */
	      active_enter();
	      if
	      :: entered ->
		atomic { chosen = policy; refused = false };
		softirq_defers();
		if
		:: !defers -> softirq_run()
		:: defers -> left = true
		fi;
#ifdef BUG_READS_THE_POLICY_TWICE
		again = (left && policy == NEVER);
		left = (left && chosen != NEVER);
#else
		again = (left && chosen == NEVER);
		left = (left && !again);
#endif
#ifdef BUG_WAKES_BEFORE_LEAVING
		if
		:: left -> wakes++; woken[KSOFTIRQD] = true
		:: !left
		fi;
#endif
		active_leave();
#if !defined(BUG_WAKES_BEFORE_LEAVING) && !defined(BUG_LEAVES_WORK)
		if
#ifdef BUG_TRUSTS_RUNNING
		:: left && !defers -> wakes++; woken[KSOFTIRQD] = true
		:: !left || defers
#else
		:: left -> wakes++; woken[KSOFTIRQD] = true
		:: !left
#endif
		fi;
#endif
		if
		:: left || (done && !again) -> break
		:: !left && (!done || again)
		fi
	      :: !entered -> atomic { refused = (chosen == NEVER && policy == NEVER) }; break
	      fi
	   od;
	   atomic { chosen = LIMIT; entered = false; left = false; done = false; defers = false; again = false }
	od
}

/* softirq_ksoftirqd_step() */
active proctype ksoftirqd()
{
	bool entered = false, left = false, done = false;
	byte seen = 0;

end:
	do
	:: atomic { woken[KSOFTIRQD] -> woken[KSOFTIRQD] = false }
	   do
	   :: seen = wakes;
	      active_enter();
	      left = false;
	      if
	      :: entered ->
		if
		:: list > 0 || inbox > 0 ->
		   if
#ifndef BUG_FORGETS_TO_RUN
		   :: wakes == rested -> rested = seen - 1
		   :: else
#else
		   :: true
#endif
		   fi;
		   softirq_run();
		   holds = left
		:: list == 0 && inbox == 0
		fi;
		active_leave();
#ifndef BUG_KSOFTIRQD_IGNORES_THE_INBOX
		left = left || !done
#endif
	      :: !entered
	      fi;
	      if
#ifndef BUG_KEEPS_IT_UNDER_NEVER
	      :: left && policy == NEVER -> woken[IRQ] = true; left = false
#endif
	      :: else
	      fi;
	      if
	      :: left -> assert(!refused) /* STEP_YIELD */
	      :: !left -> atomic { rested = seen; holds = false }; break
	      fi
	   od;
	   atomic { entered = false; done = false; seen = 0 }
	od
}

init
{
	/* When nothing else can move. */
	timeout;
	assert(inbox == 0 && list == 0 && !owned)
}
