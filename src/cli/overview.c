/* ava status [S-id]: one run in full, or what the daemon does, on one page: its slots,
 * today's spend, each live run on a line, proposals that wait for an answer, conversations at
 * work. `watch ava status` shows it anew.
 *
 * What can fail: no such run (5), the daemon, memory (a line is then left out). All text is the
 * daemon's or a model's: made safe when it is cut. */
#include <ava.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/doors.h"
#include "base/rights_words.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/face.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

#define RUNS_MAX 1000 /* runs that are asked for; more are only counted */

static struct {
	bool json;
} o;

static const struct opt opts[] = {OPT("json", 0, FLAG, NULL, json, "as one JSON object")};

struct status {
	const char *id; /* the run that is shown; NULL: the overview */
	json_t *health; /* owned, as all members of this kind */
	json_t *runs;   /* array of the live runs, or of the one that was asked for */
	json_t *proposals;
	json_t *sessions;
};

/* ---- asking */

static void overview_forget(struct status *s)
{
	json_decref(s->health);
	json_decref(s->runs);
	json_decref(s->proposals);
	json_decref(s->sessions);
}

/* GET `path`; of the answer the list with that name. */
static int get_list(json_t **list, const char *path, const char *key, struct ava_error *err)
{
	json_t *reply = NULL;
	int rv = api_request(NULL, &reply, err, "%s", path);

	if (rv == 0)
		*list = json_incref(json_object_get(reply, key));
	json_decref(reply);
	return rv;
}

static int overview_load(struct status *s, struct ava_error *err)
{
	char path[32];
	json_t *run = NULL;
	int rv;

	rv = api_request(NULL, &s->health, err, "/health");
	if (rv == 0 && s->id != NULL) {
		rv = api_request(NULL, &run, err, "/runs/%s", s->id);
		s->runs = json_array();
		json_array_append_new(s->runs, run);
		return rv;
	}
	snprintf(path, sizeof(path), "/runs?limit=%d", RUNS_MAX);
	if (rv == 0)
		rv = get_list(&s->runs, path, "runs", err);
	if (rv == 0)
		rv = get_list(&s->proposals, "/proposals", "proposals", err);
	if (rv == 0)
		rv = get_list(&s->sessions, "/sessions?limit=100", "sessions", err);
	return rv;
}

/* ---- lines */

/* A line, cut to the terminal's width. */
static void linef(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void linef(const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	term_cut(stdout, text, strlen(text), term_width(stdout));
	putchar('\n');
}

static void otel_line(const json_t *otel)
{
	int64_t given_up = json_get_int(otel, "given_up", 0);
	const char *run = json_str(otel, "at_work_on"), *problem = json_str(otel, "problem");
	char lost[64] = "";

	if (given_up > 0)
		snprintf(lost, sizeof(lost), ", %" PRId64 " given up", given_up);
	linef("traces to %s: %" PRId64 " pushed%s%s%s%s%s", json_str(otel, "endpoint"),
	      json_get_int(otel, "pushed", 0), lost, run[0] != '\0' ? ", waiting: " : "", run,
	      problem[0] != '\0' ? "; " : "", problem);
}

/* The web page's address and the other clients. */
static void doors_line(const json_t *health)
{
	const json_t *web = json_object_get(health, "web");
	const char *url = json_str(web, "url"), *problem = json_str(web, "problem");
	const json_t *door;
	struct buf b;
	size_t i;

	buf_init(&b, 1000);
	json_array_foreach(json_object_get(health, "doors"), i,
			   door) if (strcmp(json_str(door, "door"), "terminal") != 0)
		buf_addf(&b, "%s%s %s ago", b.len > 0 ? ", " : "", json_str(door, "door"),
			 format_time_of(door, "seconds_ago").text);
	if (b.len > 0)
		linef("asked by %s", b.data);
	if (url[0] != '\0' || problem[0] != '\0')
		linef("page: %s", problem[0] != '\0' ? problem : url);
	buf_fini(&b);
}

static void head(const json_t *health)
{
	char line[SHOW_DOOR_MAX];
	const json_t *slots = json_object_get(health, "slots");
	const json_t *today = json_object_get(health, "today");
	int64_t total = json_get_int(json_object_get(health, "runs"), "total", 0);
	int64_t runs = json_get_int(today, "runs", 0);
	int64_t uncosted = json_get_int(today, "uncosted_runs", 0);
	const json_t *budget;
	size_t i;
	const char *why = json_str(health, "model_why"), *problem = json_str(health, "problem");

	linef("ava %s, up %s, model %s%s%s%s", json_str(health, "version"),
	      format_time_of(health, "uptime_seconds").text, json_str(health, "model"),
	      why[0] != '\0' ? " (" : "", why, why[0] != '\0' ? ")" : "");
	linef("%" PRId64 " of %" PRId64 " slots used, %" PRId64 " queued, %" PRId64 " run%s in all",
	      json_get_int(slots, "used", 0), json_get_int(slots, "max", 0),
	      json_get_int(health, "queued", 0), total, WORDS_S(total));
	linef(WORDS_TODAY(format_money(json_get_fixed(today, "cost_cents", 4, 0)).text,
			  format_tokens_of(today, "tokens").text, runs,
			  uncosted > 0 ? ", and what some cost is not known" : ""));
	json_array_foreach(json_object_get(health, "budgets"), i, budget)
		linef("%s: %s of %s used", json_str(budget, "name"),
		      format_money(json_get_fixed(budget, "used_cents", 4, 0)).text,
		      format_money(json_get_fixed(budget, "cents", 4, 0)).text);
	if (json_object_get(health, "otel") != NULL)
		otel_line(json_object_get(health, "otel"));
	doors_line(health);
#define X(name, ...)                                                                               \
	if (json_object_get(health, #name) != NULL)                                                \
		linef(#name ": %s", show_door(json_object_get(health, #name), line));
	DOORS(X)
#undef X
	if (problem[0] != '\0')
		linef("problem: %s", problem);
}

/* ---- parts */

static void print_runs(const struct status *s)
{
	int64_t live = json_get_int(json_object_get(s->health, "runs"), "running", 0);
	int64_t more = live - (int64_t)json_array_size(s->runs);
	const json_t *run;
	size_t i;

	json_array_foreach(s->runs, i, run)
	{
		char *words = status_line(run, term_width(stdout));

		if (words != NULL)
			linef("%-9s %s", json_str(run, "subagent_id"), words);
		free(words);
	}
	if (more > 0)
		linef("and %" PRId64 " more (ava ps)", more);
}

static void print_proposals(const struct status *s)
{
	const json_t *one;
	size_t i;

	if (json_array_size(s->proposals) > 0)
		linef(WORDS_WAITING);
	json_array_foreach(s->proposals, i, one)
	{
		const json_t *quote = json_object_get(one, "quote");
		int64_t left = json_time(json_object_get(one, "expires_at")) - clock_wall_ms();

		linef("%-9s %s, up to %s, %" PRId64 " min left: %.1000s",
		      json_str(one, "proposal_id"), format_role(json_str(quote, "role")).text,
		      format_most_of(quote, "costCents").text, MAX(left + 59999, 0) / 60000,
		      json_str(json_object_get(one, "config"), "task"));
	}
}

static bool at_work(const json_t *session)
{
	return strcmp(json_str(session, "status"), "busy") == 0 ||
	       json_get_int(session, "live_runs", 0) > 0 || json_get_int(session, "waiting", 0) > 0;
}

static void print_sessions(const struct status *s)
{
	const json_t *one;
	size_t n = 0, i;

	json_array_foreach(s->sessions, i, one)
	{
		int64_t live = json_get_int(one, "live_runs", 0);

		if (!at_work(one))
			continue;
		if (n++ == 0)
			linef("Conversations at work:");
		linef("%.8s  %s, %" PRId64 " subagent%s: %.1000s", json_str(one, "session_id"),
		      strcmp(json_str(one, "status"), "busy") == 0 ? "Ava answers" : "Ava waits",
		      live, WORDS_S(live), json_str(one, "title"));
	}
}

/* ---- one run */

static void overview_named(const char *name, const char *text)
{
	if (text[0] != '\0')
		linef("%-10s %.2000s", name, text);
}

/* A run's question, and how to answer it. */
static void overview_print_question(const json_t *run)
{
	const json_t *q = json_object_get(run, "waiting_for"), *choice;
	char number[32];
	size_t i;

	if (q == NULL)
		return;
	overview_named("asks", json_str(q, "question"));
	json_array_foreach(json_object_get(q, "choices"), i, choice)
	{
		snprintf(number, sizeof(number), "  %zu", i + 1);
		overview_named(number, json_is_string(choice) ? json_string_value(choice) : "?");
	}
	overview_named("default", json_str(q, "default"));
	overview_named("until", format_moment_of(q, "expires_at").text);
	linef("%-10s ava steer %s %s", "answer", json_str(run, "subagent_id"),
	      strcmp(json_str(q, "kind"), "approval") == 0 ? "yes|no" : "TEXT");
}

/* "reads your data, no network" */
static void print_rights(const json_t *run)
{
	const json_t *all = json_object_get(run, "rights");
	bool net = json_get_bool(all, "untrusted", false) || json_get_bool(all, "out", false);
	char text[200] = "";

#define X(flag, key, has, lacks)                                                                   \
	if (net || strcmp(key, "untrusted") != 0)                                                  \
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",                 \
			 text[0] ? ", " : "",                                                      \
			 json_get_bool(all, key, false)    ? has                                   \
			 : !net && strcmp(key, "out") == 0 ? RIGHTS_NO_NETWORK                     \
							   : lacks);
	RIGHTS(X)
#undef X
	if (all != NULL)
		overview_named("rights", text);
}

static void print_run(const json_t *run)
{
	const json_t *limits = json_object_get(run, "limits");
	const struct words_end end = format_end_of(run, run);
	bool in_words = end.what[0] != '\0' && strcmp(json_str(run, "status"), "success") != 0;

	overview_named("run", json_str(run, "subagent_id"));
	overview_named("trace", json_str(run, "trace_id"));
	overview_named("machine", json_str(run, "machine"));
	overview_named("role", format_role(json_str(run, "role")).text);
	overview_named("status", in_words ? end.what : words_status(json_str(run, "status")));
	overview_named("next", end.next);
	if (!in_words)
		overview_named("reason", json_str(run, "stop_reason"));
	overview_named("task", json_str(run, "task"));
	if (json_object_get(run, "waiting_for") == NULL)
		overview_named("doing", json_str(run, "current_activity"));
	overview_print_question(run);
	overview_named("last tool", json_str(json_object_get(run, "last_tool_call"), "name"));
	overview_named("model", json_str(run, "model"));
	overview_named("folder", json_str(run, "cwd"));
	print_rights(run);
	overview_named("started", format_moment_of(run, "started_at").text);
	overview_named("ended", format_moment_of(run, "ended_at").text);
	linef("%-10s %s of %s, %s of %s, %s of %s, %" PRId64 " of %s", "used",
	      format_time_of(run, "elapsed_seconds").text, format_limit_of(limits, "timeout").text,
	      format_cost_of(run, "cost_cents").text,
	      format_limit_of(limits, "max_cost_cents").text,
	      format_tokens_of(run, "tokens_used").text, format_limit_of(limits, "max_tokens").text,
	      json_get_int(run, "iteration", 0), format_limit_of(limits, "max_iterations").text);
}

static void overview_print_json(const struct status *s)
{
	json_t *all = s->id != NULL
			      ? json_incref(json_array_get(s->runs, 0))
			      : json_pack("{s:O,s:O,s:O,s:O}", "health", s->health, "runs", s->runs,
					  "proposals", s->proposals, "sessions", s->sessions);

	show_json(stdout, all);
	json_decref(all);
}

static int status_run(int argc, char **argv)
{
	struct status s = {.id = argc > 0 ? argv[0] : NULL};
	struct ava_error err;
	int rv = overview_load(&s, &err);
	if (rv == 0 && o.json) {
		overview_print_json(&s);
	} else if (rv == 0 && s.id != NULL) {
		print_run(json_array_get(s.runs, 0));
	} else if (rv == 0) {
		head(s.health);
		print_runs(&s);
		print_proposals(&s);
		print_sessions(&s);
	}
	overview_forget(&s);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

const struct command cmd_status =
	COMMAND("status", "[S-id]", 0, 1, "show one run, or the daemon and all live runs",
		"`watch ava status` shows it anew as it changes; `ava dashboard` has it live.\n",
		OPTIONS(opts), status_run);
