/* One attempt on the wire against a peer on the same loop: what counts as
 * progress, whose word about a failure counts, and that nothing is left. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "http_peer.h"
#include "provider/dialect.h"
#include "provider/model.h"
#include "subagent/wire.h"

/* ---- the rig */

struct rig {
	struct os_loop *loop;
	struct peer peer;
	struct http_client *client;
	struct http_pool *pool;
	struct wirecall w;
	struct model model;
	const char *reply; /* what the peer sends, then it closes */
	int64_t skip_ms;   /* how far the clock goes with each turn */
	bool keep_open;
	char head[2000], text[200];
	size_t body_len;
	int begans, dones;
	enum reply_class cls;
	struct reply_error error;
	bool accepted;
	char after[64], turn_id[64];
	int status;
};

static void answer(struct peer_conn *c, const char *head, const char *body, size_t len)
{
	struct rig *r = c->peer->user;

	snprintf(r->head, sizeof(r->head), "%s", head);
	r->body_len = len;
	if (r->reply)
		peer_sends(c, r->reply);
	if (r->reply && !r->keep_open)
		peer_close(c);
}

static void on_began(struct wirecall *w)
{
	CONTAINER_OF(w, struct rig, w)->begans++;
}

static void on_done(struct wirecall *w, struct wirecall_end *end)
{
	struct rig *r = CONTAINER_OF(w, struct rig, w);

	r->dones++;
	r->cls = end->failure.cls;
	r->status = end->failure.status;
	r->error = end->error;
	r->accepted = end->accepted;
	snprintf(r->after, sizeof(r->after), "%s", end->failure.after ? end->failure.after : "-");
	assert_int_equal(end->turn != NULL, r->cls == REPLY_OK);
	snprintf(r->turn_id, sizeof(r->turn_id), "%s", end->turn ? end->turn->request_id : "");
	turn_free(end->turn);
}

static void on_text(const char *s, size_t n, bool thinking, void *user)
{
	struct rig *r = user;
	size_t at = strlen(r->text);

	snprintf(r->text + at, sizeof(r->text) - at, "%.*s|", (int)n, s);
}

static int set_up(void **state)
{
	struct http_pool_options o = {0};
	struct rig *r = calloc(1, sizeof(*r));

	r->loop = os_loop_new(NULL);
	r->peer = (struct peer){.request = answer, .user = r};
	peer_start(&r->peer, r->loop);
	r->client = http_client_new(r->loop, NULL);
	o.base_url = peer_url(&r->peer);
	r->pool = http_pool_new(r->client, &o, NULL);
	assert_non_null(r->pool);
	r->model = (struct model){.dialect = &dialect_openai, .wire_name = "toy-1"};
	r->w.on_began = on_began;
	r->w.on_done = on_done;
	r->w.on_text = on_text;
	r->w.text_user = r;
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *r = *state;

	http_pool_free(r->pool);
	http_client_free(r->client);
	peer_stop(&r->peer);
	os_loop_free(r->loop);
	free(r);
	return 0;
}

static int start(struct rig *r, const char *key)
{
	TEST_BUF(body, 1u << 20);
	int rv;

	buf_adds(&body, "{\"messages\":[]}");
	rv = wirecall_start(&r->w, r->pool, &r->model, key, "7f3a2b_3", &body, NULL);
	if (rv == 0)
		assert_null(body.data);
	return rv;
}

static void call(struct rig *r, const char *reply)
{
	int before = r->dones;

	r->reply = reply;
	r->begans = 0;
	r->text[0] = 0;
	assert_int_equal(start(r, "k"), 0);
	assert_int_equal(r->dones, before);
	while (r->dones == before) {
		test_clock_skip(r->skip_ms);
		os_loop_step(r->loop, r->skip_ms ? 5 : 1000);
	}
	assert_int_equal(r->dones, before + 1);
}

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
#define WAIT    ": wait\n\n"
#define WORD                                                                                       \
	"data: "                                                                                   \
	"{\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"eightier\"}}]}\n\n"
#define OVER "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"too busy\"}}\n\n"
#define STOP "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define END  STOP "data: [DONE]\n\n"

TEST_OF(whole, struct rig *r)
{
	call(r, OK_HEAD "request-id: r1\r\n\r\n" WAIT WORD WORD END);
	assert_int_equal(r->cls, REPLY_OK);
	assert_int_equal(r->begans, 1);
	assert_string_equal(r->turn_id, "r1");
	assert_string_equal(r->text, "eightier|eightier|");
	assert_non_null(strstr(r->head, "POST /chat/completions HTTP/1.1\r\n"));
	assert_non_null(strstr(r->head, "authorization: Bearer k\r\n"));
	assert_int_equal(r->body_len, strlen("{\"messages\":[]}"));
	call(r, OK_HEAD "x-generation-id: g1\r\n\r\n" END);
	assert_string_equal(r->turn_id, "g1");
	call(r, OK_HEAD "\r\n" WORD END);
	assert_string_equal(r->turn_id, "x");
}

/* The end mark came: what becomes of the connection then does not matter. */
TEST_OF(whole_though_broken, struct rig *r)
{
	call(r, OK_HEAD "Content-Length: 500\r\n\r\n" WORD END);
	assert_int_equal(r->cls, REPLY_OK);
}

#define WHOLE                                                                                      \
	"{\"id\":\"x\",\"choices\":[{\"message\":{\"content\":\"eightier\"},"                      \
	"\"finish_reason\":\"stop\"}]}"
#define ARGS(text)                                                                                 \
	"data: {\"id\":\"x\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\","  \
	"\"function\":{\"name\":\"f\",\"arguments\":\"" text "\"}}]}}]}\n\n"
#define USED                                                                                       \
	"data: {\"choices\":[],"                                                                   \
	"\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":5}}\n\n"
#define CHUNK(size, text) "Transfer-Encoding: chunked\r\n\r\n" size "\r\n" text "\r\n0\r\n\r\n"

/* Whole without its mark, by a reason and the end of the body. */
TEST_OF(whole_by_its_reason, struct rig *r)
{
	static const struct {
		const char *reply;
		bool whole;
	} ends[] = {
		{OK_HEAD "\r\n" WORD STOP, true},
		{OK_HEAD "\r\n" WORD "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}", true},
		{OK_HEAD "\r\n" WORD STOP "data: [DO", true},
		{OK_HEAD "\r\n" WHOLE, true},
		{OK_HEAD "\r\n" ARGS("{}") USED, true},
		{OK_HEAD "\r\n" ARGS("{}"), false}, /* another call may have been to come */
		{OK_HEAD "\r\n" ARGS("{") USED, false},
		{OK_HEAD CHUNK("77", ARGS("{}")), true},
		{OK_HEAD "\r\n" WORD USED, false},
		{OK_HEAD "\r\n" WORD "data: [DONE]\n\n", false}, /* half a sentence */
	};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		call(r, ends[i].reply);
		print_message("%zu: %s\n", i, r->error.text);
		assert_int_equal(r->cls, ends[i].whole ? REPLY_OK : REPLY_TRUNCATED);
	}
}

static const struct {
	const char *reply;
	enum reply_class cls;
	int status, begans;
	bool accepted;
	const char *after, *text;
} cases[] = {
	{OK_HEAD "\r\n" WORD, REPLY_TRUNCATED, 200, 1, true, "-", "broke off before its end"},
	{OK_HEAD "Content-Length: 500\r\n\r\n" WORD, REPLY_TRUNCATED, 200, 1, true, "-", NULL},
	{OK_HEAD "Content-Length: 500\r\n\r\n" WAIT, REPLY_NETWORK, 200, 0, true, "-", NULL},
	/* its reason came, but the body breaks */
	{OK_HEAD "Content-Length: 500\r\n\r\n" WORD STOP, REPLY_TRUNCATED, 200, 1, true, "-", NULL},
	{OK_HEAD "Transfer-Encoding: chunked\r\n\r\nfff\r\n" WORD STOP, REPLY_TRUNCATED, 200, 1,
	 true, "-", NULL},
	{OK_HEAD "\r\n" WORD "data: {bad\n\n" WORD, REPLY_PROTOCOL, 200, 1, true, "-",
	 "an event that is no JSON"},
	{OK_HEAD "\r\n" WORD OVER, REPLY_OVERLOADED, 200, 1, true, "-", "too busy"},
	/* the service said it before the connection broke */
	{OK_HEAD "Content-Length: 500\r\n\r\n" OVER, REPLY_OVERLOADED, 200, 0, false, "-",
	 "too busy"},
	/* a page instead of a reply: nothing was written that could cost something */
	{OK_HEAD "\r\n<html>\n", REPLY_WALL, 200, 0, false, "-", "a page of HTML (HTTP 200)"},
	{OK_HEAD "Content-Length: 500\r\n\r\n", REPLY_NETWORK, 200, 0, true, "-", NULL},
	{"HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 3\r\n\r\nno\n", REPLY_RATE_LIMIT,
	 429, 0, false, "7", "no"},
	{"HTTP/1.1 500 No\r\nContent-Type: text/html\r\n\r\n<html>\n", REPLY_SERVER, 500, 0, false,
	 "-", "a page of HTML (HTTP 500)"},
	{"HTTP/1.1 307 No\r\nLocation: https://x/v1\r\nContent-Length: 0\r\n\r\n", REPLY_ADDRESS,
	 307, 0, false, "-", "it redirects to https://x/v1"},
	{"HTTP/1.1 429 No\r\nContent-Type: application/json\r\n\r\n"
	 "{\"error\":{\"message\":\"Please try again in 1h7m40.8s.\"}}\n",
	 REPLY_RATE_LIMIT, 429, 0, false, "1h7m40.8s.", "try again"},
	{"HTTP/1.1 201 Made\r\nContent-Type: text/event-stream\r\n\r\n" WORD, REPLY_TRUNCATED, 201,
	 1, true, "-", "broke off before its end"},
	{"hello\r\n\r\n", REPLY_PROTOCOL, 0, 0, false, "-", NULL},
	{"", REPLY_NETWORK, 0, 0, false, "-", NULL},
};

TEST_OF(failures, struct rig *r)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		call(r, cases[i].reply);
		print_message("%zu: %s\n", i, r->error.text);
		assert_int_equal(r->cls, cases[i].cls);
		assert_int_equal(r->error.cls, cases[i].cls);
		assert_int_equal(r->status, cases[i].status);
		assert_int_equal(r->begans, cases[i].begans);
		assert_int_equal(r->accepted, cases[i].accepted);
		assert_string_equal(r->after, cases[i].after);
		if (cases[i].text)
			assert_non_null(strstr(r->error.text, cases[i].text));
		assert_true(strlen(r->error.text) > 1);
	}
}

TEST_OF(nobody_listens, struct rig *r)
{
	peer_stop(&r->peer);
	call(r, NULL);
	assert_int_equal(r->cls, REPLY_NETWORK);
	assert_false(r->accepted);
	peer_start(&r->peer, r->loop);
}

/* What comes at once, and then nothing, keeps no call alive. */
TEST_OF(timers, struct rig *r)
{
	r->keep_open = true;
	r->skip_ms = 1000;
	r->w.http.timers.first_ms = 60000;
	r->w.http.timers.idle_ms = 600000;
	call(r, OK_HEAD "\r\n" WAIT);
	assert_int_equal(r->cls, REPLY_TIMEOUT);
	assert_int_equal(r->begans, 0);
	r->w.http.timers.first_ms = 600000;
	r->w.http.timers.idle_ms = 60000;
	call(r, OK_HEAD "\r\n" WORD);
	assert_int_equal(r->cls, REPLY_TIMEOUT);
	assert_int_equal(r->begans, 1);
	assert_true(r->accepted);
	call(r, OK_HEAD "\r\n" WORD END); /* whole, only the line stays open */
	assert_int_equal(r->cls, REPLY_OK);
	call(r, OK_HEAD "\r\n" WORD STOP); /* and nothing more behind the reason */
	assert_int_equal(r->cls, REPLY_OK);
	/* The first wait is for text: an event without any is none. */
	r->w.http.timers.first_ms = 60000;
	r->w.http.timers.idle_ms = 1000;
	call(r, OK_HEAD "\r\n" WAIT ARGS(""));
	assert_int_equal(r->cls, REPLY_TIMEOUT);
	assert_non_null(strstr(r->error.text, "(first timer)"));
}

/* No wait twice at the same length; a near service as long as the run has time. */
TEST(waits)
{
	struct settings s = {.net_connect_s = 5, .net_idle_s = 60, .net_total_s = 1800};
	struct provider far = {.name = "anthropic", .base_url = "https://api.anthropic.com"},
			near = {.name = "openai", .base_url = "https://192.168.1.5:8443/v1"};
	struct http_timers t = wire_timers(&far, &s, 7200000, 0);

	assert_int_equal(t.first_ms, 120000);
	assert_int_equal(t.total_ms, 1800000);
	t = wire_timers(&far, &s, 7200000, 2);
	assert_int_equal(t.first_ms, 480000);
	assert_int_equal(t.idle_ms, 240000);
	assert_int_equal(t.connect_ms, 5000);
	t = wire_timers(&near, &s, 7200000, 0);
	assert_int_equal(t.first_ms, 7205000);
	assert_int_equal(t.total_ms, 7205000);
	assert_int_equal(wire_timers(&near, &s, 1000, 0).first_ms, 1800000);
	assert_int_equal(wire_timers(&near, &s, INT64_MAX, 0).first_ms, 604805000);
	s.net_first_s = 10; /* as it is set, anywhere */
	assert_int_equal(wire_timers(&near, &s, 7200000, 1).first_ms, 20000);
	assert_int_equal(wire_timers(&near, &s, 7200000, 90).first_ms, 10240000);
}

TEST_OF(stop, struct rig *r)
{
	struct usage cut;

	wirecall_stop(&r->w, &cut); /* not running */
	assert_int_equal(cut.output, 0);
	r->keep_open = true;
	r->reply = OK_HEAD "\r\n" WORD WORD;
	assert_int_equal(start(r, "k"), 0);
	while (r->begans == 0)
		os_loop_step(r->loop, 1000);
	wirecall_stop(&r->w, &cut);
	assert_int_equal(cut.output, 4); /* of 16 bytes */
	assert_int_equal(r->dones, 0);
	wirecall_stop(&r->w, &cut);
	assert_int_equal(start(r, "k"), 0);
	wirecall_stop(&r->w, NULL); /* before anything left */
	for (int i = 0; i < 5; i++)
		os_loop_step(r->loop, 0);
	assert_int_equal(r->dones, 0);
}

TEST_OF(without_memory, struct rig *r)
{
	r->reply = OK_HEAD "\r\n" END;
	FAULT_LOOP(k, {
		int rv = start(r, "k");

		assert_true(rv == 0 || rv == AVA_ENOMEM);
		wirecall_stop(&r->w, NULL);
	});
	call(r, r->reply);
	assert_int_equal(r->cls, REPLY_OK);
}

TEST_OF(bad_key, struct rig *r)
{
	assert_int_equal(start(r, "a\nb"), AVA_EINVAL);
	assert_int_equal(start(r, "a\tb\x01"), AVA_EINVAL); /* refused by the client */
	assert_int_equal(r->dones, 0);
}

UNIT_GROUP(.before = set_up, .after = tear_down);
