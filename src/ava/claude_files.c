/* See claude_files.h.
 *
 * An unreadable thing counts as missing: a folder without rights, a team whose config.json is torn,
 * a name that is none. The next look finds it. */
#include "ava/claude_files.h"

#include <ava.h>
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"

bool claude_is_bare(const json_t *card)
{
	return strcmp(json_str(card, "status"), "active") == 0 && !json_object_get(card, "depth");
}

json_t *claude_cards(const char *folder, const char *session)
{
	struct card_names names = {.max = CLAUDE_CARDS_MAX};
	char path[PATH_MAX + CARD_NAME_MAX + 2], file[CARD_NAME_MAX + 8];
	json_t *cards = json_object();
	size_t bytes = 0;
	struct stat st;
	int dir;

	snprintf(path, sizeof(path), "%s/%s", folder, session);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return cards;
	(void)sys->list(dir, ".", card_names_add, &names);
	for (size_t i = 0; i < names.n && bytes < CLAUDE_BYTES_MAX; i++) {
		json_t *card = card_read(dir, names.v[i]);

		snprintf(file, sizeof(file), "%s.json", names.v[i]);
		if (card && fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (size_t)st.st_size;
		if (card && claude_is_bare(card))
			card_add_meta(card, NULL);
		json_object_set_new(cards, names.v[i], card);
	}
	free(names.v);
	close(dir);
	return cards;
}

/* ---- the state of an agent */

#define ALONE_FACTOR 12    /* a process that shows nothing else counts so many times longer */
#define AHEAD_MS     60000 /* a time further ahead comes of a wrong clock */
#define RESUMED_MS   1000  /* lines in flight at a stop are written by then */
#define TAIL_MAX     (256 << 10)
#define GHOST_MS     30000

/* A person or a model said something in the transcript after the stop. Lines of hooks, and last
 * words, which are written late, do not count. If no line has a time, the file's time counts. */
static bool judge_resumed(const char *path, int64_t stopped_ms, int64_t grew_ms)
{
	char *text = NULL;
	const char *line;
	size_t at = 0, len = 0, n;
	bool timed = false, some = false;
	struct stat st;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t got = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && (text = malloc(TAIL_MAX)) != NULL)
		got = pread(fd, text, TAIL_MAX, MAX(st.st_size - TAIL_MAX, 0));
	if (fd >= 0)
		close(fd);
	len = (size_t)MAX(got, 0);
	while (!some && jsonl_next(text, len, &at, &line, &n) == 1) {
		struct slice time = jscan_member(line, n, "timestamp");
		struct slice type = jscan_member(line, n, "type");

		timed |= time.len > 2;
		some = time.len > 2 &&
		       (slice_is(type, "\"assistant\"") || slice_is(type, "\"user\"")) &&
		       clock_parse_iso(time.s + 1, time.len - 2) > stopped_ms + RESUMED_MS;
	}
	free(text);
	return some || (!timed && grew_ms > stopped_ms + 2 * RESUMED_MS);
}

void claude_judge(json_t *card, int64_t stale_ms)
{
	int64_t now = clock_wall_ms(), told = card_time(card, "updatedAt"), seen, grew = -1;
	int64_t stopped = card_time(card, "stoppedAt");
	const char *status = json_str(card, "status"), *transcript = json_str(card, "transcript");
	enum card_life process = card_life(card);
	bool idle = strcmp(status, "idle") == 0;
	char iso[CLOCK_ISO_LEN + 1];
	struct stat st;

	if (stat(transcript, &st) == 0 && S_ISREG(st.st_mode))
		grew = st.st_mtim.tv_sec * 1000ll + st.st_mtim.tv_nsec / 1000000;
	if (strcmp(status, "stopped") == 0) {
		if (process != CARD_DEAD && grew > stopped && stopped >= 0 &&
		    now - grew <= stale_ms && judge_resumed(transcript, stopped, grew)) {
			json_object_set_new(card, "status", json_string("active"));
			json_object_del(card, "stoppedAt");
		}
		return;
	}
	seen = MAX(told > now + AHEAD_MS ? -1 : told, grew > now + AHEAD_MS ? -1 : grew);
	if (process != CARD_DEAD && seen >= 0 && now - seen <= stale_ms)
		return;
	if (process == CARD_LIVES && (idle || seen < 0 || now - seen <= ALONE_FACTOR * stale_ms))
		return;
	clock_iso(MAX(told, grew), iso);
	json_object_set_new(card, "status", json_string("stopped"));
	json_object_set_new(card, "reason", json_string("unknown"));
	json_object_set_new(card, "stoppedAt", json_string(iso));
}

static int ghosts_by_start(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	int64_t p = card_time(x, "startedAt"), q = card_time(y, "startedAt");
	int types = strcmp(json_str(x, "type"), json_str(y, "type"));

	if (types != 0 || p != q)
		return types ? types : p < q ? -1 : 1;
	return strcmp(json_str(x, "agentId"), json_str(y, "agentId"));
}

/* "The one before" is the previous one in this order, a ghost or not; an agent never seen to stop
 * overlaps later ones. A teammate that waits for work is no ghost. */
void claude_mark_ghosts(json_t *cards)
{
	json_t **all = calloc(json_object_size(cards) + 1, sizeof(json_t *)), *card;
	const char *name;
	size_t n = 0;

	json_object_foreach(cards, name, card) if (all && json_is_object(card)) all[n++] = card;
	if (all)
		qsort(all, n, sizeof(json_t *), ghosts_by_start);
	for (size_t i = 1; i < n; i++) {
		int64_t stopped = card_time(all[i - 1], "stoppedAt");
		int64_t off = card_time(all[i], "startedAt") - stopped;

		if (strcmp(json_str(all[i - 1], "type"), json_str(all[i], "type")) == 0 &&
		    strcmp(json_str(all[i - 1], "status"), "stopped") == 0 && stopped >= 0 &&
		    strcmp(json_str(all[i], "status"), "idle") != 0 &&
		    !json_object_get(all[i - 1], "reason") && off >= 0 && off <= GHOST_MS)
			json_object_set_new(all[i], "ghost", json_true());
	}
	free(all);
}

/* ---- sessions and tasks */

void claude_sessions(struct claude_list *all, const char *home, const char *in, int64_t since_ms)
{
	struct card_names names = {.max = 100000, .folders = true};
	char path[PATH_MAX + 32];
	struct stat st;
	int dir;

	snprintf(path, sizeof(path), "%s/%s", home, in);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	(void)sys->list(dir, ".", card_names_add, &names);
	for (size_t i = 0; i < names.n; i++) {
		struct claude_aged *a;

		if (fstatat(dir, names.v[i], &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISDIR(st.st_mode) || st.st_mtim.tv_sec * 1000ll < since_ms ||
		    !ARRAY_ROOM(all->v, all->cap, all->n + 1))
			continue;
		a = &all->v[all->n++];
		*a = (struct claude_aged){.ms = st.st_mtim.tv_sec * 1000ll,
					  .tasks = strcmp(in, CARD_FOLDER) != 0};
		memcpy(a->name, names.v[i], sizeof(a->name));
	}
	free(names.v);
	close(dir);
}

#define TASKS_MAX 1000

json_t *claude_tasks(const char *path)
{
	struct card_names names = {.max = TASKS_MAX};
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	json_t *list = json_array();

	if (dir < 0)
		return list;
	(void)sys->list(dir, ".", card_names_add, &names);
	for (size_t i = 0; i < names.n; i++) {
		struct ava_error err = {0};
		json_t *task = card_read_object(dir, names.v[i], &err);
		char file[CARD_NAME_MAX + 8];

		snprintf(file, sizeof(file), "%s.json", names.v[i]);
		if (!task)
			task = json_pack("{s:o, s:s, s:o}", "subject", json_shown(file), "status",
					 "pending", "unreadable", json_shown(err.text));
		if (task && !json_object_get(task, "id"))
			json_object_set_new(task, "id", json_shown(names.v[i]));
		json_array_append_new(list, task);
	}
	free(names.v);
	close(dir);
	return list;
}

void claude_tasks_folder(const struct claude_team *team, const json_t *cards, const char *session,
			 char out[CARD_NAME_MAX + 1])
{
	const char *name, *list = "";
	json_t *card;

	json_object_foreach((json_t *)cards, name, card) if (*json_str(card, "taskList")) list =
		json_str(card, "taskList");
	snprintf(out, CARD_NAME_MAX + 1, "%s", *team->name ? team->name : *list ? list : session);
	for (char *c = out; !*team->name && *list && *c; c++) /* as Claude Code names the folder */
		if (!isalnum((unsigned char)*c) && !strchr("_-", *c))
			*c = '-';
}

bool claude_has_cards(int dir, const char *folder)
{
	struct card_names names = {.max = 1};

	(void)sys->list(dir, folder, card_names_add, &names);
	free(names.v);
	return names.n > 0;
}

/* ---- too many cards */

int claude_oldest_first(const void *a, const void *b)
{
	const struct claude_aged *x = a, *y = b;

	if (x->ghost != y->ghost)
		return x->ghost ? -1 : 1;
	if (x->ms != y->ms) /* ghosts newest first: an older one may make the next a ghost */
		return (x->ms < y->ms) != x->ghost ? -1 : 1;
	return strcmp(x->name, y->name); /* the kernel's clock moves in steps: times may be equal */
}

/* The card changed since it was read, or is new: it is removed once that is in the log. */
static bool is_newer(const struct claude_full *f, int dir, const char *name)
{
	json_t *card = card_read(dir, name);
	const json_t *was = json_object_get(f->cards, name);
	bool newer = card && strcmp(json_str(card, "updatedAt"), json_str(was, "updatedAt")) != 0;

	json_decref(card);
	return newer;
}

void claude_cap(const char *folder, struct claude_full *f, size_t cap)
{
	struct card_names names = {.max = 100000};
	char path[PATH_MAX + CARD_NAME_MAX + 2], file[CARD_NAME_MAX + 8];
	struct claude_aged *aged;
	struct stat st;
	int dir;

	snprintf(path, sizeof(path), "%s/%s", folder, f->session);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return;
	/* A hook that is writing a card holds the lock: the next call tries again. */
	f->again = flock(dir, LOCK_EX | LOCK_NB) != 0;
	if (!f->again)
		(void)sys->list(dir, ".", card_names_add, &names);
	aged = names.n > cap ? calloc(names.n, sizeof(*aged)) : NULL;
	for (size_t i = 0; aged && i < names.n; i++) {
		snprintf(file, sizeof(file), "%s.json", names.v[i]);
		memcpy(aged[i].name, names.v[i], sizeof(aged[i].name));
		if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
			aged[i].ms = st.st_mtim.tv_sec * 1000ll + st.st_mtim.tv_nsec / 1000000;
	}
	claude_mark_ghosts(f->cards);
	for (size_t i = 0; aged && i < names.n; i++)
		aged[i].ghost = json_object_get(json_object_get(f->cards, names.v[i]), "ghost");
	if (aged)
		qsort(aged, names.n, sizeof(*aged), claude_oldest_first);
	for (size_t i = 0; aged && i < names.n - cap; i++) {
		snprintf(file, sizeof(file), "%s.json", aged[i].name);
		if (is_newer(f, dir, aged[i].name))
			f->again = true;
		else
			(void)unlinkat(dir, file, 0);
	}
	free(aged);
	free(names.v);
	close(dir); /* releases the lock */
}

/* ---- teams */

static void take_team(struct claude_teams *t, int dir, const char *name)
{
	char path[CARD_NAME_MAX + 16], *text = NULL;
	json_t *config = NULL;
	const char *leader;
	size_t len = 0;

	snprintf(path, sizeof(path), "%s/config.json", name);
	if (sys_read_file(dir, path, CARD_MAX, &text, &len, NULL) == 0)
		config = json_read_others(text, len, NULL);
	free(text);
	leader = json_str(config, "leadSessionId");
	if (card_is_name(leader) && ARRAY_ROOM(t->v, t->cap, t->n + 1)) {
		struct claude_team *team = &t->v[t->n++];

		snprintf(team->name, sizeof(team->name), "%s", name);
		snprintf(team->leader, sizeof(team->leader), "%s", leader);
	}
	json_decref(config);
}

void claude_teams_read(struct claude_teams *t, const char *home)
{
	struct card_names names = {.max = 1000, .folders = true};
	char path[PATH_MAX + 16];
	int dir;

	*t = (struct claude_teams){0};
	snprintf(path, sizeof(path), "%s/teams", home);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	(void)sys->list(dir, ".", card_names_add, &names);
	for (size_t i = 0; i < names.n; i++)
		take_team(t, dir, names.v[i]);
	free(names.v);
	close(dir);
}

const struct claude_team *claude_teams_find(const struct claude_teams *t, const char *asked)
{
	static const struct claude_team none;

	for (size_t i = 0; i < t->n; i++)
		if (strcmp(asked, t->v[i].name) == 0 || strcmp(asked, t->v[i].leader) == 0)
			return &t->v[i];
	return &none;
}
