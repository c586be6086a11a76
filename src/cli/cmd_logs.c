/* ava logs [S-id]: what happened, from the files, whether a daemon runs or
 * not. -o json gives the bytes as they stand in the file. doc/QUERY.md.
 *
 * A broken line is named on stderr and makes the command end with 1; what is
 * around it is still printed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/logcount.h"
#include "cli/logcursor.h"
#include "cli/logprint.h"
#include "cli/root.h"
#include "journal/read.h"

#define DEFAULT_LAST   100 /* of Ava's own log */
#define DEFAULT_FOLLOW 10

static struct {
	int64_t last;
	bool follow, reverse, count;
	const char *output, *type, *since, *until, *agent, *user, *session, *grep, *search, *by,
		*cursor_file, *file;
} o;

static const char *const outputs[] = {"text", "json", "json-pretty", NULL};

#define STR(field_, letter_, value_, help_)                                                        \
	{                                                                                          \
		.name = #field_, .letter = letter_, .type = OPT_STR, .value = value_,              \
		.help = help_, .field = offsetof(__typeof__(o), field_)                            \
	}

static const struct opt opts[] = {
	{.name = "last",
	 .letter = 'n',
	 .type = OPT_COUNT,
	 .value = "N",
	 .least = 1,
	 .help = "only the newest N events",
	 .field = offsetof(__typeof__(o), last)},
	{.name = "follow",
	 .letter = 'f',
	 .type = OPT_FLAG,
	 .help = "go on with what is logged later",
	 .field = offsetof(__typeof__(o), follow)},
	STR(type, 0, "TYPE,...", "only these: ToolCall,Error, tool, thinking, cost, ..."),
	STR(since, 'S', "TIME", "from then on: \"1 hour ago\", -1h, yesterday, 2026-11-21, ..."),
	STR(until, 'U', "TIME", "before then"),
	STR(agent, 0, "AGENT", "only of this agent: ava, S-id or a trace's name"),
	STR(user, 0, "USER", "only of this user"),
	STR(session, 0, "SESSION", "only of this session"),
	STR(search, 0, "TEXT", "only lines with this text (capital letters: exactly so)"),
	STR(grep, 'g', "REGEX", "only lines that match (Perl-compatible; case as above)"),
	{.name = "reverse",
	 .letter = 'r',
	 .type = OPT_FLAG,
	 .help = "newest first",
	 .field = offsetof(__typeof__(o), reverse)},
	{.name = "count",
	 .type = OPT_FLAG,
	 .help = "how many they are, not what they are",
	 .field = offsetof(__typeof__(o), count)},
	{.name = "by",
	 .type = OPT_STR,
	 .value = "KEY",
	 .words = logcount_keys,
	 .help = "with --count: for each type, agent, model, role or day, and what it cost",
	 .field = offsetof(__typeof__(o), by)},
	{.name = "output",
	 .letter = 'o',
	 .type = OPT_STR,
	 .value = "FORM",
	 .words = outputs,
	 .help = "text, json (the lines as stored) or json-pretty",
	 .field = offsetof(__typeof__(o), output)},
	{.name = "file",
	 .type = OPT_STR,
	 .value = "FILE",
	 .help = "not the logs here, but this one, an event a line",
	 .field = offsetof(__typeof__(o), file)},
	{.name = "cursor-file",
	 .type = OPT_STR,
	 .value = "FILE",
	 .help = "go on where the last call with this file ended",
	 .field = offsetof(__typeof__(o), cursor_file)},
};

struct show {
	struct ava_log *log;
	struct logprint print;
	struct logcursor *cursor; /* NULL: none */
	bool run;                 /* one run's log */
	bool broken;              /* a line was */
	bool over;                /* nothing can follow */
};

static void look(struct show *s)
{
	if (s->cursor != NULL)
		logcursor_look(s->cursor, clock_wall_ms());
}

/* 0, or a code that ends it. */
static int show_event(struct show *s, const struct ava_log_event *e, struct ava_error *err)
{
	int rv;

	if (s->cursor != NULL && logcursor_has(s->cursor, e->lsn))
		return 0;
	rv = logprint_event(&s->print, e, err);
	if (s->cursor != NULL && (rv == 0 || rv == AVA_ECORRUPT))
		logcursor_add(s->cursor, e->lsn, e->time_ms);
	s->over = s->run && o.follow && strcmp(e->type, "SubagentComplete") == 0;
	return rv;
}

/* All there is for now has left; nothing of it comes again. */
static int settle(struct show *s, struct ava_error *err)
{
	logprint_clear(&s->print);
	if (fflush(stdout) != 0) /* the reader of our output is gone */
		return err_sys(err, "write");
	return s->cursor != NULL ? logcursor_save(s->cursor, err) : 0;
}

static void tell_broken(struct show *s, const struct ava_error *err)
{
	logprint_clear(&s->print);
	s->broken = true;
	cli_error(CLI_FAILED, "%s", err->text);
}

static int show_all(struct show *s, struct ava_error *err)
{
	struct ava_log_event e;
	int rv;

	while (!s->over) {
		rv = ava_log_next(s->log, &e, err);
		if (rv == 1)
			rv = show_event(s, &e, err) == 0 ? 1 : err->code;
		if (rv == AVA_ECORRUPT)
			tell_broken(s, err);
		else if (rv < 0)
			return rv;
		if (rv != 0)
			continue;
		if (!o.follow)
			break;
		rv = settle(s, err);
		if (rv != 0)
			return rv;
		look(s);
		ava_log_wait(s->log, -1);
	}
	rv = logprint_end(&s->print, err);
	if (rv == AVA_ECORRUPT)
		tell_broken(s, err);
	else if (rv != 0)
		return rv;
	return settle(s, err);
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

static int check_options(int argc, char **argv)
{
	if (argc > 0 && cli_check_run_id(argv[0]) != CLI_DONE)
		return CLI_USAGE;
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

static int show(const struct ava_log_query *q, struct show *s, struct ava_error *err)
{
	static char buffer[128 << 10];
	int rv;

	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (o.count)
		return logcount_print(q, o.by, &s->print, &s->broken, err);
	look(s);
	rv = ava_log_open(&s->log, q, err);
	if (rv != 0)
		return rv;
	if (!o.follow)
		read_progress(s->log, logprint_progress, &s->print);
	rv = show_all(s, err);
	logprint_clear(&s->print);
	ava_log_close(s->log);
	return rv;
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

static void set_up(struct show *s, bool run)
{
	s->run = run;
	s->print.reverse = o.reverse;
	s->print.text.agents = !run;
	if (o.output != NULL && strcmp(o.output, "json") == 0)
		s->print.form = LOGPRINT_JSON;
	else if (o.output != NULL && strcmp(o.output, "json-pretty") == 0)
		s->print.form = LOGPRINT_PRETTY;
}

static int logs_run(int argc, char **argv)
{
	static struct logcursor cursor;
	struct ava_log_query q = {
		.run = argc > 0 ? argv[0] : NULL,
		.types = o.type,
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
	struct show s = {0};
	char root[ROOT_PATH_MAX];
	struct ava_error err;
	int rv = check_options(argc, argv);

	if (rv != CLI_DONE)
		return rv;
	set_up(&s, argc > 0);
	raise_files();
	rv = read_check(&q, &err); /* what is asked, before where it is asked */
	if (rv == 0)
		rv = o.file != NULL ? root_of_file(o.file, root, &err) : root_prepare(root, &err);
	q.root = root;
	if (rv == 0 && o.cursor_file != NULL) {
		rv = logcursor_load(&cursor, o.cursor_file, &err);
		s.cursor = &cursor;
		q.after = cursor.after;
	}
	if (rv == 0)
		rv = show(&q, &s, &err);
	logprint_fini(&s.print);
	if (rv != 0)
		return cli_fail(&err);
	return s.broken ? CLI_FAILED : CLI_DONE;
}

const struct command cmd_logs = {
	.name = "logs",
	.args = "[S-id]",
	.max_args = 1,
	.summary = "print what happened: Ava's log, that of a run, or of all",
	.detail =
		"Without an id and without a filter: the newest 100 events of Ava's own log. With "
		"a\n"
		"filter, --count or -f: Ava's log and those of all runs. With an id: that run's.\n"
		"Needs no daemon. The files are $AVA_DATA_ROOT/logs/ava/*.jsonl and\n"
		"$AVA_DATA_ROOT/logs/subagents/S-id.jsonl, one event a line, for tail, jq and "
		"rg.\n",
	.opts = opts,
	.nopts = ARRAY_LEN(opts),
	.values = &o,
	.run = logs_run,
};
