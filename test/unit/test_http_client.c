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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_get, setup, teardown),
		cmocka_unit_test_setup_teardown(test_post, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_header_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_calls, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
