/* Reading an export; exportfile.h.
 *
 * An event of an export is the bytes of its line, so the object is cut into
 * raw pieces instead of being parsed: each element of `events` and `messages`
 * goes back into the file that `files` says, byte for byte. The Seals and keys
 * that came with it stand where those of a data root do. Nothing in it names a
 * path of its own: only the names that files of this run can have are made.
 *
 * What can fail: it is no export, a tool has put line breaks into it, there is
 * no room for it in the folder for temporary files. */
#include "cli/exportfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"

#define FILE_MAX  ((size_t)2 << 30)
#define PARTS_MAX 99
#define DEPTH_MAX 200
#define SMALL     (4u << 10)

struct piece { /* raw JSON, *borrowed* from the file */
	const char *s;
	size_t len;
};

struct layout {
	struct piece id, events, messages, catalog, files, seals, keys;
};

/* ---- cutting JSON into pieces */

struct cutter {
	const char *at, *end;
};

static void skip_blanks(struct cutter *c)
{
	while (c->at < c->end && strchr(" \t\r\n", *c->at) != NULL && *c->at != '\0')
		c->at++;
}

static bool take(struct cutter *c, char what)
{
	skip_blanks(c);
	if (c->at == c->end || *c->at != what)
		return false;
	c->at++;
	return true;
}

static bool skip_string(struct cutter *c)
{
	for (c->at++; c->at < c->end; c->at++) {
		if (*c->at == '\\')
			c->at++;
		else if (*c->at == '"')
			return c->at++ < c->end;
	}
	return false;
}

/* A value of any kind; brackets are only counted. */
static bool cut(struct cutter *c, struct piece *out)
{
	unsigned depth = 0;

	skip_blanks(c);
	out->s = c->at;
	do {
		if (c->at >= c->end)
			return false;
		if (*c->at == '"') {
			if (!skip_string(c))
				return false;
		} else if (*c->at == '{' || *c->at == '[') {
			if (++depth > DEPTH_MAX)
				return false;
			c->at++;
		} else if (*c->at == '}' || *c->at == ']') {
			if (depth == 0)
				return false;
			depth--;
			c->at++;
		} else if (depth == 0) {
			size_t n = strcspn(c->at, ",]} \t\r\n"); /* a number or a word */

			c->at += n;
			if (n == 0)
				return false;
		} else {
			c->at++;
		}
	} while (depth > 0);
	out->len = (size_t)(c->at - out->s);
	return c->at <= c->end;
}

static bool is_key(struct piece p, const char *name)
{
	return p.len == strlen(name) + 2 && memcmp(p.s + 1, name, p.len - 2) == 0;
}

static bool cut_export(const char *data, size_t len, struct layout *l)
{
	struct cutter c = {data, data + len};
	struct piece key, value, format = {0};

	*l = (struct layout){0};
	if (!take(&c, '{'))
		return false;
	do {
		if (!cut(&c, &key) || key.s[0] != '"' || !take(&c, ':') || !cut(&c, &value))
			return false;
		if (is_key(key, "format"))
			format = value;
		else if (is_key(key, "id"))
			l->id = value;
		else if (is_key(key, "catalog"))
			l->catalog = value;
		else if (is_key(key, "events"))
			l->events = value;
		else if (is_key(key, "messages"))
			l->messages = value;
		else if (is_key(key, "files"))
			l->files = value;
		else if (is_key(key, "seals"))
			l->seals = value;
		else if (is_key(key, "keys"))
			l->keys = value;
	} while (take(&c, ','));
	return take(&c, '}') && is_key(format, "ava export 1") && l->events.s != NULL &&
	       l->messages.s != NULL;
}

/* Elements of an array, one after the other; none where there is no array. */
struct items {
	struct cutter c;
	bool begun;
};

static struct items items_of(struct piece array)
{
	const char *s = array.s != NULL ? array.s : "";

	return (struct items){.c = {s, s + array.len}};
}

static bool next_item(struct items *i, struct piece *out)
{
	if (!take(&i->c, i->begun ? ',' : '['))
		return false;
	i->begun = true;
	return cut(&i->c, out);
}

/* ---- the files; their names are kept for the end, however it comes */

static struct {
	char root[256];
	char files[2 * PARTS_MAX + 8][128];
	size_t n; /* written by nobody else once a handler stands */
	bool at_exit;
} laid;

static const char *const folders[] = {"logs", "logs/ava", "logs/subagents", "runs", "seals"};
static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

/* Calls nothing that a handler of signals must not. */
static void clear_away(void)
{
	int fd = laid.root[0] != '\0' ? open(laid.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	for (size_t i = laid.n; i > 0; i--)
		if (unlinkat(fd, laid.files[i - 1], 0) != 0)
			unlinkat(fd, laid.files[i - 1], AT_REMOVEDIR);
	for (size_t i = ARRAY_LEN(folders); i > 0; i--)
		unlinkat(fd, folders[i - 1], AT_REMOVEDIR);
	close(fd);
	rmdir(laid.root);
	laid.root[0] = '\0';
}

static void on_end(int signo)
{
	clear_away();
	signal(signo, SIG_DFL);
	raise(signo);
}

static int lay_root(struct exportfile *x, struct ava_error *err)
{
	const char *tmp = getenv("TMPDIR");
	struct sigaction sa = {.sa_handler = on_end};
	char path[400];

	if (snprintf(laid.root, sizeof(laid.root), "%s/ava-export.XXXXXX",
		     tmp != NULL && tmp[0] == '/' ? tmp : "/tmp") >= (int)sizeof(laid.root) ||
	    mkdtemp(laid.root) == NULL) {
		laid.root[0] = '\0';
		return err_sys(err, "a folder for temporary files");
	}
	laid.n = 0;
	if (!laid.at_exit && atexit(clear_away) == 0)
		laid.at_exit = true;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		sigaction(ends[i], &sa, NULL);
	snprintf(x->root, sizeof(x->root), "%s", laid.root);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", laid.root, folders[i]);
		if (mkdir(path, 0700) != 0)
			return err_sys(err, "%s", path);
	}
	return 0;
}

/* `name` is below the root, made of nothing that came with the export. */
static int note_name(const char *name, struct ava_error *err)
{
	if (laid.n == ARRAY_LEN(laid.files))
		return err_set(err, AVA_ETOOBIG, "the export has too many files");
	snprintf(laid.files[laid.n++], sizeof(laid.files[0]), "%s", name);
	return 0;
}

static int put_file(const char *name, const struct buf *b, struct ava_error *err)
{
	char path[400];
	int rv = buf_check(b), fd;

	if (rv != 0)
		return err_set(err, rv, "no memory for an export of this size");
	rv = note_name(name, err);
	if (rv != 0)
		return rv;
	snprintf(path, sizeof(path), "%s/%s", laid.root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "%s", path);
	if (b->len > 0 && sys_write_all(fd, b->data, b->len, 0) != 0)
		rv = err_sys(err, "%s", path);
	close(fd);
	return rv;
}

/* ---- what goes into them */

/* A line as it stood: an object is its bytes, a string what it says. */
static int add_line(struct buf *b, struct piece p, struct ava_error *err)
{
	json_t *text;

	if (memchr(p.s, '\n', p.len) != NULL)
		return err_set(err, AVA_EINVAL,
			       "the export was formatted anew, so its lines are no longer those "
			       "of the log: use it as it was printed");
	if (p.s[0] == '"') {
		text = json_parse(p.s, p.len, err);
		if (text == NULL)
			return AVA_EINVAL;
		buf_add(b, json_string_value(text), json_string_length(text));
		json_decref(text);
	} else {
		buf_add(b, p.s, p.len);
	}
	buf_addc(b, '\n');
	return 0;
}

/* At most `most` more lines of `from` as file `name`. */
static int lay_lines(struct items *from, uint64_t most, const char *name, struct ava_error *err)
{
	struct piece p;
	struct buf b;
	int rv = 0;

	buf_init(&b, FILE_MAX);
	while (rv == 0 && most-- > 0 && next_item(from, &p))
		rv = add_line(&b, p, err);
	if (rv == 0)
		rv = put_file(name, &b, err);
	buf_fini(&b);
	return rv;
}

/* The name that the export gives is only compared with those there can be. */
static int lay_part(const struct exportfile *x, const json_t *file, struct items *events,
		    struct items *messages, struct ava_error *err)
{
	const char *given = json_get_str(file, "path");
	int64_t lines = json_get_int(file, "lines", -1);

	for (unsigned part = 1; given != NULL && lines >= 0 && part <= PARTS_MAX; part++) {
		char end[16] = "", name[128];

		if (part > 1)
			snprintf(end, sizeof(end), ".%u", part);
		snprintf(name, sizeof(name), "logs/subagents/%s%s.jsonl", x->id, end);
		if (strcmp(given, name) == 0)
			return lay_lines(events, (uint64_t)lines, name, err);
		snprintf(name, sizeof(name), "runs/%s/messages%s.jsonl", x->id, end);
		if (strcmp(given, name) == 0)
			return lay_lines(messages, (uint64_t)lines, name, err);
	}
	return err_set(err, AVA_EINVAL, "the export names a file that no run has");
}

static int lay_run(const struct exportfile *x, const struct layout *l, struct ava_error *err)
{
	struct items events = items_of(l->events), messages = items_of(l->messages);
	char name[128], path[400];
	json_t *files = NULL, *file;
	struct piece p;
	size_t i;
	int rv;

	snprintf(name, sizeof(name), "runs/%s", x->id);
	snprintf(path, sizeof(path), "%s/%s", laid.root, name);
	rv = note_name(name, err);
	if (rv == 0 && mkdir(path, 0700) != 0)
		rv = err_sys(err, "%s", path);
	if (rv != 0)
		return rv;
	if (l->files.s != NULL) {
		files = json_parse(l->files.s, l->files.len, err);
		rv = files != NULL ? 0 : AVA_EINVAL;
	}
	json_array_foreach(files, i, file) if (rv == 0) rv =
		lay_part(x, file, &events, &messages, err);
	json_decref(files);
	if (rv == 0 && l->files.s != NULL && (next_item(&events, &p) || next_item(&messages, &p)))
		rv = err_set(err, AVA_EINVAL, "the export has lines that are of no file");
	if (rv != 0 || l->files.s != NULL)
		return rv;
	/* Of an ava that did not say which line stood where. */
	snprintf(name, sizeof(name), "logs/subagents/%s.jsonl", x->id);
	rv = lay_lines(&events, UINT64_MAX, name, err);
	snprintf(name, sizeof(name), "runs/%s/messages.jsonl", x->id);
	return rv == 0 ? lay_lines(&messages, UINT64_MAX, name, err) : rv;
}

static int lay_keys(const struct layout *l, struct ava_error *err)
{
	struct items keys = items_of(l->keys);
	struct piece p;
	struct buf b;
	int rv;

	buf_init(&b, FILE_MAX);
	while (l->keys.s != NULL && next_item(&keys, &p))
		if (p.len > 2)
			buf_addf(&b, "ed25519 %.*s -\n", (int)MIN(p.len - 2, (size_t)100), p.s + 1);
	rv = put_file("seals/public", &b, err);
	buf_fini(&b);
	return rv;
}

static int lay_all(struct exportfile *x, const struct layout *l, bool seals, struct ava_error *err)
{
	struct items events = items_of(l->seals), rows = items_of(l->catalog);
	struct buf none = {0};
	int rv = lay_root(x, err);

	if (rv == 0) /* a file, so that no index is made of what is read once */
		rv = put_file("logs/index", &none, err);
	if (rv == 0)
		rv = lay_run(x, l, err);
	if (rv == 0)
		rv = lay_lines(&rows, l->catalog.s != NULL ? UINT64_MAX : 0, "catalog.jsonl", err);
	if (rv == 0 && seals && l->seals.s != NULL)
		rv = lay_lines(&events, UINT64_MAX, "logs/ava/0000-00-00.jsonl", err);
	return rv == 0 ? lay_keys(l, err) : rv;
}

int exportfile_open(struct exportfile *x, const char *path, bool seals, struct ava_error *err)
{
	char *data = NULL;
	struct layout l;
	size_t len;
	int rv = sys_read_file(AT_FDCWD, path, FILE_MAX, &data, &len, err);

	*x = (struct exportfile){0};
	if (rv != 0)
		return err_wrap(err, rv, "%s", path);
	if (cut_export(data, len, &l) && l.id.len > 2 && l.id.len < sizeof(x->id))
		snprintf(x->id, sizeof(x->id), "%.*s", (int)l.id.len - 2, l.id.s + 1);
	if (!id_is_run(x->id))
		rv = err_set(err, AVA_EINVAL, "it is not what `ava export` prints");
	if (rv == 0)
		rv = lay_all(x, &l, seals, err);
	free(data);
	if (rv == 0)
		return 0;
	exportfile_close(x);
	return err_wrap(err, rv, "%s", path);
}

void exportfile_close(struct exportfile *x)
{
	if (x->root[0] != '\0')
		clear_away();
	*x = (struct exportfile){0};
}
