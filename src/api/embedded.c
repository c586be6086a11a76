/* A runtime inside another program: avad's start without the parts of
 * a process (signals, socket, folder, limits).
 *
 * Order: the environment that counts, configuration, root, lock, loop, runtime.
 * Tables of models, services and keys belong to the process, so there is one
 * embedded runtime at a time; a second one is AVA_EBUSY. Threads that are made
 * here must not get the program's signals, so all are blocked meanwhile, and
 * libuv's pool is brought up. A connection that a peer has closed must not end
 * the program either: SIGPIPE is held back while the loop turns.
 *
 * A call is a verb of ava/verbs.h and turns of the loop until it is answered. A cursor is
 * one of ava/ops.h, and for a conversation the frames of its text, of which a bounded
 * number wait for the reader. Lines given are copies, because the reader may call the runtime,
 * which then writes over the ring. When the files of the log fail it, it is
 * opened anew behind the last event. */
#include "api/runtime.h"

#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ava/house.h"
#include "ava/ops.h"
#include "ava/sessions.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/list.h"
#include "base/util.h"
#include "os/loop.h"

#define FRAMES_MAX 4096

struct embedded_state {
	struct backend b;
	struct house h;
	char user_id[64];
	void (*log)(const char *line, void *user);
	void *log_user;
};

static struct embedded_state *embedded_of(struct backend *b)
{
	return CONTAINER_OF(b, struct embedded_state, b);
}

static atomic_flag taken = ATOMIC_FLAG_INIT;

/* ---- forked children. They have libuv's table of its pool's threads, which outlive a runtime, and
 * none of the threads: its destructor, which would join them, must not run there. Ours comes before
 * it, and behind all that the program does at its end. */

static int leaving = -1; /* what a child ends with */

static void embedded_leaving(int status, void *unused)
{
	leaving = status & 0xff;
}

static void embedded_in_child(void)
{
	on_exit(embedded_leaving, NULL);
}

__attribute__((destructor)) static void embedded_leave_child(void)
{
	if (leaving < 0)
		return;
	fflush(NULL);
	_exit(leaving);
}

static void embedded_watch_forks(void)
{
	static bool watched; /* behind `taken` */

	if (!watched)
		watched = pthread_atfork(NULL, NULL, embedded_in_child) == 0;
}

/* ---- the loop */

/* A SIGPIPE of ours is taken away again; one that waited before stays. */
static void embedded_step(struct embedded_state *e, int timeout_ms)
{
	const struct timespec none = {0};
	sigset_t pipe, before, waits;
	bool had;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&waits);
	had = sigismember(&waits, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	os_loop_step(e->h.loop, timeout_ms);
	sigpending(&waits);
	if (!had && sigismember(&waits, SIGPIPE) == 1)
		sigtimedwait(&pipe, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int embedded_turn(struct backend *b, int timeout_ms, struct ava_error *err)
{
	embedded_step(embedded_of(b), timeout_ms);
	return 0;
}

static int loop_fd(struct backend *b)
{
	return os_loop_fd(embedded_of(b)->h.loop);
}

static int loop_timeout(struct backend *b)
{
	return os_loop_timeout(embedded_of(b)->h.loop);
}

/* ---- calls */

struct pending {
	struct verb_reply reply;
	struct buf *out;
	struct ava_error *err;
	bool done;
	int rv, status;
};

static void embedded_answered(struct verb_reply *r, int status, const struct buf *json,
			      const struct ava_error *err)
{
	struct pending *p = CONTAINER_OF(r, struct pending, reply);

	p->done = true;
	p->status = status;
	if (!json)
		p->rv = err_set(p->err, err->code, "%s", err->text);
	else if (buf_add(p->out, json->data, json->len) != 0)
		p->rv = err_set(p->err, AVA_ENOMEM, "out of memory for the answer");
}

static int embedded_call(struct backend *b, const char *method, const char *path, const char *id,
			 const char *args, struct buf *reply, int *status, struct ava_error *err)
{
	struct embedded_state *e = embedded_of(b);
	const struct caller caller = {
		.user = e->user_id, .channel = "libava", .trust = CALLER_OWNER};
	struct pending p = {.reply.done = embedded_answered, .out = reply, .err = err};
	json_t *o = json_parse(args, strlen(args), err);

	if (!o)
		return err->code;
	verbs_call(e->h.core, verbs_named(method, path), &caller, id ? id : "", o, &p.reply);
	json_decref(o);
	while (!p.done)
		embedded_step(e, -1);
	*status = p.status;
	return p.rv;
}

/* ---- cursors */

struct embedded_cursor {
	struct backend_cursor c;
	struct op_cursor *ops; /* NULL: to be opened again */
	struct op_watch *watch;
	struct backend_queue items; /* frames, and the line the caller borrows */
	uint64_t last;              /* events behind this lsn come next; AVA_NOW: none came yet */
	bool woken, ended;
	char run[24], session[64];
};

static struct embedded_cursor *cursor_of(struct backend_cursor *c)
{
	return CONTAINER_OF(c, struct embedded_cursor, c);
}

static struct embedded_state *home(const struct embedded_cursor *cur)
{
	return embedded_of(cur->c.backend);
}

static void embedded_wake(void *user)
{
	struct embedded_cursor *cur = user;

	cur->woken = true;
	cur->c.backend->woken = true;
}

/* Frames beyond FRAMES_MAX are dropped: the AssistantMessage event has the whole text. */
static void on_frame(const struct op_frame *f, void *user)
{
	struct embedded_cursor *cur = user;
	const enum ava_text_kind kind = f->kind == FRAME_TEXT       ? AVA_TEXT
					: f->kind == FRAME_THINKING ? AVA_THINKING
								    : AVA_TURN;

	if (strcmp(f->session, cur->session) == 0 && cur->items.n < FRAMES_MAX &&
	    backend_put(&cur->items, &(struct backend_item){.is_text = true,
							    .text = {.session = cur->session,
								     .kind = kind,
								     .text = f->text,
								     .len = f->len}}) == 0)
		embedded_wake(cur);
}

static int open_ops(struct embedded_cursor *cur, struct ava_error *err)
{
	cur->ops = ops_events_open(home(cur)->h.core, cur->run[0] ? cur->run : NULL, cur->last,
				   embedded_wake, cur, err);
	while (cur->ops && ops_events_opening(cur->ops))
		embedded_step(home(cur), -1);
	return cur->ops ? 0 : err->code;
}

static void embedded_cursor_close(struct backend_cursor *c)
{
	struct embedded_cursor *cur = cursor_of(c);

	if (cur->ops)
		ops_events_close(cur->ops);
	if (cur->watch)
		ops_unwatch(cur->watch);
	backend_queue_fini(&cur->items);
	free(cur);
}

static int embedded_cursor_open(struct backend *b, const struct ava_events_query *q,
				struct backend_cursor **out, struct ava_error *err)
{
	struct embedded_cursor *cur = calloc(1, sizeof(*cur));
	int rv = 0;

	if (!cur)
		return err_set(err, AVA_ENOMEM, "out of memory");
	cur->c.backend = b;
	cur->last = q->after;
	list_init(&cur->items.items);
	strncpy(cur->run, q->run ? q->run : "", sizeof(cur->run) - 1);
	strncpy(cur->session, q->session ? q->session : "", sizeof(cur->session) - 1);
	if (q->session)
		cur->watch = ops_watch(home(cur)->h.core, on_frame, cur);
	if (q->session && !cur->watch)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	if (rv == 0)
		rv = open_ops(cur, err);
	if (rv != 0) {
		embedded_cursor_close(&cur->c);
		return rv;
	}
	embedded_wake(cur);
	*out = &cur->c;
	return 0;
}

/* Close the cursor's stream; a new one goes on behind the last event given. */
static int lose(struct embedded_cursor *cur, int code, const char *why, struct ava_error *err)
{
	ops_events_close(cur->ops);
	cur->ops = NULL;
	return err_set(err, code, "%s", why);
}

static int embedded_cursor_next(struct backend_cursor *c, struct backend_item *item,
				struct ava_error *err)
{
	struct embedded_cursor *cur = cursor_of(c);
	struct op_event e;
	int rv = 0;

	if (backend_take(&cur->items, item) == 1)
		return 1;
	if (cur->ended || (!cur->ops && (rv = open_ops(cur, err)) != 0))
		return rv;
	while ((rv = ops_events_next(cur->ops, &e)) == 1 ||
	       (rv == 0 && ops_events_opening(cur->ops))) {
		bool wanted;

		if (rv == 0) { /* no line yet: the files are being read */
			embedded_step(home(cur), -1);
			continue;
		}
		wanted = ops_event_is_of(&e, cur->session);
		if (wanted &&
		    backend_put(&cur->items,
				&(struct backend_item){.line = e.line, .len = e.line_len}) != 0)
			return lose(cur, AVA_ENOMEM, "out of memory for an event", err);
		if (cur->last == AVA_NOW || e.lsn > cur->last)
			cur->last = e.lsn;
		if (wanted)
			return backend_take(&cur->items, item);
	}
	if (rv == -2)
		return lose(cur, AVA_EIO, "the log files cannot be read", err);
	cur->woken = false;
	cur->ended = rv == -1;
	return 0;
}

static bool embedded_cursor_ended(const struct backend_cursor *c)
{
	const struct embedded_cursor *cur = CONTAINER_OF(c, const struct embedded_cursor, c);

	return cur->ended && cur->items.n == 0;
}

static int embedded_cursor_wait(struct backend_cursor *c, int timeout_ms, struct ava_error *err)
{
	struct embedded_cursor *cur = cursor_of(c);
	int64_t end = clock_mono_ms() + timeout_ms, left = timeout_ms;

	while (!cur->woken && !cur->ended) {
		embedded_step(home(cur), (int)left);
		if (timeout_ms >= 0 && left == 0)
			return cur->woken;
		if (timeout_ms > 0)
			left = MAX(end - clock_mono_ms(), 0);
	}
	return 1;
}

/* ---- opening */

static void pass_log(const char *line, void *user)
{
	struct embedded_state *e = user;

	if (e->log)
		e->log(line, e->log_user);
}

static int open_all(struct embedded_state *e, const struct ava_options *o, struct ava_error *err)
{
	struct core_options c = {.model = o->model, .log = pass_log, .log_user = e};
	int rv = o->process_env ? 0 : env_only(o->env, err);

	if (rv == 0)
		rv = config_load(&e->h.config, err);
	if (rv == 0)
		rv = house_hold(&e->h, o->root, true, err);
	if (rv == 0)
		rv = house_loop(&e->h, err);
	return rv == 0 ? house_open(&e->h, &c, err) : rv;
}

static void close_all(struct backend *b)
{
	struct embedded_state *e = embedded_of(b);

	if (e->h.core)
		core_hold(e->h.core);
	house_close(&e->h);
	env_process();
	free(e);
	atomic_flag_clear(&taken);
}

static const struct backend_ops embedded_ops = {
	.close = close_all,
	.fd = loop_fd,
	.timeout = loop_timeout,
	.step = embedded_turn,
	.call = embedded_call,
	.cursor_open = embedded_cursor_open,
	.cursor_next = embedded_cursor_next,
	.cursor_ended = embedded_cursor_ended,
	.cursor_wait = embedded_cursor_wait,
	.cursor_close = embedded_cursor_close,
};

int embedded_open(const struct ava_options *o, struct backend **out, struct ava_error *err)
{
	const struct passwd *pw;
	struct embedded_state *e;
	sigset_t all, before;
	int rv;

	if (atomic_flag_test_and_set(&taken))
		return err_set(err, AVA_EBUSY,
			       "this process has an embedded runtime already: use that one, or "
			       "connect to a daemon");
	e = calloc(1, sizeof(*e));
	if (!e) {
		atomic_flag_clear(&taken);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	embedded_watch_forks();
	e->b.ops = &embedded_ops;
	e->h = (struct house)HOUSE_CLOSED;
	e->log = o->log;
	e->log_user = o->log_user;
	pw = o->user_id ? NULL : getpwuid(geteuid()); /* one static entry: behind `taken` */
	snprintf(e->user_id, sizeof(e->user_id), "%s",
		 o->user_id ? o->user_id
		 : pw       ? pw->pw_name
			    : "");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rv = open_all(e, o, err);
	if (rv != 0)
		close_all(&e->b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rv == 0)
		*out = &e->b;
	return rv;
}
