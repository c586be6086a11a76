/* Questions to a person.
 *
 * Happy path: a question's text, choices, default and time are read from the call's arguments
 * (checked against its schema before) and given to the world; the answer becomes the call's
 * result. For a call that needs a yes the answer is leave to start, or a refusal as its result,
 * which the model reads. When nobody answers the default is taken and named as such; without a
 * default, and for a call that needs a yes, the result is a failure that says so. What can fail:
 * memory. */
#include "agent/ask.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "agent/output.h"
#include "agent/tool.h"
#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"

#define CHOICES_MAX (64u << 10)

bool ask_needed(const struct agent *a, const struct turn_call *c)
{
	const struct agent_spec *s = a->spec;

	if (c->answered || c->started || c->approved || c->tool == NULL)
		return false;
	if (c->tool->flags & TOOL_ASKS)
		return true;
	for (unsigned i = 0; i < s->nask_before; i++)
		if (s->ask_before[i] == c->tool)
			return true;
	return false;
}

unsigned ask_open(const struct agent *a, unsigned *first)
{
	const struct turn *t = a->turn;
	unsigned n = 0;

	for (unsigned i = 0; t != NULL && i < t->ncalls; i++)
		if (ask_needed(a, &t->calls[i]) && n++ == 0)
			*first = i;
	return n;
}

void answer_interrupted(struct agent *a)
{
	for (unsigned i = 0; i < a->turn->ncalls; i++) {
		struct turn_call *c = &a->turn->calls[i];

		if (!c->answered && !ask_needed(a, c) && !(c->tool->flags & TOOL_REPEATABLE))
			answer_call(a, c, false, "interrupted",
				    "interrupted: the runtime stopped before there was a result; "
				    "it may have happened");
	}
}

/* ---- the question */

static json_t *args_of(const struct turn_call *c)
{
	return json_parse(c->args, c->args_len, NULL);
}

static int ask_give(struct agent *a, unsigned call, const json_t *args)
{
	const json_t *choices = json_object_get(args, "choices");
	int64_t seconds = json_get_int(args, "timeout", 0);
	struct agent_ask q = {
		.approval = !(a->turn->calls[call].tool->flags & TOOL_ASKS),
		.timeout_ms = INT64_MAX,
	};
	struct buf b;
	int rv = 0;

	buf_init(&b, CHOICES_MAX);
	if (!q.approval) {
		q.question = json_get_str(args, "question");
		q.fallback = json_get_str(args, "default");
		if (seconds > 0)
			q.timeout_ms = seconds * 1000;
		if (json_array_size(choices) > 0) {
			rv = json_dump(&b, choices);
			q.choices = b.data;
		}
	}
	if (rv == 0)
		rv = a->io->ask(a, call, &q, &a->ask_until_ms);
	buf_fini(&b);
	return rv;
}

int ask_start(struct agent *a, unsigned call)
{
	json_t *args = args_of(&a->turn->calls[call]);
	int rv = args != NULL ? ask_give(a, call, args) : AVA_ENOMEM;

	json_decref(args);
	if (rv != 0)
		return rv;
	a->asking = (uint16_t)(call + 1);
	a->ask_given = false;
	return 0;
}

/* ---- the answer */

static const char *ask_print(struct arena *mem, const char *fmt, const char *what,
			     const char *plain)
{
	const char *text = arena_fmt(mem, fmt, what);

	return text != NULL ? text : plain;
}

struct ask_result ask_result(struct arena *mem, bool approval, enum agent_asked how,
			     const char *text)
{
	if (how == ASKED_ANSWERED)
		return (struct ask_result){true, "", text};
	if (how == ASKED_REFUSED)
		return (struct ask_result){
			false, "denied",
			ask_print(mem, "not run: the person was asked and did not allow it: %s",
				  text, "not run: the person was asked and did not allow it")};
	if (approval)
		return (struct ask_result){
			false, "timeout",
			"not run: it needs a person's yes, and nobody answered in time"};
	if (text == NULL)
		return (struct ask_result){
			false, "timeout",
			"nobody answered in time: go on without, and say so in the caveats"};
	return (struct ask_result){
		true, "",
		ask_print(mem, "%s\n(nobody answered in time: this is the default you gave)", text,
			  "nobody answered in time: take the default you gave")};
}

static void give_result(struct agent *a, struct turn_call *c, enum agent_asked how,
			const char *text)
{
	bool approval = !(c->tool->flags & TOOL_ASKS);
	struct ask_result r = ask_result(&a->turn->mem, approval, how, text);

	answer_call(a, c, r.success, r.error_class, r.output);
}

enum agent_asked ask_take(struct agent *a)
{
	struct turn_call *c = &a->turn->calls[a->asking - 1];
	bool question = (c->tool->flags & TOOL_ASKS) != 0;
	enum agent_asked how = ASKED_ANSWERED;
	const char *said = c->output;
	json_t *args;

	c->output = NULL;
	if (!a->ask_given)
		how = ASKED_EXPIRED;
	else if (!question && !a->ask_yes)
		how = ASKED_REFUSED;
	a->asking = 0;
	a->ask_given = false;
	if (how == ASKED_EXPIRED) {
		args = args_of(c);
		give_result(a, c, how, json_get_str(args, "default"));
		json_decref(args);
	} else if (how == ASKED_REFUSED || question) {
		give_result(a, c, how, said);
	} else {
		c->approved = true;
	}
	return how;
}

/* ---- a limit, or a quota */

int ask_over(struct agent *a, enum agent_asked *how)
{
	unsigned call = a->over >= AGENT_PARKED ? AGENT_ASK_QUOTA : AGENT_ASK_LIMIT;
	struct agent_ask q = {.approval = call == AGENT_ASK_LIMIT, .timeout_ms = INT64_MAX};
	int rv;

	if (a->asking == 0) {
		rv = a->io->ask(a, call, &q, &a->ask_until_ms);
		if (rv != 0)
			return rv;
		a->asking = (uint16_t)(call + 1);
		a->ask_given = false;
		a->io->wake_at(a, a->ask_until_ms);
	}
	if (!a->ask_given && a->io->now(a) < a->ask_until_ms)
		return 1;
	*how = !a->ask_given ? ASKED_EXPIRED : a->ask_yes ? ASKED_ANSWERED : ASKED_REFUSED;
	/* The model is told again when the raised limit is near. */
	if (*how == ASKED_ANSWERED && call == AGENT_ASK_LIMIT)
		a->at.warned &= (uint16_t) ~(1u << (a->over - 1));
	a->saves++;
	a->io->ask_end(a, call, *how);
	a->io->wake_at(a, INT64_MAX);
	a->asking = 0;
	a->over = 0;
	a->ask_given = false;
	return 0;
}

/* ---- what arrives */

void agent_on_parked(struct agent *a, bool made, const char *error_class, const char *sentence)
{
	assert(!a->reply_ready && a->turn == NULL);
	a->at.totals.failed_calls += a->asked && made;
	a->at.totals.calls -= a->asked && !made;
	a->asked = false;
	a->at.again = true;
	a->over = a->over == AGENT_WAITS ? AGENT_WAITS : AGENT_PARKED; /* a person said so before */
	if (a->at.wrapping) /* the end has its sentence already */
		return;
	snprintf(a->reply_class, sizeof(a->reply_class), "%s", error_class);
	snprintf(a->reply_error, sizeof(a->reply_error), "%s", sentence);
}

void agent_on_wait(struct agent *a, int64_t until_ms)
{
	assert(a->over >= AGENT_PARKED);
	a->over = AGENT_WAITS;
	a->ask_until_ms = until_ms;
	if (a->asking > 0)
		a->io->wake_at(a, until_ms);
}

int agent_on_answer(struct agent *a, const char *text, bool yes)
{
	const char *copy;

	assert(a->state == AGENT_WAITING && !a->ending);
	assert(a->asking > 0 && !a->ask_given);
	if (a->over == 0) {
		copy = arena_copy(&a->turn->mem, text, strlen(text));
		if (copy == NULL)
			return AVA_ENOMEM;
		a->turn->calls[a->asking - 1].output = copy;
	}
	a->ask_given = true;
	a->ask_yes = yes;
	return 0;
}

/* ---- a turn that waits long: a new one has room for every possible call and text; one that
 * waits for a person, perhaps for days, is copied into an arena of one chunk of the counted size */

#define TRIM_CHUNK 256 /* room for an answer that comes later */

static size_t text_size(const char *s, size_t len)
{
	return s != NULL ? len + 1 + 16 : 0; /* 16: the arena's alignment */
}

static bool copy(struct arena *mem, const char **s, size_t len)
{
	const char *was = *s;

	if (was == NULL)
		return true;
	*s = len > 0 ? arena_copy(mem, was, len) : "";
	return *s != NULL;
}

static bool copy_all(struct arena *mem, const char **s)
{
	return *s == NULL || copy(mem, s, strlen(*s));
}

static bool copy_calls(struct turn *to, const struct turn *t)
{
	to->calls = arena_get(&to->mem, t->ncalls * sizeof(*t->calls));
	if (to->calls == NULL)
		return false;
	memcpy(to->calls, t->calls, t->ncalls * sizeof(*t->calls));
	for (unsigned i = 0; i < t->ncalls; i++) {
		struct turn_call *c = &to->calls[i];

		if (!copy_all(&to->mem, &c->wire_id) || !copy_all(&to->mem, &c->name) ||
		    !copy_all(&to->mem, &c->args_error) || !copy_all(&to->mem, &c->error_class) ||
		    !copy_all(&to->mem, &c->artifact) || !copy(&to->mem, &c->args, c->args_len) ||
		    !copy(&to->mem, &c->output, c->output_len))
			return false;
	}
	return true;
}

struct turn *ask_trim(const struct turn *t)
{
	size_t size = text_size(t->text, t->text_len) + text_size(t->request_id, 0) +
		      strlen(t->request_id) + 64;
	struct turn *to = turn_new();

	if (to == NULL)
		return NULL;
	for (unsigned i = 0; i < t->ncalls; i++) {
		const struct turn_call *c = &t->calls[i];
		const char *texts[] = {c->wire_id, c->name, c->args_error, c->error_class,
				       c->artifact};

		size += sizeof(*c) + text_size(c->args, c->args_len) +
			text_size(c->output, c->output_len);
		for (size_t k = 0; k < ARRAY_LEN(texts); k++)
			size += texts[k] != NULL ? text_size(texts[k], strlen(texts[k])) : 0;
	}
	to->mem.chunk = size;
	to->text = t->text;
	to->text_len = t->text_len;
	to->request_id = t->request_id;
	to->ncalls = t->ncalls;
	to->usage = t->usage;
	to->stop = t->stop;
	if ((t->ncalls > 0 && !copy_calls(to, t)) || !copy(&to->mem, &to->text, t->text_len) ||
	    !copy_all(&to->mem, &to->request_id)) {
		turn_free(to);
		return NULL;
	}
	to->mem.chunk = TRIM_CHUNK;
	to->trimmed = true;
	return to;
}
