/* The chain of Seals: from the first to the newest, over all daily logs. Each
 * must be signed by a known key, have the next number and the hash of the one
 * before. What good ones say about files is noted with the files; bad ones
 * are findings, and what they say counts for nothing. The newest must be the
 * one that seals/last names, or a later one. */
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "codec/json.h"
#include "event/event.h"
#include "journal/files.h"
#include "journal/verify_state.h"

struct chain {
	struct verify *v;
	struct verify_file *day; /* the log that is being read */
	size_t day_at;
	uint64_t n; /* of the last good Seal */
	unsigned char hash[SEAL_HASH], key[SEAL_KEY];
	bool have_key, key_known;
	uint64_t bad; /* Seals behind it that cannot be read */
	struct seal_last last;
	bool have_last, saw_last, saw_head;
	/* The first Seal that is there, unless it is number 1, and what a later
	 * one says was pruned. */
	uint64_t first_n, first_line, first_at, base_n;
	struct verify_file *first_day;
	unsigned char first_prev[SEAL_HASH], base[SEAL_HASH];
};

static void check_key(struct chain *c, const struct seal *s, uint64_t line, uint64_t at)
{
	if (c->have_key && memcmp(c->key, s->key, SEAL_KEY) == 0)
		return;
	if (c->have_key)
		verify_file_found(c->day, VERIFY_NOTE, line, at,
				  "from seal %llu on another key seals", (unsigned long long)s->n);
	memcpy(c->key, s->key, SEAL_KEY);
	c->have_key = true;
	c->key_known = seal_key_known(c->v->rootfd, s->key, NULL) == 1;
	if (!c->key_known)
		verify_file_found(c->day, VERIFY_BROKEN, line, at,
				  "seal %llu is signed by a key that " SEAL_PUBLIC_PATH
				  " does not name",
				  (unsigned long long)s->n);
}

static void check_place(struct chain *c, const struct seal *s, uint64_t line, uint64_t at)
{
	static const unsigned char zeros[SEAL_HASH];
	unsigned long long n = s->n, was = c->n, first = c->n + 1;

	if (was == 0 && n > first && c->bad == 0) {
		c->first_n = s->n;
		c->first_line = line;
		c->first_at = at;
		c->first_day = c->day;
		memcpy(c->first_prev, s->prev, SEAL_HASH);
		return;
	}
	if (n <= was)
		verify_file_found(c->day, VERIFY_BROKEN, line, at,
				  "seal %llu stands behind seal %llu", n, was);
	else if (n > first + c->bad && n - 1 == first)
		verify_file_found(c->day, VERIFY_BROKEN, line, at,
				  "seal %llu is missing before this line", first);
	else if (n > first + c->bad)
		verify_file_found(c->day, VERIFY_BROKEN, line, at,
				  "seals %llu to %llu are missing before this line", first, n - 1);
	else if (n == first && memcmp(s->prev, was == 0 ? zeros : c->hash, SEAL_HASH) != 0)
		verify_file_found(c->day, VERIFY_BROKEN, line, at,
				  "seal %llu does not follow the seal %llu that stands here", n,
				  was);
}

static int add_items(struct chain *c, const struct seal *s, uint64_t at, size_t len)
{
	struct seal_item item;
	int rv;

	for (size_t i = 0; (rv = seal_item(s, i, &item)) == 1; i++) {
		struct verify_item place = {
			.size = item.size, .n = s->n, .at = at, .len = len, .day = c->day_at};
		struct verify_file *f;

		f = verify_file_get(c->v, item.path);
		memcpy(place.head, item.head, SEAL_HASH);
		if (f == NULL || verify_file_item(f, &place) != 0)
			return AVA_ENOMEM;
	}
	return rv;
}

static int add_pruned(struct chain *c, const json_t *paths)
{
	const json_t *item;
	size_t i;

	json_array_foreach(paths, i, item)
	{
		const char *path = json_get_str(item, "path");
		struct verify_file *f;

		if (path == NULL || !files_path_ok(path))
			continue;
		f = verify_file_get(c->v, path);
		if (f == NULL)
			return AVA_ENOMEM;
		f->pruned = true;
	}
	return 0;
}

/* What `ava prune` took away: the chain begins behind it. */
static int take_pruned(struct chain *c, const struct seal *s)
{
	const json_t *p = json_object_get(s->doc, "pruned");
	int64_t n = json_get_int(p, "upTo", 0);

	if (p == NULL)
		return 0;
	if (n > 0 && (uint64_t)n >= c->base_n &&
	    seal_unhex(json_get_str(p, "hash"), c->base, SEAL_HASH))
		c->base_n = (uint64_t)n;
	return add_pruned(c, json_object_get(p, "files"));
}

static void check_first(struct chain *c)
{
	unsigned long long last = c->first_n - 1;

	if (c->first_n == 0)
		return;
	if (c->base_n == 0 || c->base_n < last)
		verify_file_found(c->first_day, VERIFY_BROKEN, c->first_line, c->first_at,
				  last > c->base_n + 1
					  ? "seals %llu to %llu are missing before this line"
					  : "seal %llu is missing before this line",
				  (unsigned long long)c->base_n + 1, last);
	else if (c->base_n == last && memcmp(c->base, c->first_prev, SEAL_HASH) != 0)
		verify_file_found(c->first_day, VERIFY_BROKEN, c->first_line, c->first_at,
				  "seal %llu does not follow the seal %llu that was pruned",
				  (unsigned long long)c->first_n, last);
	else if (c->base_n == last)
		verify_file_found(c->first_day, VERIFY_NOTE, c->first_line, c->first_at,
				  "what was before seal %llu was pruned",
				  (unsigned long long)c->first_n);
}

static void take_newest(struct chain *c, const struct seal *s)
{
	struct verify_report *r = c->v->report;
	const struct verify_head *head = c->v->o->head;
	char hash[2 * SEAL_HASH + 1];
	const char *at = json_get_str(s->doc, "at");

	seal_hex(s->hash, SEAL_HASH, hash);
	if (s->n >= r->newest.n) {
		r->newest.n = s->n;
		memcpy(r->newest.hash, hash, sizeof(hash));
		seal_hex(s->key, SEAL_KEY, r->newest.key);
		snprintf(r->newest_at, sizeof(r->newest_at), "%.30s", at != NULL ? at : "");
	}
	if (head != NULL && head->n == s->n && strcmp(head->hash, hash) == 0)
		c->saw_head = true;
	if (c->have_last && c->last.n == s->n && memcmp(c->last.hash, s->hash, SEAL_HASH) == 0)
		c->saw_last = true;
}

static int take_seal(struct chain *c, const char *line, size_t len, uint64_t number, uint64_t at)
{
	struct ava_error err = {0};
	struct event_view e;
	struct seal s = {0};
	int rv;

	if (event_view(line, len, &e) != 0)
		rv = AVA_ECORRUPT;
	else
		rv = seal_parse(&s, e.content.s, e.content.len, &err);
	if (rv == AVA_ENOMEM)
		return rv;
	if (rv != 0 || !s.authentic) {
		verify_file_found(c->day, VERIFY_BROKEN, number, at,
				  rv != 0 ? "a seal cannot be read"
					  : "the signature of a seal does "
					    "not match: it was changed");
		c->bad++;
		seal_fini(&s);
		return 0;
	}
	check_key(c, &s, number, at);
	check_place(c, &s, number, at);
	c->v->report->seals++;
	take_newest(c, &s);
	if (s.n > c->n) {
		c->n = s.n;
		memcpy(c->hash, s.hash, SEAL_HASH);
		c->bad = 0;
	}
	rv = c->v->seals_only || !c->key_known ? 0 : add_items(c, &s, at, len);
	if (rv == 0 && !c->v->seals_only && c->key_known)
		rv = take_pruned(c, &s);
	if (rv == AVA_ECORRUPT) {
		verify_file_found(c->day, VERIFY_BROKEN, number, at,
				  "seal %llu has an entry that cannot be read",
				  (unsigned long long)s.n);
		rv = 0;
	}
	seal_fini(&s);
	return rv;
}

static int read_day(struct chain *c, struct ava_error *err)
{
	int fd = files_open(c->v->rootfd, c->day->path, O_RDONLY), rv;
	struct loglines l;
	const char *line;
	struct stat st;
	size_t len;

	if (fd < 0)
		return err_sys(err, "%s", c->day->path);
	if (sys->fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		files_close(&fd);
		return err_set(err, AVA_EIO, "%s is not a regular file", c->day->path);
	}
	loglines_init(&l, fd, 0, (uint64_t)st.st_size);
	while ((rv = loglines_next(&l, &line, &len)) == 1) {
		if (line == NULL)
			rv = AVA_ETOOBIG;
		else if (seal_is_line(line, len))
			rv = take_seal(c, line, len, l.line - 1, l.offset - len);
		if (rv < 0)
			break;
	}
	loglines_fini(&l);
	files_close(&fd);
	return rv < 0 ? err_set(err, rv, "%s cannot be read", c->day->path) : 0;
}

/* ---- the newest, as others know it */

static int check_last(struct chain *c)
{
	struct verify_file *f = verify_file_get(c->v, c->last.path);
	unsigned long long n = c->last.n, have = c->v->report->newest.n;
	struct verify_item item = {.size = c->last.size, .n = c->last.n};

	if (f == NULL)
		return AVA_ENOMEM;
	memcpy(item.head, c->last.head, SEAL_HASH);
	if (!c->saw_last)
		verify_file_found(f, VERIFY_BROKEN, 0, 0,
				  n > have ? "seal %llu was the newest and is missing: the logs "
					     "end with seal %llu"
					   : "seal %llu is another one than was written (the "
					     "newest is seal %llu)",
				  n, have);
	return verify_file_item(f, &item);
}

static void check_head(struct chain *c)
{
	const struct verify_head *h = c->v->o->head;
	struct verify_file *f = verify_file_get(c->v, "logs/ava");

	if (f == NULL || c->saw_head)
		return;
	f->disk = 0;
	verify_file_found(f, VERIFY_BROKEN, 0, 0,
			  h->n > c->v->report->newest.n
				  ? "the seal %llu that was kept is missing: the logs end with "
				    "seal %llu"
				  : "seal %llu is another one than the one that was kept (the "
				    "newest is seal %llu)",
			  (unsigned long long)h->n, (unsigned long long)c->v->report->newest.n);
}

int verify_chain(struct verify *v, struct ava_error *err)
{
	struct chain c = {.v = v};
	char path[FILES_BUF];
	int rv = seal_last_read(v->rootfd, &c.last, NULL);

	c.have_last = rv == 0;
	if (rv == AVA_ENOMEM)
		return err_set(err, rv, "out of memory");
	rv = 0;
	for (c.day_at = 0; rv == 0 && c.day_at < v->days.n; c.day_at++) {
		snprintf(path, sizeof(path), "logs/ava/%s", v->days.names[c.day_at]);
		if (!files_path_ok(path))
			continue;
		c.day = verify_file_get(v, path);
		rv = c.day != NULL ? read_day(&c, err) : err_set(err, AVA_ENOMEM, "out of memory");
	}
	if (rv != 0 || v->seals_only)
		return rv;
	check_first(&c);
	if (c.have_last && check_last(&c) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (!c.have_last && v->report->seals > 0 && c.day == NULL)
		return 0;
	if (!c.have_last && v->report->seals > 0)
		verify_file_found(c.day, VERIFY_NOTE, 0, 0,
				  SEAL_LAST_PATH
				  " is not there: what was cut off behind the newest "
				  "seal cannot be seen");
	if (v->o->head != NULL)
		check_head(&c);
	return 0;
}
