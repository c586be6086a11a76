/* Rows of the catalog to bytes and back; see catalog.h.
 *
 * Rows are written in one canonical order, like events. What is not in it is
 * read with the general JSON parser, so that a row that a newer ava has
 * extended is read by this one. A line that is JSON but no row is AVA_ECORRUPT: the reader goes
 * on with the next line and says so. */
#include "journal/catalog.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "journal/catalog_flat.h"

#define CENTS_DECIMALS 4 /* micro-USD as cents */

static const char *const kind_names[] = {[CATALOG_SPAWN] = "spawn", [CATALOG_END] = "end"};

static void put_str(struct jw *w, const char *key, const char *s)
{
	jw_str(w, key, s != NULL ? s : "");
}

static void put_time(struct jw *w, const char *key, int64_t ms)
{
	char iso[CLOCK_ISO_LEN + 1] = "";

	if (ms >= 0)
		clock_iso(ms, iso);
	jw_str(w, key, iso);
}

static void put_totals(struct jw *w, const struct catalog_totals *t)
{
	jw_object(w, "totals");
	jw_int(w, "inputTokens", t->input_tokens);
	jw_int(w, "outputTokens", t->output_tokens);
	jw_int(w, "tokens", t->input_tokens + t->output_tokens);
	jw_fixed(w, "costCents", t->cost_microusd, CENTS_DECIMALS);
	jw_int(w, "durationMs", t->duration_ms);
	jw_int(w, "calls", t->calls);
	jw_int(w, "uncostedCalls", t->uncosted_calls);
	jw_int(w, "failedCalls", t->failed_calls);
	jw_end(w);
}

static void put_shown(struct jw *w, const struct catalog_shown *s)
{
	jw_object(w, "shown");
	jw_str(w, "task", s->task);
	put_str(w, "cwd", s->cwd);
	put_str(w, "stopReason", s->stop_reason);
	jw_int(w, "iterations", s->iterations);
	jw_object(w, "limits");
	jw_fixed(w, "seconds", s->limit_ms, 3);
	if (s->limit_microusd < 0)
		jw_null(w, "costCents");
	else
		jw_fixed(w, "costCents", s->limit_microusd, CENTS_DECIMALS);
	jw_int(w, "tokens", s->limit_tokens);
	jw_int(w, "iterations", s->limit_iterations);
	jw_end(w);
	jw_end(w);
}

int catalog_encode(struct buf *out, const struct catalog_row *row)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "row", kind_names[row->kind]);
	jw_int(&w, "lsn", (int64_t)row->lsn);
	put_str(&w, "id", row->id);
	put_str(&w, "traceId", row->trace_id);
	put_str(&w, "sessionId", row->session_id);
	put_str(&w, "userId", row->user_id);
	put_str(&w, "role", row->role);
	put_str(&w, "model", row->model);
	jw_str(&w, "status", ava_status_name(row->status));
	put_str(&w, "requestId", row->request_id);
	put_str(&w, "origin", row->origin);
	if (row->group_id != NULL && row->group_id[0] != '\0')
		jw_str(&w, "groupId", row->group_id);
	put_time(&w, "startedAt", row->started_ms);
	put_time(&w, "endedAt", row->ended_ms);
	jw_int(&w, "bytes", (int64_t)row->bytes);
	jw_int(&w, "types", (int64_t)row->types);
	put_totals(&w, &row->totals);
	if (row->shown.task != NULL)
		put_shown(&w, &row->shown);
	jw_end(&w);
	buf_addc(out, '\n');
	return buf_check(out);
}

/* A string that must be there: `row` keeps pointing into the parsed tree. */
static bool take_str(const json_t *o, const char *key, const char **out)
{
	*out = json_get_str(o, key);
	return *out != NULL;
}

static bool take_time(const json_t *o, const char *key, int64_t *out)
{
	const char *s = json_get_str(o, key);

	if (s == NULL)
		return false;
	*out = s[0] == '\0' ? -1 : clock_parse_iso(s, strlen(s));
	return s[0] == '\0' || *out >= 0;
}

/* Counts are never negative; -1 says that one is missing or of another type. */
static bool take_count(const json_t *o, const char *key, int64_t *out)
{
	*out = json_get_int(o, key, -1);
	return *out >= 0;
}

static bool take_kind(const json_t *o, enum catalog_kind *out)
{
	const char *s = json_get_str(o, "row");

	for (unsigned i = 0; s != NULL && i < ARRAY_LEN(kind_names); i++)
		if (strcmp(s, kind_names[i]) == 0) {
			*out = (enum catalog_kind)i;
			return true;
		}
	return false;
}

static bool take_status(const json_t *o, enum ava_status *out)
{
	const char *s = json_get_str(o, "status");

	for (unsigned i = 0; s != NULL && i < AVA_NSTATUSES; i++)
		if (strcmp(s, ava_status_name((enum ava_status)i)) == 0) {
			*out = (enum ava_status)i;
			return true;
		}
	return false;
}

static bool take_totals(const json_t *o, struct catalog_totals *t)
{
	const json_t *totals = json_object_get(o, "totals");

	if (!json_is_object(totals))
		return false;
	t->cost_microusd = json_get_fixed(totals, "costCents", CENTS_DECIMALS, -1);
	return t->cost_microusd >= 0 && take_count(totals, "inputTokens", &t->input_tokens) &&
	       take_count(totals, "outputTokens", &t->output_tokens) &&
	       take_count(totals, "durationMs", &t->duration_ms) &&
	       take_count(totals, "calls", &t->calls) &&
	       take_count(totals, "uncostedCalls", &t->uncosted_calls) &&
	       take_count(totals, "failedCalls", &t->failed_calls);
}

/* Rows of older versions have none; one that lacks a part is shown without. */
static void take_shown(const json_t *o, struct catalog_shown *s)
{
	const json_t *shown = json_object_get(o, "shown");
	const json_t *limits = json_object_get(shown, "limits");

	if (!take_str(shown, "task", &s->task) || !take_str(shown, "cwd", &s->cwd) ||
	    !take_str(shown, "stopReason", &s->stop_reason)) {
		*s = (struct catalog_shown){0};
		return;
	}
	s->iterations = json_get_int(shown, "iterations", 0);
	s->limit_ms = json_get_fixed(limits, "seconds", 3, 0);
	s->limit_microusd = json_get_fixed(limits, "costCents", CENTS_DECIMALS, -1);
	s->limit_tokens = json_get_int(limits, "tokens", 0);
	s->limit_iterations = json_get_int(limits, "iterations", 0);
}

static bool take_row(const json_t *o, struct catalog_row *row)
{
	int64_t lsn, bytes, types;

	if (!take_count(o, "lsn", &lsn) || !take_count(o, "bytes", &bytes) ||
	    !take_count(o, "types", &types))
		return false;
	row->lsn = (uint64_t)lsn;
	row->bytes = (uint64_t)bytes;
	row->types = (uint64_t)types;
	take_shown(o, &row->shown);
	row->group_id = json_get_str(o, "groupId");
	if (row->group_id == NULL)
		row->group_id = "";
	return take_kind(o, &row->kind) && take_status(o, &row->status) &&
	       take_str(o, "id", &row->id) && take_str(o, "traceId", &row->trace_id) &&
	       take_str(o, "sessionId", &row->session_id) && take_str(o, "userId", &row->user_id) &&
	       take_str(o, "role", &row->role) && take_str(o, "model", &row->model) &&
	       take_str(o, "requestId", &row->request_id) && take_str(o, "origin", &row->origin) &&
	       take_time(o, "startedAt", &row->started_ms) &&
	       take_time(o, "endedAt", &row->ended_ms) && take_totals(o, &row->totals);
}

int catalog_parse(const char *line, size_t len, struct catalog_row *row, struct ava_error *err)
{
	json_t *o;

	*row = (struct catalog_row){0};
	if (catalog_flat(line, len, row))
		return 0;
	o = json_parse(line, len, err);
	if (o == NULL)
		return err_wrap(err, AVA_ECORRUPT, "catalog row");
	row->owned = o;
	if (json_is_object(o) && take_row(o, row))
		return 0;
	catalog_row_fini(row);
	return err_set(err, AVA_ECORRUPT, "catalog row: a field is missing or of another type");
}

void catalog_row_fini(struct catalog_row *row)
{
	if (row->flat)
		free(row->owned);
	else
		json_decref(row->owned);
	*row = (struct catalog_row){0};
}
