/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of a workload as JSON, and the differences of two. */
#include "test.h"

#include <lab/load/load.h>

/* No field as another, and none as it is anyway. */
static const struct load_config full = {
	.kind = LOAD_STREAM,
	.protocol = LOAD_UDP,
	.flows = 2,
	.threads = 3,
	.server_threads = 4,
	.timeout = 5,
	.interval = 6,
	.seed = UINT64_MAX - 7,
	.request_size = 8,
	.response_size = 9,
	.rate = 10.5,
	.arrivals = LOAD_POISSON,
	.outstanding = 11,
	.connect = true,
	.work = 12,
	.stall = 13,
	.stall_every = 14,
	.direction = LOAD_BOTH,
	.sizes = 2,
	.size = {15, 16},
	.tcp_flows = 17,
	.probe_rate = 18.25,
	.idle = 19,
	.server_spins = true,
	.client_spins = true,
	.busy_poll_usecs = 20,
	.prefer_busy_poll = true,
	.busy_poll_budget = 21,
	.batch = 22,
};

static void what_is_written_is_read(void **state)
{
	json_t *o = load_config_json(&full);
	struct load_config back;
	struct error err;

	(void)state;
	assert_non_null(o);
	assert_int_equal(json_object_size(o), 28);
	assert_string_equal(json_string_value(json_object_get(o, "kind")), "stream");
	assert_int_equal(json_integer_value(json_object_get(o, "stall_every_ns")), 14);
	assert_int_equal(json_array_size(json_object_get(o, "sizes")), 2);
	assert_int_equal(load_config_read(o, &back, &err), 0);
	assert_int_equal(load_config_compare(&full, &back, &err), 0);
	assert_int_equal(back.seed, full.seed);
	assert_int_equal(back.busy_poll_budget, 21);
	assert_true(back.rate == 10.5);
	json_decref(o);
}

static void what_is_missing_is_zero(void **state)
{
	static const struct load_config none = {.kind = LOAD_RR};
	json_t *o = json_pack("{s:s}", "kind", "rr");
	struct load_config back;
	struct error err;

	(void)state;
	assert_int_equal(load_config_read(o, &back, &err), 0);
	assert_int_equal(load_config_compare(&none, &back, &err), 0);
	json_decref(o);
}

/* Each with the whole of its error. */
static void what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *json, *says;
	} cases[] = {
		{"[]", "parameters: they are an object"},
		{"{}", "kind: it is missing"},
		{"{'kind': 'rrr'}", "kind: it is one of rr, stream, rrul"},
		{"{'kind': 1}", "kind: it is one of rr, stream, rrul"},
		{"{'kind': 'rr', 'flow': 1}", "flow: there is no such parameter"},
		{"{'kind': 'rr', 'flows': 4097}", "flows: 4097 is not 0..4096"},
		{"{'kind': 'rr', 'flows': -1}", "flows: -1 is not 0..4096"},
		{"{'kind': 'rr', 'flows': 1.0}", "flows: it is a whole number"},
		{"{'kind': 'rr', 'timeout_ns': '1 s'}", "timeout_ns: it is a whole number"},
		{"{'kind': 'rr', 'rate': -0.5}", "rate: -0.5 is not 0..1000000000"},
		{"{'kind': 'rr', 'rate': null}", "rate: it is a number"},
		{"{'kind': 'rr', 'connect': 1}", "connect: it is true or false"},
		{"{'kind': 'stream', 'sizes': 18}",
		 "sizes: it is an array of at most 16 whole numbers"},
		{"{'kind': 'stream', 'sizes': [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}",
		 "sizes: it is an array of at most 16 whole numbers"},
		{"{'kind': 'stream', 'sizes': [0]}", "sizes: 0 is not 1..1048576"},
		{"{'kind': 'stream', 'sizes': [true]}", "sizes: it is a whole number or several"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[256];
		struct load_config back;
		struct error err;
		json_t *o;

		snprintf(text, sizeof(text), "%s", cases[i].json);
		for (char *c = text; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		o = json_loads(text, 0, NULL);
		assert_non_null(o);
		assert_int_equal(load_config_read(o, &back, &err), -EINVAL);
		assert_string_equal(err.text, cases[i].says);
		json_decref(o);
	}
}

static void the_first_difference_is_told(void **state)
{
	struct load_config other = full;
	struct error err;

	(void)state;
	other.busy_poll_budget = 22;
	assert_int_equal(load_config_compare(&full, &other, &err), -EPROTO);
	assert_string_equal(err.text, "busy_poll_budget is 21 here, and 22 there");
	other.size[1] = 99;
	assert_int_equal(load_config_compare(&full, &other, &err), -EPROTO);
	assert_string_equal(err.text, "sizes is [15, 16] here, and [15, 99] there");
	other.rate = 0;
	assert_int_equal(load_config_compare(&full, &other, &err), -EPROTO);
	assert_string_equal(err.text, "rate is 10.5 here, and 0 there");
	other.protocol = LOAD_TCP;
	assert_int_equal(load_config_compare(&full, &other, &err), -EPROTO);
	assert_string_equal(err.text, "protocol is udp here, and tcp there");
}

/* Every field counts. */
static void each_difference_is_seen(void **state)
{
	static const struct load_config none;
	json_t *all = load_config_json(&full), *zero = load_config_json(&none), *value;
	const char *key;

	(void)state;
	json_object_foreach(all, key, value)
	{
		json_t *one = json_pack("{s:O}", key, value);
		struct error err;

		assert_false(json_equal(value, json_object_get(zero, key)));
		assert_int_equal(load_config_match(one, &none, "A", "B", &err), -EPROTO);
		assert_int_equal(strncmp(err.text, key, strlen(key)), 0);
		assert_int_equal(load_config_match(one, &full, "A", "B", &err), 0);
		json_decref(one);
	}
	json_decref(zero);
	json_decref(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_is_missing_is_zero),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(the_first_difference_is_told),
		cmocka_unit_test(each_difference_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
