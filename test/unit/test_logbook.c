/* Drafts, outboxes and the order in which readers hear of events, over a real
 * journal whose disk fails when the test says so. */
#include "logbook_rig.h"

#include "base/clock.h"
#include "base/util.h"

#define RUN_A "S-00000a"
#define RUN_B "S-00000b"
#define LOG_A "logs/subagents/" RUN_A ".jsonl"
#define LOG_B "logs/subagents/" RUN_B ".jsonl"

static void day_now(const struct rig *r, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "logs/ava/%s.jsonl", r->book.day);
}

/* ---- what is told, in order */

struct told {
	int n, rv[64], who[64];
};

struct one {
	struct told *told;
	int who;
};

static void tell(int rv, void *user)
{
	struct one *o = user;
	struct told *t = o->told;

	assert_true(t->n < 64);
	t->rv[t->n] = rv;
	t->who[t->n++] = o->who;
}

/* ---- opening */

static void make_day(struct rig *r, const char *day, uint64_t lsn, uint64_t seq)
{
	struct event_head head = {.kind = EVENT_LogOpen, .wall_ms = 1, .lsn = lsn, .seq = seq};
	char path[LOGBOOK_PATH];
	struct buf b;

	buf_init(&b, 4096);
	assert_int_equal(event_encode(&b, &head, NULL, 0, NULL), 0);
	mkdir(rig_path(r, "logs"), 0700);
	mkdir(rig_path(r, "logs/ava"), 0700);
	snprintf(path, sizeof(path), "logs/ava/%s.jsonl", day);
	rig_write(r, path, b.data);
	buf_fini(&b);
}

static void commit_day_event(struct rig *r, uint64_t *lsn)
{
	struct told told = {0};
	struct one one = {&told, 1};
	struct draft *d = draft_new(&r->book);

	assert_int_equal(rig_event(d, EVENT_Custom, "", NULL, true, 1), 0);
	*lsn = journal_lsn(r->j, 0);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, &one, NULL), 0);
	RIG_UNTIL(r, told.n == 1);
	assert_int_equal(told.rv[0], 0);
}

TEST(an_empty_root)
{
	char today[11], path[LOGBOOK_PATH];
	struct rig r;
	uint64_t lsn;

	rig_init(&r);
	rig_open(&r);
	clock_local_date(clock_wall_ms(), today);
	assert_string_equal(r.book.day, today);
	assert_int_equal(r.book.day_seq, 0);
	assert_false(r.book.behind);
	commit_day_event(&r, &lsn);
	day_now(&r, path);
	assert_true(rig_holds(&r, path, "\"seq\":1,\"eventType\":\"Custom\""));
	rig_fini(&r);
}

/* The clock was set back: the newer day stays in use, and its seq goes on. */
TEST(an_older_day_is_never_reopened)
{
	struct rig r;
	uint64_t lsn;

	rig_init(&r);
	make_day(&r, "2999-01-01", 1, 41);
	make_day(&r, "2998-12-31", 1, 7);
	rig_open(&r);
	assert_string_equal(r.book.day, "2999-01-01");
	assert_int_equal(r.book.day_seq, 41);
	commit_day_event(&r, &lsn);
	assert_true(rig_holds(&r, "logs/ava/2999-01-01.jsonl", "\"seq\":42,"));
	rig_fini(&r);
}

/* The journal was removed: no number of the logs is given again. */
TEST(numbers_go_on_without_the_journal)
{
	struct rig r;
	uint64_t lsn;

	rig_init(&r);
	make_day(&r, "2999-01-01", 5000000000ull, 1);
	rig_open(&r);
	assert_true(r.book.behind);
	commit_day_event(&r, &lsn);
	assert_true(lsn > 5000000000ull);
	rig_fini(&r);
}

/* The last line is longer than what is read at first: its numbers go on all the same. */
TEST(numbers_go_on_behind_a_long_line)
{
	struct event_head head = {.kind = EVENT_Custom, .wall_ms = 1, .lsn = 90, .seq = 8};
	struct rig r;
	struct buf b, content;
	uint64_t lsn;

	rig_init(&r);
	make_day(&r, "2999-01-01", 1, 7);
	buf_init(&b, 1u << 20);
	buf_init(&content, 1u << 20);
	buf_adds(&content, "{\"x\":\"");
	for (int i = 0; i < 300000; i++)
		buf_addc(&content, 'x');
	buf_adds(&content, "\"}");
	assert_int_equal(event_encode(&b, &head, content.data, content.len, NULL), 0);
	rig_write(&r, "logs/ava/2999-01-01.jsonl", b.data);
	buf_fini(&b);
	buf_fini(&content);
	rig_open(&r);
	assert_int_equal(r.book.day_seq, 8);
	commit_day_event(&r, &lsn);
	assert_true(lsn > 90);
	rig_fini(&r);
}

/* ---- drafts */

TEST(one_event_in_two_places)
{
	struct rig r;
	struct told told = {0};
	struct one one = {&told, 1};
	struct event_view v[8];
	char path[LOGBOOK_PATH], *run, *day;
	struct run_log log = {.seq = 10};
	uint64_t lsn;
	struct draft *d;

	rig_init(&r);
	rig_open(&r);
	d = draft_new(&r.book);
	assert_int_equal(rig_event(d, EVENT_SubagentSpawn, RUN_A, &log, true, 1), 0);
	assert_int_equal(rig_event(d, EVENT_Activity, RUN_A, &log, false, 2), 0);
	assert_int_equal(log.seq, 10); /* numbers come with the commit */
	lsn = journal_lsn(r.j, 5);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, &one, NULL), 0);
	assert_int_equal(told.n, 0); /* not before it is on disk */
	RIG_UNTIL(&r, told.n == 1);
	day_now(&r, path);
	assert_int_equal(rig_events(&r, LOG_A, v, 8, &run), 2);
	assert_int_equal(v[0].lsn, lsn + 5);
	assert_int_equal(v[0].seq, 11);
	assert_int_equal(v[1].lsn, lsn + 6);
	assert_int_equal(v[1].seq, 12);
	assert_int_equal(log.seq, 12);
	assert_int_equal(log.bytes, strlen(run));
	assert_int_equal(rig_events(&r, path, v, 8, &day), 1);
	assert_int_equal(v[0].lsn, lsn + 5);
	assert_int_equal(v[0].seq, 1);
	free(run);
	free(day);
	rig_fini(&r);
}

TEST(parts_of_a_draft)
{
	struct rig r;
	struct told told = {0};
	struct one one = {&told, 1};
	char path[128];
	struct draft *d;
	struct buf *first;

	rig_init(&r);
	rig_open(&r);
	d = draft_new(&r.book);
	first = draft_part(d, DRAFT_MESSAGES, "m.jsonl");
	assert_non_null(first);
	assert_ptr_equal(draft_part(d, DRAFT_MESSAGES, "m.jsonl"), first);
	assert_ptr_not_equal(draft_part(d, DRAFT_PUT, "m.jsonl"), first);
	for (int i = 2; i < DRAFT_MAX_PARTS; i++) {
		snprintf(path, sizeof(path), "p%d", i);
		assert_non_null(draft_part(d, DRAFT_PUT, path));
	}
	assert_null(draft_part(d, DRAFT_PUT, "one too many"));
	assert_true(d->failed);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, &one, NULL), AVA_ENOMEM);
	draft_free(NULL);
	rig_turn(&r);
	assert_int_equal(told.n, 0); /* what was refused is never told */
	rig_fini(&r);
}

/* A draft that failed to take an event is refused as a whole. */
TEST(content_without_memory)
{
	struct draft_where where = {.day = true};
	struct event_head head = {.kind = EVENT_Custom};
	struct ava_error err = {0};
	struct told told = {0};
	struct one one = {&told, 1};
	struct rig r;
	struct buf content;
	struct draft *d;

	rig_init(&r);
	rig_open(&r);
	d = draft_new(&r.book);
	buf_init(&content, 4);
	assert_int_not_equal(buf_adds(&content, "{\"long\":1}"), 0);
	assert_int_equal(draft_event(d, &where, &head, &content, NULL), AVA_ENOMEM);
	buf_fini(&content);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, &one, &err), AVA_ENOMEM);
	assert_string_not_equal(err.text, "");
	assert_int_equal(told.n, 0);
	rig_fini(&r);
}

/* A failed sync is "unknown"; then new work is refused in a sentence. */
TEST(a_failed_sync)
{
	struct ava_error err = {0};
	struct told told = {0};
	struct one one = {&told, 1};
	struct rig r;
	struct draft *d;
	struct run_log log = {0};

	rig_init(&r);
	rig_open(&r);
	atomic_store(&rig_sync_error, EIO);
	d = draft_new(&r.book);
	rig_event(d, EVENT_Activity, RUN_A, &log, false, 1);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, &one, &err), 0);
	RIG_UNTIL(&r, told.n == 1);
	assert_int_equal(told.rv[0], AVA_EUNKNOWN);
	assert_int_equal(r.book.feed.next, 0); /* nobody hears of it */
	d = draft_new(&r.book);
	rig_event(d, EVENT_Activity, RUN_A, &log, false, 2);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, &one, &err), AVA_EIO);
	assert_non_null(strstr(err.text, "no new work"));
	assert_int_equal(told.n, 1);
	atomic_store(&rig_sync_error, 0);
	RIG_UNTIL(&r, journal_health(r.j, NULL) == 0);
	assert_false(rig_holds(&r, LOG_A, "\"n\":"));
	rig_fini(&r);
}

/* ---- outboxes */

static void put_numbered(struct outbox *b, struct run_log *log, const char *run, struct one *one)
{
	struct draft *d = draft_new(b->lb);

	rig_event(d, EVENT_Activity, run, log, false, one->who);
	outbox_put(b, d, JOURNAL_RIDE, tell, one);
}

static void drained_cb(void *user)
{
	++*(int *)user;
}

/* Drafts come out in order, whatever is merged; each is told once. */
TEST(an_outbox_keeps_the_order)
{
	struct rig r;
	struct outbox box;
	struct told told = {0};
	struct one ones[20];
	struct event_view v[32];
	struct run_log log = {0};
	int drained = 0;
	char *file;

	rig_init(&r);
	rig_open(&r);
	outbox_init(&box, &r.book);
	assert_true(outbox_empty(&box));
	for (int i = 0; i < 20; i++) {
		ones[i] = (struct one){&told, i};
		put_numbered(&box, &log, RUN_A, &ones[i]);
	}
	box.drained = drained_cb;
	box.drained_user = &drained;
	assert_false(outbox_empty(&box));
	RIG_UNTIL(&r, outbox_empty(&box));
	assert_int_equal(drained, 1);
	assert_null(box.drained);
	assert_int_equal(told.n, 20);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(told.rv[i], 0);
		assert_int_equal(told.who[i], i);
	}
	assert_int_equal(rig_events(&r, LOG_A, v, 32, &file), 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(v[i].seq, i + 1);
	free(file);
	outbox_fini(&box);
	rig_fini(&r);
}

/* More parts than a commit may have: the rest goes as the next one. */
TEST(more_parts_than_one_commit_takes)
{
	struct rig r;
	struct outbox box;
	struct told told = {0};
	struct one ones[20];

	rig_init(&r);
	rig_open(&r);
	outbox_init(&box, &r.book);
	for (int i = 0; i < 20; i++) {
		struct draft *d = draft_new(&r.book);
		char path[32];

		snprintf(path, sizeof(path), "runs/a/file%d", i);
		buf_addf(draft_part(d, DRAFT_PUT, path), "%d", i);
		ones[i] = (struct one){&told, i};
		outbox_put(&box, d, JOURNAL_RIDE, tell, &ones[i]);
	}
	RIG_UNTIL(&r, outbox_empty(&box));
	assert_int_equal(told.n, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(told.who[i], i);
	assert_true(rig_holds(&r, "runs/a/file19", "19"));
	outbox_fini(&box);
	rig_fini(&r);
}

/* The disk fails for a while: a slow disk is all that the owner sees, the
 * lines stand there once, in order, and readers hear of them once. */
static void outlast_a_failing_disk(bool is_apart)
{
	struct rig r;
	struct outbox a, b;
	struct told told = {0};
	struct one ones[12];
	struct event_view v[32];
	struct run_log log_a = {0}, log_b = {0};
	char *file;

	rig_init(&r);
	rig_open(&r);
	outbox_init(&a, &r.book);
	outbox_init(&b, &r.book);
	atomic_store(&rig_sync_error, EIO);
	atomic_store(&rig_sync_us, is_apart ? 20000 : 0);
	for (int i = 0; i < 12; i++) {
		ones[i] = (struct one){&told, i};
		if (i == 1 && is_apart)
			usleep(5000); /* a's first is being synced */
		if (i % 2 == 0)
			put_numbered(&a, &log_a, RUN_A, &ones[i]);
		else
			put_numbered(&b, &log_b, RUN_B, &ones[i]);
	}
	/* b's are in the flush that fails, or behind it and wait in the journal. */
	RIG_UNTIL(&r, a.is_stalled);
	assert_true(a.stall_code == AVA_EUNKNOWN || a.stall_code == AVA_EIO);
	assert_false(outbox_empty(&b));
	assert_int_equal(told.n, 0);
	assert_int_equal(r.book.feed.next, 0);
	atomic_store(&rig_sync_error, 0);
	RIG_UNTIL(&r, outbox_empty(&a) && outbox_empty(&b));
	assert_int_equal(a.stall_code, 0);
	assert_int_equal(told.n, 12);
	for (int i = 0; i < 12; i++)
		assert_int_equal(told.rv[i], 0);
	for (int f = 0; f < 2; f++) {
		assert_int_equal(rig_events(&r, f ? LOG_B : LOG_A, v, 32, &file), 6);
		for (unsigned i = 0; i < 6; i++)
			assert_int_equal(v[i].seq, i + 1);
		free(file);
	}
	assert_int_equal(r.book.feed.next, 12);
	outbox_fini(&a);
	outbox_fini(&b);
	rig_fini(&r);
}

TEST(an_outbox_outlasts_a_failing_disk)
{
	outlast_a_failing_disk(false);
	outlast_a_failing_disk(true);
}

/* The end of a run, refused once, goes into files that others wrote to
 * meanwhile: it is numbered anew, the same in both logs. */
TEST(a_refused_end_is_numbered_anew)
{
	struct rig r;
	struct outbox box;
	struct told told = {0};
	struct one ones[] = {{&told, 0}};
	struct catalog_row row = {
		.kind = CATALOG_END, .status = AVA_SUCCESS, .id = RUN_A, .trace_id = "t"};
	struct event_view run[4], day[4];
	char path[LOGBOOK_PATH], size[40], *run_file, *day_file;
	struct run_log log = {0}, before;
	uint64_t between, first;
	struct draft *d;

	rig_init(&r);
	rig_open(&r);
	outbox_init(&box, &r.book);
	atomic_store(&rig_sync_error, EIO);
	d = draft_new(&r.book);
	rig_event(d, EVENT_Error, RUN_A, &log, false, 1);
	rig_event(d, EVENT_SubagentComplete, RUN_A, &log, true, 2);
	assert_int_equal(draft_catalog(d, &row, &log), 0);
	before = log;
	first = journal_lsn(r.j, 0);
	outbox_put(&box, d, JOURNAL_NOW, tell, &ones[0]);
	RIG_UNTIL(&r, box.is_stalled);
	assert_memory_equal(&log, &before, sizeof(log)); /* what is durable */
	atomic_store(&rig_sync_error, 0);
	os_timer_stop(r.book.retry); /* others come first */
	RIG_UNTIL(&r, journal_health(r.j, NULL) == 0);
	commit_day_event(&r, &between);
	assert_true(between > first);
	os_timer_set(r.book.retry, 1);
	RIG_UNTIL(&r, outbox_empty(&box));
	assert_int_equal(told.n, 1);
	day_now(&r, path);
	assert_int_equal(rig_events(&r, LOG_A, run, 4, &run_file), 2);
	assert_int_equal(rig_events(&r, path, day, 4, &day_file), 2);
	assert_int_equal(run[0].seq, 1);
	assert_int_equal(run[1].seq, 2);
	assert_true(run[1].lsn > between);
	assert_int_equal(day[0].lsn, between);
	assert_int_equal(day[1].lsn, run[1].lsn);
	assert_true(day[1].seq > day[0].seq);
	assert_memory_equal(day[1].content.s, run[1].content.s, run[1].content.len);
	snprintf(size, sizeof(size), ",\"bytes\":%zu,", strlen(run_file));
	assert_true(rig_holds(&r, "catalog.jsonl", size));
	assert_int_equal(log.bytes, strlen(run_file));
	free(run_file);
	free(day_file);
	outbox_fini(&box);
	rig_fini(&r);
}

/* What waits when the process leaves is given back without being told. */
TEST(an_outbox_with_drafts_is_freed)
{
	struct rig r;
	struct outbox box;
	struct told told = {0};
	struct one ones[3];
	struct run_log log = {0};

	rig_init(&r);
	rig_open(&r);
	outbox_init(&box, &r.book);
	atomic_store(&rig_sync_error, EIO);
	for (int i = 0; i < 3; i++) {
		ones[i] = (struct one){&told, i};
		put_numbered(&box, &log, RUN_A, &ones[i]);
	}
	RIG_UNTIL(&r, box.is_stalled);
	assert_false(outbox_empty(&box));
	outbox_fini(&box);
	assert_true(list_empty(&r.book.stalled));
	assert_int_equal(told.n, 0);
	atomic_store(&rig_sync_error, 0);
	rig_fini(&r);
}

/* ---- what readers of everything see */

static void woken(struct feed_reader *r) {}

static uint64_t next_lsn(struct rig *r, struct feed_reader *reader)
{
	const struct feed_line *line;

	return feed_next(&r->book.feed, reader, &line) == 1 ? line->lsn : 0;
}

/* Who writes first, or begins to, does not matter: the commits give the order. */
TEST(readers_get_the_order_of_lsn)
{
	struct feed_reader reader = {.wake = woken};
	struct run_log log_a = {0}, log_b = {0};
	struct told told = {0};
	struct one one = {&told, 1};
	struct draft *d, *e, *never;
	struct rig r;
	uint64_t lsn;

	rig_init(&r);
	rig_open(&r);
	feed_join(&r.book.feed, &reader);
	never = draft_new(&r.book);
	rig_event(never, EVENT_Activity, RUN_A, &log_a, false, 0);
	d = draft_new(&r.book);
	rig_event(d, EVENT_Activity, RUN_A, &log_a, true, 1);
	e = draft_new(&r.book);
	rig_event(e, EVENT_Activity, RUN_B, &log_b, false, 2);
	lsn = journal_lsn(r.j, 0);
	assert_int_equal(draft_commit(e, JOURNAL_NOW, tell, &one, NULL), 0);
	assert_int_equal(logbook_shown(&r.book), lsn - 1);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, &one, NULL), 0);
	while (told.n < 2)
		journal_sync(r.j);
	assert_int_equal(next_lsn(&r, &reader), lsn);
	assert_int_equal(next_lsn(&r, &reader), lsn + 1);
	assert_int_equal(next_lsn(&r, &reader), lsn + 1); /* of the daily log */
	assert_int_equal(next_lsn(&r, &reader), 0);
	assert_int_equal(logbook_shown(&r.book), lsn + 1);
	draft_free(never);
	feed_leave(&reader);
	rig_fini(&r);
}

/* ---- memory */

TEST(without_memory)
{
	struct rig r;
	struct told told = {0};
	struct one one = {&told, 1};
	struct catalog_row row = {.kind = CATALOG_SPAWN, .id = RUN_A, .trace_id = "t"};
	char path[LOGBOOK_PATH];
	struct run_log log = {0};
	uint64_t lsn;

	rig_init(&r);
	rig_open(&r);
	for (long k = 0;; k += unit_step(1)) {
		struct draft *d;
		bool whole = false, hit;

		fault_alloc(k);
		d = draft_new(&r.book);
		if (d) {
			rig_event(d, EVENT_Activity, RUN_A, &log, true, (int)k);
			draft_catalog(d, &row, NULL);
			draft_part(d, DRAFT_MESSAGES, "runs/a/messages.jsonl");
			whole = !d->failed;
			draft_free(d);
		}
		hit = fault_alloc_end();
		assert_true(hit || whole);
		if (!hit)
			break;
	}
	commit_day_event(&r, &lsn); /* the logbook is well */
	day_now(&r, path);
	assert_true(rig_holds(&r, path, "\"Custom\""));
	(void)one;
	rig_fini(&r);
}

/* Memory ends anywhere while an outbox joins what waits into one commit: all of
 * it is written, once and in order, when there is memory again. */
TEST(joining_without_memory)
{
	struct event_view v[1024];
	struct outbox box;
	struct run_log log = {0};
	struct rig r;
	bool hit = true;
	size_t n = 0;
	char *file;

	rig_init(&r);
	rig_open(&r);
	outbox_init(&box, &r.book);
	for (long k = 0; hit; k++) {
		struct told told = {0};
		struct one ones[4];

		for (int i = 0; i < 4; i++) {
			ones[i] = (struct one){&told, i};
			put_numbered(&box, &log, RUN_A, &ones[i]);
		}
		fault_alloc(k);
		while (!fault_alloc_hit() && !outbox_empty(&box))
			rig_turn(&r);
		hit = fault_alloc_end();
		RIG_UNTIL(&r, outbox_empty(&box));
		assert_int_equal(told.n, 4);
		for (int i = 0; i < 4; i++)
			assert_true(told.rv[i] == 0 && told.who[i] == i);
		n += 4;
		assert_true(n + 4 < ARRAY_LEN(v));
	}
	assert_true(n > 4 * 4);
	assert_int_equal(rig_events(&r, LOG_A, v, ARRAY_LEN(v), &file), n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(v[i].seq, i + 1);
	free(file);
	outbox_fini(&box);
	rig_fini(&r);
}
