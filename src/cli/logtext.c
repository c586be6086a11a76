/* Events as text; logtext.h.
 *
 * One small function for each kind that deserves words of its own, in a table;
 * every other kind prints its name and content. What is missing in the content
 * is left out, since a log may be older or newer than this program. */
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

/* What every function below gets. */
struct view {
	struct buf *out;
	const json_t *event, *content, *meta;
};

static void add_text(const struct view *v, const char *before, const char *text)
{
	if (text[0] == '\0')
		return;
	buf_adds(v->out, before);
	logtext_cut(v->out, text, TEXT_CHARS);
}

static void add_duration(const struct view *v)
{
	int64_t ms = json_get_int(v->meta, "duration", -1);

	if (ms >= 0)
		buf_addf(v->out, ", %s", format_ms(ms).text);
}

static void user_message(const struct view *v)
{
	const char *user = json_str(v->event, "userId");

	buf_adds(v->out, "User");
	if (user[0] != '\0')
		buf_addf(v->out, " (%s)", user);
	add_text(v, ": ", json_str(v->content, "text"));
}

static void assistant_message(const struct view *v)
{
	buf_adds(v->out, "Ava");
	add_text(v, ": ", json_str(v->content, "text"));
}

static void proposed(const struct view *v)
{
	const json_t *quote = json_object_get(v->content, "quote");
	const json_t *config = json_object_get(v->content, "config");

	buf_addf(v->out, "SpawnProposed %s", json_str(v->content, "proposalId"));
	if (quote != NULL)
		buf_addf(v->out, " %s, up to %s", format_role(json_str(quote, "role")).text,
			 format_money(json_get_fixed(quote, "costCents", 4, -1)).text);
	add_text(v, ": ", json_str(config, "task"));
}

static void answered(const struct view *v)
{
	buf_addf(v->out, "%s %s", json_str(v->event, "eventType"),
		 json_str(v->content, "proposalId"));
	add_text(v, " by ", json_str(v->content, "by"));
	add_text(v, ": ", json_str(v->content, "reason"));
}

static void spawn(const struct view *v)
{
	const char *user = json_str(v->event, "userId"), *session = json_str(v->event, "sessionId");

	buf_addf(v->out, "SubagentSpawn %s role=%s", json_str(v->content, "subagentId"),
		 format_role(json_str(v->content, "role")).text);
	add_text(v, " model=", json_str(v->content, "model"));
	add_text(v, " user=", user);
	add_text(v, " session=", session);
	add_text(v, ": ", json_str(v->content, "task"));
}

static void complete(const struct view *v)
{
	const json_t *totals = json_object_get(v->content, "totals");
	const char *reason = json_str(v->content, "stopReason");

	buf_addf(v->out, "SubagentComplete %s status=%s", json_str(v->content, "subagentId"),
		 json_str(v->content, "status"));
	if (reason[0] != '\0' && strcmp(reason, json_str(v->content, "status")) != 0)
		add_text(v, " reason=", reason);
	if (totals != NULL)
		buf_addf(v->out, " cost=%s tokens=%" PRId64,
			 format_money(json_get_fixed(totals, "costCents", 4, -1)).text,
			 json_get_int(totals, "tokens", 0));
	add_text(v, ": ", json_str(v->content, "summary"));
}

static void infer_start(const struct view *v)
{
	buf_addf(v->out, "InferStart %s", json_str(v->content, "model"));
	add_text(v, " ", json_str(v->content, "callId"));
}

static void infer_end(const struct view *v)
{
	const json_t *tokens = json_object_get(v->content, "tokens");

	buf_addf(v->out, "InferEnd %s", json_str(v->content, "callId"));
	if (tokens != NULL)
		buf_addf(v->out, " (%" PRId64 " in, %" PRId64 " out",
			 json_get_int(tokens, "input", 0), json_get_int(tokens, "output", 0));
	else
		buf_adds(v->out, " (");
	if (json_object_get(v->meta, "costCents") != NULL)
		buf_addf(v->out, ", %s",
			 format_money(json_get_fixed(v->meta, "costCents", 4, -1)).text);
	add_duration(v);
	add_text(v, ", ", json_str(v->content, "stopReason"));
	buf_addc(v->out, ')');
}

static void tool_call(const struct view *v)
{
	const json_t *args = json_object_get(v->content, "args");

	buf_addf(v->out, "ToolCall %s ", json_str(v->content, "name"));
	if (json_is_string(args)) /* a preview of long arguments */
		logtext_cut(v->out, json_string_value(args), ARGS_CHARS);
	else if (args != NULL)
		logtext_json(v->out, args, ARGS_CHARS);
}

static void tool_result(const struct view *v)
{
	bool ok = json_get_bool(v->content, "success", false);
	int64_t bytes = json_get_int(v->content, "bytes", -1);

	buf_addf(v->out, "ToolResult %s (%s", json_str(v->content, "name"),
		 ok ? "success" : "failed");
	if (!ok)
		add_text(v, ", ", json_str(v->content, "errorClass"));
	if (bytes >= 0)
		buf_addf(v->out, ", %s", format_bytes(bytes).text);
	add_duration(v);
	buf_addc(v->out, ')');
	if (!ok)
		add_text(v, ": ", json_str(v->content, "output"));
}

static void thinking(const struct view *v)
{
	buf_adds(v->out, "Thinking: \"");
	logtext_cut(v->out, json_str(v->content, "thinking"), TEXT_CHARS);
	buf_addc(v->out, '"');
}

static void cost_update(const struct view *v)
{
	buf_addf(v->out, "CostUpdate cost=%s tokens=%" PRId64 "%s",
		 format_money(json_get_fixed(v->content, "costCents", 4, -1)).text,
		 json_get_int(v->content, "tokens", 0),
		 json_get_bool(v->content, "estimated", false) ? " (estimated)" : "");
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

static void exhausted(const struct view *v)
{
	buf_addf(v->out, "Exhausted %s", json_str(v->content, "resource"));
}

static void steering(const struct view *v)
{
	buf_adds(v->out, "Steering");
	add_text(v, ": ", json_str(v->content, "text"));
	if (json_str(v->content, "outcome")[0] != '\0')
		buf_addf(v->out, " (%s)", json_str(v->content, "outcome"));
}

static void waiting(const struct view *v)
{
	buf_addf(v->out, "Waiting %s", json_str(v->content, "state"));
	add_text(v, ": ", json_str(v->content, "question"));
	add_text(v, " -> ", json_str(v->content, "answer"));
}

static void checkpoint(const struct view *v)
{
	const char *call = json_str(v->content, "callId");

	buf_addf(v->out, "Checkpoint %s", json_str(v->content, "name"));
	if (call[0] == 'i')
		buf_addf(v->out, " (before model call %s)", call + 1);
}

static void activity(const struct view *v)
{
	buf_adds(v->out, "Activity");
	add_text(v, ": ", json_str(v->content, "text"));
}

static void error(const struct view *v)
{
	buf_adds(v->out, "Error");
	add_text(v, " ", json_str(v->content, "class"));
	add_text(v, ": ", json_str(v->content, "message"));
}

static void state_key(const struct view *v)
{
	buf_addf(v->out, "%s %s", json_str(v->event, "eventType"), json_str(v->content, "key"));
}

static void session(const struct view *v)
{
	buf_adds(v->out, json_str(v->event, "eventType"));
	add_text(v, " client=", json_str(v->content, "client"));
	add_text(v, " cwd=", json_str(v->content, "cwd"));
}

static void other(const struct view *v)
{
	buf_adds(v->out, json_str(v->event, "eventType"));
	if (json_object_size(v->content) > 0) {
		buf_addc(v->out, ' ');
		logtext_json(v->out, v->content, TEXT_CHARS);
	}
}

static const struct {
	const char *type;
	void (*print)(const struct view *v);
} kinds[] = {
	{"SessionStart", session},
	{"SessionEnd", session},
	{"UserMessage", user_message},
	{"AssistantMessage", assistant_message},
	{"SpawnProposed", proposed},
	{"SpawnConfirmed", answered},
	{"SpawnRejected", answered},
	{"SpawnExpired", answered},
	{"SubagentSpawn", spawn},
	{"SubagentComplete", complete},
	{"InferStart", infer_start},
	{"InferEnd", infer_end},
	{"ToolCall", tool_call},
	{"ToolResult", tool_result},
	{"ExtendedThinking", thinking},
	{"CostUpdate", cost_update},
	{"StateRead", state_key},
	{"StateWrite", state_key},
	{"Limit", limit},
	{"Exhausted", exhausted},
	{"Fork", fork_or_join},
	{"Join", fork_or_join},
	{"Steering", steering},
	{"Waiting", waiting},
	{"Checkpoint", checkpoint},
	{"Activity", activity},
	{"Error", error},
};

int logtext_event(struct buf *out, const json_t *event)
{
	struct view v = {out, event, json_object_get(event, "content"),
			 json_object_get(event, "metadata")};
	const char *type = json_str(event, "eventType");

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i].type, type) == 0) {
			kinds[i].print(&v);
			return buf_check(out);
		}
	other(&v);
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
