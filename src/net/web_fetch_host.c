/* The guarded fetcher; see web_fetch.h.
 *
 * Happy path: web_fetch_start reads the URL (net/address.c) and puts the fetch into the queue of
 * its host; the pump starts as many as host and fetcher allow, first of all the host's robots.txt,
 * and hands them to libcurl (web_fetch_call.c). A redirect makes the fetch wait at its next host as
 * if it had come new, with what is left of its time.
 *
 * What can fail becomes one of FETCH_FAULTS, and the fetch is over. */
#include "net/web_fetch_host.h"

#include <assert.h>
#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "net/http_client.h"
#include "net/robots.h"

#define ROBOT          "ava" /* ava's name in robots.txt */
#define PARALLEL       64
#define PER_HOST       4
#define HOSTS_MAX      256 /* hosts whose rules are remembered */
#define HOPS_MAX       5
#define BODY_MAX       (2u << 20)
#define HEAD_MAX       (64u << 10)
#define WAIT_MS        60000
#define TOTAL_MS       30000
#define CONNECT_MS     5000
#define SLOW_S         15
#define HAND_OVERS     16    /* fetches begun in a turn, so that many do not stall the loop */
#define IDLE_MS        30000 /* idle time after which connections are closed */
#define ROBOTS_GOOD_MS 3600000
#define ROBOTS_BAD_MS  60000

static const struct {
	const char *class, *sentence;
} faults[] = {
#define X(name, class, sentence) {class, sentence},
	FETCH_FAULTS(X)
#undef X
};

const char *web_fetch_class(enum web_fetch_fault fault)
{
	return faults[fault].class;
}

const char *web_fetch_sentence(enum web_fetch_fault fault)
{
	return faults[fault].sentence;
}

/* ---- hosts: their queues, limits and robots.txt */

static void pump_later(struct fetcher *fr)
{
	os_defer(fr->loop, &fr->pump);
}

static void host_free(struct web_fetch_host *h)
{
	web_fetch_stop(&h->asked);
	list_del(&h->node);
	h->fetcher->nhosts--;
	robots_free(h->robots);
	address_url_fini(&h->root);
	free(h);
}

static bool host_is_idle(const struct web_fetch_host *h)
{
	return h->running == 0 && list_empty(&h->waiting) && !h->asked.impl;
}

static struct web_fetch_host *host_get(struct fetcher *fr, const struct address_url *u)
{
	struct web_fetch_host *h;

	LIST_EACH (&fr->hosts, n, tmp) {
		h = LIST_ENTRY(n, struct web_fetch_host, node);
		if (!address_same_origin(&h->root, u))
			continue;
		list_del(&h->node);
		list_add_front(&fr->hosts, &h->node);
		return h;
	}
	/* Free idle hosts, the longest unused first, while there are too many. */
	for (struct list *n = fr->hosts.prev; n != &fr->hosts && fr->nhosts >= HOSTS_MAX;) {
		h = LIST_ENTRY(n, struct web_fetch_host, node);
		n = n->prev;
		if (host_is_idle(h) && web_fetch_now(fr) >= h->next_at)
			host_free(h);
	}
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->fetcher = fr;
	list_init(&h->waiting);
	if (address_url_parse(&h->root, "/robots.txt", u, (const char *const *)fr->listed, NULL) !=
	    0) {
		free(h);
		return NULL;
	}
	list_add_front(&fr->hosts, &h->node);
	fr->nhosts++;
	return h;
}

/* Take robots.txt: an answer of 4xx forbids nothing; a failure forbids everything (RFC 9309,
 * 2.3.1). */
static void robots_done(struct web_fetch *f)
{
	struct web_fetch_host *h = f->user;
	bool whole = f->fault == FETCH_OK || (f->fault == FETCH_TOO_LARGE && f->body.len > 0);

	h->rules = RULES_HAVE;
	h->robots_fault = whole ? FETCH_OK : f->fault;
	if (whole && f->status >= 500)
		h->robots_fault = FETCH_ROBOTS;
	if (whole && f->status >= 200 && f->status < 300) {
		h->robots = robots_parse(f->body.data ? f->body.data : "", f->body.len, ROBOT);
		if (!h->robots)
			h->robots_fault = FETCH_NO_MEMORY;
	}
	h->rules_until =
		web_fetch_now(h->fetcher) + (h->robots_fault ? ROBOTS_BAD_MS : ROBOTS_GOOD_MS);
	web_fetch_fini(f);
	pump_later(h->fetcher);
}

static void robots_ask(struct web_fetch_host *h)
{
	robots_free(h->robots);
	h->robots = NULL;
	h->rules = RULES_ASKED;
	h->asked = (struct web_fetch){.url = h->root.text,
				      .body_max = ROBOTS_MAX,
				      .plain = true,
				      .done = robots_done,
				      .user = h};
	if (web_fetch_start(h->fetcher, &h->asked, NULL) == 0)
		return;
	h->asked.fault = FETCH_NO_MEMORY;
	robots_done(&h->asked);
}

/* FETCH_OK: the rules allow the fetch. */
static enum web_fetch_fault host_refuses(const struct web_fetch_impl *im)
{
	const struct web_fetch_host *h = im->host;
	const char *path = strchr(im->url.text + strlen("https://"), '/');

	if (!im->fetcher->robots || im->fetch->plain)
		return FETCH_OK;
	if (h->robots_fault)
		return h->robots_fault;
	return !h->robots || robots_allow(h->robots, path ? path : "/") ? FETCH_OK : FETCH_ROBOTS;
}

static int host_enter(struct web_fetch_impl *im)
{
	struct web_fetch_host *h = host_get(im->fetcher, &im->url);

	if (!h)
		return AVA_ENOMEM;
	im->host = h;
	im->listed = address_is_listed((const char *const *)im->fetcher->listed, &im->url);
	if (im->fetch->plain) /* the request for robots.txt goes first, as the others wait for it */
		list_add_front(&h->waiting, &im->node);
	else
		list_add(&h->waiting, &im->node);
	pump_later(im->fetcher);
	return 0;
}

static void host_leave(struct web_fetch_impl *im)
{
	list_del(&im->node);
	if (im->easy) {
		im->host->running--;
		im->fetcher->nrunning--;
	}
	web_fetch_call_end(im);
	im->host = NULL;
	pump_later(im->fetcher);
}

/* ---- a fetch ends */

static void impl_free(struct web_fetch_impl *im)
{
	struct fetcher *fr = im->fetcher;

	if (im->host)
		host_leave(im);
	address_url_fini(&im->url);
	os_timer_free(im->timer);
	free(im->accept);
	free(im->language);
	free(im);
	if (--fr->ncalls == 0)
		os_timer_set(fr->idle, IDLE_MS);
}

static void web_fetch_host_finish(struct web_fetch_impl *im, enum web_fetch_fault fault)
{
	struct web_fetch *f = im->fetch;

	f->impl = NULL;
	f->fault = fault;
	if (fault != FETCH_OK && fault != FETCH_TOO_LARGE)
		buf_reset(&f->body);
	impl_free(im);
	f->done(f);
}

/* Go on at the next URL, under its own host's rules. */
static enum web_fetch_fault redirect(struct web_fetch_impl *im)
{
	struct fetcher *fr = im->fetcher;
	struct address_url next;
	char *to = NULL;
	int rv;

	if (++im->fetch->hops > HOPS_MAX)
		return FETCH_REDIRECTS;
	curl_easy_getinfo(im->easy, CURLINFO_REDIRECT_URL, &to);
	if (!to)
		return FETCH_BROKEN;
	rv = address_url_parse(&next, to, NULL, (const char *const *)fr->listed, NULL);
	if (rv == AVA_ENOMEM)
		return FETCH_NO_MEMORY;
	if (rv != 0 || (im->url.tls && !next.tls)) {
		if (rv == 0)
			address_url_fini(&next);
		return FETCH_BAD_REDIRECT;
	}
	if (!address_same_origin(&im->url, &next)) { /* these headers were for the first host */
		free(im->accept);
		free(im->language);
		im->accept = im->language = NULL;
	}
	host_leave(im);
	address_url_fini(&im->url);
	im->url = next;
	buf_reset(&im->fetch->body);
	free(im->fetch->final_url);
	im->fetch->final_url = strdup(next.text);
	return im->fetch->final_url && host_enter(im) == 0 ? FETCH_OK : FETCH_NO_MEMORY;
}

void web_fetch_call_over(struct web_fetch_impl *im, enum web_fetch_fault fault)
{
	/* The body of a redirect does not count, even cut. */
	if (im->heads_over && web_fetch_is_redirect(im->fetch->status) &&
	    (fault == FETCH_OK || fault == FETCH_TOO_LARGE)) {
		im->fault = FETCH_OK;
		fault = redirect(im);
		if (fault == FETCH_OK)
			return;
	}
	web_fetch_host_finish(im, fault);
}

static void web_fetch_host_late(void *impl)
{
	web_fetch_host_finish(impl, FETCH_TIMEOUT);
}

/* ---- the pump */

/* Start or end the first fetch that waits at `h`; false: it must wait, at least until *at if that
 * is set. */
static bool host_next(struct web_fetch_host *h, int64_t *at)
{
	struct web_fetch_impl *im = LIST_FIRST(&h->waiting, struct web_fetch_impl, node);
	struct fetcher *fr = h->fetcher;
	int64_t now = web_fetch_now(fr);
	enum web_fetch_fault fault;

	if (!im || h->running >= fr->per_host || fr->nrunning >= fr->parallel)
		return false;
	if (fr->robots && !im->fetch->plain) {
		if (h->rules == RULES_ASKED)
			return false;
		if (h->rules == RULES_NONE || now >= h->rules_until) {
			robots_ask(h);
			return true;
		}
		fault = host_refuses(im);
		if (fault) {
			web_fetch_host_finish(im, fault);
			return true;
		}
	}
	if (now < h->next_at) {
		*at = MIN(*at, h->next_at);
		return false;
	}
	h->next_at = now + MAX(fr->gap_ms, h->robots ? robots_delay(h->robots) * 1000 : 0);
	im->fetch->began_ms = im->fetch->began_ms ? im->fetch->began_ms : now;
	fault = web_fetch_call_start(im);
	if (fault) {
		web_fetch_host_finish(im, fault);
		return true;
	}
	list_del(&im->node);
	list_add(&fr->running, &im->node);
	h->running++;
	fr->nrunning++;
	return true;
}

/* false: none could start; *at says when at the earliest. */
static bool pump_one(struct fetcher *fr, int64_t *at)
{
	LIST_EACH (&fr->hosts, n, tmp)
		if (host_next(LIST_ENTRY(n, struct web_fetch_host, node), at))
			return true; /* the list may have changed */
	return false;
}

static void web_fetch_host_pump_run(struct os_task *t)
{
	struct fetcher *fr = CONTAINER_OF(t, struct fetcher, pump);
	int64_t at = INT64_MAX;

	for (int n = 0; n < HAND_OVERS; n++) {
		at = INT64_MAX;
		if (!pump_one(fr, &at))
			break;
		at = web_fetch_now(fr); /* the next turn may do more */
	}
	if (at != INT64_MAX)
		os_timer_set(fr->again, MAX(at - web_fetch_now(fr), 0));
}

static void pump_again(void *fetcher)
{
	pump_later(fetcher);
}

static void web_fetch_idle(void *fetcher)
{
	struct fetcher *fr = fetcher;

	if (fr->ncalls == 0)
		web_fetch_call_close(fr);
}

/* ---- the face */

/* Copy a value that can stand in a header. */
static char *copy_value(const char *s)
{
	char *copy = s && *s && strlen(s) < 300 ? strdup(s) : NULL;

	for (char *c = copy; c && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	return copy;
}

int web_fetch_start(struct fetcher *fr, struct web_fetch *f, struct ava_error *err)
{
	struct web_fetch_impl *im = calloc(1, sizeof(*im));
	int rv = im ? 0 : err_set(err, AVA_ENOMEM, "out of memory");

	f->fault = FETCH_OK;
	f->status = 0;
	f->final_url = NULL;
	f->type[0] = f->charset[0] = '\0';
	f->body_max = f->body_max ? f->body_max : BODY_MAX;
	buf_init(&f->body, MAX(f->body_max, f->big_max) + 1);
	if (rv == 0)
		rv = address_url_parse(&im->url, f->url, NULL, (const char *const *)fr->listed,
				       err);
	if (rv != 0) {
		free(im);
		return rv;
	}
	im->fetch = f;
	im->fetcher = fr;
	fr->ncalls++;
	list_init(&im->node);
	im->accept = copy_value(f->accept);
	im->language = copy_value(f->language);
	f->final_url = strdup(im->url.text);
	im->timer = os_timer_new(fr->loop, web_fetch_host_late, im);
	if (!f->final_url || !im->timer || host_enter(im) != 0) {
		impl_free(im);
		web_fetch_fini(f);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	f->impl = im;
	os_timer_set(im->timer, f->wait_ms > 0 ? f->wait_ms : WAIT_MS);
	return 0;
}

enum web_fetch_fault web_fetch_follow(struct fetcher *fr, struct web_fetch *f, const char *to)
{
	struct web_fetch was = *f;
	int rv;

	if (++f->hops > HOPS_MAX)
		return FETCH_REDIRECTS;
	if (strncmp(f->final_url, "https:", 6) == 0 && strncmp(to, "https:", 6) != 0)
		return FETCH_BAD_REDIRECT;
	f->url = to;
	rv = web_fetch_start(fr, f, NULL);
	f->url = was.url;
	free(was.final_url);
	buf_fini(&was.body);
	return rv == 0 ? FETCH_OK : rv == AVA_ENOMEM ? FETCH_NO_MEMORY : FETCH_BAD_REDIRECT;
}

void web_fetch_stop(struct web_fetch *f)
{
	if (f->impl) {
		assert(f->impl->fetcher->inside == 0);
		impl_free(f->impl);
		f->impl = NULL;
	}
	web_fetch_fini(f);
}

void web_fetch_fini(struct web_fetch *f)
{
	free(f->final_url);
	f->final_url = NULL;
	buf_fini(&f->body);
	curl_slist_free_all(f->cookies);
	f->cookies = NULL;
}

static int web_fetch_host_copy_list(struct fetcher *fr, const char *const *list,
				    struct ava_error *err)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	fr->listed = calloc(n + 1, sizeof(*fr->listed));
	if (!fr->listed)
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		if (!address_is_entry(list[i]))
			return err_set(err, AVA_EINVAL, "\"%.100s\" is not host:port", list[i]);
		fr->listed[i] = strdup(list[i]);
		if (!fr->listed[i])
			return err_set(err, AVA_ENOMEM, "out of memory");
	}
	return 0;
}

static int copy_resolve(struct fetcher *fr, const char *const *rows, struct ava_error *err)
{
	for (size_t i = 0; rows && rows[i]; i++) {
		struct curl_slist *more = curl_slist_append(fr->resolve, rows[i]);

		if (!more)
			return err_set(err, AVA_ENOMEM, "out of memory");
		fr->resolve = more;
	}
	return 0;
}

struct fetcher *fetcher_new(struct http_client *client, struct os_loop *loop,
			    const struct fetcher_options *o, struct ava_error *err)
{
	const struct web_fetch_limits *l = &o->limits;
	struct fetcher *fr = calloc(1, sizeof(*fr));
	int rv = fr ? http_client_start(client, err) : err_set(err, AVA_ENOMEM, "out of memory");

	if (rv != 0) {
		free(fr);
		return NULL;
	}
	*fr = (struct fetcher){
		.loop = loop,
		.robots = o->robots,
		.parallel = o->parallel ? o->parallel : PARALLEL,
		.per_host = o->per_host ? o->per_host : PER_HOST,
		.gap_ms = o->host_gap_ms,
		.ca_file = o->ca_file ? o->ca_file : http_client_ca(),
		.limits = {l->connect_ms ? l->connect_ms : CONNECT_MS,
			   l->total_ms ? l->total_ms : TOTAL_MS, l->slow_s ? l->slow_s : SLOW_S,
			   l->head_max ? l->head_max : HEAD_MAX},
	};
	list_init(&fr->socks);
	list_init(&fr->hosts);
	list_init(&fr->running);
	os_task_init(&fr->pump, web_fetch_host_pump_run);
	fr->timer = os_timer_new(loop, web_fetch_call_timer, fr);
	fr->again = os_timer_new(loop, pump_again, fr);
	fr->idle = os_timer_new(loop, web_fetch_idle, fr);
	if (!fr->timer || !fr->again || !fr->idle)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	rv = rv ? rv : web_fetch_host_copy_list(fr, o->inside, err);
	rv = rv ? rv : copy_resolve(fr, o->resolve, err);
	if (rv == 0)
		return fr;
	fetcher_free(fr);
	return NULL;
}

void fetcher_free(struct fetcher *fr)
{
	if (!fr)
		return;
	while (!list_empty(&fr->hosts)) {
		struct web_fetch_host *h = LIST_FIRST(&fr->hosts, struct web_fetch_host, node);

		web_fetch_stop(&h->asked);
		assert(host_is_idle(h));
		host_free(h);
	}
	assert(fr->ncalls == 0);
	web_fetch_call_close(fr);
	os_defer_cancel(fr->loop, &fr->pump);
	os_timer_free(fr->timer);
	os_timer_free(fr->again);
	os_timer_free(fr->idle);
	curl_slist_free_all(fr->resolve);
	for (size_t i = 0; fr->listed && fr->listed[i]; i++)
		free(fr->listed[i]);
	free(fr->listed);
	free(fr);
}
