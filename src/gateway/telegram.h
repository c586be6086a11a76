/* The door for Telegram: a client of the table of verbs that speaks with the people who are
 * paired, in private chats. doc/TELEGRAM.md says what they see, doc/SECURITY.md what each check
 * is against. Loop thread only. */
#ifndef GATEWAY_TELEGRAM_H
#define GATEWAY_TELEGRAM_H

#include <stdbool.h>

struct ava_error;
struct core;
struct telegram;

/* Where the key file has a token the door opens; else *out is NULL. What is wrong with the token
 * or the state is told by `log` and shown as the door's problem: nothing else suffers. `url`:
 * telegram.url or "". AVA_ENOMEM. */
int telegram_new(struct telegram **out, struct core *core, const char *url,
		 void (*log)(const char *line, void *user), void *user, struct ava_error *err);
/* It listens, so the daemon is not idle. */
bool telegram_serves(const struct telegram *t);
/* Before the runtime closes; NULL is fine. What is under way is taken up by the next start. */
void telegram_free(struct telegram *t);

#endif
