/* What a start makes of the runs that a stop left: their catalog rows, logs
 * and conversations are written by the supervisor, then changed as a crash, a
 * failing disk or a person may leave them. No model is called. */
#include "restart_rig.h"

/* ---- tests */

WORLD_TEST(a_queued_run_goes_on)
{
	struct left a, b;
	char want[128];

	a = queued(w, "r-1");
	b = queued(w, "");
	close_world(w);
	restart(w);
	assert_queued(w, &a);
	assert_queued(w, &b);
	assert_int_equal(w->sup.total, 2);
	assert_true(nameset_has(&w->sup.names, a.id));
	assert_true(nameset_has(&w->sup.names, b.trace));
	snprintf(want, sizeof(want), "r-1=%s ", a.id);
	assert_string_equal(w->requests, want); /* "" is none */
	assert_string_equal(w->problems, "");
}

/* The call that was cut is charged an estimate, once, and made again. */
WORLD_TEST(a_cut_call)
{
	struct left l;
	struct run *r;

	l = queued(w, "");
	asks_model(w, &l, 1, ",\"usedMs\":4000", "");
	close_world(w);
	for (int i = 0; i < 3; i++) {
		restart(w);
		r = carried(w, &l);
		assert_true(r->agent.at.again);
		assert_int_equal(r->call.attempts, 1);
		assert_int_equal(r->agent.at.totals.calls, 1);
		assert_int_equal(r->agent.at.totals.failed_calls, 1);
		assert_int_equal(r->agent.at.totals.input, r->rec.request_bytes / 4);
		assert_int_equal(r->agent.at.used_ms,
				 4000); /* the time without a process is none */
		assert_string_equal(w->problems, "");
		close_world(w); /* nothing followed: nothing is written */
		assert_false(rig_holds(&w->r, l.log, "\"estimated\":true"));
	}
	unlink(rig_path(&w->r, l.messages)); /* and a run that cannot go on ends */
	restart(w);
	assert_interrupted(w, &l);
	assert_true(rig_holds(&w->r, l.log, "\"estimated\":true"));
	assert_true(rig_holds(&w->r, l.log, "\"errorClass\":\"interrupted\""));
	close_world(w);
	restart(w); /* ended is ended */
	assert_int_equal(w->sup.nlive, 0);
	assert_int_equal(w->sup.total, 1);
	assert_true(nameset_has(&w->sup.names, l.id));
}

/* What the log tells of a run's limits, warnings and waits holds after a start. */
WORLD_TEST(what_is_carried_over)
{
	struct left l;
	struct run *r;

	l = queued(w, "");
	asks_model(w, &l, 2,
		   ",\"usedMs\":1005,\"input\":70,\"output\":7,\"measuredInput\":70,"
		   "\"warned\":5,\"oddReplies\":1",
		   ",\"firstModel\":\"a/b\",\"fallbacks\":2");
	add(w, &l, EVENT_InferEnd,
	    "{\"callId\":\"i2\",\"responsePreview\":\"\",\"tokens\":{\"input\":0},"
	    "\"errorClass\":\"overloaded\",\"retryInMs\":600000,\"clockMs\":2005}");
	close_world(w);
	restart(w);
	r = carried(w, &l);
	assert_true(r->agent.at.again);
	assert_int_equal(r->agent.at.used_ms, 2005);
	assert_int_equal(r->agent.at.warned, 1u << AGENT_TIME | 1u << AGENT_TOKENS);
	assert_int_equal(r->agent.at.odd_replies, 1);
	assert_int_equal(r->agent.at.totals.calls, 2);
	assert_int_equal(r->agent.at.totals.failed_calls, 1);
	assert_int_equal(r->agent.at.measured_input, 70);
	assert_int_equal(r->call.retry.failures, 1);
	assert_int_equal(r->call.fallbacks, 2);
	assert_string_equal(r->call.first_model, "a/b");
	assert_true(r->call.held_until_ms > clock_mono_ms() + 60000);
	assert_true(r->call.held_until_ms <= clock_mono_ms() + 600000);
}

/* With the first thing that follows; a run that had not begun reads none. */
TEST(a_position_read_is_told)
{
	static const char *const told[] = {"\"eventType\":\"StateRead\"",
					   "\"content\":{\"key\":\"position\"}",
					   "\"customType\":\"carried_on\""};

	for (int begun = 0; begun < 2; begun++) {
		struct world w;
		struct left l;
		struct run *r;

		init_world(&w);
		l = queued(&w, "");
		if (begun)
			asks_model(&w, &l, 2, "", "");
		close_world(&w);
		restart(&w);
		r = carried(&w, &l);
		assert_false(rig_holds(&w.r, l.log, told[0]));
		supervisor_cancel(r, NULL, NULL);
		RIG_UNTIL(&w.r, !supervisor_find(&w.sup, l.id));
		for (size_t i = 0; i < ARRAY_LEN(told); i++)
			assert_int_equal(rig_holds(&w.r, l.log, told[i]), begun);
		fini_world(&w);
	}
}

/* An empty reply has no line: the event alone says that it came. */
WORLD_TEST(a_reply_without_a_line)
{
	struct left l;
	struct run *r;

	l = queued(w, "");
	asks_model(w, &l, 1, "", "");
	add(w, &l, EVENT_InferEnd,
	    "{\"callId\":\"i1\",\"responsePreview\":\"\",\"tokens\":{\"input\":70},"
	    "\"stopReason\":\"max_tokens\"}");
	close_world(w);
	restart(w);
	r = carried(w, &l);
	assert_true(r->agent.replayed);
	assert_non_null(r->agent.turn);
	assert_int_equal(r->agent.turn->ncalls, 0);
	assert_int_equal(r->agent.turn->stop, TURN_STOP_LENGTH);
	assert_string_equal(r->agent.turn->text, "");
}

/* Log and messages that do not fit together: nobody can say where it stands. */
WORLD_TEST(a_log_without_its_messages)
{
	struct left l;

	l = at_work(w);
	add(w, &l, EVENT_ToolCall, "{\"callId\":\"c1.3\",\"name\":\"read_file\"}");
	close_world(w);
	restart(w);
	assert_non_null(strstr(w->problems, "2 open calls where its log has 3"));
	assert_interrupted(w, &l);
}

/* Positions that have what changed, each on the one before. */
WORLD_TEST(positions_add_up)
{
	static const char *const more[] = {
		"{\"iteration\":1,\"said\":\"so\",\"repeats\":{\"changes\":1,\"calls\":["
		"\"000000000000000a000000000000000b 1.1 0\"]},\"run\":{\"callsOf\":[0,1],"
		"\"artifacts\":[\"c1.1.txt\"]}}",
		"{\"delta\":1,\"iteration\":2,\"repeats\":{\"changes\":2,\"calls\":["
		"\"000000000000000c000000000000000d 2.1 1\"]},\"run\":{\"callsOf\":[3]}}",
		"{\"delta\":2,\"iteration\":5,\"run\":{\"call\":\"i5\",\"callsOf\":[0,0,2],"
		"\"artifacts\":[\"c5.1.txt\",\"c5.2.txt\"]}}"};
	static const uint32_t before[] = {0, 0, 1, 4, 4, 4, 6};
	struct left whole = queued(w, ""), lacks = queued(w, "");
	struct run *r;

	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		char text[400];

		snprintf(text, sizeof(text), "{\"key\":\"position\",\"value\":%s}", more[i]);
		add(w, &whole, EVENT_StateWrite, text);
		if (i != 1)
			add(w, &lacks, EVENT_StateWrite, text);
	}
	close_world(w);
	restart(w);
	r = carried(w, &whole);
	assert_int_equal(r->agent.at.iteration, 5);
	assert_string_equal(r->agent.at.said, "so");
	assert_int_equal(r->agent.at.repeats->n, 2);
	assert_int_equal(r->agent.at.repeats->changes, 2);
	assert_int_equal(r->tools.calls_at, 6);
	assert_memory_equal(r->tools.calls_before, before, sizeof(before));
	assert_string_equal(r->tools.artifacts.data, "\"c1.1.txt\",\"c5.1.txt\",\"c5.2.txt\"");
	assert_non_null(strstr(w->problems, lacks.log));
	assert_non_null(strstr(w->problems, "a position that the last one builds on is missing"));
	assert_interrupted(w, &lacks);
}

/* A recorded result stays, whole where only its beginning is in the log; the other
 * call is open. */
WORLD_TEST(results_are_kept)
{
	struct left l;
	struct draft *d;
	const struct turn *t;

	l = at_work(w);
	close_world(w);
	restart(w);
	t = carried(w, &l)->agent.turn;
	assert_int_equal(t->ncalls, 2);
	assert_true(t->calls[0].answered && t->calls[0].recorded && t->calls[0].success);
	assert_string_equal(t->calls[0].output, "what a holds");
	assert_false(t->calls[1].answered);
	d = draft_new(&w->r.book);
	buf_adds(draft_part(d, DRAFT_MESSAGES, l.messages),
		 "{\"mark\":{\"kept\":\"c1.1\",\"output\":\"all that a holds\"}}\n");
	commit(w, d);
	close_world(w);
	restart(w);
	t = carried(w, &l)->agent.turn;
	assert_string_equal(t->calls[0].output, "all that a holds");
}

/* A run that ends before it goes on closes what was open: the intent without a result
 * gets one that says so, the other one's stays. */
WORLD_TEST(open_intents_get_results)
{
	struct left l;
	struct event_view v[32];
	char *file, *messages, *last;
	unsigned results = 0;
	size_t n;

	l = at_work(w);
	close_world(w);
	restart(w);
	supervisor_cancel(carried(w, &l), NULL, NULL);
	RIG_UNTIL(&w->r, !supervisor_find(&w->sup, l.id));
	n = rig_events(&w->r, l.log, v, 32, &file);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(v[i].seq, i + 1);
		results += v[i].kind == EVENT_ToolResult;
	}
	assert_int_equal(results, 2);
	assert_int_equal(v[n - 1].kind, EVENT_SubagentComplete);
	assert_non_null(
		strstr(file, "\"callId\":\"c1.2\",\"name\":\"read_file\",\"success\":false"));
	messages = rig_read(&w->r, l.messages);
	messages[strlen(messages) - 1] = 0;
	last = strrchr(messages, '\n');
	assert_non_null(strstr(last, "\"t1\""));
	assert_non_null(strstr(last, "what a holds"));
	assert_non_null(strstr(last, "\"t2\""));
	assert_non_null(strstr(last, "may have had effects"));
	assert_true(rig_holds(&w->r, l.result, "\"tokens_used\":77"));
	free(file);
	free(messages);
}

static void waiting(struct world *w, const struct left *l, const char *call, const char *kind,
		    const char *state, const char *more)
{
	char content[600];

	snprintf(content, sizeof(content),
		 "{\"subagentId\":\"%s\",\"callId\":\"%s\",\"state\":\"%s\",\"kind\":\"%s\","
		 "\"callHash\":\"%064d\"%s}",
		 l->id, call, state, kind, 0, more);
	add(w, l, EVENT_Waiting, content);
}

/* A limit that a person did not raise ends the run, without asking once more. */
TEST(a_limit_stays)
{
	static const struct {
		const char *call, *kind, *state;
		bool asks; /* it may still ask about a limit */
	} cases[] = {
		{"i2", "approval", "asked", true},    {"i2", "approval", "answered", true},
		{"i2", "approval", "refused", false}, {"i2", "approval", "expired", false},
		{"i1.q1", "quota", "expired", true},  {"c1.2", "approval", "refused", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct world w;
		struct left l;

		init_world(&w);
		l = at_work(&w);
		waiting(&w, &l, cases[i].call, cases[i].kind, cases[i].state, "");
		close_world(&w);
		restart(&w);
		assert_int_equal(carried(&w, &l)->spec->agent.ask_limit, cases[i].asks);
		fini_world(&w);
	}
}

/* What a person decided holds, also when the call has no result of its own yet. */
TEST(decisions_are_kept)
{
	static const struct {
		const char *kind, *state, *more, *output, *error_class;
		bool success;
	} cases[] = {
		{"question", "answered", ",\"answer\":\"this one\"", "this one", "", true},
		{"question", "expired", ",\"default\":\"that\"", "that\n(nobody answered", "",
		 true},
		{"question", "expired", "", "nobody answered in time", "timeout", false},
		{"approval", "refused", ",\"answer\":\"no: never\"", "did not allow it: no: never",
		 "denied", false},
		{"approval", "expired", "", "not run: it needs", "timeout", false},
		{"approval", "answered", ",\"answer\":\"yes\"", NULL, "", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct turn_call *c;
		struct world w;
		struct left l;

		init_world(&w);
		l = at_work(&w);
		waiting(&w, &l, "c1.2", cases[i].kind, "asked", "");
		waiting(&w, &l, "c1.2", cases[i].kind, cases[i].state, cases[i].more);
		close_world(&w);
		restart(&w);
		c = &carried(&w, &l)->agent.turn->calls[1];
		assert_int_equal(c->approved, cases[i].output == NULL);
		assert_int_equal(c->answered, cases[i].output != NULL);
		assert_false(c->recorded); /* its ToolResult comes with the next commit */
		if (cases[i].output != NULL) {
			assert_int_equal(c->success, cases[i].success);
			assert_string_equal(c->error_class, cases[i].error_class);
			assert_non_null(strstr(c->output, cases[i].output));
		}
		fini_world(&w);
	}
}

/* What was said and not read is told; what was read is not told again. */
WORLD_TEST(what_was_said_is_kept)
{
	const struct person_words third = {.text = "third", .by = "ben"};
	const char *notices[PERSON_SAID_MAX];
	struct left l;
	struct run *r;

	l = at_work(w);
	add(w, &l, EVENT_Steering,
	    "{\"text\":\"first\",\"outcome\":\"queued\",\"steerId\":\"m1\",\"by\":\"ben\"}");
	add(w, &l, EVENT_Steering,
	    "{\"text\":\"second\",\"outcome\":\"queued\",\"steerId\":\"m2\",\"by\":\"ben\"}");
	add(w, &l, EVENT_Steering,
	    "{\"text\":\"first\",\"outcome\":\"delivered\",\"steerId\":\"m1\",\"by\":\"ben\"}");
	close_world(w);
	restart(w);
	r = carried(w, &l);
	assert_int_equal(r->agent.steers, 1);
	assert_int_equal(person_notices(r, notices), 1);
	assert_string_equal(notices[0], "[ava] A person says: second");
	/* It ends before it goes on: that is told, and the numbers go on. */
	assert_int_equal(person_steer(r, &third, NULL, NULL, &w->err), 0);
	supervisor_cancel(r, NULL, NULL);
	RIG_UNTIL(&w->r, !supervisor_find(&w->sup, l.id));
	assert_true(rig_holds(&w->r, l.log,
			      "{\"text\":\"second\",\"outcome\":\"too_late\",\"steerId\":\"m2\""));
	assert_true(rig_holds(&w->r, l.log,
			      "{\"text\":\"third\",\"outcome\":\"too_late\",\"steerId\":\"m3\""));
}

/* The rows of runs that the catalog does not know are in the file when the
 * start has returned, however slow the disk is: who asks first sees them. */
WORLD_TEST(a_catalog_that_was_removed)
{
	struct left a, b;
	char want[64];

	a = queued(w, "r-1");
	b = at_work(w);
	close_world(w);
	unlink(rig_path(&w->r, CATALOG_PATH));
	open_world(w);
	atomic_store(&rig_sync_us, 50000);
	assert_int_equal(take_up(w), 0);
	atomic_store(&rig_sync_us, 0);
	snprintf(want, sizeof(want), "\"id\":\"%s\"", a.id);
	assert_true(rig_holds(&w->r, CATALOG_PATH, want));
	snprintf(want, sizeof(want), "\"id\":\"%s\"", b.id);
	assert_true(rig_holds(&w->r, CATALOG_PATH, want));
	assert_non_null(strstr(w->problems, a.log));
	assert_non_null(strstr(w->problems, b.log));
	assert_string_equal(w->requests, ""); /* it stood in the catalog alone */
	assert_queued(w, &a);
	carried(w, &b);
}

/* A group knows its runs, and what the ended one has cost, when the catalog that
 * said so is gone. */
WORLD_TEST(a_group_without_its_catalog)
{
	struct spec_group group = {
		.id = "G-7f3a2b", .cost_microusd = 500000, .index = 1, .size = 2};
	struct left live, ended;
	struct run *r;

	live = queued_in(w, "", &group);
	group.index = 2;
	ended = queued_in(w, "", &group);
	add(w, &ended, EVENT_SubagentComplete,
	    "{\"status\":\"success\",\"totals\":{\"costCents\":12.5,\"calls\":1}}");
	close_world(w);
	unlink(rig_path(&w->r, CATALOG_PATH));
	for (int i = 0; i < 2; i++) { /* from the logs, then from the rows made of them */
		restart(w);
		r = supervisor_find(&w->sup, live.id);
		assert_non_null(r);
		assert_null(supervisor_find(&w->sup, ended.id));
		assert_non_null(r->group);
		assert_int_equal(r->group->money.spent, 125000);
		assert_true(rig_holds(&w->r, CATALOG_PATH, "\"groupId\":\"G-7f3a2b\""));
		close_world(w);
	}
	restart(w);
}

/* What it had used when a position was written, not what the clock on the wall has shown
 * since its first spawn: nothing is used while there is no process. */
WORLD_TEST(a_group_does_not_use_time_between_processes)
{
	struct spec_group group = {.id = "G-7f3a2b", .time_ms = 3600000, .index = 1, .size = 1};
	struct left l;
	struct run *r;
	char *rows, *at;
	size_t len;

	l = queued_in(w, "", &group);
	asks_model(w, &l, 1, "", ",\"groupMs\":1000");
	close_world(w);
	rows = unit_read(rig_path(&w->r, CATALOG_PATH), &len);
	at = strstr(rows, "\"startedAt\":\"20");
	assert_non_null(at);
	memcpy(at + 13, "2020", 4); /* years ago */
	unit_write(rig_path(&w->r, CATALOG_PATH), rows, len);
	free(rows);
	restart(w);
	r = carried(w, &l);
	assert_true(r->group->running); /* its time goes on: a model had been called */
	assert_non_null(r->group->timer);
	assert_in_range(group_used_ms(r->group), 1000, 60000);
}

/* A disk that takes no rows does not hold up the start. */
WORLD_TEST(rows_that_cannot_be_written)
{
	struct left a;

	a = queued(w, "");
	close_world(w);
	unlink(rig_path(&w->r, CATALOG_PATH));
	open_world(w);
	atomic_store(&rig_sync_error, EIO);
	assert_int_equal(take_up(w), 0);
	assert_queued(w, &a);
	atomic_store(&rig_sync_error, 0);
	RIG_UNTIL(&w->r, journal_health(w->r.j, NULL) == 0);
	close_world(w);
	restart(w); /* found missing again */
	assert_non_null(strstr(w->problems, a.log));
	assert_queued(w, &a);
}

static void append(struct world *w, const char *path, const char *text)
{
	FILE *f = fopen(rig_path(&w->r, path), "a");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

WORLD_TEST(rows_that_are_none)
{
	struct left a;
	char *rows;

	a = queued(w, "r-1");
	close_world(w);
	rows = rig_read(&w->r, CATALOG_PATH);
	append(w, CATALOG_PATH, "{\"row\":\"of what?\"}\n");
	append(w, CATALOG_PATH, rows);                           /* the first one counts */
	append(w, CATALOG_PATH, "{\"row\":\"spawn\",\"lsn\":1"); /* torn */
	free(rows);
	restart(w);
	assert_non_null(strstr(w->problems, CATALOG_PATH ": a line cannot be read"));
	assert_int_equal(w->sup.nlive, 1);
	assert_queued(w, &a);
}

/* An end without its beginning: the id is never given again. */
WORLD_TEST(an_end_row_alone)
{
	struct catalog_row row = {.kind = CATALOG_END,
				  .status = AVA_SUCCESS,
				  .id = "S-abcdef",
				  .trace_id = "brave-otter",
				  .role = "researcher",
				  .totals = {.calls = 3, .duration_ms = 1000}};
	struct draft *d;

	d = draft_new(&w->r.book);
	assert_int_equal(draft_catalog(d, &row, NULL), 0);
	commit(w, d);
	close_world(w);
	restart(w);
	assert_int_equal(w->sup.nlive, 0);
	assert_true(nameset_has(&w->sup.names, "S-abcdef"));
}

/* What a person did to the files of a run that had not ended: it ends, with
 * the reason, and the file is named. */
TEST(files_that_were_changed)
{
	enum { NO_MESSAGES, NO_SPEC, NEWER, OTHER_LOG, NO_LOG, NCASES };
	static const char other[] =
		"{\"timestamp\":\"2026-11-21T08:00:00.123Z\",\"lsn\":1,\"seq\":1,\"eventType\":"
		"\"Activity\",\"agentId\":\"S-111111\",\"sessionId\":\"\",\"traceId\":\"\","
		"\"userId\":\"\",\"content\":{},\"metadata\":{}}\n";

	for (int i = 0; i < NCASES; i++) {
		struct world w;
		struct left l;

		init_world(&w);
		l = queued(&w, "");
		close_world(&w);
		if (i == NO_MESSAGES)
			unlink(rig_path(&w.r, l.messages));
		else if (i == NO_SPEC)
			rig_write(&w.r, l.messages, "[]\n");
		else if (i == NEWER)
			rig_write(&w.r, l.messages, "{\"spec\":{\"machine\":99}}\n");
		else if (i == OTHER_LOG)
			append(&w, l.log, other);
		else
			unlink(rig_path(&w.r, l.log));
		restart(&w);
		assert_non_null(strstr(w.problems, l.id));
		RIG_UNTIL(&w.r, !supervisor_find(&w.sup, l.id));
		assert_true(rig_holds(&w.r, l.result, "\"status\":\"error\""));
		assert_true(rig_holds(&w.r, CATALOG_PATH, "\"row\":\"end\""));
		fini_world(&w);
	}
}

/* ---- failures through the seam */

/* part of a path; the journal's threads read it too */
static const char *_Atomic failing;

static int failing_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	const char *part = failing;

	if (part && strstr(path, part) != NULL) {
		errno = EIO;
		return -1;
	}
	return sys_real.openat(dirfd, path, flags, mode);
}

TEST(a_disk_that_cannot_be_read)
{
	struct sys_ops ops = sys_real;
	struct world w;
	struct left l;

	ops.openat = failing_openat;
	init_world(&w);
	l = queued(&w, "");
	close_world(&w);

	sys = &ops;
	open_world(&w);
	failing = CATALOG_PATH; /* without it nothing is known: no start */
	assert_int_equal(take_up(&w), AVA_EIO);
	assert_non_null(strstr(w.err.text, CATALOG_PATH));
	failing = NULL;
	close_world(&w);

	open_world(&w);
	failing = "subagents/"; /* its log: nobody knows which numbers were given */
	assert_int_equal(take_up(&w), AVA_EIO);
	assert_non_null(strstr(w.err.text, l.id));
	failing = NULL;
	close_world(&w);

	open_world(&w);
	failing = "messages.jsonl"; /* one run alone */
	assert_int_equal(take_up(&w), 0);
	failing = NULL;
	assert_non_null(strstr(w.problems, l.id));
	RIG_UNTIL(&w.r, !supervisor_find(&w.sup, l.id));
	assert_true(rig_holds(&w.r, l.result, "\"status\":\"error\""));
	fini_world(&w);
}

/* Out of memory stops the start, names what it was at, and leaves the files
 * as they are for the next one. */
WORLD_TEST(without_memory)
{
	bool hit = true;
	struct left a;

	a = queued(w, "r-1");
	close_world(w);
	for (long k = 0; hit; k++) {
		int rv;

		open_world(w);
		fault_alloc(k);
		rv = take_up(w);
		hit = fault_alloc_end();
		if (rv != 0) {
			assert_int_equal(rv, AVA_ENOMEM);
			assert_string_not_equal(w->err.text, "");
		}
		close_world(w);
		assert_true(k < 2000);
	}
	restart(w);
	assert_true(supervisor_find(&w->sup, a.id) != NULL || w->sup.total == 1);
}
