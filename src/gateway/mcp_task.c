/* See mcp_task.h.
 *
 * Happy path: the seal is ours, the run is looked at, and an ended one is asked for its
 * result. A question of the run is a form whose answer is a person's. What can fail: ids that are
 * none of ours; a client that did not declare tasks; an answer that is no answer to the question.
 */
#include "gateway/mcp_task.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/words.h"
#include "gateway/mcp_call.h"
#include "subagent/run.h"

#define POLL_MS 1000

static void task_seal(const struct mcp *m, const char *run, char out[MCP_SEAL_LEN + 1])
{
	char text[64];

	snprintf(text, sizeof(text), "task %.23s", run);
	mcp_secret_seal(&m->secret, text, out);
}

json_t *mcp_task(const struct mcp_call *c, const struct op_status *s)
{
	char seal[MCP_SEAL_LEN + 1], id[64], began[CLOCK_ISO_LEN + 1], changed[CLOCK_ISO_LEN + 1];
	const char *doing = s && s->activity && *s->activity ? s->activity
			    : s ? words_status(ava_status_name(s->status))
				: WORDS_STARTING;
	const char *word = s && s->ended_ms ? s->status == AVA_CANCELLED ? "cancelled" : "completed"
			   : s && s->asks   ? "input_required"
					    : "working";
	int64_t now = clock_wall_ms();

	clock_iso(s && s->started_ms ? s->started_ms : now, began);
	clock_iso(s && s->ended_ms ? s->ended_ms : now, changed);
	if (!c->task) {
		task_seal(c->mcp, c->run, seal);
		snprintf(id, sizeof(id), "%s-%s", c->run, seal);
	}
	return json_pack("{s:s,s:s,s:o,s:s,s:s,s:n,s:i}", "taskId", c->task ? c->task : id,
			 "status", word, "statusMessage", mcp_shown(doing), "createdAt", began,
			 "lastUpdatedAt", changed, "ttlMs", "pollIntervalMs", POLL_MS);
}

/* A run of ours is named. false: it has been refused. */
static bool task_of(struct mcp_call *c)
{
	const char *id = mcp_call_param(c, "taskId"), *dash = id ? strrchr(id, '-') : NULL;
	struct ava_error err = {0};
	char text[64];

	if (!c->tasks) {
		mcp_call_refuse(c, MCP_CAPABILITY, "the client did not declare tasks",
				json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions",
					  MCP_TASKS));
		return false;
	}
	if (mcp_secret_have(&c->mcp->secret, false, &err) != 0) {
		mcp_call_refuse(c, RPC_INTERNAL, err.text, NULL);
		return false;
	}
	if (dash && (size_t)(dash - id) < sizeof(c->run)) {
		snprintf(c->run, sizeof(c->run), "%.*s", (int)(dash - id), id);
		snprintf(text, sizeof(text), "task %s", c->run);
		if (id_is_run(c->run) && mcp_secret_is_seal(&c->mcp->secret, text, dash + 1))
			c->task = id;
		if (c->task)
			return true;
	}
	mcp_call_refuse(c, RPC_PARAMS, "there is no such task", NULL);
	return false;
}

static void task_ended(struct mcp_call *c, json_t *result, const struct ava_error *err)
{
	bool failed = strcmp(json_str(result, "status"), ava_status_name(AVA_ERROR)) == 0;

	if (err) {
		mcp_call_refuse(c, RPC_INTERNAL, err->text, NULL);
		return;
	}
	json_object_set_new(c->kept, "result", mcp_call_told(json_incref(result), failed));
	mcp_call_answer(c, json_incref(c->kept));
}

static void task_looked(struct mcp_call *c, const struct op_status *s, const struct ava_error *err)
{
	if (err) {
		mcp_call_refuse(c, err->code == AVA_ENOENT ? RPC_PARAMS : RPC_INTERNAL, err->text,
				NULL);
		return;
	}
	c->kept = mcp_task(c, s);
	if (s->ended_ms && s->status != AVA_CANCELLED) {
		mcp_call_ask_of(c, "GET", "/api/v1/runs/{id}/result", c->run, NULL, false,
				task_ended);
		return;
	}
	if (!s->ended_ms && s->asks)
		json_object_set_new(
			c->kept, "inputRequests",
			mcp_form_request(s->asks->call_id, mcp_form_of_question(s->asks)));
	mcp_call_answer(c, json_incref(c->kept));
}

void mcp_task_get(struct mcp_call *c)
{
	if (task_of(c))
		mcp_call_look(c, task_looked);
}

/* What came too late changes nothing, and is no mistake of the client. */
static void task_told(struct mcp_call *c, json_t *answer, const struct ava_error *err)
{
	if (!err || err->code == AVA_EEXIST || err->code == AVA_ENOENT)
		mcp_call_answer(c, json_object());
	else
		mcp_call_refuse(c, err->code == AVA_EINVAL ? RPC_PARAMS : RPC_INTERNAL, err->text,
				NULL);
}

static void task_asks(struct mcp_call *c, const struct op_status *s, const struct ava_error *err)
{
	const char *call = s && s->asks ? s->asks->call_id : "", *text;

	text = mcp_form_says(json_object_get(json_object_get(c->m.params, "inputResponses"), call),
			     s && s->asks && s->asks->approval);
	if (err)
		task_told(c, NULL, err);
	else if (!text)
		mcp_call_answer(c, json_object());
	else
		mcp_call_ask_of(c, "POST", "/api/v1/runs/{id}/steer", c->run,
				json_pack("{s:s,s:s,s:o}", "text", text, "call_id", call,
					  "request_id", json_sprintf("mcp %s %s", c->run, call)),
				true, task_told);
}

void mcp_task_update(struct mcp_call *c)
{
	if (task_of(c))
		mcp_call_look(c, task_asks);
}

void mcp_task_cancel(struct mcp_call *c)
{
	if (task_of(c))
		mcp_call_ask_of(c, "POST", "/api/v1/runs/{id}/cancel", c->run, NULL, false,
				task_told);
}
