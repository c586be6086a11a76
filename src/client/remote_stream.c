/* One stream of server-sent events over a client of its own, non-blocking once it has
 * begun.
 *
 * Happy path: it is opened, which waits for the head. From then on each look at the stream takes
 * what its socket has (at most one buffer) and turns it into items, which are given one by one
 * before the socket is looked at again; so at most one buffer's worth and one frame wait.
 *
 * What can fail: the daemon goes away, or breaks the stream off because it
 * stops. Then the next look connects again behind the last event that came; a
 * frame that was cut is not lost, because it comes again whole. */
#include "client/remote_stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "base/list.h"
#include "client/client.h"
#include "codec/json.h"

struct item {
	struct list node;
	struct backend_item give;
	uint64_t lsn;
	bool last; /* of its run */
	char *session;
	char bytes[]; /* the line, or the text; then the session's id */
};

struct remote_stream {
	struct remote_stream_host *host;
	struct client *c; /* NULL: to be connected again */
	bool lost;        /* counted in host.lost */
	struct list items;
	struct item *given; /* borrowed by the caller */
	bool now;           /* the first connection begins with what is new */
	uint64_t after;     /* what a new connection goes on behind */
	bool of_run, ended;
	char path[];
};

/* ---- items */

static struct item *item_new(const char *bytes, size_t len, const char *session)
{
	size_t more = strlen(session) + 1;
	struct item *it = malloc(sizeof(*it) + len + 1 + more);

	if (!it)
		return NULL;
	*it = (struct item){0};
	memcpy(it->bytes, bytes, len);
	it->bytes[len] = '\0';
	it->session = it->bytes + len + 1;
	memcpy(it->session, session, more);
	return it;
}

static int queue_line(struct remote_stream *s, const struct sse_event *e)
{
	struct item *it = item_new(e->data, e->len, "");

	if (!it)
		return AVA_ENOMEM;
	it->lsn = strtoull(e->id, NULL, 10);
	it->last = s->of_run && strcmp(e->event, "SubagentComplete") == 0;
	it->give = (struct backend_item){.line = it->bytes, .len = e->len};
	list_add(&s->items, &it->node);
	return 0;
}

static int queue_text(struct remote_stream *s, const struct sse_event *e, enum ava_text_kind kind)
{
	json_t *o = json_parse(e->data, e->len, NULL);
	const char *session = json_get_str(o, "sessionId");
	const char *text = json_get_str(o, kind == AVA_TURN ? "state" : "text");
	struct item *it = NULL;
	int rv = 0;

	if (session && text) { /* else it is no frame that we know */
		it = item_new(text, strlen(text), session);
		rv = it ? 0 : AVA_ENOMEM;
	}
	if (it) {
		it->give = (struct backend_item){.is_text = true};
		it->give.text = (struct ava_text){.session = it->session,
						  .kind = kind,
						  .text = it->bytes,
						  .len = strlen(text)};
		list_add(&s->items, &it->node);
	}
	json_decref(o);
	return rv;
}

static int on_event(const struct sse_event *e, void *user)
{
	if (strcmp(e->event, "text") == 0)
		return queue_text(user, e, AVA_TEXT);
	if (strcmp(e->event, "thinking") == 0)
		return queue_text(user, e, AVA_THINKING);
	if (strcmp(e->event, "turn") == 0)
		return queue_text(user, e, AVA_TURN);
	return queue_line(user, e);
}

/* ---- the connection */

static void hang_up(struct remote_stream *s)
{
	client_close(s->c); /* which takes it out of the epoll as well */
	s->c = NULL;
}

static int join(struct remote_stream *s, struct ava_error *err)
{
	struct epoll_event e = {.events = EPOLLIN};
	struct buf path;
	int rv = client_open(s->host->root, false, &s->c, err);

	if (rv != 0)
		return rv;
	buf_init(&path, 65536);
	buf_adds(&path, s->path);
	if (!s->now)
		buf_addf(&path, "%cafter=%llu", strchr(s->path, '?') ? '&' : '?',
			 (unsigned long long)s->after);
	rv = buf_check(&path) == 0 ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
	if (rv == 0)
		rv = client_stream_open(s->c, path.data, NULL, on_event, s, err);
	if (rv == 0 && epoll_ctl(s->host->epoll, EPOLL_CTL_ADD, client_fd(s->c), &e) != 0 &&
	    !client_stream_done(s->c))
		rv = err_sys(err, "watch the connection");
	buf_fini(&path);
	if (rv != 0)
		hang_up(s);
	return rv;
}

static void set_lost(struct remote_stream *s, bool lost)
{
	if (lost != s->lost)
		s->host->lost += lost ? 1 : -1u;
	s->lost = lost;
}

static int join_again(struct remote_stream *s, struct ava_error *err)
{
	int rv = s->host->serve(s->host->user, err);

	s->now = false;
	if (rv == 0)
		rv = join(s, err);
	set_lost(s, rv != 0);
	return rv;
}

/* ---- life */

int remote_stream_open(struct remote_stream_host *host, const char *path, uint64_t after,
		       uint64_t seen, struct remote_stream **out, struct ava_error *err)
{
	size_t len = strlen(path) + 1;
	struct remote_stream *s = calloc(1, sizeof(*s) + len);
	int rv;

	if (!s)
		return err_set(err, AVA_ENOMEM, "out of memory");
	memcpy(s->path, path, len);
	s->host = host;
	s->now = after == AVA_NOW;
	s->after = s->now ? seen : after;
	s->of_run = strncmp(path, "/api/v1/runs/", 13) == 0;
	list_init(&s->items);
	rv = join(s, err);
	if (rv == 0)
		*out = s;
	else
		remote_stream_close(s); /* some may have come before it failed */
	return rv;
}

static struct item *take_item(struct remote_stream *s)
{
	struct item *it = LIST_FIRST(&s->items, struct item, node);

	if (it)
		list_del(&it->node);
	return it;
}

void remote_stream_close(struct remote_stream *s)
{
	struct item *it;

	while ((it = take_item(s)) != NULL)
		free(it);
	free(s->given);
	set_lost(s, false);
	hang_up(s);
	free(s);
}

static int give(struct remote_stream *s, struct item *it, struct backend_item *item)
{
	s->given = it;
	s->after = MAX(s->after, it->lsn);
	s->ended = s->ended || it->last;
	*item = it->give;
	return 1;
}

int remote_stream_next(struct remote_stream *s, struct backend_item *item, struct ava_error *err)
{
	struct item *it;
	bool whole;
	int rv;

	free(s->given);
	s->given = NULL;
	while ((it = take_item(s)) == NULL) {
		if (s->ended)
			return 0;
		if (s->c == NULL) {
			rv = join_again(s, err);
			if (rv != 0)
				return rv;
			continue; /* the head may have brought some */
		}
		rv = client_stream_take(s->c, err);
		whole = client_stream_done(s->c);
		if (rv == 0 && !whole)
			return 0;
		if (rv >= 0 && !whole)
			continue;
		hang_up(s);
		s->ended = s->of_run && whole && list_empty(&s->items);
		if (rv == AVA_ENOMEM || rv == AVA_ETOOBIG || rv == AVA_EPROTO)
			return rv;
	}
	return give(s, it, item);
}

bool remote_stream_ended(const struct remote_stream *s)
{
	return s->ended && list_empty(&s->items);
}

int remote_stream_wait(struct remote_stream *s, int timeout_ms, struct ava_error *err)
{
	if (!list_empty(&s->items) || s->ended || s->c == NULL || client_stream_done(s->c))
		return 1;
	return client_stream_wait(s->c, timeout_ms, err);
}
