/* A stream waits as one small block; the reader of events and the dialect's
 * part are made when bytes come. The first bytes tell events from a body
 * (an error, a page of HTML): a body is kept up to STREAM_BODY_MAX and read at
 * the end, when the status of HTTP is known.
 *
 * The reply is whole when the dialect saw its end mark (`done`), and only then
 * becomes a turn; nothing after the mark is looked at. Faults are kept for
 * stream_end: the first one counts. Usage of what was not whole is estimated
 * at a quarter of the bytes. Nothing here trusts a byte that came in. */
#include "provider/stream_core.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/utf8.h"
#include "provider/stream_error.h"
#include "provider/stream_json.h"

#define TOO_LARGE "the reply is larger than 32 MB"

struct stream *stream_open(const struct stream_ops *ops, const struct model *m, const char *tag)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->ops = ops;
	s->model = m;
	buf_init(&s->body, STREAM_BODY_MAX);
	snprintf(s->tag, sizeof(s->tag), "%s", tag);
	return s;
}

void stream_free(struct stream *s)
{
	if (s == NULL)
		return;
	if (s->reply != NULL)
		s->ops->free_reply(s->reply);
	if (s->sse != NULL)
		sse_fini(s->sse);
	free(s->sse);
	free(s->fault);
	buf_fini(&s->body);
	free(s);
}

void stream_on_text(struct stream *s,
		    void (*text)(const char *s, size_t n, bool thinking, void *user), void *user)
{
	s->text = text;
	s->text_user = user;
}

/* ---- faults */

int stream_fault(struct stream *s, enum reply_class cls, const char *text)
{
	if (s->fault == NULL) {
		s->fault = calloc(1, sizeof(*s->fault));
		if (s->fault == NULL)
			return AVA_ENOMEM;
		stream_error_set(s->fault, cls, text);
	}
	return AVA_EINVAL;
}

int stream_error_value(struct stream *s, const json_t *v)
{
	int rv = stream_fault(s, REPLY_SERVER, "the service ended the reply with an error");

	if (rv == AVA_EINVAL && stream_error_member(v) != NULL)
		stream_error_json(s->fault, 200, v);
	return rv;
}

/* ---- pieces */

static int count_piece(struct stream *s, size_t len)
{
	s->payload += (int64_t)len;
	return s->payload <= (int64_t)TURN_MAX_BYTES ? 0 : AVA_ETOOBIG;
}

static void show(struct stream *s, enum delta_kind kind, const char *text, size_t len)
{
	if (s->text != NULL && len > 0 && kind != DELTA_ARGS)
		s->text(text, len, kind != DELTA_TEXT, s->text_user);
}

int stream_add(struct stream *s, struct buf *out, const struct delta *d)
{
	size_t before = out->len;
	int rv = delta_add(out, d);

	if (rv != 0)
		return rv;
	show(s, d->kind, out->data + before, out->len - before);
	return count_piece(s, out->len - before);
}

int stream_add_text(struct stream *s, struct buf *out, enum delta_kind kind, const char *text,
		    size_t len)
{
	int rv = buf_add(out, text, len);

	if (rv != 0)
		return rv;
	show(s, kind, text, len);
	return count_piece(s, len);
}

/* ---- feeding */

static int on_event(const struct sse_event *e, void *user)
{
	struct stream *s = user;
	int rv;

	if (s->done)
		return 0;
	rv = s->ops->event(s, e->data, e->len, &s->progress);
	return rv == AVA_ETOOBIG ? stream_fault(s, REPLY_OTHER, TOO_LARGE) : rv;
}

static const char *const fields[] = {"data:", "event:", "id:", "retry:", ":"};

/* Events begin with a field, a comment or a line end; a body with anything
 * else. UNKNOWN: a few more bytes decide. */
static enum stream_mode mode_of(const char *s, size_t len)
{
	bool maybe = false;

	if (len >= 1 && memcmp(s, "\xef\xbb\xbf", MIN(len, (size_t)3)) == 0) {
		if (len <= 3)
			return STREAM_UNKNOWN;
		s += 3;
		len -= 3;
	}
	if (s[0] == '\n' || s[0] == '\r')
		return STREAM_EVENTS;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		size_t n = strlen(fields[i]);

		if (memcmp(s, fields[i], MIN(n, len)) != 0)
			continue;
		if (len >= n)
			return STREAM_EVENTS;
		maybe = true;
	}
	return maybe ? STREAM_UNKNOWN : STREAM_BODY;
}

static int start_events(struct stream *s)
{
	s->sse = malloc(sizeof(*s->sse));
	if (s->sse == NULL)
		return AVA_ENOMEM;
	sse_init(s->sse, STREAM_LINE_MAX);
	s->sse->on_event = on_event;
	s->sse->user = s;
	return 0;
}

static int feed_bytes(struct stream *s, const char *data, size_t len)
{
	if (s->mode == STREAM_EVENTS)
		return sse_feed(s->sse, data, len);
	/* What does not fit is not needed for a sentence. */
	return buf_add(&s->body, data, MIN(len, s->body.max - s->body.len));
}

/* Until the mode is known, at most seven bytes wait in `first`. */
static int feed_first(struct stream *s, const char **data, size_t *len)
{
	int rv = 0;

	while (*len > 0 && s->mode == STREAM_UNKNOWN) {
		s->first[s->nfirst++] = *(*data)++;
		(*len)--;
		s->mode = (uint8_t)mode_of(s->first, s->nfirst);
		if (s->mode == STREAM_UNKNOWN && s->nfirst == sizeof(s->first))
			s->mode = STREAM_EVENTS; /* a BOM and the beginning of a field */
	}
	if (s->mode == STREAM_EVENTS)
		rv = start_events(s);
	return rv == 0 && s->mode != STREAM_UNKNOWN ? feed_bytes(s, s->first, s->nfirst) : rv;
}

int stream_feed(struct stream *s, const char *data, size_t len, bool *progress)
{
	int rv = 0;

	*progress = s->progress = false;
	if (s->code < 0)
		return s->code;
	if (s->mode == STREAM_UNKNOWN)
		rv = feed_first(s, &data, &len);
	if (rv == 0 && len > 0)
		rv = feed_bytes(s, data, len);
	*progress = s->progress;
	if (rv == AVA_ETOOBIG)
		stream_fault(s, REPLY_PROTOCOL, "the service sent a line of over 8 MB");
	s->code = s->done ? 0 : rv;
	return s->code;
}

/* ---- the end */

/* "data: [DONE]" with the connection closed right after it. */
static bool bare_done(const struct stream *s)
{
	static const char done[] = "[DONE]";
	const struct buf *b;
	const char *at;
	size_t len;

	if (!s->ops->bare_done || s->sse == NULL || s->code < 0)
		return false;
	b = s->sse->has_data ? &s->sse->data : &s->sse->line;
	at = b->data;
	len = b->len;
	if (!s->sse->has_data) {
		if (len < 5 || memcmp(at, "data:", 5) != 0)
			return false;
		at += 5;
		len -= 5;
		if (len > 0 && *at == ' ') {
			at++;
			len--;
		}
	}
	return len >= strlen(done) && memcmp(at, done, strlen(done)) == 0;
}

/* What is known of a reply that is not whole. */
static void half_usage(const struct stream *s, struct usage *u)
{
	int64_t output = s->payload / 4;

	*u = (struct usage){.cost_microusd = -1, .estimated = true};
	if (s->reply != NULL)
		s->ops->usage(s, u);
	if (u->output < output)
		u->output = output;
	u->estimated = true;
}

static enum reply_class failed(const struct stream *s, int status, const char *content_type,
			       struct reply_error *e)
{
	if (s->fault != NULL)
		*e = *s->fault;
	else if (s->code == AVA_ENOMEM)
		stream_error_set(e, REPLY_OTHER, "out of memory for the reply");
	else if (s->mode == STREAM_BODY || (status != 200 && status != 0))
		stream_error_body(e, status, content_type, s->body.len > 0 ? s->body.data : "",
				  s->body.len);
	else if (s->reply != NULL || status == 200)
		stream_error_set(e, REPLY_TRUNCATED,
				 s->reply != NULL ? "the reply broke off before its end"
						  : "the connection ended before the reply began");
	else
		stream_error_set(e, REPLY_NETWORK, "no response arrived");
	half_usage(s, &e->usage);
	return e->cls;
}

static enum reply_class finish(struct stream *s, struct turn **out, struct reply_error *e)
{
	struct turn *t = turn_new();
	enum reply_class cls = REPLY_OTHER;

	if (t != NULL) {
		s->ops->usage(s, &t->usage);
		cls = s->ops->finish(s, t);
	}
	if (cls == REPLY_OK) {
		*out = t;
		return cls;
	}
	if (s->fault != NULL)
		*e = *s->fault;
	else if (t != NULL && t->mem.used > t->mem.max / 2)
		stream_error_set(e, REPLY_OTHER, TOO_LARGE);
	else
		stream_error_set(e, REPLY_OTHER, "out of memory for the reply");
	if (t != NULL)
		e->usage = t->usage;
	turn_free(t);
	return e->cls;
}

enum reply_class stream_end(struct stream *s, int status, const char *content_type,
			    struct turn **out, struct reply_error *e)
{
	*out = NULL;
	*e = (struct reply_error){0};
	if (!s->done && s->reply != NULL && bare_done(s))
		s->done = true;
	/* A broken connection after the end mark changes nothing. */
	if (s->done && s->reply != NULL && (status == 200 || status == 0))
		return finish(s, out, e);
	return failed(s, status, content_type, e);
}
