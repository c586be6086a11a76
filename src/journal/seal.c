/* The sealer; see seal.h.
 *
 * For each file it keeps the running SHA-256 of all bytes so far and how many
 * they were; a round reads what came since, up to the last newline, adds it
 * and takes the digest. A file that it has not seen since it was opened is
 * read from byte 0, so nothing has to be remembered between processes but the
 * chain (the newest Seal). A file that was replaced or cut under it is left
 * out: its earlier Seals say so. Memory running out or a file that cannot be
 * read ends the round with an error, and the next one goes on there. */
#include "journal/seal.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/strmap.h"
#include "base/sys.h"
#include "base/util.h"
#include "event/event.h"
#include "journal/files.h"
#include "journal/seal_find.h"
#include "journal/seal_key.h"
#include "journal/view.h"

#define READ_MIN    (256u << 10)
#define READ_MAX    (128u << 20) /* a longer line is not sealed */
#define CONTENT_FEW (64u << 10)  /* a Seal takes no further file above this */
#define CONTENT_MAX (4u << 20)
#define MARKS_MAX   1024
#define CRCS_MAX    (64u << 20)
#define IDLE_ROUNDS 60

struct file {
	struct hash_sha256 hash;
	uint64_t size, inode; /* hashed; 0: not seen yet */
	uint64_t sealed;      /* size in the newest Seal; 0: in none that counts */
	uint64_t from;        /* where the lines of `crcs` begin */
	uint64_t seq;         /* of the last event; 0: none */
	uint32_t *crcs;       /* of lines that no Seal has yet; owned */
	size_t ncrcs, cap;
	uint64_t round; /* when it was last touched */
	bool lost;      /* it is not the file that was hashed any more */
	char path[];
};

struct sealer {
	int rootfd;
	struct seal_key key;
	uint64_t n, round, bytes;
	unsigned char hash[SEAL_HASH]; /* of the newest Seal; zeros: none */
	struct strmap files;
	struct files_names stale; /* to be taken up in the first round */
	char *buf;
	size_t cap;
};

/* ---- files */

static void file_free(struct file *f)
{
	free(f->crcs);
	free(f);
}

static struct file *file_get(struct sealer *s, const char *path)
{
	struct file *f = strmap_get(&s->files, path);

	if (f != NULL)
		return f;
	f = calloc(1, sizeof(*f) + strlen(path) + 1);
	if (f == NULL)
		return NULL;
	memcpy(f->path, path, strlen(path) + 1);
	hash_sha256_init(&f->hash);
	if (strmap_put(&s->files, f->path, f) != 0) {
		file_free(f);
		return NULL;
	}
	return f;
}

static bool is_day(const char *path)
{
	return strncmp(path, "logs/ava/", 9) == 0;
}

static int add_crc(struct file *f, uint32_t crc)
{
	if (f->ncrcs == f->cap) {
		size_t cap = f->cap > 0 ? f->cap * 2 : 16;
		uint32_t *more = cap <= CRCS_MAX ? realloc(f->crcs, cap * sizeof(*more)) : NULL;

		if (more == NULL)
			return AVA_ENOMEM;
		f->crcs = more;
		f->cap = cap;
	}
	f->crcs[f->ncrcs++] = crc;
	return 0;
}

/* The lines of these whole bytes, up to the one that holds `until`. Returns
 * how many bytes that are, 0 without memory. */
static size_t take_lines(struct sealer *s, struct file *f, size_t len, const struct buf *until,
			 bool *found)
{
	const char *at = s->buf, *end = s->buf + len, *last = at;
	struct event_view v;

	while (at < end && !*found) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)(nl + 1 - at);

		if (add_crc(f, crc32c(0, at, n)) != 0)
			break;
		*found = until != NULL && seal_is_line(at, n) &&
			 memmem(at, n, until->data, until->len) != NULL;
		last = at;
		at += n;
	}
	if (at > s->buf && event_view(last, (size_t)(at - last), &v) == 0)
		f->seq = v.seq;
	hash_sha256_add(&f->hash, s->buf, (size_t)(at - s->buf));
	return (size_t)(at - s->buf);
}

static int grow(struct sealer *s)
{
	size_t cap = s->cap > 0 ? s->cap * 2 : READ_MIN;
	char *more = cap <= READ_MAX ? realloc(s->buf, cap) : NULL;

	if (more == NULL)
		return cap <= READ_MAX ? AVA_ENOMEM : AVA_ETOOBIG;
	s->buf = more;
	s->cap = cap;
	return 0;
}

/* Whole lines from f->size on. 1: some were added; 0: there are none. */
static int read_lines(struct sealer *s, struct file *f, int fd, uint64_t end,
		      const struct buf *until, bool *found)
{
	const char *nl = NULL;
	size_t want = 0, took;

	while (nl == NULL) {
		int rv = want == s->cap ? grow(s) : 0;

		if (rv == AVA_ETOOBIG)
			f->lost = true; /* no line of ours is as long */
		if (rv != 0)
			return rv == AVA_ETOOBIG ? 0 : rv;
		if (want == MIN(s->cap, end - f->size) && want > 0)
			return 0;
		want = (size_t)MIN((uint64_t)s->cap, end - f->size);
		if (want == 0)
			return 0;
		if (sys_read_all(fd, s->buf, want, (off_t)f->size) != 0)
			return AVA_EIO;
		nl = memrchr(s->buf, '\n', want);
	}
	took = take_lines(s, f, (size_t)(nl + 1 - s->buf), until, found);
	f->size += took;
	s->bytes += took;
	return took > 0 ? 1 : AVA_ENOMEM;
}

/* Hash what came to the file; *found is set when it was read up to `until`. */
static int file_read(struct sealer *s, struct file *f, const struct buf *until, bool *found,
		     struct ava_error *err)
{
	struct stat st;
	int fd, rv = 1;

	if (f->lost)
		return 0;
	fd = files_open(s->rootfd, f->path, O_RDONLY);
	if (fd < 0 && errno != ENOENT)
		return err_sys(err, "%s", f->path);
	if (fd < 0 || sys->fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size < f->size || (f->inode != 0 && st.st_ino != f->inode)) {
		f->lost = f->inode != 0;
		files_close(&fd);
		return 0;
	}
	f->inode = st.st_ino;
	while (rv == 1 && !*found && f->size < (uint64_t)st.st_size)
		rv = read_lines(s, f, fd, (uint64_t)st.st_size, until, found);
	files_close(&fd);
	return rv < 0 ? err_set(err, rv, "%s cannot be read to be sealed", f->path) : 0;
}

/* ---- Seals */

void seal_list_fini(struct seal_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		buf_fini(&l->contents[i]);
	free(l->contents);
	*l = (struct seal_list){0};
}

static struct buf *begin_seal(struct sealer *s, struct seal_list *out)
{
	char prev[2 * SEAL_HASH + 1], key[2 * SEAL_KEY + 1], at[CLOCK_ISO_LEN + 1];
	struct buf *b;

	if (out->n == out->cap) {
		size_t cap = out->cap > 0 ? out->cap * 2 : 4;
		struct buf *more = realloc(out->contents, cap * sizeof(*more));

		if (more == NULL)
			return NULL;
		out->contents = more;
		out->cap = cap;
	}
	b = &out->contents[out->n];
	buf_init(b, CONTENT_MAX);
	seal_hex(s->hash, SEAL_HASH, prev);
	seal_hex(s->key.pub, SEAL_KEY, key);
	clock_iso(clock_wall_ms(), at);
	buf_addf(b, "{\"n\":%llu,\"at\":\"%s\",\"prev\":\"%s\",\"key\":\"%s\",\"files\":[",
		 (unsigned long long)s->n + 1, at, prev, key);
	return b;
}

static int end_seal(struct sealer *s, struct seal_list *out, const char *pruned)
{
	struct buf *b = &out->contents[out->n];
	unsigned char sig[SEAL_SIG];
	char hex[2 * SEAL_SIG + 1];
	struct hash_sha256 h;

	buf_addc(b, ']');
	if (pruned != NULL)
		buf_addf(b, ",\"pruned\":%s", pruned);
	if (buf_check(b) == 0)
		seal_key_sign(&s->key, b->data, b->len, sig);
	seal_hex(sig, SEAL_SIG, hex);
	if (buf_check(b) != 0 || buf_addf(b, ",\"sig\":\"%s\"}", hex) != 0) {
		buf_fini(b);
		return AVA_ENOMEM;
	}
	hash_sha256_init(&h);
	hash_sha256_add(&h, b->data, b->len);
	hash_sha256_end(&h, s->hash);
	s->n++;
	out->n++;
	return 0;
}

static void add_marks(struct buf *b, const struct file *f)
{
	size_t each = (f->ncrcs + MARKS_MAX - 1) / MARKS_MAX;

	if (each > 1)
		buf_addf(b, ",\"each\":%zu", each);
	buf_adds(b, ",\"lines\":\"");
	for (size_t i = 0; i<f->ncrcs; i += each> 0 ? each : 1)
		buf_addf(b, "%06x",
			 crc32c(0, f->crcs + i, MIN(each, f->ncrcs - i) * sizeof(*f->crcs)) &
				 0xffffff);
	buf_adds(b, "\"}");
}

static void add_item(struct buf *b, const struct file *f)
{
	struct hash_sha256 h = f->hash;
	unsigned char head[SEAL_HASH];
	char hex[2 * SEAL_HASH + 1];

	hash_sha256_end(&h, head);
	seal_hex(head, SEAL_HASH, hex);
	if (b->len > 0 && b->data[b->len - 1] != '[')
		buf_addc(b, ',');
	buf_addf(b, "{\"path\":\"%s\",\"seq\":%llu,\"size\":%llu,\"head\":\"%s\",\"from\":%llu",
		 f->path, (unsigned long long)f->seq, (unsigned long long)f->size, hex,
		 (unsigned long long)f->from);
	add_marks(b, f);
}

/* What was read of `f`, into the Seal that is being written or a new one. */
static int seal_file(struct sealer *s, struct file *f, struct seal_list *out, struct buf **b)
{
	if (f->size == f->sealed)
		return 0;
	if (*b != NULL && (*b)->len > CONTENT_FEW) {
		*b = NULL;
		if (end_seal(s, out, NULL) != 0)
			return AVA_ENOMEM;
	}
	if (*b == NULL)
		*b = begin_seal(s, out);
	if (*b == NULL)
		return AVA_ENOMEM;
	add_item(*b, f);
	f->sealed = f->size;
	f->ncrcs = 0;
	f->from = f->size;
	if (f->cap > MARKS_MAX) {
		free(f->crcs);
		f->crcs = NULL;
		f->cap = 0;
	}
	return 0;
}

static int do_path(struct sealer *s, const char *path, struct seal_list *out, struct buf **b,
		   struct ava_error *err)
{
	unsigned parts = view_find_part(s->rootfd, path);
	char name[FILES_BUF];

	for (unsigned part = 1; part <= parts; part++) {
		bool found = false;
		struct file *f;
		int rv;

		files_part_name(path, part, name);
		f = strmap_get(&s->files, name);
		if (f != NULL && part < parts)
			continue; /* nothing comes to an earlier part */
		f = f != NULL ? f : file_get(s, name);
		if (f == NULL)
			return err_set(err, AVA_ENOMEM, "out of memory");
		f->round = s->round;
		rv = file_read(s, f, NULL, &found, err);
		if (rv == 0 && seal_file(s, f, out, b) != 0)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
		if (rv != 0)
			return rv;
	}
	return 0;
}

/* Files that nothing came to for long; the catalog and daily logs stay. */
static void forget(struct sealer *s)
{
	struct file *f;
	size_t at = 0;

	while ((f = strmap_next(&s->files, &at)) != NULL) {
		if (s->round - f->round < IDLE_ROUNDS || strcmp(f->path, "catalog.jsonl") == 0)
			continue;
		strmap_del(&s->files, f->path);
		file_free(f);
	}
}

/* The Seals of a day end in lines that only a later Seal covers: also when
 * that one stands in the next day's log. */
static int do_days(struct sealer *s, struct seal_list *out, struct buf **b, struct ava_error *err)
{
	struct file *f;
	size_t at = 0;
	int rv = 0;

	while (rv == 0 && (f = strmap_next(&s->files, &at)) != NULL) {
		bool found = false;

		if (!is_day(f->path) || f->round == s->round)
			continue;
		rv = file_read(s, f, NULL, &found, err);
		if (rv == 0 && f->size > f->sealed)
			f->round = s->round;
		if (rv == 0 && seal_file(s, f, out, b) != 0)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
	}
	return rv;
}

/* What was to be in a Seal that could not be made is in the next. */
static void unseal(struct sealer *s)
{
	struct file *f;
	size_t at = 0;

	while ((f = strmap_next(&s->files, &at)) != NULL)
		if (f->round == s->round)
			f->sealed = 0;
}

/* The first error of several; a file that cannot be read holds up no other. */
static int do_paths(struct sealer *s, char *const *paths, size_t n, struct seal_list *out,
		    struct buf **b, struct ava_error *err)
{
	struct ava_error later = {0};
	int first = 0;

	for (size_t i = 0; first != AVA_ENOMEM && i < n; i++) {
		int rv = do_path(s, paths[i], out, b, first == 0 ? err : &later);

		first = first == 0 || rv == AVA_ENOMEM ? rv : first;
	}
	return first;
}

static int round_of(struct sealer *s, char *const *paths, size_t n, const char *pruned,
		    struct seal_list *out, struct ava_error *err)
{
	struct buf *b = NULL;
	int rv, more;

	s->round++;
	rv = do_paths(s, s->stale.names, s->stale.n, out, &b, err);
	if (rv == 0)
		files_names_fini(&s->stale);
	more = rv != AVA_ENOMEM ? do_paths(s, paths, n, out, &b, err) : 0;
	rv = more != 0 ? more : rv;
	if (rv == 0 && b != NULL)
		rv = do_days(s, out, &b, err);
	if (rv == 0 && b == NULL && pruned != NULL) {
		b = begin_seal(s, out);
		rv = b != NULL ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
	}
	if (b != NULL && end_seal(s, out, rv == 0 ? pruned : NULL) != 0)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	if (rv == AVA_ENOMEM)
		unseal(s);
	forget(s);
	return rv;
}

int sealer_round(struct sealer *s, char *const *paths, size_t n, struct seal_list *out,
		 struct ava_error *err)
{
	return round_of(s, paths, n, NULL, out, err);
}

int sealer_prune(struct sealer *s, char *const *paths, size_t n, const char *pruned,
		 struct seal_list *out, struct ava_error *err)
{
	return round_of(s, paths, n, pruned, out, err);
}

int sealer_committed(struct sealer *s, const char *day_path, struct ava_error *err)
{
	struct seal_last last = {.n = s->n};
	char name[FILES_BUF];
	struct hash_sha256 h;
	struct buf until;
	struct file *f;
	bool found = false;
	int rv;

	files_part_name(day_path, view_find_part(s->rootfd, day_path), name);
	f = file_get(s, name);
	if (f == NULL || strlen(name) >= sizeof(last.path))
		return err_set(err, AVA_ENOMEM, "out of memory");
	buf_init(&until, 128);
	buf_addf(&until, "\"content\":{\"n\":%llu,\"at\":\"", (unsigned long long)s->n);
	rv = buf_check(&until) != 0 ? AVA_ENOMEM : file_read(s, f, &until, &found, err);
	buf_fini(&until);
	if (rv != 0 || !found)
		return rv;
	f->round = s->round;
	h = f->hash;
	hash_sha256_end(&h, last.head);
	last.size = f->size;
	memcpy(last.hash, s->hash, SEAL_HASH);
	snprintf(last.path, sizeof(last.path), "%s", name);
	return seal_last_write(s->rootfd, &last) != 0 ? err_sys(err, SEAL_LAST_PATH) : 0;
}

uint64_t sealer_bytes(const struct sealer *s)
{
	return s->bytes;
}

/* ---- life */

int sealer_open(struct sealer **out, int rootfd, struct ava_error *err)
{
	struct sealer *s = calloc(1, sizeof(*s));
	struct seal_newest newest;
	int rv;

	*out = NULL;
	if (s == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	s->rootfd = rootfd;
	strmap_init(&s->files);
	rv = seal_key_open(&s->key, rootfd, err);
	if (rv == 0)
		rv = seal_find_newest(rootfd, &newest, err);
	if (rv == 0) {
		s->n = newest.n;
		memcpy(s->hash, newest.hash, SEAL_HASH);
		rv = seal_find_stale(rootfd, &newest, &s->stale, err);
	}
	if (rv != 0) {
		sealer_close(s, false);
		return rv;
	}
	*out = s;
	return 0;
}

void sealer_close(struct sealer *s, bool complete)
{
	struct file *f;
	size_t at = 0;

	if (s == NULL)
		return;
	if (complete)
		seal_find_clean(s->rootfd);
	while ((f = strmap_next(&s->files, &at)) != NULL)
		file_free(f);
	strmap_fini(&s->files);
	files_names_fini(&s->stale);
	seal_key_close(&s->key);
	free(s->buf);
	free(s);
}
