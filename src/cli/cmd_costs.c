/* ava costs: what runs and Ava's own turns cost, by day, model, tag and more: a table, CSV, or
 * JSON.
 *
 * From the files alone, by the count of `ava logs --count` (journal/count.h), which the page's
 * Costs are added up by, too. What can fail: words that are no key or time; the logs. Broken lines
 * are named on stderr and make the command end with 1; the rest is still counted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"
#include "journal/count.h"
#include "journal/read.h"

#define COSTS_SINCE    "30d"
#define COSTS_JSON_MAX ((size_t)1 << 30)

static struct {
	bool csv, json;
	const char *by, *since, *until;
} o;

static const struct opt opts[] = {
	OPT("by", 0, STR, "KEY", by,
	    "day, week, month, role, model (the default), agent, type, tag, tag:KEY, project, "
	    "user or order"),
	OPT("since", 'S', STR, "TIME", since,
	    "from then on: -7d, yesterday, 2026-11-01, ...; without it 30 days"),
	OPT("until", 'U', STR, "TIME", until, "before then"),
	OPT("csv", 0, FLAG, NULL, csv, "as CSV, with a row of titles"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

/* The sums of a row in the order of all forms; the key stands before them. */
static const struct costs_column {
	const char *title, *name;
	size_t at;
	bool money;
} costs_columns[] = {
#define COLUMN(title, name, member)                                                                \
	{                                                                                          \
		title, name, offsetof(struct count_row, member)                                    \
	}
	COLUMN("RUNS", "runs", runs),
	COLUMN("FAILED", "failed", failed),
	COLUMN("CALLS", "calls", calls),
	COLUMN("TOKENS IN", "input_tokens", input_tokens),
	COLUMN("CACHED", "cached_tokens", cached_tokens),
	COLUMN("TOKENS OUT", "output_tokens", output_tokens),
	{"COST", "cost_cents", offsetof(struct count_row, cost_microusd), true},
	COLUMN("NO PRICE", "uncosted_calls", uncosted),
#undef COLUMN
};

static uint64_t costs_of(const struct count_row *r, const struct costs_column *c)
{
	return *(const uint64_t *)((const char *)r + c->at);
}

static void costs_broken(const struct ava_error *err, void *broken)
{
	*(bool *)broken = true;
	cli_error(CLI_FAILED, "%s", err->text);
}

/* ---- forms */

static void costs_table_row(struct table *t, const char *key, const struct count_row *r)
{
	char text[24];

	table_add(t, key);
	for (size_t i = 0; i < ARRAY_LEN(costs_columns); i++) {
		uint64_t n = costs_of(r, &costs_columns[i]);

		snprintf(text, sizeof(text), "%" PRIu64, n);
		table_add(t, costs_columns[i].money ? format_money((int64_t)n).text : text);
	}
}

static int costs_table(const struct count *c, const struct count_row *total)
{
	char by[48];
	struct table t;
	int rv;

	snprintf(by, sizeof(by), "%s", o.by);
	for (char *s = by; *s && *s != ':'; s++)
		*s = (char)(*s - ('a' - 'A'));
	table_init(&t, ARRAY_LEN(costs_columns) + 1);
	table_add(&t, by);
	for (size_t i = 0; i < ARRAY_LEN(costs_columns); i++)
		table_add(&t, costs_columns[i].title);
	t.spare = 1u << 5 | 1u << 8;
	for (size_t i = 0; i < c->n; i++)
		costs_table_row(&t, c->rows[i].key[0] ? c->rows[i].key : "-", &c->rows[i]);
	costs_table_row(&t, "all", total);
	rv = table_print(&t, stdout);
	table_fini(&t);
	return rv;
}

/* A field of CSV. What a spreadsheet would take for a formula begins with an apostrophe. */
static void costs_csv_field(const char *s)
{
	bool formula = s[0] && strchr("=+-@\t\r", s[0]);

	if (!formula && !s[strcspn(s, ",\"\r\n")]) {
		fputs(s, stdout);
		return;
	}
	fputs(formula ? "\"'" : "\"", stdout);
	for (; *s; s++)
		fputs(*s == '"' ? "\"\"" : (const char[]){*s, '\0'}, stdout);
	putchar('"');
}

/* RFC 4180. */
static void costs_csv(const struct count *c)
{
	costs_csv_field(o.by);
	for (size_t i = 0; i < ARRAY_LEN(costs_columns); i++)
		printf(",%s", costs_columns[i].name);
	fputs("\r\n", stdout);
	for (size_t k = 0; k < c->n; k++) {
		costs_csv_field(c->rows[k].key);
		for (size_t i = 0; i < ARRAY_LEN(costs_columns); i++) {
			uint64_t n = costs_of(&c->rows[k], &costs_columns[i]);

			if (costs_columns[i].money)
				printf(",%" PRIu64 ".%04" PRIu64, n / 10000, n % 10000);
			else
				printf(",%" PRIu64, n);
		}
		fputs("\r\n", stdout);
	}
}

static void costs_json_row(struct jw *w, const struct count_row *r)
{
	for (size_t i = 0; i < ARRAY_LEN(costs_columns); i++) {
		int64_t n = (int64_t)costs_of(r, &costs_columns[i]);

		if (costs_columns[i].money)
			jw_fixed(w, costs_columns[i].name, n, 4);
		else
			jw_int(w, costs_columns[i].name, n);
	}
	jw_end(w);
}

static int costs_json(const struct count *c, const struct count_row *total)
{
	struct buf b;
	struct jw w;
	int rv;

	buf_init(&b, COSTS_JSON_MAX);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "by", o.by);
	jw_array(&w, "rows");
	for (size_t i = 0; i < c->n; i++) {
		jw_object(&w, NULL);
		jw_str(&w, "name", c->rows[i].key);
		costs_json_row(&w, &c->rows[i]);
	}
	jw_end(&w);
	jw_object(&w, "all");
	costs_json_row(&w, total);
	jw_end(&w);
	rv = buf_addc(&b, '\n');
	if (rv == 0)
		term_bytes(stdout, b.data, b.len);
	buf_fini(&b);
	return rv;
}

/* ---- the command */

static int costs_show(const struct ava_log_query *q, enum count_by by, struct count_watch *watch,
		      struct ava_error *err)
{
	static const struct count_row none;
	struct count rows = {0}, all = {0};
	int rv = count_events(&rows, q, by, watch, err);

	watch->broken = NULL; /* told once */
	if (rv == 0)
		rv = count_events(&all, q, COUNT_ALL, watch, err);
	if (rv == AVA_ENOENT) /* nothing was logged yet */
		rv = 0;
	if (rv != 0) {
		count_fini(&rows);
		return rv;
	}
	if (o.csv)
		costs_csv(&rows);
	else if (o.json)
		rv = costs_json(&rows, all.n > 0 ? &all.rows[0] : &none);
	else if (rows.n > 0)
		rv = costs_table(&rows, &all.rows[0]);
	else
		puts("No run began or ended in this time, and no model was called: give an earlier "
		     "--since.");
	count_fini(&rows);
	count_fini(&all);
	return rv == 0 ? 0 : err_set(err, rv, "no memory to show the costs");
}

static int costs_run(int argc, char **argv)
{
	struct ava_log_query q = {.everything = 1,
				  .types = "InferEnd,SubagentSpawn,SubagentComplete",
				  .since = o.since ? o.since : COSTS_SINCE,
				  .until = o.until};
	bool broken = false;
	struct count_watch watch = {.broken = costs_broken, .user = &broken, .runs = true};
	enum count_by by = COUNT_MODEL;
	char root[ROOT_PATH_MAX];
	struct ava_error err = {0};
	int rv;

	if (o.csv && o.json)
		return cli_error(CLI_USAGE, "--csv and --json are two forms: give one");
	o.by = o.by ? o.by : "model";
	if (count_by_name(o.by, &by, &watch.tag, &err) != 0)
		return cli_error(CLI_USAGE, "--by: %s", err.text);
	rv = read_check(&q, &err); /* check the times before the root */
	if (rv == 0)
		rv = root_prepare(root, &err);
	q.root = root;
	if (rv == 0)
		rv = costs_show(&q, by, &watch, &err);
	if (rv != 0)
		return cli_fail(&err);
	return broken ? CLI_FAILED : CLI_DONE;
}

const struct command cmd_costs = COMMAND(
	"costs", "", 0, 0, "what runs and Ava's own turns cost, by model, day, tag, ...",
	"Needs no daemon. A run counts where it began, its end where it ended, a call where "
	"it was\n"
	"made. With --by tag a run counts for each of its tags; the last line has all once.\n"
	"A project is the repository of a run's folder, or the folder. In CSV what a "
	"spreadsheet\n"
	"would take for a formula begins with an apostrophe.\n",
	OPTIONS(opts), costs_run);
