/* The memory in a conversation.
 *
 * Recall (talk_recall): before the first turn the memory is asked once, for pinned rows, rows about
 * the person, and rows that have to do with the person's words. The rows go in front of those
 * words, in an envelope of two notices, into the first line that Ava's model is told; from then on
 * that line is the truth. So requests go on extending each other, and a restart or replay asks
 * nothing again. Without the memory (damaged, busy) the conversation begins without it.
 *
 * Writing (memory_write): only words of the person are kept. The runtime looks for the text in what
 * they said in this conversation, in its file: whole sentences, or the rest of one that begins with
 * "remember that". Text of a page, a file or a result does not stand there, so no model can be
 * talked into remembering it as theirs.
 *
 * All else is asked: other words, and whether to forget a row or to put another text in its place.
 * The runtime puts the question behind Ava's words, with the whole text of the row, and a yes to
 * that Ask carries it out, once. A conversation has one such question at a time, in memory alone:
 * after a stop it is gone, and takes no answer. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/prompt.h"
#include "agent/tool.h"
#include "ava/ask.h"
#include "ava/memories.h"
#include "ava/talk.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/words.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "subagent/run.h"
#include "tool/job.h"

#define SESSION_MAX  (256u << 20)
#define WORDS_BYTES  2000 /* bytes of the person's words that make the query */
#define TOKEN_BYTES  4
#define WINDOW_SHARE 20 /* the memory takes 1/20 of the model's window at the most */
#define IDS_MAX      64

/* ---- what a conversation begins with */

struct talk_recall {
	struct talk *talk; /* NULL: the conversation was closed meanwhile */
	bool done;
	struct buf text; /* the recalled lines, each whole */
	char ids[IDS_MAX][MEMORY_ID_LEN];
	size_t n;
};

static void recall_line(struct buf *out, const struct memory_row *row)
{
	size_t from;
	char at[CLOCK_ISO_LEN + 1];

	clock_iso(row->updated_ms, at);
	buf_addf(out, "%s (%s, %.10s): ", row->id, row->kind, at);
	from = out->len;
	notice_escape(out, row->text, strlen(row->text));
	for (size_t i = from; i < out->len; i++)
		if ((unsigned char)out->data[i] < 0x20)
			out->data[i] = ' ';
	buf_addc(out, '\n');
}

static void recalled(struct memory_op *op)
{
	struct talk_recall *k = op->user;
	struct talk *t = k->talk;

	if (!t) {
		talk_recall_free(k);
		memory_op_free(op);
		return;
	}
	if (op->rv != 0)
		core_log(t->session->core, "a conversation begins without memory: %s",
			 op->err.text);
	if (op->nrows > 0) {
		notice_format(&k->text, TALK_RECALL_BEGIN);
		buf_addc(&k->text, '\n');
	}
	for (; k->n < MIN(op->nrows, (size_t)IDS_MAX); k->n++) {
		recall_line(&k->text, &op->rows[k->n]);
		snprintf(k->ids[k->n], MEMORY_ID_LEN, "%s", op->rows[k->n].id);
	}
	if (op->nrows > 0) {
		notice_format(&k->text, TALK_RECALL_END);
		buf_addc(&k->text, '\n');
	}
	if (buf_check(&k->text) != 0) {
		buf_reset(&k->text);
		k->n = 0;
	}
	k->done = true;
	memory_op_free(op);
	os_defer(t->run.sup->loop, &t->pump);
}

static const char *first_words(const struct talk *t, struct memory_op *op)
{
	LIST_EACH (&t->inputs, n, tmp) {
		const struct input *in = LIST_ENTRY(n, struct input, node);

		if (in->kind == INPUT_SAID)
			return arena_copy(&op->mem, in->text,
					  utf8_prefix(in->text, strlen(in->text), WORDS_BYTES));
	}
	return NULL;
}

bool talk_recall(struct talk *t)
{
	const struct session *s = t->session;
	int64_t tokens = s->core->settings.memory_tokens, window = t->run.spec->agent.window;
	struct memory_op *op;

	if (t->recall || !t->run.rec.wordless || tokens == 0 || !memories_there(s->core))
		return t->recall && !t->recall->done;
	t->recall = calloc(1, sizeof(*t->recall));
	op = t->recall ? memory_op_new(MEMORY_RECALL, recalled, t->recall) : NULL;
	if (!op)
		return false; /* out of memory: the turn goes on without the memory */
	if (window > 0)
		tokens = MIN(tokens, window / WINDOW_SHARE);
	t->recall->talk = t;
	buf_init(&t->recall->text, 1u << 20);
	op->row.user = memory_op_copy(op, s->user);
	op->row.cwd = memory_op_copy(op, s->cwd);
	op->words = first_words(t, op);
	op->bytes = (size_t)tokens * TOKEN_BYTES;
	memory_ask(s->core->sup.memory, op);
	return true;
}

const struct buf *talk_recalled(const struct talk *t)
{
	return t->recall && t->run.rec.wordless ? &t->recall->text : NULL;
}

void talk_recall_told(struct talk *t, struct draft *d)
{
	const struct session *s = t->session;

	if (t->recall && t->recall->n > 0)
		t->seen |= TOOL_PRIVATE;
	for (size_t i = 0; t->recall && i < t->recall->n; i++)
		memories_read(s->core, d, t->recall->ids[i], s->id, s->user);
}

void talk_recall_free(struct talk_recall *k)
{
	if (k && k->talk && !k->done) { /* the memory still uses it */
		k->talk = NULL;
		return;
	}
	if (k)
		buf_fini(&k->text);
	free(k);
}

/* ---- what was said, as the file of the conversation has it */

/* The letter at *at in lower case, with marks made plain; *at moves behind it. A run of blanks is
 * one blank; 0 at the end. */
static char talk_memory_folded(const char **at)
{
	const char *s = *at;

	if (strncmp(s, "\xe2\x80\x99", 3) == 0) { /* ’ */
		*at += 3;
		return '\'';
	}
	if (*s && isspace((unsigned char)*s)) {
		*at += strspn(s, " \t\r\n\v\f");
		return ' ';
	}
	*at += *s != 0;
	return (char)tolower((unsigned char)*s);
}

static bool talk_memory_is_letter(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Whether `text` up to `end` stands at *here and ends with a word there; moves *here behind it. */
static bool talk_memory_stands_at(const char **here, const char *text, const char *end)
{
	const char *at = *here;
	char last = 0;

	while (text < end && *at) {
		last = talk_memory_folded(&text);
		if (talk_memory_folded(&at) != last)
			return false;
	}
	if (text < end || (talk_memory_is_letter(last) && talk_memory_is_letter(*at)))
		return false;
	*here = at;
	return true;
}

/* The place behind the first of `words` (separated by bars) at `at`, and behind marks and blanks
 * that follow; NULL: none of them stands there. */
static const char *behind_any(const char *at, const char *words)
{
	for (size_t n; *words; words += n + (words[n] == '|')) {
		const char *here = at;

		n = strcspn(words, "|");
		if (talk_memory_stands_at(&here, words, words + n))
			return here + strspn(here, " ,:;\t\r\n\"'*-");
	}
	return NULL;
}

/* The sentence ends at `at`, apart from marks and a word of courtesy. */
static bool ends_here(const char *at)
{
	const char *polite;

	at += strspn(at, " ,\t\"')*`_");
	polite = behind_any(at, "please|bitte|s'il te plaît|por favor|per favore|ok|okay");
	at = polite ? polite : at;
	return !*at || strchr(".!?", *at) || strncmp(at, "\n\n", 2) == 0;
}

static bool is_sentence(const char *at, const char *text, const char *end)
{
	return talk_memory_stands_at(&at, text, end) && ends_here(at);
}

/* `at` is in a quotation, which may be somebody else's words: a mark before it in this paragraph is
 * not closed. */
static bool talk_memory_is_quoted(const char *said, const char *at)
{
	int plain = 0, deep = 0;

	for (; said < at; said++) {
		if (strncmp(said, "\n\n", 2) == 0)
			plain = deep = 0;
		plain += *said == '"';
		deep += strncmp(said, "“", 3) == 0 || strncmp(said, "«", 2) == 0;
		deep -= strncmp(said, "”", 3) == 0 || strncmp(said, "»", 2) == 0;
	}
	return plain % 2 || deep > 0;
}

/* A sentence begins at `at`, behind the end of another. "e.g. send it" counts as one sentence. */
static bool begins_here(const char *said, const char *at)
{
	const char *mark = at;

	if (talk_memory_is_quoted(said, at))
		return false;
	while (mark > said && isspace((unsigned char)mark[-1]))
		mark--;
	if (mark == said || memmem(mark, (size_t)(at - mark), "\n\n", 2))
		return true;
	if (mark == at || !strchr(".!?", mark[-1]))
		return false;
	return mark[-1] != '.' || (mark - said > 2 && talk_memory_is_letter(mark[-2]) &&
				   talk_memory_is_letter(mark[-3]) &&
				   strncasecmp(mark - MIN(mark - said, 4), "etc.", 4) != 0);
}

#define ALSO                                                                                       \
	"yes|no|ja|nein|oui|non|sí|si|ok|okay|oh|well|sorry|actually|forget that|forget "         \
	"it|vergiss das"
#define COULD_YOU "could you|can you|would you|will you|kannst du|könntest du|peux-tu|puedes|puoi"
#define COURTESY  COULD_YOU "|please|hey|hi|ava|and|also|now|bitte"
#define REMEMBER                                                                                   \
	"remember that|remember|note that|note|keep in mind that|keep in mind|don't forget that|"  \
	"don't forget|do not forget that|do not forget|merke dir|merk dir|vergiss nicht|"          \
	"denk daran|denk dran|souviens-toi que|souviens-toi|rappelle-toi que|rappelle-toi|"        \
	"n'oublie pas que|n'oublie pas|retiens que|retiens|recuerda que|recuerda|no olvides que|"  \
	"no olvides|ricordati che|ricordati|ricorda che|ricorda|non dimenticare che|"              \
	"non dimenticare"

/* `text` is whole sentences of `said`, whatever their case, blanks and last mark, or all that
 * follows "remember that" and the like. A part of a sentence does not count: "never" may precede
 * it. */
static bool stands_in(const char *said, const char *text)
{
	const char *end = text + strlen(text), *next, *also;
	bool could;

	text += strspn(text, " \t\r\n");
	while (end > text && strchr(" \t\r\n.!?,;", end[-1]))
		end--;
	for (const char *start = said; end > text && *start; start++) {
		const char *at = start + strspn(start, " \t\r\n\"'*-");

		if (!begins_here(said, start))
			continue;
		if (is_sentence(at, text, end))
			return true;
		while ((also = behind_any(at, ALSO)) && also > at &&
		       strcspn(at, ",:") < (size_t)(also - at))
			if (is_sentence(at = also, text, end))
				return true;
		for (could = false; (next = behind_any(at, COURTESY)); at = next)
			could = could || behind_any(at, COULD_YOU);
		next = behind_any(at, REMEMBER);
		if (!next || (at[strcspn(at, ".!?")] == '?' && !could))
			continue;
		also = behind_any(next, "dass|daß");
		if (is_sentence(also ? also : next, text, end))
			return true;
	}
	return false;
}

/* Does the text stand in the text blocks of a message of the person's? */
static bool said_in_line(const char *line, size_t len, const char *text)
{
	json_t *o = json_parse(line, len, NULL), *block;
	const json_t *message = json_object_get(o, "message");
	bool found = false;
	size_t i;

	if (strcmp(json_str(message, "role"), "user") != 0)
		message = NULL;
	json_array_foreach(json_object_get(message, "content"), i, block)
	{
		const char *said = json_get_str(block, "text");

		found = found || (said && stands_in(said, text));
	}
	json_decref(o);
	return found;
}

static bool said_in_file(const char *file, size_t size, const char *text)
{
	static const char user[] = "\"source\":\"ava\"";
	size_t at = 0, len;
	const char *line;
	bool said = false;

	while (!said && jsonl_next(file, size, &at, &line, &len) == 1)
		said = memmem(line, len, user, sizeof(user) - 1) && said_in_line(line, len, text);
	return said;
}

/* ---- memory_write */

struct note_job {
	struct os_work work;
	struct tool_call *call;
	const char *text;
	bool said; /* by the person, so that nobody has to be asked */
	int root_fd, rv;
	char path[LOGBOOK_PATH];
	struct ava_error err;
};

/* Pool thread. */
static void note_check(struct os_work *work)
{
	struct note_job *j = work->priv;
	char *file = NULL;
	size_t len = 0;

	j->rv = sys_read_file(j->root_fd, j->path, SESSION_MAX, &file, &len, &j->err);
	j->said = j->rv == 0 && said_in_file(file, len, j->text);
	free(file);
}

static void note_answer(struct tool_call *c, int rv, const char *why)
{
	if (rv != 0) {
		buf_reset(&c->out);
		buf_adds(&c->out, why[0] ? why : ava_strerror(rv));
	}
	c->success = rv == 0;
	c->error_class = rv == 0 ? "" : job_error_class(rv);
	c->done(c);
}

static void noted(struct memory_op *op)
{
	static const char *const outcomes[] = {"noted", "changed", "known already"};
	struct tool_call *c = op->user;
	struct jw w;

	jw_init(&w, &c->out);
	jw_object(&w, NULL);
	if (op->rv == 0) {
		jw_str(&w, "id", op->rows[0].id);
		jw_str(&w, "outcome", outcomes[op->outcome]);
		jw_str(&w, "text", op->rows[0].text);
		jw_array(&w, "similar"); /* rows that the text may correct, for `replaces` */
		for (size_t i = 1; i < op->nrows; i++) {
			jw_object(&w, NULL);
			jw_str(&w, "id", op->rows[i].id);
			jw_str(&w, "text", op->rows[i].text);
			jw_end(&w);
		}
		jw_end(&w);
	}
	jw_end(&w);
	note_answer(c, op->rv, op->err.text);
	memory_op_free(op);
}

/* ---- what the person is asked */

void talk_ask_drop(struct talk *t)
{
	struct talk_ask *a = t->ask;

	t->ask = NULL;
	if (!a)
		return;
	free(a->question);
	free(a->text);
	free(a->row);
	free(a->kind);
	free(a);
}

/* The text on one line. */
static void talk_ask_text(struct buf *out, const char *text)
{
	size_t from = out->len;

	buf_adds(out, text);
	for (size_t i = from; i < out->len; i++)
		if ((unsigned char)out->data[i] < 0x20)
			out->data[i] = ' ';
}

static bool talk_ask_taken(const char *id, void *user)
{
	struct ask a;

	return ask_find(user, id, &a);
}

/* Makes the question of the call; the one before it is asked no more. `row`: the one that is to be
 * forgotten, or gives way; NULL: none. AVA_EDENIED: the text holds a key. */
static int talk_ask_new(struct talk *t, const json_t *args, const struct memory_row *row,
			struct ava_error *err)
{
	const char *text = json_get_str(args, "text"), *kind = json_get_str(args, "kind");
	struct talk_ask *a = calloc(1, sizeof(*a));
	struct buf q;
	int rv = text ? memories_check(t->session->core, text, err) : 0;

	talk_ask_drop(t);
	if (rv != 0 || !a) {
		free(a);
		return rv ? rv : AVA_ENOMEM;
	}
	id_short('M', talk_ask_taken, t->session->core, a->id);
	a->forget = !text;
	buf_init(&q, 1u << 20);
	buf_adds(&q, text ? "Shall I remember: " : "Shall I forget: ");
	talk_ask_text(&q, text ? text : row->text);
	buf_addc(&q, '?');
	if (text && row) {
		buf_adds(&q, " It takes the place of: ");
		talk_ask_text(&q, row->text);
	}
	buf_addf(&q, WORDS_PROCEED_YES " (%s)", a->id);
	a->question = buf_take(&q, NULL);
	a->text = strdup(text ? text : row->text);
	a->row = strdup(row ? row->id : "");
	a->kind = strdup(kind ? kind : row ? "" : "person");
	t->ask = a;
	if (a->question && a->text && a->row && a->kind)
		return 0;
	talk_ask_drop(t);
	return AVA_ENOMEM;
}

/* Answers the call: the person is asked when her turn ends. */
static void note_asks(struct tool_call *c, const struct memory_row *row)
{
	struct talk *t = talk_of(c->env->user);
	struct ava_error err = {0};
	int rv = talk_ask_new(t, c->args, row, &err);
	struct jw w;

	if (rv == 0) {
		jw_init(&w, &c->out);
		jw_object(&w, NULL);
		jw_str(&w, "id", t->ask->id);
		jw_str(&w, "outcome", "asked");
		jw_str(&w, "question", t->ask->question);
		jw_str(&w, "what_now",
		       t->ask->forget ? "nothing was forgotten. The runtime asks the person "
					"behind your words; do not ask yourself"
				      : "nothing was noted yet: the runtime asks the person "
					"behind your words; do not ask yourself");
		jw_end(&w);
	}
	note_answer(c, rv, err.text);
}

static void note_found(struct memory_op *op)
{
	struct tool_call *c = op->user;

	if (op->rv == 0 && op->nrows == 0)
		op->rv = err_set(&op->err, AVA_ENOENT,
				 "there is no memory %.30s: memory_search has ids", op->row.id);
	if (op->rv == 0)
		note_asks(c, &op->rows[0]);
	else
		note_answer(c, op->rv, op->err.text);
	memory_op_free(op);
}

/* An answer on its way to the memory. */
struct talk_ask_answering {
	struct core *core;
	char session[40], id[24];
	bool forget;
	talk_ask_fn done;
	void *user;
};

static void talk_ask_answered(struct memory_op *op)
{
	struct talk_ask_answering *a = op->user;
	const struct session *s = strmap_get(&a->core->session_by_id, a->session);

	if (op->rv == AVA_ENOENT && a->forget)
		op->rv = 0; /* the row is gone already */
	if (s && s->talk && op->rv == 0)
		talk_note(s->talk, "", "The person said yes to %s: it is %s.", a->id,
			  a->forget ? "forgotten" : "noted");
	a->done(op->rv, op->rv ? &op->err : NULL, a->user);
	free(a);
	memory_op_free(op);
}

void talk_ask_answer(struct talk *t, bool yes, talk_ask_fn done, void *user)
{
	const struct session *s = t->session;
	const struct talk_ask *ask = t->ask;
	struct talk_ask_answering *a = yes ? calloc(1, sizeof(*a)) : NULL;
	struct memory_op *op =
		a ? memory_op_new(ask->forget ? MEMORY_REMOVE : MEMORY_WRITE, talk_ask_answered, a)
		  : NULL;
	const char **ids = op ? arena_get(&op->mem, sizeof(*ids)) : NULL;
	struct ava_error err = {0};

	snprintf(t->answered, sizeof(t->answered), "%s", ask->id);
	t->answered_yes = yes;
	if (!yes) {
		talk_note(t, "", "The person said no to %s: nothing was %s.", ask->id,
			  ask->forget ? "forgotten" : "noted");
		talk_ask_drop(t);
		done(0, NULL, user);
		return;
	}
	if (!ids) {
		free(a);
		memory_op_free(op);
		err_set(&err, AVA_ENOMEM, "out of memory");
		done(AVA_ENOMEM, &err, user);
		return;
	}
	*a = (struct talk_ask_answering){
		.core = s->core, .forget = ask->forget, .done = done, .user = user};
	snprintf(a->session, sizeof(a->session), "%s", s->id);
	snprintf(a->id, sizeof(a->id), "%s", ask->id);
	ids[0] = memory_op_copy(op, ask->row);
	op->row.user = memory_op_copy(op, s->user);
	op->row.session = memory_op_copy(op, s->id);
	if (ask->forget) {
		op->ids = ids;
		op->nids = 1;
		op->words = memory_op_copy(op, ask->text);
	} else {
		op->row.id = ask->row[0] ? ids[0] : NULL;
		op->row.text = memory_op_copy(op, ask->text);
		op->row.kind = ask->kind[0] ? memory_op_copy(op, ask->kind) : NULL;
		op->row.how = "confirmed";
		if (!ask->row[0])
			op->row.cwd =
				strcmp(ask->kind, "project") == 0 ? memory_op_copy(op, s->cwd) : "";
	}
	talk_ask_drop(t); /* a second yes finds nothing */
	memories_change(s->core, op);
}

/* ---- the call */

/* NULL: answered with the want of memory. */
static struct memory_op *note_op(struct tool_call *c, enum memory_what what,
				 void (*done)(struct memory_op *op))
{
	const struct session *s = talk_of(c->env->user)->session;
	struct memory_op *op = memory_op_new(what, done, c);

	if (!op) {
		note_answer(c, AVA_ENOMEM, "");
		return NULL;
	}
	op->row.user = memory_op_copy(op, s->user);
	op->row.session = memory_op_copy(op, s->id);
	op->limit = 1;
	return op;
}

static void note_checked(struct os_work *work)
{
	struct note_job *j = work->priv;
	struct tool_call *c = j->call;
	const struct session *s = talk_of(c->env->user)->session;
	const char *kind = json_get_str(c->args, "kind");
	struct memory_op *op;

	if (j->rv != 0) {
		note_answer(c, j->rv, j->err.text);
	} else if (!j->said) {
		note_asks(c, NULL);
	} else if ((op = note_op(c, MEMORY_WRITE, noted)) != NULL) {
		op->row.text = j->text; /* of the arguments, which outlive the operation */
		op->row.kind = kind ? kind : "person";
		op->row.how = "said";
		op->row.cwd =
			strcmp(op->row.kind, "project") == 0 ? memory_op_copy(op, s->cwd) : "";
		memories_change(s->core, op);
	}
	free(j);
}

void talk_note_start(struct tool_call *c)
{
	const struct session *s = talk_of(c->env->user)->session;
	const char *text = json_get_str(c->args, "text"), *forget = json_get_str(c->args, "forget");
	const char *replaces = json_get_str(c->args, "replaces");
	struct memory_op *op;
	struct note_job *j;

	if (!text == !forget) {
		note_answer(c, AVA_EINVAL, "give text, to note it, or forget, with an id");
		return;
	}
	if (forget || replaces) { /* a row goes: that is asked */
		op = note_op(c, MEMORY_FIND, note_found);
		if (op) {
			op->row.id = forget ? forget : replaces;
			memory_ask(s->core->sup.memory, op);
		}
		return;
	}
	j = calloc(1, sizeof(*j));
	if (!j) {
		note_answer(c, AVA_ENOMEM, "");
		return;
	}
	j->call = c;
	j->text = text;
	snprintf(j->path, sizeof(j->path), "%s", s->path);
	j->root_fd = s->core->root_fd;
	j->work = (struct os_work){.work = note_check, .done = note_checked, .priv = j};
	os_work_start(c->env->loop, &j->work);
}
