/* Changes of the memory and the verbs about it.
 *
 * A change goes to the memory's thread. The answer lists what is due in the log: a StateWrite each,
 * with the key and a hash, never the text. When those are durable the memory hears so, and the
 * caller gets the answer. A stop between the two leaves them due: the next change writes them, or
 * the next start, which sees by the file's -wal that it was not closed. An event may so be written
 * twice, with the same content.
 *
 * A person sees and changes their own rows only: the user is the caller's, never an argument. */
#include "ava/memories.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"

#define LIST_DEFAULT 100
#define QUIESCE_MS   3000 /* the longest wait for a journal that cannot write */

struct memories {
	unsigned changes; /* number of changes under way */
	int64_t told;     /* changes up to this number are on their way into the log */
};

/* ---- changes */

struct change_of_memory {
	struct core *core;
	struct memory_op *op;
	void (*done)(struct memory_op *op);
	void *user;
	int64_t before, upto; /* numbers of the changes to be logged */
};

static void change_answer(struct change_of_memory *ch)
{
	struct memory_op *op = ch->op;

	ch->core->memories->changes--;
	op->user = ch->user;
	ch->done(op);
	free(ch);
}

/* A change of a memory, or without one that it was read. */
static void memories_event(struct core *c, struct draft *d, const struct memory_due *due)
{
	char key[MEMORY_ID_LEN + 8];
	struct buf b;
	struct jw w;

	snprintf(key, sizeof(key), "memory:%s", due->id);
	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "key", key);
	if (due->change) {
		jw_str(&w, "change", due->change);
		if (due->hash[0])
			jw_str(&w, "hash", due->hash);
	}
	jw_end(&w);
	core_event(c, d, due->change ? EVENT_StateWrite : EVENT_StateRead, due->session, due->user,
		   &b);
}

void memories_read(struct core *c, struct draft *d, const char *id, const char *session,
		   const char *user)
{
	memories_event(c, d, &(struct memory_due){.id = id, .session = session, .user = user});
}

static void change_told(int rv, void *user)
{
	struct change_of_memory *ch = user;
	struct core *c = ch->core;
	/* true: an earlier commit was refused, so changes from there on stay due and are logged
	 * again. */
	bool alone = rv == 0 && c->memories->told < ch->upto;
	struct memory_op *told =
		rv == 0 && !alone ? memory_op_new(MEMORY_TOLD, memory_op_free, NULL) : NULL;

	if (told) {
		told->told = ch->upto;
		memory_ask(c->sup.memory, told);
	} else if (!alone) { /* the changes stay due */
		c->memories->told = MIN(c->memories->told, ch->before);
		core_log(c, "a change of the memory is not in the log yet: %s", ava_strerror(rv));
	}
	change_answer(ch);
}

static void change_done(struct memory_op *op)
{
	struct change_of_memory *ch = op->user;
	struct core *c = ch->core;
	struct draft *d = op->ndue > 0 ? draft_new(&c->book) : NULL;
	int rv = AVA_ENOMEM;

	if (op->what == MEMORY_RESET && op->rv == 0)
		c->memories->told = 0; /* a new memory file counts from 0 */
	ch->before = c->memories->told;
	for (size_t i = 0; d && i < op->ndue; i++) {
		if (op->due[i].n <= c->memories->told)
			continue; /* on its way already */
		memories_event(c, d, &op->due[i]);
		ch->upto = op->due[i].n;
	}
	if (ch->upto > 0) {
		c->memories->told = ch->upto;
		rv = draft_commit(d, JOURNAL_NOW, change_told, ch, NULL);
		if (rv != 0)
			change_told(rv, ch);
		return;
	}
	draft_free(d);
	change_answer(ch);
}

int memories_check(const struct core *c, const char *text, struct ava_error *err)
{
	struct buf clean;
	int n = 0;

	if (!text)
		return 0;
	if (!utf8_valid(text, strlen(text)))
		return err_set(err, AVA_EINVAL, "what shall be remembered is not valid UTF-8");
	buf_init(&clean, 1u << 20);
	if (c->redact)
		n = redact_text(c->redact, &clean, text, strlen(text));
	buf_fini(&clean);
	return n == 0 ? 0
		      : err_set(err, n < 0 ? n : AVA_EDENIED,
				"it holds what looks like a key or password, which is not "
				"remembered: leave it out");
}

void memories_change(struct core *c, struct memory_op *op)
{
	struct change_of_memory *ch = calloc(1, sizeof(*ch));

	if (op->rv == 0)
		op->rv = ch ? memories_check(c, op->row.text, &op->err) : AVA_ENOMEM;
	if (op->rv == 0)
		op->rv = memories_check(c, op->row.tags, &op->err);
	if (op->rv != 0) {
		free(ch);
		op->done(op);
		return;
	}
	*ch = (struct change_of_memory){.core = c, .op = op, .done = op->done, .user = op->user};
	op->done = change_done;
	op->user = ch;
	c->memories->changes++;
	memory_ask(c->sup.memory, op);
}

/* ---- life */

static bool has_file(const struct core *c, const char *name)
{
	struct stat st;

	return sys->fstatat(c->root_fd, name, &st, 0) == 0;
}

bool memories_there(const struct core *c)
{
	return has_file(c, MEMORY_FILE);
}

int memories_open(struct core *c, struct ava_error *err)
{
	struct memory_op *op;

	c->memories = calloc(1, sizeof(*c->memories));
	c->sup.memory = memory_new(c->loop, c->sup.keep_out[0]);
	if (!c->memories || !c->sup.memory)
		return err_set(err, AVA_ENOMEM, "out of memory");
	/* A -wal file means the last process was killed: open the database once to recover it. */
	op = has_file(c, MEMORY_FILE "-wal") ? memory_op_new(MEMORY_LOOK, memory_op_free, NULL)
					     : NULL;
	if (op)
		memories_change(c, op);
	return 0;
}

bool memories_idle(const struct core *c)
{
	return c->memories->changes == 0;
}

void memories_quiesce(struct core *c)
{
	int64_t until = clock_mono_ms() + QUIESCE_MS;

	while (c->memories && c->memories->changes > 0 && clock_mono_ms() < until)
		os_loop_step(c->loop, 50);
}

void memories_close(struct core *c)
{
	memory_free(c->sup.memory);
	c->sup.memory = NULL;
	free(c->memories);
	c->memories = NULL;
}

/* ---- verbs */

static void memories_write_row(struct jw *w, const char *key, const struct memory_row *row)
{
	jw_object(w, key);
	jw_str(w, "id", row->id);
	jw_str(w, "kind", row->kind);
	jw_str(w, "text", row->text);
	jw_array(w, "tags");
	for (const char *at = row->tags; *at;) {
		size_t len = strcspn(at, " ");

		if (len > 0)
			jw_strn(w, NULL, at, len);
		at += len + (at[len] == ' ');
	}
	jw_end(w);
	jw_str(w, "cwd", row->cwd);
	jw_bool(w, "pinned", row->pinned);
	jw_object(w, "source");
	jw_str(w, "how", row->how);
	jw_str(w, "by", row->user);
	jw_str(w, "session_id", row->session);
	jw_end(w);
	verb_time(w, "created_at", row->created_ms);
	verb_time(w, "updated_at", row->updated_ms);
	jw_str(w, "hash", row->hash);
	jw_end(w);
}

static void answer_list(struct memory_op *op)
{
	struct verb_answer a;

	if (verb_begin(&a, op->user, op->rv, &op->err)) {
		jw_object(&a.w, NULL);
		jw_array(&a.w, "memories");
		for (size_t i = 0; i < op->nrows; i++)
			memories_write_row(&a.w, NULL, &op->rows[i]);
		jw_end(&a.w);
		verb_send(&a, 200);
	}
	memory_op_free(op);
}

static void answer_one(struct memory_op *op)
{
	struct verb_answer a;

	if (op->rv == 0 && op->nrows == 0)
		op->rv = err_set(&op->err, AVA_ENOENT,
				 "there is no memory %.30s (`ava memory list` shows them)",
				 op->row.id);
	if (verb_begin(&a, op->user, op->rv, &op->err)) {
		memories_write_row(&a.w, NULL, &op->rows[0]);
		verb_send(&a, 200);
	}
	memory_op_free(op);
}

static void answer_written(struct memory_op *op)
{
	static const char *const outcomes[] = {"added", "changed", "known"};
	struct verb_answer a;

	if (verb_begin(&a, op->user, op->rv, &op->err)) {
		jw_object(&a.w, NULL);
		jw_str(&a.w, "outcome", outcomes[op->outcome]);
		memories_write_row(&a.w, "memory", &op->rows[0]);
		jw_array(&a.w, "similar");
		for (size_t i = 1; i < op->nrows; i++)
			memories_write_row(&a.w, NULL, &op->rows[i]);
		verb_send(&a, op->outcome == MEMORY_ADDED ? 201 : 200);
	}
	memory_op_free(op);
}

/* Answers a removal or a reset. `warning`: done, with a caveat; "": without. */
static void answer_done(struct memory_op *op)
{
	struct verb_answer a;

	if (verb_begin(&a, op->user, op->rv, &op->err)) {
		jw_object(&a.w, NULL);
		jw_str(&a.w, "warning", op->err.text);
		verb_send(&a, 200);
	}
	memory_op_free(op);
}

/* NULL: refused and answered. */
static struct memory_op *ask_for(struct verb_call *v, enum memory_what what,
				 void (*done)(struct memory_op *op))
{
	struct memory_op *op = memory_op_new(what, done, v->reply);

	if (!op) {
		verb_fail(v->reply, AVA_ENOMEM, NULL);
		return NULL;
	}
	op->row.user = memory_op_copy(op, v->caller->user ? v->caller->user : "");
	op->row.id = v->id[0] ? memory_op_copy(op, v->id) : NULL;
	return op;
}

struct memory_args {
	const char *q, *text, *kind, *cwd;
	const char *const *tags, *const *ids;
	size_t ntags, nids;
	int64_t limit;
	int pinned; /* 1: yes; -1: no; 0: not given */
	bool all;
};

#define AT(field) offsetof(struct memory_args, field)
static const struct arg list_args[] = {
	{"q", ARG_TEXT, AT(q)},
	{"kind", ARG_TEXT, AT(kind)},
	{"cwd", ARG_TEXT, AT(cwd)},
	{"limit", ARG_COUNT, AT(limit), .least = 1, .most = MEMORY_ROWS_MAX},
	{NULL},
};
static const struct arg write_args[] = {
	{"text", ARG_TEXT, AT(text)},       {"kind", ARG_TEXT, AT(kind)},
	{"cwd", ARG_TEXT, AT(cwd)},         {"tags", ARG_TEXTS, AT(tags), .at_n = AT(ntags)},
	{"pinned", ARG_SWITCH, AT(pinned)}, {NULL},
};
static const struct arg remove_args[] = {
	{"ids", ARG_TEXTS, AT(ids), .at_n = AT(nids)},
	{"all", ARG_FLAG, AT(all)},
	{NULL},
};

static void verb_list(struct verb_call *v)
{
	struct memory_args a = {.limit = LIST_DEFAULT};
	struct memory_op *op;

	if (!verb_args(v, &a) || !(op = ask_for(v, MEMORY_FIND, answer_list)))
		return;
	op->words = memory_op_copy(op, a.q);
	op->row.kind = memory_op_copy(op, a.kind);
	op->row.cwd = memory_op_copy(op, a.cwd);
	op->all = a.cwd == NULL;
	op->limit = (size_t)a.limit;
	memory_ask(v->core->sup.memory, op);
}

static void verb_one(struct verb_call *v)
{
	struct memory_op *op = verb_args(v, NULL) ? ask_for(v, MEMORY_FIND, answer_one) : NULL;

	if (!op)
		return;
	op->limit = 1;
	memory_ask(v->core->sup.memory, op);
}

/* Joins tags with blanks; a tag with a blank in it would become two. */
static int join_tags(struct memory_op *op, const struct memory_args *a, struct ava_error *err)
{
	struct buf b;
	int rv = 0;

	buf_init(&b, MEMORY_TEXT_MAX);
	for (size_t i = 0; i < a->ntags && rv == 0; i++) {
		if (!a->tags[i][0] || strpbrk(a->tags[i], " \t\r\n"))
			rv = err_set(err, AVA_EINVAL, "the tag \"%.40s\" must be one word",
				     a->tags[i]);
		buf_addf(&b, "%s%s", i ? " " : "", a->tags[i]);
	}
	if (rv == 0 && buf_check(&b) != 0)
		rv = err_set(err, AVA_ETOOBIG, "the tags have more than %d bytes", MEMORY_TAGS_MAX);
	if (rv == 0)
		op->row.tags = memory_op_copy(op, b.data ? b.data : "");
	buf_fini(&b);
	return rv;
}

/* POST /memories and POST /memories/{id}. */
static void verb_write(struct verb_call *v)
{
	struct memory_args a = {0};
	struct memory_op *op;
	int rv = 0;

	if (!verb_body(v) || !verb_args(v, &a) || !(op = ask_for(v, MEMORY_WRITE, answer_written)))
		return;
	if (a.cwd && a.cwd[0] && a.cwd[0] != '/')
		rv = err_set(&op->err, AVA_EINVAL,
			     "cwd must be an absolute path, or empty: everywhere");
	else if (a.tags)
		rv = join_tags(op, &a, &op->err);
	if (rv != 0)
		op->rv = rv; /* else a copy may have failed */
	op->row.text = memory_op_copy(op, a.text);
	op->row.kind = memory_op_copy(op, a.kind);
	op->row.cwd = memory_op_copy(op, a.cwd ? a.cwd : op->row.id ? NULL : "");
	op->row.how = op->row.id ? a.text ? "edited" : NULL : "added";
	op->row.pinned = a.pinned ? a.pinned > 0 : -1;
	memories_change(v->core, op);
}

static void verb_remove(struct verb_call *v)
{
	struct memory_args a = {0};
	struct ava_error err = {0};
	struct memory_op *op;
	const char **ids;

	if (!verb_body(v) || !verb_args(v, &a))
		return;
	if (a.all == (a.nids > 0)) {
		verb_fail(v->reply,
			  err_set(&err, AVA_EINVAL, "name what is to be removed: ids, or all"),
			  &err);
		return;
	}
	op = ask_for(v, MEMORY_REMOVE, answer_done);
	ids = op ? arena_get(&op->mem, (a.nids + 1) * sizeof(*ids)) : NULL;
	for (size_t i = 0; ids && i < a.nids; i++)
		ids[i] = memory_op_copy(op, a.ids[i]);
	if (!op)
		return;
	op->ids = ids;
	op->nids = ids ? a.nids : 0;
	op->all = a.all;
	memories_change(v->core, op);
}

static void verb_reset(struct verb_call *v)
{
	struct memory_op *op = verb_args(v, NULL) ? ask_for(v, MEMORY_RESET, answer_done) : NULL;

	if (op)
		memories_change(v->core, op);
}

#define PATH "/api/v1/memories"
const struct verb verbs_about_memories[] = {
	{"GET", PATH, verb_list, list_args, false},
	{"POST", PATH, verb_write, write_args, true},
	{"POST", PATH "/remove", verb_remove, remove_args, false},
	{"POST", PATH "/reset", verb_reset, NULL, false},
	{"GET", PATH "/{id}", verb_one, NULL, false},
	{"POST", PATH "/{id}", verb_write, write_args, true},
	{NULL},
};
