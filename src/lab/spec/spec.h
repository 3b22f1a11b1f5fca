/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spec: an experiment as its file says it: what carries packets and who polls for it (systems),
 * what is sent (workloads), what else runs (antagonists), where everything runs, how long. The
 * format is in napier-spec(5). Nothing here does anything: run/experiment.h does.
 *
 * CPUs in a specification are numbers of the CPUs that the process may use, from 0; where the
 * machine has fewer they wrap, which is noted. What is in these structures (place, knobs, settings)
 * has the machine's own numbers.
 */
#ifndef LAB_SPEC_SPEC_H
#define LAB_SPEC_SPEC_H

#include "lab/load/load.h"

enum {
	SPEC_SYSTEMS_MAX = 32,
	SPEC_WORKLOADS_MAX = 16,
	SPEC_ANTAGONISTS_MAX = 4,
	SPEC_KNOBS_MAX = 16,
	SPEC_PLACES_MAX = 8,
	SPEC_NOTES_MAX = 24,
	SPEC_CHOICES_MAX = 8,
	SPEC_NAME_MAX = 80,
	SPEC_TEXT_MAX = 1024,
	SPEC_REPEATS_MAX = 16, /* SERIES_MAX */
};

/*
 * ends: client and server are hosts with a cable between them, and the server's host is under test
 * middle: something forwards between them, and is under test
 */
enum spec_topology { SPEC_ENDS, SPEC_MIDDLE };

enum spec_dut {
	SPEC_KERNEL,
	SPEC_NAPIER,
	SPEC_COMMAND, /* of the user's, run in the namespace under test */
};

/* What the device under test does with packets. */
enum spec_handler {
	SPEC_SOCKET, /* ends: kernel sockets (kernel), or napier's udp sockets (napier) */
	SPEC_HOST,   /* ends: napier run --host, kernel sockets behind it */
	SPEC_BRIDGE, /* middle */
	SPEC_ROUTER, /* middle: the kernel's (napier's when it has one) */
};

/* The kernel's own: by which NAPIs of the interfaces under test are polled. */
enum spec_kernel_poller {
	SPEC_KERNEL_SOFTIRQ,
	SPEC_KERNEL_THREADED,
	SPEC_KERNEL_THREADED_BUSY_POLL, /* kernel 6.19 on */
	SPEC_KERNEL_SOCKET_BUSY_POLL,	/* the server's sockets: busy_poll, prefer_busy_poll */
};

struct spec_knob {
	char key[40], value[40]; /* see run/knobs.h */
	int line;
};

/* Who: "client", "server", "poller", "interrupt", "worker", "antagonist". */
struct spec_placement {
	char who[16];
	struct cpuset cpus;	      /* the machine's own numbers */
	enum runner_class scheduling; /* as struct placement has them */
	int nice, priority;
	bool placed; /* class, nice or priority is given */
	int line;
};

struct spec_system {
	char key[SPEC_NAME_MAX];      /* "kernel-softirq"; unique */
	char name[SPEC_NAME_MAX];     /* for tables */
	char scenario[SPEC_NAME_MAX]; /* "a: one core"; tables are grouped by it; "" */
	int line;
	bool base; /* the others of its scenario are compared with it; else its first one is */
	enum spec_dut dut;
	enum spec_handler handler;
	enum spec_kernel_poller kernel_poller; /* SPEC_KERNEL */
	enum poller poller;		       /* SPEC_NAPIER */
	char port[16];			       /* kind of napier's ports: "xdp" */
	char port_options[64]; /* of its text, behind the interface: "tx_napi=yes"; "" */
	/* Of napier, as its configuration has them: keys of the group engine, and of each port. */
	char settings[SPEC_TEXT_MAX], port_settings[SPEC_TEXT_MAX];
	char command[SPEC_TEXT_MAX]; /* SPEC_COMMAND, by sh -c; see napier-spec(5) */
	unsigned queues;	     /* of the interfaces under test; 0: 1 */
	/* The server's sockets; they override the workload's. */
	bool server_spins, client_spins, prefer_busy_poll;
	unsigned busy_poll_usecs, busy_poll_budget;
	unsigned knobs;
	struct spec_knob knob[SPEC_KNOBS_MAX];
	unsigned places;
	struct spec_placement place[SPEC_PLACES_MAX];
	unsigned only; /* bits of workloads that it runs; 0: all */
};

struct spec_workload {
	char key[SPEC_NAME_MAX], name[SPEC_NAME_MAX];
	int line;
	struct load_config load;
};

/*
 * SPEC_AWAKE: a thread of class idle on each CPU, which gives way to everything else, so that no CPU
 * halts. Waking a CPU that has halted takes tens of us, on a virtual machine now and then
 * milliseconds, and comes on top of what is measured.
 */
enum spec_antagonist_kind { SPEC_HOG, SPEC_BACKGROUND, SPEC_AWAKE };

/* As in a file and in results: "hog". */
const char *spec_antagonist_kind_name(enum spec_antagonist_kind kind);

struct spec_antagonist {
	char key[SPEC_NAME_MAX];
	enum spec_antagonist_kind kind;
	unsigned threads;
	struct cpuset cpus;
	int nice;
	struct load_config load; /* SPEC_BACKGROUND: beside the measured load */
	int line;
};

/* Lengths, ns. */
struct spec_length {
	int64_t warm, duration;
	unsigned repeats;
};

struct spec {
	char name[SPEC_NAME_MAX]; /* of the file, without .conf */
	char path[512];
	char title[SPEC_TEXT_MAX];
	char source[SPEC_TEXT_MAX];   /* whose claim, when, where */
	char question[SPEC_TEXT_MAX]; /* what it is to answer */
	char *text;		      /* the file */
	enum spec_topology topology;
	/* Given interfaces (they are not made): "" for none. `address` with prefix length. */
	struct spec_end {
		char interface[16], netns[64], address[64];
	} client, server;
	struct spec_end middle[2];
	bool given;
	struct spec_length quick, full;
	unsigned systems, workloads, antagonists;
	struct spec_system system[SPEC_SYSTEMS_MAX];
	struct spec_workload workload[SPEC_WORKLOADS_MAX];
	struct spec_antagonist antagonist[SPEC_ANTAGONISTS_MAX];
	unsigned scaled; /* notes: how it was made to fit this machine */
	char note[SPEC_NOTES_MAX][256];
	unsigned choices; /* sentences: what spec_only left out */
	char choice[SPEC_CHOICES_MAX][256];
};

struct spec_setting {
	const char *key,
		*value; /* of --set; value as it stands in a file, or a text without quotes */
};

/*
 * Reads a specification: text ends with a NUL, path is for errors and for the name, usable are the
 * CPUs that it is made to fit. -EINVAL, -ERANGE: "FILE:LINE: what is wrong, and what would be
 * right", or "--set KEY=VALUE: …". *out is for spec_free.
 */
int spec_parse(const char *path, const char *text, const struct cpuset *usable,
	       const struct spec_setting *set, unsigned sets, struct spec **out, struct error *err);

/*
 * A path (it has a / or ends in .conf, or such a file is there), or the name of a shipped one.
 * -ESRCH, of a name, lists them; -ENOENT: there is no such file. A setting's key is a path in the
 * file: "quick.duration", "workloads.[0].flows", "systems.kernel.knobs.rps_cpus" (by number or
 * key); a member that could be there is made.
 */
int spec_load(const char *name, const struct spec_setting *set, unsigned sets, struct spec **out,
	      struct error *err);
void spec_free(struct spec *spec);

/*
 * Leaves the systems whose keys match one of the patterns (fnmatch(3)), and the workloads that any
 * of these runs. -ENOENT: a pattern that matches none; err lists the systems, and nothing has
 * changed.
 */
int spec_only(struct spec *spec, const char *const *patterns, unsigned n, struct error *err);
/* The one that says so of a scenario, or its first; NULL: there is no such scenario. */
const struct spec_system *spec_base(const struct spec *spec, const char *scenario);

/* Directory of the shipped ones: $NAPIER_SPECS, beside the built program, or as installed. */
const char *spec_directory(void);
/* Calls for each, by name. */
int spec_list(void (*each)(void *arg, const struct spec *spec), void *arg, struct error *err);

#endif
