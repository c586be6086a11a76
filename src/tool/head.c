/* From the folder up to the first .git: a folder, or a file that says where it is. HEAD there holds
 * the id of a commit, or the name of a branch, whose id lies in a file of that name or in
 * packed-refs; a worktree has those two in the folder that its commondir names.
 *
 * Whatever stands there is a person's, or was made by a run of another program: only hex digits of
 * the length of an id are taken from it. */
#include "tool/copy.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

#define HEAD_FILE ((size_t)4096)
#define REFS_FILE ((size_t)64 << 20)

/* The text of DIR/NAME without the newlines at its end; *owned*, or NULL. */
static char *head_text(const char *dir, const char *name, size_t max)
{
	char path[PATH_MAX], *text = NULL;
	size_t len = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path) ||
	    sys_read_file(AT_FDCWD, path, max, &text, &len, NULL) != 0)
		return NULL;
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		text[--len] = '\0';
	return text;
}

static bool head_is_id(const char *text, size_t len)
{
	return (len == 40 || len == COPY_HEAD_MAX) && strspn(text, "0123456789abcdef") >= len;
}

/* Makes `dir` the folder that its file `name` leads to, behind `word`. False: there is none. */
static bool head_go(char dir[PATH_MAX], const char *name, const char *word)
{
	char *text = head_text(dir, name, HEAD_FILE), to[PATH_MAX];
	const char *at = text && strncmp(text, word, strlen(word)) == 0 ? text + strlen(word) : "";
	bool fits = *at && (size_t)snprintf(to, sizeof(to), "%s%s%s", *at == '/' ? "" : dir,
					    *at == '/' ? "" : "/", at) < sizeof(to);

	if (fits)
		memcpy(dir, to, strlen(to) + 1);
	free(text);
	return fits;
}

/* The folder of the repository's HEAD. */
static bool head_folder(const char *folder, char out[PATH_MAX])
{
	char *end;

	if (folder[0] != '/' || strlen(folder) >= PATH_MAX - 8)
		return false;
	for (memcpy(out, folder, strlen(folder) + 1);; *end = '\0') {
		char *text;

		end = out + strlen(out);
		memcpy(end, "/.git", 6);
		text = head_text(out, "HEAD", HEAD_FILE);
		free(text);
		if (text)
			return true;
		*end = '\0';
		if (head_go(out, ".git", "gitdir: "))
			return true;
		end = strrchr(out, '/');
		if (!end)
			return false;
	}
}

/* The id behind which the file has the branch, in lines "ID NAME". */
static bool head_packed(const char *text, const char *branch, char out[COPY_HEAD_MAX + 1])
{
	size_t len = strlen(branch);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		size_t id;

		at += *at == '\n';
		id = strcspn(at, " \n");
		if (at[id] != ' ' || strncmp(at + id + 1, branch, len) != 0 ||
		    (at[id + 1 + len] != '\n' && at[id + 1 + len] != '\0'))
			continue;
		if (!head_is_id(at, id))
			return false;
		memcpy(out, at, id);
		out[id] = '\0';
		return true;
	}
	return false;
}

static bool head_taken(char *text, char out[COPY_HEAD_MAX + 1])
{
	bool is = text && head_is_id(text, strlen(text));

	if (is)
		memcpy(out, text, strlen(text) + 1);
	free(text);
	return is;
}

bool head_read(const char *folder, char out[COPY_HEAD_MAX + 1])
{
	char dir[PATH_MAX], *head, *branch, *packed;
	bool found = false;

	if (!head_folder(folder, dir))
		return false;
	head = head_text(dir, "HEAD", HEAD_FILE);
	if (!head || strncmp(head, "ref: refs/", 10) != 0)
		return head_taken(head, out);
	branch = head + 5;
	(void)head_go(dir, "commondir", "");
	if (!strstr(branch, ".."))
		found = head_taken(head_text(dir, branch, HEAD_FILE), out);
	packed = found ? NULL : head_text(dir, "packed-refs", REFS_FILE);
	found = found || head_packed(packed, branch, out);
	free(packed);
	free(head);
	return found;
}
