/* A call's easy handle and libcurl's questions about it.
 *
 * Happy path: `prereq` (a connection stands, the request goes out), `read`
 * hands out the body and lets go of it and of the headers with the last
 * byte, `header` collects what is kept until the response's own headers are
 * over, `write` passes the body on; then the end. So a call that waits for
 * its answer holds neither its request nor its key.
 *
 * A server closes a connection that was silent for a while, perhaps just when
 * the next request is under way. libcurl then sends that again on a new one,
 * if no byte of an answer had come; so on a connection that was silent the
 * request is kept for a moment longer.
 *
 * What can fail: a connection that dies under a request cannot be repeated
 * here once the body is let go; that is AVA_EIO, and the caller's to repeat.
 * Every way to break a call off from a callback sets `fault`, because libcurl
 * reports all of them alike. */
#include "net/http_call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "net/http_memory.h"
#include "net/http_multi.h"

#define BUFFER_BYTES 1024 /* libcurl's least; a call that waits holds it */
#define VALUE_MAX    256  /* of a header that is kept */
#define SILENT_MS    1000 /* a connection that was silent for so long may be dead */
#define HOLD_MS      5000 /* until then that has shown */
#define HOLD_NEW_MS  1000 /* on HTTP/2: whether a new stream may begin shows at once */

enum fault {
	FAULT_NONE,
	FAULT_LOST,    /* the connection died and the request cannot be repeated */
	FAULT_CUT,     /* ended amid the headers: libcurl takes that for a success */
	FAULT_HEADERS, /* more than HTTP_HEADERS_MAX */
	FAULT_BODY,    /* more than HTTP_RESPONSE_MAX */
	FAULT_SWITCH,  /* 101: nobody asked for another protocol */
	FAULT_MEMORY,
};

/* ---- what is kept of a request, and for how long */

static void headers_wipe(struct http_call_impl *im)
{
	if (!im->headers)
		return;
	explicit_bzero(im->headers, im->headers_size);
	free(im->headers);
	im->headers = NULL;
}

/* The request is with libcurl to the last byte. */
static void request_release(struct http_call_impl *im)
{
	buf_fini(&im->body);
	if (im->easy)
		curl_easy_setopt(im->easy, CURLOPT_HTTPHEADER, NULL);
	headers_wipe(im);
}

void http_call_free(struct http_call_impl *im)
{
	struct http_pool *p = im->pool;

	assert(list_empty(&im->node));
	deadlines_del(&p->client->deadlines, &im->due);
	request_release(im);
	if (im->easy)
		http_pool_easy_put(p, im->easy);
	http_addresses_put(im->addresses);
	buf_fini(&im->kept);
	free(im->url);
	free(im);
	http_pool_call_over(p);
}

/* ---- time */

static int64_t due_next(const struct http_call_impl *im)
{
	int64_t at = MIN(im->phase_at, im->total_at);

	return im->hold_at ? MIN(at, im->hold_at) : at;
}

static void due_at(struct http_call_impl *im, int64_t phase_at)
{
	im->phase_at = phase_at;
	if (due_next(im) < im->due.at) /* a later one: when the old one comes up */
		(void)http_client_due(im->pool->client, &im->due, due_next(im));
}

static void phase_set(struct http_call_impl *im, enum http_phase phase, int64_t ms)
{
	im->phase = phase;
	due_at(im, os_now_ms(im->pool->client->loop) + ms);
}

/* An answer has begun, or the connection has lived for long enough. */
static void hold_end(struct http_call_impl *im)
{
	im->hold_at = 0;
	if (im->body_len && im->sent == im->body_len)
		request_release(im);
}

/* ---- libcurl's callbacks */

static int prereq_cb(void *user, char *remote, char *local, int remote_port, int local_port)
{
	struct http_call_impl *im = user;

	(void)remote, (void)local, (void)remote_port;
	if (im->body_len && !im->body.data) {
		im->fault = FAULT_LOST; /* a second try, and the body is gone */
		return CURL_PREREQFUNC_ABORT;
	}
	im->sent = 0;
	if (im->phase == HTTP_DIALING) {
		int64_t now = os_now_ms(im->pool->client->loop);

		im->hold_at = im->pool->http2 ? now + HOLD_NEW_MS : 0;
		if (http_multi_idle_ms(im, local_port) >= SILENT_MS)
			im->hold_at = now + HOLD_MS;
		phase_set(im, HTTP_SENT, im->timers.first_ms);
		http_multi_sent(im->multi, im);
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
			request_release(im);
		im->upload = to;
		list_del(&im->unsent); /* of a first try */
		if (http_memory_is_upload(to))
			list_add(&im->multi->unsent, &im->unsent);
	}
	/* A slow line that takes the request is not a service that is silent. */
	if (im->phase == HTTP_SENT)
		due_at(im, os_now_ms(im->pool->client->loop) + im->timers.first_ms);
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
};

/* "Name: value\r\n" into im->kept, when it is one of ours. */
static int keep_header(struct http_call_impl *im, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len), *end = line + len, *s;
	size_t name_len = colon ? (size_t)(colon - line) : 0;

	for (size_t i = 0; i < ARRAY_LEN(kept_names); i++) {
		if (strlen(kept_names[i]) != name_len ||
		    strncasecmp(kept_names[i], line, name_len) != 0)
			continue;
		for (s = colon + 1; s < end && (*s == ' ' || *s == '\t'); s++)
			;
		while (end > s && strchr("\r\n \t", end[-1]))
			end--;
		if (end - s > VALUE_MAX || memchr(s, '\0', (size_t)(end - s)))
			return 0; /* of no use to anyone */
		buf_add(&im->kept, kept_names[i], name_len + 1);
		buf_add(&im->kept, s, (size_t)(end - s));
		return buf_addc(&im->kept, '\0');
	}
	return 0;
}

static void heads_over(struct http_call_impl *im)
{
	long status = 0;

	curl_easy_getinfo(im->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 101)
		im->fault = FAULT_SWITCH;
	if (status < 200)
		return;
	im->heads_over = true;
	headers_wipe(im); /* a request without a body gets here with them */
	curl_easy_setopt(im->easy, CURLOPT_HTTPHEADER, NULL);
	im->call->status = (int)status;
	im->call->kept = im->kept.data;
	if (im->call->head)
		im->call->head(im->call, (int)status);
}

static size_t header_cb(char *line, size_t size, size_t n, void *user)
{
	struct http_call_impl *im = user;
	size_t len = size * n;

	if (!im->call)
		return 0;
	if (im->hold_at)
		hold_end(im);
	im->head_bytes += len; /* those of every 1xx and trailers too */
	if (im->head_bytes > HTTP_HEADERS_MAX)
		im->fault = FAULT_HEADERS;
	else if (im->heads_over)
		return len; /* a trailer */
	else if (len > 5 && memcmp(line, "HTTP/", 5) == 0)
		buf_reset(&im->kept); /* the response after a 1xx */
	else if (line[0] == '\r' || line[0] == '\n')
		heads_over(im);
	else if (keep_header(im, line, len) != 0)
		im->fault = buf_check(&im->kept) == AVA_ETOOBIG ? FAULT_HEADERS : FAULT_MEMORY;
	return im->fault || !im->call ? 0 : len;
}

static size_t write_cb(char *data, size_t size, size_t n, void *user)
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
	progress = c->data ? c->data(c, data, len) : true;
	if (!im->call) /* stopped; c may be gone */
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

int http_call_easy_init(const struct http_pool *p, CURL *easy)
{
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_PROTOCOLS_STR, p->target.tls ? "https" : "http");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_HTTP_VERSION,
	    (long)(p->http2 && p->target.tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
	SET(CURLOPT_PIPEWAIT, p->http2 ? 1L : 0L);
	SET(CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
	SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)HTTP_UPLOAD_BYTES);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, 0L); /* ours come first */
	SET(CURLOPT_PROXY, p->target.proxy ? p->target.proxy : "");
	SET(CURLOPT_NOPROXY, ""); /* judged already */
	SET(CURLOPT_USERAGENT, "ava/" AVA_VERSION);
	SET(CURLOPT_PREREQFUNCTION, prereq_cb);
	SET(CURLOPT_READFUNCTION, read_cb);
	SET(CURLOPT_SEEKFUNCTION, seek_cb);
	SET(CURLOPT_HEADERFUNCTION, header_cb);
	SET(CURLOPT_WRITEFUNCTION, write_cb);
	SET(CURLOPT_OPENSOCKETFUNCTION, http_multi_open);
	SET(CURLOPT_CLOSESOCKETFUNCTION, http_multi_close);
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

int http_call_prepare(struct http_call_impl *im)
{
	CURL *easy = im->easy;

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
	SET(CURLOPT_RESOLVE, im->addresses ? &im->addresses->entry : NULL);
	SET(CURLOPT_HTTPHEADER, im->headers);
	if (im->get)
		SET(CURLOPT_HTTPGET, 1L);
	else
		SET(CURLOPT_POST, 1L);
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)im->body_len);
	free(im->url); /* copied */
	im->url = NULL;
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
	if (strstr(im->text, "subject name")) /* the chain was good: `why` says nothing */
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

/* libcurl's code as ours, with a sentence. */
static int code_error(struct http_call_impl *im, CURLcode code, struct ava_error *err)
{
	const char *host = im->pool->target.host;
	const char *text = im->text[0] ? im->text : curl_easy_strerror(code);

	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
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
		if (im->head_bytes > 0 && !im->heads_over) /* libcurl's bound: 100 KB */
			return err_set(err, AVA_ETOOBIG,
				       "a header of %s did not fit into memory: libcurl takes "
				       "100 KB at most",
				       host);
		return err_set(err, AVA_ENOMEM, "call to %s: out of memory", host);
	default: /* sockets that broke, a body that ended early, a stream that was reset */
		if (im->phase == HTTP_DIALING) /* a proxy that refuses, too */
			return not_connected(im, text, err);
		return err_set(err, AVA_EIO, "the connection to %s broke off: %s", host, text);
	}
}

void http_call_fail(struct http_call_impl *im, int rv, const struct ava_error *err)
{
	struct http_call *c = im->call;

	im->call = NULL;
	if (c) {
		c->impl = NULL; /* c may be freed or started again in there */
		c->done(c, rv, err);
	}
	http_call_free(im);
}

/* Which timer ran out, in a sentence. */
static int late(const struct http_call_impl *im, struct ava_error *err)
{
	const char *host = im->pool->target.host;
	const struct http_timers *t = &im->timers;

	if (os_now_ms(im->pool->client->loop) >= im->total_at)
		return err_set(err, AVA_ETIMEOUT, "%s did not finish within %g s (total timer)",
			       host, (double)t->total_ms / 1000);
	switch (im->phase) {
	case HTTP_WAITING:
	case HTTP_DIALING:
		return err_set(err, AVA_ETIMEOUT, "no connection to %s within %g s (connect timer)",
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

void http_call_no_memory(struct http_call_impl *im)
{
	im->fault = FAULT_MEMORY;
	im->phase_at = im->total_at = 0;
	(void)http_client_due(im->pool->client, &im->due, 0); /* it is in the heap */
}

void http_call_due(struct deadline *d)
{
	struct http_call_impl *im = CONTAINER_OF(d, struct http_call_impl, due);
	struct http_pool *p = im->pool;
	int64_t now = os_now_ms(p->client->loop);
	struct ava_error err;
	int rv;

	/* Not dialling itself while others get through: it waits for its turn. */
	if (now >= im->phase_at && im->phase == HTTP_DIALING && !im->dialled &&
	    im->multi->nsent > 0 && !im->fault)
		im->phase_at = now + im->timers.connect_ms;
	if (im->hold_at && now >= im->hold_at)
		hold_end(im);
	if (now < due_next(im)) {
		deadlines_move(&p->client->deadlines, d, due_next(im));
		return;
	}
	rv = im->fault ? fault_error(im, &err) : late(im, &err);
	http_pool_enter(p);
	if (im->multi) {
		http_multi_take(im->multi, im);
	} else {
		list_del(&im->node);
		p->nwaiting--;
	}
	if (im->phase == HTTP_DIALING && p->names)
		http_names_stale(p->names);
	http_call_fail(im, rv, &err);
	http_pool_leave(p);
}

/* A server that shuts down says GOAWAY: what runs goes on, nothing new may begin
 * there. libcurl 7.88 hands new calls to that connection all the same, as long
 * as it stands, and each fails at once. So that multi is left alone from now on,
 * and the call goes to another, if its request is still here. */
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
	http_pool_again(im->pool, im);
	return true;
}

void http_call_finish(struct http_call_impl *im, CURLcode code)
{
	struct ava_error err = {.code = AVA_OK};
	int rv = 0;

	if (move_on(im, code))
		return;
	if (code == CURLE_OK && !im->heads_over)
		im->fault = FAULT_CUT;
	if (im->fault)
		rv = fault_error(im, &err);
	else if (code != CURLE_OK)
		rv = code_error(im, code, &err);
	if (rv == AVA_ECONNECT && im->pool->names)
		http_names_stale(im->pool->names);
	http_call_fail(im, rv, &err);
}
