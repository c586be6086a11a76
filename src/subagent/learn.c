/* All questions are asked at once: servers differ in where they tell a window, and an answer about
 * the running model is believed before one about its abilities. Ollama runs a model with num_ctx,
 * not with the window that it was trained for; while the model is not loaded, num_ctx is that of
 * its file, else OLLAMA_LOADS.
 *
 * Everything can fail; then nothing is learned. */
#include "subagent/learn.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/keys.h"
#include "base/util.h"
#include "net/http_client.h"
#include "os/loop.h"
#include "provider/dialect.h"
#include "provider/learned.h"
#include "provider/model.h"

#define ANSWER_MAX   ((size_t)4 << 20)
#define ASKED_MAX    256 /* most models whose next time to ask is remembered */
#define OLLAMA_LOADS 4096
#define WINDOW_LEAST 256 /* a number below, or above WINDOW_MOST, is no window */
#define WINDOW_MOST  1e9
#define SLOTS_MOST   10000
#define LOADING      503 /* status of llama.cpp while it loads its model */
#define LISTED       8   /* most models of a server that a text names */

enum { MODELS, PROPS, LOADED, SHOW, STUDIO };
static const char *const questions[LEARN_QUESTIONS] = {
	[MODELS] = "/models",        /* under the base URL; the others only of one's own server */
	[PROPS] = "/props",          /* asked of llama.cpp */
	[LOADED] = "/api/ps",        /* asked of Ollama: the loaded models */
	[SHOW] = "/api/show",        /* asked of Ollama: the model's file */
	[STUDIO] = "/api/v0/models", /* asked of LM Studio */
};

struct learner {
	struct os_loop *loop;
	int root_fd;
	struct http_client *client; /* NULL: nothing was asked yet */
	struct os_timer *timer;
	/* The questions under way are about this model. */
	struct model model;
	struct http_pool *pool; /* NULL: no question is under way */
	struct http_call calls[LEARN_QUESTIONS];
	struct buf answers[LEARN_QUESTIONS];
	unsigned open;       /* questions under way */
	struct list tickets; /* requests that wait for the answers, or want to ask next */
	json_t *asked;       /* next time to ask, monotonic, by id and address */
	struct os_work save;
	bool saving, unsaved, stopped; /* unsaved: more was learned during a save */
};

/* ---- reading answers */

/* A window in tokens, maybe as a text; 0: no number that a window can have. */
static int64_t tokens_of(const json_t *v)
{
	char *end = NULL;
	double n = json_is_string(v) ? strtod(json_string_value(v), &end) : json_number_value(v);

	return n >= WINDOW_LEAST && n <= WINDOW_MOST && (!end || *end == 0) ? (int64_t)n : 0;
}

/* Places where a window is told, the likeliest to be true first. `in`: a list of models, or an
 * object that holds it itself; `within`: an object of the model's row. */
static const struct {
	int answer;
	const char *in, *within, *key;
} places[] = {
	{PROPS, "default_generation_settings", NULL, "n_ctx"},
	{PROPS, "default_generation_settings", "params", "n_ctx"},
	{PROPS, NULL, NULL, "n_ctx"},
	{LOADED, "models", NULL, "context_length"},
	{SHOW, NULL, NULL, NULL},
	{STUDIO, "data", NULL, "loaded_context_length"},
	{STUDIO, "data", NULL, "max_context_length"},
	{MODELS, "data", "meta", "n_ctx"},
	{MODELS, "data", NULL, "loaded_context_length"},
	{MODELS, "data", NULL, "max_model_len"},
	{MODELS, "data", NULL, "context_length"},
	{MODELS, "data", NULL, "context_window"},
	{MODELS, "data", NULL, "max_context_length"},
	{MODELS, "data", NULL, "max_input_tokens"},
	{MODELS, "data", "parameters", "max_seq_len"}, /* TabbyAPI */
	{MODELS, NULL, NULL, "context_length"},        /* Together: a bare list */
};

/* The row of a list by its id, its name, or its place where there is only one. */
static const json_t *row_named(const json_t *list, const char *name)
{
	static const char *const keys[] = {"id", "model", "name"};
	size_t i, k, len = strlen(name);
	const json_t *row;

	json_array_foreach(list, i, row)
	{
		for (k = 0; k < ARRAY_LEN(keys); k++) {
			const char *is = json_str(row, keys[k]);

			if (strncmp(is, name, len) == 0 &&
			    (is[len] == '\0' || strcmp(is + len, ":latest") == 0))
				return row;
		}
	}
	return json_array_size(list) == 1 ? json_array_get(list, 0) : NULL;
}

static int64_t of_show(const json_t *o)
{
	const char *set = strstr(json_str(o, "parameters"), "num_ctx");
	const char *at = set ? set + strcspn(set, "0123456789\n") : NULL;
	int64_t most = 0, runs = at ? strtoll(at, NULL, 10) : OLLAMA_LOADS;
	const json_t *v;
	const char *key;

	json_object_foreach((json_t *)json_object_get(o, "model_info"), key, v)
	{
		const char *dot = strrchr(key, '.');

		if (dot && strcmp(dot, ".context_length") == 0)
			most = tokens_of(v);
	}
	if (most <= 0)
		return at ? runs : 0;
	return runs > 0 ? MIN(most, runs) : most;
}

static int64_t window_told(json_t *const answers[LEARN_QUESTIONS], const char *name)
{
	int64_t told = 0;

	for (size_t i = 0; i < ARRAY_LEN(places) && told <= 0; i++) {
		const json_t *answer = answers[places[i].answer];
		const json_t *in = places[i].in ? json_object_get(answer, places[i].in) : answer;
		const json_t *row = json_is_array(in) ? row_named(in, name) : in;

		if (places[i].within)
			row = json_object_get(row, places[i].within);
		told = places[i].key ? tokens_of(json_object_get(row, places[i].key))
				     : of_show(answer);
	}
	return MAX(told, 0);
}

/* 1: the list has the word. A list without it says nothing at some servers, and at others that the
 * model has no tools: `without`. 0: no list. */
static int64_t learn_tools_of(const json_t *capabilities, const char *word, int64_t without)
{
	size_t i;
	const json_t *v;

	json_array_foreach((json_t *)capabilities, i, v)
	{
		if (json_is_string(v) && strcmp(json_string_value(v), word) == 0)
			return 1;
	}
	return json_is_array(capabilities) ? without : 0;
}

static int64_t tools_told(json_t *const answers[LEARN_QUESTIONS], const char *name)
{
	const json_t *can = json_object_get(answers[PROPS], "chat_template_caps");
	const json_t *row = row_named(json_object_get(answers[STUDIO], "data"), name);
	int64_t told = learn_tools_of(json_object_get(answers[SHOW], "capabilities"), "tools", -1);

	if (json_is_boolean(json_object_get(can, "supports_tools")))
		return json_is_true(json_object_get(can, "supports_tools")) ? 1 : -1;
	return told ? told : learn_tools_of(json_object_get(row, "capabilities"), "tool_use", 0);
}

struct learned learn_facts(json_t *const answers[LEARN_QUESTIONS], const char *name)
{
	int64_t slots = json_get_int(answers[PROPS], "total_slots", 0);

	return (struct learned){
		.window = window_told(answers, name),
		.slots = slots > 0 && slots <= SLOTS_MOST ? slots : 0,
		.tools = tools_told(answers, name),
	};
}

/* Notes the server's models, but those that only make vectors. false: no list came. */
static bool learn_take_list(const struct provider *p, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "data"), *row;
	char names[200] = "";
	size_t i, n = 0, used;

	json_array_foreach((json_t *)list, i, row)
	{
		const char *id = json_str(row, "id");

		used = strlen(names);
		if (*id && !strcasestr(id, "embed") && n++ < LISTED)
			snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", id);
	}
	if (json_is_array(list))
		learned_list(p->base_url, n, names);
	return json_is_array(list);
}

/* ---- the file */

static void save_work(struct os_work *w)
{
	/* A save that fails is made good by the next one. */
	(void)learned_save(CONTAINER_OF(w, struct learner, save)->root_fd, NULL);
}

static void save_start(struct learner *l);

static void save_done(struct os_work *w)
{
	struct learner *l = CONTAINER_OF(w, struct learner, save);

	l->saving = false;
	if (l->unsaved)
		save_start(l);
}

static void save_start(struct learner *l)
{
	l->unsaved = l->saving;
	if (l->saving)
		return;
	l->saving = true;
	l->save = (struct os_work){.work = save_work, .done = save_done};
	os_work_start(l->loop, &l->save);
}

void learn_told(struct learner *l, const struct model *m, const struct learned *told,
		const char *from)
{
	if (m->provider && learned_note(m->id, m->provider->base_url, told, from))
		save_start(l);
}

bool learn_counted(struct learner *l, const struct model *m, int64_t bytes, int64_t tokens,
		   bool called, char *text, size_t size)
{
	if (!m->provider || m->provider->needs_key ||
	    !learned_count(m->id, m->provider->base_url, bytes, tokens, called, text, size))
		return false;
	save_start(l);
	return true;
}

/* ---- asking */

static void asking_over(struct learner *l)
{
	struct list waiting;

	for (size_t i = 0; l->pool && i < LEARN_QUESTIONS; i++) {
		http_call_stop(&l->calls[i]);
		buf_fini(&l->answers[i]);
	}
	http_pool_free(l->pool);
	l->pool = NULL;
	list_init(&waiting); /* a `go` may add tickets about another model */
	list_splice(&waiting, &l->tickets);
	while (!list_empty(&waiting)) {
		struct learn_ticket *t = LIST_FIRST(&waiting, struct learn_ticket, node);

		list_del(&t->node);
		t->go(t);
	}
}

static void question_done(struct http_call *c, int rv, const struct ava_error *err)
{
	struct learner *l = c->user;

	if (--l->open == 0)
		os_timer_set(l->timer, 0); /* frees the call later, not inside its callback */
}

static void question_start(struct learner *l, size_t i, const char *version)
{
	const char *key = provider_key(l->model.provider);
	char auth[KEYS_VALUE_MAX + 32], path[32];
	const char *headers[] = {"Content-Type: application/json", auth};
	struct http_call *c = &l->calls[i];
	struct jw w;

	snprintf(auth, sizeof(auth), "Authorization: Bearer %s", key ? key : "");
	snprintf(path, sizeof(path), "%s%s", i == MODELS ? version : "", questions[i]);
	buf_init(&l->answers[i], ANSWER_MAX);
	*c = (struct http_call){
		.path = path,
		.method = i == SHOW ? "POST" : "GET",
		.headers = headers,
		.nheaders = key ? 2 : 1,
		.timers = {LEARN_MS, LEARN_MS, LEARN_MS, LEARN_MS},
		.answer = &l->answers[i],
		.done = question_done,
		.user = l,
	};
	buf_init(&c->body, 4096);
	if (i == SHOW) {
		jw_init(&w, &c->body);
		jw_object(&w, NULL);
		jw_str(&w, "name", l->model.wire_name);
		jw_end(&w);
	}
	if (http_call_start(l->pool, c, NULL) == 0)
		l->open++;
	else
		buf_fini(&c->body);
	explicit_bzero(auth, sizeof(auth));
	c->headers = NULL; /* the call copied the headers */
	c->nheaders = 0;
}

static void ask_again_in(struct learner *l, const struct model *m, int64_t ms)
{
	if (json_object_size(l->asked) >= ASKED_MAX)
		json_object_clear(l->asked);
	json_object_set_new(l->asked, learned_key(m->id, m->provider->base_url).text,
			    json_integer(clock_mono_ms() + ms));
}

/* All have answered, or the time is over: the answers that came count. */
static void asking_end(void *user)
{
	struct learner *l = user;
	json_t *answers[LEARN_QUESTIONS] = {NULL};
	bool unnamed = strcmp(l->model.id, MODEL_UNNAMED) == 0, listed, there = false;
	struct learned told;

	for (size_t i = 0; i < LEARN_QUESTIONS; i++) {
		there |= l->calls[i].status != 0 && l->calls[i].status != LOADING;
		if (!l->calls[i].impl && l->calls[i].status == 200 && l->answers[i].len > 0)
			answers[i] = json_parse(l->answers[i].data, l->answers[i].len, NULL);
	}
	told = learn_facts(answers, l->model.wire_name);
	listed = learn_take_list(l->model.provider, answers[MODELS]);
	for (size_t i = 0; i < LEARN_QUESTIONS; i++)
		json_decref(answers[i]);
	if (!unnamed || !listed)
		learn_told(l, &l->model, &told, "server");
	if (!there || (unnamed && listed))
		ask_again_in(l, &l->model, LEARN_SOON_MS);
	asking_over(l);
}

static void learn_request(struct learner *l)
{
	const struct provider *p = l->model.provider;
	size_t len = strlen(p->base_url);
	bool v1 = len > 3 && strcmp(p->base_url + len - 3, "/v1") == 0;
	char root[PROVIDER_URL_MAX];
	struct http_pool_options o = {.base_url = root, .http2 = p->http2};

	snprintf(root, sizeof(root), "%.*s", (int)(v1 ? len - 3 : len), p->base_url);
	memset(l->calls, 0, sizeof(l->calls));
	if (!l->client)
		l->client = http_client_new(l->loop, NULL);
	l->pool = l->client ? http_pool_new(l->client, &o, NULL) : NULL;
	l->open = 0;
	for (size_t i = 0; l->pool && i < LEARN_QUESTIONS; i++)
		if (i == MODELS || !p->needs_key)
			question_start(l, i, v1 ? "/v1" : "");
	os_timer_set(l->timer, l->open > 0 ? LEARN_MS : 0);
}

/* Not at a service's own address, where ava's tables are right. */
static bool worth_asking(const struct model *m)
{
	return m->provider && !m->dialect->answer && m->dialect != &dialect_anthropic &&
	       strcmp(m->provider->base_url, m->provider->own_url) != 0 &&
	       (!m->known || !m->provider->needs_key);
}

/* Was the server asked a while ago? If not, note that it is asked now. */
static bool asked_lately(struct learner *l, const struct model *m)
{
	struct learned_key key = learned_key(m->id, m->provider->base_url);

	if (clock_mono_ms() < json_get_int(l->asked, key.text, 0))
		return true;
	if (!l->pool)
		ask_again_in(l, m, LEARN_AGAIN_MS);
	return false;
}

bool learn_ask(struct learner *l, const struct model *m, struct learn_ticket *t)
{
	bool same = l->pool && strcmp(l->model.id, m->id) == 0;

	if (l->stopped || !worth_asking(m) || (!same && asked_lately(l, m)))
		return false;
	list_add(&l->tickets, &t->node);
	if (l->pool)
		return true;
	l->model = *m;
	learn_request(l);
	return true;
}

/* ---- life */

struct learner *learner_new(struct os_loop *loop, int root_fd)
{
	struct learner *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->loop = loop;
	l->root_fd = root_fd;
	list_init(&l->tickets);
	l->asked = json_object();
	l->timer = os_timer_new(loop, asking_end, l);
	if (l->timer && l->asked)
		return l;
	learner_free(l);
	return NULL;
}

void learner_stop(struct learner *l)
{
	if (!l)
		return;
	l->stopped = true;
	if (l->timer)
		os_timer_stop(l->timer);
	asking_over(l);
}

void learner_free(struct learner *l)
{
	if (!l)
		return;
	learner_stop(l);
	while (l->saving)
		os_loop_step(l->loop, -1);
	os_timer_free(l->timer);
	json_decref(l->asked);
	http_client_free(l->client);
	free(l);
}
