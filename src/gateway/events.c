/* A stream is a cursor and a connection. It is pumped when the cursor wakes or
 * the connection has drained; a slow client holds no memory but what its
 * socket and one short queue take, and catches up from the files. */
#include "gateway/events.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ava/ops.h"
#include "ava/state.h"
#include "base/error.h"
#include "net/http_server.h"
#include "os/loop.h"

struct event_stream {
	struct core *core;
	struct op_cursor *cursor;
	struct http_stream *http; /* NULL: gone */
	struct os_task pump;
	bool full; /* waits for `drained` */
};

static void stream_free(struct event_stream *s)
{
	os_defer_cancel(s->core->loop, &s->pump);
	ops_events_close(s->cursor);
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

static void pump(struct os_task *t)
{
	struct event_stream *s = CONTAINER_OF(t, struct event_stream, pump);
	struct op_event e;
	int rv = 0;

	while (!s->full && (rv = ops_events_next(s->cursor, &e)) == 1) {
		int written = write_frame(s, &e);

		if (written < 0) { /* a client that cannot be served is told to come again */
			rv = -1;
			break;
		}
		s->full = written == 1;
	}
	if (rv == -1) {
		http_stream_end(s->http);
		stream_free(s);
	}
}

static void wake(void *user)
{
	struct event_stream *s = user;

	if (s->http)
		os_defer(s->core->loop, &s->pump);
}

static void drained(struct http_stream *st, void *user)
{
	struct event_stream *s = user;

	s->full = false;
	os_defer(s->core->loop, &s->pump);
}

static void gone(struct http_stream *st, void *user)
{
	stream_free(user);
}

int events_start(struct core *c, struct http_request *req, const char *run, uint64_t after,
		 struct ava_error *err)
{
	static const struct http_field fields[] = { { "Cache-Control", "no-store" },
						    { "X-Content-Type-Options", "nosniff" } };
	const struct http_answer head = { .status = 200, .content_type = "text/event-stream",
					  .fields = fields, .nfields = 2 };
	struct http_stream_hooks hooks = { .drained = drained, .gone = gone, .heartbeat = true };
	struct event_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, AVA_ENOMEM, "out of memory");
	s->core = c;
	os_task_init(&s->pump, pump);
	s->cursor = ops_events_open(c, run, after, wake, s, err);
	if (!s->cursor) {
		free(s);
		return err->code;
	}
	hooks.user = s;
	s->http = http_stream_start(req, &head, &hooks);
	if (s->http)
		os_defer(c->loop, &s->pump);
	else
		stream_free(s); /* the connection is closed already */
	return 0;
}
