/* What strangers wrote, as a tool of the web hands it to a model: in blocks that say where each
 * text is from, and that no text can end or begin.
 *
 *	[ava:page 1 https://example.com/a]
 *	whatever stands there
 *	[ava:end 1]
 *
 * Only tools of TOOL_WEB write these lines; in all that others return, and within a block, the
 * form is broken (notice_escape). So a block in a result of the record is what was fetched from
 * its URL, and citations and the question whether a URL was seen are answered from the record.
 * Pure. */
#ifndef AGENT_ENVELOPE_H
#define AGENT_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

#define ENVELOPE_PAGE   "page"
#define ENVELOPE_RESULT "result" /* of a search */

/* The lines around a text; between them what envelope_text adds, and nothing else. `note`: for the
 * model, ours; NULL: none. */
void envelope_begin(struct buf *out, const char *kind, unsigned n, const char *url);
void envelope_end(struct buf *out, unsigned n, const char *note);
/* `s` without what is hidden in it (utf8_plain) and without the form. Returns buf_check(out). */
int envelope_text(struct buf *out, const char *s, size_t len);
/* What a tool returns in no envelope: as it stands there, what is hidden in it shown (utf8_shown),
 * without the form. Returns buf_check(out). */
int envelope_other(struct buf *out, const char *s, size_t len);

struct envelope {
	const char *url, *text; /* *borrowed*, not terminated; text without the lines around it */
	size_t url_len, text_len;
};
/* The next block of a result of a tool from *at on; false: there is none. */
bool envelope_next(const char *s, size_t len, size_t *at, struct envelope *e);

/* Copy without the backslashes that Markdown and JSON put before what is no letter: as a reader
 * takes it. `to` has room for `len` bytes. Returns the length. */
size_t envelope_unescape(char *to, const char *s, size_t len);

/* Does `url` stand in the text as a whole: not as the beginning of another one? */
bool envelope_names(const char *s, size_t len, const char *url);

#endif
