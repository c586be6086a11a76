/* From a proposal to a run, and the run as a task (mcp_call.h).
 *
 * Happy path: a client of 2026-07-28 gets the form as the answer of its call and calls again with
 * what was filled in and a state that is sealed, for that call and that proposal, until it expires;
 * one of before is asked on a stream that answers its call, and its response comes as a message of
 * its own: such calls stand in a list meanwhile. The verb that confirms has the last word, and what
 * raises a limit is quoted, and shown, again. A model cannot confirm: a yes is only what a form
 * brings back. Then the run is a task (io.modelcontextprotocol/tasks), whose id is that of the run
 * with our seal, so that it cannot be guessed and holds after a restart of client and daemon; a
 * question of the run is a form as well.
 *
 * What can fail: a state that is not ours, of another call, too old or of a form that was closed; a
 * form that nobody answers: its proposal expires, and that is the answer; a refusal, or a program
 * that refuses unasked: the proposal waits on for the person; ids that are none of ours; a client
 * that did not declare tasks; an answer that is no answer to the question. */
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/util.h"
#include "base/words.h"
#include "gateway/mcp_call.h"
#include "net/http_server.h"
#include "os/loop.h"
#include "subagent/run.h"

/* ---- a proposal, its form, its answer */

#define POLL_MS    1000
#define FRONT_MAX  160
#define SEALED_MAX 320

/* A form's state is good for this call, with these arguments, and this quote as shown only. */
static void what_is_sealed(const struct mcp_call *c, const char *front, char out[SEALED_MAX])
{
	char *args = json_dumps(json_object_get(c->m.params, "arguments"),
				JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
	char hash[HASH_HEX_LEN + 1];

	hash_sha256_hex(args ? args : "", args ? strlen(args) : 0, hash);
	free(args);
	snprintf(out, SEALED_MAX, "form %s %s %s", c->tool->name, hash, front);
}

static int64_t until_ms(const json_t *ask)
{
	return json_time(json_object_get(ask, "until"));
}

static void ask_by_answer(struct mcp_call *c, const json_t *ask, json_t *form)
{
	const char *id = json_str(ask, "id");
	char front[FRONT_MAX], state[sizeof(front) + MCP_SEAL_LEN + 1], seal[MCP_SEAL_LEN + 1];
	char sealed[SEALED_MAX];
	unsigned char once[8];
	char hex[2 * sizeof(once) + 1];

	id_random(once, sizeof(once));
	hash_hex(once, sizeof(once), hex);
	snprintf(front, sizeof(front), "%.23s.%lld.%.64s.%s", id, (long long)until_ms(ask),
		 json_str(ask, "hash"), hex);
	what_is_sealed(c, front, sealed);
	mcp_secret_seal(&c->mcp->secret, sealed, seal);
	snprintf(state, sizeof(state), "%s.%s", front, seal);
	mcp_call_answer(c,
			json_pack("{s:s,s:o,s:s}", "resultType", "input_required", "inputRequests",
				  mcp_form_request(id, form), "requestState", state));
}

/* Tell the proposal's present state when its form brought no yes: the person may have answered
 * elsewhere meanwhile. */
static void tell_as_it_is(struct mcp_call *c, const char *proposal)
{
	c->forms = false;
	mcp_call_ask(c, "GET", "/api/v1/proposals/{id}", proposal, NULL, false, mcp_quote_told);
}

static void form_expired(void *user)
{
	struct mcp_call *c = user;

	c->asked_id = 0;
	tell_as_it_is(c, c->proposal);
}

static void ask_on_stream(struct mcp_call *c, const json_t *ask, json_t *form)
{
	uint64_t random;

	if (!c->expiry)
		c->expiry = os_timer_new(c->mcp->core->loop, form_expired, c);
	if (!c->expiry) {
		json_decref(form);
		mcp_call_tell_error(c, "memory is out");
		return;
	}
	if (!c->stream && !mcp_stream_begin(c)) {
		json_decref(form);
		return;
	}
	id_random(&random, sizeof(random));
	c->asked_id = 1 + (int64_t)(random >> 12); /* JavaScript keeps 53 bits */
	snprintf(c->proposal, sizeof(c->proposal), "%s", json_str(ask, "id"));
	snprintf(c->hash, sizeof(c->hash), "%s", json_str(ask, "hash"));
	mcp_stream_write(c, rpc_request(c->asked_id, "elicitation/create", form));
	os_timer_set(c->expiry, until_ms(ask) - clock_wall_ms());
}

/* Put a quote to the person. */
static void show_ask(struct mcp_call *c, json_t *ask, const struct ava_error *err)
{
	char id[sizeof(c->proposal)];
	json_t *form;

	if (err) {
		mcp_call_tell_error(c, err->text);
		return;
	}
	if (strcmp(json_str(ask, "state"), "open") != 0) { /* answered elsewhere meanwhile */
		snprintf(id, sizeof(id), "%s", json_str(ask, "id"));
		tell_as_it_is(c, id);
		return;
	}
	form = mcp_form_of_ask(ask);
	if (!form)
		mcp_call_tell_error(c, "the form is too large, or memory is out");
	else if (c->modern)
		ask_by_answer(c, ask, form);
	else
		ask_on_stream(c, ask, form);
}

static void task_looked(struct mcp_call *c, const struct op_status *s, const struct ava_error *err);

void mcp_quote_told(struct mcp_call *c, json_t *p, const struct ava_error *err)
{
	const char *state = json_str(p, "state");
	char next[400];
	int n;

	if (err) {
		mcp_call_tell_error(c, err->text);
	} else if (strcmp(state, "confirmed") == 0) {
		snprintf(c->run, sizeof(c->run), "%s", json_str(p, "subagent_id"));
		if (c->tasks)
			mcp_call_look(c, task_looked);
		else
			mcp_call_tell(c,
				      mcp_tell_proposal(p, "It works now. ava_wait, ava_status and "
							   "ava_result take subagent_id."));
	} else if (strcmp(state, "pending") != 0) {
		mcp_call_tell(c, mcp_tell_proposal(p, NULL));
	} else if (c->forms && (c->modern || c->stream || mcp_stream_has_place(c))) {
		mcp_call_ask(c, "GET", "/api/v1/asks/{id}", json_str(p, "proposal_id"), NULL, false,
			     show_ask);
	} else {
		n = snprintf(next, sizeof(next), WORDS_NOT_STARTED(json_str(p, "proposal_id")));
		if (c->forms)
			snprintf(next + n, sizeof(next) - (size_t)n,
				 " No form was shown: a client has at most %d open, all have %d.",
				 MCP_STREAMS_OWN, MCP_STREAMS_MAX);
		mcp_call_tell(c, mcp_tell_proposal(p, next));
	}
}

/* Tell what became of the answer; another quote in its place, or what a stale answer was refused
 * for, is shown. */
static void quote_answered(struct mcp_call *c, json_t *ask, const struct ava_error *err)
{
	json_t *now = json_object_get(ask, "ask");

	if (err)
		mcp_call_tell_error(c, err->text);
	else if (now || strcmp(json_str(ask, "state"), "open") == 0)
		show_ask(c, now ? now : ask, NULL);
	else
		mcp_call_ask(c, "GET", "/api/v1/proposals/{id}", json_str(ask, "id"), NULL, false,
			     mcp_quote_told);
}

/* Carry out a person's response to the form of the quote with that hash. */
static void form_answered(struct mcp_call *c, const char *proposal, const char *hash,
			  const json_t *response)
{
	bool accepts = strcmp(json_str(response, "action"), "accept") == 0;
	json_t *body = accepts ? mcp_form_confirms(json_object_get(response, "content")) : NULL;

	if (!accepts) {
		tell_as_it_is(c, proposal);
	} else if (body) {
		json_object_set_new(body, "hash", json_string(hash));
		mcp_call_ask(c, "POST", "/api/v1/asks/{id}", proposal, body, true, quote_answered);
	} else {
		mcp_call_tell_error(
			c, "the form came back without start, which is true or false, or with a "
			   "field that is not as it was asked for: nothing was started");
	}
}

/* Whether a form came back as closed already, or does so now: it is not good any more. A yes may
 * come again, when its answer was lost: the verb knows a proposal that was confirmed, and it is the
 * same run. */
static bool was_closed(struct mcp *m, const char *seal, const json_t *response)
{
	for (unsigned i = 0; i < MCP_CLOSED_MAX; i++)
		if (strcmp(m->closed[i], seal) == 0)
			return true;
	if (strcmp(json_str(response, "action"), "accept") != 0)
		snprintf(m->closed[m->nclosed++ % MCP_CLOSED_MAX], sizeof(m->closed[0]), "%s",
			 seal);
	return false;
}

void mcp_quote_returned(struct mcp_call *c, const char *state)
{
	char front[FRONT_MAX], sealed[SEALED_MAX], id[24], hash[HASH_HEX_LEN + 1];
	const char *dot = strrchr(state, '.');
	const json_t *response;
	long long until = 0;

	snprintf(front, sizeof(front), "%.*s", dot ? (int)MIN(dot - state, FRONT_MAX - 1) : 0,
		 state);
	what_is_sealed(c, front, sealed);
	if (!dot || !mcp_secret_is_seal(&c->mcp->secret, sealed, dot + 1) ||
	    sscanf(front, "%23[^.].%lld.%64[^.].", id, &until, hash) != 3) {
		mcp_call_refuse(c, RPC_PARAMS, "requestState was not given out for this call",
				NULL);
		return;
	}
	response = json_object_get(json_object_get(c->m.params, "inputResponses"), id);
	if (!json_is_object(response)) {
		mcp_call_ask(c, "GET", "/api/v1/proposals/{id}", id, NULL, false, mcp_quote_told);
	} else if (until <= clock_wall_ms() || was_closed(c->mcp, dot + 1, response)) {
		tell_as_it_is(c, id);
	} else {
		form_answered(c, id, hash, response);
	}
}

void mcp_quote_heard(struct mcp *m, const struct rpc *r, const char *session)
{
	bool answers = r->kind == RPC_RESPONSE;
	const json_t *id = json_object_get(r->params, "requestId");

	if (!answers && strcmp(r->method, "notifications/cancelled") != 0)
		return;
	LIST_EACH (&m->open, n, tmp) {
		struct mcp_call *c = LIST_ENTRY(n, struct mcp_call, node);

		if (c->asked_id == 0 || strcmp(session, c->session) != 0 ||
		    !(answers ? json_integer_value(r->id) == c->asked_id
			      : rpc_same_id(c->m.id, id)))
			continue;
		if (answers) {
			c->asked_id = 0;
			os_timer_stop(c->expiry);
			form_answered(c, c->proposal, c->hash, r->result);
		} else {
			http_stream_end(c->stream);
			mcp_call_free(c);
		}
		return;
	}
}

/* ---- tasks */

#define TASK_TEXT(run) "task %.23s", run /* the text that a task's id seals */

/* The task of c->run. */
static json_t *task_of_run(const struct mcp_call *c, const struct op_status *s)
{
	char text[64], seal[MCP_SEAL_LEN + 1], began[CLOCK_ISO_LEN + 1], changed[CLOCK_ISO_LEN + 1];
	const char *doing = s->activity && *s->activity ? s->activity
							: words_status(ava_status_name(s->status));
	const char *word = s->ended_ms ? s->status == AVA_CANCELLED ? "cancelled" : "completed"
			   : s->asks && s->status == AVA_WAITING ? "input_required"
								 : "working";

	snprintf(text, sizeof(text), TASK_TEXT(c->run));
	mcp_secret_seal(&c->mcp->secret, text, seal);
	clock_iso(s->spawned_ms, began);
	clock_iso(s->ended_ms ? s->ended_ms : clock_wall_ms(), changed);
	return json_pack("{s:s++,s:s,s:o,s:s,s:s,s:n,s:i}", "taskId", c->run, "-", seal, "status",
			 word, "statusMessage", json_shown(doing), "createdAt", began,
			 "lastUpdatedAt", changed, "ttlMs", "pollIntervalMs", POLL_MS);
}

/* A run of ours is named. false: it has been refused. */
static bool mcp_run_task_of(struct mcp_call *c)
{
	const char *id = json_str(c->m.params, "taskId"), *dash = strrchr(id, '-');
	char text[64];

	if (!c->tasks) {
		mcp_call_refuse(c, MCP_CAPABILITY, "the client did not declare tasks",
				json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions",
					  MCP_TASKS));
		return false;
	}
	if (dash && (size_t)(dash - id) < sizeof(c->run)) {
		snprintf(c->run, sizeof(c->run), "%.*s", (int)(dash - id), id);
		snprintf(text, sizeof(text), TASK_TEXT(c->run));
		if (id_is_run(c->run) && mcp_secret_is_seal(&c->mcp->secret, text, dash + 1))
			return true;
	}
	mcp_call_refuse(c, RPC_PARAMS, "there is no such task", NULL);
	return false;
}

bool mcp_run_failed(const json_t *run)
{
	const char *status = json_str(run, "status");

	return strcmp(status, ava_status_name(AVA_ERROR)) == 0 ||
	       strcmp(status, ava_status_name(AVA_NO_RESULT)) == 0 ||
	       strcmp(status, ava_status_name(AVA_UNPROVEN)) == 0;
}

static void task_ended(struct mcp_call *c, json_t *result, const struct ava_error *err)
{
	if (err) {
		mcp_call_fail(c, err);
		return;
	}
	json_object_set_new(c->kept, "result",
			    mcp_call_told(json_incref(result), mcp_run_failed(result)));
	mcp_call_answer(c, json_incref(c->kept));
}

static void task_asked(struct mcp_call *c, json_t *ask, const struct ava_error *err)
{
	if (!err)
		json_object_set_new(c->kept, "inputRequests",
				    mcp_form_request(json_str(ask, "id"), mcp_form_of_ask(ask)));
	mcp_call_answer(c, json_incref(c->kept));
}

static void task_looked(struct mcp_call *c, const struct op_status *s, const struct ava_error *err)
{
	json_t *task = err ? NULL : task_of_run(c, s);

	if (err) {
		mcp_call_fail(c, err);
	} else if (c->tool) { /* the call goes on as a task */
		json_object_set_new(task, "resultType", json_string("task"));
		mcp_call_answer(c, task);
	} else if (s->ended_ms && s->status != AVA_CANCELLED) {
		c->kept = task;
		mcp_call_ask(c, "GET", "/api/v1/runs/{id}/result", c->run, NULL, false, task_ended);
	} else if (!s->ended_ms && s->asks) {
		c->kept = task;
		mcp_call_ask(c, "GET", "/api/v1/asks/{id}", c->run, NULL, false, task_asked);
	} else {
		mcp_call_answer(c, task);
	}
}

void mcp_task_get(struct mcp_call *c)
{
	if (mcp_run_task_of(c))
		mcp_call_look(c, task_looked);
}

/* An answer or cancel that comes too late changes nothing, and is no error for the client. */
static void task_told(struct mcp_call *c, json_t *answer, const struct ava_error *err)
{
	if (!err || err->code == AVA_EEXIST || err->code == AVA_ENOENT)
		mcp_call_answer(c, json_object());
	else
		mcp_call_fail(c, err);
}

/* The response to the form of what the run asks now. */
static void task_answers(struct mcp_call *c, json_t *ask, const struct ava_error *err)
{
	const json_t *given = json_object_get(c->m.params, "inputResponses");
	const char *id = json_str(ask, "id");
	json_t *body = err ? NULL : mcp_form_says(ask, json_object_get(given, id));

	if (!body) {
		task_told(c, NULL, err);
		return;
	}
	json_object_set(body, "hash", json_object_get(ask, "hash"));
	json_object_set_new(body, "request_id", json_sprintf("mcp %s", id));
	mcp_call_ask(c, "POST", "/api/v1/asks/{id}", id, body, true, task_told);
}

void mcp_task_update(struct mcp_call *c)
{
	if (mcp_run_task_of(c))
		mcp_call_ask(c, "GET", "/api/v1/asks/{id}", c->run, NULL, false, task_answers);
}

void mcp_task_cancel(struct mcp_call *c)
{
	if (mcp_run_task_of(c))
		mcp_call_ask(c, "POST", "/api/v1/runs/{id}/cancel", c->run, NULL, false, task_told);
}
