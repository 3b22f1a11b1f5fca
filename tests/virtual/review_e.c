/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What reviewers asked of NAPI polling on a workqueue when it was proposed for the kernel (July
 * 2020), point by point. Each test names its point; where the point is not the workqueue's alone,
 * the body runs over all pollers. Costs are counted, or measured in virtual time. Of the same
 * review and elsewhere: remote kicks of RPS (backlog.c, case 17), fair turns (pollers.c).
 */
#include "scene.h"

#include "worker.h"

/* A kind of port whose poll is the test's: it works as long as there is work. */
static struct probe {
	_Atomic uint64_t calls, work, handled;
	_Atomic int inside, together; /* polls at one time; the most there were */
	_Atomic bool raises;	      /* each poll raises its own interrupt */
	struct irq *irq;
	_Atomic int64_t spin; /* ns that each poll takes, on the host too */
} probe;

static _Thread_local bool in_poll, in_handler;
static _Atomic unsigned interleaved;

static int probe_open(struct port *port, struct port_config *config, struct error *err)
{
	(void)config;
	(void)err;
	return port_queues_alloc(port, 1);
}

static void spin_for(struct machine *machine, int64_t ns)
{
	int64_t end = machine_now(machine) + ns;

	machine_charge(machine, ns);
	while (machine_now(machine) < end)
		;
}

static uint32_t probe_poll(struct napi *napi, struct context *context, uint32_t budget)
{
	int inside = atomic_fetch_add(&probe.inside, 1) + 1;
	uint64_t left = atomic_load(&probe.work);
	uint32_t n = left < budget ? (uint32_t)left : budget;
	(void)napi;
	interleaved += in_poll || in_handler;
	in_poll = true;
	if (inside > probe.together)
		probe.together = inside;
	if (probe.raises)
		irq_raise(probe.irq);
	if (probe.spin)
		spin_for(engine_machine(context->engine), probe.spin);
	probe.calls++;
	atomic_fetch_sub(&probe.work, n);
	in_poll = false;
	atomic_fetch_sub(&probe.inside, 1);
	return n;
}

static uint32_t probe_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			       uint32_t n)
{
	(void)queue;
	packet_drop(context, v, n, DROP_TX_DOWN);
	return n;
}

static void probe_close(struct port *port, struct context *context)
{
	(void)port;
	(void)context;
}

static const struct port_ops probe_ops = {
	.kind = "probe",
	.open = probe_open,
	.poll = probe_poll,
	.transmit = probe_transmit,
	.close = probe_close,
};

static void (*interrupt)(struct irq *irq);

static void probe_interrupt(struct irq *irq)
{
	interleaved += in_poll || in_handler;
	in_handler = true;
	probe.handled++;
	interrupt(irq);
	in_handler = false;
}

static struct port *probe_add(struct scene *s)
{
	struct port_config config = {
		.ops = &probe_ops, .kind = "probe", .target = "probe", .disabled = true};
	struct error err = {0};
	struct port *port;

	probe = (struct probe){0};
	interleaved = 0;
	if (engine_port_add(s->engine, &config, &port, &err))
		fail_msg("%s", err.text);
	probe.irq = &port->queue[0].irq;
	interrupt = port->queue[0].irq.handler;
	port->queue[0].irq.handler = probe_interrupt;
	assert_int_equal(napi_enable(port->queue[0].napi), 0);
	scene_run(s, 5 * NSEC_PER_MSEC);
	return port;
}

static void poller_set(struct scene *s, const char *port, enum poller poller)
{
	scene_set(s, port, -1, (struct queue_settings){.poller_set = true, .poller = poller});
}

static void cpu_set_to(struct scene *s, const char *port, unsigned cpu)
{
	scene_set(s, port, -1, (struct queue_settings){.cpu_set = true, .cpu = cpu});
}

/* A machine that counts the wake-ups that the engine asks for. */
static struct machine_ops counting;
static const struct machine_ops *counted;
static uint64_t wakes;

static void wake_counted(struct runner *r)
{
	wakes++;
	counted->runner_wake(r);
}

static void wakes_count(struct scene *s)
{
	counted = s->machine->ops;
	counting = *counted;
	counting.runner_wake = wake_counted;
	s->machine->ops = &counting;
	wakes = 0;
}

static void wakes_end(struct scene *s)
{
	s->machine->ops = counted;
}

/* Steps that a softirq NAPI's hundred schedules take; `others`: pollers that others use. */
static uint64_t steps_of_schedules(bool others)
{
	struct virtual_stats before, after;
	struct port *port;
	struct scene s;

	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	if (others) {
		poller_set(&s, "a", POLLER_WORKQUEUE);
		poller_set(&s, "b", POLLER_THREAD);
	}
	port = probe_add(&s);
	machine_virtual_stats(s.machine, &before);
	for (int i = 0; i < 100; i++) {
		assert_true(napi_schedule(port->queue[0].napi));
		scene_run(&s, NSEC_PER_MSEC / 2);
	}
	machine_virtual_stats(s.machine, &after);
	scene_end(&s);
	return after.steps - before.steps;
}

/*
 * "No extra test on the schedule fast path": one dispatch, which is one wake-up of one runner,
 * whoever the poller is; none when it is scheduled already; and what others use adds nothing.
 */
static void scheduling_costs_the_same(void **state)
{
	(void)state;
	for (unsigned poller = 0; poller < POLLER_MAX; poller++) {
		bool keeps = poller == POLLER_BUSY_POLL; /* its NAPIs are always scheduled */
		struct port *port;
		struct scene s;

		scene_begin(&s, true, 1, POLLER_SOFTIRQ);
		port = probe_add(&s);
		poller_set(&s, "probe", (enum poller)poller);
		scene_run(&s, NSEC_PER_MSEC);
		wakes_count(&s);
		assert_int_equal(napi_schedule(port->queue[0].napi), !keeps);
		assert_int_equal(wakes, !keeps);
		assert_false(napi_schedule(port->queue[0].napi));
		assert_int_equal(wakes, !keeps);
		wakes_end(&s);
		scene_run(&s, NSEC_PER_MSEC);
		scene_end(&s);
	}
	assert_int_equal(steps_of_schedules(true), steps_of_schedules(false));
}

/* "Never bypass napi_poll": every call of a poll function is accounted, and what came of it. */
static void all_is_accounted(enum poller poller)
{
	struct source source = {.burst = 5, .interval = 20 * NSEC_PER_USEC, .count = 5000};
	const struct napi_counters *c;
	struct port *port;
	struct scene s;

	scene_begin(&s, true, 2, poller);
	port = probe_add(&s);
	c = napi_counters(port->queue[0].napi);
	for (int i = 0; i < 50; i++) {
		atomic_fetch_add(&probe.work, 1 + (uint64_t)i * 3);
		napi_schedule(port->queue[0].napi);
		scene_run(&s, 50 * NSEC_PER_USEC);
	}
	source.scene = &s;
	source.port = s.a;
	source_start(&source);
	source_stop(&source);
	scene_drain(&s, s.a, source.count);
	assert_int_equal(napi_disable(port->queue[0].napi, NSEC_PER_SEC), 0);
	assert_int_equal(probe.work, 0);
	assert_int_equal(counter_read(&c->polls), probe.calls);
	assert_true(counter_read(&c->full_polls) > 0);
	/* The same for all pollers. */
	assert_int_equal(PORT_SUM(s.a, received), source.count);
	assert_int_equal(PORT_SUM(s.a, received_bytes), source.count * SCENE_FRAME);
	assert_int_equal(PORT_SUM(s.a, transmitted) + PORT_SUM(s.a, dropped[DROP_TX_FULL]),
			 source.count);
	assert_int_equal(napi_enable(port->queue[0].napi), 0);
	scene_end(&s);
}

static void accounting_is_not_bypassed(void **state)
{
	(void)state;
	over_pollers(all_is_accounted);
}

/* The most time between two steps of a worker, ns. */
static int64_t gap_most, gap_last;

static void gap_look(struct worker *w)
{
	if (gap_last && w->began - gap_last > gap_most)
		gap_most = w->began - gap_last;
	gap_last = w->began;
}

static struct engine_config on_cpu_0(enum poller poller)
{
	struct engine_config config = {.poller = poller, .workers = 2};

	cpuset_add(&config.cpus, 0);
	return config;
}

/*
 * "The ordinary reschedule call": with full polls for ever the worker gives way to its equals,
 * after a round's time and not only when it is done.
 */
static void worker_gives_way(void **state)
{
	struct worker equal = {.says = STEP(STEP_AGAIN), .charge = 10 * USEC, .act = gap_look};
	struct scene s;

	(void)state;
	gap_most = gap_last = 0;
	scene_begin_with(&s, true, 3, on_cpu_0(POLLER_WORKQUEUE));
	scene_circle(&s, s.a, 256);
	worker_start(&equal, s.machine, "equal", on(0, fair(0)));
	scene_run(&s, 200 * MSEC);
	assert_in_range(equal.steps * 10, 80000, 120000); /* us: its half */
	assert_true(gap_most <= 10 * MSEC);
	runner_stop(equal.runner);
	scene_calm(&s, s.a);
	scene_end(&s);
}

/* A busy host may not have run the poller for as long as the test has lasted. */
static bool probe_called(void *least)
{
	return probe.calls > *(const uint64_t *)least;
}

static bool probe_handled(void *ignored)
{
	(void)ignored;
	return probe.handled;
}

static void await(struct scene *s, bool (*done)(void *arg), void *arg)
{
	assert_int_equal(scene_wait(s->machine, done, arg), 0);
}

/*
 * "Poll functions assume that bottom halves are off": no interrupt handler and no other poll comes
 * in between on the runner that polls, although the poll itself asks for both.
 */
static void uninterrupted(bool virtual, enum poller poller)
{
	struct port *port;
	struct scene s;

	scene_begin(&s, virtual, 4, poller);
	port = probe_add(&s);
	probe.raises = true;
	probe.spin = 5 * NSEC_PER_USEC;
	for (int i = 0; i < 100; i++) {
		atomic_fetch_add(&probe.work, 200);
		irq_raise(&port->queue[0].irq);
		scene_run(&s, 100 * NSEC_PER_USEC);
	}
	await(&s, probe_called, &(uint64_t){0});
	if (poller != POLLER_BUSY_POLL)
		await(&s, probe_handled, NULL);
	probe.raises = false;
	assert_int_equal(interleaved, 0);
	scene_end(&s);
}

static void uninterrupted_virtual(enum poller poller)
{
	uninterrupted(true, poller);
}

static void uninterrupted_host(enum poller poller)
{
	uninterrupted(false, poller);
}

static void bottom_halves_are_off(void **state)
{
	(void)state;
	over_pollers(uninterrupted_virtual);
	over_pollers(uninterrupted_host);
}

/* One of each vector goes out by a wired port; the others go round for ever. */
static struct port *tee_out;

static void tee_input(struct handler *handler, struct context *context, struct port *in,
		      struct packet **v, uint32_t n)
{
	(void)handler;
	packets_return(context, in, v + 1, n - 1);
	port_transmit(context, tee_out, v, 1);
}

static const struct handler_ops tee_ops = {.name = "tee", .input = tee_input};
static struct handler tee = {.ops = &tee_ops};

/*
 * "Kicks are sent after a round": what others have to be told is told after each poll, also while
 * full polls follow on each other without an end.
 */
static void told_after_each_poll(enum poller poller)
{
	const struct transmit_counters *out;
	uint64_t polls, kicks;
	struct port *far;
	struct scene s;

	scene_begin(&s, true, 5, poller);
	tee_out = s.b;
	far = scene_port(&s, "far", NULL);
	assert_int_equal(mem_port_wire(s.b, far), 0);
	assert_int_equal(engine_handler_set(s.engine, s.a, &tee, NULL), 0);
	scene_fill(&s, s.a, 512);
	scene_drain(&s, far, 256); /* while the polls of a have gone on */
	out = s.b->queue[0].transmit;
	scene_run(&s, NSEC_PER_MSEC);
	assert_int_equal(napi_disable(s.a->queue[0].napi, NSEC_PER_SEC), 0);
	polls = PORT_SUM(s.a, polls) - PORT_SUM(s.a, empty_polls);
	kicks = counter_read(&out->kicks);
	assert_int_equal(kicks, polls);
	assert_int_equal(napi_enable(s.a->queue[0].napi), 0);
	scene_calm(&s, s.a);
	scene_end(&s);
}

static void kicks_follow_each_poll(void **state)
{
	(void)state;
	over_pollers(told_after_each_poll);
}

/* Sends one packet at a time, from a CPU of its own, and its handler sees how long each took. */
#define LATENCIES 2000
static struct {
	struct scene *scene;
	struct port *port;
	struct context *context;
	int64_t took[LATENCIES];
	unsigned n;
} ping;

static void ping_send(struct worker *w)
{
	int64_t now = machine_now(w->machine);
	struct packet *p;

	w->says = STEP_UNTIL(now + *(const int64_t *)w->arg);
	if (packet_alloc(&ping.context->cache, &p, 1) != 1)
		return;
	p->len = p->total = SCENE_FRAME;
	memset(p->data, 0, SCENE_FRAME);
	memcpy(p->data + 16, &now, sizeof(now));
	if (mem_port_send(ping.port, &p, 1) != 1)
		packet_free(&ping.context->cache, &p, 1);
}

static void ping_input(struct handler *handler, struct context *context, struct port *in,
		       struct packet **v, uint32_t n)
{
	(void)handler;
	(void)in;
	for (uint32_t i = 0; i < n && ping.n < LATENCIES; i++) {
		int64_t sent;

		memcpy(&sent, v[i]->data + 16, sizeof(sent));
		ping.took[ping.n++] = machine_now(engine_machine(context->engine)) - sent;
	}
	packet_drop(context, v, n, DROP_HANDLER);
}

static const struct handler_ops ping_ops = {.name = "ping", .input = ping_input};
static struct handler pinger = {.ops = &ping_ops};

static int earlier(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The p99 of a port that gets a packet each 50 us, beside so many saturated ones; virtual ns. */
static int64_t p99_beside(enum poller poller, unsigned saturated, unsigned workers)
{
	struct engine_config config = {.poller = poller, .workers = workers};
	int64_t interval = 50 * USEC;
	struct worker client = {.act = ping_send, .arg = &interval};
	struct port *busy[4];
	struct scene s;

	cpuset_add(&config.cpus, 0);
	cpuset_add(&config.cpus, 1);
	scene_begin_cpus(&s, true, 6, 3, config);
	for (unsigned i = 0; i < saturated; i++) {
		char name[4];

		snprintf(name, sizeof(name), "c%u", i);
		cpu_set_to(&s, name, 0);
		busy[i] = scene_port(&s, name, NULL);
		scene_circle(&s, busy[i], 256);
	}
	cpu_set_to(&s, "b", 1);
	assert_int_equal(engine_handler_set(s.engine, s.b, &pinger, NULL), 0);
	memset(&ping, 0, sizeof(ping));
	ping.scene = &s;
	ping.port = s.b;
	assert_int_equal(engine_context_open(s.engine, &ping.context), 0);
	worker_start(&client, s.machine, "client", on(2, fair(0)));
	scene_run(&s, 120 * MSEC);
	runner_stop(client.runner);
	engine_context_close(ping.context);
	for (unsigned i = 0; i < saturated; i++)
		scene_calm(&s, busy[i]);
	scene_calm(&s, s.b);
	scene_end(&s);
	assert_int_equal(ping.n, LATENCIES);
	qsort(ping.took, LATENCIES, sizeof(ping.took[0]), earlier);
	return ping.took[LATENCIES * 99 / 100];
}

static void apart(enum poller poller)
{
	int64_t alone = p99_beside(poller, 0, 2), beside = p99_beside(poller, 1, 2);

	printf("    p99 alone %lld ns, beside a saturated port %lld ns\n", (long long)alone,
	       (long long)beside);
	assert_true(beside <= 2 * alone);
}

/*
 * "How do several NAPIs or devices share the workers": a saturated port does not double another's
 * p99; and with as many saturated ones as would take all workers, it waits for its turn, which is a
 * poll of each.
 */
static void ports_are_isolated(void **state)
{
	int64_t alone, beside;

	(void)state;
	over_pollers(apart);
	alone = p99_beside(POLLER_WORKQUEUE, 0, 2);
	beside = p99_beside(POLLER_WORKQUEUE, 4, 2);
	printf("    workqueue, two workers, p99 beside four saturated ports: %lld ns\n",
	       (long long)beside);
	assert_true(beside <= alone + 4 * 64 * 200); /* a poll of 64 costs some 7 us */
}

/* Wake-ups a packet, when packets come one at a time, so far apart. */
static double wakes_a_packet(enum poller poller, int64_t interval)
{
	struct engine_config config = {.poller = poller};
	struct worker client = {.act = ping_send, .arg = &interval};
	struct scene s;
	double share;

	cpuset_add(&config.cpus, 0);
	cpuset_add(&config.cpus, 1);
	scene_begin_cpus(&s, true, 7, 3, config);
	assert_int_equal(engine_handler_set(s.engine, s.b, &pinger, NULL), 0);
	memset(&ping, 0, sizeof(ping));
	ping.port = s.b;
	assert_int_equal(engine_context_open(s.engine, &ping.context), 0);
	wakes_count(&s);
	worker_start(&client, s.machine, "client", on(2, fair(0)));
	scene_run(&s, 50 * MSEC);
	runner_stop(client.runner);
	wakes_end(&s);
	engine_context_close(ping.context);
	scene_run(&s, MSEC);
	share = (double)wakes / (double)PORT_SUM(s.b, received);
	scene_calm(&s, s.b);
	scene_end(&s);
	return share;
}

static void few_wakes(enum poller poller)
{
	double seldom = wakes_a_packet(poller, 100 * USEC), often = wakes_a_packet(poller, 1);

	printf("    wake-ups a packet: %.2f when idle, %.2f under load\n", seldom, often);
	assert_true(seldom <= 1.05);
	assert_true(often <= 0.5);
}

/* "Waking a thread to handle one packet at a time hurts": not where there is more to do. */
static void load_shares_wakes(void **state)
{
	(void)state;
	over_pollers(few_wakes);
}

static void consume(struct worker *w)
{
	struct packet *v[16];
	uint32_t n = mem_port_receive(w->arg, v, 16);

	machine_charge(w->machine, 200 * n);
	packet_free(&ping.context->cache, v, n);
	ping.n += n;
}

/* The CPU time that a user thread gets, of 200 ms on the CPU that polls what floods it; ms. */
static int consumer_time(enum poller poller)
{
	struct worker user = {.says = STEP(STEP_AGAIN), .charge = 100, .act = consume};
	struct source source = {.burst = 64, .interval = 2 * USEC};
	struct scene s;
	int64_t time;

	scene_begin_with(&s, true, 8, on_cpu_0(poller));
	source.scene = &s;
	source.port = s.a;
	user.arg = s.b;
	memset(&ping, 0, sizeof(ping));
	assert_int_equal(engine_context_open(s.engine, &ping.context), 0);
	source_start(&source);
	worker_start(&user, s.machine, "user", on(0, fair(0)));
	scene_run(&s, 200 * MSEC);
	time = worker_observe(&user).cpu_time;
	runner_stop(user.runner);
	source_stop(&source);
	scene_drain(&s, s.a, source.sent);
	for (struct packet *p; mem_port_receive(s.b, &p, 1);)
		packet_free(&ping.context->cache, &p, 1);
	engine_context_close(ping.context);
	scene_end(&s);
	return (int)(time / MSEC);
}

/*
 * "A high-priority worker must not starve the user threads that consume the packets": the worker is
 * an ordinary runner unless it is asked otherwise, so the consumer has its fair share of the CPU.
 */
static void consumer_is_not_starved(void **state)
{
	int queue = consumer_time(POLLER_WORKQUEUE), thread = consumer_time(POLLER_THREAD);

	(void)state;
	printf("    the consumer's time of 200 ms: workqueue %d ms, thread %d ms, softirq %d ms\n",
	       queue, thread, consumer_time(POLLER_SOFTIRQ));
	/*
	 * Fair shares: beside a thread its half; beside two workers, which take turns at the one
	 * NAPI, a third of what interrupts, which go to irq/N then, leave.
	 */
	assert_in_range(thread, 80, 120);
	assert_in_range(queue, 50, 120);
}

/* A mem port whose kick costs what sending does: a system call, and something for each packet. */
static struct port_ops costly_ops;
static uint64_t kicked;

static void costly_kick(struct port_queue *queue, struct context *context)
{
	uint64_t packets = counter_read(&queue->transmit->packets);

	machine_charge(engine_machine(context->engine), USEC + 100 * (int64_t)(packets - kicked));
	kicked = packets;
	port_kind_find("mem")->kick(queue, context);
}

struct sending {
	uint64_t packets;
	double wakes;
};

/* What goes through in 20 ms, packets in pairs so far apart. */
static struct sending forwarded(bool tx_napi, int64_t interval)
{
	struct engine_config config = {.poller = POLLER_THREAD};
	struct port_config port = {.kind = "mem", .target = "out", .tx_napi = tx_napi};
	struct source source = {.burst = 16, .interval = interval};
	struct sink sink = {0};
	struct sending result;
	struct scene s;

	costly_ops = *port_kind_find("mem");
	costly_ops.kick = costly_kick;
	kicked = 0;
	port.ops = &costly_ops;
	cpuset_add(&config.cpus, 0);
	cpuset_add(&config.cpus, 1);
	scene_begin_cpus(&s, true, 9, 4, config);
	assert_int_equal(engine_port_add(s.engine, &port, &sink.port, NULL), 0);
	assert_int_equal(engine_handler_set(s.engine, sink.port, s.cross, NULL), 0);
	scene_partner(&s, s.b, sink.port);
	source.scene = sink.scene = &s;
	source.port = s.b;
	sink_start(&sink);
	wakes_count(&s);
	source_start(&source);
	scene_run(&s, 20 * MSEC);
	result.packets = PORT_SUM(s.b, transmitted);
	source_stop(&source);
	result.wakes = (double)wakes / (double)PORT_SUM(s.b, received);
	wakes_end(&s);
	scene_drain(&s, s.b, source.sent);
	scene_run(&s, MSEC);
	sink_stop(&sink);
	assert_int_equal(sink.disorder, 0);
	scene_end(&s);
	return result;
}

/*
 * "Separate RX and TX NAPIs": two CPUs carry more than one when sending costs as much as receiving.
 * The price: a wake-up more a poll, where there is little to do.
 */
static void sending_has_napis_of_its_own(void **state)
{
	struct sending one = forwarded(false, USEC), two = forwarded(true, USEC);
	struct sending idle = forwarded(false, 100 * USEC), idle_two = forwarded(true, 100 * USEC);

	(void)state;
	printf("    forwarded in 20 ms: %llu, with TX NAPIs %llu (%.2f times); wake-ups a packet "
	       "%.3f and %.3f, with little to do %.3f and %.3f\n",
	       (unsigned long long)one.packets, (unsigned long long)two.packets,
	       (double)two.packets / (double)one.packets, one.wakes, two.wakes, idle.wakes,
	       idle_two.wakes);
	assert_true((double)two.packets > 1.3 * (double)one.packets);
	assert_true(idle_two.wakes <= idle.wakes + 1.05 / 16);
}

/* Asks for a poll, all the time. */
static struct step nag_step(void *arg)
{
	struct irq *irq = arg;

	irq_raise(irq);
	machine_charge(irq->runner->machine, USEC);
	return STEP(STEP_YIELD);
}

static void one_at_a_time(bool virtual, enum poller poller)
{
	struct runner_config config = {.name = "nag", .step = nag_step};
	struct runner *nags[3];
	struct port *port;
	struct scene s;

	scene_begin_with(&s, virtual, 10, (struct engine_config){.poller = poller, .workers = 4});
	port = probe_add(&s);
	probe.spin = 3 * NSEC_PER_USEC;
	config.arg = &port->queue[0].irq;
	for (int i = 0; i < 3; i++)
		assert_int_equal(runner_start(s.machine, &config, &nags[i], NULL), 0);
	for (unsigned i = 0; i < 20; i++) {
		atomic_fetch_add(&probe.work, 1000);
		scene_run(&s, MSEC);
	}
	await(&s, probe_called, &(uint64_t){20});
	for (int i = 0; i < 3; i++)
		runner_stop(nags[i]);
	assert_int_equal(probe.together, 1);
	scene_end(&s);
}

static void one_virtual(enum poller poller)
{
	one_at_a_time(true, poller);
}

static void one_host(enum poller poller)
{
	one_at_a_time(false, poller);
}

/* "One NAPI still uses one CPU at a time", however many workers there are and ask for it. */
static void napi_uses_one_cpu(void **state)
{
	(void)state;
	over_pollers(one_virtual);
	over_pollers(one_host);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scheduling_costs_the_same),
		cmocka_unit_test(accounting_is_not_bypassed),
		cmocka_unit_test(worker_gives_way),
		cmocka_unit_test(bottom_halves_are_off),
		cmocka_unit_test(kicks_follow_each_poll),
		cmocka_unit_test(ports_are_isolated),
		cmocka_unit_test(load_shares_wakes),
		cmocka_unit_test(consumer_is_not_starved),
		cmocka_unit_test(sending_has_napis_of_its_own),
		cmocka_unit_test(napi_uses_one_cpu),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]); /* by hand: one of them */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
