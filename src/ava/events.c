/* Event cursors. First what stands in the files after the wanted lsn, then the
 * live ring; a reader that falls behind the ring goes back to the files with
 * the lsn it has. Every event is given once, in order of lsn; only an event
 * that a full disk held back may come after younger ones.
 *
 * Opening the files may have to look at thousands of them: a thread of the pool does it.
 * Meanwhile the cursor gives nothing, and it may be closed. */
#include <stdlib.h>
#include <string.h>

#include "ava/ended.h"
#include "ava/job.h"
#include "ava/state.h"
#include "base/error.h"
#include "event/event.h"

struct opening {
	struct job job;
	struct op_cursor *cur; /* NULL: closed meanwhile */
	const char *root;      /* of the core, which outlives its jobs */
	char run[24];
	uint64_t after;
	struct ava_log *log;
	int rv;
};

struct op_cursor {
	struct core *core;
	struct feed_reader reader;
	struct ava_log *log;     /* catching up from the files; NULL: live */
	struct opening *opening; /* the files are being opened; NULL: they are not */
	bool lost;               /* they cannot be opened */
	char run[24];            /* "" = everything */
	uint64_t last;           /* lsn of the newest event given */
	uint64_t after;          /* nothing up to here is wanted */
	uint64_t began;          /* "from now on": what is older is not read from files */
	uint64_t cap;            /* everything: what the feed gives begins here */
	bool ended;              /* a run's SubagentComplete was given */
	void (*wake)(void *user);
	void *user;
};

static void reader_wake(struct feed_reader *r)
{
	struct op_cursor *cur = CONTAINER_OF(r, struct op_cursor, reader);

	cur->wake(cur->user);
}

static bool is_live(const struct op_cursor *cur)
{
	return supervisor_find(&cur->core->sup, cur->run) != NULL;
}

/* Pool thread. */
static void opening_run(struct job *job)
{
	struct opening *o = CONTAINER_OF(job, struct opening, job);
	const struct ava_log_query q = {.root = o->root,
					.run = o->run[0] ? o->run : NULL,
					.after = o->after,
					.everything = !o->run[0]};

	o->rv = ava_log_open(&o->log, &q, NULL);
}

static void opening_done(struct job *job)
{
	struct opening *o = CONTAINER_OF(job, struct opening, job);
	struct op_cursor *cur = o->cur;

	if (cur) {
		cur->opening = NULL;
		cur->log = o->log;
		/* Nothing written yet is nothing to catch up with. */
		cur->lost = o->rv != 0 && (o->rv != AVA_ENOENT || (cur->run[0] && !is_live(cur)));
		cur->wake(cur->user);
	} else {
		ava_log_close(o->log);
	}
	free(o);
}

/* What is written from now on comes from the feed, the rest from the files. */
static int open_files(struct op_cursor *cur, struct ava_error *err)
{
	struct opening *o = calloc(1, sizeof(*o));
	int rv;

	if (!o)
		return err_set(err, AVA_ENOMEM, "out of memory");
	o->cur = cur;
	o->root = cur->core->root;
	memcpy(o->run, cur->run, sizeof(o->run));
	o->after = MAX(cur->last, cur->began);
	o->job.run = opening_run;
	o->job.done = opening_done;
	cur->cap = logbook_shown(&cur->core->book) + 1;
	rv = job_begin_short(cur->core, &o->job, err);
	if (rv != 0)
		free(o);
	else
		cur->opening = o;
	return rv;
}

struct op_cursor *ops_events_open(struct core *c, const char *run, uint64_t after,
				  void (*wake)(void *user), void *user, struct ava_error *err)
{
	struct op_cursor *cur;

	if (run && !supervisor_find(&c->sup, run)) {
		struct ended e;

		if (ended_read(c, run, &e, err) != 0)
			return NULL;
		ended_fini(&e);
	}
	cur = calloc(1, sizeof(*cur));
	if (!cur) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	cur->core = c;
	cur->wake = wake;
	cur->user = user;
	cur->reader.wake = reader_wake;
	if (run)
		strncpy(cur->run, run, sizeof(cur->run) - 1);
	feed_join(&c->book.feed, &cur->reader);
	cur->after = cur->last = after == UINT64_MAX ? 0 : after;
	if (after == UINT64_MAX)
		cur->began = logbook_shown(&c->book);
	if (after != UINT64_MAX && open_files(cur, err) != 0) {
		ops_events_close(cur);
		return NULL;
	}
	return cur;
}

void ops_events_close(struct op_cursor *cur)
{
	feed_leave(&cur->reader);
	ava_log_close(cur->log);
	if (cur->opening)
		cur->opening->cur = NULL;
	free(cur);
}

bool ops_events_opening(const struct op_cursor *cur)
{
	return cur->opening != NULL;
}

static void give(struct op_cursor *cur, uint64_t lsn, const char *type, size_t type_len,
		 const char *line, size_t len, struct op_event *out)
{
	*out = (struct op_event){
		.lsn = lsn, .type = type, .type_len = type_len, .line = line, .line_len = len};
	if (lsn > cur->last)
		cur->last = lsn;
	if (cur->run[0] && type_len == 16 && memcmp(type, "SubagentComplete", 16) == 0)
		cur->ended = true;
}

/* 1; 0: the files are done; -2: they cannot be read. */
static int next_from_files(struct op_cursor *cur, struct op_event *out)
{
	struct ava_log_event e;
	struct event_view v;
	int rv;

	do {
		rv = ava_log_next(cur->log, &e, NULL);
		/* `ava logs` reports what is broken. */
	} while (rv == AVA_ECORRUPT || (rv == 1 && event_view(e.line, e.len, &v) != 0));
	/* Behind the cap there may be events with a lower lsn still to come. */
	if (rv == 1 && !cur->run[0] && e.lsn >= cur->cap)
		rv = 0;
	if (rv == 1) {
		give(cur, e.lsn, v.type.s, v.type.len, e.line, e.len, out);
		return 1;
	}
	ava_log_close(cur->log);
	cur->log = NULL;
	return rv != 0 ? -2 : 0;
}

static bool wanted(const struct op_cursor *cur, const struct feed_line *l)
{
	if (cur->run[0]) /* and not given from the files meanwhile */
		return l->in_run && strcmp(l->run, cur->run) == 0 && l->lsn > cur->last;
	/* The day's copy of a run's event is the same event. */
	return (l->in_run || !l->run[0]) && l->lsn > cur->after;
}

int ops_events_next(struct op_cursor *cur, struct op_event *out)
{
	const struct feed_line *l;
	int rv = 0;

	if (cur->ended)
		return -1;
	if (cur->opening || cur->lost)
		return cur->opening ? 0 : -2;
	if (cur->log)
		rv = next_from_files(cur, out);
	if (rv != 0)
		return rv;
	while ((rv = feed_next(&cur->core->book.feed, &cur->reader, &l)) != 0) {
		struct event_view v;

		if (rv < 0) { /* fell behind the ring */
			return open_files(cur, NULL) == 0 ? 0 : -2;
		}
		if (!wanted(cur, l) || event_view(l->bytes, l->len, &v) != 0)
			continue;
		give(cur, l->lsn, v.type.s, v.type.len, l->bytes, l->len, out);
		return 1;
	}
	/* Its last event is in the feed before a run stops being live; who asked
	 * for what comes after that event has everything. */
	return cur->run[0] && !cur->log && !is_live(cur) ? -1 : 0;
}
