/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <napier/napier.h>

#include <control/setup.h>
#include <lab/measure/environment.h>

#include <cmd/build.h>
#include <cmd/cmd.h>
#include <cmd/table.h>

static const struct command *const commands[] = {
	&command_run,  &command_show, &command_set, &command_rebalance, &command_port,
	&command_stop, &command_demo, &command_sim, &command_bench,
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

static void vcomplain(const char *format, va_list arguments)
{
	bool coloured = colour_wanted(stderr);

	fprintf(stderr, "napier: %s", coloured ? "\033[31m" : "");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "%s\n", coloured ? "\033[0m" : "");
}

int complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vcomplain(format, arguments);
	va_end(arguments);
	return FAILED;
}

int misused(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vcomplain(format, arguments);
	va_end(arguments);
	return MISUSED;
}

int json_put(const json_t *json, size_t flags)
{
	if (!json || (json_dumpf(json, stdout, flags) && !ferror(stdout)))
		return complain("no memory for the JSON");
	putchar('\n');
	return DONE;
}

int which_option(const struct command *command, struct which *which, int option, char **argv)
{
	const char *given = argv[optind - 1];
	char letter[3] = {'-', (char)optopt, '\0'};

	/* A letter among others is not the whole argument. */
	if (option == '?' && optopt && strncmp(given, "--", 2))
		given = letter;
	switch (option) {
	case 'n':
		which->name = optarg;
		return -1;
	case 'R':
		which->run_dir = optarg;
		return -1;
	case 'h':
		fputs(command->usage, stdout);
		return DONE;
	case ':':
		return misused("%s needs a value: see napier %s --help", given, command->name);
	default:
		return misused("unknown option %s: see napier %s --help", given, command->name);
	}
}

int which_dir(const struct which *which, struct rundir *dir)
{
	struct setup setup; /* only to judge the name */
	struct error err;

	setup_init(&setup);
	if (which->name && setup_name(&setup, which->name, &err))
		return misused("%s", err.text);
	if (rundir_find(dir, which->run_dir, setup.name, &err))
		return complain("%s", err.text);
	return 0;
}

int seconds_option(const char *option, const char *value, double *out)
{
	char *end;
	double seconds = strtod(value, &end);

	if (end == value || *end || !(seconds >= 0.01 && seconds <= 3600))
		return misused("%s %s: a time in seconds, 0.01 to 3600", option, value);
	*out = seconds;
	return 0;
}

void seconds_sleep(double seconds)
{
	struct timespec left = {.tv_sec = (time_t)seconds};

	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void usage(FILE *out)
{
	fputs("Usage: napier COMMAND [ARGUMENT…]\n"
	      "Polls packets where you say, and moves the polling while traffic flows.\n\n",
	      out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\nnapier COMMAND --help tells more; so does man napier.\n"
	      "napier --version prints the version.\n",
	      out);
}

static const char *names_list(char *text, size_t size)
{
	size_t length = 0;

	for (size_t i = 0; i < COMMANDS && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s %s", i ? "," : "",
					   commands[i]->name);
	return text;
}

/* Whatever else is opened must not become a stream that somebody closed: text would go there. */
static bool streams_open(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool reader_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}

/* A reader that has seen enough is no failure; a full disk is. */
static int output_end(int status)
{
	bool failed = ferror(stdout);

	errno = 0;
	if (fflush(stdout))
		failed = true;
	if (!failed || status != DONE || reader_gone())
		return status;
	return complain("the output cannot be written%s%s", errno ? ": " : "",
			errno ? strerror(errno) : "");
}

static int command_main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	char names[128];

	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		usage(stdout);
		return DONE;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("napier %s\n", napier_version());
		return DONE;
	}
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!strcmp(name, commands[i]->name))
			return commands[i]->run(argc - 1, argv + 1);
	}
	if (*name)
		return misused("unknown command \"%s\": the commands are%s", name,
			       names_list(names, sizeof(names)));
	usage(stderr);
	return MISUSED;
}

int main(int argc, char **argv)
{
	if (!streams_open())
		return FAILED;
	environment_build = build_commit;
	return output_end(command_main(argc, argv));
}
