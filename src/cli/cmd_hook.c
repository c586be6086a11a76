/* ava hook: what Claude Code calls when a subagent of it starts, stops or is idle. The event
 * stands on stdin (its hooks, as of 2.1.330: https://code.claude.com/docs/en/hooks); one file an
 * agent, its card, says how that agent is now:
 *
 *	$CLAUDE_CONFIG_DIR/agent-activity/SESSION/AGENT.json      (default: ~/.claude)
 *
 * Happy path: read the event, lock the session's folder, read the card that is there, change
 * what the event changes, put the new card in its place by a rename. Of hooks that run at the
 * same time the one that was started last has the last word, whichever gets the lock first; what
 * an older one knows is only added. Nothing is synced: a card tells about now, and who keeps it
 * (avad) has a journal.
 *
 * Whatever fails is a line in agent-activity/hook.log and exit code 0, also with options and words
 * that it does not have: a hook that fails would disturb a session that works, and 2 would keep a
 * subagent from stopping. Only base and codec are used, since this runs at each start and
 * stop of an agent. doc/CLAUDE-CODE.md has the card member by member. */
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "cli/cli.h"
#include "codec/card.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define INPUT_MAX     (16u << 20)
#define MESSAGE_MAX   (256u << 10)
#define LOG_MAX       (1 << 20)
#define LOCK_MS       2000
#define TAIL_MAX      (1u << 20) /* bytes at a transcript's end searched for its last line */
#define LAST_LINE_MS  200        /* longest wait for the transcript's last line */
#define CLOCK_BACK_MS 60000      /* no hook works so long; further ahead: the clock was set back */
#define ACTIVITY_MAX  200
#define GLUED_MAX     64 /* most beginnings in one line with nothing whole behind them */
#define SESSIONS_MAX  100000
#define CARDS_MAX     100000

struct hook {
	json_t *in;
	const char *event, *session;
	char home[PATH_MAX]; /* the folder agent-activity */
	int dir;             /* the session's folder, locked; -1: not yet */
	int64_t began_ms;    /* start of this process, which tells the newer of two events */
};

/* ---- its own log */

static void hook_log(const struct hook *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void hook_log(const struct hook *h, const char *fmt, ...)
{
	char path[PATH_MAX + 16], old[PATH_MAX + 32], when[CLOCK_ISO_LEN + 1];
	struct stat st;
	struct buf line;
	va_list ap;
	int fd;

	snprintf(path, sizeof(path), "%s/hook.log", h->home);
	snprintf(old, sizeof(old), "%s.1", path);
	if (stat(path, &st) == 0 && st.st_size > LOG_MAX)
		(void)rename(path, old);
	buf_init(&line, 4096);
	clock_iso(clock_wall_ms(), when);
	buf_addf(&line, "%s ", when);
	va_start(ap, fmt);
	buf_vaddf(&line, fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < line.len; i++)
		if ((unsigned char)line.data[i] < ' ')
			line.data[i] = ' ';
	buf_addc(&line, '\n');
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		(void)!write(fd, line.data, line.len);
		close(fd);
	}
	buf_fini(&line);
}

/* ---- cards */

/* The new one and the old one are exchanged, then the old one goes: where one replaces another,
 * ext4 writes the new one out first, which takes longer than all else here. */
static int hook_replace(int dir, const char *temp, const char *name)
{
	if (renameat2(dir, temp, dir, name, RENAME_EXCHANGE) == 0)
		return unlinkat(dir, temp, 0);
	return renameat(dir, temp, dir, name); /* a new name, or a file system that cannot swap */
}

static void card_write(const struct hook *h, const json_t *card)
{
	char name[CARD_NAME_MAX + 1], file[CARD_NAME_MAX + 8], temp[32];
	const char *agent = json_str(card, "agentId");
	struct buf out;
	int fd, rv;

	card_name(agent, name);
	snprintf(file, sizeof(file), "%s.json", name);
	snprintf(temp, sizeof(temp), ".%d.next", (int)getpid());
	buf_init(&out, CARD_MAX);
	rv = json_dump(&out, card);
	rv = rv ? rv : buf_addc(&out, '\n');
	if (rv != 0) {
		hook_log(h, "%s of %.200s: the card is too large", h->event, agent);
		buf_fini(&out);
		return;
	}
	fd = openat(h->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rv = fd < 0 ? -1 : sys_write_all(fd, out.data, out.len, 0);
	if (fd >= 0)
		rv = close(fd) != 0 ? -1 : rv;
	if (rv != 0 || hook_replace(h->dir, temp, file) != 0) {
		hook_log(h, "%s of %.200s: %s", h->event, agent, strerror(errno));
		if (fd >= 0)
			(void)unlinkat(h->dir, temp, 0);
	}
	buf_fini(&out);
}

static void put_str(json_t *card, const char *key, const char *value)
{
	if (value && *value)
		json_object_set_new(card, key, json_string(value));
}

static void hook_put_time(json_t *card, const char *key, int64_t ms)
{
	char iso[CLOCK_ISO_LEN + 1];

	clock_iso(ms, iso);
	put_str(card, key, iso);
}

/* ---- what Claude Code keeps of an agent beside its session's transcript */

static const char *hook_expand(const char *path, char out[PATH_MAX])
{
	const char *home = env_get("HOME");

	if (!path || (path[0] != '/' && strncmp(path, "~/", 2) != 0))
		return NULL;
	if ((size_t)snprintf(out, PATH_MAX, "%s%s", path[0] == '~' && home ? home : "",
			     path[0] == '~' ? path + 1 : path) >= PATH_MAX)
		return NULL;
	return out;
}

/* The agent's transcript: told at the stop; before it, where it will be. False: not known. */
static bool transcript_of(const struct hook *h, const char *agent, char out[PATH_MAX])
{
	char session[PATH_MAX];
	const char *path = hook_expand(json_get_str(h->in, "agent_transcript_path"), out);
	size_t n;

	if (path)
		return true;
	if (strchr(agent, '/') || !hook_expand(json_get_str(h->in, "transcript_path"), session))
		return false;
	n = strlen(session);
	if (n < 6 || strcmp(session + n - 6, ".jsonl") != 0)
		return false;
	session[n - 6] = 0;
	return (size_t)snprintf(out, PATH_MAX, "%s/subagents/agent-%s.jsonl", session, agent) <
	       PATH_MAX;
}

static json_t *hook_value_of(struct slice s)
{
	return s.len ? json_read_others(s.s, s.len, NULL) : NULL;
}

/* The text of a reply's block; a new reference or NULL. */
static json_t *hook_text_of(const char *line, size_t len)
{
	struct slice message = jscan_member(line, len, "message");
	json_t *content = hook_value_of(jscan_member(message.s, message.len, "content"));
	json_t *text = json_object_get(json_array_get(content, 0), "text");

	json_incref(text);
	json_decref(content);
	return text;
}

/* Whether the transcript ends with the last message; of several blocks only the last stands in that
 * line. */
static bool has_message(int fd, off_t size, const char *message)
{
	off_t from = MAX(size - (off_t)TAIL_MAX, 0);
	size_t len = (size_t)(size - from), said = strlen(message), at, n;
	char *tail = malloc(len + 1);
	const char *text;
	bool has = false;
	json_t *last;

	if (tail && len > 0 && pread(fd, tail, len, from) == (ssize_t)len &&
	    tail[len - 1] == '\n') {
		for (at = len - 1; at > 0 && tail[at - 1] != '\n';)
			at--;
		last = hook_text_of(tail + at, len - 1 - at);
		text = json_string_value(last);
		n = text ? strlen(text) : 0;
		while (n > 0 && strchr(" \n", text[n - 1]))
			n--;
		while (said > 0 && strchr(" \n", message[said - 1]))
			said--;
		has = n > 0 && n <= said && memcmp(message + said - n, text, n) == 0;
		json_decref(last);
	}
	free(tail);
	return has;
}

static int open_transcript(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Claude Code writes the lines of a transcript a tenth of a second after they came, so the stop
 * mostly is there before the last reply. Before the lock: others have their own to wait for. */
static void wait_for_message(const struct hook *h, const char *agent)
{
	const char *message = json_str(h->in, "last_assistant_message");
	int64_t until = clock_mono_ms() + LAST_LINE_MS;
	char path[PATH_MAX];
	struct stat st;
	int fd = *message && transcript_of(h, agent, path) ? open_transcript(path, &st) : -1;

	while (fd >= 0 && fstat(fd, &st) == 0 && !has_message(fd, st.st_size, message) &&
	       clock_mono_ms() < until)
		(void)nanosleep(&(struct timespec){.tv_nsec = 10 * 1000000}, NULL);
	if (fd >= 0)
		close(fd);
}

/* Find three members of an object by name in one pass. Returns its end; NULL: incomplete. */
static const char *find_members(const char *s, const char *end, const char *const names[3],
				struct slice values[3])
{
	struct slice key, value;
	struct jscan w;

	memset(values, 0, 3 * sizeof(*values));
	jscan_init(&w, s, (size_t)(end - s));
	w.loose = true; /* arguments of tools may be deep */
	if (jscan_object(&w))
		while (jscan_key(&w, &key) && jscan_skip(&w, &value))
			for (int i = 0; i < 3; i++)
				if (slice_is(key, names[i]))
					values[i] = value;
	return w.failed ? NULL : w.at;
}

/* A reply of several blocks is a line a block with the same id, each with what the reply has
 * used so far: the last one counts. */
static void hook_take_message(struct slice message, json_t *replies, json_t *card)
{
	static const char *const names[3] = {"id", "model", "usage"};
	struct slice found[3];
	json_t *id, *model;

	(void)find_members(message.s, message.s + message.len, names, found);
	id = hook_value_of(found[0]);
	model = hook_value_of(found[1]);
	if (json_is_string(id))
		json_object_set_new(replies, json_string_value(id), hook_value_of(found[2]));
	if (json_is_string(model) && json_string_value(model)[0] != '<') /* "<synthetic>" */
		json_object_set(card, "model", model);
	json_decref(id);
	json_decref(model);
}

static void add_usage(json_t *card, json_t *replies)
{
	static const struct {
		const char *ours, *theirs;
	} members[] = {{"input", "input_tokens"},
		       {"output", "output_tokens"},
		       {"cacheRead", "cache_read_input_tokens"},
		       {"cacheWrite", "cache_creation_input_tokens"}};
	json_t *usage, *reply;
	const char *id;

	if (json_object_size(replies) == 0)
		return;
	usage = json_object();
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		int64_t sum = 0;

		json_object_foreach(replies, id, reply) sum =
			sum_to_max(sum, MAX(json_get_fixed(reply, members[i].theirs, 0, 0), 0));
		json_object_set_new(usage, members[i].ours, json_integer(sum));
	}
	json_object_set_new(card, "usage", usage);
}

/* Two that wrote at once leave objects behind each other in one line, or one within a half of
 * another, and a crash leaves NULs before one: each that is whole counts. */
static void hook_take_line(const char *line, size_t len, json_t *replies, json_t *card)
{
	static const char *const names[3] = {"message", "role", "role"};
	const char *end = line + len, *after;
	struct slice found[3];

	if (!memmem(line, len, "\"usage\"", 7))
		return;
	for (int broken = 0; broken < GLUED_MAX; broken += !after) {
		line = memmem(line, (size_t)(end - line), "{\"", 2);
		if (!line)
			return;
		after = find_members(line, end, names, found);
		if (after && found[0].len)
			hook_take_message(found[0], replies, card);
		else if (after && slice_is(found[1], "\"assistant\"")) /* the line was cut */
			hook_take_message((struct slice){line, (size_t)(after - line)}, replies,
					  card);
		line = after ? after : line + 1;
	}
}

/* Add tokens and model, and the beginning if no start was seen. */
static void add_transcript(json_t *card, const char *path)
{
	struct stat st;
	int fd = open_transcript(path, &st);
	size_t len = fd >= 0 ? (size_t)st.st_size : 0, at = 0, n;
	char *data = len ? mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	json_t *replies = json_object();
	const char *line;
	int more = 1;

	if (fd >= 0)
		close(fd);
	if (data != MAP_FAILED) {
		while (more == 1 && (more = jsonl_next(data, len, &at, &line, &n)) != 0) {
			if (card_time(card, "startedAt") < 0) {
				json_t *began = hook_value_of(jscan_member(line, n, "timestamp"));

				put_str(card, "startedAt", json_string_value(began));
				json_decref(began);
			}
			hook_take_line(line, n, replies, card);
		}
		munmap(data, len);
		add_usage(card, replies);
	}
	json_decref(replies);
}

/* ---- what each event changes */

/* The session's: what runs it is a sign of its life, and its end one of the end. */
static void note_place(const struct hook *h, json_t *card)
{
	const char *told = env_get("CLAUDE_PID");

	put_str(card, "cwd", json_get_str(h->in, "cwd"));
	put_str(card, "taskList", env_get("CLAUDE_CODE_TASK_LIST_ID"));
	card_add_process(card, told ? atoll(told) : 0);
}

/* True: this event is the newest, and the agent's status comes from it. Within one millisecond the
 * stop wins. A card later than now means that the clock was set back since. */
static bool set_status(const struct hook *h, json_t *card, const char *status)
{
	int64_t updated = card_time(card, "updatedAt");
	bool stops = strcmp(status, "stopped") == 0;

	if ((updated > h->began_ms && updated <= h->began_ms + CLOCK_BACK_MS) ||
	    (updated == h->began_ms && !stops && strcmp(json_str(card, "status"), "stopped") == 0))
		return false;
	put_str(card, "status", status);
	hook_put_time(card, "updatedAt", h->began_ms);
	json_object_del(card, "activity");
	if (!stops)
		json_object_del(card, "stoppedAt");
	return true;
}

/* The agent had begun by now: an earlier start, if known, stays. */
static void note_beginning(const struct hook *h, json_t *card)
{
	int64_t started = card_time(card, "startedAt");

	if (started < 0 || started > h->began_ms)
		hook_put_time(card, "startedAt", h->began_ms);
}

static json_t *card_new(const char *agent, const char *type)
{
	json_t *card = json_object();

	put_str(card, "agentId", agent);
	json_object_set_new(card, "type", json_string(type));
	return card;
}

static int open_locked(int root, const char *session)
{
	int dir = openat(root, session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int64_t until = clock_mono_ms() + LOCK_MS;

	/* Go on without a lock that nobody gives back: a rename is whole, and a hook that hangs
	 * would hold the session. */
	while (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) != 0 && clock_mono_ms() < until)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return dir;
}

static json_t *card_own(const struct hook *h, const char *agent)
{
	char name[CARD_NAME_MAX + 1];

	card_name(agent, name);
	return card_read(h->dir, name);
}

/* The card of another session, which is this one under the id that it had before: it has the same
 * process or the same transcript. It is moved here. */
static json_t *card_moved(const struct hook *h, const char *agent, int root, const char *session)
{
	char name[CARD_NAME_MAX + 1], file[CARD_NAME_MAX + 8], path[PATH_MAX];
	int dir = open_locked(root, session);
	json_t *card, *here = json_object();
	bool same;

	card_name(agent, name);
	card = dir >= 0 ? card_read(dir, name) : NULL;
	note_place(h, here);
	same = card &&
	       (json_equal(json_object_get(here, "process"), json_object_get(card, "process")) ||
		(transcript_of(h, agent, path) && strcmp(path, json_str(card, "transcript")) == 0));
	snprintf(file, sizeof(file), "%s.json", name);
	if (!same || renameat(dir, file, h->dir, file) != 0) {
		json_decref(card);
		card = NULL;
	}
	json_decref(here);
	if (dir >= 0)
		close(dir);
	return card;
}

/* The agent's card in this session, else in an earlier one; NULL: none. */
static json_t *card_find(const struct hook *h, const char *agent)
{
	char name[CARD_NAME_MAX + 1], path[2 * CARD_NAME_MAX + 8];
	struct card_names sessions = {.max = SESSIONS_MAX, .folders = true};
	json_t *card = card_own(h, agent);
	int root;

	card_name(agent, name);
	root = card ? -1 : open(h->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0)
		(void)sys->list(root, ".", card_names_add, &sessions);
	for (size_t i = 0; !card && i < sessions.n; i++) {
		snprintf(path, sizeof(path), "%s/%s.json", sessions.v[i], name);
		if (strcmp(sessions.v[i], h->session) != 0 && faccessat(root, path, F_OK, 0) == 0)
			card = card_moved(h, agent, root, sessions.v[i]);
	}
	free(sessions.v);
	if (root >= 0)
		close(root);
	return card;
}

static void hook_on_start(struct hook *h, const char *agent, const char *type)
{
	char transcript[PATH_MAX];
	json_t *card = card_own(h, agent);

	if (!*type && !card)
		return; /* an internal agent of Claude Code has no type */
	card = card ? card : card_new(agent, type);
	put_str(card, "type", type);
	(void)set_status(h, card, "active");
	note_beginning(h, card);
	if (transcript_of(h, agent, transcript)) {
		put_str(card, "transcript", transcript);
		card_add_meta(card, NULL); /* NULL: a meta file still half written is no error */
	}
	note_place(h, card);
	card_write(h, card);
	json_decref(card);
}

/* Keep at most MESSAGE_MAX bytes of the agent's last message. */
static void hook_add_message(json_t *card, const char *message)
{
	size_t len = message ? strlen(message) : 0;

	if (len > MESSAGE_MAX)
		for (len = MESSAGE_MAX; len > 0 && ((unsigned char)message[len] & 0xc0) == 0x80;)
			len--;
	if (len > 0)
		json_object_set_new(card, "lastMessage", json_stringn(message, len));
}

static void on_stop(struct hook *h, const char *agent, const char *type)
{
	char path[PATH_MAX];
	const char *transcript = transcript_of(h, agent, path) ? path : NULL;
	json_t *card = card_find(h, agent);
	struct ava_error err = {0};

	/* Claude Code's own forks (a suggestion, a summary) stop under an id of their own, of which
	 * no start was told, and mostly have neither a type nor a transcript. */
	if (!card && (!*type || (json_get_str(h->in, "agent_transcript_path") && transcript &&
				 access(transcript, F_OK) != 0)))
		return;
	if (!json_get_str(h->in, "agent_transcript_path") && *json_str(card, "transcript"))
		/* The agent's start told the path. */
		transcript = hook_expand(json_str(card, "transcript"), path);
	card = card ? card : card_new(agent, type);
	put_str(card, "type", type);
	if (set_status(h, card, "stopped"))
		hook_put_time(card, "stoppedAt", h->began_ms);
	hook_add_message(card, json_get_str(h->in, "last_assistant_message"));
	if (transcript) {
		put_str(card, "transcript", transcript);
		card_add_meta(card, &err);
		add_transcript(card, transcript);
	}
	if (err.code != 0)
		hook_log(h, "%s of %.200s: its .meta.json: %s", h->event, agent, err.text);
	note_beginning(h, card);
	card_write(h, card);
	json_decref(card);
}

/* How well a card fits a teammate. 3: the same id, NAME@TEAM; 2: the same name; 1: no teammate, but
 * a type of that name; 0: nothing, or another team. */
static int mate_fits(const json_t *card, const char *name, const char *team)
{
	const char *id = json_str(card, "agentId"), *at = strrchr(id, '@');
	const char *its = at ? at + 1 : json_str(card, "team");

	if (*its && *team && strcmp(its, team) != 0)
		return 0;
	if (at && (size_t)(at - id) == strlen(name) && strncmp(id, name, strlen(name)) == 0)
		return 3;
	if (strcmp(id, name) == 0 || strcmp(json_str(card, "name"), name) == 0)
		return 2;
	return !at && strcmp(json_str(card, "type"), name) == 0;
}

/* Find a teammate's card by name, since the agent's id is mostly not given: the newest of the best
 * fits. */
static json_t *mate_find(const struct hook *h, const char *name, const char *team)
{
	struct card_names all = {.max = CARDS_MAX};
	json_t *best = NULL;
	int most = 1;

	(void)sys->list(h->dir, ".", card_names_add, &all);
	for (size_t i = 0; i < all.n; i++) {
		json_t *card = card_read(h->dir, all.v[i]);
		int fits = mate_fits(card, name, team);

		if (fits > most || (fits == most &&
				    card_time(card, "startedAt") >= card_time(best, "startedAt"))) {
			json_decref(best);
			best = json_incref(card);
			most = fits;
		}
		json_decref(card);
	}
	free(all.v);
	return best;
}

static void on_idle(struct hook *h, const char *agent, const char *type)
{
	const char *name = json_str(h->in, "teammate_name"), *team = json_str(h->in, "team_name");
	json_t *card = !*agent && *name ? mate_find(h, name, team) : NULL;
	struct buf id;

	if (!*agent && !*name) {
		hook_log(h, "TeammateIdle names nobody");
		return;
	}
	buf_init(&id, INPUT_MAX);
	buf_adds(&id, *agent ? agent : name);
	if (!*agent && *team)
		buf_addf(&id, "@%s", team);
	if (!card && buf_check(&id) == 0)
		card = *agent ? card_own(h, agent) : card_find(h, id.data);
	card = card ? card : card_new(id.data, *type ? type : name);
	put_str(card, "name", name);
	put_str(card, "team", team);
	(void)set_status(h, card, "idle");
	note_beginning(h, card);
	hook_add_message(card, json_get_str(h->in, "last_assistant_message"));
	note_place(h, card);
	card_write(h, card);
	json_decref(card);
	buf_fini(&id);
}

/* "Read src/a.c": the tool, and of its arguments the one that says what it is about. */
static void on_tool(struct hook *h, const char *agent, const char *type)
{
	static const char *const telling[] = {"file_path", "command", "pattern",    "url",
					      "query",     "path",    "description"};
	const json_t *args = json_object_get(h->in, "tool_input");
	json_t *card = card_find(h, agent);
	const char *about = "";
	struct buf line;

	if (!card)
		return;
	for (size_t i = 0; i < ARRAY_LEN(telling) && !*about; i++)
		about = json_str(args, telling[i]);
	if (!json_object_get(card, "depth"))
		card_add_meta(card, NULL);
	if (set_status(h, card, "active")) {
		buf_init(&line, 4096);
		buf_adds(&line, json_str(h->in, "tool_name"));
		buf_addc(&line, ' ');
		buf_add(&line, about, utf8_prefix(about, strcspn(about, "\n"), ACTIVITY_MAX));
		if (buf_check(&line) == 0)
			put_str(card, "activity", line.data);
		buf_fini(&line);
		card_write(h, card);
	}
	json_decref(card);
}

static const struct {
	const char *event;
	bool any; /* the event is taken without an agent's id, too */
	void (*run)(struct hook *h, const char *agent, const char *type);
} events[] = {
	{"SubagentStart", false, hook_on_start},
	{"SubagentStop", false, on_stop},
	{"TeammateIdle", true, on_idle},
	{"PreToolUse", false, on_tool},
};

/* ---- from stdin to the session's folder */

/* Read stdin to its end, even if it is too long, so that the writer does not fail. */
static bool hook_read_all(struct buf *in)
{
	static char piece[64u << 10];
	ssize_t n;

	while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			(void)buf_add(in, piece, (size_t)n);
	return n == 0 && buf_check(in) == 0;
}

/* Opened and locked. */
static bool open_session(struct hook *h)
{
	char path[PATH_MAX + CARD_NAME_MAX + 2];

	snprintf(path, sizeof(path), "%s/%s", h->home, h->session);
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return false;
	h->dir = open_locked(AT_FDCWD, path);
	return h->dir >= 0;
}

static void hook_take_event(struct hook *h)
{
	const char *agent = json_str(h->in, "agent_id"), *type = json_str(h->in, "agent_type");
	size_t i = 0;

	h->event = json_str(h->in, "hook_event_name");
	h->session = json_str(h->in, "session_id");
	while (i < ARRAY_LEN(events) && strcmp(h->event, events[i].event) != 0)
		i++;
	if (i == ARRAY_LEN(events)) {
		hook_log(h, "event \"%.60s\" of session %.60s: nothing to keep", h->event,
			 h->session);
	} else if (!*agent && !events[i].any) {
		if (events[i].run != on_tool) /* the session's own tools are none of an agent */
			hook_log(h, "%s of session %.60s names no agent", h->event, h->session);
	} else if (!card_is_name(h->session)) {
		hook_log(h, "%s: session \"%.200s\" is no name for a folder", h->event, h->session);
	} else {
		if (events[i].run == on_stop)
			wait_for_message(h, agent);
		if (open_session(h))
			events[i].run(h, agent, type);
		else
			hook_log(h, "%s: the folder of session %s: %s", h->event, h->session,
				 strerror(errno));
	}
}

/* The file that is mapped got shorter, or no file may grow. */
static void end_well(int signal)
{
	_exit(CLI_DONE);
}

static int hook_run(int argc, char **argv)
{
	struct hook h = {.dir = -1, .began_ms = clock_wall_ms()};
	struct ava_error err = {0};
	struct buf in;
	size_t n;

	(void)signal(SIGBUS, end_well);
	(void)signal(SIGXFSZ, SIG_IGN);
	if (card_home(h.home, sizeof(h.home) - sizeof(CARD_FOLDER) - 1, NULL) != 0)
		return CLI_DONE;
	n = strlen(h.home);
	snprintf(h.home + n, sizeof(h.home) - n, "/" CARD_FOLDER);
	if (sys_make_folders(h.home, true) != 0)
		return CLI_DONE;
	buf_init(&in, INPUT_MAX);
	if (!hook_read_all(&in)) {
		hook_log(&h, "the event cannot be read, or has more than %u bytes", INPUT_MAX);
	} else {
		h.in = json_read_others(in.data, in.len, &err);
		if (json_is_object(h.in))
			hook_take_event(&h);
		else
			hook_log(&h, "the event is no JSON object: %s", err.text);
	}
	json_decref(h.in);
	if (h.dir >= 0)
		close(h.dir); /* frees the lock */
	buf_fini(&in);
	return CLI_DONE;
}

const struct command cmd_hook = COMMAND(
	"hook", "", 0, -1, "record an event of Claude Code (its hooks call this)",
	"Reads a hook's event on standard input and keeps the agent's card in "
	"~/.claude/agent-activity (below $CLAUDE_CONFIG_DIR when that is set). It always ends with "
	"0; what went wrong stands in hook.log there. `ava hooks install` makes Claude Code call "
	"it.\n",
	.run = hook_run, .always_done = true);
