/* The HTTP client over plain connections: whole responses and every way one
 * can be broken. The peer runs on the same loop and sends what it is told. */
#include "unit.h"

#include <malloc.h>
#include <string.h>

#include "base/util.h"
#include "http_rig.h"

/* ---- whole responses */

TEST_OF(get, struct fixture *f)
{
	struct got g;

	got_init(&g, f);
	g.call.method = "GET";
	got_start(&g);
	assert_int_equal(g.dones, 0); /* never from inside start */
	got_wait(&g);
	assert_int_equal(g.rv, 0);
	assert_int_equal(g.call.status, 200);
	assert_int_equal(g.heads, 1);
	assert_int_equal(g.body.len, 5);
	assert_memory_equal(g.body.data, "hello", 5);
	assert_non_null(strstr(f->head, "GET /v1/x HTTP/1.1\r\n"));
	assert_non_null(strstr(f->head, "User-Agent: ava/"));
	assert_non_null(strstr(f->head, "Accept-Encoding: identity\r\n"));
	got_fini(&g);
}

/* Without a callback the body goes into a buffer, which says whether it was large enough. */
TEST_OF(answer, struct fixture *f)
{
	static const size_t room[] = {5, 4};

	for (size_t i = 0; i < ARRAY_LEN(room); i++) {
		struct buf answer;
		struct got g;

		buf_init(&answer, room[i]);
		got_init(&g, f);
		g.call.data = NULL;
		g.call.answer = &answer;
		got_run(&g);
		assert_int_equal(g.rv, 0);
		assert_int_equal(g.body.len, 0);
		assert_int_equal(buf_check(&answer), room[i] < 5 ? AVA_ETOOBIG : 0);
		assert_int_equal(answer.len, room[i] < 5 ? 0 : 5);
		if (room[i] == 5)
			assert_memory_equal(answer.data, "hello", 5);
		got_fini(&g);
		buf_fini(&answer);
	}
}

TEST_OF(post, struct fixture *f)
{
	const char *const headers[] = {"Content-Type: application/json", "x-api-key: sk-secret"};
	static const size_t sizes[] = {0, 1, 1000, 16384, 16385, 300000, 3000000};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct got g;

		got_init(&g, f);
		for (size_t k = 0; k < sizes[i]; k++)
			buf_addc(&g.call.body, (char)('a' + k % 26));
		g.call.headers = headers;
		g.call.nheaders = 2;
		g.call.method = i % 2 ? "PUT" : "POST";
		got_start(&g);
		assert_null(g.call.body.data); /* taken */
		got_wait(&g);
		assert_int_equal(g.rv, 0);
		assert_int_equal(f->body_len, sizes[i]);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_true(f->body[k] == (char)('a' + k % 26));
		assert_non_null(strstr(f->head, i % 2 ? "PUT /v1/x HTTP/1.1\r\n"
						      : "POST /v1/x HTTP/1.1\r\n"));
		assert_non_null(strstr(f->head, "\r\nx-api-key: sk-secret\r\n"));
		assert_non_null(strstr(f->head, "\r\nContent-Type: application/json\r\n"));
		assert_null(strcasestr(f->head, "\r\nexpect:"));
		got_fini(&g);
	}
	assert_int_equal(f->peer.accepted, 1); /* one connection for all */
}

/* Kept headers, those of a 1xx forgotten, names without case. */
TEST_OF(headers, struct fixture *f)
{
	struct got g;

	f->reply = "HTTP/1.1 100 Continue\r\nretry-after: 1\r\nrequest-id: early\r\n\r\n"
		   "HTTP/1.1 429 Too Many\r\nRetry-After:  7 \r\nRETRY-AFTER-MS:\r\nX-Other: q\r\n"
		   "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nno";
	got_init(&g, f);
	got_run(&g);
	assert_int_equal(g.rv, 0);
	assert_int_equal(g.call.status, 429);
	assert_string_equal(g.kept, "7");
	got_fini(&g);
}

static void head_names(struct http_call *c, int status)
{
	struct got *g = c->user;

	g->heads++;
	assert_string_equal(http_call_header(c, "request-id"), "r1");
	assert_string_equal(http_call_header(c, "Retry-After-Ms"), "");
	assert_string_equal(http_call_header(c, "date"), "x");
	assert_null(http_call_header(c, "retry-after"));
	assert_null(http_call_header(c, "server"));
	assert_null(http_call_header(c, ""));
	assert_int_equal(status, 200);
}

TEST_OF(header_names, struct fixture *f)
{
	struct got g;

	f->reply =
		"HTTP/1.1 200 OK\r\nRequest-Id: r1\r\nretry-after-ms:\r\nServer: s\r\nDATE: x\r\n"
		"Content-Length: 0\r\n\r\n";
	got_init(&g, f);
	g.call.head = head_names;
	got_run(&g);
	assert_int_equal(g.rv, 0);
	assert_int_equal(g.heads, 1);
	got_fini(&g);
}

TEST_OF(bad_calls, struct fixture *f)
{
	static const char *const headers[] = {"x: a\r\nEvil: b", "no colon", "x: a\nb", "x: \x01"};
	static const char *const paths[] = {NULL, "", "v1", "/a b", "/a\r\n", "//\x7f"};
	struct ava_error err;
	struct got g;

	got_init(&g, f);
	buf_adds(&g.call.body, "mine");
	g.call.nheaders = 1;
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		g.call.headers = &headers[i];
		assert_int_equal(http_call_start(f->pool, &g.call, &err), AVA_EINVAL);
	}
	g.call.nheaders = 0;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		g.call.path = paths[i];
		assert_int_equal(http_call_start(f->pool, &g.call, &err), AVA_EINVAL);
	}
	g.call.path = "/";
	g.call.method = "DELETE";
	assert_int_equal(http_call_start(f->pool, &g.call, &err), AVA_EINVAL);
	assert_string_equal(g.call.body.data, "mine"); /* still the caller's */
	assert_null(g.call.impl);
	assert_int_equal(g.dones, 0);
	buf_fini(&g.call.body);
	got_fini(&g);
}

/* ---- responses that break */

static const struct {
	const char *name, *reply;
	int rv, status;
	const char *text; /* in the sentence */
	size_t body;      /* bytes the caller saw */
} broken[] = {
	{"nothing at all", "", AVA_EIO, 0, "broke off", 0},
	{"a line that is not HTTP", "hello there\r\n", AVA_EPROTO, 0, "HTTP", 0},
	{"HTTP/0.9", "<html>old</html>", AVA_EPROTO, 0, "HTTP", 0},
	{"TLS instead", "\x15\x03\x01\x02\x02\x16", AVA_EPROTO, 0, "HTTP", 0},
	{"headers cut", "HTTP/1.1 200 OK\r\nContent-Le", AVA_EIO, 0, "broke off", 0},
	{"length too long", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", AVA_EIO, 200,
	 "broke off", 5},
	{"length too short", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello", 0, 200, "", 3},
	{"length not a number", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello", AVA_EPROTO, 0,
	 "HTTP", 0},
	{"length negative", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello", AVA_EPROTO, 0,
	 "HTTP", 0},
	{"length none, ended by closing", "HTTP/1.1 200 OK\r\n\r\nhello", 0, 200, "", 5},
	{"chunks end", CHUNKED "5\r\nhello\r\n0\r\n\r\n", 0, 200, "", 5},
	{"chunks with trailer", CHUNKED "5\r\nhello\r\n0\r\nretry-after: 9\r\n\r\n", 0, 200, "", 5},
	{"EOF between chunks", CHUNKED "5\r\nhello\r\n", AVA_EIO, 200, "broke off", 5},
	{"EOF in a chunk", CHUNKED "5\r\nhel", AVA_EIO, 200, "broke off", 3},
	{"EOF in a chunk's size", CHUNKED "5\r\nhello\r\n1", AVA_EIO, 200, "broke off", 5},
	{"chunk size garbage", CHUNKED "zz\r\nhello\r\n", AVA_EIO, 200, "broke off", 0},
	{"chunk size endless", CHUNKED "fffffffffffffffffffff\r\nhello", AVA_EIO, 200, "broke off",
	 0},
	{"chunk without its end", CHUNKED "5\r\nhelloX\r\n0\r\n\r\n", AVA_EIO, 200, "broke off", 5},
	{"101 unasked", "HTTP/1.1 101 Switch\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
	 AVA_EPROTO, 0, "unasked", 0},
	{"only a 1xx", "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n", AVA_EIO, 0, "broke off", 0},
	{"a redirect is not followed",
	 "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 0, 302,
	 "", 0},
	{"gzip is unpacked, and that is no more than a head",
	 "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x01",
	 0, 200, "", 0},
	{"204", "HTTP/1.1 204 No\r\n\r\n", 0, 204, "", 0},
};

TEST_OF(broken, struct fixture *f)
{
	f->hang_up = true;
	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		struct got g;

		f->reply = broken[i].reply;
		got_init(&g, f);
		buf_adds(&g.call.body, "{}");
		got_run(&g);
		if (g.rv != broken[i].rv || !strstr(g.text, broken[i].text) ||
		    g.call.status != broken[i].status || g.body.len != broken[i].body)
			fail_msg("%s: %d, status %d, %zu bytes, \"%s\"", broken[i].name, g.rv,
				 g.call.status, g.body.len, g.text);
		assert_int_equal(g.heads, broken[i].status ? 1 : 0);
		assert_string_equal(g.kept, "-"); /* a trailer is no header */
		got_fini(&g);
	}
}

/* Every prefix of a good response is a failure; only the last newline, behind
 * the closing chunk, is not missed. */
TEST_OF(cut_everywhere, struct fixture *f)
{
	static const char whole[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
				    "7\r\ndata: 1\r\n0\r\n\r\n";

	f->hang_up = true;
	f->reply = whole;
	for (size_t len = 0; len < sizeof(whole); len++) {
		struct got g;

		got_init(&g, f);
		f->reply_len = len;
		f->reply = len ? whole : "";
		got_run(&g);
		if ((g.rv == 0) != (len >= sizeof(whole) - 2))
			fail_msg("cut after %zu bytes: %d %s", len, g.rv, g.text);
		got_fini(&g);
	}
}

/* A flood that never ends is stopped at a bound, whatever it is made of. */
struct flood {
	struct peer_conn *conn;
	const char *unit;
	size_t sent;
};

static void flood_more(struct peer_conn *c)
{
	struct flood *fl = c->user;

	for (int i = 0; i < 1000; i++) {
		peer_sends(c, fl->unit);
		fl->sent += strlen(fl->unit);
	}
}

static void flood_answer(struct peer_conn *c, const char *head, const char *body, size_t len)
{
	struct fixture *f = c->peer->user;

	peer_sends(c, f->reply);
	f->last = c;
}

TEST_OF(flood, struct fixture *f)
{
	static const struct {
		const char *first, *unit;
		int rv;
	} floods[] = {
		{"HTTP/1.1 200 OK\r\n", "x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
		 AVA_ETOOBIG},
		{"HTTP/1.1 200 OK\r\n", "retry-after: 1\r\n", AVA_ETOOBIG},
		{"", "HTTP/1.1 100 Continue\r\n\r\n", AVA_ETOOBIG},
		{"HTTP/1.1 200 OK\r\nx: ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		 AVA_ETOOBIG},
		{CHUNKED "0\r\n", "x-trailer: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n", AVA_ETOOBIG},
	};

	f->peer.request = flood_answer;
	for (size_t i = 0; i < ARRAY_LEN(floods); i++) {
		struct flood fl = {.unit = floods[i].unit};
		size_t heap;
		struct got g;

		got_init(&g, f);
		f->reply = floods[i].first;
		f->last = NULL;
		got_start(&g);
		while (!f->last)
			os_loop_step(f->loop, 1000);
		heap = mallinfo2().uordblks;
		f->last->user = &fl;
		while (g.dones == 0) {
			if (f->last->out.len == 0)
				flood_more(f->last);
			os_loop_step(f->loop, 10);
			assert_true(mallinfo2().uordblks < heap + 2 * 1024 * 1024);
			assert_true(fl.sent < 100 * 1024 * 1024);
		}
		if (g.rv != floods[i].rv)
			fail_msg("flood %zu: %d %s", i, g.rv, g.text);
		got_fini(&g);
	}
}

UNIT_GROUP(.before = rig_setup, .after = rig_teardown);
