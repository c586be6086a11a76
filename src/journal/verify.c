/* Verifying a data root; see verify.h.
 *
 * First the chain of Seals is followed through the daily logs, which gives
 * each sealed file and the digests it had; then two threads read the files,
 * the largest first; then everything found is told in the order of names.
 * What is there but was never sealed is looked at too. ava_log_verify and
 * ava_log_head of ava.h are here as well. */
#include "journal/verify.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"
#include "journal/read_root.h"
#include "journal/verify_state.h"

#define THREADS_MAX 16
#define ROOT_MAX    4096

/* ---- files */

struct verify_file *verify_file_get(struct verify *v, const char *path)
{
	struct verify_file *f = strmap_get(&v->by_path, path);

	if (f != NULL)
		return f;
	if (v->nfiles == v->cap) {
		size_t cap = v->cap > 0 ? v->cap * 2 : 64;
		struct verify_file **more = realloc(v->files, cap * sizeof(struct verify_file *));

		if (more == NULL)
			return NULL;
		v->files = more;
		v->cap = cap;
	}
	f = calloc(1, sizeof(*f) + strlen(path) + 1);
	if (f == NULL)
		return NULL;
	f->disk = UINT64_MAX;
	memcpy(f->path, path, strlen(path) + 1);
	if (strmap_put(&v->by_path, f->path, f) != 0) {
		free(f);
		return NULL;
	}
	v->files[v->nfiles++] = f;
	return f;
}

int verify_file_item(struct verify_file *f, const struct verify_item *item)
{
	if (f->n == f->cap) {
		size_t cap = f->cap > 0 ? f->cap * 2 : 2;
		struct verify_item *more = realloc(f->items, cap * sizeof(*more));

		if (more == NULL)
			return AVA_ENOMEM;
		f->items = more;
		f->cap = cap;
	}
	f->items[f->n++] = *item;
	return 0;
}

static void file_free(struct verify_file *f)
{
	for (size_t i = 0; i < f->nfound; i++)
		free(f->found[i]);
	free(f->found);
	free(f->items);
	free(f);
}

static void verify_fini(struct verify *v)
{
	for (size_t i = 0; i < v->nfiles; i++)
		file_free(v->files[i]);
	free(v->files);
	strmap_fini(&v->by_path);
	seal_names_fini(&v->days);
	files_close(&v->rootfd);
}

/* ---- what is there */

/* "2026-11-21.10.jsonl" stands behind "2026-11-21.2.jsonl". */
static int by_day(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int order = strncmp(x, y, 10);
	unsigned long i = strlen(x) > 11 ? strtoul(x + 11, NULL, 10) : 0,
		      k = strlen(y) > 11 ? strtoul(y + 11, NULL, 10) : 0;

	return order != 0 ? order : i != k ? (i > k) - (i < k) : strcmp(x, y);
}

static int verify_init(struct verify *v, struct ava_error *err)
{
	int rv;

	strmap_init(&v->by_path);
	*v->report = (struct verify_report){0};
	v->rootfd = read_open_root(v->o->root, err);
	if (v->rootfd < 0)
		return v->rootfd;
	rv = seal_names_list(&v->days, v->rootfd, "logs/ava", ".jsonl", err);
	if (rv == 0 && v->days.n > 0)
		qsort(v->days.names, v->days.n, sizeof(v->days.names[0]), by_day);
	return rv;
}

static int add_folder(struct verify *v, const char *dir, const char *ending, const char *behind,
		      struct ava_error *err)
{
	struct seal_names names = {0};
	char path[FILES_BUF];
	int rv = seal_names_list(&names, v->rootfd, dir, ending, err);

	for (size_t i = 0; rv == 0 && i < names.n; i++) {
		snprintf(path, sizeof(path), "%s/%s%s", dir, names.names[i], behind);
		if (files_path_ok(path) && verify_file_get(v, path) == NULL)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
	}
	seal_names_fini(&names);
	return rv;
}

static int note_put_aside(struct verify *v, const char *dir, const char *ending,
			  struct ava_error *err)
{
	struct seal_names names = {0};
	struct verify_file *f;
	char path[FILES_BUF];
	int rv = seal_names_list(&names, v->rootfd, dir, ending, err);

	for (size_t i = 0; rv == 0 && i < names.n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names.names[i]);
		f = verify_file_get(v, path);
		if (f == NULL)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
		else
			verify_file_found(f, VERIFY_NOTE, 0, 0,
					  "a recovery put this aside; it is not sealed");
	}
	seal_names_fini(&names);
	return rv;
}

/* Everything that is to be sealed and what recoveries left. */
static int add_present(struct verify *v, struct ava_error *err)
{
	int rv = add_folder(v, "logs/subagents", ".jsonl", "", err);

	if (rv == 0)
		rv = add_folder(v, "runs", "", "/messages.jsonl", err);
	if (rv != 0)
		return rv;
	if (verify_file_get(v, "catalog.jsonl") == NULL)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	if (rv == 0)
		rv = note_put_aside(v, "logs/subagents", ".broken", err);
	if (rv == 0)
		rv = note_put_aside(v, "logs/ava", ".broken", err);
	if (rv == 0)
		rv = note_put_aside(v, "lost", "", err);
	return rv;
}

/* x.2.jsonl goes on where x.jsonl ended at a recovery. */
static bool is_part(const char *path)
{
	size_t len = strlen(path);
	const char *dot;

	if (len < 7 || strcmp(path + len - 6, ".jsonl") != 0)
		return false;
	dot = memrchr(path, '.', len - 6);
	return dot != NULL && strchr(dot, '/') == NULL && dot[1] >= '1' && dot[1] <= '9' &&
	       dot + 1 + strspn(dot + 1, "0123456789") == path + len - 6;
}

static bool wanted(const struct verify *v, const char *path)
{
	for (size_t i = 0; i < v->o->npaths; i++) {
		size_t len = strlen(v->o->paths[i]);

		if (strncmp(path, v->o->paths[i], len) == 0 &&
		    (path[len] == '\0' || path[len] == '/'))
			return true;
	}
	return v->o->npaths == 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp((*(struct verify_file *const *)a)->path,
		      (*(struct verify_file *const *)b)->path);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = (*(struct verify_file *const *)a)->disk + 1,
		 y = (*(struct verify_file *const *)b)->disk + 1;

	return (x < y) - (x > y);
}

static int by_item(const void *a, const void *b)
{
	const struct verify_item *x = a, *y = b;

	return x->size != y->size ? (x->size > y->size) - (x->size < y->size)
				  : (x->n > y->n) - (x->n < y->n);
}

/* Sizes, and only what was asked for. */
static int select_files(struct verify *v, struct ava_error *err)
{
	size_t kept = 0;
	struct stat st;

	for (size_t i = 0; i < v->nfiles; i++) {
		struct verify_file *f = v->files[i];

		if (f->rv != 0)
			return err_set(err, f->rv, "%s", f->err.text);
		if (f->disk == UINT64_MAX && sys->fstatat(v->rootfd, f->path, &st, 0) == 0)
			f->disk = (uint64_t)st.st_size;
		if (!wanted(v, f->path) || (f->disk == UINT64_MAX && f->n == 0 && f->nfound == 0)) {
			strmap_del(&v->by_path, f->path);
			file_free(f);
			continue;
		}
		if (f->n > 1)
			qsort(f->items, f->n, sizeof(f->items[0]), by_item);
		v->total += f->disk != UINT64_MAX && f->n > 0 ? f->disk : 0;
		v->files[kept++] = f;
	}
	v->nfiles = kept;
	if (kept == 0 && v->o->npaths > 0)
		return err_set(err, AVA_ENOENT, "%s: there is no such log below %s", v->o->paths[0],
			       v->o->root);
	return 0;
}

/* ---- threads */

static void *work(void *user)
{
	struct verify *v = user;
	size_t i;

	while ((i = atomic_fetch_add(&v->next, 1)) < v->nfiles) {
		struct verify_file *f = v->files[i];
		size_t len = strlen(f->path);

		if (strncmp(f->path, "lost/", 5) != 0 &&
		    (len < 7 || strcmp(f->path + len - 7, ".broken") != 0))
			verify_file_check(v, f);
		if (is_part(f->path) && f->disk != UINT64_MAX)
			verify_file_found(f, VERIFY_NOTE, 0, 0,
					  "a recovery made writing go on here");
	}
	return NULL;
}

static void check_files(struct verify *v)
{
	unsigned n = MIN(v->o->threads > 0 ? v->o->threads : 2, (unsigned)THREADS_MAX), started = 0;
	pthread_t threads[THREADS_MAX];

	qsort(v->files, v->nfiles, sizeof(struct verify_file *), by_size);
	/* With progress to be told this thread only looks on. */
	n -= v->o->progress == NULL;
	while (started < n && pthread_create(&threads[started], NULL, work, v) == 0)
		started++;
	while (v->o->progress != NULL && started > 0 && v->next < v->nfiles + started) {
		struct timespec t = {.tv_nsec = 100000000};

		if (v->next >= v->nfiles && v->total - v->done == 0)
			break;
		v->o->progress(v->done, v->total, v->o->user);
		nanosleep(&t, NULL);
	}
	work(v);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	qsort(v->files, v->nfiles, sizeof(struct verify_file *), by_path);
}

static int tell(struct verify *v, struct ava_error *err)
{
	struct verify_report *r = v->report;

	r->bytes = v->done;
	for (size_t i = 0; i < v->nfiles; i++) {
		struct verify_file *f = v->files[i];

		if (f->rv != 0)
			return err_set(err, f->rv, "%s", f->err.text);
		r->files += f->disk != UINT64_MAX;
		r->tails += f->tail > 0;
		r->tail_bytes += f->tail;
		for (size_t k = 0; k < f->nfound; k++) {
			r->broken += f->found[k]->f.kind == VERIFY_BROKEN;
			v->o->finding(&f->found[k]->f, v->o->user);
		}
	}
	return 0;
}

int verify_run(const struct verify_options *o, struct verify_report *report, struct ava_error *err)
{
	struct verify v = {.o = o, .report = report, .rootfd = -1};
	int rv = verify_init(&v, err);

	if (rv == 0)
		rv = verify_chain(&v, err);
	if (rv == 0)
		rv = add_present(&v, err);
	if (rv == 0)
		rv = select_files(&v, err);
	if (rv == 0) {
		check_files(&v);
		rv = tell(&v, err);
	}
	verify_fini(&v);
	return rv;
}

int verify_newest(const char *root, struct verify_report *report, struct ava_error *err)
{
	struct verify_options o = {.root = root};
	struct verify v = {.o = &o, .report = report, .rootfd = -1, .seals_only = true};
	int rv = verify_init(&v, err);

	if (rv == 0)
		rv = verify_chain(&v, err);
	verify_fini(&v);
	if (rv == 0 && report->newest.n == 0)
		rv = err_set(err, AVA_ENOENT, "nothing is sealed yet below %s", root);
	return rv;
}

/* ---- ava.h */

static void tell_finding(const struct verify_finding *f, void *user)
{
	const struct ava_verify *o = user;
	struct ava_finding out = {
		.path = f->path, .line = f->line, .offset = f->offset, .what = f->what};

	switch (f->kind) {
	case VERIFY_BROKEN:
		out.kind = AVA_BROKEN;
		break;
	case VERIFY_TAIL:
		out.kind = AVA_UNSEALED;
		break;
	case VERIFY_NOTE:
		out.kind = AVA_NOTE;
		break;
	}
	if (o->finding != NULL)
		o->finding(&out, o->user);
}

static void tell_progress(uint64_t done, uint64_t total, void *user)
{
	const struct ava_verify *o = user;

	o->progress(done, total, o->user);
}

static void put_head(struct ava_log_head *head, const struct verify_report *r)
{
	*head = (struct ava_log_head){.n = r->newest.n};
	if (head->n == 0)
		return;
	memcpy(head->hash, r->newest.hash, sizeof(head->hash));
	memcpy(head->key, r->newest.key, sizeof(head->key));
	memcpy(head->at, r->newest_at, sizeof(head->at));
}

static int root_of(const char *given, char out[ROOT_MAX], struct ava_error *err)
{
	if (given == NULL)
		return settings_data_root(out, ROOT_MAX, err);
	if (snprintf(out, ROOT_MAX, "%s", given) >= ROOT_MAX)
		return err_set(err, AVA_ETOOBIG, "the path of the data root is too long");
	return 0;
}

/* Ids of runs become the paths of their logs; `names` owns those. */
static int take_paths(const struct ava_verify *o, const char **paths, struct seal_names *names,
		      struct ava_error *err)
{
	char path[FILES_BUF];

	for (size_t i = 0; i < o->npaths; i++) {
		paths[i] = o->paths[i];
		if (!id_is_run(paths[i]))
			continue;
		snprintf(path, sizeof(path), "logs/subagents/%s.jsonl", paths[i]);
		if (seal_names_add(names, path) != 0)
			return err_set(err, AVA_ENOMEM, "out of memory");
		paths[i] = names->names[names->n - 1];
	}
	return 0;
}

int ava_log_verify(const struct ava_verify *o, struct ava_verified *out, struct ava_error *err)
{
	struct verify_options options = {.npaths = o->npaths, .threads = o->threads};
	const char **paths = calloc(o->npaths + 1, sizeof(*paths));
	struct seal_names names = {0};
	struct verify_head head = {0};
	char root[ROOT_MAX];
	struct verify_report r;
	int rv = paths == NULL ? err_set(err, AVA_ENOMEM, "out of memory") : 0;

	*out = (struct ava_verified){0};
	if (rv == 0)
		rv = root_of(o->root, root, err);
	if (rv == 0)
		rv = take_paths(o, paths, &names, err);
	if (rv != 0)
		goto end;
	options.root = root;
	options.paths = paths;
	options.finding = tell_finding;
	options.progress = o->progress != NULL ? tell_progress : NULL;
	options.user = (void *)o;
	if (o->head != NULL) {
		head.n = o->head->n;
		snprintf(head.hash, sizeof(head.hash), "%s", o->head->hash);
		options.head = &head;
	}
	rv = verify_run(&options, &r, err);
	if (rv != 0)
		goto end;
	*out = (struct ava_verified){.files = r.files,
				     .bytes = r.bytes,
				     .seals = r.seals,
				     .broken = r.broken,
				     .unsealed_files = r.tails,
				     .unsealed_bytes = r.tail_bytes};
	put_head(&out->newest, &r);
end:
	free(paths);
	seal_names_fini(&names);
	return rv;
}

int ava_log_head(const char *given, struct ava_log_head *head, struct ava_error *err)
{
	char root[ROOT_MAX];
	struct verify_report r;
	int rv = root_of(given, root, err);

	*head = (struct ava_log_head){0};
	if (rv == 0)
		rv = verify_newest(root, &r, err);
	if (rv == 0)
		put_head(head, &r);
	return rv;
}
