/* A row taken apart by its fixed texts: a start reads every row there is, a
 * listing thousands. The line is copied once and its strings end where their
 * closing quotes stood. Whatever is not in canonical form, a string with an
 * escape among it, is left to the general parser (catalog.c). */
#include "journal/catalog_flat.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "codec/utf8.h"

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
		return true; /* the row of a spawn, or of an older version */
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

bool catalog_flat(const char *line, size_t len, struct catalog_row *row)
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
