/* Shared by the web tools of one runtime: the fetcher, the pages that runs have read, and the
 * configured search service. Loop thread only. */
#ifndef TOOL_PAGES_H
#define TOOL_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/list.h"
#include "net/web_fetch.h"

struct address_url;
struct exec_child;
struct http_pool;
struct os_loop;
struct pages;
struct ava_error;

struct pages_options {             /* *copied* */
	const char *allow_private; /* "host:port" each with its NUL, then an empty one; or NULL */
	bool robots;
	unsigned parallel, per_host; /* 0: the defaults of web_fetch.h */
	int64_t host_gap_ms;
	const char *searxng;             /* address of the service; NULL or "": none */
	const char *brave, *brave_url;   /* key, NULL: none; address, NULL: the service's own */
	const char *tavily, *tavily_url; /* the same for Tavily */
	/* For tests: paths of ava-page and ava-sandbox, addresses of names (net/web_fetch.h). */
	const char *page, *sandbox;
	const char *const *resolve;
};

/* Cheap: parts are made at their first use. NULL with err: AVA_ENOMEM, AVA_EINVAL. */
struct pages *pages_new(struct os_loop *loop, const struct pages_options *o, struct ava_error *err);
void pages_free(struct pages *w); /* no call is at work; NULL is fine */
/* Drop the pages of the run that `owner` stands for. */
void pages_forget(struct pages *w, const void *owner);

const struct pages_options *pages_settings(const struct pages *w);
/* The pool of calls to the search service at `url`, always the same one; NULL with err. */
struct http_pool *pages_search_pool(struct pages *w, const char *url, struct ava_error *err);
/* The name of the configured search service; NULL: none. web_search is a tool of this process as
 * long as there is a struct pages with one. */
const char *pages_search_service(const struct pages_options *o);
#define PAGES_SEARCH_MISSING                                                                       \
	"no search service is configured: set web.searxng in config.yaml, or BRAVE_API_KEY or "    \
	"TAVILY_API_KEY in the file env beside it"

/* Parse a URL with the fetcher's rules (net/address.h). */
int pages_parse(const struct pages *w, struct address_url *u, const char *url,
		struct ava_error *err);

/* ---- a page that was read */

#define PAGES_TEXT_MAX (1u << 20) /* bytes of a page as text */

struct pages_page {
	struct list node; /* in the list of kept pages, the last used first */
	const void *owner;
	unsigned refs;    /* one for each reader, and one for the list */
	bool raw;         /* the text is as the server sent it, else Markdown */
	bool more;        /* the page is longer than the kept text */
	const char *wall; /* static: kind of wall the page seems to be; NULL: none */
	int status;
	char *asked, *url; /* URL in the request, URL after redirects */
	struct buf text;   /* valid UTF-8 */
	char head[600];    /* "title: …\ndate: …\n", for the model */
	char hash[HASH_HEX_LEN + 1];
};

struct pages_get {       /* zero unused fields */
	const char *url; /* *borrowed until done* */
	bool raw;
	const char *accept, *language; /* as of struct web_fetch */
	const void *owner;
	void (*done)(struct pages_get *g);
	void *user;
	/* Set when it is over, valid until pages_get_fini: */
	struct pages_page *page; /* NULL: a failure, then: */
	const char *class;       /* static */
	char sentence[512];
	/* Private: */
	struct pages *pages;
	struct web_fetch fetch;
	struct exec_child *child;
	struct list node; /* in pages.waiting */
};

/* Get a page, read before or now. true: it is over already, `done` does not come. */
bool pages_get(struct pages *w, struct pages_get *g);
/* true: it is over, and `done` does not come; false: it comes soon. */
bool pages_get_stop(struct pages_get *g);
void pages_get_fini(struct pages_get *g); /* gives back the page */

#endif
