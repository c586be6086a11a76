/* HTTP/2 of the mock, over TLS, by nghttp2.
 *
 * nghttp2 parses and frames; each stream is an exchange. Its data source gives
 * what has been released and says "later" until there is more. What nghttp2
 * wants to send is moved to conn.out after every step. */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "conn.h"

#define STREAMS_MAX 100

static void pump(struct conn *c)
{
	const uint8_t *data;
	ssize_t n;

	if (c->receiving) /* nghttp2 must not be asked from its own callbacks */
		return;
	while (!c->dead && (n = nghttp2_session_mem_send(c->h2, &data)) != 0) {
		if (n < 0) {
			conn_kill(c, false);
			return;
		}
		buf_add(&c->out, data, (size_t)n);
	}
	conn_flush(c);
	if (!c->dead && !nghttp2_session_want_read(c->h2) && !nghttp2_session_want_write(c->h2))
		conn_kill(c, false);
}

static struct exchange *find(nghttp2_session *h2, int32_t stream)
{
	return nghttp2_session_get_stream_user_data(h2, stream);
}

static int on_begin(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		nghttp2_session_set_stream_user_data(h2, frame->hd.stream_id,
						     exchange_new(user, frame->hd.stream_id));
	return 0;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t nlen, const uint8_t *value, size_t vlen, uint8_t flags, void *user)
{
	struct exchange *x = find(h2, frame->hd.stream_id);
	const char *n = (const char *)name, *v = (const char *)value;

	(void)flags;
	(void)user;
	if (x == NULL || x->ask == NULL)
		return 0;
	if (nlen == 7 && memcmp(n, ":method", 7) == 0)
		snprintf(x->ask->method, sizeof x->ask->method, "%.*s", (int)vlen, v);
	else if (nlen == 5 && memcmp(n, ":path", 5) == 0)
		ask_target(x->ask, v, vlen);
	else
		ask_header(x->ask, n, nlen, v, vlen);
	return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t len, void *user)
{
	struct exchange *x = find(h2, stream);

	(void)flags;
	(void)user;
	return x == NULL || buf_add(&x->body, data, len) == 0 ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct conn *c = user;
	struct exchange *x = find(h2, frame->hd.stream_id);

	if (x != NULL && x->ask != NULL && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
	    (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS))
		serve_request(c->serve, x);
	return 0;
}

static int on_close(nghttp2_session *h2, int32_t stream, uint32_t code, void *user)
{
	struct exchange *x = find(h2, stream);

	(void)user;
	if (x == NULL)
		return 0;
	x->ended = x->ended || (code == NGHTTP2_NO_ERROR && x->whole);
	nghttp2_session_set_stream_user_data(h2, stream, NULL);
	exchange_free(x);
	return 0;
}

bool http2_start(struct conn *c)
{
	nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1u << 20},
	};
	nghttp2_session_callbacks *cb;
	nghttp2_session *h2 = NULL;

	if (nghttp2_session_callbacks_new(&cb) != 0)
		return false;
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
	if (nghttp2_session_server_new(&h2, cb, c) != 0)
		h2 = NULL;
	nghttp2_session_callbacks_del(cb);
	if (h2 == NULL)
		return false;
	c->h2 = h2;
	nghttp2_submit_settings(h2, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings));
	nghttp2_session_set_local_window_size(h2, NGHTTP2_FLAG_NONE, 0, 16 << 20);
	pump(c);
	return !c->dead;
}

void http2_input(struct conn *c, const char *data, size_t len)
{
	ssize_t n;

	c->receiving = true;
	n = nghttp2_session_mem_recv(c->h2, (const uint8_t *)data, len);
	c->receiving = false;
	if (n < 0)
		conn_kill(c, false);
	else
		pump(c);
}

static ssize_t read_reply(nghttp2_session *h2, int32_t stream, uint8_t *out, size_t len,
			  uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct exchange *x = source->ptr;
	size_t n = MIN(len, x->released - x->sent);

	(void)h2;
	(void)stream;
	(void)user;
	if (n > 0)
		memcpy(out, x->reply.bytes.data + x->sent, n);
	x->sent += n;
	if (x->whole && x->sent == x->released)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	else if (n == 0)
		return NGHTTP2_ERR_DEFERRED;
	return (ssize_t)n;
}

#define HEADERS_MAX 24

void http2_head(struct exchange *x, int status, const char *lines, int64_t length)
{
	nghttp2_nv nv[HEADERS_MAX];
	nghttp2_data_provider source = {.source.ptr = x, .read_callback = read_reply};
	char code[8], size[24];
	size_t n = 0;

	snprintf(code, sizeof code, "%d", status);
	nv[n++] = (nghttp2_nv){(uint8_t *)":status", (uint8_t *)code, 7, strlen(code), 0};
	for (const char *s = lines, *end; n < HEADERS_MAX - 1 && (end = strchr(s, '\n')) != NULL;
	     s = end + 1) {
		const char *colon = memchr(s, ':', (size_t)(end - s));

		nv[n++] = (nghttp2_nv){(uint8_t *)s, (uint8_t *)colon + 2, (size_t)(colon - s),
				       (size_t)(end - colon - 2), 0};
	}
	if (length >= 0) {
		snprintf(size, sizeof size, "%lld", (long long)length);
		nv[n++] = (nghttp2_nv){(uint8_t *)"content-length", (uint8_t *)size, 14,
				       strlen(size), 0};
	}
	nghttp2_submit_response(x->conn->h2, x->stream, nv, n, &source);
	pump(x->conn);
}

void http2_data(struct exchange *x)
{
	nghttp2_session_resume_data(x->conn->h2, x->stream);
	pump(x->conn);
}

void http2_reset(struct exchange *x)
{
	struct conn *c = x->conn;

	nghttp2_submit_rst_stream(c->h2, NGHTTP2_FLAG_NONE, x->stream, NGHTTP2_INTERNAL_ERROR);
	pump(c);
}

void http2_stop(struct conn *c)
{
	if (c->h2 != NULL)
		nghttp2_session_del(c->h2);
	c->h2 = NULL;
}
