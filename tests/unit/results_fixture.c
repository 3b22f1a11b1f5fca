/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/histogram.h"
#include "lab/measure/latency.h"

#include "results_fixture.h"

enum { INTERVALS = 50, SIZES = 6 };

static uint64_t state;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) * 0x1p-53;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform() + 1e-18)) * cos(2 * M_PI * uniform());
}

/* How systems differ: a median and a tail, CPU, and who has it. */
static const struct kind {
	const char *name, *scenario, *dut, *poller, *handler;
	double p50_us, spread, tail, cores, poll, gro;
} kinds[] = {
	{"kernel, softirq", "a: one core", "kernel", "softirq", "socket", 21, 0.10, 0.020, 0.92,
	 1.3, 1},
	{"kernel, socket busy-poll", "a: one core", "kernel", "socket busy-poll", "socket", 9, 0.06,
	 0.008, 1.00, 1.0, 1},
	{"napier, app", "a: one core", "napier", "app", "socket", 6.5, 0.05, 0.004, 1.00, 1.2, 1},
	{"kernel, pinned apart", "b: two cores", "kernel", "softirq", "socket", 18, 0.09, 0.012,
	 1.31, 1.4, 1},
	{"kernel, threaded NAPI", "b: two cores", "kernel", "threaded", "socket", 24, 0.12, 0.006,
	 1.45, 2.1, 1},
	{"napier, thread", "b: two cores", "napier", "thread", "host", 27, 0.12, 0.005, 1.52, 2.6,
	 1.1},
	{"napier, busy-poll", "b: two cores", "napier", "busy-poll", "host", 11, 0.05, 0.002, 1.98,
	 1.1, 1.1},
	{"kernel, threaded busy-poll", "b: two cores", "kernel", "threaded busy-poll", "socket", 10,
	 0.05, 0.002, 2, 1, 1},
	{"napier, workqueue", "c: two queues", "napier", "workqueue", "host", 31, 0.2, 0.02, 1.7,
	 4.2, 1.6},
	{"napier, softirq", "c: two queues", "napier", "softirq", "host", 23, 0.1, 0.02, 1.2, 3.2,
	 1.4},
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static const struct work {
	const char *key, *name, *kind;
	double rate; /* of an open loop */
} works[] = {
	{"rr-1", "TCP 1 B / 1 B, 1 flow, closed loop", "rr", 0},
	{"rr-open", "UDP 64 B, 50 flows, 20 000/s, Poisson", "rr", 20000},
	{"stream", "UDP stream, 18 to 1472 B", "stream", 0},
	{"rr-50", "TCP 200 B / 400 B, 50 flows, closed loop", "rr", 0},
};

static json_t *named(const struct fixture *f, const char *format, const char *name, unsigned i)
{
	char text[300];

	snprintf(text, sizeof(text), format, name, i, f->hostile ? FIXTURE_HOSTILE : "");
	return json_string(text);
}

static const struct kind *kind_of(unsigned system)
{
	return &kinds[system % KINDS];
}

static void key_of(unsigned system, char key[64])
{
	snprintf(key, 64, "system-%u", system);
}

static json_t *cpu_json(const struct kind *k, double duration, double operations)
{
	double total = k->cores * duration * (1 + 0.02 * normal());
	bool napier = !strcmp(k->dut, "napier");
	double own = napier ? 0.34 * total : 0, softirq = 0.21 * total;
	double kthread = strstr(k->poller, "threaded") ? 0.2 * total : 0;
	double rest = total - own - softirq - kthread;
	json_t *parties = json_object(), *per = json_object(), *cpu;
	const struct {
		const char *name;
		double total;
		bool both;
	} of[] = {{"client", rest * 0.48, true},
		  {"server", rest * 0.52, true},
		  {"napier", own, true},
		  {"softirq", softirq, false},
		  {"kernel threads", kthread, false}};

	for (unsigned i = 0; i < 5; i++) {
		json_t *party;

		if (of[i].total <= 0)
			continue;
		party = json_pack("{s:f}", "total_s", of[i].total);
		if (of[i].both) {
			json_object_set_new(party, "user_s", json_real(of[i].total * 0.4));
			json_object_set_new(party, "system_s", json_real(of[i].total * 0.6));
			json_object_set_new(party, "voluntary", json_integer(12345));
			json_object_set_new(party, "involuntary", json_integer(17));
			json_object_set_new(party, "wakeups", json_integer(12001));
			json_object_set_new(party, "migrations", json_integer(2));
		}
		json_object_set_new(parties, of[i].name, party);
		if (operations > 0)
			json_object_set_new(per, of[i].name,
					    json_real(of[i].total * 1e9 / operations));
	}
	if (operations > 0)
		json_object_set_new(per, "total", json_real(total * 1e9 / operations));
	cpu = json_pack("{s:o, s:[], s:f, s:f, s:i, s:f, s:o, s:f}", "parties", parties, "threads",
			"total_s", total, "cores_used", total / duration, "cores_busy", 2,
			"others_s", 0.02 * duration * uniform(), "ns_per_operation",
			operations > 0 ? per : json_null(), "operations", operations);
	if (operations <= 0)
		json_decref(per);
	json_object_set_new(cpu, napier ? "napier" : "kernel",
			    json_pack("{s:i, s:i, s:f, s:f}", "polls", (int)(operations / k->poll),
				      "packets", (int)operations, "packets_per_poll",
				      operations > 0 ? k->poll * (1 + 0.03 * normal()) : 0,
				      "gro_ratio", k->gro));
	json_object_set_new(cpu, "cycles", json_null());
	json_object_set_new(cpu, "instructions", json_null());
	json_object_set_new(cpu, "notes",
			    json_pack("[s]", "This machine counts no cycles and no instructions."));
	return cpu;
}

/* late: waiting before it was sent, which is in the response time alone. */
static json_t *latency_make(const struct fixture *f, const struct kind *k, double flows,
			    double late, unsigned samples, unsigned lost)
{
	struct histogram *h = malloc(sizeof(*h));
	json_t *o;

	histogram_reset(h);
	for (unsigned i = 0; i < samples; i++) {
		double us = k->p50_us * flows * exp(k->spread * normal());

		if (uniform() < k->tail)
			us *= 1 + 12 * -log(uniform() + 1e-9) * 0.4;
		us += late * -log(uniform() + 1e-12);
		histogram_record(h, (uint64_t)(us * 1000 / f->faster));
	}
	for (unsigned i = 0; i < lost; i++)
		histogram_record(h, 1000000000);
	o = latency_json(h, lost);
	free(h);
	return o;
}

static json_t *series_make(double rate, double p50_us)
{
	json_t *transactions = json_array(), *p50 = json_array(), *p99 = json_array();

	for (unsigned i = 0; i < INTERVALS; i++) {
		double dip = i == 31 ? 0.7 : 1;

		json_array_append_new(
			transactions,
			json_integer((json_int_t)(rate / 10 * dip * (1 + 0.02 * normal()))));
		json_array_append_new(p50, json_real(p50_us * 1e3 * (1 + 0.02 * normal())));
		/* In some intervals too few came for one. */
		json_array_append_new(
			p99,
			i % 17 == 5 ? json_null()
				    : json_real(p50_us * 2.2e3 * (1 + 0.2 * fabs(normal())) / dip));
	}
	return json_pack("{s:f, s:o, s:o, s:o}", "interval_s", 0.1, "transactions", transactions,
			 "p50_ns", p50, "p99_ns", p99);
}

static json_t *run_empty(const struct fixture *f)
{
	struct histogram *h = malloc(sizeof(*h));
	json_t *latency, *run;

	(void)f;
	histogram_reset(h);
	latency = latency_json(h, 0);
	free(h);
	run = json_pack("{s:f, s:{s:i, s:i, s:i}, s:{s:f}, s:{s:o}, s:o}", "duration_s", 5.0,
			"counts", "started", 0, "completed", 0, "lost", 0, "rates", "transactions",
			0.0, "latency", "service", latency, "cpu", cpu_json(&kinds[0], 5, 0));
	return run;
}

static json_t *run_rr(const struct fixture *f, const struct kind *k, const struct work *w)
{
	double duration = 5, flows = strstr(w->name, "50 flows") ? w->rate > 0 ? 1.4 : 11 : 1;
	double rate = w->rate > 0 ? w->rate
				  : (flows > 1 ? 50 : 1) * 1e6 * f->faster /
					    (k->p50_us * flows * 1.2) * (1 + 0.015 * normal());
	unsigned lost = f->faults && k == &kinds[5] ? 12 : 0;
	json_t *latency = json_object();
	json_t *run;

	json_object_set_new(latency, "service",
			    latency_make(f, k, flows, 0, f->samples, w->rate > 0 ? lost : 0));
	if (w->rate > 0)
		json_object_set_new(latency, "response",
				    latency_make(f, k, flows, k->p50_us * 0.6, f->samples, lost));
	run = json_pack("{s:f, s:{s:I, s:I, s:i, s:i, s:i}, s:{s:f, s:o}, s:o, s:o, s:o}",
			"duration_s", duration, "counts", "started", (json_int_t)(rate * duration),
			"completed", (json_int_t)(rate * duration) - lost, "lost", lost,
			"late_sends", 0, "retransmits", 1, "rates", "transactions", rate, "offered",
			w->rate > 0 ? json_real(w->rate) : json_null(), "latency", latency,
			"series", series_make(rate, k->p50_us * flows), "cpu",
			cpu_json(k, duration, rate * duration));
	return run;
}

static json_t *run_stream(const struct fixture *f, const struct kind *k)
{
	static const unsigned sizes[SIZES] = {1472, 978, 466, 210, 82, 18};
	json_t *steps = json_array();
	double sent_all = 0, received_all = 0, bits_sent = 0, bits_received = 0, duration = 6;

	for (unsigned i = 0; i < SIZES; i++) {
		double sent = 280000 * (1 + 0.01 * normal());
		double can = 4.1e6 * f->faster / (k->p50_us + 3) * (1 + 0.02 * normal());
		double received = fmin(sent, can);
		char name[16];

		snprintf(name, sizeof(name), "%u", sizes[i]);
		json_array_append_new(
			steps,
			json_pack("{s:s, s:f, s:f, s:{s:I, s:I, s:I, s:i, s:i}, s:{s:f, s:f, s:f}}",
				  "name", name, "from_s", (double)i, "duration_s", 1.0, "counts",
				  "sent", (json_int_t)sent, "received", (json_int_t)received,
				  "lost", (json_int_t)(sent - received), "reordered", 0,
				  "duplicated", 0, "rates", "sent_mbit", sent * 8 * sizes[i] / 1e6,
				  "received_mbit", received * 8 * sizes[i] / 1e6,
				  "received_datagrams", received));
		sent_all += sent;
		received_all += received;
		bits_sent += sent * 8 * sizes[i];
		bits_received += received * 8 * sizes[i];
	}
	return json_pack("{s:f, s:{s:I, s:I, s:I}, s:{s:f, s:f, s:f}, s:{}, s:o, s:o}",
			 "duration_s", duration, "counts", "sent", (json_int_t)sent_all, "received",
			 (json_int_t)received_all, "lost", (json_int_t)(sent_all - received_all),
			 "rates", "sent_mbit", bits_sent / duration / 1e6, "received_mbit",
			 bits_received / duration / 1e6, "received_datagrams",
			 received_all / duration, "latency", "steps", steps, "cpu",
			 cpu_json(k, duration, received_all));
}

static json_t *threads_json(const struct kind *k)
{
	bool napier = !strcmp(k->dut, "napier");
	json_t *threads = json_pack("[{s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:i}, "
				    "{s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:i}]",
				    "name", "rr-client/0", "tid", 4001, "party", "client", "cpus",
				    "0", "class", "other", "nice", 0, "priority", 0, "cpu", 0,
				    "name", "rr-server/0", "tid", 4007, "party", "server", "cpus",
				    "1", "class", "other", "nice", 0, "priority", 0, "cpu", 1);

	if (napier)
		json_array_append_new(threads,
				      json_pack("{s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:i}", "name",
						"napi/dut0-0", "tid", 4011, "party", "napier",
						"cpus", "1", "class", "fifo", "nice", 0, "priority",
						10, "cpu", 1));
	return threads;
}

static json_t *run_make(const struct fixture *f, unsigned system, unsigned workload,
			unsigned repeat, unsigned order)
{
	const struct kind *k = kind_of(system);
	const struct work *w = &works[workload];
	bool failed = f->faults && system == 3 && workload == 0 && repeat == 1;
	bool late = f->faults && system == 5 && workload == 1 && repeat == 0;
	bool empty = f->faults && system == 9 && workload == 0;
	json_t *run;
	char key[64];

	if (failed)
		run = json_object();
	else if (empty)
		run = run_empty(f);
	else
		run = !strcmp(w->kind, "stream") ? run_stream(f, k) : run_rr(f, k, w);
	key_of(system, key);
	json_object_set_new(run, "system", json_string(key));
	json_object_set_new(run, "workload", json_string(w->key));
	json_object_set_new(run, "repeat", json_integer(repeat));
	json_object_set_new(run, "order", json_integer(order));
	json_object_set_new(run, "started_s", json_real(order * 6.5));
	json_object_set_new(run, "valid", json_boolean(!failed && !late));
	json_object_set_new(run, "invalid",
			    late ? named(f,
					 "the client was late: %s%u of 100000 sends came more than "
					 "1 ms behind their time%s",
					 "", 431)
				 : json_null());
	json_object_set_new(run, "error",
			    failed ? named(f, "server: %sit ended by signal %u%s", "", 9)
				   : json_null());
	json_object_set_new(run, "threads", threads_json(k));
	return run;
}

static json_t *system_json(const struct fixture *f, unsigned i)
{
	const struct kind *k = kind_of(i);
	bool skipped = f->faults && i == 7;
	bool napier = !strcmp(k->dut, "napier");
	json_t *o;
	char key[64];

	key_of(i, key);
	o = json_pack(
		"{s:s, s:o, s:o, s:b, s:s, s:s, s:s}", "key", key, "name",
		i < KINDS ? named(f, "%s%.0u%s", k->name, 0) : named(f, "%s #%u%s", k->name, i),
		"scenario", named(f, i < KINDS ? "%s%.0u%s" : "%s (%u)%s", k->scenario, i / KINDS),
		"base", i % KINDS == 0 || i % KINDS == 3, "dut", k->dut, "handler", k->handler,
		"poller", k->poller);
	json_object_set_new(o, "settings",
			    json_pack("{s:{s:s, s:s}, s:{s:s, s:s}}", "napi_defer_hard_irqs",
				      "asked", "2", "observed", "2", "gro_flush_timeout", "asked",
				      "15000", "observed", i == 2 ? "0" : "15000"));
	json_object_set_new(
		o, "commands",
		json_pack("[s, s]", "echo 2 > /sys/class/net/dut0/napi_defer_hard_irqs",
			  napier ? "napier run --host xdp:dut0 && napier set dut0 poller=thread "
				   "cpus=1"
				 : "echo 15000 > /sys/class/net/dut0/gro_flush_timeout"));
	json_object_set_new(o, "placement",
			    json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}, {s:s, s:s, s:s}]", "who",
				      "client", "asked", "0", "by", "affinity", "who", "server",
				      "asked", "1", "by", "affinity", "who", "interrupt", "asked",
				      "1", "by", "rps"));
	json_object_set_new(o, "skipped",
			    skipped ? named(f,
					    "threaded=busy-poll: this kernel has it not (since "
					    "Linux %s.%u)%s",
					    "6", 19)
				    : json_null());
	return o;
}

static json_t *workload_json(const struct fixture *f, unsigned i)
{
	const struct work *w = &works[i];
	json_t *parameters = json_pack("{s:s, s:i, s:i, s:i, s:i, s:f}", "protocol",
				       strstr(w->name, "UDP") ? "udp" : "tcp", "flows",
				       strstr(w->name, "50 flows") ? 50 : 1, "threads", 1,
				       "request_size", 1, "response_size", 1, "rate", w->rate);

	return json_pack("{s:s, s:o, s:s, s:o, s:[s]}", "key", w->key, "name",
			 named(f, "%s%.0u%s", w->name, 0), "kind", w->kind, "parameters",
			 parameters, "commands", "tcp_rr -c -H 10.78.0.2 -F 1 -T 1 -l 5");
}

static json_t *environment_json(void)
{
	return json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:i, s:i, s:s}, s:s, s:s, s:{s:s, s:s}, "
			 "s:{s:i, s:i}, s:n}",
			 "kernel", "release", "6.12.9-amd64", "version", "#1 SMP PREEMPT_DYNAMIC",
			 "parameters", "quiet isolcpus=1", "cpu", "model",
			 "AMD EPYC 7R13 Processor", "cpus", 2, "threads_per_core", 2, "governor",
			 "performance", "hypervisor", "kvm", "clocksource", "tsc", "mitigations",
			 "spectre_v2", "Mitigation: Retpolines", "meltdown", "Not affected",
			 "sysctls", "net.core.busy_poll", 0, "net.core.netdev_budget", 300,
			 "microcode");
}

static void head_fill(const struct fixture *f, json_t *o)
{
	json_object_set_new(o, "schema", json_string("napier-results"));
	json_object_set_new(o, "version", json_integer(1));
	json_object_set_new(o, "napier", json_string("0.1.0"));
	json_object_set_new(o, "name", json_string("example"));
	json_object_set_new(o, "title",
			    named(f, "%sThreaded polling, one step at a time%.0u%s", "", 0));
	json_object_set_new(o, "source",
			    json_string("A discussion of 2025 about threaded busy polling"));
	json_object_set_new(
		o, "question",
		json_string("What does each step from one core to two, from interrupts to "
			    "busy polling, give, and what does it cost?"));
	json_object_set_new(o, "length", json_string("full"));
	json_object_set_new(o, "partial", json_false());
	json_object_set_new(o, "started", json_string("2025-11-30T12:00:00Z"));
	json_object_set_new(o, "duration_s", json_real(812));
	json_object_set_new(o, "command",
			    json_pack("[s, s, s, s, s]", "napier", "bench", "example", "--set",
				      "full.repeats=4"));
	json_object_set_new(o, "set", json_pack("{s:s}", "full.repeats", "4"));
	json_object_set_new(
		o, "specification",
		named(f,
		      "# One step at a time.\ntitle = \"Threaded polling%s\";\n"
		      "full = { warm = \"1s\"; duration = \"5s\"; repeats = %u; };\n# %s\n",
		      "", 4));
	json_object_set_new(o, "specification_path", json_string("specs/example.conf"));
	json_object_set_new(
		o, "scaled",
		json_pack("[s]", "CPU 3 of the specification is CPU 1 here: there are 2."));
	json_object_set_new(o, "environment", environment_json());
	json_object_set_new(o, "topology",
			    json_pack("{s:s, s:[s, s]}", "kind", "ends", "commands",
				      "ip netns add client",
				      "ip link add eth0 netns client type veth peer name "
				      "dut0 netns server"));
	json_object_set_new(o, "antagonists",
			    json_pack("[{s:s, s:s, s:i, s:s}]", "key", "hog", "kind", "hog",
				      "threads", 1, "cpus", "1"));
	json_object_set_new(o, "notes",
			    json_pack("[s]", "No hardware counters on this machine: cycles and "
					     "instructions are not given."));
}

static json_t *runs_make(const struct fixture *f)
{
	json_t *runs = json_array();
	unsigned order = 0;

	for (unsigned repeat = 0; repeat < f->repeats; repeat++) {
		for (unsigned w = 0; w < f->workloads; w++) {
			for (unsigned i = 0; i < f->systems; i++) {
				/* ABBA */
				unsigned s = repeat % 2 ? f->systems - 1 - i : i;

				if (f->faults && (s == 7 || (s == 8 && repeat)))
					continue;
				json_array_append_new(runs, run_make(f, s, w, repeat, order++));
			}
		}
	}
	return runs;
}

json_t *results_fixture(const struct fixture *f)
{
	json_t *o = json_object(), *systems = json_array(), *workloads = json_array();

	state = 0x9e3779b97f4a7c15u ^ (f->seed + 1) * 0x2545f4914f6cdd1du;
	head_fill(f, o);
	for (unsigned i = 0; i < f->systems; i++)
		json_array_append_new(systems, system_json(f, i));
	for (unsigned i = 0; i < f->workloads; i++)
		json_array_append_new(workloads, workload_json(f, i));
	json_object_set_new(o, "systems", systems);
	json_object_set_new(o, "workloads", workloads);
	json_object_set_new(o, "runs", runs_make(f));
	return o;
}
