/* Items, Asks and the status of a run as lines for people; face.h.
 *
 * Text of a run is made safe for the terminal and kept on one line. Nothing can fail but memory: a
 * line is then left out. */
#include "cli/face.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/front.h"
#include "cli/term.h"
#include "codec/format_of.h"
#include "codec/json.h"
#include "event/item.h"

#define ACTIVITY_COLUMNS 300 /* columns of an activity without a terminal */
#define FACE_LINE        2048
#define QUESTION_MAX     ((size_t)8 << 20)
#define STATUS_MAX       (16u << 10)

void progress_init(struct progress *p, FILE *f, const char *role)
{
	*p = (struct progress){.f = f, .live = term_redraws(f)};
	snprintf(p->role, sizeof(p->role), "%s", format_role(role).text);
	snprintf(p->who, sizeof(p->who), "%s", p->role);
}

static const char *face_mark(enum words_mark m)
{
	return words_mark(m, term_utf8());
}

static void face_line_end(FILE *f)
{
	fputc('\n', f);
	fflush(f);
}

/* A run's activity, cut to one line of the terminal. */
static void activity(FILE *f, const char *line)
{
	size_t width = term_width(f);

	term_cut(f, line, strlen(line), width > 0 ? width : ACTIVITY_COLUMNS);
	face_line_end(f);
}

/* ---- Items */

bool face_is_silent(const json_t *item)
{
	const json_t *detail = json_object_get(item, "detail");
	const char *answer = json_str(detail, "answer");

	switch (item_kind_of(json_str(item, "kind"))) {
	case ITEM_doing: /* a call of Ava's */
		return json_str(detail, "call")[0] != '\0';
	case ITEM_answered: /* the run, or what takes its place, tells it */
		return json_str(item, "ask")[0] == 'S' || strcmp(answer, "replaced") == 0 ||
		       (strcmp(answer, "yes") == 0 && json_str(detail, "changes")[0] == '\0');
	case ITEM_said:
	case ITEM_proposed:
	case ITEM_NKINDS:
		return true;
	case ITEM_started:
	case ITEM_asked:
	case ITEM_result:
	case ITEM_failed:
	case ITEM_expired:
	case ITEM_noted:
		break;
	}
	return false;
}

/* "❓ [Researcher] asks: Which parser? (1: json, 2: yaml)", and how to answer. */
void face_question(FILE *f, const json_t *ask, const char *who, bool chat)
{
	const char *of = json_str(json_object_get(ask, "detail"), "of");
	bool yes_or_no = strcmp(*of ? of : json_str(ask, "kind"), "approval") == 0 ||
			 strcmp(json_str(ask, "kind"), "limit") == 0;
	const json_t *choices = json_object_get(ask, "choices"), *choice;
	char named[96], begin[sizeof(named) + 64];
	struct buf asks;
	size_t i;

	if (choices == NULL) /* an Item has their words alone */
		choices = json_object_get(json_object_get(ask, "detail"), "choices");
	snprintf(named, sizeof(named), "[%.80s]", who);
	snprintf(begin, sizeof(begin), WORDS_ASKS(face_mark(WORDS_MARK_ASK), named, ""));
	term_str(f, begin);
	buf_init(&asks, QUESTION_MAX);
	buf_adds(&asks, json_str(ask, "text"));
	json_array_foreach(choices, i, choice)
	{
		const char *label = json_is_object(choice)   ? json_str(choice, "label")
				    : json_is_string(choice) ? json_string_value(choice)
							     : "?";

		if (!yes_or_no)
			buf_addf(&asks, "%s%zu: %s", i > 0 ? ", " : " (", i + 1, label);
	}
	if (i > 0 && !yes_or_no)
		buf_addc(&asks, ')');
	if (buf_check(&asks) == 0)
		term_theirs(f, term_width(f), asks.data, asks.len,
			    term_columns(begin, strlen(begin)));
	buf_fini(&asks);
	term_print(f, "\n" WORDS_ANSWER_WITH "%s%s%s%s\n",
		   yes_or_no && chat ? "yes or no, or later " : "", chat ? "/steer " : "ava steer ",
		   json_str(ask, "run"), yes_or_no ? " yes|no" : " TEXT");
	fflush(f);
}

/* The line of an end, and what is to be known of the result. */
static void face_end(FILE *f, const char *who, const struct words_end *end, const char *run,
		     const json_t *figures, const char *time, const int64_t told[3])
{
	struct buf check;

	front_tell(f, "Subagent [%s]: %s", who, words_status(json_str(figures, "status")));
	term_line(f, WORDS_ENDED(face_mark(end->mark), who, end, time,
				 format_cost_of(figures, "cost_cents").text));
	if (told[0] > 0)
		term_line(f, WORDS_PROPOSES(told[0], run));
	if (told[2] > 0)
		term_line(f, WORDS_NOT_FOUND_OF(told[2], told[1]));
	buf_init(&check, FACE_LINE);
	format_check(&check, figures);
	if (buf_check(&check) == 0 && check.len > 0)
		term_line(f, "%s", check.data);
	buf_fini(&check);
}

static void face_ended(FILE *f, const json_t *item, const char *who)
{
	const json_t *detail = json_object_get(item, "detail");
	struct words_end end = words_end("", json_str(detail, "status"), "", "", "", 0, 0);

	snprintf(end.what, sizeof(end.what), "%s", json_str(detail, "end"));
	snprintf(end.next, sizeof(end.next), "%s", json_str(detail, "next"));
	face_end(f, who, &end, json_str(item, "run"), detail,
		 format_seconds(json_get_int(detail, "ms", 0)).text,
		 (const int64_t[]){json_get_int(detail, "files", 0),
				   json_get_int(detail, "citations", 0),
				   json_get_int(detail, "not_found", 0)});
}

static void face_coloured(FILE *f, enum term_colour colour, const char *text, const char *more)
{
	char line[FACE_LINE];

	snprintf(line, sizeof(line), "%s%s", text, more);
	term_colour(f, colour);
	term_wrapped(f, line, strlen(line));
	term_colour(f, TERM_PLAIN);
	face_line_end(f);
}

void face_item(FILE *f, const json_t *item, const char *who, bool chat)
{
	const char *run = json_str(item, "run"), *text = json_str(item, "text");
	const char *title = json_str(item, "title");
	enum item_kind kind = item_kind_of(json_str(item, "kind"));
	char line[FACE_LINE];

	if (face_is_silent(item))
		return;
	if (kind == ITEM_started) {
		term_line(f, WORDS_SPAWNING(face_mark(WORDS_MARK_START),
					    format_role(json_str(item, "role")).text, run));
	} else if (kind == ITEM_doing && run[0] != '\0') {
		snprintf(line, sizeof(line), WORDS_DOING(face_mark(WORDS_MARK_LOOK), who, text));
		activity(f, line);
	} else if (kind == ITEM_doing) {
		face_coloured(f, TERM_DIM, text,
			      chat && strstr(text, WORDS_TRYING) ? WORDS_CTRL_C_STOPS : "");
	} else if (kind == ITEM_asked) {
		face_question(f, item, who, chat);
	} else if ((kind == ITEM_result || kind == ITEM_failed) && run[0] != '\0') {
		face_ended(f, item, who);
	} else {
		face_coloured(f,
			      json_str(json_object_get(item, "detail"), "class")[0] ? TERM_RED
										    : TERM_DIM,
			      title, "");
	}
}

char *face_text(const json_t *item, const char *who)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL)
		return NULL;
	face_item(f, item, who, false);
	if (fclose(f) == 0 && len > 0 && text[len - 1] == '\n')
		text[len - 1] = '\0';
	return text;
}

/* ---- one run's lines */

void progress_item(struct progress *p, const json_t *item)
{
	bool doing = strcmp(json_str(item, "kind"), "doing") == 0;

	if (face_is_silent(item))
		return;
	if (doing)
		snprintf(p->activity, sizeof(p->activity), "%s", json_str(item, "text"));
	progress_clear(p);
	face_item(p->f, item, p->who, p->chat);
}

void progress_clear(struct progress *p)
{
	if (p->shown == 0)
		return;
	fprintf(p->f, "\r%*s\r", (int)p->shown, "");
	fflush(p->f);
	p->shown = 0;
}

/* "🔍 WebCrawler running (45s, 12k tokens)" */
static void status_words(char *out, size_t size, const char *role, const json_t *status,
			 const char *more)
{
	snprintf(out, size,
		 WORDS_RUNNING(face_mark(WORDS_MARK_LOOK), role,
			       words_status(json_str(status, "status")),
			       format_time_of(status, "elapsed_seconds").text,
			       format_tokens_of(status, "tokens_used").text, more));
}

#define NARROW 60

static bool narrow(size_t columns)
{
	return columns > 0 && columns < NARROW;
}

char *status_line(const json_t *run, size_t columns)
{
	const char *activity = json_str(run, "current_activity"), *status = json_str(run, "status");
	struct format role = format_role(json_str(run, "role"));
	struct format time = format_time_of(run, "elapsed_seconds");
	struct format tokens = format_tokens_of(run, "tokens_used");
	struct format cost = format_cost_of(run, "cost_cents");
	struct buf b;

	buf_init(&b, STATUS_MAX);
	if (!narrow(columns))
		buf_addf(&b, WORDS_RUNNING_FOR(role.text, words_status(status), time.text,
					       tokens.text, cost.text));
	else if (strcmp(status, "running") == 0)
		buf_addf(&b, "%s %s %s", role.text, time.text, tokens.text);
	else
		buf_addf(&b, "%s %s", role.text, words_status(status));
	/* A waiting run's question, too: the overview shows a person that it waits for them. */
	if (activity[0] != '\0' &&
	    (strcmp(status, "running") == 0 || strcmp(status, "waiting") == 0 ||
	     strcmp(status, "parked") == 0))
		buf_addf(&b, "%s %.1000s", narrow(columns) ? "" : ":", activity);
	if (buf_check(&b) == 0)
		return b.data;
	buf_fini(&b);
	return NULL;
}

void progress_live(struct progress *p, const json_t *status)
{
	size_t before = p->shown, width = term_width(p->f);
	const char *progress = json_str(status, "progress");
	char text[512];

	if (!p->live || width == 0)
		return;
	status_words(text, sizeof(text), p->role, status, "...");
	if (progress[0] != '\0')
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", progress);
	fputc('\r', p->f);
	/* Leave the last column free: after it the next write would wrap. */
	p->shown = term_cut(p->f, text, strlen(text), width - 1);
	if (before > p->shown)
		fprintf(p->f, "%*s", (int)MIN(before - p->shown, width - 1 - p->shown), "");
	fflush(p->f);
}

void progress_still_working(struct progress *p, const json_t *status)
{
	const char *progress = json_str(status, "progress");
	const char *now = progress[0] != '\0' ? progress : json_str(status, "current_activity");
	char line[FACE_LINE];

	if (now[0] != '\0')
		snprintf(p->activity, sizeof(p->activity), "%s", now);
	now = p->activity[0] != '\0' ? p->activity : WORDS_NO_NEWS;
	progress_clear(p);
	if (strcmp(p->who, p->role) != 0)
		snprintf(line, sizeof(line),
			 WORDS_STILL_WORKING_AS(face_mark(WORDS_MARK_WAIT), p->who, now));
	else
		snprintf(line, sizeof(line), WORDS_STILL_WORKING(face_mark(WORDS_MARK_WAIT), now));
	activity(p->f, line);
}

void progress_end(FILE *f, const char *who, const json_t *result, const json_t *run)
{
	const struct words_end end = format_end_of(result, run);
	int64_t all, failed = format_not_found(result, &all);

	face_end(f, who, &end, json_str(result, "subagent_id"), result,
		 format_time_of(result, "duration_seconds").text,
		 (const int64_t[]){json_get_int(json_object_get(result, "patch"), "files", 0), all,
				   failed});
}

void progress_status(FILE *f, const json_t *status)
{
	const char *doing = json_str(status, "current_activity");
	size_t width = term_width(f), used;
	char text[256];

	status_words(text, sizeof(text), format_role(json_str(status, "role")).text, status, "");
	term_str(f, text);
	if (doing[0] != '\0') {
		used = term_columns(text, strlen(text)) + 2;
		fputs(": ", f);
		term_cut(f, doing, strlen(doing),
			 width > used ? MIN(width - used, ACTIVITY_COLUMNS) : ACTIVITY_COLUMNS);
	}
	face_line_end(f);
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

static void chat_runs_name(struct chat_run *r)
{
	snprintf(r->shown.who, sizeof(r->shown.who), "%s %s", r->shown.role, r->id);
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
	progress_init(&run->shown, stdout, role);
	run->shown.chat = true;
	for (size_t i = 0; i < r->n; i++) { /* runs of one role need an id in their name */
		struct chat_run *other = &r->run[i];

		if (other == run || !other->live || strcmp(other->shown.role, run->shown.role) != 0)
			continue;
		chat_runs_name(other);
		chat_runs_name(run);
	}
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
