/* Drafts, outboxes and the order in which readers hear of events, over a real
 * journal whose disk fails when the test says so. */
#include "logbook_rig.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "provider/head.h"

#define RUN_A "S-00000a"
#define RUN_B "S-00000b"
#define LOG_A "logs/subagents/" RUN_A ".jsonl"
#define LOG_B "logs/subagents/" RUN_B ".jsonl"

static void day_now(const struct rig *r, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "logs/ava/%s.jsonl", r->book.day);
}

/* ---- what is told, in order */

static struct {
	int n, rv[64], who[64];
} told;

#define WHO(i) ((void *)(intptr_t)(i))

static void tell(int rv, void *who)
{
	assert_true(told.n < 64);
	told.rv[told.n] = rv;
	told.who[told.n++] = (int)(intptr_t)who;
}

/* ---- the rig of each test, and one that is not open yet */

static struct rig rig;

static int new_rig(void **state)
{
	rig_init(&rig);
	told.n = 0;
	return 0;
}

static int open_rig(void **state)
{
	new_rig(state);
	rig_open(&rig);
	return 0;
}

static int no_rig(void **state)
{
	rig_fini(&rig);
	return 0;
}

/* ---- opening */

static void make_day(struct rig *r, const char *day, uint64_t lsn, uint64_t seq)
{
	struct event_head head = {.kind = EVENT_LogOpen, .wall_ms = 1, .lsn = lsn, .seq = seq};
	char path[LOGBOOK_PATH];
	TEST_BUF(b, 4096);

	assert_int_equal(event_encode(&b, &head, NULL, 0, NULL), 0);
	mkdir(rig_path(r, "logs"), 0700);
	mkdir(rig_path(r, "logs/ava"), 0700);
	snprintf(path, sizeof(path), "logs/ava/%s.jsonl", day);
	rig_write(r, path, b.data);
}

static void written(int rv, void *user)
{
	*(int *)user = rv;
}

static void commit_day_event(struct rig *r, uint64_t *lsn)
{
	struct draft *d = draft_new(&r->book);
	int rv = 1;

	assert_int_equal(rig_event(d, EVENT_Custom, "", NULL, true, 1), 0);
	*lsn = journal_lsn(r->j, 0);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, written, &rv, NULL), 0);
	RIG_UNTIL(r, rv != 1);
	assert_int_equal(rv, 0);
}

TEST(an_empty_root)
{
	char today[11], path[LOGBOOK_PATH];
	uint64_t lsn;

	clock_local_date(clock_wall_ms(), today);
	assert_string_equal(rig.book.day, today);
	assert_int_equal(rig.book.day_seq, 0);
	assert_false(rig.book.behind);
	commit_day_event(&rig, &lsn);
	day_now(&rig, path);
	assert_true(rig_holds(&rig, path, "\"seq\":1,\"eventType\":\"Custom\""));
}

/* The clock was set back: the newer day stays in use, and its seq goes on. */
TEST_WITH(an_older_day_is_never_reopened, new_rig, no_rig)
{
	uint64_t lsn;

	make_day(&rig, "2999-01-01", 1, 41);
	make_day(&rig, "2998-12-31", 1, 7);
	rig_open(&rig);
	assert_string_equal(rig.book.day, "2999-01-01");
	assert_int_equal(rig.book.day_seq, 41);
	commit_day_event(&rig, &lsn);
	assert_true(rig_holds(&rig, "logs/ava/2999-01-01.jsonl", "\"seq\":42,"));
}

/* The journal was removed: no number of the logs is given again. */
TEST_WITH(numbers_go_on_without_the_journal, new_rig, no_rig)
{
	uint64_t lsn;

	make_day(&rig, "2999-01-01", 5000000000ull, 1);
	rig_open(&rig);
	assert_true(rig.book.behind);
	commit_day_event(&rig, &lsn);
	assert_true(lsn > 5000000000ull);
}

/* The last line is longer than what is read at first: its numbers go on all the same. */
TEST_WITH(numbers_go_on_behind_a_long_line, new_rig, no_rig)
{
	struct event_head head = {.kind = EVENT_Custom, .wall_ms = 1, .lsn = 90, .seq = 8};
	TEST_BUF(content, 1u << 20);
	TEST_BUF(b, 1u << 20);
	uint64_t lsn;

	make_day(&rig, "2999-01-01", 1, 7);
	buf_adds(&content, "{\"x\":\"");
	for (int i = 0; i < 300000; i++)
		buf_addc(&content, 'x');
	buf_adds(&content, "\"}");
	assert_int_equal(event_encode(&b, &head, content.data, content.len, NULL), 0);
	rig_write(&rig, "logs/ava/2999-01-01.jsonl", b.data);
	rig_open(&rig);
	assert_int_equal(rig.book.day_seq, 8);
	commit_day_event(&rig, &lsn);
	assert_true(lsn > 90);
}

/* ---- drafts */

TEST(one_event_in_two_places)
{
	struct event_view v[8];
	char path[LOGBOOK_PATH], *run, *day;
	struct run_log log = {.seq = 10};
	uint64_t lsn;
	struct draft *d;

	d = draft_new(&rig.book);
	assert_int_equal(rig_event(d, EVENT_SubagentSpawn, RUN_A, &log, true, 1), 0);
	assert_int_equal(rig_event(d, EVENT_Activity, RUN_A, &log, false, 2), 0);
	assert_int_equal(log.seq, 10); /* numbers come with the commit */
	lsn = journal_lsn(rig.j, 5);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, NULL, NULL), 0);
	assert_int_equal(told.n, 0); /* not before it is on disk */
	RIG_UNTIL(&rig, told.n == 1);
	day_now(&rig, path);
	assert_int_equal(rig_events(&rig, LOG_A, v, 8, &run), 2);
	assert_int_equal(v[0].lsn, lsn + 5);
	assert_int_equal(v[0].seq, 11);
	assert_int_equal(v[1].lsn, lsn + 6);
	assert_int_equal(v[1].seq, 12);
	assert_int_equal(log.seq, 12);
	assert_int_equal(log.bytes, strlen(run));
	assert_int_equal(rig_events(&rig, path, v, 8, &day), 1);
	assert_int_equal(v[0].lsn, lsn + 5);
	assert_int_equal(v[0].seq, 1);
	free(run);
	free(day);
}

TEST(parts_of_a_draft)
{
	char path[128];
	struct draft *d;
	struct buf *first;

	d = draft_new(&rig.book);
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
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, NULL, NULL), AVA_ENOMEM);
	draft_free(NULL);
	rig_turn(&rig);
	assert_int_equal(told.n, 0); /* what was refused is never told */
}

/* A draft that failed to take an event is refused as a whole. */
TEST(content_without_memory)
{
	struct draft_where where = {.day = true};
	struct event_head head = {.kind = EVENT_Custom};
	struct ava_error err = {0};
	TEST_BUF(content, 4);
	struct draft *d;

	d = draft_new(&rig.book);
	assert_int_not_equal(buf_adds(&content, "{\"long\":1}"), 0);
	assert_int_equal(draft_event(d, &where, &head, &content, NULL), AVA_ENOMEM);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, NULL, &err), AVA_ENOMEM);
	assert_string_not_equal(err.text, "");
	assert_int_equal(told.n, 0);
}

/* A failed sync is "unknown"; then new work is refused in a sentence. */
TEST(a_failed_sync)
{
	struct ava_error err = {0};
	struct draft *d;
	struct run_log log = {0};

	atomic_store(&rig_sync_error, EIO);
	d = draft_new(&rig.book);
	rig_event(d, EVENT_Activity, RUN_A, &log, false, 1);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, NULL, &err), 0);
	RIG_UNTIL(&rig, told.n == 1);
	assert_int_equal(told.rv[0], AVA_EUNKNOWN);
	assert_int_equal(rig.book.feed.next, 0); /* nobody hears of it */
	d = draft_new(&rig.book);
	rig_event(d, EVENT_Activity, RUN_A, &log, false, 2);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, NULL, &err), AVA_EIO);
	assert_non_null(strstr(err.text, "no new work"));
	assert_int_equal(told.n, 1);
	atomic_store(&rig_sync_error, 0);
	RIG_UNTIL(&rig, journal_health(rig.j, NULL) == 0);
	assert_false(rig_holds(&rig, LOG_A, "\"n\":"));
}

/* ---- heads of requests */

/* Commits a line that refers to `head`; what the disk said of it. */
static int commit_head(const char *head, char path[HEAD_PATH])
{
	struct draft *d = draft_new(&rig.book);
	char name[HASH_HEX_LEN + 1];
	struct hash_sha256 prefix;
	int before = (int)told.n;

	assert_int_equal(head_keep(head, strlen(head), name, &prefix), 0);
	head_path((struct slice){name, HASH_HEX_LEN}, path);
	buf_addf(draft_part(d, DRAFT_MESSAGES, "runs/a/messages.jsonl"),
		 "{\"mark\":{}}\n{\"spec\":{\"machine\":1,\"head\":\"%s\"}}\n", name);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, NULL, NULL), 0);
	assert_string_equal(d->parts[0]->path,
			    nameset_has(&rig.book.heads, name) ? "runs/a/messages.jsonl" : path);
	RIG_UNTIL(&rig, (int)told.n == before + 1);
	return told.rv[before];
}

/* A head goes before the first line that refers to it, and again until the disk has it. */
TEST(heads)
{
	char path[HEAD_PATH], other[HEAD_PATH];

	atomic_store(&rig_sync_error, EIO);
	assert_int_equal(commit_head("{\"a\":[", path), AVA_EUNKNOWN);
	atomic_store(&rig_sync_error, 0);
	RIG_UNTIL(&rig, journal_health(rig.j, NULL) == 0);
	assert_int_equal(commit_head("{\"a\":[", path), 0);
	assert_true(rig_holds(&rig, path, "{\"a\":["));
	assert_int_equal(unlinkat(rig.book.root_fd, path, 0), 0);
	assert_int_equal(commit_head("{\"a\":[", path), 0); /* it is known to be there */
	assert_int_equal(faccessat(rig.book.root_fd, path, F_OK, 0), -1);
	assert_int_equal(commit_head("{\"b\":[", other), 0);
	assert_true(rig_holds(&rig, other, "{\"b\":["));
}

/* A line that refers to the head of that name, in a draft of its own. */
static struct draft *draft_of_head(const char *run, const char *name)
{
	struct draft *d = draft_new(&rig.book);
	char path[LOGBOOK_PATH];

	snprintf(path, sizeof(path), "runs/%s/messages.jsonl", run);
	buf_addf(draft_part(d, DRAFT_MESSAGES, path),
		 "{\"spec\":{\"machine\":1,\"head\":\"%s\"}}\n", name);
	return d;
}

/* A draft whose head could not be had at first brings the whole one later, though another draft
 * brought it meanwhile. */
TEST(a_head_that_failed_once)
{
	static const char head[] = "{\"once\":[";
	char name[HASH_HEX_LEN + 1], path[HEAD_PATH];
	struct hash_sha256 prefix;
	struct outbox box;

	hash_sha256_hex(head, strlen(head), name);
	head_path((struct slice){name, HASH_HEX_LEN}, path);
	outbox_init(&box, &rig.book);
	outbox_put(&box, draft_of_head("a", name), JOURNAL_NOW, tell, NULL);
	assert_int_equal(told.n, 0);
	assert_int_equal(head_keep(head, strlen(head), name, &prefix), 0);
	assert_int_equal(draft_commit(draft_of_head("b", name), JOURNAL_NOW, tell, NULL, NULL), 0);
	RIG_UNTIL(&rig, told.n == 2 && outbox_empty(&box));
	assert_int_equal(told.rv[0] | told.rv[1], 0);
	assert_true(rig_holds(&rig, path, head));
	outbox_fini(&box);
}

static void forget_heads(void)
{
	char other[32], name[HASH_HEX_LEN + 1];
	struct hash_sha256 prefix;

	for (int i = 0; i < 200; i++) {
		snprintf(other, sizeof(other), "{\"other\":[%d,", i);
		assert_int_equal(head_keep(other, strlen(other), name, &prefix), 0);
	}
}

/* Drafts keep their heads, which no disk has yet, however many others memory gets meanwhile. */
TEST(heads_of_waiting_drafts)
{
	static const char *const heads[] = {"{\"waits\":[", "{\"made\":["};
	char name[2][HASH_HEX_LEN + 1], path[HEAD_PATH];
	struct hash_sha256 prefix;
	struct draft *made;
	struct outbox box;

	outbox_init(&box, &rig.book);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(head_keep(heads[i], strlen(heads[i]), name[i], &prefix), 0);
	made = draft_of_head("b", name[1]);
	assert_int_equal(draft_heads_of(made, &made->parts[0]->bytes, NULL), 0);
	atomic_store(&rig_sync_error, EIO);
	outbox_put(&box, draft_of_head("a", name[0]), JOURNAL_NOW, tell, NULL);
	forget_heads();
	RIG_UNTIL(&rig, box.stall_code != 0);
	atomic_store(&rig_sync_error, 0);
	RIG_UNTIL(&rig, told.n == 1);
	assert_int_equal(draft_commit(made, JOURNAL_NOW, tell, NULL, NULL), 0);
	RIG_UNTIL(&rig, told.n == 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(told.rv[i], 0);
		head_path((struct slice){name[i], HASH_HEX_LEN}, path);
		assert_true(rig_holds(&rig, path, heads[i]));
	}
	outbox_fini(&box);
}

/* ---- outboxes */

static void put_numbered(struct outbox *b, struct run_log *log, const char *run, int who)
{
	struct draft *d = draft_new(b->lb);

	rig_event(d, EVENT_Activity, run, log, false, who);
	outbox_put(b, d, JOURNAL_RIDE, tell, WHO(who));
}

static void drained_cb(void *user)
{
	++*(int *)user;
}

/* Drafts come out in order, whatever is merged; each is told once. */
TEST(an_outbox_keeps_the_order)
{
	struct outbox box;
	struct event_view v[32];
	struct run_log log = {0};
	int drained = 0;
	char *file;

	outbox_init(&box, &rig.book);
	assert_true(outbox_empty(&box));
	for (int i = 0; i < 20; i++)
		put_numbered(&box, &log, RUN_A, i);
	box.drained = drained_cb;
	box.drained_user = &drained;
	assert_false(outbox_empty(&box));
	RIG_UNTIL(&rig, outbox_empty(&box));
	assert_int_equal(drained, 1);
	assert_null(box.drained);
	assert_int_equal(told.n, 20);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(told.rv[i], 0);
		assert_int_equal(told.who[i], i);
	}
	assert_int_equal(rig_events(&rig, LOG_A, v, 32, &file), 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(v[i].seq, i + 1);
	free(file);
	outbox_fini(&box);
}

/* More parts than a commit may have: the rest goes as the next one. */
TEST(more_parts_than_one_commit_takes)
{
	struct outbox box;

	outbox_init(&box, &rig.book);
	for (int i = 0; i < 20; i++) {
		struct draft *d = draft_new(&rig.book);
		char path[32];

		snprintf(path, sizeof(path), "runs/a/file%d", i);
		buf_addf(draft_part(d, DRAFT_PUT, path), "%d", i);
		outbox_put(&box, d, JOURNAL_RIDE, tell, WHO(i));
	}
	RIG_UNTIL(&rig, outbox_empty(&box));
	assert_int_equal(told.n, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(told.who[i], i);
	assert_true(rig_holds(&rig, "runs/a/file19", "19"));
	outbox_fini(&box);
}

/* The disk fails for a while: a slow disk is all that the owner sees, the
 * lines stand there once, in order, and readers hear of them once. */
static void outlast_a_failing_disk(bool is_apart)
{
	struct outbox a, b;
	struct event_view v[32];
	struct run_log log_a = {0}, log_b = {0};
	char *file;

	outbox_init(&a, &rig.book);
	outbox_init(&b, &rig.book);
	atomic_store(&rig_sync_error, EIO);
	atomic_store(&rig_sync_us, is_apart ? 20000 : 0);
	for (int i = 0; i < 12; i++) {
		if (i == 1 && is_apart)
			usleep(5000); /* a's first is being synced */
		if (i % 2 == 0)
			put_numbered(&a, &log_a, RUN_A, i);
		else
			put_numbered(&b, &log_b, RUN_B, i);
	}
	/* b's are in the flush that fails, or behind it and wait in the journal. */
	RIG_UNTIL(&rig, a.is_stalled);
	assert_true(a.stall_code == AVA_EUNKNOWN || a.stall_code == AVA_EIO);
	assert_false(outbox_empty(&b));
	assert_int_equal(told.n, 0);
	assert_int_equal(rig.book.feed.next, 0);
	atomic_store(&rig_sync_error, 0);
	RIG_UNTIL(&rig, outbox_empty(&a) && outbox_empty(&b));
	assert_int_equal(a.stall_code, 0);
	assert_int_equal(told.n, 12);
	for (int i = 0; i < 12; i++)
		assert_int_equal(told.rv[i], 0);
	for (int f = 0; f < 2; f++) {
		assert_int_equal(rig_events(&rig, f ? LOG_B : LOG_A, v, 32, &file), 6);
		for (unsigned i = 0; i < 6; i++)
			assert_int_equal(v[i].seq, i + 1);
		free(file);
	}
	assert_int_equal(rig.book.feed.next, 12);
	outbox_fini(&a);
	outbox_fini(&b);
}

TEST(an_outbox_outlasts_a_failing_disk)
{
	outlast_a_failing_disk(false);
}

TEST(an_outbox_behind_another_flush_outlasts_it)
{
	outlast_a_failing_disk(true);
}

/* The end of a run, refused once, goes into files that others wrote to
 * meanwhile: it is numbered anew, the same in both logs. */
TEST(a_refused_end_is_numbered_anew)
{
	struct outbox box;
	struct catalog_row row = {
		.kind = CATALOG_END, .status = AVA_SUCCESS, .id = RUN_A, .trace_id = "t"};
	struct event_view run[4], day[4];
	char path[LOGBOOK_PATH], size[40], *run_file, *day_file;
	struct run_log log = {0}, before;
	uint64_t between, first;
	struct draft *d;

	outbox_init(&box, &rig.book);
	atomic_store(&rig_sync_error, EIO);
	d = draft_new(&rig.book);
	rig_event(d, EVENT_Error, RUN_A, &log, false, 1);
	rig_event(d, EVENT_SubagentComplete, RUN_A, &log, true, 2);
	assert_int_equal(draft_catalog(d, &row, &log), 0);
	before = log;
	first = journal_lsn(rig.j, 0);
	outbox_put(&box, d, JOURNAL_NOW, tell, WHO(0));
	RIG_UNTIL(&rig, box.is_stalled);
	assert_memory_equal(&log, &before, sizeof(log)); /* what is durable */
	atomic_store(&rig_sync_error, 0);
	os_timer_stop(rig.book.retry); /* others come first */
	RIG_UNTIL(&rig, journal_health(rig.j, NULL) == 0);
	commit_day_event(&rig, &between);
	assert_true(between > first);
	os_timer_set(rig.book.retry, 1);
	RIG_UNTIL(&rig, outbox_empty(&box));
	assert_int_equal(told.n, 1);
	day_now(&rig, path);
	assert_int_equal(rig_events(&rig, LOG_A, run, 4, &run_file), 2);
	assert_int_equal(rig_events(&rig, path, day, 4, &day_file), 2);
	assert_int_equal(run[0].seq, 1);
	assert_int_equal(run[1].seq, 2);
	assert_true(run[1].lsn > between);
	assert_int_equal(day[0].lsn, between);
	assert_int_equal(day[1].lsn, run[1].lsn);
	assert_true(day[1].seq > day[0].seq);
	assert_memory_equal(day[1].content.s, run[1].content.s, run[1].content.len);
	snprintf(size, sizeof(size), ",\"bytes\":%zu,", strlen(run_file));
	assert_true(rig_holds(&rig, "catalog.jsonl", size));
	assert_int_equal(log.bytes, strlen(run_file));
	free(run_file);
	free(day_file);
	outbox_fini(&box);
}

/* What waits when the process leaves is given back without being told. */
TEST(an_outbox_with_drafts_is_freed)
{
	struct outbox box;
	struct run_log log = {0};

	outbox_init(&box, &rig.book);
	atomic_store(&rig_sync_error, EIO);
	for (int i = 0; i < 3; i++)
		put_numbered(&box, &log, RUN_A, i);
	RIG_UNTIL(&rig, box.is_stalled);
	assert_false(outbox_empty(&box));
	outbox_fini(&box);
	assert_true(list_empty(&rig.book.stalled));
	assert_int_equal(told.n, 0);
	atomic_store(&rig_sync_error, 0);
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
	struct draft *d, *e, *never;
	uint64_t lsn;

	feed_join(&rig.book.feed, &reader);
	never = draft_new(&rig.book);
	rig_event(never, EVENT_Activity, RUN_A, &log_a, false, 0);
	d = draft_new(&rig.book);
	rig_event(d, EVENT_Activity, RUN_A, &log_a, true, 1);
	e = draft_new(&rig.book);
	rig_event(e, EVENT_Activity, RUN_B, &log_b, false, 2);
	lsn = journal_lsn(rig.j, 0);
	assert_int_equal(draft_commit(e, JOURNAL_NOW, tell, NULL, NULL), 0);
	assert_int_equal(logbook_shown(&rig.book), lsn - 1);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, tell, NULL, NULL), 0);
	while (told.n < 2)
		journal_sync(rig.j);
	assert_int_equal(next_lsn(&rig, &reader), lsn);
	assert_int_equal(next_lsn(&rig, &reader), lsn + 1);
	assert_int_equal(next_lsn(&rig, &reader), lsn + 1); /* of the daily log */
	assert_int_equal(next_lsn(&rig, &reader), 0);
	assert_int_equal(logbook_shown(&rig.book), lsn + 1);
	draft_free(never);
	feed_leave(&reader);
}

/* ---- memory */

TEST(without_memory)
{
	struct catalog_row row = {.kind = CATALOG_SPAWN, .id = RUN_A, .trace_id = "t"};
	char path[LOGBOOK_PATH];
	struct run_log log = {0};
	uint64_t lsn;

	for (long k = 0;; k += unit_step(1)) {
		struct draft *d;
		bool whole = false, hit;

		fault_alloc(k);
		d = draft_new(&rig.book);
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
	commit_day_event(&rig, &lsn); /* the logbook is well */
	day_now(&rig, path);
	assert_true(rig_holds(&rig, path, "\"Custom\""));
}

/* Memory ends anywhere while an outbox joins what waits into one commit: all of
 * it is written, once and in order, when there is memory again. */
TEST(joining_without_memory)
{
	struct event_view v[1024];
	struct outbox box;
	struct run_log log = {0};
	bool hit = true;
	size_t n = 0;
	char *file;

	outbox_init(&box, &rig.book);
	for (long k = 0; hit; k++) {
		told.n = 0;
		for (int i = 0; i < 4; i++)
			put_numbered(&box, &log, RUN_A, i);
		fault_alloc(k);
		while (!fault_alloc_hit() && !outbox_empty(&box))
			rig_turn(&rig);
		hit = fault_alloc_end();
		RIG_UNTIL(&rig, outbox_empty(&box));
		assert_int_equal(told.n, 4);
		for (int i = 0; i < 4; i++)
			assert_true(told.rv[i] == 0 && told.who[i] == i);
		n += 4;
		assert_true(n + 4 < ARRAY_LEN(v));
	}
	assert_true(n > 4 * 4);
	assert_int_equal(rig_events(&rig, LOG_A, v, ARRAY_LEN(v), &file), n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(v[i].seq, i + 1);
	free(file);
	outbox_fini(&box);
}

/* ---- reading: what cannot be read leaves what the caller holds as it was */

static const char *no_file; /* whose open fails */

static int open_fails(int dirfd, const char *path, int flags, mode_t mode)
{
	if (no_file != NULL && strcmp(path, no_file) == 0) {
		errno = EMFILE;
		return -1;
	}
	return sys_real.openat(dirfd, path, flags, mode);
}

TEST(a_part_that_cannot_be_opened)
{
	static char mine[] = "mine";
	struct sys_ops ops = *sys;
	const struct sys_ops *was = sys;
	struct ava_error err = {0};
	char *data = mine;
	size_t len = 4;

	ops.openat = open_fails;
	sys = &ops;
	rig_write(&rig, "x.jsonl", "1\n");
	rig_write(&rig, "x.2.jsonl", "2\n");
	rig_write(&rig, "x.3.jsonl", "3\n");
	no_file = "x.3.jsonl";
	assert_int_equal(logbook_read(rig.root_fd, "x.jsonl", 64, &data, &len, &err), AVA_EIO);
	assert_ptr_equal(data, mine);
	assert_int_equal(len, 4);
	assert_non_null(strstr(err.text, "x.3.jsonl"));
	no_file = NULL;
	assert_int_equal(logbook_read(rig.root_fd, "x.jsonl", 64, &data, &len, &err), 0);
	assert_string_equal(data, "1\n2\n3\n");
	free(data);
	sys = was;
}

/* A folder and a pipe in the place of parts are somebody's: what stands around them counts. */
TEST(what_is_no_part)
{
	struct ava_error err = {0};
	char *data;
	size_t len;

	rig_write(&rig, "x.jsonl", "1\n");
	assert_int_equal(mkdir(rig_path(&rig, "x.2.jsonl"), 0700), 0);
	assert_int_equal(mkfifo(rig_path(&rig, "x.3.jsonl"), 0600), 0);
	rig_write(&rig, "x.4.jsonl", "4\n");
	rig_write(&rig, "x.5.jsonl", "");
	assert_int_equal(truncate(rig_path(&rig, "x.5.jsonl"), (off_t)1 << 40), 0);
	assert_int_equal(logbook_read(rig.root_fd, "x.jsonl", 64, &data, &len, &err), 0);
	assert_string_equal(data, "1\n4\n");
	free(data);
	assert_int_equal(unlink(rig_path(&rig, "x.jsonl")), 0);
	assert_int_equal(mkdir(rig_path(&rig, "x.jsonl"), 0700), 0);
	assert_int_equal(logbook_read(rig.root_fd, "x.jsonl", 64, &data, &len, &err), 0);
	assert_string_equal(data, "4\n");
	free(data);
	assert_int_equal(unlink(rig_path(&rig, "x.4.jsonl")), 0);
	assert_int_equal(logbook_read(rig.root_fd, "x.jsonl", 64, &data, &len, &err), AVA_EINVAL);
	assert_int_equal(logbook_read(rig.root_fd, "y.jsonl", 64, &data, &len, &err), AVA_ENOENT);
}

UNIT_GROUP(.before = open_rig, .after = no_rig);
