/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <napier/error.h>

int error_set(struct error *err, int code, const char *format, ...)
{
	va_list arguments;
	size_t n;

	if (!err)
		return code;
	err->code = code;
	va_start(arguments, format);
	vsnprintf(err->text, sizeof(err->text), format, arguments);
	va_end(arguments);
	/* It can be met wherever something is opened, and has the same cure everywhere. */
	n = strlen(err->text);
	if (code == -EMFILE && !strstr(err->text, "ulimit -n"))
		snprintf(err->text + n, sizeof(err->text) - n,
			 ": raise the limit of open files (ulimit -n)");
	return code;
}
