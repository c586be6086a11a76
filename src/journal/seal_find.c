/* Looking for the newest Seal and for what is behind it; see seal_find.h.
 *
 * `seals/open` stands while somebody seals and is removed after a last Seal.
 * Where it is found every run file is looked at: one whose last event has a
 * higher lsn than the newest Seal is sealed in the first round, its messages
 * too. Nothing here is trusted further: a file that was changed meanwhile is
 * sealed as it is found, and its earlier Seals tell. */
#include "journal/seal_find.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "event/event.h"
#include "journal/files.h"

#define OPEN_PATH  "seals/open"
#define TAIL       (64u << 10)
#define WINDOW_MIN (1u << 20)
#define WINDOW_MAX (1u << 30)

/* ---- the newest Seal */

/* The last Seal in these bytes, which begin at a line. */
static bool last_seal(const char *data, size_t len, struct seal_newest *newest)
{
	const char *end = memrchr(data, '\n', len);

	while (end != NULL) {
		const char *nl = end > data ? memrchr(data, '\n', (size_t)(end - data)) : NULL;
		const char *line = nl != NULL ? nl + 1 : data;
		size_t n = (size_t)(end - line);
		struct event_view v;
		struct seal s;

		if (seal_is_line(line, n) && event_view(line, n, &v) == 0 &&
		    seal_parse(&s, v.content.s, v.content.len, NULL) == 0) {
			bool good = s.authentic;

			if (good) {
				newest->n = s.n;
				newest->lsn = v.lsn;
				memcpy(newest->hash, s.hash, SEAL_HASH);
			}
			seal_fini(&s);
			if (good)
				return true;
		}
		end = nl;
	}
	return false;
}

int seal_find_in(int rootfd, const char *path, struct seal_newest *newest, struct ava_error *err)
{
	int fd = files_open(rootfd, path, O_RDONLY), rv = 0;
	char *data = NULL;
	struct stat st;
	size_t window = 0, size;

	if (fd < 0 || sys->fstat(fd, &st) != 0) {
		rv = err_sys(err, "%s", path);
		files_close(&fd);
		return rv;
	}
	size = S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
	while (rv == 0 && window < MIN(size, WINDOW_MAX)) {
		size_t cut = 0;

		window = MIN(size, window > 0 ? window * 8 : WINDOW_MIN);
		free(data);
		data = malloc(window);
		if (data == NULL)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
		else if (sys_read_all(fd, data, window, (off_t)(size - window)) != 0)
			rv = err_sys(err, "%s", path);
		else if (window < size)
			for (cut = 1; cut < window && data[cut - 1] != '\n';)
				cut++;
		if (rv == 0)
			rv = last_seal(data + cut, window - cut, newest);
	}
	free(data);
	files_close(&fd);
	return rv;
}

int seal_find_newest(int rootfd, struct seal_newest *newest, struct ava_error *err)
{
	struct files_names days = {0};
	struct seal_last last;
	char path[FILES_BUF];
	int rv = files_list(&days, rootfd, "logs/ava", ".jsonl", err);

	*newest = (struct seal_newest){0};
	for (size_t i = days.n; rv == 0 && i-- > 0;) {
		snprintf(path, sizeof(path), "logs/ava/%s", days.names[i]);
		rv = seal_find_in(rootfd, path, newest, err);
		if (rv == 1)
			snprintf(newest->day, sizeof(newest->day), "%.10s", days.names[i]);
	}
	files_names_fini(&days);
	if (rv < 0)
		return rv;
	/* Somebody cut the daily log: numbers go on behind what is missing, so
	 * that it is seen. */
	if (seal_last_read(rootfd, &last, NULL) == 0 && last.n > newest->n) {
		newest->n = last.n;
		memcpy(newest->hash, last.hash, SEAL_HASH);
	}
	return 0;
}

/* ---- what is behind it */

/* Has the file events behind `lsn`? Also when it cannot be told. */
static bool goes_beyond(int rootfd, const char *path, uint64_t lsn)
{
	int fd = files_open(rootfd, path, O_RDONLY);
	bool beyond = true;
	struct event_view v;
	char tail[TAIL];
	struct stat st;

	if (fd >= 0 && sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		size_t n = (size_t)MIN((off_t)TAIL, st.st_size);
		const char *nl;

		if (n > 1 && sys_read_all(fd, tail, n, st.st_size - (off_t)n) == 0) {
			nl = memrchr(tail, '\n', n - 1);
			nl = nl != NULL ? nl + 1 : tail;
			if (event_view(nl, (size_t)(tail + n - nl), &v) == 0)
				beyond = v.lsn > lsn;
		}
	}
	files_close(&fd);
	return beyond;
}

/* "S-7f3a2b.2.jsonl" is a part of "S-7f3a2b.jsonl", which the round finds. */
static int add_run(int rootfd, const char *name, uint64_t lsn, struct files_names *out)
{
	size_t id = strcspn(name, ".");
	char path[FILES_BUF];
	int rv;

	snprintf(path, sizeof(path), "logs/subagents/%s", name);
	if (!goes_beyond(rootfd, path, lsn))
		return 0;
	snprintf(path, sizeof(path), "logs/subagents/%.*s.jsonl", (int)id, name);
	rv = files_path_ok(path) ? files_names_add(out, path) : 0;
	snprintf(path, sizeof(path), "runs/%.*s/messages.jsonl", (int)id, name);
	return rv == 0 && files_path_ok(path) ? files_names_add(out, path) : rv;
}

static int add_days(int rootfd, const char *first, struct files_names *out, struct ava_error *err)
{
	struct files_names days = {0};
	char path[FILES_BUF];
	int rv = files_list(&days, rootfd, "logs/ava", ".jsonl", err);

	for (size_t i = 0; rv == 0 && i < days.n; i++) {
		if (strlen(days.names[i]) != 16 || strncmp(days.names[i], first, 10) < 0)
			continue;
		snprintf(path, sizeof(path), "logs/ava/%s", days.names[i]);
		if (files_path_ok(path))
			rv = files_names_add(out, path);
	}
	files_names_fini(&days);
	return rv;
}

int seal_find_stale(int rootfd, const struct seal_newest *newest, struct files_names *out,
		    struct ava_error *err)
{
	struct files_names runs = {0};
	struct stat st;
	/* Without a last Seal, or without a Seal at all. */
	bool look = newest->lsn == 0 || sys->fstatat(rootfd, OPEN_PATH, &st, 0) == 0;
	int rv = look ? 0 : add_days(rootfd, newest->day, out, err);

	if (rv == 0 && files_replace(rootfd, OPEN_PATH, "", 0, true) != 0)
		rv = err_sys(err, OPEN_PATH);
	if (!look || rv != 0)
		return rv;
	rv = files_list(&runs, rootfd, "logs/subagents", ".jsonl", err);
	for (size_t i = 0; rv == 0 && i < runs.n; i++)
		rv = add_run(rootfd, runs.names[i], newest->lsn, out);
	files_names_fini(&runs);
	if (rv == 0)
		rv = add_days(rootfd, newest->day, out, err);
	if (rv == 0)
		rv = files_names_add(out, "catalog.jsonl");
	return rv == AVA_ENOMEM ? err_set(err, rv, "out of memory") : rv;
}

void seal_find_clean(int rootfd)
{
	(void)sys->unlinkat(rootfd, OPEN_PATH, 0);
}
