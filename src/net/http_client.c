/* The client (one timer for all deadlines, the table of libcurl's sockets)
 * and a call's start and stop.
 *
 * Happy path: http_call_start copies what it must, puts the call into its
 * pool's queue and defers the rest to the end of the turn; the pool hands it
 * to libcurl (http_pool.c, http_multi.c); http_call.c answers libcurl's
 * questions and tells the end. A stop takes the call out wherever it is.
 *
 * What can fail: memory, and headers or paths that would break the request
 * apart. */
#include "net/http_client.h"

#include <assert.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "net/http_call.h"
#include "net/http_multi.h"
#include "net/http_pool.h"

#define CONNECT_MS 5000
#define FIRST_MS   120000
#define IDLE_MS    60000
#define TOTAL_MS   1800000

/* ---- deadlines */

static void rearm(struct http_client *c)
{
	struct deadline *first = deadlines_first(&c->deadlines);

	if (!first || first->at >= c->armed_at)
		return; /* a timer that comes too early finds nothing and is armed again */
	c->armed_at = first->at;
	os_timer_set(c->timer, first->at - os_now_ms(c->loop));
}

static void timer_fire(void *user)
{
	struct http_client *c = user;
	struct deadline *d;

	c->armed_at = INT64_MAX;
	while ((d = deadlines_first(&c->deadlines)) && d->at <= os_now_ms(c->loop))
		d->fire(d);
	rearm(c);
}

int http_client_due(struct http_client *c, struct deadline *d, int64_t at)
{
	if (d->pos)
		deadlines_move(&c->deadlines, d, at);
	else if (deadlines_add(&c->deadlines, d, at) != 0)
		return AVA_ENOMEM;
	rearm(c);
	return 0;
}

/* ---- the client */

struct http_client *http_client_new(struct os_loop *loop, struct ava_error *err)
{
	struct http_client *c = calloc(1, sizeof(*c));

	if (c)
		c->timer = os_timer_new(loop, timer_fire, c);
	if (!c || !c->timer) {
		err_set(err, AVA_ENOMEM, "HTTP client: out of memory");
		free(c);
		return NULL;
	}
	c->loop = loop;
	c->armed_at = INT64_MAX;
	c->lookup = getaddrinfo;
	return c;
}

void http_client_set_lookup(struct http_client *c, http_lookup_fn lookup)
{
	c->lookup = lookup;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	assert(c->pools == 0);
	deadlines_fini(&c->deadlines);
	os_timer_free(c->timer);
	free(c->socks);
	if (c->curl)
		curl_global_cleanup();
	free(c);
}

/* ---- calls */

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return true;
	return false;
}

static int check(const struct http_call *c, struct ava_error *err)
{
	assert(c->done && !c->impl);
	if (!c->path || c->path[0] != '/' || has_control(c->path) || strchr(c->path, ' '))
		return err_set(err, AVA_EINVAL,
			       "the path of a call must begin with / and hold "
			       "no blanks or control characters");
	if (c->method && strcmp(c->method, "GET") != 0 && strcmp(c->method, "POST") != 0)
		return err_set(err, AVA_EINVAL, "method %.20s: only GET and POST", c->method);
	for (unsigned i = 0; i < c->nheaders; i++)
		if (has_control(c->headers[i]) || !strchr(c->headers[i], ':'))
			return err_set(err, AVA_EINVAL, /* the value may be a key: not shown */
				       "header %u of a call is not \"Name: value\" or holds a "
				       "control character",
				       i + 1);
	return 0;
}

/* All nodes and strings in one block, so that one wipe reaches all. */
static int copy_headers(struct http_call_impl *im, const struct http_call *c)
{
	/* Without this libcurl waits a second for a 100 before large bodies. */
	static const char no_expect[] = "Expect:";
	size_t size = (c->nheaders + 1) * sizeof(struct curl_slist);
	struct curl_slist *node;
	char *text;

	for (unsigned i = 0; i <= c->nheaders; i++)
		size += strlen(i < c->nheaders ? c->headers[i] : no_expect) + 1;
	im->headers = node = malloc(size);
	if (!node)
		return AVA_ENOMEM;
	im->headers_size = size;
	text = (char *)(node + c->nheaders + 1);
	for (unsigned i = 0; i <= c->nheaders; i++, node++) {
		const char *s = i < c->nheaders ? c->headers[i] : no_expect;
		size_t len = strlen(s) + 1;

		memcpy(text, s, len);
		*node = (struct curl_slist){.data = text,
					    .next = i < c->nheaders ? node + 1 : NULL};
		text += len;
	}
	return 0;
}

static int64_t or_default(int64_t ms, int64_t normal)
{
	return ms > 0 ? ms : normal;
}

static struct http_call_impl *impl_new(struct http_pool *p, const struct http_call *c)
{
	struct http_call_impl *im = calloc(1, sizeof(*im));
	size_t size = strlen(p->target.url) + strlen(c->path) + 1;

	if (!im)
		return NULL;
	list_init(&im->node);
	list_init(&im->unsent);
	im->pool = p;
	im->get = c->method && strcmp(c->method, "GET") == 0;
	buf_init(&im->kept, 8192);
	im->timers = (struct http_timers){
		.connect_ms = or_default(c->timers.connect_ms, CONNECT_MS),
		.first_ms = or_default(c->timers.first_ms, FIRST_MS),
		.idle_ms = or_default(c->timers.idle_ms, IDLE_MS),
		.total_ms = or_default(c->timers.total_ms, TOTAL_MS),
	};
	im->total_at = os_now_ms(p->client->loop) + im->timers.total_ms;
	im->phase_at = im->total_at;
	im->due.fire = http_call_due;
	im->url = malloc(size);
	if (!im->url || copy_headers(im, c) != 0 ||
	    http_client_due(p->client, &im->due, im->total_at) != 0) {
		free(im->headers); /* deadlines come last: nothing else to undo */
		free(im->url);
		free(im);
		return NULL;
	}
	snprintf(im->url, size, "%s%s", p->target.url, c->path);
	return im;
}

int http_call_start(struct http_pool *p, struct http_call *c, struct ava_error *err)
{
	struct http_call_impl *im;
	int rv = check(c, err);

	if (rv != 0)
		return rv;
	im = impl_new(p, c);
	if (!im)
		return err_set(err, AVA_ENOMEM, "call to %s: out of memory", p->target.host);
	im->call = c;
	im->body = c->body;
	im->body_len = im->body.len;
	buf_init(&c->body, c->body.max);
	c->impl = im;
	c->status = 0;
	c->kept = NULL;
	list_add(&p->waiting, &im->node);
	p->nwaiting++;
	p->ncalls++;
	http_pool_wake(p);
	return 0;
}

void http_call_stop(struct http_call *c)
{
	struct http_call_impl *im = c->impl;

	if (!im)
		return;
	c->impl = NULL;
	c->kept = NULL;
	im->call = NULL;
	if (im->multi) {
		http_multi_drop(im->multi, im);
		return;
	}
	list_del(&im->node);
	im->pool->nwaiting--;
	http_call_free(im);
}

const char *http_call_header(const struct http_call *c, const char *name)
{
	const char *at = c->kept;

	/* "name\0value\0" again and again, then an empty name. */
	while (at && *at) {
		const char *value = at + strlen(at) + 1;

		if (strcasecmp(at, name) == 0)
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}
