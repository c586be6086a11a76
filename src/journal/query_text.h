/* What a search looks for in a line: a literal text or a PCRE2 expression,
 * with smart case: letters of both cases are the same unless there is a
 * capital one in what is looked for. */
#ifndef JOURNAL_QUERY_TEXT_H
#define JOURNAL_QUERY_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct ava_error;
struct query_regex; /* opaque: PCRE2 */

#define QUERY_TEXT_MAX 4096 /* bytes of what is looked for */

struct query_text {
	/* As it stands in a line, JSON escapes and all; or what `regex` cannot match
	 * without; owned; NULL: none. */
	char *needle;
	size_t len;     /* of it */
	size_t rare[2]; /* where its two rarest bytes stand, the first before the second */
	bool fold;      /* ASCII letters of both cases are the same */
	struct query_regex *regex; /* owned; NULL: none */
};

/* NULL, NULL: everything matches. With both, both must. AVA_EINVAL (too long,
 * or not an expression: `err` says where), AVA_ENOMEM. */
int query_text_init(struct query_text *t, const char *literal, const char *regex,
		    struct ava_error *err);
void query_text_fini(struct query_text *t); /* accepts a zeroed one */

/* Where the needle stands first; NULL: nowhere. Only when there is a needle. */
const char *query_text_find(const struct query_text *t, const char *s, size_t len);
/* 1, 0, or AVA_ETOOBIG: the expression costs too much on this line. */
int query_text_regex(const struct query_text *t, const char *s, size_t len);

#endif
