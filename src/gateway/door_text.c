/* See door_inside.h. Words are those of base/words.h, figures those of base/format.h; texts of
 * this door alone stand here.
 *
 * Nothing can fail but memory, which the buffer remembers. */
#include "gateway/door_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/util.h"
#include "codec/format_of.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define STILL_MS    30000 /* age from which a run is told to be still at work */
#define CITATIONS   20
#define PREVIEW     160 /* characters shown of an event */
#define QUOTE_CHARS 200

const char door_text_help[] =
	"Say what you need, as to a colleague. When it deserves a subagent I show a quote first; "
	"nothing starts before you say yes.\n\n"
	"/runs - what ran last\n"
	"/status S-id - how a run is; without an id, how ava is\n"
	"/result S-id - all that a run found\n"
	"/cancel S-id - stop a run for good\n"
	"/pause S-id - let it stand still from the end of its turn on; /unpause S-id lets it go "
	"on\n"
	"/logs S-id - what it did last\n"
	"/cost - what today has cost\n"
	"/orders - what starts by the clock\n"
	"/pause O-id, /unpause O-id, /remove O-id - stop one of them for a while, or for good\n"
	"/new - begin a new conversation\n\n"
	"Answer to a question of a run, a quote or a run's line by replying to that message.";

/* Add a model's text with its blanks, such as the lines of a patch: each line behind the bar, with
 * which no line of ava's begins. `begun`: the first goes on a line of ours. */
static void add_lines(struct buf *out, const char *s, size_t len, bool begun)
{
	for (size_t n; len > 0; s += n, len -= n, begun = false) {
		const char *nl = memchr(s, '\n', len);

		n = nl ? (size_t)(nl - s) + 1 : len;
		if (!begun)
			buf_adds(out, WORDS_BAR);
		(void)utf8_terminal(out, s, n, true);
	}
}

/* Add a model's prose, as add_lines. */
static void add_theirs(struct buf *out, const char *s, size_t chars, bool begun)
{
	size_t len = utf8_prefix(s, strlen(s), chars);
	struct buf text;

	buf_init(&text, DOOR_TEXT_BYTES);
	if (utf8_prose(&text, s, len) == 0)
		add_lines(out, text.data ? text.data : "", text.len, begun);
	else
		out->failed = true;
	buf_fini(&text);
}

void door_text_run(struct buf *out, const json_t *run)
{
	const char *status = json_str(run, "status"), *progress = json_str(run, "progress");
	bool still = strcmp(status, "running") == 0 &&
		     json_get_fixed(run, "elapsed_seconds", 3, 0) >= STILL_MS;
	const char *doing = still && progress[0] ? progress : json_str(run, "current_activity");
	struct format role = format_role(json_str(run, "role"));
	struct words_end end;
	struct buf clean;

	buf_addf(out, WORDS_SPAWNING(words_mark(WORDS_MARK_START, true), role.text,
				     json_str(run, "subagent_id")));
	if (json_str(run, "ended_at")[0]) {
		end = format_end_of(run, run);
		buf_addf(out, "\n" WORDS_ENDED(words_mark(end.mark, true), role.text, &end,
					       format_time_of(run, "elapsed_seconds").text,
					       format_cost_of(run, "cost_cents").text));
		return;
	}
	if (strcmp(status, "starting") == 0)
		return;
	buf_addf(out, "\n" WORDS_RUNNING(words_mark(WORDS_MARK_LOOK, true), role.text,
					 words_status(status),
					 format_time_of(run, "elapsed_seconds").text,
					 format_tokens_of(run, "tokens_used").text, "..."));
	if (!doing[0])
		return;
	buf_init(&clean, 16 * PREVIEW);
	add_theirs(&clean, doing, PREVIEW, true);
	doing = clean.data ? clean.data : "";
	buf_addc(out, '\n');
	if (!still)
		buf_addf(out, WORDS_DOING(words_mark(WORDS_MARK_LOOK, true), role.text, doing));
	else
		buf_addf(out, WORDS_STILL_WORKING(words_mark(WORDS_MARK_WAIT, true), doing));
	buf_fini(&clean);
}

/* ---- standing orders */

void door_text_order(struct buf *out, const json_t *order)
{
	const char *why = json_str(order, "why"), *ask = json_str(order, "ask");
	int64_t at = json_time(json_array_get(json_object_get(order, "next"), 0));
	char soon[CLOCK_SOON];

	buf_addf(out, "%s is %s: ", json_str(order, "order_id"), json_str(order, "state"));
	add_theirs(out, json_str(order, "task"), QUOTE_CHARS, true);
	buf_adds(out, "\n");
	add_theirs(out, json_str(order, "text"), QUOTE_CHARS, true);
	if (at >= 0) {
		clock_local_soon(at, clock_wall_ms(), soon);
		buf_addf(out, "\nNext: %s", soon);
	}
	if (*why) {
		buf_adds(out, "\n");
		add_theirs(out, why, QUOTE_CHARS, true);
	}
	if (*ask)
		buf_addf(out, "\n" WORDS_WAITS(ask, ""));
}

void door_text_orders(struct buf *out, const json_t *list)
{
	const json_t *orders = json_object_get(list, "orders"), *one;
	size_t i;

	json_array_foreach(orders, i, one)
	{
		buf_adds(out, i > 0 ? "\n\n" : "");
		door_text_order(out, one);
	}
	if (json_array_size(orders) == 0)
		buf_adds(out, "There are no standing orders.");
}

/* ---- a result */

static void text_add_output(struct buf *out, const json_t *output)
{
	char *pretty;

	if (!output || json_is_null(output))
		return;
	buf_adds(out, "\n\n");
	if (json_is_string(output)) {
		add_theirs(out, json_string_value(output), SIZE_MAX, false);
		return;
	}
	pretty = json_dumps(output, JSON_INDENT(2) | JSON_ENCODE_ANY);
	if (pretty)
		add_theirs(out, pretty, SIZE_MAX, false);
	free(pretty);
}

static void add_citations(struct buf *out, const json_t *citations)
{
	const json_t *c;
	size_t i;

	json_array_foreach(citations, i, c)
	{
		if (i == CITATIONS) {
			buf_addf(out, "\n... %zu more", json_array_size(citations) - i);
			return;
		}
		buf_adds(out, i == 0 ? "\n\n" : "\n");
		add_theirs(out, json_get_str(c, "path") ? json_str(c, "path") : json_str(c, "url"),
			   QUOTE_CHARS, false);
		if (json_get_int(c, "line", 0) > 0)
			buf_addf(out, ":%" PRId64, json_get_int(c, "line", 0));
		buf_adds(out, "  ");
		add_theirs(out, json_str(c, "quote"), QUOTE_CHARS, true);
	}
}

void door_text_result(struct buf *out, const json_t *result)
{
	const struct words_end end = format_end_of(result, NULL);
	const json_t *caveats = json_object_get(result, "caveats"), *v;
	int64_t all, failed = format_not_found(result, &all);
	size_t i;

	buf_adds(out, words_mark(end.mark, true));
	buf_addf(out, WORDS_RESULT_OF(json_str(result, "subagent_id"), end.what, &end));
	buf_adds(out, "\n\n");
	add_theirs(out, json_str(result, "summary"), SIZE_MAX, false);
	text_add_output(out, json_object_get(result, "output"));
	add_citations(out, json_object_get(result, "citations"));
	if (failed > 0)
		buf_addf(out, "\n" WORDS_NOT_FOUND_OF(failed, all));
	buf_adds(out, json_object_get(result, "check") ? "\n\n" : "");
	format_check(out, result);
	json_array_foreach(caveats, i, v)
	{
		buf_addf(out, i == 0 ? "\n\n" WORDS_CAVEATS ":\n- " : "\n- ");
		add_theirs(out, json_is_string(v) ? json_string_value(v) : "", SIZE_MAX, true);
	}
	if (json_get_bool(result, "partial", false))
		buf_adds(out, "\n" WORDS_PARTIAL);
	if (json_get_bool(result, "unverified", false))
		buf_adds(out, "\n" WORDS_UNVERIFIED);
	buf_addf(out, "\n\n%s, ", json_str(result, "subagent_id"));
	buf_addf(out, WORDS_TOTALS(format_time_of(result, "duration_seconds").text,
				   format_tokens_of(result, "tokens_used").text,
				   format_cost_of(result, "cost_cents").text,
				   words_amount(WORDS_LIMIT_REPLIES,
						json_get_int(result, "iterations", 0))
					   .text));
}

/* ---- cards */

/* Buttons for its choices, and for other words about a quote; none where they would not fit. */
static void ask_buttons(char out[DOOR_LABELS], const json_t *ask)
{
	const json_t *choices = json_object_get(ask, "choices"), *choice;
	bool change = json_str(ask, "id")[0] == 'P';
	struct buf b;
	size_t i;

	buf_init(&b, DOOR_LABELS);
	json_array_foreach(choices, i, choice) buf_addf(&b, "%s\n", json_str(choice, "label"));
	if (change)
		buf_adds(&b, DOOR_LABEL_CHANGE);
	snprintf(out, DOOR_LABELS, "%s",
		 b.len == 0 || buf_check(&b) != 0 || i + change > DOOR_BUTTONS ? "" : b.data);
	buf_fini(&b);
}

/* The outcome of a quote. */
static void ask_outcome(struct buf *out, const json_t *ask)
{
	const char *state = json_str(ask, "state"), *id = json_str(ask, "id");

	buf_addf(out, "\n\n%s",
		 words_mark(state[0] == 'c' ? WORDS_MARK_DONE : WORDS_MARK_STOP, true));
	if (state[0] == 'c')
		buf_addf(out, "Confirmed: %s", json_str(ask, "run"));
	else if (json_str(ask, "replaced_by")[0])
		buf_addf(out, WORDS_REPLACED(id, json_str(ask, "replaced_by")));
	else if (strcmp(state, "rejected") == 0)
		buf_addf(out, WORDS_REJECTED(id));
	else
		buf_addf(out, WORDS_EXPIRED(id));
}

/* An Ask, and how to answer it where there are no buttons. */
static void text_ask(struct buf *out, const json_t *ask, const char *labels)
{
	const json_t *choice;
	const char *id = json_str(ask, "id"), *text = json_str(ask, "text");
	size_t i;

	if (id[0] == 'P') {
		buf_addf(out, "%s\n\n", id);
		(void)utf8_terminal(out, text, strlen(text), true);
	} else {
		if (id[0] == 'S')
			buf_addf(out, WORDS_ASKS(words_mark(WORDS_MARK_ASK, true),
						 json_str(ask, "run"), ""));
		add_lines(out, text, strlen(text), true);
	}
	if (strcmp(json_str(ask, "state"), "open") != 0) {
		ask_outcome(out, ask);
		return;
	}
	if (labels[0])
		return;
	json_array_foreach(json_object_get(ask, "choices"), i, choice)
	{
		buf_addf(out, "\n%zu. ", i + 1);
		add_theirs(out, json_str(choice, "label"), SIZE_MAX, true);
	}
	buf_adds(out, "\n\nReply to this message with your answer.");
}

void door_text_card(struct buf *out, struct door_card *c, const json_t *answer)
{
	if (id_is_run(c->id)) {
		snprintf(c->labels, sizeof(c->labels), "%s",
			 json_str(answer, "ended_at")[0] ? "" : "Cancel");
		door_text_run(out, answer);
	} else {
		ask_buttons(c->labels, answer);
		text_ask(out, answer, c->labels);
	}
}

/* ---- answers to commands */

void door_text_runs(struct buf *out, const json_t *list)
{
	const json_t *runs = json_object_get(list, "runs"), *run;
	size_t i;

	buf_adds(out, json_array_size(runs) > 0 ? "The newest runs:" : "Nothing has run yet.");
	json_array_foreach(runs, i, run)
	{
		buf_addf(out, "\n%s ", json_str(run, "subagent_id"));
		buf_addf(out, WORDS_RUNNING_FOR(format_role(json_str(run, "role")).text,
						words_status(json_str(run, "status")),
						format_time_of(run, "elapsed_seconds").text,
						format_tokens_of(run, "tokens_used").text,
						format_cost_of(run, "cost_cents").text));
		buf_adds(out, "\n  ");
		add_theirs(out, json_str(run, "task"), PREVIEW / 2, true);
	}
}

void door_text_logs(struct buf *out, const json_t *events)
{
	static const char *const told[] = {"text", "name", "message", "summary", "state", "model"};
	const json_t *list = json_object_get(events, "events"), *e;
	size_t i;

	if (json_array_size(list) == 0)
		buf_adds(out, "Nothing is logged of it.");
	json_array_foreach(list, i, e)
	{
		const json_t *content = json_object_get(e, "content");

		/* "2026-11-21T08:00:00.123Z": the time of day. */
		buf_addf(out, "%s%.8s %s ", i > 0 ? "\n" : "",
			 strlen(json_str(e, "timestamp")) > 19 ? json_str(e, "timestamp") + 11 : "",
			 json_str(e, "eventType"));
		for (size_t k = 0; k < ARRAY_LEN(told); k++) {
			if (!json_str(content, told[k])[0])
				continue;
			add_theirs(out, json_str(content, told[k]), PREVIEW, true);
			break;
		}
	}
}

void door_text_cost(struct buf *out, const json_t *health)
{
	const json_t *today = json_object_get(health, "today"), *budget;
	size_t i;

	buf_addf(out,
		 WORDS_TODAY(format_cost_of(today, "cost_cents").text,
			     format_tokens_of(today, "tokens").text, json_get_int(today, "runs", 0),
			     json_get_int(today, "uncosted_runs", 0) > 0
				     ? ", and what some cost is not known"
				     : ""));
	json_array_foreach(json_object_get(health, "budgets"), i, budget) buf_addf(
		out, "\nB%s: %s of %s used", json_str(budget, "name") + 1,
		format_cost_of(budget, "used_cents").text, format_cost_of(budget, "cents").text);
}

void door_text_health(struct buf *out, const json_t *health)
{
	const json_t *slots = json_object_get(health, "slots");

	buf_addf(out, "ava %s, model %s\n%" PRId64 " of %" PRId64 " slots used, %" PRId64 " queued",
		 json_str(health, "version"), json_str(health, "model"),
		 json_get_int(slots, "used", 0), json_get_int(slots, "max", 0),
		 json_get_int(health, "queued", 0));
	if (json_str(health, "problem")[0])
		buf_addf(out, "\nproblem: %s", json_str(health, "problem"));
}
