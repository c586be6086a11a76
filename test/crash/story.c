/* Stories and the oracle; story.h. The oracle shares nothing with the journal:
 * it makes every file by itself, commit by commit, and compares bytes. */
#include "story.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define LONG_LINE 70000 /* over 64 KB: goes to a blob */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* ---- steps */

void story_step_init(struct story_step *st)
{
	memset(st, 0, sizeof(*st));
	for (int k = 0; k < STORY_OPS; k++)
		buf_init(&st->text[k], 1 << 20);
}

void story_step_fini(struct story_step *st)
{
	for (int k = 0; k < STORY_OPS; k++)
		buf_fini(&st->text[k]);
}

static void add_op(struct story_step *st, enum journal_op_kind kind, int i, size_t pad,
		   const char *path)
{
	struct journal_op *op = &st->ops[st->n];
	struct buf *b = &st->text[st->n];

	snprintf(st->paths[st->n], sizeof(st->paths[0]), "%s", path);
	buf_reset(b);
	*op = (struct journal_op){.kind = kind, .path = st->paths[st->n]};
	if (kind == JOURNAL_ENTRY) {
		snprintf(st->ids[st->n], sizeof(st->ids[0]), "e%d", i);
		op->id = st->ids[st->n];
		buf_addf(b, "{\"id\":\"e%d\",\"parentId\":null}\n", i);
	} else if (kind != JOURNAL_CREATE && kind != JOURNAL_DROP) {
		buf_addf(b, "{\"c\":%d,\"op\":%u,\"pad\":\"", i, st->n);
		for (size_t k = 0; k < pad; k++)
			buf_addc(b, (char)('a' + (i + (int)k) % 26));
		buf_addf(b, "\"}\n");
	}
	assert(buf_check(b) == 0);
	op->bytes = b->data != NULL ? b->data : "";
	op->len = b->len;
	st->n++;
}

static void add_kind(struct story_step *st, uint64_t r, int i)
{
	size_t pad = r >> 20 & 1023;
	char path[40];

	switch (r % 8) {
	case 0:
	case 1:
		snprintf(path, sizeof(path), "d/v%u.jsonl", (unsigned)(r >> 8 & 3));
		add_op(st, JOURNAL_APPEND, i, pad, path);
		break;
	case 2:
		add_op(st, JOURNAL_APPEND, i, pad, "d/v0.jsonl");
		add_op(st, JOURNAL_APPEND, i, 5, "deep/er/v.jsonl");
		break;
	case 3:
		snprintf(path, sizeof(path), "p/%u.json", (unsigned)(r >> 8 & 1));
		add_op(st, JOURNAL_PUT, i, pad * 3, path);
		break;
	case 4:
		snprintf(path, sizeof(path), "sessions/%u.jsonl", (unsigned)(r >> 8 & 1));
		add_op(st, JOURNAL_ENTRY, i, 0, path);
		break;
	case 5:
		add_op(st, JOURNAL_APPEND, i, 6000, "d/v1.jsonl");
		break;
	case 6:
		add_op(st, (r >> 8 & 1) != 0 ? JOURNAL_PUT : JOURNAL_APPEND, i,
		       (r >> 9 & 1) != 0 ? LONG_LINE : 300,
		       (r >> 8 & 1) != 0 ? "p/big.json" : "d/v2.jsonl");
		break;
	default:
		snprintf(path, sizeof(path), "c/%d.jsonl", i / 10);
		if (i % 10 != 0 && i % 10 != 9)
			add_op(st, JOURNAL_APPEND, i, pad, path);
		break;
	}
}

void story_step(const struct story *s, int i, struct story_step *st)
{
	uint64_t r = mix(s->seed * 1000003u + (uint64_t)i + 1);
	char path[40];

	st->n = 0;
	snprintf(path, sizeof(path), "logs/ava/2026-11-%02d.jsonl", 10 + i * 3 / s->commits);
	add_op(st, JOURNAL_APPEND, i, r >> 40 & 63, path);
	snprintf(path, sizeof(path), "c/%d.jsonl", i / 10);
	if (i % 10 == 0) {
		add_op(st, JOURNAL_CREATE, i, 0, path);
		add_op(st, JOURNAL_APPEND, i, 10, path);
	}
	if (i % 10 == 9)
		add_op(st, JOURNAL_DROP, i, 0, path);
	if (st->n < 3)
		add_kind(st, r, i);
	st->level = (r >> 50 & 3) == 0 ? JOURNAL_RIDE : JOURNAL_NOW;
	st->wait = (r >> 52 & 3) != 0;
	st->checkpoint = i % 16 == 15;
}

/* ---- the oracle */

struct want {
	char path[64];
	struct buf bytes;
	char parent[20]; /* last entry */
	bool seen;
};

struct oracle {
	const struct story *s;
	const unsigned char *fate;
	bool in_order;
	struct story_answer *a;
	bool there[STORY_MAX];
	struct want files[STORY_FILES];
	size_t nfiles;
};

static void found(struct oracle *o, const char *fmt, const char *what, int n)
{
	if (o->a->wrong[0] == '\0')
		snprintf(o->a->wrong, sizeof(o->a->wrong), fmt, what, n);
}

static struct want *want_file(struct oracle *o, const char *path)
{
	struct want *w;

	for (size_t i = 0; i < o->nfiles; i++)
		if (strcmp(o->files[i].path + 1, path) == 0)
			return &o->files[i];
	assert(o->nfiles < STORY_FILES);
	w = &o->files[o->nfiles++];
	snprintf(w->path, sizeof(w->path), "/%s", path);
	snprintf(w->parent, sizeof(w->parent), "null");
	buf_init(&w->bytes, 64 << 20);
	return w;
}

static void apply(struct oracle *o, const struct story_step *st)
{
	for (unsigned k = 0; k < st->n; k++) {
		const struct journal_op *op = &st->ops[k];
		struct want *w;

		if (op->kind == JOURNAL_DROP)
			continue;
		w = want_file(o, op->path);
		if (op->kind == JOURNAL_PUT)
			buf_reset(&w->bytes);
		if (op->kind != JOURNAL_ENTRY) {
			buf_add(&w->bytes, op->bytes, op->len);
			continue;
		}
		buf_addf(&w->bytes, "{\"id\":\"%s\",\"parentId\":%s}\n", op->id, w->parent);
		snprintf(w->parent, sizeof(w->parent), "\"%s\"", op->id);
	}
}

/* Which commits the logs of the days have. */
static void read_day(const char *path, const char *bytes, size_t len, void *user)
{
	struct oracle *o = user;
	const char *end;
	int last = -1;

	if (strncmp(path, "/logs/ava/", 10) != 0 || len == 0)
		return;
	end = bytes + len;
	for (const char *at = bytes; at != NULL && at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		char begin[32]; /* the bytes of a disk have no end that sscanf would see */
		int i = -1;

		snprintf(begin, sizeof(begin), "%.*s", (int)MIN(end - at, 31), at);
		if (nl == NULL || sscanf(begin, "{\"c\":%d,", &i) != 1 || i <= last ||
		    i >= o->s->commits) {
			o->a->invented++;
			found(o, "%s: not a line of the story after commit %d", path, last);
			return;
		}
		o->there[last = i] = true;
		at = nl + 1;
	}
}

static void compare(const char *path, const char *bytes, size_t len, void *user)
{
	struct oracle *o = user;

	if (strncmp(path, "/wal/", 5) == 0 || strcmp(path, "/FORMAT") == 0)
		return;
	for (size_t i = 0; i < o->nfiles; i++) {
		struct want *w = &o->files[i];

		if (strcmp(w->path, path) != 0)
			continue;
		w->seen = true;
		if (len != w->bytes.len || (len > 0 && memcmp(bytes, w->bytes.data, len) != 0))
			found(o, "%s: not what the commits make it (%d bytes)", path, (int)len);
		return;
	}
	if (len > 0) { /* an empty one is a file whose first line did not come */
		o->a->invented++;
		found(o, "%s: nobody wrote it (%d bytes)", path, (int)len);
	}
}

static void check_set(struct oracle *o)
{
	bool gap = false;

	for (int i = 0; i < o->s->commits; i++) {
		o->a->there += o->there[i];
		if (o->fate[i] == STORY_DONE && !o->there[i]) {
			o->a->lost++;
			found(o, "%s commit %d is not there", "acknowledged", i);
		}
		if ((o->fate[i] == STORY_OPEN || o->fate[i] == STORY_NOT) && o->there[i]) {
			o->a->invented++;
			found(o, "%s commit %d is there", "never accepted", i);
		}
		if (o->in_order && gap && o->there[i])
			found(o, "%s commit %d is there without an earlier one", "later", i);
		gap = gap || !o->there[i];
	}
}

bool story_wrong(const struct story *s, struct memdisk *d, const unsigned char fate[STORY_MAX],
		 bool in_order, struct story_answer *a)
{
	struct oracle *o = calloc(1, sizeof(*o));
	struct story_step st;

	assert(o != NULL);
	*a = (struct story_answer){0};
	*o = (struct oracle){.s = s, .fate = fate, .in_order = in_order, .a = a};
	memdisk_walk(d, read_day, o);
	check_set(o);
	story_step_init(&st);
	for (int i = 0; i < s->commits; i++) {
		if (!o->there[i])
			continue;
		story_step(s, i, &st);
		apply(o, &st);
	}
	story_step_fini(&st);
	memdisk_walk(d, compare, o);
	for (size_t i = 0; i < o->nfiles; i++) {
		if (!o->files[i].seen && o->files[i].bytes.len > 0)
			found(o, "%s is missing (%d bytes)", o->files[i].path,
			      (int)o->files[i].bytes.len);
		buf_fini(&o->files[i].bytes);
	}
	free(o);
	return a->wrong[0] != '\0';
}

/* ---- pictures */

static void add_hash(const char *path, const char *bytes, size_t len, void *user)
{
	uint64_t h = 0xcbf29ce484222325u, *all = user;

	if (strncmp(path, "/wal/", 5) == 0)
		return;
	for (; *path != '\0'; path++)
		h = (h ^ (unsigned char)*path) * 0x100000001b3u;
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
	*all += mix(h ^ len); /* a sum: the order of names does not matter */
}

uint64_t story_picture(struct memdisk *d)
{
	uint64_t all = 0;

	memdisk_walk(d, add_hash, &all);
	return all;
}
