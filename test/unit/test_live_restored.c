/* A machine that lives, and the same one as a restart makes it from the disk, field by field:
 * what the fresh path sets and the restored one forgets shows here, whatever it is used for.
 *
 * At moments of every kind (a question waits, a model is asked, a slot is waited for, words
 * to a run are not read yet, a group, quotes in a conversation) the data root is copied as a
 * kill would leave it, a second runtime is opened on the copy, and both are written down. A
 * new field of struct run_record, run_call, run_tools, group, proposal or agent_position
 * belongs into the lists below, or beside them with the reason why it may differ. */
#include "talk_rig.h"

#include <inttypes.h>

#include "agent/agent.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "subagent/run.h"

/* ---- written down */

#define NUM(what) buf_addf(out, "%s=%lld\n", #what, (long long)(what))
#define STR(what) buf_addf(out, "%s=%s\n", #what, (what) ? (what) : "")

static void dump_position(struct buf *out, const struct agent_position *at, bool called)
{
	/* A call that is under way is charged its estimate by a restart, and made again. */
	if (!called) {
		NUM(at->totals.input);
		NUM(at->totals.output);
		NUM(at->totals.cost_microusd);
		NUM(at->totals.failed_calls);
		NUM(at->again);
	}
	NUM(at->totals.cache_read);
	NUM(at->totals.cache_write);
	NUM(at->totals.calls);
	NUM(at->totals.uncosted_calls);
	NUM(at->totals.tool_calls);
	NUM(at->measured_input);
	NUM(at->new_bytes);
	NUM(at->compact_floor);
	NUM(at->window);
	NUM(at->output_max);
	NUM(at->iteration);
	NUM(at->turn_from);
	NUM(at->warned);
	NUM(at->shares);
	NUM(at->odd_replies);
	NUM(at->pauses);
	NUM(at->halvings);
	NUM(at->repairs);
	NUM(at->nudged);
	NUM(at->force_submit);
	NUM(at->wrapping);
	NUM(at->overflowed);
	for (unsigned i = 0; at->repeats && i < at->repeats->n; i++) {
		const struct repeat_call *c = &at->repeats->calls[i];

		buf_addf(out, "repeat %" PRIx64 " %" PRIx64 " c%d.%u last %d times %d %d %d %d\n",
			 c->call, c->result, c->at.iteration, c->at.n, c->last, c->times,
			 c->removed, c->gone, c->fetched);
	}
	if (at->repeats)
		NUM(at->repeats->changes);
}

static void dump_spec(struct buf *out, const struct run_spec *s)
{
	STR(s->role->name);
	STR(s->task);
	STR(s->context);
	STR(s->cwd);
	STR(s->session_id);
	STR(s->request_id);
	STR(s->user_id);
	STR(s->origin);
	STR(s->preset);
	STR(s->rationale);
	STR(s->resumed_from);
	STR(s->model->id);
	STR(s->model->drop);
	STR(s->hash);
	STR(s->group.id);
	NUM(s->group.cost_microusd);
	NUM(s->group.time_ms);
	NUM(s->group.share);
	NUM(s->group.chain);
	NUM(s->expected_tokens);
	NUM(s->resumed_call);
	NUM(s->thinking);
	NUM(s->rights);
	NUM(s->given);
	NUM(s->ngrants);
	NUM(s->agent.limits.time_ms);
	NUM(s->agent.limits.cost_microusd);
	NUM(s->agent.limits.tokens);
	NUM(s->agent.limits.iterations);
	NUM(s->agent.price.input);
	NUM(s->agent.price.output);
	NUM(s->agent.price.cache_read);
	NUM(s->agent.price.cache_write);
	NUM(s->agent.window);
	NUM(s->agent.max_output);
	NUM(s->agent.ask_limit);
	NUM(s->on_quota);
	for (unsigned i = 0; i < s->agent.ntools; i++)
		STR(s->tools[i]->name);
	for (unsigned i = 0; i < s->agent.nask_before; i++)
		STR(s->ask_before[i]->name);
	NUM(s->output_schema != NULL);
}

static void dump_record(struct buf *out, const struct run_record *rec)
{
	char hex[HASH_HEX_LEN + 1];

	NUM(rec->log.seq);
	NUM(rec->log.bytes);
	run_log_hex(&rec->log, hex);
	buf_addf(out, "log.head=%.64s\n", hex);
	NUM(rec->types);
	NUM(rec->message_lines);
	NUM(rec->messages_from);
	hash_sha256_with(&rec->prefix, "", 0, hex);
	buf_addf(out, "prefix=%s\n", hex);
	NUM(rec->request_bytes);
	NUM(rec->wordless);
	NUM(rec->turn_open);
}

static void dump_call(struct buf *out, const struct run_call *call)
{
	STR(call->id);
	NUM(call->attempts);
	NUM(call->fallbacks);
	STR(call->first_model);
	NUM(call->retry.failures);
	NUM(call->retry.broken);
}

static void dump_tools(struct buf *out, const struct run *r)
{
	const struct run_tools *tools = &r->tools;

	NUM(tools->calls_at);
	for (int32_t i = 0; i <= tools->calls_at && tools->calls_before; i++)
		NUM(tools->calls_before[i]);
	STR(tools->last);
	NUM(tools->bytes_read);
	for (unsigned i = 0; i < r->spec->agent.ntools; i++)
		NUM(tools->counts[i]);
	STR(tools->artifacts.data);
}

static void dump_group(struct buf *out, const struct group *g)
{
	STR(g->id);
	NUM(g->money.limit);
	NUM(g->money.spent);
	NUM(g->time_ms);
	NUM(g->begun_wall_ms > 0); /* its spawn is stamped some ms later */
	NUM(g->size);
	NUM(g->chain);
	NUM(g->expired);
	NUM(g->nmembers);
	for (unsigned i = 0; i < g->nmembers; i++) {
		STR(g->members[i].id);
		STR(g->members[i].trace);
		NUM(g->members[i].ended);
		NUM(g->members[i].status);
	}
}

static void dump_question(struct buf *out, const struct question *q)
{
	STR(q->call_id);
	NUM(q->approval);
	STR(q->call_hash);
	STR(q->text);
	STR(q->choices);
	STR(q->fallback);
	NUM(q->until_ms);
}

static void dump_run(struct buf *out, const struct run *r)
{
	bool called = r->call.id[0] != 0;

	STR(r->id.text);
	STR(r->trace.text);
	STR(r->session_file);
	STR(r->proposal);
	NUM(r->spawned_wall_ms);
	NUM(r->started_wall_ms);
	NUM(r->durable);
	NUM(r->checkpoints != NULL);
	NUM(r->agent.steers);
	dump_position(out, &r->agent.at, called);
	dump_spec(out, r->spec);
	dump_record(out, &r->rec);
	dump_call(out, &r->call);
	NUM(r->park.until_ms);
	NUM(r->park.count);
	STR(r->park.limit);
	dump_tools(out, r);
	if (r->group)
		dump_group(out, r->group);
	if (person_question(r))
		dump_question(out, person_question(r));
}

/* Its log is of all conversations, and it has no lines that a checkpoint counts. */
static void dump_talk(struct buf *out, const struct talk *t)
{
	const struct run *r = &t->run;
	char hex[HASH_HEX_LEN + 1];

	dump_position(out, &r->agent.at, r->call.id[0] != 0);
	STR(r->spec->model->id);
	NUM(r->spec->agent.limits.time_ms);
	NUM(r->spec->agent.window);
	hash_sha256_with(&r->rec.prefix, "", 0, hex);
	buf_addf(out, "prefix=%s\n", hex);
	NUM(r->rec.messages_from);
	NUM(r->rec.request_bytes);
	NUM(r->rec.wordless);
	NUM(r->rec.turn_open);
	dump_call(out, &r->call);
	dump_tools(out, r);
	NUM(t->seen);
}

static void dump_proposal(struct proposal *p, void *user)
{
	struct buf *out = user;

	STR(p->id);
	STR(p->group_id);
	STR(proposal_state(p));
	NUM(p->n);
	NUM(p->number);
	NUM(p->cost_microusd);
	STR(p->quote);
	STR(p->message);
	STR(proposal_settled(p) ? "" : p->config);
	STR(p->hash);
	STR(p->run);
	STR(p->trace);
	STR(p->confirmed_hash);
	STR(p->changes);
	STR(p->replaces);
	STR(p->replaced_by);
	STR(p->instead);
}

/* Runs and groups without an order, proposals newest first. */
static char *dump(struct core *c)
{
	struct buf b, *out = &b;
	struct run *runs[16];
	unsigned n = 0;

	buf_init(&b, 8u << 20);
	NUM(c->sup.total);
	NUM(c->sup.money.all[0].spent);
	NUM(c->npending);
	NUM(c->nsettled);
	LIST_EACH (&c->sup.live, node, tmp) {
		unsigned at = n++;

		runs[at] = LIST_ENTRY(node, struct run, node);
		for (; at > 0 && strcmp(runs[at]->id.text, runs[at - 1]->id.text) < 0; at--) {
			struct run *swap = runs[at];

			runs[at] = runs[at - 1];
			runs[at - 1] = swap;
		}
	}
	for (unsigned i = 0; i < n; i++)
		dump_run(&b, runs[i]);
	LIST_EACH (&c->talks, node, tmp) { /* one at rest is not in memory after a start */
		const struct talk *t = LIST_ENTRY(node, struct talk, node);

		if (t->busy)
			dump_talk(&b, t);
	}
	ops_proposals(c, true, dump_proposal, &b);
	return buf_take(&b, NULL);
}

/* ---- both */

static bool quiet(struct core *c)
{
	LIST_EACH (&c->sup.live, node, tmp) {
		struct run *r = LIST_ENTRY(node, struct run, node);

		if (!outbox_empty(&r->rec.outbox) || r->rec.draft)
			return false;
	}
	return true;
}

static void step_until(struct world *w, bool (*there)(struct core *c))
{
	int64_t end = clock_mono_ms() + 60000;

	while (!there(w->core) || !quiet(w->core)) {
		if (clock_mono_ms() > end)
			fail_msg("%s", dump(w->core));
		os_loop_step(w->loop, 5);
	}
}

/* The first line that differs, of both. */
static void assert_same(const char *live, const char *restored)
{
	while (*live && *restored) {
		size_t a = strcspn(live, "\n"), b = strcspn(restored, "\n");

		if (a != b || memcmp(live, restored, a) != 0)
			fail_msg("live     %.*s\nrestored %.*s", (int)a, live, (int)b, restored);
		live += a + 1;
		restored += b + 1;
	}
	assert_string_equal(live, restored);
}

static bool one_waits(struct core *c)
{
	LIST_EACH (&c->sup.live, node, tmp)
		if (person_question(LIST_ENTRY(node, struct run, node)))
			return true;
	return false;
}

static void compare(struct world *w)
{
	struct world other = *w;
	char command[1200];
	char *live, *restored;

	snprintf(other.root, sizeof(other.root), "%.250s/copy%d", w->dir, w->scripts++);
	/* Temporary files come and go meanwhile. */
	snprintf(command, sizeof(command),
		 "for i in 1 2 3 4 5; do rm -rf '%s'; cp -a '%s' '%s' "
		 "2>/dev/null && exit 0; done; exit 1",
		 other.root, w->root, other.root);
	assert_int_equal(system(command), 0);
	live = dump(w->core);
	other.loop = os_loop_new(NULL);
	open_core(&other);
	for (int i = 0; one_waits(w->core) && !one_waits(other.core) && i < 6000; i++)
		os_loop_step(other.loop, 5); /* it asks again */
	restored = dump(other.core);
	core_close(other.core);
	os_loop_free(other.loop);
	assert_same(live, restored);
	free(live);
	free(restored);
}

/* ---- the moments */

#define FIND CALL("search_codebase", "{\"pattern\":\"parse\"}")
#define LATE HELD("late")
#define ASKS                                                                                       \
	CALL("ask_person", "{\"question\":\"Which?\",\"choices\":[\"a\",\"b\"],\"default\":"       \
			   "\"a\"}")

static bool all_called(struct core *c)
{
	if (list_empty(&c->sup.live))
		return false;
	LIST_EACH (&c->sup.live, node, tmp) {
		struct run *r = LIST_ENTRY(node, struct run, node);

		if (r->call.state != CALL_DELAY && r->agent.state != AGENT_QUEUED)
			return false;
	}
	return true;
}

static struct op_spawn asked(struct world *w, const char *model)
{
	struct op_spawn s = A_RUN(.task = "find parse_header", .context = "some context",
				  .rationale = "it is needed", .model = model, .cwd = w->src,
				  .extended_thinking = -1);

	s.timeout_ms = 90000;
	s.max_tokens = 50000;
	return s;
}

/* And until it is `there`, what lives and what is restored are the same. */
static void same_when(struct world *w, const struct op_spawn *s, bool (*there)(struct core *c))
{
	char run[24];

	spawn(w, s, run);
	step_until(w, there);
	compare(w);
}

static bool ava_called(struct core *c)
{
	const struct talk *t = LIST_FIRST(&c->talks, struct talk, node);

	return t && t->run.call.state == CALL_DELAY && outbox_empty(&t->run.rec.outbox);
}

/* Ava's, the second of its conversation. */
TEST_OF(a_turn, struct world *w)
{
	const char *id = begin(w, script(w, READ SAY("One.") FIND READ LATE));

	tell(w, id, "look");
	assert_int_equal(say(w, id, "again"), 1);
	step_until(w, ava_called);
	compare(w);
}

static void chosen(struct verb_reply *r, int status, const struct buf *json,
		   const struct ava_error *err)
{
	assert_int_equal(status, 200);
	r->done = NULL;
}

/* Of another model than the turn before: what a service told of that one's window is forgotten. */
static void of_another_model(struct world *w, bool again)
{
	const char *id = begin(w, script(w, READ SAY("One.") READ LATE));
	struct talk *t = session_find(w->core, id, NULL)->talk;
	json_t *body = json_pack("{s:s}", "model", script(w, READ SAY("One.") READ LATE));
	const struct caller caller = {.user = "ben", .channel = "cli", .trust = CALLER_OWNER};
	struct verb_reply reply = {.done = chosen};

	t->run.agent.at.window = t->run.agent.at.output_max = 900000;
	tell(w, id, "look");
	assert_int_equal(t->run.agent.at.window, 900000);
	verbs_call(w->core, verbs_named("POST", "/api/v1/sessions/{id}/model"), &caller, id, body,
		   &reply);
	while (reply.done)
		os_loop_step(w->loop, 5);
	json_decref(body);
	if (again)
		reopen(w);
	assert_int_equal(say(w, id, "again"), 1);
	step_until(w, ava_called);
	assert_int_equal(LIST_FIRST(&w->core->talks, struct talk, node)->run.agent.at.window, 0);
	compare(w);
}

TEST_OF(a_turn_of_another_model, struct world *w)
{
	of_another_model(w, false);
}

TEST_OF(a_turn_of_another_model_after_a_stop, struct world *w)
{
	of_another_model(w, true);
}

TEST_OF(a_question, struct world *w)
{
	struct op_spawn s = asked(w, script(w, READ READ FIND ASKS));

	s.on_limit = "ask";
	s.request_id = "r-1";
	same_when(w, &s, one_waits);
}

/* Long runs, of which most positions have what changed alone, cut at several lengths: calls that
 * are new and calls that are not, and outputs that are kept. */
TEST_OF(long_runs, struct world *w)
{
	static const unsigned lengths[] = {9, 14, 15, 33, 70};
	char path[400];
	TEST_BUF(text, 1u << 20);

	for (int i = 0; i < 400; i++) {
		snprintf(path, sizeof(path), "%.150s/%0220d", w->src, i);
		unit_write(path, "", 0);
	}
	for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
		struct op_spawn s;

		buf_reset(&text);
		for (unsigned i = 0; i < lengths[k]; i++)
			buf_addf(&text,
				 i % 10 == 7 ? CALL("list_files", "{\"max_results\":4%02u}")
					     : CALL("search_codebase", "{\"pattern\":\"%u\"}"),
				 i % 10 == 7 ? i / 10 : i % 29);
		buf_adds(&text, ASKS);
		s = asked(w, script(w, text.data));
		s.max_tokens = 900000000;
		s.max_iterations = 100;
		same_when(w, &s, one_waits);
		supervisor_cancel(LIST_FIRST(&w->core->sup.live, struct run, node), "ben", "cli");
		while (!list_empty(&w->core->sup.live))
			os_loop_step(w->loop, 5);
	}
}

TEST_OF(an_approval, struct world *w)
{
	static const char *const before[] = {"read_file"};
	struct op_spawn s = asked(w, script(w, FIND READ));

	s.ask_before = before;
	s.nask_before = 1;
	same_when(w, &s, one_waits);
}

TEST_OF(a_call, struct world *w)
{
	struct op_spawn s = asked(w, script(w, READ FIND LATE));

	same_when(w, &s, all_called);
}

TEST_OF(a_slot, struct world *w)
{
	struct op_spawn s = asked(w, script(w, LATE));
	char run[24];

	w->settings.runs_max = 1;
	reopen(w);
	spawn(w, &s, run);
	same_when(w, &s, all_called);
}

static void steered(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	*(int *)user = 1;
}

TEST_OF(words_to_a_run, struct world *w)
{
	struct op_spawn s = asked(w, script(w, READ LATE));
	struct op_steer o = {.text = "look at parser.c first", .by = "ben"};
	char run[24];
	int done = 0;

	spawn(w, &s, run);
	step_until(w, all_called);
	o.run = run;
	ops_steer(w->core, &o, steered, &done);
	until(w, &done);
	step_until(w, all_called);
	compare(w);
}

static void proposed(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		     void *user)
{
	if (rv != 0)
		fail_msg("%s", err->text);
	*(int *)user = 1;
}

/* Side by side and one after another, in a conversation with two more quotes, of which one
 * is changed and one rejected. */
TEST_OF(a_conversation, struct world *w)
{
	for (int i = 0; i < 2; i++) {
		const char *id = begin(w, script(w, CALLS(SPAWN("find one") "," SPAWN("find two"))
							    SAY("Two.") SAY("Yes.") SAY("Yes.")
								    SAY("Yes.")));
		struct op_spawn runs[2] = {asked(w, script(w, READ LATE)),
					   asked(w, script(w, FIND READ LATE))};
		struct op_group g = {.runs = runs,
				     .nruns = 2,
				     .max_cost_microusd = 300000,
				     .timeout_ms = 500000,
				     .chain = i == 1,
				     .share = i == 0,
				     .session_id = id,
				     .user_id = "ben",
				     .origin = "test",
				     .cwd = w->src};
		int done = 0;

		tell(w, id, "more");
		compare(w);
		ops_propose_group(w->core, &g, proposed, &done);
		until(w, &done);
		done = 0;
		ops_confirm(w->core, newest_pending(w), "yes", NULL, "ben", "terminal", proposed,
			    &done);
		until(w, &done);
		step_until(w, all_called);
		compare(w);
		tell(w, id, "yes to the second with at most 2 minutes, but use quick");
		tell(w, id, "the second, at most 1 minute");
		compare(w);
		tell(w, id, "no to the first");
		compare(w);
		tell(w, id, "no to all");
	}
}

UNIT_GROUP(.before = set_up, .after = tear_down);
