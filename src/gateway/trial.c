/* The request begins with a word of its own, so that no cache of the server makes it look quicker
 * than a first request is. Its answer is as short as a call can be, since it costs money
 * or time.
 *
 * What can fail: no reply comes, or not in time. The trial then tells so. */
#include "gateway/trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/reply.h"
#include "agent/tool.h"
#include "base/buf.h"
#include "base/clock.h"
#include "net/http_client.h"
#include "os/loop.h"
#include "provider/dialect.h"
#include "subagent/learn.h"
#include "subagent/wire.h"

#define TRIAL_MS 120000 /* to the first word: a local server may load the model before */
#define ALL_MS   180000
#define BODY_MAX ((size_t)1 << 16)

#define WINDOW_GOOD      16384 /* in a smaller window ava uses the least of tools and texts */
#define WINDOW_LEAST     4096
#define AVA_TOKENS       5400 /* tokens of Ava's first request, as llama.cpp counts */
#define AVA_TOKENS_SMALL 2000 /* the same in a small window */

static const struct tool tool_keep = {
	.name = "keep",
	.description = "Keep a number.",
	.schema = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},"
		  "\"required\":[\"n\"]}",
};

struct asked {
	struct learn_ticket ticket;
	bool over;
};

static void asked_over(struct learn_ticket *t)
{
	CONTAINER_OF(t, struct asked, ticket)->over = true;
}

bool trial_model(struct os_loop *loop, const char *name, struct model *out)
{
	struct learner *l = learner_new(loop, -1); /* this learner keeps nothing */
	bool is = true;

	/* Two rounds: a server's list may give the name, about which the second asks. */
	for (int round = 0; l && is && round < 2; round++) {
		struct asked a = {.ticket.go = asked_over};

		is = model_resolve(name, out, NULL, NULL) == 0;
		if (is && learn_ask(l, out, &a.ticket))
			while (!a.over)
				os_loop_step(loop, -1);
	}
	learner_free(l);
	return is && model_resolve(name, out, NULL, NULL) == 0 && out->provider;
}

struct trying {
	struct wirecall wire;
	struct trial *trial;
	int64_t sent_ms, first_ms; /* monotonic; first_ms 0: nothing came */
	bool over;
};

static void trial_began(struct wirecall *w)
{
	CONTAINER_OF(w, struct trying, wire)->first_ms = clock_mono_ms();
}

static enum trial_word word_of(const struct turn *t, const struct tool *const *tools)
{
	bool call = false;
	struct reply r;

	if (t->ncalls > 0)
		return t->written ? TRIAL_CALLS_IN_TEXT : TRIAL_CALLS;
	if (t->text_len == 0)
		return t->thinking_len > 0 ? TRIAL_THINKS : TRIAL_TALKS;
	call = reply_read(&r, t->text, t->text_len, tools, 1) == 0 && r.call;
	reply_fini(&r);
	return call ? TRIAL_CALLS_IN_TEXT : TRIAL_TALKS;
}

static void trial_done(struct wirecall *w, struct wirecall_end *end)
{
	struct trying *g = CONTAINER_OF(w, struct trying, wire);
	int64_t reading = g->first_ms - g->sent_ms, writing = clock_mono_ms() - g->first_ms;
	const struct usage *u = end->turn ? &end->turn->usage : NULL;
	struct trial *t = g->trial;

	g->over = true;
	if (end->failure.cls != REPLY_OK) {
		err_set(&t->err, AVA_EPROTO, "%s", end->error.text);
		return;
	}
	t->word = word_of(end->turn, w->tools);
	if (g->first_ms > 0 && u->told > u->cache_read)
		t->reads = (double)(u->told - u->cache_read) * 1000 / (double)MAX(reading, 1);
	if (g->first_ms > 0 && writing > 0 && u->output > 1)
		t->writes = (double)(u->output - 1) * 1000 / (double)writing;
	turn_free(end->turn);
}

static int make_body(struct buf *body, const struct model *m, const struct tool *const *tools)
{
	static const char task[] = "Call the tool keep with n = 7, and say nothing else.";
	struct agent_infer call = {.iteration = 1, .max_output = TRIAL_OUTPUT};
	struct dialect_spec spec = {.model = m->id, .tools = tools, .ntools = 1, .model_facts = m};
	char system[64];
	int rv;

	snprintf(system, sizeof(system), "%08" PRIx32 ": you work with tools.",
		 (uint32_t)clock_wall_ms());
	spec.system = system;
	rv = m->dialect->encode_head(body, &spec);
	if (rv == 0)
		rv = m->dialect->encode_user(body, task, strlen(task));
	return rv == 0 ? m->dialect->encode_tail(body, m, false, &call) : rv;
}

static const char *mend_of(const struct trial *t)
{
	bool ollama = strstr(t->model.provider->base_url, ":11434") != NULL;

	if (strstr(t->err.text, "--jinja") || (t->word == TRIAL_TALKS && t->told.tools > 0))
		return "`llama-server --jinja ...`, or a larger model (doc/LOCAL.md)";
	if (t->told.tools < 0 || t->word == TRIAL_TALKS || strcasestr(t->err.text, "tools"))
		return "a model whose template has tools, such as qwen3 or llama3.1 (doc/LOCAL.md)";
	if (t->word == TRIAL_FAILED || t->model.context >= WINDOW_GOOD)
		return "";
	if (ollama)
		return "`OLLAMA_CONTEXT_LENGTH=32768 ollama serve`";
	return t->told.slots > 0 ? "`llama-server -c 32768 ...`, so much for each slot (-np)"
				 : "a window of 32768 in the server's settings";
}

void trial_run(struct trial *t, struct os_loop *loop, struct http_client *client)
{
	const struct provider *p = t->model.provider;
	const struct tool *tools[] = {&tool_keep};
	struct http_pool_options o = {.base_url = p->base_url, .http2 = p->http2};
	struct http_pool *pool = http_pool_new(client, &o, &t->err);
	struct trying g = {.trial = t,
			   .wire = {.on_began = trial_began,
				    .on_done = trial_done,
				    .max_output = TRIAL_OUTPUT,
				    .tools = tools,
				    .ntools = 1,
				    .http.timers = {.first_ms = TRIAL_MS, .total_ms = ALL_MS}}};
	struct buf body;
	int rv;

	buf_init(&body, BODY_MAX);
	rv = pool ? make_body(&body, &t->model, tools) : AVA_ENOMEM;
	g.sent_ms = clock_mono_ms();
	if (rv == 0)
		rv = wirecall_start(&g.wire, pool, &t->model, provider_key(p), "trial", &body,
				    &t->err);
	while (rv == 0 && !g.over) /* ends, since the call has timers */
		os_loop_step(loop, -1);
	if (rv != 0 && t->err.code == 0)
		err_set(&t->err, rv, "out of memory");
	buf_fini(&body);
	http_pool_free(pool);
	(void)learned_find(t->model.id, p->base_url, &t->told);
	t->mend = mend_of(t);
	if (t->reads > 0)
		t->first_s =
			(t->model.context < WINDOW_GOOD ? AVA_TOKENS_SMALL : AVA_TOKENS) / t->reads;
	t->ok = t->told.tools >= 0 && t->word != TRIAL_TALKS && t->word != TRIAL_FAILED &&
		t->model.context >= WINDOW_LEAST;
}

void trial_words(const struct trial *t, struct buf *out)
{
	static const char *const words[] = {
		[TRIAL_FAILED] = "could not be tried",
		[TRIAL_CALLS] = "calls tools",
		[TRIAL_CALLS_IN_TEXT] = "writes its calls as text, which are taken for calls",
		[TRIAL_THINKS] = "was still thinking when its try was over",
		[TRIAL_TALKS] = "does not call tools",
	};

	buf_addf(out, "%.120s %s%s%s", t->model.id, words[t->word],
		 t->word == TRIAL_FAILED ? ": " : "", t->err.text);
	if (t->told.tools != 0)
		buf_addf(out, " (its template has %s)", t->told.tools < 0 ? "none" : "tools");
	buf_addf(out, "; window %" PRId64 "%s", t->model.context,
		 t->told.window == 0 && !t->model.known ? ", assumed" : "");
	if (t->reads > 0)
		buf_addf(out, "; reads %.0f tokens/s: Ava's first word in about %.0f s", t->reads,
			 t->first_s);
	if (t->writes > 0)
		buf_addf(out, "; writes %.1f tokens/s", t->writes);
	if (t->mend[0])
		buf_addf(out, ". To mend it: %s", t->mend);
}
