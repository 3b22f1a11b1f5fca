/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target is this function: it does with the bytes what the program does with bytes that it
 * was given, and must not crash, leak or hang whatever they are. Returns 0.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold whatever the bytes are; also without assert(). */
#define ALWAYS(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not: %s\n", __FILE__, __LINE__, #condition);       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
