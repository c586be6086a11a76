/* Each operation of the library as one request to the daemon, in order, over
 * one connection; event streams have connections of their own. All of them
 * stand in one epoll, whose descriptor is the runtime's.
 *
 * Happy path: build the path, ask, read the answer's JSON into the shapes of
 * ava.h. What can fail: the daemon is gone. A request that was not sent yet is
 * sent again to a daemon that is started for it (unless told not to); one that
 * was is AVA_EUNKNOWN, and the caller's request id makes asking again safe. */
#include "client/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "client/client.h"
#include "client/remote_shape.h"
#include "client/remote_stream.h"

#define PATH_MAX_BYTES 4096
#define REQUEST_MAX    (16u << 20)
#define RETRY_MS       1000

struct remote {
	struct backend b;
	struct client *client;
	char *root;
	bool start;
	struct remote_stream_host host;
};

struct remote_cursor {
	struct backend_cursor c;
	struct remote_stream *stream;
};

static struct remote *of(struct backend *b)
{
	return CONTAINER_OF(b, struct remote, b);
}

/* ---- asking */

/* A daemon that had nothing to do has ended; another one takes its place. */
static int reopen(struct remote *r, struct ava_error *err)
{
	struct client *fresh;
	int rv = client_open(r->root, true, &fresh, err);

	if (rv != 0)
		return rv;
	client_close(r->client);
	r->client = fresh;
	return 0;
}

static int serve(void *user, struct ava_error *err)
{
	struct remote *r = user;

	return r->start ? reopen(r, err) : 0;
}

/* The JSON of a 2xx answer. */
static int ask(struct remote *r, const char *method, const char *path, const char *body,
	       int *status, json_t **out, struct ava_error *err)
{
	struct client_reply reply;
	int rv = client_call(r->client, method, path, body, &reply, err);

	if (rv == AVA_ECONNECT && r->start) {
		rv = reopen(r, err);
		if (rv == 0)
			rv = client_call(r->client, method, path, body, &reply, err);
	}
	if (rv != 0)
		return rv;
	*out = json_parse(reply.body, reply.len, err);
	if (status)
		*status = reply.status;
	client_reply_fini(&reply);
	if (*out)
		return 0;
	return err_wrap(err, err->code == AVA_ENOMEM ? AVA_ENOMEM : AVA_EPROTO,
			"the daemon's answer");
}

/* `before` id `after`; id NULL: `before` alone. */
static int make_path(char out[PATH_MAX_BYTES], const char *before, const char *id,
		     const char *after, struct ava_error *err)
{
	struct buf b;
	int rv;

	buf_init(&b, PATH_MAX_BYTES - 1);
	buf_adds(&b, before);
	if (id)
		client_escape(&b, id);
	buf_adds(&b, after);
	rv = buf_check(&b);
	if (rv == 0)
		memcpy(out, b.data, b.len + 1);
	buf_fini(&b);
	if (rv == AVA_ENOMEM)
		return err_set(err, rv, "out of memory");
	return rv == 0 ? 0 : err_set(err, AVA_EINVAL, "the id is too long");
}

static int ask_about(struct remote *r, const char *method, const char *before, const char *id,
		     const char *after, const char *body, int *status, json_t **out,
		     struct ava_error *err)
{
	char path[PATH_MAX_BYTES];
	int rv = make_path(path, before, id, after, err);

	return rv == 0 ? ask(r, method, path, body, status, out, err) : rv;
}

static int body_of(struct buf *b, struct ava_error *err)
{
	int rv = buf_check(b);

	if (rv == 0)
		return 0;
	return err_set(err, rv, rv == AVA_ENOMEM ? "out of memory" : "the request is too big");
}

/* {"key":value}, without it when NULL. */
static int ask_with(struct remote *r, const char *before, const char *id, const char *after,
		    const char *key, const char *value, json_t **out, struct ava_error *err)
{
	struct buf b;
	struct jw w;
	int rv;

	buf_init(&b, REQUEST_MAX);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	if (value)
		jw_str(&w, key, value);
	jw_end(&w);
	rv = body_of(&b, err);
	if (rv == 0)
		rv = ask_about(r, "POST", before, id, after, b.data, NULL, out, err);
	buf_fini(&b);
	return rv;
}

static int copy_id(char *out, size_t size, const json_t *o, const char *key, struct ava_error *err)
{
	const char *s = json_get_str(o, key);

	if (!s || strlen(s) >= size)
		return err_set(err, AVA_EPROTO, "the daemon's answer has no %s", key);
	memcpy(out, s, strlen(s) + 1);
	return 0;
}

/* ---- proposals */

/* Sends what was written; owns `body`. */
static int post(struct remote *r, const char *before, const char *id, const char *after,
		struct buf *body, json_t **out, struct ava_error *err)
{
	int rv = body_of(body, err);

	if (rv == 0)
		rv = ask_about(r, "POST", before, id, after, body->data, NULL, out, err);
	buf_fini(body);
	return rv;
}

/* The same, answered by a quote. */
static int post_for_quote(struct remote *r, const char *before, const char *id, const char *after,
			  struct buf *body, struct answer *out, struct ava_proposal *p,
			  struct ava_error *err)
{
	json_t *o = NULL;
	int rv = post(r, before, id, after, body, &o, err);

	if (rv == 0)
		remote_read_proposal(o, out, p);
	json_decref(o);
	return rv;
}

static int remote_propose(struct backend *b, const struct ava_spawn *s, struct answer *out,
			  struct ava_proposal *p, struct ava_error *err)
{
	struct buf body;

	buf_init(&body, REQUEST_MAX);
	remote_write_spawn(&body, s, false);
	return post_for_quote(of(b), "/api/v1/runs", "", "", &body, out, p, err);
}

static int remote_propose_group(struct backend *b, const struct ava_spawn_group *g,
				struct answer *out, struct ava_proposal *p, struct ava_error *err)
{
	struct buf body;

	buf_init(&body, REQUEST_MAX);
	remote_write_group(&body, g);
	return post_for_quote(of(b), "/api/v1/groups", "", "", &body, out, p, err);
}

static int remote_resume(struct backend *b, const char *run, const struct ava_resume *r,
			 struct answer *out, struct ava_proposal *p, struct ava_error *err)
{
	struct buf body;

	buf_init(&body, REQUEST_MAX);
	remote_write_resume(&body, r);
	return post_for_quote(of(b), "/api/v1/runs/", run, "/resume", &body, out, p, err);
}

static int remote_replay(struct backend *b, const char *run, bool lenient, struct answer *out,
			 struct ava_replay *r, struct ava_error *err)
{
	const char *body = lenient ? "{\"lenient\":true}" : "{}";
	json_t *o = NULL;
	int rv = ask_about(of(b), "POST", "/api/v1/runs/", run, "/replay", body, NULL, &o, err);

	if (rv == 0)
		remote_read_replay(o, out, r);
	json_decref(o);
	return rv;
}

static int remote_group(struct backend *b, const char *id, struct answer *out, struct ava_group *g,
			struct ava_error *err)
{
	json_t *o = NULL;
	int rv = ask_about(of(b), "GET", "/api/v1/groups/", id, "", NULL, NULL, &o, err);

	if (rv == 0)
		remote_read_group(o, out, g);
	json_decref(o);
	return rv;
}

static int remote_spawn(struct backend *b, const struct ava_spawn *s, struct ava_run_id *id,
			struct ava_error *err)
{
	json_t *o = NULL;
	struct buf body;
	int rv;

	buf_init(&body, REQUEST_MAX);
	remote_write_spawn(&body, s, true);
	rv = post(of(b), "/api/v1/runs", "", "", &body, &o, err);
	if (rv == 0)
		rv = copy_id(id->text, sizeof(id->text), o, "subagent_id", err);
	json_decref(o);
	return rv;
}

/* The answer to a person's answer is short unless it is another quote: what
 * became of the proposal is asked for. */
static int read_answered(struct remote *r, json_t *o, struct answer *out, struct ava_proposal *p,
			 struct ava_error *err)
{
	struct ava_error unread = {0};
	json_t *whole = NULL;

	remote_read_proposal(o, out, p);
	if (p->state != AVA_PENDING &&
	    ask_about(r, "GET", "/api/v1/proposals/", p->id, "", NULL, NULL, &whole, &unread) == 0)
		remote_read_proposal(whole, out, p);
	json_decref(whole);
	return answer_check(out, err);
}

static int remote_answer(struct backend *b, const char *id, const char *verb, const char *key,
			 const char *value, struct answer *out, struct ava_proposal *p,
			 struct ava_error *err)
{
	json_t *o = NULL;
	int rv = ask_with(of(b), "/api/v1/proposals/", id, verb, key, value, &o, err);

	if (rv == 0)
		rv = read_answered(of(b), o, out, p, err);
	json_decref(o);
	return rv;
}

static int remote_confirm(struct backend *b, const char *id, const char *words, struct answer *out,
			  struct ava_proposal *p, struct ava_error *err)
{
	return remote_answer(b, id, "/confirm", "answer", words, out, p, err);
}

static int remote_reject(struct backend *b, const char *id, const char *reason, struct answer *out,
			 struct ava_proposal *p, struct ava_error *err)
{
	return remote_answer(b, id, "/reject", "reason", reason, out, p, err);
}

static int remote_proposals(struct backend *b, bool all, struct answer *out, struct ava_error *err)
{
	json_t *o = NULL, *each;
	int rv = ask(of(b), "GET", all ? "/api/v1/proposals?all=1" : "/api/v1/proposals", NULL,
		     NULL, &o, err);
	size_t i;

	json_array_foreach(json_object_get(o, "proposals"), i, each)
	{
		struct ava_proposal p;

		remote_read_proposal(each, out, &p);
		answer_row(out, &p, sizeof(p));
	}
	json_decref(o);
	return rv;
}

/* ---- runs */

static int remote_status(struct backend *b, const char *run, struct answer *out, struct ava_run *to,
			 struct ava_error *err)
{
	json_t *o = NULL;
	int rv = ask_about(of(b), "GET", "/api/v1/runs/", run, "", NULL, NULL, &o, err);

	if (rv == 0)
		remote_read_run(o, out, to);
	json_decref(o);
	return rv;
}

static int remote_runs(struct backend *b, bool all, size_t limit, struct answer *out,
		       struct ava_error *err)
{
	json_t *o = NULL, *each;
	char path[64];
	size_t i;
	int rv;

	snprintf(path, sizeof(path), "/api/v1/runs?limit=%zu%s", limit, all ? "&all=1" : "");
	rv = ask(of(b), "GET", path, NULL, NULL, &o, err);
	json_array_foreach(json_object_get(o, "runs"), i, each)
	{
		struct ava_run run;

		remote_read_run(each, out, &run);
		answer_row(out, &run, sizeof(run));
	}
	json_decref(o);
	return rv;
}

static int remote_result(struct backend *b, const char *run, struct answer *out, const char **json,
			 size_t *len, struct ava_error *err)
{
	json_t *o = NULL;
	struct buf text;
	int status = 0;
	int rv = ask_about(of(b), "GET", "/api/v1/runs/", run, "/result", NULL, &status, &o, err);

	if (rv == 0 && status == 202)
		rv = err_set(err, AVA_ETIMEOUT, "%s has not ended", run);
	buf_init(&text, 64u << 20);
	if (rv == 0) {
		json_dump(&text, o);
		rv = body_of(&text, err);
	}
	if (rv == 0) {
		*json = answer_strn(out, text.data, text.len);
		*len = text.len;
	}
	buf_fini(&text);
	json_decref(o);
	return rv;
}

static int remote_cancel(struct backend *b, const char *run, struct ava_error *err)
{
	json_t *o = NULL;
	int rv = ask_with(of(b), "/api/v1/runs/", run, "/cancel", NULL, NULL, &o, err);

	json_decref(o);
	return rv;
}

/* An answer that was lost is asked for again: an id makes that safe. */
static int post_once(struct remote *r, const char *before, const char *id, const char *after,
		     const char *body, json_t **o, struct ava_error *err)
{
	int rv = AVA_EUNKNOWN;

	for (int i = 0; i < 2 && rv == AVA_EUNKNOWN; i++) {
		*err = (struct ava_error){0};
		rv = ask_about(r, "POST", before, id, after, body, NULL, o, err);
	}
	return rv;
}

static int remote_steer(struct backend *b, const char *run, const char *request, const char *text,
			const char *call, struct ava_error *err)
{
	struct session_id own = id_session();
	json_t *o = NULL;
	struct buf body;
	struct jw w;
	int rv;

	buf_init(&body, REQUEST_MAX);
	jw_init(&w, &body);
	jw_object(&w, NULL);
	jw_str(&w, "text", text);
	if (call)
		jw_str(&w, "call_id", call);
	jw_str(&w, "request_id", request && *request ? request : own.text);
	jw_end(&w);
	rv = body_of(&body, err);
	if (rv == 0)
		rv = post_once(of(b), "/api/v1/runs/", run, "/steer", body.data, &o, err);
	buf_fini(&body);
	json_decref(o);
	return rv;
}

static int remote_checkpoint(struct backend *b, const char *run, const char *name,
			     struct ava_error *err)
{
	json_t *o = NULL;
	struct buf body;
	struct jw w;
	int rv;

	buf_init(&body, REQUEST_MAX);
	jw_init(&w, &body);
	jw_object(&w, NULL);
	jw_str(&w, "name", name);
	jw_end(&w);
	rv = body_of(&body, err);
	if (rv == 0)
		rv = ask_about(of(b), "POST", "/api/v1/runs/", run, "/checkpoint", body.data, NULL,
			       &o, err);
	buf_fini(&body);
	json_decref(o);
	return rv;
}

/* ---- sessions */

static int remote_session_new(struct backend *b, const struct ava_session_options *s,
			      struct ava_session_id *id, struct ava_error *err)
{
	json_t *o = NULL;
	struct buf body;
	struct jw w;
	int rv;

	buf_init(&body, REQUEST_MAX);
	jw_init(&w, &body);
	jw_object(&w, NULL);
	if (s->cwd)
		jw_str(&w, "cwd", s->cwd);
	if (s->model)
		jw_str(&w, "model", s->model);
	jw_end(&w);
	rv = body_of(&body, err);
	if (rv == 0)
		rv = ask(of(b), "POST", "/api/v1/sessions", body.data, NULL, &o, err);
	if (rv == 0)
		rv = copy_id(id->text, sizeof(id->text), o, "session_id", err);
	json_decref(o);
	buf_fini(&body);
	return rv;
}

static int remote_say(struct backend *b, const char *session, const char *request, const char *text,
		      char entry[24], struct ava_error *err)
{
	struct session_id own = id_session();
	json_t *o = NULL;
	struct buf body;
	struct jw w;
	int rv;

	buf_init(&body, REQUEST_MAX);
	jw_init(&w, &body);
	jw_object(&w, NULL);
	jw_str(&w, "text", text);
	jw_str(&w, "request_id", request && *request ? request : own.text);
	jw_end(&w);
	rv = body_of(&body, err);
	if (rv == 0)
		rv = post_once(of(b), "/api/v1/sessions/", session, "/messages", body.data, &o,
			       err);
	if (rv == 0)
		rv = copy_id(entry, 24, o, "entry", err);
	json_decref(o);
	buf_fini(&body);
	return rv;
}

static int remote_sessions(struct backend *b, size_t limit, struct answer *out,
			   struct ava_error *err)
{
	json_t *o = NULL, *each;
	char path[64];
	size_t i;
	int rv;

	snprintf(path, sizeof(path), "/api/v1/sessions?limit=%zu", limit);
	rv = ask(of(b), "GET", path, NULL, NULL, &o, err);
	json_array_foreach(json_object_get(o, "sessions"), i, each)
	{
		struct ava_session s;

		remote_read_session(each, out, &s);
		answer_row(out, &s, sizeof(s));
	}
	json_decref(o);
	return rv;
}

static void add_line(struct answer *out, const json_t *v)
{
	struct ava_line line;
	struct buf b;

	buf_init(&b, 64u << 20);
	json_dump(&b, v);
	if (buf_check(&b) == 0) {
		line = (struct ava_line){.text = answer_strn(out, b.data, b.len), .len = b.len};
		answer_row(out, &line, sizeof(line));
	} else {
		out->failed = true;
	}
	buf_fini(&b);
}

static int remote_entries(struct backend *b, const char *session, const char *after,
			  struct answer *out, struct ava_error *err)
{
	bool give = !after || !*after;
	json_t *o = NULL, *each;
	size_t i;
	int rv = ask_about(of(b), "GET", "/api/v1/sessions/", session, "/messages", NULL, NULL, &o,
			   err);

	json_array_foreach(json_object_get(o, "entries"), i, each)
	{
		const char *id = json_get_str(each, "id");

		if (give)
			add_line(out, each);
		give = give || (id && strcmp(id, after) == 0);
	}
	json_decref(o);
	return rv;
}

static int remote_session_stop(struct backend *b, const char *session, struct ava_error *err)
{
	json_t *o = NULL;
	int rv = ask_with(of(b), "/api/v1/sessions/", session, "/stop", NULL, NULL, &o, err);

	json_decref(o);
	return rv;
}

/* ---- cursors */

static int newest_lsn(struct remote *r, uint64_t *lsn, struct ava_error *err)
{
	json_t *o = NULL;
	int rv = ask(r, "GET", "/api/v1/health", NULL, NULL, &o, err);

	*lsn = (uint64_t)json_get_int(json_object_get(o, "journal"), "lsn", 0);
	json_decref(o);
	return rv;
}

static int remote_cursor_open(struct backend *b, const struct ava_events_query *q,
			      struct backend_cursor **out, struct ava_error *err)
{
	struct remote *r = of(b);
	struct remote_cursor *cur = calloc(1, sizeof(*cur));
	uint64_t after = q->after, newest = 0;
	char path[PATH_MAX_BYTES];
	int rv = cur ? 0 : err_set(err, AVA_ENOMEM, "out of memory");

	if (rv == 0)
		rv = q->run       ? make_path(path, "/api/v1/runs/", q->run, "/events", err)
		     : q->session ? make_path(path, "/api/v1/events?session=", q->session, "", err)
				  : make_path(path, "/api/v1/events", NULL, "", err);
	if (rv == 0 && (after == AVA_NOW || r->start))
		rv = newest_lsn(r, &newest, err); /* and somebody serves */
	if (rv == 0 && after == AVA_NOW && q->run)
		after = newest; /* a run's stream begins at its beginning */
	if (rv == 0)
		rv = remote_stream_open(&r->host, path, after, newest, &cur->stream, err);
	if (rv != 0) {
		free(cur);
		return rv;
	}
	cur->c.backend = b;
	b->woken = true; /* what came with the head is not in the socket any more */
	*out = &cur->c;
	return 0;
}

static struct remote_stream *stream_of(const struct backend_cursor *c)
{
	return CONTAINER_OF(c, struct remote_cursor, c)->stream;
}

static int remote_cursor_next(struct backend_cursor *c, struct backend_item *item,
			      struct ava_error *err)
{
	return remote_stream_next(stream_of(c), item, err);
}

static bool remote_cursor_ended(const struct backend_cursor *c)
{
	return remote_stream_ended(stream_of(c));
}

static int remote_cursor_wait(struct backend_cursor *c, int timeout_ms, struct ava_error *err)
{
	return remote_stream_wait(stream_of(c), timeout_ms, err);
}

static void remote_cursor_close(struct backend_cursor *c)
{
	remote_stream_close(stream_of(c));
	free(c);
}

/* ---- life */

static int remote_fd(struct backend *b)
{
	return of(b)->host.epoll;
}

/* No descriptor tells when a daemon is back. */
static int remote_timeout(struct backend *b)
{
	return of(b)->host.lost > 0 ? RETRY_MS : -1;
}

static int remote_step(struct backend *b, int timeout_ms, struct ava_error *err)
{
	int64_t end = clock_mono_ms() + timeout_ms, left = timeout_ms;
	struct epoll_event e;

	while (epoll_wait(of(b)->host.epoll, &e, 1, (int)left) < 0) {
		if (errno != EINTR)
			return err_sys(err, "wait for the daemon");
		if (timeout_ms > 0)
			left = MAX(end - clock_mono_ms(), 0);
	}
	return 0;
}

static void remote_close(struct backend *b)
{
	struct remote *r = of(b);

	client_close(r->client);
	if (r->host.epoll >= 0)
		close(r->host.epoll);
	free(r->root);
	free(r);
}

static const struct backend_ops remote_ops = {
	.close = remote_close,
	.fd = remote_fd,
	.timeout = remote_timeout,
	.step = remote_step,
	.propose = remote_propose,
	.propose_group = remote_propose_group,
	.group = remote_group,
	.resume = remote_resume,
	.replay = remote_replay,
	.spawn = remote_spawn,
	.confirm = remote_confirm,
	.reject = remote_reject,
	.proposals = remote_proposals,
	.status = remote_status,
	.runs = remote_runs,
	.result = remote_result,
	.cancel = remote_cancel,
	.steer = remote_steer,
	.checkpoint = remote_checkpoint,
	.session_new = remote_session_new,
	.say = remote_say,
	.sessions = remote_sessions,
	.entries = remote_entries,
	.session_stop = remote_session_stop,
	.cursor_open = remote_cursor_open,
	.cursor_next = remote_cursor_next,
	.cursor_ended = remote_cursor_ended,
	.cursor_wait = remote_cursor_wait,
	.cursor_close = remote_cursor_close,
};

int remote_open(const char *root, bool start, struct backend **out, struct ava_error *err)
{
	struct remote *r = calloc(1, sizeof(*r));
	int rv;

	if (!r)
		return err_set(err, AVA_ENOMEM, "out of memory");
	r->b.ops = &remote_ops;
	r->start = start;
	r->root = strdup(root);
	r->host = (struct remote_stream_host){.root = r->root, .serve = serve, .user = r};
	r->host.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r->host.epoll < 0)
		rv = err_sys(err, "epoll");
	else if (!r->root)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	else
		rv = client_open(root, start, &r->client, err);
	if (rv == 0)
		*out = &r->b;
	else
		remote_close(&r->b);
	return rv;
}
