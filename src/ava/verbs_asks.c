/* The verbs about what waits for a person: list, look, answer (doc/ASKS.md). An answer goes to the
 * owner of the Ask, which commits it; whoever comes second hears what became of it.
 *
 * What can fail: no such Ask, one that is not what was shown any more (409, with the Ask as it is
 * now), and what its owner says of the answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ava/answer.h"
#include "ava/ask.h"
#include "ava/change.h"
#include "ava/patches.h"
#include "ava/proposal.h"
#include "ava/talk.h"
#include "ava/verbs.h"
#include "base/error.h"
#include "base/words.h"
#include "codec/utf8.h"
#include "subagent/person.h"
#include "subagent/quote.h"
#include "subagent/rights.h"

#define TEXT_MAX 8192 /* bytes of an answer */
#define ID_MAX   200

/* Labels of the choices about a patch. */
#define PATCH_YES "Apply"
#define PATCH_NO  "Leave"

static const char *const ask_kinds[] = {
	[ASK_QUOTE] = "quote",   [ASK_QUESTION] = "question", [ASK_APPROVAL] = "approval",
	[ASK_LIMIT] = "limit",   [ASK_QUOTA] = "quota",       [ASK_NOTE] = "note",
	[ASK_FORGET] = "forget", [ASK_ORDER] = "order",       [ASK_APPLY] = "apply",
};

/* ---- an Ask as JSON */

/* The quote with what it leaves out, whole, before its last line. */
static void ask_write_quote_text(struct jw *w, const struct proposal *p)
{
	const char *last = strstr(p->message, "\n" WORDS_PROCEED), *at = last;
	struct buf text;

	for (; at; at = strstr(at + 1, "\n" WORDS_PROCEED))
		last = at;
	buf_init(&text, 32u << 20);
	buf_add(&text, p->message, last ? (size_t)(last - p->message) : strlen(p->message));
	buf_adds(&text, p->rest);
	buf_adds(&text, last ? last : "");
	jw_strn(w, "text", text.data ? text.data : "", text.len);
	jw_bool(w, "whole", buf_check(&text) == 0);
	buf_fini(&text);
}

/* Words of a model, with what could turn or hide them made visible. */
static void ask_write_shown(struct jw *w, const char *key, const char *text)
{
	struct buf b;

	buf_init(&b, 8u << 20);
	if (utf8_terminal(&b, text, strlen(text), true) != 0)
		w->out->failed = true;
	jw_strn(w, key, b.data ? b.data : "", b.len);
	buf_fini(&b);
}

/* A list reads no file for it, and so it has neither the lines nor their hash. */
static void ask_write_patch_text(struct jw *w, const struct ask *a)
{
	struct buf text;
	bool whole = false;

	buf_init(&text, 8u << 20);
	if (a->patch)
		whole = patch_text_show(&text, a->offer->run, a->patch);
	else
		buf_addf(&text, WORDS_PROPOSES(a->offer->files, a->offer->run));
	whole = buf_check(&text) == 0 && whole;
	ask_write_shown(w, "text", text.data ? text.data : "");
	jw_bool(w, "whole", whole);
	buf_fini(&text);
}

static void ask_write_choice(struct jw *w, const char *id, const char *label, const char *effect)
{
	jw_object(w, NULL);
	jw_str(w, "id", id);
	ask_write_shown(w, "label", label);
	jw_str(w, "effect", effect);
	jw_end(w);
}

static void ask_write_quote_choices(struct jw *w, const struct proposal *p)
{
	bool all = spec_asks_all_three(p->specs, p->n);
	const char *split = all ? quote_split(p->specs, p->n) : NULL;
	char id[96], label[96];

	if (split) {
		snprintf(id, sizeof(id), "yes, without %s", split);
		snprintf(label, sizeof(label), WORDS_YES ", without %s", split);
		ask_write_choice(w, id, label, "starts it without that tool");
	}
	if (all)
		ask_write_choice(w, "yes, all three", WORDS_YES_ALL_THREE,
				 "starts it with all three rights");
	else
		ask_write_choice(w, "yes", WORDS_YES,
				 p->order[0] ? "it starts its runs as quoted"
					     : "starts it as quoted");
	ask_write_choice(w, "no", WORDS_NO, "starts nothing");
}

static void ask_write_choices(struct jw *w, const struct ask *a)
{
	static const struct {
		const char *yes, *no;
	} effects[] = {
		[ASK_APPROVAL] = {"the call runs, once", "the call does not run"},
		[ASK_LIMIT] = {"it may use as much again", "it ends with what it has"},
		[ASK_NOTE] = {"it is noted", "it is not noted"},
		[ASK_FORGET] = {"it is forgotten", "it stays"},
		[ASK_APPLY] = {"writes these files into its folder",
			       "writes nothing; `ava apply` still can"},
	};
	const char *choices = a->question ? a->question->choices : NULL;
	json_t *list = choices ? json_parse(choices, strlen(choices), NULL) : NULL;
	const json_t *one;
	size_t i;

	jw_array(w, "choices");
	json_array_foreach(list, i, one) if (json_is_string(one))
		ask_write_choice(w, json_string_value(one), json_string_value(one),
				 a->kind == ASK_QUOTA ? "" : "is its answer");
	if (a->proposal && a->proposal->step == STEP_PENDING) {
		ask_write_quote_choices(w, a->proposal);
	} else if (!a->proposal && effects[a->kind].yes) {
		ask_write_choice(w, "yes", a->offer ? PATCH_YES : WORDS_YES, effects[a->kind].yes);
		ask_write_choice(w, "no", a->offer ? PATCH_NO : WORDS_NO, effects[a->kind].no);
	}
	jw_end(w);
	json_decref(list);
}

static void ask_open_field(struct jw *w, const char *name, const char *type)
{
	jw_object(w, NULL);
	jw_str(w, "name", name);
	jw_str(w, "type", type);
}

/* `max` 0: none is known. */
static void ask_write_count(struct jw *w, const char *name, int64_t now, int64_t min, int64_t max)
{
	ask_open_field(w, name, "integer");
	jw_int(w, "now", now);
	jw_int(w, "min", min);
	if (max > 0)
		jw_int(w, "max", max);
	jw_end(w);
}

static void ask_write_word(struct jw *w, const char *name, const char *now)
{
	ask_open_field(w, name, "string");
	jw_str(w, "now", now);
	jw_end(w);
}

/* The fields that `set` may change. A group's money and time are those of all its runs. */
static void ask_write_fields(struct jw *w, const struct ask *a)
{
	const struct proposal *p = a->proposal;
	const struct run_spec *s = p && p->step == STEP_PENDING ? p->specs[0] : NULL;
	bool group = s && s->group.id[0];
	const struct agent_limits *l = s ? &s->agent.limits : NULL;
	int64_t cost = group ? s->group.cost_microusd : s ? l->cost_microusd : 0;
	int64_t time = group ? s->group.time_ms : s ? l->time_ms : 0;

	jw_array(w, "fields");
	if (s) {
		ask_open_field(w, "max_cost_cents", "number");
		verb_cost(w, "now", cost);
		jw_int(w, "min", 0);
		jw_end(w);
		ask_open_field(w, "timeout", "number");
		if (time > 0)
			jw_int(w, "now", time / 1000);
		jw_int(w, "min", 1);
		jw_int(w, "max", 604800);
		jw_end(w);
		ask_write_count(w, "max_tokens", l->tokens, 1, 0);
		ask_write_count(w, "max_iterations", l->iterations, 1, 100000);
		ask_write_word(w, "model", s->model->id);
		ask_write_word(w, "role", s->role->name);
		ask_open_field(w, "preset", "string");
		jw_str(w, "now", s->preset);
		jw_array(w, "choices");
		jw_str(w, NULL, "quick");
		jw_str(w, NULL, "standard");
		jw_str(w, NULL, "deep");
		jw_end(w);
		jw_end(w);
		ask_open_field(w, "extended_thinking", "boolean");
		jw_bool(w, "now", s->thinking);
		jw_end(w);
		ask_open_field(w, "without", "list");
		jw_array(w, "choices");
		for (unsigned i = 0; i < s->agent.ntools; i++)
			if (!(s->tools[i]->flags & TOOL_ENDS))
				jw_str(w, NULL, s->tools[i]->name);
		jw_end(w);
		jw_end(w);
	}
	jw_end(w);
}

void ask_hash(const struct ask *a, char out[HASH_HEX_LEN + 1])
{
	const struct question *q = a->question;
	struct hash_sha256 h;

	if (a->proposal) {
		snprintf(out, HASH_HEX_LEN + 1, "%s", a->proposal->hash);
		return;
	}
	if (a->offer) {
		snprintf(out, HASH_HEX_LEN + 1, "%s", a->patch ? a->patch->hash : "");
		return;
	}
	hash_sha256_init(&h);
	hash_sha256_add(&h, a->id, strlen(a->id) + 1);
	if (!q) {
		hash_sha256_with(&h, a->talk->ask->question, strlen(a->talk->ask->question), out);
		return;
	}
	hash_sha256_add(&h, q->text, strlen(q->text) + 1);
	if (q->choices)
		hash_sha256_add(&h, q->choices, strlen(q->choices));
	hash_sha256_with(&h, q->call_hash, strlen(q->call_hash), out);
}

void ask_write(struct jw *w, const char *key, const struct ask *a)
{
	const struct proposal *p = a->proposal;
	const struct question *q = a->question;
	char hash[HASH_HEX_LEN + 1];

	ask_hash(a, hash);
	jw_object(w, key);
	jw_str(w, "id", a->id);
	jw_str(w, "kind", ask_kinds[a->kind]);
	jw_str(w, "hash", hash);
	jw_str(w, "session", a->session);
	jw_strn(w, "run", p ? p->run : a->id,
		p                 ? strlen(p->run)
		: a->id[0] == 'S' ? strcspn(a->id, ":")
				  : 0);
	if (p) {
		jw_int(w, "number", p->number);
		ask_write_quote_text(w, p);
	} else if (a->offer) {
		ask_write_patch_text(w, a);
	} else {
		ask_write_shown(w, "text", q ? q->text : a->talk->ask->question);
		jw_bool(w, "whole", !q || !person_cut(q));
	}
	ask_write_choices(w, a);
	ask_write_fields(w, a);
	if (q && q->fallback)
		ask_write_shown(w, "default", q->fallback);
	verb_time(w, "since", a->since_ms);
	verb_time(w, "until", a->until_ms);
	jw_str(w, "state", p && proposal_settled(p) ? proposal_state(p) : "open");
	if (p && p->step == STEP_REPLACED)
		jw_str(w, "replaced_by", p->replaced_by);
	jw_end(w);
}

/* ---- the verbs */

/* An open one, or a quote that was answered. */
static bool verb_find_ask(struct core *c, const char *id, struct ask *out, struct ava_error *err)
{
	struct proposal *p = *id == 'P' ? proposal_find(c, id, err) : NULL;

	if (ask_find(c, id, out))
		return true;
	if (p) {
		ask_of_quote(p, out);
		return true;
	}
	if (*id != 'P')
		err_set(err, AVA_ENOENT,
			"nothing of the name %.60s waits for an answer (any more): `ava asks` "
			"lists what does",
			id);
	return false;
}

static int verb_look_at_patch(struct verb_work *work, struct ava_error *err)
{
	const struct patch_offer *o = work->own;
	struct patch_file_text text;
	struct ask ask;
	int rv = patch_text_read(work->job.core->root_fd, o->run, &text, err);

	ask_of_patch(o, &ask);
	ask.patch = &text;
	if (rv == 0)
		ask_write(&work->answer.w, NULL, &ask);
	patch_text_fini(&text);
	return rv;
}

static void verb_ask(struct verb_call *v)
{
	struct ava_error err = {0};
	struct verb_answer a;
	struct ask ask;

	if (!verb_args(v, NULL))
		return;
	if (!verb_find_ask(v->core, v->id, &ask, &err)) {
		verb_fail(v->reply, err.code, &err);
		return;
	}
	if (ask.offer) {
		verb_work(v,
			  &(struct verb_work){.work = verb_look_at_patch, .own = (void *)ask.offer},
			  sizeof(*ask.offer), true);
		return;
	}
	verb_begin(&a, v->reply, 0, NULL);
	ask_write(&a.w, NULL, &ask);
	verb_send(&a, 200);
}

struct asks_said {
	const char *choice, *text, *hash, *request_id, *by;
	const json_t *set;
};
#define AT(field) offsetof(struct asks_said, field)
static const struct arg asks_said_args[] = {
	{"choice", ARG_SAID, AT(choice), .most = TEXT_MAX},
	{"text", ARG_SAID, AT(text), .most = TEXT_MAX},
	{"set", ARG_ANY, AT(set)},
	{"hash", ARG_SAID, AT(hash), .most = HASH_HEX_LEN},
	{"request_id", ARG_SAID, AT(request_id), .most = ID_MAX},
	{"by", ARG_SAID, AT(by), .most = ID_MAX},
	{NULL},
};

/* The Ask is not what was shown any more. */
static void verb_ask_stale(struct verb_reply *reply, const struct ask *ask)
{
	struct verb_answer a;
	char text[120];

	verb_begin(&a, reply, 0, NULL);
	snprintf(text, sizeof(text), "%s is no longer what was shown: look at it again", ask->id);
	jw_object(&a.w, NULL);
	jw_object(&a.w, "error");
	jw_str(&a.w, "code", err_word(AVA_EBUSY));
	jw_str(&a.w, "message", text);
	jw_end(&a.w);
	ask_write(&a.w, "ask", ask);
	verb_send(&a, 409);
}

static void verb_ask_decided(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
			     void *user)
{
	struct verb_answer a;
	struct ask ask;

	(void)repeated;
	if (!verb_begin(&a, user, rv, err))
		return;
	ask_of_quote(p, &ask);
	ask_write(&a.w, NULL, &ask);
	verb_send(&a, 200);
}

static void verb_ask_answered(struct verb_reply *reply, const char *id, const char *run)
{
	struct verb_answer a;

	verb_begin(&a, reply, 0, NULL);
	jw_object(&a.w, NULL);
	jw_str(&a.w, "id", id);
	jw_str(&a.w, "run", run);
	jw_str(&a.w, "state", "answered");
	jw_end(&a.w);
	verb_send(&a, 200);
}

/* A run that has its answer waits no more, so that only its name is left. */
static void verb_ask_passed(int rv, const struct op_steered *s, const struct ava_error *err,
			    void *user)
{
	char id[ASK_ID_LEN];

	if (rv != 0) {
		verb_fail(user, rv, err);
		return;
	}
	snprintf(id, sizeof(id), "%s:%s", s->run, s->call_id);
	verb_ask_answered(user, id, s->run);
}

/* An answer of this call's to a question about the memory. */
struct verb_ask_noting {
	struct verb_reply *reply;
	char id[ASK_ID_LEN];
};

static void verb_ask_noted(int rv, const struct ava_error *err, void *user)
{
	struct verb_ask_noting *n = user;

	if (rv == 0)
		verb_ask_answered(n->reply, n->id, "");
	else
		verb_fail(n->reply, rv, err);
	free(n);
}

/* The answer's words, in the log of the conversation: nothing else tells by which door it came.
 * The memory's own event tells what came of it. */
static void verb_ask_log(struct verb_call *v, const struct session *s, const char *words)
{
	const struct core_telling t = {EVENT_UserMessage, s->id, s->user, JOURNAL_RIDE};
	struct buf b;
	struct jw w;

	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "text", words);
	jw_str(&w, "origin", v->caller->channel);
	jw_end(&w);
	(void)core_tell(v->core, &t, &b, NULL);
}

static void verb_ask_memory(struct verb_call *v, const struct ask *ask,
			    const struct asks_said *said)
{
	const char *words = said->text ? said->text : said->choice ? said->choice : "";
	struct ava_error err = {0};
	struct verb_ask_noting *n;
	struct answer_line a;

	if (!answer_read(words, &a) || a.verb == ANSWER_NONE || !change_none(&a.change) ||
	    (a.pick[0] && strcmp(a.pick, ask->id) != 0)) {
		err_set(&err, AVA_EINVAL, "answer yes or no");
		verb_fail(v->reply, AVA_EINVAL, &err);
		return;
	}
	n = calloc(1, sizeof(*n));
	if (!n) {
		verb_fail(v->reply, AVA_ENOMEM, NULL);
		return;
	}
	n->reply = v->reply;
	snprintf(n->id, sizeof(n->id), "%s", ask->id);
	verb_ask_log(v, ask->talk->session, words);
	talk_ask_answer(ask->talk, a.verb == ANSWER_YES, verb_ask_noted, n);
}

/* The question about the memory that was answered last, with the same answer. */
static bool verb_ask_again(struct verb_call *v, const struct asks_said *said)
{
	const char *words = said->text ? said->text : said->choice ? said->choice : "";
	struct answer_line a;

	if (*v->id != 'M' || !answer_read(words, &a) || a.verb == ANSWER_NONE)
		return false;
	LIST_EACH (&v->core->talks, n, tmp) {
		const struct talk *t = LIST_ENTRY(n, struct talk, node);

		if (strcmp(t->answered, v->id) == 0)
			return t->answered_yes == (a.verb == ANSWER_YES);
	}
	return false;
}

/* A question of a run: also one that is open no more, where the same request hears the same. */
static void verb_ask_run(struct verb_call *v, const char *id, const struct asks_said *said)
{
	const char *call = strchr(id, ':');
	char run[24];
	struct op_steer s = {
		.run = run,
		.text = said->text ? said->text : said->choice,
		.call_id = call + 1,
		.request_id = said->request_id,
		.by = said->by,
		.origin = v->caller->channel,
	};

	snprintf(run, sizeof(run), "%.*s", (int)(call - id), id);
	ops_steer(v->core, &s, verb_ask_passed, v->reply);
}

/* ---- the answer to a patch: a yes is carried out by a thread of the pool */

struct verb_patching {
	struct job job;
	struct verb_reply *reply;
	struct ava_error err;
	struct patch_offer offer; /* a copy */
	char user[64], hash[HASH_HEX_LEN + 1];
	struct buf content; /* of the event that tells the answer, which `w` writes */
	struct jw w;
	json_t *told; /* the same, parsed */
};

/* The same answer, given again, hears the same. */
static void patching_say(struct verb_reply *reply, const char *run, const json_t *told)
{
	struct verb_answer a;
	struct buf data;

	verb_begin(&a, reply, 0, NULL);
	buf_init(&data, 1u << 20);
	jw_object(&a.w, NULL);
	jw_str(&a.w, "run", run);
	jw_str(&a.w, "state", json_str(told, "customType"));
	if (json_dump(&data, json_object_get(told, "data")) == 0)
		jw_raw(&a.w, "done", data.data, data.len);
	buf_fini(&data);
	verb_send(&a, 200);
}

static void patching_written(int rv, void *user)
{
	struct verb_patching *p = user;
	struct patch_offer *o = patches_find(p->job.core, p->offer.run);

	if (o)
		o->busy = false;
	if (rv != 0 && p->err.code == 0)
		err_set(&p->err, rv, "the answer is not recorded (%s): give it again",
			ava_strerror(rv));
	if (rv == 0)
		patches_told(p->job.core, p->told);
	if (rv == 0)
		patching_say(p->reply, p->offer.run, p->told);
	else
		verb_fail(p->reply, rv, &p->err);
	json_decref(p->told);
	buf_fini(&p->content);
	free(p);
}

/* The event is on disk before anybody hears of the answer. */
static void patching_done(struct job *job)
{
	struct verb_patching *p = CONTAINER_OF(job, struct verb_patching, job);
	const struct core_telling t = {EVENT_Custom, p->offer.session, p->user,
				       JOURNAL_NOW,  patching_written, p};
	int rv = p->err.code;

	jw_end(&p->w);
	jw_end(&p->w);
	if (rv == 0 && (rv = buf_check(&p->content)) == 0)
		p->told = json_parse(p->content.data, p->content.len, &p->err);
	rv = rv != 0 ? rv : p->err.code;
	if (rv == 0)
		rv = core_tell(job->core, &t, &p->content, NULL);
	if (rv != 0)
		patching_written(rv, p);
}

static void patching_run(struct job *job)
{
	struct verb_patching *p = CONTAINER_OF(job, struct verb_patching, job);
	const char *run = p->offer.run;
	struct patch_file_text text;
	int rv = patch_text_read(job->core->root_fd, run, &text, &p->err);
	struct buf shown;

	buf_init(&shown, 8u << 20);
	if (rv == 0 && strcmp(p->hash, text.hash) != 0)
		err_set(&p->err, AVA_EBUSY, "%s is no longer what was shown: look at it again",
			run);
	else if (rv == 0 && !patch_text_show(&shown, run, &text))
		err_set(&p->err, AVA_EDENIED,
			"the changes of %s are too long to be shown whole here: `ava apply %s`",
			run, run);
	else if (rv == 0)
		(void)patch_text_apply(job->core->root, run, &text, &p->w, &p->err);
	buf_fini(&shown);
	patch_text_fini(&text);
}

static void verb_ask_patch(struct verb_call *v, struct patch_offer *o, const struct asks_said *said,
			   bool yes)
{
	struct verb_patching *p = calloc(1, sizeof(*p));

	if (!p) {
		verb_fail(v->reply, AVA_ENOMEM, NULL);
		return;
	}
	o->busy = true;
	p->job = (struct job){.core = v->core, .run = patching_run, .done = patching_done};
	p->reply = v->reply;
	p->offer = *o;
	snprintf(p->hash, sizeof(p->hash), "%s", said->hash ? said->hash : "");
	snprintf(p->user, sizeof(p->user), "%s", v->caller->user);
	buf_init(&p->content, 4u << 20);
	jw_init(&p->w, &p->content);
	jw_object(&p->w, NULL);
	jw_str(&p->w, "customType", yes ? "applied" : "left");
	jw_object(&p->w, "data");
	jw_str(&p->w, "subagentId", o->run);
	jw_str(&p->w, "by", said->by);
	jw_str(&p->w, "origin", v->caller->channel);
	jw_str(&p->w, "requestId", said->request_id ? said->request_id : "");
	if (!yes || job_begin(v->core, &p->job, &p->err) != 0)
		patching_done(&p->job);
}

/* The label of a choice, or a yes or no. */
static bool patch_said(const char *words, bool *yes)
{
	struct answer_line a;

	*yes = strcasecmp(words, PATCH_YES) == 0;
	if (*yes || strcasecmp(words, PATCH_NO) == 0)
		return true;
	if (!answer_read(words, &a) || a.verb == ANSWER_NONE || a.pick[0] ||
	    !change_none(&a.change))
		return false;
	*yes = a.verb == ANSWER_YES;
	return true;
}

/* A yes goes with the hash of what was shown: no words stand for so much. false: `v` is about no
 * patch. */
static bool verb_answer_patch(struct verb_call *v, const struct asks_said *said)
{
	const char *words = said->text ? said->text : said->choice ? said->choice : "", *was;
	struct patch_offer *o = patches_named(v->core, v->id);
	struct ava_error err = {0};
	bool yes = false;
	int rv;

	if (!o)
		return false;
	was = json_str(o->answer, "customType");
	rv = core_check_request(v->core, said->request_id, &err);
	if (rv == 0 && !patch_said(words, &yes))
		rv = err_set(&err, AVA_EINVAL, "answer yes or no");
	else if (rv == 0 && o->answer && yes != (strcmp(was, "applied") == 0))
		rv = err_set(&err, AVA_EEXIST,
			     "%s is %s already; `ava apply %s` still can write it", v->id, was,
			     o->run);
	else if (rv == 0 && o->busy)
		rv = err_set(&err, AVA_EBUSY, "%s is being answered", v->id);
	else if (rv == 0 && !o->answer && yes && !said->hash)
		rv = err_set(&err, AVA_EINVAL,
			     "a yes to a patch goes with the hash of what was shown: `ava apply "
			     "%s` shows it and asks",
			     o->run);
	if (rv != 0)
		verb_fail(v->reply, rv, &err);
	else if (o->answer)
		patching_say(v->reply, o->run, o->answer);
	else
		verb_ask_patch(v, o, said, yes);
	return true;
}

static void verb_answer(struct verb_call *v)
{
	struct asks_said said = {.by = v->caller->user};
	struct change set = CHANGE_NONE;
	struct ava_error err = {0};
	char hash[HASH_HEX_LEN + 1];
	struct ask ask;
	bool open;

	if (!verb_args(v, &said))
		return;
	if (v->caller->model)
		err_set(&err, AVA_EDENIED, "only a person answers what waits for them");
	else if ((said.choice != NULL) + (said.text != NULL) > 1 ||
		 (!said.choice && !said.text && json_object_size(said.set) == 0))
		err_set(&err, AVA_EINVAL, "answer with choice or text, or with set");
	else if (said.set && *v->id != 'P')
		err_set(&err, AVA_EINVAL, "only a quote has something to set");
	else if (said.set)
		(void)change_read(said.set, &set, &v->mem, &err);
	if (err.code != 0) {
		verb_fail(v->reply, err.code, &err);
		return;
	}
	if (verb_answer_patch(v, &said))
		return;
	open = verb_find_ask(v->core, v->id, &ask, &err);
	if (open && said.hash) {
		ask_hash(&ask, hash);
		if (strcmp(hash, said.hash) != 0) {
			verb_ask_stale(v->reply, &ask);
			return;
		}
	}
	if (*v->id == 'S' && (open || strchr(v->id, ':')))
		verb_ask_run(v, open ? ask.id : v->id, &said);
	else if (!open && verb_ask_again(v, &said))
		verb_ask_answered(v->reply, v->id, "");
	else if (!open)
		verb_fail(v->reply, err.code, &err);
	else if (ask.talk)
		verb_ask_memory(v, &ask, &said);
	else
		ops_confirm(v->core, ask.id, said.text ? said.text : said.choice, &set, said.by,
			    v->caller->channel, verb_ask_decided, v->reply);
}

const struct verb verbs_about_asks[] = {
	{"GET", "/api/v1/asks/{id}", verb_ask, NULL, false, .where = VERB_AT_ASK},
	{"POST", "/api/v1/asks/{id}", verb_answer, asks_said_args, true, .where = VERB_AT_ASK},
	{NULL},
};
