/* ava logs [S-id]: what happened, from the files, whether a daemon runs or
 * not. doc/QUERY.md.
 *
 * Text for people; json is the bytes of the file, whatever they are, unless a
 * terminal would have to obey them. Turning around keeps all lines in memory,
 * with a bound, since reading runs forwards. A broken line is named on stderr
 * and makes the command end with 1; what is around it is still printed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/logcursor.h"
#include "cli/logtext.h"
#include "cli/api.h"
#include "cli/term.h"
#include "client/follow.h"
#include "codec/json.h"
#include "event/event.h"
#include "journal/count.h"
#include "journal/query.h"
#include "journal/read.h"

#define DEFAULT_LAST   100 /* events shown of Ava's own log */
#define DEFAULT_FOLLOW 10
#define KEEP_MAX       ((size_t)512 << 20)
#define PROGRESS_MS    700
#define OTHER_MS       500 /* between two looks at the run of another machine */
#define COUNT_JSON_MAX ((size_t)1 << 30)

/* ---- events, forwards or turned around, and a line of progress */

enum logprint_form { LOGPRINT_TEXT, LOGPRINT_JSON, LOGPRINT_PRETTY };

struct logprint_kept;
struct logprint { /* zero-initialised, then filled in */
	enum logprint_form form;
	bool reverse; /* all events are kept and printed at the end */
	struct logtext text;
	struct logprint_kept *kept; /* owned; the events kept for `reverse` */
	size_t nkept, cap, bytes;
	int64_t shown_ms; /* when progress or an event was last shown, monotonic */
	bool progress;    /* a line of progress stands on the terminal */
	bool broken;      /* a line could not be read */
	struct ava_log *log;
	struct logcursor *cursor; /* NULL: none */
	bool run;                 /* the log is one run's */
	bool over;                /* no more events can follow */
	const char *other;        /* the run, when another machine has it; or NULL */
	bool others;              /* other machines are followed, too */
	struct follower stream;   /* that of their events */
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
	if (total == 0 || now - p->shown_ms < PROGRESS_MS || !term_redraws(stderr))
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

static void on_broken(const struct ava_error *err, void *user)
{
	struct logprint *p = user;

	logprint_clear(p);
	p->broken = true;
	cli_error(CLI_FAILED, "%s", err->text);
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
	char upper[48];
	const char *titles[] = {upper, "EVENTS", "TOKENS IN", "TOKENS OUT", "COST"};
	struct table t;
	int rv;

	snprintf(upper, sizeof(upper), "%s", by);
	for (char *p = upper; *p != '\0' && *p != ':'; p++)
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
	struct count_watch watch = {.broken = on_broken, .progress = logprint_progress, .user = p};
	enum count_by key = COUNT_ALL;
	struct count c;
	int rv;

	if (by != NULL)
		(void)count_by_name(by, &key, &watch.tag, err); /* it was checked */
	rv = count_events(&c, q, key, &watch, err);
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

/* ---- --file: a log that is of no data root here, laid out as one. Lines that are events go over
 * as they stand; of the others one is made. What can fail: the file, the folder for temporary
 * files, the disk. */

#define FOREIGN_MAX  ((size_t)2 << 30)
#define FOREIGN_LINE ((size_t)64 << 20) /* longer ones no reader of logs takes */
#define TOLD_MAX     10                 /* lines that are no events, each in a sentence */

static char foreign[256]; /* the folder; "": none */
/* The index cannot be stored: a folder stands where its lock would. It would outlive the root. */
static const char *const laid[] = {"logs", "logs/ava", "logs/index", "logs/index/lock",
				   "logs/ava/0000-00-00.jsonl"};
#define FILE_LAID (ARRAY_LEN(laid) - 1)

/* Calls nothing that a handler of signals must not. */
static void clear_away(void)
{
	int fd = foreign[0] ? open(foreign, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	for (size_t i = ARRAY_LEN(laid); i > 0; i--)
		if (unlinkat(fd, laid[i - 1], 0) != 0)
			unlinkat(fd, laid[i - 1], AT_REMOVEDIR);
	close(fd);
	rmdir(foreign);
	foreign[0] = '\0';
}

static void foreign_log_on_end(int signo)
{
	clear_away();
	signal(signo, SIG_DFL);
	raise(signo);
}

/* Since 1970, of a date and time in any form of ISO 8601 with seconds, in UTC where no zone is
 * told; -1: it is none. */
static int64_t foreign_time(const char *s)
{
	struct tm t = {0};
	int n = 0, hours = 0, minutes = 0, ms = 0;
	char zone;

	if (sscanf(s, "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
		   &t.tm_hour, &t.tm_min, &t.tm_sec, &n) != 6)
		return -1;
	s += n;
	if (*s == '.' || *s == ',')
		for (int unit = 100; *++s >= '0' && *s <= '9'; unit /= 10)
			ms += (*s - '0') * unit;
	zone = *s;
	if (zone == '+' || zone == '-')
		(void)sscanf(s + 1, s[3] == ':' ? "%2d:%2d" : "%2d%2d", &hours, &minutes);
	else if (zone != 'Z' && zone != '\0')
		return -1;
	minutes = (hours * 60 + minutes) * (zone == '-' ? -1 : 1);
	t.tm_year -= 1900;
	t.tm_mon -= 1;
	return ((int64_t)timegm(&t) - minutes * 60) * 1000 + ms;
}

/* An event that another program has written anew, as ava has it; false: it is none. */
static bool foreign_event(struct buf *out, const char *line, size_t len)
{
	static const char *const texts[] = {"eventType", "agentId", "sessionId", "traceId",
					    "userId"};
	static const char *const objects[] = {"content", "metadata"};
	json_t *o = json_read_others(line, len, NULL);
	int64_t ms = foreign_time(json_str(o, "timestamp"));
	bool good = ms >= 0 && *json_str(o, "eventType");

	buf_reset(out);
	(void)event_begin(out, ms, (uint64_t)json_get_int(o, "lsn", 0),
			  (uint64_t)json_get_int(o, "seq", 0));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *text = json_str(o, texts[i]);

		buf_addf(out, ",\"%s\":", texts[i]);
		json_escape(out, text, strlen(text));
	}
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		const json_t *v = json_object_get(o, objects[i]);

		buf_addf(out, ",\"%s\":", objects[i]);
		if (!json_is_object(v) || json_dump(out, v) != 0)
			buf_adds(out, "{}");
	}
	buf_adds(out, "}\n");
	json_decref(o);
	return good && buf_check(out) == 0;
}

/* Copy lines that are events as they stand, but for blanks and \r at their ends. */
static void lay_lines(FILE *out, const struct buf *data, const char *name, bool *broken)
{
	const char *at = data->data, *end = at + data->len, *nl;
	size_t good = 0, bad = 0, numbers[TOLD_MAX], sizes[TOLD_MAX];
	struct event_view v;
	struct buf again;

	buf_init(&again, 2 * FOREIGN_LINE);
	for (size_t number = 1; at < end; number++, at = nl + 1) {
		size_t n;

		nl = memchr(at, '\n', (size_t)(end - at));
		n = (size_t)((nl ? nl : end) - at);
		while (n > 0 && memchr("\r \t", at[n - 1], 3))
			n--;
		if (n > 0 && n <= FOREIGN_LINE && event_view(at, n, &v) == 0) {
			fwrite(at, 1, n, out);
			fputc('\n', out);
			good++;
		} else if (n > 0 && n <= FOREIGN_LINE && foreign_event(&again, at, n)) {
			fwrite(again.data, 1, again.len, out);
			good++;
		} else if (n > 0 && nl) { /* a last one may still be written */
			if (bad < TOLD_MAX) {
				numbers[bad] = number;
				sizes[bad] = n;
			}
			bad++;
		}
		if (!nl)
			break;
	}
	*broken = bad > 0;
	if (bad > 0 && good == 0)
		cli_error(CLI_FAILED, "%s is no log of ava's: none of its lines is an event", name);
	for (size_t i = 0; good > 0 && i < MIN(bad, TOLD_MAX); i++)
		cli_error(CLI_FAILED, "%s, line %zu: these %zu bytes are no event", name,
			  numbers[i], sizes[i]);
	if (good > 0 && bad > TOLD_MAX)
		cli_error(CLI_FAILED, "%s: %zu more lines are no events", name, bad - TOLD_MAX);
	buf_fini(&again);
}

static int foreign_log_lay_out(const struct buf *data, const char *name, bool *broken)
{
	int dir = open(foreign, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1, rv = -1;
	FILE *out = NULL;

	for (size_t i = 0; dir >= 0 && i < FILE_LAID; i++)
		(void)mkdirat(dir, laid[i], 0700);
	if (dir >= 0)
		fd = openat(dir, laid[FILE_LAID], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && (out = fdopen(fd, "w")) != NULL) {
		if (data->len > 0)
			lay_lines(out, data, name, broken);
		rv = ferror(out) ? -1 : 0;
		rv = fclose(out) != 0 ? -1 : rv;
	}
	if (dir >= 0)
		close(dir);
	return rv;
}

static int foreign_read(const char *file, struct buf *out, struct ava_error *err)
{
	int fd = strcmp(file, "-") != 0 ? open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY)
					: dup(STDIN_FILENO);
	int rv;

	if (fd < 0)
		return err_sys(err, "open it");
	rv = cli_read(fd, "it", out, err);
	close(fd);
	if (buf_check(out) != 0)
		return err_set(err, rv, "it does not fit into memory, or is over 2 GB");
	return rv;
}

/* Make a data root of `file` ("-": stdin; a pipe) below the folder for temporary files, removed
 * when the process ends, also by a signal. Lines that another program wrote anew (ends of lines,
 * times, the order of keys) are events again; other lines are reported, and *broken set. Once. */
static int foreign_log_root(const char *file, char path[ROOT_PATH_MAX], bool *broken,
			    struct ava_error *err)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	const struct sigaction sa = {.sa_handler = foreign_log_on_end};
	const char *tmp = getenv("TMPDIR");
	struct buf data;
	int rv;

	buf_init(&data, FOREIGN_MAX);
	rv = foreign_read(file, &data, err);
	if (rv != 0) {
		buf_fini(&data);
		return err_wrap(err, rv, "%s", file);
	}
	if (snprintf(foreign, sizeof(foreign), "%s/ava-log.XXXXXX",
		     tmp && tmp[0] == '/' ? tmp : "/tmp") >= (int)sizeof(foreign) ||
	    !mkdtemp(foreign)) {
		foreign[0] = '\0';
		rv = err_sys(err, "a folder for temporary files");
	} else {
		atexit(clear_away);
		for (size_t i = 0; i < ARRAY_LEN(ends); i++)
			sigaction(ends[i], &sa, NULL);
		if (foreign_log_lay_out(&data, file, broken) != 0)
			rv = err_sys(err, "%s", foreign);
	}
	buf_fini(&data);
	snprintf(path, ROOT_PATH_MAX, "%s", foreign);
	return rv;
}

/* ---- the command */

static struct {
	int64_t last;
	bool follow, reverse, count, all, json;
	const char *output, *type, *since, *until, *agent, *user, *session, *grep, *search, *by,
		*cursor_file, *file;
} o;

/* As enum logprint_form counts. */
static const char *const outputs[] = {"text", "json", "json-pretty", NULL};

static const struct opt opts[] = {
	OPT("last", 'n', COUNT, "N", last, "only the newest N events"),
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
	    "with --count, and what it cost: type, agent, model, role, day, week, month, tag, "
	    "tag:KEY, project, user or order"),
	OPT("output", 'o', STR, "FORM", output, "text, json (the lines as stored) or json-pretty",
	    .words = outputs),
	OPT("file", 0, STR, "FILE", file, "not the logs here, but this one, an event a line"),
	OPT("cursor-file", 0, STR, "FILE", cursor_file,
	    "go on where the last call with this file ended"),
};

static const struct opt events_opts[] = {
	OPT("follow", 'f', FLAG, NULL, follow, "until the run has ended"),
	OPT("json", 0, FLAG, NULL, json, "the events as they are stored, one a line"),
};

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

/* ---- other machines: their events come from the daemon, while there is one */

static int logs_connect(void *user, struct client **c, struct ava_error *err)
{
	return api_connect(API_LOOK, c, err);
}

static int logs_of_others(const struct sse_event *e, void *user)
{
	struct logprint *p = user;
	struct event_view v;
	struct ava_error err;
	struct ava_log_event event = {.line = e->data, .len = e->len, .file = e->machine};
	int rv = 0;

	if (query_line(read_query(p->log), 0, e->data, e->len, &v) != QUERY_YES)
		return 0;
	event.lsn = v.lsn;
	event.time_ms = v.wall_ms;
	p->text.machine = e->machine;
	rv = logs_print_event(p, &event, &err);
	p->text.machine = NULL;
	if (rv == AVA_ECORRUPT)
		on_broken(&err, p);
	return rv == AVA_ECORRUPT ? 0 : rv;
}

/* A connection that is lost is made again, behind what came. */
static void logs_follow_others(struct logprint *p)
{
	struct ava_error err;

	p->stream.path = "/api/v1/events?machines=only";
	p->stream.connect = logs_connect;
	p->stream.on_event = logs_of_others;
	p->stream.user = p;
	p->stream.open_ms = OTHER_MS;
	while (follow_look(&p->stream, &err) > 0)
		;
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
		if (p->others)
			logs_follow_others(p);
		rv = logs_settle(p, err);
		if (rv != 0)
			return rv;
		if (p->cursor != NULL)
			logcursor_look(p->cursor, clock_wall_ms());
		ava_log_wait(p->log, p->other || p->others ? OTHER_MS : -1);
		if (p->other && (rv = root_refresh_run(p->other, err)) != 0)
			return rv;
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
	if (o.last > 0)
		return (uint64_t)o.last;
	if (o.count || o.cursor_file != NULL)
		return 0;
	if (o.follow)
		return run ? 0 : DEFAULT_FOLLOW;
	return run || o.file != NULL || filtered() ? 0 : DEFAULT_LAST;
}

static int check_options(void)
{
	struct ava_error err;
	enum count_by by;
	const char *tag;

	if (o.by != NULL && count_by_name(o.by, &by, &tag, &err) != 0)
		return cli_error(CLI_USAGE, "--by: %s", err.text);
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
	if (p->cursor != NULL)
		logcursor_look(p->cursor, clock_wall_ms());
	rv = ava_log_open(&p->log, q, err);
	if (rv != 0)
		return rv;
	if (!o.follow)
		read_progress(p->log, logprint_progress, p);
	rv = show_all(p, err);
	follow_close(&p->stream);
	logprint_clear(p);
	ava_log_close(p->log);
	return rv;
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
	struct logprint p = {.run = argc > 0,
			     .reverse = o.reverse,
			     .text = {.agents = argc == 0, .own = o.all || o.type != NULL}};
	char root[ROOT_PATH_MAX];
	struct rlimit limit;
	struct ava_error err;
	bool other = false;
	int rv = check_options();

	if (rv != CLI_DONE)
		return rv;
	for (int i = 0; o.output != NULL && outputs[i] != NULL; i++)
		if (strcmp(o.output, outputs[i]) == 0)
			p.form = (enum logprint_form)i;
	q.types = o.type; /* with a limit to the newest N, only kinds that are shown count */
	if (q.types == NULL && !o.all && !o.count && p.form == LOGPRINT_TEXT && q.last > 0)
		q.types = logtext_types();
	/* Runs that were at work at the same time are merged: a descriptor each. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	rv = read_check(&q, &err); /* check the query before the root */
	if (rv == 0)
		rv = o.file != NULL ? foreign_log_root(o.file, root, &p.broken, &err)
				    : root_prepare_run(root, q.run, &other, &err);
	p.other = other ? q.run : NULL;
	p.others = o.follow && argc == 0 && o.cursor_file == NULL && root_is_shared();
	q.root = root;
	if (rv == 0 && o.cursor_file != NULL) {
		rv = logcursor_load(&cursor, o.cursor_file, &err);
		p.cursor = &cursor;
		q.after = cursor.after;
	}
	if (rv == 0)
		rv = logs_show(&q, &p, &err);
	for (size_t i = 0; i < p.nkept; i++)
		free(p.kept[i].owned);
	free(p.kept);
	if (rv != 0)
		return cli_fail(&err);
	return p.broken ? CLI_FAILED : CLI_DONE;
}

static int events_run(int argc, char **argv)
{
	o.output = o.json ? "json" : NULL;
	return logs_run(argc, argv);
}

const struct command cmd_events = COMMAND("events", "S-id", 1, 1, "print the events of a run", NULL,
					  OPTIONS(events_opts), events_run);

const struct command cmd_logs =
	COMMAND("logs", "[S-id]", 0, 1, "print what happened: Ava's log, that of a run, or of all",
		"Without an id and without a filter: the newest 100 events of Ava's own log. With "
		"a\n"
		"filter, --count or -f: Ava's log and those of all runs. With an id: that run's.\n"
		"Needs no daemon. The files are $AVA_DATA_ROOT/logs/ava/*.jsonl and\n"
		"$AVA_DATA_ROOT/logs/subagents/S-id.jsonl, one event a line, for tail, jq and "
		"rg.\n",
		OPTIONS(opts), logs_run);
