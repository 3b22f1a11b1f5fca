/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report: results (docs/results.md) as people and programs read them. All is made from the results
 * alone, so a report can be made again from a file. The terminal's tables are in cmd/bench_table.h.
 */
#ifndef LAB_REPORT_REPORT_H
#define LAB_REPORT_REPORT_H

#include <jansson.h>

#include <napier/error.h>

/*
 * results.json, report.html, flent/ into a directory, made when it is missing. Each file is written
 * beside and renamed: never half a file. -ENOSPC and the like name the file.
 */
int report_write(const json_t *results, const char *directory, struct error *err);

/*
 * The same where there is a report already: the new one is whole before the first file of the old
 * one goes. When it cannot be written the old one stays as it was, and err names where the rest is.
 * What one that was killed had written so far (in ".new") gives way to this one.
 */
int report_replace(const json_t *results, const char *directory, struct error *err);

int report_results(const json_t *results, const char *path, struct error *err);
int report_html(const json_t *results, const char *path, struct error *err);
/*
 * Data files of flent's, which holds one run in a file: SYSTEM-WORKLOAD-REPEAT.flent.gz for each
 * valid run, in a directory that is made if there are any (docs/results.md says what is in them).
 * -EOPNOTSUPP: nothing in the results that flent has a place for; no directory then.
 */
int report_flent(const json_t *results, const char *directory, struct error *err);

/* A file, or a directory with results.json in it. -EPROTONOSUPPORT: another schema or version. */
int report_read(const char *path, json_t **results, struct error *err);

/*
 * Two results, matched by system and workload; *out is for json_decref and has what docs/results.md
 * says. Differences inside the intervals are none, and both are taken as sets of their own, since
 * they were not measured in turn. -ENODATA: they have nothing in common. Both need a "summary".
 */
int report_compare(const json_t *a, const json_t *b, json_t **out, struct error *err);

#endif
