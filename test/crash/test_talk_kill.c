/* A conversation killed at every call that changes the disk: a request, its
 * proposal, the yes, the subagent, its result told, shown and acknowledged, and a
 * command called for each notice. A child plays the person until its k-th such call,
 * where it is gone without a word; a second child takes up what it finds, says again
 * what it said, and plays on. Then
 *
 * - there is one run, with one start and one end in the session, each thing was said
 *   once, the result was told once, and the chain of entries is whole;
 * - every notice that the logs have was shown, and was taken by the command; what was
 *   shown or taken twice is what was not acknowledged when the kill came, and has the
 *   same reference; the command was told that it is again;
 * - a third child, that does nothing, is given nothing any more.
 *
 * The kill is also made between showing and acknowledging, and between taking and
 * ending, without any call of the disk there: the person and the command write their
 * own files. */
#include "killdisk.h"

#include "ava/core.h"
#include "ava/delivery.h"
#include "ava/ops.h"
#include "ava/proposal.h"
#include "ava/sessions.h"
#include "ava/state.h"
#include "ava/talk.h"
#include "base/clock.h"
#include "base/util.h"
#include "os/loop.h"
#include "provider/dialect.h"
#include "provider/messages.h"
#include "session_lines.h"

#define PATIENCE_MS 120000
#define ASK         "Find where parse_header is defined"

/* ---- the person */

struct person {
	struct os_loop *loop;
	struct core *core;
	const char *dir;
	char session[64];
	bool busy, said_yes, asked, offered, told;
	bool sent_ask, sent_yes; /* in this life */
	unsigned sessions, unseen;
	int waiting; /* answers that are due */
	uint64_t lsn;
};

static const char *text_of(const json_t *entry, const char **role)
{
	const json_t *m = json_object_get(entry, "message"), *v;
	size_t i;

	*role = json_get_str(m, "role");
	json_array_foreach(json_object_get(m, "content"), i, v)
	{
		if (json_get_str(v, "text"))
			return json_get_str(v, "text");
	}
	return "";
}

static void see_entry(const char *line, size_t len, void *user)
{
	struct person *p = user;
	json_t *o = json_parse(line, len, NULL);
	const char *role, *text = text_of(o, &role);

	if (role && strcmp(role, "user") == 0) {
		p->asked = p->asked || strcmp(text, ASK) == 0;
		p->said_yes = p->said_yes || strcmp(text, "yes") == 0;
	} else if (role && strcmp(role, "assistant") == 0) {
		p->offered = p->offered || strstr(text, "in the background.") != NULL;
		p->told = p->told || strstr(text, "From S-") != NULL;
	}
	json_decref(o);
}

/* What was not acknowledged; on the screen, it stays there whatever becomes of us. */
static void see_unseen(struct person *p, bool shown)
{
	char path[300];
	struct buf b;
	struct jw w;
	json_t *o;
	FILE *f;

	buf_init(&b, 64u << 20);
	jw_init(&w, &b);
	o = ops_unseen(p->core, p->session, "terminal", &w, NULL) == 0
		    ? json_parse(b.data, b.len, NULL)
		    : NULL;
	p->unseen = (unsigned)json_array_size(json_object_get(o, "items"));
	p->lsn = (uint64_t)json_get_int(o, "lsn", 0);
	snprintf(path, sizeof(path), "%s/shown", p->dir);
	f = shown ? fopen(path, "ae") : NULL;
	for (unsigned i = 0; shown && i < p->unseen; i++)
		if (!f ||
		    json_dumpf(json_array_get(json_object_get(o, "items"), i), f, JSON_COMPACT) !=
			    0 ||
		    fputc('\n', f) == EOF)
			_exit(5);
	if (f && fclose(f) != 0)
		_exit(5);
	json_decref(o);
	buf_fini(&b);
}

static void look(struct person *p)
{
	struct op_session s;

	p->sessions = p->core->nsessions;
	p->unseen = 0;
	p->busy = p->asked = p->offered = p->said_yes = p->told = false;
	if (!p->sessions)
		return;
	snprintf(p->session, sizeof(p->session), "%s",
		 LIST_FIRST(&p->core->sessions, struct session, node)->id);
	ops_session(p->core, p->session, &s, NULL);
	p->busy = s.busy || s.waiting > 0 || s.live_runs > 0;
	session_lines(p->core, p->session, see_entry, p);
	see_unseen(p, false);
}

static void acked(int rv, unsigned n, unsigned left, const struct ava_error *err, void *user)
{
	struct person *p = user;

	kill_must(rv, err, "not acknowledged");
	p->waiting--;
}

static void said(int rv, const char *entry, const struct ava_error *err, void *user)
{
	struct person *p = user;

	kill_must(rv, err, "not said");
	p->waiting--;
}

static void newest(struct proposal *q, void *user)
{
	const char **id = user;

	*id = *id ? *id : q->id;
}

/* Whoever heard no answer says it again, with the id of before. The quote is what was shown last.
 */
static void say(struct person *p, const char *text)
{
	struct op_say s = {.text = text, .user_id = "ben", .request_id = text};

	ops_proposals(p->core, false, newest, &s.shown);
	p->waiting++;
	ops_say(p->core, p->session, &s, said, p);
}

static void begin(struct person *p, const struct op_session_new *n)
{
	struct ava_error err = {0};
	struct op_session s;

	kill_must(ops_session_new(p->core, n, &s, &err), &err, "no session");
	snprintf(p->session, sizeof(p->session), "%s", s.id);
}

static void act(struct person *p, const char *src)
{
	struct op_session_new n = {.cwd = src, .user_id = "ben"};

	if (p->sessions == 0)
		begin(p, &n);
	if (p->unseen > 0) {
		see_unseen(p, true);
		p->waiting++;
		ops_ack(p->core, p->session, "terminal", p->lsn, acked, p);
	} else if (!p->sent_ask) {
		p->sent_ask = true;
		say(p, ASK);
	} else if (p->offered && !p->sent_yes && !p->busy) {
		p->sent_yes = true;
		say(p, "yes");
	}
}

static bool finished(const struct person *p)
{
	return p->told && !p->busy && p->unseen == 0 && p->waiting == 0 && delivery_idle(p->core);
}

static struct core *open_core(struct os_loop *loop, const char *dir, struct settings *settings)
{
	static char root[300], notify[1000];
	struct core_options o = {
		.loop = loop, .root = root, .settings = settings, .model = "offline"};
	struct ava_error err = {0};
	struct core *core;
	int n;

	snprintf(root, sizeof(root), "%s/data", dir);
	n = snprintf(notify, sizeof(notify), "/bin/sh%c-c%ccat >>\"$0\"%c%s/took%c", 0, 0, 0, dir,
		     0);
	notify[n] = 0;
	o.notify = notify;
	settings_defaults(settings);
	settings->disk_free_min_mb = 0;
	settings->disk_ballast_mb = 0;
	settings->notify_retry_s = 0;
	settings->notify_attempts = 100;
	settings->notify_timeout_s = 120;
	kill_must(core_open(&core, &o, &err), &err, "core_open");
	return core;
}

static int play(const char *dir, long k)
{
	struct settings settings;
	struct person p = {.dir = dir, .loop = os_loop_new(NULL)};
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	char src[300];

	snprintf(src, sizeof(src), "%s/src", dir);
	if (k > 0)
		kill_arm(k);
	p.core = open_core(p.loop, dir, &settings);
	for (look(&p); !finished(&p); look(&p)) {
		if (clock_mono_ms() > until) {
			fprintf(stderr,
				"stuck: asked %d told %d busy %d unseen %u waiting %d idle %d\n",
				p.asked, p.told, p.busy, p.unseen, p.waiting,
				delivery_idle(p.core));
			return 4;
		}
		if (p.waiting == 0)
			act(&p, src);
		os_loop_step(p.loop, 5);
	}
	core_close(p.core);
	os_loop_free(p.loop);
	return 0;
}

/* Nothing is left to deliver. */
static int only_look(const char *dir, long k)
{
	struct settings settings;
	struct person p = {.dir = dir, .loop = os_loop_new(NULL)};

	p.core = open_core(p.loop, dir, &settings);
	for (int i = 0; i < 10; i++)
		os_loop_step(p.loop, 0);
	look(&p);
	if (p.unseen > 0 || !delivery_idle(p.core))
		return 6;
	core_close(p.core);
	os_loop_free(p.loop);
	return 0;
}

static bool anything_written(const char *dir)
{
	struct stat st;
	char path[400];

	snprintf(path, sizeof(path), "%s/data/sessions", dir);
	return stat(path, &st) == 0;
}

/* ---- what must be there afterwards */

struct found {
	char last[48], folder[300], name[300];
	unsigned files, entries, asks, yeses, starts, ends, told;
	long k;
};

static void find_file(const char *name, void *user)
{
	struct found *f = user;

	if (strstr(name, ".messages.jsonl") || !strstr(name, ".jsonl"))
		return;
	f->files++;
	snprintf(f->name, sizeof(f->name), "%s", name);
}

static void find_folder(const char *name, void *user)
{
	struct found *f = user;

	snprintf(f->folder, sizeof(f->folder), "%s", name);
}

static void check_entry(const json_t *o, void *user)
{
	struct found *f = user;
	const char *type = json_get_str(o, "type"), *id = json_get_str(o, "id");
	const char *parent = json_get_str(o, "parentId"), *role, *text = text_of(o, &role);
	const char *event = json_get_str(o, "eventType");

	assert_non_null(type);
	assert_non_null(id);
	if (strcmp(type, "session") == 0) {
		assert_int_equal(f->entries, 0);
		return;
	}
	f->entries++;
	if (f->last[0] == 0)
		assert_null(parent);
	else if (!parent || strcmp(parent, f->last) != 0)
		fail_msg("k = %ld: entry %s has parent %s, not %s", f->k, id,
			 parent ? parent : "null", f->last);
	snprintf(f->last, sizeof(f->last), "%s", id);
	if (role && strcmp(role, "user") == 0) {
		f->asks += strcmp(text, ASK) == 0;
		f->yeses += strcmp(text, "yes") == 0;
	} else if (role && strcmp(role, "assistant") == 0) {
		f->told += strstr(text, "From S-") != NULL;
	}
	f->starts += event && strcmp(event, "subagent:start") == 0;
	f->ends += event && strcmp(event, "subagent:start") != 0;
}

static void check_messages(const char *dir, const char *path, long k)
{
	char root[700];
	int root_fd;
	struct messages_info info;
	struct ava_error err = {0};
	struct buf body;
	size_t len;
	char *data = unit_read(path, &len);

	buf_init(&body, 64u << 20);
	snprintf(root, sizeof(root), "%s/data", dir);
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (messages_request(&body, data, len, root_fd, &info, &err) != 0)
		fail_msg("k = %ld: %s", k, err.text);
	close(root_fd);
	buf_adds(&body, ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}");
	if (dialect_offline.check(body.data + info.head_len, body.len - info.head_len, &err) != 0)
		fail_msg("k = %ld: %s", k, err.text);
	buf_fini(&body);
	free(data);
}

static unsigned occurrences(const char *dir, const char *file, const char *what)
{
	char path[700];
	unsigned n = 0;
	size_t len;
	char *data;

	snprintf(path, sizeof(path), "%s/data/%s", dir, file);
	data = unit_read(path, &len);
	for (const char *at = data; (at = strstr(at, what)) != NULL; at++)
		n++;
	free(data);
	return n;
}

/* Ava's own calls: each intent in the daily log has its end. */
struct days {
	unsigned starts, ends;
};

static void see_day(const json_t *o, void *user)
{
	struct days *d = user;
	const char *type = json_get_str(o, "eventType");

	if (strcmp(json_get_str(o, "agentId"), "ava") != 0)
		return;
	d->starts += strcmp(type, "InferStart") == 0;
	d->ends += strcmp(type, "InferEnd") == 0;
}

static void check_days(const char *dir, long k)
{
	struct days d = {0};

	kill_each_day(dir, see_day, &d);
	if (d.starts < 4 || d.starts != d.ends)
		fail_msg("k = %ld: %u calls of Ava's began, %u ended", k, d.starts, d.ends);
}

static void check_said(const char *dir, long k)
{
	char path[1200];
	struct found f = {.k = k};

	snprintf(path, sizeof(path), "%s/data/sessions", dir);
	assert_int_equal(sys->list(AT_FDCWD, path, find_folder, &f), 0);
	snprintf(path, sizeof(path), "%s/data/sessions/%s", dir, f.folder);
	assert_int_equal(sys->list(AT_FDCWD, path, find_file, &f), 0);
	assert_int_equal(f.files, 1);
	snprintf(path, sizeof(path), "%s/data/sessions/%s/%s", dir, f.folder, f.name);
	kill_each_line(path, check_entry, &f);
	if (f.asks != 1 || f.yeses != 1 || f.starts != 1 || f.ends != 1 || f.told != 1)
		fail_msg("k = %ld: asked %u, yes %u, starts %u, ends %u, told %u", k, f.asks,
			 f.yeses, f.starts, f.ends, f.told);
	assert_int_equal(occurrences(dir, "catalog.jsonl", "\"row\":\"spawn\""), 1);
	assert_int_equal(occurrences(dir, "catalog.jsonl", "\"row\":\"end\""), 1);
	snprintf(path, sizeof(path), "%s/data/sessions/%s/%.*s.messages.jsonl", dir, f.folder,
		 (int)(strlen(f.name) - 6), f.name);
	check_messages(dir, path, k);
	snprintf(path, sizeof(path), "sessions/%s/%.*s.messages.jsonl", f.folder,
		 (int)(strlen(f.name) - 6), f.name);
	if (occurrences(dir, path, "[ava] The person confirmed") != 1)
		fail_msg("k = %ld: that it was confirmed was told %u times", k,
			 occurrences(dir, path, "[ava] The person confirmed"));
	check_days(dir, k);
}

/* ---- what was told */

#define LSNS_MAX 200

struct lsns {
	uint64_t lsn[LSNS_MAX];
	unsigned times[LSNS_MAX], firsts[LSNS_MAX], n, twice;
	bool again_unsaid; /* two that say they are the first */
};

static unsigned times_of(const struct lsns *l, uint64_t lsn)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->lsn[i] == lsn)
			return l->times[i];
	return 0;
}

static void lsns_add(struct lsns *l, uint64_t lsn, int64_t attempt)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->lsn[i] != lsn)
			continue;
		l->times[i]++;
		l->twice++;
		l->firsts[i] += attempt == 1;
		l->again_unsaid = l->again_unsaid || l->firsts[i] > 1;
		return;
	}
	assert_true(l->n < LSNS_MAX);
	l->lsn[l->n] = lsn;
	l->firsts[l->n] = attempt == 1;
	l->times[l->n++] = 1;
}

/* Lines that a kill cut have no end and are none. */
static void read_lines(const char *dir, const char *name, struct lsns *l)
{
	char path[700], *data;
	const char *line;
	size_t len, at = 0, n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (access(path, R_OK) != 0)
		return;
	data = unit_read(path, &len);
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o = json_parse(line, n, NULL);

		if (o)
			lsns_add(l, (uint64_t)json_get_int(o, "lsn", 0),
				 json_get_int(o, "attempt", 2));
		json_decref(o);
	}
	free(data);
}

static void see_told(const json_t *o, void *user)
{
	const char *type = json_get_str(o, "eventType");

	if (strcmp(type, "AssistantMessage") == 0 || strcmp(type, "SubagentComplete") == 0)
		lsns_add(user, (uint64_t)json_get_int(o, "lsn", 0), 1);
}

static void check_told(const char *dir, long k, unsigned *shown_twice, unsigned *taken_twice)
{
	struct lsns *l = calloc(3, sizeof(*l)), *notices = &l[0], *shown = &l[1], *took = &l[2];

	kill_each_day(dir, see_told, notices);
	read_lines(dir, "shown", shown);
	read_lines(dir, "took", took);
	assert_true(notices->n >= 3);
	for (unsigned i = 0; i < notices->n; i++) {
		uint64_t lsn = notices->lsn[i];
		unsigned s = times_of(shown, lsn), t = times_of(took, lsn);

		if (s < 1 || s > 2 || t < 1 || t > 2)
			fail_msg("k = %ld: notice %llu was shown %u times, taken %u times", k,
				 (unsigned long long)lsn, s, t);
	}
	/* Removing the older ledger is nothing that recovery would miss. */
	kill_nothing_lost(dir, k);
	/* One command is at work at a time, and it is told. */
	if (took->twice > 1 || took->again_unsaid)
		fail_msg("k = %ld: %u were taken twice%s", k, took->twice,
			 took->again_unsaid ? ", without a word" : "");
	if (k == 0 && (shown->twice || took->twice))
		fail_msg("told twice without a kill");
	*shown_twice += shown->twice;
	*taken_twice += took->twice;
	free(l);
}

TEST(untouched)
{
	const char *dir = kill_fresh();
	unsigned shown = 0, taken = 0;

	assert_int_equal(kill_child(play, dir, 0), 0);
	check_said(dir, 0);
	check_told(dir, 0, &shown, &taken);
	assert_int_equal(kill_child(only_look, dir, 0), 0);
	unit_rmdir(dir);
}

TEST(killed)
{
	long by = kill_step("AVA_TALK_KILL_STEP"), k;
	unsigned shown = 0, taken = 0;
	int rv = -1;

	for (k = 1; rv == -1; k += by) {
		const char *dir = kill_fresh();

		rv = kill_child(play, dir, k);
		if (rv == -1 && !anything_written(dir)) {
			unit_rmdir(dir);
			continue; /* nothing of the conversation was there yet */
		}
		if (rv == -1 && kill_child(play, dir, 0) != 0)
			fail_msg("k = %ld: what was left could not be gone on from", k);
		check_said(dir, k);
		check_told(dir, k, &shown, &taken);
		if (kill_child(only_look, dir, 0) != 0)
			fail_msg("k = %ld: something is still told", k);
		unit_rmdir(dir);
	}
	assert_int_equal(rv, 0);
	print_message("killed at each of %ld calls; shown twice %u, taken twice %u\n", k - by,
		      shown, taken);
	assert_true(k > 60 / by);
}

UNIT_GROUP(.first = kill_in_memory);
