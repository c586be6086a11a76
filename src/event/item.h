/* Items: events as a person sees them, made once for all doors (doc/items.json). Pure: a line of a
 * log in, none or one Item out:
 *
 * {"lsn":90417,"at":"2026-11-21T08:03:00.456Z","kind":"result","session":"0b5e…",
 *  "run":"S-7f3a2b","role":"researcher","ask":"","title":"S-7f3a2b (Researcher): Complete (12s,
 *  $0.02)","text":"…","cut":true,"detail":{…}}
 *
 * Text of models, tools and people is cut, cleaned of known secrets, and its
 * control characters, escapes and marks that turn text around are visible text. Markup is not
 * touched. A door renders Items and needs to know no event. */
#ifndef EVENT_ITEM_H
#define EVENT_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct redact;

/* clang-format off */
#define ITEM_KINDS(X)                                                                              \
	X(said)     /* a person, Ava or a model spoke: detail.by */                                \
	X(proposed) /* a quote waits: ask */                                                       \
	X(started)  /* a run began */                                                              \
	X(doing)    /* the newest activity replaces the one before; not stored */                  \
	X(asked)    /* a run waits for an answer: ask */                                           \
	X(answered) /* an Ask has its answer */                                                    \
	X(result)   /* a run ended in success */                                                   \
	X(failed)   /* a run ended otherwise, or Ava's turn did */                                 \
	X(expired)  /* nobody answered an Ask */                                                   \
	X(noted)    /* the memory changed, a budget is used up, or something was not done and why */
/* clang-format on */

enum item_kind {
#define X(name) ITEM_##name,
	ITEM_KINDS(X)
#undef X
		ITEM_NKINDS
};

/* Kinds of events that have an Item which stays: X(event, function of item.c, only of Ava's). */
#define ITEM_EVENTS(X)                                                                             \
	X(UserMessage, item_said, false)                                                           \
	X(AssistantMessage, item_said, false)                                                      \
	X(Steering, item_steered, false)                                                           \
	X(SpawnProposed, item_proposed, false)                                                     \
	X(SpawnConfirmed, item_settled, false)                                                     \
	X(SpawnRejected, item_settled, false)                                                      \
	X(SpawnExpired, item_settled, false)                                                       \
	X(SubagentSpawn, item_started, false)                                                      \
	X(Waiting, item_waiting, false)                                                            \
	X(SubagentComplete, item_ended, false)                                                     \
	X(Error, item_error, true)                                                                 \
	X(StateWrite, item_memory, true)                                                           \
	X(Custom, item_custom, true)                                                               \
	X(OrderChanged, item_order, true)

#define ITEM_TEXT_CHARS 100000
#define ITEM_ASK        64 /* bytes of an Ask's id: "P-19c0de", "S-7f3a2b:c3.1" */

/* An Item's head, for those who keep Items and never look into their JSON. */
struct item {
	enum item_kind kind;
	uint64_t lsn;
	int64_t wall_ms;
	bool by_ava;                 /* said: by Ava; failed: her turn */
	bool alert;                  /* noted: of a budget, which is told to who is away, too */
	char run[24], ask[ITEM_ASK]; /* "": none */
	char session[64], user[48];
};

const char *item_kind_name(enum item_kind kind);
enum item_kind item_kind_of(const char *name); /* ITEM_NKINDS: none of them */

/* Can the line have an Item which stays? Cheap: nothing is parsed but the line's frame. */
bool item_stays(const char *line, size_t len);
/* Appends the Item of a line to `json`, its text cut to `chars`. `secrets` may be NULL. 0;
 * AVA_ENOENT: a person sees nothing of this event; AVA_ENOMEM: `json` holds a part. */
int item_make(struct item *it, struct buf *json, const char *line, size_t len, size_t chars,
	      const struct redact *secrets);

#endif
