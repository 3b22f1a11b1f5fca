/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * knob: what the files of knobs.h share. A knob is a row of a table; how values of its kind are
 * read and written is a struct knob_ops.
 *
 * What a setting is at a moment is a struct knob_state: the value that the interface has for all
 * its parts (NAPIs, queues, interrupts) and those to come, and the parts whose own value differs.
 * Values are canonical: numbers decimal, switches "on" and "off", CPUs a list or "none".
 */
#ifndef LAB_RUN_KNOB_H
#define LAB_RUN_KNOB_H

#include <net/if.h>
#include <stdio.h>

#include "lab/run/knobs.h"
#include "lab/run/napi_netlink.h"

enum { KNOB_VALUE_MAX = 256, KNOB_PARTS_MAX = 64, KNOB_PATH_MAX = 300 };

struct knob_state {
	char base[KNOB_VALUE_MAX];
	unsigned all;	/* parts there are */
	unsigned parts; /* of them with another value than base */
	struct {
		unsigned id;
		char value[KNOB_VALUE_MAX];
	} part[KNOB_PARTS_MAX];
};

/* Where: opened in the interface's namespace, and used from anywhere. */
struct knob_site {
	char interface[IFNAMSIZ]; /* "": the system */
	unsigned ifindex;
	int dir;    /* of the interface in sysfs, or /proc/sys/net/core; -1: none */
	int socket; /* for ioctl */
	struct napi_netlink netlink;
};

enum knob_type { KNOB_NUMBER, KNOB_SWITCH, KNOB_THREADED, KNOB_CPUS };

struct knob {
	const char *key;
	const struct knob_ops *ops;
	enum knob_type type;
	unsigned long long min, max; /* of a number; min 1 of CPUs: not "none" */
	const char *since;	     /* the first kernel that has it */
	const char *file;	     /* sysfs or /proc/sys; NULL: not there */
	unsigned get, set;	     /* ethtool's commands, or a NAPI's attribute */
	size_t field;		     /* of ethtool's answer */
};

/*
 * read: -EOPNOTSUPP (also: nothing is there that could have the value). write sets all to base, but
 * for the parts that are named. Both fill err.
 */
struct knob_ops {
	bool of_interface;
	int (*read)(const struct knob_site *site, const struct knob *knob, struct knob_state *out,
		    struct error *err);
	int (*write)(const struct knob_site *site, const struct knob *knob,
		     const struct knob_state *state, struct error *err);
};

extern const struct knob_ops knob_napi_ops;    /* knobs_napi.c */
extern const struct knob_ops knob_ethtool_ops; /* knobs_ethtool.c */
extern const struct knob_ops knob_coalesce_ops;
extern const struct knob_ops knob_queue_ops; /* knobs_file.c */
extern const struct knob_ops knob_irq_ops;
extern const struct knob_ops knob_system_ops;

/* NULL: there is none. */
const struct knob *knob_find(const char *key);
/* The canonical form. */
int knob_parse(const struct knob *knob, const char *value, char out[KNOB_VALUE_MAX],
	       struct error *err);
/* "off", "on", "busy-poll" of 0, 1, 2. */
const char *knob_switch_name(unsigned long long value);

/* netns: descriptor, -1: the caller's. -ENODEV: no such interface. */
int knob_site_open(int netns, const char *interface, struct knob_site *out, struct error *err);
void knob_site_close(struct knob_site *site);

/* -E2BIG and err: too many. `name` is of the parts: "NAPI". */
int knob_state_part(struct knob_state *state, const struct knob *knob, unsigned id,
		    const char *value, struct error *err);
/* The value that a part is to have. */
const char *knob_state_of(const struct knob_state *state, unsigned id);
/* The one value that all have; NULL: they differ. */
const char *knob_state_value(const struct knob_state *state);
/* "VALUE" or "VALUE ID=VALUE ...", as snprintf. */
int knob_state_format(const struct knob_state *state, char *text, size_t size);
int knob_state_parse(const struct knob *knob, const char *text, struct knob_state *out);

/* A value that was changed. */
struct knob_change {
	const struct knob *knob;
	int netns; /* -1: the caller's */
	char interface[IFNAMSIZ];
	unsigned ifindex;
	char ours[KNOB_VALUE_MAX];
	char *before; /* knob_state_format's; for free() */
};

/* 1: put back; 0: there was nothing to put back, or the interface is gone. */
int knob_change_undo(const struct knob_change *change, bool crashed, struct error *err);

/*
 * The record (knobs_record.c): RUNDIR/knobs.PID.N, locked while its owner lives. Who looks whether
 * a setting is free and then records it as his, and who recovers, does so under the lock of all
 * records in the directory, or two would find it free at once. Death releases it; it is a file
 * that is gone with its holder's unlock.
 */
int knobs_records_lock(const char *rundir, struct error *err); /* a descriptor, for: */
void knobs_records_unlock(const char *rundir, int lock);
int knobs_record_open(const char *rundir, char path[KNOB_PATH_MAX], struct error *err);
int knobs_record_add(int fd, const struct knob_change *change);
/* Who else, alive, has changed the same; 0: nobody. Under the lock. */
pid_t knobs_record_owner(const char *rundir, const struct knob_change *change);
/* knobs_recover, under the lock. */
int knobs_records_undo(const char *rundir);

#endif
