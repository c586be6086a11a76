/* A yes or no in the conversation, and a subagent that waits for one: what counts,
 * what does not, and that nothing is confused with a proposal. */
#include "talk_rig.h"

#include "base/clock.h"
#include "subagent/person.h"

static const char reads[] =
	"{\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"path\":\"parser.c\"}}]}\n"
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"output\":null,\"summary\":\"read "
	"it\",\"confidence\":1}}]}\n";
static const char asks[] =
	"{\"tool_calls\":[{\"name\":\"ask_person\",\"args\":{\"question\":\"Shall I go on?\"}}]}\n"
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"output\":null,\"summary\":\"as "
	"told\",\"confidence\":1}}]}\n";
static const char chooses[] =
	"{\"tool_calls\":[{\"name\":\"ask_person\",\"args\":{\"question\":\"Which?\",\"choices\":["
	"\"json\",\"yaml\"]}}]}\n"
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"output\":null,\"summary\":\"as "
	"told\",\"confidence\":1}}]}\n";

static const char numbers[] =
	"{\"tool_calls\":[{\"name\":\"ask_person\",\"args\":{\"question\":\"How "
	"many?\",\"choices\":["
	"\"1\",\"4\",\"2\"]}}]}\n"
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"output\":null,\"summary\":\"as "
	"told\",\"confidence\":1}}]}\n";

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

static const char *begin_talk(struct world *w, char id[64])
{
	snprintf(id, 64, "%s", begin(w, NULL));
	tell(w, id, "hello");
	return id;
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

static const struct {
	const char *words;
	enum how how;
	bool doubt; /* Ava is told to ask */
} phrases[] = {
	{"yes", YES, false},
	{"  Yes.\n", YES, false},
	{"ok, go ahead", YES, false},
	{"sure, thanks", YES, false},
	{"do it", YES, false},
	{"%s: yes", YES, false},
	{"yes, %s", YES, false},
	{"yes for %s", YES, false},
	{"go ahead, %s, please", YES, false},
	{"no", NO, false},
	{"no thanks", NO, false},
	{"please don't", NO, false},
	{"no: not in this folder", NO, false},
	{"%s no", NO, false},
	{"no to %s", NO, false},
	{"yes?", NOTHING, false},
	{"yes, unless it is large", NOTHING, false},
	{"yes but max 20 cents", NOTHING, true},
	{"maybe", NOTHING, false},
	{"what does it want to read?", NOTHING, false},
	{"yes and no", NOTHING, false},
	{"yesterday", NOTHING, false},
	{"yes, S-abcdef0", NOTHING, false},
	{"yes, %s and S-abcdef0", NOTHING, false},
	{"yes, %sx", NOTHING, false},
	{"yes, %s, but not that file", NOTHING, false},
	{"stop", NOTHING, false},
	{"cancel %s", NOTHING, false},
	{"no idea, what is it?", NOTHING, false},
};

TEST_WITH(phrases, set_up, tear_down)
{
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(phrases); i++) {
		char id[64], run[24], words[100];
		struct run *r;
		enum how how;

		begin_talk(w, id);
		r = asking(w, id, reads, "read_file", run);
		snprintf(words, sizeof(words), phrases[i].words, run);
		assert_int_equal(say(w, id, words), 1);
		idle(w, id);
		how = waits(w, run)                                                    ? NOTHING
		      : logged(w, run, "\"state\":\"answered\",\"kind\":\"approval\"") ? YES
		      : logged(w, run, "\"state\":\"refused\",\"kind\":\"approval\"")  ? NO
										       : NOTHING;
		if (how != phrases[i].how)
			fail_msg("\"%s\" was taken for %d", words, how);
		assert_sent(w, id, "Nothing was done: ", phrases[i].doubt);
		assert_sent(w, id, "The person's answer went to S-", how != NOTHING);
		r = supervisor_find(&w->core->sup, run);
		if (r)
			supervisor_cancel(r, NULL, NULL);
		wait_while(w, id, has_runs);
	}
}

/* A question of the model's: yes and no, its choices by word and by number. */
TEST_WITH(questions, set_up, tear_down)
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
		char id[64], run[24];

		begin_talk(w, id);
		asking(w, id, rows[i].lines, NULL, run);
		assert_int_equal(say(w, id, rows[i].words), 1);
		idle(w, id);
		if (waits(w, run) != !rows[i].answer)
			fail_msg("%s: %s", rows[i].words, waits(w, run) ? "not taken" : "taken");
		if (rows[i].answer)
			assert_true(logged(w, run, rows[i].answer));
		else
			supervisor_cancel(supervisor_find(&w->core->sup, run), NULL, NULL);
		wait_while(w, id, has_runs);
	}
}

/* A yes is none of them; that nothing waits would be wrong. */
TEST_WITH(choices_are_told, set_up, tear_down)
{
	struct world *w = *state;
	char id[64], run[24];

	snprintf(id, sizeof(id), "%s", begin(w, NULL));
	asking(w, id, chooses, NULL, run);
	tell(w, id, "yes");
	assert_said(w, id, "Answer with: 1: json, 2: yaml.");
	supervisor_cancel(supervisor_find(&w->core->sup, run), NULL, NULL);
	wait_while(w, id, has_runs);
}

/* It was not what the person had before them. */
TEST_WITH(not_shown_last, set_up, tear_down)
{
	struct world *w = *state;
	char id[64], run[24], words[40];
	struct run *r;

	begin_talk(w, id);
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
TEST_WITH(ava_spoke_since, set_up, tear_down)
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
		char id[64], run[24];

		begin_talk(w, id);
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
		if (supervisor_find(&w->core->sup, run))
			supervisor_cancel(supervisor_find(&w->core->sup, run), NULL, NULL);
		wait_while(w, id, has_runs);
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

TEST_WITH(two_questions, set_up, tear_down)
{
	struct world *w = *state;
	char id[64], one[24], two[24], words[60];

	begin_talk(w, id);
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
	supervisor_cancel(supervisor_find(&w->core->sup, two), NULL, NULL);
	wait_while(w, id, has_runs);
}

/* A proposal and a question: a bare yes is for the proposal only when that was made
 * after the question; else nothing happens. */
/* Two ask, Ava is at work, and one has its answer before the words are looked at. */
TEST_WITH(answered_before_it_is_looked_at, set_up, tear_down)
{
	static const char *const rows[] = {"yes", "no"};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char id[64], one[24], two[24];
		struct op_steer o = {.run = two, .text = "yes", .by = "ben"};
		int done = 0;

		snprintf(id, sizeof(id), "%s",
			 begin(w,
			       script(w, "{\"text\":\"a\",\"delay_ms\":3600000}\n{\"text\":\"b\"}\n"
					 "{\"text\":\"c\"}\n{\"text\":\"d\"}\n")));
		assert_int_equal(say(w, id, "hello"), 1);
		asking(w, id, reads, "read_file", one);
		asking(w, id, reads, "read_file", two);
		assert_int_equal(say(w, id, rows[i]), 1);
		ops_steer(w->core, &o, steered, &done);
		for (int k = 0; !done && k < 3000; k++)
			os_loop_step(w->loop, 10);
		assert_int_equal(done, 1);
		let_reply(w, id);
		idle(w, id);
		assert_true(waits(w, one));
		assert_sent(w, id, "it is not clear that the words answer that", true);
	}
}

TEST_WITH(beside_a_proposal, set_up, tear_down)
{
	struct world *w = *state;
	char id[64], run[24], proposal[24], words[80];
	struct run *r;

	begin_talk(w, id);
	tell(w, id, "Find where parse_header is defined");
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
	supervisor_cancel(supervisor_find(&w->core->sup, run), NULL, NULL);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 3);
}

TEST_WITH(named_beside_a_question, set_up, tear_down)
{
	struct world *w = *state;
	char id[64], run[24], words[80];
	struct run *r;

	begin_talk(w, id);
	tell(w, id, "Find where parse_header is defined");
	r = asking(w, id, reads, "read_file", run);
	shown(r, 0);
	snprintf(words, sizeof(words), "yes, %s", pending(w));
	tell(w, id, words);
	assert_true(waits(w, run));
	assert_string_equal(pending(w), "");
	supervisor_cancel(supervisor_find(&w->core->sup, run), NULL, NULL);
	wait_while(w, id, has_runs);
	assert_int_equal(runs(w), 2);
}

/* What another conversation's runs ask is not asked here. */
TEST_WITH(another_conversation, set_up, tear_down)
{
	struct world *w = *state;
	char here[64], there[64], run[24], words[40];

	begin_talk(w, there);
	begin_talk(w, here);
	asking(w, there, reads, "read_file", run);
	talk_in(w, here)->spoke_ms = 0;
	tell(w, here, "yes");
	assert_said(w, here, "Nothing waits for your answer");
	snprintf(words, sizeof(words), "yes, %s", run);
	tell(w, here, words);
	assert_true(waits(w, run));
	supervisor_cancel(supervisor_find(&w->core->sup, run), NULL, NULL);
	wait_while(w, there, has_runs);
}

/* A stop between the words and what they do. */
TEST_WITH(closed_meanwhile, set_up, tear_down)
{
	struct op_say s = {.text = "yes", .user_id = "ben"};
	struct world *w = *state;
	char id[64], run[24];
	int done = 0;

	begin_talk(w, id);
	asking(w, id, asks, NULL, run);
	ops_say(w->core, id, &s, said, &done);
	for (int i = 0; !talk_in(w, id)->answering && i < 3000; i++)
		os_loop_step(w->loop, 1);
	core_close(w->core);
	open_core(w);
	idle(w, id);
	wait_while(w, id, has_runs);
	assert_true(logged(w, run, "\"answer\":\"yes\""));
}
