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

/* ---- what the scanner must not leave to jansson */

static inline bool oracle_scalar(const json_t *v)
{
	json_int_t n = json_integer_value(v);

	return v == NULL || json_is_string(v) || json_is_null(v) || json_is_boolean(v) ||
	       (json_is_integer(v) && n >= 0 && n <= 999999999999999999);
}

static inline bool oracle_null(const json_t *v)
{
	return v == NULL || json_is_null(v);
}

static inline bool oracle_word(const json_t *v)
{
	return oracle_null(v) || json_is_string(v);
}

static inline bool oracle_empty(const json_t *v)
{
	return oracle_null(v) || (json_is_string(v) && json_string_length(v) == 0);
}

static inline bool oracle_small(const json_t *v, json_int_t most)
{
	return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= most;
}

/* `o` is an object, and its keys are among `keys` (blanks between them). */
static inline bool oracle_keys(const json_t *o, const char *keys)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v)
	{
		const char *at = strstr(keys, key);
		size_t len = strlen(key);

		while (at != NULL && ((at > keys && at[-1] != ' ') || (at[len] && at[len] != ' ')))
			at = strstr(at + 1, key);
		if (len == 0 || at == NULL)
			return false;
	}
	return json_is_object(o);
}

static inline bool oracle_call(const json_t *call)
{
	const json_t *f = json_object_get(call, "function");

	return oracle_keys(call, "index id type function") &&
	       oracle_small(json_object_get(call, "index"), 99999) &&
	       oracle_empty(json_object_get(call, "id")) &&
	       oracle_scalar(json_object_get(call, "type")) &&
	       (f == NULL ||
		(oracle_keys(f, "name arguments") && oracle_empty(json_object_get(f, "name")) &&
		 oracle_word(json_object_get(f, "arguments"))));
}

static inline bool oracle_delta(const json_t *d)
{
	static const char *const texts[] = {"content", "reasoning", "reasoning_content"};
	const json_t *calls = json_object_get(d, "tool_calls"), *call = json_array_get(calls, 0);
	const json_t *details = json_object_get(d, "reasoning_details");
	const json_t *f = json_object_get(call, "function");
	unsigned said = json_string_length(json_object_get(f, "arguments")) > 0;

	for (int i = 0; i < 3; i++) {
		if (!oracle_word(json_object_get(d, texts[i])))
			return false;
		said += json_string_length(json_object_get(d, texts[i])) > 0;
	}
	return said <= 1 &&
	       oracle_keys(d, "content role tool_calls reasoning reasoning_content "
			      "reasoning_details refusal function_call") &&
	       oracle_scalar(json_object_get(d, "role")) &&
	       oracle_null(json_object_get(d, "refusal")) &&
	       oracle_null(json_object_get(d, "function_call")) &&
	       (oracle_null(details) || (json_is_array(details) && !json_array_size(details))) &&
	       (oracle_null(calls) || (json_is_array(calls) && json_array_size(calls) <= 1)) &&
	       (call == NULL || oracle_call(call));
}

/* A chunk that is hot, as jansson sees it. */
static inline bool oracle_hot_chunk(const json_t *v)
{
	static const char *const scalars[] = {"id",       "object",       "created",
					      "model",    "service_tier", "system_fingerprint",
					      "provider", "obfuscation"};
	static const char *const nulls[] = {"finish_reason", "logprobs", "native_finish_reason",
					    "stop_reason", "token_ids"};
	const json_t *choices = json_object_get(v, "choices"), *choice = json_array_get(choices, 0);
	const json_t *index = json_object_get(choice, "index");
	bool hot = oracle_keys(v, "id object created model choices system_fingerprint service_tier "
				  "provider obfuscation usage error prompt_token_ids") &&
		   json_array_size(choices) == 1 &&
		   oracle_keys(choice, "index delta finish_reason logprobs native_finish_reason "
				       "stop_reason token_ids") &&
		   (index == NULL || oracle_small(index, 0)) &&
		   oracle_null(json_object_get(v, "usage")) &&
		   oracle_null(json_object_get(v, "error")) &&
		   oracle_null(json_object_get(v, "prompt_token_ids"));

	for (int i = 0; i < 8; i++)
		hot = hot && oracle_scalar(json_object_get(v, scalars[i]));
	for (int i = 0; i < 5; i++)
		hot = hot && oracle_null(json_object_get(choice, nulls[i]));
	return hot && oracle_delta(json_object_get(choice, "delta"));
}

/* The same of the Messages form; the order of its members is not to be seen. */
static inline bool oracle_hot_messages(const json_t *v)
{
	static const char *const types[] = {"text_delta", "input_json_delta", "thinking_delta"};
	static const char *const keys[] = {"text", "partial_json", "thinking"};
	const json_t *d = json_object_get(v, "delta");
	const char *type = json_get_str(v, "type"), *inner = json_get_str(d, "type");

	if (type == NULL || inner == NULL || strcmp(type, "content_block_delta") != 0 ||
	    json_object_size(v) != 3 || json_object_size(d) != 2 ||
	    !oracle_small(json_object_get(v, "index"), 99999))
		return false;
	for (int i = 0; i < 3; i++)
		if (strcmp(inner, types[i]) == 0)
			return json_is_string(json_object_get(d, keys[i]));
	return false;
}

/* ---- both sides */

static inline void oracle_scan(bool chat, const char *s, size_t len, struct delta *d)
{
	if (chat)
		delta_chunk(s, len, d);
	else
		delta_messages(s, len, d);
}

/* True: the scanner passed, or said what jansson says. */
static inline bool oracle_agrees(bool chat, const char *s, size_t len)
{
	struct delta d;
	json_t *v;
	bool good;

	oracle_scan(chat, s, len, &d);
	if (d.kind == DELTA_NONE)
		return true;
	v = json_parse(s, len, NULL);
	good = v != NULL && (chat ? oracle_chunk(v, &d) : oracle_messages(v, &d));
	json_decref(v);
	return good;
}

/* True: they agree, and the scanner took it exactly when it is hot. For texts
 * whose members stand in the services' order, without escapes in keys and -0. */
static inline bool oracle_same(bool chat, const char *s, size_t len)
{
	json_t *v = json_parse(s, len, NULL);
	bool hot = v != NULL && (chat ? oracle_hot_chunk(v) : oracle_hot_messages(v));
	struct delta d;

	json_decref(v);
	oracle_scan(chat, s, len, &d);
	return (d.kind != DELTA_NONE) == hot && oracle_agrees(chat, s, len);
}

/* Any bytes between the quotes of a text: the scanner takes the very strings
 * that jansson takes. Bytes that close the string early make another event,
 * which needs only be agreed about. */
static inline bool oracle_string(const char *s, size_t len)
{
	struct buf b;
	bool good;

	for (size_t i = 0; i < len; i++) {
		if (s[i] == '"')
			return true;
		i += s[i] == '\\' && i + 1 < len;
	}
	buf_init(&b, len + 128);
	buf_adds(&b, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
		     "\"text_delta\",\"text\":\"");
	buf_add(&b, s, len);
	buf_adds(&b, "\"}}");
	good = buf_check(&b) == 0 && oracle_same(false, b.data, b.len);
	buf_fini(&b);
	return good;
}

#endif
