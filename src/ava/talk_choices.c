/* The schemas of spawn_subagent and spawn_parallel: the roles and models that there are, as enums
 * with what they cost, never free text.
 *
 * They depend on the working folder and its files when a conversation begins; talk_tools.c keeps
 * them. Words of roles are of files and are escaped. Nothing fails but the buffer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/prompt.h"
#include "agent/tool.h"
#include "ava/talk.h"
#include "base/words.h"
#include "codec/json.h"
#include "subagent/rolebook.h"

#define CHOICE_ROLES  40 /* roles named to Ava */
#define CHOICE_MODELS 16 /* models of models.list named to Ava */
#define RUNS_MAX      20 /* runs of one spawn_parallel; nobody reads a quote of more */

/* The role finds pages by a search that is not there. Other roles can read pages of a known
 * address. */
static bool lost_without_search(const struct role *r)
{
	return role_wishes(r, "web_search") && !tool_find("web_search") && r->core[0] &&
	       strcmp(r->core[0], "read_webpages") == 0;
}

static void add_roles(struct buf *b, const struct book_list *all, const struct settings *set)
{
	struct buf about, safe;
	unsigned n = 0;

	buf_init(&about, 1u << 16);
	buf_adds(b, "\"role\":{\"type\":\"string\",\"enum\":[");
	for (size_t i = 0; i < all->n && n < CHOICE_ROLES; i++) {
		const struct role *r = all->items[i].role;

		if (all->items[i].why || role_usable(r, true, NULL) != 0 || lost_without_search(r))
			continue;
		buf_addf(b, "%s\"%s\"", n ? "," : "", r->name);
		buf_addf(&about, "%s%s: %s, up to %" PRId64 " s and %" PRId64 " cents",
			 n++ ? "; " : "", r->name, r->summary, spec_time_otherwise(r, set) / 1000,
			 spec_cost_otherwise(r, set) / 10000);
	}
	if (!tool_find("web_search"))
		buf_adds(&about, ". No search service is there: who reads pages needs their "
				 "addresses in the task; do not promise a search");
	buf_init(&safe, 1u << 17);
	buf_adds(&about, "; the person's own: files, see `ava roles`");
	notice_escape(&safe, about.data ? about.data : "", about.len);
	buf_adds(b, "],\"description\":");
	json_escape(b, safe.data ? safe.data : "", safe.len);
	buf_adds(b, "},");
	buf_fini(&about);
	buf_fini(&safe);
}

/* Appends "claude-haiku 1.00/5.00"; false: the model cannot be called. */
static bool add_model(struct buf *prices, const char *name, struct model *m)
{
	if (model_resolve(name, m, NULL, NULL) != 0)
		return false;
	buf_addf(prices, "%s%s ", prices->len ? "; " : "", name);
	if (m->price.input < 0)
		buf_adds(prices, "unknown");
	else
		buf_addf(prices, "%.2f/%.2f", (double)m->price.input / 1e6,
			 (double)m->price.output / 1e6);
	return true;
}

/* Writes the roles and models with their costs. A person may name any other model. */
static void add_choices(struct buf *b, const struct book_list *all, const struct settings *set)
{
	static const char *const names[] = {"claude-haiku", "claude-sonnet", "claude-opus"};
	char name[64], first[sizeof(((struct model *)0)->id)] = "";
	const struct model_row *own;
	bool differ = false;
	struct buf prices;
	struct model m;

	buf_init(&prices, 8192);
	add_roles(b, all, set);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!add_model(&prices, names[i], &m))
			continue;
		differ |= first[0] && strcmp(first, m.id) != 0;
		snprintf(first, sizeof(first), "%s", m.id);
	}
	for (size_t i = 0; (own = models_own(i)) != NULL && i < CHOICE_MODELS; i++) {
		const char *called = own->aliases ? own->aliases : own->id;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(called, " "), called);
		differ |= add_model(&prices, name, &m) && strcmp(first, m.id) != 0;
	}
	if (differ) /* else all names mean one model */
		buf_addf(b,
			 "\"model\":{\"type\":\"string\",\"maxLength\":120,\"description\":"
			 "\"leave it out for the role's own; or as the person says. Dollars per "
			 "million tokens, in/out: %s\"},",
			 prices.data);
	buf_fini(&prices);
}

#define TASK                                                                                       \
	"\"task\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":100000,\"description\":"      \
	"\"what to accomplish; stands on its own\"},"
#define TIMEOUT "\"timeout\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":604800"
#define CENTS   "\"max_cost_cents\":{\"type\":\"number\",\"minimum\":0"
#define PRESET  "\"preset\":{\"type\":\"string\",\"enum\":[\"quick\",\"standard\",\"deep\"]"
#define RUN_END "},\"required\":[\"role\",\"task\"],\"additionalProperties\":false}"

static const char spawn_rest[] = TASK
	"\"rationale\":{\"type\":\"string\",\"maxLength\":200,\"description\":\"why it is needed, "
	"in "
	"your words; the person reads it in the quote\"},"
	"\"context\":{\"type\":\"string\",\"maxLength\":100000,\"description\":\"what it must know "
	"beside the task\"},"
	"\"context_refs\":{\"type\":\"array\",\"maxItems\":16,\"items\":{\"type\":\"string\","
	"\"maxLength\":16},\"description\":\"ids of earlier calls whose results go along; "
	"cheaper than copying them\"}," PRESET
	",\"description\":\"cost cap 10, 50 or 200 cents; quick: a small model\"}," TIMEOUT
	",\"description\":\"seconds\"}," CENTS "},"
	"\"max_tokens\":{\"type\":\"integer\",\"minimum\":1},"
	"\"max_iterations\":{\"type\":\"integer\",\"minimum\":1},"
	"\"extended_thinking\":{\"type\":\"boolean\",\"description\":\"without it: as the role; "
	"quick: off\"},"
	"\"ask_before\":{\"type\":\"array\",\"maxItems\":16,\"items\":{\"type\":\"string\","
	"\"maxLength\":64},\"description\":\"tools of it whose calls wait for the person's yes, "
	"when they want that\"},"
	"\"grants\":{\"type\":\"array\",\"maxItems\":1,\"items\":{\"type\":\"string\",\"enum\":"
	"[\"rw\"]},\"description\":\"rw, only when they want files changed: it works on a copy "
	"and proposes a patch, which they write with `ava apply S-id`\"},"
	"\"check\":{\"type\":\"string\",\"maxLength\":1000,\"description\":\"shell command that "
	"proves the result in its copy, as their tests: a success only when it exits 0; needs "
	"run_bash\"},\"check_rounds\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":10},"
	"\"output_schema\":{\"type\":\"object\",\"additionalProperties\":true,\"description\":"
	"\"JSON Schema that the output of the result must fit\"}" RUN_END;

static const char parallel_rest[] = TASK
	"\"context\":{\"type\":\"string\",\"maxLength\":100000}," PRESET "}," TIMEOUT "}," CENTS
	"},\"max_tokens\":{\"type\":\"integer\",\"minimum\":1},"
	"\"max_iterations\":{\"type\":\"integer\",\"minimum\":1},"
	"\"extended_thinking\":{\"type\":\"boolean\"},\"id\":{\"type\":\"string\",\"maxLength\":32,"
	"\"description\":\"a short name, for "
	"after\"},\"after\":{\"type\":\"array\",\"maxItems\":20,"
	"\"items\":{\"type\":\"string\",\"maxLength\":32},\"description\":\"ids of those that must "
	"succeed first; it gets what they found\"}" RUN_END "}," CENTS
	",\"description\":\"of all of them together\"}," TIMEOUT
	",\"description\":\"seconds for all of them together\"},"
	"\"chain\":{\"type\":\"boolean\",\"description\":\"" WORDS_HANDED_ON "\"},"
	"\"share\":{\"type\":\"boolean\",\"description\":\"each may read what the others found, "
	"once they have ended\"}},\"required\":[\"runs\"],\"additionalProperties\":false}";

int talk_choices(struct buf *out, bool several, const struct book_list *all,
		 const struct settings *set)
{
	buf_adds(out, "{\"type\":\"object\",\"properties\":{");
	if (several)
		buf_addf(out,
			 "\"runs\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":%d,\"items\":{"
			 "\"type\":\"object\",\"properties\":{",
			 RUNS_MAX);
	add_choices(out, all, set);
	buf_adds(out, several ? parallel_rest : spawn_rest);
	return buf_check(out);
}
