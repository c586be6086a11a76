/* The load on our own journal; see journal_load.h.
 *
 * One owner thread, as in the daemon: it commits, sleeps in ppoll on an
 * eventfd that the journal's notify() writes, drains. Each commit appends one
 * event line to one view, views taking turns. In the closed loop a writer's
 * next commit follows its answer; in the open loop arrivals come in bursts,
 * TICK_US apart, and a latency counts from the burst's time by the plan, so
 * that being late to issue it counts too. A commit that fails ends the
 * benchmark: there is no figure then. */
#include "journal_load.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

#define TICK_US          200
#define SLOTS            ((size_t)1 << 18) /* in flight at the most, below the journal's bound */
#define CHECKPOINT_BYTES ((uint64_t)64 << 20)
#define CHECKPOINT_MS    1000
#define PATH_BYTES       48

struct slot {
	struct bench_journal *b;
	int64_t since_us;
};

struct bench_journal {
	char root[512];
	struct journal *j;
	int event_fd;
	char (*paths)[PATH_BYTES];
	unsigned views, next_view;
	struct slot *slots, **idle; /* idle: a stack of those with nothing in flight */
	size_t nidle;
	uint64_t acknowledged;
	int64_t now_us; /* when the drain began */
	struct meter meter;
};

/* ---- one commit */

static void notify_cb(void *user)
{
	struct bench_journal *b = user;
	uint64_t one = 1;

	if (write(b->event_fd, &one, sizeof(one)) != sizeof(one))
		bench_die("eventfd");
}

static void done_cb(int rv, void *user)
{
	struct slot *s = user;
	struct bench_journal *b = s->b;

	errno = 0;
	if (rv != 0)
		bench_die("a commit was answered: %s", ava_strerror(rv));
	b->acknowledged++;
	meter_add(&b->meter, b->now_us - s->since_us);
	b->idle[b->nidle++] = s;
}

static void commit(struct bench_journal *b, int64_t since_us, enum journal_level level)
{
	struct slot *s = b->idle[--b->nidle];
	char line[LINE_BYTES];
	struct journal_op op = {
		.kind = JOURNAL_APPEND,
		.path = b->paths[b->next_view],
		.bytes = line,
		.len = sizeof(line),
	};
	int rv;

	b->next_view = b->next_view + 1 == b->views ? 0 : b->next_view + 1;
	s->since_us = since_us;
	bench_line(line, journal_lsn(b->j, 1));
	rv = journal_commit(b->j, &op, 1, level, done_cb, s);
	errno = 0;
	if (rv != 0)
		bench_die("a commit was refused: %s", ava_strerror(rv));
}

/* Until something was answered or `until_us`. */
static void wait_and_drain(struct bench_journal *b, int64_t until_us)
{
	struct pollfd p = {.fd = b->event_fd, .events = POLLIN};
	int64_t left = MAX(until_us - clock_mono_us(), 0);
	struct timespec t = {.tv_sec = left / 1000000, .tv_nsec = left % 1000000 * 1000};
	uint64_t count;

	if (ppoll(&p, 1, &t, NULL) != 1)
		return;
	if (read(b->event_fd, &count, sizeof(count)) != sizeof(count))
		bench_die("eventfd");
	b->now_us = clock_mono_us();
	journal_drain(b->j);
}

/* ---- loads */

static void closed_loop(struct bench_journal *b, const struct load *l, int64_t end_us)
{
	size_t floor = SLOTS - l->writers;

	while (clock_mono_us() < end_us && !bench_stop) {
		while (b->nidle > floor)
			commit(b, clock_mono_us(), l->level);
		wait_and_drain(b, end_us);
	}
}

/* Arrivals that find no slot are dropped: then the rate that was reached shows
 * that it was too much. */
static void open_loop(struct bench_journal *b, const struct load *l, int64_t end_us)
{
	int64_t from = clock_mono_us(), tick = from;
	uint64_t due = 0, issued = 0;

	while (tick < end_us && !bench_stop) {
		for (; tick <= clock_mono_us(); tick += TICK_US) {
			due = (uint64_t)((double)(tick - from) * l->per_second / 1e6);
			for (; issued < due; issued++)
				if (b->nidle > 0)
					commit(b, tick, l->level);
		}
		wait_and_drain(b, tick);
	}
}

static void run_until(struct bench_journal *b, const struct load *l, int64_t end_us)
{
	if (l->writers > 0)
		closed_loop(b, l, end_us);
	else
		open_loop(b, l, end_us);
}

static void quiesce(struct bench_journal *b)
{
	int fd = open(b->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	b->now_us = clock_mono_us();
	if (journal_sync(b->j) != 0 || b->nidle != SLOTS)
		bench_die("the journal does not answer what is in flight");
	if (fd < 0 || syncfs(fd) != 0)
		bench_die("%s", b->root);
	close(fd);
}

struct sample load_run(struct bench_journal *b, const struct load *l)
{
	struct journal_stats before, after;
	struct sample s;

	quiesce(b);
	run_until(b, l, clock_mono_us() + meter_warm_us(l->duration_us));
	meter_start(&b->meter, 0);
	journal_stats(b->j, &before);
	run_until(b, l, clock_mono_us() + l->duration_us);
	s = meter_end(&b->meter);
	journal_stats(b->j, &after);
	s.checkpoints = after.checkpoints - before.checkpoints;
	quiesce(b);
	return s;
}

/* ---- open and close */

static void name_views(struct bench_journal *b)
{
	b->paths = calloc(b->views, sizeof(*b->paths));
	if (b->paths == NULL)
		bench_die("views");
	for (unsigned i = 0; i < b->views; i++)
		snprintf(b->paths[i], sizeof(*b->paths), "logs/subagents/S-%06x.jsonl", i);
}

static void make_slots(struct bench_journal *b)
{
	b->slots = calloc(SLOTS, sizeof(*b->slots));
	b->idle = calloc(SLOTS, sizeof(b->idle[0]));
	if (b->slots == NULL || b->idle == NULL)
		bench_die("slots");
	for (size_t i = 0; i < SLOTS; i++) {
		b->slots[i].b = b;
		b->idle[b->nidle++] = &b->slots[i];
	}
}

struct bench_journal *load_open(const char *root, unsigned views)
{
	struct bench_journal *b = calloc(1, sizeof(*b));
	struct journal_options o = {
		.root = root,
		.pace_us = 2000,
		.checkpoint_bytes = CHECKPOINT_BYTES,
		.checkpoint_ms = CHECKPOINT_MS,
		.notify = notify_cb,
		.user = b,
	};
	struct ava_error err;

	if (b == NULL || mkdir(root, 0700) != 0)
		bench_die("%s", root);
	snprintf(b->root, sizeof(b->root), "%s", root);
	b->views = views;
	b->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	name_views(b);
	make_slots(b);
	errno = 0;
	if (journal_open(&b->j, &o, NULL, &err) != 0)
		bench_die("%s", err.text);
	for (unsigned i = 0; i < views; i++)
		commit(b, clock_mono_us(), JOURNAL_RIDE);
	quiesce(b);
	return b;
}

/* Acknowledged means readable: every line that was answered is there, once. */
static void compare_files(struct bench_journal *b)
{
	uint64_t bytes = 0;
	char path[600];
	struct stat st;

	for (unsigned i = 0; i < b->views; i++) {
		snprintf(path, sizeof(path), "%s/%s", b->root, b->paths[i]);
		if (stat(path, &st) != 0)
			bench_die("%s", path);
		bytes += (uint64_t)st.st_size;
	}
	errno = 0;
	if (bytes != b->acknowledged * LINE_BYTES)
		bench_die("%llu bytes in views, %llu lines acknowledged", (unsigned long long)bytes,
			  (unsigned long long)b->acknowledged);
}

void load_close(struct bench_journal *b)
{
	journal_close(b->j);
	compare_files(b);
	bench_remove(b->root);
	close(b->event_fd);
	free(b->paths);
	free(b->slots);
	free(b->idle);
	free(b);
}
