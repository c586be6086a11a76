/* Durable commits: how many a second, how long each takes and what it costs,
 * beside plain group commit, SQLite and Redis. bench/README.md says how to
 * read it.
 *
 *     bench_journal [--quick] [--seconds S] [--rounds N] [--dir DIR] [--ours] [--json]
 *     bench_journal --one WRITERS VIEWS RATE      for a profiler
 *
 * A round runs every row of the table once, so that a disk or a neighbour that
 * changes its mind hits all of them; what is printed are medians over the
 * rounds, ratios being taken within a round. --ours leaves out the peers; --one
 * runs our journal alone: RATE 0 is the closed loop, WRITERS 0 the open one.
 * Everything stands in a folder of its own below DIR (default $TMPDIR, else
 * /tmp) that is removed. Exit code 0 also when an aim is missed: other
 * programs on the machine decide that too. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/util.h"
#include "journal_floor.h"
#include "journal_load.h"
#include "journal_peers.h"

#define ROUNDS_MAX 31
#define VIEWS_MANY 10000
#define FIXED_RATE 150000.0

enum row_id {
	FLUSH,
	RAW_1,
	RAW_64,
	RAW_1000,
	SQLITE_1,
	SQLITE_64,
	SQLITE_1000,
	REDIS_1,
	REDIS_64,
	REDIS_1000,
	REDIS_PIPE,
	PLAIN_ONE_HALF, /* the same load as our row of that name */
	PLAIN_MANY_HALF,
	WRITE_MANY,
	ONE_1, /* ours, over one view; the next five are in the same order */
	ONE_64,
	ONE_1000,
	ONE_HALF,
	ONE_FIXED,
	MANY_1,
	MANY_64,
	MANY_1000,
	MANY_HALF,
	MANY_FIXED,
	ROWS,
};

static const char *const names[ROWS] = {
	[FLUSH] = "one flush: pwrite 4 KB, fdatasync",
	[RAW_1] = "group commit alone, 1 writer",
	[RAW_64] = "group commit alone, 64 writers",
	[RAW_1000] = "group commit alone, 1000 writers",
	[SQLITE_1] = "SQLite, 1 insert a transaction",
	[SQLITE_64] = "SQLite, 64 inserts a transaction",
	[SQLITE_1000] = "SQLite, 1000 inserts a transaction",
	[REDIS_1] = "Redis, 1 connection",
	[REDIS_64] = "Redis, 64 connections",
	[REDIS_1000] = "Redis, 1000 connections",
	[REDIS_PIPE] = "Redis, 1 connection, 1000 in flight",
	[PLAIN_ONE_HALF] = "group commit, load of 1 view at half",
	[PLAIN_MANY_HALF] = "group commit, load of 10000 at half",
	[WRITE_MANY] = "pwrite, 10000 files in turn, 150000/s",
	[ONE_1] = "ava, 1 view, 1 writer",
	[ONE_64] = "ava, 1 view, 64 writers",
	[ONE_1000] = "ava, 1 view, 1000 writers",
	[ONE_HALF] = "ava, 1 view, half of that",
	[ONE_FIXED] = "ava, 1 view, 150000/s RIDE",
	[MANY_1] = "ava, 10000 views, 1 writer",
	[MANY_64] = "ava, 10000 views, 64 writers",
	[MANY_1000] = "ava, 10000 views, 1000 writers",
	[MANY_HALF] = "ava, 10000 views, half of that",
	[MANY_FIXED] = "ava, 10000 views, 150000/s RIDE",
};

static struct {
	int64_t duration_us;
	unsigned rounds;
	bool json, ours;
	char dir[512];
	unsigned one_views; /* --one: not 0 */
	struct load one;
} opt = {.duration_us = 1500000, .rounds = 5};

static struct sample samples[ROWS][ROUNDS_MAX];
static unsigned rounds_done;
static const char *skipped[ROWS]; /* why, or NULL */

/* ---- running */

static void remove_dir(void)
{
	bench_remove(opt.dir);
}

static const char *fresh_dir(void)
{
	static char path[600];

	snprintf(path, sizeof(path), "%s/peer", opt.dir);
	bench_remove(path);
	if (mkdir(path, 0700) != 0)
		bench_die("%s", path);
	return path;
}

static void keep(enum row_id row, struct sample s)
{
	if (bench_stop)
		exit(130); /* atexit() cleans up */
	samples[row][rounds_done] = s;
}

static void run_ours(unsigned views, enum row_id first)
{
	static const unsigned writers[] = {1, 64, 1000};
	struct bench_journal *b;
	struct load l = {.level = JOURNAL_NOW, .duration_us = opt.duration_us};
	char root[600];

	snprintf(root, sizeof(root), "%s/root", opt.dir);
	b = load_open(root, views);
	for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
		l.writers = writers[i];
		keep(first + i, load_run(b, &l));
	}
	l.writers = 0;
	l.per_second = samples[first + 2][rounds_done].rate / 2;
	keep(first + 3, load_run(b, &l));
	l.per_second = FIXED_RATE;
	l.level = JOURNAL_RIDE;
	keep(first + 4, load_run(b, &l));
	load_close(b);
	keep(views == 1 ? PLAIN_ONE_HALF : PLAIN_MANY_HALF,
	     floor_flush(fresh_dir(), samples[first + 3][rounds_done].rate, opt.duration_us));
}

static void skip(enum row_id first, enum row_id last, const char *why)
{
	for (int row = (int)first; row <= (int)last; row++)
		skipped[row] = why;
}

static void run_sqlite(void)
{
	if (peer_sqlite == NULL) {
		skip(SQLITE_1, SQLITE_1000, "built without SQLite");
		return;
	}
	keep(SQLITE_1, peer_sqlite(fresh_dir(), 1, opt.duration_us));
	keep(SQLITE_64, peer_sqlite(fresh_dir(), 64, opt.duration_us));
	keep(SQLITE_1000, peer_sqlite(fresh_dir(), 1000, opt.duration_us));
}

static void run_redis(void)
{
	struct redis *r = redis_open(fresh_dir());

	if (r == NULL) {
		skip(REDIS_1, REDIS_PIPE, "redis-server is not installed");
		return;
	}
	keep(REDIS_1, redis_run(r, 1, 1, opt.duration_us));
	keep(REDIS_64, redis_run(r, 64, 1, opt.duration_us));
	keep(REDIS_1000, redis_run(r, 1000, 1, opt.duration_us));
	keep(REDIS_PIPE, redis_run(r, 1, 1000, opt.duration_us));
	redis_close(r);
}

/* One row that is not in the table, for a profiler. */
static void run_one(void)
{
	struct bench_journal *b;
	char root[600];

	snprintf(root, sizeof(root), "%s/root", opt.dir);
	opt.one.duration_us = opt.duration_us;
	opt.one.level = opt.one.per_second > 0 ? JOURNAL_RIDE : JOURNAL_NOW;
	b = load_open(root, opt.one_views);
	for (unsigned i = 0; i < opt.rounds && !bench_stop; i++) {
		struct sample s = load_run(b, &opt.one);

		printf("%9.0f commits/s, p50 %.0f us, p99 %.0f us, CPU %.2f us, %llu checkpoints\n",
		       s.rate, s.p50_us, s.p99_us, s.cpu_us, (unsigned long long)s.checkpoints);
		fflush(stdout);
	}
	load_close(b);
}

static void run_round(void)
{
	fprintf(stderr, "round %u of %u\n", rounds_done + 1, opt.rounds);
	keep(FLUSH, peer_flush(fresh_dir(), opt.duration_us));
	run_ours(1, ONE_1);
	if (opt.ours) {
		skip(RAW_1, REDIS_PIPE, "not asked for");
	} else {
		keep(RAW_1, peer_raw(fresh_dir(), 1, opt.duration_us));
		keep(RAW_64, peer_raw(fresh_dir(), 64, opt.duration_us));
		keep(RAW_1000, peer_raw(fresh_dir(), 1000, opt.duration_us));
		run_sqlite();
		run_redis();
	}
	run_ours(VIEWS_MANY, MANY_1);
	keep(WRITE_MANY, floor_write(fresh_dir(), VIEWS_MANY, FIXED_RATE, opt.duration_us));
	rounds_done++;
}

/* ---- medians */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double sorted[ROUNDS_MAX]; /* by the last call of median() */

/* Of `value` over the rounds. */
static double median(double (*value)(unsigned round, enum row_id a, enum row_id b), enum row_id a,
		     enum row_id b)
{
	for (unsigned i = 0; i < rounds_done; i++)
		sorted[i] = value(i, a, b);
	qsort(sorted, rounds_done, sizeof(sorted[0]), by_value);
	return rounds_done % 2 == 1 ? sorted[rounds_done / 2]
				    : (sorted[rounds_done / 2 - 1] + sorted[rounds_done / 2]) / 2;
}

#define VALUE(name, expression)                                                                    \
	static double name(unsigned i, enum row_id a, enum row_id b)                               \
	{                                                                                          \
		const struct sample *x = &samples[a][i], *y = &samples[b][i];                      \
		(void)x, (void)y;                                                                  \
		return expression;                                                                 \
	}

VALUE(rate, x->rate)
VALUE(p50, x->p50_us)
VALUE(p99, x->p99_us)
VALUE(cpu, x->cpu_us)
VALUE(checkpoints, (double)x->checkpoints)
VALUE(rate_ratio, y->rate > 0 ? x->rate / y->rate : 0)
VALUE(cpu_ratio, y->cpu_us > 0 ? x->cpu_us / y->cpu_us : 0)
VALUE(p99_ratio, y->p99_us > 0 ? x->p99_us / y->p99_us : 0)
VALUE(p99_share, x->p99_us / (2 * y->p50_us + 1000))

/* A line for a view of its own cannot cost less than its write. */
static double cpu_floor(unsigned i, enum row_id a, enum row_id b)
{
	double floor = samples[b][i].cpu_us + samples[WRITE_MANY][i].cpu_us;

	return floor > 0 ? samples[a][i].cpu_us / floor : 0;
}

/* ---- the report */

static void show_row(enum row_id row)
{
	double middle;

	if (skipped[row] != NULL) {
		printf("%-38s skipped: %s\n", names[row], skipped[row]);
		return;
	}
	middle = median(rate, row, row);
	printf("%-38s %9.0f %9.0f-%-9.0f", names[row], middle, sorted[0], sorted[rounds_done - 1]);
	printf(" %8.0f %8.0f %8.2f", median(p50, row, row), median(p99, row, row),
	       median(cpu, row, row));
	if (row >= ONE_1)
		printf(" %4.0f", median(checkpoints, row, row));
	printf("\n");
}

static void show_row_json(enum row_id row)
{
	printf("%s{\"name\":\"%s\",", row > 0 ? ",\n " : "", names[row]);
	if (skipped[row] != NULL) {
		printf("\"skipped\":\"%s\"}", skipped[row]);
		return;
	}
	printf("\"commitsPerSecond\":%.0f,", median(rate, row, row));
	printf("\"least\":%.0f,\"most\":%.0f,", sorted[0], sorted[rounds_done - 1]);
	printf("\"p50Us\":%.1f,\"p99Us\":%.1f,\"cpuUs\":%.3f,\"checkpoints\":%.0f}",
	       median(p50, row, row), median(p99, row, row), median(cpu, row, row),
	       median(checkpoints, row, row));
}

struct aim {
	const char *what;
	double (*value)(unsigned round, enum row_id a, enum row_id b);
	enum row_id a, b;
	double limit; /* 0: no aim, to compare with */
	bool at_least;
};

static const struct aim aims[] = {
	{"1 NOW writer / SQLite, 1 view", rate_ratio, ONE_1, SQLITE_1, 0.9, true},
	{"1 NOW writer / SQLite, 10000 views", rate_ratio, MANY_1, SQLITE_1, 0.9, true},
	{"1000 writers, commits/s, 1 view", rate, ONE_1000, ONE_1000, FIXED_RATE, true},
	{"1000 writers, commits/s, 10000 views", rate, MANY_1000, MANY_1000, FIXED_RATE, true},
	{"1000 writers / Redis, 1 view", rate_ratio, ONE_1000, REDIS_1000, 2.5, true},
	{"1000 writers / Redis, 10000 views", rate_ratio, MANY_1000, REDIS_1000, 2.5, true},
	{"half load, p99 / (2 flushes + 1 ms), 1 view", p99_share, ONE_HALF, FLUSH, 1, false},
	{"half load, p99 / (2 flushes + 1 ms), 10000 views", p99_share, MANY_HALF, FLUSH, 1, false},
	{"150000/s, CPU over 10000 views / over 1", cpu_ratio, MANY_FIXED, ONE_FIXED, 2, false},
	{"  the same / (over 1 and a bare pwrite)", cpu_floor, MANY_FIXED, ONE_FIXED, 0, false},
	{"half load, p99 / of group commit alone, 1 view", p99_ratio, ONE_HALF, PLAIN_ONE_HALF, 0,
	 false},
	{"half load, p99 / of group commit alone, 10000", p99_ratio, MANY_HALF, PLAIN_MANY_HALF, 0,
	 false},
};

static void show_aim(const struct aim *a)
{
	const char *why = skipped[a->a] != NULL ? skipped[a->a] : skipped[a->b];
	double is = why == NULL ? median(a->value, a->a, a->b) : 0;
	const char *verdict = (a->at_least ? is >= a->limit : is <= a->limit) ? "met" : "missed";

	if (opt.json && a->limit == 0)
		printf(",\n {\"comparison\":\"%s\",\"value\":%.3f}", a->what, is);
	else if (opt.json)
		printf("%s{\"aim\":\"%s\",\"value\":%.3f,\"%s\":%.3f,\"verdict\":\"%s\"}",
		       a > aims ? ",\n " : "", a->what, is, a->at_least ? "atLeast" : "atMost",
		       a->limit, why != NULL ? "skipped" : verdict);
	else if (why != NULL)
		printf("%-50s skipped: %s\n", a->what, why);
	else if (a->limit == 0)
		printf("%-50s %10.2f  to compare with\n", a->what, is);
	else
		printf("%-50s %10.2f  (%s %.*f) %s\n", a->what, is,
		       a->at_least ? ">=" : "<=", a->limit < 10 ? 1 : 0, a->limit, verdict);
}

/* ---- the machine */

static const char *file_system(void)
{
	static const struct {
		unsigned long magic;
		const char *name;
	} known[] = {{0xef53, "ext4"},
		     {0x58465342, "xfs"},
		     {0x9123683e, "btrfs"},
		     {0x01021994, "tmpfs (nothing on it is durable)"}};
	struct statfs fs;

	if (statfs(opt.dir, &fs) == 0)
		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			if ((unsigned long)fs.f_type == known[i].magic)
				return known[i].name;
	return "another file system";
}

struct usage {
	double busy, ours, all; /* seconds of processor time since some moment */
};

static double rusage_seconds(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static struct usage usage_now(void)
{
	unsigned long long t[8] = {0}; /* user nice system idle iowait irq softirq steal */
	double tick = (double)sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "re");
	struct usage u = {.ours = rusage_seconds(RUSAGE_SELF) + rusage_seconds(RUSAGE_CHILDREN)};

	if (f != NULL && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1],
				&t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) == 8)
		for (int i = 0; i < 8; i++) {
			u.all += (double)t[i] / tick;
			u.busy += i == 3 || i == 4 ? 0 : (double)t[i] / tick;
		}
	if (f != NULL)
		fclose(f);
	return u;
}

/* What share of the processors went to others (the kernel's own threads and
 * the host among them): above some 5 % the figures are too low. */
static double others_percent(const struct usage *from)
{
	struct usage to = usage_now();
	double all = to.all - from->all;

	return all > 0 ? 100 * MAX(to.busy - from->busy - (to.ours - from->ours), 0) / all : 0;
}

static void report(const struct usage *from)
{
	double others = others_percent(from), seconds = (double)opt.duration_us / 1e6;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (opt.json)
		printf("{\"processors\":%ld,\"fileSystem\":\"%s\",\"rounds\":%u,\"seconds\":%.2f,"
		       "\"othersPercent\":%.1f,\"rows\":[\n ",
		       processors, file_system(), rounds_done, seconds, others);
	else
		printf("%ld processors, %s; medians of %u rounds of %.1f s; others used %.1f %% of"
		       " the processors\n\n%-38s %9s %19s %8s %8s %8s %s\n",
		       processors, file_system(), rounds_done, seconds, others, "", "commits/s",
		       "least-most     ", "p50 us", "p99 us", "CPU us", "checkpoints");
	for (int row = 0; row < ROWS; row++)
		opt.json ? show_row_json((enum row_id)row) : show_row((enum row_id)row);
	printf(opt.json ? "],\n\"aims\":[\n " : "\n");
	for (size_t i = 0; i < ARRAY_LEN(aims); i++)
		show_aim(&aims[i]);
	printf(opt.json ? "]}\n" : "");
}

/* ---- the command */

static void on_signal(int number)
{
	(void)number;
	bench_stop = 1;
}

static int usage(void)
{
	fprintf(stderr, "usage: bench_journal [--quick] [--seconds S] [--rounds N] [--dir DIR]"
			" [--ours] [--json]\n"
			"       bench_journal --one WRITERS VIEWS RATE\n");
	return 2;
}

static void parse_one(char **args)
{
	opt.one.writers = (unsigned)strtoul(args[0], NULL, 10);
	opt.one_views = (unsigned)strtoul(args[1], NULL, 10);
	opt.one.per_second = strtod(args[2], NULL);
}

static const char *parse(int argc, char **argv)
{
	const char *base = getenv("TMPDIR");

	base = base != NULL ? base : "/tmp";
	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (strcmp(argv[i], "--json") == 0)
			opt.json = true;
		else if (strcmp(argv[i], "--ours") == 0)
			opt.ours = true;
		else if (strcmp(argv[i], "--quick") == 0)
			opt.duration_us = 400000, opt.rounds = 3;
		else if (strcmp(argv[i], "--seconds") == 0 && more)
			opt.duration_us = (int64_t)(strtod(argv[++i], NULL) * 1e6);
		else if (strcmp(argv[i], "--rounds") == 0 && more)
			opt.rounds = (unsigned)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--dir") == 0 && more)
			base = argv[++i];
		else if (strcmp(argv[i], "--one") == 0 && i + 3 < argc)
			parse_one(&argv[i + 1]), i += 3;
		else
			return NULL;
	}
	if (opt.one_views > 0 && ((opt.one.writers > 0) == (opt.one.per_second > 0) ||
				  opt.one.writers > LOAD_WRITERS_MAX))
		return NULL;
	return opt.duration_us >= 50000 && opt.rounds >= 1 && opt.rounds <= ROUNDS_MAX ? base
										       : NULL;
}

int main(int argc, char **argv)
{
	const char *base = parse(argc, argv);
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct usage from;

	if (base == NULL)
		return usage();
	snprintf(opt.dir, sizeof(opt.dir), "%s/ava-bench-journal-XXXXXX", base);
	if (mkdtemp(opt.dir) == NULL)
		bench_die("%s", opt.dir);
	atexit(remove_dir);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	if (opt.one_views > 0) {
		run_one();
		return 0;
	}
	from = usage_now();
	while (rounds_done < opt.rounds)
		run_round();
	report(&from);
	return 0;
}
