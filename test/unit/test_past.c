/* The past that a start keeps of the catalog says the same as all rows do, costs what came since,
 * and is believed only of the catalog that it was made of. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "subagent/past.h"

#define KEPT "wal/catalog"

static char top[256];
static int root;
static uint64_t lsn;
static int64_t ago;

static const char *at(const char *path)
{
	static char full[600];

	snprintf(full, sizeof(full), "%s/%s", top, path);
	return full;
}

static int set_up(void **state)
{
	snprintf(top, sizeof(top), "%s", unit_tmpdir());
	unit_mkdirs(top, "wal/");
	root = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lsn = 0;
	ago = 0;
	return root < 0;
}

static int tear_down(void **state)
{
	sys = &sys_real;
	close(root);
	unit_rmdir(top);
	return 0;
}

static void put(enum catalog_kind kind, unsigned run, const char *group)
{
	char id[24], trace[24], request[24];
	struct catalog_row row = {.kind = kind,
				  .status = kind == CATALOG_END ? AVA_SUCCESS : AVA_STARTING,
				  .lsn = ++lsn,
				  .id = id,
				  .trace_id = trace,
				  .role = run % 2 ? "researcher" : "code_reviewer",
				  .request_id = request,
				  .group_id = group,
				  .group_index = group[0] ? 1 : 0,
				  .cwd = kind == CATALOG_END ? ""
					 : run % 4           ? "/srv/site"
							     : "/srv",
				  .shown = {.task = kind == CATALOG_END ? "x" : NULL,
					    .cwd = run % 4 ? "/srv/site" : "/srv"},
				  .tags = run % 5 ? "nightly" : "client=acme nightly",
				  .started_ms = clock_wall_ms() - ago - 1000,
				  .ended_ms = kind == CATALOG_END ? clock_wall_ms() - 500 : -1};
	TEST_BUF(b, 4096);

	snprintf(id, sizeof(id), "S-%06x", run);
	snprintf(trace, sizeof(trace), "word-%u", run);
	request[0] = '\0';
	if (run % 3 == 0)
		snprintf(request, sizeof(request), "r %u\n", run);
	if (kind == CATALOG_END)
		row.totals =
			(struct catalog_totals){.cost_microusd = 7, .duration_ms = run, .calls = 1};
	assert_int_equal(catalog_encode(&b, &row), 0);
	unit_append(at(CATALOG_PATH), b.data, b.len);
}

static void ended(unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++) {
		put(CATALOG_SPAWN, i, "");
		put(CATALOG_END, i, "");
	}
}

static bool believed(bool rested)
{
	struct past p;
	bool kept;

	assert_int_equal(past_read(&p, root, NULL, false, rested, NULL), 0);
	kept = p.kept;
	past_fini(&p);
	return kept;
}

static uint64_t settled(void)
{
	struct past p;

	assert_int_equal(past_read(&p, root, NULL, false, true, NULL), 0);
	past_fini(&p);
	return p.settled;
}

static void assert_same(unsigned runs)
{
	struct past p, q;
	const struct list *m;

	assert_int_equal(past_read(&p, root, NULL, false, true, NULL), 0);
	assert_int_equal(past_read(&q, root, NULL, true, true, NULL), 0);
	assert_true(p.kept);
	assert_false(q.kept);
	assert_int_equal(p.total, q.total);
	assert_memory_equal(&p.spend, &q.spend, sizeof(p.spend));
	assert_memory_equal(p.quotes.roles, q.quotes.roles, sizeof(p.quotes.roles));
	assert_int_equal(p.quotes.nroles, q.quotes.nroles);
	assert_int_equal(p.names.count, q.names.count);
	assert_int_equal(p.requests.len, q.requests.len);
	if (q.requests.len > 0)
		assert_memory_equal(p.requests.data, q.requests.data, q.requests.len);
	for (unsigned i = 0; i < runs; i++) {
		char id[24], trace[24];

		snprintf(id, sizeof(id), "S-%06x", i);
		snprintf(trace, sizeof(trace), "word-%u", i);
		assert_true(nameset_has(&p.names, id) && nameset_has(&p.names, trace));
	}
	m = q.runs.next;
	LIST_EACH (&p.runs, n, tmp) {
		const struct past_run *r = LIST_ENTRY(n, struct past_run, node);
		const struct past_run *s = LIST_ENTRY(m, struct past_run, node);

		assert_true(m != &q.runs);
		assert_string_equal(r->spawn.id, s->spawn.id);
		assert_int_equal(r->spawn.lsn, s->spawn.lsn);
		assert_int_equal(r->end.id != NULL, s->end.id != NULL);
		m = m->next;
	}
	assert_true(m == &q.runs);
	past_fini(&p);
	past_fini(&q);
}

/* Runs that have not ended, and those of a group that goes on, wherever the place falls. */
TEST(says_what_all_rows_do)
{
	ended(0, 40);
	past_keep(root, NULL, 0, 0);
	assert_same(40);
	put(CATALOG_SPAWN, 40, "G-1");
	past_keep(root, NULL, 0, 77);
	assert_same(41);
	put(CATALOG_END, 40, "G-1");
	past_keep(root, NULL, 0, 0);
	put(CATALOG_SPAWN, 41, "G-1"); /* the next of a chain */
	put(CATALOG_SPAWN, 42, "");
	past_keep(root, NULL, 0, 0);
	assert_same(43);
	ended(43, 200);
	past_keep(root, NULL, 0, 0);
	assert_same(243);
	put(CATALOG_END, 41, "G-1");
	put(CATALOG_END, 42, "");
	assert_same(243);
	past_keep(root, NULL, 0, 0);
	ended(243, 40);
	assert_same(283);

	/* The lsn of the daily logs holds until another is told. */
	assert_int_equal(settled(), 77);
	past_keep(root, NULL, 0, 99);
	assert_int_equal(settled(), 99);
}

/* The sums of budgets are kept for the budgets there were: with other ones all rows are read. */
TEST(sums_of_budgets)
{
	static struct settings_budget rows[] = {{"/srv/site", {0, 1, 1}},
						{"client=acme", {1, 0, 0}}};
	struct settings s = {.budget_month_cents = 5, .budgets = rows, .nbudgets = 2};
	static const int in_site[] = {30, 37, 45};
	struct past p;

	ended(0, 40);
	past_keep(root, NULL, 0, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(past_read(&p, root, &s, false, true, NULL), 0);
		assert_int_equal(p.kept, i > 0);
		assert_int_equal(p.spends.of[1].microusd, (40 + 10 * i) * 7); /* the month */
		assert_int_equal(p.spends.of[2].microusd, in_site[i] * 7);
		assert_int_equal(p.spends.of[4].microusd, (8 + 2 * i) * 7);
		past_fini(&p);
		past_keep(root, &s, 0, 0);
		if (i < 2)
			ended((unsigned)(40 + 10 * i), 10);
	}
	rows[0].cents[1] = 70; /* another limit is no other budget */
	assert_int_equal(past_read(&p, root, &s, false, true, NULL), 0);
	assert_true(p.kept);
	past_fini(&p);
	rows[0].cents[0] = 70;
	assert_int_equal(past_read(&p, root, &s, false, true, NULL), 0);
	assert_false(p.kept);
	assert_int_equal(p.spends.of[1].microusd, 60 * 7);
	past_fini(&p);
	assert_int_equal(past_read(&p, root, NULL, false, true, NULL), 0);
	assert_false(p.kept); /* those of no budgets are other ones, too */
	past_fini(&p);
}

static size_t requests(void)
{
	struct past p;
	size_t n = 0;

	assert_int_equal(past_read(&p, root, NULL, false, true, NULL), 0);
	for (size_t i = 0; i < p.requests.len; i++)
		n += p.requests.data[i] == '\0';
	past_fini(&p);
	return n;
}

/* A clock that is two days ahead when it is written takes no request's day from it. */
TEST(a_day_of_requests)
{
	ago = 2 * REQUEST_AGE_MS;
	ended(0, 30);
	past_keep(root, NULL, 0, 0);
	assert_int_equal(requests(), 10);
	ago = 0;
	ended(30, 3);
	past_keep(root, NULL, 0, 0);
	assert_int_equal(requests(), 1);
	/* Requests go while the whole is read, too. */
	assert_int_equal(unlinkat(root, CATALOG_PATH, 0), 0);
	for (unsigned day = 20; day > 0; day--) {
		ago = day * REQUEST_AGE_MS;
		ended(day * 600, 600);
	}
	assert_in_range(requests(), 200, 2600);
}

/* Chains that go on keep what ended of them, however many there are: their limits count it. */
TEST(chains_that_go_on)
{
	char group[24];

	for (unsigned i = 0; i < 200; i++) {
		snprintf(group, sizeof(group), "G-%06x", i);
		put(CATALOG_SPAWN, i, group);
	}
	for (unsigned i = 0; i < 200; i++) {
		snprintf(group, sizeof(group), "G-%06x", i);
		put(CATALOG_END, i, group);
		put(CATALOG_SPAWN, 200 + i, group);
	}
	past_keep(root, NULL, 0, 0);
	assert_same(400);
	put(CATALOG_SPAWN, 400, "");
	past_keep(root, NULL, 0, 0);
	assert_same(401);
}

static int catalog_fd = -1;
static uint64_t catalog_bytes;

static int openat_watched(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = sys_real.openat(dirfd, path, flags, mode);

	if (strcmp(path, CATALOG_PATH) == 0)
		catalog_fd = fd;
	else if (fd == catalog_fd)
		catalog_fd = -1;
	return fd;
}

static ssize_t pread_watched(int fd, void *buf, size_t len, off_t from)
{
	ssize_t n = sys_real.pread(fd, buf, len, from);

	if (fd == catalog_fd && n > 0)
		catalog_bytes += (uint64_t)n;
	return n;
}

/* The catalog may be as long as it likes: what is read of it are the rows behind the place. */
TEST(costs_what_came_since)
{
	static struct sys_ops ops;
	uint64_t before = 0;

	ops = sys_real;
	ops.openat = openat_watched;
	ops.pread = pread_watched;
	for (unsigned n = 200; n <= 800; n *= 2) {
		ended(n / 2, n / 2);
		past_keep(root, NULL, 0, 0);
		sys = &ops;
		catalog_bytes = 0;
		assert_true(believed(true));
		assert_true(catalog_bytes <= 2 * CATALOG_LOOK);
		assert_true(before == 0 || catalog_bytes == before);
		before = catalog_bytes;
		put(CATALOG_SPAWN, 0x10000 + n, "");
		put(CATALOG_END, 0x10000 + n, "");
		catalog_bytes = 0;
		assert_true(believed(true));
		assert_true(catalog_bytes > before && catalog_bytes < before + 2048);
		sys = &sys_real;
	}
	/* Beside the work it is written when much stands behind it. */
	sys = &ops;
	catalog_bytes = 0;
	past_keep(root, NULL, PAST_BEHIND, 0);
	assert_int_equal(catalog_bytes, 0);
}

static void flip(const char *path, size_t place)
{
	int fd = open(at(path), O_RDWR | O_CLOEXEC);
	char c;

	assert_int_equal(pread(fd, &c, 1, (off_t)place), 1);
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, (off_t)place), 1);
	close(fd);
}

/* Whatever became of either file: then it is all rows. */
TEST(of_this_catalog_alone)
{
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	char *text;
	size_t len;
	struct stat st;

	ended(0, 60);
	put(CATALOG_SPAWN, 60, "");
	past_keep(root, NULL, 0, 0);
	assert_int_equal(stat(at(KEPT), &st), 0);
	for (size_t i = 0; i < (size_t)st.st_size; i += i < 512 ? 1 : 61) {
		flip(KEPT, i);
		assert_false(believed(true));
		flip(KEPT, i);
	}
	assert_true(believed(true));
	assert_int_equal(truncate(at(KEPT), st.st_size - 1), 0);
	assert_false(believed(true));
	past_keep(root, NULL, 0, 0);

	/* A byte near the end is seen by itself, one before by the time of the change. */
	text = unit_read(at(CATALOG_PATH), &len);
	flip(CATALOG_PATH, len - 100);
	assert_false(believed(false));
	flip(CATALOG_PATH, len - 100);
	assert_int_equal(utimensat(AT_FDCWD, at(CATALOG_PATH), old, 0), 0);
	assert_true(believed(false));
	assert_false(believed(true));

	/* Cut, removed, put in its place anew. */
	assert_int_equal(truncate(at(CATALOG_PATH), (off_t)len - 1), 0);
	assert_false(believed(false));
	assert_int_equal(renameat(root, CATALOG_PATH, root, "old"), 0);
	assert_false(believed(false));
	unit_write(at(CATALOG_PATH), text, len);
	assert_false(believed(false));
	past_keep(root, NULL, 0, 0);
	assert_true(believed(true));
	free(text);
}

/* Such a line is told at each start, and costs no reading of the whole catalog. */
TEST(a_line_that_is_no_row)
{
	struct past p;

	ended(0, 3);
	unit_append(at(CATALOG_PATH), "{}\n", 3);
	ended(3, 3);
	for (uint64_t n = 1; n <= 2; n++) {
		past_keep(root, NULL, 0, 0);
		assert_int_equal(past_read(&p, root, NULL, false, true, NULL), 0);
		assert_true(p.kept);
		assert_int_equal(p.unread, n);
		assert_int_equal(p.total, 6);
		past_fini(&p);
		unit_append(at(CATALOG_PATH), "{}\n", 3);
	}
}

UNIT_GROUP(.before = set_up, .after = tear_down);
