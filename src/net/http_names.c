/* One host's addresses.
 *
 * Happy path: http_names_get finds addresses younger than a minute. Else it
 * starts a thread that runs the lookup and writes to an eventfd; the loop
 * reads the result and tells the pool, whose calls come again. When a lookup
 * fails and there are older addresses, those are used: a name server that is
 * down for a moment must not stop runs.
 *
 * A thread of its own rather than libuv's pool: getaddrinfo can hang for half
 * a minute and cannot be cancelled; here it can be left alone. Thread and
 * owner share `struct lookup`; who comes last frees it.
 *
 * What can fail: the lookup, and memory. */
#include "net/http_names.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "os/loop.h"

#define ADDRESSES_MAX 16
#define STACK_BYTES   (512 * 1024) /* name service modules are not thrifty */

struct lookup {
	pthread_mutex_t lock;
	bool done, orphan; /* guarded; the second to be set frees */
	int event;
	http_lookup_fn run;
	char *host;
	char port[12];
	/* the thread's until done */
	int rv; /* of getaddrinfo */
	int sys;
	struct addrinfo *found;
};

struct http_names {
	struct os_loop *loop;
	char *host;
	unsigned port;
	void (*ready)(void *user);
	void *user;
	struct lookup *busy; /* NULL: none */
	struct os_poll *poll;
	struct http_addresses *now; /* NULL: none yet */
	int64_t fresh_until;        /* os_now_ms */
	struct ava_error failed;    /* of the last lookup; code 0: none, or told */
};

void http_addresses_put(struct http_addresses *a)
{
	if (a && --a->refs == 0)
		free(a);
}

/* ---- the thread */

static void lookup_free(struct lookup *k)
{
	if (k->found)
		freeaddrinfo(k->found);
	if (k->event >= 0)
		close(k->event);
	pthread_mutex_destroy(&k->lock);
	free(k->host);
	free(k);
}

static void *lookup_main(void *arg)
{
	struct lookup *k = arg;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	bool orphan;

	k->rv = k->run(k->host, k->port, &hints, &k->found);
	k->sys = errno;
	if (k->rv != 0)
		k->found = NULL;
	pthread_mutex_lock(&k->lock);
	k->done = true;
	orphan = k->orphan;
	if (!orphan)
		(void)eventfd_write(k->event, 1); /* a new eventfd takes it */
	pthread_mutex_unlock(&k->lock);
	if (orphan)
		lookup_free(k);
	return NULL;
}

static int lookup_thread(struct lookup *k)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int rv;

	if (pthread_attr_init(&attr) != 0)
		return -1;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all); /* signals belong to the loop */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rv = pthread_create(&thread, &attr, lookup_main, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rv;
}

/* ---- the result */

static bool add_address(struct buf *b, const struct addrinfo *ai)
{
	char text[INET6_ADDRSTRLEN + 32]; /* with a scope */
	size_t at = b->len;
	bool v6 = ai->ai_family == AF_INET6;

	if (getnameinfo(ai->ai_addr, ai->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST))
		return false;
	buf_addf(b, v6 ? "[%s]," : "%s,", text);
	/* The same address again: a name may stand in two sources. The comma
	 * before it belongs to the needle: 10.0.0.1 is not in 110.0.0.1. */
	if (buf_check(b) == 0 && memmem(b->data, at, b->data + at - 1, b->len - at + 1)) {
		b->len = at;
		b->data[at] = '\0';
		return false;
	}
	return true;
}

static struct http_addresses *addresses_of(const struct http_names *n, const struct addrinfo *found)
{
	struct http_addresses *a = NULL;
	struct buf b;
	unsigned count = 0;

	buf_init(&b, 4096);
	buf_addf(&b, "%s:%u:,", n->host, n->port);
	for (; found && count < ADDRESSES_MAX; found = found->ai_next)
		count += add_address(&b, found);
	if (count > 0 && buf_check(&b) == 0)
		a = malloc(sizeof(*a) + b.len + 1);
	if (a) {
		char *comma = strstr(b.data, ":,");

		memmove(comma + 1, comma + 2, strlen(comma + 2) + 1);
		b.data[b.len - 2] = '\0'; /* the comma behind the last */
		memcpy(a->text, b.data, b.len - 1);
		a->entry = (struct curl_slist){.data = a->text};
		a->refs = 1;
	}
	buf_fini(&b);
	return a;
}

static void take(struct http_names *n, struct lookup *k)
{
	struct http_addresses *a;

	if (k->rv != 0) {
		err_set(&n->failed, AVA_ECONNECT, "cannot find the address of %s: %s", n->host,
			k->rv == EAI_SYSTEM ? strerror(k->sys) : gai_strerror(k->rv));
		return;
	}
	a = addresses_of(n, k->found);
	if (!a) {
		err_set(&n->failed, AVA_ENOMEM, "addresses of %s: out of memory", n->host);
		return;
	}
	http_addresses_put(n->now);
	n->now = a;
	n->failed.code = 0;
	n->fresh_until = os_now_ms(n->loop) + HTTP_NAMES_FRESH_MS;
}

static void ready_cb(int events, void *user)
{
	struct http_names *n = user;
	struct lookup *k = n->busy;

	(void)events;
	/* The thread may still hold the lock it wrote under. */
	pthread_mutex_lock(&k->lock);
	pthread_mutex_unlock(&k->lock);
	os_poll_free(n->poll);
	n->poll = NULL;
	n->busy = NULL;
	take(n, k);
	lookup_free(k);
	n->ready(n->user);
}

/* ---- */

static int lookup_start(struct http_names *n, http_lookup_fn run)
{
	struct lookup *k = calloc(1, sizeof(*k));

	if (!k)
		return AVA_ENOMEM;
	pthread_mutex_init(&k->lock, NULL);
	k->run = run;
	k->host = strdup(n->host);
	k->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	snprintf(k->port, sizeof(k->port), "%u", n->port);
	if (k->host && k->event >= 0)
		n->poll = os_poll_new(n->loop, k->event, ready_cb, n);
	if (!n->poll || lookup_thread(k) != 0) {
		os_poll_free(n->poll);
		n->poll = NULL;
		lookup_free(k);
		return AVA_ENOMEM;
	}
	os_poll_set(n->poll, OS_READ);
	n->busy = k;
	return 0;
}

int http_names_get(struct http_names *n, http_lookup_fn lookup, struct http_addresses **out,
		   struct ava_error *err)
{
	bool fresh = n->now && os_now_ms(n->loop) < n->fresh_until;

	*out = NULL;
	if (!fresh && n->busy)
		return 1;
	if (!fresh && n->failed.code == 0 && lookup_start(n, lookup) == 0)
		return 1;
	if (!n->now) {
		int rv = n->failed.code ? n->failed.code : AVA_ENOMEM;

		err_set(err, rv, "%s", n->failed.code ? n->failed.text : "out of memory");
		n->failed.code = 0;
		return rv;
	}
	if (!fresh) { /* older ones, for a while more */
		n->failed.code = 0;
		n->fresh_until = os_now_ms(n->loop) + HTTP_NAMES_FRESH_MS / 10;
	}
	n->now->refs++;
	*out = n->now;
	return 0;
}

void http_names_stale(struct http_names *n)
{
	n->fresh_until = 0;
}

struct http_names *http_names_new(struct os_loop *loop, const char *host, unsigned port,
				  void (*ready)(void *user), void *user)
{
	struct http_names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->host = strdup(host);
	if (!n->host) {
		free(n);
		return NULL;
	}
	n->loop = loop;
	n->port = port;
	n->ready = ready;
	n->user = user;
	return n;
}

void http_names_free(struct http_names *n)
{
	bool done;

	if (!n)
		return;
	if (n->busy) {
		os_poll_free(n->poll);
		pthread_mutex_lock(&n->busy->lock);
		n->busy->orphan = true;
		done = n->busy->done;
		pthread_mutex_unlock(&n->busy->lock);
		if (done)
			lookup_free(n->busy);
	}
	http_addresses_put(n->now);
	free(n->host);
	free(n);
}
