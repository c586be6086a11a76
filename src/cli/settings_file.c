/* See settings_file.h.
 *
 * Happy path: the file is read whole, changed as JSON or text, written beside itself and put in
 * place by a rename, after a copy of what it was. An existing copy stays: it is the person's
 * file, and a later copy would have our part in it. A link is followed, so that a file which lives
 * elsewhere stays there. What can fail: no JSON, a change meanwhile, the disk. Then the file
 * stays as it was. */
#include "cli/settings_file.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"
#include "codec/jscan.h"
#include "codec/json.h"

void settings_file_close(struct settings_file *f)
{
	free(f->was);
	json_decref(f->root);
}

/* The path of the file behind a link, which stays a link, also when its target is missing. Errors
 * are left to the open that follows. */
static void settings_file_follow(const char *path, char out[PATH_MAX])
{
	char to[PATH_MAX], folder[PATH_MAX];
	ssize_t n;

	snprintf(out, PATH_MAX, "%s", path);
	for (int links = 0; links < 40 && !realpath(path, to); links++) {
		n = readlink(out, to, sizeof(to) - 1);
		if (n < 0)
			return;
		to[n] = '\0';
		snprintf(folder, sizeof(folder), "%s", out);
		if (to[0] == '/' || !strchr(folder, '/'))
			snprintf(out, PATH_MAX, "%s", to);
		else if (snprintf(out, PATH_MAX, "%s/%s", dirname(folder), to) >= PATH_MAX)
			return;
	}
	if (realpath(path, to))
		memcpy(out, to, sizeof(to));
}

/* True: writing this part anew loses nothing of it. */
static bool settings_file_is_own(struct slice part)
{
	json_t *v = json_parse(part.s, part.len, NULL);

	json_decref(v);
	return v != NULL;
}

int settings_file_open(struct settings_file *f, const char *path, const char *part,
		       struct ava_error *err)
{
	struct slice odd = {"", 0};
	const char *text;
	struct stat st;
	size_t len;
	int rv;

	*f = (struct settings_file){.mode = 0600};
	settings_file_follow(path, f->path);
	rv = sys_read_file(AT_FDCWD, f->path, SETTINGS_FILE_MAX, &f->was, &f->was_len, err);
	if (rv == AVA_ENOENT) {
		f->root = json_object();
		return 0;
	}
	if (rv != 0)
		return err_wrap(err, rv, "%s", f->path);
	if (stat(f->path, &st) == 0)
		f->mode = st.st_mode & 0777;
	if (!part)
		return 0;
	f->bom = jscan_begins(f->was, f->was_len, "\xef\xbb\xbf") ? 3 : 0;
	text = f->was + f->bom;
	len = f->was_len - f->bom;
	f->root = strspn(text, " \t\r\n") == len ? json_object() /* an empty file has no settings */
						 : json_parse(text, len, err);
	if (!f->root && (f->root = json_read_others(text, len, err)) != NULL) {
		f->odd = part;
		odd = jscan_member(text, len, part);
	}
	if (!f->root || (odd.len > 0 && !settings_file_is_own(odd)))
		return err_wrap(err, AVA_EINVAL, "%s is left as it is, since it is no JSON",
				f->path);
	f->part = json_object_get(f->root, part);
	if (!json_is_object(f->root) || (f->part && !json_is_object(f->part)))
		return err_set(err, AVA_EINVAL,
			       "%s is left as it is, since it or its %s are no JSON object",
			       f->path, part);
	return 0;
}

static int write_whole(const char *path, const char *bytes, size_t len, mode_t mode,
		       struct ava_error *err)
{
	char temp[PATH_MAX + 16];
	int fd, rv = 0;

	snprintf(temp, sizeof(temp), "%s.%d", path, (int)getpid());
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return err_sys(err, "write %.300s", temp);
	if (fchmod(fd, mode) != 0 || sys_write_all(fd, bytes, len, 0) != 0 || fsync(fd) != 0)
		rv = err_sys(err, "write %.300s", temp);
	if (close(fd) != 0 && rv == 0)
		rv = err_sys(err, "write %.300s", temp);
	if (rv == 0 && rename(temp, path) != 0)
		rv = err_sys(err, "put %.300s in its place", path);
	if (rv != 0)
		unlink(temp);
	return rv;
}

int settings_file_write(struct settings_file *f, const char *text, size_t len,
			struct ava_error *err)
{
	char before[PATH_MAX + 16], *now = NULL;
	struct stat st;
	size_t now_len = 0;
	int rv;

	if (sys_make_folders(f->path, false) != 0)
		return err_sys(err, "make the folder of %.300s", f->path);
	rv = sys_read_file(AT_FDCWD, f->path, SETTINGS_FILE_MAX, &now, &now_len, NULL);
	if (f->was ? rv != 0 || now_len != f->was_len || memcmp(now, f->was, now_len) != 0
		   : rv != AVA_ENOENT) {
		free(now);
		return err_set(err, AVA_EBUSY, "%s was changed at the same time: try again",
			       f->path);
	}
	free(now);
	snprintf(before, sizeof(before), "%s.before-ava", f->path);
	rv = f->was && !f->removes && lstat(before, &st) != 0
		     ? write_whole(before, f->was, f->was_len, f->mode, err)
		     : 0;
	return rv != 0 ? rv : write_whole(f->path, text, len, f->mode, err);
}

/* Two blanks a level, as Claude Code writes it, and no more digits than a number needs. */
static char *settings_text(const json_t *root)
{
	const size_t flags = JSON_INDENT(2);
	char *text = json_dumps(root, flags | JSON_REAL_PRECISION(15));
	json_t *again = text ? json_parse(text, strlen(text), NULL) : NULL;

	if (again && !json_equal(again, root)) {
		free(text);
		text = json_dumps(root, flags | JSON_REAL_PRECISION(17));
	}
	json_decref(again);
	return text;
}

/* Replace our part alone in a file that has to stay byte for byte, since it has numbers or
 * characters that we cannot write back. */
static void settings_file_put_part(const struct settings_file *f, struct buf *out)
{
	const char *text = f->was + f->bom, *end = f->was + f->was_len, *rest;
	struct slice was = jscan_member(text, (size_t)(end - text), f->odd);
	json_t *part = json_object_get(f->root, f->odd);
	char *now = part ? settings_text(part) : strdup("{}");

	rest = was.len > 0 ? was.s : strchr(text, '{') + 1;
	buf_add(out, f->was, (size_t)(rest - f->was));
	if (was.len == 0)
		buf_addf(out, "\n  \"%s\": ", f->odd);
	for (const char *at = now; at && *at; at++)
		buf_adds(out, *at == '\n' ? "\n  " : (const char[]){*at, '\0'});
	if (was.len == 0 && json_object_size(f->root) > 1)
		buf_addc(out, ',');
	buf_add(out, rest + was.len, (size_t)(end - rest) - was.len);
	out->failed = out->failed || !now;
	free(now);
}

int settings_file_save(struct settings_file *f, struct ava_error *err)
{
	char *text = settings_text(f->root);
	struct buf out;
	int rv;

	if (!text)
		return err_set(err, AVA_ENOMEM, "out of memory");
	buf_init(&out, 2 * SETTINGS_FILE_MAX);
	if (f->odd) {
		settings_file_put_part(f, &out);
	} else {
		buf_add(&out, f->was, f->bom);
		buf_adds(&out, text);
		buf_addc(&out, '\n');
	}
	free(text);
	rv = buf_check(&out);
	rv = rv != 0 ? err_set(err, rv, "out of memory")
		     : settings_file_write(f, out.data, out.len, err);
	buf_fini(&out);
	return rv;
}

int settings_file_program(char out[PATH_MAX], struct ava_error *err)
{
	char self[PATH_MAX], to[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *path = getenv("PATH");

	if (n <= 0)
		return err_sys(err, "find this program");
	self[n] = '\0';
	for (const char *p = path; p; p = *p ? p + 1 : NULL) {
		int len = (int)strcspn(p, ":");

		if (*p == '/' && snprintf(out, PATH_MAX, "%.*s/ava", len, p) < PATH_MAX &&
		    realpath(out, to) && strcmp(to, self) == 0)
			return 0;
		p += len;
	}
	snprintf(out, PATH_MAX, "%s", self);
	return 0;
}
