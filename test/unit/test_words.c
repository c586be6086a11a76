/* Every text of base/words.h as people read it, and the figures in them: none has a
 * placeholder left, and without UTF-8 none has a mark. script/check_words asks that each of
 * them is here. */
#include "unit.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "base/words.h"

/* It is `want`; but for the bullets of a quote, which a terminal turns into stars, it is
 * ASCII where there are no marks. */
static void shows(const char *want, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void shows(const char *want, const char *fmt, ...)
{
	char got[1024];
	va_list ap;

	va_start(ap, fmt);
	assert_in_range(vsnprintf(got, sizeof(got), fmt, ap), 0, sizeof(got) - 1);
	va_end(ap);
	assert_string_equal(got, want);
	assert_null(strchr(got, '%'));
	for (const char *at = got; *at; at++) {
		if (strncmp(at, "• ", strlen("• ")) == 0)
			at += strlen("• ");
		assert_in_range(*at, '\n', '~');
	}
}

/* Runs of a group that wait for others. */
TEST(waiting_for_others)
{
	struct words_end e = words_end("S-1", "not_started", "not_started", "", "", 0, 0);

	assert_string_equal(e.what, "Not started");
	assert_int_equal(e.mark, WORDS_MARK_STOP);
	shows(e.next, WORDS_STARTS_IT("S-1"));
	shows("`ava resume S-1` starts it", WORDS_STARTS_IT("S-1"));
	shows("Waits for S-1", WORDS_WAITS_FOR "%s", "S-1");
	shows("Not started, since S-1 did not succeed (no result)",
	      WORDS_UNBEGUN_SINCE("S-1", "no_result"));
	shows("I'll spawn 2 subagents side by side, or after others with what those found:\n",
	      WORDS_QUOTE_SEVERAL(2u, WORDS_AS_THEY_NEED));
	shows(" (after a", "%sa", WORDS_QUOTE_AFTER(true));
	shows(", b", "%sb", WORDS_QUOTE_AFTER(false));
}

TEST(lines)
{
	const char *pause = "paused until 18:40";

	shows("Spawning WebCrawler subagent (S-7f3a2b)...",
	      WORDS_SPAWNING("", "WebCrawler", "S-7f3a2b"));
	shows("[WebCrawler] Starting...", WORDS_DOING("", "WebCrawler", WORDS_STARTING));
	shows("[WebCrawler] Reading otter.ai", WORDS_DOING("", "WebCrawler", "Reading otter.ai"));
	shows("Subagent [CodeReviewer S-1] still working: Thinking",
	      WORDS_STILL_WORKING_AS("", "CodeReviewer S-1", "Thinking"));
	shows("Subagent still working: no news yet", WORDS_STILL_WORKING("", WORDS_NO_NEWS));
	shows("Thinking (12 s)", WORDS_THINKING_FOR("12 s"));
	shows("Waiting for the first word of the model (2 min)", WORDS_FIRST_WORD("2 min"));
	shows("Writing (120 words)", WORDS_WRITING(120));
	shows("Waiting 3 s for local (network): nothing answers at http://a: is your model server "
	      "running?",
	      WORDS_RETRY(3, "local", "network",
			  "nothing answers at http://a: is your model server running?"));
	shows("Waiting 3 s for a (overloaded)", WORDS_RETRY(3, "a", "overloaded", ""));
	shows("reply 7 of 20", WORDS_REPLY_OF(7, 20));
	shows(", 1 call failed", WORDS_CALLS_FAILED(1));
	shows("the model is reading (2 min)", WORDS_MODEL_READS("2 min"));
	shows("the model has written 1 word", WORDS_MODEL_WROTE(1));
	shows("Ava is thinking (12 s)", WORDS_AVA_IS("Thinking (12 s)"));
	shows("Ava is at work", WORDS_AVA_IS(WORDS_AVA_AT_WORK));
	shows("WebCrawler running (45s, 12k tokens)...",
	      WORDS_RUNNING("", "WebCrawler", "running", "45s", "12k", "..."));
	shows("WebCrawler running (45s, 12k tokens, $0.02)",
	      WORDS_RUNNING_FOR("WebCrawler", "running", "45s", "12k", "$0.02"));
	shows("[Researcher] asks: Which?", WORDS_ASKS("", "[Researcher]", "Which?"));
	shows("Answer with: ", WORDS_ANSWER_WITH);
	shows("No subagent is at work in this conversation.", WORDS_NONE_AT_WORK);
	shows("No subagent has run in this conversation.", WORDS_NONE_HAS_RUN);
	shows("Follow it: ava events S-1 -f; wait for it: ava wait S-1", WORDS_FOLLOW("S-1"));
	shows("S-1 has its answer.", WORDS_HAS_ANSWER("S-1"));
	shows("S-1 is paused until 18:40", WORDS_PAUSE("S-1", pause));
	pause = NULL;
	shows("S-1 goes on", WORDS_PAUSE("S-1", pause));
	shows("S-1 reads that after what it is doing now.", WORDS_READS_LATER("S-1"));
	shows("Ava cannot answer: no key", WORDS_CANNOT("auth", "no key"));
	shows("Nothing was started: say so", WORDS_CANNOT("answer", "say so"));
	shows("A run is held: see S-1", WORDS_HELD("see S-1"));
	shows("(cut: all of it stands in the conversation's file)", WORDS_CUT);
	shows("1 line of this conversation's file cannot be read and is left out; the first: f, "
	      "line 4",
	      WORDS_UNREADABLE(1, "f, line 4"));
	shows("Cancelling S-1; Ctrl-C again leaves without waiting.", WORDS_CANCELLING("S-1"));
	shows("Today: $0.24, 12k tokens, 1 run", WORDS_TODAY("$0.24", "12k", 1, ""));
	shows("Today: $0.24, 12k tokens, 2 runs.", WORDS_TODAY("$0.24", "12k", 2, "."));
}

TEST(marks)
{
	static const char *const marks[] = {"🚀 ", "🔍 ",      "⏳ ", "❓ ",
					    "✅ ", "⚠️ ", "❌ ", "⏹️ "};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		assert_string_equal(words_mark((enum words_mark)i, true), marks[i]);
		assert_string_equal(words_mark((enum words_mark)i, false), "");
		assert_true(words_imitates(marks[i]));
	}
	assert_true(words_imitates("⚠ X"));
	assert_true(words_imitates("Proceed  Yes No"));
	assert_false(words_imitates("It is ✅"));
	assert_false(words_imitates(""));
	assert_true(words_imitates("Subagent X"));
	assert_true(words_imitates("Proceed"));
	assert_false(words_imitates("Subagents X"));
}

struct end_row {
	const char *status, *reason, *error;
	int64_t limit;
	const char *line;
	enum words_mark mark;
	int64_t needs;
	const char *class;
};

static void shows_ends(const struct end_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct words_end end = words_end("S-1", rows[i].status, rows[i].reason,
						 rows[i].class ? rows[i].class : "", rows[i].error,
						 rows[i].limit, rows[i].needs);
		char line[256];

		snprintf(line, sizeof(line), "Subagent %s", rows[i].line);
		shows(line, WORDS_ENDED("", "R", &end, "9s", "$0.24"));
		assert_int_equal(end.mark, rows[i].mark);
	}
}

TEST(end)
{
	static const struct end_row rows[] = {
		{"running", "", "", 0, "[R]:  (9s, $0.24)", WORDS_MARK_BAD},
		{"success", "submitted", "", 0, "[R]: Complete (9s, $0.24)", WORDS_MARK_DONE},
		{"no_result", "final_text", "", 0,
		 "[R]: Ended without a result (9s, $0.24); `ava resume S-1` goes on",
		 WORDS_MARK_LIMIT},
		{"unproven", "check", "", 0, "[R]: Unproven (9s, $0.24); `ava resume S-1` goes on",
		 WORDS_MARK_LIMIT},
		{"cancelled", "", "", 0, "[R]: Cancelled (9s, $0.24)", WORDS_MARK_STOP},
		{"error", "bad_key", "", 0,
		 "[R]: Failed, bad key (9s, $0.24); `ava resume S-1` goes on", WORDS_MARK_BAD},
		{"error", "", "", 0, "[R]: Failed (9s, $0.24); `ava resume S-1` goes on",
		 WORDS_MARK_BAD},
		{"error", "model_error", "", 0,
		 "[R]: Failed, model error (9s, $0.24); set a valid key (`ava doctor` says which), "
		 "then `ava resume S-1` goes on",
		 WORDS_MARK_BAD, 0, "auth"},
		{"error", "model_error", "", 0,
		 "[R]: Failed, model error (9s, $0.24); when its service answers again (`ava "
		 "doctor` "
		 "asks it), `ava resume S-1` goes on",
		 WORDS_MARK_BAD, 0, "network"},
		{"error", "model_error", "", 0,
		 "[R]: Failed, model error (9s, $0.24); name a model that its service has: `ava "
		 "resume "
		 "S-1 --model MODEL` goes on",
		 WORDS_MARK_BAD, 0, "not_found"},
		{"error", "interrupted", "", 0,
		 "[R]: Failed, interrupted (9s, $0.24); `ava resume S-1` goes on", WORDS_MARK_BAD,
		 0, "interrupted"},
	};

	shows_ends(rows, ARRAY_LEN(rows));
}

TEST(end_at_a_limit)
{
	static const struct end_row rows[] = {
		{"timeout", "", "", 600000,
		 "[R]: Stopped at its limit of 10 min (9s, $0.24); `ava resume S-1 --timeout 1200` "
		 "goes on",
		 WORDS_MARK_LIMIT},
		{"cost_exceeded", "", "", 500000,
		 "[R]: Stopped at its limit of $0.50 (9s, $0.24); `ava resume S-1 --max-cost-cents "
		 "100` goes on",
		 WORDS_MARK_LIMIT},
		{"cost_exceeded", "", "", 10000,
		 "[R]: Stopped at its limit of $0.01 (9s, $0.24); `ava resume S-1 --max-cost-cents "
		 "5` goes on",
		 WORDS_MARK_LIMIT, 50000},
		{"tokens_exceeded", "", "", 100000,
		 "[R]: Stopped at its limit of 100k tokens (9s, $0.24); `ava resume S-1 "
		 "--max-tokens 200000` goes on",
		 WORDS_MARK_LIMIT},
		{"iterations_exceeded", "", "", 1,
		 "[R]: Stopped at its limit of 1 reply (9s, $0.24); `ava resume S-1 "
		 "--max-iterations 2` goes on",
		 WORDS_MARK_LIMIT},
		{"iterations_exceeded", "", "", 0,
		 "[R]: Stopped at its limit of replies (9s, $0.24); `ava resume S-1` goes on",
		 WORDS_MARK_LIMIT},
		{"cost_exceeded", "", "the day's budget is spent", 0,
		 "[R]: Stopped, the day's budget is spent (9s, $0.24); when there is budget again, "
		 "`ava "
		 "resume S-1` goes on",
		 WORDS_MARK_LIMIT},
	};

	shows_ends(rows, ARRAY_LEN(rows));
	for (int s = AVA_TIMEOUT; s <= AVA_ITERATIONS_EXCEEDED; s++)
		assert_non_null(words_limit(ava_status_name((enum ava_status)s)));
}

TEST(result)
{
	struct words_end end = {.next = WORDS_CANCELLED};

	shows("It proposes changes in 1 file: `ava apply S-1` shows them and asks.",
	      WORDS_PROPOSES(1, "S-1"));
	shows("It proposes changes in 2 files: `ava apply S-1` shows them and asks.",
	      WORDS_PROPOSES(2, "S-1"));
	shows("S-1: 2 files written in /home/p", WORDS_APPLIED("S-1", 2, "/home/p"));
	shows("S-1: its changes are left as a patch", WORDS_LEFT("S-1"));
	shows("S-1: Complete; Cancelled", WORDS_RESULT_OF("S-1", WORDS_COMPLETE, &end));
	shows("Ended without a result", WORDS_NO_RESULT);
	shows("Unproven, its check did not pass: exit 1",
	      WORDS_UNPROVEN("its check did not pass: exit 1"));
	shows("Check did not pass: `make test`, exit 1, 0.3 s",
	      WORDS_CHECK(false, "make test", "exit 1, 0.3 s"));
	shows("its check did not pass: exit 1", WORDS_CHECK_FAILED, 6, "exit 1, 2 s");
	shows("its check could not be run: exit 1", WORDS_CHECK_UNABLE, 6, "exit 1, 2 s");
	shows("its check passed (exit 0), but the run went on after that", WORDS_CHECK_PASSED_THEN,
	      6, "exit 0, 2 s");
	shows("its check was not run", WORDS_CHECK_NOT_RUN);
	shows("its check did not finish: cancelled", WORDS_CHECK_CUT, 9, WORDS_CHECK_CANCELLED);
	shows("ended by the run's time limit", WORDS_CHECK_TIME);
	shows("check.sh changed in its copy, and the check runs it", WORDS_CHECK_EDITED,
	      "check.sh");
	shows("\n• Check: ", WORDS_QUOTE_CHECK);
	shows("; else it ends as unproven", WORDS_QUOTE_CHECK_ONCE);
	shows("; it may change what that runs (a), which its result tells",
	      WORDS_QUOTE_CHECK_RUNS "a" WORDS_QUOTE_CHECK_MAY);
	shows("\n• Check of run 2: ", WORDS_QUOTE_CHECK_OF(2u));
	shows("; a success only when that ends with exit 0, in the sandbox on its copy",
	      WORDS_QUOTE_CHECK_HOW(true));
	shows("; else it may mend that 1 time", WORDS_QUOTE_CHECK_ROUNDS(1));
	shows("\n• Sends out: these addresses, as a model that has seen your data wrote them",
	      WORDS_QUOTE_FETCH_SENDS);
	shows("Stopped at its limit of time after 1 reply, without a result.",
	      WORDS_LIMIT_SUMMARY("time", words_amount(WORDS_LIMIT_REPLIES, 1).text));
	shows("Stopped at its limit of ", WORDS_STOPPED_AT);
	shows("Stopped, the disk is full", WORDS_STOPPED("the disk is full"));
	shows("Failed, the disk is full", WORDS_FAILED("the disk is full"));
	shows("`ava resume S-1` goes on", WORDS_GOES_ON("S-1", ""));
	shows("Cancelled before it had a result.", WORDS_CANCELLED_SUMMARY);
	shows("It ended without a summary.", WORDS_NO_SUMMARY);
	shows("It said last: ", WORDS_SAID_LAST);
	shows("Caveats", WORDS_CAVEATS);
	shows("confidence 0.90", WORDS_CONFIDENCE(0.9));
	shows("9s, 12k tokens, cost unknown, 2 replies",
	      WORDS_TOTALS("9s", "12k", "cost unknown", words_amount(WORDS_LIMIT_REPLIES, 2).text));
	shows("Log: ava logs S-1, ava trace S-1", WORDS_LOG_OF("S-1"));
	shows("All of it, uncut: ava result S-1 --json", WORDS_UNCUT("S-1"));
	shows("partial: the run was stopped before it was done", WORDS_PARTIAL);
	shows("the run did not submit a result: this is what it said, unverified",
	      WORDS_UNVERIFIED);
	shows(" (not found where it was said to be)", WORDS_NOT_FOUND);
	shows("1 of 1 citation was not found where it was said to be", WORDS_NOT_FOUND_OF(1, 1));
	shows("1 of 2 citations were not found where they were said to be",
	      WORDS_NOT_FOUND_OF(1, 2));
}

TEST(order)
{
	shows("\n• Standing order O-1: ", WORDS_ORDER("O-1"));
	shows(" (@daily)", WORDS_ORDER_WHEN("@daily"));
	shows("\n• Next: ", WORDS_ORDER_NEXT);
	shows("\n• Each run: up to ", WORDS_ORDER_TAKES);
	shows("; all of them up to $1.00 a day", WORDS_ORDER_DAY("$1.00"));
	shows("; all of them up to $9.00 a month", WORDS_ORDER_MONTH("$9.00"));
	shows("; a day and a month have no limit of their own", WORDS_ORDER_NO_MONEY);
	shows("\n• Ends: when you remove it (`ava schedule rm`)",
	      WORDS_ORDER_ENDS WORDS_ORDER_NO_END);
	shows("when no time is left", WORDS_ORDER_NO_MORE);
	shows("Fri 2027-01-01 00:00", WORDS_ORDER_UNTIL("Fri 2027-01-01 00:00"));
	shows(", or after 1 run", WORDS_ORDER_COUNT(", or ", 1));
	shows("\n• While one is at work: the next is left out, and told", WORDS_ORDER_SKIP);
	shows("\n• While one is at work: one waits, others are left out; deliveries wait, ten at "
	      "most",
	      WORDS_ORDER_QUEUE);
	shows("\n• Missed times: one run for all of them", WORDS_ORDER_ONCE);
	shows("\n• Missed times: left out, and told", WORDS_ORDER_MISSED_SKIP);
	shows("\n• Missed times: made up for, ten at most; others are told", WORDS_ORDER_ALL);
	shows("The standing order O-1 is paused", WORDS_ORDER_IS("O-1", "paused", ""));
	shows("The standing order O-1: 2 times were missed",
	      WORDS_ORDER_SAYS("O-1", "2 times were missed"));
	shows("The standing order O-1 asks you anew: its tools",
	      WORDS_ORDER_ASKS("O-1", "its tools"));
}

TEST(quote)
{
	shows("Quote 2 (P-19c0de): ", WORDS_QUOTE_NUMBER(2u, "P-19c0de"));
	shows("I'll spawn a WebCrawler subagent ", WORDS_QUOTE_ONE("WebCrawler", false));
	shows("Each time, I'll spawn an Auditor subagent ", WORDS_QUOTE_ONE("Auditor", true));
	shows("I'll spawn 2 subagents side by side:\n",
	      WORDS_QUOTE_SEVERAL(2u, WORDS_SIDE_BY_SIDE));
	shows("I'll spawn 2 subagents one after another, each with what the one before found:\n",
	      WORDS_QUOTE_SEVERAL(2u, WORDS_HANDED_ON));
	shows("one after another", WORDS_IN_TURN);
	shows("Estimated:\n• Time: ~1 minute\n", WORDS_QUOTE_TIME(false, words_minutes(1, 1).text));
	shows("Estimated, together:\n• Time: ~5-10 minutes\n",
	      WORDS_QUOTE_TIME(true, words_minutes(5, 10).text));
	shows("• Cost: up to $0.50\n", WORDS_QUOTE_COST("$0.50", false));
	shows("• Cost: up to $0.00 (offline model, no key and no network)\n",
	      WORDS_QUOTE_COST("$0.00", true));
	shows("• Cost: unknown, held by 100k tokens\n", WORDS_QUOTE_HELD("100k tokens"));
	shows("• Cost: unknown, held by their tokens\n", WORDS_QUOTE_HELD(WORDS_QUOTE_THEIRS));
	shows("• Tools: ", WORDS_QUOTE_TOOLS);
	shows("\n• Changes: may change a private copy of ", WORDS_QUOTE_CHANGES);
	shows("; nothing is written to it before you say `ava apply`", WORDS_QUOTE_UNCHANGED);
	shows("\n• Model: m, thinking", WORDS_QUOTE_MODEL("m", true));
	shows(", trying again (Ctrl-C stops)", WORDS_TRYING WORDS_CTRL_C_STOPS);
	shows(", trying again in 12 s", WORDS_TRYING_IN(12));
	shows("; where it does not answer ", WORDS_QUOTE_OVERLOADED);
	shows("\n• Why: ", WORDS_QUOTE_WHY);
	shows("\n• Tags: ", WORDS_QUOTE_TAGS);
	shows("The budget of the month is used up: $11 of $10",
	      WORDS_BUDGET("", "month", 100, "$11", "$10"));
	shows("Calls that draw on it wait, are made shorter or end their runs, until its next "
	      "period "
	      "begins or config.yaml gives it more.",
	      WORDS_BUDGET_GONE);
	shows("\n• Asks you before: ", WORDS_QUOTE_ASKS);
	shows("\n• TOO SMALL A WINDOW: why", WORDS_QUOTE_SMALL("why"));
	shows("\n• NO TOOLS REACH m: `ava doctor` says why", WORDS_QUOTE_NO_TOOLS("m"));
	shows("\n• Limits: $1.00 and 5 min for all, each stops at 5 min; asks you before it ends "
	      "there",
	      WORDS_QUOTE_LIMITS "$1.00" WORDS_AND
				 "5 min" WORDS_QUOTE_FOR_ALL WORDS_QUOTE_EACH WORDS_QUOTE_STOPS
				 "5 min" WORDS_QUOTE_STOP_ASKS);
	shows("; asks you before it waits for a quota to come back", WORDS_QUOTE_QUOTA_ASKS);
	shows("; fails where a quota is used up", WORDS_QUOTE_QUOTA_FAILS);
	shows("\n• Model: offline" WORDS_QUOTE_LIMITS "each stops at its own, the widest: 5 min",
	      WORDS_QUOTE_MODELS "offline" WORDS_QUOTE_LIMITS WORDS_QUOTE_EACH WORDS_QUOTE_WIDEST
				 "5 min");
	shows("\n• May fetch: https://a.test\n• May not fetch: 3 more addresses of its task",
	      WORDS_QUOTE_FETCH "https://a.test" WORDS_QUOTE_FETCH_NOT((size_t)3));
}

/* The task, what is not shown, and what a person can answer. */
TEST(quote_and_answer)
{
	shows("\n• Task:\n  | find", WORDS_QUOTE_TASK WORDS_QUOTE_ROW "find");
	shows("\n• Task 2:", WORDS_QUOTE_TASK_OF(2));
	shows("\n  (and 1,240 more characters: `ava proposals P-1`)",
	      WORDS_QUOTE_MORE("\n  ", "1,240", "P-1"));
	shows("\n• Not shown here: ", WORDS_QUOTE_UNSHOWN);
	shows("12 characters of context", WORDS_QUOTE_CONTEXT("12"));
	shows(" and an output schema of 12", WORDS_QUOTE_SCHEMA(WORDS_AND, "12"));
	shows(" (see `ava proposals P-1`)", WORDS_QUOTE_LOOK("P-1"));
	shows("\n• Changed: up to $0.20", WORDS_QUOTE_CHANGED(WORDS_UP_TO "$0.20"));
	shows("at most 5 min in all, as Researcher, with thinking, without run_bash",
	      WORDS_AT_MOST "5 min" WORDS_IN_ALL ", " WORDS_AS
			    "Researcher, " WORDS_WITH WORDS_THINKING ", " WORDS_WITHOUT "run_bash");
	shows("\n• TOO LOW A LIMIT: $0.01 pays no call", WORDS_QUOTE_UNPAID("$0.01 pays no call"));
	shows("\n• Search: no search service: can only read addresses that the task names",
	      WORDS_QUOTE_NO_SEARCH);
	shows("Proceed? [Yes/No]", WORDS_PROCEED WORDS_PROCEED_YES);
	shows("Proceed? [Yes, all three/No]", WORDS_PROCEED WORDS_PROCEED_ALL);
	shows("Proceed? [Yes, without web_search/Yes, all three/No]",
	      WORDS_PROCEED WORDS_PROCEED_SPLIT("web_search"));
	shows("• Folder: /src/tail", WORDS_QUOTE_FOLDER("/src/tail"));
	shows("Start it", WORDS_FORM_START);
	shows("Allow all three rights: it could send your data out", WORDS_FORM_ALL_THREE);
	shows("On other terms", WORDS_FORM_TERMS);
	shows("Such as: max 20 cents, at most 5 minutes", WORDS_FORM_SUCH_AS);
	shows("Your answer", WORDS_FORM_ANSWER);
	shows("Nothing was started: only the person can confirm P-19c0de. They run `ava confirm "
	      "P-19c0de`, or answer in `ava` or on its page.",
	      WORDS_NOT_STARTED("P-19c0de"));
	shows("No", WORDS_NO);
	shows("Yes, all three", WORDS_YES_ALL_THREE);
	shows("P-19c0de waits for your answer: find it", WORDS_WAITS("P-19c0de", ": find it"));
	shows("Waiting for your answer:", WORDS_WAITING);
	shows("No proposal waits for your answer.", WORDS_NONE_WAITS);
	shows("Confirmed, up to $0.20.", WORDS_CONFIRMED("up to $0.20"));
	shows("P-19c0de is rejected: nothing was started", WORDS_REJECTED("P-19c0de"));
	shows("P-19c0de has expired: nothing was started", WORDS_EXPIRED("P-19c0de"));
}

/* What was used is rounded, a limit is exact. */
TEST(items)
{
	shows("It is not shown whole: `ava logs` has the call.", WORDS_NOT_WHOLE);
	shows("9 characters of it stand in the file above, and in `ava asks P-1`.",
	      WORDS_HIDDEN((size_t)9, "P-1"));
	shows("P-19c0de is confirmed as quoted", WORDS_CONFIRMED_AS_QUOTED("P-19c0de", ""));
	shows("P-19c0de is confirmed as quoted: it is the order O-5d09c41e",
	      WORDS_CONFIRMED_AS_QUOTED("P-19c0de", "O-5d09c41e"));
	shows("P-1 is replaced by P-2", WORDS_REPLACED("P-1", "P-2"));
	shows("S-1 (Researcher) has started", WORDS_STARTED("S-1 (Researcher)"));
	shows("S-1 asks you", WORDS_ASKS_YOU("S-1"));
	shows("S-1 asked, and nobody answered in time", WORDS_ASKED_IN_VAIN("S-1"));
	shows("S-1 has ended and asks no more", WORDS_ASKS_NO_MORE("S-1"));
	shows("S-1: Complete (12s, $0.02)", WORDS_RUN_ENDED("S-1", "Complete", "12s", "$0.02"));
}

TEST(limits)
{
	static const struct {
		const char *name;
		int64_t n;
		const char *text;
	} rows[] = {
		{"timeout", 600000, "10 min"},
		{"timeout", 5400000, "1 h 30 min"},
		{"timeout", 7200000, "2 h"},
		{"timeout", 90000, "1 min 30 s"},
		{"timeout", 0, "0 s"},
		{"max_cost_cents", 500000, "$0.50"},
		{"max_cost_cents", 5000, "$0.0050"},
		{"max_cost_cents", -1, "cost unknown"},
		{"max_tokens", 100000, "100k tokens"},
		{"max_tokens", 1500000, "1.5M tokens"},
		{"max_tokens", 123456700, "123456.7k tokens"},
		{"max_tokens", 12345, "12345 tokens"},
		{"max_iterations", 20, "20 replies"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		shows(rows[i].text, "%s",
		      words_amount(words_limit(rows[i].name)->kind, rows[i].n).text);
	assert_null(words_limit("success"));
}

TEST(guide)
{
	shows("\n• Instructions: ", WORDS_QUOTE_INSTRUCTIONS);
	shows("none, and no skills", WORDS_QUOTE_NO_INSTRUCTIONS);
	shows("\n• Skills: ", WORDS_QUOTE_SKILLS);
	shows("\n• Left out: ", WORDS_QUOTE_LEFT_OUT);
	shows("with AGENTS.md as it is now", WORDS_WITH "AGENTS.md" WORDS_AS_IT_IS);
}
