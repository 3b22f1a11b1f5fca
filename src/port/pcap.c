/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcap: a port whose input is a capture file being replayed, and whose output is written to one.
 *
 * Nothing of it depends on who polls, or when: packets come out in the file's order, none is lost
 * here for want of frames, and they carry the capture's times (PACKET_STAMPED), with which they are
 * written again. So the same replay gives the same file on every machine.
 *
 * A packet that the capture cut short is replayed as what is left of it. One that is longer than a
 * frame is dropped, and counted, as received.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/port.h>

#include <port/capture.h>
#include <port/kinds.h>

/* How soon to look again for frames when the pool had none. */
#define RETRY (1 * NSEC_PER_MSEC)
/* 146 years: what a broken time in a file comes to at most. */
#define DUE_MAX (INT64_C(1) << 62)

struct pcap_port {
	struct replay *replay;	     /* NULL: no input, or its end */
	struct recording *recording; /* NULL: what is sent is counted, and gone */
	int64_t epoch;		     /* 1970 to the machine's time 0 */
	double speed;		     /* 0: as fast as possible; else times the capture's own */
	int64_t start, first;	     /* of the first packet: the machine's time, and its stamp */
	uint64_t packets, cut;	     /* replayed so far; of those, cut short by the capture */
	bool failed;		     /* writing did; under the queue's lock */
	bool input;		     /* there is or was one; constant */
};

static int speed_parse(const char *text, double *out)
{
	char *end;

	if (!strcmp(text, "max"))
		*out = 0;
	else if (!strcmp(text, "real"))
		*out = 1;
	else
		*out = strtod(text, &end);
	if (!strcmp(text, "max") || !strcmp(text, "real"))
		return 0;
	return *text && !*end && isfinite(*out) && *out > 0 ? 0 : -EINVAL;
}

static int loop_parse(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno ? 0 : -EINVAL;
}

/* OUT: the first of the options that is no key=value; moved out of them. 1: found. */
static int output_take(struct port_config *config, char *out, size_t size)
{
	for (char *at = config->options; *at;) {
		size_t length = strcspn(at, ",");
		char *next = at + length + (at[length] == ',');

		if (length && !memchr(at, '=', length)) {
			snprintf(out, size, "%.*s", (int)length, at);
			memmove(at, next, strlen(next) + 1);
			return 1;
		}
		at = next;
	}
	return 0;
}

struct options {
	char output[sizeof(((struct port_config *)0)->options)];
	double speed;
	uint64_t loop;
};

static int options_read(struct port_config *config, struct options *o, struct error *err)
{
	char text[64], again[sizeof(o->output)];
	int outputs = port_option(config, "out", o->output, sizeof(o->output));

	if (port_option(config, "speed", text, sizeof(text)) && speed_parse(text, &o->speed))
		return error_set(
			err, -EINVAL,
			"pcap:%s: speed=%s: must be max, real, or a factor above 0 such as 2",
			config->target, text);
	o->loop = 1;
	if (port_option(config, "loop", text, sizeof(text)) && loop_parse(text, &o->loop))
		return error_set(err, -EINVAL,
				 "pcap:%s: loop=%s: must be how often to replay, 0 for without end",
				 config->target, text);
	while (output_take(config, outputs ? again : o->output, sizeof(again)))
		outputs++;
	if (outputs > 1)
		return error_set(err, -EINVAL,
				 "pcap:%s: more than one file to write: '%s' and '%s'",
				 config->target, o->output, again);
	if (!config->target[0] && !outputs)
		return error_set(err, -EINVAL,
				 "pcap: no file: give one to replay, or one to write, or both: "
				 "pcap:IN, pcap:,OUT, pcap:IN,OUT");
	if (config->queues > 1 || config->ring)
		return error_set(err, -EINVAL, "pcap:%s: a file has one queue and no rings",
				 config->target);
	return port_options_end(config, "out, speed, loop", err);
}

static void mode_set(struct port *port, const struct pcap_port *pp)
{
	char speed[16];

	snprintf(speed, sizeof(speed), pp->speed > 0 ? "x%.6g" : "max", pp->speed);
	snprintf(port->mode, sizeof(port->mode), "%s%.16s%s%s", pp->replay ? "replay " : "",
		 pp->replay ? speed : "", pp->replay && pp->recording ? ", " : "",
		 pp->recording ? "record" : "");
}

static int files_open(struct port *port, struct pcap_port *pp, struct port_config *config,
		      struct error *err)
{
	/* What one transmit may be given at most. */
	size_t vector =
		PACKET_VECTOR_MAX * (((size_t)1 << port->pool->frame_shift) + CAPTURE_OVERHEAD);
	struct options o = {0};
	int rc = options_read(config, &o, err);

	if (rc)
		return rc;
	pp->speed = o.speed;
	if (config->target[0])
		rc = replay_open(config->target, o.loop, &pp->replay, err);
	if (!rc && o.output[0])
		rc = recording_open(o.output, pp->replay ? replay_fd(pp->replay) : -1, vector,
				    &pp->recording, err);
	snprintf(port->spec, sizeof(port->spec), "pcap:%.40s%s%.40s", config->target,
		 o.output[0] ? "," : "", o.output);
	pp->input = config->target[0];
	if (!pp->input)
		port->features |= PORT_SINK;
	else if (o.loop)
		port->features |= PORT_FINITE;
	return rc;
}

static void files_close(struct pcap_port *pp)
{
	if (pp->replay)
		replay_close(pp->replay);
	if (pp->recording)
		recording_close(pp->recording);
	free(pp);
}

static int pcap_port_open(struct port *port, struct port_config *config, struct error *err)
{
	struct pcap_port *pp = calloc(1, sizeof(*pp));
	int rc = -ENOMEM;

	if (pp)
		rc = port_queues_alloc(port, 1);
	if (rc) {
		free(pp);
		return error_set(err, rc, "pcap:%s: no memory", config->target);
	}
	rc = files_open(port, pp, config, err);
	if (rc) {
		files_close(pp);
		return rc;
	}
	pp->epoch = machine_epoch(port->machine);
	mode_set(port, pp);
	port->private = pp;
	return 0;
}

static void cut_warn(struct port *port, const struct pcap_port *pp)
{
	if (pp->cut)
		port_warn(
			port,
			"%llu of %llu packets were cut short when they were captured; what is left "
			"of them has been replayed",
			(unsigned long long)pp->cut, (unsigned long long)pp->packets);
}

/* There is no more to come, for whichever reason. */
static void input_end(struct port *port, struct pcap_port *pp)
{
	cut_warn(port, pp);
	replay_close(pp->replay);
	pp->replay = NULL;
	port_state_set(port, PORT_ENDED);
}

/* When the packet is to come out. */
static int64_t due(struct pcap_port *pp, const struct context *context,
		   const struct replay_packet *next)
{
	int64_t since, when;
	double scaled;

	if (!(pp->speed > 0))
		return context->now;
	if (!pp->packets) {
		pp->start = context->now;
		pp->first = next->stamp;
	}
	since = next->stamp - pp->first;
	if (pp->speed != 1) {
		scaled = (double)since / pp->speed;
		since = scaled < DUE_MAX ? (int64_t)scaled : DUE_MAX;
	}
	return __builtin_add_overflow(pp->start, since, &when) ? DUE_MAX : when;
}

static void packet_fill(struct packet *p, const struct replay_packet *next)
{
	memcpy(p->data, next->data, next->len);
	p->len = next->len;
	p->total = next->len;
	p->flags = PACKET_STAMPED;
	p->stamp = next->stamp;
}

/* It came in, as far as the counters go, and went no further. */
static void count_too_long(struct context *context, const struct replay_packet *next)
{
	counter_add(&context->counters->received, 1);
	counter_add(&context->counters->received_bytes, next->len);
	counter_add(&context->counters->dropped[DROP_TOO_LONG], 1);
}

static uint32_t pcap_receive(struct port_queue *queue, struct context *context, struct packet **v,
			     uint32_t n)
{
	struct port *port = queue->port;
	struct pcap_port *pp = port->private;
	struct replay_packet next;
	struct error err;
	uint32_t frames, filled = 0;
	int64_t again = TIME_NEVER;

	if (!pp->replay)
		return 0;
	frames = packet_alloc(&context->cache, v, n);
	if (frames < n)
		again = context->now + RETRY;
	/* Bounded by what is read, not by what fits. */
	for (uint32_t i = 0; i < frames; i++) {
		int rc = replay_next(pp->replay, &next, &err);

		if (rc < 0)
			port_warn(port, "%s", err.text);
		if (rc <= 0) {
			/* It has ended when the last packets have been handled, at the next poll.
			 */
			again = i ? context->now : TIME_NEVER;
			if (!i)
				input_end(port, pp);
			break;
		}
		if (due(pp, context, &next) > context->now) {
			again = due(pp, context, &next);
			break;
		}
		if (next.len > pool_room(port->pool)) {
			count_too_long(context, &next);
			again = context->now;
		} else {
			packet_fill(v[filled++], &next);
		}
		pp->cut += next.len < next.wire_len;
		pp->packets++;
		replay_advance(pp->replay);
	}
	packet_free(&context->cache, v + filled, frames - filled);
	/* A full vector is followed by another poll anyway. */
	if (filled < n && again != TIME_NEVER)
		irq_arm(&queue->irq, again);
	return filled;
}

static void write_failed(struct port *port, struct pcap_port *pp, int rc)
{
	pp->failed = true;
	port_warn(port, "cannot write its file any more: %s; what is sent to it is dropped",
		  strerror(-rc));
	/* With an input, the state is about that. */
	if (!pp->input)
		port_state_set(port, PORT_DOWN);
}

static uint32_t pcap_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			      uint32_t n)
{
	struct pcap_port *pp = queue->port->private;
	uint64_t bytes = 0;
	int rc = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += v[i]->len;
	if (pp->recording && !pp->failed) {
		rc = recording_write(pp->recording, v, n, pp->epoch);
		if (rc)
			write_failed(queue->port, pp, rc);
	}
	if (pp->failed) {
		packet_drop(context, v, n, DROP_TX_ERROR);
		return n;
	}
	port_sent(queue, context, n, bytes);
	packet_free(&context->cache, v, n);
	return n;
}

static void pcap_port_close(struct port *port, struct context *context)
{
	struct pcap_port *pp = port->private;

	(void)context;
	if (pp->replay)
		cut_warn(port, pp);
	files_close(pp);
}

const struct port_ops pcap_port_ops = {
	.kind = "pcap",
	.help = "pcap:IN[,OUT][,speed=max|real|FACTOR][,loop=N]  replay a capture, write another",
	.open = pcap_port_open,
	.receive = pcap_receive,
	.transmit = pcap_transmit,
	.close = pcap_port_close,
};
