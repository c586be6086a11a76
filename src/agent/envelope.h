/* Text of strangers, as a web tool hands it to a model: in blocks that name each text's origin and
 * that no text can end or begin.
 *
 *	[ava:page 1 https://example.com/a]
 *	whatever stands there
 *	[ava:end 1]
 *
 * Only tools of TOOL_WEB write these lines; in results of other tools, and within a block, the
 * form is broken (notice_escape). So a block in a recorded result was really fetched from its
 * URL, and citations and the question whether a URL was seen are answered from the record.
 * Pure. */
#ifndef AGENT_ENVELOPE_H
#define AGENT_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

#define ENVELOPE_PAGE   "page"
#define ENVELOPE_RESULT "result" /* a result of a search */

/* Write the lines around a text; only envelope_text adds between them. `note`: ours, for the
 * model; NULL: none. */
void envelope_begin(struct buf *out, const char *kind, unsigned n, const char *url);
void envelope_end(struct buf *out, unsigned n, const char *note);
/* Append `s` without hidden characters (utf8_plain) and without the form. Returns
 * buf_check(out). */
int envelope_text(struct buf *out, const char *s, size_t len);
/* Append text that a tool returns outside of envelopes, with hidden characters shown
 * (utf8_shown), without the form. Returns buf_check(out). */
int envelope_other(struct buf *out, const char *s, size_t len);
/* Append a text for a context, below what is there: each line of it begins with "> ", however a
 * reader ends lines, so that none can stand as a heading or a fence of the message it comes into.
 * The form is broken where the context is written (prompt_task). Returns buf_check(out). */
int envelope_quote(struct buf *out, const char *s, size_t len);

struct envelope {
	const char *url, *text; /* *borrowed*, not terminated; text without the lines around it */
	size_t url_len, text_len;
};
/* The next block of a tool's result from *at on; false: none. */
bool envelope_next(const char *s, size_t len, size_t *at, struct envelope *e);

/* Copy without the backslashes that Markdown and JSON put before non-letters, as a reader takes
 * the text. `to` has room for `len` bytes. Returns the length. */
size_t envelope_unescape(char *to, const char *s, size_t len);

/* Does the text hold `url` as a whole, not as the beginning of another one? */
bool envelope_names(const char *s, size_t len, const char *url);

#endif
