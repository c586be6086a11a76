/* The sealer; see seal.h.
 *
 * For each file it keeps the running SHA-256 of all bytes so far and their number; a round reads
 * the new bytes, up to the last newline, adds them and takes the digest. A file not yet seen by
 * this process is read from byte 0, so only the chain (the newest Seal) is kept between
 * processes. A file that was replaced or cut under the sealer is left out: its earlier Seals
 * show it. Memory running out or an unreadable file ends the round with an error, and the next
 * one goes on there. */
#include "journal/seal.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/strmap.h"
#include "base/sys.h"
#include "base/util.h"
#include "event/event.h"
#include "journal/files.h"
#include "journal/seal_read.h"
#include "journal/view.h"

#define SMALL_FILE  (1u << 20)
#define CONTENT_FEW (64u << 10) /* bytes of a Seal from which it takes no further file */
#define CONTENT_MAX (4u << 20)
#define MARKS_MAX   1024
#define CRCS_MAX    (64u << 20)
#define IDLE_ROUNDS 60

struct file {
	struct hash_sha256 hash;
	uint64_t size, inode; /* what was hashed; 0: nothing yet */
	uint64_t sealed;      /* size in the newest Seal; 0: in no valid Seal */
	uint64_t from;        /* offset of the first line of `crcs` */
	uint64_t seq;         /* seq of the last event hashed; 0: none */
	uint32_t *crcs;       /* checksums of lines not in a Seal yet; owned */
	size_t ncrcs, cap;
	uint64_t round;                 /* the last round that looked at the file */
	struct hash_sha256 sealed_hash; /* of `sealed` bytes */
	uint64_t sealed_seq;
	bool lost; /* the path no longer holds the file that was hashed */
	char path[];
};

struct sealer {
	int rootfd;
	unsigned char pub[SEAL_KEY], secret[crypto_sign_SECRETKEYBYTES];
	uint64_t n, round;
	unsigned char hash[SEAL_HASH]; /* hash of the newest Seal; zeros: none */
	struct strmap files;
	struct seal_last noted;   /* content of seals/last */
	struct files_names stale; /* files to look at in the first round */
	struct seal_list *out;    /* *borrowed*; the Seals of the round */
	struct buf *open;         /* the Seal being written, after those of `out` */
};

/* ---- files */

static void seal_file_free(struct file *f)
{
	free(f->crcs);
	free(f);
}

/* The file is hashed on from where its newest Seal ends, if it is there as it was, instead of from
 * byte 0. What was changed before that is for `verify` to find: the head of that Seal covers it. */
static void file_go_on(const struct sealer *s, struct file *f)
{
	unsigned char rest[HASH_BLOCK], head[SEAL_HASH];
	const struct seal_going *g = NULL;
	struct hash_sha256 h, end;
	struct stat st;
	size_t len;
	int fd;

	for (size_t i = 0; i < s->noted.ngoing; i++)
		if (strcmp(s->noted.going[i].path, f->path) == 0)
			g = &s->noted.going[i];
	fd = g != NULL ? files_open(s->rootfd, f->path, O_RDONLY) : -1;
	if (fd < 0)
		return;
	len = g->size % HASH_BLOCK;
	if (sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == g->inode &&
	    (uint64_t)st.st_size >= g->size &&
	    sys_read_all(fd, rest, len, (off_t)(g->size - len)) == 0) {
		hash_sha256_load(&h, g->state, g->size / HASH_BLOCK);
		hash_sha256_add(&h, rest, len);
		end = h;
		hash_sha256_end(&end, head);
		if (memcmp(head, g->head, SEAL_HASH) == 0) { /* the state is what was kept */
			f->hash = f->sealed_hash = h;
			f->size = f->sealed = f->from = g->size;
			f->seq = f->sealed_seq = g->seq;
			f->inode = g->inode;
		}
	}
	files_close(&fd);
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
		seal_file_free(f);
		return NULL;
	}
	file_go_on(s, f);
	return f;
}

static void file_hash(struct file *f, const char *from, const char *upto, const char *last)
{
	struct event_view v;

	hash_sha256_add(&f->hash, from, (size_t)(upto - from));
	if (event_view(last, (size_t)(upto - last), &v) == 0)
		f->seq = v.seq;
}

/* Hash the whole lines that came to the file; *found is set, and reading stops, at the Seal that
 * holds `until`. */
static int seal_file_read(struct sealer *s, struct file *f, const struct buf *until, bool *found,
			  struct ava_error *err)
{
	const char *line, *from = NULL, *upto = NULL; /* whole lines to be hashed next */
	struct loglines l;
	struct stat st;
	size_t len;
	int fd, rv;

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
	loglines_init(&l, fd, f->size, (uint64_t)st.st_size);
	while ((rv = loglines_next(&l, &line, &len)) == 1 && !l.torn) {
		f->lost = line == NULL; /* ava writes no line that long */
		if (f->lost)
			break;
		if (f->ncrcs == CRCS_MAX || !ARRAY_ROOM(f->crcs, f->cap, f->ncrcs + 1)) {
			rv = AVA_ENOMEM;
			break;
		}
		f->crcs[f->ncrcs++] = crc32c(0, line, len);
		from = from != NULL ? from : line;
		upto = line + len;
		f->size += len;
		*found = until != NULL && seal_is_line(line, len) &&
			 memmem(line, len, until->data, until->len) != NULL;
		if (*found)
			break;
		if (memchr(upto, '\n', l.to - l.from) != NULL)
			continue; /* lines of one block are hashed together */
		file_hash(f, from, upto, line);
		from = NULL;
	}
	if (from != NULL)
		file_hash(f, from, upto, line);
	loglines_fini(&l);
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

static int begin_seal(struct sealer *s)
{
	struct seal_list *out = s->out;
	char prev[2 * SEAL_HASH + 1], key[2 * SEAL_KEY + 1], at[CLOCK_ISO_LEN + 1];
	struct buf *b;

	if (!ARRAY_ROOM(out->contents, out->cap, out->n + 1))
		return AVA_ENOMEM;
	b = &out->contents[out->n];
	buf_init(b, CONTENT_MAX);
	hash_hex(s->hash, SEAL_HASH, prev);
	hash_hex(s->pub, SEAL_KEY, key);
	clock_iso(clock_wall_ms(), at);
	buf_addf(b, "{\"n\":%llu,\"at\":\"%s\",\"prev\":\"%s\",\"key\":\"%s\",\"files\":[",
		 (unsigned long long)s->n + 1, at, prev, key);
	s->open = b;
	return 0;
}

static int end_seal(struct sealer *s, const char *pruned)
{
	struct buf *b = s->open;
	unsigned char sig[SEAL_SIG];
	char hex[2 * SEAL_SIG + 1];

	s->open = NULL;
	buf_addc(b, ']');
	if (pruned != NULL)
		buf_addf(b, ",\"pruned\":%s", pruned);
	if (buf_check(b) == 0)
		crypto_sign_detached(sig, NULL, (const unsigned char *)b->data, b->len, s->secret);
	hash_hex(sig, SEAL_SIG, hex);
	if (buf_check(b) != 0 || buf_addf(b, ",\"sig\":\"%s\"}", hex) != 0) {
		buf_fini(b);
		return AVA_ENOMEM;
	}
	hash_sha256(b->data, b->len, s->hash);
	s->n++;
	s->out->n++;
	return 0;
}

static void add_item(struct buf *b, const struct file *f)
{
	size_t each = (f->ncrcs + MARKS_MAX - 1) / MARKS_MAX;
	struct hash_sha256 h = f->hash;
	unsigned char head[SEAL_HASH];
	char hex[2 * SEAL_HASH + 1];

	hash_sha256_end(&h, head);
	hash_hex(head, SEAL_HASH, hex);
	if (b->len > 0 && b->data[b->len - 1] != '[')
		buf_addc(b, ',');
	buf_addf(b, "{\"path\":\"%s\",\"seq\":%llu,\"size\":%llu,\"head\":\"%s\",\"from\":%llu",
		 f->path, (unsigned long long)f->seq, (unsigned long long)f->size, hex,
		 (unsigned long long)f->from);
	if (each > 1)
		buf_addf(b, ",\"each\":%zu", each);
	buf_adds(b, ",\"lines\":\"");
	for (size_t i = 0; i < f->ncrcs; i += MAX(each, (size_t)1))
		buf_addf(b, "%06x",
			 crc32c(0, f->crcs + i, MIN(each, f->ncrcs - i) * sizeof(*f->crcs)) &
				 0xffffff);
	buf_adds(b, "\"}");
}

/* Put the newly read bytes of `f` into the Seal being written, or a new one. */
static int seal_file(struct sealer *s, struct file *f)
{
	if (f->size == f->sealed)
		return 0;
	if (s->open != NULL && s->open->len > CONTENT_FEW && end_seal(s, NULL) != 0)
		return AVA_ENOMEM;
	if (s->open == NULL && begin_seal(s) != 0)
		return AVA_ENOMEM;
	add_item(s->open, f);
	f->sealed = f->size;
	f->sealed_hash = f->hash;
	f->sealed_seq = f->seq;
	f->ncrcs = 0;
	f->from = f->size;
	if (f->cap > MARKS_MAX) {
		free(f->crcs);
		f->crcs = NULL;
		f->cap = 0;
	}
	return 0;
}

static int do_path(struct sealer *s, const char *path, struct ava_error *err)
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
			continue; /* only the newest part gets more bytes */
		f = f != NULL ? f : file_get(s, name);
		if (f == NULL)
			return err_set(err, AVA_ENOMEM, "out of memory");
		f->round = s->round;
		rv = seal_file_read(s, f, NULL, &found, err);
		if (rv == 0 && seal_file(s, f) != 0)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
		if (rv != 0)
			return rv;
	}
	return 0;
}

/* Seals of a day end in lines that only a later Seal covers, which may stand in the next day's
 * log. */
static int do_days(struct sealer *s, struct ava_error *err)
{
	struct file *f;
	size_t at = 0;
	int rv = 0;

	while (rv == 0 && (f = strmap_next(&s->files, &at)) != NULL) {
		bool found = false;

		if (strncmp(f->path, "logs/ava/", 9) != 0 || f->round == s->round)
			continue;
		rv = seal_file_read(s, f, NULL, &found, err);
		if (rv == 0 && f->size > f->sealed)
			f->round = s->round;
		if (rv == 0 && seal_file(s, f) != 0)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
	}
	return rv;
}

/* Returns the first of several errors; an unreadable file holds up no other. */
static int do_paths(struct sealer *s, char *const *paths, size_t n, struct ava_error *err)
{
	struct ava_error later = {0};
	int first = 0;

	for (size_t i = 0; first != AVA_ENOMEM && i < n; i++) {
		int rv = do_path(s, paths[i], first == 0 ? err : &later);

		first = first == 0 || rv == AVA_ENOMEM ? rv : first;
	}
	return first;
}

int seal_gone_text(int rootfd, const struct seal_newest *base, char *const *names, size_t n,
		   struct buf *out, struct ava_error *err)
{
	char hex[HASH_HEX_LEN + 1];
	uint64_t size;

	hash_hex(base->hash, SEAL_HASH, hex);
	buf_addf(out, "{\"upTo\":%llu,\"hash\":\"%s\",\"files\":[", (unsigned long long)base->n,
		 hex);
	for (size_t i = 0; i < n; i++) {
		if (files_hash(rootfd, names[i], &size, hex) != 0)
			return err_set(err, AVA_EIO, "%s cannot be read", names[i]);
		buf_addf(out, "%s{\"path\":\"%s\",\"size\":%llu,\"head\":\"%s\"}", i > 0 ? "," : "",
			 names[i], (unsigned long long)size, hex);
	}
	buf_adds(out, "]}");
	return buf_check(out) == 0 ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

/* Does `"pruned"` of a Seal name the file? */
static bool seal_names(const char *pruned, const char *path)
{
	const char *at = pruned != NULL ? strstr(pruned, path) : NULL;

	return at != NULL && at > pruned && at[-1] == '"' && at[strlen(path)] == '"';
}

int sealer_round(struct sealer *s, char *const *paths, size_t n, const char *pruned,
		 struct seal_list *out, struct ava_error *err)
{
	struct file *f;
	size_t at = 0;
	int rv, more;

	s->round++;
	s->out = out;
	rv = do_paths(s, s->stale.names, s->stale.n, err);
	if (rv == 0)
		files_names_fini(&s->stale);
	more = rv != AVA_ENOMEM ? do_paths(s, paths, n, err) : 0;
	rv = more != 0 ? more : rv;
	if (rv == 0 && s->open != NULL)
		rv = do_days(s, err);
	if (rv == 0 && s->open == NULL && pruned != NULL && begin_seal(s) != 0)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	if (s->open != NULL && end_seal(s, rv == 0 ? pruned : NULL) != 0)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	while ((f = strmap_next(&s->files, &at)) != NULL) {
		/* The Seal failed: mark its files unsealed so that the next one covers them. */
		if (rv == AVA_ENOMEM && f->round == s->round)
			f->sealed = 0;
		/* Forget files without news for long, and those that go: another one may come to be
		 * in their place. The catalog and daily logs stay. */
		if (!(rv == 0 && seal_names(pruned, f->path)) &&
		    (s->round - f->round < IDLE_ROUNDS || strcmp(f->path, "catalog.jsonl") == 0))
			continue;
		strmap_del(&s->files, f->path);
		seal_file_free(f);
	}
	return rv;
}

/* The catalog, and the daily logs of the round: they are longer than what a start adds to them. */
static void note_going(const struct sealer *s, struct seal_last *last)
{
	struct file *f;
	size_t at = 0;

	for (size_t i = 0; i < s->noted.ngoing; i++)
		if (strncmp(s->noted.going[i].path, "catalog.", 8) == 0 &&
		    strmap_get(&s->files, s->noted.going[i].path) == NULL)
			last->going[last->ngoing++] = s->noted.going[i];
	while ((f = strmap_next(&s->files, &at)) != NULL && last->ngoing < SEAL_GOING) {
		struct seal_going *g = &last->going[last->ngoing];
		struct hash_sha256 h = f->sealed_hash;
		bool day = strncmp(f->path, "logs/ava/", 9) == 0 && f->round == s->round;

		if ((!day && strncmp(f->path, "catalog.", 8) != 0) || f->lost || f->sealed == 0 ||
		    strlen(f->path) >= sizeof(g->path))
			continue;
		*g = (struct seal_going){
			.size = f->sealed, .inode = f->inode, .seq = f->sealed_seq};
		hash_sha256_save(&h, g->state);
		hash_sha256_end(&h, g->head);
		memcpy(g->path, f->path, strlen(f->path) + 1);
		last->ngoing++;
	}
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
	rv = buf_check(&until) != 0 ? AVA_ENOMEM : seal_file_read(s, f, &until, &found, err);
	buf_fini(&until);
	if (rv != 0 || !found)
		return rv;
	f->round = s->round;
	h = f->hash;
	hash_sha256_end(&h, last.head);
	last.size = f->size;
	memcpy(last.hash, s->hash, SEAL_HASH);
	snprintf(last.path, sizeof(last.path), "%s", name);
	/* Before the first one the whole log, for what came while that was made. */
	snprintf(last.since_path, sizeof(last.since_path), "%s",
		 s->noted.path[0] != '\0' ? s->noted.path : name);
	last.since = s->noted.size;
	note_going(s, &last);
	if (seal_last_write(s->rootfd, &last) != 0)
		return err_sys(err, SEAL_LAST_PATH);
	s->noted = last;
	return 0;
}

/* ---- the key that seals: made at first use, its public part listed beside it
 *
 * seals/key holds one line, `ed25519 <64 hex digits>`: the seed. To change the key, move the
 * file away: the next start makes another and adds a line to seals/public, which keeps the old
 * one, so that old Seals can be checked. */

static int seed_read(int rootfd, unsigned char seed[32], struct ava_error *err)
{
	char *text = NULL;
	size_t len;
	int rv = sys_read_file(rootfd, SEAL_KEY_PATH, SMALL_FILE, &text, &len, err);

	if (rv != 0)
		return rv;
	if (len > 0 && text[len - 1] == '\n')
		text[--len] = '\0';
	if (len != 8 + 64 || memcmp(text, "ed25519 ", 8) != 0 || !hash_unhex(text + 8, seed, 32))
		rv = err_set(err, AVA_ECORRUPT,
			     SEAL_KEY_PATH " holds no key: put it back, or move it away to seal "
					   "with a new one");
	sodium_memzero(text, len);
	free(text);
	return rv;
}

static int seed_make(int rootfd, unsigned char seed[32], struct ava_error *err)
{
	char text[8 + 64 + 2] = "ed25519 ";
	int rv = 0;

	randombytes_buf(seed, 32);
	hash_hex(seed, 32, text + 8);
	text[sizeof(text) - 2] = '\n';
	text[sizeof(text) - 1] = '\0';
	if (files_replace(rootfd, SEAL_KEY_PATH, text, strlen(text), true) != 0)
		rv = err_sys(err, SEAL_KEY_PATH);
	sodium_memzero(text, sizeof(text));
	return rv;
}

static int key_publish(struct sealer *s, struct ava_error *err)
{
	char hex[2 * SEAL_KEY + 1], at[CLOCK_ISO_LEN + 1], *old = NULL;
	size_t len = 0;
	struct buf b;
	int rv = sys_read_file(s->rootfd, SEAL_PUBLIC_PATH, SMALL_FILE, &old, &len, err);

	if (rv != 0 && rv != AVA_ENOENT)
		return rv;
	hash_hex(s->pub, SEAL_KEY, hex);
	clock_iso(clock_wall_ms(), at);
	buf_init(&b, 2 * SMALL_FILE);
	buf_add(&b, old ? old : "", len);
	if (len > 0 && old[len - 1] != '\n')
		buf_addc(&b, '\n');
	buf_addf(&b, "ed25519 %s %s\n", hex, at);
	free(old);
	rv = buf_check(&b);
	if (rv != 0)
		err_set(err, rv, "out of memory");
	else if (files_replace(s->rootfd, SEAL_PUBLIC_PATH, b.data, b.len, true) != 0)
		rv = err_sys(err, SEAL_PUBLIC_PATH);
	buf_fini(&b);
	return rv;
}

/* An unreadable key is an error and never replaced. */
static int key_open(struct sealer *s, struct ava_error *err)
{
	unsigned char seed[crypto_sign_SEEDBYTES];
	int rv;

	if (sodium_init() < 0)
		return err_set(err, AVA_ENOMEM, "libsodium cannot start");
	rv = seed_read(s->rootfd, seed, err);
	if (rv == AVA_ENOENT)
		rv = seed_make(s->rootfd, seed, err);
	if (rv == 0) {
		crypto_sign_seed_keypair(s->pub, s->secret, seed);
		rv = seal_key_known(s->rootfd, s->pub, err);
		rv = rv == 1 ? 0 : rv == 0 || rv == AVA_ENOENT ? key_publish(s, err) : rv;
	}
	sodium_memzero(seed, sizeof(seed));
	return rv;
}

/* ---- files left unsealed by an end without a last Seal
 *
 * `seals/open` stands while a sealer runs and is removed after a last Seal. A start that finds it
 * reads the daily logs from where the newest round began: each run named there was begun, has ended
 * or asked something since, and is sealed in the first round. Runs that have not ended are named by
 * whoever takes them up (ava/seals.c). Nothing is trusted further: a file changed meanwhile is
 * sealed as it is found, and its earlier Seals show the change. */

static int stale_run(struct sealer *s, const struct event_view *v)
{
	char path[FILES_BUF];
	int len = (int)v->agent_id.len, rv;

	if (len < 3 || len > 30 || memcmp(v->agent_id.s, "S-", 2) != 0)
		return 0;
	snprintf(path, sizeof(path), "logs/subagents/%.*s.jsonl", len, v->agent_id.s);
	rv = files_path_ok(path) ? files_names_add(&s->stale, path) : 0;
	snprintf(path, sizeof(path), "runs/%.*s/messages.jsonl", len, v->agent_id.s);
	return rv == 0 && files_path_ok(path) ? files_names_add(&s->stale, path) : rv;
}

/* Runs in the events of a daily log behind a place in it and behind `lsn`. */
static int stale_day(struct sealer *s, const char *path, uint64_t from, uint64_t lsn)
{
	int fd = files_open(s->rootfd, path, O_RDONLY), rv = 0;
	struct loglines l;
	struct event_view v;
	const char *line;
	struct stat st;
	size_t len;

	if (fd < 0 || sys->fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		files_close(&fd); /* the round says so */
		return 0;
	}
	loglines_init(&l, fd, from, (uint64_t)st.st_size);
	while (rv == 0 && loglines_next(&l, &line, &len) == 1)
		if (line != NULL && event_view(line, len, &v) == 0 && v.lsn > lsn)
			rv = stale_run(s, &v);
	loglines_fini(&l);
	files_close(&fd);
	return rv;
}

/* The daily logs from that of the newest Seal on; with `runs`, the runs that they name too. */
static int stale_days(struct sealer *s, const struct seal_newest *newest, bool runs,
		      struct ava_error *err)
{
	struct files_names days = {0};
	const struct seal_last *last = &s->noted;
	bool known = last->since_path[0] != '\0';
	const char *first = known ? strrchr(last->since_path, '/') + 1 : newest->day;
	char path[FILES_BUF];
	int rv = files_list(&days, s->rootfd, "logs/ava", ".jsonl", err);

	for (size_t i = 0; rv == 0 && i < days.n; i++) {
		const char *name = days.names[i];

		snprintf(path, sizeof(path), "logs/ava/%s", name);
		if (!files_path_ok(path))
			continue;
		if (strlen(name) == 16 && strncmp(name, newest->day, 10) >= 0)
			rv = files_names_add(&s->stale, path);
		if (rv == 0 && runs && strncmp(name, first, 10) >= 0)
			rv = stale_day(s, path, known && strcmp(name, first) == 0 ? last->since : 0,
				       known ? 0 : newest->lsn);
	}
	files_names_fini(&days);
	return rv;
}

static int find_stale(struct sealer *s, const struct seal_newest *newest, struct ava_error *err)
{
	struct stat st;
	/* The last Seal is missing, or there is none at all. */
	bool look = newest->lsn == 0 || sys->fstatat(s->rootfd, SEAL_OPEN_PATH, &st, 0) == 0;
	int rv = stale_days(s, newest, look, err);

	if (rv == 0 && files_replace(s->rootfd, SEAL_OPEN_PATH, "", 0, true) != 0)
		rv = err_sys(err, SEAL_OPEN_PATH);
	if (rv == 0 && look)
		rv = files_names_add(&s->stale, "catalog.jsonl");
	return rv == AVA_ENOMEM ? err_set(err, rv, "out of memory") : rv;
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
	rv = key_open(s, err);
	if (rv == 0)
		rv = seal_find_newest(rootfd, &newest, err);
	if (rv == 0)
		(void)seal_last_read(rootfd, &s->noted, NULL);
	if (rv == 0) {
		s->n = newest.n;
		memcpy(s->hash, newest.hash, SEAL_HASH);
		rv = find_stale(s, &newest, err);
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
		(void)sys->unlinkat(s->rootfd, SEAL_OPEN_PATH, 0);
	while ((f = strmap_next(&s->files, &at)) != NULL)
		seal_file_free(f);
	strmap_fini(&s->files);
	files_names_fini(&s->stale);
	sodium_memzero(s, sizeof(*s));
	free(s);
}
