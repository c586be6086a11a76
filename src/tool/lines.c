/* Numbered lines; see lines.h.
 *
 * Lines that are not wanted are only counted. A wanted one is collected up to
 * LINES_CUT bytes and then counted too, so that a line of 5 GB needs no more
 * memory than one of 5 KB. When the body has no room for a line, nothing
 * further goes in; counting goes on. */
#include "tool/lines.h"

#include <ava.h>
#include <string.h>

#include "base/util.h"
#include "codec/utf8.h"

static const char bom[] = "\xef\xbb\xbf";

void lines_init(struct lines *l, int64_t first, int64_t last, const char *needle, size_t max_bytes)
{
	*l = (struct lines){.first = first, .last = last, .needle = needle, .at = 1};
	buf_init(&l->body, max_bytes);
	buf_init(&l->line, LINES_CUT + 4); /* so that a cut can spare a character */
}

void lines_fini(struct lines *l)
{
	buf_fini(&l->body);
	buf_fini(&l->line);
}

/* Where to cut so that no character is torn. */
static size_t whole_chars(const char *s, size_t len)
{
	size_t cut = len;

	while (cut != 0 && len - cut < 3 && ((unsigned char)s[cut] & 0xc0) == 0x80)
		cut--;
	return ((unsigned char)s[cut] & 0xc0) == 0x80 ? len : cut;
}

int lines_text(struct buf *out, const char *s, size_t len, size_t max, uint64_t whole)
{
	size_t keep = len;
	int rv;

	if (len == whole && len != 0 && s[len - 1] == '\r') {
		keep--;
		whole--;
	}
	if (keep > max)
		keep = whole_chars(s, max);
	rv = utf8_repair(out, s, keep);
	if (rv == 0 && keep < whole)
		rv = buf_addf(out, " … [+%llu bytes]", (unsigned long long)(whole - keep));
	return rv;
}

static bool wanted(const struct lines *l)
{
	return l->at >= l->first && l->at <= l->last && !l->full;
}

/* The collected line into the body, or nothing of it. */
static void emit(struct lines *l)
{
	const char *s = l->line.data != NULL ? l->line.data : "";
	size_t len = l->line.len, before = l->body.len, skip = 0;

	if (l->at == 1 && len >= 3 && memcmp(s, bom, 3) == 0)
		skip = 3;
	buf_addf(&l->body, "%lld\t", (long long)l->at);
	lines_text(&l->body, s + skip, len - skip, LINES_CUT, l->line_len - skip);
	if (buf_addc(&l->body, '\n') == AVA_ETOOBIG) {
		l->full = true;
		l->body.failed = false;
		l->body.error = 0;
		l->body.len = before;
		if (l->body.data != NULL)
			l->body.data[before] = '\0';
		return;
	}
	if (l->from == 0)
		l->from = l->at;
	l->to = l->at;
	l->shown++;
}

static void end_line(struct lines *l)
{
	if (wanted(l) && (l->needle == NULL || l->hit))
		emit(l);
	buf_reset(&l->line);
	l->line_len = 0;
	l->hit = false;
	l->at++;
}

static void collect(struct lines *l, const char *data, size_t len)
{
	size_t room = l->line.max - l->line.len;

	if (buf_add(&l->line, data, MIN(len, room)) != 0)
		l->no_memory = true;
	if (l->needle != NULL && !l->hit)
		l->hit = memmem(data, len, l->needle, strlen(l->needle)) != NULL;
}

void lines_feed(struct lines *l, const char *data, size_t len)
{
	while (len != 0) {
		const char *nl = memchr(data, '\n', len);
		size_t n = nl != NULL ? (size_t)(nl - data) : len;

		if (wanted(l))
			collect(l, data, n);
		l->line_len += n;
		if (nl == NULL)
			return;
		end_line(l);
		data += n + 1;
		len -= n + 1;
	}
}

int lines_end(struct lines *l)
{
	if (l->line_len != 0)
		end_line(l);
	return l->no_memory || l->body.failed ? AVA_ENOMEM : 0;
}

int64_t lines_total(const struct lines *l)
{
	return l->at - 1;
}
