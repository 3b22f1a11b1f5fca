/* SPDX-License-Identifier: BSD-2-Clause */
/* Specifications: what they say, how they are made to fit, and what is said of a wrong one. */
#include "test.h"

#include <errno.h>
#include <unistd.h>

#include "spec_text.h"

static struct spec *parse(const char *text, const char *usable)
{
	struct cpuset cpus = cpus_make(usable);
	struct error err = {0};
	struct spec *spec;

	if (spec_parse("x.conf", text, &cpus, NULL, 0, &spec, &err))
		fail_msg("%s", err.text);
	return spec;
}

static struct spec *parse_set(const char *text, const char *key, const char *value)
{
	const struct spec_setting set = {key, value};
	struct cpuset cpus = cpus_make("0-3");
	struct error err = {0};
	struct spec *spec;

	if (spec_parse("x.conf", text, &cpus, &set, 1, &spec, &err))
		fail_msg("%s", err.text);
	return spec;
}

static void the_least(void **state)
{
	struct spec *spec = parse(WORKLOADS SYSTEMS, "0-3");

	(void)state;
	assert_string_equal(spec->name, "x");
	assert_string_equal(spec->path, "x.conf");
	assert_string_equal(spec->text, WORKLOADS SYSTEMS);
	assert_int_equal(spec->topology, SPEC_ENDS);
	assert_int_equal(spec->systems, 1);
	assert_string_equal(spec->system[0].key, "k");
	assert_string_equal(spec->system[0].name, "k");
	assert_int_equal(spec->system[0].line, 2);
	assert_int_equal(spec->system[0].dut, SPEC_KERNEL);
	assert_int_equal(spec->system[0].handler, SPEC_SOCKET);
	assert_int_equal(spec->system[0].kernel_poller, SPEC_KERNEL_SOFTIRQ);
	assert_int_equal(spec->workloads, 1);
	assert_int_equal(spec->workload[0].load.kind, LOAD_RR);
	assert_int_equal(spec->workload[0].load.protocol, LOAD_TCP);
	assert_int_equal(spec->workload[0].load.flows, 1);
	assert_int_equal(spec->workload[0].load.request_size, 1);
	assert_true(spec->quick.duration > 0 && spec->quick.repeats > 0);
	assert_true(spec->full.duration > spec->quick.duration);
	assert_int_equal(spec->scaled, 0);
	spec_free(spec);
	spec_free(NULL);
}

static void cpus_are(const struct cpuset *cpus, const char *wanted)
{
	char text[64];

	cpuset_format(cpus, text, sizeof(text));
	assert_string_equal(text, wanted);
}

static void reads_lengths_and_ends(void **state)
{
	struct spec *spec = parse(EVERYTHING, "0-3");

	(void)state;
	assert_string_equal(spec->title, "T");
	assert_string_equal(spec->source, "S");
	assert_string_equal(spec->question, "Q");
	assert_true(spec->given);
	assert_string_equal(spec->client.interface, "c0");
	assert_string_equal(spec->client.netns, "a");
	assert_string_equal(spec->server.address, "10.0.0.2/24");
	assert_int_equal(spec->quick.warm, 10000000);
	assert_int_equal(spec->quick.duration, 1500000000);
	assert_int_equal(spec->quick.repeats, 3);
	assert_int_equal(spec->full.warm, 0);
	assert_int_equal(spec->full.repeats, 16);
	spec_free(spec);
}

static void reads_systems(void **state)
{
	struct spec *spec = parse(EVERYTHING, "0-3");
	const struct spec_system *n = &spec->system[0], *k = &spec->system[1];

	(void)state;
	assert_int_equal(spec->systems, 3);
	assert_string_equal(n->key, "n");
	assert_string_equal(n->name, "N");
	assert_string_equal(n->scenario, "s");
	assert_int_equal(n->line, 7);
	assert_true(n->base && n->server_spins && n->client_spins && n->prefer_busy_poll);
	assert_int_equal(n->dut, SPEC_NAPIER);
	assert_int_equal(n->handler, SPEC_HOST);
	assert_int_equal(n->poller, POLLER_BUSY_POLL);
	assert_string_equal(n->port, "xdp");
	assert_string_equal(n->port_options, "tx_napi=yes,checksum=complete");
	assert_int_equal(n->queues, 2);
	assert_int_equal(n->busy_poll_usecs, 64);
	assert_int_equal(n->busy_poll_budget, 8);
	assert_non_null(strstr(n->settings, "netdev_budget = 100;"));
	assert_non_null(strstr(n->settings, "cpus = \"1\";"));
	assert_non_null(strstr(n->port_settings, "rps_cpus = \"0-1\";"));
	assert_int_equal(n->knobs, 3);
	assert_string_equal(n->knob[0].key, "gro_flush_timeout");
	assert_string_equal(n->knob[0].value, "20000");
	assert_int_equal(n->knob[0].line, 14);
	assert_string_equal(n->knob[2].value, "1,3");
	assert_int_equal(n->only, 1 << 0 | 1 << 2);
	/* Of the one that it is like, but for name and base. */
	assert_string_equal(k->name, "k");
	assert_false(k->base);
	assert_int_equal(k->kernel_poller, SPEC_KERNEL_SOCKET_BUSY_POLL);
	assert_int_equal(k->knobs, 3);
	assert_int_equal(k->queues, 2);
	assert_int_equal(k->only, 1 << 1);
	assert_int_equal(spec->system[2].dut, SPEC_COMMAND);
	assert_string_equal(spec->system[2].command, "true");
	assert_int_equal(spec->system[2].only, 0);
	spec_free(spec);
}

static void reads_places(void **state)
{
	struct spec *spec = parse(EVERYTHING, "0-3");
	const struct spec_placement *place = spec->system[0].place;

	(void)state;
	assert_int_equal(spec->system[0].places, 6);
	assert_string_equal(place[0].who, "client");
	cpus_are(&place[0].cpus, "0");
	assert_false(place[0].placed);
	assert_int_equal(place[0].line, 15);
	cpus_are(&place[1].cpus, "1-2");
	cpus_are(&place[2].cpus, "0-3");
	assert_string_equal(place[3].who, "poller");
	cpus_are(&place[3].cpus, "3");
	assert_true(place[3].placed);
	assert_int_equal(place[3].scheduling, RUNNER_FIFO);
	assert_int_equal(place[3].priority, 10);
	assert_int_equal(place[3].nice, 0);
	assert_true(cpuset_empty(&place[4].cpus) && place[4].placed);
	assert_int_equal(place[4].scheduling, RUNNER_FAIR);
	assert_int_equal(place[4].nice, -5);
	cpus_are(&place[5].cpus, "3");
	spec_free(spec);
}

static void reads_workloads(void **state)
{
	struct spec *spec = parse(EVERYTHING, "0-3");
	const struct load_config *r = &spec->workload[0].load, *s = &spec->workload[1].load;
	const struct load_config *u = &spec->workload[2].load;

	(void)state;
	assert_int_equal(spec->workloads, 3);
	assert_string_equal(spec->workload[0].name, "R");
	assert_int_equal(spec->workload[0].line, 23);
	assert_true(r->kind == LOAD_RR && r->protocol == LOAD_UDP);
	assert_int_equal(r->flows, 40);
	assert_int_equal(r->threads, 2);
	assert_int_equal(r->server_threads, 2);
	assert_int_equal(r->timeout, 2000000000);
	assert_int_equal(r->interval, 50000000);
	assert_int_equal(r->seed, 7);
	assert_int_equal(r->request_size, 200);
	assert_int_equal(r->response_size, 400);
	assert_true(r->rate == 1234.5 && r->arrivals == LOAD_POISSON);
	assert_int_equal(r->outstanding, 99);
	assert_true(r->server_spins && r->client_spins && r->prefer_busy_poll);
	assert_int_equal(r->work, 20000);
	assert_int_equal(r->stall, 200000000);
	assert_int_equal(r->stall_every, 1000000000);
	assert_int_equal(r->busy_poll_usecs, 5);
	assert_int_equal(r->busy_poll_budget, 6);
	assert_true(s->kind == LOAD_STREAM && s->direction == LOAD_BOTH && s->rate == 5000);
	assert_int_equal(s->sizes, 2);
	assert_int_equal(s->size[1], 1472);
	assert_int_equal(s->batch, 8);
	assert_int_equal(u->kind, LOAD_RRUL);
	assert_int_equal(u->tcp_flows, 2);
	assert_true(u->probe_rate == 50 && u->idle == 100000000);
	spec_free(spec);
}

/* What is not written is filled in, so that results say all of it. */
static void fills_defaults(void **state)
{
	struct spec *spec = parse("workloads = { a = { kind = \"rr\"; connect = true; threads = 2; "
				  "flows = 2; }; };\n" SYSTEMS,
				  "0-3");
	const struct load_config *a = &spec->workload[0].load;

	(void)state;
	assert_true(a->connect);
	assert_int_equal(a->server_threads, 2);
	assert_int_equal(a->timeout, NSEC_PER_SEC);
	assert_int_equal(a->interval, 100 * NSEC_PER_MSEC);
	spec_free(spec);
}

static void reads_antagonists(void **state)
{
	struct spec *spec = parse(EVERYTHING, "0-3");
	const struct spec_antagonist *h = &spec->antagonist[0], *b = &spec->antagonist[1];

	(void)state;
	assert_int_equal(spec->antagonists, 2);
	assert_string_equal(h->key, "h");
	assert_int_equal(h->kind, SPEC_HOG);
	assert_int_equal(h->threads, 4);
	assert_int_equal(h->nice, 5);
	cpus_are(&h->cpus, "1");
	assert_int_equal(b->kind, SPEC_BACKGROUND);
	assert_int_equal(b->load.kind, LOAD_STREAM);
	assert_int_equal(b->load.flows, 20);
	cpus_are(&b->cpus, "2");
	spec_free(spec);
}

/* What forwards, and given interfaces for it. */
static void reads_middle(void **state)
{
	struct spec *spec = parse(
		"topology = \"middle\";\n"
		"given = { client = { interface = \"c\"; netns = \"a\"; address = \"10.0.0.1/24\"; "
		"};\n"
		"server = { interface = \"s\"; netns = \"b\"; address = \"10.0.0.2/24\"; };\n"
		"middle = ( { interface = \"m0\"; }, { interface = \"m1\"; netns = \"x\"; } ); };\n"
		"systems = { a = { dut = \"napier\"; poller = \"workqueue\"; port = \"packet\"; "
		"};\n"
		"b = { handler = \"router\"; poller = \"threaded\"; }; };\n" WORKLOADS,
		"0");

	(void)state;
	assert_int_equal(spec->topology, SPEC_MIDDLE);
	assert_string_equal(spec->middle[0].interface, "m0");
	assert_string_equal(spec->middle[1].netns, "x");
	assert_int_equal(spec->system[0].handler, SPEC_BRIDGE);
	assert_int_equal(spec->system[0].poller, POLLER_WORKQUEUE);
	assert_string_equal(spec->system[0].port, "packet");
	assert_int_equal(spec->system[1].handler, SPEC_ROUTER);
	assert_int_equal(spec->system[1].kernel_poller, SPEC_KERNEL_THREADED);
	spec_free(spec);
}

static const char inherits[] =
	"defaults = { system = { dut = \"napier\"; handler = \"host\"; queues = 2;\n"
	"    place = { client = 0; server = 1; }; knobs = { busy_poll = 1; busy_read = 2; };\n"
	"    engine = { hz = 100; }; only = \"w\"; };\n"
	"  workload = { kind = \"rr\"; flows = 5; sizes = [ 64 ]; direction = \"down\"; }; };\n"
	"systems = { a = { }; b = { queues = 1; place = { server = \"any\"; }; knobs = { busy_read "
	"= 3; }; "
	"};\n"
	"  c = { dut = \"kernel\"; handler = \"socket\"; only = \"v\"; };\n"
	"  d = { like = \"b\"; engine = { hz = 250; }; }; };\n"
	"workloads = { w = { flows = 7; }; v = { kind = \"stream\"; }; };\n";

static void defaults(void **state)
{
	struct spec *spec = parse(inherits, "0-3");
	const struct spec_system *s = spec->system;

	(void)state;
	assert_int_equal(s[0].queues, 2);
	assert_int_equal(s[0].dut, SPEC_NAPIER);
	assert_int_equal(s[0].only, 1);
	assert_string_equal(s[0].knob[1].value, "2");
	assert_int_equal(s[1].queues, 1);
	assert_int_equal(s[1].knobs, 2);
	assert_string_equal(s[1].knob[0].value, "3");
	assert_string_equal(s[1].knob[1].key, "busy_poll");
	assert_string_equal(s[1].place[0].who, "server");
	assert_true(cpuset_empty(&s[1].place[0].cpus));
	cpus_are(&s[1].place[1].cpus, "0");
	assert_int_equal(s[2].dut, SPEC_KERNEL);
	assert_int_equal(s[2].only, 2);
	assert_int_equal(s[3].queues, 1);
	assert_non_null(strstr(s[3].settings, "hz = 250;"));
	assert_non_null(strstr(s[0].settings, "hz = 100;"));
	assert_string_equal(s[2].settings, "");
	/* sizes and direction are for those that have them. */
	assert_int_equal(spec->workload[0].load.flows, 7);
	assert_int_equal(spec->workload[0].load.sizes, 0);
	assert_int_equal(spec->workload[1].load.sizes, 1);
	assert_int_equal(spec->workload[1].load.direction, LOAD_DOWN);
	assert_int_equal(spec->workload[1].load.flows, 5);
	spec_free(spec);
}

static bool noted(const struct spec *spec, const char *text)
{
	for (unsigned i = 0; i < spec->scaled; i++) {
		if (strstr(spec->note[i], text))
			return true;
	}
	return false;
}

/* The same file on machines of 1, 2 and 8 CPUs, whose numbers are not 0, 1, … */
static void scaling(void **state)
{
	static const char text[] =
		"original = { cpus = 56; };\n"
		"workloads = { a = { kind = \"rr\"; flows = \"18*cpus\"; threads = \"cpus/2\";\n"
		"    original = { flows = 1000; threads = 28; }; };\n"
		"  b = { kind = \"rr\"; flows = \"18*cpus\"; threads = \"cpus/2\";\n"
		"    original = { flows = 1000; threads = 28; }; };\n"
		"  c = { kind = \"rr\"; flows = 3; threads = \"cpus\"; original = { flows = 3; }; "
		"}; };\n"
		"systems = { k = { place = { client = \"lower\"; server = \"upper\"; poller = 4;\n"
		"    worker = \"last\"; }; knobs = { rps_cpus = \"0,5\"; }; };\n"
		"  n = { dut = \"napier\"; handler = \"host\"; ports = { cpu = 3; }; }; };\n";
	struct spec *spec = parse(text, "5");
	const struct spec_placement *place = spec->system[0].place;

	(void)state;
	assert_int_equal(spec->workload[0].load.flows, 18);
	assert_int_equal(spec->workload[0].load.threads, 1);
	cpus_are(&place[0].cpus, "5");
	cpus_are(&place[1].cpus, "5");
	assert_true(noted(spec,
			  "a, b: flows 18 (there 1000), threads 1 (there 28): CPUs 1 (there 56)"));
	assert_true(noted(spec, "number 3 is 5, 4 is 5, 5 is 5 here"));
	assert_int_equal(spec->scaled, 2);
	spec_free(spec);

	spec = parse(text, "2,9");
	place = spec->system[0].place;
	cpus_are(&place[0].cpus, "2");
	cpus_are(&place[1].cpus, "9");
	cpus_are(&place[2].cpus, "2");
	cpus_are(&place[3].cpus, "9");
	assert_string_equal(spec->system[0].knob[0].value, "2,9");
	assert_non_null(strstr(spec->system[1].port_settings, "cpu = 9;"));
	/* No more threads than flows. */
	assert_int_equal(spec->workload[2].load.threads, 2);
	spec_free(spec);

	spec = parse(text, "8-15");
	place = spec->system[0].place;
	assert_int_equal(spec->workload[0].load.flows, 144);
	assert_int_equal(spec->workload[0].load.threads, 4);
	assert_int_equal(spec->workload[2].load.threads, 3);
	cpus_are(&place[0].cpus, "8-11");
	cpus_are(&place[1].cpus, "12-15");
	cpus_are(&place[2].cpus, "12");
	cpus_are(&place[3].cpus, "15");
	assert_int_equal(spec->scaled, 1);
	spec_free(spec);
}

/* What is scaled fits; what is written does not have to. */
static void limits(void **state)
{
	struct spec *spec =
		parse("workloads = { a = { kind = \"rr\"; flows = \"1000*cpus\"; }; };\n" SYSTEMS,
		      "0-63");

	(void)state;
	assert_int_equal(spec->workload[0].load.flows, LOAD_FLOWS_MAX);
	spec_free(spec);
}

static void settings_by_path(void **state)
{
	struct spec *spec = parse_set(EVERYTHING, "quick.duration", "250ms");

	(void)state;
	assert_int_equal(spec->quick.duration, 250000000);
	spec_free(spec);
	spec = parse_set(EVERYTHING, "workloads.[0].flows", "77");
	assert_int_equal(spec->workload[0].load.flows, 77);
	spec_free(spec);
	spec = parse_set(EVERYTHING, "workloads.r.flows", "2*cpus");
	assert_int_equal(spec->workload[0].load.flows, 8);
	spec_free(spec);
	spec = parse_set(EVERYTHING, "workloads.s.sizes.[1]", "100");
	assert_int_equal(spec->workload[1].load.size[1], 100);
	spec_free(spec);
	spec = parse_set(EVERYTHING, "workloads.s.sizes", "[ 16, 17, 18 ]");
	assert_int_equal(spec->workload[1].load.sizes, 3);
	spec_free(spec);
	/* Another type than what is there, and a key that is not. */
	spec = parse_set(EVERYTHING, "systems.n.knobs.rps_cpus", "2");
	assert_string_equal(spec->system[0].knob[2].value, "2");
	spec_free(spec);
	spec = parse_set(EVERYTHING, "systems.c.place.server", "0-1");
	cpus_are(&spec->system[2].place[0].cpus, "0-1");
	spec_free(spec);
	spec = parse_set(EVERYTHING, "systems.[2].queues", "3");
	assert_int_equal(spec->system[2].queues, 3);
	spec_free(spec);
	spec = parse_set(WORKLOADS SYSTEMS, "defaults.system.queues", "3");
	assert_int_equal(spec->system[0].queues, 3);
	spec_free(spec);
	spec = parse_set(WORKLOADS SYSTEMS, "systems.more",
			 "{ dut = \"napier\"; handler = \"host\"; }");
	assert_int_equal(spec->systems, 2);
	assert_int_equal(spec->system[1].dut, SPEC_NAPIER);
	spec_free(spec);
	/* A text that a file would have in quotes: with them, too. */
	spec = parse_set(WORKLOADS SYSTEMS, "title", "\"in quotes\"");
	assert_string_equal(spec->title, "in quotes");
	spec_free(spec);
	spec = parse_set(WORKLOADS SYSTEMS, "title", "1; quick = 5");
	assert_string_equal(spec->title, "1; quick = 5");
	spec_free(spec);
	spec = parse_set(WORKLOADS SYSTEMS, "title", "@include \"/\"");
	assert_string_equal(spec->title, "@include \"/\"");
	spec_free(spec);
}

/* The files that are shipped, on this machine and on others. */
static void count_shipped(void *arg, const struct spec *spec)
{
	unsigned *n = arg, runs = 0;
	double seconds;

	(*n)++;
	assert_true(spec->title[0] && spec->source[0] && spec->question[0]);
	for (unsigned i = 0; i < spec->systems; i++)
		for (unsigned w = 0; w < spec->workloads; w++)
			runs += !spec->system[i].only || spec->system[i].only >> w & 1;
	/* With what starting and stopping a system takes: 0.15 to 0.3 s on two idle CPUs. */
	seconds = runs * spec->quick.repeats *
		  (0.3 + (double)(spec->quick.warm + spec->quick.duration) / 1e9);
	if (seconds > 60)
		fail_msg("%s: %u runs a round: a quick one would take %.0f s", spec->name, runs,
			 seconds);
	for (unsigned cpus = 1; cpus <= 64; cpus *= 4) {
		struct cpuset usable = {0};
		struct error err = {0};
		struct spec *other;

		for (unsigned i = 0; i < cpus; i++)
			cpuset_add(&usable, i);
		if (spec_parse(spec->path, spec->text, &usable, NULL, 0, &other, &err))
			fail_msg("%u CPUs: %s", cpus, err.text);
		assert_int_equal(other->systems, spec->systems);
		spec_free(other);
	}
}

static void shipped(void **state)
{
	static const char *const names[] = {"fietkau-2020", "fietkau-2023", "khawaja-2025",
					    "riel-2014", "wang-2020"};
	struct error err = {0};
	unsigned n = 0;

	(void)state;
	if (spec_list(count_shipped, &n, &err))
		fail_msg("%s", err.text);
	assert_int_equal(n, 5);
	for (unsigned i = 0; i < n; i++) {
		struct spec *spec;

		if (spec_load(names[i], NULL, 0, &spec, &err))
			fail_msg("%s", err.text);
		assert_string_equal(spec->name, names[i]);
		spec_free(spec);
	}
}

static void file_write(const char *path, const char *text, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	fclose(file);
}

static void load_wrong(const char *name, int code, const char *has)
{
	struct error err = {0};
	struct spec *spec;
	int rc = spec_load(name, NULL, 0, &spec, &err);

	if (rc != code || !strstr(err.text, has))
		fail_msg("%s: %d \"%s\" is not %d \"…%s…\"", name, rc, err.text, code, has);
}

static void files(void **state)
{
	static char long_text[300 << 10];
	char directory[] = "/tmp/napier-spec-XXXXXX", path[64], other[64];
	struct error err = {0};
	struct spec *spec;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/mine.conf", directory);
	snprintf(other, sizeof(other), "%s/other", directory);
	file_write(path, WORKLOADS SYSTEMS, strlen(WORKLOADS SYSTEMS));
	assert_int_equal(spec_load(path, NULL, 0, &spec, &err), 0);
	assert_string_equal(spec->name, "mine");
	assert_string_equal(spec->path, path);
	spec_free(spec);
	load_wrong("wang", -ESRCH, "there are fietkau-2020, fietkau-2023, khawaja-2025");
	load_wrong("no.conf", -ENOENT, "no.conf: No such file");
	load_wrong(directory, -EINVAL, "not a file");
	load_wrong(other, -ENOENT, "No such file");
	file_write(other, "a\0b", 3);
	load_wrong(other, -EINVAL, "not a text file");
	memset(long_text, ' ', sizeof(long_text));
	file_write(other, long_text, sizeof(long_text));
	load_wrong(other, -EFBIG, "so no specification");

	/* Another directory of shipped ones. */
	setenv("NAPIER_SPECS", directory, 1);
	assert_string_equal(spec_directory(), directory);
	assert_int_equal(spec_load("mine", NULL, 0, &spec, &err), 0);
	spec_free(spec);
	unlink(path);
	load_wrong("mine", -ESRCH, "NAPIER_SPECS");
	assert_int_equal(spec_list(NULL, NULL, &err), -ENOENT);
	unsetenv("NAPIER_SPECS");
	unlink(other);
	rmdir(directory);
}

#define TWO_SCENARIOS                                                                              \
	"workloads = { a = { kind = \"rr\"; }; b = { kind = \"rr\"; flows = 2; };\n"               \
	"  c = { kind = \"rr\"; flows = 3; }; };\n"                                                \
	"systems = { x-1 = { scenario = \"x\"; only = \"a\"; };\n"                                 \
	"  x-2 = { scenario = \"x\"; base = true; only = [ \"a\", \"b\" ]; };\n"                   \
	"  x-3 = { scenario = \"x\"; only = [ \"b\", \"c\" ]; };\n"                                \
	"  y-1 = { scenario = \"y\"; only = \"c\"; }; y-2 = { scenario = \"y\"; }; };\n"

static struct spec *only(const char *const *patterns, unsigned n)
{
	struct spec *spec = parse(TWO_SCENARIOS, "0-3");
	struct error err = {0};

	if (spec_only(spec, patterns, n, &err))
		fail_msg("%s", err.text);
	return spec;
}

static void some_systems_are_left(void **state)
{
	static const char *const last[] = {"x-3"}, *const several[] = {"x-[13]", "y-1"};
	static const char *const all[] = {"*"};
	struct spec *spec = only(last, 1);

	(void)state;
	assert_int_equal(spec->systems, 1);
	assert_string_equal(spec->system[0].key, "x-3");
	/* Workloads that it runs, and their bits. */
	assert_int_equal(spec->workloads, 2);
	assert_string_equal(spec->workload[0].key, "b");
	assert_string_equal(spec->workload[1].key, "c");
	assert_int_equal(spec->system[0].only, 3);
	assert_ptr_equal(spec_base(spec, "x"), &spec->system[0]);
	assert_null(spec_base(spec, "y"));
	assert_int_equal(spec->choices, 2);
	assert_string_equal(
		spec->choice[0],
		"The base x-2 of \"x\" was left out (--only): systems are compared with "
		"x-3 instead.");
	assert_string_equal(spec->choice[1],
			    "Only 1 of the specification's 5 systems were asked for.");
	spec_free(spec);

	spec = only(several, 2);
	assert_int_equal(spec->systems, 3);
	assert_string_equal(spec->system[1].key, "x-3");
	assert_int_equal(spec->workloads, 3);
	assert_int_equal(spec->system[0].only, 1);
	assert_int_equal(spec->system[1].only, 6);
	assert_int_equal(spec->system[2].only, 4);
	assert_ptr_equal(spec_base(spec, "x"), &spec->system[0]);
	assert_int_equal(spec->choices, 2);
	spec_free(spec);

	spec = only(all, 1);
	assert_int_equal(spec->systems, 5);
	assert_int_equal(spec->choices, 0);
	spec_free(spec);
}

static void a_pattern_without_a_system_is_refused(void **state)
{
	static const char *const patterns[] = {"x-1", "z-*"};
	struct spec *spec = parse(TWO_SCENARIOS, "0-3");
	struct error err = {0};

	(void)state;
	assert_int_equal(spec_only(spec, patterns, 2, &err), -ENOENT);
	assert_string_equal(err.text,
			    "no system is called \"z-*\": they are x-1, x-2, x-3, y-1, y-2");
	assert_int_equal(spec->systems, 5);
	spec_free(spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least),
		cmocka_unit_test(reads_lengths_and_ends),
		cmocka_unit_test(reads_systems),
		cmocka_unit_test(reads_places),
		cmocka_unit_test(reads_workloads),
		cmocka_unit_test(fills_defaults),
		cmocka_unit_test(reads_antagonists),
		cmocka_unit_test(reads_middle),
		cmocka_unit_test(defaults),
		cmocka_unit_test(scaling),
		cmocka_unit_test(limits),
		cmocka_unit_test(settings_by_path),
		cmocka_unit_test(shipped),
		cmocka_unit_test(files),
		cmocka_unit_test(some_systems_are_left),
		cmocka_unit_test(a_pattern_without_a_system_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
