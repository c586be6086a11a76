/* A yes in the conversation, and a subagent that waits for one.
 *
 * Nothing is guessed, since a call that is allowed may change files or cost
 * money. Who names the subagent ("yes, S-7f3a2b") means it. A bare yes or no is
 * the answer only where one question is open, nothing else waits, and that
 * question is what the person had before them: Ava has said nothing since, and it
 * did not come up while they were typing. A quote that Ava made after the question
 * is what was shown last, and is answered as ever. In all other cases nothing is
 * done, and Ava is told to ask.
 *
 * The words go the way of `ava steer`, bound to that one question: the runtime
 * reads them there once more. What can fail is memory, and the run: it may have
 * ended, or ask something else by now; Ava is told. */
#include "ava/talk_question.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ava/answer.h"
#include "ava/steer.h"
#include "ava/talk.h"
#include "ava/talk_note.h"
#include "base/util.h"
#include "codec/json.h"
#include "subagent/person.h"

#define SEEN_MS 1000 /* what came up later than that before the words was not read */

struct asking {
	const struct run *run; /* the one that is meant, or the newest that asks */
	const struct question *q;
	unsigned n;
	int64_t newest_ms;
};

/* ---- who asks */

static bool asks_here(const struct talk *t, const struct run *r)
{
	return strcmp(r->spec->session_id, t->session->id) == 0 && !r->agent.ending;
}

/* All that was asked before it was said. */
static struct asking find_asking(const struct talk *t, const struct input *in)
{
	struct asking a = {0};

	LIST_EACH (&t->session->core->sup.live, node, tmp) {
		const struct run *r = LIST_ENTRY(node, struct run, node);
		const struct question *q = asks_here(t, r) ? person_question(r) : NULL;

		if (!q || q->asked_ms > in->said_ms)
			continue;
		a.n++;
		if (a.n > 1 && q->asked_ms < a.newest_ms)
			continue;
		a.run = r;
		a.q = q;
		a.newest_ms = q->asked_ms;
	}
	return a;
}

/* The next "S-7f3a2b" of the words. */
static const char *next_run(const char *text, const char *at, size_t *len)
{
	for (; (at = strcasestr(at, "S-")) != NULL; at += 2) {
		*len = 2 + strspn(at + 2, "0123456789abcdefABCDEF");
		if (*len >= 8 && !isalnum((unsigned char)at[*len]) &&
		    (at == text || !isalnum((unsigned char)at[-1])))
			return at;
	}
	return NULL;
}

/* ---- what is said */

/* The length of what joins a name to words before it: " for" in "yes for S-7f3a2b". */
static size_t joint(const char *words, size_t len)
{
	static const char *const said[] = {" for", " to"};

	while (len > 0 && strchr(" ,:;\n", words[len - 1]))
		len--;
	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		size_t n = strlen(said[i]);

		if (len > n && strncasecmp(words + len - n, said[i], n) == 0)
			return len - n;
	}
	return len;
}

/* The words without the runs that they name: "S-7f3a2b: yes" and "yes, for S-7f3a2b"
 * are "yes". *owned*; NULL: no memory. */
static char *without_names(const char *text)
{
	char *words = malloc(strlen(text) + 2), *to = words;
	const char *from = text, *at;
	size_t len;

	for (; words && (at = next_run(text, from, &len)) != NULL;) {
		memcpy(to, from, (size_t)(at - from));
		to = words + joint(words, (size_t)(to + (at - from) - words));
		from = at + len;
		from += strspn(from, " ,:;");
		*to++ = ' ';
	}
	if (!words)
		return NULL;
	memcpy(to, from, strlen(from) + 1);
	len = strlen(words);
	while (len > 0 && isspace((unsigned char)words[len - 1]))
		words[--len] = 0;
	from = words + strspn(words, " \t\r\n");
	memmove(words, from, strlen(from) + 1);
	return words;
}

/* Words that may be about the run instead: to stop it is something else than a no. */
static bool of_the_run(const char *words)
{
	static const char *const stops[] = {"cancel", "stop", "abort", "kill", "quit", "exit"};

	for (size_t i = 0; i < ARRAY_LEN(stops); i++)
		if (strcasestr(words, stops[i]))
			return true;
	return false;
}

/* "2", or the words of a choice. */
static bool is_choice(const struct question *q, const char *words)
{
	json_t *list = q->choices ? json_parse(q->choices, strlen(q->choices), NULL) : NULL;
	bool is = false;
	const json_t *v;
	char number[24];
	size_t i;

	json_array_foreach(list, i, v)
	{
		snprintf(number, sizeof(number), "%zu", i + 1);
		is |= strcmp(words, number) == 0 ||
		      (json_is_string(v) && strcasecmp(words, json_string_value(v)) == 0);
	}
	json_decref(list);
	return is;
}

enum said { SAID_NOTHING, SAID_ANSWER, SAID_STOP, SAID_CHANGE };

/* What can the words be, where this is asked, or (NULL) several things are? */
static enum said said_to(const struct question *q, const char *words)
{
	struct change change;
	enum answer a;

	if (q && q->choices)
		return is_choice(q, words) ? SAID_ANSWER : SAID_NOTHING;
	if (q && q->approval && strncasecmp(words, "no:", 3) == 0)
		return SAID_ANSWER; /* with its reason, for the model */
	a = answer_parse(words, &change);
	if (a == ANSWER_NO && of_the_run(words))
		return SAID_STOP;
	return a == ANSWER_UNCLEAR                 ? SAID_NOTHING
	       : a == ANSWER_YES || a == ANSWER_NO ? SAID_ANSWER
						   : SAID_CHANGE;
}

/* ---- passed on */

static void passed_on(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	struct op_answer *a = user;
	struct input *in = a->in;
	struct talk *t;

	free(a);
	if (!in)
		return; /* the conversation is closed */
	t = in->talk;
	if (rv != 0)
		talk_note(t, "", "The person's answer could not be carried out: %.300s", err->text);
	else
		talk_note(t, "", "The person's answer went to %s (call %s): it goes on.", s->run,
			  s->call_id);
	in->answer = NULL;
	t->answering = false;
	os_defer(t->run.sup->loop, &t->pump);
}

static enum talk_reply pass_on(struct talk *t, struct input *in, const struct asking *asking,
			       const char *words)
{
	struct op_steer o = {
		.run = asking->run->id.text,
		.text = words,
		.call_id = asking->q->call_id,
		.by = t->session->user,
	};
	struct op_answer *a = calloc(1, sizeof(*a));

	if (!a) {
		talk_note(t, "", "The person's answer could not be carried out: out of memory.");
		return TALK_REPLY_DOUBT;
	}
	a->in = in;
	a->outlives = true;
	in->answer = a;
	t->answering = true;
	ops_steer(t->session->core, &o, passed_on, a);
	return TALK_REPLY_TAKEN;
}

static enum talk_reply doubt(struct talk *t, const struct asking *a, const struct talk_waiting *w)
{
	if (a->n + w->proposals > 1)
		talk_note(
			t, "",
			"Nothing was done: %u subagents ask the person something and %u proposals "
			"wait, and the words name none of them. Ask which one is meant; \"yes, "
			"%s\" "
			"or \"no, %s\" answers that one.",
			a->n, w->proposals, a->run->id.text, a->run->id.text);
	else
		talk_note(
			t, "",
			"Nothing was done: %s asks the person something, and it is not clear that "
			"the words answer that. Ask what is meant; \"yes, %s\" or \"no, %s\" "
			"answers "
			"it.",
			a->run->id.text, a->run->id.text, a->run->id.text);
	return TALK_REPLY_DOUBT;
}

/* ---- */

/* The words name runs: one that asks here, and it alone. */
static enum talk_reply to_named(struct talk *t, struct input *in, const struct talk_waiting *w)
{
	struct asking a = {0};
	enum talk_reply reply = TALK_REPLY_NONE;
	unsigned named = 0;
	char id[24] = "", *words;
	size_t len;

	for (const char *at = in->text; (at = next_run(in->text, at, &len)) != NULL; at += len) {
		named++;
		snprintf(id, sizeof(id), "S-%.*s", (int)len - 2, at + 2);
	}
	for (char *at = id + 2; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	a.run = named == 1 ? supervisor_find(&t->session->core->sup, id) : NULL;
	a.q = a.run && asks_here(t, a.run) ? person_question(a.run) : NULL;
	if (!a.q || a.q->asked_ms > in->said_ms || w->named)
		return TALK_REPLY_NONE;
	a.n = 1;
	words = without_names(in->text);
	if (words && said_to(a.q, words) == SAID_ANSWER)
		reply = pass_on(t, in, &a, words);
	free(words);
	return reply;
}

/* Did the person have this question before them, and nothing else? */
static bool shown_last(const struct talk *t, const struct input *in, const struct asking *a,
		       const struct talk_waiting *w)
{
	return a->n == 1 && w->proposals == 0 && t->spoke_ms < a->newest_ms &&
	       in->said_ms - a->newest_ms >= SEEN_MS;
}

/* Is it about a quote, or for Ava herself? A quote that was made after the question
 * is what was shown last; nothing but a quote can be changed. */
static bool of_others(enum said said, const struct asking *a, const struct talk_waiting *w)
{
	if (w->proposals == 0)
		return said == SAID_STOP;
	return said == SAID_CHANGE || w->newest_ms > a->newest_ms;
}

enum talk_reply talk_question(struct talk *t, struct input *in, const struct talk_waiting *w)
{
	struct asking a = find_asking(t, in);
	enum talk_reply reply = TALK_REPLY_NONE;
	enum said said;
	char *words;
	size_t len;

	if (a.n == 0)
		return TALK_REPLY_NONE;
	if (next_run(in->text, in->text, &len))
		return to_named(t, in, w);
	if (w->named)
		return TALK_REPLY_NONE;
	words = without_names(in->text);
	said = words ? said_to(a.n == 1 ? a.q : NULL, words) : SAID_NOTHING;
	if (said == SAID_ANSWER && shown_last(t, in, &a, w))
		reply = pass_on(t, in, &a, words);
	else if (said != SAID_NOTHING && !of_others(said, &a, w))
		reply = doubt(t, &a, w);
	free(words);
	return reply;
}
