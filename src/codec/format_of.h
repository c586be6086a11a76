/* Figures (base/format.h) and ends (base/words.h) from a run's JSON, for every display. */
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
/* The most cents of a quote, exactly. */
struct format format_most_of(const json_t *quote, const char *key);
/* The limit `key` of a run: "10 min", "$0.50", "100k tokens", "20 replies". */
struct format format_limit_of(const json_t *limits, const char *key);
/* How a run ended. `end`: its result or its status; `run`: its status, for the limit, or NULL. */
struct words_end format_end_of(const json_t *end, const json_t *run);
/* Number of citations whose text was not found at the cited place; *all: number of all
 * citations. */
int64_t format_not_found(const json_t *result, int64_t *all);

/* Append the outcome of the check of a result (WORDS_CHECK), safe to show; nothing when it has
 * none. */
void format_check(struct buf *out, const json_t *result);

/* Append a model's text, safe to show (utf8_terminal): each line that looks like one of the
 * runtime's (words_imitates), also in Markdown, gets WORDS_BAR in front. `begun`: the first line
 * continues one that was shown. */
void format_barred(struct buf *out, const char *text, size_t len, bool begun);
/* Is enough of the line there to decide whether it looks like one of the runtime's? */
bool format_line_tells(const char *line, size_t len);

#endif
