/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>

#include <napier/error.h>

int error_set(struct error *err, int code, const char *format, ...)
{
	va_list arguments;

	if (!err)
		return code;
	err->code = code;
	va_start(arguments, format);
	vsnprintf(err->text, sizeof(err->text), format, arguments);
	va_end(arguments);
	return code;
}
