/* SPDX-License-Identifier: BSD-2-Clause */
/* A line from the control socket. */
#include <stdlib.h>
#include <string.h>

#include <control/request.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);
	struct request request;
	struct error err;

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	request_parse(line, size, &request, &err);
	request_free(&request);
	free(line);
	return 0;
}
