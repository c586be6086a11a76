/* Runs of other machines: a list of the newest, and copies of those that somebody looks at. One
 * statement reads a run's row and what its copy lacks, so that both are of one moment; a thread of
 * the pool hashes the new lines behind those that are there and writes them only when the run's
 * head comes out. When it does not, the copy is made anew once: the database may have gone back.
 * Files of a run come when it has ended, and last the name of its machine, which says that the copy
 * is whole. Nothing is synced: what a crash damages differs from its head. */
#include "cluster/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "cluster/copy.h"
#include "cluster/member.h"
#include "cluster/row.h"
#include "codec/jscan.h"

#define COPIES_MAX  256 /* that are remembered; others are hashed again */
#define EDGES_ASKED 200
#define HEADS_ASKED 64
#define ANSWER_MS   5000 /* until a batch that nobody answers loses its connection */

struct reader {
	struct os_loop *loop;
	int root_fd, dir_fd;
	const char *node;
	struct pg *pg;
	bool away, closing; /* away: an attempt to connect has failed since the last one held */
	struct ava_error why;
	struct strmap listed;   /* struct reader_row, by id */
	uint64_t round;         /* of lists */
	struct list listings;   /* struct reader_listing that are not answered */
	struct strmap copies;   /* struct reader_copy, by id */
	struct list copy_order; /* used last at the end */
	unsigned working;       /* copies on pool threads */
};

struct reader_row {
	struct reader_run run;
	bool has_row, of_end; /* of_end: its row tells the end */
	uint64_t round;       /* of the newest list that named it */
};

struct reader_listing {
	struct list node;
	struct reader *r;
	struct os_timer *late;
	uint64_t stamp;
	reader_list_fn done; /* NULL: answered already */
	void *user;
	bool sent;
	unsigned rounds;
};

struct reader_wait {
	struct list node;
	reader_fn done;
	void *user;
};

struct pg *reader_pg(const struct reader *r)
{
	return r->away || r->closing || !pg_is_up(r->pg) ? NULL : r->pg;
}

const char *reader_node(const struct reader *r)
{
	return r->node;
}

int reader_root(const struct reader *r)
{
	return r->dir_fd;
}

/* ---- lists */

/* One row: run, line of the catalog, beginning and end of the log. */
static void listed_fill(struct reader *r, const struct pg_result *rows, unsigned i)
{
	const char *id = pg_text(rows, i, 0, NULL);
	struct reader_row *l = id ? strmap_get(&r->listed, id) : NULL;
	struct run_edges e = {.ended = l && l->run.ended};

	e.row.s = pg_text(rows, i, 1, &e.row.len);
	e.first.s = pg_text(rows, i, 2, &e.first.len);
	e.last.s = pg_text(rows, i, 3, &e.last.len);
	if (!l)
		return;
	catalog_row_fini(&l->run.row);
	l->has_row = run_row(&l->run.row, &e);
	l->of_end = l->run.ended;
}

static void listing_answer(struct reader_listing *l, int rv, const struct ava_error *err)
{
	reader_list_fn done = l->done;

	l->done = NULL;
	os_timer_stop(l->late);
	if (done)
		done(rv, err, l->user);
}

static void listing_end(struct reader_listing *l, int rv, const struct ava_error *err)
{
	listing_answer(l, rv, err);
	list_del(&l->node);
	os_timer_free(l->late);
	free(l);
}

static void listing_late(void *user)
{
	struct reader_listing *l = user;
	struct ava_error err = {0};

	err_set(&err, AVA_ETIMEOUT, "the database of the cluster does not answer in time");
	listing_answer(l, err.code, &err);
}

static void listing_ask_edges(struct reader_listing *l);

static void listing_edges_came(const struct pg_answer *a, void *user)
{
	struct reader_listing *l = user;

	if (a->rv != 0 || l->r->closing) {
		listing_end(l, a->rv ? a->rv : AVA_ECANCELED, a->err);
		return;
	}
	for (unsigned i = 0; i < pg_rows(&a->results[0]); i++)
		listed_fill(l->r, &a->results[0], i);
	listing_ask_edges(l);
}

/* Asks for the rows that are not known yet, or only as those of live runs; an answer that does not
 * bring them is not asked for again. */
static void listing_ask_edges(struct reader_listing *l)
{
	static const char sql[] =
		"select s.run, convert_from(s.line, 'UTF8'),"
		" (select substring(k.body for 65536) from ava_chunk k where k.stream = s.run"
		"   and k.kind = 0 order by k.head limit 1),"
		" (select substring(k.body from greatest(1, length(k.body) - 65535))"
		"   from ava_chunk k where k.stream = s.run and k.kind = 0"
		"   order by k.head desc limit 1)"
		" from ava_spec s where s.run = any($1)";
	const char *ids[EDGES_ASKED];
	struct ava_error err = {0};
	struct reader_row *row;
	struct pg_batch *b;
	size_t at = 0, n = 0;
	int rv;

	while (n < EDGES_ASKED && (row = strmap_next(&l->r->listed, &at)))
		if (!row->has_row || row->of_end != row->run.ended)
			ids[n++] = row->run.id;
	if (n == 0 || l->rounds++ > READER_RUNS / EDGES_ASKED) {
		listing_end(l, 0, NULL);
		return;
	}
	b = pg_batch_new();
	pg_batch_add(b, sql);
	pg_batch_texts(b, ids, n);
	rv = pg_send(l->r->pg, b, listing_edges_came, l, &err);
	if (rv != 0)
		listing_end(l, rv, &err);
}

/* Columns from `at` on: its machine, state, whether that is alive, place, turn, tokens, micro. */
static void reader_note(struct reader_run *run, const struct pg_result *rows, unsigned i,
			unsigned at)
{
	const char *machine = pg_text(rows, i, at, NULL), *place = pg_text(rows, i, at + 3, NULL);
	int64_t state = 0, alive = 0;
	bool tree = place && strncmp(place, "folder ", 7) == 0;

	(void)pg_int(rows, i, at + 1, &state);
	(void)pg_int(rows, i, at + 2, &alive);
	(void)pg_int(rows, i, at + 4, &run->turn);
	(void)pg_int(rows, i, at + 5, &run->tokens);
	(void)pg_int(rows, i, at + 6, &run->micro);
	snprintf(run->machine, sizeof(run->machine), "%s", machine ? machine : "");
	snprintf(run->place, sizeof(run->place), "%s", place ? place : "");
	run->ended = state == CLUSTER_ENDED;
	run->held = state == CLUSTER_POISON;
	run->silent = alive == 0;
	if (run->held)
		snprintf(run->waits, sizeof(run->waits),
			 "is held: %d machines that took it went down", CLUSTER_TAKES);
	else if (tree || strcmp(run->place, "here") == 0)
		snprintf(run->waits, sizeof(run->waits), "waits for machine %s%s%s", run->machine,
			 tree ? ", or for one with the same tree of " : "", tree ? place : "");
	else
		snprintf(run->waits, sizeof(run->waits),
			 "waits for its machine, which is silent, or another one");
}

/* One row: run, then as reader_note has it. */
static void listed_note(struct reader *r, const struct pg_result *rows, unsigned i, uint64_t stamp)
{
	const char *id = pg_text(rows, i, 0, NULL);
	struct reader_row *l = id ? strmap_get(&r->listed, id) : NULL;
	bool ended;

	if (!id || !id_is_run(id) || strlen(id) >= sizeof(l->run.id))
		return;
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			return;
		snprintf(l->run.id, sizeof(l->run.id), "%s", id);
		if (strmap_put(&r->listed, l->run.id, l) != 0) {
			free(l);
			return;
		}
	}
	l->round = r->round;
	ended = l->run.ended;
	reader_note(&l->run, rows, i, 1);
	l->run.seen_live |= !l->run.ended;
	if (l->run.ended && !ended && l->run.seen_live)
		l->run.stamp = stamp;
}

static void listed_free(struct reader *r, struct reader_row *l)
{
	strmap_del(&r->listed, l->run.id);
	catalog_row_fini(&l->run.row);
	free(l);
}

static void listing_came(const struct pg_answer *a, void *user)
{
	struct reader_listing *l = user;
	struct reader *r = l->r;
	struct reader_row *row;
	size_t at = 0;

	if (a->rv != 0 || r->closing) {
		listing_end(l, a->rv ? a->rv : AVA_ECANCELED, a->err);
		return;
	}
	r->round++;
	for (unsigned i = 0; i < pg_rows(&a->results[0]); i++)
		listed_note(r, &a->results[0], i, l->stamp);
	while ((row = strmap_next(&r->listed, &at)))
		if (row->round != r->round)
			listed_free(r, row);
	listing_ask_edges(l);
}

static void listing_send(struct reader_listing *l)
{
	static const char sql[] =
		"select r.run, coalesce(n.name, 'gone'), r.state::bigint,"
		" coalesce((n.lease_until > clock_timestamp())::int::bigint, 0), s.place,"
		" r.turn, r.tokens, r.micro"
		" from ava_spec s join ava_run r using (run) left join ava_node n using (node)"
		" where r.node <> $1 order by s.created desc limit $2";
	struct pg_batch *b = pg_batch_new();
	struct ava_error err = {0};
	int rv;

	l->sent = true;
	pg_batch_add(b, sql);
	pg_batch_text(b, l->r->node);
	pg_batch_int(b, READER_RUNS);
	rv = pg_send(l->r->pg, b, listing_came, l, &err);
	if (rv != 0)
		listing_end(l, rv, &err);
}

void reader_list(struct reader *r, uint64_t stamp, reader_list_fn done, void *user)
{
	struct reader_listing *l = r->away || r->closing ? NULL : calloc(1, sizeof(*l));
	struct ava_error err = {.code = AVA_ENOMEM, .text = "out of memory"};

	if (l)
		l->late = os_timer_new(r->loop, listing_late, l);
	if (!l || !l->late) {
		free(l);
		if (r->away || r->closing)
			err = r->why;
		done(err.code, &err, user);
		return;
	}
	l->r = r;
	l->stamp = stamp;
	l->done = done;
	l->user = user;
	list_add(&r->listings, &l->node);
	os_timer_set(l->late, READER_MS);
	if (pg_is_up(r->pg))
		listing_send(l);
}

const struct reader_run *reader_find(const struct reader *r, const char *id)
{
	struct reader_row *row = strmap_get(&r->listed, id);

	return row ? &row->run : NULL;
}

const struct reader_run *reader_next(const struct reader *r, size_t *at)
{
	struct reader_row *row;

	while ((row = strmap_next(&r->listed, at)))
		if (row->has_row)
			return &row->run;
	return NULL;
}

/* ---- copies */

static void copy_begin(struct reader_copy *c);
static void copy_ask(struct reader_copy *c);

static void copy_clear(struct reader_copy *c)
{
	LIST_EACH (&c->files, n, tmp) {
		struct reader_file *f = LIST_ENTRY(n, struct reader_file, node);

		list_del(&f->node);
		free(f->body);
		free(f);
	}
	buf_fini(&c->log);
	buf_fini(&c->messages);
	buf_init(&c->log, COPY_BYTES);
	buf_init(&c->messages, COPY_BYTES);
}

static void copy_free(struct reader_copy *c)
{
	copy_clear(c);
	strmap_del(&c->r->copies, c->id);
	list_del(&c->node);
	free(c);
}

/* Answers whom this look served, and looks again for who came meanwhile. */
static void copy_tell(struct reader_copy *c, int rv, const struct ava_error *err)
{
	struct list served;

	list_init(&served);
	list_splice(&served, &c->served);
	copy_clear(c);
	c->busy = c->again = false;
	LIST_EACH (&served, n, tmp) {
		struct reader_wait *w = LIST_ENTRY(n, struct reader_wait, node);

		list_del(&w->node);
		if (w->done)
			w->done(rv, rv == 0 ? &c->run : NULL, err, w->user);
		free(w);
	}
	if (!c->busy && !list_empty(&c->waits))
		copy_begin(c);
}

static void copy_work(struct reader_copy *c, void (*work)(struct os_work *),
		      void (*done)(struct os_work *))
{
	c->r->working++;
	c->work = (struct os_work){.work = work, .done = done, .priv = c};
	os_work_start(c->r->loop, &c->work);
}

static void copy_stored(struct os_work *w)
{
	struct reader_copy *c = w->priv;

	c->r->working--;
	if (c->rv == AVA_ECORRUPT && c->at.bytes > 0 && !c->again && !c->r->closing) {
		c->again = true;
		c->at = (struct run_log){0};
		c->messages_at = 0;
		copy_ask(c);
		return;
	}
	c->whole = c->rv == 0 && c->run.ended;
	copy_tell(c, c->rv, &c->err);
}

static bool copy_add_file(struct reader_copy *c, const char *path, const char *body, size_t len)
{
	struct reader_file *f = malloc(sizeof(*f) + strlen(path) + 1);

	if (!f)
		return false;
	f->body = malloc(len + 1);
	f->len = len;
	memcpy(f->path, path, strlen(path) + 1);
	list_add(&c->files, &f->node);
	if (f->body)
		memcpy(f->body, body, len);
	return f->body != NULL;
}

/* Paths come from the database: only those that the run has. */
static bool copy_takes(const struct reader_copy *c, const char *path)
{
	size_t n = strlen(c->id);

	if (strncmp(path, "heads/", 6) == 0)
		return strspn(path + 6, "0123456789abcdef") == 64 && !path[70];
	return strncmp(path, "runs/", 5) == 0 && strncmp(path + 5, c->id, n) == 0 &&
	       path[5 + n] == '/' && !strstr(path, "/.") && strlen(path) < LOGBOOK_PATH - 8;
}

static bool copy_add_files(struct reader_copy *c, const struct pg_result *rows)
{
	bool ok = true;

	for (unsigned i = 0; ok && i < pg_rows(rows); i++) {
		size_t len = 0;
		const char *path = pg_text(rows, i, 0, NULL), *body = pg_text(rows, i, 1, &len);

		if (path && body && copy_takes(c, path))
			ok = copy_add_file(c, path, body, len);
	}
	return ok;
}

static void copy_heads_came(const struct pg_answer *a, void *user)
{
	struct reader_copy *c = user;

	if (a->rv != 0)
		copy_tell(c, err_set(&c->err, AVA_EIO, "%s", a->err->text), &c->err);
	else if (!copy_add_files(c, &a->results[0]))
		copy_tell(c, err_set(&c->err, AVA_ENOMEM, "out of memory"), &c->err);
	else
		copy_work(c, copy_store, copy_stored);
}

/* Heads of requests that the new messages refer to, and the copies lack. */
static void copy_ask_heads(struct reader_copy *c)
{
	char paths[HEADS_ASKED][80];
	const char *list[HEADS_ASKED];
	struct slice name;
	struct stat st;
	struct pg_batch *b;
	size_t at = 0, n = 0;

	while (n < HEADS_ASKED && head_next(c->messages.data, c->messages.len, &at, &name)) {
		snprintf(paths[n], sizeof(paths[n]), "heads/%.*s", (int)MIN(name.len, (size_t)64),
			 name.s);
		list[n] = paths[n];
		n += sys->fstatat(c->r->dir_fd, paths[n], &st, AT_SYMLINK_NOFOLLOW) != 0;
	}
	if (n == 0) {
		copy_work(c, copy_store, copy_stored);
		return;
	}
	b = pg_batch_new();
	pg_batch_add(b, "select path, body from ava_file where run = '' and path = any($1)");
	pg_batch_texts(b, list, n);
	if (pg_send(c->r->pg, b, copy_heads_came, c, &c->err) != 0)
		copy_tell(c, err_wrap(&c->err, AVA_EIO, "run %s", c->id), &c->err);
}

/* Chunks that follow what there is; 0, or AVA_ECORRUPT with a gap. */
static int copy_take_chunks(struct reader_copy *c, const struct pg_result *rows)
{
	for (unsigned i = 0; i < pg_rows(rows); i++) {
		int64_t kind = 0, head = 0;
		size_t len = 0;
		const char *body = pg_text(rows, i, 12, &len);
		struct buf *to;

		if (!pg_int(rows, i, 10, &kind) || !body)
			continue; /* nothing is new */
		(void)pg_int(rows, i, 11, &head);
		to = kind == 0 ? &c->log : &c->messages;
		if (buf_add(to, body, len) != 0)
			return err_set(&c->err, buf_check(to), "the record of run %s is too much",
				       c->id);
		if (head != (kind == 0 ? c->at.bytes : c->messages_at) + (int64_t)to->len)
			return AVA_ECORRUPT;
	}
	return 0;
}

/* A run of this machine that is asked for here is held, or on its way; its end is here.
 * Columns: mine, those of reader_note, head, hash, kind, head of the chunk, body. */
static int copy_took(struct reader_copy *c, const struct pg_answer *a)
{
	const struct pg_result *rows = &a->results[0];
	int64_t mine = 0, state = 0, big = 0;
	size_t len = 0;
	const char *hash;

	(void)pg_int(rows, 0, 0, &mine);
	(void)pg_int(rows, 0, 2, &state);
	if (pg_rows(rows) == 0 || (mine && state == CLUSTER_ENDED))
		return err_set(&c->err, AVA_ENOENT,
			       "there is no run %s on another machine (ava ps -a lists them)",
			       c->id);
	reader_note(&c->run, rows, 0, 1);
	(void)pg_int(rows, 0, 8, &c->head);
	hash = pg_text(rows, 0, 9, &len);
	if (pg_int(&a->results[1], 0, 0, &big) && big > COPY_BYTES)
		return err_set(&c->err, AVA_ETOOBIG, "the record of run %s has %lld bytes: ask %s",
			       c->id, (long long)big, c->run.machine);
	memset(c->hash, 0, sizeof(c->hash));
	memcpy(c->hash, hash, MIN(len, sizeof(c->hash)));
	if (!copy_add_files(c, &a->results[2]))
		return err_set(&c->err, AVA_ENOMEM, "out of memory");
	return copy_take_chunks(c, rows);
}

static void copy_came(const struct pg_answer *a, void *user)
{
	struct reader_copy *c = user;
	struct ava_error *err = &c->err;

	c->rv = a->rv == 0 ? copy_took(c, a) : err_set(err, AVA_EIO, "%s", a->err->text);
	if (c->rv == AVA_ECORRUPT) /* the chain of what came tells, too */
		c->head = -1;
	if (c->r->closing || (c->rv != 0 && c->rv != AVA_ECORRUPT))
		copy_tell(c, c->rv ? c->rv : AVA_ECANCELED, &c->err);
	else
		copy_ask_heads(c);
}

static void copy_ask(struct reader_copy *c)
{
	static const char sql[] =
		"select (r.node = $2)::int::bigint, coalesce(n.name, 'gone'), r.state::bigint,"
		" coalesce((n.lease_until > clock_timestamp())::int::bigint, 0),"
		" p.place, r.turn, r.tokens, r.micro,"
		" r.head, r.head_hash,"
		" k.kind::bigint, k.head, k.body"
		" from ava_run r join ava_spec p on p.run = r.run"
		" left join ava_node n using (node) left join ava_chunk k"
		"  on k.stream = r.run and ((k.kind = 0 and k.head > $3)"
		"   or (k.kind = 1 and k.head > $4)) and $5 >="
		"  (select sum(length(s.body)) from ava_chunk s where s.stream = $1)"
		" where r.run = $1 order by k.kind, k.head";
	struct pg_batch *b = pg_batch_new();

	copy_clear(c);
	pg_batch_add(b, sql);
	pg_batch_text(b, c->id);
	pg_batch_text(b, c->r->node);
	pg_batch_int(b, c->at.bytes);
	pg_batch_int(b, c->messages_at);
	pg_batch_int(b, COPY_BYTES);
	pg_batch_add(b, "select sum(length(body))::bigint from ava_chunk where stream = $1");
	pg_batch_text(b, c->id);
	pg_batch_add(b, "select f.path, f.body from ava_file f join ava_run r using (run)"
			" where f.run = $1 and r.state = $2");
	pg_batch_text(b, c->id);
	pg_batch_int(b, CLUSTER_ENDED);
	if (pg_send(c->r->pg, b, copy_came, c, &c->err) != 0)
		copy_tell(c, err_wrap(&c->err, AVA_EIO, "run %s", c->id), &c->err);
}

/* Goes on once there is a connection, or it is known that there is none. */
static void copy_go(struct reader_copy *c)
{
	char path[LOGBOOK_PATH];
	struct stat st;

	logbook_run_path(c->id, path);
	if (c->at.bytes > 0 && sys->fstatat(c->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		c->at = (struct run_log){0}; /* a person or a pruning has removed it */
		c->messages_at = 0;
		c->whole = false;
	}
	if (c->whole)
		copy_tell(c, 0, NULL);
	else if (c->r->away || c->r->closing)
		copy_tell(c, c->r->why.code, &c->r->why);
	else if (pg_is_up(c->r->pg))
		copy_ask(c);
	else
		c->waiting = true; /* reader_up, reader_down */
}

static void copy_loaded(struct os_work *w)
{
	struct reader_copy *c = w->priv;

	c->r->working--;
	c->known = true;
	copy_go(c);
}

static void copy_begin(struct reader_copy *c)
{
	c->busy = true;
	list_splice(&c->served, &c->waits);
	if (c->known)
		copy_go(c);
	else
		copy_work(c, copy_load, copy_loaded);
}

static struct reader_copy *copy_find(struct reader *r, const char *id)
{
	struct reader_copy *c = strmap_get(&r->copies, id);

	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return NULL;
		c->r = r;
		c->dir_fd = r->dir_fd;
		snprintf(c->run.id, sizeof(c->run.id), "%s", id);
		snprintf(c->id, sizeof(c->id), "%s", id);
		list_init(&c->waits);
		list_init(&c->served);
		list_init(&c->files);
		copy_clear(c);
		if (strmap_put(&r->copies, c->id, c) != 0) {
			free(c);
			return NULL;
		}
	} else {
		list_del(&c->node);
	}
	list_add(&r->copy_order, &c->node);
	LIST_EACH (&r->copy_order, n, tmp) {
		struct reader_copy *old = LIST_ENTRY(n, struct reader_copy, node);

		if (r->copies.count <= COPIES_MAX)
			break;
		if (old != c && !old->busy)
			copy_free(old);
	}
	return c;
}

void reader_fetch(struct reader *r, const char *id, reader_fn done, void *user)
{
	struct ava_error err = {0};
	struct reader_copy *c = NULL;
	struct reader_wait *w = NULL;

	if (r->closing)
		err_set(&err, AVA_ECANCELED, "the runtime stops");
	else if (!id_is_run(id) || strlen(id) >= sizeof(c->id))
		err_set(&err, AVA_ENOENT, "there is no run %.40s (ava ps -a lists them)", id);
	else if (!(c = copy_find(r, id)) || !(w = calloc(1, sizeof(*w))))
		err_set(&err, AVA_ENOMEM, "out of memory");
	if (err.code) {
		done(err.code, NULL, &err, user);
		return;
	}
	w->done = done;
	w->user = user;
	list_add(&c->waits, &w->node);
	if (!c->busy)
		copy_begin(c);
}

void reader_anew(struct reader *r, const char *id)
{
	struct reader_copy *c =
		id_is_run(id) && strlen(id) < sizeof(c->id) ? copy_find(r, id) : NULL;

	if (!c || c->busy)
		return;
	c->known = true;
	c->whole = false;
	c->at = (struct run_log){0};
	c->messages_at = 0;
}

void reader_drop(struct reader *r, const void *user)
{
	struct reader_copy *c;
	size_t at = 0;

	while ((c = strmap_next(&r->copies, &at))) {
		struct list *const both[] = {&c->waits, &c->served};

		for (size_t i = 0; i < ARRAY_LEN(both); i++)
			LIST_EACH (both[i], n, tmp)
				if (LIST_ENTRY(n, struct reader_wait, node)->user == user)
					LIST_ENTRY(n, struct reader_wait, node)->done = NULL;
	}
}

/* ---- the connection */

static void reader_goes_on(struct reader *r)
{
	struct list *at = r->copy_order.next;

	while (at != &r->copy_order) {
		struct reader_copy *c = LIST_ENTRY(at, struct reader_copy, node);

		at = at->next;
		if (!c->waiting)
			continue;
		c->waiting = false;
		copy_go(c);
		at = r->copy_order.next; /* who was told may have asked, which moves copies */
	}
}

static void reader_up(void *user)
{
	struct reader *r = user;

	if (r->closing)
		return;
	if (!pg_is_private(r->pg)) {
		r->away = true;
		err_set(&r->why, AVA_EDENIED,
			"the connection to the database is neither local nor encrypted: add "
			"sslmode=require");
	} else {
		r->away = false;
		LIST_EACH (&r->listings, n, tmp)
			if (!LIST_ENTRY(n, struct reader_listing, node)->sent)
				listing_send(LIST_ENTRY(n, struct reader_listing, node));
	}
	reader_goes_on(r);
}

static void reader_down(const struct ava_error *why, void *user)
{
	struct reader *r = user;

	if (r->closing)
		return;
	r->away = true;
	err_set(&r->why, AVA_EIO, "the database of the cluster is not there: %s", why->text);
	LIST_EACH (&r->listings, n, tmp)
		if (!LIST_ENTRY(n, struct reader_listing, node)->sent)
			listing_end(LIST_ENTRY(n, struct reader_listing, node), r->why.code,
				    &r->why);
	reader_goes_on(r);
}

/* ---- life */

int reader_open(struct reader **out, const struct reader_options *o, struct ava_error *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct pg_options pg = {.url = o->url,
				.name = "ava",
				.timeout_ms = ANSWER_MS,
				.up = reader_up,
				.down = reader_down,
				.user = r};
	int rv = 0;

	if (!r)
		return err_set(err, AVA_ENOMEM, "out of memory");
	r->loop = o->loop;
	r->root_fd = o->root_fd;
	r->node = o->node;
	strmap_init(&r->listed);
	strmap_init(&r->copies);
	list_init(&r->listings);
	list_init(&r->copy_order);
	(void)sys->mkdirat(r->root_fd, READER_ROOT, 0700);
	r->dir_fd = sys->openat(r->root_fd, READER_ROOT,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (r->dir_fd < 0)
		rv = err_sys(err, "%s", READER_ROOT);
	if (rv == 0)
		rv = pg_open(&r->pg, r->loop, &pg, err);
	if (rv == 0)
		*out = r;
	else
		reader_close(r);
	return rv;
}

void reader_close(struct reader *r)
{
	struct reader_row *row;
	size_t at = 0;

	if (!r)
		return;
	r->closing = r->away = true;
	err_set(&r->why, AVA_ECANCELED, "the runtime stops");
	while (r->working > 0)
		os_loop_step(r->loop, 20);
	pg_close(r->pg);
	LIST_EACH (&r->listings, n, tmp)
		listing_end(LIST_ENTRY(n, struct reader_listing, node), r->why.code, &r->why);
	reader_goes_on(r);
	LIST_EACH (&r->copy_order, n, tmp)
		copy_free(LIST_ENTRY(n, struct reader_copy, node));
	while ((row = strmap_next(&r->listed, &at)))
		listed_free(r, row);
	strmap_fini(&r->listed);
	strmap_fini(&r->copies);
	if (r->dir_fd >= 0)
		sys->close(r->dir_fd);
	free(r);
}
