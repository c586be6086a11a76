/* A ring indexed by position modulo its size, and beside it the positions in
 * order of lsn. Lines are published after they can be read in the views, so a
 * reader never shows what is not on disk. What can fail: memory for a line;
 * its position is used up all the same, so that every reader sees that it has
 * fallen behind and goes to the files. */
#include "subagent/feed.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "codec/jsonl.h"
#include "event/event.h"

int feed_init(struct feed *f)
{
	*f = (struct feed){0};
	list_init(&f->readers);
	f->ring = calloc(FEED_MAX_LINES, sizeof(*f->ring));
	f->order = calloc(FEED_MAX_LINES, sizeof(*f->order));
	f->held = calloc(FEED_MAX_LINES, sizeof(*f->held));
	if (f->ring && f->order && f->held)
		return 0;
	feed_fini(f);
	return AVA_ENOMEM;
}

static struct feed_line *place(struct feed *f, uint64_t at)
{
	return &f->ring[at % FEED_MAX_LINES];
}

static void drop_oldest(struct feed *f)
{
	struct feed_line *l = place(f, f->first++);

	f->bytes -= l->len;
	free(l->bytes);
	l->bytes = NULL;
}

void feed_fini(struct feed *f)
{
	while (f->ring && f->first < f->next)
		drop_oldest(f);
	free(f->ring);
	free(f->order);
	free(f->held);
	f->ring = NULL;
	f->order = NULL;
	f->held = NULL;
}

/* ---- the order of lsn */

static void settle_first(struct feed *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		f->order[f->order_next++ % FEED_MAX_LINES] = f->held[i].at;
	f->nheld -= n;
	memmove(f->held, f->held + n, f->nheld * sizeof(*f->held));
}

/* Mostly at the end: lines come nearly in order. */
static void hold(struct feed *f, uint64_t lsn, uint64_t at)
{
	size_t i;

	if (f->nheld == FEED_MAX_LINES) { /* what is missing below comes late */
		f->low = MAX(f->low, f->held[f->nheld / 2].lsn);
		settle_first(f, f->nheld / 2);
	}
	for (i = f->nheld; i > 0 && f->held[i - 1].lsn > lsn; i--)
		f->held[i] = f->held[i - 1];
	f->held[i] = (struct feed_held){lsn, at};
	f->nheld++;
}

static void wake(struct feed *f, bool ordered)
{
	LIST_EACH (&f->readers, n, tmp) {
		struct feed_reader *r = LIST_ENTRY(n, struct feed_reader, node);

		if (r->ordered == ordered)
			r->wake(r);
	}
}

void feed_settle(struct feed *f, uint64_t low)
{
	size_t n = 0;

	f->low = MAX(f->low, low);
	while (n < f->nheld && f->held[n].lsn < f->low)
		n++;
	if (n == 0)
		return;
	settle_first(f, n);
	wake(f, true);
}

/* ---- publishing */

static void publish_line(struct feed *f, const char *line, size_t len, bool in_run)
{
	struct event_view v;
	struct feed_line *l;
	char *copy;

	if (event_view(line, len, &v) != 0)
		return;
	copy = malloc(len + 1);
	while (f->first < f->next &&
	       (!copy || f->next - f->first == FEED_MAX_LINES || f->bytes + len > FEED_MAX_BYTES))
		drop_oldest(f);
	hold(f, v.lsn, f->next);
	l = place(f, f->next++);
	if (!copy) {
		f->first = f->next;
		return;
	}
	memcpy(copy, line, len);
	copy[len] = 0;
	*l = (struct feed_line){
		.lsn = v.lsn, .in_run = in_run, .len = (uint32_t)len, .bytes = copy};
	if (v.agent_id.len < sizeof(l->run) && v.agent_id.len > 2 && v.agent_id.s[0] == 'S')
		memcpy(l->run, v.agent_id.s, v.agent_id.len);
	f->bytes += len;
}

void feed_publish(struct feed *f, const char *bytes, size_t len, bool in_run)
{
	const char *line;
	size_t at = 0, line_len;

	while (jsonl_next(bytes, len, &at, &line, &line_len) == 1)
		publish_line(f, line, line_len, in_run);
	wake(f, false);
}

/* ---- reading */

void feed_join(struct feed *f, struct feed_reader *r)
{
	r->at = r->ordered ? f->order_next : f->next;
	list_add(&f->readers, &r->node);
}

void feed_leave(struct feed_reader *r)
{
	list_del(&r->node);
}

static int next_ordered(struct feed *f, struct feed_reader *r, const struct feed_line **line)
{
	uint64_t at;

	if (r->at == f->order_next)
		return 0;
	at = f->order[r->at % FEED_MAX_LINES];
	if (f->order_next - r->at > FEED_MAX_LINES || at < f->first) {
		r->at = f->order_next;
		return -1;
	}
	r->at++;
	*line = place(f, at);
	return 1;
}

int feed_next(struct feed *f, struct feed_reader *r, const struct feed_line **line)
{
	if (r->ordered)
		return next_ordered(f, r, line);
	if (r->at < f->first) {
		r->at = f->first;
		return -1;
	}
	if (r->at == f->next)
		return 0;
	*line = place(f, r->at++);
	return 1;
}
