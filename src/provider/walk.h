/* A cursor over JSON text: no tree, no allocation, strings stay where they
 * are. For request bodies of megabytes that are read before each call: a tree
 * of them costs ten times the time and the memory.
 *
 *	walk_init(&w, s, len);
 *	if (walk_object(&w))
 *		while (walk_key(&w, &key))
 *			walk_skip(&w, &value);
 *	if (w.failed) ...
 *
 * After each key or item exactly one value must be taken. Any fault sets
 * `failed`, and from then on every call says "no". */
#ifndef PROVIDER_WALK_H
#define PROVIDER_WALK_H

#include <stdbool.h>
#include <stddef.h>

#define WALK_MAX_DEPTH 64u

struct slice { /* *borrowed* from the text it was cut out of */
	const char *s;
	size_t len;
};

struct walk {
	const char *at, *end;
	char last; /* '{' or '[' just opened, 'v' after a value, ':' after a key or comma */
	bool failed;
};

void walk_init(struct walk *w, const char *s, size_t len);
/* First byte of the value that comes next, 0 at the end of the text. */
char walk_peek(struct walk *w);
bool walk_object(struct walk *w); /* into it; fails when it is none */
bool walk_array(struct walk *w);
/* Next member or item; false at the closing bracket, which is consumed. */
bool walk_key(struct walk *w, struct slice *key);
bool walk_item(struct walk *w);
/* A string, raw: without its quotes, escapes as they stand. */
bool walk_string(struct walk *w, struct slice *raw);
/* Any value; `raw` may be NULL. */
bool walk_skip(struct walk *w, struct slice *raw);

bool slice_is(struct slice s, const char *word);
/* Escapes resolved into `out` (room for raw.len bytes); returns the length.
 * Lone surrogates and \u0000 become U+FFFD. */
size_t walk_unescape(struct slice raw, char *out);

#endif
