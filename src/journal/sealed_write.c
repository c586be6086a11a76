/* Writing a record. The daily logs are read twice: first for what Seals name, then for the Seals
 * that go into it; so it needs no memory but for names and sizes. Nothing is judged: who gets the
 * record checks it. What can fail: reading, and that nothing is sealed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/strmap.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/jscan.h"
#include "event/event.h"
#include "journal/files.h"
#include "journal/seal_read.h"
#include "journal/sealed.h"

#define RECORD_FILE ((size_t)512 << 20) /* most bytes of messages, to look for their heads */
#define CHUNK       65536

struct sealing_file {
	uint64_t size; /* as far as it is sealed; 0 with `whole`: all of it */
	bool whole;
	char path[];
};

struct sealing {
	int rootfd;
	const struct sealed_wish *w;
	FILE *out; /* NULL: Seals are only looked at */
	struct sealed_sum *sum;
	struct strmap by_path;
	struct sealing_file **files; /* owned */
	size_t nfiles, cap;
	uint64_t first, last; /* Seals that the record has */
	size_t day;           /* the daily log that has the first one */
	json_t *keys;         /* of the Seals from the first on; owned */
	size_t nkeys;         /* of them, up to the last one */
	struct ava_error *err;
};

static int sealing_no_memory(struct sealing *r)
{
	return err_set(r->err, AVA_ENOMEM, "out of memory");
}

static int sealing_add(struct sealing *r, const char *path, uint64_t size, bool whole)
{
	struct sealing_file *f = strmap_get(&r->by_path, path);

	if (f == NULL) {
		f = ARRAY_ROOM(r->files, r->cap, r->nfiles + 1)
			    ? calloc(1, sizeof(*f) + strlen(path) + 1)
			    : NULL;
		if (f == NULL)
			return sealing_no_memory(r);
		memcpy(f->path, path, strlen(path) + 1);
		r->files[r->nfiles++] = f;
		if (strmap_put(&r->by_path, f->path, f) != 0)
			return sealing_no_memory(r);
	}
	f->size = size;
	f->whole = whole;
	return 0;
}

/* ---- what Seals name */

/* A run's log or messages, or a part of them; with `since` of any run, and daily logs. */
static bool sealing_wants(const struct sealing *r, const char *path)
{
	bool messages = strncmp(path, "runs/", 5) == 0;
	const char *id = messages                                    ? path + 5
			 : strncmp(path, "logs/subagents/", 15) == 0 ? path + 15
								     : NULL;
	size_t len = r->w->run ? strlen(r->w->run) : 0;

	if (id == NULL || (messages && !r->w->messages))
		return id == NULL && r->w->run == NULL && strncmp(path, "logs/", 5) == 0;
	return len == 0 || (strncmp(id, r->w->run, len) == 0 && strchr("./", id[len]));
}

static int sealing_look(struct sealing *r, const struct seal *s, size_t day)
{
	const char *at = json_str(s->doc, "at");
	bool in = r->w->run != NULL || clock_parse_iso(at, strlen(at)) >= r->w->since_ms;
	struct sealing_file *gone;
	struct seal_item item;
	const char *path;
	bool named = false;
	int rv = 0;

	for (size_t i = 0; rv == 0 && in && seal_item(s, i, &item) == 1; i++) {
		if (!sealing_wants(r, item.path))
			continue;
		rv = sealing_add(r, item.path, item.size, false);
		named = true;
	}
	for (size_t i = 0; rv == 0 && (path = seal_gone_path(s, i)) != NULL; i++)
		if ((gone = strmap_get(&r->by_path, path)) != NULL)
			gone->size = 0;
	if (!named)
		return rv;
	if (r->first == 0) {
		r->first = s->n;
		r->day = day;
	}
	r->last = s->n;
	return rv;
}

static void sealing_put(struct sealing *r, const struct seal *s, const char *content, size_t len)
{
	struct ava_log_head *newest = &r->sum->newest;

	if (s->n < r->first || s->n > r->last)
		return;
	fputs("{\"seal\":", r->out);
	fwrite(content, 1, len, r->out);
	fputs("}\n", r->out);
	r->sum->seals++;
	newest->n = s->n;
	hash_hex(s->hash, SEAL_HASH, newest->hash);
	hash_hex(s->key, SEAL_KEY, newest->key);
	snprintf(newest->at, sizeof(newest->at), "%.30s", json_str(s->doc, "at"));
}

/* The keys of the Seals that the record has, known before the first of them is written. */
static int sealing_key(struct sealing *r, const struct seal *s)
{
	char hex[2 * SEAL_KEY + 1];
	const json_t *one;
	size_t i;

	hash_hex(s->key, SEAL_KEY, hex);
	json_array_foreach(r->keys, i, one) if (strcmp(json_string_value(one), hex) == 0) return 0;
	return json_array_append_new(r->keys, json_string(hex)) == 0 ? 0 : sealing_no_memory(r);
}

static int sealing_day(struct sealing *r, const char *path, size_t day)
{
	int fd = files_open(r->rootfd, path, O_RDONLY), rv = 0;
	struct event_view e;
	struct loglines l;
	struct seal s;
	const char *line;
	struct stat st;
	size_t len;

	if (fd < 0 || sys->fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		rv = err_sys(r->err, "%s", path);
		files_close(&fd);
		return rv;
	}
	loglines_init(&l, fd, 0, (uint64_t)st.st_size);
	while (rv == 0 && (rv = loglines_next(&l, &line, &len)) == 1) {
		rv = 0;
		if (line == NULL || !seal_is_line(line, len) || event_view(line, len, &e) != 0 ||
		    seal_parse(&s, e.content.s, e.content.len, NULL) != 0)
			continue;
		if (r->out != NULL)
			sealing_put(r, &s, e.content.s, e.content.len);
		else
			rv = sealing_look(r, &s, day);
		if (rv == 0 && r->out == NULL && r->first > 0)
			rv = sealing_key(r, &s);
		if (s.n == r->last && r->out == NULL)
			r->nkeys = json_array_size(r->keys);
		seal_fini(&s);
	}
	loglines_fini(&l);
	files_close(&fd);
	return rv < 0 ? err_set(r->err, rv, "%s cannot be read", path) : 0;
}

static int sealing_days(struct sealing *r, const struct files_names *days)
{
	char path[FILES_BUF];
	int rv = 0;

	for (size_t i = r->day; rv == 0 && i < days->n; i++) {
		snprintf(path, sizeof(path), "logs/ava/%s", days->names[i]);
		if (files_path_ok(path))
			rv = sealing_day(r, path, i);
	}
	return rv;
}

/* ---- files that something in the record names */

/* Add the result of a run, if the log ends, as far as it is sealed, with a line that names it. */
static int sealing_result(struct sealing *r, const struct sealing_file *f)
{
	const char *name = f->path + strlen("logs/subagents/");
	int fd = files_open(r->rootfd, f->path, O_RDONLY), rv = 0;
	char path[FILES_BUF], *line;
	json_t *event;
	struct stat st;
	size_t len = 0;

	line = fd >= 0 ? files_last_line(fd, 0, f->size, &len) : NULL;
	event = line != NULL ? json_parse(line, len, NULL) : NULL;
	snprintf(path, sizeof(path), "runs/%.*s/result.json", (int)strcspn(name, "."), name);
	if (json_str(json_object_get(event, "content"), "resultHash")[0] != '\0' &&
	    sys->fstatat(r->rootfd, path, &st, 0) == 0)
		rv = sealing_add(r, path, 0, true);
	json_decref(event);
	free(line);
	files_close(&fd);
	return rv;
}

static int sealing_heads(struct sealing *r, const struct sealing_file *f)
{
	char path[FILES_BUF], *text = NULL;
	struct slice name;
	size_t len = 0, at = 0;
	int rv = sys_read_file(r->rootfd, f->path, RECORD_FILE, &text, &len, r->err);

	while (rv == 0 && head_next(text, (size_t)MIN(f->size, len), &at, &name)) {
		snprintf(path, sizeof(path), "heads/%.*s", (int)name.len, name.s);
		rv = files_path_ok(path) ? sealing_add(r, path, 0, true) : 0;
	}
	free(text);
	return rv;
}

static int sealing_more(struct sealing *r)
{
	int rv = 0;

	for (size_t i = 0, n = r->nfiles; rv == 0 && i < n; i++) {
		if (strncmp(r->files[i]->path, "logs/subagents/", 15) == 0)
			rv = sealing_result(r, r->files[i]);
		else if (strncmp(r->files[i]->path, "runs/", 5) == 0)
			rv = sealing_heads(r, r->files[i]);
	}
	return rv;
}

/* ---- writing */

/* Logs before what they name, parts of a log in their order. */
static int sealing_order(const void *a, const void *b)
{
	const char *x = (*(struct sealing_file *const *)a)->path,
		   *y = (*(struct sealing_file *const *)b)->path;
	size_t m = strcspn(x, "."), n = strcspn(y, ".");
	int by = (strncmp(y, "logs/", 5) == 0) - (strncmp(x, "logs/", 5) == 0);

	by = by != 0 ? by : strncmp(x, y, MIN(m, n));
	by = by != 0 ? by : order_of(m, n);
	by = by != 0 ? by : order_of(strlen(x), strlen(y));
	return by != 0 ? by : strcmp(x, y);
}

static int sealing_file(struct sealing *r, const struct sealing_file *f)
{
	int fd = files_open(r->rootfd, f->path, O_RDONLY), rv = 0;
	char bytes[CHUNK] = "\n";
	uint64_t size = f->size, at = 0;
	struct stat st;
	size_t n = 1;

	if (fd < 0 || sys->fstat(fd, &st) != 0) {
		rv = err_sys(r->err, "%s", f->path);
		files_close(&fd);
		return rv;
	}
	size = f->whole ? (uint64_t)st.st_size : f->size;
	r->sum->unsealed += (uint64_t)st.st_size - MIN(size, (uint64_t)st.st_size);
	fprintf(r->out, "{\"file\":\"%s\",\"size\":%llu}\n", f->path, (unsigned long long)size);
	while (rv == 0 && at < size) {
		n = (size_t)MIN((uint64_t)CHUNK, size - at);
		if (sys_read_all(fd, bytes, n, (off_t)at) != 0)
			rv = err_sys(r->err, "%s", f->path);
		else
			fwrite(bytes, 1, n, r->out);
		at += n;
	}
	if (bytes[n - 1] != '\n')
		fputc('\n', r->out);
	r->sum->files++;
	r->sum->bytes += size;
	files_close(&fd);
	return rv;
}

/* Files that went since they were sealed cannot be in it. */
static void sealing_drop_gone(struct sealing *r)
{
	struct stat st;
	size_t kept = 0;

	for (size_t i = 0; i < r->nfiles; i++) {
		struct sealing_file *f = r->files[i];

		if ((f->whole || f->size > 0) && sys->fstatat(r->rootfd, f->path, &st, 0) == 0) {
			r->files[kept++] = f;
			continue;
		}
		strmap_del(&r->by_path, r->files[i]->path);
		free(r->files[i]);
		r->sum->gone++;
	}
	r->nfiles = kept;
}

static int sealing_write(struct sealing *r, const struct files_names *days, FILE *out)
{
	struct buf head;
	struct jw w;
	size_t i;
	int rv;

	buf_init(&head, (size_t)64 << 20);
	jw_init(&w, &head);
	jw_object(&w, NULL);
	jw_int(&w, "record", 1);
	jw_str(&w, "of", r->w->of);
	jw_array(&w, "keys");
	for (i = 0; i < r->nkeys; i++)
		jw_str(&w, NULL, json_string_value(json_array_get(r->keys, i)));
	jw_end(&w);
	jw_array(&w, "files");
	for (i = 0; i < r->nfiles; i++)
		jw_str(&w, NULL, r->files[i]->path);
	jw_end(&w);
	jw_end(&w);
	rv = buf_check(&head) == 0 ? 0 : sealing_no_memory(r);
	if (rv == 0)
		fprintf(out, "%s\n", head.data);
	buf_fini(&head);
	r->out = out;
	if (rv == 0)
		rv = sealing_days(r, days);
	for (i = 0; rv == 0 && i < r->nfiles; i++)
		rv = sealing_file(r, r->files[i]);
	if (rv == 0)
		fprintf(out, "{\"end\":true,\"seals\":%llu,\"files\":%llu}\n",
			(unsigned long long)r->sum->seals, (unsigned long long)r->sum->files);
	if (rv == 0 && (fflush(out) != 0 || ferror(out)))
		rv = err_sys(r->err, "write the record");
	return rv;
}

int sealed_write(int rootfd, const struct sealed_wish *w, FILE *out, struct sealed_sum *sum,
		 struct ava_error *err)
{
	struct sealing r = {.rootfd = rootfd, .w = w, .sum = sum, .err = err, .keys = json_array()};
	struct files_names days = {0};
	int rv = files_list(&days, rootfd, "logs/ava", ".jsonl", err);

	*sum = (struct sealed_sum){0};
	strmap_init(&r.by_path);
	if (days.n > 0)
		qsort(days.names, days.n, sizeof(days.names[0]), files_by_day);
	if (rv == 0)
		rv = sealing_days(&r, &days);
	if (rv == 0)
		rv = sealing_more(&r);
	sealing_drop_gone(&r);
	if (rv == 0 && r.nfiles == 0)
		rv = err_set(
			err, AVA_ENOENT,
			"nothing of %s is sealed (what a kill left is, when the daemon starts)",
			w->of);
	if (r.nfiles > 0)
		qsort(r.files, r.nfiles, sizeof(struct sealing_file *), sealing_order);
	if (rv == 0)
		rv = sealing_write(&r, &days, out);
	for (size_t i = 0; i < r.nfiles; i++)
		free(r.files[i]);
	free(r.files);
	strmap_fini(&r.by_path);
	files_names_fini(&days);
	json_decref(r.keys);
	return rv;
}
