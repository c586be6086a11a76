/* A line in a conversation as the answer to what waits (doc/ASKS.md). The runtime reads it before
 * the model does; what came of it goes to the model as a notice in front of the words.
 *
 * A line answers one Ask at the most: the one that it names, the quote with its number among those
 * that were shown, or the one that the door showed last. An Ask of another conversation, one that
 * came up after the words, and one that is open no more take no answer, so that words which wait
 * for Ava's turn to end, or are read again by the next start, are spent on nothing else. Every
 * other line is said to Ava; where it reads like an answer, she is told what waits.
 *
 * What can fail is memory, and the owner of the Ask: the run may have ended, the change may be
 * impossible. Ava is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/prompt.h"
#include "ava/answer.h"
#include "ava/ask.h"
#include "ava/patches.h"
#include "ava/proposal.h"
#include "ava/talk.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "subagent/person.h"
#include "subagent/rights.h"

#define FAILED "The person's " NOTICE_FAILED

/* ---- carrying it out */

/* NULL: no memory, which Ava is told. */
static struct op_answer *talk_answer_begin(struct talk *t, struct input *in)
{
	struct op_answer *a = calloc(1, sizeof(*a));

	if (!a) {
		talk_note(t, "", FAILED "out of memory.");
		return NULL;
	}
	a->in = in;
	in->answer = a;
	t->answering = true;
	return a;
}

static void talk_answer_end(struct op_answer *a)
{
	struct input *in = a->in;

	free(a);
	if (!in)
		return; /* the conversation is closed */
	in->answer = NULL;
	in->talk->answering = false;
	os_defer(in->talk->run.sup->loop, &in->talk->pump);
}

/* Tells the person why a plain yes does not suffice, whatever Ava makes of it: she has a notice. */
static void tell_rights(struct talk *t, const char *why)
{
	const struct session *s = t->session;
	const struct core_telling told = {EVENT_Error, s->id, s->user, JOURNAL_RIDE};
	struct buf b;
	struct jw w;

	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "class", "answer");
	jw_str(&w, "message", why);
	jw_end(&w);
	(void)core_tell(s->core, &told, &b, NULL);
}

static void talk_answer_decided(int rv, struct proposal *p, bool repeated,
				const struct ava_error *err, void *user)
{
	struct op_answer *a = user;

	(void)p;
	(void)repeated;
	if (a->in && rv != 0) {
		talk_note(a->in->talk, "", FAILED "%.300s", err->text);
		if (strstr(err->text, RIGHTS_SENTENCE))
			tell_rights(a->in->talk, err->text);
	}
	talk_answer_end(a);
}

static void talk_answer_passed(int rv, const struct op_steered *s, const struct ava_error *err,
			       void *user)
{
	struct op_answer *a = user;

	if (a->in && rv != 0)
		talk_note(a->in->talk, "", FAILED "%.300s", err->text);
	else if (a->in)
		talk_note(a->in->talk, "", "The person's answer went to %s (call %s): it goes on.",
			  s->run, s->call_id);
	talk_answer_end(a);
}

static void talk_answer_noted(int rv, const struct ava_error *err, void *user)
{
	struct op_answer *a = user;

	if (a->in && rv != 0)
		talk_note(a->in->talk, "", FAILED "%.300s", err->text);
	talk_answer_end(a);
}

/* The line is a yes or a no, and nothing else. */
static bool talk_answer_yes_or_no(const struct answer_line *said)
{
	return said->verb != ANSWER_NONE && change_none(&said->change) && !said->change.all_three;
}

/* The answer that a run's question takes from the line, *owned*; NULL: the line is none. A yes or
 * no; a choice by its words, or by a number that nothing but a yes stands beside; of a call that
 * needs a yes a no with its reason. "Stop" means the run itself, and is said to Ava; so is a number
 * where there are no choices: it may mean a quote. */
static char *talk_answer_words(const struct ask *a, const char *line,
			       const struct answer_line *said)
{
	const struct question *q = a->question;
	bool yes_or_no = talk_answer_yes_or_no(said) && !said->stops;
	bool picks = said->pick[0] && said->verb != ANSWER_NO && change_none(&said->change) &&
		     !said->change.all_three;
	char *chosen = q->choices ? person_choice(q, line) : NULL, *text = NULL;

	if (!chosen && q->choices && picks)
		chosen = person_choice(q, said->pick);
	if (chosen || (q->choices && a->kind != ASK_QUOTA) || !yes_or_no || strlen(said->pick) == 1)
		return chosen;
	if (said->reason && a->kind != ASK_APPROVAL)
		return NULL;
	if (said->reason)
		return asprintf(&text, "no: %s", said->reason) < 0 ? NULL : text;
	return strdup(!said->pick[0] ? line : said->verb == ANSWER_YES ? "yes" : "no");
}

/* false: the line is no answer to this Ask. */
static bool talk_answer_to(struct talk *t, struct input *in, const struct ask *ask,
			   const struct answer_line *said)
{
	struct core *c = t->session->core;
	struct op_answer *a;
	struct op_steer o;
	char *words;

	if (ask->kind == ASK_APPLY)
		return false;
	if (ask->proposal) {
		if (said->verb == ANSWER_NONE && change_none(&said->change))
			return false;
		a = talk_answer_begin(t, in);
		if (a)
			proposal_said(c, ask->id, said, t->session->user, in->origin,
				      talk_answer_decided, a);
		return a != NULL;
	}
	if (ask->talk) {
		a = talk_answer_yes_or_no(said) ? talk_answer_begin(t, in) : NULL;
		if (a)
			talk_ask_answer(ask->talk, said->verb == ANSWER_YES, talk_answer_noted, a);
		return a != NULL;
	}
	words = talk_answer_words(ask, in->text, said);
	a = words ? talk_answer_begin(t, in) : NULL;
	o = (struct op_steer){
		.run = ask->run->id.text,
		.text = words,
		.call_id = ask->question->call_id,
		.by = t->session->user,
		.origin = in->origin,
	};
	if (a)
		ops_steer(c, &o, talk_answer_passed, a);
	free(words);
	return a != NULL;
}

/* ---- which one is meant */

/* "2": the quote with that number, unless it came later than the one shown last. Alone it is a yes,
 * unless there was never another: a quote that is alone shows no number. */
static bool talk_answer_numbered(struct talk *t, const struct input *in, struct answer_line *said,
				 struct ask *out)
{
	struct core *c = t->session->core;
	unsigned number = (unsigned)(said->pick[0] - '0'), open = 0;
	const struct proposal *shown = strmap_get(&c->proposals, in->shown);
	struct ask a;

	out->id[0] = 0;
	if (!shown || strcmp(shown->session, t->session->id) != 0)
		return false;
	/* Newest first: those before the one that was shown came later. */
	for (struct list *n = c->proposal_order.prev; n != &c->proposal_order; n = n->prev) {
		struct proposal *p = LIST_ENTRY(n, struct proposal, node);

		if (strcmp(p->session, t->session->id) == 0 && ask_find(c, p->id, &a)) {
			open++;
			if (p->number == number)
				*out = a;
		}
		if (p == shown)
			break;
	}
	if (out->id[0] && said->verb == ANSWER_NONE && change_none(&said->change))
		said->verb = number > 1 || open > 1 ? ANSWER_YES : ANSWER_NONE;
	return out->id[0];
}

struct talk_waiting {
	char *out;
	size_t n;
};

/* "1 (P-19c0de): find main; S-7f3a2b asks" */
static void talk_answer_list(const struct ask *a, void *user)
{
	struct talk_waiting *w = user;
	const char *task = a->proposal ? a->proposal->specs[0]->task : "";

	if (w->n >= NOTE_BYTES / 2 || a->kind == ASK_APPLY)
		return;
	w->n += (size_t)snprintf(w->out + w->n, NOTE_BYTES - w->n, w->n ? "; " : "");
	if (a->proposal)
		w->n += (size_t)snprintf(w->out + w->n, NOTE_BYTES - w->n, "%u (%s): %.*s",
					 a->proposal->number, a->id,
					 (int)utf8_prefix(task, strlen(task), 80), task);
	else
		w->n += (size_t)snprintf(w->out + w->n, NOTE_BYTES - w->n, "%s asks",
					 a->run ? a->run->id.text : a->id);
}

/* The line reads like an answer, and is none: Ava is told, where anything waits. */
static void talk_answer_undone(struct talk *t, const char *named)
{
	char open[NOTE_BYTES] = "";
	struct talk_waiting w = {.out = open};

	ask_each(t->session->core, t->session->id, talk_answer_list, &w);
	if (named[0])
		talk_note(t, "", FAILED "%s does not wait for an answer here. %s%.600s", named,
			  w.n ? NOTICE_WAIT : "", open);
	else if (w.n)
		talk_note(t, "",
			  NOTICE_UNDONE "the person's words name none of what waits, and what was "
					"shown last was something else. Ask which one they mean; "
					"\"yes, ID\" answers it. " NOTICE_WAIT "%.600s",
			  open);
}

/* The line names an Ask, and may mean the one that was shown last: it is a choice of that ("yes,
 * P-19c0de" as a run called it), or names a run that has asked something else since. */
static bool talk_answer_twofold(struct talk *t, const struct input *in, const char *name,
				const struct ask *named)
{
	struct ask shown;
	char *choice;

	if (strcmp(in->shown, named->id) == 0)
		return false;
	if (named->run && !strchr(name, ':') &&
	    strncmp(in->shown, named->id, strlen(name) + 1) == 0)
		return true;
	if (!in->shown[0] || !ask_find(t->session->core, in->shown, &shown) || !shown.question)
		return false;
	choice = person_choice(shown.question, in->text);
	free(choice);
	return choice != NULL;
}

bool talk_answer(struct talk *t, struct input *in)
{
	struct answer_line said;
	bool is = answer_read(in->text, &said), named = strlen(said.pick) > 1, found;
	struct ask ask;

	in->looked = true;
	if (named)
		found = ask_find(t->session->core, said.pick, &ask);
	else if (said.pick[0] && in->shown[0] == 'P')
		found = talk_answer_numbered(t, in, &said, &ask);
	else
		found = in->shown[0] && ask_find(t->session->core, in->shown, &ask);
	found = found && strcmp(ask.session, t->session->id) == 0 && ask.since_ms <= in->said_ms;
	if (found && named && talk_answer_twofold(t, in, said.pick, &ask)) {
		talk_answer_undone(t, "");
		return false;
	}
	if (found && talk_answer_to(t, in, &ask, &said))
		return true;
	if (found && is && ask.kind == ASK_APPLY) {
		talk_note(t, "",
			  NOTICE_UNDONE "no words stand for a patch. `ava apply %s` shows it and "
					"asks; so does its card, by a button.",
			  ask.offer->run);
		return false;
	}
	/* A question about the memory that is gone with a stop is told as one that was named. */
	if (is && !said.stops)
		talk_answer_undone(t, found                 ? ""
				      : named               ? said.pick
				      : in->shown[0] == 'M' ? in->shown
							    : "");
	return false;
}
