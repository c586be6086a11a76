/* The store is a list of a few entries, made by the ends of runs and by the logs of the last week;
 * nothing of it is written, so nothing can disagree with the logs. Of a patch its file is read
 * anew by each look and each answer: what is shown, hashed and written is what is on disk.
 *
 * A yes writes through tool/apply.c, as `ava apply` does: all that fits, or nothing. A daemon that
 * is killed meanwhile leaves the entry as it was; asked again, files that have their content
 * are left alone. What can fail: the run's files are gone, and what tool/apply.h says. */
#include "ava/patches.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/sys.h"
#include "base/words.h"
#include "codec/json.h"
#include "journal/read.h"
#include "subagent/run.h"
#include "tool/apply.h"

#define PATCHES_MAX 256
#define PATCHES_MS  (INT64_C(7) * 86400000)
#define SHOWN_MAX   60000       /* bytes of the list of files, and of the diff */
#define HEADING_MAX (64u << 10) /* text before a patch */

/* ---- the store */

static void offer_free(struct patch_offer *o)
{
	list_del(&o->node);
	json_decref(o->answer);
	free(o);
}

struct patch_offer *patches_find(struct core *c, const char *run)
{
	int64_t now = clock_wall_ms();

	LIST_EACH (&c->patches, n, tmp) {
		struct patch_offer *o = LIST_ENTRY(n, struct patch_offer, node);

		if (o->until_ms <= now && !o->busy)
			offer_free(o);
		else if (strcmp(o->run, run) == 0)
			return o;
	}
	return NULL;
}

struct patch_offer *patches_named(struct core *c, const char *ask)
{
	size_t n = strcspn(ask, ":");
	char run[24];

	snprintf(run, sizeof(run), "%.*s", (int)n, ask);
	return strcmp(ask + n, ":" PATCH_ASK) == 0 ? patches_find(c, run) : NULL;
}

void patches_forget(struct core *c, const char *run)
{
	struct patch_offer *o = patches_find(c, run);

	if (o && !o->busy)
		offer_free(o);
}

/* Without memory there is none, and `ava apply` still can. `from`: the run that it goes on from. */
static void patches_add(struct core *c, const char *run, const char *from, const char *session,
			int64_t files, int64_t wall_ms, uint64_t lsn)
{
	struct patch_offer *o = calloc(1, sizeof(*o));
	unsigned n = 0;

	patches_forget(c, from);
	patches_forget(c, run);
	if (!o)
		return;
	snprintf(o->run, sizeof(o->run), "%s", run);
	snprintf(o->session, sizeof(o->session), "%s", session);
	o->files = files;
	o->lsn = lsn;
	o->since_ms = MIN(wall_ms, clock_wall_ms());
	o->until_ms = o->since_ms + PATCHES_MS;
	list_add(&c->patches, &o->node);
	LIST_EACH (&c->patches, node, tmp)
		n++;
	if (n > PATCHES_MAX)
		patches_forget(c, LIST_FIRST(&c->patches, struct patch_offer, node)->run);
}

void patches_ended(struct run *r, size_t files, void *core)
{
	patches_add(core, r->id.text, r->spec->resumed_from, r->spec->session_id, (int64_t)files,
		    r->end.wall_ms, r->rec.log.row);
}

void patches_told(struct core *c, json_t *content)
{
	const char *type = json_str(content, "customType");
	const json_t *data = json_object_get(content, "data");
	struct patch_offer *o = patches_find(c, json_str(data, "subagentId"));

	if (!o || (strcmp(type, "applied") != 0 && strcmp(type, "left") != 0))
		return;
	json_decref(o->answer);
	o->answer = json_incref(content);
}

static void patches_take(struct core *c, const struct ava_log_event *e)
{
	static const char *const marks[] = {"\"files\":", "\"applied\"", "\"left\""};
	json_t *event = NULL;
	json_t *content;

	for (size_t i = 0; !event && i < ARRAY_LEN(marks); i++)
		if (memmem(e->line, e->len, marks[i], strlen(marks[i])))
			event = json_parse(e->line, e->len, NULL);
	content = json_object_get(event, "content");
	patches_told(c, content);
	if (json_get_int(content, "files", 0) > 0)
		patches_add(c, json_str(content, "subagentId"), json_str(content, "resumedFrom"),
			    json_str(event, "sessionId"), json_get_int(content, "files", 0),
			    e->time_ms, e->lsn);
	json_decref(event);
}

void patches_restore(struct core *c)
{
	struct ava_log_query q = {
		.root = c->root,
		.types = "SubagentComplete,Custom",
		.since = "7 days ago",
		.after = c->sup.settled,
	};
	struct ava_log_event e;
	struct ava_error err = {0};
	struct ava_log *log;
	char path[LOGBOOK_PATH];
	int rv;

	if (read_open_near(&log, &q, &err) != 0) {
		c->sup.took_up = c->sup.took_up && err.code == AVA_ENOENT; /* no daily log yet */
		return;
	}
	while ((rv = ava_log_next(log, &e, NULL)) == 1 || rv == AVA_ECORRUPT)
		if (rv == 1)
			patches_take(c, &e);
	c->sup.took_up = c->sup.took_up && rv == 0;
	ava_log_close(log);
	LIST_EACH (&c->patches, n, tmp) {
		struct patch_offer *o = LIST_ENTRY(n, struct patch_offer, node);

		snprintf(path, sizeof(path), "runs/%s", o->run);
		if (faccessat(c->root_fd, path, F_OK, 0) != 0)
			offer_free(o);
	}
}

void patches_close(struct core *c)
{
	while (!list_empty(&c->patches))
		offer_free(LIST_FIRST(&c->patches, struct patch_offer, node));
}

/* ---- the patch of one run */

int patch_text_read(int root_fd, const char *run, struct patch_file_text *out,
		    struct ava_error *err)
{
	char *text = NULL, want[LOGBOOK_PATH];
	const char *path;
	size_t len;
	int rv;

	*out = (struct patch_file_text){0};
	rv = ended_read(root_fd, run, &out->ended, err);
	if (rv == 0)
		rv = ended_result(root_fd, run, &text, &len, err);
	out->result = rv == 0 ? json_parse(text, len, NULL) : NULL;
	free(text);
	out->about = json_object_get(out->result, "patch");
	path = json_str(out->about, "path");
	snprintf(want, sizeof(want), "runs/%s/artifacts/", run);
	if (rv == 0 && !out->about)
		rv = err_set(err, AVA_ENOENT,
			     json_get_bool(out->result, COPY_UNCHANGED, false)
				     ? "%s changed nothing"
				     : "%s proposes no changes (a run may with --grant rw only)",
			     run);
	else if (rv == 0 && (strncmp(path, want, strlen(want)) != 0 || strstr(path, "..")))
		rv = err_set(err, AVA_ECORRUPT, "the result of %s names no patch of its own", run);
	if (rv == 0)
		rv = sys_read_file(root_fd, path, PATCH_MAX + HEADING_MAX, &out->text, &out->len,
				   err);
	if (rv == 0)
		hash_sha256_hex(out->text, out->len, out->hash);
	return rv;
}

void patch_text_fini(struct patch_file_text *t)
{
	json_decref(t->result);
	free(t->text);
	ended_fini(&t->ended);
}

bool patch_text_show(struct buf *out, const char *run, const struct patch_file_text *t)
{
	size_t n = t->len, i = 0;
	struct patch p = {0};
	const char *end;
	bool whole = patch_read(&p, t->text, t->len, NULL) == 0;

	buf_addf(out, "%s (%s) proposes to change %zu file%s in %s:\n", run,
		 format_role(t->ended.status.role).text, p.n, WORDS_S(p.n), t->ended.status.cwd);
	for (; i < p.n && out->len < SHOWN_MAX; i++) {
		const struct patch_file *f = &p.files[i];

		buf_addf(out, "  %s  +%zu -%zu%s%s\n", f->path, f->added, f->removed,
			 f->is_new    ? "  (new)"
			 : f->is_gone ? "  (deleted)"
				      : "",
			 patch_obeyed(f->path) ? "  (programs or agents obey it: left out)" : "");
	}
	if (n > SHOWN_MAX) {
		end = memrchr(t->text, '\n', SHOWN_MAX);
		n = end ? (size_t)(end - t->text) + 1 : 0;
	}
	buf_addc(out, '\n');
	buf_add(out, t->text, n);
	if (i < p.n || n < t->len) {
		whole = false;
		buf_addf(out,
			 "... %zu file%s and %zu bytes of the diff are not shown: `ava apply %s "
			 "--check` tries it, GET /api/v1/runs/%s/patch has all of it\n",
			 p.n - i, WORDS_S(p.n - i), t->len - n, run, run);
	}
	patch_fini(&p);
	return whole;
}

/* Says of the first file that clashes what is wrong with it. */
static int patch_text_clash(const struct applying *a, struct ava_error *err)
{
	const struct apply_target *t = a->targets;

	while (t->fit != PATCH_CLASHES)
		t++;
	return err_set(err, AVA_EEXIST,
		       "nothing was written: %zu of %zu files clash with %.200s as it is now, the "
		       "first: %.200s, line %zu: %.200s (`ava apply %s --check` tells of all)",
		       a->clashes, a->patch.n, a->cwd, t->f->path, t->clash.line,
		       t->why ? t->why : t->clash.what, a->run);
}

/* New files and folders are for whom the project's folder is. The daemon's own umask is narrower,
 * and all threads have it: this one gets one of its own, where the system lets it. */
static int patch_text_write(struct applying *a, struct ava_error *err)
{
	struct stat st;
	mode_t was = 0;
	bool own;
	int rv;

	if (fstat(a->fd, &st) != 0)
		return err_sys(err, "%.300s", a->cwd);
	a->mask = (~st.st_mode & 077) | 002;
	own = unshare(CLONE_FS) == 0;
	if (own)
		was = umask(a->mask);
	rv = apply_write(a, err);
	if (own)
		umask(was);
	return rv;
}

int patch_text_apply(const char *root, const char *run, const struct patch_file_text *t,
		     struct jw *w, struct ava_error *err)
{
	struct applying a = {.run = run, .cwd = t->ended.status.cwd, .fd = -1, .lock = -1};
	int rv = apply_plan(&a, t->text, t->len, err);

	if (rv == 0 && a.clashes > 0)
		rv = patch_text_clash(&a, err);
	else if (rv == 0 && a.obeyed > 0 && a.fit + a.there == 0)
		rv = err_set(err, AVA_EDENIED,
			     "nothing was written: programs or agents obey what it changes; `ava "
			     "apply %s` asks about each file",
			     run);
	if (rv == 0)
		rv = apply_lock(&a, root, false, err);
	if (rv == 0)
		rv = patch_text_write(&a, err);
	jw_str(w, "cwd", a.cwd);
	jw_str(w, "patchHash", t->hash);
	jw_int(w, "files", (int64_t)a.fit);
	jw_int(w, "alreadyThere", (int64_t)a.there);
	jw_array(w, "leftOut");
	for (size_t i = 0; rv == 0 && i < a.patch.n; i++)
		if (a.targets[i].obeyed)
			jw_str(w, NULL, a.targets[i].f->path);
	jw_end(w);
	apply_fini(&a);
	return rv;
}
