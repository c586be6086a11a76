/* A branch begins at HEAD, when every file of the patch stood in the commit that was HEAD
 * when the folder was copied; else at that commit, and one more of ours in between holds what was
 * copied without being committed, taken from the folder where it still has the patch's ids.
 * `--from` chooses the other way. All of it is found out in the worktree, which git has filled, so
 * that filters and line ends are as in the person's own.
 *
 * A kill leaves the worktree, commits without a name, or the branch as it was meant: whoever comes
 * next removes worktrees of runs that nobody has locked. What can fail: git says no; a file that
 * was copied uncommitted and changed since. */
#include "cli/outcome.h"

#include <ava.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "cli/git.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/term.h"
#include "client/start.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "tool/apply.h"

#define BRANCHES    "branches" /* in the data root */
#define SUBJECT_MAX 72
#define SAID_MAX    ((size_t)16 << 20)
#define PERSON_FILE ((size_t)2 * PATCH_FILE_MAX)
#define ID_SHOWN    10 /* digits of a commit's id */

static volatile sig_atomic_t outcome_stopped;

static void outcome_stop(int number)
{
	outcome_stopped = number;
}

/* While the worktree stands a signal ends git, and then this, in order. */
static void outcome_signals(void (*handler)(int))
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction act = {.sa_handler = handler};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		sigaction(ends[i], &act, NULL);
}

/* ---- worktrees */

static void outcome_remove(const char *tree)
{
	const char *const rm[] = {"rm", "-rf", "--", tree, NULL};
	struct buf none;

	buf_init(&none, SAID_MAX);
	(void)git_say(tree, &none, NULL, "worktree", "remove", "-ff", "--", tree, NULL);
	if (access(tree, F_OK) == 0)
		(void)git_call(&(struct git_call){.dir = "/", .argv = rm, .out = &none}, NULL);
	buf_fini(&none);
}

/* Worktrees that a kill left: of this run, whose lock we have, and of those that nobody locks. */
static void outcome_sweep(const struct outcome *o, const char *root, const char *branches)
{
	DIR *dir = opendir(branches);
	char path[PATH_MAX + 80];
	struct dirent *d;

	while (dir && (d = readdir(dir)) != NULL) {
		bool ours = strcmp(d->d_name, o->run) == 0;
		int fd;

		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/runs/%.64s", root, d->d_name);
		fd = ours ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		snprintf(path, sizeof(path), "%s/%.64s", branches, d->d_name);
		if (ours || fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
			outcome_remove(path);
		if (fd >= 0)
			close(fd);
	}
	if (dir)
		closedir(dir);
}

static int outcome_make_tree(struct outcome *o, const char *prefix, struct ava_error *err)
{
	char root[PATH_MAX], real[PATH_MAX], branches[PATH_MAX];
	int rv = settings_data_root(root, sizeof(root), err);

	if (rv != 0)
		return rv;
	if (!realpath(root, real) || strlen(real) + sizeof(BRANCHES) + 66 > sizeof(branches))
		return err_sys(err, "%.300s", root);
	snprintf(branches, sizeof(branches), "%s/" BRANCHES, real);
	if (sys_make_folders(branches, true) != 0)
		return err_sys(err, "make %.300s", branches);
	outcome_sweep(o, real, branches);
	snprintf(o->tree, sizeof(o->tree), "%s/%.64s", branches, o->run);
	if ((size_t)snprintf(o->place, sizeof(o->place), "%s%s%s", o->tree, *prefix ? "/" : "",
			     prefix) >= sizeof(o->place))
		return err_set(err, AVA_ETOOBIG, "the path of the folder is too long");
	if (strlen(prefix) > 0 && o->place[strlen(o->place) - 1] == '/')
		o->place[strlen(o->place) - 1] = '\0';
	/* -f twice: one that a kill left registered, and locked, is this one. */
	rv = git_say(o->cwd, &o->stat, err, "worktree", "add", "-q", "-ff", "--detach", o->tree,
		     o->copied, NULL);
	buf_reset(&o->stat);
	if (rv == 0 && sys_make_folders(o->place, true) != 0)
		rv = err_sys(err, "make %.300s", o->place);
	return rv;
}

/* ---- is there a place for it? */

/* Is the ref, or one below or above it, which keeps the name from it? */
static bool outcome_meets(const char *full, const char *ref, size_t len)
{
	size_t size = strlen(full), both = MIN(size, len);

	return memcmp(full, ref, both) == 0 &&
	       (size == len || (size > len ? full : ref)[both] == '/');
}

static int outcome_name(const struct outcome *o, struct ava_error *err)
{
	const char *name = o->w->branch;
	char said[300], full[300], first[300];
	struct buf all;
	int rv;

	if (strlen(name) > 240 || strncmp(name, "refs/", 5) == 0 || strcmp(name, "@") == 0 ||
	    GIT_WORD(o->cwd, said, NULL, "check-ref-format", "--branch", name) != 0 ||
	    strcmp(said, name) != 0)
		return err_set(err, AVA_EINVAL, "%.250s cannot be the name of a branch", name);
	snprintf(full, sizeof(full), "refs/heads/%s", name);
	snprintf(first, sizeof(first), "refs/heads/%.*s", (int)strcspn(name, "/"), name);
	buf_init(&all, SAID_MAX);
	rv = git_say(o->cwd, &all, err, "for-each-ref", "--format=%(objectname) %(refname)", first,
		     NULL);
	for (const char *at = all.data; rv == 0 && at && *at;
	     at += strcspn(at, "\n"), at += *at > 0) {
		const char *ref = at + strcspn(at, " ") + 1;
		size_t len = strcspn(ref, "\n");

		if (outcome_meets(full, ref, len))
			rv = err_set(err, AVA_EEXIST,
				     "there is a branch %.*s already (at %.*s): give another name",
				     (int)len - 11, ref + 11, ID_SHOWN, at);
	}
	buf_fini(&all);
	return rv;
}

/* Files below another repository's folder cannot be in a commit of this one. */
static int outcome_own_files(const struct outcome *o, const struct patch *p, struct ava_error *err)
{
	char at[2 * PATH_MAX];

	for (size_t i = 0; i < p->n; i++) {
		const char *path = p->files[i].path;

		for (const char *s = path; (s = strchr(s, '/')) != NULL; s++) {
			snprintf(at, sizeof(at), "%s/%.*s/.git", o->cwd, (int)(s - path), path);
			if (access(at, F_OK) == 0)
				return err_set(err, AVA_EDENIED,
					       "%.200s is in a repository of its own (%.*s): `ava "
					       "apply %s` writes into the folder, and you commit "
					       "there",
					       path, (int)MIN(s - path, 200), path, o->run);
		}
	}
	return 0;
}

/* The operation that git is in the middle of there; NULL: none. */
static const char *outcome_during(const struct outcome *o)
{
	static const char *const all[][2] = {{"MERGE_HEAD", "merge"},
					     {"rebase-merge", "rebase"},
					     {"rebase-apply", "rebase"},
					     {"CHERRY_PICK_HEAD", "cherry-pick"},
					     {"REVERT_HEAD", "revert"}};
	char dir[PATH_MAX], path[PATH_MAX + 32];

	if (GIT_WORD(o->cwd, dir, NULL, "rev-parse", "--absolute-git-dir") != 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, all[i][0]);
		if (access(path, F_OK) == 0)
			return all[i][1];
	}
	return NULL;
}

/* Without a name the current branch goes forward, which must not meet work of the person's. */
static int outcome_current(const struct outcome *o, struct ava_error *err)
{
	int rv;
	struct buf said;

	if (o->during)
		return err_set(err, AVA_EEXIST,
			       "%.300s is in the middle of a %s: end it (git %s --continue, or "
			       "--abort), or give --branch NAME",
			       o->cwd, o->during, o->during);
	if (!o->onto[0])
		return err_set(err, AVA_EDENIED,
			       "HEAD of %.300s is detached, so there is no current branch: give "
			       "--branch NAME",
			       o->cwd);
	buf_init(&said, SAID_MAX);
	rv = git_say(o->cwd, &said, err, "--no-optional-locks", "status", "--porcelain",
		     "--untracked-files=no", NULL);
	if (rv == 0 && said.len > 0)
		rv = err_set(err, AVA_EEXIST,
			     "%.300s has changes that are not committed (%.80s): commit or stash "
			     "them, or give --branch NAME, which touches none of them",
			     o->cwd, said.data + MIN(strspn(said.data, " "), said.len));
	buf_fini(&said);
	return rv;
}

static int outcome_look(struct outcome *o, const json_t *about, char prefix[PATH_MAX],
			struct ava_error *err)
{
	const char *copied = json_str(about, "head");
	char said[PATH_MAX], full[OUTCOME_ID + 16];
	struct ava_error none;

	if (GIT_WORD(o->cwd, said, err, "rev-parse", "--is-inside-work-tree") != 0 ||
	    strcmp(said, "true") != 0)
		return err_set(err, AVA_EDENIED,
			       "%.300s is no work tree of git: `ava apply %s` writes into the "
			       "folder itself",
			       o->cwd, o->run);
	if (GIT_WORD(o->cwd, o->head, &none, "rev-parse", "-q", "--verify", "HEAD^{commit}") != 0)
		return err_set(err, AVA_EDENIED,
			       "the repository of %.300s has no commit yet: `ava apply %s` writes "
			       "into the folder, and you commit",
			       o->cwd, o->run);
	if (git_word(o->cwd, prefix, PATH_MAX, err, "rev-parse", "--show-prefix", NULL) != 0)
		return err->code;
	(void)GIT_WORD(o->cwd, o->onto, NULL, "symbolic-ref", "-q", "--short", "HEAD");
	snprintf(full, sizeof(full), "%.64s^{commit}", copied);
	if (!*copied || GIT_WORD(o->cwd, o->copied, NULL, "rev-parse", "-q", "--verify", full))
		memcpy(o->copied, o->head, sizeof(o->copied));
	o->moved = strcmp(o->copied, o->head) != 0;
	o->during = outcome_during(o);
	return o->w->branch ? outcome_name(o, err) : outcome_current(o, err);
}

/* ---- the base */

/* Has the file of the folder `fd` the state that the patch begins with? Its content goes to *data
 * (owned) where it is there. */
static bool outcome_was(int fd, const struct patch_file *f, char **data, size_t *len,
			struct stat *st)
{
	char id[PATCH_ID_LEN + 1];
	bool there = below_read(fd, f->path, PERSON_FILE, data, len, st, NULL) == 0;

	if (!there || f->is_new)
		return !there && f->is_new;
	hash_git_blob(*data, *len, id);
	return strcmp(id, f->was) == 0 || strspn(f->was, "0") == PATCH_ID_LEN;
}

/* Put the file as it was copied into the worktree, from the folder. */
static int outcome_lay(struct outcome *o, int from, int to, const struct patch_file *f,
		       struct buf *paths, struct ava_error *err)
{
	char *data = NULL;
	size_t len = 0;
	struct stat st = {0};
	bool was = outcome_was(from, f, &data, &len, &st);
	int rv = 0;

	if (!was)
		rv = err_set(err, AVA_EEXIST,
			     "%.300s was not committed when it was copied, and has changed since: "
			     "what the run began with is gone; `--from head` tries the patch on "
			     "HEAD",
			     f->path);
	else if (f->is_new)
		rv = below_remove(to, f->path, NULL, err);
	else
		rv = below_write(to, f->path, BELOW_SPARE, data, len,
				 st.st_mode & 0100 ? 0755 : 0644, err);
	if (rv == 0 && !f->is_new)
		rv = below_rename(to, f->path, BELOW_SPARE, err);
	if (rv == 0)
		rv = buf_add(paths, f->path, strlen(f->path) + 1);
	o->nlaid += rv == 0;
	free(data);
	return rv;
}

static int outcome_add(const struct outcome *o, const struct buf *paths, struct ava_error *err)
{
	static const char *const argv[] = {"git",
					   "-c",
					   "core.hooksPath=/dev/null",
					   "-c",
					   "core.fsmonitor=false",
					   "--literal-pathspecs",
					   "add",
					   "-f",
					   "--sparse",
					   "--pathspec-from-file=-",
					   "--pathspec-file-nul",
					   NULL};
	struct buf none;
	int rv = buf_check(paths);

	if (rv != 0)
		return err_set(err, rv, "out of memory");
	buf_init(&none, SAID_MAX);
	rv = paths->len == 0
		     ? 0
		     : git_call(&(struct git_call){o->place, argv, paths->data, paths->len, &none},
				err);
	buf_fini(&none);
	return rv;
}

/* Finds the base; the worktree is at `copied`, and then at the base. */
static int outcome_base(struct outcome *o, const struct patch *p, struct ava_error *err)
{
	int from = open(o->cwd, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    to = open(o->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rv = 0;
	bool head = o->w->from && strcmp(o->w->from, "head") == 0;
	char was[OUTCOME_ID] = "", tree[OUTCOME_ID + 16];
	struct buf paths;

	buf_init(&paths, SAID_MAX);
	if (from < 0 || to < 0)
		rv = err_sys(err, "%.300s", from < 0 ? o->cwd : o->place);
	for (size_t i = 0; rv == 0 && !head && i < p->n; i++) {
		char *data = NULL;
		struct stat st;
		size_t len;

		if (!outcome_was(to, &p->files[i], &data, &len, &st))
			rv = outcome_lay(o, from, to, &p->files[i], &paths, err);
		free(data);
	}
	if (rv == 0 && o->nlaid > 0)
		rv = outcome_add(o, &paths, err);
	head = head || (o->nlaid == 0 && !o->w->from);
	memcpy(o->base, head ? o->head : o->copied, sizeof(o->base));
	snprintf(tree, sizeof(tree), "%s^{tree}", o->base);
	if (rv == 0 && head && o->moved)
		rv = git_say(o->tree, &o->stat, err, "reset", "-q", "--hard", o->head, NULL);
	if (rv == 0 && o->nlaid > 0)
		rv = GIT_WORD(o->tree, o->laid, err, "write-tree");
	if (rv == 0 && o->nlaid > 0)
		rv = GIT_WORD(o->tree, was, err, "rev-parse", tree);
	if (o->nlaid > 0 && strcmp(was, o->laid) == 0)
		o->laid[0] = '\0'; /* only what filters and line ends make of it differed */
	if (rv == 0 && o->laid[0] && !o->w->branch)
		rv = err_set(
			err, AVA_EEXIST,
			"the run began with files that were not committed: give --branch NAME");
	else if (rv == 0 && !o->w->branch && strcmp(o->base, o->head) != 0)
		rv = err_set(err, AVA_EEXIST,
			     "the patch is for commit %.*s, which is not HEAD: give --branch NAME, "
			     "and merge it",
			     ID_SHOWN, o->base);
	buf_fini(&paths);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return rv;
}

/* ---- what is said of it */

/* A line of a text: none of it can stand as a further line of the message. */
static void outcome_line(struct buf *out, const char *line, size_t len)
{
	size_t at = out->len;

	for (utf8_plain(out, line, len); at < out->len; at++)
		if (out->data[at] == '\n')
			out->data[at] = ' ';
}

/* The first line of the summary as a subject of at most SUBJECT_MAX bytes. */
static void outcome_subject(struct buf *out, const char *summary)
{
	size_t n = strcspn(summary, "\r\n"), keep = n;

	if (n > SUBJECT_MAX)
		for (keep = SUBJECT_MAX - 3; keep > 0 && (summary[keep] & 0xc0) == 0x80;)
			keep--;
	outcome_line(out, summary, keep);
	if (keep < n)
		buf_adds(out, "...");
}

/* Text of models goes in without its invisible parts: those who read a log see what git keeps.
 */
static void outcome_message(struct outcome *o, const json_t *result)
{
	const char *summary = json_str(result, "summary");
	const json_t *check = json_object_get(result, "check");
	const char *command = json_str(check, "command");

	summary += strspn(summary, " \t\r\n");
	if (o->w->message) {
		buf_adds(&o->message, o->w->message);
		return;
	}
	outcome_subject(&o->message, summary);
	if (o->message.len == 0)
		buf_addf(&o->message, "Changes of run %s", o->run);
	buf_addf(&o->message, "\n\nRun: %s\nTrace: %s\nCost: %s", o->run,
		 json_str(result, "trace_id"), format_cost_of(result, "cost_cents").text);
	if (!json_is_object(check))
		return;
	buf_addf(&o->message,
		 "\nCheck: %s: ", json_get_bool(check, "passed", false) ? "passed" : "not passed");
	outcome_line(&o->message, command, utf8_prefix(command, strlen(command), 300));
}

static int outcome_author(struct outcome *o, struct ava_error *err)
{
	char ident[1024], *end;

	if (GIT_WORD(o->cwd, ident, err, "var", "GIT_AUTHOR_IDENT") != 0)
		return err_wrap(err, AVA_EDENIED,
				"git does not know who you are: `git config --global user.name "
				"NAME`, and user.email");
	end = strrchr(ident, '>');
	if (end)
		end[1] = '\0';
	return buf_adds(&o->author, ident) == 0 ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

const char *outcome_branch(const struct outcome *o)
{
	return o->w->branch ? o->w->branch : o->onto;
}

int outcome_begin(struct outcome *o, const json_t *got, const json_t *result, struct ava_error *err)
{
	const json_t *text = json_object_get(got, "patch");
	char prefix[PATH_MAX] = "";
	struct patch p = {0};
	int rv;

	outcome_stopped = 0;
	outcome_signals(outcome_stop);
	buf_init(&o->message, SAID_MAX);
	buf_init(&o->author, SAID_MAX);
	buf_init(&o->stat, SAID_MAX);
	o->cwd = json_str(got, "cwd");
	rv = patch_read(&p, json_string_value(text), json_string_length(text), err);
	if (rv == 0)
		rv = outcome_look(o, json_object_get(got, "about"), prefix, err);
	if (rv == 0)
		rv = outcome_own_files(o, &p, err);
	if (rv == 0)
		rv = outcome_author(o, err);
	if (rv == 0)
		rv = outcome_make_tree(o, prefix, err);
	if (rv == 0)
		rv = outcome_base(o, &p, err);
	outcome_message(o, result);
	patch_fini(&p);
	if (rv == 0 && buf_check(&o->message) != 0)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	return rv;
}

/* Does a value of the configuration, "key\nvalue", make git run the file? */
static bool outcome_runs(const char *entry, const char *path)
{
	const char *value = strchr(entry, '\n');
	size_t n;

	if (!value)
		return false;
	value += 1 + 2 * (strncmp(value + 1, "./", 2) == 0);
	if (strncmp(entry, "core.hookspath\n", 15) != 0)
		return strstr(value, path) != NULL;
	n = strlen(value);
	while (n > 0 && value[n - 1] == '/')
		n--;
	return n > 0 && strncmp(path, value, n) == 0 && path[n] == '/';
}

void outcome_obeyed(const struct outcome *o, struct applying *a)
{
	const char *prefix = o->place + strlen(o->tree), *at;
	char path[2 * PATH_MAX];
	struct buf said;

	prefix += *prefix == '/';
	buf_init(&said, SAID_MAX);
	(void)git_say(o->tree, &said, NULL, "config", "-z", "--get-regexp",
		      "^(core\\.(hookspath|fsmonitor)|filter\\..*\\.(clean|smudge|process))$",
		      NULL);
	for (size_t i = 0; said.data && i < a->patch.n; i++) {
		struct apply_target *t = &a->targets[i];
		bool runs = false;

		snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "/" : "", t->f->path);
		for (at = said.data; at < said.data + said.len; at += strlen(at) + 1)
			runs = runs || outcome_runs(at, path);
		if (!runs || t->obeyed || t->fit != PATCH_FITS || apply_named(a, t->f->path))
			continue;
		t->obeyed = true;
		a->obeyed++;
		a->fit--;
	}
	buf_fini(&said);
}

int outcome_stage(struct outcome *o, const struct applying *a, struct ava_error *err)
{
	const char *before = o->laid[0] ? o->laid : o->base;
	struct buf paths;
	int rv;

	buf_init(&paths, SAID_MAX);
	for (size_t i = 0; i < a->patch.n; i++)
		if (a->targets[i].fit == PATCH_FITS && !a->targets[i].obeyed)
			buf_add(&paths, a->patch.files[i].path, strlen(a->patch.files[i].path) + 1);
	rv = outcome_add(o, &paths, err);
	buf_fini(&paths);
	if (rv == 0)
		rv = git_say(o->tree, &o->stat, err, "diff", "--cached", "--no-ext-diff",
			     "--no-textconv", "--no-color", "--no-renames", "--summary",
			     "--stat=79", before, NULL);
	if (rv == 0 && outcome_stopped)
		return err_set(err, AVA_ECANCELED, "stopped: nothing changed");
	if (rv == 0 && o->stat.len == 0)
		return err_set(err, AVA_EREJECTED,
			       "there is no branch: to git nothing differs, since its filters and "
			       "line ends (.gitattributes) make the same of what was there");
	return rv;
}

void outcome_show(FILE *f, const struct outcome *o)
{
	const char *end, *at = o->message.data;
	bool head = strcmp(o->base, o->head) == 0;
	size_t n;

	term_print(f, "\nBranch  %s, from %.*s, %s%s\n", outcome_branch(o), ID_SHOWN, o->base,
		   !head        ? "which was HEAD when the run copied the folder"
		   : o->moved   ? "HEAD now; it was another one when the run copied the folder: "
		   : o->onto[0] ? "HEAD of "
				: "HEAD",
		   !head      ? ""
		   : o->moved ? "the patch was tried on this one"
			      : o->onto);
	if (head && o->during)
		term_print(f, "Now     HEAD is in the middle of a %s\n", o->during);
	if (o->laid[0])
		term_print(
			f,
			"Before  a commit with what %zu file%s had uncommitted when the run copied "
			"them\n",
			o->nlaid, o->nlaid == 1 ? "" : "s");
	term_print(f, "Author  %s\n", o->author.data);
	fputs("Message\n", f);
	for (; *at; at = end + (*end == '\n')) {
		end = strchrnul(at, '\n');
		n = (size_t)(end - at);
		fputs("    ", f);
		term_wrapped(f, at, n);
		fputc('\n', f);
	}
	for (at = o->stat.data; *at; at = end + (*end == '\n')) {
		end = strchrnul(at, '\n');
		term_wrapped(f, at, (size_t)(end - at));
		fputc('\n', f);
	}
	fflush(f);
}

/* ---- doing it */

/* A commit of what was copied uncommitted, by plumbing: no hook judges work that is not done. */
static int outcome_commit_laid(struct outcome *o, struct ava_error *err)
{
	char sign[16], id[OUTCOME_ID], message[200];
	int rv;

	(void)GIT_WORD(o->tree, sign, NULL, "config", "--type=bool", "commit.gpgSign");
	snprintf(message, sizeof(message), "Uncommitted work, as run %s found it", o->run);
	rv = GIT_WORD(o->tree, id, err, "commit-tree",
		      strcmp(sign, "true") == 0 ? "-S" : "--no-gpg-sign", "-p", o->base, "-m",
		      message, o->laid);
	return rv != 0 ? rv : git_say(o->tree, &o->stat, err, "reset", "-q", "--soft", id, NULL);
}

int outcome_commit(struct outcome *o, struct ava_error *err)
{
	static const char *const argv[] = {"git", "commit", "-q", "--cleanup=whitespace",
					   "-F",  "-",      NULL};
	char full[300], why[100];
	int rv = o->laid[0] ? outcome_commit_laid(o, err) : 0;

	if (rv == 0)
		rv = git_call(&(struct git_call){o->tree, argv, o->message.data, o->message.len},
			      err);
	if (rv == AVA_EIO)
		return err_wrap(err, rv, "there is no branch, and nothing changed");
	if (rv == 0)
		rv = GIT_WORD(o->tree, o->commit, err, "rev-parse", "HEAD");
	if (rv == 0 && outcome_stopped)
		rv = err_set(err, AVA_ECANCELED,
			     "stopped: there is no branch, and nothing changed");
	snprintf(full, sizeof(full), "refs/heads/%.250s", o->w->branch ? o->w->branch : "");
	snprintf(why, sizeof(why), "branch: made by ava apply %s", o->run);
	if (rv == 0 && o->w->branch)
		rv = git_say(o->cwd, &o->stat, err, "update-ref", "-m", why, full, o->commit, "",
			     NULL);
	else if (rv == 0)
		rv = git_say(o->cwd, NULL, err, "merge", "-q", "--ff-only", o->commit, NULL);
	return rv;
}

/* ---- a request */

/* A command as a shell would take it. */
static void outcome_show_command(const char *const *argv)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./:@=-";

	fputs(" ", stderr);
	for (; *argv; argv++) {
		const char *at = *argv;

		if (**argv && strspn(*argv, plain) == strlen(*argv)) {
			term_print(stderr, " %s", *argv);
			continue;
		}
		fputs(" '", stderr);
		for (; *at; at++) {
			size_t n = strcspn(at, "'\n");

			term_wrapped(stderr, at, n);
			at += n;
			if (!*at)
				break;
			fputs(*at == '\n' ? "\n" : "'\\''", stderr);
		}
		fputs("'", stderr);
	}
	fputs("\n", stderr);
}

/* The remote of the current branch, else origin, else the only one. */
static int outcome_remote(const struct outcome *o, char out[256], struct ava_error *err)
{
	char key[300], all[4096];

	snprintf(key, sizeof(key), "branch.%s.remote", o->onto);
	if (o->onto[0] && git_word(o->cwd, out, 256, NULL, "config", "--get", key, NULL) == 0 &&
	    *out && strcmp(out, ".") != 0)
		return 0;
	snprintf(out, 256, "origin");
	if (GIT_WORD(o->cwd, all, NULL, "remote", "get-url", "origin") == 0)
		return 0;
	if (GIT_WORD(o->cwd, all, err, "remote") == 0 && *all && !strchr(all, '\n') &&
	    strlen(all) < 256) {
		memcpy(out, all, strlen(all) + 1);
		return 0;
	}
	return err_set(err, AVA_EDENIED,
		       "the branch %s is made, and the repository has %s, so it was not pushed",
		       o->w->branch, *all ? "several remotes and none is origin" : "no remote");
}

int outcome_request(const struct outcome *o, bool push, struct ava_error *err)
{
	static const char *const words[][7] = {
		{"gh", "pr", "create", "--head", "--title", "--body", "--base"},
		{"glab", "mr", "create", "--source-branch", "--title", "--description",
		 "--target-branch"}};
	char remote[256], refs[520], url[PATH_MAX] = "", where[PATH_MAX], title[1024];
	const char *body = strchrnul(o->message.data, '\n');
	const char *const *word;
	const char *const pushes[] = {"git", "push", remote, refs, NULL};
	const char *opens[14] = {NULL};
	bool lab, is_there;
	size_t n = 9;
	int rv = outcome_remote(o, remote, err);

	if (rv != 0)
		return rv;
	(void)GIT_WORD(o->cwd, url, NULL, "remote", "get-url", "--push", "--all", remote);
	for (char *nl = url; (nl = strchr(nl, '\n')) != NULL;)
		*nl = ' ';
	lab = strstr(url, "gitlab") || (!start_in_path("gh", where, sizeof(where)) &&
					start_in_path("glab", where, sizeof(where)));
	word = words[lab];
	is_there = start_in_path(word[0], where, sizeof(where));
	snprintf(refs, sizeof(refs), "refs/heads/%s:refs/heads/%s", o->w->branch, o->w->branch);
	snprintf(title, sizeof(title), "%.*s", (int)MIN(body - o->message.data, 1000),
		 o->message.data);
	body += strspn(body, "\n");
	memcpy(opens,
	       (const char *[]){word[0], word[1], word[2], word[3], o->w->branch, word[4], title,
				word[5], body},
	       n * sizeof(*opens));
	if (lab)
		opens[n++] = "--yes";
	if (o->w->base) {
		opens[n++] = word[6];
		opens[n++] = o->w->base;
	}
	if (o->w->draft)
		opens[n++] = "--draft";
	term_print(stderr, "\n%s\n",
		   is_there ? "This pushes it, and opens the request:"
			    : "Neither gh nor glab is in $PATH. This would push it, and open the "
			      "request:");
	outcome_show_command(pushes);
	outcome_show_command(opens);
	if (!is_there)
		return err_set(err, AVA_EREJECTED, "the branch %s is made and was not pushed",
			       o->w->branch);
	if (!push) {
		term_print(stderr, "Push it to %s (%s)? [Yes/No] ", remote, url);
		push = task_yes() == 1;
	}
	if (!push)
		return err_set(err, AVA_EREJECTED,
			       "the branch %s is made and was not pushed (--push says yes without "
			       "a question)",
			       o->w->branch);
	rv = git_call(&(struct git_call){.dir = o->cwd, .argv = pushes}, err);
	if (rv == 0)
		rv = git_call(&(struct git_call){.dir = o->cwd, .argv = opens}, err);
	return rv;
}

void outcome_end(struct outcome *o)
{
	if (o->tree[0])
		outcome_remove(o->tree);
	outcome_signals(SIG_DFL);
	buf_fini(&o->message);
	buf_fini(&o->author);
	buf_fini(&o->stat);
}
