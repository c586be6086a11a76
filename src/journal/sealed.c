/* Checking a record: once through the file, in its order, and the first thing that does not hold
 * ends it. Of the Seals only sizes, heads and their own places are kept; where a head differs its
 * Seal is read again for the marks, and the lines behind its beginning. All of it may be hostile.
 * What can fail: reading, memory; lines over LOGLINES_MAX are refused. */
#include "journal/sealed.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/strmap.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "event/event.h"
#include "journal/files.h"
#include "journal/seal_read.h"

#define SEALED_SEAL "{\"seal\":"
#define CHUNK       (1u << 20)

struct sealed_item { /* a file's size in a Seal; the Seal stands at `at` of the record */
	uint64_t n, size, at, len;
	unsigned char head[SEAL_HASH];
};
struct sealed_path {
	struct sealed_item *items; /* owned */
	size_t n, cap;
	char path[];
};

struct sealed {
	int fd;
	uint64_t size;
	struct loglines l; /* its `offset` is behind the line read last */
	const char *line;
	size_t len;
	json_t *head, *now; /* the first line, and the present one or NULL; owned */
	struct strmap paths;
	json_t *results; /* of each run the hash that its log names; owned */
	unsigned char prev[SEAL_HASH];
	struct sealed_sum *sum;
	struct ava_error *err;
};

#define SEALED_WRONG(s, ...) err_set((s)->err, AVA_ECORRUPT, __VA_ARGS__)

/* The next line. 0 or a code. */
static int sealed_next(struct sealed *s)
{
	int rv = loglines_next(&s->l, &s->line, &s->len);

	json_decref(s->now);
	s->now = NULL;
	s->sum->line++;
	if (rv < 0)
		return err_set(s->err, rv, "it cannot be read");
	if (rv == 0 || s->l.torn || s->line == NULL)
		return SEALED_WRONG(s, "the record was cut here");
	s->now = json_parse(s->line, s->len, NULL);
	return 0;
}

static bool sealed_begins(const struct sealed *s, const char *word)
{
	return s->len >= strlen(word) && memcmp(s->line, word, strlen(word)) == 0;
}

/* ---- Seals */

static int sealed_note(struct sealed *s, const char *path, const struct sealed_item *item)
{
	struct sealed_path *p = strmap_get(&s->paths, path);

	if (p == NULL) {
		p = calloc(1, sizeof(*p) + strlen(path) + 1);
		if (p == NULL)
			return err_set(s->err, AVA_ENOMEM, "out of memory");
		memcpy(p->path, path, strlen(path) + 1);
		if (strmap_put(&s->paths, p->path, p) != 0) {
			free(p);
			return err_set(s->err, AVA_ENOMEM, "out of memory");
		}
	}
	if (!ARRAY_ROOM(p->items, p->cap, p->n + 1))
		return err_set(s->err, AVA_ENOMEM, "out of memory");
	p->items[p->n++] = *item;
	return 0;
}

static bool sealed_has_key(const struct sealed *s, const char *key, const char *keys)
{
	const json_t *one;
	bool found = false;
	size_t i;

	json_array_foreach(json_object_get(s->head, "keys"), i, one) found =
		found || strcmp(key, json_is_string(one) ? json_string_value(one) : "") == 0;
	return found && (keys == NULL || strcasestr(keys, key) != NULL);
}

static int sealed_take_seal(struct sealed *s, const struct seal *seal, const char *keys)
{
	struct ava_log_head *newest = &s->sum->newest;
	unsigned long long n = seal->n, was = newest->n;
	struct sealed_path *gone;
	struct seal_item item;
	const char *path;
	int rv = 0, there = 0;

	hash_hex(seal->key, SEAL_KEY, newest->key);
	if (!sealed_has_key(s, newest->key, keys))
		return SEALED_WRONG(s, "seal %llu is of another key", n);
	if (s->sum->seals > 0 && n != was + 1)
		return SEALED_WRONG(s, "seal %llu stands where seal %llu belongs", n, was + 1);
	if (s->sum->seals > 0 && memcmp(seal->prev, s->prev, SEAL_HASH) != 0)
		return SEALED_WRONG(s, "seal %llu does not follow the one before it", n);
	for (size_t i = 0; rv == 0 && (there = seal_item(seal, i, &item)) == 1; i++) {
		struct sealed_item place = {
			.n = n, .size = item.size, .at = s->l.offset - s->len, .len = s->len};

		memcpy(place.head, item.head, SEAL_HASH);
		rv = sealed_note(s, item.path, &place);
	}
	if (there < 0)
		return SEALED_WRONG(s, "this is no seal that its key signed");
	for (size_t i = 0; (path = seal_gone_path(seal, i)) != NULL; i++)
		if ((gone = strmap_get(&s->paths, path)) != NULL)
			gone->n = 0;
	memcpy(s->prev, seal->hash, SEAL_HASH);
	hash_hex(seal->hash, SEAL_HASH, newest->hash);
	newest->n = n;
	snprintf(newest->at, sizeof(newest->at), "%.30s", json_str(seal->doc, "at"));
	s->sum->seals++;
	return rv;
}

/* The content of a Seal's line in the record. */
static int sealed_parse(const char *line, size_t len, struct seal *seal)
{
	size_t begin = strlen(SEALED_SEAL);

	*seal = (struct seal){0};
	if (len < begin + 2 || memcmp(line, SEALED_SEAL, begin) != 0 ||
	    memcmp(line + len - 2, "}\n", 2) != 0)
		return AVA_ECORRUPT;
	return seal_parse(seal, line + begin, len - begin - 2, NULL);
}

static int sealed_seals(struct sealed *s, const char *keys)
{
	struct seal seal;
	int rv;

	while ((rv = sealed_next(s)) == 0 &&
	       (sealed_begins(s, SEALED_SEAL) || s->sum->seals == 0)) {
		rv = sealed_parse(s->line, s->len, &seal);
		if (rv == 0 && seal.authentic)
			rv = sealed_take_seal(s, &seal, keys);
		else if (rv != AVA_ENOMEM)
			rv = SEALED_WRONG(s, "this is no seal that its key signed");
		seal_fini(&seal);
		if (rv != 0)
			return rv;
	}
	return rv;
}

/* ---- files: `begin` is where one begins in the record, `size` how long it says it is */

struct sealed_part {
	const char *path;
	uint64_t begin, size;
	uint64_t there; /* bytes of it that the record has */
};

static uint64_t sealed_lines_before(struct sealed *s, const struct sealed_part *p, uint64_t upto)
{
	struct loglines l;
	const char *line;
	size_t len;

	loglines_init(&l, s->fd, p->begin, p->begin + MIN(upto, p->there));
	while (loglines_next(&l, &line, &len) == 1 && !l.torn)
		;
	loglines_fini(&l);
	return l.line - 1 - l.torn;
}

/* The number of the first of the lines behind item.from whose mark differs, from 0. */
static uint64_t sealed_differs(struct sealed *s, const struct sealed_part *p,
			       const struct seal_item *item)
{
	uint64_t from = MIN(item->from, p->there), upto = MIN(item->size, p->there), k = 0;
	struct loglines l;
	const char *line;
	uint32_t crc, one;
	size_t len, i, each;

	loglines_init(&l, s->fd, p->begin + from, p->begin + upto);
	for (i = 0; i < item->nmarks; i++) {
		crc = 0;
		for (each = 0; each < item->each && loglines_next(&l, &line, &len) == 1 && line;) {
			one = crc32c(0, line, len);
			crc = crc32c(crc, &one, sizeof(one));
			each++;
		}
		if (each == 0 || (crc & 0xffffff) != seal_mark(item, i))
			break;
	}
	k = i < item->nmarks ? i * item->each : 0;
	loglines_fini(&l);
	return k;
}

/* Name the line at which the file is not what the Seal covers. */
static int sealed_name(struct sealed *s, const struct sealed_part *p, const struct sealed_item *at)
{
	char *line = malloc(at->len);
	struct seal seal = {0};
	struct seal_item item;
	uint64_t k = 0;
	int rv = line == NULL ? AVA_ENOMEM : 0;

	if (rv == 0 && sys_read_all(s->fd, line, at->len, (off_t)at->at) != 0)
		rv = AVA_EIO;
	if (rv == 0)
		rv = sealed_parse(line, at->len, &seal);
	for (size_t i = 0; rv == 0 && seal_item(&seal, i, &item) == 1; i++)
		if (strcmp(item.path, p->path) == 0 && item.size == at->size)
			k = sealed_lines_before(s, p, item.from) + sealed_differs(s, p, &item) + 1;
	seal_fini(&seal);
	free(line);
	if (rv != 0)
		return err_set(s->err, rv, "it cannot be read");
	s->sum->line += k;
	return SEALED_WRONG(s, "line %llu of %s is not what seal %llu covers",
			    (unsigned long long)k, p->path, (unsigned long long)at->n);
}

/* Hash the bytes up to `upto`, counting lines. */
static int sealed_hash(struct sealed *s, const struct sealed_part *p, struct hash_sha256 *h,
		       uint64_t *at, uint64_t upto, char *buf)
{
	while (*at < upto) {
		size_t n = (size_t)MIN((uint64_t)CHUNK, upto - *at);

		if (sys_read_all(s->fd, buf, n, (off_t)(p->begin + *at)) != 0)
			return err_sys(s->err, "it cannot be read");
		hash_sha256_add(h, buf, n);
		*at += n;
	}
	return 0;
}

static int sealed_log(struct sealed *s, const struct sealed_part *p, char *buf)
{
	const struct sealed_path *known = strmap_get(&s->paths, p->path);
	struct hash_sha256 h, copy;
	unsigned char head[SEAL_HASH];
	uint64_t at = 0;
	int rv;

	hash_sha256_init(&h);
	for (size_t i = 0; known != NULL && i < known->n; i++) {
		const struct sealed_item *item = &known->items[i];

		if (item->size > p->there || item->size < at)
			return sealed_name(s, p, item);
		rv = sealed_hash(s, p, &h, &at, item->size, buf);
		copy = h;
		hash_sha256_end(&copy, head);
		if (rv == 0 && memcmp(head, item->head, SEAL_HASH) != 0)
			rv = sealed_name(s, p, item);
		if (rv != 0)
			return rv;
	}
	if (known == NULL || at != p->there)
		return SEALED_WRONG(s, "no seal covers all of %s", p->path);
	return 0;
}

/* "S-7f3a2b" of logs/subagents/S-7f3a2b.2.jsonl and runs/S-7f3a2b/result.json. */
static void sealed_run(const char *path, char out[64])
{
	const char *at =
		strncmp(path, "runs/", 5) == 0 ? path + 5 : path + strlen("logs/subagents/");

	snprintf(out, 64, "%.*s", (int)MIN(strcspn(at, "./"), (size_t)63), at);
}

/* The hash of the result that the last line of a run's log names. */
static int sealed_keep_result(struct sealed *s, const struct sealed_part *p)
{
	size_t len = 0;
	char run[64], *line = files_last_line(s->fd, p->begin, p->begin + p->there, &len);
	json_t *event = line != NULL ? json_parse(line, len, NULL) : NULL;
	const char *hash = json_str(json_object_get(event, "content"), "resultHash");
	int rv;

	sealed_run(p->path, run);
	rv = json_object_set_new(s->results, run, json_string(hash));
	json_decref(event);
	free(line);
	return rv == 0 ? 0 : err_set(s->err, AVA_ENOMEM, "out of memory");
}

static int sealed_whole(struct sealed *s, const struct sealed_part *p, char *buf)
{
	char hash[HASH_HEX_LEN + 1], run[64];
	unsigned char digest[SEAL_HASH];
	struct hash_sha256 h;
	uint64_t at = 0;
	int rv;

	hash_sha256_init(&h);
	rv = sealed_hash(s, p, &h, &at, p->there, buf);
	hash_sha256_end(&h, digest);
	hash_hex(digest, SEAL_HASH, hash);
	sealed_run(p->path, run);
	if (rv == 0 && strncmp(p->path, "heads/", 6) == 0 && strcmp(p->path + 6, hash) != 0)
		rv = SEALED_WRONG(s, "%s is not what its name says", p->path);
	else if (rv == 0 && strncmp(p->path, "runs/", 5) == 0 &&
		 strcmp(json_str(s->results, run), hash) != 0)
		rv = SEALED_WRONG(s, "%s is not what the log says", p->path);
	return rv;
}

/* By the path, as the format has it. */
static int sealed_prove(struct sealed *s, const struct sealed_part *p, char *buf)
{
	const char *name = strncmp(p->path, "runs/", 5) == 0 ? strchr(p->path + 5, '/') : NULL;
	int rv;

	if (strncmp(p->path, "logs/", 5) == 0 ||
	    (name != NULL && strncmp(name, "/messages.", 10) == 0)) {
		rv = sealed_log(s, p, buf);
		return rv == 0 && strncmp(p->path, "logs/subagents/", 15) == 0
			       ? sealed_keep_result(s, p)
			       : rv;
	}
	if ((name != NULL && strcmp(name, "/result.json") == 0) ||
	    strncmp(p->path, "heads/", 6) == 0)
		return sealed_whole(s, p, buf);
	return SEALED_WRONG(s, "nothing here proves %s", p->path);
}

static int sealed_file(struct sealed *s, const char *path, char *buf)
{
	struct sealed_part p = {.path = path, .begin = s->l.offset};
	int64_t size = json_get_int(s->now, "size", -1);
	char last = '\n';
	int rv;

	if (!sealed_begins(s, "{\"file\":") || size < 0 ||
	    strcmp(json_str(s->now, "file"), path) != 0)
		return SEALED_WRONG(s, "here belongs %s", path);
	p.size = (uint64_t)size;
	p.there = MIN(p.size, s->size - p.begin);
	rv = sealed_prove(s, &p, buf);
	if (rv == 0 && p.there > 0 &&
	    sys_read_all(s->fd, &last, 1, (off_t)(p.begin + p.there - 1)) != 0)
		rv = err_sys(s->err, "it cannot be read");
	if (rv != 0)
		return rv;
	s->sum->line += sealed_lines_before(s, &p, p.there) + (last != '\n');
	s->sum->files++;
	s->sum->bytes += p.there;
	loglines_fini(&s->l);
	loglines_init(&s->l, s->fd, MIN(p.begin + p.there + (last != '\n'), s->size), s->size);
	return sealed_next(s);
}

static int sealed_all(struct sealed *s, const char *keys)
{
	char *buf = malloc(CHUNK);
	const json_t *files, *one;
	size_t i;
	int rv = buf == NULL ? err_set(s->err, AVA_ENOMEM, "out of memory") : sealed_next(s);

	s->head = json_incref(s->now);
	files = json_object_get(s->head, "files");
	if (rv == 0 &&
	    (json_get_int(s->head, "record", 0) != 1 || !json_is_array(files) ||
	     json_array_size(files) == 0 || !json_is_array(json_object_get(s->head, "keys"))))
		rv = SEALED_WRONG(s, "this is no sealed record of version 1");
	if (rv == 0)
		rv = sealed_seals(s, keys);
	json_array_foreach(files, i, one) if (rv == 0) rv =
		sealed_file(s, json_is_string(one) ? json_string_value(one) : "", buf);
	if (rv == 0 && !sealed_begins(s, "{\"end\":"))
		rv = SEALED_WRONG(s, "here belongs the end");
	else if (rv == 0 && (json_get_int(s->now, "seals", -1) != (int64_t)s->sum->seals ||
			     json_get_int(s->now, "files", -1) != (int64_t)s->sum->files))
		rv = SEALED_WRONG(s, "the end counts otherwise");
	else if (rv == 0 && s->l.offset < s->size) {
		s->sum->line++;
		rv = SEALED_WRONG(s, "something follows the end");
	}
	free(buf);
	return rv;
}

int sealed_check(int fd, const char *keys, struct sealed_sum *sum, struct ava_error *err)
{
	struct sealed s = {.fd = fd, .sum = sum, .err = err};
	struct sealed_path *p;
	struct stat st;
	size_t at = 0;
	int rv;

	*sum = (struct sealed_sum){0};
	if (sys->fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(err, AVA_EINVAL, "it is no regular file");
	s.size = (uint64_t)st.st_size;
	strmap_init(&s.paths);
	s.results = json_object();
	loglines_init(&s.l, fd, 0, s.size);
	rv = s.results ? sealed_all(&s, keys) : err_set(err, AVA_ENOMEM, "out of memory");
	while ((p = strmap_next(&s.paths, &at)) != NULL) {
		free(p->items);
		free(p);
	}
	strmap_fini(&s.paths);
	loglines_fini(&s.l);
	json_decref(s.results);
	json_decref(s.now);
	json_decref(s.head);
	return rv;
}
