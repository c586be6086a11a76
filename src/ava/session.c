/* The conversations that exist, and the verbs about them. A start reads only names: the id stands
 * in each file's name. A conversation comes into memory when something is said in it, or when a
 * subagent of it ends. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/prompt.h"
#include "ava/delivery.h"
#include "ava/proposal.h"
#include "ava/session_file.h"
#include "ava/talk.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/words.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "subagent/doing.h"
#include "subagent/run.h"

#define SESSIONS_MAX 100000
#define SAY_MAX      (1u << 20)
#define RESTING_MAX  64

/* ---- conversations in memory: of those with nothing to do the last used stay. Words in another
 * one load it from its files, as after a stop. A conversation stays while it has a turn, an input,
 * a subagent, or something on its way to the disk. */

static bool is_at_work(const struct talk *t)
{
	return t->busy || t->answering || t->pump.queued || !list_empty(&t->inputs) ||
	       !list_empty(&t->saying) || t->run.busy != 0 || t->run.wake.queued ||
	       t->run.end.abandoned || !outbox_empty(&t->run.rec.outbox);
}

static bool at_rest(const struct talk *t)
{
	return !is_at_work(t) && list_empty(&t->watches) &&
	       (!t->ask || t->ask->until_ms <= clock_wall_ms());
}

void session_leave(struct talk *t)
{
	struct session *s = t->session;
	char *model = strdup(t->run.spec->model->id);

	/* The list shows the model, and a conversation without words begins with it. */
	if (model) {
		free(s->model);
		s->model = model;
	}
	s->cost_microusd += t->run.agent.at.totals.cost_microusd;
	s->tokens += t->run.agent.at.totals.input + t->run.agent.at.totals.output;
	talk_free(t);
}

static void sessions_rest(struct os_task *task)
{
	struct core *c = CONTAINER_OF(task, struct core, rest);
	unsigned n = 0;

	/* The last used conversation is the last of the list. */
	LIST_EACH (&c->talks, node, tmp)
		n += at_rest(LIST_ENTRY(node, struct talk, node));
	LIST_EACH (&c->talks, node, tmp) {
		struct talk *t = LIST_ENTRY(node, struct talk, node);

		if (n <= c->resting_max)
			return;
		if (at_rest(t)) {
			session_leave(t);
			n--;
		}
	}
}

void session_rest(struct core *c)
{
	delivery_talked(c);
	os_defer(c->loop, &c->rest);
}

/* ---- the list */

static void session_free(struct session *s)
{
	if (s->talk)
		talk_free(s->talk);
	if (strmap_get(&s->core->session_by_id, s->id) == s) {
		strmap_del(&s->core->session_by_id, s->id);
		s->core->nsessions--;
	}
	list_del(&s->node);
	assert(list_empty(&s->told.notices)); /* it has no words yet, or delivery is closed */
	free(s->path);
	free(s->cwd);
	free(s->user);
	free(s->origin);
	free(s->model);
	free(s->title);
	free(s);
}

static int session_enlist(struct session *s)
{
	struct list *at = &s->core->sessions;

	if (strmap_put(&s->core->session_by_id, s->id, s) != 0)
		return AVA_ENOMEM;
	s->core->nsessions++;
	LIST_EACH (at, n, tmp) {
		if (LIST_ENTRY(n, struct session, node)->created_ms <= s->created_ms) {
			at = n;
			break;
		}
	}
	list_insert(at, &s->node);
	return 0;
}

static struct session *session_new(struct core *c, const char *id, size_t len)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->core = c;
	list_init(&s->node);
	list_init(&s->told.notices);
	snprintf(s->id, sizeof(s->id), "%.*s", (int)len, id);
	return s;
}

/* Milliseconds of "2026-11-21T08-00-00-123Z" at the start of a file's name; 0: no time. */
static int64_t name_time(const char *name)
{
	char iso[CLOCK_ISO_LEN + 1];
	int64_t ms;

	if (strlen(name) < CLOCK_ISO_LEN)
		return 0;
	memcpy(iso, name, CLOCK_ISO_LEN);
	iso[CLOCK_ISO_LEN] = 0;
	iso[13] = iso[16] = ':';
	iso[19] = '.';
	ms = clock_parse_iso(iso, CLOCK_ISO_LEN);
	return MAX(ms, 0);
}

struct session_scan {
	struct core *core;
	char folder[300];
	bool no_memory;
};

static void found_file(const char *name, void *user)
{
	struct session_scan *sc = user;
	size_t len;
	const char *id = session_path_id(name, &len);
	struct session *s;
	char path[600];
	struct stat st;

	if (!id || len >= sizeof(s->id) || strlen(name) > 200)
		return;
	snprintf(path, sizeof(path), "%s/%s", sc->folder, name);
	if (sys->fstatat(sc->core->root_fd, path, &st, 0) != 0 || !S_ISREG(st.st_mode))
		return;
	s = session_new(sc->core, id, len);
	if (!s || strmap_get(&sc->core->session_by_id, s->id)) {
		sc->no_memory = sc->no_memory || !s;
		free(s);
		return;
	}
	s->there = true;
	s->created_ms = name_time(name);
	s->updated_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	s->path = strdup(path);
	if (!s->path || session_enlist(s) != 0) {
		sc->no_memory = true;
		session_free(s);
	}
}

static void found_folder(const char *name, void *user)
{
	struct session_scan *sc = user;

	if (strncmp(name, "--", 2) != 0 || strlen(name) > 200)
		return;
	snprintf(sc->folder, sizeof(sc->folder), "sessions/%s", name);
	(void)sys->list(sc->core->root_fd, sc->folder, found_file, sc);
}

static char *file_of(const char *session_id, void *user)
{
	struct core *c = user;
	struct session *s = strmap_get(&c->session_by_id, session_id);

	return s && s->path ? strdup(s->path) : NULL;
}

static unsigned list_count(const struct list *l)
{
	unsigned n = 0;

	for (const struct list *at = l->next; at != l; at = at->next)
		n++;
	return n;
}

static void session_show(struct session *s, struct op_session *out)
{
	struct talk *t = s->talk;

	session_file_show(s);
	*out = (struct op_session){
		.id = s->id,
		.cwd = s->cwd ? s->cwd : "",
		.user_id = s->user ? s->user : "",
		.origin = s->origin ? s->origin : "",
		.model = t          ? t->run.spec->model->id
			 : s->model ? s->model
				    : "",
		.context = t ? t->run.spec->model->context : 0,
		.title = s->title ? s->title : "",
		.created_ms = s->created_ms,
		.updated_ms = s->updated_ms,
		.cost_microusd = s->cost_microusd,
		.tokens = s->tokens,
		.doing = "",
	};
	if (!t)
		return;
	out->busy = t->busy || t->answering;
	if (t->busy) {
		doing_look(&t->run);
		out->doing = t->run.activity;
		out->trouble = t->run.call.trouble;
	}
	out->context_used = t->run.agent.at.measured_input;
	out->live_runs = list_count(&t->watches);
	out->waiting = list_count(&t->inputs);
	out->cost_microusd += t->run.agent.at.totals.cost_microusd;
	out->tokens += t->run.agent.at.totals.input + t->run.agent.at.totals.output;
}

struct session *session_find(struct core *c, const char *id, struct ava_error *err)
{
	struct session *s = strmap_get(&c->session_by_id, id);

	if (!s)
		err_set(err, AVA_ENOENT, "there is no session %.60s (ava sessions lists them)", id);
	return s;
}

int ops_session(struct core *c, const char *session, struct op_session *out, struct ava_error *err)
{
	struct session *s = session_find(c, session, err);

	if (s)
		session_show(s, out);
	return s ? 0 : AVA_ENOENT;
}

/* ---- a new one */

static int session_fill(struct session *s, const struct op_session_new *n, struct ava_error *err)
{
	char path[LOGBOOK_PATH];

	s->created_ms = s->updated_ms = clock_wall_ms();
	s->cwd = strdup(n->cwd ? n->cwd : "");
	s->user = strdup(n->user_id ? n->user_id : "");
	s->origin = strdup(n->origin ? n->origin : "");
	s->model = strdup(n->model ? n->model : "");
	s->title = strdup("");
	if (!s->cwd || !s->user || !s->origin || !s->model || !s->title)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (spec_check_cwd(s->cwd, err) != 0)
		return err->code;
	if (session_path(path, sizeof(path), s->cwd, s->created_ms, s->id) != 0)
		return err_set(err, AVA_ETOOBIG, "the name of the session would be too long");
	s->path = strdup(path);
	if (!s->path || session_enlist(s) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return session_load(s, err);
}

/* Takes the id that a client wants; a conversation of that id without words is dropped. */
static int session_claim(struct core *c, const char *want, struct session_id *id,
			 struct ava_error *err)
{
	struct session *was = strmap_get(&c->session_by_id, want);

	if (strlen(want) != strlen(id->text) || strspn(want, "0123456789abcdef-") != strlen(want))
		return err_set(err, AVA_EINVAL, "session_id must be a UUID in lower case");
	if (was && (was->there || was->told.acking > 0 || !list_empty(&was->told.notices)))
		return err_set(err, AVA_EEXIST, "session %s has begun already", want);
	if (was && was->talk && is_at_work(was->talk))
		return err_set(err, AVA_EBUSY, "Ava is at work in session %s: ask again", want);
	if (was)
		session_free(was);
	memcpy(id->text, want, strlen(want));
	return 0;
}

int ops_session_new(struct core *c, const struct op_session_new *n, struct op_session *out,
		    struct ava_error *err)
{
	struct session_id id = id_session();
	struct session *s;
	int rv = c->nsessions < SESSIONS_MAX
			 ? core_ready(c, err)
			 : err_set(err, AVA_EBUSY, "there are %d sessions already: remove some",
				   SESSIONS_MAX);

	if (rv == 0 && n->id)
		rv = session_claim(c, n->id, &id, err);
	if (rv != 0)
		return rv;
	s = session_new(c, id.text, strlen(id.text));
	if (!s)
		return err_set(err, AVA_ENOMEM, "out of memory");
	rv = session_fill(s, n, err);
	if (rv != 0) {
		session_free(s);
		return rv;
	}
	session_show(s, out);
	return 0;
}

/* ---- saying something */

static void session_said(int rv, void *user)
{
	struct input *in = user;
	struct talk *t = in->talk;

	t->session->updated_ms = clock_wall_ms();
	list_del(&in->node);
	talk_input(t, in);
	if (in->request)
		(void)talk_remember(t->session, in->request, in->said_ms, in->id);
	while (!list_empty(&in->waits)) {
		struct say_wait *w = LIST_FIRST(&in->waits, struct say_wait, node);

		list_del(&w->node);
		w->done(0, in->id, NULL, w->user);
		free(w);
	}
}

static int add_wait(struct input *in, op_said_fn done, void *user)
{
	struct say_wait *w = malloc(sizeof(*w));

	if (!w)
		return AVA_ENOMEM;
	w->done = done;
	w->user = user;
	list_add(&in->waits, &w->node);
	return 0;
}

/* ---- repeated requests */

/* Request ids of conversations share a table with those of runs, under a longer name. */
static char *request_key(const struct session *s, const char *request)
{
	char *key = NULL;

	return asprintf(&key, "say %s %s", s->id, request) < 0 ? NULL : key;
}

int talk_remember(struct session *s, const char *request, int64_t at_ms, const char *entry)
{
	char *key = request_key(s, request);
	int rv = key ? core_remember(s->core, key, at_ms, entry, "", "") : AVA_ENOMEM;

	free(key);
	return rv;
}

/* 1: said with this id before, `done` hears of it; 0: new; negative: an error. */
static int said_before(struct session *s, const char *id, op_said_fn done, void *user)
{
	struct request *r;
	char *key, entry[24];

	if (!id || !*id)
		return 0;
	LIST_EACH (&s->talk->saying, n, tmp) {
		struct input *in = LIST_ENTRY(n, struct input, node);

		if (in->request && strcmp(in->request, id) == 0)
			return add_wait(in, done, user) == 0 ? 1 : AVA_ENOMEM;
	}
	key = request_key(s, id);
	if (!key)
		return AVA_ENOMEM;
	r = core_request(s->core, key);
	free(key);
	if (!r)
		return 0;
	snprintf(entry, sizeof(entry), "%s", r->proposal);
	done(0, entry, NULL, user);
	return 1;
}

static int session_write_said(struct talk *t, struct draft *d, struct input *in)
{
	struct session *s = t->session;
	struct session_entry e = {
		.id = in->id, .wall_ms = in->said_ms, .request = in->request, .shown = in->shown};
	struct buf b;
	struct jw w;

	draft_entry_id(d, in->id);
	buf_init(&b, 8u << 20);
	session_user(&b, &e, in->text, strlen(in->text));
	draft_entry(d, s->path, in->id, &b);
	buf_fini(&b);
	buf_init(&b, 8u << 20);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_preview(&w, "text", in->text, strlen(in->text), 100000);
	if (in->origin[0])
		jw_str(&w, "origin", in->origin);
	jw_end(&w);
	core_event(s->core, d, EVENT_UserMessage, s->id, s->user, &b);
	return draft_failed(d) ? AVA_ENOMEM : 0;
}

static struct input *input_new(const struct core *c, const struct op_say *say)
{
	struct input *in =
		talk_input_new(INPUT_SAID, "", clock_wall_ms(), say->shown ? say->shown : "");
	struct buf clean;

	if (!in)
		return NULL;
	snprintf(in->origin, sizeof(in->origin), "%s", say->origin ? say->origin : "");
	buf_init(&clean, 8u << 20);
	if (!c->redact || redact_text(c->redact, &clean, say->text, strlen(say->text)) >= 0)
		in->text = c->redact ? buf_take(&clean, NULL) : strdup(say->text);
	buf_fini(&clean);
	if (say->request_id && *say->request_id)
		in->request = strdup(say->request_id);
	if (in->text && (in->request || !say->request_id || !*say->request_id))
		return in;
	talk_input_free(in);
	return NULL;
}

static int check_say(const struct op_say *say, struct ava_error *err)
{
	size_t len = strlen(say->text);

	if (say->text[strspn(say->text, " \t\r\n")] == 0)
		return err_set(err, AVA_EINVAL, "the message is empty: say something");
	if (len > SAY_MAX)
		return err_set(err, AVA_ETOOBIG,
			       "the message is %zu bytes long, %u at the most: put the rest into a "
			       "file and name it",
			       len, SAY_MAX);
	if (!utf8_valid(say->text, len))
		return err_set(err, AVA_EINVAL, "the message is not valid UTF-8");
	return 0;
}

/* Refuses to write into a file that somebody removed or emptied: pi takes a file without a header
 * for empty, and empties it. */
static int check_there(const struct session *s, struct ava_error *err)
{
	struct stat st;
	int rv;

	if (!s->there || (s->talk && !outbox_empty(&s->talk->run.rec.outbox)))
		return 0;
	rv = sys->fstatat(s->core->root_fd, s->path, &st, 0);
	if (rv == 0 ? st.st_size > 0 : errno != ENOENT)
		return 0;
	return err_set(err, AVA_ENOENT, "the file of session %s was %s: begin a new conversation",
		       s->id, rv == 0 ? "emptied" : "removed");
}

int session_load(struct session *s, struct ava_error *err)
{
	int rv;

	session_file_show(s);
	rv = s->talk ? 0 : talk_open(s, err);
	if (rv != 0)
		return rv;
	list_del(&s->talk->node); /* the end of the list: used last */
	list_add(&s->core->talks, &s->talk->node);
	session_rest(s->core);
	return 0;
}

static int begin_say(struct session *s, const struct op_say *say, op_said_fn done, void *user,
		     struct ava_error *err)
{
	bool there = s->there;
	struct input *in;
	struct draft *d;
	int rv = check_say(say, err);

	if (rv == 0)
		rv = core_check_request(s->core, say->request_id, err);
	if (rv == 0)
		rv = check_there(s, err);
	if (rv == 0)
		rv = session_settle(s, say->cwd, err);
	if (rv == 0) {
		rv = said_before(s, say->request_id, done, user);
		if (rv != 0)
			return rv > 0 ? 0 : err_set(err, rv, "out of memory");
		rv = core_ready(s->core, err);
	}
	if (rv != 0)
		return rv;
	in = input_new(s->core, say);
	d = in && add_wait(in, done, user) == 0 ? draft_new(&s->core->book) : NULL;
	if (!d || talk_start(s->talk, d) != 0 || session_write_said(s->talk, d, in) != 0) {
		draft_free(d);
		if (in)
			talk_input_free(in);
		s->there = there;
		if (!there) { /* nothing of the conversation is on disk */
			talk_free(s->talk);
			s->talk = NULL;
		}
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	in->talk = s->talk;
	if (!s->title || s->title[0] == '\0')
		session_file_title(s, in->text);
	list_add(&s->talk->saying, &in->node);
	outbox_put(&s->talk->run.rec.outbox, d, JOURNAL_NOW, session_said, in);
	return 0;
}

void ops_say(struct core *c, const char *session, const struct op_say *say, op_said_fn done,
	     void *user)
{
	struct ava_error err = {0};
	struct session *s = session_find(c, session, &err);

	if (!s || begin_say(s, say, done, user, &err) != 0)
		done(err.code, NULL, &err, user);
}

int ops_session_stop(struct core *c, const char *session, struct ava_error *err)
{
	struct session *s = session_find(c, session, err);

	if (!s)
		return AVA_ENOENT;
	if (s->talk && s->talk->busy) {
		agent_cancel(&s->talk->run.agent);
		run_wake(&s->talk->run);
	}
	return 0;
}

/* ---- outcome of a proposal */

#define NAMED_MAX 20u /* runs of a group that one notice names */

/* A notice says of an answer given in another channel that it answers nothing said here. */
static const char *session_where(const struct proposal *p)
{
	return p->said_here ? "" : NOTICE_ELSEWHERE;
}

/* "S-7f3a2b (brave-otter), S-20aaff (calm-heron) and 3 more have started." `first` was taken
 * from p->runs already; or NULL. */
static void started_text(const struct proposal *p, const struct run *first, char out[NOTE_BYTES])
{
	int n = snprintf(out, NOTE_BYTES, "The person confirmed %s%s:", p->id, session_where(p));
	unsigned count = 0;

	for (unsigned i = 0; i <= p->n; i++) {
		const struct run *r = i == 0 ? first : p->runs[i - 1];

		if (r && count++ < NAMED_MAX && n < NOTE_BYTES - 100)
			n += snprintf(out + n, (size_t)(NOTE_BYTES - n), "%s %s (%s%s)",
				      count > 1 ? "," : "", r->id.text, r->trace.text,
				      after_none(&r->spec->group.after)
					      ? ""
					      : ", which waits for others");
	}
	if (count > NAMED_MAX)
		n += snprintf(out + n, (size_t)(NOTE_BYTES - n), " and %u more", count - NAMED_MAX);
	snprintf(out + n, (size_t)(NOTE_BYTES - n), " %s started.", count > 1 ? "have" : "has");
}

static void answer_text(const struct proposal *p, enum proposal_step step, const struct run *first,
			char out[NOTE_BYTES])
{
	if (step == STEP_CONFIRMED && p->order[0])
		snprintf(
			out, NOTE_BYTES,
			"The person confirmed %s: the standing order %s starts its runs by itself.",
			p->id, p->order);
	else if (step == STEP_CONFIRMED)
		started_text(p, first, out);
	else if (step == STEP_REPLACED)
		snprintf(out, NOTE_BYTES,
			 "The person wants it otherwise%s: %s is a new quote and waits.",
			 session_where(p), p->replaced_by);
	else if (step == STEP_REJECTED)
		snprintf(out, NOTE_BYTES, "%s was rejected by the person%s: nothing was started.",
			 p->id, session_where(p));
	else
		snprintf(out, NOTE_BYTES, WORDS_EXPIRED(p->id));
}

static void sessions_answering(struct core *c, struct draft *d, const struct proposal *p,
			       const char *session_id)
{
	const struct session *s = strmap_get(&c->session_by_id, session_id);
	char text[NOTE_BYTES];

	if (!s || !s->there)
		return;
	answer_text(p, p->answer->to, NULL, text);
	talk_note_write(s, d, p->id, text);
}

static void sessions_answered(struct core *c, const struct proposal *p, const char *session_id,
			      struct run *r)
{
	struct session *s = strmap_get(&c->session_by_id, session_id);
	struct ava_error err = {0};
	char text[NOTE_BYTES];

	if (!s)
		return;
	if (session_load(s, &err) != 0) {
		core_log(c, "session %s cannot be taken up: %s", s->id, err.text);
		return;
	}
	if (r && talk_watch_run(s->talk, r) != 0)
		core_log(c, "the result of %s will be told at the next start: out of memory",
			 r->id.text);
	answer_text(p, p->step, r, text);
	talk_note_keep(&s->talk->notes, p->id, text);
}

/* ---- verbs */

static void write_session(struct jw *w, const struct op_session *s)
{
	jw_object(w, NULL);
	jw_str(w, "session_id", s->id);
	jw_str(w, "title", s->title);
	jw_str(w, "cwd", s->cwd);
	jw_str(w, "user_id", s->user_id);
	jw_str(w, "origin", s->origin);
	jw_str(w, "model", s->model);
	jw_int(w, "context", s->context);
	jw_int(w, "context_used", s->context_used);
	jw_str(w, "status", s->busy ? "busy" : "idle");
	if (s->doing[0])
		jw_str(w, "doing", s->doing);
	if (s->trouble)
		jw_str(w, "trouble", s->trouble);
	verb_time(w, "created_at", s->created_ms);
	verb_time(w, "updated_at", s->updated_ms);
	jw_int(w, "live_runs", s->live_runs);
	jw_int(w, "waiting", s->waiting);
	jw_int(w, "tokens_used", s->tokens);
	verb_cost(w, "cost_cents", s->cost_microusd);
	jw_end(w);
}

void session_send(struct verb_reply *r, struct session *s)
{
	struct op_session shown;
	struct verb_answer a;

	session_show(s, &shown);
	verb_begin(&a, r, 0, NULL);
	write_session(&a.w, &shown);
	verb_send(&a, 200);
}

static const struct arg session_args[] = {
	{"cwd", ARG_SAID, offsetof(struct op_session_new, cwd), .most = 4095},
	{"origin", ARG_SAID, offsetof(struct op_session_new, origin), .most = 40},
	{"model", ARG_SAID, offsetof(struct op_session_new, model), .most = 263},
	{"session_id", ARG_SAID, offsetof(struct op_session_new, id), .most = 40},
	{NULL},
};

static void verb_session_new(struct verb_call *v)
{
	struct op_session_new n = {.user_id = v->caller->user, .origin = v->caller->channel};
	struct ava_error err = {0};
	struct op_session s;
	struct verb_answer a;

	if (!verb_args(v, &n) ||
	    !verb_begin(&a, v->reply, ops_session_new(v->core, &n, &s, &err), &err))
		return;
	write_session(&a.w, &s);
	verb_send(&a, 201);
}

static const struct arg sessions_args[] = {{"limit", ARG_COUNT, 0, 1, 100000}, {NULL}};

/* Lists conversations, newest first. */
static void verb_sessions(struct verb_call *v)
{
	struct verb_answer a;
	struct op_session s;
	int64_t limit = 100;

	if (!verb_begin_args(&a, v, &limit))
		return;
	jw_object(&a.w, NULL);
	jw_array(&a.w, "sessions");
	LIST_EACH (&v->core->sessions, n, tmp) {
		if (limit-- == 0)
			break;
		session_show(LIST_ENTRY(n, struct session, node), &s);
		write_session(&a.w, &s);
	}
	verb_send(&a, 200);
}

static void verb_session(struct verb_call *v)
{
	struct ava_error err = {0};
	struct session *s = verb_args(v, NULL) ? session_find(v->core, v->id, &err) : NULL;

	if (s)
		session_send(v->reply, s);
	else if (err.code != 0)
		verb_fail(v->reply, AVA_ENOENT, &err);
}

/* Stops the turn, but not the subagents. */
static void verb_session_stop(struct verb_call *v)
{
	(void)ops_session_stop(v->core, v->id, NULL);
	verb_session(v);
}

static void verb_messages(struct verb_call *v)
{
	struct ava_error err = {0};
	struct session *s = session_find(v->core, v->id, &err);
	const char *path = s && s->there ? s->path : "";

	if (!s)
		verb_fail(v->reply, AVA_ENOENT, &err);
	else if (verb_args(v, NULL)) {
		verb_work(v, &(struct verb_work){.work = session_file_entries, .own = (void *)path},
			  strlen(path) + 1, false);
	}
}

static void say_answered(int rv, const char *entry, const struct ava_error *err, void *user)
{
	struct verb_answer a;

	if (!verb_begin(&a, user, rv, err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "entry", entry);
	verb_send(&a, 202);
}

static const struct arg say_args[] = {
	{"text", ARG_SAID, offsetof(struct op_say, text), .most = SAY_MAX},
	{"request_id", ARG_SAID, offsetof(struct op_say, request_id), .most = 200},
	{"shown", ARG_SAID, offsetof(struct op_say, shown), .most = ASK_ID_LEN - 1},
	{"cwd", ARG_SAID, offsetof(struct op_say, cwd), .most = 4095},
	{NULL},
};

static void verb_say(struct verb_call *v)
{
	struct op_say say = {.text = "", .user_id = v->caller->user, .origin = v->caller->channel};

	if (!verb_args(v, &say))
		return;
	ops_say(v->core, v->id, &say, say_answered, v->reply);
}

const struct verb verbs_about_sessions[] = {
	{"POST", "/api/v1/sessions", verb_session_new, session_args, true},
	{"GET", "/api/v1/sessions", verb_sessions, sessions_args, false},
	{"GET", "/api/v1/sessions/{id}", verb_session, NULL, false},
	{"GET", "/api/v1/sessions/{id}/messages", verb_messages, NULL, false},
	{"POST", "/api/v1/sessions/{id}/messages", verb_say, say_args, true},
	{"POST", "/api/v1/sessions/{id}/stop", verb_session_stop, NULL, false},
	{NULL},
};

/* ---- watching */

struct op_watch *ops_watch(struct core *c, void (*frame)(const struct op_frame *f, void *user),
			   void *user)
{
	struct op_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->core = c;
	w->frame = frame;
	w->user = user;
	list_add(&c->watches, &w->node);
	return w;
}

void ops_watch_run(struct op_watch *w, const char *run)
{
	struct run *r = supervisor_find(&w->core->sup, run);

	if (!r)
		return;
	snprintf(w->run, sizeof(w->run), "%s", run);
	r->watched++;
	infer_watched(r);
}

void ops_unwatch(struct op_watch *w)
{
	struct run *r = w->run[0] ? supervisor_find(&w->core->sup, w->run) : NULL;

	if (r)
		r->watched--;
	list_del(&w->node);
	free(w);
}

/* ---- the runtime's life */

int sessions_open(struct core *c, struct ava_error *err)
{
	struct session_scan sc = {.core = c};

	c->resting_max = RESTING_MAX;
	os_task_init(&c->rest, sessions_rest);
	c->sup.session_file = file_of;
	c->sup.on_patch = patches_ended;
	c->sup.session_user = c;
	c->sup.on_text = talk_text;
	c->sup.on_ask = talk_asks_person;
	c->on_proposal.answering = sessions_answering;
	c->on_proposal.answered = sessions_answered;
	(void)sys->list(c->root_fd, "sessions", found_folder, &sc);
	if (sc.no_memory || talk_tools_init(c) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return 0;
}

bool sessions_idle(const struct core *c)
{
	for (const struct list *n = c->talks.next; n != &c->talks; n = n->next) {
		const struct talk *t = LIST_ENTRY(n, struct talk, node);

		if (t->busy || t->answering || !list_empty(&t->inputs) || !list_empty(&t->saying))
			return false;
	}
	return true;
}

void sessions_quiesce(struct core *c)
{
	LIST_EACH (&c->talks, n, tmp) {
		struct talk *t = LIST_ENTRY(n, struct talk, node);

		run_quiesce(&t->run);
	}
}

bool sessions_written(const struct core *c)
{
	for (const struct list *n = c->talks.next; n != &c->talks; n = n->next)
		if (!outbox_empty(&LIST_ENTRY(n, struct talk, node)->run.rec.outbox))
			return false;
	return true;
}

void sessions_close(struct core *c)
{
	os_defer_cancel(c->loop, &c->rest);
	while (!list_empty(&c->sessions)) {
		struct session *s = LIST_FIRST(&c->sessions, struct session, node);

		while (s->talk && s->talk->run.busy > 0)
			os_loop_step(c->loop, 50);
		session_free(s);
	}
	while (!list_empty(&c->watches))
		ops_unwatch(LIST_FIRST(&c->watches, struct op_watch, node));
	strmap_fini(&c->session_by_id);
	talk_tools_fini(c);
}
