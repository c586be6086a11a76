/* A request after a refusal: without a parameter that the service does not take, smaller, or to
 * another model. Each change is an amendment of the spec before the next request, so that replay
 * and restart make it too. Also the words about an attempt that gave no reply. */
#include "subagent/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/limit.h"
#include "base/clock.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/model.h"
#include "provider/profile.h"
#include "provider/stream.h"
#include "subagent/learn.h"
#include "subagent/record.h"
#include "subagent/wire.h"

#define SHOWN_WAIT_MS 2000 /* a longer wait is told in the log */
#define TOLD_FIRST_MS 3000 /* in a conversation trouble that lasts so long is told */
#define TOLD_WAIT_MS  15000

/* Does the request differ without `name`? If not, the service means something
 * that cannot be left out. */
static bool infer_matters(const struct run *r, const struct agent_infer *call,
			  const struct model *without, const char *name)
{
	const struct model *m = r->spec->model;
	bool thinking = r->spec->thinking, differs;
	struct buf a, b;

	if (m->dialect->in_lines && m->dialect->in_lines(name) && model_takes(m, name))
		return true;
	buf_init(&a, 1u << 16);
	buf_init(&b, 1u << 16);
	differs = m->dialect->encode_tail(&a, m, thinking, call) == 0 &&
		  m->dialect->encode_tail(&b, without, thinking, call) == 0 &&
		  (a.len != b.len || memcmp(a.data, b.data, a.len) != 0);
	buf_fini(&a);
	buf_fini(&b);
	return differs;
}

/* The model without the first of `words` that its requests have (thinking.budget_tokens), else
 * without the object around that word; false: neither would help. */
static bool infer_without(const struct run *r, const struct agent_infer *call, const char *words,
			  struct model *without, char name[64])
{
	for (size_t len, n; *words; words += len, words += strspn(words, " ")) {
		n = len = strcspn(words, " ");
		while (n > 0) {
			snprintf(name, 64, "%.*s", (int)n, words);
			*without = *r->spec->model;
			if (model_drop(without, name) && infer_matters(r, call, without, name))
				return true;
			while (n > 0 && words[--n] != '.')
				;
		}
	}
	return false;
}

bool infer_repair(struct run *r, const struct agent_infer *call, const char *words)
{
	struct draft *d = commit_draft(r);
	struct buf *part;
	struct model without;
	char name[64], text[160];
	struct jw w;

	if (!d || !infer_without(r, call, words, &without, name))
		return false;
	part = commit_messages(r);
	if (!part || spec_set_model(r->spec, &without, NULL) != 0)
		return false;
	spec_line_begin(&w, part, "spec");
	jw_str(&w, "drop", without.drop);
	spec_line_end(&w);
	snprintf(text, sizeof(text), "%s does not take %s: asking again without it",
		 without.provider->name, profile_says(name));
	record_activity(d, r, text);
	return true;
}

/* Does the error say that the output asked for is too large? Else it rejects the parameter. */
static bool infer_names_cap(const struct reply_error *e)
{
	static const char *const fields[] = {"max_tokens", "max_completion_tokens",
					     "max_output_tokens"};
	static const char *const words[] = {"too large",    "too high",  "exceed", "at most",
					    "greater than", "less than", "maximum"};

	if (e->output_max > 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		for (size_t k = 0; strcmp(e->field, fields[i]) == 0 && k < ARRAY_LEN(words); k++)
			if (strcasestr(e->text, words[k]))
				return true;
	return false;
}

/* A refusal with two numbers and no words: the larger was taken for the prompt. Swap the two if our
 * bytes cannot have so many tokens, but as many as the smaller: then the output asked for was too
 * much. */
static void infer_guess(struct agent_told *told, int64_t bytes)
{
	int64_t prompt = told->window, window = told->prompt;

	if (window * 5 <= bytes * 2 || prompt * 5 > bytes * 2 || window > prompt + told->asked)
		return;
	told->window = window;
	told->prompt = prompt;
}

bool infer_lower(const struct agent_infer *call, const struct reply_error *e, int64_t bytes,
		 struct agent_told *told)
{
	*told = (struct agent_told){
		.window = e->window,
		.prompt = e->prompt,
		.output_max = e->output_max,
		.asked = call->max_output,
		.cap = e->cls == REPLY_BAD_REQUEST ||
		       (e->output_max > 0 && e->window <= 0 && e->prompt <= 0),
	};
	if (told->cap)
		return infer_names_cap(e) && (told->asked > LIMIT_LEAST_ROOM ||
					      (e->output_max > 0 && e->output_max < told->asked));
	if (e->guessed)
		infer_guess(told, bytes);
	/* An allowance of tokens a minute acts as a window for this run, output included. */
	if (e->never && told->prompt > told->asked)
		told->prompt -= told->asked;
	return e->cls == REPLY_OVERFLOW || e->cls == REPLY_TOO_LARGE || (e->never && e->window > 0);
}

/* ---- another model */

void infer_changed(struct run *r)
{
	r->agent.at.window = r->agent.at.output_max = 0;
	r->call.retry = (struct retry){0};
	r->call.counted = 0; /* another model counts differently */
}

bool infer_amend(struct run *r, const struct model *m, bool another)
{
	const char *id = r->spec->model->id;
	struct buf *part = commit_messages(r);

	if (!part || spec_switch(r->spec, m, part) != 0)
		return false;
	infer_changed(r);
	if (another && !r->call.first_model)
		r->call.first_model = arena_copy(&r->spec->mem, id, strlen(id));
	return true;
}

/* ---- the tokens that a service counted */

/* Tokens; a service that reports fewer for a long conversation does not count at all. */
#define UNDERCOUNT_LEAST 999
/* Bytes; the tail behind the lines (a forced tool) is counted too, and may shrink. */
#define GROWN_LEAST 512
#define CUT_LEAST   4096 /* bytes that a request grew by while its count stood still */
#define WINDOW_STEP 1024 /* tokens; windows are multiples of it */

void infer_doubt(struct run *r, struct usage *u)
{
	int64_t grown = r->rec.request_bytes - r->call.counted_bytes;
	int64_t more = u->input - r->call.counted;
	char text[200];

	if (u->estimated || r->spec->model->dialect->answer)
		return;
	if (r->call.counted > 0 && grown > -GROWN_LEAST && grown < GROWN_LEAST)
		return;
	if (r->call.counted == 0 || (grown < 0 ? more != 0 : more >= grown / 16)) {
		r->call.counted = u->input;
		r->call.counted_bytes = r->rec.request_bytes;
		return;
	}
	if (!r->call.doubt && u->input > UNDERCOUNT_LEAST && u->input < r->rec.request_bytes / 6) {
		snprintf(text, sizeof(text),
			 "%s counted far fewer tokens than were sent: it may have cut the "
			 "conversation to a window of its own",
			 r->spec->model->provider->name);
		r->call.doubt = arena_copy(&r->spec->mem, text, strlen(text));
	}
	/* Some services cut a long request silently: their count stands still at the window. */
	if (more == 0 && grown >= CUT_LEAST && u->input % WINDOW_STEP == 0) {
		u->window = u->input;
		learn_told(r->sup->learner, r->spec->model, &(struct learned){.window = u->window},
			   "count");
	}
	u->input = MAX(u->input, r->rec.request_bytes / 4);
	u->estimated = true;
}

/* ---- an attempt that gave no reply */

void infer_charge(struct run *r, const struct wirecall_end *end, bool began, struct usage *u)
{
	*u = end->error.usage;
	if (u->input + u->output == 0)
		u->cost_microusd = -1;
	u->estimated = true;
	/* At a free model a reply of which nothing came has used nothing. */
	if (end->accepted && u->input == 0 && (began || r->spec->model->price.input != 0))
		u->input = r->rec.request_bytes / 4;
	agent_charge(&r->agent, u);
	money_settle(r);
}

static struct retry_words infer_words(const struct run *r, const struct wirecall_end *end)
{
	const struct model *m = r->spec->model;

	return (struct retry_words){
		.provider = m->provider->name,
		.model = m->id,
		.key_name = m->provider->key_name,
		.url_name = m->provider->url_name,
		.base_url = m->provider->base_url,
		.error = &end->error,
		.status = end->failure.status,
		.context = limit_window(&r->agent),
		.prompt = limit_next_input(&r->agent),
		.talk = r->place != NULL,
	};
}

/* A conversation tells its person of a wait: at once where nothing is reached, with the first wait
 * that makes it three seconds, and of each long one. A run logs each of two seconds or more. */
static bool infer_tells_wait(const struct run *r, const struct wirecall_end *end, int64_t wait_ms)
{
	if (!r->place)
		return wait_ms >= SHOWN_WAIT_MS;
	return wait_ms >= TOLD_WAIT_MS ||
	       (!r->call.trouble &&
		(end->failure.cls == REPLY_NETWORK ||
		 clock_mono_ms() - r->call.began_ms + wait_ms >= TOLD_FIRST_MS));
}

void infer_write_failure(struct run *r, const struct wirecall_end *end, const struct usage *u,
			 const struct agent_told *told, int64_t retry_ms)
{
	const char *word = reply_class_word(end->failure.cls);
	struct draft *d = commit_draft(r);
	struct record_failure f = {
		.error_class = word,
		.sentence = end->error.text,
		.request_id = end->error.request_id,
		.usage = u,
		.told = told,
		.retry_ms = retry_ms,
	};
	struct retry_words words = infer_words(r, end);
	char text[sizeof(r->activity)];

	if (!d)
		return;
	record_infer_failed(d, r, &f);
	if (retry_ms < 0)
		return; /* the event goes with the end's commit */
	retry_wait(end->failure.cls, &words, retry_ms, text, sizeof(text));
	free(r->call.why);
	r->call.why = strdup(text);
	if (retry_ms > 0)
		run_activity(r, text);
	if (infer_tells_wait(r, end, retry_ms)) {
		if (r->place) {
			retry_trying(end->failure.cls, &words, retry_ms, text, sizeof(text));
			free(r->call.trouble);
			r->call.trouble = strdup(text);
		}
		record_activity(d, r, text);
	}
	commit_flush(r, JOURNAL_RIDE, NULL);
}

void infer_sentence(const struct run *r, const struct wirecall_end *end,
		    const struct retry_plan *plan, char *text, size_t size)
{
	struct retry_words w = infer_words(r, end);
	const char *of = strstr(end->error.text, "(idle timer)")    ? "idle"
			 : strstr(end->error.text, "(total timer)") ? "turn"
								    : "first_event";
	char back[CLOCK_SOON];

	clock_local_soon(clock_wall_ms() + plan->wait_ms, clock_wall_ms(), back);
	w.back = back;
	retry_sentence(&r->call.retry, plan, end->failure.cls, &w, clock_mono_ms(), text, size);
	if (end->failure.cls == REPLY_TIMEOUT)
		snprintf(text + strlen(text), size - strlen(text), "; net.%s_timeout sets it", of);
	if (plan->parks)
		park_why_not(r, &end->error, back, text, size);
}
