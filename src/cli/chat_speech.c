/* What Ava says; chat_speech.h.
 *
 * Happy path: pieces are gathered; whatever is a whole block is shown; the
 * durable text is a prefix of what was gathered, or goes beyond it, and its rest
 * is shown. Frames may run ahead of the durable text of an earlier reply, so the
 * gathered text goes on behind it.
 *
 * A text that differs from what was shown (the service broke off and the model
 * began anew, or frames were left out) is shown once more from its start. */
#include "cli/chat_speech.h"

#include <string.h>

#include "base/util.h"
#include "cli/markdown.h"
#include "cli/term.h"

#define NAME "Ava: "

void speech_init(struct speech *s)
{
	*s = (struct speech){0};
	buf_init(&s->text, SPEECH_MAX);
	buf_init(&s->before, SPEECH_MAX);
}

void speech_fini(struct speech *s)
{
	buf_fini(&s->text);
	buf_fini(&s->before);
}

static bool begins_with(const struct buf *b, const char *text, size_t len)
{
	return b->len >= len && (len == 0 || memcmp(b->data, text, len) == 0);
}

/* After a lost connection the text may come again from its start: as much of it
 * as was shown counts as shown. */
static void match_before(struct speech *s)
{
	size_t len = s->before.len;

	if (len == 0 || s->text.len < len)
		return;
	if (begins_with(&s->text, s->before.data, len))
		s->shown = MAX(s->shown, len);
	buf_reset(&s->before);
}

void speech_piece(struct speech *s, const char *text, size_t len)
{
	if (buf_add(&s->text, text, len) != 0) {
		buf_reset(&s->text);
		s->shown = 0;
	}
	match_before(s);
}

static size_t whole(const struct speech *s)
{
	return s->before.len == 0 && s->text.len > 0
		       ? markdown_whole(s->text.data, s->text.len, s->shown)
		       : 0;
}

bool speech_ready(const struct speech *s)
{
	return whole(s) > s->shown;
}

const char *speech_tail(const struct speech *s, size_t *len)
{
	if (s->before.len > 0 || s->text.len <= s->shown)
		return NULL;
	*len = s->text.len - s->shown;
	return s->text.data + s->shown;
}

static size_t blank_start(const char *t, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && (t[i] == '\n' || t[i] == ' ' || t[i] == '\r'); i++)
		if (t[i] == '\n')
			n = i + 1;
	return n;
}

static void part(struct speech *s, FILE *f, const char *t, size_t len)
{
	size_t skip = blank_start(t, len), column = 0;

	if (skip > 0)
		s->gap = s->open;
	t += skip;
	len -= skip;
	if (len == 0)
		return;
	if (s->gap && s->open && !markdown_is_item(t, len))
		fputc('\n', f);
	if (!s->open) {
		term_colour(f, TERM_BOLD);
		fputs(NAME, f);
		term_colour(f, TERM_PLAIN);
		column = strlen(NAME);
		s->open = true;
	}
	s->gap = len >= 2 && t[len - 1] == '\n' && t[len - 2] == '\n';
	markdown_show(f, t, len, column);
}

void speech_show(struct speech *s, FILE *f)
{
	size_t end = whole(s);

	if (end <= s->shown)
		return;
	part(s, f, s->text.data + s->shown, end - s->shown);
	s->shown = end;
}

void speech_whole(struct speech *s, FILE *f, const char *text, size_t len)
{
	size_t shown = s->shown;

	if (s->before.len > 0 && len >= s->before.len &&
	    memcmp(text, s->before.data, s->before.len) == 0)
		shown = s->before.len;
	else if (!(begins_with(&s->text, text, MIN(len, shown)) && shown <= len))
		shown = 0; /* another text than the one that was shown */
	if (shown < len)
		part(s, f, text + shown, len - shown);
	if (begins_with(&s->text, text, len) && s->text.len > 0) {
		buf_drop(&s->text, len);
		s->shown = s->shown > len ? s->shown - len : 0;
	} else {
		buf_reset(&s->text);
		s->shown = 0;
	}
	buf_reset(&s->before);
	s->open = s->text.len > 0 && s->shown > 0;
	s->gap = false;
}

void speech_cut(struct speech *s)
{
	if (s->shown > 0) {
		buf_reset(&s->before);
		buf_add(&s->before, s->text.data, s->shown);
	}
	buf_reset(&s->text);
	s->shown = 0;
}

void speech_close(struct speech *s)
{
	s->open = s->gap = false;
}
