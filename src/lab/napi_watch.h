/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * napi_watch: how often the kernel polls an interface's NAPIs, and what it finds, by its tracepoint
 * napi_poll. Costs some 100 ns a poll while it is open.
 */
#ifndef LAB_NAPI_WATCH_H
#define LAB_NAPI_WATCH_H

#include <stdint.h>

#include <napier/error.h>

struct napi_watch;

/* By name, in whatever namespace. -EOPNOTSUPP: the kernel does not say what it would take. */
int napi_watch_open(const char *interface, struct napi_watch **out, struct error *err);
/* Polls that found something, and packets that they found. */
void napi_watch_read(const struct napi_watch *watch, uint64_t *packets, uint64_t *polls);
void napi_watch_close(struct napi_watch *watch);

#endif
