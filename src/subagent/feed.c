/* A ring indexed by position modulo its size. Memory for a line can fail; its position is used
 * up all the same, so that every reader sees that it has fallen behind and goes to the files.
 * Loop thread only. */
#include "subagent/feed.h"

#include <stdlib.h>
#include <string.h>

#include "event/event.h"

struct feed_line *feed_place(struct feed *f, uint64_t at)
{
	return &f->ring[at % FEED_MAX_LINES];
}

static void feed_drop_oldest(struct feed *f)
{
	struct feed_line *l = feed_place(f, f->first++);

	f->bytes -= l->len;
	free(l->bytes);
	l->bytes = NULL;
}

void feed_fini(struct feed *f)
{
	while (f->ring && f->first < f->next)
		feed_drop_oldest(f);
	free(f->ring);
	f->ring = NULL;
}

void feed_publish(struct feed *f, const char *line, size_t len, bool in_run)
{
	struct event_view v;
	struct feed_line *l;
	char *copy;

	if (event_view(line, --len, &v) != 0)
		return;
	copy = malloc(len + 1);
	while (f->first < f->next &&
	       (!copy || f->next - f->first == FEED_MAX_LINES || f->bytes + len > FEED_MAX_BYTES))
		feed_drop_oldest(f);
	l = feed_place(f, f->next++);
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

void feed_wake(struct feed *f)
{
	LIST_EACH (&f->readers, n, tmp) {
		struct feed_reader *r = LIST_ENTRY(n, struct feed_reader, node);

		r->wake(r);
	}
}

void feed_join(struct feed *f, struct feed_reader *r)
{
	r->at = f->next;
	list_add(&f->readers, &r->node);
}

void feed_leave(struct feed_reader *r)
{
	list_del(&r->node);
}

int feed_next(struct feed *f, struct feed_reader *r, const struct feed_line **line)
{
	if (r->at < f->first) {
		r->at = f->next;
		return -1;
	}
	if (r->at == f->next)
		return 0;
	*line = feed_place(f, r->at++);
	return 1;
}
