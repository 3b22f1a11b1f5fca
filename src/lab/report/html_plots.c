/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Latency: all valid repeats together, the share that took at most so long, on an axis that gives
 * each further nine as much room, up to where fewer than 10 samples are above. Time: the repeat
 * whose rate is nearest to the median.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/report/html.h"

enum {
	POINTS_MAX = 800,
	POINTS_LEAST = 4, /* of a course in time */
	TRACES_MAX = 2 * RESULTS_SYSTEMS_MAX,
	WIDTH = 500,
	LATENCY_HEIGHT = 380,
	TIME_HEIGHT = 190,
	LABEL_ROOM = 16, /* between the numbers at the ends of curves */
};

struct trace {
	struct curve curve;
	unsigned n;
	struct point {
		double x, y; /* y NAN: a gap */
	} point[POINTS_MAX];
};

struct traces {
	unsigned n;
	struct trace *trace;
	double left, right, top;
};

static void point_add(struct traces *all, struct trace *trace, double x, double y)
{
	if (trace->n == POINTS_MAX)
		return;
	trace->point[trace->n++] = (struct point){x, y};
	if (isnan(y))
		return;
	all->left = x < all->left ? x : all->left;
	all->right = x > all->right ? x : all->right;
	all->top = y > all->top ? y : all->top;
}

/* Nearer than this nobody sees them apart. */
static bool apart(const struct trace *trace, double x, double y)
{
	const struct point *last = &trace->point[trace->n - 1];

	return log10(x / last->x) > 0.004 || y - last->y > 0.02;
}

static void latency_trace(struct traces *all, const struct histogram *h, struct curve curve)
{
	struct trace *trace = &all->trace[all->n++];
	uint64_t seen = 0;
	double x = 0, y = 0;

	trace->curve = curve;
	trace->n = 0;
	point_add(all, trace, fmax((double)h->min, 1), 0);
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!h->count[i])
			continue;
		seen += h->count[i];
		if (h->n - seen < HISTOGRAM_ABOVE_MIN)
			break;
		x = fmax((double)histogram_bucket_top(i), 1);
		y = -log10((double)(h->n - seen) / (double)h->n);
		if (apart(trace, x, y))
			point_add(all, trace, x, y);
	}
	if (x > 0)
		point_add(all, trace, x, y);
	else
		all->n--; /* too few samples for any share */
}

static void traces_begin(struct traces *all)
{
	all->n = 0;
	all->left = INFINITY;
	all->right = all->top = 0;
}

/* "5 µs" at 5000: at 1, 2, 5, or at 1, 3, or at 1 alone, as many as have room. */
static unsigned steps_choose(double low, double high, const int **steps)
{
	static const int three[] = {1, 2, 5}, two[] = {1, 3}, one[] = {1};

	*steps = high / low < 120 ? three : high / low < 5000 ? two : one;
	return *steps == three ? 3 : *steps == two ? 2 : 1;
}

static void time_tics(FILE *script, const char *axis, double low, double high)
{
	static const char *const units[] = {"ns", "µs", "ms", "s"};
	const int *steps;
	unsigned n = steps_choose(low, high, &steps);
	const char *between = "";

	fprintf(script, "set %stics (", axis);
	for (int decade = 0; decade < 12; decade++) {
		for (unsigned i = 0; i < n; i++) {
			double value = steps[i] * pow(10, decade);

			if (value < low * 0.999 || value > high * 1.001)
				continue;
			fprintf(script, "%s'%d %s' %g", between,
				steps[i] * (int)pow(10, decade % 3), units[decade / 3], value);
			between = ", ";
		}
	}
	fputs(")\n", script);
}

static void look_set(FILE *script, double left, double bottom)
{
	fprintf(script,
		"reset\nset key off\nset border 1 lc rgb '#010101'\n"
		"set tics nomirror scale 0.4 textcolor rgb '#010101'\nset ytics scale 0\n"
		"set grid xtics ytics lt 1 lw 0.6 lc rgb '#020202'\n"
		"set lmargin at screen %g\nset rmargin at screen 0.975\n"
		"set tmargin at screen 0.95\nset bmargin at screen %g\n",
		left, bottom);
}

static void data_write(FILE *script, const struct traces *all)
{
	for (unsigned t = 0; t < all->n; t++) {
		fprintf(script, "$d%u << EOD\n", t);
		for (unsigned i = 0; i < all->trace[t].n; i++) {
			const struct point *p = &all->trace[t].point[i];

			if (isnan(p->y))
				fputc('\n', script);
			else
				fprintf(script, "%.6g %.6g\n", p->x, p->y);
		}
		fputs("EOD\n", script);
	}
}

static void colour_write(FILE *script, unsigned number)
{
	unsigned c = PLOT_COLOUR + number % PLOT_COLOURS;

	fprintf(script, "lc rgb '#%02x%02x%02x'", c, c, c);
}

static void curves_write(FILE *script, const struct traces *all)
{
	static const char *const dashes[] = {"1", "(14,4)", "(8,3,2,3)", "(3,3)"};

	for (unsigned t = 0; t < all->n; t++) {
		const struct curve *curve = &all->trace[t].curve;

		fprintf(script, "%s$d%u using 1:2 with lines lw %s dt %s ", t ? ", " : "plot ", t,
			curve->service ? "1" : "2",
			curve->service ? "(2,4)" : dashes[curve->number / PLOT_COLOURS % 4]);
		colour_write(script, curve->number);
	}
	fputc('\n', script);
}

struct end {
	double at; /* px from the left of the plot */
	double x, y;
	unsigned number;
};

static int leftmost(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* The system's number where its curve ends, each with room of its own. */
static void ends_write(FILE *script, const struct traces *all, double low, double high)
{
	struct end end[TRACES_MAX];
	double width = WIDTH * 0.79, span = log10(high / low), free = 0;
	unsigned n = 0;

	for (unsigned t = 0; t < all->n; t++) {
		const struct trace *trace = &all->trace[t];
		const struct point *last = &trace->point[trace->n - 1];

		if (!trace->curve.service && trace->n)
			end[n++] = (struct end){width * log10(last->x / low) / span, last->x,
						last->y, trace->curve.number};
	}
	qsort(end, n, sizeof(*end), leftmost);
	for (unsigned i = 0; i < n; i++) {
		double at = end[i].at > free ? end[i].at : free;

		free = at + LABEL_ROOM;
		fprintf(script,
			"set label '%u' at %g,%g center offset 0,0.6 front tc rgb "
			"'#%02x%02x%02x'\n",
			end[i].number + 1, low * pow(10, at / width * span), end[i].y,
			PLOT_COLOUR + end[i].number % PLOT_COLOURS,
			PLOT_COLOUR + end[i].number % PLOT_COLOURS,
			PLOT_COLOUR + end[i].number % PLOT_COLOURS);
	}
}

/* Begins the next plot, with these curves. */
static unsigned plot_add(struct page *page, const struct traces *all, unsigned height)
{
	struct curves *curves = realloc(page->curves, (page->plots.n + 1) * sizeof(*curves));
	struct curve *curve = calloc(all->n, sizeof(*curve));

	if (curves)
		page->curves = curves;
	if (!curves || !curve) {
		free(curve);
		return NO_PLOT;
	}
	for (unsigned t = 0; t < all->n; t++)
		curve[t] = all->trace[t].curve;
	curves[page->plots.n] = (struct curves){all->n, curve};
	return plot_begin(&page->plots, WIDTH, height);
}

static unsigned latency_plot(struct page *page, const struct traces *all)
{
	FILE *script = page->plots.script;
	double low = all->left * 0.9, high = all->right * 1.12;
	unsigned number;

	if (!all->n || !(all->top > 0))
		return NO_PLOT;
	number = plot_add(page, all, LATENCY_HEIGHT);
	if (number == NO_PLOT)
		return number;
	look_set(script, 0.185, 0.135);
	fprintf(script, "set logscale x\nset xrange [%g:%g]\nset yrange [0:%g]\n", low, high,
		all->top * 1.02 + 0.2);
	time_tics(script, "x", low, high);
	fputs("set ytics ('0%%' 0, '50%%' 0.30103, '90%%' 1, '99%%' 2, '99.9%%' 3, "
	      "'99.99%%' 4, '99.999%%' 5, '99.9999%%' 6)\n"
	      "set xlabel 'latency, logarithmic' offset 0,0.3 tc rgb '#010101'\n"
	      "set ylabel 'share of requests' offset 0.3,0 tc rgb '#010101'\n",
	      script);
	ends_write(script, all, low, high);
	data_write(script, all);
	curves_write(script, all);
	return number;
}

static unsigned group_latency(struct page *page, const struct group *group, struct traces *all)
{
	bool response = !strcmp(group->latency, "latency.response");
	struct histogram *h = malloc(sizeof(*h));

	traces_begin(all);
	for (unsigned s = 0; h && *group->latency && s < group->systems; s++) {
		const json_t *system = group->system[s];
		const char *key = text_of(system, "key");
		const char *workload = text_of(group->workload, "key");
		struct curve curve = {system_name(system), system_number(page->results, system),
				      false};

		if (results_latency(page->results, key, workload, group->latency, h))
			latency_trace(all, h, curve);
		curve.service = true;
		if (response && results_latency(page->results, key, workload, "latency.service", h))
			latency_trace(all, h, curve);
	}
	free(h);
	return latency_plot(page, all);
}

static const struct {
	const char *name, *caption;
} tails[] = {
	{"p99_ns", "p99 of each interval, in the repeat of median rate"},
	{"p50_ns", "Median of each interval, in the repeat of median rate"},
	{"icmp_ns", "ICMP round trip, the mean of each interval, in the repeat of median rate"},
	{"udp_be_ns", "UDP round trip, the mean of each interval, in the repeat of median rate"}};

enum { TAILS = sizeof(tails) / sizeof(*tails) };

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* All streams, up and down; null where one of them is. */
static json_t *streams_sum(const json_t *series)
{
	json_t *sum = NULL, *values;
	const char *key;

	json_object_foreach((json_t *)series, key, values)
	{
		bool stream = !strncmp(key, "down_", 5) || !strncmp(key, "up_", 3);

		if (!stream || !ends_in(key, "_mbit") || !json_is_array(values))
			continue;
		if (!sum) {
			sum = json_copy(values);
			continue;
		}
		for (size_t i = 0; i < json_array_size(sum); i++) {
			const json_t *one = json_array_get(sum, i),
				     *other = json_array_get(values, i);
			bool both = json_is_number(one) && json_is_number(other);

			json_array_set_new(
				sum, i,
				both ? json_real(json_number_value(one) + json_number_value(other))
				     : json_null());
		}
	}
	return sum;
}

/* Counted in each interval, of which the last may be a short one. */
static json_t *transactions_rate(const json_t *run, const json_t *counts)
{
	double interval = 0.1, duration = INFINITY;
	json_t *rates = json_array();

	path_number(run, "series.interval_s", &interval);
	path_number(run, "duration_s", &duration);
	for (size_t i = 0; i < json_array_size(counts); i++) {
		const json_t *count = json_array_get(counts, i);
		double length = fmin(interval, duration - (double)i * interval);

		json_array_append_new(rates, json_is_number(count) && length > interval / 10
						     ? json_real(json_number_value(count) / length)
						     : json_null());
	}
	return rates;
}

/* For json_decref; NULL: it has none. */
static json_t *rate_series(const json_t *run)
{
	static const char *const rates[] = {"received_mbit", "received_datagrams", "sent_mbit"};
	const json_t *series = json_object_get(run, "series");
	const json_t *counts = json_object_get(series, "transactions");

	if (json_is_array(counts))
		return transactions_rate(run, counts);
	for (unsigned i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		json_t *values = json_object_get(series, rates[i]);

		if (json_is_array(values))
			return json_incref(values);
	}
	return streams_sum(series);
}

static json_t *tail_series(const json_t *run, const char **caption)
{
	for (unsigned i = 0; i < TAILS; i++) {
		json_t *values = json_object_get(json_object_get(run, "series"), tails[i].name);

		if (!json_is_array(values))
			continue;
		*caption = tails[i].caption;
		return json_incref(values);
	}
	return NULL;
}

static void time_trace(struct traces *all, const json_t *run, const json_t *values,
		       struct curve curve)
{
	struct trace *trace = &all->trace[all->n];
	double interval = 0.1;
	size_t i, every = json_array_size(values) / POINTS_MAX + 1;

	path_number(run, "series.interval_s", &interval);
	trace->curve = curve;
	trace->n = 0;
	for (i = 0; i < json_array_size(values); i += every) {
		const json_t *value = json_array_get(values, i);

		point_add(all, trace, ((double)i + 0.5) * interval,
			  json_is_number(value) ? json_number_value(value) : NAN);
	}
	all->n += trace->n > 0;
}

/* Of a short run there may be one interval or two: a line between them says nothing. */
static bool has_course(const struct traces *all)
{
	for (unsigned t = 0; t < all->n; t++) {
		if (all->trace[t].n >= POINTS_LEAST)
			return true;
	}
	return false;
}

static unsigned time_plot(struct page *page, const struct traces *all, bool latency)
{
	FILE *script = page->plots.script;
	unsigned number;

	if (!has_course(all) || !(all->top > 0))
		return NO_PLOT;
	number = plot_add(page, all, TIME_HEIGHT);
	if (number == NO_PLOT)
		return number;
	look_set(script, 0.13, 0.25);
	fprintf(script, "set xrange [0:%g]\nset xlabel 'time, s' offset 0,0.4 tc rgb '#010101'\n",
		all->right * 1.01);
	if (latency) {
		double low = INFINITY;

		for (unsigned t = 0; t < all->n; t++) {
			for (unsigned i = 0; i < all->trace[t].n; i++)
				low = fmin(low, all->trace[t].point[i].y);
		}
		low = fmax(low, 1) * 0.8;
		fprintf(script, "set logscale y\nset yrange [%g:%g]\n", low, all->top * 1.25);
		time_tics(script, "y", low, all->top * 1.25);
	} else {
		fprintf(script, "set yrange [0:%g]\nset format y '%%.0s%%c'\nset ytics %g\n",
			all->top * 1.1,
			pow(10, floor(log10(all->top))) *
				(all->top / pow(10, floor(log10(all->top))) > 5	  ? 2
				 : all->top / pow(10, floor(log10(all->top))) > 2 ? 1
										  : 0.5));
	}
	data_write(script, all);
	curves_write(script, all);
	return number;
}

static unsigned group_time(struct page *page, const struct group *group, const char **tail,
			   struct traces *all)
{
	traces_begin(all);
	for (unsigned s = 0; s < group->systems; s++) {
		const json_t *system = group->system[s];
		const json_t *run = results_typical(page->results, text_of(system, "key"), group);
		json_t *values = tail ? tail_series(run, tail) : rate_series(run);
		struct curve curve = {system_name(system), system_number(page->results, system),
				      false};

		if (values)
			time_trace(all, run, values, curve);
		json_decref(values);
	}
	return time_plot(page, all, tail);
}

void page_plots_draw(struct page *page)
{
	struct traces all = {.trace = malloc(TRACES_MAX * sizeof(*all.trace))};
	unsigned groups = page->results->groups;
	struct error err;

	page->plot = calloc(groups ? groups : 1, sizeof(*page->plot));
	if (!all.trace || !page->plot || plots_open(&page->plots)) {
		snprintf(page->undrawn, sizeof(page->undrawn), "no memory for plots");
		free(all.trace);
		return;
	}
	for (unsigned g = 0; g < groups; g++) {
		const struct group *group = &page->results->group[g];

		page->plot[g].latency = group_latency(page, group, &all);
		page->plot[g].rate = group_time(page, group, NULL, &all);
		page->plot[g].tail = group_time(page, group, &page->plot[g].tail_caption, &all);
	}
	if (plots_draw(&page->plots, &err))
		snprintf(page->undrawn, sizeof(page->undrawn), "%s", err.text);
	free(all.trace);
}

void page_plots_close(struct page *page)
{
	for (unsigned i = 0; page->curves && i < page->plots.n; i++)
		free(page->curves[i].curve);
	free(page->curves);
	free(page->plot);
	plots_close(&page->plots);
}

static void plot_put(const struct page *page, unsigned plot, const char *caption)
{
	if (plot == NO_PLOT || *page->undrawn)
		return;
	fputs("<figure><figcaption>", page->out);
	html_text(page->out, caption);
	fputs("</figcaption>", page->out);
	html_svg(page->out, page->plots.svg[plot], caption, &page->curves[plot]);
	fputs("</figure>\n", page->out);
}

/* One for all plots of the group; each entry hides and shows its curves. */
static void legend_put(const struct page *page, const struct group *group)
{
	fputs("<p class=\"legend\">", page->out);
	for (unsigned s = 0; s < group->systems; s++) {
		fprintf(page->out,
			"<button type=\"button\" data-of=\"of%u\" aria-pressed=\"true\">",
			system_number(page->results, group->system[s]));
		html_system(page, group->system[s]);
		fputs("</button> ", page->out);
	}
	fputs("</p>\n", page->out);
}

void html_group_plots(const struct page *page, unsigned g)
{
	const struct group *group = &page->results->group[g];
	bool response = !strcmp(group->latency, "latency.response");
	char caption[RESULTS_PATH_MAX];

	if (!page->plot || *page->undrawn ||
	    (page->plot[g].latency == NO_PLOT && page->plot[g].rate == NO_PLOT))
		return;
	legend_put(page, group);
	fputs("<div class=\"plots\">\n", page->out);
	plot_put(
		page, page->plot[g].latency,
		response
			? "Share of requests that took at most so long. Solid: response time, from "
			  "when each should have been sent; dotted: service time, from when it was."
			: "Share of requests that took at most so long.");
	fputs("<div>\n", page->out);
	snprintf(caption, sizeof(caption), "%s, in the repeat of median rate",
		 rate_title(group->rate));
	plot_put(page, page->plot[g].rate, caption);
	plot_put(page, page->plot[g].tail, page->plot[g].tail_caption);
	fputs("</div>\n</div>\n", page->out);
}
