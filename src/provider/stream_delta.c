/* Pieces of text, of which a stream has thousands, found by a cursor. A table says what a
 * member of an event is, by the object it stands in. All that the slow path looks at has a row;
 * what has none says nothing to either. */
#include <stdbool.h>
#include <string.h>

#include "base/util.h"
#include "codec/jscan.h"
#include "provider/stream_core.h"

enum stream_delta_place { CHUNK, CHOICE, DELTA, CALL, FUNCTION, EVENT, BLOCK, ITEM };

enum stream_delta_meaning {
	INTO,    /* an object or a list of objects; `of`: its place */
	PIECE,   /* a piece of text; `of`: its kind */
	INDEX,   /* index of the block or the call */
	TYPE,    /* word that names the kind of event or delta */
	NOTHING, /* null, "" or []; any other value takes the slow path */
	ZERO,    /* 0; any other number takes the slow path */
};

static const struct stream_delta_member {
	const char *key; /* NULL: the end of the list */
	enum stream_delta_meaning meaning;
	int of;
} members[][16] = {
	[CHUNK] = {{"choices", INTO, CHOICE}, {"usage", NOTHING}, {"error", NOTHING}},
	[CHOICE] = {{"index", ZERO},
		    {"delta", INTO, DELTA},
		    {"message", NOTHING},
		    {"finish_reason", NOTHING},
		    {"native_finish_reason", NOTHING}},
	[DELTA] = {{"content", PIECE, DELTA_TEXT},
		   {"reasoning", PIECE, DELTA_REASONING},
		   {"reasoning_content", PIECE, DELTA_THINKING},
		   {"reasoning_details", NOTHING},
		   {"reasoning_text", NOTHING},
		   {"thinking", NOTHING},
		   {"thinking_content", NOTHING},
		   {"thought", NOTHING},
		   {"refusal", NOTHING},
		   {"extra_content", NOTHING},
		   {"function_call", NOTHING},
		   {"tool_calls", INTO, CALL}},
	[CALL] = {{"index", INDEX},
		  {"id", NOTHING},
		  {"name", NOTHING},
		  {"extra_content", NOTHING},
		  {"arguments", PIECE, DELTA_ARGS},
		  {"function", INTO, FUNCTION}},
	[FUNCTION] = {{"name", NOTHING}, {"arguments", PIECE, DELTA_ARGS}},
	[EVENT] = {{"type", TYPE}, {"index", INDEX}, {"delta", INTO, BLOCK}},
	[BLOCK] = {{"type", TYPE},
		   {"text", PIECE, DELTA_TEXT},
		   {"thinking", PIECE, DELTA_THINKING},
		   {"partial_json", PIECE, DELTA_ARGS}},
	[ITEM] = {{"type", TYPE}, {"output_index", INDEX}, {"delta", PIECE, DELTA_TEXT}},
};

/* Each form: place where events begin, places that a piece passes, place of its index. */
static const struct {
	enum stream_delta_place root;
	unsigned needs, indexed;
} delta_forms[] = {
	[DELTAS_MESSAGES] = {EVENT, 1u << BLOCK, 1u << BLOCK},
	[DELTAS_CHAT] = {CHUNK, 1u << CHOICE | 1u << DELTA, 1u << CALL},
	[DELTAS_ITEMS] = {ITEM, 1u << ITEM, 1u << ITEM},
};

/* The kind of a piece by its word. */
static const struct {
	enum delta_form form;
	const char *word;
	enum delta_kind kind;
} delta_words[] = {
	{DELTAS_MESSAGES, "text_delta", DELTA_TEXT},
	{DELTAS_MESSAGES, "thinking_delta", DELTA_THINKING},
	{DELTAS_MESSAGES, "input_json_delta", DELTA_ARGS},
	{DELTAS_ITEMS, "response.output_text.delta", DELTA_TEXT},
	{DELTAS_ITEMS, "response.function_call_arguments.delta", DELTA_ARGS},
	{DELTAS_ITEMS, "response.reasoning_summary_text.delta", DELTA_THINKING},
	{DELTAS_ITEMS, "response.reasoning_text.delta", DELTA_THINKING},
};

struct hot {
	struct jscan w;
	struct delta *d;
	struct slice type; /* value of `type` in the innermost object that has one */
	unsigned places;   /* bits of places that were entered */
	bool index;
};

static bool hot_object(struct hot *h, enum stream_delta_place place);

static bool hot_piece(struct hot *h, enum delta_kind kind)
{
	struct slice raw;

	if (jscan_peek(&h->w) != '"')
		return jscan_skip(&h->w, &raw) && slice_is(raw, "null");
	if (!jscan_string(&h->w, &raw))
		return false;
	if (raw.len == 0)
		return true;
	if (h->d->kind != DELTA_EMPTY || !jscan_sound(raw, &h->d->escapes))
		return false; /* two pieces, or one to mend: a case for the slow path */
	h->d->kind = kind;
	h->d->text = raw;
	return true;
}

/* Enter {…}, or an object within a list: [{…}] or []; null is skipped. */
static bool hot_into(struct hot *h, enum stream_delta_place place)
{
	bool list = place == CHOICE || place == CALL;
	struct slice raw;

	if (jscan_peek(&h->w) != (list ? '[' : '{'))
		return jscan_skip(&h->w, &raw) && slice_is(raw, "null");
	if (!list)
		return hot_object(h, place);
	jscan_array(&h->w);
	return !jscan_item(&h->w) || (hot_object(h, place) && !jscan_item(&h->w));
}

static bool hot_member(struct hot *h, enum stream_delta_place place,
		       const struct stream_delta_member *m)
{
	struct slice raw = {"", 0};
	long n;

	switch (m->meaning) {
	case INTO:
		return hot_into(h, (enum stream_delta_place)m->of);
	case PIECE:
		return hot_piece(h, (enum delta_kind)m->of);
	case TYPE:
		return jscan_peek(&h->w) == '"' && jscan_string(&h->w, &h->type) &&
		       (place != EVENT || slice_is(h->type, "content_block_delta"));
	case NOTHING:
		return jscan_skip(&h->w, &raw) &&
		       (slice_is(raw, "null") || slice_is(raw, "[]") || slice_is(raw, "\"\""));
	case INDEX:
	case ZERO:
		break;
	}
	n = jscan_skip(&h->w, &raw) ? slice_number(raw, -1) : -1;
	if (m->meaning == ZERO)
		return n == 0;
	h->d->index = (unsigned)n;
	h->index = true;
	return n >= 0 && n < 100000;
}

static bool hot_object(struct hot *h, enum stream_delta_place place)
{
	struct slice key;

	h->places |= 1u << place;
	if (!jscan_object(&h->w))
		return false;
	while (jscan_key(&h->w, &key)) {
		const struct stream_delta_member *m = members[place];

		while (m->key != NULL && !slice_is(key, m->key))
			m++;
		if (m->key != NULL ? !hot_member(h, place, m) : !jscan_skip(&h->w, NULL))
			return false;
	}
	return !h->w.failed;
}

enum delta_kind delta_kind(enum delta_form form, struct slice word)
{
	for (size_t i = 0; i < ARRAY_LEN(delta_words); i++)
		if (delta_words[i].form == form && slice_is(word, delta_words[i].word))
			return delta_words[i].kind;
	return DELTA_NONE;
}

void delta_read(const char *s, size_t len, enum delta_form form, struct delta *d)
{
	const unsigned needs = delta_forms[form].needs, indexed = delta_forms[form].indexed;
	struct hot h = {.d = d};
	enum delta_kind kind;
	bool good;

	*d = (struct delta){.kind = DELTA_EMPTY, .text = {"", 0}};
	jscan_init(&h.w, s, len);
	good = jscan_peek(&h.w) == '{' && hot_object(&h, delta_forms[form].root) &&
	       jscan_peek(&h.w) == 0 && h.w.at == h.w.end && (h.places & needs) == needs &&
	       ((h.places & indexed) == 0 || h.index);
	if (good && form != DELTAS_CHAT) {
		kind = delta_kind(form, h.type);
		good = kind != DELTA_NONE &&
		       (d->kind == DELTA_EMPTY || form == DELTAS_ITEMS || d->kind == kind);
		if (d->kind != DELTA_EMPTY)
			d->kind = kind;
	}
	if (!good)
		d->kind = DELTA_NONE;
}

int delta_add(struct buf *out, const struct delta *d)
{
	return d->escapes ? jscan_text(out, d->text) : buf_add(out, d->text.s, d->text.len);
}
