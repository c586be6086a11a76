/* What jansson says of a hot delta, for test_delta.c and fuzz_delta.c. */
#ifndef UNIT_DELTA_ORACLE_H
#define UNIT_DELTA_ORACLE_H

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "codec/json.h"
#include "provider/delta.h"

/* The one string of `o` that is not empty among the keys; NULL: none. More
 * than one, or another kind of value: *odd. */
static inline const json_t *oracle_one(const json_t *o, const char *const *keys,
				       const enum delta_kind *kinds, int n, enum delta_kind *kind,
				       bool *odd)
{
	const json_t *found = NULL;

	for (int i = 0; i < n; i++) {
		const json_t *v = json_object_get(o, keys[i]);

		if (v == NULL || json_is_null(v))
			continue;
		if (!json_is_string(v) || (json_string_length(v) > 0 && found != NULL)) {
			*odd = true;
		} else if (json_string_length(v) > 0) {
			found = v;
			*kind = kinds[i];
		}
	}
	return found;
}

static inline bool oracle_says(const struct delta *d, enum delta_kind kind, int64_t index,
			       const json_t *text)
{
	struct buf b;
	bool same;

	if (text == NULL)
		return d->kind == DELTA_EMPTY;
	buf_init(&b, 64u << 20);
	same = d->kind == kind && (index < 0 || d->index == index) && delta_add(&b, d) == 0 &&
	       b.len == json_string_length(text) &&
	       memcmp(b.len > 0 ? b.data : "", json_string_value(text), b.len) == 0;
	buf_fini(&b);
	return same;
}

static inline bool oracle_messages(const json_t *v, const struct delta *d)
{
	static const char *const types[] = {"text_delta", "input_json_delta", "thinking_delta"};
	static const char *const keys[] = {"text", "partial_json", "thinking"};
	static const enum delta_kind kinds[] = {DELTA_TEXT, DELTA_ARGS, DELTA_THINKING};
	const json_t *delta = json_object_get(v, "delta"), *text;
	const char *type = json_get_str(v, "type"), *inner = json_get_str(delta, "type");

	if (type == NULL || inner == NULL || strcmp(type, "content_block_delta") != 0)
		return false;
	for (int i = 0; i < 3; i++) {
		text = json_object_get(delta, keys[i]);
		if (strcmp(inner, types[i]) == 0 && json_is_string(text))
			return oracle_says(d, kinds[i], json_get_int(v, "index", -1),
					   json_string_length(text) > 0 ? text : NULL);
	}
	return false;
}

static inline bool oracle_chunk(const json_t *v, const struct delta *d)
{
	static const char *const keys[] = {"content", "reasoning_content", "reasoning"};
	static const enum delta_kind kinds[] = {DELTA_TEXT, DELTA_THINKING, DELTA_REASONING};
	const json_t *choices = json_object_get(v, "choices");
	const json_t *choice = json_array_get(choices, 0);
	const json_t *delta = json_object_get(choice, "delta");
	const json_t *calls = json_object_get(delta, "tool_calls");
	const json_t *call = json_array_get(calls, 0);
	const json_t *args = json_object_get(json_object_get(call, "function"), "arguments");
	const json_t *finish = json_object_get(choice, "finish_reason");
	enum delta_kind kind = DELTA_EMPTY;
	bool odd = false;
	const json_t *text = oracle_one(delta, keys, kinds, 3, &kind, &odd);

	if (json_array_size(choices) != 1 || !json_is_object(delta) || odd ||
	    json_get_int(choice, "index", 0) != 0 || json_array_size(calls) > 1)
		return false;
	if (finish != NULL && !json_is_null(finish))
		return false;
	if (json_is_string(args) && json_string_length(args) > 0)
		return text == NULL &&
		       oracle_says(d, DELTA_ARGS, json_get_int(call, "index", -1), args);
	return oracle_says(d, kind, -1, text);
}

/* True: the scanner passed, or said what jansson says. */
static inline bool oracle_agrees(bool chat, const char *s, size_t len)
{
	struct delta d;
	json_t *v;
	bool good;

	if (chat)
		delta_chunk(s, len, &d);
	else
		delta_messages(s, len, &d);
	if (d.kind == DELTA_NONE)
		return true;
	v = json_parse(s, len, NULL);
	good = v != NULL && (chat ? oracle_chunk(v, &d) : oracle_messages(v, &d));
	json_decref(v);
	return good;
}

#endif
