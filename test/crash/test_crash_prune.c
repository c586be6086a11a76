/* A crash before every call of pruning: runs of three days stand in a root
 * with their results and seals, and those of the first two are pruned; at each
 * call to the disk it is taken as a kill and as power cuts leave it. When the
 * root is opened again each run is there whole, byte for byte, or gone whole,
 * the days too; what was to stay is there; what is left verifies; and pruning
 * once more takes what is still to go.
 *
 * The wall clock is this test's (linked in place of the real one). */
#include "core_disk.h"

#include "ava/prune.h"
#include "base/buf.h"
#include "base/clock.h"

#define DAYS  3
#define RUNS  4
#define DAY   INT64_C(86400000)
#define NOON  INT64_C(1795262400000) /* 2026-11-21T12:00Z */
#define FILES 64

int64_t __real_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void);

static _Atomic int64_t now_ms; /* 0: the real one, for other groups */

int64_t __wrap_clock_wall_ms(void)
{
	return atomic_load(&now_ms) != 0 ? atomic_fetch_add(&now_ms, 1) : __real_clock_wall_ms();
}

static const char script[] =
	"{\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"path\":\"a.c\"}}]}\n"
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":\"in a.c:1\","
	"\"confidence\":0.5}}]}\n";

/* ---- three days */

/* The first day has two runs. */
static void live(struct world *w, struct memdisk *d)
{
	for (int day = 0; day < DAYS; day++) {
		atomic_store(&now_ms, NOON - (DAYS - 1 - day) * DAY);
		core_begin(w, d);
		core_ask(w, NULL);
		if (day == 0)
			core_ask(w, NULL);
		core_end(w);
	}
}

/* ---- what is there */

struct picture {
	struct {
		char path[128];
		char *bytes;
		size_t len;
	} files[FILES];
	size_t n;
};

/* What belongs to runs, and the days. */
static void take_file(const char *path, const char *bytes, size_t len, void *user)
{
	struct picture *p = user;

	if (strncmp(path, "/runs/", 6) != 0 && strncmp(path, "/logs/subagents/", 16) != 0 &&
	    strncmp(path, "/logs/ava/", 10) != 0)
		return;
	assert_true(p->n < FILES);
	snprintf(p->files[p->n].path, sizeof(p->files[0].path), "%s", path);
	p->files[p->n].bytes = malloc(len + 1);
	assert_non_null(p->files[p->n].bytes);
	memcpy(p->files[p->n].bytes, bytes, len);
	p->files[p->n++].len = len;
}

static void picture_fini(struct picture *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->files[i].bytes);
	p->n = 0;
}

/* Of the files with `part` in their names: 1 all are as they were, 0 none is
 * there, -1 neither. */
static int whole(struct memdisk *d, const struct picture *was, const char *part)
{
	size_t there = 0, all = 0, len;

	for (size_t i = 0; i < was->n; i++) {
		const char *bytes;

		if (strstr(was->files[i].path, part) == NULL)
			continue;
		all++;
		bytes = memdisk_read(d, was->files[i].path, &len);
		if (bytes == NULL)
			continue;
		if (len != was->files[i].len || memcmp(bytes, was->files[i].bytes, len) != 0)
			return -1;
		there++;
	}
	assert_true(all > 0);
	return there == all ? 1 : there == 0 ? 0 : -1;
}

static void on_finding(const struct ava_finding *f, void *user)
{
	if (f->kind == AVA_BROKEN)
		snprintf(user, 400, "%s:%llu: %s", f->path, (unsigned long long)f->line, f->what);
}

static void check_verifies(struct memdisk *d, const char *when)
{
	char broken[400] = "";
	struct ava_verify o = {.root = "/", .finding = on_finding, .user = broken, .threads = 1};
	struct ava_verified report;
	struct ava_error err = {0};

	memdisk_use(d);
	if (ava_log_verify(&o, &report, &err) != 0)
		fail_msg("%s: verify: %s", when, err.text);
	memdisk_use(NULL);
	if (broken[0] != '\0')
		fail_msg("%s: %s", when, broken);
	assert_true(report.seals > 0);
}

/* ---- pruning */

static void prune(struct world *w, struct memdisk *d)
{
	struct core_options o = core_options_of(w);
	struct ava_error err = {0};
	TEST_BUF(report, 1u << 20);

	memdisk_use(d);
	if (core_prune(&o, NOON - DAY / 4, false, &report, &err) != 0)
		fail_msg("prune: %s", err.text);
	memdisk_use(NULL);
}

static const char *const old_days[] = {"/2026-11-19.", "/2026-11-20."};

/* Returns how many of the old runs are there. */
static int check_whole(const struct world *w, struct memdisk *d, const struct picture *was,
		       const char *when)
{
	int there = 0, is;

	for (int i = 0; i < RUNS; i++) {
		is = whole(d, was, w->ids[i]);
		if (is < 0 || (i == RUNS - 1 && is == 0))
			fail_msg("%s: run %d (%s) is %s", when, i, w->ids[i],
				 is < 0 ? "there in part" : "gone");
		there += i < RUNS - 1 && is;
	}
	for (size_t i = 0; i < ARRAY_LEN(old_days); i++)
		if (whole(d, was, old_days[i]) < 0)
			fail_msg("%s: the log %s is there in part", when, old_days[i]);
	return there;
}

static void check_gone(const struct world *w, struct memdisk *d, const struct picture *was,
		       const char *when)
{
	if (check_whole(w, d, was, when) != 0)
		fail_msg("%s: an old run is still there", when);
	for (size_t i = 0; i < ARRAY_LEN(old_days); i++)
		assert_int_equal(whole(d, was, old_days[i]), 0);
}

static void crash_at(struct world *w, const struct film *f, size_t i, enum cut cut,
		     const struct picture *was)
{
	struct memdisk *d = cut_disk(f->at[i].d, cut, i);
	char when[100];

	snprintf(when, sizeof(when), "call %zu of %zu, %s", i, f->n, cut_names[cut]);
	core_begin(w, d);
	core_end(w);
	check_whole(w, d, was, when);
	check_verifies(d, when);
	prune(w, d);
	check_gone(w, d, was, when);
	check_verifies(d, when);
	memdisk_free(d);
}

TEST(every_call)
{
	struct memdisk *d = memdisk_new();
	static struct world w;
	static struct film f = {.w = &w};
	static struct picture was;
	long disks = 0;

	setenv("TZ", "UTC0", 1);
	core_set_up(&w, d, "offline:/script.jsonl", script);
	live(&w, d);
	memdisk_walk(d, take_file, &was);
	check_verifies(d, "before");
	memdisk_watch(d, film_on_call, &f);
	prune(&w, d);
	memdisk_watch(d, NULL, NULL);
	check_gone(&w, d, &was, "without a crash");
	check_verifies(d, "without a crash");
	memdisk_free(d);
	for (size_t i = 0; i < f.n; i++)
		for (size_t cut = 0; cut < CUTS; cut++, disks++)
			crash_at(&w, &f, i, (enum cut)cut, &was);
	print_message("figure prune_points %zu\nfigure prune_disks %ld\n", f.n, disks);
	assert_true(f.n > 30);
	film_fini(&f);
	picture_fini(&was);
	core_tear_down(&w);
}

/* A file that cannot be removed ends pruning with its name, and is told at each
 * start, which it does not prevent; when it can be removed the rest goes. */
TEST(what_cannot_go)
{
	struct memdisk *d = memdisk_new();
	static struct picture was;
	static struct world w;
	struct core_options o;
	struct ava_error err = {0};
	TEST_BUF(report, 1u << 20);

	setenv("TZ", "UTC0", 1);
	core_set_up(&w, d, "offline:/script.jsonl", script);
	o = core_options_of(&w);
	live(&w, d);
	memdisk_walk(d, take_file, &was);
	memdisk_fail(d, 0, MEMDISK_FOREVER, EACCES);
	memdisk_fail_name(d, "result.json", MEMDISK_WRITES);
	memdisk_use(d);
	assert_int_equal(core_prune(&o, NOON - DAY / 4, false, &report, &err), AVA_EDENIED);
	memdisk_use(NULL);
	assert_non_null(strstr(err.text, "result.json"));
	core_begin(&w, d);
	assert_non_null(strstr(w.told, "pruning that was begun"));
	assert_non_null(strstr(w.told, "result.json"));
	core_end(&w);
	assert_true(memdisk_fail_end(d));
	core_begin(&w, d);
	core_end(&w);
	check_gone(&w, d, &was, "when it can be removed");
	check_verifies(d, "when it can be removed");
	memdisk_free(d);
	picture_fini(&was);
	core_tear_down(&w);
}
