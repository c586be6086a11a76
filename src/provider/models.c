/* The table of models; see models.h.
 *
 * Prices are micro-USD per million tokens, so $3.00 is 3000000; -1 is unknown
 * and stays unknown. Some services ask more for long prompts: such a model has
 * the window up to which its price holds, config.yaml may widen it and give the
 * higher price. What can fail: memory, and rows of config.yaml that clash. */
#include "provider/models.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/near.h"
#include "base/util.h"
#include "provider/provider.h"

const char *const models_date = "2026-11-21";
const char *const models_source = "the price pages of the services (platform.claude.com/docs, "
				  "developers.openai.com/api/docs/pricing)";

#define USD(n) ((int64_t)((n)*1000000 + 0.5))
/* Of Anthropic: a write of the five-minute cache is a quarter dearer than
 * input, a read a tenth of it. */
#define CLAUDE(in, out)                                                                            \
	{                                                                                          \
		USD(in), USD(out), USD((in) / 10.0), USD((in)*1.25)                                \
	}
#define GPT(in, out, cached)                                                                       \
	{                                                                                          \
		USD(in), USD(out), USD(cached), USD(in)                                            \
	}
/* From 5.6 on OpenAI asks for cache writes too. */
#define GPT_WRITE(in, out, cached, write)                                                          \
	{                                                                                          \
		USD(in), USD(out), USD(cached), USD(write)                                         \
	}

#define SAMPLING "temperature top_p top_k"
#define ADAPTIVE MODEL_THINKING_ADAPTIVE
#define BUDGET   MODEL_THINKING_BUDGET
#define NONE     MODEL_THINKING_NONE

/* clang-format off: a table */
static const struct model_row rows[] = {
	/* id, aliases, window, most output, prices, thinking, least cached prefix, rejects */
	{"anthropic/claude-fable-5-1", "claude-fable", 1000000, 128000, CLAUDE(10, 50), ADAPTIVE,
	 512, SAMPLING},
	{"anthropic/claude-opus-5-5", "claude-opus", 1000000, 128000, CLAUDE(4, 20), ADAPTIVE, 512,
	 SAMPLING},
	{"anthropic/claude-sonnet-5-5", "claude-sonnet", 1000000, 128000, CLAUDE(2, 10), ADAPTIVE,
	 1024, SAMPLING},
	{"anthropic/claude-haiku-5-5", "claude-haiku", 100000, 128000, CLAUDE(0.10, 0.50), ADAPTIVE,
	 1024, SAMPLING},
	{"anthropic/claude-fable-5", NULL, 1000000, 128000, CLAUDE(10, 50), ADAPTIVE, 512,
	 SAMPLING},
	{"anthropic/claude-opus-5", NULL, 1000000, 128000, CLAUDE(5, 25), ADAPTIVE, 512, SAMPLING},
	{"anthropic/claude-sonnet-5", NULL, 1000000, 128000, CLAUDE(2, 10), ADAPTIVE, 1024,
	 SAMPLING},
	{"anthropic/claude-opus-4-8", NULL, 1000000, 128000, CLAUDE(5, 25), ADAPTIVE, 1024,
	 SAMPLING},
	{"anthropic/claude-opus-4-7", NULL, 1000000, 128000, CLAUDE(5, 25), ADAPTIVE, 2048,
	 SAMPLING},
	{"anthropic/claude-opus-4-6", NULL, 1000000, 128000, CLAUDE(5, 25), ADAPTIVE, 4096, ""},
	{"anthropic/claude-sonnet-4-6", NULL, 1000000, 64000, CLAUDE(3, 15), ADAPTIVE, 1024, ""},
	{"anthropic/claude-opus-4-5", NULL, 200000, 64000, CLAUDE(5, 25), BUDGET, 4096, ""},
	{"anthropic/claude-sonnet-4-5", "claude-sonnet-4.5", 200000, 64000, CLAUDE(3, 15), BUDGET,
	 1024, ""},
	{"anthropic/claude-haiku-4-5", "claude-haiku-4.5", 200000, 64000, CLAUDE(1, 5), BUDGET,
	 4096, ""},
	{"anthropic/claude-opus-4-1", NULL, 200000, 32000, CLAUDE(15, 75), BUDGET, 1024, ""},
	{"anthropic/claude-sonnet-4", NULL, 200000, 64000, CLAUDE(3, 15), BUDGET, 1024, ""},
	{"openai/gpt-5.6-sol", "claude-opus claude-fable", 272000, 128000,
	 GPT_WRITE(5, 30, 0.50, 6.25), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.6-terra", "claude-sonnet", 272000, 128000, GPT_WRITE(2, 12, 0.20, 2.50),
	 ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.6-luna", "claude-haiku", 200000, 128000, GPT_WRITE(0.20, 1.20, 0.02, 0.25),
	 ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.5", NULL, 272000, 128000, GPT(5, 30, 0.50), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.4", NULL, 272000, 128000, GPT(2.50, 15, 0.25), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.4-mini", NULL, 272000, 128000, GPT(0.75, 4.50, 0.075), ADAPTIVE, 1024,
	 SAMPLING},
	{"openai/gpt-5.4-nano", NULL, 272000, 128000, GPT(0.20, 1.25, 0.02), ADAPTIVE, 1024,
	 SAMPLING},
	{"openai/gpt-5.2", NULL, 272000, 128000, GPT(1.75, 14, 0.175), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.1", NULL, 272000, 128000, GPT(1.25, 10, 0.125), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5", NULL, 272000, 128000, GPT(1.25, 10, 0.125), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5-mini", NULL, 272000, 128000, GPT(0.25, 2, 0.025), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5-nano", NULL, 272000, 128000, GPT(0.05, 0.40, 0.005), ADAPTIVE, 1024,
	 SAMPLING},
	{"openai/gpt-4.1", NULL, 1047576, 32768, GPT(2, 8, 0.50), NONE, 1024, "top_k"},
	{"openai/gpt-4.1-mini", NULL, 1047576, 32768, GPT(0.40, 1.60, 0.10), NONE, 1024, "top_k"},
	{"openai/gpt-4o", NULL, 128000, 16384, GPT(2.50, 10, 1.25), NONE, 1024, "top_k"},
	{"openai/gpt-4o-mini", NULL, 128000, 16384, GPT(0.15, 0.60, 0.075), NONE, 1024, "top_k"},
	/* Ids of OpenRouter that aliases stand for; their facts are those of the rows above. */
	{"openrouter/anthropic/claude-fable-5.1",
	 "claude-fable",
	 0,
	 0,
	 {-1, -1, -1, -1},
	 NONE,
	 0,
	 ""},
	{"openrouter/anthropic/claude-opus-5.5",
	 "claude-opus",
	 0,
	 0,
	 {-1, -1, -1, -1},
	 NONE,
	 0,
	 ""},
	{"openrouter/anthropic/claude-sonnet-5.5",
	 "claude-sonnet",
	 0,
	 0,
	 {-1, -1, -1, -1},
	 NONE,
	 0,
	 ""},
	{"openrouter/anthropic/claude-haiku-5.5",
	 "claude-haiku",
	 0,
	 0,
	 {-1, -1, -1, -1},
	 NONE,
	 0,
	 ""},
	{"openrouter/anthropic/claude-sonnet-4.5",
	 "claude-sonnet-4.5",
	 0,
	 0,
	 {-1, -1, -1, -1},
	 NONE,
	 0,
	 ""},
	{"openrouter/anthropic/claude-haiku-4.5",
	 "claude-haiku-4.5",
	 0,
	 0,
	 {-1, -1, -1, -1},
	 NONE,
	 0,
	 ""},
};
/* clang-format on */

/* Of config.yaml; strings live in `mem`. */
static struct {
	struct arena mem;
	struct model_row rows[MODELS_MAX];
	size_t nrows;
	const char *fallbacks[FALLBACKS_MAX];
	size_t nfallbacks;
	const char *standard; /* models.default */
	const char *ava;      /* ava.model */
} own;

const struct model_row *models_builtin(size_t i)
{
	return i < ARRAY_LEN(rows) ? &rows[i] : NULL;
}

/* ---- finding */

static bool is_alias_of_openrouter(const struct model_row *row)
{
	return row->context == 0;
}

/* `list` holds `word` between blanks. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *s = list; s && *s; s += strcspn(s, " "), s += strspn(s, " "))
		if (strcspn(s, " ") == len && strncmp(s, word, len) == 0)
			return true;
	return false;
}

static const struct model_row *exact(const char *id)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!is_alias_of_openrouter(&rows[i]) && strcmp(rows[i].id, id) == 0)
			return &rows[i];
	return NULL;
}

/* Cuts "-20251001" or "-2026-04-01" off; false: there is none. */
static bool cut_date(char *id)
{
	static const char *const forms[] = {"-dddddddd", "-dddd-dd-dd"};
	size_t len = strlen(id);

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		size_t n = strlen(forms[i]), k = 0;

		if (len <= n)
			continue;
		while (k < n && (forms[i][k] == 'd' ? isdigit((unsigned char)id[len - n + k]) != 0
						    : id[len - n + k] == '-'))
			k++;
		if (k == n) {
			id[len - n] = '\0';
			return true;
		}
	}
	return false;
}

const struct model_row *models_find_builtin(const char *id)
{
	const struct model_row *row;
	char text[264];

	if (strncmp(id, "openrouter/", 11) == 0)
		id += 11;
	if (strlen(id) >= sizeof(text))
		return NULL;
	snprintf(text, sizeof(text), "%s", id);
	/* OpenRouter writes claude-haiku-4.5, Anthropic claude-haiku-4-5. */
	if (strncmp(text, "anthropic/", 10) == 0)
		for (char *s = text; (s = strchr(s, '.')) != NULL;)
			*s = '-';
	row = exact(text);
	if (!row && cut_date(text))
		row = exact(text);
	return row;
}

const struct model_row *models_find(const char *id)
{
	for (size_t i = 0; i < own.nrows; i++)
		if (strcmp(own.rows[i].id, id) == 0)
			return &own.rows[i];
	return models_find_builtin(id);
}

const char *models_alias(const char *alias, const struct provider *p)
{
	size_t len = p ? strlen(p->name) : 0;

	for (size_t i = 0; i < own.nrows; i++)
		if (has_word(own.rows[i].aliases, alias))
			return own.rows[i].id;
	for (size_t i = 0; p && i < ARRAY_LEN(rows); i++)
		if (has_word(rows[i].aliases, alias) && strncmp(rows[i].id, p->name, len) == 0 &&
		    rows[i].id[len] == '/')
			return rows[i].id;
	return NULL;
}

bool models_is_alias(const char *alias)
{
	for (size_t i = 0; i < own.nrows; i++)
		if (has_word(own.rows[i].aliases, alias))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (has_word(rows[i].aliases, alias))
			return true;
	return false;
}

static const struct model_row *row_at(size_t i)
{
	return i < own.nrows ? &own.rows[i] : &rows[i - own.nrows];
}

/* The first alias that has `part` in it: "haiku" is claude-haiku. */
static void near_part(struct near *n, const char *part)
{
	for (size_t i = 0; n->len == 0 && i < own.nrows + ARRAY_LEN(rows); i++) {
		const char *list = row_at(i)->aliases;
		const char *at = list && strlen(part) > 2 ? strstr(list, part) : NULL;

		if (!at)
			continue;
		while (at > list && at[-1] != ' ')
			at--;
		n->best = at;
		n->len = strcspn(at, " ");
	}
}

const char *models_near(const char *name)
{
	static _Thread_local char best[200];
	struct near n = near_start(name);

	for (size_t i = 0; i < own.nrows + ARRAY_LEN(rows); i++) {
		const struct model_row *r = row_at(i);
		const char *tail = strchr(r->id, '/') + 1;

		near_words(&n, r->aliases ? r->aliases : "");
		near_word(&n, r->id, strlen(r->id));
		near_word(&n, tail, strlen(tail)); /* an id without its service */
		if (n.best == tail) {
			n.best = r->id;
			n.len = strlen(r->id);
		}
	}
	near_words(&n, "offline");
	near_part(&n, name);
	if (n.len == 0 || n.len >= sizeof(best))
		return NULL;
	snprintf(best, sizeof(best), "%.*s", (int)n.len, n.best);
	return best;
}

/* ---- what config.yaml adds */

static const char *keep(const char *s)
{
	if (!own.mem.max)
		arena_init(&own.mem, 1u << 20);
	return arena_copy(&own.mem, s, strlen(s));
}

static int no_memory(struct ava_error *err)
{
	return err_set(err, AVA_ENOMEM, "out of memory");
}

int models_add(const struct model_row *row, struct ava_error *err)
{
	struct model_row *r = &own.rows[own.nrows];
	const char *aliases = row->aliases ? row->aliases : "";
	char alias[128];

	if (own.nrows == MODELS_MAX)
		return err_set(err, AVA_ETOOBIG, "more than %d models", MODELS_MAX);
	for (size_t i = 0; i < own.nrows; i++)
		if (strcmp(own.rows[i].id, row->id) == 0)
			return err_set(err, AVA_EEXIST, "the model %.120s stands there twice",
				       row->id);
	for (const char *s = aliases; *s; s += strcspn(s, " "), s += strspn(s, " ")) {
		snprintf(alias, sizeof(alias), "%.*s", (int)strcspn(s, " "), s);
		if (models_alias(alias, NULL))
			return err_set(err, AVA_EEXIST,
				       "the alias %.80s stands for another model already", alias);
	}
	*r = *row;
	r->id = keep(row->id);
	r->aliases = keep(aliases);
	r->rejects = keep(row->rejects ? row->rejects : "");
	if (!r->id || !r->aliases || !r->rejects)
		return no_memory(err);
	own.nrows++;
	return 0;
}

int models_add_fallback(const char *id, struct ava_error *err)
{
	if (own.nfallbacks == FALLBACKS_MAX)
		return err_set(err, AVA_ETOOBIG, "more than %d fallbacks", FALLBACKS_MAX);
	for (size_t i = 0; i < own.nfallbacks; i++)
		if (strcmp(own.fallbacks[i], id) == 0)
			return err_set(err, AVA_EEXIST, "%.120s stands there twice", id);
	own.fallbacks[own.nfallbacks] = keep(id);
	if (!own.fallbacks[own.nfallbacks])
		return no_memory(err);
	own.nfallbacks++;
	return 0;
}

void models_clear_fallback(void)
{
	own.nfallbacks = 0;
}

const char *const *model_fallback(size_t *n)
{
	*n = own.nfallbacks;
	return own.fallbacks;
}

int models_set_default(const char *name, struct ava_error *err)
{
	own.standard = name && *name ? keep(name) : NULL;
	return name && *name && !own.standard ? no_memory(err) : 0;
}

const char *models_default(void)
{
	return own.standard;
}

int models_set_ava(const char *name, struct ava_error *err)
{
	own.ava = name && *name ? keep(name) : NULL;
	return name && *name && !own.ava ? no_memory(err) : 0;
}

const char *models_ava(void)
{
	return own.ava;
}

const struct model_row *models_own(size_t i)
{
	return i < own.nrows ? &own.rows[i] : NULL;
}

void models_reset(void)
{
	arena_fini(&own.mem);
	memset(&own, 0, sizeof(own));
}
