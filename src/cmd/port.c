/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <control/client.h>
#include <control/setup.h>

#include <cmd/cmd.h>
#include <cmd/view.h>

/* Judges what can be judged here, so that a slip costs no engine. New reference; NULL: complained.
 */
static json_t *add_request(const char *spec, char **keys, int *rc)
{
	json_t *object = json_object();
	struct setup_port *port;
	struct error err;

	if (setup_port_create(spec, &port, &err)) {
		*rc = misused("%s", err.text);
		json_decref(object);
		return NULL;
	}
	*rc = DONE;
	for (; *keys && *rc == DONE; keys++) {
		char *value = strchr(*keys, '=');

		if (!value) {
			*rc = misused("\"%s\" is not KEY=VALUE", *keys);
			break;
		}
		*value++ = '\0';
		if (json_object_get(object, *keys)) {
			*rc = misused("%s is there twice: give it one value", *keys);
			break;
		}
		if (setup_port_key(port, *keys, value, &err))
			*rc = misused("%s", err.text);
		json_object_set_new(object, *keys, json_string(value));
	}
	setup_port_free(port);
	if (*rc == DONE)
		return json_pack("{s:s, s:s, s:o}", "request", "add", "spec", spec, "keys", object);
	json_decref(object);
	return NULL;
}

static void added_print(const json_t *answer)
{
	const char *mode = view_text(answer, "mode");

	if (!json_object_get(answer, "spec")) {
		printf("%s: waiting for its device\n", view_text(answer, "port"));
		return;
	}
	printf("%s: %s, %s%s%lld queue%s%s%s\n", view_text(answer, "port"),
	       view_text(answer, "spec"), mode, *mode ? ", " : "", view_number(answer, "queues"),
	       view_number(answer, "queues") == 1 ? "" : "s",
	       json_object_get(answer, "host") ? ", this host by " : "", view_text(answer, "host"));
}

static int ask(const struct rundir *dir, json_t *request, bool add)
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
	if (add)
		added_print(answer);
	json_decref(answer);
	return DONE;
}

static int port_run(int argc, char **argv)
{
	static const struct option options[] = {WHICH_LONG, {0}};
	struct which which = {0};
	struct rundir dir;
	json_t *request;
	int option, rc;
	bool add;

	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		rc = which_option(&command_port, &which, option, argv);
		if (rc >= 0)
			return rc;
	}
	argv += optind;
	argc -= optind;
	add = argc && !strcmp(argv[0], "add");
	if (!argc || (!add && strcmp(argv[0], "remove")))
		return misused("port: what to do: add KIND:TARGET or remove PORT");
	if (argc < 2)
		return misused("port %s: %s is missing", argv[0],
			       add ? "KIND:TARGET, such as xdp:eth0," : "PORT");
	if (!add && argc > 2)
		return misused("port remove: one port at a time");
	rc = which_dir(&which, &dir);
	if (rc)
		return rc;
	if (add)
		request = add_request(argv[1], argv + 2, &rc);
	else
		request = json_pack("{s:s, s:s}", "request", "remove", "port", argv[1]);
	return rc ? rc : ask(&dir, request, add);
}

const struct command command_port = {
	.name = "port",
	.summary = "add a port to a running engine, or remove one",
	.usage = "Usage: napier port [OPTION…] add KIND:TARGET[,OPTION=VALUE…] [KEY=VALUE…]\n"
		 "       napier port [OPTION…] remove PORT\n"
		 "Adds a port to a running engine, or removes one, while the others go on.\n"
		 "Keys: those of napier set PORT, and for VLANs pvid, tagged and "
		 "untagged.\n\n" WHICH_USAGE,
	.run = port_run,
};
