/* Events as text; logtext.h.
 *
 * A form for each kind that deserves words of its own, in a table; every other kind prints
 * its name and content. What is missing in the content is left out, since a log may be older
 * or newer than this program. */
#include "cli/logtext.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)
#define TEXT_CHARS     500
#define ARGS_CHARS     300
#define FAILED         "ToolResult, failed" /* a kind of its own */

int logtext_cut(struct buf *out, const char *s, size_t max_chars)
{
	size_t len = strlen(s), keep = utf8_prefix(s, len, max_chars), start = out->len;

	buf_add(out, s, keep);
	for (size_t i = start; i < out->len; i++)
		if (out->data[i] == '\n' || out->data[i] == '\r' || out->data[i] == '\t')
			out->data[i] = ' ';
	if (keep < len)
		buf_adds(out, "\xe2\x80\xa6");
	return buf_check(out);
}

int logtext_json(struct buf *out, const json_t *v, size_t max_chars)
{
	char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	int rv;

	if (text == NULL)
		return AVA_ENOMEM;
	rv = logtext_cut(out, text, max_chars);
	free(text);
	return rv;
}

int logtext_args(struct buf *out, const json_t *args, size_t max_chars)
{
	if (json_is_string(args)) /* a preview of long arguments */
		return logtext_cut(out, json_string_value(args), max_chars);
	return args != NULL ? logtext_json(out, args, max_chars) : buf_check(out);
}

struct view {
	struct buf *out;
	const json_t *event, *content, *meta;
};

/* ---- forms: "{key}" is text of the content, "{@key}" of the event, "{~key}" of its metadata,
 * "{in.key}" of a member; behind "|" stands how it is said. A part in brackets is left out
 * when one of its fields has nothing to say. */

static bool add_value(struct buf *out, const json_t *in, const char *key, const char *how)
{
	const char *text = json_str(in, key);
	int64_t n = json_get_int(in, key, 0);
	bool is = json_object_get(in, key) != NULL;

	if (strcmp(how, "role") == 0) {
		buf_adds(out, format_role(text).text);
	} else if (strcmp(how, "cost") == 0) {
		buf_adds(out, format_cost_of(in, key).text);
	} else if (strcmp(how, "n") == 0) {
		buf_addf(out, "%" PRId64, n);
	} else if (strcmp(how, "ms") == 0 || strcmp(how, "bytes") == 0) {
		buf_adds(out, (how[0] == 'm' ? format_ms(n) : format_bytes(n)).text);
		is = json_get_int(in, key, -1) >= 0;
	} else if (strcmp(how, "args") == 0) {
		logtext_args(out, json_object_get(in, key), ARGS_CHARS);
	} else if (strcmp(how, "if") == 0) {
		is = json_get_bool(in, key, false);
	} else if (strcmp(how, "call") == 0) { /* "i3" is its third call of a model */
		is = text[0] == 'i';
		buf_adds(out, is ? text + 1 : "");
	} else {
		logtext_cut(out, text, TEXT_CHARS);
		is = text[0] != '\0';
		if (strcmp(how, "reason") == 0) /* what the status does not say */
			is = is && strcmp(text, json_str(in, "status")) != 0;
	}
	return is;
}

static bool add_field(const struct view *v, const char *field, size_t len)
{
	const json_t *in = field[0] == '@' ? v->event : field[0] == '~' ? v->meta : v->content;
	char path[48], *key = path, *how, *dot;

	snprintf(path, sizeof(path), "%.*s", (int)len, field);
	how = strchr(path, '|');
	if (how != NULL)
		*how++ = '\0';
	key += path[0] == '@' || path[0] == '~';
	dot = strchr(key, '.');
	if (dot != NULL) {
		*dot = '\0';
		in = json_object_get(in, key);
		key = dot + 1;
	}
	return add_value(v->out, in, key, how != NULL ? how : "");
}

static void add_form(const struct view *v, const char *form)
{
	size_t start = 0; /* of the part in brackets */
	bool whole = true;

	for (; *form != '\0'; form++) {
		if (*form == '[') {
			start = v->out->len;
			whole = true;
		} else if (*form == ']' && !whole) {
			if (v->out->len > start)
				v->out->data[v->out->len = start] = '\0';
		} else if (*form == '{') {
			size_t len = strcspn(++form, "}");

			whole &= add_field(v, form, len);
			form += len;
		} else if (*form != ']') {
			buf_addc(v->out, *form);
		}
	}
}

/* A group: its runs, and behind them what became of each. */
static void fork_or_join(const struct view *v)
{
	const json_t *runs = json_object_get(v->content, "branchIds"), *run;
	size_t i;

	buf_adds(v->out, json_object_get(json_array_get(runs, 0), "status") ? "Join " : "Fork ");
	buf_adds(v->out, json_str(v->content, "groupId"));
	json_array_foreach(runs, i, run)
	{
		buf_addf(v->out, "%s %s", i > 0 ? "," : ":", json_str(run, "subagentId"));
		if (*json_str(run, "status"))
			buf_addf(v->out, " %s", json_str(run, "status"));
	}
}

static void limit(const struct view *v)
{
	const json_t *budget = json_object_get(v->content, "budget");
	const json_t *warned = json_object_get(v->content, "warned"), *one;
	size_t i;

	buf_adds(v->out, "Limit");
	if (budget != NULL)
		buf_addf(v->out, " %" PRId64 "s, %s, %" PRId64 " tokens, %" PRId64 " iterations",
			 json_get_fixed(budget, "seconds", 0, 0),
			 format_money(json_get_fixed(budget, "costCents", 4, -1)).text,
			 json_get_int(budget, "tokens", 0), json_get_int(budget, "iterations", 0));
	if (json_array_size(warned) > 0) {
		buf_adds(v->out, " warned ");
		logtext_json(v->out, warned, TEXT_CHARS);
	}
	json_array_foreach(json_object_get(v->content, "shared"), i, one)
	{
		buf_addf(v->out, " warned %s %" PRId64 " of %" PRId64, json_str(one, "limit"),
			 json_get_fixed(one, "used", 0, 0), json_get_fixed(one, "of", 0, 0));
	}
	if (json_get_bool(v->content, "last", false))
		buf_adds(v->out, " last call");
}

static const struct {
	const char *type, *form;
	void (*add)(const struct view *v); /* instead of a form */
} kinds[] = {
	{"SessionStart", "SessionStart[ client={client}][ cwd={cwd}]"},
	{"SessionEnd", "SessionEnd[ client={client}][ cwd={cwd}]"},
	{"UserMessage", "User[ ({@userId})][: {text}]"},
	{"AssistantMessage", "Ava[: {text}]"},
	{"SpawnProposed", "SpawnProposed {proposalId}[ {quote.role|role}, up to "
			  "{quote.costCents|cost}][: {config.task}]"},
	{"SpawnConfirmed", "SpawnConfirmed {proposalId}[ by {by}][: {reason}]"},
	{"SpawnRejected", "SpawnRejected {proposalId}[ by {by}][: {reason}]"},
	{"SpawnExpired", "SpawnExpired {proposalId}[ by {by}][: {reason}]"},
	{"SubagentSpawn", "SubagentSpawn {subagentId} role={role|role}[ model={model}]"
			  "[ user={@userId}][ session={@sessionId}][: {task}]"},
	{"SubagentComplete",
	 "SubagentComplete {subagentId} status={status}[ reason={stopReason|reason}]"
	 "[ cost={totals.costCents|cost} tokens={totals.tokens|n}][: {summary}]"},
	{"InferStart", "InferStart {model}[ {callId}]"},
	{"InferEnd", "InferEnd {callId} ([{tokens.input|n} in, {tokens.output|n} out]"
		     "[, {~costCents|cost}][, {~duration|ms}][, {stopReason}])"},
	{"ToolCall", "ToolCall {name} {args|args}"},
	{"ToolResult", "ToolResult {name} (success[, {bytes|bytes}][, {~duration|ms}])"},
	{FAILED, "ToolResult {name} (failed[, {errorClass}][, {bytes|bytes}][, {~duration|ms}])"
		 "[: {output}]"},
	{"ExtendedThinking", "Thinking: \"{thinking}\""},
	{"CostUpdate",
	 "CostUpdate cost={costCents|cost} tokens={tokens|n}[ (estimated){estimated|if}]"},
	{"StateRead", "StateRead {key}"},
	{"StateWrite", "StateWrite {key}"},
	{"Limit", NULL, limit},
	{"Exhausted", "Exhausted {resource}"},
	{"Fork", NULL, fork_or_join},
	{"Join", NULL, fork_or_join},
	{"Steering", "Steering[: {text}][ ({outcome})]"},
	{"Waiting", "Waiting {state}[: {question}][ -> {answer}]"},
	{"Checkpoint", "Checkpoint {name}[ (before model call {callId|call})]"},
	{"Activity", "Activity[: {text}]"},
	{"Error", "Error[ {class}][: {message}]"},
};

int logtext_event(struct buf *out, const json_t *event)
{
	struct view v = {out, event, json_object_get(event, "content"),
			 json_object_get(event, "metadata")};
	const char *type = json_str(event, "eventType");

	if (strcmp(type, "ToolResult") == 0 && !json_get_bool(v.content, "success", false))
		type = FAILED;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].type, type) != 0)
			continue;
		if (kinds[i].form != NULL)
			add_form(&v, kinds[i].form);
		else
			kinds[i].add(&v);
		return buf_check(out);
	}
	buf_adds(out, type);
	if (json_object_size(v.content) > 0) {
		buf_addc(out, ' ');
		logtext_json(out, v.content, TEXT_CHARS);
	}
	return buf_check(out);
}

static void date_line(struct logtext *l, FILE *f, int64_t time_ms)
{
	struct format date = format_date(time_ms);

	if (l->date[0] == '\0')
		snprintf(l->date, sizeof(l->date), "%.15s", format_date(clock_wall_ms()).text);
	if (strcmp(l->date, date.text) == 0)
		return;
	snprintf(l->date, sizeof(l->date), "%.15s", date.text);
	term_colour(f, TERM_DIM);
	fprintf(f, "-- %s --", date.text);
	term_colour(f, TERM_PLAIN);
	fputc('\n', f);
}

/* Of the text: what went wrong, what ended well, what is only said. */
static enum term_colour colour_of(const json_t *event)
{
	const json_t *content = json_object_get(event, "content");
	const char *type = json_str(event, "eventType");

	if (strcmp(type, "Error") == 0 || strcmp(type, "Exhausted") == 0)
		return TERM_RED;
	if (strcmp(type, "ToolResult") == 0)
		return json_get_bool(content, "success", true) ? TERM_PLAIN : TERM_RED;
	if (strcmp(type, "SubagentComplete") == 0)
		return strcmp(json_str(content, "status"), "success") == 0 ? TERM_GREEN
									   : TERM_YELLOW;
	if (strcmp(type, "UserMessage") == 0 || strcmp(type, "AssistantMessage") == 0)
		return TERM_BOLD;
	if (strcmp(type, "ExtendedThinking") == 0 || strcmp(type, "Activity") == 0)
		return TERM_DIM;
	return TERM_PLAIN;
}

static void print_line(const struct logtext *l, FILE *f, const json_t *event,
		       const struct buf *text, int64_t time_ms)
{
	const char *agent = json_str(event, "agentId");
	const struct format clock = format_clock(time_ms);
	size_t indent = strlen(clock.text) + 3, column = indent;
	enum term_colour colour = colour_of(event);

	term_colour(f, TERM_DIM);
	fprintf(f, "[%s]", clock.text);
	if (l->agents && agent[0] != '\0' && strcmp(agent, "ava") != 0) {
		fputs(" [", f);
		term_str(f, agent);
		fputc(']', f);
		column += term_columns(agent, strlen(agent)) + 3;
	}
	term_colour(f, TERM_PLAIN);
	fputc(' ', f);
	if (colour != TERM_PLAIN)
		term_colour(f, colour);
	term_wrapped_line(f, text->data, text->len, column, indent);
	if (colour != TERM_PLAIN)
		term_colour(f, TERM_PLAIN);
	fputc('\n', f);
}

int logtext_print(struct logtext *l, FILE *f, const char *line, size_t len, int64_t time_ms,
		  struct ava_error *err)
{
	json_t *event = json_parse(line, len, err);
	struct buf text;
	int rv;

	if (event == NULL)
		return AVA_ECORRUPT;
	buf_init(&text, LINE_MAX_BYTES);
	rv = logtext_event(&text, event);
	if (rv == 0 && text.len > 0) {
		date_line(l, f, time_ms);
		print_line(l, f, event, &text, time_ms);
	} else if (rv != 0) {
		err_set(err, rv, "no memory to show an event of %zu bytes", len);
	}
	buf_fini(&text);
	json_decref(event);
	return rv;
}
