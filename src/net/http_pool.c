/* A pool: the queue of calls to one provider, and what they share.
 *
 * Happy path: at the end of a turn the pump takes waiting calls in order,
 * makes sure the host's addresses are known and fresh, gives each an easy
 * handle and hands it to a multi with room. When the pool has had no call for
 * a while its connections, handles and cached certificates are dropped.
 *
 * What can fail: a lookup or memory, which ends the calls that waited for it.
 * Callbacks may free the pool; it goes when the last of them has returned. */
#include "net/http_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "net/http_call.h"
#include "net/http_memory.h"
#include "net/http_multi.h"

#define CONNECTIONS_HTTP1 10000
#define CONNECTIONS_HTTP2 100
#define IDLE_MS           90000
#define HAND_OVERS        64 /* a turn: a burst of calls must not stall the loop */

/* ---- callbacks may be running */

static void drop_connections(struct http_pool *p)
{
	LIST_EACH (&p->multis, n, tmp)
		http_multi_free(LIST_ENTRY(n, struct http_multi, node));
	while (p->nspares)
		curl_easy_cleanup(p->spares[--p->nspares]);
}

static void destroy(struct http_pool *p)
{
	struct http_client *c = p->client;

	assert(p->ncalls == 0);
	drop_connections(p);
	os_defer_cancel(c->loop, &p->pump);
	deadlines_del(&c->deadlines, &p->names_due);
	deadlines_del(&c->deadlines, &p->idle_due);
	deadlines_del(&c->deadlines, &p->pump_due);
	http_names_free(p->names);
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
		destroy(p);
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

/* ---- what calls share */

void http_pool_wake(struct http_pool *p)
{
	os_defer(p->client->loop, &p->pump);
}

CURL *http_pool_easy(struct http_pool *p)
{
	CURL *easy;

	if (p->nspares)
		return p->spares[--p->nspares];
	easy = curl_easy_init();
	if (easy && http_call_easy_init(p, easy) != 0) {
		curl_easy_cleanup(easy);
		easy = NULL;
	}
	return easy;
}

void http_pool_easy_put(struct http_pool *p, CURL *easy)
{
	/* It outlives what its last call pointed it to. */
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, NULL);
	curl_easy_setopt(easy, CURLOPT_RESOLVE, NULL);
	if (p->nspares < HTTP_SPARES)
		p->spares[p->nspares++] = easy;
	else
		curl_easy_cleanup(easy);
}

void http_pool_call_over(struct http_pool *p)
{
	p->ncalls--;
	if (p->nwaiting)
		http_pool_wake(p);
	p->idle_since = os_now_ms(p->client->loop);
	/* Without memory the connections stay until the next time. */
	if (p->ncalls == 0 && p->idle_due.pos == 0)
		(void)http_client_due(p->client, &p->idle_due, p->idle_since + p->idle_ms);
}

void http_pool_again(struct http_pool *p, struct http_call_impl *im)
{
	http_addresses_put(im->addresses);
	im->addresses = NULL;
	curl_easy_setopt(im->easy, CURLOPT_HTTPHEADER, NULL); /* they are the call's */
	http_pool_easy_put(p, im->easy);
	im->easy = NULL;
	im->multi = NULL;
	im->phase = HTTP_WAITING;
	im->phase_at = im->total_at;
	list_add_front(&p->waiting, &im->node);
	p->nwaiting++;
	http_pool_wake(p);
}

static void idle_fire(struct deadline *d)
{
	struct http_pool *p = CONTAINER_OF(d, struct http_pool, idle_due);
	struct http_client *c = p->client;

	if (p->ncalls == 0 && os_now_ms(c->loop) < p->idle_since + p->idle_ms) {
		deadlines_move(&c->deadlines, d, p->idle_since + p->idle_ms);
		return;
	}
	deadlines_del(&c->deadlines, d);
	if (p->ncalls == 0)
		drop_connections(p);
}

/* ---- the queue */

static struct http_call_impl *take_first(struct http_pool *p, struct list *from)
{
	struct http_call_impl *im = LIST_FIRST(from, struct http_call_impl, node);

	if (im) {
		list_del(&im->node);
		p->nwaiting--;
	}
	return im;
}

/* End those that wait now; what they start anew waits for the next turn. */
static void fail_waiting(struct http_pool *p, int rv, const struct ava_error *err)
{
	struct list now;
	struct http_call_impl *im;

	list_init(&now);
	list_splice(&now, &p->waiting);
	while ((im = take_first(p, &now)))
		http_call_fail(im, rv, err);
}

static void names_due_fire(struct deadline *d)
{
	struct http_pool *p = CONTAINER_OF(d, struct http_pool, names_due);
	struct ava_error err;

	deadlines_del(&p->client->deadlines, d);
	err_set(&err, AVA_ETIMEOUT,
		"the address of %s was not found in time (connect timer): check the name server",
		p->target.dial_host);
	http_pool_enter(p);
	fail_waiting(p, AVA_ETIMEOUT, &err);
	http_pool_leave(p);
}

static void names_ready(void *user)
{
	struct http_pool *p = user;

	p->lookups++;
	deadlines_del(&p->client->deadlines, &p->names_due);
	http_pool_wake(p);
}

static struct http_multi *multi_with_room(struct http_pool *p)
{
	LIST_EACH (&p->multis, n, tmp) {
		struct http_multi *m = LIST_ENTRY(n, struct http_multi, node);

		if (http_multi_has_room(m))
			return m;
		if (m->retired && m->ncalls == 0 && m->inside == 0)
			http_multi_free(m);
	}
	return http_multi_new(p);
}

static void hand_over(struct http_pool *p, struct http_call_impl *im)
{
	struct ava_error err;

	im->multi = multi_with_room(p);
	im->easy = im->multi ? http_pool_easy(p) : NULL;
	if (im->easy && http_call_prepare(im) == 0 && http_multi_add(im->multi, im) == 0)
		return;
	err_set(&err, AVA_ENOMEM, "call to %s: out of memory", p->target.host);
	http_call_fail(im, AVA_ENOMEM, &err);
}

static bool full(const struct http_pool *p)
{
	unsigned running = p->ncalls - p->nwaiting;

	return running / (p->http2 ? HTTP_STREAMS : 1) >= p->connections_max;
}

static void pump_fire(struct deadline *d)
{
	struct http_pool *p = CONTAINER_OF(d, struct http_pool, pump_due);

	deadlines_del(&p->client->deadlines, d);
	http_pool_wake(p);
}

/* true: the rest goes in the next turn. */
static bool enough(struct http_pool *p, unsigned n)
{
	struct http_client *c = p->client;

	/* Without memory for that all go now. */
	return n >= HAND_OVERS &&
	       (p->pump_due.pos != 0 || http_client_due(c, &p->pump_due, os_now_ms(c->loop)) == 0);
}

static void pump_waiting(struct http_pool *p)
{
	struct http_addresses *addresses;
	unsigned n = 0;
	struct http_call_impl *im;
	struct ava_error err;
	int rv;

	while ((im = LIST_FIRST(&p->waiting, struct http_call_impl, node)) && !full(p) &&
	       !enough(p, n++)) {
		rv = p->names ? http_names_get(p->names, p->client->lookup, &addresses, &err) : 0;
		if (rv < 0) {
			fail_waiting(p, rv, &err);
			return;
		}
		if (rv > 0) {
			/* Without memory for it the calls' own total time holds. */
			if (p->names_due.pos == 0)
				(void)http_client_due(p->client, &p->names_due,
						      os_now_ms(p->client->loop) +
							      im->timers.connect_ms);
			return;
		}
		im->addresses = p->names ? addresses : NULL;
		hand_over(p, take_first(p, &p->waiting));
	}
}

static void pump_run(struct os_task *t)
{
	struct http_pool *p = CONTAINER_OF(t, struct http_pool, pump);

	http_pool_enter(p);
	pump_waiting(p);
	http_pool_leave(p);
}

/* ---- */

static const char *find_ca(void)
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
		ca_file = find_ca();
	if (!ca_file)
		return err_set(err, AVA_ENOENT,
			       "no CA certificates found: install the package "
			       "ca-certificates, or name a file in SSL_CERT_FILE");
	if (access(ca_file, R_OK) != 0)
		return err_sys(err, "CA certificates in %s", ca_file);
	p->ca_file = strdup(ca_file);
	return p->ca_file ? 0 : err_set(err, AVA_ENOMEM, "HTTP pool: out of memory");
}

static int set_names(struct http_pool *p, struct ava_error *err)
{
	if (!p->target.dial_host)
		return 0;
	p->names = http_names_new(p->client->loop, p->target.dial_host, p->target.dial_port,
				  names_ready, p);
	return p->names ? 0 : err_set(err, AVA_ENOMEM, "HTTP pool: out of memory");
}

static int curl_start(struct http_client *c, struct ava_error *err)
{
	if (!c->curl && http_memory_start() != 0)
		return err_set(err, AVA_ENOMEM, "libcurl did not start: out of memory");
	c->curl = true;
	return 0;
}

struct http_pool *http_pool_new(struct http_client *c, const struct http_pool_options *o,
				struct ava_error *err)
{
	struct http_pool *p;

	if (curl_start(c, err) != 0)
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
	os_task_init(&p->pump, pump_run);
	p->names_due.fire = names_due_fire;
	p->idle_due.fire = idle_fire;
	p->pump_due.fire = pump_fire;
	if (http_target_init(&p->target, o->base_url, err) != 0 ||
	    set_ca(p, o->ca_file, err) != 0 || set_names(p, err) != 0) {
		destroy(p);
		return NULL;
	}
	p->http2 = o->http2 && p->target.tls;
	p->idle_ms = o->idle_ms > 0 ? o->idle_ms : IDLE_MS;
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
		.lookups = p->lookups,
	};
}
