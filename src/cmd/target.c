/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmd/target.h>

int target_parse(const char *text, struct target *out, struct error *err)
{
	const char *slash = strrchr(text, '/');
	bool queue = slash && slash[1] && slash[1 + strspn(slash + 1, "0123456789")] == '\0';
	size_t n = queue ? (size_t)(slash - text) : strlen(text);

	if (n == 0 || n >= sizeof(out->port))
		return error_set(err, -EINVAL, "\"%.60s\" is no port: a name of 1 to %zu bytes",
				 text, sizeof(out->port) - 1);
	*out = (struct target){.queue = -1};
	memcpy(out->port, text, n);
	if (!queue)
		return 0;
	if (strlen(slash + 1) > 4 || atoi(slash + 1) >= PORT_QUEUES_MAX)
		return error_set(err, -EINVAL, "%.60s: queues are 0..%d", text,
				 PORT_QUEUES_MAX - 1);
	out->queue = atoi(slash + 1);
	return 0;
}
