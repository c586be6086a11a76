/* The door for Telegram: a client of the table of verbs that speaks with the people who are
 * paired, in private chats. doc/TELEGRAM.md says what they see, doc/SECURITY.md what each check
 * is against. Loop thread only. */
#ifndef GATEWAY_TELEGRAM_H
#define GATEWAY_TELEGRAM_H

#include <stdbool.h>

struct ava_error;
struct core;
struct telegram;

/* Open the door if the key file has a token; else *out is NULL. A bad token or state is told by
 * `log` and shown as the door's problem, without harm to the daemon. `url`:
 * telegram.url or "". AVA_ENOMEM. */
int telegram_new(struct telegram **out, struct core *core, const char *url,
		 void (*log)(const char *line, void *user), void *user, struct ava_error *err);
/* Whether the door listens, which keeps the daemon from being idle. */
bool telegram_serves(const struct telegram *t);
/* Before the runtime closes; NULL is fine. The next start takes up updates and calls under way. */
void telegram_free(struct telegram *t);

#endif
