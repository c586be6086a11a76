/* A log of somebody's, laid out as a data root; see foreign_log.h.
 *
 * Lines that are events go over as they stand, in runs; the others one by one. What can fail: the
 * file, the folder for temporary files, the disk. */
#include "cli/foreign_log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "cli/cli.h"
#include "codec/json.h"
#include "event/event.h"

#define FOREIGN_MAX  ((size_t)2 << 30)
#define FOREIGN_LINE ((size_t)64 << 20) /* longer ones no reader of logs takes */
#define PIECE        ((size_t)1 << 20)

static char foreign[256]; /* the folder; "": none */
static const char *const laid[] = {"logs", "logs/ava", "logs/ava/0000-00-00.jsonl", "logs/index"};

/* Calls nothing that a handler of signals must not. */
static void clear_away(void)
{
	int fd = foreign[0] ? open(foreign, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	for (size_t i = ARRAY_LEN(laid); i > 0; i--)
		if (unlinkat(fd, laid[i - 1], 0) != 0)
			unlinkat(fd, laid[i - 1], AT_REMOVEDIR);
	close(fd);
	rmdir(foreign);
	foreign[0] = '\0';
}

static void on_end(int signo)
{
	clear_away();
	signal(signo, SIG_DFL);
	raise(signo);
}

/* Since 1970, of a date and time in any form of ISO 8601 with seconds, in UTC where no zone is
 * told; -1: it is none. */
static int64_t foreign_time(const char *s)
{
	struct tm t = {0};
	int n = 0, hours = 0, minutes = 0, ms = 0;
	char zone;

	if (sscanf(s, "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
		   &t.tm_hour, &t.tm_min, &t.tm_sec, &n) != 6)
		return -1;
	s += n;
	if (*s == '.' || *s == ',')
		for (int unit = 100; *++s >= '0' && *s <= '9'; unit /= 10)
			ms += (*s - '0') * unit;
	zone = *s;
	if (zone == '+' || zone == '-')
		(void)sscanf(s + 1, s[3] == ':' ? "%2d:%2d" : "%2d%2d", &hours, &minutes);
	else if (zone != 'Z' && zone != '\0')
		return -1;
	minutes = (hours * 60 + minutes) * (zone == '-' ? -1 : 1);
	t.tm_year -= 1900;
	t.tm_mon -= 1;
	return ((int64_t)timegm(&t) - minutes * 60) * 1000 + ms;
}

/* An event that another program has written anew, as ava has it; false: it is none. */
static bool foreign_event(struct buf *out, const char *line, size_t len)
{
	static const char *const texts[] = {"eventType", "agentId", "sessionId", "traceId",
					    "userId"};
	static const char *const objects[] = {"content", "metadata"};
	json_t *o = json_read_others(line, len, NULL);
	int64_t ms = foreign_time(json_str(o, "timestamp"));
	bool good = ms >= 0 && *json_str(o, "eventType");

	buf_reset(out);
	(void)event_begin(out, ms, (uint64_t)json_get_int(o, "lsn", 0),
			  (uint64_t)json_get_int(o, "seq", 0));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *text = json_str(o, texts[i]);

		buf_addf(out, ",\"%s\":", texts[i]);
		json_escape(out, text, strlen(text));
	}
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		const json_t *v = json_object_get(o, objects[i]);

		buf_addf(out, ",\"%s\":", objects[i]);
		if (!json_is_object(v) || json_dump(out, v) != 0)
			buf_adds(out, "{}");
	}
	buf_adds(out, "}\n");
	json_decref(o);
	return good && buf_check(out) == 0;
}

struct laying {
	int fd;
	off_t at;
	bool failed;
	struct buf line;
};

static void lay(struct laying *l, const char *data, size_t len)
{
	l->failed = l->failed || sys_write_all(l->fd, data, len, l->at) != 0;
	l->at += (off_t)len;
}

/* A line that is no event as it stands, without its end; false: it is none at all. */
static bool lay_line(struct laying *l, const char *line, size_t len)
{
	struct event_view v;
	size_t n = len;

	while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t'))
		n--;
	if (n == 0)
		return true;
	if (n > FOREIGN_LINE)
		return false;
	if (event_view(line, n, &v) == 0) {
		lay(l, line, n);
		lay(l, "\n", 1);
		return true;
	}
	if (!foreign_event(&l->line, line, n))
		return false;
	lay(l, l->line.data, l->line.len);
	return true;
}

static void lay_lines(struct laying *l, const struct buf *data, const char *name, bool *broken)
{
	const char *at = data->data, *end = at + data->len, *run = at, *nl;
	struct event_view v;

	for (size_t number = 1; at < end; number++, at = nl + 1) {
		size_t n;

		nl = memchr(at, '\n', (size_t)(end - at));
		n = (size_t)((nl != NULL ? nl : end) - at);
		if (nl != NULL && n <= FOREIGN_LINE && event_view(at, n, &v) == 0)
			continue;
		lay(l, run, (size_t)(at - run));
		if (!lay_line(l, at, n) && nl != NULL) { /* a last one may still be written */
			*broken = true;
			cli_error(CLI_FAILED, "%s, line %zu: these %zu bytes are no event", name,
				  number, n);
		}
		if (nl == NULL)
			return;
		run = nl + 1;
	}
	lay(l, run, (size_t)(end - run));
}

static int lay_out(const struct buf *data, const char *name, bool *broken)
{
	int dir = open(foreign, O_RDONLY | O_DIRECTORY | O_CLOEXEC), index = -1, rv;
	struct laying l = {.fd = -1};

	buf_init(&l.line, 2 * FOREIGN_LINE);
	if (dir >= 0 && mkdirat(dir, laid[0], 0700) == 0 && mkdirat(dir, laid[1], 0700) == 0)
		l.fd = openat(dir, laid[2], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (l.fd >= 0 && data->len > 0)
		lay_lines(&l, data, name, broken);
	if (l.fd >= 0 && !l.failed)
		/* A file, so that no index is made of what is read once. */
		index = openat(dir, laid[3], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	rv = index >= 0 ? 0 : -1;
	if (index >= 0)
		close(index);
	if (l.fd >= 0)
		close(l.fd);
	if (dir >= 0)
		close(dir);
	buf_fini(&l.line);
	return rv;
}

static int foreign_read(const char *file, struct buf *out, struct ava_error *err)
{
	int fd = strcmp(file, "-") != 0 ? open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY)
					: dup(STDIN_FILENO);
	ssize_t n = -1;
	char *at;

	if (fd < 0)
		return err_sys(err, "open %s", file);
	while ((at = buf_reserve(out, PIECE)) != NULL && (n = read(fd, at, PIECE)) != 0) {
		if (n < 0 && errno != EINTR)
			break;
		out->len += n > 0 ? (size_t)n : 0;
	}
	if (at != NULL && n < 0)
		err_sys(err, "read it");
	close(fd);
	if (at == NULL)
		return err_set(err, buf_check(out), "it does not fit into memory, or is over 2 GB");
	return n == 0 ? 0 : err->code;
}

int foreign_log_root(const char *file, char path[ROOT_PATH_MAX], bool *broken,
		     struct ava_error *err)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	const struct sigaction sa = {.sa_handler = on_end};
	const char *tmp = getenv("TMPDIR");
	struct buf data;
	int rv;

	buf_init(&data, FOREIGN_MAX);
	rv = foreign_read(file, &data, err);
	if (rv != 0) {
		buf_fini(&data);
		return err_wrap(err, rv, "%s", file);
	}
	if (snprintf(foreign, sizeof(foreign), "%s/ava-log.XXXXXX",
		     tmp && tmp[0] == '/' ? tmp : "/tmp") >= (int)sizeof(foreign) ||
	    !mkdtemp(foreign)) {
		foreign[0] = '\0';
		rv = err_sys(err, "a folder for temporary files");
	} else {
		atexit(clear_away);
		for (size_t i = 0; i < ARRAY_LEN(ends); i++)
			sigaction(ends[i], &sa, NULL);
		if (lay_out(&data, file, broken) != 0)
			rv = err_sys(err, "%s", foreign);
	}
	buf_fini(&data);
	snprintf(path, ROOT_PATH_MAX, "%s", foreign);
	return rv;
}
