/* The bytes of a flush, and its statements. A thread of the pool reads the runs' own files up to
 * the end of the newest commit, so that what has to be sent again after a connection or the
 * database was lost is read in the same way. The statements lock this machine's row: whoever raises
 * its epoch waits for them, and afterwards they change nothing. */
#include "cluster/flush.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "event/event.h"

#define FILE_BYTES (32u << 20) /* of a file, and of what a run has at once: a batch has a bound */

/* ---- on a pool thread: the bytes */

/* Appends whole lines [from, to) of a view. */
static int flush_read(const struct flush *f, const char *path, int64_t from, int64_t to,
		      char **bytes, size_t *len)
{
	int fd = sys->openat(f->c->root_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0), rv = 0;

	if (fd < 0)
		return AVA_EIO;
	*bytes = malloc((size_t)(to - from) + 1);
	if (!*bytes)
		rv = AVA_ENOMEM;
	else if (sys_read_all(fd, *bytes, (size_t)(to - from), (off_t)from) != 0)
		rv = AVA_EIO;
	sys->close(fd);
	*len = (size_t)(to - from);
	return rv;
}

/* Adds what a line behind `log_from` says about calls of the model. */
static void flush_figures(struct flush_run *r, const struct event_view *v)
{
	json_t *meta;

	if (v->kind != EVENT_InferStart && v->kind != EVENT_InferEnd)
		return;
	meta = json_parse(v->metadata.s, v->metadata.len, NULL);
	r->turn = MAX(r->turn, json_get_int(meta, "iteration", 0));
	if (v->kind == EVENT_InferEnd) {
		r->turns++;
		r->tokens += json_get_int(meta, "inputTokens", 0) +
			     json_get_int(meta, "outputTokens", 0);
		r->micro = sum_to_max(r->micro, json_get_fixed(meta, "costCents", 4, 0));
	}
	json_decref(meta);
}

/* Hashes the lines of a log, and keeps the bytes behind `log_from` alone. */
static int flush_chain(struct flush *f, struct flush_run *r)
{
	char path[LOGBOOK_PATH];
	const char *line;
	size_t at = 0, n, skip;
	int64_t begin = r->chained ? r->log_from : 0;
	int rv;

	if (!r->chained)
		r->log = (struct run_log){0};
	logbook_run_path(r->run->id, path);
	rv = flush_read(f, path, begin, r->log_to, &r->log_bytes, &r->log_len);
	if (rv != 0)
		return rv;
	while (jsonl_next(r->log_bytes, r->log_len, &at, &line, &n) == 1) {
		struct event_view v;

		if (event_view(line, n, &v) != 0)
			return AVA_ECORRUPT;
		run_log_add(&r->log, v.seq, line, n + 1);
		r->ended = r->ended || v.kind == EVENT_SubagentComplete;
		if (r->log.bytes > r->log_from)
			flush_figures(r, &v);
	}
	skip = (size_t)(r->log_from - begin);
	if (r->log.bytes != r->log_to || skip > r->log_len)
		return AVA_ECORRUPT;
	memmove(r->log_bytes, r->log_bytes + skip, r->log_len - skip);
	r->log_len -= skip;
	return 0;
}

bool flush_add_file(struct flush *f, struct cluster_file *of, const char *path)
{
	struct flush_file *to;

	if (!ARRAY_ROOM(f->files, f->files_cap, f->nfiles + 1))
		return false;
	to = &f->files[f->nfiles];
	*to = (struct flush_file){.of = of, .path = strdup(path)};
	f->nfiles += to->path != NULL;
	return to->path != NULL;
}

static int flush_file(struct flush *f, size_t i)
{
	struct flush_file *file = &f->files[i];
	int rv = sys_read_file(f->c->root_fd, file->path, FILE_BYTES, &file->bytes, &file->len,
			       &f->err);

	f->bytes += file->len;
	return rv;
}

static bool flush_has(const struct flush *f, const char *path)
{
	for (size_t i = 0; i < f->nfiles; i++)
		if (strcmp(f->files[i].path, path) == 0)
			return true;
	return false;
}

/* Heads that the lines refer to. The set is the loop's, which leaves it alone meanwhile. */
static int flush_heads(struct flush *f, const struct flush_run *r)
{
	struct slice name;
	size_t at = 0;
	int rv = 0;

	while (rv == 0 && head_next(r->messages, r->messages_len, &at, &name)) {
		char path[80];

		snprintf(path, sizeof(path), "heads/%.*s", (int)name.len, name.s);
		if (!nameset_has(&f->c->heads, path + 6) && !flush_has(f, path))
			rv = flush_add_file(f, NULL, path) ? flush_file(f, f->nfiles - 1)
							   : AVA_ENOMEM;
	}
	return rv;
}

/* Files go before the lines: who takes a run whose log has its end finds its result. Where they do
 * not all go at once, AVA_EBUSY, and they go without it. */
static int flush_record(struct flush *f, struct flush_run *r)
{
	char path[LOGBOOK_PATH];
	size_t i = r->files_from;
	int rv = 0;

	if (r->log_to - r->log_from > FILE_BYTES || r->messages_to - r->messages_from > FILE_BYTES)
		return AVA_ETOOBIG;
	for (; rv == 0 && i < r->files_to && f->bytes < FLUSH_BYTES; i++)
		rv = flush_file(f, i);
	if (rv == 0 && r->files_to > r->files_from && f->bytes >= FLUSH_BYTES)
		rv = AVA_EBUSY;
	if (rv == 0 && (r->log_to > r->log_from || !r->chained))
		rv = flush_chain(f, r);
	logbook_messages_path(r->run->id, path);
	if (rv == 0 && r->messages_to > r->messages_from)
		rv = flush_read(f, path, r->messages_from, r->messages_to, &r->messages,
				&r->messages_len);
	if (rv == 0)
		rv = flush_heads(f, r);
	f->bytes += r->log_len + r->messages_len;
	return rv;
}

/* The runs of a group begin together or not at all, so that who takes it has all of it. */
static void flush_together(struct flush *f, const struct flush_run *r)
{
	int rv = 0;

	for (unsigned i = 0; i < f->nruns; i++)
		if (strcmp(f->runs[i].run->group, r->run->group) == 0 && f->runs[i].rv != 0)
			rv = f->runs[i].rv;
	for (unsigned i = 0; rv != 0 && i < f->nruns; i++)
		if (strcmp(f->runs[i].run->group, r->run->group) == 0)
			f->runs[i].rv = rv;
}

/* Leaves out what cannot be read, and what is too much for once; what begins is short. */
void flush_work(struct os_work *w)
{
	struct flush *f = w->priv;

	for (unsigned i = 0; i < f->nruns; i++) {
		struct flush_run *r = &f->runs[i];

		r->rv = f->bytes < FLUSH_BYTES || r->fresh ? flush_record(f, r) : AVA_EBUSY;
		if (r->rv != 0 && r->rv != AVA_EBUSY)
			err_set(&f->err, r->rv, "the record of run %s cannot be sent, it waits: %s",
				r->run->id, ava_strerror(r->rv));
	}
	for (unsigned i = 0; i < f->nruns; i++)
		if (f->runs[i].fresh && f->runs[i].run->group[0])
			flush_together(f, &f->runs[i]);
}

/* ---- its statement */

/* Runs are found by their names, never by their machine: without figures about the table, as in its
 * first hour, the planner takes "node = $1" for a row or two and reads all of it once a run. It has
 * no opinion about a case. */
static const char flush_sql[] = CLUSTER_ME_SQL
	","
	" moved as (update ava_run r set head = w.head, head_hash = w.hash,"
	"   state = case when r.state = 8 then 8 else w.state end,"
	"   takes = case when w.calm > 0 then 0 else r.takes end,"
	"   turn = greatest(r.turn, w.turn), tokens = r.tokens + w.tokens,"
	"   micro = r.micro + w.micro"
	"  from unnest($4::text[], $5::bigint[], $6::bigint[], $7::bytea[], $8::bigint[],"
	"   $9::bigint[], $18::bigint[], $19::bigint[], $20::bigint[])"
	"   w(run, prev, head, hash, state, calm, turn, tokens, micro), me"
	"  where r.run = any($4) and r.run = w.run"
	"   and case when r.node = $1 and r.epoch = $2 and r.head = w.prev then true end"
	"  returning r.run),"
	" chunks as (insert into ava_chunk (stream, kind, head, body, node, tick)"
	"  select w.stream, w.kind, w.head, w.body, case when w.kind = 0 then $1 end,"
	"   case when w.kind = 0 then $17 end"
	"  from unnest($10::text[], $11::bigint[], $12::bigint[], $13::bytea[])"
	"   w(stream, kind, head, body), moved where moved.run = w.stream"
	"  on conflict (stream, kind, head) do update set body = excluded.body,"
	"   node = excluded.node, tick = excluded.tick),"
	" files as (insert into ava_file (run, path, body)"
	"  select w.run, w.path, w.body"
	"  from unnest($14::text[], $15::text[], $16::bytea[]) w(run, path, body), me"
	"  on conflict (run, path) do update set body = excluded.body)"
	" select (select count(*) from me), (select count(*) from moved)";

/* Runs that the database does not know, in the same round trip before it. */
static const char fresh_sql[] =
	CLUSTER_ME_SQL ","
		       " runs as (insert into ava_run (run, node, epoch, head, head_hash, state)"
		       "  select w.run, $1, $2, 0, '', 0 from unnest($4::text[]) w(run), me"
		       "  on conflict (run) do nothing returning run)"
		       " insert into ava_spec (run, request_id, grp, place, line)"
		       "  select w.run, '', w.grp, w.place, w.line"
		       "  from unnest($4::text[], $5::text[], $6::text[], $7::bytea[])"
		       "   w(run, grp, place, line), runs where runs.run = w.run";

static bool add_fresh(struct pg_batch *b, struct flush *f)
{
	const char **ids = arena_get(&f->columns, f->nruns * sizeof(*ids)),
		   **groups = arena_get(&f->columns, f->nruns * sizeof(*groups)),
		   **places = arena_get(&f->columns, f->nruns * sizeof(*places));
	struct pg_bytes *lines = arena_get(&f->columns, f->nruns * sizeof(*lines));
	size_t n = 0;

	if (!ids || !groups || !places || !lines)
		return false;
	for (unsigned i = 0; i < f->nruns; i++) {
		const struct flush_run *r = &f->runs[i];

		if (!r->fresh || r->rv != 0)
			continue;
		ids[n] = r->run->id;
		groups[n] = r->run->group;
		places[n] = r->place;
		lines[n++] = (struct pg_bytes){r->run->row, strlen(r->run->row)};
	}
	if (n == 0)
		return true;
	cluster_add_me(b, f->c, fresh_sql);
	pg_batch_texts(b, ids, n);
	pg_batch_texts(b, groups, n);
	pg_batch_texts(b, places, n);
	pg_batch_byteses(b, lines, n);
	return true;
}

static bool add_runs(struct pg_batch *b, struct flush *f)
{
	const char **ids = arena_get(&f->columns, f->nruns * sizeof(*ids));
	int64_t *froms = arena_get(&f->columns, f->nruns * sizeof(*froms)),
		*heads = arena_get(&f->columns, f->nruns * sizeof(*heads)),
		*states = arena_get(&f->columns, f->nruns * sizeof(*states)),
		*calms = arena_get(&f->columns, f->nruns * sizeof(*calms));
	struct pg_bytes *hashes = arena_get(&f->columns, f->nruns * sizeof(*hashes));
	size_t n = 0;

	if (!ids || !froms || !heads || !states || !calms || !hashes)
		return false;
	for (unsigned i = 0; i < f->nruns; i++) {
		const struct flush_run *r = &f->runs[i];

		if (r->rv != 0)
			continue;
		ids[n] = r->run->id;
		froms[n] = r->log_from;
		heads[n] = r->log.bytes;
		hashes[n] = (struct pg_bytes){r->log.head, sizeof(r->log.head)};
		calms[n] = r->run->turns + r->turns >= CLUSTER_CALM;
		states[n++] = r->ended || r->run->ended ? CLUSTER_ENDED : CLUSTER_LIVE;
	}
	pg_batch_texts(b, ids, n);
	pg_batch_ints(b, froms, n);
	pg_batch_ints(b, heads, n);
	pg_batch_byteses(b, hashes, n);
	pg_batch_ints(b, states, n);
	pg_batch_ints(b, calms, n);
	return true;
}

/* Figures of each run: the use since its row was written. */
static bool add_figures(struct pg_batch *b, struct flush *f)
{
	int64_t *turns = arena_get(&f->columns, f->nruns * sizeof(*turns)),
		*tokens = arena_get(&f->columns, f->nruns * sizeof(*tokens)),
		*micros = arena_get(&f->columns, f->nruns * sizeof(*micros));
	size_t n = 0;

	if (!turns || !tokens || !micros)
		return false;
	for (unsigned i = 0; i < f->nruns; i++) {
		const struct flush_run *r = &f->runs[i];

		if (r->rv != 0)
			continue;
		turns[n] = r->turn;
		tokens[n] = r->tokens;
		micros[n++] = r->micro;
	}
	pg_batch_ints(b, turns, n);
	pg_batch_ints(b, tokens, n);
	pg_batch_ints(b, micros, n);
	return true;
}

static bool add_chunks(struct pg_batch *b, struct flush *f)
{
	size_t most = 2 * (size_t)f->nruns, n = 0;
	const char **ids = arena_get(&f->columns, most * sizeof(*ids));
	int64_t *kinds = arena_get(&f->columns, most * sizeof(*kinds)),
		*heads = arena_get(&f->columns, most * sizeof(*heads));
	struct pg_bytes *bodies = arena_get(&f->columns, most * sizeof(*bodies));

	if (!ids || !kinds || !heads || !bodies)
		return false;
	for (unsigned i = 0; i < f->nruns; i++) {
		const struct flush_run *r = &f->runs[i];

		for (int kind = 0; kind < 2; kind++) {
			struct pg_bytes body =
				kind == 0 ? (struct pg_bytes){r->log_bytes, r->log_len}
					  : (struct pg_bytes){r->messages, r->messages_len};

			if (body.len == 0 || r->rv != 0)
				continue;
			ids[n] = r->run->id;
			kinds[n] = kind;
			heads[n] = kind == 0 ? r->log.bytes : r->messages_to;
			bodies[n++] = body;
		}
	}
	pg_batch_texts(b, ids, n);
	pg_batch_ints(b, kinds, n);
	pg_batch_ints(b, heads, n);
	pg_batch_byteses(b, bodies, n);
	return true;
}

/* A file of a run stands under the run, a head under none. */
static bool add_files(struct pg_batch *b, struct flush *f)
{
	const char **runs = arena_get(&f->columns, (f->nfiles + 1) * sizeof(*runs)),
		   **paths = arena_get(&f->columns, (f->nfiles + 1) * sizeof(*paths));
	struct pg_bytes *bodies = arena_get(&f->columns, (f->nfiles + 1) * sizeof(*bodies));
	size_t n = 0;

	if (!runs || !paths || !bodies)
		return false;
	for (size_t i = 0; i < f->nfiles; i++) {
		const struct flush_file *file = &f->files[i];
		const char *id = file->path + strlen("runs/");

		if (!file->bytes)
			continue;
		runs[n] = arena_copy(&f->columns, id, file->of ? strcspn(id, "/") : 0);
		if (!runs[n])
			return false;
		paths[n] = file->path;
		bodies[n++] = (struct pg_bytes){file->bytes, file->len};
	}
	pg_batch_texts(b, runs, n);
	pg_batch_texts(b, paths, n);
	pg_batch_byteses(b, bodies, n);
	return true;
}

struct pg_batch *flush_batch(struct flush *f)
{
	struct cluster *c = f->c;
	struct pg_batch *b = pg_batch_new();
	bool ok = add_fresh(b, f);

	lend_add_used(b, c, &f->told);
	cluster_add_me(b, c, flush_sql);
	ok = ok && add_runs(b, f) && add_chunks(b, f) && add_files(b, f);
	pg_batch_int(b, c->generation << CLUSTER_TICK_BITS | (int64_t)f->ticket);
	if (ok && add_figures(b, f))
		return b;
	pg_batch_free(b);
	f->rv = err_set(&f->err, AVA_ENOMEM, "out of memory");
	return NULL;
}

void flush_free(struct flush *f)
{
	for (unsigned i = 0; i < f->nruns; i++) {
		free(f->runs[i].log_bytes);
		free(f->runs[i].messages);
	}
	for (size_t i = 0; i < f->nfiles; i++) {
		free(f->files[i].path);
		free(f->files[i].bytes);
	}
	arena_fini(&f->columns);
	free(f->runs);
	free(f->files);
	free(f);
}
