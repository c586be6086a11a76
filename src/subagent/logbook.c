/* Drafts and outboxes. The happy path: a run writes an event, its outbox has
 * nothing in flight, the draft becomes one journal_commit, the callback
 * publishes its lines and calls who waited.
 *
 * When the disk fails: the journal answers AVA_EUNKNOWN only after it has made
 * sure that the commit can never happen later (ABORT), so the same lines are
 * written again with fresh lsn. Until that holds the outbox is stalled and the
 * run stands still; nothing is lost and nothing is done twice. */
#include "subagent/logbook.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "codec/jsonl.h"
#include "os/loop.h"

#define PART_MAX     (48u << 20)
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 5000
#define LATE_MS      1000 /* an event that is longer on its way holds up nobody */

/* ---- the daily log */

static void day_path(const char *day, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "logs/ava/%s.jsonl", day);
}

/* The numbers of the last whole event in a file; 0 when there is none. */
static void last_numbers(struct logbook *lb, const char *path, uint64_t *seq, uint64_t *lsn)
{
	char live[LOGBOOK_PATH + 16], tail[65536 + 1];
	struct stat st;
	int fd;

	*seq = *lsn = 0;
	fd = sys->openat(lb->root_fd, journal_view_path(lb->journal, path, live, sizeof(live)),
			 O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sys->fstat(fd, &st) == 0) {
		size_t want = (size_t)MIN(st.st_size, (off_t)sizeof(tail) - 1), at = 0, len;
		const char *line;
		struct event_view v;

		if (sys_read_all(fd, tail, want, st.st_size - (off_t)want) == 0)
			while (jsonl_next(tail, want, &at, &line, &len) == 1)
				if (event_view(line, len, &v) == 0) {
					*seq = v.seq;
					*lsn = MAX(*lsn, v.lsn);
				}
	}
	sys->close(fd);
}

/* A journal that was removed counts from the beginning: no number of the logs
 * is given again. Runs may be ahead of the daily log by what they have written
 * since its last event. */
#define LSN_LEAP 1000000u

static void leap(struct logbook *lb, uint64_t lsn)
{
	struct journal_stats js;

	journal_stats(lb->journal, &js);
	if (lsn < js.lsn)
		return;
	lb->behind = true;
	for (uint64_t gap = lsn - js.lsn + LSN_LEAP; gap > 0;) {
		unsigned n = (unsigned)MIN(gap, (uint64_t)1 << 31);

		(void)journal_lsn(lb->journal, n);
		gap -= n;
	}
}

static void pick_day(struct logbook *lb, int64_t wall_ms)
{
	char today[11], path[LOGBOOK_PATH];
	uint64_t lsn;

	clock_local_date(wall_ms, today);
	/* A clock set back never reopens an older day. */
	if (strcmp(today, lb->day) <= 0)
		return;
	memcpy(lb->day, today, sizeof(today));
	day_path(lb->day, path);
	last_numbers(lb, path, &lb->day_seq, &lsn);
}

static void newest_day(const char *name, void *user)
{
	struct logbook *lb = user;

	if (strlen(name) >= 16 && strcmp(name + 10, ".jsonl") == 0 && name[4] == '-' &&
	    strncmp(name, lb->day, 10) > 0) {
		memcpy(lb->day, name, 10);
		lb->day[10] = 0;
	}
}

static void retry_fire(void *user);

/* Events below the first lsn of every draft that is still on its way are in
 * the feed, or never will be: readers of everything may have them. */
static void settle(struct logbook *lb)
{
	struct draft *first = LIST_FIRST(&lb->open, struct draft, open);

	if (lb->closed)
		return; /* the journal is */
	feed_settle(&lb->feed, first ? first->first_lsn : journal_lsn(lb->journal, 0));
	if (lb->feed.nheld > 0 && !lb->late_set) {
		os_timer_set(lb->late, LATE_MS);
		lb->late_set = true;
	}
}

uint64_t logbook_shown(struct logbook *lb)
{
	struct draft *first = LIST_FIRST(&lb->open, struct draft, open);
	uint64_t next = MAX(lb->feed.low, first ? first->first_lsn : journal_lsn(lb->journal, 0));

	return next > 0 ? next - 1 : 0;
}

static void late_fire(void *user)
{
	struct logbook *lb = user;
	int64_t now = os_now_ms(lb->loop);

	lb->late_set = false;
	LIST_EACH (&lb->open, n, tmp) {
		if (LIST_ENTRY(n, struct draft, open)->opened_ms > now - LATE_MS)
			break;
		list_del(n);
	}
	settle(lb);
}

int logbook_open(struct logbook *lb, struct journal *journal, struct os_loop *loop,
		 const struct redact *redact, int root_fd, struct ava_error *err)
{
	char path[LOGBOOK_PATH];
	uint64_t lsn;

	*lb = (struct logbook){.journal = journal,
			       .loop = loop,
			       .redact = redact,
			       .root_fd = root_fd,
			       .retry_ms = RETRY_MIN_MS};
	list_init(&lb->stalled);
	list_init(&lb->open);
	if (feed_init(&lb->feed) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	lb->retry = os_timer_new(loop, retry_fire, lb);
	lb->late = os_timer_new(loop, late_fire, lb);
	if (!lb->retry || !lb->late) {
		os_timer_free(lb->retry);
		os_timer_free(lb->late);
		feed_fini(&lb->feed);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	(void)sys->list(root_fd, "logs/ava", newest_day, lb);
	if (lb->day[0]) {
		day_path(lb->day, path);
		last_numbers(lb, path, &lb->day_seq, &lsn);
		leap(lb, lsn);
	}
	pick_day(lb, clock_wall_ms());
	settle(lb);
	return 0;
}

void logbook_close(struct logbook *lb)
{
	os_timer_free(lb->retry);
	os_timer_free(lb->late);
	feed_fini(&lb->feed);
}

/* ---- drafts */

struct draft *draft_new(struct logbook *lb)
{
	struct draft *d = calloc(1, sizeof(*d));

	if (d) {
		d->lb = lb;
		list_init(&d->node);
		list_init(&d->merged);
		list_init(&d->open);
	}
	return d;
}

void draft_free(struct draft *d)
{
	if (!d)
		return;
	LIST_EACH (&d->merged, n, tmp) {
		list_del(n);
		draft_free(LIST_ENTRY(n, struct draft, node));
	}
	for (unsigned i = 0; i < d->nparts; i++) {
		buf_fini(&d->parts[i]->bytes);
		free(d->parts[i]);
	}
	free(d->parts);
	if (!list_empty(&d->open)) { /* its numbers are burned */
		list_del(&d->open);
		settle(d->lb);
	}
	free(d);
}

/* Room for `more` parts in the table of `d`; false: too many, or no memory. */
static bool room_for(struct draft *d, unsigned more)
{
	unsigned cap = d->cap ? d->cap : 8;
	struct draft_part **grown;

	if (more > DRAFT_MAX_PARTS - d->nparts)
		return false;
	while (cap < d->nparts + more)
		cap *= 2;
	if (cap == d->cap)
		return true;
	grown = realloc(d->parts, cap * sizeof(*grown));
	if (!grown)
		return false;
	d->parts = grown;
	d->cap = cap;
	return true;
}

static struct draft_part *new_part(struct draft *d, enum draft_kind kind, const char *path)
{
	size_t len = strlen(path) + 1;
	struct draft_part *p = room_for(d, 1) ? calloc(1, sizeof(*p) + len) : NULL;

	if (!p) {
		d->failed = true;
		return NULL;
	}
	d->parts[d->nparts++] = p;
	p->kind = kind;
	memcpy(p->path, path, len);
	buf_init(&p->bytes, PART_MAX);
	return p;
}

struct buf *draft_part(struct draft *d, enum draft_kind kind, const char *path)
{
	struct draft_part *p;

	for (unsigned i = 0; i < d->nparts; i++)
		if (d->parts[i]->kind == kind && strcmp(d->parts[i]->path, path) == 0)
			return &d->parts[i]->bytes;
	p = new_part(d, kind, path);
	return p ? &p->bytes : NULL;
}

void draft_entry_id(struct draft *d, char out[20])
{
	snprintf(out, 20, "%08llx", (unsigned long long)journal_lsn(d->lb->journal, 1));
}

int draft_entry(struct draft *d, const char *path, const char *id, const struct buf *entry)
{
	struct draft_part *p = buf_check(entry) == 0 ? new_part(d, DRAFT_ENTRY, path) : NULL;

	if (!p || buf_add(&p->bytes, entry->data, entry->len) != 0) {
		d->failed = true;
		return AVA_ENOMEM;
	}
	snprintf(p->id, sizeof(p->id), "%s", id);
	return 0;
}

uint64_t draft_event(struct draft *d, const struct draft_where *where, struct event_head *head,
		     const struct buf *content, const struct event_meta *meta)
{
	struct logbook *lb = d->lb;
	char path[LOGBOOK_PATH];
	struct buf *b;

	head->wall_ms = clock_wall_ms();
	head->lsn = journal_lsn(lb->journal, 1);
	if (!d->first_lsn) {
		d->first_lsn = head->lsn;
		d->opened_ms = os_now_ms(lb->loop);
		list_add(&lb->open, &d->open);
	}
	if (where->run) {
		logbook_run_path(where->run, path);
		b = draft_part(d, DRAFT_RUN, path);
		head->seq = ++*where->run_seq;
		if (!b || event_encode(b, head, content->data, content->len, meta) != 0)
			d->failed = true;
	}
	if (where->day) {
		pick_day(lb, head->wall_ms);
		day_path(lb->day, path);
		b = draft_part(d, DRAFT_DAY, path);
		head->seq = ++lb->day_seq;
		if (!b || event_encode(b, head, content->data, content->len, meta) != 0)
			d->failed = true;
	}
	d->failed = d->failed || buf_check(content) != 0;
	return d->failed ? 0 : head->lsn;
}

int draft_catalog(struct draft *d, struct catalog_row *row)
{
	struct buf *b = draft_part(d, DRAFT_CATALOG, "catalog.jsonl");

	row->lsn = journal_lsn(d->lb->journal, 1);
	if (!b || catalog_encode(b, row) != 0)
		d->failed = true;
	return d->failed ? AVA_ENOMEM : 0;
}

static void publish(struct draft *d)
{
	for (unsigned i = 0; i < d->nparts; i++) {
		struct draft_part *p = d->parts[i];

		if (p->kind == DRAFT_RUN || p->kind == DRAFT_DAY)
			feed_publish(&d->lb->feed, p->bytes.data, p->bytes.len,
				     p->kind == DRAFT_RUN);
		if (d->lb->touched && !d->quiet && p->kind != DRAFT_PUT && p->kind != DRAFT_DROP)
			d->lb->touched(p->path, d->lb->touched_user);
	}
	list_del(&d->open);
	LIST_EACH (&d->merged, n, tmp)
		list_del(&LIST_ENTRY(n, struct draft, node)->open);
	settle(d->lb);
}

static void draft_done(int rv, void *user)
{
	struct draft *d = user;

	if (rv == 0)
		publish(d);
	d->done(rv, d->user);
	draft_free(d);
}

bool draft_failed(const struct draft *d)
{
	bool failed = d->failed;

	for (unsigned i = 0; i < d->nparts; i++)
		failed = failed || buf_check(&d->parts[i]->bytes) != 0;
	return failed;
}

static int draft_submit(struct draft *d, journal_done_fn done)
{
	static const enum journal_op_kind op_kinds[] = {
		[DRAFT_DAY] = JOURNAL_APPEND,      [DRAFT_RUN] = JOURNAL_APPEND,
		[DRAFT_MESSAGES] = JOURNAL_APPEND, [DRAFT_CATALOG] = JOURNAL_APPEND,
		[DRAFT_PUT] = JOURNAL_PUT,         [DRAFT_DROP] = JOURNAL_DROP,
		[DRAFT_ENTRY] = JOURNAL_ENTRY,
	};
	struct journal_op few[16], *ops = few;
	int rv;

	if (draft_failed(d))
		return AVA_ENOMEM;
	if (d->nparts > ARRAY_LEN(few))
		ops = calloc(d->nparts, sizeof(*ops));
	if (!ops)
		return AVA_ENOMEM;
	for (unsigned i = 0; i < d->nparts; i++) {
		struct draft_part *p = d->parts[i];

		ops[i] = (struct journal_op){
			.kind = op_kinds[p->kind],
			.path = p->path,
			.bytes = p->bytes.data,
			.len = p->bytes.len,
			.id = p->kind == DRAFT_ENTRY ? p->id : NULL,
		};
	}
	rv = journal_commit(d->lb->journal, ops, d->nparts, d->level, done, d);
	if (ops != few)
		free(ops);
	return rv;
}

int draft_commit(struct draft *d, enum journal_level level, void (*done)(int rv, void *user),
		 void *user, struct ava_error *err)
{
	int rv;

	d->level = level;
	d->done = done;
	d->user = user;
	rv = draft_submit(d, draft_done);
	if (rv != 0) {
		if (journal_health(d->lb->journal, err) == 0)
			err_set(err, rv, "%s", ava_strerror(rv));
		draft_free(d);
	}
	return rv;
}

/* ---- outboxes */

void outbox_init(struct outbox *b, struct logbook *lb)
{
	*b = (struct outbox){.lb = lb};
	list_init(&b->waiting);
	list_init(&b->stalled);
}

void outbox_fini(struct outbox *b)
{
	LIST_EACH (&b->waiting, n, tmp) {
		list_del(n);
		draft_free(LIST_ENTRY(n, struct draft, node));
	}
	list_del(&b->stalled);
}

bool outbox_empty(const struct outbox *b)
{
	return !b->flying && list_empty(&b->waiting);
}

/* Put `lsn`, and `seq` unless 0, into the event or row that begins a line. */
static void put_numbers(struct buf *out, const char *line, size_t len, uint64_t lsn, uint64_t seq)
{
	const char *at = memmem(line, MIN(len, 80), "\"lsn\":", 6), *rest = line;

	if (at) {
		rest = at + 6 + strspn(at + 6, "0123456789");
		buf_add(out, line, (size_t)(at + 6 - line));
		buf_addf(out, "%llu", (unsigned long long)lsn);
	}
	if (at && seq && strncmp(rest, ",\"seq\":", 7) == 0) {
		buf_addf(out, ",\"seq\":%llu", (unsigned long long)seq);
		rest += 7 + strspn(rest + 7, "0123456789");
	}
	buf_add(out, rest, len - (size_t)(rest - line));
	buf_addc(out, '\n');
}

static uint64_t line_lsn(const char *line, size_t len)
{
	const char *at = memmem(line, MIN(len, 80), "\"lsn\":", 6);

	return at ? strtoull(at + 6, NULL, 10) : 0;
}

static bool numbered(const struct draft_part *p)
{
	return p->kind == DRAFT_DAY || p->kind == DRAFT_RUN || p->kind == DRAFT_CATALOG;
}

/* Has it lines of files that others write to? */
static bool shared(const struct draft *d)
{
	for (unsigned i = 0; i < d->nparts; i++)
		if (d->parts[i]->kind == DRAFT_DAY || d->parts[i]->kind == DRAFT_CATALOG)
			return true;
	return false;
}

/* Lines of a draft that get fresh numbers: those from `from` on. */
struct renumbering {
	uint64_t from, to, shift;
	bool all; /* others of its run went before it under higher numbers */
};

static void find_range(const struct draft_part *p, struct renumbering *n)
{
	const char *line;
	size_t at = 0, len;

	while (jsonl_next(p->bytes.data, p->bytes.len, &at, &line, &len) == 1) {
		uint64_t lsn = line_lsn(line, len);

		if (lsn > 0 && (n->all || p->kind != DRAFT_RUN))
			n->from = MIN(n->from, lsn);
		n->to = MAX(n->to, lsn);
	}
}

/* The lines of `p` under their new numbers. False: no memory. */
static bool renumber_part(struct draft *d, const struct draft_part *p, const struct renumbering *n,
			  struct buf *fresh)
{
	char today[LOGBOOK_PATH];
	const char *line;
	size_t at = 0, len;
	bool same_day;

	day_path(d->lb->day, today);
	same_day = p->kind == DRAFT_DAY && strcmp(p->path, today) == 0;
	buf_init(fresh, PART_MAX);
	while (jsonl_next(p->bytes.data, p->bytes.len, &at, &line, &len) == 1) {
		uint64_t lsn = line_lsn(line, len);
		bool moves = lsn >= n->from;

		put_numbers(fresh, line, len, moves ? lsn + n->shift : lsn,
			    same_day && moves ? ++d->lb->day_seq : 0);
	}
	return buf_check(fresh) == 0;
}

/* A draft that was refused, or waited behind another one, goes into files that others
 * wrote to meanwhile, the daily log and the catalog: what of it stands there gets fresh numbers,
 * and all that follows in its run's own file, so that each file keeps its order and both copies of
 * an event their one lsn. The old numbers are unique too, so without memory they stay. */
static void renumber(struct outbox *b, struct draft *d, bool all)
{
	struct renumbering n = {.from = UINT64_MAX, .all = all};
	struct buf fresh[8];
	unsigned parts[8], nparts = 0;
	bool good = true;

	if (!all && !shared(d))
		return;
	for (unsigned i = 0; i < d->nparts; i++)
		if (numbered(d->parts[i]) && d->parts[i]->bytes.len > 0)
			find_range(d->parts[i], &n);
	if (n.from > n.to)
		return;
	n.shift = journal_lsn(d->lb->journal, (unsigned)(n.to - n.from + 1)) - n.from;
	for (unsigned i = 0; i < d->nparts && good; i++) {
		if (!numbered(d->parts[i]) || d->parts[i]->bytes.len == 0)
			continue;
		good = nparts < ARRAY_LEN(fresh);
		if (!good)
			break;
		parts[nparts] = i;
		good = renumber_part(d, d->parts[i], &n, &fresh[nparts++]);
	}
	for (unsigned i = 0; i < nparts; i++) {
		struct buf *old = &d->parts[parts[i]]->bytes;

		buf_fini(good ? old : &fresh[i]);
		if (good)
			*old = fresh[i];
	}
	if (good)
		b->numbered = n.to + n.shift;
	d->renewed = true;
}

static void outbox_pump(struct outbox *b);

static void stall(struct outbox *b, int code)
{
	b->stall_code = code;
	b->is_stalled = true;
	if (list_empty(&b->lb->stalled)) /* later ones do not put it off */
		os_timer_set(b->lb->retry, b->lb->retry_ms);
	list_del(&b->stalled);
	list_add(&b->lb->stalled, &b->stalled);
}

static void retry_fire(void *user)
{
	struct logbook *lb = user;
	struct list again;

	list_init(&again);
	list_splice(&again, &lb->stalled);
	lb->retry_ms = MIN(lb->retry_ms * 2, RETRY_MAX_MS);
	LIST_EACH (&again, n, tmp) {
		struct outbox *b = LIST_ENTRY(n, struct outbox, stalled);

		list_del(n);
		b->is_stalled = false;
		outbox_pump(b);
	}
}

static bool room_behind(struct buf *b, size_t len)
{
	bool failed = b->failed;
	int error = b->error;

	if (buf_reserve(b, len))
		return true;
	b->failed = failed; /* nothing was added: it is as it was */
	b->error = error;
	return false;
}

/* Entries are parts of their own. */
static struct draft_part *find_part(struct draft *d, const struct draft_part *like)
{
	for (unsigned i = 0; i < d->nparts && like->kind != DRAFT_ENTRY; i++)
		if (d->parts[i]->kind == like->kind && strcmp(d->parts[i]->path, like->path) == 0)
			return d->parts[i];
	return NULL;
}

/* Put `from` behind `to` in the same commit; false: no room for its parts, no
 * memory, or one of them cannot be written: both are as they were. What may
 * fail comes first: the table, then room behind each part that is there. */
static bool draft_merge(struct draft *to, struct draft *from)
{
	unsigned fresh = 0, kept = 0;

	if (draft_failed(to) || draft_failed(from))
		return false;
	for (unsigned i = 0; i < from->nparts; i++) {
		const struct draft_part *p = from->parts[i];
		struct draft_part *there = find_part(to, p);

		fresh += there == NULL;
		if (there && !room_behind(&there->bytes, p->bytes.len))
			return false;
	}
	if (!room_for(to, fresh))
		return false;
	for (unsigned i = 0; i < from->nparts; i++) {
		struct draft_part *p = from->parts[i], *there = find_part(to, p);

		if (there) {
			buf_add(&there->bytes, p->bytes.data, p->bytes.len);
			from->parts[kept++] = p;
		} else {
			to->parts[to->nparts++] = p;
		}
	}
	from->nparts = kept;
	to->level = MAX(to->level, from->level);
	to->late = true;
	list_add(&to->merged, &from->node);
	return true;
}

static void finish(struct draft *d)
{
	if (d->done)
		d->done(0, d->user);
	draft_free(d);
}

static void outbox_done(int rv, void *user)
{
	struct draft *d = user;
	struct outbox *b = d->box;
	struct list ended;

	b->flying = NULL;
	if (rv != 0) {
		list_add_front(&b->waiting, &d->node);
		stall(b, rv);
		return;
	}
	b->lb->retry_ms = RETRY_MIN_MS;
	b->stall_code = 0;
	publish(d);
	list_init(&ended);
	list_add(&ended, &d->node);
	list_splice(&ended, &d->merged);
	outbox_pump(b);
	if (outbox_empty(b) && b->drained) {
		void (*drained)(void *) = b->drained;

		b->drained = NULL;
		drained(b->drained_user);
	}
	/* Last: the one who waits may end the run, and the box with it. */
	LIST_EACH (&ended, n, tmp) {
		list_del(n);
		finish(LIST_ENTRY(n, struct draft, node));
	}
}

/* What went before it has higher numbers: so has all of it. */
static void keep_order(struct outbox *b, struct draft *d)
{
	if (!d->renewed && d->first_lsn > 0 && d->first_lsn < b->numbered)
		renumber(b, d, true);
}

void outbox_refresh(struct outbox *b, struct draft *d)
{
	keep_order(b, d);
	renumber(b, d, false);
	d->renewed = true;
}

static void outbox_pump(struct outbox *b)
{
	struct draft *d = LIST_FIRST(&b->waiting, struct draft, node);
	int rv;

	if (!d || b->flying || b->is_stalled || b->lb->closed)
		return;
	list_del(&d->node);
	keep_order(b, d);
	LIST_EACH (&b->waiting, n, tmp) {
		struct list *from = n;

		list_del(from);
		keep_order(b, LIST_ENTRY(from, struct draft, node));
		if (!draft_merge(d, LIST_ENTRY(from, struct draft, node))) {
			list_add_front(&b->waiting, from);
			break;
		}
	}
	if (d->late)
		renumber(b, d, false);
	d->late = true; /* should it come here again */
	b->flying = d;
	rv = draft_submit(d, outbox_done);
	if (rv != 0) {
		b->flying = NULL;
		list_add_front(&b->waiting, &d->node);
		stall(b, rv);
	}
}

void outbox_put(struct outbox *b, struct draft *d, enum journal_level level,
		void (*done)(int rv, void *user), void *user)
{
	d->level = level;
	d->done = done;
	d->user = user;
	d->box = b;
	d->late = !outbox_empty(b) || b->is_stalled;
	list_add(&b->waiting, &d->node);
	outbox_pump(b);
}
