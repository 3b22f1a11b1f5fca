/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <napier/counters.h>

#include <cmd/table.h>
#include <cmd/view.h>

const char *view_text(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text ? text : "";
}

long long view_number(const json_t *object, const char *member)
{
	return json_integer_value(json_object_get(object, member));
}

const char *view_class(const json_t *object, char text[32])
{
	const char *class = view_text(object, "class");
	const json_t *priority = json_object_get(object, "priority");

	if (priority)
		snprintf(text, 32, "%.8s priority %lld", class, json_integer_value(priority));
	else
		snprintf(text, 32, "%.8s nice %lld", class, view_number(object, "nice"));
	return text;
}

/* What applications' sockets have from the start. */
static void busy_print(const json_t *engine, FILE *out)
{
	long long poll = view_number(engine, "busy_poll"), read = view_number(engine, "busy_read");

	if (poll || read)
		fprintf(out, "busy_poll %lld, busy_read %lld\n", poll, read);
}

void view_engine_print(const json_t *view, FILE *out)
{
	const json_t *engine = json_object_get(view, "engine");
	long long up = view_number(engine, "uptime");

	fprintf(out, "engine %s: pid %lld, up %lld:%02lld:%02lld, napier %s, default poller %s\n",
		view_text(engine, "name"), view_number(engine, "pid"), up / 3600, up / 60 % 60,
		up % 60, view_text(engine, "version"), view_text(engine, "default_poller"));
	fprintf(out, "dev_weight %lld, netdev_budget %lld, netdev_budget_usecs %lld\n",
		view_number(engine, "dev_weight"), view_number(engine, "netdev_budget"),
		view_number(engine, "netdev_budget_usecs"));
	fprintf(out,
		"netdev_max_backlog %lld, flow_limit %lld, rps_sock_flow_entries %lld, "
		"symmetric_hash %s\n",
		view_number(engine, "netdev_max_backlog"), view_number(engine, "flow_limit"),
		view_number(engine, "rps_sock_flow_entries"), view_text(engine, "symmetric_hash"));
	busy_print(engine, out);
}

void view_softnet_print(const json_t *view, FILE *out)
{
	static const char *const titles[] = {"CPU",	     "PROCESSED",    "DROPPED",
					     "TIME_SQUEEZE", "RECEIVED_RPS", "FLOW_LIMIT",
					     "BACKLOG"};
	static const char *const numbers[] = {"processed",    "dropped",    "time_squeeze",
					      "received_rps", "flow_limit", "backlog"};
	struct table *table = table_create(7, titles);
	const json_t *cpus = json_object_get(view, "cpus");

	for (size_t i = 0; table && i < json_array_size(cpus); i++) {
		const json_t *cpu = json_array_get(cpus, i);

		table_cell(table, COLOUR_NONE, "%lld", view_number(cpu, "cpu"));
		for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++)
			table_cell(table, COLOUR_NONE, "%lld", view_number(cpu, numbers[k]));
	}
	table_print(table, out);
}

/* Why work was left to ksoftirqd, where it was. */
static void punts_print(const json_t *cpu, FILE *out)
{
	const char *before = "";

	if (!view_number(cpu, "punted"))
		return;
	fprintf(out, "cpu/%lld: left to ksoftirqd: ", view_number(cpu, "cpu"));
	for (int i = 0; i < PUNT_MAX; i++) {
		char member[32];

		snprintf(member, sizeof(member), "punted_%s", punt_name((enum punt)i));
		if (!view_number(cpu, member))
			continue;
		fprintf(out, "%s%lld %s", before, view_number(cpu, member), member + 7);
		before = ", ";
	}
	putc('\n', out);
}

void view_cpus_print(const json_t *view, FILE *out)
{
	static const char *const titles[] = {"CPU",    "LOAD",	     "USE",	 "INTERRUPTS",
					     "ROUNDS", "SQZ-BUDGET", "SQZ-TIME", "RESTARTS",
					     "PUNTED", "<DEFERRAL"};
	static const char *const numbers[] = {"interrupts",    "rounds",   "squeezed_budget",
					      "squeezed_time", "restarts", "punted"};
	struct table *table = table_create(10, titles);
	const json_t *cpus = json_object_get(view, "cpus");

	for (size_t i = 0; table && i < json_array_size(cpus); i++) {
		const json_t *cpu = json_array_get(cpus, i);

		bool away = json_is_true(json_object_get(cpu, "away"));

		table_cell(table, away ? COLOUR_WARN : COLOUR_NONE, away ? "%lld away" : "%lld",
			   view_number(cpu, "cpu"));
		table_cell(table, COLOUR_NONE, "%.1f%%",
			   json_number_value(json_object_get(cpu, "load")));
		table_cell(table, COLOUR_NONE, "%.1f%%",
			   json_number_value(json_object_get(cpu, "use")));
		for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++)
			table_cell(table, COLOUR_NONE, "%lld", view_number(cpu, numbers[k]));
		table_cell(table, COLOUR_NONE, "%s", view_text(cpu, "deferral"));
	}
	table_print(table, out);
	for (size_t i = 0; i < json_array_size(cpus); i++)
		punts_print(json_array_get(cpus, i), out);
}

/* What was asked, and in colour what is there instead. */
static void poller_cell(struct table *table, const json_t *napi)
{
	const char *asked = view_text(napi, "poller_asked");
	const char *there = view_text(napi, "poller");
	bool disabled = json_is_true(json_object_get(napi, "disabled"));

	if (!strcmp(asked, "auto"))
		table_cell(table, disabled ? COLOUR_WARN : COLOUR_NONE, "auto: %s%s", there,
			   disabled ? ", disabled" : "");
	else if (strcmp(asked, there))
		table_cell(table, COLOUR_BAD, "%s (asked %s)", there, asked);
	else if (disabled)
		table_cell(table, COLOUR_WARN, "%s, disabled", there);
	else
		table_cell(table, COLOUR_NONE, "%s", there);
}

/* Its own thread, or which poll it along with others. */
static void thread_cell(struct table *table, const json_t *napi)
{
	const json_t *application = json_object_get(napi, "application");
	const json_t *thread = json_object_get(napi, "thread");
	const char *poller = view_text(napi, "poller");
	long long cpu = view_number(napi, "cpu");

	if (json_is_object(thread))
		table_cell(table, COLOUR_NONE, "%s", view_text(thread, "name"));
	else if (json_is_object(application))
		table_cell(table, COLOUR_NONE, "%s", view_text(application, "name"));
	else if (!strcmp(poller, "softirq") || !strcmp(poller, "app"))
		table_cell(table, COLOUR_NONE, "irq/%lld", cpu);
	else if (!strcmp(poller, "busy-poll"))
		table_cell(table, COLOUR_NONE, "busy/%lld", cpu);
	else if (!strcmp(poller, "workqueue"))
		table_cell(table, COLOUR_NONE, "kworker/*");
	else
		table_cell(table, COLOUR_NONE, "-");
}

static void wake_cell(struct table *table, const json_t *napi, const char *member)
{
	char duration[DURATION_MAX];
	long long ns = view_number(napi, member);

	table_cell(table, COLOUR_NONE, "%s", ns ? duration_text(ns, duration) : "-");
}

/* Packets received for one that goes on: what a poll's packets are to who handles them. */
static void gro_cell(struct table *table, const json_t *napi)
{
	long long received = view_number(napi, "received");
	long long passed = received - view_number(napi, "merged");

	if (passed > 0 && (passed < received || strcmp(view_text(napi, "gro"), "none")))
		table_cell(table, COLOUR_NONE, "%.1f", (double)received / (double)passed);
	else
		table_cell(table, COLOUR_NONE, "-");
}

static void napi_row(struct table *table, const json_t *napi)
{
	long long polls = view_number(napi, "polls");
	long long received = view_number(napi, "received");
	char duration[DURATION_MAX];

	table_cell(table, COLOUR_NONE, "%s/%lld", view_text(napi, "port"),
		   view_number(napi, "queue"));
	poller_cell(table, napi);
	table_cell(table, COLOUR_NONE, "%lld", view_number(napi, "weight"));
	table_cell(table, COLOUR_NONE, "%lld", view_number(napi, "cpu"));
	thread_cell(table, napi);
	table_cell(table, COLOUR_NONE, "%.1f%%", json_number_value(json_object_get(napi, "load")));
	table_cell(table, COLOUR_NONE, "%lld", polls);
	table_cell(table, COLOUR_NONE, "%.1f", polls ? (double)received / (double)polls : 0.0);
	gro_cell(table, napi);
	wake_cell(table, napi, "wake_mean_ns");
	wake_cell(table, napi, "wake_p99_ns");
	table_cell(table, view_number(napi, "stuck") ? COLOUR_BAD : COLOUR_NONE, "%lld",
		   view_number(napi, "stuck"));
	table_cell(table, COLOUR_NONE, "%lld", view_number(napi, "switches"));
	table_cell(table, COLOUR_NONE, "%s",
		   view_number(napi, "switches")
			   ? duration_text(view_number(napi, "switch_ns"), duration)
			   : "-");
}

/* One of the interface's values; what was asked beside it where that is not so. */
static void deferral_print(const json_t *napi, const char *member, const char *unit, FILE *out)
{
	const json_t *there = json_object_get(napi, member);
	const json_t *asked;
	char name[64];

	snprintf(name, sizeof(name), "%s_asked", member);
	asked = json_object_get(napi, name);
	if (json_is_integer(there))
		fprintf(out, ", %s %lld%s", member, json_integer_value(there), unit);
	else
		fprintf(out, ", %s not known", member);
	if (json_is_integer(asked) && json_integer_value(asked) != json_integer_value(there))
		fprintf(out, " (asked %lld)", json_integer_value(asked));
}

/* What of the kernel's own work is done where the queue is polled. */
static void kernel_print(const json_t *napi, FILE *out)
{
	const char *poll = view_text(napi, "kernel_poll");

	if (!strcmp(poll, "none"))
		return;
	fprintf(out, "%s/%lld: ", view_text(napi, "port"), view_number(napi, "queue"));
	if (!strcmp(poll, "refused"))
		fputs("the kernel's NAPI stays in its softirq", out);
	else if (view_number(napi, "kernel_napi"))
		fprintf(out, "polls the kernel's NAPI %lld too", view_number(napi, "kernel_napi"));
	else
		fputs("polls the kernel's NAPI too, when a packet has told which", out);
	deferral_print(napi, "napi_defer_hard_irqs", "", out);
	deferral_print(napi, "gro_flush_timeout", " ns", out);
	fputc('\n', out);
}

/* When interrupts come back that its poller keeps off. */
static void irq_defer_print(const json_t *napi, FILE *out)
{
	const json_t *own = json_object_get(napi, "irq_defer");
	long long defer = view_number(own, "napi_defer_hard_irqs");
	long long flush = view_number(own, "gro_flush_timeout");
	long long suspend = view_number(own, "irq_suspend_timeout");

	if (!defer && !flush && !suspend)
		return;
	fprintf(out,
		"%s/%lld: napi_defer_hard_irqs %lld, gro_flush_timeout %lld ns, "
		"irq_suspend_timeout %lld ns%s\n",
		view_text(napi, "port"), view_number(napi, "queue"), defer, flush, suspend,
		suspend && strcmp(view_text(napi, "poller"), "app") ? ", kept for app" : "");
}

static void idle_print(const json_t *napi, FILE *out)
{
	if (view_number(napi, "idle_suspend"))
		fprintf(out, "%s/%lld: idle_suspend %lld us%s\n", view_text(napi, "port"),
			view_number(napi, "queue"), view_number(napi, "idle_suspend"),
			strcmp(view_text(napi, "poller"), "busy-poll") ? ", kept for busy-poll"
								       : "");
}

/* Where its packets go before they are handled. */
static void steer_print(const json_t *napi, FILE *out)
{
	const char *cpus = view_text(napi, "rps_cpus");
	long long flows = view_number(napi, "rps_flow_cnt");

	if (!strcmp(cpus, "none") && !flows)
		return;
	fprintf(out, "%s/%lld: rps_cpus %s, rps_flow_cnt %lld, steered %lld\n",
		view_text(napi, "port"), view_number(napi, "queue"), cpus, flows,
		view_number(napi, "steered"));
}

/* Only where it is not as it is by itself, which is that nothing is merged. */
static void gro_print(const json_t *napi, FILE *out)
{
	const char *asked = view_text(napi, "gro_asked"), *types = view_text(napi, "gro");

	if (strcmp(asked, "auto") || strcmp(types, "none"))
		fprintf(out, "%s/%lld: gro %s, merges %s, merged %lld\n", view_text(napi, "port"),
			view_number(napi, "queue"), asked, types, view_number(napi, "merged"));
}

void view_napis_print(const json_t *view, FILE *out)
{
	static const char *const titles[] = {"<NAPI",	 "<POLLER", "WEIGHT",	 "CPU", "<THREAD",
					     "LOAD",	 "POLLS",   "PKTS/POLL", "GRO", "WAKE",
					     "WAKE-P99", "STUCK",   "SWITCHES",	 "LAST"};
	const json_t *napis = json_object_get(view, "napis");
	struct table *table = table_create(14, titles);

	for (size_t i = 0; table && i < json_array_size(napis); i++)
		napi_row(table, json_array_get(napis, i));
	table_print(table, out);
	for (size_t i = 0; i < json_array_size(napis); i++) {
		const json_t *napi = json_array_get(napis, i);

		if (*view_text(napi, "why"))
			fprintf(out, "%s/%lld: auto chose %s: %s\n", view_text(napi, "port"),
				view_number(napi, "queue"), view_text(napi, "poller"),
				view_text(napi, "why"));
	}
	for (size_t i = 0; i < json_array_size(napis); i++)
		idle_print(json_array_get(napis, i), out);
	for (size_t i = 0; i < json_array_size(napis); i++)
		irq_defer_print(json_array_get(napis, i), out);
	for (size_t i = 0; i < json_array_size(napis); i++)
		kernel_print(json_array_get(napis, i), out);
	for (size_t i = 0; i < json_array_size(napis); i++)
		steer_print(json_array_get(napis, i), out);
	for (size_t i = 0; i < json_array_size(napis); i++)
		gro_print(json_array_get(napis, i), out);
}

long long view_dropped(const json_t *port)
{
	json_t *dropped = json_object_get(port, "dropped");
	long long sum = 0;
	const char *reason;
	json_t *n;

	json_object_foreach(dropped, reason, n) sum += json_integer_value(n);
	return sum;
}

static void port_row(struct table *table, const json_t *port)
{
	const char *state = view_text(port, "state");
	bool fine = !strcmp(state, "up") || !strcmp(state, "ended");
	long long dropped = view_dropped(port);
	char size[SIZE_MAX_TEXT];

	table_cell(table, COLOUR_NONE, "%s", view_text(port, "name"));
	table_cell(table, fine ? COLOUR_NONE : COLOUR_BAD, "%s", state);
	table_cell(table, COLOUR_NONE, "%s", view_text(port, "spec"));
	table_cell(table, COLOUR_NONE, "%s", view_text(port, "mode"));
	table_cell(table, COLOUR_NONE, "%lld", view_number(port, "queues"));
	table_cell(table, COLOUR_NONE, "%lld", view_number(port, "rx_packets"));
	table_cell(table, COLOUR_NONE, "%s",
		   size_text((uint64_t)view_number(port, "rx_bytes"), size));
	table_cell(table, COLOUR_NONE, "%lld", view_number(port, "tx_packets"));
	table_cell(table, COLOUR_NONE, "%s",
		   size_text((uint64_t)view_number(port, "tx_bytes"), size));
	table_cell(table, dropped ? COLOUR_WARN : COLOUR_NONE, "%lld", dropped);
	table_cell(table, view_number(port, "rx_lost") ? COLOUR_WARN : COLOUR_NONE, "%lld",
		   view_number(port, "rx_lost"));
}

static const char *reason_text(const char *name)
{
	for (int i = 0; i < DROP_MAX; i++) {
		if (!strcmp(drop_name((enum drop_reason)i), name))
			return drop_text((enum drop_reason)i);
	}
	return "";
}

static void reasons_print(const json_t *ports, FILE *out)
{
	for (size_t i = 0; i < json_array_size(ports); i++) {
		const json_t *port = json_array_get(ports, i);
		const char *reason;
		json_t *n;

		if (*view_text(port, "why"))
			fprintf(out, "%s: %s\n", view_text(port, "name"), view_text(port, "why"));
		json_object_foreach(json_object_get(port, "dropped"), reason, n)
			fprintf(out, "%s: %lld dropped, %s: %s\n", view_text(port, "name"),
				json_integer_value(n), reason, reason_text(reason));
	}
}

void view_ports_print(const json_t *view, FILE *out)
{
	static const char *const titles[] = {"<PORT",	 "<STATE",  "<DEVICE",	"<MODE",
					     "QUEUES",	 "RX",	    "RX-BYTES", "TX",
					     "TX-BYTES", "DROPPED", "LOST"};
	const json_t *ports = json_object_get(view, "ports");
	struct table *table = table_create(11, titles);

	for (size_t i = 0; table && i < json_array_size(ports); i++)
		port_row(table, json_array_get(ports, i));
	table_print(table, out);
	reasons_print(ports, out);
}
