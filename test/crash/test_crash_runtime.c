/* A crash before every call of the whole runtime: runs are asked for, search,
 * read, answer and end, one is cancelled, a proposal waits; at each call to the
 * disk it is taken as a kill and as power cuts leave it. The runtime is opened
 * on what is left, does what is left to do, and its files are read by a reader
 * of this test's own: every run that was accepted is there and has ended once,
 * intents and results pair, numbers grow, nothing was put aside.
 *
 * AVA_SOAK=1: every cut at every call, else two of them in turn. */
#include "core_disk.h"

#include "codec/jscan.h"
#include "codec/json.h"

#define RUNS 4

static const char script[] =
	"{\"tool_calls\":[{\"name\":\"search_codebase\",\"args\":{\"pattern\":\"parse\"}},"
	"{\"name\":\"read_file\",\"args\":{\"path\":\"a.c\"}}]}\n"
	"{\"tool_calls\":[{\"name\":\"nonsense\",\"args\":{}}]}\n"
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":\"in a.c:1\","
	"\"confidence\":0.5}}]}\n";

static void on_cancel(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	(void)rv;
	(void)s;
	(void)err;
	(void)user;
}

/* ---- a reader of its own */

struct seen {
	char path[128];
	int lines, ends, infers, replies, calls, results;
	json_int_t lsn, seq;
	bool last_is_end;
};

static void read_line(struct seen *s, const char *line, size_t len)
{
	json_auto_t *e = json_parse(line, len, NULL);
	const char *type = json_get_str(e, "eventType");
	json_int_t lsn = json_get_int(e, "lsn", 0), seq = json_get_int(e, "seq", 0);

	if (type == NULL)
		fail_msg("%s: line %d is no event", s->path, s->lines + 1);
	if (lsn <= s->lsn || seq != s->seq + 1)
		fail_msg("%s: line %d: lsn %lld after %lld, seq %lld after %lld", s->path,
			 s->lines + 1, (long long)lsn, (long long)s->lsn, (long long)seq,
			 (long long)s->seq);
	s->lsn = lsn;
	s->seq = seq;
	s->lines++;
	s->last_is_end = strcmp(type, "SubagentComplete") == 0;
	s->ends += s->last_is_end;
	s->infers += strcmp(type, "InferStart") == 0;
	s->replies += strcmp(type, "InferEnd") == 0;
	s->calls += strcmp(type, "ToolCall") == 0;
	s->results += strcmp(type, "ToolResult") == 0;
}

static void read_log(const char *path, const char *bytes, size_t len, void *user)
{
	struct seen s = {0};
	size_t at = 0, n;
	const char *line;

	(void)user;
	if (strncmp(path, "/lost/", 6) == 0 || strstr(path, ".broken") != NULL)
		fail_msg("%s: something was put aside", path);
	if (strncmp(path, "/logs/", 6) != 0)
		return;
	snprintf(s.path, sizeof(s.path), "%s", path);
	while (jsonl_next(bytes, len, &at, &line, &n) == 1)
		read_line(&s, line, n);
	if (at != len)
		fail_msg("%s: an unfinished line", path);
	if (strncmp(path, "/logs/subagents/", 16) == 0 &&
	    (s.ends != 1 || !s.last_is_end || s.infers != s.replies || s.calls != s.results))
		fail_msg("%s: %d ends, %d calls of a model with %d replies, %d of tools with %d",
			 path, s.ends, s.infers, s.replies, s.calls, s.results);
}

static void check_accepted(struct memdisk *d, const struct world *w, int accepted)
{
	size_t len, catalog_len;
	const char *catalog = memdisk_read(d, "/catalog.jsonl", &catalog_len);

	for (int i = 0; i < accepted; i++) {
		char path[128], row[128];

		snprintf(path, sizeof(path), "/logs/subagents/%s.jsonl", w->ids[i]);
		if (memdisk_read(d, path, &len) == NULL)
			fail_msg("accepted run %s is lost", w->ids[i]);
		snprintf(path, sizeof(path), "/runs/%s/result.json", w->ids[i]);
		if (memdisk_read(d, path, &len) == NULL)
			fail_msg("accepted run %s has no result", w->ids[i]);
		snprintf(row, sizeof(row), "\"id\":\"%s\"", w->ids[i]);
		if (catalog == NULL || strstr(catalog, row) == NULL)
			fail_msg("accepted run %s is not in the catalog", w->ids[i]);
	}
}

/* ---- the test */

static void live(struct world *w, struct memdisk *d)
{
	core_begin(w, d);
	core_ask(w, "offline:/script.jsonl");
	core_ask(w, "offline");
	core_work_off(w);
	core_ask(w, "offline:/script.jsonl");
	ops_cancel(w->core, w->ids[2], NULL, NULL, on_cancel, NULL);
	core_work_off(w);
	core_ask(w, "offline:/script.jsonl");
	core_end(w);
}

static void crash_at(struct world *w, const struct film *f, size_t i, enum cut cut)
{
	struct memdisk *d = cut_disk(f->at[i].d, cut, i);

	core_begin(w, d);
	core_end(w);
	check_accepted(d, w, f->at[i].accepted);
	memdisk_walk(d, read_log, NULL);
	memdisk_free(d);
}

TEST(every_call)
{
	struct memdisk *d = memdisk_new();
	static struct world w;
	static struct film f = {.w = &w};
	long disks = 0;

	core_set_up(&w, d, "offline", script);
	memdisk_watch(d, film_on_call, &f);
	live(&w, d);
	memdisk_watch(d, NULL, NULL);
	memdisk_free(d);
	assert_int_equal(w.accepted, RUNS);
	for (size_t i = 0; i < f.n; i++)
		for (size_t cut = 0; cut < CUTS; cut++)
			if (getenv("AVA_SOAK") != NULL || cut % 3 == i % 3) {
				crash_at(&w, &f, i, (enum cut)cut);
				disks++;
			}
	print_message("figure runtime_points %zu\nfigure runtime_disks %ld\n", f.n, disks);
	assert_true(f.n > 100);
	film_fini(&f);
	core_tear_down(&w);
}
