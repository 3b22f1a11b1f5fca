/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <urcu/urcu-qsbr.h>

#include "machine/current.h"
#include "machine/host.h"

/* Between runner_start and the thread that it makes. */
struct host_start {
	const struct placement *placement;
	struct error *err;
	int rc;
	sem_t done;
};

/* What the kernel compares is 32 bits; all flags are in the lower ones. */
static uint32_t *signal_half(struct host_runner *r)
{
	return (uint32_t *)&r->signal + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

void host_runner_signal(struct host_runner *r, uint64_t bits)
{
	static const uint64_t one = 1;
	uint64_t before;

	if (runner_current() == &r->base) {
		r->self |= bits;
		return;
	}
	before = atomic_fetch_or(&r->signal, bits);
	/* The first to signal a sleeper wakes it. Nobody reads the eventfd, nor ever fills it. */
	if (before == SIGNAL_DOZING)
		syscall(SYS_futex, signal_half(r), FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	else if (before == SIGNAL_SLEEPING && write(r->event, &one, sizeof(one)) < 0)
		assert(!"an eventfd takes what is written");
}

void host_runner_wake(struct runner *runner)
{
	host_runner_signal(host_runner_of(runner), SIGNAL_WOKEN);
}

static uint64_t signals_take(struct host_runner *r)
{
	uint64_t signals = r->self;

	r->self = 0;
	if (atomic_load_explicit(&r->signal, memory_order_relaxed))
		signals |= atomic_fetch_and(&r->signal, SIGNAL_STOP);
	return signals & ~(uint64_t)(SIGNAL_SLEEPING | SIGNAL_DOZING);
}

/* epoll_wait until a time of the monotonic clock; how many events. */
static int events_wait(struct host_runner *r, int64_t until)
{
	static _Atomic bool coarse; /* the kernel is older than epoll_pwait2 */
	struct timespec timeout, *bound = NULL;
	int64_t left = 0;
	int n;

	if (until != TIME_NEVER) {
		left = until - host_now(r->base.machine);
		if (left < 0)
			left = 0;
		timeout = (struct timespec){left / NSEC_PER_SEC, left % NSEC_PER_SEC};
		bound = &timeout;
	}
	if (!atomic_load_explicit(&coarse, memory_order_relaxed)) {
		n = epoll_pwait2(r->epoll, r->events, HOST_EVENTS_MAX, bound, NULL);
		if (n >= 0 || (errno != ENOSYS && errno != EPERM))
			return n < 0 ? 0 : n;
		atomic_store_explicit(&coarse, true, memory_order_relaxed);
	}
	left = (left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	if (left > INT32_MAX)
		left = INT32_MAX;
	n = epoll_wait(r->epoll, r->events, HOST_EVENTS_MAX, bound ? (int)left : -1);
	return n < 0 ? 0 : n;
}

/* Takes what has come, without waiting. Returns the signals, and how many handlers were called. */
static uint64_t runner_look(struct host_runner *r, unsigned *handled)
{
	uint64_t signals = signals_take(r);
	int n = 0;

	if (atomic_load_explicit(&r->descriptors, memory_order_relaxed)) {
		n = epoll_wait(r->epoll, r->events, HOST_EVENTS_MAX, 0);
		if (n < 0)
			n = 0;
	}
	*handled = host_irq_dispatch(r, n, signals);
	return signals;
}

/* Until the word is no longer DOZING, or a time of the monotonic clock. */
static void doze(struct host_runner *r, int64_t until)
{
	struct timespec at, *bound = NULL;

	if (until != TIME_NEVER) {
		if (until < 0)
			until = 0;
		at = (struct timespec){until / NSEC_PER_SEC, until % NSEC_PER_SEC};
		bound = &at;
	}
	syscall(SYS_futex, signal_half(r), FUTEX_WAIT_BITSET_PRIVATE, SIGNAL_DOZING, bound, NULL,
		FUTEX_BITSET_MATCH_ANY);
}

static uint64_t runner_sleep(struct host_runner *r, uint64_t how, int64_t deadline,
			     unsigned *handled)
{
	struct host *h = host_of(r->base.machine);
	int64_t until = atomic_load(&r->earliest);
	uint64_t signals;
	bool was;
	int n = 0;

	if (deadline < until)
		until = deadline;
	was = host_offline(h);
	if (how == SIGNAL_DOZING)
		doze(r, until);
	else
		n = events_wait(r, until);
	host_online(h, was);
	signals = signals_take(r);
	*handled = host_irq_dispatch(r, n, signals);
	return signals;
}

/*
 * STEP_WAIT: until there is a reason for a step. Signals that are there already do not spare the
 * look at epoll: a runner that others keep waking would never see its descriptors.
 */
static void runner_wait(struct host_runner *r, int64_t deadline)
{
	for (;;) {
		uint64_t awake = 0;
		uint64_t signals;
		uint64_t how = atomic_load(&r->descriptors) ? SIGNAL_SLEEPING : SIGNAL_DOZING;
		unsigned handled;

		if (!r->self && atomic_compare_exchange_strong(&r->signal, &awake, how))
			signals = runner_sleep(r, how, deadline, &handled);
		else
			signals = runner_look(r, &handled);
		if (handled || signals & (SIGNAL_WOKEN | SIGNAL_STOP))
			return;
		if (deadline != TIME_NEVER && host_now(r->base.machine) >= deadline)
			return;
	}
}

static void runner_loop(struct host_runner *r)
{
	struct host *h = host_of(r->base.machine);
	unsigned handled;

	for (;;) {
		struct step step;

		host_quiescent(h);
		if (atomic_load_explicit(&r->signal, memory_order_relaxed) & SIGNAL_STOP)
			return;
		/* A handler's wake-up of its own runner asks for the step that follows anyway. */
		r->self &= ~(uint64_t)SIGNAL_WOKEN;
		step = r->step(r->arg);
		switch (step.verdict) {
		case STEP_AGAIN:
			break;
		case STEP_YIELD:
			runner_look(r, &handled);
			/* The fair class shares the CPU without being asked to. */
			if (atomic_load_explicit(&r->fifo, memory_order_relaxed))
				sched_yield();
			break;
		case STEP_WAIT:
			runner_wait(r, step.deadline);
			break;
		case STEP_EXIT:
			return;
		}
	}
}

/* Nice 0 is also what nobody has asked for: a program without privileges runs under nice(1) too. */
static int first_place(struct host_runner *r, const struct placement *asked, struct error *err)
{
	struct placement inherited = *asked;
	int rc = host_place(r, gettid(), asked, err);

	if (rc != -EPERM || asked->class != RUNNER_FAIR || asked->level)
		return rc;
	inherited.level = getpriority(PRIO_PROCESS, (id_t)gettid());
	return host_place(r, gettid(), &inherited, err);
}

static void *runner_main(void *arg)
{
	struct host_runner *r = arg;
	struct host_start *start = r->start;
	struct timespec used;
	bool placed;

	runner_current_set(&r->base);
	pthread_setname_np(pthread_self(), r->base.name);
	/* Deadlines are to the point: the default lets an ordinary thread sleep 50 us longer. */
	prctl(PR_SET_TIMERSLACK, 1);
	start->rc = first_place(r, start->placement, start->err);
	placed = !start->rc;
	atomic_store(&r->tid, gettid());
	sem_post(&start->done); /* and *start is gone */
	if (!placed)
		return NULL;
	urcu_qsbr_register_thread();
	runner_loop(r);
	urcu_qsbr_unregister_thread();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	atomic_store(&r->cpu_time, used.tv_sec * NSEC_PER_SEC + used.tv_nsec);
	atomic_store(&r->cpu, (unsigned)sched_getcpu());
	atomic_store(&r->tid, 0);
	return NULL;
}

void host_runner_free(struct host_runner *r)
{
	if (r->event >= 0)
		close(r->event);
	if (r->epoll >= 0)
		close(r->epoll);
	lock_destroy(&r->handlers);
	lock_destroy(&r->lock);
	free(r->armed);
	free(r->slots);
	free(r);
}

static int descriptors_open(struct host_runner *r)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLET,
		.data.u64 = HOST_EVENT_WAKE,
	};

	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll < 0)
		return -errno;
	r->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->event < 0)
		return -errno;
	if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, r->event, &event))
		return -errno;
	return 0;
}

static int runner_create(struct host *h, struct host_runner **out)
{
	struct host_runner *r = aligned_alloc(_Alignof(struct host_runner), sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	r->base.machine = &h->base;
	r->epoll = -1;
	r->event = -1;
	rc = lock_init(&r->handlers);
	if (rc) {
		free(r);
		return rc;
	}
	rc = lock_init(&r->lock);
	if (rc) {
		lock_destroy(&r->handlers);
		free(r);
		return rc;
	}
	rc = descriptors_open(r);
	if (rc) {
		host_runner_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

static int runner_take(struct host *h, struct host_runner **out)
{
	lock_acquire(&h->lock);
	*out = h->parked;
	if (h->parked)
		h->parked = h->parked->next_parked;
	h->running++;
	lock_release(&h->lock);
	return *out ? 0 : runner_create(h, out);
}

static void runner_park(struct host *h, struct host_runner *r)
{
	lock_acquire(&h->lock);
	h->running--;
	if (r) {
		r->next_parked = h->parked;
		h->parked = r;
	}
	lock_release(&h->lock);
}

static void runner_prepare(struct host_runner *r, const struct runner_config *config,
			   struct host_start *start)
{
	snprintf(r->base.name, sizeof(r->base.name), "%.*s", RUNNER_NAME_MAX - 1, config->name);
	atomic_store(&r->signal, 0);
	r->self = 0;
	r->step = config->step;
	r->arg = config->arg;
	atomic_store(&r->earliest, TIME_NEVER);
	r->start = start;
}

/* The thread inherits the signal mask: signals are for the program's own threads. */
static int thread_create(struct host_runner *r, void *(*start)(void *arg))
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&r->thread, NULL, start, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int host_runner_start(struct machine *m, const struct runner_config *config, struct runner **out,
		      struct error *err)
{
	struct host *h = host_of(m);
	struct host_start start = {.placement = &config->placement, .err = err};
	struct host_runner *r;
	int rc = runner_take(h, &r);

	if (rc) {
		runner_park(h, NULL);
		return error_set(err, rc, "%.15s: cannot make a runner: %s", config->name,
				 strerror(-rc));
	}
	sem_init(&start.done, 0, 0);
	runner_prepare(r, config, &start);
	rc = thread_create(r, runner_main);
	if (rc) {
		error_set(err, rc,
			  "%s: cannot make a thread: %s; look at ulimit -u and systemd's TasksMax",
			  r->base.name, strerror(-rc));
	} else {
		bool was = host_offline(h);

		while (sem_wait(&start.done))
			;
		if (start.rc)
			pthread_join(r->thread, NULL);
		host_online(h, was);
		rc = start.rc;
	}
	sem_destroy(&start.done);
	if (rc) {
		runner_park(h, r);
		return rc;
	}
	*out = &r->base;
	return 0;
}

void host_runner_stop(struct runner *runner)
{
	struct host_runner *r = host_runner_of(runner);
	struct host *h = host_of(runner->machine);
	bool was;

	assert(runner_current() != runner);
	host_runner_signal(r, SIGNAL_STOP);
	was = host_offline(h);
	pthread_join(r->thread, NULL);
	host_online(h, was);
	host_irq_detach_all(r);
	runner_park(h, r);
}
