/* The tree of a run; tracetree.h.
 *
 * Calls are kept in order of their start; an end finds its start by callId,
 * from the newest, since a turn's results come soon after its calls. A start
 * without an end is shown as such: that is what a crash or a cancel leaves. */
#include "cli/tracetree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "cli/logtext.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

#define NODES_MAX  1000000
#define ARGS_CHARS 100
#define NOTE_MAX   ((size_t)64 << 20)

enum node_kind { NODE_INFER, NODE_TOOL, NODE_NOTE };

struct node {
	enum node_kind kind;
	bool ended, success;
	char call_id[24];
	int64_t iteration, in, out, cost, ms, bytes; /* -1: not known */
	char *text; /* model; or tool and arguments; or the note. Owned */
	char *tail; /* stop reason, error class. Owned, may be NULL */
};

struct tracetree {
	struct node *nodes;
	size_t n, cap;
	char *title, *task, *end; /* owned, NULL until they are known */
	int64_t infers, tools, failed, tokens, cost;
};

struct tracetree *tracetree_new(void)
{
	return calloc(1, sizeof(struct tracetree));
}

void tracetree_free(struct tracetree *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->n; i++) {
		free(t->nodes[i].text);
		free(t->nodes[i].tail);
	}
	free(t->nodes);
	free(t->title);
	free(t->task);
	free(t->end);
	free(t);
}

static struct node *new_node(struct tracetree *t, enum node_kind kind, const json_t *event)
{
	const json_t *meta = json_object_get(event, "metadata");
	struct node *grown;
	size_t cap = t->cap == 0 ? 64 : t->cap * 2;

	if (t->n == t->cap) {
		grown = t->n < NODES_MAX ? realloc(t->nodes, cap * sizeof(*grown)) : NULL;
		if (grown == NULL)
			return NULL;
		t->nodes = grown;
		t->cap = cap;
	}
	t->nodes[t->n] = (struct node){.kind = kind,
				       .in = -1,
				       .out = -1,
				       .cost = -1,
				       .ms = -1,
				       .bytes = -1,
				       .iteration = json_get_int(meta, "iteration", -1)};
	snprintf(t->nodes[t->n].call_id, sizeof(t->nodes[t->n].call_id), "%s",
		 json_str(json_object_get(event, "content"), "callId"));
	return &t->nodes[t->n++];
}

static struct node *find_open(struct tracetree *t, enum node_kind kind, const char *call_id)
{
	for (size_t i = t->n; i > 0; i--) {
		struct node *n = &t->nodes[i - 1];

		if (n->kind == kind && !n->ended && strcmp(n->call_id, call_id) == 0)
			return n;
	}
	return NULL;
}

static int keep(char **out, const char *text)
{
	free(*out);
	*out = strdup(text);
	return *out != NULL ? 0 : AVA_ENOMEM;
}

static int add_spawn(struct tracetree *t, const json_t *event, const json_t *content)
{
	char title[256];

	snprintf(title, sizeof(title), "%s (%s): %s, %s", json_str(event, "traceId"),
		 json_str(content, "subagentId"), format_role(json_str(content, "role")).text,
		 json_str(content, "model"));
	return keep(&t->title, title) != 0 ? AVA_ENOMEM : keep(&t->task, json_str(content, "task"));
}

static int add_infer_start(struct tracetree *t, const json_t *event, const json_t *content)
{
	struct node *n = new_node(t, NODE_INFER, event);

	t->infers++;
	return n == NULL ? AVA_ENOMEM : keep(&n->text, json_str(content, "model"));
}

static int add_infer_end(struct tracetree *t, const json_t *event, const json_t *content)
{
	const json_t *tokens = json_object_get(content, "tokens");
	const json_t *meta = json_object_get(event, "metadata");
	struct node *n = find_open(t, NODE_INFER, json_str(content, "callId"));

	if (n == NULL)
		return 0; /* its start was lost: the log says so elsewhere */
	n->ended = true;
	n->in = json_get_int(tokens, "input", 0);
	n->out = json_get_int(tokens, "output", 0);
	n->cost = json_get_fixed(meta, "costCents", 4, -1);
	n->ms = json_get_int(meta, "duration", -1);
	t->tokens += n->in + n->out;
	t->cost += MAX(n->cost, 0);
	return keep(&n->tail, json_str(content, "stopReason"));
}

static int add_tool_call(struct tracetree *t, const json_t *event, const json_t *content)
{
	const json_t *args = json_object_get(content, "args");
	struct node *n = new_node(t, NODE_TOOL, event);
	struct buf text;
	int rv = AVA_ENOMEM;

	t->tools++;
	if (n == NULL)
		return AVA_ENOMEM;
	buf_init(&text, NOTE_MAX);
	buf_adds(&text, json_str(content, "name"));
	buf_addc(&text, ' ');
	if (json_is_string(args))
		logtext_cut(&text, json_string_value(args), ARGS_CHARS);
	else if (args != NULL)
		logtext_json(&text, args, ARGS_CHARS);
	if (buf_check(&text) == 0)
		rv = keep(&n->text, text.data);
	buf_fini(&text);
	return rv;
}

static int add_tool_result(struct tracetree *t, const json_t *event, const json_t *content)
{
	struct node *n = find_open(t, NODE_TOOL, json_str(content, "callId"));

	if (n == NULL)
		return 0;
	n->ended = true;
	n->success = json_get_bool(content, "success", false);
	n->bytes = json_get_int(content, "bytes", -1);
	n->ms = json_get_int(json_object_get(event, "metadata"), "duration", -1);
	t->failed += !n->success;
	return keep(&n->tail, json_str(content, "errorClass"));
}

static int add_complete(struct tracetree *t, const json_t *event, const json_t *content)
{
	const json_t *totals = json_object_get(content, "totals");
	char text[256];

	snprintf(text, sizeof(text),
		 "%s (%s): %s, %" PRId64 " model calls, %" PRId64 " tool calls (%" PRId64
		 " failed), %s tokens, %s",
		 json_str(content, "status"), json_str(content, "stopReason"),
		 format_ms(json_get_int(totals, "durationMs", 0)).text, t->infers, t->tools,
		 t->failed, format_tokens(json_get_int(totals, "tokens", t->tokens)).text,
		 format_money(json_get_fixed(totals, "costCents", 4, t->cost)).text);
	return keep(&t->end, text);
}

static int add_note(struct tracetree *t, const json_t *event, const json_t *content)
{
	struct node *n = new_node(t, NODE_NOTE, event);
	struct buf text;
	int rv;

	if (n == NULL)
		return AVA_ENOMEM;
	buf_init(&text, NOTE_MAX);
	rv = logtext_event(&text, event);
	if (rv == 0)
		rv = keep(&n->text, text.data);
	buf_fini(&text);
	return rv;
}

static const struct {
	const char *type;
	int (*add)(struct tracetree *t, const json_t *event, const json_t *content);
} kinds[] = {
	{"SubagentSpawn", add_spawn},
	{"SubagentComplete", add_complete},
	{"InferStart", add_infer_start},
	{"InferEnd", add_infer_end},
	{"ToolCall", add_tool_call},
	{"ToolResult", add_tool_result},
	{"Error", add_note},
	{"Exhausted", add_note},
	{"Steering", add_note},
	{"Waiting", add_note},
	{"ContextEdit", add_note},
	{"Checkpoint", add_note},
	{"Recovered", add_note},
	{"Fork", add_note},
	{"Join", add_note},
};

int tracetree_add(struct tracetree *t, const char *line, size_t len, struct ava_error *err)
{
	json_t *event = json_parse(line, len, err);
	int rv = 0;

	if (event == NULL)
		return AVA_ECORRUPT;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i].type, json_str(event, "eventType")) == 0)
			rv = kinds[i].add(t, event, json_object_get(event, "content"));
	json_decref(event);
	return rv == 0 ? 0 : err_set(err, rv, "no memory for a trace this long");
}

static void print_infer(const struct node *n, FILE *f)
{
	fputs("    ", f);
	term_str(f, n->text);
	if (!n->ended) {
		fputs(": no reply\n", f);
		return;
	}
	fprintf(f, ": %" PRId64 " in, %" PRId64 " out", n->in, n->out);
	if (n->cost >= 0)
		fprintf(f, ", %s", format_money(n->cost).text);
	if (n->ms >= 0)
		fprintf(f, ", %s", format_ms(n->ms).text);
	if (n->tail != NULL && n->tail[0] != '\0') {
		fputs(", ", f);
		term_str(f, n->tail);
	}
	fputc('\n', f);
}

static void print_tool(const struct node *n, FILE *f)
{
	fputs("      ", f);
	term_str(f, n->text);
	if (!n->ended) {
		fputs(": no result (interrupted, may have happened)\n", f);
		return;
	}
	fputs(": ", f);
	term_colour(f, n->success ? TERM_GREEN : TERM_RED);
	fputs(n->success ? "success" : "failed", f);
	term_colour(f, TERM_PLAIN);
	if (!n->success && n->tail != NULL && n->tail[0] != '\0') {
		fputs(" (", f);
		term_str(f, n->tail);
		fputc(')', f);
	}
	if (n->bytes >= 0)
		fprintf(f, ", %s", format_bytes(n->bytes).text);
	if (n->ms >= 0)
		fprintf(f, ", %s", format_ms(n->ms).text);
	fputc('\n', f);
}

static void print_node(const struct node *n, FILE *f)
{
	switch (n->kind) {
	case NODE_INFER:
		print_infer(n, f);
		return;
	case NODE_TOOL:
		print_tool(n, f);
		return;
	case NODE_NOTE:
		fputs("    ", f);
		term_str(f, n->text);
		fputc('\n', f);
	}
}

void tracetree_print(const struct tracetree *t, FILE *f)
{
	int64_t turn = -1;

	term_colour(f, TERM_BOLD);
	term_str(f, t->title != NULL ? t->title : "a run whose beginning is missing");
	term_colour(f, TERM_PLAIN);
	fputs("\n  ", f);
	if (t->task != NULL)
		term_cut(f, t->task, strlen(t->task), term_width(f) > 0 ? term_width(f) - 2 : 200);
	fputc('\n', f);
	for (size_t i = 0; i < t->n; i++) {
		if (t->nodes[i].kind != NODE_NOTE && t->nodes[i].iteration != turn) {
			turn = t->nodes[i].iteration;
			fprintf(f, "  turn %" PRId64 "\n", turn);
		}
		print_node(&t->nodes[i], f);
	}
	if (t->end != NULL) {
		fputs("  ", f);
		term_str(f, t->end);
		fputc('\n', f);
		return;
	}
	fprintf(f,
		"  not ended: %" PRId64 " model calls, %" PRId64 " tool calls (%" PRId64
		" failed), %s tokens, %s so far\n",
		t->infers, t->tools, t->failed, format_tokens(t->tokens).text,
		format_money(t->cost).text);
}

/* The waterfall of a run.
 *
 * A row for each model call and each tool call in the order of their starts:
 * what it is, a bar from its start to its end in the time of the whole run,
 * how long it took, what it cost. One without an end runs to the end of the
 * trace and says so. The time of a call of a tool is counted back from its
 * result, since the calls of a reply are written together and begin when they
 * can. */

#define LABEL_COLUMNS 28
#define NOTE_COLUMNS  24 /* duration and cost, behind the bar */
#define BAR_LEAST     10
#define BAR_MOST      80

struct row {
	bool tool, ended, failed, point; /* point: a checkpoint, it has no length */
	char call[24], label[96];
	const char *agent;
	int64_t from_ms, to_ms, took_ms;
	int64_t cost; /* -1: none */
};

struct rows {
	struct row *list; /* owned */
	size_t n;
	int64_t from_ms, to_ms;
};

static void begin_row(struct rows *r, const struct ava_event *e, const json_t *content, bool tool)
{
	struct row *row = &r->list[r->n++];
	const char *what = json_get_str(content, tool ? "name" : "model");
	const char *call = json_get_str(content, "callId");

	*row = (struct row){.tool = tool, .agent = e->agent, .from_ms = e->time_ms, .cost = -1};
	snprintf(row->call, sizeof(row->call), "%s", call != NULL ? call : "");
	snprintf(row->label, sizeof(row->label), "%s%s", tool ? "  " : "",
		 what != NULL ? what : "?");
}

static void add_point(struct rows *r, const struct ava_event *e, const json_t *content)
{
	struct row *row = &r->list[r->n++];
	const char *name = json_get_str(content, "name");

	*row = (struct row){.point = true,
			    .ended = true,
			    .agent = e->agent,
			    .from_ms = e->time_ms,
			    .to_ms = e->time_ms,
			    .cost = -1};
	snprintf(row->label, sizeof(row->label), "checkpoint %s", name != NULL ? name : "?");
}

static void end_row(struct rows *r, const struct ava_event *e, const json_t *event, bool tool)
{
	const json_t *content = json_object_get(event, "content");
	const json_t *meta = json_object_get(event, "metadata");
	const char *call = json_get_str(content, "callId");
	int64_t ms = json_get_int(meta, "duration", -1);

	for (size_t i = r->n; i > 0 && call != NULL; i--) {
		struct row *row = &r->list[i - 1];

		if (row->ended || row->tool != tool || strcmp(row->call, call) != 0 ||
		    strcmp(row->agent, e->agent) != 0)
			continue;
		row->ended = true;
		row->to_ms = e->time_ms;
		row->took_ms = ms >= 0 ? ms : row->to_ms - row->from_ms;
		row->cost = json_get_fixed(meta, "costCents", 4, -1);
		row->failed = tool ? !json_get_bool(content, "success", false)
				   : json_get_str(content, "errorClass") != NULL;
		if (tool && ms >= 0)
			row->from_ms = MAX(e->time_ms - MIN(ms, e->time_ms), r->from_ms);
		return;
	}
}

static void add_event(struct rows *r, const struct ava_event *e)
{
	json_t *event = json_parse(e->json, e->len, NULL);
	const json_t *content = json_object_get(event, "content");

	if (r->n == 0 && r->to_ms == 0)
		r->from_ms = e->time_ms;
	r->to_ms = MAX(r->to_ms, e->time_ms);
	if (strcmp(e->type, "InferStart") == 0)
		begin_row(r, e, content, false);
	else if (strcmp(e->type, "ToolCall") == 0)
		begin_row(r, e, content, true);
	else if (strcmp(e->type, "Checkpoint") == 0)
		add_point(r, e, content);
	else if (strcmp(e->type, "InferEnd") == 0)
		end_row(r, e, event, false);
	else if (strcmp(e->type, "ToolResult") == 0)
		end_row(r, e, event, true);
	json_decref(event);
}

static void repeat(FILE *f, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fputs(s, f);
}

static size_t cell(const struct rows *r, int64_t ms, size_t columns)
{
	int64_t span = MAX(r->to_ms - r->from_ms, 1), at = MAX(ms - r->from_ms, 0);

	return (size_t)(MIN(at, span) * (int64_t)columns / span);
}

static void print_bar(const struct rows *r, const struct row *row, size_t columns, FILE *f)
{
	int64_t to = row->ended ? row->to_ms : r->to_ms;
	size_t from = MIN(cell(r, row->from_ms, columns), columns - 1);
	size_t end = MAX(cell(r, to, columns), from + 1);

	fputs(term_mark("│", "|"), f);
	repeat(f, " ", from);
	if (row->point) {
		fputs(term_mark("◆", "*"), f);
		repeat(f, " ", columns - from - 1);
		fputs(term_mark("│", "|"), f);
		return;
	}
	if (row->failed || !row->ended)
		term_colour(f, TERM_RED);
	else if (row->tool)
		term_colour(f, TERM_GREEN);
	repeat(f, row->tool ? term_mark("▒", "-") : term_mark("█", "="), end - from);
	term_colour(f, TERM_PLAIN);
	repeat(f, " ", columns - end);
	fputs(term_mark("│", "|"), f);
}

static void print_row(const struct rows *r, const struct row *row, size_t columns, FILE *f)
{
	size_t used = term_cut(f, row->label, strlen(row->label), LABEL_COLUMNS);

	repeat(f, " ", LABEL_COLUMNS + 1 - MIN(used, (size_t)LABEL_COLUMNS));
	print_bar(r, row, columns, f);
	if (!row->ended)
		fputs(" no end", f);
	else if (!row->point)
		fprintf(f, " %s", format_ms(row->took_ms).text);
	if (row->cost >= 0)
		fprintf(f, ", %s", format_money(row->cost).text);
	if (row->failed)
		fputs(", failed", f);
	fputc('\n', f);
}

static void print_head(struct ava_trace *t, const struct rows *r, FILE *f)
{
	struct ava_trace_info info;

	ava_trace_info(t, &info);
	term_colour(f, TERM_BOLD);
	term_str(f, info.id[0] != '\0' ? info.id : "a trace without a name");
	term_colour(f, TERM_PLAIN);
	fprintf(f, ": %s%s\n", format_ms(r->to_ms - r->from_ms).text,
		info.end_ms != 0 ? "" : ", not ended");
}

static void print_totals(const struct ava_trace_totals *sum, FILE *f)
{
	fprintf(f,
		"%" PRId64 " model calls, %" PRId64 " tool calls (%" PRId64
		" failed), %s tokens, %s\n",
		sum->infer_calls, sum->tool_calls, sum->failed_tool_calls,
		format_tokens(sum->input_tokens + sum->output_tokens).text,
		format_money(sum->cost_microusd).text);
}

int waterfall_print(struct ava_trace *t, FILE *f, struct ava_error *err)
{
	size_t width = term_width(f) > 0 ? term_width(f) : 100, n;
	size_t columns = width > LABEL_COLUMNS + NOTE_COLUMNS + BAR_LEAST
				 ? width - LABEL_COLUMNS - NOTE_COLUMNS
				 : BAR_LEAST;
	struct ava_trace_totals sum;
	const struct ava_event *e;
	struct rows r = {0};
	int rv = ava_trace_totals(t, &sum, err);

	if (rv == 0)
		rv = ava_trace_events(t, NULL, 0, 0, &e, &n, err);
	if (rv != 0)
		return rv;
	r.list = calloc(n + 1, sizeof(*r.list));
	if (r.list == NULL)
		return err_set(err, AVA_ENOMEM, "no memory for a trace this long");
	for (size_t i = 0; i < n; i++)
		add_event(&r, &e[i]);
	print_head(t, &r, f);
	for (size_t i = 0; i < r.n; i++)
		print_row(&r, &r.list[i], MIN(columns, (size_t)BAR_MOST), f);
	print_totals(&sum, f);
	free(r.list);
	return 0;
}
