/* Sentences for notices: what was wrong with a reply that is no end of the run, and
 * what is to be done. Pure; only memory can fail, for the table of calls that were
 * made. */
#include "agent/words.h"

#include "agent/output.h"

#include <stdio.h>
#include <string.h>

#include "agent/limit.h"

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

bool words_last(struct agent *a, char *out, size_t size)
{
	if (a->spec->ask_limit || !agent_can_submit(a) || !limit_last(a))
		return false;
	a->force_submit = a->spec->can_force;
	snprintf(
		out, size,
		"Your next reply is the last that the limits pay for. Call submit_result with what "
		"you have, and say in the caveats what is missing.");
	return true;
}
