/* A run's events for people, as a tree or as bars; tracetree.h.
 *
 * Both show its calls in the order of their starts. An end finds its start by callId, from
 * the newest, since a turn's results come soon after its calls. A start without an end is
 * shown as such: that is what a crash or a cancel leaves. */
#include "cli/tracetree.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/logtext.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

#define ARGS_CHARS 100
#define NOTE_MAX   ((size_t)64 << 20)

enum what { CALL_INFER, CALL_TOOL, CALL_NOTE, END_INFER, END_TOOL, RUN_BEGINS, RUN_ENDS };

static const struct {
	const char *type;
	enum what what;
} kinds[] = {
	{"SubagentSpawn", RUN_BEGINS}, {"SubagentComplete", RUN_ENDS},
	{"InferStart", CALL_INFER},    {"InferEnd", END_INFER},
	{"ToolCall", CALL_TOOL},       {"ToolResult", END_TOOL},
	{"Error", CALL_NOTE},          {"Exhausted", CALL_NOTE},
	{"Steering", CALL_NOTE},       {"Waiting", CALL_NOTE},
	{"ContextEdit", CALL_NOTE},    {"Checkpoint", CALL_NOTE},
	{"Recovered", CALL_NOTE},      {"Fork", CALL_NOTE},
	{"Join", CALL_NOTE},           {"Check", CALL_NOTE},
};

struct tracetree_call {
	enum what kind; /* one of CALL_… */
	char id[24];
	const struct ava_event *start, *end; /* end NULL: the call has no end */
};

struct calls {
	struct tracetree_call *list; /* owned */
	size_t n;
	const struct ava_event *spawn, *complete; /* NULL: absent */
	struct ava_trace_totals sum;
	int64_t from_ms, to_ms;
};

static json_t *tracetree_parse(const struct ava_event *e)
{
	return e != NULL ? json_parse(e->json, e->len, NULL) : NULL;
}

static void add_event(struct calls *c, enum what what, const struct ava_event *e)
{
	json_t *event = tracetree_parse(e);
	const char *id = json_str(json_object_get(event, "content"), "callId");
	struct tracetree_call *one;

	if (what == RUN_BEGINS) {
		c->spawn = e;
	} else if (what == RUN_ENDS) {
		c->complete = e;
	} else if (what == END_INFER || what == END_TOOL) {
		for (size_t i = c->n; i > 0; i--) {
			one = &c->list[i - 1];
			if (one->kind != (what == END_INFER ? CALL_INFER : CALL_TOOL) ||
			    one->end != NULL || strcmp(one->id, id) != 0 ||
			    strcmp(one->start->agent, e->agent) != 0)
				continue;
			one->end = e;
			break;
		}
	} else {
		one = &c->list[c->n++];
		*one = (struct tracetree_call){.kind = what, .start = e};
		snprintf(one->id, sizeof(one->id), "%s", id);
	}
	json_decref(event);
}

static int read_calls(struct calls *c, struct ava_trace *t, struct ava_error *err)
{
	const struct ava_event *e;
	size_t n = 0;
	int rv = ava_trace_totals(t, &c->sum, err);

	if (rv == 0)
		rv = ava_trace_events(t, NULL, 0, 0, &e, &n, err);
	if (rv != 0)
		return rv;
	c->list = calloc(n + 1, sizeof(*c->list));
	if (c->list == NULL)
		return err_set(err, AVA_ENOMEM, "no memory for a trace this long");
	c->from_ms = n > 0 ? e[0].time_ms : 0;
	for (size_t i = 0; i < n; i++) {
		c->to_ms = MAX(c->to_ms, e[i].time_ms);
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			if (strcmp(kinds[k].type, e[i].type) == 0)
				add_event(c, kinds[k].what, &e[i]);
	}
	return 0;
}

/* ---- the tree */

/* A call's duration and cost, behind its name. */
static void print_took(FILE *f, const json_t *meta)
{
	int64_t cost = json_get_fixed(meta, "costCents", 4, -1),
		ms = json_get_int(meta, "duration", -1);

	if (cost >= 0)
		fprintf(f, ", %s", format_money(cost).text);
	if (ms >= 0)
		fprintf(f, ", %s", format_ms(ms).text);
}

static void print_infer(FILE *f, const json_t *start, const json_t *end, const json_t *meta)
{
	const json_t *tokens = json_object_get(end, "tokens");
	const char *stop = json_str(end, "stopReason");

	term_print(f, "    %s", json_str(start, "model"));
	if (meta == NULL) {
		fputs(": no reply\n", f);
		return;
	}
	fprintf(f, ": %" PRId64 " in, %" PRId64 " out", json_get_int(tokens, "input", 0),
		json_get_int(tokens, "output", 0));
	print_took(f, meta);
	term_print(f, "%s%s\n", stop[0] != '\0' ? ", " : "", stop);
}

static void print_tool(FILE *f, const json_t *start, const json_t *end, const json_t *meta)
{
	const char *class = json_str(end, "errorClass");
	bool success = json_get_bool(end, "success", false);
	int64_t bytes = json_get_int(end, "bytes", -1);
	struct buf args;

	buf_init(&args, NOTE_MAX);
	logtext_args(&args, json_object_get(start, "args"), ARGS_CHARS);
	term_print(f, "      %s %s", json_str(start, "name"), args.len > 0 ? args.data : "");
	buf_fini(&args);
	if (meta == NULL) {
		fputs(": no result (interrupted, may have happened)\n", f);
		return;
	}
	fputs(": ", f);
	term_colour(f, success ? TERM_GREEN : TERM_RED);
	fputs(success ? "success" : "failed", f);
	term_colour(f, TERM_PLAIN);
	if (!success && class[0] != '\0')
		term_print(f, " (%s)", class);
	if (bytes >= 0)
		fprintf(f, ", %s", format_bytes(bytes).text);
	print_took(f, meta);
	fputc('\n', f);
}

static void print_call(FILE *f, const struct tracetree_call *c, int64_t *turn)
{
	json_t *start = tracetree_parse(c->start), *end = tracetree_parse(c->end);
	int64_t now = json_get_int(json_object_get(start, "metadata"), "iteration", -1);
	const json_t *begun = json_object_get(start, "content"),
		     *ended = json_object_get(end, "content"),
		     *meta = json_object_get(end, "metadata");
	struct buf note;

	if (c->kind != CALL_NOTE && now != *turn)
		fprintf(f, "  turn %" PRId64 "\n", *turn = now);
	buf_init(&note, NOTE_MAX);
	if (c->kind != CALL_NOTE)
		(c->kind == CALL_INFER ? print_infer : print_tool)(f, begun, ended, meta);
	else if (logtext_event(&note, start) == 0)
		term_print(f, "    %s\n", note.data);
	buf_fini(&note);
	json_decref(start);
	json_decref(end);
}

static void print_title(FILE *f, const struct calls *c)
{
	json_t *event = tracetree_parse(c->spawn);
	const json_t *spawn = json_object_get(event, "content");
	const char *task = json_str(spawn, "task");

	term_colour(f, TERM_BOLD);
	if (event != NULL)
		term_print(f, "%s (%s): %s, %s", json_str(event, "traceId"),
			   json_str(spawn, "subagentId"), format_role(json_str(spawn, "role")).text,
			   json_str(spawn, "model"));
	else
		fputs("a run whose beginning is missing", f);
	term_colour(f, TERM_PLAIN);
	fputs("\n  ", f);
	term_cut(f, task, strlen(task), term_width(f) > 0 ? term_width(f) - 2 : 200);
	fputc('\n', f);
	json_decref(event);
}

static void print_counts(FILE *f, const struct ava_trace_totals *sum, int64_t tokens, int64_t cost)
{
	fprintf(f,
		"%" PRId64 " model call%s, %" PRId64 " tool call%s (%" PRId64
		" failed), %s tokens, %s",
		sum->infer_calls, WORDS_S(sum->infer_calls), sum->tool_calls,
		WORDS_S(sum->tool_calls), sum->failed_tool_calls, format_tokens(tokens).text,
		format_money(cost).text);
}

static void tracetree_print_end(FILE *f, const struct calls *c)
{
	const struct ava_trace_totals *sum = &c->sum;
	int64_t tokens = sum->input_tokens + sum->output_tokens;
	json_t *event = tracetree_parse(c->complete);
	const json_t *content = json_object_get(event, "content"),
		     *totals = json_object_get(content, "totals");

	if (event != NULL)
		term_print(f, "  %s (%s): %s, ", words_status(json_str(content, "status")),
			   json_str(content, "stopReason"),
			   format_ms(json_get_int(totals, "durationMs", 0)).text);
	else
		fputs("  not ended: ", f);
	print_counts(f, sum, json_get_int(totals, "tokens", tokens),
		     json_get_fixed(totals, "costCents", 4, MAX(sum->cost_microusd, 0)));
	fputs(event != NULL ? "\n" : " so far\n", f);
	json_decref(event);
}

int tracetree_print(struct ava_trace *t, FILE *f, struct ava_error *err)
{
	struct calls c = {0};
	int64_t turn = -1;
	int rv = read_calls(&c, t, err);

	if (rv == 0)
		print_title(f, &c);
	for (size_t i = 0; rv == 0 && i < c.n; i++)
		print_call(f, &c.list[i], &turn);
	if (rv == 0)
		tracetree_print_end(f, &c);
	free(c.list);
	return rv;
}

/* ---- the waterfall
 *
 * A row for each model call, each tool call and each checkpoint: what it is, a bar from its
 * start to its end in the time of the whole run, how long it took, what it cost. One without
 * an end runs to the end of the trace and says so. The time of a call of a tool is counted
 * back from its result, since the calls of a reply are written together and begin when they
 * can. */

#define LABEL_COLUMNS 28
#define NOTE_COLUMNS  24 /* columns for duration and cost, behind the bar */
#define BAR_LEAST     10
#define BAR_MOST      80

static void repeat(FILE *f, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fputs(s, f);
}

static size_t cell(const struct calls *c, int64_t ms, size_t columns)
{
	int64_t span = MAX(c->to_ms - c->from_ms, 1), at = MAX(ms - c->from_ms, 0);

	return (size_t)(MIN(at, span) * (int64_t)columns / span);
}

/* A call's bar; a checkpoint, which has no length, is a point. */
static void print_bar(FILE *f, const struct calls *c, const struct tracetree_call *one,
		      int64_t from_ms, bool failed, size_t columns)
{
	bool point = one->kind == CALL_NOTE;
	size_t from = MIN(cell(c, from_ms, columns), columns - 1);
	size_t end =
		MAX(cell(c, one->end != NULL ? one->end->time_ms : c->to_ms, columns), from + 1);

	fputs(term_mark("│", "|"), f);
	repeat(f, " ", from);
	if (point)
		end = from + 1;
	else if (failed || one->end == NULL)
		term_colour(f, TERM_RED);
	else if (one->kind == CALL_TOOL)
		term_colour(f, TERM_GREEN);
	repeat(f,
	       point                    ? term_mark("◆", "*")
	       : one->kind == CALL_TOOL ? term_mark("▒", "-")
					: term_mark("█", "="),
	       end - from);
	if (!point)
		term_colour(f, TERM_PLAIN);
	repeat(f, " ", columns - end);
	fputs(term_mark("│", "|"), f);
}

static void print_row(FILE *f, const struct calls *c, const struct tracetree_call *one,
		      size_t columns)
{
	static const char *const before[] = {
		[CALL_INFER] = "", [CALL_TOOL] = "  ", [CALL_NOTE] = "checkpoint "};
	json_t *start = tracetree_parse(one->start), *end = tracetree_parse(one->end);
	const json_t *begun = json_object_get(start, "content"),
		     *ended = json_object_get(end, "content"),
		     *meta = json_object_get(end, "metadata");
	const char *name = json_get_str(begun, one->kind == CALL_INFER ? "model" : "name");
	int64_t from_ms = one->start->time_ms, ms = json_get_int(meta, "duration", -1),
		cost = json_get_fixed(meta, "costCents", 4, -1);
	bool failed =
		end != NULL && (one->kind == CALL_TOOL ? !json_get_bool(ended, "success", false)
						       : json_get_str(ended, "errorClass") != NULL);
	char label[96];
	size_t used;

	snprintf(label, sizeof(label), "%s%s", before[one->kind], name != NULL ? name : "?");
	used = term_cut(f, label, strlen(label), LABEL_COLUMNS);
	repeat(f, " ", LABEL_COLUMNS + 1 - MIN(used, (size_t)LABEL_COLUMNS));
	if (one->kind == CALL_TOOL && ms >= 0)
		from_ms = MAX(one->end->time_ms - MIN(ms, one->end->time_ms), c->from_ms);
	print_bar(f, c, one, from_ms, failed, columns);
	if (end != NULL)
		fprintf(f, " %s", format_ms(ms >= 0 ? ms : one->end->time_ms - from_ms).text);
	else if (one->kind != CALL_NOTE)
		fputs(" no end", f);
	if (cost >= 0)
		fprintf(f, ", %s", format_money(cost).text);
	fputs(failed ? ", failed\n" : "\n", f);
	json_decref(start);
	json_decref(end);
}

int waterfall_print(struct ava_trace *t, FILE *f, struct ava_error *err)
{
	size_t width = term_width(f) > 0 ? term_width(f) : 100;
	size_t columns = width > LABEL_COLUMNS + NOTE_COLUMNS + BAR_LEAST
				 ? width - LABEL_COLUMNS - NOTE_COLUMNS
				 : BAR_LEAST;
	struct ava_trace_info info;
	struct calls c = {0};
	int rv = read_calls(&c, t, err);

	if (rv != 0)
		return rv;
	ava_trace_info(t, &info);
	term_colour(f, TERM_BOLD);
	term_str(f, info.id[0] != '\0' ? info.id : "a trace without a name");
	term_colour(f, TERM_PLAIN);
	fprintf(f, ": %s%s\n", format_ms(c.to_ms - c.from_ms).text,
		info.end_ms != 0 ? "" : ", not ended");
	for (size_t i = 0; i < c.n; i++)
		if (c.list[i].kind != CALL_NOTE || strcmp(c.list[i].start->type, "Checkpoint") == 0)
			print_row(f, &c, &c.list[i], MIN(columns, (size_t)BAR_MOST));
	print_counts(f, &c.sum, c.sum.input_tokens + c.sum.output_tokens, c.sum.cost_microusd);
	fputc('\n', f);
	free(c.list);
	return 0;
}
