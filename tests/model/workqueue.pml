/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who works on the queue of the workqueue poller: src/poller/workqueue.c as a model, with its names.
 *
 * Anyone puts NAPIs into the inbox and wakes one idle worker; a worker takes one NAPI, and puts it
 * back behind the others when somebody waits. Here a NAPI is no more than a number of them: that one
 * is in one place only is what tests/model/napi.pml shows.
 *
 * Held when nothing moves any more: nobody waits, whatever the workers were doing.
 */

#ifndef NAPIS
#define NAPIS 3
#endif
#ifndef AGAIN /* polls that leave work, of all NAPIs together */
#define AGAIN 2
#endif
#define WORKERS 2

byte inbox = 0;
byte list = 0;
bool listed = false;
bool idle[WORKERS] = false;
bool woken[WORKERS] = true; /* the first step comes by itself */
byte napis = NAPIS, again = AGAIN;

/* worker_wake(): the lowest idle one, if there is one. */
inline worker_wake()
{
	found = WORKERS;
	atomic {
		if
		:: idle[0] -> idle[0] = false; found = 0
		:: !idle[0] && idle[1] -> idle[1] = false; found = 1
		:: !idle[0] && !idle[1]
		fi
	}
	if
	:: found < WORKERS -> woken[found] = true
	:: found == WORKERS
	fi;
	found = WORKERS
}

/* workqueue_dispatch(): two at once. */
active [2] proctype dispatcher()
{
	byte found = WORKERS;

end:
	do
	:: atomic { napis > 0 -> napis-- }
#ifdef BUG_WAKES_BEFORE_PUTTING
	   worker_wake();
	   inbox++
#else
	   inbox++;
	   worker_wake()
#endif
	od
}

inline queue_waiting()
{
	waiting = inbox > 0;
	if
	:: !waiting -> waiting = listed
	:: waiting
	fi
}

/* All under the lock, which is one step here. */
inline queue_take()
{
	atomic {
		list = list + inbox;
		inbox = 0;
		taken = list > 0;
		list = list - taken;
#ifdef BUG_TAKE_FORGETS_LISTED
		listed = false
#else
		listed = list > 0
#endif
	}
}

inline queue_put_back()
{
	atomic { list = list + inbox + 1; inbox = 0; listed = true };
	worker_wake()
}

/* worker_step(), again and again; STEP_WAIT is the end of the inner loop. */
proctype worker(byte me)
{
	bool waiting = false, taken = false;
	byte found = WORKERS;

end:
	do
	:: atomic { woken[me] -> woken[me] = false }
	   do
	   :: idle[me] = false;
	      queue_waiting();
	      if
	      :: waiting -> queue_take()
	      :: !waiting
	      fi;
	      if
	      :: !taken -> /* worker_rest() */
#ifdef BUG_RESTS_WITHOUT_LOOKING
		idle[me] = true;
		waiting = false;
#elif defined(BUG_LOOKS_BEFORE_RESTING)
		queue_waiting();
		idle[me] = true;
#else
		idle[me] = true;
		queue_waiting();
#endif
		if
		:: waiting
		:: !waiting -> break
		fi
	      :: taken ->
		do
		:: atomic { again > 0 -> again-- }
		   queue_waiting();
		   if
		   :: waiting -> queue_put_back(); break
		   :: !waiting
		   fi
		:: break /* the NAPI is complete */
		od;
		taken = false
	      fi
	   od
	od
}

init
{
	atomic { run worker(0); run worker(1) }
	/* When nothing else can move. */
	timeout;
	assert(inbox == 0 && list == 0)
}
