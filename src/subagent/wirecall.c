/* Headers with the key are made, handed over and wiped. Then bytes come: the
 * stream says what was progress (comments and pings are not, or a queue that
 * never moves would hold the call open) and when it is hopeless.
 *
 * A reply counts when its end mark arrived, whatever became of the connection
 * after it. Without it the connection's own failure is told, except where the
 * service had already said in words what was wrong. */
#include "subagent/wirecall.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define HEADERS_MAX 16 /* lines a dialect sends */

/* ---- the end */

static enum reply_class transport_class(int rv, bool began)
{
	switch (rv) {
	case AVA_ETIMEOUT:
		return REPLY_TIMEOUT;
	case AVA_ECONNECT:
		return REPLY_NETWORK;
	case AVA_EIO:
		return began ? REPLY_TRUNCATED : REPLY_NETWORK;
	case AVA_EPROTO:
	case AVA_ETOOBIG:
		return REPLY_PROTOCOL;
	default: /* a certificate that is refused, no memory */
		return REPLY_OTHER;
	}
}

/* Did the service itself say what is wrong? */
static bool said(enum reply_class cls)
{
	return cls != REPLY_TRUNCATED && cls != REPLY_NETWORK && cls != REPLY_PROTOCOL &&
	       cls != REPLY_OTHER;
}

/* May it have been billed? A stream that began, or broke before it could: the
 * model was at work. A page or an error that came with 200 is no reply. */
static bool billed(const struct wirecall *w, enum reply_class cls)
{
	return w->began ||
	       (w->http.status == 200 &&
		(cls == REPLY_TRUNCATED || cls == REPLY_NETWORK || cls == REPLY_TIMEOUT));
}

static void read_headers(struct wirecall *w, struct wirecall_end *end)
{
	struct http_call *c = &w->http;

	end->failure.status = c->status;
	end->failure.should_retry = http_call_header(c, "x-should-retry");
	end->failure.after_ms = http_call_header(c, "retry-after-ms");
	end->failure.after = http_call_header(c, "retry-after");
	end->failure.date = http_call_header(c, "date");
}

static const char *request_id(struct wirecall *w)
{
	static const char *const names[] = {"request-id", "x-generation-id", "x-request-id"};

	for (size_t i = 0; i < 3; i++) {
		const char *id = http_call_header(&w->http, names[i]);

		if (id && *id)
			return id;
	}
	return NULL;
}

static void name_request(struct wirecall *w, struct wirecall_end *end)
{
	const char *id = request_id(w), *copy;

	if (!id)
		return;
	snprintf(end->error.request_id, sizeof(end->error.request_id), "%s", id);
	copy = end->turn ? arena_copy(&end->turn->mem, id, strlen(id)) : NULL;
	if (copy)
		end->turn->request_id = copy;
}

/* `rv`, `err`: how the connection ended. */
static void finish(struct wirecall *w, int rv, const struct ava_error *err, bool stop)
{
	const struct dialect *d = w->model->dialect;
	struct wirecall_end end = {0};
	struct stream *s = w->stream;
	char kept[4][128] = {""};
	const char **headers[4] = {&end.failure.should_retry, &end.failure.after_ms,
				   &end.failure.after, &end.failure.date};

	end.failure.cls =
		d->stream_end(s, w->http.status, http_call_header(&w->http, "content-type"),
			      &end.turn, &end.error);
	if (end.failure.cls != REPLY_OK && rv < 0 && !said(end.failure.cls)) {
		end.failure.cls = transport_class(rv, w->began);
		snprintf(end.error.text, sizeof(end.error.text), "%.199s", err->text);
	}
	end.error.cls = end.failure.cls;
	end.accepted = billed(w, end.failure.cls);
	read_headers(w, &end);
	name_request(w, &end);
	for (int i = 0; i < 4; i++) { /* they go with the call */
		if (!*headers[i])
			continue;
		snprintf(kept[i], sizeof(kept[i]), "%s", *headers[i]);
		*headers[i] = kept[i];
	}
	w->stream = NULL;
	if (stop)
		http_call_stop(&w->http);
	d->stream_free(s);
	w->on_done(w, &end);
}

/* ---- as it comes */

static bool on_data(struct http_call *c, const char *s, size_t n)
{
	struct wirecall *w = c->user;
	bool progress = false;

	if (w->model->dialect->stream_feed(w->stream, s, n, &progress) < 0) {
		finish(w, 0, NULL, true);
		return false;
	}
	if (progress && !w->began && c->status == 200) {
		w->began = true;
		w->on_began(w);
	}
	return progress;
}

static void on_done(struct http_call *c, int rv, const struct ava_error *err)
{
	finish(c->user, rv, err, false);
}

/* ---- start and stop */

/* The lines in `text` as pointers; newlines become ends. */
static unsigned split(char *text, const char *lines[HEADERS_MAX])
{
	unsigned n = 0;

	for (char *at = text, *nl; at && (nl = strchr(at, '\n')) && n < HEADERS_MAX; at = nl + 1) {
		*nl = 0;
		lines[n++] = at;
	}
	return n;
}

int wirecall_start(struct wirecall *w, struct http_pool *pool, const struct model *m,
		   const char *key, const char *tag, struct buf *body, struct ava_error *err)
{
	const char *lines[HEADERS_MAX];
	struct buf headers;
	int rv;

	buf_init(&headers, 16384);
	if (!buf_reserve(&headers, 8192)) /* so that no copy of the key is left by growing */
		return err_set(err, AVA_ENOMEM, "out of memory");
	w->model = m;
	w->began = false;
	w->stream = m->dialect->stream_new(m, tag);
	rv = w->stream ? m->dialect->headers(&headers, m, key) : AVA_ENOMEM;
	if (rv == 0) {
		if (w->on_text)
			m->dialect->stream_on_text(w->stream, w->on_text, w->text_user);
		w->http = (struct http_call){
			.path = m->dialect->path,
			.headers = lines,
			.nheaders = split(headers.data, lines),
			.body = *body,
			.timers = w->http.timers,
			.data = on_data,
			.done = on_done,
			.user = w,
		};
		rv = http_call_start(pool, &w->http, err);
		w->http.headers = NULL;
		w->http.nheaders = 0;
	} else {
		err_set(err, rv,
			rv == AVA_ENOMEM
				? "out of memory"
				: "the key cannot be sent: it holds characters that no key has");
	}
	/* Half-made ones may have been taken back: then all of it. */
	explicit_bzero(headers.data, rv == 0 ? headers.len : headers.cap);
	buf_fini(&headers);
	if (rv == 0) {
		buf_init(body, body->max);
	} else {
		m->dialect->stream_free(w->stream);
		w->stream = NULL;
	}
	return rv;
}

void wirecall_stop(struct wirecall *w, struct usage *cut)
{
	struct reply_error e = {0};
	struct turn *t = NULL;
	const struct dialect *d;

	if (cut)
		*cut = (struct usage){.cost_microusd = -1, .estimated = true};
	if (!w->stream)
		return;
	d = w->model->dialect;
	http_call_stop(&w->http);
	if (cut && d->stream_end(w->stream, w->http.status, NULL, &t, &e) == REPLY_OK)
		*cut = t->usage;
	else if (cut)
		*cut = e.usage;
	turn_free(t);
	d->stream_free(w->stream);
	w->stream = NULL;
}
