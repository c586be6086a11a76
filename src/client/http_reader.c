/* One HTTP/1.1 answer, piece by piece.
 *
 * Happy path: the head is collected up to its blank line and looked through
 * once; it decides how the body ends; body bytes go to the sink as they come.
 * Informational answers (1xx) are skipped.
 *
 * What can fail: a peer that does not speak HTTP, a head over 32 KB, lengths
 * and chunk sizes that are no numbers, an end in the middle. The daemon is
 * ours, but another program may listen on the socket's path. */
#include "client/http_reader.h"

#include <ava.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/util.h"

#define HEAD_MAX       (32 * 1024)
#define CHUNK_LINE_MAX 256
#define CHUNK_MAX      (UINT64_C(1) << 40) /* so that sizes cannot wrap */

void http_reader_init(struct http_reader *r, int (*sink)(const char *data, size_t len, void *user),
		      void *user)
{
	*r = (struct http_reader){.sink = sink, .user = user, .state = HTTP_READER_HEAD};
	buf_init(&r->line, HEAD_MAX);
}

void http_reader_fini(struct http_reader *r)
{
	buf_fini(&r->line);
}

static int broken(struct ava_error *err, const char *what)
{
	return err_set(err, AVA_EPROTO, "the daemon's answer is not HTTP: %s", what);
}

/* ---- the head */

/* Digits alone, in base 10 or 16, below CHUNK_MAX. */
static bool number(const char *s, size_t len, unsigned base, uint64_t *out)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned digit = 99;

		if (s[i] >= '0' && s[i] <= '9')
			digit = (unsigned)(s[i] - '0');
		else if ((s[i] | 32) >= 'a' && (s[i] | 32) <= 'f')
			digit = (unsigned)((s[i] | 32) - 'a' + 10);
		if (digit >= base)
			return false;
		n = n * base + digit;
		if (n > CHUNK_MAX)
			return false;
	}
	*out = n;
	return len > 0;
}

struct head {
	bool has_length, chunked, close, keep;
	uint64_t length;
};

static bool is(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(s, word, len) == 0;
}

static int read_field(const char *line, size_t len, struct head *h, struct ava_error *err)
{
	const char *colon = memchr(line, ':', len);
	const char *value, *end = line + len;
	size_t name, n;

	if (!colon)
		return broken(err, "a field without a colon");
	name = (size_t)(colon - line);
	value = colon + 1;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	n = (size_t)(end - value);
	if (is(line, name, "Content-Length")) {
		if (h->has_length || !number(value, n, 10, &h->length))
			return broken(err, "a bad length");
		h->has_length = true;
	} else if (is(line, name, "Transfer-Encoding")) {
		if (!is(value, n, "chunked"))
			return broken(err, "an unknown transfer encoding");
		h->chunked = true;
	} else if (is(line, name, "Connection")) {
		h->close = is(value, n, "close");
		h->keep = is(value, n, "keep-alive");
	}
	return 0;
}

static int read_status(struct http_reader *r, const char *line, size_t len, struct ava_error *err)
{
	uint64_t status;

	if (len < 12 || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' ||
	    !number(line + 9, 3, 10, &status) || status < 100 || (len > 12 && line[12] != ' '))
		return broken(err, "no status line");
	r->status = (int)status;
	r->keep_alive = line[7] != '0';
	return 0;
}

static int read_head(struct http_reader *r, struct ava_error *err)
{
	struct head h = {0};
	const char *at = r->line.data, *end = at + r->line.len;
	bool first = true;

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)(nl - at); /* the head ends with a newline */
		int rv = 0;

		if (len > 0 && at[len - 1] == '\r')
			len--;
		if (first)
			rv = read_status(r, at, len, err);
		else if (len > 0)
			rv = read_field(at, len, &h, err);
		if (rv != 0)
			return rv;
		first = false;
		at = nl + 1;
	}
	buf_reset(&r->line);
	r->keep_alive = !h.close && (r->keep_alive || h.keep);
	if (r->status < 200) {
		r->status = 0; /* the real answer follows */
	} else if (r->status == 204 || r->status == 304 || (h.has_length && h.length == 0)) {
		r->state = HTTP_READER_DONE;
	} else if (h.chunked) {
		r->state = HTTP_READER_CHUNK_SIZE;
	} else if (h.has_length) {
		r->state = HTTP_READER_BODY_LENGTH;
		r->left = h.length;
	} else {
		r->state = HTTP_READER_BODY_CLOSE;
		r->keep_alive = false;
	}
	return 0;
}

/* ---- lines */

/* Collect up to a newline (inclusive). 1: the line is whole. */
static int take_line(struct http_reader *r, const char *data, size_t len, size_t *used,
		     struct ava_error *err)
{
	const char *nl = memchr(data, '\n', len);
	size_t n = nl ? (size_t)(nl - data) + 1 : len;
	int rv = buf_add(&r->line, data, n);

	*used += n;
	if (rv == AVA_ETOOBIG)
		return broken(err, "a head without end");
	if (rv != 0)
		return err_set(err, rv, "out of memory");
	return nl ? 1 : 0;
}

static bool ends_blank(const struct buf *b)
{
	return (b->len >= 2 && memcmp(b->data + b->len - 2, "\n\n", 2) == 0) ||
	       (b->len >= 3 && memcmp(b->data + b->len - 3, "\n\r\n", 3) == 0);
}

static bool is_blank(const struct buf *b)
{
	return strcmp(b->data, "\r\n") == 0 || strcmp(b->data, "\n") == 0;
}

static int chunk_size(struct http_reader *r, struct ava_error *err)
{
	size_t len = strcspn(r->line.data, ";\r\n");

	while (len > 0 && r->line.data[len - 1] == ' ')
		len--;
	if (r->line.len > CHUNK_LINE_MAX || !number(r->line.data, len, 16, &r->left))
		return broken(err, "a bad chunk size");
	r->state = r->left == 0 ? HTTP_READER_TRAILER : HTTP_READER_CHUNK_DATA;
	return 0;
}

/* A whole line in r->line, in a state made of lines. */
static int read_line(struct http_reader *r, struct ava_error *err)
{
	int rv = 0;

	if (r->state == HTTP_READER_HEAD) {
		if (!ends_blank(&r->line))
			return 0; /* goes on collecting */
		return read_head(r, err);
	}
	if (r->state == HTTP_READER_CHUNK_SIZE)
		rv = chunk_size(r, err);
	else if (r->state == HTTP_READER_CHUNK_END && !is_blank(&r->line))
		rv = broken(err, "a chunk longer than it said");
	else if (r->state == HTTP_READER_CHUNK_END)
		r->state = HTTP_READER_CHUNK_SIZE;
	else if (is_blank(&r->line)) /* the trailer's end */
		r->state = HTTP_READER_DONE;
	buf_reset(&r->line);
	return rv;
}

static int take_body(struct http_reader *r, const char *data, size_t len, size_t *used)
{
	size_t n = r->state == HTTP_READER_BODY_CLOSE ? len : MIN(len, r->left);
	int rv = r->sink(data, n, r->user);

	*used += n;
	if (r->state == HTTP_READER_BODY_CLOSE)
		return rv;
	r->left -= n;
	if (r->left == 0)
		r->state = r->state == HTTP_READER_CHUNK_DATA ? HTTP_READER_CHUNK_END
							      : HTTP_READER_DONE;
	return rv;
}

int http_reader_feed(struct http_reader *r, const char *data, size_t len, size_t *used,
		     struct ava_error *err)
{
	int rv = 0;

	*used = 0;
	while (rv == 0 && *used < len && r->state != HTTP_READER_DONE) {
		const char *at = data + *used;
		size_t left = len - *used;

		switch (r->state) {
		case HTTP_READER_BODY_LENGTH:
		case HTTP_READER_BODY_CLOSE:
		case HTTP_READER_CHUNK_DATA:
			rv = take_body(r, at, left, used);
			break;
		case HTTP_READER_HEAD:
		case HTTP_READER_CHUNK_SIZE:
		case HTTP_READER_CHUNK_END:
		case HTTP_READER_TRAILER:
			rv = take_line(r, at, left, used, err);
			if (rv == 1)
				rv = read_line(r, err);
			break;
		case HTTP_READER_DONE:
			break;
		}
	}
	return rv;
}

int http_reader_eof(struct http_reader *r, struct ava_error *err)
{
	if (r->state == HTTP_READER_BODY_CLOSE)
		r->state = HTTP_READER_DONE;
	if (r->state == HTTP_READER_DONE)
		return 0;
	return err_set(err, AVA_EPROTO, "the daemon's answer ended in the middle");
}
