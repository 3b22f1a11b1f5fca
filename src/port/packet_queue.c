/* SPDX-License-Identifier: BSD-2-Clause */
#include <port/packet_queue.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* System calls a poll makes before it lets others run, when packets keep being unusable. */
#define RECEIVE_ROUNDS 4
/* How long a receive waits for frames when the pool was empty. */
#define POOL_RETRY (1 * NSEC_PER_MSEC)
/* Refusals in a row that mean that the device is full, not that one packet was unwanted. */
#define REFUSALS 2
/* Super-packets refused in a row, after some that were not: it is not for a full device any more.
 */
#define SUPER_REFUSALS 16

int packet_queue_create(struct packet_queue **out)
{
	struct packet_queue *queue = aligned_alloc(_Alignof(struct packet_queue), sizeof(*queue));
	void *spill;

	if (!queue)
		return -ENOMEM;
	memset(queue, 0, sizeof(*queue));
	queue->receive.empty = PACKET_VECTOR_MAX;
	/* Pages that no super-packet has touched take no memory. */
	spill = mmap(NULL, (size_t)PACKET_VECTOR_MAX * VNET_SPILL, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (spill == MAP_FAILED) {
		free(queue);
		return -ENOMEM;
	}
	queue->receive.spill = spill;
	*out = queue;
	return 0;
}

void packet_queue_destroy(struct packet_queue *queue, struct context *context)
{
	struct packet_receive *receive = &queue->receive;
	uint32_t posted = PACKET_VECTOR_MAX - receive->empty;

	if (posted)
		packet_free(&context->cache, receive->frame + receive->empty, posted);
	munmap(receive->spill, (size_t)PACKET_VECTOR_MAX * VNET_SPILL);
	free(queue);
}

static uint8_t *slot_spill(struct packet_receive *receive, uint32_t slot)
{
	return receive->spill + (size_t)slot * VNET_SPILL;
}

/* Posts frames in the slots that have none, the last of them first. */
static void slots_fill(struct packet_receive *receive, struct context *context)
{
	struct packet *frames[PACKET_VECTOR_MAX];
	uint32_t got = packet_alloc(&context->cache, frames, receive->empty);

	for (uint32_t i = 0; i < got; i++) {
		uint32_t slot = --receive->empty;
		struct msghdr *message = &receive->message[slot].msg_hdr;

		receive->frame[slot] = frames[i];
		vnet_receive_iov(context->cache.pool, frames[i], &receive->header[slot],
				 slot_spill(receive, slot), receive->iov[slot]);
		message->msg_iov = receive->iov[slot];
		message->msg_iovlen = 3;
		message->msg_control = receive->control[slot];
		message->msg_controllen = PACKET_CONTROL_SIZE;
	}
}

/* Puts the tag back that the kernel took out of the frame. */
static void tag_insert(struct packet *p, uint16_t tpid, uint16_t tci)
{
	uint16_t tag[2] = {htons(tpid), htons(tci)};

	p->data -= sizeof(tag);
	memmove(p->data, p->data + sizeof(tag), 2 * ETH_ALEN);
	memcpy(p->data + 2 * ETH_ALEN, tag, sizeof(tag));
	p->len += sizeof(tag);
	p->total += sizeof(tag);
	p->csum_start += sizeof(tag);
}

static void tag_restore(struct packet *p, const struct tpacket_auxdata *auxdata)
{
	if (auxdata->tp_status & TP_STATUS_VLAN_VALID)
		tag_insert(p,
			   auxdata->tp_status & TP_STATUS_VLAN_TPID_VALID ? auxdata->tp_vlan_tpid
									  : ETH_P_8021Q,
			   auxdata->tp_vlan_tci);
}

static void control_read(struct packet_receive *receive, struct context *context, struct packet *p,
			 struct msghdr *message)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
			struct tpacket_auxdata auxdata;

			memcpy(&auxdata, CMSG_DATA(c), sizeof(auxdata));
			tag_restore(p, &auxdata);
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			uint32_t lost;

			memcpy(&lost, CMSG_DATA(c), sizeof(lost));
			counter_add(&context->counters->lost, lost - receive->lost);
			receive->lost = lost;
		}
	}
}

/* Makes packets of the n messages that were received from the first posted slot on. */
static uint32_t slots_take(struct packet_receive *receive, struct context *context,
			   struct packet **v, uint32_t n)
{
	uint32_t taken = 0;

	for (; n; n--) {
		uint32_t slot = receive->empty++;
		struct mmsghdr *message = &receive->message[slot];
		struct packet *p = receive->frame[slot];

		if (message->msg_hdr.msg_flags & MSG_TRUNC) {
			vnet_receive_drop(context, p, message->msg_len, DROP_TOO_LONG);
			continue;
		}
		if (!vnet_receive(context, p, &receive->header[slot], slot_spill(receive, slot),
				  message->msg_len))
			continue;
		control_read(receive, context, p, &message->msg_hdr);
		v[taken++] = p;
	}
	return taken;
}

/*
 * The error may be an old one: by the time it is read the device can be up again and the event of
 * that gone by. Then nobody else would say so, and a port that is down is not sent to. What changes
 * after the question has an event of its own, or ends the next sending.
 */
static void device_failed(struct port_queue *queue)
{
	struct ifreq request = {.ifr_ifindex = queue->port->ifindex};

	port_state_set(queue->port, PORT_DOWN);
	if (!ioctl(queue->irq.fd, SIOCGIFNAME, &request) &&
	    !ioctl(queue->irq.fd, SIOCGIFFLAGS, &request) && (request.ifr_flags & IFF_UP) &&
	    (request.ifr_flags & IFF_RUNNING))
		port_state_set(queue->port, PORT_UP);
}

static void receive_failed(struct port_queue *queue, struct context *context, int error)
{
	struct packet_receive *receive = &((struct packet_queue *)queue->private)->receive;

	if (error == ENETDOWN || error == ENXIO) {
		device_failed(queue);
		return;
	}
	/* The packet is gone: its kind of super-packet has no virtio-net header. */
	counter_add(&context->counters->lost, 1);
	if (!receive->refused)
		port_warn(queue->port,
			  "the kernel cannot pass on a super-packet (%s): turn off "
			  "tx-sctp-segmentation and the like at the sender (ethtool -K)",
			  strerror(error));
	receive->refused = true;
}

uint32_t packet_queue_receive(struct port_queue *queue, struct context *context, struct packet **v,
			      uint32_t n)
{
	struct packet_receive *receive = &((struct packet_queue *)queue->private)->receive;
	uint32_t got = 0;

	for (unsigned round = 0; got < n && round < RECEIVE_ROUNDS; round++) {
		uint32_t posted, wanted;
		int received;

		slots_fill(receive, context);
		posted = PACKET_VECTOR_MAX - receive->empty;
		wanted = n - got < posted ? n - got : posted;
		if (!wanted) {
			irq_arm(&queue->irq, context->now + POOL_RETRY);
			return got;
		}
		received = recvmmsg(queue->irq.fd, receive->message + receive->empty, wanted,
				    MSG_DONTWAIT, NULL);
		if (received < 0) {
			if (errno == EAGAIN)
				return got;
			receive_failed(queue, context, errno);
			continue;
		}
		got += slots_take(receive, context, v + got, (uint32_t)received);
		if ((uint32_t)received < wanted && !receive->refused)
			return got;
	}
	if (got < n)
		irq_arm(&queue->irq, context->now);
	return got;
}

/* Describes as many packets as there is room for; chains that never fit are left for the caller. */
static uint32_t messages_fill(struct packet_send *send, struct packet **v, uint32_t n)
{
	uint32_t used = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct msghdr *message = &send->message[i].msg_hdr;
		uint32_t more = vnet_transmit(v[i], &send->header[i], send->iov + used,
					      PACKET_SEND_IOV - used);

		if (!more)
			break;
		message->msg_iov = send->iov + used;
		message->msg_iovlen = more;
		used += more;
	}
	return i;
}

/*
 * Without the queueing discipline the kernel does not segment for a device that cannot (or not in a
 * VLAN, or since ethtool -K): it refuses super-packets, with the error of a full device. True when
 * p is to be tried again with it.
 */
static bool bypass_end(struct port_queue *queue, const struct packet *p)
{
	struct packet_send *send = &((struct packet_queue *)queue->private)->send;
	int off = 0;

	if (!send->bypass || !(p->flags & PACKET_GSO))
		return false;
	if (send->super_passed && ++send->super_refused < SUPER_REFUSALS)
		return false;
	send->bypass = false;
	setsockopt(queue->irq.fd, SOL_PACKET, PACKET_QDISC_BYPASS, &off, sizeof(off));
	port_warn(queue->port,
		  "the device refuses super-packets past its queueing discipline: qdisc_bypass is "
		  "now off for queue %u",
		  queue->index);
	return true;
}

struct sending {
	uint32_t done; /* packets that are not the caller's any more */
	uint32_t sent;
	uint64_t bytes;
	uint32_t refusals; /* in a row */
	bool again;	   /* the packet at hand has failed once */
	bool full;
};

static void sending_drop(struct sending *sending, struct context *context, struct packet **v,
			 uint32_t n, enum drop_reason reason)
{
	packet_drop(context, v + sending->done, n, reason);
	sending->done += n;
	sending->again = false;
}

/* What becomes of the packet that could not be sent, and of the n - done - 1 behind it. */
static void send_failed(struct port_queue *queue, struct context *context, struct packet **v,
			uint32_t n, struct sending *sending, int error)
{
	switch (error) {
	case ENOBUFS:
		if (bypass_end(queue, v[sending->done]))
			return;
		/* By a filter or a full queue, no telling which: the packet is lost either way. */
		sending_drop(sending, context, v, 1, DROP_TX_FULL);
		sending->full = ++sending->refusals == REFUSALS;
		return;
	case EAGAIN:
	case ENOMEM:
		sending->full = true;
		return;
	case ENETDOWN:
	case ENXIO:
		if (error == ENXIO)
			port_state_set(queue->port, PORT_GONE);
		else
			device_failed(queue);
		sending_drop(sending, context, v, n - sending->done, DROP_TX_DOWN);
		return;
	case EMSGSIZE:
		sending_drop(sending, context, v, 1, DROP_TOO_LONG);
		return;
	default:
		/* What receiving has left on the socket comes out here, and is gone with that. */
		if (!sending->again) {
			sending->again = true;
			return;
		}
		sending_drop(sending, context, v, 1, DROP_TX_ERROR);
	}
}

static void sent(struct packet_send *send, struct sending *sending, struct context *context,
		 struct packet **v, uint32_t n)
{
	for (uint32_t i = sending->done; i < sending->done + n; i++) {
		sending->bytes += v[i]->total;
		if (v[i]->flags & PACKET_GSO) {
			send->super_passed = true;
			send->super_refused = 0;
		}
	}
	packet_free(&context->cache, v + sending->done, n);
	sending->done += n;
	sending->sent += n;
	sending->refusals = 0;
	sending->again = false;
}

uint32_t packet_queue_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			       uint32_t n)
{
	struct packet_send *send = &((struct packet_queue *)queue->private)->send;
	struct sending sending = {0};

	while (sending.done < n && !sending.full) {
		uint32_t first = sending.done;
		uint32_t ready = messages_fill(send, v + first, n - first);

		if (!ready)
			sending_drop(&sending, context, v, 1, DROP_TOO_LONG);
		while (sending.done < first + ready && !sending.full) {
			uint32_t at = sending.done - first;
			int rc = sendmmsg(queue->irq.fd, send->message + at, ready - at,
					  MSG_DONTWAIT);

			if (rc < 0)
				send_failed(queue, context, v, n, &sending, errno);
			else
				sent(send, &sending, context, v, (uint32_t)rc);
		}
	}
	if (sending.sent)
		port_sent(queue, context, sending.sent, sending.bytes);
	return sending.done;
}
