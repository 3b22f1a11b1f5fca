/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two links whose inner ends an engine opens and whose outer ends the test holds, each outer end in
 * a namespace of its own: what goes in at one comes out at the other, or did not get across.
 *
 * On top of lab/netlab.h, which takes care that nothing is left however the test ends. Calls that
 * cannot go wrong but by a broken test assert.
 */
#ifndef NETNS_H
#define NETNS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <lab/netlab.h>
#include <napier/napier.h>

#define NETNS_SKIPPED 77
#define NETNS_OUTER "out"
#define NETNS_SECONDS 60 /* within which anything that is waited for has happened */

struct netns_links {
	struct netlab *lab;
	char rundir[64];
	unsigned outer[2], inner[2]; /* namespaces; inner[0] == inner[1] unless apart */
	char name[2][16];	     /* of the inner ends */
	int far[2];		     /* packet sockets on the outer ends, for numbered frames */
};

/*
 * A call that changes a running engine. It may take a second, which is much, yet a busy machine may
 * not run a thread for as long: then it is -ETIMEDOUT with everything as it was, and asked for
 * again. What had lost its wake-up would fail each time.
 */
#define ASK_PATIENTLY(call)                                                                        \
	({                                                                                         \
		int asked_rc, asked = 0;                                                           \
                                                                                                   \
		do                                                                                 \
			asked_rc = (call);                                                         \
		while (asked_rc == -ETIMEDOUT && ++asked < 30);                                    \
		asked_rc;                                                                          \
	})

/*
 * Ends the program with 77, and says what is missing, where namespaces cannot be made. Takes away
 * what tests left that were killed.
 */
void netns_require(void);

/*
 * Both links are up. apart: the inner ends are in two namespaces, where they have the same name and
 * the same ifindex.
 */
void netns_links_open(struct netns_links *links, bool apart);
/* Those that are not open: no effect. */
void netns_links_close(struct netns_links *links);

/* Runs a shell command in a namespace (an index of the lab's); returns its exit status. */
__attribute__((format(printf, 3, 4))) int netns_run(const struct netns_links *links, unsigned ns,
						    const char *format, ...);
/* The same for a function in a child process; its return value is the exit status. */
pid_t netns_fork(const struct netns_links *links, unsigned ns, int (*body)(void *arg), void *arg);
/*
 * The same for a body that says netns_up() once it is up: returns then, and fails the test when it
 * ends before.
 */
pid_t netns_fork_up(const struct netns_links *links, unsigned ns, int (*body)(void *arg, int up),
		    void *arg);
bool netns_up(int up);
/* -1: it was killed or did not end within the seconds, and has been killed then. */
int netns_wait(pid_t child, int seconds);
/*
 * Whether a thread that has been stopped is seen no more (place_observe), which is waited for: to
 * be taken off the kernel's list it needs a CPU once more.
 */
bool netns_thread_goes(pid_t tid);

/*
 * A TCP connection from one namespace to an address in another, on which the client sends so many
 * bytes and the server answers with their sum. False when it fails or takes more than these
 * seconds.
 */
bool netns_tcp(const struct netns_links *links, unsigned client, unsigned server,
	       const char *address, uint32_t bytes, int seconds);

/*
 * Sends n numbered frames of `size` bytes in at one outer end, and takes them out at the other, a
 * window of at most 256 under way. Returns how many came out, in order and whole, before
 * NETNS_SECONDS had passed without any.
 */
uint32_t netns_cross(const struct netns_links *links, int from, uint32_t n, uint32_t size);
/*
 * Sends only; as fast as it goes. Returns how many the interface was given: one that it says it has
 * dropped for want of room, and counts so, is given to it again.
 */
uint32_t netns_flood(const struct netns_links *links, int from, uint32_t n, uint32_t size);
/* Takes out and forgets what comes out at this end, until nothing does for 20 ms. */
void netns_drain(const struct netns_links *links, int side);

/* "xdp:in0,netns=…" with more options behind; text has room for 256 bytes. */
void netns_spec(const struct netns_links *links, int side, const char *kind, const char *options,
		char *text);

/*
 * An engine that sends each port's packets out at the other one. A test keeps it in static memory
 * and closes it in its teardown, also when it has failed: the engine's threads go on, and a process
 * that is forked beside them cannot have an engine of its own.
 */
struct netns_engine {
	struct machine *machine;
	struct engine *engine;
	struct port *port[2];
	struct handler *cross;
	char log[8192]; /* all warnings, one a line */
};

/* How often the log has this in it; while runners run `log` itself is not to be read. */
unsigned netns_logged(struct netns_engine *e, const char *text);
/* Prints it, when there is something in it; and empties it. */
void netns_log_show(struct netns_engine *e);
void netns_log_clear(struct netns_engine *e);

void netns_engine_open(struct netns_engine *e, enum poller poller);
/* The same with a pool of so many frames. */
void netns_engine_open_small(struct netns_engine *e, enum poller poller, uint32_t frames);
/* Opens both ports as kind with these options. 0, or the first error. */
int netns_engine_ports(struct netns_engine *e, const struct netns_links *links, const char *kind,
		       const char *options, struct error *err);
/* Removes the ports and checks that every frame is back. */
void netns_engine_ports_remove(struct netns_engine *e);
/* One that is not open: no effect. */
void netns_engine_close(struct netns_engine *e);

/*
 * Sums over the queues of a port. What has come out at the far end may not be counted yet, since a
 * poll counts when all of its vector has gone: so whoever wants an exact number waits for it.
 */
uint64_t netns_received(const struct port *port);
uint64_t netns_transmitted(const struct port *port);
/* Wait for so many, and fail the test without; of received ones it may be more. */
void netns_wait_received(const struct port *port, uint64_t wanted);
void netns_assert_received(const struct port *port, uint64_t n);
void netns_assert_transmitted(const struct port *port, uint64_t n);
/*
 * I3: what came in is what went out and what was dropped, for each queue, nothing under way; or
 * becomes so, where somebody polls just now.
 */
void netns_assert_conserved(const struct port *port);

#endif
