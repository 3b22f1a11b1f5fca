/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include <poller/start.h>

int poller_runner_start(struct engine *engine, const struct runner_config *config,
			struct runner **out, struct error *err)
{
	struct runner_config ordinary = *config;
	struct error first = {0};
	int rc = runner_start(engine->machine, config, out, &first);

	if (rc == -EPERM && (config->placement.class != RUNNER_FAIR || config->placement.level)) {
		engine_log(engine, LEVEL_WARNING, "%s; going on as an ordinary thread", first.text);
		ordinary.placement.class = RUNNER_FAIR;
		ordinary.placement.level = 0;
		rc = runner_start(engine->machine, &ordinary, out, &first);
	}
	if (rc)
		error_set(err, rc, "%s", first.text);
	return rc;
}
