/* The life of the runtime. core_open opens the journal (which recovers), the daily log, unfinished
 * runs of the catalog, and proposals that wait for their answer. Then the loop drives everything;
 * core_close commits pending writes and stops. The parts to open and close are the rows of one
 * table; none of them calls anything here. */
#include "ava/core.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/claude.h"
#include "ava/delivery.h"
#include "ava/far.h"
#include "ava/job.h"
#include "ava/memories.h"
#include "ava/otel.h"
#include "ava/prune.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "codec/json.h"
#include "provider/learned.h"
#include "subagent/past.h"
#include "subagent/restart.h"
#include "tool/mcp.h"
#include "tool/pages.h"

/* ---- the parts */

/* The moment at which a part is opened. */
enum part_stage {
	PART_BOOT = 1, /* opened before LogOpen is written */
	PART_RUNS,     /* opened before runs that a stop left are taken up */
};

/* The steps of a part's life; NULL: not needed. */
struct life_part {
	enum part_stage stage; /* when `open` or `open_as` is called */
	int (*open)(struct core *c, struct ava_error *err);
	int (*open_as)(struct core *c, const struct core_options *o, struct ava_error *err);
	void (*restore)(struct core *c); /* takes up what a stop left, after the runs */
	bool (*idle)(const struct core *c);
	void (*quiesce)(struct core *c);       /* begins no more work from then on */
	bool (*written)(const struct core *c); /* true: nothing of the part waits for the journal */
	void (*close)(struct core *c);         /* called after the journal is closed */
};

static int part_open_pages(struct core *c, const struct core_options *o, struct ava_error *err)
{
	if (!o->pages)
		return 0;
	c->sup.pages = pages_new(c->loop, o->pages, err);
	return c->sup.pages ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

static int part_open_delivery(struct core *c, const struct core_options *o, struct ava_error *err)
{
	int rv = delivery_open(c, err);

	if (rv == 0)
		rv = notify_open(c, o->notify, err);
	if (rv == 0)
		rv = notify_desktop_open(c, err);
	if (rv == 0)
		rv = notify_url_open(c, o->notify_url, o->notify_format, o->notify_secret, err);
	if (rv == 0)
		rv = otel_open(c, o->otel, o->otel_headers, err);
	return rv == 0 ? delivery_begin(c, err) : rv;
}

static bool part_cluster_idle(const struct core *c)
{
	return !c->service.cluster;
}

static void part_quiesce_cluster(struct core *c)
{
	cluster_quiesce(c->service.cluster);
}

static bool part_runs_idle(const struct core *c)
{
	return c->sup.nlive == 0;
}

static void part_quiesce_runs(struct core *c)
{
	supervisor_quiesce(&c->sup);
}

static bool part_runs_written(const struct core *c)
{
	return supervisor_written(&c->sup);
}

static void part_close_runs(struct core *c)
{
	supervisor_close(&c->sup);
	supervisor_fini(&c->sup);
}

/* Every step goes down the table, except closing, which goes up. Runs and sessions have two rows:
 * they are quiesced after the memory, which turns the loop meanwhile, and closed last, since
 * proposals still answer their askers when they are freed. */
static const struct life_part parts[] = {
	{.close = part_close_runs},
	{.stage = PART_RUNS, .open = sessions_open, .close = sessions_close},
	{.stage = PART_BOOT,
	 .open = memories_open,
	 .idle = memories_idle,
	 .quiesce = memories_quiesce,
	 .close = memories_close},
	{.stage = PART_BOOT, .open_as = part_open_pages},
	{.stage = PART_BOOT, .open = core_load_trust},
	{.idle = part_runs_idle, .quiesce = part_quiesce_runs, .written = part_runs_written},
	{.stage = PART_BOOT,
	 .open_as = far_open,
	 .idle = part_cluster_idle,
	 .quiesce = part_quiesce_cluster,
	 .close = far_close},
	{.stage = PART_BOOT,
	 .open = orders_open,
	 .restore = orders_restore,
	 .idle = orders_idle,
	 .quiesce = orders_quiesce,
	 .written = orders_written,
	 .close = orders_close},
	{.restore = proposals_restore, .close = proposals_free},
	{.restore = patches_restore, .close = patches_close},
	{.stage = PART_RUNS,
	 .open = budgets_open,
	 .restore = budgets_restore,
	 .quiesce = budgets_close,
	 .close = budgets_close},
	{.restore = sessions_resume,
	 .idle = sessions_idle,
	 .quiesce = sessions_quiesce,
	 .written = sessions_written},
	{.stage = PART_RUNS,
	 .open_as = part_open_delivery,
	 .idle = delivery_idle,
	 .quiesce = delivery_quiesce,
	 .close = delivery_close},
	{.stage = PART_RUNS,
	 .open_as = otel_metrics_open,
	 .quiesce = otel_metrics_close,
	 .close = otel_metrics_close},
	{.quiesce = claude_close},
	{.stage = PART_BOOT, .open = seals_open, .restore = seals_restore, .close = seals_free},
};

static int parts_open(struct core *c, const struct core_options *o, enum part_stage stage,
		      struct ava_error *err)
{
	int rv = 0;

	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(parts); i++) {
		const struct life_part *p = &parts[i];

		if (p->stage == stage)
			rv = p->open ? p->open(c, err) : p->open_as(c, o, err);
	}
	return rv;
}

static bool parts_written(const struct core *c)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].written && !parts[i].written(c))
			return false;
	return true;
}

/* ---- problems with runs at the start */

#define PROBLEMS_MAX 200 /* problems listed in the event; avad.log has all */

struct taking_up {
	struct core *core;
	struct buf problems; /* JSON objects, joined by commas */
	unsigned n;
};

static void remember_row(const char *request_id, const char *run, const char *trace,
			 int64_t spawned_ms, void *user)
{
	struct taking_up *t = user;

	core_remember(t->core, request_id, spawned_ms, "", run, trace);
}

static int part_hold_run(const struct catalog_row *row, void *user)
{
	return cluster_hold(((struct taking_up *)user)->core->service.cluster, row);
}

static void restart_problem(const char *path, const char *sentence, void *user)
{
	struct taking_up *t = user;
	struct jw w;

	core_log(t->core, "%s: %s", path, sentence);
	if (t->n++ >= PROBLEMS_MAX)
		return;
	if (t->problems.len)
		buf_addc(&t->problems, ',');
	jw_init(&w, &t->problems);
	jw_object(&w, NULL);
	jw_str(&w, "path", path);
	jw_str(&w, "problem", sentence);
	jw_int(&w, "lostBytes", 0);
	jw_null(&w, "continuesIn");
	jw_end(&w);
}

/* ---- events about the start */

static void boot_written(int rv, void *user)
{
	if (rv != 0)
		core_log(user, "the start could not be recorded: %s", ava_strerror(rv));
}

static void boot_commit(struct core *c, struct draft *d)
{
	int rv = draft_commit(d, JOURNAL_NOW, boot_written, c, NULL);

	if (rv != 0)
		boot_written(rv, c);
}

static void add_report(struct jw *w, const struct journal_recovery *r)
{
	jw_int(w, "redoneBatches", (int64_t)r->redone_batches);
	jw_int(w, "redoneBytes", (int64_t)r->redone_bytes);
	jw_int(w, "tornBytes", (int64_t)r->torn_bytes);
	jw_int(w, "abortedBatches", (int64_t)r->aborted_batches);
	jw_int(w, "damagedBatches", (int64_t)r->damaged_batches);
	jw_int(w, "lostBytes", (int64_t)r->lost_bytes);
	jw_raw(w, "problems", r->problems ? r->problems : "[]",
	       r->problems ? strlen(r->problems) : 2);
	jw_end(w);
}

static void write_recovered(struct core *c, struct draft *d, const char *cause,
			    const struct journal_recovery *r)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 1u << 20);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "cause", cause);
	add_report(&w, r);
	core_event(c, d, EVENT_Recovered, "", "", &b);
}

/* LogOpen, and Recovered when there was something to recover. */
static void write_boot(struct core *c)
{
	struct draft *d = draft_new(&c->book);
	char path[LOGBOOK_PATH];
	struct stat st;
	struct buf b;
	struct jw w;

	if (!d)
		return;
	snprintf(path, sizeof(path), "logs/ava/%s.jsonl", c->book.day);
	if (sys->fstatat(c->root_fd, path, &st, 0) != 0)
		st.st_size = 0;
	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_bool(&w, "clean", c->recovery.clean);
	jw_int(&w, "prevSize", st.st_size);
	jw_str(&w, "version", ava_version());
	jw_int(&w, "pid", getpid());
	jw_end(&w);
	core_event(c, d, EVENT_LogOpen, "", "", &b);
	if (!c->recovery.clean || c->recovery.nproblems > 0)
		write_recovered(c, d,
				c->recovery.clean ? "files are not as they were left"
						  : "the last stop was not orderly",
				&c->recovery);
	boot_commit(c, d);
}

/* Problems with runs go in a second Recovered, behind the journal's. */
static void write_problems(struct taking_up *t)
{
	struct core *c = t->core;
	struct draft *d = t->n > 0 ? draft_new(&c->book) : NULL;
	struct journal_recovery r = {.clean = true};
	struct buf list;

	if (d) {
		buf_init(&list, 1u << 20);
		buf_addf(&list, "[%s]", buf_check(&t->problems) == 0 ? t->problems.data : "");
		r.problems = buf_check(&list) == 0 ? list.data : NULL;
		write_recovered(c, d, "files are not as they were left", &r);
		buf_fini(&list);
		boot_commit(c, d);
	}
	buf_fini(&t->problems);
}

/* Takes up unfinished runs, then restores the parts. */
static int core_take_up(struct core *c, const struct core_options *o, struct ava_error *err)
{
	struct taking_up t = {.core = c};
	struct restart_hooks hooks = {.request = remember_row,
				      .problem = restart_problem,
				      .hold = c->service.cluster ? part_hold_run : NULL,
				      .user = &t,
				      .amiss = c->recovery.nproblems > 0 || c->book.behind,
				      .rested = c->recovery.clean};
	int rv;

	buf_init(&t.problems, 512u << 10);
	if (c->book.behind)
		restart_problem("wal", "was removed or is older than the logs: their numbers go on",
				&t);
	rv = parts_open(c, o, PART_RUNS, err);
	if (rv == 0)
		rv = restart_runs(&c->sup, &hooks, err);
	write_problems(&t);
	if (rv == 0) {
		c->sup.took_up = true;
		copying_sweep(&c->sup);
		for (size_t i = 0; i < ARRAY_LEN(parts); i++)
			if (parts[i].restore)
				parts[i].restore(c);
	}
	return rv;
}

/* ---- life */

static void core_drain(struct os_task *t)
{
	struct core *c = CONTAINER_OF(t, struct core, drain);

	if (c->journal) /* NULL: closed since the task was posted */
		journal_drain(c->journal);
}

static void journal_notify(void *user)
{
	struct core *c = user;

	os_post(c->loop, &c->drain);
}

/* Also runs a drain task that is queued; none is posted after this. */
static void close_journal(struct core *c)
{
	journal_close(c->journal);
	c->journal = NULL;
	while (c->drain.queued)
		os_loop_step(c->loop, 0);
}

static void core_free(struct core *c)
{
	while (!list_empty(&c->request_order))
		core_forget(c, LIST_FIRST(&c->request_order, struct request, node)->id);
	strmap_fini(&c->requests);
	strmap_fini(&c->proposals);
	nameset_fini(&c->proposal_names);
	if (c->root_fd >= 0)
		sys->close(c->root_fd);
	free(c->root);
	free(c->model);
	free(c);
}

/* Frees the core when it fails. */
static int open_journal(struct core *c, const struct core_options *o, struct ava_error *err)
{
	struct journal_options journal = {
		.root = c->root,
		.pace_us = c->settings.journal_pace_us,
		.segment_bytes = o->segment_bytes > 0 ? o->segment_bytes : 16u << 20,
		.checkpoint_bytes = (uint64_t)c->settings.journal_checkpoint_mb << 20,
		.checkpoint_ms = c->settings.journal_checkpoint_s * 1000,
		.ballast_mb = (unsigned)c->settings.disk_ballast_mb,
		.notify = journal_notify,
		.user = c,
	};
	int rv = journal_open(&c->journal, &journal, &c->recovery, err);

	/* A failed removal of pruned files does not stop the start; the next start tries again. */
	if (rv == 0 && prune_away_finish(c->root_fd, err) != 0)
		core_log(c, "%s", err->text);
	if (rv == 0 &&
	    (rv = logbook_open(&c->book, c->journal, c->loop, c->redact, c->root_fd, err)) != 0)
		close_journal(c);
	if (rv != 0)
		core_free(c);
	return rv;
}

static int core_alloc(struct core **out, const struct core_options *o, struct ava_error *err)
{
	struct core *c = calloc(1, sizeof(*c));
	int rv = 0;

	if (!c)
		return err_set(err, AVA_ENOMEM, "out of memory");
	c->root_fd = -1;
	c->loop = o->loop;
	c->settings = *o->settings;
	c->redact = o->redact;
	c->log = o->log;
	c->log_user = o->log_user;
	c->started_ms = clock_mono_ms();
	list_init(&c->proposal_order);
	list_init(&c->request_order);
	list_init(&c->sessions);
	list_init(&c->talks);
	list_init(&c->resumings);
	list_init(&c->steerings);
	list_init(&c->watches);
	list_init(&c->patches);
	list_init(&c->waits);
	strmap_init(&c->session_by_id);
	strmap_init(&c->proposals);
	strmap_init(&c->requests);
	os_task_init(&c->drain, core_drain);
	c->root = strdup(o->root);
	c->model = o->model ? strdup(o->model) : NULL;
	if (!c->root || (o->model && !c->model))
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	else
		c->root_fd = sys->openat(AT_FDCWD, c->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (rv == 0 && c->root_fd < 0)
		rv = err_sys(err, "data root %s", c->root);
	if (rv != 0) {
		core_free(c);
		return rv;
	}
	*out = c;
	return 0;
}

/* Finds the folders that no tool may read: the data root and the config folder. */
static int find_own_folders(struct core *c)
{
	char path[4096];

	c->sup.keep_out[0] = realpath(c->root, NULL);
	if (settings_config_path("", path, sizeof(path), NULL) == 0) {
		path[strlen(path) - 1] = '\0'; /* cuts the slash at the end */
		c->sup.keep_out[1] = realpath(path, NULL);
		if (!c->sup.keep_out[1]) /* the folder does not exist yet */
			c->sup.keep_out[1] = strdup(path);
	}
	return c->sup.keep_out[0] ? 0 : AVA_ENOMEM;
}

int core_open(struct core **out, const struct core_options *o, struct ava_error *err)
{
	struct core *c = NULL;
	int rv = core_alloc(&c, o, err);

	if (rv == 0 && learned_load(c->root_fd, err) != 0)
		core_log(c, "%s", err->text);
	if (rv == 0)
		rv = open_journal(c, o, err);
	if (rv != 0)
		return rv;
	rv = supervisor_init(&c->sup, c->loop, &c->book, &c->settings);
	c->sup.mcp = o->mcp;
	c->sup.quotes.unboxed = c->settings.sandbox_required == 0;
	c->sup.quotes.keep_out = (const char *const *)c->sup.keep_out;
	if (rv == 0)
		rv = find_own_folders(c);
	if (rv != 0)
		err_set(err, rv, "out of memory");
	else
		rv = parts_open(c, o, PART_BOOT, err);
	if (rv == 0) {
		write_boot(c);
		rv = core_take_up(c, o, err);
	}
	if (rv == 0)
		*out = c;
	else
		core_close(c);
	return rv;
}

/* Takes up no runs, so that a clean root stays as it is, to the byte. */
int core_open_bare(struct core **out, const struct core_options *o, struct ava_error *err)
{
	struct core *c = NULL;
	int rv = core_alloc(&c, o, err);

	if (rv == 0)
		rv = open_journal(c, o, err);
	if (rv != 0)
		return rv;
	if (!c->recovery.clean || c->recovery.nproblems > 0)
		write_boot(c);
	*out = c;
	return 0;
}

void core_close_bare(struct core *c)
{
	journal_sync(c->journal);
	c->book.closed = true;
	close_journal(c);
	logbook_close(&c->book);
	core_free(c);
}

int core_recover(const struct core_options *o, struct buf *report, struct ava_error *err)
{
	struct core *c;
	struct jw w;
	int rv = core_open_bare(&c, o, err);

	if (rv != 0)
		return rv;
	jw_init(&w, report);
	jw_object(&w, NULL);
	jw_bool(&w, "clean", c->recovery.clean);
	add_report(&w, &c->recovery);
	core_close_bare(c);
	return 0;
}

void core_hold(struct core *c)
{
	c->sup.closing = true;
}

void core_close(struct core *c)
{
	uint64_t settled;

	mcp_client_quiesce(c->sup.mcp);
	jobs_end(c);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].quiesce)
			parts[i].quiesce(c);
	/* Drafts wait in the runs' outboxes, one behind another: each sync lets some go. */
	for (int i = 0; i < 100 && !parts_written(c); i++)
		journal_sync(c->journal);
	seals_close(c);
	settled = core_settled(c);
	c->book.closed = true;
	close_journal(c);
	past_keep(c->root_fd, &c->settings, 0, settled);
	for (size_t i = ARRAY_LEN(parts); i-- > 0;)
		if (parts[i].close)
			parts[i].close(c);
	logbook_close(&c->book);
	core_free(c);
}

bool core_idle(const struct core *c)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].idle && !parts[i].idle(c))
			return false;
	return c->npending == 0 && c->jobs.n == 0;
}
