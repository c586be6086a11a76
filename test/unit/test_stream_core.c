/* What no recorded stream shows (test_stream_golden.c has those): bounds, bodies
 * that are no stream, progress, memory that runs out. */
#include "stream_rig.h"

#include <stdio.h>

/* ---- bounds */

static void feed_text(const struct dialect *d, struct stream *s, const char *text)
{
	bool progress;

	stream_feed(s, text, strlen(text), &progress);
}

/* n calls, as each dialect cuts them. */
static void many_calls(struct buf *b, bool chat, unsigned n)
{
	buf_adds(b, chat ? "data: {\"id\":\"c1\",\"choices\":[]}\n\n"
			 : "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\"}}\n\n");
	for (unsigned i = 0; i < n && chat; i++)
		buf_addf(
			b,
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":%u,"
			"\"id\":\"call_%08u\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
			"\\\"n\\\":"
			"%u}\"}}]}}]}\n\n",
			i, i, i);
	for (unsigned i = 0; i < n && !chat; i++)
		buf_addf(b,
			 "data: {\"type\":\"content_block_start\",\"index\":%u,\"content_block\":"
			 "{\"type\":\"tool_use\",\"id\":\"toolu_%u\",\"name\":\"f\",\"input\":{}}}"
			 "\n\n"
			 "data: {\"type\":\"content_block_delta\",\"index\":%u,\"delta\":{\"type\":"
			 "\"input_json_delta\",\"partial_json\":\"{\\\"n\\\":%u}\"}}\n\n",
			 i, i, i, i);
	buf_adds(b, chat ? "data: [DONE]\n\n" : "data: {\"type\":\"message_stop\"}\n\n");
}

TEST(many_calls)
{
	static const unsigned counts[] = {200, TURN_MAX_CALLS, TURN_MAX_CALLS + 1};
	struct reply_error e;
	TEST_BUF(b, 1u << 20);
	struct turn *t;
	bool progress;

	for (unsigned i = 0; i < 2 * ARRAY_LEN(counts); i++) {
		unsigned n = counts[i / 2];
		const struct dialect *d = i % 2 ? &dialect_openai : &dialect_anthropic;
		struct stream *s = stream_open(d->stream, &model, "t_1");
		enum reply_class cls;
		int rv;

		buf_reset(&b);
		many_calls(&b, i % 2, n);
		rv = stream_feed(s, b.data, b.len, &progress);
		cls = stream_end(s, 200, NULL, &t, &e);
		if (n > TURN_MAX_CALLS) {
			assert_true(rv < 0);
			assert_int_equal(cls, REPLY_OTHER);
			assert_string_equal(e.text, "the reply has more than 256 tool calls");
		} else {
			assert_int_equal(rv, 0);
			assert_int_equal(cls, REPLY_OK);
			assert_int_equal(t->ncalls, n);
			assert_string_equal(t->calls[n - 1].args,
					    n == 200 ? "{\"n\":199}" : "{\"n\":255}");
			check_turn(d, t);
		}
		turn_free(t);
		stream_free(s);
	}
}

TEST(long_name_and_depth)
{
	const struct dialect *d = &dialect_anthropic;
	struct reply_error e;
	TEST_BUF(b, 1u << 20);
	struct turn *t;
	struct stream *s = stream_open(d->stream, &model, "t_1");

	buf_adds(&b,
		 "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
		 "\"tool_use\",\"id\":\"toolu_1\",\"name\":\"");
	for (unsigned i = 0; i < 10240; i++)
		buf_addc(&b, 'n');
	buf_adds(&b, "\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
		     "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"");
	for (unsigned i = 0; i < 70; i++)
		buf_adds(&b, "{\\\"a\\\":");
	buf_adds(&b, "1");
	for (unsigned i = 0; i < 70; i++)
		buf_adds(&b, "}");
	buf_adds(&b, "\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n");
	feed_text(d, s, b.data);
	assert_int_equal(stream_end(s, 200, NULL, &t, &e), REPLY_OK);
	assert_int_equal(t->ncalls, 1);
	assert_int_equal(strlen(t->calls[0].name), 128);
	assert_null(t->calls[0].args); /* 70 deep; it gets a result that says so */
	assert_non_null(strstr(t->calls[0].args_error, "nested deeper than 64"));
	check_turn(d, t);
	turn_free(t);
	stream_free(s);
}

/* A paused reply with a block that holds `depth` levels of its own, or a call
 * with arguments of so many. */
static enum reply_class run_deep(bool call, unsigned depth, struct turn **t)
{
	struct stream *s = stream_open(dialect_anthropic.stream, &model, "t_1");
	struct reply_error e;
	enum reply_class cls;
	TEST_BUF(b, 65536);

	buf_addf(&b,
		 "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
		 "\"%s\",\"na\\u006de\":\"f\",\"id\":\"toolu_1\",\"x\":",
		 call ? "tool_use" : "future_kind");
	for (unsigned i = 0; i < depth && !call; i++)
		buf_adds(&b, "[");
	buf_adds(&b, "1");
	for (unsigned i = 0; i < depth && !call; i++)
		buf_adds(&b, "]");
	buf_adds(&b, "}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"
		     "\"type\":\"input_json_delta\",\"partial_json\":\"");
	for (unsigned i = 0; i < depth && call; i++)
		buf_adds(&b, "{\\\"a\\\":");
	buf_adds(&b, call ? "1" : "");
	for (unsigned i = 0; i < depth && call; i++)
		buf_adds(&b, "}");
	buf_addf(&b,
		 "\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\"}}"
		 "\n\ndata: {\"type\":\"message_stop\"}\n\n",
		 call ? "tool_use" : "pause_turn");
	feed_text(&dialect_anthropic, s, b.data);
	cls = stream_end(s, 200, NULL, t, &e);
	stream_free(s);
	return cls;
}

/* What a line holds must be read to a depth of 64 by everybody. */
TEST(depth_of_lines)
{
	struct turn *t;

	assert_int_equal(run_deep(false, 55, &t), REPLY_OK);
	check_turn(&dialect_anthropic, t);
	assert_non_null(strstr(t->wire, "\"na\\u006de\":\"f\"")); /* byte for byte */
	turn_free(t);
	assert_int_equal(run_deep(false, 70, &t), REPLY_OK);
	check_turn(&dialect_anthropic, t);
	assert_non_null(strstr(t->wire, "[null]")); /* what is deeper is not carried on */
	turn_free(t);
	assert_int_equal(run_deep(true, 56, &t), REPLY_OK);
	check_turn(&dialect_anthropic, t);
	assert_non_null(t->calls[0].args);
	assert_string_equal(t->calls[0].name, "f");
	assert_null(strstr(t->wire, "u006d")); /* not named twice */
	turn_free(t);
	assert_int_equal(run_deep(true, 57, &t), REPLY_OK);
	check_turn(&dialect_anthropic, t);
	assert_null(t->calls[0].args);
	assert_non_null(strstr(t->calls[0].args_error, "too deeply"));
	turn_free(t);
}

TEST(long_line)
{
	const struct dialect *all[] = {&dialect_anthropic, &dialect_openai};
	static char block[65536];
	struct reply_error e;
	struct turn *t;
	bool progress;

	memset(block, 'x', sizeof(block));
	for (unsigned i = 0; i < 2; i++) {
		struct stream *s = stream_open(all[i]->stream, &model, "t_1");
		int rv = 0;

		feed_text(all[i], s, "data: {\"type\":\"");
		for (unsigned n = 0; n < 200 && rv == 0; n++)
			rv = stream_feed(s, block, sizeof(block), &progress);
		assert_int_equal(rv, AVA_ETOOBIG);
		assert_int_equal(stream_end(s, 200, NULL, &t, &e), REPLY_PROTOCOL);
		assert_string_equal(e.text, "the service sent a line of over 8 MB");
		stream_free(s);
	}
}

TEST(reply_too_large)
{
	static const char head[] = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"
				   "\"type\":\"text_delta\",\"text\":\"";
	const struct dialect *d = &dialect_anthropic;
	struct stream *s = stream_open(d->stream, &model, "t_1");
	static char block[1u << 20];
	struct reply_error e;
	struct turn *t;
	bool progress;
	int rv = 0;

	for (uint32_t n = 0, seed = 7; n < sizeof(block); n++, seed = seed * 1103515245 + 12345)
		block[n] = (char)('a' + (seed >> 16) % 26); /* it does not repeat itself */
	for (unsigned n = 0; n < 34 && rv == 0; n++) {
		feed_text(d, s, head);
		stream_feed(s, block, sizeof(block), &progress);
		rv = stream_feed(s, "\"}}\n\n", 5, &progress);
	}
	assert_true(rv < 0);
	assert_int_equal(stream_end(s, 200, NULL, &t, &e), REPLY_OTHER);
	assert_string_equal(e.text, "the reply is larger than 32 MB");
	stream_free(s);
	/* It fits as it came, but not twice with its line. */
	s = stream_open(d->stream, &model, "t_1");
	for (unsigned n = 0; n < 20; n++) {
		feed_text(d, s, head);
		stream_feed(s, block, sizeof(block), &progress);
		assert_int_equal(stream_feed(s, "\"}}\n\n", 5, &progress), 0);
	}
	feed_text(d, s,
		  "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n"
		  "data: {\"type\":\"message_stop\"}\n\n");
	assert_int_equal(stream_end(s, 200, NULL, &t, &e), REPLY_OTHER);
	assert_string_equal(e.text, "the reply is larger than 32 MB");
	stream_free(s);
}

/* A service that writes on beyond what it was asked for is stopped before it costs much. */
TEST(beyond_what_was_asked)
{
	static const char form[] =
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":"
		"\"on and %u and on and on and on and on and on and on\"}}]}\n\n";
	struct stream *s = stream_open(dialect_openai.stream, &model, "t_1");
	struct reply_error e;
	struct turn *t;
	bool progress;
	int rv = 0;

	stream_asked(s, 0, 1000);
	for (unsigned n = 0; n < 100000 && rv == 0; n++) {
		char piece[sizeof(form) + 10];
		int len = snprintf(piece, sizeof(piece), form, n);

		rv = stream_feed(s, piece, (size_t)len, &progress);
	}
	assert_true(rv < 0);
	assert_int_equal(stream_end(s, 200, NULL, &t, &e), REPLY_OTHER);
	assert_non_null(strstr(e.text, "far beyond the most it was asked to write"));
	assert_true(e.usage.output > 1500 && e.usage.output < 3000);
	stream_free(s);
}

/* What a service says it has used is taken only where it can be. */
TEST(usage_that_cannot_be)
{
	static const char *const told[] = {
		"\"prompt_tokens\":-5,\"completion_tokens\":-7",
		"\"prompt_tokens\":10,\"completion_tokens\":900000000000000000",
		"\"prompt_tokens\":10",
	};

	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		struct stream *s = stream_open(dialect_openai.stream, &model, "t_1");
		struct reply_error e;
		char last[300];
		struct turn *t;
		bool progress;

		feed_text(
			&dialect_openai, s,
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"forty bytes of "
			"text, that is ten tokens..\"},\"finish_reason\":\"stop\"}]}\n\n");
		snprintf(last, sizeof(last),
			 "data: {\"choices\":[],\"usage\":{%s}}\n\ndata: [DONE]\n\n", told[i]);
		stream_feed(s, last, strlen(last), &progress);
		assert_int_equal(stream_end(s, 200, NULL, &t, &e), REPLY_OK);
		assert_true(t->usage.estimated);
		assert_int_equal(t->usage.output, 10);
		turn_free(t);
		stream_free(s);
	}
}

/* ---- what is no stream */

static const struct {
	const char *name, *body, *content_type;
	int status;
	enum reply_class cls;
	const char *text;
} body_cases[] = {
	{"nothing at all", "", NULL, 0, REPLY_NETWORK, "no response arrived"},
	{"an empty body", "", "text/event-stream", 200, REPLY_TRUNCATED,
	 "the connection ended before the reply began"},
	{"a page", "<!DOCTYPE html><title>x</title>", "text/html", 200, REPLY_WALL,
	 "the service answered with a page of HTML: x (HTTP 200)"},
	{"a page that fails", "\n<html>busy</html>", "text/html; charset=utf-8", 502, REPLY_SERVER,
	 "the service answered with a page of HTML (HTTP 502)"},
	{"a redirect", "", NULL, 302, REPLY_ADDRESS, "the service answered HTTP 302"},
	{"an error with 200", "{\"error\":{\"code\":429,\"message\":\"slow down\"}}",
	 "application/json", 200, REPLY_RATE_LIMIT, "slow down"},
	{"an event that is an error", "event: error\ndata: Internal Server Error\n\n",
	 "text/event-stream", 200, REPLY_SERVER, "Internal Server Error"},
	{"the same as JSON",
	 "event: error\ndata: {\"code\":\"InvalidParameter\",\"message\":\"Range of input length "
	 "should be [1, 30720]\"}\n\n",
	 "text/event-stream", 200, REPLY_OVERFLOW, "Range of input length should be [1, 30720]"},
	{"an error as text", "data: {\"type\":\"error\",\"error\":\"overloaded\"}\n\n", NULL, 200,
	 REPLY_SERVER, "overloaded"},
	{"a list of errors", "data: [{\"error\":{\"code\":503,\"message\":\"busy\"}}]\n\n", NULL,
	 200, REPLY_OVERLOADED, "busy"},
	{"another object", "{\"choices\":[]}", "application/json", 200, REPLY_PROTOCOL,
	 "the service answered with something that is no stream of events"},
	{"plain text", "upstream connect error", "text/plain", 503, REPLY_OVERLOADED,
	 "upstream connect error"},
	{"text like a field", "idle timeout\n", "text/plain", 504, REPLY_TIMEOUT, "idle timeout "},
	{"events and 500", "data: {\"error\":{\"message\":\"no\"}}\n\n", NULL, 500, REPLY_SERVER,
	 "no"},
	{"500 and nothing", "", NULL, 500, REPLY_SERVER, "the service answered HTTP 500"},
	{"broken JSON", "{\"error\":", "application/json", 529, REPLY_OVERLOADED, "{\"error\":"},
};

TEST(bodies)
{
	const struct dialect *all[] = {&dialect_anthropic, &dialect_openai};

	for (size_t i = 0; i < ARRAY_LEN(body_cases); i++) {
		print_message("%s\n", body_cases[i].name);
		for (unsigned k = 0; k < 4; k++) {
			const struct dialect *d = all[k % 2];
			struct stream *s = stream_open(d->stream, &model, "t_1");
			size_t len = strlen(body_cases[i].body), step = k < 2 ? len : 1;
			struct reply_error e;
			struct turn *t;
			bool progress;

			for (size_t at = 0; at < len; at += step)
				stream_feed(s, body_cases[i].body + at, step, &progress);
			assert_int_equal(stream_end(s, body_cases[i].status,
						    body_cases[i].content_type, &t, &e),
					 body_cases[i].cls);
			assert_string_equal(e.text, body_cases[i].text);
			assert_null(t);
			stream_free(s);
		}
	}
}

/* A body of any size is kept up to its bound. */
TEST(large_body)
{
	struct stream *s = stream_open(dialect_openai.stream, &model, "t_1");
	static char block[65536];
	struct reply_error e;
	struct turn *t;
	bool progress;

	memset(block, 'y', sizeof(block));
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(stream_feed(s, block, sizeof(block), &progress), 0);
	assert_true(s->body.cap <= STREAM_BODY_MAX + 1);
	assert_false(progress);
	assert_int_equal(stream_end(s, 500, NULL, &t, &e), REPLY_SERVER);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	stream_free(s);
}

/* ---- progress, text as it comes, waiting */

TEST(progress)
{
	static const struct {
		const char *piece;
		bool chat, progress;
	} cases[] = {
		{": OPENROUTER PROCESSING\n\n", true, false},
		{"data: {\"id\":\"x\",\"choices\":[]}\n\n", true, true},
		{"data: {\"id\":\"x\",\"choices\":[]", true, false},
		{"}\n\n", true, true},
		{"event: ping\ndata: {\"type\":\"ping\"}\n\n", false, false},
		{": x\n\n", false, false},
		{"data: {\"type\":\"message_start\",\"message\":{}}\n\n", false, true},
		{"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
		 "\"text_delta\",\"text\":\"x\"}}\n\n",
		 false, true},
	};
	struct stream *s[2] = {stream_open(dialect_anthropic.stream, &model, "t"),
			       stream_open(dialect_openai.stream, &model, "t")};
	bool progress;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(stream_feed(s[cases[i].chat], cases[i].piece,
					     strlen(cases[i].piece), &progress),
				 0);
		assert_int_equal(progress, cases[i].progress);
	}
	stream_free(s[0]);
	stream_free(s[1]);
	stream_free(NULL);
}

static void on_text(const char *text, size_t n, bool thinking, void *user)
{
	buf_addf(user, "%s[%.*s]", thinking ? "T" : "", (int)n, text);
}

TEST(text_as_it_comes)
{
	struct stream *s = stream_open(dialect_openai.stream, &model, "t");
	TEST_BUF(b, 4096);

	stream_on_text(s, on_text, &b);
	feed_text(&dialect_openai, s,
		  "data: "
		  "{\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\n\"}}]}\n\n"
		  "data: "
		  "{\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"hm\"}}]}\n\n"
		  "data: "
		  "{\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\u00e9\"}}]}"
		  "\n\ndata: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{"
		  "\"index\":0,\"id\":\"call_0\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}"
		  "}]}}"
		  "]}\n\n");
	assert_string_equal(b.data, "[a\n]T[hm][\xc3\xa9]");
	stream_free(s);
}

TEST(waiting_is_small)
{
	struct stream *s = stream_open(dialect_anthropic.stream, &model, "t");

	assert_true(sizeof(*s) <= STREAM_BYTES_MAX);
	assert_null(s->sse);
	assert_null(s->reply);
	assert_null(s->body.data);
	stream_free(s);
}

/* ---- memory that runs out: an error or the whole turn, never a half one */

static void starve(const struct dialect *d, const char *data, size_t len, const char *want)
{
	struct reply_error e;
	struct buf got;
	bool progress;

	buf_init(&got, 1u << 20);
	FAULT_LOOP(k, {
		struct stream *s = stream_open(d->stream, &model, "7f3a2b_3");
		enum reply_class cls = REPLY_OTHER;
		struct turn *t = NULL;
		struct jw w;

		if (s != NULL) {
			stream_feed(s, data, len, &progress);
			cls = stream_end(s, 200, NULL, &t, &e);
		}
		fault_alloc_end(); /* what is compared may allocate */
		if (cls == REPLY_OK) {
			buf_reset(&got);
			jw_init(&w, &got);
			jw_object(&w, NULL);
			jw_str(&w, "class", "ok");
			dump_turn(&w, t);
			jw_end(&w);
			assert_string_equal(got.data, want);
		}
		turn_free(t);
		stream_free(s);
	});
	buf_fini(&got);
}

TEST(no_memory)
{
	static const char *const names[] = {"anthropic_thinking.sse", "openrouter_reasoning.sse",
					    "anthropic_odd.sse", "openai_no_index.sse"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct dialect *d = dialect_of(names[i]);
		char path[256], *data;
		TEST_BUF(want, 1u << 20);
		size_t len;

		snprintf(path, sizeof(path), FOLDER "%s", names[i]);
		data = unit_read_src(path, &len);
		assert_int_equal(run(d, data, len, len, 0, &want), REPLY_OK);
		starve(d, data, len, want.data);
		free(data);
	}
}
