/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration file. */
#include <stdlib.h>
#include <string.h>

#include <control/setup.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct setup setup;
	struct error err;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	setup_init(&setup);
	if (!setup_text_read(&setup, "fuzz", text, &err))
		setup_check(&setup, &err);
	setup_free(&setup);
	free(text);
	return 0;
}
