/* A conversation after a stop. Its messages file is the whole truth of what Ava's model was told:
 * marks in it name the inputs that were told, and say whether a turn was under way. The session
 * file has the person's words and the ended subagents; entries without a mark are told now.
 *
 * Calls that a stop left open get the answer "interrupted", unless their tool may run again; a turn
 * that was under way goes on. A messages file that cannot be read is an error of the next request:
 * nothing is written over it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output.h"
#include "agent/reply.h"
#include "agent/tool.h"
#include "ava/talk.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/messages.h"
#include "subagent/record.h"
#include "subagent/rights.h"
#include "subagent/run.h"
#include "subagent/spec.h"

#define RECENT_MS 86400000LL /* a start looks at conversations touched since then */

static const char interrupted[] =
	"interrupted: the runtime stopped before there was a result; it may have had effects";

struct talk_restore_memory {
	struct talk *talk;   /* NULL: only look whether something is left to do */
	struct nameset told; /* told inputs: "said:<entry>", "result:<run>"; "queued:<either>" */
	bool open;           /* a turn was under way */
	unsigned untold;
	uint64_t last;     /* number of the newest told entry */
	struct list notes; /* struct talk_note: notices that were not told */
	bool begun;        /* the spec line was read */
};

/* ---- the messages file */

static void keep_told(struct talk_restore_memory *m, const char *kind, const char *id)
{
	char name[64];

	snprintf(name, sizeof(name), "%s:%s", kind, id);
	(void)nameset_add(&m->told, name);
}

static bool was_told(const struct talk_restore_memory *m, const char *kind, const char *id)
{
	char name[64];

	snprintf(name, sizeof(name), "%s:%s", kind, id);
	return nameset_has(&m->told, name) != 0;
}

static void take_note(struct talk_restore_memory *m, const json_t *mark)
{
	const char *id = json_get_str(mark, "note"), *told = json_get_str(mark, "noted");
	const char *text = json_get_str(mark, "text");
	struct talk_note *n = told ? talk_note_find(&m->notes, told) : NULL;

	if (n)
		talk_note_free(n);
	if (id && text)
		talk_note_keep(&m->notes, id, text);
}

static int take_mark(struct talk_restore_memory *m, const json_t *mark)
{
	struct run *r = m->talk ? &m->talk->run : NULL;
	const char *said = json_get_str(mark, "said"), *result = json_get_str(mark, "result");
	const char *turn = json_get_str(mark, "turn");
	int64_t iteration = json_get_int(mark, "iteration", 0),
		calls = json_get_int(mark, "calls", 0);
	int64_t before;

	if (m->talk)
		m->talk->seen |= rights_read(json_object_get(mark, "seen")) & RIGHTS_SEEN;
	if (said)
		keep_told(m, "said", said);
	if (result)
		keep_told(m, "result", result);
	if (!turn) {
		take_note(m, mark);
		return 0;
	}
	m->open = strcmp(turn, "open") == 0;
	if (!r || iteration <= r->agent.at.iteration || iteration > 10000000)
		return 0;
	r->agent.at.iteration = (int32_t)iteration;
	before = r->tools.calls_at > 0 ? r->tools.calls_before[r->tools.calls_at] : 0;
	return toolrun_count(r, (unsigned)MAX(calls - before, 0));
}

/* The first line names the model of the beginning, whose key may be gone; later lines have what
 * changed or was learned since (a rejected parameter, a smaller window). */
static int take_spec(struct talk_restore_memory *m, const json_t *o, struct ava_error *err)
{
	struct run_spec *spec = m->talk->run.spec;
	const char *id = json_get_str(o, "model");
	struct model model;
	int rv = 0;

	if (!m->begun) {
		m->begun = true;
		rv = id ? model_restore(id, &model, err) : AVA_ECORRUPT;
		if (rv == 0)
			rv = spec_set_model(spec, &model, err);
		if (rv == 0)
			spec_take_facts(spec);
	}
	if (rv == 0)
		rv = spec_amend(spec, o, err);
	spec->agent.can_force = false;
	return rv;
}

static int talk_restore_take_line(struct talk_restore_memory *m, const char *line, size_t len,
				  struct ava_error *err)
{
	static const char begin[] = "{\"mark\":", spec[] = "{\"spec\":";
	bool is_mark = len > sizeof(begin) && memcmp(line, begin, sizeof(begin) - 1) == 0;
	bool is_spec = m->talk && len > sizeof(spec) && memcmp(line, spec, sizeof(spec) - 1) == 0;
	json_t *o;
	int rv = 0;

	if (!is_mark && !is_spec)
		return 0;
	o = json_parse(line, len, NULL);
	if (is_spec)
		rv = take_spec(m, json_object_get(o, "spec"), err);
	else if (take_mark(m, json_object_get(o, "mark")) != 0)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	json_decref(o);
	return rv;
}

/* Reads the file and, into *m, its marks. *file is the caller's. */
static int read_marks(struct talk_restore_memory *m, const struct core *c, const char *path,
		      char **file, size_t *len, struct ava_error *err)
{
	const char *line;
	size_t at = 0, n;
	int rv = logbook_read(c->root_fd, path, TALK_FILE_MAX, file, len, err);

	while (rv == 0 && jsonl_next(*file, *len, &at, &line, &n) == 1)
		rv = talk_restore_take_line(m, line, n, err);
	return rv;
}

static int talk_restore_read_messages(struct talk_restore_memory *m, struct buf *body,
				      struct messages_info *info, struct ava_error *err)
{
	struct talk *t = m->talk;
	char *file = NULL;
	size_t len = 0;
	int rv = read_marks(m, t->session->core, t->messages, &file, &len, err);

	if (rv == 0)
		rv = messages_request(body, file, len, info, err);
	free(file);
	return rv;
}

/* ---- the session file: entries not told yet */

static int add_input(struct talk_restore_memory *m, enum input_kind kind, const char *id,
		     const char *text, int64_t said_ms, const char *shown)
{
	struct input *in;

	m->untold++;
	if (!m->talk)
		return 0;
	in = calloc(1, sizeof(*in));
	if (!in)
		return AVA_ENOMEM;
	list_init(&in->node);
	list_init(&in->waits);
	in->kind = kind;
	in->talk = m->talk;
	in->said_ms = said_ms;
	snprintf(in->shown, sizeof(in->shown), "%s", shown);
	snprintf(in->id, sizeof(in->id), "%s", id);
	in->text = text ? strdup(text) : NULL;
	if (text && !in->text) {
		free(in);
		return AVA_ENOMEM;
	}
	list_add(&m->talk->inputs, &in->node);
	return 0;
}

/* Ids of ava's own entries are numbers of the journal. */
static void keep_last(struct talk_restore_memory *m, const char *id)
{
	m->last = MAX(m->last, (uint64_t)strtoull(id, NULL, 16));
}

static int take_ended(struct talk_restore_memory *m, const char *id, const char *run)
{
	if (was_told(m, "result", run)) {
		keep_last(m, id);
		return 0;
	}
	if (was_told(m, "queued", run))
		return 0;
	keep_told(m, "queued", run);
	return add_input(m, INPUT_RESULT, run, NULL, 0, "");
}

static int talk_restore_take_said(struct talk_restore_memory *m, const char *id, const json_t *o)
{
	const json_t *message = json_object_get(o, "message");
	const char *request = json_get_str(o, "requestId");
	int64_t said_ms = json_get_int(message, "timestamp", 0);
	const char *text;

	if (m->talk && request && strlen(id) < sizeof(((struct request *)0)->proposal) &&
	    talk_remember(m->talk->session, request, said_ms, id) != 0)
		return AVA_ENOMEM;

	if (was_told(m, "said", id)) {
		keep_last(m, id);
		return 0;
	}
	if (was_told(m, "queued", id)) /* pi may have written the entry twice */
		return 0;
	keep_told(m, "queued", id);
	text = json_get_str(json_array_get(json_object_get(message, "content"), 0), "text");
	/* An entry without a time answers nothing that is open now. */
	return text ? add_input(m, INPUT_SAID, id, text, said_ms, json_str(o, "shown")) : 0;
}

static int take_entry(struct talk_restore_memory *m, const json_t *o)
{
	const char *type = json_get_str(o, "type"), *id = json_get_str(o, "id");
	const json_t *message = json_object_get(o, "message");
	const char *role = json_get_str(message, "role"), *run = json_get_str(o, "jobId");
	const char *event = json_get_str(o, "eventType");
	const char *source = json_get_str(o, "source");

	if (!type || !id)
		return 0;
	if (strcmp(type, "agent_event") == 0 && run && event && id_is_run(run) &&
	    strcmp(event, "subagent:start") != 0)
		return take_ended(m, id, run);
	if (strcmp(type, "message") == 0 && role && strcmp(role, "user") == 0 && source &&
	    strcmp(source, "ava") == 0)
		return talk_restore_take_said(m, id, o);
	return 0;
}

static bool line_has(const char *line, size_t len, const char *text)
{
	return memmem(line, len, text, strlen(text)) != NULL;
}

/* The line may be an entry that counts. Parsing every line would make a start too slow. */
static bool may_count(const char *line, size_t len)
{
	return line_has(line, len, "\"source\"") || line_has(line, len, "\"agent_event\"");
}

static int read_entries(struct talk_restore_memory *m, const struct session *s,
			struct ava_error *err)
{
	char *data = NULL;
	const char *line;
	size_t len = 0, at = 0, n;
	int rv = sys_read_file(s->core->root_fd, s->path, TALK_FILE_MAX, &data, &len, err);

	while (rv == 0 && jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o = may_count(line, n) ? json_read_others(line, n, NULL) : NULL;

		rv = take_entry(m, o);
		json_decref(o);
		if (rv != 0)
			err_set(err, rv, "out of memory");
	}
	free(data);
	return rv;
}

/* ---- a turn cut by a stop */

/* Answers open calls with "interrupted", but not those that may run again: calls of tools that
 * change nothing, and of those of Ava's that know by the call's id what they have done
 * (talk_tools.c). */
static void prepare_open(struct talk *t, struct turn *turn)
{
	const struct agent_spec *spec = &t->run.spec->agent;

	for (unsigned i = 0; i < turn->ncalls; i++) {
		struct turn_call *c = &turn->calls[i];
		struct ava_error err = {0};

		snprintf(c->id, sizeof(c->id), "c%d.%u", (int)t->run.agent.at.iteration, i + 1);
		c->tool = reply_tool(spec->tools, spec->ntools, c->name);
		if (c->tool && (c->tool->flags & TOOL_REPEATABLE) &&
		    tool_take_args(c, &turn->mem, NULL, &err) == 0)
			continue;
		c->answered = true;
		c->success = false;
		c->error_class = "interrupted";
		c->output = interrupted;
		c->output_len = sizeof(interrupted) - 1;
	}
}

/* The model call that a stop cut: the last InferStart of this conversation without InferEnd, behind
 * `after`. "": none, or no log. */
static void find_cut_call(const struct talk *t, uint64_t after, char out[16])
{
	struct ava_log_query q = {
		.root = t->session->core->root, .types = "InferStart,InferEnd", .after = after};
	struct ava_log_event e;
	struct ava_log *log;
	int rv;

	out[0] = 0;
	if (ava_log_open(&log, &q, NULL) != 0)
		return;
	while ((rv = ava_log_next(log, &e, NULL)) == 1 || rv == AVA_ECORRUPT) {
		json_t *o = rv == 1 && memmem(e.line, e.len, t->session->id, strlen(t->session->id))
				    ? json_parse(e.line, e.len, NULL)
				    : NULL;
		const char *session = json_get_str(o, "sessionId");
		const char *call = json_get_str(json_object_get(o, "content"), "callId");

		if (session && call && strcmp(session, t->session->id) == 0)
			snprintf(out, 16, "%s", strcmp(e.type, "InferStart") == 0 ? call : "");
		json_decref(o);
	}
	ava_log_close(log);
}

/* Charges the estimate for a cut call: it was paid for, but the amount is unknown. */
static void close_cut_call(struct talk *t, uint64_t after)
{
	struct run *r = &t->run;
	struct usage u;
	struct record_failure f = {
		.error_class = "interrupted",
		.sentence = "the runtime stopped while Ava was asking her model",
		.usage = &u,
		.retry_ms = 0,
	};
	struct draft *d;

	find_cut_call(t, after, r->call.id);
	d = r->call.id[0] ? commit_draft(r) : NULL;
	if (!d)
		return;
	infer_estimate(r, &u);
	agent_charge(&r->agent, &u);
	record_infer_failed(d, r, &f);
}

static int talk_restore_go_on(struct talk_restore_memory *m, const struct buf *body,
			      const struct messages_info *info)
{
	struct talk *t = m->talk;
	struct turn *turn = turn_new();
	int rv;

	if (!turn)
		return AVA_ENOMEM;
	rv = t->run.spec->model->dialect->open_calls(body->data + info->head_len,
						     body->len - info->head_len, turn, NULL);
	if (rv != 0 || !m->open || info->lines == 0) {
		turn_free(turn);
		return rv;
	}
	talk_go(t);
	close_cut_call(t, m->last);
	if (turn->ncalls == 0) {
		turn_free(turn);
		return 0;
	}
	prepare_open(t, turn);
	t->run.rec.turn_open = true;
	agent_resume(&t->run.agent, turn);
	return 0;
}

int talk_restore(struct talk *t, struct ava_error *err)
{
	struct talk_restore_memory m = {.talk = t};
	struct messages_info info = {0};
	struct run *r = &t->run;
	struct buf body;
	int rv;

	list_init(&m.notes);
	buf_init(&body, TALK_FILE_MAX);
	rv = talk_restore_read_messages(&m, &body, &info, err);
	if (rv == 0)
		rv = read_entries(&m, t->session, err);
	if (rv == 0) {
		r->rec.request_bytes = (int64_t)body.len;
		r->agent.at.new_bytes = (int64_t)body.len; /* this process measured no request */
		r->rec.wordless = info.lines == 0;
		hash_sha256_init(&r->rec.prefix);
		hash_sha256_add(&r->rec.prefix, body.data, body.len);
		rv = talk_restore_go_on(&m, &body, &info);
		if (rv != 0)
			err_set(err, rv, "the conversation cannot be taken up again: %s",
				ava_strerror(rv));
	}
	if (rv == 0 && !list_empty(&t->inputs))
		os_defer(r->sup->loop, &t->pump);
	list_splice(&t->notes, &m.notes);
	buf_fini(&body);
	nameset_fini(&m.told);
	return rv;
}

/* ---- when the runtime starts */

/* A turn was under way, or an input was not told. Cheaper than restoring the conversation. */
static bool left_to_do(const struct session *s)
{
	struct talk_restore_memory m = {0};
	char path[LOGBOOK_PATH], *file = NULL;
	size_t len = 0;
	int rv = talk_messages_path(s, path);

	list_init(&m.notes);
	if (rv == 0)
		rv = read_marks(&m, s->core, path, &file, &len, NULL);
	if (rv == 0)
		rv = read_entries(&m, s, NULL);
	free(file);
	nameset_fini(&m.told);
	while (!list_empty(&m.notes))
		talk_note_free(LIST_FIRST(&m.notes, struct talk_note, node));
	return rv != 0 || m.open || m.untold > 0; /* session_load reports the error */
}

/* Counts the cost of Ava's turns of today for the budget of the day, from InferEnd events of the
 * daily log (the catalog has only runs). A broken line is skipped. */
static void count_day(struct core *c)
{
	struct ava_log_query q = {
		.root = c->root,
		.types = "InferEnd",
		.agent = "ava",
		.since = "today",
	};
	struct ava_error err = {0};
	struct ava_log_event e;
	struct ava_log *log;
	int rv;

	if (c->settings.budget_day_cents <= 0 || ava_log_open(&log, &q, &err) != 0)
		return; /* no daily log yet */
	while ((rv = ava_log_next(log, &e, &err)) == 1 || rv == AVA_ECORRUPT) {
		bool is_past = rv == 1 && e.time_ms <= clock_wall_ms() + BUDGET_BACK_MS;
		json_t *event = is_past ? json_parse(e.line, e.len, NULL) : NULL;
		const json_t *meta = json_object_get(event, "metadata");

		c->sup.day.spent += json_get_fixed(meta, "costCents", 4, 0);
		json_decref(event);
	}
	if (rv < 0)
		core_log(c, "what Ava has cost today is not known: %s", err.text);
	ava_log_close(log);
}

void sessions_resume(struct core *c)
{
	int64_t now = clock_wall_ms();

	count_day(c);
	LIST_EACH (&c->sup.live, n, tmp) { /* results of these runs become inputs */
		const struct run *r = LIST_ENTRY(n, struct run, node);
		struct session *s = strmap_get(&c->session_by_id, r->spec->session_id);
		struct ava_error err = {0};

		if (s && session_load(s, &err) != 0)
			core_log(c, "session %s cannot be taken up again: %s", s->id, err.text);
	}
	LIST_EACH (&c->sessions, n, tmp) {
		struct session *s = LIST_ENTRY(n, struct session, node);
		struct ava_error err = {0};

		if (s->talk || s->updated_ms < now - RECENT_MS || !left_to_do(s))
			continue;
		if (session_load(s, &err) != 0)
			core_log(c, "session %s cannot be taken up again: %s", s->id, err.text);
	}
}
