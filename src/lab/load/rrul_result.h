/* SPDX-License-Identifier: BSD-2-Clause */
/* rrul_result: a run's result, from the reports of the TCP flows and from the probes. */
#ifndef LAB_LOAD_RRUL_RESULT_H
#define LAB_LOAD_RRUL_RESULT_H

#include "lab/load/rrul_probe.h"
#include "lab/load/stream_plan.h"

/* For json_decref. server NULL: it died, and why is `died`. */
json_t *rrul_result(const struct stream_plan *plan, const struct rrul_probe *probe,
		    const json_t *client, const json_t *server, const char *died);

#endif
