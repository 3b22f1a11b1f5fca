/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include <poller/start.h>

int poller_runner_start(struct engine *engine, struct runner_config *config,
			struct placement *asked, struct runner **out, struct error *err)
{
	struct error first = {0};
	int rc;

	config->placement.class = asked->class;
	config->placement.level = asked->level;
	if (cpuset_empty(&config->placement.cpus))
		config->placement.cpus = asked->cpus;
	rc = runner_start(engine->machine, config, out, &first);
	if (rc == -EPERM && (asked->class != RUNNER_FAIR || asked->level)) {
		engine_log(engine, LEVEL_WARNING, "%s; going on as an ordinary thread", first.text);
		asked->class = config->placement.class = RUNNER_FAIR;
		asked->level = config->placement.level = 0;
		rc = runner_start(engine->machine, config, out, &first);
	}
	if (rc)
		error_set(err, rc, "%s", first.text);
	return rc;
}
