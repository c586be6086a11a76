/* Changing config.yaml; see config_store.h.
 *
 * Happy path: read the tree, find where the two values stand or belong, change
 * those bytes, read the result again and compare: the two values are the new
 * ones and all else is as it was. Only then the file is replaced. What can
 * fail: a file that is broken already, one whose form (flow style, aliases) is
 * left to the person, the disk. */
#include "ava/config_store.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/yaml.h"
#include "provider/provider.h"

struct edit {
	const char *name, *text, *base_url, *model;
	size_t len;
	struct ava_error *err;
};

/* ---- places in the text */

/* Bytes of the line break at `s`, of those that YAML knows; 0: none is there. */
static size_t line_break(const char *s, size_t left)
{
	static const char *const breaks[] = {"\r\n",     "\n",           "\r",
					     "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};

	for (size_t i = 0; i < ARRAY_LEN(breaks); i++)
		if (left >= strlen(breaks[i]) && memcmp(s, breaks[i], strlen(breaks[i])) == 0)
			return strlen(breaks[i]);
	return 0;
}

static size_t line_start(const struct edit *e, unsigned line)
{
	size_t at = 0, n;

	for (unsigned i = 1; i < line && at < e->len; at += n ? n : 1) {
		n = line_break(e->text + at, e->len - at);
		i += n > 0;
	}
	return at;
}

/* Byte of a column, which counts characters. */
static size_t place(const struct edit *e, unsigned line, unsigned column)
{
	size_t at = line_start(e, line);

	if (line == 1 && e->len >= 3 && memcmp(e->text, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	for (; column > 0 && at < e->len; column--)
		for (at++; at < e->len && ((unsigned char)e->text[at] & 0xc0) == 0x80;)
			at++;
	return at;
}

/* `out` = the text with `put` in place of bytes [from, to). */
static int put_between(const struct edit *e, size_t from, size_t to, const struct buf *put,
		       struct buf *out)
{
	buf_reset(out);
	buf_add(out, e->text, from);
	/* A last line without its end gets one before another follows. */
	if (from == e->len && from > 0 && !strchr("\r\n", e->text[from - 1]))
		buf_addc(out, '\n');
	buf_add(out, put->data, put->len);
	buf_add(out, e->text + to, e->len - to);
	return buf_check(out);
}

/* ---- the four forms */

static void add_indent(struct buf *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		buf_addc(b, ' ');
}

static int by_hand(const struct edit *e, unsigned line)
{
	return err_set(e->err, AVA_EUNSUPPORTED,
		       "%s:%u: this is written in a way that is not changed here: put "
		       "providers.local.base_url: \"%.100s\" and model: \"%.80s\" there by hand",
		       e->name, line, e->base_url, e->model);
}

static const char *value_of(const struct edit *e, const char *key)
{
	return strcmp(key, "model") == 0 ? e->model : e->base_url;
}

/* New lines below `parent`: what of the path is not there yet. */
static int insert(const struct edit *e, const struct yaml_node *parent, const char *key,
		  struct buf *out)
{
	bool root = parent->key == NULL;
	unsigned indent =
		parent->first ? parent->first->key_column : (root ? 0 : parent->key_column + 2);
	size_t at = root ? e->len : line_start(e, parent->key_line + 1);
	struct buf put;
	int rv;

	if (parent->flow || parent->alias ||
	    (parent->first && parent->first->key_line == parent->key_line))
		return by_hand(e, parent->line);
	buf_init(&put, 4096);
	for (; strcmp(key, "providers") == 0 || strcmp(key, "local") == 0; indent += 2) {
		add_indent(&put, indent);
		buf_addf(&put, "%s:\n", key);
		key = strcmp(key, "providers") == 0 ? "local" : "base_url";
	}
	add_indent(&put, indent);
	buf_addf(&put, "%s: \"%s\"\n", key, value_of(e, key));
	rv = buf_check(&put);
	if (rv == 0)
		rv = put_between(e, at, at, &put, out);
	buf_fini(&put);
	return rv;
}

static int replace(const struct edit *e, const struct yaml_node *n, struct buf *out)
{
	struct buf put;
	int rv;

	if (n->kind != YAML_SCALAR || n->alias || n->line != n->end_line)
		return by_hand(e, n->line);
	buf_init(&put, 1024);
	buf_addf(&put, "%s\"%s\"", yaml_is_null(n) && n->len == 0 ? " " : "", value_of(e, n->key));
	rv = buf_check(&put);
	if (rv == 0)
		rv = put_between(e, place(e, n->line, n->column), place(e, n->line, n->end_column),
				 &put, out);
	buf_fini(&put);
	return rv;
}

/* One of the two values. */
static int set_value(const struct edit *e, const char *key, struct buf *out)
{
	const char *const steps[] = {"providers", "local", key};
	const struct yaml_node *n, *parent;
	struct yaml *y;
	int rv = yaml_parse(&y, e->name, e->text, e->len, e->err);
	size_t i = 0;

	if (rv != 0)
		return rv;
	n = yaml_root(y);
	for (parent = n; i < ARRAY_LEN(steps); i++, parent = n) {
		n = yaml_get(parent, steps[i]);
		if (!n || (i < 2 && parent->kind != YAML_MAP))
			break;
	}
	if (n)
		rv = replace(e, n, out);
	else if (parent->kind == YAML_MAP || (yaml_is_null(parent) && parent->len == 0))
		rv = insert(e, parent, steps[i], out);
	else
		rv = by_hand(e, parent->line);
	yaml_free(y);
	return rv;
}

/* ---- checking the result */

static bool is_ours(const char *path, const struct edit *e, const struct yaml_node *n)
{
	const char *want = strcmp(path, ".providers.local.base_url") == 0 ? e->base_url
			   : strcmp(path, ".providers.local.model") == 0  ? e->model
									  : NULL;

	return want && n->kind == YAML_SCALAR && strcmp(n->text, want) == 0;
}

/* Everything of `old` stands in `now` as it was, but for our two values. */
static bool kept(const struct edit *e, const struct yaml_node *old, const struct yaml_node *now,
		 const char *path)
{
	const struct yaml_node *b = now->first;

	if (is_ours(path, e, now))
		return true;
	if (old->kind == YAML_SCALAR && yaml_is_null(old) &&
	    (strcmp(path, ".providers") == 0 || strcmp(path, ".providers.local") == 0))
		return now->kind == YAML_MAP;
	if (old->kind != now->kind || old->plain != now->plain)
		return false;
	if (old->kind == YAML_SCALAR)
		return old->len == now->len && strcmp(old->text, now->text) == 0;
	for (const struct yaml_node *a = old->first; a; a = a->next) {
		char deeper[600];

		snprintf(deeper, sizeof(deeper), "%s.%s", path, a->key ? a->key : "");
		if (a->key)
			b = yaml_get(now, a->key);
		if (!b || !kept(e, a, b, deeper))
			return false;
		b = b->next;
	}
	return old->kind == YAML_MAP || !b;
}

static int check_result(const struct edit *e, const struct buf *result)
{
	struct yaml *old = NULL, *now = NULL;
	const struct yaml_node *local, *url, *model;
	int rv = yaml_parse(&old, e->name, e->text, e->len, e->err);

	if (rv == 0 && yaml_parse(&now, e->name, result->data, result->len, NULL) != 0)
		rv = by_hand(e, 1);
	if (rv == 0) {
		local = yaml_get(yaml_get(yaml_root(now), "providers"), "local");
		url = yaml_get(local, "base_url");
		model = yaml_get(local, "model");
		if (!url || !model || !is_ours(".providers.local.base_url", e, url) ||
		    !is_ours(".providers.local.model", e, model) ||
		    !kept(e, yaml_root(old), yaml_root(now), ""))
			rv = by_hand(e, local ? local->line : 1);
	}
	yaml_free(old);
	yaml_free(now);
	return rv;
}

static int check_values(const struct edit *e)
{
	char url[PROVIDER_URL_MAX];
	size_t len = strlen(e->model);

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)e->model[i] <= ' ' || strchr("\"\\\x7f", e->model[i]))
			len = 0;
	if (len == 0 || len > 120)
		return err_set(e->err, AVA_EINVAL, "\"%.60s\" is no name of a model", e->model);
	return provider_check_url("the address", e->base_url, url, e->err);
}

int config_edit_local(const char *name, const char *text, size_t len, const char *base_url,
		      const char *model, struct buf *out, struct ava_error *err)
{
	struct edit e = {.name = name,
			 .text = text,
			 .len = len,
			 .base_url = base_url,
			 .model = model,
			 .err = err};
	struct edit second = e;
	struct buf first;
	int rv = check_values(&e);

	if (rv != 0)
		return rv;
	buf_init(&first, YAML_BYTES_MAX);
	rv = set_value(&e, "base_url", &first);
	second.text = first.data;
	second.len = first.len;
	if (rv == 0)
		rv = set_value(&second, "model", out);
	if (rv == 0)
		rv = check_result(&e, out);
	buf_fini(&first);
	return rv;
}

/* ---- the file */

static int write_file(int dirfd, const char *file, mode_t mode, const struct buf *b,
		      struct ava_error *err)
{
	char temp[NAME_MAX + 1];
	int fd, rv = 0;

	snprintf(temp, sizeof(temp), ".config.yaml.%d", getpid());
	(void)sys->unlinkat(dirfd, temp, 0);
	fd = sys->openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return err_sys(err, "%s", temp);
	if (fchmod(fd, mode) != 0 || sys_write_all(fd, b->data, b->len, 0) != 0 ||
	    sys->fsync(fd) != 0 || sys->renameat(dirfd, temp, dirfd, file) != 0 ||
	    sys->fsync(dirfd) != 0)
		rv = err_sys(err, "%s", file);
	sys->close(fd);
	if (rv != 0)
		(void)sys->unlinkat(dirfd, temp, 0);
	return rv;
}

/* `path` of the file itself, when it is a link where that leads. */
static int resolve(char *path, size_t size, struct ava_error *err)
{
	char real[PATH_MAX], parent[PATH_MAX];
	int rv = settings_config_path("config.yaml", path, size, err);

	if (rv != 0)
		return rv;
	if (realpath(path, real)) {
		if (strlen(real) >= size)
			return err_set(err, AVA_EINVAL, "the path of config.yaml is too long");
		memcpy(path, real, strlen(real) + 1);
		return 0;
	}
	snprintf(parent, sizeof(parent), "%s", path);
	*strrchr(parent, '/') = '\0'; /* …/ava */
	if (mkdir(parent, 0700) != 0 && errno == ENOENT) {
		char above[PATH_MAX];

		snprintf(above, sizeof(above), "%s", parent);
		(void)mkdir(dirname(above), 0700);
		(void)mkdir(parent, 0700);
	}
	return 0;
}

int config_store_local(const char *base_url, const char *model, char *path, size_t size,
		       struct ava_error *err)
{
	char *text = NULL, *slash;
	struct stat st = {.st_mode = 0600};
	struct buf out;
	size_t len = 0;
	int dirfd = -1, rv;

	buf_init(&out, YAML_BYTES_MAX);
	rv = resolve(path, size, err);
	if (rv != 0)
		goto done;
	rv = sys_read_file(AT_FDCWD, path, YAML_BYTES_MAX, &text, &len, err);
	if (rv == AVA_ENOENT)
		rv = 0;
	if (rv == 0)
		rv = config_edit_local(path, text ? text : "", len, base_url, model, &out, err);
	if (rv != 0)
		goto done;
	(void)stat(path, &st);
	slash = strrchr(path, '/');
	*slash = '\0';
	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		rv = err_sys(err, "%s", path);
	*slash = '/';
	if (rv == 0)
		rv = write_file(dirfd, slash + 1, st.st_mode & 0777, &out, err);
done:
	if (dirfd >= 0)
		close(dirfd);
	free(text);
	buf_fini(&out);
	return rv;
}
