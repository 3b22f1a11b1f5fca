/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xdp: the kernel's own NAPI below a queue, polled where the queue is polled.
 *
 * A socket that prefers busy polling has the kernel's NAPI run in its recvfrom and sendto, so the
 * driver's share is done by busy/N too. That keeps softirq away from the NAPI only while the
 * interface defers its interrupts: after a busy poll the kernel waits for the next one, for
 * gro_flush_timeout, before it lets softirq have it again.
 */
#include "port/xdp.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include <core/engine.h>
#include <port/restore.h>

/* Anything but 0 switches it on; calls with MSG_DONTWAIT do not wait that long. */
#define BUSY_POLL_USECS 20
/* Packets that one call may take: as many as a poll of ours. */
#define BUSY_POLL_PACKETS NAPI_WEIGHT_DEFAULT

static int option_set(int fd, int option, int value)
{
	return setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value)) ? -errno : 0;
}

/* The one that sends has a share with zero copy only; with copies the kernel ignores it there. */
static int socket_prefer(int fd, bool on)
{
	int rc = option_set(fd, SO_PREFER_BUSY_POLL, on);

	if (!rc)
		rc = option_set(fd, SO_BUSY_POLL, on ? BUSY_POLL_USECS : 0);
	if (!rc && on)
		rc = option_set(fd, SO_BUSY_POLL_BUDGET, BUSY_POLL_PACKETS);
	return rc;
}

static void queue_prefer(struct xdp_port *xp, struct xdp_queue *q, bool on)
{
	enum kernel_poll poll = on ? KERNEL_POLL_PREFERRED : KERNEL_POLL_NONE;
	int rc;

	if (on == q->prefers)
		return;
	rc = socket_prefer(q->fd, on);
	if (!rc)
		rc = socket_prefer(q->tx_fd, on);
	if (rc && on) {
		poll = KERNEL_POLL_REFUSED;
		socket_prefer(q->tx_fd, false);
		socket_prefer(q->fd, false);
		if (!xp->watch.prefer_said)
			port_warn(xp->port,
				  "the kernel's share stays in its softirq: preferred busy polling "
				  "of the sockets: %s%s",
				  strerror(-rc),
				  rc == -EPERM	       ? " (it takes CAP_NET_ADMIN)"
				  : rc == -ENOPROTOOPT ? " (it takes Linux 5.11)"
						       : "");
		xp->watch.prefer_said = true;
	}
	q->prefers = on;
	atomic_store_explicit(&q->drive, poll == KERNEL_POLL_PREFERRED, memory_order_relaxed);
	atomic_store(&q->queue->kernel->poll, poll);
}

static bool port_prefers(const struct xdp_port *xp)
{
	bool any = false;

	for (uint32_t i = 0; i < xp->opened; i++)
		any |= xp->queue[i].prefers;
	return any;
}

static struct restore_entry restore_entry_of(const struct xdp_port *xp)
{
	struct restore_entry e = {.ifindex = xp->dev.ifindex};

	memcpy(e.name, xp->dev.name, sizeof(e.name));
	memcpy(e.netns, xp->netns, sizeof(e.netns));
	for (int i = 0; i < IRQ_DEFER_VALUES; i++) {
		e.before[i] = xp->deferral.before[i].value;
		e.ours[i] = xp->deferral.ours[i].asked ? xp->deferral.ours[i].value : e.before[i];
		e.last[i] = e.ours[i];
	}
	return e;
}

/* What is ours no longer, unless somebody has changed it since. */
static int value_put_back(struct xdp_port *xp, int i, uint64_t there)
{
	struct irq_defer *d = &xp->deferral;
	uint64_t before = d->before[i].value, ours = d->ours[i].value;

	d->ours[i].asked = false;
	if (there == before)
		return 0;
	if (there == ours)
		return irq_defer_write(d, i, before);
	port_warn(xp->port,
		  "%s of %s was changed to %" PRIu64 " by another: it stays so (it was %" PRIu64
		  " before)",
		  irq_defer_names[i], xp->dev.name, there, before);
	return 0;
}

/* Noted before it is written, so that nothing is changed that could not be put back. */
static int values_write(struct xdp_port *xp, const struct irq_defer_value asked[IRQ_DEFER_VALUES],
			const uint64_t there[IRQ_DEFER_VALUES])
{
	const char *path = xp->port->engine->restore_path;
	struct irq_defer *d = &xp->deferral;
	struct restore_entry e, last;
	int rc = 0;

	for (int i = 0; i < IRQ_DEFER_VALUES; i++)
		if (!d->ours[i].asked)
			d->before[i].value = there[i];
	last = restore_entry_of(xp);
	for (int i = 0; i < IRQ_DEFER_VALUES; i++)
		if (asked[i].asked)
			d->ours[i] = asked[i];
	e = restore_entry_of(xp);
	memcpy(e.last, last.ours, sizeof(e.last));
	if (*path && irq_defer_ours(d))
		rc = restore_note(path, &e);
	for (int i = 0; i < IRQ_DEFER_VALUES && !rc; i++) {
		if (!asked[i].asked && d->ours[i].asked)
			rc = value_put_back(xp, i, there[i]);
		else if (asked[i].asked && there[i] != asked[i].value)
			rc = irq_defer_write(d, i, asked[i].value);
	}
	if (!rc && *path && !irq_defer_ours(d))
		restore_forget(path, &e);
	return rc;
}

/* What was ours and is asked no longer is put back. */
static int deferral_apply(struct xdp_port *xp, const struct irq_defer_value asked[IRQ_DEFER_VALUES],
			  struct error *err)
{
	uint64_t there[IRQ_DEFER_VALUES];
	int rc = xp->deferral.dir < 0 ? xp->deferral_error : irq_defer_read(&xp->deferral, there);

	if (!rc)
		rc = values_write(xp, asked, there);
	if (!rc)
		rc = irq_defer_read(&xp->deferral, there);
	if (rc)
		return error_set(err, rc,
				 "%s: napi_defer_hard_irqs and gro_flush_timeout of %s cannot be "
				 "set: %s%s",
				 xp->port->name, xp->dev.name, strerror(-rc),
				 rc == -EPERM || rc == -EACCES ? " (it takes CAP_NET_ADMIN, and "
								 "CAP_SYS_ADMIN to reach sysfs)"
							       : "");
	for (int i = 0; i < IRQ_DEFER_VALUES; i++)
		if (asked[i].asked && there[i] != asked[i].value)
			return error_set(err, -EIO,
					 "%s: %s of %s is %" PRIu64 " after %" PRIu64
					 " was written",
					 xp->port->name, irq_defer_names[i], xp->dev.name, there[i],
					 asked[i].value);
	return 0;
}

void xdp_deferral_put_back(struct xdp_port *xp)
{
	static const struct irq_defer_value nothing[IRQ_DEFER_VALUES];
	struct restore_entry e = restore_entry_of(xp);
	struct error err;
	int rc;

	if (xp->deferral.dir < 0 || !irq_defer_ours(&xp->deferral))
		return;
	rc = deferral_apply(xp, nothing, &err);
	if (rc == -ENODEV || rc == -ENOENT) /* the interface is gone, and its values with it */
		restore_forget(xp->port->engine->restore_path, &e);
	else if (rc)
		port_warn(xp->port, "not put back: %s", err.text);
}

/* Said once a port, when all has been set that was asked together. */
static void deferral_warn(struct xdp_port *xp, const struct kernel_record *k)
{
	uint64_t defer = atomic_load(&k->defer_hard_irqs);
	uint64_t flush = atomic_load(&k->gro_flush_timeout);

	if (xp->watch.deferral_said || !port_prefers(xp) || (defer && flush))
		return;
	xp->watch.deferral_said = true;
	port_warn(xp->port,
		  "busy polling without interrupt deferral: softirq does part of the kernel's "
		  "share; napier set %s napi_defer_hard_irqs=2 gro_flush_timeout=200000",
		  xp->port->name);
}

/* 0: the socket does not know. */
static unsigned napi_id(const struct xdp_queue *q)
{
	unsigned id = 0;
	socklen_t size = sizeof(id);

	getsockopt(q->fd, SOL_SOCKET, SO_INCOMING_NAPI_ID, &id, &size);
	return id;
}

/* As the kernel has it now, in every queue's record. */
static void observe(struct xdp_port *xp)
{
	uint64_t there[IRQ_DEFER_VALUES] = {KERNEL_UNKNOWN, KERNEL_UNKNOWN};
	const struct irq_defer *d = &xp->deferral;

	if (d->dir >= 0 && irq_defer_read(d, there))
		there[0] = there[1] = KERNEL_UNKNOWN;
	for (uint32_t i = 0; i < xp->opened; i++) {
		struct xdp_queue *q = &xp->queue[i];
		struct kernel_record *k = q->queue->kernel;

		if (!k)
			continue; /* the engine has not come to this queue yet */
		atomic_store(&k->napi_id, q->prefers ? napi_id(q) : 0);
		atomic_store(&k->defer_hard_irqs, there[IRQ_DEFER_COUNT]);
		atomic_store(&k->gro_flush_timeout, there[IRQ_DEFER_TIMEOUT]);
	}
}

static void asked_record(struct xdp_port *xp, const struct irq_defer_value asked[IRQ_DEFER_VALUES])
{
	for (uint32_t i = 0; i < xp->opened; i++) {
		struct kernel_record *k = xp->queue[i].queue->kernel;
		const struct irq_defer_value *defer = &asked[IRQ_DEFER_COUNT];
		const struct irq_defer_value *flush = &asked[IRQ_DEFER_TIMEOUT];

		if (!k)
			continue;
		atomic_store(&k->defer_hard_irqs_asked,
			     defer->asked ? defer->value : KERNEL_UNKNOWN);
		atomic_store(&k->gro_flush_timeout_asked,
			     flush->asked ? flush->value : KERNEL_UNKNOWN);
	}
}

int xdp_poller_changed(struct port_queue *queue, enum poller poller,
		       const struct queue_settings *settings, struct error *err)
{
	const struct irq_defer_value asked[IRQ_DEFER_VALUES] = {
		[IRQ_DEFER_COUNT] = {settings->napi_defer_hard_irqs_set,
				     settings->napi_defer_hard_irqs},
		[IRQ_DEFER_TIMEOUT] = {settings->gro_flush_timeout_set,
				       settings->gro_flush_timeout},
	};
	struct xdp_port *xp = xdp_port_of(queue->port);
	int rc = 0;

	queue_prefer(xp, queue->private, poller == POLLER_BUSY_POLL || poller == POLLER_APP);
	asked_record(xp, asked);
	if (!port_prefers(xp))
		xdp_deferral_put_back(xp);
	else if (irq_defer_ours(&xp->deferral) || asked[0].asked || asked[1].asked)
		rc = deferral_apply(xp, asked, err);
	observe(xp);
	if (!rc)
		deferral_warn(xp, queue->kernel);
	return rc;
}

/*
 * A socket learns its NAPI when it is bound, or from its first packet, and some drivers tell it
 * neither way (veth since Linux 6.13). Then a call would do nothing, so it is left out.
 */
static void napi_look(struct xdp_port *xp, struct xdp_queue *q)
{
	struct kernel_record *k = q->queue->kernel;

	if (!atomic_load(&q->drive) || atomic_load(&k->napi_id) ||
	    !counter_read(&napi_counters(q->queue->napi)->received))
		return;
	/* The first packet may have come between that look and this one. */
	if (napi_id(q))
		return;
	atomic_store(&q->drive, false);
	atomic_store(&k->poll, KERNEL_POLL_REFUSED);
	if (xp->watch.prefer_said)
		return;
	xp->watch.prefer_said = true;
	port_warn(xp->port,
		  "the kernel's share stays in its softirq: with driver %s and this kernel the "
		  "sockets have no NAPI to be busy-polled%s",
		  xp->driver,
		  irq_defer_ours(&xp->deferral)
			  ? "; gro_flush_timeout only makes packets wait: set it to 0"
			  : "");
}

void xdp_kernel_look(struct xdp_port *xp)
{
	observe(xp);
	for (uint32_t i = 0; i < xp->opened; i++)
		napi_look(xp, &xp->queue[i]);
}
