/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/measure/account.h"

/*
 * Softirq in a thread's back that its clock does not have yet: another process's is known as of its
 * last tick or switch. More than that is no lag, and then nobody knows who did what.
 */
#define LAG_NS INT64_C(20000000)

/* /proc/stat has hundredths: in less than this a twentieth of the time is none of them. */
#define BUSY_WALL_NS INT64_C(250000000)

static void note(json_t *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(json_t *notes, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_array_append_new(notes, json_string(text));
}

const char *account_party(const struct usage_config *config, unsigned party)
{
	if (party == PARTY_KERNEL)
		return "kernel threads";
	return party < config->parties ? config->party[party].name : "none";
}

bool account_is_antagonist(const struct usage_config *config, unsigned party)
{
	return party < config->parties && !strncmp(config->party[party].name, "antagonist", 10);
}

static int64_t back_of(const struct moment *moment, pid_t thread)
{
	for (unsigned i = 0; i < moment->backs; i++)
		if (moment->back[i].thread == thread)
			return moment->back[i].softirq;
	return 0;
}

static int64_t difference(int64_t end, int64_t begin)
{
	return end < 0 || begin < 0 || end < begin ? -1 : end - begin;
}

static void net_make(struct account_used *used)
{
	used->net = used->gross - used->back;
	if (used->net < 0 && used->net >= -LAG_NS)
		used->net = 0;
	used->known = used->gross >= 0 && used->net >= 0;
	if (!used->known)
		used->net = 0;
}

/* The same thread, and not another with its number. */
static const struct moment_task *earlier(const struct moment *begin, const struct moment_task *t)
{
	const struct moment_task *was = moment_find(begin, t->task.thread);

	if (!was || (t->task.start && was->task.start && t->task.start != was->task.start))
		return NULL;
	return was;
}

/* One that began in the window had nothing before. */
static struct account_used task_used(const struct moment *begin, const struct moment_task *t)
{
	static const struct moment_task none = {0};
	const struct moment_task *was = earlier(begin, t);
	struct account_used used;

	used.back = t->back - (was ? was->back : back_of(begin, t->task.thread));
	if (!was)
		was = &none;
	used.gross = t->ns - was->ns;
	used.user = t->task.user > was->task.user ? t->task.user - was->task.user : 0;
	used.system = t->task.system > was->task.system ? t->task.system - was->task.system : 0;
	used.voluntary = difference(t->task.voluntary, was->task.voluntary);
	used.involuntary = difference(t->task.involuntary, was->task.involuntary);
	used.migrations = difference(t->task.migrations, was->task.migrations);
	used.wakeups = difference(t->task.wakeups, was->task.wakeups);
	if (used.wakeups < 0) /* it waits no more: once woken for each time that it began to */
		used.wakeups = used.voluntary;
	net_make(&used);
	return used;
}

static void add(int64_t *to, int64_t value)
{
	*to = *to < 0 || value < 0 ? -1 : *to + value;
}

static void party_add(struct account *a, unsigned party, const struct account_used *used)
{
	struct account_used *p = &a->party[party];

	p->known = p->known && used->known;
	p->gross += used->gross;
	p->back += used->back;
	p->net += used->net;
	p->user += used->user;
	p->system += used->system;
	add(&p->voluntary, used->voluntary);
	add(&p->involuntary, used->involuntary);
	add(&p->wakeups, used->wakeups);
	add(&p->migrations, used->migrations);
}

static void living_account(const struct moment *begin, const struct moment *end, struct account *a)
{
	for (unsigned i = 0; i < end->tasks; i++) {
		const struct moment_task *t = &end->task[i];
		struct account_thread *thread = &a->thread[a->threads++];

		*thread = (struct account_thread){
			.thread = t->task.thread,
			.party = t->party,
			.cpu = t->task.cpu,
			.used = task_used(begin, t),
		};
		memcpy(thread->name, t->task.name, sizeof(thread->name));
		party_add(a, t->party, &thread->used);
	}
}

static bool has_ended(const struct moment *end, const struct moment_task *t)
{
	const struct moment_task *now = moment_find(end, t->task.thread);

	return !now || (now->task.start && t->task.start && now->task.start != t->task.start);
}

struct ended {
	unsigned known;	 /* threads that were there at the begin */
	unsigned owners; /* bits of the parties that they were of */
	int64_t had;	 /* what those had at the begin */
	int64_t back;
};

static struct ended ended_find(const struct moment *begin, const struct moment *end, pid_t process)
{
	struct ended e = {0};

	for (unsigned i = 0; i < begin->tasks; i++) {
		const struct moment_task *t = &begin->task[i];

		if (t->task.process != process || t->party == PARTY_KERNEL || !has_ended(end, t))
			continue;
		e.known++;
		e.owners |= 1u << t->party;
		e.had += t->ns;
	}
	for (unsigned i = 0; i < end->backs; i++) {
		const struct napi_back *b = &end->back[i];

		if (b->process == process && !moment_find(end, b->thread))
			e.back += b->softirq - back_of(begin, b->thread);
	}
	return e;
}

static const struct moment_process *process_find(const struct moment *m, pid_t process)
{
	for (unsigned i = 0; i < m->processes; i++)
		if (m->process[i].process == process)
			return &m->process[i];
	return NULL;
}

static void owners_unknown(const struct moment_site *site, struct account *a, unsigned owners,
			   json_t *notes)
{
	for (unsigned i = 0; i < PARTIES; i++) {
		if (!(owners & 1u << i) || i == PARTY_NONE)
			continue;
		a->party[i].known = false;
		note(notes, "Threads of \"%s\" ended meanwhile; what they used is not known.",
		     account_party(site->config, i));
	}
}

/* Threads of a process that ended in the window, whether they were there at its begin or not. */
static void ended_account(const struct moment_site *site, const struct moment *begin,
			  const struct moment *end, const struct moment_process *now,
			  struct account *a, json_t *notes)
{
	const struct moment_process *was = process_find(begin, now->process);
	struct ended e = ended_find(begin, end, now->process);
	int64_t used = now->ended - (was ? was->ended : 0) - e.had;
	int64_t slack = now->slack + (was ? was->slack : 0);
	unsigned owners = e.owners ? e.owners : 1u << now->party;
	struct account_thread *thread = &a->thread[a->threads];

	if (now->ended < 0 || (was && was->ended < 0)) {
		if (e.known)
			owners_unknown(site, a, owners, notes);
		return;
	}
	if (!e.known && used <= slack)
		return;
	if (owners & (owners - 1)) { /* of more than one */
		owners_unknown(site, a, owners, notes);
		return;
	}
	*thread = (struct account_thread){
		.name = "(ended)",
		.party = (unsigned)__builtin_ctz(owners),
		.cpu = -1,
		.used =
			{
				.gross = used > 0 ? used : 0,
				.back = e.back,
				.voluntary = -1,
				.involuntary = -1,
				.wakeups = -1,
				.migrations = -1,
			},
	};
	net_make(&thread->used);
	party_add(a, thread->party, &thread->used);
	a->threads++;
}

/* A process, or a kernel's thread, that is there no more has taken along what it had. */
static void gone_account(const struct moment_site *site, const struct moment *begin,
			 const struct moment *end, struct account *a, json_t *notes)
{
	unsigned owners = 0;

	for (unsigned i = 0; i < begin->tasks; i++) {
		const struct moment_task *t = &begin->task[i];

		if (t->party == PARTY_KERNEL ? has_ended(end, t)
					     : !process_find(end, t->task.process))
			owners |= 1u << t->party;
	}
	owners_unknown(site, a, owners, notes);
}

static void cpus_account(const struct moment *begin, const struct moment *end, struct account *a)
{
	a->busy = a->cores_busy = 0;
	for (unsigned i = 0; i < end->cpus; i++) {
		int64_t idle, busy;

		if (end->idle[i] < 0 || begin->idle[i] < 0)
			continue;
		idle = end->idle[i] - begin->idle[i];
		busy = a->wall - idle;
		if (busy < 0)
			busy = 0;
		a->idle += a->wall - busy;
		a->busy += busy;
		a->cores_busy += busy > a->wall / 20;
	}
	if (!end->cpus)
		a->busy = a->idle = -1;
	if (!end->cpus || a->wall < BUSY_WALL_NS)
		a->cores_busy = -1;
}

/* Softirq on the backs of other programs is in softirq already. */
static int64_t others_back(const struct moment *begin, const struct moment *end)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < end->backs; i++) {
		const struct napi_back *b = &end->back[i];
		int64_t ns = b->softirq - back_of(begin, b->thread);

		if (ns > 0 && b->process && !process_find(end, b->process) &&
		    !task_is_kernel(b->process))
			sum += ns;
	}
	return sum;
}

static void others_account(const struct moment *begin, const struct moment *end, struct account *a)
{
	int64_t time = end->others_when - begin->others_when;

	if (!end->cputime_known || time <= 0) {
		a->others = -1;
		return;
	}
	a->others = end->span.others - others_back(begin, end);
	if (a->others < 0)
		a->others = 0;
	/* Their share of a time that is somewhat longer than the window. */
	if (time > a->wall)
		a->others = (int64_t)((double)a->others * (double)a->wall / (double)time);
	a->others += a->party[PARTY_NONE].net;
}

/* Nobody says what became of it: what it had is in no figure. */
static void missing_note(const struct moment_site *site, const struct moment *begin,
			 const struct moment *end, json_t *notes)
{
	for (unsigned i = 0; i < site->config->parties; i++) {
		const struct usage_party *party = &site->config->party[i];
		unsigned n = 0;

		for (unsigned t = 0; t < party->tids && !party->pid; t++)
			n += !moment_find(begin, party->tid[t]) && !moment_find(end, party->tid[t]);
		if (n)
			note(notes, "%u of %u threads of \"%s\" were not there.", n, party->tids,
			     party->name);
	}
}

static void parties_note(const struct moment_site *site, const struct moment *end,
			 const struct account *a, json_t *notes)
{
	for (unsigned i = 0; i < a->threads; i++) {
		const struct account_thread *t = &a->thread[i];

		if (!t->used.known && t->party != PARTY_NONE)
			note(notes,
			     "More softirq ran on the back of %s/%d (%s) than its clock had: what "
			     "it used is not known.",
			     t->name, t->thread, account_party(site->config, t->party));
	}
	if (end->missed)
		note(notes, "%u threads are not in this: there are more than %d.", end->missed,
		     MOMENT_TASKS_MAX);
	if (site->watch && !end->backs_known)
		note(notes, "Softirq ran on the backs of more threads than were watched.");
}

int account_make(const struct moment_site *site, const struct moment *begin,
		 const struct moment *end, struct account *out, json_t *notes)
{
	*out = (struct account){.wall = end->when - begin->when};
	out->thread = calloc(end->tasks + end->processes, sizeof(*out->thread));
	if (!out->thread)
		return -ENOMEM;
	for (unsigned i = 0; i < PARTIES; i++)
		out->party[i].known =
			i == PARTY_KERNEL || i == PARTY_NONE || i < site->config->parties;
	living_account(begin, end, out);
	for (unsigned i = 0; i < end->processes; i++)
		ended_account(site, begin, end, &end->process[i], out, notes);
	gone_account(site, begin, end, out, notes);
	out->softirq = site->watch ? end->softirq - begin->softirq : -1;
	cpus_account(begin, end, out);
	others_account(begin, end, out);
	parties_note(site, end, out, notes);
	missing_note(site, begin, end, notes);
	for (unsigned i = 0; i < PARTIES; i++)
		if (end->missed || (site->watch && !end->backs_known))
			out->party[i].known = false;
	return 0;
}

void account_free(struct account *account)
{
	free(account->thread);
}

bool account_split(const struct account_used *used, int64_t *user, int64_t *system)
{
	uint64_t ticks = used->user + used->system;

	*user = *system = 0;
	if (!ticks)
		return used->gross == 0;
	*system =
		(int64_t)((double)used->gross * (double)used->system / (double)ticks) - used->back;
	if (*system < 0)
		*system = 0;
	if (*system > used->net)
		*system = used->net;
	*user = used->net - *system;
	return true;
}
