/* A journal of 200 commits, cut at every byte and flipped at every byte.
 *
 * Two disks for each: one whose views were lost (a power cut before any of
 * them was synced) and one where they are there (kill -9). Expected:
 *   cut      the views hold exactly the commits whose batch is whole; nothing
 *            else appears anywhere.
 *   flipped  the damage is named, segment and place; every other commit is
 *            kept, in its view or, behind a hole, in lost/ with a
 *            continuation; no byte appears that was not committed.
 * With views in place nothing in them changes. Every place is tried. */
#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"
#include "journal/journal.h"
#include "journal/recovery.h"
#include "journal/wal.h"
#include "memdisk.h"

/* Their shapes repeat after 100; the time goes with the square of their number. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COMMITS 60 /* 20 times slower */
#else
#define COMMITS 200
#endif
#define VIEWS 4
#define PUT   VIEWS /* index of the file that is written whole */
#define FILES (VIEWS + 1)

static const char *const names[FILES] = {"catalog.jsonl", "logs/d.jsonl", "logs/s/a.jsonl",
					 "logs/s/b.jsonl", "runs/a/result.json"};
static const char *const seg_path = "/wal/0000000000000001.seg";

/* What commit i does: appends a line to one view or two, now and then puts. */
struct commit_at {
	uint64_t from, to; /* its batch in the segment */
	size_t len[FILES]; /* of each file after it; for PUT: length of the content */
	uint64_t first_lsn;
};

struct scene {
	struct memdisk *bare, *full; /* views lost; views there */
	size_t wal_end;              /* used part of the segment */
	struct commit_at at[COMMITS];
	char *text[FILES]; /* everything ever appended; PUT: all contents in a row */
	size_t len[FILES];
	size_t put_at[COMMITS]; /* where commit i's content begins in text[PUT] */
};

static struct scene scene;

/* ---- building it */

static void add_line(struct journal_op *op, int file, int commit)
{
	static char lines[FILES][128];
	char *line = lines[file];

	op->kind = file == PUT ? JOURNAL_PUT : JOURNAL_APPEND;
	op->path = names[file];
	op->len = (size_t)snprintf(line, 128, "{\"n\":%d,\"f\":%d,\"text\":\"%.*s\"}\n", commit,
				   file, commit % 23, "abcdefghijklmnopqrstuvwxyz");
	op->bytes = line;
	if (file == PUT)
		scene.put_at[commit] = scene.len[PUT];
	scene.text[file] = realloc(scene.text[file], scene.len[file] + op->len);
	memcpy(scene.text[file] + scene.len[file], line, op->len);
	scene.len[file] += op->len;
}

static void commit_one(struct journal *j, int i)
{
	struct journal_op ops[2] = {0};
	unsigned n = 0;

	if (i % 25 == 3)
		add_line(&ops[n++], PUT, i);
	add_line(&ops[n++], i % VIEWS, i);
	if (n < 2 && i % 10 == 0)
		add_line(&ops[n++], (i + 1) % VIEWS, i);
	assert_int_equal(journal_commit(j, ops, n, JOURNAL_NOW, NULL, NULL), 0);
	assert_int_equal(journal_sync(j), 0);
	for (int f = 0; f < VIEWS; f++)
		scene.at[i].len[f] = scene.len[f];
	scene.at[i].len[PUT] = i % 25 == 3 ? scene.len[PUT] - scene.put_at[i]
			       : i > 0     ? scene.at[i - 1].len[PUT]
					   : 0;
	if (i % 25 != 3 && i > 0)
		scene.put_at[i] = scene.put_at[i - 1];
}

/* Where each batch stands, and where the mark behind the last one ends; 0
 * while that is not there. */
static size_t find_batches(struct memdisk *d)
{
	size_t len, at = WAL_BEGIN;
	const unsigned char *seg = (const unsigned char *)memdisk_read(d, seg_path, &len);
	struct wal_segment head;
	struct wal_batch b;
	int i = 0;

	assert_int_equal(wal_segment_get(seg, 1, &head), 2);
	for (; wal_batch_get(seg, len, at, head.salt, &b); at += WAL_BATCH_HEAD + b.len) {
		if (b.len == 0) {
			if (i == COMMITS)
				return at + WAL_BATCH_HEAD;
			continue; /* the machine was slow and the journal idle */
		}
		assert_true(i < COMMITS);
		scene.at[i].from = at;
		scene.at[i].first_lsn = b.first_lsn;
		scene.at[i++].to = at + WAL_BATCH_HEAD + b.len;
	}
	return 0;
}

/* Every byte; with the weight of a sanitiser every 29th, since the same build
 * without one goes through them all. */
static size_t stride(void)
{
	const char *sanitizer = getenv("AVA_SANITIZER");

	return sanitizer != NULL && *sanitizer != '\0' ? 29 : 1;
}

static int build(void **state)
{
	struct journal_options o = {.root = "/", .segment_bytes = 64 << 10};
	struct memdisk *d = memdisk_new();
	struct journal *j;
	size_t spare;

	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	memdisk_use(d);
	assert_int_equal(journal_open(&j, &o, NULL, NULL), 0);
	/* With spare segments ready the log stays in the first. */
	while (memdisk_read(d, "/wal/0000000000000002.seg", &spare) == NULL)
		usleep(1000);
	for (int i = 0; i < COMMITS; i++)
		commit_one(j, i);
	do {
		usleep(1000); /* the mark comes when the journal has been idle */
		scene.full = memdisk_clone(d);
		scene.wal_end = find_batches(scene.full);
		if (scene.wal_end == 0)
			memdisk_free(scene.full);
	} while (scene.wal_end == 0);
	scene.bare = memdisk_clone(scene.full);
	memdisk_remove(scene.bare, "/catalog.jsonl");
	memdisk_remove(scene.bare, "/logs");
	memdisk_remove(scene.bare, "/runs");
	journal_close(j);
	memdisk_use(NULL);
	memdisk_free(d);
	return 0;
}

static int destroy(void **state)
{
	memdisk_free(scene.bare);
	memdisk_free(scene.full);
	for (int f = 0; f < FILES; f++)
		free(scene.text[f]);
	return 0;
}

/* ---- one recovery */

static void recover(struct memdisk *d, struct recovery *r)
{
	struct ava_error err = {0};
	int root, wal, rv;

	memdisk_use(d);
	root = sys->openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
	wal = sys->openat(root, "wal", O_RDONLY | O_DIRECTORY, 0);
	rv = recovery_run(root, wal, r, &err);
	if (rv != 0)
		print_message("recovery: %d %s\n", rv, err.text);
	assert_int_equal(rv, 0);
	files_close(&wal);
	files_close(&root);
	memdisk_use(NULL);
}

#define CHECK(condition, what, place)                                                              \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_msg("%s at byte %zu: %s", what, (size_t)(place), #condition);         \
	} while (0)

static bool holds(struct memdisk *d, const char *path, const char *bytes, size_t len)
{
	size_t got_len;
	const char *got = memdisk_read(d, path, &got_len);

	return got != NULL && got_len == len && memcmp(got, bytes, len) == 0;
}

static bool absent(struct memdisk *d, const char *path)
{
	size_t len;

	return memdisk_read(d, path, &len) == NULL;
}

static const char *full_name(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "/%s", name);
	return path;
}

struct tally {
	size_t files, bytes;
};

static void count_file(const char *path, const char *bytes, size_t len, void *user)
{
	struct tally *t = user;

	if (strncmp(path, "/wal/", 5) == 0 || strcmp(path, "/FORMAT") == 0)
		return;
	t->files++;
	t->bytes += len;
}

static struct tally tally(struct memdisk *d)
{
	struct tally t = {0};

	memdisk_walk(d, count_file, &t);
	return t;
}

/* The views hold the first `n` commits, and there is nothing else. */
static void check_prefix(struct memdisk *d, int n, const char *what, size_t place)
{
	struct tally want = {0}, got = tally(d);

	for (int f = 0; f < FILES; f++) {
		size_t len = n > 0 ? scene.at[n - 1].len[f] : 0;
		const char *text = scene.text[f] + (f == PUT && n > 0 ? scene.put_at[n - 1] : 0);

		if (len == 0) {
			CHECK(absent(d, full_name(names[f])), what, place);
			continue;
		}
		CHECK(holds(d, full_name(names[f]), text, len), what, place);
		want.files++;
		want.bytes += len;
	}
	CHECK(got.files == want.files && got.bytes == want.bytes, what, place);
}

/* Nothing in the views changed, and nothing of ours was put aside. A content
 * that the rest of the journal does not know is kept beside the one it does. */
static void check_unchanged(struct memdisk *d, const char *what, size_t place)
{
	const struct commit_at *last = &scene.at[COMMITS - 1];
	const char *put = scene.text[PUT] + scene.put_at[COMMITS - 1];
	char kept[256];

	for (int f = 0; f < VIEWS; f++)
		CHECK(holds(d, full_name(names[f]), scene.text[f], last->len[f]), what, place);
	snprintf(kept, sizeof(kept), "%s.broken", full_name(names[PUT]));
	CHECK(holds(d, full_name(names[PUT]), put, last->len[PUT]) ||
		      holds(d, kept, put, last->len[PUT]),
	      what, place);
}

/* ---- cut */

TEST(cut_views_lost)
{
	int n = 0;

	for (size_t k = 0; k <= scene.wal_end; k += stride()) {
		struct memdisk *d = memdisk_clone(scene.bare);
		struct recovery r;

		while (n < COMMITS && scene.at[n].to <= k)
			n++;
		memdisk_cut(d, seg_path, k);
		recover(d, &r);
		check_prefix(d, n, "cut", k);
		CHECK(r.report.redone_batches == (uint64_t)n, "cut", k);
		CHECK(r.report.damaged_batches == 0 && r.report.lost_bytes == 0, "cut", k);
		CHECK(n == 0 || r.lsn > scene.at[n - 1].first_lsn, "cut", k);
		/* Numbers that were given out behind the cut are not given again. */
		CHECK(k < WAL_HEAD_COPY || r.lsn > scene.at[COMMITS - 1].first_lsn, "cut", k);
		recovery_fini(&r);
		memdisk_free(d);
	}
}

TEST(cut_views_there)
{
	for (size_t k = 0; k <= scene.wal_end; k += stride()) {
		struct memdisk *d = memdisk_clone(scene.full);
		struct recovery r;

		memdisk_cut(d, seg_path, k);
		recover(d, &r);
		check_unchanged(d, "cut", k);
		CHECK(r.report.lost_bytes == 0, "cut", k);
		recovery_fini(&r);
		memdisk_free(d);
	}
}

/* ---- flipped */

static int commit_of(size_t place)
{
	int low = 0, high = COMMITS;

	while (low < high) {
		int mid = (low + high) / 2;

		if (scene.at[mid].to <= place)
			low = mid + 1;
		else
			high = mid;
	}
	return low < COMMITS && scene.at[low].from <= place ? low : -1;
}

/* The report says which segment and where. */
static void check_named(const struct recovery *r, uint64_t from, size_t place)
{
	char want[96];

	CHECK(r->report.damaged_batches == 1, "flip", place);
	CHECK(strstr(r->report.problems, "0000000000000001.seg") != NULL, "flip", place);
	snprintf(want, sizeof(want), "damaged batch at %" PRIu64 ", lsn ", from);
	CHECK(strstr(r->report.problems, want) != NULL, "flip", place);
}

static const char *lost_path(int file, int commit)
{
	static char path[256];
	size_t len;

	snprintf(path, sizeof(path), "/lost/%s", names[file]);
	for (char *p = path + strlen("/lost/"); *p != '\0'; p++)
		*p = *p == '/' ? '+' : *p;
	len = strlen(path) - strlen(".jsonl");
	snprintf(path + len, sizeof(path) - len, ".%" PRIu64 ".jsonl", scene.at[commit].first_lsn);
	return path;
}

static const char *second_part(int file)
{
	static char path[256];
	char name[FILES_BUF];

	snprintf(path, sizeof(path), "/%s", files_part_name(names[file], 2, name));
	return path;
}

/* First commit behind `bad` that appends to `file`; COMMITS: none. */
static int next_append(int file, int bad)
{
	int i = bad + 1;

	while (i < COMMITS && scene.at[i].len[file] == scene.at[i - 1].len[file])
		i++;
	return i;
}

/* Commit `bad` is gone, all others are there. */
static void check_without(struct memdisk *d, int bad, size_t place)
{
	const struct commit_at *last = &scene.at[COMMITS - 1];

	for (int f = 0; f < VIEWS; f++) {
		size_t before = bad > 0 ? scene.at[bad - 1].len[f] : 0;
		size_t after = scene.at[bad].len[f];
		int next = next_append(f, bad);

		if (before == after) {
			CHECK(holds(d, full_name(names[f]), scene.text[f], last->len[f]), "flip",
			      place);
			continue;
		}
		CHECK(before == 0 ? absent(d, full_name(names[f]))
				  : holds(d, full_name(names[f]), scene.text[f], before),
		      "flip", place);
		if (next == COMMITS)
			continue;
		CHECK(holds(d, lost_path(f, next), scene.text[f] + after, last->len[f] - after),
		      "flip", place);
		CHECK(holds(d, second_part(f), "", 0), "flip", place);
	}
	for (int i = COMMITS - 1; i >= 0; i--)
		if (i % 25 == 3 && i != bad) {
			CHECK(holds(d, full_name(names[PUT]), scene.text[PUT] + scene.put_at[i],
				    scene.at[i].len[PUT]),
			      "flip", place);
			break;
		}
}

TEST(flip_views_lost)
{
	for (size_t k = 0; k < scene.wal_end; k += stride()) {
		struct memdisk *d = memdisk_clone(scene.bare);
		int bad = commit_of(k);
		struct recovery r;

		memdisk_poke(d, seg_path, k, (unsigned char)(1 << k % 8));
		recover(d, &r);
		if (bad < 0) {
			/* One copy of the header, or a mark: nothing is lost. */
			check_prefix(d, COMMITS, "flip", k);
			CHECK(k >= WAL_BEGIN || r.report.nproblems == 1, "flip", k);
		} else {
			check_named(&r, scene.at[bad].from, k);
			check_without(d, bad, k);
		}
		recovery_fini(&r);
		memdisk_free(d);
	}
}

TEST(flip_views_there)
{
	for (size_t k = 0; k < scene.wal_end; k += stride()) {
		struct memdisk *d = memdisk_clone(scene.full);
		int bad = commit_of(k);
		struct recovery r;

		memdisk_poke(d, seg_path, k, (unsigned char)(1 << k % 8));
		recover(d, &r);
		check_unchanged(d, "flip", k);
		CHECK(r.report.lost_bytes == 0, "flip", k);
		if (bad >= 0)
			check_named(&r, scene.at[bad].from, k);
		recovery_fini(&r);
		memdisk_free(d);
	}
}

UNIT_GROUP(.first = build, .last = destroy);
