/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmd/lines.h>

enum { COLUMNS_DEFAULT = 120, COLUMNS_LEAST = 60 };

unsigned lines_columns(FILE *out)
{
	const char *said = getenv("COLUMNS");
	struct winsize size;
	long n = 0;

	if (isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size))
		n = size.ws_col;
	if (!n && said)
		n = strtol(said, NULL, 10);
	if (n <= 0 || n > 1000)
		n = COLUMNS_DEFAULT;
	return (unsigned)(n < COLUMNS_LEAST ? COLUMNS_LEAST : n);
}

unsigned lines_width(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void text_wrap(const char *text, unsigned columns, unsigned indent, FILE *out)
{
	unsigned at = 0;

	while (*text) {
		size_t length = strcspn(text, " \n");
		unsigned width = 0;

		for (size_t i = 0; i < length; i++)
			width += (text[i] & 0xc0) != 0x80;
		if (at && at + 1 + width > columns) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at) {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, length, out);
		at += width;
		text += length;
		text += strspn(text, " \n");
	}
	fputc('\n', out);
}

void lines_say(FILE *out, unsigned columns, unsigned indent, const char *format, ...)
{
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) >= 0)
		text_wrap(text, columns, indent, out);
	va_end(arguments);
	free(text);
}

const char *lines_cut(const char *text, unsigned width, char *out, size_t size)
{
	size_t i = 0, n = 0;

	if (lines_width(text) <= width) {
		snprintf(out, size, "%s", text);
		return out;
	}
	/* At a whole character. */
	while (text[i] && i + 4 < size) {
		if ((text[i] & 0xc0) != 0x80 && ++n == width)
			break;
		i++;
	}
	snprintf(out, size, "%.*s…", (int)i, text);
	return out;
}
