/* Rows of the catalog to bytes and back; see catalog.h.
 *
 * Rows are written in one canonical order, like events. What is not in it is
 * read with the general JSON parser. A line that is JSON but no row is AVA_ECORRUPT: the reader
 * goes on with the next line and says so. */
#include "journal/catalog.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"

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

/* ---- rows in canonical form
 *
 * Taken apart by their fixed texts: a start reads every row there is, a listing thousands.
 * The line is copied once and its strings end where their closing quotes stood. Whatever is
 * not in canonical form, a string with an escape among it, is left to the general parser. */

struct cursor {
	char *at, *end;
};

#define TEXT(c, text) skip(c, text, sizeof(text) - 1)

static bool skip(struct cursor *c, const char *text, size_t len)
{
	if ((size_t)(c->end - c->at) < len || memcmp(c->at, text, len) != 0)
		return false;
	c->at += len;
	return true;
}

/* As we print it: no leading zero, no sign. */
static bool number(struct cursor *c, int64_t *out)
{
	const char *from = c->at;
	int64_t n = 0;

	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, *c->at - '0', &n))
			return false;
	*out = n;
	return c->at > from && (*from != '0' || c->at == from + 1);
}

/* "2.35" with at most `decimals` behind the point, one at least. */
static bool fixed(struct cursor *c, unsigned decimals, int64_t *out)
{
	unsigned n = 0;

	if (!number(c, out) || !TEXT(c, "."))
		return false;
	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++, n++)
		if (n == decimals || __builtin_mul_overflow(*out, 10, out) ||
		    __builtin_add_overflow(*out, *c->at - '0', out))
			return false;
	for (unsigned i = n; i < decimals; i++)
		if (__builtin_mul_overflow(*out, 10, out))
			return false;
	return n > 0;
}

/* The body of a string and its closing quote, which becomes its end. */
static bool string(struct cursor *c, const char **out)
{
	*out = c->at;
	for (; c->at < c->end && *c->at != '"'; c->at++)
		if (*c->at == '\\' || (unsigned char)*c->at < 0x20)
			return false;
	if (c->at == c->end)
		return false;
	*c->at++ = '\0';
	return true;
}

static bool when(struct cursor *c, int64_t *out)
{
	const char *s;

	if (!string(c, &s))
		return false;
	*out = s[0] == '\0' ? -1 : clock_parse_iso(s, strlen(s));
	return s[0] == '\0' || *out >= 0;
}

static bool status(struct cursor *c, enum ava_status *out)
{
	const char *s;

	if (!string(c, &s))
		return false;
	for (unsigned i = 0; i < AVA_NSTATUSES; i++)
		if (strcmp(s, ava_status_name((enum ava_status)i)) == 0) {
			*out = (enum ava_status)i;
			return true;
		}
	return false;
}

static bool totals(struct cursor *c, struct catalog_totals *t)
{
	int64_t sum;

	return TEXT(c, ",\"totals\":{\"inputTokens\":") && number(c, &t->input_tokens) &&
	       TEXT(c, ",\"outputTokens\":") && number(c, &t->output_tokens) &&
	       TEXT(c, ",\"tokens\":") && number(c, &sum) && TEXT(c, ",\"costCents\":") &&
	       fixed(c, 4, &t->cost_microusd) && TEXT(c, ",\"durationMs\":") &&
	       number(c, &t->duration_ms) && TEXT(c, ",\"calls\":") && number(c, &t->calls) &&
	       TEXT(c, ",\"uncostedCalls\":") && number(c, &t->uncosted_calls) &&
	       TEXT(c, ",\"failedCalls\":") && number(c, &t->failed_calls) && TEXT(c, "}");
}

static bool cost_limit(struct cursor *c, int64_t *out)
{
	if (!TEXT(c, "null"))
		return fixed(c, 4, out);
	*out = -1;
	return true;
}

static bool shown(struct cursor *c, struct catalog_shown *s)
{
	if (!TEXT(c, ",\"shown\":{\"task\":\""))
		return true; /* the row of a spawn */
	return string(c, &s->task) && TEXT(c, ",\"cwd\":\"") && string(c, &s->cwd) &&
	       TEXT(c, ",\"stopReason\":\"") && string(c, &s->stop_reason) &&
	       TEXT(c, ",\"iterations\":") && number(c, &s->iterations) &&
	       TEXT(c, ",\"limits\":{\"seconds\":") && fixed(c, 3, &s->limit_ms) &&
	       TEXT(c, ",\"costCents\":") && cost_limit(c, &s->limit_microusd) &&
	       TEXT(c, ",\"tokens\":") && number(c, &s->limit_tokens) &&
	       TEXT(c, ",\"iterations\":") && number(c, &s->limit_iterations) && TEXT(c, "}}");
}

/* Only rows of a group's runs have it. */
static bool group(struct cursor *c, const char **out)
{
	*out = "";
	return !TEXT(c, ",\"groupId\":\"") || string(c, out);
}

static bool kind(struct cursor *c, enum catalog_kind *out)
{
	*out = CATALOG_SPAWN;
	if (TEXT(c, "{\"row\":\"spawn\","))
		return true;
	*out = CATALOG_END;
	return TEXT(c, "{\"row\":\"end\",");
}

static bool take(struct cursor *c, struct catalog_row *row)
{
	int64_t lsn, bytes, types;

	if (!kind(c, &row->kind) || !TEXT(c, "\"lsn\":") || !number(c, &lsn) ||
	    !TEXT(c, ",\"id\":\"") || !string(c, &row->id) || !TEXT(c, ",\"traceId\":\"") ||
	    !string(c, &row->trace_id) || !TEXT(c, ",\"sessionId\":\"") ||
	    !string(c, &row->session_id) || !TEXT(c, ",\"userId\":\"") ||
	    !string(c, &row->user_id) || !TEXT(c, ",\"role\":\"") || !string(c, &row->role) ||
	    !TEXT(c, ",\"model\":\"") || !string(c, &row->model) || !TEXT(c, ",\"status\":\"") ||
	    !status(c, &row->status) || !TEXT(c, ",\"requestId\":\"") ||
	    !string(c, &row->request_id) || !TEXT(c, ",\"origin\":\"") ||
	    !string(c, &row->origin) || !group(c, &row->group_id) ||
	    !TEXT(c, ",\"startedAt\":\"") || !when(c, &row->started_ms) ||
	    !TEXT(c, ",\"endedAt\":\"") || !when(c, &row->ended_ms) || !TEXT(c, ",\"bytes\":") ||
	    !number(c, &bytes) || !TEXT(c, ",\"types\":") || !number(c, &types))
		return false;
	row->lsn = (uint64_t)lsn;
	row->bytes = (uint64_t)bytes;
	row->types = (uint64_t)types;
	return totals(c, &row->totals) && shown(c, &row->shown) && TEXT(c, "}") && c->at == c->end;
}

static bool catalog_flat(const char *line, size_t len, struct catalog_row *row)
{
	char *copy = utf8_valid(line, len) ? malloc(len + 1) : NULL;
	struct cursor c;

	if (copy == NULL)
		return false;
	c = (struct cursor){copy, copy + len};
	memcpy(copy, line, len);
	copy[len] = '\0';
	if (take(&c, row)) {
		row->owned = copy;
		row->flat = true;
		return true;
	}
	free(copy);
	*row = (struct catalog_row){0};
	return false;
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

/* The row of a spawn has none; one that lacks a part is shown without. */
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
