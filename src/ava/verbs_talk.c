/* Verbs about proposals, conversations and what was delivered of them, over the calls of
 * ava/ops.h, ava/sessions.h and ava/delivery.h.
 *
 * Happy path: the arguments become the struct of the call, its callback writes the answer.
 * What can fail: what these calls refuse. */
#include <stdio.h>
#include <string.h>

#include "ava/answer.h"
#include "ava/delivery.h"
#include "ava/proposal.h"
#include "ava/sessions.h"
#include "ava/verbs.h"
#include "base/error.h"

#define SAY_MAX    (1u << 20)
#define ANSWER_MAX 8192 /* bytes of what a person answers */
#define BY_MAX     200  /* bytes of who said it */

/* ---- proposals */

static void write_proposal(struct jw *w, struct proposal *p, bool whole)
{
	const char *changes = proposal_settled(p) ? p->changes : p->instead;

	jw_object(w, NULL);
	jw_str(w, "proposal_id", p->id);
	jw_str(w, "state", proposal_state(p));
	if (whole) {
		verb_time(w, "created_at", p->created_ms);
		verb_time(w, "expires_at", p->expires_ms);
	}
	jw_str(w, "subagent_id", p->run);
	jw_str(w, "trace_id", proposal_trace(p));
	if (whole) {
		jw_raw(w, "quote", p->quote, strlen(p->quote));
		jw_str(w, "message", p->message);
		jw_raw(w, "config", p->config, strlen(p->config));
	}
	jw_str(w, "config_hash", p->hash);
	jw_str(w, "confirmed_hash", p->step == STEP_CONFIRMED ? p->confirmed_hash : "");
	jw_str(w, "changes", changes ? changes : "");
	if (whole) {
		jw_str(w, "replaces", p->replaces);
		jw_str(w, "replaced_by", p->step == STEP_REPLACED ? p->replaced_by : "");
		jw_str(w, "session_id", p->specs[0] ? p->specs[0]->session_id : "");
	}
	if (p->group_id[0])
		jw_str(w, "group_id", p->group_id);
	jw_end(w);
}

static void send_proposal(struct verb_reply *r, int status, struct proposal *p, bool whole)
{
	struct verb_answer a;

	verb_begin(&a, r, 0, NULL);
	write_proposal(&a.w, p, whole);
	verb_send(&a, status);
}

void verb_proposed(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		   void *user)
{
	if (rv == 0)
		send_proposal(user, repeated ? 200 : 201, p, true);
	else
		verb_fail(user, rv, err);
}

/* Short, unless it was quoted again. */
static void answered(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		     void *user)
{
	if (rv == 0)
		send_proposal(user, 200, p, !proposal_settled(p));
	else
		verb_fail(user, rv, err);
}

static void one_proposal(struct proposal *p, void *user)
{
	write_proposal(user, p, true);
}

static const struct arg proposals_args[] = {{"all", ARG_FLAG}, {NULL}};

static void verb_proposals(struct verb_call *v)
{
	struct verb_answer a;
	bool all = false;

	if (!verb_begin_args(&a, v, &all))
		return;
	jw_object(&a.w, NULL);
	jw_array(&a.w, "proposals");
	ops_proposals(v->core, all, one_proposal, &a.w);
	verb_send(&a, 200);
}

static void verb_proposal(struct verb_call *v)
{
	struct ava_error err = {0};
	struct proposal *p = proposal_find(v->core, v->id, &err);

	if (!verb_args(v, NULL))
		return;
	if (p)
		send_proposal(v->reply, 200, p, true);
	else
		verb_fail(v->reply, err.code, &err);
}

struct change_args {
	struct change change;
	const char *const *without;
	size_t nwithout;
};

#define CHANGE_ARG(name, kind, field, size)                                                        \
	{                                                                                          \
		name, kind, offsetof(struct change_args, change.field), 0, size                    \
	}
static const struct arg change_args[] = {
	CHANGE_ARG("role", ARG_WORD, role, sizeof(((struct change *)0)->role)),
	CHANGE_ARG("model", ARG_WORD, model, sizeof(((struct change *)0)->model)),
	CHANGE_ARG("preset", ARG_WORD, preset, sizeof(((struct change *)0)->preset)),
	CHANGE_ARG("timeout", ARG_MS, time_ms, 0),
	CHANGE_ARG("max_cost_cents", ARG_CENTS, cost_microusd, 0),
	CHANGE_ARG("max_tokens", ARG_COUNT, tokens, 0),
	CHANGE_ARG("max_iterations", ARG_COUNT, iterations, 0),
	CHANGE_ARG("extended_thinking", ARG_CHOICE, thinking, 0),
	{"without", ARG_TEXTS, offsetof(struct change_args, without),
	 .at_n = offsetof(struct change_args, nwithout)},
	{NULL},
};

static int read_change(struct verb_call *v, const json_t *set, struct change *out,
		       struct ava_error *err)
{
	struct change_args a = {.change = CHANGE_NONE};
	struct change *c = &a.change;
	int rv = json_is_object(set)
			 ? args_read(change_args, set, &a, &v->mem, err)
			 : err_set(err, AVA_EINVAL, "set must be an object of what to change");

	if (rv == 0 && a.nwithout > CHANGE_WITHOUT_MAX)
		rv = err_set(err, AVA_EINVAL, "without must be a list of at most %d tools",
			     CHANGE_WITHOUT_MAX);
	for (size_t i = 0; rv == 0 && i < a.nwithout; i++) {
		const char *tool = a.without[i];

		if (!*tool || strlen(tool) >= sizeof(c->without[0]))
			rv = err_set(err, AVA_EINVAL, "without has what is no name of a tool");
		else
			memcpy(c->without[c->nwithout++], tool, strlen(tool) + 1);
	}
	*out = *c;
	return rv;
}

struct answer_args {
	const char *answer, *by;
	const json_t *set;
};
static const struct arg confirm_args[] = {
	{"answer", ARG_SAID, offsetof(struct answer_args, answer), .most = ANSWER_MAX},
	{"by", ARG_SAID, offsetof(struct answer_args, by), .most = BY_MAX},
	{"set", ARG_ANY, offsetof(struct answer_args, set)},
	{NULL},
};
static const struct arg reject_args[] = {
	{"reason", ARG_SAID, offsetof(struct answer_args, answer), .most = ANSWER_MAX},
	{"by", ARG_SAID, offsetof(struct answer_args, by), .most = BY_MAX},
	{NULL},
};

static void verb_confirm(struct verb_call *v)
{
	struct answer_args a = {.by = v->caller->user};
	struct change set = CHANGE_NONE;
	struct ava_error err = {0};

	if (!verb_args(v, &a))
		return;
	if (a.set && read_change(v, a.set, &set, &err) != 0)
		verb_fail(v->reply, err.code, &err);
	else
		ops_confirm(v->core, v->id, a.answer, &set, a.by, answered, v->reply);
}

static void verb_reject(struct verb_call *v)
{
	struct answer_args a = {.by = v->caller->user};

	if (verb_args(v, &a))
		ops_reject(v->core, v->id, a.answer, a.by, answered, v->reply);
}

/* ---- conversations */

static void one_session(const struct op_session *s, void *user)
{
	struct jw *w = user;

	jw_object(w, NULL);
	jw_str(w, "session_id", s->id);
	jw_str(w, "title", s->title);
	jw_str(w, "cwd", s->cwd);
	jw_str(w, "user_id", s->user_id);
	jw_str(w, "model", s->model);
	jw_str(w, "status", s->busy ? "busy" : "idle");
	verb_time(w, "created_at", s->created_ms);
	verb_time(w, "updated_at", s->updated_ms);
	jw_int(w, "live_runs", s->live_runs);
	jw_int(w, "waiting", s->waiting);
	jw_int(w, "tokens_used", s->tokens);
	verb_cost(w, "cost_cents", s->cost_microusd);
	jw_end(w);
}

static void session_begun(int rv, const struct op_session *s, const struct ava_error *err,
			  void *user)
{
	struct verb_answer a;

	if (!verb_begin(&a, user, rv, err))
		return;
	one_session(s, &a.w);
	verb_send(&a, 201);
}

static const struct arg session_args[] = {
	{"cwd", ARG_SAID, offsetof(struct op_session_new, cwd), .most = 4095},
	{"model", ARG_SAID, offsetof(struct op_session_new, model), .most = 263},
	{NULL},
};

static void verb_session_new(struct verb_call *v)
{
	struct op_session_new n = {.user_id = v->caller->user};

	if (verb_args(v, &n))
		ops_session_new(v->core, &n, session_begun, v->reply);
}

static const struct arg sessions_args[] = {{"limit", ARG_COUNT, 0, 1, 100000}, {NULL}};

static void verb_sessions(struct verb_call *v)
{
	struct verb_answer a;
	int64_t limit = 100;

	if (!verb_begin_args(&a, v, &limit))
		return;
	jw_object(&a.w, NULL);
	jw_array(&a.w, "sessions");
	ops_sessions(v->core, (size_t)limit, one_session, &a.w);
	verb_send(&a, 200);
}

static void send_session(struct verb_call *v)
{
	struct ava_error err = {0};
	struct verb_answer a;

	verb_begin(&a, v->reply, 0, NULL);
	if (ops_session(v->core, v->id, one_session, &a.w, &err) == 0)
		verb_send(&a, 200);
	else
		verb_drop(&a, &err);
}

static void verb_session(struct verb_call *v)
{
	if (verb_args(v, NULL))
		send_session(v);
}

static void verb_session_stop(struct verb_call *v)
{
	struct ava_error err = {0};

	if (!verb_args(v, NULL))
		return;
	if (ops_session_stop(v->core, v->id, &err) == 0)
		send_session(v);
	else
		verb_fail(v->reply, err.code, &err);
}

static void one_json(const char *line, size_t len, void *user)
{
	jw_raw(user, NULL, line, len);
}

static void verb_messages(struct verb_call *v)
{
	struct ava_error err = {0};
	struct verb_answer a;
	int rv;

	if (!verb_begin_args(&a, v, NULL))
		return;
	jw_object(&a.w, NULL);
	jw_array(&a.w, "entries");
	rv = ops_session_entries(v->core, v->id, one_json, &a.w, &err);
	jw_end(&a.w);
	jw_end(&a.w);
	if (rv == 0)
		verb_send(&a, 200);
	else
		verb_drop(&a, &err);
}

static void said(int rv, const char *entry, const struct ava_error *err, void *user)
{
	struct verb_answer a;

	if (!verb_begin(&a, user, rv, err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "entry", entry);
	verb_send(&a, 202);
}

static const struct arg say_args[] = {
	{"text", ARG_SAID, offsetof(struct op_say, text), .most = SAY_MAX},
	{"request_id", ARG_SAID, offsetof(struct op_say, request_id), .most = 200},
	{NULL},
};

static void verb_say(struct verb_call *v)
{
	struct op_say say = {.text = "", .user_id = v->caller->user};

	if (verb_args(v, &say))
		ops_say(v->core, v->id, &say, said, v->reply);
}

/* ---- delivery. doc/DELIVERY.md says when to ask */

struct seen_args {
	const char *channel;
	int64_t lsn;
};
static const struct arg unseen_args[] = {
	{"channel", ARG_TEXT, offsetof(struct seen_args, channel)},
	{NULL},
};
static const struct arg ack_args[] = {
	{"channel", ARG_TEXT, offsetof(struct seen_args, channel)},
	{"lsn", ARG_COUNT, offsetof(struct seen_args, lsn), 0, INT64_MAX - 1},
	{NULL},
};

static void unseen_head(const struct op_unseen *u, void *user)
{
	struct jw *w = user;

	jw_str(w, "session_id", u->session);
	jw_str(w, "channel", u->channel);
	jw_str(w, "summary", u->summary);
	jw_int(w, "lsn", (int64_t)u->lsn);
	jw_array(w, "items");
}

static void verb_unseen(struct verb_call *v)
{
	struct seen_args s = {.channel = v->caller->channel};
	struct ava_error err = {0};
	struct verb_answer a;

	if (!verb_begin_args(&a, v, &s))
		return;
	jw_object(&a.w, NULL);
	if (ops_unseen(v->core, v->id, s.channel, unseen_head, one_json, &a.w, &err) != 0) {
		verb_drop(&a, &err);
		return;
	}
	verb_send(&a, 200);
}

static void acked(int rv, unsigned acknowledged, unsigned unseen, const struct ava_error *err,
		  void *user)
{
	struct verb_answer a;

	if (!verb_begin(&a, user, rv, err))
		return;
	jw_object(&a.w, NULL);
	jw_int(&a.w, "acknowledged", acknowledged);
	jw_int(&a.w, "unseen", unseen);
	verb_send(&a, 200);
}

static void verb_ack(struct verb_call *v)
{
	struct seen_args s = {.lsn = -1};
	struct ava_error err = {0};

	if (!verb_body(v) || !verb_args(v, &s))
		return;
	if (s.channel && s.lsn >= 0) {
		ops_ack(v->core, v->id, s.channel, (uint64_t)s.lsn, acked, v->reply);
		return;
	}
	err_set(&err, AVA_EINVAL, "channel and lsn are needed");
	verb_fail(v->reply, AVA_EINVAL, &err);
}

const struct verb verbs_about_talk[] = {
	{"GET", "/api/v1/proposals", verb_proposals, proposals_args, false},
	{"GET", "/api/v1/proposals/{id}", verb_proposal, NULL, false},
	{"POST", "/api/v1/proposals/{id}/confirm", verb_confirm, confirm_args, true},
	{"POST", "/api/v1/proposals/{id}/reject", verb_reject, reject_args, false},
	{"POST", "/api/v1/sessions", verb_session_new, session_args, true},
	{"GET", "/api/v1/sessions", verb_sessions, sessions_args, false},
	{"GET", "/api/v1/sessions/{id}", verb_session, NULL, false},
	{"GET", "/api/v1/sessions/{id}/messages", verb_messages, NULL, false},
	{"POST", "/api/v1/sessions/{id}/messages", verb_say, say_args, true},
	{"POST", "/api/v1/sessions/{id}/stop", verb_session_stop, NULL, false},
	{"GET", "/api/v1/sessions/{id}/unseen", verb_unseen, unseen_args, false},
	{"POST", "/api/v1/sessions/{id}/ack", verb_ack, ack_args, false},
	{NULL},
};
