/* A reply that says the same again and again: small models do, to the end of their output, which at
 * a slow server is an hour.
 *
 * Looked at each time that a text has grown by a step: do its last bytes stand there before, a
 * period back, and does all of a run that is long enough equal itself one period back? Then what
 * came is kept up to the end of the first time, and the reply ends there as if the service had said
 * so. What repeats for good reason (rules of a table, rows of zeros, data that is written to a
 * file) is shorter than a run, or differs in a byte. A step costs a look at a period's bytes;
 * nothing is allocated, and nothing can fail. */
#include <ctype.h>
#include <string.h>

#include "base/util.h"
#include "provider/model.h"
#include "provider/stream_core.h"

#define STEP        1024u
#define PERIOD_MAX  2048u /* most bytes of the text that repeats */
#define COPIES      8u    /* least number of repetitions */
#define LEAST       2048u /* least bytes of all repetitions */
#define LEAST_DRAWN 4096u /* the same for a text without words: rules, walls of a box, digits */
#define SHORT       16u   /* bytes below which a period counts as having no words */
#define ARGS_TIMES  4u    /* factor for arguments, which may be a file's content */
#define FAR_TIMES   16u   /* factor for a quick service: somebody may have asked for it */
#define NEEDLE      16u
#define TRIES       16 /* most periods tried at a step */

/* Bytes at the end of `s` that equal those `period` before; 0: fewer than `least`. */
static size_t stream_repeat_run_of(const char *s, size_t len, size_t period, size_t least)
{
	size_t n = MAX(least, (COPIES - 1) * period);

	if (len < n + period || memcmp(s + len - n, s + len - n - period, n) != 0)
		return 0;
	while (n + period < len && s[len - n - 1] == s[len - n - 1 - period])
		n++;
	return n;
}

static bool is_words(const char *s, size_t len)
{
	size_t letters = 0;

	for (size_t i = 0; i < len; i++)
		letters += isalpha((unsigned char)s[i]) || (unsigned char)s[i] >= 0x80;
	return len >= SHORT && letters >= len / 2;
}

void stream_repeat(struct stream *s, struct part *p)
{
	size_t times = p->kind == PART_CALL ? ARGS_TIMES : 1, len = p->text.len, n = 0, period = 0;
	bool near = s->model != NULL && provider_is_near(s->model->provider);
	const char *text = p->text.data, *end = text + len - 1, *at = end, *low;

	p->look_at = (uint32_t)len + STEP;
	times *= near ? 1 : FAR_TIMES;
	if (len < LEAST * times)
		return;
	low = text + (len > PERIOD_MAX + NEEDLE ? len - PERIOD_MAX - 1 : NEEDLE - 1);
	for (int tries = 0; n == 0 && tries < TRIES;) {
		at = memrchr(low, *end, (size_t)(at - low));
		if (at == NULL)
			return;
		if (memcmp(at + 1 - NEEDLE, end + 1 - NEEDLE, NEEDLE) != 0)
			continue;
		period = (size_t)(end - at);
		n = stream_repeat_run_of(text, len, period, LEAST * times);
		tries++;
	}
	if (n == 0 || (n < LEAST_DRAWN * times && !is_words(end - period, period)))
		return;
	p->text.len -= n;
	while (((unsigned char)text[p->text.len] & 0xc0) == 0x80) /* do not cut a character */
		p->text.len++;
	at = memchr(text + p->text.len, '\n', MIN(n, period));
	if (at != NULL && text[p->text.len - 1] != '\n') /* from a whole line, where there is one */
		p->text.len = (size_t)(at + 1 - text);
	p->text.data[p->text.len] = 0;
	stream_stop(s->reply, "repeated");
	s->done = s->broken_off = true;
}
