/* Folders that several machines have (the setting cluster.folders). A run in one of them reads it
 * as it is, so ava_spec keeps what that was when the run last went to work: the tree that git has
 * of it and its path. A machine that would carry on such a run looks at its own folder at that
 * moment, and takes the run only with the same tree at the same path. git runs beside the loop
 * (exec/worktree.h), and nobody waits for it: until its answer is told, the run is one of its
 * machine alone, and so it stays where the folder has no tree.
 *
 * A run with a copy of the project, a server of MCP or a group has things on its machine that no
 * tree tells of: these stay. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "cluster/member.h"
#include "codec/json.h"
#include "exec/repository.h"
#include "exec/worktree.h"

#define LOOK_SHARE 20 /* looks for others take that part of the time at the most */

/* Is the run's folder what it is called, and of the work tree that `f` is in? */
static bool folder_has(const struct cluster_folder *f, const char *cwd)
{
	struct repository git;
	char real[PATH_MAX];

	if (!realpath(cwd, real) || strcmp(real, cwd) != 0)
		return false;
	repository_find(&git, cwd, NULL);
	return git.tree[0] && sandbox_below(f->path, git.tree);
}

static struct cluster_folder *folder_of(struct cluster *c, const struct run *run)
{
	struct cluster_folder *last = &c->folders.all[c->folders.n], *found = last;
	const struct run_spec *spec = run->spec;
	bool stays = spec_granted(spec, "rw");

	for (unsigned i = 0; i < spec->agent.ntools; i++)
		stays = stays || spec->tools[i]->flags & TOOL_MCP;
	for (unsigned i = 0; !stays && i < c->folders.n; i++) {
		struct cluster_folder *f = &c->folders.all[i];

		if (sandbox_below(spec->cwd, f->path) &&
		    (found == last || strlen(f->path) > strlen(found->path)))
			found = f;
	}
	return found != last && folder_has(found, spec->cwd) ? found : last;
}

/* ---- telling the database */

/* False: the next beat begins anew. */
static void folder_done(struct cluster_folder *f, bool ok)
{
	struct cluster *c = f->c;

	f->busy = false;
	LIST_EACH (&c->runs, n, tmp) {
		struct cluster_run *r = LIST_ENTRY(n, struct cluster_run, node);

		if (r->folder == f && r->placing == PLACE_LOOKED)
			r->placing = ok ? PLACE_TOLD : PLACE_DUE;
	}
	if (ok)
		os_defer(c->loop, &c->folders.step);
}

static void folder_told(const struct pg_answer *a, void *user)
{
	int64_t mine = 0;

	folder_done(user, a->rv == 0 && pg_int(a->results, 0, 0, &mine) && mine == 1);
}

/* The runs that the look was for have this place. */
static void folder_tell(struct cluster_folder *f)
{
	static const char sql[] = CLUSTER_ME_SQL
		", told as (update ava_spec s set place = $5, tree = $6 from me, ava_run r"
		"  where s.run = any($4) and r.run = s.run and r.node = $1 and r.epoch = $2"
		"   and (s.place <> $5 or s.tree <> $6)) select count(*) from me";
	struct cluster *c = f->c;
	const char **ids = calloc(c->by_id.count + 1, sizeof(*ids)),
		   *place = f->tree[0] ? f->place : "here";
	struct pg_batch *b;
	size_t n = 0;

	LIST_EACH (&c->runs, node, tmp) {
		struct cluster_run *r = LIST_ENTRY(node, struct cluster_run, node);

		if (!ids || r->folder != f || r->placing != PLACE_LOOKED)
			continue;
		r->place = place;
		ids[n++] = r->id;
	}
	if (n == 0) {
		folder_done(f, ids != NULL);
	} else {
		b = pg_batch_new();
		cluster_add_me(b, c, sql);
		pg_batch_texts(b, ids, n);
		pg_batch_text(b, place);
		pg_batch_text(b, f->tree);
		if (pg_send(c->pg, b, folder_told, f, NULL) != 0)
			folder_done(f, false);
	}
	free(ids);
}

/* ---- looking */

/* Takes what waits for the folder as it is now. */
static void folder_take(struct cluster_folder *f)
{
	struct cluster *c = f->c;
	char have[PATH_MAX + 200];

	if (!f->tree[0] || !cluster_has_lease(c) || c->leaving ||
	    cluster_now_ms() - c->member_ms < c->lease_ms)
		return;
	snprintf(have, sizeof(have), "%s %s", f->place, f->tree);
	c->folders.have = have;
	take_poll(c, true);
	c->folders.have = NULL;
}

static void folder_seen(struct cluster_folder *f, const char *hash, const char *why)
{
	bool wanted = f->wanted;

	snprintf(f->tree, strlen(f->path) + WORKTREE_HASH + 2, "%s%s%s", hash, hash[0] ? " " : "",
		 hash[0] ? f->path : "");
	if (why && f->why != why && f->c->tell.log) {
		char line[500];

		snprintf(line, sizeof(line),
			 "%s (%.300s): no run in it goes from one machine to "
			 "another by itself, since %s",
			 f->place, f->path, why);
		f->c->tell.log(line, f->c->tell.user);
	}
	f->why = why;
	f->wanted = false;
	f->not_before_ms = cluster_now_ms() + LOOK_SHARE * (cluster_now_ms() - f->began_ms);
	folder_tell(f);
	if (wanted)
		folder_take(f);
}

static void folder_looked(const struct exec_end *end, void *user)
{
	struct cluster_folder *f = user;
	char hash[WORKTREE_HASH + 1];
	const char *why = worktree_read(end, hash);

	f->child = NULL;
	if (!f->c->closing)
		folder_seen(f, hash, why);
}

static void folder_look(struct cluster_folder *f)
{
	const struct sandbox in = {.project = f->path,
				   .keep_out = (const char *const *)f->c->sup->keep_out};
	struct ava_error err;

	f->busy = true;
	f->began_ms = cluster_now_ms();
	LIST_EACH (&f->c->runs, n, tmp) {
		struct cluster_run *r = LIST_ENTRY(n, struct cluster_run, node);

		if (r->folder == f && r->placing == PLACE_DUE)
			r->placing = PLACE_LOOKED;
	}
	if (!f->path) /* there is nothing to look at */
		folder_tell(f);
	else if (worktree_look(&f->child, f->c->loop, &in, folder_looked, f, &err) != 0)
		folder_seen(f, "", "git cannot be started in a sandbox (see ava doctor)");
}

/* Begins the looks that are due, of each folder one at a time. */
static void folder_step(struct os_task *t)
{
	struct cluster *c = CONTAINER_OF(t, struct cluster, folders.step);

	if (c->state != CLUSTER_MEMBER || c->closing || !c->folders.all)
		return;
	LIST_EACH (&c->runs, n, tmp) {
		struct cluster_run *r = LIST_ENTRY(n, struct cluster_run, node);
		const struct run *run;
		struct cluster_folder *f;

		if (r->placing != PLACE_DUE)
			continue;
		run = supervisor_find(c->sup, r->id);
		if (!run || !run->spec->cwd[0] || run->group) {
			r->placing = PLACE_TOLD;
			continue;
		}
		f = folder_of(c, run);
		f->due = true;
		r->folder = f;
	}
	for (unsigned i = 0; i <= c->folders.n; i++) {
		struct cluster_folder *f = &c->folders.all[i];

		if (!f->busy && (f->due || (f->wanted && cluster_now_ms() >= f->not_before_ms)))
			folder_look(f);
		f->due = false;
	}
}

void folder_again(struct cluster *c)
{
	LIST_EACH (&c->runs, n, tmp) {
		struct cluster_run *r = LIST_ENTRY(n, struct cluster_run, node);

		if (r->folder)
			cluster_place_due(c, r);
	}
}

void folder_beat(struct cluster *c)
{
	os_defer(c->loop, &c->folders.step);
}

const char *cluster_place(const struct cluster *c, const char *run)
{
	const struct cluster_run *r = c ? strmap_get(&c->by_id, run) : NULL;

	const struct run *live = r && !r->place ? supervisor_find(c->sup, run) : NULL;

	return live ? gate_place(live) : r ? r->place : NULL;
}

void folder_names(const struct cluster *c, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < c->folders.n && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "",
					 c->folders.all[i].place + strlen("folder "));
}

void folder_write(const struct cluster *c, struct jw *w)
{
	jw_array(w, "folders");
	for (unsigned i = 0; i < c->folders.n; i++) {
		const struct cluster_folder *f = &c->folders.all[i];

		jw_object(w, NULL);
		jw_str(w, "name", f->place + strlen("folder "));
		jw_str(w, "path", f->path);
		jw_strn(w, "tree", f->tree, strcspn(f->tree, " "));
		jw_str(w, "problem", f->why ? f->why : "");
		jw_end(w);
	}
	jw_end(w);
}

/* ---- life */

static bool folder_init(struct cluster *c, struct cluster_folder *f, const char *word)
{
	const char *path = word ? strchr(word, '=') + 1 : "";

	f->c = c;
	if (word)
		snprintf(f->place, sizeof(f->place), "folder %.*s", (int)strcspn(word, "="), word);
	f->path = word ? strdup(path) : NULL;
	f->tree = calloc(1, strlen(path) + WORKTREE_HASH + 2);
	return f->tree && (f->path || !word);
}

bool folder_open(struct cluster *c, const char *words)
{
	unsigned n = 0;
	bool ok;

	os_task_init(&c->folders.step, folder_step);
	for (const char *w = words; w && *w; w += strlen(w) + 1)
		n++;
	c->folders.all = calloc(n + 1, sizeof(*c->folders.all));
	ok = c->folders.all && folder_init(c, &c->folders.all[n], NULL);
	c->folders.n = c->folders.all ? n : 0;
	for (unsigned i = 0; ok && i < n; words += strlen(words) + 1)
		ok = folder_init(c, &c->folders.all[i++], words);
	return ok;
}

void folder_close(struct cluster *c)
{
	os_defer_cancel(c->loop, &c->folders.step);
	for (unsigned i = 0; c->folders.all && i <= c->folders.n; i++) {
		struct cluster_folder *f = &c->folders.all[i];

		if (f->child)
			exec_kill(f->child);
		free(f->path);
		free(f->tree);
	}
	free(c->folders.all);
}
