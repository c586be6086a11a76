/* Cards of Claude Code's subagents beside a disk that is slow or fails: none is removed before its
 * line is in the log. What the daemon does with them else: test/cli/test_claude.sh. */
#include "talk_rig.h"

#include <ava.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "ava/claude.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/sys.h"

#define CARDS 4 /* of which two are kept */

static char cards[400];

/* ---- the disk */

static struct sys_ops slow;
static atomic_bool held, fails;

static int slow_fdatasync(int fd)
{
	while (atomic_load(&held))
		usleep(1000);
	if (!atomic_load(&fails))
		return sys_real.fdatasync(fd);
	errno = EIO;
	return -1;
}

static int with_cards(void **state)
{
	int rv = set_up(state);
	struct world *w = *state;

	snprintf(cards, sizeof(cards), "%s/agent-activity", w->dir);
	mkdir(cards, 0700);
	strcat(cards, "/s1");
	mkdir(cards, 0700);
	setenv("CLAUDE_CONFIG_DIR", w->dir, 1);
	w->settings.claude_file_cap = 2;
	core_close(w->core);
	slow = sys_real;
	slow.fdatasync = slow_fdatasync;
	sys = &slow;
	open_core(w);
	return rv;
}

static int without_cards(void **state)
{
	struct world *w = *state;

	atomic_store(&held, false);
	atomic_store(&fails, false);
	claude_close(w->core);
	core_close(w->core);
	w->core = NULL;
	sys = &sys_real;
	return tear_down(state);
}

static void turn(struct world *w, int64_t ms)
{
	for (int64_t until = clock_mono_ms() + ms; clock_mono_ms() < until;)
		os_loop_step(w->loop, 10);
}

/* As a hook puts one: the last is at work, and what it does changes. */
static void put_card(struct world *w, int i, const char *activity)
{
	char path[500], temp[500], now[CLOCK_ISO_LEN + 1], text[400];
	static int n;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
				    {.tv_sec = clock_wall_ms() / 1000 + ++n}};

	clock_iso(clock_wall_ms(), now);
	snprintf(text, sizeof(text),
		 "{\"agentId\":\"a%d\",\"type\":\"T\",\"status\":\"%s\",\"startedAt\":\"%s\","
		 "\"updatedAt\":\"%s\",\"activity\":\"%s\"}\n",
		 i, i == CARDS - 1 ? "active" : "stopped", now, now, activity);
	snprintf(path, sizeof(path), "%s/a%d.json", cards, i);
	snprintf(temp, sizeof(temp), "%s/.a%d", cards, i);
	unit_write(temp, text, strlen(text));
	/* One after the other: the kernel's clock for files goes in steps. */
	assert_int_equal(utimensat(AT_FDCWD, temp, times, 0), 0);
	assert_int_equal(rename(temp, path), 0);
}

static int cards_left(struct world *w)
{
	DIR *dir = opendir(cards);
	struct dirent *e;
	int n = 0;

	while ((e = readdir(dir)) != NULL)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* How many agents the log has; `*lines` of them. */
static int agents_logged(struct world *w, int *lines)
{
	struct ava_log_query q = {.root = w->root, .types = "Custom", .search = "claude.agent"};
	unsigned seen = 0;
	struct ava_log_event e;
	struct ava_log *log;

	*lines = 0;
	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	while (ava_log_next(log, &e, NULL) == 1)
		for (int i = 0; i < CARDS; i++) {
			char id[24];

			snprintf(id, sizeof(id), "\"agentId\":\"a%d\"", i);
			if (memmem(e.line, e.len, id, strlen(id))) {
				seen |= 1u << i;
				++*lines;
			}
		}
	ava_log_close(log);
	return __builtin_popcount(seen);
}

static void open_with_cards(struct world *w)
{
	for (int i = 0; i < CARDS; i++)
		put_card(w, i, "");
	turn(w, 300); /* what the start writes */
	assert_int_equal(claude_open(w->core, NULL), 0);
}

static void assert_all_logged(struct world *w)
{
	int lines = 0;

	for (int i = 0; i < 100 && (cards_left(w) > 2 || agents_logged(w, &lines) < CARDS); i++)
		turn(w, 100);
	assert_int_equal(agents_logged(w, &lines), CARDS);
	assert_int_equal(lines, CARDS);
	assert_int_equal(cards_left(w), 2);
}

/* Their lines are on the way to the disk while the session is read again, in which nothing is
 * new. */
TEST_OF(not_before_it_is_written, struct world *w)
{
	atomic_store(&held, true);
	open_with_cards(w);
	turn(w, 500);
	put_card(w, CARDS - 1, "Read a.c");
	turn(w, 500);
	assert_int_equal(cards_left(w), CARDS);
	atomic_store(&held, false);
	assert_all_logged(w);
}

/* The disk did not take them: they are written when it does. */
TEST_OF(written_again, struct world *w)
{
	open_with_cards(w);
	atomic_store(&fails, true);
	turn(w, 500);
	atomic_store(&fails, false);
	put_card(w, CARDS - 1, "Read a.c");
	assert_all_logged(w);
}

UNIT_GROUP(.before = with_cards, .after = without_cards);
