/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/measure/sysfile.h"

static bool path_read(const char *path, char text[SYSFILE_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = -1;
	bool is_there;

	if (fd >= 0) {
		n = read(fd, text, SYSFILE_MAX - 1);
		close(fd);
	}
	is_there = n >= 0;
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' ' || !text[n - 1]))
		n--;
	text[n > 0 ? n : 0] = '\0';
	return is_there;
}

#define PATH_OF(path, format)                                                                      \
	char path[512];                                                                            \
	va_list args;                                                                              \
                                                                                                   \
	va_start(args, format);                                                                    \
	vsnprintf(path, sizeof(path), format, args);                                               \
	va_end(args)

bool sysfile_read(char text[SYSFILE_MAX], const char *format, ...)
{
	PATH_OF(path, format);

	return path_read(path, text);
}

json_t *sysfile_string(const char *text)
{
	json_t *whole = json_string(text);
	char plain[SYSFILE_MAX];
	size_t n = 0;

	if (whole)
		return whole;
	for (; *text && n + 1 < sizeof(plain); text++)
		if (*text > 0)
			plain[n++] = *text;
	plain[n] = '\0';
	return json_string(plain);
}

json_t *sysfile_text(const char *format, ...)
{
	char text[SYSFILE_MAX];
	PATH_OF(path, format);

	return path_read(path, text) ? sysfile_string(text) : json_null();
}

json_t *sysfile_number(const char *format, ...)
{
	char text[SYSFILE_MAX], *end;
	long long value;
	PATH_OF(path, format);

	if (!path_read(path, text))
		return json_null();
	errno = 0;
	value = strtoll(text, &end, 10);
	return end == text || errno ? json_null() : json_integer(value);
}

bool sysfile_field(const char *path, const char *name, char *value, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t length = strlen(name);
	char line[SYSFILE_MAX];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *rest = line + length;

		if (strncmp(line, name, length))
			continue;
		rest += strspn(rest, " \t");
		if (*rest != ':' && *rest != '=')
			continue;
		rest++;
		rest += strspn(rest, " \t\"");
		snprintf(value, size, "%.*s", (int)strcspn(rest, "\"\n"), rest);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

static int ascending(const void *a, const void *b)
{
	return strverscmp(a, b);
}

unsigned sysfile_names(const char *directory, const char *prefix, char (*name)[SYSFILE_NAME_MAX],
		       unsigned max)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) ||
		    strlen(entry->d_name) >= SYSFILE_NAME_MAX)
			continue;
		if (n < max)
			strcpy(name[n], entry->d_name);
		n++;
	}
	if (dir)
		closedir(dir);
	qsort(name, n < max ? n : max, SYSFILE_NAME_MAX, ascending);
	return n;
}
