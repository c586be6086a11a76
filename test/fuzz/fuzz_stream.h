/* Any bytes as a response of a service: in one piece and in small ones they
 * come to the same end; a turn that comes of them can be sent back, and its
 * calls keep to their bounds, and a cache mark changes nothing; cut anywhere they
 * are that same turn, or none. */
#ifndef FUZZ_FUZZ_STREAM_H
#define FUZZ_FUZZ_STREAM_H

#include "fuzz.h"

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "provider/dialect.h"
#include "provider/model.h"
#include "provider/stream_core.h"

struct fuzz_end {
	enum reply_class cls;
	struct turn *turn;
	struct reply_error e;
};

static inline void fuzz_feed(const struct dialect *d, const char *s, size_t len, size_t step,
			     struct fuzz_end *end)
{
	static const struct model model;
	struct stream *st = stream_open(d->stream, &model, "f_1");
	int status = len > 0 && strchr("de:i\n\r\xef", s[0]) != NULL ? 200 : 400;
	bool progress;

	CHECK(st != NULL);
	for (size_t at = 0; at < len; at += step) {
		size_t n = MIN(step, len - at);
		char *piece = fuzz_copy(s + at, n);

		stream_feed(st, piece, n, &progress);
		free(piece);
	}
	end->cls = stream_end(st, status, NULL, &end->turn, &end->e);
	stream_free(st);
	CHECK((end->cls == REPLY_OK) == (end->turn != NULL));
	CHECK(end->cls == REPLY_OK || (end->e.cls == end->cls && end->e.text[0] != 0));
	CHECK(utf8_valid(end->e.text, strlen(end->e.text)) && strchr(end->e.text, '\n') == NULL);
}

static inline void fuzz_same(const struct fuzz_end *a, const struct fuzz_end *b)
{
	CHECK(a->cls == b->cls && strcmp(a->e.text, b->e.text) == 0);
	if (a->turn == NULL)
		return;
	CHECK(a->turn->ncalls == b->turn->ncalls && a->turn->stop == b->turn->stop);
	CHECK(a->turn->wire_len == b->turn->wire_len &&
	      memcmp(a->turn->wire, b->turn->wire, a->turn->wire_len) == 0);
	CHECK(a->turn->usage.output == b->turn->usage.output);
}

/* A mark changes nothing that the service checks. */
static inline void fuzz_mark(const struct dialect *d, struct buf *lines)
{
	struct model m = {.provider = provider_find("openrouter", 10), .wire_name = "anthropic/x"};
	size_t plain = lines->len;

	CHECK(d->mark_cache(lines, 0, &m) == 0);
	CHECK(lines->len > plain || d == &dialect_responses);
	CHECK(d->check(lines->data, lines->len, NULL) == 0);
	/* Nor does what is left out. */
	plain = lines->len;
	m = (struct model){.drop = "cache_control reasoning reasoning_content reasoning_details "
				   "encrypted_content"};
	CHECK(d->mark_cache(lines, 0, &m) == 0);
	CHECK(lines->len <= plain && d->check(lines->data, lines->len, NULL) == 0);
}

static inline void fuzz_send_back(const struct dialect *d, const struct turn *t)
{
	struct ava_error err = {0};
	const char *notice = "go on";
	struct buf lines;
	json_t *wire;

	for (unsigned i = 0; i < t->ncalls; i++) {
		CHECK(strlen(t->calls[i].name) <= 128 && t->calls[i].args_len <= 256u << 10);
		CHECK((t->calls[i].args == NULL) == (t->calls[i].args_error != NULL));
	}
	CHECK(utf8_valid(t->text, t->text_len) && utf8_valid(t->thinking, t->thinking_len));
	CHECK(t->usage.input >= 0 && t->usage.output >= 0);
	if (t->wire_len == 0)
		return;
	for (const char *at = t->wire, *end = at + t->wire_len, *nl; at != NULL;) {
		nl = memchr(at, '\n', (size_t)(end - at));
		CHECK(nl == NULL || d->line_an_item);
		wire = json_parse(at, (size_t)((nl != NULL ? nl : end) - at), NULL);
		CHECK(wire != NULL && d->line_kind(at, (size_t)(end - at)) == LINE_REPLY);
		json_decref(wire);
		at = nl != NULL ? nl + 1 : NULL;
	}
	buf_init(&lines, 64u << 20);
	d->encode_user(&lines, "task", 4);
	buf_addc(&lines, ',');
	buf_add(&lines, t->wire, t->wire_len);
	buf_addc(&lines, ',');
	d->encode_results(&lines, t, &notice, 1);
	for (size_t i = 0; i < lines.len; i++)
		if (lines.data[i] == '\n')
			lines.data[i] = ',';
	CHECK(buf_check(&lines) == 0);
	if (d->check(lines.data, lines.len, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		CHECK(!"it can be sent back");
	}
	fuzz_mark(d, &lines);
	buf_fini(&lines);
}

/* Nothing after an end mark is looked at, so a cut that leaves a turn leaves
 * the turn of the whole; and a whole without one has no cut that is a turn. */
static inline void fuzz_cut(const struct dialect *d, const char *s, size_t len,
			    const struct fuzz_end *whole)
{
	struct fuzz_end cut = {0};
	size_t at = len - len * 13 % 97 % len;

	fuzz_feed(d, s, at, at, &cut);
	if (cut.turn != NULL)
		fuzz_same(&cut, whole);
	turn_free(cut.turn);
}

static inline void fuzz_stream(const struct dialect *d, const char *s, size_t len)
{
	struct fuzz_end whole = {0}, pieces = {0};

	fuzz_feed(d, s, len, len > 0 ? len : 1, &whole);
	fuzz_feed(d, s, len, 1 + len * 7 % 61, &pieces);
	fuzz_same(&whole, &pieces);
	if (len > 1)
		fuzz_cut(d, s, len, &whole);
	if (whole.turn != NULL)
		fuzz_send_back(d, whole.turn);
	turn_free(whole.turn);
	turn_free(pieces.turn);
}

#endif
