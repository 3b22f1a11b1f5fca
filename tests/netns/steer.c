/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering between real ports: turned on, off and elsewhere, its backlogs moved from poller to
 * poller, while frames and TCP cross the bridge (case 20).
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <machine/random.h>

#include "rig.h"

/* At least, while packets cross. */
enum { CHANGES = 3, ROUNDS = 8 };

struct changer {
	struct engine *engine;
	unsigned cpus;
	_Atomic bool stop;
	_Atomic bool steered; /* a backlog has got a packet */
	_Atomic bool over;    /* it ends, and may have failed */
	_Atomic unsigned changes;
	struct error err; /* of the first that failed */
	pthread_t thread;
};

static int change(struct changer *changer, struct random *random)
{
	struct queue_settings steer = {.rps_cpus_set = true, .rps_flow_set = true};
	struct queue_settings poller = {.poller_set = true};
	const char *port = random_below(random, 2) ? "in0" : "in1";
	int rc;

	for (unsigned cpu = 0; cpu < changer->cpus; cpu++)
		if (random_below(random, 2))
			cpuset_add(&steer.rps_cpus, cpu);
	steer.rps_flow_cnt = random_below(random, 2) ? 64 : 0;
	poller.poller = (enum poller)random_below(random, POLLER_MAX);
	poller.idle_suspend_set = true;
	poller.idle_suspend_usecs = 1000;
	rc = engine_queue_set(changer->engine, port, -1, &steer, NULL, &changer->err);
	if (!rc)
		rc = engine_queue_set(changer->engine, "backlog", -1, &poller, NULL, &changer->err);
	return rc;
}

static void *changer_run(void *arg)
{
	struct changer *changer = arg;
	struct random random = {(uint64_t)getpid()};
	const struct port *backlog;
	int late = 0; /* in a row */

	while (!atomic_load(&changer->stop)) {
		int rc = change(changer, &random);

		/* On a busy machine one may not come about in its second: all is as it was. */
		late = rc == -ETIMEDOUT ? late + 1 : 0;
		if (late && late < 30)
			changer->err = (struct error){0};
		else if (rc)
			break;
		changer->changes += !rc;
		backlog = engine_port_find(changer->engine, "backlog");
		if (backlog && RIG_SUM(backlog, received) > 0)
			atomic_store(&changer->steered, true);
		usleep((useconds_t)random_below(&random, 20000));
	}
	atomic_store(&changer->over, true);
	return NULL;
}

static void changer_start(struct changer *changer, struct engine *engine)
{
	memset(changer, 0, sizeof(*changer));
	changer->engine = engine;
	changer->cpus = engine_counters(engine)->cpus;
	assert_int_equal(pthread_create(&changer->thread, NULL, changer_run, changer), 0);
}

/*
 * It has changed enough, and packets have been steered, or it has failed. On a busy machine it may
 * come late to that, and packets have to cross as long. Bounded.
 */
static bool has_changed(const struct changer *changer, uint32_t rounds)
{
	bool enough = changer->changes >= CHANGES && changer->steered;

	return rounds >= ROUNDS && (enough || changer->over || rounds >= 1000 * ROUNDS);
}

/* It has changed and steered something, and nothing was refused. */
static void changer_end(struct changer *changer)
{
	atomic_store(&changer->stop, true);
	assert_int_equal(pthread_join(changer->thread, NULL), 0);
	if (changer->err.code)
		fail_msg("after %u changes: %s", changer->changes, changer->err.text);
	assert_true(changer->changes >= CHANGES);
	assert_true(changer->steered);
}

static void nothing_dropped(struct rig *rig, struct port *port)
{
	struct port *backlog = engine_port_find(rig->engine.engine, "backlog");

	for (int i = 0; i < DROP_MAX; i++) {
		assert_int_equal(RIG_DROPPED(port, (enum drop_reason)i), 0);
		if (backlog)
			assert_int_equal(RIG_DROPPED(backlog, (enum drop_reason)i), 0);
	}
	assert_int_equal(RIG_SUM(port, lost), 0);
}

/* Numbered frames: each comes out, in order, whatever is changed meanwhile. */
static void frames(const char *kind, enum poller poller)
{
	static struct changer changer;
	struct port *port[2];
	struct rig *rig = rig_begin(poller);
	char text[32];
	int at_a, at_b;

	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "%s:in%d", kind, i);
		port[i] = rig_port(rig, rig->inner, text);
	}
	at_a = rig_raw(rig, rig->left, NETNS_OUTER);
	at_b = rig_raw(rig, rig->right, NETNS_OUTER);
	changer_start(&changer, rig->engine.engine);
	for (uint32_t i = 0; !has_changed(&changer, i); i++) {
		rig_pass(at_a, at_b, true, i * 500, 500, 0);
		rig_pass(at_b, at_a, false, i * 500, 500, 0);
	}
	changer_end(&changer);
	for (int i = 0; i < 2; i++) {
		nothing_dropped(rig, port[i]);
		netns_assert_conserved(port[i]);
	}
	close(at_a);
	close(at_b);
	rig_end(rig);
}

static void frames_over_xdp(void **state)
{
	(void)state;
	frames("xdp", POLLER_SOFTIRQ);
	frames("xdp", POLLER_THREAD);
}

static void frames_over_packet(void **state)
{
	(void)state;
	frames("packet", POLLER_SOFTIRQ);
	frames("packet", POLLER_WORKQUEUE);
}

/* Connections arrive whole; no steering has dropped a packet of theirs. */
static void tcp(const char *kind, uint64_t bytes)
{
	struct engine_settings room = {.max_backlog_set = true, .max_backlog = 8192};
	struct port *port[2], *backlog;
	static struct changer changer;
	struct rig *rig = rig_begin(POLLER_THREAD);
	char text[32];

	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "%s:in%d", kind, i);
		port[i] = rig_port(rig, rig->inner, text);
	}
	assert_int_equal(engine_set(rig->engine.engine, &room, NULL), 0);
	changer_start(&changer, rig->engine.engine);
	for (uint32_t i = 0; !has_changed(&changer, i); i++)
		rig_tcp(rig, rig->left, rig->right, "10.9.8.2", bytes);
	changer_end(&changer);
	backlog = engine_port_find(rig->engine.engine, "backlog");
	assert_non_null(backlog);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(RIG_DROPPED(port[i], DROP_BACKLOG_FULL), 0);
		assert_int_equal(RIG_DROPPED(port[i], DROP_FLOW_LIMIT), 0);
	}
	assert_int_equal(RIG_DROPPED(backlog, DROP_NO_HANDLER), 0);
	assert_int_equal(RIG_DROPPED(backlog, DROP_PORT_REMOVED), 0);
	rig_end(rig);
}

static void tcp_over_xdp(void **state)
{
	(void)state;
	tcp("xdp", 4 << 20);
}

static void tcp_over_packet(void **state)
{
	(void)state;
	tcp("packet", 16 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_over_xdp),
		cmocka_unit_test(frames_over_packet),
		cmocka_unit_test(tcp_over_xdp),
		cmocka_unit_test(tcp_over_packet),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
