/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of NAPIs by whose token somebody holds, and inboxes into which anyone may put one.
 *
 *  call        | beside                 | order
 *  ------------+------------------------+------------------------------------------------
 *  list_*      | nothing: one owner     |
 *  inbox_put   | inbox_put, inbox_take  | seq_cst: what is loaded after it, a flag of the
 *              |                        | taker's above all, is loaded after it
 *  inbox_take  | inbox_put; one taker   | acquire
 */
#ifndef POLLER_LIST_H
#define POLLER_LIST_H

#include <stdatomic.h>

#include <core/napi.h>

struct napi_list {
	struct napi *first;
	struct napi **end;
};

struct napi_inbox {
	struct napi *_Atomic last; /* put last; the others behind it */
};

static inline void list_init(struct napi_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

static inline void list_append(struct napi_list *list, struct napi *napi)
{
	napi->next = NULL;
	*list->end = napi;
	list->end = &napi->next;
}

/* The first; the list is not empty. */
static inline struct napi *list_take(struct napi_list *list)
{
	struct napi *napi = list->first;

	list->first = napi->next;
	if (!list->first)
		list->end = &list->first;
	return napi;
}

/* Moves all of `from` behind `to`. */
static inline void list_join(struct napi_list *to, struct napi_list *from)
{
	if (!from->first)
		return;
	*to->end = from->first;
	to->end = from->end;
	list_init(from);
}

static inline void inbox_put(struct napi_inbox *inbox, struct napi *napi)
{
	struct napi *last = atomic_load_explicit(&inbox->last, memory_order_relaxed);

	do {
		napi->next = last;
	} while (!atomic_compare_exchange_weak(&inbox->last, &last, napi));
}

static inline bool inbox_empty(struct napi_inbox *inbox)
{
	return !atomic_load(&inbox->last);
}

/* Appends all that is in it to the list, what was put first first. */
static inline void inbox_take(struct napi_inbox *inbox, struct napi_list *list)
{
	struct napi *napi = NULL;
	struct napi *in;

	if (!atomic_load_explicit(&inbox->last, memory_order_relaxed))
		return;
	in = atomic_exchange_explicit(&inbox->last, NULL, memory_order_acquire);
	while (in) { /* turn it round */
		struct napi *below = in->next;

		in->next = napi;
		napi = in;
		in = below;
	}
	while (napi) {
		struct napi *next = napi->next;

		list_append(list, napi);
		napi = next;
	}
}

#endif
