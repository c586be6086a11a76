/* Traces: every event there and back, JSON and JSONL there and back, totals,
 * merging keeps all events in a stable order and counts none twice. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/util.h"
#include "codec/json.h"
#include "event/trace.h"
#include "event_lines.h"

static struct ava_trace *new_trace(const char *id)
{
	struct ava_trace *t;
	struct ava_error err;

	assert_int_equal(ava_trace_new(&t, id, "ava", &err), 0);
	return t;
}

static void add(struct ava_trace *t, const char *json)
{
	struct ava_error err = {0};

	if (ava_trace_append(t, json, strlen(json), &err) != 0)
		fail_msg("%s: %s", json, err.text);
}

/* An event of run S-aaaaaa with an lsn. */
static void put(struct ava_trace *t, int lsn, const char *type, const char *content,
		const char *meta)
{
	char json[2048];

	snprintf(json, sizeof(json),
		 "{\"timestamp\":\"2026-11-21T08:00:%02d.000Z\",\"lsn\":%d,\"seq\":%d,"
		 "\"eventType\":\"%s\",\"agentId\":\"S-aaaaaa\",\"sessionId\":\"\","
		 "\"traceId\":\"brave-otter\",\"userId\":\"ben\",\"content\":%s,\"metadata\":%s}",
		 lsn % 60, lsn, lsn, type, content, meta);
	add(t, json);
}

static const struct ava_event *events_of(struct ava_trace *t, const char *types, size_t *n)
{
	const struct ava_event *list;
	struct ava_error err = {0};

	assert_int_equal(ava_trace_events(t, types, 0, 0, &list, n, &err), 0);
	return list;
}

TEST(event_json_round_trip)
{
	for (size_t i = 0; i < ARRAY_LEN(event_lines); i++) {
		const struct event_line *l = &event_lines[i];
		struct ava_trace *t = new_trace("");
		const struct ava_event *e;
		TEST_BUF(line, 1u << 20);
		size_t n;

		assert_int_equal(
			event_encode(&line, &l->head, l->content, strlen(l->content), &l->meta), 0);
		add(t, line.data);
		e = events_of(t, NULL, &n);
		assert_int_equal(n, 1);
		assert_int_equal(e->len, line.len - 1);
		assert_memory_equal(e->json, line.data, e->len);
		assert_string_equal(e->type, event_kind_name(l->head.kind));
		assert_int_equal(e->lsn, l->head.lsn);
		assert_int_equal(e->seq, l->head.seq);
		assert_int_equal(e->time_ms, l->head.wall_ms);
		assert_string_equal(e->agent, l->head.agent_id);
		assert_string_equal(e->user, l->head.user_id);
		ava_trace_free(t);
	}
}

/* As a program writes them: keys in any order, blanks, most left out. */
TEST(event_of_a_program)
{
	struct ava_trace *t = new_trace("calm-heron");
	const struct ava_event *e;
	size_t n;

	add(t, "{ \"content\": {\"name\": \"half\\u0020way\"},\n \"eventType\": \"Checkpoint\","
	       " \"timestamp\": \"2026-11-21T08:00:01.000Z\", \"agentId\": \"a\\\"b\" }");
	e = events_of(t, "checkpoint", &n);
	assert_int_equal(n, 1);
	assert_string_equal(e->agent, "a\"b");
	assert_string_equal(
		e->json, "{\"timestamp\":\"2026-11-21T08:00:01.000Z\",\"lsn\":0,\"seq\":0,"
			 "\"eventType\":\"Checkpoint\",\"agentId\":\"a\\\"b\",\"sessionId\":\"\","
			 "\"traceId\":\"calm-heron\",\"userId\":\"\",\"content\":{\"name\":"
			 "\"half way\"},\"metadata\":{}}");
	ava_trace_free(t);
}

TEST(what_is_no_event)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"{}",
		"{\"eventType\":3}",
		"{\"eventType\":\"Error\",\"timestamp\":\"soon\"}",
		"{\"eventType\":\"Error\"} {}",
	};
	struct ava_trace *t = new_trace("calm-heron");
	struct ava_trace_info info;
	struct ava_error err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(ava_trace_append(t, bad[i], strlen(bad[i]), &err), AVA_EINVAL);
		assert_true(err.text[0] != '\0');
	}
	ava_trace_info(t, &info);
	assert_int_equal(info.events, 0);
	ava_trace_free(t);
}

/* A run with a forked, joined and interrupted life: sums stand in it thrice. */
static struct ava_trace *a_run(void)
{
	struct ava_trace *t = new_trace("brave-otter");

	put(t, 10, "SubagentSpawn", "{\"subagentId\":\"S-aaaaaa\"}", "{\"parentAgentId\":\"ava\"}");
	put(t, 11, "InferStart", "{\"callId\":\"i1\"}", "{\"iteration\":1}");
	put(t, 12, "InferEnd",
	    "{\"callId\":\"i1\",\"tokens\":{\"input\":1000,\"output\":50,\"cacheRead\":900}}",
	    "{\"inputTokens\":1000,\"outputTokens\":50,\"costCents\":1.25,\"duration\":900}");
	put(t, 13, "CostUpdate", "{\"tokens\":1050,\"costCents\":1.25}", "{\"costCents\":1.25}");
	put(t, 14, "ToolCall",
	    "{\"callId\":\"c1.1\",\"name\":\"read_file\",\"args\":{\"path\":\"a\"}}", "{}");
	put(t, 15, "ToolCall", "{\"callId\":\"c1.2\",\"name\":\"read_file\",\"args\":\"{\\\"pa\"}",
	    "{}");
	put(t, 16, "ToolResult",
	    "{\"callId\":\"c1.2\",\"success\":false,\"output\":\"no "
	    "b\",\"errorClass\":\"not_found\"}",
	    "{\"duration\":2}");
	put(t, 17, "ToolResult", "{\"callId\":\"c1.1\",\"success\":true,\"output\":\"text\"}",
	    "{\"duration\":7}");
	put(t, 18, "Checkpoint", "{\"name\":\"read\"}", "{}");
	put(t, 19, "InferStart", "{\"callId\":\"i2\"}", "{\"iteration\":2}");
	put(t, 20, "InferEnd",
	    "{\"callId\":\"i2\",\"tokens\":{\"input\":10,\"output\":0},\"errorClass\":"
	    "\"overloaded\","
	    "\"error\":\"busy\"}",
	    "{\"costCents\":0.0001}");
	put(t, 21, "InferStart", "{\"callId\":\"i2.2\"}", "{\"iteration\":2}");
	put(t, 22, "InferEnd", "{\"callId\":\"i2.2\",\"tokens\":{\"input\":2000,\"output\":5}}",
	    "{}");
	put(t, 23, "ToolCall", "{\"callId\":\"c2.1\",\"name\":\"submit_result\",\"args\":{}}",
	    "{}");
	put(t, 24, "Error", "{\"class\":\"interrupted\",\"message\":\"stopped\"}", "{}");
	put(t, 25, "SubagentComplete",
	    "{\"subagentId\":\"S-aaaaaa\",\"status\":\"error\",\"totals\":{\"inputTokens\":3010,"
	    "\"outputTokens\":55,\"costCents\":1.2501,\"estimatedCalls\":2}}",
	    "{\"inputTokens\":3010,\"outputTokens\":55,\"costCents\":1.2501}");
	return t;
}

static void check_totals(struct ava_trace *t)
{
	struct ava_trace_totals sum;
	struct ava_error err;

	assert_int_equal(ava_trace_totals(t, &sum, &err), 0);
	assert_int_equal(sum.input_tokens, 3010);
	assert_int_equal(sum.output_tokens, 55);
	assert_int_equal(sum.cost_microusd, 12501);
	assert_int_equal(sum.uncosted_calls, 1);
	assert_int_equal(sum.infer_calls, 3);
	assert_int_equal(sum.failed_infer_calls, 1);
	assert_int_equal(sum.tool_calls, 3);
	assert_int_equal(sum.failed_tool_calls, 1);
	assert_int_equal(sum.duration_ms, 15000);
	assert_int_equal(ava_trace_infer_calls(t), 3);
}

TEST(trace_totals)
{
	struct ava_trace *t = a_run(), *nothing = new_trace("x-y");
	struct ava_trace_totals sum;

	check_totals(t);
	assert_int_equal(ava_trace_totals(nothing, &sum, NULL), 0);
	assert_int_equal(sum.cost_microusd, 0);
	assert_int_equal(sum.duration_ms, -1);
	put(nothing, 3, "InferEnd", "{\"tokens\":{\"input\":7}}", "{}");
	assert_int_equal(ava_trace_totals(nothing, &sum, NULL), 0);
	assert_int_equal(sum.cost_microusd, -1);
	put(nothing, 4, "InferEnd", "{\"errorClass\":\"cancelled\",\"tokens\":{}}", "{}");
	assert_int_equal(ava_trace_totals(nothing, &sum, NULL), 0);
	assert_int_equal(sum.failed_infer_calls, 0); /* the end of the run cut it */
	ava_trace_free(t);
	ava_trace_free(nothing);
}

TEST(trace_tool_calls)
{
	const struct ava_trace_tool *calls;
	struct ava_trace *t = a_run();
	struct ava_error err;
	size_t n;

	assert_int_equal(ava_trace_tool_calls(t, &calls, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_string_equal(calls[0].call, "c1.1");
	assert_string_equal(calls[0].run, "S-aaaaaa");
	assert_string_equal(calls[0].args, "{\"path\":\"a\"}");
	assert_string_equal(calls[0].result, "text");
	assert_int_equal(calls[0].duration_ms, 7);
	assert_true(calls[0].done && calls[0].success);
	assert_string_equal(calls[1].args, "\"{\\\"pa\"");
	assert_string_equal(calls[1].error_class, "not_found");
	assert_true(calls[1].done && !calls[1].success);
	assert_int_equal(calls[1].duration_ms, 2);
	assert_string_equal(calls[2].name, "submit_result");
	assert_false(calls[2].done);
	assert_int_equal(calls[2].duration_ms, -1);
	ava_trace_free(t);
}

TEST(trace_checkpoints_and_errors)
{
	struct ava_trace *t = a_run();
	const char *const *list;
	size_t n;

	assert_int_equal(ava_trace_checkpoints(t, &list, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(list[0], "read");
	assert_int_equal(ava_trace_errors(t, &list, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_string_equal(list[0], "not_found: no b");
	assert_string_equal(list[1], "overloaded: busy");
	assert_string_equal(list[2], "interrupted: stopped");
	ava_trace_free(t);
}

TEST(trace_filters)
{
	struct ava_trace *t = a_run();
	const struct ava_event *e;
	struct ava_error err;
	int64_t base;
	size_t n;

	e = events_of(t, NULL, &n);
	assert_int_equal(n, 16);
	base = e[0].time_ms;
	events_of(t, "toolcall,INFERSTART", &n);
	assert_int_equal(n, 6);
	events_of(t, "tool", &n);
	assert_int_equal(n, 5);
	events_of(t, "tools", &n); /* an alias, as of the logs */
	assert_int_equal(n, 5);
	assert_int_equal(ava_trace_events(t, "Sonata", 0, 0, &e, &n, &err), AVA_EINVAL);
	assert_int_equal(ava_trace_events(t, NULL, base + 1000, base + 4000, &e, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_int_equal(e[0].lsn, 11);
	assert_int_equal(e[2].lsn, 13);
	assert_int_equal(ava_trace_events(t, "Infer", base + 11000, 0, &e, &n, &err), 0);
	assert_int_equal(n, 2);
	ava_trace_free(t);
}

static void check_same(struct ava_trace *a, struct ava_trace *b)
{
	const struct ava_event *x, *y;
	struct ava_trace_info i, k;
	size_t nx, ny;

	ava_trace_info(a, &i);
	ava_trace_info(b, &k);
	assert_string_equal(i.id, k.id);
	assert_string_equal(i.parent, k.parent);
	assert_int_equal(i.start_ms, k.start_ms);
	assert_int_equal(i.end_ms, k.end_ms);
	x = events_of(a, NULL, &nx);
	y = events_of(b, NULL, &ny);
	assert_int_equal(nx, ny);
	for (size_t e = 0; e < nx; e++)
		assert_string_equal(x[e].json, y[e].json);
}

TEST(trace_json_round_trip)
{
	struct ava_trace *t = a_run(), *back;
	struct ava_error err = {0};
	const char *json;
	size_t len;

	assert_int_equal(ava_trace_json(t, &json, &len, &err), 0);
	assert_int_equal(strlen(json), len);
	assert_int_equal(ava_trace_parse(&back, json, len, &err), 0);
	check_same(t, back);
	ava_trace_free(back);
	assert_int_equal(ava_trace_parse(&back, "{\"events\":[{}]}", 15, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "event 1"));
	assert_null(back);
	assert_int_equal(ava_trace_parse(&back, "[]", 2, &err), AVA_EINVAL);
	ava_trace_free(t);
}

static char told[512];

static void tell(const char *sentence, void *user)
{
	size_t len = strlen(told);

	snprintf(told + len, sizeof(told) - len, "%s|", sentence);
}

TEST(trace_jsonl_round_trip)
{
	struct ava_trace *t = a_run(), *back;
	struct ava_error err = {0};
	struct ava_trace_info info;
	char path[512], dir[256], *text;
	size_t len;

	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	snprintf(path, sizeof(path), "%s/t.jsonl", dir);
	assert_int_equal(ava_trace_write_jsonl(t, path, &err), 0);
	assert_int_equal(ava_trace_read_jsonl(&back, path, NULL, NULL, &err), 0);
	check_same(t, back);
	ava_trace_free(back);

	assert_int_equal(
		ava_trace_append_jsonl(path, "brave-otter", "{\"eventType\":\"Custom\"}", 22, &err),
		0);
	assert_int_equal(ava_trace_read_jsonl(&back, path, NULL, NULL, &err), 0);
	ava_trace_info(back, &info);
	assert_int_equal(info.events, 17);
	ava_trace_free(back);

	/* Each bad line by its number; the last one was cut off. */
	text = unit_read(path, &len);
	text[10] = '\0' + 1;
	text[len - 3] = '\0' + 2;
	unit_write(path, text, len - 1);
	free(text);
	told[0] = '\0';
	assert_int_equal(ava_trace_read_jsonl(&back, path, tell, NULL, &err), 0);
	assert_non_null(strstr(told, "line 1: "));
	assert_non_null(strstr(told, "line 17: "));
	ava_trace_info(back, &info);
	assert_int_equal(info.events, 15);
	ava_trace_free(back);
	assert_int_equal(ava_trace_read_jsonl(&back, path, NULL, NULL, &err), AVA_ECORRUPT);
	assert_non_null(strstr(err.text, "t.jsonl: line 1: "));
	assert_int_equal(ava_trace_read_jsonl(&back, "/no/such", NULL, NULL, &err), AVA_ENOENT);
	ava_trace_free(t);
	unit_rmdir(dir);
}

static struct ava_trace *merged(struct ava_trace *const *list, size_t n)
{
	struct ava_error err = {0};
	struct ava_trace *t;

	assert_int_equal(ava_trace_merge(&t, (const struct ava_trace *const *)list, n, &err), 0);
	return t;
}

TEST(merge_traces_preserves_all_events)
{
	struct ava_trace *run = a_run(), *other = new_trace("calm-heron"), *all, *again;
	const struct ava_event *e;
	uint64_t last = 0;
	size_t n;

	for (int lsn = 9; lsn < 30; lsn += 4) {
		char json[200];

		snprintf(json, sizeof(json),
			 "{\"timestamp\":\"2026-11-21T08:00:%02d.000Z\",\"lsn\":%d,"
			 "\"eventType\":\"Activity\",\"agentId\":\"S-bbbbbb\"}",
			 lsn, lsn);
		add(other, json);
	}
	all = merged((struct ava_trace *[]){run, other}, 2);
	e = events_of(all, NULL, &n);
	assert_int_equal(n, 16 + 6);
	for (size_t i = 0; i < n; i++) {
		assert_true(e[i].lsn >= last); /* equal ones of two roots: both are there */
		if (e[i].lsn == last)
			assert_string_equal(e[i].agent, "S-bbbbbb");
		last = e[i].lsn;
	}
	check_totals(run);
	/* Once more with what is in it already: nothing is there twice. */
	again = merged((struct ava_trace *[]){all, run, other, all}, 4);
	events_of(again, NULL, &n);
	assert_int_equal(n, 16 + 6);
	ava_trace_free(again);
	again = merged((struct ava_trace *[]){run, run}, 2);
	check_same(run, again);
	check_totals(again);
	ava_trace_free(again);
	ava_trace_free(all);
	ava_trace_free(run);
	ava_trace_free(other);
}

/* Copies in one trace, as of a daily log and a run's file: counted once. */
TEST(totals_of_copies)
{
	struct ava_trace *t = a_run();
	const struct ava_event *e;
	size_t n;

	e = events_of(t, NULL, &n);
	for (size_t i = 0; i < n; i++) {
		char *copy = strdup(e[i].json);

		assert_non_null(copy);
		add(t, copy);
		free(copy);
		e = events_of(t, NULL, &n);
		n = 16;
	}
	check_totals(t);
	ava_trace_free(t);
}

/* Without lsn the time decides, and where that is the same, who came first. */
TEST(merge_without_lsn)
{
	static const char *const one[] = {"1", "3", "3"}, *const two[] = {"2", "3", "4"};
	struct ava_trace *a = new_trace("a-b"), *b = new_trace("c-d"), *all;
	const struct ava_event *e;
	char json[200], order[16] = "";
	size_t n;

	for (size_t i = 0; i < 3; i++) {
		snprintf(json, sizeof(json),
			 "{\"timestamp\":\"2026-11-21T08:00:0%s.000Z\",\"eventType\":\"Activity\","
			 "\"agentId\":\"%zu\"}",
			 one[i], i);
		add(a, json);
		snprintf(json, sizeof(json),
			 "{\"timestamp\":\"2026-11-21T08:00:0%s.000Z\",\"eventType\":\"Activity\","
			 "\"agentId\":\"%zu\"}",
			 two[i], i + 5);
		add(b, json);
	}
	all = merged((struct ava_trace *[]){a, b, a}, 3);
	e = events_of(all, NULL, &n);
	assert_int_equal(n, 9); /* nothing says that any of them is a copy */
	for (size_t i = 0; i < n; i++)
		snprintf(order + i, 2, "%s", e[i].agent);
	assert_string_equal(order, "005126127");
	ava_trace_free(all);
	ava_trace_free(a);
	ava_trace_free(b);
}

/* The value of an attribute of a span as text; "" when it has none. */
static const char *attribute(const json_t *span, const char *key)
{
	static char text[64];
	const json_t *list = json_object_get(span, "attributes");

	text[0] = '\0';
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i), *v = json_object_get(one, "value");

		if (strcmp(json_get_str(one, "key"), key) != 0)
			continue;
		if (json_get_str(v, "stringValue") != NULL)
			snprintf(text, sizeof(text), "%s", json_get_str(v, "stringValue"));
		else if (json_get_str(v, "intValue") != NULL)
			snprintf(text, sizeof(text), "%s", json_get_str(v, "intValue"));
		else if (json_object_get(v, "doubleValue") != NULL)
			snprintf(text, sizeof(text), "%.6f",
				 json_number_value(json_object_get(v, "doubleValue")));
	}
	return text;
}

static const char *name_of(const json_t *span)
{
	return json_get_str(span, "name");
}

static json_t *spans_of(struct ava_trace *t, json_t **request)
{
	struct ava_error err = {0};
	const char *json;
	json_t *scope;
	size_t len;

	assert_int_equal(ava_trace_otlp(t, &json, &len, &err), 0);
	assert_int_equal(strlen(json), len);
	*request = json_parse(json, len, &err);
	assert_non_null(*request);
	scope = json_array_get(json_object_get(*request, "resourceSpans"), 0);
	scope = json_array_get(json_object_get(scope, "scopeSpans"), 0);
	assert_string_equal(json_get_str(scope, "schemaUrl"),
			    "https://opentelemetry.io/schemas/gen-ai/1.42.0");
	return json_object_get(scope, "spans");
}

TEST(trace_otlp)
{
	struct ava_trace *t = a_run();
	json_t *request, *again, *spans, *run, *chat, *tool;

	spans = spans_of(t, &request);
	assert_int_equal(json_array_size(spans), 1 + 3 + 3);
	run = json_array_get(spans, 0);
	chat = json_array_get(spans, 1);
	tool = json_array_get(spans, 3);
	assert_string_equal(attribute(run, "gen_ai.operation.name"), "invoke_agent");
	assert_string_equal(attribute(run, "ava.run.id"), "S-aaaaaa");
	assert_string_equal(attribute(run, "gen_ai.usage.input_tokens"), "3010");
	assert_string_equal(attribute(run, "ava.usage.estimated_calls"), "2");
	assert_string_equal(attribute(run, "error.type"), "error");
	assert_int_equal(strlen(json_get_str(run, "traceId")), 32);
	assert_int_equal(strlen(json_get_str(run, "spanId")), 16);
	assert_null(json_get_str(run, "parentSpanId"));
	assert_string_equal(attribute(chat, "gen_ai.operation.name"), "chat");
	assert_string_equal(attribute(chat, "gen_ai.usage.cache_read.input_tokens"), "900");
	assert_string_equal(attribute(chat, "ava.cost.usd"), "0.012500");
	assert_string_equal(json_get_str(chat, "parentSpanId"), json_get_str(run, "spanId"));
	assert_string_equal(name_of(tool), "execute_tool read_file");
	assert_string_equal(attribute(tool, "error.type"), "not_found");
	/* From its result back: it began later than its call was written. */
	assert_string_equal(json_get_str(tool, "endTimeUnixNano"), "1795248016000000000");
	assert_string_equal(json_get_str(tool, "startTimeUnixNano"), "1795248015998000000");
	assert_string_equal(attribute(json_array_get(spans, 6), "error.type"), "interrupted");
	assert_int_equal(json_array_size(json_object_get(run, "events")), 2);

	assert_true(json_equal(spans, spans_of(t, &again)));
	json_decref(again);
	json_decref(request);
	ava_trace_free(t);
}

/* The trace of nothing, and of a newer ava. */
TEST(trace_otlp_of_little)
{
	struct ava_trace *t = new_trace("x-y");
	json_t *request;

	assert_int_equal(json_array_size(spans_of(t, &request)), 0);
	json_decref(request);
	put(t, 7, "Sonata", "{\"key\":1}", "{}");
	put(t, 8, "ToolResult", "{\"callId\":\"c9.9\"}", "{}");
	assert_int_equal(json_array_size(spans_of(t, &request)), 1);
	json_decref(request);
	ava_trace_free(t);
}

/* The same events as records of a log, each with the ids of its run's span. */
TEST(trace_otlp_logs)
{
	struct ava_trace *t = a_run();
	json_t *spans, *request, *run;
	const json_t *scope, *records, *one;
	size_t at = 0, i, k;
	TEST_BUF(out, 16u << 20);
	json_auto_t *logs = NULL;

	spans = spans_of(t, &request);
	run = json_array_get(spans, 0);
	assert_int_equal(otlp_part(t, OTLP_LOGS, &at, &out, NULL), 0);
	logs = json_parse(out.data, out.len, NULL);
	scope = json_array_get(json_object_get(logs, "resourceLogs"), 0);
	scope = json_array_get(json_object_get(scope, "scopeLogs"), 0);
	records = json_object_get(scope, "logRecords");
	assert_int_equal(json_array_size(records), json_array_size(json_object_get(run, "events")));
	json_array_foreach(records, i, one)
	{
		const json_t *event = json_array_get(json_object_get(run, "events"), i);

		for (k = 0; k < 2; k++)
			assert_string_equal(json_get_str(one, k ? "traceId" : "spanId"),
					    json_get_str(run, k ? "traceId" : "spanId"));
		assert_string_equal(json_get_str(one, "eventName"), name_of(event));
		assert_string_equal(json_get_str(one, "timeUnixNano"),
				    json_get_str(event, "timeUnixNano"));
		assert_string_equal(attribute(one, "ava.run.id"), "S-aaaaaa");
		assert_true(json_get_int(one, "severityNumber", 0) > 0);
	}
	json_decref(request);
	ava_trace_free(t);
}

/* In requests of a bounded number of records; a trace without any is none. */
TEST(trace_otlp_log_parts)
{
	struct ava_trace *t = new_trace("x-y");
	size_t at = 0, records = 0;
	unsigned parts = 0;
	int rv = 1;

	put(t, 1, "SubagentSpawn", "{\"role\":\"researcher\"}", "{}");
	for (int i = 0; i < 2; i++) {
		TEST_BUF(out, 16u << 20);

		at = 0;
		assert_int_equal(otlp_part(t, OTLP_LOGS, &at, &out, NULL), 0);
		assert_int_equal(out.len, 0);
	}
	for (int i = 2; i < 1200; i++)
		put(t, i, i % 2 ? "Activity" : "ToolCall",
		    "{\"text\":\"reads\",\"callId\":\"c1.1\"}", "{}");
	for (at = 0; rv == 1; parts++) {
		TEST_BUF(out, 16u << 20);
		json_auto_t *request = NULL;
		const json_t *scope;

		rv = otlp_part(t, OTLP_LOGS, &at, &out, NULL);
		request = json_parse(out.data, out.len, NULL);
		scope = json_array_get(json_object_get(request, "resourceLogs"), 0);
		scope = json_array_get(json_object_get(scope, "scopeLogs"), 0);
		records += json_array_size(json_object_get(scope, "logRecords"));
	}
	assert_int_equal(rv, 0);
	assert_int_equal(records, 599);
	assert_int_equal(parts, 2);
	ava_trace_free(t);
}

/* In requests of a bounded number of spans, each whole, together all of them. */
TEST(trace_otlp_parts)
{
	struct ava_trace *t = new_trace("x-y");
	size_t at = 0, spans = 0;
	unsigned parts = 0;
	char content[60];
	int rv;

	put(t, 1, "SubagentSpawn", "{\"role\":\"researcher\"}", "{}");
	for (int i = 2; i < 1200; i++) {
		snprintf(content, sizeof(content), "{\"callId\":\"c%d.1\",\"name\":\"x\"}", i);
		put(t, i, "ToolCall", content, "{}");
	}
	do {
		TEST_BUF(out, 16u << 20);
		json_auto_t *request = NULL;
		const json_t *scope;

		rv = otlp_part(t, OTLP_TRACES, &at, &out, NULL);
		assert_true(rv == 0 || rv == 1);
		request = json_parse(out.data, out.len, NULL);
		scope = json_array_get(json_object_get(request, "resourceSpans"), 0);
		scope = json_array_get(json_object_get(scope, "scopeSpans"), 0);
		assert_true(json_array_size(json_object_get(scope, "spans")) <= OTLP_PART);
		spans += json_array_size(json_object_get(scope, "spans"));
		parts++;
	} while (rv == 1);
	assert_int_equal(spans, 1199);
	assert_int_equal(parts, 3);
	ava_trace_free(t);

	t = new_trace("x-y");
	for (at = 0, parts = 0; parts < 2; parts++) {
		struct buf out;

		buf_init(&out, parts == 0 ? 16u << 20 : 100);
		assert_int_equal(otlp_part(t, OTLP_TRACES, &at, &out, NULL),
				 parts == 0 ? 0 : AVA_ETOOBIG);
		assert_int_equal(parts == 0 ? out.len : 0, 0);
		put(t, 7, "Sonata", "{\"key\":1}", "{}");
		buf_fini(&out);
	}
	ava_trace_free(t);
}

/* Every answer, or an error: nothing is left behind either way. */
static void ask_everything(const char *json, size_t len)
{
	const struct ava_trace_tool *calls;
	const char *const *errors;
	const char *text;
	struct ava_trace_totals sum;
	struct ava_trace *t, *m;
	size_t n;

	if (ava_trace_parse(&t, json, len, NULL) != 0)
		return;
	(void)ava_trace_tool_calls(t, &calls, &n, NULL);
	(void)ava_trace_errors(t, &errors, &n, NULL);
	(void)ava_trace_totals(t, &sum, NULL);
	(void)ava_trace_otlp(t, &text, &n, NULL);
	if (ava_trace_merge(&m, (const struct ava_trace *[]){t, t}, 2, NULL) == 0)
		ava_trace_free(m);
	ava_trace_free(t);
}

TEST(trace_without_memory)
{
	struct ava_trace *run = a_run();
	const char *json;
	size_t len;
	char *copy;

	assert_int_equal(ava_trace_json(run, &json, &len, NULL), 0);
	copy = strdup(json);
	assert_non_null(copy);
	FAULT_LOOP(k, ask_everything(copy, len));
	free(copy);
	ava_trace_free(run);
}

UNIT_GROUP(.first = event_lines_load);

/* It starts when it is made, or with an earlier event; a kind that there is not is refused. */
TEST(begins)
{
	static const char made[] = "{\"eventType\":\"Custom\",\"content\":{\"customType\":\"x\"}}";
	static const char early[] = "{\"eventType\":\"Activity\",\"timestamp\":"
				    "\"2026-01-01T00:00:00.000Z\"}";
	static const char odd[] = "{\"eventType\":\"Nope\"}";
	int64_t before = clock_wall_ms();
	struct ava_trace_info i;
	struct ava_error err;
	struct ava_trace *t;

	assert_int_equal(ava_trace_new(&t, NULL, NULL, &err), 0);
	ava_trace_info(t, &i);
	assert_in_range(i.start_ms, before, clock_wall_ms());
	assert_int_equal(ava_trace_append(t, odd, strlen(odd), &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "Nope is no eventType"));
	assert_int_equal(ava_trace_append(t, made, strlen(made), &err), 0);
	ava_trace_info(t, &i);
	assert_in_range(i.start_ms, before, clock_wall_ms());
	assert_int_equal(ava_trace_append(t, early, strlen(early), &err), 0);
	ava_trace_info(t, &i);
	assert_true(i.start_ms < before);
	assert_int_equal(i.events, 2);
	ava_trace_free(t);
}
