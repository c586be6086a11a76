/* Questions that every room of a cluster has for the machine it is on: the time, the lease, a place
 * for sentences. Between two rooms that both need the other one's work stands a task here: the gate
 * finds that a head is another one, and what looks at heads is built on the gate. */
#include "cluster/member.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/util.h"

int64_t cluster_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void cluster_say(struct cluster *c, const char *fmt, ...)
{
	char line[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (strcmp(line, c->why) == 0)
		return;
	snprintf(c->why, sizeof(c->why), "%s", line);
	if (c->tell.log)
		c->tell.log(line, c->tell.user);
}

void cluster_fence(struct cluster *c, const char *why)
{
	if (c->state == CLUSTER_FENCED)
		return;
	c->state = CLUSTER_FENCED;
	cluster_say(c, "%s", why);
	c->tell.fenced(c->why, c->tell.user);
}

bool cluster_has_lease(const struct cluster *c)
{
	return c->state == CLUSTER_MEMBER && c->who.kept && cluster_now_ms() < c->lease_end_ms;
}

void cluster_tend(struct cluster *c)
{
	os_defer(c->loop, &c->tend);
}

void cluster_place_due(struct cluster *c, struct cluster_run *r)
{
	r->placing = PLACE_DUE;
	os_defer(c->loop, &c->folders.step);
}

void cluster_place_wanted(struct cluster *c, const char *place)
{
	for (unsigned i = 0; i < c->folders.n; i++) {
		struct cluster_folder *f = &c->folders.all[i];

		f->wanted = f->wanted || strcmp(f->place, place) == 0;
	}
	os_defer(c->loop, &c->folders.step);
}

int64_t cluster_lag(const struct cluster *c, unsigned *runs)
{
	int64_t bytes = 0;

	*runs = 0;
	LIST_EACH (&c->runs, n, tmp) {
		const struct cluster_run *r = LIST_ENTRY(n, struct cluster_run, node);
		int64_t lacks = r->log_seen - r->at.bytes + r->messages_seen - r->messages_at;

		if (r->laying || (lacks <= 0 && !r->fresh && list_empty(&r->files)))
			continue;
		bytes += MAX(lacks, 0);
		++*runs;
	}
	return bytes;
}

void cluster_add_me(struct pg_batch *b, const struct cluster *c, const char *sql)
{
	pg_batch_add(b, sql);
	pg_batch_text(b, c->who.node);
	pg_batch_int(b, c->epoch);
	pg_batch_int(b, c->generation);
}

/* ---- rows of runs that are not at work here */

void held_drop(struct cluster_held *h)
{
	list_del(&h->node);
	free(h);
}

void held_back(struct cluster *c, const char *run)
{
	LIST_EACH (&c->look.away, n, tmp)
		if (strcmp(LIST_ENTRY(n, struct cluster_held, node)->id, run) == 0)
			held_drop(LIST_ENTRY(n, struct cluster_held, node));
}

int held_add(struct list *to, const struct catalog_row *row)
{
	struct cluster_held *h;
	struct buf line;

	buf_init(&line, 1u << 20);
	if (catalog_encode(&line, row) != 0)
		return AVA_ENOMEM;
	h = calloc(1, sizeof(*h) + line.len);
	if (h) {
		memcpy(h->row, line.data, line.len - 1); /* without its end of line */
		snprintf(h->id, sizeof(h->id), "%s", row->id);
		list_add(to, &h->node);
	}
	buf_fini(&line);
	return h ? 0 : AVA_ENOMEM;
}
