/* The JSON of the HTTP interface, byte for byte, and its bodies. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "gateway/encode.h"

static void assert_bytes(struct buf *b, const char *want)
{
	assert_int_equal(buf_check(b), 0);
	assert_string_equal(b->data, want);
	buf_reset(b);
}

/* ---- what is written */

static const struct op_status busy_run = {
	.id = "S-7f3a2b",
	.trace_id = "brave-otter",
	.role = "code_reviewer",
	.task = "say \"hi\"\n\xe2\x80\xa8",
	.model = "offline",
	.stop_reason = "",
	.session_id = "s1",
	.user_id = "ben",
	.origin = "terminal",
	.cwd = "/src",
	.activity = "Reading a.c",
	.last_tool = "read_file",
	.status = AVA_RUNNING,
	.started_ms = 1795248000123,
	.last_tool_ms = 1795248001000,
	.elapsed_ms = 1500,
	.tokens = 1234,
	.cost_microusd = 23500,
	.iteration = 3,
	.limit_time_ms = 300000,
	.limit_cost_microusd = 1000000,
	.limit_tokens = 500000,
	.limit_iterations = 20,
};

static void test_status(void **state)
{
	struct op_status s = busy_run;
	struct buf b;
	struct jw w;

	buf_init(&b, 1 << 20);
	jw_init(&w, &b);
	encode_status(&w, &s);
	assert_bytes(
		&b,
		"{\"subagent_id\":\"S-7f3a2b\",\"trace_id\":\"brave-otter\","
		"\"role\":\"code_reviewer\",\"task\":\"say \\\"hi\\\"\\n\\u2028\","
		"\"model\":\"offline\",\"status\":\"running\",\"stop_reason\":\"\","
		"\"started_at\":\"2026-11-21T08:00:00.123Z\",\"ended_at\":\"\","
		"\"iteration\":3,\"tokens_used\":1234,\"cost_cents\":2.35,"
		"\"elapsed_seconds\":1.5,\"current_activity\":\"Reading a.c\","
		"\"last_tool_call\":{\"name\":\"read_file\",\"at\":\"2026-11-21T08:00:01.000Z\"},"
		"\"limits\":{\"timeout\":300.0,\"max_cost_cents\":100.0,\"max_tokens\":500000,"
		"\"max_iterations\":20},\"session_id\":\"s1\",\"user_id\":\"ben\","
		"\"origin\":\"terminal\",\"cwd\":\"/src\"}");
	buf_fini(&b);
}

static void test_status_of_little(void **state)
{
	struct op_status s = busy_run;
	struct buf b;
	struct jw w;

	s.cost_microusd = -1; /* unknown */
	s.started_ms = s.last_tool_ms = 0;
	s.last_tool = "";
	s.status = AVA_ITERATIONS_EXCEEDED;
	s.stop_reason = "iterations";
	s.ended_ms = 1795248000123;
	buf_init(&b, 1 << 20);
	jw_init(&w, &b);
	encode_status(&w, &s);
	assert_non_null(strstr(b.data, "\"cost_cents\":null,"));
	assert_non_null(strstr(b.data, "\"last_tool_call\":null,"));
	assert_non_null(
		strstr(b.data, "\"started_at\":\"\",\"ended_at\":\"2026-11-21T08:00:00.123Z\""));
	assert_non_null(strstr(b.data, "\"status\":\"iterations_exceeded\","
				       "\"stop_reason\":\"iterations\","));
	s.last_tool = NULL;
	buf_reset(&b);
	encode_status(&w, &s);
	assert_non_null(strstr(b.data, "\"last_tool_call\":null,"));
	buf_fini(&b);
}

static void test_proposal(void **state)
{
	static const char *const states[] = {"pending", "confirmed", "rejected", "expired"};
	struct op_proposal p = {
		.id = "P-00ff12",
		.state = PROPOSAL_CONFIRMED,
		.created_ms = 1795248000000,
		.expires_ms = 1795248600000,
		.run_id = "S-7f3a2b",
		.trace_id = "brave-otter",
		.quote_json = "{\"minutes\":[3,5]}",
		.config_json = "{\"role\":\"researcher\"}",
		.config_hash = "abc",
		.message = "Proceed? [Yes/No]",
		.confirmed_hash = "def",
		.changes = "up to $0.20",
		.replaces = "P-00ff11",
		.replaced_by = "",
		.session_id = "5c3e",
	};
	struct buf b;
	struct jw w;

	buf_init(&b, 1 << 20);
	jw_init(&w, &b);
	encode_proposal(&w, &p);
	assert_bytes(&b, "{\"proposal_id\":\"P-00ff12\",\"state\":\"confirmed\","
			 "\"created_at\":\"2026-11-21T08:00:00.000Z\","
			 "\"expires_at\":\"2026-11-21T08:10:00.000Z\",\"subagent_id\":\"S-7f3a2b\","
			 "\"trace_id\":\"brave-otter\",\"quote\":{\"minutes\":[3,5]},"
			 "\"message\":\"Proceed? [Yes/No]\",\"config\":{\"role\":\"researcher\"},"
			 "\"config_hash\":\"abc\",\"confirmed_hash\":\"def\","
			 "\"changes\":\"up to $0.20\",\"replaces\":\"P-00ff11\","
			 "\"replaced_by\":\"\",\"session_id\":\"5c3e\"}");
	jw_init(&w, &b);
	encode_answer(&w, &p);
	assert_bytes(&b, "{\"proposal_id\":\"P-00ff12\",\"state\":\"confirmed\","
			 "\"subagent_id\":\"S-7f3a2b\",\"trace_id\":\"brave-otter\","
			 "\"config_hash\":\"abc\",\"confirmed_hash\":\"def\","
			 "\"changes\":\"up to $0.20\"}");
	p.state = PROPOSAL_PENDING;
	jw_init(&w, &b);
	encode_answer(&w, &p);
	assert_non_null(strstr(b.data, "\"message\":\"Proceed? [Yes/No]\""));
	for (int i = PROPOSAL_PENDING; i <= PROPOSAL_EXPIRED; i++)
		assert_string_equal(encode_proposal_state((enum proposal_state)i), states[i]);
	buf_fini(&b);
}

static void test_started(void **state)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 1 << 10);
	jw_init(&w, &b);
	encode_started(&w, &busy_run);
	assert_bytes(&b, "{\"subagent_id\":\"S-7f3a2b\",\"trace_id\":\"brave-otter\"}");
	buf_fini(&b);
}

static void test_health(void **state)
{
	struct op_health h = {
		.problem = "",
		.version = "1.2.3",
		.root = "/data",
		.model = "offline",
		.model_why = "no key",
		.keys = "{\"salt\":\"00\"}",
		.recovery_problems = "[{\"path\":\"x\"}]",
		.uptime_ms = 5250,
		.slots_max = 8,
		.slots_used = 1,
		.queued = 2,
		.running = 3,
		.runs_total = 17,
		.today = {"2026-11-21", .microusd = 123400, .tokens = 700, .runs = 4,
			  .uncosted = 1},
		.lsn = 90417,
		.commits = 5,
		.flushes = 4,
		.queued_bytes = 6,
		.held_commits = 7,
		.loop_gaps = 9,
		.redone_batches = 10,
		.torn_bytes = 11,
		.damaged_batches = 12,
		.lost_bytes = 13,
	};
	char want[1000];
	struct buf b;
	struct jw w;

	buf_init(&b, 1 << 20);
	jw_init(&w, &b);
	encode_health(&w, &h);
	snprintf(want, sizeof(want),
		 "{\"status\":\"ok\",\"problem\":\"\",\"version\":\"1.2.3\",\"pid\":%d,"
		 "\"uptime_seconds\":5.25,\"root\":\"/data\",\"model\":\"offline\","
		 "\"model_why\":\"no "
		 "key\",\"keys\":{\"salt\":\"00\"},\"slots\":{\"max\":8,\"used\":1},\"queued\":2,"
		 "\"runs\":{\"running\":3,\"total\":17},"
		 "\"today\":{\"date\":\"2026-11-21\",\"cost_cents\":12.34,\"tokens\":700,"
		 "\"runs\":4,\"uncosted_runs\":1},\"journal\":{\"lsn\":90417,\"commits\":5,"
		 "\"flushes\":4,\"queued_bytes\":6,\"held_commits\":7},\"loop_gaps\":9,"
		 "\"recovery\":{\"clean\":false,\"redone_batches\":10,\"torn_bytes\":11,"
		 "\"damaged_batches\":12,\"lost_bytes\":13,\"problems\":[{\"path\":\"x\"}]}}",
		 (int)getpid());
	assert_bytes(&b, want);
	h.code = AVA_EFULL;
	h.problem = "the disk is full";
	jw_init(&w, &b);
	encode_health(&w, &h);
	assert_ptr_equal(
		strstr(b.data, "{\"status\":\"degraded\",\"problem\":\"the disk is full\","),
		b.data);
	buf_fini(&b);
}

static void test_error(void **state)
{
	struct buf b;

	buf_init(&b, 1 << 10);
	assert_int_equal(encode_error(&b, AVA_ENOENT, "no \"S-1\"\n"), 0);
	assert_bytes(&b, "{\"error\":{\"code\":\"not_found\",\"message\":\"no \\\"S-1\\\"\\n\"}}");
	buf_fini(&b);
	buf_init(&b, 10);
	assert_int_equal(encode_error(&b, AVA_EIO, "does not fit"), AVA_ETOOBIG);
	buf_fini(&b);
}

static void test_http_status(void **state)
{
	static const struct {
		int code, status;
	} cases[] = {
		{AVA_OK, 200},           {AVA_EINVAL, 400},   {AVA_EDENIED, 403},
		{AVA_ENOENT, 404},       {AVA_EEXIST, 409},   {AVA_EBUSY, 409},
		{AVA_EREJECTED, 410},    {AVA_EEXPIRED, 410}, {AVA_ETOOBIG, 413},
		{AVA_EUNSUPPORTED, 422}, {AVA_EFORMAT, 422},  {AVA_EFULL, 507},
		{AVA_EIO, 503},          {AVA_EUNKNOWN, 503}, {AVA_ECANCELED, 503},
		{AVA_ENOMEM, 500},       {AVA_ECORRUPT, 500}, {12345, 500},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(encode_http_status(cases[i].code), cases[i].status);
}

/* ---- what is read */

static json_t *parse(const char *text)
{
	struct ava_error err = {0};
	json_t *v = json_parse(text, strlen(text), &err);

	if (!v)
		fail_msg("%s: %s", text, err.text);
	return v;
}

static void test_spawn_every_key(void **state)
{
	json_t *v = parse(
		"{\"task\":\"t\",\"role\":\"r\",\"context\":\"c\",\"model\":\"m\",\"preset\":\"p\","
		"\"cwd\":\"/d\",\"session_id\":\"s\",\"request_id\":\"q\",\"origin\":\"o\","
		"\"timeout\":1.5,\"max_cost_cents\":0.25,\"max_tokens\":7,\"max_iterations\":3,"
		"\"extended_thinking\":true,\"confirmed\":true,\"tools\":[\"a\",\"b\"],"
		"\"grants\":[\"rw\"],\"confirm\":\"never\"}");
	struct spawn_body b;
	const struct op_spawn *s = &b.spawn;

	assert_int_equal(decode_spawn(v, &b, NULL), 0);
	assert_string_equal(s->task, "t");
	assert_string_equal(s->role, "r");
	assert_string_equal(s->context, "c");
	assert_string_equal(s->model, "m");
	assert_string_equal(s->preset, "p");
	assert_string_equal(s->cwd, "/d");
	assert_string_equal(s->session_id, "s");
	assert_string_equal(s->request_id, "q");
	assert_string_equal(s->origin, "o");
	assert_null(s->user_id); /* is not a claim of the body */
	assert_int_equal(s->timeout_ms, 1500);
	assert_int_equal(s->max_cost_microusd, 2500);
	assert_int_equal(s->max_tokens, 7);
	assert_int_equal(s->max_iterations, 3);
	assert_true(s->extended_thinking && b.confirmed);
	assert_int_equal(s->ntools, 2);
	assert_string_equal(s->tools[1], "b");
	assert_int_equal(s->ngrants, 1);
	assert_string_equal(s->grants[0], "rw");
	assert_string_equal(s->confirm, "never");
	json_decref(v);
}

static void assert_nothing_asked(const struct spawn_body *b)
{
	const struct op_spawn *s = &b->spawn;

	assert_null(s->task);
	assert_null(s->role);
	assert_null(s->cwd);
	assert_null(s->request_id);
	assert_null(s->tools);
	assert_null(s->grants);
	assert_false(b->confirmed || s->extended_thinking);
	assert_true(s->timeout_ms == AVA_DEFAULT && s->max_cost_microusd == AVA_DEFAULT &&
		    s->max_tokens == AVA_DEFAULT && s->max_iterations == AVA_DEFAULT);
}

static void test_spawn_absent_is_null_is_default(void **state)
{
	json_t *none = parse("{}");
	json_t *nulls =
		parse("{\"task\":null,\"role\":null,\"cwd\":null,\"request_id\":null,"
		      "\"timeout\":null,\"max_cost_cents\":null,\"max_tokens\":null,"
		      "\"max_iterations\":null,\"extended_thinking\":null,"
		      "\"confirmed\":null,\"tools\":null,\"grants\":null,\"confirm\":null}");
	json_t *empty = parse("{\"tools\":[]}");
	struct spawn_body b;

	assert_int_equal(decode_spawn(none, &b, NULL), 0);
	assert_nothing_asked(&b);
	assert_int_equal(decode_spawn(nulls, &b, NULL), 0);
	assert_nothing_asked(&b);
	assert_int_equal(decode_spawn(empty, &b, NULL), 0);
	assert_non_null(b.spawn.tools); /* no tools is not the role's tools */
	assert_int_equal(b.spawn.ntools, 0);
	json_decref(none);
	json_decref(nulls);
	json_decref(empty);
}

static void test_spawn_numbers(void **state)
{
	static const struct {
		const char *body;
		int64_t timeout, cost, tokens;
	} cases[] = {
		/* below the smallest unit a number keeps its sign */
		{"{\"timeout\":1e-9,\"max_cost_cents\":1e-9}", 1, 1, AVA_DEFAULT},
		{"{\"timeout\":-1e-9,\"max_cost_cents\":-1e-9}", -1, -1, AVA_DEFAULT},
		{"{\"timeout\":0,\"max_cost_cents\":0.0,\"max_tokens\":0}", 0, 0, 0},
		{"{\"timeout\":-5,\"max_cost_cents\":-1,\"max_tokens\":-7}", -5000, -10000, -7},
		{"{\"timeout\":0.1,\"max_cost_cents\":0.29,\"max_tokens\":1e3}", 100, 2900, 1000},
		{"{\"max_tokens\":8999999999999999}", AVA_DEFAULT, AVA_DEFAULT, 8999999999999999},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *v = parse(cases[i].body);
		struct spawn_body b;

		assert_int_equal(decode_spawn(v, &b, NULL), 0);
		assert_true(b.spawn.timeout_ms == cases[i].timeout);
		assert_true(b.spawn.max_cost_microusd == cases[i].cost);
		assert_true(b.spawn.max_tokens == cases[i].tokens);
		json_decref(v);
	}
}

#define TAKES                                                                                      \
	" in the request: it takes task, role, context, model, preset, on_limit, resume, from, "   \
	"timeout, max_cost_cents, max_tokens, max_iterations, extended_thinking, output_schema, "  \
	"cwd, session_id, tools, grants, ask_before, request_id, origin, confirmed, confirm"

static void test_spawn_refused(void **state)
{
	static const struct {
		const char *body, *says;
	} cases[] = {
		{"[]", "the body must be a JSON object"},
		{"null", "the body must be a JSON object"},
		{"\"task\"", "the body must be a JSON object"},
		{"{\"task\":\"t\",\"max_cost\":5}", "unknown key max_cost" TAKES},
		{"{\"user_id\":\"root\"}", "unknown key user_id" TAKES},
		{"{\"nope\":null}", "unknown key nope" TAKES},
		{"{\"Task\":\"t\"}", "unknown key Task" TAKES},
		{"{\"task\":5}", "task must be a string"},
		{"{\"task\":[\"t\"]}", "task must be a string"},
		{"{\"request_id\":7}", "request_id must be a string"},
		{"{\"cwd\":false}", "cwd must be a string"},
		{"{\"timeout\":\"5\"}", "timeout must be a number"},
		{"{\"timeout\":true}", "timeout must be a number"},
		{"{\"max_tokens\":1.5}", "max_tokens must be a whole number"},
		{"{\"max_iterations\":0.5}", "max_iterations must be a whole number"},
		{"{\"timeout\":1e300}", "timeout is out of range"},
		{"{\"max_cost_cents\":-1e300}", "max_cost_cents is out of range"},
		{"{\"max_tokens\":9223372036854775807}", "max_tokens is out of range"},
		{"{\"extended_thinking\":1}", "extended_thinking must be true or false"},
		{"{\"confirmed\":\"true\"}", "confirmed must be true or false"},
		{"{\"tools\":\"read_file\"}", "tools must be a list of at most 64 strings"},
		{"{\"tools\":{}}", "tools must be a list of at most 64 strings"},
		{"{\"tools\":[\"a\",1]}", "tools must be a list of strings"},
		{"{\"grants\":[null]}", "grants must be a list of strings"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		json_t *v = parse(cases[i].body);
		struct spawn_body b;

		assert_int_equal(decode_spawn(v, &b, &err), AVA_EINVAL);
		assert_int_equal(err.code, AVA_EINVAL);
		assert_string_equal(err.text, cases[i].says);
		json_decref(v);
	}
	assert_int_equal(decode_spawn(NULL, &(struct spawn_body){0}, NULL), AVA_EINVAL);
}

/* What is not JSON never gets that far. */
static void test_numbers_that_are_none(void **state)
{
	static const char *const bad[] = {"{\"timeout\":NaN}",
					  "{\"timeout\":Infinity}",
					  "{\"timeout\":1e999}",
					  "{\"timeout\":0x10}",
					  "{\"max_tokens\":9223372036854775808}",
					  "{\"task\":\"a\",\"task\":\"b\"}",
					  "{\"task\":\"a\\u0000\"}"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_null(json_parse(bad[i], strlen(bad[i]), NULL));
}

static void test_spawn_64_tools(void **state)
{
	json_t *v = json_object(), *list = json_array();
	struct spawn_body b;

	for (int i = 0; i < DECODE_LIST_MAX; i++)
		json_array_append_new(list, json_string("x"));
	json_object_set_new(v, "tools", list);
	assert_int_equal(decode_spawn(v, &b, NULL), 0);
	assert_int_equal(b.spawn.ntools, DECODE_LIST_MAX);
	assert_string_equal(b.spawn.tools[DECODE_LIST_MAX - 1], "x");
	json_array_append_new(list, json_string("x"));
	assert_int_equal(decode_spawn(v, &b, NULL), AVA_EINVAL);
	json_decref(v);
}

static void test_strings(void **state)
{
	const char *answer = NULL, *by = NULL;
	const struct decode_string keys[] = {{"answer", 5, &answer}, {"by", 3, &by}};
	static const struct {
		const char *body;
		int code;
		const char *says;
	} bad[] = {
		{"[]", AVA_EINVAL, "the body must be a JSON object"},
		{"\"yes\"", AVA_EINVAL, "the body must be a JSON object"},
		{"{\"answer\":false}", AVA_EINVAL, "answer must be a string"},
		{"{\"answer\":null}", AVA_EINVAL, "answer must be a string"},
		{"{\"by\":1}", AVA_EINVAL, "by must be a string"},
		{"{\"anwser\":\"no\"}", AVA_EINVAL,
		 "unknown key anwser in the request: it takes answer, by"},
		{"{\"answer\":\"123456\"}", AVA_ETOOBIG, "answer is over 5 bytes"},
	};
	json_t *v = parse("{\"answer\":\"12345\"}");

	assert_int_equal(decode_strings(NULL, keys, 2, NULL), 0);
	assert_null(answer);
	assert_int_equal(decode_strings(v, keys, 2, NULL), 0);
	assert_string_equal(answer, "12345");
	assert_null(by);
	assert_int_equal(decode_strings(v, NULL, 0, NULL), AVA_EINVAL);
	json_decref(v);
	v = parse("{}");
	assert_int_equal(decode_strings(v, NULL, 0, NULL), 0);
	json_decref(v);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct ava_error err = {0};

		v = parse(bad[i].body);
		assert_int_equal(decode_strings(v, keys, 2, &err), bad[i].code);
		assert_string_equal(err.text, bad[i].says);
		json_decref(v);
	}
}

static void test_answer_every_key(void **state)
{
	json_t *v = parse("{\"answer\":\"yes\",\"by\":\"ben\",\"set\":{\"role\":\"r\","
			  "\"model\":\"m\",\"preset\":\"p\",\"timeout\":1.5,"
			  "\"max_cost_cents\":20,\"max_tokens\":7,\"max_iterations\":3,"
			  "\"extended_thinking\":false,\"without\":[\"a\",\"b\"]}}");
	json_t *empty = parse("{}"), *nulls = parse("{\"set\":{\"model\":null,\"without\":null,"
						    "\"extended_thinking\":null}}");
	struct answer_body a;

	assert_int_equal(decode_answer(v, &a, NULL), 0);
	assert_string_equal(a.answer, "yes");
	assert_string_equal(a.by, "ben");
	assert_string_equal(a.set.role, "r");
	assert_string_equal(a.set.model, "m");
	assert_string_equal(a.set.preset, "p");
	assert_int_equal(a.set.time_ms, 1500);
	assert_int_equal(a.set.cost_microusd, 200000);
	assert_int_equal(a.set.tokens, 7);
	assert_int_equal(a.set.iterations, 3);
	assert_int_equal(a.set.thinking, 0);
	assert_int_equal(a.set.nwithout, 2);
	assert_string_equal(a.set.without[1], "b");
	assert_int_equal(decode_answer(NULL, &a, NULL), 0);
	assert_true(!a.answer && !a.by && change_none(&a.set));
	assert_int_equal(decode_answer(empty, &a, NULL), 0);
	assert_true(!a.answer && !a.by && change_none(&a.set));
	assert_int_equal(decode_answer(nulls, &a, NULL), 0);
	assert_true(change_none(&a.set));
	json_decref(v);
	json_decref(empty);
	json_decref(nulls);
}

static void test_answer_refused(void **state)
{
	static const struct {
		const char *body, *says;
	} cases[] = {
		{"[]", "the body must be a JSON object"},
		{"{\"anser\":\"yes\"}",
		 "unknown key anser in the request: it takes answer, by, set"},
		{"{\"answer\":true}", "answer must be a string"},
		{"{\"set\":[]}", "set must be an object"},
		{"{\"set\":null}", "set must be an object"},
		{"{\"set\":{\"max_cost\":1}}",
		 "unknown key max_cost in the request: it takes role, model, preset, timeout, "
		 "max_cost_cents, max_tokens, max_iterations, extended_thinking, without"},
		{"{\"set\":{\"max_cost_cents\":\"20\"}}", "max_cost_cents must be a number"},
		{"{\"set\":{\"max_tokens\":1.5}}", "max_tokens must be a whole number"},
		{"{\"set\":{\"extended_thinking\":1}}", "extended_thinking must be true or false"},
		{"{\"set\":{\"preset\":\"12345678901234567\"}}", "preset is over 15 bytes"},
		{"{\"set\":{\"without\":\"bash\"}}", "without must be a list"},
		{"{\"set\":{\"without\":[\"\"]}}", "without has what is no name of a tool"},
		{"{\"set\":{\"without\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\","
		 "\"i\"]}}",
		 "without must be a list of at most 8 tools"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *v = parse(cases[i].body);
		struct ava_error err = {0};
		struct answer_body a;

		print_message("%s\n", cases[i].body);
		assert_int_equal(decode_answer(v, &a, &err), AVA_EINVAL);
		assert_non_null(strstr(err.text, cases[i].says));
		json_decref(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_status_of_little),
		cmocka_unit_test(test_proposal),
		cmocka_unit_test(test_answer_every_key),
		cmocka_unit_test(test_answer_refused),
		cmocka_unit_test(test_started),
		cmocka_unit_test(test_health),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_http_status),
		cmocka_unit_test(test_spawn_every_key),
		cmocka_unit_test(test_spawn_absent_is_null_is_default),
		cmocka_unit_test(test_spawn_numbers),
		cmocka_unit_test(test_spawn_refused),
		cmocka_unit_test(test_numbers_that_are_none),
		cmocka_unit_test(test_spawn_64_tools),
		cmocka_unit_test(test_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
