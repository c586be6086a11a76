/* The copy of the project is made for the first tool call that needs it; a run that never looks has
 * none. The folder on disk says whether there is one, so a restart has nothing to remember. When
 * the run has ended, in whatever way, its changes become a patch in the commit of its end; the copy
 * is removed behind that commit, never before.
 *
 * A run that goes on from another one begins with the changes of that one. What can fail: the
 * project is too large, the disk. Then each call that needs the copy is told so; an end without a
 * patch says so in its caveats, and the copy stays. */
#include "subagent/run.h"

#include <ava.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/patch.h"
#include "tool/copy.h"

#define PATCH_NAME "changes.patch"
#define LISTED_MAX 100 /* files of a patch that a result names */
#define KEPT       "copy_kept"
#define RESULT_MAX (16u << 20)

struct copying {
	struct os_work work;
	struct run *run;
	char *folder;
	atomic_bool stop;
	void (*ready)(struct run *r, const struct ava_error *err);
	struct ava_error err;
};

struct run_changes {
	struct copy_changes made;
	char path[LOGBOOK_PATH];
	bool there; /* the copy has changes, in the patch or left out of it */
	struct ava_error err;
};

static void patch_path(const char *id, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "runs/%s/artifacts/" PATCH_NAME, id);
}

void copying_travel_path(const char *id, char out[LOGBOOK_PATH])
{
	snprintf(out, LOGBOOK_PATH, "runs/%s/copy.patch", id);
}

bool copying_wanted(const struct run *r)
{
	return !r->place && r->spec->cwd[0] && r->tools.env.root &&
	       tool_granted(&r->tools.env, "rw");
}

/* `below`: "", or "/tree". Owned; NULL: out of memory. */
static char *copy_path(const struct run *r, const char *below)
{
	char *path = NULL;
	int n = asprintf(&path, "%s/copies/%s%s", r->tools.env.root, r->id.text, below);

	return n < 0 ? NULL : path;
}

/* ---- making */

static void making_free(struct copying *m)
{
	if (m)
		free(m->folder);
	free(m);
}

static void copying_make_work(struct os_work *w)
{
	struct copying *m = w->priv;
	const struct run *r = m->run;
	struct copy_wish wish = {.folder = m->folder,
				 .project = r->spec->cwd,
				 .keep_out = (const char *const *)r->sup->keep_out,
				 .stop = &m->stop};
	int root_fd = r->rec.outbox.lb->root_fd, rv;
	char path[LOGBOOK_PATH], *patch = NULL;

	copying_travel_path(r->id.text, path);
	rv = sys_read_file(root_fd, path, PATCH_MAX, &patch, &wish.patch_len, NULL);
	patch_path(r->spec->resumed_from, path);
	if (rv != 0 && r->spec->resumed_from[0])
		rv = sys_read_file(root_fd, path, PATCH_MAX, &patch, &wish.patch_len, NULL);
	if (rv == 0 && wish.patch_len > 0)
		wish.patch = patch;
	m->err.code = copy_make(&wish, &m->err);
	free(patch);
}

static void make_done(struct os_work *w)
{
	struct copying *m = w->priv;
	struct run *r = m->run;

	r->tools.copying = NULL;
	if (m->err.code == 0 || m->err.code == AVA_EEXIST) {
		r->tools.env.copy = r->tools.copy;
		r->tools.env.keep_out = NULL; /* the copy has nothing that must be hidden */
		if (r->tools.env.cwd_fd >= 0)
			close(r->tools.env.cwd_fd);
		r->tools.env.cwd_fd = -1;
	}
	m->ready(r, &m->err);
	making_free(m);
	r->busy--;
	r->tools.running--;
	run_tool_done(r);
	run_release(r);
}

void copying_make(struct run *r, void (*ready)(struct run *r, const struct ava_error *err))
{
	struct copying *m;
	struct ava_error err = {0};

	if (r->tools.copying)
		return;
	m = calloc(1, sizeof(*m));
	if (m)
		m->folder = copy_path(r, "");
	if (!r->tools.copy)
		r->tools.copy = copy_path(r, "/tree");
	if (!m || !m->folder || !r->tools.copy) {
		making_free(m);
		err_set(&err, AVA_ENOMEM, "out of memory");
		ready(r, &err);
		return;
	}
	m->run = r;
	m->ready = ready;
	m->work = (struct os_work){.work = copying_make_work,
				   .done = make_done,
				   .priv = m,
				   .owner = &r->tools.env,
				   .order = r->rec.log.row};
	r->tools.copying = m;
	r->busy++;
	r->tools.running++;
	os_work_start_foreign(r->sup->loop, &m->work);
}

void copying_stop(struct run *r)
{
	if (r->tools.copying)
		atomic_store(&r->tools.copying->stop, true);
}

/* ---- the changes */

struct run_changes *copying_look(const struct run *r)
{
	struct run_changes *c = calloc(1, sizeof(*c));
	char *path = copy_path(r, "");

	if (c && path)
		c->err.code = copy_changes(path, &c->made, &c->err);
	else if (c)
		err_set(&c->err, AVA_ENOMEM, "out of memory");
	if (c && c->err.code == AVA_ENOENT) /* no error: no copy was made */
		c->err.code = 0;
	else if (c)
		c->there = c->err.code == 0 && (c->made.files > 0 || c->made.nleft > 0);
	if (c)
		patch_path(r->id.text, c->path);
	free(path);
	return c;
}

void copying_free(struct run_changes *c)
{
	if (c)
		copy_changes_fini(&c->made);
	free(c);
}

json_t *copying_paths(const struct run_changes *c)
{
	json_t *list = json_array(), *left, *one;
	struct patch p = {0};
	size_t i;

	if (!c || !c->there)
		return list;
	if (c->made.patch.len > 0)
		(void)patch_read(&p, c->made.patch.data, c->made.patch.len, NULL);
	for (i = 0; i < p.n; i++)
		json_array_append_new(list, json_string(p.files[i].path));
	left = json_parse(c->made.left.data, c->made.left.len, NULL);
	json_array_foreach(left, i, one) json_array_append(list, json_object_get(one, "path"));
	json_decref(left);
	patch_fini(&p);
	return list;
}

const char *copying_failed(const struct run_changes *c)
{
	return c && c->err.code != 0 ? c->err.text : NULL;
}

size_t copying_files(const struct run_changes *c)
{
	return c && c->there ? c->made.files : 0;
}

void copying_put(struct run *r, struct draft *d, const struct run_changes *c)
{
	struct buf *b = c && c->there ? draft_part(d, DRAFT_PUT, c->path) : NULL;
	json_t *left, *one;
	size_t i;

	if (!b)
		return;
	/* A heading for people, which git passes over. The folder's name ends at a line break,
	 * which would begin a line of the patch. */
	left = json_parse(c->made.left.data, c->made.left.len, NULL);
	buf_addf(b,
		 "# What run %s proposes for %.*s\n# `ava apply %s` writes it there; `git apply` "
		 "reads it "
		 "too.\n",
		 r->id.text, (int)strcspn(r->spec->cwd, "\n"), r->spec->cwd, r->id.text);
	json_array_foreach(left, i, one)
		buf_addf(b, "# Not in it: %s (%s)\n", json_str(one, "path"), json_str(one, "why"));
	if (c->made.nleft > i)
		buf_addf(b, "# Not in it: %zu more\n", c->made.nleft - i);
	json_decref(left);
	buf_add(b, c->made.patch.data, c->made.patch.len);
	buf_addf(&r->tools.artifacts, "%s\"%s\"", r->tools.artifacts.len ? "," : "", c->path);
}

void copying_result(const struct run *r, const struct run_changes *c, struct jw *w)
{
	const struct copy_changes *made = c ? &c->made : NULL;
	struct patch p = {0};
	char path[LOGBOOK_PATH];
	size_t added = 0, removed = 0;

	if (copying_failed(c)) {
		snprintf(path, sizeof(path), COPY_TREE, r->id.text);
		jw_str(w, KEPT, path);
	} else if (c && !c->there) {
		jw_bool(w, COPY_UNCHANGED, true);
	}
	if (!c || !c->there)
		return;
	if (made->patch.len > 0)
		(void)patch_read(&p, made->patch.data, made->patch.len, NULL);
	for (size_t i = 0; i < p.n; i++) {
		added += p.files[i].added;
		removed += p.files[i].removed;
	}
	jw_object(w, "patch");
	jw_str(w, "path", c->path);
	if (made->head[0])
		jw_str(w, "head", made->head);
	jw_int(w, "files", (int64_t)made->files);
	jw_int(w, "added", (int64_t)added);
	jw_int(w, "removed", (int64_t)removed);
	jw_array(w, "changed");
	for (size_t i = 0; i < p.n && i < LISTED_MAX; i++) {
		jw_object(w, NULL);
		jw_str(w, "path", p.files[i].path);
		jw_str(w, "how",
		       p.files[i].is_new    ? "new"
		       : p.files[i].is_gone ? "deleted"
					    : "changed");
		jw_int(w, "added", (int64_t)p.files[i].added);
		jw_int(w, "removed", (int64_t)p.files[i].removed);
		if (p.files[i].chmod)
			jw_bool(w, "exec", p.files[i].exec);
		jw_end(w);
	}
	jw_end(w);
	jw_raw(w, "left_out", made->left.data, made->left.len);
	jw_int(w, "left_out_files", (int64_t)made->nleft);
	jw_end(w);
	patch_fini(&p);
}

/* ---- another machine */

int copying_pack(const struct run *r, char **patch, size_t *len, struct ava_error *err)
{
	struct copy_changes made = {0};
	char *path = copy_path(r, "");
	json_t *left, *first;
	int rv = path ? copy_changes(path, &made, err) : err_set(err, AVA_ENOMEM, "out of memory");

	if (rv == 0 && made.nleft > 0) {
		left = json_parse(made.left.data, made.left.len, NULL);
		first = json_array_get(left, 0);
		rv = err_set(
			err, AVA_EUNSUPPORTED,
			"%zu changed file%s of the copy of run %s cannot travel (%.200s: %.60s)",
			made.nleft, made.nleft == 1 ? "" : "s", r->id.text, json_str(first, "path"),
			json_str(first, "why"));
		json_decref(left);
	}
	if (rv == 0 && made.patch.len > PATCH_MAX)
		rv = err_set(err, AVA_ETOOBIG,
			     "the changes in the copy of run %s are more than %u MB", r->id.text,
			     PATCH_MAX >> 20);
	if (rv == 0)
		*patch = buf_take(&made.patch, len);
	if (rv == 0 && !*patch)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	copy_changes_fini(&made);
	free(path);
	return rv;
}

/* ---- removing the copy: without a wait, and longer than the run lives */

struct copying_removal {
	struct os_work work;
	char *path;
};

static void remove_work(struct os_work *w)
{
	copy_remove(AT_FDCWD, ((struct copying_removal *)w->priv)->path);
}

static void remove_done(struct os_work *w)
{
	struct copying_removal *m = w->priv;

	free(m->path);
	free(m);
}

static void remove_start(struct os_loop *loop, void (*work)(struct os_work *w), char *path)
{
	struct copying_removal *m = path ? calloc(1, sizeof(*m)) : NULL;

	if (!m) {
		free(path);
		return;
	}
	m->path = path;
	m->work = (struct os_work){.work = work, .done = remove_done, .priv = m};
	os_work_start_foreign(loop, &m->work);
}

void copying_remove(struct run *r, const struct run_changes *c)
{
	if (c && c->err.code == 0)
		remove_start(r->sup->loop, remove_work, copy_path(r, ""));
}

void copying_forget(struct supervisor *sup, const char *id)
{
	char *from = NULL, *to = NULL;

	if (asprintf(&from, "%s/copies/%s", sup->keep_out[0], id) < 0)
		from = NULL;
	if (asprintf(&to, "%s/copies/%s.%lld", sup->keep_out[0], id, (long long)clock_wall_ms()) <
	    0)
		to = NULL;
	if (from && to && rename(from, to) == 0) {
		remove_start(sup->loop, remove_work, to);
		to = NULL;
	}
	free(from);
	free(to);
}

/* ---- copies left by a kill between an end and the removal */

/* May the copy be removed? Only if result.json, which comes with the end of the run, says that the
 * copy was looked at: its changes are in the patch, or there were none. An end that could not look
 * says neither. */
static bool copying_may_go(int root_fd, const char *id)
{
	char path[LOGBOOK_PATH], *file = NULL;
	json_t *result = NULL;
	size_t len = 0;
	bool may;

	logbook_result_path(id, path);
	if (logbook_read(root_fd, path, RESULT_MAX, &file, &len, NULL) == 0)
		result = json_parse(file, len, NULL);
	may = json_is_object(json_object_get(result, "patch")) ||
	      json_get_bool(result, COPY_UNCHANGED, false);
	json_decref(result);
	free(file);
	return may;
}

/* Past `sys`, like all handling of copies (tool/copy.c): they are no part of the journal. */
static void sweep_work(struct os_work *w)
{
	int root_fd =
		open(((struct copying_removal *)w->priv)->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int copies_fd = openat(root_fd, "copies", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *copies = copies_fd >= 0 ? fdopendir(copies_fd) : NULL;
	const struct dirent *copy;
	struct run_id run;

	while (copies && (copy = readdir(copies)) != NULL) {
		snprintf(run.text, sizeof(run.text), "%.*s", (int)strcspn(copy->d_name, "."),
			 copy->d_name); /* one that was being made is S-7f3a2b.new */
		if (id_is_run(run.text) && copying_may_go(root_fd, run.text))
			copy_remove(copies_fd, copy->d_name);
	}
	if (copies)
		closedir(copies);
	else if (copies_fd >= 0)
		close(copies_fd);
	if (root_fd >= 0)
		close(root_fd);
}

void copying_sweep(struct supervisor *sup)
{
	if (sup->keep_out[0])
		remove_start(sup->loop, sweep_work, strdup(sup->keep_out[0]));
}
