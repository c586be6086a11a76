/* The folder of run logs is listed; each run that no catalog row named is read
 * once: its SubagentSpawn and, when it has ended, its SubagentComplete give
 * the rows. The request id stands in the catalog only and is lost with it.
 *
 * The rows are in the file before this returns, so that the first `ava ps -a`
 * of a daemon that serves lists every run.
 *
 * What can fail: a log without its beginning gives no row; it is named, left
 * as it is, and its id stays taken. A disk that does not take the rows does
 * not hold up the start. */
#include "subagent/salvage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "subagent/restart.h"
#include "subagent/supervisor.h"

#define LOG_MAX (256u << 20)

struct found {
	struct supervisor *sup;
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
	if (!id_is_run(id) || nameset_has(&f->sup->names, id))
		return;
	if (f->n == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 64;
		struct run_id *grown = realloc(f->ids, cap * sizeof(*grown));

		if (!grown) {
			f->failed = true;
			return;
		}
		f->ids = grown;
		f->cap = cap;
	}
	memcpy(f->ids[f->n++].text, id, sizeof(id));
}

/* ---- one log */

struct tale {
	json_t *spawn, *complete; /* events, owned */
	int64_t spawned_ms, ended_ms;
	uint64_t types, bytes;
};

static void tale_fini(struct tale *t)
{
	json_decref(t->spawn);
	json_decref(t->complete);
}

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

static void fill_totals(struct catalog_totals *out, const json_t *t)
{
	out->input_tokens = json_get_int(t, "inputTokens", 0);
	out->output_tokens = json_get_int(t, "outputTokens", 0);
	out->cost_microusd = json_get_fixed(t, "costCents", 4, 0);
	out->duration_ms = json_get_int(t, "durationMs", 0);
	out->calls = json_get_int(t, "calls", 0);
	out->uncosted_calls = json_get_int(t, "uncostedCalls", 0);
	out->failed_calls = json_get_int(t, "failedCalls", 0);
}

/* Into the catalog, and for who reads it now. */
static void salvage_row(struct draft *d, const struct catalog_row *row, struct buf *rows)
{
	draft_catalog(d, row, NULL);
	catalog_encode(rows, row);
}

static void write_rows(struct draft *d, const struct tale *t, const char *id, struct buf *rows)
{
	const json_t *o = json_object_get(t->spawn, "content");
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
	fill_totals(&row.totals, json_object_get(o, "totals"));
	salvage_row(d, &row, rows);
}

static int salvage_run(struct supervisor *s, const char *id, struct draft *d, struct buf *rows,
		       const struct restart_hooks *hooks)
{
	struct tale t = {0};
	char path[LOGBOOK_PATH], *data = NULL;
	size_t len = 0;
	int rv;

	logbook_run_path(id, path);
	rv = logbook_read(s->book->root_fd, path, LOG_MAX, &data, &len, NULL);
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
		rv = nameset_add(&s->names, id);
	}
	tale_fini(&t);
	return rv == AVA_ENOMEM ? rv : 0;
}

/* ---- all of them */

static void nothing(int rv, void *user)
{
	/* A row that was not written is found missing again at the next start. */
}

int salvage_runs(struct supervisor *s, const struct restart_hooks *hooks, struct buf *rows,
		 struct ava_error *err)
{
	struct found f = {.sup = s};
	struct draft *d = NULL;
	bool committed = false;
	int rv = 0;

	(void)sys->list(s->book->root_fd, "logs/subagents", found_name, &f);
	if (f.failed)
		rv = AVA_ENOMEM;
	for (size_t i = 0; i < f.n && rv == 0; i++) {
		if (!d)
			d = draft_new(s->book);
		rv = d ? salvage_run(s, f.ids[i].text, d, rows, hooks) : AVA_ENOMEM;
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
