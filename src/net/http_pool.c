/* The client: pools, the queue of calls to each, their start and stop, and libcurl's memory.
 *
 * Happy path: http_call_start copies what it must, puts the call into its pool's queue and
 * defers the rest to the end of the turn; the pump takes waiting calls in order, gives each
 * an easy handle and hands it to a multi with room, where http_call.c answers libcurl's
 * questions and tells the end. A stop takes the call out wherever it is. When a pool has
 * had no call for a while its connections, handles and cached certificates are dropped.
 *
 * What can fail: memory, which ends the call that wanted it, and headers or paths that
 * would break the request apart. Callbacks may free the pool; it goes when the last of them
 * has returned. */
#include "net/http_client.h"

#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "net/http_pool.h"

#define CONNECTIONS_HTTP1 10000
#define CONNECTIONS_HTTP2 100
#define POOL_IDLE_MS      90000
#define HAND_OVERS        64 /* calls begun in a turn, so that many do not stall the loop */

#define CONNECT_MS 5000
#define FIRST_MS   120000
#define IDLE_MS    60000
#define TOTAL_MS   1800000

/* ---- libcurl's memory. Request headers with keys pass through it, so what is freed is
 * wiped, up to a size beyond which it is no header (nghttp2's own memory is not). A call
 * that waits for its answer would hold two buffers until it is over, 16 KB that libcurl filled
 * with the request and as much for the answer: those come from a range of addresses of their
 * own, page by page, so that they can be told from anything else, cost nothing before they are
 * touched, and can be emptied where they stand. A few keep their pages, for the next calls.
 * Without the range, or in a process that started libcurl before us, they are malloc's and
 * keep their pages. */

#define UPLOADS      32768 /* buffers in 512 MB of addresses; pages come when touched */
#define UPLOADS_WARM 64    /* most buffers, free or in use, that keep their pages: 1 MB */
#define WIPE_MAX     (64 * 1024)

static struct {
	pthread_mutex_t lock;
	char *base;    /* NULL: there is no such range */
	unsigned used; /* buffers handed out so far */
	unsigned nfree, nwarm;
	uint16_t free[UPLOADS]; /* stack of free buffers: the last freed is taken first */
	bool warm[UPLOADS];     /* the buffer may have pages */
} uploads = {.lock = PTHREAD_MUTEX_INITIALIZER};

long http_buffer_bytes(void)
{
	return uploads.base ? HTTP_UPLOAD_BYTES - 1 : 1024; /* libcurl allocates a byte more */
}

bool http_is_upload(const void *at)
{
	uintptr_t base = (uintptr_t)uploads.base, offset = (uintptr_t)at - base;

	return base && (uintptr_t)at >= base && offset < (uintptr_t)UPLOADS * HTTP_UPLOAD_BYTES;
}

void http_upload_empty(void *at)
{
	size_t i = (size_t)((char *)at - uploads.base) / HTTP_UPLOAD_BYTES;
	bool many;

	pthread_mutex_lock(&uploads.lock);
	many = uploads.warm[i] && uploads.nwarm > UPLOADS_WARM;
	uploads.warm[i] &= !many;
	uploads.nwarm -= many;
	pthread_mutex_unlock(&uploads.lock);
	at = uploads.base + i * HTTP_UPLOAD_BYTES;
	if (many) /* fails only for addresses outside of the range */
		(void)madvise(at, HTTP_UPLOAD_BYTES, MADV_DONTNEED);
	else /* over TLS a request's headers pass through it, too */
		explicit_bzero(at, HTTP_UPLOAD_BYTES);
}

static void *mem_malloc(size_t n)
{
	unsigned i = UPLOADS;

	if (n != HTTP_UPLOAD_BYTES || !uploads.base)
		return malloc(n);
	pthread_mutex_lock(&uploads.lock);
	if (uploads.nfree > 0)
		i = uploads.free[--uploads.nfree];
	else if (uploads.used < UPLOADS)
		i = uploads.used++;
	if (i < UPLOADS) {
		uploads.nwarm += !uploads.warm[i];
		uploads.warm[i] = true;
	}
	pthread_mutex_unlock(&uploads.lock);
	return i < UPLOADS ? uploads.base + (size_t)i * HTTP_UPLOAD_BYTES : malloc(n);
}

static void mem_free(void *p)
{
	size_t i, n;

	if (!http_is_upload(p)) {
		n = p ? malloc_usable_size(p) : 0;
		if (n > 0 && n <= WIPE_MAX)
			explicit_bzero(p, n);
		free(p);
		return;
	}
	i = (size_t)((char *)p - uploads.base) / HTTP_UPLOAD_BYTES;
	if (uploads.warm[i])
		http_upload_empty(p);
	pthread_mutex_lock(&uploads.lock);
	uploads.free[uploads.nfree++] = (uint16_t)i;
	pthread_mutex_unlock(&uploads.lock);
}

static void *mem_realloc(void *p, size_t n)
{
	size_t have = http_is_upload(p) ? HTTP_UPLOAD_BYTES : p ? malloc_usable_size(p) : 0;
	void *moved;

	if (p && !http_is_upload(p) && (n <= have || have > WIPE_MAX)) { /* smaller, or no header */
		if (have <= WIPE_MAX)
			explicit_bzero((char *)p + n, have - n);
		return realloc(p, n);
	}
	moved = n > have ? mem_malloc(n) : p;
	if (p && moved && moved != p) {
		memcpy(moved, p, have);
		mem_free(p);
	}
	return moved;
}

int http_client_start(struct http_client *c, struct ava_error *err)
{
	void *base = MAP_FAILED;

	pthread_mutex_lock(&uploads.lock);
	/* From 8 on a buffer may be shared between transfers. */
	if (!uploads.base && curl_version_info(CURLVERSION_NOW)->version_num < 0x080000)
		base = mmap(NULL, (size_t)UPLOADS * HTTP_UPLOAD_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base != MAP_FAILED)
		uploads.base = base;
	pthread_mutex_unlock(&uploads.lock);
	if (!c->curl && curl_global_init_mem(CURL_GLOBAL_DEFAULT, mem_malloc, mem_free, mem_realloc,
					     strdup, calloc) != CURLE_OK)
		return err_set(err, AVA_ENOMEM, "libcurl did not start: out of memory");
	c->curl = true;
	return 0;
}

/* ---- callbacks may be running */

static void drop_connections(struct http_pool *p)
{
	LIST_EACH (&p->multis, n, tmp)
		http_multi_free(LIST_ENTRY(n, struct http_multi, node));
	while (p->nspares)
		curl_easy_cleanup(p->spares[--p->nspares]);
}

static void pool_destroy(struct http_pool *p)
{
	struct http_client *c = p->client;

	assert(p->ncalls == 0);
	drop_connections(p);
	os_defer_cancel(c->loop, &p->pump);
	os_timer_free(p->idle);
	os_timer_free(p->again);
	http_target_fini(&p->target);
	free(p->ca_file);
	c->pools--;
	free(p);
}

void http_pool_enter(struct http_pool *p)
{
	p->inside++;
}

void http_pool_leave(struct http_pool *p)
{
	if (--p->inside == 0 && p->dying)
		pool_destroy(p);
}

void http_pool_free(struct http_pool *p)
{
	if (!p)
		return;
	assert(!p->dying);
	p->dying = true;
	http_pool_enter(p);
	http_pool_leave(p);
}

/* ---- memory of a call */

void http_call_forget(struct http_call_impl *im)
{
	buf_fini(&im->body);
	if (im->easy)
		curl_easy_setopt(im->easy, CURLOPT_HTTPHEADER, NULL);
	if (!im->headers)
		return;
	explicit_bzero(im->headers, im->headers_size);
	free(im->headers);
	im->headers = NULL;
}

static CURL *easy_get(struct http_pool *p)
{
	CURL *easy;

	if (p->nspares)
		return p->spares[--p->nspares];
	easy = curl_easy_init();
	if (easy && http_easy_init(p, easy) != 0) {
		curl_easy_cleanup(easy);
		easy = NULL;
	}
	return easy;
}

static void easy_put(struct http_call_impl *im)
{
	struct http_pool *p = im->pool;

	if (!im->easy)
		return;
	/* The easy handle is kept: clear its pointers into the finished call. */
	curl_easy_setopt(im->easy, CURLOPT_ERRORBUFFER, NULL);
	curl_easy_setopt(im->easy, CURLOPT_PRIVATE, NULL);
	curl_easy_setopt(im->easy, CURLOPT_HTTPHEADER, NULL);
	if (p->nspares < HTTP_SPARES)
		p->spares[p->nspares++] = im->easy;
	else
		curl_easy_cleanup(im->easy);
	im->easy = NULL;
}

void http_call_free(struct http_call_impl *im)
{
	struct http_pool *p = im->pool;

	assert(list_empty(&im->node));
	os_timer_free(im->timer);
	http_call_forget(im);
	easy_put(im);
	buf_fini(&im->kept);
	curl_slist_free_all(im->resolve);
	free(im->url);
	free(im);
	p->ncalls--;
	if (p->nwaiting)
		http_pool_wake(p);
	if (p->ncalls == 0)
		os_timer_set(p->idle, p->idle_ms);
}

void http_call_over(struct http_call_impl *im, int rv, const struct ava_error *err)
{
	struct http_call *c = im->call;

	im->call = NULL;
	if (c) {
		c->impl = NULL; /* `done` may free c or start it again */
		c->done(c, rv, err);
	}
	http_call_free(im);
}

/* ---- the queue */

void http_pool_wake(struct http_pool *p)
{
	os_defer(p->client->loop, &p->pump);
}

static void pool_wake_again(void *pool)
{
	http_pool_wake(pool);
}

static void pool_idle(void *pool)
{
	struct http_pool *p = pool;

	if (p->ncalls == 0)
		drop_connections(p);
}

void http_call_again(struct http_call_impl *im)
{
	struct http_pool *p = im->pool;

	easy_put(im);
	im->multi = NULL;
	im->phase = HTTP_WAITING;
	im->phase_at = im->total_at;
	list_add_front(&p->waiting, &im->node);
	p->nwaiting++;
	http_pool_wake(p);
}

static struct http_multi *multi_with_room(struct http_pool *p)
{
	LIST_EACH (&p->multis, n, tmp) {
		struct http_multi *m = LIST_ENTRY(n, struct http_multi, node);

		if (!m->retired && (p->http2 || m->ncalls < HTTP_MULTI_CALLS))
			return m;
		if (m->retired && m->ncalls == 0 && m->inside == 0)
			http_multi_free(m);
	}
	return http_multi_new(p);
}

static void http_pool_pump_run(struct os_task *t)
{
	struct http_pool *p = CONTAINER_OF(t, struct http_pool, pump);
	struct http_call_impl *im;
	struct http_multi *m;
	struct ava_error err;

	http_pool_enter(p);
	for (unsigned n = 0; (im = LIST_FIRST(&p->waiting, struct http_call_impl, node)); n++) {
		if ((p->ncalls - p->nwaiting) / (p->http2 ? HTTP_STREAMS : 1) >= p->connections_max)
			break;
		if (n == HAND_OVERS) {
			os_timer_set(p->again, 0);
			break;
		}
		list_del(&im->node);
		p->nwaiting--;
		m = multi_with_room(p);
		im->easy = m ? easy_get(p) : NULL;
		if (im->easy && http_call_dial(im, m) == 0)
			continue;
		err_set(&err, AVA_ENOMEM, "call to %s: out of memory", p->target.host);
		http_call_over(im, AVA_ENOMEM, &err);
	}
	http_pool_leave(p);
}

/* ---- pools and the client */

const char *http_client_ca(void)
{
	static const char *const places[] = {
		"/etc/ssl/certs/ca-certificates.crt",                /* Debian, Arch */
		"/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora */
		"/etc/ssl/ca-bundle.pem",                            /* SUSE */
		"/etc/ssl/cert.pem",                                 /* Alpine, BSD */
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL */
	};
	const char *file = env_get("SSL_CERT_FILE");

	if (file && *file)
		return file;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], R_OK) == 0)
			return places[i];
	return NULL;
}

static int set_ca(struct http_pool *p, const char *ca_file, struct ava_error *err)
{
	if (!p->target.tls)
		return 0;
	if (!ca_file)
		ca_file = http_client_ca();
	if (!ca_file)
		return err_set(err, AVA_ENOENT,
			       "no CA certificates found: install the package "
			       "ca-certificates, or name a file in SSL_CERT_FILE");
	if (access(ca_file, R_OK) != 0)
		return err_sys(err, "CA certificates in %s", ca_file);
	p->ca_file = strdup(ca_file);
	return p->ca_file ? 0 : err_set(err, AVA_ENOMEM, "HTTP pool: out of memory");
}

struct http_pool *http_pool_new(struct http_client *c, const struct http_pool_options *o,
				struct ava_error *err)
{
	struct http_pool *p;

	if (http_client_start(c, err) != 0)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p) {
		err_set(err, AVA_ENOMEM, "HTTP pool: out of memory");
		return NULL;
	}
	p->client = c;
	c->pools++;
	list_init(&p->waiting);
	list_init(&p->multis);
	os_task_init(&p->pump, http_pool_pump_run);
	p->idle = os_timer_new(c->loop, pool_idle, p);
	p->again = os_timer_new(c->loop, pool_wake_again, p);
	if (!p->idle || !p->again)
		err_set(err, AVA_ENOMEM, "HTTP pool: out of memory");
	if (!p->idle || !p->again || http_target_init(&p->target, o->base_url, err) != 0 ||
	    set_ca(p, o->ca_file, err) != 0) {
		pool_destroy(p);
		return NULL;
	}
	p->http2 = o->http2 && p->target.tls;
	p->once = o->once;
	p->idle_ms = o->idle_ms > 0 ? o->idle_ms : POOL_IDLE_MS;
	p->connections_max = o->connections_max;
	if (p->connections_max == 0)
		p->connections_max = p->http2 ? CONNECTIONS_HTTP2 : CONNECTIONS_HTTP1;
	return p;
}

void http_pool_stats(const struct http_pool *p, struct http_pool_stats *out)
{
	*out = (struct http_pool_stats){
		.calls = p->ncalls,
		.waiting = p->nwaiting,
		.connections = p->connections,
		.opened = p->opened,
	};
}

struct http_client *http_client_new(struct os_loop *loop, struct ava_error *err)
{
	struct http_client *c = calloc(1, sizeof(*c));

	if (c)
		c->loop = loop;
	else
		err_set(err, AVA_ENOMEM, "HTTP client: out of memory");
	return c;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	assert(c->pools == 0);
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

static int call_check(const struct http_call *c, struct ava_error *err)
{
	assert(c->done && !c->impl);
	if (!c->path || c->path[0] != '/' || has_control(c->path) || strchr(c->path, ' '))
		return err_set(err, AVA_EINVAL,
			       "the path of a call must begin with / and hold "
			       "no blanks or control characters");
	if (c->method && strcmp(c->method, "GET") != 0 && strcmp(c->method, "POST") != 0 &&
	    strcmp(c->method, "PUT") != 0)
		return err_set(err, AVA_EINVAL, "method %.20s: only GET, POST and PUT", c->method);
	for (unsigned i = 0; i < c->nheaders; i++)
		if (has_control(c->headers[i]) || !strchr(c->headers[i], ':'))
			return err_set(err, AVA_EINVAL, /* the header may hold a key: not shown */
				       "header %u of a call is not \"Name: value\" or holds a "
				       "control character",
				       i + 1);
	return 0;
}

/* Put all nodes and strings into one block, which one wipe clears. */
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

static struct http_call_impl *call_new(struct http_pool *p, const struct http_call *c)
{
	struct http_call_impl *im = calloc(1, sizeof(*im));
	size_t size = strlen(p->target.url) + strlen(c->path) + 1;

	if (!im)
		return NULL;
	list_init(&im->node);
	list_init(&im->unsent);
	im->pool = p;
	im->get = c->method && strcmp(c->method, "GET") == 0;
	im->put = c->method && strcmp(c->method, "PUT") == 0;
	buf_init(&im->kept, HTTP_HEADERS_MAX);
	im->timers = (struct http_timers){
		.connect_ms = or_default(c->timers.connect_ms, CONNECT_MS),
		.first_ms = or_default(c->timers.first_ms, FIRST_MS),
		.idle_ms = or_default(c->timers.idle_ms, IDLE_MS),
		.total_ms = or_default(c->timers.total_ms, TOTAL_MS),
	};
	im->total_at = os_now_ms(p->client->loop) + im->timers.total_ms;
	im->phase_at = im->timer_at = im->total_at;
	im->url = malloc(size);
	im->timer = os_timer_new(p->client->loop, http_call_late, im);
	if (!im->url || !im->timer || copy_headers(im, c) != 0) {
		os_timer_free(im->timer);
		free(im->url);
		free(im);
		return NULL;
	}
	os_timer_set(im->timer, im->timers.total_ms);
	snprintf(im->url, size, "%s%s", p->target.url, c->path);
	return im;
}

int http_call_start(struct http_pool *p, struct http_call *c, struct ava_error *err)
{
	struct http_call_impl *im;
	int rv = call_check(c, err);

	if (rv != 0)
		return rv;
	im = call_new(p, c);
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
