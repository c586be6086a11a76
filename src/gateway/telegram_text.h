/* What the door of Telegram shows of the answers of verbs: plain text, so that nothing in it is
 * markup, with what could turn a line around made visible. Pure; all append to `out`, whose bound
 * is the caller's. */
#ifndef GATEWAY_TELEGRAM_TEXT_H
#define GATEWAY_TELEGRAM_TEXT_H

#include <jansson.h>

#include "base/buf.h"

/* GET /runs/{id}: the message of a run, from its spawn to its end. */
void tg_text_run(struct buf *out, const json_t *run);
/* GET /runs/{id}/result; its first line says how it ended. */
void tg_text_result(struct buf *out, const json_t *result);
/* GET /proposals/{id}: the quote, and what became of it. */
void tg_text_quote(struct buf *out, const json_t *proposal);
/* A question of a run, as DELIVERY.md has it. */
void tg_text_question(struct buf *out, const json_t *notice);
/* Answers to /runs, /logs, /cost and /status. */
void tg_text_runs(struct buf *out, const json_t *list);
void tg_text_logs(struct buf *out, const json_t *events);
void tg_text_cost(struct buf *out, const json_t *health);
void tg_text_health(struct buf *out, const json_t *health);
extern const char tg_text_help[];

#endif
