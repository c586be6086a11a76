/* Do the logs still hold the sealed content? ava_log_verify and ava_log_head of ava.h;
 * doc/SEALS.md says what a success proves.
 *
 * First the chain of Seals is followed through the daily logs: each must be signed by a known key,
 * have the next number and the hash of the one before; the newest must be the one that seals/last
 * names, or a later one. Statements of good Seals are noted with their files; bad Seals are
 * findings, and their statements are ignored. Then threads read the files, the largest first. A
 * file goes through one SHA-256; at each sealed size the digest so far is compared. At the first
 * difference the lines of that stretch are compared with the marks of its Seal, to name the line
 * and its change. Bytes behind the last sealed size are the unsealed tail, reported apart, like
 * files that were never sealed. At the end all findings are reported in the order of names. Reads
 * a data root, changes nothing, needs no daemon. When a newer Seal was written meanwhile and
 * something is amiss, everything is done again: `ava prune` may have been at work, and that Seal
 * names the removed files. What can fail: memory, and reading; an error of one file stays there. */
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/strmap.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "event/event.h"
#include "journal/files.h"
#include "journal/read_root.h"
#include "journal/seal_read.h"

#define THREADS_MAX 16
#define ROOT_MAX    4096
#define CHUNK       (1u << 20)
#define PASSES      5 /* most passes over logs that are pruned meanwhile */

struct verify_found { /* waits until all findings before it are reported */
	struct verify_found *next;
	struct ava_finding f;
	char what[];
};

struct verify_item { /* a place up to which a file is sealed */
	uint64_t size;
	uint64_t n;       /* number of the Seal */
	uint64_t at, len; /* the Seal's line in daily log `day`; len 0: in seals/last */
	size_t day;
	unsigned char head[SEAL_HASH];
};

struct verify_file {
	struct verify_item *items; /* owned; sorted by size once all are known */
	size_t n, cap;
	uint64_t disk;              /* size at the start; UINT64_MAX: missing */
	struct verify_found *found; /* owned, in order */
	struct verify_found **found_end;
	uint64_t tail; /* bytes behind the last item */
	bool pruned;   /* a Seal lists the file as gone, and none has sealed one in its place */
	bool aside;    /* a recovery moved the file to this path */
	int rv;        /* error code of reading the file */
	char path[];
};

struct verify {
	const struct ava_verify *o;
	struct ava_verified *report;
	const char *root;
	int rootfd;
	struct files_names days;    /* daily logs, in the order of time */
	struct strmap by_path;      /* struct verify_file by path */
	struct verify_file **files; /* owned; sorted by path */
	size_t nfiles, cap;
	_Atomic size_t next; /* next file for a thread */
	_Atomic unsigned ended;
	_Atomic uint64_t done;
	uint64_t total;
	bool seals_only; /* only Seals are read (ava_log_head), and no items kept */
	bool day_gone;   /* a daily log was pruned before it was read */
	bool anew;       /* the findings are useless: logs were removed meanwhile */
	/* The place of the walk along the chain of Seals. */
	struct verify_file *day; /* the log being read */
	size_t day_at;
	uint64_t n; /* number of the last good Seal */
	unsigned char hash[SEAL_HASH], key[SEAL_KEY];
	bool have_key, key_known;
	uint64_t bad; /* unreadable Seals behind the last good one */
	struct seal_last last;
	bool have_last, saw_last, saw_head;
	/* The first existing Seal, unless it is number 1, and the range that a later Seal
	 * reports as pruned. */
	struct verify_first {
		struct verify_file *day;
		uint64_t n, line, at;
		unsigned char prev[SEAL_HASH];
	} first;
	uint64_t base_n;
	unsigned char base[SEAL_HASH];
};

/* ---- files and their findings */

/* Add a finding to the file. Memory running out is an error of the file. */
static void __attribute__((format(printf, 5, 6)))
verify_tell(struct verify_file *f, enum ava_finding_kind kind, uint64_t line, uint64_t offset,
	    const char *fmt, ...)
{
	struct verify_found *found;
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	found = malloc(sizeof(*found) + strlen(what) + 1);
	if (found == NULL) {
		f->rv = AVA_ENOMEM;
		return;
	}
	memcpy(found->what, what, strlen(what) + 1);
	found->next = NULL;
	found->f = (struct ava_finding){kind, f->path, line, offset, found->what};
	*f->found_end = found;
	f->found_end = &found->next;
}

/* The file of this path, added if need be; NULL: no memory. */
static struct verify_file *verify_file(struct verify *v, const char *path)
{
	struct verify_file *f = strmap_get(&v->by_path, path);

	if (f != NULL)
		return f;
	if (!ARRAY_ROOM(v->files, v->cap, v->nfiles + 1))
		return NULL;
	f = calloc(1, sizeof(*f) + strlen(path) + 1);
	if (f == NULL)
		return NULL;
	f->disk = UINT64_MAX;
	f->found_end = &f->found;
	memcpy(f->path, path, strlen(path) + 1);
	if (strmap_put(&v->by_path, f->path, f) != 0) {
		free(f);
		return NULL;
	}
	v->files[v->nfiles++] = f;
	return f;
}

static int verify_item(struct verify *v, const char *path, const struct verify_item *item)
{
	struct verify_file *f = verify_file(v, path);

	if (f == NULL || !ARRAY_ROOM(f->items, f->cap, f->n + 1))
		return AVA_ENOMEM;
	f->items[f->n++] = *item;
	return 0;
}

static void verify_file_free(struct verify_file *f)
{
	struct verify_found *next;

	for (; f->found != NULL; f->found = next) {
		next = f->found->next;
		free(f->found);
	}
	free(f->items);
	free(f);
}

/* ---- the chain of Seals */

static void chain_key(struct verify *v, const struct seal *s, uint64_t line, uint64_t at)
{
	if (v->have_key && memcmp(v->key, s->key, SEAL_KEY) == 0)
		return;
	if (v->have_key)
		verify_tell(v->day, AVA_NOTE, line, at, "from seal %llu on another key seals",
			    (unsigned long long)s->n);
	memcpy(v->key, s->key, SEAL_KEY);
	v->have_key = true;
	v->key_known = seal_key_known(v->rootfd, s->key, NULL) == 1;
	if (!v->key_known)
		verify_tell(v->day, AVA_BROKEN, line, at,
			    "seal %llu is signed by a key that " SEAL_PUBLIC_PATH " does not name",
			    (unsigned long long)s->n);
}

static void chain_place(struct verify *v, const struct seal *s, uint64_t line, uint64_t at)
{
	static const unsigned char zeros[SEAL_HASH];
	unsigned long long n = s->n, was = v->n, first = v->n + 1;

	if (was == 0 && n > first && v->bad == 0) {
		v->first = (struct verify_first){v->day, s->n, line, at, {0}};
		memcpy(v->first.prev, s->prev, SEAL_HASH);
		return;
	}
	if (n <= was)
		verify_tell(v->day, AVA_BROKEN, line, at, "seal %llu stands behind seal %llu", n,
			    was);
	else if (n > first + v->bad && n - 1 == first)
		verify_tell(v->day, AVA_BROKEN, line, at, "seal %llu is missing before this line",
			    first);
	else if (n > first + v->bad)
		verify_tell(v->day, AVA_BROKEN, line, at,
			    "seals %llu to %llu are missing before this line", first, n - 1);
	else if (n == first && memcmp(s->prev, was == 0 ? zeros : v->hash, SEAL_HASH) != 0)
		verify_tell(v->day, AVA_BROKEN, line, at,
			    "seal %llu does not follow the seal %llu that stands here", n, was);
}

/* Take a good Seal's statements: how far files are sealed, which are gone, and where the chain
 * begins, if `ava prune` removed days. 0, AVA_ENOMEM, AVA_ECORRUPT. */
static int chain_items(struct verify *v, const struct seal *s, uint64_t at, size_t len)
{
	const json_t *pruned = json_object_get(s->doc, "pruned");
	int64_t n = json_get_int(pruned, "upTo", 0);
	struct seal_item item;
	const char *path;
	int rv;

	for (size_t i = 0; (rv = seal_item(s, i, &item)) == 1; i++) {
		struct verify_item place = {
			.size = item.size, .n = s->n, .at = at, .len = len, .day = v->day_at};

		memcpy(place.head, item.head, SEAL_HASH);
		if (verify_item(v, item.path, &place) != 0)
			return AVA_ENOMEM;
		verify_file(v, item.path)->pruned = false;
	}
	if (rv != 0)
		return rv;
	if (n > 0 && (uint64_t)n >= v->base_n &&
	    hash_unhex(json_get_str(pruned, "hash"), v->base, SEAL_HASH))
		v->base_n = (uint64_t)n;
	for (size_t i = 0; (path = seal_gone_path(s, i)) != NULL; i++) {
		struct verify_file *f;

		if (!files_path_ok(path))
			continue;
		f = verify_file(v, path);
		if (f == NULL)
			return AVA_ENOMEM;
		f->pruned = true;
		f->n = 0; /* who has the path from now on is another file */
	}
	return 0;
}

static void chain_newest(struct verify *v, const struct seal *s)
{
	struct ava_log_head *newest = &v->report->newest;
	const struct ava_log_head *head = v->o->head;
	const char *at = json_get_str(s->doc, "at");
	char hash[2 * SEAL_HASH + 1];

	hash_hex(s->hash, SEAL_HASH, hash);
	if (s->n >= newest->n) {
		newest->n = s->n;
		memcpy(newest->hash, hash, sizeof(hash));
		hash_hex(s->key, SEAL_KEY, newest->key);
		snprintf(newest->at, sizeof(newest->at), "%.30s", at != NULL ? at : "");
	}
	v->saw_head |= head != NULL && head->n == s->n && strcmp(head->hash, hash) == 0;
	v->saw_last |=
		v->have_last && v->last.n == s->n && memcmp(v->last.hash, s->hash, SEAL_HASH) == 0;
}

static int chain_seal(struct verify *v, const char *line, size_t len, uint64_t number, uint64_t at)
{
	struct event_view e;
	struct seal s = {0};
	int rv = event_view(line, len, &e) != 0 ? AVA_ECORRUPT
						: seal_parse(&s, e.content.s, e.content.len, NULL);

	if (rv == AVA_ENOMEM)
		return rv;
	if (rv != 0 || !s.authentic) {
		verify_tell(v->day, AVA_BROKEN, number, at,
			    rv != 0 ? "a seal cannot be read"
				    : "the signature of a seal does not match: it was changed");
		v->bad++;
		seal_fini(&s);
		return 0;
	}
	chain_key(v, &s, number, at);
	chain_place(v, &s, number, at);
	v->report->seals++;
	chain_newest(v, &s);
	if (s.n > v->n) {
		v->n = s.n;
		memcpy(v->hash, s.hash, SEAL_HASH);
		v->bad = 0;
	}
	if (!v->seals_only && v->key_known)
		rv = chain_items(v, &s, at, len);
	if (rv == AVA_ECORRUPT) {
		verify_tell(v->day, AVA_BROKEN, number, at,
			    "seal %llu has an entry that cannot be read", (unsigned long long)s.n);
		rv = 0;
	}
	seal_fini(&s);
	return rv;
}

static int chain_day(struct verify *v, struct ava_error *err)
{
	int fd = files_open(v->rootfd, v->day->path, O_RDONLY), rv;
	struct loglines l;
	const char *line;
	struct stat st;
	size_t len;

	if (fd < 0) {
		v->day_gone = errno == ENOENT;
		return err_sys(err, "%s", v->day->path);
	}
	if (sys->fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		files_close(&fd);
		return err_set(err, AVA_EIO, "%s is not a regular file", v->day->path);
	}
	loglines_init(&l, fd, 0, (uint64_t)st.st_size);
	while ((rv = loglines_next(&l, &line, &len)) == 1) {
		if (line == NULL)
			rv = AVA_ETOOBIG;
		else if (seal_is_line(line, len))
			rv = chain_seal(v, line, len, l.line - 1, l.offset - len);
		if (rv < 0)
			break;
	}
	loglines_fini(&l);
	files_close(&fd);
	return rv < 0 ? err_set(err, rv, "%s cannot be read", v->day->path) : 0;
}

/* The chain begins with number 1, or where what was pruned ended. */
static void chain_begin(struct verify *v)
{
	const struct verify_first *f = &v->first;
	unsigned long long last = f->n - 1;

	if (f->n == 0)
		return;
	if (v->base_n < last)
		verify_tell(f->day, AVA_BROKEN, f->line, f->at,
			    last > v->base_n + 1 ? "seals %llu to %llu are missing before this line"
						 : "seal %llu is missing before this line",
			    (unsigned long long)v->base_n + 1, last);
	else if (v->base_n == last && memcmp(v->base, f->prev, SEAL_HASH) != 0)
		verify_tell(f->day, AVA_BROKEN, f->line, f->at,
			    "seal %llu does not follow the seal %llu that was pruned",
			    (unsigned long long)f->n, last);
	else if (v->base_n == last)
		verify_tell(f->day, AVA_NOTE, f->line, f->at,
			    "what was before seal %llu was pruned", (unsigned long long)f->n);
}

/* Compare the newest Seal with seals/last and with the head that a person kept. */
static int chain_end(struct verify *v)
{
	unsigned long long n = v->last.n, have = v->report->newest.n;
	const struct ava_log_head *h = v->o->head;
	struct verify_item item = {.size = v->last.size, .n = v->last.n};
	struct verify_file *f;

	memcpy(item.head, v->last.head, SEAL_HASH);
	if (v->have_last && verify_item(v, v->last.path, &item) != 0)
		return AVA_ENOMEM;
	if (v->have_last && !v->saw_last)
		verify_tell(verify_file(v, v->last.path), AVA_BROKEN, 0, 0,
			    n > have ? "seal %llu was the newest and is missing: the logs end with "
				       "seal %llu"
				     : "seal %llu is another one than was written (the newest is "
				       "seal %llu)",
			    n, have);
	if (!v->have_last && v->report->seals > 0)
		verify_tell(v->day, AVA_NOTE, 0, 0,
			    SEAL_LAST_PATH " is not there: what was cut off behind the newest seal "
					   "cannot be seen");
	if (h == NULL || v->saw_head)
		return 0;
	f = verify_file(v, "logs/ava");
	if (f == NULL)
		return AVA_ENOMEM;
	f->disk = 0;
	verify_tell(f, AVA_BROKEN, 0, 0,
		    h->n > have ? "the seal %llu that was kept is missing: the logs end with seal "
				  "%llu"
				: "seal %llu is another one than the one that was kept (the newest "
				  "is seal %llu)",
		    (unsigned long long)h->n, have);
	return 0;
}

static int verify_chain(struct verify *v, struct ava_error *err)
{
	char path[FILES_BUF];
	int rv = seal_last_read(v->rootfd, &v->last, NULL);

	v->have_last = rv == 0;
	rv = rv == AVA_ENOMEM ? rv : 0;
	for (v->day_at = 0; rv == 0 && v->day_at < v->days.n; v->day_at++) {
		snprintf(path, sizeof(path), "logs/ava/%s", v->days.names[v->day_at]);
		if (!files_path_ok(path))
			continue;
		v->day = verify_file(v, path);
		if (v->day == NULL)
			rv = AVA_ENOMEM;
		else
			rv = chain_day(v, err);
	}
	if (rv == 0 && !v->seals_only) {
		chain_begin(v);
		rv = chain_end(v);
	}
	return rv == AVA_ENOMEM ? err_set(err, rv, "out of memory") : rv;
}

/* ---- where a stretch differs */

struct stretch {
	struct verify_file *f;
	int fd;
	uint64_t good; /* the file is as sealed up to here */
	const struct verify_item *item;
	uint64_t size;  /* bytes of the file on disk */
	uint64_t first; /* number of the first line of `lines` */
	struct stretch_line {
		uint64_t offset;
		uint32_t crc;
	} * lines; /* owned; existing lines from item.from on */
	size_t n, cap;
	uint64_t end; /* offset behind the last of `lines` */
};

/* Read the lines from `from` on, a few more than were sealed. */
static int stretch_read(struct stretch *t, uint64_t from, size_t most)
{
	struct loglines l;
	const char *line;
	size_t len;
	int rv;

	loglines_init(&l, t->fd, 0, t->size);
	while ((rv = loglines_next(&l, &line, &len)) == 1 && t->n < most) {
		if (line == NULL) {
			rv = AVA_ETOOBIG;
			break;
		}
		t->end = l.offset;
		if (l.offset <= from) {
			t->first = l.line;
			continue;
		}
		if (!ARRAY_ROOM(t->lines, t->cap, t->n + 1)) {
			rv = AVA_ENOMEM;
			break;
		}
		t->lines[t->n++] = (struct stretch_line){l.offset - len, crc32c(0, line, len)};
	}
	loglines_fini(&l);
	return rv < 0 ? rv : 0;
}

/* The mark of the lines from i * each on. */
static uint32_t stretch_mark(const struct stretch *t, size_t i, size_t each)
{
	uint32_t crc = 0;

	if (i * each >= t->n)
		return UINT32_MAX;
	for (size_t k = i * each; k < MIN(t->n, (i + 1) * each); k++)
		crc = crc32c(crc, &t->lines[k].crc, sizeof(t->lines[k].crc));
	return crc & 0xffffff;
}

static void stretch_tell(struct stretch *t, size_t i, const char *what)
{
	verify_tell(t->f, AVA_BROKEN, t->first + i, i < t->n ? t->lines[i].offset : t->end,
		    "%s (sealed by seal %llu)", what, (unsigned long long)t->item->n);
}

/* Report mark `i`, the first that differs, which stands for one line. */
static void stretch_tell_one(struct stretch *t, const struct seal_item *item, size_t i)
{
	uint32_t was = seal_mark(item, i), is = stretch_mark(t, i, 1);
	size_t k;

	if (i >= t->n) {
		stretch_tell(t, i, "lines are missing from here to the end");
		return;
	}
	for (k = i + 1; k < item->nmarks && seal_mark(item, k) != is;)
		k++;
	if (k < item->nmarks) { /* a later line is at this place */
		size_t j = i + 1;

		while (j < t->n && stretch_mark(t, j, 1) != was)
			j++;
		stretch_tell(t, i,
			     j < t->n     ? "the lines from here on are in another order"
			     : k == i + 1 ? "a line is missing before this one"
					  : "lines are missing before this one");
	} else if (i + 1 < t->n && stretch_mark(t, i + 1, 1) == was) {
		stretch_tell(t, i, "this line was put in");
	} else {
		stretch_tell(t, i, "this line was changed");
	}
}

static void stretch_tell_first(struct stretch *t, const struct seal_item *item)
{
	size_t i = 0, each = (size_t)item->each;
	char what[160];

	while (i < item->nmarks && seal_mark(item, i) == stretch_mark(t, i, each))
		i++;
	if (i == item->nmarks) {
		verify_tell(t->f, AVA_BROKEN, 0, t->good,
			    "something was changed between byte %llu and byte %llu (sealed by seal "
			    "%llu)",
			    (unsigned long long)t->good, (unsigned long long)t->item->size,
			    (unsigned long long)t->item->n);
	} else if (each == 1) {
		stretch_tell_one(t, item, i);
	} else {
		snprintf(what, sizeof(what), "this line or one of the %zu behind it was changed",
			 each - 1);
		stretch_tell(t, i * each, what);
	}
}

/* Read the Seal again into `line`, of place->len bytes: its marks were not kept. 1: found. */
static int verify_read_item(struct verify *v, struct verify_file *f,
			    const struct verify_item *place, char *line, struct seal *s,
			    struct seal_item *item)
{
	char path[FILES_BUF];
	struct event_view e;
	int fd, rv = 0;

	snprintf(path, sizeof(path), "logs/ava/%s", v->days.names[place->day]);
	fd = files_open(v->rootfd, path, O_RDONLY);
	if (fd >= 0 && line && sys_read_all(fd, line, place->len, (off_t)place->at) == 0 &&
	    event_view(line, place->len, &e) == 0 &&
	    seal_parse(s, e.content.s, e.content.len, NULL) == 0)
		for (size_t i = 0; rv == 0 && seal_item(s, i, item) == 1; i++)
			rv = item->size == place->size && strcmp(item->path, f->path) == 0;
	files_close(&fd);
	return rv;
}

/* Find the line that differs: `place` is the first whose digest does; the file is as sealed up
 * to `good`. 0 or a code. */
static int locate(struct verify *v, struct verify_file *f, int fd, uint64_t size, uint64_t good,
		  const struct verify_item *place)
{
	struct stretch t = {
		.f = f, .fd = fd, .good = good, .item = place, .size = size, .first = 1};
	struct seal_item item = {.each = 1, .lines = ""};
	struct seal s = {0};
	char *line = malloc(place->len);
	size_t most;
	int rv;

	if (place->len == 0 || !verify_read_item(v, f, place, line, &s, &item))
		item = (struct seal_item){.from = good, .each = 1, .lines = ""};
	most = item.nmarks < SIZE_MAX / 2 / item.each ? item.nmarks * item.each + 64 : SIZE_MAX;
	rv = stretch_read(&t, item.from, most);
	if (rv == 0 && place->len == 0 && t.n > 0 && size >= place->size)
		stretch_tell(&t, 0, "this line or one behind it was changed");
	else if (rv == 0)
		stretch_tell_first(&t, &item);
	free(t.lines);
	free(line);
	seal_fini(&s);
	return rv;
}

/* ---- one file, on any thread */

/* Check the unsigned lines behind the last Seal, in which a run's numbers go on. 0 or a code. */
static int check_tail(struct verify_file *f, int fd, uint64_t from, uint64_t size)
{
	bool is_log = strncmp(f->path, "logs/", 5) == 0;
	bool is_run = strncmp(f->path, "logs/subagents/", 15) == 0;
	uint64_t lsn = 0, seq = 0;
	struct loglines l;
	struct event_view e;
	const char *line;
	char *last;
	size_t len;
	int rv;

	f->tail = size - from;
	last = is_run ? files_last_line(fd, 0, from, &len) : NULL;
	if (last != NULL && event_view(last, len, &e) == 0) {
		lsn = e.lsn;
		seq = e.seq;
	}
	free(last);
	loglines_init(&l, fd, from, size);
	while ((rv = loglines_next(&l, &line, &len)) == 1) {
		if (l.torn) {
			verify_tell(f, AVA_UNSEALED, 0, l.offset - len,
				    "the last line is not whole");
		} else if (is_log && (line == NULL || event_view(line, len, &e) != 0)) {
			verify_tell(f, AVA_BROKEN, 0, l.offset - len,
				    "line %llu behind the last seal is no event",
				    (unsigned long long)l.line - 1);
		} else if (is_run) {
			if (e.lsn <= lsn || e.seq <= seq)
				verify_tell(f, AVA_BROKEN, 0, l.offset - len,
					    "line %llu behind the last seal does not go on from "
					    "the one before: lsn %llu, seq %llu behind %llu, %llu",
					    (unsigned long long)l.line - 1,
					    (unsigned long long)e.lsn, (unsigned long long)e.seq,
					    (unsigned long long)lsn, (unsigned long long)seq);
			lsn = MAX(lsn, e.lsn);
			seq = MAX(seq, e.seq);
		}
	}
	verify_tell(f, AVA_UNSEALED, 0, from,
		    from == 0 ? "nothing of it is sealed (%llu lines, %llu bytes)"
			      : "the end is not sealed yet (%llu lines, %llu bytes)",
		    (unsigned long long)l.line - 1, (unsigned long long)(size - from));
	loglines_fini(&l);
	return rv;
}

static int check_items(struct verify *v, struct verify_file *f, int fd, uint64_t size, char *buf)
{
	struct hash_sha256 h, copy;
	unsigned char head[SEAL_HASH];
	uint64_t at = 0, good = 0;
	int rv;

	hash_sha256_init(&h);
	for (size_t i = 0; i < f->n; i++) {
		const struct verify_item *item = &f->items[i];

		if (item->size > size) {
			rv = locate(v, f, fd, size, good, item);
			verify_tell(f, AVA_BROKEN, 0, size,
				    "it has %llu bytes and %llu were sealed",
				    (unsigned long long)size,
				    (unsigned long long)f->items[f->n - 1].size);
			return rv;
		}
		while (at < item->size) {
			size_t n = (size_t)MIN((uint64_t)CHUNK, item->size - at);

			if (sys_read_all(fd, buf, n, (off_t)at) != 0)
				return AVA_EIO;
			hash_sha256_add(&h, buf, n);
			at += n;
			atomic_fetch_add_explicit(&v->done, n, memory_order_relaxed);
		}
		copy = h;
		hash_sha256_end(&copy, head);
		if (memcmp(head, item->head, SEAL_HASH) != 0)
			return locate(v, f, fd, size, good, item);
		good = item->size;
	}
	return good < size ? check_tail(f, fd, good, size) : 0;
}

/* A run's last event, which is sealed, names the sha256 of its result.json; messages name heads. */
static void verify_check_result(struct verify *v, struct verify_file *f, int fd, uint64_t size)
{
	static const char key[] = "\"resultHash\":\"";
	bool is_run = strncmp(f->path, "logs/subagents/", 15) == 0;
	const char *name = f->path + (is_run ? 15 : 0), *at;
	char *line, *result = NULL, path[FILES_BUF], have[HASH_HEX_LEN + 1];
	size_t len, n;

	line = is_run ? files_last_line(fd, 0, size, &len) : NULL;
	at = line != NULL ? memmem(line, len, key, sizeof(key) - 1) : NULL;
	if (at != NULL && len - (size_t)(at - line) > sizeof(key) + HASH_HEX_LEN) {
		snprintf(path, sizeof(path), "runs/%.*s/result.json", (int)strcspn(name, "."),
			 name);
		if (sys_read_file(v->rootfd, path, 64u << 20, &result, &n, NULL) == 0)
			hash_sha256_hex(result, n, have);
		if (result == NULL && !f->pruned)
			verify_tell(f, AVA_BROKEN, 0, 0, "its %.100s is missing", path);
		else if (result != NULL && memcmp(have, at + sizeof(key) - 1, HASH_HEX_LEN) != 0)
			verify_tell(f, AVA_BROKEN, 0, 0, "its %.100s is not as it was handed in",
				    path);
	}
	if (f->n > 0 && files_lost_head(v->rootfd, f->path, f->items[f->n - 1].size, path))
		verify_tell(f, AVA_BROKEN, 0, 0, "its %.100s is missing", path);
	free(result);
	free(line);
}

static void verify_check_file(struct verify *v, struct verify_file *f, char *buf)
{
	struct stat st;
	int fd;

	if (strncmp(f->path, "heads/", 6) == 0) { /* heads of requests (doc/MESSAGES.md) */
		if (!files_named_by_hash(v->rootfd, f->path, f->path + 6))
			verify_tell(f, AVA_BROKEN, 0, 0, "its name is not the hash of its bytes");
	} else if (f->aside) {
		verify_tell(f, AVA_NOTE, 0, 0, "a recovery put this aside; it is not sealed");
	} else if (f->disk == UINT64_MAX) {
		if (f->n > 0)
			verify_tell(f, AVA_BROKEN, 0, 0,
				    "it is missing: %llu bytes of it were sealed (seal %llu)",
				    (unsigned long long)f->items[f->n - 1].size,
				    (unsigned long long)f->items[f->n - 1].n);
		return;
	} else {
		fd = files_open(v->rootfd, f->path, O_RDONLY);
		if (buf == NULL)
			f->rv = AVA_ENOMEM;
		else if (fd >= 0 && sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
			f->rv = check_items(v, f, fd, (uint64_t)st.st_size, buf);
		else if (f->n > 0)
			verify_tell(f, AVA_BROKEN, 0, 0, "it cannot be opened as a file");
		if (f->rv == 0 && fd >= 0 && buf != NULL)
			verify_check_result(v, f, fd, (uint64_t)st.st_size);
		files_close(&fd);
	}
	if (files_is_part(f->path))
		verify_tell(f, AVA_NOTE, 0, 0, "a recovery made writing go on here");
}

/* ---- all files */

static int by_path(const void *a, const void *b)
{
	return strcmp((*(struct verify_file *const *)a)->path,
		      (*(struct verify_file *const *)b)->path);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = (*(struct verify_file *const *)a)->disk + 1,
		 y = (*(struct verify_file *const *)b)->disk + 1;

	return order_of(y, x);
}

static int by_item(const void *a, const void *b)
{
	const struct verify_item *x = a, *y = b;

	return x->size != y->size ? order_of(x->size, y->size) : order_of(x->n, y->n);
}

/* Add all files that are to be sealed and those that recoveries left. */
static int add_present(struct verify *v, struct ava_error *err)
{
	static const struct {
		const char *dir, *ending, *behind;
		bool aside;
	} folders[] = {
		{"logs/subagents", ".jsonl", "", false},
		{"runs", "", "/messages.jsonl", false},
		{"heads", "", "", false},
		{"logs/subagents", ".broken", "", true},
		{"logs/ava", ".broken", "", true},
		{"lost", "", "", true},
	};
	int rv = verify_file(v, "catalog.jsonl") != NULL ? 0 : AVA_ENOMEM;

	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(folders); i++) {
		struct files_names names = {0};
		char path[FILES_BUF];

		rv = files_list(&names, v->rootfd, folders[i].dir, folders[i].ending, err);
		for (size_t k = 0; rv == 0 && k < names.n; k++) {
			struct verify_file *f;

			snprintf(path, sizeof(path), "%s/%s%s", folders[i].dir, names.names[k],
				 folders[i].behind);
			if (!folders[i].aside && !files_path_ok(path))
				continue;
			f = verify_file(v, path);
			if (f == NULL)
				rv = AVA_ENOMEM;
			else
				f->aside = folders[i].aside;
		}
		files_names_fini(&names);
	}
	return rv == AVA_ENOMEM ? err_set(err, rv, "out of memory") : rv;
}

/* Was the path asked for: a file, a folder of files, or the id of a run? */
static bool verify_is_wanted(const struct verify *v, const char *path)
{
	char log[FILES_BUF];

	for (size_t i = 0; i < v->o->npaths; i++) {
		const char *want = v->o->paths[i];
		size_t len;

		if (id_is_run(want)) {
			snprintf(log, sizeof(log), "logs/subagents/%s.jsonl", want);
			want = log;
		}
		len = strlen(want);
		if (strncmp(path, want, len) == 0 && (path[len] == '\0' || path[len] == '/'))
			return true;
	}
	return v->o->npaths == 0;
}

/* Note the sizes and leave out files that were not asked for. */
static int select_files(struct verify *v, struct ava_error *err)
{
	size_t kept = 0;
	struct stat st;

	for (size_t i = 0; i < v->nfiles; i++) {
		struct verify_file *f = v->files[i];

		if (f->disk == UINT64_MAX && sys->fstatat(v->rootfd, f->path, &st, 0) == 0)
			f->disk = (uint64_t)st.st_size;
		if (!verify_is_wanted(v, f->path) ||
		    (f->disk == UINT64_MAX && f->n == 0 && f->found == NULL)) {
			strmap_del(&v->by_path, f->path);
			verify_file_free(f);
			continue;
		}
		if (f->n > 1)
			qsort(f->items, f->n, sizeof(f->items[0]), by_item);
		v->total += f->disk != UINT64_MAX && f->n > 0 ? f->disk : 0;
		v->files[kept++] = f;
	}
	v->nfiles = kept;
	if (kept == 0 && v->o->npaths > 0)
		return err_set(err, AVA_ENOENT, "%s: there is no such log below %s", v->o->paths[0],
			       v->root);
	return 0;
}

static void *verify_work(void *user)
{
	struct verify *v = user;
	char *buf = malloc(CHUNK);
	size_t i;

	while ((i = atomic_fetch_add(&v->next, 1)) < v->nfiles)
		verify_check_file(v, v->files[i], buf);
	free(buf);
	v->ended++;
	return NULL;
}

static void verify_check_files(struct verify *v)
{
	unsigned n = MIN(v->o->threads > 0 ? v->o->threads : 2, (unsigned)THREADS_MAX), started = 0;
	const struct timespec pause = {.tv_nsec = 100000000};
	pthread_t threads[THREADS_MAX];

	qsort(v->files, v->nfiles, sizeof(struct verify_file *), by_size);
	/* With a progress callback this thread reads no files itself. */
	n -= v->o->progress == NULL;
	while (started < n && pthread_create(&threads[started], NULL, verify_work, v) == 0)
		started++;
	while (v->o->progress != NULL && v->ended < started) {
		v->o->progress(v->done, v->total, v->o->user);
		nanosleep(&pause, NULL);
	}
	verify_work(v);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	qsort(v->files, v->nfiles, sizeof(struct verify_file *), by_path);
}

static int verify_tell_all(struct verify *v, struct ava_error *err)
{
	struct ava_verified *r = v->report;

	r->bytes = v->done;
	for (size_t i = 0; i < v->nfiles; i++) {
		const struct verify_file *f = v->files[i];

		if (f->rv != 0)
			return err_set(err, f->rv, "%s cannot be read: %s", f->path,
				       ava_strerror(f->rv));
		r->files += f->disk != UINT64_MAX;
		r->unsealed_files += f->tail > 0;
		r->unsealed_bytes += f->tail;
		for (const struct verify_found *w = f->found; w != NULL; w = w->next) {
			r->broken += w->f.kind == AVA_BROKEN;
			if (v->o->finding != NULL)
				v->o->finding(&w->f, v->o->user);
		}
	}
	return 0;
}

/* Is something broken that a Seal newer than those read may report as pruned? */
static bool broken_since(const struct verify *v)
{
	struct seal_last now;
	bool broken = false;

	for (size_t i = 0; i < v->nfiles; i++)
		for (const struct verify_found *w = v->files[i]->found; w != NULL; w = w->next)
			broken = broken || w->f.kind == AVA_BROKEN;
	return broken && seal_last_read(v->rootfd, &now, NULL) == 0 && now.n > v->last.n;
}

static int verify_run(struct verify *v, bool last, struct ava_error *err)
{
	char root[ROOT_MAX];
	int rv = 0;

	*v->report = (struct ava_verified){0};
	strmap_init(&v->by_path);
	v->root = v->o->root;
	if (v->root == NULL) {
		rv = settings_data_root(root, sizeof(root), err);
		v->root = root;
	}
	v->rootfd = rv == 0 ? read_open_root(v->root, err) : -1;
	if (rv == 0 && v->rootfd < 0)
		rv = v->rootfd;
	if (rv == 0)
		rv = files_list(&v->days, v->rootfd, "logs/ava", ".jsonl", err);
	if (rv == 0 && v->days.n > 0)
		qsort(v->days.names, v->days.n, sizeof(v->days.names[0]), files_by_day);
	if (rv == 0)
		rv = verify_chain(v, err);
	if (rv == 0 && v->seals_only && v->report->newest.n == 0)
		rv = err_set(err, AVA_ENOENT, "nothing is sealed yet below %s", v->root);
	if (rv == 0 && !v->seals_only) {
		rv = add_present(v, err);
		if (rv == 0)
			rv = select_files(v, err);
		if (rv == 0) {
			verify_check_files(v);
			v->anew = !last && broken_since(v);
			rv = v->anew ? 0 : verify_tell_all(v, err);
		}
	}
	v->anew = v->anew || (v->day_gone && !last);
	for (size_t i = 0; i < v->nfiles; i++)
		verify_file_free(v->files[i]);
	free(v->files);
	strmap_fini(&v->by_path);
	files_names_fini(&v->days);
	files_close(&v->rootfd);
	return rv;
}

int ava_log_verify(const struct ava_verify *o, struct ava_verified *out, struct ava_error *err)
{
	for (int pass = 1;; pass++) {
		struct verify v = {.o = o, .report = out};
		int rv = verify_run(&v, pass == PASSES, err);

		if (!v.anew)
			return rv;
	}
}

int ava_log_head(const char *root, struct ava_log_head *head, struct ava_error *err)
{
	struct ava_verify o = {.root = root};
	struct ava_verified report;
	struct verify v = {.o = &o, .report = &report, .seals_only = true};
	int rv = verify_run(&v, true, err);

	*head = report.newest;
	return rv;
}
