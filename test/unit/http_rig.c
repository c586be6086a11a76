/* The rig of the HTTP client's tests. */
#include "http_rig.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rig_resolve_fn *rig_resolve;

int rig_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		    struct addrinfo **out)
{
	rig_resolve_fn *real = (rig_resolve_fn *)dlsym(RTLD_NEXT, "getaddrinfo");

	return real(host, port, hints, out);
}

__attribute__((visibility("default"))) int getaddrinfo(const char *host, const char *port,
						       const struct addrinfo *hints,
						       struct addrinfo **out)
{
	return (rig_resolve ? rig_resolve : rig_getaddrinfo)(host, port, hints, out);
}

/* ---- a call that writes down what it is told */

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
		g->heads = 0;
		got_start(g);
		break;
	case LIVES:
		http_call_lives(&g->call);
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
	assert_non_null(c->impl);
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

void got_init(struct got *g, struct fixture *f)
{
	*g = (struct got){.f = f, .progress = true};
	buf_init(&g->body, 64 * 1024 * 1024);
	g->call = (struct http_call){
		.path = "/v1/x", .head = head_cb, .data = data_cb, .done = done_cb, .user = g};
	buf_init(&g->call.body, 64 * 1024 * 1024);
}

void got_fini(struct got *g)
{
	buf_fini(&g->body);
}

void got_start(struct got *g)
{
	struct ava_error err = {0};

	if (http_call_start(g->f->pool, &g->call, &err) != 0)
		fail_msg("%s", err.text);
	assert_non_null(g->call.impl);
}

void got_wait(struct got *g)
{
	while (g->dones == 0)
		os_loop_step(g->f->loop, 20); /* a turn that began with a timer waits on */
	assert_int_equal(g->dones, 1);
	assert_null(g->call.impl);
}

void got_run(struct got *g)
{
	got_start(g);
	got_wait(g);
}

void got_body(struct got *g, size_t len)
{
	for (size_t k = 0; k < len; k++)
		buf_addc(&g->call.body, 'x');
}

/* ---- the peer */

void rig_answer(struct peer_conn *c, const char *head, const char *body, size_t len)
{
	struct fixture *f = c->peer->user;

	snprintf(f->head, sizeof(f->head), "%s", head);
	free(f->body);
	f->body = malloc(len + 1);
	memcpy(f->body, body, len + 1);
	f->body_len = len;
	f->last = c;
	if (f->reset || f->reset_once) {
		f->reset_once = false;
		peer_reset(c);
		return;
	}
	if (f->silent)
		return;
	peer_send(c, f->reply, f->reply_len ? f->reply_len : strlen(f->reply));
	if (f->hang_up)
		peer_close(c);
}

void rig_pool(struct fixture *f, struct http_pool_options o)
{
	struct ava_error err = {0};

	http_pool_free(f->pool);
	o.base_url = o.base_url ? o.base_url : peer_url(&f->peer);
	f->pool = http_pool_new(f->client, &o, &err);
	if (!f->pool)
		fail_msg("%s", err.text);
}

int rig_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->loop = os_loop_new(NULL);
	f->client = http_client_new(f->loop, NULL);
	f->peer.user = f;
	f->peer.request = rig_answer;
	f->reply = OK_REPLY;
	peer_start(&f->peer, f->loop);
	rig_pool(f, (struct http_pool_options){0});
	*state = f;
	return f->client ? 0 : -1;
}

int rig_teardown(void **state)
{
	struct fixture *f = *state;

	test_clock_go();
	http_pool_free(f->pool);
	http_client_free(f->client);
	peer_stop(&f->peer);
	os_loop_free(f->loop);
	free(f->body);
	free(f);
	return 0;
}

void rig_stop_clock(struct fixture *f)
{
	test_clock_stop();
	os_loop_step(f->loop, 0); /* the loop's own time is that of its last turn */
}

void rig_wait_requests(struct fixture *f, size_t requests)
{
	while (f->peer.requests < requests)
		os_loop_step(f->loop, 1000);
}
