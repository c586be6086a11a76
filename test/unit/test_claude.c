/* Cards of Claude Code's subagents beside a disk that is slow or fails: none is removed before its
 * line is in the log. What the daemon does with them else: test/cli/test_claude.sh. */
#include "unit.h"

#include <ava.h>
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/claude.h"
#include "ava/core.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/sys.h"
#include "os/loop.h"

#define CARDS 4 /* of which two are kept */

struct world {
	char dir[256], root[300], cards[400];
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
};

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

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct core_options o = {.settings = &w->settings, .model = "offline"};
	struct ava_error err = {0};

	snprintf(w->dir, sizeof(w->dir), "%s", unit_tmpdir());
	snprintf(w->root, sizeof(w->root), "%s/data", w->dir);
	snprintf(w->cards, sizeof(w->cards), "%s/agent-activity", w->dir);
	mkdir(w->root, 0700);
	mkdir(w->cards, 0700);
	strcat(w->cards, "/s1");
	mkdir(w->cards, 0700);
	settings_defaults(&w->settings);
	w->settings.disk_free_min_mb = 0;
	w->settings.claude_file_cap = 2;
	setenv("CLAUDE_CONFIG_DIR", w->dir, 1);
	w->loop = o.loop = os_loop_new(NULL);
	o.root = w->root;
	slow = sys_real;
	slow.fdatasync = slow_fdatasync;
	sys = &slow;
	if (core_open(&w->core, &o, &err) != 0)
		fail_msg("core_open: %s", err.text);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	atomic_store(&held, false);
	atomic_store(&fails, false);
	claude_close(w->core);
	core_close(w->core);
	sys = &sys_real;
	os_loop_free(w->loop);
	unit_rmdir(w->dir);
	free(w);
	return 0;
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

	clock_iso(clock_wall_ms(), now);
	snprintf(text, sizeof(text),
		 "{\"agentId\":\"a%d\",\"type\":\"T\",\"status\":\"%s\",\"startedAt\":\"%s\","
		 "\"updatedAt\":\"%s\",\"activity\":\"%s\"}\n",
		 i, i == CARDS - 1 ? "active" : "stopped", now, now, activity);
	snprintf(path, sizeof(path), "%s/a%d.json", w->cards, i);
	snprintf(temp, sizeof(temp), "%s/.a%d", w->cards, i);
	unit_write(temp, text, strlen(text));
	assert_int_equal(rename(temp, path), 0);
}

static int cards_left(struct world *w)
{
	DIR *dir = opendir(w->cards);
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
	for (int i = 0; i < CARDS; i++) {
		put_card(w, i, "");
		usleep(10000); /* the kernel's clock for files goes in steps */
	}
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
TEST(not_before_it_is_written)
{
	struct world *w = *state;

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
TEST(written_again)
{
	struct world *w = *state;

	open_with_cards(w);
	atomic_store(&fails, true);
	turn(w, 500);
	atomic_store(&fails, false);
	put_card(w, CARDS - 1, "Read a.c");
	assert_all_logged(w);
}

UNIT_GROUP(.before = set_up, .after = tear_down);
