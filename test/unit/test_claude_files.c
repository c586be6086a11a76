/* How an agent of Claude Code is now, by its card and the signs of life that there are, and which
 * of them are ghosts of a shutdown. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ava/claude_files.h"
#include "base/clock.h"
#include "base/util.h"
#include "codec/json.h"

#define STALE_MS 300000
#define DAY_MS   86400000ll

static void put_time(json_t *card, const char *key, int64_t ms)
{
	char iso[CLOCK_ISO_LEN + 1];

	clock_iso(ms, iso);
	json_object_set_new(card, key, json_string(iso));
}

static json_t *new_card(const char *id, const char *status, int64_t at)
{
	json_t *card = json_pack("{s:s,s:s,s:s}", "agentId", id, "type", "T", "status", status);

	put_time(card, "startedAt", at);
	put_time(card, "updatedAt", at);
	if (strcmp(status, "stopped") == 0)
		put_time(card, "stoppedAt", at);
	return card;
}

/* "none", "us", "ended" (and nobody has looked), "gone", "again": its number is another's now,
 * "elsewhere": in a container. */
static void put_process(json_t *card, const char *kind)
{
	pid_t child = strcmp(kind, "gone") == 0 || strcmp(kind, "ended") == 0 ? fork() : -1;
	json_t *process;

	if (child == 0)
		pause();
	if (strcmp(kind, "none") != 0)
		card_add_process(card, child > 0 ? child : getpid());
	process = json_object_get(card, "process");
	if (strcmp(kind, "again") == 0)
		json_object_set_new(process, "startTicks", json_integer(1));
	if (strcmp(kind, "elsewhere") == 0) {
		json_object_set_new(process, "startTicks", json_integer(1));
		json_object_set_new(card, "pidSpace", json_integer(1));
	}
	if (child > 0) {
		siginfo_t info;

		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(
			waitid(P_PID, (id_t)child, &info, WEXITED | (*kind == 'e' ? WNOWAIT : 0)),
			0);
	}
}

/* A day is over, or has not come: no wait is needed for what is told by ages. */
TEST(signs_of_life)
{
	static const struct {
		const char *status, *process;
		int64_t age_ms, grew_ms; /* how long ago; of grew -1: no transcript */
		const char *expected;
	} rows[] = {
		{"active", "none", 0, -1, "active"},
		{"active", "none", STALE_MS + 5000, -1, "stopped"},
		{"active", "none", DAY_MS, 10000, "active"},
		{"active", "none", DAY_MS, DAY_MS, "stopped"},
		{"active", "us", STALE_MS + 5000, -1, "active"},
		{"active", "us", 13 * STALE_MS, -1, "stopped"},
		{"active", "gone", 0, -1, "stopped"},
		{"active", "gone", 0, 0, "stopped"},
		{"active", "ended", 0, 0, "stopped"},
		{"active", "again", 0, -1, "stopped"},
		{"active", "elsewhere", 0, -1, "active"},
		{"active", "elsewhere", STALE_MS + 5000, -1, "stopped"},
		{"idle", "none", 0, -1, "idle"},
		{"idle", "none", 2 * DAY_MS, -1, "stopped"},
		{"idle", "us", 2 * DAY_MS, -1, "idle"},
		{"idle", "gone", 0, -1, "stopped"},
		{"active", "none", -30 * DAY_MS, -1, "stopped"},
		{"active", "none", -30 * DAY_MS, 10000, "active"},
		{"active", "us", -30 * DAY_MS, -1, "active"},
		{"active", "none", -20000, -1, "active"}, /* a clock may be a little ahead */
	};
	const char *dir = unit_tmpdir();
	char path[400];

	snprintf(path, sizeof(path), "%s/t.jsonl", dir);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *card = new_card("a", rows[i].status, clock_wall_ms() - rows[i].age_ms);
		int64_t grew = clock_wall_ms() - rows[i].grew_ms;
		struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = grew / 1000}};

		if (rows[i].grew_ms >= 0) {
			unit_write(path, "{}\n", 3);
			assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
			json_object_set_new(card, "transcript", json_string(path));
		}
		put_process(card, rows[i].process);
		claude_judge(card, STALE_MS);
		if (strcmp(json_str(card, "status"), rows[i].expected) != 0)
			fail_msg("row %zu: %s", i, json_str(card, "status"));
		assert_int_equal(json_object_get(card, "reason") != NULL,
				 strcmp(rows[i].expected, "stopped") == 0);
		json_decref(card);
	}
	unit_rmdir(dir);
}

/* SendMessage resumes an agent, and no start is told of it. */
TEST(resumed)
{
	static const struct {
		const char *type;
		int64_t after_ms; /* the stop; -1: a line without a time */
		const char *process, *expected;
	} rows[] = {
		{"user", 5000, "us", "active"},         {"assistant", 5000, "none", "active"},
		{"assistant", 5000, "gone", "stopped"}, {"assistant", -500, "us", "stopped"},
		{"attachment", 30000, "us", "stopped"}, /* of a hook that took its time */
		{"assistant", -1, "us", "active"},
	};
	char path[400], text[600], iso[CLOCK_ISO_LEN + 1];
	const char *dir = unit_tmpdir();

	snprintf(path, sizeof(path), "%s/t.jsonl", dir);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t stopped = clock_wall_ms() - 60000;
		json_t *card = new_card("a", "stopped", stopped);

		clock_iso(stopped + rows[i].after_ms, iso);
		snprintf(text, sizeof(text),
			 "{\"type\":\"user\"}\n{\"type\":\"%s\",\"%s\":\"%s\"}\n{\"torn",
			 rows[i].type, rows[i].after_ms == -1 ? "no" : "timestamp", iso);
		unit_write(path, text, strlen(text));
		json_object_set_new(card, "transcript", json_string(path));
		put_process(card, rows[i].process);
		claude_judge(card, STALE_MS);
		if (strcmp(json_str(card, "status"), rows[i].expected) != 0)
			fail_msg("row %zu: %s", i, json_str(card, "status"));
		assert_int_equal(json_object_get(card, "stoppedAt") != NULL,
				 strcmp(rows[i].expected, "stopped") == 0);
		assert_null(json_object_get(card, "reason"));
		json_decref(card);
	}
	unit_rmdir(dir);
}

static void add_agent(json_t *cards, const char *id, const char *status, int64_t start_s,
		      int64_t stop_s)
{
	int64_t now = clock_wall_ms();
	json_t *card = new_card(id, status, now + start_s * 1000);

	if (strcmp(status, "stopped") == 0)
		put_time(card, "stoppedAt", now + stop_s * 1000);
	json_object_set_new(cards, id, card);
}

TEST(ghosts)
{
	json_t *cards = json_object(), *card;
	char seen[100] = "";
	const char *id;

	add_agent(cards, "approval", "active", -60, 0);
	add_agent(cards, "worker", "stopped", -90, -80);
	add_agent(cards, "recap", "stopped", -70, -69);
	add_agent(cards, "beside", "stopped", -40, -35);
	add_agent(cards, "again", "stopped", -4, -3);
	add_agent(cards, "waits", "idle", -2, 0);
	add_agent(cards, "other", "active", -79, 0);
	json_object_set_new(json_object_get(cards, "other"), "type", json_string("reviewer"));
	json_object_set_new(cards, "torn", json_null());
	claude_mark_ghosts(cards);
	json_object_foreach(cards, id, card) if (json_object_get(card, "ghost"))
	{
		strcat(seen, id);
		strcat(seen, " ");
	}
	assert_string_equal(seen, "approval recap ");
	json_decref(cards);
}

UNIT_GROUP();
