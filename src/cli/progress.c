/* Status lines; progress.h.
 *
 * Text of the run is made safe for the terminal and kept on one line. Without
 * UTF-8 the marks are left out; the words stay. */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

#define MARK_START "\xf0\x9f\x9a\x80 "         /* rocket */
#define MARK_LOOK  "\xf0\x9f\x94\x8d "         /* magnifying glass */
#define MARK_WAIT  "\xe2\x8f\xb3 "             /* hourglass */
#define MARK_ASK   "\xe2\x9d\x93 "             /* question mark */
#define MARK_DONE  "\xe2\x9c\x85 "             /* check mark */
#define MARK_LIMIT "\xe2\x9a\xa0\xef\xb8\x8f " /* warning sign */
#define MARK_BAD   "\xe2\x9d\x8c "             /* cross */

#define TEXT_COLUMNS 300 /* of an activity where there is no terminal */

void progress_init(struct progress *p, FILE *f, const char *role)
{
	*p = (struct progress){.f = f, .live = term_redraws(f)};
	snprintf(p->role, sizeof(p->role), "%s", format_role(role).text);
}

/* What the run does: on one line of a terminal, behind what stands there. */
static void activity(FILE *f, const char *before, const char *text)
{
	size_t width = term_width(f), used = term_columns(before, strlen(before));

	fputs(before, f);
	term_cut(f, text, strlen(text),
		 width == 0     ? TEXT_COLUMNS
		 : width > used ? width - used
				: 1);
}

static void line_end(FILE *f)
{
	fputc('\n', f);
	fflush(f);
}

void progress_spawning(const struct progress *p, const char *run)
{
	char text[sizeof(p->role) + 80];

	snprintf(text, sizeof(text), "%sSpawning %s subagent (%.30s)...", term_mark(MARK_START, ""),
		 p->role, run);
	term_wrapped(p->f, text, strlen(text));
	line_end(p->f);
}

/* "❓ [Researcher] asks: Which parser? (1: json, 2: yaml)", and how to answer. */
static void question(struct progress *p, const json_t *c)
{
	bool approval = strcmp(json_str(c, "kind"), "approval") == 0;
	const json_t *choice;
	size_t i;

	if (strcmp(json_str(c, "state"), "asked") != 0)
		return;
	progress_clear(p);
	fprintf(p->f, "%s[%s] asks: ", term_mark(MARK_ASK, ""), p->role);
	term_str(p->f, json_str(c, "question"));
	json_array_foreach(json_object_get(c, "choices"), i, choice)
	{
		fprintf(p->f, "%s%zu: ", i > 0 ? ", " : " (", i + 1);
		term_str(p->f, json_is_string(choice) ? json_string_value(choice) : "?");
	}
	if (i > 0)
		fputc(')', p->f);
	line_end(p->f);
	fputs("Answer with: ", p->f);
	if (approval && p->chat)
		fputs("yes or no, or later ", p->f);
	fputs(p->chat ? "/steer " : "ava steer ", p->f);
	term_str(p->f, json_str(c, "subagentId"));
	fputs(approval ? " yes|no" : " TEXT", p->f);
	line_end(p->f);
}

static void waiting(struct progress *p, const char *line, size_t len)
{
	json_t *event = json_parse(line, len, NULL);

	question(p, json_object_get(event, "content"));
	json_decref(event);
}

void progress_event(struct progress *p, const char *type, const char *line, size_t len)
{
	char before[sizeof(p->role) + 16];
	json_t *event;
	const char *text;

	if (strcmp(type, "Waiting") == 0)
		waiting(p, line, len);
	if (strcmp(type, "Activity") != 0)
		return;
	event = json_parse(line, len, NULL);
	text = json_str(json_object_get(event, "content"), "text");
	if (text[0] != '\0') {
		progress_clear(p);
		snprintf(p->activity, sizeof(p->activity), "%s", text);
		snprintf(before, sizeof(before), "%s[%s] ", term_mark(MARK_LOOK, ""), p->role);
		activity(p->f, before, text);
		line_end(p->f);
	}
	json_decref(event);
}

void progress_clear(struct progress *p)
{
	if (p->shown == 0)
		return;
	fprintf(p->f, "\r%*s\r", (int)p->shown, "");
	fflush(p->f);
	p->shown = 0;
}

void progress_live(struct progress *p, const json_t *status)
{
	size_t before = p->shown, width = term_width(p->f);
	struct buf b;

	if (!p->live || width == 0)
		return;
	buf_init(&b, 4096);
	buf_addf(&b, "%s%s %s (%s, %s tokens)...", term_mark(MARK_LOOK, ""), p->role,
		 json_str(status, "status"),
		 format_seconds(json_get_fixed(status, "elapsed_seconds", 3, 0)).text,
		 format_tokens(json_get_int(status, "tokens_used", 0)).text);
	if (buf_check(&b) == 0) {
		fputc('\r', p->f);
		/* Not in the last column: the next write would wrap. */
		p->shown = term_cut(p->f, b.data, b.len, width - 1);
		if (before > p->shown)
			fprintf(p->f, "%*s", (int)MIN(before - p->shown, width - 1 - p->shown), "");
		fflush(p->f);
	}
	buf_fini(&b);
}

void progress_still_working(struct progress *p)
{
	progress_clear(p);
	activity(p->f,
		 term_utf8() ? MARK_WAIT "Subagent still working: " : "Subagent still working: ",
		 p->activity[0] != '\0' ? p->activity : "no news yet");
	line_end(p->f);
}

void progress_end(FILE *f, const char *role, const json_t *result)
{
	const char *status = json_str(result, "status"), *reason = "",
		   *mark = term_mark(MARK_BAD, "");
	struct format who = format_role(role);
	struct format time = format_seconds(json_get_fixed(result, "duration_seconds", 3, 0));
	struct format cost = format_money(json_get_fixed(result, "cost_cents", 4, -1));
	const char *more = "";
	char text[600];

	switch (cli_exit_of_status(status)) {
	case CLI_DONE:
		mark = term_mark(MARK_DONE, "");
		status = "Complete";
		break;
	case CLI_LIMIT:
		mark = term_mark(MARK_LIMIT, "");
		more = "Stopped, ";
		break;
	default:
		if (strcmp(json_str(result, "stop_reason"), status) != 0)
			reason = json_str(result, "stop_reason");
	}
	snprintf(text, sizeof(text), "%sSubagent [%s]: %s%.60s%s%.200s (%s, %s)", mark, who.text,
		 more, status, reason[0] != '\0' ? ", " : "", reason, time.text, cost.text);
	term_wrapped(f, text, strlen(text));
	line_end(f);
}

void progress_status(FILE *f, const json_t *status)
{
	const char *activity = json_str(status, "current_activity");

	fputs(term_mark(MARK_LOOK, ""), f);
	fputs(format_role(json_str(status, "role")).text, f);
	fputc(' ', f);
	term_str(f, json_str(status, "status"));
	fprintf(f, " (%s, %s tokens)",
		format_seconds(json_get_fixed(status, "elapsed_seconds", 3, 0)).text,
		format_tokens(json_get_int(status, "tokens_used", 0)).text);
	if (activity[0] != '\0') {
		fputs(": ", f);
		term_cut(f, activity, strlen(activity), 300);
	}
	line_end(f);
}

/* Subagents at work. A table searched from its newest row on; a
 * conversation has few. What can fail: the table is full of live runs; the run
 * goes on all the same. */

struct chat_run *chat_runs_find(struct chat_runs *r, const char *id)
{
	for (size_t i = r->n; i > 0; i--)
		if (strcmp(r->run[i - 1].id, id) == 0)
			return &r->run[i - 1];
	return NULL;
}

static bool forget_one(struct chat_runs *r)
{
	for (size_t i = 0; i < r->n; i++) {
		if (r->run[i].live)
			continue;
		memmove(&r->run[i], &r->run[i + 1], (r->n - i - 1) * sizeof(r->run[0]));
		r->n--;
		return true;
	}
	return false;
}

struct chat_run *chat_runs_begin(struct chat_runs *r, const char *id, const char *role,
				 int64_t now_ms)
{
	struct chat_run *run = chat_runs_find(r, id);

	if (run == NULL) {
		if (r->n == CHAT_RUNS_MAX && !forget_one(r))
			return NULL;
		run = &r->run[r->n++];
	}
	*run = (struct chat_run){.live = true, .still_ms = now_ms + PROGRESS_FIRST_MS};
	snprintf(run->id, sizeof(run->id), "%s", id);
	snprintf(run->role, sizeof(run->role), "%s", format_role(role).text);
	return run;
}

struct chat_run *chat_runs_due(struct chat_runs *r, int64_t now_ms)
{
	for (size_t i = 0; i < r->n; i++) {
		if (!r->run[i].live || r->run[i].still_ms > now_ms)
			continue;
		r->run[i].still_ms = now_ms + PROGRESS_NEXT_MS;
		return &r->run[i];
	}
	return NULL;
}

int64_t chat_runs_next(const struct chat_runs *r)
{
	int64_t next = -1;

	for (size_t i = 0; i < r->n; i++)
		if (r->run[i].live && (next < 0 || r->run[i].still_ms < next))
			next = r->run[i].still_ms;
	return next;
}
