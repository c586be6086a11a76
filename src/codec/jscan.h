/* A cursor over JSON text: no tree, no allocation, strings stay where they
 * are. For request bodies of megabytes that are read before each call: a tree
 * of them costs ten times the time and the memory.
 *
 *	jscan_init(&w, s, len);
 *	if (jscan_object(&w))
 *		while (jscan_key(&w, &key))
 *			jscan_skip(&w, &value);
 *	if (w.failed) ...
 *
 * After each key or item exactly one value must be taken. Any fault sets
 * `failed`, and from then on every call says "no". */
#ifndef CODEC_JSCAN_H
#define CODEC_JSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define JSCAN_MAX_DEPTH 64u

struct slice { /* *borrowed* from the text it was cut out of */
	const char *s;
	size_t len;
};

struct jscan {
	const char *at, *end;
	char last; /* '{' or '[' just opened, 'v' after a value, ':' after a key or comma */
	bool failed;
	bool loose; /* accepts NaN and Infinity, skips too deep values */
};

void jscan_init(struct jscan *w, const char *s, size_t len);
/* First byte of the next value, 0 at the end of the text. */
char jscan_peek(struct jscan *w);
bool jscan_object(struct jscan *w); /* enter an object; fails on any other value */
bool jscan_array(struct jscan *w);
/* Next member or item; false at the closing bracket, which is consumed. */
bool jscan_key(struct jscan *w, struct slice *key);
bool jscan_item(struct jscan *w);
/* Take a string, raw: without its quotes, escapes unresolved. */
bool jscan_string(struct jscan *w, struct slice *raw);
/* Skip any value; `raw` may be NULL. */
bool jscan_skip(struct jscan *w, struct slice *raw);
/* Skip to behind the closing bracket of the next value, whose inside may be damaged or deep. */
bool jscan_pass(struct jscan *w);

/* Scan the inside of an array: values joined by commas. jscan_next returns each unchanged. */
void jscan_list(struct jscan *w, const char *s, size_t len);
bool jscan_next(struct jscan *w, struct slice *raw); /* `raw` may be NULL */
/* Keep the values that `stays` accepts, in place; returns the new length. */
size_t jscan_keep(char *s, size_t len, bool (*stays)(struct slice v));
/* The unparsed value of a member of the text's object, the last one of that name; empty: absent. */
struct slice jscan_member(const char *s, size_t len, const char *name);
/* The first member of that name in a foreign object that may be damaged inside a value, or cut
 * off behind it; text before its bracket is skipped. */
struct slice jscan_first(const char *s, size_t len, const char *name);
/* Would JavaScript's own parser accept the text? Asked before writing a file that such programs
 * read too. */
bool jscan_is_json(const char *s, size_t len);
bool slice_is(struct slice s, const char *word);
/* Does the line begin with `with`? Lines that ava writes begin with their kind. */
bool jscan_begins(const char *s, size_t len, const char *with);
/* The value of a whole number of at most 18 digits; otherwise `fallback`. */
long slice_number(struct slice s, long fallback);
/* The length of the escape at `s`, a backslash, and its character in *cp, a lone surrogate as
 * such; 0: no JSON escape. */
size_t jscan_escape(const char *s, const char *end, uint32_t *cp);
/* Would a strict reader take this string? JSON's escapes for characters, valid UTF-8, nothing
 * below U+0020. *escapes: it has escapes. */
bool jscan_sound(struct slice raw, bool *escapes);
/* Write a raw string with its escapes resolved to `out` (room for raw.len bytes); returns the
 * length. Lone surrogates and \u0000 become U+FFFD. */
size_t jscan_unescape(struct slice raw, char *out);
/* As jscan_unescape, appended to `out`. 0, AVA_ENOMEM, AVA_ETOOBIG. */
int jscan_text(struct buf *out, struct slice raw);
/* As jscan_text, for an unsound string: bytes that are no character become U+FFFD, too. AVA_EINVAL:
 * an escape that JSON does not have. */
int jscan_mended(struct buf *out, struct slice raw);

/* ---- lines of a JSONL file: whole ones only, a torn tail is told apart */

/* Next line of [*at, len): sets *line and *line_len (without \n), moves *at past it and returns
 * 1; 0 at the end; -1 when the rest has no \n (a torn tail: *line and *line_len show it, *at is
 * not moved). */
int jsonl_next(const char *data, size_t len, size_t *at, const char **line, size_t *line_len);
/* The next name of a head of requests (provider/head.h) that lines of messages refer to, from *at
 * on; false: no more. */
bool head_next(const char *lines, size_t len, size_t *at, struct slice *name);
/* Number of whole lines in `data`. */
uint32_t jsonl_count(const char *data, size_t len);

#endif
