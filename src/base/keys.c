/* Keys and addresses; see keys.h.
 *
 * The file has lines NAME=value, as systemd's EnvironmentFile= and a shell's `set -a; . env`
 * read them: blank lines and lines from "#" are skipped, `export` may stand before, quotes of
 * either kind around the value are taken off, nothing is expanded. What can fail: others may
 * read or write the file, or a line has another form. Both are errors at the start, where the
 * reason why a key "does not work" must be found. Values are never part of an error. */
#include "base/keys.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/doors.h"
#include "base/env.h"
#include "base/error.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/siphash.h"
#include "base/sys.h"
#include "base/util.h"

#define PAIRS_MAX 64

const char *const keys_known[] = {
	"ANTHROPIC_API_KEY",
	"OPENROUTER_API_KEY",
	"OPENAI_API_KEY",
	"AVA_LOCAL_API_KEY",
	"ANTHROPIC_BASE_URL",
	"OPENROUTER_BASE_URL",
	"OPENAI_BASE_URL",
	"AVA_LOCAL_BASE_URL",
	"AVA_LOCAL_MODEL",
	"OTEL_EXPORTER_OTLP_HEADERS",
	"AVA_NOTIFY_SECRET",
	"AVA_CLUSTER_URL",
	"AVA_CLUSTER_READ_URL",
	"AVA_CLUSTER_NAME",
	"BRAVE_API_KEY",
	"BRAVE_BASE_URL",
	"TAVILY_API_KEY",
	"TAVILY_BASE_URL",
#define X(name, title, secret, ...) secret,
	DOORS(X)
#undef X
		NULL,
};

static struct {
	char *text; /* owned; the pairs point into it */
	size_t size;
	struct {
		const char *name, *value;
	} pairs[PAIRS_MAX];
	size_t n;
} file;

void keys_wipe(void)
{
	if (file.text)
		explicit_bzero(file.text, file.size);
	free(file.text);
	memset(&file, 0, sizeof(file));
}

/* ---- reading */

static int check_mode(const char *path, int fd, struct stat *st, struct ava_error *err)
{
	if (fstat(fd, st) != 0)
		return err_sys(err, "%.300s", path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, AVA_EINVAL, "%.300s is not a regular file", path);
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return err_set(err, AVA_EDENIED,
			       "%.300s holds keys and belongs to somebody else: chown it", path);
	if ((st->st_mode & 077) != 0)
		return err_set(err, AVA_EDENIED,
			       "%.300s holds keys and others may open it: chmod 600 %.150s", path,
			       path);
	if (st->st_size > KEYS_FILE_MAX)
		return err_set(err, AVA_ETOOBIG, "%.300s is larger than %d bytes", path,
			       KEYS_FILE_MAX);
	return 0;
}

static int keys_read_text(const char *path, struct ava_error *err)
{
	/* O_NONBLOCK: opening a pipe must not wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rv;
	struct stat st;
	ssize_t n = 0;

	if (fd < 0 && errno == ENOENT && lstat(path, &st) == 0)
		return err_set(err, AVA_EINVAL, "%.300s is a link to a file that is not there",
			       path);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(err, "%.300s", path);
	rv = check_mode(path, fd, &st, err);
	if (rv != 0)
		goto done;
	file.size = (size_t)st.st_size + 1;
	file.text = calloc(1, file.size);
	if (!file.text) {
		rv = err_set(err, AVA_ENOMEM, "out of memory");
		goto done;
	}
	for (size_t got = 0; got < file.size - 1; got += (size_t)n) {
		n = read(fd, file.text + got, file.size - 1 - got);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			rv = err_sys(err, "%.300s", path);
		else if (n == 0)
			rv = err_set(err, AVA_EIO, "%.300s became shorter while it was read", path);
		if (rv != 0)
			break;
	}
	if (rv == 0 && memchr(file.text, '\0', file.size - 1))
		rv = err_set(err, AVA_EINVAL, "%.300s holds a NUL byte", path);
done:
	close(fd);
	return rv;
}

static bool keys_blank(char c)
{
	return c == ' ' || c == '\t';
}

static char *keys_skip_blanks(char *s)
{
	while (keys_blank(*s))
		s++;
	return s;
}

/* Cut the name off `line`; returns the text behind "=", NULL: no NAME=. */
static char *keys_take_name(char **line)
{
	char *s = *line, *name;

	if (strncmp(s, "export", 6) == 0 && keys_blank(s[6]))
		s = keys_skip_blanks(s + 6);
	name = s;
	if (!isalpha((unsigned char)*s) && *s != '_')
		return NULL;
	while (isalnum((unsigned char)*s) || *s == '_')
		s++;
	if (*s != '=')
		return NULL;
	*s = '\0';
	*line = name;
	return s + 1;
}

/* Take quotes or trailing blanks off. Returns a sentence for an invalid value. */
static const char *keys_take_value(char **value)
{
	char *s = *value, *end;

	if (*s == '"' || *s == '\'') {
		end = strchr(s + 1, *s);
		if (!end)
			return "its quote is not closed";
		if (*keys_skip_blanks(end + 1) != '\0' && *keys_skip_blanks(end + 1) != '#')
			return "there is something behind its closing quote";
		*end = '\0';
		*value = s + 1;
	} else {
		end = s + strlen(s);
		while (end > s && keys_blank(end[-1]))
			*--end = '\0';
		if (strpbrk(s, " \t\"'"))
			return "a value with blanks or quotes inside stands in quotes";
	}
	for (s = *value; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			return "it holds a control character";
	return strlen(*value) > KEYS_VALUE_MAX ? "it is too long" : NULL;
}

static int keys_take_line(const char *path, int number, char *line, struct ava_error *err)
{
	const char *wrong;
	char *value;

	line = keys_skip_blanks(line);
	if (*line == '\0' || *line == '#')
		return 0;
	value = keys_take_name(&line);
	if (!value)
		return err_set(err, AVA_EINVAL, "%.300s:%d: this is no line of the form NAME=value",
			       path, number);
	wrong = keys_take_value(&value);
	if (wrong)
		return err_set(err, AVA_EINVAL, "%.300s:%d: the value of %.60s: %s", path, number,
			       line, wrong);
	for (size_t i = 0; i < file.n; i++)
		if (strcmp(file.pairs[i].name, line) == 0)
			return err_set(err, AVA_EINVAL, "%.300s:%d: %.60s stands there twice", path,
				       number, line);
	if (file.n == PAIRS_MAX)
		return err_set(err, AVA_ETOOBIG, "%.300s:%d: more than %d names", path, number,
			       PAIRS_MAX);
	file.pairs[file.n].name = line;
	file.pairs[file.n++].value = value;
	return 0;
}

int keys_load(struct ava_error *err)
{
	char path[PATH_MAX];
	char *next;
	int rv, number = 0;

	keys_wipe();
	rv = settings_config_path("env", path, sizeof(path), err);
	if (rv == AVA_ENOENT)
		return 0; /* no home is known: no file either */
	if (rv == 0)
		rv = keys_read_text(path, err);
	next = file.text;
	if (rv == 0 && next && strncmp(next, "\xef\xbb\xbf", 3) == 0)
		next += 3; /* an editor's BOM, not part of the first name */
	for (char *line = next; rv == 0 && line; line = next) {
		size_t len = strcspn(line, "\n");

		next = line[len] == '\n' ? line + len + 1 : NULL;
		line[len] = '\0';
		if (len > 0 && line[len - 1] == '\r')
			line[len - 1] = '\0';
		rv = keys_take_line(path, ++number, line, err);
	}
	if (rv != 0)
		keys_wipe();
	return rv;
}

/* ---- writing */

/* Append the file without the line of `name`, then the new line, if there is one. */
static int with_line(struct buf *out, const char *text, const char *name, const char *value)
{
	for (const char *line = text; line && *line;) {
		size_t len = strcspn(line, "\n");
		char copy[KEYS_VALUE_MAX + 256], *at;

		snprintf(copy, sizeof(copy), "%.*s", (int)len, line);
		at = keys_skip_blanks(copy);
		if (!keys_take_name(&at) || strcmp(at, name) != 0) {
			buf_add(out, line, len);
			buf_addc(out, '\n');
		}
		line += len + (line[len] == '\n');
	}
	if (value)
		buf_addf(out, "%s=\"%s\"\n", name, value);
	return buf_check(out);
}

static int replace_file(const char *path, const struct buf *text, struct ava_error *err)
{
	char temp[PATH_MAX + 16];
	int fd, rv = 0;

	snprintf(temp, sizeof(temp), "%s.%d", path, (int)getpid());
	(void)unlink(temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "%.300s", temp);
	if (sys_write_all(fd, text->data, text->len, 0) != 0 || fsync(fd) != 0 ||
	    rename(temp, path) != 0)
		rv = err_sys(err, "%.300s", path);
	close(fd);
	if (rv != 0)
		(void)unlink(temp);
	return rv;
}

int keys_store(const char *name, const char *value, char *path, size_t size, struct ava_error *err)
{
	struct ava_error none = {0};
	char real[PATH_MAX];
	struct buf out;
	int rv;

	if (value && (strpbrk(value, "\"\n\r") || strlen(value) > KEYS_VALUE_MAX))
		return err_set(err, AVA_EINVAL, "%s cannot hold a quote or a line end", name);
	rv = keys_load(err ? err : &none); /* an unreadable file is not overwritten */
	if (rv != 0)
		return rv;
	rv = settings_config_path("env", path, size, err);
	/* A link stays, its target is replaced. Missing folders are made. */
	if (rv == 0 && realpath(path, real) && strlen(real) < size)
		memcpy(path, real, strlen(real) + 1);
	if (rv == 0)
		(void)sys_make_folders(path, false);
	keys_wipe();
	if (rv == 0)
		rv = keys_read_text(path, err);
	buf_init(&out, 2 * KEYS_FILE_MAX);
	if (rv == 0 && with_line(&out, file.text, name, value) != 0)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	if (rv == 0)
		rv = replace_file(path, &out, err);
	buf_fini(&out);
	return rv == 0 ? keys_load(err) : rv;
}

/* ---- asking */

static const char *in_file(const char *name)
{
	for (size_t i = 0; i < file.n; i++)
		if (strcmp(file.pairs[i].name, name) == 0)
			return file.pairs[i].value[0] ? file.pairs[i].value : NULL;
	return NULL;
}

const char *keys_get(const char *name)
{
	const char *value = in_file(name);

	if (!value)
		value = env_get(name);
	return value && value[0] ? value : NULL;
}

const char *keys_source(const char *name)
{
	if (in_file(name))
		return "file";
	return keys_get(name) ? "environment" : NULL;
}

const char *keys_file(size_t i, const char **value)
{
	if (i >= file.n)
		return NULL;
	*value = file.pairs[i].value;
	return file.pairs[i].name;
}

int keys_check(const char *name, const char *value, struct ava_error *err)
{
	size_t len = strlen(value);

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] <= ' ' || (unsigned char)value[i] >= 127)
			return err_set(err, AVA_EINVAL,
				       "%s holds a blank, a line end or a character that no key "
				       "has (byte %zu of %zu): copy the key again",
				       name, i + 1, len);
	if (len < 8 || len > KEYS_VALUE_MAX)
		return err_set(err, AVA_EINVAL, "%s is %zu bytes long, which no key is", name, len);
	return 0;
}

/* ---- marks */

const char *keys_salt(void)
{
	static char salt[KEYS_SALT_LEN + 1];
	uint64_t k[2];

	if (!salt[0]) {
		id_random(k, sizeof(k));
		snprintf(salt, sizeof(salt), "%016" PRIx64 "%016" PRIx64, k[0], k[1]);
	}
	return salt;
}

bool keys_mark(const char *salt, const char *name, char out[KEYS_MARK_LEN + 1])
{
	const char *value = keys_get(name);
	char all[KEYS_VALUE_MAX + 128];
	uint64_t k0, k1;
	int used = 0, n;

	out[0] = '\0';
	if (strlen(salt) != KEYS_SALT_LEN ||
	    sscanf(salt, "%16" SCNx64 "%16" SCNx64 "%n", &k0, &k1, &used) != 2 ||
	    used != KEYS_SALT_LEN)
		return false;
	if (!value)
		return true;
	n = snprintf(all, sizeof(all), "%s=%s", name, value);
	snprintf(out, KEYS_MARK_LEN + 1, "%016" PRIx64,
		 siphash(k0, k1, all, MIN((size_t)n, sizeof(all) - 1), 2, 4));
	explicit_bzero(all, sizeof(all));
	return true;
}
