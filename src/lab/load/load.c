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
