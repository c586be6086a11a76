/* HTTP/1.1 of the mock: one request at a time on a connection, bodies by
 * length or in chunks; replies in chunks, or with a length for whole answers.
 *
 * A request that is not HTTP closes the connection. Input that arrives while a
 * reply is played waits in conn.in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "conn.h"

#define HEAD_MAX (64u << 10)

static const char *reason(int status)
{
	return status == 200 ? "OK" : status == 100 ? "Continue" : "Status";
}

static bool say_continue(struct conn *c)
{
	buf_adds(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
	conn_flush(c);
	return !c->dead;
}

/* Longer than any request may be: what the service says without reading it. */
static void say_too_large(struct conn *c)
{
	static const char body[] = "{\"type\":\"error\",\"error\":{\"type\":\"request_too_large\","
				   "\"message\":\"Request exceeds the maximum allowed number of "
				   "bytes.\"}}";

	buf_addf(&c->out,
		 "HTTP/1.1 413 Status\r\ncontent-type: application/json\r\nconnection: close\r\n"
		 "content-length: %zu\r\n\r\n%s",
		 strlen(body), body);
	c->close_when_sent = true;
	conn_flush(c);
}

struct framing {
	int64_t length; /* -1: none told */
	bool chunked, expect, close;
};

/* "name: value" lines up to the empty one. */
static bool read_lines(struct ask *a, const char *s, const char *end, struct framing *f)
{
	while (s < end) {
		const char *line = memmem(s, (size_t)(end - s), "\r\n", 2);
		const char *colon = memchr(s, ':', (size_t)(line - s));
		const char *value;

		if (line == s)
			return true;
		if (colon == NULL || colon == s)
			return false;
		for (value = colon + 1; value < line && *value == ' ';)
			value++;
		if (strncasecmp(s, "content-length:", 15) == 0)
			f->length = strtoll(value, NULL, 10);
		else if (strncasecmp(s, "transfer-encoding:", 18) == 0)
			f->chunked = true;
		else if (strncasecmp(s, "expect:", 7) == 0)
			f->expect = true;
		ask_header(a, s, (size_t)(colon - s), value, (size_t)(line - value));
		s = line + 2;
	}
	return true;
}

/* The request line. */
static const char *read_first(struct ask *a, const char *s, const char *end)
{
	const char *line = memmem(s, (size_t)(end - s), "\r\n", 2);
	const char *space = line ? memchr(s, ' ', (size_t)(line - s)) : NULL;
	const char *second = space ? memchr(space + 1, ' ', (size_t)(line - space - 1)) : NULL;

	if (second == NULL || (size_t)(space - s) >= sizeof a->method ||
	    strncmp(second, " HTTP/1.", 8) != 0)
		return NULL;
	memcpy(a->method, s, (size_t)(space - s));
	ask_target(a, space + 1, (size_t)(second - space - 1));
	return line + 2;
}

/* A chunked body at `s`: 1 whole (*used bytes), 0 more is needed, -1 broken. */
static int read_chunks(struct buf *body, const char *s, size_t len, size_t *used)
{
	size_t at = 0;

	buf_reset(body);
	for (;;) {
		const char *line = memmem(s + at, len - at, "\r\n", 2);
		char *end;
		unsigned long size;

		if (line == NULL)
			return 0;
		size = strtoul(s + at, &end, 16);
		if (end == s + at || size > BODY_MAX)
			return -1;
		at = (size_t)(line - s) + 2;
		if (len - at < size + 2)
			return 0;
		if (buf_add(body, s + at, size) != 0)
			return -1;
		at += size + 2;
		if (size == 0) {
			*used = at;
			return 1;
		}
	}
}

/* 1: a whole request left c->in for *out; 0: not yet; -1: no HTTP. */
static int read_request(struct conn *c, struct exchange **out)
{
	struct framing f = {.length = -1};
	char *head = c->in.data;
	char *end = c->in.len ? memmem(head, c->in.len, "\r\n\r\n", 4) : NULL;
	size_t body, used;
	struct exchange *x;
	const char *lines;
	int rv = 1;

	if (end == NULL)
		return c->in.len > HEAD_MAX ? -1 : 0;
	end += 2; /* the empty line stays */
	body = (size_t)(end - head) + 2;
	x = exchange_new(c, 0);
	lines = read_first(x->ask, head, end);
	if (lines == NULL || !read_lines(x->ask, lines, end, &f) || f.length > BODY_MAX)
		rv = -1;
	if (f.length > BODY_MAX)
		say_too_large(c);
	used = body + (f.length > 0 ? (size_t)f.length : 0);
	if (rv == 1 && f.chunked) {
		rv = read_chunks(&x->body, head + body, c->in.len - body, &used);
		used += body;
	} else if (rv == 1 && c->in.len < used) {
		rv = 0;
	} else if (rv == 1 && f.length > 0) {
		buf_add(&x->body, head + body, (size_t)f.length);
	}
	if (rv != 1) {
		exchange_free(x);
		if (rv == 0 && f.expect && c->in.len == body && !say_continue(c))
			rv = -1;
		return rv;
	}
	buf_drop(&c->in, used);
	*out = x;
	return 1;
}

void http1_input(struct conn *c)
{
	struct exchange *x;

	while (!c->dead && list_empty(&c->exchanges) && c->in.len > 0) {
		int rv = read_request(c, &x);

		if (rv < 0)
			conn_kill(c, false);
		if (rv <= 0)
			return;
		serve_request(c->serve, x);
	}
	if (c->in.len == 0 && c->in.cap > (64u << 10)) {
		buf_fini(&c->in);
		buf_init(&c->in, BODY_MAX + HEAD_MAX);
	}
}

void http1_head(struct exchange *x, int status, const char *lines, int64_t length)
{
	struct buf *out = &x->conn->out;

	buf_addf(out, "HTTP/1.1 %d %s\r\n", status, reason(status));
	for (const char *s = lines, *end; (end = strchr(s, '\n')) != NULL; s = end + 1) {
		buf_add(out, s, (size_t)(end - s));
		buf_adds(out, "\r\n");
	}
	if (length >= 0)
		buf_addf(out, "content-length: %lld\r\n\r\n", (long long)length);
	else
		buf_adds(out, "transfer-encoding: chunked\r\n\r\n");
}

void http1_data(struct exchange *x)
{
	struct buf *out = &x->conn->out;
	size_t n = x->released - x->sent;

	if (n > 0 && !x->reply.stream)
		buf_add(out, x->reply.bytes.data + x->sent, n);
	else if (n > 0) {
		buf_addf(out, "%zx\r\n", n);
		buf_add(out, x->reply.bytes.data + x->sent, n);
		buf_adds(out, "\r\n");
	}
	x->sent = x->released;
	conn_flush(x->conn);
}

void http1_end(struct exchange *x)
{
	struct conn *c = x->conn;

	if (x->reply.stream) {
		buf_adds(&c->out, "0\r\n\r\n");
		conn_flush(c);
	}
	x->ended = true;
	exchange_free(x);
	if (!c->dead && c->in.len > 0)
		http1_input(c);
}
