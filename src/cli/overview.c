/* The overview; overview.h.
 *
 * Happy path: four requests, then lines that are made whole and cut to the
 * page. Rows are dealt out before anything is printed: proposals and sessions
 * take a few, live runs what is left. What can fail: the daemon, memory (a line
 * is then left out). All text is the daemon's or a model's: made safe when it
 * is cut. */
#include "cli/overview.h"

#include <ava.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

#define LINE_MAX (16u << 10)
#define NARROW   60
#define FEW      3    /* rows of proposals, and of sessions, where rows are few */
#define RUNS_MAX 1000 /* asked for; the others are counted */

/* ---- asking */

static json_t *take(json_t *reply, const char *key)
{
	json_t *list = json_incref(json_object_get(reply, key));

	json_decref(reply);
	return list;
}

int overview_load(struct overview *o, struct client *c, struct ava_error *err)
{
	json_t *runs = NULL, *proposals = NULL, *sessions = NULL;
	int rv;

	*o = (struct overview){0};
	rv = api_get(c, &o->health, err, "/health");
	if (rv == 0)
		rv = api_get(c, &runs, err, "/runs?limit=%d", RUNS_MAX);
	if (rv == 0)
		rv = api_get(c, &proposals, err, "/proposals");
	if (rv == 0)
		rv = api_get(c, &sessions, err, "/sessions?limit=100");
	o->runs = take(runs, "runs");
	o->proposals = take(proposals, "proposals");
	o->sessions = take(sessions, "sessions");
	if (rv != 0)
		overview_free(o);
	return rv;
}

void overview_free(struct overview *o)
{
	json_decref(o->health);
	json_decref(o->runs);
	json_decref(o->proposals);
	json_decref(o->sessions);
	*o = (struct overview){0};
}

json_t *overview_json(const struct overview *o)
{
	return json_pack("{s:O,s:O,s:O,s:O}", "health", o->health, "runs", o->runs, "proposals",
			 o->proposals, "sessions", o->sessions);
}

/* ---- lines */

void page_line(struct page *p, const char *text)
{
	if (p->rows > 0 && p->used == p->rows)
		return;
	p->used++;
	term_cut(p->f, text, strlen(text), p->columns);
	fputs(p->end, p->f);
}

static void linef(struct page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void linef(struct page *p, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	page_line(p, text);
}

static bool narrow(size_t columns)
{
	return columns > 0 && columns < NARROW;
}

char *overview_words(const json_t *run, size_t columns)
{
	const char *activity = json_str(run, "current_activity"), *status = json_str(run, "status");
	struct format role = format_role(json_str(run, "role"));
	struct format time = format_seconds(json_get_fixed(run, "elapsed_seconds", 3, 0));
	struct format tokens = format_tokens(json_get_int(run, "tokens_used", 0));
	struct format cost = format_money(json_get_fixed(run, "cost_cents", 4, -1));
	struct buf b;

	buf_init(&b, LINE_MAX);
	if (!narrow(columns))
		buf_addf(&b, "%s %s (%s, %s tokens, %s)", role.text, status, time.text, tokens.text,
			 cost.text);
	else if (strcmp(status, "running") == 0)
		buf_addf(&b, "%s %s %s", role.text, time.text, tokens.text);
	else
		buf_addf(&b, "%s %s", role.text, status);
	if (activity[0] != '\0' && strcmp(status, "running") == 0)
		buf_addf(&b, "%s %.1000s", narrow(columns) ? "" : ":", activity);
	if (buf_check(&b) == 0)
		return b.data;
	buf_fini(&b);
	return NULL;
}

static void run_line(struct page *p, const json_t *run)
{
	char *words = overview_words(run, p->columns);

	if (words != NULL)
		linef(p, "%-9s %s", json_str(run, "subagent_id"), words);
	free(words);
}

static const char *plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

static void otel_line(struct page *p, const json_t *otel)
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

static void head(const json_t *health, struct page *p)
{
	const json_t *slots = json_object_get(health, "slots");
	const json_t *today = json_object_get(health, "today");
	int64_t total = json_get_int(json_object_get(health, "runs"), "total", 0);
	int64_t runs = json_get_int(today, "runs", 0);
	int64_t uncosted = json_get_int(today, "uncosted_runs", 0);
	const char *why = json_str(health, "model_why"), *problem = json_str(health, "problem");

	linef(p, "ava %s, up %s, model %s%s%s%s", json_str(health, "version"),
	      format_seconds(json_get_fixed(health, "uptime_seconds", 3, 0)).text,
	      json_str(health, "model"), why[0] != '\0' ? " (" : "", why,
	      why[0] != '\0' ? ")" : "");
	linef(p,
	      "%" PRId64 " of %" PRId64 " slots used, %" PRId64 " queued, %" PRId64 " run%s in all",
	      json_get_int(slots, "used", 0), json_get_int(slots, "max", 0),
	      json_get_int(health, "queued", 0), total, plural(total));
	linef(p, "today: %s, %s tokens, %" PRId64 " run%s%s",
	      format_money(json_get_fixed(today, "cost_cents", 4, 0)).text,
	      format_tokens(json_get_int(today, "tokens", 0)).text, runs, plural(runs),
	      uncosted > 0 ? ", and what some cost is not known" : "");
	if (json_object_get(today, "budget_cents") != NULL)
		linef(p, "budget of the day: %s of %s used",
		      format_money(json_get_fixed(today, "budget_used_cents", 4, 0)).text,
		      format_money(json_get_fixed(today, "budget_cents", 4, 0)).text);
	if (json_object_get(health, "otel") != NULL)
		otel_line(p, json_object_get(health, "otel"));
	if (problem[0] != '\0')
		linef(p, "problem: %s", problem);
}

/* ---- parts. Each prints at most `room` rows, the last one saying how many more
 * there are; room 0: no limit. */

static size_t shown(size_t n, size_t room)
{
	return room == 0 || n <= room ? n : room - 1;
}

static void and_more(struct page *p, size_t n, const char *where)
{
	if (n > 0)
		linef(p, "and %zu more (%s)", n, where);
}

static void print_runs(const struct overview *o, struct page *p, size_t room)
{
	size_t n = json_array_size(o->runs), some = shown(n, room);
	int64_t live = json_get_int(json_object_get(o->health, "runs"), "running", 0);

	for (size_t i = 0; i < some; i++)
		run_line(p, json_array_get(o->runs, i));
	and_more(p, (size_t)MAX(live, (int64_t)n) - some, "ava ps");
}

static void proposal_line(struct page *p, const json_t *proposal)
{
	const json_t *quote = json_object_get(proposal, "quote");
	const char *expires = json_str(proposal, "expires_at");
	int64_t left = clock_parse_iso(expires, strlen(expires)) - clock_wall_ms();

	linef(p, "%-9s %s, up to %s, %" PRId64 " min left: %.1000s",
	      json_str(proposal, "proposal_id"), format_role(json_str(quote, "role")).text,
	      format_money(json_get_fixed(quote, "costCents", 4, -1)).text,
	      MAX(left + 59999, 0) / 60000, json_str(json_object_get(proposal, "config"), "task"));
}

static void print_proposals(const struct overview *o, struct page *p, size_t room)
{
	size_t n = json_array_size(o->proposals), some = shown(n, room);

	if (n > 0)
		page_line(p, "Waiting for a yes or no:");
	for (size_t i = 0; i < some; i++)
		proposal_line(p, json_array_get(o->proposals, i));
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

static void print_sessions(const struct overview *o, struct page *p, size_t room)
{
	size_t n = count_at_work(o->sessions), some = shown(n, room), done = 0, i;
	const json_t *s;

	if (n > 0)
		page_line(p, "Conversations at work:");
	json_array_foreach(o->sessions, i, s)
	{
		int64_t live = json_get_int(s, "live_runs", 0);

		if (!at_work(s) || done == some)
			continue;
		done++;
		linef(p, "%.8s  %s, %" PRId64 " subagent%s: %.1000s", json_str(s, "session_id"),
		      strcmp(json_str(s, "status"), "busy") == 0 ? "Ava answers" : "Ava waits",
		      live, plural(live), json_str(s, "title"));
	}
	and_more(p, n - some, "ava sessions");
}

/* Rows that a part takes with its title, at most. */
static size_t rows_of(size_t n, size_t *room)
{
	*room = FEW;
	return n == 0 ? 0 : 1 + MIN(n, FEW);
}

void overview_print(const struct overview *o, struct page *p)
{
	size_t proposals = 0, sessions = 0, runs = 0, others;

	head(o->health, p);
	if (p->rows > 0) {
		others = rows_of(json_array_size(o->proposals), &proposals) +
			 rows_of(count_at_work(o->sessions), &sessions);
		runs = p->rows > p->used + others ? p->rows - p->used - others : 1;
	}
	print_runs(o, p, runs);
	print_proposals(o, p, proposals);
	print_sessions(o, p, sessions);
}

/* ---- one run */

static void named(struct page *p, const char *name, const char *text)
{
	if (text[0] != '\0')
		linef(p, "%-10s %.2000s", name, text);
}

/* What a run asks, and how to answer it. */
static void print_question(const json_t *run, struct page *p)
{
	const json_t *q = json_object_get(run, "waiting_for"), *choice;
	char number[32];
	size_t i;

	if (q == NULL)
		return;
	named(p, "asks", json_str(q, "question"));
	json_array_foreach(json_object_get(q, "choices"), i, choice)
	{
		snprintf(number, sizeof(number), "  %zu", i + 1);
		named(p, number, json_is_string(choice) ? json_string_value(choice) : "?");
	}
	named(p, "default", json_str(q, "default"));
	named(p, "until", json_str(q, "expires_at"));
	linef(p, "%-10s ava steer %s %s", "answer", json_str(run, "subagent_id"),
	      strcmp(json_str(q, "kind"), "approval") == 0 ? "yes|no" : "TEXT");
}

void overview_run(const json_t *run, struct page *p)
{
	const json_t *limits = json_object_get(run, "limits");

	named(p, "run", json_str(run, "subagent_id"));
	named(p, "trace", json_str(run, "trace_id"));
	named(p, "role", format_role(json_str(run, "role")).text);
	named(p, "status", json_str(run, "status"));
	named(p, "reason", json_str(run, "stop_reason"));
	named(p, "task", json_str(run, "task"));
	if (json_object_get(run, "waiting_for") == NULL)
		named(p, "doing", json_str(run, "current_activity"));
	print_question(run, p);
	named(p, "last tool", json_str(json_object_get(run, "last_tool_call"), "name"));
	named(p, "model", json_str(run, "model"));
	named(p, "folder", json_str(run, "cwd"));
	named(p, "started", json_str(run, "started_at"));
	named(p, "ended", json_str(run, "ended_at"));
	linef(p, "%-10s %s of %s, %s of %s, %s of %s tokens, %" PRId64 " of %" PRId64 " iterations",
	      "used", format_seconds(json_get_fixed(run, "elapsed_seconds", 3, 0)).text,
	      format_seconds(json_get_fixed(limits, "timeout", 3, 0)).text,
	      format_money(json_get_fixed(run, "cost_cents", 4, -1)).text,
	      format_money(json_get_fixed(limits, "max_cost_cents", 4, -1)).text,
	      format_tokens(json_get_int(run, "tokens_used", 0)).text,
	      format_tokens(json_get_int(limits, "max_tokens", 0)).text,
	      json_get_int(run, "iteration", 0), json_get_int(limits, "max_iterations", 0));
}

/* Looking on.
 *
 * Happy path: ask, show, listen behind the lsn of what was shown until the
 * first event or a second has passed, and again; at most five times a second.
 * The screen is the terminal's other one, so that what stood there comes back.
 *
 * What can fail: the daemon goes away (it is told on the screen, and its
 * successor asked), signals: they only set a flag that every wait looks at, and
 * whatever they want is done with the terminal as it was before. */

#define PAUSE_MS  200 /* between two pictures */
#define SCREEN_MS 1000
#define LINES_MS  10000
#define ENTER     "\033[?1049h\033[?25l"
#define LEAVE     "\033[?25h\033[?1049l"

static volatile sig_atomic_t woken, fatal, suspended;

static void on_signal(int number)
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

static void enter(void)
{
	struct termios quiet;

	keys_known = tcgetattr(STDIN_FILENO, &keys) == 0;
	quiet = keys;
	quiet.c_lflag &= ~(tcflag_t)ECHO; /* what is typed must not stand in the picture */
	if (keys_known)
		tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
	fputs(ENTER, stdout);
	fflush(stdout);
}

static void leave(void)
{
	fputs(LEAVE, stdout);
	fflush(stdout);
	if (keys_known)
		tcsetattr(STDIN_FILENO, TCSANOW, &keys);
}

/* Made whole first and written at once: no half picture. */
static void picture(const struct watch *w, const char *problem)
{
	char *bytes = NULL;
	size_t len = 0;
	struct page p = {.f = open_memstream(&bytes, &len),
			 .columns = term_width(stdout) - 1,
			 .rows = term_rows(stdout) - 1,
			 .end = "\033[K\n"};

	if (p.f == NULL)
		return;
	fputs("\033[H", p.f);
	if (problem != NULL)
		page_line(&p, problem);
	else
		w->draw(&p, w->user);
	fputs("\033[J", p.f);
	if (fclose(p.f) == 0)
		fwrite(bytes, 1, len, stdout);
	fflush(stdout);
	free(bytes);
}

/* Ctrl-Z: the shell gets its terminal as it was. */
static void suspend(bool screen)
{
	suspended = 0;
	if (screen)
		leave();
	raise(SIGSTOP);
	if (screen)
		enter();
}

/* ---- news */

/* Until something has happened, it is time for the next picture, or a signal
 * came. 0, or what is wrong with the daemon. */
static int listen(struct client *c, uint64_t lsn, int64_t tick_ms, struct ava_error *err)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
	return follow_news(c, lsn, clock_mono_ms() + tick_ms, NULL, NULL, err);
}

/* One round. 0: go on; 1: it has ended. */
static int round_once(const struct watch *w, struct client **c, bool screen, struct ava_error *err)
{
	uint64_t lsn = 0;
	int rv = *c != NULL ? 0 : api_open(API_START, c, err);

	if (rv == 0) {
		client_set_interrupt(*c, &woken);
		rv = w->load(*c, &lsn, w->user, err);
	}
	if (rv == 0 && screen)
		picture(w, NULL);
	else if (rv == 0)
		w->lines(w->user);
	if (rv == 0 && !screen && fflush(stdout) != 0)
		return 1; /* nobody reads any more */
	if (rv == 0 && w->ended(w->user))
		return 1;
	if (rv == 0)
		rv = listen(*c, lsn, screen ? SCREEN_MS : LINES_MS, err);
	return rv == AVA_ECANCELED ? 0 : rv;
}

static int rounds(const struct watch *w, struct client **c, bool screen, struct ava_error *err)
{
	for (;;) {
		int rv;

		woken = 0;
		if (fatal)
			return 0;
		if (suspended)
			suspend(screen);
		rv = round_once(w, c, screen, err);
		if (rv == 0)
			continue;
		if (rv > 0 || !follow_may_come_back(rv))
			return rv > 0 ? 0 : rv;
		client_close(*c);
		*c = NULL;
		if (screen)
			picture(w, err->text);
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
	}
}

int watch_run(const struct watch *w, struct client **c)
{
	bool screen = !w->plain && term_redraws(stdout);
	struct ava_error err = {0};
	int rv;

	catch_signals(on_signal);
	if (screen)
		enter();
	rv = rounds(w, c, screen, &err);
	if (screen) {
		leave();
		if (rv == 0 && !fatal && *c != NULL) { /* its end stays readable */
			struct page p = {.f = stdout, .columns = term_width(stdout), .end = "\n"};

			w->draw(&p, w->user);
		}
	}
	catch_signals(SIG_DFL);
	if (fatal && fatal != SIGINT)
		raise(fatal);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}
