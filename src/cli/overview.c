/* ava status [S-id]: one run in full, or what the daemon does, on one page: its slots,
 * today's spend, each live run on a line, proposals that wait for an answer, conversations at
 * work. --watch shows it anew as it changes: one screen on a terminal, elsewhere a line for
 * each change (with --json the whole object).
 *
 * Happy path: ask, then lines that are made whole and cut to the page. Rows are dealt out
 * before anything is printed: proposals and sessions take a few, live runs the rest.
 * Looking on listens behind the lsn of what was shown until the first event or a second has
 * passed, and asks again; at most five times a second. The screen is the terminal's other
 * one, so that what stood there comes back.
 *
 * What can fail: no such run (5), the daemon goes away (it is told on the screen, and its
 * successor asked), memory (a line is then left out), signals: they only set a flag that every
 * wait looks at, and take effect when the terminal is as it was before. All text
 * is the daemon's or a model's: made safe when it is cut. */
#include <ava.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rights_words.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/face.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

#define FEW       3    /* rows of proposals and of sessions on a short terminal */
#define RUNS_MAX  1000 /* runs that are asked for; more are only counted */
#define PAUSE_MS  200  /* pause between two pictures */
#define SCREEN_MS 1000
#define LINES_MS  10000
#define ENTER     "\033[?1049h\033[?25l"
#define LEAVE     "\033[?25h\033[?1049l"

static struct {
	bool json, watch;
} o;

static const struct opt opts[] = {
	OPT("watch", 'w', FLAG, NULL, watch,
	    "go on showing it, anew as it changes, until Ctrl-C or the run's end"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object; with --watch one a line"),
};

struct status {
	const char *id; /* the run that is shown; NULL: the overview */
	json_t *health; /* owned, as all members of this kind */
	json_t *runs;   /* array of the live runs, or of the one that was asked for */
	json_t *proposals;
	json_t *sessions;
	json_t *gone; /* array; runs that were printed and have ended since; lines only */
	json_t *seen; /* the line printed last of each run id; lines only */
};

/* A page that is `columns` wide (0: no limit) and `rows` high (0: no limit; what
 * has no room is counted). Every line is followed by `end`. */
struct overview_page {
	FILE *f;
	size_t columns, rows;
	const char *end; /* "\n", with the code before it that clears the rest of a row */
	size_t used;     /* rows written so far */
};

/* ---- asking */

static void overview_forget(struct status *s)
{
	json_t **all[] = {&s->health, &s->runs, &s->proposals, &s->sessions, &s->gone};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		json_decref(*all[i]);
		*all[i] = NULL;
	}
}

static bool overview_is_live(const struct status *s, const char *id)
{
	const json_t *run;
	size_t i;

	json_array_foreach(s->runs, i,
			   run) if (strcmp(json_str(run, "subagent_id"), id) == 0) return true;
	return false;
}

/* Find how printed runs that are not live any more have ended. */
static int find_gone(struct status *s, struct client *c, struct ava_error *err)
{
	const char *id;
	json_t *text, *run;
	int rv = 0;

	s->gone = json_array();
	json_object_foreach(s->seen, id, text)
	{
		if (rv != 0 || id[0] != 'S' || overview_is_live(s, id))
			continue;
		rv = api_get(c, &run, err, "/runs/%s", id);
		if (rv == 0)
			json_array_append_new(s->gone, run);
	}
	return rv;
}

/* GET `path`; of the answer the list with that name. */
static int get_list(struct client *c, json_t **list, const char *path, const char *key,
		    struct ava_error *err)
{
	json_t *reply = NULL;
	int rv = api_get(c, &reply, err, "%s", path);

	if (rv == 0)
		*list = json_incref(json_object_get(reply, key));
	json_decref(reply);
	return rv;
}

static int overview_load(struct status *s, struct client *c, struct ava_error *err)
{
	char path[32];
	json_t *run = NULL;
	int rv;

	overview_forget(s);
	rv = api_get(c, &s->health, err, "/health");
	if (rv == 0 && s->id != NULL) {
		rv = api_get(c, &run, err, "/runs/%s", s->id);
		s->runs = json_array();
		json_array_append_new(s->runs, run);
		return rv;
	}
	snprintf(path, sizeof(path), "/runs?limit=%d", RUNS_MAX);
	if (rv == 0)
		rv = get_list(c, &s->runs, path, "runs", err);
	if (rv == 0)
		rv = get_list(c, &s->proposals, "/proposals", "proposals", err);
	if (rv == 0)
		rv = get_list(c, &s->sessions, "/sessions?limit=100", "sessions", err);
	if (rv == 0 && s->seen != NULL)
		rv = find_gone(s, c, err);
	return rv;
}

/* ---- lines */

/* Add a line to the page, cut to its width, unless the page is full. */
static void linef(struct overview_page *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void linef(struct overview_page *p, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	if (p->rows > 0 && p->used == p->rows)
		return;
	p->used++;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	term_cut(p->f, text, strlen(text), p->columns);
	fputs(p->end, p->f);
}

static void otel_line(struct overview_page *p, const json_t *otel)
{
	int64_t given_up = json_get_int(otel, "given_up", 0);
	const char *run = json_str(otel, "at_work_on"), *problem = json_str(otel, "problem");
	char lost[64] = "";

	if (given_up > 0)
		snprintf(lost, sizeof(lost), ", %" PRId64 " given up", given_up);
	linef(p, "traces to %s: %" PRId64 " pushed%s%s%s%s%s", json_str(otel, "endpoint"),
	      json_get_int(otel, "pushed", 0), lost, run[0] != '\0' ? ", waiting: " : "", run,
	      problem[0] != '\0' ? "; " : "", problem);
}

static void telegram_line(struct overview_page *p, const json_t *door)
{
	const char *name = json_str(door, "bot"), *problem = json_str(door, "problem");

	linef(p, "telegram%s%s: %s, %zu paired%s%s", name[0] != '\0' ? " @" : "", name,
	      json_str(door, "state"), json_array_size(json_object_get(door, "paired")),
	      problem[0] != '\0' ? "; " : "", problem);
}

/* The web page's address and the other clients. */
static void doors_line(const json_t *health, struct overview_page *p)
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
		linef(p, "asked by %s", b.data);
	if (url[0] != '\0' || problem[0] != '\0')
		linef(p, "page: %s", problem[0] != '\0' ? problem : url);
	buf_fini(&b);
}

static void head(const json_t *health, struct overview_page *p)
{
	const json_t *slots = json_object_get(health, "slots");
	const json_t *today = json_object_get(health, "today");
	int64_t total = json_get_int(json_object_get(health, "runs"), "total", 0);
	int64_t runs = json_get_int(today, "runs", 0);
	int64_t uncosted = json_get_int(today, "uncosted_runs", 0);
	const char *why = json_str(health, "model_why"), *problem = json_str(health, "problem");

	linef(p, "ava %s, up %s, model %s%s%s%s", json_str(health, "version"),
	      format_time_of(health, "uptime_seconds").text, json_str(health, "model"),
	      why[0] != '\0' ? " (" : "", why, why[0] != '\0' ? ")" : "");
	linef(p,
	      "%" PRId64 " of %" PRId64 " slots used, %" PRId64 " queued, %" PRId64 " run%s in all",
	      json_get_int(slots, "used", 0), json_get_int(slots, "max", 0),
	      json_get_int(health, "queued", 0), total, WORDS_S(total));
	linef(p, WORDS_TODAY(format_money(json_get_fixed(today, "cost_cents", 4, 0)).text,
			     format_tokens_of(today, "tokens").text, runs,
			     uncosted > 0 ? ", and what some cost is not known" : ""));
	if (json_object_get(today, "budget_cents") != NULL)
		linef(p, "budget of the day: %s of %s used",
		      format_money(json_get_fixed(today, "budget_used_cents", 4, 0)).text,
		      format_money(json_get_fixed(today, "budget_cents", 4, 0)).text);
	if (json_object_get(health, "otel") != NULL)
		otel_line(p, json_object_get(health, "otel"));
	doors_line(health, p);
	if (json_object_get(health, "telegram") != NULL)
		telegram_line(p, json_object_get(health, "telegram"));
	if (problem[0] != '\0')
		linef(p, "problem: %s", problem);
}

/* ---- parts. Each prints at most `room` rows, the last one saying how many more
 * there are; room 0: no limit. */

static size_t overview_shown(size_t n, size_t room)
{
	return room == 0 || n <= room ? n : room - 1;
}

static void and_more(struct overview_page *p, size_t n, const char *where)
{
	if (n > 0)
		linef(p, "and %zu more (%s)", n, where);
}

static void print_runs(const struct status *s, struct overview_page *p, size_t room)
{
	size_t n = json_array_size(s->runs), some = overview_shown(n, room);
	int64_t live = json_get_int(json_object_get(s->health, "runs"), "running", 0);

	for (size_t i = 0; i < some; i++) {
		const json_t *run = json_array_get(s->runs, i);
		char *words = status_line(run, p->columns);

		if (words != NULL)
			linef(p, "%-9s %s", json_str(run, "subagent_id"), words);
		free(words);
	}
	and_more(p, (size_t)MAX(live, (int64_t)n) - some, "ava ps");
}

static void print_proposals(const struct status *s, struct overview_page *p, size_t room)
{
	size_t n = json_array_size(s->proposals), some = overview_shown(n, room);

	if (n > 0)
		linef(p, WORDS_WAITING);
	for (size_t i = 0; i < some; i++) {
		const json_t *one = json_array_get(s->proposals, i);
		const json_t *quote = json_object_get(one, "quote");
		const char *expires = json_str(one, "expires_at");
		int64_t left = clock_parse_iso(expires, strlen(expires)) - clock_wall_ms();

		linef(p, "%-9s %s, up to %s, %" PRId64 " min left: %.1000s",
		      json_str(one, "proposal_id"), format_role(json_str(quote, "role")).text,
		      format_most_of(quote, "costCents").text, MAX(left + 59999, 0) / 60000,
		      json_str(json_object_get(one, "config"), "task"));
	}
	and_more(p, n - some, "ava proposals");
}

static bool at_work(const json_t *session)
{
	return strcmp(json_str(session, "status"), "busy") == 0 ||
	       json_get_int(session, "live_runs", 0) > 0 || json_get_int(session, "waiting", 0) > 0;
}

static size_t count_at_work(const json_t *sessions)
{
	const json_t *s;
	size_t i, n = 0;

	json_array_foreach(sessions, i, s) n += at_work(s);
	return n;
}

static void print_sessions(const struct status *s, struct overview_page *p, size_t room)
{
	size_t n = count_at_work(s->sessions), some = overview_shown(n, room), done = 0, i;
	const json_t *one;

	if (n > 0)
		linef(p, "Conversations at work:");
	json_array_foreach(s->sessions, i, one)
	{
		int64_t live = json_get_int(one, "live_runs", 0);

		if (!at_work(one) || done == some)
			continue;
		done++;
		linef(p, "%.8s  %s, %" PRId64 " subagent%s: %.1000s", json_str(one, "session_id"),
		      strcmp(json_str(one, "status"), "busy") == 0 ? "Ava answers" : "Ava waits",
		      live, WORDS_S(live), json_str(one, "title"));
	}
	and_more(p, n - some, "ava sessions");
}

/* Rows that a part takes with its title, at most. */
static size_t rows_of(size_t n, size_t *room)
{
	*room = FEW;
	return n == 0 ? 0 : 1 + MIN(n, FEW);
}

static void print_overview(const struct status *s, struct overview_page *p)
{
	size_t proposals = 0, sessions = 0, runs = 0, others;

	head(s->health, p);
	if (p->rows > 0) {
		others = rows_of(json_array_size(s->proposals), &proposals) +
			 rows_of(count_at_work(s->sessions), &sessions);
		runs = p->rows > p->used + others ? p->rows - p->used - others : 1;
	}
	print_runs(s, p, runs);
	print_proposals(s, p, proposals);
	print_sessions(s, p, sessions);
}

/* ---- one run */

static void overview_named(struct overview_page *p, const char *name, const char *text)
{
	if (text[0] != '\0')
		linef(p, "%-10s %.2000s", name, text);
}

/* A run's question, and how to answer it. */
static void overview_print_question(const json_t *run, struct overview_page *p)
{
	const json_t *q = json_object_get(run, "waiting_for"), *choice;
	char number[32];
	size_t i;

	if (q == NULL)
		return;
	overview_named(p, "asks", json_str(q, "question"));
	json_array_foreach(json_object_get(q, "choices"), i, choice)
	{
		snprintf(number, sizeof(number), "  %zu", i + 1);
		overview_named(p, number, json_is_string(choice) ? json_string_value(choice) : "?");
	}
	overview_named(p, "default", json_str(q, "default"));
	overview_named(p, "until", format_moment_of(q, "expires_at").text);
	linef(p, "%-10s ava steer %s %s", "answer", json_str(run, "subagent_id"),
	      strcmp(json_str(q, "kind"), "approval") == 0 ? "yes|no" : "TEXT");
}

/* "reads your data, nothing that strangers wrote, no network" */
static void print_rights(const json_t *run, struct overview_page *p)
{
	const json_t *all = json_object_get(run, "rights");
	bool net = json_get_bool(all, "untrusted", false) || json_get_bool(all, "out", false);
	char text[200] = "";

#define X(flag, key, has, lacks)                                                                   \
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", text[0] ? ", " : "",    \
		 json_get_bool(all, key, false)    ? has                                           \
		 : !net && strcmp(key, "out") == 0 ? RIGHTS_NO_NETWORK                             \
						   : lacks);
	RIGHTS(X)
#undef X
	if (all != NULL)
		overview_named(p, "rights", text);
}

static void print_run(const json_t *run, struct overview_page *p)
{
	const json_t *limits = json_object_get(run, "limits");
	const struct words_end end = format_end_of(run, run);
	bool in_words = end.what[0] != '\0' && strcmp(json_str(run, "status"), "success") != 0;

	overview_named(p, "run", json_str(run, "subagent_id"));
	overview_named(p, "trace", json_str(run, "trace_id"));
	overview_named(p, "role", format_role(json_str(run, "role")).text);
	overview_named(p, "status", in_words ? end.what : words_status(json_str(run, "status")));
	overview_named(p, "next", end.next);
	if (!in_words)
		overview_named(p, "reason", json_str(run, "stop_reason"));
	overview_named(p, "task", json_str(run, "task"));
	if (json_object_get(run, "waiting_for") == NULL)
		overview_named(p, "doing", json_str(run, "current_activity"));
	overview_print_question(run, p);
	overview_named(p, "last tool", json_str(json_object_get(run, "last_tool_call"), "name"));
	overview_named(p, "model", json_str(run, "model"));
	overview_named(p, "folder", json_str(run, "cwd"));
	print_rights(run, p);
	overview_named(p, "started", format_moment_of(run, "started_at").text);
	overview_named(p, "ended", format_moment_of(run, "ended_at").text);
	linef(p, "%-10s %s of %s, %s of %s, %s of %s, %" PRId64 " of %s", "used",
	      format_time_of(run, "elapsed_seconds").text, format_limit_of(limits, "timeout").text,
	      format_cost_of(run, "cost_cents").text,
	      format_limit_of(limits, "max_cost_cents").text,
	      format_tokens_of(run, "tokens_used").text, format_limit_of(limits, "max_tokens").text,
	      json_get_int(run, "iteration", 0), format_limit_of(limits, "max_iterations").text);
}

/* ---- lines: one for each change */

static void overview_draw(struct status *s, struct overview_page *p)
{
	if (s->id != NULL)
		print_run(json_array_get(s->runs, 0), p);
	else
		print_overview(s, p);
}

static void draw_out(struct status *s)
{
	struct overview_page p = {.f = stdout, .columns = term_width(stdout), .end = "\n"};

	overview_draw(s, &p);
}

/* Was this printed already? Remembers it. */
static bool news(struct status *s, const char *id, const char *status, const char *activity)
{
	char text[512];
	const char *before = json_get_str(s->seen, id);

	snprintf(text, sizeof(text), "%s %.400s", status, activity);
	if (before != NULL && strcmp(before, text) == 0)
		return false;
	json_object_set_new(s->seen, id, json_stringn_nocheck(text, strlen(text)));
	return true;
}

static void run_news(struct status *s, const json_t *run, bool print)
{
	const char *id = json_str(run, "subagent_id");
	char *words;

	if (!news(s, id, json_str(run, "status"), json_str(run, "current_activity")) || !print)
		return;
	words = status_line(run, 0);
	printf("%s ", id);
	if (words != NULL)
		term_cut(stdout, words, strlen(words), term_width(stdout));
	putchar('\n');
	free(words);
}

static void proposal_news(struct status *s, const json_t *p, bool print)
{
	const char *id = json_str(p, "proposal_id"),
		   *task = json_str(json_object_get(p, "config"), "task");

	if (!news(s, id, "", "") || !print)
		return;
	printf(WORDS_WAITS(id, ": "));
	term_cut(stdout, task, strlen(task), term_width(stdout) > 0 ? 40 : 300);
	putchar('\n');
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

static void print_lines(struct status *s)
{
	bool first = s->seen == NULL;
	const json_t *v;
	size_t i;

	if (o.json) {
		overview_print_json(s);
		return;
	}
	if (first) {
		draw_out(s);
		s->seen = json_object();
	}
	json_array_foreach(s->runs, i, v) run_news(s, v, !first);
	json_array_foreach(s->proposals, i, v) proposal_news(s, v, !first);
	json_array_foreach(s->gone, i, v)
	{
		run_news(s, v, true);
		json_object_del(s->seen, json_str(v, "subagent_id"));
	}
}

/* ---- looking on */

static volatile sig_atomic_t woken, fatal, suspended;

static void overview_on_signal(int number)
{
	if (number == SIGTSTP)
		suspended = 1;
	else if (number != SIGWINCH)
		fatal = number;
	woken = 1;
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

static void catch_signals(void (*handler)(int))
{
	struct sigaction sa = {.sa_handler = handler}, before;

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (sigaction(signals[i], NULL, &before) == 0 &&
		    (before.sa_handler != SIG_IGN || signals[i] != SIGHUP)) /* nohup */
			sigaction(signals[i], &sa, NULL);
}

/* ---- the screen */

static struct termios keys;
static bool keys_known;

static void overview_enter(void)
{
	struct termios quiet;

	keys_known = tcgetattr(STDIN_FILENO, &keys) == 0;
	quiet = keys;
	quiet.c_lflag &= ~(tcflag_t)ECHO; /* typed keys must not stand in the picture */
	if (keys_known)
		tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
	fputs(ENTER, stdout);
	fflush(stdout);
}

static void overview_leave(void)
{
	fputs(LEAVE, stdout);
	fflush(stdout);
	if (keys_known)
		tcsetattr(STDIN_FILENO, TCSANOW, &keys);
}

/* Made whole first and written at once: no half picture. */
static void picture(struct status *s, const char *problem)
{
	char *bytes = NULL;
	size_t len = 0;
	struct overview_page p = {.f = open_memstream(&bytes, &len),
				  .columns = term_width(stdout) - 1,
				  .rows = term_rows(stdout) - 1,
				  .end = "\033[K\n"};

	if (p.f == NULL)
		return;
	fputs("\033[H", p.f);
	if (problem != NULL)
		linef(&p, "%s", problem);
	else
		overview_draw(s, &p);
	fputs("\033[J", p.f);
	if (fclose(p.f) == 0)
		fwrite(bytes, 1, len, stdout);
	fflush(stdout);
	free(bytes);
}

/* Ctrl-Z: the shell gets its terminal as it was. */
static void overview_suspend(bool screen)
{
	suspended = 0;
	if (screen)
		overview_leave();
	raise(SIGSTOP);
	if (screen)
		overview_enter();
}

/* Draw once, then wait for an event, the next picture's time, or a signal. 0: go on; 1: the end; or
 * the daemon's error. */
static int watch_round(struct status *s, struct client **c, bool screen, struct ava_error *err)
{
	const json_t *journal;
	int rv = *c != NULL ? 0 : api_open(API_START, c, err);

	if (rv == 0) {
		client_set_interrupt(*c, &woken);
		rv = overview_load(s, *c, err);
	}
	if (rv == 0 && screen)
		picture(s, NULL);
	else if (rv == 0)
		print_lines(s);
	if (rv == 0 && !screen && fflush(stdout) != 0)
		return 1; /* stdout is closed */
	if (rv == 0 && s->id != NULL && json_str(json_array_get(s->runs, 0), "ended_at")[0] != '\0')
		return 1;
	if (rv == 0) {
		journal = json_object_get(s->health, "journal");
		pause_ms(PAUSE_MS);
		rv = api_news(*c, (uint64_t)MAX(json_get_int(journal, "lsn", 0), 0),
			      clock_mono_ms() + (screen ? SCREEN_MS : LINES_MS), NULL, NULL, err);
	}
	return rv == AVA_ECANCELED ? 0 : rv;
}

/* Watch until the run's end or Ctrl-C. Another fatal signal ends the program as usual. */
static int overview_watch(struct status *s, struct client **c)
{
	bool screen = !o.json && term_redraws(stdout);
	struct ava_error err = {0};
	int rv = 0;

	catch_signals(overview_on_signal);
	if (screen)
		overview_enter();
	while (rv == 0 && !fatal) {
		woken = 0;
		if (suspended)
			overview_suspend(screen);
		rv = watch_round(s, c, screen, &err);
		if (rv >= 0 || !api_may_come_back(rv))
			continue;
		client_close(*c);
		*c = NULL;
		if (screen)
			picture(s, err.text);
		pause_ms(PAUSE_MS);
		rv = 0;
	}
	if (screen) {
		overview_leave();
		if (rv >= 0 && !fatal && *c != NULL) /* leave the last state on the terminal */
			draw_out(s);
	}
	catch_signals(SIG_DFL);
	if (fatal && fatal != SIGINT)
		raise(fatal);
	return rv >= 0 ? CLI_DONE : cli_fail(&err);
}

static int status_run(int argc, char **argv)
{
	struct status s = {.id = argc > 0 ? argv[0] : NULL};
	struct ava_error err;
	struct client *c;
	int code = CLI_DONE;

	if (api_open(API_START, &c, &err) != 0)
		return cli_fail(&err);
	if (o.watch)
		code = overview_watch(&s, &c);
	else if (overview_load(&s, c, &err) != 0)
		code = cli_fail(&err);
	else if (o.json)
		overview_print_json(&s);
	else
		draw_out(&s);
	overview_forget(&s);
	json_decref(s.seen);
	client_close(c);
	return code;
}

const struct command cmd_status =
	COMMAND("status", "[S-id]", 0, 1, "show one run, or the daemon and all live runs", NULL,
		OPTIONS(opts), status_run);
