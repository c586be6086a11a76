/* A person's words in a conversation as the answer to open proposals and to subagents that ask
 * (ask_person, ask_before, a limit). The runtime reads them before the model does; the outcome goes
 * to the model as a notice in front of the words, so that Ava can speak of it.
 *
 * Proposals: a plain yes starts exactly what was quoted, a no rejects it, a change is a new quote.
 * Unless they are named, only proposals of this conversation that were shown before the person
 * typed can be meant. When several wait, the words must name which, or say all; a name that does
 * not wait means none of the others. When Ava has asked something else in a later turn, a bare yes
 * or no may answer that: nothing is done, and she asks.
 *
 * Questions: nothing is guessed, since an allowed call may change files or cost money. Words with
 * the subagent's id ("yes, S-7f3a2b") mean it. A bare yes or no is the answer only where one
 * question is open, nothing else waits, and the person had that question before them: it did not
 * come up while they were typing, and Ava has asked nothing since. Her explanations change nothing.
 * A quote that Ava made after the question was shown last, and is answered as ever. In all other
 * cases nothing is done, and Ava is told to ask. The words go the way of `ava steer`, bound to that
 * one question: the runtime parses them there once more.
 *
 * What can fail is memory, and the run: it may have ended, or ask something else by now; Ava is
 * told. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/prompt.h"
#include "ava/answer.h"
#include "ava/proposal.h"
#include "ava/ops.h"
#include "ava/talk.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "subagent/person.h"
#include "subagent/rights.h"

#define MEANT_MAX   16
#define SEEN_MS     1000 /* a quote or question this shortly before the words was not read */
#define NUMBER_LAST 63   /* bit of "the last": the newest quote */
#define FAILED      "The person's " NOTICE_FAILED

/* A person's words without the names in them, which the parser does not know: "S-7f3a2b: yes", "yes
 * to P-19c0de and P-20aaff" and "yes, for all of them" are "yes". */
struct talk_answer_heard {
	char *plain;                   /* owned */
	char proposals[MEANT_MAX][24]; /* ids of the proposals that the words name */
	char run[24];                  /* the run that was named last */
	unsigned nproposals, nruns;
	uint64_t numbers; /* "the second": a bit for each number, from 1 */
	bool all;         /* "all" or "both" was said */
	bool greeted;     /* words stand before "all", as in "hi all" */
	bool both;        /* "both" was said: names none of more than two */
	bool none;        /* "neither": no to all */
	bool pointed;     /* a word of its task names one: "the review", "the kettle one" */
	bool corrected;   /* "no, the second": a correction, hardly a no to the second */
};

/* Proposals and questions of this conversation that were open when the input was said. */
struct waits {
	char ids[MEANT_MAX][24];        /* ids of the proposals that can be meant */
	unsigned nids, proposals, asks; /* ids in use; open proposals; runs that ask */
	unsigned gone;                  /* proposals open when the words came, but not now */
	bool group;                     /* a proposal of several runs is among them */
	const char *unseen;             /* a proposal made while the person was typing; or NULL */
	bool unknown;                   /* the words name a proposal that is not open here */
	int64_t quoted_ms, asked_ms;    /* wall times of the newest proposal and newest question */
	const struct run *run;          /* the run that is named, or the newest that asks */
	const struct question *q;
};

/* ---- names in the words */

/* Length of the "P-19c0de" or "S-7f3a2b" at `at`, whose normal form goes into `id`; 0: none. */
static size_t id_at(const char *at, char id[24])
{
	size_t len;

	if (!strchr("PpSs", *at) || at[1] != '-')
		return 0;
	len = 2 + strspn(at + 2, "0123456789abcdefABCDEF");
	if (len < 8 || len > 23 || isalnum((unsigned char)at[len]))
		return 0;
	for (size_t i = 0; i < len; i++)
		id[i] = (char)(i ? tolower((unsigned char)at[i]) : toupper((unsigned char)at[i]));
	id[len] = 0;
	return len;
}

/* Whether the whole word `word` stands at `at`. */
static bool talk_answer_word_at(const char *at, const char *word)
{
	size_t n = strlen(word);

	return strncasecmp(at, word, n) == 0 && !isalnum((unsigned char)at[n]);
}

static size_t both_at(const char *at)
{
	static const char *const said[] = {"both of them",  "both",       "alle beide", "beide",
					   "tous les deux", "les deux",   "los dos",    "ambos",
					   "tutti e due",   "tutte e due"};

	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		if (talk_answer_word_at(at, said[i]))
			return strlen(said[i]);
	}
	return 0;
}

static size_t all_at(const char *at)
{
	static const char *const said[] = {"all of them", "all", "alle"};
	static const char *const other[] = {"all right", "all good", "all great", "all fine",
					    "all set",   "all cool", "all well"};

	/* "yes, all three" names the rights of one run (subagent/rights.h), not several
	 * proposals. */
	if (talk_answer_word_at(at, "all three") || talk_answer_word_at(at, "alle drei"))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		if (talk_answer_word_at(at, other[i]))
			return 0;
	for (size_t i = 0; i < ARRAY_LEN(said); i++)
		if (talk_answer_word_at(at, said[i]))
			return strlen(said[i]);
	return 0;
}

/* Length of "the second one", "number two", "#2" or "the last" at `at`, its number in *n; 0:
 * none. */
static size_t talk_answer_number_at(const char *at, unsigned *n)
{
	static const char *const ordinals[] = {"first", "second", "third",  "fourth",
					       "fifth", "sixth",  "seventh"};
	static const char *const words[] = {"one", "two", "three", "four", "five", "six", "seven"};
	static const char *const before[] = {"number ", "quote ", "proposal ", "no. ", "nr. ", "#"};
	static const char *const behind[] = {" one", " quote", " proposal"};
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_LEN(ordinals) && len == 0; i++) {
		if (talk_answer_word_at(at, ordinals[i])) {
			*n = (unsigned)i + 1;
			len = strlen(ordinals[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(before) && len == 0; i++) {
		size_t k = strlen(before[i]);

		if (strncasecmp(at, before[i], k) != 0)
			continue;
		if (at[k] >= '1' && at[k] <= '9' && !isalnum((unsigned char)at[k + 1])) {
			*n = (unsigned)(at[k] - '0');
			len = k + 1;
		}
		for (size_t m = 0; m < ARRAY_LEN(words); m++)
			if (talk_answer_word_at(at + k, words[m])) {
				*n = (unsigned)m + 1;
				len = k + strlen(words[m]);
			}
	}
	if (len == 0 && talk_answer_word_at(at, "last")) {
		*n = NUMBER_LAST;
		len = strlen("last");
	}
	for (size_t i = 0; i < ARRAY_LEN(behind) && len > 0; i++)
		if (strncasecmp(at + len, behind[i], strlen(behind[i])) == 0)
			return len + strlen(behind[i]);
	return len;
}

static size_t none_at(const char *at)
{
	static const char *const said[] = {
		"none of them",      "neither of them",  "none",
		"neither",           "keins von beiden", "keine von beiden",
		"keinen von beiden", "aucun des deux",   "ninguno de los dos",
		"nessuno dei due"};

	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		if (talk_answer_word_at(at, said[i]))
			return strlen(said[i]);
	}
	return 0;
}

/* Length of `words` without a trailing joint such as " for" in "yes for P-19c0de". */
static size_t before_joint(const char *words, size_t len)
{
	static const char *const said[] = {" for", " to", " and", " with", " the"};

	while (len > 0 && strchr(" ,:;&\n", words[len - 1]))
		len--;
	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		size_t n = strlen(said[i]);

		if (len > n && strncasecmp(words + len - n, said[i], n) == 0)
			return before_joint(words, len - n);
		if (len == n - 1 && strncasecmp(words, said[i] + 1, len) == 0)
			return 0; /* only a joint is left, as of "the second" */
	}
	return len;
}

static bool corrects(const char *words, size_t len)
{
	return len > 2 && strncasecmp(words, "no,", 3) == 0 && before_joint(words, len) == 2;
}

static void hear_id(struct talk_answer_heard *h, const char *id)
{
	if (*id == 'S') {
		h->nruns += strcmp(h->run, id) != 0;
		memcpy(h->run, id, sizeof(h->run));
		return;
	}
	for (unsigned i = 0; i < h->nproposals; i++)
		if (strcmp(h->proposals[i], id) == 0)
			return;
	if (h->nproposals < MEANT_MAX)
		memcpy(h->proposals[h->nproposals++], id, sizeof(h->proposals[0]));
}

/* `all`: several proposals can be named, by number or together; a run is never named so.
 * AVA_ENOMEM. */
static int talk_answer_hear(const char *text, bool all, struct talk_answer_heard *h)
{
	size_t n = 0, len;
	unsigned number;
	char id[24];

	*h = (struct talk_answer_heard){.plain = malloc(strlen(text) + 2)};
	if (!h->plain)
		return AVA_ENOMEM;
	len = strspn(text, " \t\r\n#");
	number = (unsigned)(text[len] - '0');
	if (all && number - 1 < 9 && !text[len + 1 + strspn(text + len + 1, ".) \t\r\n")]) {
		h->numbers = UINT64_C(1) << number;
		h->plain[0] = 0;
		return 0;
	}
	for (const char *at = text + strspn(text, " \t\r\n"); *at;) {
		bool word = at == text || !isalnum((unsigned char)at[-1]);

		if (word && (len = id_at(at, id)) > 0) {
			hear_id(h, id);
		} else if (all && word && (len = both_at(at)) > 0) {
			h->all = h->both = true;
			h->greeted = n > 0;
		} else if (all && word && (len = all_at(at)) > 0) {
			h->all = true;
			h->greeted = n > 0;
		} else if (all && word && (len = none_at(at)) > 0) {
			h->none = true;
		} else if (all && word && (len = talk_answer_number_at(at, &number)) > 0) {
			h->numbers |= UINT64_C(1) << number;
			h->corrected |= corrects(h->plain, n);
		} else {
			h->plain[n++] = *at++;
			continue;
		}
		n = before_joint(h->plain, n);
		at += len;
		at += strspn(at, " ,:;");
		if (n > 0)
			h->plain[n++] = ' ';
	}
	while (n > 0 && isspace((unsigned char)h->plain[n - 1]))
		n--;
	h->plain[n] = 0;
	return 0;
}

/* ---- what waits */

static const struct question *asks_here(const struct talk *t, const struct input *in,
					const struct run *r)
{
	const struct question *q = person_question(r);

	return q && strcmp(r->spec->session_id, t->session->id) == 0 && !r->agent.ending &&
			       q->asked_ms <= in->said_ms
		       ? q
		       : NULL;
}

/* The number of the journal under which the input was said. */
static uint64_t talk_answer_number_of(const struct input *in)
{
	return strtoull(in->id, NULL, 16);
}

/* The proposal was open in this conversation when the input was said, even if it was settled since:
 * words that wait for Ava's turn to end must not answer proposals that are left by then. */
static bool waited(const struct talk *t, const struct input *in, const struct proposal *p)
{
	bool since = p->settled_lsn == 0 || p->settled_lsn > talk_answer_number_of(in);

	return since && p->step != STEP_WRITING && strcmp(p->session, t->session->id) == 0 &&
	       p->created_ms <= in->said_ms;
}

static struct waits find_waits(const struct talk *t, const struct input *in,
			       const struct talk_answer_heard *h)
{
	struct core *c = t->session->core;
	struct waits w = {0};
	unsigned all = 0;

	LIST_EACH (&c->proposal_order, node, tmp) {
		struct proposal *p = LIST_ENTRY(node, struct proposal, node);
		bool meant = h->nproposals == 0 && h->numbers == 0;

		if (!waited(t, in, p))
			continue;
		all++;
		/* A proposal that an earlier message answered is known to the person: do not count
		 * it. */
		w.gone += p->step != STEP_PENDING && !p->said_here;
		if (p->step != STEP_PENDING)
			continue;
		w.proposals++;
		w.group |= p->n > 1;
		w.quoted_ms = MAX(w.quoted_ms, p->created_ms);
		for (unsigned i = 0; i < h->nproposals; i++)
			meant |= strcmp(h->proposals[i], p->id) == 0;
		meant |= p->number < NUMBER_LAST && (h->numbers >> p->number & 1);
		meant |= all == 1 && (h->numbers >> NUMBER_LAST & 1); /* the newest comes first */
		if (h->nproposals == 0 && meant && p->created_ms > in->seen_ms) {
			w.unseen = p->id;
			meant = false;
		}
		if (meant && w.nids < MEANT_MAX)
			memcpy(w.ids[w.nids++], p->id, sizeof(w.ids[0]));
	}
	/* Every proposal that the words name must be open; else none is meant. */
	w.unknown = h->nproposals + (unsigned)__builtin_popcountll(h->numbers) > w.nids;
	if (w.unknown)
		w.nids = 0;
	LIST_EACH (&c->sup.live, node, tmp) {
		const struct run *r = LIST_ENTRY(node, struct run, node);
		const struct question *q = asks_here(t, in, r);

		if (!q || (w.asks++ > 0 && q->asked_ms < w.asked_ms))
			continue;
		w.run = r;
		w.q = q;
		w.asked_ms = q->asked_ms;
	}
	return w;
}

/* The one open proposal whose task has this word; NULL: none, or several. */
static const struct proposal *talk_answer_has_word(const struct talk *t, const char *word,
						   size_t len)
{
	struct core *c = t->session->core;
	const struct proposal *found = NULL;

	LIST_EACH (&c->proposal_order, node, tmp) {
		const struct proposal *p = LIST_ENTRY(node, struct proposal, node);
		bool has = false;

		if (p->step != STEP_PENDING || strcmp(p->specs[0]->session_id, t->session->id) != 0)
			continue;
		for (unsigned i = 0; i < p->n; i++)
			for (const char *at = p->specs[i]->task; *at && !has; at++)
				has = strncasecmp(at, word, len) == 0 &&
				      !isalnum((unsigned char)at[len]) &&
				      (at == p->specs[i]->task || !isalnum((unsigned char)at[-1]));
		if (has && found)
			return NULL;
		found = has ? p : found;
	}
	return found;
}

/* Takes out words that stand in the task of one quote alone, as in "start the review": they name
 * it. Words of several tasks name none. */
static void hear_task(const struct talk *t, struct talk_answer_heard *h)
{
	static const char marks[] = " ,:;!\n";
	const struct proposal *named = NULL, *p;
	char *plain = malloc(strlen(h->plain) + 1), word[64];
	bool one = plain != NULL;
	size_t n = 0, len;

	for (const char *at = h->plain; one && *at; at += len) {
		len = MAX(strcspn(at, marks), 1u);
		snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), at);
		p = len < 3 || answer_word(word) ? NULL : talk_answer_has_word(t, at, len);
		if (!p) {
			memcpy(plain + n, at, len);
			n += len;
			continue;
		}
		one = !named || named == p;
		named = p;
		h->corrected |= corrects(plain, n);
		n = before_joint(plain, n);
		h->pointed = talk_answer_word_at(at + len, " one");
		len += h->pointed ? strlen(" one") : 0;
	}
	if (!named || !one) {
		free(plain);
		return;
	}
	plain[n] = 0;
	h->pointed |= talk_answer_word_at(h->plain, "the") ||
		      talk_answer_word_at(h->plain, "just"); /* "the review": named by its task */
	free(h->plain);
	h->plain = plain;
	hear_id(h, named->id);
}

/* ---- carrying it out */

static bool talk_answer_out_of_memory(struct talk *t)
{
	talk_note(t, "", FAILED "out of memory.");
	return false;
}

/* NULL: no memory. */
static struct op_answer *answering(struct talk *t, struct input *in, unsigned n, bool outlives)
{
	struct op_answer *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	*a = (struct op_answer){.in = in, .left = n, .outlives = outlives};
	in->answer = a;
	t->answering = true;
	return a;
}

static void talk_answer_answered(struct op_answer *a)
{
	struct input *in = a->in;
	struct talk *t;

	if (--a->left > 0)
		return;
	free(a);
	if (!in)
		return; /* the conversation is closed */
	t = in->talk;
	in->answer = NULL;
	t->answering = false;
	os_defer(t->run.sup->loop, &t->pump);
}

/* "stop" in answer to a quote may have meant a run at work: tell Ava to ask. */
static void tell_at_work(struct talk *t)
{
	const struct run *first = NULL;
	unsigned n = 0;

	LIST_EACH (&t->session->core->sup.live, node, tmp) {
		const struct run *r = LIST_ENTRY(node, struct run, node);

		if (strcmp(r->spec->session_id, t->session->id) != 0 || r->agent.ending)
			continue;
		first = first ? first : r;
		n++;
	}
	if (n == 1)
		talk_note(t, "",
			  "%s is still at work" NOTICE_AT_WORK ". Ask whether it shall stop.",
			  first->id.text);
	else if (n > 1)
		talk_note(t, "",
			  "%u subagents are still at work" NOTICE_AT_WORK ". Ask which shall stop.",
			  n);
}

static void told_rights(int rv, void *user)
{
	(void)rv; /* the line was for the person; Ava has a notice */
	(void)user;
}

/* Tells the person why a plain yes does not suffice, whatever Ava makes of it. */
static void tell_rights(struct talk *t, const char *why)
{
	const struct session *s = t->session;
	struct draft *d = draft_new(&s->core->book);
	struct buf b;
	struct jw w;

	if (!d)
		return;
	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "class", "answer");
	jw_str(&w, "message", why);
	jw_end(&w);
	core_event(s->core, d, EVENT_Error, s->id, s->user, &b);
	(void)draft_commit(d, JOURNAL_RIDE, told_rights, NULL, NULL);
}

static void decided(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		    void *user)
{
	struct op_answer *a = user;

	if (rv != 0)
		talk_note(a->in->talk, "", FAILED "%.300s", err->text);
	if (rv != 0 && strstr(err->text, RIGHTS_SENTENCE))
		tell_rights(a->in->talk, err->text);
	else if (rv == 0 && a->left == 1 && a->stops)
		tell_at_work(a->in->talk);
	talk_answer_answered(a);
}

/* "1 (P-19c0de): find main; 2 (P-20aaff): find …" */
static void list_open(const struct talk *t, char *out, size_t size)
{
	struct core *c = t->session->core;
	size_t n = 0;

	*out = 0;
	for (struct list *node = c->proposal_order.prev; node != &c->proposal_order && n < size;
	     node = node->prev) { /* oldest first */
		const struct proposal *p = LIST_ENTRY(node, struct proposal, node);

		if (p->step != STEP_PENDING || strcmp(p->specs[0]->session_id, t->session->id) != 0)
			continue;
		n += (size_t)snprintf(
			out + n, size - n, "%s%u (%s): %.*s", n ? "; " : "", p->number, p->id,
			(int)utf8_prefix(p->specs[0]->task, strlen(p->specs[0]->task), 80),
			p->specs[0]->task);
	}
}

static bool is_stop(const char *words)
{
	static const char *const stops[] = {"cancel", "stop", "abort", "kill", "quit", "exit"};

	for (size_t i = 0; i < ARRAY_LEN(stops); i++)
		if (strcasestr(words, stops[i]))
			return true;
	return false;
}

/* Carries out plain words that the parser understands. */
static bool talk_answer_decide(struct talk *t, struct input *in, const struct waits *w,
			       const char *words)
{
	struct op_answer *a;
	char open[800];

	if (w->unseen) {
		talk_note(t, "",
			  "Nothing was started: %s came up while the person was typing. Ask "
			  "whether they mean it.",
			  w->unseen);
		return false;
	}
	if (w->nids == 0) {
		list_open(t, open, sizeof(open));
		talk_note(t, "", FAILED "%s: ask which one is meant. " NOTICE_WAIT "%s.",
			  w->unknown ? "the proposal they name does not wait for an answer here"
			  : w->gone  ? "several proposals waited when it was said, not all of them "
				       "do now, and the words name none"
				     : "several proposals wait and the words name none",
			  open);
		return false;
	}
	a = answering(t, in, w->nids, false);
	if (!a)
		return talk_answer_out_of_memory(t);
	a->stops = is_stop(words);
	for (unsigned i = 0; i < w->nids; i++)
		proposal_said(t->session->core, w->ids[i], words, t->session->user, in->origin,
			      decided, a);
	return true;
}

static void passed_on(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	struct op_answer *a = user;

	if (a->in && rv != 0)
		talk_note(a->in->talk, "", FAILED "%.300s", err->text);
	else if (a->in)
		talk_note(a->in->talk, "", "The person's answer went to %s (call %s): it goes on.",
			  s->run, s->call_id);
	talk_answer_answered(a);
}

static bool pass_on(struct talk *t, struct input *in, const struct waits *w, const char *words)
{
	struct op_steer o = {
		.run = w->run->id.text,
		.text = words,
		.call_id = w->q->call_id,
		.by = t->session->user,
		.origin = in->origin,
	};
	struct op_answer *a = answering(t, in, 1, true);

	if (!a)
		return talk_answer_out_of_memory(t);
	ops_steer(t->session->core, &o, passed_on, a);
	return true;
}

/* Ava asked something else in a later turn than that of the quote, which bare words may answer. In
 * the quote's own turn her question is taken to be about the quote. */
static bool asked_else(const struct talk *t, const struct input *in, const struct waits *w)
{
	return t->asks == ASKS_ELSE && t->turn_ms > w->quoted_ms && t->spoke_ms >= t->turn_ms &&
	       t->spoke_ms <= in->said_ms;
}

static void doubt(struct talk *t, const struct waits *w)
{
	const char *run = w->run->id.text;

	if (w->asks + w->proposals > 1)
		talk_note(t, "",
			  NOTICE_UNDONE
			  "%u subagents ask the person something and %u "
			  "proposals wait, and the words name none of them. Ask which one is "
			  "meant; \"yes, %s\" or \"no, %s\" answers that one.",
			  w->asks, w->proposals, run, run);
	else
		talk_note(t, "",
			  NOTICE_UNDONE
			  "%s asks the person something, and it is not clear that the words answer "
			  "that. Ask what is meant; \"yes, %s\" or \"no, %s\" answers it.",
			  run, run, run);
}

/* ---- the words as an answer to a run that asks */

static bool is_choice(const struct question *q, const char *words)
{
	char *choice = person_choice(q, words);

	free(choice);
	return choice != NULL;
}

/* The place behind the quotation that begins at `at`; NULL: none begins, or it does not end in this
 * paragraph. */
static const char *behind_quoted(const char *at, const char *end)
{
	static const char *const marks[][2] = {
		{"\"", "\""}, {"`", "`"}, {"“", "”"}, {"„", "“"}, {"«", "»"}};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		size_t n = strlen(marks[i][0]), len;
		const char *stop, *close;

		if ((size_t)(end - at) <= n || memcmp(at, marks[i][0], n) != 0)
			continue;
		len = (size_t)(end - at) - n;
		stop = memmem(at + n, len, "\n\n", 2);
		len = stop ? (size_t)(stop - at) - n : len;
		close = memmem(at + n, len, marks[i][1], strlen(marks[i][1]));
		if (close)
			return close + strlen(marks[i][1]);
	}
	return NULL;
}

/* Whether one of `words` begins at `at`, in any case. */
static bool any_at(const char *at, const char *end, const char *const words[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((size_t)(end - at) >= strlen(words[i]) &&
		    strncasecmp(at, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

enum talk_asks talk_asks(const char *text, size_t len)
{
	static const char *const marks[] = {"?", "\xef\xbc\x9f", "\xd8\x9f"}; /* or wide, Arabic */
	static const char *const quote[] = {
		"P-",     "quote",   "proposal", "start",    "begin", "proceed", "go ahead",
		"launch", "confirm", "angebot",  "loslegen", "devis", "lance",   "commenc",
		"inici",  "empez",   "empiez",   "avvi",     "iniz"};
	const char *end = text + len, *behind;
	bool asks = false, of_quote = false;

	for (const char *at = text; at < end; at = behind ? behind : at + 1) {
		behind = behind_quoted(at, end);
		asks |= !behind && any_at(at, end, marks, ARRAY_LEN(marks));
		of_quote |= (at == text || !isalnum((unsigned char)at[-1])) &&
			    any_at(at, end, quote, ARRAY_LEN(quote));
	}
	return !asks ? ASKS_NOTHING : of_quote ? ASKS_OF_QUOTE : ASKS_ELSE;
}

enum talk_answer_said { SAID_NOTHING, SAID_ANSWER, SAID_STOP, SAID_CHANGE };

/* `q` NULL: several questions are open. Words such as "stop" are a no to the parser, but mean the
 * run itself: SAID_STOP. */
static enum talk_answer_said said_to(const struct question *q, const char *words)
{
	struct change change;

	if (q && q->choices)
		return is_choice(q, words) ? SAID_ANSWER : SAID_NOTHING;
	if (q && q->approval && strncasecmp(words, "no:", 3) == 0)
		return SAID_ANSWER; /* a no with its reason, which the model reads */
	switch (answer_parse(words, &change)) {
	case ANSWER_NO:
		return is_stop(words) ? SAID_STOP : SAID_ANSWER;
	case ANSWER_YES:
		return SAID_ANSWER;
	case ANSWER_YES_WITH:
	case ANSWER_CHANGE:
		return SAID_CHANGE;
	case ANSWER_UNCLEAR:
		break;
	}
	return SAID_NOTHING;
}

enum talk_answer_reply {
	REPLY_NONE,  /* the words answer no subagent */
	REPLY_TAKEN, /* the words are being passed on */
	REPLY_DOUBT  /* nothing is done: Ava is told to ask which one is meant */
};

static enum talk_answer_reply to_question(struct talk *t, struct input *in, struct waits *w,
					  const struct talk_answer_heard *h)
{
	bool last, of_others;
	enum talk_answer_said said;

	if (w->asks == 0 || h->nproposals > 0)
		return REPLY_NONE;
	if (h->nruns > 0) {
		w->run = h->nruns == 1 ? supervisor_find(&t->session->core->sup, h->run) : NULL;
		w->q = w->run ? asks_here(t, in, w->run) : NULL;
		if (!w->q)
			return REPLY_NONE;
	}
	said = said_to(h->nruns > 0 || w->asks == 1 ? w->q : NULL, h->plain);
	/* The person had this one question before them: a yes to "shall I stop it?" must not allow
	 * what the subagent asks for. */
	last = w->asks == 1 && w->proposals + w->gone == 0 &&
	       t->asked_lsn <= talk_answer_number_of(in) &&
	       (!t->asks || t->spoke_ms < w->asked_ms) && in->said_ms - w->asked_ms >= SEEN_MS;
	/* Words about a quote, or for Ava herself: a quote newer than the question was shown last,
	 * and only a quote can be changed. */
	of_others = w->proposals == 0 ? said == SAID_STOP
				      : said == SAID_CHANGE || w->quoted_ms > w->asked_ms;
	if (said == SAID_ANSWER && (h->nruns > 0 || last))
		return pass_on(t, in, w, h->plain) ? REPLY_TAKEN : REPLY_DOUBT;
	if (h->nruns > 0 || said == SAID_NOTHING || of_others)
		return REPLY_NONE;
	doubt(t, w);
	return REPLY_DOUBT;
}

static bool talk_answer_names(const struct talk_answer_heard *h)
{
	return h->nproposals > 0 || h->numbers != 0 || h->all || h->none;
}

/* Words with neither yes nor no: "", "please", "thanks". */
static bool polite(const char *words)
{
	char yes[ANSWER_BYTES_MAX + 8];
	struct change change;

	snprintf(yes, sizeof(yes), "yes, %s", words);
	return !*words || (strlen(words) < ANSWER_BYTES_MAX &&
			   answer_parse(words, &change) == ANSWER_UNCLEAR &&
			   answer_parse(yes, &change) == ANSWER_YES);
}

/* The answer that words about a named proposal give; "": none for certain. Asked which one to
 * start, a person says "the second, please", "both", or "the second, but max 30 cents"; "not the
 * second" is a no, "not both" and "the first, not the second" are neither. */
static const char *meant(const struct talk_answer_heard *h, const struct waits *w,
			 char yes[ANSWER_BYTES_MAX])
{
	bool which = (h->numbers || h->pointed || (h->all && !h->greeted)) &&
		     (w->proposals + w->gone > 1 || w->group);

	if (h->corrected)
		return "";
	if (polite(h->plain) && h->none)
		return "no";
	if (polite(h->plain) && which)
		return "yes";
	if (which &&
	    (talk_answer_word_at(h->plain, "but") || talk_answer_word_at(h->plain, "aber")) &&
	    strlen(h->plain) + sizeof("yes, ") <= ANSWER_BYTES_MAX) {
		snprintf(yes, ANSWER_BYTES_MAX, "yes, %s", h->plain);
		return yes;
	}
	if (__builtin_popcountll(h->numbers) == 1 && strcasecmp(h->plain, "not") == 0)
		return "no";
	return h->plain;
}

bool talk_answer(struct talk *t, struct input *in)
{
	char yes[ANSWER_BYTES_MAX];
	struct change change;
	struct talk_answer_heard heard;
	struct waits w;
	const char *words;
	enum answer answer;
	enum talk_answer_reply reply;
	bool taken;

	in->looked = true;
	if (talk_answer_hear(in->text, false, &heard) != 0)
		return talk_answer_out_of_memory(t);
	w = find_waits(t, in, &heard);
	reply = to_question(t, in, &w, &heard);
	free(heard.plain);
	if (reply != REPLY_NONE || w.proposals == 0 || heard.nruns > 0)
		return reply == REPLY_TAKEN;
	if (talk_answer_hear(in->text, true, &heard) != 0)
		return talk_answer_out_of_memory(t);
	if (w.proposals > 1 && w.gone == 0 && !talk_answer_names(&heard))
		hear_task(t, &heard);
	w = find_waits(t, in, &heard);
	if (w.nids + w.gone > 1 &&
	    (!talk_answer_names(&heard) || (heard.both && w.nids + w.gone > 2)))
		w.nids = 0;
	words = meant(&heard, &w, yes);
	answer = answer_parse(words, &change);
	if (!talk_answer_names(&heard) && w.nids == 1 && asked_else(t, in, &w) &&
	    (answer == ANSWER_YES || (answer == ANSWER_NO && !is_stop(words)))) {
		talk_note(t, "",
			  NOTICE_UNDONE
			  "%s waits for a yes or no, but you have asked something else since, and "
			  "the words may answer that. If that is not clear, ask whether they mean "
			  "%s; \"yes, %s\" starts it.",
			  w.ids[0], w.ids[0], w.ids[0]);
		answer = ANSWER_UNCLEAR;
	}
	taken = answer != ANSWER_UNCLEAR && talk_answer_decide(t, in, &w, words);
	free(heard.plain);
	return taken;
}
