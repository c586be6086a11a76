/* The waterfall of a run; waterfall.h.
 *
 * A row for each model call and each tool call in the order of their starts:
 * what it is, a bar from its start to its end in the time of the whole run,
 * how long it took, what it cost. One without an end runs to the end of the
 * trace and says so. The time of a call of a tool is counted back from its
 * result, since the calls of a reply are written together and begin when they
 * can. */
#include "cli/waterfall.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "cli/format.h"
#include "cli/term.h"
#include "codec/json.h"

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
