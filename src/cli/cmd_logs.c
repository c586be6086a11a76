/* ava logs [S-id]: what happened, from the files, whether a daemon runs or
 * not. doc/QUERY.md.
 *
 * Text for people; json is the bytes of the file, whatever they are, unless a
 * terminal would have to obey them. Turning around keeps all lines in memory,
 * with a bound, since reading runs forwards. A broken line is named on stderr
 * and makes the command end with 1; what is around it is still printed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/foreign_log.h"
#include "cli/show.h"
#include "cli/logcursor.h"
#include "cli/logtext.h"
#include "cli/api.h"
#include "cli/term.h"
#include "codec/json.h"
#include "journal/count.h"
#include "journal/read.h"

#define DEFAULT_LAST   100 /* events of Ava's own log */
#define DEFAULT_FOLLOW 10
#define KEEP_MAX       ((size_t)512 << 20)
#define PROGRESS_MS    700
#define COUNT_JSON_MAX ((size_t)1 << 30)

/* ---- events, forwards or turned around, and a line of progress */

enum logprint_form { LOGPRINT_TEXT, LOGPRINT_JSON, LOGPRINT_PRETTY };

struct logprint_kept;
struct logprint { /* zero-initialised, then filled in */
	enum logprint_form form;
	bool reverse; /* keep all, print at the end */
	struct logtext text;
	struct logprint_kept *kept; /* owned; of `reverse` */
	size_t nkept, cap, bytes;
	int64_t shown_ms; /* when progress or an event was last shown, monotonic */
	bool progress;    /* a line of progress stands on the terminal */
	bool broken;      /* a line could not be read */
	struct ava_log *log;
	struct logcursor *cursor; /* NULL: none */
	bool run;                 /* one run's log */
	bool over;                /* nothing can follow */
};

struct logprint_kept {
	struct ava_log_event e; /* line and file: one piece of memory, in `owned` */
	char *owned;
};

static void logprint_progress(uint64_t done, uint64_t total, void *user)
{
	struct logprint *p = user;
	int64_t now = clock_mono_ms();

	if (p->shown_ms == 0)
		p->shown_ms = now;
	if (total == 0 || now - p->shown_ms < PROGRESS_MS || !term_colours(stderr))
		return;
	fflush(stdout);
	fprintf(stderr, "\r%d %% of %s\033[K", (int)(MIN(done, total) * 100 / total),
		format_bytes((int64_t)total).text);
	p->shown_ms = now;
	p->progress = true;
}

static void logprint_clear(struct logprint *p)
{
	if (!p->progress)
		return;
	fputs("\r\033[K", stderr);
	p->progress = false;
}

static void logprint_fini(struct logprint *p)
{
	for (size_t i = 0; i < p->nkept; i++)
		free(p->kept[i].owned);
	free(p->kept);
	*p = (struct logprint){0};
}

static void put_bytes(const char *s, size_t len)
{
	static int terminal = -1; /* asked once: there may be millions of lines */

	if (terminal < 0)
		terminal = isatty(STDOUT_FILENO);
	if (terminal)
		term_bytes(stdout, s, len);
	else
		fwrite(s, 1, len, stdout);
	putchar('\n');
}

static int print_pretty(const char *line, size_t len, struct ava_error *err)
{
	json_t *v = json_parse(line, len, err);
	char *text;

	if (v == NULL)
		return AVA_ECORRUPT;
	text = json_dumps(v, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	json_decref(v);
	if (text == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to show %zu bytes", len);
	put_bytes(text, strlen(text));
	free(text);
	return 0;
}

static int logs_print_event(struct logprint *p, const struct ava_log_event *e,
			    struct ava_error *err)
{
	int rv;

	if (p->form == LOGPRINT_JSON) {
		put_bytes(e->line, e->len);
		return 0;
	}
	if (p->form == LOGPRINT_TEXT)
		rv = logtext_print(&p->text, stdout, e->line, e->len, e->time_ms, err);
	else
		rv = print_pretty(e->line, e->len, err);
	return rv == 0 ? 0 : err_wrap(err, rv, "%s:%llu", e->file, (unsigned long long)e->offset);
}

static int keep_event(struct logprint *p, const struct ava_log_event *e, struct ava_error *err)
{
	size_t file_len = strlen(e->file) + 1;
	struct logprint_kept *k;

	p->bytes += e->len + file_len + sizeof(*k);
	if (p->bytes > KEEP_MAX)
		return err_set(err, AVA_ETOOBIG, "too much to turn around: give -n");
	if (!ARRAY_ROOM(p->kept, p->cap, p->nkept + 1))
		return err_set(err, AVA_ENOMEM, "no memory to turn events around");
	k = &p->kept[p->nkept];
	*k = (struct logprint_kept){*e, malloc(e->len + file_len)};
	if (k->owned == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to turn events around");
	memcpy(k->owned, e->line, e->len);
	memcpy(k->owned + e->len, e->file, file_len);
	k->e.line = k->owned;
	k->e.file = k->owned + e->len;
	p->nkept++;
	return 0;
}

static int logprint_end(struct logprint *p, struct ava_error *err)
{
	struct ava_error one;
	int rv = 0;

	logprint_clear(p);
	for (size_t i = p->nkept; i > 0; i--) {
		int bad = logs_print_event(p, &p->kept[i - 1].e, &one);

		if (bad != 0 && rv == 0) {
			rv = bad;
			*err = one;
		}
	}
	return rv;
}

/* ---- --count: one number, a table, or JSON */

static const char *const logcount_keys[] = {"type", "agent", "model", "role", "day", NULL};

static void on_broken(const struct ava_error *err, void *user)
{
	struct logprint *p = user;

	logprint_clear(p);
	p->broken = true;
	cli_error(CLI_FAILED, "%s", err->text);
}

static enum count_by logs_key_of(const char *by)
{
	for (int i = 0; by != NULL && logcount_keys[i] != NULL; i++)
		if (strcmp(by, logcount_keys[i]) == 0)
			return (enum count_by)(COUNT_TYPE + i);
	return COUNT_ALL;
}

static void add_number(struct table *t, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	table_add(t, text);
}

/* Tokens and cost only where there were calls: "-" says that there were none. */
static int print_table(const struct count *c, const char *by)
{
	char upper[16];
	const char *titles[] = {upper, "EVENTS", "TOKENS IN", "TOKENS OUT", "COST"};
	struct table t;
	int rv;

	snprintf(upper, sizeof(upper), "%s", by);
	for (char *p = upper; *p != '\0'; p++)
		*p = (char)(*p - ('a' - 'A'));
	table_init(&t, ARRAY_LEN(titles));
	for (size_t i = 0; i < ARRAY_LEN(titles); i++)
		table_add(&t, titles[i]);
	for (size_t i = 0; i < c->n; i++) {
		const struct count_row *r = &c->rows[i];

		table_add(&t, r->key[0] != '\0' ? r->key : "-");
		add_number(&t, r->events);
		add_number(&t, r->input_tokens);
		add_number(&t, r->output_tokens);
		table_add(&t, r->uncosted > 0 && r->cost_microusd == 0
				      ? "unknown"
				      : format_money((int64_t)r->cost_microusd).text);
	}
	rv = table_print(&t, stdout);
	table_fini(&t);
	return rv;
}

/* An object a line, so that jq and DuckDB take it as they take the log. */
static int logs_print_json(const struct count *c, const char *by)
{
	static const struct count_row none = {.key = ""};
	struct buf b;
	struct jw w;
	int rv;

	buf_init(&b, COUNT_JSON_MAX);
	for (size_t i = 0; i < c->n || (i == 0 && by == NULL); i++) {
		const struct count_row *r = i < c->n ? &c->rows[i] : &none;

		jw_init(&w, &b);
		jw_object(&w, NULL);
		if (by != NULL)
			jw_str(&w, by, r->key);
		jw_int(&w, "events", (int64_t)r->events);
		jw_int(&w, "inputTokens", (int64_t)r->input_tokens);
		jw_int(&w, "outputTokens", (int64_t)r->output_tokens);
		jw_fixed(&w, "costCents", (int64_t)r->cost_microusd, 4);
		jw_int(&w, "uncostedCalls", (int64_t)r->uncosted);
		jw_end(&w);
		buf_addc(&b, '\n');
	}
	rv = buf_check(&b);
	if (rv == 0)
		term_bytes(stdout, b.data != NULL ? b.data : "", b.len);
	buf_fini(&b);
	return rv;
}

static int logcount_print(const struct ava_log_query *q, const char *by, struct logprint *p,
			  struct ava_error *err)
{
	struct count_watch watch = {on_broken, logprint_progress, p};
	struct count c;
	int rv = count_events(&c, q, logs_key_of(by), &watch, err);

	logprint_clear(p);
	if (rv != 0)
		return rv;
	if (p->form != LOGPRINT_TEXT)
		rv = logs_print_json(&c, by);
	else if (by != NULL)
		rv = print_table(&c, by);
	else
		printf("%" PRIu64 "\n", c.n > 0 ? c.rows[0].events : 0);
	count_fini(&c);
	return rv == 0 ? 0 : err_set(err, rv, "no memory to show the count");
}

/* ---- the command */

static struct {
	int64_t last;
	bool follow, reverse, count, all;
	const char *output, *type, *since, *until, *agent, *user, *session, *grep, *search, *by,
		*cursor_file, *file;
} o;

static const char *const outputs[] = {"text", "json", "json-pretty", NULL};

static const struct opt opts[] = {
	OPT("last", 'n', COUNT, "N", last, "only the newest N events", .least = 1),
	OPT("follow", 'f', FLAG, NULL, follow, "go on with what is logged later"),
	OPT("all", 'a', FLAG, NULL, all,
	    "in text: what the runtime notes for itself too (seals, positions, ...)"),
	OPT("type", 0, STR, "TYPE,...", type,
	    "only these: ToolCall,Error, tool, thinking, cost, ..."),
	OPT("since", 'S', STR, "TIME", since,
	    "from then on: \"1 hour ago\", -1h, yesterday, 2026-11-21, ..."),
	OPT("until", 'U', STR, "TIME", until, "before then"),
	OPT("agent", 0, STR, "AGENT", agent, "only of this agent: ava, S-id or a trace's name"),
	OPT("user", 0, STR, "USER", user, "only of this user"),
	OPT("session", 0, STR, "SESSION", session, "only of this session"),
	OPT("search", 0, STR, "TEXT", search,
	    "only lines with this text (capital letters: exactly so)"),
	OPT("grep", 'g', STR, "REGEX", grep,
	    "only lines that match (Perl-compatible; case as above)"),
	OPT("reverse", 'r', FLAG, NULL, reverse, "newest first"),
	OPT("count", 0, FLAG, NULL, count, "how many they are, not what they are"),
	OPT("by", 0, STR, "KEY", by,
	    "with --count: for each type, agent, model, role or day, and what it cost",
	    .words = logcount_keys),
	OPT("output", 'o', STR, "FORM", output, "text, json (the lines as stored) or json-pretty",
	    .words = outputs),
	OPT("file", 0, STR, "FILE", file, "not the logs here, but this one, an event a line"),
	OPT("cursor-file", 0, STR, "FILE", cursor_file,
	    "go on where the last call with this file ended"),
};

static void logs_look(struct logprint *p)
{
	if (p->cursor != NULL)
		logcursor_look(p->cursor, clock_wall_ms());
}

/* 0, or a code that ends it. */
static int logs_show_event(struct logprint *p, const struct ava_log_event *e, struct ava_error *err)
{
	int rv;

	if (p->cursor != NULL && logcursor_has(p->cursor, e->lsn))
		return 0;
	logprint_clear(p);
	rv = p->reverse ? keep_event(p, e, err) : logs_print_event(p, e, err);
	if (p->cursor != NULL && (rv == 0 || rv == AVA_ECORRUPT))
		logcursor_add(p->cursor, e->lsn, e->time_ms);
	p->over = p->run && o.follow && strcmp(e->type, "SubagentComplete") == 0;
	return rv;
}

/* Flush all events so far and save the cursor, so that none comes again. */
static int logs_settle(struct logprint *p, struct ava_error *err)
{
	logprint_clear(p);
	if (fflush(stdout) != 0) /* the reader of our output is gone */
		return err_sys(err, "write");
	return p->cursor != NULL ? logcursor_save(p->cursor, err) : 0;
}

static int show_all(struct logprint *p, struct ava_error *err)
{
	struct ava_log_event e;
	int rv;

	while (!p->over) {
		rv = ava_log_next(p->log, &e, err);
		if (rv == 1)
			rv = logs_show_event(p, &e, err) == 0 ? 1 : err->code;
		if (rv == AVA_ECORRUPT)
			on_broken(err, p);
		else if (rv < 0)
			return rv;
		if (rv != 0)
			continue;
		if (!o.follow)
			break;
		rv = logs_settle(p, err);
		if (rv != 0)
			return rv;
		logs_look(p);
		ava_log_wait(p->log, -1);
	}
	rv = logprint_end(p, err);
	if (rv == AVA_ECORRUPT)
		on_broken(err, p);
	else if (rv != 0)
		return rv;
	return logs_settle(p, err);
}

static bool filtered(void)
{
	return o.type != NULL || o.since != NULL || o.until != NULL || o.agent != NULL ||
	       o.user != NULL || o.session != NULL || o.grep != NULL || o.search != NULL;
}

static uint64_t how_many(bool run)
{
	if (o.last != OPT_ABSENT)
		return (uint64_t)o.last;
	if (o.count || o.cursor_file != NULL)
		return 0;
	if (o.follow)
		return run ? 0 : DEFAULT_FOLLOW;
	return run || o.file != NULL || filtered() ? 0 : DEFAULT_LAST;
}

static int check_options(void)
{
	if (o.by != NULL && !o.count)
		return cli_error(CLI_USAGE, "--by goes with --count");
	if (o.follow && (o.reverse || o.count))
		return cli_error(CLI_USAGE, "--follow has no end to %s",
				 o.reverse ? "begin with" : "count at");
	if (o.file != NULL && o.follow)
		return cli_error(CLI_USAGE, "nothing follows in an export");
	if (o.cursor_file != NULL && (o.reverse || o.count))
		return cli_error(CLI_USAGE, "--cursor-file goes forwards and prints");
	return CLI_DONE;
}

static int logs_show(const struct ava_log_query *q, struct logprint *p, struct ava_error *err)
{
	static char buffer[128 << 10];
	int rv;

	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (o.count)
		return logcount_print(q, o.by, p, err);
	logs_look(p);
	rv = ava_log_open(&p->log, q, err);
	if (rv != 0)
		return rv;
	if (!o.follow)
		read_progress(p->log, logprint_progress, p);
	rv = show_all(p, err);
	logprint_clear(p);
	ava_log_close(p->log);
	return rv;
}

/* With a limit to the newest N, count only kinds that are shown. */
static const char *types_shown(const struct logprint *p, uint64_t last)
{
	bool all = o.all || o.count || p->form != LOGPRINT_TEXT || last == 0;

	return o.type != NULL || all ? o.type : logtext_types();
}

/* Runs that were at work at the same time are merged: a descriptor each. */
static void raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void logs_set_up(struct logprint *p, bool run)
{
	p->run = run;
	p->reverse = o.reverse;
	p->text.agents = !run;
	p->text.own = o.all || o.type != NULL;
	if (o.output != NULL && strcmp(o.output, "json") == 0)
		p->form = LOGPRINT_JSON;
	else if (o.output != NULL && strcmp(o.output, "json-pretty") == 0)
		p->form = LOGPRINT_PRETTY;
}

static int logs_run(int argc, char **argv)
{
	static struct logcursor cursor;
	struct ava_log_query q = {
		.run = argc > 0 ? argv[0] : NULL,
		.last = how_many(argc > 0),
		.follow = o.follow,
		.everything = argc == 0 && (o.file != NULL || o.follow || o.count || filtered()),
		.agent = o.agent,
		.user = o.user,
		.session = o.session,
		.since = o.since,
		.until = o.until,
		.search = o.search,
		.regex = o.grep,
	};
	struct logprint p = {0};
	char root[ROOT_PATH_MAX];
	struct ava_error err;
	bool broken;
	int rv = check_options();

	if (rv != CLI_DONE)
		return rv;
	logs_set_up(&p, argc > 0);
	q.types = types_shown(&p, q.last);
	raise_files();
	rv = read_check(&q, &err); /* check the query before the root */
	if (rv == 0)
		rv = o.file != NULL ? foreign_log_root(o.file, root, &p.broken, &err)
				    : root_prepare(root, &err);
	q.root = root;
	if (rv == 0 && o.cursor_file != NULL) {
		rv = logcursor_load(&cursor, o.cursor_file, &err);
		p.cursor = &cursor;
		q.after = cursor.after;
	}
	if (rv == 0)
		rv = logs_show(&q, &p, &err);
	broken = p.broken;
	logprint_fini(&p);
	if (rv != 0)
		return cli_fail(&err);
	return broken ? CLI_FAILED : CLI_DONE;
}

const struct command cmd_logs =
	COMMAND("logs", "[S-id]", 0, 1, "print what happened: Ava's log, that of a run, or of all",
		"Without an id and without a filter: the newest 100 events of Ava's own log. With "
		"a\n"
		"filter, --count or -f: Ava's log and those of all runs. With an id: that run's.\n"
		"Needs no daemon. The files are $AVA_DATA_ROOT/logs/ava/*.jsonl and\n"
		"$AVA_DATA_ROOT/logs/subagents/S-id.jsonl, one event a line, for tail, jq and "
		"rg.\n",
		OPTIONS(opts), logs_run);
