/* What passed between a run and people before a stop, from its Waiting and
 * Steering events. A question that is open waits on, with the time it had left;
 * an answer that was acknowledged counts, also when its call has no result yet;
 * a message that was not read is read with the next results. A yes that may have
 * been used already is not used again: its call is told as interrupted, unless
 * its tool is repeatable. What can fail: memory. */
#include <stdio.h>
#include <string.h>

#include <ava.h>
#include "agent/ask.h"
#include "codec/json.h"
#include "subagent/carry.h"
#include "subagent/person.h"
#include "subagent/record.h"
#include "subagent/run.h"

/* 0: it is still open. */
static bool how_of(const char *state, enum agent_asked *how)
{
	*how = strcmp(state, "answered") == 0  ? ASKED_ANSWERED
	       : strcmp(state, "refused") == 0 ? ASKED_REFUSED
					       : ASKED_EXPIRED;
	return strcmp(state, "asked") != 0;
}

int carry_waiting(struct carry *c, const json_t *content)
{
	const char *id = json_str(content, "callId"), *text;
	enum agent_asked how;
	int rv = 0;

	if (!how_of(json_str(content, "state"), &how))
		return person_restore_question(c->run, content);
	person_forget_question(c->run);
	text = json_get_str(content, how == ASKED_EXPIRED ? "default" : "answer");
	for (unsigned i = 0; i < c->ncalls; i++) {
		struct carried_call *k = &c->calls[i];

		if (strcmp(k->id, id) != 0 || k->answered)
			continue;
		k->decided = true;
		k->how = how;
		k->approval = strcmp(json_str(content, "kind"), "approval") == 0;
		k->has_text = text != NULL;
		buf_reset(&k->output);
		rv = buf_adds(&k->output, text ? text : "");
	}
	return rv;
}

/* Whoever says it again with the same request id hears the same again. */
static int take_request(struct carry *c, const json_t *content)
{
	struct person_heard was = {.steer_id = ""};

	snprintf(was.steer_id, sizeof(was.steer_id), "%s", json_str(content, "steerId"));
	snprintf(was.call_id, sizeof(was.call_id), "%s", json_str(content, "callId"));
	return person_restore_heard(c->run, json_str(content, "requestId"), &was);
}

int carry_steering(struct carry *c, const json_t *content)
{
	const char *id = json_str(content, "steerId"), *outcome = json_str(content, "outcome");

	if (take_request(c, content) != 0)
		return AVA_ENOMEM;
	if (!id[0]) /* an answer: its Waiting says so */
		return 0;
	if (strcmp(outcome, "queued") == 0)
		return person_restore_said(c->run, id, json_str(content, "text"),
					   json_str(content, "by"));
	person_forget_said(c->run, id);
	if (strcmp(outcome, "delivered") == 0)
		c->run->notices |= RECORD_STEERED;
	return 0;
}

int carry_decided(const struct carried_call *k, struct turn *t, struct turn_call *to)
{
	const char *text = arena_copy(&t->mem, k->output.data ? k->output.data : "", k->output.len);
	struct ask_result r;

	if (!text)
		return AVA_ENOMEM;
	if (k->approval && k->how == ASKED_ANSWERED) {
		to->approved = true;
		return 0;
	}
	r = ask_result(&t->mem, k->approval, k->how, k->has_text ? text : NULL);
	to->answered = true;
	to->success = r.success;
	to->error_class = r.error_class;
	to->output = r.output;
	to->output_len = strlen(r.output);
	to->full_bytes = (int64_t)to->output_len;
	return 0;
}
