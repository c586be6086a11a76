/* The files that a run leaves, as its result names them: outputs of its tools that were kept
 * (runs/S-…/artifacts) and files that commands wrote into its work folder (runs/S-…/work). By
 * pointer: path below the data root, bytes, type; the bytes stay where they are.
 *
 * The work folder is a stranger's: no link, device or FIFO in it is followed, a file's type is
 * what its first bytes say, names are made text, and the list is bounded. Files that cannot be
 * opened are left out. Pool thread. */
#include "subagent/artifacts.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"

#define LOOKED_MAX 10000 /* entries of work folders that are looked at */
#define DEPTH_MAX  16
#define HEAD_BYTES 512 /* read of a file, for its type */

struct artifacts_listing {
	const struct redact *redact;
	struct jw w;
	unsigned listed, looked;
};

static const char *type_of(const char *head, size_t len)
{
	static const struct {
		const char *magic;
		size_t len;
		const char *type;
	} types[] = {
		{"\x89PNG\r\n\x1a\n", 8, "image/png"},
		{"\xff\xd8\xff", 3, "image/jpeg"},
		{"GIF8", 4, "image/gif"},
		{"%PDF-", 5, "application/pdf"},
		{"PK\x03\x04", 4, "application/zip"},
		{"\x1f\x8b", 2, "application/gzip"},
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (len >= types[i].len && memcmp(head, types[i].magic, types[i].len) == 0)
			return types[i].type;
	if (len >= 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBP", 4) == 0)
		return "image/webp";
	/* A character may be cut at the end. */
	for (size_t cut = 0; cut < 4 && cut <= len; cut++)
		if (!memchr(head, 0, len) && utf8_valid(head, len - cut))
			return "text/plain";
	return "application/octet-stream";
}

/* false: the list is full. */
static bool artifacts_add_file(struct artifacts_listing *l, int dir, const char *name,
			       const char *path)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	char head[HEAD_BYTES];
	struct buf text, clean;
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return true;
	n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, head, sizeof(head), 0) : -1;
	close(fd);
	if (n < 0)
		return true;
	if (l->listed++ == ARTIFACTS_MAX)
		return false;
	buf_init(&text, 64u << 10);
	buf_init(&clean, 64u << 10);
	jw_object(&l->w, NULL);
	if (utf8_repair(&text, path, strlen(path)) == 0 &&
	    redact_text(l->redact, &clean, text.data, text.len) >= 0)
		jw_strn(&l->w, "path", clean.data, clean.len);
	jw_int(&l->w, "bytes", st.st_size);
	jw_str(&l->w, "type", type_of(head, (size_t)n));
	jw_end(&l->w);
	buf_fini(&text);
	buf_fini(&clean);
	return true;
}

static int artifacts_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Hidden names (.cache) are a program's own files, no result. */
static int artifacts_is_shown(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* `fd` is *taken*; `path` has room for PATH_MAX. */
static bool add_folder(struct artifacts_listing *l, int fd, char *path, int depth)
{
	size_t len = strlen(path);
	struct dirent **names = NULL;
	int n = fd >= 0 ? scandirat(fd, ".", &names, artifacts_is_shown, artifacts_by_name) : 0;
	bool room = true;

	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		struct stat st;

		if (!room || l->looked++ >= LOOKED_MAX ||
		    fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    len + strlen(name) + 2 > PATH_MAX)
			continue;
		path[len] = '/';
		memcpy(path + len + 1, name, strlen(name) + 1);
		if (S_ISREG(st.st_mode))
			room = artifacts_add_file(l, fd, name, path);
		else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			room = add_folder(
				l,
				openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
				path, depth + 1);
		path[len] = 0;
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	if (fd >= 0)
		close(fd);
	return room;
}

void artifacts_list(struct buf *out, int root_fd, const struct redact *redact, const char *kept,
		    const char *work)
{
	struct artifacts_listing l = {.redact = redact};
	char path[PATH_MAX];
	json_t *list, *v;
	struct buf all;
	size_t i;

	buf_init(&all, 1u << 20);
	buf_addf(&all, "[%s]", kept);
	list = json_parse(all.data ? all.data : "", all.len, NULL);
	jw_init(&l.w, out);
	jw_array(&l.w, NULL);
	json_array_foreach(list, i, v)
		artifacts_add_file(&l, root_fd, json_string_value(v), json_string_value(v));
	snprintf(path, sizeof(path), "%s", work);
	if (!add_folder(&l, openat(root_fd, work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
			path, 0)) {
		jw_object(&l.w, NULL);
		jw_str(&l.w, "path", work);
		jw_bool(&l.w, "more", true);
		jw_end(&l.w);
	}
	jw_end(&l.w);
	json_decref(list);
	buf_fini(&all);
}
