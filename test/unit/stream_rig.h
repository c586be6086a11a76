/* What came of a stream as JSON, and streams fed in pieces: for the tests of
 * recorded streams and of what streams share. */
#ifndef UNIT_STREAM_RIG_H
#define UNIT_STREAM_RIG_H

#include "unit.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "provider/dialect.h"
#include "provider/model.h"
#include "provider/stream_core.h"

#define FOLDER "test/golden/streams/"

static const struct model model = {.wire_name = "test"};

static inline const struct dialect *dialect_of(const char *name)
{
	if (strncmp(name, "responses", 9) == 0)
		return &dialect_responses;
	return strncmp(name, "anthropic", 9) == 0 ? &dialect_anthropic : &dialect_openai;
}

/* ---- what came out, as JSON */

static inline void dump_calls(struct jw *w, const struct turn *t)
{
	jw_array(w, "calls");
	for (unsigned i = 0; i < t->ncalls; i++) {
		const struct turn_call *c = &t->calls[i];

		jw_object(w, NULL);
		jw_str(w, "wireId", c->wire_id);
		jw_str(w, "name", c->name);
		if (c->args != NULL)
			jw_strn(w, "args", c->args, c->args_len);
		else
			jw_str(w, "argsError", c->args_error);
		jw_end(w);
	}
	jw_end(w);
}

static inline void dump_usage(struct jw *w, const struct usage *u)
{
	jw_object(w, "usage");
	jw_int(w, "input", u->input);
	jw_int(w, "output", u->output);
	jw_int(w, "cacheRead", u->cache_read);
	jw_int(w, "cacheWrite", u->cache_write);
	jw_int(w, "reasoning", u->reasoning);
	jw_int(w, "costMicroUsd", u->cost_microusd);
	jw_bool(w, "estimated", u->estimated);
	jw_end(w);
}

static inline void dump_turn(struct jw *w, const struct turn *t)
{
	static const char *const stops[] = {
		[TURN_STOP_END] = "end",         [TURN_STOP_TOOLS] = "tools",
		[TURN_STOP_LENGTH] = "length",   [TURN_STOP_PAUSE] = "pause",
		[TURN_STOP_REFUSAL] = "refusal", [TURN_STOP_OTHER] = "other",
	};

	jw_str(w, "stop", stops[t->stop]);
	jw_strn(w, "text", t->text, t->text_len);
	jw_strn(w, "thinking", t->thinking, t->thinking_len);
	dump_calls(w, t);
	jw_str(w, "requestId", t->request_id);
	jw_strn(w, "wire", t->wire, t->wire_len);
	dump_usage(w, &t->usage);
}

static inline void check_turn(const struct dialect *d, const struct turn *t)
{
	struct ava_error err = {0};
	TEST_BUF(lines, 64u << 20);
	json_t *wire;

	assert_true(utf8_valid(t->text, t->text_len));
	assert_true(utf8_valid(t->thinking, t->thinking_len));
	for (unsigned i = 0; i < t->ncalls; i++) {
		assert_true(strlen(t->calls[i].name) <= 128);
		assert_true((t->calls[i].args == NULL) == (t->calls[i].args_error != NULL));
	}
	if (t->wire_len == 0)
		return;
	buf_add(&lines, t->wire, t->wire_len);
	for (char *line = lines.data, *end; line != NULL; line = end != NULL ? end + 1 : NULL) {
		end = strchr(line, '\n');
		assert_true(end == NULL || d->line_an_item);
		assert_int_equal(d->line_kind(line, strlen(line)), LINE_REPLY);
		wire = json_parse(line, end != NULL ? (size_t)(end - line) : strlen(line), &err);
		assert_string_equal(err.text, "");
		json_decref(wire);
	}
	buf_reset(&lines);
	/* What was received can be sent back. */
	assert_int_equal(d->encode_user(&lines, "task", 4), 0);
	buf_addc(&lines, ',');
	buf_add(&lines, t->wire, t->wire_len);
	if (t->stop != TURN_STOP_PAUSE) {
		struct turn answered = *t;
		const char *notice = "go on";

		for (unsigned i = 0; i < t->ncalls; i++)
			t->calls[i].output = "done";
		buf_addc(&lines, ',');
		assert_int_equal(d->encode_results(&lines, &answered, &notice, 1), 0);
	}
	for (size_t i = 0; i < lines.len; i++)
		if (lines.data[i] == '\n')
			lines.data[i] = ',';
	if (d->check(lines.data, lines.len, &err) != 0)
		fail_msg("%s: %.*s", err.text, (int)lines.len, lines.data);
}

/* Class, and the turn or the error, of a stream that was fed; `check`: what
 * came can be sent back. */
static inline enum reply_class outcome(const struct dialect *d, struct stream *s, int status,
				       bool check, struct buf *out)
{
	struct reply_error e;
	struct turn *t;
	enum reply_class cls = stream_end(s, status, "text/event-stream", &t, &e);
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "class", reply_class_word(cls));
	assert_true((cls == REPLY_OK) == (t != NULL));
	if (t != NULL) {
		if (check)
			check_turn(d, t);
		dump_turn(&w, t);
	} else {
		assert_true(e.cls == cls && e.text[0] != 0 && utf8_valid(e.text, strlen(e.text)));
		jw_str(&w, "text", e.text);
		jw_str(&w, "field", e.field);
		jw_str(&w, "requestId", e.request_id);
		dump_usage(&w, &e.usage);
	}
	jw_end(&w);
	turn_free(t);
	return cls;
}

/* The piece is memory of its own, so that a sanitizer sees its end. */
static inline void feed_piece(const struct dialect *d, struct stream *s, const char *data, size_t n)
{
	char *piece = malloc(n > 0 ? n : 1);
	bool progress;

	assert_non_null(piece);
	memcpy(piece, data, n);
	stream_feed(s, piece, n, &progress);
	free(piece);
}

static inline enum reply_class end(const struct dialect *d, struct stream *s, bool check,
				   struct buf *out)
{
	enum reply_class cls;

	buf_reset(out);
	cls = outcome(d, s, 200, check, out);
	stream_free(s);
	return cls;
}

/* Pieces of `step` bytes; 0: random sizes from `seed`. */
static inline enum reply_class run(const struct dialect *d, const char *data, size_t len,
				   size_t step, unsigned seed, struct buf *out)
{
	struct stream *s = stream_open(d->stream, &model, "7f3a2b_3");

	assert_non_null(s);
	for (size_t at = 0, n; at < len; at += n) {
		n = step > 0 ? step : (size_t)(rand_r(&seed) % 97) + 1;
		n = MIN(n, len - at);
		feed_piece(d, s, data + at, n);
	}
	return end(d, s, step == len, out);
}

/* Two pieces. */
static inline enum reply_class run_parted(const struct dialect *d, const char *data, size_t len,
					  size_t at, struct buf *out)
{
	struct stream *s = stream_open(d->stream, &model, "7f3a2b_3");

	assert_non_null(s);
	feed_piece(d, s, data, at);
	feed_piece(d, s, data + at, len - at);
	return end(d, s, false, out);
}

#endif
