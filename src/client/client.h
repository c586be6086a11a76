/* The client: blocking HTTP/1.1 over the daemon's Unix socket. One thread
 * uses a client at a time; several clients are independent. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/sse.h"

struct ava_error;
struct client;

/* The daemon of the data root `root` (*copied*: a directory descriptor is
 * kept, so a path of any length works). With `start`, a daemon is started
 * when none answers (client/start.h) and the root is made when it is missing.
 * On error *c is NULL and the sentence says what to do: AVA_ECONNECT nobody
 * serves the root, AVA_ENOENT no such root, or why the daemon did not start. */
int client_open(const char *root, bool start, struct client **c, struct ava_error *err);
void client_close(struct client *c); /* NULL is fine */
/* Set the door recorded with this program's requests ("acp"; borrowed), before the first
 * client_open. Default: the terminal. */
void client_speak_for(const char *channel);

/* A call fails with AVA_ETIMEOUT when no byte comes for `quiet_ms` (default
 * 60,000), and at `deadline_ms` (clock_mono_ms; default never). -1: never. */
void client_set_quiet(struct client *c, int64_t quiet_ms);
void client_set_deadline(struct client *c, int64_t deadline_ms);
/* Calls end with AVA_ECANCELED soon after a signal handler has set *flag
 * (*borrowed until changed*; NULL: none). No race: a flag set just before the
 * wait is seen as well. */
void client_set_interrupt(struct client *c, const volatile sig_atomic_t *flag);
/* client_set_interrupt for all clients that are opened from now on. */
void client_interrupt_by(const volatile sig_atomic_t *flag);
/* `tell` (NULL: nothing) is called once in each client_open that has waited two seconds for a
 * daemon to start. The wait ends with AVA_ETIMEOUT after START_TIMEOUT_MS. */
void client_tell_start(void (*tell)(void));
/* When nothing of an answer has come `after_ms` after its request was sent,
 * `slow` is called, once a call: to tell a person, over another client if it
 * asks the daemon why. It returns how many more ms the answer may take, -1: as
 * long as without it. NULL: none. */
void client_set_slow(struct client *c, int64_t after_ms, int64_t (*slow)(void *user), void *user);

struct client_reply { /* *borrowed from the client until its next call* */
	int status;
	const char *body; /* NUL-terminated */
	size_t len;
};

/* One exchange. `path` with its query, escaped (client_escape). `json` NULL:
 * no body. 0 whatever the status is: see client_call. The connection is kept
 * and made anew when the daemon closed it meanwhile. AVA_EUNKNOWN: the daemon
 * went away after the request was sent, and it may have been carried out
 * (never for GET, which is sent once more). */
int client_request(struct client *c, const char *method, const char *path, const char *json,
		   struct client_reply *reply, struct ava_error *err);

/* The same; a status other than 2xx is the error that the daemon tells. */
int client_call(struct client *c, const char *method, const char *path, const char *json,
		struct client_reply *reply, struct ava_error *err);

/* Open a stream of server-sent events: waits until a good answer has begun; what happens from
 * now on is in the stream. `last_event_id` NULL or "": from the route's beginning. An answer
 * other than 2xx becomes an error as in client_call. `on_event` returns non-zero to stop: of the
 * stream, if it is positive. `user` is *borrowed until the stream ends*: by the next call, or
 * client_close. */
int client_stream_open(struct client *c, const char *path, const char *last_event_id,
		       int (*on_event)(const struct sse_event *e, void *user), void *user,
		       struct ava_error *err);
/* Without a wait: 1 events were given out, 0 none now, AVA_ECONNECT the connection broke, or what
 * on_event returned. */
int client_stream_take(struct client *c, struct ava_error *err);
/* 1: client_stream_take may have something; 0: `timeout_ms` (-1: for ever) have passed. */
int client_stream_wait(struct client *c, int timeout_ms, struct ava_error *err);
bool client_stream_done(const struct client *c); /* the daemon has ended it in order */
/* POST a message of MCP without a wait for the answer, which client_stream_take reads: events, or a
 * body, which client_answer has when it is done. `session`: the field Mcp-Session-Id; "": none.
 * The connection is not used again. */
int client_send(struct client *c, const char *path, const char *session, const char *json,
		int (*on_event)(const struct sse_event *e, void *user), void *user,
		struct ava_error *err);
struct http_reader;
/* What has come of the answer, *borrowed until the next call*. */
const struct http_reader *client_answer(const struct client *c, const struct buf **body);
int client_fd(const struct client *c); /* -1: not connected */

/* Append `s` percent-encoded, fit for a path segment or a query value. */
int client_escape(struct buf *out, const char *s);

/* ---- one HTTP/1.1 answer from bytes as they come */

enum http_reader_state {
	HTTP_READER_HEAD,
	HTTP_READER_BODY_LENGTH, /* `left` bytes to come */
	HTTP_READER_BODY_CLOSE,  /* until the connection ends */
	HTTP_READER_CHUNK_SIZE,
	HTTP_READER_CHUNK_DATA, /* `left` bytes to come */
	HTTP_READER_CHUNK_END,  /* the line end after a chunk */
	HTTP_READER_TRAILER,
	HTTP_READER_DONE,
};

struct http_reader {
	/* Body bytes, decoded. Non-zero stops, and http_reader_feed returns it. */
	int (*sink)(const char *data, size_t len, void *user);
	void *user;
	enum http_reader_state state;
	int status;       /* 0 until the head is there */
	bool keep_alive;  /* the connection may be used again when done */
	bool events;      /* the body is a stream of server-sent events */
	char session[80]; /* the field Mcp-Session-Id; "" */
	uint64_t left;
	struct buf line; /* the head, or a line between chunks */
};

void http_reader_init(struct http_reader *r, int (*sink)(const char *data, size_t len, void *user),
		      void *user);
void http_reader_fini(struct http_reader *r);

/* Takes bytes until the answer is done; *used says how many. 0, what the sink
 * returned, AVA_EPROTO or AVA_ENOMEM. */
int http_reader_feed(struct http_reader *r, const char *data, size_t len, size_t *used,
		     struct ava_error *err);
/* The connection ended: 0 when that is how the body ends, else AVA_EPROTO. */
int http_reader_eof(struct http_reader *r, struct ava_error *err);

#endif
