/* Lines of a person in a conversation, and what waits for them: a line answers the Ask that it
 * names, or the one that the door showed last, and nothing else. What runs is what they saw, once.
 */
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
	assert_said(w, id, "parse_header is defined at parser.c:1. `ava result S-");
	assert_int_equal(runs(w), 1);
	assert_int_equal(seen(w, id, "event", "subagent:start").n, 1);
	assert_int_equal(seen(w, id, "event", "subagent:complete").n, 1);
	assert_sent(w, id, "[ava] End of the result of S-", true);
}

/* A line answers what the door says it showed last; what has no such Ask starts nothing, whatever
 * Ava asked meanwhile. */
TEST(only_what_was_shown)
{
	static const struct {
		const char *says; /* %s: the quote's id */
		bool shown, decides;
	} rows[] = {
		{"yes", false, false},
		{"no", false, false},
		{"yes, max 2 cents", false, false},
		{"1", true, false},
		{"yes, %s", false, true},
		{"%s: no", false, true},
		{"max 2 cents, %s", false, true},
		{"yes, P-abcdef0", true, false},
		{"yes?", true, false},
		{"yes", true, true},
		{"stop", true, true},
		{"no: too dear", true, true},
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *id =
			begin(w, script(w, CALLS(SPAWN("find parse_header")) SAY("Shall I?")
						   SAY("a") SAY("b") SAY("c") SAY("d")));
		char quote[24], words[80];

		tell(w, id, "go");
		snprintf(quote, sizeof(quote), "%s", pending(w));
		snprintf(words, sizeof(words), rows[i].says, quote);
		tell_shown(w, id, words, rows[i].shown ? quote : "");
		if ((strcmp(pending(w), quote) != 0) != rows[i].decides)
			fail_msg("row %zu: %s", i, words);
		assert_sent(w, id, "name none of what waits", i < 4);
		assert_sent(w, id, "P-abcdef0 does not wait for an answer here", i == 7);
		wait_while(w, id, has_runs);
		snprintf(words, sizeof(words), "no, %s", pending(w));
		if (pending(w)[0])
			tell(w, id, words);
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

/* Two quotes wait, as 1 and 2; the second was shown last, or (`first`) the first. */
TEST(which_of_two)
{
	static const struct {
		const char *words;
		unsigned runs, left;
		bool first;
	} rows[] = {
		{"the second", 0, 6, false},
		{"both", 0, 6, false},
		{"no to all", 0, 6, false},
		{"yes to 1, no to 2", 0, 6, false},
		{"3", 0, 6, false},
		{"2?", 0, 6, false},
		{"2", 0, 6, true}, /* it came up later */
		{"2", 1, 2, false},
		{"#1", 1, 4, false},
		{"yes, 1 please", 1, 4, false},
		{"no to 1", 0, 4, false},
		{"yes", 1, 2, false},
		{"yes", 1, 4, true},
		{"no", 0, 2, false},
		{"2, but max 2 minutes", 0, 6, false}, /* a new quote with that number */
		{"yes 2, but max 2 minutes", 1, 2, false},
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *id = begin(w, script(w, TWO SAY("b") SAY("c") SAY("d")));
		unsigned before = runs(w);
		char one[24], two[24], no[48];

		tell(w, id, "go");
		snprintf(one, sizeof(one), "%s", pending(w));
		snprintf(two, sizeof(two), "%s", newest_pending(w));
		tell_shown(w, id, rows[i].words, rows[i].first ? one : two);
		if (runs(w) - before != rows[i].runs || open_ones(w) != rows[i].left)
			fail_msg("row %zu, %s: %u runs, left %x", i, rows[i].words,
				 runs(w) - before, open_ones(w));
		while (open_ones(w)) {
			snprintf(no, sizeof(no), "no, %s", pending(w));
			tell(w, id, no);
		}
	}
}

/* Two quotes wait, she is at work, and what is said meanwhile is looked at when she has ended. The
 * one that was shown is answered elsewhere before that: the other is nobody's. */
TEST(answered_before_it_is_looked_at)
{
	static const char *const words[] = {"yes", "no", "2", "yes 2"};
	struct world *w = *state;

	for (size_t i = 0; i < 2 * ARRAY_LEN(words); i++) {
		const char *id = begin(w, script(w, TWO HELD("b") SAY("c") SAY("d")));
		unsigned before = runs(w);
		char two[24], no[48];
		int done = 0;

		tell(w, id, "go");
		snprintf(two, sizeof(two), "%s", newest_pending(w));
		assert_int_equal(say(w, id, "hello"), 1);
		assert_int_equal(say_shown(w, id, words[i / 2], two), 1);
		ops_reject(w->core, two, "", "ben", "terminal", answered, &done);
		assert_int_equal(until(w, &done), 1);
		if (i % 2 == 1)
			reopen(w);
		let_reply(w, id);
		wait_while(w, id, has_runs);
		if (runs(w) != before || open_ones(w) != 2)
			fail_msg("%s: %u runs, left %x", words[i / 2], runs(w) - before,
				 open_ones(w));
		snprintf(no, sizeof(no), "no, %s", pending(w));
		tell(w, id, no);
	}
}

/* What was shown is kept with the words: the next start reads them the same way. */
TEST(shown_before_a_restart)
{
	struct world *w = *state;
	const char *id = begin(w, script(w, TWO HELD("b") SAY("c") SAY("d")));
	char one[24];

	tell(w, id, "go");
	snprintf(one, sizeof(one), "%s", pending(w));
	assert_int_equal(say(w, id, "hello"), 1);
	assert_int_equal(say_shown(w, id, "yes", one), 1);
	reopen(w);
	let_reply(w, id);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 1);
	assert_string_equal(the_task(w), "find one");
	assert_int_equal(open_ones(w), 4);
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
	tell(w, id, "2");
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
	tell(w, id, "find main");
	assert_true(pending(w)[0] == 'P');
	assert_sent(w, id, "was rejected by the person, not in this conversation", true);
}

/* A quote that came up after the words is not what they mean, even by its name. */
TEST(yes_to_what_came_later)
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
	assert_int_equal(say(w, id, "2"), 1);
	assert_int_equal(say(w, id, "yes"), 1); /* she is about to propose the other */
	let_reply(w, id);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 1);
	assert_string_equal(the_task(w), "find parse_header");
	assert_string_not_equal(pending(w), "");
	assert_string_not_equal(pending(w), first);
}

/* The same yes from two channels at once. */
TEST(two_channels)
{
	struct world *w = *state;
	int here = 0, there = 0;
	const char *id = begin(w, NULL);
	struct op_say s = {.text = "yes", .user_id = "ben"};

	tell(w, id, ASK);
	s.shown = pending(w);
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
		assert_sent(w, id, "have started.", true); /* each is named */
		assert_sent(w, id, ") waits for others, S-", false);
		assert_sent(w, id, ", which waits for others", i == 1);
		file = unit_read(session_file(w, id, ""), &len);
		assert_non_null(strstr(file, i ? "\"mode\":\"chain\"" : "\"mode\":\"parallel\""));
		assert_null(strstr(file, "\"mode\":\"single\""));
		free(file);
	}
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

/* ---- subagents that ask */

static const char reads[] = READ SUBMIT;
static const char asks[] = CALL("ask_person", "{\"question\":\"Shall I go on?\"}") SUBMIT;
static const char chooses[] =
	CALL("ask_person", "{\"question\":\"Which?\",\"choices\":[\"json\",\"yaml\"]}") SUBMIT;
static const char numbers[] =
	CALL("ask_person", "{\"question\":\"How many?\",\"choices\":[\"1\",\"4\",\"2\"]}") SUBMIT;

static const char *begin_talk(struct world *w)
{
	const char *id = begin(w, NULL);

	tell(w, id, "hello");
	return id;
}

/* It is ended when it works still, and all is told. */
static void end(struct world *w, const char *session, const char *run)
{
	struct run *r = supervisor_find(&w->core->sup, run);

	if (r)
		supervisor_cancel(r, NULL, NULL);
	wait_while(w, session, has_runs);
}

static bool waits(struct world *w, const char *run)
{
	struct run *r = supervisor_find(&w->core->sup, run);

	return r && person_question(r);
}

static bool logged(struct world *w, const char *run, const char *text)
{
	char path[500], *data;
	size_t len;
	bool found;

	for (int i = 0; supervisor_find(&w->core->sup, run) && i < 6000; i++)
		os_loop_step(w->loop, 10);
	snprintf(path, sizeof(path), "%s/logs/subagents/%s.jsonl", w->root, run);
	data = unit_read(path, &len);
	found = strstr(data, text) != NULL;
	free(data);
	return found;
}

enum how { YES, NO, NOTHING };

/* How a yes or no may be put is test_answer.c's. */
static const struct {
	const char *words;
	enum how how;
	bool shown;
} phrases[] = {
	{"yes", YES, true},
	{"yes", NOTHING, false},
	{"%s: yes", YES, false},
	{"yes, %s", YES, true},
	{"no", NO, true},
	{"no: not in this folder", NO, true},
	{"no to %s", NO, false},
	{"yes?", NOTHING, true},
	{"yes but max 20 cents", NOTHING, true},
	{"what does it want to read?", NOTHING, true},
	{"yes, S-abcdef0", NOTHING, true},
	{"yes 1", NOTHING, true},
	{"yes, %s and S-abcdef0", NOTHING, true},
	{"yes, %sx", NOTHING, true},
	{"yes, %s, but not that file", NOTHING, true},
	{"stop", NOTHING, true},
	{"cancel %s", NOTHING, true},
};

TEST(phrases)
{
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(phrases); i++) {
		const char *id = begin_talk(w);
		char run[24], words[100];
		enum how how;

		waiting(w, id, reads, "read_file", run);
		snprintf(words, sizeof(words), phrases[i].words, run);
		tell_shown(w, id, words, phrases[i].shown ? shown_last(w, id) : "");
		how = waits(w, run)                                                    ? NOTHING
		      : logged(w, run, "\"state\":\"answered\",\"kind\":\"approval\"") ? YES
		      : logged(w, run, "\"state\":\"refused\",\"kind\":\"approval\"")  ? NO
										       : NOTHING;
		if (how != phrases[i].how)
			fail_msg("\"%s\" was taken for %d", words, how);
		assert_sent(w, id, "The person's answer went to S-", how != NOTHING);
		end(w, id, run);
	}
}

/* A question of the model's: yes and no, its choices by word and by number. */
TEST(questions)
{
	static const struct {
		const char *lines, *words, *answer; /* NULL: it is not taken */
	} rows[] = {
		{asks, "yes please", "\"answer\":\"yes please\""},
		{asks, "no", "\"answer\":\"no\""},
		{asks, "the second one?", NULL},
		{asks, "no: because", NULL},
		{chooses, "2", "\"answer\":\"yaml\""},
		{chooses, "JSON", "\"answer\":\"json\""},
		{chooses, "the json one, please.", "\"answer\":\"json\""},
		{chooses, "1.", "\"answer\":\"json\""},
		{numbers, "2", "\"answer\":\"2\""},
		{chooses, "yes, 2", "\"answer\":\"yaml\""},
		{chooses, "yes", NULL},
		{chooses, "3", NULL},
		{chooses, "cancel 2", NULL},
		{chooses, "not now, 2", NULL},
		{chooses, "no to 2", NULL},
		{chooses, "yes 2, max 5 cents", NULL},
		{asks, "yes 2", NULL}, /* it may mean a quote */
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *id = begin(w, script(w, SAY("a") SAY("b") SAY("c") SAY("d")));
		char run[24];

		tell(w, id, "hello");
		waiting(w, id, rows[i].lines, NULL, run);
		tell(w, id, rows[i].words);
		if (waits(w, run) != !rows[i].answer)
			fail_msg("%s: %s", rows[i].words, waits(w, run) ? "not taken" : "taken");
		if (rows[i].answer)
			assert_true(logged(w, run, rows[i].answer));
		end(w, id, run);
	}
}

/* A quote and a question wait: each takes what was shown last, or what names it. */
TEST(beside_a_proposal)
{
	struct world *w = *state;
	const char *id = begin_talk(w);
	char run[24], proposal[24], words[80];

	tell(w, id, ASK);
	snprintf(proposal, sizeof(proposal), "%s", pending(w));
	waiting(w, id, reads, "read_file", run);
	tell_shown(w, id, "yes", "");
	assert_true(waits(w, run));
	assert_string_equal(pending(w), proposal);
	assert_sent(w, id, "S-", true);
	snprintf(words, sizeof(words), "yes, %s and %s", run, proposal); /* one at a time */
	tell(w, id, words);
	assert_true(waits(w, run));
	assert_string_equal(pending(w), proposal);
	tell_shown(w, id, "no", shown_last(w, id));
	assert_false(waits(w, run));
	assert_string_equal(pending(w), proposal);
	waiting(w, id, reads, "read_file", run);
	tell_shown(w, id, "yes", proposal);
	assert_true(waits(w, run));
	assert_string_equal(pending(w), "");
	end(w, id, run);
	assert_int_equal(runs(w), 3);
}

static void steered(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	assert_int_equal(rv, 0);
}

/* A run calls its choices what would start a quote: typed, they start and answer nothing. */
TEST(choices_like_commands)
{
	struct world *w = *state;
	const char *id = begin_talk(w);
	char run[24], proposal[24], lines[400], words[40];

	tell(w, id, ASK);
	snprintf(proposal, sizeof(proposal), "%s", pending(w));
	snprintf(words, sizeof(words), "yes, %s", proposal);
	snprintf(lines, sizeof(lines),
		 CALL("ask_person", "{\"question\":\"Proceed?\",\"choices\":[\"%s\",\"no\"]}")
			 SUBMIT,
		 words);
	waiting(w, id, lines, NULL, run);
	tell_shown(w, id, words, shown_last(w, id));
	assert_true(waits(w, run));
	assert_string_equal(pending(w), proposal);
	assert_sent(w, id, "name none of what waits", true);
	tell_shown(w, id, words, "");
	assert_true(waits(w, run));
	assert_string_equal(pending(w), "");
	end(w, id, run);
}

/* The run has asked something else since its question was shown. */
TEST(the_next_question_of_a_run)
{
	struct world *w = *state;
	const char *id = begin_talk(w);
	struct op_steer o = {.text = "yes", .by = "ben"};
	char run[24], first[48], words[40];
	struct run *r = waiting(w, id, READ READ SUBMIT, "read_file", run);

	snprintf(first, sizeof(first), "%s", shown_last(w, id));
	snprintf(words, sizeof(words), "yes, %s", run);
	o.run = run;
	ops_steer(w->core, &o, steered, NULL);
	for (int i = 0; strcmp(shown_last(w, id), first) == 0 && i < 6000; i++)
		os_loop_step(w->loop, 10);
	asks_person(w, r);
	tell_shown(w, id, words, first);
	assert_true(waits(w, run));
	assert_sent(w, id, "name none of what waits", true);
	tell_shown(w, id, words, "");
	assert_false(waits(w, run));
	end(w, id, run);
}

/* What another conversation's runs ask is not asked here. */
TEST(another_conversation)
{
	struct world *w = *state;
	const char *there = begin_talk(w), *here = begin_talk(w);
	char run[24], words[40];

	waiting(w, there, reads, "read_file", run);
	tell_shown(w, here, "yes", shown_last(w, there));
	snprintf(words, sizeof(words), "yes, %s", run);
	tell(w, here, words);
	assert_true(waits(w, run));
	assert_sent(w, here, "does not wait for an answer here", true);
	end(w, there, run);
}

/* A stop between the words and what they do. */
TEST(closed_meanwhile)
{
	struct op_say s = {.text = "yes", .user_id = "ben"};
	struct world *w = *state;
	const char *id = begin_talk(w);
	char run[24];
	int done = 0;

	waiting(w, id, asks, NULL, run);
	s.shown = shown_last(w, id);
	ops_say(w->core, id, &s, said, &done);
	for (int i = 0; !session_find(w->core, id, NULL)->talk->answering && i < 3000; i++)
		os_loop_step(w->loop, 1);
	reopen(w);
	idle(w, id);
	wait_while(w, id, has_runs);
	assert_true(logged(w, run, "\"answer\":\"yes\""));
}

UNIT_GROUP(.before = set_up, .after = tear_down);
