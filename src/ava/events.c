/* Event cursors. First what stands in the files after the wanted lsn, then the
 * live ring; a reader that falls behind the ring goes back to the files with
 * the lsn it has. Every event is given once, in order of lsn; only an event
 * that a full disk held back may come after younger ones.
 *
 * Files are opened and read by threads of the pool, a page of lines at a time: opening may
 * have to look at thousands of them. Meanwhile the cursor gives nothing, and it may be
 * closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/job.h"
#include "ava/others.h"
#include "ava/state.h"
#include "base/error.h"
#include "event/event.h"

#define PAGE_BYTES ((size_t)64 << 10)
/* Beyond this number of cursors, files are closed after each page: open files take a megabyte and
 * more each, and a client that does not read would hold them. */
#define OPEN_MAX 8

/* Lines of the files. Owned by the job while it is at work, else by the cursor. */
struct events_page {
	struct job job;
	struct core *core;
	struct op_cursor *cur; /* NULL: closed meanwhile */
	char *root;            /* with the files; owned; NULL: the data root */
	char run[24];
	uint64_t after, cap; /* only events between the two; cap 0: no end */
	uint64_t *late;      /* lsns below the cap that the feed still brings; owned */
	size_t nlate, late_cap;
	bool no_memory;
	struct ava_log *log; /* NULL: not opened yet, or at its end */
	struct buf lines;    /* event lines, each with its newline */
	size_t at;           /* bytes given already */
	bool brief;          /* `log` is closed after each filling of `lines` */
	bool missing;        /* the log's file does not exist */
	int rv;              /* 1: more follows `lines`; 0: that was all */
};

struct op_cursor {
	struct core *core;
	struct feed_reader reader;
	struct events_page *page; /* reads files to catch up; NULL: the cursor is live */
	bool reading;             /* a thread fills the page */
	char run[24];             /* the run whose events are given; "": all events */
	uint64_t last;            /* lsn of the newest event given */
	uint64_t after;           /* events up to this lsn are not wanted */
	uint64_t began;           /* "from now on": older events are not read from files */
	struct os_timer *other;   /* the run is another machine's: the next look at it; else NULL */
	bool fetching;            /* its copy is brought up to date */
	bool other_due;           /* the timer is set */
	int other_rv;             /* why it cannot be read */
	int64_t other_bytes;      /* of its log, when it was read last */
	bool ended;               /* a run's SubagentComplete was given */
	void (*wake)(void *user);
	void *user;
};

static void reader_wake(struct feed_reader *r)
{
	struct op_cursor *cur = CONTAINER_OF(r, struct op_cursor, reader);

	cur->wake(cur->user);
}

static void add_late(uint64_t lsn, void *user)
{
	struct events_page *p = user;

	if (ARRAY_ROOM(p->late, p->late_cap, p->nlate + 1))
		p->late[p->nlate++] = lsn;
	else
		p->no_memory = true;
}

static bool is_late(const struct events_page *p, uint64_t lsn)
{
	for (size_t i = 0; i < p->nlate; i++)
		if (p->late[i] == lsn)
			return true;
	return false;
}

/* Pool thread. Broken lines are skipped; `ava logs` reports them. */
static void events_page_read(struct job *job)
{
	struct events_page *p = CONTAINER_OF(job, struct events_page, job);
	const struct ava_log_query q = {.root = p->root ? p->root : job->core->root,
					.run = p->run[0] ? p->run : NULL,
					.after = p->after,
					.everything = !p->run[0]};
	struct ava_log_event e;
	uint64_t last = p->after;
	size_t whole;

	if (p->log == NULL) {
		p->rv = ava_log_open(&p->log, &q, NULL);
		p->missing = p->rv == AVA_ENOENT;
		if (p->rv != 0)
			return;
	}
	do {
		p->rv = ava_log_next(p->log, &e, NULL);
		if (p->rv != 1)
			continue;
		/* Behind the cap events with a lower lsn may still come. */
		if (p->cap != 0 && e.lsn >= p->cap)
			p->rv = 0;
		whole = p->lines.len;
		if (p->rv == 1 && !is_late(p, e.lsn) &&
		    (buf_add(&p->lines, e.line, e.len) != 0 || buf_addc(&p->lines, '\n') != 0)) {
			p->lines.len = whole;
			p->rv = AVA_ENOMEM;
		}
		last = p->rv == 1 ? e.lsn : last;
	} while (p->rv == AVA_ECORRUPT || (p->rv == 1 && p->lines.len < PAGE_BYTES));
	if (p->brief || p->rv != 1) {
		ava_log_close(p->log);
		p->log = NULL;
		p->after = last;
	}
}

static void page_free(struct events_page *p)
{
	if (p == NULL)
		return;
	p->core->book.feed.catching_up--;
	ava_log_close(p->log);
	buf_fini(&p->lines);
	free(p->root);
	free(p->late);
	free(p);
}

static void page_done(struct job *job)
{
	struct events_page *p = CONTAINER_OF(job, struct events_page, job);
	struct op_cursor *cur = p->cur;

	if (cur) {
		cur->reading = false;
		cur->wake(cur->user);
	} else {
		page_free(p);
	}
}

static int page_begin(struct op_cursor *cur, struct ava_error *err)
{
	int rv;

	buf_reset(&cur->page->lines);
	cur->page->at = 0;
	cur->page->brief = cur->core->book.feed.catching_up > OPEN_MAX;
	rv = job_begin_short(cur->core, &cur->page->job, err);
	cur->reading = rv == 0;
	return rv;
}

/* Reads older events from the files; later ones come from the feed. */
static int open_files(struct op_cursor *cur, struct ava_error *err)
{
	struct events_page *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(err, AVA_ENOMEM, "out of memory");
	p->core = cur->core;
	p->core->book.feed.catching_up++;
	p->cur = cur;
	memcpy(p->run, cur->run, sizeof(p->run));
	p->after = MAX(cur->last, cur->began);
	p->cap = cur->run[0] ? 0 : logbook_shown(&cur->core->book) + 1;
	p->job.run = events_page_read;
	p->job.done = page_done;
	if (cur->other && asprintf(&p->root, "%s/" READER_ROOT, p->core->root) < 0) {
		p->root = NULL;
		p->no_memory = true;
	}
	buf_init(&p->lines, (size_t)1 << 30);
	cur->page = p;
	if (p->cap > 0)
		logbook_late(&cur->core->book, NULL, p->cap - 1, add_late, p);
	return p->no_memory ? err_set(err, AVA_ENOMEM, "out of memory") : page_begin(cur, err);
}

/* ---- the run of another machine: its copy is brought up to date every now and then, and what is
 * new in it is read as from any file */

static void other_fetched(int rv, const struct reader_run *run, const struct ava_error *err,
			  void *user)
{
	struct op_cursor *cur = user;

	cur->fetching = false;
	cur->other_rv = rv;
	if (rv == 0 && run->bytes != cur->other_bytes) {
		cur->other_bytes = run->bytes;
		cur->other_rv = open_files(cur, NULL);
	}
	cur->wake(cur->user);
}

static void other_look(void *user)
{
	struct op_cursor *cur = user;

	cur->other_due = false;
	if (supervisor_find(&cur->core->sup, cur->run)) { /* it came here: who comes again has it */
		cur->fetching = false;
		cur->other_rv = AVA_ENOENT;
		cur->wake(cur->user);
		return;
	}
	cur->fetching = true;
	reader_fetch(cur->core->service.reader, cur->run, other_fetched, cur);
}

static struct op_cursor *other_open(struct op_cursor *cur, struct ava_error *err)
{
	cur->other = os_timer_new(cur->core->loop, other_look, cur);
	if (!cur->other) {
		err_set(err, AVA_ENOMEM, "out of memory");
		ops_events_close(cur);
		return NULL;
	}
	cur->fetching = true; /* `wake` is not called from here */
	os_timer_set(cur->other, 0);
	return cur;
}

struct op_cursor *ops_events_open(struct core *c, const char *run, uint64_t after,
				  void (*wake)(void *user), void *user, struct ava_error *err)
{
	bool other = run && others_may(c, run);
	struct op_cursor *cur;

	if (run && !other && core_known(c, run, err) != 0)
		return NULL;
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
	list_init(&cur->reader.node);
	cur->after = cur->last = after == UINT64_MAX ? 0 : after;
	if (other)
		return other_open(cur, err);
	feed_join(&c->book.feed, &cur->reader);
	if (after == UINT64_MAX)
		cur->began = logbook_shown(&c->book);
	if (after != UINT64_MAX && open_files(cur, err) != 0) {
		ops_events_close(cur);
		return NULL;
	}
	return cur;
}

bool ops_event_is_of(const struct op_event *e, const char *session)
{
	size_t len = strlen(session);
	struct event_view v;

	return len == 0 || (event_view(e->line, e->line_len, &v) == 0 && v.session_id.len == len &&
			    memcmp(v.session_id.s, session, len) == 0);
}

void ops_events_close(struct op_cursor *cur)
{
	feed_leave(&cur->reader);
	os_timer_free(cur->other);
	if (cur->fetching)
		reader_drop(cur->core->service.reader, cur);
	if (cur->reading)
		cur->page->cur = NULL;
	else
		page_free(cur->page);
	free(cur);
}

bool ops_events_opening(const struct op_cursor *cur)
{
	return cur->reading || cur->fetching;
}

void ops_events_late(struct core *c, const struct op_cursor *cur, uint64_t upto,
		     void (*each)(uint64_t lsn, void *user), void *user)
{
	logbook_late(&c->book, cur ? &cur->reader : NULL, upto, each, user);
}

static void events_give(struct op_cursor *cur, uint64_t lsn, const char *type, size_t type_len,
			const char *line, size_t len, struct op_event *out)
{
	*out = (struct op_event){
		.lsn = lsn, .type = type, .type_len = type_len, .line = line, .line_len = len};
	if (lsn > cur->last)
		cur->last = lsn;
	if (cur->run[0] && type_len == 16 && memcmp(type, "SubagentComplete", 16) == 0)
		cur->ended = true;
}

/* 1; 0: the files are done, or being read; -1: there are none; -2: they cannot be read. */
static int next_from_files(struct op_cursor *cur, struct op_event *out)
{
	struct events_page *p = cur->page;
	struct event_view v;

	while (!cur->reading) {
		const char *line, *nl;

		if (p->at == p->lines.len) {
			if (p->rv == 1)
				return page_begin(cur, NULL) == 0 ? 0 : -2;
			if (p->rv != 0 && !p->missing)
				return -2;
			/* A missing file means that nothing was written yet. */
			cur->ended = p->missing && cur->run[0] && !cur->other &&
				     !supervisor_find(&cur->core->sup, cur->run);
			page_free(p);
			cur->page = NULL;
			return cur->ended ? -1 : 0;
		}
		line = p->lines.data + p->at;
		nl = memchr(line, '\n', p->lines.len - p->at);
		p->at += (size_t)(nl - line) + 1;
		if (event_view(line, (size_t)(nl - line), &v) == 0) {
			events_give(cur, v.lsn, v.type.s, v.type.len, line, (size_t)(nl - line),
				    out);
			return 1;
		}
	}
	return 0;
}

/* As ops_events_next, of the run of another machine. */
static int other_next(struct op_cursor *cur, struct op_event *out)
{
	int rv;

	if (cur->fetching)
		return 0;
	if (cur->other_rv != 0)
		return cur->other_rv == AVA_ENOENT ? -1 : -2;
	rv = cur->page ? next_from_files(cur, out) : 0;
	if (rv == 0 && !cur->page && !cur->ended && !cur->other_due) {
		cur->other_due = true;
		os_timer_set(cur->other, READER_POLL);
	}
	return rv;
}

static bool wanted(const struct op_cursor *cur, const struct feed_line *l)
{
	if (cur->run[0]) /* skip what the files gave meanwhile */
		return l->in_run && strcmp(l->run, cur->run) == 0 && l->lsn > cur->last;
	/* The day's copy of a run's event is a duplicate. */
	return (l->in_run || !l->run[0]) && l->lsn > cur->after;
}

int ops_events_next(struct op_cursor *cur, struct op_event *out)
{
	const struct feed_line *l;
	int rv = 0;

	if (cur->ended)
		return -1;
	if (cur->other)
		return other_next(cur, out);
	if (cur->page)
		rv = next_from_files(cur, out);
	if (rv != 0 || cur->reading)
		return rv;
	while ((rv = feed_next(&cur->core->book.feed, &cur->reader, &l)) != 0) {
		struct event_view v;

		if (rv < 0) { /* the ring dropped lines that the reader lacks */
			return open_files(cur, NULL) == 0 ? 0 : -2;
		}
		if (!wanted(cur, l) || event_view(l->bytes, l->len, &v) != 0)
			continue;
		events_give(cur, l->lsn, v.type.s, v.type.len, l->bytes, l->len, out);
		return 1;
	}
	/* A run's last event is in the feed before the run stops being live, so a client that asked
	 * for later events has everything. */
	return cur->run[0] && !supervisor_find(&cur->core->sup, cur->run) ? -1 : 0;
}
