/* The wire of Matrix: what answers mean, what people said, and text as HTML. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/json.h"
#include "gateway/matrix/html.h"
#include "gateway/door_wire.h"

TEST(answers)
{
	static const struct {
		int status;
		const char *body;
		enum door_verdict verdict;
		int64_t after_ms;
	} answers[] = {
		{200, "{\"event_id\":\"$1\"}", DOOR_OK, 0},
		{200, "<html>sign in to the hotel</html>", DOOR_LATER, 0},
		{429, "{\"errcode\":\"M_LIMIT_EXCEEDED\",\"retry_after_ms\":4000}", DOOR_SLOW,
		 4000},
		{429, "{\"errcode\":\"M_LIMIT_EXCEEDED\"}", DOOR_SLOW, 1000},
		{429, "{\"errcode\":\"M_LIMIT_EXCEEDED\",\"retry_after_ms\":-9}", DOOR_SLOW, 1000},
		{401, "{\"errcode\":\"M_UNKNOWN_TOKEN\"}", DOOR_REVOKED, 0},
		{401, "sign in", DOOR_LATER, 0},
		{403, "{\"errcode\":\"M_FORBIDDEN\"}", DOOR_BLOCKED, 0},
		{400, "{\"errcode\":\"M_DUPLICATE_ANNOTATION\"}", DOOR_OK, 0},
		{413, "{\"errcode\":\"M_TOO_LARGE\"}", DOOR_REFUSED, 0},
		{502, "{\"errcode\":\"M_UNKNOWN\"}", DOOR_LATER, 0},
		{404, "{\"errcode\":\"M_UNRECOGNIZED\"}", DOOR_LATER, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct door_answer a;
		json_t *doc;

		door_wire_matrix.judge(answers[i].status, answers[i].body, strlen(answers[i].body),
				       &doc, &a);
		assert_int_equal(a.verdict, answers[i].verdict);
		assert_int_equal(a.after_ms, answers[i].after_ms);
		assert_int_equal(a.why[0] == '\0', a.verdict == DOOR_OK);
		json_decref(doc);
	}
}

/* One event of a room, as the door reads it. */
static struct door_said read_event(struct door_state *s, json_t **list, const char *event)
{
	static const struct door_wire *const w = &door_wire_matrix;
	struct door_said said = {.name = ""};
	char since[DOOR_ID_MAX];
	json_t *answer =
		json_pack("{s:s,s:{s:{s:{s:{s:[o]}}}}}", "next_batch", "s9", "rooms", "join",
			  "!r:a.b", "timeline", "events", json_parse(event, strlen(event), NULL));

	assert_non_null(answer);
	*list = w->updates(answer, since);
	assert_string_equal(since, "s9");
	assert_int_equal(json_array_size(*list), 1);
	w->read(json_array_get(*list, 0), s, &said);
	assert_string_equal(said.room, "!r:a.b");
	json_decref(answer);
	return said;
}

#define FROM(who, kind, content)                                                                   \
	"{\"type\":\"" kind "\",\"sender\":\"" who "\",\"event_id\":\"$7\",\"content\":{" content  \
	"}}"
#define SAID(content) FROM("@ben:a.b", "m.room.message", content)

TEST(said)
{
	static const struct {
		const char *event;
		enum door_said_kind kind;
		const char *text, *reply_to;
	} events[] = {
		{SAID("\"msgtype\":\"m.text\",\"body\":\"yes\""), DOOR_TEXT, "yes", ""},
		{SAID("\"msgtype\":\"m.text\",\"body\":\"> <@ava:a.b> a\\n> b\\n\\nno\","
		      "\"m.relates_to\":{\"m.in_reply_to\":{\"event_id\":\"$3\"}}"),
		 DOOR_TEXT, "no", "$3"},
		{SAID("\"msgtype\":\"m.text\",\"body\":\"> a\\nb\""), DOOR_TEXT, "> a\nb", ""},
		{SAID("\"msgtype\":\"m.text\",\"body\":\"b\",\"m.relates_to\":{\"is_falling_back\":"
		      "true,\"m.in_reply_to\":{\"event_id\":\"$3\"}}"),
		 DOOR_TEXT, "b", ""},
		{SAID("\"msgtype\":\"m.notice\",\"body\":\"yes\""), DOOR_NOTHING, NULL, ""},
		{SAID("\"msgtype\":\"m.text\",\"body\":\"* yes\",\"m.relates_to\":{\"rel_type\":"
		      "\"m.replace\",\"event_id\":\"$3\"}"),
		 DOOR_NOTHING, NULL, ""},
		{SAID("\"msgtype\":\"m.image\",\"body\":\"a.png\""), DOOR_TEXT, NULL, ""},
		{FROM("@ava:a.b", "m.room.message", "\"msgtype\":\"m.text\",\"body\":\"yes\""),
		 DOOR_OWN, NULL, ""},
		{FROM("@ben:a.b", "m.room.encrypted", ""), DOOR_AWAY, NULL, ""},
		{FROM("@ben:a.b", "m.reaction",
		      "\"m.relates_to\":{\"rel_type\":\"m.annotation\",\"event_id\":\"$3\","
		      "\"key\":\"\xf0\x9f\x91\x8d\"}"),
		 DOOR_NOTHING, NULL, ""},
		{FROM("@ben:a.b", "m.reaction",
		      "\"m.relates_to\":{\"rel_type\":\"m.annotation\",\"event_id\":\"$3\","
		      "\"key\":\"1\"}"),
		 DOOR_NOTHING, NULL, ""},
	};
	struct door_state *s = calloc(1, sizeof(*s));
	struct door_said said;
	json_t *list;

	strcpy(s->account, "@ava:a.b");
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		said = read_event(s, &list, events[i].event);
		assert_int_equal(said.kind, events[i].kind);
		if (events[i].text)
			assert_string_equal(said.text, events[i].text);
		assert_string_equal(said.reply_to, events[i].reply_to);
		json_decref(list);
	}
	said = read_event(s, &list,
			  FROM("@ben:a.b", "m.reaction",
			       "\"m.relates_to\":{\"rel_type\":\"m.annotation\",\"event_id\":"
			       "\"$3\",\"key\":\"2\xef\xb8\x8f\xe2\x83\xa3\"}"));
	assert_int_equal(said.kind, DOOR_PRESS);
	assert_int_equal(said.index, 1);
	assert_string_equal(said.message, "$3");
	assert_string_equal(said.person, "@ben:a.b");
	json_decref(list);
	free(s);
}

TEST(html)
{
	static const struct {
		const char *text, *html;
		bool found;
	} texts[] = {
		{"a < b & \"c\"", "a &lt; b &amp; &quot;c&quot;", false},
		{"**a** b", "<strong>a</strong> b", true},
		{"2 ** 3 ** 4", "2 ** 3 ** 4", false},
		{"`<a>`", "<code>&lt;a&gt;</code>", true},
		{"**a", "**a", false},
		{"****", "****", false},
		{"a\n```c\n**x**\n<\n```\nb", "a<pre><code>**x**\n&lt;</code></pre>b", true},
		{"```\nx", "<pre><code>x</code></pre>", true},
		{"## Head\nx", "<strong>Head</strong><br>x", true},
		{"#1", "#1", false},
		{"[a](http://b)", "[a](http://b)", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct buf out;

		buf_init(&out, 4096);
		assert_int_equal(matrix_html(&out, texts[i].text, strlen(texts[i].text)),
				 texts[i].found);
		assert_string_equal(out.data, texts[i].html);
		buf_fini(&out);
	}
}

/* Words are formatted; what waits for a person is seen as it is confirmed. */
TEST(literal)
{
	static const char text[] = "run `id` on **all**";

	for (int literal = 0; literal < 2; literal++) {
		const struct door_task task = {.op = DOOR_SEND,
					       .room = "!a:b",
					       .text = text,
					       .len = sizeof(text) - 1,
					       .key = "k",
					       .literal = literal};
		struct door_request r = {0};

		buf_init(&r.body, 1u << 16);
		assert_true(door_wire_matrix.encode(&task, &r));
		buf_addc(&r.body, '\0');
		assert_int_equal(strstr(r.body.data, "formatted_body") == NULL, literal);
		buf_fini(&r.body);
	}
}

/* A key that is a path of another room, or ends the query, stays a part of its place. */
TEST(paths)
{
	const struct door_task task = {
		.op = DOOR_SEND, .room = "!a/../b?c#d:e", .text = "x", .len = 1, .key = "k/1"};
	struct door_request r = {0};

	buf_init(&r.body, 1u << 16);
	assert_true(door_wire_matrix.encode(&task, &r));
	assert_string_equal(r.path, "client/v3/rooms/%21a%2F..%2Fb%3Fc%23d%3Ae/send/"
				    "m.room.message/k%2F1");
	assert_string_equal(r.method, "PUT");
	buf_fini(&r.body);
}
