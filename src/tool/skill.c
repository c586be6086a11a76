/* Folders of skills, and read_skill, with which a run opens one.
 *
 * Happy path: the folder is read whole, its hash is the confirmed one, and the text of SKILL.md
 * goes to the model, or that of a file beside it, with the names of the others. Where the run may
 * run commands, a copy of exactly these bytes is laid into its work folder, so that scripts run
 * in the sandbox and nowhere else; nothing runs by itself. The work folder is written by commands
 * of the model, also meanwhile: each folder of the copy is opened without following links, and
 * each file is made anew.
 *
 * What can fail: a skill that the run was not confirmed with, or that changed since then; folders
 * over the limits; the disk, where only the copy is missing then. */
#include "tool/skill.h"

#include <ava.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tool.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "tool/job.h"
#include "tool/root.h"

#define DEPTH_MAX 8    /* folders inside each other */
#define NAMES_MAX 2048 /* names in one folder */
/* What changed so shortly ago may change again within the same time stamp. */
#define SETTLED_MS  1000
#define FILES_NAMED 60
#define COPIES      ".skills" /* folder of the copies, in the work folder */

/* ---- a walk over the folder */

struct skill_walk {
	int (*file)(struct skill_walk *w, int dirfd, const char *name, const struct stat *st);
	void *user;
	struct ava_error *err;
	char path[PATH_MAX]; /* below the folder */
	size_t len;          /* of `path`, up to the folder being walked */
	unsigned files, left;
	int64_t bytes;
};

static int skill_has(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int skill_walk_dir(struct skill_walk *w, int fd, unsigned depth);

static int skill_walk_one(struct skill_walk *w, int fd, const char *name, unsigned depth)
{
	size_t at = w->len;
	struct stat st;
	int dir, rv = 0;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0; /* removed since */
	if (!utf8_valid(name, strlen(name)) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		w->left++;
		return 0;
	}
	if (at + strlen(name) + 2 > sizeof(w->path))
		return err_set(w->err, AVA_ETOOBIG, "a path in it is too long");
	w->len += (size_t)snprintf(w->path + at, sizeof(w->path) - at, "%s%s", at ? "/" : "", name);
	if (S_ISDIR(st.st_mode)) {
		dir = root_open_entry(fd, name, true);
		rv = dir < 0 ? err_sys(w->err, "open %.200s", w->path)
			     : skill_walk_dir(w, dir, depth + 1);
	} else {
		w->files++;
		w->bytes += st.st_size;
		rv = w->files > SKILL_FILES_MAX || w->bytes > SKILL_BYTES_MAX
			     ? err_set(w->err, AVA_ETOOBIG,
				       "a skill has at most %u files of %u MB together",
				       SKILL_FILES_MAX, SKILL_BYTES_MAX >> 20)
			     : w->file(w, fd, name, &st);
	}
	w->len = at;
	w->path[at] = '\0';
	return rv;
}

/* `fd` is *taken*. */
static int skill_walk_dir(struct skill_walk *w, int fd, unsigned depth)
{
	struct dirent **names = NULL;
	int n = scandirat(fd, ".", &names, skill_has, alphasort);
	int rv = n < 0 ? err_sys(w->err, "read %.200s", w->path) : 0;

	if (n > NAMES_MAX || (n > 0 && depth > DEPTH_MAX))
		rv = err_set(w->err, AVA_ETOOBIG,
			     "a folder of a skill has at most %d names, %d levels deep", NAMES_MAX,
			     DEPTH_MAX);
	for (int i = 0; i < n; i++) {
		if (rv == 0)
			rv = skill_walk_one(w, fd, names[i]->d_name, depth);
		free(names[i]);
	}
	free(names);
	close(fd);
	return rv;
}

static int skill_walk(struct skill_walk *w, const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? err_sys(w->err, "open it") : skill_walk_dir(w, fd, 0);
}

/* ---- reading it */

void skill_files_fini(struct skill_files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->items[i].path);
		free(f->items[i].data);
	}
	free(f->items);
	*f = (struct skill_files){0};
}

static int load_file(struct skill_walk *w, int dirfd, const char *name, const struct stat *seen)
{
	struct skill_files *f = w->user;
	int fd = root_open_entry(dirfd, name, false), rv = 0;
	struct skill_file one = {0};
	struct stat st;
	ssize_t got = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == seen->st_size &&
	    (one.data = malloc((size_t)st.st_size + 1)) != NULL)
		got = sys_read_some(fd, one.data, (size_t)st.st_size, 0);
	if (fd >= 0)
		close(fd);
	one.path = strdup(w->path);
	if (got < 0)
		rv = err_set(w->err, AVA_EIO, "%.200s cannot be read", w->path);
	else if (!one.path || !ARRAY_ROOM(f->items, f->cap, f->n + 1))
		rv = err_set(w->err, AVA_ENOMEM, "out of memory");
	if (rv != 0) {
		free(one.path);
		free(one.data);
		return rv;
	}
	one.data[got] = '\0';
	one.len = (size_t)got;
	one.runs = (st.st_mode & S_IXUSR) != 0;
	f->items[f->n++] = one;
	return 0;
}

static int skill_by_path(const void *a, const void *b)
{
	return strcmp(((const struct skill_file *)a)->path, ((const struct skill_file *)b)->path);
}

int skill_load(const char *folder, struct skill_files *out, struct ava_error *err)
{
	struct skill_files f = {0};
	struct skill_walk w = {.file = load_file, .user = &f, .err = err};
	struct hash_sha256 all;
	char one[HASH_HEX_LEN + 1];
	int rv = skill_walk(&w, folder);

	if (rv != 0) {
		skill_files_fini(&f);
		return rv;
	}
	if (f.n > 0)
		qsort(f.items, f.n, sizeof(*f.items), skill_by_path);
	hash_sha256_init(&all);
	for (size_t i = 0; i < f.n; i++) {
		hash_sha256_hex(f.items[i].data, f.items[i].len, one);
		hash_sha256_add(&all, one, HASH_HEX_LEN);
		hash_sha256_add(&all, f.items[i].runs ? "x" : "-", 1);
		hash_sha256_add(&all, f.items[i].path, strlen(f.items[i].path) + 1);
	}
	hash_sha256_with(&all, "", 0, f.hash);
	f.bytes = w.bytes;
	f.left = w.left;
	*out = f;
	return 0;
}

const struct skill_file *skill_file_of(const struct skill_files *f, const char *path)
{
	path += strncmp(path, "./", 2) == 0 ? 2 : 0;
	for (size_t i = 0; i < f->n; i++)
		if (*path ? strcmp(f->items[i].path, path) == 0
			  : strcasecmp(f->items[i].path, SKILL_FILE) == 0)
			return &f->items[i];
	return NULL;
}

/* ---- has it changed? */

struct skill_stamping {
	struct hash_sha256 all;
	int64_t newest_ms;
};

static int stamp_file(struct skill_walk *w, int dirfd, const char *name, const struct stat *st)
{
	struct skill_stamping *s = w->user;
	const int64_t facts[] = {(int64_t)st->st_ino,         (int64_t)st->st_dev,
				 (int64_t)st->st_size,        (int64_t)st->st_mode,
				 (int64_t)st->st_mtim.tv_sec, (int64_t)st->st_mtim.tv_nsec,
				 (int64_t)st->st_ctim.tv_sec, (int64_t)st->st_ctim.tv_nsec};

	(void)dirfd;
	(void)name;
	hash_sha256_add(&s->all, w->path, w->len + 1);
	hash_sha256_add(&s->all, facts, sizeof(facts));
	s->newest_ms = MAX(s->newest_ms, (int64_t)st->st_ctim.tv_sec * 1000);
	return 0;
}

int skill_stamp(const char *path, uint64_t *stamp, bool *settled, struct ava_error *err)
{
	struct skill_stamping s = {0};
	struct skill_walk w = {.file = stamp_file, .user = &s, .err = err};
	unsigned char digest[32];
	struct stat st;
	int rv = stat(path, &st) == 0 ? 0 : err_sys(err, "open it");

	hash_sha256_init(&s.all);
	if (rv == 0)
		rv = S_ISDIR(st.st_mode) ? skill_walk(&w, path) : stamp_file(&w, -1, "", &st);
	if (rv != 0)
		return rv;
	hash_sha256_end(&s.all, digest);
	memcpy(stamp, digest, sizeof(*stamp));
	*settled = clock_wall_ms() - s.newest_ms >= SETTLED_MS;
	return 0;
}

/* ---- read_skill: the copy in the work folder */

/* Opens folder `name` of the open folder, which it makes; never through a link. */
static int open_made(int at, const char *name)
{
	int fd = root_open_entry(at, name, true);

	if (fd >= 0)
		return fd;
	(void)unlinkat(at, name, 0); /* a link or a file of the model's */
	return mkdirat(at, name, 0700) == 0 ? root_open_entry(at, name, true) : -1;
}

static bool lay_file(int skill, const struct skill_file *f)
{
	char part[PATH_MAX];
	const char *from = f->path, *slash;
	int at = dup(skill), next, fd = -1;
	bool ok;

	for (; at >= 0 && (slash = strchr(from, '/')) != NULL; from = slash + 1) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - from), from);
		next = open_made(at, part);
		close(at);
		at = next;
	}
	if (at >= 0) {
		(void)unlinkat(at, from, 0);
		fd = openat(at, from, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    f->runs ? 0700 : 0600);
		close(at);
	}
	ok = fd >= 0 && sys_write_all(fd, f->data, f->len, 0) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Lays the files into .skills/NAME of the work folder. */
static bool lay_copy(struct tool_env *env, const char *name, const struct skill_files *f)
{
	char work[PATH_MAX];
	int fd, skills, at = -1;
	bool ok;

	if (job_make_work(env, work, NULL) != 0)
		return false;
	fd = open(work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	skills = fd >= 0 ? open_made(fd, COPIES) : -1;
	at = skills >= 0 ? open_made(skills, name) : -1;
	ok = at >= 0;
	for (size_t i = 0; ok && i < f->n; i++)
		ok = lay_file(at, &f->items[i]);
	for (size_t i = 0; i < 3; i++) {
		int one = (const int[]){at, skills, fd}[i];

		if (one >= 0)
			close(one);
	}
	return ok;
}

/* ---- read_skill: the answer */

static const struct tool_skill *skill_named(const struct tool_env *env, const char *name)
{
	for (size_t i = 0; i < env->nskills; i++)
		if (strcasecmp(env->skills[i].name, name) == 0)
			return &env->skills[i];
	return NULL;
}

static int no_skill(const struct tool_env *env, const char *name, struct ava_error *err)
{
	struct buf names;

	buf_init(&names, 300);
	for (size_t i = 0; i < env->nskills; i++)
		buf_addf(&names, "%s%s", i ? ", " : "", env->skills[i].name);
	err_set(err, AVA_ENOENT, "there is no skill %.60s; there are %.*s", name, (int)names.len,
		names.data ? names.data : "");
	buf_fini(&names);
	return AVA_ENOENT;
}

static bool skill_is_text(const struct skill_file *f)
{
	return f->len <= SKILL_TEXT_MAX && utf8_valid(f->data, f->len) &&
	       memchr(f->data, '\0', f->len) == NULL;
}

static void say_skill_files(struct buf *out, const struct skill_files *f)
{
	size_t shown = 0;

	for (size_t i = 0; i < f->n && shown < FILES_NAMED; i++) {
		if (&f->items[i] == skill_file_of(f, ""))
			continue;
		buf_adds(out, shown++ ? ", " : "\nFiles beside it: ");
		job_name(out, f->items[i].path);
		buf_addf(out, " (%s)", format_bytes((int64_t)f->items[i].len).text);
	}
	if (f->n > shown + 1)
		buf_addf(out, " and %zu more", f->n - shown - 1);
	if (shown > 0)
		buf_addc(out, '\n');
}

static int skill_answer(struct tool_call *c, const struct tool_skill *s, const char *path,
			const struct skill_files *f, struct ava_error *err)
{
	const struct skill_file *one = skill_file_of(f, path);
	struct buf *out = &c->out;

	if (!one)
		return err_set(
			err, AVA_ENOENT,
			"the skill %s has no file %.200s: leave file out to see which it has",
			s->name, path);
	if (skill_is_text(one)) {
		buf_add(out, one->data, one->len);
		if (one->len > 0 && one->data[one->len - 1] != '\n')
			buf_addc(out, '\n');
	} else {
		job_name(out, one->path);
		buf_addf(out, " is no text that can be shown (%s).\n",
			 format_bytes((int64_t)one->len).text);
	}
	if (!*path)
		say_skill_files(out, f);
	if (c->env->commands && f->n > 1)
		buf_addf(out,
			 lay_copy(c->env, s->name, f)
				 ? "A copy of all of it lies in ~/" COPIES
				   "/%s for your commands.\n"
				 : "Its files could not be copied for your commands (%s).\n",
			 s->name);
	return 0;
}

static int skill_job(struct tool_call *c, struct ava_error *err)
{
	const char *name, *path = NULL;
	const struct tool_skill *s;
	struct skill_files f;
	int rv = job_arg_str(c->args, "name", &name, err);

	rv = rv ? rv : job_arg_str(c->args, "file", &path, err);
	if (rv != 0)
		return rv;
	s = skill_named(c->env, name ? name : "");
	if (!s)
		return no_skill(c->env, name ? name : "", err);
	if (skill_load(s->path, &f, err) != 0)
		return err_wrap(err, err->code, "the skill %s cannot be read: go on without it",
				s->name);
	if (strcmp(f.hash, s->hash) == 0)
		rv = skill_answer(c, s, path ? path : "", &f, err);
	else
		rv = err_set(err, AVA_EDENIED,
			     "the skill %s has changed since this run was confirmed: go on without "
			     "it, and say so in the caveats",
			     s->name);
	skill_files_fini(&f);
	return rv;
}

static void read_skill_start(struct tool_call *c)
{
	job_start(c, skill_job);
}

static void read_skill_activity(const json_t *args, struct buf *out)
{
	buf_adds(out, "Opening the skill ");
	job_name(out, json_str(args, "name"));
}

const struct tool tool_read_skill = {
	.name = "read_skill",
	.description = "Open one of the skills that the first message lists: how to do a kind of "
		       "work, in the person's words. Open it before you begin with what it is for; "
		       "a file beside it only when its text says so.",
	.schema = "{\"type\":\"object\",\"properties\":{"
		  "\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":100,"
		  "\"description\":\"As listed.\"},"
		  "\"file\":{\"type\":\"string\",\"maxLength\":1000,\"description\":"
		  "\"A file beside it, by its path there; without it the skill's own text.\"}},"
		  "\"required\":[\"name\"],\"additionalProperties\":false}",
	.brief = "",
	.flags = TOOL_REPEATABLE | TOOL_PRIVATE | TOOL_FILES,
	.start = read_skill_start,
	.activity = read_skill_activity,
};
