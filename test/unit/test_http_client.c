/* The HTTP client over plain connections: whole responses, every way one can
 * break, timers, stops in every state, caps, what a waiting call costs. The
 * peer runs on the same loop and sends what the test tells it. */
#include "unit.h"

#include <ava.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "http_peer.h"
#include "net/http_client.h"
#include "os/loop.h"

/* ---- a call that writes down what it is told */

enum act { NOTHING, STOP, STOP_OTHER, RESTART, FREE_POOL };

struct fixture;

struct got {
	struct http_call call;
	struct fixture *f;
	int heads, dones, rv;
	char text[512], kept[64];
	struct buf body;
	bool progress; /* what `data` answers */
	enum act in_head, in_data, in_done;
	struct got *other;
};

struct fixture {
	struct os_loop *loop;
	struct http_client *client;
	struct http_pool *pool;
	struct peer peer;
	/* what the peer does */
	const char *reply;
	size_t reply_len;
	bool hang_up, reset, silent;
	char head[8192];
	char *body;
	size_t body_len;
	struct peer_conn *last;
};

static void start(struct got *g);

static void act(struct got *g, enum act what)
{
	switch (what) {
	case NOTHING:
		break;
	case STOP:
		http_call_stop(&g->call);
		memset(&g->call, 0xa5, sizeof(g->call)); /* the caller may free it */
		break;
	case STOP_OTHER:
		http_call_stop(&g->other->call);
		break;
	case RESTART:
		start(g);
		break;
	case FREE_POOL:
		http_pool_free(g->f->pool);
		g->f->pool = NULL;
		break;
	}
}

static void head_cb(struct http_call *c, int status)
{
	struct got *g = c->user;

	assert_int_equal(status, c->status);
	assert_int_equal(g->dones, 0);
	g->heads++;
	act(g, g->in_head);
}

static bool data_cb(struct http_call *c, const char *s, size_t n)
{
	struct got *g = c->user;
	bool progress = g->progress;

	assert_int_equal(g->heads, 1);
	assert_int_equal(buf_add(&g->body, s, n), 0);
	act(g, g->in_data);
	return progress;
}

static void done_cb(struct http_call *c, int rv, const struct ava_error *err)
{
	struct got *g = c->user;
	const char *kept = http_call_header(c, "Retry-After");

	assert_non_null(err);
	assert_int_equal(err->code, rv);
	g->dones++;
	g->rv = rv;
	snprintf(g->text, sizeof(g->text), "%s", rv ? err->text : "");
	snprintf(g->kept, sizeof(g->kept), "%s", kept ? kept : "-");
	if (rv)
		assert_true(err->text[0] != '\0');
	act(g, g->in_done);
}

static void got_init(struct got *g, struct fixture *f)
{
	*g = (struct got){.f = f, .progress = true};
	buf_init(&g->body, 64 * 1024 * 1024);
	g->call = (struct http_call){
		.path = "/v1/x", .head = head_cb, .data = data_cb, .done = done_cb, .user = g};
	buf_init(&g->call.body, 64 * 1024 * 1024);
}

static void got_fini(struct got *g)
{
	buf_fini(&g->body);
}

static void start(struct got *g)
{
	struct ava_error err = {0};

	if (http_call_start(g->f->pool, &g->call, &err) != 0)
		fail_msg("%s", err.text);
	assert_non_null(g->call.impl);
}

static void wait_done(struct got *g)
{
	while (g->dones == 0)
		os_loop_step(g->f->loop, 10000);
	assert_int_equal(g->dones, 1);
	assert_null(g->call.impl);
}

/* ---- the peer */

static void answer(struct peer_conn *c, const char *head, const char *body, size_t len)
{
	struct fixture *f = c->peer->user;

	snprintf(f->head, sizeof(f->head), "%s", head);
	free(f->body);
	f->body = malloc(len + 1);
	memcpy(f->body, body, len + 1);
	f->body_len = len;
	f->last = c;
	if (f->reset) {
		peer_reset(c);
		return;
	}
	if (f->silent)
		return;
	peer_send(c, f->reply, f->reply_len ? f->reply_len : strlen(f->reply));
	if (f->hang_up)
		peer_close(c);
}

#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static struct http_pool *pool_for(struct fixture *f, unsigned connections_max)
{
	struct http_pool_options o = {.base_url = peer_url(&f->peer),
				      .connections_max = connections_max};
	struct ava_error err = {0};
	struct http_pool *p = http_pool_new(f->client, &o, &err);

	if (!p)
		fail_msg("%s", err.text);
	return p;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->loop = os_loop_new(NULL);
	f->client = http_client_new(f->loop, NULL);
	f->peer.user = f;
	f->peer.request = answer;
	f->reply = OK_REPLY;
	peer_start(&f->peer, f->loop);
	f->pool = pool_for(f, 0);
	*state = f;
	return f->client ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	http_pool_free(f->pool);
	http_client_free(f->client);
	peer_stop(&f->peer);
	os_loop_free(f->loop);
	free(f->body);
	free(f);
	return 0;
}

/* ---- whole responses */

static void test_get(void **state)
{
	struct fixture *f = *state;
	struct got g;

	got_init(&g, f);
	g.call.method = "GET";
	start(&g);
	assert_int_equal(g.dones, 0); /* never from inside start */
	wait_done(&g);
	assert_int_equal(g.rv, 0);
	assert_int_equal(g.call.status, 200);
	assert_int_equal(g.heads, 1);
	assert_int_equal(g.body.len, 5);
	assert_memory_equal(g.body.data, "hello", 5);
	assert_non_null(strstr(f->head, "GET /v1/x HTTP/1.1\r\n"));
	assert_non_null(strstr(f->head, "User-Agent: ava/"));
	assert_null(strcasestr(f->head, "accept-encoding"));
	got_fini(&g);
}

static void test_post(void **state)
{
	const char *const headers[] = {"Content-Type: application/json", "x-api-key: sk-secret"};
	static const size_t sizes[] = {0, 1, 1000, 16384, 16385, 300000, 3000000};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct got g;

		got_init(&g, f);
		for (size_t k = 0; k < sizes[i]; k++)
			buf_addc(&g.call.body, (char)('a' + k % 26));
		g.call.headers = headers;
		g.call.nheaders = 2;
		start(&g);
		assert_null(g.call.body.data); /* taken */
		wait_done(&g);
		assert_int_equal(g.rv, 0);
		assert_int_equal(f->body_len, sizes[i]);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_true(f->body[k] == (char)('a' + k % 26));
		assert_non_null(strstr(f->head, "POST /v1/x HTTP/1.1\r\n"));
		assert_non_null(strstr(f->head, "\r\nx-api-key: sk-secret\r\n"));
		assert_non_null(strstr(f->head, "\r\nContent-Type: application/json\r\n"));
		assert_null(strcasestr(f->head, "\r\nexpect:"));
		got_fini(&g);
	}
	assert_int_equal(f->peer.accepted, 1); /* one connection for all */
}

/* Kept headers, those of a 1xx forgotten, names without case. */
static void test_headers(void **state)
{
	struct fixture *f = *state;
	struct got g;

	f->reply = "HTTP/1.1 100 Continue\r\nretry-after: 1\r\nrequest-id: early\r\n\r\n"
		   "HTTP/1.1 429 Too Many\r\nRetry-After:  7 \r\nRETRY-AFTER-MS:\r\nX-Other: q\r\n"
		   "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nno";
	got_init(&g, f);
	start(&g);
	wait_done(&g);
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

static void test_header_names(void **state)
{
	struct fixture *f = *state;
	struct got g;

	f->reply =
		"HTTP/1.1 200 OK\r\nRequest-Id: r1\r\nretry-after-ms:\r\nServer: s\r\nDATE: x\r\n"
		"Content-Length: 0\r\n\r\n";
	got_init(&g, f);
	g.call.head = head_names;
	start(&g);
	wait_done(&g);
	assert_int_equal(g.rv, 0);
	assert_int_equal(g.heads, 1);
	got_fini(&g);
}

static void test_bad_calls(void **state)
{
	struct fixture *f = *state;
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
	g.call.method = "PUT";
	assert_int_equal(http_call_start(f->pool, &g.call, &err), AVA_EINVAL);
	assert_string_equal(g.call.body.data, "mine"); /* still the caller's */
	assert_null(g.call.impl);
	assert_int_equal(g.dones, 0);
	buf_fini(&g.call.body);
	got_fini(&g);
}

/* ---- responses that break */

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

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
	{"gzip is passed on as it is",
	 "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x01",
	 0, 200, "", 4},
	{"204", "HTTP/1.1 204 No\r\n\r\n", 0, 204, "", 0},
};

static void test_broken(void **state)
{
	struct fixture *f = *state;

	f->hang_up = true;
	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		struct got g;

		f->reply = broken[i].reply;
		got_init(&g, f);
		buf_adds(&g.call.body, "{}");
		start(&g);
		wait_done(&g);
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
static void test_cut_everywhere(void **state)
{
	static const char whole[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
				    "7\r\ndata: 1\r\n0\r\n\r\n";
	struct fixture *f = *state;

	f->hang_up = true;
	f->reply = whole;
	for (size_t len = 0; len < sizeof(whole); len++) {
		struct got g;

		got_init(&g, f);
		f->reply_len = len;
		f->reply = len ? whole : "";
		start(&g);
		wait_done(&g);
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

static void test_flood(void **state)
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
	struct fixture *f = *state;

	f->peer.request = flood_answer;
	for (size_t i = 0; i < ARRAY_LEN(floods); i++) {
		struct flood fl = {.unit = floods[i].unit};
		size_t heap;
		struct got g;

		got_init(&g, f);
		f->reply = floods[i].first;
		f->last = NULL;
		start(&g);
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

/* ---- connections that break under a request */

static void wait_request(struct fixture *f, size_t requests)
{
	while (f->peer.requests < requests)
		os_loop_step(f->loop, 1000);
}

static void test_reset(void **state)
{
	struct fixture *f = *state;
	struct got g;

	f->reset = true;
	for (size_t size = 1; size < 10000000; size *= 100) {
		got_init(&g, f);
		for (size_t k = 0; k < size; k++)
			buf_addc(&g.call.body, 'x');
		start(&g);
		wait_done(&g);
		assert_int_equal(g.rv, AVA_EIO);
		got_fini(&g);
	}
}

/* The server resets once it has seen `user` bytes: amid the body. */
static void reset_amid(struct peer_conn *c)
{
	if (c->in.len > 100000)
		peer_reset(c);
}

static void test_reset_amid_upload(void **state)
{
	struct fixture *f = *state;
	struct got g;

	f->peer.bytes = reset_amid;
	got_init(&g, f);
	for (size_t k = 0; k < 30000000; k++)
		buf_addc(&g.call.body, 'x');
	start(&g);
	wait_done(&g);
	assert_int_equal(g.rv, AVA_EIO);
	got_fini(&g);
}

/* An answer before the request was read: it counts, the rest is not sent. */
static void early_answer(struct peer_conn *c)
{
	if (c->out.len == 0 && !c->closing) {
		peer_sends(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
		c->closing = true;
		c->peer->bytes = NULL;
		c->peer->request = answer;
	}
}

static void test_early_answer(void **state)
{
	struct fixture *f = *state;
	struct got g;

	f->peer.bytes = early_answer;
	got_init(&g, f);
	for (size_t k = 0; k < 30000000; k++)
		buf_addc(&g.call.body, 'x');
	start(&g);
	wait_done(&g);
	/* The server closes with bytes unread: its kernel may send a reset that
	 * overtakes the answer. */
	if (g.rv == 0)
		assert_int_equal(g.call.status, 413);
	else
		assert_int_equal(g.rv, AVA_EIO);
	got_fini(&g);
}

/* The server closed an idle connection: the next call opens another. */
static void test_idle_closed(void **state)
{
	struct fixture *f = *state;
	struct http_pool_stats stats;

	f->hang_up = true;
	for (size_t i = 1; i <= 3; i++) {
		struct got g;

		got_init(&g, f);
		buf_adds(&g.call.body, "{}");
		start(&g);
		wait_done(&g);
		assert_int_equal(g.rv, 0);
		while (!list_empty(&f->peer.conns))
			os_loop_step(f->loop, 1000);
		assert_int_equal(f->peer.accepted, i);
		got_fini(&g);
	}
	http_pool_stats(f->pool, &stats);
	assert_int_equal(stats.opened, 3);
	assert_int_equal(stats.calls, 0);
}

/* Closed at the moment a request comes on it: the body is gone, so the call
 * fails and says that it may be repeated. */
static void test_reused_dies(void **state)
{
	struct fixture *f = *state;
	struct got g;

	got_init(&g, f);
	start(&g);
	wait_done(&g);
	got_fini(&g);
	f->reset = true;
	got_init(&g, f);
	buf_adds(&g.call.body, "{}");
	start(&g);
	wait_done(&g);
	assert_int_equal(g.rv, AVA_EIO);
	got_fini(&g);
	/* One without a body is repeated by itself, on a new connection. */
	f->reset = false;
	got_init(&g, f);
	g.call.method = "GET";
	start(&g);
	wait_done(&g);
	assert_int_equal(g.rv, 0);
	got_fini(&g);
}

static void test_refused(void **state)
{
	struct fixture *f = *state;
	struct got g;

	peer_stop(&f->peer);
	got_init(&g, f);
	start(&g);
	wait_done(&g);
	assert_int_equal(g.rv, AVA_ECONNECT);
	assert_non_null(strstr(g.text, "cannot connect to 127.0.0.1"));
	got_fini(&g);
}

/* ---- timers */

static void run_timer(struct fixture *f, struct http_timers timers, bool progress, const char *text)
{
	struct got g;

	got_init(&g, f);
	g.call.timers = timers;
	g.progress = progress;
	start(&g);
	wait_done(&g);
	assert_int_equal(g.rv, AVA_ETIMEOUT);
	if (!strstr(g.text, text))
		fail_msg("%s: %s", text, g.text);
	got_fini(&g);
}

static void test_timers(void **state)
{
	struct fixture *f = *state;
	struct http_timers first = {.first_ms = 30}, idle = {.idle_ms = 30, .first_ms = 600000},
			   total = {.total_ms = 30};

	f->silent = true; /* before the headers */
	run_timer(f, first, true, "0.03 s (first timer)");
	run_timer(f, total, true, "(total timer)");
	f->silent = false;
	f->reply = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n"; /* after them */
	run_timer(f, first, true, "(first timer)");
	f->reply = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ndata"; /* amid the body */
	run_timer(f, idle, true, "(idle timer)");
	run_timer(f, total, true, "(total timer)");
	f->reply = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n: waiting\n\n"; /* no progress */
	run_timer(f, first, false, "(first timer)");
}

/* Comments keep coming and are no progress. */
struct drip {
	struct os_timer *timer;
	struct peer_conn *conn;
	const char *text;
};

static void drip_fire(void *user)
{
	struct drip *d = user;

	peer_sends(d->conn, d->text);
	os_timer_set(d->timer, 5);
}

static void test_comments_only(void **state)
{
	struct fixture *f = *state;
	struct drip d = {.text = "7\r\n: wait\n\r\n"};
	struct got g;

	f->reply = CHUNKED;
	got_init(&g, f);
	g.progress = false;
	g.call.timers.first_ms = 200;
	start(&g);
	wait_request(f, 1);
	d.conn = f->last;
	d.timer = os_timer_new(f->loop, drip_fire, &d);
	os_timer_set(d.timer, 0);
	while (g.dones == 0 && !list_empty(&f->peer.conns))
		os_loop_step(f->loop, 1000);
	os_timer_free(d.timer);
	wait_done(&g);
	assert_int_equal(g.rv, AVA_ETIMEOUT);
	assert_non_null(strstr(g.text, "(first timer)"));
	assert_true(g.body.len > 7);
	got_fini(&g);
}

/* Real progress, slower than `first` as a whole, is never cut. */
static void test_progress(void **state)
{
	struct fixture *f = *state;
	struct drip d = {.text = "7\r\ndata: \n\r\n"};
	struct got g;

	f->reply = CHUNKED;
	got_init(&g, f);
	g.call.timers = (struct http_timers){.first_ms = 3000, .idle_ms = 3000, .total_ms = 600};
	start(&g);
	wait_request(f, 1);
	d.conn = f->last;
	d.timer = os_timer_new(f->loop, drip_fire, &d);
	os_timer_set(d.timer, 0);
	while (g.dones == 0)
		os_loop_step(f->loop, 1000);
	os_timer_free(d.timer);
	wait_done(&g);
	assert_int_equal(g.rv, AVA_ETIMEOUT);
	assert_non_null(strstr(g.text, "(total timer)"));
	got_fini(&g);
}

/* A listener whose queue is full: no connection comes about. */
static void test_connect_timer(void **state)
{
	struct fixture *f = *state;
	struct peer full = {.fd = -1};
	struct http_pool *before = f->pool;
	struct got g, fill[8];

	peer_start(&full, f->loop);
	os_poll_set(full.poll, 0);
	assert_int_equal(listen(full.fd, 0), 0);
	f->pool = http_pool_new(f->client, &(struct http_pool_options){.base_url = peer_url(&full)},
				NULL);
	for (size_t i = 0; i < ARRAY_LEN(fill); i++) {
		got_init(&fill[i], f);
		start(&fill[i]);
	}
	got_init(&g, f);
	g.call.timers.connect_ms = 200;
	start(&g);
	wait_done(&g);
	assert_int_equal(g.rv, AVA_ETIMEOUT);
	assert_non_null(strstr(g.text, "0.2 s (connect timer)"));
	for (size_t i = 0; i < ARRAY_LEN(fill); i++) {
		http_call_stop(&fill[i].call);
		assert_int_equal(fill[i].dones, 0);
		got_fini(&fill[i]);
	}
	got_fini(&g);
	http_pool_free(f->pool);
	f->pool = before;
	peer_stop(&full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_get, setup, teardown),
		cmocka_unit_test_setup_teardown(test_post, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_header_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_everywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reset_amid_upload, setup, teardown),
		cmocka_unit_test_setup_teardown(test_early_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reused_dies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_comments_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_progress, setup, teardown),
		cmocka_unit_test_setup_teardown(test_connect_timer, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
