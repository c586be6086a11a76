/* The person's answer to what was proposed. It is the runtime that reads it,
 * before the model hears of it: a plain yes starts exactly what was quoted, a
 * no rejects it, a change is a new quote. What came of it goes to the model as
 * a notice in front of the person's words, so that she can speak of it.
 *
 * Only proposals of this conversation that were made before the words were
 * said can be meant. When several wait, the words must name one, or all. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ava/answer.h"
#include "ava/talk.h"
#include "base/error.h"

#define MEANT_MAX 16

struct op_answer {
	struct input *in;
	unsigned left; /* answers under way */
};

struct meant {
	char ids[MEANT_MAX][24];
	unsigned n, waiting;
};

static bool says_all(const char *text)
{
	return strcasestr(text, "both") || strcasestr(text, " all") ||
	       strncasecmp(text, "all", 3) == 0;
}

/* The proposals that the words can be about. */
static void find_meant(struct talk *t, const struct input *in, struct meant *m)
{
	struct core *c = t->session->core;
	const struct proposal *named = NULL;

	LIST_EACH (&c->proposal_order, node, tmp) {
		struct proposal *p = LIST_ENTRY(node, struct proposal, node);

		if (p->state != PROPOSAL_PENDING || p->writing || !p->spec ||
		    strcmp(p->spec->session_id, t->session->id) != 0 || p->created_ms > in->said_ms)
			continue;
		m->waiting++;
		if (strcasestr(in->text, p->id))
			named = p;
		if (m->n < MEANT_MAX)
			memcpy(m->ids[m->n++], p->id, sizeof(m->ids[0]));
	}
	if (named) {
		memcpy(m->ids[0], named->id, sizeof(m->ids[0]));
		m->n = 1;
	} else if (m->n > 1 && !says_all(in->text)) {
		m->n = 0;
	}
}

void sessions_answered(struct core *c, const struct proposal *p, const char *session_id,
		       struct run *r)
{
	struct session *s = map_get(&c->session_by_id, session_id);
	struct ava_error err = {0};

	if (!s)
		return;
	if (session_load(s, &err) != 0) {
		core_log(c, "session %s cannot be taken up: %s", s->id, err.text);
		return;
	}
	if (r && talk_watch_run(s->talk, r) != 0)
		core_log(c, "the result of %s will be told at the next start: out of memory",
			 r->id.text);
	if (p->state == PROPOSAL_CONFIRMED)
		talk_note(s->talk, "The person confirmed %s: %s (%s) has started.", p->id, p->run,
			  p->trace);
	else
		talk_note(s->talk, "%s %s: nothing was started.", p->id,
			  p->state == PROPOSAL_REJECTED ? "was rejected by the person"
							: "has expired");
}

static void answered(int rv, const struct op_proposal *p, const struct ava_error *err, void *user)
{
	struct op_answer *a = user;
	struct input *in = a->in;
	struct talk *t = in->talk;

	if (rv == 0 && p->state == PROPOSAL_PENDING)
		talk_note(t, "The person wants it otherwise: %s is a new quote and waits.", p->id);
	else if (rv != 0)
		talk_note(t, "The person's answer could not be carried out: %.300s", err->text);
	if (--a->left > 0)
		return;
	in->answer = NULL;
	free(a);
	t->answering = false;
	os_defer(t->run.sup->loop, &t->pump);
}

/* The words without what they name, which the parser does not know. NULL: no
 * memory. */
static char *plain_words(const char *text)
{
	static const char *const names[] = {"all of them", "both of them", "both", "all", NULL};
	char *words = strdup(text), *at;

	for (size_t i = 0; words && names[i]; i++) {
		size_t len = strlen(names[i]);

		at = strcasestr(words, names[i]);
		if (at && (at == words || at[-1] == ' ') && !isalnum((unsigned char)at[len]))
			memset(at, ' ', len);
	}
	for (at = words; at && (at = strcasestr(at, "P-")) != NULL;) {
		size_t n = strspn(at + 2, "0123456789abcdefABCDEF");

		memset(at, ' ', n >= 6 ? n + 2 : 0);
		at += n + 2;
	}
	return words;
}

/* The model is told, and asks. */
static bool not_carried_out(struct talk *t, const char *why)
{
	talk_note(t, "The person's answer could not be carried out: %s", why);
	return false;
}

bool talk_answer(struct talk *t, struct input *in)
{
	struct meant m = {0};
	struct change change;
	struct op_answer *a;
	char *words;

	in->looked = true;
	find_meant(t, in, &m);
	if (m.waiting == 0)
		return false;
	words = plain_words(in->text);
	if (!words || answer_parse(words, &change) == ANSWER_UNCLEAR) {
		free(words);
		return words ? false : not_carried_out(t, "out of memory.");
	}
	a = calloc(1, sizeof(*a));
	if (m.n == 0 || !a) {
		free(a);
		free(words);
		return not_carried_out(t, m.n == 0 ? "several proposals wait and the words name "
						     "none: ask which one is meant."
						   : "out of memory.");
	}
	a->in = in;
	a->left = m.n;
	in->answer = a;
	t->answering = true;
	for (unsigned i = 0; i < m.n; i++)
		decide_said(t->session->core, m.ids[i], words, t->session->user, answered, a);
	free(words);
	return true;
}
