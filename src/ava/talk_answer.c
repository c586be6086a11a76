/* The person's answer to what was proposed. It is the runtime that reads it,
 * before the model hears of it: a plain yes starts exactly what was quoted, a
 * no rejects it, a change is a new quote. What came of it goes to the model as
 * a notice in front of the person's words, so that she can speak of it.
 *
 * Only proposals of this conversation that were made before the words were
 * said can be meant. When several wait, the words must name which, or say all;
 * who names one that does not wait means none of the others. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ava/answer.h"
#include "ava/proposal.h"
#include "ava/talk.h"
#include "ava/talk_note.h"
#include "ava/talk_question.h"
#include "base/error.h"
#include "base/util.h"

#define MEANT_MAX 16

struct meant {
	char ids[MEANT_MAX][24];
	unsigned n, waiting;
	int64_t newest_ms; /* wall */
	bool unknown;      /* the words name a proposal that does not wait here */
};

/* Does `word` begin at `at`, and end where a word ends? */
static size_t whole_word(const char *text, const char *at, const char *word)
{
	size_t len = strlen(word);

	if (strncasecmp(at, word, len) != 0 || isalnum((unsigned char)at[len]) ||
	    (at > text && isalnum((unsigned char)at[-1])))
		return 0;
	return len;
}

static bool says_word(const char *text, const char *word)
{
	for (const char *at = text; *at; at++)
		if (whole_word(text, at, word))
			return true;
	return false;
}

static bool says_all(const char *text)
{
	return says_word(text, "all") || says_word(text, "both");
}

/* The next "P-19c0de" of the words, its length in *len; NULL: there is none. */
static const char *next_id(const char *text, const char *at, size_t *len)
{
	for (; (at = strcasestr(at, "P-")) != NULL; at += 2) {
		size_t n = strspn(at + 2, "0123456789abcdefABCDEF");

		*len = n + 2;
		if (n >= 6 && (at == text || !isalnum((unsigned char)at[-1])))
			return at;
	}
	return NULL;
}

static bool names(const char *text, const char *id)
{
	size_t len;

	for (const char *at = text; (at = next_id(text, at, &len)) != NULL; at += len)
		if (len == strlen(id) && strncasecmp(at, id, len) == 0)
			return true;
	return false;
}

/* Everything the words name must be among those that wait. */
static void keep_named(struct meant *m, const char *text)
{
	unsigned named = 0, n = 0;
	size_t len;

	for (unsigned i = 0; i < m->n; i++)
		if (names(text, m->ids[i]))
			memmove(m->ids[n++], m->ids[i], sizeof(m->ids[0]));
	for (const char *at = text; (at = next_id(text, at, &len)) != NULL; at += len) {
		bool known = false;

		for (unsigned i = 0; i < n; i++)
			known |= len == strlen(m->ids[i]) && strncasecmp(at, m->ids[i], len) == 0;
		m->unknown |= !known;
		named++;
	}
	if (named > 0)
		m->n = m->unknown ? 0 : n;
	else if (m->n > 1 && !says_all(text))
		m->n = 0;
}

/* The proposals that the words can be about. */
static void find_meant(struct talk *t, const struct input *in, struct meant *m)
{
	struct core *c = t->session->core;

	LIST_EACH (&c->proposal_order, node, tmp) {
		struct proposal *p = LIST_ENTRY(node, struct proposal, node);

		if (p->step != STEP_PENDING ||
		    strcmp(p->specs[0]->session_id, t->session->id) != 0 ||
		    p->created_ms > in->said_ms)
			continue;
		m->waiting++;
		m->newest_ms = MAX(m->newest_ms, p->created_ms);
		if (m->n < MEANT_MAX)
			memcpy(m->ids[m->n++], p->id, sizeof(m->ids[0]));
	}
	keep_named(m, in->text);
}

void sessions_chained(struct run *r, void *core)
{
	struct core *c = core;
	struct session *s = strmap_get(&c->session_by_id, r->spec->session_id);

	if (!s || session_load(s, NULL) != 0 || talk_watch_run(s->talk, r) != 0)
		return; /* told at the next start */
	talk_note(s->talk, r->id.text, "Next in its chain: %s (%s) has started.", r->id.text,
		  r->trace.text);
}

static void answered(int rv, const struct op_proposal *p, const struct ava_error *err, void *user)
{
	struct op_answer *a = user;
	struct input *in = a->in;
	struct talk *t = in->talk;

	if (rv != 0)
		talk_note(t, "", "The person's answer could not be carried out: %.300s", err->text);
	if (--a->left > 0)
		return;
	in->answer = NULL;
	free(a);
	t->answering = false;
	os_defer(t->run.sup->loop, &t->pump);
}

/* What joins a name with the next one: the length of " and " in "P-1 and P-2". */
static size_t joint(const char *text, const char *at)
{
	const char *end = at;
	size_t len;

	while (*end && (strchr(" ,&", *end) || whole_word(text, end, "and")))
		end += whole_word(text, end, "and") ? 3 : 1;
	return end > at && next_id(text, end, &len) == end ? (size_t)(end - at) : 0;
}

/* The words without what they name, which the parser does not know. NULL: no
 * memory. */
static char *plain_words(const char *text)
{
	static const char *const said[] = {"all of them", "both of them", "both", "all"};
	char *words = strdup(text);
	size_t len;

	for (size_t i = 0; words && i < ARRAY_LEN(said); i++)
		for (char *at = words; *at; at++)
			memset(at, ' ', whole_word(words, at, said[i]));
	for (const char *at = text; words && (at = next_id(text, at, &len)) != NULL;) {
		len += joint(text, at + len);
		memset(words + (at - text), ' ', len);
		at += len;
	}
	return words;
}

/* The model is told, and asks. */
static bool not_carried_out(struct talk *t, const char *why)
{
	talk_note(t, "", "The person's answer could not be carried out: %s", why);
	return false;
}

static const char *why_none(const struct meant *m)
{
	if (m->n > 0)
		return "out of memory.";
	return m->unknown ? "the proposal they name does not wait for an answer here: ask which "
			    "one is meant."
			  : "several proposals wait and the words name none: ask which one is "
			    "meant.";
}

bool talk_answer(struct talk *t, struct input *in)
{
	struct meant m = {0};
	struct change change;
	struct op_answer *a;
	enum talk_reply reply;
	char *words;
	size_t len;

	in->looked = true;
	find_meant(t, in, &m);
	reply = talk_question(t, in,
			      &(struct talk_waiting){.proposals = m.waiting,
						     .named = next_id(in->text, in->text, &len),
						     .newest_ms = m.newest_ms});
	if (reply != TALK_REPLY_NONE || m.waiting == 0)
		return reply == TALK_REPLY_TAKEN;
	words = plain_words(in->text);
	if (!words || answer_parse(words, &change) == ANSWER_UNCLEAR) {
		free(words);
		return words ? false : not_carried_out(t, "out of memory.");
	}
	a = calloc(1, sizeof(*a));
	if (m.n == 0 || !a) {
		free(a);
		free(words);
		return not_carried_out(t, why_none(&m));
	}
	a->in = in;
	a->left = m.n;
	in->answer = a;
	t->answering = true;
	for (unsigned i = 0; i < m.n; i++)
		proposal_said(t->session->core, m.ids[i], words, t->session->user, answered, a);
	free(words);
	return true;
}
