/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>

#include "lab/load/load.h"

const struct load_ops *load_ops(enum load_kind kind)
{
	static const struct load_ops *const all[LOAD_KINDS] = {
		[LOAD_RR] = &load_rr,
		[LOAD_STREAM] = &load_stream,
		[LOAD_RRUL] = &load_rrul,
	};

	return (unsigned)kind < LOAD_KINDS ? all[kind] : NULL;
}

double load_operations(const struct load_config *config, const json_t *counts)
{
	double n;

	if (config->kind == LOAD_RR)
		n = json_number_value(json_object_get(counts, "transactions"));
	else if (config->kind == LOAD_STREAM && config->protocol == LOAD_UDP)
		n = json_number_value(json_object_get(counts, "received"));
	else /* received, not received and sent: they are the same bytes */
		n = json_number_value(json_object_get(counts, "bytes_received")) / 1000;
	return n > 0 ? n : 0;
}
