/* Runs of other machines are laid down here: their files are read from the database and written in
 * commits of the journal, the row of the catalog last; from there on the run is carried on as after
 * a crash (subagent/restart.h). A group comes whole, with its runs that have ended, whose results
 * the others read: their rows are one commit, so that it is here whole or not at all. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "cluster/member.h"
#include "cluster/row.h"
#include "codec/jscan.h"
#include "event/event.h"
#include "journal/seal.h"
#include "journal/seal_read.h"
#include "subagent/run.h"

#define LAY_BYTES (4u << 20) /* of a commit, which must fit into a segment */

struct taking {
	struct list node;
	struct cluster *c;
	struct cluster_run *run;
	struct catalog_row row, end; /* end: of a run that has ended */
	struct buf log, messages;
	struct list files; /* struct taking_file */
	size_t log_laid, messages_laid;
	int64_t head, moves;
	unsigned char hash[32];
	uint64_t lsn;  /* of its last line */
	int64_t state; /* enum cluster_run_state */
	bool under_way, laid;
	bool rowing; /* the commit of its group's rows is under way, which points to this one */
	bool rowed, over; /* the catalog has its row; and that of its end */
	bool own;         /* see lay_one */
	char id[24], group[24];
};

struct taking_file {
	struct list node;
	struct buf body;
	char path[];
};

static void taking_free(struct taking *t)
{
	LIST_EACH (&t->files, n, tmp) {
		struct taking_file *f = LIST_ENTRY(n, struct taking_file, node);

		buf_fini(&f->body);
		free(f);
	}
	list_del(&t->node);
	buf_fini(&t->log);
	buf_fini(&t->messages);
	catalog_row_fini(&t->row);
	catalog_row_fini(&t->end);
	free(t);
}

/* ---- carrying on */

void lay_problem(const char *path, const char *sentence, void *user)
{
	struct cluster *c = user;
	char line[500];

	snprintf(line, sizeof(line), "%s: %s", path, sentence);
	if (c->tell.log)
		c->tell.log(line, c->tell.user);
}

static void take_no_request(const char *request_id, const char *run, const char *trace,
			    int64_t spawned_ms, void *user)
{
	/* Those of a start are known already, and those of others come by cluster_options.came. */
}

bool lay_go_on(struct cluster *c, const struct catalog_row *row)
{
	struct restart_hooks hooks = {
		.request = take_no_request, .problem = lay_problem, .user = c};
	struct cluster_run *r = strmap_get(&c->by_id, row->id);
	struct ava_error err = {0};

	if (nameset_add(&c->sup->names, row->id) == 0 &&
	    restart_run(c->sup, row, &hooks, &err) == 0) {
		if (r)
			cluster_place_due(c, r);
		return true;
	}
	cluster_say(c, "%s", err.code ? err.text : "out of memory");
	return false;
}

int64_t lay_size(const struct cluster *c, const char *path)
{
	struct stat st;

	return sys->fstatat(c->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
		       ? st.st_size
		       : 0;
}

/* ---- laying down */

static bool taking_with(const struct taking *t, const struct taking *o)
{
	return t == o || (t->group[0] && strcmp(t->group, o->group) == 0);
}

/* With a run that cannot be taken its group waits for the next look. */
static void taking_failed(struct taking *t, const char *why)
{
	struct cluster *c = t->c;

	cluster_say(c, "run %s could not be taken: %s", t->id, why);
	c->look_due = true;
	LIST_EACH (&c->takings, n, tmp) {
		struct taking *o = LIST_ENTRY(n, struct taking, node);

		if (o == t || !taking_with(t, o))
			continue;
		if (o->run)
			gate_forget(c, o->run);
		taking_free(o);
	}
	if (t->run)
		gate_forget(c, t->run);
	taking_free(t);
	lay_next(c);
}

static void take_lay(struct taking *t);

/* The run's request id is answered here from now on. */
static void taking_claim(const struct taking *t)
{
	struct cluster *c = t->c;
	struct pg_batch *b;

	if (!t->row.request_id[0])
		return;
	b = pg_batch_new();
	cluster_add_me(
		b, c, CLUSTER_ME_SQL " update ava_request q set node = $1 from me where q.id = $4");
	pg_batch_text(b, t->row.request_id);
	(void)pg_send(c->pg, b, take_forgotten, NULL, NULL);
}

/* The run goes on, or is there to be read. */
static void taking_over(struct taking *t)
{
	struct cluster *c = t->c;
	struct cluster_run *r = t->run;

	r->laying = false;
	held_back(c, t->id);
	r->log_seen = (int64_t)t->log.len;
	r->messages_seen = (int64_t)t->messages.len;
	gate_set(r, r->log_seen, r->messages_seen);
	logbook_leap(c->book, t->lsn);
	if (!t->own)
		copying_forget(c->sup, t->id);
	if (t->state != CLUSTER_LIVE) {
		(void)nameset_add(&c->sup->names, t->id); /* no memory: no id is given twice */
		(void)nameset_add(&c->sup->names, t->row.trace_id);
		gate_forget(c, r);
	} else if (!lay_go_on(c, &t->row)) {
		gate_forget(c, r);
		c->look_due = true;
	} else {
		c->count.taken++;
		if (c->tell.came)
			c->tell.came(&t->row, c->tell.runs_user);
		taking_claim(t);
		c->move.taken(c, t->id);
		if (c->tell.log) {
			char line[120];

			snprintf(line, sizeof(line), "run %s goes on here", t->id);
			c->tell.log(line, c->tell.user);
		}
	}
}

/* Brings the runs of its group into their order. */
static void taking_sort(const struct taking *t)
{
	for (int64_t i = 1; t->group[0] && i <= SPEC_GROUP_MAX; i++)
		LIST_EACH (&t->c->takings, n, tmp) {
			const struct taking *o = LIST_ENTRY(n, struct taking, node);

			if (!taking_with(t, o) || o->row.group_index != i)
				continue;
			list_del(n);
			list_add(&t->c->takings, n);
			break;
		}
}

/* The members of a group, before those that go on enter it. */
static int taking_group(const struct taking *t)
{
	int rv = 0;

	LIST_EACH (&t->c->takings, n, tmp) {
		const struct taking *o = LIST_ENTRY(n, struct taking, node);

		if (!t->group[0] || !taking_with(t, o))
			continue;
		rv = rv == 0 ? group_restore(t->c->sup, &o->row) : rv;
		if (rv == 0 && o->state == CLUSTER_ENDED)
			rv = group_restore(t->c->sup, &o->end);
	}
	return rv;
}

static void taking_rowed(int rv, void *user)
{
	struct taking *t = user;
	struct cluster *c = t->c;
	bool known = t->group[0] && strmap_get(&c->sup->groups, t->group);
	char group[24];

	if (rv == 0 && c->state == CLUSTER_MEMBER)
		rv = taking_group(t);
	if (rv != 0 || c->state != CLUSTER_MEMBER) {
		taking_failed(t, rv != 0 ? ava_strerror(rv) : "the lease was lost meanwhile");
		return;
	}
	memcpy(group, t->group, sizeof(group));
	LIST_EACH (&c->takings, n, tmp) {
		struct taking *o = LIST_ENTRY(n, struct taking, node);

		if (o == t || !taking_with(t, o))
			continue;
		taking_over(o);
		taking_free(o);
	}
	taking_over(t);
	taking_free(t);
	if (group[0] && !known)
		blocked_restored(c->sup, group);
	else if (group[0])
		blocked_look(c->sup, strmap_get(&c->sup->groups, group));
	lay_next(c);
}

/* All files of the run, and of its group, are here. */
static void taking_rows(struct taking *t)
{
	struct draft *d = draft_new(t->c->book);
	bool ok = d != NULL;

	taking_sort(t);
	LIST_EACH (&t->c->takings, n, tmp) {
		const struct taking *o = LIST_ENTRY(n, struct taking, node);

		if (!taking_with(t, o))
			continue;
		ok = ok && (o->rowed || draft_catalog(d, &o->row, NULL) == 0);
		if (o->state == CLUSTER_ENDED)
			ok = ok && (o->over || draft_catalog(d, &o->end, NULL) == 0);
	}
	if (!ok) {
		draft_free(d);
		taking_failed(t, "out of memory");
	} else if (d->nparts == 0) {
		draft_free(d);
		taking_rowed(0, t);
	} else {
		t->rowing = true;
		if (draft_commit(d, JOURNAL_NOW, taking_rowed, t, NULL) != 0)
			taking_failed(t, "the journal does not take it");
	}
}

static void taking_laid(int rv, void *user)
{
	struct taking *t = user;
	struct cluster *c = t->c;
	bool whole = true;

	if (rv != 0 || c->state != CLUSTER_MEMBER) {
		taking_failed(t, rv != 0 ? ava_strerror(rv) : "the lease was lost meanwhile");
		return;
	}
	if (t->log_laid < t->log.len || t->messages_laid < t->messages.len) {
		take_lay(t);
		return;
	}
	t->laid = true;
	LIST_EACH (&c->takings, n, tmp) {
		const struct taking *o = LIST_ENTRY(n, struct taking, node);

		whole = whole && (o->laid || !taking_with(t, o));
	}
	if (whole)
		taking_rows(t);
	else
		lay_next(c);
}

/* The next piece of a file, as many bytes as there is room for. */
static bool lay_piece(struct draft *d, const char *path, const struct buf *all, size_t *laid,
		      size_t *room)
{
	size_t n = MIN(all->len - *laid, *room);
	struct buf *b = n > 0 ? draft_part(d, DRAFT_MESSAGES, path) : NULL;

	if (n > 0 && (!b || buf_add(b, all->data + *laid, n) != 0))
		return false;
	*laid += n;
	*room -= n;
	return true;
}

/* How much of `all` a file has already; -1: it has something else. */
static int64_t taking_has(const struct taking *t, const char *path, const struct buf *all)
{
	char *bytes = NULL;
	size_t len = 0;
	int64_t has = -1;

	if (sys_read_file(t->c->root_fd, path, 256u << 20, &bytes, &len, NULL) == AVA_ENOENT)
		return 0;
	if (bytes && len <= all->len && memcmp(bytes, all->data, len) == 0)
		has = (int64_t)len;
	free(bytes);
	return has;
}

/* ---- files that others do not go on with: a Seal says that they go, then they are moved */

struct lay_away {
	struct seal_gone gone;
	struct cluster *c;
	struct taking *t; /* is laid down then, or NULL */
	struct buf text;
	char id[24];
};

static void away_move(struct cluster *c, const char *id)
{
	char from[LOGBOOK_PATH], to[LOGBOOK_PATH];

	(void)sys->mkdirat(c->root_fd, "moved", 0700);
	snprintf(to, sizeof(to), "moved/%s.%lld", id, (long long)c->epoch);
	snprintf(from, sizeof(from), "runs/%s", id);
	(void)sys->renameat(c->root_fd, from, c->root_fd, to);
	logbook_run_path(id, from);
	snprintf(to, sizeof(to), "moved/%s.%lld.jsonl", id, (long long)c->epoch);
	if (sys->renameat(c->root_fd, from, c->root_fd, to) == 0)
		lay_problem(
			from,
			"another machine went on with this run from fewer lines: what was here is "
			"in moved/",
			c);
}

static void away_sealed(struct seal_gone *g, int rv, const struct ava_error *err)
{
	struct lay_away *a = CONTAINER_OF(g, struct lay_away, gone);

	/* A taking of the run meanwhile looks at its files, and may have laid down others. */
	if (rv == 0 && (a->t || !strmap_get(&a->c->by_id, a->id)))
		away_move(a->c, a->id);
	if (rv == 0 && a->t)
		take_lay(a->t);
	else if (a->t)
		taking_failed(a->t, ava_strerror(rv));
	buf_fini(&a->text);
	free(a);
}

void lay_aside(struct cluster *c, const char *id, struct taking *t)
{
	char paths[2][LOGBOOK_PATH], *names[2];
	struct lay_away *a = malloc(sizeof(*a));
	size_t n = 0;
	int rv;

	if (!a) {
		if (t)
			taking_failed(t, ava_strerror(AVA_ENOMEM));
		return;
	}
	*a = (struct lay_away){
		.gone = {.texts = &a->text, .n = 1, .done = away_sealed}, .c = c, .t = t};
	snprintf(a->id, sizeof(a->id), "%s", id);
	buf_init(&a->text, 4096);
	logbook_run_path(id, paths[0]);
	logbook_messages_path(id, paths[1]);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (lay_size(c, paths[i]) > 0)
			names[n++] = paths[i];
	rv = seal_gone_text(c->root_fd, &(struct seal_newest){0}, names, n, &a->text, NULL);
	if (rv == 0)
		rv = c->tell.gone(&a->gone, c->tell.runs_user);
	if (rv != 0)
		away_sealed(&a->gone, rv, NULL);
}

/* A run that was here before goes on in its files, where they are the beginning of what it is now.
 */
static void taking_begin(struct taking *t)
{
	char log[LOGBOOK_PATH], messages[LOGBOOK_PATH];
	int64_t in_log, in_messages;

	t->rowed = nameset_has(&t->c->sup->names, t->id);
	logbook_result_path(t->id, log);
	t->over = t->rowed && lay_size(t->c, log) > 0;
	logbook_run_path(t->id, log);
	logbook_messages_path(t->id, messages);
	in_log = taking_has(t, log, &t->log);
	in_messages = taking_has(t, messages, &t->messages);
	if (in_log < 0 || in_messages < 0) {
		lay_aside(t->c, t->id, t);
		return;
	}
	t->log_laid = (size_t)in_log;
	t->messages_laid = (size_t)in_messages;
	take_lay(t);
}

static void take_lay(struct taking *t)
{
	struct draft *d = draft_new(t->c->book);
	char log[LOGBOOK_PATH], messages[LOGBOOK_PATH];
	size_t room = LAY_BYTES;
	bool ok = d != NULL;

	LIST_EACH (&t->files, n, tmp) {
		struct taking_file *f = LIST_ENTRY(n, struct taking_file, node);
		struct buf *b = ok && room > 0 ? draft_part(d, DRAFT_PUT, f->path) : NULL;

		if (!ok || room == 0)
			break;
		ok = b && buf_add(b, f->body.data, f->body.len) == 0;
		room -= MIN(room, f->body.len);
		buf_fini(&f->body);
		list_del(&f->node);
		free(f);
	}
	logbook_run_path(t->id, log);
	logbook_messages_path(t->id, messages);
	if (list_empty(&t->files))
		ok = ok && lay_piece(d, messages, &t->messages, &t->messages_laid, &room) &&
		     lay_piece(d, log, &t->log, &t->log_laid, &room);
	if (!ok) {
		draft_free(d);
		taking_failed(t, "out of memory");
	} else if (d->nparts == 0) { /* all of it is here */
		draft_free(d);
		taking_laid(0, t);
	} else if (draft_commit(d, JOURNAL_NOW, taking_laid, t, NULL) != 0) {
		taking_failed(t, "the journal does not take it");
	}
}

/* Is the log what its owner wrote, to the last line? */
static bool taking_holds(struct taking *t, uint64_t *types)
{
	struct run_log log = {0};
	const char *line;
	size_t at = 0, n;

	while (jsonl_next(t->log.data, t->log.len, &at, &line, &n) == 1) {
		struct event_view v;

		if (event_view(line, n, &v) != 0)
			return false;
		if (v.kind >= 0)
			*types |= event_bit((enum event_kind)v.kind);
		run_log_add(&log, v.seq, line, n + 1);
		t->lsn = v.lsn;
	}
	if (log.bytes != t->head || (size_t)t->head != t->log.len ||
	    memcmp(log.head, t->hash, sizeof(t->hash)) != 0)
		return false;
	t->run->at = log;
	t->run->chained = true;
	return true;
}

static bool taking_add_file(struct taking *t, const char *path, const char *body, size_t len)
{
	struct taking_file *f = malloc(sizeof(*f) + strlen(path) + 1);

	if (!f)
		return false;
	buf_init(&f->body, len + 1);
	memcpy(f->path, path, strlen(path) + 1);
	list_add(&t->files, &f->node);
	return buf_add(&f->body, body, len) == 0;
}

/* Paths come from the database: only those that a run has. */
static bool path_is_of(const char *path, const char *id)
{
	size_t n = strlen(id);

	return (strncmp(path, "heads/", 6) == 0 && strspn(path + 6, "0123456789abcdef") == 64 &&
		path[70] == '\0') ||
	       (strncmp(path, "runs/", 5) == 0 && strncmp(path + 5, id, n) == 0 &&
		path[5 + n] == '/' && !strstr(path, "/.") && strlen(path) < LOGBOOK_PATH);
}

static bool add_rows(struct taking *t, const struct pg_result *r)
{
	bool ok = true;

	for (unsigned i = 0; ok && i < pg_rows(r); i++) {
		const char *path = pg_text(r, i, 0, NULL), *body;
		size_t len;

		body = pg_text(r, i, 1, &len);
		if (path && body && path_is_of(path, t->id))
			ok = taking_add_file(t, path, body, len);
	}
	return ok;
}

static void taking_heads_came(const struct pg_answer *a, void *user)
{
	struct taking *t = user;

	if (a->rv != 0 || !add_rows(t, &a->results[0]))
		taking_failed(t, a->rv != 0 ? a->err->text : "out of memory");
	else
		taking_begin(t);
}

static void taking_ask_heads(struct taking *t)
{
	char paths[64][80];
	const char *list[64];
	struct slice name;
	size_t at = 0, n = 0;
	struct pg_batch *b = pg_batch_new();

	while (n < ARRAY_LEN(list) && head_next(t->messages.data, t->messages.len, &at, &name)) {
		bool known = false;

		snprintf(paths[n], sizeof(paths[n]), "heads/%.64s", name.s);
		for (size_t i = 0; i < n; i++)
			known = known || strcmp(paths[i], paths[n]) == 0;
		list[n] = paths[n];
		n += !known;
	}
	pg_batch_add(b, "select path, body from ava_file where run = '' and path = any($1)");
	pg_batch_texts(b, list, n);
	if (pg_send(t->c->pg, b, taking_heads_came, t, NULL) != 0)
		taking_failed(t, "the database is gone");
}

static bool taking_read(struct taking *t, const struct pg_answer *a)
{
	const struct pg_result *chunks = &a->results[1];
	const char *line = pg_text(&a->results[0], 0, 0, NULL);
	uint64_t types = 0;
	bool ok = line && catalog_parse(line, strlen(line), &t->row, NULL) == 0 &&
		  strcmp(t->row.id, t->id) == 0;

	for (unsigned i = 0; ok && i < pg_rows(chunks); i++) {
		int64_t kind = 0;
		size_t len;
		const char *body = pg_text(chunks, i, 1, &len);

		ok = pg_int(chunks, i, 0, &kind) && body &&
		     buf_add(kind == 0 ? &t->log : &t->messages, body, len) == 0;
	}
	ok = ok && add_rows(t, &a->results[2]);
	if (ok) {
		t->run->row = strdup(line);
		ok = t->run->row != NULL;
	}
	ok = ok && taking_holds(t, &types);
	if (ok && t->state == CLUSTER_ENDED) {
		struct slice log = {t->log.data, t->log.len};

		ok = run_row(&t->end, &(struct run_edges){.row = {line, strlen(line)},
							  .first = log,
							  .last = log,
							  .ended = true});
		t->end.lsn = 0;
		t->end.bytes = t->log.len;
		t->end.types = types;
	}
	return ok;
}

static void taking_came(const struct pg_answer *a, void *user)
{
	struct taking *t = user;

	if (a->rv != 0)
		taking_failed(t, a->err->text);
	else if (!taking_read(t, a))
		taking_failed(t, "its record in the database is not what its owner wrote");
	else
		taking_ask_heads(t);
}

void lay_next(struct cluster *c)
{
	struct taking *t = NULL;
	struct pg_batch *b;

	LIST_EACH (&c->takings, n, tmp)
		if (!t && !LIST_ENTRY(n, struct taking, node)->laid)
			t = LIST_ENTRY(n, struct taking, node);
	if (!t || t->under_way || c->closing)
		return;
	t->under_way = true;
	t->run = gate_run(c, t->id);
	if (!t->run) {
		taking_failed(t, "out of memory");
		return;
	}
	t->run->laying = true;
	t->run->moves = t->moves;
	b = pg_batch_new();
	pg_batch_add(b, "select convert_from(line, 'UTF8') from ava_spec where run = $1");
	pg_batch_text(b, t->id);
	pg_batch_add(b, "select kind, body from ava_chunk where stream = $1 and kind < 2"
			" order by kind, head");
	pg_batch_text(b, t->id);
	pg_batch_add(b, "select path, body from ava_file where run = $1");
	pg_batch_text(b, t->id);
	if (pg_send(c->pg, b, taking_came, t, NULL) != 0)
		taking_failed(t, "the database is gone");
}

/* The next run on the way here. */
void lay_add(struct cluster *c, const struct take_row *row, bool own)
{
	struct taking *t;

	LIST_EACH (&c->takings, n, tmp) {
		const struct taking *o = LIST_ENTRY(n, struct taking, node);

		if (strcmp(o->id, row->id) == 0)
			return;
		if (!o->rowing || !row->group || !*row->group || strcmp(o->group, row->group) != 0)
			continue;
		c->look_due = true; /* its group is being put together without it */
		return;
	}
	if (!id_is_run(row->id) || row->hash_len != sizeof(t->hash) ||
	    strmap_get(&c->by_id, row->id))
		return;
	t = calloc(1, sizeof(*t));
	if (!t)
		return; /* the next look finds the run again */
	t->c = c;
	t->own = own;
	t->head = row->head;
	t->moves = row->moves;
	t->state = row->state;
	memcpy(t->hash, row->hash, row->hash_len);
	snprintf(t->id, sizeof(t->id), "%s", row->id);
	snprintf(t->group, sizeof(t->group), "%s", row->group ? row->group : "");
	buf_init(&t->log, 256u << 20);
	buf_init(&t->messages, 256u << 20);
	list_init(&t->files);
	list_add(&c->takings, &t->node);
}

bool lay_has_group(const struct cluster *c, const char *group)
{
	LIST_EACH (&c->takings, n, tmp)
		if (strcmp(LIST_ENTRY(n, struct taking, node)->group, group) == 0)
			return true;
	return false;
}

void lay_close(struct cluster *c)
{
	LIST_EACH (&c->takings, n, tmp)
		taking_free(LIST_ENTRY(n, struct taking, node));
}
