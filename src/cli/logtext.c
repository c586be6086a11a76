/* Events as text; logtext.h.
 *
 * A form for each kind, in a table; a kind of a newer program prints its name and what is in
 * it, as words. What is missing in the content is left out, since a log may be older
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
#include "event/event.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)
#define TEXT_CHARS     500
#define ARGS_CHARS     300
/* Kinds of their own. */
#define FAILED "ToolResult, failed"
#define AGENT  "Custom, claude.agent"

/* Text on one line, cut the same way. */
static int logtext_cut(struct buf *out, const char *s, size_t max_chars)
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

int logtext_args(struct buf *out, const json_t *args, size_t max_chars)
{
	char *text;
	int rv;

	if (json_is_string(args)) /* a preview of long arguments */
		return logtext_cut(out, json_string_value(args), max_chars);
	if (args == NULL)
		return buf_check(out);
	text = json_dumps(args, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	rv = text != NULL ? logtext_cut(out, text, max_chars) : AVA_ENOMEM;
	free(text);
	return rv;
}

static void logtext_add_words(struct buf *out, const json_t *v)
{
	char *number = NULL;
	const char *key;
	const json_t *one;
	json_t *member;
	size_t i;

	if (json_is_string(v)) {
		buf_add(out, json_string_value(v), json_string_length(v));
	} else if (json_is_array(v)) {
		json_array_foreach(v, i, one)
		{
			buf_adds(out, i > 0 ? ", " : "");
			logtext_add_words(out, one);
		}
	} else if (json_is_object(v)) {
		i = 0;
		json_object_foreach((json_t *)v, key, member)
		{
			bool some = json_is_object(member) || json_is_array(member);

			buf_addf(out, "%s%s=%s", i++ > 0 ? ", " : "", key, some ? "(" : "");
			logtext_add_words(out, member);
			buf_adds(out, some ? ")" : "");
		}
	} else if (v != NULL) {
		number = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
		buf_adds(out, number != NULL ? number : "");
		free(number);
	}
}

/* Any value without the marks of JSON: "tests=12, kind=fast, paths=(a.c, b.c)". False: there
 * is nothing in it. */
static bool logtext_words(struct buf *out, const json_t *v, size_t max_chars)
{
	struct buf all;
	bool is;

	buf_init(&all, LINE_MAX_BYTES);
	logtext_add_words(&all, v);
	is = buf_check(&all) == 0 && all.len > 0;
	if (is)
		logtext_cut(out, all.data, max_chars);
	buf_fini(&all);
	return is;
}

struct logtext_view {
	struct buf *out;
	const json_t *event, *content, *meta;
};

/* ---- forms: "{key}" is text of the content, "{@key}" of the event, "{~key}" of its metadata,
 * "{in.key}" of a member; behind "|" stands how it is said. A part in brackets is left out
 * when one of its fields has nothing to say. */

static bool logtext_add_value(struct buf *out, const json_t *in, const char *key, const char *how)
{
	const char *text = json_str(in, key);
	int64_t n = json_get_int(in, key, 0);
	bool is = json_object_get(in, key) != NULL;

	if (strcmp(how, "role") == 0) {
		buf_adds(out, format_role(text).text);
	} else if (strcmp(how, "cost") == 0) {
		buf_adds(out, format_money(json_get_fixed(in, key, 4, -1)).text);
	} else if (strcmp(how, "most") == 0) {
		buf_adds(out, format_most_of(in, key).text);
	} else if (strcmp(how, "n") == 0) {
		buf_addf(out, "%" PRId64, n);
	} else if (strcmp(how, "ms") == 0 || strcmp(how, "bytes") == 0) {
		buf_adds(out, (how[0] == 'm' ? format_ms(n) : format_bytes(n)).text);
		is = json_get_int(in, key, -1) >= 0;
	} else if (strcmp(how, "args") == 0) {
		logtext_args(out, json_object_get(in, key), ARGS_CHARS);
	} else if (strcmp(how, "if") == 0 || strcmp(how, "unless") == 0) {
		is = json_get_bool(in, key, how[0] == 'u') == (how[0] == 'i');
	} else if (strcmp(how, "count") == 0) { /* "3 files" of a list; nothing of an empty one */
		n = (int64_t)json_array_size(json_object_get(in, key));
		buf_addf(out, "%" PRId64 "%s", n, n == 1 ? " file" : " files");
		is = n > 0;
	} else if (strcmp(how, "some") == 0) { /* a number that is not 0 */
		buf_addf(out, "%" PRId64, n);
		is = n != 0;
	} else if (strcmp(how, "words") == 0) {
		is = logtext_words(out, json_object_get(in, key), TEXT_CHARS);
	} else if (strcmp(how, "call") == 0) { /* "i3" is its third call of a model */
		is = text[0] == 'i';
		buf_adds(out, is ? text + 1 : "");
	} else {
		logtext_cut(out, text, TEXT_CHARS);
		is = text[0] != '\0';
		if (strcmp(how, "reason") == 0) /* left out when it only repeats the status */
			is = is && strcmp(text, json_str(in, "status")) != 0;
	}
	return is;
}

static bool add_field(const struct logtext_view *v, const char *field, size_t len)
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
	return logtext_add_value(v->out, in, key, how != NULL ? how : "");
}

static void add_form(const struct logtext_view *v, const char *form)
{
	size_t start = 0; /* where the part in brackets starts */
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
static void fork_or_join(const struct logtext_view *v)
{
	const json_t *runs = json_object_get(v->content, "branchIds"), *run;
	size_t i;

	buf_adds(v->out, json_object_get(json_array_get(runs, 0), "status") ? "Join " : "Fork ");
	buf_adds(v->out, json_str(v->content, "groupId"));
	json_array_foreach(runs, i, run)
	{
		buf_addf(v->out, "%s %s", i > 0 ? "," : ":", json_str(run, "subagentId"));
		if (*json_str(run, "status"))
			buf_addf(v->out, " %s", words_status(json_str(run, "status")));
	}
}

static void logtext_limit(const struct logtext_view *v)
{
	const json_t *budget = json_object_get(v->content, "budget");
	const json_t *warned = json_object_get(v->content, "warned"), *one;
	size_t i;

	buf_adds(v->out, "Limit");
	if (budget != NULL)
		buf_addf(v->out, " %s, %s, %s, %s",
			 words_amount(WORDS_LIMIT_TIME, json_get_fixed(budget, "seconds", 3, 0))
				 .text,
			 words_amount(WORDS_LIMIT_MONEY, json_get_fixed(budget, "costCents", 4, -1))
				 .text,
			 words_amount(WORDS_LIMIT_TOKENS, json_get_int(budget, "tokens", 0)).text,
			 words_amount(WORDS_LIMIT_REPLIES, json_get_int(budget, "iterations", 0))
				 .text);
	if (json_array_size(warned) > 0) {
		buf_adds(v->out, ", most is used: ");
		logtext_words(v->out, warned, TEXT_CHARS);
	}
	json_array_foreach(json_object_get(v->content, "shared"), i, one)
	{
		const char *limit = json_str(one, "limit");

		buf_addf(v->out, ", %s: %" PRId64 " of %" PRId64 " used",
			 strcmp(limit, "group_cost") == 0   ? "cents of the group"
			 : strcmp(limit, "group_time") == 0 ? "seconds of the group"
							    : "cents of the day",
			 json_get_fixed(one, "used", 0, 0), json_get_fixed(one, "of", 0, 0));
	}
	if (json_get_bool(v->content, "last", false))
		buf_adds(v->out, ", last call");
}

/* Tell what recovery mended and what it could not. */
static void recovered(const struct logtext_view *v)
{
	static const struct {
		const char *key, *form;
	} parts[] = {
		{"redoneBatches", "; {redoneBatches|some} writes done again ({redoneBytes|bytes})"},
		{"tornBytes", "; {tornBytes|bytes} of unfinished lines cut off"},
		{"abortedBatches", "; {abortedBatches|some} unfinished writes dropped"},
		{"damagedBatches", "; {damagedBatches|some} damaged writes left out"},
		{"lostBytes", "; {lostBytes|bytes} lost"},
	};
	const json_t *one;
	size_t i;

	add_form(v, "Recovered[ after {cause}]");
	for (i = 0; i < ARRAY_LEN(parts); i++)
		if (json_get_int(v->content, parts[i].key, 0) > 0)
			add_form(v, parts[i].form);
	json_array_foreach(json_object_get(v->content, "problems"), i, one)
	{
		const struct logtext_view problem = {v->out, v->event, one, v->meta};

		add_form(&problem, "; {path}: {problem}[, goes on in {continuesIn}]");
	}
}

static const struct {
	const char *type, *form;
	void (*add)(const struct logtext_view *v); /* called instead of using `form` */
} kinds[] = {
	{"SessionStart", "SessionStart[ client={client}][ cwd={cwd}]"},
	{"SessionEnd", "SessionEnd[ client={client}][ cwd={cwd}]"},
	{"UserMessage", "User[ ({@userId})][: {text}]"},
	{"AssistantMessage", "Ava[: {text}]"},
	{"SpawnProposed", "SpawnProposed {proposalId}[ {quote.role|role}, up to "
			  "{quote.costCents|most}][: {config.task}]"},
	{"SpawnConfirmed", "SpawnConfirmed {proposalId}[ by {by}][, {changes}]"},
	{"SpawnRejected", "SpawnRejected {proposalId}[ by {by}][: {reason}]"},
	{"SpawnExpired", "SpawnExpired {proposalId}[ by {by}][: {reason}]"},
	{"SubagentSpawn", "SubagentSpawn {subagentId} role={role|role}[ model={model}]"
			  "[ user={@userId}][ session={@sessionId}][: {task}]"},
	{"SubagentComplete",
	 "SubagentComplete {subagentId} status={status}[ reason={stopReason|reason}][ by={by}][ "
	 "origin={origin}][ cost={totals.costCents|cost} tokens={totals.tokens|n}][: {summary}]"},
	{"InferStart", "InferStart {model}[ {callId}]"},
	{"InferEnd", "InferEnd {callId} ([{tokens.input|n} in, {tokens.output|n} out]"
		     "[, {~costCents|cost}][, {~duration|ms}][, {stopReason}])"
		     "[: {error}][; again in {retryInMs|ms}]"},
	{"ToolCall", "ToolCall {name} {args|args}"},
	{"ToolResult", "ToolResult {name} (success[, {bytes|bytes}][, {~duration|ms}])"},
	{FAILED, "ToolResult {name} (failed[, {errorClass}][, {bytes|bytes}][, {~duration|ms}])"
		 "[: {output}]"},
	{"ExtendedThinking", "Thinking: \"{thinking}\""},
	{"CostUpdate",
	 "CostUpdate cost={costCents|cost} tokens={tokens|n}[ (estimated){estimated|if}]"},
	{"StateRead", "StateRead {key}"},
	{"StateWrite", "StateWrite {key}[ {change}]"},
	{"ContextEdit", "ContextEdit {tokensBefore|n} to {tokensAfter|n} tokens"
			"[, taken out: {removed|words}][, fetched again: {refetched|words}]"},
	{AGENT, "Claude Code: {data.type} {data.agentId} {data.status}[: {data.description}][: "
		"{data.lastMessage}]"},
	{"Custom", "Custom {customType}[: {data|words}]"},
	{"LogOpen", "LogOpen[ ava {version}][, the daemon before it was not stopped in "
		    "order{clean|unless}]"},
	{"Recovered", NULL, recovered},
	{"Seal", "Seal {n|n}[ of {files|count}][, {pruned.files|count} removed]"},
	{"Limit", NULL, logtext_limit},
	{"Exhausted", "Exhausted {resource}"},
	{"Fork", NULL, fork_or_join},
	{"Join", NULL, fork_or_join},
	{"Steering", "Steering[: {text}][ ({outcome})]"},
	{"Waiting", "Waiting {state}[ by {by}][: {question}][ -> {answer}]"},
	{"OrderFired", "OrderFired {orderId} {subagentId}[ due {due}]"},
	{"OrderChanged", "OrderChanged {orderId} {change}[ by {by}][: {message}]"},
	{"Check", "Check {state}[ {outcome}][, exit {exit|n}][, {~duration|ms}]: {command}"},
	{"Checkpoint", "Checkpoint {name}[ (before model call {callId|call})]"},
	{"Activity", "Activity[: {text}]"},
	{"Error", "Error[ {class}][: {message}]"},
};

int logtext_event(struct buf *out, const json_t *event)
{
	struct logtext_view v = {out, event, json_object_get(event, "content"),
				 json_object_get(event, "metadata")};
	const char *type = json_str(event, "eventType");

	if (strcmp(type, "ToolResult") == 0 && !json_get_bool(v.content, "success", false))
		type = FAILED;
	if (strcmp(json_str(v.content, "customType"), "claude.agent") == 0)
		type = AGENT;
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
		logtext_words(out, v.content, TEXT_CHARS);
	}
	return buf_check(out);
}

/* Seals, openings of the log and positions of runs say nothing to who asks what happened. */
static bool logtext_own(const char *type)
{
	return strcmp(type, "Seal") == 0 || strcmp(type, "LogOpen") == 0 ||
	       strcmp(type, "StateWrite") == 0 || strcmp(type, "StateRead") == 0;
}

const char *logtext_types(void)
{
	static char types[1024];
	size_t n = 0;

	for (int kind = 0; kind < EVENT_NKINDS; kind++) {
		const char *name = event_kind_name((enum event_kind)kind);

		if (!logtext_own(name))
			n += (size_t)snprintf(types + n, sizeof(types) - n, "%s%s", n ? "," : "",
					      name);
	}
	return types;
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

/* The line's colour: failures, good ends, mere words. */
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
		if (l->machine)
			fputs(" on ", f);
		if (l->machine)
			term_str(f, l->machine);
		fputc(']', f);
		column += term_columns(agent, strlen(agent)) + 3;
		if (l->machine)
			column += term_columns(l->machine, strlen(l->machine)) + 4;
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
	if (!l->own && logtext_own(json_str(event, "eventType"))) {
		json_decref(event);
		return 0;
	}
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
