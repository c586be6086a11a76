/* Calls inside libcurl: a CURLM between libcurl's callbacks and the loop, and the answers to
 * what libcurl asks about a call.
 *
 * Happy path: libcurl opens a socket through us (a poll handle comes with it), says what it
 * waits for, and is told when that happened. `prereq` (a connection stands, the request goes
 * out), `read` hands out the body and lets go of it and of the headers with the last byte,
 * `header` collects what is kept until the response's own headers are over, `write` passes
 * the body on; then finished calls are read off and their owners told. So a call that waits
 * for its answer holds neither its request nor its key.
 *
 * While libcurl runs, no call can be taken out: those stopped inside a callback go to `dead`
 * and leave when it returns.
 *
 * A server closes a connection that was silent for a while, perhaps just when the next
 * request is under way. libcurl then sends that again on a new one, if no byte of an answer
 * had come; so on a connection that was silent the request is kept for a moment longer.
 *
 * With HTTP/2 libcurl may open as many connections as calls/100; were there no cap, each
 * call of a burst would open its own. When all connections stand and calls are still stuck
 * (the server allows fewer streams, or does not speak HTTP/2 at all), the cap is doubled
 * until they are not, and those waiting are handed in again, since libcurl looks at them
 * only when a connection changes.
 *
 * What can fail: a connection that dies under a request cannot be repeated here once the
 * body is let go; that is AVA_EIO, and the caller's to repeat. Every way to break a call off
 * from a callback sets `fault`, because libcurl reports all of them alike. */
#include "net/http_pool.h"

#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

#define VALUE_MAX   256   /* bytes of a header's value that is kept */
#define SESSION_MAX 4096  /* the same for mcp-session-id, which may be a token with claims */
#define SILENT_MS   1000  /* a connection silent for so long may be dead */
#define HOLD_MS     5000  /* time by which a dead connection has failed */
#define HOLD_NEW_MS 1000  /* the same on HTTP/2, where a new stream shows at once */
#define AMISS_MS    60000 /* time without look-ups after a failed one */
#define NAMES_S     10    /* seconds that a name's addresses are kept */
#define TUNE_MS     50

enum fault {
	FAULT_NONE,
	FAULT_LOST,    /* the connection died and the request cannot be repeated */
	FAULT_CUT,     /* the answer ended within its headers, which libcurl calls a success */
	FAULT_HEADERS, /* headers beyond HTTP_HEADERS_MAX */
	FAULT_BODY,    /* a body beyond HTTP_RESPONSE_MAX */
	FAULT_SWITCH,  /* status 101: another protocol, unasked */
	FAULT_MEMORY,
};

struct http_sock {
	struct http_multi *multi;
	struct os_poll *poll;
	struct list node; /* in multi->socks once the local port is known */
	int fd, port;
	int64_t used_ms; /* time of the socket's last event */
	bool counted;    /* the socket is a connection, not one inside libcurl */
	bool awaited;    /* libcurl waits for an event */
};

static int64_t now_of(const struct http_pool *p)
{
	return os_now_ms(p->client->loop);
}

/* ---- time of a call */

static int64_t late_at(const struct http_call_impl *im)
{
	int64_t at = MIN(im->phase_at, im->total_at);

	return im->hold_at ? MIN(at, im->hold_at) : at;
}

static void timer_arm(struct http_call_impl *im)
{
	im->timer_at = late_at(im);
	os_timer_set(im->timer, im->timer_at - now_of(im->pool));
}

/* A later deadline is found when the timer fires, so that progress costs nothing. */
static void phase_until(struct http_call_impl *im, int64_t ms)
{
	im->phase_at = now_of(im->pool) + ms;
	if (late_at(im) < im->timer_at)
		timer_arm(im);
}

static void phase_set(struct http_call_impl *im, enum http_phase phase, int64_t ms)
{
	im->phase = phase;
	phase_until(im, ms);
}

/* Stop keeping the request for a repetition: an answer began, or the connection has lived for long
 * enough. */
static void hold_end(struct http_call_impl *im)
{
	im->hold_at = 0;
	if (im->body_len && im->sent == im->body_len)
		http_call_forget(im);
}

/* ---- sockets */

static void http_call_act(struct http_multi *m, curl_socket_t fd, int events);

static void sock_ready_cb(int events, void *user)
{
	struct http_sock *s = user;
	int bits = 0;

	if (!s->awaited) { /* the server closed the connection, or said something unasked */
		os_poll_set(s->poll, 0);
		return;
	}
	s->used_ms = os_now_ms(s->multi->pool->client->loop);
	if (events & OS_READ)
		bits |= CURL_CSELECT_IN;
	if (events & OS_WRITE)
		bits |= CURL_CSELECT_OUT;
	http_call_act(s->multi, s->fd, bits);
}

static struct http_sock *http_call_sock_of(const struct http_client *c, int fd)
{
	return fd >= 0 && (size_t)fd < c->nsocks ? c->socks[fd] : NULL;
}

static void http_call_sock_free(struct http_client *c, struct http_sock *s)
{
	if (s->counted) {
		s->multi->nsocks--;
		s->multi->pool->connections--;
	}
	c->socks[s->fd] = NULL;
	list_del(&s->node);
	os_poll_free(s->poll);
	free(s);
}

static struct http_sock *sock_new(struct http_multi *m, int fd)
{
	struct http_client *c = m->pool->client;
	struct http_sock *s = http_call_sock_of(c, fd);
	size_t had = c->nsocks;

	if (s)
		http_call_sock_free(c, s); /* libcurl closed the old socket silently */
	if (!ARRAY_ROOM(c->socks, c->nsocks, (size_t)fd + 1))
		return NULL;
	for (size_t i = had; i < c->nsocks; i++)
		c->socks[i] = NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	list_init(&s->node);
	s->multi = m;
	s->fd = fd;
	s->used_ms = os_now_ms(c->loop);
	c->socks[fd] = s;
	return s;
}

static curl_socket_t http_call_open_cb(void *impl, curlsocktype purpose, struct curl_sockaddr *addr)
{
	struct http_call_impl *im = impl;
	struct http_multi *m = im->multi;
	struct http_sock *s;
	int fd;

	(void)purpose;
	fd = socket(addr->family, addr->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, addr->protocol);
	if (fd < 0)
		return CURL_SOCKET_BAD;
	s = sock_new(m, fd);
	if (!s) {
		close(fd);
		return CURL_SOCKET_BAD;
	}
	s->counted = true;
	m->nsocks++;
	m->pool->connections++;
	m->pool->opened++;
	im->fd = fd;
	if (!im->dialled && im->phase == HTTP_DIALING) {
		im->dialled = true;
		m->ndialled++;
	}
	return fd;
}

static int http_call_close_cb(void *multi, curl_socket_t fd)
{
	struct http_client *c = ((struct http_multi *)multi)->pool->client;
	struct http_sock *s = http_call_sock_of(c, fd);

	if (s)
		http_call_sock_free(c, s);
	return close(fd);
}

/* Not so for a socket that lost a race between two addresses: it is closed by now. */
static bool sock_has_port(int fd, int port)
{
	struct sockaddr_in6 at = {0}; /* the port of IPv4 stands in the same place */
	socklen_t len = sizeof(at);

	return getsockname(fd, (struct sockaddr *)&at, &len) == 0 && ntohs(at.sin6_port) == port;
}

/* Silent time of the connection with this local port, before its request; 0: new, or unknown. */
static int64_t silent_ms(struct http_call_impl *im, int port)
{
	struct http_multi *m = im->multi;
	struct http_client *c = m->pool->client;
	struct http_sock *own = im->dialled ? http_call_sock_of(c, im->fd) : NULL;

	if (own && list_empty(&own->node) && sock_has_port(own->fd, port)) {
		own->port = port;
		list_add(&m->socks, &own->node);
	}
	LIST_EACH (&m->socks, n, tmp) {
		struct http_sock *s = LIST_ENTRY(n, struct http_sock, node);

		if (s->port == port && s != own)
			return os_now_ms(c->loop) - s->used_ms;
	}
	return 0;
}

static int http_call_socket_cb(CURL *easy, curl_socket_t fd, int what, void *user,
			       void *socket_user)
{
	struct http_multi *m = user;
	struct http_client *c = m->pool->client;
	struct http_sock *s = http_call_sock_of(c, fd);
	struct http_call_impl *im = NULL;
	int events = 0;

	(void)socket_user;
	if (what == CURL_POLL_REMOVE) {
		if (!s)
			return 0;
		s->awaited = false;
		/* A connection that stood is closed through us: its poll stays for the next call.
		 * Any other may have been closed silently, so its poll goes at once, before the
		 * number means another file on this loop. */
		if (!list_empty(&s->node))
			return 0;
		os_poll_free(s->poll);
		s->poll = NULL;
		if (!s->counted || fcntl(s->fd, F_GETFD) < 0)
			http_call_sock_free(c, s);
		return 0;
	}
	if (!s)
		s = sock_new(m, fd);
	if (s && !s->poll)
		s->poll = os_poll_new(c->loop, fd, sock_ready_cb, s);
	if (what & CURL_POLL_IN)
		events |= OS_READ;
	if (what & CURL_POLL_OUT)
		events |= OS_WRITE;
	if (s && s->poll) {
		s->awaited = true;
		os_poll_set(s->poll, events);
		return 0;
	}
	/* An error returned here would end every other call as well. */
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&im);
	/* Without memory the call cannot go on; end it in the next turn. */
	if (im) {
		im->fault = FAULT_MEMORY;
		im->phase_at = im->total_at = 0;
		timer_arm(im);
	}
	return 0;
}

/* ---- a call going out */

static void set_cap(struct http_multi *m, unsigned cap)
{
	cap = MIN(cap, m->pool->connections_max);
	if (cap <= m->cap)
		return;
	m->cap = cap;
	curl_multi_setopt(m->curl, CURLMOPT_MAX_HOST_CONNECTIONS, (long)cap);
	curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, (long)cap);
}

/* Look again soon whether calls are stuck. */
static void tune_later(struct http_multi *m)
{
	m->tune_sent = m->nsent;
	m->tuning = true;
	os_timer_set(m->tune, TUNE_MS);
}

static void tune_fire(void *user)
{
	struct http_multi *m = user;
	unsigned queued = m->ncalls - m->nsent, streams, before = m->cap;

	m->tuning = false;
	if (queued == 0 || m->nsent == 0 || m->nsocks == 0 || m->cap == m->pool->connections_max)
		return;
	if (m->ndialled > 0 || m->nsent != m->tune_sent) { /* calls are still connecting */
		tune_later(m);
		return;
	}
	streams = MAX(m->nsent / m->nsocks, 1);
	set_cap(m, m->nsocks + MIN((queued + streams - 1) / streams, m->nsocks));
	if (m->cap == before)
		return;
	/* Take calls that wait for a connection inside libcurl out and hand them in again. */
	LIST_EACH (&m->calls, n, tmp) {
		struct http_call_impl *im = LIST_ENTRY(n, struct http_call_impl, node);

		if (im->phase != HTTP_DIALING || im->dialled)
			continue;
		curl_multi_remove_handle(m->curl, im->easy);
		/* The handle was in a moment ago, so this needs no memory. */
		(void)curl_multi_add_handle(m->curl, im->easy);
	}
}

/* ---- libcurl's callbacks */

static int http_call_prereq_cb(void *user, char *remote, char *local, int remote_port,
			       int local_port)
{
	struct http_call_impl *im = user;
	struct http_multi *m = im->multi;

	(void)remote, (void)local, (void)remote_port;
	if (im->body_len && !im->body.data) {
		im->fault = FAULT_LOST; /* a repetition, but the body is gone */
		return CURL_PREREQFUNC_ABORT;
	}
	im->sent = 0;
	if (im->phase == HTTP_DIALING) {
		int64_t now = now_of(im->pool);

		im->hold_at = im->pool->http2 ? now + HOLD_NEW_MS : 0;
		if (silent_ms(im, local_port) >= SILENT_MS)
			im->hold_at = now + HOLD_MS;
		phase_set(im, HTTP_SENT, im->timers.first_ms);
		m->nsent++;
		m->ndialled -= im->dialled;
		im->dialled = false;
		if (m->pool->http2 && m->nsent < m->ncalls && !m->tuning)
			tune_later(m);
	}
	return CURL_PREREQFUNC_OK;
}

static size_t read_cb(char *to, size_t size, size_t n, void *user)
{
	struct http_call_impl *im = user;
	size_t len = MIN(size * n, im->body.len - im->sent);

	if (!im->call)
		return CURL_READFUNC_ABORT;
	if (len == 0)
		return 0;
	memcpy(to, im->body.data + im->sent, len);
	im->sent += len;
	if (im->sent == im->body.len) {
		if (!im->hold_at)
			http_call_forget(im);
		im->upload = to;
		list_del(&im->unsent); /* a first try may have left it there */
		if (http_is_upload(to))
			list_add(&im->multi->unsent, &im->unsent);
	}
	/* A line that takes the request slowly is a sign of life. */
	http_call_lives(im->call);
	return len;
}

static int seek_cb(void *user, curl_off_t offset, int origin)
{
	struct http_call_impl *im = user;

	if (origin != SEEK_SET || offset != 0 || !im->body.data) {
		im->fault = FAULT_LOST;
		return CURL_SEEKFUNC_FAIL;
	}
	im->sent = 0;
	return CURL_SEEKFUNC_OK;
}

static const char *const kept_names[] = {
	"request-id",     "x-request-id",   "x-generation-id", "retry-after",
	"retry-after-ms", "x-should-retry", "content-type",    "date",
	"mcp-session-id", "location",
};

/* Is the header kept: one of these, or a limit of the service under any name? */
static bool http_call_is_kept(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(kept_names); i++)
		if (strlen(kept_names[i]) == len && strncasecmp(kept_names[i], name, len) == 0)
			return true;
	return memmem(name, len, "imit-", 5) != NULL; /* in ratelimit-… and RateLimit-… */
}

/* Keep "Name: value\r\n" in im->kept, when the header is kept. */
static int keep_header(struct http_call_impl *im, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len), *end = line + len, *s;

	if (!colon || !http_call_is_kept(line, (size_t)(colon - line)))
		return 0;
	s = colon + 1 + strspn(colon + 1, " \t"); /* ends at the line's end */
	while (end > s && strchr("\r\n \t", end[-1]))
		end--;
	if (end - s > ((*line | 32) == 'm' ? SESSION_MAX : VALUE_MAX) || memchr(s, 0, end - s))
		return 0; /* no use of a value that is too long or has a NUL */
	return buf_addf(&im->kept, "%.*s%c%.*s%c", (int)(colon - line), line, 0, (int)(end - s), s,
			0);
}

static void http_call_heads_over(struct http_call_impl *im)
{
	long status = 0;

	curl_easy_getinfo(im->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 101)
		im->fault = FAULT_SWITCH;
	if (status < 200)
		return;
	im->heads_over = true;
	http_call_forget(im); /* a request without a body gets here with its headers */
	im->call->status = (int)status;
	im->call->kept = im->kept.data;
	if (im->call->head)
		im->call->head(im->call, (int)status);
}

static size_t http_call_header_cb(char *line, size_t size, size_t n, void *user)
{
	struct http_call_impl *im = user;
	size_t len = size * n;

	if (!im->call)
		return 0;
	if (im->hold_at)
		hold_end(im);
	im->head_bytes += len; /* counts headers of each 1xx and trailers, too */
	if (im->head_bytes > HTTP_HEADERS_MAX)
		im->fault = FAULT_HEADERS;
	else if (im->heads_over)
		return len; /* the line is of a trailer */
	else if (len > 5 && memcmp(line, "HTTP/", 5) == 0)
		buf_reset(&im->kept); /* headers of a 1xx do not count */
	else if (line[0] == '\r' || line[0] == '\n')
		http_call_heads_over(im);
	else if (keep_header(im, line, len) != 0)
		im->fault = buf_check(&im->kept) == AVA_ETOOBIG ? FAULT_HEADERS : FAULT_MEMORY;
	return im->fault || !im->call ? 0 : len;
}

void http_call_ends(struct http_call *c, int64_t ms)
{
	if (c->impl)
		phase_set(c->impl, HTTP_FLOWING, c->impl->timers.idle_ms = ms);
}

void http_call_lives(struct http_call *c)
{
	if (c->impl && c->impl->phase == HTTP_SENT)
		phase_until(c->impl, c->impl->timers.first_ms);
}

static size_t http_call_write_cb(char *data, size_t size, size_t n, void *user)
{
	struct http_call_impl *im = user;
	struct http_call *c = im->call;
	size_t len = size * n;
	bool progress;

	if (!c)
		return CURL_WRITEFUNC_ERROR;
	im->data_bytes += len;
	if (im->data_bytes > HTTP_RESPONSE_MAX) {
		im->fault = FAULT_BODY;
		return CURL_WRITEFUNC_ERROR;
	}
	if (!c->data && c->answer)
		(void)buf_add(c->answer, data, len);
	progress = c->data ? c->data(c, data, len) : true;
	if (!im->call) /* the call was stopped, and `c` may be freed */
		return CURL_WRITEFUNC_ERROR;
	if (progress)
		phase_set(im, HTTP_FLOWING, im->timers.idle_ms);
	return len;
}

/* ---- setting up */

#define SET(option, value)                                                                         \
	do {                                                                                       \
		if (curl_easy_setopt(easy, option, value) != CURLE_OK)                             \
			return AVA_ENOMEM;                                                         \
	} while (0)

int http_easy_init(const struct http_pool *p, CURL *easy)
{
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_PROTOCOLS_STR, p->target.tls ? "https" : "http");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_ACCEPT_ENCODING, "identity"); /* a packed body is unpacked all the same */
	SET(CURLOPT_HTTP_VERSION,
	    (long)(p->http2 && p->target.tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
	SET(CURLOPT_FRESH_CONNECT, p->once ? 1L : 0L);
	SET(CURLOPT_FORBID_REUSE, p->once ? 1L : 0L);
	SET(CURLOPT_PIPEWAIT, p->http2 ? 1L : 0L);
	SET(CURLOPT_BUFFERSIZE, http_buffer_bytes());
	SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)HTTP_UPLOAD_BYTES);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, 0L); /* own timers end a call first */
	SET(CURLOPT_QUICK_EXIT, 1L);        /* a hanging look-up is not waited for */
	SET(CURLOPT_DNS_CACHE_TIMEOUT, (long)NAMES_S);
	SET(CURLOPT_PROXY, p->target.proxy ? p->target.proxy : "");
	SET(CURLOPT_NOPROXY, ""); /* the proxy is chosen already */
	SET(CURLOPT_USERAGENT, "ava/" AVA_VERSION);
	SET(CURLOPT_PREREQFUNCTION, http_call_prereq_cb);
	SET(CURLOPT_READFUNCTION, read_cb);
	SET(CURLOPT_SEEKFUNCTION, seek_cb);
	SET(CURLOPT_HEADERFUNCTION, http_call_header_cb);
	SET(CURLOPT_WRITEFUNCTION, http_call_write_cb);
	SET(CURLOPT_OPENSOCKETFUNCTION, http_call_open_cb);
	SET(CURLOPT_CLOSESOCKETFUNCTION, http_call_close_cb);
	if (!p->target.tls)
		return 0;
	/* libcurl keeps parsed certificates only when there is no CApath, which
	 * Debian compiles in: 18 ms and 800 KB a connection otherwise. */
	SET(CURLOPT_CAINFO, p->ca_file);
	SET(CURLOPT_CAPATH, NULL);
	SET(CURLOPT_PROXY_CAINFO, p->ca_file);
	SET(CURLOPT_PROXY_CAPATH, NULL);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	return 0;
}

/* ---- known addresses: after a look-up that hangs or fails, calls go to the address of the newest
 * connection. The server there must show its certificate as always. */

static void known_learn(struct http_call_impl *im)
{
	struct http_pool *p = im->pool;
	char *ip = NULL;
	long port = 0;
	int n;

	curl_easy_getinfo(im->easy, CURLINFO_PRIMARY_IP, &ip);
	curl_easy_getinfo(im->easy, CURLINFO_PRIMARY_PORT, &port);
	if (p->target.proxy || !ip || !ip[0] || port <= 0)
		return;
	n = snprintf(p->known, sizeof(p->known), "+%s:%ld:%s", p->target.host, port, ip);
	if (n < 0 || (size_t)n >= sizeof(p->known))
		p->known[0] = '\0';
}

int http_call_dial(struct http_call_impl *im, struct http_multi *m)
{
	CURL *easy = im->easy;

	im->multi = m;
	SET(CURLOPT_URL, im->url);
	SET(CURLOPT_PRIVATE, im);
	SET(CURLOPT_PREREQDATA, im);
	SET(CURLOPT_READDATA, im);
	SET(CURLOPT_SEEKDATA, im);
	SET(CURLOPT_HEADERDATA, im);
	SET(CURLOPT_WRITEDATA, im);
	SET(CURLOPT_OPENSOCKETDATA, im);
	SET(CURLOPT_CLOSESOCKETDATA, im->multi); /* a connection outlives its call */
	SET(CURLOPT_ERRORBUFFER, im->text);
	SET(CURLOPT_HTTPHEADER, im->headers);
	if (!im->resolve && im->pool->known[0] && now_of(im->pool) < im->pool->names_amiss_till)
		im->resolve = curl_slist_append(NULL, im->pool->known);
	SET(CURLOPT_RESOLVE, im->resolve);
	if (im->get)
		SET(CURLOPT_HTTPGET, 1L);
	else
		SET(CURLOPT_POST, 1L);
	SET(CURLOPT_CUSTOMREQUEST, im->put ? "PUT" : NULL); /* its body is as that of POST */
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)im->body_len);
	if (m->pool->http2)
		set_cap(m, m->ncalls / HTTP_STREAMS + 1);
	if (curl_multi_add_handle(m->curl, easy) != CURLM_OK)
		return AVA_ENOMEM;
	free(im->url); /* libcurl has a copy */
	im->url = NULL;
	list_add(&m->calls, &im->node);
	m->ncalls++;
	phase_set(im, HTTP_DIALING, im->timers.connect_ms);
	return 0;
}

/* ---- the end */

static int wrong_certificate(struct http_call_impl *im, struct ava_error *err)
{
	static const char before[] = "SSL certificate problem: ";
	const struct http_target *t = &im->pool->target;
	const char *text = im->text;
	long why = 0;

	curl_easy_getinfo(im->easy, CURLINFO_SSL_VERIFYRESULT, &why);
	if (why == 10 || why == 9) /* X509_V_ERR_CERT_HAS_EXPIRED, _NOT_YET_VALID */
		return err_set(err, AVA_EDENIED,
			       "the certificate of %s %s: check this machine's clock; if it is "
			       "right, the service must renew its certificate",
			       t->host, why == 10 ? "has expired" : "is not valid yet");
	if (strstr(im->text, "subject name")) /* the chain was good, so `why` says nothing */
		return err_set(err, AVA_EDENIED,
			       "the certificate shown by %s is for another host: check the "
			       "address (%.100s)",
			       t->host, im->text);
	if (strncmp(text, before, strlen(before)) == 0)
		text += strlen(before);
	return err_set(err, AVA_EDENIED,
		       "the certificate of %s is not trusted (%.80s): if the server, or a proxy in "
		       "between, is yours, name its CA in SSL_CERT_FILE (now %s)",
		       t->host, text, im->pool->ca_file ? im->pool->ca_file : "none");
}

static int fault_error(const struct http_call_impl *im, struct ava_error *err)
{
	const char *host = im->pool->target.host;

	switch ((enum fault)im->fault) {
	case FAULT_HEADERS:
		return err_set(err, AVA_ETOOBIG, "%s sent more than %d KB of headers", host,
			       HTTP_HEADERS_MAX / 1024);
	case FAULT_BODY:
		return err_set(err, AVA_ETOOBIG, "%s sent more than %d MB", host,
			       HTTP_RESPONSE_MAX / 1024 / 1024);
	case FAULT_SWITCH:
		return err_set(err, AVA_EPROTO, "%s switched to another protocol unasked", host);
	case FAULT_MEMORY:
		return err_set(err, AVA_ENOMEM, "response of %s: out of memory", host);
	case FAULT_CUT:
		return err_set(err, AVA_EIO, "%s broke off amid its headers", host);
	case FAULT_LOST:
	case FAULT_NONE:
		break;
	}
	return err_set(err, AVA_EIO, "the connection to %s broke off under the request", host);
}

static int not_connected(struct http_call_impl *im, const char *text, struct ava_error *err)
{
	const struct http_target *t = &im->pool->target;

	if (strstr(text, "wrong version number"))
		text = "what answers there does not speak TLS: check the address";
	return err_set(err, AVA_ECONNECT, "cannot connect to %s%s: %s", t->host,
		       t->proxy ? " through the proxy in https_proxy or all_proxy" : "", text);
}

/* Translate libcurl's code, with a sentence. */
static int code_error(struct http_call_impl *im, CURLcode code, struct ava_error *err)
{
	const char *host = im->pool->target.host;
	const char *text = im->text[0] ? im->text : curl_easy_strerror(code);

	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return err_set(err, AVA_ECONNECT, "cannot find the address of %s: %s", host, text);
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_PROXY:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_OPERATION_TIMEDOUT:
		return not_connected(im, text, err);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
		return wrong_certificate(im, err);
	case CURLE_SSL_CACERT_BADFILE:
		return err_set(err, AVA_EDENIED, "cannot read the CA certificates in %s",
			       im->pool->ca_file);
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
		return err_set(err, AVA_EPROTO, "%s does not answer in HTTP: %s", host, text);
	case CURLE_OUT_OF_MEMORY:
		if (im->head_bytes > 0 && !im->heads_over) /* libcurl's own limit is 100 KB */
			return err_set(err, AVA_ETOOBIG,
				       "a header of %s did not fit into memory: libcurl takes "
				       "100 KB at most",
				       host);
		return err_set(err, AVA_ENOMEM, "call to %s: out of memory", host);
	default:                               /* broken sockets, short bodies, reset streams */
		if (im->phase == HTTP_DIALING) /* a proxy that refuses is no connection either */
			return not_connected(im, text, err);
		return err_set(err, AVA_EIO, "the connection to %s broke off: %s", host, text);
	}
}

/* The sentence for the timer that ran out. */
static int timer_error(const struct http_call_impl *im, struct ava_error *err)
{
	const char *host = im->pool->target.host;
	const struct http_timers *t = &im->timers;

	if (now_of(im->pool) >= im->total_at)
		return err_set(err, AVA_ETIMEOUT, "%s did not finish within %g s (total timer)",
			       host, (double)t->total_ms / 1000);
	switch (im->phase) {
	case HTTP_WAITING:
	case HTTP_DIALING:
		return err_set(err, AVA_ECONNECT, "no connection to %s within %g s (connect timer)",
			       host, (double)t->connect_ms / 1000);
	case HTTP_SENT:
		return err_set(err, AVA_ETIMEOUT, "%s began no answer within %g s (first timer)",
			       host, (double)t->first_ms / 1000);
	case HTTP_FLOWING:
		break;
	}
	return err_set(err, AVA_ETIMEOUT, "%s fell silent for %g s amid its answer (idle timer)",
		       host, (double)t->idle_ms / 1000);
}

/* ---- calls leaving libcurl */

/* Take a call out while libcurl is not running; its memory stays the caller's. */
static void call_take(struct http_multi *m, struct http_call_impl *im)
{
	assert(m->inside == 0);
	list_del(&im->node);
	list_del(&im->unsent);
	m->ncalls--;
	if (im->phase != HTTP_DIALING)
		m->nsent--;
	m->ndialled -= im->dialled;
	im->dialled = false;
	curl_multi_remove_handle(m->curl, im->easy);
}

void http_multi_drop(struct http_multi *m, struct http_call_impl *im)
{
	if (m->inside) {
		list_del(&im->node);
		list_add(&m->dead, &im->node);
		return;
	}
	call_take(m, im);
	http_call_free(im);
}

void http_call_late(void *impl)
{
	struct http_call_impl *im = impl;
	struct http_pool *p = im->pool;
	int64_t now = now_of(p);
	struct ava_error err;
	int rv;

	/* A call without a connection of its own, while others get through, waits for its turn:
	 * begin its time anew. */
	if (now >= im->phase_at && im->phase == HTTP_DIALING && !im->dialled &&
	    im->multi->nsent > 0 && !im->fault)
		im->phase_at = now + im->timers.connect_ms;
	if (im->hold_at && now >= im->hold_at)
		hold_end(im);
	if (now < late_at(im)) {
		timer_arm(im);
		return;
	}
	rv = im->fault ? fault_error(im, &err) : timer_error(im, &err);
	if (im->phase == HTTP_DIALING && im->multi->ndialled == 0) /* no address is known yet */
		p->names_amiss_till = now + AMISS_MS;
	else if (im->phase == HTTP_DIALING)
		p->known[0] = '\0';
	http_pool_enter(p);
	if (im->multi) {
		call_take(im->multi, im);
	} else {
		list_del(&im->node);
		p->nwaiting--;
	}
	http_call_over(im, rv, &err);
	http_pool_leave(p);
}

/* GOAWAY from a server that shuts down: old streams go on, new ones may not begin. libcurl 7.88
 * still hands new calls to that connection, and each fails at once. So retire the multi and move
 * the call to another, if its request is still here. */
static bool move_on(struct http_call_impl *im, CURLcode code)
{
	char *url = NULL;

	if (code != CURLE_HTTP2 || im->head_bytes > 0)
		return false;
	im->multi->retired = true;
	if (!im->call || im->fault || im->moved || !im->headers || (im->body_len && !im->body.data))
		return false;
	curl_easy_getinfo(im->easy, CURLINFO_EFFECTIVE_URL, &url);
	im->url = url ? strdup(url) : NULL;
	if (!im->url)
		return false;
	im->moved = true;
	im->hold_at = 0;
	im->sent = 0;
	im->upload = NULL;
	im->text[0] = '\0';
	http_call_again(im);
	return true;
}

/* Does a chunk or a length, not the connection's end, end the body? Unknown for HTTP/2 in libcurl
 * 7.88. */
static bool is_framed(CURL *easy)
{
	long version = 0;
	struct curl_header *h;

	curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
	return version <= CURL_HTTP_VERSION_1_1 &&
	       (curl_easy_header(easy, "transfer-encoding", 0, CURLH_HEADER, -1, &h) == CURLHE_OK ||
		curl_easy_header(easy, "content-length", 0, CURLH_HEADER, -1, &h) == CURLHE_OK);
}

/* libcurl has finished the call. */
static void call_finish(struct http_call_impl *im, CURLcode code)
{
	struct ava_error err = {.code = AVA_OK};
	int rv = 0;

	if (move_on(im, code))
		return;
	if (code == CURLE_COULDNT_RESOLVE_HOST)
		im->pool->names_amiss_till = now_of(im->pool) + AMISS_MS;
	else if (code == CURLE_COULDNT_CONNECT)
		im->pool->known[0] = '\0';
	else if (code == CURLE_OK ||
		 !im->pool->known[0]) /* a wrong certificate does not replace a known address */
		known_learn(im);
	if (code == CURLE_OK && !im->heads_over)
		im->fault = FAULT_CUT;
	if (im->fault)
		rv = fault_error(im, &err);
	else if (code != CURLE_OK)
		rv = code_error(im, code, &err);
	if (im->call)
		im->call->framed = rv == 0 && is_framed(im->easy);
	http_call_over(im, rv, &err);
}

/* ---- multis */

static int http_call_timer_cb(CURLM *curl, long timeout_ms, void *user)
{
	struct http_multi *m = user;

	(void)curl;
	if (timeout_ms < 0)
		os_timer_stop(m->timer);
	else
		os_timer_set(m->timer, timeout_ms);
	return 0;
}

static void http_call_act(struct http_multi *m, curl_socket_t fd, int events)
{
	struct http_pool *p = m->pool;
	struct http_call_impl *im = NULL;
	CURLMsg *msg;
	int running, left;

	http_pool_enter(p);
	m->inside++;
	(void)curl_multi_socket_action(m->curl, fd, events, &running);
	m->inside--;
	/* Give back upload buffers whose last byte libcurl has sent. */
	LIST_EACH (&m->unsent, n, tmp) {
		curl_off_t sent = 0;

		im = LIST_ENTRY(n, struct http_call_impl, unsent);

		curl_easy_getinfo(im->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
		if (sent != (curl_off_t)im->body_len)
			continue;
		http_upload_empty(im->upload);
		list_del(&im->unsent);
	}
	while ((im = LIST_FIRST(&m->dead, struct http_call_impl, node))) {
		call_take(m, im);
		http_call_free(im);
	}
	while ((msg = curl_multi_info_read(m->curl, &left))) {
		CURLcode code = msg->data.result;

		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&im);
		call_take(m, im);
		call_finish(im, code); /* may stop others and start new ones */
	}
	http_pool_leave(p);
}

static void timer_fire(void *user)
{
	http_call_act(user, CURL_SOCKET_TIMEOUT, 0);
}

struct http_multi *http_multi_new(struct http_pool *p)
{
	struct http_multi *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->pool = p;
	list_init(&m->node);
	list_init(&m->calls);
	list_init(&m->dead);
	list_init(&m->unsent);
	list_init(&m->socks);
	m->curl = curl_multi_init();
	m->timer = os_timer_new(p->client->loop, timer_fire, m);
	m->tune = os_timer_new(p->client->loop, tune_fire, m);
	if (!m->curl || !m->timer || !m->tune) {
		http_multi_free(m);
		return NULL;
	}
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, http_call_socket_cb);
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, http_call_timer_cb);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_PIPELINING,
			  p->http2 ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING);
	if (!p->http2)
		set_cap(m, HTTP_MULTI_CALLS);
	list_add(&p->multis, &m->node);
	return m;
}

void http_multi_free(struct http_multi *m)
{
	struct http_client *c = m->pool->client;

	assert(m->ncalls == 0 && m->inside == 0);
	curl_multi_cleanup(m->curl); /* closes its sockets, most through us */
	for (size_t i = 0; i < c->nsocks; i++)
		if (c->socks[i] && c->socks[i]->multi == m)
			http_call_sock_free(c, c->socks[i]);
	os_timer_free(m->timer);
	os_timer_free(m->tune);
	list_del(&m->node);
	free(m);
}
