/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * knobs: the kernel's settings of packet polling, changed for a while. Each is read before it is
 * set, read back after, and restored; a record in the run directory, written before a change, lets
 * the next start restore what a killed one left.
 *
 *   of an interface   threaded (off, on, busy-poll), napi_defer_hard_irqs, gro_flush_timeout (ns),
 *                     irq_suspend_timeout (ns), rps_cpus, irq_cpus (list "0-3,8", mask "0xf",
 *                     "none"; the machine's numbers), rps_flow_cnt, gro, gso, tso, tx_csum, rx_csum
 *                     (on, off), rx_usecs, rx_frames, tx_usecs, adaptive_rx
 *   of the system     busy_poll, busy_read (us), rps_sock_flow_entries, netdev_budget,
 *                     netdev_budget_usecs, dev_weight, netdev_max_backlog
 *
 * By netlink (netdev family) where the kernel has it, else sysfs, ethtool, /proc/sys. One thread
 * uses a knobs. Functions return 0 or a negative errno and fill err.
 */
#ifndef LAB_RUN_KNOBS_H
#define LAB_RUN_KNOBS_H

#include <stdbool.h>

#include <napier/error.h>

enum { KNOB_TEXT_MAX = 64 };

struct knobs;

/* rundir NULL: no record (all it will change dies with its namespaces). */
int knobs_open(const char *rundir, struct knobs **out, struct error *err);
/* Restores everything, last first. What could not be restored is in err, and the rest is. */
int knobs_close(struct knobs *knobs, struct error *err);
/* What killed ones left; how many values that were. */
int knobs_recover(const char *rundir);

/* True: of an interface. -EINVAL: there is no such knob; err lists them. Checks the value too. */
int knob_check(const char *key, const char *value, bool *of_interface, struct error *err);

/*
 * netns: descriptor (-1: the caller's); interface NULL for those of the system. observed (may be
 * NULL, KNOB_TEXT_MAX bytes) is what was read back. -EOPNOTSUPP: this kernel or driver has it not,
 * and err says since when. -EIO: it reads back otherwise.
 */
int knob_set(struct knobs *knobs, int netns, const char *interface, const char *key,
	     const char *value, char *observed, struct error *err);

#endif
