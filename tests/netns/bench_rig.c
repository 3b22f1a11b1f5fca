/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench_rig.h"

#include <math.h>
#include <sys/wait.h>

void bench_interrupt(const char *bench, const char *part, int after_ms)
{
	const char *const arguments[] = {"bench", bench, "-j", "--only", part, NULL};
	int out, status;
	pid_t pid = lab_run_start(arguments, false, &out);

	status = lab_run_interrupt(pid, out, after_ms);
	assert_true(!WIFEXITED(status) || WEXITSTATUS(status));
}

json_t *bench_part_run(const char *bench, const char *part, json_t **whole)
{
	const char *const arguments[] = {"bench", bench, "--quick", "-j", "--only", part, NULL};
	json_t *parts, *one;
	int out;
	pid_t pid = lab_run_start(arguments, false, &out);

	*whole = lab_run_answer(pid, out);
	assert_string_equal(json_string_value(json_object_get(*whole, "bench")), bench);
	parts = json_object_get(*whole, "parts");
	assert_int_equal(json_array_size(parts), 1);
	one = json_array_get(parts, 0);
	assert_string_equal(json_string_value(json_object_get(one, "part")), part);
	return one;
}

unsigned bench_rows_with(const json_t *part, size_t rows, const char *key)
{
	const json_t *array = json_object_get(part, "rows");
	unsigned n = 0;

	assert_true(json_array_size(array) <= rows);
	assert_true(json_array_size(array) + json_array_size(json_object_get(part, "notes")) >=
		    rows);
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *figure = json_object_get(json_array_get(array, i), key);
		const json_t *value = json_object_get(figure, "value");

		assert_non_null(figure);
		if (json_is_null(figure))
			continue;
		assert_true(json_is_real(value) && isfinite(json_real_value(value)));
		assert_int_equal(json_array_size(json_object_get(figure, "rounds")), 1);
		n++;
	}
	return n;
}

double bench_value(const json_t *part, size_t row, const char *key)
{
	const json_t *figure =
		json_object_get(json_array_get(json_object_get(part, "rows"), row), key);

	return json_is_object(figure) ? json_real_value(json_object_get(figure, "value")) : -1;
}
