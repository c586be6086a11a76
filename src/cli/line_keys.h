/* Bytes of a terminal to keys: UTF-8, escape sequences held together, pasted
 * text in one piece. Pure: bytes in, keys out. */
#ifndef CLI_LINE_KEYS_H
#define CLI_LINE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

#include "base/buf.h"

#define LINE_KEYS_IN   4096
#define LINE_SEQ_MAX   32
#define LINE_PASTE_MAX ((size_t)1 << 20)

enum line_key {
	LINE_KEY_NONE,  /* more bytes are needed */
	LINE_KEY_CHAR,  /* *c */
	LINE_KEY_FRONT, /* the terminal came to the front */
	LINE_KEY_BACK,  /* … and left it */
	LINE_KEY_PASTE, /* all of a paste is in `paste`: newlines as \n, no controls but tab */
};

struct line_keys {
	char in[LINE_KEYS_IN];
	size_t at, len;
	size_t pass;    /* bytes of a sequence that are still to be given out */
	bool literal;   /* the next character follows ^V, so it is text */
	bool searching; /* within an incremental search */
	bool pasting;
	struct buf paste;
	size_t paste_lost; /* bytes beyond LINE_PASTE_MAX */
};

void line_keys_init(struct line_keys *k);
void line_keys_fini(struct line_keys *k);
/* Room for bytes just read; the caller adds what it read to k->len. */
char *line_keys_room(struct line_keys *k, size_t *room);
/* The next key. Control characters from 0x1c to 0x1f never come: they are free
 * for the caller's own use. */
enum line_key line_keys_next(struct line_keys *k, wchar_t *c);
/* No byte followed in time: an escape alone is forgotten. */
void line_keys_expire(struct line_keys *k);
/* Forget a begun sequence and unread bytes after an interrupt. */
void line_keys_reset(struct line_keys *k);
/* Do bytes wait for more, which make a key of them? */
bool line_keys_partial(const struct line_keys *k);
/* Whether a sequence, quote, search or paste is under way. */
bool line_keys_inside(const struct line_keys *k);

#endif
