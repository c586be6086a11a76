/* Streams: a bounded queue that libmicrohttpd empties.
 *
 * Happy path: http_stream_write appends and wakes the connection; the reader
 * callback copies out what fits into the connection's buffer; when nothing is
 * left the queue's memory is given back and the connection is suspended. So
 * an idle stream costs this struct and the connection.
 *
 * What can fail: a peer that reads slowly fills the queue (the writer is told
 * to wait, then `drained`), one that hangs up (the server's watch calls
 * http_stream_hang_up, or libmicrohttpd detaches), memory. Hooks run from a
 * deferred task, never inside a call of the writer. */
#include "net/http_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void stream_free(struct http_stream *st)
{
	os_defer_cancel(st->loop, &st->task);
	list_del(&st->node);
	buf_fini(&st->queue);
	free(st);
}

/* Let libmicrohttpd call the reader again. */
static void stream_wake(struct http_stream *st)
{
	if (!st->conn || !st->suspended)
		return;
	st->suspended = false;
	MHD_resume_connection(st->conn);
	os_defer(st->loop, st->run);
}

static void writer_lets_go(struct http_stream *st)
{
	st->writer = false;
	list_del(&st->node);
	if (!st->conn)
		stream_free(st);
	else
		stream_wake(st);
}

static void tell_gone(struct http_stream *st)
{
	st->writer = false; /* a hook that writes or ends now is a bug */
	if (st->hooks.gone)
		st->hooks.gone(st, st->hooks.user);
	writer_lets_go(st);
}

static void task_cb(struct os_task *t)
{
	struct http_stream *st = CONTAINER_OF(t, struct http_stream, task);

	if (!st->writer)
		return;
	if (st->hung_up || !st->conn) {
		tell_gone(st);
	} else if (st->full && http_stream_waiting(st) <= HTTP_STREAM_HIGH / 2) {
		st->full = false;
		if (st->hooks.drained)
			st->hooks.drained(st, st->hooks.user);
	}
}

struct http_stream *http_stream_new(struct os_loop *loop, struct os_task *run, struct list *streams,
				    struct MHD_Connection *conn,
				    const struct http_stream_hooks *hooks)
{
	struct http_stream *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	st->loop = loop;
	st->run = run;
	st->conn = conn;
	st->hooks = *hooks;
	st->writer = true;
	st->sent_ms = os_now_ms(loop);
	os_task_init(&st->task, task_cb);
	buf_init(&st->queue, 2 * HTTP_STREAM_MAX); /* sent bytes may stand in front */
	list_add(streams, &st->node);
	return st;
}

size_t http_stream_waiting(const struct http_stream *st)
{
	return st->queue.len - st->head;
}

int http_stream_write(struct http_stream *st, const void *data, size_t len)
{
	assert(st->writer);
	if (len > HTTP_STREAM_MAX - http_stream_waiting(st))
		return AVA_ETOOBIG;
	/* Moving at most as many bytes as were sent since the last move keeps
	 * this linear. */
	if (st->head >= http_stream_waiting(st)) {
		buf_drop(&st->queue, st->head);
		st->head = 0;
	}
	if (buf_add(&st->queue, data, len) != 0) {
		st->queue.failed = false; /* what it holds is whole */
		st->queue.error = 0;
		return AVA_ENOMEM;
	}
	stream_wake(st);
	if (http_stream_waiting(st) >= HTTP_STREAM_HIGH)
		st->full = true;
	return st->full ? 1 : 0;
}

void http_stream_end(struct http_stream *st)
{
	assert(st->writer);
	writer_lets_go(st);
}

ssize_t http_stream_read_cb(void *cls, uint64_t pos, char *out, size_t max)
{
	struct http_stream *st = cls;
	size_t n = MIN(max, http_stream_waiting(st));

	(void)pos;
	if (st->hung_up)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (n == 0 && !st->writer)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0) {
		st->suspended = true;
		MHD_suspend_connection(st->conn);
		return 0;
	}
	memcpy(out, st->queue.data + st->head, n);
	st->head += n;
	st->sent_ms = os_now_ms(st->loop);
	if (http_stream_waiting(st) == 0) {
		buf_fini(&st->queue);
		st->head = 0;
	}
	if (st->full && http_stream_waiting(st) <= HTTP_STREAM_HIGH / 2)
		os_defer(st->loop, &st->task);
	return (ssize_t)n;
}

/* What the reader callback breaks off, libmicrohttpd 0.9.75 closes only when it
 * looks at the connection once more, which it does in the same run for those
 * that have a time limit of their own; others wait behind whoever is idle. */
static void break_off(struct http_stream *st)
{
	st->hung_up = true;
	if (st->conn)
		MHD_set_connection_option(st->conn, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
}

void http_stream_hang_up(struct http_stream *st)
{
	break_off(st);
	if (st->writer)
		os_defer(st->loop, &st->task);
	else
		stream_wake(st);
}

void http_stream_abort(struct http_stream *st)
{
	break_off(st);
	tell_gone(st);
}

void http_stream_detach(struct http_stream *st)
{
	st->conn = NULL;
	if (st->writer)
		os_defer(st->loop, &st->task);
	else
		stream_free(st);
}

void http_stream_beat(struct http_stream *st, int64_t every_ms)
{
	if (st->hooks.heartbeat && http_stream_waiting(st) == 0 &&
	    os_now_ms(st->loop) - st->sent_ms >= every_ms)
		http_stream_write(st, ":\n\n", 3);
}
