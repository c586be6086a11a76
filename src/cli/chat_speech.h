/* What Ava says: it comes in pieces while her model speaks, and once more as
 * the durable text. Each text is shown once, block by block. */
#ifndef CLI_CHAT_SPEECH_H
#define CLI_CHAT_SPEECH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

#define SPEECH_MAX ((size_t)8 << 20)

struct speech {
	struct buf text;   /* what has come and is not confirmed by a durable text */
	size_t shown;      /* bytes of it that were shown */
	struct buf before; /* shown of a text that a lost connection cut off */
	bool open;         /* the last thing shown was a part of what she says */
	bool gap;          /* an empty line belongs before the next part */
};

void speech_init(struct speech *s);
void speech_fini(struct speech *s);
/* A piece. When memory ends, the durable text has it all. */
void speech_piece(struct speech *s, const char *text, size_t len);
/* What is not shown because its block is not whole; NULL: nothing. */
const char *speech_tail(const struct speech *s, size_t *len);
/* Whole blocks wait to be shown. */
bool speech_ready(const struct speech *s);
void speech_show(struct speech *s, FILE *f);
/* The durable text: what of it was not shown yet is. */
void speech_whole(struct speech *s, FILE *f, const char *text, size_t len);
/* The connection was lost: what was being said may come again from its start. */
void speech_cut(struct speech *s);
/* Something else was shown: the next part of hers says again whose it is. */
void speech_close(struct speech *s);

#endif
