/* Pages of the web as text; see pages.h.
 *
 * Happy path: a URL is fetched (net/web_fetch.h), and what came is made Markdown by a program of
 * its own in the sandbox: ava-page for HTML and other text, pdftotext for PDF; of the four that may
 * run at once each has one page. Text is kept for the run that asked, so that its next part, or
 * the same page once more, costs nothing; the list is bounded for a run and for all of them.
 *
 * No parser of what strangers wrote runs in this process. What can fail: the fetch, with its
 * class; the sandbox; a page that is not understood, which is said in a sentence of ours. */
#include "tool/pages.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "exec/child.h"
#include "exec/sandbox.h"
#include "net/address.h"
#include "net/http_client.h"

#define PDFTOTEXT     "/usr/bin/pdftotext"
#define CONVERTERS    4
#define SEARCHES      4 /* searches at once */
#define CONVERT_MS    20000
#define RUN_BYTES_MAX (4u << 20) /* bytes of pages kept for a run */
#define ALL_BYTES_MAX (64u << 20)
#define HTML_MAX      (2u << 20)
#define WALL_MAX      1500 /* bytes of text below which a page may be a wall */
#define REFRESH_MAX   300  /* bytes of text below which a redirect in the page is followed */
#define PDF_MAX       (10u << 20)
#define AGENT_ACCEPT  "text/html,application/xhtml+xml,text/*;q=0.9,application/pdf;q=0.8,*/*;q=0.5"

struct pages {
	struct os_loop *loop;
	struct pages_options o;
	char *texts[8]; /* owned texts that `o` points to */
	size_t ntexts;
	struct http_client *client; /* NULL: neither this nor `fetcher` was needed yet */
	struct fetcher *fetcher;
	struct http_pool *search;
	bool offers_search; /* the runtime is counted in `searchers` */
	struct list pages;  /* struct pages_page, the last used first */
	size_t bytes;
	struct list waiting; /* struct pages_get: fetched, not converted yet */
	unsigned converting;
	char *bwrap, *inside, *page;
};

extern const struct tool tool_web_search; /* defined in web_search.c */

/* ---- life */

static unsigned searchers; /* runtimes of this process that have a search service */

static const char *pages_keep_text(struct pages *w, const char *s, size_t len, bool *failed)
{
	char *copy = s ? calloc(1, len + 1) : NULL;

	if (!s)
		return NULL;
	*failed = *failed || !copy;
	if (copy)
		w->texts[w->ntexts++] = memcpy(copy, s, len);
	return copy;
}

struct pages *pages_new(struct os_loop *loop, const struct pages_options *o, struct ava_error *err)
{
	struct pages *w = calloc(1, sizeof(*w));
	const char *words;
	bool failed = !w;

	if (w) {
		const char **const texts[] = {&w->o.searxng, &w->o.brave,      &w->o.brave_url,
					      &w->o.tavily,  &w->o.tavily_url, &w->o.page,
					      &w->o.sandbox};

		w->loop = loop;
		w->o = *o;
		list_init(&w->pages);
		list_init(&w->waiting);
		for (words = o->allow_private; words && *words;)
			words += strlen(words) + 1;
		if (words)
			w->o.allow_private =
				pages_keep_text(w, o->allow_private,
						(size_t)(words - o->allow_private) + 1, &failed);
		for (size_t i = 0; i < ARRAY_LEN(texts); i++)
			*texts[i] =
				*texts[i] && **texts[i]
					? pages_keep_text(w, *texts[i], strlen(*texts[i]), &failed)
					: NULL;
	}
	if (!failed) {
		w->offers_search = pages_search_service(&w->o) != NULL;
		if (w->offers_search && searchers++ == 0)
			(void)tool_add(&tool_web_search);
		return w;
	}
	err_set(err, AVA_ENOMEM, "out of memory");
	pages_free(w);
	return NULL;
}

static void page_drop(struct pages_page *p)
{
	if (--p->refs > 0)
		return;
	buf_fini(&p->text);
	free(p->asked);
	free(p->url);
	free(p);
}

static void page_forget(struct pages *w, struct pages_page *p)
{
	list_del(&p->node);
	w->bytes -= p->text.len;
	page_drop(p);
}

void pages_forget(struct pages *w, const void *owner)
{
	LIST_EACH (&w->pages, n, tmp) {
		struct pages_page *p = LIST_ENTRY(n, struct pages_page, node);

		if (!owner || p->owner == owner)
			page_forget(w, p);
	}
}

void pages_free(struct pages *w)
{
	if (!w)
		return;
	pages_forget(w, NULL);
	fetcher_free(w->fetcher);
	http_pool_free(w->search);
	if (w->offers_search && --searchers == 0)
		tool_remove(&tool_web_search);
	http_client_free(w->client);
	for (size_t i = 0; i < w->ntexts; i++)
		free(w->texts[i]);
	free(w->bwrap);
	free(w->inside);
	free(w->page);
	free(w);
}

const struct pages_options *pages_settings(const struct pages *w)
{
	return &w->o;
}

static struct http_client *client_of(struct pages *w, struct ava_error *err)
{
	if (!w->client)
		w->client = http_client_new(w->loop, err);
	return w->client;
}

struct http_pool *pages_search_pool(struct pages *w, const char *url, struct ava_error *err)
{
	struct http_pool_options o = {.base_url = url, .connections_max = SEARCHES};

	if (!w->search && client_of(w, err))
		w->search = http_pool_new(w->client, &o, err);
	return w->search;
}

/* Private addresses that the configuration allows, as a list. */
#define LISTED_MAX 64
static void list_allowed(const struct pages *w, const char *out[LISTED_MAX + 1])
{
	size_t n = 0;

	for (const char *s = w->o.allow_private; s && *s && n < LISTED_MAX; s += strlen(s) + 1)
		out[n++] = s;
	out[n] = NULL;
}

int pages_parse(const struct pages *w, struct address_url *u, const char *url,
		struct ava_error *err)
{
	const char *listed[LISTED_MAX + 1];

	list_allowed(w, listed);
	return address_url_parse(u, url, NULL, listed, err);
}

static struct fetcher *fetcher_of(struct pages *w, struct ava_error *err)
{
	const char *listed[LISTED_MAX + 1];
	struct fetcher_options o = {.inside = listed,
				    .robots = w->o.robots,
				    .parallel = w->o.parallel,
				    .per_host = w->o.per_host,
				    .host_gap_ms = w->o.host_gap_ms,
				    .resolve = w->o.resolve};

	if (w->fetcher || !client_of(w, err))
		return w->fetcher;
	list_allowed(w, listed);
	w->fetcher = fetcher_new(w->client, w->loop, &o, err);
	return w->fetcher;
}

/* ---- pages that are kept */

/* Is the page kept? Only one that was asked for without headers of the caller's own, and no
 * failure, which may be over soon. */
static bool pages_is_kept(const struct pages_get *g, int status)
{
	return !g->accept && !g->language && status < 400;
}

static struct pages_page *page_find(struct pages *w, const struct pages_get *g)
{
	if (!pages_is_kept(g, 0))
		return NULL;
	LIST_EACH (&w->pages, n, tmp) {
		struct pages_page *p = LIST_ENTRY(n, struct pages_page, node);

		if (p->owner != g->owner || p->raw != g->raw ||
		    (strcmp(p->asked, g->url) != 0 && strcmp(p->url, g->url) != 0))
			continue;
		list_del(&p->node);
		list_add_front(&w->pages, &p->node);
		return p;
	}
	return NULL;
}

static void page_keep(struct pages *w, struct pages_page *p)
{
	size_t own = 0;

	p->refs++;
	w->bytes += p->text.len;
	list_add_front(&w->pages, &p->node);
	LIST_EACH (&w->pages, n, tmp) { /* the last used first */
		struct pages_page *old = LIST_ENTRY(n, struct pages_page, node);

		own += old->owner == p->owner ? old->text.len : 0;
		if (old != p && old->owner == p->owner && own > RUN_BYTES_MAX)
			page_forget(w, old);
	}
	while (w->bytes > ALL_BYTES_MAX && w->pages.prev != &p->node)
		page_forget(w, LIST_ENTRY(w->pages.prev, struct pages_page, node));
}

/* ---- how a get ends */

static void convert_more(struct pages *w);

static void get_over(struct pages_get *g)
{
	web_fetch_fini(&g->fetch);
	g->done(g);
}

static void get_failed(struct pages_get *g, const char *class, const char *sentence)
{
	g->class = class;
	snprintf(g->sentence, sizeof(g->sentence), "%s", sentence);
	get_over(g);
}

/* A page for a finished fetch; the caller adds its text. NULL: no memory. */
static struct pages_page *page_new(const struct pages_get *g)
{
	struct pages_page *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->owner = g->owner;
	p->raw = g->raw;
	p->refs = 1;
	p->status = g->fetch.status;
	p->asked = strdup(g->url);
	p->url = strdup(g->fetch.final_url);
	buf_init(&p->text, PAGES_TEXT_MAX * 3 + 1);
	if (p->asked && p->url)
		return p;
	page_drop(p);
	return NULL;
}

#define LOOKS(what) "this looks like " what ", not the page"
#define SAYS_MAX    16

/* Words that mark a wall; searched for in short pages only, since a long one may be about walls. */
static const struct {
	const char *wall, *says[SAYS_MAX];
} walls[] = {
	{LOOKS("a challenge page (a check for robots)"),
	 {"just a moment", "checking your browser", "checking if the site connection is secure",
	  "verify you are", "verifying you are", "you are human", "not a robot", "captcha",
	  "unusual traffic", "title: attention required", "title: access denied", "ddos protection",
	  "press & hold"}},
	{LOOKS("a page that needs JavaScript"),
	 {"enable javascript", "javascript enabled", "javascript is disabled",
	  "javascript is required", "requires javascript", "turn on javascript",
	  "without javascript"}},
	{LOOKS("a \"not found\" page"),
	 {"not be found", "page not found", "title: not found", "title: 404", "404 not found",
	  "error 404", "404 error", "page you are looking for", "page you were looking for",
	  "page you requested", "page does not exist", "page no longer exists",
	  "seite nicht gefunden", "page introuvable", "no encontrada"}},
	{LOOKS("a page to log in"),
	 {"title: log in", "title: login", "title: sign in", "log in to continue",
	  "sign in to continue", "please log in", "please sign in", "must be logged in",
	  "must log in"}},
	{LOOKS("a page that asks for consent"),
	 {"before you continue", "title: we value your privacy", "title: consent"}},
};

static const char *wall_of(const struct pages_page *p)
{
	const char *text = p->text.data ? p->text.data : "";

	for (size_t i = 0; p->text.len <= WALL_MAX && i < ARRAY_LEN(walls); i++)
		for (const char *const *says = walls[i].says; *says; says++)
			if (strcasestr(p->head, *says) || strcasestr(text, *says))
				return walls[i].wall;
	return NULL;
}

/* Give the page its text, keep it, and end the get. */
static void get_answered(struct pages_get *g, struct pages_page *p, const char *text, size_t len)
{
	len = MIN(len, PAGES_TEXT_MAX);
	if (utf8_plain(&p->text, text, len) != 0) {
		page_drop(p);
		get_failed(g, "io", "out of memory");
		return;
	}
	hash_sha256_hex(p->text.data ? p->text.data : "", p->text.len, p->hash);
	p->wall = g->raw ? NULL : wall_of(p);
	if (pages_is_kept(g, p->status) && !p->wall) /* a wall may be gone the next time */
		page_keep(g->pages, p);
	g->page = p;
	get_over(g);
}

/* ---- raw: the bytes as sent, in UTF-8 */

/* Is the body valid UTF-8, and neither UTF-16 nor a charset with shifts? */
static bool is_utf8(const struct buf *b)
{
	return b->len == 0 || (utf8_valid(b->data, b->len) && !memchr(b->data, '\0', b->len) &&
			       !memchr(b->data, '\x1b', b->len));
}

static void raw_head(const struct pages_get *g, struct pages_page *p)
{
	snprintf(p->head, sizeof(p->head), "status: %d\ntype: %s\n", g->fetch.status,
		 g->fetch.type[0] ? g->fetch.type : "not said");
}

/* Answer with the body as sent; one with NULs is refused, other bytes are made UTF-8. */
static void take_raw(struct pages_get *g)
{
	const struct buf *b = &g->fetch.body;
	struct pages_page *p;

	if (b->len > 0 && memchr(b->data, '\0', MIN(b->len, (size_t)4096))) {
		get_failed(g, web_fetch_class(FETCH_TYPE), web_fetch_sentence(FETCH_TYPE));
		return;
	}
	p = page_new(g);
	if (!p) {
		get_failed(g, "io", "out of memory");
		return;
	}
	raw_head(g, p);
	p->more = b->len > PAGES_TEXT_MAX;
	get_answered(g, p, b->data ? b->data : "", b->len);
}

/* ---- Markdown, and text in other charsets: by a program in the sandbox */

/* Add "title: …\n" from the first line of ava-page. */
static void add_fact(struct pages_page *p, const json_t *said, const char *key)
{
	const char *value = json_str(said, key);
	struct buf plain;
	size_t used = strlen(p->head), n;

	buf_init(&plain, 8192);
	if (utf8_plain(&plain, value, MIN(strlen(value), (size_t)2000)) == 0 && plain.len > 0) {
		for (char *c = plain.data; *c; c++)
			*c = *c == '\n' || *c == '\t' ? ' ' : *c;
		n = utf8_prefix(plain.data, plain.len, 100);
		snprintf(p->head + used, sizeof(p->head) - used, "%s: %.*s\n", key, (int)n,
			 plain.data);
	}
	buf_fini(&plain);
}

/* Follow a page with hardly any text to the address it leads to. */
static bool pages_follow(struct pages_get *g, const char *to, size_t text_len)
{
	enum web_fetch_fault fault;

	if (!*to || text_len > REFRESH_MAX || (text_len > 0 && !strcmp(to, g->fetch.final_url)))
		return false;
	fault = web_fetch_follow(g->pages->fetcher, &g->fetch, to);
	if (fault)
		get_failed(g, web_fetch_class(fault), web_fetch_sentence(fault));
	return true;
}

static void pages_take_text(struct pages_get *g, struct pages_page *p, const char *s, size_t len)
{
	const char *eol = memchr(s, '\n', len);
	json_t *said = eol ? json_parse(s, (size_t)(eol - s), NULL) : NULL;

	if (!json_is_object(said)) {
		json_decref(said);
		page_drop(p);
		get_failed(g, "not_understood", "this page could not be made text");
		return;
	}
	if (pages_follow(g, json_str(said, "refresh"), (size_t)(s + len - eol) - 1)) {
		json_decref(said);
		page_drop(p);
		return;
	}
	if (g->raw) {
		raw_head(g, p);
		add_fact(p, said, "charset");
	} else {
		add_fact(p, said, "title");
		add_fact(p, said, "date");
		add_fact(p, said, "lang");
	}
	p->more = json_get_bool(said, "truncated", false);
	json_decref(said);
	for (eol++; !g->raw && eol < s + len && *eol == '\n'; eol++)
		;
	get_answered(g, p, eol, (size_t)(s + len - eol));
}

static void take_pdf(struct pages_get *g, struct pages_page *p, const char *s, size_t len)
{
	struct buf text;

	buf_init(&text, len * 8 + 1);
	for (size_t i = 0; i < len; i++) { /* a form feed separates two pages */
		if (s[i] == '\f')
			buf_adds(&text, i + 1 < len ? "\n\n---\n\n" : "\n");
		else
			buf_addc(&text, s[i]);
	}
	snprintf(p->head, sizeof(p->head), "type: PDF\n");
	p->more = len > PAGES_TEXT_MAX;
	get_answered(g, p, text.data ? text.data : "", text.len);
	buf_fini(&text);
}

static bool is_pdf(const struct pages_get *g)
{
	const struct buf *b = &g->fetch.body;

	return !g->raw && (strcmp(g->fetch.type, "application/pdf") == 0 ||
			   (b->len > 5 && memcmp(b->data, "%PDF-", 5) == 0));
}

static void converted(const struct exec_end *end, void *user)
{
	struct pages_get *g = user;
	struct pages *w = g->pages;
	struct pages_page *p;

	g->child = NULL;
	w->converting--;
	p = end->how == EXEC_EXITED && end->code == 0 ? page_new(g) : NULL;
	if (end->how == EXEC_STOPPED)
		get_failed(g, "cancelled", "cancelled");
	else if (!p && g->raw)
		take_raw(g);
	else if (!sandbox_layers(end->told))
		get_failed(
			g, "sandbox_unavailable",
			"no page can be read here, since the sandbox for it cannot be made: tell "
			"the person that `ava doctor` says what to do");
	else if (end->how == EXEC_TIMEOUT)
		get_failed(g, "timeout", "this page takes too long to be made text");
	else if (!p)
		get_failed(g, "not_understood", "this page could not be made text");
	else if (is_pdf(g))
		take_pdf(g, p, end->output, end->output_len);
	else
		pages_take_text(g, p, end->output, end->output_len);
	convert_more(w);
}

/* Find bwrap, ava-sandbox and ava-page, once. */
static bool find_programs(struct pages *w, struct ava_error *err)
{
	if (w->page)
		return true;
	if (!w->bwrap && sandbox_find(&w->bwrap, &w->inside, err) != 0 && !w->o.sandbox)
		return false;
	if (w->o.sandbox && !w->inside) { /* a test's own; sandbox_find wants both */
		w->inside = strdup(w->o.sandbox);
		w->bwrap = strdup("/usr/bin/bwrap");
	}
	w->page = w->o.page ? strdup(w->o.page) : sandbox_find_tool("ava-page");
	if (!w->page)
		err_set(err, AVA_EUNSUPPORTED,
			"ava-page is missing beside avad: install ava again");
	return w->bwrap && w->inside && w->page;
}

static int pages_convert(struct pages_get *g, struct ava_error *err)
{
	static const char *const pdf[] = {PDFTOTEXT, "-q", "-enc", "UTF-8", "-", "-", NULL};
	struct pages *w = g->pages;
	const struct web_fetch *f = &g->fetch;
	char max[24];
	const char *const page[] = {SANDBOX_TOOL,
				    "--base",
				    f->final_url,
				    "--type",
				    f->type[0] ? f->type : "text/html",
				    "--max-bytes",
				    max,
				    "--as",
				    g->raw ? "source" : "markdown",
				    f->charset[0] ? "--charset" : NULL,
				    f->charset,
				    NULL};
	struct sandbox s = {.bwrap = w->bwrap,
			    .inside = w->inside,
			    .tool = w->page,
			    .project = "",
			    .start = "/tmp",
			    .argv = is_pdf(g) ? pdf : page};
	struct exec_options o = {.input = f->body.data ? f->body.data : "",
				 .input_len = f->body.len,
				 .timeout_ms = CONVERT_MS,
				 .output_max = 8 * PAGES_TEXT_MAX,
				 .keep = PAGES_TEXT_MAX + 8192};

	snprintf(max, sizeof(max), "%u", PAGES_TEXT_MAX);
	return sandbox_start(&g->child, w->loop, &s, &o, converted, g, err);
}

static void convert_more(struct pages *w)
{
	struct pages_get *g;

	while (w->converting < CONVERTERS &&
	       (g = LIST_FIRST(&w->waiting, struct pages_get, node)) != NULL) {
		struct ava_error err = {0};

		list_del(&g->node);
		if (is_pdf(g) && access(PDFTOTEXT, X_OK) != 0)
			get_failed(g, "unsupported",
				   "no PDF can be read here: tell the person to install "
				   "poppler-utils");
		else if (find_programs(w, &err) && pages_convert(g, &err) == 0)
			w->converting++;
		else if (g->raw)
			take_raw(g);
		else
			get_failed(g, "sandbox_unavailable", err.text);
	}
}

/* ---- the face */

static void fetched(struct web_fetch *f)
{
	struct pages_get *g = f->user;
	char text[80];

	if (f->fault != FETCH_OK) {
		get_failed(g, web_fetch_class(f->fault), web_fetch_sentence(f->fault));
	} else if (g->raw && is_utf8(&f->body)) {
		take_raw(g);
	} else if (!g->raw && (f->status >= 400 || f->status < 200)) {
		snprintf(text, sizeof(text), "the site answered with status %d", f->status);
		get_failed(g, "http_error", text);
	} else {
		list_add(&g->pages->waiting, &g->node);
		convert_more(g->pages);
	}
}

static const char *const raw_types[] = {"text/",
					"application/json",
					"application/xml",
					"application/javascript",
					"application/yaml",
					"application/x-yaml",
					"application/x-ndjson",
					"application/xhtml+xml",
					"+json",
					"+xml",
					NULL};
static const char *const page_types[] = {"text/",
					 "application/xhtml+xml",
					 "application/json",
					 "application/xml",
					 "application/pdf",
					 "+json",
					 "+xml",
					 NULL};

bool pages_get(struct pages *w, struct pages_get *g)
{
	struct ava_error err = {0};
	struct fetcher *f;
	int rv = AVA_ENOMEM;

	g->pages = w;
	g->class = "";
	list_init(&g->node);
	g->page = page_find(w, g);
	if (g->page) {
		g->page->refs++;
		return true;
	}
	g->fetch = (struct web_fetch){.url = g->url,
				      .accept = g->accept ? g->accept
						: g->raw  ? NULL
							  : AGENT_ACCEPT,
				      .language = g->language,
				      .types = g->raw ? raw_types : page_types,
				      .body_max = HTML_MAX,
				      .big_type = g->raw ? NULL : "application/pdf",
				      .big_max = g->raw ? 0 : PDF_MAX,
				      .done = fetched,
				      .user = g};
	f = fetcher_of(w, &err);
	if (f)
		rv = web_fetch_start(f, &g->fetch, &err);
	if (rv == 0)
		return false;
	g->class = rv == AVA_EDENIED  ? web_fetch_class(FETCH_BLOCKED)
		   : rv == AVA_EINVAL ? web_fetch_class(FETCH_BAD_URL)
				      : "io";
	snprintf(g->sentence, sizeof(g->sentence), "%s", err.text);
	return true;
}

bool pages_get_stop(struct pages_get *g)
{
	if (g->child) {
		exec_stop(g->child);
		return false;
	}
	list_del(&g->node);
	web_fetch_stop(&g->fetch);
	g->class = "cancelled";
	return true;
}

void pages_get_fini(struct pages_get *g)
{
	if (g->page)
		page_drop(g->page);
	g->page = NULL;
}
