/* A stream is a cursor and a connection. It is pumped when the cursor wakes or
 * the connection has drained; a slow client holds no memory but what its
 * socket and one short queue take, and catches up from the files.
 *
 * After a run's last event the stream ends. When the daemon stops before, the
 * connection breaks off instead, which tells the client to come again with
 * the last id it saw. */
#include "gateway/events.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/ops.h"
#include "ava/state.h"
#include "base/error.h"
#include "codec/json.h"
#include "event/event.h"
#include "net/http_server.h"
#include "os/loop.h"

struct event_stream {
	unsigned *streams; /* of whoever serves */
	struct os_loop *loop;
	struct op_cursor *cursor;
	struct http_stream *http; /* NULL: not started yet */
	struct os_task pump;
	struct os_timer *again; /* pumps in the next turn */
	bool full;              /* waits for `drained` */
	struct op_watch *watch; /* frames of a conversation; NULL: none */
	const char *turn;       /* a turn's state that waits for room; NULL: none */
	char session[64];
};

static void stream_free(struct event_stream *s)
{
	if (s->http)
		--*s->streams;
	os_defer_cancel(s->loop, &s->pump);
	os_timer_free(s->again);
	if (s->cursor)
		ops_events_close(s->cursor);
	if (s->watch)
		ops_unwatch(s->watch);
	free(s);
}

static int write_frame(struct event_stream *s, const struct op_event *e)
{
	struct buf b;
	int rv;

	buf_init(&b, 64u << 20);
	buf_addf(&b, "id: %llu\nevent: ", (unsigned long long)e->lsn);
	buf_add(&b, e->type, e->type_len);
	buf_adds(&b, "\ndata: ");
	buf_add(&b, e->line, e->line_len);
	buf_adds(&b, "\n\n");
	rv = buf_check(&b);
	if (rv == 0)
		rv = http_stream_write(s->http, b.data, b.len);
	buf_fini(&b);
	return rv;
}

static bool is_wanted(const struct event_stream *s, const struct op_event *e)
{
	size_t len = strlen(s->session);
	struct event_view v;

	return len == 0 || (event_view(e->line, e->line_len, &v) == 0 && v.session_id.len == len &&
			    memcmp(v.session_id.s, s->session, len) == 0);
}

static void send_frame(struct event_stream *s, const struct op_frame *f)
{
	static const char *const names[] = {
		[FRAME_TEXT] = "text", [FRAME_THINKING] = "thinking", [FRAME_TURN] = "turn"};
	struct buf b;
	struct jw w;

	buf_init(&b, 4u << 20);
	buf_addf(&b, "event: %s\ndata: ", names[f->kind]);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "sessionId", f->session);
	jw_strn(&w, f->kind == FRAME_TURN ? "state" : "text", f->text, f->len);
	jw_end(&w);
	buf_adds(&b, "\n\n");
	if (buf_check(&b) == 0)
		s->full = http_stream_write(s->http, b.data, b.len) == 1;
	buf_fini(&b);
}

/* What is only shown: a client that is behind goes without it. That a turn began
 * or ended it hears all the same, later. */
static void frame(const struct op_frame *f, void *user)
{
	struct event_stream *s = user;

	if (!s->http || strcmp(f->session, s->session) != 0)
		return;
	if (!s->full)
		send_frame(s, f);
	else if (f->kind == FRAME_TURN)
		s->turn = strcmp(f->text, "busy") == 0 ? "busy" : "idle";
}

static void send_turn(struct event_stream *s)
{
	const struct op_frame f = {
		.session = s->session, .kind = FRAME_TURN, .text = s->turn, .len = strlen(s->turn)};

	s->turn = NULL;
	send_frame(s, &f);
}

static void pump(struct os_task *t)
{
	struct event_stream *s = CONTAINER_OF(t, struct event_stream, pump);
	struct op_event e;
	int rv = 0;

	while (!s->full && (rv = ops_events_next(s->cursor, &e)) == 1) {
		if (!is_wanted(s, &e))
			continue;
		rv = write_frame(s, &e);
		if (rv < 0) {
			rv = -2;
			break;
		}
		s->full = rv == 1;
	}
	if (rv == 0 && s->turn && !s->full)
		send_turn(s);
	if (rv == -2) {
		http_stream_abort(s->http); /* to come again; calls `gone` */
	} else if (rv == -1) {
		http_stream_end(s->http);
		stream_free(s);
	}
}

static void wake(void *user)
{
	struct event_stream *s = user;

	if (s->http)
		os_defer(s->loop, &s->pump);
}

/* A client that reads as fast as we write must not keep the loop in one turn
 * until the whole log is through: go on in the next one. */
static void drained(struct http_stream *st, void *user)
{
	struct event_stream *s = user;

	s->full = false;
	os_timer_set(s->again, 0);
}

static void again(void *user)
{
	struct event_stream *s = user;

	pump(&s->pump);
}

static void gone(struct http_stream *st, void *user)
{
	stream_free(user);
}

int events_start(struct core *c, unsigned *streams, struct http_request *req, const char *run,
		 const char *session, uint64_t after, struct ava_error *err)
{
	static const struct http_field fields[] = {{"Cache-Control", "no-store"},
						   {"X-Content-Type-Options", "nosniff"}};
	const struct http_answer head = {
		.status = 200, .content_type = "text/event-stream", .fields = fields, .nfields = 2};
	struct http_stream_hooks hooks = {.drained = drained, .gone = gone, .heartbeat = true};
	struct event_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, AVA_ENOMEM, "out of memory");
	s->streams = streams;
	s->loop = c->loop;
	os_task_init(&s->pump, pump);
	s->again = os_timer_new(s->loop, again, s);
	snprintf(s->session, sizeof(s->session), "%s", session);
	if (session[0])
		s->watch = ops_watch(c, frame, s);
	if (s->again && (s->watch || !session[0]))
		s->cursor = ops_events_open(c, run, after, wake, s, err);
	else
		err_set(err, AVA_ENOMEM, "out of memory");
	if (!s->cursor) {
		stream_free(s);
		return err->code;
	}
	hooks.user = s;
	s->http = http_stream_start(req, &head, &hooks);
	if (s->http) {
		++*streams;
		os_defer(s->loop, &s->pump);
	} else {
		stream_free(s); /* the connection is closed already */
	}
	return 0;
}
