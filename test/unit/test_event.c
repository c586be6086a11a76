/* Event lines against the golden file, both ways, and what is no line. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "event/event.h"
#include "event_lines.h"

TEST(kinds)
{
	assert_int_equal(EVENT_NKINDS, 35);
	for (int i = 0; i < EVENT_NKINDS; i++) {
		const char *name = event_kind_name((enum event_kind)i);

		assert_int_equal(event_kind_from(name, strlen(name)), i);
		assert_int_equal(event_kind_from(name, strlen(name) - 1), -1);
	}
	assert_string_equal(event_kind_name(EVENT_Error), "Error");
	assert_int_equal(EVENT_Seal, 30); /* a bit in the catalog: never moves */
	assert_int_equal(EVENT_Check, 34);
	assert_int_equal(event_kind_from("", 0), -1);
}

/* Every kind once; byte for byte what the golden file says. */
TEST(golden)
{
	size_t len, at = 0, line_len, n = 0;
	char *golden = unit_read_src("test/golden/events/lines.jsonl", &len);
	const char *line;
	uint64_t kinds = 0;
	TEST_BUF(b, 10000);

	for (; jsonl_next(golden, len, &at, &line, &line_len) == 1; n++) {
		const struct event_line *e = &event_lines[n];

		assert_true(n < ARRAY_LEN(event_lines));
		kinds |= event_bit(e->head.kind);
		buf_reset(&b);
		assert_int_equal(
			event_encode(&b, &e->head, e->content, strlen(e->content), &e->meta), 0);
		if (b.len != line_len + 1 || memcmp(b.data, line, b.len) != 0)
			fail_msg("line %zu is %s", n + 1, b.data);
	}
	assert_int_equal(n, ARRAY_LEN(event_lines));
	assert_int_equal(kinds, event_bit(EVENT_NKINDS) - 1);
	free(golden);
}

#define VIEWED(field, text)                                                                        \
	do {                                                                                       \
		assert_int_equal(v.field.len, strlen(text));                                       \
		assert_memory_equal(v.field.s, text, strlen(text));                                \
	} while (0)

TEST(view)
{
	size_t len, at = 0, line_len;
	char *golden = unit_read_src("test/golden/events/lines.jsonl", &len);
	const char *line;

	for (size_t n = 0; jsonl_next(golden, len, &at, &line, &line_len) == 1; n++) {
		const struct event_line *e = &event_lines[n];
		struct event_view v;

		for (int newline = 0; newline < 2; newline++) {
			assert_int_equal(event_view(line, line_len + (size_t)newline, &v), 0);
			assert_int_equal(v.kind, e->head.kind);
			assert_int_equal(v.wall_ms, e->head.wall_ms);
			assert_true(v.lsn == e->head.lsn && v.seq == e->head.seq);
			VIEWED(type, event_kind_name(e->head.kind));
			VIEWED(agent_id, e->head.agent_id);
			VIEWED(session_id, e->head.session_id);
			VIEWED(trace_id, e->head.trace_id);
			if (e->head.kind == EVENT_Custom)
				VIEWED(user_id, "telegram:\\\"4711\\\""); /* raw */
			else
				VIEWED(user_id, e->head.user_id);
			VIEWED(content, e->content);
			assert_ptr_equal(v.metadata.s + v.metadata.len + 1, line + line_len);
			assert_int_equal(v.metadata.s[0], '{');
		}
	}
	free(golden);
}

static const struct event_head plain = {.kind = EVENT_Activity, .wall_ms = 0, .lsn = 1, .seq = 2};

TEST(defaults)
{
	struct event_meta meta = EVENT_META_NONE;
	TEST_BUF(b, 1000);

	event_encode(&b, &plain, NULL, 0, NULL);
	assert_string_equal(b.data,
			    "{\"timestamp\":\"1970-01-01T00:00:00.000Z\",\"lsn\":1,\"seq\":2,"
			    "\"eventType\":\"Activity\",\"agentId\":\"\",\"sessionId\":\"\","
			    "\"traceId\":\"\",\"userId\":\"\",\"content\":{},\"metadata\":{}}\n");
	buf_reset(&b);
	meta.iteration = meta.input_tokens = meta.output_tokens = meta.cost_microusd = 0;
	meta.duration_ms = 0;
	meta.model_id = meta.parent_agent_id = "";
	event_encode(&b, &plain, NULL, 0, &meta);
	assert_non_null(strstr(b.data, "\"metadata\":{\"iteration\":0,\"inputTokens\":0,"
				       "\"outputTokens\":0,\"costCents\":0.0,\"modelId\":\"\","
				       "\"parentAgentId\":\"\",\"duration\":0}}\n"));
}

/* Whatever the ids and the content are, the result is one line that reads
 * back as the same. */
TEST(hostile)
{
	static const char bad[] = "a\"},\"metadata\":{\"x\":\"\n\\\xff";
	static const char content[] = "{\n \"text\": \"},\\\"metadata\\\":{\",\n"
				      " \"in\":{\"a\":1},\"metadata\":{}}";
	struct event_head h = plain;
	struct event_meta meta = EVENT_META_NONE;
	struct event_view v;
	TEST_BUF(b, 10000);
	json_t *j;

	h.agent_id = h.session_id = h.trace_id = h.user_id = bad;
	meta.model_id = meta.parent_agent_id = "},\"metadata\":{\"y\":{";
	assert_int_equal(event_encode(&b, &h, content, sizeof(content) - 1, &meta), 0);
	assert_ptr_equal(memchr(b.data, '\n', b.len), b.data + b.len - 1);
	assert_int_equal(event_view(b.data, b.len, &v), 0);
	assert_int_equal(v.content.len, sizeof(content) - 1);
	j = json_parse(v.content.s, v.content.len, NULL);
	assert_string_equal(json_get_str(j, "text"), "},\"metadata\":{");
	json_decref(j);
	j = json_parse(v.metadata.s, v.metadata.len, NULL);
	assert_string_equal(json_get_str(j, "modelId"), meta.model_id);
	json_decref(j);
	j = json_parse(b.data, b.len, NULL);
	assert_string_equal(json_get_str(j, "agentId"),
			    "a\"},\"metadata\":{\"x\":\"\n\\\xef\xbf\xbd");
	json_decref(j);
}

#define HEAD "{\"timestamp\":\"2026-11-21T08:00:00.123Z\",\"lsn\":"
#define IDS  "\"agentId\":\"S-7f3a2b\",\"sessionId\":\"\",\"traceId\":\"\",\"userId\":\"\","
#define TAIL "\"content\":{},\"metadata\":{}}"

static const struct {
	const char *line;
	int code;
} forms[] = {
	{HEAD "1,\"seq\":2,\"eventType\":\"Error\"," IDS TAIL, 0},
	{HEAD "18446744073709551615,\"seq\":0,\"eventType\":\"Error\"," IDS TAIL, 0},
	{HEAD "1,\"seq\":2,\"eventType\":\"Later\"," IDS TAIL, 0},
	{HEAD "1,\"seq\":2,\"eventType\":\"Error\"," IDS TAIL "\n", 0},
	{HEAD "1,\"seq\":2,\"eventType\":\"Error\"," IDS TAIL "\n\n", AVA_ECORRUPT},
	{HEAD "1,\"seq\":2,\"eventType\":\"Error\"," IDS TAIL " ", AVA_ECORRUPT},
	{HEAD "18446744073709551616,\"seq\":0,\"eventType\":\"Error\"," IDS TAIL, AVA_ECORRUPT},
	{HEAD "01,\"seq\":2,\"eventType\":\"Error\"," IDS TAIL, AVA_ECORRUPT},
	{HEAD "-1,\"seq\":2,\"eventType\":\"Error\"," IDS TAIL, AVA_ECORRUPT},
	{HEAD ",\"seq\":2,\"eventType\":\"Error\"," IDS TAIL, AVA_ECORRUPT},
	{HEAD "1, \"seq\":2,\"eventType\":\"Error\"," IDS TAIL, AVA_ECORRUPT},
	{HEAD "1,\"seq\":2,\"eventType\":\"Er\nror\"," IDS TAIL, AVA_ECORRUPT},
	{HEAD "1,\"seq\":2,\"eventType\":\"Error\"," IDS "\"content\":[],\"metadata\":{}}",
	 AVA_ECORRUPT},
	{HEAD "1,\"seq\":2,\"eventType\":\"Error\"," IDS "\"content\":{},\"metadata\":[]}",
	 AVA_ECORRUPT},
	{HEAD "1,\"seq\":2,\"eventType\":\"Error\"," IDS "\"content\":{,\"metadata\":{}}",
	 AVA_ECORRUPT},
	{HEAD "1,\"seq\":2,\"eventType\":\"Error\"," IDS "\"content\":{}}", AVA_ECORRUPT},
	{HEAD "1,\"seq\":2,\"eventType\":\"Error\"," IDS "\"metadata\":{}}", AVA_ECORRUPT},
	{"{\"timestamp\":\"2026-13-21T08:00:00.123Z\",\"lsn\":1,\"seq\":2,\"eventType\":"
	 "\"Error\"," IDS TAIL,
	 AVA_ECORRUPT},
	{"{}", AVA_ECORRUPT},
	{"", AVA_ECORRUPT},
	{"\n", AVA_ECORRUPT},
};

TEST(forms)
{
	struct event_view v;

	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (event_view(forms[i].line, strlen(forms[i].line), &v) != forms[i].code)
			fail_msg("%s", forms[i].line);
	assert_int_equal(event_view(forms[2].line, strlen(forms[2].line), &v), 0);
	assert_int_equal(v.kind, -1);
	VIEWED(type, "Later");
}

/* A line cut anywhere is no line, and reading it stays inside it. */
TEST(cut)
{
	const char *line = forms[0].line;
	struct event_view v;

	for (size_t len = 0; len < strlen(line); len++) {
		char *copy = malloc(len + 1); /* its own, so that a sanitizer sees its end */

		memcpy(copy, line, len);
		assert_int_equal(event_view(copy, len, &v), AVA_ECORRUPT);
		free(copy);
	}
}

static void without_memory(long k)
{
	const struct event_line *e = &event_lines[EVENT_InferEnd];
	TEST_BUF(b, 1000);
	int rv;

	rv = event_encode(&b, &e->head, e->content, strlen(e->content), &e->meta);
	assert_true(rv == AVA_ENOMEM || (rv == 0 && b.data[b.len - 1] == '\n'));
}

TEST(failures)
{
	const struct event_line *e = &event_lines[EVENT_InferEnd];
	size_t whole;
	struct buf b;

	buf_init(&b, 1000);
	event_encode(&b, &e->head, e->content, strlen(e->content), &e->meta);
	whole = b.len;
	buf_fini(&b);
	for (size_t max = 0; max <= whole; max++) {
		buf_init(&b, max);
		assert_int_equal(
			event_encode(&b, &e->head, e->content, strlen(e->content), &e->meta),
			max < whole ? AVA_ETOOBIG : 0);
		buf_fini(&b);
	}
	FAULT_LOOP(k, without_memory(k));
}

UNIT_GROUP(.first = event_lines_load);
