/* First the claims are listed, then every tool result is gone through once,
 * line by line; a claim is good when a line of its path and number is there
 * and holds its quote. Claims nobody can show are left out and counted. */
#include "subagent/evidence.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/dialect.h"

#define PATH_MAX_CHARS  512
#define QUOTE_MAX_CHARS 400

struct claim {
	char *path, *quote; /* quote NULL: the line is enough */
	bool is_url, good;
	int64_t line;
};

struct claims {
	struct claim all[EVIDENCE_MAX_CITATIONS];
	unsigned n;
};

static void claim_add(struct claims *c, const char *path, size_t path_len, int64_t line,
		      const char *quote, bool is_url)
{
	struct claim *k;

	if (c->n == EVIDENCE_MAX_CITATIONS || path_len == 0 || path_len > PATH_MAX_CHARS)
		return;
	for (unsigned i = 0; i < c->n; i++)
		if (c->all[i].line == line && strncmp(c->all[i].path, path, path_len) == 0 &&
		    c->all[i].path[path_len] == 0 && (!quote || c->all[i].quote))
			return;
	k = &c->all[c->n];
	*k = (struct claim){.line = line, .is_url = is_url};
	k->path = strndup(path, path_len);
	k->quote = quote && *quote ? strdup(quote) : NULL;
	if (k->path)
		c->n++;
}

static void claims_free(struct claims *c)
{
	for (unsigned i = 0; i < c->n; i++) {
		free(c->all[i].path);
		free(c->all[i].quote);
	}
	free(c);
}

static void claims_from_json(struct claims *c, const json_t *v, int depth)
{
	const char *path = json_get_str(v, "path"), *url = json_get_str(v, "url");
	const char *quote = json_get_str(v, "quote"), *key;
	int64_t line = json_get_int(v, "line", 0);
	const json_t *child;
	size_t i;

	if (depth > 16)
		return;
	if (path && line > 0)
		claim_add(c, path, strlen(path), line, quote, false);
	else if (url && quote)
		claim_add(c, url, strlen(url), 0, quote, true);
	json_object_foreach((json_t *)v, key, child) claims_from_json(c, child, depth + 1);
	json_array_foreach(v, i, child) claims_from_json(c, child, depth + 1);
}

static bool path_char(char ch)
{
	return isalnum((unsigned char)ch) || strchr("._-/+@", ch);
}

/* "see src/a.c:12 and …": a path with a dot or slash, a colon, a number. */
static void claims_from_text(struct claims *c, const char *s)
{
	for (const char *colon = strchr(s, ':'); colon; colon = strchr(colon + 1, ':')) {
		const char *start = colon;
		char *end;
		long line;

		if (!isdigit((unsigned char)colon[1]))
			continue;
		while (start > s && path_char(start[-1]))
			start--;
		line = strtol(colon + 1, &end, 10);
		if (start == colon || line <= 0 || line > 100000000)
			continue;
		if (memchr(start, '.', (size_t)(colon - start)) ||
		    memchr(start, '/', (size_t)(colon - start)))
			claim_add(c, start, (size_t)(colon - start), line, NULL, false);
	}
}

/* `text` (the line's content) shows what the claim says. */
static bool shows(struct claim *k, const char *text, size_t len)
{
	const char *q = k->quote;
	size_t qlen;

	if (!q) {
		k->quote = strndup(text, MIN(len, (size_t)QUOTE_MAX_CHARS));
		return true;
	}
	q += strspn(q, " \t");
	qlen = strlen(q);
	while (qlen && isspace((unsigned char)q[qlen - 1]))
		qlen--;
	return qlen > 0 && memmem(text, len, q, qlen);
}

/* "path:LINE:text" of searches. */
static void match_search_line(struct claims *c, const char *line, size_t len)
{
	for (unsigned i = 0; i < c->n; i++) {
		struct claim *k = &c->all[i];
		size_t plen = strlen(k->path);
		char number[24];
		int n;

		if (k->good || k->is_url || len <= plen + 2 || memcmp(line, k->path, plen) != 0)
			continue;
		n = snprintf(number, sizeof(number), ":%lld:", (long long)k->line);
		if (len >= plen + (size_t)n && memcmp(line + plen, number, (size_t)n) == 0)
			k->good = shows(k, line + plen + n, len - plen - (size_t)n);
	}
}

/* "LINE\ttext" under the header "path (lines A-B of N)" of read_file. */
static void match_read_line(struct claims *c, const char *path, size_t plen, const char *line,
			    size_t len)
{
	const char *tab = memchr(line, '\t', MIN(len, (size_t)12));
	long number;

	if (!tab)
		return;
	number = strtol(line, NULL, 10);
	for (unsigned i = 0; i < c->n; i++) {
		struct claim *k = &c->all[i];

		if (!k->good && !k->is_url && k->line == number && strlen(k->path) == plen &&
		    memcmp(k->path, path, plen) == 0)
			k->good = shows(k, tab + 1, len - (size_t)(tab + 1 - line));
	}
}

/* What read_result gives again has its own numbers before the lines. */
static bool is_again(const char *text, size_t len)
{
	static const char begin[] = "result of c";

	return len > sizeof(begin) && memcmp(text, begin, sizeof(begin) - 1) == 0 &&
	       isdigit((unsigned char)text[sizeof(begin) - 1]);
}

static size_t skip_number(const char *line, size_t len)
{
	size_t n = 0;

	while (n < len && isdigit((unsigned char)line[n]))
		n++;
	return n > 0 && n < len && line[n] == '\t' ? n + 1 : 0;
}

static int match_result(size_t index, const char *text, size_t len, bool is_error, void *user)
{
	struct claims *c = user;
	const char *end = text + len, *header = NULL;
	const char *first_end = memchr(text, '\n', len);
	bool again = is_again(text, len);
	size_t plen = 0;

	if (is_error)
		return 0;
	if (first_end && !again) {
		header = memmem(text, (size_t)(first_end - text), " (lines ", 8);
		plen = header ? (size_t)(header - text) : 0;
	}
	for (unsigned i = 0; i < c->n; i++) {
		struct claim *k = &c->all[i];

		if (!k->good && k->is_url && memmem(text, len, k->path, strlen(k->path)))
			k->good = shows(k, text, len);
	}
	for (const char *line = text; line < end;) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));
		size_t n = (size_t)((nl ? nl : end) - line);
		size_t skip = again ? skip_number(line, n) : 0;

		if (header)
			match_read_line(c, text, plen, line, n);
		match_search_line(c, line + skip, n - skip);
		line += n + 1;
	}
	return 0;
}

static void write_claims(struct evidence *e, const struct claims *c)
{
	struct jw w;

	jw_init(&w, &e->citations);
	jw_array(&w, NULL);
	for (unsigned i = 0; i < c->n; i++) {
		const struct claim *k = &c->all[i];

		e->checked++;
		if (!k->good) {
			e->failed++;
			continue;
		}
		jw_object(&w, NULL);
		jw_str(&w, k->is_url ? "url" : "path", k->path);
		if (!k->is_url)
			jw_int(&w, "line", k->line);
		jw_str(&w, "quote", k->quote ? k->quote : "");
		jw_end(&w);
	}
	jw_end(&w);
}

int evidence_collect(struct evidence *e, const struct dialect *d, const char *lines,
		     size_t lines_len, const char *output, size_t output_len, const char *summary)
{
	struct claims *c = calloc(1, sizeof(*c));
	json_t *v;

	*e = (struct evidence){0};
	buf_init(&e->citations, 1u << 20);
	if (!c)
		return AVA_ENOMEM;
	v = output ? json_parse(output, output_len, NULL) : NULL;
	if (v)
		claims_from_json(c, v, 0);
	json_decref(v);
	if (summary)
		claims_from_text(c, summary);
	if (c->n > 0)
		(void)d->results(lines, lines_len, match_result, c, NULL);
	write_claims(e, c);
	claims_free(c);
	return buf_check(&e->citations);
}
