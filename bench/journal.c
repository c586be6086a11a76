/* Durable commits: how many a second, how long each takes, beside what else
 * could hold them. bench/README.md says how to read it.
 *
 *     bench_journal [--seconds S] [--rounds N] [--dir DIR] [--json] [--ours]
 *
 * One owner thread plays all writers, as avad does: a commit of 400 bytes each,
 * the next one when the last was answered. Checkpoints run once a second. Every
 * figure is the median of the rounds. Everything stands in a folder of its own
 * below DIR (default: $TMPDIR, else /tmp) that is removed. */
#include <ava.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/journal.h"
#include "journal_peer.h"

#define VIEWS_MANY  10000
#define WRITERS_MAX 1000
#define ROUNDS_MAX  15
#define FIXED_RATE  150000
#define BURST_US    1000 /* the open loop sends what is due once a millisecond */

struct setup {
	int writers, views;
	enum journal_level level;
	double rate; /* commits a second in an open loop; 0: closed loop */
};

struct slot {
	struct run *run;
	double sent;
};

struct run {
	struct journal *j;
	struct setup s;
	int fd; /* eventfd: journal_drain has something */
	bool counting, stopping;
	unsigned next_view, outstanding;
	uint64_t n;
	struct latency l;
	struct slot slots[WRITERS_MAX];
};

static struct {
	double seconds;
	int rounds;
	bool json, ours;
	char dir[256];
} opt = {.seconds = 2, .rounds = 3};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_journal: %s: %s\n", what, why);
	exit(1);
}

/* ---- folders */

static int rm_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void empty_dir(const char *dir)
{
	nftw(dir, rm_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *fresh_dir(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%s", opt.dir, name);
	empty_dir(path);
	if (mkdir(path, 0700) != 0)
		die(path, strerror(errno));
	return path;
}

/* ---- ours */

static void on_notify(void *user)
{
	struct run *r = user;
	uint64_t one = 1;

	if (write(r->fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		die("eventfd", strerror(errno));
}

static void on_done(int rv, void *user);

static void send_commit(struct run *r, struct slot *slot, double sent)
{
	static char line[RECORD_BYTES];
	char path[64];
	struct journal_op op = {.kind = JOURNAL_APPEND, .path = path, .bytes = line};
	int rv;

	if (line[0] == 0) {
		memset(line, 'x', sizeof(line));
		line[RECORD_BYTES - 1] = '\n';
	}
	op.len = sizeof(line);
	/* A stride, so that neighbours in time are never the same view. */
	r->next_view = (r->next_view + 7919) % (unsigned)r->s.views;
	snprintf(path, sizeof(path), "logs/subagents/S-%06x.jsonl", r->next_view);
	slot->sent = sent;
	journal_lsn(r->j, 1);
	rv = journal_commit(r->j, &op, 1, r->s.level, on_done, slot);
	if (rv != 0)
		die("commit", ava_strerror(rv));
	r->outstanding++;
}

static void on_done(int rv, void *user)
{
	struct slot *slot = user;
	struct run *r = slot->run;
	double now = bench_now();

	if (rv != 0)
		die("answer", ava_strerror(rv));
	r->outstanding--;
	if (r->counting) {
		r->n++;
		latency_add(&r->l, (now - slot->sent) * 1e6);
	}
	if (r->s.rate > 0)
		free(slot);
	else if (!r->stopping)
		send_commit(r, slot, now);
}

/* Wait for answers, at most until `until`. */
static void step(struct run *r, double until)
{
	struct pollfd p = {.fd = r->fd, .events = POLLIN};
	double left = until - bench_now();
	struct timespec t = {0};
	uint64_t count;

	if (left > 0)
		t = (struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
	if (ppoll(&p, 1, &t, NULL) == 1 && read(r->fd, &count, sizeof(count)) < 0)
		die("eventfd", strerror(errno));
	journal_drain(r->j);
}

static void closed_loop(struct run *r, double seconds)
{
	double end = bench_now() + seconds;

	while (bench_now() < end)
		step(r, end);
}

static void open_loop(struct run *r, double seconds)
{
	double start = bench_now(), now = start, due = 0;
	uint64_t sent = 0;

	while ((now = bench_now()) < start + seconds) {
		while ((double)sent < (now - start) * r->s.rate) {
			struct slot *slot = malloc(sizeof(*slot));

			slot->run = r;
			send_commit(r, slot, start + (double)sent / r->s.rate);
			sent++;
		}
		due = now + BURST_US / 1e6;
		while (bench_now() < due)
			step(r, due);
	}
}

static void finish_all(struct run *r)
{
	r->stopping = true;
	r->counting = false;
	while (r->outstanding > 0)
		if (journal_sync(r->j) != 0)
			die("sync", "the journal is not well");
}

static struct result ours_once(struct setup s)
{
	static struct run r;
	struct journal_options o = {
		.root = fresh_dir("ours"),
		.pace_us = 2000,
		.checkpoint_ms = 1000,
		.notify = on_notify,
		.user = &r,
	};
	struct journal_stats before, after;
	struct ava_error err;
	struct result res;
	double start, cpu, took;

	r = (struct run){.s = s, .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
	if (journal_open(&r.j, &o, NULL, &err) != 0)
		die("open", err.text);
	/* Every view exists, and segments are there, before the clock starts. */
	r.s.rate = 1;
	for (int i = 0; i < s.views; i++) {
		struct slot *slot = malloc(sizeof(*slot));

		slot->run = &r;
		send_commit(&r, slot, 0);
	}
	journal_sync(r.j);
	journal_checkpoint(r.j, NULL);
	r.s.rate = s.rate;
	for (int i = 0; s.rate == 0 && i < s.writers; i++) {
		r.slots[i].run = &r;
		send_commit(&r, &r.slots[i], bench_now());
	}
	(s.rate > 0 ? open_loop : closed_loop)(&r, opt.seconds / 4);
	r.counting = true;
	journal_stats(r.j, &before);
	start = bench_now();
	cpu = bench_cpu();
	(s.rate > 0 ? open_loop : closed_loop)(&r, opt.seconds);
	took = bench_now() - start;
	cpu = bench_cpu() - cpu;
	journal_stats(r.j, &after);
	res = (struct result){
		.per_second = (double)r.n / took,
		.p50_us = latency_at(&r.l, 0.5),
		.p99_us = latency_at(&r.l, 0.99),
		.cpu_us = cpu * 1e6 / (double)r.n,
		.flush_us = took * 1e6 / (double)(after.flushes - before.flushes),
	};
	finish_all(&r);
	journal_close(r.j);
	close(r.fd);
	empty_dir(o.root);
	return res;
}

static struct result ours(struct setup s)
{
	struct result all[ROUNDS_MAX];

	for (int i = 0; i < opt.rounds; i++)
		all[i] = ours_once(s);
	return result_median(all, opt.rounds);
}

/* ---- peers */

static struct result peer(struct result (*one)(const char *, int, double), const char *name, int n)
{
	struct result all[ROUNDS_MAX];

	for (int i = 0; i < opt.rounds; i++)
		all[i] = one(fresh_dir(name), n, opt.seconds);
	empty_dir(fresh_dir(name));
	return result_median(all, opt.rounds);
}

/* ---- the report */

static int rows;

static void show(const char *name, const struct result *r)
{
	if (opt.json) {
		printf("%s{\"name\":\"%s\",\"skipped\":%s,\"perSecond\":%.0f,\"p50Us\":%.1f,"
		       "\"p99Us\":%.1f,\"cpuUs\":%.3f}",
		       rows++ > 0 ? ",\n" : "[", name, r->skipped ? "true" : "false", r->per_second,
		       r->p50_us, r->p99_us, r->cpu_us);
	} else if (r->skipped) {
		printf("%-44s skipped: the program is not installed\n", name);
	} else {
		printf("%-44s %9.0f /s   p50 %8.0f us   p99 %8.0f us   cpu %6.2f us\n", name,
		       r->per_second, r->p50_us, r->p99_us, r->cpu_us);
	}
	fflush(stdout);
}

static void show_aim(const char *what, double is, double aim, bool at_least)
{
	bool holds = at_least ? is >= aim : is <= aim;

	if (opt.json)
		printf(",\n{\"aim\":\"%s\",\"is\":%.3f,\"limit\":%.3f,\"holds\":%s}", what, is, aim,
		       holds ? "true" : "false");
	else
		printf("%-60s %10.2f  (%s %.2f) %s\n", what, is, at_least ? ">=" : "<=", aim,
		       holds ? "holds" : "MISSED");
}

static const int writer_counts[] = {1, 64, 1000};

static void run_peers(struct result *sqlite, struct result *redis, struct result *raw)
{
	char name[64];

	for (int i = 0; i < 3; i++) {
		int n = writer_counts[i];

		raw[i] = peer(peer_raw, "raw", n);
		snprintf(name, sizeof(name), "pwrite+fdatasync, %d a flush", n);
		show(name, &raw[i]);
		sqlite[i] = peer(peer_sqlite, "sqlite", n);
		snprintf(name, sizeof(name), "SQLite WAL FULL, %d a transaction", n);
		show(name, &sqlite[i]);
		redis[i] = peer(peer_redis, "redis", n);
		snprintf(name, sizeof(name), "Redis appendfsync always, %d clients", n);
		show(name, &redis[i]);
	}
}

static void run_all(void)
{
	struct result sqlite[3] = {0}, redis[3] = {0}, raw[3] = {0}, mine[3][2], half, fixed[2];
	double flush;
	char name[64];

	if (!opt.ours)
		run_peers(sqlite, redis, raw);
	else
		raw[0] = peer(peer_raw, "raw", 1);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++) {
			int views = k == 0 ? 1 : VIEWS_MANY;

			mine[i][k] = ours((struct setup){writer_counts[i], views, JOURNAL_NOW, 0});
			snprintf(name, sizeof(name), "ava, %d writers, %d view%s", writer_counts[i],
				 views, views == 1 ? "" : "s");
			show(name, &mine[i][k]);
		}
	half = ours((struct setup){0, VIEWS_MANY, JOURNAL_NOW, mine[2][1].per_second / 2});
	show("ava at half its highest load, 10000 views", &half);
	for (int k = 0; k < 2; k++) {
		fixed[k] =
			ours((struct setup){0, k == 0 ? 1 : VIEWS_MANY, JOURNAL_RIDE, FIXED_RATE});
		show(k == 0 ? "ava at 150000/s, 1 view" : "ava at 150000/s, 10000 views",
		     &fixed[k]);
	}
	flush = raw[0].p50_us;
	if (!opt.json)
		printf("\n");
	if (!opt.ours)
		show_aim("a lone NOW writer / SQLite FULL",
			 mine[0][0].per_second / sqlite[0].per_second, 0.9, true);
	show_aim("1000 writers over 10000 views, commits a second", mine[2][1].per_second, 150000,
		 true);
	if (!opt.ours && !redis[2].skipped)
		show_aim("1000 writers / Redis", mine[2][1].per_second / redis[2].per_second, 2.5,
			 true);
	show_aim("p99 at half load, us / (2 flushes + 1 ms)", half.p99_us / (2 * flush + 1000), 1,
		 false);
	show_aim("CPU a commit, 10000 views / 1 view", fixed[1].cpu_us / fixed[0].cpu_us, 2, false);
	if (opt.json)
		printf("]\n");
}

int main(int argc, char **argv)
{
	const char *base = getenv("TMPDIR");

	base = base != NULL ? base : "/tmp";
	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (strcmp(argv[i], "--json") == 0)
			opt.json = true;
		else if (strcmp(argv[i], "--ours") == 0)
			opt.ours = true;
		else if (strcmp(argv[i], "--seconds") == 0 && more)
			opt.seconds = atof(argv[++i]);
		else if (strcmp(argv[i], "--rounds") == 0 && more)
			opt.rounds = atoi(argv[++i]);
		else if (strcmp(argv[i], "--dir") == 0 && more)
			base = argv[++i];
		else
			die("usage", "[--seconds S] [--rounds N] [--dir DIR] [--json] [--ours]");
	}
	if (opt.seconds <= 0 || opt.rounds < 1 || opt.rounds > ROUNDS_MAX)
		die("usage", "seconds over 0, rounds 1 to 15");
	snprintf(opt.dir, sizeof(opt.dir), "%s/ava-bench-journal-XXXXXX", base);
	if (mkdtemp(opt.dir) == NULL)
		die(opt.dir, strerror(errno));
	run_all();
	empty_dir(opt.dir);
	return 0;
}
