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
#include "cli/format.h"
#include "cli/logtext.h"
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
