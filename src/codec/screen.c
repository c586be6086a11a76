/* A terminal's text; see screen.h.
 *
 * A line is held until it ends, since after \r the next text replaces it. A line with more than
 * a quarter of non-UTF-8 bytes or control characters is binary; behind it some lines of plain
 * text must come before text is believed again. Sequences: ECMA-48; an unfinished one ends with
 * its line. Without memory text is left out. */
#include "codec/screen.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define BAD_FEW    8    /* so few bad bytes do not make a line binary */
#define TEXT_AGAIN 1024 /* bytes of text in a row that end a binary part */

enum { PLAIN, ESCAPE, CONTROL, STRING };

void screen_init(struct screen *s,
		 void (*shown)(const char *text, size_t len, bool stays, void *user), void *user)
{
	*s = (struct screen){.shown = shown, .user = user};
	buf_init(&s->held, SCREEN_HELD + TEXT_AGAIN);
}

/* Show the whole lines. */
static void screen_show(struct screen *s)
{
	char said[64];

	snprintf(said, sizeof(said), "(binary, %llu bytes)\n", (unsigned long long)s->binary);
	if (s->binary > 0)
		s->shown(said, strlen(said), true, s->user);
	if (s->start > 0)
		s->shown(s->held.data, s->start, true, s->user);
	buf_drop(&s->held, s->start);
	s->binary = s->start = 0;
}

static bool is_binary(const struct screen *s)
{
	return s->binary > 0 ? s->bad > 0 : s->bad > BAD_FEW && 4 * s->bad > s->raw;
}

static void screen_end_line(struct screen *s)
{
	if (is_binary(s)) {
		if (s->binary == 0)
			screen_show(s);
		s->binary += s->start + s->raw;
		buf_reset(&s->held);
	}
	s->start = s->held.len;
	s->raw = s->bad = s->need = 0;
	s->returned = false;
	if (s->start > (s->binary ? TEXT_AGAIN : SCREEN_HELD / 2))
		screen_show(s);
}

/* Count bytes that are no UTF-8, and control characters. A single NUL may separate names;
 * several are binary. */
static void screen_judge(struct screen *s, unsigned char c)
{
	bool goes_on = (c & 0xc0) == 0x80;

	s->bad += (s->need > 0) != goes_on || c == 0x7f || c > 0xf4 || c == 0xc0 || c == 0xc1 ||
		  (c < ' ' && !strchr("\t\v\f\a\n", c)) ||
		  (c == '\0' && (s->last == '\0' || s->binary > 0));
	s->need = goes_on ? s->need - (s->need > 0) : (c >= 0xc0) + (c >= 0xe0) + (c >= 0xf0);
}

static void write_char(struct screen *s, char c)
{
	if (s->returned && s->held.len > s->start && !is_binary(s))
		s->shown(s->held.data + s->start, s->held.len - s->start, false, s->user);
	if (s->returned)
		s->held.len = s->start;
	s->returned = false;
	while (c == '\b' && s->held.len > s->start &&
	       ((unsigned char)s->held.data[--s->held.len] & 0xc0) == 0x80)
		;
	if (c == '\b')
		return;
	screen_judge(s, (unsigned char)c);
	if (c != '\0')
		buf_addc(&s->held, c);
	else if (s->last != '\0')
		buf_adds(&s->held, "\xe2\x90\x80"); /* a model's text may have no NUL */
	s->last = c;
}

static bool in_sequence(struct screen *s, char c)
{
	int state = s->state;

	if (state == STRING)
		s->state = c == '\a' ? PLAIN : c == '\x1b' ? ESCAPE : STRING;
	else if (state == ESCAPE && c != '\0' && strchr("[]P_^X", c))
		s->state = c == '[' ? CONTROL : STRING;
	else if (c < ' ' || c >= (state == ESCAPE ? '0' : '@'))
		s->state = PLAIN;
	return state == STRING || (state != PLAIN && c >= ' ' && c < 0x7f);
}

static void screen_take(struct screen *s, char c)
{
	s->raw++;
	if (c == '\n') {
		s->state = PLAIN;
		s->returned = false;
		write_char(s, c);
		screen_end_line(s);
	} else if (!in_sequence(s, c)) {
		s->returned = s->returned || c == '\r';
		if (c == '\x1b')
			s->state = ESCAPE;
		else if (c != '\r')
			write_char(s, c);
	}
}

void screen_feed(struct screen *s, const char *bytes, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		size_t most = MIN(len - i, SCREEN_HELD - s->held.len);

		for (n = 0; n < most && bytes[i + n] >= ' ' && bytes[i + n] < 0x7f; n++)
			;
		if (n > 1 && s->state == PLAIN && !s->returned && s->need == 0) {
			s->raw += n;
			buf_add(&s->held, bytes + i, n);
			s->last = ' ';
		} else {
			n = 1;
			screen_take(s, bytes[i]);
		}
		if (s->held.len >= SCREEN_HELD)
			screen_end_line(s);
	}
	if (s->binary == 0)
		screen_show(s);
}

void screen_fini(struct screen *s)
{
	screen_end_line(s);
	screen_show(s);
	buf_fini(&s->held);
}
