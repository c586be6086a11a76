/* The file of the memory and everything that is SQL; store.h.
 *
 * SQLite keeps a write-ahead log and syncs it at each commit, so answered changes are on disk. A
 * row, its words in the index and its due reports stand in one commit: a kill at any point
 * leaves all of them or none.
 *
 * A removal leaves no byte: deleted cells are overwritten (secure_delete), the index is merged
 * into one segment, which forgets the words of deleted rows, the file is written anew (VACUUM),
 * and the log is emptied. A mark in the removal's commit makes the next opening do this when a
 * stop came between.
 *
 * What can fail: the disk. A commit whose sync failed is unknown: the connection is closed, and
 * the next opening shows the truth. A damaged file is never written to and never replaced on its
 * own; everything is refused with the sentence that says how to set it aside. */
#include "memory/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/util.h"

#define FORMAT      1
#define WORDS_MAX   24 /* most words of a search */
#define WORD_BYTES  64
#define WORD_LEAST  4 /* least letters of a word that recall and near look for */
#define WORD_SHORT  3 /* the same for a search by any word */
#define PERSON_MOST 32
#define FOUND_MOST  16
#define NEAR_MOST   4
#define DUE_MOST    256
#define ROW_COST    60 /* bytes of an answer around a text */
#define ASIDE_MOST  100

struct store {
	char *path;
	sqlite3 *db;
	const struct memory_op *at_work;
	bool ready; /* the database is open and checked, and has its tables */
	bool broken, committing;
	char why[160]; /* why the store is broken */
};

/* ---- SQL: functions return 0, a code of ava.h with its sentence in the op, or one of
 * SQLite's, which are above 0 and get their sentence in `tell` */

static const char schema[] =
	"CREATE TABLE memory(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, user TEXT NOT NULL,"
	" kind TEXT NOT NULL CHECK(kind IN ('person','project','fact')), cwd TEXT NOT NULL,"
	" text TEXT NOT NULL, norm TEXT NOT NULL, tags TEXT NOT NULL,"
	" how TEXT NOT NULL CHECK(how IN ('said','confirmed','added','edited')),"
	" session TEXT NOT NULL, pinned INTEGER NOT NULL, created INTEGER NOT NULL,"
	" updated INTEGER NOT NULL, salt BLOB NOT NULL, hash TEXT NOT NULL);"
	"CREATE UNIQUE INDEX memory_same ON memory(user, cwd, norm);"
	/* all ids ever used: none is reused */
	"CREATE TABLE name(id TEXT PRIMARY KEY) WITHOUT ROWID;"
	"CREATE TABLE due(n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL,"
	" user TEXT NOT NULL, session TEXT NOT NULL, change TEXT NOT NULL, hash TEXT NOT NULL);"
	"CREATE VIRTUAL TABLE words USING fts5(text, tags, content='memory', content_rowid='seq',"
	" tokenize='unicode61 remove_diacritics 2');"
	"CREATE TRIGGER memory_in AFTER INSERT ON memory BEGIN"
	" INSERT INTO words(rowid, text, tags) VALUES(new.seq, new.text, new.tags); END;"
	"CREATE TRIGGER memory_out AFTER DELETE ON memory BEGIN"
	" INSERT INTO words(words, rowid, text, tags)"
	" VALUES('delete', old.seq, old.text, old.tags); END;"
	"CREATE TRIGGER memory_change AFTER UPDATE ON memory BEGIN"
	" INSERT INTO words(words, rowid, text, tags)"
	" VALUES('delete', old.seq, old.text, old.tags);"
	" INSERT INTO words(rowid, text, tags) VALUES(new.seq, new.text, new.tags); END;"
	"PRAGMA user_version = 1;";

static int exec(struct store *store, const char *sql)
{
	return sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}

/* `kinds` lists the arguments' types: 't' a text (NULL: ""), 'i' an int64_t. */
static int store_prepare(struct store *store, sqlite3_stmt **out, const char *sql,
			 const char *kinds, ...)
{
	int rc = sqlite3_prepare_v2(store->db, sql, -1, out, NULL);
	va_list ap;

	va_start(ap, kinds);
	for (int i = 1; rc == SQLITE_OK && kinds[i - 1]; i++) {
		const char *text = kinds[i - 1] == 't' ? va_arg(ap, const char *) : NULL;

		if (kinds[i - 1] == 't')
			rc = sqlite3_bind_text(*out, i, text ? text : "", -1, SQLITE_TRANSIENT);
		else
			rc = sqlite3_bind_int64(*out, i, va_arg(ap, int64_t));
	}
	va_end(ap);
	return rc;
}

/* SQLITE_ROW, SQLITE_OK behind the last one, or an error; `rc` is the result of making *s. */
static int store_step(int rc, sqlite3_stmt **s)
{
	if (rc == SQLITE_OK || rc == SQLITE_ROW)
		rc = sqlite3_step(*s);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A statement without rows. */
#define RUN(store, sql, ...)                                                                       \
	({                                                                                         \
		sqlite3_stmt *s_ = NULL;                                                           \
		int rc_ = store_step(store_prepare(store, &s_, sql, __VA_ARGS__), &s_);            \
		sqlite3_finalize(s_);                                                              \
		rc_ == SQLITE_ROW ? SQLITE_OK : rc_;                                               \
	})

/* The number in the first column of the first row; `none` without a row. */
#define NUMBER(store, out, none, sql, ...)                                                         \
	({                                                                                         \
		sqlite3_stmt *s_ = NULL;                                                           \
		int rc_ = store_step(store_prepare(store, &s_, sql, __VA_ARGS__), &s_);            \
		*(out) = rc_ == SQLITE_ROW ? sqlite3_column_int64(s_, 0) : (none);                 \
		sqlite3_finalize(s_);                                                              \
		rc_ == SQLITE_ROW ? SQLITE_OK : rc_;                                               \
	})

static int store_commit(struct store *store, int rv)
{
	if (rv != 0)
		return rv;
	store->committing = true;
	rv = exec(store, "COMMIT");
	store->committing = rv != SQLITE_OK;
	return rv;
}

void store_shut(struct store *store)
{
	sqlite3_close(store->db); /* every statement was finalised */
	store->db = NULL;
	store->ready = false;
}

/* ---- the file */

static int store_give_up(void *user)
{
	const struct store *store = user;
	const atomic_bool *stop = store->at_work ? store->at_work->stop : NULL;

	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

/* Wipe the words of deleted rows and their place in the file. Half done, it is done again. */
static int wipe(struct store *store)
{
	int rc = exec(store, "INSERT INTO words(words) VALUES('optimize')");

	if (rc == SQLITE_OK)
		rc = exec(store, "VACUUM");
	if (rc == SQLITE_OK)
		rc = exec(store, "PRAGMA wal_checkpoint(TRUNCATE)");
	if (rc == SQLITE_OK) /* done last: till then the WAL has the old content */
		rc = exec(store, "DELETE FROM due WHERE change = 'wipe'");
	return rc;
}

static int check_damage(struct store *store)
{
	sqlite3_stmt *s = NULL;
	int rc = store_step(store_prepare(store, &s, "PRAGMA quick_check(1)", ""), &s);
	const char *said = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
	bool whole = said && strcmp(said, "ok") == 0;

	if (rc == SQLITE_ROW && !whole)
		snprintf(store->why, sizeof(store->why), "%.150s", said ? said : "");
	sqlite3_finalize(s);
	return rc != SQLITE_ROW ? rc : whole ? SQLITE_OK : SQLITE_CORRUPT;
}

static int store_set_up(struct store *store, struct memory_op *op)
{
	int64_t format = 0, wiping = 0;
	int rc =
		exec(store, "PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;"
			    "PRAGMA cache_size = -512;"
			    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
			    "PRAGMA wal_autocheckpoint = 256; PRAGMA journal_size_limit = 1048576");

	if (rc == SQLITE_OK)
		rc = NUMBER(store, &format, 0, "PRAGMA user_version", "");
	if (rc == SQLITE_OK && format > FORMAT)
		return err_set(&op->err, AVA_EFORMAT,
			       "%s was written by a newer ava: nothing was read or written",
			       store->path);
	if (rc == SQLITE_OK && format > 0)
		rc = check_damage(store);
	if (rc == SQLITE_OK && format == 0) {
		rc = exec(store, "BEGIN IMMEDIATE");
		rc = rc == SQLITE_OK ? exec(store, schema) : rc;
		return store_commit(store, rc);
	}
	if (rc == SQLITE_OK)
		rc = NUMBER(store, &wiping, 0, "SELECT count(*) FROM due WHERE change = 'wipe'",
			    "");
	return rc == SQLITE_OK && wiping > 0 ? wipe(store) : rc;
}

/* With `create` the file exists afterwards; otherwise store->db stays NULL when there is none. */
static int store_open(struct store *store, struct memory_op *op, bool create)
{
	static const char *const behind[] = {"-journal", "-wal", "-shm"};
	char path[PATH_MAX];
	struct stat st;
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), fd, rv;

	if (store->db)
		return 0;
	if (store->broken)
		return SQLITE_CORRUPT;
	/* Put aside entries of a wrong type: SQLite would wait for a pipe in the place of its
	 * journal, and fail with a folder there. */
	for (size_t i = 0; i < ARRAY_LEN(behind); i++) {
		snprintf(path, sizeof(path), "%s%s", store->path, behind[i]);
		if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
			(void)sys_put_aside(AT_FDCWD, path);
	}
	/* Before SQLite opens it: closing a descriptor of ours later would drop its locks. */
	fd = open(store->path, flags, 0600);
	if (fd < 0)
		return errno == ENOENT && !create ? 0 : err_sys(&op->err, "open %s", store->path);
	close(fd);
	rv = sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
			     NULL);
	if (rv == SQLITE_OK) {
		sqlite3_extended_result_codes(store->db, 1);
		sqlite3_busy_timeout(store->db, 2000);
		sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
		sqlite3_progress_handler(store->db, 10000, store_give_up, store);
		rv = store_set_up(store, op);
	}
	store->ready = rv == SQLITE_OK;
	return rv;
}

/* ---- rows */

#define ROW                                                                                        \
	"m.id, m.user, m.kind, m.cwd, m.text, m.tags, m.how, m.session, m.pinned, m.created, "     \
	"m.updated, m.hash"
/* ?1 user, ?2 kind or "", ?3 every folder, ?4 folder, ?5 at most */
#define SCOPE                                                                                      \
	"m.user = ?1 AND (?2 = '' OR m.kind = ?2) AND (?3 OR m.cwd = '' OR m.cwd = ?4 OR "         \
	"substr(?4, 1, length(m.cwd) + 1) = m.cwd || '/')"

static const char *column(struct memory_op *op, sqlite3_stmt *s, int i)
{
	const char *text = (const char *)sqlite3_column_text(s, i);

	return text ? arena_copy(&op->mem, text, (size_t)sqlite3_column_bytes(s, i)) : NULL;
}

static int store_read_row(struct memory_op *op, sqlite3_stmt *s, struct memory_row *row)
{
	const char **const texts[] = {&row->id,   &row->user, &row->kind, &row->cwd,
				      &row->text, &row->tags, &row->how,  &row->session};
	bool whole = true;

	for (int i = 0; i < (int)ARRAY_LEN(texts); i++) {
		*texts[i] = column(op, s, i);
		whole = whole && *texts[i];
	}
	row->pinned = sqlite3_column_int(s, 8);
	row->created_ms = sqlite3_column_int64(s, 9);
	row->updated_ms = sqlite3_column_int64(s, 10);
	snprintf(row->hash, sizeof(row->hash), "%s", (const char *)sqlite3_column_text(s, 11));
	return whole ? SQLITE_OK : SQLITE_NOMEM;
}

/* Is the row among the found ones? */
static bool has_row(const struct memory_op *op, const char *id)
{
	for (size_t i = 0; i < op->nrows; i++)
		if (strcmp(op->rows[i].id, id) == 0)
			return true;
	return false;
}

/* Add rows of `s`, as long as all together take at most `bytes`. */
static int store_add_rows(struct memory_op *op, int rc, sqlite3_stmt **statement, size_t most,
			  size_t bytes)
{
	while ((rc = store_step(rc, statement)) == SQLITE_ROW && op->nrows < most) {
		sqlite3_stmt *s = *statement;
		const char *id = (const char *)sqlite3_column_text(s, 0);
		size_t cost = (size_t)sqlite3_column_bytes(s, 4) + ROW_COST;

		if (!id || has_row(op, id) || cost > bytes)
			continue;
		bytes -= cost;
		rc = store_read_row(op, s, &op->rows[op->nrows]);
		if (rc != SQLITE_OK)
			break;
		op->nrows++;
	}
	sqlite3_finalize(*statement);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int room_for_rows(struct memory_op *op, size_t most)
{
	op->rows = arena_get(&op->mem, most * sizeof(*op->rows));
	return op->rows ? 0 : SQLITE_NOMEM;
}

/* ---- words */

static bool store_is_word(unsigned char c)
{
	return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

/* The next word of *at; NULL: no more. */
static const char *store_next_word(const char **at, size_t *len)
{
	const char *word;

	while (**at && !store_is_word((unsigned char)**at))
		++*at;
	word = *at;
	while (store_is_word((unsigned char)**at))
		++*at;
	*len = (size_t)(*at - word);
	return *len ? word : NULL;
}

static bool store_has_word(const char *text)
{
	size_t len;

	return store_next_word(&text, &len) != NULL;
}

/* A query in FTS5's form: each word quoted, so that nothing in it is syntax, and as a prefix.
 * Returns the number of words. */
static unsigned match_of(struct buf *out, const char *words, const char *joint, size_t least)
{
	const char *word;
	unsigned n = 0;
	size_t len;

	while (n < WORDS_MAX && (word = store_next_word(&words, &len)) != NULL) {
		if (len < least || len > WORD_BYTES)
			continue;
		buf_addf(out, "%s\"%.*s\"*", n++ ? joint : "", (int)len, word);
	}
	return n;
}

/* Reduce a text to what must differ: case and punctuation are dropped. */
static int normal(struct buf *out, const char *text)
{
	const char *word;
	size_t len;

	while ((word = store_next_word(&text, &len)) != NULL) {
		if (out->len)
			buf_addc(out, ' ');
		for (size_t i = 0; i < len; i++)
			buf_addc(out,
				 word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] + 32) : word[i]);
	}
	return buf_check(out) == 0 ? 0 : SQLITE_NOMEM;
}

static size_t count_shared(const char *a, const char *b, size_t *words)
{
	size_t n = 0, len, other_len;
	const char *word, *other;

	*words = 0;
	while ((word = store_next_word(&a, &len)) != NULL) {
		const char *at = b;

		++*words;
		while ((other = store_next_word(&at, &other_len)) != NULL)
			if (len == other_len && strncasecmp(word, other, len) == 0) {
				n++;
				break;
			}
	}
	return n;
}

/* Are at least half of all words of the two texts in both? */
static bool is_near(const char *a, const char *b)
{
	size_t na, nb, shared = count_shared(a, b, &na);

	(void)count_shared(b, a, &nb);
	return shared > 0 && 3 * shared >= na + nb;
}

/* ---- finding */

#define BY_WORDS                                                                                   \
	"SELECT " ROW " FROM words JOIN memory m ON m.seq = words.rowid "                          \
	"WHERE words MATCH ?6 AND " SCOPE " ORDER BY bm25(words), m.seq DESC LIMIT ?5"

static int by_words(struct store *store, struct memory_op *op, const char *joint, size_t least,
		    size_t most, size_t bytes)
{
	sqlite3_stmt *s = NULL;
	struct buf match;
	int rc = 0;

	buf_init(&match, 8192);
	if (match_of(&match, op->words, joint, least) > 0)
		rc = store_add_rows(op,
				    store_prepare(store, &s, BY_WORDS, "ttitit", op->row.user,
						  op->row.kind, (int64_t)op->all, op->row.cwd,
						  (int64_t)most, match.data),
				    &s, most, bytes);
	buf_fini(&match);
	return rc;
}

/* For letters in the middle of words, and languages without blanks between words. */
static int by_letters(struct store *store, struct memory_op *op)
{
	static const char sql[] =
		"SELECT " ROW " FROM memory m WHERE " SCOPE " AND m.text LIKE ?6 ESCAPE '\\' "
		"ORDER BY m.updated DESC, m.seq DESC LIMIT ?5";
	sqlite3_stmt *s = NULL;
	struct buf like;
	int rc;

	buf_init(&like, 2 * MEMORY_TEXT_MAX);
	buf_addc(&like, '%');
	for (const char *at = op->words; *at; at++) {
		if (strchr("%_\\", *at))
			buf_addc(&like, '\\');
		buf_addc(&like, *at);
	}
	buf_addc(&like, '%');
	if (buf_check(&like) != 0) { /* the words are longer than any text */
		buf_fini(&like);
		return 0;
	}
	rc = store_add_rows(op,
			    store_prepare(store, &s, sql, "ttitit", op->row.user, op->row.kind,
					  (int64_t)op->all, op->row.cwd, (int64_t)op->limit,
					  like.data),
			    &s, op->limit, SIZE_MAX);
	buf_fini(&like);
	return rc;
}

static int list_rows(struct store *store, struct memory_op *op, const char *sql, size_t most,
		     size_t bytes)
{
	sqlite3_stmt *s = NULL;
	int rc = store_prepare(store, &s, sql, "ttiti", op->row.user, op->row.kind,
			       (int64_t)op->all, op->row.cwd, (int64_t)most);

	return store_add_rows(op, rc, &s, most, bytes);
}

#define NEWEST " ORDER BY m.pinned DESC, m.updated DESC, m.seq DESC LIMIT ?5"

/* One row by its id; else all words, then any of them, then the letters. */
static int do_find(struct store *store, struct memory_op *op)
{
	sqlite3_stmt *s = NULL;
	int rv = room_for_rows(op, op->limit);

	if (rv == 0 && op->row.id) {
		rv = store_prepare(store, &s,
				   "SELECT " ROW " FROM memory m WHERE m.user = ?1 AND m.id = ?2",
				   "tt", op->row.user, op->row.id);
		return store_add_rows(op, rv, &s, 1, SIZE_MAX);
	}
	if (rv == 0 && (!op->words || !op->words[strspn(op->words, " \t\r\n")]))
		return list_rows(store, op, "SELECT " ROW " FROM memory m WHERE " SCOPE NEWEST,
				 op->limit, SIZE_MAX);
	if (rv == 0)
		rv = by_words(store, op, " AND ", 1, op->limit, SIZE_MAX);
	if (rv == 0 && op->nrows == 0)
		rv = by_words(store, op, " OR ", WORD_SHORT, op->limit, SIZE_MAX);
	if (rv == 0 && op->nrows == 0)
		rv = by_letters(store, op);
	return rv;
}

/* Rows that are pinned or about the person fill at most two thirds, then come rows related to the
 * message. */
static int do_recall(struct store *store, struct memory_op *op)
{
	int rv = room_for_rows(op, PERSON_MOST + FOUND_MOST);
	size_t used = 0;

	if (rv == 0)
		rv = list_rows(store, op,
			       "SELECT " ROW " FROM memory m WHERE (m.pinned OR m.kind = 'person') "
			       "AND " SCOPE NEWEST,
			       PERSON_MOST, op->bytes / 3 * 2);
	for (size_t i = 0; i < op->nrows; i++)
		used += strlen(op->rows[i].text) + ROW_COST;
	if (rv == 0 && op->words && used < op->bytes)
		rv = by_words(store, op, " OR ", WORD_LEAST, PERSON_MOST + FOUND_MOST,
			      op->bytes - used);
	return rv;
}

/* ---- changing */

static int check_row(struct memory_op *op)
{
	static const char *const kinds[] = {"person", "project", "fact"};
	struct memory_row *r = &op->row;
	bool known = !r->kind;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		known |= r->kind && strcmp(r->kind, kinds[i]) == 0;
	if (!known)
		return err_set(&op->err, AVA_EINVAL,
			       "the kind is \"%.40s\"; it must be person, project or fact",
			       r->kind);
	if ((!r->id && !r->text) || (r->text && !store_has_word(r->text)))
		return err_set(&op->err, AVA_EINVAL, "there is no text to remember");
	if (r->text && strlen(r->text) > MEMORY_TEXT_MAX)
		return err_set(&op->err, AVA_ETOOBIG,
			       "the text has %zu bytes, %d at the most: remember it in parts",
			       strlen(r->text), MEMORY_TEXT_MAX);
	if (r->tags && strlen(r->tags) > MEMORY_TAGS_MAX)
		return err_set(&op->err, AVA_ETOOBIG, "the tags have more than %d bytes",
			       MEMORY_TAGS_MAX);
	return 0;
}

/* The row to be changed, or one with the same text. *seq 0: none. */
static int find_old(struct store *store, struct memory_op *op, const char *norm,
		    struct memory_row *old, int64_t *seq)
{
	static const char by_id[] =
		"SELECT " ROW ", m.seq FROM memory m WHERE m.user = ?1 AND m.id = ?2";
	static const char by_norm[] =
		"SELECT " ROW ", m.seq FROM memory m WHERE m.user = ?1 AND m.cwd = ?2 "
		"AND m.norm = ?3";
	const struct memory_row *r = &op->row;
	sqlite3_stmt *s = NULL;
	int rc = r->id ? store_prepare(store, &s, by_id, "tt", r->user, r->id)
		       : store_prepare(store, &s, by_norm, "ttt", r->user, r->cwd, norm);

	*seq = 0;
	rc = store_step(rc, &s);
	if (rc == SQLITE_ROW) {
		*seq = sqlite3_column_int64(s, 12);
		rc = store_read_row(op, s, old);
	}
	sqlite3_finalize(s);
	if (rc == SQLITE_OK && *seq == 0 && r->id)
		return err_set(&op->err, AVA_ENOENT,
			       "there is no memory %.30s (`ava memory list` shows them)", r->id);
	return rc;
}

static bool is_taken(const char *id, void *user)
{
	int64_t n = 0;

	(void)NUMBER(user, &n, 0, "SELECT count(*) FROM name WHERE id = ?1", "t", id);
	return n > 0;
}

static int new_id(struct store *store, struct memory_op *op, struct memory_row *row)
{
	char id[MEMORY_ID_LEN];
	int64_t n = 0;
	int rv =
		NUMBER(store, &n, 0, "SELECT count(*) FROM memory WHERE user = ?1", "t", row->user);

	if (rv == 0 && n >= MEMORY_ROWS_MAX)
		return err_set(&op->err, AVA_ETOOBIG,
			       "%d things are remembered, which is as much as can be: remove some "
			       "(`ava memory rm`)",
			       MEMORY_ROWS_MAX);
	id_short('M', is_taken, store, id);
	row->id = arena_copy(&op->mem, id, strlen(id));
	return rv == 0 && !row->id ? SQLITE_NOMEM : rv;
}

/* `row` is the new state, `old` the present one. */
static bool same_row(const struct memory_row *row, const struct memory_row *old)
{
	return strcmp(row->text, old->text) == 0 && strcmp(row->kind, old->kind) == 0 &&
	       strcmp(row->cwd, old->cwd) == 0 && strcmp(row->tags, old->tags) == 0 &&
	       row->pinned == old->pinned;
}

static int put_row(struct store *store, struct memory_row *row, const char *norm, int64_t seq)
{
	static const char sql[] =
		"INSERT INTO memory(seq, id, user, kind, cwd, text, norm, tags, how, session, "
		"pinned, created, updated, hash, salt) VALUES(nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, "
		"?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT(seq) DO UPDATE SET "
		"kind = ?4, cwd = ?5, text = ?6, norm = ?7, tags = ?8, how = ?9, session = ?10, "
		"pinned = ?11, updated = ?13, hash = ?14, salt = ?15";
	unsigned char salt[16];
	struct hash_sha256 h;
	sqlite3_stmt *s = NULL;
	int rc;

	id_random(salt, sizeof(salt));
	hash_sha256_init(&h);
	hash_sha256_add(&h, salt, sizeof(salt));
	hash_sha256_with(&h, row->text, strlen(row->text), row->hash);
	rc = store_prepare(store, &s, sql, "itttttttttiiit", seq, row->id, row->user, row->kind,
			   row->cwd, row->text, norm, row->tags, row->how, row->session,
			   (int64_t)row->pinned, row->created_ms, row->updated_ms, row->hash);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_blob(s, 15, salt, sizeof(salt), SQLITE_TRANSIENT);
	rc = store_step(rc, &s);
	sqlite3_finalize(s);
	if (rc == SQLITE_OK && seq == 0)
		rc = RUN(store, "INSERT INTO name VALUES(?1)", "t", row->id);
	return rc == SQLITE_OK ? RUN(store,
				     "INSERT INTO due(id, user, session, change, hash) "
				     "VALUES(?1, ?2, ?3, ?4, ?5)",
				     "ttttt", row->id, row->user, row->session,
				     seq ? "changed" : "added", row->hash)
			       : rc;
}

/* Refuse an edit that makes a row equal to another. */
static int check_twin(struct store *store, struct memory_op *op, const struct memory_row *row,
		      const char *norm)
{
	int64_t n = 0;
	int rc = NUMBER(store, &n, 0,
			"SELECT count(*) FROM memory WHERE user = ?1 AND cwd = ?2 AND norm = ?3 "
			"AND id <> ?4",
			"tttt", row->user, row->cwd, norm, row->id);

	return rc == SQLITE_OK && n > 0
		       ? err_set(&op->err, AVA_EEXIST, "another memory says that already")
		       : rc;
}

/* The row is read back as op->rows[0]. */
static int store_write_row(struct store *store, struct memory_op *op, struct buf *norm)
{
	struct memory_row row = {.kind = "person", .cwd = "", .tags = "", .how = "added"}, old;
	int64_t seq;
	int rv = op->row.text ? normal(norm, op->row.text) : 0;
	const struct memory_row *r = &op->row;

	if (rv == 0)
		rv = find_old(store, op, norm->data, &old, &seq);
	if (rv != 0)
		return rv;
	if (seq == 0) {
		row.session = "";
		row.user = op->row.user ? op->row.user : "";
		row.created_ms = clock_wall_ms();
		if (op->row.cwd && op->row.cwd[0])
			row.kind = "project";
		rv = new_id(store, op, &row);
	} else {
		row = old;
	}
	row.kind = r->kind ? r->kind : row.kind;
	row.cwd = r->cwd ? r->cwd : row.cwd;
	row.text = r->text ? r->text : row.text;
	row.tags = r->tags ? r->tags : row.tags;
	row.how = r->how ? r->how : row.how;
	row.session = r->session ? r->session : row.session;
	row.pinned = r->pinned >= 0 ? r->pinned : row.pinned;
	row.pinned = MAX(row.pinned, 0);
	op->outcome = seq == 0               ? MEMORY_ADDED
		      : same_row(&row, &old) ? MEMORY_KNOWN
					     : MEMORY_CHANGED;
	if (rv == 0 && !op->row.text)
		rv = normal(norm, row.text);
	if (rv == 0)
		rv = check_twin(store, op, &row, norm->data);
	if (op->outcome == MEMORY_KNOWN)
		row = old;
	row.updated_ms = clock_wall_ms();
	if (rv == 0 && op->outcome != MEMORY_KNOWN)
		rv = put_row(store, &row, norm->data, seq);
	op->rows[0] = row;
	op->nrows = rv == 0;
	return rv;
}

static int do_write(struct store *store, struct memory_op *op)
{
	struct buf norm;
	int rv = check_row(op);

	if (rv == 0)
		rv = room_for_rows(op, 1 + NEAR_MOST);
	if (rv == 0)
		rv = exec(store, "BEGIN IMMEDIATE");
	if (rv != 0)
		return rv;
	buf_init(&norm, 2 * MEMORY_TEXT_MAX);
	rv = store_commit(store, store_write_row(store, op, &norm));
	buf_fini(&norm);
	if (rv != 0 || op->outcome != MEMORY_ADDED)
		return rv;
	/* Add rows that the new one may contradict or repeat: the writer may want to change
	 * those. */
	op->words = op->rows[0].text;
	op->row.kind = NULL;
	op->row.cwd = op->rows[0].cwd;
	rv = by_words(store, op, " OR ", WORD_LEAST, 1 + NEAR_MOST, SIZE_MAX);
	for (size_t i = 1; i < op->nrows;) {
		if (is_near(op->rows[0].text, op->rows[i].text))
			i++;
		else
			op->rows[i] = op->rows[--op->nrows];
	}
	return rv;
}

/* op->words, if any, must be the row's text still: the one that a person said yes to. */
static int store_remove_one(struct store *store, struct memory_op *op, const char *id)
{
	int64_t seq = 0;
	int rv = NUMBER(store, &seq, 0,
			"SELECT CASE WHEN ?3 = '' OR text = ?3 THEN seq ELSE -1 END FROM memory "
			"WHERE user = ?1 AND id = ?2",
			"ttt", op->row.user, id, op->words);

	if (rv == 0 && seq < 0)
		return err_set(&op->err, AVA_EDENIED,
			       "nothing was forgotten: %.30s is not what it was when it was asked "
			       "about",
			       id);
	if (rv == 0 && seq == 0)
		return err_set(&op->err, AVA_ENOENT,
			       "there is no memory %.30s: nothing was removed (`ava memory list` "
			       "shows them)",
			       id);
	if (rv == 0)
		rv = RUN(store,
			 "INSERT INTO due(id, user, session, change, hash) SELECT id, user, ?2, "
			 "'removed', hash FROM memory WHERE seq = ?1",
			 "it", seq, op->row.session);
	return rv == 0 ? RUN(store, "DELETE FROM memory WHERE seq = ?1", "i", seq) : rv;
}

static int do_remove(struct store *store, struct memory_op *op)
{
	int rv = exec(store, "BEGIN IMMEDIATE");

	if (rv == 0 && op->all)
		rv = RUN(store, "DELETE FROM memory WHERE user = ?1", "t", op->row.user);
	if (rv == 0 && op->all)
		rv = RUN(store,
			 "INSERT INTO due(id, user, session, change, hash) "
			 "VALUES('all', ?1, ?2, 'removed', '')",
			 "tt", op->row.user, op->row.session);
	for (size_t i = 0; rv == 0 && !op->all && i < op->nids; i++)
		rv = store_remove_one(store, op, op->ids[i]);
	if (rv == 0)
		rv = exec(store, "INSERT INTO due(id, user, session, change, hash) "
				 "VALUES('', '', '', 'wipe', '')");
	rv = store_commit(store, rv);
	if (rv == 0 && wipe(store) != SQLITE_OK)
		snprintf(
			op->err.text, sizeof(op->err.text),
			"removed, but %s could not be written anew (%s): bytes of it may be in the "
			"file until the next removal or start",
			store->path, sqlite3_errmsg(store->db));
	return rv;
}

static int read_due(struct store *store, struct memory_op *op)
{
	sqlite3_stmt *s = NULL;
	int rc = store_prepare(store, &s,
			       "SELECT n, id, user, session, change, hash FROM due "
			       "WHERE change <> 'wipe' ORDER BY n LIMIT ?1",
			       "i", (int64_t)DUE_MOST);

	op->due = arena_get(&op->mem, DUE_MOST * sizeof(*op->due));
	if (rc == SQLITE_OK && !op->due)
		rc = SQLITE_NOMEM;
	while ((rc = store_step(rc, &s)) == SQLITE_ROW && op->ndue < DUE_MOST) {
		struct memory_due *d = &op->due[op->ndue++];

		*d = (struct memory_due){sqlite3_column_int64(s, 0), column(op, s, 1),
					 column(op, s, 2),           column(op, s, 3),
					 column(op, s, 4),           column(op, s, 5)};
		if (!d->id || !d->user || !d->session || !d->change || !d->hash)
			rc = SQLITE_NOMEM;
	}
	sqlite3_finalize(s);
	return rc;
}

/* The log beside the file holds commits not yet in the file: both go together. */
static int do_reset(struct store *store, struct memory_op *op)
{
	static const char *const parts[] = {"", "-wal", "-shm"};
	char from[4200], to[4200], aside[4100];
	int n = 0;

	if (!store->broken)
		return err_set(&op->err, AVA_EEXIST,
			       "%s is not damaged: nothing was set aside; `ava memory rm` removes",
			       store->path);
	snprintf(aside, sizeof(aside), "%s.broken", store->path);
	while (access(aside, F_OK) == 0 && ++n < ASIDE_MOST)
		snprintf(aside, sizeof(aside), "%s.broken-%d", store->path, n);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		snprintf(from, sizeof(from), "%s%s", store->path, parts[i]);
		snprintf(to, sizeof(to), "%s%s", aside, parts[i]);
		if (rename(from, to) != 0 && errno != ENOENT)
			return err_sys(&op->err, "set %s aside", from);
	}
	store->broken = false;
	store->why[0] = 0;
	return store_open(store, op, true);
}

/* ---- one op */

/* The sentence for a code of SQLite's. */
static int store_tell(struct store *store, struct memory_op *op, int rc)
{
	bool full = store->db && err_is_full(sqlite3_system_errno(store->db));
	const char *said = store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);

	switch (full && (rc & 0xff) == SQLITE_IOERR ? SQLITE_FULL : rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		if (!store->broken && !store->why[0])
			snprintf(store->why, sizeof(store->why), "%.150s", said);
		store->broken = true;
		return err_set(&op->err, AVA_ECORRUPT,
			       "the memory in %s is damaged (%s): `ava memory reset` sets the file "
			       "aside and begins a new one",
			       store->path, store->why);
	case SQLITE_FULL:
		return err_set(&op->err, AVA_EFULL,
			       "the disk is full: nothing was remembered or removed; make room");
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(&op->err, AVA_EBUSY,
			       "another program holds %s: close it and try again", store->path);
	case SQLITE_NOMEM:
		return err_set(&op->err, AVA_ENOMEM, "out of memory");
	case SQLITE_INTERRUPT:
		return err_set(&op->err, AVA_ECANCELED, "cancelled");
	default:
		return err_set(&op->err, store->committing ? AVA_EUNKNOWN : AVA_EIO,
			       store->committing
				       ? "the disk failed while %s was saved (%s): see with "
					 "`ava memory list` whether it is there"
				       : "%s cannot be read or written: %s",
			       store->path, said);
	}
}

static int do_op(struct store *store, struct memory_op *op)
{
	bool writes = op->what == MEMORY_WRITE;
	int rv = op->what == MEMORY_RESET ? do_reset(store, op) : store_open(store, op, writes);

	if (rv != 0 || op->what == MEMORY_RESET || !store->db) {
		if (rv == 0 && op->what == MEMORY_REMOVE && !op->all)
			rv = err_set(&op->err, AVA_ENOENT, "nothing is remembered");
		return rv;
	}
	switch (op->what) {
	case MEMORY_WRITE:
		rv = do_write(store, op);
		break;
	case MEMORY_REMOVE:
		rv = do_remove(store, op);
		break;
	case MEMORY_FIND:
		return do_find(store, op);
	case MEMORY_RECALL:
		return do_recall(store, op);
	case MEMORY_TOLD:
		return RUN(store, "DELETE FROM due WHERE n <= ?1 AND change <> 'wipe'", "i",
			   op->told);
	case MEMORY_LOOK:
	case MEMORY_RESET:
		break;
	}
	return rv == 0 ? read_due(store, op) : rv;
}

void store_do(struct store *store, struct memory_op *op)
{
	int rv;

	store->at_work = op;
	store->committing = false;
	rv = store_give_up(store) ? SQLITE_INTERRUPT : do_op(store, op);
	if (rv > 0)
		rv = store_tell(store, op, rv);
	op->rv = rv;
	if (store->db && !sqlite3_get_autocommit(store->db))
		(void)exec(store, "ROLLBACK");
	if (!store->ready || rv == AVA_EIO || rv == AVA_EUNKNOWN || rv == AVA_ECORRUPT)
		store_shut(store); /* the next op reopens it and reads the true state */
	store->at_work = NULL;
}

struct store *store_new(const char *root)
{
	struct store *store = calloc(1, sizeof(*store));

	if (store && asprintf(&store->path, "%s/" MEMORY_FILE, root) >= 0)
		return store;
	free(store);
	return NULL;
}

void store_free(struct store *store)
{
	free(store->path);
	free(store);
}
