/* Sentences for notices: what was wrong with a reply that is no end of the run, and
 * what is to be done. Pure; only memory can fail, for the table of calls that were
 * made. */
#include "agent/words.h"

#include "agent/output.h"

#include <stdio.h>
#include <string.h>

#include "agent/limit.h"
#include "agent/notice.h"
#include "base/buf.h"

#define NOTICE_MAX 1024

void words_note(const struct agent *a, char *out, size_t size)
{
	const struct turn *t = a->turn;
	bool cut = t->stop == TURN_STOP_LENGTH;
	const char *what, *then;

	if (a->misfit != NULL) {
		snprintf(out, size,
			 "The output of your reply does not fit its schema: %.300s. Correct it and "
			 "call submit_result (%d of %d).",
			 a->misfit, a->repairs, OUTPUT_REPAIRS_MAX);
		return;
	}
	if (a->odd_replies == 0) {
		what = cut ? "Your text was cut off at the output limit."
			   : "Your text alone does not end the run.";
		then = "Call submit_result now, with output, summary, confidence and caveats";
		snprintf(out, size, "%s %s%s.", what, then, cut ? ", in fewer words" : "");
		return;
	}
	if (t->text_len > 0)
		what = "Your reply holds a call written as text, which runs nothing";
	else
		what = cut ? "Your reply was cut off at the output limit before it said anything"
			   : "Your reply was empty";
	then = agent_can_submit(a)
		       ? "Go on: call a tool through the tool interface, or submit_result with "
			 "what you have"
		       : "Go on: call a tool through the tool interface, or answer in words";
	snprintf(out, size, "%s (%d of %d). %s.", what, a->odd_replies, ODD_REPLIES_MAX, then);
}

int words_repeats(struct agent *a, char *out, size_t size)
{
	const char *then = agent_can_submit(a) ? "submit_result with what you have"
					       : "answer with what you have";
	const struct turn_call *c;
	struct repeat_note how;
	int rv = repeat_turn(&a->repeats, a->turn, &c, &how);

	*out = 0;
	if (rv != 0 || c == NULL || how.times < REPEAT_STOP - 1)
		return rv;
	a->wrapping = how.times >= REPEAT_STOP;
	a->force_submit = a->force_submit || (a->wrapping && a->spec->can_force);
	if (a->wrapping)
		snprintf(out, size, WORDS_REPEATED ". The run ends with your next reply: %s.",
			 then);
	else
		snprintf(out, size,
			 "You have made this call of %.64s %u times with the same result, which "
			 "stands at c%d.%u. Once more ends the run: do something else, or %s.",
			 c->name, how.times, (int)how.from.iteration, how.from.n, then);
	return 0;
}

bool words_last(struct agent *a, bool shared, char *out, size_t size)
{
	bool own = !a->spec->ask_limit && limit_last(a);

	if (!agent_can_submit(a) || (!own && !shared))
		return false;
	a->force_submit = a->spec->can_force;
	snprintf(
		out, size,
		"Your next reply is the last that the limits pay for. Call submit_result with what "
		"you have, and say in the caveats what is missing.");
	return true;
}

/* One notice as the world gets it, in the turn's arena. */
static int add(struct agent *a, const char *text, const char **out, unsigned *n)
{
	const char *copy = NULL;
	struct buf b;

	buf_init(&b, NOTICE_MAX);
	if (notice_format(&b, text) == 0)
		copy = arena_copy(&a->turn->mem, b.data, b.len);
	buf_fini(&b);
	out[(*n)++] = copy;
	return copy != NULL ? 0 : AVA_ENOMEM;
}

static int add_limits(struct agent *a, const struct agent_shared *shared, unsigned near,
		      int64_t now, const char **out, unsigned *n)
{
	char text[NOTICE_MAX / 2];
	int rv = 0;

	for (unsigned r = 0; r < AGENT_NRESOURCES && rv == 0; r++) {
		if (!(near & (1u << r)))
			continue;
		limit_sentence(a, (enum agent_resource)r, now, text);
		rv = add(a, text, out, n);
	}
	for (unsigned s = 0; s < AGENT_NSHARES && rv == 0; s++) {
		if (!(shared->near & (1u << s)))
			continue;
		shared_sentence(a, shared, (enum agent_share)s, text, sizeof(text));
		rv = add(a, text, out, n);
	}
	if (rv == 0 && words_last(a, shared->last, text, sizeof(text)))
		rv = add(a, text, out, n);
	return rv;
}

int words_notices(struct agent *a, const char *out[WORDS_NOTICES], unsigned *n, unsigned *near)
{
	struct agent_shared shared;
	char text[NOTICE_MAX / 2];
	int64_t now;
	int rv = 0;

	shared_ask(a, &shared);
	now = a->io->now(a);
	*near = limit_near(a, now);
	if (a->turn->ncalls == 0 && !a->steered) {
		words_note(a, text, sizeof(text));
		rv = add(a, text, out, n);
	}
	if (rv == 0)
		rv = words_repeats(a, text, sizeof(text));
	if (rv == 0 && text[0] != 0)
		rv = add(a, text, out, n);
	if (rv == 0)
		rv = add_limits(a, &shared, *near, now, out, n);
	a->shares = (uint16_t)(a->shares | shared.near);
	return rv;
}
