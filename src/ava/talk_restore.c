/* The parts of a conversation besides its run, after a stop. Its messages file is the whole truth
 * of what Ava's model was told: marks in it name the inputs that were told. The session file has
 * the person's words and the ended subagents; entries without a mark are told now.
 *
 * The turn itself stands at its position, which is a mark as well, and is restored as any run is
 * (subagent/restore.c). A messages file that cannot be read is an error of the next request:
 * nothing is written over it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/talk.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/messages.h"
#include "subagent/record.h"
#include "subagent/rights.h"
#include "subagent/restart.h"
#include "subagent/run.h"
#include "subagent/spec.h"

#define RECENT_MS 86400000LL /* a start looks at conversations touched since then */

struct talk_restore_memory {
	struct talk *talk;   /* NULL: only look whether something is left to do */
	struct nameset told; /* ids of entries, runs and notices that were told, or wait */
	json_t *position;    /* the newest, owned; NULL: no turn was begun */
	unsigned untold;
	struct list notes; /* struct talk_note: notices that were not told */
};

/* ---- the messages file */

static int take_mark(struct talk_restore_memory *m, const json_t *mark)
{
	const char *told = json_get_str(mark, "told"), *note = json_get_str(mark, "note");
	const char *text = json_get_str(mark, "text"), *noted;
	json_t *position = json_object_get(mark, "position");
	struct talk_note *n;

	/* Words of an earlier form: what was told once is not told again. */
	told = told ? told : json_get_str(mark, "said");
	told = told ? told : json_get_str(mark, "result");
	noted = told ? told : json_get_str(mark, "noted");
	n = noted ? talk_note_find(&m->notes, noted) : NULL;
	if (m->talk)
		m->talk->seen |= rights_read(json_object_get(mark, "seen")) & RIGHTS_SEEN;
	if (n)
		talk_note_free(n);
	if (note && text)
		talk_note_keep(&m->notes, note, text);
	if (told && nameset_add(&m->told, told) == AVA_ENOMEM)
		return AVA_ENOMEM;
	if (!position)
		return 0;
	json_decref(m->position);
	m->position = json_incref(position);
	return m->talk ? restore_calls(&m->talk->run, position) : 0;
}

/* Reads the file and, into *m, its marks. *file is the caller's. */
static int read_marks(struct talk_restore_memory *m, const struct core *c, const char *path,
		      char **file, size_t *len, struct ava_error *err)
{
	const char *line;
	size_t at = 0, n;
	int rv = logbook_read(c->root_fd, path, TALK_FILE_MAX, file, len, err);

	while (rv == 0 && jsonl_next(*file, *len, &at, &line, &n) == 1) {
		struct ava_error why = {0};
		json_t *o = jscan_begins(line, n, "{\"mark\":") ? json_parse(line, n, &why) : NULL;

		rv = why.code == AVA_ENOMEM ? AVA_ENOMEM : take_mark(m, json_object_get(o, "mark"));
		json_decref(o);
		if (rv != 0)
			err_set(err, rv, "a position cannot be read: %s", ava_strerror(rv));
	}
	return rv;
}

/* The first line names the model of the beginning, whose key may be gone; later lines have what
 * changed or was learned since (a rejected parameter, a smaller window). */
static int read_spec(struct run_spec *spec, const char *file, size_t len, struct ava_error *err)
{
	json_t *first = NULL;
	int rv = spec_first_line(file, len, &first, err);

	if (rv == 0 && !json_get_str(first, "model"))
		rv = err_set(err, AVA_ECORRUPT, "its messages name no model");
	if (rv == 0)
		rv = spec_amend(spec, first, err);
	if (rv == 0)
		rv = restart_amendments(spec, file, len, err);
	spec->agent.can_force = false;
	json_decref(first);
	return rv;
}

/* ---- the session file: entries not told yet */

static int add_input(struct talk_restore_memory *m, enum input_kind kind, const char *id,
		     const char *text, int64_t said_ms, const char *shown)
{
	struct input *in;

	if (nameset_has(&m->told, id)) /* pi may have written the entry twice */
		return 0;
	m->untold++;
	if (nameset_add(&m->told, id) != 0)
		return AVA_ENOMEM;
	if (!m->talk)
		return 0;
	in = talk_input_new(kind, id, said_ms, shown);
	if (!in)
		return AVA_ENOMEM;
	in->talk = m->talk;
	list_add(&m->talk->inputs, &in->node);
	in->text = text ? strdup(text) : NULL;
	return text && !in->text ? AVA_ENOMEM : 0;
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
		return add_input(m, INPUT_RESULT, run, NULL, 0, "");
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

int talk_restore(struct talk *t, struct ava_error *err)
{
	struct talk_restore_memory m = {.talk = t};
	struct messages_info info = {0};
	struct run *r = &t->run;
	struct restored at = {0};
	struct buf body;
	char *file = NULL;
	size_t len = 0;
	int rv;

	list_init(&m.notes);
	buf_init(&body, TALK_FILE_MAX);
	rv = read_marks(&m, t->session->core, t->messages, &file, &len, err);
	if (rv == 0)
		rv = read_spec(r->spec, file, len, err);
	if (rv == 0)
		rv = messages_request(&body, file, len, t->session->core->root_fd, &info, err);
	if (rv == 0)
		rv = read_entries(&m, t->session, err);
	if (rv == 0) {
		r->agent.at.new_bytes = (int64_t)body.len; /* unless a position says better */
		at.position = m.position;
		rv = restore_run(r, file, len, &body, &info, &at, err);
	}
	if (rv == 0 && at.started) {
		/* The day's spending is counted by InferEnd, which a cut call does not have yet;
		 * a day that machines share has counted it as the most it can cost. */
		r->call.counted_microusd = r->agent.at.totals.cost_microusd;
		if (r->call.id[0] && !r->sup->money.all[0].more)
			r->call.counted_microusd -= MAX(r->call.cut.cost_microusd, 0);
		talk_go(t);
	} else if (rv == 0) {
		agent_next(&r->agent, 0); /* the totals are of a turn that ended */
	}
	if (rv == 0 && !list_empty(&t->inputs))
		os_defer(r->sup->loop, &t->pump);
	list_splice(&t->notes, &m.notes);
	free(file);
	buf_fini(&body);
	nameset_fini(&m.told);
	json_decref(m.position);
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
	rv |= restore_is_open(m.position) || m.untold > 0;
	free(file);
	nameset_fini(&m.told);
	json_decref(m.position);
	while (!list_empty(&m.notes))
		talk_note_free(LIST_FIRST(&m.notes, struct talk_note, node));
	return rv != 0; /* session_load reports the error */
}

static void take_up(struct session *s)
{
	struct ava_error err = {0};

	if (session_load(s, &err) != 0)
		core_log(s->core, "session %s cannot be taken up again: %s", s->id, err.text);
}

void sessions_resume(struct core *c)
{
	int64_t now = clock_wall_ms();

	LIST_EACH (&c->sup.live, n, tmp) { /* results of these runs become inputs */
		const struct run *r = LIST_ENTRY(n, struct run, node);
		struct session *s = strmap_get(&c->session_by_id, r->spec->session_id);

		if (s)
			take_up(s);
	}
	LIST_EACH (&c->sessions, n, tmp) {
		struct session *s = LIST_ENTRY(n, struct session, node);

		if (!s->talk && s->updated_ms >= now - RECENT_MS && left_to_do(s))
			take_up(s);
	}
}
