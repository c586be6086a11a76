/* Drafts and outboxes. The happy path: a run writes an event, its outbox has
 * nothing in flight, the draft becomes one journal_commit, the callback
 * publishes its lines and calls `done`.
 *
 * A draft holds its events without numbers, each rendered from its type on. When it
 * is committed, every line gets its time, lsn and seq in the order of the journal's
 * queue, the run's chained head goes on, and draft_number_fn fills in late values.
 *
 * When the disk fails: the journal answers AVA_EUNKNOWN only after it has made
 * sure that the commit can never happen later (ABORT). The drafts of an outbox go
 * back to its front, the counts of their run go back to what is durable, and the
 * drafts get new numbers. Until a commit succeeds the outbox is stalled and the run
 * stands still; nothing is lost and nothing is done twice. The caller of
 * draft_commit is told the code instead. */
#include "subagent/logbook.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "codec/jscan.h"
#include "codec/redact.h"
#include "event/event.h"
#include "journal/files.h"
#include "os/loop.h"
#include "provider/head.h"

#define PART_MAX     (48u << 20)
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 5000
#define LATE_MS      1000        /* longest time that logbook_shown waits for a commit */
#define JOIN_MAX     (32u << 20) /* bytes of drafts that go in one commit */

/* ---- the daily log */

static void day_path(const char *day, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "logs/ava/%s.jsonl", day);
}

/* Numbers of the last whole event among the last `want` bytes: 1; 0: none begins there; -1: the
 * file cannot be read, errno says why. */
static int last_event_in(int fd, off_t size, size_t want, uint64_t *seq, uint64_t *lsn)
{
	char *tail = malloc(want + 1);
	size_t at = 0, len;
	const char *line;
	struct event_view v;
	int found = tail && sys_read_all(fd, tail, want, size - (off_t)want) == 0 ? 0 : -1;

	while (found >= 0 && jsonl_next(tail, want, &at, &line, &len) == 1)
		if (event_view(line, len, &v) == 0) {
			*seq = v.seq;
			*lsn = MAX(*lsn, v.lsn);
			found = 1;
		}
	free(tail);
	return found;
}

/* The numbers of the last whole event in a file, whose line may be of any length; 0 when there is
 * none, or no file of ours. A file that is there and unreadable is an error: its numbers would be
 * given again. */
static int last_numbers(struct logbook *lb, const char *path, uint64_t *seq, uint64_t *lsn,
			struct ava_error *err)
{
	char live[LOGBOOK_PATH + 16];
	int fd, found = 0, rv = 0;
	struct stat st;

	*seq = *lsn = 0;
	path = journal_view_path(lb->journal, path, live, sizeof(live));
	fd = files_open(lb->root_fd, path, O_RDONLY);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EIO))
		return err_sys(err, "open %s", path);
	if (fd < 0)
		return 0;
	if (sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		for (size_t want = 65536; found == 0; want *= 8) {
			found = last_event_in(fd, st.st_size, (size_t)MIN(st.st_size, (off_t)want),
					      seq, lsn);
			if ((off_t)want >= st.st_size)
				break;
		}
	if (found < 0)
		rv = err_sys(err, "read %s", path);
	sys->close(fd);
	return rv;
}

/* A removed journal would count from the beginning: leap over the numbers in the
 * logs, so that none is given twice. Run files may be ahead of the daily log by
 * what they got since its last event, hence so far. */
#define LSN_LEAP 1000000u

static bool leap(struct logbook *lb, uint64_t lsn, uint64_t further)
{
	struct journal_stats js;

	journal_stats(lb->journal, &js);
	if (lsn < js.lsn)
		return false;
	for (uint64_t gap = lsn - js.lsn + further; gap > 0;) {
		unsigned n = (unsigned)MIN(gap, (uint64_t)1 << 31);

		(void)journal_lsn(lb->journal, n);
		gap -= n;
	}
	return true;
}

void logbook_leap(struct logbook *lb, uint64_t lsn)
{
	(void)leap(lb, lsn, 1);
}

static int pick_day(struct logbook *lb, int64_t wall_ms, struct ava_error *err)
{
	char today[11], path[LOGBOOK_PATH];
	uint64_t seq, lsn;
	int rv;

	clock_local_date(wall_ms, today);
	/* A clock set back never reopens an older day. */
	if (strcmp(today, lb->day) <= 0)
		return 0;
	day_path(today, path);
	rv = last_numbers(lb, path, &seq, &lsn, err);
	if (rv != 0)
		return rv;
	memcpy(lb->day, today, sizeof(today));
	lb->day_seq = seq;
	return 0;
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

uint64_t logbook_shown(struct logbook *lb)
{
	uint64_t next = journal_lsn(lb->journal, 0);

	LIST_EACH (&lb->flying, n, tmp) {
		struct draft *d = LIST_ENTRY(n, struct draft, flight);

		if (d->sent_ms > os_now_ms(lb->loop) - LATE_MS) {
			next = d->first_lsn;
			break;
		}
	}
	return next > 0 ? next - 1 : 0;
}

int logbook_open(struct logbook *lb, struct journal *journal, struct os_loop *loop,
		 const struct redact *redact, int root_fd, struct ava_error *err)
{
	char path[LOGBOOK_PATH];
	uint64_t lsn;
	int rv = 0;

	*lb = (struct logbook){.journal = journal,
			       .loop = loop,
			       .redact = redact,
			       .root_fd = root_fd,
			       .retry_ms = RETRY_MIN_MS};
	list_init(&lb->stalled);
	list_init(&lb->flying);
	list_init(&lb->feed.readers);
	lb->feed.ring = calloc(FEED_MAX_LINES, sizeof(*lb->feed.ring));
	lb->retry = lb->feed.ring ? os_timer_new(loop, retry_fire, lb) : NULL;
	if (!lb->retry) {
		feed_fini(&lb->feed);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	(void)sys->list(root_fd, "logs/ava", newest_day, lb);
	if (lb->day[0]) {
		day_path(lb->day, path);
		rv = last_numbers(lb, path, &lb->day_seq, &lsn, err);
		lb->behind = leap(lb, lsn, LSN_LEAP) || lb->behind;
	}
	if (rv == 0)
		rv = pick_day(lb, clock_wall_ms(), err);
	if (rv != 0)
		logbook_close(lb);
	return rv;
}

void logbook_close(struct logbook *lb)
{
	os_timer_free(lb->retry);
	nameset_fini(&lb->heads);
	feed_fini(&lb->feed);
}

/* ---- drafts */

/* An event or a catalog row that has no numbers yet. */
struct draft_line {
	struct draft_part *run, *day; /* files that the event goes into; NULL: none */
	struct draft_part *catalog;
	struct run_log *log; /* log of `run`, or of a catalog row's run; NULL: none */
	struct run_log before;
	size_t at, len;                          /* place in draft.rest */
	size_t run_at, run_len, day_at, day_len; /* places in `run` and `day`, once numbered */
	draft_number_fn number;
	void *number_user;
};

struct draft *draft_new(struct logbook *lb)
{
	struct draft *d = calloc(1, sizeof(*d));

	if (d) {
		d->lb = lb;
		list_init(&d->node);
		list_init(&d->flight);
		buf_init(&d->rest, PART_MAX);
	}
	return d;
}

void draft_free(struct draft *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->nparts; i++) {
		buf_fini(&d->parts[i]->bytes);
		free(d->parts[i]);
	}
	free(d->parts);
	free(d->lines);
	buf_fini(&d->rest);
	list_del(&d->node);
	list_del(&d->flight);
	free(d);
}

static struct draft_part *part_new(struct draft *d, enum draft_kind kind, const char *path)
{
	size_t len = strlen(path) + 1;
	struct draft_part *p = NULL;

	if (d->nparts < DRAFT_MAX_PARTS && ARRAY_ROOM(d->parts, d->cap, d->nparts + 1))
		p = calloc(1, sizeof(*p) + len);
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

static struct draft_part *logbook_part_of(struct draft *d, enum draft_kind kind, const char *path)
{
	for (unsigned i = 0; i < d->nparts; i++)
		if (d->parts[i]->kind == kind && strcmp(d->parts[i]->path, path) == 0)
			return d->parts[i];
	return part_new(d, kind, path);
}

struct buf *draft_part(struct draft *d, enum draft_kind kind, const char *path)
{
	struct draft_part *p = logbook_part_of(d, kind, path);

	return p ? &p->bytes : NULL;
}

void draft_entry_id(struct draft *d, char out[20])
{
	snprintf(out, 20, "%08llx", (unsigned long long)journal_lsn(d->lb->journal, 1));
}

int draft_entry(struct draft *d, const char *path, const char *id, const struct buf *entry)
{
	struct draft_part *p = buf_check(entry) == 0 ? part_new(d, DRAFT_ENTRY, path) : NULL;
	const struct redact *redact = d->lb->redact;

	if (!p || (redact ? redact_json(redact, &p->bytes, entry->data, entry->len)
			  : buf_add(&p->bytes, entry->data, entry->len)) < 0) {
		d->failed = true;
		return AVA_ENOMEM;
	}
	snprintf(p->id, sizeof(p->id), "%s", id);
	return 0;
}

/* NULL: no memory. */
static struct draft_line *logbook_line_new(struct draft *d)
{
	if (!ARRAY_ROOM(d->lines, d->lines_cap, d->nlines + 1)) {
		d->failed = true;
		return NULL;
	}
	d->lines[d->nlines] = (struct draft_line){.at = d->rest.len};
	return &d->lines[d->nlines++];
}

int draft_event(struct draft *d, const struct draft_where *where, const struct event_head *head,
		const struct buf *content, const struct event_meta *meta)
{
	struct draft_line *l = logbook_line_new(d);
	char path[LOGBOOK_PATH];

	if (!l)
		return AVA_ENOMEM;
	l->number = where->number;
	l->number_user = where->number_user;
	if (where->run) {
		logbook_run_path(where->run, path);
		l->run = logbook_part_of(d, DRAFT_RUN, path);
		l->log = where->log;
	}
	if (where->day) {
		day_path(d->lb->day, path);
		l->day = logbook_part_of(d, DRAFT_DAY, path);
	}
	if (event_rest(&d->rest, head, content->data, content->len, meta) != 0 ||
	    buf_check(content) != 0)
		d->failed = true;
	l->len = d->rest.len - l->at;
	return d->failed ? AVA_ENOMEM : 0;
}

int draft_catalog(struct draft *d, const struct catalog_row *row, struct run_log *log)
{
	struct draft_line *l = logbook_line_new(d);

	if (!l)
		return AVA_ENOMEM;
	l->catalog = logbook_part_of(d, DRAFT_CATALOG, "catalog.jsonl");
	l->log = log;
	if (catalog_encode(&d->rest, row) != 0)
		d->failed = true;
	l->len = d->rest.len - l->at;
	return d->failed ? AVA_ENOMEM : 0;
}

bool draft_failed(const struct draft *d)
{
	bool failed = d->failed || buf_check(&d->rest) != 0;

	for (unsigned i = 0; i < d->nparts; i++)
		failed = failed || buf_check(&d->parts[i]->bytes) != 0;
	return failed;
}

int draft_next(const struct draft *d, unsigned *i, struct buf *line, struct event_view *v)
{
	while (*i < d->nlines && !d->lines[*i].run)
		++*i;
	if (*i == d->nlines)
		return 0;
	buf_reset(line);
	event_begin(line, 0, 0, 0);
	if (buf_add(line, d->rest.data + d->lines[*i].at, d->lines[*i].len) != 0)
		return AVA_ENOMEM;
	++*i;
	return event_view(line->data, line->len, v) == 0 ? 1 : AVA_ECORRUPT;
}

/* ---- numbers */

/* A row with its lsn, and the size of the run's file if `l` has its log. Keys can be searched
 * as text, because quotes in strings are escaped. */
static void number_row(struct buf *out, const struct draft_line *l, const char *row, uint64_t lsn)
{
	const char *end = row + l->len, *at = (char *)memmem(row, l->len, "\"lsn\":", 6) + 6;
	const char *bytes = (char *)memmem(row, l->len, ",\"bytes\":", 9) + 9;

	buf_add(out, row, (size_t)(at - row));
	buf_addf(out, "%llu", (unsigned long long)lsn);
	at += strspn(at, "0123456789");
	if (l->log) {
		buf_add(out, at, (size_t)(bytes - at));
		buf_addf(out, "%lld", (long long)l->log->bytes);
		at = bytes + strspn(bytes, "0123456789");
	}
	buf_add(out, at, (size_t)(end - at));
}

/* head' = SHA-256(head || line). */
void run_log_add(struct run_log *log, uint64_t seq, const char *line, size_t len)
{
	struct hash_sha256 h;

	hash_sha256_init(&h);
	hash_sha256_add(&h, log->head, sizeof(log->head));
	hash_sha256_add(&h, line, len);
	hash_sha256_end(&h, log->head);
	log->bytes += (int64_t)len;
	log->seq = seq;
}

void run_log_hex(const struct run_log *log, char *out)
{
	for (unsigned i = 0; i < sizeof(log->head); i++) {
		*out++ = "0123456789abcdef"[log->head[i] >> 4];
		*out++ = "0123456789abcdef"[log->head[i] & 15];
	}
}

static int number_line(struct draft *d, struct draft_line *l, uint64_t lsn, int64_t wall_ms)
{
	char *rest = d->rest.data + l->at;
	struct buf *b;

	if (l->catalog) {
		b = &l->catalog->bytes;
		number_row(b, l, rest, lsn);
		if (l->log && l->log->row == 0)
			l->log->row = lsn;
		return buf_check(b);
	}
	if (l->number)
		l->number(rest, l->len, l->number_user);
	if (l->run) {
		uint64_t seq = l->log->seq + 1;

		b = &l->run->bytes;
		l->before = *l->log;
		l->run_at = b->len;
		event_begin(b, wall_ms, lsn, seq);
		if (buf_add(b, rest, l->len) != 0)
			return AVA_ENOMEM;
		run_log_add(l->log, seq, b->data + l->run_at, b->len - l->run_at);
		l->run_len = b->len - l->run_at;
	}
	if (l->day) {
		b = &l->day->bytes;
		l->day_at = b->len;
		event_begin(b, wall_ms, lsn, ++d->lb->day_seq);
		if (buf_add(b, rest, l->len) != 0)
			return AVA_ENOMEM;
		l->day_len = b->len - l->day_at;
	}
	return 0;
}

/* Every line of `d` gets its numbers. AVA_ENOMEM: some may have. */
static int draft_number(struct draft *d, int64_t wall_ms)
{
	int rv = 0;

	for (unsigned i = 0; i < d->nparts; i++)
		if (d->parts[i]->kind == DRAFT_DAY) /* the path keeps its length */
			day_path(d->lb->day, d->parts[i]->path);
	for (d->numbered = 0; rv == 0 && d->numbered < d->nlines; d->numbered++)
		rv = number_line(d, &d->lines[d->numbered], journal_lsn(d->lb->journal, 1),
				 wall_ms);
	return rv;
}

/* Takes the numbers back from `drafts`, and the counts of their runs back to what is durable. */
static void unnumber(struct list *drafts)
{
	for (struct list *n = drafts->prev; n != drafts; n = n->prev) {
		struct draft *d = LIST_ENTRY(n, struct draft, node);

		for (; d->numbered > 0; d->numbered--) {
			struct draft_line *l = &d->lines[d->numbered - 1];

			if (l->run)
				*l->log = l->before;
		}
		for (unsigned i = 0; i < d->nparts; i++)
			if (d->parts[i]->kind <= DRAFT_CATALOG)
				buf_reset(&d->parts[i]->bytes);
	}
}

/* ---- commits */

/* Puts a head before what refers to it. It goes again with each commit until one is durable: a
 * commit may not lean on another one in flight, which the disk may refuse alone. */
static int draft_put_head(struct draft *d, struct slice name, struct ava_error *err)
{
	struct hash_sha256 prefix;
	char path[HEAD_PATH];
	struct draft_part *p;
	unsigned before = d->nparts;
	bool failed = d->failed;
	int rv = AVA_ENOMEM;

	head_path(name, path);
	if (nameset_has(&d->lb->heads, path + strlen("heads/")))
		return 0;
	p = nameset_add(&d->lb->heads, path) == 0 ? logbook_part_of(d, DRAFT_PUT, path) : NULL;
	if (d->nparts > before)
		rv = head_add(&p->bytes, d->lb->root_fd, name, &prefix, err);
	else if (p)
		rv = 0;
	d->failed = failed; /* the draft is whole without it: it is tried again with the commit */
	if (rv != 0 && d->nparts > before) { /* an empty part must not go */
		buf_fini(&p->bytes);
		free(p);
		d->nparts--;
	} else if (d->nparts > before) {
		memmove(d->parts + 1, d->parts, before * sizeof(struct draft_part *));
		d->parts[0] = p;
	}
	return rv;
}

int draft_heads_of(struct draft *d, const struct buf *lines, struct ava_error *err)
{
	struct slice name;
	size_t at = 0;
	int rv = 0;

	while (rv == 0 && head_next(lines->data, lines->len, &at, &name))
		rv = draft_put_head(d, name, err);
	return rv;
}

static int draft_heads(struct draft *d)
{
	int rv = 0;

	for (unsigned i = 0; rv == 0 && i < d->nparts; i++) {
		const struct draft_part *p = d->parts[i];

		if (p->kind == DRAFT_MESSAGES)
			rv = draft_heads_of(d, &p->bytes, NULL);
		while (d->parts[i] != p)
			i++;
	}
	return rv;
}

/* The drafts get their numbers and go as one commit, in order. Negative: nothing is
 * committed and the drafts have no numbers. */
static int submit(struct logbook *lb, struct list *drafts, journal_done_fn done, void *user)
{
	static const enum journal_op_kind op_kinds[] = {
		[DRAFT_DAY] = JOURNAL_APPEND,     [DRAFT_RUN] = JOURNAL_APPEND,
		[DRAFT_CATALOG] = JOURNAL_APPEND, [DRAFT_MESSAGES] = JOURNAL_APPEND,
		[DRAFT_PUT] = JOURNAL_PUT,        [DRAFT_DROP] = JOURNAL_DROP,
		[DRAFT_ENTRY] = JOURNAL_ENTRY,
	};
	enum journal_level level = JOURNAL_RIDE;
	struct journal_op few[16], *ops = few;
	int64_t wall_ms = clock_wall_ms();
	unsigned n = 0, at = 0;
	bool failed = false;
	uint64_t day_seq;
	int rv = 0;

	LIST_EACH (drafts, node, tmp) {
		struct draft *d = LIST_ENTRY(node, struct draft, node);

		failed = failed || draft_failed(d) || draft_heads(d) != 0;
		n += d->nparts;
		level = MAX(level, d->level);
	}
	if (!failed && n > ARRAY_LEN(few))
		ops = malloc(n * sizeof(*ops));
	if (failed || !ops)
		return AVA_ENOMEM;
	rv = pick_day(lb, wall_ms, NULL);
	day_seq = lb->day_seq;
	LIST_EACH (drafts, node, tmp) {
		struct draft *d = LIST_ENTRY(node, struct draft, node);

		d->first_lsn = journal_lsn(lb->journal, 0);
		rv = rv == 0 ? draft_number(d, wall_ms) : rv;
		for (unsigned i = 0; i < d->nparts; i++) {
			const struct draft_part *p = d->parts[i];

			ops[at++] = (struct journal_op){
				.kind = op_kinds[p->kind],
				.path = p->path,
				.bytes = p->bytes.data,
				.len = p->bytes.len,
				.id = p->kind == DRAFT_ENTRY ? p->id : NULL,
			};
		}
	}
	if (rv == 0)
		rv = journal_commit(lb->journal, ops, n, level, done, user);
	if (ops != few)
		free(ops);
	if (rv != 0) {
		lb->day_seq = day_seq;
		unnumber(drafts);
		return rv;
	}
	LIST_EACH (drafts, node, tmp) {
		struct draft *d = LIST_ENTRY(node, struct draft, node);

		d->sent_ms = os_now_ms(lb->loop);
		list_add(&lb->flying, &d->flight);
	}
	return 0;
}

/* Readers hear of the lines in the order of their numbers. */
static void logbook_publish(struct draft *d)
{
	struct logbook *lb = d->lb;

	list_del(&d->flight);
	for (unsigned i = 0; i < d->nlines; i++) {
		const struct draft_line *l = &d->lines[i];

		if (l->run)
			feed_publish(&lb->feed, l->run->bytes.data + l->run_at, l->run_len, true);
		if (l->day)
			feed_publish(&lb->feed, l->day->bytes.data + l->day_at, l->day_len, false);
	}
	for (unsigned i = 0; i < d->nparts; i++) {
		const struct draft_part *p = d->parts[i];

		if (p->kind == DRAFT_PUT && strncmp(p->path, "heads/", 6) == 0)
			(void)nameset_add(&lb->heads, p->path + 6); /* no memory: it goes again */
		else if (p->kind != DRAFT_PUT && p->kind != DRAFT_DROP && lb->touched && !d->quiet)
			lb->touched(p->path, lb->touched_user);
	}
}

void logbook_late(struct logbook *lb, const struct feed_reader *r, uint64_t upto, late_fn each,
		  void *user)
{
	for (uint64_t at = r ? MAX(r->at, lb->feed.first) : lb->feed.next; at < lb->feed.next;
	     at++) {
		const struct feed_line *l = feed_place(&lb->feed, at);

		if (l->lsn <= upto && (l->in_run || !l->run[0]))
			each(l->lsn, user);
	}
	LIST_EACH (&lb->flying, n, tmp) {
		const struct draft *d = LIST_ENTRY(n, struct draft, flight);

		for (unsigned i = 0; i < d->nlines && d->first_lsn + i <= upto; i++)
			if (!d->lines[i].catalog)
				each(d->first_lsn + i, user);
	}
}

void draft_pass(struct draft *d, int rv)
{
	if (d->done)
		d->done(rv, d->user);
	draft_free(d);
}

static void draft_saved(struct draft *d)
{
	if (d->lb->gate)
		d->lb->gate(d, d->lb->gate_user);
	else
		draft_pass(d, 0);
}

static void draft_done(int rv, void *user)
{
	struct draft *d = user;
	struct list alone;

	if (rv == 0) {
		logbook_publish(d);
		feed_wake(&d->lb->feed);
		draft_saved(d);
		return;
	}
	list_init(&alone);
	list_add(&alone, &d->node);
	unnumber(&alone);
	list_del(&d->flight);
	draft_pass(d, rv);
}

int draft_commit(struct draft *d, enum journal_level level, void (*done)(int rv, void *user),
		 void *user, struct ava_error *err)
{
	struct list alone;
	int rv;

	d->level = level;
	d->done = done;
	d->user = user;
	d->alone = true;
	list_init(&alone);
	list_add(&alone, &d->node);
	rv = submit(d->lb, &alone, draft_done, d);
	list_del(&d->node);
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
	list_init(&b->flying);
	list_init(&b->stalled);
}

void outbox_fini(struct outbox *b)
{
	LIST_EACH (&b->waiting, n, tmp)
		draft_free(LIST_ENTRY(n, struct draft, node));
	list_del(&b->stalled);
}

bool outbox_empty(const struct outbox *b)
{
	return list_empty(&b->flying) && list_empty(&b->waiting);
}

void outbox_drain(struct outbox *b, void (*drained)(void *user), void *user)
{
	if (outbox_empty(b)) {
		drained(user);
		return;
	}
	b->drained = drained;
	b->drained_user = user;
}

/* The disk refused the drafts in flight: they come first again, without numbers. */
static void outbox_stall(struct outbox *b, int code)
{
	unnumber(&b->flying);
	list_splice(&b->flying, &b->waiting);
	list_splice(&b->waiting, &b->flying);
	b->stall_code = code;
	b->is_stalled = true;
	if (list_empty(&b->lb->stalled)) /* a later stall does not put the retry off */
		os_timer_set(b->lb->retry, b->lb->retry_ms);
	list_del(&b->stalled);
	list_add(&b->lb->stalled, &b->stalled);
}

static void outbox_pump(struct outbox *b);

static void outbox_done(int rv, void *user)
{
	struct outbox *b = user;
	struct list ended;

	if (rv != 0) {
		LIST_EACH (&b->flying, n, tmp)
			list_del(&LIST_ENTRY(n, struct draft, node)->flight);
		outbox_stall(b, rv);
		return;
	}
	b->lb->retry_ms = RETRY_MIN_MS;
	b->stall_code = 0;
	LIST_EACH (&b->flying, n, tmp)
		logbook_publish(LIST_ENTRY(n, struct draft, node));
	feed_wake(&b->lb->feed);
	list_init(&ended);
	list_splice(&ended, &b->flying);
	outbox_pump(b);
	if (outbox_empty(b) && b->drained) {
		void (*drained)(void *) = b->drained;

		b->drained = NULL;
		drained(b->drained_user);
	}
	/* Last: a `done` may end the run, and the outbox with it. */
	LIST_EACH (&ended, n, tmp) {
		struct draft *d = LIST_ENTRY(n, struct draft, node);

		list_del(n);
		draft_saved(d);
	}
}

/* Waiting drafts go as one commit when none is in flight, as many as fit. */
static void outbox_pump(struct outbox *b)
{
	unsigned parts = 0;
	size_t bytes = 0;
	int rv;

	if (list_empty(&b->waiting) || !list_empty(&b->flying) || b->is_stalled || b->lb->closed)
		return;
	LIST_EACH (&b->waiting, n, tmp) {
		const struct draft *d = LIST_ENTRY(n, struct draft, node);

		parts += d->nparts;
		bytes += d->rest.len;
		for (unsigned i = 0; i < d->nparts; i++)
			bytes += d->parts[i]->bytes.len;
		if (!list_empty(&b->flying) && (parts > DRAFT_MAX_PARTS || bytes > JOIN_MAX))
			break;
		list_del(n);
		list_add(&b->flying, n);
	}
	rv = submit(b->lb, &b->flying, outbox_done, b);
	if (rv != 0)
		outbox_stall(b, rv);
}

void outbox_put(struct outbox *b, struct draft *d, enum journal_level level,
		void (*done)(int rv, void *user), void *user)
{
	d->level = level;
	d->done = done;
	d->user = user;
	list_add(&b->waiting, &d->node);
	if (b->lb->compare) {
		b->lb->compare(d, b->lb->compare_user);
		return;
	}
	(void)draft_heads(d); /* it may wait: see draft_heads_of */
	outbox_pump(b);
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

/* ---- Names are made from checked ids and fit their buffers. A file that somebody
 * changed is followed by x.2.jsonl and so on (doc/JOURNAL.md): of each part
 * the whole lines count, in the order of the parts. */

void logbook_run_path(const char *run, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "logs/subagents/%s.jsonl", run);
}

void logbook_messages_path(const char *run, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "runs/%s/messages.jsonl", run);
}

void logbook_result_path(const char *run, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "runs/%s/result.json", run);
}

/* The whole lines of `from` behind those of *data; `from` is freed. */
static int logbook_join(char **data, size_t *len, size_t max, char *from, size_t n,
			struct ava_error *err)
{
	const char *nl = *len > 0 ? memrchr(*data, '\n', *len) : NULL;
	size_t keep = nl ? (size_t)(nl - *data) + 1 : 0;
	char *both = n <= max - keep ? realloc(*data, keep + n + 1) : NULL;

	if (!both) {
		free(from);
		return err_set(err, AVA_ETOOBIG, "too big to be read as a whole");
	}
	memcpy(both + keep, from, n + 1);
	free(from);
	*data = both;
	*len = keep + n;
	return 0;
}

int logbook_read(int root_fd, const char *path, size_t max, char **data, size_t *len,
		 struct ava_error *err)
{
	char name[FILES_BUF], *all = NULL, *more;
	bool any = false;
	size_t size = 0, n;
	int first = sys_read_file(root_fd, path, max, &all, &size, err), rv = 0;

	if (first != 0 && first != AVA_ENOENT && !files_is_foreign(root_fd, path, first))
		return first;
	for (unsigned part = 2; rv == 0; part++) {
		files_part_name(path, part, name);
		rv = sys_read_file(root_fd, name, max, &more, &n, NULL);
		any = any || rv == 0;
		if (rv == 0)
			rv = logbook_join(&all, &size, max, more, n, err);
		/* If an unreadable part was ours after all, the hash of the request's prefix, which
		 * no longer matches, shows it. */
		else if (rv != AVA_ENOENT && files_is_foreign(root_fd, name, rv))
			rv = 0;
		else if (rv != AVA_ENOENT)
			err_set(err, rv, "%s: %s", name, ava_strerror(rv));
	}
	if (rv == AVA_ENOENT)
		rv = any ? 0 : first;
	if (rv != 0) {
		free(all);
		return rv;
	}
	*data = all;
	*len = size;
	return 0;
}

/* Opens a regular file that has no further parts. -1: `path` is not one. */
static int open_single(int root_fd, const char *path, struct stat *st)
{
	char name[FILES_BUF];
	int fd;

	files_part_name(path, 2, name);
	if (sys->fstatat(root_fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
		return -1;
	fd = sys->openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	if (fd < 0 || (sys->fstat(fd, st) == 0 && S_ISREG(st->st_mode)))
		return fd;
	sys->close(fd);
	return -1;
}

/* 0: *data is the cut line at `from` and all behind it. */
static int logbook_read_tail(int root_fd, const char *path, size_t from, size_t max, char **data,
			     size_t *len)
{
	static const char cut[] = "{\"cut\":";
	struct stat st;
	int fd = open_single(root_fd, path, &st), rv = AVA_ENOENT;
	char *bytes = NULL;
	size_t n = 0;

	if (fd < 0)
		return AVA_ENOENT;
	if ((uint64_t)st.st_size > from)
		n = (size_t)st.st_size - from;
	if (n > sizeof(cut) && n <= max)
		bytes = malloc(n + 1);
	if (bytes && sys_read_all(fd, bytes, n, (off_t)from) == 0 &&
	    memcmp(bytes, cut, sizeof(cut) - 1) == 0) {
		bytes[n] = 0;
		*data = bytes;
		*len = n;
		bytes = NULL;
		rv = 0;
	}
	free(bytes);
	sys->close(fd);
	return rv;
}

int logbook_read_from(int root_fd, const char *path, size_t *from, size_t max, char **data,
		      size_t *len, struct ava_error *err)
{
	if (*from > 0 && logbook_read_tail(root_fd, path, *from, max, data, len) == 0)
		return 0;
	*from = 0;
	return logbook_read(root_fd, path, max, data, len, err);
}

ssize_t logbook_read_cached(int root_fd, const char *path, char *out, size_t size)
{
	struct iovec room = {out, size};
	struct stat st;
	ssize_t n = -1;
	int fd = open_single(root_fd, path, &st);

	if (fd < 0)
		return -1;
	if (st.st_size > 0 && (uint64_t)st.st_size <= size)
		n = preadv2(fd, &room, 1, 0, RWF_NOWAIT);
	sys->close(fd);
	return n == st.st_size ? n : -1;
}
