/* A yes or no in the conversation, and a subagent that waits for one: what counts,
 * what does not, and that nothing is confused with a proposal. */
#include "talk_rig.h"

#include "base/clock.h"
#include "subagent/person.h"

static const char reads[] = READ SUBMIT;
static const char asks[] = CALL("ask_person", "{\"question\":\"Shall I go on?\"}") SUBMIT;
static const char chooses[] =
	CALL("ask_person", "{\"question\":\"Which?\",\"choices\":[\"json\",\"yaml\"]}") SUBMIT;
static const char numbers[] =
	CALL("ask_person", "{\"question\":\"How many?\",\"choices\":[\"1\",\"4\",\"2\"]}") SUBMIT;

static struct talk *talk_in(struct world *w, const char *session)
{
	struct session *s = strmap_get(&w->core->session_by_id, session);

	assert_non_null(s->talk);
	return s->talk;
}

/* When it was shown: seconds before now. */
static void shown(struct run *r, int seconds)
{
	((struct question *)person_question(r))->asked_ms = clock_wall_ms() - seconds * 1000;
}

/* The same; Ava spoke before it did. */
static struct run *asking(struct world *w, const char *session, const char *lines,
			  const char *before, char run[24])
{
	struct run *r = waiting(w, session, lines, before, run);

	shown(r, 60);
	talk_in(w, session)->spoke_ms = clock_wall_ms() - 120000;
	return r;
}

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

static void steered(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	*(int *)user = rv == 0 ? 1 : rv;
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
	bool doubt; /* Ava is told to ask */
} phrases[] = {
	{"yes", YES, false},
	{"%s: yes", YES, false},
	{"yes, %s", YES, false},
	{"go ahead, %s, please", YES, false},
	{"no", NO, false},
	{"no: not in this folder", NO, false},
	{"no to %s", NO, false},
	{"yes?", NOTHING, false},
	{"yes but max 20 cents", NOTHING, true},
	{"what does it want to read?", NOTHING, false},
	{"yes, S-abcdef0", NOTHING, false},
	{"yes, %s and S-abcdef0", NOTHING, false},
	{"yes, %sx", NOTHING, false},
	{"yes, %s, but not that file", NOTHING, false},
	{"stop", NOTHING, false},
	{"cancel %s", NOTHING, false},
};

TEST(phrases)
{
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(phrases); i++) {
		const char *id = begin_talk(w);
		char run[24], words[100];
		enum how how;

		asking(w, id, reads, "read_file", run);
		snprintf(words, sizeof(words), phrases[i].words, run);
		tell(w, id, words);
		how = waits(w, run)                                                    ? NOTHING
		      : logged(w, run, "\"state\":\"answered\",\"kind\":\"approval\"") ? YES
		      : logged(w, run, "\"state\":\"refused\",\"kind\":\"approval\"")  ? NO
										       : NOTHING;
		if (how != phrases[i].how)
			fail_msg("\"%s\" was taken for %d", words, how);
		assert_sent(w, id, "Nothing was done: ", phrases[i].doubt);
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
		{asks, "the second one, I think",
		 "\"answer\":\"the second one, I think\""}, /* Ava */
		{asks, "the second one?", NULL},
		{chooses, "2", "\"answer\":\"yaml\""},
		{chooses, "JSON", "\"answer\":\"json\""},
		{chooses, "the json one, please.", "\"answer\":\"json\""},
		{chooses, "1.", "\"answer\":\"json\""},
		{numbers, "2", "\"answer\":\"2\""},
		{chooses, "yes", NULL},
		{chooses, "3", NULL},
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *id = begin_talk(w);
		char run[24];

		asking(w, id, rows[i].lines, NULL, run);
		tell(w, id, rows[i].words);
		if (waits(w, run) != !rows[i].answer)
			fail_msg("%s: %s", rows[i].words, waits(w, run) ? "not taken" : "taken");
		if (rows[i].answer)
			assert_true(logged(w, run, rows[i].answer));
		else if (rows[i].lines ==
			 chooses) /* a yes is none of them; that nothing waits would be wrong */
			assert_said(w, id, "Answer with: 1: json, 2: yaml.");
		end(w, id, run);
	}
}

/* It was not what the person had before them. */
TEST(not_shown_last)
{
	struct world *w = *state;
	const char *id = begin_talk(w);
	char run[24], words[40];
	struct run *r;

	r = asking(w, id, reads, "read_file", run);
	shown(r, 0); /* it came up while they typed */
	tell(w, id, "yes");
	assert_true(waits(w, run));
	assert_said(w, id, "I am not sure which one you mean");
	assert_sent(w, id, "Ask what is meant", true);
	snprintf(words, sizeof(words), "yes, %s", run); /* named it is clear */
	tell(w, id, words);
	assert_true(logged(w, run, "\"state\":\"answered\",\"kind\":\"approval\""));
	assert_said(w, id, "I have passed that on.");
	wait_while(w, id, has_runs);
}

/* Ava has spoken since: what she explains changes nothing, also behind a restart. What she
 * asks herself takes the yes, which then allows no call. */
TEST(ava_spoke_since)
{
	static const struct {
		const char *before, *says;
		bool restart, taken;
	} rows[] = {
		{"why does it need that?", "It needs that for its task", false, true},
		{"why does it need that?", "It needs that for its task", true, true},
		{"should I stop it?", "Shall I stop it?", false, false},
		{"should I stop it?", "Shall I stop it?", true, false},
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *id = begin_talk(w);
		char run[24];

		asking(w, id, reads, "read_file", run);
		tell(w, id, rows[i].before);
		assert_said(w, id, rows[i].says);
		if (rows[i].restart)
			open_anew(w, id);
		for (int k = 0; !waits(w, run) && k < 6000; k++)
			os_loop_step(w->loop, 10);
		shown(supervisor_find(&w->core->sup, run), 60); /* before she spoke */
		tell(w, id, "yes");
		if (waits(w, run) == rows[i].taken)
			fail_msg("%s, row %zu", rows[i].before, i);
		if (rows[i].taken)
			assert_true(logged(w, run, "\"state\":\"answered\",\"kind\":\"approval\""));
		else
			assert_sent(w, id, "Nothing was done: ", true);
		end(w, id, run);
	}
}

TEST(asks)
{
	static const struct {
		const char *text;
		enum talk_asks asks;
	} rows[] = {
		{"", ASKS_NOTHING},
		{"It reads one file.", ASKS_NOTHING},
		{"Shall I stop it?", ASKS_ELSE},
		{"Shall I stop it? Just say so.", ASKS_ELSE},
		{"S-7f3a2b asks: \"Shall I go on?\" It needs that.", ASKS_NOTHING},
		{"It asks \342\200\234Which {\"a\"}?\342\200\235.", ASKS_NOTHING},
		{"`a ? b : c` stands there.", ASKS_NOTHING},
		{"A 5\" disk. Shall I?", ASKS_ELSE},
		{"\"A\" or \"B\"?", ASKS_ELSE},
		{"\"Never closed.\n\nShall I?", ASKS_ELSE},
		{"\346\230\257\357\274\237", ASKS_ELSE},
		{"\"", ASKS_NOTHING},
		{"Shall I start it?", ASKS_OF_QUOTE},
		{"Is P-19c0de what you want?", ASKS_OF_QUOTE},
		{"It reads \"a?\". Shall it begin?", ASKS_OF_QUOTE},
		{"Soll ich beginnen?", ASKS_OF_QUOTE},
		{"It waits for your confirmation.", ASKS_NOTHING},
		{"Shall I restart it?", ASKS_ELSE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (talk_asks(rows[i].text, strlen(rows[i].text)) != rows[i].asks)
			fail_msg("%s", rows[i].text);
}

TEST(two_questions)
{
	struct world *w = *state;
	const char *id = begin_talk(w);
	char one[24], two[24], words[60];

	asking(w, id, reads, "read_file", one);
	asking(w, id, asks, NULL, two);
	tell(w, id, "yes");
	assert_true(waits(w, one) && waits(w, two));
	assert_sent(w, id, "2 subagents ask the person something and 0 proposals wait", true);
	snprintf(words, sizeof(words), "no, %s", one);
	tell(w, id, words);
	assert_false(waits(w, one));
	assert_true(waits(w, two));
	assert_true(logged(w, one, "\"state\":\"refused\""));
	end(w, id, two);
}

/* Two ask, Ava is at work, and one has its answer before the words are looked at. */
TEST(answered_before_it_is_looked_at)
{
	static const char *const rows[] = {"yes", "no"};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char one[24], two[24];
		const char *id = begin(w, script(w, HELD("a") SAY("b") SAY("c") SAY("d")));
		struct op_steer o = {.run = two, .text = "yes", .by = "ben"};
		int done = 0;

		assert_int_equal(say(w, id, "hello"), 1);
		asking(w, id, reads, "read_file", one);
		asking(w, id, reads, "read_file", two);
		assert_int_equal(say(w, id, rows[i]), 1);
		ops_steer(w->core, &o, steered, &done);
		assert_int_equal(until(w, &done), 1);
		let_reply(w, id);
		idle(w, id);
		assert_true(waits(w, one));
		assert_sent(w, id, "it is not clear that the words answer that", true);
	}
}

TEST(beside_a_proposal)
{
	struct world *w = *state;
	const char *id = begin_talk(w);
	char run[24], proposal[24], words[80];
	struct run *r;

	tell(w, id, ASK);
	snprintf(proposal, sizeof(proposal), "%s", pending(w));
	assert_true(proposal[0] == 'P');
	r = asking(w, id, reads, "read_file", run);
	shown(r, 0); /* after the quote */
	tell(w, id, "yes");
	assert_true(waits(w, run));
	assert_string_equal(pending(w), proposal);
	assert_sent(w, id, "1 subagents ask the person something and 1 proposals wait", true);
	tell(w, id, "no"); /* neither is a no taken for one of them */
	assert_true(waits(w, run));
	assert_string_equal(pending(w), proposal);
	snprintf(words, sizeof(words), "yes, %s and %s", run, proposal); /* one at a time */
	tell(w, id, words);
	assert_true(waits(w, run));
	assert_string_equal(pending(w), proposal);
	snprintf(words, sizeof(words), "no, %s", run);
	tell(w, id, words);
	assert_false(waits(w, run));
	assert_string_equal(pending(w), proposal);
	r = asking(w, id, reads, "read_file", run);
	shown(r, 60); /* before the quote: that was shown last */
	tell(w, id, "yes");
	assert_true(waits(w, run));
	assert_string_equal(pending(w), "");
	end(w, id, run);
	assert_int_equal(runs(w), 3);
}

TEST(named_beside_a_question)
{
	struct world *w = *state;
	const char *id = begin_talk(w);
	char run[24], words[80];
	struct run *r;

	tell(w, id, ASK);
	r = asking(w, id, reads, "read_file", run);
	shown(r, 0);
	snprintf(words, sizeof(words), "yes, %s", pending(w));
	tell(w, id, words);
	assert_true(waits(w, run));
	assert_string_equal(pending(w), "");
	end(w, id, run);
	assert_int_equal(runs(w), 2);
}

/* What another conversation's runs ask is not asked here. */
TEST(another_conversation)
{
	struct world *w = *state;
	const char *there = begin_talk(w), *here = begin_talk(w);
	char run[24], words[40];

	asking(w, there, reads, "read_file", run);
	talk_in(w, here)->spoke_ms = 0;
	tell(w, here, "yes");
	assert_said(w, here, "Nothing waits for your answer");
	snprintf(words, sizeof(words), "yes, %s", run);
	tell(w, here, words);
	assert_true(waits(w, run));
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

	asking(w, id, asks, NULL, run);
	ops_say(w->core, id, &s, said, &done);
	for (int i = 0; !talk_in(w, id)->answering && i < 3000; i++)
		os_loop_step(w->loop, 1);
	reopen(w);
	idle(w, id);
	wait_while(w, id, has_runs);
	assert_true(logged(w, run, "\"answer\":\"yes\""));
}

UNIT_GROUP(.before = set_up, .after = tear_down);
