/* Pruning; see prune.h and doc/SEALS.md.
 *
 * The catalog says which runs ended before; the logs are verified, since what
 * is pruned cannot be verified again; then a Seal is committed that names each
 * file that goes with its size and hash, and the last Seal that goes with it,
 * where the chain begins from then on; then the files are removed, all of them
 * also over a crash (prune_away.h). */
#include "ava/prune.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/prune_away.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "codec/json.h"
#include "journal/files.h"
#include "journal/seal.h"
#include "journal/seal_read.h"

#define PRUNED_MAX (1u << 20) /* of the list in one Seal */
#define FILES_ONCE 4000       /* named in one Seal */
#define BROKEN_MAX 400

struct prune {
	struct core *core;
	int64_t cutoff_ms;
	char cutoff_day[11];
	struct files_names runs, days; /* ids; names below logs/ava */
	struct files_names files;      /* paths that are named in the Seal */
	uint64_t bytes;
	struct seal_newest base; /* the last Seal that goes */
};

/* ---- what goes */

struct runs {
	struct prune *p;
	struct strmap open; /* begun before the cutoff, not ended */
};

static int consider(struct catalog_row *row, void *user)
{
	struct runs *r = user;
	char path[LOGBOOK_PATH], *id;
	struct stat st;

	if (!row)
		return 0;
	if (row->kind == CATALOG_SPAWN) {
		id = row->started_ms < r->p->cutoff_ms ? strdup(row->id) : NULL;
		if (id && strmap_put(&r->open, id, id) != 0)
			free(id);
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
	size_t at = 0;
	char *id;
	int rv;

	strmap_init(&r.open);
	rv = catalog_each(p->core->root_fd, NULL, consider, &r, err);
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "out of memory");
	while ((id = strmap_next(&r.open, &at))) {
		if (rv == 0)
			rv = err_set(err, AVA_EBUSY,
				     "run %s from before then is not over: cancel it or wait", id);
		free(id);
	}
	strmap_fini(&r.open);
	return rv;
}

/* Days before the cutoff's, never the newest: numbers go on from it. */
static int find_days(struct prune *p, struct ava_error *err)
{
	struct files_names all = {0};
	char path[FILES_BUF];
	int rv = files_list(&all, p->core->root_fd, "logs/ava", ".jsonl", err);

	for (size_t i = 0; rv == 0 && i < all.n; i++) {
		const char *name = all.names[i];
		struct seal_newest newest = {0};

		if (strncmp(name, p->cutoff_day, 10) >= 0 ||
		    strncmp(name, p->core->book.day, 10) >= 0)
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

/* The logs of the runs, in all their parts, and their messages. */
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

/* ---- still as it was sealed? */

static void take_finding(const struct ava_finding *f, void *user)
{
	char *first = user;

	if (f->kind == AVA_BROKEN && !first[0])
		snprintf(first, BROKEN_MAX, "%s: %s", f->path, f->what);
}

static int check_sealed(struct prune *p, struct ava_error *err)
{
	char first[BROKEN_MAX] = "";
	struct ava_verify o = {.root = p->core->root, .finding = take_finding, .user = first};
	struct ava_verified report;
	int rv = ava_log_verify(&o, &report, err);

	if (rv == 0 && report.broken > 0)
		rv = err_set(err, AVA_ECORRUPT,
			     "the logs are not as they were sealed, and pruning would hide it "
			     "(`ava logs verify` tells all): %s",
			     first);
	return rv;
}

/* ---- the Seal about it */

static int hash_file(int rootfd, const char *path, uint64_t *size, char hex[HASH_HEX_LEN + 1])
{
	unsigned char head[SEAL_HASH], buf[65536];
	int fd = files_open(rootfd, path, O_RDONLY);
	struct hash_sha256 h;
	ssize_t n = -1;

	hash_sha256_init(&h);
	*size = 0;
	while (fd >= 0 && (n = sys->pread(fd, buf, sizeof(buf), (off_t)*size)) > 0) {
		hash_sha256_add(&h, buf, (size_t)n);
		*size += (uint64_t)n;
	}
	files_close(&fd);
	hash_sha256_end(&h, head);
	hash_hex(head, SEAL_HASH, hex);
	return n == 0 ? 0 : AVA_EIO;
}

/* Files [from, to) of the list, as the object that stands in the Seal. */
static int write_pruned(struct prune *p, struct buf *b, size_t from, size_t to,
			struct ava_error *err)
{
	char hex[HASH_HEX_LEN + 1];
	uint64_t size;

	hash_hex(p->base.hash, SEAL_HASH, hex);
	buf_addf(b, "{\"upTo\":%llu,\"hash\":\"%s\",\"files\":[", (unsigned long long)p->base.n,
		 hex);
	for (size_t i = from; i < to; i++) {
		if (hash_file(p->core->root_fd, p->files.names[i], &size, hex) != 0)
			return err_set(err, AVA_EIO, "%s cannot be read", p->files.names[i]);
		buf_addf(b, "%s{\"path\":\"%s\",\"size\":%llu,\"head\":\"%s\"}",
			 i > from ? "," : "", p->files.names[i], (unsigned long long)size, hex);
	}
	buf_adds(b, "]}");
	return buf_check(b) == 0 ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

static void written(int rv, void *user)
{
	*(int *)user = rv;
}

/* The contents are freed. */
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
	rv = draft_commit(d, JOURNAL_NOW, written, &answer, err);
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
	rv = write_pruned(p, &b, from, to, err);
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

static void write_names(struct jw *w, const char *key, const struct files_names *l)
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
	write_names(&w, "runs", &p->runs);
	write_names(&w, "days", &p->days);
	jw_int(&w, "files", (int64_t)p->files.n);
	jw_int(&w, "bytes", (int64_t)p->bytes);
	jw_end(&w);
}

int core_prune(const struct core_options *o, int64_t cutoff_ms, bool dry, struct buf *report,
	       struct ava_error *err)
{
	struct prune p = {.cutoff_ms = cutoff_ms};
	struct sealer *s = NULL;
	struct stat st;
	int rv = core_open_bare(&p.core, o, err);

	if (rv != 0)
		return rv;
	clock_local_date(cutoff_ms, p.cutoff_day);
	journal_sync(p.core->journal);
	rv = find_runs(&p, err);
	if (rv == 0)
		rv = find_days(&p, err);
	if (rv == 0)
		rv = find_files(&p, err);
	for (size_t i = 0; i < p.files.n; i++)
		if (sys->fstatat(p.core->root_fd, p.files.names[i], &st, 0) == 0)
			p.bytes += (uint64_t)st.st_size;
	if (rv == 0 && p.files.n > 0)
		rv = check_sealed(&p, err);
	if (rv == 0 && !dry && p.files.n > 0) {
		rv = sealer_open(&s, p.core->root_fd, err);
		for (size_t at = 0; rv == 0 && at < p.files.n; at += FILES_ONCE)
			rv = seal_pruned(&p, s, at, MIN(at + FILES_ONCE, p.files.n), err);
		sealer_close(s, rv == 0);
		if (rv == 0)
			rv = prune_away_begin(p.core->root_fd, &p.files, &p.runs, err);
		if (rv == 0)
			rv = prune_away_finish(p.core->root_fd, err);
	}
	core_close_bare(p.core);
	if (rv == 0)
		write_report(&p, dry, report);
	files_names_fini(&p.runs);
	files_names_fini(&p.days);
	files_names_fini(&p.files);
	return rv;
}
