/* ava logs [S-id]: Ava's own log or that of a run, from the files, whether a
 * daemon runs or not. -o json gives the bytes as they stand in the file.
 *
 * A broken line is named on stderr and makes the command end with 1; what is
 * around it is still printed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/logtext.h"
#include "cli/root.h"
#include "codec/json.h"

#define DEFAULT_LAST   100 /* of Ava's own log */
#define DEFAULT_FOLLOW 10

static struct {
	int64_t last;
	bool follow;
	const char *output, *type;
} o;

static const char *const outputs[] = {"text", "json", "json-pretty", NULL};

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
	{.name = "output",
	 .letter = 'o',
	 .type = OPT_STR,
	 .value = "FORM",
	 .words = outputs,
	 .help = "text, json (the lines as stored) or json-pretty",
	 .field = offsetof(__typeof__(o), output)},
	{.name = "type",
	 .type = OPT_STR,
	 .value = "TYPE,...",
	 .help = "only events of these types (ToolCall,Error)",
	 .field = offsetof(__typeof__(o), type)},
};

static int print_pretty(const char *line, size_t len, struct ava_error *err)
{
	json_t *v = json_parse(line, len, err);

	if (v == NULL)
		return AVA_ECORRUPT;
	json_dumpf(v, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	putchar('\n');
	json_decref(v);
	return 0;
}

static int print_event(struct logtext *l, const struct ava_log_event *e, struct ava_error *err)
{
	int rv;

	if (o.output == NULL || strcmp(o.output, "text") == 0) {
		rv = logtext_print(l, stdout, e->line, e->len, e->time_ms, err);
	} else if (strcmp(o.output, "json") == 0) {
		fwrite(e->line, 1, e->len, stdout);
		putchar('\n');
		return 0;
	} else {
		rv = print_pretty(e->line, e->len, err);
	}
	return rv == 0 ? 0 : err_wrap(err, rv, "%s:%llu", e->file, (unsigned long long)e->offset);
}

/* 0 at the end, else how it failed. Sets *broken when a line was. */
static int print_all(struct ava_log *log, bool run, bool *broken, struct ava_error *err)
{
	struct logtext text = {0};
	struct ava_log_event e;

	for (;;) {
		int rv = ava_log_next(log, &e, err);

		if (rv == 1)
			rv = print_event(&text, &e, err) == 0 ? 1 : err->code;
		if (rv == AVA_ECORRUPT) {
			*broken = true;
			cli_error(CLI_FAILED, "%s", err->text);
			continue;
		}
		if (rv < 0)
			return rv;
		if (rv == 0 && !o.follow)
			return 0;
		if (rv == 0) {
			if (fflush(stdout) != 0) /* the reader of our output is gone */
				return err_sys(err, "write");
			ava_log_wait(log, -1);
		} else if (run && o.follow && strcmp(e.type, "SubagentComplete") == 0) {
			return 0; /* nothing comes after it */
		}
	}
}

static uint64_t how_many(bool run)
{
	if (o.last != OPT_ABSENT)
		return (uint64_t)o.last;
	if (run)
		return 0;
	return o.follow ? DEFAULT_FOLLOW : DEFAULT_LAST;
}

static int logs_run(int argc, char **argv)
{
	struct ava_log_query q = {
		.run = argc > 0 ? argv[0] : NULL, .types = o.type, .follow = o.follow};
	char root[ROOT_PATH_MAX];
	struct ava_error err;
	struct ava_log *log = NULL;
	bool broken = false;
	int rv;

	if (argc > 0 && cli_check_run_id(argv[0]) != CLI_DONE)
		return CLI_USAGE;
	rv = root_prepare(root, &err);
	q.root = root;
	q.last = how_many(argc > 0);
	if (rv == 0)
		rv = ava_log_open(&log, &q, &err);
	if (rv == 0)
		rv = print_all(log, argc > 0, &broken, &err);
	ava_log_close(log);
	if (rv != 0)
		return cli_fail(&err);
	return broken ? CLI_FAILED : CLI_DONE;
}

const struct command cmd_logs = {
	.name = "logs",
	.args = "[S-id]",
	.max_args = 1,
	.summary = "print Ava's log, or that of a run",
	.detail =
		"Without -n, all of a run's log, or the newest 100 events of Ava's own. Needs no\n"
		"daemon. The files are $AVA_DATA_ROOT/logs/ava/*.jsonl and\n"
		"$AVA_DATA_ROOT/logs/subagents/S-id.jsonl, one event a line, for tail, jq and "
		"rg.\n",
	.opts = opts,
	.nopts = ARRAY_LEN(opts),
	.values = &o,
	.run = logs_run,
};
