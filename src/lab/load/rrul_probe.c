/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <napier/counters.h>

#include "lab/clock.h"
#include "lab/load/rrul_ping.h"
#include "lab/load/rrul_probe.h"
#include "lab/load/rrul_time.h"
#include "lab/load/side.h"
#include "lab/load/stream_socket.h"

const char *const rrul_probe_names[RRUL_PROBES] = {"udp_be", "udp_bk", "udp_ef", "icmp"};

enum { STEP_NONE = RRUL_STEPS, LOOK_MS = 50, SPARE = 16, STARTING = -1 };

/* One that was sent. */
struct slot {
	int64_t due;
	uint8_t step;
	bool awaited;
};

struct kind {
	int fd;		   /* -1: it is not measured */
	struct slot *slot; /* by number, modulo `slots`: all of a time-out and some more */
	uint32_t slots;
	uint32_t next, oldest; /* numbers: to be sent, and not yet decided */
	struct rrul_tally tally[RRUL_STEPS];
	struct stream_series sum, n;
};

struct rrul_probe {
	struct load_place place;
	int64_t timeout, began;
	double period;
	bool spins;
	uint32_t run;
	struct rrul_ping ping;
	struct kind kind[RRUL_PROBES];
	pthread_t thread;
	bool started;
	_Atomic pid_t tid;
	_Atomic int64_t start; /* of the steps; 0: not yet; STARTING; `end` was written before */
	int64_t end[RRUL_STEPS];
	_Atomic int64_t over; /* what is due then is not sent any more; 0: it goes on */
	int wake;
	counter received, lost;
	const char *no_icmp, *no_real_time;
};

bool rrul_real_time(void)
{
	struct sched_param lowest = {.sched_priority = 1};

	/* Somebody's own wish for it is no less. */
	return sched_getscheduler(0) == SCHED_FIFO || !sched_setscheduler(0, SCHED_FIFO, &lowest);
}

/* ---- its thread ---- */

static int64_t due_of(const struct rrul_probe *p, unsigned kind, uint32_t number)
{
	double periods = (double)number + (double)kind / RRUL_PROBES;

	return p->began + (int64_t)(periods * p->period);
}

/* Waits while it is chosen: what is due meanwhile may be of a step. */
static int64_t start_of(const struct rrul_probe *p)
{
	int64_t start;

	while ((start = atomic_load_explicit(&p->start, memory_order_acquire)) == STARTING)
		clock_sleep(NSEC_PER_MSEC / 20);
	return start;
}

static uint8_t step_at(const struct rrul_probe *p, int64_t when)
{
	int64_t start = start_of(p);
	uint8_t step = 0;

	if (!start || when < start)
		return STEP_NONE;
	while (step < RRUL_STEPS && when - start >= p->end[step])
		step++;
	return step;
}

static bool is_over(const struct rrul_probe *p, int64_t due)
{
	int64_t start = start_of(p);
	int64_t over = atomic_load_explicit(&p->over, memory_order_acquire);

	return (over && due >= over) || (start && due - start >= p->end[RRUL_STEPS - 1]);
}

static int probe_send(struct rrul_probe *p, unsigned i, uint32_t number)
{
	uint8_t data[RRUL_PROBE_SIZE] = {0};
	struct rrul_message head = {htonl(RRUL_MAGIC), htonl(p->run), htonl(i), htonl(number)};

	memcpy(data, &head, sizeof(head));
	if (i == RRUL_ICMP)
		return rrul_ping_send(&p->ping, (uint16_t)number, data);
	return send(p->kind[i].fd, data, sizeof(data), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno
											: 0;
}

static void lose(struct rrul_probe *p, struct kind *k, struct slot *s)
{
	s->awaited = false;
	if (s->step == STEP_NONE)
		return;
	k->tally[s->step].lost++;
	histogram_record(&k->tally[s->step].latency, (uint64_t)p->timeout);
	counter_add(&p->lost, 1);
}

static void due_send(struct rrul_probe *p, unsigned i, int64_t now)
{
	struct kind *k = &p->kind[i];

	for (int64_t due; (due = due_of(p, i, k->next)) <= now && !is_over(p, due); k->next++) {
		struct slot *s = &k->slot[k->next % k->slots];
		struct rrul_tally *t;
		int ret;

		/* Only a thread that did not run for so long can come around to it. */
		if (s->awaited)
			lose(p, k, s);
		*s = (struct slot){.due = due, .step = step_at(p, due), .awaited = true};
		ret = probe_send(p, i, k->next);
		if (s->step == STEP_NONE)
			continue;
		t = &k->tally[s->step];
		t->sent++;
		t->errors += ret != 0;
		t->late_sends += clock_now() - due > RRUL_LATE;
	}
}

static void expire(struct rrul_probe *p, struct kind *k, int64_t now)
{
	for (; k->oldest != k->next; k->oldest++) {
		struct slot *s = &k->slot[k->oldest % k->slots];

		if (s->awaited && now < s->due + p->timeout)
			return;
		if (s->awaited)
			lose(p, k, s);
	}
}

static void reply_take(struct rrul_probe *p, unsigned i, const struct rrul_message *m, int64_t now)
{
	struct kind *k = &p->kind[i];
	uint32_t number = ntohl(m->number);
	struct slot *s = &k->slot[number % k->slots];
	struct rrul_tally *t;
	int64_t start;

	if (ntohl(m->magic) != RRUL_MAGIC || ntohl(m->run) != p->run || ntohl(m->kind) != i ||
	    k->next - number - 1 >= k->slots || !s->awaited || now - s->due >= p->timeout)
		return;
	s->awaited = false;
	if (s->step == STEP_NONE)
		return;
	start = start_of(p);
	t = &k->tally[s->step];
	t->received++;
	histogram_record(&t->latency, (uint64_t)(now - s->due));
	stream_series_add(&k->sum, s->due - start, (uint64_t)(now - s->due));
	stream_series_add(&k->n, s->due - start, 1);
	counter_add(&p->received, 1);
}

static void replies_receive(struct rrul_probe *p, unsigned i)
{
	struct rrul_message m;
	bool more = true;

	while (more) {
		if (i == RRUL_ICMP) {
			if (rrul_ping_receive(&p->ping, &m, sizeof(m), &more))
				reply_take(p, i, &m, clock_now());
			continue;
		}
		ssize_t n = recv(p->kind[i].fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);

		/* An error that came back for one that was sent (nobody listens) is one of them. */
		more = n >= 0 || (errno != EAGAIN && errno != EINTR);
		if (n == RRUL_PROBE_SIZE)
			reply_take(p, i, &m, clock_now());
	}
}

/* Until something comes, is due, or times out. False: all is done. */
static bool await(struct rrul_probe *p, int64_t now)
{
	struct pollfd fd[RRUL_PROBES + 1];
	int64_t until = now + LOOK_MS * NSEC_PER_MSEC;
	struct timespec left = {0};
	bool done = true;

	for (unsigned i = 0; i < RRUL_PROBES; i++) {
		struct kind *k = &p->kind[i];
		int64_t due = due_of(p, i, k->next);

		fd[i] = (struct pollfd){.fd = k->fd, .events = POLLIN};
		if (k->fd < 0)
			continue;
		if (!is_over(p, due))
			until = due < until ? due : until;
		done = done && is_over(p, due) && k->oldest == k->next;
		if (k->oldest != k->next) {
			due = k->slot[k->oldest % k->slots].due + p->timeout;
			until = due < until ? due : until;
		}
	}
	fd[RRUL_PROBES] = (struct pollfd){.fd = p->wake, .events = POLLIN};
	if (done && p->over)
		return false;
	if (until > now && !p->spins)
		left = (struct timespec){(until - now) / NSEC_PER_SEC,
					 (until - now) % NSEC_PER_SEC};
	ppoll(fd, p->over ? RRUL_PROBES : RRUL_PROBES + 1, &left, NULL);
	return true;
}

/* One that spins in real time would leave its CPU to nobody. */
static bool is_punctual(const struct rrul_probe *p)
{
	return p->spins || rrul_real_time();
}

static void *probe_run(void *arg)
{
	struct rrul_probe *p = arg;
	bool measures = false;

	if (!is_punctual(p))
		p->no_real_time = "probes were sent by an ordinary thread (real time takes "
				  "CAP_SYS_NICE), so they are later by its wait for a CPU";
	prctl(PR_SET_TIMERSLACK, 1);
	p->began = clock_now();
	p->tid = (pid_t)syscall(SYS_gettid);
	do {
		for (unsigned i = 0; i < RRUL_PROBES; i++) {
			if (p->kind[i].fd < 0)
				continue;
			replies_receive(p, i);
			expire(p, &p->kind[i], clock_now());
			due_send(p, i, clock_now());
		}
		/* A wish for all of the client's threads (a nice value) has undone it meanwhile. */
		if (!measures && start_of(p)) {
			measures = true;
			is_punctual(p);
		}
	} while (await(p, clock_now()));
	return NULL;
}

/* ---- control ---- */

static int kind_open(struct rrul_probe *p, const struct load_config *config, unsigned i,
		     struct error *err)
{
	static const uint8_t tos[] = {
		[RRUL_UDP_BE] = 0, [RRUL_UDP_BK] = 0x20, [RRUL_UDP_EF] = 0xb8};
	struct kind *k = &p->kind[i];
	struct stream_address to;
	int ret = side_address(&p->place, 0, &to.at, &to.length, err);

	if (ret)
		return ret;
	if (i == RRUL_ICMP) {
		ret = rrul_ping_open(&p->place, &to, &p->ping);
		k->fd = p->ping.fd;
		if (ret == -EACCES || ret == -EPERM)
			p->no_icmp = "icmp was not measured: it takes CAP_NET_RAW, or a group in "
				     "net.ipv4.ping_group_range";
		else if (ret)
			return error_set(err, ret, "ICMP to %s: %s", p->place.address,
					 strerror(-ret));
		return 0;
	}
	k->fd = stream_socket(&p->place, to.at.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (k->fd < 0)
		return error_set(err, k->fd, "opening a socket: %s", strerror(-k->fd));
	ret = stream_socket_class(k->fd, to.at.ss_family, tos[i]);
	if (!ret)
		ret = stream_socket_options(k->fd, config, false);
	if (!ret && connect(k->fd, (void *)&to.at, to.length))
		ret = -errno;
	return ret ? error_set(err, ret, "probes to %s port %u: %s", p->place.address,
			       p->place.port, strerror(-ret))
		   : 0;
}

static int kinds_prepare(struct rrul_probe *p, const struct load_config *config, struct error *err)
{
	int ret = 0;

	for (unsigned i = 0; i < RRUL_PROBES && !ret; i++) {
		struct kind *k = &p->kind[i];

		k->slots = SPARE + (uint32_t)ceil((double)p->timeout / p->period);
		k->slot = calloc(k->slots, sizeof(*k->slot));
		if (!k->slot)
			return error_set(err, -ENOMEM, "no memory for probes");
		for (unsigned s = 0; s < RRUL_STEPS; s++)
			histogram_reset(&k->tally[s].latency);
		stream_series_reset(&k->sum, config->interval);
		stream_series_reset(&k->n, config->interval);
		ret = kind_open(p, config, i, err);
	}
	return ret;
}

int rrul_probe_start(const struct load_config *config, const struct load_place *place,
		     struct rrul_probe **out, struct error *err)
{
	struct rrul_probe *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return error_set(err, -ENOMEM, "no memory for probes");
	p->place = *place;
	p->timeout = config->timeout;
	p->period = (double)NSEC_PER_SEC / config->probe_rate;
	p->spins = config->client_spins;
	p->run = (uint32_t)clock_now() ^ (uint32_t)getpid();
	for (unsigned i = 0; i < RRUL_PROBES; i++)
		p->kind[i].fd = -1;
	p->wake = eventfd(0, EFD_CLOEXEC);
	ret = p->wake < 0 ? error_set(err, -errno, "eventfd: %s", strerror(errno))
			  : kinds_prepare(p, config, err);
	if (!ret)
		ret = side_thread_start(place, 0, "rrul-probe", &p->thread, probe_run, p, err);
	p->started = !ret;
	while (p->started && !p->tid)
		usleep(100);
	if (ret)
		rrul_probe_free(p);
	else
		*out = p;
	return ret;
}

pid_t rrul_probe_thread(const struct rrul_probe *p)
{
	return p->tid;
}

void rrul_probe_starting(struct rrul_probe *p)
{
	atomic_store(&p->start, STARTING);
}

void rrul_probe_measure(struct rrul_probe *p, int64_t start, const int64_t end[RRUL_STEPS])
{
	memcpy(p->end, end, sizeof(p->end));
	atomic_store_explicit(&p->start, start, memory_order_release);
}

void rrul_probe_progress(const struct rrul_probe *p, uint64_t *received, uint64_t *lost)
{
	*received = counter_read(&p->received);
	*lost = counter_read(&p->lost);
}

void rrul_probe_end(struct rrul_probe *p)
{
	uint64_t one = 1;

	atomic_store_explicit(&p->over, clock_now(), memory_order_release);
	if (write(p->wake, &one, sizeof(one)) != sizeof(one))
		(void)!errno;
}

void rrul_probe_join(struct rrul_probe *p)
{
	if (p->started)
		pthread_join(p->thread, NULL);
	p->started = false;
}

bool rrul_probe_measures(const struct rrul_probe *p, unsigned kind)
{
	return p->kind[kind].fd >= 0;
}

const struct rrul_tally *rrul_probe_tally(const struct rrul_probe *p, unsigned kind, unsigned step)
{
	return &p->kind[kind].tally[step];
}

const struct stream_series *rrul_probe_series(const struct rrul_probe *p, unsigned kind,
					      bool number)
{
	return number ? &p->kind[kind].n : &p->kind[kind].sum;
}

const char *rrul_probe_note(const struct rrul_probe *p, unsigned i)
{
	const char *notes[] = {p->no_icmp, p->no_real_time};

	for (unsigned k = 0; k < 2; k++) {
		if (notes[k] && i-- == 0)
			return notes[k];
	}
	return NULL;
}

void rrul_probe_free(struct rrul_probe *p)
{
	if (p->started) {
		rrul_probe_end(p);
		rrul_probe_join(p);
	}
	for (unsigned i = 0; i < RRUL_PROBES; i++) {
		if (p->kind[i].fd >= 0)
			close(p->kind[i].fd);
		free(p->kind[i].slot);
	}
	if (p->wake >= 0)
		close(p->wake);
	free(p);
}
