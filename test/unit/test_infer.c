/* Calls to a service through the whole runtime, the service on the same loop:
 * what is written about attempts that fail, what they cost, another model, a
 * parameter less, and that a stop ends each of them wherever it is. Faults of
 * every kind are in test/cli/test_models.sh. */
#include "core_rig.h"

#include "ava/talk.h"
#include "base/clock.h"
#include "base/keys.h"
#include "http_peer.h"
#include "provider/model.h"
#include "subagent/wire.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nrequest-id: %s\r\n\r\n"
#define START_OF(input)                                                                            \
	"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\","       \
	"\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"x\","              \
	"\"usage\":{\"input_tokens\":" input ",\"output_tokens\":1}}}\n\n"
#define START START_OF("1000")
#define CALL(name, args)                                                                           \
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"         \
	"\"content_block\":{\"type\":\"tool_use\",\"id\":\"t_" name "\",\"name\":\"" name "\","    \
	"\"input\":{}}}\n\n"                                                                       \
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"         \
	"\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"" args "\"}}\n\n"             \
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"       \
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"      \
	"\"tool_use\"},\"usage\":{\"output_tokens\":100}}\n\n"                                     \
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
#define SUBMIT                                                                                     \
	CALL("submit_result", "{\\\"output\\\":1,\\\"summary\\\":\\\"done\\\","                    \
			      "\\\"confidence\\\":0.5,\\\"caveats\\\":[]}")
#define TEXT                                                                                       \
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"         \
	"\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"                                 \
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"         \
	"\"delta\":{\"type\":\"text_delta\",\"text\":\"so\"}}\n\n"                                 \
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"       \
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"      \
	"\"end_turn\"},\"usage\":{\"output_tokens\":100}}\n\n"                                     \
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
/* Long enough that the request grows by what cannot be overlooked. */
#define NONE "none/none/none/none/none/none/none/none/none/none/none/none/none/none/none/none/"
#define LOOK CALL("read_file", "{\\\"path\\\":\\\"" NONE NONE NONE NONE NONE NONE NONE NONE "\\\"}")

/* Of chat completions. */
#define CHAT(rest)                                                                                 \
	"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"," rest    \
	"},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
#define CHAT_CALL(name, args)                                                                      \
	"\"tool_calls\":[{\"index\":0,\"id\":\"call_" name "\",\"function\":{\"name\":\"" name     \
	"\",\"arguments\":\"" args "\"}}]"

/* What the service answers, one a request; behind the last: DONE. */
enum play {
	DONE,
	TWO_STEPS,
	LARGER,
	ONLY_TEXT,
	CUT,
	OVERLOADED,
	NOT_AGAIN,
	BAD_FIELD,
	BAD_OTHER,
	NO_KEY,
	SILENCE,
	MUTE,
	SLOW_DOWN,
	CHAT_THINKS,
	CHAT_REJECTS,
	CHAT_DONE
};

static struct {
	struct peer peer;
	enum play plays[16];
	unsigned nplays, requests;
	int64_t at_ms[16]; /* of requests */
	char *bodies[16];
	char ids[16][16];
} service;

static void fail_with(struct peer_conn *c, const char *status, const char *headers,
		      const char *type, const char *message)
{
	char body[400];

	snprintf(body, sizeof(body),
		 "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":\"%s\"}}", type,
		 message);
	peer_sendf(
		c,
		"HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
		status, headers, strlen(body), body);
}

static void answer(struct peer_conn *c, const char *head, const char *body, size_t len)
{
	unsigned n = service.requests++;
	enum play play = n < service.nplays ? service.plays[n] : DONE;

	if (n < 16) {
		service.at_ms[n] = clock_mono_ms();
		free(service.bodies[n]);
		service.bodies[n] = strdup(body);
	}
	switch (play) {
	case DONE:
	case TWO_STEPS:
	case LARGER:
	case ONLY_TEXT:
	case CUT:
		peer_sendf(c, HEAD, n < 16 && service.ids[n][0] ? service.ids[n] : "r");
		peer_sends(c, play == LARGER ? START_OF("1200") : START);
		if (play != CUT)
			peer_sends(c, play == TWO_STEPS ? LOOK : play == ONLY_TEXT ? TEXT : SUBMIT);
		peer_close(c);
		break;
	case OVERLOADED:
		fail_with(c, "529 Overloaded", "", "overloaded_error", "Overloaded");
		break;
	case NOT_AGAIN:
		fail_with(c, "529 Overloaded", "x-should-retry: false\r\n", "overloaded_error",
			  "Overloaded");
		break;
	case BAD_FIELD:
		fail_with(c, "400 Bad", "", "invalid_request_error",
			  "thinking: Extra inputs are not permitted");
		break;
	case BAD_OTHER:
		fail_with(c, "400 Bad", "", "invalid_request_error",
			  "messages: something is wrong with them");
		break;
	case NO_KEY:
		fail_with(c, "401 No", "", "authentication_error", "invalid x-api-key");
		break;
	case SLOW_DOWN:
		fail_with(c, "429 Slow", "retry-after: 60\r\n", "rate_limit_error", "too many");
		break;
	case SILENCE:
		peer_sendf(c, HEAD START, "r");
		break;
	case MUTE:
		break;
	case CHAT_THINKS:
		peer_sendf(c, HEAD, "r");
		peer_sends(c, CHAT("\"reasoning_content\":\"why\"," CHAT_CALL(
				      "read_file", "{\\\"path\\\":\\\"none\\\"}")));
		peer_close(c);
		break;
	case CHAT_REJECTS:
		fail_with(c, "400 Bad", "", "invalid_request_error",
			  "messages.2: property 'reasoning_content' is unsupported");
		break;
	case CHAT_DONE:
		peer_sendf(c, HEAD, "r");
		peer_sends(c, CHAT(CHAT_CALL("submit_result",
					     "{\\\"output\\\":1,\\\"summary\\\":\\\"done\\\","
					     "\\\"confidence\\\":0.5,\\\"caveats\\\":[]}")));
		peer_close(c);
		break;
	}
}

static int set_up(void **state)
{
	struct world *w = core_world(NULL);
	struct ava_error err = {0};

	setenv("XDG_CONFIG_HOME", w->dir, 1);
	memset(&service, 0, sizeof(service));
	service.peer.request = answer;
	peer_start(&service.peer, w->loop);
	setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789", 1);
	setenv("ANTHROPIC_BASE_URL", peer_url(&service.peer), 1);
	setenv("AVA_LOCAL_BASE_URL", peer_url(&service.peer), 1);
	models_reset();
	if (provider_configure(&err) != 0)
		fail_msg("%s", err.text);
	open_core(w);
	*state = w;
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;

	core_close(w->core);
	w->core = NULL;
	peer_stop(&service.peer);
	for (int i = 0; i < 16; i++)
		free(service.bodies[i]);
	models_reset();
	return tear_down(state);
}

static void begin_with(struct world *w, struct got *g, const char *model, int64_t timeout_ms,
		       bool thinking)
{
	struct op_spawn s = ask(w, "look");

	s.role = "researcher";
	s.model = model;
	s.timeout_ms = timeout_ms;
	s.extended_thinking = thinking;
	*g = spawn(w, &s);
}

static void begin(struct world *w, struct got *g, int64_t timeout_ms, bool thinking)
{
	begin_with(w, g, "anthropic/claude-haiku-4-5", timeout_ms, thinking);
}

static void play(const enum play *plays, unsigned n)
{
	memcpy(service.plays, plays, n * sizeof(*plays));
	service.nplays = n;
	service.requests = 0;
}
#define PLAY(...)                                                                                  \
	play((const enum play[]){__VA_ARGS__},                                                     \
	     (unsigned)ARRAY_LEN(((const enum play[]){__VA_ARGS__})))

static void assert_attempts(struct world *w, const char *run, size_t attempts)
{
	assert_int_equal(count_events(w, run, "InferStart"), attempts);
	assert_paired(w, run);
}

/* So many requests came, and what was answered has arrived: both ends are on
 * this loop, so a step carries what is ready. */
static void until_request(struct world *w, unsigned n)
{
	while (service.requests < n)
		os_loop_step(w->loop, 10);
	for (int i = 0; i < 50; i++)
		os_loop_step(w->loop, 1);
}

static void cancelled(struct world *w, const char *run, size_t attempts)
{
	cancel(w, run);
	assert_ended(w, run, "cancelled", "cancelled");
	assert_attempts(w, run, attempts);
}

/* ---- attempts */

TEST_OF(attempts_are_written, struct world *w)
{
	struct got g;
	json_t *r, *ends, *first, *last;

	PLAY(CUT, OVERLOADED);
	begin(w, &g, AVA_DEFAULT, false);
	r = result_of(w, g.id);
	assert_result(r, "success", "submitted");
	assert_int_equal(json_get_int(r, "iterations", 0), 1);
	assert_int_equal(json_get_int(r, "tokens_used", 0), 1001 + 1100); /* the half reply, too */
	json_decref(r);
	assert_attempts(w, g.id, 3);
	ends = events(w, g.id, "InferEnd");
	first = json_array_get(ends, 0);
	assert_string_equal(json_get_str(first, "callId"), "i1");
	assert_string_equal(json_get_str(first, "errorClass"), "truncated");
	assert_true(json_get_bool(first, "estimated", false));
	assert_true(json_get_int(first, "retryInMs", -1) >= 500);
	assert_int_equal(json_get_int(json_object_get(first, "tokens"), "input", 0), 1000);
	assert_string_equal(json_get_str(json_array_get(ends, 1), "callId"), "i1.2");
	assert_string_equal(json_get_str(json_array_get(ends, 1), "errorClass"), "overloaded");
	last = json_array_get(ends, 2);
	assert_string_equal(json_get_str(last, "callId"), "i1.3");
	assert_null(json_object_get(last, "errorClass"));
	assert_string_equal(json_get_str(last, "requestId"), "r");
	json_decref(ends);
	/* nothing of the half reply is kept */
	assert_string_equal(service.bodies[0], service.bodies[1]);
	assert_string_equal(service.bodies[0], service.bodies[2]);
}

static void said(int rv, const char *entry, const struct ava_error *err, void *user)
{
	*(int *)user = rv == 0 ? 1 : rv;
}

/* After a stop Ava's call is at its next attempt, and what the retries decide by is known. */
TEST_OF(a_call_of_ava_goes_on, struct world *w)
{
	static const char *const ids[] = {"i1", "i1.2", "i1.3"};
	struct op_session_new n = {
		.cwd = w->src, .user_id = "ben", .model = "anthropic/claude-haiku-4-5"};
	struct op_say say = {.text = "hello", .user_id = "ben"};
	const struct talk *t;
	struct op_session s;
	json_t *ends;
	int done = 0;

	PLAY(OVERLOADED, OVERLOADED, ONLY_TEXT);
	assert_int_equal(ops_session_new(w->core, &n, &s, NULL), 0);
	ops_say(w->core, s.id, &say, said, &done);
	t = LIST_FIRST(&w->core->sessions, struct session, node)->talk;
	while (t->run.call.state != CALL_AGAIN)
		os_loop_step(w->loop, 10);
	assert_int_equal(done, 1);
	reopen(w);
	t = LIST_FIRST(&w->core->sessions, struct session, node)->talk;
	assert_non_null(t);
	assert_true(t->busy && t->run.agent.at.again);
	assert_int_equal(t->run.call.attempts, 1);
	assert_int_equal(t->run.call.retry.failures, 1);
	assert_int_equal(t->run.agent.at.totals.calls, 1);
	assert_int_equal(t->run.agent.at.totals.failed_calls, 1);
	while (t->busy)
		os_loop_step(w->loop, 10);
	ends = events(w, NULL, "InferEnd");
	assert_int_equal(json_array_size(ends), ARRAY_LEN(ids));
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		assert_string_equal(json_get_str(json_array_get(ends, i), "callId"), ids[i]);
	json_decref(ends);
}

/* ---- amendments */

TEST_OF(a_parameter_less, struct world *w)
{
	char path[400], *file;
	struct got g;
	size_t len;
	json_auto_t *r = NULL;

	PLAY(BAD_FIELD);
	begin(w, &g, AVA_DEFAULT, true);
	assert_ended(w, g.id, "success", "submitted");
	assert_attempts(w, g.id, 2);
	assert_non_null(strstr(service.bodies[0], "\"thinking\":{"));
	assert_null(strstr(service.bodies[1], "\"thinking\":{"));
	snprintf(path, sizeof(path), "%s/runs/%s/messages.jsonl", w->root, g.id);
	file = unit_read(path, &len);
	assert_non_null(strstr(file, "\n{\"spec\":{\"drop\":\"thinking"));
	free(file);

	PLAY(BAD_FIELD, BAD_FIELD); /* once is enough */
	begin(w, &g, AVA_DEFAULT, true);
	assert_ended(w, g.id, "error", "model_error");
	assert_attempts(w, g.id, 2);

	PLAY(BAD_OTHER); /* never blindly */
	begin(w, &g, AVA_DEFAULT, true);
	r = result_of(w, g.id);
	assert_result(r, "error", "model_error");
	assert_non_null(strstr(json_get_str(r, "error"), "something is wrong with them"));
	assert_attempts(w, g.id, 1);
}

/* What a service made and does not take back stays in the file and leaves the
 * requests. */
TEST_OF(reasoning_less, struct world *w)
{
	static const char said[] = "\"reasoning_content\":\"why\"";
	char path[400], *file;
	struct got g;
	size_t len;

	PLAY(CHAT_THINKS, CHAT_REJECTS, CHAT_THINKS, CHAT_DONE);
	begin_with(w, &g, "local/x", AVA_DEFAULT, false);
	assert_ended(w, g.id, "success", "submitted");
	assert_int_equal(service.requests, 4);
	assert_non_null(strstr(service.bodies[1], said));
	assert_null(strstr(service.bodies[2], "reasoning_content"));
	assert_null(strstr(service.bodies[3], "reasoning_content"));
	/* The rest goes on as it was. */
	assert_memory_equal(service.bodies[2], service.bodies[3], strcspn(service.bodies[2], "]"));
	snprintf(path, sizeof(path), "%s/runs/%s/messages.jsonl", w->root, g.id);
	file = unit_read(path, &len);
	assert_non_null(strstr(file, said));
	assert_non_null(strstr(file, "\n{\"spec\":{\"drop\":\"reasoning_content\"}}\n"));
	free(file);
}

TEST_OF(another_model, struct world *w)
{
	struct got g;
	json_t *r, *starts;

	assert_int_equal(models_add_fallback("anthropic/claude-haiku-4-5", NULL), 0); /* itself */
	assert_int_equal(models_add_fallback("anthropic/claude-sonnet-4-5", NULL), 0);
	PLAY(NOT_AGAIN);
	begin(w, &g, AVA_DEFAULT, false);
	r = result_of(w, g.id);
	assert_result(r, "success", "submitted");
	assert_string_equal(json_get_str(r, "model"), "anthropic/claude-sonnet-4-5");
	json_decref(r);
	assert_non_null(strstr(service.bodies[0], "\"model\":\"claude-haiku-4-5\""));
	assert_non_null(strstr(service.bodies[1], "\"model\":\"claude-sonnet-4-5\""));
	starts = events(w, g.id, "InferStart");
	assert_string_equal(json_get_str(json_array_get(starts, 1), "model"),
			    "anthropic/claude-sonnet-4-5");
	assert_string_equal(json_get_str(json_array_get(starts, 1), "callId"), "i1.2");
	json_decref(starts);
	assert_attempts(w, g.id, 2);

	PLAY(NOT_AGAIN, NOT_AGAIN); /* and then there is none */
	begin(w, &g, AVA_DEFAULT, false);
	assert_ended(w, g.id, "error", "model_error");
	assert_attempts(w, g.id, 2);
}

/* Of another dialect too, as long as nothing was answered in the first one. */
TEST_OF(another_dialect, struct world *w)
{
	struct got g;
	json_t *r;

	assert_int_equal(models_add_fallback("offline", NULL), 0);
	PLAY(NOT_AGAIN);
	begin(w, &g, AVA_DEFAULT, false);
	r = result_of(w, g.id);
	assert_string_equal(json_get_str(r, "status"), "success");
	assert_string_equal(json_get_str(r, "model"), "offline");
	json_decref(r);

	PLAY(TWO_STEPS, NOT_AGAIN);
	begin(w, &g, AVA_DEFAULT, false);
	assert_ended(w, g.id, "error", "model_error");
}

/* A long wait that is asked for is reason enough; and whoever waits at the gate
 * that it closed need not wait with it. */
TEST(another_model_instead_of_a_wait)
{
	struct world *w = *state;
	struct got g;
	struct run *run;
	json_t *r;

	assert_int_equal(models_add_fallback("anthropic/claude-sonnet-4-5", NULL), 0);
	PLAY(SLOW_DOWN);
	begin(w, &g, 3600000, false);
	r = result_of(w, g.id);
	assert_result(r, "success", "submitted");
	assert_string_equal(json_get_str(r, "model"), "anthropic/claude-sonnet-4-5");
	assert_non_null(strstr(json_string_value(json_array_get(json_object_get(r, "caveats"), 1)),
			       "anthropic/claude-haiku-4-5 did not answer"));
	json_decref(r);
	assert_attempts(w, g.id, 2);

	PLAY(DONE);
	begin(w, &g, 3600000, false);
	run = supervisor_find(&w->core->sup, g.id);
	while (!run->call.job)
		os_loop_step(w->loop, 10);
	assert_int_equal(run->call.state, CALL_GATE);
	os_timer_set(run->call.timer, 0);
	r = result_of(w, g.id);
	assert_result(r, "success", "submitted");
	assert_string_equal(json_get_str(r, "model"), "anthropic/claude-sonnet-4-5");
	json_decref(r);
	assert_attempts(w, g.id, 1);
}

/* ---- the circuit */

TEST_OF(refused_keys_open_the_circuit, struct world *w)
{
	struct got g;

	PLAY(NO_KEY, NO_KEY, NO_KEY, NO_KEY, NO_KEY);
	for (int i = 0; i < 7; i++) {
		json_auto_t *r = NULL;

		begin(w, &g, AVA_DEFAULT, false);
		r = result_of(w, g.id);
		assert_result(r, "error", "model_error");
		assert_non_null(strstr(json_get_str(r, "error"),
				       i < 5 ? "ANTHROPIC_API_KEY" : "no call is made for"));
		assert_attempts(w, g.id, i < 5);
	}
	assert_int_equal(service.requests, 5);
}

/* ---- a service that is slow to begin */

static void step_far(struct world *w, int64_t ms)
{
	test_clock_skip(ms);
	for (int i = 0; i < 3; i++)
		os_loop_step(w->loop, 1);
}

/* A time that is set holds, and is not tried twice: the second attempt has twice as long. */
TEST_OF(never_the_same_wait, struct world *w)
{
	struct got g;

	w->settings.net_first_s = 20;
	reopen(w);
	PLAY(MUTE, MUTE, DONE);
	begin(w, &g, AVA_DEFAULT, false);
	for (int i = 0; i < 1000 && service.requests < 3; i++)
		step_far(w, 250);
	assert_int_equal(service.requests, 3);
	assert_in_range(service.at_ms[1] - service.at_ms[0], 20000, 39000);
	assert_in_range(service.at_ms[2] - service.at_ms[1], 40000, 59000);
	assert_ended(w, g.id, "success", "submitted");
	assert_attempts(w, g.id, 3);
}

/* The service of this test is on this machine: a long prompt takes its time there. */
TEST_OF(waits_for_a_service_here, struct world *w)
{
	struct got g;

	PLAY(MUTE);
	begin(w, &g, 3600000, false);
	until_request(w, 1);
	for (int i = 0; i < 100; i++)
		step_far(w, 10000);
	assert_int_equal(service.requests, 1);
	cancelled(w, g.id, 1);
}

/* ---- what is believed of what a service counts */

/* There are servers whose replies all have one id: each is paid for. */
TEST_OF(one_id_for_all, struct world *w)
{
	struct got g;
	json_auto_t *r = NULL;

	snprintf(service.ids[0], sizeof(service.ids[0]), "same");
	snprintf(service.ids[1], sizeof(service.ids[1]), "same");
	PLAY(TWO_STEPS, LARGER);
	begin(w, &g, AVA_DEFAULT, false);
	r = result_of(w, g.id);
	assert_result(r, "success", "submitted");
	assert_int_equal(json_get_int(r, "tokens_used", 0), 1100 + 1300);
	/* 2,200 and 200 tokens at 1 and 5 dollars a million */
	assert_int_equal(json_get_fixed(r, "cost_cents", 4, -1), 3200);
	assert_int_equal(json_array_size(json_object_get(r, "caveats")), 1); /* of its tools */
}

/* The same count for a request that has grown: it is estimated, and the person is told. */
TEST_OF(one_count_for_all, struct world *w)
{
	struct got g;
	json_auto_t *r = NULL;
	int64_t sent;

	PLAY(TWO_STEPS, DONE);
	begin(w, &g, AVA_DEFAULT, false);
	r = result_of(w, g.id);
	assert_result(r, "success", "submitted");
	sent = (int64_t)strlen(service.bodies[1]) / 4;
	assert_in_range(json_get_int(r, "tokens_used", 0), 1200 + sent - 100, 1200 + sent);
	assert_non_null(strstr(json_string_value(json_array_get(json_object_get(r, "caveats"), 1)),
			       "counted far fewer tokens than were sent"));
}

/* ---- what the runtime told the model stands at the call */

TEST_OF(notices, struct world *w)
{
	json_t *starts, *first, *second;
	struct got g;

	PLAY(ONLY_TEXT, ONLY_TEXT, OVERLOADED);
	begin(w, &g, AVA_DEFAULT, false);
	assert_ended(w, g.id, "success", "submitted");
	starts = events(w, g.id, "InferStart");
	assert_int_equal(json_array_size(starts), 4);
	assert_int_equal(json_array_size(json_object_get(json_array_get(starts, 0), "notices")), 0);
	first = json_object_get(json_array_get(starts, 1), "notices"); /* to look first */
	assert_int_equal(json_array_size(first), 1);
	assert_string_equal(json_string_value(json_array_get(first, 0)), "nudge");
	for (size_t i = 2; i < 4; i++) { /* each attempt sends the same */
		first = json_object_get(json_array_get(starts, i), "notices");
		second = json_array_get(first, 1);
		assert_string_equal(json_string_value(json_array_get(first, 0)), "nudge");
		assert_string_equal(json_string_value(second), "force_submit");
	}
	json_decref(starts);
}

/* ---- cancel, wherever it is */

TEST_OF(cancel_at_work, struct world *w)
{
	struct got g;
	json_auto_t *ends = NULL;

	PLAY(SILENCE);
	begin(w, &g, AVA_DEFAULT, false);
	until_request(w, 1);
	cancelled(w, g.id, 1);
	ends = events(w, g.id, "InferEnd");
	assert_true(json_get_int(json_object_get(json_array_get(ends, 0), "tokens"), "input", 0) >
		    0);
}

TEST_OF(cancel_parked, struct world *w)
{
	struct got g, other;

	PLAY(SLOW_DOWN);
	begin(w, &g, 3600000, false);
	while (count_events(w, g.id, "Activity") == 0)
		os_loop_step(w->loop, 10);
	begin(w, &other, 3600000, false); /* waits at the gate that the first one closed */
	for (int i = 0; i < 50; i++)
		os_loop_step(w->loop, 1);
	assert_int_equal(service.requests, 1);
	cancelled(w, other.id, 0);
	cancelled(w, g.id, 1);
	assert_int_equal(service.requests, 1);
}

/* A stop while it waits for the service: the wait goes on where it was. */
TEST_OF(stop_parked, struct world *w)
{
	struct got g;

	PLAY(SLOW_DOWN);
	begin(w, &g, 3600000, false);
	while (count_events(w, g.id, "Activity") == 0)
		os_loop_step(w->loop, 10);
	reopen(w);
	for (int i = 0; i < 50; i++)
		os_loop_step(w->loop, 1);
	assert_int_equal(service.requests, 1);
	cancelled(w, g.id, 1);
}

/* The call that a stop cut is charged, and made again. */
TEST_OF(stop_at_work, struct world *w)
{
	struct got g;
	json_auto_t *r = NULL;

	PLAY(SILENCE);
	begin(w, &g, AVA_DEFAULT, false);
	until_request(w, 1);
	reopen(w);
	r = result_of(w, g.id);
	assert_result(r, "success", "submitted");
	assert_in_range(json_get_int(r, "tokens_used", 0), 2001, 2200); /* as the service said */
	assert_attempts(w, g.id, 2);
	assert_string_equal(service.bodies[0], service.bodies[1]);
}

/* What another model had used is charged at its price, also after a restart. */
TEST_OF(stop_at_another_model, struct world *w)
{
	struct got g;
	json_auto_t *r = NULL;

	assert_int_equal(models_add_fallback("anthropic/claude-sonnet-4-5", NULL), 0);
	PLAY(NOT_AGAIN, SILENCE);
	begin(w, &g, AVA_DEFAULT, false);
	until_request(w, 2);
	reopen(w);
	r = result_of(w, g.id);
	assert_result(r, "success", "submitted");
	assert_string_equal(json_get_str(r, "model"), "anthropic/claude-sonnet-4-5");
	/* twice 1,000 tokens at 3 dollars a million, and a little output */
	assert_in_range(json_get_fixed(r, "cost_cents", 4, -1), 6000, 9000);
}

/* ---- no memory */

TEST_OF(lines_without_memory, struct world *w)
{
	struct wire_lines *l;
	struct wire_line *line;
	struct ava_error err;
	struct model m;

	assert_int_equal(model_resolve("anthropic/claude-haiku-4-5", &m, NULL, NULL), 0);
	FAULT_LOOP(k, {
		l = wire_lines_new(w->loop);
		line = l ? wire_line_get(l, &m, &err) : NULL;
		if (l && !line && err.code != AVA_ENOMEM)
			fail_msg("%ld: %d %s", k, err.code, err.text);
		wire_lines_free(l);
	});
}

UNIT_GROUP(.before = set_up, .after = end);
