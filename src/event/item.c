/* Items of events; item.h. A table says for each kind of event which function fills in the Item;
 * what has no row, or is none of a person's business (a call of Ava's own model, an end by a newer
 * quote), is no Item.
 *
 * What can fail: memory; a line that is no event is no Item. */
#include "event/item.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "base/words.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "event/event.h"

#define TITLE_CHARS 300
#define TASK_CHARS  4000

/* An Item while it is made: borrowed from the parsed event. */
struct item_draft {
	struct item *it;
	const json_t *event, *content;
	const char *agent, *text, *role;
	char title[1200];
	struct jw *detail; /* inside of "detail" */
};

const char *item_kind_name(enum item_kind kind)
{
	static const char *const names[] = {
#define X(name) [ITEM_##name] = #name,
		ITEM_KINDS(X)
#undef X
	};

	return names[kind];
}

enum item_kind item_kind_of(const char *name)
{
	enum item_kind kind = 0;

	while (kind < ITEM_NKINDS && strcmp(item_kind_name(kind), name) != 0)
		kind++;
	return kind;
}

static const char *item_str(const struct item_draft *d, const char *key)
{
	return json_str(d->content, key);
}

/* Copies a text of the content into the detail; "" is left out. */
static void item_tell(struct item_draft *d, const char *key, const char *from)
{
	const char *value = item_str(d, from);

	if (*value)
		jw_preview(d->detail, key, value, strlen(value), EVENT_PREVIEW_CHARS);
}

static void item_raw(struct item_draft *d, const char *key, const json_t *value)
{
	struct buf b;

	buf_init(&b, 1u << 17);
	if (value && json_dump(&b, value) == 0)
		jw_raw(d->detail, key, b.data, b.len);
	buf_fini(&b);
}

static bool item_by_ava(const char *agent, size_t len)
{
	return len == 3 && memcmp(agent, "ava", 3) == 0;
}

static bool item_is_ava(const struct item_draft *d)
{
	return item_by_ava(d->agent, strlen(d->agent));
}

/* "S-7f3a2b", or with its role "S-7f3a2b (Researcher)". */
static const char *item_who(const struct item_draft *d, char out[100])
{
	if (*d->role)
		snprintf(out, 100, "%.30s (%s)", d->it->run, format_role(d->role).text);
	else
		snprintf(out, 100, "%.30s", d->it->run);
	return out;
}

/* ---- each kind of event. false: no Item. */

static bool item_said(struct item_draft *d)
{
	bool person = strcmp(json_str(d->event, "eventType"), "UserMessage") == 0;

	d->it->kind = ITEM_said;
	d->it->by_ava = !person && item_is_ava(d);
	d->text = item_str(d, "text");
	snprintf(d->it->ask, sizeof(d->it->ask), "%s", item_str(d, "ask"));
	jw_str(d->detail, "by", person ? "person" : item_is_ava(d) ? "ava" : "run");
	item_tell(d, "origin", "origin");
	snprintf(d->title, sizeof(d->title), "%s",
		 person           ? "You"
		 : item_is_ava(d) ? "Ava"
				  : d->agent);
	return *d->text != 0;
}

/* What a person says to a run at work; its answer to a question is told by that question. */
static bool item_steered(struct item_draft *d)
{
	if (strcmp(item_str(d, "outcome"), "queued") != 0)
		return false;
	d->it->kind = ITEM_said;
	d->text = item_str(d, "text");
	snprintf(d->it->run, sizeof(d->it->run), "%s", d->agent);
	jw_str(d->detail, "by", "person");
	item_tell(d, "origin", "origin");
	snprintf(d->title, sizeof(d->title), "You, to %s", d->agent);
	return true;
}

static bool item_proposed(struct item_draft *d)
{
	const json_t *config = json_object_get(d->content, "config");
	const json_t *quote = json_object_get(d->content, "quote");
	const json_t *members = json_object_get(config, "members");
	size_t n = json_array_size(members);

	d->it->kind = ITEM_proposed;
	d->role = json_str(quote, "role");
	d->text = json_str(n > 0 ? json_array_get(members, 0) : config, "task");
	snprintf(d->it->ask, sizeof(d->it->ask), "%s", item_str(d, "proposalId"));
	snprintf(d->title, sizeof(d->title), WORDS_WAITS(d->it->ask, ""));
	jw_int(d->detail, "runs", n > 0 ? (int64_t)n : 1);
	item_raw(d, "minutes", json_object_get(quote, "minutes"));
	item_raw(d, "cost_cents", json_object_get(quote, "costCents"));
	item_tell(d, "replaces", "replaces");
	return d->it->ask[0] != 0;
}

/* The end of a quote. A quote that replaces it is told by itself. */
static bool item_settled(struct item_draft *d)
{
	const char *type = json_str(d->event, "eventType"), *changes = item_str(d, "changes");
	const char *by = item_str(d, "replacedBy");
	bool yes = strcmp(type, "SpawnConfirmed") == 0, late = strcmp(type, "SpawnExpired") == 0;

	d->it->kind = late ? ITEM_expired : ITEM_answered;
	snprintf(d->it->ask, sizeof(d->it->ask), "%s", item_str(d, "proposalId"));
	if (!late) {
		jw_str(d->detail, "answer", *by ? "replaced" : yes ? "yes" : "no");
		item_tell(d, "replaced_by", "replacedBy");
		item_tell(d, "by", "by");
		item_tell(d, "origin", "origin");
		item_tell(d, "reason", "reason");
		item_tell(d, "changes", "changes");
	}
	if (*by)
		snprintf(d->title, sizeof(d->title), WORDS_REPLACED(d->it->ask, by));
	else if (late)
		snprintf(d->title, sizeof(d->title), WORDS_EXPIRED(d->it->ask));
	else if (!yes)
		snprintf(d->title, sizeof(d->title), WORDS_REJECTED(d->it->ask));
	else if (*changes)
		snprintf(d->title, sizeof(d->title), WORDS_CONFIRMED(changes));
	else
		snprintf(d->title, sizeof(d->title),
			 WORDS_CONFIRMED_AS_QUOTED(d->it->ask, item_str(d, "orderId")));
	return d->it->ask[0] != 0;
}

static bool item_started(struct item_draft *d)
{
	char who[100];

	d->it->kind = ITEM_started;
	d->role = item_str(d, "role");
	d->text = item_str(d, "task");
	snprintf(d->it->ask, sizeof(d->it->ask), "%s", item_str(d, "proposalId"));
	snprintf(d->title, sizeof(d->title), WORDS_STARTED(item_who(d, who)));
	item_tell(d, "trace", "traceId");
	item_tell(d, "model", "model");
	item_tell(d, "folder", "cwd");
	item_tell(d, "group", "groupId");
	item_tell(d, "order", "order");
	item_tell(d, "resumed_from", "resumedFrom");
	return true;
}

static bool item_doing(struct item_draft *d)
{
	d->it->kind = ITEM_doing;
	d->text = item_str(d, "text");
	snprintf(d->it->run, sizeof(d->it->run), "%s", item_is_ava(d) ? "" : d->agent);
	snprintf(d->title, sizeof(d->title), "%s", item_is_ava(d) ? "Ava" : d->agent);
	return *d->text != 0;
}

/* The first call of a run: it has its slot. */
static bool item_calling(struct item_draft *d)
{
	d->it->kind = ITEM_doing;
	d->text = WORDS_STARTING;
	snprintf(d->it->run, sizeof(d->it->run), "%s", d->agent);
	snprintf(d->title, sizeof(d->title), "%s", d->agent);
	return !item_is_ava(d) && strcmp(item_str(d, "callId"), "i1") == 0;
}

/* A call of Ava's own, and its end; those of a run are told by its activity. */
static bool item_call(struct item_draft *d)
{
	const json_t *success = json_object_get(d->content, "success");

	d->it->kind = ITEM_doing;
	d->text = success ? "" : item_str(d, "name");
	snprintf(d->title, sizeof(d->title), "Ava");
	item_tell(d, "call", "callId");
	item_tell(d, "tool", "name");
	item_raw(d, "args", json_object_get(d->content, "args"));
	item_raw(d, "success", success);
	item_tell(d, "output", "output");
	return item_is_ava(d);
}

static bool item_pause(struct item_draft *d)
{
	const char *state = item_str(d, "state"), *words = item_str(d, "question");
	bool on = strcmp(state, "asked") == 0 || strcmp(state, "paused") == 0;
	char who[100];

	d->it->kind = ITEM_noted;
	jw_str(d->detail, "pause", state);
	item_tell(d, "until", "parkedUntil");
	item_tell(d, "by", "by");
	item_tell(d, "origin", "origin");
	snprintf(d->title, sizeof(d->title), WORDS_PAUSE(item_who(d, who), on ? words : NULL));
	return strcmp(state, "stopped") != 0;
}

/* A question of a run, and its end. A parked run whose person was told of the quota before is only
 * at rest. */
static bool item_waiting(struct item_draft *d)
{
	static const struct {
		const char *state;
		enum item_kind kind;
	} states[] = {{"asked", ITEM_asked},      {"parked", ITEM_doing},
		      {"waits", ITEM_answered},   {"answered", ITEM_answered},
		      {"refused", ITEM_answered}, {"stopped", ITEM_answered},
		      {"expired", ITEM_expired}};
	const char *state = item_str(d, "state"), *question = item_str(d, "question");
	size_t i = 0;
	char who[100];

	if (strcmp(item_str(d, "kind"), "pause") == 0)
		return item_pause(d);
	while (i < ARRAY_LEN(states) && strcmp(states[i].state, state) != 0)
		i++;
	if (i == ARRAY_LEN(states))
		return false;
	d->it->kind = states[i].kind;
	snprintf(d->it->ask, sizeof(d->it->ask), "%.24s:%.38s", item_str(d, "subagentId"),
		 item_str(d, "callId"));
	jw_str(d->detail, d->it->kind == ITEM_answered ? "answer" : "state", state);
	item_tell(d, "of", "kind");
	item_tell(d, "limit", "limit");
	item_who(d, who);
	if (d->it->kind == ITEM_answered) {
		d->text = item_str(d, "answer");
		item_tell(d, "by", "by");
		item_tell(d, "origin", "origin");
		if (strcmp(state, "stopped") == 0)
			snprintf(d->title, sizeof(d->title), WORDS_ASKS_NO_MORE(who));
		else
			snprintf(d->title, sizeof(d->title), WORDS_HAS_ANSWER(who));
		return true;
	}
	d->text = question;
	item_raw(d, "choices", json_object_get(d->content, "choices"));
	item_tell(d, "default", "default");
	item_tell(d, "until", "expiresAt");
	item_tell(d, "parked_until", "parkedUntil");
	if (d->it->kind == ITEM_expired)
		snprintf(d->title, sizeof(d->title), WORDS_ASKED_IN_VAIN(who));
	else if (d->it->kind == ITEM_doing)
		snprintf(d->title, sizeof(d->title), "%s", who);
	else
		snprintf(d->title, sizeof(d->title), WORDS_ASKS_YOU(who));
	return true;
}

/* An amount of the limit that ended a run, in its unit. */
static int64_t item_limit(const struct item_draft *d, const char *key)
{
	const struct words_limit *l = words_limit(item_str(d, "status"));

	return l ? json_get_fixed(d->content, key, l->decimals, 0) : 0;
}

/* The Ask of the run's patch (doc/ASKS.md). */
static void item_patch_ask(struct item_draft *d)
{
	snprintf(d->it->ask, sizeof(d->it->ask), "%.24s:patch", d->it->run);
}

static bool item_ended(struct item_draft *d)
{
	const json_t *totals = json_object_get(d->content, "totals");
	const char *status = item_str(d, "status");
	struct words_end end =
		words_end(d->it->run, status, item_str(d, "stopReason"), item_str(d, "errorClass"),
			  item_str(d, "error"), item_limit(d, "limit"), item_limit(d, "needs"));
	int64_t ms = json_get_int(totals, "durationMs", 0);
	char who[100];

	d->it->kind = strcmp(status, "success") == 0 ? ITEM_result : ITEM_failed;
	d->text = item_str(d, "summary");
	snprintf(d->title, sizeof(d->title),
		 WORDS_RUN_ENDED(item_who(d, who), end.what, format_seconds(ms).text,
				 format_money(json_get_fixed(totals, "costCents", 4, -1)).text));
	jw_str(d->detail, "status", status);
	item_tell(d, "reason", "stopReason");
	item_tell(d, "by", "by");
	jw_str(d->detail, "end", end.what);
	jw_int(d->detail, "ms", ms);
	jw_int(d->detail, "tokens", json_get_int(totals, "tokens", 0));
	item_raw(d, "cost_cents", json_object_get(totals, "costCents"));
	if (json_get_int(totals, "estimatedCalls", 0) > 0)
		jw_bool(d->detail, "estimated", true);
	jw_int(d->detail, "replies", json_get_int(totals, "iterations", 0));
	item_raw(d, "files", json_object_get(d->content, "files"));
	if (json_get_int(d->content, "files", 0) > 0)
		item_patch_ask(d);
	item_raw(d, "citations", json_object_get(d->content, "citations"));
	item_raw(d, "not_found", json_object_get(d->content, "notFound"));
	item_raw(d, "check", json_object_get(d->content, "check"));
	if (end.next[0])
		jw_str(d->detail, "next", end.next);
	return true;
}

/* A failure of Ava's. A run's own errors are in its log, and its end says them. */
static bool item_error(struct item_draft *d)
{
	const char *class = item_str(d, "class");
	bool held = strcmp(class, "held") == 0; /* a run, which somebody has to decide about */
	bool turn = strcmp(class, "answer") != 0;

	d->it->kind = turn ? ITEM_failed : ITEM_noted;
	d->it->by_ava = !held;
	d->text = item_str(d, "message");
	jw_str(d->detail, "class", class);
	if (held)
		snprintf(d->title, sizeof(d->title), WORDS_HELD(d->text));
	else
		snprintf(d->title, sizeof(d->title), WORDS_CANNOT(class, d->text));
	return item_is_ava(d);
}

/* A row of the memory. Its text stands in no log, so that it can be forgotten. */
static bool item_memory(struct item_draft *d)
{
	const char *key = item_str(d, "key"), *change = item_str(d, "change");

	if (!item_is_ava(d) || strncmp(key, "memory:", 7) != 0)
		return false;
	d->it->kind = ITEM_noted;
	jw_str(d->detail, "memory", key + 7);
	jw_str(d->detail, "change", change);
	snprintf(d->title, sizeof(d->title), "%s (%s)",
		 strcmp(change, "removed") == 0 ? "Forgotten" : "Noted", key + 7);
	return true;
}

/* The answer to the Ask of a patch. */
static bool item_patched(struct item_draft *d)
{
	const char *type = item_str(d, "customType");
	bool yes = strcmp(type, "applied") == 0;
	int64_t files;

	d->content = json_object_get(d->content, "data");
	snprintf(d->it->run, sizeof(d->it->run), "%s", item_str(d, "subagentId"));
	if (!item_is_ava(d) || !d->it->run[0] || (!yes && strcmp(type, "left") != 0))
		return false;
	d->it->kind = ITEM_answered;
	item_patch_ask(d);
	jw_str(d->detail, "answer", yes ? "yes" : "no");
	item_tell(d, "by", "by");
	item_tell(d, "origin", "origin");
	item_raw(d, "files", json_object_get(d->content, "files"));
	item_raw(d, "left_out", json_object_get(d->content, "leftOut"));
	files = json_get_int(d->content, "files", 0);
	if (yes)
		snprintf(d->title, sizeof(d->title),
			 WORDS_APPLIED(d->it->run, files, item_str(d, "cwd")));
	else
		snprintf(d->title, sizeof(d->title), WORDS_LEFT(d->it->run));
	return true;
}

/* A budget that is used to 50, 80 or 100 %. */
static bool item_budget(struct item_draft *d)
{
	const char *of, *period;
	int64_t percent, used, cents;

	d->content = json_object_get(d->content, "data");
	of = item_str(d, "of");
	period = item_str(d, "period");
	percent = json_get_int(d->content, "percent", 0);
	used = json_get_fixed(d->content, "usedCents", 4, 0);
	cents = json_get_fixed(d->content, "cents", 4, 0);
	d->it->kind = ITEM_noted;
	d->it->alert = true;
	item_tell(d, "budget", "period");
	item_tell(d, "of", "of");
	item_tell(d, "since", "since");
	jw_int(d->detail, "percent", percent);
	jw_fixed(d->detail, "used_cents", used, 4);
	jw_fixed(d->detail, "cents", cents, 4);
	snprintf(d->title, sizeof(d->title),
		 WORDS_BUDGET(of, period, percent, format_money(used).text,
			      format_money(cents).text));
	if (percent >= 100)
		d->text = WORDS_BUDGET_GONE;
	return true;
}

static bool item_custom(struct item_draft *d)
{
	bool budget = strcmp(item_str(d, "customType"), "budget.alert") == 0;

	return budget ? item_is_ava(d) && item_budget(d) : item_patched(d);
}

/* A standing order, or times of it that became no run. */
static bool item_order(struct item_draft *d)
{
	const char *change = item_str(d, "change");
	bool skipped = *item_str(d, "due") != '\0';

	d->it->kind = ITEM_noted;
	d->text = item_str(d, "message");
	d->it->by_ava = d->it->alert =
		skipped || strcmp(change, "asks") == 0 || strcmp(change, "done") == 0;
	item_tell(d, "order", "orderId");
	item_tell(d, "change", "change");
	item_tell(d, "by", "by");
	item_tell(d, "origin", "origin");
	if (skipped)
		snprintf(d->title, sizeof(d->title),
			 WORDS_ORDER_SAYS(item_str(d, "orderId"), d->text));
	else if (strcmp(change, "asks") == 0)
		snprintf(d->title, sizeof(d->title),
			 WORDS_ORDER_ASKS(item_str(d, "orderId"), d->text));
	else
		snprintf(d->title, sizeof(d->title),
			 WORDS_ORDER_IS(item_str(d, "orderId"), change, d->text));
	return !json_get_bool(d->content, "again", false);
}

/* A row for each kind of event that a person sees: what makes its Item. `ava`: only hers has one.
 */
static const struct item_row {
	bool (*fill)(struct item_draft *d);
	bool stays, ava;
} item_rows[EVENT_NKINDS] = {
#define X(event, fill, ...) [EVENT_##event] = {fill, true, __VA_ARGS__},
	ITEM_EVENTS(X)
#undef X
		/* These are `doing`. */
		[EVENT_Activity] = {item_doing},
	[EVENT_InferStart] = {item_calling},
	[EVENT_ToolCall] = {item_call},
	[EVENT_ToolResult] = {item_call},
};

/* NULL: a person sees nothing of this line. */
static const struct item_row *item_row(const char *line, size_t len)
{
	const struct item_row *row;
	struct event_view v;

	if (event_view(line, len, &v) != 0 || v.kind < 0)
		return NULL;
	row = &item_rows[v.kind];
	return row->fill && (!row->ava || item_by_ava(v.agent_id.s, v.agent_id.len)) ? row : NULL;
}

bool item_stays(const char *line, size_t len)
{
	const struct item_row *row = item_row(line, len);

	return row && row->stays;
}

/* ---- the Item */

/* A text as people may see it. true: it was cut. */
static bool item_text(struct jw *w, const char *key, const char *text, size_t chars,
		      const struct redact *secrets)
{
	size_t len = strlen(text), keep;
	struct buf plain, seen;

	buf_init(&plain, 8u << 20);
	buf_init(&seen, 16u << 20);
	if (redact_text(secrets, &plain, text, len) < 0)
		plain.failed = true;
	keep = plain.len > 0 ? utf8_prefix(plain.data, plain.len, chars) : 0;
	if (keep > 0)
		(void)utf8_terminal(&seen, plain.data, keep, true);
	jw_strn(w, key, seen.len > 0 ? seen.data : "", seen.len);
	if (buf_check(&plain) != 0 || buf_check(&seen) != 0)
		w->out->failed = true;
	keep = plain.len - keep;
	buf_fini(&plain);
	buf_fini(&seen);
	return keep > 0;
}

static int item_write(struct item_draft *d, struct buf *json, const struct buf *detail,
		      size_t chars, const struct redact *secrets)
{
	const struct item *it = d->it;
	struct jw w;

	jw_init(&w, json);
	jw_object(&w, NULL);
	jw_int(&w, "lsn", (int64_t)it->lsn);
	jw_str(&w, "at", json_str(d->event, "timestamp"));
	jw_str(&w, "kind", item_kind_name(it->kind));
	jw_str(&w, "session", it->session);
	jw_str(&w, "run", it->run);
	jw_str(&w, "role", d->role);
	jw_str(&w, "ask", it->ask);
	(void)item_text(&w, "title", d->title, TITLE_CHARS, secrets);
	if (item_text(&w, "text", d->text, chars, secrets) ||
	    json_get_bool(d->content, "cut", false))
		jw_bool(&w, "cut", true);
	jw_raw(&w, "detail", detail->data, detail->len);
	jw_end(&w);
	return buf_check(json);
}

static int item_fill(struct item *it, struct buf *json, const json_t *event,
		     bool (*fill)(struct item_draft *d), size_t chars, const struct redact *secrets)
{
	struct item_draft d = {.it = it,
			       .event = event,
			       .content = json_object_get(event, "content"),
			       .agent = json_str(event, "agentId"),
			       .text = ""};
	struct buf detail;
	struct jw w;
	int rv;

	*it = (struct item){.lsn = (uint64_t)json_get_int(event, "lsn", 0)};
	it->wall_ms = json_time(json_object_get(event, "timestamp"));
	snprintf(it->session, sizeof(it->session), "%s", json_str(event, "sessionId"));
	snprintf(it->user, sizeof(it->user), "%s", json_str(event, "userId"));
	snprintf(it->run, sizeof(it->run), "%s", item_str(&d, "subagentId"));
	d.role = item_str(&d, "role");
	d.detail = &w;
	buf_init(&detail, 1u << 18);
	jw_init(&w, &detail);
	jw_object(&w, NULL);
	rv = it->lsn > 0 && fill(&d) ? 0 : AVA_ENOENT;
	jw_end(&w);
	if (rv == 0)
		rv = buf_check(&detail) == 0 ? item_write(&d, json, &detail, chars, secrets)
					     : AVA_ENOMEM;
	buf_fini(&detail);
	return rv;
}

int item_make(struct item *it, struct buf *json, const char *line, size_t len, size_t chars,
	      const struct redact *secrets)
{
	const struct item_row *row = item_row(line, len);
	struct ava_error err = {0};
	json_t *event;
	int rv;

	if (!row)
		return AVA_ENOENT;
	event = json_parse(line, len, &err);
	if (!event)
		return err.code == AVA_ENOMEM ? AVA_ENOMEM : AVA_ENOENT;
	rv = item_fill(it, json, event, row->fill, chars, secrets);
	json_decref(event);
	return rv;
}
