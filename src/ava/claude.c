/* See claude.h.
 *
 * Happy path: inotify reports a changed card. The session is noted, and a thread of the pool reads
 * the cards of all noted sessions: at once, but not before SETTLE_MS after the last reading, so
 * that a burst is one reading behind its first card and none of its cards waits longer. A change of
 * an agent's state (it started, stopped or is idle) becomes a line of the daily log; watchers hear
 * of the session at once. When the lines are on the disk, a session with too many cards loses its
 * oldest, so no card is removed before its line is written.
 *
 * A start reads in the log which cards it need not write again. What can fail: the folder is
 * missing (looked for again and again), inotify has no room (logged once; such sessions are read on
 * request), memory (tried again with the next change). An unreadable card is skipped until its next
 * change. Loop thread, but for functions named `_job`. */
#include "ava/claude.h"

#include <ava.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/claude_files.h"
#include "ava/job.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/card.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"

#define SETTLE_MS       40               /* pause between two readings: a burst of changes is one */
#define LOOK_MS         10000            /* pause between two looks for a missing folder */
#define DIRTY_MAX       16               /* sessions of a reading, which is one turn of the loop */
#define AGE_MS          (7 * 86400000ll) /* older folders are read on request only */
#define MESSAGE_CHARS   2000             /* characters of an agent's message in the log */
#define LISTED_MAX      500              /* sessions in an answer */
#define NEWBORN_MS      1000             /* an agent of unknown parent is read again for so long */
#define NEWBORN_LOOK_MS 250              /* time between two such readings */

/* An agent's state as the log has it. */
struct claude_known {
	int64_t updated_ms;
	char status[16];
	char key[]; /* "session/agent" */
};

struct dirty {
	char session[CARD_NAME_MAX + 1];
	struct claude_team team; /* both names "": the session has no team */
	bool shared;             /* the session's tasks belong to others, too */
	int watch, tasks_watch;  /* inotify's numbers of the folders; -1: not watched */
	json_t *cards;           /* the session's cards by agent; the job reads them */
};

struct claude_reading {
	struct job job;
	struct claude *claude; /* NULL: it was closed */
	char home[PATH_MAX], folder[PATH_MAX];
	int notify;
	bool first; /* reads all sessions of the last days, and the log */
	int64_t since_ms;
	struct dirty *sessions;
	size_t n, cap;
	struct claude_list found; /* of the first reading: sessions to be read next */
	json_t *logged;           /* of the first reading: "session/agent" -> {updatedAt, status} */
	bool no_folder, no_room;
};

struct claude {
	struct core *core;
	char home[PATH_MAX]; /* Claude Code's folder */
	int notify;
	int home_watch;  /* watch on `home`, where agent-activity may appear; -1: none */
	int root_watch;  /* watch on agent-activity; -1: the folder is not there yet */
	int tasks_watch; /* watch on tasks; -1: the folder is not there yet */
	struct os_poll *poll;
	struct os_timer *timer;
	struct claude_reading *reading; /* the reading under way; NULL: none */
	int64_t read_ms;                /* end of the last reading, monotonic */
	struct strmap known;
	struct strmap dirty; /* names of sessions; the value is the name */
	char **watched;      /* names of sessions, by inotify's number of the folder */
	size_t watched_cap;
	unsigned writing, failed; /* commits of lines: under way, and refused by the disk */
	bool first, told_room;
	bool unmapped; /* an event came whose folder only the reading can name */
};

/* ---- who watches */

static void claude_tell(struct core *c, const char *session)
{
	const struct op_frame f = {.session = session, .kind = FRAME_AGENTS, .text = ""};

	LIST_EACH (&c->watches, n, tmp) {
		struct op_watch *w = LIST_ENTRY(n, struct op_watch, node);

		w->frame(&f, w->user);
	}
}

static void claude_tell_session(struct core *c, const struct dirty *d)
{
	claude_tell(c, d->session);
	if (d->team.name[0] && strcmp(d->team.name, d->session) != 0)
		claude_tell(c, d->team.name); /* the team's page shows its leader's agents */
	if (d->team.leader[0] && strcmp(d->team.leader, d->session) != 0)
		claude_tell(c, d->team.leader); /* the leader's page shows the team's tasks */
	if (d->shared)
		claude_tell(c, "*");
}

/* ---- reading, on a thread of the pool */

/* The newest line of each agent wins. */
static void claude_read_log(struct claude_reading *r)
{
	char since[CLOCK_ISO_LEN + 1], key[2 * CARD_NAME_MAX + 2], agent[CARD_NAME_MAX + 1];
	struct ava_log_query q = {.root = r->job.core->root,
				  .types = "Custom",
				  .search = "claude.agent",
				  .since = since};
	struct ava_log_event e;
	struct ava_log *log;
	int rv;

	clock_iso(r->since_ms, since);
	r->logged = json_object();
	if (ava_log_open(&log, &q, NULL) != 0)
		return;
	while ((rv = ava_log_next(log, &e, NULL)) == 1 || rv == AVA_ECORRUPT) {
		json_t *line = rv == 1 ? json_parse(e.line, e.len, NULL) : NULL;
		const json_t *content = json_object_get(line, "content");
		json_t *data = json_object_get(content, "data");

		if (strcmp(json_str(content, "customType"), "claude.agent") == 0 && data) {
			card_name(json_str(data, "agentId"), agent);
			snprintf(key, sizeof(key), "%.*s/%s", CARD_NAME_MAX,
				 json_str(line, "sessionId"), agent);
			json_object_set(r->logged, key, data);
		}
		json_decref(line);
	}
	ava_log_close(log);
}

static void reading_job(struct job *j)
{
	struct claude_reading *r = CONTAINER_OF(j, struct claude_reading, job);
	char path[PATH_MAX + CARD_NAME_MAX + 16], tasks[CARD_NAME_MAX + 1];
	struct claude_teams teams;
	struct stat st;

	snprintf(path, sizeof(path), "%s/tasks", r->home);
	r->no_folder = (stat(r->folder, &st) != 0 || !S_ISDIR(st.st_mode)) && stat(path, &st) != 0;
	if (r->no_folder)
		return;
	if (r->first) {
		claude_read_log(r);
		claude_sessions(&r->found, r->home, CARD_FOLDER, r->since_ms);
		claude_sessions(&r->found, r->home, "tasks", r->since_ms);
	}
	claude_teams_read(&teams, r->home);
	for (size_t i = 0; i < r->n; i++) {
		struct dirty *d = &r->sessions[i];

		/* Watch before reading: a change in between leads to another reading. */
		snprintf(path, sizeof(path), "%s/%s", r->folder, d->session);
		d->watch = inotify_add_watch(r->notify, path,
					     IN_CLOSE_WRITE | IN_MOVE | IN_ONLYDIR |
						     IN_DELETE_SELF | IN_DONT_FOLLOW);
		r->no_room |= d->watch < 0 && errno == ENOSPC;
		d->cards = claude_cards(r->folder, d->session);
		d->team = *claude_teams_find(&teams, d->session);
		claude_tasks_folder(&d->team, d->cards, d->session, tasks);
		d->shared = !d->team.name[0] && strcmp(tasks, d->session) != 0;
		snprintf(path, sizeof(path), "%s/tasks/%s", r->home, tasks);
		d->tasks_watch = inotify_add_watch(r->notify, path,
						   IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE |
							   IN_ONLYDIR | IN_DONT_FOLLOW);
	}
	free(teams.v);
}

static void claude_reading_free(struct claude_reading *r)
{
	for (size_t i = 0; i < r->n; i++)
		json_decref(r->sessions[i].cards);
	free(r->sessions);
	free(r->found.v);
	json_decref(r->logged);
	free(r);
}

/* ---- too many cards */

struct capping {
	struct job job;
	json_t *noted;   /* "session/agent" of each line in the commit before the capping */
	unsigned failed; /* value of claude.failed when that commit was made */
	char folder[PATH_MAX];
	struct claude_full *sessions;
	size_t n;
	size_t cap; /* most cards of a session that stay */
};

static void capping_job(struct job *j)
{
	struct capping *k = CONTAINER_OF(j, struct capping, job);

	for (size_t i = 0; i < k->n; i++)
		claude_cap(k->folder, &k->sessions[i], k->cap);
}

static void capping_free(struct capping *k)
{
	for (size_t i = 0; i < k->n; i++)
		json_decref(k->sessions[i].cards);
	json_decref(k->noted);
	free(k->sessions);
	free(k);
}

static void note_dirty(struct claude *w, const char *session)
{
	char *name;

	if (!card_is_name(session) || strmap_get(&w->dirty, session))
		return;
	name = strdup(session);
	if (name && strmap_put(&w->dirty, name, name) != 0)
		free(name);
}

static void claude_settle(struct claude *w, int64_t ms)
{
	if (!w->reading)
		os_timer_set(w->timer, ms);
}

static void capping_done(struct job *j)
{
	struct capping *k = CONTAINER_OF(j, struct capping, job);
	struct claude *w = j->core->service.claude;

	for (size_t i = 0; w && i < k->n; i++)
		if (k->sessions[i].again)
			note_dirty(w, k->sessions[i].session);
	if (w && w->dirty.count > 0)
		claude_settle(w, SETTLE_MS);
	capping_free(k);
}

/* Removes the cards in a job: their lines are on the disk. */
static void capping_start(struct capping *k)
{
	if (k->n == 0 || job_begin_short(k->job.core, &k->job, NULL) != 0)
		capping_free(k);
}

/* Sessions of `r` that have more cards than are kept. NULL: out of memory. */
static struct capping *capping_new(const struct claude *w, const struct claude_reading *r)
{
	struct capping *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->sessions = calloc(r->n + 1, sizeof(*k->sessions));
	k->noted = json_object();
	if (!k->sessions || !k->noted) {
		capping_free(k);
		return NULL;
	}
	k->job.core = w->core;
	k->job.run = capping_job;
	k->job.done = capping_done;
	k->failed = w->failed;
	k->cap = (size_t)w->core->settings.claude_file_cap;
	memcpy(k->folder, r->folder, sizeof(k->folder));
	for (size_t i = 0; i < r->n; i++)
		if (json_object_size(r->sessions[i].cards) > k->cap) {
			struct claude_full *f = &k->sessions[k->n++];

			memcpy(f->session, r->sessions[i].session, sizeof(f->session));
			f->cards = json_incref(r->sessions[i].cards);
		}
	return k;
}

/* ---- what is new */

static struct claude_known *known_of(struct claude *w, const char *session, const char *agent)
{
	char key[2 * CARD_NAME_MAX + 2];
	struct claude_known *k;
	size_t size;

	snprintf(key, sizeof(key), "%s/%s", session, agent);
	k = strmap_get(&w->known, key);
	if (k)
		return k;
	size = strlen(key) + 1;
	k = calloc(1, sizeof(*k) + size);
	if (!k)
		return NULL;
	memcpy(k->key, key, size);
	if (strmap_put(&w->known, k->key, k) == 0)
		return k;
	free(k);
	return NULL;
}

static void remember_log(struct claude *w, json_t *logged)
{
	json_t *data;
	const char *key;

	json_object_foreach(logged, key, data)
	{
		const char *slash = strchr(key, '/');
		char session[CARD_NAME_MAX + 1];
		struct claude_known *k;

		snprintf(session, sizeof(session), "%.*s", (int)(slash - key), key);
		k = known_of(w, session, slash + 1);
		if (!k)
			continue;
		k->updated_ms = card_time(data, "updatedAt");
		snprintf(k->status, sizeof(k->status), "%s", json_str(data, "status"));
	}
}

/* Writes a card's line: only the beginning of its message, and no secrets. */
static int claude_write_card(struct claude *w, struct draft *d, const char *session, json_t *card)
{
	const char *said = json_str(card, "lastMessage");
	size_t keep = utf8_prefix(said, strlen(said), MESSAGE_CHARS);
	json_t *copy = json_copy(card);
	struct buf data, content;
	int rv;

	if (keep < strlen(said)) {
		json_object_set_new(copy, "lastMessage", json_stringn(said, keep));
		json_object_set_new(copy, "cut", json_true());
	}
	json_object_del(copy, "activity");
	buf_init(&data, CARD_MAX);
	buf_init(&content, 2 * CARD_MAX);
	rv = json_dump(&data, copy);
	buf_adds(&content, "{\"customType\":\"claude.agent\",\"data\":");
	if (rv == 0 && w->core->redact)
		rv = MIN(redact_json(w->core->redact, &content, data.data, data.len), 0);
	else if (rv == 0)
		buf_add(&content, data.data, data.len);
	buf_addc(&content, '}');
	rv = rv ? rv : buf_check(&content);
	if (rv == 0)
		core_event(w->core, d, EVENT_Custom, session, "", &content);
	buf_fini(&content);
	buf_fini(&data);
	json_decref(copy);
	return rv;
}

/* true: the card's state is new for the log, and its line is written. */
static bool note_card(struct claude *w, struct draft *d, struct capping *capping,
		      const char *session, const char *agent, json_t *card)
{
	int64_t updated = card_time(card, "updatedAt");
	const char *status = json_str(card, "status");
	struct claude_known *k = known_of(w, session, agent);

	/* Activity of an agent, which changes with each tool call, is only shown. An older time
	 * comes of a clock that was set back. */
	if (!k || (strcmp(status, k->status) == 0 &&
		   (updated == k->updated_ms || strcmp(status, "active") == 0)))
		return false;
	if (json_object_set_new(capping->noted, k->key, json_true()) != 0 ||
	    claude_write_card(w, d, session, card) != 0)
		return false;
	k->updated_ms = updated;
	snprintf(k->status, sizeof(k->status), "%s", status);
	return true;
}

/* The lines are not in the log: forget the agents' states, so that the next reading writes them
 * again. */
static void not_written(struct claude *w, json_t *noted)
{
	const char *key;
	json_t *yes;

	w->failed++;
	json_object_foreach(noted, key, yes)
	{
		struct claude_known *k = strmap_get(&w->known, key);
		char session[CARD_NAME_MAX + 1];

		snprintf(session, sizeof(session), "%.*s", (int)strcspn(key, "/"), key);
		k->status[0] = '\0';
		note_dirty(w, session);
	}
	claude_settle(w, LOOK_MS);
}

static void claude_written(int rv, void *user)
{
	struct capping *k = user;
	struct claude *w = k->job.core->service.claude;

	if (w)
		w->writing--;
	if (w && rv != 0)
		not_written(w, k->noted);
	/* An earlier commit that failed meanwhile may have had lines of these sessions: then keep
	 * their cards. */
	if (w && rv == 0 && w->failed == k->failed)
		capping_start(k);
	else
		capping_free(k);
}

/* Lines of an earlier reading may still be on their way when nothing is new; the cards go at the
 * end of that commit then. */
static void note_all(struct claude *w, struct claude_reading *r)
{
	struct draft *d = draft_new(&w->core->book);
	struct capping *k = capping_new(w, r);
	bool some = false;
	int rv;

	for (size_t i = 0; d && k && i < r->n; i++) {
		struct dirty *s = &r->sessions[i];
		const char *agent;
		json_t *card;

		json_object_foreach(s->cards, agent, card) some |=
			json_is_object(card) && note_card(w, d, k, s->session, agent, card);
	}
	if (k && some) {
		w->writing++;
		rv = draft_commit(d, JOURNAL_RIDE, claude_written, k, NULL);
		if (rv != 0)
			claude_written(rv, k);
		return;
	}
	if (k && d && w->writing == 0)
		capping_start(k);
	else if (k)
		capping_free(k);
	draft_free(d);
}

/* An agent of the session began a moment ago and has no parent yet: it is read again. */
static bool has_newborn(const struct dirty *d)
{
	int64_t since = clock_wall_ms() - NEWBORN_MS;
	bool some = false;
	const char *agent;
	json_t *c;

	json_object_foreach(d->cards, agent, c) some |=
		claude_is_bare(c) && card_time(c, "updatedAt") > since;
	return some;
}

/* Sets the timer for the next reading, at the earliest time. */
static void settle_soon(struct claude *w)
{
	claude_settle(w, MAX(w->read_ms + SETTLE_MS - clock_mono_ms(), 0));
}

static void remember_watch(struct claude *w, int watch, const char *session)
{
	size_t had = w->watched_cap;

	if (watch < 0 || watch >= 1 << 24 ||
	    !ARRAY_ROOM(w->watched, w->watched_cap, (size_t)watch + 1))
		return;
	memset(w->watched + had, 0, (w->watched_cap - had) * sizeof(*w->watched));
	free(w->watched[watch]);
	w->watched[watch] = strdup(session);
}

static void reading_done(struct job *j)
{
	struct claude_reading *r = CONTAINER_OF(j, struct claude_reading, job);
	struct claude *w = r->claude;
	bool more;

	if (!w) {
		claude_reading_free(r);
		return;
	}
	w->reading = NULL;
	w->read_ms = clock_mono_ms();
	if (r->no_room && !w->told_room)
		core_log(w->core, "not all sessions of Claude Code can be watched: raise "
				  "fs.inotify.max_user_watches");
	w->told_room |= r->no_room;
	if (!r->no_folder) {
		remember_log(w, r->logged);
		for (size_t i = 0; i < r->n; i++) {
			remember_watch(w, r->sessions[i].watch, r->sessions[i].session);
			remember_watch(w, r->sessions[i].tasks_watch, r->sessions[i].session);
		}
		note_all(w, r);
		for (size_t i = 0; i < r->n; i++)
			claude_tell_session(w->core, &r->sessions[i]);
	}
	for (size_t i = 0; w->unmapped && i < r->n; i++)
		note_dirty(w, r->sessions[i].session);
	w->unmapped = false;
	for (size_t i = 0; i < r->found.n; i++)
		note_dirty(w, r->found.v[i].name);
	more = w->first || w->dirty.count > 0; /* changes came during the reading */
	w->first |= r->no_folder && r->first;
	for (size_t i = 0; i < r->n; i++)
		if (has_newborn(&r->sessions[i]))
			note_dirty(w, r->sessions[i].session);
	if (w->root_watch < 0 && w->home_watch < 0)
		claude_settle(w, LOOK_MS);
	else if (more)
		settle_soon(w);
	else if (w->dirty.count > 0)
		claude_settle(w, NEWBORN_LOOK_MS);
	claude_reading_free(r);
}

static void take_dirty(struct claude *w, struct claude_reading *r)
{
	size_t at = 0;
	char *name;

	while (r->n < DIRTY_MAX && (name = strmap_next(&w->dirty, &at)) != NULL &&
	       ARRAY_ROOM(r->sessions, r->cap, r->n + 1)) {
		struct dirty *d = &r->sessions[r->n++];

		*d = (struct dirty){.watch = -1, .tasks_watch = -1};
		snprintf(d->session, sizeof(d->session), "%s", name);
		strmap_del(&w->dirty, name);
		free(name);
		at = 0;
	}
}

/* Watches `name` in the folder of Claude Code for new entries. */
static int watch_folder(const struct claude *w, const char *name, uint32_t more)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", w->home, name);
	return inotify_add_watch(w->notify, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | more);
}

/* Watches the root before reading it: a session that comes meanwhile is read, or reported. */
static void begin_reading(void *user)
{
	struct claude *w = user;
	struct claude_reading *r = calloc(1, sizeof(*r));

	if (!r) {
		os_timer_set(w->timer, LOOK_MS);
		return;
	}
	snprintf(r->folder, sizeof(r->folder), "%.*s/" CARD_FOLDER,
		 (int)(sizeof(r->folder) - sizeof(CARD_FOLDER) - 2), w->home);
	memcpy(r->home, w->home, sizeof(r->home));
	if (w->home_watch < 0)
		w->home_watch = watch_folder(w, "", 0);
	if (w->root_watch < 0)
		w->root_watch = watch_folder(w, CARD_FOLDER, IN_DELETE_SELF | IN_MOVE_SELF);
	if (w->tasks_watch < 0)
		w->tasks_watch = watch_folder(w, "tasks", 0);
	r->claude = w;
	r->notify = w->notify;
	r->first = w->first;
	w->first = false; /* set again when all must be read again */
	r->since_ms = clock_wall_ms() - AGE_MS;
	r->job.run = reading_job;
	r->job.done = reading_done;
	take_dirty(w, r);
	w->reading = r;
	if (job_begin_short(w->core, &r->job, NULL) != 0) {
		w->reading = NULL;
		w->first |= r->first;
		claude_reading_free(r);
	}
}

/* ---- inotify */

static void claude_take_notice(struct claude *w, const struct inotify_event *e)
{
	char agent[CARD_NAME_MAX + 1];

	if (e->mask & IN_Q_OVERFLOW) {
		w->first = true; /* the queue overflowed: read all sessions again */
	} else if (e->wd == w->root_watch &&
		   (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))) {
		w->root_watch = -1;
		w->first = true;
	} else if (e->wd == w->home_watch) {
		if (e->mask & IN_IGNORED)
			w->home_watch = -1;
		w->first = w->first || (e->len > 0 && (strcmp(e->name, CARD_FOLDER) == 0 ||
						       strcmp(e->name, "tasks") == 0));
	} else if (e->wd == w->tasks_watch && (e->mask & IN_IGNORED)) {
		w->tasks_watch = -1;
	} else if ((e->wd == w->root_watch || e->wd == w->tasks_watch) && e->len > 0) {
		note_dirty(w, e->name);
	} else if (e->wd <= 0 || (size_t)e->wd >= w->watched_cap || !w->watched[e->wd]) {
		w->unmapped |= w->reading != NULL;
	} else {
		if (e->len > 0 && card_stem(e->name, agent))
			note_dirty(w, w->watched[e->wd]);
		if (e->mask & IN_IGNORED) {
			free(w->watched[e->wd]);
			w->watched[e->wd] = NULL;
		}
	}
}

static void notified(int events, void *user)
{
	char bytes[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct claude *w = user;
	ssize_t n;

	while ((n = read(w->notify, bytes, sizeof(bytes))) > 0)
		for (char *at = bytes; at < bytes + n;) {
			const struct inotify_event *e = (const struct inotify_event *)at;

			claude_take_notice(w, e);
			at += sizeof(*e) + e->len;
		}
	if (w->dirty.count > 0 || w->first)
		settle_soon(w); /* without agent-activity any new entry beside it gets here */
}

/* ---- life */

int claude_open(struct core *c, struct ava_error *err)
{
	struct claude *w = calloc(1, sizeof(*w));
	struct ava_error why = {0};

	if (!w)
		return err_set(err, AVA_ENOMEM, "out of memory");
	w->core = c;
	w->notify = w->home_watch = w->root_watch = w->tasks_watch = -1;
	w->first = true;
	strmap_init(&w->known);
	strmap_init(&w->dirty);
	c->service.claude = w;
	if (card_home(w->home, sizeof(w->home) - sizeof(CARD_FOLDER) - 1, &why) != 0) {
		core_log(c, "subagents of Claude Code are not looked at: %s", why.text);
		return 0;
	}
	w->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->notify < 0) {
		core_log(c, "subagents of Claude Code are not watched: %s", strerror(errno));
		return 0;
	}
	w->poll = os_poll_new(c->loop, w->notify, notified, w);
	w->timer = os_timer_new(c->loop, begin_reading, w);
	if (!w->poll || !w->timer)
		return err_set(err, AVA_ENOMEM, "out of memory");
	os_poll_set(w->poll, OS_READ);
	os_timer_set(w->timer, 0);
	return 0;
}

static void free_values(struct strmap *m)
{
	size_t at = 0;
	void *value;

	while ((value = strmap_next(m, &at)) != NULL)
		free(value);
	strmap_fini(m);
}

void claude_close(struct core *c)
{
	struct claude *w = c->service.claude;

	if (!w)
		return;
	c->service.claude = NULL;
	if (w->reading)
		w->reading->claude = NULL;
	os_poll_free(w->poll);
	os_timer_free(w->timer);
	if (w->notify >= 0)
		close(w->notify);
	for (size_t i = 0; i < w->watched_cap; i++)
		free(w->watched[i]);
	free(w->watched);
	free_values(&w->known);
	free_values(&w->dirty);
	free(w);
}

/* ---- what is asked, on a thread of the pool */

struct claude_ask {
	char home[PATH_MAX];
	int64_t stale_ms;
	struct settings settings;
};

static int dump(struct verb_work *work, const json_t *v, struct ava_error *err)
{
	int rv = json_dump(work->answer.w.out, v);

	return rv == 0 ? 0 : err_set(err, rv, "the answer is too large, or memory is short");
}

static void judge_cards(json_t *cards, int64_t stale_ms)
{
	const char *name;
	json_t *card;

	json_object_foreach(cards, name, card) if (json_is_object(card))
		claude_judge(card, stale_ms);
	claude_mark_ghosts(cards);
}

static int agents_job(struct verb_work *work, struct ava_error *err)
{
	const struct claude_ask *q = work->own;
	char folder[PATH_MAX + 32];
	json_t *cards, *list = json_array(), *card;
	struct claude_teams teams;
	const char *name, *leader;
	int rv;

	if (!card_is_name(work->id))
		return err_set(err, AVA_ENOENT, "there is no session of that name");
	claude_teams_read(&teams, q->home);
	leader = claude_teams_find(&teams, work->id)->leader;
	snprintf(folder, sizeof(folder), "%s/" CARD_FOLDER, q->home);
	cards = claude_cards(folder, *leader ? leader : work->id);
	free(teams.v);
	judge_cards(cards, q->stale_ms);
	json_object_foreach(cards, name, card) if (json_is_object(card))
		json_array_append(list, card);
	rv = dump(work, list, err);
	json_decref(list);
	json_decref(cards);
	return rv;
}

/* The task files of Claude Code, one a task. */
static int tasks_job(struct verb_work *work, struct ava_error *err)
{
	const struct claude_ask *q = work->own;
	char path[PATH_MAX + CARD_NAME_MAX + 16], folder[CARD_NAME_MAX + 1];
	struct claude_teams teams;
	json_t *cards, *list;
	int rv;

	if (!card_is_name(work->id))
		return err_set(err, AVA_ENOENT, "there is no session of that name");
	claude_teams_read(&teams, q->home);
	snprintf(path, sizeof(path), "%s/" CARD_FOLDER, q->home);
	cards = claude_cards(path, work->id);
	claude_tasks_folder(claude_teams_find(&teams, work->id), cards, work->id, folder);
	free(teams.v);
	snprintf(path, sizeof(path), "%s/tasks/%s", q->home, folder);
	list = claude_tasks(path);
	rv = dump(work, list, err);
	json_decref(list);
	json_decref(cards);
	return rv;
}

/* A session with cards, or with tasks alone: a team's tasks are its leader's. */
static void add_session(json_t *list, const struct claude_ask *q, const struct claude_teams *teams,
			const struct claude_aged *session)
{
	const struct claude_team *team = claude_teams_find(teams, session->name);
	bool leads = session->tasks && *team->leader;
	char iso[CLOCK_ISO_LEN + 1], path[PATH_MAX + CARD_NAME_MAX + 16];
	json_int_t active = 0, idle = 0, stopped = 0;
	const char *name, *cwd = "", *newest = "";
	json_t *cards, *card;

	snprintf(path, sizeof(path), "%s/" CARD_FOLDER, q->home);
	cards = claude_cards(path, leads ? team->leader : session->name);
	snprintf(path, sizeof(path), "%s/tasks/%s", q->home, session->name);
	if (session->tasks ? json_object_size(cards) > 0 || !claude_has_cards(AT_FDCWD, path)
			   : json_object_size(cards) == 0) {
		json_decref(cards);
		return;
	}
	judge_cards(cards, q->stale_ms);
	json_object_foreach(cards, name, card)
	{
		const char *updated = json_str(card, "updatedAt");
		const char *status = json_str(card, "status");

		if (json_object_get(card, "ghost"))
			continue;
		active += strcmp(status, "active") == 0;
		idle += strcmp(status, "idle") == 0;
		stopped += strcmp(status, "stopped") == 0;
		if (strcmp(updated, newest) > 0) {
			newest = updated;
			cwd = json_str(card, "cwd");
		}
	}
	clock_iso(session->ms, iso);
	json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s,s:{s:I,s:I,s:I}}", "sessionId",
					      session->name, "team", team->name, "cwd", cwd,
					      "updatedAt", *newest ? newest : iso, "agents",
					      "active", active, "idle", idle, "stopped", stopped));
	json_decref(cards);
}

static int sessions_job(struct verb_work *work, struct ava_error *err)
{
	const struct claude_ask *q = work->own;
	struct claude_list found = {0};
	struct claude_teams teams;
	json_t *list = json_array(), *all;
	int rv;

	claude_teams_read(&teams, q->home);
	claude_sessions(&found, q->home, CARD_FOLDER, 0);
	claude_sessions(&found, q->home, "tasks", 0);
	if (found.n > 0)
		qsort(found.v, found.n, sizeof(*found.v), claude_oldest_first);
	for (size_t i = found.n; i-- > 0 && json_array_size(list) < LISTED_MAX;)
		add_session(list, q, &teams, &found.v[i]);
	free(teams.v);
	all = json_pack("{s:{s:I,s:I,s:I,s:I},s:o}", "settings", "AGENT_FILE_CAP",
			(json_int_t)q->settings.claude_file_cap, "AGENT_LOG_MAX",
			(json_int_t)q->settings.claude_log_max, "AGENT_STALE_MS",
			(json_int_t)q->stale_ms, "AGENT_COOLDOWN_MS",
			(json_int_t)q->settings.claude_cooldown_ms, "sessions", list);
	rv = dump(work, all, err);
	json_decref(all);
	free(found.v);
	return rv;
}

static void claude_ask(struct verb_call *v, int (*work)(struct verb_work *w, struct ava_error *err))
{
	const struct claude *w = v->core->service.claude;
	struct ava_error err = {0};
	struct claude_ask q;

	if (!verb_args(v, NULL))
		return;
	if (!w || !w->home[0]) {
		verb_fail(v->reply,
			  err_set(&err, AVA_EUNSUPPORTED,
				  "this runtime does not look at Claude Code"),
			  &err);
		return;
	}
	memcpy(q.home, w->home, sizeof(q.home));
	q.settings = v->core->settings;
	q.stale_ms = q.settings.claude_stale_ms;
	verb_work(v, &(struct verb_work){.work = work, .own = &q}, sizeof(q), true);
}

static void verb_agents(struct verb_call *v)
{
	claude_ask(v, agents_job);
}

static void verb_tasks(struct verb_call *v)
{
	claude_ask(v, tasks_job);
}

static void verb_claude_sessions(struct verb_call *v)
{
	claude_ask(v, sessions_job);
}

const struct verb verbs_about_claude[] = {
	{"GET", "/api/sessions/{id}/agents", verb_agents, NULL, false},
	{"GET", "/api/sessions/{id}/tasks", verb_tasks, NULL, false},
	{"GET", "/api/v1/claude/sessions", verb_claude_sessions, NULL, false},
	{NULL},
};
