/* Spawns as JSON; client/spawn.h.
 *
 * What is absent (NULL, 0) is left out, so that the daemon's defaults hold. What can fail is
 * memory, which the buffer remembers: the caller's one check at the end says so. */
#include "client/spawn.h"

#include <string.h>

#include "base/spawn_options.h"

void spawn_put_str(struct jw *w, const char *key, const char *s)
{
	if (s)
		jw_str(w, key, s);
}

static void put_cost(struct jw *w, const char *key, int64_t microusd)
{
	if (microusd == AVA_FREE_ONLY)
		jw_int(w, key, 0);
	else if (microusd != 0)
		jw_fixed(w, key, microusd, 4);
}

static void put_seconds(struct jw *w, const char *key, int64_t ms)
{
	if (ms != 0)
		jw_fixed(w, key, ms, 3);
}

static void spawn_put_list(struct jw *w, const char *key, const char *const *list, size_t n)
{
	if (!list)
		return;
	jw_array(w, key);
	for (size_t i = 0; i < n; i++)
		jw_str(w, NULL, list[i]);
	jw_end(w);
}

/* Put a caller's JSON text; broken JSON is sent as a string, which the verb refuses. */
static void put_json(struct jw *w, const char *key, const char *text)
{
	json_t *v = text == NULL ? NULL : json_parse(text, strlen(text), NULL);

	if (v)
		jw_raw(w, key, text, strlen(text));
	else
		spawn_put_str(w, key, text);
	json_decref(v);
}

#define PUT_TEXT(key, field)  spawn_put_str(w, key, s->field);
#define PUT_MS(key, field)    put_seconds(w, key, s->field);
#define PUT_CENTS(key, field) put_cost(w, key, s->field);
#define PUT_TEXTS(key, field) spawn_put_list(w, key, s->field, s->n##field);
#define PUT_JSON(key, field)  put_json(w, key, s->field);
#define PUT_COUNT(key, field)                                                                      \
	if (s->field != 0)                                                                         \
		jw_int(w, key, s->field);
#define PUT_ROUNDS(key, field)                                                                     \
	if (s->field != 0)                                                                         \
		jw_int(w, key, s->field == AVA_NO_ROUNDS ? 0 : s->field);
#define PUT_SWITCH(key, field)                                                                     \
	if (s->field != 0)                                                                         \
		jw_bool(w, key, s->field > 0);
#define X(kind, field, key, ...) PUT_##kind(key, field)

static void put_options(struct jw *w, const struct ava_spawn *s)
{
	SPAWN_OPTIONS(X)
}

static void spawn_put_request(struct jw *w, const char *session, const char *request_id,
			      const char *confirm)
{
	spawn_put_str(w, "session_id", session);
	spawn_put_str(w, "request_id", request_id);
	spawn_put_str(w, "confirm", confirm);
}

void spawn_put(struct jw *w, const struct ava_spawn *s)
{
	put_options(w, s);
	spawn_put_request(w, s->session, s->request_id, s->confirm);
}

void spawn_put_from(struct jw *w, int64_t call, const char *checkpoint)
{
	if (call != 0)
		jw_int(w, "from", call);
	else
		spawn_put_str(w, "from", checkpoint);
}

void spawn_put_group(struct jw *w, const struct ava_spawn_group *g)
{
	if (g->nruns > 0)
		jw_array(w, "runs");
	for (size_t i = 0; i < g->nruns; i++) {
		jw_object(w, NULL);
		put_options(w, &g->runs[i]);
		jw_end(w);
	}
	if (g->nruns > 0)
		jw_end(w);
	spawn_put_request(w, g->session, g->request_id, g->confirm);
	spawn_put_str(w, "cwd", g->cwd);
	put_seconds(w, "timeout", g->timeout_ms);
	put_cost(w, "max_cost_cents", g->max_cost_microusd);
	jw_bool(w, "chain", g->chain != 0);
	jw_bool(w, "share", g->share != 0);
}
