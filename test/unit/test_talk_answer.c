/* Proposals in a conversation, and what the person's words do to them: what they
 * saw runs, once, and nothing else. */
#include "talk_rig.h"

TEST(the_whole_way)
{
	struct world *w = *state;
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
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

/* What the offline Ava takes for work, and what not. */
TEST(questions)
{
	static const struct {
		const char *words;
		bool proposes;
	} rows[] = {
		{"Which function parses the header?", false}, /* she looks herself */
		{"where does it read the header", false},
		{"How is the header parsed here?", true},
		{"show me the parser of headers", false},
		{"explain the header to me", true},
		{"what can you do", false},
		{"how are you today, Ava?", false},
		{"which one?", false},
		{"hello there", false},
		{"yes", false},
		{"yes but max 20 cents", false},
		{"nothing at all, really", false},
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char id[64];
		unsigned offered;

		snprintf(id, sizeof(id), "%s", begin(w, NULL));
		tell(w, id, rows[i].words);
		offered = seen(w, id, "assistant", "in the background.").n;
		if (offered != rows[i].proposes)
			fail_msg("%s: proposed %u", rows[i].words, offered);
	}
}

TEST(no_is_no)
{
	struct world *w = *state;
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
	tell(w, id, "hm, what is it good for?");
	assert_said(w, id, "With a yes a subagent starts");
	tell(w, id, "no, thanks");
	assert_said(w, id, "All right.");
	assert_string_equal(pending(w), "");
	tell(w, id, "yes");
	assert_said(w, id, "Nothing waits for your answer");
	assert_int_equal(runs(w), 0);
}

/* Short, different, true. */
TEST(small_talk)
{
	static const struct {
		const char *words, *says;
	} rows[] = {
		{"hello", "Hello."},
		{"hi there", "Hello."},
		{"thanks!", "You're welcome."},
		{"help", "I propose a subagent to research"},
		{"is anything running?", "No subagent is at work"},
		{"list my subagents", "No subagent is at work"},
		{"stop it", "No subagent is at work"},
		{"how much did I spend today?", "`/cost` shows"},
		{"what is the capital of France?", "I don't know that"},
		{"look up the weather on the web", "I have no web and no internet here"},
		{"remind me tomorrow to look for leaks", "do things later"},
		{"order me a pizza", "I can't send or order anything"},
		{"run the tests", "I can propose a review"},
		{"bye", "Ctrl-D leaves"},
	};
	struct world *w = *state;
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		tell(w, id, rows[i].words);
		if (!strstr(seen(w, id, "assistant", NULL).last, rows[i].says))
			fail_msg("%s: %s", rows[i].words, seen(w, id, "assistant", NULL).last);
	}
	assert_string_equal(pending(w), "");
}

/* One run of another conversation has it: those that follow stay at work. */
static void take_the_slot(struct world *w)
{
	struct op_spawn slow = {.role = "researcher",
				.task = "wait",
				.user_id = "ben",
				.timeout_ms = AVA_DEFAULT,
				.max_cost_microusd = AVA_DEFAULT,
				.max_tokens = AVA_DEFAULT,
				.max_iterations = AVA_DEFAULT};
	char run[24] = "";

	w->settings.runs_max = 1;
	core_close(w->core);
	open_core(w);
	slow.model = script(w, "{\"text\":\"late\",\"delay_ms\":600000}\n");
	ops_spawn(w->core, &slow, run_spawned, run);
	while (!run[0])
		os_loop_step(w->loop, 5);
}

/* With one run at work it is meant; with two she asks. */
TEST(one_run_is_meant)
{
	struct world *w = *state;
	char id[64];

	take_the_slot(w);
	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
	tell(w, id, "yes");
	tell(w, id, "tell it to look at parser.c first");
	assert_int_equal(seen(w, id, "toolResult", "outcome").n, 1);
	tell(w, id, "Find where main is defined");
	tell(w, id, "yes");
	tell(w, id, "stop");
	assert_said(w, id, "Which one do you mean");
	assert_int_equal(w->core->sup.nlive, 3);
	tell(w, id, "cancel");
	assert_int_equal(w->core->sup.nlive, 3);
	tell(w, id, "Find where render is defined");
	tell(w, id, "yes");
	tell(w, id, "stop both"); /* of three */
	assert_int_equal(w->core->sup.nlive, 4);
}

/* In words, or with a yes to her own question. */
static void stop_with(struct world *w, bool asked)
{
	char id[64];

	take_the_slot(w);
	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
	tell(w, id, "yes");
	if (asked) {
		tell(w, id, "should I stop it?");
		assert_said(w, id, "Shall I stop it?");
		tell(w, id, "no");
		assert_said(w, id, "It goes on.");
		tell(w, id, "yes"); /* to nothing: she has said something since */
		tell(w, id, "should I stop it?");
	}
	assert_int_equal(w->core->sup.nlive, 2);
	tell(w, id, asked ? "yes" : "stop it, please");
	for (int i = 0; w->core->sup.nlive > 1 && i < 1000; i++)
		os_loop_step(w->loop, 5);
	assert_int_equal(w->core->sup.nlive, 1);
}

TEST(stop_it)
{
	stop_with(*state, false);
}

TEST(stop_it_as_she_asked)
{
	stop_with(*state, true);
}

/* A quote and a run: a "stop" is for the quote, and she asks about the run. While the quote
 * waits she asks nothing else that its yes would answer. */
TEST(stop_with_a_quote_and_a_run)
{
	struct world *w = *state;
	char id[64];

	take_the_slot(w);
	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
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
	for (int i = 0; w->core->sup.nlive > 1 && i < 1000; i++)
		os_loop_step(w->loop, 5);
	assert_int_equal(w->core->sup.nlive, 1);
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
		char id[64], lines[600], named[64];

		snprintf(lines, sizeof(lines),
			 "{\"tool_calls\":[{\"name\":\"spawn_subagent\",\"args\":{\"role\":"
			 "\"researcher\",\"task\":\"find parse_header\"}}]}\n"
			 "{\"text\":\"Shall I?\"}\n{\"text\":\"%s\"}\n{\"text\":\"Well.\"}\n",
			 rows[i].asks);
		snprintf(id, sizeof(id), "%s", begin(w, script(w, lines)));
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

/* She calls confirm_spawn with no word of the person. */
TEST(a_model_that_confirms_by_itself)
{
	struct world *w = *state;
	char id[64];

	snprintf(id, sizeof(id), "%s",
		 begin(w,
		       script(w, "{\"tool_calls\":[{\"name\":\"spawn_subagent\",\"args\":{\"role\":"
				 "\"researcher\",\"task\":\"find parse_header\"}}]}\n"
				 "{\"tool_calls\":[{\"name\":\"confirm_spawn\",\"args\":{"
				 "\"proposal_id\":\"P-000000\"}}]}\n"
				 "{\"text\":\"I tried.\"}\n")));
	tell(w, id, "go");
	assert_int_equal(runs(w), 0);
	assert_true(pending(w)[0] == 'P');
	assert_int_equal(seen(w, id, "toolResult", "there is no proposal P-000000").n, 1);
}

TEST(confirming_what_waits)
{
	struct world *w = *state;
	char id[64], lines[600];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
	snprintf(lines, sizeof(lines),
		 "{\"tool_calls\":[{\"name\":\"confirm_spawn\",\"args\":{\"proposal_id\":\"%s\"}}]}"
		 "\n"
		 "{\"text\":\"I tried.\"}\n",
		 pending(w));
	snprintf(id, sizeof(id), "%s", begin(w, script(w, lines)));
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
	for (int i = 0; !done && i < 3000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(done, 1);
	wait_while(w, id, is_busy);
}

static void restart(struct world *w)
{
	core_close(w->core);
	open_core(w);
}

static void count_open(struct proposal *p, void *user)
{
	*(unsigned *)user |= 1u << p->number;
}

/* Two quotes wait, as 1 and 2. */
TEST(which_of_two)
{
	static const struct {
		const char *words;
		unsigned runs, left; /* left: a bit a number */
	} rows[] = {
		{"yes", 0, 6},
		{"the second", 1, 2},
		{"yes to the second one", 1, 2},
		{"yes, the first please", 1, 4},
		{"no to the first", 0, 4},
		{"number 2: yes", 1, 2},
		{"go ahead with #1", 1, 4},
		{"both", 2, 0},
		{"yes to both", 2, 0},
		{"all of them", 2, 0},
		{"no to all", 0, 0},
		{"none of them", 0, 0},
		{"neither", 0, 0},
		{"no, none", 0, 0},
		{"the third", 0, 6},
		{"the first thing to know is how it works", 0, 6},
		{"yes to the first, no to the second", 0, 6},
		{"hi all", 0, 6},
		{"thanks, all", 0, 6},
		{"all good, thanks", 0, 6},
		{"the first, not the second", 0, 6},
		{"not #1, #2", 0, 6},
		{"not the second", 0, 2},
		{"no, the second", 0, 6},
		{"all of them, thanks", 2, 0},
		{"the second, but max 2 minutes", 1, 2},
		{"yes to the second, but max 2 minutes", 1, 2},
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned before = (unsigned)runs(w), left = 0;
		char id[64];

		snprintf(
			id, sizeof(id), "%s",
			begin(w,
			      script(w, "{\"tool_calls\":[{\"name\":\"spawn_subagent\",\"args\":{"
					"\"role\":\"researcher\",\"task\":\"find one\"}},{\"name\":"
					"\"spawn_subagent\",\"args\":{\"role\":\"researcher\","
					"\"task\":"
					"\"find "
					"two\"}}]}\n{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":"
					"\"c\"}\n{\"text\":\"d\"}\n")));
		tell(w, id, "go");
		tell(w, id, rows[i].words);
		ops_proposals(w->core, false, count_open, &left);
		if ((unsigned)runs(w) - before != rows[i].runs || left != rows[i].left)
			fail_msg("%s: %u runs, left %x", rows[i].words, (unsigned)runs(w) - before,
				 left);
		tell(w, id, "no to all");
	}
}

/* "Both" of three names none of them: she asks. */
TEST(both_of_three)
{
	struct world *w = *state;
	unsigned left = 0;
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "review src/one.c for leaks");
	tell(w, id, "review src/two.c for leaks");
	tell(w, id, "review src/three.c for leaks");
	tell(w, id, "what is waiting for me?");
	assert_said(w, id, "\"review src/two.c for leaks\"\n");
	tell(w, id, "both");
	assert_said(w, id, "Say its number, all or none.");
	tell(w, id, "no to both");
	assert_int_equal(runs(w), 0);
	ops_proposals(w->core, false, count_open, &left);
	assert_int_equal(left, 14);
	tell(w, id, "all of them");
	assert_int_equal(runs(w), 3);
}

/* Two quotes wait, she is at work, and what is said meanwhile is looked at when she has ended. The
 * second is answered elsewhere before that. */
TEST(answered_before_it_is_looked_at)
{
	static const char lines[] =
		"{\"tool_calls\":[{\"name\":\"spawn_subagent\",\"args\":{\"role\":\"researcher\","
		"\"task\":\"find one\"}},{\"name\":\"spawn_subagent\",\"args\":{\"role\":"
		"\"researcher\",\"task\":\"find two\"}}]}\n{\"text\":\"a\"}\n"
		"{\"text\":\"b\",\"delay_ms\":3600000}\n{\"text\":\"c\"}\n{\"text\":\"d\"}\n";
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
		unsigned before = runs(w), want = rows[i / 2].runs, left = 0;
		int done = 0;
		char id[64];

		snprintf(id, sizeof(id), "%s", begin(w, script(w, lines)));
		tell(w, id, "go");
		assert_int_equal(say(w, id, "hello"), 1);
		assert_int_equal(say(w, id, rows[i / 2].words), 1);
		ops_reject(w->core, newest_pending(w), "", "ben", "terminal", answered, &done);
		for (int k = 0; !done && k < 3000; k++)
			os_loop_step(w->loop, 10);
		assert_int_equal(done, 1);
		if (i % 2 == 1)
			restart(w);
		let_reply(w, id);
		wait_while(w, id, has_runs);
		ops_proposals(w->core, false, count_open, &left);
		if (runs(w) - before != want || left != (want ? 0 : 2))
			fail_msg("%s: %u runs, left %x", rows[i / 2].words, runs(w) - before, left);
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
	char command[700];
	struct op_event e;

	while (k->cursor && !k->done && ops_events_next(k->cursor, &e) == 1) {
		if (e.type_len != 14 || memcmp(e.type, "SpawnConfirmed", 14) != 0)
			continue;
		snprintf(command, sizeof(command), "cp -a %s %s/killed", k->w->root, k->w->dir);
		assert_int_equal(system(command), 0);
		k->done = true;
	}
}

/* The words are heard again by the next start, and are no answer to the other quote. */
TEST(a_yes_is_spent_once)
{
	static const char lines[] =
		"{\"tool_calls\":[{\"name\":\"spawn_subagent\",\"args\":{\"role\":\"researcher\","
		"\"task\":\"find one\"}},{\"name\":\"spawn_subagent\",\"args\":{\"role\":"
		"\"researcher\",\"task\":\"find two\"}}]}\n{\"text\":\"a\"}\n{\"text\":\"b\"}\n"
		"{\"text\":\"c\"}\n{\"text\":\"d\"}\n";
	struct world *w = *state;
	struct killing k = {.w = w};
	unsigned left = 0;
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, script(w, lines)));
	tell(w, id, "go");
	k.cursor = ops_events_open(w->core, NULL, UINT64_MAX, kill_behind_the_yes, &k, NULL);
	tell(w, id, "yes to the last one");
	assert_true(k.done);
	ops_events_close(k.cursor);
	core_close(w->core);
	snprintf(w->root, sizeof(w->root), "%s/killed", w->dir);
	open_core(w);
	wait_while(w, id, has_runs);
	ops_proposals(w->core, false, count_open, &left);
	assert_int_equal(runs(w), 1);
	assert_int_equal(left, 2);
}

/* A quote that is asked about gets no answer that is wrong of it, and none by the way. */
TEST(asked_of_a_quote)
{
	static const struct {
		const char *words, *says;
	} rows[] = {
		{"is it safe?", "It only reads"},
		{"what?", "With a yes a subagent starts"},
		{"what will you do", "it searches and reads files here"},
		{"why?", "a subagent searches and reads files"},
		{"status", "in this conversation. Shall it start?"},
		{"use haiku", "which key to set."},
	};
	struct world *w = *state;
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "review src/one.c for leaks");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		tell(w, id, rows[i].words);
		if (!strstr(seen(w, id, "assistant", NULL).last, rows[i].says))
			fail_msg("%s: %s", rows[i].words, seen(w, id, "assistant", NULL).last);
		assert_null(strstr(seen(w, id, "assistant", NULL).last, "code_reviewer"));
	}
	assert_string_not_equal(pending(w), "");
}

/* A quote, and a no to it in another terminal. */
static void rejected_elsewhere(struct world *w, const char *id)
{
	int done = 0;

	tell(w, id, "Find where parse_header is defined");
	ops_reject(w->core, pending(w), "not now", "ben", "terminal", answered, &done);
	for (int i = 0; !done && i < 3000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(done, 1);
}

/* What was answered in another terminal is no answer to what is said here. */
TEST(question_after_elsewhere)
{
	struct world *w = *state;
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	rejected_elsewhere(w, id);
	tell(w, id, "where is parse_header defined?");
	assert_said(w, id, "parse_header is defined at parser.c:1");
	assert_sent(w, id, "was rejected by the person, not in this conversation", true);
}

/* What tools return twice is not said to the model twice; she knows it still. */
TEST(asked_twice)
{
	struct world *w = *state;
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	for (int i = 0; i < 3; i++) {
		tell(w, id, "where is parse_header defined?");
		if (!strstr(seen(w, id, "assistant", NULL).last,
			    "parse_header is defined at parser.c:1"))
			fail_msg("%d: %s", i, seen(w, id, "assistant", NULL).last);
	}
	assert_sent(w, id, "unchanged since ", true);
}

/* One yes, and she is told of each run that began; less for all of them is no new quote. */
TEST(a_group)
{
	struct world *w = *state;
	char id[64];

	snprintf(id, sizeof(id), "%s",
		 begin(w,
		       script(w, "{\"tool_calls\":[{\"name\":\"spawn_parallel\",\"args\":{\"runs\":"
				 "[{\"role\":\"researcher\",\"task\":\"find one\"},{\"role\":"
				 "\"researcher\",\"task\":\"find two\"}]}}]}\n{\"text\":\"a\"}\n"
				 "{\"text\":\"b\"}\n{\"text\":\"c\"}\n{\"text\":\"d\"}\n"
				 "{\"text\":\"e\"}\n")));
	tell(w, id, "go");
	tell(w, id, "max 30 cents");
	assert_sent(w, id, "is a new quote and waits", true);
	assert_int_equal(runs(w), 0);
	assert_int_equal(say(w, id, "yes, but max 20 cents"), 1);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 2);
	assert_sent(w, id, "have started.", true);
}

/* A quote that came up while the person was typing is not what a bare yes means. */
TEST(yes_to_what_was_not_shown)
{
	struct world *w = *state;
	char id[64], named[80], quote[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
	snprintf(quote, sizeof(quote), "%s", pending(w));
	say_having_seen(w, id, "yes", "");
	assert_int_equal(runs(w), 0);
	assert_string_equal(pending(w), quote);
	snprintf(named, sizeof(named), "yes, %s", quote);
	say_having_seen(w, id, named, "");
	assert_int_equal(runs(w), 1);
	tell(w, id, "Find where parse_header is defined");
	say_having_seen(w, id, "yes", pending(w));
	assert_int_equal(runs(w), 2);
}

/* The same yes from two channels at once. */
TEST(two_channels)
{
	struct world *w = *state;
	struct op_say s = {.text = "yes", .user_id = "ben"};
	int here = 0, there = 0;
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
	ops_say(w->core, id, &s, said, &here);
	ops_confirm(w->core, pending(w), "yes", NULL, "ben", "terminal", answered, &there);
	for (int i = 0; (!here || !there) && i < 3000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(here, 1);
	assert_int_equal(there, 1);
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
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	rejected_elsewhere(w, id);
	for (int i = 0; i < 2; i++) {
		restart(w);
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
	char id[64];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
	restart(w);
	ops_confirm(w->core, pending(w), "yes", NULL, "ben", "terminal", answered, &done);
	for (int i = 0; !done && i < 3000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(done, 1);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 1);
	assert_int_equal(seen(w, id, "assistant", "From S-").n, 1);
	assert_int_equal(times_sent(w, id, "[ava] The person confirmed P-"), 1);
	assert_int_equal(times_sent(w, id, "[ava] End of the result of S-"), 1);
}

TEST(two_proposals)
{
	static const char two[] =
		"{\"tool_calls\":[{\"name\":\"spawn_subagent\",\"args\":{\"role\":\"researcher\","
		"\"task\":\"find parse_header\"}},{\"name\":\"spawn_subagent\",\"args\":{\"role\":"
		"\"code_reviewer\",\"task\":\"find main\"}}]}\n{\"text\":\"Two.\"}\n"
		"{\"text\":\"Which?\"}\n{\"text\":\"Started.\"}\n{\"text\":\"Told one.\"}\n"
		"{\"text\":\"More.\"}\n{\"text\":\"More.\"}\n";
	struct world *w = *state;
	char id[64], answer[64];

	snprintf(id, sizeof(id), "%s", begin(w, script(w, two)));
	tell(w, id, "both things");
	tell(w, id, "yes");
	assert_int_equal(runs(w), 0);
	assert_sent(w, id, "the words name none", true);
	snprintf(answer, sizeof(answer), "yes, %s", pending(w));
	tell(w, id, answer);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 1);
}

/* One quote, one yes, several runs; of a chain each result is told of, too. */
TEST(parallel)
{
	static const char *const ways[] = {"", ",\"chain\":true"};
	struct world *w = *state;
	char id[64], lines[1000], *file;
	size_t len;

	for (int i = 0; i < 2; i++) {
		snprintf(lines, sizeof(lines),
			 "{\"tool_calls\":[{\"name\":\"spawn_parallel\",\"args\":{\"runs\":["
			 "{\"role\":\"researcher\",\"task\":\"find parse_header\"},"
			 "{\"role\":\"code_reviewer\",\"task\":\"find main\"}],"
			 "\"max_cost_cents\":30%s}}]}\n{\"text\":\"Two.\"}\n"
			 "{\"text\":\"Started.\"}\n{\"text\":\"More.\"}\n{\"text\":\"More.\"}\n"
			 "{\"text\":\"More.\"}\n",
			 ways[i]);
		snprintf(id, sizeof(id), "%s", begin(w, script(w, lines)));
		tell(w, id, "both things");
		assert_int_equal(runs(w), 2 * i);
		tell(w, id, "yes");
		wait_while(w, id, has_runs);
		assert_int_equal(runs(w), 2 * i + 2);
		assert_int_equal(seen(w, id, "event", "subagent:complete").n, 2);
		assert_sent(w, id, "Next in its chain", i == 1);
		file = unit_read(session_file(w, id, ""), &len);
		assert_non_null(strstr(file, i ? "\"mode\":\"chain\"" : "\"mode\":\"parallel\""));
		assert_null(strstr(file, "\"mode\":\"single\""));
		free(file);
	}
}

/* A name that does not wait is no other one's yes, and part of a word is no word. */
TEST(words_that_name)
{
	static const char lines[] =
		"{\"tool_calls\":[{\"name\":\"spawn_subagent\",\"args\":{\"role\":\"researcher\","
		"\"task\":\"find parse_header\"}}]}\n{\"text\":\"One.\"}\n{\"text\":\"Which?\"}\n"
		"{\"tool_calls\":[{\"name\":\"spawn_subagent\",\"args\":{\"role\":\"researcher\","
		"\"task\":\"find main\"}}]}\n{\"text\":\"Two.\"}\n{\"text\":\"Which?\"}\n"
		"{\"text\":\"Started.\"}\n{\"text\":\"More.\"}\n{\"text\":\"More.\"}\n";
	struct world *w = *state;
	char id[64], answer[80], first[24];

	snprintf(id, sizeof(id), "%s", begin(w, script(w, lines)));
	tell(w, id, "go");
	snprintf(first, sizeof(first), "%s", pending(w));
	tell(w, id, "yes, P-abcdef0");
	assert_int_equal(runs(w), 0);
	assert_sent(w, id, "does not wait for an answer here", true);
	tell(w, id, "another");
	tell(w, id, "yes, dont bother asking, allow it");
	assert_int_equal(runs(w), 0);
	snprintf(answer, sizeof(answer), "yes, %s and %s", first, newest_pending(w));
	tell(w, id, answer);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 2);
}

/* She proposes something else while the person answers what they have seen. */
TEST(edited_after_the_quote)
{
	static const char lines[] =
		"{\"tool_calls\":[{\"name\":\"spawn_subagent\",\"args\":{\"role\":\"researcher\","
		"\"task\":\"find parse_header\"}}]}\n{\"text\":\"One.\"}\n"
		"{\"tool_calls\":[{\"name\":\"spawn_subagent\",\"args\":{\"role\":\"researcher\","
		"\"task\":\"find secrets\"}}],\"delay_ms\":3600000}\n{\"text\":\"Two.\"}\n"
		"{\"text\":\"Started.\"}\n{\"text\":\"More.\"}\n{\"text\":\"More.\"}\n";
	struct world *w = *state;
	char id[64], first[24];

	snprintf(id, sizeof(id), "%s", begin(w, script(w, lines)));
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
	char id[64];

	core_close(w->core);
	w->settings.proposal_expiry_s = 1;
	open_core(w);
	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
	for (int i = 0; pending(w)[0] && i < 6000; i++)
		os_loop_step(w->loop, 10);
	tell(w, id, "yes");
	assert_int_equal(runs(w), 0);
	assert_sent(w, id, "has expired: nothing was started", true);
}

/* Lowered it runs, once; raised it is another quote, and she hears of it. */
TEST(with_a_change)
{
	struct world *w = *state;
	char id[64], first[24];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	tell(w, id, "Find where parse_header is defined");
	snprintf(first, sizeof(first), "%s", pending(w));
	tell(w, id, "yes but up to 200 cents");
	assert_int_equal(runs(w), 0);
	assert_string_not_equal(pending(w), first);
	assert_sent(w, id, "is a new quote and waits.", true);
	tell(w, id, "yes, but at most 5 cents");
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 1);
	assert_string_equal(pending(w), "");
	tell(w, id, "yes");
	assert_int_equal(runs(w), 1);
}

UNIT_GROUP(.before = set_up, .after = tear_down);
