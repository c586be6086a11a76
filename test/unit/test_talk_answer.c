/* Proposals in a conversation, and what the person's words do to them: what they
 * saw runs, once, and nothing else. */
#include "talk_rig.h"

TEST(the_whole_way)
{
	struct world *w = *state;
	const char *id = begin(w, NULL);

	tell(w, id, ASK);
	assert_said(w, id, "in the background.");
	assert_true(pending(w)[0] == 'P');
	assert_int_equal(runs(w), 0);
	assert_int_equal(say(w, id, "yes please"), 1);
	wait_while(w, id, has_runs);
	assert_said(w, id, "what is found");
	/* Paragraphs of their own, so that Markdown shows them apart. */
	assert_said(w, id, "\n\n- parser.c:1");
	assert_said(w, id, "\n\nCaveat");
	assert_int_equal(runs(w), 1);
	assert_int_equal(seen(w, id, "event", "subagent:start").n, 1);
	assert_int_equal(seen(w, id, "event", "subagent:complete").n, 1);
	assert_sent(w, id, "[ava] End of the result of S-", true);
}

/* One run of another conversation has it: those that follow stay at work. */
static void take_the_slot(struct world *w)
{
	struct op_spawn slow = A_RUN(.task = "wait");
	char run[24];

	w->settings.runs_max = 1;
	reopen(w);
	slow.model = script(w, HELD("late"));
	spawn(w, &slow, run);
}

static void one_left(struct world *w)
{
	for (int i = 0; w->core->sup.nlive > 1 && i < 1000; i++)
		os_loop_step(w->loop, 5);
	assert_int_equal(w->core->sup.nlive, 1);
}

/* With a yes to her own question, and with no other. */
TEST(stop_it_as_she_asked)
{
	struct world *w = *state;
	const char *id;

	take_the_slot(w);
	id = begin(w, NULL);
	tell(w, id, ASK);
	tell(w, id, "yes");
	tell(w, id, "should I stop it?");
	assert_said(w, id, "Shall I stop it?");
	tell(w, id, "no");
	assert_said(w, id, "It goes on.");
	tell(w, id, "yes"); /* to nothing: she has said something since */
	tell(w, id, "should I stop it?");
	assert_int_equal(w->core->sup.nlive, 2);
	tell(w, id, "yes");
	one_left(w);
}

/* A quote and a run: a "stop" is for the quote, and she asks about the run. While the quote
 * waits she asks nothing else that its yes would answer. */
TEST(stop_with_a_quote_and_a_run)
{
	struct world *w = *state;
	const char *id;

	take_the_slot(w);
	id = begin(w, NULL);
	tell(w, id, ASK);
	tell(w, id, "yes");
	tell(w, id, "Find where main is defined");
	tell(w, id, "should I stop it?");
	assert_said(w, id, "\"Stop S-");
	assert_null(strstr(seen(w, id, "assistant", NULL).last, "?"));
	tell(w, id, "stop");
	assert_string_equal(pending(w), "");
	assert_int_equal(w->core->sup.nlive, 2);
	assert_said(w, id, "is still at work. Shall I stop it?");
	tell(w, id, "yes");
	one_left(w);
}

/* A bare yes or no behind another question of hers starts and rejects nothing, also behind a
 * restart; what names the quote does, and a yes to a question about it. */
TEST(a_yes_to_something_else)
{
	static const struct {
		const char *asks, *says;
		bool restart, decides;
	} rows[] = {
		{"Shall I delete the notes, too?", "yes", false, false},
		{"Shall I delete the notes, too?", "yes", true, false},
		{"Shall I delete the notes, too?", "no", false, false},
		{"Shall I delete the notes, too?", "cancel it", false, true},
		{"Shall I delete the notes, too?", "yes, max 2 cents", false, true},
		{"Shall I delete the notes, too?", NULL, false, true}, /* yes, P-... */
		{"It reads three files. Shall I start it?", "yes", false, true},
		{"It reads three files.", "yes", true, true},
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char lines[600], named[64];
		const char *id;

		snprintf(lines, sizeof(lines),
			 CALLS(SPAWN("find parse_header")) SAY("Shall I?") SAY("%s") SAY("Well."),
			 rows[i].asks);
		id = begin(w, script(w, lines));
		tell(w, id, "go");
		snprintf(named, sizeof(named), "yes, %s", pending(w));
		tell(w, id, "what does it do");
		if (rows[i].restart)
			open_anew(w, id);
		tell(w, id, rows[i].says ? rows[i].says : named);
		if ((pending(w)[0] == 0) != rows[i].decides)
			fail_msg("row %zu: %s is %s", i, rows[i].says, pending(w));
		assert_sent(w, id, "you have asked something else since", !rows[i].decides);
		wait_while(w, id, has_runs);
		if (!rows[i].decides)
			tell(w, id, "cancel");
	}
}

TEST(confirming_what_waits)
{
	struct world *w = *state;
	const char *id = begin(w, NULL);
	char lines[600];

	tell(w, id, ASK);
	snprintf(lines, sizeof(lines),
		 CALL("confirm_spawn", "{\"proposal_id\":\"%s\"}") SAY("I tried."), pending(w));
	id = begin(w, script(w, lines));
	tell(w, id, "yes"); /* in another conversation: it is not asked there */
	assert_int_equal(runs(w), 0);
	assert_int_equal(seen(w, id, "toolResult", "only their own yes starts it").n, 1);
}

static void answered(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		     void *user)
{
	*(int *)user = rv == 0 ? 1 : rv;
}

static void say_having_seen(struct world *w, const char *id, const char *text, const char *quote)
{
	struct op_say s = {.text = text, .user_id = "ben", .seen = quote};
	int done = 0;

	ops_say(w->core, id, &s, said, &done);
	assert_int_equal(until(w, &done), 1);
	wait_while(w, id, is_busy);
}

static void count_open(struct proposal *p, void *user)
{
	*(unsigned *)user |= 1u << p->number;
}

/* A bit a number. */
static unsigned open_ones(struct world *w)
{
	unsigned left = 0;

	ops_proposals(w->core, false, count_open, &left);
	return left;
}

#define TWO CALLS(SPAWN("find one") "," SPAWN("find two")) SAY("a")

/* Two quotes wait, as 1 and 2. */
TEST(which_of_two)
{
	static const struct {
		const char *words;
		unsigned runs, left;
	} rows[] = {
		{"yes", 0, 6},
		{"the third", 0, 6},
		{"the first thing to know is how it works", 0, 6},
		{"yes to the first, no to the second", 0, 6},
		{"hi all", 0, 6},
		{"thanks, all", 0, 6},
		{"all good, thanks", 0, 6},
		{"the first, not the second", 0, 6},
		{"not #1, #2", 0, 6},
		{"no, the second", 0, 6},
		{"the second", 1, 2},
		{"yes to the second one", 1, 2},
		{"yes, the first please", 1, 4},
		{"no to the first", 0, 4},
		{"number 2: yes", 1, 2},
		{"go ahead with #1", 1, 4},
		{"both", 2, 0},
		{"yes to both", 2, 0},
		{"all of them", 2, 0},
		{"all of them, thanks", 2, 0},
		{"no to all", 0, 0},
		{"none of them", 0, 0},
		{"neither", 0, 0},
		{"no, none", 0, 0},
		{"not the second", 0, 2},
		{"the second, but max 2 minutes", 1, 2},
		{"yes to the second, but max 2 minutes", 1, 2},
	};
	struct world *w = *state;

	const char *id = NULL;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned before = runs(w);

		if (!id) { /* else both wait still */
			id = begin(w, script(w, TWO SAY("b") SAY("c") SAY("d") SAY("e") SAY("f")
							SAY("g") SAY("h") SAY("i") SAY("j")));
			tell(w, id, "go");
		}
		tell(w, id, rows[i].words);
		if (runs(w) - before != rows[i].runs || open_ones(w) != rows[i].left)
			fail_msg("%s: %u runs, left %x", rows[i].words, runs(w) - before,
				 open_ones(w));
		if (rows[i].left != 6) {
			tell(w, id, "no to all");
			id = NULL;
		}
	}
}

/* "Both" of three names none of them: she asks. */
TEST(both_of_three)
{
	struct world *w = *state;
	const char *id = begin(w, NULL);

	tell(w, id, "review src/one.c for leaks");
	tell(w, id, "review src/two.c for leaks");
	tell(w, id, "review src/three.c for leaks");
	tell(w, id, "what is waiting for me?");
	assert_said(w, id, "\"review src/two.c for leaks\"\n");
	tell(w, id, "both");
	assert_said(w, id, "Say its number, all or none.");
	tell(w, id, "no to both");
	assert_int_equal(runs(w), 0);
	assert_int_equal(open_ones(w), 14);
	tell(w, id, "all of them");
	assert_int_equal(runs(w), 3);
}

/* Two quotes wait, she is at work, and what is said meanwhile is looked at when she has ended. The
 * second is answered elsewhere before that. */
TEST(answered_before_it_is_looked_at)
{
	static const struct {
		const char *words;
		unsigned runs;
	} rows[] = {
		{"yes", 0},           {"yes, the last one", 0},
		{"the second", 0},    {"start two", 0},
		{"start the two", 0}, {"no", 0},
		{"the first", 1},     {"both", 1},
	};
	struct world *w = *state;

	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		const char *id = begin(w, script(w, TWO HELD("b") SAY("c") SAY("d")));
		unsigned before = runs(w), want = rows[i / 2].runs;
		int done = 0;

		tell(w, id, "go");
		assert_int_equal(say(w, id, "hello"), 1);
		assert_int_equal(say(w, id, rows[i / 2].words), 1);
		ops_reject(w->core, newest_pending(w), "", "ben", "terminal", answered, &done);
		assert_int_equal(until(w, &done), 1);
		if (i % 2 == 1)
			reopen(w);
		let_reply(w, id);
		wait_while(w, id, has_runs);
		if (runs(w) - before != want || open_ones(w) != (want ? 0 : 2))
			fail_msg("%s: %u runs, left %x", rows[i / 2].words, runs(w) - before,
				 open_ones(w));
		tell(w, id, "no to all");
	}
}

/* ---- killed when the answer is on disk, and that it was taken is not */

struct killing {
	struct world *w;
	struct op_cursor *cursor;
	bool done;
};

static void kill_behind_the_yes(void *user)
{
	struct killing *k = user;
	char command[1000];
	struct op_event e;

	while (k->cursor && !k->done && ops_events_next(k->cursor, &e) == 1) {
		if (e.type_len != 14 || memcmp(e.type, "SpawnConfirmed", 14) != 0)
			continue;
		/* Temporary files come and go meanwhile. */
		snprintf(command, sizeof(command),
			 "for i in 1 2 3 4 5; do rm -rf %s/killed; cp -a %s %s/killed && exit 0; "
			 "done; exit 1",
			 k->w->dir, k->w->root, k->w->dir);
		assert_int_equal(system(command), 0);
		k->done = true;
	}
}

/* The words are heard again by the next start, and are no answer to the other quote. */
TEST(a_yes_is_spent_once)
{
	struct world *w = *state;
	const char *id = begin(w, script(w, TWO SAY("b") SAY("c") SAY("d")));
	struct killing k = {.w = w};

	tell(w, id, "go");
	k.cursor = ops_events_open(w->core, NULL, UINT64_MAX, kill_behind_the_yes, &k, NULL);
	tell(w, id, "yes to the last one");
	assert_true(k.done);
	ops_events_close(k.cursor);
	core_close(w->core);
	snprintf(w->root, sizeof(w->root), "%s/killed", w->dir);
	open_core(w);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 1);
	assert_int_equal(open_ones(w), 2);
}

/* A quote, and a no to it in another terminal. */
static void rejected_elsewhere(struct world *w, const char *id)
{
	int done = 0;

	tell(w, id, ASK);
	ops_reject(w->core, pending(w), "not now", "ben", "terminal", answered, &done);
	assert_int_equal(until(w, &done), 1);
}

/* What was answered in another terminal is no answer to what is said here. */
TEST(question_after_elsewhere)
{
	struct world *w = *state;
	const char *id = begin(w, NULL);

	rejected_elsewhere(w, id);
	tell(w, id, "where is parse_header defined?");
	assert_said(w, id, "parse_header is defined at parser.c:1");
	assert_sent(w, id, "was rejected by the person, not in this conversation", true);
}

/* What tools return twice is not said to the model twice; she knows it still. */
TEST(asked_twice)
{
	struct world *w = *state;
	const char *id = begin(w, NULL);

	for (int i = 0; i < 3; i++) {
		tell(w, id, "where is parse_header defined?");
		if (!strstr(seen(w, id, "assistant", NULL).last,
			    "parse_header is defined at parser.c:1"))
			fail_msg("%d: %s", i, seen(w, id, "assistant", NULL).last);
	}
	assert_sent(w, id, "unchanged since ", true);
}

/* A quote that came up while the person was typing is not what a bare yes means. */
TEST(yes_to_what_was_not_shown)
{
	struct world *w = *state;
	char named[80], quote[64];
	const char *id = begin(w, NULL);

	tell(w, id, ASK);
	snprintf(quote, sizeof(quote), "%s", pending(w));
	say_having_seen(w, id, "yes", "");
	assert_int_equal(runs(w), 0);
	assert_string_equal(pending(w), quote);
	snprintf(named, sizeof(named), "yes, %s", quote);
	say_having_seen(w, id, named, "");
	assert_int_equal(runs(w), 1);
	tell(w, id, ASK);
	say_having_seen(w, id, "yes", pending(w));
	assert_int_equal(runs(w), 2);
}

/* The same yes from two channels at once. */
TEST(two_channels)
{
	struct world *w = *state;
	struct op_say s = {.text = "yes", .user_id = "ben"};
	int here = 0, there = 0;
	const char *id = begin(w, NULL);

	tell(w, id, ASK);
	ops_say(w->core, id, &s, said, &here);
	ops_confirm(w->core, pending(w), "yes", NULL, "ben", "terminal", answered, &there);
	assert_int_equal(until(w, &here), 1);
	assert_int_equal(until(w, &there), 1);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 1);
	assert_said(w, id, "From S-");
}

static unsigned times_sent(struct world *w, const char *session, const char *text)
{
	char *data = messages(w, session);
	unsigned n = 0;

	for (const char *at = data; (at = strstr(at, text)) != NULL; at++)
		n++;
	free(data);
	return n;
}

/* What became of a proposal is told once, whatever stops between the decision
 * and her next turn. */
TEST(told_after_a_stop)
{
	struct world *w = *state;
	const char *id = begin(w, NULL);

	rejected_elsewhere(w, id);
	for (int i = 0; i < 2; i++) {
		reopen(w);
		tell(w, id, "hello");
	}
	assert_int_equal(times_sent(w, id, "was rejected by the person"), 2); /* mark, notice */
	assert_int_equal(times_sent(w, id, "[ava] P-"), 1);
}

/* It is answered elsewhere while nobody has the conversation in memory. */
TEST(answered_elsewhere)
{
	struct world *w = *state;
	int done = 0;
	const char *id = begin(w, NULL);

	tell(w, id, ASK);
	reopen(w);
	ops_confirm(w->core, pending(w), "yes", NULL, "ben", "terminal", answered, &done);
	assert_int_equal(until(w, &done), 1);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 1);
	assert_int_equal(seen(w, id, "assistant", "From S-").n, 1);
	assert_int_equal(times_sent(w, id, "[ava] The person confirmed P-"), 1);
	assert_int_equal(times_sent(w, id, "[ava] End of the result of S-"), 1);
}

/* One quote, one yes, several runs, less for all of them is no new quote; of a chain each result is
 * told of, too. */
TEST(parallel)
{
	static const char *const ways[] = {"", ",\"chain\":true"};
	struct world *w = *state;
	char lines[1000], *file;
	const char *id;
	size_t len;

	for (int i = 0; i < 2; i++) {
		snprintf(lines, sizeof(lines),
			 CALL("spawn_parallel",
			      "{\"runs\":[{\"role\":\"researcher\",\"task\":\"find "
			      "parse_header\"},{\"role\":"
			      "\"code_reviewer\",\"task\":\"find main\"}],\"max_cost_cents\":30%s}")
				 SAY("Two.") SAY("Less.") SAY("a") SAY("b") SAY("c"),
			 ways[i]);
		id = begin(w, script(w, lines));
		tell(w, id, "both things");
		tell(w, id, "max 20 cents");
		assert_sent(w, id, "is a new quote and waits", true);
		assert_int_equal(runs(w), 2 * i);
		tell(w, id, "yes, but max 10 cents");
		wait_while(w, id, has_runs);
		assert_int_equal(runs(w), 2 * i + 2);
		assert_int_equal(seen(w, id, "event", "subagent:complete").n, 2);
		assert_sent(w, id, "have started.", i == 0); /* each is named */
		assert_sent(w, id, "Next in its chain", i == 1);
		file = unit_read(session_file(w, id, ""), &len);
		assert_non_null(strstr(file, i ? "\"mode\":\"chain\"" : "\"mode\":\"parallel\""));
		assert_null(strstr(file, "\"mode\":\"single\""));
		if (i == 1) /* one ends, and the next begins */
			assert_true(strstr(file, "subagent:complete") <
				    strstr(strstr(file, "subagent:start") + 1, "subagent:start"));
		free(file);
	}
}

/* A name that does not wait is no other one's yes, and part of a word is no word. */
TEST(words_that_name)
{
	struct world *w = *state;
	const char *id =
		begin(w, script(w, CALLS(SPAWN("find parse_header")) SAY("One.") SAY("Which?")
					   CALLS(SPAWN("find main")) SAY("Two.") SAY("Which?")
						   SAY("Which?") SAY("Started.") SAY("More.")
							   SAY("More.")));
	char answer[80], first[24];

	tell(w, id, "go");
	snprintf(first, sizeof(first), "%s", pending(w));
	tell(w, id, "yes, P-abcdef0");
	assert_int_equal(runs(w), 0);
	assert_sent(w, id, "does not wait for an answer here", true);
	tell(w, id, "another");
	tell(w, id, "yes, dont bother asking, allow it");
	assert_int_equal(runs(w), 0);
	tell(w, id, "yes");
	assert_int_equal(runs(w), 0);
	assert_sent(w, id, "the words name none", true);
	snprintf(answer, sizeof(answer), "yes, %s and %s", first, newest_pending(w));
	tell(w, id, answer);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 2);
}

/* She proposes something else while the person answers what they have seen. */
TEST(edited_after_the_quote)
{
	struct world *w = *state;
	const char *id = begin(
		w, script(w, CALLS(SPAWN("find parse_header"))
				     SAY("One.") "{\"delay_ms\":3600000,\"tool_calls\":[" SPAWN(
					     "find secrets") "]}\n" SAY("Two.") SAY("Started.")
					     SAY("More.") SAY("More.")));
	char first[24];

	tell(w, id, "go");
	snprintf(first, sizeof(first), "%s", pending(w));
	assert_int_equal(say(w, id, "what will it read?"), 1);
	assert_int_equal(say(w, id, "yes"), 1); /* she is about to propose the other */
	let_reply(w, id);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 1);
	assert_string_equal(the_task(w), "find parse_header");
	assert_string_not_equal(pending(w), "");
	assert_string_not_equal(pending(w), first);
}

TEST(too_late)
{
	struct world *w = *state;
	const char *id = begin(w, NULL);

	tell(w, id, ASK);
	test_clock_skip(w->settings.proposal_expiry_s * 1000);
	for (int i = 0; pending(w)[0] && i < 6000; i++)
		os_loop_step(w->loop, 10);
	tell(w, id, "yes");
	assert_int_equal(runs(w), 0);
	assert_sent(w, id, "has expired: nothing was started", true);
}

UNIT_GROUP(.before = set_up, .after = tear_down);
