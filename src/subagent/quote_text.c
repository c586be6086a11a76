/* Quotes as a person reads them: a person confirms what was shown, so that each word of a proposer
 * stands here, as far as there is room, with the number of characters that are not shown, and
 * nothing in it stays unseen. quote.c has the figures and the JSON for programs.
 *
 * Nothing fails but the buffer. */
#include "subagent/quote.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "agent/tool.h"
#include "base/rights_words.h"
#include "base/util.h"
#include "base/words.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "exec/repository.h"
#include "provider/learned.h"
#include "subagent/order.h"
#include "subagent/proof.h"
#include "subagent/rights.h"
#include "subagent/spec.h"

/* ---- the words of the proposer
 *
 * A person confirms what was shown. Each text goes through quote_render, which leaves nothing
 * unseen; a task is shown as far as there is room, with the number of characters that are not.
 * Hidden characters count as words of a model that has seen what is the person's (quote_hides). */

#define SENTENCE_CHARS 200  /* characters of a task in its sentence, and of a reason */
#define SHOWN_CHARS    3000 /* characters shown of the tasks of all runs of a quote */
#define SHOWN_BYTES    ((size_t)8 << 20)

/* A joiner or selector: allowed within a script or a picture, but elsewhere a row of them could
 * carry a text that nobody sees. */
static bool is_selector(uint32_t c)
{
	return c == 0xad || c == 0x200c || c == 0x200d || (c >= 0x180b && c <= 0x180d) ||
	       (c >= 0xfe00 && c <= 0xfe0f);
}

/* A mark of rows: within a sentence it could look like the next row of the quote, where a screen
 * breaks the line. */
static bool is_bullet(uint32_t c)
{
	return c == 0x2022 || c == 0x2023 || c == 0x2043 || c == 0x2219 || c == 0x25cf ||
	       c == 0x25e6;
}

/* Appends `s` as any screen shows it: gaps of any kind become one blank (with `rows` one line end,
 * if they have one). */
static void quote_render(struct buf *out, const char *s, size_t len, bool rows)
{
	size_t begin = out->len, from, n;
	uint32_t c = 0, before = 0;
	char gap = 0;

	for (size_t i = 0; i < len; i += n, before = c) {
		n = utf8_decode(s + i, len - i, &c);
		c = n > 0 ? c : 0xfffd;
		n = n > 0 ? n : 1;
		if (utf8_blank(c) || (c >= '\n' && c <= '\r')) {
			gap = gap == '\n' || (rows && c == '\n') ? '\n' : ' ';
			continue;
		}
		if (gap && out->len > begin)
			buf_addc(out, gap);
		gap = 0;
		from = out->len;
		if ((is_selector(c) && (before < 0x80 || is_selector(before))) ||
		    (!rows && is_bullet(c)))
			buf_addf(out, "\\u{%04x}", (unsigned)c);
		else
			utf8_terminal(out, s + i, n, false);
		if (out->len - from != n) /* the text was escaped to ASCII */
			c = 0;
	}
}

/* Characters shown of each task of n runs (0 or 1: one alone). */
static size_t quote_room(size_t n)
{
	return MAX(SHOWN_CHARS / MAX(n, (size_t)1), (size_t)SENTENCE_CHARS);
}

/* Characters of `text` that a quote with room for `room` of them does not show. */
static size_t chars_hidden(const char *text, size_t room)
{
	size_t chars, len = text ? strlen(text) : 0;
	struct buf b;

	if (len <= room / 4) /* no byte becomes more than four characters ("\\x1b") */
		return 0;
	buf_init(&b, SHOWN_BYTES);
	quote_render(&b, text, len, true);
	chars = buf_check(&b) == 0 ? utf8_count(b.data, b.len) : SIZE_MAX;
	buf_fini(&b);
	return chars > room ? chars - room : 0;
}

/* Appends as many characters as there is room for; returns how many more there are. */
static size_t render_cut(struct buf *out, const char *text, size_t room, bool rows)
{
	size_t begin = out->len, chars;

	quote_render(out, text, strlen(text), rows);
	chars = utf8_count(out->data ? out->data + begin : "", out->len - begin);
	if (buf_check(out) != 0 || chars <= room)
		return 0;
	out->len = begin + utf8_prefix(out->data + begin, out->len - begin, room);
	buf_adds(out, "…");
	return chars - room;
}

static void add_more(struct buf *out, const char *before, size_t hidden, const char *id)
{
	if (hidden > 0)
		buf_addf(out, WORDS_QUOTE_MORE(before, format_count(hidden).text, id));
}

/* Each line with a mark before it; terminals break longer ones further in (cli/term.c). */
static void quote_add_rows(struct buf *out, const char *s, size_t len)
{
	for (size_t n; len > 0; s += n, len -= n) {
		const char *end = memchr(s, '\n', len);

		n = end ? (size_t)(end - s) : len;
		buf_adds(out, WORDS_QUOTE_ROW);
		buf_add(out, s, n);
		n += end != NULL;
	}
}

bool quote_hides(const struct op_spawn *s, size_t n)
{
	return (s->context && *s->context) || s->output_schema ||
	       chars_hidden(s->task, quote_room(n)) > 0 ||
	       chars_hidden(s->rationale, n > 0 ? 0 : SENTENCE_CHARS) > 0 ||
	       (n > 0 && s->ntags > 0);
}

bool quote_hides_task(const struct run_spec *s)
{
	return chars_hidden(s->task, quote_room((size_t)s->group.size)) > 0;
}

/* ---- for a person */

/* "to find main", but "to answer: Where is main?" and "for: hi there.": a task that does not begin
 * with a verb would make no sentence. The words stand between blanks. */
static const char questions[] = " what which where who whose when why how is are was does did can "
				"could should ";
static const char verbs[] =
	" add analyse analyze answer ask assess audit browse build calculate change check choose "
	"cite clean collect compare compute confirm convert count crawl create critique debug "
	"decide "
	"describe determine diagnose dig discover do document download draft ensure estimate "
	"evaluate "
	"examine explain explore extract fetch figure find fix follow gather get give go group "
	"help "
	"identify implement inspect investigate judge learn list locate look make map measure "
	"monitor "
	"name note outline pick plan point propose prove quote rank read refactor remember remove "
	"rename replace report reproduce research review rewrite run say scan search see show "
	"sketch "
	"sort spend study suggest sum summarise summarize survey tell test think trace track "
	"translate "
	"try understand update use validate verify wait walk watch work write ";

static bool quote_begins_with(const char *task, const char *words)
{
	size_t len = strcspn(task, " \t\r\n'.,:;!?");

	for (const char *w = words + 1; *w != '\0'; w += strcspn(w, " ") + 1)
		if (strcspn(w, " ") == len && strncasecmp(w, task, len) == 0)
			return true;
	return false;
}

/* "to find main.": the task as the end of a sentence, on one line, not too long, safe to
 * show. */
static void quote_task(struct buf *out, const struct run_spec *s)
{
	const char *task = s->task + strspn(s->task, " \t\r\n");
	size_t len = strlen(task), first, cut;
	bool question, verb, resumed = s->resumed_from[0] != '\0';
	struct buf line;

	while (len > 0 && strchr(" \t\r\n", task[len - 1]))
		len--;
	question = quote_begins_with(task, questions) || (len > 0 && task[len - 1] == '?');
	verb = !question && quote_begins_with(task, verbs);
	buf_init(&line, SHOWN_BYTES);
	first = MIN(strcspn(task, "\r\n"), len); /* the other lines stand in rows below */
	quote_render(&line, task, first, false);
	cut = utf8_prefix(line.data ? line.data : "", line.len, SENTENCE_CHARS);
	buf_adds(out, resumed || verb || question ? "to " : "for: ");
	if (resumed) {
		buf_adds(out, "go on from ");
		if (s->resumed_call > 0)
			buf_addf(out, "model call %lld of ", (long long)s->resumed_call);
		buf_addf(out, "%s%s", s->resumed_from, verb || question ? " and " : ", for: ");
	}
	buf_adds(out, question ? "answer: " : "");
	/* "Find main" goes on a sentence as "find main"; "HTTP" stays. */
	if (verb && line.len > 1 && islower((unsigned char)line.data[1]))
		line.data[0] = (char)tolower((unsigned char)line.data[0]);
	if (cut < line.len || first < len) {
		buf_add(out, line.data, cut);
		buf_adds(out, "…");
	} else {
		while (verb && line.len && strchr(" .!", line.data[line.len - 1]))
			line.len--;
		buf_add(out, line.data, line.len);
		buf_adds(out, line.len > 0 && strchr(".?!", line.data[line.len - 1]) ? "" : ".");
	}
	buf_fini(&line);
}

/* The limits that end the runs, whatever the estimate was. */
static void limits_text(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	const struct run_spec *s = specs[0];
	const struct spec_group *g = &s->group;
	struct agent_limits most = s->agent.limits; /* the highest of any run */
	bool differ = false;

	for (unsigned i = 1; i < n; i++) {
		const struct agent_limits *l = &specs[i]->agent.limits;

		differ |= l->time_ms != most.time_ms || l->cost_microusd != most.cost_microusd ||
			  l->tokens != most.tokens || l->iterations != most.iterations;
		most.time_ms = MAX(most.time_ms, l->time_ms);
		most.cost_microusd = MAX(most.cost_microusd, l->cost_microusd);
		most.tokens = MAX(most.tokens, l->tokens);
		most.iterations = MAX(most.iterations, l->iterations);
	}

	buf_adds(out, WORDS_QUOTE_LIMITS);
	if (g->id[0]) {
		if (g->cost_microusd >= 0)
			buf_addf(out, "%s%s", format_money_limit(g->cost_microusd).text,
				 g->time_ms > 0 ? WORDS_AND : WORDS_QUOTE_FOR_ALL);
		if (g->time_ms > 0)
			buf_addf(out, "%s" WORDS_QUOTE_FOR_ALL, format_time_limit(g->time_ms).text);
		buf_adds(out, WORDS_QUOTE_EACH);
	}
	buf_addf(out, "%s%s", differ ? WORDS_QUOTE_WIDEST : WORDS_QUOTE_STOPS,
		 format_time_limit(most.time_ms).text);
	if (s->agent.price.input >= 0 && s->agent.price.output >= 0)
		buf_addf(out, ", %s", format_money_limit(most.cost_microusd).text);
	buf_addf(out, ", %s, %s", words_amount(WORDS_LIMIT_TOKENS, most.tokens).text,
		 words_amount(WORDS_LIMIT_REPLIES, most.iterations).text);
	if (s->agent.ask_limit)
		buf_adds(out, WORDS_QUOTE_STOP_ASKS);
	if (s->on_quota != QUOTA_PARK)
		buf_adds(out, s->on_quota == QUOTA_ASK ? WORDS_QUOTE_QUOTA_ASKS
						       : WORDS_QUOTE_QUOTA_FAILS);
}

/* The role file of the i-th run, unless it is built in or told already. */
static void text_source(struct buf *out, struct run_spec *const *specs, unsigned i)
{
	const struct role *r = specs[i]->role;

	for (unsigned k = 0; k < i; k++)
		if (role_same(specs[k]->role, r))
			return;
	if (r->source == ROLE_BUILTIN)
		return;
	buf_addf(out, "\n• Role: %s, from ", r->name);
	utf8_terminal(out, r->path, strlen(r->path), false);
	buf_adds(out, r->source == ROLE_PROJECT ? " (the project's)" : "");
}

static void quote_add_shown(struct buf *out, const char *before, const char *text)
{
	buf_adds(out, before);
	utf8_terminal(out, text, strlen(text), false);
}

/* Instruction files, skills, and what of them is left out, of the i-th run, unless told already. */
static void guide_text(struct buf *out, struct run_spec *const *specs, unsigned i)
{
	const json_t *g = specs[i]->guide, *list = json_object_get(g, "files"), *o;
	size_t k;

	for (unsigned j = 0; j < i; j++)
		if (spec_guide_same(specs[j], specs[i]))
			return;
	if (json_is_false(json_object_get(g, "wanted")))
		buf_adds(out, WORDS_QUOTE_INSTRUCTIONS WORDS_QUOTE_NO_INSTRUCTIONS);
	json_array_foreach(list, k, o)
	{
		quote_add_shown(out, k ? ", " : WORDS_QUOTE_INSTRUCTIONS, json_str(o, "name"));
		buf_addf(out, " (%s)", format_bytes(json_get_int(o, "bytes", 0)).text);
	}
	list = json_object_get(g, "skills");
	json_array_foreach(list, k, o)
	{
		quote_add_shown(out, k ? ", " : WORDS_QUOTE_SKILLS, json_str(o, "name"));
		if (strcmp(json_str(o, "source"), role_sources[ROLE_PROJECT]) == 0)
			buf_adds(out, " (the project's)");
	}
	list = json_object_get(g, "notes");
	json_array_foreach(list, k, o)
		quote_add_shown(out, k ? "; " : WORDS_QUOTE_LEFT_OUT, json_string_value(o));
}

static void alone_text(struct buf *out, const struct run_spec *s, const char *id)
{
	uint16_t at = 0;
	bool first = true;
	struct model m;

	buf_addf(out, WORDS_QUOTE_MODEL(s->model->id,
					s->thinking && s->model->thinking != MODEL_THINKING_NONE));
	for (; spec_next_model(s, &at, true, &m); first = false)
		buf_addf(out, "%s%s", first ? WORDS_QUOTE_OVERLOADED : ", ", m.id);
	if (s->rationale[0]) {
		buf_adds(out, WORDS_QUOTE_WHY);
		add_more(out, " ", render_cut(out, s->rationale, SENTENCE_CHARS, false), id);
	}
	if (s->tags[0])
		buf_addf(out, WORDS_QUOTE_TAGS "%s", s->tags);
	for (unsigned i = 0; i < s->agent.nask_before; i++)
		buf_addf(out, "%s%s", i ? ", " : WORDS_QUOTE_ASKS, s->ask_before[i]->name);
}

/* The folders in whose copies the runs may change files. */
static void changes_text(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	const char *said = "";

	for (unsigned i = 0; i < n; i++) {
		const struct run_spec *s = specs[i];

		if (!spec_granted(s, "rw") || strcmp(s->cwd, said) == 0)
			continue;
		said = s->cwd;
		buf_adds(out, WORDS_QUOTE_CHANGES);
		utf8_terminal(out, said, strlen(said), false);
		buf_adds(out, WORDS_QUOTE_UNCHANGED);
	}
}

/* The commands that prove results, and what they run of the copies. */
static void check_text(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct run_spec *r = specs[i];
		bool copy = spec_granted(r, "rw");

		if (!r->agent.check)
			continue;
		if (n > 1)
			buf_addf(out, WORDS_QUOTE_CHECK_OF(i + 1));
		else
			buf_adds(out, WORDS_QUOTE_CHECK);
		quote_render(out, r->agent.check, strlen(r->agent.check), false);
		buf_addf(out, WORDS_QUOTE_CHECK_HOW(copy));
		if (r->agent.check_rounds > 0)
			buf_addf(out, WORDS_QUOTE_CHECK_ROUNDS((int)r->agent.check_rounds));
		else
			buf_adds(out, WORDS_QUOTE_CHECK_ONCE);
		if (copy)
			proof_named(out, r->agent.check, r->cwd);
	}
}

static void git_text(struct buf *out, const struct quotes *q, struct run_spec *const *specs,
		     unsigned n)
{
	const char *git, *said = "";
	struct repository r;

	for (unsigned i = 0; i < n; i++) {
		git = quote_git(q, specs + i, &r);
		if (!git || strcmp(said, specs[i]->cwd) == 0)
			continue;
		said = specs[i]->cwd;
		buf_adds(out, "\n• Git: its commands can read ");
		utf8_terminal(out, git, strlen(git), false);
		buf_adds(out, ", the history of all of the repository");
	}
}

/* The rights of all runs together, and each run that alone has all three. */
static void rights_text(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	unsigned all = 0, reads = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct run_spec *s = specs[i];

		all |= s->rights;
		reads |= rights_reads(s->tools, s->agent.ntools, s->cwd[0]);
		reads |= s->given & TOOL_PRIVATE ? RIGHTS_OTHER : 0;
	}
	buf_adds(out, "\n• Rights: ");
	rights_words(out, all, reads);
	for (unsigned i = 0; i < n; i++) {
		if (!rights_all_three(specs[i]->rights))
			continue;
		buf_adds(out, "\n• All three together: ");
		if (n > 1)
			buf_addf(out, "run %u, ", i + 1);
		buf_adds(out, "what a stranger wrote could make it send your data out");
	}
}

/* The addresses of its task, which a run may read beside those that pages and results name. A host
 * with letters beyond ASCII is shown escaped, since they may look like others. */
static void addresses_text(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	struct buf all;
	size_t over = 0, len, host;
	unsigned sends = 0;

	buf_init(&all, SHOWN_BYTES);
	for (unsigned i = 0; i < n; i++)
		if (rights_reads_web(specs[i]->tools, specs[i]->agent.ntools)) {
			over += rights_addresses(&all, specs[i]->task, specs[i]->cwd[0] != 0);
			sends |= specs[i]->given & TOOL_OUT;
		}
	for (const char *at = all.data; at && *at; at += len + 1) {
		const char *slashes = strstr(at, "://");

		len = strcspn(at, "\n");
		host = slashes && slashes < at + len ? (size_t)(slashes + 3 - at) : 0;
		host += strcspn(at + host, "/?#\n");
		buf_adds(out, WORDS_QUOTE_FETCH);
		for (size_t i = 0, k; i < len; i += k) {
			uint32_t c = 0;

			k = MAX(utf8_decode(at + i, len - i, &c), (size_t)1);
			if (i < host && c >= 0x80)
				buf_addf(out, "\\u{%04x}", (unsigned)c);
			else
				quote_render(out, at + i, k, false);
		}
	}
	if (over > 0)
		buf_addf(out, WORDS_QUOTE_FETCH_NOT(over));
	if (sends && all.len > 0)
		buf_adds(out, WORDS_QUOTE_FETCH_SENDS);
	buf_fini(&all);
}

/* Says so, once, if a role wishes for a web search and there is none. */
static void search_text(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (role_wishes(specs[i]->role, "web_search") && !tool_find("web_search") &&
		    rights_reads_web(specs[i]->tools, specs[i]->agent.ntools)) {
			buf_adds(out, WORDS_QUOTE_NO_SEARCH);
			return;
		}
}

/* Says so of the first run whose limits pay no call. */
static void unpaid_text(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	struct ava_error why;
	int64_t least;

	for (unsigned i = 0; i < n; i++)
		if (spec_pays(specs[i], 0, &least, &why) != 0) {
			buf_addf(out, WORDS_QUOTE_UNPAID(why.text));
			return;
		}
}

const char *quote_split(struct run_spec *const *specs, unsigned n)
{
	const char *found = NULL;

	for (unsigned i = 0; i < n; i++) {
		const struct run_spec *s = specs[i];
		bool all = rights_all_three(s->rights);
		unsigned ways = TOOL_OUT | (s->given & TOOL_OUT ? TOOL_WEB : 0);

		if (all && spec_granted(s, "fetch_any"))
			return NULL;
		for (unsigned k = 0; all && k < s->agent.ntools; k++) {
			if (!(s->tools[k]->flags & ways))
				continue;
			if (found && strcmp(found, s->tools[k]->name) != 0)
				return NULL;
			found = s->tools[k]->name;
		}
	}
	return found;
}

/* Length of the schema, if it is the request's and not the role's; else 0. */
static size_t schema_chars(const struct run_spec *s)
{
	json_t *own =
		s->role->schema ? json_parse(s->role->schema, strlen(s->role->schema), NULL) : NULL;
	bool of_role = own && json_equal(own, s->output_schema);

	json_decref(own);
	return s->output_schema && !of_role ? strlen(s->agent.output_schema) : 0;
}

/* Has the task more than one line of words? */
static bool has_rows(const char *task)
{
	task += strspn(task, " \t\r\n");
	task += strcspn(task, "\r\n");
	return task[strspn(task, " \t\r\n")] != '\0';
}

/* Long tasks whole, as far as there is room, and how many characters are shown nowhere. Each row
 * has a mark, so that no text passes for a row of the quote. */
static void words_text(struct buf *out, struct run_spec *const *specs, unsigned n, const char *id)
{
	size_t context = 0, schema = 0, hidden;
	struct buf cut;

	buf_init(&cut, SHOWN_BYTES);
	for (unsigned i = 0; i < n; i++) {
		const struct run_spec *s = specs[i];

		context += utf8_count(s->context, strlen(s->context));
		schema += schema_chars(s);
		if (chars_hidden(s->task, SENTENCE_CHARS) == 0 && !has_rows(s->task))
			continue;
		buf_reset(&cut);
		hidden = render_cut(&cut, s->task, quote_room((size_t)s->group.size), true);
		if (s->group.id[0])
			buf_addf(out, WORDS_QUOTE_TASK_OF(i + 1));
		else
			buf_adds(out, WORDS_QUOTE_TASK);
		quote_add_rows(out, cut.data ? cut.data : "", cut.len);
		add_more(out, "\n  ", hidden, id);
	}
	if (context + schema > 0) {
		buf_adds(out, WORDS_QUOTE_UNSHOWN);
		if (context > 0)
			buf_addf(out, WORDS_QUOTE_CONTEXT(format_count(context).text));
		if (schema > 0)
			buf_addf(out, WORDS_QUOTE_SCHEMA(context > 0 ? WORDS_AND : "",
							 format_count(schema).text));
		buf_addf(out, WORDS_QUOTE_LOOK(id));
	}
	buf_fini(&cut);
}

/* `number`: of the run in its group; 0: it is alone. */
static void add_whole(struct buf *out, const char *head, unsigned number, const char *text)
{
	struct buf rows;

	if (!*text)
		return;
	buf_init(&rows, SHOWN_BYTES);
	quote_render(&rows, text, strlen(text), true);
	buf_addf(out, number ? "\n• %s of run %u:" : "\n• %s:", head, number);
	quote_add_rows(out, rows.data ? rows.data : "", rows.len);
	buf_fini(&rows);
}

int quote_rest(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct run_spec *s = specs[i];
		unsigned number = n > 1 ? i + 1 : 0;

		if (s->cwd[0] && (i == 0 || strcmp(s->cwd, specs[i - 1]->cwd) != 0)) {
			buf_adds(out, "\n" WORDS_QUOTE_FOLDER_HEAD);
			quote_render(out, s->cwd, strlen(s->cwd), false);
		}
		if (quote_hides_task(s))
			add_whole(out, "Task", number, s->task);
		if (chars_hidden(s->rationale, s->group.id[0] ? 0 : SENTENCE_CHARS) > 0)
			add_whole(out, "Why", number, s->rationale);
		add_whole(out, "Tags", number, s->group.id[0] ? s->tags : "");
		add_whole(out, "Instructions and skills", number, spec_guide_text(s));
		add_whole(out, "Context", number, s->context);
		if (schema_chars(s) > 0)
			add_whole(out, "Output schema", number, s->agent.output_schema);
	}
	return buf_check(out);
}

/* Models, each once, of which their server told, or its counts show, that they see no tools. */
static void tools_text(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	const char *said = "";
	struct learned l;

	for (unsigned i = 0; i < n; i++) {
		const struct model *m = specs[i]->model;

		if (!m->provider || strcmp(m->id, said) == 0 ||
		    !learned_find(m->id, m->provider->base_url, &l) || l.tools >= 0)
			continue;
		said = m->id;
		buf_addf(out, WORDS_QUOTE_NO_TOOLS(said));
	}
}

/* The models of a group, each once. */
static void models_text(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	bool first = true;

	for (unsigned i = 0; i < n; i++) {
		unsigned k = 0;

		while (k < i && strcmp(specs[k]->model->id, specs[i]->model->id) != 0)
			k++;
		if (k < i)
			continue;
		buf_addf(out, "%s%s", first ? WORDS_QUOTE_MODELS : ", ", specs[i]->model->id);
		first = false;
	}
}

/* " (after one, 2)": what a run of a group waits for, by name or number. */
static void quote_after(struct buf *out, struct run_spec *const *specs, unsigned n,
			const struct after_set *after)
{
	bool first = true;

	for (unsigned i = 0; i < n; i++) {
		const char *name = specs[i]->group.name;

		if (!after_has(after, (int)i + 1))
			continue;
		buf_adds(out, WORDS_QUOTE_AFTER(first));
		if (name[0])
			buf_adds(out, name);
		else
			buf_addf(out, "%u", i + 1);
		first = false;
	}
	if (!first)
		buf_addc(out, ')');
}

int quote_text(struct buf *out, const struct quotes *q, struct run_spec *const *specs, unsigned n,
	       const char *id, const char *changed)
{
	const struct run_spec *s = specs[0];
	bool group = s->group.id[0] != 0;
	const char *names[QUOTE_NAMES_MAX], *split;
	struct ava_error small;
	struct quote all;
	unsigned count;

	quote_make(q, specs, n, &all);
	if (group)
		buf_addf(out, WORDS_QUOTE_SEVERAL(n, quote_how(specs, n, false)));
	else
		buf_addf(out, WORDS_QUOTE_ONE(s->role->display, s->order.id[0]));
	for (unsigned i = 0; i < n; i++) {
		if (group)
			buf_addf(out, "%u. %s%s%s ", i + 1, specs[i]->group.name,
				 specs[i]->group.name[0] ? ": " : "", specs[i]->role->display);
		quote_task(out, specs[i]);
		if (group && !s->group.chain)
			quote_after(out, specs, n, &specs[i]->group.after);
		buf_adds(out, group ? "\n" : " ");
	}
	buf_addf(out,
		 WORDS_QUOTE_TIME(group, words_minutes(all.minutes_min, all.minutes_max).text));
	if (all.cost_microusd >= 0)
		buf_addf(out, WORDS_QUOTE_COST(format_money_limit(all.cost_microusd).text,
					       !group && strncmp(s->model->id, "offline", 7) == 0));
	else
		buf_addf(out, WORDS_QUOTE_HELD(group ? WORDS_QUOTE_THEIRS
						     : words_amount(WORDS_LIMIT_TOKENS,
								    s->agent.limits.tokens)
							       .text));
	buf_adds(out, WORDS_QUOTE_TOOLS);
	count = quote_names_of(specs, n, false, names);
	for (unsigned i = 0; i < count; i++)
		buf_addf(out, "%s%s", i ? ", " : "", names[i]);
	rights_text(out, specs, n);
	search_text(out, specs, n);
	addresses_text(out, specs, n);
	changes_text(out, specs, n);
	check_text(out, specs, n);
	git_text(out, q, specs, n);
	if (q->unboxed && quote_runs_commands(specs, n))
		buf_adds(out,
			 "\n• NO SANDBOX is required (sandbox.required is 0): its commands may run "
			 "with your own rights");
	if (group)
		models_text(out, specs, n);
	else
		alone_text(out, s, id);
	for (unsigned i = 0; i < n; i++)
		text_source(out, specs, i);
	for (unsigned i = 0; i < n; i++)
		guide_text(out, specs, i);
	for (unsigned i = 0; i < n; i++)
		if (spec_fits(specs[i], &small) != 0)
			buf_addf(out, WORDS_QUOTE_SMALL(small.text));
	unpaid_text(out, specs, n);
	tools_text(out, specs, n);
	limits_text(out, specs, n);
	order_quote_text(out, s);
	words_text(out, specs, n, id);
	if (changed && *changed)
		buf_addf(out, WORDS_QUOTE_CHANGED(changed));
	if (spec_asks_all_three(specs, n))
		buf_adds(out, "\nThis " RIGHTS_SENTENCE ".");
	buf_adds(out, "\n" WORDS_PROCEED);
	if (!spec_asks_all_three(specs, n))
		buf_adds(out, WORDS_PROCEED_YES);
	else if ((split = quote_split(specs, n)) != NULL)
		buf_addf(out, WORDS_PROCEED_SPLIT(split));
	else
		buf_adds(out, WORDS_PROCEED_ALL);
	return buf_check(out);
}
