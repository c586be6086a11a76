/* Figures (base/format.h) and ends (base/words.h) of the JSON that tells of a run, for
 * whatever shows them. */
#ifndef CODEC_FORMAT_OF_H
#define CODEC_FORMAT_OF_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/words.h"

/* Cents, seconds, tokens of a member; with a "~" where `o` is a run whose figures are estimated.
 */
struct format format_cost_of(const json_t *o, const char *key);
struct format format_time_of(const json_t *o, const char *key);
struct format format_tokens_of(const json_t *o, const char *key);
/* Of a quote: cents at the most, exactly. */
struct format format_most_of(const json_t *quote, const char *key);
/* Of a run's limits: "10 min", "$0.50", "100k tokens", "20 replies". */
struct format format_limit_of(const json_t *limits, const char *key);
/* How a run ended. `end`: its result or its status; `run`: its status, for the limit, or NULL. */
struct words_end format_end_of(const json_t *end, const json_t *run);
/* Citations that were not found where they were said to be; of *all. */
int64_t format_not_found(const json_t *result, int64_t *all);

/* A model's text, fit to be shown (utf8_terminal): each of its lines that imitates as it looks
 * (words_imitates) stands behind WORDS_BAR, also one that does so in whatever shows Markdown.
 * `begun`: its first line goes on one that was shown. */
void format_barred(struct buf *out, const char *text, size_t len, bool begun);
/* So much of a line has come that whether it imitates is known. */
bool format_line_tells(const char *line, size_t len);

#endif
