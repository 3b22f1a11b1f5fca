/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The poller app: what an application's look does, what wakes the NAPI when the application does
 * not come back, and that the two never poll at once. On the virtual machine the test itself is the
 * application, outside of all runners; on the host it has a thread.
 */
#include "scene.h"

#include "timer.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include <core/engine.h>
#include <core/napi.h>

struct application {
	struct scene s;
	struct context *context;
	struct napi *napi;
};

static void begin(struct application *app, enum poller poller)
{
	/* One packet a microsecond, so that a poll of eight is not over at once. */
	scene_begin_exact(&app->s, (struct engine_config){.poller = poller});
	app->napi = app->s.a->queue[0].napi;
	assert_int_equal(engine_context_open(app->s.engine, &app->context), 0);
	scene_run(&app->s, NSEC_PER_MSEC);
}

static void end(struct application *app)
{
	engine_context_close(app->context);
	scene_end(&app->s);
}

static void set(struct application *app, const struct queue_settings *settings)
{
	scene_set(&app->s, "a", -1, *settings);
	scene_run(&app->s, 100 * NSEC_PER_USEC);
}

static void deferral_set(struct application *app, uint32_t defer, uint32_t flush, uint32_t suspend)
{
	set(app, &(struct queue_settings){
			 .napi_defer_hard_irqs_set = true,
			 .napi_defer_hard_irqs = defer,
			 .gro_flush_timeout_set = true,
			 .gro_flush_timeout = flush,
			 .irq_suspend_timeout_set = true,
			 .irq_suspend_timeout = suspend,
		 });
}

/* So many packets come in by port a, each with its interrupt. */
static void arrive(struct application *app, uint32_t n)
{
	struct packet *v[PACKET_VECTOR_MAX];

	assert_int_equal(packet_alloc(&app->context->cache, v, n), n);
	for (uint32_t i = 0; i < n; i++) {
		memset(v[i]->data, 2, SCENE_FRAME);
		v[i]->len = v[i]->total = SCENE_FRAME;
	}
	assert_int_equal(mem_port_send(app->s.a, v, n), n);
}

/* What came out at port b is taken away. */
static void clear(struct application *app)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n;

	while ((n = mem_port_receive(app->s.b, v, PACKET_VECTOR_MAX)))
		packet_free(&app->context->cache, v, n);
}

static int look(struct application *app, bool prefer, uint32_t budget)
{
	struct busy_poll how = {.prefer = prefer, .budget = budget};

	return napi_busy_loop(app->napi, app->context, &how, NULL, NULL);
}

/* Whether so many have been received after so long, and not before. */
static void received_after(struct application *app, uint64_t received, int64_t ns)
{
	scene_run(&app->s, ns - 5 * NSEC_PER_USEC);
	assert_true(PORT_SUM(app->s.a, received) < received);
	scene_run(&app->s, 15 * NSEC_PER_USEC);
	assert_int_equal(PORT_SUM(app->s.a, received), received);
	clear(app);
}

static void received_at_once(struct application *app, uint64_t received)
{
	scene_run(&app->s, 15 * NSEC_PER_USEC);
	assert_int_equal(PORT_SUM(app->s.a, received), received);
	clear(app);
}

static void a_look(void **state)
{
	struct application app;

	(void)state;
	begin(&app, POLLER_APP);
	assert_int_equal(look(&app, false, 0), 0);
	arrive(&app, 20);
	assert_int_equal(look(&app, false, 0), BUSY_POLL_BUDGET);
	/* It left some, so softirq goes on, and has the token now. */
	assert_int_equal(look(&app, false, 0), -EAGAIN);
	received_at_once(&app, 20);
	arrive(&app, 5);
	assert_int_equal(look(&app, false, 3), 3);
	received_at_once(&app, 25);
	arrive(&app, 5);
	assert_int_equal(look(&app, false, NAPI_WEIGHT_MAX), 5);
	assert_int_equal(PORT_SUM(app.s.a, received), 30);
	clear(&app);
	end(&app);
}

static bool enough(void *arg)
{
	return ++*(int *)arg == 3;
}

static void ends_when_told(void **state)
{
	struct busy_poll how = {.usecs = 1000, .budget = 2};
	struct application app;
	int asked = 0;

	(void)state;
	begin(&app, POLLER_APP);
	arrive(&app, 20);
	assert_int_equal(napi_busy_loop(app.napi, app.context, &how, enough, &asked), 6);
	assert_int_equal(asked, 3);
	received_at_once(&app, 20);
	end(&app);
}

static void refuses(void **state)
{
	struct application app;

	(void)state;
	for (unsigned poller = 0; poller < POLLER_RUNNER_MAX; poller++) {
		begin(&app, (enum poller)poller);
		assert_int_equal(look(&app, true, 0), -EOPNOTSUPP);
		end(&app);
	}
	begin(&app, POLLER_APP);
	assert_int_equal(napi_disable(app.napi, NSEC_PER_SEC), 0);
	assert_int_equal(look(&app, true, 0), -EAGAIN);
	arrive(&app, 1);
	assert_int_equal(look(&app, true, 0), -EAGAIN);
	assert_int_equal(PORT_SUM(app.s.a, received), 0);
	assert_int_equal(napi_enable(app.napi), 0);
	received_at_once(&app, 1);
	end(&app);
}

/* Asks the look to give the NAPI away, and counts how often it is between two steps. */
static uint32_t passes;

static void pass_count(struct machine *m)
{
	(void)m;
	passes++;
}

static bool switch_begin(void *arg)
{
	struct application *app = arg;

	engine_lock(app->s.engine);
	assert_int_equal(napi_switch_begin(app->napi, POLLER_THREAD, app->napi->softnet, NULL), 0);
	engine_unlock(app->s.engine);
	return false;
}

/*
 * From when it has given the token up to its end a look is one step: after a quiesce that begins
 * then there may be no engine any more.
 */
static void ends_in_one_step(void **state)
{
	struct busy_poll how = {.usecs = 1000};
	const struct machine_ops *real;
	struct machine_ops counting;
	struct application app;

	(void)state;
	begin(&app, POLLER_APP);
	real = app.s.machine->ops;
	counting = *real;
	counting.pass = pass_count;
	passes = 0;
	app.s.machine->ops = &counting;
	assert_int_equal(napi_busy_loop(app.napi, app.context, &how, switch_begin, &app), 0);
	app.s.machine->ops = real;
	assert_int_equal(passes, 1);
	assert_int_equal(napi_poller(app.napi), POLLER_THREAD);
	engine_lock(app.s.engine);
	napi_settle(app.napi);
	engine_unlock(app.s.engine);
	end(&app);
}

/* While it comes back there is no interrupt; when it does not, there is one poll in time. */
static void suspends(void **state)
{
	struct application app;
	uint64_t polls, before;

	(void)state;
	begin(&app, POLLER_APP);
	deferral_set(&app, 0, 0, NSEC_PER_MSEC);
	arrive(&app, 2);
	assert_int_equal(look(&app, true, 0), 2);
	polls = PORT_SUM(app.s.a, polls);
	for (uint32_t i = 0; i < 10; i++) {
		arrive(&app, 3);
		scene_run(&app.s, 900 * NSEC_PER_USEC);
		assert_int_equal(PORT_SUM(app.s.a, polls), polls + i);
		assert_int_equal(look(&app, true, 0), 3);
		clear(&app);
	}
	before = PORT_SUM(app.s.a, received);
	arrive(&app, 1);
	received_after(&app, before + 1, NSEC_PER_MSEC);
	/* It stays away: interrupts are on again. */
	arrive(&app, 1);
	received_at_once(&app, before + 2);
	end(&app);
}

/* Without having found anything: by the other two settings. */
static void defers_after_a_look_in_vain(void **state)
{
	struct application app;
	uint64_t polls;

	(void)state;
	begin(&app, POLLER_APP);
	deferral_set(&app, 2, 100000, NSEC_PER_MSEC);
	arrive(&app, 1);
	assert_int_equal(look(&app, true, 0), 1);
	assert_int_equal(look(&app, true, 0), 0);
	arrive(&app, 1);
	received_after(&app, 2, 100 * NSEC_PER_USEC);
	/*
	 * That poll had one: two more, in vain, until interrupts are on; and one for the packet's
	 * interrupt, which was remembered.
	 */
	polls = PORT_SUM(app.s.a, polls);
	scene_run(&app.s, NSEC_PER_MSEC);
	assert_int_equal(PORT_SUM(app.s.a, polls), polls + 2 + 1);
	arrive(&app, 1);
	received_at_once(&app, 3);
	end(&app);
}

/* napi_defer_hard_irqs holds whoever polls. */
static void defers_with(enum poller poller)
{
	struct application app;
	uint64_t polls;

	if (poller == POLLER_BUSY_POLL) /* has no interrupts to defer */
		return;
	begin(&app, poller);
	deferral_set(&app, 3, 100000, 0);
	scene_run(&app.s, NSEC_PER_MSEC);
	polls = PORT_SUM(app.s.a, polls);
	arrive(&app, 1);
	received_at_once(&app, 1);
	arrive(&app, 1);
	received_after(&app, 2, 90 * NSEC_PER_USEC);
	scene_run(&app.s, NSEC_PER_MSEC);
	assert_int_equal(PORT_SUM(app.s.a, polls), polls + 2 + 3 + 1);
	arrive(&app, 1);
	received_at_once(&app, 3);
	deferral_set(&app, 0, 0, 0);
	scene_run(&app.s, NSEC_PER_MSEC);
	arrive(&app, 1);
	received_at_once(&app, 4);
	arrive(&app, 1);
	received_at_once(&app, 5);
	end(&app);
}

static void defers(void **state)
{
	(void)state;
	over_pollers(defers_with);
}

/* Suspended, with a packet that waits: it is taken along, wherever polling goes. */
static void switches_while_suspended(enum poller poller)
{
	struct queue_settings to = {.poller_set = true, .poller = poller};
	struct application app;

	begin(&app, POLLER_APP);
	deferral_set(&app, 5, 200000000, 500000000);
	arrive(&app, 1);
	assert_int_equal(look(&app, true, 0), 1);
	arrive(&app, 1);
	if (poller == POLLER_APP) {
		assert_int_equal(napi_disable(app.napi, NSEC_PER_SEC), 0);
		assert_int_equal(napi_enable(app.napi), 0);
	}
	set(&app, &to);
	assert_int_equal(PORT_SUM(app.s.a, received), 2);
	clear(&app);
	if (poller != POLLER_APP)
		assert_int_equal(look(&app, true, 0), -EOPNOTSUPP);
	to.poller = POLLER_APP;
	set(&app, &to);
	scene_run(&app.s, 3 * NSEC_PER_SEC);
	arrive(&app, 1);
	assert_int_equal(look(&app, true, 0), 1);
	clear(&app);
	assert_int_equal(engine_port_remove(app.s.engine, app.s.a, NULL), 0);
	end(&app);
}

static void switches(void **state)
{
	(void)state;
	over_pollers(switches_while_suspended);
}

/* An application that prefers to poll gets what softirq is saturated with. */
struct eager {
	struct application *app;
	uint32_t found, looks;
};

static struct step eager_step(void *arg)
{
	struct eager *eager = arg;
	struct busy_poll how = {.usecs = 5, .prefer = true};
	int rc = napi_busy_loop(eager->app->napi, eager->app->context, &how, NULL, NULL);

	eager->looks++;
	if (rc > 0)
		eager->found += (uint32_t)rc;
	return STEP(STEP_YIELD);
}

static void is_handed_what_is_saturated(void **state)
{
	struct application app;
	struct eager eager = {.app = &app};
	struct runner_config config = {.name = "eager", .step = eager_step, .arg = &eager};
	struct source source = {.scene = &app.s, .burst = 64, .interval = 20 * NSEC_PER_USEC};
	struct sink sink = {.scene = &app.s};
	struct runner *runner;

	(void)state;
	begin(&app, POLLER_APP);
	source.port = app.s.a;
	sink.port = app.s.b;
	sink_start(&sink);
	source_start(&source);
	scene_run(&app.s, 10 * NSEC_PER_MSEC);
	assert_int_equal(runner_start(app.s.machine, &config, &runner, NULL), 0);
	scene_run(&app.s, 50 * NSEC_PER_MSEC);
	assert_true(eager.found > 100);
	assert_true(PORT_SUM(app.s.a, received) > eager.found / 2);
	/* Control gets its turn beside it. */
	assert_int_equal(napi_disable(app.napi, 10 * NSEC_PER_MSEC), 0);
	assert_int_equal(napi_enable(app.napi), 0);
	runner_stop(runner);
	source_stop(&source);
	scene_drain(&app.s, app.s.a, source.sent);
	scene_run(&app.s, NSEC_PER_MSEC);
	sink_stop(&sink);
	assert_int_equal(sink.disorder, 0);
	end(&app);
}

/* Cases 11 and 14: packets without end, and what each costs. */
struct endless {
	struct handler handler;
	int64_t packet_ns;
};

static void endless_input(struct handler *handler, struct context *context, struct port *in,
			  struct packet **v, uint32_t n)
{
	machine_charge(in->machine, ((struct endless *)handler)->packet_ns * n);
	packets_return(context, in, v, n);
}

/* The application always finds packets, and is never done: timers and control proceed. */
static void beside_endless_looks(int64_t packet_ns, int64_t bound)
{
	static const struct handler_ops ops = {.name = "endless", .input = endless_input};
	struct endless endless = {.handler.ops = &ops, .packet_ns = packet_ns};
	struct application app;
	struct eager eager = {.app = &app};
	struct runner_config config = {.name = "eager", .step = eager_step, .arg = &eager};
	struct timer timer;
	struct runner *runner;

	begin(&app, POLLER_APP);
	assert_int_equal(engine_handler_set(app.s.engine, app.s.a, &endless.handler, NULL), 0);
	scene_fill(&app.s, app.s.a, 640);
	cpuset_add(&config.placement.cpus, 0);
	assert_int_equal(runner_start(app.s.machine, &config, &runner, NULL), 0);
	timer_start(&timer, app.s.machine, config.placement);
	scene_run(&app.s, 500 * NSEC_PER_MSEC);
	print_message("    %u packets found\n", eager.found);
	assert_true(eager.found > 0);
	print_message("    %u times, %lld us late at most\n", timer.fired,
		      (long long)(timer.late / NSEC_PER_USEC));
	assert_true(timer.fired > 20);
	assert_true(timer.late <= bound);
	for (int i = 0; i < 2 * POLLER_MAX; i++) {
		int64_t took;

		assert_int_equal(napi_poller_set(app.napi,
						 i % 2 ? POLLER_APP : (enum poller)(i / 2),
						 NSEC_PER_SEC, &took, NULL),
				 0);
		assert_true(took <= bound);
		scene_run(&app.s, NSEC_PER_MSEC);
	}
	runner_stop(runner);
	runner_stop(timer.runner);
	scene_calm(&app.s, app.s.a);
	end(&app);
}

static void case_14_other_work(void **state)
{
	(void)state;
	beside_endless_looks(0, 10 * NSEC_PER_MSEC);
}

/* The first poll, softirq's, takes 64 ms; then they get fewer packets. */
static void case_11_slow_handler(void **state)
{
	(void)state;
	beside_endless_looks(NSEC_PER_MSEC, 70 * NSEC_PER_MSEC);
}

/* The host: an application's thread, which looks for long and comes back at once. */
struct thread {
	struct scene s;
	pthread_t thread;
	struct napi *_Atomic napi; /* NULL: the port goes, or has gone */
	struct context *context;
	uint32_t usecs;
	bool prefer;
	_Atomic bool stop;
	_Atomic int64_t began; /* the look, or the one before it; later than this it really did */
	_Atomic uint32_t looks, found;
	_Atomic int error;
};

static bool thread_told(void *arg)
{
	return atomic_load(&((struct thread *)arg)->stop);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	struct busy_poll how = {.usecs = t->usecs, .prefer = t->prefer};

	while (!atomic_load(&t->stop)) {
		struct napi *napi;
		int rc = 0;

		atomic_store(&t->began, machine_now(t->s.machine));
		context_enter(t->context);
		napi = atomic_load(&t->napi);
		if (napi)
			rc = napi_busy_loop(napi, t->context, &how, thread_told, t);
		context_leave(t->context);
		atomic_fetch_add(&t->looks, 1);
		if (rc > 0)
			atomic_fetch_add(&t->found, (uint32_t)rc);
		else if (rc < 0 && rc != -EAGAIN && rc != -EOPNOTSUPP)
			atomic_store(&t->error, rc);
		if (!napi)
			usleep(1000);
	}
	return NULL;
}

static void thread_start(struct thread *t)
{
	atomic_store(&t->stop, false);
	atomic_store(&t->napi, t->s.a->queue[0].napi);
	assert_int_equal(pthread_create(&t->thread, NULL, thread_main, t), 0);
}

static void thread_end(struct thread *t)
{
	atomic_store(&t->stop, true);
	assert_int_equal(pthread_join(t->thread, NULL), 0);
	assert_int_equal(atomic_load(&t->error), 0);
}

/* Softirq polls once when the port is added, so it is the application from the second poll on. */
static void looks_for_long(struct thread *t)
{
	scene_polled(&t->s, t->s.a, 100);
}

static bool has_found(void *arg)
{
	return atomic_load(&((struct thread *)arg)->found) > 0;
}

static void await(struct thread *t, bool (*done)(void *arg))
{
	assert_int_equal(scene_wait(t->s.machine, done, t), 0);
}

/* Live, to every other poller and back, while it is inside of a poll and between two. */
static void threads_switch(void **state)
{
	struct thread t = {.usecs = 200, .prefer = true};
	struct queue_settings settings = {.irq_suspend_timeout_set = true,
					  .irq_suspend_timeout = NSEC_PER_MSEC};
	struct source source = {.scene = &t.s, .burst = 8, .interval = 20 * NSEC_PER_USEC};
	struct sink sink = {.scene = &t.s};

	(void)state;
	scene_begin(&t.s, false, 0, POLLER_APP);
	assert_int_equal(engine_context_open(t.s.engine, &t.context), 0);
	scene_set(&t.s, "a", -1, settings);
	source.port = t.s.a;
	sink.port = t.s.b;
	sink_start(&sink);
	source_start(&source);
	thread_start(&t);
	await(&t, has_found);
	settings.poller_set = true;
	for (int i = 0; i < 40; i++) {
		settings.poller = (enum poller)(i % 2 ? POLLER_APP : i / 2 % POLLER_MAX);
		scene_set(&t.s, "a", -1, settings);
		if (i == 20) { /* it ends, with all that it was in the middle of */
			thread_end(&t);
			thread_start(&t);
		}
		scene_run(&t.s, 2 * NSEC_PER_MSEC);
	}
	source_stop(&source);
	scene_drain(&t.s, t.s.a, source.sent);
	thread_end(&t);
	scene_run(&t.s, 5 * NSEC_PER_MSEC);
	sink_stop(&sink);
	assert_int_equal(sink.received, PORT_SUM(t.s.a, transmitted));
	assert_int_equal(sink.disorder, 0);
	engine_context_close(t.context);
	scene_end(&t.s);
}

/*
 * A change elsewhere waits for everyone that could see what was there before, and ends no look.
 * False: it took as long as a look does, which may have ended by itself.
 */
static bool change_ends_no_look(struct thread *t)
{
	int64_t ends = atomic_load(&t->began) + BUSY_POLL_USECS_MAX * NSEC_PER_USEC;
	uint32_t looks = atomic_load(&t->looks), after;

	assert_int_equal(engine_handler_set(t->s.engine, t->s.b, NULL, NULL), 0);
	assert_int_equal(engine_handler_set(t->s.engine, t->s.b, t->s.cross, NULL), 0);
	after = atomic_load(&t->looks);
	if (machine_now(t->s.machine) >= ends)
		return false;
	assert_int_equal(after, looks);
	return true;
}

/* It looks for seconds; what control does is over long before, and so is the look. */
static void removes_under_a_look(void **state)
{
	struct thread t = {.usecs = BUSY_POLL_USECS_MAX};
	uint32_t looks;
	int tries = 0;

	(void)state;
	scene_begin(&t.s, false, 0, POLLER_APP);
	assert_int_equal(engine_context_open(t.s.engine, &t.context), 0);
	thread_start(&t);
	looks_for_long(&t);
	while (!change_ends_no_look(&t))
		assert_true(++tries < 10);
	looks = atomic_load(&t.looks);
	scene_disable(t.napi);
	for (int i = 0; i < SCENE_PATIENCE * 1000 && atomic_load(&t.looks) == looks; i++)
		usleep(1000);
	assert_true(atomic_load(&t.looks) > looks);
	assert_int_equal(napi_enable(t.s.a->queue[0].napi), 0);
	atomic_store(&t.napi, NULL);
	scene_port_remove(t.s.a);
	thread_end(&t);
	engine_context_close(t.context);
	scene_end(&t.s);
}

static void engine_ends_under_a_look(void **state)
{
	struct thread t = {.usecs = BUSY_POLL_USECS_MAX, .prefer = true};

	(void)state;
	scene_begin(&t.s, false, 0, POLLER_APP);
	assert_int_equal(engine_context_open(t.s.engine, &t.context), 0);
	thread_start(&t);
	looks_for_long(&t);
	atomic_store(&t.stop, true); /* after this look, however that ends */
	engine_destroy(t.s.engine);
	assert_int_equal(pthread_join(t.thread, NULL), 0);
	engine_context_close(t.context);
	machine_destroy(t.s.machine);
	free(t.s.cross);
}

/*
 * Its work on one packet takes until the watchdog has noticed, token in hand: who has it is said.
 * When the packet comes between two looks it is softirq that takes it, and another one has to come.
 */
struct slow {
	struct handler handler;
	uint64_t noticed; /* before */
	_Atomic uint32_t inputs;
};

static bool is_noticed(const struct slow *slow, const struct port *port)
{
	return counter_read(&port->queue[0].napi->record->stuck) > slow->noticed;
}

static void slow_input(struct handler *handler, struct context *context, struct port *in,
		       struct packet **v, uint32_t n)
{
	struct slow *slow = (struct slow *)handler;
	bool application = atomic_load(&in->queue[0].napi->record->app_tid) > 0;

	for (int i = 0; application && i < SCENE_PATIENCE * 1000 && !is_noticed(slow, in); i++)
		usleep(1000);
	atomic_fetch_add(&slow->inputs, n);
	packet_drop(context, v, n, DROP_HANDLER);
}

static void one_arrives(struct thread *t, struct slow *slow, struct packet *p)
{
	uint32_t before = atomic_load(&slow->inputs);

	p->len = p->total = SCENE_FRAME;
	memset(p->data, 2, SCENE_FRAME);
	assert_int_equal(mem_port_send(t->s.a, &p, 1), 1);
	for (int i = 0; i < SCENE_PATIENCE * 1000 && atomic_load(&slow->inputs) == before; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&slow->inputs), before + 1);
}

static void watchdog_names_the_application(void **state)
{
	static const struct handler_ops ops = {.name = "slow", .input = slow_input};
	struct slow slow = {.handler.ops = &ops};
	struct thread t = {.usecs = BUSY_POLL_USECS_MAX};
	struct packet *v[10];
	uint32_t sent = 0;

	(void)state;
	scene_begin(&t.s, false, 0, POLLER_APP);
	assert_int_equal(engine_context_open(t.s.engine, &t.context), 0);
	assert_int_equal(engine_handler_set(t.s.engine, t.s.a, &slow.handler, NULL), 0);
	assert_int_equal(packet_alloc(&t.context->cache, v, 10), 10);
	thread_start(&t);
	looks_for_long(&t);
	slow.noticed = counter_read(&t.s.a->queue[0].napi->record->stuck);
	while (sent < 10 && !is_noticed(&slow, t.s.a))
		one_arrives(&t, &slow, v[sent++]);
	thread_end(&t);
	packet_free(&t.context->cache, v + sent, 10 - sent);
	/* Waits for the tick that noticed it to be over: then it has said so. */
	assert_int_equal(engine_handler_set(t.s.engine, t.s.a, t.s.cross, NULL), 0);
	assert_non_null(scene_logged(&t.s, "a/0: scheduled, but not polled for a second; poller "
					   "app, an application's thread "));
	engine_context_close(t.context);
	scene_end(&t.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look),
		cmocka_unit_test(ends_when_told),
		cmocka_unit_test(refuses),
		cmocka_unit_test(ends_in_one_step),
		cmocka_unit_test(suspends),
		cmocka_unit_test(defers_after_a_look_in_vain),
		cmocka_unit_test(defers),
		cmocka_unit_test(switches),
		cmocka_unit_test(is_handed_what_is_saturated),
		cmocka_unit_test(case_11_slow_handler),
		cmocka_unit_test(case_14_other_work),
		cmocka_unit_test(threads_switch),
		cmocka_unit_test(removes_under_a_look),
		cmocka_unit_test(engine_ends_under_a_look),
		cmocka_unit_test(watchdog_names_the_application),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
