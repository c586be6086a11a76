/* Answers whole and byte by byte, and everything that is no HTTP. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "client/client.h"

static const struct {
	const char *name, *bytes, *body;
	int status;
	bool keep_alive, at_eof; /* done only when the connection ends */
} good[] = {
	{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, true, false},
	{"no reason", "HTTP/1.1 200\r\ncontent-length:\t2 \r\n\r\nhi", "hi", 200, true, false},
	{"bare newlines", "HTTP/1.1 404 Not Found\nContent-Length: 1\n\nx", "x", 404, true, false},
	{"empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", 200, true, false},
	{"204", "HTTP/1.1 204 No Content\r\n\r\n", "", 204, true, false},
	{"304 with a length", "HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", "", 304, true, false},
	{"chunks",
	 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	 "5\r\nhello\r\n00B ;x=y\r\n, and more.\r\n0\r\n\r\n",
	 "hello, and more.", 200, true, false},
	{"chunks and a trailer",
	 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n", "a",
	 200, true, false},
	{"until the end", "HTTP/1.1 200 OK\r\n\r\nall of it", "all of it", 200, false, true},
	{"until the end, 1.0", "HTTP/1.0 200 OK\r\n\r\nall", "all", 200, false, true},
	{"1.0 keeps alive",
	 "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", "x", 200, true,
	 false},
	{"close", "HTTP/1.1 200 OK\r\nconnection: close\r\nContent-Length: 1\r\n\r\nx", "x", 200,
	 false, false},
	{"continue first",
	 "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 Too Big\r\nContent-Length: 3\r\n\r\nbig", "big",
	 413, true, false},
};

static const struct {
	const char *name, *bytes;
} bad[] = {
	{"another protocol", "SSH-2.0-x\r\n\r\n"},
	{"HTTP/2", "HTTP/2 200 OK\r\n\r\n"},
	{"no status", "HTTP/1.1 OK\r\n\r\n"},
	{"status of four digits", "HTTP/1.1 2000 OK\r\n\r\n"},
	{"status below 100", "HTTP/1.1 099 x\r\n\r\n"},
	{"blank head", "\r\n\r\n"},
	{"field without colon", "HTTP/1.1 200 OK\r\nfoo\r\n\r\n"},
	{"length no number", "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello"},
	{"length negative", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello"},
	{"length empty", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n"},
	{"length too big", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"},
	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
	{"gzip", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"},
	{"chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
	{"chunk size empty", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n"},
	{"chunk size wraps",
	 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello"},
	{"chunk too long", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n"},
};

static int collect(const char *data, size_t len, void *user)
{
	return buf_add(user, data, len);
}

/* Feed in pieces of `step` bytes; the result of the last feed. */
static int feed(struct http_reader *r, const char *bytes, size_t step, size_t *taken)
{
	size_t len = strlen(bytes), used;
	int rv = 0;

	*taken = 0;
	while (rv == 0 && *taken < len && r->state != HTTP_READER_DONE) {
		rv = http_reader_feed(r, bytes + *taken, MIN(step, len - *taken), &used, NULL);
		assert_true(used > 0 || rv != 0);
		*taken += used;
	}
	return rv;
}

TEST(good)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		for (size_t step = 1; step < 200; step += 7) {
			struct http_reader r;
			TEST_BUF(body, 1000);
			size_t taken;

			buf_adds(&body, "");
			http_reader_init(&r, collect, &body);
			if (step == 1)
				print_message("%s\n", good[i].name);
			assert_int_equal(feed(&r, good[i].bytes, step, &taken), 0);
			assert_int_equal(taken, strlen(good[i].bytes));
			assert_int_equal(r.state == HTTP_READER_DONE, !good[i].at_eof);
			assert_int_equal(http_reader_eof(&r, NULL), 0);
			assert_int_equal(r.status, good[i].status);
			assert_int_equal(r.keep_alive, good[i].keep_alive);
			assert_string_equal(body.data ? body.data : "", good[i].body);
			http_reader_fini(&r);
		}
}

/* Cut anywhere, an answer with a known end is an error. */
TEST(cut)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		for (size_t len = 0; len < strlen(good[i].bytes) && !good[i].at_eof; len++) {
			struct http_reader r;
			TEST_BUF(body, 1000);
			size_t used;

			http_reader_init(&r, collect, &body);
			assert_int_equal(http_reader_feed(&r, good[i].bytes, len, &used, NULL), 0);
			assert_int_equal(http_reader_eof(&r, NULL), AVA_EPROTO);
			http_reader_fini(&r);
		}
}

TEST(bad)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		for (size_t step = 1; step < 300; step += 298) {
			struct http_reader r;
			TEST_BUF(body, 1000);
			size_t taken;

			if (step == 1)
				print_message("%s\n", bad[i].name);
			http_reader_init(&r, collect, &body);
			assert_int_equal(feed(&r, bad[i].bytes, step, &taken), AVA_EPROTO);
			http_reader_fini(&r);
		}
}

TEST(endless_head)
{
	struct http_reader r;
	char field[1001];
	size_t used, n = 0;
	int rv;

	memset(field, 'f', sizeof(field));
	field[500] = ':';
	field[1000] = '\n';
	http_reader_init(&r, collect, NULL);
	rv = http_reader_feed(&r, "HTTP/1.1 200 OK\n", 16, &used, NULL);
	while (rv == 0 && n++ < 1000)
		rv = http_reader_feed(&r, field, sizeof(field), &used, NULL);
	assert_int_equal(rv, AVA_EPROTO);
	assert_true(n < 40);
	http_reader_fini(&r);
}

static int refuse(const char *data, size_t len, void *user)
{
	return 42;
}

TEST(sink_stops)
{
	struct http_reader r;
	size_t taken;

	http_reader_init(&r, refuse, NULL);
	assert_int_equal(feed(&r, good[0].bytes, 1000, &taken), 42);
	http_reader_fini(&r);
}

/* What follows the answer is left to the caller. */
TEST(stops_at_the_end)
{
	static const char two[] = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 500";
	struct http_reader r;
	TEST_BUF(body, 10);
	size_t used;

	http_reader_init(&r, collect, &body);
	assert_int_equal(http_reader_feed(&r, two, sizeof(two) - 1, &used, NULL), 0);
	assert_string_equal(two + used, "HTTP/1.1 500");
	http_reader_fini(&r);
}

/* What ava mcp looks at. */
TEST(fields)
{
	static const char text[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
				   "mcp-session-id: \tabc-forms \r\nContent-Length: 0\r\n\r\n";
	static const char other[] =
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
		"Mcp-Session-Id: "
		"0123456789012345678901234567890123456789012345678901234567890123"
		"0123456789012345\r\nContent-Length: 0\r\n\r\n";
	struct http_reader r;
	struct ava_error err;
	size_t used;

	http_reader_init(&r, NULL, NULL);
	assert_int_equal(http_reader_feed(&r, text, sizeof(text) - 1, &used, &err), 0);
	assert_true(r.events);
	assert_string_equal(r.session, "abc-forms");
	http_reader_fini(&r);
	http_reader_init(&r, NULL, NULL);
	assert_int_equal(http_reader_feed(&r, other, sizeof(other) - 1, &used, &err), 0);
	assert_false(r.events);
	assert_string_equal(r.session, ""); /* 80 bytes are no session of ours */
	http_reader_fini(&r);
}
