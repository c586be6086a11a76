/* The activity of a run in words; doing.h.
 *
 * r->activity is set where a step begins. During a model call the words also change without an
 * event: with the time, and with the bytes that have come.
 *
 * Nothing can fail: text that does not fit is cut. */
#include "subagent/doing.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/util.h"
#include "base/words.h"
#include "subagent/run.h"

#define QUICK_MS   3000   /* time without words about a reply under way */
#define USUAL_MS   20000  /* time in which large services send a first word */
#define EXACT_MS   600000 /* a longer time is told in minutes */
#define WORD_BYTES 6      /* bytes of a word of English; code has nearly as many */

static struct format doing_for(int64_t ms)
{
	return format_time_limit(ms < EXACT_MS ? ms / 1000 * 1000 : ms / 60000 * 60000);
}

static int64_t doing_words(int64_t bytes)
{
	return MAX(bytes / WORD_BYTES, 1);
}

/* Age of the model call under way; -1: there is none. */
static int64_t doing_call_ms(const struct run *r)
{
	if (r->call.state != CALL_WORK && r->call.state != CALL_WIRE && r->call.state != CALL_DELAY)
		return -1;
	return clock_mono_ms() - r->call.started_ms;
}

void doing_look(struct run *r)
{
	int64_t ms = doing_call_ms(r), written = infer_written(r);
	char text[sizeof(r->activity)];

	if (ms < QUICK_MS)
		return;
	if (written > 0)
		snprintf(text, sizeof(text), WORDS_WRITING(doing_words(written)));
	else if (written == 0 && ms >= USUAL_MS)
		snprintf(text, sizeof(text), WORDS_FIRST_WORD(doing_for(ms).text));
	else
		snprintf(text, sizeof(text), WORDS_THINKING_FOR(doing_for(ms).text));
	run_activity(r, text);
}

void doing_progress(const struct run *r, char *out, size_t size)
{
	const struct turn *t = r->agent.turn;
	int64_t ms = doing_call_ms(r), written = infer_written(r);
	/* Tool calls that were answered, but failed. */
	int64_t failed = r->tools.calls_at > 0 ? r->tools.calls_before[r->tools.calls_at] : 0;
	int of = (int)r->spec->agent.limits.iterations, n = 0;

	for (unsigned i = 0; i < r->spec->agent.ntools; i++)
		failed -= r->tools.counts[i];
	for (unsigned i = 0; t && i < t->ncalls; i++)
		failed -= !t->calls[i].answered;
	if (r->agent.at.iteration > 0) {
		n = snprintf(out, size, WORDS_REPLY_OF((int)r->agent.at.iteration, of));
		if (failed > 0)
			n += snprintf(out + n, size - (size_t)n, WORDS_CALLS_FAILED(failed));
		n += snprintf(out + n, size - (size_t)n, "; ");
	}
	if (written > 0)
		snprintf(out + n, size - (size_t)n, WORDS_MODEL_WROTE(doing_words(written)));
	else if (ms >= QUICK_MS)
		snprintf(out + n, size - (size_t)n, WORDS_MODEL_READS(doing_for(ms).text));
	else
		snprintf(out + n, size - (size_t)n, "%s", r->activity);
}
