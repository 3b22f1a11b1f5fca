/* SPDX-License-Identifier: BSD-2-Clause */
/* Where specifications are found. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/spec/spec.h"

#define SUFFIX ".conf"

enum { FILE_MAX = 256 << 10, SHIPPED_MAX = 64 };

static int usable_read(struct cpuset *out, struct error *err)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return error_set(err, -errno, "which CPUs may be used cannot be read: %s",
				 strerror(errno));
	*out = (struct cpuset){0};
	for (unsigned cpu = 0; cpu < CPU_MAX; cpu++) {
		if (CPU_ISSET(cpu, &set))
			cpuset_add(out, cpu);
	}
	return 0;
}

/* *text is for free. */
static int file_read(const char *path, char **text, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n = 0;
	int rc = 0;

	if (fd < 0)
		return error_set(err, -errno, "%.400s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		rc = error_set(err, -EINVAL, "%.400s: not a file", path);
	else if (st.st_size > FILE_MAX)
		rc = error_set(err, -EFBIG, "%.400s: longer than %d bytes, so no specification",
			       path, FILE_MAX);
	else if (!(*text = malloc(FILE_MAX + 1)))
		rc = error_set(err, -ENOMEM, "%.400s: no memory", path);
	else if ((n = read(fd, *text, FILE_MAX)) < 0)
		rc = error_set(err, -errno, "%.400s: %s", path, strerror(errno));
	close(fd);
	if (rc || n < 0)
		return rc;
	(*text)[n] = '\0';
	return strlen(*text) == (size_t)n
		       ? 0
		       : error_set(err, -EINVAL, "%.400s: not a text file", path);
}

static bool file_is(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

const char *spec_directory(void)
{
	static char path[PATH_MAX];
	const char *given = getenv("NAPIER_SPECS");
	char self[512], mark[1024], there[1024];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (given && *given)
		return given;
	self[n > 0 ? n : 0] = '\0';
	if (strrchr(self, '/'))
		*strrchr(self, '/') = '\0';
	/* Built: programs are two directories below the top of the build. */
	snprintf(mark, sizeof(mark), "%s/../../build.ninja", self);
	snprintf(there, sizeof(there), "%s/../../specs", self);
	if (file_is(mark) && realpath(there, path))
		return path;
	/* Installed, also in another place than it was built for. */
	snprintf(there, sizeof(there), "%s/../share/napier/specs", self);
	return realpath(there, path) ? path : SPEC_DIRECTORY;
}

static int name_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names without ".conf", sorted; each is for free. */
static unsigned names_find(const char *directory, char *names[SHIPPED_MAX])
{
	DIR *d = opendir(directory);
	const struct dirent *entry;
	unsigned n = 0;

	while (d && n < SHIPPED_MAX && (entry = readdir(d))) {
		size_t length = strlen(entry->d_name);

		if (length <= strlen(SUFFIX) || entry->d_name[0] == '.' ||
		    strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX))
			continue;
		names[n] = strndup(entry->d_name, length - strlen(SUFFIX));
		n += names[n] != NULL;
	}
	if (d)
		closedir(d);
	qsort(names, n, sizeof(*names), name_compare);
	return n;
}

static int shipped_missing(const char *name, struct error *err)
{
	char *names[SHIPPED_MAX], list[400] = "";
	unsigned n = names_find(spec_directory(), names);
	size_t used = 0;

	for (unsigned i = 0; i < n; i++) {
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 i ? ", " : "", names[i]);
		free(names[i]);
	}
	if (!n)
		return error_set(err, -ESRCH,
				 "there is no specification \"%.60s\", and none in %.300s "
				 "(NAPIER_SPECS names another directory)",
				 name, spec_directory());
	return error_set(err, -ESRCH,
			 "there is no specification \"%.60s\": there are %s; a file of your own is "
			 "named with its path, or ends in " SUFFIX,
			 name, list);
}

static int path_find(const char *name, char *path, size_t size, struct error *err)
{
	size_t n = strlen(name);

	if (n >= size)
		return error_set(err, -ENAMETOOLONG, "%.60s…: too long a path", name);
	memcpy(path, name, n + 1);
	if (strchr(name, '/') || (n > strlen(SUFFIX) && !strcmp(name + n - strlen(SUFFIX), SUFFIX)))
		return 0;
	if (file_is(path))
		return 0;
	snprintf(path, size, "%s/%s" SUFFIX, spec_directory(), name);
	return file_is(path) ? 0 : shipped_missing(name, err);
}

int spec_load(const char *name, const struct spec_setting *set, unsigned sets, struct spec **out,
	      struct error *err)
{
	char path[PATH_MAX + 64], *text = NULL;
	struct cpuset usable;
	int rc = path_find(name, path, sizeof(path), err);

	if (!rc)
		rc = usable_read(&usable, err);
	if (!rc)
		rc = file_read(path, &text, err);
	if (!rc)
		rc = spec_parse(path, text, &usable, set, sets, out, err);
	free(text);
	return rc;
}

int spec_list(void (*each)(void *arg, const struct spec *spec), void *arg, struct error *err)
{
	char *names[SHIPPED_MAX];
	unsigned n = names_find(spec_directory(), names);
	int rc = n ? 0 : error_set(err, -ENOENT, "no specifications in %.400s", spec_directory());

	for (unsigned i = 0; i < n; i++) {
		struct spec *spec;
		char path[PATH_MAX + 64];

		snprintf(path, sizeof(path), "%s/%s" SUFFIX, spec_directory(), names[i]);
		if (!rc)
			rc = spec_load(path, NULL, 0, &spec, err);
		if (!rc) {
			each(arg, spec);
			spec_free(spec);
		}
		free(names[i]);
	}
	return rc;
}
