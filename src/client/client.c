/* The blocking client: requests and event streams over the daemon's socket.
 *
 * Happy path: client_open opens the root's folder, connects, and starts a
 * daemon first if need be. A request is sent whole, its answer read through
 * http_reader; the connection is kept. Before a kept connection is used again
 * it is looked at, and replaced if the daemon closed it meanwhile.
 *
 * What can fail: nobody listens, the daemon goes away in the middle (a GET is
 * asked once more, anything else ends as "unknown"), silence (quiet and
 * deadline), an interruption by a signal, answers that are no HTTP or too
 * big. After any error the connection is closed; the next call makes a new
 * one. */
#include "client/client.h"

#include <assert.h>
#include <ava.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/unix_sock.h"
#include "base/util.h"
#include "client/start.h"
#include "codec/json.h"

#define HEAD_MAX       (32 * 1024)
#define CHUNK_LINE_MAX 256
#define CHUNK_MAX      (UINT64_C(1) << 40) /* so that sums of sizes cannot wrap */

/* ---- one HTTP/1.1 answer, piece by piece: the head is collected up to its blank line and
 * looked through once; it decides how the body ends; body bytes go to the sink as they come.
 * Informational answers (1xx) are skipped. The daemon is ours, but another program may listen
 * on the socket's path. */

void http_reader_init(struct http_reader *r, int (*sink)(const char *data, size_t len, void *user),
		      void *user)
{
	*r = (struct http_reader){.sink = sink, .user = user, .state = HTTP_READER_HEAD};
	buf_init(&r->line, HEAD_MAX);
}

void http_reader_fini(struct http_reader *r)
{
	buf_fini(&r->line);
}

static int client_broken(struct ava_error *err, const char *what)
{
	return err_set(err, AVA_EPROTO, "the daemon's answer is not HTTP: %s", what);
}

/* ---- the head */

/* Digits alone, in base 10 or 16, below CHUNK_MAX. */
static bool client_number(const char *s, size_t len, unsigned base, uint64_t *out)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++) {
		const char *digit = memchr(digits, tolower((unsigned char)s[i]), base);

		if (!digit)
			return false;
		n = n * base + (size_t)(digit - digits);
		if (n > CHUNK_MAX)
			return false;
	}
	*out = n;
	return len > 0;
}

struct head {
	bool has_length, chunked, close, keep;
	uint64_t length;
};

static bool client_is(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(s, word, len) == 0;
}

static int read_field(struct http_reader *r, const char *line, size_t len, struct head *h,
		      struct ava_error *err)
{
	const char *colon = memchr(line, ':', len);
	const char *value, *end = line + len;
	size_t name, n;

	if (!colon)
		return client_broken(err, "a field without a colon");
	name = (size_t)(colon - line);
	value = colon + 1;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	n = (size_t)(end - value);
	if (client_is(line, name, "Content-Length")) {
		if (h->has_length || !client_number(value, n, 10, &h->length))
			return client_broken(err, "a bad length");
		h->has_length = true;
	} else if (client_is(line, name, "Transfer-Encoding")) {
		if (!client_is(value, n, "chunked"))
			return client_broken(err, "an unknown transfer encoding");
		h->chunked = true;
	} else if (client_is(line, name, "Connection")) {
		h->close = client_is(value, n, "close");
		h->keep = client_is(value, n, "keep-alive");
	} else if (client_is(line, name, "Content-Type")) {
		r->events = client_is(value, n, "text/event-stream");
	} else if (client_is(line, name, "Mcp-Session-Id") && n < sizeof(r->session)) {
		memcpy(r->session, value, n);
		r->session[n] = '\0';
	}
	return 0;
}

static int read_status(struct http_reader *r, const char *line, size_t len, struct ava_error *err)
{
	uint64_t status;

	if (len < 12 || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' ||
	    !client_number(line + 9, 3, 10, &status) || status < 100 ||
	    (len > 12 && line[12] != ' '))
		return client_broken(err, "no status line");
	r->status = (int)status;
	r->keep_alive = line[7] != '0';
	return 0;
}

static int client_read_head(struct http_reader *r, struct ava_error *err)
{
	struct head h = {0};
	const char *at = r->line.data, *end = at + r->line.len;
	bool first = true;

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)(nl - at); /* the head ends with a newline */
		int rv = 0;

		if (len > 0 && at[len - 1] == '\r')
			len--;
		if (first)
			rv = read_status(r, at, len, err);
		else if (len > 0)
			rv = read_field(r, at, len, &h, err);
		if (rv != 0)
			return rv;
		first = false;
		at = nl + 1;
	}
	buf_reset(&r->line);
	r->keep_alive = !h.close && (r->keep_alive || h.keep);
	if (r->status < 200) {
		r->status = 0; /* the real answer follows */
	} else if (r->status == 204 || r->status == 304 || (h.has_length && h.length == 0)) {
		r->state = HTTP_READER_DONE;
	} else if (h.chunked) {
		r->state = HTTP_READER_CHUNK_SIZE;
	} else if (h.has_length) {
		r->state = HTTP_READER_BODY_LENGTH;
		r->left = h.length;
	} else {
		r->state = HTTP_READER_BODY_CLOSE;
		r->keep_alive = false;
	}
	return 0;
}

/* ---- lines */

/* Collect up to a newline (inclusive). 1: the line is whole. */
static int client_take_line(struct http_reader *r, const char *data, size_t len, size_t *used,
			    struct ava_error *err)
{
	const char *nl = memchr(data, '\n', len);
	size_t n = nl ? (size_t)(nl - data) + 1 : len;
	int rv = buf_add(&r->line, data, n);

	*used += n;
	if (rv == AVA_ETOOBIG)
		return client_broken(err, "a head without end");
	if (rv != 0)
		return err_set(err, rv, "out of memory");
	return nl ? 1 : 0;
}

static bool ends_blank(const struct buf *b)
{
	return (b->len >= 2 && memcmp(b->data + b->len - 2, "\n\n", 2) == 0) ||
	       (b->len >= 3 && memcmp(b->data + b->len - 3, "\n\r\n", 3) == 0);
}

static bool client_is_blank(const struct buf *b)
{
	return strcmp(b->data, "\r\n") == 0 || strcmp(b->data, "\n") == 0;
}

static int chunk_size(struct http_reader *r, struct ava_error *err)
{
	size_t len = strcspn(r->line.data, ";\r\n");

	while (len > 0 && r->line.data[len - 1] == ' ')
		len--;
	if (r->line.len > CHUNK_LINE_MAX || !client_number(r->line.data, len, 16, &r->left))
		return client_broken(err, "a bad chunk size");
	r->state = r->left == 0 ? HTTP_READER_TRAILER : HTTP_READER_CHUNK_DATA;
	return 0;
}

/* A whole line in r->line, in a state made of lines. */
static int client_read_line(struct http_reader *r, struct ava_error *err)
{
	int rv = 0;

	if (r->state == HTTP_READER_HEAD) /* collected until its end */
		return ends_blank(&r->line) ? client_read_head(r, err) : 0;
	if (r->state == HTTP_READER_CHUNK_SIZE)
		rv = chunk_size(r, err);
	else if (r->state == HTTP_READER_CHUNK_END && !client_is_blank(&r->line))
		rv = client_broken(err, "a chunk longer than it said");
	else if (r->state == HTTP_READER_CHUNK_END)
		r->state = HTTP_READER_CHUNK_SIZE;
	else if (client_is_blank(&r->line)) /* the trailer's end */
		r->state = HTTP_READER_DONE;
	buf_reset(&r->line);
	return rv;
}

static int client_take_body(struct http_reader *r, const char *data, size_t len, size_t *used)
{
	size_t n = r->state == HTTP_READER_BODY_CLOSE ? len : MIN(len, r->left);
	int rv = r->sink(data, n, r->user);

	*used += n;
	if (r->state == HTTP_READER_BODY_CLOSE)
		return rv;
	r->left -= n;
	if (r->left == 0)
		r->state = r->state == HTTP_READER_CHUNK_DATA ? HTTP_READER_CHUNK_END
							      : HTTP_READER_DONE;
	return rv;
}

int http_reader_feed(struct http_reader *r, const char *data, size_t len, size_t *used,
		     struct ava_error *err)
{
	int rv = 0;

	*used = 0;
	while (rv == 0 && *used < len && r->state != HTTP_READER_DONE) {
		const char *at = data + *used;
		size_t left = len - *used;

		if (r->state == HTTP_READER_BODY_LENGTH || r->state == HTTP_READER_BODY_CLOSE ||
		    r->state == HTTP_READER_CHUNK_DATA)
			rv = client_take_body(r, at, left, used);
		else if ((rv = client_take_line(r, at, left, used, err)) == 1)
			rv = client_read_line(r, err);
	}
	return rv;
}

int http_reader_eof(struct http_reader *r, struct ava_error *err)
{
	if (r->state == HTTP_READER_BODY_CLOSE)
		r->state = HTTP_READER_DONE;
	if (r->state == HTTP_READER_DONE)
		return 0;
	return err_set(err, AVA_EPROTO, "the daemon's answer ended in the middle");
}

#define BODY_MAX       (64 * 1024 * 1024)
#define FRAME_MAX      (64 * 1024 * 1024) /* most bytes of one server-sent event */
#define CONNECT_MS     5000
#define QUIET_MS       60000
#define SINK_OFFSET    1000 /* added to a sink's code, so that it is none of ours */
#define PAUSE_MS       10   /* pause between two looks for a daemon that is starting */
#define START_AGAIN_MS 500  /* pause between two starts: the daemon with the root may be leaving */
#define START_TELL_MS  2000 /* wait after which a person is told what it is for */

struct client {
	int dirfd, fd; /* fd: the connection; -1: none */
	bool used;     /* fd has carried a request and its answer */
	int64_t quiet_ms, deadline_ms;
	const volatile sig_atomic_t *interrupt;
	int64_t (*slow)(void *user);
	void *slow_user;
	int64_t slow_ms;
	bool reading; /* an answer: the fields below are in use */
	struct http_reader reader;
	struct sse sse;
	struct buf body; /* of an answer that is no stream of events */
};

/* ---- waiting */

/* Wait for `events` until `at_ms` (-1: for ever), seeing a flag that a signal
 * handler sets at any moment: signals are held back between the look at the
 * flag and the wait. */
static int wait_fd(struct client *c, short events, int64_t at_ms, struct ava_error *err)
{
	struct pollfd p = {.fd = c->fd, .events = events};
	sigset_t all, before;
	struct timespec ts;
	int n, saved;

	sigfillset(&all);
	for (;;) {
		int64_t left = at_ms < 0 ? 1000 : MAX(at_ms - clock_mono_ms(), 0);

		ts = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
		pthread_sigmask(SIG_SETMASK, &all, &before);
		if (c->interrupt && *c->interrupt) {
			pthread_sigmask(SIG_SETMASK, &before, NULL);
			return err_set(err, AVA_ECANCELED, "interrupted");
		}
		n = ppoll(&p, 1, at_ms < 0 ? NULL : &ts, &before);
		saved = errno;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (n > 0)
			return 0;
		errno = saved;
		if (n < 0 && errno != EINTR)
			return err_sys(err, "wait for the daemon");
		if (n == 0 && left == 0)
			return err_set(err, AVA_ETIMEOUT, "the daemon did not answer in time");
	}
}

static int64_t give_up_ms(const struct client *c, int64_t now)
{
	int64_t at = c->quiet_ms < 0 ? -1 : now + c->quiet_ms;

	return c->deadline_ms >= 0 && (at < 0 || c->deadline_ms < at) ? c->deadline_ms : at;
}

static int wait_io(struct client *c, short events, struct ava_error *err)
{
	return wait_fd(c, events, give_up_ms(c, clock_mono_ms()), err);
}

/* Wait for the first byte of an answer. */
static int wait_first(struct client *c, struct ava_error *err)
{
	int64_t now = clock_mono_ms(), at = give_up_ms(c, now), slow_at = now + c->slow_ms, more;
	int rv;

	if (!c->slow || (at >= 0 && at <= slow_at))
		return wait_fd(c, POLLIN, at, err);
	rv = wait_fd(c, POLLIN, slow_at, err);
	if (rv != AVA_ETIMEOUT)
		return rv;
	more = c->slow(c->slow_user);
	if (more >= 0 && (at < 0 || clock_mono_ms() + more < at))
		at = clock_mono_ms() + more;
	return wait_fd(c, POLLIN, at, err);
}

/* ---- connecting */

static void client_hang_up(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->used = false;
}

static int dial(struct client *c, struct ava_error *err)
{
	int rv = unix_sock_connect(c->dirfd, UNIX_SOCK_NAME, CONNECT_MS, &c->fd, err);
	struct unix_peer peer;

	c->used = false;
	if (rv == 0 && (unix_sock_peer(c->fd, &peer) != 0 || peer.uid != geteuid())) {
		client_hang_up(c);
		return err_set(err, AVA_EDENIED,
			       "another user's process answers as the daemon: remove %s from the "
			       "data root, and keep others out of it (chmod 700)",
			       UNIX_SOCK_NAME);
	}
	if (rv == AVA_ENOENT || rv == AVA_ECONNECT)
		return err_set(err, AVA_ECONNECT,
			       "the daemon is not running: start it with \"ava serve\"");
	return rv;
}

static int client_sink(const char *data, size_t len, void *user)
{
	struct client *c = user;

	return c->reader.events && c->sse.on_event ? sse_feed(&c->sse, data, len)
						   : buf_add(&c->body, data, len);
}

/* An answer that did not come to its end has the connection for itself. */
static void reply_end(struct client *c)
{
	if (!c->reading)
		return;
	if (c->reader.state != HTTP_READER_DONE)
		client_hang_up(c);
	buf_fini(&c->body);
	sse_fini(&c->sse);
	http_reader_fini(&c->reader);
	c->reading = false;
}

static void reply_begin(struct client *c, int (*on_event)(const struct sse_event *e, void *user),
			void *user)
{
	reply_end(c);
	c->reading = true;
	http_reader_init(&c->reader, client_sink, c);
	sse_init(&c->sse, FRAME_MAX);
	c->sse.on_event = on_event;
	c->sse.user = user;
	buf_init(&c->body, BODY_MAX);
}

static const volatile sig_atomic_t *interrupts;
static void (*tell_start)(void);

void client_interrupt_by(const volatile sig_atomic_t *flag)
{
	interrupts = flag;
}

void client_tell_start(void (*tell)(void))
{
	tell_start = tell;
}

struct starting {
	const struct client *c;
	int64_t tell_ms; /* monotonic time to tell what the wait is for; -1: told */
};

static bool client_go_on(void *user)
{
	struct starting *s = user;

	if (s->tell_ms >= 0 && clock_mono_ms() >= s->tell_ms) {
		s->tell_ms = -1;
		if (tell_start)
			tell_start();
	}
	return !s->c->interrupt || !*s->c->interrupt;
}

/* Start daemons until one serves, ours or another's. AVA_EBUSY is fine: the root's holder is about
 * to serve, or about to leave. */
static int connect_or_start(struct client *c, const char *root, struct ava_error *err)
{
	int64_t end = clock_mono_ms() + START_TIMEOUT_MS, again = 0;
	struct starting s = {c, clock_mono_ms() + START_TELL_MS};
	struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	struct ava_error why = {0};
	int rv;

	for (;;) {
		rv = dial(c, err);
		if (rv != AVA_ECONNECT)
			return rv;
		if (!client_go_on(&s))
			return err_set(err, AVA_ECANCELED, "interrupted");
		if (clock_mono_ms() >= end)
			break;
		if (clock_mono_ms() >= again) {
			rv = start_daemon(root, end, client_go_on, &s, &why);
			if (rv != 0 && rv != AVA_EBUSY && rv != AVA_ECANCELED)
				break;
			again = clock_mono_ms() + START_AGAIN_MS;
		} else {
			nanosleep(&pause, NULL);
		}
	}
	rv = dial(c, err); /* another daemon may serve by now */
	if (rv != AVA_ECONNECT)
		return rv;
	return err_set(err, why.code ? why.code : AVA_ETIMEOUT, "the daemon did not start: %s",
		       why.code ? why.text : "it does not answer");
}

int client_open(const char *root, bool start, struct client **out, struct ava_error *err)
{
	struct client *c = malloc(sizeof(*c));
	int rv, failed;

	*out = NULL;
	if (!c)
		return err_set(err, AVA_ENOMEM, "out of memory");
	*c = (struct client){
		.fd = -1, .quiet_ms = QUIET_MS, .deadline_ms = -1, .interrupt = interrupts};
	failed = start && sys_make_folders(root, true) != 0 ? errno : 0;
	c->dirfd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (c->dirfd < 0) {
		rv = err_sys(err, "data root %.300s", root);
		if (failed)
			rv = err_set(err, AVA_EDENIED,
				     "the data root %.300s cannot be made (%s): set AVA_DATA_ROOT "
				     "to a folder that can",
				     root, strerror(failed));
		else if (rv == AVA_ENOENT)
			err_set(err, rv, "there is no data root %.300s yet: \"ava run\" makes it",
				root);
		goto fail;
	}
	rv = settings_check_root(c->dirfd, root, err);
	if (rv == 0)
		rv = start ? connect_or_start(c, root, err) : dial(c, err);
	if (rv != 0)
		goto fail;
	*out = c;
	return 0;

fail:
	client_close(c);
	return rv;
}

void client_close(struct client *c)
{
	if (!c)
		return;
	reply_end(c);
	client_hang_up(c);
	if (c->dirfd >= 0)
		close(c->dirfd);
	free(c);
}

void client_set_quiet(struct client *c, int64_t quiet_ms)
{
	c->quiet_ms = quiet_ms;
}

void client_set_deadline(struct client *c, int64_t deadline_ms)
{
	c->deadline_ms = deadline_ms;
}

void client_set_interrupt(struct client *c, const volatile sig_atomic_t *flag)
{
	c->interrupt = flag;
}

void client_set_slow(struct client *c, int64_t after_ms, int64_t (*slow)(void *user), void *user)
{
	c->slow = slow;
	c->slow_user = user;
	c->slow_ms = after_ms;
}

/* ---- sending */

/* 0, or AVA_ECONNECT when the daemon is gone. */
static int send_all(struct client *c, const char *data, size_t len, struct ava_error *err)
{
	while (len > 0) {
		ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		int rv;

		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			rv = wait_io(c, POLLOUT, err);
			if (rv != 0)
				return rv;
		} else if (errno != EINTR) {
			return err_set(err, AVA_ECONNECT, "the daemon closed the connection");
		}
	}
	return 0;
}

static bool client_clean(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 127)
			return false;
	return true;
}

struct client_ask {
	const char *method, *path, *json;
	const char *last_event_id; /* not NULL: a stream */
	const char *session;       /* of a message of MCP, "": none yet; NULL: of another request */
};

static const char *speaks_for = "terminal";

void client_speak_for(const char *channel)
{
	speaks_for = channel;
}

static int send_ask(struct client *c, const struct client_ask *a, struct ava_error *err)
{
	struct buf head;
	int rv;

	if (!client_clean(a->path) || (a->last_event_id && !client_clean(a->last_event_id)))
		return err_set(err, AVA_EINVAL, "a request must not hold blanks or controls");
	buf_init(&head, BODY_MAX);
	buf_addf(&head, "%s %s HTTP/1.1\r\nHost: ava\r\nAva-Channel: %s\r\n", a->method, a->path,
		 speaks_for);
	if (a->last_event_id)
		buf_adds(&head, "Accept: text/event-stream\r\n");
	if (a->last_event_id && a->last_event_id[0])
		buf_addf(&head, "Last-Event-ID: %s\r\n", a->last_event_id);
	if (a->session)
		buf_addf(&head, "Connection: close\r\n%s%s%s",
			 a->session[0] ? "Mcp-Session-Id: " : "", a->session,
			 a->session[0] ? "\r\n" : "");
	if (a->json)
		buf_addf(&head, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			 strlen(a->json));
	else if (strcmp(a->method, "GET") != 0)
		buf_adds(&head, "Content-Length: 0\r\n");
	buf_adds(&head, "\r\n");
	if (a->json)
		buf_adds(&head, a->json);
	rv = buf_check(&head);
	if (rv != 0)
		err_set(err, rv, rv == AVA_ENOMEM ? "out of memory" : "the request is too big");
	else
		rv = send_all(c, head.data, head.len, err);
	buf_fini(&head);
	return rv;
}

/* ---- receiving */

/* Take what the socket has, at most one buffer. 1: something, or the end; 0: nothing
 * now; or why not, as the sink says too. */
static int client_take(struct client *c, struct ava_error *err)
{
	struct http_reader *r = &c->reader;
	char data[16 * 1024];
	ssize_t n;
	size_t used;
	int rv;

	do
		n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0 || (n == 0 && r->state != HTTP_READER_BODY_CLOSE))
		return err_set(err, AVA_ECONNECT, "the daemon closed the connection");
	if (n == 0) {
		rv = http_reader_eof(r, err);
		return rv == 0 ? 1 : rv;
	}
	rv = http_reader_feed(r, data, (size_t)n, &used, err);
	if (rv != 0)
		return rv > 0 ? SINK_OFFSET + rv : rv;
	if (used < (size_t)n)
		r->keep_alive = false; /* bytes behind the answer were unexpected */
	return 1;
}

/* Read until the answer is done, or the sink stops, or, with `head`, a good answer has
 * begun. *got: bytes have come. */
static int receive(struct client *c, bool head, bool *got, struct ava_error *err)
{
	const struct http_reader *r = &c->reader;

	while (r->state != HTTP_READER_DONE &&
	       !(head && r->state != HTTP_READER_HEAD && r->status / 100 == 2)) {
		int rv = client_take(c, err);

		if (rv == 1)
			*got = true;
		else if (rv == 0)
			rv = *got ? wait_io(c, POLLIN, err) : wait_first(c, err);
		if (rv > SINK_OFFSET) {
			*got = true;
			return rv - SINK_OFFSET;
		}
		if (rv < 0)
			return rv;
	}
	return 0;
}

/* The kept connection, if the daemon has not closed it, else a new one. */
static int client_ready(struct client *c, struct ava_error *err)
{
	char byte;

	if (c->fd >= 0 && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return 0;
	client_hang_up(c);
	return dial(c, err);
}

/* Send and receive behind reply_begin; once more on a new connection where that is safe. */
static int exchange(struct client *c, const struct client_ask *a, struct ava_error *err)
{
	bool is_get = strcmp(a->method, "GET") == 0;

	for (int tries = 0;; tries++) {
		bool got = false, reused;
		int rv = client_ready(c, err);

		if (rv != 0)
			return rv;
		reused = c->used;
		rv = send_ask(c, a, err);
		/* A daemon that refuses early (a body too big) may have
		 * answered before it hung up. */
		if (rv == 0 || rv == AVA_ECONNECT)
			rv = receive(c, a->last_event_id != NULL, &got, err);
		c->used = true;
		if (rv != 0 || (c->reader.state == HTTP_READER_DONE && !c->reader.keep_alive))
			client_hang_up(c);
		if (rv != AVA_ECONNECT)
			return rv;
		if (is_get && !got && reused && tries == 0)
			continue;
		if (is_get)
			return rv;
		return err_set(err, AVA_EUNKNOWN,
			       "the daemon closed the connection before it answered: the "
			       "request may have been carried out");
	}
}

int client_request(struct client *c, const char *method, const char *path, const char *json,
		   struct client_reply *reply, struct ava_error *err)
{
	struct client_ask a = {.method = method, .path = path, .json = json};
	int rv;

	reply_begin(c, NULL, NULL);
	rv = exchange(c, &a, err);
	*reply = (struct client_reply){0};
	if (rv != 0)
		reply_end(c);
	else
		*reply = (struct client_reply){c->reader.status,
					       c->body.len > 0 ? c->body.data : "", c->body.len};
	if (rv == AVA_ETOOBIG)
		err_set(err, rv, "the daemon's answer is over %d MB", BODY_MAX >> 20);
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "out of memory");
	return rv;
}

/* ---- errors of the daemon */

static int code_of_status(int status)
{
	static const int codes[][2] = {{400, AVA_EINVAL},  {401, AVA_EDENIED}, {403, AVA_EDENIED},
				       {404, AVA_ENOENT},  {409, AVA_EEXIST},  {413, AVA_ETOOBIG},
				       {414, AVA_ETOOBIG}, {431, AVA_ETOOBIG}, {503, AVA_EBUSY}};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i][0] == status)
			return codes[i][1];
	return AVA_EIO;
}

static int client_check(const struct client *c, struct ava_error *err)
{
	json_t *root, *error;
	const char *word, *message;
	int rv, status = c->reader.status;

	if (status >= 200 && status < 300)
		return 0;
	root = json_parse(c->body.len > 0 ? c->body.data : "", c->body.len, NULL);
	error = root ? json_object_get(root, "error") : NULL;
	word = json_get_str(error, "code");
	message = json_get_str(error, "message");
	if (word && message) {
		rv = err_code(word, strlen(word));
		rv = err_set(err, rv != 0 ? rv : AVA_EIO, "%s", message);
	} else if (status == 414 || status == 431) {
		rv = err_set(err, AVA_ETOOBIG,
			     "the request is too long for the daemon: ask with fewer words, or in "
			     "a folder with a shorter path");
	} else {
		rv = err_set(err, code_of_status(status), "the daemon answered with status %d",
			     status);
	}
	json_decref(root);
	return rv;
}

int client_call(struct client *c, const char *method, const char *path, const char *json,
		struct client_reply *reply, struct ava_error *err)
{
	int rv = client_request(c, method, path, json, reply, err);

	return rv == 0 ? client_check(c, err) : rv;
}

/* ---- streams */

static int stream_failed(int rv, struct ava_error *err)
{
	if (rv == AVA_ETOOBIG || rv == AVA_ENOMEM)
		return err_set(err, rv, "an event of the daemon %s",
			       rv == AVA_ENOMEM ? "does not fit into memory" : "is too big");
	return rv;
}

int client_stream_open(struct client *c, const char *path, const char *last_event_id,
		       int (*on_event)(const struct sse_event *e, void *user), void *user,
		       struct ava_error *err)
{
	struct client_ask a = {
		.method = "GET", .path = path, .last_event_id = last_event_id ? last_event_id : ""};
	int rv;

	reply_begin(c, on_event, user);
	rv = stream_failed(exchange(c, &a, err), err);
	if (rv == 0)
		rv = client_check(c, err);
	if (rv != 0)
		reply_end(c);
	return rv;
}

int client_send(struct client *c, const char *path, const char *session, const char *json,
		int (*on_event)(const struct sse_event *e, void *user), void *user,
		struct ava_error *err)
{
	struct client_ask a = {.method = "POST", .path = path, .json = json, .session = session};
	int rv;

	reply_begin(c, on_event, user);
	rv = client_ready(c, err);
	return rv == 0 ? send_ask(c, &a, err) : rv;
}

const struct http_reader *client_answer(const struct client *c, const struct buf **body)
{
	*body = &c->body;
	return &c->reader;
}

int client_stream_take(struct client *c, struct ava_error *err)
{
	int rv = stream_failed(c->reader.state == HTTP_READER_DONE ? 0 : client_take(c, err), err);

	return rv > SINK_OFFSET ? rv - SINK_OFFSET : rv;
}

int client_stream_wait(struct client *c, int timeout_ms, struct ava_error *err)
{
	int rv = wait_fd(c, POLLIN, timeout_ms < 0 ? -1 : clock_mono_ms() + timeout_ms, err);

	return rv == 0 ? 1 : rv == AVA_ETIMEOUT ? 0 : rv;
}

bool client_stream_done(const struct client *c)
{
	return c->reader.state == HTTP_READER_DONE;
}

int client_fd(const struct client *c)
{
	return c->fd;
}

int client_escape(struct buf *out, const char *s)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";

	for (; *s; s++)
		if (strchr(plain, *s))
			buf_addc(out, *s);
		else
			buf_addf(out, "%%%02X", (unsigned char)*s);
	return buf_check(out);
}
