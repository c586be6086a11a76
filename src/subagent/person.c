/* People and runs.
 *
 * A question: its event (Waiting, asked) rides; the answer goes to the machine,
 * which makes the call's result of it, and person_ask_end commits the outcome
 * (Steering, Waiting) before the run goes on. A message: its event (Steering,
 * queued) is committed, then the machine hears of it and takes it along with
 * the next results (Steering, delivered), or the end comes first (too_late).
 *
 * Texts of people and models are redacted on the way in, like all that goes
 * into a conversation. What can fail: memory, before anything is said to be
 * kept; a run that stops leaves nobody waiting for an answer. */
#include "subagent/person.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/prompt.h"
#include "agent/tool.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "base/words.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "subagent/record.h"
#include "subagent/run.h"

#define ARGS_SHOWN    1500 /* characters of the arguments of a call that needs a yes */
#define CHOICES_BYTES (64u << 10)

struct person_said { /* a person's words on their way to the disk, or to the model */
	struct list node;
	char id[16]; /* "m3" of a message; "": an answer */
	char *text, *by, *origin, *notice, *request;
	bool late;  /* the run's end was written meanwhile */
	bool waits; /* the words leave the question open */
	person_fn done;
	void *user;
};

struct person_hearing { /* a request id, so that a repeated request is taken once */
	struct list node;
	struct person_heard what;
	char request[];
};

struct person {
	struct question question;
	bool open;                  /* `question` is open */
	struct question before;     /* the question that a stop left open; call_id "": none */
	struct person_said *answer; /* answer to `question`, until person_ask_end; NULL: none */
	struct list answering;      /* ends of questions on their way to the disk, in order */
	struct list saying;         /* messages on their way to the disk */
	struct list said;           /* messages on disk that the model was not told */
	unsigned nsaid;             /* number of `saying` and `said` */
	unsigned last_id;
	struct list heard; /* request ids that were heard, oldest first */
	unsigned nheard;
};

static struct person *person_of(struct run *r)
{
	struct person *p = r->person;

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (p) {
		list_init(&p->answering);
		list_init(&p->saying);
		list_init(&p->said);
		list_init(&p->heard);
		r->person = p;
	}
	return p;
}

static void said_free(struct person_said *s)
{
	if (!s)
		return;
	list_del(&s->node);
	free(s->text);
	free(s->by);
	free(s->origin);
	free(s->notice);
	free(s->request);
	free(s);
}

static void said_done(struct person_said *s, int rv)
{
	if (s->done)
		s->done(rv, s->id, s->user);
	said_free(s);
}

/* A copy of `text` without secrets, at most `max` characters; NULL: out of memory. */
static char *person_clean(const struct run *r, const char *text, size_t max)
{
	struct buf b;
	char *copy = NULL;
	int rv;

	buf_init(&b, 1u << 20);
	rv = redact_text(r->rec.outbox.lb->redact, &b, text, strlen(text));
	if (rv >= 0)
		copy = strndup(b.data ? b.data : "", utf8_prefix(b.data ? b.data : "", b.len, max));
	buf_fini(&b);
	return copy;
}

/* A copy of choices, a JSON array, without secrets; NULL: out of memory. */
static char *clean_choices(const struct run *r, const char *json)
{
	struct buf b;
	char *copy = NULL;

	buf_init(&b, CHOICES_BYTES);
	if (redact_json(r->rec.outbox.lb->redact, &b, json, strlen(json)) >= 0 && b.data)
		copy = strdup(b.data);
	buf_fini(&b);
	return copy;
}

static void question_fini(struct question *q)
{
	free(q->text);
	free(q->choices);
	free(q->fallback);
	*q = (struct question){0};
}

static void question_over(struct run *r)
{
	struct person *p = r->person;

	p->open = false;
	question_fini(&p->question);
}

/* The message as the model reads it. */
static char *notice_of(const struct person_said *s)
{
	struct buf text, line;
	char *out = NULL;

	buf_init(&text, 64u << 10);
	buf_init(&line, 64u << 10);
	buf_adds(&text, "A person says: ");
	if (notice_escape(&text, s->text, strlen(s->text)) == 0 &&
	    notice_format(&line, text.data) == 0)
		out = buf_take(&line, NULL);
	buf_fini(&text);
	buf_fini(&line);
	return out;
}

static struct person_said *said_new(const struct run *r, const struct person_words *w,
				    person_fn done, void *user)
{
	struct person_said *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	list_init(&s->node);
	s->text = person_clean(r, w->text, PERSON_TEXT_MAX);
	s->by = strdup(w->by ? w->by : "");
	s->origin = strdup(w->origin ? w->origin : "");
	s->request = strdup(w->request_id ? w->request_id : "");
	s->notice = s->text ? notice_of(s) : NULL;
	s->done = done;
	s->user = user;
	if (s->notice && s->by && s->origin && s->request)
		return s;
	said_free(s);
	return NULL;
}

static int person_check_text(const char *text, struct ava_error *err)
{
	size_t len = strlen(text);

	if (!utf8_valid(text, len))
		return err_set(err, AVA_EINVAL, "the text is not valid UTF-8");
	if (text[strspn(text, " \t\r\n")] == 0)
		return err_set(err, AVA_EINVAL, "the text is empty: say what the run shall know");
	if (utf8_prefix(text, len, PERSON_TEXT_MAX) < len)
		return err_set(
			err, AVA_EINVAL,
			"the text has more than %d characters: put the rest into a file that "
			"the run can read",
			PERSON_TEXT_MAX);
	return 0;
}

/* ---- request ids */

static struct person_hearing *heard_find(const struct run *r, const char *request_id)
{
	if (!r->person || !request_id || !*request_id)
		return NULL;
	LIST_EACH (&r->person->heard, at, tmp) {
		struct person_hearing *h = LIST_ENTRY(at, struct person_hearing, node);

		if (strcmp(h->request, request_id) == 0)
			return h;
	}
	return NULL;
}

bool person_heard(const struct run *r, const char *request_id, struct person_heard *out)
{
	const struct person_hearing *h = heard_find(r, request_id);

	if (h)
		*out = h->what;
	return h != NULL;
}

static void heard_free(struct person *p, struct person_hearing *h)
{
	list_del(&h->node);
	p->nheard--;
	free(h);
}

int person_restore_heard(struct run *r, const char *request_id, const struct person_heard *was)
{
	struct person *p = person_of(r);
	size_t len = strlen(request_id);
	struct person_hearing *h;

	if (!p)
		return AVA_ENOMEM;
	if (len == 0 || heard_find(r, request_id))
		return 0;
	h = calloc(1, sizeof(*h) + len + 1);
	if (!h)
		return AVA_ENOMEM;
	memcpy(h->request, request_id, len + 1);
	h->what = *was;
	list_add(&p->heard, &h->node);
	if (++p->nheard > PERSON_HEARD_MAX)
		heard_free(p, LIST_FIRST(&p->heard, struct person_hearing, node));
	return 0;
}

/* Remember the request id, so that a repeated request is not taken again. Without memory
 * for it the words count as sent without an id. */
static void person_hear(struct run *r, const struct person_said *s, const char *call_id)
{
	struct person_heard h = {.steer_id = ""};

	snprintf(h.steer_id, sizeof(h.steer_id), "%s", s->id);
	snprintf(h.call_id, sizeof(h.call_id), "%s", call_id);
	(void)person_restore_heard(r, s->request, &h);
}

/* ---- questions */

const struct question *person_question(const struct run *r)
{
	const struct person *p = r->person;

	return p && p->open && !p->answer ? &p->question : NULL;
}

const char *person_bare(const char *text, size_t *len)
{
	static const char *const behind[] = {" please", " one", ",", ".", "!", " ", "\n"};
	bool more = true;

	text += strspn(text, " \t\r\n");
	text += strncasecmp(text, "the ", 4) == 0 ? 4 : 0;
	*len = strlen(text);
	while (more) {
		more = false;
		for (size_t i = 0; i < ARRAY_LEN(behind); i++) {
			size_t n = strlen(behind[i]);

			if (*len > n && strncasecmp(text + *len - n, behind[i], n) == 0) {
				*len -= n;
				more = true;
			}
		}
	}
	return text;
}

char *person_choice(const struct question *q, const char *text)
{
	json_t *choices = q->choices ? json_parse(q->choices, strlen(q->choices), NULL) : NULL;
	const char *bare, *word = NULL, *numbered = NULL;
	char number[24], *copy;
	const json_t *v;
	size_t i, len;

	bare = person_bare(text, &len);
	json_array_foreach(choices, i, v)
	{
		const char *s = json_is_string(v) ? json_string_value(v) : "";

		snprintf(number, sizeof(number), "%zu", i + 1);
		if (strcasecmp(s, text) == 0 ||
		    (strlen(s) == len && len > 0 && strncasecmp(s, bare, len) == 0))
			word = s;
		if (strlen(number) == len && strncmp(number, bare, len) == 0)
			numbered = s;
	}
	/* Words before numbers: among the choices "2" and "4", the answer "2" is the first. */
	word = word ? word : numbered;
	copy = word && *word ? strdup(word) : NULL;
	json_decref(choices);
	return copy;
}

/* The question about a call that needs a yes. What is left out is said first, where no door cuts.
 */
static char *approval_text(const struct turn_call *c)
{
	size_t shown = utf8_prefix(c->args, c->args_len, ARGS_SHOWN);
	bool cut = shown < c->args_len;
	char *text = NULL;

	if (asprintf(&text, "%sMay it call %s with %.*s%s?", cut ? WORDS_NOT_WHOLE " " : "",
		     c->name, (int)shown, c->args, cut ? "…" : "") < 0)
		return NULL;
	return text;
}

bool person_cut(const struct question *q)
{
	return q->approval && strncmp(q->text, WORDS_NOT_WHOLE, strlen(WORDS_NOT_WHOLE)) == 0;
}

/* ---- on_limit: ask. A run that has used up its money, tokens or replies asks before it
 * ends with what it has; a yes gives it as much again. The new limit is an amendment
 * of the spec in messages.jsonl, in one commit with the answer: the next start reads
 * it there, and a run that was killed in between comes to the limit and asks again. */

static int64_t twice(int64_t n)
{
	return n > INT64_MAX / 2 ? INT64_MAX : 2 * n;
}

static void over_limit_question(const struct run *r, char *out, size_t size)
{
	const struct agent_limits *l = &r->spec->agent.limits;
	enum agent_resource over = (enum agent_resource)(r->agent.over - 1);
	struct format used = over == AGENT_COST ? words_amount(WORDS_LIMIT_MONEY, l->cost_microusd)
			     : over == AGENT_TOKENS
				     ? words_amount(WORDS_LIMIT_TOKENS, l->tokens)
				     : words_amount(WORDS_LIMIT_REPLIES, l->iterations);

	snprintf(out, size,
		 "It has used its %s. May it use as %s again? (no: it ends with what it has)",
		 used.text, over == AGENT_COST ? "much" : "many");
}

static void over_limit_raise(struct run *r, struct draft *d)
{
	enum agent_resource over = (enum agent_resource)(r->agent.over - 1);
	struct agent_limits *l = &r->spec->agent.limits;
	struct buf *part = commit_messages(r);
	struct jw w;

	if (over == AGENT_COST)
		l->cost_microusd = twice(l->cost_microusd);
	else if (over == AGENT_TOKENS)
		l->tokens = twice(l->tokens);
	else if (over == AGENT_ITERATIONS)
		l->iterations = (int32_t)MIN(twice(l->iterations), (int64_t)INT32_MAX);
	if (!part)
		return;
	spec_line_begin(&w, part, "spec");
	spec_write_limits(&w, "limits", l);
	spec_line_end(&w);
	record_limits(d, r);
}

/* ---- asking */

/* `c` NULL: the run's limit, or its quota. */
static int person_fill(struct run *r, struct question *q, const struct turn_call *c,
		       const struct agent_ask *a)
{
	char *text = a->approval && c ? approval_text(c) : NULL;
	char limit[200];
	struct hash_sha256 h;
	int64_t most = r->sup->settings->ask_timeout_s * 1000;

	*q = (struct question){.approval = a->approval, .asked_ms = clock_wall_ms()};
	if (!c && !a->approval)
		return park_question(r, q);
	if (!c) { /* a question about a limit is named after the model call that it holds up */
		over_limit_question(r, limit, sizeof(limit));
		snprintf(q->call_id, sizeof(q->call_id), "i%d", (int)r->agent.at.iteration + 1);
		hash_sha256_hex(limit, strlen(limit), q->call_hash);
		text = strdup(limit);
	} else {
		memcpy(q->call_id, c->id, sizeof(q->call_id));
		hash_sha256_init(&h); /* the answer holds for this call */
		hash_sha256_add(&h, c->name, strlen(c->name));
		hash_sha256_add(&h, "\n", 1);
		hash_sha256_with(&h, c->args, c->args_len, q->call_hash);
	}
	if (!a->approval || text)
		q->text = person_clean(r, a->approval ? text : a->question, PERSON_TEXT_MAX);
	free(text);
	q->choices = a->choices ? clean_choices(r, a->choices) : NULL;
	q->fallback = a->fallback ? person_clean(r, a->fallback, PERSON_TEXT_MAX) : NULL;
	q->until_ms = q->asked_ms + MIN(a->timeout_ms, most);
	if (q->text && (!a->choices || q->choices) && (!a->fallback || q->fallback))
		return 0;
	question_fini(q);
	return AVA_ENOMEM;
}

static void record_state(struct draft *d, struct run *r, const char *state,
			 const struct person_said *s)
{
	const struct question *q = &r->person->question;

	record_waiting(d, r,
		       &(struct record_waiting){
			       .q = q,
			       .state = state,
			       .answer = s ? s->text : NULL,
			       .by = s ? s->by : NULL,
			       .origin = s ? s->origin : NULL,
		       });
	r->rec.position_due |= q->quota;
}

static void record_said(struct draft *d, struct run *r, const struct person_said *s,
			const char *outcome, const char *call_id)
{
	record_steering(d, r,
			&(struct record_steering){
				.text = s->text,
				.outcome = outcome,
				.steer_id = s->id,
				.call_id = call_id,
				.by = s->by,
				.origin = s->origin,
				.request_id = s->request,
			});
}

/* Was the question asked before a stop and never answered? Then it keeps its time. */
static bool was_asked(struct person *p)
{
	struct question *q = &p->question;
	bool same = strcmp(q->call_id, p->before.call_id) == 0 &&
		    strcmp(q->call_hash, p->before.call_hash) == 0;

	if (same) {
		q->asked_ms = p->before.asked_ms;
		q->until_ms = p->before.until_ms;
	}
	p->before = (struct question){0};
	return same;
}

int person_ask(struct agent *a, unsigned call, const struct agent_ask *ask, int64_t *until_ms)
{
	struct run *r = a->world;
	struct person *p = person_of(r);
	const struct turn_call *c = call >= AGENT_ASK_QUOTA ? NULL : &a->turn->calls[call];
	char shown[sizeof(r->activity)];
	struct draft *d;
	bool before;

	if (!p || person_fill(r, &p->question, c, ask) != 0)
		return AVA_ENOMEM;
	/* A question that a stop left open is on disk already: nothing is written before its
	 * answer, so that ten thousand of them do not slow the start of the runtime. */
	before = was_asked(p);
	if (before && a->over == AGENT_WAITS)
		p->question.until_ms = r->park.until_ms;
	snprintf(shown, sizeof(shown), "Waiting for an answer: %s", p->question.text);
	shown[utf8_prefix(shown, strlen(shown), 120)] = 0;
	run_activity(r, shown);
	if (p->question.quota)
		park_asked(r, before);
	if (!before) {
		d = commit_draft(r);
		if (!d)
			return AVA_ENOMEM;
		record_state(d, r, r->park.quiet && p->question.quota ? "parked" : "asked", NULL);
	}
	p->open = true;
	a->asks_again = false;
	*until_ms = clock_mono_ms() + p->question.until_ms - clock_wall_ms();
	commit_flush(r, JOURNAL_NOW, NULL); /* people see the question once it is on disk */
	if (r->sup->on_ask)
		r->sup->on_ask(r);
	return 0;
}

static void end_saved(int rv, void *user)
{
	struct run *r = user;
	struct person_said *s = LIST_FIRST(&r->person->answering, struct person_said, node);
	bool waits = s->waits;

	said_done(s, 0);
	if (waits)
		return;
	agent_on_saved(&r->agent);
	run_wake(r);
}

void person_ask_end(struct agent *a, unsigned call, enum agent_asked how)
{
	static const char *const states[] = {
		[ASKED_ANSWERED] = "answered",
		[ASKED_REFUSED] = "refused",
		[ASKED_EXPIRED] = "expired",
	};
	struct run *r = a->world;
	struct person *p = r->person;
	struct draft *d = commit_draft(r);
	struct person_said *s = p->answer ? p->answer : calloc(1, sizeof(*s));

	if (!d || !s) {
		/* No memory for the record: the next start takes the run up. */
		r->end.abandoned = true;
		slots_out_of_memory(r);
		run_wake(r);
		return;
	}
	if (p->answer) {
		record_said(d, r, s, "answered", p->question.call_id);
		person_hear(r, s, p->question.call_id);
	} else {
		list_init(&s->node);
	}
	record_state(d, r, states[how], p->answer);
	if (call == AGENT_ASK_LIMIT && how == ASKED_ANSWERED) {
		over_limit_raise(r, d);
		r->rec.position_due = true;
	}
	if (call == AGENT_ASK_QUOTA)
		park_ended(r, how);
	p->answer = NULL;
	question_over(r);
	run_activity(r, "Waiting for a slot");
	list_add(&p->answering, &s->node);
	commit_flush(r, JOURNAL_NOW, end_saved);
}

int person_answer(struct run *r, const struct person_words *w, bool yes, person_fn done, void *user,
		  struct ava_error *err)
{
	struct person_said *s;
	int rv = person_check_text(w->text, err);

	if (rv != 0)
		return rv;
	s = said_new(r, w, done, user);
	rv = s ? agent_on_answer(&r->agent, s->text, yes) : AVA_ENOMEM;
	if (rv != 0) {
		said_free(s);
		return err_set(err, rv, "out of memory");
	}
	r->person->answer = s;
	run_wake(r);
	return 0;
}

int person_wait(struct run *r, const struct person_words *w, person_fn done, void *user,
		struct ava_error *err)
{
	struct person *p = r->person;
	struct draft *d = commit_draft(r);
	struct person_said *s = d ? said_new(r, w, done, user) : NULL;

	if (!s)
		return err_set(err, AVA_ENOMEM, "out of memory");
	s->waits = true;
	record_said(d, r, s, "answered", p->question.call_id);
	person_hear(r, s, p->question.call_id);
	record_state(d, r, "waits", s);
	p->question.until_ms = r->park.until_ms;
	agent_on_wait(&r->agent, park_until(r));
	park_asked(r, true);
	list_add(&p->answering, &s->node);
	commit_flush(r, JOURNAL_NOW, end_saved);
	return 0;
}

/* ---- messages */

static void steer_saved(int rv, void *user)
{
	struct run *r = user;
	struct person *p = r->person;
	struct person_said *s = LIST_FIRST(&p->saying, struct person_said, node);
	person_fn done = s->done;

	list_del(&s->node);
	person_hear(r, s, "");
	if (s->late) {
		said_done(s, 0);
		return;
	}
	s->done = NULL;
	list_add(&p->said, &s->node);
	agent_on_steer(&r->agent);
	if (done)
		done(0, s->id, s->user);
}

int person_steer(struct run *r, const struct person_words *w, person_fn done, void *user,
		 struct ava_error *err)
{
	struct person *p = person_of(r);
	struct draft *d;
	struct person_said *s;
	int rv = person_check_text(w->text, err);

	if (rv != 0)
		return rv;
	if (p && p->nsaid >= PERSON_SAID_MAX)
		return err_set(err, AVA_EBUSY,
			       "run %s has not read %d messages yet: wait until it has", r->id.text,
			       PERSON_SAID_MAX);
	d = commit_draft(r);
	s = p && d ? said_new(r, w, done, user) : NULL;
	if (!s)
		return err_set(err, AVA_ENOMEM, "out of memory");
	snprintf(s->id, sizeof(s->id), "m%u", ++p->last_id);
	record_said(d, r, s, "queued", "");
	list_add(&p->saying, &s->node);
	p->nsaid++;
	commit_flush(r, JOURNAL_NOW, steer_saved);
	return 0;
}

unsigned person_notices(struct run *r, const char **out)
{
	unsigned n = 0;

	if (!r->person)
		return 0;
	LIST_EACH (&r->person->said, at, tmp)
		out[n++] = LIST_ENTRY(at, struct person_said, node)->notice;
	return n;
}

/* Unread messages get their last Steering event: `outcome` "delivered" or "too_late". */
static void person_tell_all(struct run *r, struct draft *d, const char *outcome)
{
	struct person *p = r->person;

	while (!list_empty(&p->said)) {
		struct person_said *s = LIST_FIRST(&p->said, struct person_said, node);

		record_said(d, r, s, outcome, "");
		p->nsaid--;
		said_free(s);
	}
}

void person_told(struct run *r, struct draft *d)
{
	if (r->person)
		person_tell_all(r, d, "delivered");
}

/* ---- after a restart */

int person_restore_question(struct run *r, const json_t *content, int64_t asked_ms)
{
	const char *id = json_get_str(content, "callId"), *hash = json_get_str(content, "callHash");
	const char *until = json_get_str(content, "expiresAt");
	struct person *p = person_of(r);
	int64_t now_ms = clock_wall_ms();

	if (!p)
		return AVA_ENOMEM;
	p->before = (struct question){.asked_ms = MIN(asked_ms, now_ms)};
	snprintf(p->before.call_id, sizeof(p->before.call_id), "%s", id ? id : "");
	snprintf(p->before.call_hash, sizeof(p->before.call_hash), "%s", hash ? hash : "");
	if (until) {
		/* Never longer than its first time: the clock may have been far ahead then. */
		int64_t until_ms = MAX(clock_parse_iso(until, strlen(until)), 0);

		p->before.until_ms = MIN(until_ms, now_ms + MAX(until_ms - asked_ms, 0));
	}
	return 0;
}

bool person_was_asked(const struct run *r)
{
	return r->person && r->person->before.call_id[0];
}

void person_forget_question(struct run *r)
{
	if (r->person)
		r->person->before = (struct question){0};
}

int person_restore_said(struct run *r, const char *id, const json_t *content)
{
	struct person *p = person_of(r);
	const struct person_words w = {.text = json_str(content, "text"),
				       .by = json_str(content, "by"),
				       .origin = json_str(content, "origin")};
	struct person_said *s = p ? said_new(r, &w, NULL, NULL) : NULL;
	unsigned n = 0;

	if (!s)
		return AVA_ENOMEM;
	if (p->nsaid == PERSON_SAID_MAX) { /* ava itself never wrote more */
		said_free(s);
		return 0;
	}
	snprintf(s->id, sizeof(s->id), "%s", id);
	if (sscanf(id, "m%u", &n) == 1)
		p->last_id = MAX(p->last_id, n);
	list_add(&p->said, &s->node);
	p->nsaid++;
	return 0;
}

void person_forget_said(struct run *r, const char *id)
{
	struct person *p = r->person;

	if (!p)
		return;
	LIST_EACH (&p->said, at, tmp) {
		struct person_said *s = LIST_ENTRY(at, struct person_said, node);

		if (strcmp(s->id, id) != 0)
			continue;
		p->nsaid--;
		said_free(s);
	}
}

void person_restored(struct run *r)
{
	if (r->person)
		LIST_EACH (&r->person->said, at, tmp)
			agent_on_steer(&r->agent);
}

/* ---- the end */

void person_close(struct run *r, struct draft *d)
{
	struct person *p = r->person;

	if (!p)
		return;
	if (p->open)
		record_state(d, r, "stopped", NULL);
	question_over(r);
	if (p->answer)
		said_done(p->answer, AVA_ECANCELED);
	p->answer = NULL;
	person_tell_all(r, d, "too_late");
	LIST_EACH (&p->saying, at, tmp) {
		struct person_said *s = LIST_ENTRY(at, struct person_said, node);

		record_said(d, r, s, "too_late", "");
		p->nsaid--;
		s->late = true;
	}
}

static void drop_all(struct list *l)
{
	while (!list_empty(l))
		said_done(LIST_FIRST(l, struct person_said, node), AVA_ECANCELED);
}

void person_free(struct run *r)
{
	struct person *p = r->person;

	if (!p)
		return;
	if (p->answer)
		said_done(p->answer, AVA_ECANCELED);
	drop_all(&p->answering);
	drop_all(&p->saying);
	drop_all(&p->said);
	while (!list_empty(&p->heard))
		heard_free(p, LIST_FIRST(&p->heard, struct person_hearing, node));
	question_fini(&p->question);
	free(p);
	r->person = NULL;
}
