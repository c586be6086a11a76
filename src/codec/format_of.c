/* Figures and ends of JSON; format_of.h. What is missing is 0, but for money, which is then
 * unknown. Nothing can fail.
 */
#include "codec/format_of.h"

#include "codec/json.h"
#include "codec/utf8.h"

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
