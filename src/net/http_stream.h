/* The sending half of a stream, between http_server.c and libmicrohttpd.
 * Callers outside net/ use http_server.h.
 *
 * A stream has two owners: whoever writes it (until http_stream_end or the
 * `gone` hook) and the connection (until libmicrohttpd is done with it). It
 * is freed when both have let go. */
#ifndef NET_HTTP_STREAM_H
#define NET_HTTP_STREAM_H

#include <microhttpd.h>

#include "base/buf.h"
#include "base/list.h"
#include "net/http_server.h"
#include "os/loop.h"

struct http_stream {
	struct list node; /* in the server's list while the writer owns it */
	struct os_loop *loop;
	struct os_task *run;         /* the server's: makes libmicrohttpd see a resume */
	struct MHD_Connection *conn; /* NULL: the connection let go */
	struct http_stream_hooks hooks;
	struct os_task task; /* tells `drained` and `gone` */
	struct buf queue;    /* bytes from `head` on still have to be sent */
	size_t head;         /* bytes */
	int64_t sent_ms;     /* when bytes were last taken from the queue */
	bool writer;         /* the writer has not let go */
	bool suspended;      /* the connection sleeps until something is written */
	bool hung_up;        /* the peer is gone, or is to be dropped */
	bool full;           /* a write returned 1 and `drained` is owed */
};

/* In `streams`; owned by the writer, and by `conn` until http_stream_detach. */
struct http_stream *http_stream_new(struct os_loop *loop, struct os_task *run, struct list *streams,
				    struct MHD_Connection *conn,
				    const struct http_stream_hooks *hooks);
/* MHD_ContentReaderCallback; `cls` is the stream. */
ssize_t http_stream_read_cb(void *cls, uint64_t pos, char *out, size_t max);
/* The peer hung up: the writer is told at the end of the turn. */
void http_stream_hang_up(struct http_stream *st);
/* The connection let go: it ended, or broke. */
void http_stream_detach(struct http_stream *st);
/* Send a comment if nothing was sent for `every_ms`. */
void http_stream_beat(struct http_stream *st, int64_t every_ms);

#endif
