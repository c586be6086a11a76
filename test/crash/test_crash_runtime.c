/* A crash before every call of the whole runtime: runs are asked for, search,
 * read, answer and end, one is cancelled, a proposal waits; at each call to the
 * disk it is taken as a kill and as power cuts leave it. The runtime is opened
 * on what is left, does what is left to do, and its files are read by a reader
 * of this test's own: every run that was accepted is there and has ended once,
 * intents and results pair, numbers grow, nothing was put aside.
 *
 * AVA_SOAK=1: every cut at every call, else two of them in turn. */
#include "crash.h"

#include <sys/stat.h>

#include <ava.h>

#include "ava/core.h"
#include "ava/ops.h"
#include "base/settings.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "life.h"
#include "os/loop.h"

#define RUNS 4

struct world {
	char src[256];
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
};

static const char script[] =
	"{\"tool_calls\":[{\"name\":\"search_codebase\",\"args\":{\"pattern\":\"parse\"}},"
	"{\"name\":\"read_file\",\"args\":{\"path\":\"a.c\"}}]}\n"
	"{\"tool_calls\":[{\"name\":\"nonsense\",\"args\":{}}]}\n"
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":\"in a.c:1\","
	"\"confidence\":0.5}}]}\n";

/* ---- the runtime */

static void open_core(struct world *w, struct memdisk *d)
{
	struct core_options o = {.loop = w->loop,
				 .root = "/",
				 .settings = &w->settings,
				 .model = "offline",
				 .segment_bytes = 128 << 10};
	struct ava_error err = {0};

	memdisk_use(d);
	if (core_open(&w->core, &o, &err) != 0)
		fail_msg("core_open: %s", err.text);
}

static void close_core(struct world *w)
{
	core_close(w->core);
	w->core = NULL;
	memdisk_use(NULL);
}

static void work_off(struct world *w)
{
	for (int i = 0; !core_idle(w->core) && i < 20000; i++)
		os_loop_step(w->loop, 5);
	assert_true(core_idle(w->core));
}

/* ---- what is asked for */

struct told {
	char ids[RUNS][32];
	_Atomic int accepted; /* their first ids are whole */
	int refused;
};

static void on_spawn(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct told *t = user;
	int n = atomic_load(&t->accepted);

	(void)err;
	if (rv != 0) {
		t->refused++;
		return;
	}
	snprintf(t->ids[n], sizeof(t->ids[0]), "%s", s->id);
	atomic_store(&t->accepted, n + 1);
}

static void on_cancel(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	(void)rv;
	(void)s;
	(void)err;
	(void)user;
}

static void ask(struct world *w, const char *model, struct told *t)
{
	struct op_spawn s = {.role = "code_reviewer",
			     .task = "Where is parse_header defined and who calls it?",
			     .cwd = w->src,
			     .model = model,
			     .origin = "test",
			     .session_id = "s1",
			     .user_id = "tester",
			     .request_id = "",
			     .timeout_ms = AVA_DEFAULT,
			     .max_cost_microusd = AVA_DEFAULT,
			     .max_tokens = AVA_DEFAULT,
			     .max_iterations = AVA_DEFAULT};
	int before = atomic_load(&t->accepted);

	ops_spawn(w->core, &s, on_spawn, t);
	for (int i = 0; atomic_load(&t->accepted) == before && t->refused == 0 && i < 5000; i++)
		os_loop_step(w->loop, 5);
	assert_int_equal(atomic_load(&t->accepted), before + 1);
}

/* ---- points */

struct taken {
	struct memdisk *d;
	int accepted;
};

struct film {
	struct taken *at;
	size_t n, max;
	struct told *told;
};

static void on_call(struct memdisk *d, void *user)
{
	struct film *f = user;
	struct taken t = {.accepted = atomic_load(&f->told->accepted)};

	if (f->n == f->max)
		return;
	t.d = memdisk_snapshot(d);
	f->at[f->n++] = t;
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
	json_t *e = json_parse(line, len, NULL);
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
	json_decref(e);
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

static void check_accepted(struct memdisk *d, const struct told *t, int accepted)
{
	size_t len, catalog_len;
	const char *catalog = memdisk_read(d, "/catalog.jsonl", &catalog_len);

	for (int i = 0; i < accepted; i++) {
		char path[128], row[128];

		snprintf(path, sizeof(path), "/logs/subagents/%s.jsonl", t->ids[i]);
		if (memdisk_read(d, path, &len) == NULL)
			fail_msg("accepted run %s is lost", t->ids[i]);
		snprintf(path, sizeof(path), "/runs/%s/result.json", t->ids[i]);
		if (memdisk_read(d, path, &len) == NULL)
			fail_msg("accepted run %s has no result", t->ids[i]);
		snprintf(row, sizeof(row), "\"id\":\"%s\"", t->ids[i]);
		if (catalog == NULL || strstr(catalog, row) == NULL)
			fail_msg("accepted run %s is not in the catalog", t->ids[i]);
	}
}

/* ---- the test */

static void live(struct world *w, struct memdisk *d, struct told *t)
{
	open_core(w, d);
	ask(w, "offline:/script.jsonl", t);
	ask(w, "offline", t);
	work_off(w);
	ask(w, "offline:/script.jsonl", t);
	ops_cancel(w->core, t->ids[2], NULL, NULL, on_cancel, NULL);
	work_off(w);
	ask(w, "offline:/script.jsonl", t);
	work_off(w);
	close_core(w);
}

static void crash_at(struct world *w, const struct film *f, size_t i, enum cut cut)
{
	struct memdisk *d = cut_disk(f->at[i].d, cut, i);

	open_core(w, d);
	work_off(w);
	close_core(w);
	check_accepted(d, f->told, f->at[i].accepted);
	memdisk_walk(d, read_log, NULL);
	memdisk_free(d);
}

static void set_up(struct world *w, struct memdisk *d)
{
	const char *base = getenv("TMPDIR");
	char path[300];
	FILE *f;

	settings_load(&w->settings, NULL);
	w->settings.disk_free_min_mb = 0;
	w->loop = os_loop_new(NULL);
	assert_non_null(w->loop);
	snprintf(w->src, sizeof(w->src), "%s/ava-runtime.XXXXXX", base != NULL ? base : "/tmp");
	assert_non_null(mkdtemp(w->src));
	snprintf(path, sizeof(path), "%s/a.c", w->src);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("int parse_header(const char *s)\n{\n\treturn s[0] == 'H';\n}\n", f);
	fclose(f);
	memdisk_write(d, "/script.jsonl", script, strlen(script));
	memdisk_power_cut(d, memdisk_all, NULL);
}

static void tear_down(struct world *w, struct film *f)
{
	char path[300];

	for (size_t i = 0; i < f->n; i++)
		memdisk_free(f->at[i].d);
	free(f->at);
	os_loop_free(w->loop);
	snprintf(path, sizeof(path), "%s/a.c", w->src);
	unlink(path);
	rmdir(w->src);
}

TEST(every_call)
{
	struct memdisk *d = memdisk_new();
	struct told told = {0};
	struct film f = {.max = 20000, .told = &told};
	struct world w = {0};
	long disks = 0;

	f.at = calloc(f.max, sizeof(*f.at));
	assert_non_null(f.at);
	set_up(&w, d);
	memdisk_watch(d, on_call, &f);
	live(&w, d, &told);
	memdisk_watch(d, NULL, NULL);
	memdisk_free(d);
	assert_int_equal(told.accepted, RUNS);
	for (size_t i = 0; i < f.n; i++)
		for (size_t cut = 0; cut < CUTS; cut++)
			if (getenv("AVA_SOAK") != NULL || cut % 3 == i % 3) {
				crash_at(&w, &f, i, (enum cut)cut);
				disks++;
			}
	print_message("figure runtime_points %zu\nfigure runtime_disks %ld\n", f.n, disks);
	assert_true(f.n > 100);
	tear_down(&w, &f);
}
