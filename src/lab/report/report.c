/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/report/file.h"
#include "lab/report/report.h"

#define SCHEMA "napier-results"
#define VERSION 1
#define RESULTS_NAME "results.json"

/* One element a line: readable, and a run with its thousands of buckets is not a page of digits. */
static int member_dump(const json_t *value, FILE *out)
{
	const json_t *element;
	int rc = 0;
	size_t i;

	if (!json_is_array(value) || !json_array_size(value))
		return json_dumpf(value, out, JSON_INDENT(1) | JSON_ENCODE_ANY);
	fputc('[', out);
	json_array_foreach(value, i, element)
	{
		fputs(i ? ",\n" : "\n", out);
		rc |= json_dumpf(element, out, JSON_COMPACT | JSON_ENCODE_ANY);
	}
	fputs("\n]", out);
	return rc;
}

static int results_dump(const json_t *results, FILE *out)
{
	const char *key, *between = "";
	json_t *value;
	int rc = 0;

	fputc('{', out);
	json_object_foreach((json_t *)results, key, value)
	{
		json_t *name = json_string(key);

		fprintf(out, "%s\n", between);
		rc |= json_dumpf(name, out, JSON_ENCODE_ANY);
		fputs(": ", out);
		rc |= member_dump(value, out);
		between = ",";
		json_decref(name);
	}
	fputs("\n}\n", out);
	return rc;
}

int report_results(const json_t *results, const char *path, struct error *err)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int rc = out ? results_dump(results, out) : -1;

	if (out && fclose(out))
		rc = -1;
	rc = rc ? error_set(err, -ENOMEM, "%s: no memory for its text", path)
		: file_write(path, text, size, err);
	free(text);
	return rc;
}

static int schema_check(const json_t *results, const char *path, struct error *err)
{
	const char *schema = json_string_value(json_object_get(results, "schema"));
	const json_t *version = json_object_get(results, "version");

	if (!schema || strcmp(schema, SCHEMA))
		return error_set(err, -EPROTONOSUPPORT,
				 "%s: no results of napier bench: its \"schema\" is %s%s%s, not "
				 "\"" SCHEMA "\"",
				 path, schema ? "\"" : "", schema ? schema : "missing",
				 schema ? "\"" : "");
	if (!json_is_integer(version) || json_integer_value(version) < 1)
		return error_set(err, -EPROTONOSUPPORT,
				 "%s: its \"version\" is no number from 1 on", path);
	if (json_integer_value(version) > VERSION)
		return error_set(
			err, -EPROTONOSUPPORT,
			"%s: version %lld of the results; this napier knows %d: use the newer "
			"one that wrote it",
			path, (long long)json_integer_value(version), VERSION);
	return 0;
}

/* What everything else relies on; the rest may be missing. */
static int shape_check(const json_t *results, const char *path, struct error *err)
{
	static const char *const arrays[] = {"systems", "workloads", "runs"};

	for (unsigned i = 0; i < sizeof(arrays) / sizeof(*arrays); i++) {
		if (!json_is_array(json_object_get(results, arrays[i])))
			return error_set(err, -EINVAL, "%s: \"%s\" is no array: not whole results",
					 path, arrays[i]);
	}
	return 0;
}

int report_read(const char *path, json_t **results, struct error *err)
{
	char inside[PATH_MAX];
	json_error_t wrong;
	struct stat status;
	json_t *o;
	int rc;

	if (stat(path, &status))
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(status.st_mode)) {
		if ((size_t)snprintf(inside, sizeof(inside), "%s/" RESULTS_NAME, path) >=
		    sizeof(inside))
			return error_set(err, -ENAMETOOLONG, "%s: too long a path", path);
		path = inside;
		if (stat(path, &status))
			return error_set(err, -errno,
					 "%s: %s: name a directory that napier bench wrote, or its "
					 "results.json",
					 path, strerror(errno));
	}
	errno = 0;
	o = json_load_file(path, JSON_REJECT_DUPLICATES, &wrong);
	if (!o && wrong.line <= 0)
		return error_set(err, errno ? -errno : -EINVAL, "%s: %s", path,
				 errno ? strerror(errno) : wrong.text);
	if (!o)
		return error_set(err, -EINVAL, "%s:%d: no results of napier bench: %s", path,
				 wrong.line, wrong.text);
	rc = schema_check(o, path, err);
	if (!rc)
		rc = shape_check(o, path, err);
	if (rc)
		json_decref(o);
	else
		*results = o;
	return rc;
}

/* Parents too; what is there already is as good. */
static int directory_make(const char *directory, struct error *err)
{
	char path[PATH_MAX];
	struct stat status;

	if ((size_t)snprintf(path, sizeof(path), "%s", directory) >= sizeof(path))
		return error_set(err, -ENAMETOOLONG, "%s: too long a path", directory);
	for (char *end = path + 1; *end; end++) {
		if (*end != '/')
			continue;
		*end = 0;
		if (mkdir(path, 0777) && errno != EEXIST)
			return error_set(err, -errno, "%s: %s", path, strerror(errno));
		*end = '/';
	}
	if (mkdir(path, 0777) && errno != EEXIST)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (stat(path, &status))
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(status.st_mode))
		return error_set(err, -ENOTDIR,
				 "%s: a file has that name: choose another directory (-o)", path);
	return 0;
}

int report_write(const json_t *results, const char *directory, struct error *err)
{
	char path[PATH_MAX + NAME_MAX];
	int rc = directory_make(directory, err);

	if (rc)
		return rc;
	/* First what the others can be made from again. */
	snprintf(path, sizeof(path), "%s/" RESULTS_NAME, directory);
	rc = report_results(results, path, err);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/report.html", directory);
	rc = report_html(results, path, err);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/flent", directory);
	rc = report_flent(results, path, err);
	return rc == -EOPNOTSUPP ? 0 : rc;
}

/* Of a file two directories down. */
enum { INSIDE_MAX = PATH_MAX + 2 * NAME_MAX };

static bool is_flent(const char *name)
{
	return !fnmatch("*.flent.gz", name, 0);
}

/* A file of a report while it is written (file.h). */
static bool is_unfinished(const char *name)
{
	return !strcmp(name, "." RESULTS_NAME ".new") || !strcmp(name, ".report.html.new") ||
	       !fnmatch(".*.flent.gz.new", name, 0);
}

static bool is_ours(const char *name)
{
	return !strcmp(name, RESULTS_NAME) || !strcmp(name, "report.html") || is_flent(name) ||
	       is_unfinished(name);
}

/* Calls for each file there whose name is one; the first error ends it. */
static int files_each(const char *directory, bool (*is_one)(const char *name),
		      int (*each)(const char *path, void *arg), void *arg)
{
	char path[INSIDE_MAX];
	DIR *dir = opendir(directory);
	const struct dirent *entry;
	int rc = 0;

	while (dir && !rc && (entry = readdir(dir))) {
		if (!is_one(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		rc = each(path, arg);
	}
	if (dir)
		closedir(dir);
	return rc;
}

static int file_remove(const char *path, void *arg)
{
	(void)arg;
	return unlink(path) ? -errno : 0;
}

static int file_move(const char *path, void *to)
{
	char target[INSIDE_MAX];

	snprintf(target, sizeof(target), "%s%s", (const char *)to, strrchr(path, '/'));
	return rename(path, target) ? -errno : 0;
}

/* From one directory to another; files of others stay where they are. */
static int report_move(const char *from, const char *to)
{
	static const char *const files[] = {RESULTS_NAME, "report.html"};
	char old[PATH_MAX + 16], new[PATH_MAX + 16];
	int rc = 0;

	for (unsigned i = 0; i < sizeof(files) / sizeof(*files) && !rc; i++) {
		snprintf(new, sizeof(new), "%s/%s", from, files[i]);
		rc = file_move(new, (void *)to);
	}
	snprintf(old, sizeof(old), "%s/flent", to);
	snprintf(new, sizeof(new), "%s/flent", from);
	if (!rc)
		rc = files_each(old, is_flent, file_remove, NULL);
	if (rc)
		return rc;
	if (access(new, F_OK)) {
		rmdir(old); /* not, if others have files there */
		return 0;
	}
	if (mkdir(old, 0777) && errno != EEXIST)
		return -errno;
	rc = files_each(new, is_flent, file_move, old);
	return !rc && rmdir(new) ? -errno : rc;
}

/* Whose writer was killed; who lives has it locked, or the directory. */
static int dead_remove(const char *path, void *arg)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	(void)arg;
	if (fd < 0)
		return 0;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		unlink(path);
	close(fd);
	return 0;
}

/*
 * The directory beside, empty and locked: a descriptor, or a negative errno. Its name is always the
 * same one, as that of a file beside is, and for the same reason.
 */
static int beside_make(const char *beside)
{
	char flent[PATH_MAX + 8];
	int fd;

	for (;;) {
		if (mkdir(beside, 0777) && errno != EEXIST)
			return -errno;
		fd = open(beside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			return -errno;
		if (fd >= 0 && file_lock(fd, beside))
			break;
		if (fd >= 0)
			close(fd);
	}
	files_each(beside, is_ours, dead_remove, NULL);
	snprintf(flent, sizeof(flent), "%s/flent", beside);
	files_each(flent, is_ours, dead_remove, NULL);
	rmdir(flent);
	return fd;
}

/* So that the next one does not take it. */
static void beside_keep(char beside[PATH_MAX], const char *directory)
{
	char kept[PATH_MAX];

	if ((size_t)snprintf(kept, sizeof(kept), "%s/new.XXXXXX", directory) < sizeof(kept) &&
	    mkdtemp(kept) && !rename(beside, kept))
		strcpy(beside, kept);
}

int report_replace(const json_t *results, const char *directory, struct error *err)
{
	char beside[PATH_MAX], flent[PATH_MAX];
	struct error why;
	int rc, fd;

	if ((size_t)snprintf(beside, sizeof(beside), "%s/.new", directory) >= sizeof(beside) ||
	    (size_t)snprintf(flent, sizeof(flent), "%s/flent", directory) >= sizeof(flent))
		return error_set(err, -ENAMETOOLONG, "%s: too long a path", directory);
	fd = beside_make(beside);
	if (fd < 0)
		return error_set(err, fd, "%s: %s", beside, strerror(-fd));
	files_each(directory, is_unfinished, dead_remove, NULL);
	files_each(flent, is_unfinished, dead_remove, NULL);
	rc = report_write(results, beside, &why);
	if (!rc && (rc = report_move(beside, directory)))
		error_set(&why, rc, "%s: %s", directory, strerror(-rc));
	if (!rmdir(beside) || !rc) {
		close(fd);
		return rc ? error_set(err, rc, "%s", why.text) : 0;
	}
	beside_keep(beside, directory);
	close(fd);
	return error_set(err, rc, "%.400s; what could be written is in %.200s", why.text, beside);
}
