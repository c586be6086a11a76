/* Removing pruned files, all of them; see prune_away.h.
 *
 * Files are removed one by one, and a crash between two would leave half a run that no later
 * pruning finds. So their names stand in seals/pruning first, one path a line (a folder ends with a
 * slash), and the next process that opens the root goes on. The list is removed when the removals
 * are durable. */
#include "ava/prune_away.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "journal/files.h"
#include "tool/copy.h"

#define AWAY_PATH "seals/pruning"
#define AWAY_MAX  ((size_t)1 << 30)
#define DEPTH_MAX 64

int prune_away_begin(int rootfd, const struct files_names *files, const struct files_names *runs,
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
	return rv;
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

/* Removes folders made by commands of the run, which may be deeper than any path, or without
 * rights. */
static void remove_made(int rootfd, const char *run)
{
	static const char *const names[] = {"work", "copy", "copy.new"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[FILES_BUF + 16];

		snprintf(path, sizeof(path), "%s/%s", run, names[i]);
		copy_remove(rootfd, path);
	}
}

/* Removes the path of a line if it is one that pruning removes; a person may have edited the
 * list. */
static int prune_away_remove_one(int rootfd, const char *line, size_t len, struct ava_error *err)
{
	char path[FILES_BUF];
	bool folder = len > 0 && line[len - 1] == '/';

	if (len >= sizeof(path))
		return 0;
	snprintf(path, sizeof(path), "%.*s", (int)(len - folder), line);
	if (folder && (strncmp(path, "runs/", 5) != 0 || !id_is_run(path + 5)))
		return 0;
	if (folder) {
		remove_made(rootfd, path);
		return remove_tree(rootfd, path, 0, err);
	}
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
