/* Keys; line_keys.h.
 *
 * Happy path: bytes are read into `in`; line_keys_next takes one character, or
 * a whole escape sequence once its end is there, which it then gives out byte
 * by byte, since that is what the editor's key tables want. `ESC [200~` begins a
 * paste, which goes on until `ESC [201~` whatever it holds.
 *
 * What can fail: bytes that are no UTF-8 become U+FFFD, a sequence that never
 * ends is given out as it stands, memory for a paste is counted as lost. */
#include "cli/line_keys.h"

#include <string.h>

#include "base/util.h"
#include "codec/utf8.h"

#define ESC         0x1b
#define QUOTE       0x16 /* ^V */
#define PASTE_BEGIN "\033[200~"
#define PASTE_END   "\033[201~"
#define MARK_LEN    6
#define FOCUS_LEN   3 /* CSI I, CSI O */

void line_keys_init(struct line_keys *k)
{
	*k = (struct line_keys){0};
	buf_init(&k->paste, LINE_PASTE_MAX);
}

void line_keys_fini(struct line_keys *k)
{
	buf_fini(&k->paste);
}

char *line_keys_room(struct line_keys *k, size_t *room)
{
	if (k->at > 0) {
		memmove(k->in, k->in + k->at, k->len - k->at);
		k->len -= k->at;
		k->at = 0;
	}
	*room = sizeof(k->in) - k->len;
	return k->in + k->len;
}

/* ---- pastes */

static void paste_char(struct line_keys *k, char c)
{
	if (c == '\r')
		c = '\n';
	if (((unsigned char)c < ' ' && c != '\n' && c != '\t') || c == 127)
		return;
	if (k->paste.len >= LINE_PASTE_MAX || buf_addc(&k->paste, c) != 0)
		k->paste_lost++;
}

/* Up to the mark of the end, or as far as it cannot be one that has begun. */
static enum line_key take_paste(struct line_keys *k)
{
	while (k->at < k->len) {
		size_t left = k->len - k->at, n = MIN(left, (size_t)MARK_LEN);

		if (memcmp(k->in + k->at, PASTE_END, n) != 0) {
			paste_char(k, k->in[k->at++]);
			continue;
		}
		if (n < MARK_LEN)
			return LINE_KEY_NONE;
		k->at += MARK_LEN;
		k->pasting = false;
		return LINE_KEY_PASTE;
	}
	return LINE_KEY_NONE;
}

/* ---- sequences */

/* Length of the escape sequence at `s`; 0: its end is not there yet. */
static size_t sequence(const char *s, size_t len)
{
	if (len < 2)
		return 0;
	if (s[1] == 'O')
		return len >= 3 ? 3 : 0;
	if (s[1] != '[')
		return 2;
	for (size_t i = 2; i < len; i++)
		if ((s[i] >= 0x40 && s[i] <= 0x7e) || i >= LINE_SEQ_MAX)
			return i + 1;
	return 0;
}

static enum line_key take_char(struct line_keys *k, wchar_t *c)
{
	unsigned char b = (unsigned char)k->in[k->at];
	size_t need = b < 0xc2 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf5 ? 4 : 1, n;
	uint32_t cp;

	if (k->len - k->at < need)
		return LINE_KEY_NONE;
	n = utf8_decode(k->in + k->at, k->len - k->at, &cp);
	*c = n > 0 ? (wchar_t)cp : 0xfffd;
	k->at += n > 0 ? n : 1;
	return LINE_KEY_CHAR;
}

/* Follow the editor's state, since a key may take the next one: ^V quotes one character, ^R and ^S
 * search until another control character. */
static void line_keys_note(struct line_keys *k, wchar_t c)
{
	bool quoted = k->literal;

	k->literal = !quoted && c == QUOTE;
	if (quoted)
		return;
	if (c == 0x12 || c == 0x13)
		k->searching = true;
	else if (c < ' ' && c != '\b' && c != 0x17)
		k->searching = false;
}

enum line_key line_keys_next(struct line_keys *k, wchar_t *c)
{
	enum line_key key;

	for (;;) {
		if (k->pasting)
			return take_paste(k);
		if (k->at == k->len)
			return LINE_KEY_NONE;
		if (k->pass > 0) {
			k->pass--;
			*c = (unsigned char)k->in[k->at++];
			return LINE_KEY_CHAR;
		}
		if (k->in[k->at] == ESC) {
			size_t n = sequence(k->in + k->at, k->len - k->at);

			if (n == 0)
				return LINE_KEY_NONE;
			if (n == MARK_LEN && memcmp(k->in + k->at, PASTE_BEGIN, n) == 0) {
				k->at += n;
				k->pasting = true;
				buf_reset(&k->paste);
				k->paste_lost = 0;
				continue;
			}
			if (n == MARK_LEN && memcmp(k->in + k->at, PASTE_END, n) == 0) {
				k->at += n;
				continue;
			}
			if (n == FOCUS_LEN && k->in[k->at + 1] == '[' &&
			    (k->in[k->at + 2] == 'I' || k->in[k->at + 2] == 'O')) {
				k->at += n;
				return k->in[k->at - 1] == 'I' ? LINE_KEY_FRONT : LINE_KEY_BACK;
			}
			k->searching = false;
			k->pass = n;
			continue;
		}
		key = take_char(k, c);
		if (key == LINE_KEY_CHAR && *c >= 0x1c && *c <= 0x1f)
			continue;
		if (key == LINE_KEY_CHAR)
			line_keys_note(k, *c);
		return key;
	}
}

void line_keys_expire(struct line_keys *k)
{
	if (!k->pasting && line_keys_partial(k))
		k->at++;
}

void line_keys_reset(struct line_keys *k)
{
	k->at = k->len = k->pass = 0;
	k->literal = k->searching = k->pasting = false;
	buf_reset(&k->paste);
}

bool line_keys_partial(const struct line_keys *k)
{
	return k->at < k->len && k->pass == 0;
}

bool line_keys_inside(const struct line_keys *k)
{
	return k->pass > 0 || k->literal || k->searching || k->pasting || line_keys_partial(k);
}
