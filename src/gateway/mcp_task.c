/* See mcp_task.h.
 *
 * Happy path: the seal is ours, the verb says how the run is, and an ended one is asked for its
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

#define POLL_MS 1000

static void task_seal(const struct mcp *m, const char *run, char out[MCP_SEAL_LEN + 1])
{
	char text[64];

	snprintf(text, sizeof(text), "task %.23s", run);
	mcp_secret_seal(&m->secret, text, out);
}

static bool is_over(const json_t *status)
{
	return json_str(status, "ended_at")[0] != '\0';
}

static const char *task_word(const json_t *status)
{
	const char *word = json_str(status, "status");

	if (!is_over(status))
		return json_object_get(status, "waiting_for") ? "input_required" : "working";
	return strcmp(word, ava_status_name(AVA_CANCELLED)) == 0 ? "cancelled" : "completed";
}

json_t *mcp_task(const struct mcp_call *c, const json_t *status)
{
	const char *started = json_str(status, "started_at"), *ended = json_str(status, "ended_at"),
		   *doing = json_str(status, "current_activity");
	char seal[MCP_SEAL_LEN + 1], id[64], now[CLOCK_ISO_LEN + 1];

	clock_iso(clock_wall_ms(), now);
	if (!c->task) {
		task_seal(c->mcp, c->run, seal);
		snprintf(id, sizeof(id), "%s-%s", c->run, seal);
	}
	if (!*doing)
		doing = status ? words_status(json_str(status, "status")) : WORDS_STARTING;
	return json_pack("{s:s,s:s,s:o,s:s,s:s,s:n,s:i}", "taskId", c->task ? c->task : id,
			 "status", status ? task_word(status) : "working", "statusMessage",
			 mcp_shown(doing), "createdAt", *started ? started : now, "lastUpdatedAt",
			 *ended ? ended : now, "ttlMs", "pollIntervalMs", POLL_MS);
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
	bool failed = strcmp(json_str(c->kept, "status"), ava_status_name(AVA_ERROR)) == 0;
	json_t *task;

	if (err) {
		mcp_call_refuse(c, RPC_INTERNAL, err->text, NULL);
		return;
	}
	task = mcp_task(c, c->kept);
	json_object_set_new(task, "result", mcp_call_told(json_incref(result), failed));
	mcp_call_answer(c, task);
}

static void task_looked(struct mcp_call *c, json_t *status, const struct ava_error *err)
{
	const json_t *asks = json_object_get(status, "waiting_for");
	json_t *task;

	if (err) {
		mcp_call_refuse(c, err->code == AVA_ENOENT ? RPC_PARAMS : RPC_INTERNAL, err->text,
				NULL);
	} else if (strcmp(task_word(status), "completed") == 0) {
		c->kept = json_incref(status);
		mcp_call_ask_of(c, "GET", "/api/v1/runs/{id}/result", c->run, NULL, false,
				task_ended);
	} else {
		task = mcp_task(c, status);
		if (!is_over(status) && asks)
			json_object_set_new(task, "inputRequests",
					    mcp_form_request(json_str(asks, "call_id"),
							     mcp_form_of_question(asks)));
		mcp_call_answer(c, task);
	}
}

void mcp_task_get(struct mcp_call *c)
{
	if (task_of(c))
		mcp_call_ask_of(c, "GET", "/api/v1/runs/{id}", c->run, NULL, false, task_looked);
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

static void task_asks(struct mcp_call *c, json_t *status, const struct ava_error *err)
{
	const json_t *asks = json_object_get(status, "waiting_for");
	const char *call = json_str(asks, "call_id"), *text;
	bool approval = strcmp(json_str(asks, "kind"), "approval") == 0;

	text = mcp_form_says(json_object_get(json_object_get(c->m.params, "inputResponses"), call),
			     approval);
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
		mcp_call_ask_of(c, "GET", "/api/v1/runs/{id}", c->run, NULL, false, task_asks);
}

void mcp_task_cancel(struct mcp_call *c)
{
	if (task_of(c))
		mcp_call_ask_of(c, "POST", "/api/v1/runs/{id}/cancel", c->run, NULL, false,
				task_told);
}
