/* One attempt on the wire against a peer on the same loop: what counts as
 * progress, whose word about a failure counts, and that nothing is left. The
 * dialect is a toy: a word a line ("end" is the end mark). */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "http_peer.h"
#include "subagent/wire.h"

/* ---- a toy dialect */

struct stream {
	struct buf in;
	size_t words;
	bool end, over, page;
	void (*text)(const char *s, size_t n, bool thinking, void *user);
	void *user;
};
static int streams; /* alive */

static struct stream *toy_new(const struct model *m, const char *tag)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	assert_string_equal(tag, "7f3a2b_3");
	assert_string_equal(m->wire_name, "toy-1");
	buf_init(&s->in, 1u << 20);
	streams++;
	return s;
}

static int toy_feed(struct stream *s, const char *data, size_t len, bool *progress)
{
	char *nl;

	*progress = false;
	buf_add(&s->in, data, len);
	while (s->in.len > 0 && (nl = memchr(s->in.data, '\n', s->in.len)) != NULL) {
		*nl = 0;
		if (strcmp(s->in.data, "bad") == 0)
			return AVA_EPROTO;
		if (strcmp(s->in.data, "<html>") == 0) {
			s->page = true;
			return AVA_EPROTO;
		}
		if (strcmp(s->in.data, "over") == 0)
			s->over = true;
		s->end = s->end || strcmp(s->in.data, "end") == 0;
		if (s->in.data[0] != ':')
			*progress = true;
		if (s->text)
			s->text(s->in.data, strlen(s->in.data), false, s->user);
		s->words++;
		buf_drop(&s->in, (size_t)(nl - s->in.data) + 1);
	}
	return 0;
}

static enum reply_class toy_end(struct stream *s, int status, const char *type, struct turn **out,
				struct reply_error *e)
{
	if (status == 200 && s->end) {
		*out = turn_new();
		(*out)->request_id = "of the body";
		return REPLY_OK;
	}
	snprintf(e->text, sizeof(e->text), "toy: %s", type ? type : "no type");
	e->usage.output = (int64_t)s->words;
	if (s->over)
		return REPLY_OVERLOADED;
	if (s->page && status == 200)
		return REPLY_PROTOCOL;
	if (status == 429)
		return REPLY_RATE_LIMIT;
	if (status == 0)
		return REPLY_NETWORK;
	return status == 200 ? REPLY_TRUNCATED : REPLY_SERVER;
}

static void toy_free(struct stream *s)
{
	if (!s)
		return;
	buf_fini(&s->in);
	free(s);
	streams--;
}

static void toy_on_text(struct stream *s,
			void (*text)(const char *s, size_t n, bool thinking, void *user),
			void *user)
{
	s->text = text;
	s->user = user;
}

static int toy_headers(struct buf *out, const struct model *m, const char *key)
{
	if (strchr(key, '\n'))
		return AVA_EINVAL;
	return buf_addf(out, "x-key: %s\nx-model: %s\n", key, m->wire_name);
}

static const struct dialect toy = {
	.name = "toy",
	.path = "/v1/toys",
	.headers = toy_headers,
	.stream_new = toy_new,
	.stream_feed = toy_feed,
	.stream_end = toy_end,
	.stream_free = toy_free,
	.stream_on_text = toy_on_text,
};

/* ---- the rig */

struct rig {
	struct os_loop *loop;
	struct peer peer;
	struct http_client *client;
	struct http_pool *pool;
	struct wirecall w;
	struct model model;
	const char *reply; /* what the peer sends, then it closes */
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
	r->model = (struct model){.dialect = &toy, .wire_name = "toy-1"};
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
	assert_int_equal(streams, 0);
	free(r);
	return 0;
}

static int start(struct rig *r, const char *key)
{
	struct buf body;
	int rv;

	buf_init(&body, 1u << 20);
	buf_adds(&body, "{\"messages\":[]}");
	rv = wirecall_start(&r->w, r->pool, &r->model, key, "7f3a2b_3", &body, NULL);
	if (rv == 0)
		assert_null(body.data);
	buf_fini(&body);
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
	while (r->dones == before)
		os_loop_step(r->loop, 1000);
	assert_int_equal(r->dones, before + 1);
	assert_int_equal(streams, 0);
}

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/toy\r\n"

static void test_whole(void **state)
{
	struct rig *r = *state;

	call(r, OK_HEAD "request-id: r1\r\n\r\n: wait\none\ntwo\nend\n");
	assert_int_equal(r->cls, REPLY_OK);
	assert_int_equal(r->begans, 1);
	assert_string_equal(r->turn_id, "r1");
	assert_string_equal(r->text, ": wait|one|two|end|");
	assert_non_null(strstr(r->head, "POST /v1/toys HTTP/1.1\r\n"));
	assert_non_null(strstr(r->head, "x-key: k\r\n"));
	assert_non_null(strstr(r->head, "x-model: toy-1\r\n"));
	assert_int_equal(r->body_len, strlen("{\"messages\":[]}"));
	call(r, OK_HEAD "x-generation-id: g1\r\n\r\nend\n");
	assert_string_equal(r->turn_id, "g1");
	call(r, OK_HEAD "\r\nend\n");
	assert_string_equal(r->turn_id, "of the body");
}

/* The end mark came: what becomes of the connection then does not matter. */
static void test_whole_though_broken(void **state)
{
	struct rig *r = *state;

	call(r, OK_HEAD "Content-Length: 500\r\n\r\none\nend\n");
	assert_int_equal(r->cls, REPLY_OK);
}

static const struct {
	const char *reply;
	enum reply_class cls;
	int status, begans;
	bool accepted;
	const char *after, *text;
} cases[] = {
	{OK_HEAD "\r\none\n", REPLY_TRUNCATED, 200, 1, true, "-", "toy: text/toy"},
	{OK_HEAD "Content-Length: 500\r\n\r\none\n", REPLY_TRUNCATED, 200, 1, true, "-", NULL},
	{OK_HEAD "Content-Length: 500\r\n\r\n: wait\n", REPLY_NETWORK, 200, 0, true, "-", NULL},
	{OK_HEAD "\r\none\nbad\ntwo\n", REPLY_TRUNCATED, 200, 0, true, "-", "toy: text/toy"},
	{OK_HEAD "\r\none\nover\n", REPLY_OVERLOADED, 200, 1, true, "-", "toy: text/toy"},
	/* the service said it before the connection broke */
	{OK_HEAD "Content-Length: 500\r\n\r\nover\n", REPLY_OVERLOADED, 200, 1, true, "-",
	 "toy: text/toy"},
	/* a page instead of a reply: nothing was written that could cost something */
	{OK_HEAD "\r\n<html>\n", REPLY_PROTOCOL, 200, 0, false, "-", "toy: text/toy"},
	{OK_HEAD "Content-Length: 500\r\n\r\n", REPLY_NETWORK, 200, 0, true, "-", NULL},
	{"HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 3\r\n\r\nno\n", REPLY_RATE_LIMIT,
	 429, 0, false, "7", "toy: no type"},
	{"HTTP/1.1 500 No\r\nContent-Type: text/html\r\n\r\n<html>\n", REPLY_SERVER, 500, 0, false,
	 "-", "toy: text/html"},
	{"hello\r\n\r\n", REPLY_PROTOCOL, 0, 0, false, "-", NULL},
	{"", REPLY_NETWORK, 0, 0, false, "-", NULL},
};

static void test_failures(void **state)
{
	struct rig *r = *state;

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
			assert_string_equal(r->error.text, cases[i].text);
		assert_true(strlen(r->error.text) > 5);
	}
}

static void test_nobody_listens(void **state)
{
	struct rig *r = *state;

	peer_stop(&r->peer);
	call(r, NULL);
	assert_int_equal(r->cls, REPLY_NETWORK);
	assert_false(r->accepted);
	peer_start(&r->peer, r->loop);
}

/* Comments keep no call alive. */
static void test_timers(void **state)
{
	struct rig *r = *state;

	r->keep_open = true;
	r->w.http.timers.first_ms = 30;
	call(r, OK_HEAD "\r\n: wait\n");
	assert_int_equal(r->cls, REPLY_TIMEOUT);
	assert_int_equal(r->begans, 0);
	r->w.http.timers.first_ms = 5000;
	r->w.http.timers.idle_ms = 30;
	call(r, OK_HEAD "\r\none\n");
	assert_int_equal(r->cls, REPLY_TIMEOUT);
	assert_int_equal(r->begans, 1);
	assert_true(r->accepted);
	call(r, OK_HEAD "\r\none\nend\n"); /* whole, only the line stays open */
	assert_int_equal(r->cls, REPLY_OK);
}

static void test_stop(void **state)
{
	struct rig *r = *state;
	struct usage cut;

	wirecall_stop(&r->w, &cut); /* not running */
	assert_int_equal(cut.output, 0);
	r->keep_open = true;
	r->reply = OK_HEAD "\r\none\ntwo\n";
	assert_int_equal(start(r, "k"), 0);
	while (r->begans == 0)
		os_loop_step(r->loop, 1000);
	wirecall_stop(&r->w, &cut);
	assert_int_equal(cut.output, 2);
	assert_int_equal(r->dones, 0);
	assert_int_equal(streams, 0);
	wirecall_stop(&r->w, &cut);
	assert_int_equal(start(r, "k"), 0);
	wirecall_stop(&r->w, NULL); /* before anything left */
	for (int i = 0; i < 5; i++)
		os_loop_step(r->loop, 0);
	assert_int_equal(r->dones, 0);
}

static void test_without_memory(void **state)
{
	struct rig *r = *state;

	r->reply = OK_HEAD "\r\nend\n";
	FAULT_LOOP(k, {
		int rv = start(r, "k");

		assert_true(rv == 0 || rv == AVA_ENOMEM);
		assert_int_equal(streams, rv == 0);
		wirecall_stop(&r->w, NULL);
	});
	call(r, r->reply);
	assert_int_equal(r->cls, REPLY_OK);
}

static void test_bad_key(void **state)
{
	struct rig *r = *state;

	assert_int_equal(start(r, "a\nb"), AVA_EINVAL);
	assert_int_equal(start(r, "a\tb\x01"), AVA_EINVAL); /* refused by the client */
	assert_int_equal(r->dones, 0);
	assert_int_equal(streams, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_whole_though_broken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_failures, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nobody_listens, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_timers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bad_key, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
