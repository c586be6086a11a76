/* Texts for people, in one place: the command line, the conversation, quotes, notices and the
 * offline model take them from here, and so does each new channel (a page, a messenger, another
 * protocol). A translation, or a better word, changes this header and words.c; figures are those
 * of base/format.h. Errors of commands and texts for models stand where they arise. JSON has the
 * names of ava_status_name.
 *
 * A text is a macro with its placeholders by name, and expands to a printf format and its
 * arguments:
 *
 *	buf_addf(&out, WORDS_SPAWNING(mark, role, run));
 *	chat_note(WORDS_EXPIRED(id));
 *
 * Placeholders may stand in any order behind the format; the compiler checks them against its
 * conversions at each use. A text whose grammar needs more is a function. script/check_words
 * keeps a text from being written a second time, and test_words.c shows each of them. */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/format.h"

/* ---- names */

/* Words for a status by its JSON name: "running", "complete", "reply limit"; an unknown one as
 * it is. */
const char *words_status(const char *status);

enum words_limit_kind {
	WORDS_LIMIT_TIME,  /* ms */
	WORDS_LIMIT_MONEY, /* micro-USD */
	WORDS_LIMIT_TOKENS,
	WORDS_LIMIT_REPLIES,
};

struct words_limit {
	enum words_limit_kind kind;
	unsigned decimals; /* JSON's unit is 10^decimals of the kind's unit */
	const char *status;
	const char *what;   /* "time", "money" */
	const char *key;    /* the limit's name in the limits of a run's JSON */
	const char *option; /* the option of `ava resume` that sets the limit */
};
/* The limit that a terminal status or a limit's key stands for; NULL: none. */
const struct words_limit *words_limit(const char *name);
/* An amount of a limit for people: "10 min", "$0.50", "100k tokens", "20 replies". */
struct format words_amount(enum words_limit_kind kind, int64_t n);

/* Mark in front of a line of a run, with a blank behind it; "" without UTF-8. */
enum words_mark {
	WORDS_MARK_START,
	WORDS_MARK_LOOK,
	WORDS_MARK_WAIT,
	WORDS_MARK_ASK,
	WORDS_MARK_DONE,
	WORDS_MARK_LIMIT,
	WORDS_MARK_BAD,
	WORDS_MARK_STOP, /* stopped on request */
};
const char *words_mark(enum words_mark mark, bool utf8);
/* Does a line, its punctuation turned to blanks, begin like one of the runtime's: with a mark,
 * as the end of a run, or as the question of a quote? A model's such line is shown behind
 * WORDS_BAR, with which no line of the runtime's begins; format_barred applies this to the line
 * as a person sees it. */
bool words_imitates(const char *line);
#define WORDS_BAR "│ "

#define WORDS_S(n)     ((n) == 1 ? "" : "s")
#define WORDS_AND      " and "
#define WORDS_UP_TO    "up to "
#define WORDS_AT_MOST  "at most "
#define WORDS_IN_ALL   " in all"
#define WORDS_AS       "as "
#define WORDS_WITH     "with "
#define WORDS_WITHOUT  "without "
#define WORDS_THINKING "thinking"

/* ---- lines of a run: `role` as from format_role, `status` as from words_status */

#define WORDS_STARTING                   "Starting..."
#define WORDS_SPAWNING(mark, role, run)  "%sSpawning %s subagent (%.30s)...", mark, role, run
#define WORDS_DOING(mark, role, what)    "%s[%s] %s", mark, role, what
#define WORDS_STILL_WORKING(mark, doing) "%sSubagent still working: %s", mark, doing
#define WORDS_STILL_WORKING_AS(mark, who, doing)                                                   \
	"%sSubagent [%s] still working: %s", mark, who, doing
#define WORDS_NO_NEWS "no news yet"

/* Present activity of a model's call; `time` as from format_time_limit. */
#define WORDS_THINKING_FOR(time) "Thinking (%s)", time
#define WORDS_FIRST_WORD(time)   "Waiting for the first word of the model (%s)", time
#define WORDS_WRITING(n)         "Writing (%lld word%s)", (long long)(n), WORDS_S(n)
#define WORDS_RETRY(s, service, class, why)                                                        \
	"Waiting %lld s for %s (%s)%s%s", (long long)(s), service, class, *(why) ? ": " : "", why
/* WORDS_TRYING stands behind the fault of a service in a conversation; at a terminal
 * WORDS_CTRL_C_STOPS ends its line. */
#define WORDS_TRYING       ", trying again"
#define WORDS_TRYING_IN(s) WORDS_TRYING " in %lld s", (long long)(s)
#define WORDS_CTRL_C_STOPS " (Ctrl-C stops)"
/* Parts of what stands behind WORDS_STILL_WORKING: "reply 7 of 20, 5 calls failed; the model is
 * reading (2 min)". */
#define WORDS_REPLY_OF(n, all)  "reply %d of %d", n, all
#define WORDS_CALLS_FAILED(n)   ", %lld call%s failed", (long long)(n), WORDS_S(n)
#define WORDS_MODEL_READS(time) "the model is reading (%s)", time
#define WORDS_MODEL_WROTE(n)    "the model has written %lld word%s", (long long)(n), WORDS_S(n)
/* Ava's own activity, that of her model's call or of her tool, as a sentence. */
#define WORDS_AVA_IS(doing) "Ava is %c%s", tolower((unsigned char)*(doing)), (doing) + 1
#define WORDS_AVA_AT_WORK   "At work"
#define WORDS_RUNNING(mark, role, status, time, tokens, more)                                      \
	"%s%s %.60s (%s, %s tokens)%s", mark, role, status, time, tokens, more
#define WORDS_RUNNING_FOR(role, status, time, tokens, cost)                                        \
	"%s %s (%s, %s tokens, %s)", role, status, time, tokens, cost
#define WORDS_ASKS(mark, who, question) "%s%s asks: %s", mark, who, question
#define WORDS_ANSWER_WITH               "Answer with: "
#define WORDS_ASKS_YOU(who)             "%s asks you", who
#define WORDS_ASKS_NO_MORE(who)         "%s has ended and asks no more", who
#define WORDS_ASKED_IN_VAIN(who)        "%s asked, and nobody answered in time", who

/* `words`: NULL: its pause is over. */
#define WORDS_PAUSE(who, words) "%s %s%s", who, words ? "is " : "goes on", words ? words : ""

#define WORDS_NONE_AT_WORK     "No subagent is at work in this conversation."
#define WORDS_NONE_HAS_RUN     "No subagent has run in this conversation."
#define WORDS_FOLLOW(run)      "Follow it: ava events %s -f; wait for it: ava wait %s", run, run
#define WORDS_HAS_ANSWER(run)  "%s has its answer.", run
#define WORDS_READS_LATER(run) "%s reads that after what it is doing now.", run
/* An Error event of a conversation: in a turn of Ava's, of an answer to a quote. */
#define WORDS_CANNOT(class, why)                                                                   \
	"%s: %.1000s", strcmp(class, "answer") == 0 ? "Nothing was started" : "Ava cannot answer", \
		why
/* The sentence begins with its id. */
#define WORDS_HELD(sentence) "A run is held: %.300s", sentence
/* Stands behind Ava's text when an event keeps only the text's beginning. */
#define WORDS_CUT "(cut: all of it stands in the conversation's file)"
#define WORDS_UNREADABLE(n, first)                                                                 \
	"%lld line%s of this conversation's file cannot be read and %s left out; the first: %s",   \
		(long long)(n), WORDS_S(n), (n) == 1 ? "is" : "are", first
#define WORDS_CANCELLING(what) "Cancelling %s; Ctrl-C again leaves without waiting.", what
#define WORDS_TODAY(cost, tokens, n, more)                                                         \
	"Today: %s, %s tokens, %lld run%s%s", cost, tokens, (long long)(n), WORDS_S(n), more

/* ---- the end of a run, and its result */

struct words_end {
	enum words_mark mark;
	char what[240]; /* "Complete", "Stopped at its limit of 20 replies"; "": still running */
	char next[160]; /* "`ava resume S-7f3a2b --max-iterations 40` goes on", or "" */
};
/* `error_class`: of the error that ended the run; "": unknown. `limit`: the limit that ended it; 0:
 * unknown. `needs`: what the run's first call needs of
 * it, when that is more. `run` may be "". */
struct words_end words_end(const char *run, const char *status, const char *reason,
			   const char *error_class, const char *error, int64_t limit,
			   int64_t needs);

#define WORDS_COMPLETE         "Complete"
#define WORDS_NO_RESULT        "Ended without a result"
#define WORDS_UNPROVEN(why)    "Unproven%s%.200s", *(why) ? ", " : "", why
#define WORDS_CANCELLED        "Cancelled"
#define WORDS_UNBEGUN          "Not started"
#define WORDS_STARTS_IT(run)   "`ava resume %.30s` starts it", run
#define WORDS_STOPPED(why)     "Stopped, %.200s", why
#define WORDS_STOPPED_AT       "Stopped at its limit of "
#define WORDS_FAILED(why)      "Failed%s%.200s", *(why) ? ", " : "", why
#define WORDS_GOES_ON_AS       "`ava resume %.30s%s` goes on"
#define WORDS_GOES_ON(run, by) WORDS_GOES_ON_AS, run, by
#define WORDS_BEHIND(end)      (end)->next[0] ? "; " : "", (end)->next
#define WORDS_ENDED(mark, role, end, time, cost)                                                   \
	"%sSubagent [%s]: %s (%s, %s)%s%s", mark, role, (end)->what, time, cost, WORDS_BEHIND(end)
#define WORDS_PROPOSES(files, run)                                                                 \
	"It proposes changes in %lld file%s: `ava apply %s` shows them and asks.",                 \
		(long long)(files), (files) == 1 ? "" : "s", run
#define WORDS_BUDGET(of, period, percent, used, cents)                                             \
	"The budget of %.255s%s%s is used %s: %s of %s", of, (of)[0] ? " this " : "the ", period,  \
		(percent) >= 100  ? "up"                                                           \
		: (percent) >= 80 ? "to 80 %"                                                      \
				  : "to 50 %",                                                     \
		used, cents
#define WORDS_BUDGET_GONE                                                                          \
	"Calls that draw on it wait, are made shorter or end their runs, until its next period "   \
	"begins or config.yaml gives it more."
#define WORDS_APPLIED(run, files, folder)                                                          \
	"%s: %lld file%s written in %.300s", run, (long long)(files), WORDS_S(files), folder
#define WORDS_LEFT(run)                        "%s: its changes are left as a patch", run
#define WORDS_RESULT_OF(run, what, end)        "%s: %s%s%s", run, what, WORDS_BEHIND(end)
#define WORDS_RUN_ENDED(who, what, time, cost) "%s: %s (%s, %s)", who, what, time, cost

/* Stand in place of a summary that the model did not give. */
#define WORDS_LIMIT_SUMMARY(what, replies)                                                         \
	WORDS_STOPPED_AT "%s after %s, without a result.", what, replies
#define WORDS_WAITS_FOR "Waits for "
#define WORDS_UNBEGUN_SINCE(run, status)                                                           \
	WORDS_UNBEGUN ", since %s did not succeed (%s)", run, words_status(status)
#define WORDS_CANCELLED_SUMMARY "Cancelled before it had a result."
#define WORDS_NO_SUMMARY        "It ended without a summary."

#define WORDS_SAID_LAST     "It said last: "
#define WORDS_CAVEATS       "Caveats"
#define WORDS_CONFIDENCE(c) "confidence %.2f", c
#define WORDS_TOTALS(time, tokens, cost, replies)                                                  \
	"%s, %s tokens, %s, %s", time, tokens, cost, replies
#define WORDS_LOG_OF(run) "Log: ava logs %s, ava trace %s", run, run
#define WORDS_UNCUT(run)  "All of it, uncut: ava result %s --json", run
#define WORDS_PARTIAL     "partial: the run was stopped before it was done"
#define WORDS_UNVERIFIED  "the run did not submit a result: this is what it said, unverified"
#define WORDS_NOT_FOUND   " (not found where it was said to be)"
#define WORDS_NOT_FOUND_OF(n, all)                                                                 \
	"%lld of %lld citation%s not found where %s said to be", (long long)(n), (long long)(all), \
		(all) == 1 ? " was" : "s were", (all) == 1 ? "it was" : "they were"

/* Caveats of a run with a check; `how` is the first line of what the check said. */
#define WORDS_CHECK_FAILED      "its check did not pass: %.*s"
#define WORDS_CHECK_UNABLE      "its check could not be run: %.*s"
#define WORDS_CHECK_PASSED_THEN "its check passed (%.*s), but the run went on after that"
#define WORDS_CHECK_NOT_RUN     "its check was not run"
#define WORDS_CHECK_CUT         "its check did not finish: %.*s"
#define WORDS_CHECK_TIME        "ended by the run's time limit"
#define WORDS_CHECK_CANCELLED   "cancelled"
#define WORDS_CHECK_EDITED      "%s changed in its copy, and the check runs it"
/* The outcome of the check, with a result: "Check passed: `make test`, exit 0, 1.2 s". */
#define WORDS_CHECK(passed, command, how)                                                          \
	"Check %s: `%s`, %s", (passed) ? "passed" : "did not pass", command, how

/* ---- a quote and its outcome */

struct format words_minutes(int least, int most); /* "~1 minute", "~5-10 minutes" */

#define WORDS_QUOTE_NUMBER(n, id) "Quote %u (%s): ", n, id
#define WORDS_QUOTE_ONE(role, often)                                                               \
	"%s spawn %s %s subagent ", (often) ? "Each time, I'll" : "I'll",                          \
		strchr("AEIOU", *(role)) ? "an" : "a", role
#define WORDS_QUOTE_SEVERAL(n, how) "I'll spawn %u subagents %s:\n", n, how
#define WORDS_SIDE_BY_SIDE          "side by side"
#define WORDS_IN_TURN               "one after another"
#define WORDS_HANDED_ON             WORDS_IN_TURN ", each with what the one before found"
#define WORDS_AS_THEY_NEED          "side by side, or after others with what those found"
#define WORDS_QUOTE_AFTER(begin)    (begin) ? " (after " : ", "
#define WORDS_QUOTE_TIME(together, time)                                                           \
	"Estimated%s:\n• Time: %s\n", (together) ? ", together" : "", time
#define WORDS_QUOTE_COST(cost, offline)                                                            \
	"• Cost: " WORDS_UP_TO "%s%s\n", cost,                                                     \
		(offline) ? " (offline model, no key and no network)" : ""
#define WORDS_QUOTE_HELD(by)    "• Cost: unknown, held by %s\n", by
#define WORDS_QUOTE_THEIRS      "their tokens"
#define WORDS_QUOTE_TOOLS       "• Tools: "
#define WORDS_QUOTE_CHANGES     "\n• Changes: may change a private copy of "
#define WORDS_QUOTE_UNCHANGED   "; nothing is written to it before you say `ava apply`"
#define WORDS_QUOTE_CHECK       "\n• Check: "
#define WORDS_QUOTE_CHECK_OF(n) "\n• Check of run %u: ", n
#define WORDS_QUOTE_CHECK_HOW(copy)                                                                \
	"; a success only when that ends with exit 0, in the sandbox on its %s",                   \
		(copy) ? "copy" : "folder (read-only)"
#define WORDS_QUOTE_CHECK_ROUNDS(n)     "; else it may mend that %d time%s", n, WORDS_S(n)
#define WORDS_QUOTE_CHECK_ONCE          "; else it ends as unproven"
#define WORDS_QUOTE_CHECK_RUNS          "; it may change what that runs ("
#define WORDS_QUOTE_CHECK_MAY           "), which its result tells"
#define WORDS_QUOTE_MODEL(model, think) "\n• Model: %s%s", model, (think) ? ", " WORDS_THINKING : ""
#define WORDS_QUOTE_OVERLOADED          "; where it does not answer "
#define WORDS_QUOTE_WHY                 "\n• Why: "
#define WORDS_QUOTE_TAGS                "\n• Tags: "
#define WORDS_QUOTE_ASKS                "\n• Asks you before: "
#define WORDS_QUOTE_INSTRUCTIONS        "\n• Instructions: "
#define WORDS_QUOTE_NO_INSTRUCTIONS     "none, and no skills"
#define WORDS_QUOTE_SKILLS              "\n• Skills: "
#define WORDS_QUOTE_LEFT_OUT            "\n• Left out: "
#define WORDS_AS_IT_IS                  " as it is now"
/* ---- a standing order, in its quote */
#define WORDS_ORDER(id)        "\n• Standing order %s: ", id
#define WORDS_ORDER_WHEN(when) " (%s)", when
#define WORDS_ORDER_IS(id, state, why)                                                             \
	"The standing order %s is %s%s%.300s", id, state, *(why) ? ": " : "", why
#define WORDS_ORDER_SAYS(id, why) "The standing order %s: %.300s", id, why
#define WORDS_ORDER_ASKS(id, why) "The standing order %s asks you anew: %.300s", id, why
#define WORDS_ORDER_NEXT          "\n• Next: "
#define WORDS_ORDER_TAKES         "\n• Each run: " WORDS_UP_TO
#define WORDS_ORDER_DAY(cost)     "; all of them " WORDS_UP_TO "%s a day", cost
#define WORDS_ORDER_MONTH(cost)   "; all of them " WORDS_UP_TO "%s a month", cost
#define WORDS_ORDER_NO_MONEY      "; a day and a month have no limit of their own"
#define WORDS_ORDER_ENDS          "\n• Ends: "
#define WORDS_ORDER_UNTIL(when)   "%s", when
#define WORDS_ORDER_COUNT(or, n)  "%safter %lld run%s", or, (long long)(n), WORDS_S(n)
#define WORDS_ORDER_NO_END        "when you remove it (`ava schedule rm`)"
#define WORDS_ORDER_NO_MORE       "when no time is left"
#define WORDS_ORDER_SKIP          "\n• While one is at work: the next is left out, and told"
#define WORDS_ORDER_QUEUE                                                                          \
	"\n• While one is at work: one waits, others are left out; deliveries wait, ten at most"
#define WORDS_ORDER_ONCE            "\n• Missed times: one run for all of them"
#define WORDS_ORDER_MISSED_SKIP     "\n• Missed times: left out, and told"
#define WORDS_ORDER_ALL             "\n• Missed times: made up for, ten at most; others are told"
#define WORDS_QUOTE_LIMITS          "\n• Limits: "
#define WORDS_QUOTE_SMALL(why)      "\n• TOO SMALL A WINDOW: %s", why
#define WORDS_QUOTE_NO_TOOLS(model) "\n• NO TOOLS REACH %s: `ava doctor` says why", model
#define WORDS_QUOTE_FOR_ALL         " for all, "
#define WORDS_QUOTE_EACH            "each "
#define WORDS_QUOTE_STOPS           "stops at "
#define WORDS_QUOTE_WIDEST          "stops at its own, the widest: "
#define WORDS_QUOTE_MODELS          "\n• Model: "
#define WORDS_QUOTE_STOP_ASKS       "; asks you before it ends there"
#define WORDS_QUOTE_QUOTA_ASKS      "; asks you before it waits for a quota to come back"
#define WORDS_QUOTE_QUOTA_FAILS     "; fails where a quota is used up"
#define WORDS_QUOTE_CHANGED(what)   "\n• Changed: %s", what
#define WORDS_QUOTE_FETCH           "\n• May fetch: "
#define WORDS_QUOTE_FETCH_NOT(n)    "\n• May not fetch: %zu more addresses of its task", n
#define WORDS_QUOTE_FETCH_SENDS                                                                    \
	"\n• Sends out: these addresses, as a model that has seen your data wrote them"
#define WORDS_QUOTE_TASK       "\n• Task:"
#define WORDS_QUOTE_TASK_OF(n) "\n• Task %u:", n
#define WORDS_QUOTE_ROW        "\n  | "
#define WORDS_QUOTE_MORE(before, n, id)                                                            \
	"%s(and %s more characters: `ava proposals %s`)", before, n, id
#define WORDS_NOT_WHOLE "It is not shown whole: `ava logs` has the call."
#define WORDS_HIDDEN(n, id)                                                                        \
	"%zu characters of it stand in the file above, and in `ava asks %s`.", n, id
#define WORDS_QUOTE_UNSHOWN        "\n• Not shown here: "
#define WORDS_QUOTE_CONTEXT(n)     "%s characters of context", n
#define WORDS_QUOTE_SCHEMA(and, n) "%san output schema of %s", and, n
#define WORDS_QUOTE_LOOK(id)       " (see `ava proposals %s`)", id
#define WORDS_QUOTE_UNPAID(why)    "\n• TOO LOW A LIMIT: %s", why
#define WORDS_QUOTE_NO_SEARCH                                                                      \
	"\n• Search: no search service: can only read addresses that the task names"
#define WORDS_PROCEED             "Proceed?"
#define WORDS_PROCEED_YES         " [Yes/No]"
#define WORDS_PROCEED_ALL         " [Yes, all three/No]"
#define WORDS_PROCEED_SPLIT(tool) " [Yes, without %s/Yes, all three/No]", tool
#define WORDS_QUOTE_FOLDER_HEAD   "• Folder: "
#define WORDS_QUOTE_FOLDER(path)  WORDS_QUOTE_FOLDER_HEAD "%s", path
#define WORDS_YES                 "Yes"
#define WORDS_NO                  "No"
#define WORDS_YES_ALL_THREE       WORDS_YES ", all three"

#define WORDS_WAITS(id, more)    "%s waits for your answer%s", id, more
#define WORDS_WAITING            "Waiting for your answer:"
#define WORDS_NONE_WAITS         "No proposal waits for your answer."
#define WORDS_CONFIRMED(changes) "Confirmed, %s.", changes
#define WORDS_CONFIRMED_AS_QUOTED(id, order)                                                       \
	"%s is confirmed as quoted%s%s", id, *(order) ? ": it is the order " : "", order
#define WORDS_REPLACED(id, by) "%s is replaced by %s", id, by
#define WORDS_STARTED(who)     "%s has started", who
#define WORDS_REJECTED(id)     "%s is rejected: nothing was started", id
#define WORDS_EXPIRED(id)      "%s has expired: nothing was started", id

/* ---- forms shown by other programs (MCP, ACP) */

#define WORDS_FORM_START     "Start it"
#define WORDS_FORM_ALL_THREE "Allow all three rights: it could send your data out"
#define WORDS_FORM_TERMS     "On other terms"
#define WORDS_FORM_SUCH_AS   "Such as: max 20 cents, at most 5 minutes"
#define WORDS_FORM_ANSWER    "Your answer"
#define WORDS_NOT_STARTED(id)                                                                      \
	"Nothing was started: only the person can confirm %s. They run `ava confirm %s`, or "      \
	"answer in `ava` or on its page.",                                                         \
		id, id

#endif
