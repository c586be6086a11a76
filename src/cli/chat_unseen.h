/* What happened in a conversation while nobody looked (doc/DELIVERY.md), and the
 * word that it was shown. */
#ifndef CLI_CHAT_UNSEEN_H
#define CLI_CHAT_UNSEEN_H

#include <stdbool.h>

struct ava_error;
struct chat;

/* Show it: its summary, then each notice that the feed will not bring. *words:
 * something of Ava's was among them. */
int chat_unseen(struct chat *c, bool *words, struct ava_error *err);

/* Note that the notice with this lsn was shown. */
void chat_noticed(struct chat *c, unsigned long long lsn);
/* Acknowledge what was shown, if something was since the last time. One that
 * does not arrive is shown again to whoever comes next. */
void chat_acknowledge(struct chat *c);

#endif
