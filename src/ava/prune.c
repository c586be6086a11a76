/* Pruning; see prune.h and doc/SEALS.md.
 *
 * The catalog says which runs ended before the cutoff; the logs are verified, since pruned files
 * cannot be verified again; then a Seal is committed that names each file to be removed with size
 * and hash, and the last Seal removed with them, where the chain begins from then on; then all
 * files are removed.
 *
 * They are removed one by one, and a crash between two would leave half a run that no later
 * pruning finds. So their names stand in seals/pruning first, one path a line (a folder ends with a
 * slash), and the next process that opens the root goes on. The list is removed when the removals
 * are durable. */
#include "ava/prune.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/patches.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "cluster/cluster.h"
#include "cluster/read.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "journal/files.h"
#include "journal/seal.h"
#include "journal/seal_read.h"
#include "provider/head.h"
#include "tool/copy.h"

#define PRUNED_MAX   (1u << 20) /* bytes of a list in one Seal */
#define FILES_ONCE   4000       /* files named in one Seal */
#define BROKEN_MAX   400
#define AWAY_PATH    "seals/pruning"
#define AWAY_MAX     ((size_t)1 << 30)
#define DEPTH_MAX    64
#define MESSAGES_MAX ((size_t)256 << 20)

struct prune {
	struct core *core;
	int64_t cutoff_ms;
	char cutoff_day[11], today[11];
	bool live;                     /* runs are at work, and their files stay */
	struct files_names runs, days; /* ids of runs; names below logs/ava */
	struct files_names files;      /* paths named in the Seal */
	struct files_names heads;      /* names below heads/ that nothing refers to */
	uint64_t bytes;
	struct seal_newest base; /* the last Seal that is removed */
};

/* ---- removing, also over a crash */

/* Notes durably what is removed: files, and runs (ids) with their folders; then removes it. Once it
 * is noted it will be removed, also after a crash. */
static int prune_away(int rootfd, const struct files_names *files, const struct files_names *runs,
		      struct ava_error *err)
{
	struct buf b;
	int rv;

	buf_init(&b, AWAY_MAX);
	for (size_t i = 0; i < files->n; i++)
		buf_addf(&b, "%s\n", files->names[i]);
	for (size_t i = 0; i < runs->n; i++)
		buf_addf(&b, "runs/%s/\n", runs->names[i]);
	rv = buf_check(&b);
	if (rv != 0)
		rv = err_set(err, rv, "no memory for the list of what goes");
	else if (files_replace(rootfd, AWAY_PATH, b.data ? b.data : "", b.len, true) != 0)
		rv = err_sys(err, AWAY_PATH);
	buf_fini(&b);
	return rv == 0 ? prune_away_finish(rootfd, err) : rv;
}

static int remove_tree(int rootfd, const char *path, unsigned depth, struct ava_error *err)
{
	struct files_names names = {0};
	char below[FILES_BUF];
	int rv = 0;

	if (sys->unlinkat(rootfd, path, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(err, "%s", path);
	if (depth == DEPTH_MAX)
		return err_set(err, AVA_ETOOBIG, "%s lies too deep to be removed", path);
	rv = files_list(&names, rootfd, path, "", err);
	for (size_t i = 0; rv == 0 && i < names.n; i++) {
		int len = snprintf(below, sizeof(below), "%s/%s", path, names.names[i]);

		rv = len < (int)sizeof(below)
			     ? remove_tree(rootfd, below, depth + 1, err)
			     : err_set(err, AVA_ETOOBIG, "%s has too long a name", path);
	}
	files_names_fini(&names);
	if (rv == 0 && sys->unlinkat(rootfd, path, AT_REMOVEDIR) != 0)
		rv = err_sys(err, "%s", path);
	return rv;
}

/* Removes the path of a line if it is one that pruning removes; a person may have edited the
 * list. */
static int prune_away_remove_one(int rootfd, const char *line, size_t len, struct ava_error *err)
{
	/* Made by commands of the run: deeper than any path may be, or without rights. */
	static const char *const made[] = {"runs/%s/work", "copies/%s", "copies/%s.new"};
	char path[FILES_BUF];
	bool folder = len > 0 && line[len - 1] == '/';

	if (len >= sizeof(path))
		return 0;
	snprintf(path, sizeof(path), "%.*s", (int)(len - folder), line);
	if (folder && (strncmp(path, "runs/", 5) != 0 || !id_is_run(path + 5)))
		return 0;
	for (size_t i = 0; folder && i < ARRAY_LEN(made); i++) {
		char below[FILES_BUF + 16];

		snprintf(below, sizeof(below), made[i], path + strlen("runs/"));
		copy_remove(rootfd, below);
	}
	if (folder)
		return remove_tree(rootfd, path, 0, err);
	if (!files_path_ok(path) ||
	    (strncmp(path, "logs/", 5) != 0 && strncmp(path, "runs/", 5) != 0))
		return 0;
	if (sys->unlinkat(rootfd, path, 0) != 0 && errno != ENOENT && errno != ENOTDIR)
		return err_sys(err, "%s", path);
	return 0;
}

static int prune_away_forget(int rootfd, struct ava_error *err)
{
	static const char *const dirs[] = {"logs/ava", "logs/subagents", "runs"};

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (files_sync_dir(rootfd, dirs[i]) != 0 && errno != ENOENT)
			return err_sys(err, "%s", dirs[i]);
	/* After a crash the list may be there again, but nothing of it is left to remove. */
	if (sys->unlinkat(rootfd, AWAY_PATH, 0) != 0 && errno != ENOENT)
		return err_sys(err, AWAY_PATH);
	return 0;
}

int prune_away_finish(int rootfd, struct ava_error *err)
{
	char *list = NULL;
	const char *line;
	size_t len = 0, at = 0, n;
	int rv = sys_read_file(rootfd, AWAY_PATH, AWAY_MAX, &list, &len, err);

	if (rv == AVA_ENOENT)
		return 0;
	while (rv == 0 && jsonl_next(list, len, &at, &line, &n) == 1)
		rv = prune_away_remove_one(rootfd, line, n, err);
	free(list);
	if (rv == 0)
		rv = prune_away_forget(rootfd, err);
	return rv == 0 ? 0 : err_wrap(err, rv, "pruning that was begun");
}

/* ---- what is removed */

struct runs {
	struct prune *p;
	struct strmap open; /* runs started before the cutoff and not ended */
};

struct begun {
	int64_t started_ms;
	char id[24];
};

static int prune_consider(struct catalog_row *row, void *user)
{
	struct runs *r = user;
	char path[LOGBOOK_PATH];
	struct begun *b;
	struct stat st;

	if (!row)
		return 0;
	if (row->kind == CATALOG_SPAWN) {
		b = row->started_ms < r->p->cutoff_ms ? calloc(1, sizeof(*b)) : NULL;
		if (!b)
			return 0;
		b->started_ms = row->started_ms;
		snprintf(b->id, sizeof(b->id), "%s", row->id);
		if (strmap_put(&r->open, b->id, b) != 0)
			free(b);
		return 0;
	}
	free(strmap_del(&r->open, row->id));
	logbook_run_path(row->id, path);
	if (!id_is_run(row->id) || row->ended_ms < 0 || row->ended_ms >= r->p->cutoff_ms ||
	    sys->fstatat(r->p->core->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0;
	return files_names_add(&r->p->runs, row->id);
}

static int find_runs(struct prune *p, struct ava_error *err)
{
	struct runs r = {.p = p};
	int64_t first_ms = p->cutoff_ms;
	struct begun *b;
	size_t at = 0;
	int rv;

	strmap_init(&r.open);
	rv = catalog_each(p->core->root_fd, NULL, NULL, prune_consider, &r, err);
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "out of memory");
	while ((b = strmap_next(&r.open, &at))) {
		first_ms = MIN(first_ms, b->started_ms);
		if (rv == 0 && !p->live)
			rv = err_set(err, AVA_EBUSY,
				     "run %s from before then is not over: cancel it or wait",
				     b->id);
		free(b);
	}
	strmap_fini(&r.open);
	clock_local_date(first_ms, p->cutoff_day);
	return rv;
}

/* Finds days before the cutoff's, never the newest: its numbers go on. */
static int find_days(struct prune *p, struct ava_error *err)
{
	struct files_names all = {0};
	char path[FILES_BUF];
	int rv = files_list(&all, p->core->root_fd, "logs/ava", ".jsonl", err);

	for (size_t i = 0; rv == 0 && i < all.n; i++) {
		const char *name = all.names[i];
		struct seal_newest newest = {0};

		if (strncmp(name, p->cutoff_day, 10) >= 0 || strncmp(name, p->today, 10) >= 0)
			continue;
		snprintf(path, sizeof(path), "logs/ava/%s", name);
		rv = seal_find_in(p->core->root_fd, path, &newest, err);
		if (rv == 1 && newest.n > p->base.n)
			p->base = newest;
		if (rv >= 0)
			rv = files_names_add(&p->days, name) || files_names_add(&p->files, path)
				     ? err_set(err, AVA_ENOMEM, "out of memory")
				     : 0;
	}
	files_names_fini(&all);
	return rv;
}

/* Finds the logs of the runs, in all their parts, and their messages. */
static int find_files(struct prune *p, struct ava_error *err)
{
	struct files_names all = {0};
	struct nameset ids = {0};
	char path[FILES_BUF], id[24];
	struct stat st;
	int rv = files_list(&all, p->core->root_fd, "logs/subagents", ".jsonl", err);

	for (size_t i = 0; rv == 0 && i < p->runs.n; i++) {
		rv = nameset_add(&ids, p->runs.names[i]);
		snprintf(path, sizeof(path), "runs/%s/messages.jsonl", p->runs.names[i]);
		if (rv == 0 && sys->fstatat(p->core->root_fd, path, &st, 0) == 0)
			rv = files_names_add(&p->files, path);
	}
	for (size_t i = 0; rv == 0 && i < all.n; i++) {
		snprintf(id, sizeof(id), "%.*s", (int)strcspn(all.names[i], "."), all.names[i]);
		snprintf(path, sizeof(path), "logs/subagents/%s", all.names[i]);
		if (nameset_has(&ids, id) && files_path_ok(path))
			rv = files_names_add(&p->files, path);
	}
	nameset_fini(&ids);
	files_names_fini(&all);
	return rv == AVA_ENOMEM ? err_set(err, rv, "out of memory") : rv;
}

/* ---- heads (provider/head.h) that no run and no conversation refers to */

/* A head that is referred to leaves the list; all do when the file cannot be read. */
static void prune_spare_heads(struct prune *p, const char *path)
{
	char *data = NULL;
	size_t len = 0, at = 0;
	struct slice name;
	int rv = logbook_read(p->core->root_fd, path, MESSAGES_MAX, &data, &len, NULL);

	while (rv == 0 && p->heads.n > 0 && head_next(data, len, &at, &name))
		for (size_t i = p->heads.n; i-- > 0;)
			if (strncmp(p->heads.names[i], name.s, name.len) == 0) {
				free(p->heads.names[i]);
				p->heads.names[i] = p->heads.names[--p->heads.n];
			}
	free(data);
	if (rv != 0 && rv != AVA_ENOENT)
		files_names_fini(&p->heads);
}

/* Lists the heads; those of the messages of all runs that stay, or of a folder of conversations,
 * leave the list. A folder that cannot be listed spares all. */
static void prune_find_heads(struct prune *p, const char *dir)
{
	struct files_names found = {0};
	struct nameset gone = {0};
	bool runs = strcmp(dir, "runs") == 0;
	char path[FILES_BUF];
	int rv = files_list(&found, p->core->root_fd, dir, runs ? "" : ".jsonl", NULL);

	for (size_t i = 0; rv == 0 && runs && i < p->runs.n; i++)
		rv = nameset_add(&gone, p->runs.names[i]);
	for (size_t i = 0; rv == 0 && i < found.n && p->heads.n > 0; i++) {
		/* Parts of a conversation count too: its base file may be gone. */
		if (runs ? nameset_has(&gone, found.names[i])
			 : !strstr(found.names[i], ".messages."))
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", dir, found.names[i],
			 runs ? "/messages.jsonl" : "");
		prune_spare_heads(p, path);
	}
	if (rv != 0)
		files_names_fini(&p->heads);
	nameset_fini(&gone);
	files_names_fini(&found);
}

static void find_heads(struct prune *p)
{
	struct files_names folders = {0};
	char path[FILES_BUF];

	if (files_list(&p->heads, p->core->root_fd, "heads", "", NULL) != 0 ||
	    files_list(&folders, p->core->root_fd, "sessions", "", NULL) != 0)
		files_names_fini(&p->heads);
	prune_find_heads(p, "runs");
	for (size_t i = 0; p->heads.n > 0 && i < folders.n; i++) {
		snprintf(path, sizeof(path), "sessions/%s", folders.names[i]);
		prune_find_heads(p, path);
	}
	files_names_fini(&folders);
}

/* Removes them, on the thread of the logbook: a head that it has committed meanwhile stays, and
 * what refers to another one from now on brings it again. */
static void prune_heads(struct prune *p)
{
	unsigned char hash[32];
	char path[FILES_BUF];

	for (size_t i = 0; i < p->heads.n; i++) {
		snprintf(path, sizeof(path), "heads/%s", p->heads.names[i]);
		if (hash_from_hex(p->heads.names[i], hash) &&
		    !nameset_has(&p->core->book.heads, path))
			(void)sys->unlinkat(p->core->root_fd, path, 0); /* else the next time */
	}
}

/* ---- check against the Seals */

static void prune_take_finding(const struct ava_finding *f, void *user)
{
	char *first = user;

	if (f->kind == AVA_BROKEN && !first[0])
		snprintf(first, BROKEN_MAX, "%s: %s", f->path, f->what);
}

static int check_sealed(struct prune *p, struct ava_error *err)
{
	char first[BROKEN_MAX] = "";
	struct ava_verify o = {.root = p->core->root, .finding = prune_take_finding, .user = first};
	struct ava_verified report;
	int rv = ava_log_verify(&o, &report, err);

	if (rv == 0 && report.broken > 0)
		rv = err_set(err, AVA_ECORRUPT,
			     "the logs are not as they were sealed, and pruning would hide it "
			     "(`ava logs verify` tells all): %s",
			     first);
	return rv;
}

/* ---- the Seal about pruned files */

static void prune_written(int rv, void *user)
{
	*(int *)user = rv;
}

/* Commits the Seals; frees the list. */
static int commit_seals(struct core *c, struct seal_list *list, char day[LOGBOOK_PATH],
			struct ava_error *err)
{
	struct draft *d = draft_new(&c->book);
	int answer = AVA_EIO, rv;

	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (size_t i = 0; i < list->n; i++)
		core_event(c, d, EVENT_Seal, "", "", &list->contents[i]);
	snprintf(day, LOGBOOK_PATH, "%s", d->nparts > 0 ? d->parts[0]->path : "");
	rv = draft_commit(d, JOURNAL_NOW, prune_written, &answer, err);
	if (rv != 0)
		return rv;
	journal_sync(c->journal);
	return answer == 0 ? 0 : err_set(err, answer, "%s", ava_strerror(answer));
}

static int seal_pruned(struct prune *p, struct sealer *s, size_t from, size_t to,
		       struct ava_error *err)
{
	static char catalog[] = CATALOG_PATH;
	char *paths[] = {catalog}, day[LOGBOOK_PATH];
	struct seal_list list = {0};
	struct buf b;
	int rv;

	buf_init(&b, PRUNED_MAX);
	rv = seal_gone_text(p->core->root_fd, &p->base, p->files.names + from, to - from, &b, err);
	if (rv == 0)
		rv = sealer_round(s, paths, 1, b.data, &list, err);
	if (rv == 0)
		rv = commit_seals(p->core, &list, day, err);
	if (rv == 0)
		rv = sealer_committed(s, day, err);
	seal_list_fini(&list);
	buf_fini(&b);
	return rv;
}

/* ---- the whole */

static void prune_write_names(struct jw *w, const char *key, const struct files_names *l)
{
	jw_array(w, key);
	for (size_t i = 0; i < l->n; i++)
		jw_str(w, NULL, l->names[i]);
	jw_end(w);
}

static void write_report(const struct prune *p, bool dry, struct buf *report)
{
	struct jw w;

	jw_init(&w, report);
	jw_object(&w, NULL);
	jw_bool(&w, "dryRun", dry);
	prune_write_names(&w, "runs", &p->runs);
	prune_write_names(&w, "days", &p->days);
	jw_int(&w, "files", (int64_t)p->files.n);
	jw_int(&w, "bytes", (int64_t)p->bytes);
	jw_end(&w);
}

/* Finds the files, adds up their size, and checks that they may go. */
static int find_all(struct prune *p, struct ava_error *err)
{
	struct stat st;
	int rv = find_runs(p, err);

	if (rv == 0)
		rv = find_days(p, err);
	if (rv == 0)
		rv = find_files(p, err);
	for (size_t i = 0; i < p->files.n; i++)
		if (sys->fstatat(p->core->root_fd, p->files.names[i], &st, 0) == 0)
			p->bytes += (uint64_t)st.st_size;
	return rv == 0 && p->files.n > 0 ? check_sealed(p, err) : rv;
}

static void prune_fini(struct prune *p)
{
	files_names_fini(&p->runs);
	files_names_fini(&p->days);
	files_names_fini(&p->files);
	files_names_fini(&p->heads);
}

int core_prune(const struct core_options *o, int64_t cutoff_ms, bool dry, struct buf *report,
	       struct ava_error *err)
{
	struct prune p = {.cutoff_ms = cutoff_ms};
	struct sealer *s = NULL;
	int rv = core_open_bare(&p.core, o, err);

	if (rv != 0)
		return rv;
	if (!dry && cluster_check_root(p.core->root_fd, false, err) != 0) {
		core_close_bare(p.core);
		return err_set(err, AVA_EBUSY,
			       "this data root is a member of a cluster, whose database may lack "
			       "what would go: start its daemon (ava serve), then prune");
	}
	memcpy(p.today, p.core->book.day, sizeof(p.today));
	journal_sync(p.core->journal);
	rv = find_all(&p, err);
	if (rv == 0 && !dry && p.files.n > 0) {
		rv = sealer_open(&s, p.core->root_fd, err);
		for (size_t at = 0; rv == 0 && at < p.files.n; at += FILES_ONCE)
			rv = seal_pruned(&p, s, at, MIN(at + FILES_ONCE, p.files.n), err);
		sealer_close(s, rv == 0);
		if (rv == 0)
			rv = prune_away(p.core->root_fd, &p.files, &p.runs, err);
	}
	if (rv == 0 && !dry) {
		find_heads(&p);
		prune_heads(&p);
	}
	core_close_bare(p.core);
	if (rv == 0)
		write_report(&p, dry, report);
	prune_fini(&p);
	return rv;
}

/* ---- copies of runs that other machines of a cluster have */

/* Those that nothing was added to since. They can be had again while the database has them, so
 * nothing is told of them. */
static void prune_copies(const struct prune *p)
{
	static const char logs[] = READER_ROOT "/logs/subagents", end[] = ".jsonl";
	struct files_names names = {0};
	struct ava_error err = {0};
	char path[FILES_BUF];
	struct stat st;

	(void)files_list(&names, p->core->root_fd, logs, end, &err);
	for (size_t i = 0; i < names.n; i++) {
		int n = snprintf(path, sizeof(path), "%s/%s", logs, names.names[i]);

		if (n >= (int)sizeof(path) || sys->fstatat(p->core->root_fd, path, &st, 0) != 0 ||
		    (int64_t)st.st_mtim.tv_sec * 1000 >= p->cutoff_ms)
			continue;
		(void)sys->unlinkat(p->core->root_fd, path, 0);
		snprintf(path, sizeof(path), READER_ROOT "/runs/%.*s",
			 (int)(strlen(names.names[i]) - strlen(end)), names.names[i]);
		(void)remove_tree(p->core->root_fd, path, 0, &err);
	}
	files_names_fini(&names);
}

/* ---- in a daemon at work: a thread finds, the sealer seals, a thread removes */

struct prune_work {
	struct job job;
	struct prune p;
	struct verb_reply *reply;
	struct seal_gone gone;
	struct buf *seals; /* the text of each Seal; texts and array are owned */
	size_t nseals;
	int64_t older_s;
	bool dry;
	int rv;
	struct ava_error err;
};

struct prune_args {
	int64_t older_s;
	bool dry;
};
const struct arg prune_args[] = {
	{"older_than_seconds", ARG_COUNT, offsetof(struct prune_args, older_s), 1,
	 INT64_C(100000) * 86400},
	{"dry_run", ARG_FLAG, offsetof(struct prune_args, dry)},
	{NULL},
};

static void pruning_end(struct prune_work *g)
{
	struct verb_answer a;
	struct buf report;

	if (!g->dry)
		seals_prune_over(g->p.core);
	buf_init(&report, 64u << 20);
	if (g->rv == 0 && !g->dry) {
		prune_heads(&g->p);
		cluster_prune(core_service(g->p.core)->cluster, g->older_s);
	}
	for (size_t i = 0; g->rv == 0 && !g->dry && i < g->p.runs.n; i++)
		patches_forget(g->p.core, g->p.runs.names[i]);
	if (g->rv == 0) {
		write_report(&g->p, g->dry, &report);
		g->rv = buf_check(&report);
	}
	if (g->rv != 0 && g->err.code == 0)
		err_set(&g->err, g->rv, "%s", ava_strerror(g->rv));
	if (verb_begin(&a, g->reply, g->rv, &g->err)) {
		jw_raw(&a.w, NULL, report.data, report.len);
		verb_send(&a, 200);
	}
	buf_fini(&report);
	for (size_t i = 0; i < g->nseals; i++)
		buf_fini(&g->seals[i]);
	free(g->seals);
	prune_fini(&g->p);
	free(g);
}

static void pruning_look(struct job *j)
{
	struct prune_work *g = CONTAINER_OF(j, struct prune_work, job);
	size_t n;

	g->rv = find_all(&g->p, &g->err);
	if (g->rv == 0 && !g->dry) {
		find_heads(&g->p);
		prune_copies(&g->p);
	}
	n = g->dry ? 0 : (g->p.files.n + FILES_ONCE - 1) / FILES_ONCE;
	/* Checkpoint first: the next start would write lines again that the journal still has. */
	if (g->rv == 0 && n > 0)
		g->rv = journal_checkpoint(g->p.core->journal, &g->err);
	g->seals = g->rv == 0 && n > 0 ? calloc(n, sizeof(*g->seals)) : NULL;
	if (g->rv == 0 && n > 0 && !g->seals)
		g->rv = AVA_ENOMEM;
	for (; g->rv == 0 && g->nseals < n; g->nseals++) {
		size_t from = g->nseals * FILES_ONCE;

		buf_init(&g->seals[g->nseals], PRUNED_MAX);
		g->rv = seal_gone_text(g->p.core->root_fd, &g->p.base, g->p.files.names + from,
				       MIN((size_t)FILES_ONCE, g->p.files.n - from),
				       &g->seals[g->nseals], &g->err);
	}
}

static void pruning_remove(struct job *j)
{
	struct prune_work *g = CONTAINER_OF(j, struct prune_work, job);

	g->rv = prune_away(g->p.core->root_fd, &g->p.files, &g->p.runs, &g->err);
}

static void pruning_removed(struct job *j)
{
	pruning_end(CONTAINER_OF(j, struct prune_work, job));
}

static void pruning_sealed(struct seal_gone *gone, int rv, const struct ava_error *err)
{
	struct prune_work *g = CONTAINER_OF(gone, struct prune_work, gone);

	if (err)
		g->err = *err;
	g->job.run = pruning_remove;
	g->job.done = pruning_removed;
	if (rv == 0)
		rv = job_begin_short(g->p.core, &g->job, &g->err);
	if (rv == 0)
		return; /* the job owns g->rv now */
	g->rv = rv;
	pruning_end(g);
}

static void pruning_looked(struct job *j)
{
	struct prune_work *g = CONTAINER_OF(j, struct prune_work, job);
	int rv = g->rv;

	g->gone = (struct seal_gone){.texts = g->seals, .n = g->nseals, .done = pruning_sealed};
	if (rv == 0 && g->nseals > 0) {
		rv = seals_go(&g->gone, g->p.core);
		if (rv == 0)
			return; /* pruning_sealed has g, which may be gone */
	}
	g->rv = rv;
	pruning_end(g);
}

void verb_prune(struct verb_call *v)
{
	struct prune_args args = {.older_s = v->core->settings.retention_days * 86400};
	struct ava_error err = {0};
	struct prune_work *g;
	int rv = 0;

	if (!verb_args(v, &args))
		return;
	g = calloc(1, sizeof(*g));
	if (!g)
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	else if (args.older_s <= 0)
		rv = err_set(&err, AVA_EINVAL, PRUNE_UNTOLD);
	else if (!args.dry && cluster_ready(core_service(v->core)->cluster, &err) != 0)
		rv = err_set(&err, AVA_EBUSY,
			     "the database of the cluster may lack what would go: prune when this "
			     "machine is a member again (ava cluster status)");
	else if (!args.dry)
		rv = seals_prune_claim(v->core, &err);
	if (rv == 0) {
		g->p.core = v->core;
		g->p.live = true;
		g->older_s = args.older_s;
		g->p.cutoff_ms = clock_wall_ms() - args.older_s * 1000;
		memcpy(g->p.today, v->core->book.day, sizeof(g->p.today));
		g->reply = v->reply;
		g->dry = args.dry;
		g->job.run = pruning_look;
		g->job.done = pruning_looked;
		rv = job_begin(v->core, &g->job, &err);
		if (rv != 0 && !args.dry)
			seals_prune_over(v->core);
	}
	if (rv == 0)
		return;
	free(g);
	verb_fail(v->reply, rv, &err);
}

/* ---- sealing at once: who hands a record over has just seen what belongs into it. */

struct sealing_now {
	struct seal_gone gone;
	struct buf no_text;
	struct verb_reply *reply;
};

static void sealed_now(struct seal_gone *gone, int rv, const struct ava_error *err)
{
	struct sealing_now *n = CONTAINER_OF(gone, struct sealing_now, gone);
	struct verb_answer a;

	if (verb_begin(&a, n->reply, rv, err)) {
		jw_object(&a.w, NULL);
		jw_bool(&a.w, "sealed", true);
		verb_send(&a, 200);
	}
	free(n);
}

void verb_seal(struct verb_call *v)
{
	struct sealing_now *n;
	int rv = AVA_ENOMEM;

	if (!verb_args(v, NULL))
		return;
	n = calloc(1, sizeof(*n));
	if (n) {
		n->reply = v->reply;
		n->gone = (struct seal_gone){.texts = &n->no_text, .n = 1, .done = sealed_now};
		rv = seals_go(&n->gone, v->core);
	}
	if (rv != 0) {
		free(n);
		verb_fail(v->reply, rv, NULL);
	}
}
