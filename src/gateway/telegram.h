/* The wire of Telegram: its Bot API (doc/TELEGRAM.md). Pure. */
#ifndef GATEWAY_TELEGRAM_H
#define GATEWAY_TELEGRAM_H

#include "gateway/door_wire.h"

extern const struct door_wire door_wire_telegram;

/* The wire's `judge`. */
void telegram_judge(int status, const char *body, size_t len, json_t **doc,
		    struct door_answer *out);

#endif
