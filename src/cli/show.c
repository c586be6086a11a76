/* The result of a run for people; show.h.
 *
 * `output` may be any JSON. Findings with a place (path and line, or a url)
 * are printed as such; other members as key: value, nested ones as JSON, so
 * that nothing of the result is hidden. All of it came from a model: it is
 * printed as text, never as it is. */
#include "cli/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/format.h"
#include "cli/term.h"
#include "codec/json.h"

#define TEXT_COLUMNS 400 /* of a quote or a value on its line */
#define ITEMS_MAX    200

void show_json(FILE *f, const json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	if (text != NULL)
		term_bytes(f, text, strlen(text));
	free(text);
	fputc('\n', f);
}

static void heading(FILE *f, const char *text)
{
	fputc('\n', f);
	term_colour(f, TERM_BOLD);
	fputs(text, f);
	term_colour(f, TERM_PLAIN);
	fputc('\n', f);
}

static void cut(FILE *f, const char *s)
{
	term_cut(f, s, strlen(s), TEXT_COLUMNS);
}

static bool has_place(const json_t *item)
{
	return json_get_str(item, "path") != NULL || json_get_str(item, "url") != NULL;
}

/* path:line  quote, and why below it */
static void place(FILE *f, const json_t *item)
{
	const char *path = json_get_str(item, "path"), *quote = json_str(item, "quote");
	const char *why = json_get_str(item, "why");
	int64_t line = json_get_int(item, "line", 0);

	fputs("  ", f);
	cut(f, path != NULL ? path : json_str(item, "url"));
	if (path != NULL && line > 0)
		fprintf(f, ":%" PRId64, line);
	if (quote[0] != '\0') {
		fputs("  ", f);
		cut(f, quote);
	}
	fputc('\n', f);
	if (why != NULL && why[0] != '\0') {
		fputs("      ", f);
		cut(f, why);
		fputc('\n', f);
	}
}

static void value(FILE *f, const json_t *v)
{
	char *text =
		json_is_string(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	if (json_is_string(v))
		cut(f, json_string_value(v));
	else if (text != NULL)
		cut(f, text);
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
		if (has_place(item)) {
			place(f, item);
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
		snprintf(title, sizeof(title), "%s", format_role(key).text);
		heading(f, title);
		items(f, v);
		return;
	}
	fputs("  ", f);
	cut(f, key);
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
		m, i, item) if (has_place(item) && same_place(item, citation)) return true;
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
		place(f, item);
	}
}

static void caveats(FILE *f, const json_t *result)
{
	const json_t *list = json_object_get(result, "caveats");

	if (json_is_string(list) && json_string_length(list) > 0) {
		heading(f, "Caveats");
		fputs("  - ", f);
		value(f, list);
	} else if (json_array_size(list) > 0) {
		heading(f, "Caveats");
		items(f, list);
	}
	if (json_get_bool(result, "unverified", false))
		fputs("  - the run did not submit a result: this is its last text, unverified\n",
		      f);
	if (json_get_bool(result, "partial", false))
		fputs("  - partial: the run was stopped before it was done\n", f);
}

static void totals(FILE *f, const json_t *result)
{
	const json_t *confidence = json_object_get(result, "confidence");
	const char *id = json_str(result, "subagent_id");

	fprintf(f, "\n%s, %s tokens, %s, %" PRId64 " iteration%s",
		format_seconds(json_get_fixed(result, "duration_seconds", 3, 0)).text,
		format_tokens(json_get_int(result, "tokens_used", 0)).text,
		format_money(json_get_fixed(result, "cost_cents", 4, -1)).text,
		json_get_int(result, "iterations", 0),
		json_get_int(result, "iterations", 0) == 1 ? "" : "s");
	if (json_is_number(confidence))
		fprintf(f, ", confidence %.2f", json_number_value(confidence));
	fputs(", model ", f);
	cut(f, json_str(result, "model"));
	fprintf(f, "\nLog: ava logs %s, ava trace %s\n", id, id);
}

void show_result(FILE *f, const json_t *result)
{
	const char *summary = json_str(result, "summary"), *error = json_str(result, "error");

	if (error[0] != '\0') {
		fputs("Error: ", f);
		term_text(f, error, strlen(error), true);
		fputc('\n', f);
	}
	if (summary[0] != '\0' && strcmp(summary, error) != 0) {
		term_text(f, summary, strlen(summary), true);
		fputc('\n', f);
	}
	output(f, json_object_get(result, "output"));
	citations(f, result);
	caveats(f, result);
	totals(f, result);
}
