/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <control/client.h>
#include <control/engine_wish.h>
#include <control/wish.h>

#include <cmd/cmd.h>
#include <cmd/table.h>
#include <cmd/target.h>
#include <cmd/view.h>

/* What is asked, judged. */
struct asked {
	struct wish wish;
	struct engine_settings engine;
	struct cpu_settings cpu;
};

static const char *key_names(const struct target *target)
{
	switch (target->kind) {
	case TARGET_ENGINE:
		return ENGINE_WISH_KEYS;
	case TARGET_CPU:
		return CPU_WISH_KEYS;
	case TARGET_RUNNER:
		return RUNNER_WISH_KEYS;
	default:
		return WISH_KEYS;
	}
}

static int key_take(const struct target *target, struct asked *asked, const char *key,
		    const char *value, struct error *err)
{
	switch (target->kind) {
	case TARGET_ENGINE:
		return engine_wish_key(&asked->engine, key, value, err);
	case TARGET_CPU:
		return cpu_wish_key(&asked->cpu, key, value, err);
	case TARGET_RUNNER:
		return runner_wish_key(&asked->wish, key, value, err);
	default:
		return wish_key(&asked->wish, key, value, err);
	}
}

/* Judges the keys here, so that a slip is told as one. MISUSED after a complaint. */
static int keys_take(char **keys, const struct target *target, struct asked *asked, json_t *object)
{
	struct queue_settings ignored;
	struct error err;

	for (; *keys; keys++) {
		char *value = strchr(*keys, '=');

		if (!value)
			return misused("\"%s\" is not KEY=VALUE: the keys are %s", *keys,
				       key_names(target));
		*value++ = '\0';
		if (json_object_get(object, *keys))
			return misused("%s is there twice: give it one value", *keys);
		if (key_take(target, asked, *keys, value, &err))
			return misused("%s", err.text);
		json_object_set_new(object, *keys, json_string(value));
	}
	if (wish_settings(&asked->wish, &ignored, &err))
		return misused("%s", err.text);
	return DONE;
}

static void poller_print(const json_t *queue)
{
	const char *poller = view_text(queue, "poller");
	const char *was = view_text(queue, "was");
	char duration[DURATION_MAX];

	if (!strcmp(view_text(queue, "asked"), "auto"))
		printf("poller auto, %s now", poller);
	else
		printf("poller %s", poller);
	if (strcmp(poller, was))
		printf(" (was %s), %s", was,
		       duration_text(view_number(queue, "switch_ns"), duration));
}

/* As the kernel has it now; without a thread it is kept for one. */
static void thread_print(const struct wish *wish, const json_t *queue, int pid)
{
	json_t *thread = view_thread(pid, (int)view_number(queue, "tid"));
	char text[256];

	if (json_is_object(thread)) {
		if (wish->class_set)
			printf("class %s, ", view_class(thread, text));
		if (wish->cpus_set)
			printf("cpus %s, ", view_text(thread, "cpus"));
		printf("thread %lld", view_number(thread, "tid"));
	} else {
		printf("%s%s%s kept for its thread (poller %s has none of its own)",
		       wish->class_set ? "class" : "",
		       wish->class_set && wish->cpus_set ? " and " : "",
		       wish->cpus_set ? "cpus" : "", view_text(queue, "poller"));
	}
	json_decref(thread);
}

/* Of the NAPI, and where its poller has that done too, of the kernel's below. */
static void deferral_print(const struct wish *wish, const json_t *queue)
{
	const json_t *own = json_object_get(queue, "irq_defer");
	bool kernel = strcmp(view_text(queue, "kernel_poll"), "none");
	const struct {
		const char *name, *unit;
		bool set, kernel;
	} keys[] = {
		{"napi_defer_hard_irqs", "", wish->napi_defer_hard_irqs_set, kernel},
		{"gro_flush_timeout", " ns", wish->gro_flush_timeout_set, kernel},
		{"irq_suspend_timeout", " ns", wish->irq_suspend_timeout_set, false},
	};
	const char *before = "";

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (!keys[i].set)
			continue;
		printf("%s%s %lld%s", before, keys[i].name, view_number(own, keys[i].name),
		       keys[i].unit);
		if (keys[i].kernel &&
		    view_number(own, keys[i].name) != view_number(queue, keys[i].name))
			printf(" (the interface has %lld)", view_number(queue, keys[i].name));
		before = ", ";
	}
}

static void queue_print(const struct wish *wish, const json_t *queue, int pid)
{
	const char *before = " ";

	printf("%s/%lld", view_text(queue, "port"), view_number(queue, "queue"));
	if (wish->poller_set) {
		putchar(' ');
		poller_print(queue);
		before = ", ";
	}
	if (wish->weight_set) {
		printf("%sweight %lld", before, view_number(queue, "weight"));
		before = ", ";
	}
	if (wish->idle_suspend_set) {
		printf("%sidle_suspend %lld us%s", before, view_number(queue, "idle_suspend"),
		       strcmp(view_text(queue, "poller"), "busy-poll") ? " kept for busy-poll"
								       : "");
		before = ", ";
	}
	if (wish->cpu_set) {
		printf("%scpu %lld%s", before, view_number(queue, "cpu"),
		       strcmp(view_text(queue, "poller"), "thread")
			       ? ""
			       : " kept for other pollers (cpus is the thread's)");
		before = ", ";
	}
	if (wish->class_set || wish->cpus_set) {
		fputs(before, stdout);
		thread_print(wish, queue, pid);
		before = ", ";
	}
	if (wish->napi_defer_hard_irqs_set || wish->gro_flush_timeout_set ||
	    wish->irq_suspend_timeout_set) {
		fputs(before, stdout);
		deferral_print(wish, queue);
		before = ", ";
	}
	if (wish->rps_cpus_set) {
		printf("%srps_cpus %s", before, view_text(queue, "rps_cpus"));
		before = ", ";
	}
	if (wish->rps_flow_set) {
		printf("%srps_flow_cnt %lld", before, view_number(queue, "rps_flow_cnt"));
		before = ", ";
	}
	if (wish->gro_set)
		printf("%sgro %s, merges %s", before, view_text(queue, "gro_asked"),
		       view_text(queue, "gro"));
	putchar('\n');
}

static void queues_print(const struct target *target, const struct wish *wish, const json_t *answer,
			 int pid)
{
	const json_t *queues = json_object_get(answer, "queues");

	for (size_t i = 0; i < json_array_size(queues); i++)
		queue_print(wish, json_array_get(queues, i), pid);
	if (json_array_size(queues))
		return;
	if (!strcmp(target->port, "backlog"))
		printf("%s: kept for when a queue is steered (rps_cpus)\n", target->port);
	else if (target->queue < 0)
		printf("%s: kept, as there is no such port now: napier show lists them\n",
		       target->port);
	else
		printf("%s/%d: kept, as there is no such queue now\n", target->port, target->queue);
}

static void cpu_print(const struct cpu_settings *asked, const json_t *cpu)
{
	printf("cpu/%lld", view_number(cpu, "cpu"));
	if (asked->deferral_set)
		printf(" deferral %s", view_text(cpu, "deferral"));
	putchar('\n');
}

static void cpus_on_print(const json_t *cpus)
{
	struct cpuset on = {0}, away = {0};
	char text[256];

	for (size_t i = 0; i < json_array_size(cpus); i++) {
		const json_t *cpu = json_array_get(cpus, i);

		cpuset_add(json_is_true(json_object_get(cpu, "away")) ? &away : &on,
			   (unsigned)view_number(cpu, "cpu") % CPU_MAX);
	}
	cpuset_format(&on, text, sizeof(text));
	fputs(text, stdout);
	cpuset_format(&away, text, sizeof(text));
	if (*text)
		printf(" (away: %s)", text);
}

static void engine_print(const struct engine_settings *asked, const json_t *answer)
{
	const struct {
		const char *name;
		bool set;
	} numbers[] = {
		{"dev_weight", asked->weight_set},
		{"netdev_budget", asked->budget_set},
		{"netdev_budget_usecs", asked->budget_usecs_set},
		{"busy_poll", asked->busy_poll_set},
		{"busy_read", asked->busy_read_set},
		{"gro_normal_batch", asked->gro_normal_batch_set},
		{"netdev_max_backlog", asked->max_backlog_set},
		{"flow_limit", asked->flow_limit_set},
		{"rps_sock_flow_entries", asked->sock_flow_entries_set},
	};
	const json_t *cpus = json_object_get(answer, "cpus");
	const char *before = "engine ";

	if (asked->on_cpus_set) {
		printf("%scpus ", before);
		cpus_on_print(cpus);
		before = ", ";
	}

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (!numbers[i].set)
			continue;
		printf("%s%s %lld", before, numbers[i].name, view_number(answer, numbers[i].name));
		before = ", ";
	}
	if (asked->symmetric_hash_set) {
		printf("%ssymmetric_hash %s", before, view_text(answer, "symmetric_hash"));
		before = ", ";
	}
	if (*before == ',')
		putchar('\n');
	for (size_t i = 0; asked->cpus.deferral_set && i < json_array_size(cpus); i++)
		cpu_print(&asked->cpus, json_array_get(cpus, i));
}

/* As the kernel has them now. */
static void runners_print(const struct target *target, const struct wish *wish,
			  const json_t *answer, int pid)
{
	const json_t *tids = json_object_get(answer, "tids");
	char text[256];

	if (!json_array_size(tids) && target->role == ROLE_KWORKER)
		printf("kworker: kept, as there is no such thread now\n");
	else if (!json_array_size(tids))
		printf("%s/%u: kept, as there is no such thread now\n",
		       runner_role_name(target->role), target->cpu);
	for (size_t i = 0; i < json_array_size(tids); i++) {
		int tid = (int)json_integer_value(json_array_get(tids, i));
		json_t *thread = view_thread(pid, tid);

		printf("%s", view_text(thread, "name"));
		if (wish->class_set)
			printf(" class %s,", view_class(thread, text));
		if (wish->cpus_set)
			printf(" cpus %s,", view_text(thread, "cpus"));
		printf(" thread %d\n", tid);
		json_decref(thread);
	}
}

static int set_ask(const struct rundir *dir, json_t *request, const struct target *target,
		   const struct asked *asked)
{
	struct error err;
	json_t *answer;
	int fd = client_connect(dir, &err);

	if (fd < 0) {
		json_decref(request);
		return complain("%s", err.text);
	}
	if (client_ask(fd, request, &answer, &err))
		return complain("%s", err.text);
	close(fd);
	switch (target->kind) {
	case TARGET_PORT:
		queues_print(target, &asked->wish, answer, (int)rundir_owner(dir));
		break;
	case TARGET_DEFAULT:
		printf("default poller %s\n", view_text(answer, "poller"));
		break;
	case TARGET_ENGINE:
		engine_print(&asked->engine, answer);
		break;
	case TARGET_CPU:
		cpu_print(&asked->cpu, answer);
		break;
	case TARGET_RUNNER:
		runners_print(target, &asked->wish, answer, (int)rundir_owner(dir));
		break;
	}
	json_decref(answer);
	return DONE;
}

static json_t *set_request(const struct target *target, json_t *keys)
{
	static const char *const requests[] = {
		[TARGET_PORT] = "set",	      [TARGET_CPU] = "cpu",
		[TARGET_RUNNER] = "runner",   [TARGET_ENGINE] = "engine",
		[TARGET_DEFAULT] = "default",
	};
	json_t *request = json_pack("{s:s, s:O}", "request", requests[target->kind], "keys", keys);

	if (target->kind == TARGET_RUNNER)
		json_object_set_new(request, "runner", json_string(runner_role_name(target->role)));
	if (target->kind == TARGET_CPU ||
	    (target->kind == TARGET_RUNNER && target->role != ROLE_KWORKER))
		json_object_set_new(request, "cpu", json_integer(target->cpu));
	if (target->kind == TARGET_PORT)
		json_object_set_new(request, "port", json_string(target->port));
	if (target->kind == TARGET_PORT && target->queue >= 0)
		json_object_set_new(request, "queue", json_integer(target->queue));
	return request;
}

static int set_run(int argc, char **argv)
{
	static const struct option options[] = {WHICH_LONG, {0}};
	struct which which = {0};
	struct asked asked = {0};
	struct target target;
	struct rundir dir;
	struct error err;
	json_t *keys;
	int option, rc;

	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		rc = which_option(&command_set, &which, option, argv);
		if (rc >= 0)
			return rc;
	}
	if (argc - optind < 2)
		return misused("set: give PORT[/QUEUE], default, engine, cpu/N or a thread, then "
			       "KEY=VALUE…");
	if (target_parse(argv[optind], &target, &err))
		return misused("%s", err.text);
	rc = which_dir(&which, &dir);
	if (rc)
		return rc;
	keys = json_object();
	rc = keys_take(argv + optind + 1, &target, &asked, keys);
	if (rc == DONE)
		rc = set_ask(&dir, set_request(&target, keys), &target, &asked);
	json_decref(keys);
	return rc;
}

const struct command command_set = {
	.name = "set",
	.summary = "move polling, live: pollers, weights, CPUs, classes",
	.usage = "Usage: napier set [OPTION…] PORT[/QUEUE] KEY=VALUE…\n"
		 "       napier set [OPTION…] default poller=POLLER\n"
		 "       napier set [OPTION…] engine|cpu/N KEY=VALUE…\n"
		 "       napier set [OPTION…] irq/N|ksoftirqd/N|busy/N|kworker KEY=VALUE…\n"
		 "Changes how a port's queues are polled, all keys or none, and prints what then "
		 "holds.\nWhat is set for a port or queue that is not there is kept for when it "
		 "comes.\n\n"
		 "  poller=softirq|thread|workqueue|busy-poll|app|auto\n"
		 "                           who polls; app: an application that is linked with\n"
		 "                           the engine; auto: chosen by what is measured\n"
		 "  weight=1..64             packets a poll\n"
		 "  idle_suspend=USEC        without a packet for so long, busy-poll goes back to\n"
		 "                           interrupts; 0, the default: never, it keeps its CPU\n"
		 "  cpu=N                    engine CPU that polls, with softirq and busy-poll\n"
		 "  cpus=LIST|any            CPUs that its thread may run on, such as 0-3,8\n"
		 "  class=fair nice=-20..19  scheduling of its thread\n"
		 "  class=fifo priority=1..99\n"
		 "  napi_defer_hard_irqs=N gro_flush_timeout=NSEC\n"
		 "                           interrupts stay off for so many empty polls, this "
		 "long\n"
		 "                           apart; of the interface too, while busy-poll or app "
		 "polls\n"
		 "  irq_suspend_timeout=NSEC and so long after an application has found packets\n"
		 "  gro=auto|on|off          packets of a flow go on as one; auto: where it pays\n"
		 "  rps_cpus=LIST|none       engine CPUs among whose backlogs its packets go, by "
		 "flow\n"
		 "  rps_flow_cnt=N           flows remembered for RFS, a power of two; 0: none\n\n"
		 "Port backlog has a queue per engine CPU, for what is steered there: its poller "
		 "and\n"
		 "threads are set like a port's.\n\n"
		 "Of irq/N, ksoftirqd/N, busy/N (N: the CPU) and kworker (all of them), as keys of "
		 "a "
		 "thread:\n"
		 "class, nice, priority, and cpus of kworker.\n\n"
		 "A thread of its own is what poller thread gives to each queue; cpus and class "
		 "are\n"
		 "kept for it while another polls.\n\n"
		 "Of the engine as a whole:\n"
		 "  cpus=LIST|any            those of its CPUs that it works on; what is set for "
		 "the\n"
		 "                           others is kept for when they are back\n"
		 "  netdev_budget=N          packets a softirq round\n"
		 "  netdev_budget_usecs=USEC time of a round\n"
		 "  dev_weight=1..64         packets a poll, where no weight is set\n"
		 "  busy_poll=USEC busy_read=USEC\n"
		 "                           how long sockets to come look for packets\n"
		 "  gro_normal_batch=1..64   packets that go on from GRO together\n"
		 "  netdev_max_backlog=N     packets in a CPU's backlog\n"
		 "  flow_limit=BUCKETS       a power of two; 0: no flow limit\n"
		 "  rps_sock_flow_entries=N  flows whose readers are known, a power of two; 0: no "
		 "RFS\n"
		 "  symmetric_hash=on|off    both directions of a connection go to one CPU\n"
		 "Of an engine CPU, cpu/N, or with engine of all of them:\n"
		 "  deferral=never|restart-limit|looped:TICKS|ksoftirqd-running\n"
		 "                           when softirq is left to ksoftirqd\n\n" WHICH_USAGE,
	.run = set_run,
};
