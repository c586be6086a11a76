/* What happens in a conversation, as its person sees it, on stdout. */
#ifndef CLI_CHAT_SHOW_H
#define CLI_CHAT_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;
struct chat;

/* Is there something to show? Takes in what is not shown by itself. */
bool chat_wants(struct chat *c);
/* Show all there is, in whole lines. */
void chat_show(struct chat *c);
/* What Ava is just saying, as far as it is not shown; NULL: nothing. */
const char *chat_tail(struct chat *c, size_t *len);
/* When something is due that no event brings, clock_mono_ms; -1: never. */
int64_t chat_next(const struct chat *c);

/* The last words of an old conversation, its runs at work and what waits for an
 * answer. */
int chat_show_past(struct chat *c, struct ava_error *err);

/* A line of our own, dim. */
void chat_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
