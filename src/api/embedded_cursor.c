/* Cursors of an embedded runtime: one of ava/ops.h, and for a conversation the
 * frames of its text, of which a bounded number wait for whoever reads.
 *
 * What is given is copied, because whoever has it may call the runtime, which
 * then writes over the ring. What can fail: the files of the log; then the
 * cursor is opened anew behind the last event. */
#include <stdlib.h>
#include <string.h>

#include "api/embedded.h"
#include "ava/ops.h"
#include "ava/sessions.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/util.h"
#include "event/event.h"
#include "os/loop.h"

#define FRAMES_MAX 4096
#define LINE_MAX   (64u << 20)

struct frame {
	struct list node;
	enum ava_text_kind kind;
	size_t len;
	char text[];
};

struct embedded_cursor {
	struct backend_cursor c;
	struct op_cursor *ops; /* NULL: to be opened again */
	struct op_watch *watch;
	struct list frames;
	size_t nframes;
	struct frame *given; /* borrowed by the caller */
	struct buf line;     /* so is this */
	uint64_t last;       /* AVA_NOW: nothing given yet */
	bool woken, ended;
	char run[24], session[64];
};

static struct embedded_cursor *of(struct backend_cursor *c)
{
	return CONTAINER_OF(c, struct embedded_cursor, c);
}

static struct embedded *home(const struct embedded_cursor *cur)
{
	return embedded_of(cur->c.backend);
}

static void wake(void *user)
{
	struct embedded_cursor *cur = user;

	cur->woken = true;
	cur->c.backend->woken = true;
}

/* What nobody reads is dropped: AssistantMessage has all of it. */
static void on_frame(const struct op_frame *f, void *user)
{
	struct embedded_cursor *cur = user;
	struct frame *n;

	if (strcmp(f->session, cur->session) != 0 || cur->nframes >= FRAMES_MAX)
		return;
	n = malloc(sizeof(*n) + f->len + 1);
	if (!n)
		return;
	n->kind = f->kind == FRAME_TEXT       ? AVA_TEXT
		  : f->kind == FRAME_THINKING ? AVA_THINKING
					      : AVA_TURN;
	n->len = f->len;
	memcpy(n->text, f->text, f->len);
	n->text[f->len] = '\0';
	list_add(&cur->frames, &n->node);
	cur->nframes++;
	wake(cur);
}

static int open_ops(struct embedded_cursor *cur, struct ava_error *err)
{
	cur->ops = ops_events_open(home(cur)->core, cur->run[0] ? cur->run : NULL, cur->last, wake,
				   cur, err);
	return cur->ops ? 0 : err->code;
}

int embedded_cursor_open(struct backend *b, const struct ava_events_query *q,
			 struct backend_cursor **out, struct ava_error *err)
{
	struct embedded_cursor *cur = calloc(1, sizeof(*cur));
	int rv = cur ? 0 : err_set(err, AVA_ENOMEM, "out of memory");

	if (rv != 0)
		return rv;
	cur->c.backend = b;
	cur->last = q->after;
	list_init(&cur->frames);
	buf_init(&cur->line, LINE_MAX);
	strncpy(cur->run, q->run ? q->run : "", sizeof(cur->run) - 1);
	strncpy(cur->session, q->session ? q->session : "", sizeof(cur->session) - 1);
	if (q->session)
		cur->watch = ops_watch(home(cur)->core, on_frame, cur);
	if (q->session && !cur->watch)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	if (rv == 0)
		rv = open_ops(cur, err);
	if (rv != 0) {
		embedded_cursor_close(&cur->c);
		return rv;
	}
	wake(cur);
	*out = &cur->c;
	return 0;
}

static struct frame *take_frame(struct embedded_cursor *cur)
{
	struct frame *f = LIST_FIRST(&cur->frames, struct frame, node);

	if (!f)
		return NULL;
	list_del(&f->node);
	cur->nframes--;
	return f;
}

void embedded_cursor_close(struct backend_cursor *c)
{
	struct embedded_cursor *cur = of(c);
	struct frame *f;

	if (cur->ops)
		ops_events_close(cur->ops);
	if (cur->watch)
		ops_unwatch(cur->watch);
	while ((f = take_frame(cur)) != NULL)
		free(f);
	free(cur->given);
	buf_fini(&cur->line);
	free(cur);
}

static bool is_wanted(const struct embedded_cursor *cur, const struct op_event *e)
{
	size_t len = strlen(cur->session);
	struct event_view v;

	return len == 0 || (event_view(e->line, e->line_len, &v) == 0 && v.session_id.len == len &&
			    memcmp(v.session_id.s, cur->session, len) == 0);
}

static int give_frame(struct embedded_cursor *cur, struct frame *f, struct backend_item *item)
{
	cur->given = f;
	*item = (struct backend_item){.is_text = true};
	item->text = (struct ava_text){
		.session = cur->session, .kind = f->kind, .text = f->text, .len = f->len};
	return 1;
}

/* It goes on behind the last event that was given. */
static int lose(struct embedded_cursor *cur, int code, const char *why, struct ava_error *err)
{
	ops_events_close(cur->ops);
	cur->ops = NULL;
	return err_set(err, code, "%s", why);
}

static int give_line(struct embedded_cursor *cur, const struct op_event *e,
		     struct backend_item *item, struct ava_error *err)
{
	buf_reset(&cur->line);
	if (buf_add(&cur->line, e->line, e->line_len) != 0)
		return lose(cur, AVA_ENOMEM, "out of memory for an event", err);
	*item = (struct backend_item){.line = cur->line.data, .len = cur->line.len};
	return 1;
}

static void pass(struct embedded_cursor *cur, uint64_t lsn)
{
	if (cur->last == AVA_NOW || lsn > cur->last)
		cur->last = lsn;
}

int embedded_cursor_next(struct backend_cursor *c, struct backend_item *item, struct ava_error *err)
{
	struct embedded_cursor *cur = of(c);
	struct op_event e;
	struct frame *f;
	int rv = 0;

	free(cur->given);
	cur->given = NULL;
	f = take_frame(cur);
	if (f)
		return give_frame(cur, f, item);
	if (cur->ended || (!cur->ops && (rv = open_ops(cur, err)) != 0))
		return rv;
	while ((rv = ops_events_next(cur->ops, &e)) == 1) {
		uint64_t lsn = e.lsn;
		bool wanted = is_wanted(cur, &e);

		if (wanted)
			rv = give_line(cur, &e, item, err);
		if (rv == 1)
			pass(cur, lsn);
		if (wanted)
			return rv;
	}
	if (rv == -2)
		return lose(cur, AVA_EIO, "the log files cannot be read", err);
	cur->woken = false;
	cur->ended = rv == -1;
	return 0;
}

bool embedded_cursor_ended(const struct backend_cursor *c)
{
	const struct embedded_cursor *cur = CONTAINER_OF(c, const struct embedded_cursor, c);

	return cur->ended && list_empty(&cur->frames);
}

int embedded_cursor_wait(struct backend_cursor *c, int timeout_ms, struct ava_error *err)
{
	struct embedded_cursor *cur = of(c);
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
