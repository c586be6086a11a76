/* The catalog is gone through once. Each run without an end row is carried on:
 * without an InferStart it is queued as it was, else its record says where it stands
 * (restore.c). A run whose record cannot be read ends as an error through the same code
 * as any other run (ending.c), so that none stays behind. */
#include "subagent/restart.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "journal/catalog.h"
#include "provider/messages.h"
#include "subagent/past.h"
#include "subagent/person.h"
#include "subagent/run.h"
#include "subagent/supervisor.h"

#define FILE_MAX (256u << 20)

/* The rows that were made for runs without one. */
static int scan_salvaged(struct past *p, const struct buf *rows)
{
	struct catalog_row row;
	const char *line;
	size_t at = 0, n;
	int rv = 0;

	while (rv == 0 && jsonl_next(rows->data, rows->len, &at, &line, &n) == 1) {
		rv = catalog_parse(line, n, &row, NULL);
		if (rv == 0)
			rv = past_add(p, &row);
		catalog_row_fini(&row);
	}
	return rv;
}

/* ---- runs that no catalog row names:
 * The folder of run logs is listed; each run that no catalog row named is read
 * once: its SubagentSpawn and, when it has ended, its SubagentComplete give
 * the rows. The request id stands in the catalog only and is lost with it.
 *
 * The rows are in the file before this returns, so that the first `ava ps -a`
 * of a daemon that serves lists every run.
 *
 * What can fail: a log without its beginning gives no row; it is named, left
 * as it is, and its id stays taken. A disk that does not take the rows does
 * not hold up the start. */

struct found {
	const struct nameset *names;
	struct run_id *ids;
	size_t n, cap;
	bool failed; /* out of memory */
};

static void found_name(const char *name, void *user)
{
	struct found *f = user;
	size_t len = strlen(name);
	char id[sizeof(f->ids->text)];

	if (len < 7 || len - 6 >= sizeof(id) || strcmp(name + len - 6, ".jsonl") != 0)
		return;
	memcpy(id, name, len - 6);
	id[len - 6] = 0;
	if (!id_is_run(id) || nameset_has(f->names, id))
		return;
	if (!ARRAY_ROOM(f->ids, f->cap, f->n + 1)) {
		f->failed = true;
		return;
	}
	memcpy(f->ids[f->n++].text, id, sizeof(id));
}

/* ---- one log */

struct tale {
	json_t *spawn, *complete; /* the two events; owned */
	int64_t spawned_ms, ended_ms;
	uint64_t types, bytes;
};

static void read_tale(struct tale *t, const char *id, const char *data, size_t len)
{
	const char *line;
	size_t at = 0, n;

	t->bytes = len;
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		struct event_view v;

		if (event_view(line, n, &v) != 0 || v.kind < 0 || v.agent_id.len != strlen(id) ||
		    memcmp(v.agent_id.s, id, v.agent_id.len) != 0)
			continue;
		t->types |= event_bit((enum event_kind)v.kind);
		if (v.kind == EVENT_SubagentSpawn && !t->spawn) {
			t->spawn = json_parse(line, n, NULL);
			t->spawned_ms = v.wall_ms;
		} else if (v.kind == EVENT_SubagentComplete && !t->complete) {
			t->complete = json_parse(line, n, NULL);
			t->ended_ms = v.wall_ms;
		}
	}
}

/* The row goes into the catalog, and into `rows` for this start. */
static void salvage_row(struct draft *d, const struct catalog_row *row, struct buf *rows)
{
	draft_catalog(d, row, NULL);
	catalog_encode(rows, row);
}

static void write_rows(struct draft *d, const struct tale *t, const char *id, struct buf *rows)
{
	const json_t *o = json_object_get(t->spawn, "content"), *totals;
	struct catalog_row row = {
		.kind = CATALOG_SPAWN,
		.status = AVA_STARTING,
		.id = id,
		.trace_id = json_str(t->spawn, "traceId"),
		.session_id = json_str(t->spawn, "sessionId"),
		.user_id = json_str(t->spawn, "userId"),
		.role = json_str(o, "role"),
		.model = json_str(o, "model"),
		.origin = json_str(o, "origin"),
		.group_id = json_str(o, "groupId"),
		.group_index = json_get_int(o, "groupIndex", 0),
		.tags = json_str(o, "tags"),
		.cwd = json_str(o, "cwd"),
		.order = json_str(o, "order"),
		.started_ms = t->spawned_ms,
		.ended_ms = -1,
		.bytes = t->bytes,
		.types = t->types,
	};

	salvage_row(d, &row, rows);
	if (!t->complete)
		return;
	o = json_object_get(t->complete, "content");
	row.kind = CATALOG_END;
	row.status = AVA_ERROR;
	row.ended_ms = t->ended_ms;
	for (int i = 0; i < AVA_NSTATUSES; i++)
		if (strcmp(ava_status_name((enum ava_status)i), json_str(o, "status")) == 0)
			row.status = (enum ava_status)i;
	totals = json_object_get(o, "totals");
	row.totals = (struct catalog_totals){
		.input_tokens = json_get_int(totals, "inputTokens", 0),
		.output_tokens = json_get_int(totals, "outputTokens", 0),
		.cost_microusd = json_get_fixed(totals, "costCents", 4, 0),
		.duration_ms = json_get_int(totals, "durationMs", 0),
		.calls = json_get_int(totals, "calls", 0),
		.uncosted_calls = json_get_int(totals, "uncostedCalls", 0),
		.failed_calls = json_get_int(totals, "failedCalls", 0),
		.estimated_calls = json_get_int(totals, "estimatedCalls", 0),
	};
	salvage_row(d, &row, rows);
}

static int salvage_run(struct supervisor *s, struct past *p, const char *id, struct draft *d,
		       struct buf *rows, const struct restart_hooks *hooks)
{
	struct tale t = {0};
	char path[LOGBOOK_PATH], *data = NULL;
	size_t len = 0;
	int rv;

	logbook_run_path(id, path);
	rv = logbook_read(s->book->root_fd, path, FILE_MAX, &data, &len, NULL);
	if (rv == AVA_ENOMEM)
		return rv;
	if (rv == 0)
		read_tale(&t, id, data, len);
	free(data);
	if (t.spawn) {
		write_rows(d, &t, id, rows);
		hooks->problem(path, "its row in catalog.jsonl was missing and is written again",
			       hooks->user);
	} else {
		hooks->problem(path, "no row in catalog.jsonl, and no beginning to make one of",
			       hooks->user);
		rv = nameset_add(&p->names, id);
	}
	json_decref(t.spawn);
	json_decref(t.complete);
	return rv == AVA_ENOMEM ? rv : 0;
}

/* ---- all of them */

static void nothing(int rv, void *user)
{
	/* A row that was not written is found missing again at the next start. */
}

static int salvage_runs(struct supervisor *s, struct past *p, const struct restart_hooks *hooks,
			struct buf *rows, struct ava_error *err)
{
	struct found f = {.names = &p->names};
	struct draft *d = NULL;
	bool committed = false;
	int rv = 0;

	(void)sys->list(s->book->root_fd, "logs/subagents", found_name, &f);
	if (f.failed)
		rv = AVA_ENOMEM;
	for (size_t i = 0; i < f.n && rv == 0; i++) {
		if (!d)
			d = draft_new(s->book);
		rv = d ? salvage_run(s, p, f.ids[i].text, d, rows, hooks) : AVA_ENOMEM;
		if (rv != 0 || d->nparts == 0 || ((i + 1) % 1000 != 0 && i + 1 < f.n))
			continue;
		rv = buf_check(rows);
		if (rv == 0) {
			rv = draft_commit(d, JOURNAL_NOW, nothing, NULL, err);
			d = NULL;
			committed = committed || rv == 0;
		}
	}
	draft_free(d);
	free(f.ids);
	if (committed)
		(void)journal_sync(s->book->journal);
	return rv == AVA_ENOMEM ? err_set(err, rv, "out of memory while runs were looked for") : rv;
}

/* ---- messages.jsonl */

static int restart_unread(struct ava_error *err, const char *words)
{
	return err->code == AVA_ENOMEM ? AVA_ENOMEM : err_set(err, AVA_ECORRUPT, "%s", words);
}

int restart_amendments(struct run_spec *spec, const char *data, size_t len, struct ava_error *err)
{
	static const char start[] = "{\"spec\":";
	const char *line;
	size_t at = 0, n;
	int rv = 0;

	(void)jsonl_next(data, len, &at, &line, &n);
	while (rv == 0 && jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o;

		if (n < sizeof(start) || memcmp(line, start, sizeof(start) - 1) != 0)
			continue;
		o = json_parse(line, n, err);
		rv = o ? spec_amend(spec, json_object_get(o, "spec"), err)
		       : restart_unread(err, "an amendment cannot be read");
		json_decref(o);
	}
	return rv;
}

struct messages { /* of one run, as a stop left them */
	char *file;
	size_t len;
	struct run_spec *spec;
	struct buf body; /* the request as it stands */
	struct messages_info info;
};

static int parse_spec(struct messages *m, const struct catalog_row *row, struct ava_error *err)
{
	json_t *first = NULL;
	int rv = spec_first_line(m->file, m->len, &first, err);

	if (rv == 0)
		rv = spec_from_json(&m->spec, first, row->session_id, row->request_id, row->user_id,
				    err);
	json_decref(first);
	return rv;
}

/* The amended spec of line 1, and the request that the lines make. */
static int restart_read_messages(struct supervisor *sup, const struct catalog_row *row,
				 struct messages *m, struct ava_error *err)
{
	char path[LOGBOOK_PATH];
	int rv;

	logbook_messages_path(row->id, path);
	rv = logbook_read(sup->book->root_fd, path, FILE_MAX, &m->file, &m->len, err);
	if (rv == 0)
		rv = parse_spec(m, row, err);
	if (rv == 0)
		rv = restart_amendments(m->spec, m->file, m->len, err);
	if (rv == 0)
		rv = messages_request(&m->body, m->file, m->len, sup->book->root_fd, &m->info, err);
	if (rv != 0) {
		spec_free(m->spec);
		m->spec = NULL;
	}
	return rv;
}

/* ---- one run */

static int minimal_spec(struct supervisor *sup, const struct catalog_row *row,
			struct run_spec **spec)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "role",
			      row->role[0] && strlen(row->role) <= ROLE_NAME_MAX ? row->role
										 : "researcher",
			      "task", "(its messages.jsonl cannot be read)", "model", "offline",
			      "origin", row->origin);
	int rv = o ? spec_from_json(spec, o, row->session_id, row->request_id, row->user_id, NULL)
		   : AVA_ENOMEM;

	json_decref(o);
	return rv;
}

static int restart_go_on(struct run *r, const struct messages *m, int readable,
			 const struct restart_hooks *hooks, struct restored *at,
			 struct ava_error *err)
{
	char path[LOGBOOK_PATH];
	int rv = restore_run(r, m->file, m->len, readable == 0 ? &m->body : NULL, &m->info, at,
			     readable == 0 ? err : NULL);

	/* A log that cannot be read now may be whole: an end behind it would repeat its numbers.
	 * The start is refused, and a later one takes the run up. */
	if (rv == AVA_ENOMEM || rv == AVA_EIO)
		return readable == 0 ? rv : err_set(err, rv, "its log: %s", ava_strerror(rv));
	if (readable != 0 || rv != 0) {
		logbook_run_path(r->id.text, path);
		hooks->problem(path, err->text, hooks->user);
		r->end.interrupted = true; /* it ends as `error`, and says why */
		r->call.cut = (struct usage){.cost_microusd = -1};
		agent_interrupted(&r->agent, err->text);
	} else if (at->started) {
		supervisor_carry_on(r);
	} else {
		supervisor_start(r);
	}
	person_restored(r);
	r->agent.asks_again = r->pause.until_ms > 0 && person_was_asked(r);
	return pause_stand(r);
}

int restart_run(struct supervisor *sup, const struct catalog_row *row,
		const struct restart_hooks *hooks, struct ava_error *refused)
{
	struct messages m = {0};
	struct restored at = {0};
	struct ava_error err = {0};
	struct run *r;
	int rv, readable;

	buf_init(&m.body, FILE_MAX);
	readable = restart_read_messages(sup, row, &m, &err);
	if (readable == AVA_EIO) { /* read once more before ending the run for it */
		free(m.file);
		m.file = NULL;
		buf_reset(&m.body);
		readable = restart_read_messages(sup, row, &m, &err);
	}
	rv = readable == 0 || readable == AVA_ENOMEM ? readable : minimal_spec(sup, row, &m.spec);
	if (rv == 0)
		rv = supervisor_adopt(sup, m.spec, row->id, row->trace_id, &r, &err);
	if (rv == 0) {
		m.spec = NULL; /* taken */
		r->durable = true;
		r->spawned_wall_ms = row->started_ms;
		r->rec.log.row = row->lsn;
		rv = restart_go_on(r, &m, readable, hooks, &at, &err);
		money_restored(r);
		money_seen(sup, at.last_ms);
		group_seen(r, at.last_ms);
	}
	spec_free(m.spec);
	buf_fini(&m.body);
	free(m.file);
	return rv == 0 ? 0
		       : err_set(refused, rv, "run %s cannot be taken up again: %s", row->id,
				 err.code == rv ? err.text : ava_strerror(rv));
}

/* Names, quotes, spending and requests of a day are left to this process by ended runs. */
static int take_past(struct supervisor *sup, struct past *p, const struct restart_hooks *hooks)
{
	char *s = p->requests.data, *end = s ? s + p->requests.len : NULL;
	int rv = 0;

	sup->names = p->names;
	p->names = (struct nameset){0};
	memcpy(sup->quotes.roles, p->quotes.roles, sizeof(p->quotes.roles));
	sup->quotes.nroles = p->quotes.nroles;
	sup->spend = p->spend;
	sup->money.ended = p->spends;
	sup->total = p->total;
	sup->settled = p->settled;
	while (s < end) {
		char *next = s + strlen(s) + 1, *run, *trace, *id;
		int64_t ms = strtoll(s, &run, 10);

		trace = strchr(++run, ' ');
		*trace++ = '\0';
		id = strchr(trace, ' ');
		*id++ = '\0';
		hooks->request(id, run, trace, ms, hooks->user);
		s = next;
	}
	LIST_EACH (&p->runs, n, tmp) {
		const struct past_run *r = LIST_ENTRY(n, struct past_run, node);

		rv = rv == 0 ? group_restore(sup, &r->spawn) : rv;
		if (rv == 0 && r->end.id)
			rv = group_restore(sup, &r->end);
	}
	return rv;
}

int restart_runs(struct supervisor *sup, const struct restart_hooks *hooks, struct ava_error *err)
{
	struct ava_error amiss = {0};
	struct past p;
	struct buf rows;
	int rv;

	buf_init(&rows, (size_t)1 << 31);
	rv = past_read(&p, sup->book->root_fd, sup->settings, hooks->amiss, hooks->rested, &amiss);
	if (rv == AVA_ECORRUPT) { /* the rows are made again behind what stands there */
		hooks->problem(CATALOG_PATH,
			       "it is not a regular file: move what stands there away; its rows "
			       "are written again behind it",
			       hooks->user);
		rv = 0;
	}
	for (uint64_t i = 0; i < p.unread; i++)
		hooks->problem(CATALOG_PATH, "a line cannot be read and was passed over",
			       hooks->user);
	if (rv != 0)
		err_set(err, rv, "%s", amiss.text);
	if (rv == 0 && (!p.kept || p.unread > 0))
		rv = salvage_runs(sup, &p, hooks, &rows, err);
	if (rv == 0)
		rv = scan_salvaged(&p, &rows);
	if (rv == 0)
		rv = take_past(sup, &p, hooks);
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "out of memory while reading the catalog");
	buf_fini(&rows);
	LIST_EACH (&p.runs, n, tmp) {
		const struct past_run *r = LIST_ENTRY(n, struct past_run, node);

		if (rv == 0 && !r->end.id)
			rv = hooks->hold ? hooks->hold(&r->spawn, hooks->user)
					 : restart_run(sup, &r->spawn, hooks, err);
	}
	past_fini(&p);
	if (!hooks->hold) { /* else whoever holds them does it */
		money_restore(sup);
		blocked_restored(sup, NULL);
	}
	return rv;
}
