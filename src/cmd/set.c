/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <control/client.h>
#include <control/wish.h>

#include <cmd/cmd.h>
#include <cmd/table.h>
#include <cmd/target.h>
#include <cmd/view.h>

/* Judges the keys here, so that a slip is told as one. MISUSED after a complaint. */
static int keys_take(char **keys, struct wish *wish, json_t *object)
{
	struct queue_settings ignored;
	struct error err;

	for (; *keys; keys++) {
		char *value = strchr(*keys, '=');

		if (!value)
			return misused("\"%s\" is not KEY=VALUE: the keys are " WISH_KEYS, *keys);
		*value++ = '\0';
		if (wish_key(wish, *keys, value, &err))
			return misused("%s", err.text);
		json_object_set_new(object, *keys, json_string(value));
	}
	if (wish_settings(wish, &ignored, &err))
		return misused("%s", err.text);
	return DONE;
}

static void poller_print(const json_t *queue)
{
	const char *poller = view_text(queue, "poller");
	const char *was = view_text(queue, "was");
	char duration[DURATION_MAX];

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
		printf("%sidle_suspend %lld us", before, view_number(queue, "idle_suspend"));
		before = ", ";
	}
	if (wish->cpu_set) {
		printf("%scpu %lld", before, view_number(queue, "cpu"));
		before = ", ";
	}
	if (wish->class_set || wish->cpus_set) {
		fputs(before, stdout);
		thread_print(wish, queue, pid);
	}
	putchar('\n');
}

static int set_ask(const struct rundir *dir, json_t *request, const struct target *target,
		   const struct wish *wish)
{
	struct error err;
	const json_t *queues;
	json_t *answer;
	int fd = client_connect(dir, &err);

	if (fd < 0) {
		json_decref(request);
		return complain("%s", err.text);
	}
	if (client_ask(fd, request, &answer, &err))
		return complain("%s", err.text);
	close(fd);
	queues = json_object_get(answer, "queues");
	for (size_t i = 0; i < json_array_size(queues); i++)
		queue_print(wish, json_array_get(queues, i), (int)rundir_owner(dir));
	if (!target)
		printf("default poller %s\n", view_text(answer, "poller"));
	else if (!json_array_size(queues) && target->queue < 0)
		printf("%s: kept, as there is no such port now: napier show lists them\n",
		       target->port);
	else if (!json_array_size(queues))
		printf("%s/%d: kept, as there is no such queue now\n", target->port, target->queue);
	json_decref(answer);
	return DONE;
}

static json_t *set_request(const struct target *target, json_t *keys)
{
	json_t *request =
		json_pack("{s:s, s:O}", "request", target ? "set" : "default", "keys", keys);

	if (target)
		json_object_set_new(request, "port", json_string(target->port));
	if (target && target->queue >= 0)
		json_object_set_new(request, "queue", json_integer(target->queue));
	return request;
}

static int set_run(int argc, char **argv)
{
	static const struct option options[] = {WHICH_LONG, {0}};
	struct which which = {0};
	struct wish wish = {0};
	struct target target;
	struct rundir dir;
	struct error err;
	bool defaults;
	json_t *keys;
	int option, rc;

	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		rc = which_option(&command_set, &which, option, argv);
		if (rc >= 0)
			return rc;
	}
	if (argc - optind < 2)
		return misused("set: give PORT[/QUEUE] or default, then KEY=VALUE…");
	defaults = !strcmp(argv[optind], "default");
	if (!defaults && target_parse(argv[optind], &target, &err))
		return misused("%s", err.text);
	rc = which_dir(&which, &dir);
	if (rc)
		return rc;
	keys = json_object();
	rc = keys_take(argv + optind + 1, &wish, keys);
	if (rc == DONE)
		rc = set_ask(&dir, set_request(defaults ? NULL : &target, keys),
			     defaults ? NULL : &target, &wish);
	json_decref(keys);
	return rc;
}

const struct command command_set = {
	.name = "set",
	.summary = "move polling, live: pollers, weights, CPUs, classes",
	.usage = "Usage: napier set [OPTION…] PORT[/QUEUE] KEY=VALUE…\n"
		 "       napier set [OPTION…] default poller=POLLER\n"
		 "Changes how a port's queues are polled, all keys or none, and prints what then "
		 "holds.\nWhat is set for a port or queue that is not there is kept for when it "
		 "comes.\n\n"
		 "  poller=softirq|thread|workqueue|busy-poll\n"
		 "                           who polls\n"
		 "  weight=1..64             packets a poll\n"
		 "  idle_suspend=USEC        without a packet for so long, busy-poll goes back to\n"
		 "                           interrupts; 0, the default: never, it keeps its CPU\n"
		 "  cpu=N                    engine CPU that polls, with softirq and busy-poll\n"
		 "  cpus=LIST|any            CPUs that its thread may run on, such as 0-3,8\n"
		 "  class=fair nice=-20..19  scheduling of its thread\n"
		 "  class=fifo priority=1..99\n\n"
		 "A thread of its own is what poller thread gives to each queue; cpus and class "
		 "are\n"
		 "kept for it while another polls.\n\n" WHICH_USAGE,
	.run = set_run,
};
