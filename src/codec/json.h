/* JSON: a writer for lines whose key order and bytes matter, and glue over jansson for reading.
 * jansson is 12 times slower at writing a line, and prints 0.1 as 0.10000000000000001. */
#ifndef CODEC_JSON_H
#define CODEC_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct ava_error;

/* ---- writer: it places commas itself; nothing is checked but depth. Usage: jw_init;
 * jw_object(w, NULL); jw_str(w, "key", s); jw_end(w). */
struct jw {
	struct buf *out; /* borrowed */
	unsigned depth;
	uint64_t array; /* bit d: level d is an array */
	uint64_t some;  /* bit d: level d has an element */
};

void jw_init(struct jw *w, struct buf *out);
/* `key` is NULL inside arrays and at the top. Keys are literals: not escaped. */
void jw_object(struct jw *w, const char *key);
void jw_array(struct jw *w, const char *key);
void jw_end(struct jw *w); /* closes the innermost object or array */
void jw_str(struct jw *w, const char *key, const char *s); /* NULL: null */
void jw_strn(struct jw *w, const char *key, const char *s, size_t len);
void jw_int(struct jw *w, const char *key, int64_t n);
void jw_bool(struct jw *w, const char *key, bool v);
void jw_null(struct jw *w, const char *key);
/* Fixed point: 23500 with 4 decimals prints 2.35; at least one decimal
 * ("0.0"), no trailing zeros. Money: micro-USD as cents = 4 decimals. */
void jw_fixed(struct jw *w, const char *key, int64_t n, int decimals);
void jw_time(struct jw *w, const char *key, int64_t wall_ms); /* as clock_iso writes it */
/* Write bytes that are JSON already. */
void jw_raw(struct jw *w, const char *key, const char *json, size_t len);
/* Write the words of a text, with a blank between two, as an array of strings. NULL is "". */
void jw_words(struct jw *w, const char *key, const char *words);
/* Write a string cut to `max_chars` code points, and "cut":true after it as a key of the same
 * object when something was left out. */
void jw_preview(struct jw *w, const char *key, const char *s, size_t len, size_t max_chars);

/* Append a string, quoted and escaped. Input that is not valid UTF-8 is written with U+FFFD for
 * each bad byte, and so is NUL, which many readers refuse; U+2028/2029, DEL and C0 controls are
 * escaped (\n \r \t \b \f, else \u00NN), so that the output is one line for every reader. */
int json_escape(struct buf *out, const char *s, size_t len);
/* Length of the leading run that json_escape copies unchanged. */
size_t json_plain(const char *s, size_t len);
/* Append a number as jw_int and jw_fixed write it. */
int json_add_int(struct buf *out, int64_t n);
int json_add_fixed(struct buf *out, int64_t n, int decimals);

/* ---- reading. Strict, for ava's own text and configuration: rejects duplicate keys, trailing
 * bytes, NaN, depth > 64, \u0000 and integers over 64 bits; any value may stand at the top.
 * Returns a new reference or NULL with err ("line 3: ..."): AVA_EINVAL, AVA_ENOMEM. */
#define JSON_DEPTH_MAX 64
json_t *json_parse(const char *s, size_t len, struct ava_error *err);
/* For foreign text, each file, line or message: anything that JavaScript or Python reads. A BOM
 * is skipped; bytes that are no UTF-8, half surrogates, NUL and control characters (but tab and
 * line ends) in strings become U+FFFD; an integer over 64 bits a real, a real over double its
 * largest, NaN null; of duplicate keys the last counts; a value nested deeper than
 * JSON_OTHERS_DEPTH is null, so that it fits into an answer of ava's. NULL, with err: the text
 * is no JSON, which the caller counts and reports. */
#define JSON_OTHERS_DEPTH (JSON_DEPTH_MAX - 8)
json_t *json_read_others(const char *s, size_t len, struct ava_error *err);
/* As json_read_others, for text that needs no repair, so that every JSON reader reads the same;
 * else, and maybe for sound text too, NULL. */
json_t *json_read_plain(const char *s, size_t len);
/* As json_read_others, but for depth and duplicate keys, for text of a model: also in a fence or a
 * tag, with surplus closing brackets, raw line ends and backslashes in strings, 'quotes', True,
 * False and None, a comma before a bracket. Nothing missing is added. */
json_t *json_parse_lenient(const char *s, size_t len, struct ava_error *err);

/* The value of a member, borrowed; NULL or `fallback` when absent or of another type. */
const char *json_get_str(const json_t *o, const char *key);
const char *json_str(const json_t *o, const char *key); /* as json_get_str, but "" for NULL */
int64_t json_time(const json_t *v); /* of a string as clock_parse_iso reads it; else -1 */
/* The type of a value as JSON Schema calls it: "object", "string", …; "number" has a fraction. */
const char *json_type_name(const json_t *v);
int64_t json_get_int(const json_t *o, const char *key, int64_t fallback);
bool json_get_bool(const json_t *o, const char *key, bool fallback);
/* A text for people, terminal controls made visible (utf8_terminal): a new reference; NULL for
 * NULL, without memory and beyond 8 MB. */
json_t *json_shown(const char *text);
/* Decimal number to fixed point (2.35 with 4 decimals: 23500). */
int64_t json_get_fixed(const json_t *o, const char *key, int decimals, int64_t fallback);
/* Append a value: compact, keys in insertion order, strings as json_escape writes them, reals with
 * as few digits (from 15 on) as read back the same: 0.1, not 0.10000000000000001. AVA_ETOOBIG also
 * when nested deeper than JSON_DEPTH_MAX. */
int json_dump(struct buf *out, const json_t *v);

#endif
