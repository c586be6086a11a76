/* Figures and ends of JSON; format_of.h.
 *
 * Missing members are 0, missing money is unknown. Nothing can fail. */
#include "codec/format_of.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define SEEN_MAX   64
#define TELLS      10 /* length of a beginning that tells: "Subagent [" */
#define ENTITY_MAX 10
#define LOOKED_AT  2048 /* a line that shows nothing in so many bytes hides text */

/* "~" before a figure of a run that says its figures are estimated. */
static struct format about(const json_t *o, struct format f)
{
	struct format out;

	if (!json_get_bool(o, "estimated", false))
		return f;
	snprintf(out.text, sizeof(out.text), "~%.*s", (int)sizeof(out.text) - 2, f.text);
	return out;
}

struct format format_cost_of(const json_t *o, const char *key)
{
	int64_t cost = json_get_fixed(o, key, 4, -1);

	return cost < 0 ? format_money(cost) : about(o, format_money(cost));
}

struct format format_time_of(const json_t *o, const char *key)
{
	return format_seconds(json_get_fixed(o, key, 3, 0));
}

struct format format_tokens_of(const json_t *o, const char *key)
{
	return about(o, format_tokens(json_get_int(o, key, 0)));
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
			 json_str(end, "stop_reason"), json_str(end, "error_class"),
			 json_str(end, "error"),
			 l ? json_get_fixed(limits, l->key, l->decimals, 0) : 0,
			 l ? json_get_fixed(end, "needs", l->decimals, 0) : 0);
}

int64_t format_not_found(const json_t *result, int64_t *all)
{
	const json_t *evidence = json_object_get(result, "evidence");

	*all = json_get_int(evidence, "citations_checked", 0);
	return json_get_int(evidence, "citations_failed", 0);
}

void format_check(struct buf *out, const json_t *result)
{
	const json_t *check = json_object_get(result, "check");
	struct buf text;

	buf_init(&text, 64u << 10);
	if (check)
		buf_addf(&text, WORDS_CHECK(json_get_bool(check, "passed", false),
					    json_str(check, "command"), json_str(check, "how")));
	if (buf_check(&text) == 0 && text.len > 0)
		utf8_terminal(out, text.data, text.len, false);
	buf_fini(&text);
}

/* An entity of HTML, which Markdown shows as its character. */
static bool format_of_is_entity(const char *s, size_t len)
{
	size_t n = 1;

	while (n < len && (isalnum((unsigned char)s[n]) || s[n] == '#'))
		n++;
	return s[0] == '&' && n > 1 && n < len && s[n] == ';';
}

/* Bytes at `s` that Markdown does not show: a tag, a link's target, marks of styles and of
 * links, escapes. */
static size_t unshown(const char *s, size_t len)
{
	const char *tail = len > 1 && s[0] == ']' ? s + 1 : s, *end = NULL;

	if (s[0] == '<' || (tail > s && (*tail == '(' || *tail == '[')))
		end = memchr(tail, *tail == '<' ? '>' : *tail == '(' ? ')' : ']', len - 1);
	return end != NULL ? (size_t)(end - s) + 1 : strchr("*_~`\\[]", s[0]) != NULL;
}

/* A Markdown line's beginning as a reader sees it; other punctuation counts as blanks.
 * BEGINNING_HIDDEN: the line has an entity, or too much invisible text. */
enum beginning { BEGINNING_COMES, BEGINNING_KNOWN, BEGINNING_HIDDEN };

static enum beginning format_of_look_at(char seen[SEEN_MAX], const char *line, size_t len)
{
	char plain[SEEN_MAX * 2];
	size_t n = 0, i = 0, skipped;

	if (len > 1 && strchr("*+-", line[0]) != NULL && line[1] == ' ') /* items do not imitate */
		plain[n++] = line[i++];
	for (; i < len && n < sizeof(plain); i += MAX(skipped, 1u)) {
		if (n < TELLS && format_of_is_entity(line + i, len - i))
			return BEGINNING_HIDDEN;
		skipped = unshown(line + i, len - i);
		if (skipped == 0)
			plain[n++] =
				isalnum((unsigned char)line[i]) || line[i] & 0x80 ? line[i] : ' ';
	}
	if (utf8_seen(seen, SEEN_MAX, plain, n) >= TELLS + ENTITY_MAX)
		return BEGINNING_KNOWN;
	return n == sizeof(plain) || len >= LOOKED_AT ? BEGINNING_HIDDEN : BEGINNING_COMES;
}

bool format_line_tells(const char *line, size_t len)
{
	char seen[SEEN_MAX];

	return format_of_look_at(seen, line, len) != BEGINNING_COMES;
}

void format_barred(struct buf *out, const char *text, size_t len, bool begun)
{
	char seen[SEEN_MAX];
	size_t n;

	for (; len > 0; text += n, len -= n, begun = false) {
		const char *end = memchr(text, '\n', len);

		n = end != NULL ? (size_t)(end - text) : len;
		if (!begun &&
		    (format_of_look_at(seen, text, n) == BEGINNING_HIDDEN || words_imitates(seen)))
			buf_adds(out, WORDS_BAR);
		n += end != NULL;
		(void)utf8_terminal(out, text, n, true);
	}
}
