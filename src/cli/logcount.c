/* ava logs --count; logcount.h. The counting is journal/count.c; here it is
 * shown: one number, a table, or JSON. What can fail: what counting may, and
 * memory for the table. */
#include "cli/logcount.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/table.h"
#include "cli/term.h"
#include "codec/json.h"
#include "journal/count.h"

#define JSON_MAX ((size_t)1 << 30)

const char *const logcount_keys[] = {"type", "agent", "model", "role", "day", NULL};

struct watcher {
	struct logprint *print;
	bool broken;
};

static void on_broken(const struct ava_error *err, void *user)
{
	struct watcher *w = user;

	logprint_clear(w->print);
	w->broken = true;
	cli_error(CLI_FAILED, "%s", err->text);
}

static void on_progress(uint64_t done, uint64_t total, void *user)
{
	logprint_progress(done, total, ((struct watcher *)user)->print);
}

static enum count_by key_of(const char *by)
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
	struct table t;
	char upper[16];
	int rv;

	table_init(&t, 5);
	snprintf(upper, sizeof(upper), "%s", by);
	for (char *p = upper; *p != '\0'; p++)
		*p = (char)(*p - ('a' - 'A'));
	table_add(&t, upper);
	table_add(&t, "EVENTS");
	table_add(&t, "TOKENS IN");
	table_add(&t, "TOKENS OUT");
	table_add(&t, "COST");
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

static void add_row(struct jw *w, const struct count_row *r, const char *by)
{
	jw_object(w, NULL);
	if (by != NULL)
		jw_str(w, by, r->key);
	jw_int(w, "events", (int64_t)r->events);
	jw_int(w, "inputTokens", (int64_t)r->input_tokens);
	jw_int(w, "outputTokens", (int64_t)r->output_tokens);
	jw_fixed(w, "costCents", (int64_t)r->cost_microusd, 4);
	jw_int(w, "uncostedCalls", (int64_t)r->uncosted);
	jw_end(w);
}

/* An object a line, so that jq and DuckDB take it as they take the log. */
static int print_json(const struct count *c, const char *by)
{
	static const struct count_row none = {.key = ""};
	struct buf b;
	struct jw w;
	int rv;

	buf_init(&b, JSON_MAX);
	for (size_t i = 0; i < c->n; i++) {
		jw_init(&w, &b);
		add_row(&w, &c->rows[i], by);
		buf_addc(&b, '\n');
	}
	if (c->n == 0 && by == NULL) {
		jw_init(&w, &b);
		add_row(&w, &none, by);
		buf_addc(&b, '\n');
	}
	rv = buf_check(&b);
	if (rv == 0)
		term_bytes(stdout, b.data != NULL ? b.data : "", b.len);
	buf_fini(&b);
	return rv;
}

int logcount_print(const struct ava_log_query *q, const char *by, struct logprint *p, bool *broken,
		   struct ava_error *err)
{
	struct watcher watcher = {.print = p};
	struct count_watch watch = {on_broken, on_progress, &watcher};
	struct count c;
	int rv = count_events(&c, q, key_of(by), &watch, err);

	logprint_clear(p);
	*broken = watcher.broken;
	if (rv != 0)
		return rv;
	if (p->form != LOGPRINT_TEXT)
		rv = print_json(&c, by);
	else if (by != NULL)
		rv = print_table(&c, by);
	else
		printf("%" PRIu64 "\n", c.n > 0 ? c.rows[0].events : 0);
	count_fini(&c);
	return rv == 0 ? 0 : err_set(err, rv, "no memory to show the count");
}
