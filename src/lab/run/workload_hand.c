/* SPDX-License-Identifier: BSD-2-Clause */
/* How a workload would be run by hand: by napier, and by other tools that have the same. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/run/results.h"

struct line {
	char text[1024];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(line->text + line->length, sizeof(line->text) - line->length, format,
		      arguments);
	va_end(arguments);
	line->length += n > 0 ? (size_t)n : 0;
	if (line->length >= sizeof(line->text))
		line->length = sizeof(line->text) - 1;
}

static void inside(struct line *line, const struct topology_end *end)
{
	*line = (struct line){0};
	if (*end->netns_name)
		add(line, "ip netns exec %s ", end->netns_name);
}

static void sizes_add(struct line *line, const struct load_config *load)
{
	for (unsigned i = 0; i < load->sizes; i++)
		add(line, "%s%u", i ? "," : " --sizes ", load->size[i]);
}

static void rr_add(struct line *line, const struct load_config *load)
{
	add(line, " -F %u -T %u -Q %u -R %u", load->flows, load->threads, load->request_size,
	    load->response_size);
	if (load->rate > 0)
		add(line, " --rate %g%s", load->rate,
		    load->arrivals == LOAD_POISSON ? " --poisson" : "");
	if (load->connect)
		add(line, " --connect");
	if (load->work)
		add(line, " --work %lldns", (long long)load->work);
	if (load->stall)
		add(line, " --stall %lldns --stall-every %lldns", (long long)load->stall,
		    (long long)load->stall_every);
}

static void stream_add(struct line *line, const struct load_config *load)
{
	static const char *const directions[] = {
		[LOAD_UP] = "up", [LOAD_DOWN] = "down", [LOAD_BOTH] = "both"};

	add(line, " -F %u -T %u --direction %s", load->flows, load->threads,
	    directions[load->direction]);
	if (load->rate > 0)
		add(line, " --rate %g", load->rate);
	sizes_add(line, load);
}

static void napier_say(json_t *commands, const struct load_config *load, const struct topology *t,
		       int64_t duration)
{
	static const char *const kinds[] = {
		[LOAD_RR] = "rr", [LOAD_STREAM] = "stream", [LOAD_RRUL] = "rrul"};
	struct line line;

	inside(&line, &t->server);
	add(&line, "napier bench server");
	json_array_append_new(commands, json_string(line.text));
	inside(&line, &t->client);
	add(&line, "napier bench %s -H %s -l %g", kinds[load->kind], t->server.address,
	    (double)duration / 1e9);
	if (load->kind != LOAD_RRUL && load->protocol == LOAD_UDP)
		add(&line, " --udp");
	if (load->kind == LOAD_RR)
		rr_add(&line, load);
	if (load->kind == LOAD_STREAM)
		stream_add(&line, load);
	if (load->kind == LOAD_RRUL)
		add(&line, " --tcp-flows %u --probe-rate %g", load->tcp_flows, load->probe_rate);
	if (load->server_threads)
		add(&line, " --server-threads %u", load->server_threads);
	json_array_append_new(commands, json_string(line.text));
}

static bool plain_rr(const struct load_config *load)
{
	return load->kind == LOAD_RR && !(load->rate > 0) && !load->connect && !load->work &&
	       !load->stall;
}

/* Both sides of each. Their figures are means of other things in part: that is for who compares. */
static void others_say(json_t *commands, const struct load_config *load, const struct topology *t,
		       int64_t duration)
{
	int seconds = duration < 1000000000 ? 1 : (int)(duration / 1000000000);
	bool udp = load->protocol == LOAD_UDP;
	struct line line, server;

	inside(&server, &t->server);
	inside(&line, &t->client);
	if (plain_rr(load)) {
		const char *tool = udp ? "udp_rr" : "tcp_rr";

		add(&server, "%s -F %u -T %u -Q %u -R %u -l %d", tool, load->flows, load->threads,
		    load->request_size, load->response_size, seconds);
		add(&line, "%s -c -H %s -F %u -T %u -Q %u -R %u -l %d -p 50,90,99,99.9", tool,
		    t->server.address, load->flows, load->threads, load->request_size,
		    load->response_size, seconds);
	} else if (load->kind == LOAD_STREAM && load->sizes <= 1) {
		add(&server, "iperf3 -s");
		add(&line, "iperf3 -c %s -t %d -P %u%s%s", t->server.address, seconds, load->flows,
		    udp ? " -u -b 0" : "",
		    load->direction == LOAD_BOTH   ? " --bidir"
		    : load->direction == LOAD_DOWN ? " -R"
						   : "");
		if (load->sizes)
			add(&line, " -l %u", load->size[0]);
	} else if (load->kind == LOAD_RRUL) {
		add(&server, "netserver");
		add(&line, "flent rrul -H %s -l %d", t->server.address, seconds);
	} else {
		return;
	}
	json_array_append_new(commands, json_string(server.text));
	json_array_append_new(commands, json_string(line.text));
}

json_t *workload_commands(const struct load_config *load, const struct topology *topology,
			  int64_t duration)
{
	json_t *commands = json_array();

	napier_say(commands, load, topology, duration);
	others_say(commands, load, topology, duration);
	return commands;
}
