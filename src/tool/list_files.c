/* list_files: which files the project has, one path a line, in the order of their names.
 *
 * A walk that opens nothing but folders: what .gitignore names is left out, links are not
 * followed. It ends early at max_results and says so. What can fail: the folder named is
 * not there, memory. */
#include <ava.h>
#include <limits.h>
#include <string.h>

#include "base/util.h"
#include "codec/json.h"
#include "tool/ignore.h"
#include "tool/job.h"
#include "tool/root.h"

#define RESULTS_DEFAULT 500

struct files {
	struct buf *out;
	struct gate gate;
	struct wild_glob glob;
	size_t n, max, skip; /* skip: bytes of a path that name the listed folder, for globs */
	bool full;           /* `max` is reached, and there was one more entry */
};

static int files_one(void *user, int dirfd, const char *name, const char *path)
{
	struct files *f = user;

	if (!wild_glob_match(&f->glob, path, f->skip))
		return 0;
	f->full = f->n == f->max;
	if (f->full)
		return 1;
	f->n++;
	return buf_addf(f->out, "%s\n", path);
}

static int files_poll(void *user)
{
	return gate_check(&((struct files *)user)->gate);
}

static int files_run(struct tool_call *c, struct ava_error *err)
{
	struct root root = {c->env->cwd_fd, c->env->cwd, c->env->keep_out};
	struct files f = {.out = &c->out, .gate = gate_of(c)};
	struct walk w = {.root = &root, .file = files_one, .poll = files_poll, .user = &f};
	const char *path, *glob;
	char start[PATH_MAX];
	int rv = job_arg_str(c->args, "path", &path, err);

	if (rv == 0)
		rv = job_arg_str(c->args, "glob", &glob, err);
	if (rv == 0)
		rv = root_path(&root, path ? path : ".", start, err);
	if (rv == 0 && glob)
		rv = wild_glob_init(&f.glob, glob, err);
	if (rv != 0)
		return rv;
	f.max = (size_t)json_get_int(c->args, "max_results", RESULTS_DEFAULT);
	f.skip = strcmp(start, ".") != 0 ? strlen(start) + 1 : 0;
	w.start = start;
	rv = walk_run(&w, err);
	if (rv >= 0) { /* 1: the list is full */
		const struct {
			size_t n;
			const char *what;
		} left_out[] = {{w.unreadable, "folders unreadable"},
				{w.odd, "skipped for names that are no text"},
				{w.deep, "folders too deep"},
				{w.crowded, "folders with too many files"},
				{w.slow, "ignore files that are too slow, so that all is shown"}};
		buf_addf(f.out, "%zu file%s", f.n, f.n == 1 ? "" : "s");
		for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
			if (left_out[i].n > 0)
				buf_addf(f.out, ", %zu %s", left_out[i].n, left_out[i].what);
		buf_adds(f.out, f.full ? "; there are more: narrow it with path or glob, or raise "
					 "max_results\n"
				       : "\n");
		rv = 0;
	}
	wild_glob_fini(&f.glob);
	return rv;
}

static void files_start(struct tool_call *c)
{
	job_start(c, files_run);
}

static void files_activity(const json_t *args, struct buf *out)
{
	const char *path = json_get_str(args, "path");

	buf_adds(out, "Listing ");
	job_name(out, path && strcmp(path, ".") != 0 ? path : "the files");
}

const struct tool tool_list_files = {
	.name = "list_files",
	.description =
		"List the files of the project, one path a line. Use it to see how a project is "
		"laid out or to find files by their name before reading; to find text in files "
		"use search_codebase. Files that .gitignore names are left out.",
	.schema = "{\"type\":\"object\",\"properties\":{"
		  "\"path\":{\"type\":\"string\",\"maxLength\":4096,\"description\":\"Folder to "
		  "list, relative to the working folder. Default: all of it.\"},"
		  "\"glob\":{\"type\":\"string\",\"maxLength\":1000,\"description\":\"Only files "
		  "whose name fits, with * and {a,b}; with a slash the path; ** is any folder.\"},"
		  "\"max_results\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":5000,"
		  "\"description\":\"Default 500.\"}},"
		  "\"additionalProperties\":false}",
	.brief = "path glob",
	.flags = TOOL_REPEATABLE | TOOL_FILES | TOOL_PRIVATE,
	.start = files_start,
	.activity = files_activity,
};
