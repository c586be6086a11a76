/* ava status [S-id]: one run in full, or the overview: the daemon, its slots,
 * what today cost, each live run on a line, what waits for an answer. --watch
 * shows it anew as it changes: one screen on a terminal, elsewhere a line for
 * each change (with --json the whole object).
 *
 * Fails when there is no daemon to ask, or no such run (5). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/overview.h"
#include "cli/show.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

static struct {
	bool json, watch;
} o;

static const struct opt opts[] = {
	OPT("watch", 'w', FLAG, NULL, watch,
	    "go on showing it, anew as it changes, until Ctrl-C or the run's end"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object; with --watch one a line"),
};

struct status {
	const char *id;      /* NULL: the overview */
	struct overview all; /* of the overview */
	json_t *run;         /* of one run */
	json_t *seen;        /* id: what was printed of it; lines only */
	json_t *gone;        /* statuses of runs that have ended since; lines only */
};

static void forget(struct status *s)
{
	overview_free(&s->all);
	json_decref(s->run);
	json_decref(s->gone);
	s->run = s->gone = NULL;
}

static bool is_live(const struct status *s, const char *id)
{
	const json_t *run;
	size_t i;

	json_array_foreach(s->all.runs, i,
			   run) if (strcmp(json_str(run, "subagent_id"), id) == 0) return true;
	return false;
}

/* Those that were printed and are not live any more: how did they end? */
static int find_gone(struct status *s, struct client *c, struct ava_error *err)
{
	const char *id;
	json_t *text, *run;
	int rv = 0;

	s->gone = json_array();
	json_object_foreach(s->seen, id, text)
	{
		if (id[0] != 'S' || is_live(s, id))
			continue;
		rv = api_get(c, &run, err, "/runs/%s", id);
		if (rv != 0)
			return rv;
		json_array_append_new(s->gone, run);
	}
	return 0;
}

static int load(struct client *c, uint64_t *lsn, void *user, struct ava_error *err)
{
	struct status *s = user;
	json_t *health = NULL;
	int rv;

	forget(s);
	if (s->id != NULL) {
		rv = api_get(c, &health, err, "/health");
		if (rv == 0)
			rv = api_get(c, &s->run, err, "/runs/%s", s->id);
	} else {
		rv = overview_load(&s->all, c, err);
		health = json_incref(s->all.health);
	}
	*lsn = (uint64_t)MAX(json_get_int(json_object_get(health, "journal"), "lsn", 0), 0);
	json_decref(health);
	if (rv == 0 && s->id == NULL && s->seen != NULL)
		rv = find_gone(s, c, err);
	return rv;
}

static void draw(struct page *p, void *user)
{
	struct status *s = user;

	if (s->id != NULL)
		overview_run(s->run, p);
	else
		overview_print(&s->all, p);
}

static bool ended(void *user)
{
	const struct status *s = user;

	return s->id != NULL && json_str(s->run, "ended_at")[0] != '\0';
}

/* ---- lines: one for each change */

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

static void run_news(struct status *s, const json_t *run)
{
	const char *id = json_str(run, "subagent_id");
	char *words;

	if (!news(s, id, json_str(run, "status"), json_str(run, "current_activity")))
		return;
	words = overview_words(run, 0);
	printf("%s ", id);
	if (words != NULL)
		term_cut(stdout, words, strlen(words), term_width(stdout));
	putchar('\n');
	free(words);
}

static void proposal_news(struct status *s, const json_t *p)
{
	const char *id = json_str(p, "proposal_id"),
		   *task = json_str(json_object_get(p, "config"), "task");

	if (!news(s, id, "", ""))
		return;
	printf("%s waits for a yes or no: ", id);
	term_cut(stdout, task, strlen(task), term_width(stdout) > 0 ? 40 : 300);
	putchar('\n');
}

static void overview_lines(struct status *s)
{
	struct page p = {.f = stdout, .columns = term_width(stdout), .end = "\n"};
	const json_t *v;
	size_t i;
	bool first = s->seen == NULL;

	if (first) {
		overview_print(&s->all, &p);
		s->seen = json_object();
	}
	json_array_foreach(s->all.runs, i, v)
	{
		if (first)
			news(s, json_str(v, "subagent_id"), json_str(v, "status"),
			     json_str(v, "current_activity"));
		else
			run_news(s, v);
	}
	json_array_foreach(s->all.proposals, i, v)
	{
		if (first)
			news(s, json_str(v, "proposal_id"), "", "");
		else
			proposal_news(s, v);
	}
	json_array_foreach(s->gone, i, v)
	{
		run_news(s, v);
		json_object_del(s->seen, json_str(v, "subagent_id"));
	}
}

static void lines(void *user)
{
	struct status *s = user;
	struct page p = {.f = stdout, .columns = term_width(stdout), .end = "\n"};
	json_t *both;

	if (o.json) {
		both = s->id != NULL ? json_incref(s->run) : overview_json(&s->all);
		show_json(stdout, both);
		json_decref(both);
	} else if (s->id == NULL) {
		overview_lines(s);
	} else if (s->seen == NULL) {
		overview_run(s->run, &p);
		s->seen = json_object();
		news(s, s->id, json_str(s->run, "status"), json_str(s->run, "current_activity"));
	} else {
		run_news(s, s->run);
	}
}

/* ---- once */

static int once(struct status *s, struct client *c)
{
	struct page p = {.f = stdout, .columns = term_width(stdout), .end = "\n"};
	struct ava_error err;
	uint64_t lsn;

	if (load(c, &lsn, s, &err) != 0)
		return cli_fail(&err);
	if (o.json)
		lines(s);
	else
		draw(&p, s);
	return CLI_DONE;
}

static int status_run(int argc, char **argv)
{
	struct status s = {.id = argc > 0 ? argv[0] : NULL};
	const struct watch w = {.load = load,
				.draw = draw,
				.lines = lines,
				.ended = ended,
				.plain = o.json,
				.user = &s};
	struct ava_error err;
	struct client *c;
	int code;

	if (argc > 0 && cli_check_run_id(argv[0]) != CLI_DONE)
		return CLI_USAGE;
	if (api_open(API_START, &c, &err) != 0)
		return cli_fail(&err);
	code = o.watch ? watch_run(&w, &c) : once(&s, c);
	forget(&s);
	json_decref(s.seen);
	client_close(c);
	return code;
}

const struct command cmd_status =
	COMMAND("status", "[S-id]", 0, 1, "show one run, or the daemon and all live runs", NULL,
		OPTIONS(opts), status_run);
