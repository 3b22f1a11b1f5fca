/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/clock.h"
#include "lab/netlab.h"
#include "lab/run/record.h"
#include "lab/run/results.h"
#include "lab/run/turn.h"

/*
 * A generator that was late says nothing of the system, and mostly it is a matter of the moment: of
 * another program's, or of the machine's below this one. So the run is taken again, at once.
 */
enum { TAKES = 3 };

/* What setting up and taking down takes, until it is known. */
#define OVERHEAD 0.4

struct experiment {
	const struct spec *spec;
	const struct experiment_plan *plan;
	const struct spec_length *length;
	struct topology topology;
	struct experiment_progress progress;
	unsigned again; /* runs */
	int64_t begun;
	json_t *results;
	pid_t other; /* that was seen to measure at the same time; 0: none */
	/* By system: bits of the workloads that it cannot run here, and why. */
	uint32_t cannot[SPEC_SYSTEMS_MAX];
	char *why[SPEC_SYSTEMS_MAX][SPEC_WORKLOADS_MAX];
};

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static bool runs(const struct experiment *x, unsigned system, unsigned workload)
{
	uint32_t only = x->spec->system[system].only;

	return (!only || only & 1u << workload) && !(x->cannot[system] & 1u << workload);
}

static unsigned runs_count(const struct experiment *x)
{
	unsigned n = 0;

	for (unsigned w = 0; w < x->spec->workloads; w++)
		for (unsigned s = 0; s < x->spec->systems; s++)
			n += runs(x, s, w);
	return n * x->length->repeats;
}

static int look(void *arg, const char *phase, const struct load_progress *load)
{
	struct experiment *x = arg;
	struct experiment_progress *p = &x->progress;
	double each = seconds(x->length->warm + x->length->duration) + OVERHEAD;

	if (x->plan->stop && *x->plan->stop)
		return -ECANCELED;
	if (!x->plan->progress)
		return 0;
	if (p->done)
		each = seconds(clock_now() - x->begun) / p->done;
	p->left_s = each * (p->total - p->done);
	p->phase = phase;
	p->load = load ? *load : (struct load_progress){0};
	x->plan->progress(x->plan->arg, p);
	return 0;
}

/* Of one that cannot be had the others' time is not spent on finding out again. */
static void skip(struct experiment *x, unsigned s, unsigned w, const char *why)
{
	x->cannot[s] |= 1u << w;
	free(x->why[s][w]);
	x->why[s][w] = strdup(why);
}

/* One that can run nothing is said to be skipped; of the others what they cannot run is. */
static void skipped_tell(struct experiment *x)
{
	for (unsigned s = 0; s < x->spec->systems; s++) {
		const char *why = NULL;

		for (unsigned w = 0; w < x->spec->workloads && !why; w++)
			why = x->why[s][w];
		if (why && results_system_skip(x->results, x->spec, s, x->cannot[s], why))
			continue;
		for (unsigned w = 0; w < x->spec->workloads; w++)
			if (x->why[s][w])
				results_note(x->results, "%s was not measured with %s: %s",
					     x->spec->system[s].name, x->spec->workload[w].name,
					     x->why[s][w]);
	}
	for (unsigned s = 0; s < x->spec->systems; s++)
		for (unsigned w = 0; w < x->spec->workloads; w++)
			free(x->why[s][w]);
}

/* *late: it is to be taken again. */
static int take(struct experiment *x, unsigned s, unsigned w, unsigned repeat, bool *late,
		struct error *err)
{
	const struct spec_system *system = &x->spec->system[s];
	const struct spec_workload *workload = &x->spec->workload[w];
	const struct turn_plan plan = {
		.spec = x->spec,
		.experiment = x->plan,
		.length = x->length,
		.topology = &x->topology,
		.look = look,
		.arg = x,
	};
	double started = seconds(clock_now() - x->begun);
	struct turn_result result;
	int ret;

	if (!x->other)
		x->other = netlab_other(x->plan->rundir);

	x->progress.system = system->name;
	x->progress.workload = workload->name;
	ret = turn_run(&plan, system, workload, &result, err);
	if (result.system)
		results_system_fill(x->results, s, result.system);
	if (result.peer_environment)
		json_object_set(x->results, "peer_environment", result.peer_environment);
	*late = !ret && json_is_true(json_object_get(result.run, "late")) &&
		!json_object_get(result.run, "error");
	if (!ret)
		results_run_add(x->results, system->key, workload->key, repeat, started,
				result.run);
	turn_free(&result);
	if (ret != -EOPNOTSUPP)
		return ret;
	skip(x, s, w, err->text);
	return 0;
}

static int turn(struct experiment *x, unsigned s, unsigned w, unsigned repeat, struct error *err)
{
	bool late = true;
	int ret = 0;

	for (unsigned n = 0; n < TAKES && late && !ret; n++) {
		ret = take(x, s, w, repeat, &late, err);
		x->again += n > 0;
	}
	if (!ret && runs(x, s, w))
		x->progress.done++;
	x->progress.total = x->progress.done > runs_count(x) ? x->progress.done : runs_count(x);
	return ret;
}

/* Forth and back, so that what drifts does not decide. */
static int rounds(struct experiment *x, struct error *err)
{
	unsigned systems = x->spec->systems;
	int ret = 0;

	for (unsigned w = 0; w < x->spec->workloads; w++) {
		for (unsigned repeat = 0; repeat < x->length->repeats; repeat++) {
			for (unsigned i = 0; i < systems && !ret; i++) {
				unsigned s = repeat % 2 ? systems - 1 - i : i;

				if (runs(x, s, w))
					ret = turn(x, s, w, repeat, err);
				if (x->plan->stop && *x->plan->stop)
					ret = error_set(err, -ECANCELED, "interrupted");
			}
		}
	}
	return ret;
}

void experiment_recover(const char *rundir)
{
	record_recover(rundir);
	netlab_clean(rundir);
	knobs_recover(rundir);
}

int experiment_run(const struct spec *spec, const struct experiment_plan *plan, json_t **results,
		   struct error *err)
{
	struct experiment *x = calloc(1, sizeof(*x));
	int ret;

	*results = NULL;
	if (!x)
		return error_set(err, -ENOMEM, "no memory");
	x->spec = spec;
	x->plan = plan;
	x->length = plan->quick ? &spec->quick : &spec->full;
	experiment_recover(plan->rundir);
	ret = topology_open(spec, plan->host, plan->rundir, &x->topology, err);
	if (ret) {
		free(x);
		return ret;
	}
	x->begun = clock_now();
	x->results = results_begin(spec, plan, &x->topology);
	x->progress.total = runs_count(x);
	ret = rounds(x, err);
	skipped_tell(x);
	if (x->again)
		results_note(x->results,
			     "%u run%s taken again, as the generator or server had been late: "
			     "those before "
			     "are invalid, and are kept.",
			     x->again, x->again == 1 ? " was" : "s were");
	if (x->other)
		results_note(
			x->results,
			"Process %d, another napier bench or demo, ran at the same time: figures "
			"of both are disturbed. Run it again alone.",
			(int)x->other);
	results_end(x->results, seconds(clock_now() - x->begun), ret == -ECANCELED);
	topology_close(&x->topology);
	*results = x->results;
	free(x);
	return ret;
}
