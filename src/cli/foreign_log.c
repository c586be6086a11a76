/* A log of somebody's, laid out as a data root; see foreign_log.h.
 *
 * Lines that are events go over as they stand; of the others one is made. What can fail: the
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
#define TOLD_MAX     10 /* lines that are no events, each in a sentence */

static char foreign[256]; /* the folder; "": none */
/* The index cannot be stored: a folder stands where its lock would. It would outlive the root. */
static const char *const laid[] = {"logs", "logs/ava", "logs/index", "logs/index/lock",
				   "logs/ava/0000-00-00.jsonl"};
#define FILE_LAID (ARRAY_LEN(laid) - 1)

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

static void foreign_log_on_end(int signo)
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

/* Copy lines that are events as they stand, but for blanks and \r at their ends. */
static void lay_lines(FILE *out, const struct buf *data, const char *name, bool *broken)
{
	const char *at = data->data, *end = at + data->len, *nl;
	size_t good = 0, bad = 0, numbers[TOLD_MAX], sizes[TOLD_MAX];
	struct event_view v;
	struct buf again;

	buf_init(&again, 2 * FOREIGN_LINE);
	for (size_t number = 1; at < end; number++, at = nl + 1) {
		size_t n;

		nl = memchr(at, '\n', (size_t)(end - at));
		n = (size_t)((nl ? nl : end) - at);
		while (n > 0 && memchr("\r \t", at[n - 1], 3))
			n--;
		if (n > 0 && n <= FOREIGN_LINE && event_view(at, n, &v) == 0) {
			fwrite(at, 1, n, out);
			fputc('\n', out);
			good++;
		} else if (n > 0 && n <= FOREIGN_LINE && foreign_event(&again, at, n)) {
			fwrite(again.data, 1, again.len, out);
			good++;
		} else if (n > 0 && nl) { /* a last one may still be written */
			if (bad < TOLD_MAX) {
				numbers[bad] = number;
				sizes[bad] = n;
			}
			bad++;
		}
		if (!nl)
			break;
	}
	*broken = bad > 0;
	if (bad > 0 && good == 0)
		cli_error(CLI_FAILED, "%s is no log of ava's: none of its lines is an event", name);
	for (size_t i = 0; good > 0 && i < MIN(bad, TOLD_MAX); i++)
		cli_error(CLI_FAILED, "%s, line %zu: these %zu bytes are no event", name,
			  numbers[i], sizes[i]);
	if (good > 0 && bad > TOLD_MAX)
		cli_error(CLI_FAILED, "%s: %zu more lines are no events", name, bad - TOLD_MAX);
	buf_fini(&again);
}

static int foreign_log_lay_out(const struct buf *data, const char *name, bool *broken)
{
	int dir = open(foreign, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1, rv = -1;
	FILE *out = NULL;

	for (size_t i = 0; dir >= 0 && i < FILE_LAID; i++)
		(void)mkdirat(dir, laid[i], 0700);
	if (dir >= 0)
		fd = openat(dir, laid[FILE_LAID], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && (out = fdopen(fd, "w")) != NULL) {
		if (data->len > 0)
			lay_lines(out, data, name, broken);
		rv = ferror(out) ? -1 : 0;
		rv = fclose(out) != 0 ? -1 : rv;
	}
	if (dir >= 0)
		close(dir);
	return rv;
}

static int foreign_read(const char *file, struct buf *out, struct ava_error *err)
{
	int fd = strcmp(file, "-") != 0 ? open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY)
					: dup(STDIN_FILENO);
	ssize_t n = -1;
	char *at;

	if (fd < 0)
		return err_sys(err, "open it");
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
	const struct sigaction sa = {.sa_handler = foreign_log_on_end};
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
		if (foreign_log_lay_out(&data, file, broken) != 0)
			rv = err_sys(err, "%s", foreign);
	}
	buf_fini(&data);
	snprintf(path, ROOT_PATH_MAX, "%s", foreign);
	return rv;
}
