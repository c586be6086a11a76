/* Text for people (show.h): figures, tables, the result of a run, status lines.
 *
 * What can fail: memory for a table, told at its end. All text is another's and is made
 * safe for the terminal. */
#include "cli/show.h"

#include <assert.h>
#include <ava.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/calendar.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/cli.h"
#include "cli/links.h"
#include "cli/term.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "codec/patch.h"

/* Times. Pure but for the time zone; a time that cannot be told is "?". */

static struct format local(int64_t wall_ms, const char *form)
{
	struct format f = {"?"};
	time_t t = (time_t)(wall_ms / 1000);
	struct tm tm;

	if (localtime_r(&t, &tm) != NULL)
		strftime(f.text, sizeof(f.text), form, &tm);
	return f;
}

struct format format_clock(int64_t wall_ms)
{
	return local(wall_ms, "%H:%M:%S");
}

struct format format_date(int64_t wall_ms)
{
	return local(wall_ms, "%Y-%m-%d");
}

struct format format_moment_of(const json_t *o, const char *key)
{
	int64_t at = json_time(json_object_get(o, key));

	return at >= 0 ? local(at, "%Y-%m-%d %H:%M:%S") : (struct format){""};
}

/* A table of text columns. All cells are kept until it is printed,
 * since the width of a column is that of its widest cell. Out of memory is
 * remembered and told at the end. */

#define GAP  2 /* blanks between columns */
#define LAST 8 /* least width of the last column */

void table_init(struct table *t, size_t columns)
{
	assert(columns > 0 && columns <= TABLE_COLUMNS);
	*t = (struct table){.columns = columns};
}

void table_fini(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct table){0};
}

void table_add(struct table *t, const char *text)
{
	size_t *width = &t->width[t->n % t->columns];
	char *copy = t->error == 0 ? strdup(text) : NULL;

	if (copy == NULL || !ARRAY_ROOM(t->cells, t->cap, t->n + 1)) {
		free(copy);
		t->error = AVA_ENOMEM;
		return;
	}
	t->cells[t->n++] = copy;
	*width = MAX(*width, term_columns(text, strlen(text)));
}

/* Columns to leave out, so that the others fit into `total`; what these and
 * the gaps take is in *used. */
static unsigned show_leave_out(const struct table *t, size_t total, size_t *used)
{
	unsigned out = 0;

	*used = 0;
	for (size_t i = 0; i + 1 < t->columns; i++)
		*used += t->width[i] + GAP;
	for (size_t i = t->columns - 1; i-- > 0 && total > 0 && *used + LAST > total;) {
		if (!(t->spare & 1u << i))
			continue;
		out |= 1u << i;
		*used -= t->width[i] + GAP;
	}
	return out;
}

int table_print(const struct table *t, FILE *f)
{
	size_t total = term_width(f), used, last;
	unsigned out = show_leave_out(t, total, &used);

	last = total == 0 ? 0 : total > used + LAST ? total - used : LAST;
	for (size_t i = 0; i < t->n; i++) {
		size_t column = i % t->columns, n;

		if (out & 1u << column)
			continue;
		if (column + 1 == t->columns) {
			term_cut(f, t->cells[i], strlen(t->cells[i]), last);
			fputc('\n', f);
			continue;
		}
		n = term_cut(f, t->cells[i], strlen(t->cells[i]), 0);
		fprintf(f, "%*s", (int)(t->width[column] + GAP - n), "");
	}
	return t->error;
}

static void add_cell(struct table *t, const struct column *c, const json_t *row)
{
	static struct format (*const forms[])(const json_t *o, const char *key) = {
		[COLUMN_MOMENT] = format_moment_of,
		[COLUMN_TIME] = format_time_of,
		[COLUMN_TOKENS] = format_tokens_of,
		[COLUMN_COST] = format_cost_of,
		[COLUMN_MOST] = format_most_of};
	const char *value = c->key != NULL ? json_str(row, c->key) : "";
	char text[2048] = "";

	if (c->own != NULL)
		c->own(row, text, sizeof(text));
	else if (c->kind == COLUMN_ROLE)
		snprintf(text, sizeof(text), "%s", format_role(value).text);
	else if (c->kind < ARRAY_LEN(forms) && forms[c->kind] != NULL)
		snprintf(text, sizeof(text), "%.*s", c->kind == COLUMN_MOMENT ? 16 : FORMAT_LEN,
			 forms[c->kind](row, c->key).text);
	table_add(t, c->kind == COLUMN_TEXT     ? value
		     : c->kind == COLUMN_STATUS ? words_status(value)
						: text);
}

int show_table(const struct column *columns, size_t n, const json_t *rows)
{
	struct table t;
	const json_t *row;
	size_t i;
	int rv;

	table_init(&t, n);
	for (i = 0; i < n; i++) {
		t.spare |= (unsigned)columns[i].spare << i;
		table_add(&t, columns[i].title);
	}
	json_array_foreach(rows, i, row)
	{
		for (size_t k = 0; k < n; k++)
			add_cell(&t, &columns[k],
				 columns[k].in ? json_object_get(row, columns[k].in) : row);
	}
	rv = table_print(&t, stdout);
	table_fini(&t);
	return rv == 0 ? CLI_DONE : cli_error(CLI_FAILED, "out of memory");
}

/* The result of a run for people.
 *
 * `output` may be any JSON. Findings with a place (path and line, or a url)
 * are printed as such; other members as key: value, nested ones as JSON, so
 * that nothing of the result is hidden. All of it came from a model: it is
 * printed as text, never as it is. */

#define TEXT_COLUMNS 400 /* columns for a quote or a value on its line */
#define SUMMARY_MAX  ((size_t)8 << 20)
#define STATUS_MAX   (16u << 10)
#define ITEMS_MAX    200

void show_json(FILE *f, const json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	if (text != NULL)
		term_bytes(f, text, strlen(text));
	free(text);
	fputc('\n', f);
}

/* State of the result being printed, whose lines are laid out when they are whole. */
static bool some_cut, bold;
static const json_t *shown;

static void heading(FILE *f, const char *text)
{
	fprintf(f, bold ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

static void show_cut(FILE *f, const char *s)
{
	some_cut |= term_columns(s, strlen(s)) > TEXT_COLUMNS;
	term_cut(f, s, strlen(s), TEXT_COLUMNS);
}

/* ---- citations that were not found: those that were stand in `citations` */

static bool stands(const json_t *result, const char *path, size_t len, int64_t line, bool url)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(result, "citations"), i, one)
	{
		const char *known = json_str(one, url ? "url" : "path");

		if (strlen(known) == len && memcmp(known, path, len) == 0 &&
		    json_get_int(one, "line", 0) == line)
			return true;
	}
	return false;
}

static bool is_missing(const json_t *result, const json_t *item)
{
	const char *path = json_get_str(item, "path"), *url = json_get_str(item, "url");
	int64_t line = json_get_int(item, "line", 0), all;

	if (format_not_found(result, &all) <= 0)
		return false;
	if (path != NULL && line > 0)
		return !stands(result, path, strlen(path), line, false);
	return url != NULL && json_get_str(item, "quote") != NULL &&
	       !stands(result, url, strlen(url), 0, true);
}

/* A word behind each place in it that was not found. */
static int mark_text(struct buf *out, const json_t *result, const char *s)
{
	size_t len = strlen(s), from = 0, at = 0, path;
	int64_t line, all;
	bool failed = format_not_found(result, &all) > 0;

	while (failed && at < len) {
		size_t n = links_place(s + at, len - at, &path, &line);

		if (n > 0 && !stands(result, s + at, path, line, false)) {
			buf_add(out, s + from, at + n - from);
			buf_adds(out, WORDS_NOT_FOUND);
			from = at + n;
		}
		at += n > 0 ? n : path > 0 ? path : 1;
	}
	buf_add(out, s + from, len - from);
	return buf_check(out);
}

static bool show_has_place(const json_t *item)
{
	return json_get_str(item, "path") != NULL || json_get_str(item, "url") != NULL;
}

/* path:line  quote, and why below it */
static void show_place(FILE *f, const json_t *item)
{
	const char *path = json_get_str(item, "path"), *quote = json_str(item, "quote");
	const char *why = json_get_str(item, "why");
	int64_t line = json_get_int(item, "line", 0);

	fputs("  ", f);
	show_cut(f, path != NULL ? path : json_str(item, "url"));
	if (path != NULL && line > 0)
		fprintf(f, ":%" PRId64, line);
	if (shown != NULL && is_missing(shown, item))
		fputs(WORDS_NOT_FOUND, f);
	if (quote[0] != '\0') {
		fputs("  ", f);
		show_cut(f, quote);
	}
	fputc('\n', f);
	if (why != NULL && why[0] != '\0') {
		fputs("      ", f);
		show_cut(f, why);
		fputc('\n', f);
	}
}

static void value(FILE *f, const json_t *v)
{
	char *text =
		json_is_string(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	if (json_is_string(v))
		show_cut(f, json_string_value(v));
	else if (text != NULL)
		show_cut(f, text);
	free(text);
	fputc('\n', f);
}

static void items(FILE *f, const json_t *array)
{
	const json_t *item;
	size_t i;

	json_array_foreach(array, i, item)
	{
		if (i == ITEMS_MAX) {
			fprintf(f, "  and %zu more (--json has them)\n",
				json_array_size(array) - i);
			return;
		}
		if (show_has_place(item)) {
			show_place(f, item);
			continue;
		}
		fputs("  - ", f);
		value(f, item);
	}
}

static void member(FILE *f, const char *key, const json_t *v)
{
	char title[64];

	if (json_is_array(v)) {
		if (json_array_size(v) == 0)
			return;
		snprintf(title, sizeof(title), "  %.60s", format_role(key).text);
		heading(f, title); /* a heading that the model chose */
		items(f, v);
		return;
	}
	fputs("  ", f);
	show_cut(f, key);
	fputs(": ", f);
	value(f, v);
}

static void output(FILE *f, const json_t *v)
{
	const char *key;
	json_t *m;

	if (v == NULL || json_is_null(v))
		return;
	if (json_is_array(v)) {
		heading(f, "Output");
		items(f, v);
	} else if (json_is_object(v)) {
		/* Plain members first: they stand under no heading. */
		json_object_foreach((json_t *)v, key, m) if (!json_is_array(m)) member(f, key, m);
		json_object_foreach((json_t *)v, key, m) if (json_is_array(m)) member(f, key, m);
	} else {
		fputs("  ", f);
		value(f, v);
	}
}

static bool same_place(const json_t *a, const json_t *b)
{
	return strcmp(json_str(a, "path"), json_str(b, "path")) == 0 &&
	       strcmp(json_str(a, "url"), json_str(b, "url")) == 0 &&
	       json_get_int(a, "line", 0) == json_get_int(b, "line", 0);
}

/* Is this citation one of the findings that were printed already? */
static bool printed(const json_t *out, const json_t *citation)
{
	const char *key;
	json_t *m, *item;
	size_t i;

	json_object_foreach((json_t *)out, key, m) json_array_foreach(
		m, i, item) if (show_has_place(item) && same_place(item, citation)) return true;
	return false;
}

static void citations(FILE *f, const json_t *result)
{
	const json_t *list = json_object_get(result, "citations"), *item;
	const json_t *out = json_object_get(result, "output");
	bool begun = false;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (json_is_object(out) && printed(out, item))
			continue;
		if (!begun)
			heading(f, "Citations");
		begun = true;
		show_place(f, item);
	}
}

static void caveats(FILE *f, const json_t *result)
{
	const json_t *list = json_object_get(result, "caveats");
	bool unverified = json_get_bool(result, "unverified", false);
	bool partial = json_get_bool(result, "partial", false);
	int64_t all, failed = format_not_found(result, &all);

	bool said = json_string_length(list) > 0;

	if (said || json_array_size(list) > 0 ||
	    ((failed > 0 || unverified || partial) && !json_is_string(list)))
		heading(f, WORDS_CAVEATS);
	if (said) {
		fputs("  - ", f);
		value(f, list);
	}
	items(f, list);
	if (failed > 0)
		term_line(f, "  - " WORDS_NOT_FOUND_OF(failed, all));
	if (unverified)
		fputs("  - " WORDS_UNVERIFIED "\n", f);
	if (partial)
		fputs("  - " WORDS_PARTIAL "\n", f);
}

/* The outcome of the check, and its last lines where it did not pass. */
static void show_check(FILE *f, const json_t *result)
{
	const json_t *check = json_object_get(result, "check");
	const char *tail = json_str(check, "tail");
	struct buf line;

	if (check == NULL)
		return;
	buf_init(&line, 64u << 10);
	format_check(&line, result);
	term_line(f, "\n%s", buf_check(&line) == 0 ? line.data : "");
	buf_reset(&line);
	utf8_terminal(&line, tail, strlen(tail), true);
	for (size_t at = 0; buf_check(&line) == 0 && at < line.len;) {
		size_t n = strcspn(line.data + at, "\n");

		term_line(f, "  | %.*s", (int)n, line.data + at);
		at += n + 1;
	}
	buf_fini(&line);
}

static void totals(FILE *f, const json_t *result)
{
	const json_t *confidence = json_object_get(result, "confidence");
	const char *id = json_str(result, "subagent_id");
	struct buf line;

	buf_init(&line, STATUS_MAX);
	buf_addf(&line, WORDS_TOTALS(format_time_of(result, "duration_seconds").text,
				     format_tokens_of(result, "tokens_used").text,
				     format_cost_of(result, "cost_cents").text,
				     words_amount(WORDS_LIMIT_REPLIES,
						  json_get_int(result, "iterations", 0))
					     .text));
	if (json_is_number(confidence) && strcmp(json_str(result, "status"), "success") == 0) {
		buf_adds(&line, ", ");
		buf_addf(&line, WORDS_CONFIDENCE(json_number_value(confidence)));
	}
	buf_addf(&line, ", model %.400s", json_str(result, "model"));
	term_line(f, "\n%s", buf_check(&line) == 0 ? line.data : "");
	buf_fini(&line);
	term_line(f, WORDS_LOG_OF(id));
}

/* The run's artifacts by name and size, never their content. */
static void files(FILE *f, const json_t *result)
{
	const json_t *list = json_object_get(result, "artifacts"), *item;
	size_t i;

	if (json_array_size(list) > 0)
		heading(f, "Files");
	json_array_foreach(list, i, item)
	{
		fputs("  - ", f);
		show_cut(f, json_str(item, "path"));
		if (json_get_bool(item, "more", false))
			fputs(" has more\n", f);
		else
			fprintf(f, " (%s, %" PRId64 " bytes)\n", json_str(item, "type"),
				json_get_int(item, "bytes", 0));
	}
}

/* Print a run's summary; what a stopped model said last is marked, since it is no result. */
static void summary_of(FILE *f, const json_t *result)
{
	struct buf text;
	const char *summary = json_str(result, "summary"), *status = json_str(result, "status");
	static const char own[] = WORDS_STOPPED_AT; /* words of the runtime, told already */
	bool partial = json_get_bool(result, "partial", false),
	     last = partial && strcmp(status, "success") != 0;

	if (summary[0] == '\0' || strcmp(summary, json_str(result, "error")) == 0 ||
	    (partial && strcmp(status, "cancelled") == 0) ||
	    strncmp(summary, own, sizeof(own) - 1) == 0)
		return;
	if (last)
		fputs(WORDS_SAID_LAST, f);
	buf_init(&text, SUMMARY_MAX);
	if (mark_text(&text, result, summary) == 0)
		term_theirs(f, term_width(f), text.data, text.len,
			    last ? sizeof(WORDS_SAID_LAST) - 1 : 0);
	buf_fini(&text);
	fputc('\n', f);
}

const char *show_door(const json_t *door, char out[SHOW_DOOR_MAX])
{
	const char *who = json_str(door, "bot"), *problem = json_str(door, "problem");
	const char *machine = json_str(door, "machine");

	snprintf(out, SHOW_DOOR_MAX, "%.40s%s%.64s: %s%.200s, %zu paired%s%.320s",
		 json_str(door, "state"), machine[0] ? ", on machine " : "", machine,
		 who[0] && who[0] != '@' ? "@" : "", who,
		 json_array_size(json_object_get(door, "paired")), problem[0] ? "; " : "", problem);
	return out;
}

/* Changes that a run proposes (member "patch" of its result). A model chose the paths: they are
 * shown as text of unknown origin, each on a line of its own. Members that are not there count as
 * nothing, so that a result of another version is shown as far as it goes. */

static void changes_lines(FILE *f, const json_t *patch)
{
	int64_t files = json_get_int(patch, "files", 0), more;
	const json_t *list = json_object_get(patch, "changed"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *how = json_str(one, "how");
		const json_t *exec = json_object_get(one, "exec");

		term_print(f, "  %s  +%" PRId64 " -%" PRId64 "%s%s%s\n", json_str(one, "path"),
			   json_get_int(one, "added", 0), json_get_int(one, "removed", 0),
			   strcmp(how, "new") == 0       ? "  (new)"
			   : strcmp(how, "deleted") == 0 ? "  (deleted)"
							 : "",
			   json_is_true(exec)    ? "  (executable)"
			   : json_is_false(exec) ? "  (no longer executable)"
						 : "",
			   patch_obeyed(json_str(one, "path"))
				   ? "  (programs or agents obey it: asked about by itself)"
				   : "");
	}
	if (files > (int64_t)json_array_size(list))
		fprintf(f, "  and %" PRId64 " more\n", files - (int64_t)json_array_size(list));
	fprintf(f, "  %" PRId64 " %s, +%" PRId64 " -%" PRId64 "\n", files,
		files == 1 ? "file" : "files", json_get_int(patch, "added", 0),
		json_get_int(patch, "removed", 0));
	list = json_object_get(patch, "left_out");
	json_array_foreach(list, i, one)
	{
		term_print(f, "  left out: %s (%s)\n", json_str(one, "path"), json_str(one, "why"));
	}
	more = json_get_int(patch, "left_out_files", 0) - (int64_t)json_array_size(list);
	if (more > 0)
		fprintf(f, "  left out: %" PRId64 " more\n", more);
}

void changes_show(FILE *f, const json_t *patch)
{
	char *text = NULL;
	size_t len = 0;
	FILE *lines = open_memstream(&text, &len);

	if (lines != NULL)
		changes_lines(lines, patch);
	if (lines != NULL && fclose(lines) == 0)
		term_put(f, term_width(f), text, len, 0, 0);
	free(text);
}

/* The same as a section of a result, with what to do next; nothing when there is none. */
static void changes_section(FILE *f, const json_t *result)
{
	const json_t *patch = json_object_get(result, "patch");
	const char *id = json_str(result, "subagent_id");

	if (!json_is_object(patch))
		return;
	fputc('\n', f);
	term_colour(f, TERM_BOLD);
	fputs("Changes it proposes", f);
	term_colour(f, TERM_PLAIN);
	fputs(" (nothing is written to your files yet)\n", f);
	changes_show(f, patch);
	if (json_get_int(patch, "files", 0) > 0)
		term_print(f, "  Do they fit: ava apply %s --check; write them: ava apply %s\n", id,
			   id);
}

void show_proposal(FILE *f, const json_t *proposal)
{
	const char *message = json_str(proposal, "message"), *home = getenv("HOME");
	const char *end = strstr(message, "\n" WORDS_PROCEED);
	const json_t *config = json_object_get(proposal, "config");
	const json_t *members = json_object_get(config, "members"); /* of a group */
	const char *cwd = "";

	term_wrapped(f, message, end ? (size_t)(end - message) : strlen(message));
	fputc('\n', f);
	for (size_t i = 0; i < MAX(json_array_size(members), 1); i++) {
		const char *is = json_str(members ? json_array_get(members, i) : config, "cwd");
		bool all = strcmp(is, "/") == 0;

		if (strcmp(is, cwd) == 0)
			continue;
		cwd = is;
		term_line(f, WORDS_QUOTE_FOLDER(cwd));
		if (all || (home && strcmp(cwd, home) == 0))
			term_line(f, "  That is all of %s: better start in a project's folder.",
				  all ? "this machine" : "your home");
	}
}

/* The next times and the end, in the zone of the order, as its quote has them. */
static void order_times(FILE *f, const json_t *o)
{
	const json_t *next = json_object_get(o, "next"), *until = json_object_get(o, "until"), *due;
	struct calendar *zone = NULL;
	char stamp[CALENDAR_STAMP];
	size_t i;

	if (calendar_parse("@trigger", json_str(o, "zone"), 0, &zone, NULL) != 0)
		return;
	json_array_foreach(next, i, due)
	{
		calendar_stamp(zone, json_time(due), stamp);
		term_print(f, "%s%s", i == 0 ? "Next: " : ", ", stamp);
	}
	if (json_array_size(next) > 0)
		fputc('\n', f);
	if (until) {
		calendar_stamp(zone, json_time(until), stamp);
		term_print(f, "Until: %s\n", stamp);
	}
	calendar_free(zone);
}

static void order_money(FILE *f, const json_t *o, const char *per, const char *spent,
			const char *limit)
{
	if (json_is_number(json_object_get(o, limit)))
		term_print(f, "%s: %s of %s\n", per, format_cost_of(o, spent).text,
			   format_money_limit(json_get_fixed(o, limit, 4, 0)).text);
}

void show_order(FILE *f, const json_t *o)
{
	const char *id = json_str(o, "order_id"), *why = json_str(o, "why"),
		   *ask = json_str(o, "ask");
	const char *state = json_str(o, "state"), *run = json_str(o, "run");

	term_print(f, "%s is %s: %s\n", id, state, json_str(o, "task"));
	term_print(f, "When: %s\n", json_str(o, "text"));
	order_times(f, o);
	term_print(f, "Each run: %s, %s, up to %s\n", json_str(o, "role"), json_str(o, "model"),
		   format_money_limit(json_get_fixed(o, "max_cost_cents", 4, -1)).text);
	order_money(f, o, "Today", "spent_day_cents", "day_cents");
	order_money(f, o, "This month", "spent_month_cents", "month_cents");
	term_print(f, "Runs so far: %lld", (long long)json_get_int(o, "fired", 0));
	if (json_object_get(o, "count") != NULL)
		term_print(f, " of %lld", (long long)json_get_int(o, "count", 0));
	term_print(f, "%s%s\n", *run ? ", the last " : "", run);
	if (*json_str(o, "cwd"))
		term_line(f, WORDS_QUOTE_FOLDER(json_str(o, "cwd")));
	if (*why)
		term_print(f, "%s: %s\n", strcmp(state, "asks") == 0 ? "Has changed" : "Last time",
			   why);
	if (*ask)
		term_print(f, WORDS_WAITS(ask, " (ava asks)\n"));
	else if (strcmp(state, "asks") == 0)
		term_print(f, "ava schedule unpause %s asks you anew\n", id);
	else if (strcmp(state, "active") == 0)
		term_print(f, "ava schedule pause %s, or rm, stops it\n", id);
}

void show_result(FILE *f, const json_t *result)
{
	static const char failed[] = "Error: ";
	const char *error = json_str(result, "error");
	char *text = NULL;
	size_t len = 0;
	FILE *lines = open_memstream(&text, &len);

	some_cut = false;
	bold = term_colours(f);
	shown = result;

	/* A check that did not pass is shown below, whole. */
	if (error[0] != '\0' && strcmp(json_str(result, "status"), "unproven") != 0) {
		fputs(failed, f);
		term_theirs(f, term_width(f), error, strlen(error), sizeof(failed) - 1);
		fputc('\n', f);
	}
	summary_of(f, result);
	if (lines != NULL) {
		output(lines, json_object_get(result, "output"));
		citations(lines, result);
		caveats(lines, result);
		files(lines, result);
	}
	if (lines != NULL && fclose(lines) == 0)
		term_put(f, term_width(f), text, len, 0, 0);
	free(text);
	changes_section(f, result);
	show_check(f, result);
	totals(f, result);
	if (some_cut)
		term_line(f, WORDS_UNCUT(json_str(result, "subagent_id")));
	shown = NULL;
}
