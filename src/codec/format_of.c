/* Figures and ends of JSON; format_of.h. What is missing is 0, but for money, which is then
 * unknown. Nothing can fail.
 */
#include "codec/format_of.h"

#include <ctype.h>
#include <string.h>

#include "codec/json.h"
#include "codec/utf8.h"

#define BEGINNING_MAX 128
#define TELLS_WITHIN  10 /* bytes of a line's beginning: "Subagent [" */
#define ENTITY_MAX    10

struct format format_cost_of(const json_t *o, const char *key)
{
	return format_money(json_get_fixed(o, key, 4, -1));
}

struct format format_time_of(const json_t *o, const char *key)
{
	return format_seconds(json_get_fixed(o, key, 3, 0));
}

struct format format_tokens_of(const json_t *o, const char *key)
{
	return format_tokens(json_get_int(o, key, 0));
}

struct format format_most_of(const json_t *quote, const char *key)
{
	return format_money_limit(json_get_fixed(quote, key, 4, -1));
}

struct format format_limit_of(const json_t *limits, const char *key)
{
	const struct words_limit *l = words_limit(key);

	return words_amount(l->kind, json_get_fixed(limits, key, l->decimals,
						    l->kind == WORDS_LIMIT_MONEY ? -1 : 0));
}

struct words_end format_end_of(const json_t *end, const json_t *run)
{
	const struct words_limit *l = words_limit(json_str(end, "status"));
	const json_t *limits = json_object_get(run, "limits");

	return words_end(json_str(end, "subagent_id"), json_str(end, "status"),
			 json_str(end, "stop_reason"), json_str(end, "error"),
			 l ? json_get_fixed(limits, l->key, l->decimals, 0) : 0);
}

int64_t format_not_found(const json_t *result, int64_t *all)
{
	const json_t *evidence = json_object_get(result, "evidence");

	*all = json_get_int(evidence, "citations_checked", 0);
	return json_get_int(evidence, "citations_failed", 0);
}

bool format_imitates(const char *line, size_t len)
{
	char seen[64];

	utf8_seen(seen, sizeof(seen), line, len);
	return words_imitates(seen);
}

/* An entity of HTML, which Markdown shows as its character. */
static bool is_entity(const char *s, size_t len)
{
	size_t n = 1;

	while (n < len && (isalnum((unsigned char)s[n]) || s[n] == '#'))
		n++;
	return s[0] == '&' && n > 1 && n < len && s[n] == ';';
}

/* A line's beginning without what Markdown does not show of it: marks of styles, headings and
 * links, escapes. A list's mark is shown, as something else. false: it has entities. */
static bool plain_line(char plain[BEGINNING_MAX], size_t *n, const char *line, size_t len)
{
	*n = 0;
	for (size_t i = 0; i < len && *n < BEGINNING_MAX; i++) {
		bool item = line[i] == '*' && i + 1 < len && line[i + 1] == ' ';

		if (*n < TELLS_WITHIN && is_entity(line + i, len - i))
			return false;
		if (item || strchr(*n == 0 ? "*_~`\\#![" : "*_~`\\", line[i]) == NULL)
			plain[(*n)++] = line[i];
	}
	return true;
}

bool format_line_tells(const char *line, size_t len)
{
	char plain[BEGINNING_MAX], seen[BEGINNING_MAX];
	size_t n;

	return len >= BEGINNING_MAX || !plain_line(plain, &n, line, len) ||
	       utf8_seen(seen, sizeof(seen), plain, n) >= TELLS_WITHIN + ENTITY_MAX;
}

static bool barred(const char *line, size_t len)
{
	char plain[BEGINNING_MAX];
	size_t n;

	return !plain_line(plain, &n, line, len) || format_imitates(plain, n) ||
	       format_imitates(line, len);
}

void format_barred(struct buf *out, const char *text, size_t len, bool begun)
{
	size_t n;

	for (; len > 0; text += n, len -= n, begun = false) {
		const char *end = memchr(text, '\n', len);

		n = end != NULL ? (size_t)(end - text) : len;
		if (!begun && barred(text, n))
			buf_adds(out, WORDS_BAR);
		n += end != NULL;
		(void)utf8_terminal(out, text, n, true);
	}
}
